"""The contract table of feature maps: a new map is a new row, and every contract runs on it."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from likewise.attention import (
    Elu,
    Exponential,
    FeatureMap,
    Fourier,
    Gaussian,
    Hyperbolic,
    Monomials,
    Polynomial,
    Positive,
    Quadratic,
    Relu,
    SoftmaxFourier,
    Taylor,
)
from likewise.attention.kernels import SimilarityKernel, Truncated
from tests.attention.calibration import fitted
from tests.attention.drawing import seeded

K = 5


@dataclass(frozen=True)
class Row:
    """What a map must be. No kernel: it has the one that it induces. No dim: its features are as wide as its input."""

    make: Callable[..., FeatureMap]
    kernel: SimilarityKernel | None = None
    dim: int | None = None
    exact: bool = True
    positive: bool = False


# No parameter is at its default where a default could hide a mistake (variance 1, scale 1/sqrt(K)).
ROWS = {
    "Elu": Row(lambda key_dim: Elu(), positive=True),
    "Relu": Row(lambda key_dim: Relu()),
    "Quadratic": Row(Quadratic, Polynomial(2, 1.0), 21),
    "Monomials": Row(partial(Monomials, degree=3, constant=1.3), Polynomial(3, 1.3), 56),
    "Taylor": Row(partial(Taylor, scale=0.6), Truncated(0.6), 21, positive=True),
    "Fourier": Row(partial(Fourier, num_frequencies=11, variance=3.0), Gaussian(3.0), 22, exact=False),
    "SoftmaxFourier": Row(partial(SoftmaxFourier, num_frequencies=7, scale=0.3), Exponential(0.3), 14, exact=False),
    "Positive": Row(partial(Positive, num_features=13, scale=0.3), Exponential(0.3), 13, exact=False, positive=True),
    "Hyperbolic": Row(partial(Hyperbolic, num_features=6, scale=0.3), Exponential(0.3), 6, exact=False, positive=True),
    "Fitted": Row(partial(fitted, num_features=17, scale=0.3), Exponential(0.3), 17, exact=False, positive=True),
}
RANDOM = [name for name, row in ROWS.items() if not row.exact]


def build(name: str, *, seed: int = 0) -> FeatureMap:
    """The map of a row; the seed is that of its frequencies, if it has any."""
    row = ROWS[name]
    return row.make(K) if row.exact else row.make(K, generator=seeded(seed))


def draw(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float64) -> Tensor:
    """Standard normal numbers that depend on the shape and the seed only."""
    return torch.randn(shape, generator=seeded(math.prod(shape) + seed), dtype=torch.float64).to(dtype)
