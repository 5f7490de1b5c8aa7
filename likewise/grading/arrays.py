"""Values of expressions at random integer vectors and matrices. It stands alone because it loads numpy."""

import random
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np
from flint import acb, arb, fmpq, fmpq_mat

from likewise.grading.algebra import put
from likewise.grading.balls import Point, Undefined, Unknown, divide, power, surely_differ
from likewise.grading.matrices import is_identity
from likewise.grading.parsing import bare
from likewise.reading.expressions import HEADS, Node


class MatrixPoint(Point):
    """Random integer vectors and matrices for names, beside the numbers."""

    def __init__(self, values: Mapping[str, Fraction], arrays: Mapping[str, Any], size: int, base: str = "") -> None:
        super().__init__(values, base=base)
        self.arrays, self.size, self.summing = arrays, size, 0

    def value(self, node: Node) -> Any:
        node = bare(node)
        if node.kind == "name" and node.text in self.arrays:
            return self.arrays[node.text]
        if is_identity(node):
            return _exact(np.eye(self.size, dtype=int))
        if node.kind == "transpose":
            return np.transpose(_array(self.value(node.parts[0])))
        if node.kind == "norm":
            inner = _array(self.value(node.parts[0]))
            if 1 not in inner.shape:
                raise Undefined("the norm of a matrix")
            return power(sum((each * each for each in inner.flat), fmpq(0)), fmpq(1, 2))
        return super().value(node)

    def _index(self, node: Node) -> Any:
        if node.text not in self.arrays:
            return super()._index(node)
        places = [
            int(each.text) - 1 if each.kind == "number" and each.text.isdigit() else -1
            for each in map(bare, node.parts)
        ]
        array = self.arrays[node.text]
        if not self.summing or not all(0 <= place < self.size for place in places):
            raise Undefined("an entry of a vector or matrix")
        if array.shape not in ((self.size, 1), (self.size, self.size)) or len(places) != (
            1 if array.shape[1] == 1 else 2
        ):
            raise Undefined("an entry of a vector or matrix")
        return array[places[0], places[1] if len(places) > 1 else 0]

    def _sum_over(self, node: Node) -> Any:
        self.summing += 1
        try:
            index, body = node.parts
            terms = [self.value(put(body, index.text, step)) for step in range(1, self.size + 1)]
        finally:
            self.summing -= 1
        found = terms[0]
        for term in terms[1:]:
            found = found * term if node.kind == "prod_over" else found + term
        return found

    def _add(self, node: Node) -> Any:
        one, other = map(self.value, node.parts)
        if isinstance(one, np.ndarray) != isinstance(other, np.ndarray) or np.shape(one) != np.shape(other):
            raise Undefined("a sum of different shapes")
        return one + other if node.kind == "+" else one - other

    def _product(self, node: Node) -> Any:
        found = self.value(node.parts[0])
        for sign, part in zip(node.joined, node.parts[1:], strict=True):
            found = self._times(found, sign, self.value(part))
        return found

    def _times(self, one: Any, sign: str, other: Any) -> Any:
        if not isinstance(one, np.ndarray) or not isinstance(other, np.ndarray):
            return one * other
        if sign == "⊙":
            if one.shape != other.shape:
                raise Undefined("an elementwise product of different shapes")
            return one * other
        if sign in ("·", "×") and one.shape == other.shape and one.shape[1] == 1:
            one = np.transpose(one)
        if one.shape[1] != other.shape[0]:
            raise Undefined("a product whose shapes do not fit")
        found = one.dot(other)
        return found[0, 0] if found.shape == (1, 1) else found

    def _divide(self, node: Node) -> Any:
        one, other = map(self.value, node.parts)
        if isinstance(other, np.ndarray):
            raise Undefined("a division by a matrix")
        return one * divide(fmpq(1), other)

    def _power(self, node: Node) -> Any:
        base = self.value(node.parts[0])
        if not isinstance(base, np.ndarray):
            exponent = self.value(node.parts[1])
            if isinstance(exponent, np.ndarray):
                raise Undefined("a power of a vector or matrix")
            return power(base, exponent)
        exponent = self.whole(node.parts[1], 8)
        if base.shape[0] != base.shape[1] or not all(isinstance(each, fmpq) for each in base.flat):
            raise Undefined("the power of a matrix")
        matrix = fmpq_mat(*base.shape, list(base.flat))
        if exponent < 0:
            if matrix.det() == 0:
                raise Undefined("no inverse")
            matrix = matrix.inv()
        found = matrix ** abs(exponent)
        return _array_of(found)

    def _call(self, node: Node) -> Any:
        if len(node.parts) == 1 and node.text in ("tr", "det", "softmax"):
            inner = self.value(node.parts[0])
            if isinstance(inner, np.ndarray):
                return self._of_array(node.text, inner)
        elif len(node.parts) == 1 and node.text in HEADS:
            inner = self.value(node.parts[0])
            if isinstance(inner, np.ndarray):  # any function of the entries is an example
                return np.array([[self.choose(f"{node.text}({each})") for each in row] for row in inner], dtype=object)
        elif any(isinstance(self.value(part), np.ndarray) for part in node.parts):
            raise Undefined(f"{node.text} of a vector or matrix")
        return super()._call(node)

    def _of_array(self, name: str, inner: Any) -> Any:
        if name == "softmax":
            if any(isinstance(each, acb) for each in inner.flat):
                raise Undefined("softmax of complex numbers")
            flat = inner if inner.shape[1] > 1 else np.transpose(inner)
            rows = [[arb(each).exp() for each in row] for row in flat]
            found = np.array([[each / sum(row, arb(0)) for each in row] for row in rows], dtype=object)
            return found if inner.shape[1] > 1 else np.transpose(found)
        if inner.shape[0] != inner.shape[1]:
            raise Undefined(f"{name} of what is not square")
        if name == "tr":
            return sum((inner[place, place] for place in range(inner.shape[0])), fmpq(0))
        if not all(isinstance(each, fmpq) for each in inner.flat):
            raise Unknown("a determinant of what is not exact")
        return fmpq_mat(*inner.shape, list(inner.flat)).det()


def _array(value: Any) -> Any:
    if not isinstance(value, np.ndarray):
        return np.array([[value]], dtype=object)
    return value


def _exact(values: Any) -> Any:
    return np.array([[fmpq(int(each)) for each in row] for row in values], dtype=object)


def _array_of(matrix: Any) -> Any:
    return np.array(matrix.tolist(), dtype=object)


def random_arrays(
    types: Mapping[str, str], shapes: Mapping[str, tuple[str, ...]], seed: str, size: int
) -> dict[str, Any]:
    """Integer vectors and matrices; sizes that are named in `shapes` are the same wherever the name is the same."""
    chance = random.Random(seed)
    sizes: dict[str, int] = {}

    def length(name: str) -> int:
        if name.isdigit():
            return min(int(name), 6)
        if not shapes:
            return size
        return sizes.setdefault(name, 2 + len(sizes) % 3)

    found = {}
    for name, kind in sorted(types.items()):
        shape = shapes.get(name, ("", "") if kind == "matrix" else ("",))
        rows = length(shape[0]) if shape[0] else size
        columns = 1 if kind == "vector" else (length(shape[1]) if shape[1] else size)
        found[name] = _exact([[chance.randint(-4, 5) for _ in range(columns)] for _ in range(rows)])
    return found


def arrays_differ(one: Any, other: Any) -> bool:
    """Whether two values surely differ: in shape or in an entry."""
    one, other = _array(one), _array(other)
    if one.shape != other.shape:
        return True
    return any(surely_differ(left, right) for left, right in zip(one.flat, other.flat, strict=True))
