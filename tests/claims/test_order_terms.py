"""Orders in max-plus: logarithms, exponentials, choose, minima in assumptions, differences inside maxima."""

from contextlib import suppress

import pytest

from likewise.claims import check
from likewise.claims.language.parser import parse
from likewise.claims.smt.orders import decide, proved
from likewise.claims.verdict import Undecided

# sizes, assumption, statement, verdict: every verdict was worked out by hand
ORDERS = (
    ("N", "", "N in O(N*log(N + 1))", "holds"),
    ("N", "", "N*log(N + 1) in O(N)", "refuted"),
    ("N", "", "N in O(2^N)", "holds"),
    ("N", "", "2^N in O(N^10)", "refuted"),
    ("N", "", "choose(N, 2) in O(N^2)", "holds"),
    ("N", "", "choose(N, 3) in O(N^2)", "refuted"),
    ("N, D", "min(N, D) == 1", "N^2 in O(D)", "refuted"),
    ("N", "", "N*log(N) in O(N^2)", "holds"),
    ("N", "", "N in O(N*log(N))", "refuted"),
    ("N", "N >= 2", "N in O(N*log(N))", "holds"),
    ("N", "", "N*log(N) in Theta(N*log(N))", "holds"),
    ("N", "", "3^N in O(2^N)", "refuted"),
    ("N", "", "2^N in O(3^N)", "holds"),
    ("N", "", "4^N in Theta(2^(2*N))", "holds"),
    ("N", "", "2^(2*N) in O(2^N)", "refuted"),
    ("N", "", "2^(N + 1) in O(2^N)", "holds"),
    ("N, M", "N <= M", "2^N in O(2^M)", "holds"),
    ("N, M", "", "2^N in O(2^M)", "refuted"),
    ("N, M", "N <= M", "log(N + 1) in O(log(M + 1))", "holds"),
    ("N, M", "", "log(N*M) in O(log(N + 1) + log(M + 1))", "holds"),
    ("N, M", "", "log(N + 1)*log(M + 1) in O(log(N + 1) + log(M + 1))", "refuted"),
    ("N, D", "", "max(N - D, 1) in O(N)", "holds"),
    ("N, D", "", "max(N - D, 1) in Theta(N)", "refuted"),
    ("N, D", "N >= 2*D", "max(N - D, 0) in Theta(N)", "holds"),
    ("N, D", "", "N*D in O(max(N, D)^2)", "holds"),
    ("N, D", "min(N, D) >= 3", "N*D - N in Omega(N*D)", "holds"),
    ("N, D", "", "max(N, D) in O(min(N, D))", "refuted"),
    ("N, D", "N <= D", "max(N, D) in O(D)", "holds"),
    ("N", "", "choose(N, 2) in Theta(N^2)", "refuted"),
    ("N", "N >= 2", "choose(N, 2) in Theta(N^2)", "holds"),
    ("N", "", "log(N)^5 in O(N)", "holds"),
    ("N", "", "sqrt(N)*log(N) in O(N)", "holds"),
    ("N", "", "N in O(sqrt(N)*log(N + 1))", "refuted"),
    ("N", "", "exp(N) in O(2^N)", "refuted"),
    ("N", "", "2^N in O(exp(N))", "holds"),
    ("N, D", "", "abs(N - D) in O(N + D)", "holds"),
    ("N, D", "", "abs(N - D) in Omega(N + D)", "refuted"),
    ("N", "", "N^2/(N + 1) in Theta(N)", "holds"),
    ("N", "", "(N^2 + 1)/(N + 1) in O(N)", "holds"),
    ("N", "", "N^2/(N + 1) in O(1)", "refuted"),
    ("N", "", "factorial(N) in O(N^N)", "holds"),
    ("N", "", "N^N in O(factorial(N))", "refuted"),
    ("N", "", "log(factorial(N)) in Theta(N*log(N))", "holds"),
    ("N", "", "log(factorial(N)) in O(N)", "refuted"),
    ("N", "", "choose(2*N, N)*sqrt(N) in Theta(4^N)", "holds"),
    ("N", "", "4^N in O(choose(2*N, N))", "refuted"),
    ("N", "", "factorial(N + 1) in O(N*factorial(N))", "holds"),
    ("N", "", "factorial(2*N) in O(factorial(N)^2)", "refuted"),
    ("N", "", "ceil(N/2) in Theta(N)", "holds"),
    ("N", "", "floor(N/2) in Theta(N)", "refuted"),
    ("N", "N >= 2", "floor(N/2) in Theta(N)", "holds"),
    ("N", "", "ceil(log2(N)) in Omega(1)", "refuted"),
    ("N", "", "mod(N, 7) in O(1)", "holds"),
    ("N", "", "N*sin(N) in O(N)", "holds"),
    ("N", "", "log(N) in O(log(N)^2)", "holds"),
    ("N, D", "", "D + N in O(N*log(N) + D)", "holds"),
    ("N", "", "N^log(N) in O(2^N)", "holds"),
    ("N", "", "2^sqrt(N) in O(N^log(N))", "refuted"),
    ("N", "", "3^log(N) in O(N)", "refuted"),
    ("N", "", "N^100 in O(1.01^N)", "holds"),
    ("N", "", "1.01^N in O(N^100)", "refuted"),
    ("N", "", "sum(i in 1..N, 1/i) in Theta(1 + log(N))", "holds"),
    ("N", "", "sum(i in 1..N, 1/i) in O(1)", "refuted"),
    ("N", "", "sum(i in 1..N, 1/i) in O(log(N))", "refuted"),
    ("N", "", "sum(i in 1..N, i*log(i)) in Theta(N^2*log(N))", "holds"),
    ("N", "", "sum(i in 1..N, 1/sqrt(i)) in Theta(sqrt(N))", "holds"),
    ("N", "", "sum(i in 1..N, 1/i^2) in Theta(1)", "holds"),
    ("N", "", "sum(i in 1..N, 2^i) in O(2^N)", "holds"),
    ("N, D", "", "sum(i in 1..N, D/i) in O(D)", "refuted"),
)


def claim(sizes: str, assumption: str, statement: str) -> str:
    return f"sizes: {sizes}\n" + (f"assume: {assumption}\n" if assumption else "") + f"assert: {statement}"


@pytest.mark.parametrize(("sizes", "assumption", "statement", "verdict"), ORDERS)
def test_orders_with_logarithms_exponentials_and_differences(
    sizes: str, assumption: str, statement: str, verdict: str
) -> None:
    found = decide(parse(claim(sizes, assumption, statement)))
    assert found is not None
    assert found.verdict == verdict


@pytest.mark.parametrize(
    ("sizes", "assumption", "statement"),
    [
        ("N", "", "log(N + 1) in O(1)"),
        ("N, D", "N <= D^2", "N in O(D)"),
        ("N, D", "max(N, D) >= 3", "N*D - N in Omega(N*D)"),
        ("N, M", "N <= 2*M", "2^N in O(2^M)"),
        ("N", "", "N^2 - 2*N in Omega(N^2)"),
    ],
)
def test_what_is_false_or_not_seen_is_not_proved(sizes: str, assumption: str, statement: str) -> None:
    stated = parse(claim(sizes, assumption, statement))
    with suppress(Undecided):
        assert not proved(stated)


def test_judge_and_engine_agree_on_a_ray_with_a_logarithm() -> None:
    verdict = check("sizes: N\nassert: N*log(N + 1) in O(N)")
    assert (verdict.verdict, verdict.witness) == ("refuted", (("N", "t"),))


def test_whole_numbers_of_a_long_range_are_tried_in_a_second() -> None:
    verdict = check("given: n in 1..1000\nassert: n^2 != 15129")
    assert (verdict.verdict, verdict.witness) == ("refuted", (("n", "123"),))
