"""Two trees compared, kind by kind: equal with a proof, different with a witness, depends with a condition."""

import contextlib
import itertools
import random
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

from flint import acb, arb, fmpq

from likewise.grading.algebra import GENERATORS, ONE, Forms, Ratio, Unclear, rational
from likewise.grading.balls import RANGE, Point, Undefined, precise, separation, surely_differ
from likewise.grading.given import Conventions, Given, name_of, substituted
from likewise.grading.matrices import LETTER, MatrixForms, inferred_types
from likewise.grading.orders import bounded, compare, terms_of
from likewise.grading.parsing import bare, sizes_of
from likewise.grading.units import unit_of
from likewise.reading.expressions import Node, number
from likewise.reading.latex import Unread

POINTS = 24
WEIGHTS = {"p", "q", "w", "a", "alpha", "pi", "lambda"}
MATRIX_LETTERS = {*"ABCPQWXY"}
VECTOR_LETTERS = {*"xyzuvwhqkb"}
SIZE_LETTERS = {*"dDnNmMhHrR"}
CONSTANTS = {"pi", "e", "i", "infty"}
ORDERED = {"<": (False, True), "<=": (False, False), ">": (True, True), ">=": (True, False)}  # (turned, strict)


@dataclass(frozen=True)
class Outcome:
    """verdict: equal, different, depends or undecided; why: the proof, witness, condition or reason."""

    verdict: str
    why: str = ""


EQUAL = Outcome("equal")


def undecided(why: str) -> Outcome:
    """No verdict, with the reason."""
    return Outcome("undecided", why)


def different(why: str) -> Outcome:
    """Surely different, with the witness."""
    return Outcome("different", why)


def depends(why: str) -> Outcome:
    """Equal under a condition."""
    return Outcome("depends", why)


@dataclass
class World:
    """What one comparison knows, and until when it may work."""

    given: Given
    conventions: Conventions
    until: float
    notes: list[str] = field(default_factory=list)

    @property
    def left(self) -> float:
        """Seconds that are left."""
        return max(self.until - time.monotonic(), 0.0)

    def with_log(self, base: str) -> "World":
        """The same with another base of log."""
        return replace(self, conventions=replace(self.conventions, log=base))


def compared(one: Node, other: Node, world: World) -> Outcome:
    """The outcome for two answers."""
    try:
        one, other = (simplified(node, world) for node in (one, other))
        return _by_kind(one, other, world)
    except (Unread, Unclear) as error:
        return undecided(str(error))


def simplified(node: Node, world: World) -> Node:
    """A statement as the value that it gives: x = 5 is 5, x in S is S, a list is a set, a sign ± is two values."""
    node = bare(node)
    match node.kind:
        case "chain":
            return _chained(node, world)
        case "list":
            listed = _listed(node, world)
            if node.text == "or" and all(part.kind == "interval" for part in listed.parts):
                return Node("union", listed.parts)
            return listed
        case "where":
            return _solved(node.parts[1], name_of(node.parts[0]), world)
        case "law_of":
            return node.parts[1]
        case "set":
            return Node("set", tuple(simplified(part, world) for part in node.parts))
        case "interval":
            return node
        case "union" | "meet" | "without":
            return node
    signs = [part for part in node.walk() if part.kind == "pm"]
    if len(signs) > 1:
        raise Unread("several signs of plus or minus")
    if signs:
        return Node("set", (_signed(node, "+"), _signed(node, "-")))
    return node


def _signed(node: Node, sign: str) -> Node:
    kind = sign if node.kind == "pm" else node.kind
    return Node(kind, tuple(_signed(part, sign) for part in node.parts), node.text, node.joined)


def _head(node: Node) -> str:
    """The name on the left of a definition: x, y_1, f(x)."""
    node = bare(node)
    if node.kind == "name" and node.text not in CONSTANTS:
        return node.text
    if node.kind == "vector" and all(map(name_of, node.parts)):
        return f"({', '.join(map(name_of, node.parts))})"
    if node.kind == "index" or (node.kind == "call" and node.parts and all(name_of(part) for part in node.parts)):
        return f"{node.text}({', '.join(name_of(part) or '#' for part in node.parts)})"
    return ""


def _chained(node: Node, world: World) -> Node:
    relations = set(node.joined)
    if relations == {"in"} and len(node.parts) == 2:
        world.notes.append(f"{_head(node.parts[0]) or 'the left side'} is in the set")
        return simplified(node.parts[1], world)
    if relations <= {"==", ":=", "approx", "equiv"}:
        if "equiv" in relations:
            raise Unread("a congruence")
        return _equated(node, world)
    if relations <= set(ORDERED):
        names = {part.text for part in node.walk() if part.kind == "name"} - CONSTANTS
        if len(names) == 1:
            try:
                name = names.pop()
                return _solved(node, name, world) if not _curved(node, name) else _pieces_of(node, name, world)
            except (Unclear, Unread):
                pass
        return Node("inequality", node.parts, joined=node.joined)
    raise Unread(f"the relation {node.joined[0]}")


def _equated(node: Node, world: World) -> Node:
    head = _head(node.parts[0])
    sides = list(node.parts)
    if "approx" in node.joined:
        exact = node.joined.index("approx") + 1  # x = 1/3 is what x = 1/3 ≈ 0.333 says exactly
        if exact == 1 and not (len(sides) == 2 and world.conventions.nears):
            raise Unread("only an approximation")
        if exact > 1:
            if not all(_near(sides[exact - 1], side, world) for side in sides[exact:]):
                raise Unread("an approximation that is not near")
            sides = sides[:exact]
    left = bare(node.parts[0])
    name, parameters = left.text, [bare(part).text for part in left.parts] if left.kind == "call" else []
    if head and name not in {each for part in sides[1:] for each in _all_names(part)}:
        sides = sides[1:]
        world.notes.append(f"the value of {head} was taken")
    elif len(sides) == 2 and any(_all_names(side) - CONSTANTS for side in sides):
        return Node("equation", tuple(sides))
    for left, right in itertools.pairwise(sides):
        outcome = compared(left, right, world)
        if outcome.verdict == "different":
            raise Unread(f"it states an equality that does not hold ({outcome.why})")
        if outcome.verdict != "equal":
            raise Unread("a chain of equalities that is not proved")
    value = simplified(sides[-1], world)
    return Node("defined", (value,), head, tuple(parameters)) if head else value


def _near(one: Node, other: Node, world: World) -> bool:
    """Whether two numbers differ by at most a tenth."""
    try:
        with precise():
            values = [Point({}, base="e", seconds=world.left).value(node) for node in (one, other)]
            return bool(abs(values[0] - values[1]) * 10 <= abs(values[0]))
    except (Undefined, TypeError):
        return False


def _all_names(node: Node) -> set[str]:
    return {part.text for part in node.walk() if part.kind in ("name", "index", "call")}


def _listed(node: Node, world: World) -> Node:
    parts = [simplified(part, world) for part in node.parts]
    heads = [part.text for part in parts if part.kind == "defined"]
    if heads and len(heads) == len(parts):
        if len(set(heads)) == len(heads) > 1:
            if node.text == "or":
                raise Unread("one of several statements")
            return Node("assigned", tuple(sorted(parts, key=lambda part: part.text)))
        if len(set(heads)) == 1:
            return Node("set", tuple(part.parts[0] for part in parts))
    if len(heads) == 1 and parts[0].kind == "defined":  # x = 1, 2
        parts = [parts[0].parts[0], *parts[1:]]
    if any(part.kind in ("defined", "equation", "inequality", "region") for part in parts):
        if all(part.kind in ("equation", "defined") for part in parts):
            return Node("system", tuple(parts))
        if all(part.kind == "region" for part in parts):
            raise Unread("several conditions")
        raise Unread("statements of several kinds")
    return Node("set", tuple(parts), "list")


def _solved(node: Node, name: str, world: World) -> Node:
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


def _curved(node: Node, name: str) -> bool:
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


def _pieces_of(node: Node, name: str, world: World) -> Node:
    """Where an inequality in one name holds: signs between the roots of its factors, which are at most quadratic."""
    turned, strict = ORDERED[node.joined[0]]
    left, right = (node.parts[0], node.parts[1]) if turned else (node.parts[1], node.parts[0])  # left > right
    sides = [bare(left), bare(right)]
    if any(side.kind == "abs" for side in sides):  # |p| < c as p^2 < c^2
        limits = [_value(side) for side in sides if side.kind != "abs"]
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
    holds = [_at(gap.top, forms, point) * _at(gap.bottom, forms, point) > 0 for point in at]
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
            found.append((float(-c / b), _signed_fraction(-c / b)))
            continue
        inside = b * b - 4 * a * c
        if inside > 0:
            middle = -b / (2 * a)
            half = Node("call", (_fraction(inside / (4 * a * a)),), "sqrt")
            for kind, sign in (("-", -1), ("+", 1)):
                value = float(middle) + sign * float(inside) ** 0.5 / abs(2 * float(a))
                found.append((value, Node(kind, (_signed_fraction(middle), half))))
    return found


def _signed_fraction(value: Fraction) -> Node:
    return Node("neg", (_fraction(-value),)) if value < 0 else _fraction(value)


# Kinds


def _by_kind(one: Node, other: Node, world: World) -> Outcome:
    if not world.left:
        raise Unclear("it took too long")
    kinds = {one.kind, other.kind}
    if "defined" in kinds:
        return _defined(one, other, world)
    if "assigned" in kinds:
        return _assigned(one, other, world)
    if kinds & {"inequality"}:
        return (
            _inequalities(one, other, world)
            if kinds == {"inequality"}
            else undecided("an inequality and something else")
        )
    if kinds & {"equation", "system"}:
        if kinds == {"equation"}:
            return _equations(one, other, world)
        return _sets(one, other, world) if kinds == {"system"} else undecided("an equation and something else")
    if "einsum" in kinds or "law" in kinds or "order" in kinds:
        if "order" in kinds:
            return _orders(one, other, world)
        if len(kinds) > 1:
            return undecided(f"a {one.kind} and a {other.kind}")
        return _laws(one, other, world)
    region = {"interval", "union", "without", "meet"}
    if kinds & region or (kinds == {"vector", "name"} and "bb_R" in (one.text, other.text)):
        return _regions(one, other, world)
    if "set" in kinds:
        return _as_sets(one, other, world)
    if "ratio" in kinds:
        return _ratios(one, other, world)
    if kinds == {"vector", "product"} and (shape := _as_shape(one, other, world)) is not None:
        return shape
    if any(map(_has_array, (one, other))):
        return _arrays(one, other, world)
    if "unit" in kinds:
        return _units(one, other, world)
    return scalars(one, other, world)


def _defined(one: Node, other: Node, world: World) -> Outcome:
    heads = [node.text for node in (one, other) if node.kind == "defined"]
    values = [node.parts[0] if node.kind == "defined" else node for node in (one, other)]
    if len(heads) == 2 and len(one.joined) == len(other.joined):  # f(x) = x^2 and f(t) = t^2
        places = [
            {name: Node("name", text=f"parameter_{place}") for place, name in enumerate(node.joined)}
            for node in (one, other)
        ]
        values = [substituted(value, names) for value, names in zip(values, places, strict=True)]
    if any(value.kind in ("equation", "inequality") for value in values) and len(heads) == 1:
        sides = next(node for node in (one, other) if node.kind != "defined")
        if sides.kind == "equation":
            value = next(node for node in (one, other) if node.kind == "defined")
            if "(" not in value.text:
                return _equations(sides, Node("equation", (Node("name", text=value.text), value.parts[0])), world)
    outcome = _by_kind(values[0], values[1], world)
    if len(heads) == 1 and outcome.verdict == "different" and len(one.joined + other.joined) == 1:
        (parameter,) = one.joined + other.joined  # f(x) = x^2 beside t^2
        plain = next(node for node in (one, other) if node.kind != "defined")
        if len(names := _free(plain)) == 1:
            again = [substituted(value, {parameter: Node("name", text=next(iter(names)))}) for value in values]
            if _by_kind(again[0], again[1], world).verdict == "equal":
                return depends(f"if {next(iter(names))} is the argument {parameter}")
    if len(heads) == 1 or heads[0].split("(")[0] == heads[1].split("(")[0]:
        return outcome
    if outcome.verdict == "equal":
        return depends(f"if {heads[0]} and {heads[1]} are the same")
    if any("(" in head for head in heads):
        return undecided(f"values of {heads[0]} and of {heads[1]}")
    sides = [Node("equation", (Node("name", text=node.text), node.parts[0])) for node in (one, other)]
    return _equations(sides[0], sides[1], world)  # y = 2x, x = y/2


def _assigned(one: Node, other: Node, world: World) -> Outcome:
    if one.kind == other.kind:
        names = [[part.text for part in node.parts] for node in (one, other)]
        if names[0] != names[1]:
            return undecided("values of different names")
        return _all_of(
            [_by_kind(left.parts[0], right.parts[0], world) for left, right in zip(one.parts, other.parts, strict=True)]
        )
    values, rest = (one, other) if one.kind == "assigned" else (other, one)
    if rest.kind == "vector" and len(rest.parts) == len(values.parts):
        outcome = _all_of(
            [_by_kind(part.parts[0], bare(each), world) for part, each in zip(values.parts, rest.parts, strict=True)]
        )
        shown = ", ".join(part.text for part in values.parts)
        return (
            depends(f"if the entries are ({shown})")
            if outcome.verdict == "equal"
            else undecided("the order of the entries is not said")
        )
    return undecided("values of several names, and something else")


def _all_of(outcomes: Sequence[Outcome]) -> Outcome:
    """The outcome of parts that must all be equal."""
    for verdict in ("different", "undecided", "depends"):
        for outcome in outcomes:
            if outcome.verdict == verdict:
                return outcome
    return EQUAL


def _as_sets(one: Node, other: Node, world: World) -> Outcome:
    if one.kind == other.kind == "set":
        return _sets(one, other, world)
    several, single = (one, other) if one.kind == "set" else (other, one)
    if single.kind == "vector" and several.text == "list":
        if len(single.parts) != len(several.parts):
            return different(f"{len(several.parts)} entries and {len(single.parts)}")
        outcome = _all_of(
            [_by_kind(a, simplified(b, world), world) for a, b in zip(several.parts, single.parts, strict=True)]
        )
        return EQUAL if outcome.verdict == "equal" else undecided("a list and a tuple")
    if len(several.parts) == 1:
        return _by_kind(several.parts[0], single, world)
    if single.kind in ("vector", "matrix"):
        return undecided("a set and a tuple")
    return _sets(several, Node("set", (single,)), world)


def _sets(one: Node, other: Node, world: World) -> Outcome:
    rows = [_distinct(list(node.parts), world) for node in (one, other)]
    if len(rows[0]) * len(rows[1]) > 100:
        return undecided("too many elements")
    table = [[_by_kind(bare(left), bare(right), world) for right in rows[1]] for left in rows[0]]
    columns = [list(column) for column in zip(*table, strict=True)] if table and table[0] else [[] for _ in rows[1]]
    for elements, lines in ((rows[0], table), (rows[1], columns)):
        for element, line in zip(elements, lines, strict=True):
            if all(outcome.verdict == "different" for outcome in line):
                return different(f"{shown(element)} is in one of the sets only")
    paired = [any(outcome.verdict == "equal" for outcome in line) for line in (*table, *columns)]
    if all(paired):
        return EQUAL
    for line in (*table, *columns):
        if not any(outcome.verdict == "equal" for outcome in line):
            return next(
                (each for each in line if each.verdict == "depends"),
                next(each for each in line if each.verdict != "different"),
            )
    return undecided("sets whose elements are not told apart")


def _distinct(parts: list[Node], world: World) -> list[Node]:
    found: list[Node] = []
    for part in parts:
        if not any(_by_kind(bare(part), bare(each), world).verdict == "equal" for each in found):
            found.append(part)
    return found


def _ratios(one: Node, other: Node, world: World) -> Outcome:
    """3:4 and 6:8 by their cross products; a ratio and a number are equal if a quotient is meant."""
    if one.kind != other.kind:
        ratio, rest = (one, other) if one.kind == "ratio" else (other, one)
        if len(ratio.parts) != 2:
            return undecided("a ratio of several numbers and something else")
        outcome = _by_kind(Node("/", ratio.parts), rest, world)
        return depends("if the ratio is meant as a quotient") if outcome.verdict == "equal" else outcome
    if len(one.parts) != len(other.parts):
        return different(f"ratios of {len(one.parts)} and of {len(other.parts)} numbers")
    first = one.parts[0], other.parts[0]
    outcome = _all_of(
        [
            scalars(
                Node("product", (left, first[1]), joined=("",)), Node("product", (right, first[0]), joined=("",)), world
            )
            for left, right in zip(one.parts[1:], other.parts[1:], strict=True)
        ]
    )
    times = all(re.fullmatch(r"\d\d?:[0-5]\d", ":".join(map(shown, node.parts))) for node in (one, other))
    return (
        depends("if ratios are meant, not times") if times and one != other and outcome.verdict == "equal" else outcome
    )


def _as_shape(one: Node, other: Node, world: World) -> Outcome | None:
    """(N, D) beside N x D, or None if the product is none of sizes."""
    product = one if one.kind == "product" else other
    if any(part.kind == "vector" for part in product.walk()) or not sizes_of(product):
        return None
    sizes = [sizes_of(node) if node is product else node.parts for node in (one, other)]
    if len(sizes[0]) != len(sizes[1]):
        return different(f"shapes of {len(sizes[0])} and of {len(sizes[1])} sizes")
    outcome = _all_of([_entry(left, right, world) for left, right in zip(*sizes, strict=True)])
    if outcome.verdict == "equal" and not _free(product):
        return depends("if a shape is meant, not a product")
    return outcome


ARRAYS = ("vector", "matrix")
ROWS = 6


def _has_array(node: Node) -> bool:
    """Whether the value is an array with written entries: a vector, a matrix, or arithmetic of these."""
    node = bare(node)
    if node.kind in ARRAYS:
        return True
    if node.kind == "product":
        return any(map(_has_array, node.parts))
    return node.kind in ("+", "-", "neg", "/", "transpose") and _has_array(node.parts[0])


def _rows(node: Node) -> list[list[Node]]:
    """The entries of an array. A transpose of a tuple is a column, as people write (1, 2)^T."""
    node = bare(node)
    if node.kind == "matrix":
        return [list(row.parts) for row in node.parts]
    if node.kind == "vector":
        return [[part] for part in node.parts]
    if not _has_array(node):
        raise Unclear("a vector or matrix and something else")
    inner = bare(node.parts[0])
    if node.kind == "transpose" and inner.kind == "vector":
        return _rows(inner)
    if node.kind == "transpose":
        return [list(column) for column in zip(*_rows(inner), strict=True)]
    if node.kind == "neg":
        return [[Node("neg", (entry,)) for entry in row] for row in _rows(inner)]
    if node.kind == "/":
        return [[Node("/", (entry, node.parts[1])) for entry in row] for row in _rows(inner)]
    if node.kind in ("+", "-"):
        one, other = map(_rows, node.parts)
        if (len(one), len(one[0])) != (len(other), len(other[0])):
            raise Unclear("a sum of different shapes")
        return [[Node(node.kind, pair) for pair in zip(*rows, strict=True)] for rows in zip(one, other, strict=True)]
    found: list[list[Node]] | None = None
    scalar: list[Node] = []
    for part in node.parts:
        if not _has_array(part):
            scalar.append(part)
            continue
        right = _rows(part)
        if found is not None and (len(found[0]) != len(right) or max(len(found), len(right), len(right[0])) > ROWS):
            raise Unclear("a product whose shapes do not fit")
        found = (
            right if found is None else [[_dot(row, column) for column in zip(*right, strict=True)] for row in found]
        )
    assert found is not None
    return [[Node("product", (*scalar, entry), joined=("",) * len(scalar)) for entry in row] for row in found]


def _dot(row: Sequence[Node], column: Sequence[Node]) -> Node:
    terms = [Node("product", pair, joined=("",)) for pair in zip(row, column, strict=True)]
    total = terms[0]
    for term in terms[1:]:
        total = Node("+", (total, term))
    return total


def _expanded(node: Node) -> Node:
    """The tree with determinants and traces of written matrices multiplied out."""
    if node.kind == "call" and node.text in ("det", "tr") and len(node.parts) == 1 and _has_array(node.parts[0]):
        rows = _rows(node.parts[0])
        if len(rows) != len(rows[0]) or len(rows) > 5:
            raise Unclear(f"{node.text} of a matrix that is not square, or large")
        if node.text == "det":
            return _determinant(rows)
        total = rows[0][0]
        for place in range(1, len(rows)):
            total = Node("+", (total, rows[place][place]))
        return total
    return Node(node.kind, tuple(map(_expanded, node.parts)), node.text, node.joined)


def _determinant(rows: list[list[Node]]) -> Node:
    if len(rows) == 1:
        return rows[0][0]
    total = number("0")
    for place, entry in enumerate(rows[0]):
        minor = [row[:place] + row[place + 1 :] for row in rows[1:]]
        term = Node("product", (entry, _determinant(minor)), joined=("",))
        total = Node("-" if place % 2 else "+", (total, term))
    return total


def _arrays(one: Node, other: Node, world: World) -> Outcome:
    rows = [_rows(node) for node in (one, other)]
    sizes = [(len(each), len(each[0])) for each in rows]
    if sizes[0] != sizes[1]:
        flat = [[entry for row in each for entry in row] for each in rows]
        if 1 in sizes[0] and 1 in sizes[1] and len(flat[0]) == len(flat[1]):
            tuples = [node.kind == "vector" for node in (one, other)]
            outcome = _all_of([_entry(left, right, world) for left, right in zip(*flat, strict=True)])
            if outcome.verdict == "equal" and not any(tuples):
                return depends("if a row and a column are not told apart")
            return outcome
        return different(f"shape {sizes[0]} and shape {sizes[1]}")
    outcome = _all_of(
        [
            _entry(left, right, world)
            for ones, others in zip(*rows, strict=True)
            for left, right in zip(ones, others, strict=True)
        ]
    )
    pairs = one.kind == other.kind == "vector" and len(one.parts) == 2 and one.text != other.text
    return depends("if a pair is meant, not an interval") if pairs and outcome.verdict == "equal" else outcome


def _entry(one: Node, other: Node, world: World) -> Outcome:
    return _by_kind(simplified(one, world), simplified(other, world), world)


def _laws(one: Node, other: Node, world: World) -> Outcome:
    if one.kind == "einsum":
        return undecided("an einsum is compared as text")
    if one.text != other.text:
        return different(f"a {one.text} law and a {other.text} law")
    if len(one.parts) != len(other.parts):
        return undecided("laws with different numbers of parameters")
    return _all_of([_entry(left, right, world) for left, right in zip(one.parts, other.parts, strict=True)])


# Intervals

Piece = tuple[Node, Node, str]


def _regions(one: Node, other: Node, world: World) -> Outcome:
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
    return _all_of(outcomes)


def _bound(one: Node, other: Node, world: World) -> Outcome:
    infinite = [_infinite(node) for node in (one, other)]
    if any(infinite):
        return EQUAL if infinite[0] == infinite[1] else different("one of them is unbounded")
    return _entry(one, other, world)


def _infinite(node: Node) -> str:
    node = bare(node)
    if name_of(node) == "infty":
        return "+"
    return "-" if node.kind == "neg" and name_of(node.parts[0]) == "infty" else ""


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
            points = sorted(bare(node.parts[1]).parts, key=lambda part: _value(part) or Fraction(0))
            if any(_value(point) is None for point in points):
                raise Unclear("points that are not numbers")
            ends = [whole[0], *points, whole[1]]
            return [(left, right, "()") for left, right in itertools.pairwise(ends)]
    raise Unclear("no interval")


def _open(node: Node) -> str:
    left = "(" if _infinite(node.parts[0]) else node.text[0]
    return left + (")" if _infinite(node.parts[1]) else node.text[1])


def _value(node: Node) -> Fraction | None:
    try:
        return rational(Forms().form(node))
    except Unclear:
        return None


def _ends(piece: Piece) -> tuple[float | Fraction | None, float | Fraction | None]:
    signs = {"+": float("inf"), "-": float("-inf")}
    left, right = (signs[_infinite(end)] if _infinite(end) else _value(end) for end in piece[:2])
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


# Units and numbers


def _units(one: Node, other: Node, world: World) -> Outcome:
    values = [node.parts[0] if node.kind == "unit" else node for node in (one, other)]
    texts = [node.text if node.kind == "unit" else world.conventions.unit for node in (one, other)]
    if not texts[0] and not texts[1]:
        return scalars(*values, world)
    units = [unit_of(text) if text else (Fraction(1), ()) for text in texts]
    if texts[0] and texts[1] and (units[0] is None or units[1] is None):
        same = {(text.lower() if len(text) > 3 else text).removesuffix("s").removesuffix("e") for text in texts}
        return scalars(*values, world) if len(same) == 1 else undecided(f"the units {texts[0]} and {texts[1]}")
    if units[0] is None or units[1] is None:
        named = texts[0] or texts[1]
        outcome = scalars(*values, world)
        return depends(f"if the number counts {named}") if outcome.verdict == "equal" else outcome
    (factor, kind), (other_factor, other_kind) = units[0], units[1]
    scaled = [
        Node("product", (value, _fraction(each)), joined=("",))
        for value, each in zip(values, (factor, other_factor), strict=True)
    ]
    if kind == other_kind:
        return scalars(scaled[0], scaled[1], world)
    if not texts[0] or not texts[1]:
        outcome = scalars(*values, world)
        named = texts[0] or texts[1]
        if outcome.verdict == "different" and {name for name, _ in kind or other_kind} & {"mac", "flop"}:
            for twice in (0, 1):  # a number beside multiply-adds may count FLOP, and the other way round
                both = [
                    Node("product", (value, number(str(1 + (place == twice)))), joined=("",))
                    for place, value in enumerate(values)
                ]
                if scalars(both[0], both[1], world).verdict == "equal":
                    return depends("if a multiply-add is 2 FLOP and one side counts each")
        return depends(f"if the number is in {named}") if outcome.verdict == "equal" else outcome
    return _operations(scaled, [dict(kind), dict(other_kind)], world)


def _operations(scaled: list[Node], kinds: list[dict[str, int]], world: World) -> Outcome:
    """FLOP against MAC: by the convention, or with it as the condition."""
    counted = [{("op" if name in ("flop", "mac") else name): power for name, power in kind.items()} for kind in kinds]
    if counted[0] != counted[1]:
        return different("units of different dimensions")
    for flops in (world.conventions.flop,) if world.conventions.flop else (2, 1):
        both = [
            Node("product", (value, number(str(flops if "mac" in kind else 1))), joined=("",))
            for value, kind in zip(scaled, kinds, strict=True)
        ]
        outcome = scalars(both[0], both[1], world)
        if world.conventions.flop or outcome.verdict == "equal":
            if outcome.verdict == "equal" and not world.conventions.flop:
                return depends(f"if a multiply-add is {flops} FLOP")
            return outcome
    return different("no convention for FLOP makes them equal")


def _fraction(value: Fraction) -> Node:
    return Node("/", (number(str(value.numerator)), number(str(value.denominator))))


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
        rest = [_value(part) for part, half in zip(node.parts, halves, strict=True) if half is None]
        known = [half for half in halves if half is not None]
        if len(known) == 1 and all(value is not None for value in rest):
            for value in rest:
                known[0] *= abs(value or Fraction(1))
            return known[0]
    return None


def _close(one: Node, other: Node, world: World) -> Outcome | None:
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
                return (
                    _within(gap, limit, f"they differ after rounding to {said.rounding} decimals")
                    if any(halves)
                    else different("they differ after rounding")
                )
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


# Orders


def _orders(one: Node, other: Node, world: World) -> Outcome:
    if one.kind != other.kind:
        inner = one.parts[0] if one.kind == "order" else other.parts[0]
        rest = other if one.kind == "order" else one
        if rest.kind in ("set", "vector", "unit", "interval"):
            return undecided("an order and something else")
        outcome = _growths(inner, rest, world)
        return depends("if an order is meant") if outcome.verdict == "equal" else outcome
    outcome = _growths(one.parts[0], other.parts[0], world)
    if outcome.verdict == "equal" and one.text != other.text:
        return depends(f"if the bound {one.text} is the bound {other.text}")
    return outcome


def _growths(one: Node, other: Node, world: World) -> Outcome:
    values = dict(world.given.values)
    for relation in world.given.relations:  # N >= D becomes N = D * (a size of its own)
        names = [name_of(part) for part in relation.parts]
        if len(names) == 2 and all(names) and relation.joined[0] in (">", ">=", "<", "<="):
            above, below = names if relation.joined[0] in (">", ">=") else reversed(names)
            values.setdefault(
                above, Node("product", (Node("name", text=below), Node("name", text=f"{above}/{below}")), joined=("",))
            )
        elif not all(bare(part).kind == "number" or name_of(part) for part in relation.parts):
            world.notes.append("a condition was not used for the order")
    trees = [_summed(substituted(node, values)) for node in (one, other)]
    outcome = _growth_outcome(trees, world)
    if outcome.verdict == "different":
        products = not any(part.kind in ("+", "-") for tree in trees for part in tree.walk())
        for said, *folded in _folded(trees[0], trees[1], world, sizes=products):
            if _growth_outcome(folded, world).verdict == "equal":
                return depends(f"if {said}")
    if outcome.verdict == "different" and world.given.unread:
        return undecided(f"a condition is not read: {world.given.unread[0]}")
    return outcome


def _summed(node: Node) -> Node:
    """The tree with max(a, b) as a + b, which grow alike, where it is a summand or factor."""
    node = bare(node)
    if node.kind == "call" and node.text == "max":
        total = node.parts[0]
        for part in node.parts[1:]:
            total = Node("+", (total, part))
        return total
    if node.kind in ("+", "product"):
        return Node(node.kind, tuple(map(_summed, node.parts)), node.text, node.joined)
    return node


def _growth_outcome(trees: list[Node], world: World) -> Outcome:
    names = {part.text for tree in trees for part in tree.walk() if part.kind == "name"}
    forms = Forms(names, names, base="e", seconds=world.left)
    try:
        terms = [terms_of(tree, forms) for tree in trees]
    except Unclear as error:
        forms = Forms(names, names, base="e", seconds=world.left)
        one, other = map(forms.form, trees)
        ratio = forms.over(one, other) if other.top != 0 else None
        if ratio is not None and (fixed := rational(ratio)) is not None and fixed > 0:
            return EQUAL
        return undecided(str(error))
    found, direction = compare(terms[0], terms[1], _seed(*trees))
    if found:
        return EQUAL
    if found is False:
        side = " (the one is in O of the other)" if bounded(terms[0], terms[1]) or bounded(terms[1], terms[0]) else ""
        return different(f"they grow differently for {direction}{side}")
    return undecided("orders that no direction tells apart")


# Expressions


def shown(node: Node) -> str:
    """A tree as text, for witnesses and for what was read."""
    node_ = bare(node)
    parts = [shown(part) for part in node_.parts]
    match node_.kind:
        case "number" | "name":
            return node_.text
        case "+" | "-":
            right = (
                f"({parts[1]})" if node_.kind == "-" and bare(node_.parts[1]).kind in ("+", "-", "neg") else parts[1]
            )
            return f"{parts[0]} {node_.kind} {right}"
        case "neg":
            return f"-{_wrapped(node_.parts[0])}"
        case "product":
            return "*".join(map(_wrapped, node_.parts))
        case "/":
            return f"{_wrapped(node_.parts[0])}/{_wrapped(node_.parts[1], slash=True)}"
        case "^":
            return f"{_wrapped(node_.parts[0], slash=True)}^{_wrapped(node_.parts[1], slash=True)}"
        case "transpose":
            return f"{_wrapped(node_.parts[0])}'"
        case "call" | "order" | "law" | "floor" | "ceil" | "abs" | "norm" | "root" | "choose" | "pm":
            return f"{node_.text or node_.kind}({', '.join(parts)})"
        case "index":
            return f"{node_.text}_{{{', '.join(parts)}}}"
        case "!" | "%":
            return f"{_wrapped(node_.parts[0])}{node_.kind}"
        case "degrees":
            return f"{_wrapped(node_.parts[0])} degrees"
        case "unit":
            return f"{_wrapped(node_.parts[0])} {node_.text}"
        case "set":
            return "{" + ", ".join(parts) + "}"
        case "interval":
            return f"{node_.text[0]}{', '.join(parts)}{node_.text[1]}"
        case "chain" | "inequality":
            return parts[0] + "".join(f" {sign} {part}" for sign, part in zip(node_.joined, parts[1:], strict=True))
        case "list":
            return ", ".join(parts)
        case "vector":
            return f"({', '.join(parts)})"
        case "einsum":
            return node_.text
    return f"{node_.kind}({', '.join(parts)})"


def _wrapped(node: Node, slash: bool = False) -> str:
    kinds = ("+", "-", "neg", "/", "product") if slash else ("+", "-", "neg")
    return f"({shown(node)})" if bare(node).kind in kinds else shown(node)


def scalars(one: Node, other: Node, world: World) -> Outcome:
    """Two expressions: numbers, or vectors and matrices in symbols."""
    values = world.given.values
    one, other = (_expanded(substituted(node, values)) for node in (one, other))
    close = _close(one, other, world)
    if close is not None:
        return close
    types = {**inferred_types([one, other]), **world.given.types}
    used = {part.text for tree in (one, other) for part in tree.walk() if part.kind == "name"}
    types = {name: kind for name, kind in types.items() if name in used}
    types = {
        name: kind for name, kind in types.items() if name not in world.given.declared or name in world.given.types
    }
    outcome = _matrices(one, other, types, world) if types else _numbers(one, other, world)
    if not types and outcome.verdict == "equal" and (said := _commuted(one, other, world)):
        return depends(said)
    if outcome.verdict in ("different", "undecided"):
        outcome = _conditioned(one, other, outcome, types, world)
    if outcome.verdict == "different" and world.given.unread:
        return undecided(f"a condition is not read: {world.given.unread[0]}")
    return outcome


def _conditioned(one: Node, other: Node, outcome: Outcome, types: dict[str, str], world: World) -> Outcome:
    """The outcome, or the condition under which both are equal."""
    logs = {part.text for tree in (one, other) for part in tree.walk() if part.kind == "call"} & {"log", "lg"}
    if not world.conventions.log and "log" in logs:
        for base, said in (
            ("e", "log is the natural logarithm"),
            ("2", "log is to base 2"),
            ("10", "log is to base 10"),
        ):
            if scalars(one, other, world.with_log(base)).verdict == "equal":
                return depends(f"if {said}")
    for said, *folded in _folded(one, other, world):
        again = _matrices(*folded, types, world) if types else _numbers(*folded, world)
        if again.verdict == "equal":
            return depends(f"if {said}")
    if types:
        return depends(TURNED) if _turned(one, other, types, world) else outcome
    names = _free(one) | _free(other)
    open_names = sorted(names - world.given.positive)
    if open_names and not world.given.unread:
        supposed = replace(world, given=replace(world.given, positive=world.given.positive | names))
        try:
            if _proved(one, other, supposed) and _agree_somewhere(one, other, supposed):
                return depends(f"if {' and '.join(f'{name} > 0' for name in open_names)}")
            if len(open_names) == 1 and open_names[0] not in _indices((one, other)):
                name = Node("name", text=open_names[0])
                turned = [_replaced(node, {name: Node("neg", (name,))}) for node in (one, other)]
                if _proved(*turned, supposed) and _agree_somewhere(*turned, supposed):
                    return depends(f"if {open_names[0]} < 0")
            if _proved(one, other, world, unsigned=True) and not _always_differ(one, other, world):
                return depends("if nothing under an absolute value or an even root is negative")
        except Unclear:
            pass
    hundred = [Node("product", (node, number("100")), joined=("",)) for node in (one, other)]
    for place, node in enumerate((one, other)):
        if bare(node).kind == "%" and _numbers(hundred[place], (one, other)[1 - place], world).verdict == "equal":
            return depends("if percent are meant")
    return outcome


def _commuted(one: Node, other: Node, world: World, ratio: Fraction = Fraction(1)) -> str:
    """The condition under which factors may change places, if they do: letters of matrices, and sizes of a shape.

    The two are equal as numbers, up to `ratio`.
    """
    trees = [bare(one), bare(other)]
    shapes = all(tree.kind == "product" and set(tree.joined) == {"×"} for tree in trees)
    if shapes and list(map(shown, trees[0].parts)) != list(map(shown, trees[1].parts)):
        return "if a product is meant, not a shape"
    if world.conventions.kind == "formula":
        return ""
    products = [part for tree in trees for part in tree.walk() if part.kind in ("product", "^")]
    factors = [bare(each) for part in products for each in part.parts if bare(each).kind not in ("call", "index")]
    letters = {name for each in factors for name in each.names if name in MATRIX_LETTERS} - world.given.declared
    vectors = {name_of(each) for each in factors if name_of(each) in VECTOR_LETTERS} - world.given.declared
    if len(vectors) == 1:  # W x and x W
        letters |= vectors
    if len(letters) < 2 or not letters & MATRIX_LETTERS:
        return ""
    types = dict.fromkeys(sorted(letters), "matrix")
    scaled = Node("product", (_fraction(abs(ratio)), other), joined=("",))
    if _matrices(one, scaled if ratio not in (1, -1) else other, types, world).verdict == "equal":
        return ""
    return f"if {' and '.join(types)} commute (nothing says whether they are numbers)"


TURNED = "if vectors are rows on one side and columns on the other"


def rows_as_columns(node: Node, types: Mapping[str, str]) -> Node:
    """The transpose of an expression whose vectors are rows: with columns, x W is (x' W)'."""

    def put(part: Node) -> Node:
        if part.kind == "name" and types.get(part.text) == "vector":
            return Node("transpose", (part,))
        return Node(part.kind, tuple(map(put, part.parts)), part.text, part.joined)

    return Node("transpose", (put(node),))


def _turned(one: Node, other: Node, types: dict[str, str], world: World) -> bool:
    """Whether both are equal if the vectors of one side are rows: W x and x W'.

    Small letters beside matrices are taken as vectors.
    """
    letters = {
        name_of(part)
        for tree in (one, other)
        for node in tree.walk()
        if node.kind == "product" and any(types.get(name) == "matrix" for name in node.names)
        for part in node.parts
        if re.fullmatch(LETTER, name_of(part))
    }
    vectors = {**dict.fromkeys(letters - world.given.declared, "vector"), **types}
    if "vector" not in vectors.values() or "matrix" not in vectors.values():
        return False
    for left, right in ((one, other), (other, one)):
        with contextlib.suppress(Unclear):
            forms = MatrixForms(Forms(seconds=world.left), vectors)
            if forms.same(forms.form(rows_as_columns(left, vectors)), forms.form(right)):
                return True
    return False


def _symbols(node: Node) -> set[Node]:
    """Free names, and sizes with a letter as index: d_k."""
    found = {part for part in node.walk() if part.kind == "index" and part.text in SIZE_LETTERS}
    found = {part for part in found if len(part.parts) == 1 and name_of(part.parts[0]) not in ("", "i", "i_", "j")}
    inside = {name_of(part.parts[0]) for part in found}
    return found | {Node("name", text=name) for name in _free(node) - inside}


def _folded(one: Node, other: Node, world: World, *, sizes: bool = False) -> "list[tuple[str, Node, Node]]":
    """Conditions that make names the same, each with both trees under it.

    Names that differ in case (D = d), sizes that differ in their index (d_k = d_v), and, where `sizes`, a size that
    only one side has and a size of the other (M = N).
    """
    symbols = [_symbols(node) for node in (one, other)]
    only = [sorted(symbols[0] - symbols[1], key=shown), sorted(symbols[1] - symbols[0], key=shown)]
    alike = [(left, right) for left in only[0] for right in only[1] if shown(left).lower() == shown(right).lower()]
    tries = [alike] if alike else []
    if len(only[0]) == len(only[1]) == 1 and _base(only[0][0]) == _base(only[1][0]) in SIZE_LETTERS:
        tries.append([(only[0][0], only[1][0])])
    if sizes:
        for place in (0, 1):
            tries += [[(mine, its)] for mine in only[place] for its in sorted(symbols[1 - place], key=shown)]
    found = []
    for pairs in tries:
        if any({shown(left), shown(right)} <= world.given.declared for left, right in pairs):
            continue
        said = " and ".join(sorted(" = ".join(sorted(map(shown, pair))) for pair in pairs))
        found.append((said, _replaced(one, dict(pairs)), _replaced(other, dict(pairs))))
    return found


def _base(node: Node) -> str:
    return node.text.split("_")[0]


def _replaced(node: Node, values: Mapping[Node, Node]) -> Node:
    if node in values:
        return values[node]
    if node.kind in ("sum", "prod", "sum_over", "prod_over"):  # its index is another name
        values = {old: new for old, new in values.items() if old != node.parts[0]}
        rest = tuple(_replaced(part, values) for part in node.parts[1:])
        return Node(node.kind, (node.parts[0], *rest), node.text, node.joined)
    return Node(node.kind, tuple(_replaced(part, values) for part in node.parts), node.text, node.joined)


def _free(node: Node) -> set[str]:
    """Names of numbers; indices of sums are left out."""
    if node.kind == "name":
        return set() if node.text in CONSTANTS else {node.text}
    found = {name for part in node.parts for name in _free(part)}
    return found - {node.parts[0].text} if node.kind in ("sum", "prod", "sum_over", "prod_over") else found


def _positive(trees: Sequence[Node], world: World) -> set[str]:
    """Names above 0: given, or under a square root or logarithm, where both sides are defined only then."""
    found = set(world.given.positive)
    for tree in trees:
        for node in tree.walk():
            rooted = node.kind == "call" and node.text in ("sqrt", "log", "ln", "lg", "log_base")
            rooted |= (
                node.kind == "^" and (exponent := _value(node.parts[1])) is not None and exponent.denominator % 2 == 0
            )
            if rooted and name_of(node.parts[0]):
                found.add(name_of(node.parts[0]))
    return found


def _whole(trees: Sequence[Node], world: World) -> set[str]:
    """Integers: given, or in a factorial, binomial coefficient, bound of a sum or exponent of a negative number."""
    found = set(world.given.whole)
    for tree in trees:
        for node in tree.walk():
            parts: Sequence[Node] = ()
            if node.kind in ("!", "choose"):
                parts = node.parts
            elif node.kind in ("sum", "prod"):
                parts = node.parts[1:3]
            elif node.kind == "^" and bare(node.parts[0]).kind == "neg" and _value(node.parts[0]) is not None:
                parts = node.parts[1:]
            found |= {name for part in parts for name in _free(part)}
    return found


def _always_differ(one: Node, other: Node, world: World) -> bool:
    """Whether two expressions surely differ at every point that was tried."""
    with precise():
        for point in _points(one, other, world):
            with contextlib.suppress(Undefined):
                at = Point(point, _seed(one, other), world.conventions.log, seconds=min(0.1, world.left))
                if not surely_differ(at.value(one), at.value(other)):
                    return False
    return True


def _proved(one: Node, other: Node, world: World, *, unsigned: bool = False) -> bool:
    """Whether the exact forms are the same; unsigned: with |p| taken as p, which is a condition."""
    forms = Forms(
        _positive((one, other), world), _whole((one, other), world), world.conventions.log, seconds=world.left
    )
    forms.unsigned = unsigned
    return forms.same(forms.form(one), forms.form(other))


def _numbers(one: Node, other: Node, world: World) -> Outcome:
    if _infinite(one) or _infinite(other):
        return EQUAL if _infinite(one) == _infinite(other) else different("one of them is infinite")
    if one == other:
        return EQUAL
    reason = ""
    try:
        if _proved(one, other, world):
            if _agree_somewhere(one, other, world):
                return EQUAL
            reason = "both sides are defined at no point that was tried"
    except Unclear as error:
        reason = str(error)
    witness = _witness(one, other, world)
    if witness is not None:
        return different(witness)
    if not _free(one) and not _free(other) and _separated(one, other, world):
        return EQUAL
    return undecided(reason or "they agree at every point that was tried, and no proof was found")


def _separated(one: Node, other: Node, world: World) -> bool:
    """Whether two closed expressions with roots are equal because their difference is below its separation bound."""
    gap = Node("-", (one, other))
    bound = separation(gap)
    if bound is None:
        return False
    upper, lower, degree = bound
    bits = (degree**2 - 1) * upper + lower
    if bits > 30_000:
        return False
    with precise(int(bits) + 200):
        try:
            value = Point({}, seconds=world.left).value(gap)
        except Undefined:
            return False
        return isinstance(value, arb) and bool(abs(value) < arb(2) ** -int(bits + 2))


def _points(one: Node, other: Node, world: World) -> "list[dict[str, Fraction]]":
    """Rational points that satisfy what is given: positive ones first."""
    names = sorted(_free(one) | _free(other) | {name for relation in world.given.relations for name in _free(relation)})
    positive, whole = _positive((one, other), world), _whole((one, other), world)
    indices = _indices((one, other))
    chance = random.Random(_seed(one, other))
    found: list[dict[str, Fraction]] = []
    for attempt in range(POINTS * 6):
        if len(found) >= (POINTS if names else 1) or not world.left:
            break
        signed = attempt % 2 == 1
        point = {}
        for name in names:
            value = (
                Fraction(chance.randint(1, 9))
                if name in whole or attempt % 6 == 5  # powers of negative numbers have whole exponents
                else Fraction(chance.randint(1, 60), chance.choice((7, 11, 13, 20)))
            )
            if attempt % 4 >= 2 and name not in whole:
                value /= 10
            point[name] = -value if signed and name not in positive and chance.random() < 0.5 else value
            if name in indices:
                point[name] = Fraction(chance.randint(1, RANGE))
        if all(_holds(relation, point) is not False for relation in world.given.relations):
            found.append(point)
    return found


def _indices(trees: Sequence[Node]) -> set[str]:
    """Names that are used as an index and nowhere else."""

    def others(node: Node) -> set[str]:
        if node.kind == "index":
            return set()
        return {node.text} if node.kind == "name" else {name for part in node.parts for name in others(part)}

    below = {name for tree in trees for node in tree.walk() if node.kind == "index" for name in node.names}
    return below - {name for tree in trees for name in others(tree)}


def _one_range(trees: Sequence[Node]) -> bool:
    """Whether sums without bounds may be taken over 1, 2, 3 to tell expressions apart.

    Not beside sums with bounds, on one side only, or of weights and probabilities, whose sum may be known to be 1.
    """
    kinds = [[node.kind for node in tree.walk()] for tree in trees]
    counts = [sum(kind in ("sum_over", "prod_over") for kind in each) for each in kinds]
    weights = any(node.kind == "index" and node.text in WEIGHTS for tree in trees for node in tree.walk())
    return not any(counts) or (
        counts[0] == counts[1] and not weights and not any({"sum", "prod"} & {*each} for each in kinds)
    )


def _holds(relation: Node, point: dict[str, Fraction]) -> bool | None:
    """Whether a relation surely holds at a point."""
    try:
        if relation.joined == ("in",):
            region = bare(relation.parts[1])
            if region.kind not in ("interval", "vector") or len(region.parts) != 2:
                return None
            inside = Node("chain", (region.parts[0], relation.parts[0], region.parts[1]), joined=("<", "<"))
            if _infinite(region.parts[0]) or _infinite(region.parts[1]):
                return None
            return _holds(inside, point)
        values = [Point(point).value(part) for part in relation.parts]
    except Undefined:
        return None
    for left, sign, right in zip(values, relation.joined, values[1:], strict=False):
        if isinstance(left, acb) or isinstance(right, acb):
            return None
        holds = {
            "<": left < right,
            "<=": left <= right,
            ">": left > right,
            ">=": left >= right,
            "==": left == right,
            "!=": left != right,
        }
        if not holds[sign]:
            return False
    return True


def _seed(*trees: Node) -> str:
    return "|".join(sorted(map(shown, trees)))


def _agree_somewhere(one: Node, other: Node, world: World) -> bool:
    """Whether both have a value at some point, or a part without one here; a difference at any point is our error."""
    unknown = any(
        node.kind in ("sum_over", "prod_over", "norm") or node.text in ("E", "Var", "Cov", "P", "Pr")
        for tree in (one, other)
        for node in tree.walk()
    )
    agreed = False
    with precise(120):
        for point in _points(one, other, world)[:12]:
            try:
                at = Point(point, _seed(one, other), world.conventions.log, seconds=min(0.1, world.left))
                values = [at.value(one), at.value(other)]
            except Undefined as error:
                unknown |= (
                    "not any function" in str(error)
                    or "not exact" in str(error)
                    or "too long" in str(error)
                    or "large" in str(error)
                    or "many" in str(error)
                )
                continue
            if surely_differ(values[0], values[1]):
                raise Unclear("the proof and a value disagree")
            agreed = True
    return agreed or unknown


def _witness(one: Node, other: Node, world: World) -> str | None:
    """A point at which two expressions surely differ."""
    if not _one_range((one, other)):
        return None
    points = _points(one, other, world)
    with precise():
        for point in points:
            if not world.left:
                return None
            at = Point(point, _seed(one, other), world.conventions.log, seconds=min(0.2, world.left))
            try:
                values = [at.value(one), at.value(other)]
            except Undefined:
                continue
            if surely_differ(values[0], values[1]):
                told = [f"{name} = {value}" for name, value in sorted(point.items())]
                told += [f"{name} = {value}" for name, value in sorted(at.free.items())]
                return f"{_number_shown(values[0])} and {_number_shown(values[1])}" + (
                    f" at {', '.join(told)}" if told else ""
                )
    return None


def _number_shown(value: fmpq | arb | acb) -> str:
    text = str(value) if isinstance(value, fmpq) else value.str(8, radius=False)
    return text if len(text) <= 40 else f"{text[:18]}...{text[-18:]}"


def _matrices(one: Node, other: Node, types: dict[str, str], world: World) -> Outcome:
    reason = "no proof was found, and no matrices that tell them apart"
    try:
        forms = MatrixForms(
            Forms(
                _positive((one, other), world), _whole((one, other), world), world.conventions.log, seconds=world.left
            ),
            types,
        )
        if forms.same(forms.form(one), forms.form(other)):
            return EQUAL
    except Unclear as error:
        reason = str(error)
    from likewise.grading.arrays import MatrixPoint, arrays_differ, random_arrays  # loads numpy

    names = sorted((_free(one) | _free(other)) - set(types))
    with precise():
        for attempt in range(4):
            seed = f"{attempt}:{_seed(one, other)}"
            size = 2 + attempt % 2
            chance = random.Random(seed)
            values = {name: Fraction(chance.randint(1, 30), 7) for name in names}
            point = MatrixPoint(
                values, random_arrays(types, world.given.shapes, seed, size), size, world.conventions.log
            )
            try:
                found = [point.value(one), point.value(other)]
            except Undefined as error:
                reason = str(error)
                continue
            if arrays_differ(found[0], found[1]):
                arrays = [
                    f"{name} = {[[int(each) for each in row] for row in point.arrays[name].tolist()]}"
                    for name in sorted(types)
                ]
                return different(f"they differ at {', '.join(arrays)}")
    return undecided(reason)


# Equations and inequalities


def _gap(node: Node, forms: Forms) -> Ratio:
    return forms.form(Node("-", (node.parts[0], node.parts[1])))


def _equations(one: Node, other: Node, world: World) -> Outcome:
    trees = [substituted(node, world.given.values) for node in (one, other)]
    types = {**inferred_types([part for tree in trees for part in tree.parts]), **world.given.types}
    if types := {name: kind for name, kind in types.items() if any(name in tree.names for tree in trees)}:
        return _matrix_equations(trees, types, world)
    names = sorted(_free(one) | _free(other))
    forms = Forms(_positive(trees, world), _whole(trees, world), world.conventions.log, seconds=world.left)
    gaps = [_gap(tree, forms) for tree in trees]
    if any(gap.top == 0 for gap in gaps):  # an identity
        if all(gap.top == 0 for gap in gaps):
            same = forms.same(forms.form(trees[0].parts[0]), forms.form(trees[1].parts[0]))
            return EQUAL if same else undecided("two equations that always hold")
        open_one = trees[0] if gaps[1].top == 0 else trees[1]
        witness = _witness(*open_one.parts, world)
        return different(f"one of them always holds, the other has {witness}") if witness else undecided("an identity")
    ratio = forms.over(gaps[0], gaps[1]) if gaps[1].top != 0 else None
    if ratio is not None and (fixed := rational(ratio)) is not None and fixed:
        flat = [Node("-", tree.parts) for tree in trees]
        said = _commuted(flat[0], flat[1] if fixed > 0 else Node("neg", (flat[1],)), world, fixed)
        return depends(said) if said else EQUAL
    chance = random.Random(_seed(*trees))
    for place, gap in enumerate(gaps):  # a point of one that is none of the other
        for name in names:
            if forms.atom("name", name) >= len(GENERATORS) or gap.top.degrees()[forms.atom("name", name)] != 1:
                continue
            if any(atom.kind not in ("name",) for atom in forms.atoms):
                break
            for _ in range(4):
                values = {each: Fraction(chance.randint(-30, 30), 7) for each in names if each != name}
                point = _root_of(trees[place], name, values)
                if point is not None and _holds(Node("chain", trees[1 - place].parts, joined=("==",)), point) is False:
                    told = ", ".join(f"{each} = {value}" for each, value in sorted(point.items()))
                    return different(f"{told} solves one of the equations only")
    crossing = _crossing(gaps, forms, names, chance)
    return different(crossing) if crossing else undecided("two equations that are not multiples of each other")


def _crossing(gaps: list[Ratio], forms: Forms, names: list[str], chance: random.Random) -> str:
    """A root of one equation, enclosed by a change of sign, at which the other surely does not hold; or nothing."""
    if any(gap.bottom != ONE for gap in gaps) or any(atom.kind != "name" for atom in forms.atoms):
        return ""
    for mine, its in ((gaps[0], gaps[1]), (gaps[1], gaps[0])):
        for name, _ in itertools.product(names, range(3)):
            values = {each: fmpq(chance.randint(-20, 20), 7) for each in names}
            for low in range(-12, 12):
                ends = [fmpq(low), fmpq(low + 1)]
                signs = [_at(mine.top, forms, {**values, name: end}) for end in ends]
                if not signs[0] * signs[1] < 0:
                    continue
                for _ in range(60):
                    middle = (ends[0] + ends[1]) / 2
                    side = _at(mine.top, forms, {**values, name: middle})
                    ends = [middle, ends[1]] if side * signs[0] > 0 else [ends[0], middle]
                with precise():
                    around = arb((ends[0] + ends[1]) / 2, (ends[1] - ends[0]))
                    if not _at(its.top, forms, {**values, name: around}).contains(0):
                        rest = "".join(f", {each} = {values[each]}" for each in names if each != name)
                        return f"{name} = {around.str(8, radius=False)}...{rest} solves one of the equations only"
    return ""


def _at(poly: Any, forms: Forms, values: Mapping[str, Any]) -> Any:
    """The value of a polynomial in names."""
    total = fmpq(0)
    for exponents, coefficient in poly.terms():
        term = coefficient
        for atom, exponent in zip(forms.atoms, exponents, strict=False):
            if exponent:
                term = term * values[atom.text] ** int(exponent)
        total = total + term
    return total


def _matrix_equations(trees: list[Node], types: dict[str, str], world: World) -> Outcome:
    """Equations between vectors or matrices: the same statement, or a law against one that does not hold."""
    forms = MatrixForms(Forms(_positive(trees, world), _whole(trees, world), seconds=world.left), types)
    sides = [[forms.form(part) for part in tree.parts] for tree in trees]
    laws = [forms.same(*each) for each in sides]
    if any(
        forms.same(sides[0][0], sides[1][place]) and forms.same(sides[0][1], sides[1][1 - place]) for place in (0, 1)
    ):
        return EQUAL
    if laws[0] != laws[1]:
        outcome = _matrices(*trees[laws[0]].parts, types, world)
        return (
            different(f"one of them holds always, in the other {outcome.why}")
            if outcome.verdict == "different"
            else outcome
        )
    return undecided("two laws that hold" if all(laws) else "two equations of vectors or matrices")


def _root_of(tree: Node, name: str, values: dict[str, Fraction]) -> dict[str, Fraction] | None:
    """The point of an equation that is linear in a name."""
    try:
        ends = [Point({**values, name: Fraction(end)}).value(Node("-", tree.parts)) for end in (0, 1)]
    except Undefined:
        return None
    if not all(isinstance(end, fmpq) for end in ends) or ends[0] == ends[1]:
        return None
    root = ends[0] / (ends[0] - ends[1])
    point = {**values, name: Fraction(int(root.numerator), int(root.denominator))}
    return point if _holds(Node("chain", tree.parts, joined=("==",)), point) else None


def _inequalities(one: Node, other: Node, world: World) -> Outcome:
    if len(one.joined) != 1 or len(other.joined) != 1:
        return undecided("inequalities with several signs") if one != other else EQUAL
    forms = Forms(
        _positive((one, other), world), _whole((one, other), world), world.conventions.log, seconds=world.left
    )
    gaps = []
    for node in (one, other):
        turned, strict = ORDERED[node.joined[0]]
        gap = _gap(node, forms)
        gaps.append((gap if turned else forms.negative(gap), strict))
    ratio = forms.over(gaps[0][0], gaps[1][0]) if gaps[1][0].top != 0 else None
    if ratio is not None and (fixed := rational(ratio)) is not None and fixed > 0 and gaps[0][1] == gaps[1][1]:
        return EQUAL
    with precise():
        for point in _points(one, other, world):
            holds = [_surely(node, point) for node in (one, other)]
            if None not in holds and holds[0] != holds[1]:
                return different(
                    "one of them only holds at "
                    + ", ".join(f"{name} = {value}" for name, value in sorted(point.items()))
                )
    if ratio is not None and rational(ratio) is not None and gaps[0][1] != gaps[1][1]:
        return different("one of them includes equality")
    return undecided("inequalities that no point tells apart")


def _surely(node: Node, point: dict[str, Fraction]) -> bool | None:
    try:
        left, right = (Point(point).value(part) for part in node.parts)
    except Undefined:
        return None
    if isinstance(left, acb) or isinstance(right, acb) or not surely_differ(left, right):
        return None
    return bool(left > right) if ORDERED[node.joined[0]][0] else bool(left < right)
