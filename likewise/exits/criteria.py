"""When to stop: a score per example, where higher is safer.

A criterion sees one head at a time and only the rows that are still there. What it must remember of a row from head to
head is a row of `state`, which leaves with it; so the decision about an example can depend on no other example.
"""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor

from likewise.checks import require, require_count
from likewise.similarity import distance_blocks, squared_distances


@dataclass(frozen=True, eq=False)
class Seen:
    """What one head says of some rows. position: how many segments they went through."""

    head: int
    position: int
    features: Float[Tensor, "B F"]
    logits: Float[Tensor, "B C"]

    @property
    def probabilities(self) -> Float[Tensor, "B C"]:
        return self.logits.softmax(1)

    @property
    def classes(self) -> Int64[Tensor, "B"]:
        return self.logits.argmax(1)


class Criterion(ABC):
    """score, state = criterion.step(seen, state). `a & b` asks for both, `a | b` for either."""

    @property
    def width(self) -> int:
        """How many numbers are remembered per row: 0 for most, and heads that cannot exit then need not run."""
        return 0

    def highest(self, head: int) -> float:
        """No score at this head is above; a threshold that is can never be reached."""
        return 1.0

    def macs(self, head: int) -> int:
        """Multiply-adds per example at a head, beyond the head's own."""
        return 0

    def step(self, seen: Seen, state: Float[Tensor, "B W"]) -> tuple[Float[Tensor, "B"], Float[Tensor, "B W"]]:
        """Scores of these rows, and what is to be remembered of them."""
        return self.score(seen), state

    @abstractmethod
    def score(self, seen: Seen) -> Float[Tensor, "B"]:
        """Scores of these rows, from this head alone."""

    def __and__(self, other: "Criterion") -> "Combined":
        return Combined(self, other, both=True)

    def __or__(self, other: "Criterion") -> "Combined":
        return Combined(self, other, both=False)

    def at(self, threshold: float) -> "At":
        """1 where the score reaches a threshold, else 0."""
        return At(self, threshold)


@dataclass(frozen=True)
class MaxProbability(Criterion):
    """p_(1), the largest probability.

    >>> seen = Seen(0, 1, torch.zeros(1, 1), torch.tensor([[math.log(3.0), 0.0]]))
    >>> MaxProbability().score(seen)
    tensor([0.7500])
    """

    def score(self, seen: Seen) -> Float[Tensor, "B"]:
        return seen.probabilities.amax(1)


@dataclass(frozen=True)
class Entropy(Criterion):
    """1 - H(p) / log C: 1 when one class has all, 0 when all are alike.

    >>> Entropy().score(Seen(0, 1, torch.zeros(1, 1), torch.zeros(1, 4)))
    tensor([0.])

    Paper: BranchyNet, arXiv 1709.01686, section 3.2. Differs: one minus it, divided by log C, and per example.
    """

    def score(self, seen: Seen) -> Float[Tensor, "B"]:
        return 1 - torch.special.entr(seen.probabilities).sum(1) / math.log(seen.logits.shape[1])


@dataclass(frozen=True)
class Margin(Criterion):
    """p_(1) - p_(2).

    >>> seen = Seen(0, 1, torch.zeros(1, 1), torch.tensor([[math.log(3.0), 0.0]]))
    >>> Margin().score(seen)
    tensor([0.5000])
    """

    def score(self, seen: Seen) -> Float[Tensor, "B"]:
        first, second = seen.probabilities.topk(2, dim=1).values.unbind(1)
        return first - second


@dataclass(frozen=True, eq=False)
class Neighbours(Criterion):
    """The share of the k nearest training features at this head whose label is the head's class.

    support: features of the same training examples at every head. Equal distances go to the earlier example.
    """

    support: tuple[Float[Tensor, "N _"], ...]
    labels: Int64[Tensor, "N"]
    k: int = 10

    def __post_init__(self) -> None:
        require_count("Neighbours", "k", self.k)
        require(self.k <= len(self.labels), "Neighbours", "k", f"be at most the {len(self.labels)} examples", self.k)

    def macs(self, head: int) -> int:
        return self.support[head].numel()

    def score(self, seen: Seen) -> Float[Tensor, "B"]:
        return (self.nearest(seen) == seen.classes[:, None]).float().mean(1)

    def vote(self, seen: Seen) -> Int64[Tensor, "B"]:
        """The commonest label among the k nearest; of equally common ones the least."""
        return self.nearest(seen).mode(1).values

    def nearest(self, seen: Seen) -> Int64[Tensor, "B k"]:
        """Labels of the k nearest."""
        support = self.support[seen.head].to(seen.features.device)
        order = [d.sort(dim=1, stable=True).indices[:, : self.k] for _, d in distance_blocks(seen.features, support)]
        none = torch.zeros(0, self.k, dtype=torch.int64, device=seen.features.device)
        return self.labels.to(seen.features.device)[torch.cat([none, *order])]


@dataclass(frozen=True, eq=False)
class Patience(Criterion):
    """How many heads in a row, this one included, say the same class; a threshold of m is a patience of m heads.

    of: whose class is meant: the heads' own, or the neighbours' vote at each head.

    Paper: BERT Loses Patience, arXiv 2006.04152. Differs: counts agreeing heads, where theirs counts agreements.
    """

    of: Neighbours | None = None

    @property
    def width(self) -> int:
        return 2

    def highest(self, head: int) -> float:
        return head + 1.0

    def macs(self, head: int) -> int:
        return 0 if self.of is None else self.of.macs(head)

    def score(self, seen: Seen) -> Float[Tensor, "B"]:
        return torch.ones(len(seen.logits), device=seen.logits.device)

    def step(self, seen: Seen, state: Float[Tensor, "B W"]) -> tuple[Float[Tensor, "B"], Float[Tensor, "B W"]]:
        # A new row remembers class 0 in a run of 0 heads, so that the first run has length 1 whatever its class.
        now = (seen.classes if self.of is None else self.of.vote(seen)).to(state.dtype)
        before, run = state.unbind(1)
        run = torch.where(now == before, run, 0) + 1
        return run, torch.stack([now, run], dim=1)


@dataclass(frozen=True, eq=False)
class ClassMeans(Criterion):
    """1 - d_own / d_other, at least 0: how much nearer the mean of the head's class is than that of any other.

    means: of each class, at every head. The cheap case: nothing is trained and C x F numbers are kept.

    >>> means = (torch.tensor([[0.0], [4.0]]),)
    >>> ClassMeans(means).score(Seen(0, 1, torch.tensor([[1.0]]), torch.tensor([[1.0, 0.0]])))
    tensor([0.6667])

    Paper: arXiv 2103.01148. Differs: the class is the head's, and the score a ratio of distances instead of a softmax.
    """

    means: tuple[Float[Tensor, "C _"], ...]

    def macs(self, head: int) -> int:
        return self.means[head].numel()

    def score(self, seen: Seen) -> Float[Tensor, "B"]:
        distances = squared_distances(seen.features, self.means[seen.head].to(seen.features.device)).sqrt()
        own = distances.gather(1, seen.classes[:, None])[:, 0]
        other = distances.scatter(1, seen.classes[:, None], math.inf).amin(1)
        return torch.where(own < other, 1 - own / other, 0)


@dataclass(frozen=True, eq=False)
class PredictedDepth(Criterion):
    """position - predicted depth: by how many segments this head stands behind the example's predicted depth.

    The prediction is weights . features + bias, one regression per head; a threshold is the slack.

    >>> rule = PredictedDepth((torch.tensor([2.0]),), (1.0,))
    >>> rule.score(Seen(0, 4, torch.tensor([[0.5]]), torch.zeros(1, 2)))
    tensor([2.])
    """

    weights: tuple[Float[Tensor, "_"], ...]
    biases: tuple[float, ...]

    def highest(self, head: int) -> float:
        return math.inf

    def macs(self, head: int) -> int:
        return self.weights[head].numel()

    def score(self, seen: Seen) -> Float[Tensor, "B"]:
        weights = self.weights[seen.head].to(seen.features)
        return seen.position - (seen.features @ weights + self.biases[seen.head])


@dataclass(frozen=True, eq=False)
class At(Criterion):
    """1 where another criterion has reached a threshold of its own, else 0: puts it on the scale of probabilities.

    `MaxProbability() & Patience().at(2)` is the largest probability, once two heads agree.
    """

    criterion: Criterion
    threshold: float

    @property
    def width(self) -> int:
        return self.criterion.width

    def highest(self, head: int) -> float:
        return float(self.criterion.highest(head) >= self.threshold)

    def macs(self, head: int) -> int:
        return self.criterion.macs(head)

    def score(self, seen: Seen) -> Float[Tensor, "B"]:
        return self._reached(self.criterion.score(seen))

    def step(self, seen: Seen, state: Float[Tensor, "B W"]) -> tuple[Float[Tensor, "B"], Float[Tensor, "B W"]]:
        score, state = self.criterion.step(seen, state)
        return self._reached(score), state

    def _reached(self, score: Float[Tensor, "B"]) -> Float[Tensor, "B"]:
        return (score.double() >= self.threshold).float()


@dataclass(frozen=True, eq=False)
class Combined(Criterion):
    """The lower of two scores (`both` must be safe), or the higher (either may be); write `a & b` or `a | b`."""

    first: Criterion
    second: Criterion
    both: bool

    @property
    def width(self) -> int:
        return self.first.width + self.second.width

    def highest(self, head: int) -> float:
        return (min if self.both else max)(self.first.highest(head), self.second.highest(head))

    def macs(self, head: int) -> int:
        return self.first.macs(head) + self.second.macs(head)

    def score(self, seen: Seen) -> Float[Tensor, "B"]:
        return self._combined(self.first.score(seen), self.second.score(seen))

    def step(self, seen: Seen, state: Float[Tensor, "B W"]) -> tuple[Float[Tensor, "B"], Float[Tensor, "B W"]]:
        mine, other = state.split([self.first.width, self.second.width], dim=1)
        first, mine = self.first.step(seen, mine)
        second, other = self.second.step(seen, other)
        return self._combined(first, second), torch.cat([mine, other], dim=1)

    def _combined(self, first: Float[Tensor, "B"], second: Float[Tensor, "B"]) -> Float[Tensor, "B"]:
        return (torch.minimum if self.both else torch.maximum)(first, second)


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
