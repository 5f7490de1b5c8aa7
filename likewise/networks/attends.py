"""Looking at and replacing the attention of a network that exists: the same weights, another form."""

import copy
from collections.abc import Sequence
from itertools import chain
from typing import NamedTuple, TypeVar

import torch
from torch import Tensor, nn

from likewise.attention import Attend, MultiHeadAttention, Structure
from likewise.checks import require

Model = TypeVar("Model", bound=nn.Module)


class Captured(NamedTuple):
    """What the attention of one layer was given: q (B, H, T, K), k (B, G, S, K), v (B, G, S, V) and who sees whom."""

    q: Tensor
    k: Tensor
    v: Tensor
    structure: Structure


class Recorder(Attend):
    """Another attention, and what it was given, call by call."""

    def __init__(self, inner: Attend) -> None:
        super().__init__()
        self.inner = inner
        self.calls: list[Captured] = []

    def attend(self, q: Tensor, k: Tensor, v: Tensor, structure: Structure) -> Tensor:
        self.calls.append(Captured(q.detach(), k.detach(), v.detach(), structure))
        return self.inner.attend(q, k, v, structure)


def attentions(model: nn.Module) -> list[MultiHeadAttention]:
    """The attention of every layer, first to last."""
    return [module for module in model.modules() if isinstance(module, MultiHeadAttention)]


def with_attends(model: Model, attends: Sequence[Attend]) -> Model:
    """The same network with other forms of attention, one for each layer: a copy that shares all weights.

    >>> from likewise.attention import Elu, Linear
    >>> from likewise.networks import ByteModel
    >>> model = ByteModel(context=16, dim=8, num_layers=2, num_heads=2)
    >>> other = with_attends(model, [Linear(Elu()), Linear(Elu())])
    >>> other.bytes.weight is model.bytes.weight, [type(layer.attend).__name__ for layer in attentions(other)]
    (True, ['Linear', 'Linear'])
    """
    shared = {id(tensor): tensor for tensor in chain(model.parameters(), model.buffers())}
    twin = copy.deepcopy(model, dict(shared))
    layers = attentions(twin)
    rule = f"be one for each of {len(layers)} layers"
    require(len(attends) == len(layers), "with_attends", "attends", rule, len(attends))
    for layer, attend in zip(layers, attends, strict=True):
        layer.attend = attend.train(twin.training)
    return twin


def capture(model: nn.Module, x: Tensor) -> list[Captured]:
    """What the attention of every layer is given when the network sees x, first layer first; no gradients."""
    recorders = [Recorder(layer.attend) for layer in attentions(model)]
    with torch.no_grad():
        with_attends(model, recorders)(x)
    return [recorder.calls[0] for recorder in recorders]
