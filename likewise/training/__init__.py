"""Network + objective + data -> trained network: one loop, exact resume, gradients of large batches in small memory."""

# ruff: noqa: E402  without torch, this is the first line that fails
from likewise.checks import require_package

require_package("likewise.training", "torch")

from likewise.training.caching import backward_in_chunks
from likewise.training.checkpoints import Record, checkpoint_settings, read_records
from likewise.training.embedding import Embedded, embed_examples
from likewise.training.fitting import Fitted, Plan, beside, fit, unfinished
from likewise.training.jobs import Interrupted, Job, JobResult, run_job
from likewise.training.loop import (
    AdaGrad,
    Cosine,
    Diverged,
    Feed,
    Keep,
    RankRows,
    Ranks,
    Schedule,
    Trained,
    joined_ranks,
    train,
)
from likewise.training.objectives import (
    Classes,
    EveryTriplet,
    Hardest,
    Harmonic,
    Logits,
    Measuring,
    Objective,
    RandomTriplets,
    SemiHard,
)
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
    "Interrupted",
    "Job",
    "JobResult",
    "Keep",
    "Logits",
    "Measuring",
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
    "run_job",
    "train",
    "unfinished",
    "unseen",
]
