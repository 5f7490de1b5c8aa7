"""A network and images that it has not seen -> how well it tells people apart, and what that rests on."""

# ruff: noqa: E402  without torch, this is the first line that fails
from likewise.checks import require_package

require_package("likewise.evaluation", "torch")

from likewise.evaluation.evaluating import evaluate
from likewise.evaluation.jobs import EvaluationJob, run_evaluation_job
from likewise.evaluation.judging import judge
from likewise.evaluation.sweeps import Table

__all__ = [
    "EvaluationJob",
    "Table",
    "evaluate",
    "judge",
    "run_evaluation_job",
]
