"""Intervals and p-values against exact sums and formulas; sequences on seeded draws, with error held while peeking."""

import math
import time
from fractions import Fraction
from itertools import pairwise

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from likewise.stats import (
    BettingProcess,
    ConfidenceSequence,
    average,
    betting,
    clopper_pearson,
    hoeffding_bentkus,
    least_examples,
    log_at_most,
    upper_bound,
)

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
    bets, bet = BettingProcess(0.2, 0.3, 0.01), BettingProcess(0.2, 0.3, 0.01)
    np.testing.assert_allclose(np.concatenate([bets.update(block) for block in blocks]), bet.update(draws), rtol=1e-9)


def test_of_2000_true_claims_at_most_15_in_1000_are_refuted_under_peeking() -> None:
    generator = np.random.default_rng(7)
    missed = refuted = 0
    for trial in range(2000):
        mean = (0.5, 0.05, 0.3, 0.95)[trial % 4]
        draws = (generator.random(1000) < mean).astype(float) if trial % 2 else generator.beta(mean, 1 - mean, 1000)
        low, high = ConfidenceSequence(0.01).update(draws)
        missed += bool(((low > mean) | (high < mean)).any())
        refuted += bool((BettingProcess(mean, mean, 0.01).update(draws) >= math.log(100)).any())
    assert missed <= 30
    assert refuted <= 30


def test_betting_error_is_not_idle() -> None:
    """At alpha = 0.3 some true claims do fall: the bound above is about a process that bets."""
    generator = np.random.default_rng(3)
    fallen = [
        (BettingProcess(0.5, 0.5, 0.3).update(generator.random(500)) >= math.log(1 / 0.3)).any() for _ in range(200)
    ]
    assert 0 < sum(fallen) <= 0.3 * 200


@pytest.mark.parametrize(("variance", "within"), [(4.0, 1000), (0.5, 1000)])
def test_wrong_covariance_law_is_refuted_within_1000_draws(variance: float, within: int) -> None:
    """w ~ N(0, sqrt(D) I), and a variance wrong by a factor of 2, against exp(-|q-k|^2/(2 sqrt(D))) at D = 16."""
    right = 1 / math.sqrt(D)
    radius = best_radius(variance, right)
    draws, mean = cosines(variance, radius, within, 0), claimed(right, radius)
    low, high = ConfidenceSequence(ALPHA).update(draws)
    separated = first((low > mean) | (high < mean))
    paid = first(BettingProcess(mean, mean, ALPHA).update(draws) >= math.log(1 / ALPHA))
    assert separated is not None
    assert paid is not None
    assert paid < separated < 500


def test_right_law_survives_200_000_draws_and_a_hundredth_is_still_open() -> None:
    right = 1 / math.sqrt(D)
    radius = best_radius(4.0, right)
    draws, mean = cosines(right, radius, 200_000, 0), claimed(right, radius)
    low, high = ConfidenceSequence(ALPHA).update(draws)
    assert ((low <= mean) & (mean <= high)).all()
    assert (BettingProcess(mean, mean, ALPHA).update(draws) < math.log(1 / ALPHA)).all()


def test_tolerance_forgives_what_it_allows() -> None:
    draws = cosines(0.25, 1.0, 20_000, 5)
    mean = claimed(0.25, 1.0)
    assert (BettingProcess(mean + 0.01, mean + 0.05, ALPHA).update(draws) >= math.log(1 / ALPHA)).any()
    assert (BettingProcess(mean - 0.01, mean + 0.05, ALPHA).update(draws) < math.log(1 / ALPHA)).all()


def test_one_sided_bets_ignore_the_other_side() -> None:
    draws = np.full(200, 0.9)
    assert BettingProcess(-math.inf, 0.5, ALPHA).update(draws)[-1] > math.log(1 / ALPHA)
    assert BettingProcess(0.5, math.inf, ALPHA).update(draws)[-1] < 0


def test_certainty_falls_with_one_exception() -> None:
    draws = np.ones(50)
    assert BettingProcess(1.0, 1.0, ALPHA).update(draws)[-1] <= 0
    draws[20] = 0.0
    assert first(BettingProcess(1.0, 1.0, ALPHA).update(draws) >= math.log(1 / ALPHA)) == 21


def test_mean_of_e_values_is_no_larger_than_the_largest() -> None:
    assert average([0.0, 0.0, math.log(7.0)]) == pytest.approx(math.log(3.0))


def exact_at_most(count: int, total: int, chance: Fraction) -> Fraction:
    terms = (math.comb(total, k) * chance**k * (1 - chance) ** (total - k) for k in range(count + 1))
    return sum(terms, Fraction())


@given(st.integers(1, 40), st.integers(0, 40), st.sampled_from([0.5, 0.9, 0.95, 0.999, 1 - 2**-40]))
def test_the_interval_ends_where_the_exact_tail_sums_are_half_the_error(total: int, seen: int, level: float) -> None:
    accepted, tail = min(seen, total), (1 - Fraction(level)) / 2
    low, high = clopper_pearson(accepted=accepted, total=total, confidence=level)
    less, more = 1 - Fraction(1, 10**9), 1 + Fraction(1, 10**9)
    if accepted:
        outside, inside = (1 - exact_at_most(accepted - 1, total, Fraction(low) * factor) for factor in (less, more))
        assert outside < tail < inside
    else:
        assert low == 0
    if accepted < total:
        # 1 - high is what is small where nearly all were accepted; float64 has it to about 1e-16.
        step = min(Fraction(high) / 10**9, max((1 - Fraction(high)) / 10**9, Fraction(1, 2**52)))
        inside, outside = (exact_at_most(accepted, total, Fraction(high) + sign * step) for sign in (-1, 1))
        assert outside < tail < inside
    else:
        assert high == 1


@pytest.mark.parametrize("total", [10**9, 10**12, 10**15])
@pytest.mark.parametrize("accepted", [0, 1, 3, 30])
@pytest.mark.parametrize("confidence", [0.5, 0.95, 1 - 1e-9])
def test_intervals_of_rare_events_are_exact_whatever_the_total(total: int, accepted: int, confidence: float) -> None:
    """By sums in 60 digits; scipy's quantiles are off by up to 2e-8 here."""
    low, high = clopper_pearson(accepted=accepted, total=total, confidence=confidence)
    with mpmath.workdps(60):

        def at_most(count: int, p: mpmath.mpf) -> mpmath.mpf:
            return mpmath.fsum(mpmath.binomial(total, k) * p**k * (1 - p) ** (total - k) for k in range(count + 1))

        tail, step = (1 - mpmath.mpf(confidence)) / 2, mpmath.mpf("1e-12")
        assert at_most(accepted, high * (1 + step)) < tail < at_most(accepted, high * (1 - step))
        if accepted:
            assert 1 - at_most(accepted - 1, low * (1 - step)) < tail < 1 - at_most(accepted - 1, low * (1 + step))


@pytest.mark.parametrize("total", [1, 7, 100, 3000, 10**6, 10**9])
@pytest.mark.parametrize("share", [0.0, 0.001, 0.1, 0.3, 0.5, 0.99, 1.0])
@pytest.mark.parametrize("confidence", [0.5, 0.95, 0.999])
def test_intervals_are_those_of_the_beta_distribution(total: int, share: float, confidence: float) -> None:
    beta = pytest.importorskip("scipy.stats").beta
    accepted, tail = round(share * total), (1 - confidence) / 2
    low, high = clopper_pearson(accepted=accepted, total=total, confidence=confidence)
    assert low == pytest.approx(beta.ppf(tail, accepted, total - accepted + 1) if accepted else 0, rel=1e-9)
    assert high == pytest.approx(beta.isf(tail, accepted + 1, total - accepted) if accepted < total else 1, rel=1e-9)


@pytest.mark.parametrize(("accepted", "total"), [(3, 10**12), (10**8, 10**9), (10**14, 10**15), (5 * 10**11, 10**12)])
def test_an_interval_takes_a_moment(accepted: int, total: int) -> None:
    def seconds() -> float:
        started = time.process_time()
        clopper_pearson(accepted=accepted, total=total)
        return time.process_time() - started

    assert min(seconds() for _ in range(5)) < 0.05


def test_large_samples_are_normal() -> None:
    """The first two terms of the Wilson interval's expansion; what is left out is of the order 1 / total."""
    for total in (10**12, 10**15):
        low, high = clopper_pearson(accepted=total // 5, total=total)
        spread = 1.959963984540054 * math.sqrt(0.2 * 0.8 / total)
        assert (low, high) == pytest.approx((0.2 - spread, 0.2 + spread), abs=3 / total)


@given(st.integers(1, 60), st.integers(0, 60), st.floats(0.01, 0.99))
def test_binomial_tails_are_their_sums(total: int, count: int, chance: float) -> None:
    expected = exact_at_most(min(count, total), total, Fraction(chance))
    assert log_at_most(min(count, total), total=total, chance=chance) == pytest.approx(
        math.log(expected) if expected < 1 else 0, rel=1e-9, abs=1e-12
    )


def test_tails_beyond_floating_point_have_logarithms() -> None:
    assert log_at_most(0, total=10**6, chance=0.5) == pytest.approx(10**6 * math.log(0.5), rel=1e-12)


def test_fractions_of_losses_count_as_the_next_whole_number() -> None:
    """Bentkus's bound is about ceil(n R): three losses of a half are two errors, not one."""
    losses, risk = np.repeat([0.5, 0.0], [3, 47]), 0.2
    mean = losses.mean()
    hoeffding = math.exp(-50 * (mean * math.log(mean / risk) + (1 - mean) * math.log((1 - mean) / (1 - risk))))
    up, down = (math.e * float(exact_at_most(count, 50, Fraction(risk))) for count in (2, 1))
    assert down < hoeffding
    assert hoeffding_bentkus(losses, risk=risk) == pytest.approx(min(hoeffding, up), rel=1e-9)
    assert hoeffding_bentkus(losses, risk=risk) > 1.5 * down


@given(st.floats(0.005, 0.5), st.floats(0.005, 0.5))
def test_fewer_examples_than_the_least_prove_nothing(risk: float, delta: float) -> None:
    enough = least_examples(risk=risk, delta=delta)
    without_loss = [np.zeros(count) for count in (enough, enough - 1)]
    assert hoeffding_bentkus(without_loss[0], risk=risk) <= delta * (1 + 1e-9)
    if enough > 1:
        assert hoeffding_bentkus(without_loss[1], risk=risk) > delta * (1 - 1e-9)
        assert betting(without_loss[1], risk=risk, delta=delta) > delta * (1 - 1e-9)


@given(st.integers(1, 60), st.integers(0, 60), st.floats(0.02, 0.98))
def test_hoeffding_bentkus_is_its_formula(count: int, errors: int, risk: float) -> None:
    errors = min(errors, count)
    losses = np.repeat([1.0, 0.0], [errors, count - errors])
    seen = min(errors / count, risk)
    divergence = (seen * math.log(seen / risk) if seen else 0) + (1 - seen) * math.log((1 - seen) / (1 - risk))
    tail = sum(math.comb(count, k) * risk**k * (1 - risk) ** (count - k) for k in range(errors + 1))
    assert hoeffding_bentkus(losses, risk=risk) == pytest.approx(
        min(math.exp(-count * divergence), math.e * tail, 1), rel=1e-9
    )


@given(st.lists(st.floats(0, 1), min_size=1, max_size=30), st.floats(0.01, 0.99), st.floats(0.01, 0.5))
def test_betting_is_its_formula(values: list[float], risk: float, delta: float) -> None:
    count, capital, most, losses = len(values), 1.0, 0.0, []
    squares, variance = 0.0, 0.25
    for loss in values:
        stake = min(1, math.sqrt(2 * math.log(1 / delta) / (count * variance)))
        capital *= 1 - stake * (loss - risk)
        most = max(most, capital)
        losses.append(loss)
        squares += (loss - (0.5 + sum(losses)) / (1 + len(losses))) ** 2
        variance = (0.25 + squares) / (1 + len(losses))
    found = betting(np.array(values), risk=risk, delta=delta)
    assert found == pytest.approx(min(1, 1 / most) if most else 1, rel=1e-9)


@given(st.lists(st.sampled_from([0.0, 0.5, 1.0]), min_size=2, max_size=50), st.sampled_from([0.05, 0.2]))
def test_the_bound_is_where_betting_begins_to_win(values: list[float], delta: float) -> None:
    losses = np.array(values)
    bound = upper_bound(losses, delta=delta)
    assert losses.min() <= bound <= 1
    if bound < 1:
        assert betting(losses, risk=bound + 1e-9, delta=delta) <= delta
        assert betting(losses, risk=bound - 1e-9, delta=delta) >= delta


def test_a_bet_that_was_won_early_may_bound_below_the_mean() -> None:
    losses = np.array([0.0] * 8 + [0.5, 1.0, 1.0])
    assert losses[:8].mean() < upper_bound(losses, delta=0.2) < losses.mean()


def test_more_losses_never_make_a_smaller_p() -> None:
    rows = np.stack([np.repeat([1.0, 0.0], [k, 100 - k]) for k in range(100)])
    for p in (hoeffding_bentkus(rows, risk=0.3), betting(rows, risk=0.3, delta=0.1)):
        assert all(before <= after for before, after in pairwise(p.tolist()))
        assert p[-1] == 1


def test_bounds_of_nothing_are_refused() -> None:
    with pytest.raises(ValueError, match="upper_bound: losses must not be empty; got 0"):
        upper_bound(np.zeros(0), delta=0.1)
