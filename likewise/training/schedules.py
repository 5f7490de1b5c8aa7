"""How far each step goes: an optimiser and its learning rate, step by step."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import torch
from torch import nn

from likewise.checks import require


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
        require(self.peak > 0, "Cosine", "peak", "be positive", self.peak)
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
