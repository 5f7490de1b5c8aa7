"""The normal form agrees with numbers, with itself, and with sympy."""

import math
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from likewise.claims.algebra.balls import PRECISIONS, ball, decimal, enclose, sign
from likewise.claims.algebra.elementary import absolute, cos, log, maximum, sin, sqrt, substitute
from likewise.claims.algebra.exponomials import Atom, Form, exp, form, of_atom, power, root, size, variable
from likewise.claims.algebra.printing import text, value_text
from likewise.claims.language.limits import DEGREE
from likewise.claims.verdict import Undecided

X, Y = Atom("variable", "x"), Atom("variable", "y")
x, y, D = of_atom(X), of_atom(Y), size("D")
FRACTIONS = st.fractions(-2, 2, max_denominator=3)


def forms() -> st.SearchStrategy[tuple[Form, str]]:
    """A form, and the same as text for an independent reader."""
    leaves = st.sampled_from([(x, "x"), (y, "y"), (form(2), "2"), (form(Fraction(1, 3)), "(Integer(1)/3)")])

    def larger(smaller: st.SearchStrategy[tuple[Form, str]]) -> st.SearchStrategy[tuple[Form, str]]:
        pairs = st.tuples(smaller, smaller)
        return st.one_of(
            pairs.map(lambda p: (p[0][0] + p[1][0], f"({p[0][1]} + {p[1][1]})")),
            pairs.map(lambda p: (p[0][0] - p[1][0], f"({p[0][1]} - {p[1][1]})")),
            pairs.map(lambda p: (p[0][0] * p[1][0], f"({p[0][1]} * {p[1][1]})")),
            smaller.map(lambda p: (exp(p[0] * Fraction(1, 8)), f"exp(({p[1]}) / 8)")),
            smaller.map(lambda p: (cos(p[0]), f"cos({p[1]})")),
            smaller.map(lambda p: (sin(p[0]), f"sin({p[1]})")),
            smaller.map(lambda p: (1 / (p[0] * p[0] + 1), f"(1 / (({p[1]})**2 + 1))")),
            smaller.map(lambda p: (sqrt(p[0] * p[0] + 2), f"sqrt(({p[1]})**2 + 2)")),
        )

    return st.recursive(leaves, larger, max_leaves=5)


@settings(max_examples=60, deadline=None)
@given(forms(), FRACTIONS, FRACTIONS)
def test_an_enclosure_contains_the_value(pair: tuple[Form, str], a: Fraction, b: Fraction) -> None:
    import sympy

    value, written = pair
    names = {"x": sympy.Rational(a.numerator, a.denominator), "y": sympy.Rational(b.numerator, b.denominator)}
    exact = sympy.sympify(written, locals=names)  # ty: ignore[no-matching-overload]
    number = Fraction(str(sympy.N(exact, 40)))
    found = enclose(value, {X: ball(a), Y: ball(b)})
    near = ball(number, 128) + ball(0, 128).ctx.mpf([-1e-35, 1e-35])  # the reader is rounded too
    assert found.a <= near.b
    assert near.a <= found.b
    assert found.delta < 1e-12 * (1 + abs(float(number)))


@settings(max_examples=60, deadline=None)
@given(forms(), FRACTIONS, FRACTIONS)
def test_substitution_of_numbers_is_evaluation(pair: tuple[Form, str], a: Fraction, b: Fraction) -> None:
    value = pair[0]
    put = substitute(value, {X: a, Y: b})
    left, right = enclose(put, {}, 128), enclose(value, {X: ball(a, 128), Y: ball(b, 128)}, 128)
    assert left.a <= right.b
    assert right.a <= left.b
    assert not put.atoms() & {X, Y}


@settings(max_examples=60, deadline=None)
@given(forms(), forms(), forms())
def test_the_ring_laws_hold_in_normal_form(a: tuple[Form, str], b: tuple[Form, str], c: tuple[Form, str]) -> None:
    p, q, r = a[0], b[0], c[0]
    try:
        left, right = p * (q + r), p * q + p * r
    except Undecided:  # a product beyond the degree that is expanded
        return
    assert left == right
    assert p * q == q * p
    assert p - p == 0
    assert hash(q + r) == hash(r + q)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (cos(x + y), cos(x) * cos(y) - sin(x) * sin(y)),
        (sin(x) ** 2 + cos(x) ** 2, form(1)),
        (sqrt(2) * sqrt(3), sqrt(6)),
        (sqrt(x * x + y) ** 3, (x * x + y) * sqrt(x * x + y)),
        (D / sqrt(D), sqrt(D)),
        (exp(2 * log(x + y)), (x + y) ** 2),
        (log(Fraction(8, 9) * D), 3 * log(2) - 2 * log(3) + log(D)),
        (sqrt(4 * x * x + 4 * y), 2 * sqrt(x * x + y)),
        (root(Fraction(8, 27), Fraction(1, 3)), form(Fraction(2, 3))),
        (1 / (x + y), -1 / (-x - y)),
        (absolute(-sqrt(D)), sqrt(D)),
        (maximum(x, y, x), maximum(y, x)),
        (sqrt(variable("s", positive=True) ** 2), variable("s", positive=True)),
    ],
)
def test_equal_expressions_have_one_normal_form(left: Form, right: Form) -> None:
    assert left == right


def test_the_root_of_a_square_is_not_the_variable() -> None:
    assert sqrt(x * x) != x
    assert sign(substitute(sqrt(x * x) - x, {X: -1})) == 1


def test_denominators_are_cleared_to_see_zero() -> None:
    assert x / (x + y) + y / (x + y) != 1
    assert (x / (x + y) + y / (x + y) - 1).is_zero()
    assert (exp(x) / (exp(x) + exp(y)) - exp(x + 1) / (exp(x + 1) + exp(y + 1))).is_zero()
    assert (x / sqrt(x) - sqrt(x)).is_zero()
    assert not (x / (x + y) - y / (x + y)).is_zero()


def test_the_sign_of_a_tiny_number_needs_more_bits() -> None:
    close = power(form(2), Fraction(1, 2)) - Fraction(math.isqrt(2 * 10**60), 10**30)
    assert enclose(close, {}, PRECISIONS[0]).a < 0 < enclose(close, {}, PRECISIONS[0]).b
    assert sign(close) == 1
    assert sign(sqrt(2) * sqrt(8) - 4) == 0


def test_what_never_separates_has_no_sign() -> None:
    hidden = log(2) + log(3) - log(sqrt(5) * sqrt(5) + 1) + Fraction(1, 2**400)
    with pytest.raises(Undecided, match="256 bits"):
        sign(hidden + sqrt(5 + 2 * sqrt(6)) - sqrt(2) - sqrt(3))  # 0 by denesting, which is not attempted


def test_division_by_zero_and_roots_of_negatives_are_refused() -> None:
    for wrong in (lambda: x / form(0), lambda: sqrt(-2), lambda: log(-1)):
        with pytest.raises(ArithmeticError):
            wrong()


def test_growth_is_bounded_before_expanding() -> None:
    many = sum((variable(f"v{i}") for i in range(300)), form(0))
    with pytest.raises(Undecided, match="monomials"):
        many * many * many
    with pytest.raises(Undecided, match="degree"):
        (x + 1) ** (DEGREE + 1)
    with pytest.raises(Undecided, match="too large"):
        form(7) ** 64**2


def test_decimals_are_printed_with_six_digits() -> None:
    assert decimal(exp(-sqrt(2) * Fraction(1, 2))) == "0.493069"
    assert decimal(form(Fraction(1, 3))) == "1/3"


def test_forms_are_printed_in_the_language_of_claims() -> None:
    def dot(*names: str) -> Form:
        return of_atom(Atom("invariant", "D", names=tuple(sorted(names))))

    distance = dot("q", "q") - 2 * dot("q", "k") + dot("k", "k")
    assert text(exp(-sqrt(D) * distance / 2), ("q", "k")) == "exp(-sqrt(D)*sqnorm(q - k)/2)"
    assert text(distance + 4 * dot("q", "k")) == "sqnorm(k + q)"
    assert text(distance + dot("q", "k"), ("q", "k")) == "sqnorm(k) - dot(q, k) + sqnorm(q)"
    assert text(3 * x * cos(y - x) + sin(y - x)) == "3*x*cos(x - y) - sin(x - y)"
    assert text(D * variable("s") ** 4 + 2 * variable("s") ** 2 * dot("mu", "mu")) == "D*s^4 + 2*sqnorm(mu)*s^2"
    assert text(variable("q", 2) / sqrt(2) - Fraction(1, 3)) == "sqrt(2)*q[2]/2 - 1/3"
    assert value_text(exp(-sqrt(2) / 4)) == "exp(-sqrt(2)/4) = 0.702189"
