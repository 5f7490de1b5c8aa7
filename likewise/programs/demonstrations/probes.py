"""What was said about prediction depth, run: a small network is trained, and nearest neighbours vote after every layer.

The task is the sign of x_1 x_2 among ten coordinates: neighbours of the raw input see it badly, the network learns it.
Imported only where programs run, for it needs torch. Nothing is random but what a fixed generator draws.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise

import torch
from torch import Tensor

from likewise.similarity import squared_distances

EXAMPLES, WIDTHS, NEIGHBOURS = 800, (10, 24, 24, 24, 2), 15
STEPS, RATE = 120, 0.3


@dataclass(frozen=True)
class Probed:
    """Held-out examples: `votes[l, i]` is the class that the neighbours of example i have after l layers."""

    labels: Tensor
    predictions: Tensor
    votes: Tensor
    supports: tuple[int, ...]  # training examples of each probe

    @property
    def depths(self) -> Tensor:
        """From which probe on all agree with the network: 1 + the last one that does not, or 0."""
        places = torch.arange(1, len(self.votes) + 1)[:, None]
        return ((self.votes != self.predictions) * places).amax(dim=0)


def support_lost() -> int:
    """How many training examples the last probe has fewer than the first.

    >>> support_lost()
    0
    """
    return probed().supports[0] - probed().supports[-1]


def deep_layer_gain() -> float:
    """Accuracy of the last probe minus that of the first, which sees the raw input.

    >>> deep_layer_gain() > 0.1
    True
    """
    right = (probed().votes == probed().labels).double().mean(dim=1)
    return (right[-1] - right[0]).item()


def deep_example_gain() -> float:
    """The network's accuracy on examples of depth 3 or more minus that on examples of depth 0.

    >>> deep_example_gain() < -0.2
    True
    """
    right, depths = (probed().predictions == probed().labels).double(), probed().depths
    return (right[depths >= 3].mean() - right[depths == 0].mean()).item()


@cache
def probed() -> Probed:
    """The whole study, a tenth of a second."""
    generator = torch.Generator().manual_seed(0)
    x, labels = _examples(generator)
    queries, query_labels = _examples(generator)
    weights = _trained(x, labels, generator)
    with torch.no_grad():
        probes = list(zip(_activations(weights, x), _activations(weights, queries), strict=True))
    votes = [_vote(support, labels, query) for support, query in probes]
    predictions = probes[-1][1].argmax(dim=1)
    return Probed(query_labels, predictions, torch.stack(votes), tuple(len(support) for support, _ in probes))


def _examples(generator: torch.Generator) -> tuple[Tensor, Tensor]:
    x = torch.randn(EXAMPLES, WIDTHS[0], generator=generator)
    return x, (x[:, 0] * x[:, 1] > 0).long()


def _trained(x: Tensor, labels: Tensor, generator: torch.Generator) -> list[Tensor]:
    """One matrix for each layer, its last row the bias; gradient descent on all examples."""
    drawn = [torch.randn(rows + 1, columns, generator=generator) for rows, columns in pairwise(WIDTHS)]
    weights = [(weight * (2 / (len(weight) - 1)) ** 0.5).requires_grad_() for weight in drawn]
    for _ in range(STEPS):
        chances = _activations(weights, x)[-1]
        loss = -chances.gather(1, labels[:, None]).log().mean()
        slopes = torch.autograd.grad(loss, weights)
        with torch.no_grad():
            for weight, slope in zip(weights, slopes, strict=True):
                weight -= RATE * slope
    return weights


def _activations(weights: Sequence[Tensor], x: Tensor) -> list[Tensor]:
    """The input, what every hidden layer gives, and the softmax."""
    found, one = [x], torch.ones(len(x), 1)
    for weight in weights[:-1]:
        found.append((torch.cat([found[-1], one], dim=1) @ weight).relu())
    return [*found, (torch.cat([found[-1], one], dim=1) @ weights[-1]).softmax(dim=1)]


def _vote(support: Tensor, labels: Tensor, queries: Tensor) -> Tensor:
    """The class of most of the nearest training examples, of two classes."""
    nearest = squared_distances(queries, support).topk(NEIGHBOURS, largest=False).indices
    return (labels[nearest].double().mean(dim=1) > 0.5).long()
