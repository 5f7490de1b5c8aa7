"""Intervals and their unions, and inequalities in one name as the region where they hold."""

import itertools
from fractions import Fraction
from functools import cmp_to_key
from typing import Any

from flint import acb, fmpq

from likewise.grading.algebra import Forms
from likewise.grading.arithmetic import ONE, Unclear
from likewise.grading.balls import Point, Undefined, precise
from likewise.grading.conditions import scalars
from likewise.grading.given import name_of
from likewise.grading.numbers import ORDERED, fraction_node, infinity_of, polynomial_at, signed_fraction_node, value_of
from likewise.grading.outcomes import EQUAL, Outcome, World, all_of, depends, different, undecided
from likewise.grading.parsing import bare
from likewise.grading.showing import shown
from likewise.reading.expressions import Node, number
from likewise.reading.latex import Unread


def interval_of(node: Node, name: str, world: World) -> Node:
    """The interval of one name in linear inequalities."""
    if node.kind != "chain":
        raise Unread("a set by a condition that is no inequality")
    if node.joined == ("in",):
        return node.parts[1]
    low: list[tuple[Node, bool]] = []
    high: list[tuple[Node, bool]] = []
    for left, relation, right in zip(node.parts, node.joined, node.parts[1:], strict=False):
        if relation not in ORDERED:
            raise Unread("a condition that is no inequality")
        turned, strict = ORDERED[relation]
        one, other = (right, left) if turned else (left, right)  # one < other
        if name_of(one) == name and name not in other.names:
            high.append((other, strict))
        elif name_of(other) == name and name not in one.names:
            low.append((one, strict))
        else:
            forms = Forms(seconds=world.left)
            gap = forms.form(Node("-", (other, one)))  # > 0
            place = forms.atom("name", name)
            if gap.bottom != ONE or gap.top.total_degree() != 1 or not gap.top.degrees()[place]:
                raise Unclear("an inequality that is not linear")
            terms = {int(exponents[place]): value for exponents, value in gap.top.terms()}
            if len(terms) != len(gap.top):
                raise Unclear("an inequality of several names")
            bound = -terms.get(0, fmpq(0)) / terms[1]
            shown = number(str(abs(bound.numerator)))
            found = Node("/", (Node("neg", (shown,)) if bound < 0 else shown, number(str(bound.denominator))))
            (low if terms[1] > 0 else high).append((found, strict))
    if len(low) > 1 or len(high) > 1:
        raise Unclear("several bounds")
    infinite = Node("name", text="infty")
    left, open_left = low[0] if low else (Node("neg", (infinite,)), True)
    right, open_right = high[0] if high else (infinite, True)
    return Node("interval", (left, right), ("(" if open_left else "[") + (")" if open_right else "]"), joined=(name,))


def is_curved(node: Node, name: str) -> bool:
    """Whether one inequality is not linear in its name."""
    inside = any(
        (part.kind in ("^", "abs") and name in part.parts[0].names)
        or (part.kind == "/" and name in part.parts[1].names)
        for part in node.walk()
    )
    products = any(
        part.kind == "product" and sum(name in each.names for each in part.parts) > 1 for part in node.walk()
    )
    return (inside or products) and len(node.joined) == 1


def solution_of(node: Node, name: str, world: World) -> Node:
    """Where an inequality in one name holds: signs between the roots of its factors, which are at most quadratic."""
    turned, strict = ORDERED[node.joined[0]]
    left, right = (node.parts[0], node.parts[1]) if turned else (node.parts[1], node.parts[0])  # left > right
    sides = [bare(left), bare(right)]
    if any(side.kind == "abs" for side in sides):  # |p| < c as p^2 < c^2
        limits = [value_of(side) for side in sides if side.kind != "abs"]
        if len(limits) != 1 or limits[0] is None or limits[0] < 0:
            raise Unclear("an inequality with an absolute value")
        squared = [Node("^", (side.parts[0] if side.kind == "abs" else side, number("2"))) for side in sides]
        left, right = squared
    forms = Forms(seconds=world.left)
    gap = forms.form(Node("-", (left, right)))  # > 0
    if any(atom.kind != "name" for atom in forms.atoms) or gap.top == 0:
        raise Unclear("an inequality that is not of polynomials")
    roots = sorted(
        [(*root, not strict) for root in _roots(gap.top)] + [(*root, False) for root in _roots(gap.bottom)],
        key=lambda root: root[0],
    )
    if any(after[0] - before[0] < 1e-9 for before, after in itertools.pairwise(roots)):
        raise Unclear("roots that are close")
    marks = (
        [roots[0][0] - 1, *((one[0] + two[0]) / 2 for one, two in itertools.pairwise(roots)), roots[-1][0] + 1]
        if roots
        else [0]
    )
    exact = [Fraction(mark).limit_denominator(10**10) for mark in marks]
    at = [{name: fmpq(mark.numerator, mark.denominator)} for mark in exact]
    holds = [polynomial_at(gap.top, forms, point) * polynomial_at(gap.bottom, forms, point) > 0 for point in at]
    infinite = Node("name", text="infty")
    ends = [(Node("neg", (infinite,)), False), *((root[1], root[2]) for root in roots), (infinite, False)]
    found: list[Node] = []
    for place, inside in enumerate(holds):
        (low, closed), (high, shut) = ends[place], ends[place + 1]
        if inside:
            if closed and found and found[-1].parts[1] == low:  # joined at a root
                low, closed = found[-1].parts[0], found.pop().text[0] == "["
            signs = ("[" if closed else "(") + ("]" if shut else ")")
            found.append(Node("interval", (low, high), signs, joined=(name,)))
        elif shut and not (place + 1 < len(holds) and holds[place + 1]):
            found.append(Node("interval", (high, high), "[]", joined=(name,)))
    if not found:
        return Node("set")
    return found[0] if len(found) == 1 else Node("union", tuple(found))


def _roots(poly: Any) -> list[tuple[float, Node]]:
    """The real roots of a polynomial in one name, as numbers and as trees."""
    found = []
    for factor, _ in poly.factor()[1] if not poly.is_constant() else ():
        terms = {
            sum(map(int, exponents)): Fraction(int(value.numerator), int(value.denominator))
            for exponents, value in factor.terms()
        }
        degree = max(terms)
        a, b, c = terms.get(2, Fraction(0)), terms.get(1, Fraction(0)), terms.get(0, Fraction(0))
        if degree > 2:
            raise Unclear("a polynomial of higher degree")
        if degree == 1:
            found.append((float(-c / b), signed_fraction_node(-c / b)))
            continue
        inside = b * b - 4 * a * c
        if inside > 0:
            middle = -b / (2 * a)
            half = Node("call", (fraction_node(inside / (4 * a * a)),), "sqrt")
            for kind, sign in (("-", -1), ("+", 1)):
                value = float(middle) + sign * float(inside) ** 0.5 / abs(2 * float(a))
                found.append((value, Node(kind, (signed_fraction_node(middle), half))))
    return found


Cut = tuple[Node, int]  # before (0) or after (1) a point: [2, 3) is from (2, 0) to (3, 0)
Piece = tuple[Cut, Cut]
INFINITE = Node("name", text="infty")
WHOLE = [((Node("neg", (INFINITE,)), 0), (INFINITE, 0))]


def compare_regions(one: Node, other: Node, world: World) -> Outcome:
    """Two unions of intervals: both as disjoint intervals in order, or one interval each with any ends."""
    pieces = []
    for node in (one, other):
        try:
            pieces.append(_region(node, world))
        except _Unordered as error:
            if one == other:
                return EQUAL
            return undecided(str(error))
    if len(pieces[0]) != len(pieces[1]):
        single = all(len(each) <= 1 for each in pieces) and not _sorted_ends(pieces)
        return (
            undecided("intervals that may be empty")
            if single
            else different(f"{len(pieces[0])} intervals and {len(pieces[1])}")
        )
    outcomes = []
    for left, right in zip(*pieces, strict=True):
        for (end, after), (its, later), side in zip(left, right, ("left", "right"), strict=True):
            outcomes.append(_bound(end, its, world))
            if after != later:
                outcomes.append(different(f"the {side} end {shown(end)} is in one of them only"))
    names = {
        part.joined
        for node in (one, other)
        for part in node.walk()
        if part.joined and len(part.joined) == 1 and part.kind in ("interval", "without")
    }
    if len(names) == 2:
        outcomes.append(depends(f"if {' and '.join(sorted(name for (name,) in names))} are the same"))
    return all_of(outcomes)


class _Unordered(Exception):
    """Ends of intervals whose order is not known; the text is the reason."""


def _sorted_ends(pieces: list[list[Piece]]) -> bool:
    return all(value_of(end) is not None for each in pieces for piece in each for end, _ in piece)


def _bound(one: Node, other: Node, world: World) -> Outcome:
    infinite = [infinity_of(node) for node in (one, other)]
    if any(infinite):
        return EQUAL if infinite[0] == infinite[1] else different("one of them is unbounded")
    return scalars(bare(one), bare(other), world)


def _region(node: Node, world: World) -> list[Piece]:
    """Disjoint intervals in order that do not touch; one interval is taken as it is."""
    node = bare(node)
    match node.kind:
        case "interval":
            return _interval(node, world)
        case "vector" if len(node.parts) == 2:
            return _interval(node, world)
        case "name" if node.text == "bb_R":
            return list(WHOLE)
        case "set":
            return _merged([((part, 0), (part, 1)) for part in node.parts], world)
        case "union":
            return _merged([piece for part in node.parts for piece in _region(part, world)], world)
        case "meet":
            outside = [piece for part in node.parts for piece in _complement(_region(part, world), world)]
            return _complement(_merged(outside, world), world)
        case "without":
            kept, taken = (_region(part, world) for part in node.parts)
            return _complement(_merged([*_complement(kept, world), *taken], world), world)
    raise Unclear("no interval")


def _interval(node: Node, world: World) -> list[Piece]:
    low, high = node.parts
    piece = (
        (low, int(node.text[0] == "(" and not infinity_of(low))),
        (high, int(node.text[1] == "]" and not infinity_of(high))),
    )
    try:
        return [piece] if _before(*piece, world) < 0 else []
    except _Unordered:
        return [piece]


def _merged(pieces: list[Piece], world: World) -> list[Piece]:
    """The union of intervals, in order, with those that touch made one."""
    found: list[Piece] = []
    for low, high in sorted(pieces, key=cmp_to_key(lambda one, other: _before(one[0], other[0], world))):
        if found and _before(low, found[-1][1], world) <= 0:
            last = found[-1]
            found[-1] = (last[0], high if _before(last[1], high, world) < 0 else last[1])
        else:
            found.append((low, high))
    return found


def _complement(pieces: list[Piece], world: World) -> list[Piece]:
    cuts = [WHOLE[0][0], *(cut for piece in pieces for cut in piece), WHOLE[0][1]]
    pairs = zip(cuts[::2], cuts[1::2], strict=True)
    return [(low, high) for low, high in pairs if _before(low, high, world) < 0]


def _before(one: Cut, other: Cut, world: World) -> int:
    """-1, 0 or 1 as the first cut is before, at or after the second."""
    places = [{"-": -1, "": 0, "+": 1}[infinity_of(end)] for end, _ in (one, other)]
    if any(places):
        return (places[0] > places[1]) - (places[0] < places[1])
    values = [value_of(end) for end, _ in (one, other)]
    if values[0] is not None and values[1] is not None:
        order = (values[0] > values[1]) - (values[0] < values[1])
    else:
        order = _ball_order(one[0], other[0], world)
    return order or (one[1] > other[1]) - (one[1] < other[1])


def _ball_order(one: Node, other: Node, world: World) -> int:
    if one == other:
        return 0
    try:
        with precise():
            gap = Point({}, base=world.conventions.log, seconds=world.left).value(Node("-", (one, other)))
            if not isinstance(gap, acb) and (gap < 0 or gap > 0):
                return 1 if gap > 0 else -1
    except Undefined:
        raise _Unordered("ends of intervals whose order is not known") from None
    if scalars(bare(one), bare(other), world).verdict == "equal":
        return 0
    raise _Unordered("ends of intervals that are near")
