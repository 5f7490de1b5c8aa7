"""One competitor in a process of its own, which answers one request per line.

Competitors from different environments can so take turns within one run, and memory can be measured from a fresh start.
This file is imported in the peers' environment too and needs only torch.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any, Self

import torch
from torch import Tensor

from benchmarks.harness.memory import extra_bytes

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "benchmarks/results"
PEERS_PYTHON = ROOT / ".peers/bin/python"
THREADS = 2  # the speeds are promised for two
WARM_LENGTH = 64  # a call of this length loads what the first call of a process loads
SWEEP = 2**24  # float32 numbers, 64 MB: more than the last level of cache holds
SETTLE = 0.01  # seconds in which the threads of the process that ran before stop spinning

Inputs = Callable[[int], tuple[Tensor, ...]]
Run = Callable[..., tuple[Tensor, ...]]


class WorkerError(RuntimeError):
    """What went wrong in the other process."""


class Worker:
    """The near end: `with Worker(python, module, "elu") as worker: worker.seconds("forward", 512)`."""

    def __init__(self, python: str, module: str, *arguments: str) -> None:
        self._name = " ".join([module, *arguments])
        self._errors = tempfile.TemporaryFile("w+")  # noqa: SIM115 -- closed in __exit__
        self._process = subprocess.Popen(
            [python, "-W", "ignore", "-m", module, *arguments],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        if any(error):
            self._process.kill()
        self._process.communicate()
        self._errors.close()

    def about(self) -> str:
        """Name and version."""
        return self._ask("about")

    def seconds(self, task: str, length: int, calls: int = 1) -> list[float]:
        """Times of calls at a length. Of more than one, the first warms up and is not among them."""
        return self._ask("seconds", task, length, calls)

    def last_rows(self, rows: int) -> tuple[Tensor, ...]:
        """The ends of what the last call returned."""
        return tuple(torch.tensor(each, dtype=torch.float64) for each in self._ask("last_rows", rows))

    def extra_bytes(self, task: str, length: int) -> int:
        """Memory that a call needs beyond its inputs. For a fresh worker."""
        return self._ask("extra_bytes", task, length)

    def _ask(self, question: str, *arguments: int | str) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            print(json.dumps([question, *arguments]), file=self._process.stdin, flush=True)
            line = self._process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            self._errors.seek(0)
            raise WorkerError(f"{self._name} ended: {self._errors.read()[-500:] or 'killed, perhaps for its memory'}")
        reply = json.loads(line)
        if "error" in reply:
            raise WorkerError(f"{self._name}: {reply['error']}")
        return reply["answer"]


class _Bench:
    """The far end: answers the questions above."""

    def __init__(self, about: str, runs: dict[str, Run], inputs: Inputs) -> None:
        self._about, self._runs, self._inputs = about, runs, lru_cache(maxsize=1)(inputs)
        self._last: tuple[Tensor, ...] = ()
        # Written before every call: it starts with a cold cache, as in a network, where other layers came in between.
        # Else short calls would find their inputs in the cache, which long ones never do.
        self._sweep = torch.zeros(SWEEP)

    def about(self) -> str:
        return self._about

    def seconds(self, task: str, length: int, calls: int) -> list[float]:
        run, inputs = self._runs[task], self._inputs(length)
        time.sleep(SETTLE)
        times = []
        for _ in range(calls):
            self._sweep.add_(1)
            started = time.perf_counter()
            self._last = run(*inputs)
            times.append(time.perf_counter() - started)
        return times[1:] if calls > 1 else times

    def last_rows(self, rows: int) -> list[Any]:
        return [each[..., -rows:, :].tolist() for each in self._last]

    def extra_bytes(self, task: str, length: int) -> int:
        self._runs[task](*self._inputs(WARM_LENGTH))
        inputs = self._inputs(length)
        return extra_bytes(lambda: self._runs[task](*inputs))


def serve(about: str, make: Callable[[], dict[str, Run]], inputs: Inputs) -> None:
    """Answer requests on standard input until it ends. What `make` and its runs, by task, print is standard error."""
    replies = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    torch.set_num_threads(THREADS)
    bench = _Bench(about, make(), inputs)
    for line in sys.stdin:
        question, *arguments = json.loads(line)
        try:
            reply = {"answer": getattr(bench, question)(*arguments)}
        except Exception as error:
            reply = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(reply), file=replies, flush=True)
