"""Where to stop, at what risk and what saving: heads on the way, and examples that leave when they are settled."""

# ruff: noqa: E402  without torch, this is the first line that fails
from likewise.checks import require_package

require_package("likewise.exits", "torch")

from likewise.exits.criteria import (
    ClassMeans,
    Criterion,
    Entropy,
    Margin,
    MaxProbability,
    Neighbours,
    Patience,
    Policy,
    PredictedDepth,
)
from likewise.exits.early import EarlyExit
from likewise.exits.evaluating import depth_by_exit, evaluate_exits, exit_costs, exits_or_smaller, trade_off
from likewise.exits.exporting import ExportedExits, export_exits
from likewise.exits.fitting import (
    fit_class_means,
    fit_neighbours,
    fit_predicted_depth,
    fit_temperatures,
    train_exits,
)
from likewise.exits.observing import Loss, observe
from likewise.exits.placement import suggest_placement
from likewise.exits.risk import ThresholdPath, common_path, control_risk, matched_path
from likewise.exits.running import clocked
from likewise.exits.splits import split_examples
from likewise.exits.weights import load_exits, save_exits

__all__ = [
    "ClassMeans",
    "Criterion",
    "EarlyExit",
    "Entropy",
    "ExportedExits",
    "Loss",
    "Margin",
    "MaxProbability",
    "Neighbours",
    "Patience",
    "Policy",
    "PredictedDepth",
    "ThresholdPath",
    "clocked",
    "common_path",
    "control_risk",
    "depth_by_exit",
    "evaluate_exits",
    "exit_costs",
    "exits_or_smaller",
    "export_exits",
    "fit_class_means",
    "fit_neighbours",
    "fit_predicted_depth",
    "fit_temperatures",
    "load_exits",
    "matched_path",
    "observe",
    "save_exits",
    "split_examples",
    "suggest_placement",
    "trade_off",
    "train_exits",
]
