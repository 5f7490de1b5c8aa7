"""Two expressions: equal, different, or equal under a condition on logarithms, names, signs or vectors."""

import contextlib
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction

from likewise.grading.algebra import Forms
from likewise.grading.arithmetic import Unclear
from likewise.grading.balls import Point, Undefined, precise, surely_differ
from likewise.grading.entries import expanded
from likewise.grading.given import name_of, substituted
from likewise.grading.matrices import LETTER, MatrixForms, inferred_types
from likewise.grading.numbers import (
    agree_somewhere,
    always_differ,
    compare_matrices,
    compare_numbers,
    fraction_node,
    free_names,
    index_names,
    points_of,
    proved,
)
from likewise.grading.outcomes import Outcome, World, depends, undecided
from likewise.grading.parsing import bare
from likewise.grading.rounding import nearness
from likewise.grading.showing import shown
from likewise.grading.sizes import counts_sizes, replaced, same_sizes
from likewise.reading.expressions import Node, number

MATRIX_LETTERS = {*"ABCPQWXY"}
FACTORIZATIONS = ({"L", "U"}, {"Q", "R"})
VECTOR_LETTERS = {*"xyzuvwhqkb"}


def scalars(one: Node, other: Node, world: World) -> Outcome:
    """Two expressions: numbers, or vectors and matrices in symbols."""
    values = world.given.values
    one, other = (expanded(substituted(node, values)) for node in (one, other))
    close = nearness(one, other, world)
    if close is not None:
        return close
    types = {**inferred_types([one, other]), **world.given.types}
    used = {part.text for tree in (one, other) for part in tree.walk() if part.kind == "name"}
    types = {name: kind for name, kind in types.items() if name in used}
    types = {
        name: kind for name, kind in types.items() if name not in world.given.declared or name in world.given.types
    }
    outcome = compare_matrices(one, other, types, world) if types else compare_numbers(one, other, world)
    if not types and outcome.verdict == "equal" and (said := commutation(one, other, world)):
        return depends(said)
    if outcome.verdict == "equal" and one != other and _complex_letter(one, other, world):
        return depends("if z is real")
    if outcome.verdict in ("different", "undecided"):
        outcome = _conditioned(one, other, outcome, types, world)
    if outcome.verdict == "different" and world.given.unread:
        return undecided(f"a condition is not read: {world.given.unread[0]}")
    return outcome


def _complex_letter(one: Node, other: Node, world: World) -> bool:
    """Whether z, which people take for a complex number, stands under an absolute value on one side only."""
    under = [any(part.kind == "abs" and "z" in part.names for part in tree.walk()) for tree in (one, other)]
    return under[0] != under[1] and "z" not in world.given.declared


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
    for said, left, right in same_sizes(one, other, world, sizes=not types and counts_sizes(one, other)):
        if not types and not _may_agree(left, right, world):
            continue
        again = compare_matrices(left, right, types, world) if types else compare_numbers(left, right, world)
        if again.verdict == "equal":
            return depends(f"if {said}")
    if types and (said := _sized(one, other, types, world)):
        return depends(said)
    if types:
        return depends(TURNED) if _turned(one, other, types, world) else outcome
    names = free_names(one) | free_names(other)
    open_names = sorted(names - world.given.positive)
    if open_names and not world.given.unread:
        supposed = replace(world, given=replace(world.given, positive=world.given.positive | names))
        try:
            if proved(one, other, supposed) and agree_somewhere(one, other, supposed):
                return depends(f"if {' and '.join(f'{name} > 0' for name in open_names)}")
            if len(open_names) == 1 and open_names[0] not in index_names((one, other)):
                name = Node("name", text=open_names[0])
                turned = [replaced(node, {name: Node("neg", (name,))}) for node in (one, other)]
                if proved(*turned, supposed) and agree_somewhere(*turned, supposed):
                    return depends(f"if {open_names[0]} < 0")
            if (
                _rooted(one, other)
                and proved(one, other, world, unsigned=True)
                and not always_differ(one, other, world)
            ):
                return depends("if nothing under an absolute value or an even root is negative")
        except Unclear:
            pass
    for node, rest in ((bare(one), other), (bare(other), one)):  # 50 % beside 50, 45 degrees beside 45
        counted = {"%": "percent", "degrees": "degrees"}.get(node.kind)
        if counted and compare_numbers(node.parts[0], rest, world).verdict == "equal":
            return depends(f"if {counted} are meant")
    for said, *again in _spelled(one, other):
        if compare_numbers(*again, world).verdict == "equal":
            return depends(f"if {said}")
    return outcome


def _sized(one: Node, other: Node, types: dict[str, str], world: World) -> str:
    """The condition that a name is the number of rows of the matrices: det(cA) = c^n det(A)."""
    if not any(part.text == "det" for tree in (one, other) for part in tree.walk()):
        return ""
    matrices = sorted(name for name, kind in types.items() if kind == "matrix")
    if set(matrices) & set(world.given.shapes):
        return ""
    for name in sorted((free_names(one) | free_names(other)) - set(types)):
        given = replace(world.given, shapes={**world.given.shapes, **dict.fromkeys(matrices, (name, name))})
        if compare_matrices(one, other, types, replace(world, given=given)).verdict == "equal":
            return f"if {' and '.join(matrices)} {'are' if len(matrices) > 1 else 'is'} {name} by {name}"
    return ""


def _rooted(one: Node, other: Node) -> bool:
    """Whether an absolute value or a root is written, and no maximum, which is computed by one."""
    kinds = {part.text if part.kind == "call" else part.kind for tree in (one, other) for part in tree.walk()}
    return bool(kinds & {"abs", "sqrt", "root", "^"}) and not kinds & {"max", "min", "relu"}


def _may_agree(one: Node, other: Node, world: World) -> bool:
    """Whether no difference is seen at one point, the first at which both have a value."""
    with precise():
        for point in points_of(one, other, world)[:4]:
            with contextlib.suppress(Undefined):
                at = Point(point, base=world.conventions.log, seconds=min(0.1, world.left))
                return not surely_differ(at.value(one), at.value(other))
    return True


def _spelled(one: Node, other: Node) -> "list[tuple[str, Node, Node]]":
    """Conditions on what a letter means, each with both trees under it: lg, j, C(n, k) and P(n, k)."""
    calls = {(part.text, len(part.parts)) for tree in (one, other) for part in tree.walk() if part.kind == "call"}
    names = [{part.text for part in tree.walk() if part.kind == "name"} for tree in (one, other)]
    tries: list[tuple[str, Callable[[Node], Node]]] = []
    if ("lg", 1) in calls:
        tries += [(f"lg is to base {base}", lambda node, base=base: _lg(node, base)) for base in ("10", "2", "e")]
    if "j" in names[0] ^ names[1] and "i" in names[0] ^ names[1]:
        tries.append(("j is the imaginary unit", lambda node: replaced(node, {Node("name", text="j"): IMAGINARY})))
    if calls & {("C", 2), ("P", 2)}:
        tries.append(("C and P count combinations and permutations", _counted))
    return [(said, put(one), put(other)) for said, put in tries]


IMAGINARY = Node("name", text="i")


def _lg(node: Node, base: str) -> Node:
    parts = tuple(_lg(part, base) for part in node.parts)
    if node.kind == "call" and node.text == "lg":
        return Node("call", parts, "ln") if base == "e" else Node("call", (*parts, number(base)), "log_base")
    return Node(node.kind, parts, node.text, node.joined)


def _counted(node: Node) -> Node:
    parts = tuple(map(_counted, node.parts))
    if node.kind == "call" and node.text in ("C", "P") and len(parts) == 2:
        found = Node("choose", parts)
        return found if node.text == "C" else Node("product", (found, Node("!", parts[1:])), joined=("",))
    return Node(node.kind, parts, node.text, node.joined)


def commutation(one: Node, other: Node, world: World, ratio: Fraction = Fraction(1)) -> str:
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
    names = {name for each in factors for name in each.names} - world.given.declared
    letters |= {name for pair in FACTORIZATIONS if pair <= names for name in pair}
    if len(letters) < 2 or not letters & (MATRIX_LETTERS | {"L"}):
        return ""
    orders = [
        sorted(_order_of_letters(part, letters) for part in tree.walk() if part.kind == "product") for tree in trees
    ]
    if orders[0] == orders[1]:
        return ""
    types = dict.fromkeys(sorted(letters), "matrix")
    scaled = Node("product", (fraction_node(abs(ratio)), other), joined=("",))
    if compare_matrices(one, scaled if ratio not in (1, -1) else other, types, world).verdict == "equal":
        return ""
    return f"if {' and '.join(types)} commute (nothing says whether they are numbers)"


def _order_of_letters(product: Node, letters: set[str]) -> list[str]:
    return [part.text for part in product.walk() if part.kind == "name" and part.text in letters]


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
