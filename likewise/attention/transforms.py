"""What of PyTorch is at work around a call: compilers, transforms of torch.func, forward mode, autograd, autocast."""

from contextlib import AbstractContextManager, nullcontext

import torch
from torch import Tensor
from torch.autograd import forward_ad


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
    """True if what is computed from these may be written with `out=`: nothing records or transforms it."""
    if is_transformed() or (torch.is_grad_enabled() and any(x.requires_grad for x in inputs)):
        return False
    return not any(x.is_meta or has_tangent(x) for x in inputs)


def allows_data_dependent_branching(x: Tensor) -> bool:
    """Whether the values can decide what to do; in compiled graphs, under vmap and on the meta device they cannot."""
    if torch.compiler.is_compiling() or x.is_meta:
        return False
    functorch = torch._C._functorch
    while functorch.is_functorch_wrapped_tensor(x):
        if functorch.is_batchedtensor(x):
            return False
        x = functorch.get_unwrapped(x)
    return True
