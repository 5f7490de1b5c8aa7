"""Intervals and their unions, and inequalities in one name as the region where they hold."""

import itertools
from fractions import Fraction
from typing import Any

from flint import fmpq

from likewise.grading.algebra import ONE, Forms, Unclear
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


Piece = tuple[Node, Node, str]


def compare_regions(one: Node, other: Node, world: World) -> Outcome:
    pieces = [_pieces(node, world) for node in (one, other)]
    values = [[_ends(piece) for piece in each] for each in pieces]
    if all(end is not None for each in values for piece in each for end in piece):
        pieces = [_joined(each) for each in pieces]
    if len(pieces[0]) != len(pieces[1]):
        if all(end is not None for each in values for piece in each for end in piece):
            return different(f"{len(pieces[0])} intervals and {len(pieces[1])}")
        return undecided("unions of different numbers of intervals")
    outcomes = []
    for left, right in zip(*pieces, strict=True):
        outcomes += [_bound(left[0], right[0], world), _bound(left[1], right[1], world)]
        for place, end in ((0, "left"), (1, "right")):
            if left[2][place] != right[2][place]:
                outcomes.append(different(f"the {end} end {shown(left[place])} is in one of them only"))
    names = {part.joined for node in (one, other) for part in node.walk() if part.kind == "interval" and part.joined}
    if len(names) == 2:
        outcomes.append(depends(f"if {' and '.join(sorted(name for (name,) in names))} are the same"))
    return all_of(outcomes)


def _bound(one: Node, other: Node, world: World) -> Outcome:
    infinite = [infinity_of(node) for node in (one, other)]
    if any(infinite):
        return EQUAL if infinite[0] == infinite[1] else different("one of them is unbounded")
    return scalars(bare(one), bare(other), world)


def _pieces(node: Node, world: World) -> list[Piece]:
    node = bare(node)
    infinite = Node("name", text="infty")
    whole = (Node("neg", (infinite,)), infinite, "()")
    match node.kind:
        case "interval":
            return [(node.parts[0], node.parts[1], _open(node))]
        case "vector" if len(node.parts) == 2:
            return [(node.parts[0], node.parts[1], _open(node))]
        case "name" if node.text == "bb_R":
            return [whole]
        case "union":
            return [piece for part in node.parts for piece in _pieces(part, world)]
        case "set" if node.parts:
            return [(part, part, "[]") for part in node.parts]
        case "without" if name_of(node.parts[0]) == "bb_R" and bare(node.parts[1]).kind == "set":
            points = sorted(bare(node.parts[1]).parts, key=lambda part: value_of(part) or Fraction(0))
            if any(value_of(point) is None for point in points):
                raise Unclear("points that are not numbers")
            ends = [whole[0], *points, whole[1]]
            return [(left, right, "()") for left, right in itertools.pairwise(ends)]
    raise Unclear("no interval")


def _open(node: Node) -> str:
    left = "(" if infinity_of(node.parts[0]) else node.text[0]
    return left + (")" if infinity_of(node.parts[1]) else node.text[1])


def _ends(piece: Piece) -> tuple[float | Fraction | None, float | Fraction | None]:
    signs = {"+": float("inf"), "-": float("-inf")}
    left, right = (signs[infinity_of(end)] if infinity_of(end) else value_of(end) for end in piece[:2])
    return left, right


def _joined(pieces: list[Piece]) -> list[Piece]:
    """Intervals with known ends, in order, those that touch made one, empty ones left out."""
    found: list[Piece] = []
    for piece in sorted(pieces, key=lambda each: (_ends(each)[0], each[2][0] == "(")):
        low, high = _ends(piece)
        if low is None or high is None or low > high or (low == high and piece[2] != "[]"):
            continue
        if found:
            last = _ends(found[-1])[1]
            assert last is not None
            if low < last or (low == last and (piece[2][0] == "[" or found[-1][2][1] == "]")):
                if high > last or (high == last and piece[2][1] == "]"):
                    found[-1] = (found[-1][0], piece[1], found[-1][2][0] + piece[2][1])
                continue
        found.append(piece)
    return found
