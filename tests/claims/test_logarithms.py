"""Powers, factorials and sums of logarithms, decided by logarithms and by products, and false ones like them."""

from math import factorial, log

import pytest

from likewise.claims.algebra import induction, logarithms
from likewise.claims.engines import decide
from likewise.claims.language.parser import parse
from likewise.claims.language.tree import Call, Name
from tests.claims import plain

ROWS = """
T sizes: N | assert: (1 + 1/N)^N < exp(1)
T sizes: N | assert: (1 + 1/N)^N >= 2
T sizes: N | assert: N^(1/N) <= 1.445
T sizes: N | assert: factorial(N) >= (N/3)^N
T sizes: N | assert: factorial(N) <= N^(N - 1)
T sizes: N | assert: factorial(N)/N^N <= 1/N
T given: x, y in R | assume: x > abs(y) | assert: log(x - y) + log(x + y) == log(x^2 - y^2)
T given: x in R | assert: log((1 + x)/(1 - x)) == log(1 + x) - log(1 - x)
T given: x, y in R | assume: x > 0; y > 0 | assert: 2*log(x) - log(y) == log(x^2/y)
F sizes: N | assert: (1 + 1/N)^N < 2.71
F sizes: N | assert: (1 + 1/N)^N > 2
F sizes: N | assert: N^(1/N) <= 1.44
F sizes: N | assert: factorial(N) >= (N/2)^N
F sizes: N | assert: factorial(N) < N^(N - 1)
F given: x in R | assert: log((1 + x)/(x - 1)) == log(1 + x) - log(x - 1)
F given: x, y in R | assert: log(x - y) + log(x + y) == log(x^2 - y^2)
F given: x, y in R | assume: x > 0; y > 0 | assert: log(x) - log(y) == log(x/y^2)
F given: x in R | assert: x*exp(-x) < exp(-1)
F given: x in [0, 1] | assert: sin(pi*x/2) < sin(pi/2)
F sizes: N | assert: floor(log2(N)) < N/2
"""
CLAIMS = [(row[0] == "T", row[2:].replace(" | ", "\n")) for row in ROWS.strip().splitlines()]


@pytest.mark.parametrize(("true", "text"), CLAIMS)
def test_logarithms_decide(true: bool, text: str) -> None:
    assert decide(parse(text)).verdict == ("holds" if true else "refuted")


@pytest.mark.parametrize("upper", [True, False])
def test_a_factorial_is_between_its_bounds(upper: bool) -> None:
    bound = str(logarithms.logarithm(Call("factorial", (Name("N"),)), upper))
    for n in range(1, 60):
        value = eval(bound.replace("pi", "3.141592653589793"), {"log": log, "N": n})
        assert (value - log(factorial(n)) >= -1e-12) if upper else (value < log(factorial(n)))


def test_a_product_that_may_be_0_is_not_strictly_below() -> None:
    text = "prod(i in 1..N, (i - 2)^2/(1 + (i - 2)^2)) < 2*(N - 2)^2"
    assert decide(plain.claim("N", text)).verdict == "refuted"
    assert induction.decide(plain.claim("N", text), decide) is None
