"""A batch on its way through segments and heads: who leaves, when the rest is made smaller, and what that takes."""

import time
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor

from likewise.checks import require, require_count
from likewise.exits.criteria import Policy, Seen

HeadCall = Callable[[Tensor], tuple[Tensor, Tensor]]  # -> features, logits


@dataclass(frozen=True, eq=False)
class Outcome:
    """Answers in the order of the inputs, and what was run for them.

    exits: the number of the head at which each example left, or the number of heads for the end. For every segment,
    `computed` counts the rows that went through it, and `wanted` those that had not left; for every head, `asked`.
    """

    logits: Float[Tensor, "B C"]
    exits: Int64[Tensor, "B"]
    computed: tuple[int, ...]
    wanted: tuple[int, ...]
    asked: tuple[int, ...]

    @property
    def classes(self) -> Int64[Tensor, "B"]:
        return self.logits.argmax(1)


@runtime_checkable
class Compaction(Protocol):
    """Whether to copy the rows that are left, instead of carrying those that have left along."""

    def pays(self, segment: int, rows: int, left: int) -> bool:
        """After a segment, with so many rows, of which so many are left."""
        ...


@dataclass(frozen=True)
class Always:
    """Copy whenever somebody has left."""

    def pays(self, segment: int, rows: int, left: int) -> bool:
        return True


@dataclass(frozen=True)
class Never:
    """Carry all rows to the end, or until all have left."""

    def pays(self, segment: int, rows: int, left: int) -> bool:
        return False


@dataclass(eq=False)
class _Rows:
    """The rows under way: their values, where they stand in the batch, what is remembered, and who is still in."""

    x: Tensor
    where: Int64[Tensor, "b"]
    state: Float[Tensor, "b W"]
    inside: Bool[Tensor, "b"]
    left: int

    def compacted(self) -> "_Rows":
        kept = self.inside.nonzero()[:, 0]
        return _Rows(gathered(self.x, kept), self.where[kept], self.state[kept], self.inside[kept], self.left)


def gathered(x: Tensor, rows: Int64[Tensor, "b"]) -> Tensor:
    """Some rows of a batch, as a copy in the same memory format, which `index_select` would not keep."""
    return x[rows]


def run_exits(
    x: Tensor,
    *,
    segments: Sequence[Callable[[Tensor], Tensor]],
    heads: Sequence[HeadCall],
    places: Sequence[int],
    policy: Policy,
    compaction: Compaction,
) -> Outcome:
    """The scheduler: segments in turn, and after segment places[i] head i, until every row has left.

    It knows nothing of where segments and heads come from: modules here, exported programs elsewhere.
    """
    at = {place: head for head, place in enumerate(places) if policy.needs(head)}
    total = len(x)
    if not at:  # the network itself, without any books to keep
        for segment in segments:
            x = segment(x)
        everybody = (total,) * len(segments)
        return Outcome(x, torch.full((total,), len(places), device=x.device), everybody, everybody, (0,) * len(places))
    rows = _Rows(
        x,
        torch.arange(total, device=x.device),
        torch.zeros(total, policy.criterion.width, device=x.device),
        torch.ones(total, dtype=torch.bool, device=x.device),
        total,
    )
    exits = torch.full((total,), len(places), device=x.device)
    computed, wanted, asked = [0] * len(segments), [0] * len(segments), [0] * len(places)
    out: Tensor | None = None
    for number, segment in enumerate(segments):
        computed[number], wanted[number] = len(rows.x), rows.left
        rows.x = segment(rows.x)
        if number not in at:
            continue
        head = at[number]
        asked[head] = len(rows.x)
        features, logits = heads[head](rows.x)
        scores, rows.state = policy.criterion.step(Seen(head, number + 1, features, logits), rows.state)
        leaving = rows.inside & policy.leaves(scores, head=head)
        count = int(leaving.sum())
        if count:
            out = logits.new_empty(total, logits.shape[1]) if out is None else out
            out[rows.where[leaving]], exits[rows.where[leaving]] = logits[leaving], head
            rows.inside, rows.left = rows.inside & ~leaving, rows.left - count
            if not rows.left:
                return Outcome(out, exits, tuple(computed), tuple(wanted), tuple(asked))
            if compaction.pays(number, len(rows.x), rows.left):
                rows = rows.compacted()
    if out is None:  # nobody left
        out = rows.x
    else:
        out[rows.where[rows.inside]] = rows.x[rows.inside]
    return Outcome(out, exits, tuple(computed), tuple(wanted), tuple(asked))


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
