"""A network and data whose prediction depths are known, because they were planted.

An input is P blocks of C numbers, block l scaled by 2^-4l. Every layer drops the first block and multiplies the rest by
2^4, which is exact, so that probe l sees block l and next to nothing of those behind; the last block is the logits.
Block l is one-hot(s_l) with a little noise: an anchor has its label in every block, a planted example any sequence s.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import torch
from torch import Generator, Tensor, nn

CLASSES, PROBES, ANCHORS, K = 4, 6, 60, 30
NOISE, LOGIT = 0.02, 6.0
LAYERS = [f"layer{number}" for number in range(1, PROBES - 1)]


class Drop(nn.Module):
    """Forget the first block and magnify the rest."""

    def forward(self, x: Tensor) -> Tensor:
        return x[:, CLASSES:] * 2**4


class Conforming(nn.Module):
    """The layers, registered in reverse order of their execution; `offset` is added to the last hidden one's output."""

    def __init__(self, offset: float = 0.0) -> None:
        super().__init__()
        for number in reversed(range(1, PROBES)):
            setattr(self, f"layer{number}", Drop())
        self.lifted, self.lowered = Shift(offset), Shift(-offset)

    def forward(self, x: Tensor) -> Tensor:
        for number in range(1, PROBES - 1):
            x = getattr(self, f"layer{number}")(x)
        return getattr(self, f"layer{PROBES - 1}")(self.lowered(self.lifted(x)))


class Shift(nn.Module):
    """Add a constant."""

    def __init__(self, offset: float) -> None:
        super().__init__()
        self.offset = offset

    def forward(self, x: Tensor) -> Tensor:
        return x + self.offset


@dataclass(frozen=True)
class Set:
    """Inputs, their labels, and their planted depths; -1 for anchors, whose depth is nobody's concern."""

    inputs: Tensor
    labels: Tensor
    depths: Tensor

    @property
    def pair(self) -> tuple[Tensor, Tensor]:
        return self.inputs, self.labels

    def __add__(self, other: "Set") -> "Set":
        parts = zip((self.inputs, self.labels, self.depths), (other.inputs, other.labels, other.depths), strict=True)
        return Set(*(torch.cat(pair) for pair in parts))


def made(sequences: list[list[int]], logits: Tensor, labels: list[int], depths: list[int], generator: Generator) -> Set:
    """Examples whose hidden blocks follow the sequences."""
    hidden = nn.functional.one_hot(torch.tensor(sequences), CLASSES).double()
    hidden += NOISE * (2 * torch.rand(hidden.shape, generator=generator, dtype=torch.float64) - 1)
    scales = 2.0 ** (-4 * torch.arange(PROBES, dtype=torch.float64))
    blocks = torch.cat([hidden, logits.double()[:, None]], dim=1) * scales[:, None]
    return Set(blocks.flatten(1).float(), torch.tensor(labels), torch.tensor(depths))


def anchors(generator: Generator) -> Set:
    """60 of each class, sorted by class."""
    labels = [label for label in range(CLASSES) for _ in range(ANCHORS)]
    logits = LOGIT * nn.functional.one_hot(torch.tensor(labels), CLASSES)
    logits = logits + NOISE * torch.rand(logits.shape, generator=generator)
    return made([[label] * (PROBES - 1) for label in labels], logits, labels, [-1] * len(labels), generator)


def doubtful(generator: Generator) -> Set:
    """40 anchors of class 1 that the network is nearly undecided about."""
    logits = torch.tensor([2.98, 3.02, 0.0, 0.0]).repeat(40, 1)
    return made([[1] * (PROBES - 1)] * 40, logits, [1] * 40, [-1] * 40, generator)


def patterns() -> Iterator[tuple[bool, ...]]:
    """Every way in which the input and the hidden probes can agree or not."""
    return product((True, False), repeat=PROBES - 1)


def planted(generator: Generator, predicted: int, *, every: int = 1, mislabelled: bool = True) -> Set:
    """An example for each pattern of agreement with a class; every second label is another than the class."""
    chosen = list(patterns())[::every]
    other = (predicted + 1) % CLASSES
    sequences = [[predicted if agrees else other for agrees in pattern] for pattern in chosen]
    depths = [1 + max((place for place, agrees in enumerate(pattern) if not agrees), default=-1) for pattern in chosen]
    logits = LOGIT * nn.functional.one_hot(torch.full((len(chosen),), predicted), CLASSES)
    labels = [(predicted + 2) % CLASSES if mislabelled and number % 2 else predicted for number in range(len(chosen))]
    return made(sequences, logits.float(), labels, depths, generator)


def undefined(generator: Generator) -> Set:
    """Examples of class 0 to the network, of class 1 to the neighbours of their softmax."""
    logits = torch.tensor([3.005, 2.995, 0.0, 0.0]).repeat(8, 1)
    return made([[0] * (PROBES - 1)] * 8, logits, [0] * 8, [PROBES] * 8, generator)


def training_set(seed: int = 0) -> Set:
    """Anchors, and planted examples, fewer than half of k at any place."""
    generator = Generator().manual_seed(seed)
    return anchors(generator) + doubtful(generator) + planted(generator, 2, every=3, mislabelled=False)


def held_out_set(seed: int = 1) -> Set:
    """Planted and undefined examples."""
    generator = Generator().manual_seed(seed)
    return planted(generator, 0) + planted(generator, 3) + undefined(generator)
