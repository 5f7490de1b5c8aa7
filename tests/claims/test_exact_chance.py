"""Probabilities, and means of functions with kinks: exact values, and the judge's own by boxes and quadrature."""

import math
from fractions import Fraction
from random import Random

import pytest
from flint import arb, ctx

from likewise.claims import engines, judge
from likewise.claims.language.claim import Compares
from likewise.claims.language.parser import parse
from likewise.claims.language.tokens import Unparsed

ROWS = """
T given: z ~ N(0, std=1) | assert: E[relu(z)] == 1/sqrt(2*pi)
F given: z ~ N(0, std=1) | assert: E[relu(z)] == 0.4
T given: z ~ N(0, std=1) | assert: Var[relu(z)] == 1/2 - 1/(2*pi)
T given: s in R; x ~ N(0, s^2) | assume: s > 0 | assert: E[abs(x)] == s*sqrt(2/pi)
T given: x, y ~ N(0, std=1) | assert: E[max(x, y)] == 1/sqrt(pi)
T given: q in R^D; w ~ N(0, I(D)) | assert: E[relu(dot(w, q))] == norm(q)/sqrt(2*pi)
F given: q in R^D; w ~ N(0, I(D)) | assert: E[relu(dot(w, q))] == norm(q)
T given: u ~ U(0, 1) | assert: P[u <= 1/4] == 1/4
F given: u ~ U(0, 1) | assert: P[u <= 1/4] == 0.26
T given: u ~ U(0, 1) | assert: P[0.2 < u < 0.5] == 0.3
T given: u ~ U(0, 1) | assert: P[u^2 < 1/4] == 1/2
F given: u ~ U(0, 1) | assert: P[u < 1e-30] == 0
T given: u ~ U(0, 1) | assert: P[1 + u/10^20 > 1] == 1
T given: u, v ~ U(0, 1) | assert: P[u + v < 1] == 1/2
F given: u, v ~ U(0, 1) | assert: P[u < v] == 0.45
T given: u, v, w ~ U(0, 1) | assert: P[u + v + w < 1] == 1/6
T given: u, v ~ U(0, 1) | assert: P[max(u, v) < 1/2] == 1/4
F given: u, v ~ U(0, 1) | assert: P[max(u, v) < 1/2] == 1/2
T given: u, v ~ U(0, 1) | assert: P[abs(u - v) < 1/2] == 3/4
F given: u, v ~ U(0, 1) | assert: P[abs(u - v) < 1/4] == 1/2
T given: u, v ~ U(0, 1) | assert: P[1/2 < u + v <= 3/2] == 3/4
T given: u, v ~ U(0, 1) | assert: P[3/2 < u + v < 1/2] == 0
T given: u, v ~ U(0, 1) | assert: P[max(u, v) > 1/2] == 3/4
F given: u, v ~ U(0, 1) | assert: P[max(u, v) > 1/2] == 1/4
T given: x, y ~ N(0, 1) | assert: P[abs(x + y) >= 2] == 1 - erf(1)
T given: x, y ~ N(0, 0) | assert: P[0 <= x + y <= 1] == 1
T given: r, s in R; x ~ Exp(r); y ~ Exp(s) | assert: P[x < y] == r/(r + s)
T given: r, s in R; x ~ Exp(r); y ~ Exp(s) | assert: E[min(x, y)] == 1/(r + s)
F given: r, s in R; x ~ Exp(r); y ~ Exp(s) | assert: E[max(x, y)] == 1/r + 1/s
F given: a, b in R; u ~ U(a, b) | assert: E[u^2] == (b^3 - a^3)/(3*(b - a))
T given: p in R; b ~ Bernoulli(p) | assert: E[b] <= 1
T given: u, v ~ U(0, 1) | assert: E[max(u, v)] == 2/3
F given: u, v ~ U(0, 1) | assert: E[max(u, v)] == 1/2
T given: u, v ~ U(0, 1) | assert: E[abs(u - v)] == 1/3
T given: u ~ U(0, 1) | assert: E[exp(u)] == exp(1) - 1
T given: u ~ U(0, pi) | assert: E[sin(u)] == 2/pi
T given: t in R; z ~ N(0, std=1) | assert: P[z <= t] == normcdf(t)
F given: t in R; z ~ N(0, std=1) | assert: P[z > t] == normcdf(t)
T given: z ~ N(0, std=1) | assert: P[z > 1] == 0.1587 within 0.001
F given: z ~ N(0, std=1) | assert: P[z > 1] == 0.17 within 0.005
F given: z ~ N(0, std=1) | assert: P[z > 40] == 0
T given: z ~ N(0, std=1) | assert: P[z > 40] > 0
F given: z ~ N(0, std=1) | assert: P[abs(z) > 4] == 0
T given: q in R^D; w ~ N(0, I(D)) | assume: sqnorm(q) > 0 | assert: P[dot(w, q) > 0] == 1/2
F given: q in R^D; w ~ N(0, I(D)) | assert: P[dot(w, q) > 0] == 1/2
T given: x ~ Exp(2) | assert: Var[x] == 1/4
F given: x ~ Exp(2) | assert: E[x] == 2
T given: x ~ Exp(2) | assert: E[exp(x)] == 2
T given: l in R; x ~ Exp(l) | assume: l > 0 | assert: E[x] == 1/l
T given: x ~ Exp(3); t in R | assume: t >= 0 | assert: P[x > t] == exp(-3*t)
F given: x ~ Exp(3); t in R | assert: P[x > t] == exp(-3*t)
T given: p in [0, 1]; b ~ Bernoulli(p) | assert: Var[b] == p*(1 - p)
F given: p in [0, 1]; b ~ Bernoulli(p) | assert: Var[b] == p
T given: a, b ~ Bernoulli(0.5) | assert: P[a + b == 1] == 1/2
T given: b ~ Bernoulli(0.25); z ~ N(0, std=1) | assert: P[b*z > 0] == 1/8
T given: q, k in R^D | assert: 2*sum(max(q, k)) + 2*sum(min(q, k)) == 2*sum(q) + 2*sum(k)
T given: q in R^D | assert: sum(relu(2*q)) - sum(relu(-2*q)) == 2*sum(q)
F given: q in R^D | assert: 3*sum(abs(q)) == 4*sum(max(q, -q))
T given: q, k in R^D | assert: max(q, k) + min(q, k) == q + k
T given: q in R^D | assert: sum(abs(q)) >= sum(q)
F given: q in R^D | assert: sum(abs(q)) > sum(q)
"""
WITHOUT_A_MEAN = [
    "given: x ~ Exp(1) | assert: E[exp(x)] == 0",
    "given: x ~ Exp(1) | assert: E[exp(2*x)] == -1",
    "given: u ~ U(0, 1) | assert: E[1/u] == 0",
]


def rows() -> list[tuple[str, str]]:
    return [(line[0], line[2:].replace(" | ", "\n")) for line in ROWS.strip().splitlines()]


@pytest.mark.parametrize(("label", "text"), rows())
def test_labelled_rows_are_decided(label: str, text: str) -> None:
    assert engines.decide(parse(text)).verdict == {"T": "holds", "F": "refuted"}[label]


@pytest.mark.parametrize("text", WITHOUT_A_MEAN)
def test_nothing_is_made_up_where_there_is_no_mean(text: str) -> None:
    assert engines.decide(parse(text.replace(" | ", "\n"))).verdict == "inconclusive"


def judged(given: str, expression: str) -> arb:
    """The judge's value of an expression without free names."""
    ctx.prec = 128
    claim = parse(f"given: {given}\nassert: {expression} == 0")
    assert isinstance(claim.relation, Compares)
    return arb(judge.place(claim, {}, {}).value(claim.relation.chain.terms[0]).array.reshape(-1)[0])


@pytest.mark.parametrize(
    ("given", "expression", "value"),
    [
        ("z ~ N(0, std=1)", "E[relu(z)]", 1 / math.sqrt(2 * math.pi)),
        ("z ~ N(1, 4)", "E[abs(z)]", 2 * math.sqrt(2 / math.pi) * math.exp(-1 / 8) + math.erf(1 / math.sqrt(8))),
        ("z ~ N(0, std=1)", "E[sigmoid(z)]", 0.5),
        ("z ~ N(0, std=1)", "E[z*tanh(z)]", 0.605705509602159),
        ("x ~ Exp(2)", "E[sqrt(x + 1)]", 1.21068461464403),
        ("u ~ U(0, 1)", "E[exp(u^2)]", 1.4626517459),
        ("z ~ N(0, std=1)", "P[z^3 - z > 1]", 0.5 * math.erfc(1.3247179572447460 / math.sqrt(2))),
        ("x ~ Exp(1)", "P[sin(x) > 2]", 0.0),
        ("u, v ~ U(0, 1)", "E[max(u, v)]", 2 / 3),
    ],
)
def test_the_judge_integrates_with_bounds(given: str, expression: str, value: float) -> None:
    found = judged(given, expression)
    assert abs(float(found.mid()) - value) <= float(found.rad()) + 1e-9
    assert float(found.rad()) < 0.05


@pytest.mark.slow
def test_engine_and_judge_agree_on_generated_events() -> None:
    """Piecewise linear and quadratic events of one number: exact probabilities lie in the judge's balls."""
    draw, looked = Random(0), 0
    for _ in range(60):
        law = draw.choice(["U(-1, 2)", "N(1, 4)", "Exp(1/2)", "N(0, 1)"])
        a, b, c = (Fraction(draw.randint(-6, 6), draw.randint(1, 4)) for _ in range(3))
        side = draw.choice(
            [f"({a})*x + ({b})", f"abs(x - ({a}))", f"x^2 + ({a})*x", f"max(x, ({a})*x)", f"relu(({a})*x)"]
        )
        event = f"P[{side} {draw.choice(['<', '>', '<='])} {c}]"
        found = judged(f"x ~ {law}", event)
        middle = Fraction(float(found.mid())).limit_denominator(10**9)
        room = Fraction(math.ceil(float(found.rad()) * 10**9) + 10, 10**9)
        text = f"given: x ~ {law}\nassert: {middle - room} <= {event} <= {middle + room}"
        verdict = engines.found_by_engines(parse(text)).verdict
        assert verdict != "refuted", text
        looked += verdict == "holds"
    assert looked >= 40


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("given: x ~ Exp(0) | assert: E[x] == 1", "rate"),
        ("given: x ~ Bernoulli(2) | assert: E[x] == 1", "probability"),
        ("given: x ~ Poisson(2) | assert: E[x] == 2", "unknown law"),
    ],
)
def test_laws_that_do_not_exist_are_malformed(text: str, reason: str) -> None:
    with pytest.raises(Unparsed, match=reason):
        parse(text.replace(" | ", "\n"))
