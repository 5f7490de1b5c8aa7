"""Where one side of an identity is undefined and the other is not: such a point of the stated set refutes it.

x*(x - 5)/(x - 5) == x is false on R, for it says nothing at x = 5; log(x^2) == 2*log(x) is false at x = -1. What may
be undefined is collected from each side; where both sides have the same doubts they are undefined together.
"""

import time
from collections.abc import Iterator, Mapping
from fractions import Fraction
from itertools import islice
from random import Random

from likewise.claims.algebra.coordinates import Coordinates
from likewise.claims.algebra.domains import constant, one_sided
from likewise.claims.algebra.points import levels, ordered, points, sizes
from likewise.claims.algebra.questions import Question, question
from likewise.claims.algebra.witnesses import Witness, admissible, array_text
from likewise.claims.arrays import Array
from likewise.claims.language.claim import Claim
from likewise.claims.language.tree import Call, Node, Number
from likewise.claims.verdict import Finding, Undecided

LENGTHS, POINTS, LINES = 4, 60, 12  # tried: choices of sizes, lattice points of each, lines through random points
BUDGET_SHARE = 0.2  # of the budget


def decide(claim: Claim) -> Finding | None:
    """Refuted by a point at which one side of an == has a value and the other has none."""
    asked = question(claim)
    if asked is None or not one_sided(asked):
        return None
    ends = time.process_time() + BUDGET_SHARE * claim.budget
    for lengths, values in _candidates(asked):
        if time.process_time() > ends:
            break
        try:
            at = asked.complete(values, lengths)
            if not admissible(asked, at):
                continue
            seen = undefined_side(asked, at)
        except (Undecided, ArithmeticError, IndexError):
            continue
        if seen:
            shown = tuple((each.name, values[each.name]) for each in ordered(asked))
            witness = Witness(lengths, shown, seen, is_undefined=True)
            named = witness.named() or (("seen", seen),)
            return Finding("refuted", "exact witness", str(witness), "domain", named, is_undefined=True)
    return None


def undefined_side(asked: Question, at: Coordinates) -> str:
    """`x - 5 over 0 is undefined, the other side is 3`, if exactly one side of an == has no value here."""
    for left, comparison, right in zip(asked.chain.terms, asked.chain.comparisons, asked.chain.terms[1:], strict=False):
        if comparison == "==":
            values = [_value(at, side) for side in (left, right)]
            if values.count(None) == 1:
                undefined, other = (left, values[1]) if values[0] is None else (right, values[0])
                return f"{undefined} is undefined, the other side is {other}"
    return ""


def _value(at: Coordinates, node: Node) -> str | None:
    try:
        return array_text(at.evaluate(node))
    except (ArithmeticError, IndexError):
        return None


def _candidates(asked: Question) -> Iterator[tuple[dict[str, int], dict[str, Array]]]:
    """Small points, then points at which a doubted expression is 0 along one variable."""
    lengths = list(islice(sizes(asked), LENGTHS))
    whole, more = levels(asked)
    for each in lengths:
        for level in (*whole[:3], *more[:3]):
            yield from ((each, values) for values in islice(points(asked, each, level), POINTS))
    draws, doubts = Random(0), one_sided(asked)
    for each in lengths:
        for _ in range(LINES):
            values = asked.drawn(each, draws)
            for _, node in doubts:
                yield from ((each, found) for found in _roots(asked, node, values, each, draws))


def _roots(
    asked: Question, node: Node, values: Mapping[str, Array], lengths: dict[str, int], draws: Random
) -> Iterator[dict[str, Array]]:
    """The point moved along one entry to where an expression that is linear or quadratic in it is 0."""
    for each in asked.variables:
        entries = values[each.name].entries
        place = draws.randrange(len(entries)) if entries else 0

        def moved(value: Fraction, each=each, entries=entries, place=place) -> dict[str, Array]:
            changed = (*entries[:place], value, *entries[place + 1 :])
            return {**values, each.name: Array(values[each.name].shape, changed)}

        try:
            y = [asked.complete(moved(Fraction(x)), lengths).evaluate(node).scalar for x in range(4)]
        except (Undecided, ArithmeticError, IndexError):
            continue
        if not all(isinstance(value, Fraction) for value in y) or y[3] - 3 * y[2] + 3 * y[1] != y[0]:
            continue
        a, b, c = (y[2] - 2 * y[1] + y[0]) / 2, (4 * y[1] - 3 * y[0] - y[2]) / 2, y[0]
        root = constant(Call("sqrt", (Number(b * b - 4 * a * c),))) if a and b * b >= 4 * a * c else None
        if not a and b:
            yield moved(-c / b)
        elif root is not None:
            yield moved((-b + root) / (2 * a))
