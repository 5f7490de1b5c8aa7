"""What a sample proves of a share or of a mean, whatever its distribution: intervals, p-values, anytime-valid bets.

Shares: exact intervals of the binomial. Means: draws lie in [0, 1]; p-values for a sample of fixed size, and confidence
sequences and e-processes that may be looked at after every draw, and stopped on, at no cost in error.
Paper: Clopper and Pearson 1934; Waudby-Smith & Ramdas, Estimating means of bounded random variables by betting, arXiv
2010.09686; Learn then Test, arXiv 2110.01052.
"""

import math
from collections.abc import Sequence
from functools import cache

import numpy as np
from numpy.polynomial.legendre import leggauss

from likewise.checks import require, require_count

Array = np.ndarray
CERTAIN = 1e9  # the stake against a mean that lies on the edge of [0, 1], where one other draw is a disproof
PANELS, NODES = 80, 16  # of quadrature: a panel is a standard deviation wide at most, which its nodes have exactly


def mean_and_error(values: Sequence[float]) -> tuple[float, float]:
    """The mean of independent values and its standard error, sd / sqrt(k) with k - 1 in sd; nan for one value.

    >>> mean_and_error([1.0, 3.0])
    (2.0, 1.0)
    """
    mean, count = math.fsum(values) / len(values), len(values)
    if count < 2:
        return mean, math.nan
    variance = math.fsum((value - mean) ** 2 for value in values) / (count - 1)
    return mean, math.sqrt(variance / count)


def percentile_interval(draws: Sequence[float], confidence: float) -> tuple[float, float]:
    """What lies between the two tails of bootstrap draws, each of (1 - confidence) / 2; the ends are draws.

    >>> percentile_interval([5.0, 1.0, 4.0, 2.0, 3.0], 0.5)
    (2.0, 4.0)
    """
    ordered = sorted(draws)
    tail = int((1 - confidence) / 2 * len(ordered))
    return ordered[tail], ordered[-1 - tail]


def clopper_pearson(*, accepted: int, total: int, confidence: float = 0.95) -> tuple[float, float]:
    """The exact interval for a share of which `accepted` of `total` were seen.

    It ends where seeing so few, or so many, has the chance (1 - confidence) / 2: quantiles of two beta distributions.

    Paper: Clopper and Pearson 1934.

    >>> low, high = clopper_pearson(accepted=0, total=100)  # 1 - 0.025^(1/100)
    >>> low, round(high, 6)
    (0.0, 0.036217)
    """
    where = "clopper_pearson"
    require_count(where, "total", total)
    require_count(where, "accepted", accepted, least=0)
    require(accepted <= total, where, "accepted", f"be at most total, {total}", accepted)
    require(0 < confidence < 1, where, "confidence", "be between 0 and 1", confidence)
    log_tail = math.log((1 - confidence) / 2)
    low = _beta_quantile(accepted, total - accepted + 1, log_tail, upper=False) if accepted else 0.0
    high = _beta_quantile(accepted + 1, total - accepted, log_tail, upper=True) if accepted < total else 1.0
    return low, high


def log_at_most(count: int, *, total: int, chance: float) -> float:
    """log P[Bin(total, chance) <= count], to about 1e-12.

    >>> round(math.exp(log_at_most(1, total=3, chance=0.5)), 12)
    0.5
    """
    return _BetaTails(count + 1, total - count).log_tail_at(chance, upper=True) if count < total else 0.0


class _BetaTails:
    """The tails of Beta(a, b), a and b of any size from 1 on, by quadrature of its density.

    In s = logit(x) - log(a / b) the density exp(a s - (a + b) log(1 + m (e^s - 1))), m = a / (a + b), has its mode at 0
    and a curvature of a b / (a + b) there. It is log-concave and analytic, so that a few Gauss-Legendre nodes for each
    standard deviation integrate it to rounding; what rounding does to the exponent, about sqrt(a) eps, moves quantiles
    by eps only. Continued fractions would take sqrt(a) terms, and logarithms of factorials lose a eps.
    """

    def __init__(self, a: float, b: float) -> None:
        self.swapped = a > b  # the density is exact to rounding where m is at most 1/2
        self.a, self.b = (b, a) if self.swapped else (a, b)
        self.share = self.a / (self.a + self.b)
        self.deviation = 1 / math.sqrt(self.a * (1 - self.share))
        self.log_whole = float(np.logaddexp(self._log_mass(0.0, upper=False), self._log_mass(0.0, upper=True)))

    def log_density(self, s: Array) -> Array:
        return self.a * s - (self.a + self.b) * np.log1p(self.share * np.expm1(s))

    def _log_mass(self, start: float, *, upper: bool) -> float:
        """The logarithm of the density's integral from a point outwards."""
        nodes, log_weights = _panels()
        slope = self.a - (self.a + self.b) * self._x(start)
        width = 1 / max(1 / self.deviation, abs(slope))  # far out it falls faster
        logs = self.log_density(start + (nodes if upper else -nodes) * width) + log_weights
        highest = logs.max()
        return float(highest + np.log(np.exp(logs - highest).sum())) + math.log(width)

    def log_tail(self, s: float, *, upper: bool) -> float:
        """The logarithm of the probability beyond s."""
        if (s > 0) == upper:  # a tail, which may be tiny
            return min(self._log_mass(s, upper=upper) - self.log_whole, 0.0)
        return math.log1p(-math.exp(self._log_mass(s, upper=not upper) - self.log_whole))

    def log_tail_at(self, x: float, *, upper: bool) -> float:
        """The logarithm of P[X > x], or of P[X < x]."""
        logit = math.log1p(-x) - math.log(x) if self.swapped else math.log(x) - math.log1p(-x)
        return self.log_tail(logit - math.log(self.a / self.b), upper=upper != self.swapped)

    def quantile(self, log_tail: float, *, upper: bool) -> float:
        """The x beyond which there is so much probability: bisection to the last digit."""
        upper = upper != self.swapped
        inner, outer = -PANELS * self.deviation, PANELS * self.deviation
        if not upper:
            inner, outer = outer, inner
        while (middle := (inner + outer) / 2) not in (inner, outer):
            inside = self.log_tail(middle, upper=upper) > log_tail
            inner, outer = (middle, outer) if inside else (inner, middle)
        return 1 - self._x(middle) if self.swapped else self._x(middle)

    def _x(self, s: float) -> float:
        return self.share * math.exp(s) / (1 + self.share * math.expm1(s))


def _beta_quantile(a: int, b: int, log_tail: float, *, upper: bool) -> float:
    return _BetaTails(a, b).quantile(log_tail, upper=upper)


@cache
def _panels() -> tuple[Array, Array]:
    """Gauss-Legendre nodes of all panels, and the logarithms of their weights."""
    nodes, weights = leggauss(NODES)
    places = np.arange(PANELS)[:, None] + (nodes + 1) / 2
    return places.ravel(), np.log(np.tile(weights / 2, PANELS))


def least_examples(*, risk: float, delta: float) -> int:
    """Below ln delta / ln(1 - risk) examples not even zero losses show that the risk is below `risk`.

    >>> least_examples(risk=0.05, delta=0.1), least_examples(risk=0.01, delta=0.1)
    (45, 230)
    """
    return math.ceil(math.log(delta) / math.log1p(-risk))


def hoeffding_bentkus(losses: Array, *, risk: float) -> Array:
    """A p-value for "the mean loss is above `risk`", for each row of losses.

    p = min(exp(-n h(min(R, risk), risk)), e P[Bin(n, risk) <= ceil(n R)]), R the mean of the row,
    h(a, b) = a ln(a / b) + (1 - a) ln((1 - a) / (1 - b)).

    >>> round(float(hoeffding_bentkus(np.zeros(45), risk=0.05)), 4)  # 0.95^45
    0.0994

    Paper: Learn then Test, arXiv 2110.01052, proposition 2.
    """
    count, total = losses.shape[-1], losses.sum(-1)
    mean = np.minimum(total / count, risk)
    divergence = _times_log(mean, mean / risk) + _times_log(1 - mean, (1 - mean) / (1 - risk))
    # A sum of halves or wholes is exact; of other losses, rounding up is the safe side.
    counts, which = np.unique(np.minimum(np.ceil(total), count), return_inverse=True)
    at_most = np.array([log_at_most(int(each), total=count, chance=risk) for each in counts])
    bentkus = 1 + at_most[which].reshape(total.shape)
    return np.minimum(np.exp(np.minimum(-count * divergence, bentkus)), 1)


def _times_log(x: Array, y: Array) -> Array:
    """x log y, 0 where x is 0."""
    return x * np.log(np.where(x > 0, y, 1))


def betting(losses: Array, *, risk: float, delta: float) -> Array:
    """A p-value for "the mean loss is above `risk`", for each row: one over the most that betting against it ever won.

    K_i = prod_{j <= i} (1 - nu_j (L_j - risk)) is a game that is fair or worse if the mean is `risk` or more, so that
    it ever exceeds 1 / p with chance p at most. Stakes nu_j = min(1, sqrt(2 ln(1 / delta) / (n v_{j-1}))) follow the
    variance v seen so far, and so it is the better choice for losses that vary little. Order matters: it must be that
    of the draw.

    >>> round(float(betting(np.zeros(2), risk=0.5, delta=0.01)), 4)  # two stakes of 1, each wins half
    0.4444

    Paper: Estimating means of bounded random variables by betting, arXiv 2010.09686; arXiv 2101.02703, appendix.
    """
    won = _most_won(losses, _fixed_stakes(losses, delta), risk)
    return np.minimum(np.exp(-won), 1)


def upper_bound(losses: Array, *, delta: float) -> float:
    """The mean loss is below this with a chance of 1 - delta: the least risk against which betting won 1 / delta.

    >>> round(upper_bound(np.zeros(100), delta=0.05), 3)
    0.031
    """
    require(len(losses) > 0, "upper_bound", "losses", "not be empty", 0)
    stakes = _fixed_stakes(losses, delta)
    low, high = 0.0, 1.0
    while (middle := (low + high) / 2) not in (low, high):
        won = _most_won(losses, stakes, middle) >= math.log(1 / delta)
        low, high = (low, middle) if won else (middle, high)
    return high


def _fixed_stakes(losses: Array, delta: float) -> Array:
    """nu_i = min(1, sqrt(2 ln(1 / delta) / (n v_{i-1}))) for samples whose size n is known."""
    _, _, variance = Estimates().update(losses)
    return np.minimum(np.sqrt(2 * math.log(1 / delta) / (losses.shape[-1] * variance)), 1)


def _most_won(losses: Array, stakes: Array, risk: float) -> Array:
    """log max_i K_i(risk)."""
    with np.errstate(divide="ignore"):  # everything may be lost
        return np.log1p(-stakes * (losses - risk)).cumsum(-1).max(-1)


class Estimates:
    """Running mean and variance, each known *before* the draw it is used on; of each row, where there are several.

    mean_t = (1/2 + sum x_i) / (t + 1),  variance_t = (1/4 + sum (x_i - mean_i)^2) / (t + 1)
    """

    def __init__(self) -> None:
        self.count = 0
        self.total: Array = np.array([0.5])
        self.squares: Array = np.array([0.25])

    def update(self, draws: Array) -> tuple[Array, Array, Array]:
        """The number of each draw, and mean and variance of all before it."""
        number = self.count + np.arange(1, draws.shape[-1] + 1)
        totals = _from(self.total, draws)
        squares = _from(self.squares, (draws - totals[..., 1:] / (number + 1)) ** 2)
        self.count, self.total, self.squares = self.count + draws.shape[-1], totals[..., -1:], squares[..., -1:]
        return number, totals[..., :-1] / number, squares[..., :-1] / number


def _from(start: Array, terms: Array) -> Array:
    """start, start + terms_1, start + terms_1 + terms_2, ... along the last axis."""
    first = np.broadcast_to(start, (*terms.shape[:-1], 1))
    return np.concatenate([first, start + terms.cumsum(-1)], axis=-1)


def _stakes(number: Array, variance: Array, alpha: float) -> Array:
    """sqrt(2 ln(2/alpha) / (variance * t * ln(1 + t))): small when there is much noise or much time."""
    return np.sqrt(2 * math.log(2 / alpha) / (variance * number * np.log1p(number)))


class ConfidenceSequence:
    """Empirical-Bernstein intervals for the mean; P(one of them, ever, misses it) <= alpha.

    C_t = sum l_i x_i / sum l_i  +-  [ln(2/alpha) + sum 4 (x_i - mean_{i-1})^2 psi(l_i)] / sum l_i, intersected over t,
    with psi(l) = (-ln(1 - l) - l) / 4 and stakes l_i of at most 1/2.

    >>> low, high = ConfidenceSequence(0.05).update(np.full(1000, 0.25))
    >>> bool(low[-1] < 0.25 < high[-1] and high[-1] - low[-1] < 0.03 and high[0] == 1)
    True
    """

    def __init__(self, alpha: float) -> None:
        self.alpha, self.estimates = alpha, Estimates()
        self.weight, self.weighted, self.noise = 0.0, 0.0, math.log(2 / alpha)
        self.low, self.high = 0.0, 1.0

    def update(self, draws: Array) -> tuple[Array, Array]:
        """The interval after each of the draws, ends as two arrays."""
        number, mean, variance = self.estimates.update(draws)
        stakes = np.minimum(_stakes(number, variance, self.alpha), 0.5)
        psi = (-np.log1p(-stakes) - stakes) / 4
        weight = self.weight + np.cumsum(stakes)
        weighted = self.weighted + np.cumsum(stakes * draws)
        noise = self.noise + np.cumsum(4 * (draws - mean) ** 2 * psi)
        low = np.maximum.accumulate(np.r_[self.low, (weighted - noise) / weight])
        high = np.minimum.accumulate(np.r_[self.high, (weighted + noise) / weight])
        self.low, self.high = float(low[-1]), float(high[-1])
        if len(draws):
            self.weight, self.weighted, self.noise = weight[-1], weighted[-1], noise[-1]
        return low[1:], high[1:]


class BettingProcess:
    """An e-process against `low <= mean <= high`: wealth that grows only if that is false, P(ever >= 1/alpha) <= alpha.

    (K+ + K-)/2 with K+ = prod 1 + l_i (x_i - high), K- = prod 1 - l_i (x_i - low); an infinite end is not bet against.

    >>> bool(BettingProcess(0.5, 0.5, 1e-6).update(np.full(60, 0.9))[-1] > math.log(1e6))
    True
    >>> bool(BettingProcess(0.0, 0.9, 1e-6).update(np.full(4000, 0.9))[-1] <= 0)
    True
    """

    def __init__(self, low: float, high: float, alpha: float) -> None:
        self.low, self.high, self.alpha = low, high, alpha
        self.estimates, self.logs = Estimates(), [0.0, 0.0]

    def update(self, draws: Array) -> Array:
        """The logarithm of the e-value after each of the draws."""
        number, _, variance = self.estimates.update(draws)
        stakes = _stakes(number, variance, self.alpha)
        bets = [(draws - self.high, self.high), (self.low - draws, 1 - self.low)]
        paths = []
        for side, (gain, room) in enumerate(bets):
            if math.isinf(room):
                continue
            limited = np.minimum(stakes, 0.5 / room) if room > 0 else np.full(len(draws), CERTAIN)
            path = self.logs[side] + np.cumsum(np.log1p(limited * gain))
            self.logs[side] = path[-1] if len(path) else self.logs[side]
            paths.append(path)
        return np.logaddexp(paths[0], paths[1]) - math.log(2) if len(paths) == 2 else paths[0]


def average(log_values: list[float]) -> float:
    """The logarithm of the mean of e-values given as logarithms; a mean of e-values is one.

    >>> round(average([math.log(3.0), math.log(1.0)]) - math.log(2.0), 12)
    0.0
    """
    return float(np.logaddexp.reduce(log_values)) - math.log(len(log_values))
