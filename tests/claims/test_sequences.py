"""Laws of the two sequences, on seeded draws: error held while peeking, power where rivals differ, blocks invisible."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from likewise.claims.chance.sequences import Betting, ConfidenceSequence, average

D, ALPHA = 16, 1e-6


def cosines(variance: float, radius: float, count: int, seed: int) -> np.ndarray:
    """(1 + cos(w.d))/2 for w ~ N(0, variance*I), |d| = radius: w.d is N(0, variance*radius^2)."""
    return (1 + np.cos(math.sqrt(variance) * radius * np.random.default_rng(seed).normal(size=count))) / 2


def claimed(variance: float, radius: float) -> float:
    return (1 + math.exp(-variance * radius**2 / 2)) / 2


def best_radius(variance: float, other: float) -> float:
    return math.sqrt(2 * math.log(variance / other) / (variance - other))


def first(hit: np.ndarray) -> int | None:
    return int(np.argmax(hit)) + 1 if hit.any() else None


def bernstein_by_hand(draws: list[float], alpha: float) -> tuple[float, float]:
    """The formula of the paper, one draw at a time."""
    low, high = 0.0, 1.0
    means, squares = [0.5], [0.25]
    weight = weighted = 0.0
    noise = math.log(2 / alpha)
    for t, x in enumerate(draws, 1):
        variance = sum(squares) / t
        stake = min(math.sqrt(2 * math.log(2 / alpha) / (variance * t * math.log(1 + t))), 0.5)
        weight, weighted = weight + stake, weighted + stake * x
        noise += 4 * (x - means[-1]) ** 2 * (-math.log(1 - stake) - stake) / 4
        means.append((0.5 + sum(draws[:t])) / (t + 1))
        squares.append((x - means[-1]) ** 2)
        low, high = max(low, (weighted - noise) / weight), min(high, (weighted + noise) / weight)
    return low, high


@given(draws=st.lists(st.floats(0, 1), min_size=1, max_size=30), alpha=st.sampled_from([0.5, 0.05, 1e-6]))
def test_intervals_are_those_of_the_paper(draws: list[float], alpha: float) -> None:
    low, high = ConfidenceSequence(alpha).update(np.array(draws))
    assert (low[-1], high[-1]) == pytest.approx(bernstein_by_hand(draws, alpha), rel=1e-9, abs=1e-12)


@settings(deadline=None)
@given(cuts=st.lists(st.integers(0, 200), max_size=5), seed=st.integers(0, 99))
def test_how_draws_are_cut_into_blocks_does_not_matter(cuts: list[int], seed: int) -> None:
    draws = np.random.default_rng(seed).random(200)
    blocks = np.split(draws, sorted(cuts))
    pieces, whole = ConfidenceSequence(0.01), ConfidenceSequence(0.01)
    ends = np.concatenate([np.stack(pieces.update(block), 1) for block in blocks])
    np.testing.assert_allclose(ends, np.stack(whole.update(draws), 1), rtol=1e-9)
    bets, bet = Betting(0.2, 0.3, 0.01), Betting(0.2, 0.3, 0.01)
    np.testing.assert_allclose(np.concatenate([bets.update(block) for block in blocks]), bet.update(draws), rtol=1e-9)


def test_of_2000_true_claims_at_most_15_in_1000_are_refuted_under_peeking() -> None:
    generator = np.random.default_rng(7)
    missed = refuted = 0
    for trial in range(2000):
        mean = (0.5, 0.05, 0.3, 0.95)[trial % 4]
        draws = (generator.random(1000) < mean).astype(float) if trial % 2 else generator.beta(mean, 1 - mean, 1000)
        low, high = ConfidenceSequence(0.01).update(draws)
        missed += bool(((low > mean) | (high < mean)).any())
        refuted += bool((Betting(mean, mean, 0.01).update(draws) >= math.log(100)).any())
    assert missed <= 30
    assert refuted <= 30


def test_betting_error_is_not_idle() -> None:
    """At alpha = 0.3 some true claims do fall: the bound above is about a process that bets."""
    generator = np.random.default_rng(3)
    fallen = [(Betting(0.5, 0.5, 0.3).update(generator.random(500)) >= math.log(1 / 0.3)).any() for _ in range(200)]
    assert 0 < sum(fallen) <= 0.3 * 200


@pytest.mark.parametrize(("variance", "within"), [(4.0, 1000), (0.5, 1000)])
def test_wrong_covariance_law_is_refuted_within_1000_draws(variance: float, within: int) -> None:
    """w ~ N(0, sqrt(D) I), and a variance wrong by a factor of 2, against exp(-|q-k|^2/(2 sqrt(D))) at D = 16."""
    right = 1 / math.sqrt(D)
    radius = best_radius(variance, right)
    draws, mean = cosines(variance, radius, within, 0), claimed(right, radius)
    low, high = ConfidenceSequence(ALPHA).update(draws)
    separated = first((low > mean) | (high < mean))
    paid = first(Betting(mean, mean, ALPHA).update(draws) >= math.log(1 / ALPHA))
    assert separated is not None
    assert paid is not None
    assert paid < separated < 500


def test_right_law_survives_200_000_draws_and_a_hundredth_is_still_open() -> None:
    right = 1 / math.sqrt(D)
    radius = best_radius(4.0, right)
    draws, mean = cosines(right, radius, 200_000, 0), claimed(right, radius)
    low, high = ConfidenceSequence(ALPHA).update(draws)
    assert ((low <= mean) & (mean <= high)).all()
    assert (Betting(mean, mean, ALPHA).update(draws) < math.log(1 / ALPHA)).all()


def test_tolerance_forgives_what_it_allows() -> None:
    draws = cosines(0.25, 1.0, 20_000, 5)
    mean = claimed(0.25, 1.0)
    assert (Betting(mean + 0.01, mean + 0.05, ALPHA).update(draws) >= math.log(1 / ALPHA)).any()
    assert (Betting(mean - 0.01, mean + 0.05, ALPHA).update(draws) < math.log(1 / ALPHA)).all()


def test_one_sided_bets_ignore_the_other_side() -> None:
    draws = np.full(200, 0.9)
    assert Betting(-math.inf, 0.5, ALPHA).update(draws)[-1] > math.log(1 / ALPHA)
    assert Betting(0.5, math.inf, ALPHA).update(draws)[-1] < 0


def test_certainty_falls_with_one_exception() -> None:
    draws = np.ones(50)
    assert Betting(1.0, 1.0, ALPHA).update(draws)[-1] <= 0
    draws[20] = 0.0
    assert first(Betting(1.0, 1.0, ALPHA).update(draws) >= math.log(1 / ALPHA)) == 21


def test_mean_of_e_values_is_no_larger_than_the_largest() -> None:
    assert average([0.0, 0.0, math.log(7.0)]) == pytest.approx(math.log(3.0))
