"""Network and examples -> how early each example is settled."""

from likewise.difficulty.depth import iteration_learned, last_run_start, plan_depth, prediction_depth
from likewise.difficulty.labelled import Labelled, labelled
from likewise.difficulty.plan import LayerPlan, Plan
from likewise.difficulty.probes import vote
from likewise.difficulty.results import Curve, Depths, PredictionDepth, Reads
from likewise.difficulty.taps import Tap, Taps

__all__ = [
    "Curve",
    "Depths",
    "Labelled",
    "LayerPlan",
    "Plan",
    "PredictionDepth",
    "Reads",
    "Tap",
    "Taps",
    "iteration_learned",
    "labelled",
    "last_run_start",
    "plan_depth",
    "prediction_depth",
    "vote",
]
