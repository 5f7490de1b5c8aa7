"""The problem on which forms of attention are measured: causal, B = 1, H = 8, K = V = 64, float32. Needs only torch."""

import torch
from torch import Generator, Tensor

HEADS, WIDTH, FEATURES = 8, 64, 256


def inputs(length: int) -> tuple[Tensor, Tensor, Tensor]:
    """q, k, v ~ N(0, I), the same in every process."""
    q, k, v = torch.randn(3, 1, HEADS, length, WIDTH, generator=Generator().manual_seed(length))
    return q, k, v


def input_bytes(length: int) -> int:
    """The memory of q, k and v."""
    return 3 * HEADS * length * WIDTH * torch.float32.itemsize


def projection() -> Tensor:
    """Frequencies (F, K) for peers with random features, so that their output can be computed again elsewhere."""
    return torch.randn(FEATURES, WIDTH, generator=Generator().manual_seed(0))
