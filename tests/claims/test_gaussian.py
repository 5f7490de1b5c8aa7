"""The exact engine against pairings, enumeration, sampling, and the worked examples of the reference."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from likewise.claims.algebra.exponomials import Atom, Form, form, of_atom, size, variable
from likewise.claims.chance import sampling
from likewise.claims.chance.draws import Scope, as_range, constant
from likewise.claims.chance.gaussian import _at, _for_every_size, decide
from likewise.claims.chance.moments import Normals, Sign, UniformNumber
from likewise.claims.chance.trials import draw
from likewise.claims.chance.wick import SignVector
from likewise.claims.language.claim import Claim, Compares
from likewise.claims.language.parser import parse
from likewise.claims.verdict import Finding, Undecided, Verdict

FEATURES = "given: q, k in R^D; w ~ N(0, {law})\nassert: E[cos(dot(w, q - k))] == exp(-sqnorm(q - k)/(2*sqrt(D)))"
LOGITS = "given: mu in R^D; s in R; q, k ~ N(mu, s^2*I(D))\n"


def found(text: str) -> Finding:
    finding = decide(parse(text))
    assert finding is not None
    return finding


WORKED = [
    (
        "rff-law",
        FEATURES.format(law="sqrt(D)*I(D)"),
        "refuted  rff-law  D=2 q=(1,0) k=(0,0): exp(-sqrt(2)/2) = 0.493069 != exp(-sqrt(2)/4) = 0.702189; "
        "exact value exp(-sqrt(D)*sqnorm(q - k)/2); true for D=1  [exact witness]",
    ),
    (
        "rff-fixed",
        FEATURES.format(law="I(D)/sqrt(D)"),
        "holds  rff-fixed  for every D (characteristic function)  [proved]",
    ),
    (
        "logit-var",
        LOGITS + "assert: Var[dot(q, k)] == D*s^4 + 2*s^2*sqnorm(mu)",
        "holds  logit-var  for every D (Wick)  [proved]",
    ),
    (
        "logit-bare",
        LOGITS + "assume: s > 0\nassert: Var[dot(q, k)] == D",
        "refuted  logit-bare  D=1 s=1 mu=(1): 3 != 1; holds assuming mu == 0, s == 1  [exact witness]",
    ),
]


@pytest.mark.parametrize(("id", "text", "line"), WORKED, ids=[id for id, _, _ in WORKED])
def test_worked_examples_print_the_line_of_the_reference(id: str, text: str, line: str) -> None:
    finding = found(text)
    assert str(Verdict(id, finding.verdict, finding.grade, finding.detail)) == line
    assert finding.engine == "gaussian"


def pairings(places: list[int]) -> Iterator[list[tuple[int, int]]]:
    if not places:
        yield []
    for i in range(1, len(places)):
        for rest in pairings(places[1:i] + places[i + 1 :]):
            yield [(places[0], places[i]), *rest]


def isserlis(places: Sequence[int], means: Sequence[int], covariance: Sequence[Sequence[int]]) -> int:
    """E of Π (m_i + n_i): every choice of noise or mean, the noise summed over all its pairings."""
    total = 0
    for noise in product((False, True), repeat=len(places)):
        fixed = math.prod(means[i] for i, random in zip(places, noise, strict=True) if not random)
        paired = [i for i, random in zip(places, noise, strict=True) if random]
        total += fixed * sum(math.prod(covariance[i][j] for i, j in pairs) for pairs in pairings(paired))
    return total


@settings(deadline=None, max_examples=60)
@given(
    places=st.lists(st.integers(0, 2), max_size=6),
    means=st.lists(st.integers(-2, 2), min_size=3, max_size=3),
    root=st.lists(st.lists(st.integers(-2, 2), min_size=3, max_size=3), min_size=3, max_size=3),
)
def test_moments_are_the_sum_over_all_pairings(places: list[int], means: list[int], root: list[list[int]]) -> None:
    covariance = [[sum(a * b for a, b in zip(left, right, strict=True)) for right in root] for left in root]
    law = Normals(
        [Atom("variable", "w", (i + 1,)) for i in range(3)],
        [form(mean) for mean in means],
        [[form(entry) for entry in row] for row in covariance],
    )
    value = math.prod((variable("w", i + 1) for i in places), start=form(1))
    assert law.expected(value) == isserlis(places, means, covariance)


FACTORS = [
    "dot(w, a)",
    "dot(v, w)",
    "sqnorm(w)",
    "dot(v, b)",
    "sum(w*w*a)",
    "sum(w*w*w)",
    "sqnorm(w - v)",
    "x",
    "sum(v)",
]


@pytest.mark.slow
@settings(deadline=None, max_examples=40)
@given(
    factors=st.lists(st.sampled_from(FACTORS), min_size=1, max_size=3),
    kind=st.sampled_from(["E", "Var"]),
    n=st.integers(1, 3),
)
def test_every_size_agrees_with_coordinates(factors: list[str], kind: str, n: int) -> None:
    """Contraction of power sums with symbolic D, put to D = n, is the expectation on n coordinates."""
    kind = kind if len(factors) < 3 else "E"
    text = "given: a, b, m in R^D; s in R; w ~ N(m, s^2*I(D)); v ~ N(0, 2*I(D)); x ~ N(s, 3)\n"
    claim = parse(f"{text}assert: {kind}[{'*'.join(factors)}] == 0")
    generator = np.random.default_rng(n)
    point = {name: constant(generator.integers(-2, 3, n)) for name in "abm"} | {"s": constant(2), "D": constant(n)}
    bound = replace(claim, assumptions=parse(f"{text}assume: D == {n}\nassert: x == 0").assumptions)
    sides = [value_at(_for_every_size(claim).claim, point), value_at(_at(bound, {"D": n}).claim, point)]
    assert sides[0] == pytest.approx(sides[1], rel=1e-12)


def value_at(claim: Claim, point: dict[str, np.ndarray]) -> float:
    assert isinstance(claim.relation, Compares)
    return float(as_range(Scope(point, {}).evaluate(claim.relation.chain.terms[0])).low[0])


BODIES = [
    "E[cos(dot(w, a))*sin(dot(w, b))]",
    "E[cos(dot(w, a))*cos(dot(w, b))*dot(w, a)]",
    "E[exp(dot(w, a)/2)*dot(w, b)^2]",
    "Var[sin(dot(w, a) + dot(v, b)/3)]",
    "Var[exp(dot(w, a)/4)]",
    "E[exp(dot(w, a)/4)*cos(dot(v, a))*sqnorm(w)]",
    "E[dot(w, v)^2*dot(w, a)]",
    "E[cos(x)*x^2]",
    "E[dot([sin(dot(w, a)), 2*cos(dot(w, a))], [sin(dot(w, b)), cos(dot(w, b))])]",
    "E[u^3*x + dot(r, a)^2]",
    "E[sum(w*exp(dot(w, a)/4))]",
    "Var[dot(r, a)*u]",
]


@pytest.mark.parametrize("body", BODIES)
def test_exact_values_agree_with_draws(body: str) -> None:
    text = (
        "given: a, b in R^D; w ~ N(a/2, I(D)/2); v ~ N(b, std=2*I(D)); x ~ N(1, 2); u ~ U(-1, 2); r ~ Rademacher(D)\n"
        f"assert: {body} == 0"
    )
    claim, draws = parse(text), 400_000
    point = {"a": constant([0.5, -1.0, 0.25]), "b": constant([1.0, 0.5, -0.5]), "D": constant(3)}
    exact = value_at(_for_every_size(claim).claim, point)
    generator, scope = np.random.default_rng(0), Scope(point, {})
    drawn = {v.name: draw(v, scope, draws, generator) for v in claim.variables if v.random}
    inner = parse(text.replace(f"{body} ==", f"{body[body.index('[') + 1 : -1]} ==")).relation
    assert isinstance(inner, Compares)
    values = as_range(Scope({**point, **drawn}, {}).evaluate(inner.chain.terms[0])).low
    deviations = (values - values.mean()) ** 2 if body.startswith("Var") else values
    assert abs(exact - deviations.mean()) < 5 * deviations.std() / math.sqrt(draws)
    assert deviations.std() / math.sqrt(draws) < 0.02 * max(1.0, abs(exact))


@pytest.mark.slow
@given(a=st.lists(st.integers(-3, 3), min_size=1, max_size=4), power=st.integers(0, 8))
def test_signs_are_averaged_over_all_cases(a: list[int], power: int) -> None:
    cases = [sum(x * s for x, s in zip(a, signs, strict=True)) ** power for signs in product((1, -1), repeat=len(a))]
    exact = Fraction(sum(cases), len(cases))
    on_coordinates = sum((variable("s", i + 1) * x for i, x in enumerate(a)), form(0)) ** power
    for i in range(len(a)):
        on_coordinates = Sign(Atom("variable", "s", (i + 1,))).expected(on_coordinates)
    assert on_coordinates == exact
    sums = SignVector("s", size("D")).expected(of_atom(Atom("invariant", "D", names=("a", "s"))) ** power)
    assert at_point(sums, a) == exact


def at_point(value: Form, a: list[int]) -> Fraction:
    """Power sums of the vector a put in."""
    total = Fraction(0)
    for (powers, _), coefficient in value.terms.items():
        total += coefficient * math.prod(sum(x ** len(atom.names) for x in a) ** int(e) for atom, e in powers)
    return total


@given(low=st.integers(-3, 3), width=st.integers(1, 4), power=st.integers(0, 6))
def test_uniform_moments_are_integrals(low: int, width: int, power: int) -> None:
    law = UniformNumber(Atom("variable", "x"), form(low), form(low + width))
    integral = Fraction((low + width) ** (power + 1) - low ** (power + 1), (power + 1) * width)
    assert law.expected(variable("x") ** power) == integral


DECIDED = [
    ("given: a in R^D; w ~ N(0, I(D))\nassert: E[w*exp(dot(a, w))] == a*exp(sqnorm(a)/2)", "holds"),
    (
        "given: a, m in R^D; w ~ N(m, I(D))\nassert: E[w*exp(dot(a, w))] == (m + a)*exp(dot(a, m) + sqnorm(a)/2)",
        "holds",
    ),
    ("given: a in R^D; w ~ N(0, I(D))\nassert: E[w*exp(dot(a, w))] == exp(sqnorm(a)/2)*ones(D)", "refuted"),
    ("given: w ~ N(0, I(D))\nassert: E[sqnorm(w)^2] == D^2 + 2*D", "holds"),
    ("given: w ~ N(0, I(D))\nassert: E[sqnorm(w)^2] == D^2", "refuted"),
    ("given: w ~ N(0, I(D))\nassert: Var[sqnorm(w)] <= 2*D", "holds"),
    ("given: m, s in R; x ~ N(m, std=s)\nassert: E[exp(x)] == exp(m + s^2/2)", "holds"),
    ("given: w ~ N([1, 2], outer([1, 2], [1, 2]) + I(2))\nassert: E[w[1]*w[2]] == 4", "holds"),
    ("given: q ~ N(0, I(D))\nassert: E[q[1]^4] == 2", "refuted"),
    ("given: q ~ N(0, I(D))\nassume: D == 3\nassert: E[q[3]^4] == 3", "holds"),
    ("given: q ~ N(0, I(d))\nsizes: h, d = 2*h\nassert: E[sqnorm(q)] == 2*h", "holds"),
    ("given: a in R^D; s ~ Rademacher(D)\nassert: E[dot(a, s)^4] == 3*sqnorm(a)^2 - 2*sum(a^4)", "holds"),
    ("given: s ~ Rademacher(4)\nassert: P[sum(s) == 0] == 3/8", "holds"),
    ("given: s ~ Rademacher(4)\nassert: E[abs(sum(s))] == 3/2", "holds"),
    ("given: s ~ Rademacher(3)\nassert: P[sum(s) > 2] == 1/4", "refuted"),
    ("given: a, b in R; x ~ U(a, b)\nassert: Var[x] == (b - a)^2/12", "holds"),
    ("given: x ~ U(0, 1)\nassert: E[x^2] == 0.33 within 0.01", "holds"),
    ("given: x ~ U(0, 1)\nassert: E[x^2] == 0.33 within 0.001", "refuted"),
    ("given: s in R; x ~ N(0, s)\nassert: E[x^2] == abs(s)", "holds"),
    ("given: a in R^D; w ~ N(0, I(D))\nassume: Var[dot(a, w)] == 1\nassert: 2*sqnorm(a) == 2", "holds"),
]


@pytest.mark.parametrize(("text", "verdict"), DECIDED, ids=[text.partition("assert: ")[2] for text, _ in DECIDED])
def test_decided(text: str, verdict: str) -> None:
    finding = found(text)
    assert finding.verdict == verdict
    assert finding.grade == ("proved" if verdict == "holds" else "exact witness")


def test_a_negative_variance_is_no_counterexample() -> None:
    """x ~ N(0, s) needs s >= 0: the points at which the right side would fail are not points of the claim."""
    assert found("given: s in R; x ~ N(0, s)\nassert: E[x^2] >= 0").verdict == "holds"
    assert found("given: a, b in R; x ~ U(a, b)\nassert: E[x] <= b").verdict != "refuted"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("given: x ~ N(0, 1)\nassert: E[sqrt(abs(x))] == 1", "no exact expectation of sqrt"),
        ("given: w ~ N(0, I(D))\nassert: E[exp(sqnorm(w))] == 1", "no closed form"),
        ("given: w ~ N(0, I(D))\nassert: E[sum(exp(w))] == D*exp(1/2)", "true for D=1, D=2, D=3, not proved"),
        ("given: v, w ~ N(0, 1)\nassert: P[v*w > 1] == 1/2", "no exact probability"),
        ("given: x ~ U(0, 1)\nassert: E[log(x + 1)^2] == 1/2", "no exact expectation of log"),
        ("given: x ~ N(0, 1)\nassert: E[x^14] == 135135", "degree above 12"),
        ("given: m in R^D; w ~ N(m, 2)\nassert: E[sum(w)] == sum(m)", "needs a covariance matrix"),
        ("given: w ~ N(0, outer([1, 2], [1, 2]) - I(2))\nassert: E[w[1]] == 0", "covariance is not positive"),
        ("given: x ~ N(0, 1)\nassert: E[1/x] == 0", "no exact expectation"),
    ],
)
def test_what_has_no_exact_value_says_why(text: str, reason: str) -> None:
    with pytest.raises(Undecided, match=reason):
        found(text)


def test_claims_without_expectation_are_not_mine() -> None:
    assert decide(parse("given: x in R\nassert: x == x")) is None
    assert decide(parse("of: demo.positive_features_r4\nassert: E[out] == 0")) is None


BOUNDED = [
    *(FEATURES.format(law=law) for law in ("sqrt(D)*I(D)", "I(D)/sqrt(D)", "2*I(D)/sqrt(D)")),
    "given: a in R; x ~ U(0, 1)\nassume: a == 2\nassert: E[a*x^2] == 2/3",
    "given: a in R; x ~ U(0, 1)\nassume: a == 2\nassert: E[a*x^2] == 1/2",
    "given: s ~ Rademacher(4)\nassert: P[sum(s) == 0] == 3/8",
    "given: s ~ Rademacher(4)\nassert: P[sum(s) == 0] == 1/2",
    "given: q in R^D; w ~ N(0, I(D))\nassert: Var[cos(dot(w, q))] == (1 - exp(-sqnorm(q)))^2/2",
    "given: q in R^D; w ~ N(0, I(D))\nassert: Var[cos(dot(w, q))] == 1/2",
]


@pytest.mark.parametrize("text", BOUNDED, ids=[text.partition("~")[2].replace("\n", " ") for text in BOUNDED])
def test_sampling_refutes_what_is_refuted_exactly_and_nothing_else(text: str) -> None:
    sampled = sampling.decide(replace(parse(text), seed=3), draws=20_000)
    assert sampled is not None
    assert (sampled.verdict == "refuted") == (found(text).verdict == "refuted")
