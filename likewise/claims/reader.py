"""The one reading of an expression: what every operation of the language means, over any scalars.

format.md says it in words; this module says it once for all engines that compute entry by entry. An engine brings its
own `Scalars` (fractions, normal forms, balls, linear forms, arrays of draws, ...), binds names to arrays of them, and
gets arrays back. Where something is undefined (1/0, the root of a negative number, an index outside its axis) the
scalars or the arrays raise an ArithmeticError or an IndexError; what cannot be told is Undecided.
"""

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from math import factorial, isqrt, prod
from typing import Literal

from likewise.claims import arrays
from likewise.claims.arrays import Array, Entry
from likewise.claims.language.limits import BITS, EXPONENT, SIZE
from likewise.claims.language.tree import (
    Binary,
    Call,
    Index,
    Join,
    Matrix,
    Name,
    Negative,
    Node,
    Number,
    Text,
    Transpose,
)
from likewise.claims.verdict import Undecided


@dataclass(frozen=True)
class Scalars:
    """How one kind of scalars is computed with; + - * and unary - are those of the scalars themselves."""

    elementwise: Mapping[str, Callable[[Entry], Entry]]  # sqrt exp log sin cos abs relu
    maximum: Callable[..., Entry]
    power: Callable[[Entry, Entry], Entry]  # an exponent made of numbers alone stays a Fraction
    number: Callable[[Fraction], Entry]
    divide: Callable[[Entry, Entry], Entry] = operator.truediv


def _rational_power(base: Fraction, exponent: Fraction) -> Fraction:
    if exponent.denominator > 1:
        raise Undecided("a root")
    bits = max(abs(base.numerator), base.denominator).bit_length()
    if abs(exponent) > EXPONENT or bits * abs(exponent) > BITS:
        raise Undecided(f"an exponent above {EXPONENT}, or a large power")
    return base ** int(exponent)


def _rational_root(value: Fraction) -> Fraction:
    if value < 0:
        raise ArithmeticError("a root of a negative number")
    top, bottom = isqrt(value.numerator), isqrt(value.denominator)
    if top * top != value.numerator or bottom * bottom != value.denominator:
        raise Undecided("a root that is no fraction")
    return Fraction(top, bottom)


RATIONALS = Scalars(
    elementwise={"abs": abs, "relu": lambda value: max(value, Fraction(0)), "sqrt": _rational_root},
    maximum=max,
    power=_rational_power,
    number=lambda value: value,
)
OPERATORS: dict[str, Callable[[Entry, Entry], Entry]] = {"+": operator.add, "-": operator.sub, "*": operator.mul}


@dataclass(frozen=True)
class Reader:
    """Values of names: what a variable or size means inside an expression, and how long the axes are.

    `values` and `sizes` may differ for a size: at D = 4 axes a D inside a formula can stay a symbol. `lies` is set
    where vectors are rows or columns; a vector that an operation makes lies so too.
    """

    values: Mapping[str, Array]
    sizes: Mapping[str, int] = field(default_factory=dict)
    scalars: Scalars = RATIONALS
    lies: Literal["row", "col"] | None = None

    def evaluate(self, node: Node) -> Array:
        """The value of an expression."""
        match node:
            case Number(value):
                return arrays.scalar(self.scalars.number(value))
            case Name(name):
                if name not in self.values:
                    raise Undecided(f"{name} has no value")
                return self.values[name]
            case Negative(operand):
                return self.evaluate(operand).map(operator.neg)
            case Binary("^", left, right):
                return arrays.broadcast(self.scalars.power, self.evaluate(left), self._exponent(right))
            case Binary("@", left, right):
                return arrays.matmul(self.evaluate(left), self.evaluate(right))
            case Binary("/", left, right):
                return arrays.broadcast(self.scalars.divide, self.evaluate(left), self.evaluate(right))
            case Binary(sign, left, right):
                return arrays.broadcast(OPERATORS[sign], self.evaluate(left), self.evaluate(right))
            case Transpose(operand):
                return arrays.transpose(self.evaluate(operand))
            case Index(operand, indices):
                return self._line(arrays.index(self.evaluate(operand), [self.whole(index) for index in indices]))
            case Join(parts):
                return arrays.join([self.evaluate(part) for part in parts], self.lies)
            case Matrix(rows):
                return arrays.stacked([self.evaluate(row) for row in rows])
            case Call(function, arguments):
                return self._call(function, arguments).map(self.scalars.number)
        raise Undecided(f"{type(node).__name__} is not evaluated here")

    def _exponent(self, node: Node) -> Array:
        try:
            return Reader({}).evaluate(node)
        except Undecided:
            return self.evaluate(node)

    def _line(self, array: Array) -> Array:
        """A new vector lies where vectors lie."""
        return arrays.lying(array.entries, layout=self.lies) if len(array.shape) == 1 else array

    def whole(self, node: Node) -> int:
        """A whole number made of sizes: the length of an axis, or an index."""
        values = {name: arrays.scalar(Fraction(value)) for name, value in self.sizes.items()}
        value = Reader(values).evaluate(node).scalar
        if not isinstance(value, Fraction) or value.denominator > 1 or not 0 <= value <= SIZE:
            raise Undecided(f"{node} is no whole number from 0 to {SIZE}")
        return int(value)

    def _call(self, function: str, arguments: "tuple[Node | Text, ...]") -> Array:
        if function in ("I", "ones", "zeros"):
            shape = tuple(self.whole(argument) for argument in arguments if not isinstance(argument, Text))
            if function == "I":
                return arrays.filled((*shape, *shape), lambda place: Fraction(place[0] == place[1]))
            return self._line(arrays.filled(shape, lambda place: Fraction(function == "ones")))
        given = [self.evaluate(argument) for argument in arguments if not isinstance(argument, Text)]
        if function in ELEMENTWISE:
            return given[0].map(self._elementwise(function))
        if function in ("max", "min"):
            return self._extreme(function, given)
        if function == "einsum" and isinstance(arguments[0], Text):
            return self._line(arrays.einsum(arguments[0].text, given))
        if function == "softmax":
            return self._softmax(given[0])
        if function == "vec":
            return self._line(arrays.vector(given[0]))
        if function == "mean":
            if not given[0].entries:
                raise ArithmeticError("the mean of nothing")
            count = self.scalars.number(Fraction(len(given[0].entries)))
            return arrays.scalar(self.scalars.divide(arrays.total(given[0].entries), count))
        if function == "norm":
            return arrays.scalar(self._elementwise("sqrt")(SHAPED["sqnorm"](given[0]).scalar))
        if function not in SHAPED:
            raise Undecided(f"{function} is not evaluated here")
        return SHAPED[function](*given)

    def _elementwise(self, function: str) -> Callable[[Entry], Entry]:
        if function not in self.scalars.elementwise:
            raise Undecided(f"{function} is not taken of these numbers")
        return self.scalars.elementwise[function]

    def _extreme(self, function: str, given: list[Array]) -> Array:
        """The largest entry of one array, or of several the largest entry by entry."""
        turned = [array.map(operator.neg) if function == "min" else array for array in given]
        if len(turned) == 1 and not turned[0].entries:
            raise ArithmeticError(f"{function} of nothing")
        one = len(turned) == 1
        found = (
            arrays.scalar(self.scalars.maximum(*turned[0].entries))
            if one
            else arrays.broadcast(self.scalars.maximum, *turned)
        )
        return found.map(operator.neg) if function == "min" else found

    def _softmax(self, array: Array) -> Array:
        """e^{x_i}/Σ_j e^{x_j} along the last axis, or along a line."""
        if not array.shape or not array.entries:
            raise Undecided("softmax of what is no vector, or of nothing")
        raised, n = array.map(self._elementwise("exp")), len(array.entries) if array.line else array.shape[-1]
        sums = [arrays.total(raised.entries[i : i + n]) for i in range(0, len(raised.entries), n)]
        shares = (self.scalars.divide(value, sums[i // n]) for i, value in enumerate(raised.entries))
        return Array(array.shape, tuple(shares), array.line)


ELEMENTWISE = frozenset({"sqrt", "exp", "log", "sin", "cos", "abs", "relu"})


def _choose(n: Array, k: Array) -> Array:
    """n·(n-1)···(n-k+1)/k!, also of a symbolic n."""
    count = k.scalar
    if not isinstance(count, Fraction) or count.denominator > 1 or not 0 <= count <= EXPONENT:
        raise Undecided("choose(n, k) needs a whole k")
    falling = [n.scalar - i for i in range(int(count))]
    top = prod(falling[1:], start=falling[0]) if falling else Fraction(1)
    return arrays.scalar(top * Fraction(1, factorial(len(falling))))


SHAPED: dict[str, Callable[..., Array]] = {
    "dot": arrays.dot,
    "sqnorm": lambda array: arrays.scalar(arrays.total(value * value for value in array.entries)),
    "sum": lambda array: arrays.scalar(arrays.total(array.entries)),
    "tr": arrays.trace,
    "outer": arrays.outer,
    "pairs": arrays.pairs,
    "dim": lambda array: arrays.scalar(Fraction(len(array.entries))),
    "choose": _choose,
}
