from fractions import Fraction

import pytest
import torch

from likewise.claims.engines import decide as decide_by_engines
from likewise.claims.growth.counts import decide, percent
from likewise.claims.language.parser import parse
from likewise.claims.registry import programs, register, register_counter
from likewise.claims.verdict import Finding, Undecided
from tests.claims.rows import COUNTED, LOGICAL, rows


def decided(text: str) -> Finding:
    found = decide(parse(text.replace(" | ", "\n")))
    assert found is not None
    return found


@pytest.mark.full
@pytest.mark.parametrize(("row", "verdict", "text", "part"), rows(COUNTED) + rows(LOGICAL))
def test_rows_of_the_catalogue_have_its_verdict(row, verdict, text, part):
    found = decide_by_engines(parse(text))
    assert (found.verdict, part in found.detail) == (verdict, True), found
    assert verdict == "holds" or found.witness


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("of: attention.nothing | assert: cost in O(1)", "unknown program attention.nothing"),
        ("assert: cost in O(1)", "cost of what"),
        (
            "of: attention.softmax | sizes: N, D, M | assert: cost == N^2*D",
            r"unit missing: N\^2\*D \+ N\^2\*M mac = 2\*N",
        ),
        ("of: attention.softmax | sizes: N, D | assert: cost in O(N^2*D)", "M is not declared"),
        ("of: attention.softmax | sizes: N, D, M | assert: count == 1", "is no counter"),
        ("of: facenet.triplets | sizes: P, K | assert: cost in O(1)", "is a counter"),
        ("of: attention.mqa_step | memory: streamed | assert: peak == 1", "no streamed variant"),
        ("of: attention.softmax | sizes: N, D, M | assert: cost in O(N*log(N))", "log is not taken"),
    ],
)
def test_what_is_missing_is_said(text, reason):
    with pytest.raises(Undecided, match=reason):
        decided(text)


def test_claims_without_a_quantity_are_not_for_this_engine():
    assert decide(parse("sizes: N\nassert: N >= 1")) is None
    assert decide(parse("sizes: N\nassert: N in O(N^2)")) is None
    assert decide(parse("given: x in R\nassert: x == x")) is None


@pytest.mark.parametrize(
    ("text", "verdict", "detail"),
    [
        ("unit: mac | assert: cost == N^2*D", "refuted", "N=1 D=1 M=1: 2 != 1; cost = N^2*D + N^2*M mac"),
        ("unit: flop | assert: cost == 2*N^2*(D + M)", "holds", "2*N^2*D + 2*N^2*M flop"),
        (
            "unit: mac | assert: cost <= N^3*(D + M)",
            "holds",
            "N^2*D + N^2*M mac; no negative coefficient at sizes 1 + x",
        ),
        ("unit: mac | assert: cost < 1000", "refuted", "N=8 D=8 M=8: 1024 >= 1000; cost = N^2*D + N^2*M mac"),
        ("unit: mac | assume: M == D | assert: cost == 2*N^2*D", "holds", "N^2*D + N^2*M mac"),
        ("assert: params == 0", "holds", "0"),
        (
            "assert: peak <= 3*N^2 + 2*N*D + 2*N*M",
            "holds",
            "max(2*N^2 + 2*N*D + N*M, N^2 + 2*N*D + 2*N*M); no negative coefficient at sizes 1 + x",
        ),
        (
            "assert: peak == 2*N^2 + 2*N*D + N*M",
            "refuted",
            "N=1 D=1 M=2: 7 != 6; peak = max(2*N^2 + 2*N*D + N*M, N^2 + 2*N*D + 2*N*M)",
        ),
        (
            "assert: peak == max(N^2 + 2*N*D + 2*N*M, 2*N^2 + 2*N*D + N*M)",
            "holds",
            "max(2*N^2 + 2*N*D + N*M, N^2 + 2*N*D + 2*N*M)",
        ),
    ],
)
def test_polynomials_are_compared_at_all_sizes(text, verdict, detail):
    found = decided(f"of: attention.softmax | sizes: N, D, M | {text}")
    assert (found.verdict, found.detail, found.engine) == (verdict, detail, "count")
    assert found.grade.startswith("counted, ")


def test_sizes_of_the_program_need_not_be_declared_when_none_is():
    assert decided("of: attention.softmax | assert: params == 0").verdict == "holds"


@pytest.mark.parametrize(("number", "verdict"), [(800, "holds"), (801, "refuted")])
def test_size_given_as_a_number_is_put_in(number, verdict):
    head = "of: attention.softmax | sizes: N = 10, D = 3, M = 5 | unit: mac"
    assert decided(f"{head} | assert: cost == {number}").verdict == verdict


def test_cells_of_a_source_are_numbers():
    source = "source: {title: FaceNet, place: Table 1, cells: {p: 140}}"
    assert decided(f"of: facenet.nn1 | {source} | assert: params == p*1e6 within 1%").detail == "140025664, 0.02% off"


def test_two_programs_are_compared_in_one_unit():
    found = decided("sizes: N, D, M | unit: mac | assert: cost(attention.softmax) < cost(attention.quadratic)")
    assert found.verdict == "refuted"
    assert "cost(attention.softmax) = N^2*D + N^2*M mac" in found.detail
    with pytest.raises(Undecided, match="unit missing"):
        decided("sizes: N, D, M | assert: cost(attention.softmax) < cost(attention.quadratic)")


def test_term_of_a_maximum_has_the_coefficient_it_is_first_seen_with():
    found = decided("of: attention.softmax | sizes: N, D, M | assert: peak in O(N*D + N*M)")
    assert found.detail.startswith("2*N^2 escapes along N=t (ratio ~ t); peak = max(2*N^2 + 2*N*D + N*M, N^2 + ")


def test_other_variant_is_suggested_only_where_it_satisfies_the_bound():
    head = "of: attention.softmax | sizes: N, D, M | assert: peak in"
    assert decided(f"{head} O(N*D + N*M)").suggestions == (
        "N <= D",
        "N <= M",
        "memory: streamed",
    )
    assert "memory: streamed" not in decided(f"{head} O(N^2)").suggestions


@pytest.fixture
def registered():
    before = set(programs())
    yield
    for name in set(programs()) - before:
        del programs()[name]


@pytest.mark.usefixtures("registered")
def test_operation_that_nobody_can_count_is_inconclusive():
    register("demo.roots", lambda x: torch.linalg.eigvals(x), lambda n: (torch.empty(n, n, device="meta"),))
    with pytest.raises(Undecided, match="aten"):
        decided("of: demo.roots | sizes: n | assert: cost in O(n^3)")


@pytest.mark.usefixtures("registered")
def test_counter_that_is_no_polynomial_is_inconclusive():
    register_counter("demo.doubling", lambda n: 2**n)
    with pytest.raises(Undecided, match="no polynomial of degree 4 in n"):
        decided("of: demo.doubling | sizes: n | assert: count in O(n)")


def test_percent_keeps_the_first_digit_that_says_something():
    assert percent(Fraction(1000001), Fraction(1000000)) == "0.0001%"
    assert percent(Fraction(9), Fraction(-10)) == "190%"
    assert percent(Fraction(7), Fraction(7)) == "0%"


def test_elementwise_results_are_a_quantity() -> None:
    exact = decide(parse("of: attention.softmax\nsizes: N, D, M\nassert: elementwise == 2*N^2"))
    assert exact is not None
    assert (exact.verdict, exact.detail) == ("holds", "2*N^2")
    less = "assert: elementwise(attention.softmax) <= cost(attention.softmax)"
    order = decide(parse(f"sizes: N, D, M\nunit: mac\n{less}"))
    assert order is not None
    assert order.verdict == "holds"
