"""Sums of squares: a quadratic form is never negative exactly if its matrix is positive semidefinite."""

from fractions import Fraction

from likewise.claims.algebra.exponomials import Atom, Form
from likewise.claims.language.tree import Comparison

ONE = Atom("prime", index=(1,))  # the number 1, as one more variable of a quadratic form
Matrix = dict[tuple[Atom, Atom], Fraction]


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
