"""Where to stop, at what risk and what saving: heads on the way, and examples that leave when they are settled."""

from likewise.exits.answer import Answer, exits_or_smaller, pareto
from likewise.exits.clock import Clocked, clocked
from likewise.exits.costs import ExitCosts, exit_costs
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
from likewise.exits.exporting import ExportedExits, export_exits
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
from likewise.exits.study import DepthByExit, Evaluation, GroupRisk, Point, depth_by_exit, evaluate_exits, trade_off
from likewise.exits.timings import Timings
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
