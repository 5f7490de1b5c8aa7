"""An expression evaluated on coordinates: sizes are bound to small numbers, variables to arrays of numbers or symbols.

The scalars are exact (fractions, and forms where those do not suffice) or balls; `Scalars` says how to take functions
of them. Where something is undefined (1/0, the root of a negative number) an ArithmeticError says so.
"""

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from math import factorial, isqrt, prod

from likewise.claims.algebra import arrays, balls, elementary
from likewise.claims.algebra.arrays import Array, Entry
from likewise.claims.algebra.exponomials import Form, form, number_power, power
from likewise.claims.language.limits import EXPONENT, SIZE
from likewise.claims.language.tree import (
    Binary,
    Call,
    Chain,
    Comparison,
    Index,
    Join,
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
    """How functions of one kind of scalars are taken; `sqrt` and the like act on every entry of an array."""

    elementwise: Mapping[str, Callable[[Entry], Entry]]
    maximum: Callable[..., Entry]
    power: Callable[[Entry, Entry], Entry]
    number: Callable[[Fraction], Entry]


def plain(value: Form) -> Fraction | Form:
    """A fraction where that is all there is: much faster than a form."""
    constant = value.constant
    return value if constant is None else constant


def _sqrt(value: Entry) -> Entry:
    if isinstance(value, Fraction) and value >= 0:
        top, bottom = isqrt(value.numerator), isqrt(value.denominator)
        if top * top == value.numerator and bottom * bottom == value.denominator:
            return Fraction(top, bottom)
    return plain(elementary.sqrt(value))


def _maximum(*values: Entry) -> Entry:
    if all(isinstance(value, Fraction) for value in values):
        return max(values)
    return plain(elementary.maximum(*values))


def _power(base: Entry, exponent: Entry) -> Entry:
    exponent = exponent if isinstance(exponent, Fraction) else plain(form(exponent))
    if not isinstance(exponent, Fraction):
        return plain(elementary.exp(elementary.log(base) * exponent))
    if abs(exponent) > EXPONENT:
        raise Undecided(f"an exponent above {EXPONENT}")
    if isinstance(base, Fraction) and exponent.denominator == 1 and -8 <= exponent <= 8:
        return number_power(base, int(exponent))
    return plain(power(form(base), exponent))


EXACT = Scalars(
    elementwise={
        "sqrt": _sqrt,
        "exp": lambda value: plain(elementary.exp(value)),
        "log": lambda value: plain(elementary.log(value)),
        "sin": lambda value: plain(elementary.sin(value)),
        "cos": lambda value: plain(elementary.cos(value)),
        "abs": lambda value: _maximum(value, -value),
        "relu": lambda value: _maximum(value, Fraction(0)),
    },
    maximum=_maximum,
    power=_power,
    number=lambda value: value,
)


def _ball_power(base: Entry, exponent: Entry) -> Entry:
    if isinstance(exponent, Fraction):
        return balls.raised(base, exponent)
    return base.ctx.exp(exponent * balls.logarithm(base))


BALLS = Scalars(
    elementwise={
        "sqrt": lambda value: balls.raised(value, Fraction(1, 2)),
        "exp": lambda value: value.ctx.exp(value),
        "log": balls.logarithm,
        "sin": lambda value: value.ctx.sin(value),
        "cos": lambda value: value.ctx.cos(value),
        "abs": balls.absolute,
        "relu": lambda value: balls.maximum(value, balls.ball(0)),
    },
    maximum=balls.maximum,
    power=_ball_power,
    number=lambda value: balls.ball(value) if isinstance(value, Fraction) else value,
)
OPERATORS: dict[str, Callable[[Entry, Entry], Entry]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
}
COMPARISONS: dict[Comparison, Callable[[int], bool]] = {
    "==": lambda sign: sign == 0,
    "!=": lambda sign: sign != 0,
    "<": lambda sign: sign < 0,
    "<=": lambda sign: sign <= 0,
    ">": lambda sign: sign > 0,
    ">=": lambda sign: sign >= 0,
}


@dataclass(frozen=True)
class Coordinates:
    """Values of names: what a variable or size means inside an expression, and how long the axes are.

    `values` and `sizes` may differ for a size: at D = 4 axes a D inside a formula can stay a symbol.
    """

    values: Mapping[str, Array]
    sizes: Mapping[str, int] = field(default_factory=dict)
    scalars: Scalars = EXACT

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
            case Binary(sign, left, right):
                return arrays.broadcast(OPERATORS[sign], self.evaluate(left), self.evaluate(right))
            case Transpose(operand):
                return arrays.transpose(self.evaluate(operand))
            case Index(operand, indices):
                return arrays.index(self.evaluate(operand), [self.whole(index) for index in indices])
            case Join(parts):
                return arrays.join([self.evaluate(part) for part in parts])
            case Call(function, arguments):
                return self._call(function, arguments).map(self.scalars.number)
        raise Undecided(f"{type(node).__name__} is not evaluated here")

    def _exponent(self, node: Node) -> Array:
        try:
            return Coordinates({}).evaluate(node)
        except Undecided:
            return self.evaluate(node)

    def whole(self, node: Node) -> int:
        """A whole number made of sizes: the length of an axis, or an index."""
        values = {name: arrays.scalar(Fraction(value)) for name, value in self.sizes.items()}
        value = Coordinates(values).evaluate(node).scalar
        if not isinstance(value, Fraction) or value.denominator > 1 or not 0 <= value <= SIZE:
            raise Undecided(f"{node} is no whole number from 0 to {SIZE}")
        return int(value)

    def _call(self, function: str, arguments: "tuple[Node | Text, ...]") -> Array:
        if function in ("I", "ones", "zeros"):
            shape = tuple(self.whole(argument) for argument in arguments if not isinstance(argument, Text))
            if function == "I":
                return arrays.filled((*shape, *shape), lambda place: Fraction(place[0] == place[1]))
            return arrays.filled(shape, lambda place: Fraction(function == "ones"))
        given = [self.evaluate(argument) for argument in arguments if not isinstance(argument, Text)]
        if function in self.scalars.elementwise:
            return given[0].map(self.scalars.elementwise[function])
        if function in ("max", "min"):
            return self._extreme(function, given)
        if function == "einsum" and isinstance(arguments[0], Text):
            return arrays.einsum(arguments[0].text, given)
        if function == "softmax":
            return self._softmax(given[0])
        if function == "norm":
            return arrays.scalar(self.scalars.elementwise["sqrt"](SHAPED["sqnorm"](given[0]).scalar))
        if function not in SHAPED:
            raise Undecided(f"{function} is not evaluated here")
        return SHAPED[function](*given)

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
        """e^{x_i}/Σ_j e^{x_j} along the last axis."""
        if not array.shape or not array.shape[-1]:
            raise Undecided("softmax of what is no vector, or of nothing")
        raised, n = array.map(self.scalars.elementwise["exp"]), array.shape[-1]
        sums = [arrays.total(raised.entries[i : i + n]) for i in range(0, len(raised.entries), n)]
        return Array(array.shape, tuple(value / sums[i // n] for i, value in enumerate(raised.entries)))


def _choose(n: Array, k: Array) -> Array:
    """n·(n-1)···(n-k+1)/k!, also of a symbolic n."""
    count = k.scalar
    if not isinstance(count, Fraction) or count.denominator > 1 or not 0 <= count <= EXPONENT:
        raise Undecided("choose(n, k) needs a whole k")
    falling = [n.scalar - i for i in range(int(count))]
    return arrays.scalar(prod(falling[1:], start=falling[0]) / factorial(len(falling)) if falling else Fraction(1))


SHAPED: dict[str, Callable[..., Array]] = {
    "dot": arrays.dot,
    "sqnorm": lambda array: arrays.scalar(arrays.total(value * value for value in array.entries)),
    "sum": lambda array: arrays.scalar(arrays.total(array.entries)),
    "mean": lambda array: arrays.scalar(arrays.total(array.entries) / len(array.entries)),
    "tr": arrays.trace,
    "vec": arrays.vector,
    "outer": arrays.outer,
    "pairs": arrays.pairs,
    "dim": lambda array: arrays.scalar(Fraction(len(array.entries))),
    "choose": _choose,
}


def sign(value: Entry) -> int:
    """-1, 0 or 1 of an exact number."""
    return (value > 0) - (value < 0) if isinstance(value, Fraction) else balls.sign(value)


def compare(left: Array, comparison: Comparison, right: Array) -> bool:
    """Whether exact arrays compare so in every entry; `!=` is the contrary of `==`."""
    if comparison == "!=":
        return not compare(left, "==", right)
    signs = arrays.broadcast(lambda a, b: sign(a - b), left, right).entries
    return all(map(COMPARISONS[comparison], signs))


def violated(at: Coordinates, chain: Chain) -> int | None:
    """The place of the first comparison of a chain that is false here, None if the chain is true."""
    terms = [at.evaluate(term) for term in chain.terms]
    for place, comparison in enumerate(chain.comparisons):
        if not compare(terms[place], comparison, terms[place + 1]):
            return place
    return None
