"""What may be undefined on one side of an identity only: quotients, roots, logarithms, powers, derivatives."""

from collections.abc import Iterator, Mapping
from fractions import Fraction

from likewise.claims.algebra import indices
from likewise.claims.algebra.coordinates import Coordinates, violated
from likewise.claims.algebra.exponomials import Form, form
from likewise.claims.algebra.printing import text
from likewise.claims.algebra.questions import Question, comparisons
from likewise.claims.algebra.signs import Expressions, facts, of_assumptions, of_names
from likewise.claims.arrays import scalar
from likewise.claims.language.tree import (
    Binary,
    Call,
    Gradient,
    Index,
    Indexed,
    Name,
    Negative,
    Node,
    Number,
    Text,
    children,
)
from likewise.claims.spelling import bending, put
from likewise.claims.verdict import Undecided

Doubt = tuple[str, Node]  # zero, negative or not positive: the expression that must not be so; or a power, or a kink
ONE = Number(Fraction(1))
KINK = "kink of "  # and the derivative that may be undefined where the expression is 0, but need not


def one_sided(asked: Question) -> list[Doubt]:
    """What may be undefined on one side of an == and not on the other, as far as signs tell."""
    reader = Expressions(of_names(asked), of_assumptions(asked))
    found: list[Doubt] = []
    for left, comparison, right in zip(asked.chain.terms, asked.chain.comparisons, asked.chain.terms[1:], strict=False):
        if comparison == "==":
            sides = [
                {
                    _key(asked, doubt): doubt
                    for doubt in (*_doubts(side, reader), *_outside(asked, side))
                    if not doubt[0].startswith(KINK) or not _harmless(asked, doubt[1])
                }
                for side in (left, right)
            ]
            both = sides[0].keys() & sides[1].keys()
            found += [
                doubt
                for mine, other in (sides, sides[::-1])
                for key, doubt in mine.items()
                if key not in other and not (key.startswith(KINK) and both & _zeros(asked, doubt[1]))
            ]
    return found


def _zeros(asked: Question, bent: Node) -> set[str]:
    """The doubts that say that a quotient by what is bent, or by its norm, is undefined where it is 0."""
    return {_key(asked, ("zero", node)) for node in (bent, Call("norm", (bent,)), Call("sqnorm", (bent,)))}


def _outside(asked: Question, node: Node, ranges: Mapping[str, Node] | None = None) -> Iterator[Doubt]:
    """Indices that may lie outside their axis, and extremes and means of what may be empty."""
    ranges = ranges or {}
    if isinstance(node, Gradient):
        node = put(node.body, {node.name: node.place})
    if isinstance(node, Indexed) and node.lowest == ONE:
        ranges = {**ranges, node.index: node.highest}
    for child in children(node):
        yield from _outside(asked, child, ranges)
    match node:
        case Index(operand, indices):
            if not all(_inside(asked, operand, axis, index, ranges) for axis, index in enumerate(indices)):
                yield "outside", node
        case Call("max" | "min" | "mean", (operand,)) if isinstance(operand, Node) and _pairs(operand):
            yield "empty", operand


def _inside(asked: Question, operand: Node, axis: int, index: Node, ranges: Mapping[str, Node]) -> bool:
    """Whether an index surely lies in its axis: the first of a size, a number up to a length that is a number, or the
    index of a sum over the whole axis.
    """
    dims = indices.axes(asked, operand)
    if isinstance(index, Name) and index.name in ranges:
        return axis < len(dims) and dims[axis] == ranges[index.name]
    value = constant(index)
    if value == 1 and axis < len(dims):
        return True
    try:
        shape = [each for each in asked.invariants().shape(operand) if each != 1 or not asked.lying]
    except (Undecided, ArithmeticError, IndexError):
        return False
    length = shape[axis].constant if axis < len(shape) else None
    if value == 1:
        return axis < len(shape) and _never_empty(shape[axis])
    return value is not None and length is not None and 1 <= value <= length


def _never_empty(length: Form) -> bool:
    """Whether a length is at least 1 at all sizes: a size, or a polynomial of sizes with coefficients above 0."""
    return bool(length.terms) and all(value > 0 for value in length.terms.values())


def _pairs(node: Node) -> bool:
    return (isinstance(node, Call) and node.function == "pairs") or any(map(_pairs, children(node)))


def _key(asked: Question, doubt: Doubt) -> str:
    """One text for doubts that are the same polynomial: f.g1 + f.g2 and f.(g1 + g2), or a - b and b - a."""
    kind, node = doubt
    if kind.startswith(KINK):
        return kind
    if kind == "outside" and isinstance(node, Index):
        try:
            lengths = ", ".join(map(text, asked.invariants().shape(node.operand)))
        except (Undecided, ArithmeticError, IndexError):
            lengths = str(node.operand)
        return f"outside {lengths}: {', '.join(map(str, node.indices))}"
    try:
        value = asked.invariants().scalar(node)
    except (Undecided, ArithmeticError, IndexError):
        return f"{kind} {node}"
    return f"{kind} {min(text(value), text(-value)) if kind == 'zero' else text(value)}"


def _harmless(asked: Question, node: Node) -> bool:
    """Whether the assumptions exclude that a number is 0, or it is so at one point only and the claim is true there."""
    try:
        at = asked.symbols({})
        known = facts(asked, [(_number(at, Binary("-", a, b)), sign) for a, sign, b in comparisons(asked.assumptions)])
        value = _number(at, node)
        if 0 not in known.of(value):
            return True
        (variable,) = asked.variables
        there = asked.complete({variable.name: scalar(_root(value))}, {})
        return violated(there, asked.chain) is None and all(there.evaluate(term).entries for term in asked.chain.terms)
    except (Undecided, ArithmeticError, LookupError, ValueError):
        return False


def _root(value: Form) -> Fraction:
    """Where a*x + b is 0."""
    slope, shift = Fraction(0), Fraction(0)
    for (powers, exponent), coefficient in value.terms.items():
        if exponent or len(powers) > 1 or any(atom.kind != "variable" or e != 1 for atom, e in powers):
            raise Undecided("not linear")
        slope, shift = (slope + coefficient, shift) if powers else (slope, shift + coefficient)
    return -shift / slope


def _number(at: Coordinates, node: Node) -> Form:
    value = at.evaluate(node)
    if value.shape:
        raise Undecided("an array")
    return form(value.scalar)


def _kinks(node: Node, name: str) -> Iterator[Node]:
    """What must not be 0 for the derivative of the node by a name, as far as its operations tell one by one."""
    yield from bending(node, name)
    for child in children(node):
        yield from _kinks(child, name)


def _doubts(node: Node, reader: Expressions) -> Iterator[Doubt]:
    if isinstance(node, Gradient):
        at = {node.name: node.place}
        bent = (put(each, at) for each in _kinks(node.body, node.name))
        yield from ((f"{KINK}{node}", each) for each in bent if 0 in reader.of(each))
        yield from _doubts(put(node.body, at), reader)
        yield from _doubts(node.place, reader)
        return
    for child in children(node):
        yield from _doubts(child, reader)
    match node:
        case Binary("/", _, right):
            yield from (("zero", factor) for factor in _factors(right) if 0 in reader.of(factor))
        case Binary("^", base, exponent):
            yield from _powers(base, exponent, reader)
        case Call("sqrt" | "log" as function, _):
            (argument,) = children(node)
            wrong = {-1} if function == "sqrt" else {-1, 0}
            if wrong & set(reader.of(argument)):
                yield "negative" if function == "sqrt" else "not positive", argument


def _powers(base: Node, exponent: Node, reader: Expressions) -> Iterator[Doubt]:
    value = constant(exponent)
    signs = set(reader.of(base))
    if value is None:
        if signs - {1}:  # but defined where the exponent is whole, unlike exp(exponent*log(base))
            yield "power", Binary("^", base, exponent)
    elif value.denominator > 1 and -1 in signs:
        yield "negative", base
    elif value < 0 and 0 in signs:
        yield from (("zero", factor) for factor in _factors(base) if 0 in reader.of(factor))


def constant(node: Node) -> Fraction | None:
    """The value of an expression of numbers alone, as far as that is a fraction."""
    try:
        value = Coordinates({}).evaluate(node).scalar
    except (Undecided, ArithmeticError, IndexError):
        return None
    return value if isinstance(value, Fraction) else None


def _factors(node: Node) -> Iterator[Node]:
    """What must be 0 somewhere for a product to be 0."""
    match node:
        case Number(value):
            if value == 0:
                yield node
        case Negative(operand) | Call("sqrt" | "abs", (operand,)) if not isinstance(operand, Text):
            yield from _factors(operand)
        case Binary("*", left, right):
            yield from _factors(left)
            yield from _factors(right)
        case Binary("/", left, _):
            yield from _factors(left)
        case Binary("^", base, _):
            yield from _factors(base)
        case Call("norm" | "sqnorm", (operand,)) if not isinstance(operand, Text):
            yield Call("sqnorm", (operand,))
        case _:
            yield node
