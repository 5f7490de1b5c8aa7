"""Network and examples -> the layer from which on each example is settled, and how suspicious its label is."""

# ruff: noqa: E402  without torch, this is the first line that fails
from likewise.checks import require_package

require_package("likewise.difficulty", "torch")

from likewise.difficulty.depth import prediction_depth
from likewise.difficulty.labelled import labelled
from likewise.difficulty.labels import LabelRanking, class_probabilities, rank_labels
from likewise.difficulty.plan import DepthPlan
from likewise.difficulty.taps import Taps
from likewise.difficulty.traits import rank_correlation

__all__ = [
    "DepthPlan",
    "LabelRanking",
    "Taps",
    "class_probabilities",
    "labelled",
    "prediction_depth",
    "rank_correlation",
    "rank_labels",
]
