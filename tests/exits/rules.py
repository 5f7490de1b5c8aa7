"""One criterion of each kind for the small problem: a new one is a new row."""

import torch

from likewise.exits import (
    ClassMeans,
    Criterion,
    Entropy,
    Margin,
    MaxProbability,
    Neighbours,
    Patience,
    PredictedDepth,
)
from tests.exits.problems import CLASSES, HEADS, WIDTH


def drawn(*shape: int, seed: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def neighbours() -> Neighbours:
    labels = torch.arange(31) % CLASSES
    return Neighbours(tuple(drawn(31, WIDTH, seed=head) for head in range(len(HEADS))), labels, k=4)


# A criterion and a threshold that some examples reach at each head, and some do not.
CRITERIA: dict[str, tuple[Criterion, float]] = {
    "max probability": (MaxProbability(), 0.7),
    "entropy": (Entropy(), 0.5),
    "margin": (Margin(), 0.4),
    "patience": (Patience(), 2.0),
    "neighbours": (neighbours(), 0.5),
    "patience of neighbours": (Patience(neighbours()), 2.0),
    "class means": (ClassMeans(tuple(drawn(CLASSES, WIDTH, seed=head) for head in range(len(HEADS)))), 0.1),
    "predicted depth": (PredictedDepth(tuple(drawn(WIDTH, seed=head) for head in range(3)), (1.0, 2.0, 3.0)), 1.0),
    "both": (MaxProbability() & Patience().at(2), 0.6),
    "either": (Margin() | Patience(neighbours()).at(3), 0.7),
}
