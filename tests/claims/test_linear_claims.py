"""Claims that are linear in numbers and entries: proved or refuted at a small point, whichever engine does it."""

from fractions import Fraction
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from likewise.claims.engines import decide
from likewise.claims.language.parser import parse
from tests.claims.plain import satisfied, value

LINEAR = st.builds(lambda a, b, c: f"{a}*x + {b}*y + {c}", st.integers(-2, 2), st.integers(-2, 2), st.integers(-2, 2))
EXPRESSION = st.one_of(
    LINEAR,
    st.tuples(LINEAR, LINEAR).map(lambda pair: f"max({pair[0]}, {pair[1]})"),
    st.tuples(LINEAR, LINEAR).map(lambda pair: f"min({pair[0]}, {pair[1]}) - x"),
    LINEAR.map(lambda text: f"abs({text})"),
)
COMPARISON = st.sampled_from(["==", "!=", "<", "<=", ">", ">="])
ATOM = st.builds(lambda a, sign, b: f"{a} {sign} {b}", EXPRESSION, COMPARISON, EXPRESSION)


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(ATOM, st.lists(ATOM, max_size=2))
def test_proof_meets_no_counterexample_and_a_witness_is_one(relation, assumptions):
    text = "; ".join(assumptions)
    assume = f"assume: {text}\n" if text else ""
    found = decide(parse(f"given: x, y in R\n{assume}assert: {relation}"))
    points = [{"x": x, "y": y} for x, y in product(range(-5, 6), repeat=2)]
    if found.verdict == "inconclusive":
        assert not any(satisfied(text, point) for point in points)
    elif found.verdict == "holds":
        assert all(value(relation, point) for point in points if satisfied(text, point))
    else:
        point = {name: Fraction(number) for name, number in found.witness}
        point = {"x": Fraction(0), "y": Fraction(0), **point}
        assert satisfied(text, point)
        assert not value(relation, point)


@pytest.mark.parametrize(
    "text",
    [
        "given: x in R\nassert: abs(x) >= x",
        "given: x, y in R\nassert: max(x, y) == (x + y + abs(x - y))/2",
        "given: x, y in R\nassert: max(x, y) + min(x, y) == x + y",
        "given: x in R\nassert: relu(x) - relu(-x) == x",
        "given: x in [0, 1]\nassert: 0 <= 2*x <= 2",
        "given: x in {0, 1}; y in R\nassert: x*x*y == x*y",
        "given: x in R^3\nassert: min(x) <= mean(x) <= max(x)",
        "given: x, y in R^2\nassert: abs(sum(x - y)) <= sum(abs(x - y))",
        "given: x in R\nassert: x + 1/10 == x within 0.1",
        "given: x in R\nassume: x != 0\nassert: abs(x) > 0",
        'given: x in R^2\nassert: einsum("i->", x) == sum(x)',
        "given: x in R^3\nassert: sum(i in 1..3, x[i]) == [1, 1, 1] @ x",
        "given: i in 1..3\nassert: i >= 1",
        "given: x in R^9\nassert: max(x) + max(-x) + max(2*x) + max(-2*x) >= 0",
        "given: n, m in Z\nassert: n/2 + m != 1/3",
    ],
)
def test_linear_claim_is_proved(text):
    found = decide(parse(text))
    assert (found.verdict, found.grade) == ("holds", "proved")


@pytest.mark.parametrize(
    ("text", "detail"),
    [
        ("given: x, y in R\nassert: max(x, y) <= x + y", "x=0 y=-1: 0 > -1"),
        ("given: x in R\nassert: 2*x != 1", "x=0.5: 2*x = 1"),
        ("given: x in R\nassume: x > 10\nassert: x > 11", "x=11: 11 <= 11"),
        ("given: s in R^n\nassume: max(s) > 0\nassert: sum(s) != 0", "n=2 s=(1,-1): sum(s) = 0; true for n=1"),
        (
            "given: s in R^n\nassume: max(s) > 0; min(s) < 0\nassert: sum(s) > 0",
            "n=2 s=(1,-1): 0 <= 0; holds",
        ),
        ("given: x, y in R\nassert: 0 < 1 <= x == y", "x=0: 1 > 0"),
        ("given: d in {2, 3}; x in R\nassume: x == 1\nassert: d*x == 2", "d=3: 3 != 2"),
        ("given: x in R\nassert: x + 1 == x within 0.5", "x=0: 1 > 0.5"),
        ("given: i in Z\nassume: 0 < i\nassert: i > 1", "i=1: 1 <= 1"),
    ],
)
def test_linear_claim_is_refuted_at_a_small_point(text, detail):
    found = decide(parse(text))
    assert (found.verdict, found.grade) == ("refuted", "exact witness")
    assert detail in found.detail


@pytest.mark.parametrize(
    "text",
    [
        "given: x in R\nassume: x > 0; x < 0\nassert: x == 7",
        "given: i in Z\nassume: 1 < 3*i; 3*i < 3\nassert: i > 5",
    ],
)
def test_assumptions_that_nothing_satisfies_prove_nothing(text):
    assert decide(parse(text)).verdict == "inconclusive"
