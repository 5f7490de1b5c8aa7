"""Embeddings and a protocol -> rates."""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from likewise.checks import require
from likewise.evaluation.protocols import Everyone, Listed
from likewise.metric import Fold, all_pairs, verification
from likewise.metric.all_pairs import AllPairs
from likewise.metric.rates import REFUSED, Roc, tightest
from likewise.metric.triplet import pair_distances
from likewise.stats import mean_and_error

FARS = (1e-3, 1e-2, 1e-1)  # the paper's, and what smaller sets can show


@dataclass(frozen=True)
class Rates:
    """How well distances tell people apart; thresholds are squared distances, `_error` the error of a mean over folds.

    val: the share of same pairs that are accepted where at most a share `far` of the others is, as a mean over folds or
    splits that each have their own threshold; far_found: the FAR that was met there. limit: the largest threshold that
    keeps that FAR on all pairs. threshold: the one to use, which accepts the same pairs that `limit` does and, with
    them, as few others as it can; val_whole: the VAL of all judged pairs at it. same, different: how many pairs are
    judged.
    """

    far: float
    val: float
    val_error: float
    far_found: float
    threshold: float
    limit: float
    val_whole: float
    accuracy: float
    accuracy_error: float
    accuracy_threshold: float
    same: int
    different: int
    folds: tuple[Fold, ...]


def judge(
    vectors: Float[Tensor, "N E"],
    labels: Int64[Tensor, "N"],
    others: Float[Tensor, "N E"] | None = None,
    *,
    protocol: Listed | Everyone,
    far: float | None = None,
) -> Rates:
    """Accuracy and VAL at a FAR under a protocol; its rows are rows of `vectors`.

    With `others`, other embeddings of the same images (shifted ones, or another network's), the first image of a pair
    is taken from `vectors` and the second from `others`. far: unless given, the smallest of 0.001, 0.01 and 0.1 that
    the number of pairs can show.

    For all pairs VAL is that of the paper: of each split, at the threshold of that split; accuracy is that of pairs
    drawn from the splits, each judged by the others.

    >>> vectors, labels = torch.tensor([[0.0], [0.1], [1.0], [1.2]]), torch.tensor([0, 0, 1, 1])
    >>> found = judge(vectors, labels, protocol=Everyone(), far=0.75)
    >>> found.val, round(found.limit, 6), found.same, found.different  # 0.01, 0.04 against 0.81, 1, 1.21, 1.44
    (1.0, 1.44, 2, 4)
    >>> round(found.threshold, 6)  # midway from 0.04 to 0.81
    0.425
    """
    return rates_and_curve(vectors, labels, others, protocol=protocol, far=far)[0]


def rates_and_curve(
    vectors: Float[Tensor, "N E"],
    labels: Int64[Tensor, "N"],
    others: Float[Tensor, "N E"] | None = None,
    *,
    protocol: Listed | Everyone,
    far: float | None = None,
) -> tuple[Rates, Roc]:
    """As `judge`, and the curve: of the judged pairs, or of all pairs up to the FAR."""
    far = supported_far(labels, protocol=protocol) if far is None else far
    if isinstance(protocol, Listed):
        return _listed(pair_distances_of(vectors, others, protocol), protocol, far)
    return _everyone(vectors, labels, others, protocol, far)


def pair_distances_of(
    vectors: Float[Tensor, "N E"], others: Float[Tensor, "N E"] | None, pairs: Listed
) -> Float[Tensor, "n"]:
    """The squared distance of every listed pair."""
    both = vectors if others is None else torch.cat([vectors, others])
    return pair_distances(both, pairs.rows[:, 0], pairs.rows[:, 1] + (0 if others is None else len(vectors)))


def supported_far(labels: Int64[Tensor, "N"], *, protocol: Listed | Everyone) -> float:
    """The smallest of FARS that rests on at least three errors, or would.

    >>> supported_far(torch.arange(40) // 2, protocol=Everyone(splits=2))  # 180 different pairs in each split
    0.1
    """
    if isinstance(protocol, Listed):
        impostors = int((protocol.calibrating & ~protocol.same).sum())
    else:
        split = protocol.deal(labels)
        impostors = min(_different(labels[split == name]) for name in split.unique().tolist())
    found = next((far for far in FARS if impostors * far >= REFUSED * (1 - 1e-9)), None)
    rule = f"give at least {REFUSED / FARS[-1]:.0f} different pairs (in each split), or far be given"
    require(found is not None, "supported_far", "labels", rule, impostors)
    return found or FARS[-1]


def _different(labels: Int64[Tensor, "N"]) -> int:
    _, sizes = labels.unique(return_counts=True)
    return (len(labels) ** 2 - int(sizes.square().sum())) // 2


def _listed(distances: Float[Tensor, "n"], pairs: Listed, far: float) -> tuple[Rates, Roc]:
    found = verification(distances, pairs.same, far=far, folds=pairs.folds)
    roc, mine = found.roc, pairs.same[pairs.judged]
    if pairs.fold is None:
        accuracy, val = (found.accuracy, found.accuracy_error), (found.val, found.val_error)
        threshold, limit, best = found.threshold, found.limit, found.accuracy_threshold
        met, by_fold = found.far_found, found.by_fold
    else:
        by_fold = tuple(each for each in found.by_fold if each.fold == pairs.fold)
        [one] = by_fold
        accuracy, val = (one.accuracy, torch.nan), (one.val, torch.nan)
        limit, best, met = one.threshold, one.accuracy_threshold, one.far_found
        others = pairs.calibrating
        threshold = tightest(distances[others & pairs.same], distances[others & ~pairs.same], limit)
        roc = verification(distances[pairs.judged], mine, far=far, folds=1).roc
    counts = int(mine.sum()), int((~mine).sum())
    whole = (distances[pairs.judged & pairs.same] <= threshold).double().mean().item()
    return Rates(far, *val, met, threshold, limit, whole, *accuracy, best, *counts, by_fold), roc


def _everyone(
    vectors: Float[Tensor, "N E"],
    labels: Int64[Tensor, "N"],
    others: Float[Tensor, "N E"] | None,
    protocol: Everyone,
    far: float,
) -> tuple[Rates, Roc]:
    split = protocol.deal(labels)
    parts: list[AllPairs] = []
    for name in split.unique().tolist():
        mine = split == name
        parts.append(all_pairs(vectors[mine], labels[mine], None if others is None else others[mine], far=far))
    whole = all_pairs(vectors, labels, others, far=far) if len(parts) > 1 else parts[0]
    drawn = protocol.draw(labels)
    shares = verification(pair_distances_of(vectors, others, drawn), drawn.same, far=far, folds=drawn.folds)
    rates = Rates(
        far,
        *mean_and_error([part.val for part in parts]),
        mean_and_error([part.roc.far[-1].item() for part in parts])[0],
        whole.threshold,
        whole.limit,
        whole.val,
        shares.accuracy,
        shares.accuracy_error,
        shares.accuracy_threshold,
        whole.same,
        whole.different,
        shares.by_fold,
    )
    return rates, whole.roc
