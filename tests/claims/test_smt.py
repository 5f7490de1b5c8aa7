"""Claims by z3: true ones are proved, false ones refuted at a point, and a lost condition is never a verdict."""

import subprocess
import sys
from fractions import Fraction

import pytest
import z3

from likewise.claims import engines
from likewise.claims.agreement import agreed
from likewise.claims.language.parser import parse
from likewise.claims.smt import gram, models, problems, solving, terms
from likewise.claims.smt.gram import Axis, Combination
from likewise.claims.verdict import Finding, Undecided

TRUE = [
    "given: x, y in R\nassert: x^4 + y^4 >= x^3*y + x*y^3",
    "given: x in R\nassume: x > 0\nassert: x + 1/x >= 2",
    "given: a, b, c in R\nassume: a > 0; b > 0; c > 0\nassert: a/(b + c) + b/(a + c) + c/(a + b) >= 3/2",
    "given: x in R\nassume: x != 5/3\nassert: x*(x - 5/3)/(x - 5/3) == x",
    "given: x, y in R\nassert: max(x, y)*min(x, y) == x*y",
    "given: x, y in R\nassert: abs(x)*abs(y) == abs(x*y)",
    "given: x in R\nassert: relu(x)*relu(-x) == 0",
    "given: x in R\nassert: sqrt(x^2) == abs(x)",
    "given: x in R\nassert: x^(1/3) <= 1 + x",
    "given: x, y in R\nassume: x^2 + y^2 == 1\nassert: x + y <= 1.42",
    "given: x, y in R\nassume: x^2 + y^2 == 1\nassert: x + y == 0 within 1.42",
    "given: n in Z\nassert: n^2 >= n",
    "given: m in Z\nassert: (m^2 - m)/2 != 7",
    "sizes: N, D\nassume: N != D\nassert: (N + D)^2 > 4*N*D",
    "sizes: N\nassume: N <= 2000\nassert: N^2 <= 2000*N + 3",
    "given: q, k in R^D\nassert: norm(q - k) >= abs(norm(q) - norm(k))",
    "given: q, k in R^D\nassume: norm(q) == 1; norm(k) == 1\nassert: sqnorm(q - k) == 2 - 2*dot(q, k)",
    "given: q, k in R^D\nassume: sqnorm(q) == 1; sqnorm(k) == 1\nassert: sqnorm(q - k) <= 4",
    "given: x, y in R^D\nassume: x != 0; y != 0\nassert: abs(dot(x, y)/(norm(x)*norm(y))) <= 1",
    "given: x in R^D\nassume: x != 0\nassert: norm(x/norm(x)) == 1",
    "given: x, y in R^D; t in [0, 1]\nassert: sqnorm(t*x + (1 - t)*y) <= t*sqnorm(x) + (1 - t)*sqnorm(y)",
    "given: x, y, z in R^D\nassert: norm(x - z) <= norm(x - y) + norm(y - z)",
    "given: x in R^D\nassume: D <= 3\nassert: sum(x)^2 <= 3*sqnorm(x)",
    "given: x in R^3\nassert: sum(x)^2 <= 3*sqnorm(x)",
    "given: x, y in R^D\nassume: x == -y\nassert: dot(x, y) <= 0",
    "given: x, y in R^D\nassert: 4*(x @ y) == sqnorm(x + y) - sqnorm(x - y)",
    "given: x in R^D\nassert: sqnorm(x - mean(x)*ones(D)) <= sqnorm(x)",
]
FALSE = [
    "given: x, y in R\nassert: x^4 + y^4 >= 1.01*x^3*y + x*y^3",
    "given: x in R\nassume: x >= 0\nassert: x + 4/(x + 1) >= 3.01",
    "given: a, b, c in R\nassume: a > 0; b > 0; c > 0\nassert: a/(b + c) + b/(a + c) + c/(a + b) >= 1.501",
    "given: x in R\nassert: x*(x - 5/3)/(x - 5/3) == x",
    "given: x, y in R\nassert: max(x, y)*min(x, y) == x*abs(y)",
    "given: x, y in R\nassert: abs(x + y) >= abs(x) + abs(y)",
    "given: x in R\nassert: relu(x)*relu(1 - x) <= 6/25",
    "given: x in R\nassert: sqrt(x)^2 == x",
    "given: x in R\nassume: x >= 0\nassert: x^(1/3) <= 1/3 + x",
    "given: x, y in R\nassume: x^2 + y^2 == 1\nassert: 3*x + 4*y <= 4.99",
    "given: x in R\nassert: x^2 == 1 within 3",
    "given: n in Z\nassert: n^2 >= 3*n - 1",
    "given: m in Z\nassert: m^3 - m != 990",
    "sizes: N, D\nassume: N != D\nassert: (N + D)^2 > 4*N*D + 1",
    "sizes: N\nassert: N^2 <= 2000*N + 3",
    "given: q, k in R^D\nassert: norm(q - k) <= abs(norm(q) - norm(k))",
    "given: q, k in R^D\nassume: norm(q) == 1; norm(k) == 1\nassert: sqnorm(q - k) <= 3",
    "given: x, y in R^D\nassume: x != 0; y != 0\nassert: abs(dot(x, y)/(norm(x)*norm(y))) < 1",
    "given: x in R^D\nassert: norm(x/norm(x)) == 1",
    "given: x, y in R^D; t in [0, 2]\nassert: sqnorm(t*x + (1 - t)*y) <= t*sqnorm(x) + (1 - t)*sqnorm(y)",
    "given: x, y, z in R^D\nassert: sqnorm(x - z) <= sqnorm(x - y) + sqnorm(y - z)",
    "given: x, y in R^D\nassert: sqnorm(x)*sqnorm(y) == dot(x, y)^2",
    "given: x in R^D\nassert: sum(x)^2 <= 6*sqnorm(x)",
    "given: x in R^4\nassert: sum(x)^2 <= 3*sqnorm(x)",
    "given: x in R^D\nassume: D >= 2\nassert: max(x) <= 0.9*norm(x)",
    "given: x in R^D; y in R^M\nassert: sqnorm(x) >= sqnorm(y)",
]


@pytest.mark.parametrize("text", TRUE)
def test_true_claims_are_proved(text: str) -> None:
    claim = parse(text)
    found = solving.decide(claim)
    assert found is not None
    assert (found.verdict, found.grade, found.engine) == ("holds", "proved", "z3")
    assert agreed(claim, found).verdict == "holds"


@pytest.mark.parametrize("text", FALSE)
def test_false_claims_are_refuted_at_a_point_that_the_judge_confirms(text: str) -> None:
    claim = parse(text)
    found = solving.decide(claim)
    assert found is not None
    assert (found.verdict, found.grade, found.engine) == ("refuted", "exact witness", "z3")
    assert agreed(claim, found) == found


@pytest.mark.parametrize(
    "text",
    [
        "given: x in R\nassume: x^2 < 0\nassert: x == 7",
        "given: x, y in R^D\nassume: dot(x, y)^2 > sqnorm(x)*sqnorm(y)\nassert: x == y",
        "given: x in R\nassume: 1/x == 0\nassert: x == 7",
        "given: x in R\nassume: sqrt(x) < 0\nassert: x == 7",
        "sizes: N, D\nassume: N*D <= 6; N >= 3; D >= 3\nassert: N == D",
    ],
)
def test_impossible_assumptions_prove_nothing(text: str) -> None:
    found = solving.decide(parse(text))
    assert found is not None
    assert (found.verdict, found.detail) == ("inconclusive", "nothing satisfies the assumptions")


@pytest.mark.parametrize(
    "text",
    [
        "given: x in R\nassume: x^3 == x + 1\nassert: x > 1.33",
        "given: x in R\nassert: x^5 - x != 1",
    ],
)
def test_a_counterexample_without_fractions_is_shown_by_a_change_of_sign(text: str) -> None:
    with pytest.raises(Undecided, match="z3 has a counterexample that no point of fractions shows"):
        solving.decide(parse(text))
    assert engines.decide(parse(text)).verdict == "refuted"


@pytest.mark.parametrize(
    "text",
    [
        "given: x in R; n in 1..3\nassert: x^n == x",
        "given: x in R^D\nassert: max(x) <= norm(x)",
        "given: x in R^D\nassert: sqnorm(softmax(x)) <= 1",
        "given: x in R^D\nassume: x >= 0\nassert: sum(x) >= 0",
        "given: x, y in R^D\nassert: sqnorm(x*y) <= sqnorm(x)*sqnorm(y)",
        "given: x, y in R^D\nassert: sqnorm([x, y]) == sqnorm(x) + sqnorm(y)",
        "given: A in R^(N, D)\nassert: sum(A*A) >= 0",
        "given: x in R^D; y in R^(2*D)\nassert: sqnorm(x) + sqnorm(y) >= 0",
        "given: x in R^D; t in R\nassert: t*x == t*x within 1",
        "given: a, b, c, d, e in R^D\nassert: sqnorm(a) + sqnorm(b) + sqnorm(c) + sqnorm(d) + sqnorm(e) >= 0",
        "given: x in R\nassert: x/0 == x/0",
        "given: x in R\nassert: x^13 == x^13",
        "given: x in R\nassert: ((x^8)^8)^8 >= 0",
        "given: x, y in R^D\nassert: choose(x, 1) == choose(x, 1)",
    ],
)
def test_what_is_not_surely_translated_is_not_decided(text: str) -> None:
    assert solving.decide(parse(text)) is None


def test_a_claim_about_rows_is_not_asked() -> None:
    assert solving.decide(parse("given: x, y in R^D\nassert: x' @ y == y' @ x")) is None
    assert solving.decide(parse("given: x ~ N(0, 1)\nassert: E[x^2] == 1")) is None


@pytest.mark.slow
def test_z3_decides_what_was_undecided() -> None:
    reverse, far = "norm(q - k) >= abs(norm(q) - norm(k))", "sum(q)^2 <= 6*sqnorm(q)"
    assert str(engines.decide(parse(f"given: q, k in R^D\nassert: {reverse}")).detail) == (
        "for every D (inner products, z3)"
    )
    found = engines.decide(parse(f"given: q in R^D\nassert: {far}"))
    assert (found.verdict, found.witness[0]) == ("refuted", ("D", "7"))
    assert found.detail.endswith("true for D=1,2,3,4,5,6")


def test_both_sides_undefined_is_said() -> None:
    found = engines.decide(parse("given: x in R\nassert: sqrt(x)*sqrt(x) >= x"))
    assert found.verdict == "holds"
    assert found.detail.endswith("where both sides are defined")


def test_z3_is_stopped_in_time() -> None:
    query = models.Query(0.0)
    with pytest.raises(Undecided, match="z3 was stopped at the end of its time"):
        query.model([z3.Real("x") > 0])


def test_z3_cannot_tell(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(models, "QUERY", 0.2)
    means = "a^5 + b^5 + c^5 + d^5 + e^5 >= 5*a*b*c*d*e"
    with pytest.raises(Undecided, match="z3 cannot tell: "):
        solving.decide(parse(f"given: a, b, c, d, e in [0, 9]\nassert: {means}"))


@pytest.mark.slow
def test_without_z3_the_claim_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "likewise.claims.smt.solving", None)
    found = engines.decide(parse("given: q, k in R^D\nassert: norm(q - k) >= abs(norm(q) - norm(k))"))
    assert found.verdict == "inconclusive"
    assert "z3 might decide it, but does not load here" in found.detail


def test_z3_waits_until_it_is_needed() -> None:
    code = (
        "import sys\nfrom likewise.claims.engines import decide\nfrom likewise.claims.language.parser import parse\n"
        "assert decide(parse('given: q, k in R^D\\nassert: dot(q, k) == dot(k, q)')).verdict == 'holds'\n"
        "assert decide(parse('assert: 1/2 == 0.5')).verdict == 'holds'\nassert 'z3' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_distances_need_one_vector_less() -> None:
    axis = Axis("D", None)
    x, y, z = (Combination(axis, {name: Fraction(1)}) for name in "xyz")
    for pair in (x - y, y - z, x - z):
        pair.dot(pair)
    assert axis.free() == ["z"]
    x.dot(x)
    assert axis.free() == []


def _verdict(text: str) -> Finding | None:
    """What the engine says before the judge is asked."""
    try:
        return solving.decide(parse(text))
    except Undecided:
        return None


@pytest.mark.parametrize(
    ("module", "name", "fault", "text"),
    [
        (Axis, "_determinant", lambda *_: z3.RealVal(0),
         "given: x, y in R^D\nassert: dot(x, y)^2 <= sqnorm(x)*sqnorm(y)"),
        (Axis, "facts", lambda axis: [z3.BoolVal(False)], "given: x, y in R^D\nassert: dot(x, y) >= 0"),
        (Axis, "free", lambda axis: axis.vectors[-1:], "given: x, y in R^D\nassert: sqnorm(y) <= 0"),
        (Combination, "__sub__", Combination.__add__, "given: x, y in R^D\nassert: sqnorm(x - y) >= 4*dot(x, y)"),
        (terms, "maximum", lambda *values: values[0], "given: x in R\nassert: abs(x) == x"),
        (terms.Side, "undefined", [z3.BoolVal(False)], "given: x in R\nassert: sqrt(x)^2 == x"),
        (problems._Statement, "true", lambda *_: [z3.BoolVal(False)], "given: x in R\nassume: x > 1\nassert: x > 2"),
        (problems, "entry_symbol", lambda name, kind: (z3.Int(name), z3.ToReal(z3.Int(name)), []),
         "given: x in R\nassert: x^2 >= x"),
        (gram, "real", lambda value: z3.RealVal(1), "given: x in R^D\nassert: sum(x)^2 <= sqnorm(x)"),
    ],
)  # fmt: skip
def test_a_planted_fault_never_passes_the_judge(
    monkeypatch: pytest.MonkeyPatch, module: object, name: str, fault: object, text: str
) -> None:
    before = _verdict(text)
    monkeypatch.setattr(module, name, fault)
    after = _verdict(text)
    assert (after and after.verdict) != (before and before.verdict)  # the fault is seen
    true = before is not None and before.verdict == "holds"
    if after is not None:
        assert agreed(parse(text), after).verdict in ("inconclusive", "holds" if true else "refuted")
