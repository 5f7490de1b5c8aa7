"""The sampling engine: what it refutes, what it lets stand, and how often it is wrong."""

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from likewise.claims.chance.draws import Scope, constant
from likewise.claims.chance.places import candidates
from likewise.claims.chance.sampling import decide
from likewise.claims.chance.trials import draw, support
from likewise.claims.language.claim import Claim
from likewise.claims.language.parser import parse
from likewise.claims.language.tokens import Unparsed
from likewise.claims.verdict import Finding, Undecided
from likewise.programs.demonstrations.positive_features import KEYS, QUERY, VALUES, positive_features_r4

FEATURES = "given: q, k in R^D; w ~ N(0, {law})\nassert: E[cos(dot(w, q - k))] == exp(-sqnorm(q - k)/(2*sqrt(D)))"


def found(text: str, **fields: object) -> Finding:
    finding = decide(replace(parse(text), **fields))
    assert finding is not None
    return finding


def number(finding: Finding) -> int:
    return int(dict(finding.numbers)["n"])


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_wrong_covariance_law_is_refuted_within_1000_draws(seed: int) -> None:
    finding = found(FEATURES.format(law="sqrt(D)*I(D)"), seed=seed)
    assert finding.verdict == "refuted"
    assert number(finding) < 1000
    assert finding.grade == f"sampled, alpha=1e-6, n={number(finding)}"
    assert int(dict(finding.witness)["D"]) > 1


def test_wrong_covariance_law_at_16_dimensions_and_half_the_variance_too() -> None:
    for law in ("sqrt(D)*I(D)", "2*I(D)/sqrt(D)"):
        finding = found(FEATURES.format(law=law).replace("assert", "assume: D == 16\nassert"), seed=0)
        assert finding.verdict == "refuted"
        assert number(finding) < 1000
        assert dict(finding.witness)["D"] == "16"


def test_right_law_is_never_refuted_and_equality_is_never_confirmed() -> None:
    finding = found(FEATURES.format(law="I(D)/sqrt(D)"), seed=0)
    assert finding.verdict == "inconclusive"
    assert "no counterexample at 8 points after 1600000 draws" in finding.detail


def test_reports_can_be_replayed() -> None:
    text = FEATURES.format(law="sqrt(D)*I(D)")
    assert found(text) == found(text)
    assert found(text, seed=1) == found(text, seed=1)
    means = {found("given: x ~ U(0, 1)\nassert: E[x] == 1/2", seed=seed).detail for seed in (1, 2, 3)}
    assert len(means) == 3


@pytest.mark.slow
@pytest.mark.parametrize("trials", [400, pytest.param(2000, marks=pytest.mark.full)])
def test_of_true_claims_at_most_15_in_1000_are_refuted(trials: int) -> None:
    """alpha = 0.01, equality without a tolerance, four kinds of bounded quantities, intervals and bets together."""
    texts = [
        "given: w ~ N(0, 1)\nassert: E[cos(w)] == exp(-1/2)",
        "given: x ~ U(0, 1)\nassert: E[x] == 1/2",
        "given: x ~ U(0, 1)\nassert: P[x < 1/10] == 1/10",
        "given: s ~ Rademacher(3)\nassert: E[s[1]*s[2]] == 0",
    ]
    claims = [replace(parse(text), alpha=Fraction(1, 100)) for text in texts]
    verdicts = [decide(replace(claims[trial % 4], seed=trial), draws=256) for trial in range(trials)]
    assert sum(verdict is not None and verdict.verdict == "refuted" for verdict in verdicts) <= 0.015 * trials


DECIDED = [
    ("given: x ~ U(0, 1)\nassert: E[x] == 1/2 within 0.02", "holds"),
    ("given: x ~ U(0, 1)\nassert: E[x] == 1/2 within 5%", "holds"),
    ("given: x ~ U(0, 1)\nassert: E[x] == 0.6 within 0.02", "refuted"),
    ("given: x ~ U(0, 1)\nassert: E[x] == 1/2", "inconclusive"),
    ("given: x ~ U(0, 1)\nassert: E[x] <= 0.6", "holds"),
    ("given: x ~ U(0, 1)\nassert: 0.4 < E[x] < 0.6", "holds"),
    ("given: x ~ U(0, 1)\nassert: 0.6 <= E[x]", "refuted"),
    ("given: x ~ U(0, 1)\nassert: 0.4 <= E[x]", "holds"),
    ("given: x ~ U(0, 1)\nassert: E[x] != 0.6", "holds"),
    ("given: x ~ U(0, 1)\nassert: E[x] != 0.4", "holds"),
    ("given: x ~ U(0, 1)\nassert: E[x] != 1/2", "inconclusive"),
    ("given: x ~ U(0, 1)\nassert: E[0*x + 2] == 2", "holds"),
    ("given: x ~ U(0, 1)\nassert: E[0*x + 2] == 3", "refuted"),
    ("given: x ~ U(0, 1)\nassert: Var[x] == 1/12 within 0.01", "holds"),
    ("given: x ~ U(0, 1)\nassert: Var[x] == 1/3", "refuted"),
    ("given: x ~ U(0, 1)\nassert: Var[x^2] == 4/45 within 0.01", "holds"),
    ("given: x, y ~ U(0, 1)\nassert: E[x*y] == E[x]*E[y] within 0.05", "holds"),
    ("given: x ~ U(0, 1)\nassert: E[x*x] == E[x]^2", "refuted"),
    ("given: x ~ U(0, 2)\nassert: P[x > 1] == 1/2 within 0.02", "holds"),
    ("given: w ~ N(0, 1)\nassert: P[w > 0] == 1", "refuted"),
    ("given: w ~ N(0, std=2)\nassert: E[cos(w)] == exp(-2) within 0.05", "holds"),
    ("given: w ~ N(0, std=2)\nassert: E[cos(w)] == exp(-1)", "refuted"),
    ("given: s ~ Rademacher(2)\nassert: E[s[1]*s[2]] == 0 within 0.05", "holds"),
    ("given: w ~ N([1, 0], [[1, 1/2]', [1/2, 1]'])\nassert: P[w[1] > w[2]] == 0.5", "inconclusive"),
    ("given: a in R; x ~ U(0, 1)\nassume: a > 0\nassert: E[cos(a*x)] == cos(a/2)", "refuted"),
    ("given: a in [0, 1]; x ~ U(0, 1)\nassert: E[a*x] == a/2 within 0.05", "inconclusive"),
]


@pytest.mark.parametrize(("text", "verdict"), DECIDED, ids=[text.partition("assert: ")[2] for text, _ in DECIDED])
def test_decision_rule(text: str, verdict: str) -> None:
    try:
        assert found(text).verdict == verdict
    except Undecided:
        assert verdict == "inconclusive"


def test_holding_at_a_few_points_is_only_a_search() -> None:
    weak = found("given: a in [0, 1]; x ~ U(0, 1)\nassert: E[a*x] == a/2 within 0.05")
    assert (weak.verdict, weak.grade) == ("inconclusive", "searched")
    assert found("given: x ~ U(0, 1)\nassert: E[x] == 1/2 within 0.02").grade == "sampled, alpha=1e-6, n=200000"


def test_tolerance_spends_all_draws_because_the_interval_is_the_news() -> None:
    finding = found("given: x ~ U(0, 1)\nassert: E[x] == 0.6 within 0.02")
    assert number(finding) == 200_000


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("given: w ~ N(0, 1)\nassert: E[w] == 0", "w is unbounded: sampling needs"),
        ("given: x ~ U(0, 1)\nbounded: [0, 0.5]\nassert: E[x] == 1/2", r"outside of \[0, 0.5\]"),
        ("given: w ~ N(0, [1, 2])\nassert: E[cos(w[1])] == 0", "needs a covariance matrix"),
        ("given: s in R; x ~ U(0, 1)\nassume: s < 0; s > 0\nassert: E[s*x] == s/2", "no point was found"),
        ("given: x ~ U(zeros(2), ones(2))\nassert: E[x] == 1/2*ones(2)", "not a number but has shape"),
        ("of: no.such\nassert: E[out] == 0", "not a program with a random output"),
    ],
)
def test_what_cannot_be_sampled_says_why(text: str, reason: str) -> None:
    with pytest.raises(Undecided, match=reason):
        found(text)


def test_stated_bounds_replace_missing_ones() -> None:
    assert found("given: w ~ N(0, 1)\nbounded: [-9, 9]\nassert: E[w] == 0 within 0.5").verdict == "holds"


def test_claims_without_expectation_are_not_mine() -> None:
    assert decide(parse("given: x in R\nassert: x == x")) is None
    assert decide(parse("given: x[2, 3]\nassert: x has shape [2, 3]")) is None


def test_draws_have_the_law_they_are_said_to_have() -> None:
    claim = parse("given: w ~ N([1, 2], outer([1, 2], [1, 2]) + I(2)); v ~ N(0, std=3*I(2))\nassert: w[1] == 0")
    generator, scope = np.random.default_rng(0), Scope({}, {})
    w, v = (draw(variable, scope, 200_000, generator) for variable in claim.variables)
    np.testing.assert_allclose(w.mean(axis=0), [1, 2], atol=0.02)
    np.testing.assert_allclose(np.cov(w.T), [[2, 2], [2, 5]], atol=0.05)
    np.testing.assert_allclose(np.cov(v.T), 9 * np.eye(2), atol=0.1)


def test_support_holds_every_draw() -> None:
    claim = parse("given: x ~ U(-1, a); s ~ Rademacher(3); a in R\nassert: x == 0")
    scope = Scope({"a": constant(2.0)}, {})
    for variable in claim.variables[:2]:
        drawn, bounds = draw(variable, scope, 1000, np.random.default_rng(1)), support(variable, scope)
        assert (drawn.min(axis=0) >= bounds.low).all()
        assert (drawn.max(axis=0) <= bounds.high).all()
        assert np.ptp(drawn) > 0.9 * np.ptp([bounds.low, bounds.high])


def satisfied(claim: Claim) -> list[dict[str, np.ndarray]]:
    return list(candidates(claim, np.random.default_rng(0)))


def test_points_satisfy_equations_domains_and_assumptions() -> None:
    text = "given: mu in R^d; s in R; n in {3, 5}; u in [0, 1]; z in 2..4\nsizes: h, k, d = h*k\n"
    points = satisfied(parse(text + "assume: mu == 0; s > 0.5\nassert: mu == 0"))
    assert len(points) > 20
    for point in points:
        assert point["d"] == point["h"] * point["k"]
        assert not point["mu"].any()
        assert point["s"] > 0.5
        assert point["n"] in (3, 5)
        assert 0 <= point["u"] <= 1
        assert point["z"] in (2, 3, 4)
    assert {float(point["h"]) for point in points} == {1, 2, 4, 16}


def test_ratio_of_unbiased_estimates_is_biased() -> None:
    """The demo: softmax attention gives 0.4202, the mean of the estimate does not."""
    weights = np.exp(KEYS @ QUERY / math.sqrt(len(QUERY)))
    assert round(float(weights @ VALUES / weights.sum()), 4) == 0.4202
    assert (VALUES.min(), VALUES.max()) == (-0.234, 0.995)
    drawn = positive_features_r4(1000, np.random.default_rng(0))
    assert VALUES.min() <= drawn.min() < drawn.max() <= VALUES.max()
    text = "of: demo.positive_features_r4\nbounded: [-0.234, 0.995]\nassert: E[out] == 0.4202 within 0.002"
    finding = found(text)
    assert finding.verdict == "refuted"
    assert finding.detail.startswith("mean in [0.4")
    assert finding.grade == "sampled, alpha=1e-6, n=200000"
    assert found(text.replace("0.4202 within 0.002", "0.411 within 0.005")).verdict == "holds"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("given: w ~ N(0, -sqrt(1))\nassert: E[cos(w)] == 0", "the variance of w is below zero"),
        ("given: x ~ U(sqrt(1), 0)\nassert: E[x] == 0", "x has an empty range"),
        ("given: x ~ U(0, 1)\nassert: E[x - E[x]] == 0", "do not stand inside one another"),
        ("given: m, s in R; x ~ N(m, s^2)\nassert: E[(x - E[x])^3] == 0", "do not stand inside one another"),
    ],
)
def test_laws_that_do_not_exist_and_nested_means_are_malformed(text: str, reason: str) -> None:
    with pytest.raises(Unparsed, match=reason):
        parse(text)
