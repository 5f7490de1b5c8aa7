"""Inequalities: proofs by signs, squares and boxes are sound; what stays open is said to be open."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from likewise.claims.algebra import balls, intervals
from likewise.claims.algebra.elementary import cos, derivative, log, sin, sqrt
from likewise.claims.algebra.exponomials import Atom, Form, exp, of_atom
from likewise.claims.algebra.inequalities import is_sum_of_squares
from likewise.claims.algebra.intervals import decide as by_intervals
from likewise.claims.algebra.intervals import subdivided
from likewise.claims.algebra.questions import question
from likewise.claims.algebra.signs import ANY, largest, of_names, plus, times
from likewise.claims.engines import decide
from likewise.claims.language.parser import parse
from likewise.claims.verdict import Undecided

X = Atom("variable", "x")
x = of_atom(X)


@pytest.mark.parametrize(
    ("text", "detail"),
    [
        ("given: x in R\nassert: exp(x) > 0", "for all values (signs)"),
        ("given: q, k in R^D\nassert: dot(q, k)^2 >= 0", "for every D (signs)"),
        ("given: f, g in R^M\nassume: f >= 0; g >= 0\nassert: dot(f, g) >= 0", "for every M (signs)"),
        ("given: s in R^n\nassert: sum(exp(s)) > 0", "for every n (signs)"),
        ("given: q, k in R^D\nassert: 2*dot(q, k) <= sqnorm(q) + sqnorm(k)", "for every D (sum of squares)"),
        ("given: q, k in R^D\nassert: dot(q, k)^2 <= sqnorm(q)*sqnorm(k)", "for every D (signs)"),
        ("given: q, k in R^D\nassert: dot(q, k) <= norm(q)*norm(k)", "for every D (signs)"),
        ("given: x in R\nassert: x^2 - x + 1 > 0", "for all values (sum of squares)"),
        ("given: x in [0, 1]\nassert: exp(x) <= 1 + 2*x", "interval arithmetic, 7 boxes"),
        ("given: x in [0, 3]\nassert: sin(x) >= 0", "interval arithmetic, 1 box"),
        ("given: x in [1, 2]; y in [1, 2]\nassert: x*y < x + y + 1", "interval arithmetic"),
        ("given: x in [-1, 1]; y in [-1, 1]\nassert: max(x*y, 0) <= 1", "interval arithmetic, 1 box"),
        ("given: x in [0, 1]\nassume: x >= 0.5\nassert: log(1 + x) >= 0.4", "interval arithmetic"),
        ("given: p, c in R^L; m in R\nassume: p >= 0; c <= m\nassert: dot(p, m - c) >= 0", "for every L (signs)"),
    ],
)
def test_true_inequalities_are_proved(text: str, detail: str) -> None:
    found = decide(parse(text))
    assert (found.verdict, found.grade) == ("holds", "proved")
    assert found.detail.startswith(detail)


@pytest.mark.parametrize(
    "text",
    [
        "given: x in R\nassert: -x^2 + x - 1 > 0",
        "given: x in R\nassert: x^2 - x > 0",
        "given: f, g in R^M\nassume: f >= 0\nassert: dot(f, g) >= 0",
        "given: q, k in R^D\nassert: 3*dot(q, k) <= sqnorm(q) + sqnorm(k)",
        "given: x in [0, 1]\nassert: exp(x) > 1 + x",
        "given: x in [0, 1]\nassert: exp(x) <= 1 + 1.7*x",
        "given: x in [0, 4]\nassert: sin(x) >= 0",
        "given: q in R^D\nassert: sqnorm(q) > 0",
        "given: x in R\nassert: 1/0 > x",
        "given: q in R^D\nassert: sum(pairs(abs(q) + 1)) > 0",
        "given: q in R^D\nassert: sum(exp(pairs(q))) > 0",
        "given: k in R^D; B[M,D]\nassert: sqnorm(k @ outer(B, k)) >= 0",  # the product is not defined
        "given: q in R^(D - 1)\nassert: sum(exp(q)) > 0",
        "given: q in R^D\nassert: dim(pairs(q)) > 0",
        "sizes: D\nassert: sum(ones(D - 1)) > 0",
    ],
)
def test_false_inequalities_are_not_proved(text: str) -> None:
    assert decide(parse(text)).verdict != "holds"
    try:
        found = by_intervals(parse(text))
    except Undecided:
        return
    assert found is None or found.verdict == "refuted"


def test_boxes_that_cannot_settle_are_given_up() -> None:
    touching = question(parse("given: x in [0, 1]; y in [0, 1]\nassert: x^2 + y^2 >= 2*x*y"))
    assert touching is not None
    assert subdivided(touching) is None


@pytest.mark.parametrize(("combine", "operation"), [(plus, np.add), (times, np.multiply)])
def test_signs_of_sums_and_products_miss_none(combine, operation) -> None:
    subsets = [
        frozenset(s for s, keep in zip((-1, 0, 1), bits, strict=True) if keep) for bits in product((0, 1), repeat=3)
    ]
    numbers = {-1: (-3.0, -1.0), 0: (0.0,), 1: (1.0, 3.0)}
    for left, right in product(subsets, repeat=2):
        seen = {int(np.sign(operation(a, b))) for s in left for t in right for a in numbers[s] for b in numbers[t]}
        assert combine(left, right) == seen
    assert largest([ANY, frozenset({0})]) == {0, 1}


@pytest.mark.parametrize("comparison", ["<", "<=", ">", ">=", "!="])
@pytest.mark.parametrize("bound", [-2, -0.5, 0, 0.5, 2])
def test_an_assumption_leaves_exactly_the_signs_it_allows(comparison: str, bound: float) -> None:
    asked = question(parse(f"given: x in R\nassume: x {comparison} {bound}\nassert: x == 0"))
    assert asked is not None
    kept = {"<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal, "!=": np.not_equal}[comparison]
    assert of_names(asked)["x"] == {int(np.sign(x)) for x in np.linspace(-4, 4, 65) if kept(x, bound)}


def test_squares_are_recognised_exactly() -> None:
    y = of_atom(Atom("variable", "y"))
    for a, b, c in product(range(-2, 3), repeat=3):
        value = a * x * x + b * x * y + c * y * y
        grid = [a * s * s + b * s * t + c * t * t for s, t in product(np.linspace(-1, 1, 41), repeat=2)]
        if value.terms:
            assert is_sum_of_squares(value, ">=") == (min(grid) >= -1e-12), (a, b, c)
    assert is_sum_of_squares(x * x - x + 1, ">")
    assert not is_sum_of_squares(x * x - 2 * x + 1, ">")


@pytest.mark.parametrize(
    "value",
    [x**3 - 2 * x, exp(x * x), sin(2 * x) * cos(x), sqrt(1 + x * x), log(1 + x * x), 1 / (1 + exp(x)), x / (2 + x)],
)
def test_derivatives_agree_with_differences(value: Form) -> None:
    def at(form: Form, point: Fraction) -> float:
        return float(balls.enclose(form, {X: balls.ball(point, 128)}, 128).mid)

    for point in (Fraction(-1, 2), Fraction(1, 3), Fraction(2)):
        step = Fraction(1, 10**6)
        difference = (at(value, point + step) - at(value, point - step)) / float(2 * step)
        assert at(derivative(value, X), point) == pytest.approx(difference, rel=1e-6, abs=1e-8)


@pytest.mark.slow
def test_an_identity_that_is_not_proved_is_only_searched() -> None:
    found = intervals.decide(parse("given: x in R\nassert: log(exp(x) + 1) - log(1 + exp(-x)) == x\npoints: 5"))
    assert found is not None
    assert (found.verdict, found.grade, found.detail) == ("inconclusive", "searched", "no counterexample at 5 points")
    text = "given: x in R^n\nassert: prod(1 + exp(x))*prod(1 + exp(-x)) == prod(2 + exp(x) + exp(-x))\nbudget: 1"
    wide = decide(parse(text))
    assert wide.grade == "searched"


def test_what_no_point_separates_is_never_refuted() -> None:
    found = decide(parse("assert: sqrt(5 + 2*sqrt(6)) == sqrt(2) + sqrt(3)"))
    assert found.verdict != "refuted"


def test_a_false_identity_that_the_lattice_misses_is_found_at_random_points() -> None:
    text = "given: x in [0.1, 0.2]\nassert: (x - 0.1)*(x - 0.2)*(x - 0.15)*(x - 0.125) == 0"
    found = decide(parse(text))
    assert found.verdict == "refuted"


@pytest.mark.parametrize(
    "text",
    [
        "given: x, y, z in Z\nassert: x^3 + y^3 + z^3 != 114",  # nobody knows
        "given: x in R\nassert: erf(x)^2 <= 1 - exp(-4*x^2/pi)",  # true (Polya 1945), and near to equality
    ],
)
def test_an_open_inequality_gives_its_reason(text: str) -> None:
    found = decide(parse(f"{text}\nbudget: 0.5"))
    assert found.verdict == "inconclusive"
    assert "neither proved nor refuted" in found.detail
