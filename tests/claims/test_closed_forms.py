"""Expectations and probabilities with a closed form of their own; the numbers were computed by mpmath's quadrature."""

import pytest

from likewise.claims.engines import decide
from likewise.claims.language.parser import parse

TRUE = [
    "u ~ U(0, 1)|E[log(u)] == -1",
    "u ~ U(0, 1)|E[u^(-1/2)] == 2",
    "u ~ U(0, 2)|E[u^2*sqrt(u)] == 1.6162440712835 within 1e-9",
    "u ~ U(0, 1)|E[1/(1 + u)] == log(2)",
    "u ~ U(0, 3)|E[u*log(2*u + 1)] == 2.337785634 within 1e-6",
    "u ~ U(0, 1)|E[floor(10*u)] == 4.5",
    "x ~ N(0, 1)|E[exp(x^2/4)] == sqrt(2)",
    "x ~ N(1, 2)|E[x*exp(-x^2/4)] == 0.3120097721 within 1e-6",
    "x, y ~ N(0, 1)|E[exp(x*y/2)] == 2/sqrt(3)",
    "x ~ N(0, 1)|E[x*sign(x)] == sqrt(2/pi)",
    "x ~ N(0, 3)|E[sigmoid(2*x)] == 1/2",
    "x ~ N(0, 1)|E[tanh(x)] == 0",
    "w ~ N(0, 2*I(3))|E[norm(w)] == 4/sqrt(pi)",
    "x, y, z ~ N(0, 1)|P[x^2 + y^2 + z^2 <= 1/2] == 0.081108588345 within 1e-9",
    "x, y ~ N(0, 1)|P[x*y > 0] == 1/2",
    "x ~ N(-2, 1); u ~ U(-1, 4)|P[x*u > 0] == 0.2136501 within 1e-6",
    "u, v ~ U(0, 1)|P[u*v <= 1/2] == 1/2 + log(2)/2",
    "x ~ Exp(1); y ~ Exp(2)|P[x < y] == 1/3",
    "x ~ Exp(1); y ~ Exp(2)|E[max(x, y)] == 7/6",
    "t in R; u ~ U(0, t)|P[u < t/2] == 1/2|t > 0",
    "s in R; x ~ N(0, s^2)|P[x > 0] == 1/2|s != 0",
    "t in R; u ~ U(0, 1)|P[u <= t] == min(max(t, 0), 1)",
    "k in 1..9; u ~ U(0, 1)|E[u^k] == 1/(k + 1)",
    "x ~ N(0, 1)|P[x > 6] <= 1e-9",
]
FALSE = [
    "u ~ U(0, 1)|E[1/(1 + u)] == 2/3",
    "x ~ N(0, 1)|E[exp(x^2/4)] <= 1.4",
    "w ~ N(0, I(D))|E[norm(w)] == sqrt(D)",
    "w ~ N(0, 3*I(4))|E[norm(w)] <= 3.25",
    "x, y, z ~ N(0, 2)|P[x^2 + y^2 + z^2 <= 3/2] == 0.149 within 0.001",
    "x ~ N(0, 1); u ~ U(-1, 2)|P[x*u > 0] == 0.51 within 0.001",
    "u, v ~ U(0, 1)|P[u*v <= 1/2] == 0.85 within 0.001",
    "x ~ Exp(1); y ~ Exp(2)|P[x < y] == 2/3",
    "x, y ~ N(0, 1)|E[max(x, y)] == 1/2",
    "s in R; x ~ N(0, s^2)|P[x > 0] == 1/2",
    "x ~ N(0, 1)|E[tanh(x)^2] == 1/2",
]
OPEN = [  # a mean that does not exist, an event that is undefined for some draws, a law that depends on the variable
    "u ~ U(0, 1)|E[1/u] == 100",
    "x ~ N(0, 1)|E[exp(x^2/2)] == 3",
    "z, x ~ N(0, 1)|E[z*exp(x^2)] == 0",
    "u ~ U(-1, 1)|P[sqrt(u) > 1/2] == 3/8 within 0.02",
    "m in R; x ~ N(m, 1)|grad(E[x^2], m) == 0",
    "m in R; x ~ N(m, 1)|grad(E[x^2], m) == 2*m",
]


def verdict(text: str) -> tuple[str, str]:
    given, claim, *assumed = text.split("|")
    found = decide(parse("\n".join([f"given: {given}", *(f"assume: {each}" for each in assumed), f"assert: {claim}"])))
    assert found.grade != "disagreement", found.detail
    return found.verdict, found.detail


@pytest.mark.parametrize("text", TRUE)
def test_a_closed_form_is_proved(text: str) -> None:
    assert verdict(text)[0] == "holds"


@pytest.mark.parametrize("text", FALSE)
def test_another_value_is_refuted(text: str) -> None:
    assert verdict(text)[0] == "refuted"


@pytest.mark.parametrize("text", OPEN)
def test_what_has_no_value_is_inconclusive(text: str) -> None:
    assert verdict(text)[0] == "inconclusive"
