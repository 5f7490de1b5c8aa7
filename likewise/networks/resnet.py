"""Residual networks: the small ones, for images of about 32x32, ResNet-50, and each of them as an embedder.

Paper: Deep Residual Learning for Image Recognition, arXiv 1512.03385.
"""

from typing import Literal

from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from likewise.checks import require_choice, require_count
from likewise.networks.segments import Network, UnitLength, before_relu, named, require_images


def resnet8(*, channels: int = 3, num_classes: int | None = None) -> "ResNet":
    """Section 4.2 with n = 1 block for each of three widths: logits, or embeddings of 64 when there are no classes.

    >>> import torch
    >>> model = resnet8(channels=1, num_classes=10)
    >>> model(torch.zeros(5, 1, 8, 8)).shape, [name for name, _ in model.segments]
    (torch.Size([5, 10]), ['stem', 'block1', 'block2', 'block3', 'embedding', 'head'])

    Paper: arXiv 1512.03385, section 4.2. Differs: the paper starts at n = 3.
    """
    return small("resnet8", 1, channels, num_classes)


def resnet14(*, channels: int = 3, num_classes: int | None = None) -> "ResNet":
    """Section 4.2 with n = 2 blocks for each of three widths: logits, or embeddings of 64 when there are no classes.

    >>> import torch
    >>> with torch.device("meta"):
    ...     resnet14()(torch.zeros(5, 3, 32, 32)).shape
    torch.Size([5, 64])

    Paper: arXiv 1512.03385, section 4.2. Differs: the paper starts at n = 3.
    """
    return small("resnet14", 2, channels, num_classes)


def resnet20(*, channels: int = 3, num_classes: int | None = None) -> "ResNet":
    """Section 4.2 with n = 3 blocks for each of three widths: logits, or embeddings of 64 when there are no classes.

    >>> import torch
    >>> with torch.device("meta"):
    ...     sum(weight.numel() for weight in resnet20(num_classes=10).parameters())
    269722

    Paper: arXiv 1512.03385, section 4.2 and Table 6 (0.27M parameters).
    """
    return small("resnet20", 3, channels, num_classes)


def resnet32(*, channels: int = 3, num_classes: int | None = None) -> "ResNet":
    """Section 4.2 with n = 5 blocks for each of three widths: logits, or embeddings of 64 when there are no classes.

    >>> import torch
    >>> with torch.device("meta"):
    ...     sum(weight.numel() for weight in resnet32(num_classes=10).parameters())
    464154

    Paper: arXiv 1512.03385, section 4.2 and Table 6 (0.46M parameters).
    """
    return small("resnet32", 5, channels, num_classes)


def resnet56(*, channels: int = 3, num_classes: int | None = None) -> "ResNet":
    """Section 4.2 with n = 9 blocks for each of three widths: logits, or embeddings of 64 when there are no classes.

    >>> import torch
    >>> with torch.device("meta"):
    ...     sum(weight.numel() for weight in resnet56(num_classes=10).parameters())
    853018

    Paper: arXiv 1512.03385, section 4.2 and Table 6 (0.85M parameters).
    """
    return small("resnet56", 9, channels, num_classes)


def resnet50(*, version: Literal["v1", "v1_5"] = "v1", channels: int = 3, num_classes: int | None = None) -> "ResNet":
    """ResNet-50: logits, or embeddings of 2048 when there are no classes.

    version: where a block halves the image. "v1" is the paper's, in its first 1x1 convolution, which so skips three
    pixels of four; "v1_5", in its 3x3, is what most libraries call ResNet-50, with the same parameters and 6% more
    multiply-adds: 3,857,973,248 and 4,089,184,256 at 224x224 with 1000 classes.

    >>> import torch
    >>> with torch.device("meta"):
    ...     model = resnet50(num_classes=1000)
    ...     model(torch.zeros(5, 3, 224, 224)).shape, sum(weight.numel() for weight in model.parameters())
    (torch.Size([5, 1000]), 25557032)

    Paper: arXiv 1512.03385, Table 1, with projections where the shape changes (option B).
    """
    require_choice("resnet50", "version", version, ("v1", "v1_5"))
    require_count("resnet50", "channels", channels)
    stem = nn.Sequential(*normed(channels, 64, 7, 2), nn.ReLU(), nn.MaxPool2d(3, 2, padding=1))
    blocks, width_in = [], 64
    for width, count in ((64, 3), (128, 4), (256, 6), (512, 3)):
        for number in range(count):
            stride = 2 if number == 0 and width > 64 else 1
            blocks.append(bottleneck(width_in, width, stride, version))
            width_in = 4 * width
    return ResNet("resnet50", stem, blocks, embedding_dim=width_in, channels=channels, num_classes=num_classes)


def small(where: str, blocks_per_width: int, channels: int, num_classes: int | None) -> "ResNet":
    """6n + 2 layers of 3x3: a stem, n blocks each of 16, 32 and 64 channels, the image halved between, and a head."""
    require_count(where, "channels", channels)
    stem = nn.Sequential(*normed(channels, 16, 3), nn.ReLU())
    blocks, width_in = [], 16
    for width in (16, 32, 64):
        for _ in range(blocks_per_width):
            blocks.append(basic(width_in, width))
            width_in = width
    return ResNet(where, stem, blocks, embedding_dim=width_in, channels=channels, num_classes=num_classes)


def basic(width_in: int, width: int) -> "Residual":
    """Two 3x3; where the width grows the image is halved and the shortcut has no parameters (option A)."""
    stride = 1 if width == width_in else 2
    branch = nn.Sequential(*normed(width_in, width, 3, stride), nn.ReLU(), *normed(width, width, 3))
    return Residual(branch, nn.Identity() if stride == 1 else Subsample(width - width_in))


def bottleneck(width_in: int, width: int, stride: int, version: Literal["v1", "v1_5"]) -> "Residual":
    """1x1 to the width, 3x3, 1x1 to four times the width; a 1x1 is the shortcut where the shape changes (option B)."""
    first, second = (stride, 1) if version == "v1" else (1, stride)
    branch = nn.Sequential(
        *normed(width_in, width, 1, first),
        nn.ReLU(),
        *normed(width, width, 3, second),
        nn.ReLU(),
        *normed(width, 4 * width, 1),
    )
    same = stride == 1 and width_in == 4 * width
    return Residual(branch, nn.Identity() if same else nn.Sequential(*normed(width_in, 4 * width, 1, stride)))


def normed(width_in: int, width: int, kernel: int, stride: int = 1) -> list[nn.Module]:
    """BatchNorm(conv(x)), without a bias, which the norm would take away."""
    conv = nn.Conv2d(width_in, width, kernel, stride, padding=kernel // 2, bias=False)
    return [before_relu(conv), nn.BatchNorm2d(width)]


class Residual(nn.Module):
    """y = ReLU(branch(x) + shortcut(x)): equations 1 and 2 of the paper."""

    def __init__(self, branch: nn.Module, shortcut: nn.Module) -> None:
        super().__init__()
        self.branch, self.shortcut = branch, shortcut

    def forward(self, x: Float[Tensor, "B C Y X"]) -> Float[Tensor, "B D Z W"]:
        return (self.branch(x) + self.shortcut(x)).relu()


class Subsample(nn.Module):
    """Every second pixel of every second row, and `extra` channels of 0 behind: the paper's option A.

    >>> import torch
    >>> Subsample(1)(torch.arange(6.0).reshape(1, 1, 2, 3))
    tensor([[[[0., 2.]],
    <BLANKLINE>
             [[0., 0.]]]])
    """

    def __init__(self, extra: int) -> None:
        super().__init__()
        self.extra = extra

    def forward(self, x: Float[Tensor, "B C Y X"]) -> Float[Tensor, "B D Z W"]:
        return functional.pad(x[:, :, ::2, ::2], (0, 0, 0, 0, 0, self.extra))


class ResNet(Network):
    """A stem, residual blocks, the mean over pixels, and a linear head if there are classes; images of any size."""

    def __init__(
        self,
        where: str,
        stem: nn.Module,
        blocks: list[Residual],
        *,
        embedding_dim: int,
        channels: int,
        num_classes: int | None,
    ) -> None:
        super().__init__()
        if num_classes is not None:
            require_count(where, "num_classes", num_classes)
        self.where, self.channels, self.embedding_dim = where, channels, embedding_dim
        self.stem, self.blocks = stem, nn.ModuleList(blocks)
        self.embedding = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten())
        self.head = None if num_classes is None else nn.Linear(embedding_dim, num_classes)

    @property
    def segments(self) -> list[tuple[str, nn.Module]]:
        last = [] if self.head is None else [("head", self.head)]
        return [("stem", self.stem), *named(self.blocks), ("embedding", self.embedding), *last]

    def forward(self, x: Float[Tensor, "B C Y X"]) -> Float[Tensor, "B F"]:
        require_images(self.where, x, self.channels)
        return super().forward(x)


BODIES = {
    "resnet8": resnet8,
    "resnet14": resnet14,
    "resnet20": resnet20,
    "resnet32": resnet32,
    "resnet50": resnet50,
    "resnet56": resnet56,
}


def embedder(body: str = "resnet8", *, channels: int = 3, embedding_dim: int = 64) -> "Embedder":
    """A residual network without a head, a linear layer to `embedding_dim`, and length 1: for small images.

    >>> import torch
    >>> model = embedder("resnet8", channels=1, embedding_dim=5).eval()
    >>> model(torch.rand(3, 1, 8, 8)).norm(dim=1).allclose(torch.ones(3)), [name for name, _ in model.segments][-3:]
    (True, ['embedding', 'projection', 'unit'])
    """
    require_choice("embedder", "body", body, tuple(BODIES))
    require_count("embedder", "embedding_dim", embedding_dim)
    return Embedder(BODIES[body](channels=channels), embedding_dim)


class Embedder(Network):
    """A body, a linear layer, and division by the length."""

    def __init__(self, body: Network, embedding_dim: int) -> None:
        super().__init__()
        self.body, self.embedding_dim = body, embedding_dim
        self.projection = nn.Linear(body.embedding_dim, embedding_dim)
        self.unit = UnitLength()

    @property
    def segments(self) -> list[tuple[str, nn.Module]]:
        return [*self.body.segments, ("projection", self.projection), ("unit", self.unit)]

    def forward(self, x: Float[Tensor, "B C Y X"]) -> Float[Tensor, "B E"]:
        return self.unit(self.projection(self.body(x)))
