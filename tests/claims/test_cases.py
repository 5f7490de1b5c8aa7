"""A whole number from few that stands in a range, an index or a factorial: every case is decided."""

import pytest

from likewise.claims.engines import decide
from likewise.claims.language.parser import parse

# T true, F false, V: undefined somewhere, or nothing satisfies the assumptions
ROWS = """
T given: b in R; t in 1..12 | assume: 0 < b; b < 1 | assert: 1 - b^t == (1 - b)*sum(i in 1..t, b^(i - 1))
F given: b in R; t in 1..12 | assume: 0 < b; b < 1 | assert: 1 - b^t == (1 - b)*sum(i in 1..t, b^i)
T given: t in 1..9 | assert: sum(i in 1..t, i) == t*(t+1)/2
F given: t in 1..9 | assert: sum(i in 1..t, i) <= 44
T given: t in 1..8 | assert: sum(i in 1..t, i) <= 36
T given: x in R^5; k in 1..5 | assert: x[k]^2 <= sqnorm(x)
F given: x in R^5; k in 1..5 | assert: x[k] <= sum(x)
V given: x in R^5; k in 1..6 | assert: x[k]^2 <= sqnorm(x)
T given: n in 0..8 | assert: factorial(n) <= 40320
F given: n in 0..8 | assert: factorial(n) < 40320
T given: n in 0..8; k in 0..8 | assume: k <= n | assert: choose(n,k) == choose(n,n-k)
V given: n in 1..10 | assume: n > 12 | assert: sum(i in 1..n, i) == 3
T given: n in 3..6 | assume: n >= 5 | assert: sum(i in 1..n, i) >= 15
F given: n in 3..6 | assume: n >= 4 | assert: sum(i in 1..n, i) >= 15
"""
VERDICT = {"T": "holds", "F": "refuted", "V": "inconclusive"}


@pytest.mark.parametrize("row", ROWS.strip().splitlines())
def test_every_case_is_decided(row: str) -> None:
    found = decide(parse(row[2:].replace(" | ", "\n")))
    assert found.verdict == VERDICT[row[0]], found
