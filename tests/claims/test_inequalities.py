"""Inequalities by a general argument: Cauchy and Schwarz, tangents of convex functions, squared sides, divisors."""

from dataclasses import replace
from fractions import Fraction
from itertools import product
from math import exp, log

import pytest
from hypothesis import given
from hypothesis import strategies as st

from likewise.claims.algebra.elementary import log as logarithm
from likewise.claims.algebra.elementary import sqrt
from likewise.claims.algebra.exponomials import Atom, Form, of_atom, variable
from likewise.claims.algebra.exponomials import exp as exponential
from likewise.claims.algebra.inequalities import cauchy, inequalities, tangents
from likewise.claims.chance import gaussian
from likewise.claims.engines import decide, engines_for
from likewise.claims.growth.impossible import impossible, indivisible
from likewise.claims.growth.linear import LinearForm, Row
from likewise.claims.language.parser import parse
from likewise.claims.verdict import Finding


def found(text: str) -> Finding:
    return decide(replace(parse(text.replace(" | ", "\n")), budget=3.0))


@pytest.mark.parametrize(
    ("text", "method"),
    [
        ("given: x, y in R^D | assert: norm(x + y) <= norm(x) + norm(y)", "for every D (both sides squared)"),
        (
            "given: x, y, z in R^D | assert: norm(x - z) <= norm(x - y) + norm(y - z)",
            "for every D (both sides squared)",
        ),
        ("given: x, y in R^D | assert: norm(2*x - 3*y) <= 2*norm(x) + 3*norm(y)", "for every D (both sides squared)"),
        ("given: x, y in R^D | assert: norm(x) + norm(y) >= norm(x - y)", "for every D (both sides squared)"),
        ("given: x, y in R^D | assert: norm(x + y) < norm(x) + norm(y) + 1", "for every D (both sides squared)"),
        ("given: x, y in R^D | assert: norm(x + y)/2 <= norm(x)/2 + norm(y)/2", "for every D (both sides squared)"),
        (
            "given: x, y in R^D | assume: sqnorm(x) <= sqnorm(y) | assert: norm(x) <= norm(y)",
            "for every D (both sides squared)",
        ),
        ("given: x in R^D | assert: mean(x)^2 <= mean(x*x)", "for every D (signs)"),
        ("given: x in R^D | assert: sum(x)^2 <= D*sqnorm(x)", "for every D (signs)"),
        ("given: x in R | assert: exp(x) >= 1 + x", "for all values (signs)"),
        ("given: x in R | assert: exp(x) > x", "for all values (signs)"),
        ("given: x, y in R | assert: exp(x - y) + y >= 1 + x", "for all values (signs)"),
        ("given: x in R | assume: x > 0 | assert: log(x) <= x - 1", "for all values (signs)"),
        ("given: n in Z | assert: 2*n != 1", "for all residues of n modulo 2"),
        ("given: n, m in Z | assert: n/2 + m != 1/3", "for all values (z3)"),
        ("sizes: n | assert: 2*n != 7", "for all residues of n modulo 2"),
    ],
)
def test_what_follows_from_a_general_argument_is_proved(text: str, method: str) -> None:
    finding = found(text)
    assert (finding.verdict, finding.grade, finding.detail) == ("holds", "proved", method)


@pytest.mark.parametrize(
    "text",
    [
        "given: x, y in R^D | assert: norm(x + y) < norm(x) + norm(y)",
        "given: x, y in R^D | assert: norm(x + 2*y) <= norm(x) + norm(y)",
        "given: x, y in R^D | assert: norm(x + y) <= norm(x) - norm(y)",
        "given: x, y in R^D | assume: sqnorm(x) <= sqnorm(y) | assert: norm(x) <= -norm(y)",
        "given: x, y in R^D | assume: 3*sqnorm(x) <= sqnorm(y) | assert: 3*norm(x) <= norm(y)",
        "given: x in R^D | assert: mean(x)^2 < mean(x*x)",
        "given: x in R^D | assert: sum(x)^2 <= sqnorm(x)",
        "given: x in R | assert: exp(x) > 1 + x",
        "given: x in R | assert: exp(x) >= 1 + 2*x",
        "given: x in R | assume: x > 0 | assert: log(x) < x - 1",
        "given: x in R | assert: 2*x != 1",
        "given: n in Z | assert: 2*n != 4",
        "given: n, m in Z | assert: 4*n + 6*m != 2",
    ],
)
def test_what_is_nearly_so_is_refuted(text: str) -> None:
    finding = found(text)
    assert finding.verdict == "refuted", finding
    assert finding.witness


def test_whole_numbers_that_nothing_satisfies_prove_nothing() -> None:
    for text in (
        "given: n in Z | assume: 2*n == 1 | assert: n > 5",
        "given: n in Z | assume: 2*n == 1 | assert: n^2 >= 0",
    ):
        finding = found(text)
        assert finding.verdict == "inconclusive"
        assert finding.detail.startswith("nothing satisfies the assumptions")
    assert impossible(parse("given: n in Z\nassume: 2*n == 1\nassert: n > 5"))
    assert not impossible(parse("given: n in R\nassume: 2*n == 1\nassert: n > 5"))


small = st.integers(-6, 6)


@given(st.lists(small.filter(bool), min_size=1, max_size=3), small, st.integers(1, 4))
def test_equation_without_divisor_has_a_solution_and_otherwise_none(
    numbers: list[int], constant: int, below: int
) -> None:
    names = [f"n{place}" for place in range(len(numbers))]
    row = Row(
        LinearForm({n: Fraction(c, below) for n, c in zip(names, numbers, strict=True)}, Fraction(constant)), "=="
    )
    solved = any(
        sum(c * v for c, v in zip(numbers, values, strict=True)) == -constant * below
        for values in product(range(-30, 31) if len(numbers) < 3 else range(-9, 10), repeat=len(numbers))
    )
    assert indivisible([row], names) != solved
    assert not indivisible([row], names[1:])  # one of them is any number
    assert not indivisible([replace(row, comparison="<=")], names)


numbers = st.floats(-3, 3)


@given(st.lists(numbers, min_size=3, max_size=3), st.lists(numbers, min_size=3, max_size=3))
def test_bounds_of_vectors_hold_at_every_point(x: list[float], y: list[float]) -> None:
    both = {"x": x, "y": y, "": [1.0] * 3}
    dots = {}
    for left, right in product(both, repeat=2):
        names = tuple(sorted(name for name in (left, right) if name))
        if names:
            dots[Atom("invariant", "3", names=names)] = sum(a * b for a, b in zip(both[left], both[right], strict=True))
    atoms = {atom.names: of_atom(atom) for atom in dots}
    root = sqrt(atoms["x", "x"] * 4 - atoms["x", "y"] * 12 + atoms["y", "y"] * 9)  # norm(2x - 3y)
    other = sqrt(atoms["x", "x"] - atoms["x", "y"] + atoms["y", "y"])  # of no vector
    bounds = list(cauchy([root + other + atoms["x",]]))
    assert len(bounds) == 3 * 6  # of x, y, 1 and 2x - 3y
    for bound, comparison in bounds:
        assert comparison == ">="
        assert _at(bound, dots) >= -1e-9


@given(numbers)
def test_bounds_of_functions_hold_at_every_point(x: float) -> None:
    name = variable("x")
    ((bound, _),) = tangents([exponential(2 * name) - name])
    assert bound == exponential(2 * name) - 1 - 2 * name
    assert exp(2 * x) - 1 - 2 * x >= -1e-12
    ((bound, _),) = inequalities([logarithm(name * name + 1)])
    assert bound == name * name - logarithm(name * name + 1)
    assert x * x - log(x * x + 1) >= -1e-12


def test_bound_is_stated_of_real_exponents_only() -> None:
    angle = of_atom(Atom("i")) * variable("x")
    assert list(tangents([exponential(angle)])) == []


def _at(value: Form, values: dict[Atom, float]) -> float:
    total = 0.0
    for (powers, exponent), coefficient in value.terms.items():
        assert not exponent
        term = float(coefficient)
        for atom, e in powers:
            base = values[atom] if atom in values else float(atom.index[0]) if atom.kind == "prime" else None
            base = max(_at(Form(dict(atom.parts[0])), values), 0.0) if base is None else base
            term *= base ** float(e)
        total += term
    return total


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        ("given: s in R; x ~ N(0, s^2) | assume: Var[x] == 1 | assert: s^2 == 1", "holds"),
        ("given: s in R; x ~ N(0, s^2) | assume: Var[x] == 1 | assert: s == 1", "refuted"),
        ("given: u ~ U(0, 1); a in R | assume: E[u] == a | assert: a == 1/2", "holds"),
        ("given: u ~ U(0, 1); a in R | assume: E[u] == a | assert: a == 1/3", "refuted"),
        ("given: u ~ U(0, 1); a in R | assume: E[u] == 1 | assert: a == 1/3", "inconclusive"),
    ],
)
def test_chance_in_an_assumption_is_taken_exactly(text: str, verdict: str) -> None:
    assert gaussian.decide in engines_for(parse(text.replace(" | ", "\n")))
    assert found(text).verdict == verdict


def test_suggestion_of_what_stays_open_is_kept() -> None:
    text = "given: x in R^D | assert: x' @ x has shape [1, 1]"
    finding = found(text)
    assert finding.verdict == "inconclusive", finding
    assert finding.suggestions == ("layout: columns",)
