"""All pairs of a set at a glance: how distances are spread, and the pairs that are wrong by most."""

import math
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor

from likewise.checks import require, require_count
from likewise.metric.rates import Roc
from likewise.metric.triplet import require_batch, require_rows
from likewise.similarity import ELEMENTS, distance_blocks, wide

BINS = 1024


@dataclass(frozen=True, eq=False)
class Extremes:
    """Pairs of rows and their squared distances, the worst first."""

    rows: Int64[Tensor, "n 2"]
    distances: Float[Tensor, "n"]


@dataclass(frozen=True, eq=False)
class Survey:
    """Numbers of pairs with a distance above the edge before and at most an edge; the first bin begins at 0."""

    edges: Float[Tensor, "k"]
    same: Int64[Tensor, "k"]
    different: Int64[Tensor, "k"]
    farthest_same: Extremes
    nearest_different: Extremes

    @property
    def roc(self) -> Roc:
        """The exact rates at every edge."""
        far, val = (counts.cumsum(0).double() / counts.sum() for counts in (self.different, self.same))
        return Roc(self.edges, far, val)


def survey(
    embeddings: Float[Tensor, "N E"],
    labels: Int64[Tensor, "N"],
    *,
    farthest: int = 12,
    nearest: int = 12,
    bins: int = BINS,
    elements: int = ELEMENTS,
) -> Survey:
    """Distances of all pairs counted in bins, the same pairs that are farthest apart, the others that are nearest.

    Every pair of two rows counts once. The width of a bin is a power of two, so that no distance is rounded across an
    edge, and so wide that the largest distance there can be, (2 max |x|)^2, is in one of them: with embeddings of
    length 1 and 1024 bins, 1/256. Distances come in blocks of `elements`; none are kept but those asked for.

    >>> found = survey(torch.tensor([[0.0], [1.0], [0.5]]), torch.tensor([0, 0, 1]), bins=4)
    >>> found.edges.tolist(), found.same.tolist(), found.different.tolist()
    ([1.0, 2.0, 3.0, 4.0], [1, 0, 0, 0], [2, 0, 0, 0])
    >>> found.farthest_same.rows.tolist(), found.nearest_different.distances.tolist()
    ([[0, 1]], [0.25, 0.25])
    """
    where = "survey"
    require_batch(where, embeddings, labels)
    for name, value, least in (("farthest", farthest, 0), ("nearest", nearest, 0), ("bins", bins, 1)):
        require_count(where, name, value, least=least)
    require(len(embeddings) > 1, where, "embeddings", "have at least two rows", len(embeddings))
    width = bin_width(embeddings, bins)
    position = torch.arange(len(labels), device=labels.device)
    far, near = _Kept(farthest, largest=True), _Kept(nearest, largest=False)
    every, same = torch.zeros(2, bins, dtype=torch.int64)
    for rows, d in distance_blocks(embeddings, embeddings, elements=elements):
        # Pairs to the left of the diagonal have been met in the blocks before.
        d, once = d[:, rows.start :], position[rows, None] < position[rows.start :]
        is_same = (labels[rows, None] == labels[rows.start :]) & once
        every += binned(d, width, bins, once)
        same += binned(d[is_same], width, bins)
        far.meet(d, is_same, rows.start)
        near.meet(d, once & ~is_same, rows.start)
    edges = torch.arange(1, bins + 1, dtype=wide(embeddings.dtype)) * width
    return Survey(edges, same, every - same, far.found(), near.found())


def shares_at(
    embeddings: Float[Tensor, "N E"],
    labels: Int64[Tensor, "N"],
    others: Float[Tensor, "N E"] | None = None,
    *,
    threshold: float,
) -> tuple[float, float]:
    """VAL and FAR of all pairs at a threshold; pairs are those of `all_pairs`.

    >>> shares_at(torch.tensor([[0.0], [1.0], [0.5]]), torch.tensor([0, 0, 1]), threshold=0.25)
    (0.0, 1.0)
    """
    require_batch("shares_at", embeddings, labels)
    if others is not None:
        require_rows("shares_at", "others", others)
    position = torch.arange(len(labels), device=labels.device)
    accepted, met = [0, 0], [0, 0]
    for rows, d in distance_blocks(embeddings, embeddings if others is None else others):
        once = position[rows, None] < position if others is None else position[rows, None] != position
        is_same = labels[rows, None] == labels
        for kind, chosen in enumerate((is_same & once, ~is_same & once)):
            met[kind] += int(chosen.sum())
            accepted[kind] += int((chosen & (d <= threshold)).sum())
    require(min(met) > 0, "shares_at", "labels", "give pairs of both kinds", f"{met[0]} same, {met[1]} other")
    return accepted[0] / met[0], accepted[1] / met[1]


def bin_width(embeddings: Float[Tensor, "N E"], bins: int) -> float:
    """The smallest power of two of which so many reach the largest distance there can be, rounding aside.

    >>> bin_width(torch.eye(3), 1024)
    0.00390625
    """
    reach = 4 * embeddings.detach().double().square().sum(-1).amax().item()
    return 2.0 ** math.ceil(math.log2(reach / bins * (1 - 1e-5))) if reach else 1.0


def binned(
    distances: Float[Tensor, "*n"], width: float, bins: int, counted: Bool[Tensor, "*n"] | None = None
) -> Int64[Tensor, "k"]:
    """How many distances lie in each bin, ] i w, (i + 1) w ]; 0 is in the first, and what is beyond in the last.

    >>> binned(torch.tensor([0.0, 0.25, 0.26, 9.0]), 0.25, 3).tolist()
    [2, 1, 1]
    """
    place = (distances / width).ceil_().clamp_(1, bins).to(torch.int32)
    if counted is not None:
        place *= counted  # the others go before the first bin; to pick out the counted ones takes far longer
    return torch.bincount(place.flatten(), minlength=bins + 1)[1:].cpu()


class _Kept:
    """The most extreme so many of the pairs met so far."""

    def __init__(self, count: int, *, largest: bool) -> None:
        self.count, self.sign = count, 1 if largest else -1
        self.values, self.pairs = torch.zeros(0), torch.zeros(0, 2, dtype=torch.int64)
        self.bound = -float("inf")

    def meet(self, d: Float[Tensor, "n M"], chosen: Bool[Tensor, "n M"], start: int) -> None:
        if not self.count:
            return
        pairs = (chosen & (self.sign * d >= self.bound)).nonzero()
        values = self.sign * d[pairs[:, 0], pairs[:, 1]]
        pairs += start
        self.values, self.pairs = torch.cat([self.values.to(values), values]), torch.cat([self.pairs.to(pairs), pairs])
        if len(self.values) > 2 * self.count:
            self.cut()

    def cut(self) -> None:
        # Stable, so that of equal pairs those stay that come first, whatever the blocks.
        order = self.values.sort(descending=True, stable=True).indices[: self.count]
        self.values, self.pairs = self.values[order], self.pairs[order]
        if len(self.values) == self.count:
            self.bound = self.values[-1].item()

    def found(self) -> Extremes:
        if self.count:
            self.cut()
        return Extremes(self.pairs.cpu(), (self.sign * self.values).cpu())
