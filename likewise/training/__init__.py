"""Network + objective + data -> trained network: one loop, exact resume, gradients of large batches in small memory."""

# ruff: noqa: E402  without torch, this is the first line that fails
from likewise.checks import require_package

require_package("likewise.training", "torch")

from likewise.training.checkpoints import Record
from likewise.training.embedding import embed_examples
from likewise.training.fitting import FitResult, TrainingPlan, beside, fit
from likewise.training.jobs import Interrupted, TrainingJob, run_job
from likewise.training.loop import AdaGrad, CheckpointPolicy, Cosine, Diverged, Feed, Schedule, train
from likewise.training.objectives import (
    Classes,
    EveryTriplet,
    Hardest,
    Harmonic,
    Measuring,
    MetricLoss,
    Objective,
    RandomTriplets,
    SemiHard,
)
from likewise.training.upgrading import compare_fitted, harmony, open_older, unseen

__all__ = [
    "AdaGrad",
    "CheckpointPolicy",
    "Classes",
    "Cosine",
    "Diverged",
    "EveryTriplet",
    "Feed",
    "FitResult",
    "Hardest",
    "Harmonic",
    "Interrupted",
    "Measuring",
    "MetricLoss",
    "Objective",
    "RandomTriplets",
    "Record",
    "Schedule",
    "SemiHard",
    "TrainingJob",
    "TrainingPlan",
    "beside",
    "compare_fitted",
    "embed_examples",
    "fit",
    "harmony",
    "open_older",
    "run_job",
    "train",
    "unseen",
]
