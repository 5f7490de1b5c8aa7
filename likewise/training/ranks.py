"""One run in many processes: each embeds its part of every batch, and every one mines in all of it.

With E_r the embeddings of rank r's part and L the loss of the whole batch, each rank computes L from all E but follows
its own rows only: dL/dE_r dE_r/dw. The sum over ranks is the gradient that one process would have found.
"""

import os
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Self, TypeVar

import torch
from torch import Tensor, distributed, nn
from torch.nn.modules.batchnorm import _BatchNorm

from likewise.checks import refuse
from likewise.data import Batch
from likewise.data.batches import Drawn
from likewise.metric.sampler import share

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

    def batch(self, part: Batch) -> Batch:
        """Labels, rows and skipped files of all parts; the images of this one."""
        if self.world == 1:
            return part
        labels, rows, skipped = zip(*self.all((part.labels, part.rows, part.skipped)), strict=True)
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
            if isinstance(module, _BatchNorm) and not isinstance(module, nn.SyncBatchNorm):
                hint = "Take a network without, such as nns2; on GPUs, SyncBatchNorm."
                refuse("train", "network", f"have no BatchNorm in {self.world} processes", name, hint)


@dataclass(frozen=True)
class Part:
    """Of every batch the rows that are a rank's: the parts in order are the batch.

    >>> [Part([[5, 6, 7], [8, 9]], Ranks(rank, 2))[0] for rank in range(2)]
    [[5], [6, 7]]
    """

    drawn: Drawn
    ranks: Ranks

    def __getitem__(self, step: int, /) -> Sequence[int]:
        return share(self.drawn[step], rank=self.ranks.rank, world=self.ranks.world)


@contextmanager
def joined_ranks() -> Generator[Ranks]:
    """Yield this process's place; if `torchrun` has started it among others, they meet first and part afterwards."""
    if int(os.environ.get("WORLD_SIZE", "1")) == 1 or distributed.is_initialized():
        yield Ranks.here()
        return
    distributed.init_process_group("gloo")
    try:
        yield Ranks.here()
    finally:
        distributed.destroy_process_group()
