import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from likewise.claims.growth.everywhere import decide
from likewise.claims.language.parser import parse
from likewise.claims.verdict import Finding, Undecided
from tests.claims.plain import box, claim, satisfied, value

TERM = st.builds(lambda c, n, d: f"{c}*N^{n}*D^{d}", st.integers(-3, 4), st.integers(0, 2), st.integers(0, 2))
SUM = st.lists(TERM, min_size=1, max_size=3).map(" + ".join)
SIDE = st.one_of(SUM, st.tuples(SUM, SUM).map(lambda pair: f"max({pair[0]}, {pair[1]})"))
CONDITIONS = ["", "N >= D", "N > 2*D", "N == D", "N >= 3; D <= 4", "N*D >= 7", "D <= N^2"]


def decided(text: str) -> Finding:
    found = decide(parse(text))
    assert found is not None
    return found


@pytest.mark.slow
@settings(max_examples=150)
@given(SIDE, SIDE, st.sampled_from(["==", "!=", "<", "<=", ">", ">="]), st.sampled_from(CONDITIONS))
def test_what_holds_holds_in_a_box_and_what_fails_fails_at_its_witness(left, right, comparison, conditions):
    relation = f"{left} {comparison} {right}"
    try:
        found = decide(claim("ND", relation, conditions))
    except Undecided:
        return
    assert found is not None
    if found.verdict == "holds":
        assert all(value(relation, sizes) for sizes in box("ND", 12) if satisfied(conditions, sizes))
    else:
        sizes = {name: int(text) for name, text in found.witness}
        assert satisfied(conditions, sizes)
        assert not value(relation, sizes)


@settings(max_examples=100)
@given(SUM, SUM, st.sampled_from(["<=", ">="]))
def test_first_witness_is_among_the_smallest(left, right, comparison):
    try:
        found = decide(claim("ND", f"{left} {comparison} {right}"))
    except Undecided:
        return
    assert found is not None
    if found.verdict == "refuted":
        largest = max(int(text) for _, text in found.witness)
        assert all(value(f"{left} {comparison} {right}", sizes) for sizes in box("ND", min(largest, 7) - 1))


@pytest.mark.parametrize(
    ("text", "detail"),
    [
        ("sizes: N\nassert: N^2 >= N", "no negative coefficient at sizes 1 + x"),
        ("sizes: N\nassume: N > 1\nassert: N*(N - 1) > 1", "no negative coefficient at sizes from the assumed ones on"),
        ("sizes: h, k, d = h*k\nassert: d/h == k", "equal as polynomials"),
        (
            "sizes: N, R\nassume: N >= 4*R\nassert: N^2 >= 4*N*R",
            "no negative coefficient once the assumptions are put in",
        ),
        ("sizes: N, D\nassume: N*D > 7*D + 3\nassert: N^2*D > 7*N*D + 3*N", "an assumption times a monomial"),
        ("sizes: N, D\nassert: N*D + 1 >= max(N, D) >= 1", "no negative coefficient at sizes 1 + x"),
        (
            "sizes: N\nassume: N >= 100\nassert: N + 1 == N within 1%",
            "no negative coefficient at sizes from the assumed ones on",
        ),
    ],
)
def test_comparison_that_holds_says_how_it_was_proved(text, detail):
    assert (decided(text).verdict, decided(text).detail) == ("holds", detail)


@pytest.mark.parametrize(
    ("text", "detail"),
    [
        ("sizes: N\nassert: N^2 > N", "N=1: 1 <= 1"),
        ("sizes: h, k, d = h*k\nassert: d^2 == h*k^2", "h=2 k=1 d=2: 4 != 2"),
        ("sizes: N\nassert: N < 1000", "N=1024: 1024 >= 1000"),
        ("sizes: N\nassume: N >= 99\nassert: N + 2 == N within 1%", "N=128: 130 != 128"),
        ("sizes: d, h, k = d/h\nassert: k == d", "d=2 h=2 k=1: 1 != 2"),
    ],
)
def test_comparison_that_fails_shows_the_first_sizes(text, detail):
    assert (decided(text).verdict, decided(text).detail) == ("refuted", detail)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("sizes: N, D\nassert: N^2 + D^2 >= 2*N*D", "neither proved, nor broken"),
        ("sizes: N\nassert: sqrt(N) <= N", "no polynomial|roots"),
        ("sizes: N\nassert: (N + 1)^13 >= 1", "degree 13"),
        ("sizes: N\nassume: exp(N) < 9\nassert: N < 2", "the assumption exp"),
    ],
)
def test_what_is_neither_is_undecided(text, reason):
    with pytest.raises(Undecided, match=reason):
        decide(parse(text))


def test_claims_with_variables_are_not_for_this_engine():
    assert decide(parse("given: x in R\nassert: x >= x")) is None
    assert decide(parse("given: x in R^n\nassert: dim(x) == n")) is None
