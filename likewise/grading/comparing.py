"""Two answers compared by kind: equal with a proof, different with a witness, depends with a condition."""

import itertools
import re

from likewise.grading.arithmetic import Unclear
from likewise.grading.balls import Point, Undefined, precise
from likewise.grading.conditions import scalars
from likewise.grading.entries import has_array, rows_of
from likewise.grading.equations import compare_equations, compare_inequalities
from likewise.grading.families import compare_families, family, if_integers, integer_name
from likewise.grading.given import name_of, substituted
from likewise.grading.names import LAWS
from likewise.grading.numbers import CONSTANTS, ORDERED, free_names
from likewise.grading.orders import compare_orders, joined_orders
from likewise.grading.outcomes import EQUAL, Outcome, World, all_of, depends, different, undecided
from likewise.grading.parsing import bare, sizes_of
from likewise.grading.quantities import compare_quantities
from likewise.grading.regions import compare_regions, interval_of, is_curved, solution_of
from likewise.grading.showing import shown
from likewise.reading.expressions import Node
from likewise.reading.latex import Unread


class Contradicted(Unread):
    """An answer that states a false equality between numbers."""


def compared(one: Node, other: Node, world: World) -> Outcome:
    """The outcome for two answers."""
    try:
        one, other = (simplified(node, world) for node in (one, other))
        return _by_kind(one, other, world)
    except (Unread, Unclear) as error:
        return Outcome("undecided", str(error), is_contradicted=isinstance(error, Contradicted))


def simplified(node: Node, world: World) -> Node:
    """A statement as the value that it gives: x = 5 is 5, x in S is S, a list is a set, a sign ± is two values."""
    node = joined_orders(bare(node))
    match node.kind:
        case "chain":
            return _chained(node, world)
        case "list":
            listed = _listed(node, world)
            if node.text == "or" and all(part.kind == "interval" for part in listed.parts):
                return Node("union", listed.parts)
            return listed
        case "where":
            return interval_of(node.parts[1], name_of(node.parts[0]), world)
        case "congruent" if name_of(node.parts[0]):  # x = 3 (mod 7) is x = 3 + 7*k for all integers k
            turns = Node("product", (node.parts[2], Node("name", text="k_")), joined=("",))
            return family((Node("+", (node.parts[1], turns)),), "k_")
        case "law_of":
            return node.parts[1]
        case "set":
            parts = [simplified(part, world) for part in node.parts]
            signed = [any(each.kind == "pm" for each in part.walk()) for part in node.parts]  # {0, ±1}
            flat = [
                each for part, both in zip(parts, signed, strict=True) for each in (part.parts if both else (part,))
            ]
            return Node("set", tuple(flat))
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
    if _measured(node):
        return shown(node)
    if node.kind == "index" or (node.kind == "call" and node.parts and all(name_of(part) for part in node.parts)):
        return f"{node.text}({', '.join(name_of(part) or '#' for part in node.parts)})"
    return ""


def _measured(node: Node) -> bool:
    """Whether a tree names a quantity of a figure: AB, |AB|, AB/CD."""
    node = bare(node)
    if node.kind == "product":
        return {*node.joined} == {""} and all(re.fullmatch(r"[A-Z]", name_of(part)) for part in node.parts)
    return node.kind in ("abs", "/") and all(map(_measured, node.parts))


def _chained(node: Node, world: World) -> Node:
    relations = set(node.joined)
    if relations == {"in"} and len(node.parts) == 2:
        world.notes.append(f"{_head(node.parts[0]) or 'the left side'} is in the set")
        return simplified(node.parts[1], world)
    if relations <= {"==", ":=", "approx", "equiv"}:
        if "equiv" in relations:
            raise Unread("a congruence")
        return _equated(node, world)
    if relations == {"!="} and len(node.parts) == 2 and name_of(node.parts[0]):
        point = simplified(node.parts[1], world)
        return Node("without", (Node("name", text="bb_R"), Node("set", (point,))), joined=(name_of(node.parts[0]),))
    if relations <= set(ORDERED):
        node = _range_of_values(node)
        names = {part.text for part in node.walk() if part.kind == "name"} - CONSTANTS
        if len(names) == 1:
            try:
                name = names.pop()
                return interval_of(node, name, world) if not is_curved(node, name) else solution_of(node, name, world)
            except (Unclear, Unread):
                pass
        return Node("inequality", node.parts, joined=node.joined)
    raise Unread(f"the relation {node.joined[0]}")


def _range_of_values(node: Node) -> Node:
    """0 < f(x) < 1 with a name for the value f(x)."""
    values = {
        bare(part) for part in node.parts if bare(part).kind == "call" and re.fullmatch(r"[fghF]", bare(part).text)
    }
    if len(values) != 1:
        return node
    value = values.pop()
    parts = [Node("name", text=f"{value.text}_value") if bare(part) == value else part for part in node.parts]
    return Node("chain", tuple(parts), joined=node.joined)


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
    if _measured(left) and (len(sides) != 2 or free_names(sides[1]) - CONSTANTS):
        head = ""  # AB = C may be an equation between matrices
    indexed = {part.text for side in sides[1:] for part in side.walk() if part.kind in ("index", "call")}
    if head and name not in (
        indexed if left.kind == "index" else {each for part in sides[1:] for each in _all_names(part)}
    ):
        sides = sides[1:]
        world.notes.append(f"the value of {head} was taken")
    elif len(sides) == 2 and any(_all_names(side) - CONSTANTS for side in sides):
        return Node("equation", tuple(sides))
    for left, right in itertools.pairwise(sides):
        outcome = compared(left, right, world)
        if outcome.verdict == "different":
            raise Contradicted(f"it states an equality that does not hold ({outcome.why})")
        if outcome.verdict != "equal":
            raise Unread("a chain of equalities that is not proved")
    value = simplified(sides[-1], world)
    if left.kind == "vector" and value.kind == "vector" and len(left.parts) == len(value.parts):  # (x, y) = (1, 2)
        pairs = sorted(zip(map(name_of, left.parts), value.parts, strict=True), key=lambda pair: pair[0])
        names = tuple(map(name_of, left.parts))  # their order is said
        return Node("assigned", tuple(Node("defined", (each,), name) for name, each in pairs), " ".join(names), names)
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
    integers = [integer_name(part) for part in node.parts]
    if len(names := [name for name in integers if name]) == 1 and len(node.parts) > 1:  # x = 2*pi*k, k in Z
        rest = tuple(part for part, name in zip(node.parts, integers, strict=True) if not name)
        values = simplified(rest[0] if len(rest) == 1 else Node("list", rest, "or"), world)
        return family(values.parts if values.kind in ("set", "defined") else (values,), names[0])
    parts = [simplified(part, world) for part in node.parts]
    heads = [part.text for part in parts if part.kind == "defined"]
    if heads and len(heads) == len(parts):
        if len(set(heads)) == len(heads) > 1:
            if node.text == "or":
                raise Unread("one of several statements")
            return Node("assigned", tuple(sorted(parts, key=lambda part: part.text)), text=" ".join(heads))
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
    return Node("set", tuple(parts), "values" if heads or node.text == "or" else "list")


def _by_kind(one: Node, other: Node, world: World) -> Outcome:
    if not world.left:
        raise Unclear("it took too long")
    kinds = {one.kind, other.kind}
    if "defined" in kinds and "family" not in kinds:
        return _defined(one, other, world)
    if "assigned" in kinds:
        return _assigned(one, other, world)
    if kinds & {"inequality"}:
        return (
            compare_inequalities(one, other, world)
            if kinds == {"inequality"}
            else undecided("an inequality and something else")
        )
    if kinds & {"equation", "system"}:
        if kinds == {"equation"}:
            return compare_equations(one, other, world)
        return _sets(one, other, world) if kinds == {"system"} else _equation_and_value(one, other, world)
    if "einsum" in kinds or "law" in kinds or "order" in kinds:
        if "order" in kinds:
            return compare_orders(one, other, world)
        one, other = (_as_law(node) if kinds == {"law", "call"} else node for node in (one, other))
        if one.kind != other.kind:
            return undecided(f"a {one.kind} and a {other.kind}")
        return _laws(one, other, world)
    if "family" in kinds:
        return compare_families(one, other, world)
    region = {"interval", "union", "without", "meet"}
    if kinds & region or (kinds == {"vector", "name"} and "bb_R" in (one.text, other.text)):
        return compare_regions(one, other, world)
    if "set" in kinds:
        return _as_sets(one, other, world)
    if "ratio" in kinds:
        return _ratios(one, other, world)
    if kinds == {"vector", "product"} and (shape := _as_shape(one, other, world)) is not None:
        return shape
    if any(map(has_array, (one, other))):
        return _arrays(one, other, world)
    if "unit" in kinds:
        return compare_quantities(one, other, world)
    outcome = scalars(one, other, world)
    return (outcome.verdict == "different" and if_integers(one, other, world)) or outcome


def _equation_and_value(one: Node, other: Node, world: World) -> Outcome:
    """An equation whose left side is the other expression states a value for it: (AB)^-1 = B^-1 A^-1."""
    equation, value = (one, other) if one.kind == "equation" else (other, one)
    if equation.kind == "equation" and value.kind not in ("set", "vector", "interval", "union", "order"):
        same = _by_kind(equation.parts[0], value, world)
        if same.verdict == "equal":
            return _by_kind(equation.parts[1], value, world)
    return undecided("an equation and something else")


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
                return compare_equations(
                    sides, Node("equation", (Node("name", text=value.text), value.parts[0])), world
                )
    outcome = _by_kind(values[0], values[1], world)
    if len(heads) == 1 and outcome.verdict == "different" and len(one.joined + other.joined) == 1:
        (parameter,) = one.joined + other.joined  # f(x) = x^2 beside t^2
        plain = next(node for node in (one, other) if node.kind != "defined")
        if len(names := free_names(plain)) == 1:
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
    return compare_equations(sides[0], sides[1], world)  # y = 2x, x = y/2


def _assigned(one: Node, other: Node, world: World) -> Outcome:
    if one.kind == other.kind:
        names = [[part.text for part in node.parts] for node in (one, other)]
        if names[0] != names[1]:
            return undecided("values of different names")
        return all_of(
            [_by_kind(left.parts[0], right.parts[0], world) for left, right in zip(one.parts, other.parts, strict=True)]
        )
    values, rest = (one, other) if one.kind == "assigned" else (other, one)
    written = values.text.split()
    if rest.kind in ("vector", "set") and len(rest.parts) == len(values.parts):
        by_name = {part.text: part.parts[0] for part in values.parts}
        in_order, by_letter = (
            all_of([_by_kind(by_name[name], bare(each), world) for name, each in zip(names, rest.parts, strict=True)])
            for names in (written, sorted(written))
        )
        if rest.kind == "vector" and values.joined:
            return in_order
        if in_order.verdict == "equal" and rest.text == "list":  # x = 3, y = -4 beside 3, -4
            return EQUAL
        if rest.kind == "vector":
            if written == sorted(written) and _in_a_row(written):  # (x, y), (a, b, c): everybody's order
                return in_order
            outcome = by_letter if in_order.verdict != "equal" else in_order
            if outcome.verdict != "equal":
                return undecided("the order of the entries is not said")
            return depends(f"if the entries are ({', '.join(written if outcome is in_order else sorted(written))})")
        unnamed = Node("set", tuple(part.parts[0] for part in values.parts))
        if _sets(unnamed, rest, world).verdict == "equal":  # x_1 = 1, x_2 = 2 beside 2, 1
            return depends("if the names of the values do not matter")
    return undecided("values of several names, and something else")


def _in_a_row(names: list[str]) -> bool:
    """Whether names follow each other in the alphabet or in their numbers: x, y, z; x_1, x_2."""
    if all(len(name) == 1 for name in names):
        return [ord(name) - ord(names[0]) for name in names] == list(range(len(names)))
    ends = [re.fullmatch(r"(\w)_(\d)", name) for name in names]
    return all(ends) and [each.groups() for each in ends if each] == [
        (names[0][0], str(place)) for place in range(int(names[0][-1]), int(names[0][-1]) + len(names))
    ]


def _as_sets(one: Node, other: Node, world: World) -> Outcome:
    if one.kind == other.kind == "set":
        return _sets(one, other, world)
    several, single = (one, other) if one.kind == "set" else (other, one)
    if single.kind == "vector" and several.text == "list":
        if len(single.parts) != len(several.parts):
            return different(f"{len(several.parts)} entries and {len(single.parts)}")
        outcome = all_of(
            [_by_kind(a, simplified(b, world), world) for a, b in zip(several.parts, single.parts, strict=True)]
        )
        if outcome.verdict != "equal":
            return undecided("a list and a tuple")
        closed = single.text == "[]" and len(single.parts) == 2
        return depends("if a list is meant, not an interval") if closed else EQUAL
    if len(several.parts) == 1:
        return _by_kind(several.parts[0], single, world)
    if single.kind in ("vector", "matrix"):
        return undecided("a set and a tuple")
    return _sets(several, Node("set", (single,)), world)


def _sets(one: Node, other: Node, world: World) -> Outcome:
    rows = [_distinct(list(node.parts), world) for node in (one, other)]
    if len(rows[0]) * len(rows[1]) > 100:
        return undecided("too many elements")
    table = [[_elements(left, right, world) for right in rows[1]] for left in rows[0]]
    columns = [list(column) for column in zip(*table, strict=True)] if table and table[0] else [[] for _ in rows[1]]
    for elements, lines in ((rows[0], table), (rows[1], columns)):
        for element, line in zip(elements, lines, strict=True):
            if all(outcome.verdict == "different" for outcome in line):
                return different(f"{shown(element)} is in one of the sets only")
    paired = [any(outcome.verdict == "equal" for outcome in line) for line in (*table, *columns)]
    if all(paired):
        told = one.text == "list" or other.text == "list"
        repeated = any(len(distinct) != len(node.parts) for distinct, node in zip(rows, (one, other), strict=True))
        tuples = any(bare(part).kind == "vector" for part in one.parts)
        if told and repeated and not tuples and not _same_repeated(list(one.parts), list(other.parts), world):
            return depends("if repeated values count once")
        return EQUAL
    for line in (*table, *columns):
        if not any(outcome.verdict == "equal" for outcome in line):
            return next(
                (each for each in line if each.verdict == "depends"),
                next(each for each in line if each.verdict != "different"),
            )
    return undecided("sets whose elements are not told apart")


def _elements(one: Node, other: Node, world: World) -> Outcome:
    """Two elements; a set that is an element is not the element that it holds."""
    one, other = bare(one), bare(other)
    if (one.kind == "set") != (other.kind == "set"):
        return undecided("a set and an element")
    return _by_kind(one, other, world)


def _same_repeated(ones: list[Node], others: list[Node], world: World) -> bool:
    """Whether each value is in both lists equally often."""
    for one in ones:
        place = next((n for n, each in enumerate(others) if _elements(one, each, world).verdict == "equal"), None)
        if place is None:
            return False
        del others[place]
    return not others


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
    outcome = all_of(
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
    outcome = all_of([_entry(left, right, world) for left, right in zip(*sizes, strict=True)])
    if outcome.verdict == "equal" and not free_names(product) and not world.shape:
        return depends("if a shape is meant, not a product")
    return outcome


def _arrays(one: Node, other: Node, world: World) -> Outcome:
    rows = [rows_of(node) for node in (one, other)]
    sizes = [(len(each), len(each[0])) for each in rows]
    if sizes[0] != sizes[1]:
        flat = [[entry for row in each for entry in row] for each in rows]
        if 1 in sizes[0] and 1 in sizes[1] and len(flat[0]) == len(flat[1]):
            tuples = [node.kind == "vector" for node in (one, other)]
            outcome = all_of([_entry(left, right, world) for left, right in zip(*flat, strict=True)])
            if outcome.verdict == "equal" and not any(tuples):
                return depends("if a row and a column are not told apart")
            return outcome
        return different(f"shape {sizes[0]} and shape {sizes[1]}")
    outcome = all_of(
        [
            _entry(left, right, world)
            for ones, others in zip(*rows, strict=True)
            for left, right in zip(ones, others, strict=True)
        ]
    )
    pairs = one.kind == other.kind == "vector" and len(one.parts) == 2 and one.text != other.text
    doubt = pairs and not world.shape and outcome.verdict == "equal"
    return depends("if a pair is meant, not an interval") if doubt else outcome


def _entry(one: Node, other: Node, world: World) -> Outcome:
    return _by_kind(simplified(one, world), simplified(other, world), world)


def _as_law(node: Node) -> Node:
    """U(0, 1) beside a law, as a law."""
    return Node("law", node.parts, LAWS[node.text]) if node.kind == "call" and node.text in LAWS else node


def _laws(one: Node, other: Node, world: World) -> Outcome:
    if one.kind == "einsum":
        return undecided("an einsum is compared as text")
    if one.text != other.text:
        return different(f"a {one.text} law and a {other.text} law")
    if len(one.parts) != len(other.parts):
        return undecided("laws with different numbers of parameters")
    return all_of([_entry(left, right, world) for left, right in zip(one.parts, other.parts, strict=True)])
