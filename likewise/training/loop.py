"""One loop: batches in, a trained network out, and a checkpoint from which it goes on to the last digit.

In many processes each embeds its part of every batch, and every one mines in all of it. With E_r the embeddings of rank
r's part and L the loss of the whole batch, each rank computes L from all E but follows its own rows only: dL/dE_r
dE_r/dw. The sum over ranks is the gradient that one process would have found.
"""

import json
import math
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol, Self, TypeVar, runtime_checkable

import torch
from torch import Tensor, distributed, nn
from torch.nn.modules.batchnorm import _BatchNorm

from likewise.checks import refuse, require, require_count, require_number
from likewise.data import Batch, Skipped
from likewise.data.batches import Drawn
from likewise.metric import CollapseError
from likewise.metric.collapse import CollapseGuard
from likewise.metric.sampler import share
from likewise.metric.triplet import require_rows
from likewise.networks.segments import require_finite
from likewise.networks.weights import weights_hash
from likewise.training.caching import backward_in_chunks, require_chunks
from likewise.training.checkpoints import (
    Record,
    load_checkpoint,
    records_before,
    require_records,
    rewind,
    save_checkpoint,
)
from likewise.training.objectives import Measuring

Value = TypeVar("Value")


class Diverged(ArithmeticError):
    """The loss is no number any more; the message says at which step."""


@runtime_checkable
class Schedule(Protocol):
    """Makes the optimiser and says the learning rate of step `step` of `steps`, counted from 0."""

    def optimiser(self, parameters: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
        """The optimiser of some parameters."""
        ...

    def rate(self, step: int, steps: int) -> float:
        """The learning rate of a step."""
        ...


@dataclass(frozen=True)
class Cosine:
    """AdamW; the rate rises in a line over the first part of the steps, then falls in half a cosine to 0.

    >>> [round(Cosine(peak=1.0, warmup=0.5).rate(step, 8), 3) for step in range(8)]
    [0.2, 0.4, 0.6, 0.8, 1.0, 0.854, 0.5, 0.146]

    Paper: SGDR, arXiv 1608.03983, equation 5, without restarts.
    """

    peak: float = 1e-3
    warmup: float = 0.05
    decay: float = 1e-4

    def __post_init__(self) -> None:
        require_number("Cosine", "peak", self.peak)
        require_number("Cosine", "warmup", self.warmup, least=0)
        require(0 <= self.warmup < 1, "Cosine", "warmup", "be a part of the steps, from 0 to below 1", self.warmup)

    def optimiser(self, parameters: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
        return torch.optim.AdamW(parameters, lr=self.peak, weight_decay=self.decay)

    def rate(self, step: int, steps: int) -> float:
        rising = int(self.warmup * steps)
        if step < rising:
            return self.peak * (step + 1) / (rising + 1)
        return self.peak * 0.5 * (1 + math.cos(math.pi * (step - rising) / (steps - rising)))


@dataclass(frozen=True)
class AdaGrad:
    """AdaGrad at one rate, which is lowered to a tenth near the end.

    >>> [round(AdaGrad(last=0.25).rate(step, 4), 4) for step in range(4)]
    [0.05, 0.05, 0.05, 0.005]

    Paper: FaceNet, arXiv 1503.03832, section 3: "we start with a learning rate of 0.05 which we lower to finalize the
    model". When, and by how much, is not said; ours is the last tenth of the steps.
    """

    start: float = 0.05
    last: float = 0.1

    def __post_init__(self) -> None:
        require(self.start > 0, "AdaGrad", "start", "be positive", self.start)
        require(0 <= self.last <= 1, "AdaGrad", "last", "be a part of the steps, from 0 to 1", self.last)

    def optimiser(self, parameters: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
        return torch.optim.Adagrad(parameters, lr=self.start)

    def rate(self, step: int, steps: int) -> float:
        return self.start * (0.1 if step >= steps - int(self.last * steps) else 1.0)


@runtime_checkable
class Feed(Protocol):
    """The batches from any step on, as `likewise.data.Batches` gives them."""

    def since(self, step: int) -> Iterator[Batch]: ...


@dataclass(frozen=True)
class Ranks:
    """This process among all of a run.

    >>> Ranks.here()
    Ranks(rank=0, world=1)
    """

    rank: int = 0
    world: int = 1

    @classmethod
    def here(cls) -> Self:
        """By torch's process group; alone, where there is none."""
        if distributed.is_available() and distributed.is_initialized():
            return cls(distributed.get_rank(), distributed.get_world_size())
        return cls()

    @property
    def writes(self) -> bool:
        """Whether files are this process's business."""
        return self.rank == 0

    def all(self, value: Value) -> list[Value]:
        """What every process gives, in the order of ranks."""
        if self.world == 1:
            return [value]
        found: list[Value] = [value] * self.world
        distributed.all_gather_object(found, value)
        return found

    def once(self, action: Callable[[], Value]) -> Value:
        """What an action gives that rank 0 takes for all, such as writing a file."""
        (found, *_) = self.all(action() if self.writes else None)
        assert found is not None
        return found

    def batch(self, part: Batch) -> Batch:
        """Labels, rows and skipped files of all parts; the images of this one."""
        if self.world == 1:
            return part
        steps, labels, rows, skipped = zip(*self.all((part.step, part.labels, part.rows, part.skipped)), strict=True)
        require(len(set(steps)) == 1, "train", "feed", "be at the same step in all processes", steps)
        same = len(rows[0]) > 0 and all(torch.equal(each, rows[0]) for each in rows)
        require(not same, "train", "feed", "give each process its own part of a batch", "the same rows in all")
        return replace(part, labels=torch.cat(labels), rows=torch.cat(rows), skipped=sum(skipped, ()))

    def embeddings(self, part: Tensor) -> Tensor:
        """The embeddings of all parts; a gradient flows into this one only."""
        if self.world == 1:
            return part
        found = [each.to(part.device) for each in self.all(part.detach().cpu())]
        found[self.rank] = part
        return torch.cat([each for each in found if len(each)])

    def add_gradients(self, network: nn.Module) -> None:
        """Every process gets the sum; what nobody has a gradient of is left without."""
        learned = [weight for weight in network.parameters() if weight.requires_grad] if self.world > 1 else []
        found = self.all([weight.grad is not None for weight in learned])
        for weight, has in zip(learned, map(any, zip(*found, strict=True)), strict=True):
            if has:
                weight.grad = torch.zeros_like(weight) if weight.grad is None else weight.grad
                distributed.all_reduce(weight.grad)

    def check(self, network: nn.Module) -> None:
        """Refuse what would see its own part of a batch and take it for the whole."""
        for name, module in network.named_modules() if self.world > 1 else ():
            if isinstance(module, _BatchNorm):
                hint = "Take a network without, such as nns2."
                refuse("train", "network", f"have no BatchNorm in {self.world} processes", name, hint)

    def check_alike(self, step: int, *modules: nn.Module) -> None:
        """Refuse processes that stand at different steps or hold different weights: nothing later would show it."""
        if self.world > 1:
            steps = self.all(step)
            require(len(set(steps)) == 1, "train", "resume", "find the same step in all processes", steps)
            weights = self.all([weights_hash(module.state_dict(), {}) for module in modules])
            alike = all(each == weights[0] for each in weights)
            require(alike, "train", "network", "begin with the same weights in all processes", "others")

    def seed(self, seed: int, *, own: bool) -> None:
        """In many processes, begin torch's chance anew at every step, so that no checkpoint has to hold that of all.

        own: each its own, for the network; else the same in all, so that they find the same loss.
        """
        if self.world > 1:
            torch.manual_seed((seed * (self.world + 1) + (1 + self.rank if own else 0)) % (1 << 63))


@dataclass(frozen=True)
class RankRows:
    """Of every batch the rows that are a rank's: the parts in order are the batch.

    >>> [RankRows([[5, 6, 7], [8, 9]], Ranks(rank, 2))[0] for rank in range(2)]
    [[5], [6, 7]]
    """

    drawn: Drawn
    ranks: Ranks

    def __getitem__(self, step: int, /) -> Sequence[int]:
        return share(self.drawn[step], rank=self.ranks.rank, world=self.ranks.world)


@contextmanager
def joined_ranks() -> Generator[Ranks]:
    """Yield this process's place; if `torchrun` has started it among others, they meet first and part afterwards."""
    launched = distributed.is_available() and distributed.is_torchelastic_launched()
    if not launched or distributed.is_initialized():
        yield Ranks.here()
        return
    distributed.init_process_group("gloo")
    try:
        yield Ranks.here()
    finally:
        distributed.destroy_process_group()


@dataclass(frozen=True)
class CheckpointPolicy:
    """Where a run is kept: a checkpoint every so many steps and at the end, and a log of every step.

    settings: what must be the same for a resumed run to be the same run; anything that JSON can hold.
    """

    checkpoint: Path
    log: Path
    every: int = 100
    settings: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        require_count("CheckpointPolicy", "every", self.every)

    @property
    def plain(self) -> dict[str, Any]:
        """The settings as JSON gives them back."""
        return json.loads(json.dumps(dict(self.settings)))


@dataclass(frozen=True)
class Trained:
    """How it went. `finished` is False if it was stopped; then the checkpoint holds all that is needed to go on."""

    records: tuple[Record, ...]
    finished: bool
    skipped: tuple[Skipped, ...] = ()


def train(
    network: nn.Module,
    objective: nn.Module,
    feed: Feed,
    *,
    steps: int,
    schedule: Schedule | None = None,
    chunk: int | None = None,
    keep: CheckpointPolicy | None = None,
    resume: bool = False,
    seed: int = 0,
    guard: CollapseGuard | None = None,
    watch: Callable[[Record], bool | None] | None = None,
) -> Trained:
    """Train a network, in place: for each batch, one step down the gradient of objective(network(images), batch).

    schedule: the optimiser and its rates, Cosine() unless given. chunk: so many images at a time in memory, with the
    gradient of the whole batch (`backward_in_chunks`). keep: checkpoint and log; `resume` goes on from there, if there
    is one, exactly: losses and weights are those of a run that was never interrupted. watch: called with the record of
    every step; True ends the run after it, and an exception ends it without a checkpoint of its own. seed: of chance
    inside the network, such as dropout; the caller's generator is left alone. guard: stops a run whose embeddings have
    collapsed, with `likewise.metric.CollapseError`; it takes the loss for that of active triplets.

    In a process group of torch every process calls this with the same network and objective and with its own part of
    every batch, as `RankRows` gives it. All of them mine in the whole batch and take the step that one process would
    have taken, up to rounding and to chance inside the network, which each has of its own. Rank 0 writes the files, and
    one `watch` that says True is enough.
    """
    require_count("train", "steps", steps)
    schedule = Cosine() if schedule is None else schedule
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        run = _Run(network.train(), objective.train(), schedule, steps, chunk, keep, guard, Ranks.here(), seed)
        records = run.resume() if resume else run.start()
        run.ranks.check_alike(run.step, network, objective)
        stopped = False
        batches = feed.since(run.step)
        while run.step < steps and not stopped:
            batch = run.ranks.batch(next(batches))
            record = run.take(batch)
            del batch  # or it would be there while the next one is read
            records.append(record)
            if run.step == steps or (keep and run.due(keep.every)):
                require_sound(network, record.step)
            stopped = any(run.ranks.all(bool(watch and watch(record))))
            if keep and run.ranks.writes and (stopped or run.step == steps or run.due(keep.every)):
                run.save()
        run.ranks.all(None)  # nobody goes on, or resumes, before the files are there
    return Trained(tuple(records), run.step == steps, tuple(run.skipped))


def require_sound(network: nn.Module, step: int) -> None:
    """Say `Diverged` of a network that could not be written."""
    try:
        require_finite("train", network.state_dict())
    except ValueError:
        raise Diverged(f"train: weights after step {step} are not finite. Lower the learning rate.") from None


def require_trainable(network: nn.Module, chunk: int | None) -> None:
    """Refuse a network that `train` would refuse, before anything is written or removed."""
    Ranks.here().check(network)
    if chunk is not None:
        require_chunks(network.train(), chunk)


class _Run:
    def __init__(
        self,
        network: nn.Module,
        objective: nn.Module,
        schedule: Schedule,
        steps: int,
        chunk: int | None,
        keep: CheckpointPolicy | None,
        guard: CollapseGuard | None,
        ranks: Ranks,
        seed: int,
    ) -> None:
        require_trainable(network, chunk)
        self.network, self.objective, self.schedule, self.steps = network, objective, schedule, steps
        self.chunk, self.keep, self.guard, self.step = chunk, keep, guard, 0
        self.ranks, self.seed = ranks, seed
        self.skipped: dict[Skipped, None] = {}
        learned = [weight for module in (network, objective) for weight in module.parameters() if weight.requires_grad]
        self.optimiser = schedule.optimiser(learned)
        self.device = next(network.parameters()).device

    def start(self) -> list[Record]:
        return rewind(self.keep.log, 0) if self.keep and self.ranks.writes else []

    def resume(self) -> list[Record]:
        if self.keep is None or not self.keep.checkpoint.is_file():
            return self.start()
        modules = self.network, self.objective
        step, watched, skipped = load_checkpoint(self.keep.checkpoint, *modules, self.optimiser, self.keep.plain)
        require_records(self.keep.log, step)
        self.step, self.skipped = step, {Skipped(*each): None for each in skipped}
        if self.guard:
            self.guard.load_state_dict(watched)
        return (rewind if self.ranks.writes else records_before)(self.keep.log, self.step)

    def due(self, every: int) -> bool:
        """Whether it is time for a checkpoint. Not while embeddings collapse: the one before that is worth more."""
        return self.step % every == 0 and not (self.guard and self.guard.streak)

    def save(self) -> None:
        assert self.keep is not None
        modules = self.network, self.objective
        watched = self.guard.state_dict() if self.guard else {}
        seen = {"watched": watched, "skipped": [list(each) for each in self.skipped]}
        save_checkpoint(self.keep.checkpoint, *modules, self.optimiser, self.step, self.keep.plain, seen)

    def take(self, batch: Batch) -> Record:
        """One step, and its line in the log."""
        started = time.perf_counter()
        rate = self.schedule.rate(self.step, self.steps)
        for group in self.optimiser.param_groups:
            group["lr"] = rate
        self.optimiser.zero_grad()
        self.skipped |= dict.fromkeys(batch.skipped)
        self.ranks.seed(self.seed * self.steps + self.step, own=True)
        loss, embeddings = self._backward(batch)
        self.ranks.add_gradients(self.network)
        if not math.isfinite(loss):
            raise Diverged(f"train: the loss of step {self.step} is {loss}. Lower the learning rate.")
        self.optimiser.step()
        measures = self.objective.measure(embeddings, batch) if isinstance(self.objective, Measuring) else {}
        collapsed = self._collapsed(embeddings, loss)
        record = Record(self.step, loss, rate, len(batch.rows), time.perf_counter() - started, measures)
        self.step += 1
        if self.keep and self.ranks.writes:
            with self.keep.log.open("a") as log:
                log.write(record.to_line())
        if collapsed:
            raise collapsed
        return record

    def _collapsed(self, embeddings: torch.Tensor, loss: float) -> CollapseError | None:
        """Why the guard, if there is one, stops the run after this step."""
        if self.guard and len(embeddings) > 1:
            try:
                self.guard.check(embeddings, active_loss=loss)
            except CollapseError as error:
                return error
        return None

    def _backward(self, batch: Batch) -> tuple[float, torch.Tensor]:
        """The loss of a whole batch, its gradients by this part, and all its embeddings."""
        images = batch.images.to(self.device)
        if not len(batch.labels):  # all of them were unreadable
            return 0.0, batch.numbers(images).flatten(1)

        def loss_of(part: torch.Tensor) -> torch.Tensor:
            self.ranks.seed(self.seed * self.steps + self.step, own=False)
            embeddings = self.ranks.embeddings(part)
            try:
                require_rows("train", "embeddings", embeddings)
            except ValueError:
                fault = f"embeddings of step {self.step} are not finite, or too long to measure"
                raise Diverged(f"train: {fault}. Lower the learning rate.") from None
            return self.objective(embeddings, batch)

        if self.chunk is not None and len(images):
            loss, embeddings = backward_in_chunks(
                self.network, images, loss_of, chunk=self.chunk, prepare=batch.numbers
            )
        else:
            numbers = batch.numbers(images)
            embeddings = self.network(numbers) if len(numbers) else numbers.flatten(1)
            loss = loss_of(embeddings)
            if loss.requires_grad:
                loss.backward()
        return float(loss.detach()), self.ranks.embeddings(embeddings.detach())
