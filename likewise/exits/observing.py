"""The outputs of every head for every example, computed once, and what leaving early would lose on each."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from likewise.checks import require
from likewise.exits.criteria import Criterion, Policy, Seen
from likewise.exits.early import EarlyExit
from likewise.exits.splits import Role, Split

SIZE = 256


@dataclass(frozen=True, eq=False)
class Observed:
    """Scores of every head, and logits of every head and of the end, for the examples of a split."""

    criterion: Criterion
    role: Role
    labels: Int64[Tensor, "N"]
    scores: Float[Tensor, "H N"]
    logits: Float[Tensor, "exits N C"]

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def classes(self) -> Int64[Tensor, "exits N"]:
        """What every head, and the end, would answer."""
        return self.logits.argmax(2)

    @property
    def full(self) -> Int64[Tensor, "N"]:
        """What the whole network answers."""
        return self.logits[-1].argmax(1)

    def policy(self, *thresholds: float) -> Policy:
        """The criterion with one threshold for all heads, or one for each."""
        heads = len(self.scores)
        fits = len(thresholds) in (1, heads)
        require(fits, "Observed.policy", "thresholds", f"be one or one for each of {heads} heads", thresholds)
        return Policy(self.criterion, thresholds * heads if len(thresholds) == 1 else thresholds)

    def at(self, exits: Int64[Tensor, "N"]) -> Float[Tensor, "N C"]:
        """The logits with which each example leaves."""
        return self.logits[exits, torch.arange(len(self))]

    def take(self, rows: Int64[Tensor, "n"]) -> "Observed":
        """Some of the examples."""
        return Observed(self.criterion, self.role, self.labels[rows], self.scores[:, rows], self.logits[:, rows])


def observe(exits: EarlyExit, data: Split, *, criterion: Criterion, size: int = SIZE) -> Observed:
    """Run all heads on some data for selection, calibration or test, `size` examples at a time."""
    exits.ledger.take("observe", data, roles=("selection", "calibration", "test"))
    require(not exits.training, "observe", "exits", "be in evaluation mode", "training mode", "Call .eval() first.")
    scores, logits = [], []
    with torch.no_grad():
        for inputs, _ in data.batches(size):
            features, answers = exits.features_and_logits(inputs.to(exits.device))
            state = torch.zeros(len(inputs), criterion.width, device=answers.device)
            rows = []
            for head, place in enumerate(exits.places):
                score, state = criterion.step(Seen(head, place + 1, features[head], answers[:, head]), state)
                rows.append(score)
            scores.append(torch.stack(rows).cpu())
            logits.append(answers.transpose(0, 1).cpu())
    require(len(scores) > 0, "observe", "data", "not be empty", len(data))
    return Observed(criterion, data.role, data.labels, torch.cat(scores, dim=1), torch.cat(logits, dim=1))


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
