"""A network and images that it has not seen -> how well it tells people apart, and what that rests on."""

from likewise.evaluation.evaluating import evaluate
from likewise.evaluation.judging import Rates, judge, supported_far
from likewise.evaluation.protocols import Everyone, Listed, lfw_pairs, own_pairs
from likewise.evaluation.results import Evaluation, Histogram, Templates, Worst
from likewise.evaluation.shifts import (
    Brightness,
    Cover,
    Gamma,
    Jpeg,
    Mirror,
    Move,
    Resolution,
    Shift,
    Turn,
    shifted,
)

__all__ = [
    "Brightness",
    "Cover",
    "Evaluation",
    "Everyone",
    "Gamma",
    "Histogram",
    "Jpeg",
    "Listed",
    "Mirror",
    "Move",
    "Rates",
    "Resolution",
    "Shift",
    "Templates",
    "Turn",
    "Worst",
    "evaluate",
    "judge",
    "lfw_pairs",
    "own_pairs",
    "shifted",
    "supported_far",
]
