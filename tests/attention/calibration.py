"""Fitted maps, for the tables: to rows with an offset and another spread along every axis, the same for all heads."""

import torch
from torch import Generator, Tensor

from likewise.attention import Fitted
from likewise.attention.frequencies import Sampler

POSITIONS = 23


def calibration(key_dim: int) -> tuple[Tensor, Tensor]:
    """Queries and keys of one head, (N, K) each, with covariances that are not diagonal."""
    generator = torch.Generator().manual_seed(41)

    def rows(first: float, last: float, offset: float) -> Tensor:
        spread = torch.linspace(first, last, key_dim, dtype=torch.float64)
        mixing = torch.eye(key_dim, dtype=torch.float64) + 0.3
        offsets = offset * torch.randn(key_dim, dtype=torch.float64, generator=generator)
        drawn = torch.randn(POSITIONS, key_dim, dtype=torch.float64, generator=generator)
        return drawn * spread @ mixing + offsets

    return rows(0.7, 0.1, 0.2), rows(0.2, 0.5, 0.3)


def fitted(
    key_dim: int,
    *,
    num_features: int = 17,
    scale: float | None = 0.3,
    kv_heads: int = 1,
    sampler: Sampler = "orthogonal",
    generator: Generator | None = None,
) -> Fitted:
    """A map with the statistics of `calibration` for every head."""
    phi = Fitted(
        key_dim, num_features=num_features, scale=scale, kv_heads=kv_heads, sampler=sampler, generator=generator
    )
    q, k = (x.expand(1, kv_heads, -1, -1) for x in calibration(key_dim))
    return phi.fit(q, k)
