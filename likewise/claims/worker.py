"""A process that decides claims: one pickled question in, one JSON line out, until its input ends.

It never runs code of a claim: that is done in yet another process, by `confined`, and only where it is allowed.
"""

import contextlib
import json
import pickle
import sys
import time
from dataclasses import asdict
from typing import Any, TextIO

from likewise.checks import EXTRAS, MissingPackage
from likewise.claims.engines import decide
from likewise.claims.registry import counting, load_programs
from likewise.claims.verdict import Finding, Undecided

MEMORY = {"pure": 2 << 30, "torch": 6 << 30}  # bytes of address space


def main(kind: str) -> None:
    """Serve until the other side closes the pipe."""
    out = sys.stdout
    sys.stdout = sys.stderr  # what an engine might print is no answer
    _limit_memory(MEMORY[kind])
    if kind == "torch":  # what takes seconds to load is no part of a claim's time
        load_programs()
        with contextlib.suppress(
            Undecided, ImportError
        ):  # where something is missing, each claim that needs it says so
            counting().prepare()
    _say(out, {"ready": True})
    with contextlib.suppress(EOFError):
        while True:
            _say(out, answer(pickle.load(sys.stdin.buffer)))


def answer(question: dict[str, Any]) -> dict[str, Any]:
    """The finding for one claim, as plain data; whatever goes wrong is a reason, not an end."""
    started = time.monotonic()
    try:
        found = decide(question["claim"], allow_code=question["allow_code"], folder=question["folder"])
    except MemoryError:
        found = Finding("inconclusive", "undecided", "out of memory", engine="")
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        reason = MissingPackage("this claim", package) if package in EXTRAS else error
        found = Finding("inconclusive", "undecided", str(reason), engine="")
    except Exception as error:  # a fault of an engine must not pass for a verdict
        reason = f"internal error: {type(error).__name__}: {error}"
        found = Finding("inconclusive", "disagreement", reason, engine="")
    seconds = round(time.monotonic() - started, 3)
    return {"finding": asdict(found), "versions": _versions(), "seconds": seconds}


def _say(out: TextIO, data: dict[str, Any]) -> None:
    out.write(json.dumps(data) + "\n")
    out.flush()


def _limit_memory(most: int) -> None:
    try:
        import resource
    except ImportError:  # not on this system; the deadline remains
        return
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    resource.setrlimit(resource.RLIMIT_AS, (most if hard < 0 else min(most, hard), hard))


def _versions() -> dict[str, str]:
    """Of what took part."""
    loaded = {name: sys.modules.get(name) for name in ("torch", "numpy", "mpmath")}
    return {name: str(module.__version__) for name, module in loaded.items() if module is not None}
