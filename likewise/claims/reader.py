"""The one reading of an expression: what every operation of the language means, over any scalars.

format.md says it in words; this module says it once for all engines that compute entry by entry. An engine brings its
own `Scalars` (fractions, normal forms, balls, linear forms, arrays of draws, ...), binds names to arrays of them, and
gets arrays back. Where something is undefined (1/0, the root of a negative number, an index outside its axis) the
scalars or the arrays raise an ArithmeticError or an IndexError; what cannot be told is Undecided.
"""

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import reduce
from math import comb, factorial, floor, isqrt, prod
from typing import Literal

from likewise.claims import arrays
from likewise.claims.arrays import Array, Entry
from likewise.claims.language.limits import BITS, EXPONENT, SIZE
from likewise.claims.language.tree import (
    Binary,
    Call,
    Constant,
    Gradient,
    Index,
    Indexed,
    Join,
    Matrix,
    Name,
    Negative,
    Node,
    Number,
    Text,
    Transpose,
)
from likewise.claims.spelling import DERIVED
from likewise.claims.verdict import Undecided

FACTORIAL = 500


@dataclass(frozen=True)
class Scalars:
    """How one kind of scalars is computed with; + - * and unary - are those of the scalars themselves."""

    elementwise: Mapping[str, Callable[[Entry], Entry]]  # sqrt exp log sin cos abs relu erf sign floor
    maximum: Callable[..., Entry]
    power: Callable[[Entry, Entry], Entry]  # an exponent made of numbers alone stays a Fraction
    number: Callable[[Fraction], Entry]
    divide: Callable[[Entry, Entry], Entry] = operator.truediv
    pi: Callable[[], Entry] | None = None
    minimum: Callable[..., Entry] | None = None  # without one, -maximum(-a, -b)


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
    elementwise={
        "abs": abs,
        "relu": lambda value: max(value, Fraction(0)),
        "sqrt": _rational_root,
        "sign": lambda value: Fraction((value > 0) - (value < 0)),
        "floor": lambda value: Fraction(floor(value)),
    },
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
            case Constant():
                if self.scalars.pi is None:
                    raise Undecided(f"{node} is no fraction")
                return arrays.scalar(self.scalars.pi())
            case Negative(operand):
                return self.evaluate(operand).map(operator.neg)
            case Binary("^", left, right):
                return arrays.broadcast(self.scalars.power, self.evaluate(left), self._exponent(right))
            case Binary("@", left, right):
                return arrays.matmul(self.evaluate(left), self.evaluate(right))
            case Binary("/", left, right):
                return arrays.broadcast(self.scalars.divide, self.evaluate(left), self.evaluate(right))
            case Binary(sign, left, right):
                return arrays.broadcast(self.operation(sign), self.evaluate(left), self.evaluate(right))
            case Transpose(operand):
                return arrays.transpose(self.evaluate(operand))
            case Index(operand, indices):
                return self._line(arrays.index(self.evaluate(operand), [self.whole(index) for index in indices]))
            case Join(parts):
                return arrays.join([self.evaluate(part) for part in parts], self.lies)
            case Matrix(rows):
                return arrays.stacked([self.evaluate(row) for row in rows])
            case Indexed():
                return self._indexed(node).map(self.scalars.number)
            case Gradient(name, body, place):
                return self._gradient(name, body, self.evaluate(place))
            case Call("grad", (body, by)) if isinstance(body, Node):
                return self._derivative(body, by)
            case Call(function, arguments):
                return self._call(function, arguments).map(self.scalars.number)
        raise Undecided(f"{type(node).__name__} is not evaluated here")

    def operation(self, sign: str) -> Callable[[Entry, Entry], Entry]:
        """+, - and * of entries."""
        return OPERATORS[sign]

    def _exponent(self, node: Node) -> Array:
        try:
            return Reader({}).evaluate(node)
        except Undecided:
            return self.evaluate(node)

    def _indexed(self, node: Indexed) -> Array:
        """The function of the values of the body, entry by entry, for every whole number of the range."""
        places = range(self.whole(node.lowest), self.whole(node.highest) + 1)
        found = [self._with_index(node.index, place).evaluate(node.body) for place in places]
        if not found:
            if node.function in ("sum", "prod"):
                return arrays.scalar(Fraction(node.function == "prod"))
            raise ArithmeticError(f"{node.function} of nothing")
        if node.function in ("max", "min"):
            return self._extreme(node.function, found) if len(found) > 1 else found[0]
        join = operator.mul if node.function == "prod" else operator.add
        total = reduce(lambda left, right: arrays.broadcast(join, left, right), found)
        if node.function != "mean":
            return total
        count = self.scalars.number(Fraction(len(found)))
        return total.map(lambda entry: self.scalars.divide(entry, count))

    def _with_index(self, index: str, place: int) -> "Reader":
        value = arrays.scalar(self.scalars.number(Fraction(place)))
        return replace(self, values={**self.values, index: value}, sizes={**self.sizes, index: place})

    def _derivative(self, body: Node, by: "Node | Text") -> Array:
        """grad(f, x) and grad(f, x[i])."""
        if isinstance(by, Index) and isinstance(by.operand, Name):
            whole = self._derivative(body, by.operand)
            axes = len(self.evaluate(body).shape)
            if axes:
                raise Undecided("the derivative of an array by an entry")
            return arrays.index(whole, [self.whole(index) for index in by.indices])
        if not isinstance(by, Name):
            raise Undecided("grad is taken by a variable")
        return self._gradient(by.name, body, self.evaluate(by))

    def _gradient(self, name: str, body: Node, place: Array) -> Array:
        """The derivatives of the body by every entry of a name: the shape of the body, then that of the place."""
        return gradient(self, name, body, place)

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
        if function in DERIVED:
            return self.evaluate(DERIVED[function](*arguments))
        if function in ("reshape", "transpose"):
            first, *rest = (argument for argument in arguments if not isinstance(argument, Text))
            numbers = [self.whole(argument) for argument in rest]
            if function == "reshape":
                return self._line(arrays.reshape(self.evaluate(first), tuple(numbers)))
            return arrays.exchanged(self.evaluate(first), *numbers)
        given = [self.evaluate(argument) for argument in arguments if not isinstance(argument, Text)]
        if function == "choose":
            given = [self._exponent(argument) for argument in arguments if not isinstance(argument, Text)]
        if function == "einsum" and isinstance(arguments[0], Text):
            return self._line(arrays.einsum(arguments[0].text, given))
        return self._applied(function, given)

    def _applied(self, function: str, given: list[Array]) -> Array:
        """A function of values."""
        if function in ELEMENTWISE:
            return given[0].map(self._elementwise(function))
        if function in ("max", "min"):
            return self._extreme(function, given)
        if function == "softmax":
            return self._softmax(given[0])
        if function == "argmax":
            return arrays.scalar(Fraction(self._argmax(given[0].entries)))
        if function == "vec":
            return self._line(arrays.vector(given[0]))
        if function == "mean":
            if not given[0].entries:
                raise ArithmeticError("the mean of nothing")
            count = self.scalars.number(Fraction(len(given[0].entries)))
            return arrays.scalar(self.scalars.divide(arrays.total(given[0].entries), count))
        if function == "norm":
            return arrays.scalar(self._elementwise("sqrt")(SHAPED["sqnorm"](given[0]).scalar))
        if function == "choose":
            return _choose(*given, self.scalars.number)
        if function not in SHAPED:
            raise Undecided(f"{function} is not evaluated here")
        return SHAPED[function](*given)

    def _elementwise(self, function: str) -> Callable[[Entry], Entry]:
        if function not in self.scalars.elementwise:
            raise Undecided(f"{function} is not taken of these numbers")
        return self.scalars.elementwise[function]

    def _extreme(self, function: str, given: list[Array]) -> Array:
        """The largest entry of one array, or of several the largest entry by entry."""
        if len(given) == 1 and not given[0].entries:
            raise ArithmeticError(f"{function} of nothing")
        negated = function == "min" and self.scalars.minimum is None
        pick = self.scalars.minimum if function == "min" and self.scalars.minimum else self.scalars.maximum
        turned = [array.map(operator.neg) if negated else array for array in given]
        found = arrays.scalar(pick(*turned[0].entries)) if len(turned) == 1 else arrays.broadcast(pick, *turned)
        return found.map(operator.neg) if negated else found

    def _argmax(self, entries: Sequence[Entry]) -> int:
        """The place of the largest entry, counted from 1; which one of equal ones is not said."""
        if not entries:
            raise ArithmeticError("argmax of nothing")
        best, tied = 0, False
        for place in range(1, len(entries)):
            above = _sign(self.scalars, entries[place] - entries[best])
            tied = above == 0 or (tied and above < 0)
            best = place if above > 0 else best
        if tied:
            raise Undecided("argmax of equal entries: which of them is a convention")
        return best + 1

    def _softmax(self, array: Array) -> Array:
        """e^{x_i}/Σ_j e^{x_j} along the last axis, or along a line."""
        if not array.shape or not array.entries:
            raise Undecided("softmax of what is no vector, or of nothing")
        raised, n = array.map(self._elementwise("exp")), len(array.entries) if array.line else array.shape[-1]
        sums = [arrays.total(raised.entries[i : i + n]) for i in range(0, len(raised.entries), n)]
        shares = (self.scalars.divide(value, sums[i // n]) for i, value in enumerate(raised.entries))
        return Array(array.shape, tuple(shares), array.line)


@dataclass(frozen=True)
class WholeVectors(Reader):
    """The reader where a vector of any length stands in the place of one entry, for every length at once.

    An heir says which entries are vectors, how they are added and multiplied, and what the dot product, the sum of the
    entries and the length are. The other functions of vectors follow from these; what looks into a vector is Undecided.
    """

    def is_vector(self, value: Entry) -> bool:
        """Whether an entry stands for a vector."""
        raise NotImplementedError

    def dot(self, left: Entry, right: Entry) -> Entry:
        """Σ x_i·y_i of two vectors."""
        raise NotImplementedError

    def total(self, vector: Entry) -> Entry:
        """Σ x_i."""
        raise NotImplementedError

    def length(self, vector: Entry) -> Entry:
        """How many entries it has."""
        raise NotImplementedError

    def filled(self, value: Fraction, lengths: "tuple[Node | Text, ...]") -> Entry:
        """A vector of zeros or ones."""
        raise NotImplementedError

    def largest(self, vector: Entry) -> Entry:
        """The largest entry."""
        raise Undecided(f"the largest entry of {vector}")

    def evaluate(self, node: Node) -> Array:
        """The value of an expression that works on whole vectors."""
        match node:
            case Binary("@", left, right):
                return self._applied("dot", [self.evaluate(left), self.evaluate(right)])
            case Call("ones" | "zeros" as function, lengths):
                return arrays.scalar(self.filled(Fraction(function == "ones"), lengths))
            case Call("I" | "reshape" | "transpose" | "einsum" | "grad", _):
                raise Undecided(f"{node} is not read for every length at once")
            case Number() | Constant() | Name() | Negative() | Binary() | Call():
                return super().evaluate(node)
        raise Undecided(f"{node} is not read for every length at once")

    def _applied(self, function: str, given: list[Array]) -> Array:
        values = [array.scalar for array in given]
        vectors = [value for value in values if self.is_vector(value)]
        if not vectors or function in ELEMENTWISE or (function in ("max", "min") and len(values) > 1):
            return super()._applied(function, given)
        if len(vectors) < len(values):
            raise Undecided(f"{function} of a vector and a number")
        return arrays.scalar(self._of_vectors(function, *values))

    def _of_vectors(self, function: str, first: Entry, *rest: Entry) -> Entry:
        match function:
            case "dot":
                return self.dot(first, *rest)
            case "sqnorm":
                return self.dot(first, first)
            case "norm":
                return self._elementwise("sqrt")(self.dot(first, first))
            case "sum":
                return self.total(first)
            case "mean":
                return self.scalars.divide(self.total(first), self.length(first))
            case "dim":
                return self.length(first)
            case "softmax":
                raised = self._elementwise("exp")(first)
                return self.scalars.divide(raised, self.total(raised))
            case "max":
                return self.largest(first)
            case "min":
                return -self.largest(-first)
        raise Undecided(f"{function} looks into a vector of any length")


ELEMENTWISE = frozenset({"sqrt", "exp", "log", "sin", "cos", "abs", "relu", "erf", "sign", "floor"})


def _choose(n: Array, k: Array, number: Callable[[Fraction], Entry]) -> Array:
    """n·(n-1)···(n-k+1)/k!, also of a symbolic n."""
    top, count = n.scalar, k.scalar
    if not isinstance(count, Fraction) or count.denominator > 1 or count < 0:
        raise Undecided("choose(n, k) needs a whole k")
    if isinstance(top, Fraction) and top.denominator == 1 and top >= count:
        few = int(min(count, top - count))
        if few * top.numerator.bit_length() > BITS:
            raise Undecided("choose(n, k) of large numbers")
        return arrays.scalar(number(Fraction(comb(int(top), few))))
    if count > EXPONENT:
        raise Undecided(f"choose(n, k) of a k above {EXPONENT}")
    start = number(top) if isinstance(top, Fraction) else top
    falling = [start - i for i in range(int(count))]
    product = prod(falling[1:], start=falling[0]) if falling else number(Fraction(1))
    share = Fraction(1, factorial(len(falling)))
    return arrays.scalar(product * number(share))


def _factorial(value: Entry) -> Fraction:
    """1·2···n of a whole number n that is not negative."""
    if not hasattr(value, "denominator"):
        raise Undecided("a factorial of what is no known number")
    n, below = int(value.numerator), int(value.denominator)
    if below > 1 or n < 0:
        raise ArithmeticError("a factorial of what is no whole number")
    if n > FACTORIAL:
        raise Undecided(f"a factorial above {FACTORIAL}")
    return Fraction(factorial(n))


def _product(array: Array) -> Array:
    """The product of all entries; of nothing it is 1."""
    return arrays.scalar(prod(array.entries[1:], start=array.entries[0]) if array.entries else Fraction(1))


SHAPED: dict[str, Callable[..., Array]] = {
    "dot": arrays.dot,
    "sqnorm": lambda array: arrays.scalar(arrays.total(value * value for value in array.entries)),
    "sum": lambda array: arrays.scalar(arrays.total(array.entries)),
    "tr": arrays.trace,
    "outer": arrays.outer,
    "pairs": arrays.pairs,
    "dim": lambda array: arrays.scalar(Fraction(len(array.entries))),
    "factorial": lambda array: array.map(_factorial),
    "prod": _product,
}


class Slope:
    """A number and how fast it changes along one direction; `rate` is None where it does not depend on it."""

    def __init__(self, scalars: Scalars, value: Entry, rate: Entry = None) -> None:
        self.scalars, self.value = scalars, value
        self.rate: Entry = rate

    def _of(self, value: Entry, rate: Entry | None) -> "Slope":
        return Slope(self.scalars, value, rate)

    def _other(self, other: Entry) -> "Slope":
        return other if isinstance(other, Slope) else self._of(self.scalars.number(other), None)

    def __add__(self, other: Entry) -> "Slope":
        other = self._other(other)
        return self._of(self.value + other.value, _sum(self.rate, other.rate))

    def __neg__(self) -> "Slope":
        return self._of(-self.value, None if self.rate is None else -self.rate)

    def __sub__(self, other: Entry) -> "Slope":
        return self + -self._other(other)

    def __rsub__(self, other: Entry) -> "Slope":
        return -self + other

    def __mul__(self, other: Entry) -> "Slope":
        other = self._other(other)
        rates = (
            None if rate is None else rate * factor.value for rate, factor in ((self.rate, other), (other.rate, self))
        )
        return self._of(self.value * other.value, _sum(*rates))

    __radd__, __rmul__ = __add__, __mul__

    def divided(self, other: "Slope") -> "Slope":
        """self/other."""
        quotient = self.scalars.divide(self.value, other.value)
        turned = None if other.rate is None else -(quotient * other.rate)
        rate = _sum(self.rate, turned)
        return self._of(quotient, None if rate is None else self.scalars.divide(rate, other.value))

    def raised(self, exponent: Entry) -> "Slope":
        """self^exponent."""
        power = self.scalars.power
        if isinstance(exponent, Slope) and exponent.rate is None and isinstance(exponent.value, Fraction):
            exponent = exponent.value  # a size, or a variable that stands still
        if not isinstance(exponent, Slope):
            value = power(self.value, exponent)
            if self.rate is None or not exponent:
                return self._of(value, None)
            if Fraction(exponent).denominator > 1:
                self._edge()
            return self._of(
                value,
                self._singular(lambda: power(self.value, exponent - 1)) * (self.rate * self.scalars.number(exponent)),
            )
        value = power(self.value, exponent.value)
        parts = [None, None]
        if exponent.rate is not None:
            parts[0] = value * self.scalars.elementwise["log"](self.value) * exponent.rate
        if self.rate is not None:
            self._edge()
            parts[1] = power(self.value, exponent.value - 1) * exponent.value * self.rate
        return self._of(value, _sum(*parts))

    def _edge(self) -> None:
        """A power that is no whole one ends at a base of 0: no derivative there, unless the base stays 0."""
        try:
            edge = _sign(self.scalars, self.value) == 0
        except Undecided:
            return
        if edge and _sign(self.scalars, self.rate) == 0:
            raise Undecided("the derivative of a power of 0")
        if edge:
            raise ArithmeticError("no derivative at the end of a power")

    def _singular(self, slope: Callable[[], Entry]) -> Entry:
        """The slope of a root, which is infinite at 0, unless what is under the root stays there."""
        try:
            return slope()
        except ZeroDivisionError:
            if _sign(self.scalars, self.rate) == 0:
                raise Undecided("the derivative of a root of 0") from None
            raise

    def mapped(self, function: str) -> "Slope":
        """One of ELEMENTWISE."""
        if function not in self.scalars.elementwise:
            raise Undecided(f"{function} is not taken of these numbers")
        value = self.scalars.elementwise[function](self.value)
        if self.rate is None:
            return self._of(value, None)
        if function in ("abs", "relu"):
            return self._of(value, self._bent(function, value))
        if function in ("sign", "floor"):
            if function == "sign" and _sign(self.scalars, self.value) != 0:
                return self._of(value, None)
            raise Undecided(f"{function} jumps")
        return self._of(value, self._smooth(function, value) * self.rate)

    def _smooth(self, function: str, value: Entry) -> Entry:
        known, divide = self.scalars.elementwise, self.scalars.divide
        match function:
            case "exp":
                return value
            case "log":
                return divide(self.scalars.number(Fraction(1)), self.value)
            case "sin":
                return known["cos"](self.value)
            case "cos":
                return -known["sin"](self.value)
            case "sqrt":
                return self._singular(lambda: divide(self.scalars.number(Fraction(1)), value * 2))
        if function != "erf" or self.scalars.pi is None:
            raise Undecided(f"{function} is not differentiated")
        return divide(known["exp"](-(self.value * self.value)) * 2, known["sqrt"](self.scalars.pi()))

    def _bent(self, function: str, value: Entry) -> Entry:
        """abs and relu: the slope on the side that the direction leads to."""
        try:
            side = _sign(self.scalars, self.value)
        except Undecided:
            return self.scalars.divide(value, self.value) * self.rate
        if side == 0:
            rate = _sign(self.scalars, self.rate)
            return self.rate * (max(rate, 0) if function == "relu" else rate)
        return self.rate if side > 0 else -self.rate if function == "abs" else self.rate * 0


def _sign(scalars: Scalars, value: Entry) -> int:
    """-1, 0 or 1 where it is a known number; terms and intervals are not."""
    found: Entry = scalars.elementwise["sign"](value) if "sign" in scalars.elementwise else None
    if not isinstance(found, Fraction) and type(found).__name__ != "fmpq":
        raise Undecided("a sign that is not known")
    return (found > 0) - (found < 0)


def _sum(left: Entry | None, right: Entry | None) -> Entry | None:
    return right if left is None else left if right is None else left + right


def _largest(*values: Slope) -> Slope:
    """max(a, b) = b + relu(a - b), one after the other."""
    found = values[0]
    for value in values[1:]:
        found = value + (found - value).mapped("relu")
    return found


def slopes(scalars: Scalars) -> Scalars:
    """Numbers with their rates of change, over any scalars."""

    def number(value: Entry) -> Slope:
        return value if isinstance(value, Slope) else Slope(scalars, scalars.number(value))

    return Scalars(
        elementwise={name: lambda value, name=name: value.mapped(name) for name in ELEMENTWISE},
        maximum=_largest,
        power=lambda base, exponent: base.raised(exponent),
        number=number,
        divide=lambda top, bottom: number(top).divided(number(bottom)),
        pi=None if scalars.pi is None else lambda: Slope(scalars, scalars.pi()),  # ty: ignore[call-non-callable]
    )


def gradient(at: Reader, name: str, body: Node, place: Array) -> Array:
    """The derivatives of the body by every entry of a name: the shape of the body, then that of the place.

    Going forward and backward along an entry must give opposite rates: at a kink they do not, and there is none.
    """
    scalars = slopes(at.scalars)
    lifted = {other: value.map(scalars.number) for other, value in at.values.items() if other != name}
    one = at.scalars.number(Fraction(1))

    def rates(entry: int, direction: Entry) -> Array:
        moved = [
            Slope(at.scalars, value, direction if number == entry else None)
            for number, value in enumerate(place.entries)
        ]
        values = {**lifted, name: Array(place.shape, tuple(moved), place.line)}
        found = Reader(values, at.sizes, scalars, at.lies).evaluate(body)
        return found.map(lambda entry: at.scalars.number(Fraction(0)) if entry.rate is None else entry.rate)

    columns = []
    for entry in range(len(place.entries)):
        forward, backward = rates(entry, one), rates(entry, -one)
        for a, b in zip(forward.entries, backward.entries, strict=True):
            if not _is_zero(at.scalars, a + b):
                raise ArithmeticError("no derivative at a kink")
        columns.append(forward)
    if not columns:
        raise Undecided("a derivative by nothing")
    inner = columns[0]
    entries = tuple(column.entries[number] for number in range(len(inner.entries)) for column in columns)
    if not inner.shape:
        return Array(place.shape, entries, place.line)
    if not place.shape:
        return Array(inner.shape, entries, inner.line)
    flat = [(len(each.entries),) if each.line else each.shape for each in (inner, place)]
    return Array(flat[0] + flat[1], entries)


def _is_zero(scalars: Scalars, value: Entry) -> bool:
    """Whether it is 0; what balls leave open is taken as 0 only if they contain it."""
    try:
        return _sign(scalars, value) == 0
    except Undecided:
        return True
