"""What a network costs, segment by segment, from the shapes of its convolutions and linear layers alone."""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor, nn

from likewise.networks import Network


class Count(NamedTuple):
    """Of one segment: the shape of its output for one image, parameters, multiply-adds, and additions of a bias."""

    shape: tuple[int, ...]
    params: int
    macs: int
    biases: int


def count(make: Callable[[], Network], *image: int) -> dict[str, Count]:
    """Every segment of a network without memory (on the meta device) that sees one image of shape (C, Y, X)."""
    with torch.device("meta"):
        model, x = make(), torch.zeros(1, *image)
    counts = {}
    for name, segment in model.segments:
        x, layers = applied(segment, x)
        macs = sum(out.numel() * layer.weight[0].numel() for layer, out in layers)
        biases = sum(out.numel() for layer, out in layers if layer.bias is not None)
        params = sum(weight.numel() for weight in segment.parameters())
        counts[name] = Count(tuple(x.shape[1:]), params, macs, biases)
    return counts


def applied(segment: nn.Module, x: Tensor) -> tuple[Tensor, list[tuple[nn.Conv2d | nn.Linear, Tensor]]]:
    """What a segment makes of x, and every convolution and linear layer that ran, with its output."""
    layers = []
    for module in segment.modules():
        if isinstance(module, nn.Conv2d | nn.Linear):
            module.register_forward_hook(lambda layer, _, out: layers.append((layer, out)))
    return segment(x), layers


def totals(counts: dict[str, Count]) -> tuple[int, int, int]:
    """Parameters, multiply-adds with biases, multiply-adds without."""
    params, macs, biases = (sum(column) for column in zip(*(row[1:] for row in counts.values()), strict=True))
    return params, macs + biases, macs
