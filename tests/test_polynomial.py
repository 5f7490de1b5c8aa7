"""Polynomials are a ring, evaluation is a homomorphism, the text is the reference's, and a grid determines them."""

import pickle
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from likewise.polynomial import Polynomial, interpolate, monomial

NAMES = "NDM"
N, D, M, R = map(Polynomial.variable, "NDMR")

exponents = st.tuples(*(st.integers(0, 3) for _ in NAMES))
values = st.fractions(-9, 9, max_denominator=6)
polynomials = st.dictionaries(exponents, values, max_size=5).map(
    lambda terms: Polynomial({monomial(zip(NAMES, powers, strict=True)): value for powers, value in terms.items()})
)
points = st.fixed_dictionaries(dict.fromkeys(NAMES, values))
Point = dict[str, Fraction]


@pytest.mark.slow
@given(polynomials, polynomials, points)
def test_evaluation_commutes_with_arithmetic(p: Polynomial, q: Polynomial, at: Point) -> None:
    x, y = p.evaluate(at), q.evaluate(at)
    assert (p + q).evaluate(at) == x + y
    assert (p - q).evaluate(at) == x - y
    assert (p * q).evaluate(at) == x * y
    assert (p**3).evaluate(at) == x**3
    assert (2 - p).evaluate(at) == 2 - x


@pytest.mark.slow
@given(polynomials, polynomials, polynomials)
def test_equal_polynomials_are_equal_and_hash_alike(p: Polynomial, q: Polynomial, r: Polynomial) -> None:
    left, right = p * (q + r), r * p + q * p
    assert left == right
    assert hash(left) == hash(right)
    assert left != right + 1
    assert not left - right
    assert pickle.loads(pickle.dumps(p)) == p


@pytest.mark.slow
@given(polynomials, polynomials, points)
def test_substitution_is_evaluation_of_the_replacement(p: Polynomial, q: Polynomial, at: Point) -> None:
    assert p.substitute({"N": q, "D": 2}).evaluate(at) == p.evaluate({**at, "N": q.evaluate(at), "D": 2})
    assert p.substitute({}) == p


def test_substitution_replaces_all_names_at_once() -> None:
    assert (N - D).substitute({"N": D, "D": N}) == D - N


@pytest.mark.slow
@given(polynomials)
def test_a_grid_of_its_degrees_determines_a_polynomial(p: Polynomial) -> None:
    assert interpolate(p.evaluate, NAMES, [p.degree_in(name) for name in NAMES]) == p
    assert interpolate(p.evaluate, NAMES, (3, 3, 3), start=-1) == p


def test_a_degree_too_low_is_not_the_polynomial() -> None:
    assert interpolate(lambda sizes: sizes["N"] ** 2, ["N"], [1]) != N**2


@given(polynomials)
def test_coefficients_put_a_polynomial_together_again(p: Polynomial) -> None:
    parts = p.coefficients("N")
    assert len(parts) == p.degree_in("N") + 1
    assert all("N" not in part.variables for part in parts)
    assert sum((part * N**power for power, part in enumerate(parts)), Polynomial()) == p


def test_degrees_and_variables() -> None:
    p = N**2 * D + 3 * M - 1
    assert (p.degree, p.degree_in("N"), p.degree_in("R"), p.variables) == (3, 2, 0, {"N", "D", "M"})
    assert (p.coefficient(("N", 2), ("D", 1)), p.coefficient(), p.coefficient(("M", 2))) == (1, -1, 0)
    assert (Polynomial().degree, Polynomial().variables, bool(Polynomial())) == (0, frozenset(), False)
    assert Polynomial.constant(3) == 3
    assert p != "N^2*D + 3*M - 1"


@pytest.mark.parametrize(
    ("polynomial", "text"),
    [
        (2 * N * R + 2 * N * D * R + 4 * N * M * R, "4*N*M*R + 2*N*D*R + 2*N*R"),
        (2 * R + N * M + 8 * N * R, "8*N*R + N*M + 2*R"),
        (N**2 * M + N**2 * D, "N^2*D + N^2*M"),
        (N * M + 2 * N * D + 2 * N**2, "2*N^2 + 2*N*D + N*M"),
        (2 * N * M + 2 * N * D + N**2, "N^2 + 2*N*D + 2*N*M"),
        (N**2 + D * M * R, "D*M*R + N^2"),
        (1 - N, "-N + 1"),
        (-N * D - Fraction(1, 2) * M, "-N*D - 1/2*M"),
        (Polynomial.constant(-2), "-2"),
        (Polynomial(), "0"),
    ],
)
def test_the_text_is_the_one_of_the_reference(polynomial: Polynomial, text: str) -> None:
    assert polynomial.text(("N", "D", "M", "R")) == text


def test_names_outside_the_order_follow_alphabetically() -> None:
    assert (N * D * M).text(["M"]) == "M*D*N"
    assert str(N * D * M) == "D*M*N"


def test_terms_cannot_be_changed() -> None:
    with pytest.raises(TypeError):
        N.terms[()] = Fraction(1)  # ty: ignore[invalid-assignment]
    with pytest.raises(AttributeError):
        N.terms = {}  # ty: ignore[invalid-assignment]


def test_refusals_name_the_rule() -> None:
    with pytest.raises(ValueError, match=r"Polynomial.evaluate: values must give every variable of D\*N; got \['N'\]."):
        (N * D).evaluate({"N": 1})
    with pytest.raises(ValueError, match="Polynomial: exponent must be a whole number of at least 0; got -1"):
        N**-1
