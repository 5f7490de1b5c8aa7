"""Arrays over any scalars with + - * /: what the operations of format.md do with shapes, and nothing else."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import chain, combinations, product
from math import prod
from typing import Any

from likewise.claims.verdict import Undecided

ENTRIES = 20_000  # of one exact array
Entry = Any  # Fraction, Form, Ball, or whatever else an engine computes with


@dataclass(frozen=True, slots=True)
class Array:
    """Entries in row-major order; a scalar has the empty shape, a vector has one axis.

    A `line` is a vector that was written as a row or a column: it has two axes, one of them of length 1.
    """

    shape: tuple[int, ...]
    entries: tuple[Entry, ...]
    line: bool = False

    @property
    def is_vector(self) -> bool:
        """At most one axis is longer, or shorter, than 1."""
        return sum(axis != 1 for axis in self.shape) <= 1

    @property
    def scalar(self) -> Entry:
        """The entry of an array that has only one."""
        if len(self.entries) != 1:
            raise Undecided(f"expected a number, got an array of shape {list(self.shape)}")
        return self.entries[0]

    def map(self, change: Callable[[Entry], Entry]) -> "Array":
        """Every entry changed."""
        return Array(self.shape, tuple(map(change, self.entries)), self.line)

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
    line = any(array.line for array in arrays)
    if all(array.shape == arrays[0].shape for array in arrays):
        return Array(arrays[0].shape, tuple(map(operation, *(array.entries for array in arrays))), line)
    rank = max(len(array.shape) for array in arrays)
    padded = [(1,) * (rank - len(array.shape)) + array.shape for array in arrays]
    shape = tuple(min(axes) if 0 in axes else max(axes) for axes in zip(*padded, strict=True))
    if any(axis not in (1, whole) for axes in padded for axis, whole in zip(axes, shape, strict=True)):
        raise Undecided("shapes do not fit: " + " and ".join(str(list(array.shape)) for array in arrays))

    def value(place: tuple[int, ...]) -> Entry:
        own = ([i if n > 1 else 0 for i, n in zip(place, axes, strict=True)] for axes in padded)
        return operation(*(a.at(o[rank - len(a.shape) :]) for a, o in zip(arrays, own, strict=True)))

    return Array(shape, filled(shape, value).entries, line and len(shape) == 2 and 1 in shape)


def total(entries: Iterable[Entry]) -> Entry:
    """The sum; of nothing it is 0."""
    found = list(entries)
    return sum(found[1:], found[0]) if found else Fraction(0)


def dot(left: Array, right: Array) -> Array:
    """Σ x_i·y_i of arrays of one shape, or of vectors of one length, whichever way they lie."""
    fits = left.shape == right.shape or (left.is_vector and right.is_vector)
    if not fits or len(left.entries) != len(right.entries):
        raise Undecided(f"dot of shapes {list(left.shape)} and {list(right.shape)}")
    return scalar(total(a * b for a, b in zip(left.entries, right.entries, strict=True)))


def matmul(left: Array, right: Array) -> Array:
    """The matrix product as torch's: vectors lose the axis that was not theirs, leading axes are batches.

    >>> matmul(Array((2, 2), (1, 2, 3, 4)), Array((2,), (5, 6)))
    Array(shape=(2,), entries=(17, 39), line=False)
    """
    if not left.shape or not right.shape or left.shape[-1] != right.shape[-2 if len(right.shape) > 1 else 0]:
        raise Undecided(f"({_text(left)}) @ ({_text(right)}) undefined")
    rows, columns, inner = left.shape[-2:-1], right.shape[-1:] if len(right.shape) > 1 else (), left.shape[-1]
    batches = [array.shape[:-2] for array in (left, right)]
    rank = max(map(len, batches))
    padded = [(1,) * (rank - len(batch)) + batch for batch in batches]
    batch = tuple(map(max, *padded)) if rank else ()
    if any(axis not in (1, whole) for axes in padded for axis, whole in zip(axes, batch, strict=True)):
        raise Undecided(f"({_text(left)}) @ ({_text(right)}) undefined")
    _bounded(prod(batch) * prod(rows) * prod(columns) * inner)

    def own(place: tuple[int, ...], axes: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(i if n > 1 else 0 for i, n in zip(place[rank - len(axes) : rank], axes, strict=True))

    def value(place: tuple[int, ...]) -> Entry:
        row, column = place[rank : rank + len(rows)], place[rank + len(rows) :]
        here, there = own(place, batches[0]), own(place, batches[1])
        return total(left.at((*here, *row, i)) * right.at((*there, i, *column)) for i in range(inner))

    return filled(batch + rows + columns, value)


def _text(array: Array) -> str:
    return " x ".join(map(str, array.shape))


def transpose(array: Array) -> Array:
    """The last two axes exchanged; a vector without a layout has only one."""
    if not array.shape:
        return array
    if len(array.shape) == 1:
        raise Undecided("the transpose of a vector; it needs `row`, `col` or `layout:`")
    shape = (*array.shape[:-2], array.shape[-1], array.shape[-2])
    turned = filled(shape, lambda place: array.at((*place[:-2], place[-1], place[-2])))
    return Array(shape, turned.entries, array.line)


def exchanged(array: Array, first: int, second: int) -> Array:
    """Two axes exchanged, counted from 1."""
    rank = len(array.shape)
    if array.line or not (1 <= first <= rank and 1 <= second <= rank):
        raise Undecided(f"transpose of axes {first} and {second} of shape {list(array.shape)}")
    order = list(range(rank))
    order[first - 1], order[second - 1] = order[second - 1], order[first - 1]
    return filled(tuple(array.shape[axis] for axis in order), lambda place: array.at([place[axis] for axis in order]))


def reshape(array: Array, shape: tuple[int, ...]) -> Array:
    """The same entries, row after row, in another shape."""
    if prod(shape) != len(array.entries):
        raise Undecided(f"{len(array.entries)} entries do not make a shape {list(shape)}")
    return Array(shape, array.entries)


def outer(left: Array, right: Array) -> Array:
    """x_i·y_j of two vectors."""
    _require_vectors(left, right)
    _bounded(len(left.entries) * len(right.entries))
    return Array((len(left.entries), len(right.entries)), tuple(a * b for a in left.entries for b in right.entries))


def pairs(array: Array) -> Array:
    """x_i·x_j for i < j, lying as the vector does.

    >>> pairs(Array((3,), (2, 3, 5))).entries
    (6, 10, 15)
    """
    _require_vectors(array)
    _bounded(len(array.entries) ** 2)
    return lying([a * b for a, b in combinations(array.entries, 2)], like=[array])


def _require_vectors(*arrays: Array) -> None:
    if not all(array.is_vector for array in arrays):
        raise Undecided("a matrix where a vector is needed")


def join(parts: Sequence[Array], layout: str | None = None) -> Array:
    """Numbers and vectors one after the other."""
    if not all(part.is_vector for part in parts):
        raise Undecided("[a, b] puts numbers and vectors together, not matrices")
    return lying(list(chain.from_iterable(part.entries for part in parts)), like=parts, layout=layout)


def stacked(rows: Sequence[Array]) -> Array:
    """[[a, b], [c, d]]: arrays of one shape along a new first axis.

    >>> stacked([Array((2,), (1, 2)), Array((2,), (3, 4))])
    Array(shape=(2, 2), entries=(1, 2, 3, 4), line=False)
    """
    shapes = {(len(row.entries),) if row.line else row.shape for row in rows}
    if len(shapes) > 1:
        raise Undecided("the rows of a matrix have one length")
    return Array((len(rows), *shapes.pop()), tuple(chain.from_iterable(row.entries for row in rows)))


def lying(entries: Sequence[Entry], *, like: Sequence[Array] = (), layout: str | None = None) -> Array:
    """A vector that is a row if the others are rows, a column if they are columns; else as the layout says."""
    n, shapes = len(entries), [part.shape for part in like if len(part.shape) == 2]
    row, column = (bool(shapes) and all(shape[axis] == 1 for shape in shapes) for axis in (0, 1))
    if row or (layout == "row" and not column):
        return Array((1, n), tuple(entries), True)
    if column or layout == "col":
        return Array((n, 1), tuple(entries), True)
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
    """x[i, j] counted from 1; with fewer indices than axes a row is left, and one index into a line is its entry."""
    if array.line and len(indices) == 1:
        array = Array((len(array.entries),), array.entries)
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
    inputs, arrow, output = subscripts.replace(" ", "").partition("->")
    groups = inputs.split(",")
    if not arrow:
        output = "".join(sorted(letter for letter in set(inputs) - {","} if inputs.count(letter) == 1))
    if len(groups) != len(arrays) or not set(output) <= set(inputs) - {","} or len(set(output)) < len(output):
        raise Undecided(
            f"einsum {subscripts!r} needs one group of letters for each of {len(arrays)} arrays, and a result of them"
        )
    arrays = [
        Array((len(array.entries),), array.entries) if array.line and len(group) == 1 else array
        for group, array in zip(groups, arrays, strict=True)
    ]
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
