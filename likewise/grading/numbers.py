"""Two expressions of numbers or matrices: equal by an exact form, different at a point, or neither."""

import contextlib
import random
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from flint import acb, arb, fmpq

from likewise.grading.algebra import Forms
from likewise.grading.arithmetic import Unclear, rational
from likewise.grading.balls import RANGE, Point, Undefined, Unknown, precise, separation, surely_differ
from likewise.grading.given import name_of, renamed
from likewise.grading.matrices import MatrixForms
from likewise.grading.outcomes import EQUAL, Outcome, World, different, undecided
from likewise.grading.parsing import bare
from likewise.grading.showing import shown
from likewise.reading.expressions import Node, number

POINTS = 24
WEIGHTS = {"p", "q", "w", "a", "alpha", "pi", "lambda"}
CONSTANTS = {"pi", "e", "i", "infty"}
ORDERED = {"<": (False, True), "<=": (False, False), ">": (True, True), ">=": (True, False)}  # (turned, strict)


def signed_fraction_node(value: Fraction) -> Node:
    return Node("neg", (fraction_node(-value),)) if value < 0 else fraction_node(value)


def infinity_of(node: Node) -> str:
    node = bare(node)
    if name_of(node) == "infty":
        return "+"
    return "-" if node.kind == "neg" and name_of(node.parts[0]) == "infty" else ""


def value_of(node: Node) -> Fraction | None:
    try:
        return rational(Forms().form(node))
    except Unclear:
        return None


def fraction_node(value: Fraction) -> Node:
    return Node("/", (number(str(value.numerator)), number(str(value.denominator))))


def free_names(node: Node) -> set[str]:
    """Names of numbers; indices of sums are left out."""
    if node.kind == "name":
        return set() if node.text in CONSTANTS else {node.text}
    found = {name for part in node.parts for name in free_names(part)}
    return found - {node.parts[0].text} if node.kind in ("sum", "prod", "sum_over", "prod_over") else found


def positive_names(trees: Sequence[Node], world: World) -> set[str]:
    """Names above 0: given, or under a square root or logarithm, where both sides are defined only then."""
    found = set(world.given.positive)
    for tree in trees:
        for node in tree.walk():
            if node.kind in ("floor", "ceil") and bare(node.parts[0]).kind == "/":  # divided by a size
                found |= counted_names(Node(node.kind, (Node("/", bare(node.parts[0]).parts[1:] * 2),)))
            rooted = node.kind == "call" and node.text in ("sqrt", "log", "ln", "lg", "log_base")
            rooted |= (
                node.kind == "^" and (exponent := value_of(node.parts[1])) is not None and exponent.denominator % 2 == 0
            )
            if rooted and name_of(node.parts[0]):
                found.add(name_of(node.parts[0]))
    return found


def whole_names(trees: Sequence[Node], world: World) -> set[str]:
    """Integers: given, or in a factorial, binomial coefficient, bound of a sum or exponent of a negative number."""
    found = set(world.given.whole)
    for tree in trees:
        for node in tree.walk():
            parts: Sequence[Node] = ()
            if node.kind in ("!", "choose"):
                parts = node.parts
            elif node.kind in ("floor", "ceil"):
                found |= counted_names(node)
            elif node.kind in ("sum", "prod"):
                parts = node.parts[1:3]
            elif node.kind == "^" and bare(node.parts[0]).kind == "neg" and value_of(node.parts[0]) is not None:
                parts = node.parts[1:]
            found |= {name for part in parts for name in free_names(part)}
    return found


COUNTED = {*"bcdhijklmnprswBCDHKLMNPRSTW"}


def counted_names(node: Node) -> set[str]:
    """Sizes in a rounded quotient, such as n in floor(n/2): they are integers."""
    if not any(part.kind == "/" for part in node.walk()):
        return set()
    names = free_names(node)
    return names if all(name.split("_")[0] in COUNTED for name in names) else set()


def always_differ(one: Node, other: Node, world: World) -> bool:
    """Whether two expressions surely differ at every point that was tried."""
    with precise():
        for point in points_of(one, other, world):
            with contextlib.suppress(Undefined):
                at = Point(point, seed_of(one, other), world.conventions.log, seconds=min(0.1, world.left))
                if not surely_differ(at.value(one), at.value(other)):
                    return False
    return True


def proved(one: Node, other: Node, world: World, *, unsigned: bool = False) -> bool:
    """Whether the exact forms are the same; unsigned: with |p| taken as p, which is a condition."""
    forms = Forms(
        positive_names((one, other), world), whole_names((one, other), world), world.conventions.log, seconds=world.left
    )
    forms.unsigned = unsigned
    return forms.same(forms.form(one), forms.form(other))


def compare_numbers(one: Node, other: Node, world: World) -> Outcome:
    if infinity_of(one) or infinity_of(other):
        return EQUAL if infinity_of(one) == infinity_of(other) else different("one of them is infinite")
    if one == other or same_but_for_order(one, other):
        return EQUAL
    reason = ""
    try:
        if proved(one, other, world):
            if agree_somewhere(one, other, world):
                return EQUAL
            reason = "both sides are defined at no point that was tried"
    except Unclear as error:
        reason = str(error)
    witness = witness_of(one, other, world)
    if witness is not None:
        return different(witness)
    if not free_names(one) and not free_names(other) and _separated(one, other, world):
        return EQUAL
    return undecided(reason or "they agree at every point that was tried, and no proof was found")


def same_but_for_order(one: Node, other: Node) -> bool:
    """Whether two trees differ only in the order of their terms and in the names of indices of sums."""
    return _same_bound(one) == _same_bound(other)


def _terms(node: Node, sign: str) -> list[tuple[str, Node]]:
    node = bare(node)
    if node.kind in ("+", "-"):
        turned = sign if node.kind == "+" else "-+"[sign == "-"]
        return [*_terms(node.parts[0], sign), *_terms(node.parts[1], turned)]
    return _terms(node.parts[0], "-+"[sign == "-"]) if node.kind == "neg" else [(sign, node)]


def _same_bound(node: Node, depth: int = 0) -> Node:
    """The tree with terms in one order, and with the same names for the indices of sums and products."""
    node = bare(node)
    if node.kind in ("+", "-", "neg"):
        signed = sorted(((sign, _same_bound(each, depth)) for sign, each in _terms(node, "+")), key=repr)
        return Node("terms", tuple(each for _, each in signed), "".join(sign for sign, _ in signed))
    if node.kind in ("sum", "prod", "sum_over", "prod_over"):
        index, *bounds, body = node.parts
        name = f"index {depth}"
        parts = [Node("name", text=name), *(_same_bound(each, depth) for each in bounds)]
        return Node(node.kind, (*parts, _same_bound(renamed(body, {index.text: name}), depth + 1)), node.text)
    return Node(node.kind, tuple(_same_bound(part, depth) for part in node.parts), node.text, node.joined)


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


def points_of(one: Node, other: Node, world: World) -> "list[dict[str, Fraction]]":
    """Rational points that satisfy what is given: positive ones first."""
    names = sorted(
        free_names(one)
        | free_names(other)
        | {name for relation in world.given.relations for name in free_names(relation)}
    )
    positive, whole = positive_names((one, other), world), whole_names((one, other), world)
    indices = index_names((one, other))
    chance = random.Random(seed_of(one, other))
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
        if all(holds_at(relation, point) is not False for relation in world.given.relations):
            found.append(point)
    return found


def index_names(trees: Sequence[Node]) -> set[str]:
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


def holds_at(relation: Node, point: dict[str, Fraction]) -> bool | None:
    """Whether a relation surely holds at a point."""
    try:
        if relation.joined == ("in",):
            region = bare(relation.parts[1])
            if region.kind not in ("interval", "vector") or len(region.parts) != 2:
                return None
            inside = Node("chain", (region.parts[0], relation.parts[0], region.parts[1]), joined=("<", "<"))
            if infinity_of(region.parts[0]) or infinity_of(region.parts[1]):
                return None
            return holds_at(inside, point)
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


def seed_of(*trees: Node) -> str:
    return "|".join(sorted(map(shown, trees)))


def agree_somewhere(one: Node, other: Node, world: World) -> bool:
    """Whether both have a value at some point, or a part without one here; a difference at any point is our error."""
    unknown = any(
        node.kind in ("sum_over", "prod_over", "norm") or node.text in ("E", "Var", "Cov", "P", "Pr", "infty")
        for tree in (one, other)
        for node in tree.walk()
    )
    agreed = False
    with precise(120):
        for point in points_of(one, other, world)[:12]:
            try:
                at = Point(point, seed_of(one, other), world.conventions.log, seconds=min(0.1, world.left))
                values = [at.value(one), at.value(other)]
            except Undefined as error:
                unknown |= isinstance(error, Unknown)
                continue
            if surely_differ(values[0], values[1]):
                raise Unclear("the proof and a value disagree")
            agreed = True
    return agreed or unknown


def witness_of(one: Node, other: Node, world: World) -> str | None:
    """A point at which two expressions surely differ."""
    if not _one_range((one, other)):
        return None
    points = points_of(one, other, world)
    with precise():
        for point in points:
            if not world.left:
                return None
            at = Point(point, seed_of(one, other), world.conventions.log, seconds=min(0.2, world.left))
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


def compare_matrices(one: Node, other: Node, types: dict[str, str], world: World) -> Outcome:
    reason = "no proof was found, and no matrices that tell them apart"
    if same_but_for_order(one, other):
        return EQUAL
    shapes = {name: shape for name, shape in world.given.shapes.items() if name in types}
    sized = {each for shape in shapes.values() for each in shape if not each.isdigit()}
    try:
        forms = MatrixForms(
            Forms(
                positive_names((one, other), world) | sized,
                whole_names((one, other), world) | sized,
                world.conventions.log,
                seconds=world.left,
            ),
            types,
            shapes,
        )
        if forms.same(forms.form(one), forms.form(other)):
            return EQUAL
    except Unclear as error:
        reason = str(error)
    from likewise.grading.arrays import MatrixPoint, arrays_differ, random_arrays  # loads numpy

    names = sorted((free_names(one) | free_names(other)) - set(types))
    with precise():
        for attempt in range(4):
            seed = f"{attempt}:{seed_of(one, other)}"
            size = 2 + attempt % 2
            chance = random.Random(seed)
            values = {name: Fraction(chance.randint(1, 30), 7) for name in names}
            arrays, sizes = random_arrays(types, shapes, seed, size)
            values |= {name: Fraction(each) for name, each in sizes.items() if name in values}
            point = MatrixPoint(values, arrays, size, world.conventions.log)
            try:
                found = [point.value(one), point.value(other)]
                differ = arrays_differ(found[0], found[1])
            except Undefined as error:
                reason = str(error)
                continue
            if differ:
                told = [
                    f"{name} = {[[int(each) for each in row] for row in point.arrays[name].tolist()]}"
                    for name in sorted(types)
                ]
                return different(f"they differ at {', '.join(told)}")
    return undecided(reason)


def polynomial_at(poly: Any, forms: Forms, values: Mapping[str, Any]) -> Any:
    """The value of a polynomial in names."""
    total = fmpq(0)
    for exponents, coefficient in poly.terms():
        term = coefficient
        for atom, exponent in zip(forms.atoms, exponents, strict=False):
            if exponent:
                term = term * values[atom.text] ** int(exponent)
        total = total + term
    return total
