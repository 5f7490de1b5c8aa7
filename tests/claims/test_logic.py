from fractions import Fraction
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from likewise.claims.growth.logic import decide
from likewise.claims.language.parser import parse
from likewise.claims.verdict import Finding, Undecided
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


def decided(text: str) -> Finding:
    found = decide(parse(text))
    assert found is not None
    return found


@pytest.mark.slow
@settings(max_examples=100)
@given(ATOM, st.lists(ATOM, max_size=2))
def test_proof_meets_no_counterexample_and_a_witness_is_one(relation, assumptions):
    text = "; ".join(assumptions)
    assume = f"assume: {text}\n" if text else ""
    try:
        found = decide(parse(f"given: x, y in R\n{assume}assert: {relation}"))
    except Undecided:  # nothing satisfies the assumptions
        assert not any(satisfied(text, {"x": x, "y": y}) for x, y in product(range(-5, 6), repeat=2))
        return
    assert found is not None
    if found.verdict == "holds":
        points = [{"x": x, "y": y} for x, y in product(range(-5, 6), repeat=2)]
        assert all(value(relation, point) for point in points if satisfied(text, point))
    else:
        point = {name: Fraction(number) for name, number in found.witness}
        assert satisfied(text, point)
        assert not value(relation, point)


@pytest.mark.parametrize(
    ("text", "detail"),
    [
        ("given: x in R\nassert: abs(x) >= x", "linear arithmetic, 2 cases"),
        ("given: x, y in R\nassert: max(x, y) == (x + y + abs(x - y))/2", "linear arithmetic, 4 cases"),
        ("given: x, y in R\nassert: max(x, y) + min(x, y) == x + y", "linear arithmetic, 4 cases"),
        ("given: x in R\nassert: relu(x) - relu(-x) == x", "linear arithmetic, 4 cases"),
        ("given: x in [0, 1]\nassert: 0 <= 2*x <= 2", "linear arithmetic, 1 case"),
        ("given: x in {0, 1}; y in R\nassert: x*x*y == x*y", "linear arithmetic, 2 cases"),
        ("given: x in R^3\nassert: min(x) <= mean(x) <= max(x)", "linear arithmetic, 9 cases"),
        ("given: x, y in R^2\nassert: abs(sum(x - y)) <= sum(abs(x - y))", "linear arithmetic, 8 cases"),
        ("given: x in R\nassert: x + 1/10 == x within 0.1", "linear arithmetic, 1 case"),
        ("given: x in R\nassume: x != 0\nassert: abs(x) > 0", "linear arithmetic, 4 cases"),
        ('given: x in R^2\nassert: einsum("i->", x) == sum(x)', "linear arithmetic, 1 case"),
        ("given: x in R^3\nassert: sum(i in 1..3, x[i]) == [1, 1, 1] @ x", "linear arithmetic, 1 case"),
        ("given: i in 1..3\nassert: i >= 1", "linear arithmetic, 1 case"),
    ],
)
def test_linear_claim_is_proved(text, detail):
    found = decided(text)
    assert (found.verdict, found.grade, found.detail, found.engine) == ("holds", "proved", detail, "linear arithmetic")


@pytest.mark.parametrize(
    ("text", "detail"),
    [
        ("given: x, y in R\nassert: max(x, y) <= x + y", "x=0 y=-1: 0 > -1"),
        ("given: x in R\nassert: 2*x != 1", "x=0.5: 2*x = 1"),
        ("given: x in R\nassume: x > 10\nassert: x > 11", "x=11: 11 <= 11"),
        ("given: s in R^n\nassume: max(s) > 0\nassert: sum(s) != 0", "n=2 s=(1,-1): sum(s) = 0; true for n=1"),
        ("given: s in R^n\nassume: max(s) > 0; min(s) < 0\nassert: sum(s) > 0", "n=2 s=(1,-1): 0 <= 0"),
        ("given: x, y in R\nassert: 0 < 1 <= x == y", "x=0 y=0: 1 > 0"),
        ("given: d in {2, 3}; x in R\nassume: x == 1\nassert: d*x == 2", "d=3 x=1: 3 != 2"),
        ("given: x in R\nassert: x + 1 == x within 0.5", "x=0: 1 != 0"),
        ("given: i in Z\nassume: 0 < i\nassert: i > 1", "i=1: 1 <= 1"),
    ],
)
def test_linear_claim_is_refuted_at_a_small_point(text, detail):
    found = decided(text)
    assert (found.verdict, found.grade, found.detail) == ("refuted", "exact witness", detail)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("given: x in R\nassume: x > 0; x < 0\nassert: x == 7", "nothing satisfies the assumptions"),
        ("given: i in Z\nassume: 1 < 3*i; 3*i < 3\nassert: i > 5", "broken by fractions"),
        ("given: x in R^9\nassert: max(x) + max(-x) + max(2*x) + max(-2*x) >= 0", "more than 256 cases"),
    ],
)
def test_undecided_says_why(text, reason):
    with pytest.raises(Undecided, match=reason):
        decide(parse(text))


@pytest.mark.parametrize(
    "text",
    [
        "given: x, y in R\nassert: x*y == y*x",
        "given: x in R\nassert: exp(x) > 0",
        "given: x in R^(2, 2)\nassert: tr(x) == tr(x)",
        "given: w ~ N(0, 1)\nassert: E[w] == 0",
        "given: x in R^n; y in R^m\nassert: dot(x, y) == dot(x, y)",
        "given: x, y in R^2\nassert: x != y",
        "given: x in R\nassert: 1/x == 1/x",
        "given: x in R^n\nassert: max(x) >= mean(x)",  # true for every n, which lengths 1 to 3 do not prove
        'given: x in R^2\nassert: einsum("i,i->", x, x) >= 0',
        "sizes: N\nassert: N in O(N)",
    ],
)
def test_what_is_not_linear_is_not_for_this_engine(text):
    assert decide(parse(text)) is None
