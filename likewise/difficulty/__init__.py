"""Network and examples -> how early each example is settled."""

# ruff: noqa: E402  without torch, this is the first line that fails
from likewise.checks import require_package

require_package("likewise.difficulty", "torch")

from likewise.difficulty.depth import prediction_depth
from likewise.difficulty.labelled import labelled
from likewise.difficulty.plan import DepthPlan
from likewise.difficulty.taps import Taps
from likewise.difficulty.traits import rank_correlation

__all__ = [
    "DepthPlan",
    "Taps",
    "labelled",
    "prediction_depth",
    "rank_correlation",
]
