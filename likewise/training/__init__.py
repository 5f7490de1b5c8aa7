"""Network + objective + data -> trained network: one loop, exact resume, gradients of large batches in small memory."""

from likewise.training.caching import backward_in_chunks
from likewise.training.checkpoints import checkpoint_settings
from likewise.training.loop import Diverged, Feed, Keep, Trained, train
from likewise.training.objectives import Classes, EveryTriplet, Hardest, Objective, RandomTriplets, SemiHard
from likewise.training.records import Record, effective_rank, mean_distance, read_records
from likewise.training.schedules import AdaGrad, Cosine, Schedule

__all__ = [
    "AdaGrad",
    "Classes",
    "Cosine",
    "Diverged",
    "EveryTriplet",
    "Feed",
    "Hardest",
    "Keep",
    "Objective",
    "RandomTriplets",
    "Record",
    "Schedule",
    "SemiHard",
    "Trained",
    "backward_in_chunks",
    "checkpoint_settings",
    "effective_rank",
    "mean_distance",
    "read_records",
    "train",
]
