"""One depth is one draw: means and spreads over seeds or folds, and what they say of a label."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Literal

import torch
from jaxtyping import Bool, Float64, Int64
from torch import Tensor

from likewise.checks import require
from likewise.difficulty.results import Depths

EASY, MISLABELLED = "easy", "looks mislabelled"
WITHOUT_LABEL, AMBIGUOUS = "ambiguous without its label", "ambiguous"
QUADRANTS = (EASY, MISLABELLED, WITHOUT_LABEL, AMBIGUOUS)
Quadrant = Literal["easy", "looks mislabelled", "ambiguous without its label", "ambiguous"]


@dataclass(frozen=True, eq=False)
class Consistency:
    """Depths of the same examples in several runs. `rows` are the examples that were in any.

    spread: the standard deviation over runs (n - 1), NaN for an example of one run only. consensus: the class that most
    networks gave, and `share` how many of them did. rank_correlation: Spearman's between two runs, mean over all pairs
    of runs with shared examples; NaN if there are none, or if one depth is all there is.
    """

    rows: Int64[Tensor, "N"]
    runs: Int64[Tensor, "N"]
    mean: Float64[Tensor, "N"]
    spread: Float64[Tensor, "N"]
    consensus: Int64[Tensor, "N"]
    share: Float64[Tensor, "N"]
    rank_correlation: float

    def __repr__(self) -> str:
        several = self.spread[~self.spread.isnan()]
        mean = several.mean().item() if len(several) else float("nan")
        between = f"mean spread {mean:.2f}, rank correlation {self.rank_correlation:.2f}"
        return f"Consistency({len(self.rows):,} examples, {between})"


def depth_consistency(
    found: Sequence[Depths], *, of: Sequence[Int64[Tensor, "_"]] | None = None, defined_only: bool = False
) -> Consistency:
    """Mean and spread of every example's depth over seeds or folds.

    of: for each run, which examples of a common numbering its rows are, as of folds; their row numbers unless given.
    defined_only: leave undefined depths out, rather than count them as the number of probes.

    >>> from torch import tensor as one
    >>> rows, labels, predicted = one([0, 1]), one([1, 1]), one([1, 0])
    >>> runs = [Depths(rows, labels, predicted, 3, {3: one(d)}, probes=4, classes=2) for d in ([0, 3], [2, 3])]
    >>> found = depth_consistency(runs)
    >>> found.mean.tolist(), [round(spread, 3) for spread in found.spread.tolist()], found.share.tolist()
    ([1.0, 3.0], [1.414, 0.0], [1.0, 1.0])
    """
    where = "depth_consistency"
    require(len(found) > 0, where, "found", "hold a run", 0)
    places = [each.rows for each in found] if of is None else list(of)
    require(len(places) == len(found), where, "of", f"be one for each of {len(found)} runs", len(places))
    for each, rows in zip(found, places, strict=True):
        same = len(rows) == len(each) and len(rows.unique()) == len(rows)
        require(same, where, "of", f"hold {len(each)} different rows", f"{len(rows)}, {len(rows.unique())} different")
        alike = (each.probes, each.classes) == (found[0].probes, found[0].classes)
        rule = f"be of {found[0].probes} probes and {found[0].classes} classes, as the first"
        require(alike, where, "found", rule, f"{each.probes} and {each.classes}")
    rows = torch.cat(places).unique()
    depths = torch.full((len(found), len(rows)), torch.nan, dtype=torch.float64)
    votes = torch.zeros(len(rows), found[0].classes, dtype=torch.int64)
    for run, (each, place) in enumerate(zip(found, places, strict=True)):
        columns = torch.searchsorted(rows, place)
        depths[run, columns] = each.depth.double().masked_fill(each.undefined & defined_only, torch.nan)
        votes[columns, each.predicted] += 1
    counted = (~depths.isnan()).sum(dim=0)
    mean = depths.nanmean(dim=0)
    squares = (depths - mean).square().nansum(dim=0)
    pairs = [spearman(depths[[one, two]]) for one, two in combinations(range(len(found)), 2)]
    known = [pair for pair in pairs if pair == pair]
    return Consistency(
        rows,
        counted,
        mean,
        (squares / (counted - 1).masked_fill(counted < 2, 0)).sqrt().masked_fill(counted < 2, torch.nan),
        votes.argmax(dim=1),
        votes.amax(dim=1).double() / votes.sum(dim=1),
        sum(known) / len(known) if known else float("nan"),
    )


@dataclass(frozen=True, eq=False)
class Quadrants:
    """Examples by depth with and without their own label; `code[i]` counts `QUADRANTS`. A cut itself is still low."""

    code: Int64[Tensor, "N"]
    train_cut: float
    heldout_cut: float

    def of(self, name: Quadrant) -> Bool[Tensor, "N"]:
        """Which examples are in a quadrant."""
        require(name in QUADRANTS, "Quadrants.of", "name", f"be one of {', '.join(map(repr, QUADRANTS))}", repr(name))
        return self.code == QUADRANTS.index(name)

    @property
    def counts(self) -> dict[str, int]:
        """How many examples are in each quadrant."""
        return dict(zip(QUADRANTS, self.code.bincount(minlength=len(QUADRANTS)).tolist(), strict=True))

    def __str__(self) -> str:
        cuts = f"low: at most {self.train_cut:g} as training examples, {self.heldout_cut:g} held out"
        return "\n".join([cuts, *(f"{count:>8,}  {name}" for name, count in self.counts.items())])


def quadrants(
    train_depth: Float64[Tensor, "N"],
    heldout_depth: Float64[Tensor, "N"],
    *,
    train_cut: float | None = None,
    heldout_cut: float | None = None,
) -> Quadrants:
    """Four kinds of examples, by mean depth where they were training examples and where they were held out.

    Low and low is easy. Low held out and high in training looks like another class than its label says: it may be
    mislabelled. High held out and low in training is ambiguous until its label is given, high and high even then. The
    cuts are medians unless given.

    >>> low, high = 0.0, 5.0
    >>> found = quadrants(torch.tensor([low, high, low, high]).double(), torch.tensor([low, low, high, high]).double())
    >>> [QUADRANTS[code] for code in found.code.tolist()]
    ['easy', 'looks mislabelled', 'ambiguous without its label', 'ambiguous']

    Paper: Baldock et al., arXiv 2106.09647, whose cut points are not stated as far as we know.
    """
    require(
        len(train_depth) == len(heldout_depth) > 0, "quadrants", "depths", "be of the same examples", len(train_depth)
    )
    known = bool((train_depth.isfinite() & heldout_depth.isfinite()).all())
    require(known, "quadrants", "depths", "be known in both roles", "NaN", "Leave such examples out.")
    first = train_depth.median().item() if train_cut is None else train_cut
    second = heldout_depth.median().item() if heldout_cut is None else heldout_cut
    return Quadrants((train_depth > first).long() + 2 * (heldout_depth > second).long(), first, second)


def spearman(pair: Float64[Tensor, "2 N"]) -> float:
    """Pearson's correlation of mean ranks, over the examples that both have."""
    shared = pair[:, ~pair.isnan().any(dim=0)]
    if shared.shape[1] < 2:
        return float("nan")
    ranks = torch.stack([_mean_ranks(row) for row in shared])
    ranks -= ranks.mean(dim=1, keepdim=True)
    lengths = ranks.norm(dim=1).prod()
    return (ranks[0] @ ranks[1] / lengths).item() if lengths > 0 else float("nan")


def _mean_ranks(values: Float64[Tensor, "N"]) -> Float64[Tensor, "N"]:
    """1 for the smallest; equal values share the mean of their places."""
    _, which, counts = values.unique(return_inverse=True, return_counts=True)
    return (counts.cumsum(0) - (counts.double() - 1) / 2)[which]
