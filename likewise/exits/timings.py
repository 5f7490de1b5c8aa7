"""What segments and copies take on this machine: whether a batch should shrink is measured, not assumed."""

import time
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from likewise.checks import require
from likewise.exits.running import gathered

REPEATS = 3


@dataclass(frozen=True)
class Timings:
    """Seconds of every segment, and of copying what comes out of it, for some numbers of rows.

    Shrinking from b to b - m rows after a segment pays if T_rest(b) - T_rest(b - m) > T_copy(b - m), where T_rest is
    the time of all segments that come; between measured numbers of rows, times are interpolated in a line.

    >>> table = Timings("cpu", 2, ("one", "two"), (0, 8), ((0.0, 1.0), (0.0, 4.0)), ((0.0, 1.0), (0.0, 1.0)))
    >>> table.pays(0, 8, 4), table.pays(0, 8, 7)  # 4 - 2 > 0.5, but 4 - 3.5 < 0.875
    (True, False)
    """

    device: str
    threads: int
    names: tuple[str, ...]
    sizes: tuple[int, ...]
    segments: tuple[tuple[float, ...], ...]
    copies: tuple[tuple[float, ...], ...]

    def rest(self, segment: int, rows: int) -> float:
        """Seconds of all segments after one."""
        return sum(self._between(times, rows) for times in self.segments[segment + 1 :])

    def copy(self, segment: int, rows: int) -> float:
        """Seconds of copying so many rows of what comes out of a segment."""
        return self._between(self.copies[segment], rows)

    def pays(self, segment: int, rows: int, left: int) -> bool:
        return self.rest(segment, rows) - self.rest(segment, left) > self.copy(segment, left)

    def _between(self, times: tuple[float, ...], rows: int) -> float:
        above = min(max(bisect_left(self.sizes, rows), 1), len(self.sizes) - 1)
        low, high = self.sizes[above - 1], self.sizes[above]
        return times[above - 1] + (times[above] - times[above - 1]) * (rows - low) / (high - low)

    def __str__(self) -> str:
        head = f"milliseconds on {self.device}, {self.threads} threads; copying what comes out in brackets"
        wide = max(map(len, self.names))
        lines = [f"{'rows':>{wide}} " + "".join(f"{size:>18}" for size in self.sizes)]
        for name, times, copies in zip(self.names, self.segments, self.copies, strict=True):
            cells = [f"{1e3 * t:.3f} ({1e3 * c:.3f})" for t, c in zip(times, copies, strict=True)]
            lines.append(f"{name:>{wide}} " + "".join(f"{cell:>18}" for cell in cells))
        return "\n".join([head, *lines])


def measured_timings(
    x: Tensor, *, names: Sequence[str], segments: Sequence[Callable[[Tensor], Tensor]], repeats: int = REPEATS
) -> Timings:
    """Time every segment on 1, 2, 4, ... rows of x and on all; the least of some repeats, after one to warm up."""
    require(len(x) > 1, "measured_timings", "x", "have two rows or more", len(x))
    sizes = sorted({len(x), *(1 << power for power in range(len(x).bit_length()))} - {0})
    sizes = [size for size in sizes if size <= len(x)]
    times: list[tuple[float, ...]] = []
    copies: list[tuple[float, ...]] = []
    with torch.no_grad():
        for segment in segments:
            after = segment(x)
            times.append(tuple(_seconds(lambda n, s=segment, x=x: s(x[:n]), size, x.device, repeats) for size in sizes))
            rows = torch.arange(len(x), device=x.device)
            copy = lambda n, rows=rows, after=after: gathered(after, rows[:n])  # noqa: E731
            copies.append(tuple(_seconds(copy, size, x.device, repeats) for size in sizes))
            x = after
    return Timings(str(x.device), torch.get_num_threads(), tuple(names), tuple(sizes), tuple(times), tuple(copies))


def _seconds(call: Callable[[int], Tensor], rows: int, device: torch.device, repeats: int) -> float:
    call(rows)
    best = float("inf")
    for _ in range(repeats):
        synchronise(device)
        started = time.perf_counter()
        call(rows)
        synchronise(device)
        best = min(best, time.perf_counter() - started)
    return best


def synchronise(device: torch.device) -> None:
    """Wait until a device has done what it was told."""
    if device.type != "cpu":
        torch.accelerator.synchronize(device)
