"""A criterion with a threshold for every head: who leaves where."""

import math
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor

from likewise.checks import require
from likewise.exits.criteria import Criterion


@dataclass(frozen=True)
class Policy:
    """An example leaves at the first head i with score_i >= thresholds[i], and else at the end."""

    criterion: Criterion
    thresholds: tuple[float, ...]

    def __post_init__(self) -> None:
        numbers = not any(math.isnan(threshold) for threshold in self.thresholds)
        require(numbers, "Policy", "thresholds", "be numbers", self.thresholds)

    def can_exit(self, head: int) -> bool:
        """Whether any score at this head could reach its threshold."""
        return self.thresholds[head] <= self.criterion.highest(head)

    def needs(self, head: int) -> bool:
        """Whether the head must run: somebody may leave there, or at a later one that remembers this one."""
        if self.criterion.width:
            return any(self.can_exit(later) for later in range(head, len(self.thresholds)))
        return self.can_exit(head)

    def leaves(self, scores: Float[Tensor, "B"], *, head: int) -> Bool[Tensor, "B"]:
        """Who may leave at a head. Compared in float64, so that no threshold is rounded; NaN never leaves."""
        return scores.double() >= self.thresholds[head]

    def exits(self, scores: Float[Tensor, "H N"]) -> Int64[Tensor, "N"]:
        """Where examples with these scores leave: the number of a head, or the number of heads for the end.

        >>> from likewise.exits.criteria import MaxProbability
        >>> Policy(MaxProbability(), (0.75, 0.5)).exits(torch.tensor([[0.75, 0.6, 0.1], [1.0, 0.5, 0.4]]))
        tensor([0, 1, 2])
        """
        leaves = [self.leaves(row, head=head) for head, row in enumerate(scores)]
        last = torch.ones(scores.shape[1], dtype=torch.bool, device=scores.device)
        return torch.stack([*leaves, last]).int().argmax(0)
