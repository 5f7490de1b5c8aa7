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
from likewise.exits.fitting import (
    fit_class_means,
    fit_neighbours,
    fit_predicted_depth,
    fit_temperatures,
    train_exits,
)
from likewise.exits.losses import Loss
from likewise.exits.observing import Observed, observe
from likewise.exits.paths import Path, common_path, matched_path
from likewise.exits.placement import Placement, suggest_placement
from likewise.exits.policies import Policy
from likewise.exits.risk import Controlled, Group, Method, Step, control_risk
from likewise.exits.running import Always, Compaction, Never, Outcome
from likewise.exits.splits import Ledger, Role, Split, Splits, split_examples
from likewise.exits.timings import Timings

__all__ = [
    "Always",
    "ClassMeans",
    "Compaction",
    "Controlled",
    "Criterion",
    "EarlyExit",
    "Entropy",
    "Group",
    "Head",
    "Ledger",
    "Loss",
    "Margin",
    "MaxProbability",
    "Method",
    "Neighbours",
    "Never",
    "Observed",
    "Outcome",
    "Path",
    "Patience",
    "Placement",
    "Policy",
    "PredictedDepth",
    "Role",
    "Seen",
    "Split",
    "Splits",
    "Step",
    "Timings",
    "common_path",
    "control_risk",
    "fit_class_means",
    "fit_neighbours",
    "fit_predicted_depth",
    "fit_temperatures",
    "matched_path",
    "observe",
    "split_examples",
    "suggest_placement",
    "train_exits",
]
