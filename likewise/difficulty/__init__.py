"""Network and examples -> how early each example is settled."""

# ruff: noqa: E402  without torch, this is the first line that fails
from likewise.checks import require_package

require_package("likewise.difficulty", "torch")

from likewise.difficulty.consistency import QUADRANTS, Consistency, Quadrants, depth_consistency, quadrants
from likewise.difficulty.depth import iteration_learned, last_run_start, plan_depth, prediction_depth
from likewise.difficulty.export import depth_csv, depth_json, read_depth, write_depth
from likewise.difficulty.labelled import Labelled, labelled
from likewise.difficulty.plan import LayerPlan, Plan
from likewise.difficulty.results import Curve, Depths, PredictionDepth, Reads
from likewise.difficulty.sweep import vote
from likewise.difficulty.taps import Tap, Taps
from likewise.difficulty.traits import RankCorrelation, input_margin, input_traits, output_margin, rank_correlation

__all__ = [
    "QUADRANTS",
    "Consistency",
    "Curve",
    "Depths",
    "Labelled",
    "LayerPlan",
    "Plan",
    "PredictionDepth",
    "Quadrants",
    "RankCorrelation",
    "Reads",
    "Tap",
    "Taps",
    "depth_consistency",
    "depth_csv",
    "depth_json",
    "input_margin",
    "input_traits",
    "iteration_learned",
    "labelled",
    "last_run_start",
    "output_margin",
    "plan_depth",
    "prediction_depth",
    "quadrants",
    "rank_correlation",
    "read_depth",
    "vote",
    "write_depth",
]
