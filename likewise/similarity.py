"""Products, squared distances and nearest rows: the one implementation that kernels, mining and probes call."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Bool, Float, Float64, Int64
from torch import Tensor

from likewise.checks import require, require_count
from likewise.progress import Progress, silent

ELEMENTS = 1 << 19  # distances of one block: 4 MB in float64, about what a core's cache holds
# Rows of a product of rows with themselves, of which only one half is taken. A multiple of 24, which BLAS takes at a
# time: the columns at its edge are summed in another order, and then copies of a row would not be equally far.
STRIP = 240
MEDIAN_ROWS = 128  # whose median is the centre of blocks: that of 1,800 rows takes a tenth of all their distances
QUERIES, SUPPORT = 2048, 4096  # rows of a product of `nearest`: 32 MB in float32, and enough work for one
EXTRA = 10  # candidates beyond the k nearest
KEPT = 2**25 - 2**12  # bytes: the largest block from whose freeing the C library of Linux learns


def wide(dtype: torch.dtype) -> torch.dtype:
    """The dtype in which to sum numbers of a dtype: float32 at least.

    >>> wide(torch.bfloat16), wide(torch.float64)
    (torch.float32, torch.float64)
    """
    return torch.promote_types(dtype, torch.float32)


def products(x: Float[Tensor, "*batch N K"], y: Float[Tensor, "*batch M K"]) -> Float[Tensor, "*batch N M"]:
    """Inner products x_i . y_j of all pairs of rows.

    >>> products(torch.tensor([[1.0, 2.0]]), torch.tensor([[3.0, 4.0], [0.0, 1.0]]))
    tensor([[11.,  2.]])
    """
    require(x.shape[-1] == y.shape[-1], "products", "y", f"have the width of x, {x.shape[-1]}", y.shape[-1])
    return x @ y.mT


def squared_distances(x: Float[Tensor, "*batch N K"], y: Float[Tensor, "*batch M K"]) -> Float[Tensor, "*batch N M"]:
    """Squared Euclidean distances |x_i - y_j|^2 of all pairs of rows, never negative.

    Both sides are first moved by the median of y: distances do not change, but |x|^2 + |y|^2 - 2 x.y then cancels far
    fewer digits when all rows share a large offset.

    >>> squared_distances(torch.tensor([[1.0, 2.0]]), torch.tensor([[3.0, 4.0], [1.0, 2.0]]))
    tensor([[8., 0.]])
    """
    require(x.shape[-1] == y.shape[-1], "squared_distances", "y", f"have the width of x, {x.shape[-1]}", y.shape[-1])
    centre = _centre(y)
    x, y = x - centre, y - centre
    squares = x.square().sum(-1)[..., :, None] + y.square().sum(-1)[..., None, :]
    return (squares - 2 * products(x, y)).clamp(min=0)


def distance_blocks(
    x: Float[Tensor, "N K"], y: Float[Tensor, "M K"], *, elements: int = ELEMENTS
) -> Iterator[tuple[slice, Float[Tensor, "n M"]]]:
    """`squared_distances` a few rows of x at a time, as (rows, their distances to all y): about `elements` at once.

    Centre and squares are found once. Products are taken in float64, so that near-duplicates keep their digits, and
    rounded once, to float32 at least. Of rows with themselves, if they make up one block, half is taken and mirrored.
    There is no gradient.

    >>> [(rows.start, d.tolist()) for rows, d in distance_blocks(torch.eye(2), torch.zeros(1, 2), elements=1)]
    [(0, [[1.0]]), (1, [[1.0]])]
    """
    require(x.shape[-1] == y.shape[-1], "distance_blocks", "y", f"have the width of x, {x.shape[-1]}", y.shape[-1])
    require_count("distance_blocks", "elements", elements)
    keep_freed_memory()
    kept, centre, itself = wide(torch.promote_types(x.dtype, y.dtype)), _centre(_some(y)), x is y
    x = x.detach().double() - centre
    y = x if itself else y.detach().double() - centre
    squares_x, squares_y, minus_two_y = x.square().sum(-1, keepdim=True), y.square().sum(-1), y.mT * -2

    def measured(rows: slice, columns: slice) -> Float64[Tensor, "n m"]:
        # Both squares at once: x_i and y_j in the other order have the same sum.
        return (x[rows] @ minus_two_y[:, columns]).add_(squares_x[rows] + squares_y[columns]).clamp_(min=0)

    step = max(1, elements // max(len(y), 1))
    if itself and 0 < len(x) <= step:
        yield slice(0, len(x)), _mirrored(measured, x.new_empty(len(x), len(x), dtype=kept))
        return
    for start in range(0, len(x), step):
        rows = slice(start, min(start + step, len(x)))
        yield rows, measured(rows, slice(None)).to(kept)


def _mirrored(
    measured: Callable[[slice, slice], Float64[Tensor, "n m"]], out: Float[Tensor, "N N"]
) -> Float[Tensor, "N N"]:
    """A symmetric matrix in `out`, of which only the upper half is measured, some rows at a time."""
    for start in range(0, len(out), STRIP):
        end = start + STRIP
        out[start:end, start:] = measured(slice(start, end), slice(start, None))
        out[end:, start:end] = out[start:end, end:].mT
    return out


def ratio(
    numerator: Float[Tensor, "*batch N V"],
    denominator: Float[Tensor, "*batch N 1"],
    trusted: tuple[float, float] | None = None,
) -> Float[Tensor, "*batch N V"]:
    """numerator / denominator without epsilon; 0, with gradient 0, where `inverse` is."""
    return numerator * inverse(denominator, trusted)


def inverse(denominator: Tensor, trusted: tuple[float, float] | None = None) -> Tensor:
    """1 / denominator, 0 where it is exactly 0 or outside the `trusted` range."""
    zero = denominator == 0 if trusted is None else (denominator < trusted[0]) | (denominator > trusted[1])
    return denominator.masked_fill(zero, 1).reciprocal().masked_fill(zero, 0)


def rounded_off(x: Tensor, y: Tensor, total: Tensor) -> Tensor:
    """What rounding took from total = x + y, exactly and without gradients; 0 where the total is not finite."""
    x, y, total = x.detach(), y.detach(), total.detach()
    part = total - x
    return ((x - (total - part)) + (y - part)).masked_fill(~total.isfinite(), 0)


def keep_freed_memory() -> None:
    """Let the process keep up to 64 MB that tensors have freed, for the next ones.

    The C library of Linux gives freed memory back when it is more than twice the largest block that it saw freed, and
    getting it again costs a fault for each page: up to 14,000 for 16 images in NN4, a fifth of the time. One block of
    almost 32 MB, freed untouched, puts that bound where it is highest. Elsewhere this does nothing.
    """
    torch.empty(KEPT, dtype=torch.uint8)


def _centre(y: Float[Tensor, "*batch M K"]) -> Float[Tensor, "*batch 1 K"] | float:
    """The median of the rows. Not the mean: one row that lies far out would take the digits of all others with it."""
    count = y.shape[-2]
    return y.detach().mT.contiguous().kthvalue(count // 2 + 1).values[..., None, :] if count else 0.0


def _some(y: Float[Tensor, "M K"]) -> Float[Tensor, "m K"]:
    """At most `MEDIAN_ROWS` rows, by steps of the golden ratio: no period of the rows is met."""
    if len(y) <= MEDIAN_ROWS:
        return y
    turns = torch.arange(MEDIAN_ROWS, dtype=torch.float64, device=y.device) * ((5**0.5 - 1) / 2)
    return y[(turns % 1 * len(y)).long()]


@runtime_checkable
class Rows(Protocol):
    """Rows of numbers, some of which are read at a time: a tensor of two dimensions, or a file."""

    @property
    def shape(self) -> Sequence[int]: ...

    def __getitem__(self, index: slice, /) -> Tensor: ...


@dataclass(frozen=True, eq=False)
class Neighbours:
    """Nearest rows, nearest first, and their squared distances; `recomputed`: for how many the first way did not do."""

    indices: Int64[Tensor, "N k"]
    squared: Float64[Tensor, "N k"]
    recomputed: int


def nearest(
    x: Float[Tensor, "N K"],
    y: Rows,
    *,
    k: int,
    exclude: Int64[Tensor, "N"] | None = None,
    centre: Float[Tensor, "K"] | None = None,
    support: int = SUPPORT,
    progress: Progress = silent,
) -> Neighbours:
    """The k rows of y nearest to each row of x by (squared distance, index), exactly; all pairs are never held.

    Products about a centre, y's mean unless given, bound every squared distance from below:
    |x|^2 + |y|^2 - 2 x.y - e (|x|^2 + |y|^2), where e covers their rounding. The k + 10 rows with the least bounds are
    measured by float64 differences. If the k-th of these lies below all other bounds it is settled; if not, the row is
    asked again with products in float64 and at last with differences to all of y, which near-duplicates may need.
    exclude: a row of y that does not count for row i of x, itself as a rule, or -1. support: rows of y at a time.
    progress: told the part of y that is done in the first way. Numbers must be finite: NaN has no nearest row.

    >>> found = nearest(torch.tensor([[0.0], [5.0]]), torch.tensor([[5.0], [1.0], [-1.0]]), k=2)
    >>> found.indices.tolist(), found.squared.tolist()
    ([[1, 2], [0, 1]], [[1.0, 1.0], [0.0, 16.0]])

    e is 8 sqrt(K) + 8 roundings: more than K roundings, the worst case, for K up to 64, and beyond that far more than
    a sum of K terms with independent errors makes (Higham and Mary 2019, SIAM J. Sci. Comput. 41).
    """
    where, (count, width) = "nearest", y.shape
    require(x.shape[-1] == width, where, "y", f"have the width of x, {x.shape[-1]}", width)
    require_count(where, "k", k)
    require_count(where, "support", support)
    hidden = torch.full((len(x),), -1) if exclude is None else exclude.cpu()
    most = count - int(bool((hidden >= 0).any()))
    require(k <= most, where, "k", f"be at most {most}, the rows of y that count", k)
    _require_finite("x", x)
    centre = _mean(y, support) if centre is None else centre
    indices = torch.zeros(len(x), k, dtype=torch.int64)
    squared = torch.zeros(len(x), k, dtype=torch.float64)
    ways = dict.fromkeys((wide(torch.promote_types(x.dtype, y[:0].dtype)), torch.float64))
    left, recomputed = torch.arange(len(x)), 0
    for number, dtype in enumerate([*ways, None]):
        recomputed += len(left) if number == 1 else 0
        if not len(left):
            break
        rows = x if len(left) == len(x) else x[left]
        if dtype is None:
            indices[left], squared[left] = _by_differences(rows, y, k, hidden[left], support)
            break
        tell = progress if number == 0 else silent
        candidates, bounds = _by_products(rows, y, min(k + EXTRA, count), centre.to(dtype), support, tell)
        measured = _measured(rows, y, candidates, support).masked_fill(candidates == hidden[left, None], torch.inf)
        order = measured.sort(dim=1, stable=True).indices[:, :k]
        indices[left], squared[left] = candidates.gather(1, order), measured.gather(1, order)
        left = left[~(squared[left, -1] < bounds)]
    return Neighbours(indices, squared, recomputed)


def _by_products(
    x: Float[Tensor, "n K"],
    y: Rows,
    count: int,
    centre: Float[Tensor, "K"],
    support: int,
    progress: Progress,
) -> tuple[Int64[Tensor, "n c"], Float64[Tensor, "n"]]:
    """The rows of y with the least lower bounds, by index, and a bound that all others keep."""
    if count == y.shape[0]:
        for start in range(0, count, support):
            _require_finite("y", y[start : start + support])
        return torch.arange(count).repeat(len(x), 1), torch.full((len(x),), torch.inf, dtype=torch.float64)
    dtype = centre.dtype
    kept = 1 - 4 * (x.shape[1] ** 0.5 + 1) * torch.finfo(dtype).eps  # eps is two roundings
    least = torch.full((len(x), count), torch.inf, dtype=dtype)
    where = torch.zeros(len(x), count, dtype=torch.int64)
    squares = torch.zeros(len(x), dtype=torch.float64)
    for start in range(0, y.shape[0], support):
        block = y[start : start + support].to(dtype) - centre
        squares_y = _squares(block)
        if not squares_y.isfinite().all():  # only then is it worth looking at every number
            _require_finite("y", block)
        squares_y = (squares_y * kept).to(dtype)
        for first in range(0, len(x), QUERIES):
            rows = slice(first, first + QUERIES)
            queries = x[rows].to(dtype) - centre
            squares[rows] = _squares(queries) * kept
            bounds = torch.addmm(squares_y, queries, block.mT, alpha=-2)
            near = bounds.topk(min(count, len(block)), dim=1, largest=False)
            values = torch.cat([least[rows], near.values], dim=1)
            places = torch.cat([where[rows], near.indices + start], dim=1)
            least[rows], order = values.topk(count, dim=1, largest=False)
            where[rows] = places.gather(1, order)
        progress(min(1.0, (start + support) / y.shape[0]), "nearest neighbours")
    others = least[:, -1].double() + squares
    others = others.masked_fill(~others.isfinite(), -torch.inf)  # what overflowed bounds nothing
    return where.sort(dim=1).values, others


def _by_differences(
    x: Float[Tensor, "n K"], y: Rows, k: int, hidden: Int64[Tensor, "n"], support: int
) -> tuple[Int64[Tensor, "n k"], Float64[Tensor, "n k"]]:
    """The k nearest rows from the differences to all of y, which cancel nothing and are dear."""
    least = torch.full((len(x), k), torch.inf, dtype=torch.float64)
    where = torch.zeros(len(x), k, dtype=torch.int64)
    others = max(1, ELEMENTS // max(x.shape[1], 1))  # rows of y whose differences are held at a time
    for start in range(0, y.shape[0], support):
        block = y[start : start + support].double()
        step = max(1, others // len(block))
        for first in range(0, len(x), step):
            rows = slice(first, first + step)
            queries = x[rows].double()[:, None]
            squared = torch.cat([(queries - part).square().sum(-1) for part in block.split(others)], dim=1)
            _hide(squared, hidden[rows] - start)
            values = torch.cat([least[rows], squared], dim=1)
            places = torch.cat([where[rows], torch.arange(start, start + len(block)).expand(len(squared), -1)], dim=1)
            order = smallest(values, k)
            least[rows], where[rows] = values.gather(1, order), places.gather(1, order)
    return where, least


def smallest(values: Float[Tensor, "N M"], k: int) -> Int64[Tensor, "N k"]:
    """Columns of the k smallest numbers of each row, by (value, column); without sorting the whole row.

    >>> smallest(torch.tensor([[2.0, 1.0, 1.0, 0.0, 1.0]]), 3)
    tensor([[3, 1, 2]])
    """
    last = values.topk(k, dim=1, largest=False).values.amax(dim=1, keepdim=True)
    columns = torch.arange(values.shape[1]).expand_as(values)
    # All that lie below the k-th, then the first of those that equal it.
    keys = columns.masked_fill(values < last, -1).masked_fill(values > last, values.shape[1])
    chosen = keys.topk(k, dim=1, largest=False).indices.sort(dim=1).values
    return chosen.gather(1, values.gather(1, chosen).sort(dim=1, stable=True).indices)


def _measured(
    x: Float[Tensor, "n K"], y: Rows, candidates: Int64[Tensor, "n c"], support: int
) -> Float64[Tensor, "n c"]:
    """Squared distances to the candidates, from float64 differences; y is read once, in order."""
    squared = torch.zeros(candidates.shape, dtype=torch.float64)
    pairs = max(1, ELEMENTS // max(x.shape[1], 1))
    for start in range(0, y.shape[0], support):
        block = y[start : start + support]
        inside: Bool[Tensor, "n c"] = (candidates >= start) & (candidates < start + len(block))
        for some in inside.nonzero().split(pairs):
            query, place = some.unbind(1)
            difference = x[query].double() - block[candidates[query, place] - start]
            squared[query, place] = difference.square().sum(-1)
    return squared


def _require_finite(name: str, rows: Float[Tensor, "n K"]) -> None:
    bad = int((~rows.isfinite().all(1)).sum())
    require(bad == 0, "nearest", name, "be finite", f"{bad} rows that are not")


def _hide(values: Float[Tensor, "n m"], column: Int64[Tensor, "n"]) -> None:
    """Infinity where a row has its own column, if that is in this block."""
    rows = ((column >= 0) & (column < values.shape[1])).nonzero()[:, 0]
    values[rows, column[rows]] = torch.inf


def _squares(rows: Float[Tensor, "n K"]) -> Float64[Tensor, "n"]:
    """|row|^2 in float64, with no more than a few rows in it at a time."""
    step = max(1, ELEMENTS // max(rows.shape[1], 1))
    return torch.cat([part.double().square().sum(1) for part in rows.split(step)])


def _mean(y: Rows, support: int) -> Float64[Tensor, "K"]:
    """The mean of the rows."""
    total = torch.zeros(y.shape[1], dtype=torch.float64)
    for start in range(0, y.shape[0], support):
        for part in y[start : start + support].split(64):
            total += part.double().sum(0)
    return total / max(y.shape[0], 1)
