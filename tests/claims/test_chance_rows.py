"""Rows of the catalogue about expectations: each a claim with its verdict and the engine that decides it."""

import pytest

from likewise.claims import engines
from likewise.claims.language.parser import parse

LOGITS = "given: mu in R^D; s in R; q, k ~ N(mu, s^2*I(D))\n"
STANDARD = "given: t in R; q, k ~ N(0, I(D))\n"
FEATURES = """given: q, k in R^D; w ~ N(0, {law})
phi(x) = [sin(dot(w, x)), cos(dot(w, x))]
gauss = exp(-sqnorm(q - k)/(2*sqrt(D)))
sim = exp(dot(q, k)/sqrt(D))
"""
RIGHT, WRONG = FEATURES.format(law="I(D)/sqrt(D)"), FEATURES.format(law="sqrt(D)*I(D)")
FOUR = """given: q, k in R^D; w1, w2, w3, w4 ~ N(0, I(D)/sqrt(D))
kernel(w, x) = cos(dot(w, q - x))
estimate(x) = (kernel(w1, x) + kernel(w2, x) + kernel(w3, x) + kernel(w4, x))/4
kappa = exp(-sqnorm(q - k)/(2*sqrt(D)))
"""
ROWS = [
    (1, LOGITS + "assert: E[dot(q, k)] == sqnorm(mu)", "holds", "gaussian"),
    (
        2,
        "given: a, b, mu in R^D; s in R; q, k ~ N(mu, s^2*I(D))\n"
        "assert: E[dot(a, q*k)*dot(b, q*k)] - E[dot(a, q*k)]*E[dot(b, q*k)]"
        " == s^4*dot(a, b) + 2*s^2*sum(a*b*mu*mu)",
        "holds",
        "gaussian",
    ),
    (3, LOGITS + "assume: mu == 0; s == 1\nassert: Var[dot(q, k)] == D", "holds", "gaussian"),
    (3, LOGITS + "assert: Var[dot(q, k)] == D", "refuted", "gaussian"),
    (4, STANDARD + "assert: E[t*dot(q, k)] == 0", "holds", "gaussian"),
    (4, STANDARD + "assume: t == 1/sqrt(D)\nassert: Var[t*dot(q, k)] == 1", "holds", "gaussian"),
    (4, STANDARD + "assert: Var[t*dot(q, k)] - 1 == (t*sqrt(D) - 1)*(t*sqrt(D) + 1)", "holds", "gaussian"),
    (5, "given: q, k ~ N(0, I(d))\nassert: Var[dot(q, k)/sqrt(d)] == 1", "holds", "gaussian"),
    (52, FOUR + "assert: P[estimate(k) > 0] == 1", "refuted", "bounds or sampling"),
    (95, WRONG + "assert: E[dot(phi(q), phi(k))] == gauss", "refuted", "gaussian"),
    (96, WRONG.replace("N(0, ", "N(0, std=") + "assert: E[dot(phi(q), phi(k))] == gauss", "refuted", "gaussian"),
    (99, WRONG + "assert: E[dot(phi(q), phi(k))] == gauss within 10%", "refuted", "gaussian"),
    (99, RIGHT + "assert: E[dot(phi(q), phi(k))] == gauss", "holds", "gaussian"),
    (
        100,
        RIGHT + "psi(x) = exp(sqnorm(x)/(4*sqrt(D)))*phi(x)\nassert: E[dot(psi(q), psi(k))] == sim",
        "refuted",
        "gaussian",
    ),
    (
        101,
        RIGHT + "psi(x) = exp(sqnorm(x)/(2*sqrt(D)))*phi(x)\nassert: E[dot(psi(q), psi(k))] == sim",
        "holds",
        "gaussian",
    ),
    (
        102,
        RIGHT + "psi(x) = exp(-sqnorm(x)/(2*sqrt(D)))*phi(x)\nassert: E[dot(psi(q), psi(k))] == sim",
        "refuted",
        "gaussian",
    ),
    (105, FOUR + "assert: E[estimate(k)] == kappa", "holds", "gaussian"),
    (105, FOUR + "assert: Var[estimate(k)] == (1 - kappa^2)^2/(2*4)", "holds", "gaussian"),
    (
        106,
        "of: demo.positive_features_r4\nbounded: [-0.234, 0.995]\nassert: E[out] == 0.4202 within 0.002",
        "refuted",
        "sampling",
    ),
    (
        107,
        FOUR.replace("q, k in", "q, k, l in")
        + "psi(x) = exp(sqnorm(x)/(2*sqrt(D)))*estimate(x)\nassert: P[psi(k) + psi(l) > 0] == 1",
        "refuted",
        "sampling",
    ),
]


@pytest.mark.parametrize(("row", "text", "verdict", "engine"), ROWS, ids=[f"{row}-{v}" for row, _, v, _ in ROWS])
def test_row_has_the_verdict_of_the_catalogue(row: int, text: str, verdict: str, engine: str) -> None:
    finding = engines.decide(parse(text, id=f"row-{row}"))
    assert finding.verdict == verdict, finding.detail
    assert finding.engine in engine.split(" or ")  # on a busy machine time may be over before bounds are found
