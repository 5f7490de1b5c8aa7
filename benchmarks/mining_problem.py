"""The problem on which mining is timed: unit embeddings of width 128, 40 faces of each identity. Needs only torch."""

import torch
from torch import Generator, Tensor

WIDTH, FACES, MARGIN = 128, 40, 0.2

SEMI_HARD, RANDOM, BATCH_ALL = "closest semi-hard negatives", "random semi-hard negatives", "batch-all, both passes"
# What both sides answer in float64 on a small batch before anything is timed.
SEMI_HARD_LIST, HARD_LIST, EASY_LIST = "every semi-hard triplet", "every hard triplet", "every easy triplet"
BATCH_HARD, LOSS_SUM, LOSS_MEAN = "batch-hard", "batch-all, sum", "batch-all, mean"
CHECKS = (SEMI_HARD_LIST, HARD_LIST, EASY_LIST, BATCH_HARD, LOSS_SUM, LOSS_MEAN)


def inputs(length: int) -> tuple[Tensor, Tensor]:
    """Embeddings and labels, the same in every process; so spread that hard, semi-hard and easy negatives all occur."""
    generator = Generator().manual_seed(length)
    labels = torch.arange(length) // FACES
    centres = torch.randn(-(-length // FACES), WIDTH, generator=generator)
    x = torch.randn(length, WIDTH, generator=generator) + 0.5 * centres[labels]
    return torch.nn.functional.normalize(x, dim=-1), labels


def with_gradient(loss: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
    """A loss as a (1, 1) tensor, and its gradient."""
    return loss.detach().reshape(1, 1), torch.autograd.grad(loss, x)[0]
