"""One call from examples to a file: a plan says everything that a run depends on."""

from collections.abc import Callable, Collection
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

from torch import nn

from likewise.checks import require, require_choice, require_count
from likewise.data import Augmentation, Batches, Examples, Preparation, Shuffled
from likewise.data.batches import Drawn
from likewise.metric import CollapseGuard, IdentitySampler
from likewise.networks import Network, build_classifier, build_network, save_classifier, save_network
from likewise.networks.facenet import FaceNet
from likewise.training.loop import Keep, Trained, train
from likewise.training.objectives import Classes, Harmonic, Logits, SemiHard
from likewise.training.records import Record
from likewise.training.schedules import AdaGrad, Cosine, Schedule

# The paper's networks have no BatchNorm. On LFW, in batches of 56, the mean squared distance of NNS2's embeddings fell
# to 0.01 in 8 steps at 1e-3, and rose to 1.4 in 24 steps at this.
UNNORMED_PEAK = 1e-4


@dataclass(frozen=True)
class Plan:
    """Everything that decides the outcome of a run besides its data.

    A batch for triplets has `faces` of each of `identities` people and `random` others; for classes it has as many
    images, drawn evenly. objective: "triplet" and "classes" give a network that embeds; "classifier" gives one with a
    logit for each class, of which embedding_dim and margin say nothing. size: rows and columns of the images for a
    network that takes any; a network of the paper has its own. chunk: images in memory at a time, with the gradient of
    the whole batch. rate: of the schedule, which has its own unless given.
    """

    network: str = "nns2"
    embedding_dim: int = 128
    objective: Literal["triplet", "classes", "classifier"] = "triplet"
    margin: float = 0.2
    steps: int = 1000
    identities: int = 30
    faces: int = 10
    random: int = 60
    schedule: Literal["cosine", "adagrad"] = "cosine"
    rate: float | None = None
    chunk: int | None = None
    size: tuple[int, int] | None = None
    augment: bool = True
    seed: int = 0

    def __post_init__(self) -> None:
        require_choice("Plan", "objective", self.objective, ("triplet", "classes", "classifier"))
        require_choice("Plan", "schedule", self.schedule, ("cosine", "adagrad"))
        require_count("Plan", "steps", self.steps)
        require(self.rate is None or self.rate > 0, "Plan", "rate", "be positive", self.rate)

    @property
    def images(self) -> int:
        """Of a full batch."""
        return self.identities * self.faces + self.random

    def to_schedule(self) -> Schedule:
        """The optimiser and its rates."""
        if self.schedule == "adagrad":
            return AdaGrad() if self.rate is None else AdaGrad(start=self.rate)
        if self.rate is None:
            return Cosine(peak=UNNORMED_PEAK) if self.network.startswith("nn") else Cosine()
        return Cosine(peak=self.rate)


class Fitted(NamedTuple):
    """A trained network, how it went, and the hash of the file; no hash if the run was stopped."""

    network: Network
    preparation: Preparation
    trained: Trained
    hash: str | None


@dataclass(frozen=True)
class ByIdentity:
    """The batches of a sampler by step: epoch after epoch, for ever."""

    sampler: IdentitySampler

    def __getitem__(self, step: int, /) -> list[int]:
        epoch, place = divmod(step, len(self.sampler))
        return self.sampler.rows(epoch=epoch, batch=place)


def fit(
    some: Examples,
    plan: Plan,
    out: Path,
    *,
    harmonic: Harmonic | None = None,
    resume: bool = False,
    workers: int = 0,
    every: int = 100,
    snapshots: Collection[int] = (),
    watch: Callable[[Record], bool | None] | None = None,
) -> Fitted:
    """Train a network on examples and write it to `out`, with a checkpoint and a log of every step beside it.

    harmonic: train in harmony with the vectors of an older network, instead of plan.objective. resume: go on from the
    checkpoint; a run under another plan or on other data is refused. every: steps between checkpoints. snapshots:
    after so many steps the network is written too, to model.step-N.safetensors. watch: as in `train`.
    """
    require(len(some) > 0, "fit", "examples", "not be empty", 0)
    alone = harmonic is None or plan.objective != "classifier"
    require(alone, "fit", "harmonic", "be left out for a classifier, which has no embeddings to keep", "vectors")
    network, options = planned_network(some, plan)
    preparation = planned_preparation(some, plan, network)
    objective: nn.Module = harmonic or planned_objective(some, plan)
    drawn = planned_batches(some, plan)
    augmentation = planned_augmentation(some) if plan.augment else None
    feed = Batches(some, preparation, drawn, augmentation, seed=plan.seed, workers=workers)
    settings = {**asdict(plan), "data": some.fingerprint, "harmonic": harmonic.fingerprint if harmonic else None}
    keep = Keep(beside(out, "checkpoint"), beside(out, "jsonl"), every, settings)

    def write(path: Path) -> str:
        if plan.objective == "classifier":
            facts = {"classes": some.identities, "preparation": preparation, "trained_on": some.fingerprint}
            return save_classifier(network, path, name=plan.network, **facts)
        return save_network(network, path, name=plan.network, options=options, preparation=preparation)

    def watched(record: Record) -> bool | None:
        if record.step + 1 in snapshots:
            write(beside(out, f"step-{record.step + 1}.safetensors"))
        return watch(record) if watch else None

    trained = train(
        network,
        objective,
        feed,
        steps=plan.steps,
        schedule=plan.to_schedule(),
        chunk=plan.chunk,
        keep=keep,
        resume=resume,
        guard=CollapseGuard(margin=plan.margin) if plan.objective == "triplet" else None,
        watch=watched,
    )
    found = write(out) if trained.finished else None
    network.eval()
    return Fitted(network, preparation, trained, found)


def beside(out: Path, end: str) -> Path:
    """model.safetensors -> model.checkpoint, model.jsonl, ...

    >>> beside(Path("a/model.safetensors"), "jsonl").as_posix()
    'a/model.jsonl'
    """
    return out.with_name(f"{out.name.removesuffix('.safetensors')}.{end}")


def planned_network(some: Examples, plan: Plan) -> tuple[Network, dict[str, Any]]:
    """A new network, and the options with which it was built: as many channels as the images have, where it can."""
    if plan.objective == "classifier":
        channels, classes = some.read(0).shape[2], len(some.identities)
        return build_classifier(plan.network, channels=channels, num_classes=classes, seed=plan.seed), {}
    options: dict[str, Any] = {"embedding_dim": plan.embedding_dim}
    if not plan.network.startswith("nn"):
        options["channels"] = some.read(0).shape[2]
    return build_network(plan.network, options, seed=plan.seed), options


def planned_preparation(some: Examples, plan: Plan, network: Network) -> Preparation:
    """The network's size, or the plan's, or that of the first image."""
    if isinstance(network, FaceNet):
        fits = plan.size in (None, network.size)
        require(fits, "fit", "size", f"be that of {plan.network}, {network.size}", plan.size)
        return Preparation(network.size)
    rows, columns, channels = some.read(0).shape
    return Preparation(plan.size or (rows, columns), channels)


def planned_objective(some: Examples, plan: Plan) -> nn.Module:
    """What is lowered."""
    if plan.objective == "classes":
        return Classes(plan.embedding_dim, len(some.identities), seed=plan.seed)
    if plan.objective == "classifier":
        return Logits()
    return SemiHard(margin=plan.margin, fallback="farthest", seed=plan.seed)


def planned_batches(some: Examples, plan: Plan) -> Drawn:
    """Which rows each step takes."""
    if plan.objective != "triplet":
        return Shuffled(len(some), min(plan.images, len(some)), plan.seed)
    sampler = IdentitySampler(
        some.labels, identities=plan.identities, faces=plan.faces, random=plan.random, seed=plan.seed
    )
    return ByIdentity(sampler)


def planned_augmentation(some: Examples) -> Augmentation:
    """Mirrored faces are faces; mirrored digits are not digits."""
    return Augmentation(mirror=0.0) if some.read(0).shape[2] == 1 else Augmentation()
