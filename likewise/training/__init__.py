"""Network + objective + data -> trained network: one loop, exact resume, gradients of large batches in small memory."""

from likewise.training.caching import backward_in_chunks
from likewise.training.checkpoints import checkpoint_settings
from likewise.training.embedding import Embedded, embed_examples
from likewise.training.fitting import Fitted, Plan, beside, fit, unfinished
from likewise.training.loop import Diverged, Feed, Keep, Trained, train
from likewise.training.objectives import (
    Classes,
    EveryTriplet,
    Hardest,
    Harmonic,
    Logits,
    Objective,
    RandomTriplets,
    SemiHard,
)
from likewise.training.ranks import RankRows, Ranks, joined_ranks
from likewise.training.records import Record, read_records
from likewise.training.schedules import AdaGrad, Cosine, Schedule
from likewise.training.upgrading import (
    Older,
    StoredVectors,
    compare_fitted,
    harmony,
    old_vectors,
    old_width,
    open_older,
    require_comparable,
    unseen,
)

__all__ = [
    "AdaGrad",
    "Classes",
    "Cosine",
    "Diverged",
    "Embedded",
    "EveryTriplet",
    "Feed",
    "Fitted",
    "Hardest",
    "Harmonic",
    "Keep",
    "Logits",
    "Objective",
    "Older",
    "Plan",
    "RandomTriplets",
    "RankRows",
    "Ranks",
    "Record",
    "Schedule",
    "SemiHard",
    "StoredVectors",
    "Trained",
    "backward_in_chunks",
    "beside",
    "checkpoint_settings",
    "compare_fitted",
    "embed_examples",
    "fit",
    "harmony",
    "joined_ranks",
    "old_vectors",
    "old_width",
    "open_older",
    "read_records",
    "require_comparable",
    "train",
    "unfinished",
    "unseen",
]
