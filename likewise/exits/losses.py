"""What leaving early may cost: a number per example, whose mean is the risk."""

from collections.abc import Callable
from typing import Literal

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from likewise.exits.observing import Observed

Loss = Literal["disagreement", "harm", "accuracy gap", "Brier gap"]


def disagreement(seen: Observed, exits: Int64[Tensor, "N"]) -> Float[Tensor, "N"]:
    """1 where the answer is not that of the whole network. It needs no labels."""
    return (seen.at(exits).argmax(1) != seen.full).double()


def harm(seen: Observed, exits: Int64[Tensor, "N"]) -> Float[Tensor, "N"]:
    """1 where the answer is wrong and that of the whole network is right."""
    return ((seen.at(exits).argmax(1) != seen.labels) & (seen.full == seen.labels)).double()


def accuracy_gap(seen: Observed, exits: Int64[Tensor, "N"]) -> Float[Tensor, "N"]:
    """1 for harm, -1 where the answer is right and that of the whole network wrong; the mean is the accuracy lost."""
    return (seen.full == seen.labels).double() - (seen.at(exits).argmax(1) == seen.labels).double()


def brier_gap(seen: Observed, exits: Int64[Tensor, "N"]) -> Float[Tensor, "N"]:
    """How much worse the probabilities are than those of the whole network: |p - y|^2 / 2, the difference."""
    return _brier(seen.at(exits), seen.labels) - _brier(seen.logits[-1], seen.labels)


def _brier(logits: Float[Tensor, "N C"], labels: Int64[Tensor, "N"]) -> Float[Tensor, "N"]:
    truth = torch.nn.functional.one_hot(labels, logits.shape[1])
    return (logits.double().softmax(1) - truth).square().sum(1) / 2


# Each with the least value that it can have; the greatest is 1.
LOSSES: dict[str, tuple[Callable[[Observed, Tensor], Tensor], float]] = {
    "disagreement": (disagreement, 0.0),
    "harm": (harm, 0.0),
    "accuracy gap": (accuracy_gap, -1.0),
    "Brier gap": (brier_gap, -1.0),
}
