"""The law of the frequencies: which normal distribution makes random waves a Gaussian kernel, and which does not."""

import math
from dataclasses import dataclass

import torch
from torch import Generator, Tensor

from likewise.attention import Fourier, Gaussian
from likewise.reports.agreement import Check

SURPRISE = 5.0  # standard errors beyond which chance is no explanation


@dataclass(frozen=True)
class FrequencyLaw:
    """The Gaussian kernel at some distances, and what random waves make of it under two laws.

    right: frequencies N(0, I / variance). wrong: N(0, variance I), which papers print. standard_errors: of an estimate
    by the right law, sqrt(Var cos(w.u) / R) with Var cos(w.u) = (1 - exp(-|u|^2 / variance))^2 / 2.
    """

    variance: float
    key_dim: int
    frequencies: int
    distances: tuple[float, ...]
    exact: tuple[float, ...]
    right: tuple[float, ...]
    wrong: tuple[float, ...]
    standard_errors: tuple[float, ...]
    seed: int

    @property
    def checks(self) -> tuple[Check, Check]:
        """The right law estimates the kernel; the wrong one does not."""
        how = (
            f"{self.frequencies:,} frequencies, variance {self.variance:g}, K = {self.key_dim}, worst of {{}} distances"
        )
        how = how.format(len(self.distances))
        return (
            Check(
                "Fourier's frequencies, N(0, I/variance), give the Gaussian",
                how,
                self._worst(self.right),
                SURPRISE,
                "s.e.",
            ),
            Check(
                "The law N(0, variance·I), printed elsewhere, does not",
                how,
                self._worst(self.wrong),
                SURPRISE,
                "s.e.",
                True,
            ),
        )

    def _worst(self, estimates: tuple[float, ...]) -> float:
        rows = zip(estimates, self.exact, self.standard_errors, strict=True)
        return max(abs(estimate - exact) / error for estimate, exact, error in rows)


def measure_law(
    *, variance: float = 4.0, key_dim: int = 8, frequencies: int = 4096, points: int = 24, seed: int = 0
) -> FrequencyLaw:
    """Estimate exp(-|u|^2 / (2 variance)) for u from 0 on, by phi(u).phi(0), under both laws.

    The wrong law is the right one of another kernel, of variance 1/variance: only at variance 1 are they the same.

    >>> right, wrong = measure_law().checks
    >>> right.holds, wrong.holds
    (True, True)
    """
    generator = Generator().manual_seed(seed)
    distances = torch.linspace(0, 4 * math.sqrt(variance), points + 1, dtype=torch.float64)[1:]
    direction = torch.nn.functional.normalize(torch.randn(key_dim, dtype=torch.float64, generator=generator), dim=0)
    ends, origin = distances[:, None] * direction, torch.zeros(1, key_dim, dtype=torch.float64)

    def estimates(of_variance: float) -> Tensor:
        waves = Fourier(
            key_dim, num_frequencies=frequencies, variance=of_variance, sampler="gaussian", generator=generator
        )
        return (waves.queries(ends) @ waves.keys(origin).mT).flatten()

    exact = Gaussian(variance)(ends, origin).flatten()
    return FrequencyLaw(
        variance=variance,
        key_dim=key_dim,
        frequencies=frequencies,
        distances=tuple(distances.tolist()),
        exact=tuple(exact.tolist()),
        right=tuple(estimates(variance).tolist()),
        wrong=tuple(estimates(1 / variance).tolist()),
        standard_errors=tuple(((1 - exact.square()) / math.sqrt(2 * frequencies)).tolist()),
        seed=seed,
    )
