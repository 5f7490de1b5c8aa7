"""Orders with differences inside maxima, signs, floors, sines and logarithms of powers: larger terms prove them."""

import pytest

from likewise.claims.engines import decide
from likewise.claims.language.parser import parse

# T true, F false, V: undefined at some sizes
ROWS = """
T sizes: N | assert: max(N-3, 0) in O(N)
T sizes: N | assert: abs(N-5) in O(N)
T sizes: N | assert: (-1)^N*N in O(N)
T sizes: N | assert: N*(-1)^N + N^2 in O(N^2)
T sizes: N | assert: N/2 - floor(N/2) in O(N)
T sizes: N | assert: log(1/N) in O(log(N))
F sizes: N | assert: log(1/N) in O(1)
T sizes: N | assert: log(2^N) in O(N)
T sizes: N | assert: log(N^N) in O(N*log(N))
F sizes: N | assert: log(N^N) in O(N)
T sizes: N | assert: exp(2*log(N)) in O(N^2)
F sizes: N | assert: exp(2*log(N)) in O(N)
T sizes: N | assert: 4^log2(N) in O(N^2)
F sizes: N | assert: 4^log2(N) in O(N)
T sizes: N | assert: 2^log2(N) in O(N)
T sizes: N | assert: N*sin(N) + cos(N) in O(N)
V sizes: N | assert: sin(1/(N-1)) in O(1)
V sizes: N | assert: (-1)^(N/2) in O(1)
T sizes: N | assert: max(N - N^2, 0) in O(N^2)
T sizes: N | assert: N*max(0,3-N) in O(N^2)
T sizes: N | assert: min(N, -N^2) in O(N^2)
F sizes: N | assert: min(N, -N^2) in O(N)
T sizes: N | assert: relu(N - 7)*N in O(N^2)
F sizes: N | assert: relu(N - 7)*N in O(N)
F sizes: N | assert: max(N-3,0) in O(1)
F sizes: N | assert: abs(N-5) in O(1)
T sizes: N, D | assert: max(N-D,1) in O(N)
T sizes: N, D | assume: N <= 2*D | assert: N*max(N-D,0) in O(D*N)
F sizes: N, D | assume: N <= D^2 | assert: max(N-D,0) in O(D)
T sizes: N, D, M | assert: max(N - D, M) in O(N + D + M)
T sizes: N, D | assume: D <= N | assert: abs(N-D) in O(N)
F sizes: N, D | assume: D <= N | assert: abs(N-D) in O(1)
T sizes: N, D | assert: sign(N-D)*N in O(N)
T sizes: N, D | assert: floor(N/D) in O(N)
T sizes: N, D | assert: floor(N/D)*D in O(N)
T sizes: N, D | assert: N*(-1)^D in O(N)
T sizes: N | assert: N + max(N-3,0) in Theta(N)
T sizes: N | assert: N^2 in Omega(N*max(N-3,0))
F sizes: N | assert: max(N-3,0) in Theta(N)
"""
VERDICT = {"T": "holds", "F": "refuted", "V": "inconclusive"}


@pytest.mark.parametrize("row", ROWS.strip().splitlines())
def test_orders_by_larger_terms(row: str) -> None:
    found = decide(parse(row[2:].replace(" | ", "\n")))
    assert found.verdict == VERDICT[row[0]], found
