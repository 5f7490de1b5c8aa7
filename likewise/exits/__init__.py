"""Where to stop, at what risk and what saving: heads on the way, and examples that leave when they are settled."""

from likewise.exits.criteria import (
    ClassMeans,
    Criterion,
    Entropy,
    Margin,
    MaxProbability,
    Neighbours,
    Patience,
    PredictedDepth,
    Seen,
)
from likewise.exits.early import EarlyExit, Head
from likewise.exits.policies import Policy
from likewise.exits.running import Always, Compaction, Never, Outcome
from likewise.exits.timings import Timings

__all__ = [
    "Always",
    "ClassMeans",
    "Compaction",
    "Criterion",
    "EarlyExit",
    "Entropy",
    "Head",
    "Margin",
    "MaxProbability",
    "Neighbours",
    "Never",
    "Outcome",
    "Patience",
    "Policy",
    "PredictedDepth",
    "Seen",
    "Timings",
]
