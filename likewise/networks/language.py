"""A causal language model of bytes: what comes next, from all that came before."""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional

from likewise.attention import Softmax
from likewise.checks import require_count
from likewise.networks.segments import Network, named
from likewise.networks.transformer import MakeAttend, Positions, stack

BYTES = 256


class ByteModel(Network):
    """Tokens (B, T) in 0..255 to logits (B, T, 256) of the byte after each; no position sees a later one.

    context: the longest sequence. The head is the embedding's own matrix: x = sqrt(dim) E[token], logits = norm(x) E'.
    attend: makes the attention of each layer, for example `lambda: Linear(Elu())`.

    >>> model = ByteModel(context=16, dim=8, num_layers=2, num_heads=2)
    >>> model(torch.tensor([list(b"likewise")])).shape, [name for name, _ in model.segments]
    (torch.Size([1, 8, 256]), ['bytes', 'positions', 'block1', 'block2', 'embedding', 'head'])

    Paper: Using the Output Embedding to Improve Language Models, arXiv 1608.05859, for the shared matrix.
    """

    def __init__(
        self, *, context: int, dim: int = 128, num_layers: int = 3, num_heads: int = 4, attend: MakeAttend = Softmax
    ) -> None:
        super().__init__()
        require_count("ByteModel", "context", context)
        self.embedding_dim, self.context = dim, context
        self.blocks = stack(dim, num_layers=num_layers, num_heads=num_heads, attend=attend, causal=True)
        self.bytes = Bytes(dim)
        self.positions = Positions(context, dim)
        self.embedding = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, BYTES, bias=False)
        self.head.weight = self.bytes.weight

    @property
    def segments(self) -> list[tuple[str, nn.Module]]:
        first = [("bytes", self.bytes), ("positions", self.positions), *named(self.blocks)]
        return [*first, ("embedding", self.embedding), ("head", self.head)]


class Bytes(nn.Module):
    """x = sqrt(dim) E[token], E ~ N(0, I/dim): of size 1 on the way in and, as the head, again on the way out."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(BYTES, dim))
        nn.init.normal_(self.weight, std=dim**-0.5)

    def forward(self, tokens: Int[Tensor, "B T"]) -> Float[Tensor, "B T D"]:
        return functional.embedding(tokens, self.weight) * self.weight.shape[1] ** 0.5
