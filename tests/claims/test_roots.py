"""Irrational counterexamples: exact for the engine, and for the judge by a separation bound."""

import pytest
from flint import ctx, fmpq
from hypothesis import given
from hypothesis import strategies as st

from likewise.claims import check
from likewise.claims.judge.numbers import divide, power, sign
from likewise.claims.judge.roots import Root

HALF = fmpq(1, 2)


@pytest.fixture(autouse=True)
def precise() -> None:
    ctx.prec = 1024


def test_products_and_quotients_of_roots_that_are_equal_differ_by_zero() -> None:
    two, three = power(fmpq(2), HALF), power(fmpq(3), HALF)
    assert isinstance(two, Root)
    assert sign(two * two - 2) == sign((two * two - 2) ** 2) == sign(divide(fmpq(1), two) - two * HALF) == 0
    assert sign(two * three - power(fmpq(6), HALF)) == 0
    assert sign(power(fmpq(2), fmpq(1, 3)) ** 3 - 2) == 0


@given(st.integers(2, 400), st.integers(2, 400), st.integers(-60, 60))
def test_a_sum_of_roots_is_zero_only_if_it_is(a: int, b: int, c: int) -> None:
    # sqrt(a) - sqrt(b) = c: only if c is 0 and a is b, or both are squares, or b = (sqrt(a) - c)^2 with sqrt(a) whole
    ctx.prec = 1024
    value = power(fmpq(a), HALF) - power(fmpq(b), HALF) - c
    square = 4 * a * c * c - (a + c * c - b) ** 2  # (a + c^2 - b)^2 = 4*a*c^2 is necessary
    assert sign(value) is not None
    assert (sign(value) == 0) <= (square == 0)
    if c == 0:
        assert sign(value) == (a > b) - (a < b)


def test_a_tiny_number_made_of_roots_is_not_zero() -> None:
    two = power(fmpq(2), HALF)
    near = fmpq(886731088897, 627013566048)  # a convergent of sqrt(2)
    assert sign(two - near) != 0
    assert sign((two - near) ** 2) == 1


@pytest.mark.parametrize(
    ("text", "witness"),
    [
        ("given: x in R\nassert: (x^2 - 2)^2 > 0", "sqrt(2)"),
        ("given: x in R\nassert: x^3 != 2", "2^(1/3)"),
        ("given: x in R\nassume: x^2 == 3; x > 0\nassert: x > 1.8", "sqrt(3)"),
        ("given: x in R\nassert: x^2 - x - 1 != 0", "sqrt(5)/2"),
    ],
)
def test_an_irrational_counterexample_refutes(text: str, witness: str) -> None:
    verdict = check(text)
    assert verdict.verdict == "refuted"
    assert witness in dict(verdict.witness)["x"]


def test_what_is_true_at_irrational_points_is_not_refuted() -> None:
    assert check("given: x in R\nassume: x^2 == 2; x > 0\nassert: x > 1.4").verdict != "refuted"
    assert check("given: x in R\nassert: (x^2 - 2)^2 >= 0").verdict == "holds"


def test_large_powers_of_numbers_are_exact() -> None:
    assert check("assert: 2^100 - 2^99 == 2^99").verdict == "holds"
    assert check("assert: 2^100 - 2^98 == 2^99").verdict == "refuted"
