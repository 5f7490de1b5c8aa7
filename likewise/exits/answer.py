"""Early exit or a smaller model? Two curves on one clock, and the answer in words."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from likewise.checks import require, require_choice
from likewise.exits.study import Point

EXITS, SMALLER, WHOLE = "early exit", "a smaller model", "the whole network"
NOISE = "no difference beyond the noise"
ERRORS = 2  # standard errors that a difference of accuracies must exceed
Clock = Literal["seconds", "macs"]


@dataclass(frozen=True)
class Answer:
    """Which of the two is better, and where. frontier: the points that nothing beats, each with its kind."""

    verdict: Literal[
        "early exit", "a smaller model", "the whole network", "it depends", "no difference beyond the noise"
    ]
    by: Clock
    frontier: tuple[tuple[str, Point], ...]
    text: str


def pareto(points: Sequence[Point], *, by: Clock) -> tuple[Point, ...]:
    """The points that no other beats in accuracy and cost, cheapest first; of equal ones the first.

    >>> some = [Point("a", 0.9, 5.0), Point("b", 0.8, 6.0), Point("c", 0.95, 7.0)]
    >>> [point.name for point in pareto(some, by="macs")]
    ['a', 'c']
    """
    require_choice("pareto", "by", by, ("seconds", "macs"))
    kept: list[Point] = []
    for point in sorted(points, key=lambda point: (_cost(point, by), -point.accuracy)):
        if not kept or point.accuracy > kept[-1].accuracy:
            kept.append(point)
    return tuple(kept)


def exits_or_smaller(
    exits: Sequence[Point], smaller: Sequence[Point], *, by: Clock, examples: int | None = None
) -> Answer:
    """Compare points of early exit with those of networks trained alone, on the same data, device and batch.

    The last of the networks is the whole one; if it is the only one, early exit is compared with it alone. A point is
    worth having if no other is at least as accurate for less: the kind that owns all those points has won, else it
    depends on the accuracy that is wanted. A policy by which no example left early is the whole network: what the clock
    says of it is noise, and it is not compared. examples: how many the accuracies rest on.

    Within the noise are times whose spans from the least to the median overlap, and accuracies that are less than two
    standard errors apart. If no point of early exit differs from one of the networks beyond it, that is the verdict.
    """
    for name, points in (("exits", exits), ("smaller", smaller)):
        require(len(points) > 0, "exits_or_smaller", name, "not be empty", 0)
    against = WHOLE if len(smaller) == 1 else SMALLER
    unit = "wall clock" if by == "seconds" else "multiply-adds"
    asked = f"{EXITS.capitalize()} or {against}? By {unit}: "
    leaving = [point for point in exits if point.early != 0]
    if not leaving:
        text = f"{asked}{NOISE}. No example left early, so early exit was {WHOLE}."
        return Answer(NOISE, by, ((WHOLE, smaller[-1]),), text)
    kinds = [(WHOLE if point is smaller[-1] else SMALLER, point) for point in smaller]
    kinds += [(EXITS, point) for point in leaving]
    best = pareto([point for _, point in kinds], by=by)
    frontier = tuple(next(kind for kind in kinds if kind[1] is point) for point in best)
    clear = [_apart(one, other, examples) != 0 or _cheaper(one, other, by) != 0 for one in leaving for other in smaller]
    verdict = _verdict({kind for kind, _ in frontier}) if any(clear) else NOISE
    lines = [f"{asked}{verdict}."]
    if verdict == "it depends":
        lines.append(_ranges(frontier))
    lines += [_against(point, leaving, by, examples) for point in pareto(smaller, by=by)]
    return Answer(verdict, by, frontier, " ".join(lines))  # ty: ignore[invalid-argument-type]


def _verdict(owners: set[str]) -> str:
    """The kind that owns the frontier; networks trained alone are one kind, whose best may be the whole one."""
    if owners == {WHOLE}:
        return WHOLE
    return "it depends" if EXITS in owners and len(owners) > 1 else EXITS if EXITS in owners else SMALLER


def _apart(one: Point, other: Point, examples: int | None) -> int:
    """1 if one is more accurate beyond the noise, -1 if the other is, 0 if that cannot be said."""
    error = ERRORS * _error(one, other, examples)
    difference = one.accuracy - other.accuracy
    return 0 if abs(difference) <= error else 1 if difference > 0 else -1


def _error(one: Point, other: Point, examples: int | None) -> float:
    """The standard error of a difference of independent accuracies, sqrt((p (1 - p) + q (1 - q)) / n)."""
    variance = sum(point.accuracy * (1 - point.accuracy) for point in (one, other))
    return 0.0 if examples is None else (variance / examples) ** 0.5


def _cheaper(one: Point, other: Point, by: Clock) -> int:
    """1 if one costs less beyond the noise, -1 if the other does, 0 if that cannot be said."""
    if by == "macs":
        return (one.macs < other.macs) - (one.macs > other.macs)
    spans = [(_cost(point, by), point.middle or _cost(point, by)) for point in (one, other)]
    return (spans[0][1] < spans[1][0]) - (spans[0][0] > spans[1][1])


def _ranges(frontier: tuple[tuple[str, Point], ...]) -> str:
    """Up to which accuracy each kind is the cheaper one."""
    parts = []
    for number, (kind, point) in enumerate(frontier):
        if number + 1 == len(frontier) or frontier[number + 1][0] != kind:
            parts.append(f"up to {point.accuracy:.2%} {kind}")
    return f"Cheapest for an accuracy of {', '.join(parts)}."


def _against(point: Point, exits: Sequence[Point], by: Clock, examples: int | None) -> str:
    """What early exit takes to be as accurate as a network, or as accurate within the noise."""
    good = [other for other in exits if other.accuracy >= point.accuracy]
    near = [other for other in exits if _apart(other, point, examples) >= 0]
    if not near:
        return f"Early exit never reaches the {point.accuracy:.2%} of {point.name}."
    found = min(good or near, key=lambda other: _cost(other, by))
    ratio = _cost(found, by) / _cost(point, by)
    much = f"{1 / ratio:.2f} times less" if ratio < 1 else f"{ratio:.2f} times as much"
    if _cheaper(found, point, by) == 0 and ratio != 1:
        much += ", which is within the noise of the clock"
    if good:
        return f"To be as accurate as {point.name} ({point.accuracy:.2%}), early exit needs {much}."
    error = f"within the noise of {100 * _error(found, point, examples):.1f} points (standard error)"
    return f"Early exit reaches {found.accuracy:.2%}, {error} of {point.name} ({point.accuracy:.2%}), and needs {much}."


def _cost(point: Point, by: Clock) -> float:
    if by == "macs":
        return point.macs
    require(point.seconds is not None, "pareto", "points", "have seconds", point.name, "Measure them with `clocked`.")
    assert point.seconds is not None
    return point.seconds
