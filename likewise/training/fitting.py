"""One call from examples to a file: a plan says everything that a run depends on."""

from collections.abc import Callable, Collection, Generator, Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple, Self

from torch import Tensor, nn

from likewise.checks import require, require_choice, require_count, require_number
from likewise.data import Batch, Batches, Examples, Preparation
from likewise.data.batches import Augmentation, Drawn, Shuffled
from likewise.metric import IdentitySampler
from likewise.metric.collapse import CollapseGuard
from likewise.metric.triplet import require_margin
from likewise.networks import Network, Saved, build_classifier, build_network, save_classifier, save_network
from likewise.networks.facenet import FaceNet
from likewise.networks.segments import embedding_layer
from likewise.training.checkpoints import Record, checkpoint_settings, remove_dead_parts, run_lock
from likewise.training.loop import (
    AdaGrad,
    CheckpointPolicy,
    Cosine,
    Feed,
    RankRows,
    Ranks,
    Schedule,
    Trained,
    require_sound,
    require_trainable,
    train,
)
from likewise.training.objectives import Classes, Harmonic, Logits, SemiHard

# The paper's networks have no BatchNorm. On LFW, in batches of 56, the mean squared distance of NNS2's embeddings fell
# to 0.01 in 8 steps at 1e-3, and rose to 1.4 in 24 steps at this.
UNNORMED_PEAK = 1e-4
# Of AdaGrad. At the paper's 0.05, for batches of 1,800, their effective rank fell to 1.4 within 60 steps of 50 images;
# at this it stayed above 4, and the mean squared distance rose to 1.2.
UNNORMED_START = 5e-4
LARGEST_UNASKED = 256 * 256  # pixels of images that are taken as they are: a batch of photographs would fill memory


@dataclass(frozen=True)
class TrainingPlan:
    """Everything that decides the outcome of a run besides its data.

    A batch for triplets has `faces` of each of `identities` people and `random` others; for classes it has as many
    images, drawn evenly. objective: "triplet" and "classes" give a network that embeds; "classifier" gives one with a
    logit for each class, of which embedding_dim and margin say nothing. size: rows and columns of the images for a
    network that takes any; a network of the paper has its own. chunk: images in memory at a time, with the gradient of
    the whole batch. rate: of the schedule, which has its own unless given. head_steps: before the `steps`, so many in
    which the embedding layer, begun anew, learns alone; for a run that starts from a trained network.
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
    head_steps: int = 0

    def __post_init__(self) -> None:
        require_choice("TrainingPlan", "objective", self.objective, ("triplet", "classes", "classifier"))
        require_choice("TrainingPlan", "schedule", self.schedule, ("cosine", "adagrad"))
        least = {"steps": 1, "embedding_dim": 1, "identities": 1, "faces": 1, "random": 0, "head_steps": 0, "seed": 0}
        for name, fewest in least.items():
            require_count("TrainingPlan", name, getattr(self, name), least=fewest)
        if self.chunk is not None:
            require_count("TrainingPlan", "chunk", self.chunk)
        if self.rate is not None:
            require_number("TrainingPlan", "rate", self.rate)
        require_margin("TrainingPlan", self.margin)

    @property
    def images(self) -> int:
        """Of a full batch."""
        return self.identities * self.faces + self.random

    def to_schedule(self) -> Schedule:
        """The optimiser and its rates."""
        unnormed, adagrad = self.network.startswith("nn"), self.schedule == "adagrad"
        rate = self.rate or ((UNNORMED_START if adagrad else UNNORMED_PEAK) if unnormed else None)
        if adagrad:
            return AdaGrad() if rate is None else AdaGrad(start=rate)
        return Cosine() if rate is None else Cosine(peak=rate)


class FitResult(NamedTuple):
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
    examples: Examples,
    plan: TrainingPlan,
    out: Path,
    *,
    harmonic: Harmonic | None = None,
    start: Saved | None = None,
    resume: bool = False,
    workers: int = 0,
    every: int = 100,
    snapshots: Collection[int] = (),
    watch: Callable[[Record], bool | None] | None = None,
) -> FitResult:
    """Train a network on examples and write it to `out`, with a checkpoint and a log of every step beside it.

    harmonic: train in harmony with the vectors of an older network, instead of plan.objective. start: the network to
    begin with; with plan.head_steps its embedding layer is made anew and first learns alone (its checkpoint and log
    are beside, too). resume: go on from the checkpoint; a run under another plan, from another start or on other data
    is refused. every: steps between checkpoints. snapshots: after so many steps the network is written too, to
    model.step-N.safetensors. watch: as in `train`; steps count through both parts. In a process group of torch the
    processes share every batch and rank 0 writes. A lock beside `out` refuses a second run to it meanwhile.

    Paper: FaceNet, arXiv 1503.03832, appendix 7: start from an independently trained network, train its embedding layer
    from a random one, then all layers, with triplets of both versions.
    """
    require(len(examples) > 0, "fit", "examples", "not be empty", 0)
    _require_together(plan, harmonic, start, snapshots)
    network, options = planned_network(examples, plan, start)
    preparation = planned_preparation(examples, plan, network, start)
    objective: nn.Module = harmonic or planned_objective(examples, plan)
    augmentation = planned_augmentation(examples) if plan.augment else None
    ranks = Ranks.here()
    drawn = RankRows(planned_batches(examples, plan), ranks)
    feed = Batches(examples, preparation, drawn, augmentation, seed=plan.seed, workers=workers, as_bytes=True)
    settings = {
        **asdict(plan),
        "data": examples.fingerprint,
        "harmonic": harmonic.fingerprint if harmonic else None,
        "start": start.hash if start else None,
        "rates": repr(plan.to_schedule()),  # those that it has unless given may change
    }

    def write(path: Path) -> str:
        """The file of the network; gives its hash."""
        if plan.objective == "classifier":
            facts = {"classes": examples.identities, "trained_on": examples.fingerprint}
            return save_classifier(network, path, name=plan.network, preparation=preparation, **facts)
        seen = dict.fromkeys([*(start.trained_on if start else ()), examples.origin])
        facts = {"options": options, "trained_on": tuple(seen)}
        return save_network(network, path, name=plan.network, preparation=preparation, **facts)

    def watched(record: Record) -> bool | None:
        if record.step + 1 in snapshots:
            require_sound(network, record.step)
            ranks.once(lambda: write(beside(out, f"step-{record.step + 1}.safetensors")))
        return any(ranks.all(bool(watch and watch(record))))

    course = Course(plan, objective, feed, out, settings, every, watched)
    with run_lock(beside(out, "lock")) if ranks.writes else nullcontext():
        if ranks.writes:
            remove_dead_parts(out)
        trained = course.run(network, resume=resume)
        network.eval()
        found = ranks.once(lambda: write(out)) if trained.finished else None
    return FitResult(network, preparation, trained, found)


def _require_together(
    plan: TrainingPlan, harmonic: Harmonic | None, start: Saved | None, snapshots: Collection[int]
) -> None:
    """Refuse what does not go with a plan."""
    for name, given in (("harmonic", harmonic), ("start", start)):
        alone = given is None or plan.objective != "classifier"
        require(alone, "fit", name, "be left out for a classifier, which has no embeddings to keep", "vectors")
    triplets = harmonic is None or plan.objective == "triplet"
    require(triplets, "fit", "objective", "be triplet in harmony with another network", plan.objective)
    last = plan.head_steps + plan.steps
    for step in snapshots:
        require(0 < step <= last, "fit", "snapshots", f"be of the {last} steps", step)


@dataclass(frozen=True, eq=False)
class Course:
    """A planned run: the embedding layer alone, if so planned, then all layers."""

    plan: TrainingPlan
    objective: nn.Module
    feed: Feed
    out: Path
    settings: Mapping[str, Any]
    every: int
    watch: Callable[[Record], bool | None] | None

    def run(self, network: Network, *, resume: bool) -> Trained:
        """Both parts; a part that a resumed run has behind it is only read."""
        first, head, stops = Trained((), finished=True), self.plan.head_steps, False
        require_trainable(network, self.plan.chunk)  # before anything of an older run is lost
        for name in ("head.checkpoint", "checkpoint"):
            if not resume:  # or, if this run is cut off early, the next would resume what an older one has left
                beside(self.out, name).unlink(missing_ok=True)
        if head:
            with layer_alone(network) as alone:
                first, stops = self._part(alone, 0, head, "head.", resume)
        if stops or not first.finished:
            return replace(first, finished=False)
        return joined(first, self._part(network, head, self.plan.steps, "", resume)[0], head)

    def _part(
        self, network: nn.Module, before: int, steps: int, name: str, resume: bool
    ) -> tuple[Trained, bool | None]:
        """So many steps, after so many of another part; and whether the last one was asked to be the last."""
        files = [beside(self.out, f"{name}{end}") for end in ("checkpoint", "jsonl")]
        stops: list[bool | None] = [False]

        def watch(record: Record) -> bool | None:
            stops[0] = self.watch(replace(record, step=record.step + before)) if self.watch else None
            return stops[0]

        trained = train(
            network,
            self.objective,
            Later(self.feed, before),
            steps=steps,
            schedule=self.plan.to_schedule(),
            chunk=self.plan.chunk,
            keep=CheckpointPolicy(*files, self.every, self.settings),
            resume=resume,
            guard=CollapseGuard(margin=self.plan.margin) if self.plan.objective == "triplet" else None,
            watch=watch,
        )
        return trained, stops[0]


class Steady(nn.Module):
    """A network that stays as it is in evaluation, also while it is trained: no layer counts what batches look like."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def train(self, mode: bool = True) -> Self:
        super().train(mode)
        self.network.eval()
        return self

    def forward(self, x: Tensor) -> Tensor:
        return self.network(x)


@contextmanager
def layer_alone(network: Network) -> Generator[Steady]:
    """Yield the network such that its embedding layer learns and nothing else changes; afterwards all of it learns."""
    network.requires_grad_(False)
    embedding_layer(network).requires_grad_(True)
    try:
        yield Steady(network)
    finally:
        network.requires_grad_(True)


@dataclass(frozen=True)
class Later:
    """The batches of a feed after the first so many, which another part of the run has had."""

    feed: Feed
    after: int

    def since(self, step: int) -> Iterator[Batch]:
        return self.feed.since(step + self.after)


def joined(first: Trained, second: Trained, steps: int) -> Trained:
    """Two parts of a run as one, the first of so many steps: they go on counting."""
    later = [replace(record, step=record.step + steps) for record in second.records]
    skipped = dict.fromkeys([*first.skipped, *second.skipped])
    return Trained((*first.records, *later), second.finished, tuple(skipped))


def beside(out: Path, end: str) -> Path:
    """model.safetensors -> model.checkpoint, model.jsonl, ...

    >>> beside(Path("a/model.safetensors"), "jsonl").as_posix()
    'a/model.jsonl'
    """
    return out.with_name(f"{out.name.removesuffix('.safetensors')}.{end}")


def unfinished(out: Path) -> str | None:
    """What an interrupted run to `out`, or of its control, has left, if anything: where it stands and in which file."""
    for name in ("head.checkpoint", "checkpoint", "control.head.checkpoint", "control.checkpoint"):
        path = beside(out, name)
        with suppress(ValueError, OSError):  # nothing is lost with a file that cannot be read
            left, alone = checkpoint_settings(path), name.endswith("head.checkpoint")
            steps = left.get("head_steps" if alone else "steps", 0)  # none: the file is of another run than `fit`'s
            cut = alone and not path.with_name(path.name.replace("head.checkpoint", "checkpoint")).is_file()
            if left["step"] < steps or (steps and cut):
                return f"step {left['step']} of {steps} in {path}"
    return None


def planned_network(
    examples: Examples, plan: TrainingPlan, start: Saved | None = None
) -> tuple[Network, dict[str, Any]]:
    """A new network, or one that begins with the weights of another, and the options with which it was built.

    It takes as many channels as the images have, where it can. With plan.head_steps the embedding layer is not taken
    over: it may even have another width.
    """
    if plan.objective == "classifier":
        channels, classes = examples.first().shape[2], len(examples.identities)
        return build_classifier(plan.network, channels=channels, num_classes=classes, seed=plan.seed), {}
    if start:
        require(start.name == plan.network, "fit", "network", f"be that of the start, {start.name}", plan.network)
        width = start.network.embedding_dim
        fits = plan.head_steps > 0 or plan.embedding_dim == width
        require(fits, "fit", "embedding_dim", f"be that of the start, {width}, unless head_steps", plan.embedding_dim)
    else:
        require(not plan.head_steps, "fit", "head_steps", "be 0 without a start", plan.head_steps)
    options: dict[str, Any] = {**(start.options if start else {}), "embedding_dim": plan.embedding_dim}
    if not start and not plan.network.startswith("nn"):
        options["channels"] = examples.first().shape[2]
    network = build_network(plan.network, options, seed=plan.seed)
    if start:
        anew = embedding_layer(network) if plan.head_steps else None
        for (_, mine), (_, theirs) in zip(network.segments, start.network.segments, strict=True):
            if mine is not anew:
                mine.load_state_dict(theirs.state_dict())
    return network, options


def planned_preparation(
    examples: Examples, plan: TrainingPlan, network: Network, start: Saved | None = None
) -> Preparation:
    """That of the start; or the network's size, or the plan's, or that of the first image."""
    if start:
        own = start.preparation
    elif isinstance(network, FaceNet):
        own = Preparation(network.size)
    else:
        rows, columns, channels = examples.first().shape
        asked = plan.size is not None or rows * columns <= LARGEST_UNASKED
        require(asked, "fit", "size", "be given where images are larger than 256 x 256", f"{rows} x {columns}")
        return Preparation(plan.size or (rows, columns), channels)
    require(plan.size in (None, own.size), "fit", "size", f"be that of {plan.network}, {own.size}", plan.size)
    return own


def planned_objective(examples: Examples, plan: TrainingPlan) -> nn.Module:
    """What is lowered."""
    if plan.objective == "classes":
        return Classes(plan.embedding_dim, len(examples.identities), seed=plan.seed)
    if plan.objective == "classifier":
        return Logits()
    return SemiHard(margin=plan.margin, fallback="farthest", seed=plan.seed)


def planned_batches(examples: Examples, plan: TrainingPlan) -> Drawn:
    """Which rows each step takes."""
    count = len(examples.identities)
    if plan.objective != "triplet":
        require(count > 1, "fit", "examples", "have two classes to tell apart", count)
        return Shuffled(len(examples), min(plan.images, len(examples)), plan.seed)
    require(count > 1, "fit", "examples", "have two identities, for there to be negatives", count)
    sampler = IdentitySampler(
        examples.labels, identities=plan.identities, faces=plan.faces, random=plan.random, seed=plan.seed
    )
    return ByIdentity(sampler)


def planned_augmentation(examples: Examples) -> Augmentation:
    """Mirrored faces are faces; mirrored digits are not digits."""
    return Augmentation(mirror=0.0) if examples.first().shape[2] == 1 else Augmentation()
