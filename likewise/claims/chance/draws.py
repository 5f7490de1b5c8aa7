"""Expressions on arrays: their values on many draws at once, or the range they cannot leave.

One walk over the tree serves both; a table of primitive operations tells values from ranges. Axis 0 of every array
counts draws (1 where nothing is random); a scalar has no other axis, a vector one, a matrix two.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import reduce
from itertools import product
from typing import Any, Literal

import numpy as np

from likewise.claims.language.limits import ELEMENTS, SIZE
from likewise.claims.language.tree import (
    Binary,
    Call,
    Chain,
    Comparison,
    Constant,
    Index,
    Join,
    Moment,
    Name,
    Negative,
    Node,
    Number,
    Probability,
    Text,
    Transpose,
    names,
)
from likewise.claims.verdict import Undecided

Array = np.ndarray


@dataclass(frozen=True, slots=True)
class Range:
    """Everything from `low` to `high`, element by element."""

    low: Array
    high: Array


Value = Array | Range


def each(change: Callable[..., Array], *values: Value) -> Value:
    """Rearranges arrays, and both ends of ranges, without computing with their elements."""
    if all(isinstance(value, np.ndarray) for value in values):
        return change(*values)
    ends = [as_range(value) for value in values]
    return Range(change(*(end.low for end in ends)), change(*(end.high for end in ends)))


def as_range(value: Value) -> Range:
    """A known value is a range of width 0."""
    return value if isinstance(value, Range) else Range(value, value)


def shape(value: Value) -> tuple[int, ...]:
    """Without the axis of the draws."""
    return (value.low if isinstance(value, Range) else value).shape[1:]


def room(*sizes: int) -> None:
    """Refuses a tensor larger than the bound before it is made."""
    if math.prod(sizes) > ELEMENTS or max(sizes, default=0) > SIZE * SIZE:
        raise Undecided(f"a tensor of {' x '.join(map(str, sizes))} elements is over the bound of {ELEMENTS}")


def _corners(combine: Callable[[Array, Array], Array], left: Range, right: Range) -> Range:
    ends = [np.nan_to_num(combine(a, b), nan=0.0, posinf=np.inf, neginf=-np.inf)
            for a, b in product((left.low, left.high), (right.low, right.high))]  # fmt: skip
    return Range(np.minimum.reduce(ends), np.maximum.reduce(ends))


def _divide(left: Range, right: Range) -> Range:
    crosses = (right.low < 0) & (right.high > 0)
    with_sign = Range(
        np.where(crosses, -np.inf, np.where(right.high == 0, -np.inf, 1 / right.high)),
        np.where(crosses, np.inf, np.where(right.low == 0, np.inf, 1 / right.low)),
    )
    return _corners(np.multiply, left, with_sign)


def _power(base: Range, exponent: Range) -> Range:
    if (exponent.low != exponent.high).any():
        return _rising(np.exp)(_corners(np.multiply, exponent, _rising(np.log, 0)(base)))
    if (exponent.low < 0).any():
        return _divide(as_range(np.ones_like(base.low)), _power(base, Range(-exponent.low, -exponent.low)))
    if (exponent.low != np.round(exponent.low)).any():
        base = Range(base.low.clip(0), base.high.clip(0))  # a root of what is negative is no number
    ends = np.power(base.low, exponent.low), np.power(base.high, exponent.low)
    straddles = (base.low < 0) & (base.high > 0) & (exponent.low > 0) & (exponent.low % 2 == 0)
    return Range(np.where(straddles, 0.0, np.minimum(*ends)), np.maximum(*ends))


def _rising(function: Callable[[Array], Array], least: float = -np.inf) -> Callable[[Range], Range]:
    """A function that grows where it is defined, from `least` on."""
    return lambda value: Range(function(value.low.clip(least)), function(value.high.clip(least)))


def _wave(function: Callable[[Array], Array]) -> Callable[[Range], Range]:
    def swing(value: Range) -> Range:
        known = value.low == value.high
        low, high = (np.where(known, function(np.where(known, value.low, 0.0)), edge) for edge in (-1.0, 1.0))
        return Range(low, high)

    return swing


def _absolute(value: Range) -> Range:
    ends = np.abs(value.low), np.abs(value.high)
    return Range(np.where((value.low < 0) & (value.high > 0), 0.0, np.minimum(*ends)), np.maximum(*ends))


def _matrix_product(left: Range, right: Range) -> Range:
    room(*left.low.shape, right.low.shape[-1])
    products = _corners(np.multiply, *(Range(side.low[..., None] if at else side.low[:, None],
                                             side.high[..., None] if at else side.high[:, None])
                                       for at, side in ((1, left), (0, right))))  # fmt: skip
    return Range(products.low.sum(axis=-2), products.high.sum(axis=-2))


def _softmax(values: Array) -> Array:
    weights = np.exp(values - values.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True)


def _erf(values: Array) -> Array:
    return np.vectorize(math.erf, otypes=[float])(values)


ELEMENTWISE = ("sqrt", "exp", "log", "sin", "cos", "erf", "sign", "floor")
ON_DRAWS: dict[str, Callable[..., Any]] = {
    "+": np.add, "-": np.subtract, "*": np.multiply, "/": np.divide, "^": np.power, "negative": np.negative,
    "exp": np.exp, "log": np.log, "sqrt": np.sqrt, "sin": np.sin, "cos": np.cos, "abs": np.abs,
    "max": np.maximum, "min": np.minimum, "@": np.matmul, "softmax": _softmax,
    "sign": np.sign, "floor": np.floor, "erf": _erf,
}  # fmt: skip
ON_RANGES: dict[str, Callable[..., Any]] = {
    "+": lambda a, b: Range(a.low + b.low, a.high + b.high),
    "-": lambda a, b: Range(a.low - b.high, a.high - b.low),
    "*": lambda a, b: _corners(np.multiply, a, b), "/": _divide, "^": _power,
    "negative": lambda a: Range(-a.high, -a.low),
    "exp": _rising(np.exp), "log": _rising(np.log, 0), "sqrt": _rising(np.sqrt, 0),
    "sin": _wave(np.sin), "cos": _wave(np.cos),
    "abs": _absolute, "@": _matrix_product, "sign": _rising(np.sign), "floor": _rising(np.floor), "erf": _rising(_erf),
    "max": lambda a, b: Range(np.maximum(a.low, b.low), np.maximum(a.high, b.high)),
    "min": lambda a, b: Range(np.minimum(a.low, b.low), np.minimum(a.high, b.high)),
    "softmax": lambda a: Range(np.zeros_like(a.low), np.ones_like(a.high)),
}  # fmt: skip


def apply(operation: str, *values: Value) -> Value:
    """One primitive operation; scalars stretch to the shape of the other side, anything else must match."""
    if operation == "@" and [len(shape(value)) for value in values] != [2, 2]:
        raise Undecided("@ needs matrices or vectors")
    if operation == "@" and shape(values[0])[1] != shape(values[1])[0]:
        raise Undecided(f"{shape(values[0])} @ {shape(values[1])} is undefined")
    if operation != "@":
        shapes = {shape(value) for value in values} - {()}
        if len(shapes) > 1:
            raise Undecided(f"shapes {' and '.join(map(str, sorted(shapes)))} do not fit in {operation}")
        rank = max(len(shape(value)) for value in values)
        values = tuple(
            each(lambda a: a.reshape(a.shape + (1,) * (rank + 1 - a.ndim)), value) if not shape(value) else value
            for value in values
        )
    if any(isinstance(value, Range) for value in values):
        return ON_RANGES[operation](*map(as_range, values))
    return ON_DRAWS[operation](*values)


def total(value: Value) -> Value:
    """The sum over everything but the draws."""
    return each(lambda a: a.sum(axis=tuple(range(1, a.ndim))), value)


def constant(value: Any) -> Array:
    """Something known, as an array of one draw."""
    return np.asarray(value, dtype=float)[None]


def ranked(value: Value, rank: int, what: str) -> Value:
    """The value, if it has so many axes."""
    if len(shape(value)) != rank:
        raise Undecided(f"{what} needs a {('number', 'vector', 'matrix')[rank]}")
    return value


def _extreme(operation: str) -> Callable[..., Value]:
    reduce = np.max if operation == "max" else np.min

    def extreme(*values: Value) -> Value:
        if len(values) == 1:
            return each(lambda a: reduce(a, axis=tuple(range(1, a.ndim))), values[0])
        result = values[0]
        for value in values[1:]:
            result = apply(operation, result, value)
        return result

    return extreme


def known(value: Value) -> Array:
    """A value that is not random, without the axis of the draws."""
    ends = as_range(value)
    if len(ends.low) != 1 or not np.array_equal(ends.low, ends.high):
        raise Undecided("a size, an index or a law depends on something random")
    return ends.low[0]


def whole(value: Value, what: str) -> int:
    """A number that counts something."""
    number = known(value)
    if number.ndim or not np.isfinite(number) or number != np.round(number):
        raise Undecided(f"{what} must be a whole number")
    return int(number)


def _of_size(make: Callable[[tuple[int, ...]], Array], what: str) -> Callable[..., Value]:
    def made(*values: Value) -> Value:
        sizes = tuple(whole(value, f"a size of {what}") for value in values)
        room(*sizes, *(sizes if what == "I" else ()))
        return constant(make(sizes))

    return made


def _pairs(value: Value) -> Value:
    (size,) = shape(ranked(value, 1, "pairs"))
    room(size, size)
    first, second = np.triu_indices(size, 1)
    return apply("*", each(lambda a: a[:, first], value), each(lambda a: a[:, second], value))


def _outer(left: Value, right: Value) -> Value:
    room(*shape(ranked(left, 1, "outer")), *shape(ranked(right, 1, "outer")))
    return apply("@", each(lambda a: a[:, :, None], left), each(lambda a: a[:, None, :], right))


def _choose(n: Value, k: Value) -> Value:
    top, bottom = whole(n, "choose"), whole(k, "choose")
    if not 0 <= bottom <= SIZE or not 0 <= top <= SIZE:
        raise Undecided(f"choose({top}, {bottom}) is out of bounds")
    return constant(math.comb(top, bottom))


FUNCTIONS: dict[str, Callable[..., Value]] = {
    "dot": lambda a, b: total(apply("*", a, b)),
    "sqnorm": lambda a: total(apply("^", a, constant(2))),
    "norm": lambda a: apply("sqrt", total(apply("^", a, constant(2)))),
    "sum": total,
    "mean": lambda a: apply("/", total(a), constant(math.prod(shape(a)))),
    "max": _extreme("max"),
    "min": _extreme("min"),
    "abs": lambda a: apply("abs", a),
    "tr": lambda a: total(each(lambda x: np.diagonal(x, axis1=1, axis2=2), ranked(a, 2, "tr"))),
    "vec": lambda a: each(lambda x: x.reshape(len(x), -1), a),
    "outer": _outer,
    "pairs": _pairs,
    "dim": lambda a: constant(shape(ranked(a, 1, "dim"))[0]),
    "relu": lambda a: apply("max", a, constant(0)),
    "softmax": lambda a: apply("softmax", ranked(a, len(shape(a)) or 1, "softmax")),
    "I": _of_size(lambda sizes: np.eye(sizes[0]), "I"),
    "ones": _of_size(np.ones, "ones"),
    "zeros": _of_size(np.zeros, "zeros"),
    "choose": _choose,
} | {name: lambda a, name=name: apply(name, a) for name in ELEMENTWISE}
COMPARE: dict[Comparison, Callable[[Array, Array], Array]] = {
    "==": np.equal, "!=": np.not_equal, "<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal,
}  # fmt: skip


def _einsum(subscripts: str, *values: Value) -> Value:
    inputs, arrow, output = subscripts.replace(" ", "").partition("->")
    spread = ",".join(f"...{part}" for part in inputs.split(",")) + arrow + f"...{output}" * bool(arrow)
    letters = {letter: size for part, value in zip(inputs.split(","), values, strict=False)
               for letter, size in zip(part, shape(value), strict=False)}  # fmt: skip
    room(*letters.values())
    try:
        if all(isinstance(value, np.ndarray) for value in values):
            return np.einsum(spread, *(as_range(value).low for value in values))
        blank = np.einsum(spread, *(np.zeros((1, *shape(value))) for value in values))
    except ValueError as error:
        raise Undecided(f'einsum "{subscripts}": {error}') from None
    return Range(np.full_like(blank, -np.inf), np.full_like(blank, np.inf))


@dataclass(frozen=True)
class Scope:
    """What names, and moments that were already estimated, stand for."""

    values: Mapping[str, Value]
    moments: Mapping[Any, Value]  # by Moment or Probability
    layout: Literal["rows", "columns"] = "rows"
    layouts: Mapping[str, str] | None = None  # of the variables that say `row` or `col`

    def evaluate(self, node: Node) -> Value:
        """The value, or the range, of an expression."""
        match node:
            case Number(value):
                return constant(float(value))
            case Constant():
                return constant(math.pi)
            case Name(name) if name in self.values:
                return self.values[name]
            case Negative(operand):
                return apply("negative", self.evaluate(operand))
            case Binary("*", left, right) if left == right:
                return apply("^", self.evaluate(left), constant(2))  # a range squared is not two ranges multiplied
            case Binary("@", left, right):
                return self._squeezed(apply("@", self._matrix(left), self._matrix(right)))
            case Binary(operator, left, right):
                return apply(operator, self.evaluate(left), self.evaluate(right))
            case Transpose(operand):
                return self._squeezed(each(lambda a: a.swapaxes(1, 2), self._matrix(operand)))
            case Call("einsum", (Text(text), *operands)):
                return _einsum(text, *(self.evaluate(operand) for operand in operands if not isinstance(operand, Text)))
            case Call(function, arguments) if function in FUNCTIONS:
                return FUNCTIONS[function](*(self.evaluate(a) for a in arguments if not isinstance(a, Text)))
            case Index(operand, indices):
                places = tuple(whole(self.evaluate(index), "an index") - 1 for index in indices)
                value = self.evaluate(operand)
                if len(places) != len(shape(value)) or not all(
                    0 <= i < n for i, n in zip(places, shape(value), strict=True)
                ):
                    raise Undecided(f"{node} is outside of a shape {shape(value)}")
                return each(lambda a: a[(slice(None), *places)], value)
            case Join(parts):
                flat = [each(lambda a: a.reshape(len(a), -1), self.evaluate(part)) for part in parts]
                draws = max(len(as_range(value).low) for value in flat)
                return each(
                    lambda *a: np.concatenate([np.broadcast_to(x, (draws, x.shape[1])) for x in a], axis=1), *flat
                )
            case Moment() | Probability() if node in self.moments:
                return self.moments[node]
        raise Undecided(f"{node} has no value here")

    def holds(self, chain: Chain) -> Array:
        """Whether a chain is true, draw by draw."""
        terms = [as_range(self.evaluate(term)) for term in chain.terms]
        pairs = zip(chain.comparisons, terms, terms[1:], strict=False)
        return reduce(np.logical_and, [COMPARE[sign](left.low, right.low) for sign, left, right in pairs])

    def _matrix(self, node: Node) -> Value:
        value = self.evaluate(node)
        if len(shape(value)) != 1:
            return value
        said = {(self.layouts or {})[name] for name in names(node) if name in (self.layouts or {})}
        if len(said) > 1:
            raise Undecided(f"{node} mixes rows and columns")
        row = (said or {"row" if self.layout == "rows" else "col"}) == {"row"}
        return each(lambda a: a[:, None, :] if row else a[:, :, None], value)

    @staticmethod
    def _squeezed(value: Value) -> Value:
        return each(lambda a: a.reshape(len(a)), value) if shape(value) == (1, 1) else value
