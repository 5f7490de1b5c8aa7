"""Several ways to answer the same inputs, on one clock."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

import torch
from torch import Tensor

from likewise.checks import require, require_count
from likewise.exits.timings import synchronise


@dataclass(frozen=True)
class Clocked:
    """Seconds per example for every contestant (rows) and batch size (columns): the least, and the one in the middle.

    Where the two are far apart, somebody else was at work on the machine.
    """

    names: tuple[str, ...]
    sizes: tuple[int, ...]
    best: tuple[tuple[float, ...], ...]
    middle: tuple[tuple[float, ...], ...]
    device: str
    threads: int

    def seconds(self, name: str, size: int) -> float:
        """The least time per example."""
        return self.best[self.names.index(name)][self.sizes.index(size)]

    def span(self, name: str, size: int) -> tuple[float, float]:
        """The least and the median time per example."""
        row, column = self.names.index(name), self.sizes.index(size)
        return self.best[row][column], self.middle[row][column]

    def __str__(self) -> str:
        wide = max(map(len, self.names))
        lines = [f"{'batch':>{wide}} " + "".join(f"{size:>20}" for size in self.sizes)]
        for name, best, middle in zip(self.names, self.best, self.middle, strict=True):
            cells = [f"{1e6 * least:.1f} ({1e6 * mid:.1f})" for least, mid in zip(best, middle, strict=True)]
            lines.append(f"{name:>{wide}} " + "".join(f"{cell:>20}" for cell in cells))
        head = f"microseconds per example, least (median), on {self.device}, {self.threads} threads"
        return "\n".join([head, *lines])


def clocked(
    contestants: Mapping[str, Callable[[Tensor], object]],
    x: Tensor,
    *,
    sizes: Sequence[int] = (1, 32, 256),
    repeats: int = 5,
) -> Clocked:
    """Time everybody on all of x in batches of every size; they take turns, so that a disturbance meets all.

    A size above the number of rows is one batch. The first turn warms up and is not counted.
    """
    require_count("clocked", "repeats", repeats)
    require(len(x) > 0 and len(contestants) > 0, "clocked", "x", "have rows, and somebody to answer them", len(x))
    for size in sizes:
        require_count("clocked", "sizes", size)
    times: dict[tuple[str, int], list[float]] = {(name, size): [] for name in contestants for size in sizes}
    with torch.no_grad():
        for turn in range(repeats + 1):
            for size in sizes:
                for name, answer in contestants.items():
                    seconds = _pass(answer, x, size)
                    times[name, size] += [seconds / len(x)] if turn else []
    best, middle = (
        tuple(tuple(of(times[name, size]) for size in sizes) for name in contestants) for of in (min, median)
    )
    return Clocked(tuple(contestants), tuple(sizes), best, middle, str(x.device), torch.get_num_threads())


def _pass(answer: Callable[[Tensor], object], x: Tensor, size: int) -> float:
    synchronise(x.device)
    started = time.perf_counter()
    for batch in x.split(size):
        answer(batch)
    synchronise(x.device)
    return time.perf_counter() - started
