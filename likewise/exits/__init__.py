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
    Seen,
)
from likewise.exits.early import EarlyExit, Head
from likewise.exits.evaluating import (
    Answer,
    DepthByExit,
    Evaluation,
    ExitCosts,
    GroupRisk,
    Point,
    depth_by_exit,
    evaluate_exits,
    exit_costs,
    exits_or_smaller,
    pareto,
    trade_off,
)
from likewise.exits.exporting import ExportedExits, export_exits
from likewise.exits.fitting import (
    fit_class_means,
    fit_neighbours,
    fit_predicted_depth,
    fit_temperatures,
    train_exits,
)
from likewise.exits.observing import Loss, Observed, observe
from likewise.exits.placement import Placement, suggest_placement
from likewise.exits.risk import Controlled, Group, Method, Path, Step, common_path, control_risk, matched_path
from likewise.exits.running import Always, Clocked, Compaction, Never, Outcome, Timings, clocked
from likewise.exits.splits import Ledger, Role, Split, Splits, split_examples
from likewise.exits.weights import SavedExits, load_exits, save_exits

__all__ = [
    "Always",
    "Answer",
    "ClassMeans",
    "Clocked",
    "Compaction",
    "Controlled",
    "Criterion",
    "DepthByExit",
    "EarlyExit",
    "Entropy",
    "Evaluation",
    "ExitCosts",
    "ExportedExits",
    "Group",
    "GroupRisk",
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
    "Point",
    "Policy",
    "PredictedDepth",
    "Role",
    "SavedExits",
    "Seen",
    "Split",
    "Splits",
    "Step",
    "Timings",
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
    "pareto",
    "save_exits",
    "split_examples",
    "suggest_placement",
    "trade_off",
    "train_exits",
]
