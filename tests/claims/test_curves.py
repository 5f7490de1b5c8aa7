"""exp, log, sin, cos and 2^N by z3: what is proved is true, by tangents, order, products, the circle and induction."""

import pytest

from likewise.claims import check
from likewise.claims.language.parser import parse
from likewise.claims.smt.solving import decide
from likewise.claims.verdict import Undecided

TRUE = (
    "sizes: N\nassert: 2^N >= N + 1",
    "sizes: N\nassume: N >= 4\nassert: 2^N >= N^2",
    "sizes: N\nassert: 3^N >= 2^N + 1",
    "sizes: N\nassert: 2^N >= 2*N",
    "given: x in R\nassume: x >= 0\nassert: exp(x) >= 1 + x + x^2/2",
    "given: x in R\nassert: -1 <= sin(x) <= 1",
    "given: x in R\nassume: x >= 0\nassert: sin(x) <= x",
    "given: x in R\nassert: log(1 + exp(x)) > relu(x)",
    "given: x in R\nassert: log(1 + exp(x)) <= relu(x) + 0.7",
    "given: x in R\nassert: exp(x) + exp(-x) >= 2",
    "given: x in R\nassert: sin(x) + cos(x) <= 1.4143",
    "given: x in R\nassert: sin(x)*cos(x) <= 1/2",
    "given: x in R\nassume: x > 0\nassert: log(x) <= x/2",
    "given: x in R\nassume: x >= 1\nassert: log(x) >= 1 - 1/x",
    "given: n in Z\nassert: n^2 >= n",
    "given: n in Z\nassert: (n^2 + n)/2 >= 0",
    "given: n in Z\nassert: n^2 != 2",
    "given: n in Z\nassert: n^3 - n != 5",
)
FALSE = (
    "sizes: N\nassert: 2^N >= N^2",
    "sizes: N\nassume: N >= 3\nassert: 2^N >= N^2",
    "sizes: N\nassume: N >= 9\nassert: 2^N >= N^3",
    "sizes: N\nassert: 3^N > 2^N + 1",
    "given: x in R\nassert: exp(x) >= 1 + x + x^2/2",
    "given: x in R\nassert: sin(x) <= x",
    "given: x in R\nassert: log(1 + exp(x)) <= relu(x) + 0.69",
    "given: x in R\nassert: exp(x) + exp(-x) > 2",
    "given: x in R\nassert: sin(x) + cos(x) <= 1.4142",
    "given: x in R\nassume: x > 0\nassert: log(x) <= x/3",
    "given: x, y in R\nassert: exp(x + y) >= exp(x) + y",
    "given: n in Z\nassert: n^3 - n != 6",
)


@pytest.mark.parametrize("text", TRUE)
def test_what_tangents_order_and_induction_show_is_proved(text: str) -> None:
    found = decide(parse(text))
    assert found is not None
    assert found.verdict == "holds"


@pytest.mark.parametrize("text", FALSE)
def test_what_is_false_is_never_proved(text: str) -> None:
    try:
        found = decide(parse(text))
    except Undecided:
        return
    assert found is None or found.verdict != "holds"


def test_a_verdict_on_powers_of_two_says_induction() -> None:
    verdict = check("sizes: N\nassume: N >= 4\nassert: 2^N >= N^2")
    assert verdict.detail == "for every N (induction from N=4, z3)"
