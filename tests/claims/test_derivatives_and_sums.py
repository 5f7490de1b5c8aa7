"""pi, elementary functions, sums over an index and derivatives: labelled claims, and attacks on their names."""

import pytest

from likewise.claims import engines
from likewise.claims.language.parser import parse
from likewise.claims.language.tokens import Unparsed
from likewise.claims.spelling import spelled

ROWS = """
T given: x in R | assert: grad(x^3, x) == 3*x^2
F given: x in R | assert: grad(x^3, x) == x^2
T given: x in R^D | assert: grad(sqnorm(x), x) == 2*x
F given: x in R^D | assert: grad(dot(x, x), x) == x
T given: q, k in R^D | assert: grad(dot(q, k)/sqrt(D), q) == k/sqrt(D)
T given: x in R^D | assert: grad(log(sum(exp(x))), x) == softmax(x)
T given: q, k in R^D | assert: grad(exp(-sqnorm(q - k)/2), q) == (k - q)*exp(-sqnorm(q - k)/2)
T given: W in R^(D, D); x in R^D | assert: grad(dot(x, W @ x), x) == (W + W') @ x
F given: W in R^(D, D); x in R^D | assert: grad(dot(x, W @ x), x) == 2*W @ x
T given: A in R^(N, D); x in R^D | assert: grad(A @ x, x) == A
T given: w in R^D; X in R^(N, D); y in R^N | assert: grad(sqnorm(X @ w - y), w) == 2*X' @ (X @ w - y)
F given: w in R^D; X in R^(N, D); y in R^N | assert: grad(sqnorm(X @ w - y), w) == X' @ (X @ w - y)
T given: x in R^2 | assert: grad(softmax(x), x) == I(2)*softmax(x) - outer(softmax(x), softmax(x))
T given: x in R^D | assume: sqnorm(x) > 0 | assert: grad(norm(x), x) == x/norm(x)
T given: x in R | g(z) = grad(z^2, z) | assert: g(3) == 6
T given: x in R^D | g(z) = grad(sqnorm(z), z) | assert: g(2*x) == 4*x
T given: x, y in R | f(z) = z^2*x | g(z) = grad(f(z), z) | assert: g(x) == 2*x^2
F given: x, y in R | f(z) = z^2*x | g(z) = grad(f(z), z) | assert: g(x) == 3*x^2
T given: x in R | f(t) = t^2*x | g(x) = grad(f(x), x) | assert: g(x) == 2*x^2
T given: x in R | g(z) = grad(z^3, z) | h(z) = grad(g(z), z) | assert: h(x + 1) == 6*(x + 1)
F given: x in R | f(z) = abs(z) | g(z) = grad(f(z), z) | assert: g(x + 1) == sign(x + 1)
T given: x in R; w ~ N(0, 1) | g(t) = grad(t^3, t) | assert: E[g(w + x)] == 3 + 3*x^2
T given: x in R^D | f(t) = log(sum(exp(t))) | g(t) = grad(f(t), t) | assert: g(x + 1) == softmax(x)
T given: x in R | assert: grad(grad(x^4, x), x) == 12*x^2
T given: x in R | assert: grad(sigmoid(x), x) == sigmoid(x)*(1 - sigmoid(x))
F given: x in R | assert: grad(tanh(x), x) == 1 - tanh(x)
T given: x in R | assert: grad(normcdf(x), x) == exp(-x^2/2)/sqrt(2*pi)
T given: x in R | assert: grad(x*abs(x), x) == 2*abs(x)
F given: x in R | assert: grad(abs(x), x) == sign(x)
F given: x in R | assume: x >= 1/3 | assert: grad(abs(3*x - 1), x) == 3
T given: x in R | assume: x > 1/3 | assert: grad(abs(3*x - 1), x) == 3
T given: x in R | assume: x >= 1/3 | assert: grad(relu(3*x - 1)^2, x) == 6*(3*x - 1)
F given: x in R | assume: x^2 >= 2; x > 0 | assert: grad(abs(x^2 - 2), x) == 2*x
F given: x, y in R | assume: 3*x >= y + 1/5 | assert: grad(max(3*x, y + 1/5), y) == 0
T given: x, y in R | assume: 3*x > y + 1/5 | assert: grad(max(3*x, y + 1/5), y) == 0
F given: x in R | assert: grad((3*x - 1)^2.5, x) == 7.5*(3*x - 1)^1.5
T given: x in R | assert: grad((x^2 + 1)^(3/2), x) == 3*x*sqrt(x^2 + 1)
T given: x in R | assume: x > 0 | assert: grad(relu(x), x) == 1
F given: x in R | assert: grad(log(x), x) == 1/x
T given: x in R | assume: x > 0 | assert: grad(log(x), x) == 1/x
T given: x in R^3 | assert: grad(x[1]*x[2], x[2]) == x[1]
T given: q, k in R^D | assert: sum(i in 1..D, q[i]*k[i]) == dot(q, k)
F given: q, k in R^D | assert: sum(i in 1..D, q[i] + k[i]) == dot(q, k)
T sizes: N | assert: sum(i in 1..N, i) == N*(N + 1)/2
F sizes: N | assert: sum(i in 1..N, i) == N*(N - 1)/2
T sizes: N | assert: sum(i in 1..N, j in 1..i, 1) == N*(N + 1)/2
T sizes: N | assert: sum(i in 0..N - 1, i^3) == N^2*(N - 1)^2/4
T given: A in R^(N, D); x in R^D | assert: sum(i in 1..N, j in 1..D, A[i, j]*x[j]) == sum(A @ x)
T given: a in R^N; V in R^(N, D) | assert: sum(i in 1..N, a[i]*V[i]) == a @ V
T given: q in R^D; W in R^(R, D) | assert: sum(r in 1..R, dot(W[r], q)^2) == sqnorm(W @ q)
F given: q in R^D; W in R^(R, D) | assert: sum(r in 1..R, dot(W[r], q)) == sqnorm(W @ q)
T given: x in R^D | assert: mean(i in 1..D, x[i]) == sum(x)/D
F given: x in R^D | assert: prod(i in 1..D, x[i]) == sum(x)
T assert: prod(i in 1..5, i) == 5!
T assert: max(i in 1..4, i*(5 - i)) == 6
T assert: sum(i in 3..2, i) == 0
T given: x in R | assert: tanh(x) == 2*sigmoid(2*x) - 1
F given: x in R | assert: tanh(x) == sigmoid(2*x)
T given: x in R | assert: normcdf(-x) == 1 - normcdf(x)
T given: x in R | assert: cos(x + pi/2) == -sin(x)
F given: x in R | assert: cos(x + pi/2) == sin(x)
T assert: sin(pi/4)^2 == 1/2
F assert: pi == 3.14159
T assert: 3.14159 < pi < 3.1416
T assert: mod(-7, 3) == 2
F assert: mod(-7, 3) == -1
T assert: ceil(-7/2) == -3
T assert: log2(8) == 3
T assert: argmax([3, 9, 2]) == 2
T given: n in Z | assert: floor(n/2) <= n/2
F given: n in Z | assert: mod(n, 3) <= 1
T assert: reshape([1, 2, 3, 4], 2, 2) == [[1, 2], [3, 4]]
T given: x[b, n, h, d] | assert: transpose(x, 2, 3) has shape [b, h, n, d]
F given: x[b, n, h, d] | assert: transpose(x, 2, 3) has shape [b, n, h, d]
T given: x[b, n, d] | sizes: h, k, d = h*k | assert: reshape(x, b, n, h, k) has shape [b, n, h, k]
F given: x[b, n, d] | sizes: h, k, d = h*k | assert: reshape(x, b, n, h, h) has shape [b, n, h, h]
T given: x in R^D; W in R^(M, D) | assert: grad(sum(W @ x), x) has shape [D]
T given: D_random, x_1 in R | assert: D_random + x_1 == x_1 + D_random
"""


def rows() -> list[tuple[str, str]]:
    return [(line[0], line[2:].replace(" | ", "\n")) for line in ROWS.strip().splitlines()]


@pytest.mark.parametrize(("label", "text"), rows())
def test_labelled_rows_are_decided(label: str, text: str) -> None:
    assert engines.decide(parse(text)).verdict == {"T": "holds", "F": "refuted"}[label]


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        # an equation between variables is not put into what is differentiated
        ("given: x, y in R | assume: x == y | assert: grad(x*y, x) == 2*y", "holds"),
        ("given: x, y in R | assume: x == y | assert: grad(x*y, x) == y", "refuted"),
        ("given: x, y in R | assume: y == x^2 | assert: grad(abs(y), x) == 0", "refuted"),
        # a definition's parameter, and the body's index, are names of its own
        ("given: x, y in R | f(x) = x^2 + y | assert: grad(f(x), x) == 2*x", "refuted"),
        ("given: x in R^D | f(t) = sum(i in 1..D, x[i]*t) | assert: f(2) == sum(x)", "holds"),
        # nothing at a kink is made up, and a kink that is smoothed away is none
        ("given: x in R^D | assert: grad(sum(relu(x - 1/7)^2), x) == 2*(x - 1/7)*relu(x - 1/7)/(x - 1/7)", "holds"),
        ("given: x in R | assert: grad((x - 1/7)*abs(x - 1/7), x) == 2*(x - 1/7)^2/abs(x - 1/7)", "holds"),
        ("given: x in R | assert: grad(relu(x) - relu(-x), x) == 1", "refuted"),
        ("given: x, y in R | assert: grad(max(x, y), x) == sign(x - y)", "holds"),
        # a variable called i is no imaginary unit
        ("given: i in R; w ~ N(0, std=1) | assert: E[cos(i*w)] == exp(i^2/2)", "holds"),
    ],
)
def test_attacks_on_names_and_kinks(text: str, wrong: str) -> None:
    assert engines.decide(parse(text.replace(" | ", "\n"))).verdict != wrong


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("given: i in R | assert: sum(i in 1..3, i) == 6", "two meanings"),
        ("sizes: N | f(t) = sum(i in 1..N, t) | assert: sum(i in 1..N, f(i)) == N", "two meanings"),
        ("sizes: N | assert: sum(i in 1..N, sum(i in 1..N, i)) == N", "two meanings"),
        ("given: a in R^3 | f(x, y) = grad(dot(x, y), x[1]) | assert: f(2*a, a) == a[1]", "no variable of its own"),
        ("sizes: n | assert: grad(n^2, n) == 2*n", "by a variable"),
        ("given: pi in R | assert: pi == 3", "reserved"),
        ("assert: tanh(1, 2) == 0", "takes 1 argument"),
    ],
)
def test_names_with_two_meanings_are_malformed(text: str, reason: str) -> None:
    with pytest.raises(Unparsed, match=reason):
        parse(text.replace(" | ", "\n"))


def test_what_has_no_simpler_form_keeps_its_variable_apart() -> None:
    claim = spelled(parse("given: x, y in R\nassume: x == y\nassert: grad(abs(x)*y, x) == y"))
    assert str(claim.relation) == "grad(abs(x')*y, x' = x) == y"
