"""Values of expressions at random integer vectors and matrices. It stands alone because it loads numpy."""

import random
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from flint import acb, arb, fmpq, fmpq_mat

from likewise.grading.algebra import put
from likewise.grading.balls import Point, Undefined, Unknown, divide, power, surely_differ
from likewise.grading.matrices import is_identity
from likewise.grading.parsing import bare
from likewise.reading.expressions import HEADS, Node


@dataclass(frozen=True)
class Scaled:
    """A multiple of the identity matrix, of the size that fits beside it."""

    factor: Any

    def __neg__(self) -> "Scaled":
        return Scaled(-self.factor)

    def __mul__(self, other: Any) -> Any:
        return Scaled(self.factor * other.factor) if isinstance(other, Scaled) else other * self.factor

    def of_size(self, size: int) -> Any:
        """The matrix."""
        return _exact(np.eye(size, dtype=int)) * self.factor


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
            return Scaled(fmpq(1))
        if node.kind == "transpose":
            inner = self.value(node.parts[0])
            return inner if isinstance(inner, Scaled) else np.transpose(_array(inner))
        if node.kind == "norm" or (node.kind == "call" and node.text == "norm_F"):
            inner = _array(self.value(node.parts[0]))
            if node.kind == "norm" and 1 not in inner.shape:
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
        places = places if len(places) > 1 or array.shape[1] > 1 else [*places, 0]
        if not self.summing or len(places) != 2:
            raise Undefined("an entry of a vector or matrix")
        if not all(0 <= place < size for place, size in zip(places, array.shape, strict=True)):
            raise Undefined("an entry of a vector or matrix")
        return array[places[0], places[1]]

    def _extent(self, index: str, body: Node) -> int:
        """How many values an index without bounds has: as many as the arrays have rows or columns there."""
        sizes = {
            self.arrays[part.text].shape[place]
            for part in body.walk()
            if part.kind == "index" and part.text in self.arrays
            for place, each in enumerate(map(bare, part.parts[:2]))
            if each.text == index
        }
        if len(sizes) > 1:
            raise Undefined("an index of different sizes")
        return sizes.pop() if sizes else self.size

    def _sum(self, node: Node) -> Any:
        self.summing += 1
        try:
            return super()._sum(node)
        finally:
            self.summing -= 1

    def _sum_over(self, node: Node) -> Any:
        self.summing += 1
        try:
            index, body = node.parts
            steps = range(1, self._extent(index.text, body) + 1)
            terms = [self.value(put(body, index.text, step)) for step in steps]
        finally:
            self.summing -= 1
        found = terms[0]
        for term in terms[1:]:
            found = found * term if node.kind == "prod_over" else found + term
        return found

    def _add(self, node: Node) -> Any:
        one, other = map(self.value, node.parts)
        if isinstance(one, Scaled) and isinstance(other, Scaled):
            return Scaled(one.factor + other.factor if node.kind == "+" else one.factor - other.factor)
        one, other = _fitted(one, other), _fitted(other, one)
        if isinstance(one, np.ndarray) != isinstance(other, np.ndarray) or np.shape(one) != np.shape(other):
            raise Undefined("a sum of different shapes")
        return one + other if node.kind == "+" else one - other

    def _product(self, node: Node) -> Any:
        found = self.value(node.parts[0])
        for sign, part in zip(node.joined, node.parts[1:], strict=True):
            found = self._times(found, sign, self.value(part))
        return found

    def _times(self, one: Any, sign: str, other: Any) -> Any:
        if isinstance(one, Scaled) or isinstance(other, Scaled):
            return one * other if isinstance(one, Scaled) else other * one
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
        if isinstance(other, np.ndarray | Scaled):
            raise Undefined("a division by a matrix")
        return one * divide(fmpq(1), other)

    def _power(self, node: Node) -> Any:
        base = self.value(node.parts[0])
        if isinstance(base, Scaled):
            return Scaled(power(base.factor, self.value(node.parts[1])))
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
            if isinstance(inner, Scaled):
                raise Undefined("an identity matrix of no known size")
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


def _fitted(one: Any, other: Any) -> Any:
    """A multiple of the identity as a matrix of the size of the other."""
    if not isinstance(one, Scaled):
        return one
    if not isinstance(other, np.ndarray) or other.shape[0] != other.shape[1]:
        raise Undefined("an identity matrix beside what is not square")
    return one.of_size(other.shape[0])


def _exact(values: Any) -> Any:
    return np.array([[fmpq(int(each)) for each in row] for row in values], dtype=object)


def _array_of(matrix: Any) -> Any:
    return np.array(matrix.tolist(), dtype=object)


def random_arrays(
    types: Mapping[str, str], shapes: Mapping[str, tuple[str, ...]], seed: str, size: int
) -> tuple[dict[str, Any], dict[str, int]]:
    """Integer vectors and matrices, and named sizes: those of `shapes` are the same wherever the name is the same."""
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
    return found, sizes


def arrays_differ(one: Any, other: Any) -> bool:
    """Whether two values surely differ: in shape or in an entry."""
    if isinstance(one, Scaled) and isinstance(other, Scaled):
        return surely_differ(one.factor, other.factor)
    one, other = _array(_fitted(one, other)), _array(_fitted(other, one))
    if one.shape != other.shape:
        return True
    return any(surely_differ(left, right) for left, right in zip(one.flat, other.flat, strict=True))
