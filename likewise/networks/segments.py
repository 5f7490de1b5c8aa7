"""What every network is: a chain of named segments that ends in an embedding, or in what is made of one."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TypeVar

from jaxtyping import Float
from torch import Tensor, nn

from likewise.checks import require

Layer = TypeVar("Layer", nn.Conv2d, nn.Linear)


class Network(nn.Module, ABC):
    """f = s_n o ... o s_1 for named segments s_i; `embedding_dim` is the width of the embedding that it makes."""

    embedding_dim: int

    @property
    @abstractmethod
    def segments(self) -> list[tuple[str, nn.Module]]:
        """The segments, first to last, by name."""

    def forward(self, x: Tensor) -> Tensor:
        """All segments, one after the other."""
        for _, segment in self.segments:
            x = segment(x)
        return x


def embedding_layer(network: Network) -> nn.Linear:
    """The layer that makes the embedding of what came before: the last linear one of the segments.

    >>> class Two(Network):
    ...     segments = [("body", nn.Linear(3, 5)), ("embedding", nn.Linear(5, 2)), ("unit", nn.Identity())]
    >>> embedding_layer(Two())
    Linear(in_features=5, out_features=2, bias=True)
    """
    found = [segment for _, segment in network.segments if isinstance(segment, nn.Linear)]
    require(bool(found), "embedding_layer", "network", "have a linear segment", [name for name, _ in network.segments])
    return found[-1]


def named(blocks: nn.ModuleList) -> list[tuple[str, nn.Module]]:
    """The blocks as segments: block1, block2, ..."""
    return [(f"block{number}", block) for number, block in enumerate(blocks, start=1)]


def before_relu(layer: Layer) -> Layer:
    """The layer with weights N(0, 2 / fan_in) and biases 0, so that signals keep their size through many ReLUs.

    Paper: Delving Deep into Rectifiers, arXiv 1502.01852, equation 10.
    """
    nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")
    if layer.bias is not None:
        nn.init.zeros_(layer.bias)
    return layer


def require_images(where: str, x: Tensor, channels: int, size: tuple[int, int] | None = None, hint: str = "") -> None:
    """Refuse what is no batch of images with so many channels and, if given, of that size (rows, columns)."""
    got = tuple(x.shape)
    rows, columns = ("Y", "X") if size is None else size
    fits = len(got) == 4 and got[1] == channels and min(got[2:]) > 0 and size in (None, got[2:])
    require(fits, where, "x", f"have shape (B, {channels}, {rows}, {columns})", got, hint)


def require_finite(where: str, tensors: Mapping[str, Tensor], of: str = "") -> None:
    """Refuse weights with NaN or infinity: a ReLU of oneDNN makes 0 of NaN, and the network looks sound."""
    for key, tensor in tensors.items():
        bad = int((~tensor.isfinite()).sum())
        require(bad == 0, where, f"{key}{of}", "be finite", f"{bad} of {tensor.numel()} that are not")


class UnitLength(nn.Module):
    """y = x / |x|; the zero vector, which has no direction, stays 0 and its gradient finite.

    >>> import torch
    >>> UnitLength()(torch.tensor([[3.0, -4.0], [0.0, 0.0]]))
    tensor([[ 0.6000, -0.8000],
            [ 0.0000,  0.0000]])
    """

    def forward(self, x: Float[Tensor, "B E"]) -> Float[Tensor, "B E"]:
        length = x.norm(dim=1, keepdim=True)
        return x / length.where(length > 0, 1.0)
