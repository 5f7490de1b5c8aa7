"""The problem on which embedding is timed: images of noise, as many at a time as asked. Needs only torch."""

import torch
from torch import Generator, Tensor

AS_MADE, LAST, COUNT = "as it is made", "channels last", "multiply-adds of one image"
BATCHES = (1, 8, 16, 32, 64)


def images(number: int, side: int) -> tuple[Tensor]:
    """The same numbers in every process."""
    return (torch.randn(number, 3, side, side, generator=Generator().manual_seed(number)),)
