"""How well distances tell same from different: VAL at a FAR, accuracy, ROC, and thresholds with what supports them.

A pair is accepted when its distance is at most the threshold. VAL is the share of accepted among pairs that show the
same person, FAR among pairs that do not.
"""

import math
import warnings
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor

from likewise.checks import require, require_count
from likewise.similarity import wide
from likewise.stats import clopper_pearson, mean_and_error

FOLDS = 10  # of LFW
REFUSED, DOUBTFUL = 3, 30  # impostor pairs times FAR: below the first nothing is shown, below the second little


class FewImpostorsWarning(UserWarning):
    """A threshold rests on so few pairs that its FAR is known within a factor only."""


@dataclass(frozen=True)
class Roc:
    """VAL against FAR, one point for every distinct distance, from nothing accepted to everything."""

    threshold: Float[Tensor, "n"]
    far: Float[Tensor, "n"]
    val: Float[Tensor, "n"]

    @property
    def area(self) -> float:
        """The chance that a same pair is closer than a different one, ties counted half."""
        return torch.trapezoid(self.val, self.far).item()

    def thinned(self, points: int = 400) -> "Roc":
        """The curve by fewer points, evenly spaced in the logarithm of FAR; the first and the last are kept."""
        if len(self.far) <= points:
            return self
        place = self.far.clamp(min=0.5 * self.far[self.far > 0].min()).log()
        cell = ((place - place[0]) / (place[-1] - place[0]) * (points - 2)).long()
        last = (cell[1:] != cell[:-1]).nonzero()[:, 0].tolist()  # of each cell the last, where VAL is highest
        keep = sorted({0, *last, len(self.far) - 1})
        return Roc(self.threshold[keep], self.far[keep], self.val[keep])


@dataclass(frozen=True)
class Fold:
    """One fold, judged by two thresholds that were found on all the others."""

    fold: int
    accuracy: float
    accuracy_threshold: float
    far_found: float
    val: float
    threshold: float


@dataclass(frozen=True)
class Verification:
    """Means over folds; `_error` is the standard error of the mean, sd / sqrt(folds), nan for one fold.

    Three thresholds are found on all pairs: `limit` is the largest with FAR <= `far`; `threshold` has the VAL of
    `limit` and accepts the fewest different pairs that this allows; `accuracy_threshold` has the best accuracy.
    """

    accuracy: float
    accuracy_error: float
    accuracy_threshold: float
    far: float
    far_found: float
    val: float
    val_error: float
    threshold: float
    limit: float
    folds: int
    roc: Roc
    by_fold: tuple[Fold, ...]


@dataclass(frozen=True)
class Threshold:
    """A threshold and its FAR on the pairs it was found on: `low` to `high` is the Clopper-Pearson interval."""

    threshold: float
    wanted: float
    far: float
    low: float
    high: float
    impostors: int
    accepted: int


def verification(
    distances: Float[Tensor, "n"],
    same: Bool[Tensor, "n"],
    *,
    far: float = 1e-3,
    folds: Int64[Tensor, "n"] | int | None = None,
) -> Verification:
    """Accuracy and VAL at a FAR of listed pairs, each fold judged by thresholds found on all the others.

    Accuracy takes the threshold that is best on the other folds (the middle of the widest gap between distances, if
    several are), VAL the largest with FAR <= `far` on them; `far_found` is the FAR that this gives on the fold itself.
    `folds` is each pair's fold, as LFW's lists give it, or their number: same and different pairs
    are then dealt out in turn. None means ten, or as many as there are pairs of the rarer kind. With one fold
    thresholds are judged on the pairs they were found on, which flatters.

    Paper: Huang et al. 2007, View 2 of LFW; Schroff et al. 2015, section 4, for VAL and FAR.
    Differs: Schroff et al. find the threshold for a FAR on the split it is judged on: folds=1 for each split.

    >>> found = verification(torch.tensor([0.1, 0.3, 0.2, 0.9]), torch.tensor([True, True, False, False]), folds=1)
    >>> found.accuracy, found.val, round(found.limit, 6), round(found.threshold, 6), found.roc.area
    (0.75, 0.5, 0.2, 0.15, 0.75)
    """
    where = "verification"
    distances = _checked(where, "distances", distances)
    require(same.dtype == torch.bool, where, "same", "be true or false for each pair", same.dtype)
    require(same.shape == distances.shape, where, "same", f"have one entry for each of {len(distances)}", len(same))
    _require_rate(where, "far", far)
    require(0 < int(same.sum()) < len(same), where, "same", "have pairs of both kinds", f"{int(same.sum())} same")
    fold = _dealt(where, same, folds)
    names = fold.unique().tolist()
    judged = []
    for name in names:
        mine = fold == name
        rest = ~mine if len(names) > 1 else mine
        kinds = same[mine].unique().numel(), same[rest].unique().numel()
        require(kinds == (2, 2), where, "folds", "each hold pairs of both kinds", f"none in fold {name} or its rest")
        best = _best_threshold(distances[rest], same[rest])
        limit = _threshold(distances[rest][~same[rest]], far)
        judged.append(_judged(name, distances[mine], same[mine], best, limit))
    accuracy, accuracy_error = mean_and_error([each.accuracy for each in judged])
    val, val_error = mean_and_error([each.val for each in judged])
    limit = _threshold(distances[~same], far)
    return Verification(
        accuracy=accuracy,
        accuracy_error=accuracy_error,
        accuracy_threshold=_best_threshold(distances, same),
        far=far,
        far_found=mean_and_error([each.far_found for each in judged])[0],
        val=val,
        val_error=val_error,
        threshold=tightest(distances[same], distances[~same], limit),
        limit=limit,
        folds=len(names),
        roc=_roc(distances, same),
        by_fold=tuple(judged),
    )


def _judged(fold: int, distances: Float[Tensor, "n"], same: Bool[Tensor, "n"], best: float, limit: float) -> Fold:
    """A fold under the threshold for accuracy and the one for a FAR."""
    right = ((distances <= best) == same).double().mean().item()
    found, val = ((distances[kind] <= limit).double().mean().item() for kind in (~same, same))
    return Fold(fold, right, best, found, val, limit)


def threshold_for(impostors: Float[Tensor, "m"], *, far: float, confidence: float = 0.95) -> Threshold:
    """The largest threshold that accepts at most a share `far` of your own impostor distances, and what that shows.

    `low` to `high` holds the true FAR with the confidence, if the pairs are independent; pairs that share images say
    less. Zero errors in m pairs prove no more than FAR < 3 / m: fewer than 3 / far pairs are refused, and fewer than
    30 / far warned of.

    >>> found = threshold_for(torch.arange(1.0, 10001.0), far=0.01)
    >>> found.accepted, found.far, round(found.low, 5), round(found.high, 5)
    (100, 0.01, 0.00814, 0.01215)
    """
    where = "threshold_for"
    impostors = _checked(where, "impostors", impostors)
    _require_rate(where, "far", far)
    _require_rate(where, "confidence", confidence)
    count, needed = len(impostors), math.ceil(REFUSED / far - 1e-9)
    hint = f"With {count} a FAR down to {REFUSED / max(count, 1):.2g} can be asked for."
    require(count >= needed, where, "impostors", f"be at least 3 / far, {needed}", count, hint)
    if count < DOUBTFUL / far - 1e-9:
        text = (
            f"{where}: {count:,} impostor distances are fewer than 30 / far, {DOUBTFUL / far:,.0f}; see low and high."
        )
        warnings.warn(text, FewImpostorsWarning, stacklevel=2)
    threshold = _threshold(impostors, far)
    accepted = int((impostors <= threshold).sum())
    low, high = clopper_pearson(accepted=accepted, total=count, confidence=confidence)
    return Threshold(threshold, far, accepted / count, low, high, count, accepted)


def require_shown(where: str, far: float, different: int, *, see: str, stacklevel: int = 3) -> tuple[str, ...]:
    """Refuse a FAR that so many different pairs cannot show, by the rule of `threshold_for`; warn if they hardly can.

    see: what shows how little is known. The warning is given back too, for the result that it is about.

    >>> require_shown("evaluate", 0.001, 36, see="the interval")
    Traceback (most recent call last):
        ...
    ValueError: evaluate: far must be at least 3 / 36 different pairs; got 0.001.
    """
    shown = different * far >= REFUSED * (1 - 1e-9)
    require(shown, where, "far", f"be at least 3 / {different:,} different pairs", far)
    if different >= DOUBTFUL / far * (1 - 1e-9):
        return ()
    text = f"{where}: {different:,} different pairs are fewer than 30 / far, {DOUBTFUL / far:,.0f}; see {see}."
    warnings.warn(text, FewImpostorsWarning, stacklevel=stacklevel)
    return (text,)


def tightened(*, fpir: float, gallery: int) -> float:
    """The FAR per comparison, 1 - (1 - FPIR)^(1 / N), that keeps the chance of any false match in a gallery of N.

    FPIR is the share of strangers who are taken for anyone. It assumes N independent comparisons: check with strangers.

    >>> f"{tightened(fpir=0.01, gallery=1000):.4g}"
    '1.005e-05'
    """
    _require_rate("tightened", "fpir", fpir)
    require_count("tightened", "gallery", gallery)
    return -math.expm1(math.log1p(-fpir) / gallery)


def allowed(far: float, total: int) -> int:
    """How many of a number of pairs may be accepted; 0.001 of 3,000 is 3, however 0.001 is rounded."""
    return math.floor(far * total * (1 + 1e-12))


def below(distance: Tensor) -> float:
    """The largest number below a distance, in the distance's own dtype: comparing there must not round it up."""
    return torch.nextafter(distance, torch.full_like(distance, -math.inf)).item()


def _threshold(impostors: Float[Tensor, "m"], far: float) -> float:
    """The largest threshold that accepts at most a share of the distances."""
    return below(impostors.kthvalue(allowed(far, len(impostors)) + 1).values)


def tightest(same: Float[Tensor, "n"], different: Float[Tensor, "m"], limit: float) -> float:
    """The threshold that accepts the same pairs that `limit` does and, with them, the fewest different ones.

    It lies midway between the last accepted same pair and the next different one. Where no same pair is accepted it is
    `limit`.

    >>> tightest(torch.tensor([1.0, 2.0]), torch.tensor([4.0, 7.0, 8.0]), limit=7.5)  # 7.5 accepts two wrong pairs
    3.0
    """
    accepted = same[same <= limit]
    if not len(accepted):
        return limit
    last = accepted.max()
    return _midway(last, different[different > last].min())


def _midway(low: Tensor, high: Tensor) -> float:
    """The middle of two distances in their dtype, below the higher one."""
    middle = low + (high - low) / 2
    return (middle if middle < high else low).item()


def _steps(distances: Tensor, same: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Distinct distances, and how many same and different pairs lie at or below each."""
    values, group = distances.unique(return_inverse=True)
    accepted, wrong = (torch.bincount(group[kind], minlength=len(values)).cumsum(0) for kind in (same, ~same))
    return values, accepted, wrong


def _best_threshold(distances: Float[Tensor, "n"], same: Bool[Tensor, "n"]) -> float:
    """The threshold with the most right answers: midway between distances, below all of them or at the last.

    Of equally good ones it is the middle of the widest gap, which leaves most room on both sides for pairs to come.
    """
    values, accepted, wrong = _steps(distances, same)
    right = torch.cat([wrong.new_zeros(1), accepted - wrong])
    gaps = torch.cat([values.new_zeros(1), values.diff(), values.new_zeros(1)])  # one on either side is not measured
    place = int(gaps.masked_fill(right < right.max(), -1).argmax())
    if place == 0:
        return below(values[0])
    if place == len(values):
        return values[-1].item()
    return _midway(values[place - 1], values[place])


def _roc(distances: Float[Tensor, "n"], same: Bool[Tensor, "n"]) -> Roc:
    values, accepted, wrong = _steps(distances, same)
    start = values.new_tensor([below(values[0])])
    rates = [torch.cat([counts.new_zeros(1), counts]).double() / counts[-1] for counts in (wrong, accepted)]
    return Roc(torch.cat([start, values]), *rates)


def _dealt(where: str, same: Bool[Tensor, "n"], folds: Int64[Tensor, "n"] | int | None) -> Int64[Tensor, "n"]:
    """Each pair's fold."""
    if isinstance(folds, Tensor):
        require(folds.shape == same.shape, where, "folds", f"have one entry for each of {len(same)}", len(folds))
        return folds
    rarer = int(min(same.sum(), (~same).sum()))
    count = min(FOLDS, rarer) if folds is None else folds
    require_count(where, "folds", count)
    require(count <= rarer, where, "folds", f"be at most the {rarer} pairs of the rarer kind", count)
    turn = torch.where(same, same.cumsum(0), (~same).cumsum(0)) - 1
    return turn % count


def _checked(where: str, name: str, distances: Tensor) -> Tensor:
    """Distances as numbers to compare by: finite ones, float32 at least."""
    require(distances.is_floating_point(), where, name, "be floating-point numbers", distances.dtype)
    distances = distances.detach().to(wide(distances.dtype))
    bad = int((~distances.isfinite()).sum())
    require(bad == 0, where, name, "be finite", f"{bad} that are not")
    return distances


def _require_rate(where: str, name: str, rate: float) -> None:
    require(0 < rate < 1, where, name, "be between 0 and 1", rate)
