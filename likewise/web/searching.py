"""One search worker: probes that wait are searched together, for many small searches stand in each other's way."""

import asyncio
import queue
import threading
from dataclasses import dataclass
from typing import Any

import numpy

from likewise.gallery import Gallery, Identified

ROWS = 1024  # of one search
Array = numpy.ndarray


@dataclass(frozen=True, eq=False)
class _Waiting:
    vectors: Array
    top: int
    loop: asyncio.AbstractEventLoop
    future: "asyncio.Future[tuple[Identified, ...]]"

    def answer(self, found: tuple[Identified, ...] | Exception) -> None:
        """Hand the answer to the loop that waits, unless its client has gone."""

        def settle() -> None:
            if self.future.done():
                return
            if isinstance(found, Exception):
                self.future.set_exception(found)
            else:
                self.future.set_result(found)

        self.loop.call_soon_threadsafe(settle)


class Searcher:
    """Answers `identify` for all requests in one thread, as many at a time as wait."""

    def __init__(self, gallery: Gallery) -> None:
        self._gallery = gallery
        self._queue: queue.SimpleQueue[_Waiting | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._work, name="search", daemon=True)
        self._thread.start()

    async def identify(self, vectors: Array, top: int) -> tuple[Identified, ...]:
        """Who these probes are, once the worker has searched for them."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Any] = loop.create_future()
        self._queue.put(_Waiting(vectors, top, loop, future))
        return await future

    def close(self) -> None:
        """End the worker."""
        self._queue.put(None)
        self._thread.join()

    def _work(self) -> None:
        while (first := self._queue.get()) is not None:
            batch, rows = [first], len(first.vectors)
            while rows < ROWS:
                try:
                    further = self._queue.get_nowait()
                except queue.Empty:
                    break
                if further is None:
                    self._queue.put(None)
                    break
                batch.append(further)
                rows += len(further.vectors)
            for width in {each.vectors.shape[1] for each in batch}:
                self._answer([each for each in batch if each.vectors.shape[1] == width])

    def _answer(self, batch: list[_Waiting]) -> None:
        """All vectors have the same width: if the gallery refuses one, it refuses all."""
        try:
            whole = numpy.concatenate([each.vectors for each in batch])
            found = self._gallery.identify(whole, top=max(each.top for each in batch))
        except Exception as error:
            for each in batch:
                each.answer(error)
            return
        start = 0
        for each in batch:
            each.answer(found[start : start + len(each.vectors)])
            start += len(each.vectors)
