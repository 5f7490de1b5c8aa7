"""A run in two parts: first one layer alone, then all of them, as if it were one."""

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Self

from torch import Tensor, nn

from likewise.data import Batch
from likewise.networks import Network, embedding_layer
from likewise.training.loop import Feed, Trained


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
