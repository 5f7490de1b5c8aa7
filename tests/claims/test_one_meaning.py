"""One meaning for all engines: each class of statements that engines once read differently, with claims of its own."""

from dataclasses import replace

import pytest

from likewise.claims import check, checking, engines
from likewise.claims.agreement import agreed
from likewise.claims.language.parser import parse
from likewise.claims.verdict import Finding


def verdict(text: str) -> Finding:
    return engines.decide(replace(parse(text), seed=7))


def answers(text: str) -> str:
    found = verdict(text)
    assert found.grade != "disagreement", found.detail
    return found.verdict


VECTORS = "given: q, k in R^D\n"
NUMBERS = "given: x, y in R\n"


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (NUMBERS + "f(a) = a + y\ng(y) = 2*f(y)\nassert: g(3) == 2*(3 + y)", "holds"),
        (NUMBERS + "f(a) = a + y\ng(y) = 2*f(y)\nassert: g(3) == 12", "refuted"),
        (VECTORS + "score(x) = dot(x, k)\ntwice(k) = 2*score(k)\nassert: twice(q) == 2*dot(q, k)", "holds"),
        (VECTORS + "score(x) = dot(x, k)\ntwice(k) = 2*score(k)\nassert: twice(q) == 2*sqnorm(q)", "refuted"),
        ("given: x, s in R\nassume: s > 0\nz(a) = a/s\nw(s) = z(s)\nassert: w(x) == x/s", "holds"),
        ("given: x, s in R\nassume: s > 0\nz(a) = a/s\nw(s) = z(s)\nassert: w(x) == 1", "refuted"),
    ],
)
def test_definitions_do_not_capture(text: str, wanted: str) -> None:
    assert answers(text) == wanted


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("given: x, y in R^2\nassert: max(x, y) == max(max(x), max(y))", "refuted"),
        ("given: x, y in R^2\nassert: sum(max(x, y)) >= sum(x)", "holds"),
        ("given: x, y in R^2\nassert: sum(max(x, y)) >= max(x) + max(y)", "refuted"),
        ("given: x, y in R^3\nassert: max(x, y) + min(x, y) == x + y", "holds"),
        ("given: x in R^2\nassert: max(x, 0) == relu(x)", "holds"),
        ("given: x in R^2\nassert: max(x, 0) == max([x, 0])", "refuted"),
        ("given: x in R^2\nassume: max(x, 0) == 0\nassert: sum(x) <= 0", "holds"),
    ],
)
def test_max_of_arrays_is_entry_by_entry(text: str, wanted: str) -> None:
    assert answers(text) == wanted


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("sizes: N\nassert: -N^2 in O(N)", "refuted"),
        ("sizes: N\nassert: -N in O(N)", "holds"),
        ("sizes: N\nassert: N in O(-N^2)", "holds"),
        ("sizes: N, D\nassert: N - N*D in O(N)", "refuted"),
        ("sizes: N, D\nassert: N*D - N^2 in O(N*D)", "refuted"),
        ("sizes: N, D\nassert: N*D - N^2 in O(N*D + N^2)", "holds"),
        ("sizes: N\nassert: -N^2 in Omega(N)", "holds"),
        ("sizes: N\nassert: -N in Theta(N)", "holds"),
    ],
)
def test_orders_are_of_absolute_values(text: str, wanted: str) -> None:
    assert answers(text) == wanted


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("given: x[n, d], W[d, m]; b in R^m\nassert: x @ W + b has shape [n, m]", "holds"),
        ("given: x[n, d], W[d, m]; b in R^n\nassert: x @ W + b has shape [n, m]", "refuted"),
        ("given: x[b, t, d]; g in R^d\nassert: x*g has shape [b, t, d]", "holds"),
        ("given: x[n, d], y[1, d]\nassert: x + y has shape [n, d]", "holds"),
        ("given: x[n, d], y[n, 1]\nassert: x - y has shape [n, d]", "holds"),
        ("given: A in R^(2, 3); b in R^3\nassert: (A + b)[2, 3] == A[2, 3] + b[3]", "holds"),
        ("given: A in R^(2, 3); b in R^3\nassert: (A + b)[1, 2] == A[1, 2] + b[1]", "refuted"),
        ("assert: [[1, 2], [3, 4]] @ [1, 1] == [3, 7]", "holds"),
        ("assert: [[1, 2], [3, 4]][1, 2] == 2", "holds"),
        ("assert: tr([[1, 2], [3, 4]]) == 4", "refuted"),
    ],
)
def test_arrays_broadcast_as_in_torch_and_nested_brackets_are_matrices(text: str, wanted: str) -> None:
    assert answers(text) == wanted


@pytest.mark.parametrize(
    ("text", "wanted", "seen"),
    [
        ("given: x in R\nassert: log(x^2) == 2*log(x)", "refuted", "x=-1"),
        ("given: x in R\nassert: sqrt(x)^2 == x", "refuted", "undefined"),
        ("given: x in R\nassert: x*(x - 7/3)/(x - 7/3) == x", "refuted", "x=7/3"),
        ("given: x, y in R\nassert: (x^2 - y^2)/(x - y) == x + y", "refuted", "undefined"),
        ("given: q in R^D\nassert: sqnorm(q/norm(q)) == 1", "refuted", "q=(0)"),
        ("given: x in R\nassume: x > 0\nassert: log(x^2) == 2*log(x)", "holds", ""),
        ("given: x in R\nassume: x >= 0\nassert: sqrt(x)^2 == x", "holds", ""),
        ("given: x, y in R\nassert: x/y - 1/y == (x - 1)/y", "holds", "where"),
    ],
)
def test_an_identity_needs_both_sides_defined_on_the_stated_set(text: str, wanted: str, seen: str) -> None:
    found = verdict(text)
    assert found.verdict == wanted, found.detail
    assert seen in found.detail


@pytest.mark.parametrize(
    "text",
    [
        "given: x in R\nassume: x^2 < 0\nassert: x == 3",
        "given: x in R\nassume: sin(x) > 1\nassert: x > 5",
        "sizes: N, D\nassume: N > D^2; N < D\nassert: N == 7",
        "sizes: N, D\nassume: N*D <= 6; N >= 3; D >= 3\nassert: N == D",
        "given: w ~ N(0, 1); x in R\nassume: E[w^2] < 1\nassert: x == x",
        "given: x in R\nassume: exp(x) < 0\nassert: x + 1 > x",
        "given: q in R^D\nassume: norm(q) < 0\nassert: sum(q) == sum(q)",
    ],
)
def test_impossible_assumptions_prove_nothing(text: str) -> None:
    found = verdict(text)
    assert found.verdict == "inconclusive", found
    assert "satisf" in found.detail or "not exist" in found.detail


def test_an_error_of_an_engine_is_no_crash(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(claim: object) -> Finding:
        raise TypeError("a fault")

    monkeypatch.setattr(engines, "engines_for", lambda claim: (broken,))
    found = verdict("given: x in R\nassert: x == x")
    assert (found.verdict, found.grade) == ("inconclusive", "disagreement")
    assert "TypeError: a fault" in found.detail
    monkeypatch.undo()
    assert verdict("sizes: N, D\nassume: N == sqrt(D)\nassert: N <= D").grade != "disagreement"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("given: x in R\nassert: x^2 >= x", Finding("holds", "proved", "", "wrong")),
        ("given: q, k in R^D\nassert: dot(q, k) == sum(q)", Finding("holds", "proved", "", "wrong")),
        ("given: x in R\nassert: x^2 >= 0", Finding("refuted", "exact witness", "", "wrong", (("x", "1"),))),
        ("given: x in [0, 1]\nassert: x <= 1", Finding("refuted", "exact witness", "", "wrong", (("x", "2"),))),
        ("sizes: N\nassert: N^2 in O(N)", Finding("holds", "proved", "", "wrong")),
        ("sizes: N\nassert: N in O(N^2)", Finding("refuted", "exact witness", "", "wrong", (("N", "t"),))),
        ("given: w ~ N(0, 1)\nassert: E[w^4] == 2", Finding("holds", "proved", "", "wrong")),
        ("given: w ~ N(0, 1)\nassert: E[cos(w)] == exp(-1/2)", Finding("refuted", "exact witness", "", "wrong")),
        ("given: n in 1..300\nassert: (n - 123)^2 > 0", Finding("holds", "proved", "", "wrong")),
        ("given: s ~ Rademacher(2)\nassert: P[sum(s) == 0] == 1/2", Finding("refuted", "exact witness", "", "wrong")),
    ],
)
def test_a_wrong_finding_is_a_disagreement(text: str, said: Finding) -> None:
    found = agreed(replace(parse(text), seed=3), said)
    assert (found.verdict, found.grade) == ("inconclusive", "disagreement")
    assert dict(found.numbers).keys() == {"engine", "judge", "claim", "seed"}


CELL = "source: {title: T, cells: {a: 0.5}}\n"


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("given: x in [0, 1]\nassert: x*a <= 0.5", "inconclusive"),
        ("given: x in [0, 1]\nassert: x*a <= 0.56", "holds"),
        ("given: x in [0, 1]\nassert: x*a <= 0.3", "refuted"),
        ("given: x in [0, 1]\nassume: x > a\nassert: x > 0.5", "inconclusive"),
        ("given: x in [0, 1]\nassume: x > a\nassert: x > 0.44", "holds"),
        ("given: w ~ N(0, 1)\nassert: E[a*w^2] <= 0.5", "inconclusive"),
        ("given: w ~ N(0, 1)\nassert: E[a*w^2] <= 0.6", "holds"),
        ("given: x in R\nassert: a*x + x == 1.5*x", "holds"),
        ("sizes: N\nassert: N*a >= 0.5", "inconclusive"),
        ("assume: a > 0\nassert: a <= 0.5", "inconclusive"),
    ],
)
def test_the_rounding_of_cited_numbers_is_never_forgotten(text: str, wanted: str) -> None:
    assert answers(CELL + text) == wanted


@pytest.mark.parametrize(
    "text",
    [
        "given: u ~ U(0, 1)\nassert: P[(u + 0.1) - 0.1 == u] <= 0.9",
        "given: u ~ U(0, 1)\nassert: P[u/3*3 != u] >= 0.01",
        "given: u ~ U(0, 1)\nassert: P[(u + 1e16) - 1e16 <= 0.5] >= 0.9",
        "given: u ~ U(0, 1)\nassert: E[abs((u + 1e30) - 1e30)] == 0 within 0.01",
        "given: u ~ U(0, 1)\nassert: E[sin(u + 1e20)] == 3 within 0.01",
        "given: x ~ N(0, 1)\nassert: P[sin(x)^2 + cos(x)^2 > 1] >= 0.1",
        "given: x ~ N(0, 1)\nassert: P[exp(log(abs(x))) == abs(x)] <= 0.9",
        "given: u ~ U(0, 1)\nassert: P[u <= 1e16 + 0.5 - 1e16] == 0 within 0.01",
    ],
)
def test_the_rounding_of_floats_decides_nothing(text: str) -> None:
    assert verdict(text).verdict != "holds"


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("given: u ~ U(0, 1)\nassert: P[u <= 1/4] == 0.3 within 0.01", "refuted"),
        ("given: x ~ N(0, 1)\nassert: P[x + 1 <= 1] >= 0.4", "holds"),
        ("given: s ~ Rademacher(16)\nassert: P[sum(s) == 0] == 0.5 within 0.1", "refuted"),
    ],
)
def test_events_away_from_rounding_are_still_decided(text: str, wanted: str) -> None:
    assert answers(text) == wanted


def test_the_judge_reads_definitions_itself() -> None:
    claim = parse(NUMBERS + "f(a) = a + y\ng(y) = 2*f(y)\nassert: g(3) == 12")
    captured = replace(claim, relation=parse(NUMBERS + "assert: 2*(3 + 3) == 12").relation)
    found = agreed(replace(captured, seed=1), Finding("holds", "proved", "", "wrong"))
    assert (found.verdict, found.grade) == ("inconclusive", "disagreement")
    assert "definitions" in found.detail


def test_a_disagreement_is_logged_with_all_that_is_needed(disagreements: list[str]) -> None:
    found: dict[str, object] = dict.fromkeys(("witness", "suggestions", "numbers"), ())
    found |= {"verdict": "inconclusive", "grade": "disagreement", "detail": "both sides", "engine": "judge"}
    asked = checking._ask(checking.ClaimSource("one", "assert: 1 == 1"), 5, None)
    checking._verdict(asked, {"finding": found | {"link": 0}})
    [said] = disagreements
    assert all(part in said for part in ("both sides", "assert: 1 == 1", "seed"))
    disagreements.clear()


@pytest.mark.parametrize(
    ("given", "relation", "verdict"),
    [
        ("x in R", "x^x == exp(x*log(x))", "refuted"),  # a whole exponent needs no logarithm
        ("x, y in R", "x^y == exp(y*log(x))", "refuted"),
        ("x, y in R", "x^y == x^y", "holds"),
        ("x in R^D", "x[2] - x[2] == 0", "refuted"),  # D = 1
        ("x in R^D", "0*x[2] == 0", "refuted"),
        ("x in R^3", "x[2] - x[2] == 0", "holds"),
        ("x in R^D", "max(pairs(x)) - max(pairs(x)) == 0", "refuted"),
    ],
)
def test_a_side_that_is_undefined_somewhere_refutes_an_identity(given: str, relation: str, verdict: str) -> None:
    assert check(f"given: {given}\nassert: {relation}").verdict == verdict
