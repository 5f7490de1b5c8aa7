"""Expressions at one point, operation by operation as format.md has them, on numpy's arrays of objects."""

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import combinations
from math import factorial, prod
from typing import Any, Literal

import numpy as np
from flint import arb, fmpq

from likewise.claims.judge.numbers import (
    ELEMENTWISE,
    OPERATORS,
    Misfit,
    Outside,
    Scalar,
    Turned,
    Unclear,
    Undefined,
    ball,
    divide,
    exponential,
    factorial_of,
    larger,
    rational,
    remainder,
    sign,
    smaller,
    still,
)
from likewise.claims.language.claim import Claim, Integers, Reals, Tolerance, Variable
from likewise.claims.language.tree import (
    Binary,
    Call,
    Chain,
    Comparison,
    Constant,
    Gradient,
    Index,
    Indexed,
    Join,
    Matrix,
    Moment,
    Name,
    Negative,
    Node,
    Number,
    Probability,
    Text,
    Transpose,
)

Truth = Literal["true", "false", "undefined", "close", "unclear"]
LONGEST = 4_096  # of one axis
ENTRIES = 40_000  # of one array
TERMS = 300  # of a sum over an index
DENIED = {"==": "!=", "!=": "==", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}


@dataclass(frozen=True)
class Value:
    """An array of scalars; `line` marks a vector that is written as one row or one column."""

    array: np.ndarray
    line: bool = False


def boxed(entries: Any, shape: tuple[int, ...] = ()) -> np.ndarray:
    """An object array of a shape, filled in row-major order."""
    if not isinstance(entries, list):
        array = np.empty((), dtype=object)
        array[()] = entries
        return array.reshape(shape)
    array = np.empty(prod(shape), dtype=object)
    array[:] = entries
    return array.reshape(shape)


def number(value: Fraction | int) -> Value:
    """One exact number."""
    return Value(boxed(rational(value)))


def each(function: Callable[..., Scalar], *values: Value) -> Value:
    """Entry by entry, broadcast as torch does."""
    if all(value.array.ndim == 0 for value in values):
        return Value(boxed(function(*(value.array.item() for value in values))))
    try:
        shape = np.broadcast_shapes(*(value.array.shape for value in values))
    except ValueError:
        raise Misfit(" and ".join(str(list(value.array.shape)) for value in values)) from None
    if prod(shape) > ENTRIES:
        raise Unclear("a large array")
    found = np.frompyfunc(function, len(values), 1)(*(value.array for value in values))
    line = any(value.line for value in values) and len(shape) == 2 and 1 in shape
    return Value(found if isinstance(found, np.ndarray) else boxed(found), line)


def total(entries: Any) -> Value:
    """The sum of all entries; 0 for none."""
    return Value(boxed(sum(list(entries), fmpq(0))))


@dataclass(frozen=True)
class Point:
    """One choice of sizes and variables; `lying`: every vector is a row, or a column, of the claim's layout."""

    claim: Claim
    sizes: Mapping[str, int]
    values: Mapping[str, np.ndarray]
    lying: bool = False
    drawn: Mapping[str, Value] | None = None  # random variables, inside E, Var and P
    terms: int = TERMS  # of a sum over an index, at most
    moved: Mapping[str, Value] = field(default_factory=dict)  # names that derivatives are taken by

    def value(self, node: Node) -> Value:
        """The value of an expression."""
        match node:
            case Number(value):
                return number(value)
            case Constant():
                return Value(boxed(arb.pi()))
            case Name(name):
                return self._named(name)
            case Negative(operand):
                return each(operator.neg, self.value(operand))
            case Binary("@", left, right):
                return self._product(self.value(left), self.value(right))
            case Binary(sign_, left, right):
                return each(OPERATORS[sign_], self.value(left), self.value(right))
            case Transpose(operand):
                return self._transposed(self.value(operand))
            case Index(operand, indices):
                return self._entry(self.value(operand), [self.whole(index) for index in indices])
            case Join(parts):
                return self._joined([self.value(part) for part in parts])
            case Matrix(rows):
                return self._stacked([self.value(row) for row in rows])
            case Call("einsum", (Text(subscripts), *operands)):
                return self._einsum(subscripts, [self.value(part) for part in operands if not isinstance(part, Text)])
            case Call("I" | "ones" | "zeros" as function, arguments):
                return self._filled(function, [self.whole(part) for part in arguments if not isinstance(part, Text)])
            case Indexed(function, _, _, _, body):
                return self.folded(function, [inner.value(body) for inner in self.indexed(node)])
            case Call("reshape" | "transpose" as function, (first, *rest)) if isinstance(first, Node):
                numbers = [self.whole(part) for part in rest if isinstance(part, Node)]
                return self.rearranged(function, self.value(first), numbers)
            case Moment() | Probability() | Gradient() | Call("grad", _):
                return self.averaged(node)
            case Call(function, arguments):
                return self._call(function, [self.value(part) for part in arguments if not isinstance(part, Text)])
        raise Unclear(f"{node} is nothing the judge knows")

    def averaged(self, node: Node) -> Value:
        """Expectations, probabilities and derivatives, for which `RandomPoint` stands."""
        raise Unclear(f"{node} is no value at one point")

    def whole(self, node: Node, most: int = LONGEST) -> int:
        """A whole number made of sizes."""
        whole = {each.name for each in self.claim.variables if isinstance(each.kind, Integers)}
        known = {name: value for name, value in self.values.items() if name in whole}
        array = Point(self.claim, self.sizes, known).value(node).array
        found: Scalar = array.reshape(-1)[0] if not array.shape else None
        if not isinstance(found, fmpq) or found.q != 1:
            raise Outside(f"{node} is no whole number")
        if not -most <= found <= most:
            raise Unclear(f"{node} is large")
        return int(found.p)

    def shape(self, variable: Variable) -> tuple[int, ...]:
        """The shape of a variable that is not random; a vector that lies has two axes."""
        dims = variable.kind.dims if isinstance(variable.kind, Reals) else ()
        if not dims:
            return ()
        shape = tuple(self.whole(dim) for dim in dims)
        if any(n < 0 for n in shape):
            raise Outside("a negative length")
        return self.lies(shape, variable.layout) if len(shape) == 1 else shape

    def lies(self, shape: tuple[int, ...], layout: str | None = None) -> tuple[int, ...]:
        """A vector's shape: one axis, or two where vectors lie."""
        if layout is None and not self.lying and "layout" not in self.claim.given_fields:
            return shape
        column = layout == "col" if layout else self.claim.layout == "columns"
        return (*shape, 1) if column else (1, *shape)

    def line(self, entries: list, like: list[Value] | None = None) -> Value:
        """A vector: it lies as the others do, or else as the claim's layout says."""
        shapes = [value.array.shape for value in like or [] if value.array.ndim == 2]
        layouts = [layout for layout, axis in (("row", 0), ("col", 1)) if all(shape[axis] == 1 for shape in shapes)]
        shape = self.lies((len(entries),), layouts[0] if shapes and layouts else None)
        return Value(boxed(entries, shape), len(shape) == 2)

    def indexed(self, node: Indexed) -> "list[Point]":
        """This point with every whole number of the range for the index."""
        first, last = self.whole(node.lowest), self.whole(node.highest)
        if last - first >= self.terms:
            raise Unclear("a long sum")
        inside = min(self.terms, TERMS)
        return [replace(self, sizes={**self.sizes, node.index: i}, terms=inside) for i in range(first, last + 1)]

    def folded(self, function: str, values: list[Value]) -> Value:
        """The sum, product, mean, largest or smallest of values, entry by entry."""
        if not values:
            if function not in ("sum", "prod"):
                raise Undefined(f"{function} of nothing")
            return number(int(function == "prod"))
        join = {"prod": operator.mul, "max": larger, "min": smaller}.get(function, operator.add)
        found = values[0]
        for value in values[1:]:
            found = each(join, found, value)
        return each(divide, found, number(len(values))) if function == "mean" else found

    def rearranged(self, function: str, value: Value, numbers: list[int]) -> Value:
        """reshape(x, n, m) and transpose(x, i, j)."""
        if function == "transpose":
            axes = value.array.ndim
            if value.line or not all(1 <= n <= axes for n in numbers):
                raise Misfit(f"axes {numbers} of {list(value.array.shape)}")
            return Value(value.array.swapaxes(numbers[0] - 1, numbers[1] - 1))
        if any(n < 0 for n in numbers) or prod(numbers) != value.array.size:
            raise Misfit(f"{value.array.size} entries into {numbers}")
        if len(numbers) == 1:
            return self.line(list(value.array.reshape(-1)))
        return Value(value.array.reshape(numbers))

    def _named(self, name: str) -> Value:
        if name in self.sizes:
            return number(self.sizes[name])
        if name in self.moved:
            return self.moved[name]
        if self.drawn is not None and name in self.drawn:
            return self.drawn[name]
        if name not in self.values:
            raise Unclear(f"{name} has no value")
        variable = self.claim.variable(name)
        vector = variable is not None and isinstance(variable.kind, Reals) and len(variable.kind.dims) == 1
        return Value(self.values[name], vector and self.values[name].ndim == 2)

    def _product(self, left: Value, right: Value) -> Value:
        a, b = left.array, right.array
        if not a.ndim or not b.ndim or a.shape[-1] != b.shape[-2 if b.ndim > 1 else 0]:
            raise Misfit(f"{list(a.shape)} @ {list(b.shape)}")
        if a.shape[-1] == 0:
            raise Unclear("a product over nothing")
        try:
            found = a @ b
        except ValueError:
            raise Misfit(f"{list(a.shape)} @ {list(b.shape)}") from None
        return Value(found if isinstance(found, np.ndarray) else boxed(found))

    def _transposed(self, value: Value) -> Value:
        if value.array.ndim == 1:
            raise Turned
        return Value(value.array.swapaxes(-1, -2), value.line) if value.array.ndim else value

    def _entry(self, value: Value, indices: list[int]) -> Value:
        array = value.array.reshape(-1) if value.line and len(indices) == 1 else value.array
        if len(indices) > array.ndim:
            raise Misfit(f"{len(indices)} indices into {list(array.shape)}")
        if any(not 1 <= i <= n for i, n in zip(indices, array.shape, strict=False)):
            raise Undefined("an index outside its axis")
        found = array[tuple(i - 1 for i in indices)]
        if not isinstance(found, np.ndarray):
            return Value(boxed(found))
        return self.line(list(found)) if found.ndim == 1 else Value(found)

    def _joined(self, parts: list[Value]) -> Value:
        if any(sum(n != 1 for n in part.array.shape) > 1 for part in parts):
            raise Misfit("[a, b] joins numbers and vectors")
        return self.line([entry for part in parts for entry in part.array.reshape(-1)], parts)

    def _stacked(self, rows: list[Value]) -> Value:
        arrays = [row.array.reshape(-1) if row.line else row.array for row in rows]
        if len({array.shape for array in arrays}) > 1:
            raise Misfit("rows of different lengths")
        return Value(np.stack(arrays))

    def _einsum(self, subscripts: str, values: list[Value]) -> Value:
        inputs, arrow, output = subscripts.replace(" ", "").partition("->")
        groups = inputs.split(",")
        arrays = [
            v.array.reshape(-1) if v.line and len(g) == 1 else v.array for g, v in zip(groups, values, strict=False)
        ]
        lengths = {
            (letter, n) for g, a in zip(groups, arrays, strict=False) for letter, n in zip(g, a.shape, strict=False)
        }
        wrong = not set(output) <= set(inputs) - {","} or len(set(output)) < len(output)
        if len(groups) != len(values) or wrong or any(len(g) != a.ndim for g, a in zip(groups, arrays, strict=True)):
            raise Misfit(f"einsum {subscripts}")
        if len(lengths) > len({letter for letter, _ in lengths}):
            raise Misfit(f"einsum {subscripts}: a subscript with two lengths")
        if not arrow:
            output = "".join(sorted(letter for letter in set(inputs) - {","} if inputs.count(letter) == 1))
        if prod(n for _, n in lengths) > ENTRIES or any(n == 0 for _, n in lengths):
            raise Unclear("a large einsum, or one over nothing")
        found = np.einsum(f"{inputs}->{output}", *arrays)
        if not isinstance(found, np.ndarray):
            return Value(boxed(found))
        return self.line(list(found)) if found.ndim == 1 else Value(found)

    def _filled(self, function: str, shape: list[int]) -> Value:
        if any(n < 0 for n in shape):
            raise Outside("a negative length")
        if prod(shape) > ENTRIES or (function == "I" and shape[0] ** 2 > ENTRIES):
            raise Unclear("a large array")
        if function == "I":
            n = shape[0]
            return Value(boxed([fmpq(int(i == j)) for i in range(n) for j in range(n)], (n, n)))
        entries = [fmpq(int(function == "ones"))] * prod(shape)
        return self.line(entries) if len(shape) == 1 else Value(boxed(entries, tuple(shape)))

    def _call(self, function: str, given: list[Value]) -> Value:
        first = given[0]
        entries = list(first.array.reshape(-1))
        if function in ELEMENTWISE:
            return each(ELEMENTWISE[function], first)
        if function in ("max", "min"):
            pick = larger if function == "max" else smaller
            if len(given) == 1:
                if not entries:
                    raise Undefined(f"{function} of nothing")
                given = [Value(boxed(entry)) for entry in entries]
            found = given[0]
            for value in given[1:]:
                found = each(pick, found, value)
            return found
        match function:
            case "dot":
                return self._dot(first, given[1])
            case "sqnorm":
                return total(each(operator.mul, first, first).array.reshape(-1))
            case "norm":
                return each(ELEMENTWISE["sqrt"], self._call("sqnorm", given))
            case "sum":
                return total(entries)
            case "mean":
                return each(divide, total(entries), number(len(entries)))
            case "dim":
                return number(len(entries))
            case "tr":
                if first.array.ndim != 2 or first.array.shape[0] != first.array.shape[1]:
                    raise Misfit(f"tr of {list(first.array.shape)}")
                return total(np.diagonal(first.array))
            case "vec":
                return self.line(entries)
            case "outer":
                require_vectors(*given)
                rights = list(given[1].array.reshape(-1))
                return Value(boxed([a * b for a in entries for b in rights], (len(entries), len(rights))))
            case "pairs":
                require_vectors(first)
                return self.line([a * b for a, b in combinations(entries, 2)], [first])
            case "softmax":
                return self._softmax(first)
            case "prod":
                return Value(boxed(prod(entries, start=fmpq(1))))
            case "mod":
                return each(remainder, first, given[1])
            case "argmax":
                return number(largest_place(entries))
            case "choose":
                return self._choose(first, given[1])
        raise Unclear(f"{function} is nothing the judge knows")

    def _dot(self, left: Value, right: Value) -> Value:
        if left.array.shape != right.array.shape:
            require_vectors(left, right)
        a, b = left.array.reshape(-1), right.array.reshape(-1)
        if len(a) != len(b):
            raise Misfit(f"dot of {list(left.array.shape)} and {list(right.array.shape)}")
        return total(x * y for x, y in zip(a, b, strict=True))

    def _softmax(self, value: Value) -> Value:
        if value.line:
            flat = self._softmax(Value(value.array.reshape(-1)))
            return Value(flat.array.reshape(value.array.shape), True)
        if not value.array.ndim:
            raise Misfit("softmax of a number")
        raised = each(exponential, value).array
        sums = np.array([sum(list(row), fmpq(0)) for row in raised.reshape(-1, raised.shape[-1])], dtype=object)
        return each(divide, Value(raised), Value(sums.reshape(*raised.shape[:-1], 1)))

    def _choose(self, top: Value, bottom: Value) -> Value:
        if top.array.size != 1 or bottom.array.size != 1:
            raise Misfit("choose takes two numbers")
        n, k = still(top.array.reshape(-1)[0]), still(bottom.array.reshape(-1)[0])
        if not isinstance(k, fmpq) or k.q != 1 or k < 0:
            raise Unclear("choose(n, k) needs a whole k")
        if k > LONGEST:
            if not isinstance(n, fmpq) or n.q != 1 or n < k:
                raise Unclear("choose(n, k) of a large k")
            parts = [factorial_of(int(value.p)) for value in (n, k, n - k)]
            return Value(boxed(parts[0] / (parts[1] * parts[2])))
        falling = prod((n - i for i in range(int(k.p))), start=fmpq(1))
        return Value(boxed(falling / factorial(int(k.p))))

    def truth(self, chain: Chain, within: Tolerance | None = None) -> Truth:
        """A chain at this point; the first comparison that is surely false decides."""
        sides = [self._side(term) for term in chain.terms]
        found = [
            self._compared(left, comparison, right, within)
            for left, comparison, right in zip(sides, chain.comparisons, sides[1:], strict=False)
        ]
        for place, comparison in enumerate(chain.comparisons):
            if found[place] == "close" and within is None and self._same(*chain.terms[place : place + 2]):
                found[place] = "true" if comparison in ("==", "<=", ">=") else "false"
        return next((truth for truth in ("false", "unclear", "close", "undefined") if truth in found), "true")

    def _same(self, left: Node, right: Node) -> bool:
        """Whether two numbers that balls do not tell apart are one formula of exact numbers: 1*exp(-1) and exp(-1)."""
        one = self._folded(left)
        return one is not None and one == self._folded(right)

    def _folded(self, node: Node) -> Any:
        """A formula with its exact parts computed; None of what is no formula of numbers."""
        match node:
            case Number(value):
                return rational(value)
            case Constant(name):
                return name
            case Name(name):
                value = self._named(name).array
                return value.item() if not value.ndim and isinstance(value.item(), fmpq) else None
            case Negative(operand):
                name, function, parts = "*", operator.mul, [fmpq(-1), self._folded(operand)]
            case Binary("+" | "*" | "/" | "^" as name, left, right):
                function, parts = OPERATORS[name], [self._folded(left), self._folded(right)]
            case Call(name, (inner,)) if name in ELEMENTWISE and not isinstance(inner, Text):
                function, parts = ELEMENTWISE[name], [self._folded(inner)]
            case _:
                return None
        if any(part is None for part in parts):
            return None
        if all(isinstance(part, fmpq) for part in parts):
            value = function(*parts)
            if isinstance(value, fmpq):
                return value
        unit = {"+": 0, "*": 1, "/": 1, "^": 1}.get(name)
        if name in ("+", "*"):
            parts = sorted((part for part in parts if part != unit), key=str)
        elif len(parts) == 2 and parts[1] == unit:
            parts = parts[:1]
        return parts[0] if len(parts) == 1 and unit is not None else (name, *parts)

    def against(self, chain: Chain, within: Tolerance | None = None) -> str:
        """The first comparison that is surely false here, with the values of its sides: `7 != 9`; empty without one."""
        sides = [self._side(term) for term in chain.terms]
        for left, comparison, right in zip(sides, chain.comparisons, sides[1:], strict=False):
            if self._compared(left, comparison, right, within) == "false":
                return f"{_shown(left)} {DENIED[comparison]} {_shown(right)}{f' within {within}' if within else ''}"
        return ""

    def _side(self, node: Node) -> "Value | Undefined | Unclear":
        try:
            return self.value(node)
        except (Undefined, Unclear) as reason:
            return reason

    def _compared(
        self, left: "Value | Exception", comparison: Comparison, right: "Value | Exception", within: Tolerance | None
    ) -> Truth:
        if isinstance(left, Unclear) or isinstance(right, Unclear):
            return "unclear"
        if isinstance(left, Exception) or isinstance(right, Exception):
            both = isinstance(left, Exception) and isinstance(right, Exception)
            return "false" if comparison == "==" and not both else "undefined"
        if within is not None:
            if left.array.size != 1 or right.array.size != 1:
                raise Misfit("within compares numbers")
            slack = number(within.value)
            slack = each(lambda a, b: a * abs(b), slack, right) if within.relative else slack
            left, comparison, right = each(lambda a, b: abs(a - b), left, right), "<=", slack
        signs = each(lambda a, b: sign(a - b), left, right).array.reshape(-1)
        if not len(signs):
            return "undefined"
        allowed = {"==": {0}, "!=": {0}, "<": {-1}, "<=": {-1, 0}, ">": {1}, ">=": {0, 1}}[comparison]
        if any(entry is not None and entry not in allowed for entry in signs):
            return "true" if comparison == "!=" else "false"
        if any(entry is None for entry in signs):
            return "close"
        return "false" if comparison == "!=" else "true"


def _shown(side: "Value | Exception") -> str:
    """A value in numbers: exact, or the middle of its ball in six digits."""
    if isinstance(side, Exception):
        return "undefined"
    texts = [
        str(entry) if isinstance(entry, fmpq) and len(str(entry)) <= 12 else f"{float(ball(entry).mid()):.6g}"
        for entry in map(still, side.array.reshape(-1))
    ]
    return texts[0] if len(texts) == 1 else f"({','.join(texts)})"


def largest_place(entries: list[Scalar]) -> int:
    """Where the largest entry stands, counted from 1, if there is one."""
    if not entries:
        raise Undefined("argmax of nothing")
    for i, entry in enumerate(entries):
        if all(j == i or sign(entry - other) == 1 for j, other in enumerate(entries)):
            return i + 1
    raise Unclear("which entry is largest")


def require_vectors(*values: Value) -> None:
    if any(sum(n != 1 for n in value.array.shape) > 1 for value in values):
        raise Misfit("a matrix where a vector is needed")
