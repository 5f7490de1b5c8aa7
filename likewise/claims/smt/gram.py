"""Vectors of every length at once: combinations of named vectors, of which only the inner products are known.

The inner products of n vectors of R^D are the positive semidefinite matrices of rank at most D, no more and no fewer.
Such a matrix is one whose principal minors are at least 0, and those of more than D vectors are 0. sum(x) is the inner
product with the vector of ones, whose square is D. What looks into the entries of a vector is left to others.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import combinations, permutations, product
from math import prod

import z3

from likewise.claims import arrays
from likewise.claims.arrays import Array, Entry
from likewise.claims.language.tree import Comparison, Node, Text
from likewise.claims.reader import OPERATORS, WholeVectors
from likewise.claims.smt.curves import real
from likewise.claims.smt.terms import Fact, Term, compared
from likewise.claims.verdict import Undecided

ONES = "1"  # no name of a variable
VECTORS = 4  # in one matrix


@dataclass
class Axis:
    """The vectors of one length; without a length, because nothing else depends on it, it may be any."""

    name: str
    length: Term | None
    products: dict[tuple[str, str], Term] = field(default_factory=dict)
    seen: list[Mapping[str, Term]] = field(default_factory=list)  # combinations of which products were taken

    def product(self, left: str, right: str) -> Term:
        """The inner product of two named vectors."""
        if left == right == ONES:
            return self.counted
        pair = (min(left, right), max(left, right))
        if pair not in self.products:
            self.products[pair] = z3.Real(f"{pair[0]}.{pair[1]}.{self.name}")
        return self.products[pair]

    @property
    def counted(self) -> Term:
        """The length, where it counts."""
        if self.length is None:
            self.length = z3.ToReal(z3.Int(self.name))
        return self.length

    @property
    def vectors(self) -> list[str]:
        """Named vectors of which products were taken, in the order in which they were met."""
        return list(dict.fromkeys(name for terms in self.seen for name in terms))

    def free(self) -> list[str]:
        """Vectors without which every combination that was seen can be had.

        Distances of x, y and z are those of x - z, y - z and 0: z may be 0. In general the vectors of the columns that
        are no pivots may be 0 where the combinations are the rows of a matrix.
        """
        names = self.vectors
        if ONES in names or not all(isinstance(c, Fraction) for terms in self.seen for c in terms.values()):
            return []
        rows = [[terms.get(name, Fraction(0)) for name in names] for terms in self.seen]
        pivots = 0
        found = []
        for column, name in enumerate(names):
            place = next((i for i in range(pivots, len(rows)) if rows[i][column]), None)
            if place is None:
                found.append(name)
                continue
            rows[pivots], rows[place] = rows[place], rows[pivots]
            for i in range(pivots + 1, len(rows)):
                factor = rows[i][column] / rows[pivots][column]
                rows[i] = [a - factor * b for a, b in zip(rows[i], rows[pivots], strict=True)]
            pivots += 1
        return found

    def facts(self) -> list[Fact]:
        """That the products are those of vectors of this length."""
        free = self.free()
        found = [value == 0 for pair, value in self.products.items() if {*pair} & {*free}]
        bound = [name for name in self.vectors if name not in free]
        if len(bound) > VECTORS:
            raise Undecided(f"more than {VECTORS} vectors")
        for count in range(1, len(bound) + 1):
            for chosen in combinations(bound, count):
                minor = self._determinant(chosen)
                found.append(minor >= 0)
                if self.length is not None:
                    found.append(z3.Implies(real(self.length) < count, minor == 0))
        return found

    def simple_facts(self) -> list[Fact]:
        """Some of them, by which z3 often gets to its end sooner: squares of small combinations are not negative."""
        bound = [name for name in self.vectors if name not in self.free()]
        found = [self._determinant(pair) >= 0 for pair in combinations(bound, 2)]
        for signs in product((1, 0, -1), repeat=len(bound)):
            terms = {name: Fraction(sign) for name, sign in zip(bound, signs, strict=True) if sign}
            if terms:
                found.append(real(Combination(self, terms).dot_of(terms)) >= 0)
        return found

    def _determinant(self, chosen: tuple[str, ...]) -> Term:
        total: Term = Fraction(0)
        for order in permutations(range(len(chosen))):
            swaps = sum(order[a] > order[b] for a, b in combinations(range(len(chosen)), 2))
            total = total + (-1) ** swaps * prod(
                (self.product(chosen[row], chosen[column]) for row, column in enumerate(order)), start=Fraction(1)
            )
        return real(total)


@dataclass(frozen=True)
class Combination:
    """Σ c·x over named vectors of one length."""

    axis: Axis
    terms: Mapping[str, Term]

    def __add__(self, other: "Combination | Term") -> "Combination":
        if not isinstance(other, Combination):  # a number is added to every entry
            other = Combination(self.axis, {ONES: other})
        require_one_length(self, other)
        zero = Fraction(0)
        both = dict.fromkeys([*self.terms, *other.terms])
        return replace(self, terms={x: self.terms.get(x, zero) + other.terms.get(x, zero) for x in both})

    def __mul__(self, factor: Term) -> "Combination":
        if isinstance(factor, Combination):
            raise Undecided("z3 is not asked about products of vectors entry by entry")
        return replace(self, terms={x: c * factor for x, c in self.terms.items()})

    def __neg__(self) -> "Combination":
        return self * Fraction(-1)

    def __sub__(self, other: "Combination | Term") -> "Combination":
        return self + -other

    def dot(self, other: "Combination") -> Term:
        """The inner product."""
        require_one_length(self, other)
        self.axis.seen += [self.terms, other.terms]
        return self.dot_of(other.terms)

    def dot_of(self, terms: Mapping[str, Term]) -> Term:
        """The inner product, of which no note is taken."""
        pairs = product(self.terms, terms)
        return sum((self.terms[x] * terms[y] * self.axis.product(x, y) for x, y in pairs), Fraction(0))


def require_one_length(left: Combination, right: Combination) -> None:
    """Vectors of one length, whatever it is."""
    if left.axis is not right.axis:
        raise Undecided(f"vectors of length {left.axis.name} and {right.axis.name}")


def combined(sign: str, left: "Combination | Term", right: "Combination | Term") -> "Combination | Term":
    """left + right, left - right or left * right; z3's terms know nothing of vectors, so these come first."""
    if isinstance(right, Combination) and not isinstance(left, Combination):
        return right * left if sign == "*" else (right if sign == "+" else -right) + left
    return OPERATORS[sign](left, right)


@dataclass(frozen=True)
class GramReader(WholeVectors):
    """The reader, with a combination of vectors in the place of an entry."""

    axes: Mapping[str, Axis] = field(default_factory=dict)

    def is_vector(self, value: Entry) -> bool:
        return isinstance(value, Combination)

    def operation(self, sign: str) -> Callable[[Entry, Entry], Entry]:
        return lambda left, right: combined(sign, left, right)

    def dot(self, left: Combination, right: Combination) -> Term:
        return left.dot(right)

    def total(self, vector: Combination) -> Term:
        return vector.dot(Combination(vector.axis, {ONES: Fraction(1)}))

    def length(self, vector: Combination) -> Term:
        return vector.axis.counted

    def filled(self, value: Fraction, lengths: "tuple[Node | Text, ...]") -> Combination:
        axis = self.axes.get(str(lengths[0])) if len(lengths) == 1 else None
        if axis is None:
            raise Undecided("zeros or ones of another shape than the vectors")
        return Combination(axis, {ONES: value} if value else {})


def compared_in_length(left: Array, comparison: Comparison, right: Array) -> Fact:
    """That a comparison is true; vectors are equal if their difference has no length."""
    difference = combined("-", left.scalar, right.scalar)
    if not isinstance(difference, Combination):
        return compared(left, comparison, right)
    if comparison not in ("==", "!="):
        raise Undecided("z3 is not asked about the entries of a vector: <=")
    return compared(arrays.scalar(difference.dot(difference)), comparison, arrays.scalar(Fraction(0)))
