"""A whole training job in one call: open the data, train, measure on held-out data, compare with an older version."""

import hashlib
import os
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Literal, NamedTuple

from likewise.checks import require
from likewise.data import Examples, Skipped, open_examples, open_halves
from likewise.data.lfw import lfw_protocol
from likewise.data.opening import has_halves, is_lfw
from likewise.metric import Versions, all_pairs
from likewise.networks import Saved, load_network
from likewise.progress import Progress, silent
from likewise.training.checkpoints import Record, require_unlocked
from likewise.training.embedding import embed_examples
from likewise.training.fitting import FitResult, TrainingPlan, beside, fit, unfinished
from likewise.training.loop import Ranks
from likewise.training.upgrading import (
    Older,
    compare_fitted,
    harmony,
    old_width,
    open_older,
    require_comparable,
    unseen,
)

STEPS, EMBEDDING_DIM, NETWORK, HELD_OUT = 1000, 128, "nns2", 0.2  # unless given
HELD_OUT_SHARE = 0.1  # of the identities, not trained on where nothing else is left to measure VAL by ...
ENOUGH = 20  # ... if there are so many
FARS = 1e-3, 1e-2, 1e-1  # of VAL on held-out data: the smallest that three different pairs can show


class Interrupted(RuntimeError):
    """The job was asked to stop between two trainings; the same job with `resume` goes on."""


@dataclass(frozen=True)
class TrainingJob:
    """Everything that `run_job` is asked for. Fields that `TrainingPlan` has, too, mean the same there.

    data: as in `likewise.data.open_examples`. people: "all", a number (the first so many), or of LFW "view1" or
    "without-fold-3". held_out, fold: for a classifier, as in `likewise.data.open_halves`; for embeddings the share of
    identities that is not trained on; unless given, a tenth where no other data is left over to measure by and
    there are 20 identities or more; 0 trains on all. network, embedding_dim: those of `start` or `harmonic_with`
    unless given, else nns2 and 128. steps or epochs: 1000 steps unless given. harmonic_with: an older network, or a
    .npz of its vectors, with which new vectors must stay comparable. start: a network to begin with. head_steps: a
    quarter of the steps unless given, if there are both. compare: data of other identities, on which old and new
    versions are compared, and a control without the old one. workers: processes that read images, at most 2 unless
    given. every, snapshots, resume: as in `fit`. overwrite: replace what another run has left at `out`, which is
    refused otherwise.

    >>> TrainingJob("faces/", network="nn4", objective="classes").place
    PosixPath('faces-nn4-classes.safetensors')
    """

    data: str
    out: Path | None = None
    people: str = "all"
    held_out: float | None = None
    fold: int = 0
    network: str | None = None
    embedding_dim: int | None = None
    objective: Literal["triplet", "classes", "classifier"] = "triplet"
    margin: float = 0.2
    steps: int | None = None
    epochs: float | None = None
    identities: int = 30
    faces: int = 10
    random: int = 60
    schedule: Literal["cosine", "adagrad"] = "cosine"
    rate: float | None = None
    chunk: int | None = None
    size: tuple[int, int] | None = None
    augment: bool = True
    seed: int = 0
    head_steps: int | None = None
    harmonic_with: Path | None = None
    start: Path | None = None
    compare: str | None = None
    far: float = 1e-3
    workers: int | None = None
    every: int = 100
    snapshots: tuple[int, ...] = ()
    resume: bool = False
    overwrite: bool = False

    @property
    def place(self) -> Path:
        """Where the network is written: `out`, or in this folder a name that says data, network and objective."""
        if self.out is not None:
            return self.out
        network = self.network or (self.start.stem if self.start else NETWORK)
        objective = "harmonic" if self.harmonic_with else self.objective
        return Path(f"{Path(self.data).absolute().stem}-{network}-{objective}.safetensors")

    def plan(self, examples: Examples, older: Older | None = None, start: Saved | None = None) -> TrainingPlan:
        """The plan of the run, with what follows from the data and the older networks filled in."""
        given: dict[str, Any] = {each.name: getattr(self, each.name) for each in fields(TrainingPlan)}
        width = old_width(older) if older else start.network.embedding_dim if start else EMBEDDING_DIM
        given["network"] = self.network or (start.name if start else NETWORK)
        given["embedding_dim"] = self.embedding_dim or width
        given["steps"] = steps = self._steps(len(examples))
        if self.head_steps is None:
            given["head_steps"] = (steps + 3) // 4 if start and older else 0
        return TrainingPlan(**given)

    def _steps(self, images: int) -> int:
        require(self.steps is None or self.epochs is None, "train", "epochs", "not be given with steps", self.epochs)
        if self.epochs is None:
            return STEPS if self.steps is None else self.steps
        batch = min(self.identities * self.faces + self.random, images)
        return max(1, round(self.epochs * images / batch))

    def require_place(self) -> None:
        """Refuse a place where the network cannot be written, that another run uses, or that one has used."""
        place = self.place
        require(place.parent.is_dir(), "train", "out", "be in a folder that exists", repr(str(place)))
        require(not place.is_dir(), "train", "out", "be a file", repr(str(place)))
        require_unlocked(beside(place, "lock"))
        if self.resume or self.overwrite:
            return
        left = unfinished(place)
        hint = "Go on with --resume, or begin anew with --overwrite."
        require(left is None, "train", "out", "have no interrupted run beside it", left, hint)
        used = [file for file in (place, beside(place, "checkpoint")) if file.exists()]
        hint = "Choose another name, or replace it with --overwrite."
        require(not used, "train", "out", "not be that of another run", repr(str(used[0])) if used else None, hint)

    def open(self) -> "Parts":
        """The examples to train on, and others to measure by, as far as there are any."""
        if self.objective == "classifier":
            halves = open_halves(
                self.data, held_out=HELD_OUT if self.held_out is None else self.held_out, fold=self.fold
            )
            train = people_of(self.data, halves.train, self.people)
            test = halves.test if self.people == "all" else halves.test.of(train.identities)
            return Parts(train, test.numbered_by(train.identities) if len(test) else None, halves.how)
        whole = open_examples(self.data)
        train = people_of(self.data, whole, self.people)
        if self.held_out:
            names = held_out_identities(train.identities, self.held_out, self.fold)
            return Parts(train.without(names), train.of(names), f"{self.held_out:.0%} of the identities")
        if self.people == "view1":
            return Parts(train, whole.of(lfw_protocol(self.data).test_people), "the test people of LFW's View 1")
        if len(train) < len(whole):
            return Parts(train, whole.without(train.identities), "the identities that --people leaves out")
        if has_halves(Path(self.data)):
            return Parts(train, open_examples(self.data, split="test"), "the test half of the data set")
        if self.held_out is None and len(train.identities) >= ENOUGH:
            names = held_out_identities(train.identities, HELD_OUT_SHARE, self.fold)
            return Parts(train.without(names), train.of(names), f"{HELD_OUT_SHARE:.0%} of the identities")
        return Parts(train, None, "nothing")


class Parts(NamedTuple):
    """Examples to train on, examples to measure by, and what was held out, in words."""

    train: Examples
    held_out: Examples | None
    how: str


@dataclass(frozen=True)
class HeldOut:
    """How a network does on examples that it was not trained on.

    accuracy: of a classifier. val: of embeddings, the share of same pairs accepted at a FAR over all pairs, as in
    `likewise.metric.all_pairs`; `likewise evaluate` has its errors and thresholds. It is None where there are too few
    pairs to show a FAR of 0.1.
    """

    what: str
    images: int
    identities: int
    accuracy: float | None = None
    val: float | None = None
    far: float | None = None


@dataclass(frozen=True, eq=False)
class JobResult:
    """What a job has made. control, versions: of a comparison with an older version. held_out: None if nothing was."""

    job: TrainingJob
    plan: TrainingPlan
    examples: Examples
    fitted: FitResult
    control: FitResult | None = None
    versions: Versions | None = None
    held_out: HeldOut | None = None

    @property
    def finished(self) -> bool:
        """False if the job was interrupted; the same job with `resume` goes on."""
        return (self.control or self.fitted).trained.finished

    @property
    def records(self) -> tuple[Record, ...]:
        """The steps of the run, without those of a control."""
        return self.fitted.trained.records

    @property
    def skipped(self) -> tuple[Skipped, ...]:
        """Files that were no images, or damaged."""
        return tuple(dict.fromkeys([*self.examples.skipped, *self.fitted.trained.skipped]))

    def to_json(self) -> dict[str, Any]:
        """Numbers and paths, but for the comparison."""
        return {
            "network": str(self.job.place) if self.fitted.hash else None,
            "hash": self.fitted.hash,
            "finished": self.fitted.trained.finished,
            "steps": len(self.records),
            "loss": self.records[-1].loss if self.records else None,
            "seconds": sum(record.seconds for record in self.records),
            "images": len(self.examples),
            "identities": len(self.examples.identities),
            "held_out": asdict(self.held_out) if self.held_out else None,
            "checkpoint": str(beside(self.job.place, "checkpoint")),
            "log": str(beside(self.job.place, "jsonl")),
            "skipped": [file._asdict() for file in self.skipped],
        }


def run_job(
    job: TrainingJob,
    *,
    progress: Progress = silent,
    interrupted: Callable[[], bool] | None = None,
) -> JobResult:
    """Train as the job says and write the network, its checkpoint and its log.

    interrupted: asked after every step; True
    ends the job with a checkpoint, from which the same job with `resume` goes on to the same result, digit by digit.
    Raises `Diverged` or `likewise.metric.CollapseError` if training fails, and `Interrupted` if it was asked to stop
    while vectors are made. In a process group of torch every process makes this call.
    """
    job.require_place()
    require(0 < job.far < 1, "train", "far", "be between 0 and 1", job.far)
    require(not job.compare or job.harmonic_with is not None, "train", "compare", "go with harmonic_with", job.compare)
    older = open_older(job.harmonic_with) if job.harmonic_with else None
    start = load_network(job.start) if job.start else None
    examples, unseen_ones, how = job.open()
    others = unseen(open_examples(job.compare), examples) if job.compare else None
    if older and others:
        require_comparable(older, others, far=job.far)
    plan = job.plan(examples, older, start)
    workers = min(2, os.cpu_count() or 1) if job.workers is None else job.workers
    hooks = _Hooks(progress, interrupted, plan.head_steps + plan.steps)

    def train_to(out: Path, harmonic: Any, watch: Callable[[Record], bool]) -> FitResult:
        return fit(
            examples,
            plan,
            out,
            harmonic=harmonic,
            start=start,
            resume=job.resume,
            workers=workers,
            every=job.every,
            snapshots=job.snapshots,
            watch=watch,
        )

    tell = hooks.vectors(0.0, 0.02, "vectors of v1")
    harmonic = harmony(older, examples, plan, workers=workers, progress=tell) if older else None
    fitted = train_to(job.place, harmonic, hooks.steps(0.02 if older else 0.0, 0.49 if others else 1.0, ""))
    control, versions = None, None
    if others and fitted.trained.finished:
        control = train_to(beside(job.place, "control.safetensors"), None, hooks.steps(0.49, 0.96, "control, "))
    if older and others and control and control.trained.finished and Ranks.here().writes:
        tell = hooks.vectors(0.96, 1.0, "comparing")
        versions = compare_fitted(fitted, older, others, control=control, far=job.far, workers=workers, progress=tell)
    held_out = None
    if unseen_ones and fitted.trained.finished and Ranks.here().writes:
        tell, classifier = hooks.vectors(1.0, 1.0, "measures"), plan.objective == "classifier"
        held_out = measure(fitted, unseen_ones, how, classifier=classifier, workers=workers, progress=tell)
    return JobResult(job, plan, examples, fitted, control, versions, held_out)


def measure(
    fitted: FitResult, examples: Examples, how: str, *, classifier: bool, workers: int = 0, progress: Progress = silent
) -> HeldOut:
    """Accuracy of a classifier, or VAL of embeddings, on held-out examples."""
    found = embed_examples(fitted.network, fitted.preparation, examples, workers=workers, progress=progress)
    sizes = found.labels.bincount()
    facts = how, len(found.labels), int((sizes > 0).sum())
    if classifier and len(found.labels):
        right = found.vectors.argmax(1).cpu() == found.labels
        return HeldOut(*facts, accuracy=right.double().mean().item())
    different = (int(sizes.sum()) ** 2 - int(sizes.square().sum())) // 2
    far = next((far for far in FARS if different * far >= 3 * (1 - 1e-9)), None)
    if far is None or int(sizes.max()) < 2:
        return HeldOut(*facts)
    return HeldOut(*facts, val=all_pairs(found.vectors, found.labels, far=far).val, far=far)


@dataclass(frozen=True)
class _Hooks:
    """The caller's hooks, for one stage of a job after the other."""

    progress: Progress
    interrupted: Callable[[], bool] | None
    total: int

    def _stops(self, done: float, doing: str) -> bool:
        self.progress(done, doing)
        return bool(self.interrupted and self.interrupted())

    def steps(self, first: float, last: float, name: str) -> Callable[[Record], bool]:
        """The `watch` of a training that is this stage of the job."""

        def watch(record: Record) -> bool:
            done = first + (last - first) * (record.step + 1) / self.total
            return self._stops(done, f"{name}step {record.step + 1}, loss {record.loss:.4f}")

        return watch

    def vectors(self, first: float, last: float, name: str) -> Progress:
        """The `progress` of embedding; nothing is lost if it is interrupted, for it is done again."""

        def tell(done: float, doing: str) -> None:
            if self._stops(first + (last - first) * done, name):
                raise Interrupted(f"train: interrupted while {name} were made; the same job with resume goes on.")

        return tell


def held_out_identities(identities: Sequence[str], share: float, fold: int = 0) -> list[str]:
    """A share of the identities, in the order of the SHA-256 of their names; no two folds share one.

    >>> held_out_identities(("Ann", "Bo", "Cy", "Di", "Ed"), 0.4)
    ['Cy', 'Di']
    """
    require(0 < share < 1, "train", "held_out", "be from 0 to below 1", share)
    count = round(share * len(identities))
    enough = count >= 2 and len(identities) - count >= 2 and (fold + 1) * count <= len(identities)
    rule = f"leave two identities or more of {len(identities)} on each side"
    require(enough, "train", "held_out", rule, f"{count} in fold {fold}")
    order = sorted(identities, key=lambda name: hashlib.sha256(name.encode("utf-8", "surrogateescape")).digest())
    return sorted(order[fold * count : (fold + 1) * count])


def people_of(data: str, examples: Examples, people: str) -> Examples:
    """The examples of some identities: all, the first so many, or those of a list of LFW."""
    if people == "all":
        return examples
    if people.isdecimal():
        count, most = int(people), len(examples.identities)
        require(1 <= count <= most, "train", "people", f"be at most the {most} identities of the data", people)
        return examples.of(examples.identities[:count])
    require(is_lfw(Path(data)), "train", "people", "be all or a number for data that is not LFW", repr(people))
    protocol = lfw_protocol(data)
    if people == "view1":
        return examples.of(protocol.train_people)
    fold = people.removeprefix("without-fold-")
    right = fold != people and fold.isdecimal() and 1 <= int(fold) <= len(protocol.people)
    require(right, "train", "people", "be all, view1 or without-fold-1 to without-fold-10", repr(people))
    return examples.of(protocol.outside(int(fold) - 1))
