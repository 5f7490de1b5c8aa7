"""Counterexamples that need long vectors under an assumption, or long sums; and a search that ends."""

import time

import pytest

from likewise.claims.chance import bounds
from likewise.claims.engines import decide
from likewise.claims.language.parser import parse


@pytest.mark.parametrize(
    "text",
    [
        "sizes: N | assert: sum(i in 1..N, 1/i) <= 5",
        "sizes: N | assert: sum(i in 1..N, 1/sqrt(i)) <= 25",
        "given: x in R^D | assume: min(x) >= 0; sum(x) == 1 | assert: sqnorm(x) > 1/12",
        "given: p in R^D | assume: min(p) > 0; sum(p) == 1 | assert: -sum(p*log(p)) <= 2",
        "given: x, y in R^D | assume: sqnorm(x) == 1; sqnorm(y) == 1 | assert: sum(abs(x)) <= 2.5",
    ],
)
def test_false_claims_that_only_long_vectors_or_sums_show(text: str) -> None:
    assert decide(parse(text.replace(" | ", "\n"))).verdict == "refuted"


@pytest.mark.parametrize("event", ["E[outer(w, w)] == I(D)", "E[norm(w)] <= sqrt(D)", "E[max(w)] <= 1"])
def test_bounds_of_a_claim_with_one_size_end(event: str) -> None:
    """There are few different sizes; sixty points were waited for until the worker was ended."""
    began = time.process_time()
    assert bounds.decide(parse(f"given: w ~ N(0, I(D))\nassert: {event}")) is None
    assert time.process_time() - began < 5
