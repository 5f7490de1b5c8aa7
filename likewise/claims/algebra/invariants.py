"""An expression evaluated for every size at once: vectors are sums of products of named vectors, and what becomes of
them is the power sums  S(x, y, ...) = Σ_i x_i·y_i···.

dot(q, k) is S(k, q), sqnorm(q) is S(q, q), sum(q) is S(q) and S() is D, the number of coordinates. Over all sizes the
power sums obey no relation, so equal normal forms are equal sides, whatever D is, and D itself may stand anywhere.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from math import factorial, prod

from likewise.claims.algebra import elementary
from likewise.claims.algebra.exponomials import PI, Atom, Form, PositiveName, form, of_atom, power
from likewise.claims.algebra.printing import text
from likewise.claims.language.limits import EXPONENT, MONOMIALS
from likewise.claims.language.tree import Binary, Call, Constant, Join, Name, Negative, Node, Number, Transpose
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
class Invariants:
    """Values of names, as scalars and vectors; lengths of arrays that are never looked into."""

    values: Mapping[str, Value]
    shapes: Mapping[str, tuple[Form, ...]]

    def evaluate(self, node: Node) -> Value:
        """The value of an expression for every size."""
        match node:
            case Number(value):
                return form(value)
            case Constant():
                return of_atom(PI)
            case Name(name):
                if name not in self.values:
                    raise Undecided(f"{name} has no form for every size")
                return self.values[name]
            case Negative(operand):
                return times(form(-1), self.one(operand))
            case Binary("^", left, right):
                return _raised(self.one(left), self.scalar(right))
            case Binary(sign, left, right) if sign in OPERATORS:
                return OPERATORS[sign](self.one(left), self.one(right))
            case Call("dim", (operand,)) if isinstance(operand, Node):
                return prod(self.shape(operand), start=form(1))
            case Call("tr", (Call("I", (length,)),)) if isinstance(length, Node):
                return self.scalar(length)
            case Call("zeros" | "ones" as function, (length,)) if isinstance(length, Node):
                return ones(self.scalar(length)).scaled(form(int(function == "ones")))
            case Call(function, arguments) if function in FUNCTIONS:
                return FUNCTIONS[function](*(self.one(part) for part in arguments if isinstance(part, Node)))
        raise Undecided(f"{node} has no form for every size")

    def one(self, node: Node) -> Value:
        """The value of an expression that is a number or a vector, whatever else a heir may know."""
        value = self.evaluate(node)
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


def _over(left: Value, right: Value) -> Value:
    return times(left, 1 / number(right))


def _raised(base: Value, exponent: Form) -> Value:
    value = exponent.constant
    if isinstance(base, Form):
        if value is None:
            return elementary.exp(elementary.log(base) * exponent)
        if abs(value) > EXPONENT:
            raise Undecided(f"an exponent above {EXPONENT}")
        return power(base, value)
    if value is None or value.denominator > 1 or not 0 <= value <= EXPONENT:
        raise Undecided("a vector to a power that is no whole number")
    return reduce(times, [base] * int(value), ones(base.length))


def _dot(left: Value, right: Value) -> Form:
    if not isinstance(left, Vector) or not isinstance(right, Vector):
        raise Undecided("dot of what is no vector")
    return (left * right).total()


def _matmul(left: Value, right: Value) -> Form:
    return _dot(left, right)


def _total(value: Value) -> Form:
    return value.total() if isinstance(value, Vector) else value


def _mean(value: Value) -> Form:
    return value.total() / value.length if isinstance(value, Vector) else value


def _squares(value: Value) -> Form:
    return _dot(value, value) if isinstance(value, Vector) else value * value


def _exp(value: Value) -> Value:
    """e^{x}; of a vector c + Σ a·x the product of e^c and vectors named e^{a·x}."""
    if isinstance(value, Form):
        return elementary.exp(value)
    result: Value = ones(value.length)
    for product, coefficient in value.terms.items():
        if not coefficient.terms:
            continue
        factor = PositiveName(f"exp({'' if coefficient == 1 else text(coefficient) + '*'}{'*'.join(product)})")
        result = times(result, named(factor, value.length) if product else elementary.exp(coefficient))
    return result


def _softmax(value: Value) -> Value:
    raised = _exp(value)
    return _over(raised, _total(raised))


def _choose(n: Value, k: Value) -> Form:
    count, whole = number(k).constant, number(n)
    if count is None or count.denominator > 1 or not 0 <= count <= EXPONENT:
        raise Undecided("choose(n, k) needs a whole k")
    return prod((whole - i for i in range(int(count))), start=form(1)) / factorial(int(count))


def _of_numbers(function: Callable[..., Form]) -> Callable[..., Form]:
    """A function of scalars; a vector is refused."""
    return lambda *values: function(*map(number, values))


OPERATORS: dict[str, Callable[[Value, Value], Value]] = {
    "+": plus,
    "-": lambda left, right: plus(left, times(form(-1), right)),
    "*": times,
    "/": _over,
    "@": _matmul,
}
FUNCTIONS: dict[str, Callable[..., Value]] = {
    "dot": _dot,
    "sqnorm": _squares,
    "norm": lambda value: elementary.sqrt(_squares(value)),
    "sum": _total,
    "mean": _mean,
    "exp": _exp,
    "softmax": _softmax,
    "choose": _choose,
    "sqrt": _of_numbers(elementary.sqrt),
    "log": _of_numbers(elementary.log),
    "sin": _of_numbers(elementary.sin),
    "cos": _of_numbers(elementary.cos),
    "erf": _of_numbers(elementary.erf),
    "abs": _of_numbers(elementary.absolute),
    "relu": _of_numbers(lambda value: elementary.maximum(value, Fraction(0))),
    "max": _of_numbers(elementary.maximum),
    "min": _of_numbers(elementary.minimum),
}
