"""Vector inequalities for every length, entry by entry: what holds is proved, and what does not hold never is."""

import pytest

from likewise.claims import check
from likewise.claims.engines import decide
from likewise.claims.language.parser import parse
from likewise.claims.search import decide as search
from likewise.claims.smt.entries import prove

# declarations and assumptions, statement: true for every D
TRUE = (
    ("given: x in R^D", "log(sum(exp(x))) <= max(x) + log(D)"),
    ("given: x in R^D", "log(sum(exp(x))) >= min(x) + log(D)"),
    ("given: x in R^D", "sum(softmax(x)*x) <= max(x)"),
    ("given: x in R^D", "max(x) <= log(sum(exp(x)))"),
    ("given: x in R^D", "max(softmax(x)) <= 1"),
    ("given: x in R^D", "max(softmax(x)) >= 1/D"),
    ("given: x in R^D", "min(x) <= mean(x) <= max(x)"),
    ("given: x in R^D", "norm(x) <= sum(abs(x))"),
    ("given: x in R^D", "sum(abs(x)) <= sqrt(D)*norm(x)"),
    ("given: x in R^D", "sqnorm(relu(x)) <= sqnorm(x)"),
    ("given: q, k in R^D", "sqnorm(relu(q) - relu(k)) <= sqnorm(q - k)"),
    ("given: x in R^D", "exp(mean(x)) <= mean(exp(x))"),
    ("given: q, k in R^D", "sum(max(q, k)) + sum(min(q, k)) == sum(q) + sum(k)"),
    ("given: q, k in R^D", "sum(max(q, k)) >= max(sum(q), sum(k))"),
    ("given: x in R^D", "mean(x) + log(D) <= log(sum(exp(x)))"),
    ("given: x in R^D", "max(abs(x)) <= norm(x)"),
    ("given: x in R^D", "norm(x) <= sqrt(D)*max(abs(x))"),
    ("given: x, y in R^D", "abs(dot(x, y)) <= sum(abs(x))*max(abs(y))"),
    ("given: x, y in R^D", "max(x + y) <= max(x) + max(y)"),
    ("given: x in R^D\nassume: x > 0", "mean(log(x)) <= log(mean(x))"),
    ("given: x in R^D\nassume: x >= 0", "sqnorm(x) <= sum(x)*max(x)"),
    ("given: x in R^D", "sqnorm(softmax(x)) <= 1"),
    ("given: x in R^D", "sqnorm(softmax(x)) >= 1/D"),
    ("given: p, q in R^D\nassume: p > 0; q > 0; sum(p) == 1; sum(q) == 1", "sum(p*log(p/q)) >= 0"),
    ("given: q, k in R^D", "exp(-sqnorm(q - k)/2) <= 1"),
    ("given: x in R^D\nassume: x >= 0; sum(x) == 1", "sqnorm(x) <= max(x)"),
    ("given: x, y in R^D", "sum(abs(x + y)) <= sum(abs(x)) + sum(abs(y))"),
    ("given: x in R^D", "sum(cos(x)) <= D"),
    ("given: x in R^D; c in R\nassume: c >= 0", "max(c*x) == c*max(x)"),
    ("given: x in R^D", "softmax(x) <= 1"),
)
SHORTER = (  # proved by an argument that says more
    ("given: x in R^D", "softmax(x) >= 0"),
    ("given: x, y in R^D", "sqnorm(x + y) <= 2*sqnorm(x) + 2*sqnorm(y)"),
    ("given: x in R^D", "mean(x)^2 <= mean(x*x)"),
)
FALSE = (
    ("given: x in R^D", "max(softmax(x)) < 1"),
    ("given: x in R^D", "log(sum(exp(x))) < max(x) + 2"),
    ("given: x in R^D", "sum(abs(x)) <= 2*norm(x)"),
    ("given: x, y in R^D", "max(x + y) >= max(x) + max(y)"),
    ("given: x in R^D\nassume: x > 0", "mean(log(x)) >= log(mean(x))"),
    ("given: q, k in R^D", "exp(-sqnorm(q - k)/2) < 1"),
    ("given: x, y in R^D", "sum(abs(x + y)) >= sum(abs(x)) + sum(abs(y))"),
    ("given: x in R^D", "softmax(x) <= 1/2"),
    ("given: x in R^D", "sqnorm(x) <= max(abs(x))^2"),
    ("given: x in R^D", "sum(x) <= max(x)"),
    ("given: x in R^D", "mean(exp(x)) <= exp(mean(x))"),
    ("given: x in R^D\nassume: x > 0", "log(mean(x)) <= mean(log(x))"),
    ("given: x in R^D", "sum(relu(x)) >= sum(abs(x))"),
)
NARROW = (  # false in a narrow or steep region, at a large number, or for long vectors only
    "given: x in R\nassert: sin(x) + cos(x) <= 1.414",
    "given: x in R\nassert: sin(x) <= 0.999999",
    "given: x, y in R\nassert: exp(-100*(x - 1.7)^2 - 100*(y + 0.6)^2) <= 0.9",
    "given: x in R\nassume: x > 0\nassert: x*log(x) >= -0.3678",
    "given: n in Z\nassert: n^2 - 400*n + 39990 >= 0",
    "sizes: N\nassert: (N - 1234)^2 >= 1",
    "given: x in R^D\nassert: sum(abs(x)) <= 2.6*norm(x)",
    "given: x in R^D\nassert: log(sum(exp(x))) < max(x) + 2",
)


@pytest.mark.slow
@pytest.mark.parametrize(("given", "statement"), TRUE)
def test_what_is_true_of_every_entry_is_summed(given: str, statement: str) -> None:
    found = prove(parse(f"{given}\nassert: {statement}\nbudget: 30"))
    assert found is not None
    assert found.detail == "for every D (entry by entry, z3)"


@pytest.mark.slow
@pytest.mark.parametrize(("given", "statement"), SHORTER)
def test_a_shorter_argument_is_left_its_word(given: str, statement: str) -> None:
    claim = parse(f"{given}\nassert: {statement}\nbudget: 30")
    assert prove(claim) is None
    assert decide(claim).grade == "proved"


@pytest.mark.slow
@pytest.mark.parametrize("budget", [1, pytest.param(5, marks=pytest.mark.full)])
@pytest.mark.parametrize(("given", "statement"), FALSE)
def test_what_fails_for_some_vector_is_not_proved(given: str, statement: str, budget: int) -> None:
    assert prove(parse(f"{given}\nassert: {statement}\nbudget: {budget}")) is None


@pytest.mark.slow
@pytest.mark.parametrize("text", NARROW)
def test_search_finds_narrow_regions_and_long_vectors(text: str) -> None:
    found = search(parse(text))
    assert found is not None
    assert found.verdict == "refuted"


def test_a_verdict_on_log_sum_exp_is_proved_for_every_length() -> None:
    verdict = check("given: x in R^D\nassert: max(x) <= log(sum(exp(x)))")
    assert (verdict.verdict, verdict.grade) == ("holds", "proved")
