"""The problem on which forms of attention are timed: B = 1, H = 8, K = V = 64, float32. Needs only torch."""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import torch
from torch import Generator, Tensor

HEADS, WIDTH, FEATURES = 8, 64, 256

Attend = Callable[[Tensor, Tensor, Tensor], Tensor]


class Task(NamedTuple):
    """What is timed of a form."""

    causal: bool
    backward: bool

    @property
    def name(self) -> str:
        """As the tables call it."""
        return f"{'causal' if self.causal else 'both ways'}, {'forward and backward' if self.backward else 'forward'}"


CAUSAL, CAUSAL_BACKWARD = Task(True, False), Task(True, True)
BOTH_WAYS, BOTH_WAYS_BACKWARD = Task(False, False), Task(False, True)
TASKS = (CAUSAL, CAUSAL_BACKWARD, BOTH_WAYS, BOTH_WAYS_BACKWARD)


def inputs(length: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """q, k, v and the gradient of the output ~ N(0, I), the same in every process."""
    q, k, v, gradient = torch.randn(4, 1, HEADS, length, WIDTH, generator=Generator().manual_seed(length))
    return q, k, v, gradient


def input_bytes(length: int) -> int:
    """The memory of q, k and v."""
    return 3 * HEADS * length * WIDTH * torch.float32.itemsize


def projection() -> Tensor:
    """Frequencies (F, K) for peers with random features, so that their output can be computed again elsewhere."""
    return torch.randn(FEATURES, WIDTH, generator=Generator().manual_seed(0))


def runs(make: Callable[[bool], Attend]) -> dict[str, Callable[..., tuple[Tensor, ...]]]:
    """What a worker runs for every task; `make` is given whether it is causal."""
    return {
        task.name: partial(outputs_and_gradients if task.backward else outputs, make(task.causal)) for task in TASKS
    }


def outputs(attend: Attend, q: Tensor, k: Tensor, v: Tensor, gradient: Tensor) -> tuple[Tensor, ...]:
    """The output alone."""
    with torch.inference_mode():
        return (attend(q, k, v),)


def outputs_and_gradients(attend: Attend, q: Tensor, k: Tensor, v: Tensor, gradient: Tensor) -> tuple[Tensor, ...]:
    """The output, and the gradients of q, k and v."""
    leaves = [x.detach().requires_grad_() for x in (q, k, v)]
    out = attend(*leaves)
    return (out.detach(), *torch.autograd.grad(out, leaves, gradient))
