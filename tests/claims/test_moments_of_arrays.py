"""Expectations and variances of polynomials in random vectors, at every size: cumulants in index notation."""

from contextlib import suppress

import pytest

from likewise.claims.algebra.identities import averaged
from likewise.claims.engines import decide
from likewise.claims.language.parser import parse
from likewise.claims.spelling import spelled
from likewise.claims.verdict import Undecided

# T true, F false, V: the mean does not exist
ROWS = """
T given: w ~ N(0,I(D)) | assert: E[outer(w,w)] == I(D)
F given: w ~ N(0,I(D)) | assert: E[outer(w,w)] == D*I(D)
T given: r ~ Rademacher(D) | assert: E[outer(r,r)] == I(D)
F given: r ~ Rademacher(D) | assert: E[outer(r,r)] == ones(D,D)
T given: w ~ N(0,I(D)); W in R^(D,M) | assert: E[w @ W] == zeros(M)
T given: A in R^(n, n); s ~ Rademacher(n) | assert: E[dot(s, A @ s)] == tr(A)
F given: A in R^(n, n); s ~ Rademacher(n) | assert: E[dot(s, A @ s)] == sum(A)
T given: A in R^(n, n); s ~ N(0, I(n)) | assert: E[dot(s, A @ s)] == tr(A)
T given: A in R^(n, n); s ~ N(0, I(n)) | assert: Var[dot(s, A @ s)] == sqnorm(A) + tr(A @ A)
F given: A in R^(n, n); s ~ N(0, I(n)) | assert: Var[dot(s, A @ s)] == 2*sqnorm(A)
T given: x in R^D; r ~ Rademacher(D) | assert: E[dot(r,x)^4] == 3*sqnorm(x)^2 - 2*sum(x^4)
T given: x in R^D; r ~ Rademacher(D) | assert: E[r*dot(r,x)] == x
F given: x in R^D; r ~ Rademacher(D) | assert: E[r*dot(r,x)] == D*x
T given: m in R^D; s in R; w ~ N(m, s^2*I(D)) | assert: E[outer(w,w)] == outer(m,m) + s^2*I(D)
T given: m in R^D; S in R^(D,D); x ~ N(m, std=S) | assert: E[outer(x-m,x-m)] == S @ S'
F given: m in R^D; S in R^(D,D); x ~ N(m, std=S) | assert: E[outer(x-m,x-m)] == S' @ S
T given: m in R^D; S in R^(D,D); x ~ N(m, std=S) | assert: E[x] == m
T given: w, v ~ N(0,I(D)) | assert: E[outer(w,v)] == zeros(D,D)
T given: w, v ~ N(0,I(D)) | assert: E[dot(w,v)^2] == D
T given: w, v ~ N(0,I(D)) | assert: Var[dot(w,v)] == D
T given: w, v ~ N(0,I(D)) | assert: E[dot(w,v)^4] == 3*D^2 + 6*D
F given: w, v ~ N(0,I(D)) | assert: E[dot(w,v)^4] == 3*D^2
T given: u ~ U(0,1) | assert: E[u^6] == 1/7
T given: u ~ U(0,1) | assert: E[u^5] == 1/6
T given: a, b in R; u ~ U(a,b) | assert: Var[u^2] == (b-a)^2*(4*a^2+7*a*b+4*b^2)/45
T given: x ~ Exp(3) | assert: E[x^4] == 24/81
T given: p in [0,1]; b ~ Bernoulli(p) | assert: E[b^5] == p
T given: p in [0,1]; b ~ Bernoulli(p) | assert: Var[b] == p*(1-p)
F given: p in [0,1]; b ~ Bernoulli(p) | assert: Var[b] == p
T given: X in R^(N,D); w ~ N(0, I(D)) | assert: E[outer(X @ w, X @ w)] == X @ X'
T given: X in R^(N,D); w ~ N(0, I(D)) | assert: E[sqnorm(X @ w)] == sqnorm(X)
T given: X in R^(N,D); w ~ N(0, I(D)/D) | assert: E[sqnorm(X @ w)] == sqnorm(X)/D
F given: X in R^(N,D); w ~ N(0, I(D)/D) | assert: E[sqnorm(X @ w)] == sqnorm(X)
T given: w ~ N(0, I(D)) | assert: E[w] == zeros(D)
T given: w ~ N(0, I(D)) | assert: Var[w] == ones(D)
T given: w ~ N(0, I(D)) | assert: E[w - mean(w)] == zeros(D)
T given: w ~ N(0, I(D)) | assert: E[sum((w - mean(w))^2)] == D - 1
F given: w ~ N(0, I(D)) | assert: E[sum((w - mean(w))^2)] == D
T given: w ~ N(0, I(D)) | assert: E[w^2*sum(w)] == zeros(D)
T given: q, k in R^D; w ~ N(0, I(D)) | assert: E[dot(w,q)*dot(w,k)] == dot(q,k)
T given: q, k in R^D; r~Rademacher(D) | assert: Var[(r @ q)*(r @ k)] == sqnorm(q)*sqnorm(k) + (q @ k)^2 - 2*sqnorm(q*k)
F given: q, k in R^D; r ~ Rademacher(D) | assert: Var[dot(r,q)*dot(r,k)] == sqnorm(q)*sqnorm(k) + dot(q,k)^2
T given: r ~ Rademacher(D) | assert: E[sum(r)^6] == 15*D^3 - 30*D^2 + 16*D
T given: v in R; x ~ N(0, v) | assert: E[x^4] == 3*v^2
T given: v in R; x ~ N(0, std=v) | assert: E[x^4] == 3*v^4
V given: w ~ N(0,I(D)) | assert: E[1/sum(w)] == 0
"""
VERDICT = {"T": "holds", "F": "refuted", "V": "inconclusive"}


@pytest.mark.parametrize("row", ROWS.strip().splitlines())
def test_moments_of_arrays(row: str) -> None:
    claim = parse(row[2:].replace(" | ", "\n"))
    assert decide(claim).verdict == VERDICT[row[0]]
    if row[0] != "T":
        with suppress(Undecided):
            assert averaged(spelled(claim)) is None
