"""All probes, from the softmax towards the input; an example that a probe contradicts is asked no further."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from jaxtyping import Bool, Int64
from torch import Tensor, nn

from likewise.difficulty.activations import Activations, Layout, capture
from likewise.difficulty.keeping import Answers, Keeping
from likewise.difficulty.labelled import Labelled
from likewise.difficulty.plan import Plan
from likewise.difficulty.probes import probe
from likewise.difficulty.results import Reads
from likewise.difficulty.taps import Tap
from likewise.progress import Progress, part, parts

TRAIN, TEST = "train", "test"


@dataclass(frozen=True, eq=False)
class Queries:
    """One set: whose depth is wanted, and who is asked at every probe, contradicted or not."""

    data: Labelled
    wanted: Bool[Tensor, "N"]
    sampled: Bool[Tensor, "N"]


@dataclass(frozen=True, eq=False)
class Job:
    """A model, its probes, and how the work is to be done."""

    model: nn.Module
    layers: Sequence[str | Tap] | None
    layout: Layout
    plan: Plan
    ks: tuple[int, ...]
    keeping: Keeping
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


def sweep(job: Job, sets: Mapping[str, Queries]) -> Swept:
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


def _forward(job: Job, which: str, data: Labelled, wanted: Sequence[str], progress: Progress) -> Activations:
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
    job: Job,
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
