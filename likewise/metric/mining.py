"""Which triplets to learn from, found without listing them.

With t the squared distance to a positive and d to a negative, a negative is hard (d <= t), semi-hard (t < d < t +
margin) or easy (d >= t + margin: its loss is 0). For every anchor the positives are sorted, never the negatives: a
negative falls into the bin of how many positives are closer than it, and running minima and sums over the bins say for
each positive what all negatives beyond it do. Time B^2 log n for n faces of an identity, memory B n and some blocks of
distances: of all B^2 up to a batch of 4,096, so that each is measured once for both of its ends.
"""

from collections.abc import Callable, Iterator
from typing import Literal, NamedTuple, Self

import torch
from jaxtyping import Bool, Float, Int32, Int64
from torch import Generator, Tensor
from torch.nn import functional

from likewise.checks import require_choice
from likewise.metric.triplet import Triplets, require_batch, require_margin
from likewise.similarity import ELEMENTS, distance_blocks

CELLS = 256
LEAST_SPREAD = 1e-30
NEVER = float("inf")
Choose = Literal["closest", "random"]
Fallback = Literal["skip", "farthest", "hardest"]
WHOLE = 1 << 24  # distances of a batch up to which all are held: 64 MB in float32
PART = ELEMENTS // 2  # distances that are worked on at a time: bins and steps have to find room beside them


class Shares(NamedTuple):
    """Of all triplets of a batch, the shares whose negative is hard, semi-hard and easy; and how many there are."""

    hard: float
    semi_hard: float
    easy: float
    count: int


class Block(NamedTuple):
    """Some anchors of a batch. `near` and `who` are their positives, closest first; a row with fewer ends in inf."""

    anchors: Int64[Tensor, "b"]
    d: Float[Tensor, "b B"]  # squared distances to negatives; inf where the column is none
    near: Float[Tensor, "b P"]
    who: Int64[Tensor, "b P"]

    @property
    def positive(self) -> Bool[Tensor, "b P"]:
        """Which of `near` are positives."""
        return self.near < NEVER

    @property
    def negative(self) -> Bool[Tensor, "b B"]:
        """Which columns are negatives."""
        return self.d < NEVER

    def slices(self) -> Iterator[slice]:
        """Its rows, as many at a time as are worked on."""
        step = max(1, PART // max(self.d.shape[1], 1))
        return (slice(start, start + step) for start in range(0, len(self.d), step))

    def parts(self) -> Iterator["Block"]:
        """Itself, as many anchors at a time as are worked on."""
        return (Block(*(field[rows] for field in self)) for rows in self.slices())


def blocks(
    embeddings: Float[Tensor, "B E"], labels: Int64[Tensor, "B"], *, elements: int | None = None
) -> Iterator[Block]:
    """The batch as a whole or, if it has more than `WHOLE` distances, about `elements` of them at a time."""
    elements = elements or (WHOLE if len(labels) ** 2 <= WHOLE else PART)
    kin, present = _kin(labels)
    everyone = torch.arange(len(labels), device=labels.device)
    for rows, d in distance_blocks(embeddings, embeddings, elements=elements):
        mine = present[rows] & (kin[rows] != everyone[rows, None])
        near, place = d.gather(1, kin[rows]).masked_fill_(~mine, NEVER).sort(1)
        who = kin[rows].gather(1, place)
        # The anchor itself, at inf, is never among the first n - 1 of its identity.
        yield Block(everyone[rows], d.scatter_(1, kin[rows], NEVER), near[:, :-1].contiguous(), who[:, :-1])


def _kin(labels: Int64[Tensor, "B"]) -> tuple[Int64[Tensor, "B n"], Bool[Tensor, "B n"]]:
    """The rows that share each row's label, itself among them; a row with fewer repeats one that is marked absent."""
    _, group, counts = torch.unique(labels, return_inverse=True, return_counts=True)
    order = group.argsort(stable=True)
    first = counts.cumsum(0) - counts
    step = torch.arange(int(counts.max()) if len(labels) else 0, device=labels.device)
    present = step < counts[group, None]
    return order[torch.where(present, first[group, None] + step, first[group, None])], present


def semi_hard_negatives(
    embeddings: Float[Tensor, "B E"],
    labels: Int64[Tensor, "B"],
    *,
    margin: float = 0.2,
    choose: Choose = "closest",
    fallback: Fallback = "skip",
    generator: Generator | None = None,
) -> Triplets:
    """For every ordered pair of an anchor and a positive, one semi-hard negative.

    `choose` "closest" takes the closest of them (of equally close ones the first row), "random" any with the same
    chance. A pair all of whose negatives beyond the positive are easy is left out, for its loss is 0. `fallback` says
    what a pair gets that has no negative beyond its positive: nothing, its farthest negative, or its closest.

    Paper: Schroff et al. 2015, section 3.2 and equation 4, which are silent about `choose` and `fallback`.

    >>> x = torch.tensor([[0.0], [0.5], [0.6], [3.0]])
    >>> [rows.tolist() for rows in semi_hard_negatives(x, torch.tensor([0, 0, 1, 1]), margin=0.2)]
    [[0], [1], [2]]
    """
    where = "semi_hard_negatives"
    require_margin(where, margin)
    require_choice(where, "choose", choose, ("closest", "random"))
    require_choice(where, "fallback", fallback, ("skip", "farthest", "hardest"))
    require_batch(where, embeddings, labels)
    found = []
    for block in blocks(embeddings, labels):
        if choose == "closest":
            column, d = _closest_beyond(block)
        else:
            column, d = _random_within(block, margin, generator)
        taken = block.positive & (d < block.near + margin)
        if fallback != "skip":
            alone = block.positive & ~_any_beyond(block) & block.negative.any(-1, keepdim=True)
            instead = _extreme(block, farthest=fallback == "farthest")[:, None]
            column, taken = torch.where(alone, instead, column), taken | alone
        row, place = taken.nonzero(as_tuple=True)
        found.append(torch.stack([block.anchors[row], block.who[row, place], column[row, place]]))
    return Triplets(*(torch.cat(found, dim=1) if found else labels.new_zeros(3, 0)))


def batch_hard(embeddings: Float[Tensor, "B E"], labels: Int64[Tensor, "B"]) -> Triplets:
    """For every anchor its farthest positive and its closest negative; anchors without either are left out.

    Paper: Hermans et al. 2017, equation 5. Schroff et al. warn that the hardest negatives may
    collapse a network early in its training.

    >>> x = torch.tensor([[0.0], [0.5], [0.6], [3.0]])
    >>> [rows.tolist() for rows in batch_hard(x, torch.tensor([0, 0, 1, 1]))]
    [[0, 1, 2, 3], [1, 0, 3, 2], [2, 2, 1, 1]]
    """
    require_batch("batch_hard", embeddings, labels)
    found = []
    for block in blocks(embeddings, labels):
        both = block.positive.any(-1) & block.negative.any(-1)
        if block.near.shape[1]:
            last = (block.positive.sum(-1, keepdim=True) - 1).clamp(min=0)
            farthest = block.who.gather(1, last)[:, 0]
            found.append(torch.stack([block.anchors, farthest, block.d.argmin(-1)])[:, both])
    return Triplets(*(torch.cat(found, dim=1) if found else labels.new_zeros(3, 0)))


def negative_shares(embeddings: Float[Tensor, "B E"], labels: Int64[Tensor, "B"], *, margin: float = 0.2) -> Shares:
    """How many of all triplets of a batch are hard, semi-hard and easy: what training has left to learn from.

    >>> negative_shares(torch.tensor([[0.0], [0.5], [0.6], [3.0]]), torch.tensor([0, 0, 1, 1]), margin=0.2)
    Shares(hard=0.375, semi_hard=0.125, easy=0.5, count=8)
    """
    require_margin("negative_shares", margin)
    require_batch("negative_shares", embeddings, labels)
    hard = active = count = 0
    for part in (part for block in blocks(embeddings, labels) for part in block.parts()):
        count += int((part.positive * part.negative.sum(-1, keepdim=True)).sum())
        hard += _counted(part, BucketedSearch.of(part.near).below(part.d))
        cleared = torch.maximum(part.near + margin, torch.nextafter(part.near, torch.full_like(part.near, NEVER)))
        active += _counted(part, BucketedSearch.of(cleared).reached(part.d))
    share = 1 / max(count, 1)
    return Shares(hard * share, (active - hard) * share, (count - active) * share, count)


def _counted(part: Block, bins: Int32[Tensor, "b B"]) -> int:
    """How many triplets have the positive k and a negative that lies in a bin up to k."""
    counts = part.anchors.new_zeros(len(bins), part.near.shape[1] + 1)
    counts.scatter_add_(1, bins, part.negative.long())
    return int((counts.cumsum(1)[:, :-1] * part.positive).sum())


def _closest_beyond(block: Block) -> tuple[Int64[Tensor, "b P"], Float[Tensor, "b P"]]:
    """For each positive the closest negative with d > t, and d; inf where there is none.

    A distance carries its column in the last bits of a float64: float32 leaves 29 of them free, and of float64 itself
    as many are taken as the columns need. In a batch of 2,048 two such distances count as equal from 41 bits on: the
    first row of them is taken, and the pair is left out if that one alone lies beyond the margin.
    """
    bounds, (count, width) = BucketedSearch.of(block.near), block.d.shape
    columns, low = torch.arange(width, device=block.d.device), (1 << (width - 1).bit_length()) - 1
    finite = torch.finfo(block.d.dtype).max  # inf has no bits to spare
    least = torch.full((count, block.near.shape[1] + 1), NEVER, dtype=torch.float64, device=block.d.device)
    for rows in block.slices():
        d = block.d[rows]
        keys = d.clamp(max=finite).double()
        keys.view(torch.int64).bitwise_and_(~low).bitwise_or_(columns)
        least[rows].scatter_reduce_(1, bounds.below(d, rows), keys, "amin")
    # The running minimum over the bins k + 1, k + 2, ..., the last of which holds the anchor itself at inf.
    best = least.flip(1).cummin(1).values.flip(1)[:, 1:].contiguous()
    column = best.view(torch.int64) & low
    return column, block.d.gather(1, column)


def _random_within(
    block: Block, margin: float, generator: Generator | None
) -> tuple[Int64[Tensor, "b P"], Float[Tensor, "b P"]]:
    """For each positive any one of its semi-hard negatives, and d; inf where there is none."""
    ordered, order = block.d.sort(-1)
    start = torch.searchsorted(ordered, block.near, right=True)
    width = torch.searchsorted(ordered, block.near + margin) - start
    step = torch.rand(start.shape, generator=generator, dtype=torch.float64, device=start.device)
    place = (start + (step * width).long()).clamp(max=block.d.shape[1] - 1)
    return order.gather(1, place), ordered.gather(1, place).masked_fill(width <= 0, NEVER)


def _any_beyond(block: Block) -> Bool[Tensor, "b P"]:
    """Whether any negative lies beyond each positive."""
    return block.d.masked_fill(~block.negative, -1).amax(-1, keepdim=True) > block.near


def _extreme(block: Block, *, farthest: bool) -> Int64[Tensor, "b"]:
    """The farthest or the closest negative of each anchor."""
    return block.d.masked_fill(~block.negative, -1).argmax(-1) if farthest else block.d.argmin(-1)


class BucketedSearch(NamedTuple):
    """Each row's bounds in ascending order, to hold numbers against; a bound of inf counts as none.

    A row's line from its least to its greatest bound is cut into equal cells, and a table says how many bounds lie in
    the cells before each. Subtraction and multiplication keep the order of what they round, so the cell of a number
    settles how it stands to the bounds of all others; among those of its own it is searched by halves. All numbers are
    halved at the same time: a processor that searches for one after the other guesses wrongly at every second turn
    which half is next, which takes longer than the search itself.

    >>> bounds = BucketedSearch.of(torch.tensor([[1.0, 2.0, 2.0, 5.0]]))
    >>> bounds.below(torch.tensor([[0.0, 2.0, 9.0]])).tolist(), bounds.reached(torch.tensor([[0.0, 2.0, 9.0]])).tolist()
    ([[0, 1, 4]], [[0, 3, 4]])
    """

    ordered: Float[Tensor, "b Q"]  # nan, which nothing passes, from the last bound on
    least: Float[Tensor, "b 1"]
    scale: Float[Tensor, "b 1"]  # cells for each unit of length
    before: Int32[Tensor, "b cells"]  # how many bounds the earlier cells hold
    fullest: int  # how many bounds the fullest cell holds

    @classmethod
    def of(cls, bounds: Float[Tensor, "b P"]) -> Self:
        """Bounds that were sorted."""
        bounds = functional.pad(bounds, (0, 1), value=NEVER)  # there may be none
        present = bounds < NEVER
        least = bounds[:, :1].masked_fill(~present[:, :1], 0)
        greatest = bounds.masked_fill(~present, -NEVER).amax(1, keepdim=True)
        scale = CELLS / (greatest - least).clamp(min=LEAST_SPREAD)
        held = torch.zeros(len(bounds), CELLS + 1, dtype=torch.int32, device=bounds.device)
        held.scatter_add_(1, _cells(bounds, least, scale).long(), present.int())
        fullest = int(held.max()) if len(held) else 0
        ordered = functional.pad(bounds.masked_fill(~present, torch.nan), (0, fullest), value=torch.nan)
        return cls(ordered, least, scale, held.cumsum(1, dtype=torch.int32) - held, fullest)

    def below(self, d: Float[Tensor, "n B"], rows: slice = slice(None)) -> Int32[Tensor, "n B"]:
        """How many bounds of its row are less than each number; `d` has some rows of these bounds."""
        return self._passed(d, rows, torch.lt)

    def reached(self, d: Float[Tensor, "n B"], rows: slice = slice(None)) -> Int32[Tensor, "n B"]:
        """How many bounds of its row are at most each number."""
        return self._passed(d, rows, torch.le)

    def _passed(self, d: Tensor, rows: slice, passes: Callable[..., Tensor]) -> Tensor:
        found = self.before[rows].gather(1, _cells(d, self.least[rows], self.scale[rows]))
        bound, step = torch.empty_like(d), torch.empty_like(found)
        half = 1 << self.fullest.bit_length() >> 1
        while half:
            torch.gather(self.ordered[rows, half - 1 :], 1, found, out=bound)
            passes(bound, d, out=step)
            found.add_(step, alpha=half)
            half //= 2
        return found


def _cells(d: Float[Tensor, "n B"], least: Float[Tensor, "n 1"], scale: Float[Tensor, "n 1"]) -> Int32[Tensor, "n B"]:
    """In which cell of its row each number lies; what lies outside, in the first or the last."""
    return d.sub(least).mul_(scale).clamp_(0, CELLS).int()
