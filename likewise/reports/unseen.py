"""Embeddings of small images: seven digits to learn from, three never seen, and a network that learns in seconds."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count

import numpy
import torch
from jaxtyping import Float, Int64
from torch import Generator, Tensor, nn
from torch.nn import functional

from likewise.data import Batch, Examples, Preparation, Stored, digits, examples
from likewise.metric import IdentitySampler
from likewise.networks import Network
from likewise.networks.facenet import UnitLength
from likewise.networks.segments import before_relu
from likewise.reports.learning import seeded
from likewise.training.objectives import drawn

# None of the other seven, turned or mirrored, looks like one of these; a turned 6 is a 9, so both are kept back.
UNSEEN = ("6", "8", "9")
PREPARATION = Preparation((8, 8), channels=1)


def split_digits() -> tuple[Examples, Examples]:
    """scikit-learn's digits: seven of them in eight positions each, turned and mirrored, and three as they are.

    A network that has seen seven classes tells seven classes apart and no more. A turned or mirrored digit is another
    shape, so it counts as another class: 56 in all.
    """
    whole = digits()
    seen = whole.without(UNSEEN)
    pixels = numpy.stack([seen.read(row) for row in range(len(seen))])
    names = [seen.identities[label] for label in seen.labels.tolist()]
    images, items, identities = [], [], []
    for position in range(8):
        turned = numpy.rot90(pixels, position % 4, axes=(1, 2))
        images.append(turned if position < 4 else turned[:, :, ::-1])
        items += [f"{item}/{position}" for item in seen.items]
        identities += [f"{name} in position {position}" for name in names]
    stored = Stored(numpy.ascontiguousarray(numpy.concatenate(images)))
    return examples("digits, turned and mirrored", stored, items, identities), whole.of(UNSEEN)


def prepared(some: Examples) -> Float[Tensor, "N 1 8 8"]:
    """All images as the network takes them."""
    return torch.stack([PREPARATION(some.read(row)) for row in range(len(some))])


class SmallNetwork(Network):
    """Two convolutions, the larger of four neighbours, a linear layer to the embedding, and length 1."""

    def __init__(self, channels: int, embedding_dim: int, *, seed: int) -> None:
        super().__init__()
        self.embedding_dim = embedding_dim
        with seeded(seed):
            first = before_relu(nn.Conv2d(1, channels, 3, padding=1))
            second = before_relu(nn.Conv2d(channels, channels, 3, padding=1))
            self.body = nn.Sequential(first, nn.ReLU(), second, nn.ReLU(), nn.MaxPool2d(2), nn.Flatten())
            self.embedding = nn.Linear(16 * channels, embedding_dim)
        self.unit = UnitLength()

    @property
    def segments(self) -> list[tuple[str, nn.Module]]:
        return [("body", self.body), ("embedding", self.embedding), ("unit", self.unit)]


@dataclass(frozen=True, eq=False)
class InMemory:
    """Batches of identities out of images that are in memory, each image moved by up to a pixel, by seed and step."""

    images: Float[Tensor, "N 1 8 8"]
    labels: Int64[Tensor, "N"]
    sampler: IdentitySampler

    def since(self, step: int) -> Iterator[Batch]:
        for number in count(step):
            epoch, place = divmod(number, len(self.sampler))
            rows = torch.tensor(self.sampler.rows(epoch=epoch, batch=place))
            yield Batch(moved(self.images[rows], drawn(self.sampler.seed, number)), self.labels[rows], rows, number)


def moved(images: Float[Tensor, "B 1 8 8"], generator: Generator) -> Float[Tensor, "B 1 8 8"]:
    """Every image by -1, 0 or 1 pixels down and across; paper comes in from the edge."""
    wide = functional.pad(images[:, 0], (1, 1, 1, 1), value=-1.0)
    down, across = torch.randint(3, (2, len(images), 1, 1), generator=generator)
    pixels = torch.arange(8)
    return wide[torch.arange(len(images))[:, None, None], down + pixels[:, None], across + pixels][:, None]
