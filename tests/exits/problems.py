"""Small classifiers to leave early."""

import torch
from torch import Tensor, nn

from likewise.exits import EarlyExit

CLASSES, WIDTH = 5, 7
HEADS = ("first", "second", "third")


class Block(nn.Module):
    """x + tanh(W x): keeps the width, in float64 so that the size of a batch changes no class."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(WIDTH, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.linear(x).tanh()


class Small(nn.Module):
    """Four blocks and logits; offers its segments."""

    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(Block() for _ in range(4))
        self.last = nn.Linear(WIDTH, CLASSES)

    @property
    def segments(self) -> list[tuple[str, nn.Module]]:
        return [*zip((*HEADS, "fourth"), self.blocks, strict=True), ("logits", self.last)]

    def forward(self, x: Tensor) -> Tensor:
        for block in self.blocks:
            x = block(x)
        return self.last(x)


def small(*, seed: int = 0, heads: tuple[str, ...] = HEADS) -> EarlyExit:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = Small().double()
    exits = EarlyExit(network, rows(3), heads=heads, seed=seed).eval()
    for head in range(len(heads)):
        linear(exits, head).weight.data *= 6  # sure of something
    return exits


def linear(exits: EarlyExit, head: int) -> nn.Linear:
    found = exits.heads[head].linear
    assert isinstance(found, nn.Linear)
    return found


def rows(count: int, *, seed: int = 1) -> Tensor:
    return torch.randn(count, WIDTH, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
