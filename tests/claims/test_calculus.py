"""Inequalities in one number: sharp constants, sides that touch, tails, and counterexamples that are no fractions."""

import pytest

from likewise.claims.algebra import calculus
from likewise.claims.engines import decide
from likewise.claims.language.parser import parse
from likewise.claims.spelling import spelled

# T true, F false, V: nothing satisfies the assumptions
ROWS = """
T given: x in R | assert: x*exp(-x) <= 37/100
F given: x in R | assert: x*exp(-x) < 367879/1000000
T given: x in R | assert: sin(x)+cos(x) <= 1414214/1000000
F given: x in R | assert: x/(1+x^2) <= 5000/10000 - 1/10000
T given: x in [0, 1] | assert: x*(1-x)^2 <= 1482/10000
F given: x in R | assume: x > 0 | assert: -x*log(x) < 36/100
T given: x in R | assert: x^2*exp(-x^2) <= 37/100
F given: x in R | assert: x^2*exp(-x^2) < 367879/1000000
T given: x in R | assert: sigmoid(x)*(1-sigmoid(x)) <= 250000/1000000 + 1/1000000
F given: x in R | assert: log(1+exp(x))-relu(x) < 6931/10000
T given: x in R | assert: abs(x)*exp(-abs(x)/2) <= 7358/10000
F given: x in R | assert: x*exp(-x^2/2) < 60/100
T given: x in [0, 4] | assert: sqrt(x)-x <= 25/100 + 1/100
F given: x in [0, 4] | assert: sqrt(x)-x <= 250000/1000000 - 1/1000000
T given: x in [0, 10] | assert: sin(x)*exp(-x) <= 322397/1000000
F given: x in [0, 3] | assert: x - x^2/2 - log(1+x)*0 <= 5000/10000 - 1/10000
T given: x in R | assert: cos(x)*(1+sin(x)) <= 12991/10000
T given: x in R | assert: exp(x) >= 1 + x
T given: x in R | assert: exp(x) >= 2.718*x
F given: x in R | assert: exp(x) >= 2.719*x
T given: x in [0, 1] | assert: exp(x) <= 1 + x + x^2
F given: x in [0, 2] | assert: exp(x) <= 1 + x + x^2
T given: x in R | assume: x > 0 | assert: log(x) <= x - 1
T given: x in R | assume: x > 0 | assert: log(x) <= x/2.71
F given: x in R | assume: x > 0 | assert: log(x) <= x/2.72
T given: x in R | assume: x > 0 | assert: log(x) >= 1 - 1/x
T given: x in R | assume: x > 0 | assert: log(x) <= sqrt(x)
T given: x in R | assume: x > 0 | assert: log(x) <= x^0.37
F given: x in R | assume: x > 0 | assert: log(x) <= x^0.36
T given: x in R | assume: x >= 0 | assert: sin(x) <= x
T given: x in R | assume: x >= 0 | assert: sin(x) >= x - x^3/6
F given: x in R | assume: x >= 0 | assert: sin(x) >= x - x^3/7
T given: x in R | assert: cos(x) >= 1 - x^2/2
F given: x in R | assert: cos(x) >= 1 - x^2/2.01
T given: x in R | assume: x >= 0 | assert: tanh(x) <= x
T given: x in R | assume: x >= 0 | assert: tanh(x) >= x - x^3/3
F given: x in R | assume: x >= 0 | assert: tanh(x) >= x - x^3/4
F given: x in R | assume: x >= 0 | assert: erf(x) <= x*1.12
T given: x in R | assume: x > -1 | assert: log(1+x) <= x
T given: x in R | assume: x > -1 | assert: log(1+x) >= x/(1+x)
T given: x in R | assume: x >= 0 | assert: sqrt(1+x) <= 1 + x/2
T given: x in R | assume: x >= 0 | assert: sqrt(1+x) >= 1 + x/2 - x^2/8
F given: x in R | assume: x >= 0 | assert: sqrt(1+x) >= 1 + x/2 - x^2/9
T given: x in R | assert: exp(x) + exp(-x) >= 2 + x^2
T given: x in R | assert: exp(x) + exp(-x) <= 2*exp(x^2/2)
F given: x in R | assert: exp(x) + exp(-x) <= 2*exp(x^2/2.1)
T given: x in R | assert: log(1+exp(x)) >= x/2 + log(2)
T given: x in R | assert: log(1+exp(x)) <= x/2 + log(2) + x^2/8
F given: x in R | assert: log(1+exp(x)) <= x/2 + log(2) + x^2/9
T given: x in R | assert: tanh(x)^2 <= x^2
T given: x in R | assert: abs(sin(x)) <= abs(x)
T given: x in R | assert: 1/(1+x^2) >= 1 - x^2
T given: x in R | assert: exp(-x^2) >= 1 - x^2
T given: x in R | assert: exp(-x^2) <= 1/(1+x^2)
T given: x in R | assert: x^2 >= sin(x)^2
T given: x in R | assert: exp(x) > x
F given: x in R | assert: exp(x) > x^2
T given: x in R | assume: x > 0 | assert: exp(x) > x^2
F given: x in R | assume: x > 0 | assert: exp(x) > x^3
F given: x in R | assume: x > 0 | assert: x^x >= 0.6923
T given: x in R | assert: x*tanh(x) <= x^2
T given: x in R | assert: x*tanh(x) >= abs(x) - 1/2
F given: x in R | assert: abs(x) - log((exp(x)+exp(-x))/2) <= 0.69
F given: x in R | assert: x*normcdf(x) >= -0.169
T given: x in R | assert: x*sigmoid(x) >= -0.2785
F given: x in R | assert: x*sigmoid(x) >= -0.2784
F given: x in R | assert: x^2 != 5
F given: x in R | assert: exp(x) != 7
T given: x in R | assert: exp(x) != -7
F given: x in R | assert: x*exp(x) != 1
F given: x in R | assert: x + log(x) != 0
F given: x in R | assert: tanh(x) != 0.3
F given: x in R | assert: x^3 + x != 1
F given: x in R | assert: sin(x) != 0.9
T given: x in R | assert: sin(x) != 1.1
F given: x in R | assert: 2^x != 3
F given: x in R | assert: sqrt(x) != x - 3
T given: x in R | assert: 1/x != 0
T given: x in R | assert: floor(x) != x + 0.5
F given: x in R | assert: x - floor(x) != 0.5
T given: x in R | assert: abs(x) != -1
T given: x in R | assume: x^3 == 2 | assert: x < 1.26
F given: x in R | assume: x^3 == 2 | assert: x < 1.25
T given: x in R | assume: exp(x) == 2 | assert: x == log(2)
F given: x in R | assume: exp(x) == 2 | assert: x < 0.69
F given: x in R | assume: x^2 == 2 | assert: x > 0
T given: x in R | assume: x^2 == 2; x > 0 | assert: x > 1.414
F given: x in R | assert: cos(x) != x
F given: x in R | assert: x^3 - 3*x + 1 != 0
F given: x in R | assert: exp(x) != 2 + x
F given: x in [0, 1] | assert: exp(x) != 2
F given: x in [0, 1] | assert: x*exp(x) != 1
F given: x in R | assume: x > 0; x < 3 | assert: sin(x) != 0.5
F given: x in R | assume: x*exp(x) == 1 | assert: x > 0.5672
F given: x in R | assume: tanh(x) == 1/2 | assert: x^2 > 1
F given: x in R | assert: sigmoid(x) != 0.9
F given: x in R | assert: normcdf(x) != 0.975
T given: x in R | assume: exp(x) == 2 | assert: x > 0.69
T given: x in R | assume: x^2 == 2 | assert: x^4 == 4
T given: x in R | assume: x^2 == 1000 | assert: x^4 == 10^6
T given: x in R | assume: x^2 + 3*x == 7 | assert: x*(x+3) == 7
T given: x in R | assert: x^2 + 1 != 0
T given: x in R | assert: exp(x) != x
T given: x in R | assert: sign(x) != 0.5
T given: x in R | assert: abs(x)/x != 0.5
T given: x in R | assert: floor(x) != 0.5
T given: x in [0, 1] | assert: exp(x) != 3
T given: x in R | assume: x < 0 | assert: exp(x) != 2
T given: x in R | assert: 1/x + 1/(x^3) != 0
T given: x in R | assert: tanh(x) != 1
V given: x in R | assume: x^2 == -1 | assert: x == x
V given: x in R | assume: sign(x) == 1/2 | assert: x == x
V given: x in R | assume: 1/x == 0 | assert: x == x
V given: x in R | assume: abs(x)/x == 0 | assert: x == x
V given: x in R | assume: x^2 == 2; x > 2 | assert: x == x
V given: x in R | assume: tanh(x) == 1 | assert: x > 0
V given: x in R | assume: exp(x) == 0 | assert: x > 0
V given: n in Z | assume: n^2 == 2 | assert: n == n
V given: n in Z | assume: n^3 == 10 | assert: n > 0
"""
VERDICT = {"T": "holds", "F": "refuted", "V": "inconclusive"}


@pytest.mark.parametrize("row", ROWS.strip().splitlines())
def test_claims_in_one_number(row: str) -> None:
    found = decide(parse(row[2:].replace(" | ", "\n")))
    assert found.verdict == VERDICT[row[0]], found


@pytest.mark.parametrize("row", [row for row in ROWS.strip().splitlines() if row[0] == "F"])
def test_nothing_false_is_proved(row: str) -> None:
    assert calculus.decide(spelled(parse(row[2:].replace(" | ", "\n")))) is None


@pytest.mark.parametrize(
    "text",
    [
        "given: x in R | assume: x >= 0 | assert: x > 0",
        "given: x in R | assert: (-2)^x != -2",
        "given: x in R | assert: (x - 1)^x < 10^9",
        "given: x in R | assert: exp(-x)*x^12 <= 10^6",
        "given: x in R | assert: 1/x <= 10^9",
        "given: x in [0, 1] | assert: sqrt(x) <= 1000*x + 0.0001",
        "given: x in R | assert: log(1 + exp(x)) <= relu(x) + 0.69314",
        "given: x in R | assume: x >= 8 | assert: x^2 > 64",
        "given: x in R | assume: x <= -8 | assert: x^2 > 64",
        "given: x in R | assert: exp(x) - exp(-x) > 0",
        "sizes: N | assert: 2^N >= N^10/17000000",
        "sizes: N | assert: 1.01^N >= N/2",
    ],
)
def test_ends_and_tails_that_fail_are_not_proved(text: str) -> None:
    assert calculus.decide(spelled(parse(text.replace(" | ", "\n")))) is None
