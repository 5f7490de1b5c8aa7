"""Thresholds from the user's own people: the share of impostors or strangers they let in, with an interval."""

import math
import warnings
from bisect import bisect_right
from dataclasses import MISSING, asdict, dataclass, field, fields
from typing import Any, Self

import numpy
import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor

from likewise.checks import require
from likewise.metric import FewImpostorsWarning, all_pairs, bootstrap_threshold, quantised, restored, threshold_for
from likewise.metric.rates import allowed, require_shown
from likewise.similarity import distance_blocks
from likewise.text import length

FEW_PEOPLE = 30  # below, an interval by people is hardly one
MOST_ROWS = 20_000  # of which all pairs are taken
TAIL = 8  # times the wanted share: impostors that are kept exactly
POINTS = 200  # of a curve
MOST_POINTS = 10 * POINTS  # of one that is read
OUTGROWN = 1.2  # times the promised share of strangers
Curve = tuple[tuple[float, float], ...]  # (squared distance, share accepted at it), both increasing


@dataclass(frozen=True)
class VerifyThreshold:
    """A threshold for "is this X?": at most `far` of the impostor pairs lie at or below it.

    found: the share on the pairs themselves; low to high: where the true share lies with `confidence`, by a bootstrap
    over people. val: the share of same pairs that are accepted, with vectors in float and in 128-byte codes.
    """

    far: float
    threshold: float
    found: float
    low: float
    high: float
    confidence: float
    pairs: int
    people: int
    val: float | None = None
    val_codes: float | None = None
    curve: Curve = field(default=(), repr=False)
    warnings: tuple[str, ...] = ()

    def interval(self, fresh: int) -> tuple[float, float]:
        """Where the share among all pairs of so many other people will lie: both samples vary.

        The logarithm of the interval is widened by sqrt(1 + n / fresh), n the people of this one.
        """
        widened = math.sqrt(1 + self.people / fresh)
        centre = max(self.found, 1 / self.pairs)
        low, high = (centre * (max(end, 0.1 / self.pairs) / centre) ** widened for end in (self.low, self.high))
        return low, min(high, 1.0)

    def rate(self, squared: float) -> float:
        """The share of impostor pairs at or below a distance; never below what the pairs can show, 1 / pairs."""
        return max(_at(self.curve, squared), 1 / self.pairs)

    def unseen(self, squared: float) -> bool:
        """Whether no impostor pair was as near, so that the rate is only a bound."""
        return _at(self.curve, squared) == 0

    def limit(self, templates: int) -> float:
        """The threshold for an identity with so many templates, the nearest of which counts.

        Every template is one more chance of a false accept: each may take `far / templates`.
        """
        if templates <= 1:
            return self.threshold
        below = [squared for squared, share in self.curve if share <= self.far / templates]
        return min(below[-1] if below else -math.inf, self.threshold)

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self)

    @classmethod
    def from_json(cls, found: dict[str, Any]) -> Self:
        """What `to_json` gave."""
        return cls(**_plain(cls, found))


@dataclass(frozen=True)
class IdentifyThreshold:
    """A threshold for "who is this?" in a gallery of a given size: at most `fpir` of strangers are taken for anybody.

    FPIR is the false positive identification rate. found, low, high: the share of these strangers and its
    Clopper-Pearson interval. templates: in the gallery when it was found.
    """

    fpir: float
    threshold: float
    found: float
    low: float
    high: float
    confidence: float
    strangers: int
    templates: int
    curve: Curve = field(default=(), repr=False)
    warnings: tuple[str, ...] = ()

    def expected(self, templates: int) -> float:
        """The share of strangers accepted once the gallery has so many templates, if they are independent.

        1 - (1 - fpir)^(templates / templates then)
        """
        return -math.expm1(math.log1p(-self.fpir) * templates / self.templates)

    def outgrown(self, templates: int) -> str:
        """What to say when the gallery has grown by so much that the promise fails by a fifth; "" before."""
        expected = self.expected(templates)
        if expected <= OUTGROWN * self.fpir:
            return ""
        return (
            f"The identification threshold is for {length(self.templates)} templates and {self.fpir:.3g} of strangers; "
            f"with {length(templates)} it lets in about {expected:.3g}. Calibrate again with strangers."
        )

    def rate(self, squared: float) -> float:
        """The share of strangers whose nearest template is at or below a distance."""
        return max(_at(self.curve, squared), 1 / self.strangers)

    def unseen(self, squared: float) -> bool:
        """Whether no stranger was as near, so that the rate is only a bound."""
        return _at(self.curve, squared) == 0

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self)

    @classmethod
    def from_json(cls, found: dict[str, Any]) -> Self:
        """What `to_json` gave."""
        return cls(**_plain(cls, found))


@dataclass(frozen=True)
class Calibration:
    """The thresholds of a gallery; None where none is set."""

    verify: VerifyThreshold | None
    identify: IdentifyThreshold | None

    @property
    def warnings(self) -> tuple[str, ...]:
        """What limits them."""
        return tuple(text for each in (self.verify, self.identify) if each for text in each.warnings)


def odds(rate: float | None, *, unseen: bool = False) -> str:
    """A false accept rate in words. unseen: nobody was as near, and the rate is what so few could show.

    >>> odds(1e-3), odds(1 / 150, unseen=True), odds(None)
    ('false accept about 1 in 1,000', 'false accept at most about 1 in 150', 'false accept rate not known')
    """
    if rate is None:
        return "false accept rate not known"
    return f"false accept {'at most ' if unseen else ''}about 1 in {length(max(1, round(1 / rate)))}"


def verify_threshold(
    vectors: Float[Tensor, "N E"],
    labels: Int64[Tensor, "N"],
    *,
    codes: bool,
    unit: bool,
    far: float = 1e-3,
    confidence: float = 0.95,
    draws: int = 400,
    seed: int = 0,
) -> VerifyThreshold:
    """A threshold from all pairs of labelled people, with an interval from people drawn anew.

    codes: judge vectors as 128-byte codes, as they are stored. More than 20,000 rows are thinned by whole people.

    Paper: Schroff et al. 2015, section 4; Owen, The pigeonhole bootstrap, 2007.
    """
    where = "calibrate"
    require(0 < far < 1, where, "far", "be between 0 and 1", far)
    vectors, labels, notes = _thinned(vectors, labels, seed)
    judged = restored(quantised(vectors)) if codes else vectors
    names, labels = labels.unique(return_inverse=True)
    faces = labels.bincount(minlength=len(names))
    require(len(names) > 1, where, "pairs", "be of two people at least", len(names))
    total = (len(labels) ** 2 - int(faces.square().sum())) // 2
    notes += _shown(where, far, total, len(names))
    impostors, who, curve = _impostors(judged, labels, keep=min(total, TAIL * allowed(far, total) + 1000), total=total)
    drawn = bootstrap_threshold(impostors, who, faces, far=far, confidence=confidence, draws=draws, seed=seed)
    val = val_codes = None
    if bool((faces > 1).any()):
        val = None if codes and not unit else all_pairs(vectors, labels, far=far).val
        val_codes = all_pairs(judged if codes else restored(quantised(vectors)), labels, far=far).val
    found = drawn.threshold, drawn.far, drawn.far_low, drawn.far_high, confidence, total, len(names)
    return VerifyThreshold(far, *found, val, val_codes, curve, tuple(notes))


def listed_threshold(
    squared: Float[Tensor, "n"],
    same: Bool[Tensor, "n"],
    people: Int64[Tensor, "n 2"],
    *,
    far: float = 1e-3,
    confidence: float = 0.95,
    draws: int = 400,
    seed: int = 0,
) -> VerifyThreshold:
    """A threshold from listed pairs and the people on them."""
    require(0 < far < 1, "calibrate", "far", "be between 0 and 1", far)
    impostors = squared[~same]
    names = people[~same].unique()
    notes = _shown("calibrate", far, len(impostors), len(names))
    drawn = bootstrap_threshold(impostors, people[~same], far=far, confidence=confidence, draws=draws, seed=seed)
    val = float((squared[same] <= drawn.threshold).double().mean()) if bool(same.any()) else None
    curve = _curve(impostors.sort().values, len(impostors))
    found = drawn.threshold, drawn.far, drawn.far_low, drawn.far_high, confidence, len(impostors), len(names)
    return VerifyThreshold(far, *found, val, None, curve, tuple(notes))


def identify_threshold(
    squared: Float[Tensor, "m"], *, templates: int, fpir: float = 0.01, confidence: float = 0.95
) -> IdentifyThreshold:
    """A threshold from strangers' distances to their nearest template: an order statistic, by `threshold_for`.

    A verification threshold does not do: among 1,000 people it has 1,000 chances to accept a stranger.
    """
    require_strangers(len(squared), fpir)
    with warnings.catch_warnings(action="ignore", category=FewImpostorsWarning):
        found = threshold_for(squared, far=fpir, confidence=confidence)
    notes = []
    if found.impostors < 30 / fpir - 1e-9:
        wanted = length(math.ceil(30 / fpir - 1e-9))
        notes.append(f"{length(found.impostors)} strangers are fewer than 30 / FPIR, {wanted}: see the interval.")
    curve = _curve(squared.sort().values, len(squared))
    ends = found.far, found.low, found.high, confidence
    return IdentifyThreshold(fpir, found.threshold, *ends, found.impostors, templates, curve, tuple(notes))


def require_strangers(count: int, fpir: float) -> None:
    """Refuse fewer strangers than a rate can be shown with: 3 / fpir."""
    require(0 < fpir < 1, "calibrate", "fpir", "be between 0 and 1", fpir)
    least = math.ceil(3 / fpir - 1e-9)
    hint = f"{length(count)} show a rate of {3 / count:.2g} at least." if count > 3 else ""
    require(count >= least, "calibrate", "strangers", f"be at least 3 / fpir, {length(least)}", length(count), hint)


def _shown(where: str, far: float, pairs: int, people: int) -> list[str]:
    with warnings.catch_warnings(action="ignore", category=FewImpostorsWarning):
        notes = list(require_shown(where, far, pairs, see="the interval"))
    if people < FEW_PEOPLE:
        notes.append(f"{people} people are too few for an interval by people: {FEW_PEOPLE} at least.")
    return notes


def _thinned(vectors: Tensor, labels: Tensor, seed: int) -> tuple[Tensor, Tensor, list[str]]:
    """Whole people, drawn until the rows are enough."""
    if len(vectors) <= MOST_ROWS:
        return vectors, labels, []
    names, counts = labels.unique(return_counts=True)
    order = torch.randperm(len(names), generator=torch.Generator().manual_seed(seed))
    chosen = names[order[counts[order].cumsum(0) <= MOST_ROWS]]
    kept = torch.isin(labels, chosen)
    note = f"Of {length(len(names))} people {length(len(chosen))} were drawn, with {length(int(kept.sum()))} templates."
    return vectors[kept], labels[kept], [note]


def _impostors(vectors: Tensor, labels: Tensor, *, keep: int, total: int) -> tuple[Tensor, Tensor, Curve]:
    """The nearest different pairs with their people, and the curve of all of them."""
    values, rows, bound, held = [], [], math.inf, 0
    reach = 4 * float(vectors.double().square().sum(1).max()) * (1 + 1e-6) + 1e-12
    counts = torch.zeros(1024, dtype=torch.int64)
    position = torch.arange(len(labels))
    for part, d in distance_blocks(vectors, vectors):
        d, once = d[:, part.start :], position[part, None] < position[part.start :]
        other = once & (labels[part, None] != labels[part.start :])
        counts += torch.histc(d[other].double(), 1024, 0, reach).long()
        near = (other & (d <= bound)).nonzero()
        values.append(d[near[:, 0], near[:, 1]])
        rows.append(near + part.start)
        held += len(near)
        if held > 2 * keep:
            best = torch.cat(values).topk(keep, largest=False)
            values, rows = [best.values], [torch.cat(rows)[best.indices]]
            held, bound = keep, float(best.values.max())
    best = torch.cat(values).sort()
    d, pairs = best.values[:keep], torch.cat(rows)[best.indices[:keep]]
    tail = _curve(d, total)
    edges = numpy.linspace(0, reach, 1025)[1:]
    shares = counts.cumsum(0).numpy() / total
    rest = tuple(
        (float(e), float(s)) for e, s in zip(edges, shares, strict=True) if e > tail[-1][0] and s > tail[-1][1]
    )
    return d, labels[pairs], tail + rest[:: max(1, len(rest) // POINTS)]


def _curve(ordered: Tensor, total: int) -> Curve:
    """(distance, share at or below it) at ranks that are evenly spaced in their logarithm."""
    places = numpy.unique(numpy.geomspace(1, len(ordered), POINTS).round().astype(int)) - 1
    return tuple((float(ordered[place]), (int(place) + 1) / total) for place in places)


def _at(curve: Curve, squared: float) -> float:
    place = bisect_right(curve, squared, key=lambda point: point[0])
    return curve[place - 1][1] if place else 0.0


def _plain(kind: type[VerifyThreshold | IdentifyThreshold], found: dict[str, Any]) -> dict[str, Any]:
    """The fields of a threshold from JSON, which has lists for tuples; anything else is a ValueError."""
    plain: dict[str, Any] = {
        **found,
        "curve": tuple((float(d), float(share)) for d, share in found["curve"]),
        "warnings": tuple(map(str, found["warnings"])),
    }
    numbers = [plain[each.name] for each in fields(kind) if each.default is MISSING]
    numbers += [number for point in plain["curve"] for number in point]
    counts = [plain[name] for name in ("pairs", "people", "strangers", "templates") if name in plain]
    right = all(type(number) in (int, float) and math.isfinite(number) for number in numbers)
    right = right and all(type(count) is int and count > 0 for count in counts)
    if not right or len(plain["curve"]) > MOST_POINTS:
        raise ValueError("no threshold")
    return plain
