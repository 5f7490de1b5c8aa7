"""Small things to train on."""

import torch
from torch import Tensor, nn

from likewise.data import Batch, Batches, Preparation, digits
from likewise.data.batches import Augmentation, Shuffled

SEED = 3


def feed(*, size: int = 40, count: int = 200, workers: int = 0) -> Batches:
    some = digits().take(range(count))
    return Batches(
        some, Preparation((8, 8), channels=1), Shuffled(count, size, SEED), Augmentation(), seed=SEED, workers=workers
    )


def small(*, dropout: float = 0.0, dtype: torch.dtype = torch.float32, batch_norm: bool = False) -> nn.Sequential:
    """A convolutional embedder with chance in it, if asked."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(SEED)
        norm = nn.BatchNorm2d(5) if batch_norm else nn.Identity()
        layers = [nn.Conv2d(1, 5, 3), norm, nn.Tanh(), nn.Flatten(), nn.Dropout(dropout), nn.Linear(5 * 36, 7)]
        return nn.Sequential(*layers, Unit()).to(dtype)


class Unit(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x / x.norm(dim=1, keepdim=True)


def batch(labels: list[int], *, step: int = 0, seed: int = 1) -> Batch:
    images = torch.randn(len(labels), 1, 8, 8, generator=torch.Generator().manual_seed(seed))
    return Batch(images, torch.tensor(labels, dtype=torch.int64), torch.arange(len(labels)), step)
