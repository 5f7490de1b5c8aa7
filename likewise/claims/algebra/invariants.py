"""An expression evaluated for every size at once: vectors are sums of products of named vectors, and what becomes of
them is the power sums  S(x, y, ...) = Σ_i x_i·y_i···.

dot(q, k) is S(k, q), sqnorm(q) is S(q, q), sum(q) is S(q) and S() is D, the number of coordinates. Over all sizes the
power sums obey no relation, so equal normal forms are equal sides, whatever D is, and D itself may stand anywhere.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import reduce
from math import prod

from likewise.claims import arrays
from likewise.claims.algebra import elementary
from likewise.claims.algebra.exponomials import PI, Atom, Form, PositiveName, form, of_atom, power
from likewise.claims.algebra.printing import text
from likewise.claims.arrays import Array, Entry
from likewise.claims.language.limits import EXPONENT, MONOMIALS
from likewise.claims.language.tree import Binary, Call, Constant, Join, Name, Negative, Node, Number, Text, Transpose
from likewise.claims.reader import Scalars, WholeVectors
from likewise.claims.verdict import Undecided

Product = tuple[str, ...]  # vectors multiplied entry by entry, in order; () is the vector of ones


@dataclass(frozen=True)
class Vector:
    """Σ c·(x*y*...) of some length; the coefficients are scalars."""

    length: Form
    terms: Mapping[Product, Form]

    def __add__(self, other: "Vector") -> "Vector":
        _same_length(self, other)
        products = dict.fromkeys([*self.terms, *other.terms])
        zero = form(0)
        return Vector(self.length, {p: self.terms.get(p, zero) + other.terms.get(p, zero) for p in products})

    def __neg__(self) -> "Vector":
        return self.scaled(form(-1))

    def scaled(self, factor: Form) -> "Vector":
        """Every coefficient times a scalar."""
        return Vector(self.length, {p: c * factor for p, c in self.terms.items()})

    def __mul__(self, other: "Vector") -> "Vector":
        """Entry by entry."""
        _same_length(self, other)
        if len(self.terms) * len(other.terms) > MONOMIALS:
            raise Undecided(f"more than {MONOMIALS} monomials")
        found: dict[Product, Form] = {}
        for p, a in self.terms.items():
            for q, b in other.terms.items():
                both = tuple(sorted(p + q))
                found[both] = found.get(both, form(0)) + a * b
        return Vector(self.length, found)

    def total(self) -> Form:
        """The sum of the entries."""
        axis = text(self.length)
        sums = (c * (of_atom(Atom("invariant", axis, names=p)) if p else self.length) for p, c in self.terms.items())
        return sum(sums, form(0))


def _same_length(left: Vector, right: Vector) -> None:
    if left.length != right.length:
        raise Undecided(f"vectors of length {text(left.length)} and {text(right.length)}")


def named(name: str, length: Form) -> Vector:
    """A vector that is only a name."""
    return Vector(length, {(name,): form(1)})


def ones(length: Form) -> Vector:
    """The vector of ones."""
    return Vector(length, {(): form(1)})


Value = Form | Vector


@dataclass(frozen=True)
class Invariants(WholeVectors):
    """Sizes, numbers and vectors for every size at once; lengths of arrays that are never looked into."""

    scalars: Scalars = field(default_factory=lambda: EVERY_SIZE)
    shapes: Mapping[str, tuple[Form, ...]] = field(default_factory=dict)

    def evaluate(self, node: Node) -> Array:
        """The value of an expression for every size."""
        match node:
            case Call("dim", (operand,)) if isinstance(operand, Node):
                return arrays.scalar(prod(self.shape(operand), start=form(1)))
            case Call("tr", (Call("I", (length,)),)) if isinstance(length, Node):
                return arrays.scalar(self.scalar(length))
        return super().evaluate(node)

    def is_vector(self, value: Entry) -> bool:
        return isinstance(value, Vector)

    def operation(self, sign: str) -> Callable[[Entry, Entry], Entry]:
        return OPERATIONS[sign]

    def dot(self, left: Vector, right: Vector) -> Form:
        return (left * right).total()

    def total(self, vector: Vector) -> Form:
        return vector.total()

    def length(self, vector: Vector) -> Form:
        return vector.length

    def filled(self, value: Fraction, lengths: "tuple[Node | Text, ...]") -> Vector:
        if len(lengths) != 1 or not isinstance(lengths[0], Node):
            raise Undecided("a matrix of zeros or ones")
        return ones(self.scalar(lengths[0])).scaled(form(value))

    def one(self, node: Node) -> Value:
        """The value of an expression that is a number or a vector, whatever else an heir may know."""
        value = self.evaluate(node).scalar
        if isinstance(value, Fraction):
            return form(value)
        if not isinstance(value, Form | Vector):
            raise Undecided(f"{node} is neither a number nor a vector")
        return value

    def scalar(self, node: Node) -> Form:
        """The value of an expression that is a number."""
        return number(self.one(node))

    def shape(self, node: Node) -> tuple[Form, ...]:
        """The lengths of the axes of an expression, as forms over sizes."""
        match node:
            case Name(name) if name in self.shapes:
                return self.shapes[name]
            case Join(parts):
                return (sum((prod(self.shape(part), start=form(1)) for part in parts), form(0)),)
            case Call("pairs", (operand,)) if isinstance(operand, Node):
                n = prod(self.shape(operand), start=form(1))
                return (n * (n - 1) / 2,)
            case Call("vec", (operand,)) if isinstance(operand, Node):
                return (prod(self.shape(operand), start=form(1)),)
            case Call("outer", (left, right)) if isinstance(left, Node) and isinstance(right, Node):
                return (*self.shape(left), *self.shape(right))
            case Call("I", (length,)) if isinstance(length, Node):
                return (self.scalar(length),) * 2
            case Call("zeros" | "ones", lengths):
                return tuple(self.scalar(length) for length in lengths if isinstance(length, Node))
            case Call(function, (operand,)) if function in SAME_SHAPE and isinstance(operand, Node):
                return self.shape(operand)
            case Negative(operand):
                return self.shape(operand)
            case Transpose(operand):
                return self.shape(operand)[::-1]
            case Binary("+" | "-" | "*" | "/" | "^", left, right):
                return self.shape(left) or self.shape(right)
            case Number() | Constant() | Call("dot" | "sum" | "sqnorm" | "norm" | "tr" | "mean" | "dim" | "choose", _):
                return ()
        raise Undecided(f"the shape of {node} is not known for every size")


SAME_SHAPE = {"sqrt", "exp", "log", "sin", "cos", "abs", "relu", "softmax"}


def number(value: Value) -> Form:
    """The value itself, which must be a scalar."""
    if not isinstance(value, Form):
        raise Undecided("expected a number, got a vector")
    return value


def plus(left: Value, right: Value) -> Value:
    """A sum; a scalar is added to every entry."""
    match left, right:
        case Form(), Form():
            return left + right
        case Vector(), Vector():
            return left + right
        case Form(), Vector():
            return ones(right.length).scaled(left) + right
        case Vector(), Form():
            return plus(right, left)
    raise AssertionError


def times(left: Value, right: Value) -> Value:
    """A product, entry by entry."""
    match left, right:
        case Form(), Form():
            return left * right
        case Vector(), Vector():
            return left * right
        case Form(), Vector():
            return right.scaled(left)
        case Vector(), Form():
            return left.scaled(right)
    raise AssertionError


def over(left: Value, right: Value) -> Value:
    """A quotient by a number."""
    return times(left, 1 / number(right))


def _raised(base: Value, exponent: Value | Fraction) -> Value:
    exponent = number(form(exponent) if isinstance(exponent, Fraction) else exponent)
    value = exponent.constant
    if isinstance(base, Form):
        if value is None:
            return elementary.exp(elementary.log(base) * exponent)
        if abs(value) > EXPONENT:
            raise Undecided(f"an exponent above {EXPONENT}")
        return power(base, value)
    if not isinstance(base, Vector) or value is None or value.denominator > 1 or not 0 <= value <= EXPONENT:
        raise Undecided("a vector to a power that is no whole number")
    return reduce(times, [base] * int(value), ones(base.length))


def _exp(value: Value) -> Value:
    """e^{x}; of a vector c + Σ a·x the product of e^c and vectors named e^{a·x}."""
    if not isinstance(value, Vector):
        return elementary.exp(number(value))
    result: Value = ones(value.length)
    for product, coefficient in value.terms.items():
        if not coefficient.terms:
            continue
        factor = PositiveName(f"exp({'' if coefficient == 1 else text(coefficient) + '*'}{'*'.join(product)})")
        result = times(result, named(factor, value.length) if product else elementary.exp(coefficient))
    return result


def _of_numbers(function: Callable[..., Form]) -> Callable[..., Form]:
    """A function of scalars; a vector is refused."""
    return lambda *values: function(*map(number, values))


OPERATIONS: dict[str, Callable[[Value, Value], Value]] = {
    "+": plus,
    "-": lambda left, right: plus(left, times(form(-1), right)),
    "*": times,
}
EVERY_SIZE = Scalars(
    elementwise={
        "exp": _exp,
        "sqrt": _of_numbers(elementary.sqrt),
        "log": _of_numbers(elementary.log),
        "sin": _of_numbers(elementary.sin),
        "cos": _of_numbers(elementary.cos),
        "erf": _of_numbers(elementary.erf),
        "abs": _of_numbers(elementary.absolute),
        "relu": _of_numbers(lambda value: elementary.maximum(value, Fraction(0))),
    },
    maximum=_of_numbers(elementary.maximum),
    power=_raised,
    number=lambda value: form(value) if isinstance(value, Fraction | int) else value,
    divide=over,
    pi=lambda: of_atom(PI),
)
