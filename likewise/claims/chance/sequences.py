"""Anytime-valid statements about a mean: they may be looked at after every draw, and stopped on, at no cost in error.

Draws lie in [0, 1] and come in blocks of any length; the result does not depend on how they were cut.
Paper: Waudby-Smith & Ramdas, Estimating means of bounded random variables by betting.
"""

import math

import numpy as np

Array = np.ndarray
CERTAIN = 1e9  # the stake against a mean that lies on the edge of [0, 1], where one other draw is a disproof


class Estimates:
    """Running mean and variance, each known *before* the draw it is used on.

    mean_t = (1/2 + sum x_i) / (t + 1),  variance_t = (1/4 + sum (x_i - mean_i)^2) / (t + 1)
    """

    def __init__(self) -> None:
        self.count, self.total, self.squares = 0, 0.5, 0.25

    def update(self, draws: Array) -> tuple[Array, Array, Array]:
        """The number of each draw, and mean and variance of all before it."""
        number = self.count + np.arange(1, len(draws) + 1)
        totals = self.total + np.cumsum(draws)
        means = totals / (number + 1)
        squares = self.squares + np.cumsum((draws - means) ** 2)
        before_total, before_squares = np.r_[self.total, totals], np.r_[self.squares, squares]
        self.count, self.total, self.squares = self.count + len(draws), before_total[-1], before_squares[-1]
        return number, before_total[:-1] / number, before_squares[:-1] / number


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


class Betting:
    """An e-process against `low <= mean <= high`: wealth that grows only if that is false, P(ever >= 1/alpha) <= alpha.

    (K+ + K-)/2 with K+ = prod 1 + l_i (x_i - high), K- = prod 1 - l_i (x_i - low); an infinite end is not bet against.

    >>> bool(Betting(0.5, 0.5, 1e-6).update(np.full(60, 0.9))[-1] > math.log(1e6))
    True
    >>> bool(Betting(0.0, 0.9, 1e-6).update(np.full(4000, 0.9))[-1] <= 0)
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
