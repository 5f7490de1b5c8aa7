"""Worker processes, one claim at a time each, with a deadline; a late or dead one is killed and replaced.

A question goes out as a pickle, for a claim is parsed once; an answer comes back as JSON, for it is not trusted.

No signal is used in this process, so a pool serves threads and servers too.
"""

import atexit
import contextlib
import json
import math
import os
import pickle
import queue
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Literal

import likewise

Kind = Literal["pure", "torch"]
START = 60.0  # seconds a worker may take to load torch on a busy machine
WALL_TIME_FACTOR = (
    4.0  # a budget is processor time; so many times that may pass on the clock of a machine that others use too
)
GRACE = 2.0  # seconds beyond that
POLL = 0.1  # seconds between looks at whether the answers are still wanted
LONGEST_ANSWER = 1 << 20  # bytes
HOME = str(Path(likewise.__file__).parents[1])
BOOT = "import sys; sys.path.insert(0, sys.argv[2]); from likewise.claims.worker import main; main(sys.argv[1])"


class Late(Exception):
    """A worker did not answer in time, or ended."""

    def __init__(self, reason: str, *, is_overdue: bool = False, is_document: bool = False) -> None:
        super().__init__(reason)
        self.is_overdue = is_overdue  # alive, but out of time: its own, or that of the whole document
        self.is_document = is_document


class Worker:
    """One process; it is started when it is first asked."""

    boot = BOOT  # what the process runs; its arguments are the kind and HOME

    def __init__(self, kind: Kind) -> None:
        self._kind: Kind = kind
        self._process: subprocess.Popen[bytes] | None = None
        self._rest = b""

    def ask(self, question: dict[str, Any], seconds: float) -> dict[str, Any]:
        """The answer to one question, or Late; then the next question finds a new process."""
        try:
            if self._process is None:
                self._start()
            self._send(question)
            return self._receive(seconds)
        except BaseException:
            self.stop()
            raise

    def kill(self) -> None:
        """End the process from another thread: the one that waits for its answer finds it ended."""
        process = self._process
        if process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)

    def stop(self) -> None:
        """Kill the process and whatever it started."""
        if self._process is None:
            return
        self.kill()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe:
                pipe.close()
        self._process.wait()
        self._process, self._rest = None, b""

    def _start(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-c", self.boot, self._kind, HOME],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"},
            bufsize=0,
            start_new_session=True,
        )
        self._receive(START)

    def _send(self, question: dict[str, Any]) -> None:
        assert self._process is not None
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(pickle.dumps(question))
        except BrokenPipeError:
            raise Late("its worker ended") from None

    def _receive(self, seconds: float) -> dict[str, Any]:
        assert self._process is not None
        assert self._process.stdout is not None
        ends = time.monotonic() + seconds
        while b"\n" not in self._rest:
            left = ends - time.monotonic()
            if left <= 0 or not select.select([self._process.stdout], [], [], left)[0]:
                raise Late("over its deadline", is_overdue=True)
            chunk = os.read(self._process.stdout.fileno(), 1 << 16)
            if not chunk:
                raise Late("its worker ended, out of memory or of stack")
            self._rest += chunk
            if len(self._rest) > LONGEST_ANSWER:
                raise Late("its answer was too long")
        line, _, self._rest = self._rest.partition(b"\n")
        return json.loads(line)


class Pool:
    """Workers of both kinds, kept between calls: what is imported once is not imported again."""

    def __init__(self, most: int | None = None) -> None:
        self._most = most or max(1, min(4, os.cpu_count() or 1))
        self._idle: dict[Kind, list[Worker]] = {"pure": [], "torch": []}
        self._lock = threading.Lock()

    def ask(
        self, kind: Kind, question: dict[str, Any], seconds: float, busy: "set[Worker] | None" = None
    ) -> dict[str, Any]:
        """One question to one worker that is free now, or to a new one, which is in `busy` while it works."""
        busy = set() if busy is None else busy
        with self._lock:
            worker = self._idle[kind].pop() if self._idle[kind] else Worker(kind)
            busy.add(worker)
        try:
            return worker.ask(question, WALL_TIME_FACTOR * seconds + GRACE)
        finally:
            with self._lock:
                busy.discard(worker)
                self._idle[kind].append(worker)

    def ask_all(
        self,
        questions: Iterable[tuple[Kind, dict[str, Any], float]],
        answered: Callable[[int, "dict[str, Any] | Late"], None],
        *,
        seconds: float = math.inf,
        gone: threading.Event | None = None,
    ) -> None:
        """Every question; `answered(place, answer or Late)` is called in this thread, in the order of finishing.

        seconds: for all of them together. gone: set when nobody waits for the answers any more.
        """
        waiting: dict[Kind, queue.SimpleQueue] = {"pure": queue.SimpleQueue(), "torch": queue.SimpleQueue()}
        finished: queue.SimpleQueue = queue.SimpleQueue()
        ends, busy, total = time.monotonic() + seconds, set(), 0
        for place, (kind, question, seconds) in enumerate(questions):
            waiting[kind].put((place, question, seconds))
            total += 1
        stop = threading.Event()

        def serve(kind: Kind) -> None:
            while not stop.is_set():
                try:
                    place, question, seconds = waiting[kind].get_nowait()
                except queue.Empty:
                    return
                try:
                    finished.put((place, self.ask(kind, question, seconds, busy)))
                except Late as reason:
                    finished.put((place, reason))
                except Exception as error:  # the thread must not end without an answer
                    finished.put((place, Late(f"its worker failed: {type(error).__name__}")))

        for kind in ("torch", "pure"):
            for _ in range(min(self._most, waiting[kind].qsize())):
                threading.Thread(target=serve, args=(kind,), daemon=True).start()
        left = set(range(total))
        try:
            while left and time.monotonic() < ends and not (gone and gone.is_set()):
                with contextlib.suppress(queue.Empty):
                    place, found = finished.get(timeout=min(POLL, ends - time.monotonic()))
                    left.remove(place)
                    answered(place, found)
        finally:
            stop.set()
            with self._lock:
                for worker in busy:
                    worker.kill()
        for place in sorted(left):
            answered(place, Late(f"over the document's deadline ({seconds:g} s)", is_overdue=True, is_document=True))

    def close(self) -> None:
        """Stop every worker that is idle."""
        with self._lock:
            for workers in self._idle.values():
                for worker in workers:
                    worker.stop()
                workers.clear()


_shared: Pool | None = None
_shared_lock = threading.Lock()


def shared_pool() -> Pool:
    """The pool of this process, closed when it ends."""
    global _shared
    with _shared_lock:
        if _shared is None:
            _shared = Pool()
            atexit.register(_shared.close)
        return _shared
