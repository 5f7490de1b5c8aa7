"""One run in many processes: each embeds its part of every batch, and every one mines in all of it.

With E_r the embeddings of rank r's part and L the loss of the whole batch, each rank computes L from all E but follows
its own rows only: dL/dE_r dE_r/dw. The sum over ranks is the gradient that one process would have found.
"""

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Self, TypeVar

import torch
from torch import Tensor, distributed, nn
from torch.nn.modules.batchnorm import _BatchNorm

from likewise.checks import refuse, require
from likewise.data import Batch
from likewise.data.batches import Drawn
from likewise.metric.sampler import share
from likewise.networks.weights import weights_hash

Value = TypeVar("Value")


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
