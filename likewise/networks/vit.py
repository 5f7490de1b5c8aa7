"""The vision transformer, for small images: patches are the tokens, and any form of attention connects them."""

from jaxtyping import Float
from torch import Tensor, nn

from likewise.attention import Softmax
from likewise.checks import require, require_count
from likewise.networks.segments import Network, named
from likewise.networks.transformer import MakeAttend, Positions, stack


def vit(
    image_size: int,
    *,
    patch_size: int,
    channels: int = 3,
    dim: int = 64,
    num_layers: int = 4,
    num_heads: int = 4,
    num_classes: int | None = None,
    attend: MakeAttend = Softmax,
) -> "VisionTransformer":
    """A vision transformer of square images: logits, or embeddings when there are no classes.

    attend: makes the attention of each layer, for example `lambda: Linear(Elu())`.

    >>> import torch
    >>> model = vit(8, patch_size=2, channels=1, num_classes=10)
    >>> model(torch.zeros(5, 1, 8, 8)).shape, [name for name, _ in model.segments][:3]
    (torch.Size([5, 10]), ['patches', 'positions', 'block1'])

    Paper: An Image is Worth 16x16 Words, arXiv 2010.11929. Differs: the mean of all tokens is the embedding, without a
    class token.
    """
    for name, count in (("image_size", image_size), ("patch_size", patch_size), ("channels", channels)):
        require_count("vit", name, count)
    if num_classes is not None:
        require_count("vit", "num_classes", num_classes)
    require(
        image_size % patch_size == 0, "vit", "image_size", f"be a multiple of patch_size = {patch_size}", image_size
    )
    blocks = stack(dim, num_layers=num_layers, num_heads=num_heads, attend=attend)
    return VisionTransformer(
        Patches(channels, dim, patch_size), Positions((image_size // patch_size) ** 2, dim), blocks, num_classes
    )


class VisionTransformer(Network):
    """Patches, positions, blocks, the mean of the normed tokens, and a linear head if there are classes."""

    def __init__(
        self, patches: "Patches", positions: Positions, blocks: nn.ModuleList, num_classes: int | None
    ) -> None:
        super().__init__()
        self.embedding_dim = positions.weight.shape[1]
        self.patches, self.positions, self.blocks = patches, positions, blocks
        self.embedding = MeanOfTokens(self.embedding_dim)
        self.head = None if num_classes is None else nn.Linear(self.embedding_dim, num_classes)

    @property
    def segments(self) -> list[tuple[str, nn.Module]]:
        first = [("patches", self.patches), ("positions", self.positions), *named(self.blocks)]
        last = [] if self.head is None else [("head", self.head)]
        return [*first, ("embedding", self.embedding), *last]


class Patches(nn.Module):
    """Every square of `size` by `size` pixels, row by row, projected to a token."""

    def __init__(self, channels: int, dim: int, size: int) -> None:
        super().__init__()
        self.project = nn.Conv2d(channels, dim, kernel_size=size, stride=size)

    def forward(self, x: Float[Tensor, "B C Y X"]) -> Float[Tensor, "B T D"]:
        return self.project(x).flatten(2).mT


class MeanOfTokens(nn.Module):
    """The mean over positions of the normed tokens."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(dim)

    def forward(self, x: Float[Tensor, "B T D"]) -> Float[Tensor, "B D"]:
        return self.norm(x).mean(1)
