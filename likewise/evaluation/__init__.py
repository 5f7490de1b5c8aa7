"""A network and images that it has not seen -> how well it tells people apart, and what that rests on."""

# ruff: noqa: E402  without torch, this is the first line that fails
from likewise.checks import require_package

require_package("likewise.evaluation", "torch")

from likewise.evaluation.budgets import held_out, plan_of, share_of, table5, table6
from likewise.evaluation.evaluating import evaluate
from likewise.evaluation.jobs import EvaluationJob, EvaluationResult, run_evaluation_job
from likewise.evaluation.judging import Rates, judge, supported_far
from likewise.evaluation.protocols import Everyone, Listed, lfw_pairs, own_pairs
from likewise.evaluation.results import Evaluation, Histogram, Templates, Worst
from likewise.evaluation.shifts import Brightness, Cover, Gamma, Jpeg, Mirror, Move, Resolution, Shift, Turn, shifted
from likewise.evaluation.sweeps import Row, Table, robustness, table3, table4

__all__ = [
    "Brightness",
    "Cover",
    "Evaluation",
    "EvaluationJob",
    "EvaluationResult",
    "Everyone",
    "Gamma",
    "Histogram",
    "Jpeg",
    "Listed",
    "Mirror",
    "Move",
    "Rates",
    "Resolution",
    "Row",
    "Shift",
    "Table",
    "Templates",
    "Turn",
    "Worst",
    "evaluate",
    "held_out",
    "judge",
    "lfw_pairs",
    "own_pairs",
    "plan_of",
    "robustness",
    "run_evaluation_job",
    "share_of",
    "shifted",
    "supported_far",
    "table3",
    "table4",
    "table5",
    "table6",
]
