"""Inequalities that hold of all numbers and vectors, stated for those that occur: what a proof by signs may use.

Cauchy and Schwarz: dot(u, v)^2 <= sqnorm(u)·sqnorm(v). A convex function lies above its tangent: e^a >= 1 + a, and so
log(a) <= a - 1. A quadratic form is never negative exactly if its matrix is positive semidefinite.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import combinations

from likewise.claims.algebra.elementary import sqrt
from likewise.claims.algebra.exponomials import Atom, Form, exp, form, of_atom, of_key, size
from likewise.claims.language.tree import Comparison

ROOTS = 6  # that are tried as norms of combinations
Combination = Mapping[str, Fraction]  # of named vectors; ONES is the vector of ones
ONES = ""
ONE = Atom("prime", index=(1,))  # the number 1, as one more variable of a quadratic form
Matrix = dict[tuple[Atom, Atom], Fraction]


def inequalities(values: Sequence[Form]) -> Iterator[tuple[Form, Comparison]]:
    """All of them, as forms that are at least 0."""
    yield from cauchy(values)
    yield from tangents(values)


def cauchy(values: Iterable[Form]) -> Iterator[tuple[Form, Comparison]]:
    """dot(u, v)^2 <= sqnorm(u)·sqnorm(v) and |dot(u, v)| <= norm(u)·norm(v), for vectors that occur.

    u is a vector that is named, that of ones where a sum occurs, or a combination of them whose norm occurs.
    """
    atoms = {atom for value in values for atom in value.atoms()}
    invariants = [atom for atom in atoms if atom.kind == "invariant"]
    for axis in sorted({atom.name for atom in invariants}):
        mine = [atom for atom in invariants if atom.name == axis]
        found: list[Combination] = [{name: Fraction(1)} for name in sorted({n for atom in mine for n in atom.names})]
        if _length(axis) is not None and any(len(atom.names) == 1 for atom in mine):
            found.append({ONES: Fraction(1)})
        roots = sorted(atom.parts[0] for atom in atoms if atom.kind == "power")[:ROOTS]
        found += [u for root in roots if (u := _squared_norm_of(of_key(root), axis)) and u not in found]
        for u, v in combinations(found, 2):
            both, first, second = _dot(axis, u, v), _dot(axis, u, u), _dot(axis, v, v)
            yield first * second - both * both, ">="
            yield sqrt(first) * sqrt(second) - both, ">="
            yield sqrt(first) * sqrt(second) + both, ">="


def tangents(values: Iterable[Form]) -> Iterator[tuple[Form, Comparison]]:
    """e^a >= 1 + a and log(a) <= a - 1, for the exponentials and logarithms that occur.

    >>> from likewise.claims.algebra.exponomials import variable
    >>> [(bound, _)] = tangents([exp(variable("x"))])
    >>> bound == exp(variable("x")) - 1 - variable("x")
    True
    """
    exponents = {exponent for value in values for powers, exponent in value.terms if exponent and not powers}
    for exponent in sorted(exponents):
        if of_key(exponent).is_real:
            yield exp(of_key(exponent)) - 1 - of_key(exponent), ">="
    logarithms = {atom for value in values for atom in value.atoms() if atom.kind == "function" and atom.name == "log"}
    for atom in sorted(logarithms):
        yield of_key(atom.parts[0]) - 1 - of_atom(atom), ">="


def _length(axis: str) -> Form | None:
    """The number of coordinates, from its text; None where that is a formula."""
    if axis.isdecimal():
        return form(int(axis))
    return size(axis) if axis.isidentifier() else None


def _dot(axis: str, u: Combination, v: Combination) -> Form:
    total = form(0)
    for left, a in u.items():
        for right, b in v.items():
            vectors = tuple(sorted(name for name in (left, right) if name != ONES))
            length = form(0) if vectors else _length(axis) or form(0)
            total = total + (of_atom(Atom("invariant", axis, names=vectors)) if vectors else length) * (a * b)
    return total


def _squared_norm_of(value: Form, axis: str) -> Combination | None:
    """The vector Σ c·x of which the form is the squared norm; found from the products with its first vector."""
    if any(exponent or len(powers) != 1 or powers[0][1] != 1 for powers, exponent in value.terms):
        return None
    products = {powers[0][0].names: c for (powers, _), c in value.terms.items() if powers[0][0].name == axis}
    first = min((names for names in products if len(names) == 2 and names[0] == names[1]), default=None)
    if first is None or products[first] <= 0:
        return None
    (x, _), square = first, products[first]
    mixed = {names: c for names, c in products.items() if x in names and names != first}
    whole = {x: square} | {next(n for n in names if n != x): c / 2 for names, c in mixed.items() if len(names) == 2}
    return whole if (_dot(axis, whole, whole) - value * square).terms == {} else None


def is_sum_of_squares(value: Form, comparison: Comparison) -> bool:
    """Whether value >= 0 (value > 0 for a strict comparison) because it is a sum of squares.

    >>> from likewise.claims.algebra.exponomials import variable
    >>> x, y = variable("x"), variable("y")
    >>> is_sum_of_squares(x * x - x * y + y * y, ">="), is_sum_of_squares(x * x - 3 * x * y + y * y, ">=")
    (True, False)
    """
    if comparison not in ("<", "<=", ">", ">="):
        return False
    matrix = _matrix(value)
    return matrix is not None and semidefinite(matrix, strictly=comparison in ("<", ">"))


def _matrix(value: Form) -> Matrix | None:
    """The symmetric matrix of a quadratic form in scalars, or in vectors of one length; None if it is no such form."""
    matrix: Matrix = {}
    axes = set()
    for (powers, exponent), coefficient in value.terms.items():
        if exponent or any(e not in (1, 2) for _, e in powers):
            return None
        factors = [atom for atom, e in powers for _ in range(int(e))]
        if len(factors) == 1 and factors[0].kind == "invariant" and len(factors[0].names) == 2:
            axes.add(factors[0].name)
            factors = [Atom("variable", name) for name in factors[0].names]
        elif all(atom.kind == "variable" for atom in factors) and len(factors) <= 2:
            axes.add("")
            factors = [*factors, ONE, ONE][:2]
        else:
            return None
        for left, right in (factors, factors[::-1]):
            matrix[left, right] = matrix.get((left, right), Fraction(0)) + coefficient / 2
    return matrix if len(axes) == 1 else None


def semidefinite(matrix: Matrix, *, strictly: bool = False) -> bool:
    """Whether Σ m_ab·a·b >= 0 for all values, by completing one square after the other.

    `strictly`: > 0 wherever the variable 1 is 1, which is so if what is left for it at the end is positive.
    """
    left = sorted({a for a, _ in matrix}, key=lambda atom: (atom == ONE, atom))  # the number 1 last
    current = dict(matrix)
    last = Fraction(0)
    for place, a in enumerate(left):
        last, rest = current.get((a, a), Fraction(0)), left[place + 1 :]
        if last < 0 or (last == 0 and any(current.get((a, b), 0) for b in rest)):
            return False
        for b in rest:
            for c in rest:
                if last:
                    taken = current.get((a, b), Fraction(0)) * current.get((a, c), Fraction(0)) / last
                    current[b, c] = current.get((b, c), Fraction(0)) - taken
    return not strictly or (ONE in left and last > 0)
