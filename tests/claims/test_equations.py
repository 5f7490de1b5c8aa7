"""Equations of arrays that follow from equations that are assumed, at every size, and false ones like them."""

import pytest

from likewise.claims.algebra.equations import equal
from likewise.claims.algebra.questions import question
from likewise.claims.engines import decide
from likewise.claims.language.parser import parse

ROWS = """
T given: u in R^D | assume: sqnorm(u) == 1 | assert: (I(D) - 2*outer(u, u)) @ (I(D) - 2*outer(u, u)) == I(D)
T given: u in R^D | assume: norm(u) == 2 | assert: outer(u, u) @ u == 4*u
T given: p in R^D | assume: sum(p) == 1 | assert: sum(outer(p, p)) == 1
T given: x in R^D | assume: mean(x) == 0 | assert: sqnorm(x + 1) == sqnorm(x) + D
T given: u, v in R^D | assume: dot(u, v) == 0 | assert: sqnorm(u + v) == sqnorm(u) + sqnorm(v)
T given: A in R^(n, n); x in R^n | assume: A' == -A | assert: x @ A @ x == 0
T given: A, B in R^(n, n) | assume: A == A'; B == B' | assert: (A @ B)' == B @ A
T given: A in R^(n, n) | assume: A @ A == A | assert: (I(n) - A) @ (I(n) - A) == I(n) - A
T given: A in R^(m, n); x in R^n | assume: A' @ A == I(n) | assert: sqnorm(A @ x) == sqnorm(x)
T given: A in R^(m, n); x, y in R^n | assume: A' @ A == I(n) | assert: norm(A @ x - A @ y) == norm(x - y)
T given: A in R^(n, n); x in R^n; c in R | assume: A @ x == c*x | assert: x @ A @ x == c*sqnorm(x)
F given: u in R^D | assume: sqnorm(u) == 1 | assert: (I(D) - outer(u, u)) @ (I(D) - outer(u, u)) == I(D)
F given: u in R^D | assume: norm(u) == 2 | assert: outer(u, u) @ u == 2*u
F given: A, B in R^(n, n) | assume: A == A'; B == B' | assert: (A @ B)' == A @ B
F given: A in R^(m, n); x in R^m | assume: A' @ A == I(n) | assert: sqnorm(x @ A) == sqnorm(x)
F given: A in R^(n, n) | assume: A @ A == A | assert: A' @ A == A
F given: A in R^(n, n); x, y in R^n | assume: A == A' | assert: x @ A @ y == x @ A @ x
F given: p in R^D | assume: sum(p) == 1 | assert: sqnorm(p) == 1
"""
CLAIMS = [(row[0] == "T", row[2:].replace(" | ", "\n")) for row in ROWS.strip().splitlines()]


@pytest.mark.parametrize(("true", "text"), CLAIMS)
def test_assumed_equations_are_used_for_every_size(true: bool, text: str) -> None:
    assert decide(parse(text)).verdict == ("holds" if true else "refuted")


@pytest.mark.parametrize("text", [text for true, text in CLAIMS if not true])
def test_index_notation_proves_none_that_is_false(text: str) -> None:
    asked = question(parse(text))
    assert asked is not None
    assert not equal(asked)


def test_a_symmetric_matrix_halves_a_variance() -> None:
    text = "given: A in R^(n, n); w ~ N(0, I(n))\nassume: A == A'\nassert: Var[w @ A @ w] == 2*sqnorm(A)"
    assert decide(parse(text)).verdict == "holds"
    assert decide(parse(text.replace("assume: A == A'\n", ""))).verdict == "refuted"
    assert decide(parse(text.replace("A == A'", "A == -A'"))).verdict == "refuted"
