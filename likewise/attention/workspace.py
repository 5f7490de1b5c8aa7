"""Memory that the pieces of one call write one after the other.

The system hands out new memory page by page as it is first touched, which takes longer than a sum or a maximum of what
is then written there. What a piece computes on its way is gone when the next piece begins, and can be overwritten.
"""

from contextlib import AbstractContextManager, nullcontext
from typing import Self

import torch
from torch import Tensor
from torch.autograd import forward_ad

from likewise.similarity import wide


class Workspace:
    """Results by name and shape, to be passed as `out=`: found once, then written again by whoever asks again.

    `FRESH` has None for every name, so that every result is new: an operator's `out=None`.

    >>> space = Workspace(torch.zeros(2))
    >>> space("pairs", 3, 4) is space("pairs", 3, 4), space("pairs", 3, 4) is space("pairs", 2, 4)
    (True, False)
    >>> FRESH("pairs", 3, 4)
    """

    def __init__(self, like: Tensor | None) -> None:
        self.like = like
        self.results: dict[tuple[object, ...], Tensor] = {}
        self.parts: dict[str, Workspace] = {}

    @classmethod
    def beside(cls, *inputs: Tensor) -> Self:
        """For what is computed from these."""
        return cls(inputs[0] if can_write(*inputs) else None)

    def __call__(self, name: str, *shape: int) -> Tensor | None:
        """Where to write a result of this name; what was written there before is lost."""
        if self.like is None:
            return None
        if (name, *shape) not in self.results:
            self.results[name, *shape] = self.like.new_empty(shape, dtype=wide(self.like.dtype))
        return self.results[name, *shape]

    def part(self, name: str) -> "Workspace":
        """A workspace inside this one, whose names are its own."""
        if self.like is None:
            return self
        return self.parts.setdefault(name, Workspace(self.like))

    def widened(self, name: str, x: Tensor) -> Tensor:
        """x in the dtype in which to sum."""
        if x.dtype == wide(x.dtype):
            return x
        place = self(name, *x.shape)
        return x.to(wide(x.dtype)) if place is None else place.copy_(x)


FRESH = Workspace(None)


def is_transformed() -> bool:
    """Whether a compiler or a transform of torch.func is at work."""
    return torch.compiler.is_compiling() or torch._C._functorch.peek_interpreter_stack() is not None


def own_dtypes(x: Tensor) -> AbstractContextManager[None]:
    """Within it autocast, if it is on, leaves the arithmetic on x's device alone: sums choose their own dtypes."""
    device = x.device.type
    on = torch.amp.is_autocast_available(device) and torch.is_autocast_enabled(device)
    return torch.autocast(device, enabled=False) if on else nullcontext()


def has_tangent(x: Tensor) -> bool:
    """Whether forward-mode differentiation goes through x."""
    return forward_ad.unpack_dual(x).tangent is not None


def can_write(*inputs: Tensor) -> bool:
    """Whether what is computed from these may be given as `out=`: nobody records it or transforms it."""
    if is_transformed() or (torch.is_grad_enabled() and any(x.requires_grad for x in inputs)):
        return False
    return not any(x.is_meta or has_tangent(x) for x in inputs)
