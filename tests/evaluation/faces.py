"""People made of a pattern each, and a network that sees it: nothing of anybody's face."""

import numpy
import torch
from torch import Tensor, nn

from likewise.data import Examples, Preparation
from likewise.data.examples import Stored, examples
from likewise.networks import Network

SIDE = 12
PREPARATION = Preparation((SIDE, SIDE), channels=1)


def drawn_people(people: int, images: int = 4, *, noise: float = 25.0, seed: int = 0) -> Examples:
    """So many people with so many images each: a pattern for each person, and noise."""
    rng = numpy.random.default_rng(seed)
    patterns = rng.uniform(40, 215, (people, 1, SIDE, SIDE, 1))
    pixels = patterns + noise * rng.standard_normal((people, images, SIDE, SIDE, 1))
    stored = Stored(pixels.clip(0, 255).round().astype(numpy.uint8).reshape(-1, SIDE, SIDE, 1))
    names = [f"p{person:02d}" for person in range(people) for _ in range(images)]
    items = [f"{name}/{number:03d}" for number, name in enumerate(names)]
    return examples("drawn", stored, items, names)


class Looking(Network):
    """The pixels through a fixed random matrix, of length 1; it counts the images it is shown."""

    def __init__(self, embedding_dim: int = 16) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(5)
        self.weights = nn.Parameter(torch.randn(SIDE * SIDE, embedding_dim, generator=generator), requires_grad=False)
        self.embedding_dim, self.shown = embedding_dim, 0

    @property
    def segments(self) -> list[tuple[str, nn.Module]]:
        return []

    def __deepcopy__(self, memo: dict[int, object]) -> "Looking":
        return self  # what its form for inference is shown counts too

    def forward(self, x: Tensor) -> Tensor:
        self.shown += 0 if x.is_meta else len(x)  # a count of its cost is no look
        return nn.functional.normalize(x.flatten(1) @ self.weights)


def plain_vectors(examples: Examples, network: Network) -> Tensor:
    with torch.no_grad():
        return network(torch.stack([PREPARATION(examples.read(row)) for row in range(len(examples))]))
