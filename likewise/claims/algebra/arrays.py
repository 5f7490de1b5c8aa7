"""Arrays of exact or enclosed numbers: as much of numpy as the claim language has, over any scalars with + - * /."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import chain, combinations, product
from math import prod
from typing import Any

from likewise.claims.verdict import Undecided

ENTRIES = 20_000  # of one exact array
Entry = Any  # Fraction, Form or Ball


@dataclass(frozen=True, slots=True)
class Array:
    """Entries in row-major order; a scalar has the empty shape, a vector has one axis."""

    shape: tuple[int, ...]
    entries: tuple[Entry, ...]

    @property
    def scalar(self) -> Entry:
        """The entry of an array that has only one."""
        if len(self.entries) != 1:
            raise Undecided(f"expected a number, got an array of shape {list(self.shape)}")
        return self.entries[0]

    def map(self, change: Callable[[Entry], Entry]) -> "Array":
        """Every entry changed."""
        return Array(self.shape, tuple(map(change, self.entries)))

    def at(self, place: Sequence[int]) -> Entry:
        """The entry at a place counted from 0."""
        number = 0
        for axis, i in zip(self.shape, place, strict=True):
            number = number * axis + i
        return self.entries[number]


def scalar(value: Entry) -> Array:
    """One number."""
    return Array((), (value,))


def _bounded(count: int) -> None:
    if count > ENTRIES:
        raise Undecided(f"an exact array of more than {ENTRIES} entries")


def filled(shape: tuple[int, ...], value: Callable[[tuple[int, ...]], Entry]) -> Array:
    """An array whose entry at each place is the value there.

    >>> filled((2, 2), lambda place: sum(place)).entries
    (0, 1, 1, 2)
    """
    _bounded(prod(shape))
    return Array(shape, tuple(value(place) for place in places(shape)))


def places(shape: Iterable[int]) -> Iterator[tuple[int, ...]]:
    """Every place of a shape, in row-major order."""
    return product(*map(range, shape))


def broadcast(operation: Callable[..., Entry], *arrays: Array) -> Array:
    """The operation entry by entry; axes of 1 and missing leading axes are repeated.

    >>> import operator
    >>> broadcast(operator.add, Array((2, 1), (1, 2)), Array((2,), (10, 20))).entries
    (11, 21, 12, 22)
    """
    if all(array.shape == arrays[0].shape for array in arrays):
        return Array(arrays[0].shape, tuple(map(operation, *(array.entries for array in arrays))))
    rank = max(len(array.shape) for array in arrays)
    padded = [(1,) * (rank - len(array.shape)) + array.shape for array in arrays]
    shape = tuple(max(axes) for axes in zip(*padded, strict=True))
    if any(axis not in (1, whole) for axes in padded for axis, whole in zip(axes, shape, strict=True)):
        raise Undecided("shapes do not fit: " + " and ".join(str(list(array.shape)) for array in arrays))

    def value(place: tuple[int, ...]) -> Entry:
        own = ([i if n > 1 else 0 for i, n in zip(place, axes, strict=True)] for axes in padded)
        return operation(*(a.at(o[rank - len(a.shape) :]) for a, o in zip(arrays, own, strict=True)))

    return filled(shape, value)


def total(entries: Iterable[Entry]) -> Entry:
    """The sum; of nothing it is 0."""
    found = list(entries)
    return sum(found[1:], found[0]) if found else Fraction(0)


def dot(left: Array, right: Array) -> Array:
    """Σ x_i·y_i over vectors of one length, whichever way they lie."""
    if len(left.entries) != len(right.entries) or max(_axes(left), _axes(right)) > 1:
        raise Undecided(f"dot of shapes {list(left.shape)} and {list(right.shape)}")
    return scalar(total(a * b for a, b in zip(left.entries, right.entries, strict=True)))


def _axes(array: Array) -> int:
    return sum(axis > 1 for axis in array.shape)


def matmul(left: Array, right: Array) -> Array:
    """The matrix product; of two vectors the dot product, and vectors lose the axis that was not theirs."""
    if not left.shape or not right.shape or max(len(left.shape), len(right.shape)) > 2:
        raise Undecided("@ is the product of vectors and matrices")
    rows = left.shape[:-1]
    columns = right.shape[1:]
    if left.shape[-1] != right.shape[0]:
        raise Undecided(f"({_text(left)}) @ ({_text(right)}) undefined")
    inner = range(right.shape[0])
    _bounded(prod(rows) * prod(columns) * len(inner))

    def value(place: tuple[int, ...]) -> Entry:
        row, column = place[: len(rows)], place[len(rows) :]
        return total(left.at((*row, i)) * right.at((i, *column)) for i in inner)

    return filled(rows + columns, value)


def _text(array: Array) -> str:
    return " x ".join(map(str, array.shape))


def transpose(array: Array) -> Array:
    """Rows become columns; a vector without a layout has neither."""
    if not array.shape:
        return array
    if len(array.shape) != 2:
        raise Undecided("the transpose of what is no matrix; a vector needs `row` or `col`")
    return filled(array.shape[::-1], lambda place: array.at(place[::-1]))


def outer(left: Array, right: Array) -> Array:
    """x_i·y_j."""
    _bounded(len(left.entries) * len(right.entries))
    return Array((len(left.entries), len(right.entries)), tuple(a * b for a in left.entries for b in right.entries))


def pairs(array: Array) -> Array:
    """x_i·x_j for i < j, lying as the vector does.

    >>> pairs(Array((3,), (2, 3, 5))).entries
    (6, 10, 15)
    """
    _bounded(len(array.entries) ** 2)
    return lying([a * b for a, b in combinations(array.entries, 2)], like=[array])


def join(parts: Sequence[Array]) -> Array:
    """Numbers and vectors one after the other."""
    if any(_axes(part) > 1 for part in parts):
        raise Undecided("[a, b] puts numbers and vectors together, not matrices")
    return lying(list(chain.from_iterable(part.entries for part in parts)), like=parts)


def lying(entries: Sequence[Entry], *, like: Sequence[Array]) -> Array:
    """A vector that is a row if the others are rows, a column if they are columns."""
    n, shapes = len(entries), [part.shape for part in like if len(part.shape) == 2]
    if shapes and all(shape[0] == 1 for shape in shapes):
        return Array((1, n), tuple(entries))
    if shapes and all(shape[1] == 1 for shape in shapes):
        return Array((n, 1), tuple(entries))
    return Array((n,), tuple(entries))


def vector(array: Array) -> Array:
    """All entries, row after row."""
    return Array((len(array.entries),), array.entries)


def trace(array: Array) -> Array:
    """Σ x_ii of a square matrix."""
    if len(array.shape) != 2 or array.shape[0] != array.shape[1]:
        raise Undecided(f"tr of shape {list(array.shape)}")
    return scalar(total(array.at((i, i)) for i in range(array.shape[0])))


def index(array: Array, indices: Sequence[int]) -> Array:
    """x[i, j] counted from 1; with fewer indices than axes a row is left."""
    if len(indices) > len(array.shape):
        raise Undecided(f"{len(indices)} indices into shape {list(array.shape)}")
    for i, axis in zip(indices, array.shape, strict=False):
        if not 1 <= i <= axis:
            raise IndexError(f"index {i} outside 1..{axis}")
    before = tuple(i - 1 for i in indices)
    return filled(array.shape[len(indices) :], lambda place: array.at(before + place))


def einsum(subscripts: str, arrays: Sequence[Array]) -> Array:
    """The sum over every letter that the result does not name.

    >>> einsum("ij,jk->ik", [Array((1, 2), (2, 3)), Array((2, 1), (5, 7))]).entries
    (31,)
    """
    inputs, _, output = subscripts.replace(" ", "").partition("->")
    groups = inputs.split(",")
    if len(groups) != len(arrays) or not set(output) <= set(inputs) or "->" not in subscripts:
        raise Undecided(
            f"einsum {subscripts!r} needs a result and one group of letters for each of {len(arrays)} arrays"
        )
    lengths: dict[str, int] = {}
    for group, array in zip(groups, arrays, strict=True):
        if len(group) != len(array.shape):
            raise Undecided(f"{len(group)} subscripts {group} for shape {list(array.shape)}")
        for letter, axis in zip(group, array.shape, strict=True):
            if lengths.setdefault(letter, axis) != axis:
                raise Undecided(f"subscript {letter} is {lengths[letter]} and {axis}")
    summed = [letter for letter in lengths if letter not in output]
    _bounded(prod(lengths.values()))

    def value(place: tuple[int, ...]) -> Entry:
        known = dict(zip(output, place, strict=True))
        terms = (known | dict(zip(summed, inner, strict=True)) for inner in places(lengths[s] for s in summed))
        return total(
            prod(
                (array.at([at[letter] for letter in group]) for group, array in zip(groups, arrays, strict=True)),
                start=1,
            )
            for at in terms
        )

    return filled(tuple(lengths[letter] for letter in output), value)
