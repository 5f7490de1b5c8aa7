from fractions import Fraction
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from likewise.claims.growth.linear import Certificate, LinearForm, Row, lattice, solve
from likewise.claims.verdict import Undecided

NAMES = "xyz"


def form(constant: int, *coefficients: int) -> LinearForm:
    kept = {name: Fraction(value) for name, value in zip(NAMES, coefficients, strict=False) if value}
    return LinearForm(kept, Fraction(constant))


ROWS = st.builds(
    lambda numbers, comparison: Row(form(*numbers), comparison),
    st.lists(st.integers(-3, 3), min_size=4, max_size=4),
    st.sampled_from(["<=", "<", "=="]),
)


def eliminated(rows: list[Row]) -> bool:
    """Whether the rows have a solution, by Fourier and Motzkin: combine each pair that bounds a name, forget it."""
    rows = [
        half
        for row in rows
        for half in ([row] if row.comparison != "==" else [Row(row.form, "<="), Row(-row.form, "<=")])
    ]
    for name in NAMES:
        sides = {sign: [r for r in rows if sign * r.form.coefficients.get(name, 0) > 0] for sign in (1, -1)}
        rows = [row for row in rows if name not in row.form.coefficients]
        for above, below in product(sides[1], sides[-1]):
            mixed = -below.form.coefficients[name] * above.form + above.form.coefficients[name] * below.form
            rows.append(Row(mixed, "<" if "<" in (above.comparison, below.comparison) else "<="))
    return all(row.holds({}) for row in rows)


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(st.lists(ROWS, max_size=6))
def test_simplex_agrees_with_elimination_and_proves_what_it_says(rows):
    found = solve(rows)
    if isinstance(found, Certificate):
        assert found.proves(rows)
        assert not eliminated(rows)
    else:
        assert all(row.holds({name: found.get(name, Fraction(0)) for name in NAMES}) for row in rows)
        assert eliminated(rows)


@given(st.lists(ROWS, min_size=1, max_size=5), st.lists(st.integers(-2, 2), min_size=5, max_size=5))
def test_a_certificate_never_proves_what_a_point_satisfies(rows, multipliers):
    certificate = Certificate(tuple(Fraction(value) for value in multipliers[: len(rows)]))
    if certificate.proves(rows):
        assert not eliminated(rows)


def test_a_certificate_with_a_negative_multiplier_of_an_inequality_proves_nothing():
    rows = [Row(form(-1), "<="), Row(form(0, 1), "<="), Row(form(0, 1), "==")]
    assert not Certificate((Fraction(-1), Fraction(0), Fraction(0))).proves(rows)
    assert not Certificate((Fraction(0), Fraction(1), Fraction(0))).proves(rows)  # x does not cancel
    assert not Certificate((Fraction(0), Fraction(1), Fraction(-1))).proves(rows)  # 0 <= 0 is no contradiction


def test_strict_comparisons_exclude_their_border():
    touching = [Row(form(-1, 1), "<="), Row(form(1, -1), "<")]  # x <= 1 and x > 1
    assert isinstance(solve(touching), Certificate)
    assert solve([Row(form(-1, 1), "<="), Row(form(1, -1), "<=")]) == {"x": 1}


def test_lattice_comes_by_largest_nonzero_negative_then_lexicographically_largest():
    assert list(lattice(2, 1)) == [(0, 0), (1, 0), (0, 1), (0, -1), (-1, 0), (1, 1), (1, -1), (-1, 1), (-1, -1)]


def test_too_many_rows_are_undecided():
    with pytest.raises(Undecided, match="401 linear comparisons"):
        solve([Row(form(0, 1), "<=")] * 401)
