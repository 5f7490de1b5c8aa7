"""What prediction depth found, per example and in sum."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from jaxtyping import Bool, Float, Int64
from torch import Tensor

from likewise.difficulty.plan import DepthPlan


@dataclass(frozen=True, eq=False)
class Depths:
    """Examples of one set and, for each k, from which probe on all agree with the network.

    rows: which examples of the set they are. predicted: the network's class. sweep[k]: 0, every probe agrees, to
    `probes`, where already the softmax probe does not and the depth is undefined.

    >>> from torch import tensor as one
    >>> found = Depths(one([0, 1, 2]), one([1, 1, 0]), one([1, 0, 0]), 30, {30: one([0, 2, 3])}, probes=3, classes=2)
    >>> found.undefined.tolist(), found.counts.tolist(), found.accuracy_by_depth.tolist()
    ([False, False, True], [1, 0, 1, 1], [1.0, nan, 0.0, 1.0])
    """

    rows: Int64[Tensor, "N"]
    labels: Int64[Tensor, "N"]
    predicted: Int64[Tensor, "N"]
    k: int
    sweep: Mapping[int, Int64[Tensor, "N"]]
    probes: int
    classes: int

    def __len__(self) -> int:
        return len(self.rows)

    def __repr__(self) -> str:
        if not len(self):
            return "Depths(of nothing)"
        low, high = self.depth.min().item(), self.depth.max().item()
        return f"Depths({len(self):,} examples, mean {self.mean():.2f}, {low} to {high} of {self.probes})"

    @property
    def depth(self) -> Int64[Tensor, "N"]:
        """Of the k that was asked for."""
        return self.sweep[self.k]

    @property
    def undefined(self) -> Bool[Tensor, "N"]:
        """Where neighbours of the softmax itself contradict the network."""
        return self.depth == self.probes

    @property
    def undefined_rate(self) -> float:
        """The part of the examples that has no depth."""
        return self.undefined.double().mean().item()

    @property
    def correct(self) -> Bool[Tensor, "N"]:
        """Where the network gives the label."""
        return self.predicted == self.labels

    @property
    def accuracy(self) -> float:
        """The network's."""
        return self.correct.double().mean().item()

    def mean(self, *, defined_only: bool = False) -> float:
        """The mean depth; an undefined one counts as `probes` or is left out."""
        kept = self.depth[~self.undefined] if defined_only else self.depth
        return kept.double().mean().item()

    @property
    def counts(self) -> Int64[Tensor, "depths"]:
        """How many examples have depth 0, 1, ..., `probes`."""
        return self.depth.bincount(minlength=self.probes + 1)

    @property
    def accuracy_by_depth(self) -> Float[Tensor, "depths"]:
        """The network's accuracy on the examples of each depth; NaN where there are none."""
        right = self.depth.bincount(weights=self.correct.double(), minlength=self.probes + 1)
        return right / self.counts

    @property
    def classes_by_depth(self) -> Int64[Tensor, "depths C"]:
        """How many examples with each label have each depth."""
        cells = self.depth * self.classes + self.labels
        return cells.bincount(minlength=(self.probes + 1) * self.classes).view(self.probes + 1, self.classes)


@dataclass(frozen=True, eq=False)
class Curve:
    """Every probe's answers for a sample of one set: a row for each k, a column for each probe.

    accuracy: how often the neighbours' class is the label; agreement: how often it is the network's class.
    """

    rows: Int64[Tensor, "n"]
    ks: tuple[int, ...]
    accuracy: Float[Tensor, "k P"]
    agreement: Float[Tensor, "k P"]


@dataclass(frozen=True)
class Reads:
    """How many numbers queries were compared with: queries x support x width, over all layers.

    short: of queries that no probe had contradicted yet. sample: of others, for the curves. full: all queries at all
    layers.
    """

    short: int
    sample: int
    full: int

    @property
    def saving(self) -> float:
        """How many times fewer the short circuit needs."""
        return self.full / self.short if self.short else 1.0


@dataclass(frozen=True, eq=False)
class PredictionDepth:
    """Depths of training and held-out examples, and all that they depend on.

    layers: the probes, input first. curves: what every probe says of a sample of "train" and "test". recomputed: for
    how many queries single precision could not settle the neighbours. settings: everything that the numbers depend on
    besides model and data, whose hash with them is `fingerprint`.
    """

    layers: tuple[str, ...]
    k: int
    train: Depths
    test: Depths | None
    curves: Mapping[str, Curve]
    reads: Reads
    recomputed: int
    plan: DepthPlan
    settings: Mapping[str, Any]
    fingerprint: str
    versions: Mapping[str, str]
    seconds: float

    def __repr__(self) -> str:
        return f"PredictionDepth(k={self.k}, {len(self.layers)} probes, train={self.train!r}, test={self.test!r})"
