"""Files that are whole or not there, functions in files of users, hashes of settings, JSON that every reader takes."""

import hashlib
import importlib.util
import inspect
import json
import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from likewise.checks import refuse, require


def write_whole(path: Path | str, data: bytes | str) -> Path:
    """Write a file so that a reader, or a power cut, meets the old file or the new one. Text is UTF-8.

    The data goes to a file beside it and to the disk; then that file is renamed.
    """
    path = Path(path)
    beside = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with beside.open("wb") as file:
            file.write(data.encode() if isinstance(data, str) else data)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)
    return path


def require_place(where: str, path: Path) -> None:
    """Refuse a path at which no file can be written, before any work is done."""
    require(not path.is_dir(), where, "path", "be a file", f"the folder {path}")
    require(path.parent.is_dir(), where, "path", "be in a folder that exists", path)


def function_of(text: str, where: str, name: str) -> Callable[..., Any]:
    """A function of a file, as `file.py:function`; the file is run for it, as the user asked, with all their rights."""
    file, _, function_name = text.rpartition(":")
    path = Path(file)
    require(path.is_file(), where, name, "be in a file that exists", repr(file))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    function = vars(module).get(function_name)
    if not inspect.isfunction(function):
        functions = ", ".join(n for n, value in vars(module).items() if inspect.isfunction(value)) or "none"
        refuse(where, name, f"name a function of {file}", repr(function_name), f"Its functions: {functions}.")
    return function


def json_hash(facts: Any) -> str:
    """SHA-256 of plain data, whatever the order of its keys.

    >>> json_hash({"a": 1, "b": 2}) == json_hash({"b": 2, "a": 1}) != json_hash({"a": 2, "b": 1})
    True
    """
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()


def finite(data: Any) -> Any:
    """Plain data as JSON has it: numbers that are not finite become null, tuples lists.

    >>> finite({"a": [1.0, float("nan")], "b": ("c", 2)})
    {'a': [1.0, None], 'b': ['c', 2]}
    """
    if isinstance(data, dict):
        return {name: finite(value) for name, value in data.items()}
    if isinstance(data, list | tuple):
        return [finite(value) for value in data]
    return None if isinstance(data, float) and not math.isfinite(data) else data
