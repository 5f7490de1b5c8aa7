"""Early exit or a smaller model? Two curves on one clock, and the answer in words."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from likewise.checks import require, require_choice
from likewise.exits.study import Point

EXITS, SMALLER = "early exit", "a smaller model"
Clock = Literal["seconds", "macs"]


@dataclass(frozen=True)
class Answer:
    """Which of the two is better, and where. frontier: the points that nothing beats, each with its kind."""

    verdict: Literal["early exit", "a smaller model", "it depends"]
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


def exits_or_smaller(exits: Sequence[Point], smaller: Sequence[Point], *, by: Clock) -> Answer:
    """Compare points of early exit with those of networks trained alone, on the same data, device and batch.

    The whole network is one of the smaller ones, the largest. A point is worth having if no other is at least as
    accurate for less: the kind that owns all those points has won; else it depends on the accuracy that is wanted.
    """
    for name, points in (("exits", exits), ("smaller", smaller)):
        require(len(points) > 0, "exits_or_smaller", name, "not be empty", 0)
    kinds = [(SMALLER, point) for point in smaller] + [(EXITS, point) for point in exits]
    best = pareto([point for _, point in kinds], by=by)
    frontier = tuple(next(kind for kind in kinds if kind[1] is point) for point in best)
    owners = {kind for kind, _ in frontier}
    verdict = frontier[0][0] if len(owners) == 1 else "it depends"
    unit = "wall clock" if by == "seconds" else "multiply-adds"
    lines = [f"Early exit or a smaller model? By {unit}: {verdict}."]
    if verdict == "it depends":
        lines.append(_ranges(frontier))
    lines += [_against(point, exits, by) for point in pareto(smaller, by=by)]
    return Answer(verdict, by, frontier, " ".join(lines))  # ty: ignore[invalid-argument-type]


def _ranges(frontier: tuple[tuple[str, Point], ...]) -> str:
    """Up to which accuracy each kind is the cheaper one."""
    parts = []
    for number, (kind, point) in enumerate(frontier):
        if number + 1 == len(frontier) or frontier[number + 1][0] != kind:
            parts.append(f"up to {point.accuracy:.2%} {kind}")
    return f"Cheapest for an accuracy of {', '.join(parts)}."


def _against(point: Point, exits: Sequence[Point], by: Clock) -> str:
    """What early exit takes to be as accurate as a network."""
    good = [other for other in exits if other.accuracy >= point.accuracy]
    if not good:
        return f"Early exit never reaches the {point.accuracy:.2%} of {point.name}."
    ratio = min(_cost(other, by) for other in good) / _cost(point, by)
    much = f"{1 / ratio:.2f} times less" if ratio < 1 else f"{ratio:.2f} times as much"
    return f"To be as accurate as {point.name} ({point.accuracy:.2%}), early exit needs {much}."


def _cost(point: Point, by: Clock) -> float:
    if by == "macs":
        return point.macs
    require(point.seconds is not None, "pareto", "points", "have seconds", point.name, "Measure them with `clocked`.")
    assert point.seconds is not None
    return point.seconds
