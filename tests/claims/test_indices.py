"""Index notation: equations of arrays at every size that other normal forms leave open, and false ones like them."""

import pytest

from likewise.claims.algebra import equations
from likewise.claims.algebra.questions import question
from likewise.claims.engines import decide
from likewise.claims.language.parser import parse
from likewise.claims.spelling import spelled
from likewise.claims.verdict import Undecided

ROWS = """
T given: x in R^(N, D) | assert: softmax(x) @ ones(D) == ones(N)
T given: u, v in R^n | assert: (I(n) + outer(u, v)) @ ((1 + dot(u, v))*I(n) - outer(u, v)) == (1 + dot(u, v))*I(n)
T given: x in R^(N, D) | assert: (I(N) - ones(N, N)/N) @ x == x - (ones(N) @ x)/N
T given: x in R^N | assert: sum(i in 1..N, j in 1..N, (x[i] - x[j])^2) == 2*N*sqnorm(x) - 2*sum(x)^2
T given: Q in R^(N, D) | assert: sum(i in 1..N, outer(Q[i], Q[i])) == Q' @ Q
T given: A in R^(n, n) | assert: mean(A) == mean(i in 1..n, mean(A[i]))
T given: x[b, n, d] | assert: transpose(transpose(x, 1, 3), 1, 3) == x
T given: x in R^D | assert: grad(x - mean(x), x) == I(D) - ones(D, D)/D
T given: a in R^(N,M); b in R^M | assert: (a + b)[1] == a[1] + b
T given: a in R^(N,M); b in R^(1,M) | assert: sum(a*b) == sum(a @ b')
T given: a in R^(N,1); b in R^N | assert: sum(a + b) == N*sum(a) + N*sum(b)
T given: a in R^(N,1); b in R^N | assert: sum(a*b) == sum(a)*sum(b)
T given: a in R^(N,N); b in R^N | assert: a*b == a*outer(ones(N), b)
T given: a in R^(N,M) | assert: mean(a') == mean(a)
T given: a in R^(N,M); b in R^M | assert: a*b == b*a
T given: x in R^D | assert: log(softmax(x)) == x - log(sum(exp(x)))
T given: s, V in R^N | assert: (softmax(s) @ V)*sum(exp(s)) == sum(i in 1..N, exp(s[i])*V[i])
T given: x, y in R^D | assert: -sum(softmax(x)*log(softmax(x))) == log(sum(exp(x))) - dot(softmax(x), x)
T given: A in R^(n,m); B in R^(m,k); C in R^(k,n) | assert: tr(A @ B @ C) == tr(C @ A @ B)
T given: A in R^(n,m); B in R^(n,m) | assert: tr(A' @ B) == sum(A*B)
T given: A, B, C in R^(n,n) | assert: A @ (B + C) - A @ B == A @ C
T given: x in R^(N,D) | assert: grad(sqnorm(x), x) == 2*x
T given: z in R^K | assert: grad(softmax(z), z) == I(K)*softmax(z) - outer(softmax(z), softmax(z))
T given: X in R^(N,D); w in R^D; y in R^N | assert: grad(sqnorm(X @ w - y), w) == 2*X' @ X @ w - 2*X' @ y
T given: A in R^(n,n); x in R^n | assert: grad(dot(x, A @ x), x) == (A + A') @ x
T given: x in R^D; g, b in R^D | y = (x - mean(x)) | assert: sum(y) == 0
T given: Q, K in R^(N,D); V in R^(N,M) | assert: softmax(Q @ K')[1] @ V == (softmax(Q @ K') @ V)[1]
T given: x in R^(B,N,D); W in R^(D,M) | assert: sum(x @ W) == sum(einsum("bnd,dm->bnm", x, W))
T given: x in R^D | assert: sigmoid(x) + sigmoid(-x) == ones(D)
T given: x in R^D | assert: tanh(x) == 2*sigmoid(2*x) - 1
T given: x in R^D | assert: norm(x)^2 == sqnorm(x)
T given: x in R^D | assert: norm(3*x) == 3*norm(x)
T given: a in R^N; A in R^(N,M) | assert: a @ A == A' @ a
T given: x in R^(N,D) | assert: softmax(x + 1) == softmax(x)
T given: x in R^(N,D); c in R^(N,1) | assert: softmax(x + c) == softmax(x)
T given: X in R^(N,D) | assert: sum(i in 1..N, sqnorm(X[i])) == sqnorm(X)
T given: X in R^(N,D) | assert: mean(i in 1..N, X[i]) == (ones(N) @ X)/N
T given: X in R^(N,D) | assert: sum(i in 1..N, j in 1..N, sqnorm(X[i] - X[j])) == 2*N*sqnorm(X) - 2*sqnorm(ones(N) @ X)
T given: W in R^(M,D); x in R^D | assert: grad(sum(W @ x), W) == outer(ones(M), x)
T given: W in R^(M,D); x in R^D; y in R^M | assert: grad(sqnorm(W @ x - y), W) == 2*outer(W @ x - y, x)
T given: x[b,t,d] | assert: x + 0 == x
F given: x in R^(N, D) | assert: ones(N) @ softmax(x) == ones(D)
F given: Q in R^(N, D) | assert: sum(i in 1..N, outer(Q[i], Q[i])) == Q @ Q'
F given: a in R^(N,M); b in R^M | assert: a*b == a + b
F given: a in R^(N,N); b in R^N | assert: a*b == a*outer(b, ones(N))
F given: a in R^(N,1); b in R^N | assert: sum(a + b) == sum(a) + sum(b)
F given: A, B, C in R^(n,n) | assert: tr(A @ B @ C) == tr(A @ C @ B)
F given: x in R^D | assert: log(softmax(x)) == x - sum(exp(x))
F given: x in R^(N,D); c in R^D | assert: softmax(x + c) == softmax(x)
F given: z in R^K | assert: grad(softmax(z), z) == I(K)*softmax(z)
F given: x in R^D | assert: x/norm(x) == x/sqrt(sum(x)^2)
F given: x in R^(N,D) | assert: x/x == ones(N,D)
F given: x in R^D | assert: norm(x - mean(x))^2 == sqnorm(x) - mean(x)^2
F given: A in R^(n,n) | assert: A @ A' == A' @ A
F given: x in R^N | assert: sum(i in 1..N, j in 1..N, (x[i] - x[j])^2) == N*sqnorm(x) - 2*sum(x)^2
F given: X in R^(N,D) | assert: sum(i in 1..D, sqnorm(X[i])) == sqnorm(X)
F given: x in R^D | assert: sqrt(x)*sqrt(x) == x
"""


@pytest.mark.parametrize("row", ROWS.strip().splitlines())
def test_normal_forms_are_equal_only_where_the_sides_are(row: str) -> None:
    claim = spelled(parse(row[2:].replace(" | ", "\n")))
    asked = question(claim)
    assert asked is not None
    try:
        found = equations.equal(asked)
    except Undecided:
        found = None
    if row in UNDEFINED:
        assert found
        assert decide(claim).verdict == "refuted"
        return
    assert bool(found) is row.startswith("T")


UNDEFINED = {  # the same where both sides are defined, which is looked at apart
    "F given: x in R^(N,D) | assert: x/x == ones(N,D)",
    "F given: x in R^D | assert: sqrt(x)*sqrt(x) == x",
}


@pytest.mark.parametrize(
    "text",
    [
        "given: x in R^N | assert: sum(i in 1..N, x[i]) == sum(i in 1..M, x[i])",
        "given: X in R^(N, D) | assert: sum(i in 1..N, X[i, i]) == sum(i in 1..D, X[i, i])",
        "given: x in R^D | assert: grad(sqrt(x)^2, x) == I(D)",
        "given: x in R^D | assert: grad(norm(x), x) == x/norm(x) + 0*log(x)",
        "given: x in R^D | assert: norm(x)/norm(x) == 1",
        "given: x in R^D | assert: sqrt(sum(x)^2) == sum(x)",
        "given: x in R^D | assert: log(x^2) == 2*log(x)",
        "given: x in R^D | assert: sqrt(prod(x)^2) == prod(x)",
    ],
)
def test_what_is_undefined_or_of_another_length_is_not_proved(text: str) -> None:
    assert decide(parse(text.replace(" | ", "\n"))).verdict != "holds"
