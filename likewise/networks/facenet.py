"""The six networks of FaceNet, as tables: images of faces to embeddings of length 1.

Paper: FaceNet: A Unified Embedding for Face Recognition and Clustering, arXiv 1503.03832.
"""

from typing import Literal, NamedTuple

from jaxtyping import Float
from torch import Tensor, nn

from likewise.checks import require_choice, require_count
from likewise.networks.inception import Branches, Inception, ResponseNorm, convolution
from likewise.networks.segments import Network, UnitLength, before_relu, require_images


class Conv(NamedTuple):
    """A convolution and its ReLU."""

    name: str
    width: int
    kernel: int
    stride: int = 1


class Pool(NamedTuple):
    """The maximum over 3x3, stride 2."""

    name: str


class Norm(NamedTuple):
    """Local response normalisation."""

    name: str


class Mix(NamedTuple):
    """An Inception block."""

    name: str
    branches: Branches


class Mean(NamedTuple):
    """The mean over all pixels."""

    name: str


class Flat(NamedTuple):
    """All pixels of all channels in one row."""

    name: str


class Full(NamedTuple):
    """A linear layer and its ReLU."""

    name: str
    width: int


class Maxout(NamedTuple):
    """The larger of two linear layers, value by value."""

    name: str
    width: int


class Embed(NamedTuple):
    """The linear layer to the embedding."""

    name: str


Row = Conv | Pool | Norm | Mix | Mean | Flat | Full | Maxout | Embed
Shape = tuple[int, int, int]
Normalisation = Literal["lrn", "batch"]

# Table 1.
NN1: tuple[Row, ...] = (
    Conv("conv1", 64, 7, 2),
    Pool("pool1"),
    Norm("rnorm1"),
    Conv("conv2a", 64, 1),
    Conv("conv2", 192, 3),
    Norm("rnorm2"),
    Pool("pool2"),
    Conv("conv3a", 192, 1),
    Conv("conv3", 384, 3),
    Pool("pool3"),
    Conv("conv4a", 384, 1),
    Conv("conv4", 256, 3),
    Conv("conv5a", 256, 1),
    Conv("conv5", 256, 3),
    Conv("conv6a", 256, 1),
    Conv("conv6", 256, 3),
    Pool("pool4"),
    Flat("concat"),
    Maxout("fc1", 32 * 128),
    Maxout("fc2", 32 * 128),
    Embed("fc7128"),
)

# Table 2 to inception 4d, which NN2, NN3 and NN4 share. Its columns: 1x1, 3x3 reduce, 3x3, 5x5 reduce, 5x5, pool and
# projection; our last, where there is one, is the stride.
TABLE_2_TO_4D: tuple[Row, ...] = (
    Conv("conv1", 64, 7, 2),
    Pool("pool1"),
    Norm("rnorm1"),
    Mix("inception2", Branches(0, 64, 192, 0, 0, None, 0)),
    Norm("rnorm2"),
    Pool("pool2"),
    Mix("inception3a", Branches(64, 96, 128, 16, 32, "max", 32)),
    Mix("inception3b", Branches(64, 96, 128, 32, 64, "l2", 64)),
    Mix("inception3c", Branches(0, 128, 256, 32, 64, "max", 0, 2)),
    Mix("inception4a", Branches(256, 96, 192, 32, 64, "l2", 128)),
    Mix("inception4b", Branches(224, 112, 224, 32, 64, "l2", 128)),
    Mix("inception4c", Branches(192, 128, 256, 32, 64, "l2", 128)),
    Mix("inception4d", Branches(160, 144, 288, 32, 64, "l2", 128)),
)

# Table 2.
NN2: tuple[Row, ...] = (
    *TABLE_2_TO_4D,
    Mix("inception4e", Branches(0, 160, 256, 64, 128, "max", 0, 2)),
    Mix("inception5a", Branches(384, 192, 384, 48, 128, "l2", 128)),
    Mix("inception5b", Branches(384, 192, 384, 48, 128, "max", 128)),
    Mean("avgpool"),
    Embed("fc"),
)

# Section 3.3: "5x5 convolutions are left out in the higher layers". That these are 4e, 5a and 5b is inferred.
NN4: tuple[Row, ...] = (
    *TABLE_2_TO_4D,
    Mix("inception4e", Branches(0, 160, 256, 0, 0, "max", 0, 2)),
    Mix("inception5a", Branches(384, 192, 384, 0, 0, "l2", 128)),
    Mix("inception5b", Branches(384, 192, 384, 0, 0, "max", 128)),
    Mean("avgpool"),
    Embed("fc"),
)

# No table in the paper. Table 2 at half its width without 4b, 4c, 4d; widths are multiples of 4.
NNS1: tuple[Row, ...] = (
    Conv("conv1", 32, 7, 2),
    Pool("pool1"),
    Norm("rnorm1"),
    Mix("inception2", Branches(0, 32, 96, 0, 0, None, 0)),
    Norm("rnorm2"),
    Pool("pool2"),
    Mix("inception3a", Branches(32, 48, 64, 8, 16, "max", 16)),
    Mix("inception3b", Branches(32, 48, 64, 16, 32, "l2", 32)),
    Mix("inception3c", Branches(0, 64, 128, 16, 32, "max", 0, 2)),
    Mix("inception4a", Branches(128, 48, 96, 16, 32, "l2", 64)),
    Mix("inception4e", Branches(0, 80, 128, 32, 64, "max", 0, 2)),
    Mix("inception5a", Branches(192, 96, 192, 24, 64, "l2", 64)),
    Mix("inception5b", Branches(192, 96, 192, 24, 64, "max", 64)),
    Flat("flat"),
    Full("fc1", 1344),
    Embed("fc2"),
)

# No table in the paper. Table 2 at 0.17 of its width, 3a, 3c, 4a, 4e and 5a only; widths are multiples of 4.
NNS2: tuple[Row, ...] = (
    Conv("conv1", 12, 7, 2),
    Pool("pool1"),
    Norm("rnorm1"),
    Mix("inception2", Branches(0, 12, 32, 0, 0, None, 0)),
    Norm("rnorm2"),
    Pool("pool2"),
    Mix("inception3a", Branches(12, 16, 20, 4, 4, "max", 4)),
    Mix("inception3c", Branches(0, 20, 44, 4, 12, "max", 0, 2)),
    Mix("inception4a", Branches(44, 16, 32, 4, 12, "l2", 20)),
    Mix("inception4e", Branches(0, 28, 44, 12, 20, "max", 0, 2)),
    Mix("inception5a", Branches(64, 32, 64, 8, 20, "l2", 20)),
    Flat("flat"),
    Full("fc1", 1216),
    Embed("fc2"),
)


def nn1(*, embedding_dim: int = 128, norm: Normalisation = "lrn") -> "FaceNet":
    """NN1, Zeiler and Fergus with 1x1 convolutions: 220x220, 140 million parameters, 1.6 billion multiply-adds.

    norm: "batch" is not in the paper: no LRN, and a BatchNorm between every convolution and its ReLU.

    >>> import torch
    >>> with torch.device("meta"):
    ...     model = nn1()
    >>> sum(weight.numel() for weight in model.parameters()), [name for name, _ in model.segments][-4:]
    (140025664, ['fc1', 'fc2', 'fc7128', 'embedding'])

    Paper: FaceNet, arXiv 1503.03832, Table 1. LRN's constants are not in it; ours are OpenFace's.

    ```claim nn1-multiply-adds
    of: facenet.nn1
    unit: mac
    assert: cost == 1605944064
    ```
    """
    return build("nn1", NN1, (220, 220), embedding_dim=embedding_dim, norm=norm)


def nn2(*, embedding_dim: int = 128, norm: Normalisation = "lrn") -> "FaceNet":
    """NN2, Inception: 224x224, 7.5 million parameters, 1.6 billion multiply-adds.

    norm: "batch" is not in the paper: no LRN, and a BatchNorm between every convolution and its ReLU.

    >>> import torch
    >>> with torch.device("meta"):
    ...     model = nn2()
    ...     model(torch.zeros(5, 3, 224, 224)).shape, sum(weight.numel() for weight in model.parameters())
    (torch.Size([5, 128]), 7456304)

    Paper: FaceNet, arXiv 1503.03832, Table 2. LRN's constants are not in it; ours are OpenFace's.

    ```claim nn2-multiply-adds
    of: facenet.nn2
    unit: mac
    assert: cost == 1596530688
    ```
    """
    return build("nn2", NN2, (224, 224), embedding_dim=embedding_dim, norm=norm)


def nn3(*, embedding_dim: int = 128, norm: Normalisation = "lrn") -> "FaceNet":
    """NN3, which is NN2 at 160x160: 7.5 million parameters, 0.8 billion multiply-adds.

    norm: "batch" is not in the paper: no LRN, and a BatchNorm between every convolution and its ReLU.

    >>> import torch
    >>> with torch.device("meta"):
    ...     nn3()(torch.zeros(5, 3, 160, 160)).shape
    torch.Size([5, 128])

    Paper: FaceNet, arXiv 1503.03832, section 3.3 and Table 2. LRN's constants are not in it; ours are OpenFace's.
    """
    return build("nn3", NN2, (160, 160), embedding_dim=embedding_dim, norm=norm)


def nn4(*, embedding_dim: int = 128, norm: Normalisation = "lrn") -> "FaceNet":
    """NN4, which is NN2 at 96x96 without 5x5 in 4e, 5a, 5b: 6.6 million parameters, 285 million multiply-adds.

    An inference: the paper says "in the higher layers" and prints 285M; of the readings tried only this one meets it.

    norm: "batch" is not in the paper: no LRN, and a BatchNorm between every convolution and its ReLU.

    >>> import torch
    >>> with torch.device("meta"):
    ...     nn4()(torch.zeros(5, 3, 96, 96)).shape
    torch.Size([5, 128])

    Paper: FaceNet, arXiv 1503.03832, section 3.3 and Table 2. LRN's constants are not in it; ours are OpenFace's.

    ```claim nn4-multiply-adds
    of: facenet.nn4
    unit: mac
    assert: cost == 284741632
    ```
    """
    return build("nn4", NN4, (96, 96), embedding_dim=embedding_dim, norm=norm)


def nns1(*, embedding_dim: int = 128, norm: Normalisation = "lrn") -> "FaceNet":
    """NNS1, "mini Inception": a reconstruction, 165x165, 26 million parameters, 222 million multiply-adds.

    The paper prints totals only (26M, 220M), which force a large linear layer. Ours is NN2 at half its width without
    4b, 4c and 4d, flattened, with one hidden layer; no result of the paper is one of this network.

    norm: "batch" is not in the paper: no LRN, and a BatchNorm between every convolution and its ReLU.

    >>> import torch
    >>> with torch.device("meta"):
    ...     nns1()(torch.zeros(5, 3, 165, 165)).shape
    torch.Size([5, 128])

    Paper: FaceNet, arXiv 1503.03832, section 3.3. Differs: all but the input size and, nearly, the totals is ours.
    """
    return build("nns1", NNS1, (165, 165), embedding_dim=embedding_dim, norm=norm)


def nns2(*, embedding_dim: int = 128, norm: Normalisation = "lrn") -> "FaceNet":
    """NNS2, "tiny Inception": a reconstruction, 140 rows of 116, 4.3 million parameters, 20 million multiply-adds.

    The paper prints totals only (4.3M, 20M), which force a large linear layer. Ours is NN2 at 0.17 of its width with
    3a, 3c, 4a, 4e and 5a, flattened, with one hidden layer; no result of the paper is one of this network.

    norm: "batch" is not in the paper: no LRN, and a BatchNorm between every convolution and its ReLU.

    >>> import torch
    >>> with torch.device("meta"):
    ...     nns2(embedding_dim=64)(torch.zeros(5, 3, 140, 116)).shape
    torch.Size([5, 64])

    Paper: FaceNet, arXiv 1503.03832, section 3.3. Differs: all but the input size and, nearly, the totals is ours. The
    paper's 140x116 names no axis; we read rows first, as in its Table 1.

    ```claim nns2-multiply-adds
    of: facenet.nns2
    unit: mac
    assert: cost == 19696512
    ```
    """
    return build("nns2", NNS2, (140, 116), embedding_dim=embedding_dim, norm=norm)


def build(
    where: str, table: tuple[Row, ...], size: tuple[int, int], *, embedding_dim: int, norm: Normalisation
) -> "FaceNet":
    """The network of a table, for RGB images of size (rows, columns); its segments are the rows, then "embedding"."""
    require_count(where, "embedding_dim", embedding_dim)
    require_choice(where, "norm", norm, ("lrn", "batch"))
    shape: Shape = (3, *size)
    parts: dict[str, nn.Module] = {}
    for row in table:
        if isinstance(row, Norm) and norm == "batch":
            continue
        parts[row.name], shape = part(row, shape, embedding_dim, batch_norm=norm == "batch")
    return FaceNet(where, size, {**parts, "embedding": UnitLength()}, embedding_dim)


def part(row: Row, shape: Shape, embedding_dim: int, *, batch_norm: bool) -> tuple[nn.Module, Shape]:
    """The module of a row whose input has that shape (channels, rows, columns), and the shape of its output."""
    channels, rows, columns = shape
    match row:
        case Conv(_, width, kernel, stride):
            return convolution(channels, width, kernel, stride, batch_norm=batch_norm), strided(shape, width, stride)
        case Pool():
            return nn.MaxPool2d(3, 2, padding=1), strided(shape, channels, 2)
        case Norm():
            return ResponseNorm(), shape
        case Mix(_, branches):
            block = Inception(channels, branches, batch_norm=batch_norm)
            return block, strided(shape, block.width, branches.stride)
        case Mean():
            return nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten()), (channels, 1, 1)
        case Flat():
            return nn.Flatten(), (channels * rows * columns, 1, 1)
        case Full(_, width):
            return nn.Sequential(before_relu(nn.Linear(channels, width)), nn.ReLU()), (width, 1, 1)
        case Maxout(_, width):
            return nn.Sequential(before_relu(nn.Linear(channels, 2 * width)), LargerOfTwo()), (width, 1, 1)
        case Embed():
            return before_relu(nn.Linear(channels, embedding_dim)), (embedding_dim, 1, 1)


def strided(shape: Shape, width: int, stride: int) -> Shape:
    """Padding is "same": ceil(n / stride) of n pixels."""
    return width, -(-shape[1] // stride), -(-shape[2] // stride)


class LargerOfTwo(nn.Module):
    """Maxout with two pieces: y_i = max(x_2i, x_2i+1).

    >>> import torch
    >>> LargerOfTwo()(torch.tensor([[1.0, -2.0, -4.0, -3.0]]))
    tensor([[ 1., -3.]])

    Paper: Maxout Networks, arXiv 1302.4389, section 3.
    """

    def forward(self, x: Float[Tensor, "B F"]) -> Float[Tensor, "B D"]:
        return x.unflatten(1, (-1, 2)).amax(2)


class FaceNet(Network):
    """The parts of a table, one after the other; `size` is (rows, columns) of the images that it takes."""

    def __init__(self, where: str, size: tuple[int, int], parts: dict[str, nn.Module], embedding_dim: int) -> None:
        super().__init__()
        self.where, self.size, self.embedding_dim = where, size, embedding_dim
        self.parts = nn.ModuleDict(parts)

    @property
    def segments(self) -> list[tuple[str, nn.Module]]:
        return list(self.parts.items())

    def forward(self, x: Float[Tensor, "B C Y X"]) -> Float[Tensor, "B E"]:
        require_images(self.where, x, 3, self.size, "Resize the images.")
        return super().forward(x)
