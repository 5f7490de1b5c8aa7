"""The pre-norm transformer: blocks of attention and of a small network per position, around any form of attention."""

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor, nn

from likewise.attention import Attend, MultiHeadAttention, Softmax
from likewise.checks import require, require_count

# Makes the attention of one layer; a class such as Softmax is one.
MakeAttend = Callable[[], Attend]


class Block(nn.Module):
    """y = x + attention(norm(x)), then y + mlp(norm(y)); the mlp is `expansion` times as wide inside.

    >>> Block(8, num_heads=2)(torch.zeros(3, 5, 8)).shape
    torch.Size([3, 5, 8])

    Paper: On Layer Normalization in the Transformer Architecture, arXiv 2002.04745, figure 1b.
    """

    def __init__(
        self, dim: int, *, num_heads: int, attend: Attend | None = None, causal: bool = False, expansion: int = 4
    ) -> None:
        super().__init__()
        require_count("Block", "expansion", expansion)
        self.causal = causal
        self.attention_norm = nn.LayerNorm(dim)
        self.attention = MultiHeadAttention(dim, num_heads=num_heads, attend=attend)
        self.mlp_norm = nn.LayerNorm(dim)
        self.mlp = nn.Sequential(nn.Linear(dim, expansion * dim), nn.GELU(), nn.Linear(expansion * dim, dim))

    def forward(self, x: Float[Tensor, "B T D"]) -> Float[Tensor, "B T D"]:
        x = x + self.attention(self.attention_norm(x), causal=self.causal)
        return x + self.mlp(self.mlp_norm(x))


def stack(
    dim: int, *, num_layers: int, num_heads: int, attend: MakeAttend = Softmax, causal: bool = False
) -> nn.ModuleList:
    """Blocks, each with an attention of its own from `attend`."""
    require_count("stack", "num_layers", num_layers)
    return nn.ModuleList(Block(dim, num_heads=num_heads, attend=attend(), causal=causal) for _ in range(num_layers))


class Positions(nn.Module):
    """x + p, with a learned row of p for each position; a sequence may be shorter than p, not longer.

    It starts as waves, p[t, 2i] = sin(t w_i) and p[t, 2i + 1] = cos(t w_i) with w_i = 10000^(-2i/dim), by which "the
    position before" is a rotation, that attention learns soon. From random rows it takes many times as long.

    Paper: Attention Is All You Need, arXiv 1706.03762, section 3.5. Differs: a start, not the end.
    """

    def __init__(self, length: int, dim: int) -> None:
        super().__init__()
        require_count("Positions", "length", length)
        self.weight = nn.Parameter(waves(length, dim))

    def forward(self, x: Float[Tensor, "B T D"]) -> Float[Tensor, "B T D"]:
        length = len(self.weight)
        require(x.shape[1] <= length, "Positions", "x", f"have at most {length} positions", x.shape[1])
        return x + self.weight[: x.shape[1]]


def waves(length: int, dim: int) -> Float[Tensor, "T D"]:
    """Sines and cosines of positions, from a wavelength of 2 pi to one of 10000 times as much.

    >>> waves(2, 4)
    tensor([[0.0000, 1.0000, 0.0000, 1.0000],
            [0.8415, 0.5403, 0.0100, 0.9999]])
    """
    even = torch.arange(0, dim + dim % 2, 2)
    angles = torch.arange(length)[:, None] * 10000.0 ** (-even / dim)
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1)[:, :dim]
