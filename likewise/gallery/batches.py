"""Identities that wait to be written together: a transaction for each costs a sync of the disk for each."""

import time
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Self

from likewise.gallery.embedding import Vectors

SECONDS = 1.0  # of waiting: what a crash may lose besides the images that a model has in hand
TEMPLATES = 10_000  # of one transaction
Waiting = tuple[str, Vectors]


class Batches:
    """Collects identities with their vectors and gives them to `write`, at the latest when the block ends.

    An identity is in one batch as a whole, so that an interrupted enrolment goes on with those that are missing. What
    waits is written when an error ends the block, too.
    """

    def __init__(self, write: Callable[[Sequence[Waiting]], None]) -> None:
        self._write = write
        self._waiting: list[Waiting] = []
        self._templates, self._since = 0, 0.0

    def put(self, name: str, found: Vectors) -> None:
        """Add an identity."""
        if not self._waiting:
            self._since = time.monotonic()
        self._waiting.append((name, found))
        self._templates += len(found.vectors)
        if self._templates >= TEMPLATES or time.monotonic() - self._since >= SECONDS:
            self.write()

    def write(self) -> None:
        """Write what waits."""
        waiting, self._waiting, self._templates = self._waiting, [], 0
        if waiting:
            self._write(waiting)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.write()
