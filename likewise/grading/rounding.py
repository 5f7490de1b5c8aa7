"""Numbers that are near: a tolerance, a number of decimals, or digits that may be rounded."""

from fractions import Fraction

from flint import acb, arb, fmpq

from likewise.grading.balls import Point, Undefined, precise
from likewise.grading.numbers import value_of
from likewise.grading.outcomes import EQUAL, Outcome, World, depends, different, undecided
from likewise.grading.parsing import bare
from likewise.reading.expressions import Node


def _printed(node: Node) -> Fraction | None:
    """Half a unit of the last digit of a printed decimal, or nothing."""
    node = bare(node)
    if node.kind == "number" and "." in node.text:
        return Fraction(1, 2 * 10 ** len(node.text.partition(".")[2]))
    if node.kind in ("neg", "%"):
        half = _printed(node.parts[0])
        return half if half is None or node.kind == "neg" else half / 100
    if node.kind == "product":
        halves = [_printed(part) for part in node.parts]
        rest = [value_of(part) for part, half in zip(node.parts, halves, strict=True) if half is None]
        known = [half for half in halves if half is not None]
        if len(known) == 1 and all(value is not None for value in rest):
            for value in rest:
                known[0] *= abs(value or Fraction(1))
            return known[0]
    return None


def nearness(one: Node, other: Node, world: World) -> Outcome | None:
    """Numbers by tolerance or rounding, or decimals that may be rounded; None if this is not the question."""
    said = world.conventions
    halves = [_printed(node) for node in (one, other)]
    if said.tolerance is None and said.rounding is None and not any(halves):
        return None
    try:
        with precise():
            point = Point({}, base=said.log or "e", seconds=world.left)
            values = [point.value(node) for node in (one, other)]
            if any(isinstance(value, acb) for value in values):
                return None
            gap = (
                abs(arb(values[0]) - arb(values[1]))
                if not all(isinstance(v, fmpq) for v in values)
                else abs(values[0] - values[1])
            )
            if said.tolerance is not None:
                limit = fmpq(said.tolerance.numerator, said.tolerance.denominator)
                return _within(gap, limit, f"they differ by more than {said.tolerance}")
            if said.rounding is not None:
                limit = fmpq(1, 2) * fmpq(10) ** -said.rounding
                rounded = [_rounded(value, said.rounding) for value in values]
                if rounded[0] == rounded[1]:
                    return EQUAL
                if any(halves) and gap == limit:
                    return depends("if a half is rounded down")
                return different(f"they differ after rounding to {said.rounding} decimals")
            if gap == 0:
                return EQUAL
            half = max(half for half in halves if half is not None)
            limit = fmpq(half.numerator, half.denominator)
            if gap <= limit:
                digits = min(_decimals(node) for node in (one, other) if _printed(node) is not None)
                return depends(f"if {digits} decimals are meant as rounded")
    except Undefined:
        return None
    return None


def _decimals(node: Node) -> int:
    return min(len(part.text.partition(".")[2]) for part in node.walk() if part.kind == "number" and "." in part.text)


def _rounded(value: fmpq | arb, digits: int) -> int:
    scaled = value * fmpq(10) ** digits + fmpq(1, 2)
    if isinstance(scaled, fmpq):
        return int(scaled.floor())
    found = scaled.floor().unique_fmpz()
    if found is None:
        raise Undefined("a value at the edge of rounding")
    return int(found)


def _within(gap: fmpq | arb, limit: fmpq, why: str) -> Outcome:
    if gap <= limit:
        return EQUAL
    return different(why) if gap > limit else undecided("a value at the edge of the tolerance")
