"""A fresh process for code of a claim: started, fed, listened to, ended; `child` is what runs in it."""

import contextlib
import json
import os
import secrets
import select
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import likewise
from likewise.claims.verdict import OutOfTime, Undecided

OFF = "code claims are off; --allow-code runs them"
LOADING = 60.0  # seconds that our own part of the process may take on a busy machine, before it turns to the code
WALL_TIME_FACTOR = 3.0  # a budget is processor time; so many times that may pass on the clock
LONGEST_ANSWER = 1 << 20  # bytes
LONGEST_SOURCE = 1 << 20
HOME = str(Path(likewise.__file__).parents[1])
MALFORMED = "the answer of the code was not of the agreed form"
CHILD = str(Path(__file__).with_name("child.py"))
ENVIRONMENT = {"PATH": os.defpath, "LANG": "C.UTF-8"} | dict.fromkeys(
    ["OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"], "1"
)
LAYERS = {
    "files": "no files",
    "names": "no names of files",
    "network": "no network",
    "processes": "no processes or threads",
}


@dataclass(frozen=True)
class Code:
    """A function of a file: called with inputs of these descriptions, or given to a tool of ours with its arguments.

    tool: "module:function" of our package; what the function returns is called as tool(function, arguments).
    """

    file: Path
    attribute: str
    arguments: tuple[Any, ...] = ()
    tool: str = ""

    @cached_property
    def source(self) -> str:
        """The text of the file, read once."""
        try:
            if self.file.stat().st_size > LONGEST_SOURCE:
                raise Undecided(f"{self.file.name} is longer than {LONGEST_SOURCE} bytes")
            return self.file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise Undecided(f"{self.file.name} cannot be read: {type(error).__name__}") from None


def program_file(name: str, folder: str) -> tuple[Path, str]:
    """`net.forward` and `net.py:forward` are the function forward of net.py beside the claim, and of nowhere else."""
    place, _, attribute = name.rpartition(":" if ":" in name else ".")
    parts = place.removesuffix(".py").split("/") if ":" in name else list(filter(None, place.split(".")))
    if any(part.startswith("_") or not part.isidentifier() for part in [*parts, attribute]):
        raise Undecided(f"{name} names something private")
    if not folder or not parts:
        raise Undecided(
            f"there is no program {name}: not one of ours, and the claim has no file beside which it stands"
        )
    home = Path(folder).resolve()
    file = home.joinpath(*parts).with_suffix(".py").resolve()
    if not file.is_file() or not file.is_relative_to(home):
        raise Undecided(f"there is no program {name}: not one of ours, and no {'/'.join(parts)}.py beside the claim")
    return file, attribute


def run_confined(code: Code, seconds: float) -> tuple[dict[str, Any], str]:
    """What came of the code, as `child.attempt` says it, and which layers held; Undecided if nothing came.

    What a tool returned is any map: it has to be judged by who asked.
    """
    if os.name != "posix":
        raise Undecided("code claims need a POSIX system, for its limits")
    source = code.source
    with tempfile.TemporaryDirectory() as folder:
        reader, writer = os.pipe()
        key = secrets.token_hex()
        request = {
            "key": key,
            "pipe": writer,
            "parent": os.getpid(),
            "seconds": seconds,
            "module": code.file.stem,
            "file": code.file.name,
            "source": source,
            "attribute": code.attribute,
            "arguments": code.arguments,
            "tool": code.tool,
            "home": HOME,
        }
        with tempfile.TemporaryFile() as asked:
            asked.write(json.dumps(request).encode())
            asked.seek(0)
            process = subprocess.Popen(
                [sys.executable, "-I", "-B", CHILD],
                stdin=asked,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env=ENVIRONMENT | {"HOME": folder, "TMPDIR": folder},
                cwd=folder,
                pass_fds=[writer],
                start_new_session=True,
            )
        os.close(writer)
        try:
            answer = _listen(reader, LOADING, WALL_TIME_FACTOR * seconds)
        finally:
            os.close(reader)
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    return _understood(answer, process.returncode, key, is_plain=bool(code.tool))


def _listen(reader: int, loading: float, seconds: float) -> bytes:
    """Everything up to the end of the process, within the time and up to the longest answer.

    The first line is our own; the time of the code starts after it.
    """
    ends, heard = time.monotonic() + loading, b""
    while True:
        left = ends - time.monotonic()
        if left <= 0 or not select.select([reader], [], [], left)[0]:
            raise OutOfTime(f"the code was still running after {seconds:.2g} s" if heard else "the code was not loaded")
        chunk = os.read(reader, 1 << 16)
        if not chunk:
            return heard
        ends = ends if heard else time.monotonic() + seconds
        heard += chunk
        if len(heard) > LONGEST_ANSWER:
            raise Undecided(f"the code answered with more than {LONGEST_ANSWER} bytes")


def _understood(answer: bytes, status: int, key: str, *, is_plain: bool = False) -> tuple[dict[str, Any], str]:
    """Two lines of the agreed form, the last with the key, and nothing else: the code may have written lines itself."""
    lines = answer.splitlines()
    if len(lines) < 2:
        how = f"signal {-status}" if status < 0 else f"status {status}"
        raise Undecided(f"the process of the code ended without an answer ({how})")
    try:
        layers, last = (json.loads(line) for line in lines)
        outcome = last["outcome"]
        granted = {name: layers[name] is True for name in LAYERS}
        returned, raised = outcome.get("returned"), outcome.get("raised")
        known = outcome == {"missing": True} or _is_raised(raised, outcome.get("message"))
        known = known or (isinstance(returned, dict) if is_plain else _is_returned(returned))
        known = known and last["key"] == key
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        known, granted, outcome = False, {}, {}
    if not known:
        raise Undecided(MALFORMED)
    held = ", ".join(text for name, text in LAYERS.items() if granted[name])
    missing = ", ".join(text.removeprefix("no ") for name, text in LAYERS.items() if not granted[name])
    trusted = f"; {missing} not forbidden by this system, so the code was trusted" if missing else ""
    return outcome, f"limits of time and memory{', ' * bool(held)}{held}{trusted}"


def _is_returned(found: Any) -> bool:
    if not isinstance(found, dict) or not isinstance(found.get("kind"), str):
        return False
    numbers = found.get("numbers")
    return numbers is None or (isinstance(numbers, list) and all(isinstance(number, str) for number in numbers))


def _is_raised(kinds: Any, message: Any) -> bool:
    return isinstance(kinds, list) and bool(kinds) and all(isinstance(kind, str) for kind in [*kinds, message])


def printable(text: str) -> str:
    """One line without control characters, not too long: it was written by the code."""
    return "".join(letter for letter in text.split("\n")[0] if letter.isprintable())[:200]
