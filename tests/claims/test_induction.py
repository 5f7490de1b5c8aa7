"""Sums, products and factorials up to a size, matrices of which only entries matter, and rearrangements."""

import pytest

from likewise.claims.engines import decide
from likewise.claims.language.parser import parse

TRUE = [
    "sizes: N|prod(i in 1..N, i) == N!",
    "sizes: N|sum(i in 0..N, 2^i) == 2^(N + 1) - 1",
    "sizes: N|sum(i in 1..N, 1/(i*(i + 1))) == N/(N + 1)",
    "sizes: N|max(i in 1..N, i) == N",
    "sizes: N|max(i in 1..N, i*(20 - i)) <= 100",
    "sizes: N|sum(i in 1..N, 1/i^2) <= 2 - 1/N",
    "sizes: N|N! >= 2^(N - 1)",
    "sizes: N|N! > 2^N|N >= 4",
    "sizes: N|sum(i in 1..N, 1/i) <= 2.1|N <= 4",
    "sizes: N|(N + 2)!/N! == (N + 1)*(N + 2)",
    "sizes: N|prod(i in 1..N, 1 + 1/i) == N + 1",
    "given: x in R^D|prod(exp(x)) == exp(sum(x))",
    "given: A in R^(N, D)|sum(softmax(A)) == N",
    "given: A in R^(N, D)|reshape(vec(A), N, D) == A",
    "given: A, B in R^(N, D)|tr(A' @ B)^2 <= sqnorm(A)*sqnorm(B)",
    "given: A, B in R^(N, D)|norm(A + B) <= norm(A) + norm(B)",
    "given: A in R^(N, D)|sum(A)^2 <= N*D*sqnorm(A)",
    "given: A in R^(N, D); x in R^D|x @ (A' @ A) @ x >= 0",
    "given: x in R^D|sqnorm([sin(x), cos(x)]) == D",
]
FALSE = [
    "sizes: N|prod(i in 1..N, i) == (N + 1)!",
    "sizes: N|sum(i in 0..N, 2^i) == 2^(N + 1)",
    "sizes: N|max(i in 1..N, i*(20 - i)) <= 99",
    "sizes: N|N! >= 2^N",
    "sizes: N|(N + 1)! == N*N!",
    "sizes: N|prod(i in 1..N, 1 - 1/i) == 1/N",
    "sizes: N|sum(i in 1..N, 1/(i - 3)) == N",
    "sizes: N|sum(i in 1..N, 1/i) <= 2|N <= 4",
    "given: A in R^(N, D); c in R|sum(softmax(A/c)) == N",
    "given: A in R^(N, D)|reshape(A', N*D) == vec(A)",
    "given: A, B in R^(N, D)|norm(A + B) <= norm(A)",
    "given: A, B in R^(N, D)|tr(A' @ B)^2 <= sqnorm(A)*sqnorm(B)/2",
]


def verdict(text: str) -> str:
    given, claim, *assumed = text.split("|")
    found = decide(parse("\n".join([given, *(f"assume: {each}" for each in assumed), f"assert: {claim}"])))
    assert found.grade != "disagreement", found.detail
    return found.verdict


@pytest.mark.parametrize("text", TRUE)
def test_a_true_claim_about_sums_or_matrices_is_proved(text: str) -> None:
    assert verdict(text) == "holds"


@pytest.mark.parametrize("text", FALSE)
def test_a_false_claim_about_sums_or_matrices_is_refuted(text: str) -> None:
    assert verdict(text) == "refuted"


def test_nothing_that_satisfies_an_assumption_about_sizes_is_no_proof() -> None:
    for text in ("sizes: N|N in O(1)|N^2 == 2", "sizes: N|sum(i in 1..N, 1/i) <= 0|N <= 4; N >= 9"):
        assert verdict(text) == "inconclusive"
