"""What an evaluation found."""

from dataclasses import asdict, dataclass
from typing import Any

from jaxtyping import Float, Int64
from torch import Tensor

from likewise.data import Skipped
from likewise.evaluation.judging import Rates
from likewise.files import finite
from likewise.metric.bootstrap import Bootstrapped
from likewise.metric.clusters import ClusterScores
from likewise.metric.rates import Roc, Threshold

UNIT = "squared Euclidean distance"


@dataclass(frozen=True)
class Worst:
    """A pair that is wrong by much, by the names of its images."""

    first: str
    second: str
    distance: float


@dataclass(frozen=True, eq=False)
class Histogram:
    """Pairs with a squared distance above the edge before and at most an edge; the first bin begins at 0."""

    edges: Float[Tensor, "k"]
    same: Int64[Tensor, "k"]
    different: Int64[Tensor, "k"]


@dataclass(frozen=True)
class Templates:
    """Rates of embeddings of one byte for each number, and what that costs: VAL before less VAL after."""

    bytes: int
    rates: Rates
    loss: float


@dataclass(frozen=True, eq=False)
class Evaluation:
    """How well a network tells people apart, under one protocol; distances are squared.

    independent: the FAR of `rates.threshold` if pairs were independent; interval: where `rates.limit` and its FAR might
    lie if they are not, from identities drawn anew. worst_same: the same pairs that are farthest apart;
    worst_different: the others that are nearest. listed: whether pairs were listed, instead of all pairs judged.
    mirror: whether an embedding is that of an image and of its mirror
    image together. left_out: listed pairs, one of whose images could not be read. warnings: what limits the rates;
    every output shows them beside the rates.
    """

    data: str
    protocol: str
    listed: bool
    images: int
    identities: int
    mirror: bool
    rates: Rates
    independent: Threshold
    interval: Bootstrapped
    templates: Templates
    roc: Roc
    histogram: Histogram
    worst_same: tuple[Worst, ...]
    worst_different: tuple[Worst, ...]
    clusters: ClusterScores | None
    left_out: int
    skipped: tuple[Skipped, ...]
    warnings: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """As JSON has it: a curve of few points, and null for what is no number."""
        plain = ("data", "protocol", "images", "identities", "mirror", "left_out")
        parts = ("rates", "independent", "interval", "templates", "clusters")
        curve, shape = self.roc.thinned(), self.histogram
        found = {
            **{name: getattr(self, name) for name in plain},
            "warnings": list(self.warnings),
            "unit": UNIT,
            **{name: asdict(part) if (part := getattr(self, name)) else None for name in parts},
            "area": self.roc.area,
            "roc": {name: getattr(curve, name).tolist() for name in ("threshold", "far", "val")},
            "histogram": {name: getattr(shape, name).tolist() for name in ("edges", "same", "different")},
            "worst_same": [asdict(pair) for pair in self.worst_same],
            "worst_different": [asdict(pair) for pair in self.worst_different],
            "skipped": [file._asdict() for file in self.skipped],
        }
        return finite(found)
