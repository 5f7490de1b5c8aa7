"""A network as a chain of named segments, and the proof that the chain is the network."""

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from likewise.checks import refuse, require

Segment = Callable[[Tensor], Tensor]
Chain = tuple[tuple[str, Segment], ...]


def chain_of(network: nn.Module, segments: Sequence[tuple[str, Segment]] | None = None) -> Chain:
    """The segments given, or those the network offers as `.segments`, or the layers of an nn.Sequential.

    >>> [name for name, _ in chain_of(nn.Sequential(nn.Flatten(), nn.Linear(4, 2)))]
    ['0', '1']
    """
    found = tuple(_offered(network) if segments is None else segments)
    names = [name for name, _ in found]
    distinct = len(set(names)) == len(names) > 0
    require(distinct, "EarlyExit", "segments", "have names, each once", names)
    return found


def _offered(network: nn.Module) -> Sequence[tuple[str, Segment]]:
    offered: Any = getattr(network, "segments", None)
    if offered is not None:
        return offered() if callable(offered) else offered
    hint = "Give segments=[(name, module), ...], first to last."
    require(isinstance(network, nn.Sequential), "EarlyExit", "network", "offer segments", type(network).__name__, hint)
    return list(network.named_children())


def require_same(network: nn.Module, chain: Chain, x: Tensor) -> list[Tensor]:
    """Refuse a chain that is not the network on x, bit for bit; gives what comes out of each segment."""
    outputs = []
    with torch.no_grad(), evaluating(network):
        wanted = network(x)
        for _, segment in chain:
            x = segment(x)
            outputs.append(x)
    if x.shape != wanted.shape or not torch.equal(x, wanted):
        got = tuple(x.shape) if x.shape != wanted.shape else f"differences up to {(x - wanted).abs().max().item():.3g}"
        refuse("EarlyExit", "segments", f"give the network's {tuple(wanted.shape)}, bit for bit", got)
    return outputs


@contextmanager
def evaluating(network: nn.Module) -> Generator[None, None, None]:
    """Evaluation mode for a while; afterwards every part has the mode it had."""
    modes = [(part, part.training) for part in network.modules()]
    network.eval()
    try:
        yield
    finally:
        for part, mode in modes:
            part.training = mode
