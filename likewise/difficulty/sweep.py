"""All probes, from the softmax towards the input; an example that a probe contradicts is asked no further."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float64, Int64
from torch import Tensor, nn

from likewise.checks import require
from likewise.difficulty.activations import Activations, Answers, Layout, ResultStore, Stored, capture
from likewise.difficulty.labelled import Labelled
from likewise.difficulty.plan import DepthPlan, LayerPlan
from likewise.difficulty.results import Reads
from likewise.difficulty.taps import Tap
from likewise.progress import Progress, part, parts
from likewise.similarity import nearest

CELLS = 1 << 22  # examples x classes whose votes are counted at a time


def vote(neighbours: Int64[Tensor, "N K"], *, ks: Sequence[int], classes: int) -> Int64[Tensor, "k N"]:
    """The class that most of the first k neighbours have, for each k, from their labels, nearest first.

    Of equally many votes the smaller sum of ranks wins, and of equal sums the nearest neighbour.

    >>> vote(torch.tensor([[2, 0, 0, 2, 1]]), ks=(1, 3, 4, 5), classes=3).tolist()  # ranks 1 + 4 against 2 + 3
    [[2], [0], [2], [2]]
    """
    count, most = neighbours.shape
    for k in ks:
        require(1 <= k <= most, "vote", "ks", f"be from 1 to the {most} neighbours there are", k)
    found = torch.zeros(len(ks), count, dtype=torch.int64)
    ranks = torch.arange(1, most + 1)
    for some in torch.arange(count).split(max(1, CELLS // classes)):
        votes = torch.zeros(len(some), classes, dtype=torch.int64)
        sums, first = torch.zeros_like(votes), torch.full_like(votes, most + 1)
        for rank in ranks.tolist():
            column = neighbours[some, rank - 1, None]
            votes.scatter_add_(1, column, torch.ones_like(column))
            sums.scatter_add_(1, column, torch.full_like(column, rank))
            first.scatter_reduce_(1, column, torch.full_like(column, rank), "amin")
            if rank in ks:
                scores = (votes * (most * most + 1) - sums) * (most + 2) - first
                for number in (number for number, k in enumerate(ks) if k == rank):
                    found[number, some] = scores.argmax(dim=1)
    return found


def probe(
    queries: Stored,
    rows: Int64[Tensor, "n"],
    support: Stored,
    labels: Int64[Tensor, "M"],
    *,
    ks: Sequence[int],
    classes: int,
    centre: Float64[Tensor, "_"],
    plan: LayerPlan,
    same: bool,
    progress: Progress,
) -> tuple[Int64[Tensor, "k n"], int]:
    """Votes of the training examples nearest to some queries; and for how many single precision did not settle them.

    same: the queries are training examples, none of which is its own neighbour.
    """
    votes, recomputed = [], 0
    blocks = rows.split(plan.queries)
    steps = parts(progress, len(blocks))
    for number, some in enumerate(blocks if len(rows) else ()):
        found = nearest(
            queries[some],
            support,
            k=max(ks),
            exclude=some if same else None,
            centre=centre,
            support=plan.support,
            progress=steps[number],
        )
        votes.append(vote(labels[found.indices], ks=ks, classes=classes))
        recomputed += found.recomputed
        steps[number](1.0, "nearest neighbours")
    return torch.cat(votes, dim=1) if votes else torch.zeros(len(ks), 0, dtype=torch.int64), recomputed


TRAIN, TEST = "train", "test"


@dataclass(frozen=True, eq=False)
class Queries:
    """One set: whose depth is wanted, and who is asked at every probe, contradicted or not."""

    data: Labelled
    wanted: Bool[Tensor, "N"]
    sampled: Bool[Tensor, "N"]


@dataclass(frozen=True, eq=False)
class SweepJob:
    """A model, its probes, and how the work is to be done."""

    model: nn.Module
    layers: Sequence[str | Tap] | None
    layout: Layout
    plan: DepthPlan
    ks: tuple[int, ...]
    keeping: ResultStore
    progress: Progress


@dataclass(frozen=True, eq=False)
class Answered:
    """The network's classes, and for each k and probe those of the neighbours; the network's where nobody asked."""

    predicted: Int64[Tensor, "N"]
    votes: Int64[Tensor, "k P N"]


@dataclass(frozen=True, eq=False)
class Swept:
    """Answers for each set, and what they took."""

    sets: Mapping[str, Answered]
    reads: Reads
    recomputed: int


def sweep(job: SweepJob, sets: Mapping[str, Queries]) -> Swept:
    """Ask the probes, last one first: of each set those who are wanted and not contradicted at every k, or sampled.

    A depth depends on the last probe that disagrees and on none before it, so it comes out as from all answers. `sets`
    has "train", which is also everybody's support.
    """
    probes = job.plan.layers
    kept = [job.keeping.load_votes(number) for number in range(len(probes))]
    left = [layer.name for layer, found in zip(probes, kept, strict=True) if found is None]
    steps = iter(parts(job.progress, len(sets) * (1 + len(probes))))
    made = {which: _forward(job, which, each.data, left, next(steps)) for which, each in sets.items()}
    alive = {which: each.wanted.repeat(len(job.ks), 1) for which, each in sets.items()}
    votes = {which: made[which].predicted.repeat(len(job.ks), len(probes), 1) for which in sets}
    support, short, sample, recomputed = len(sets[TRAIN].data), 0, 0, 0
    for number, layer in reversed(list(enumerate(probes))):
        turns = {which: next(steps) for which in sets}
        answers, again = kept[number] or _ask(job, number, sets, made, alive, turns)
        recomputed += again
        for which, (asked, said) in answers.items():
            unsettled = alive[which].any(dim=0)
            short += int(unsettled.sum()) * support * layer.width
            sample += int((asked & ~unsettled).sum()) * support * layer.width
            votes[which][:, number, asked] = said
            alive[which][:, asked] &= said == made[which].predicted[asked]
    full = sum(int(each.wanted.sum()) for each in sets.values()) * support * sum(layer.width for layer in probes)
    answered = {which: Answered(made[which].predicted, votes[which]) for which in sets}
    return Swept(answered, Reads(short, sample, full), recomputed)


def _forward(job: SweepJob, which: str, data: Labelled, wanted: Sequence[str], progress: Progress) -> Activations:
    """The activations of a set, from an earlier run if they are all there."""
    found = job.keeping.load_activations(which, len(data), job.layout, wanted)
    if found is not None:
        return found
    files = {
        layer.name: job.keeping.activations_path(which, number)
        for number, layer in enumerate(job.plan.layers)
        if layer.place == "disk" and layer.name in wanted
    }
    made = capture(
        job.model,
        data,
        job.layers,
        layout=job.layout,
        wanted=wanted,
        files=files,
        progress=part(progress, 0.0, 1.0, f"forward pass, {which}"),
    )
    job.keeping.save_activations(which, made)
    return made


def _ask(
    job: SweepJob,
    number: int,
    sets: Mapping[str, Queries],
    made: Mapping[str, Activations],
    alive: Mapping[str, Bool[Tensor, "k _"]],
    progress: Mapping[str, Progress],
) -> tuple[Answers, int]:
    """One probe's answers, and how many of them single precision did not settle."""
    name, support = job.plan.layers[number].name, made[TRAIN]
    answers: Answers = {}
    recomputed = 0
    for which, each in sets.items():
        asked = alive[which].any(dim=0) | each.sampled
        said, again = probe(
            made[which].layers[name],
            asked.nonzero()[:, 0],
            support.layers[name],
            sets[TRAIN].data.labels,
            ks=job.ks,
            classes=job.layout.classes,
            centre=support.sums[name] / len(support.predicted),
            plan=job.plan.layers[number],
            same=which == TRAIN,
            progress=part(progress[which], 0.0, 1.0, f"{name}, {which}"),
        )
        answers[which] = (asked, said)
        recomputed += again
    job.keeping.save_votes(number, answers, recomputed)
    return answers, recomputed
