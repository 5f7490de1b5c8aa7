"""The Inception block: several views of the same pixels, side by side in the channels."""

from typing import Literal, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from likewise.checks import require, require_choice
from likewise.networks.segments import before_relu


class Branches(NamedTuple):
    """Channels of each branch, in the order of a row of the papers' tables; a branch of 0 channels is left out.

    The 3x3, the 5x5 and the pool have the stride; a pool with project = 0 passes on all channels that it gets.
    """

    one: int
    three_reduce: int
    three: int
    five_reduce: int
    five: int
    pool: Literal["max", "l2"] | None
    project: int
    stride: int = 1


class Inception(nn.Module):
    """[conv1(x), conv3(conv1(x)), conv5(conv1(x)), conv1(pool(x))], joined as channels, each conv with its ReLU.

    channels: of the input. batch_norm: a BatchNorm between each convolution and its ReLU.

    >>> block = Inception(192, Branches(64, 96, 128, 16, 32, "max", 32))
    >>> block(torch.zeros(2, 192, 7, 5)).shape, block.width
    (torch.Size([2, 256, 7, 5]), 256)

    Paper: Going Deeper with Convolutions, arXiv 1409.4842, figure 2b.
    """

    def __init__(self, channels: int, branches: Branches, *, batch_norm: bool = False) -> None:
        super().__init__()
        _require_whole(branches)
        one, three_reduce, three, five_reduce, five, pool, project, stride = branches
        self.branches = nn.ModuleDict()
        if one:
            self.branches["1x1"] = convolution(channels, one, 1, batch_norm=batch_norm)
        for name, kernel, reduce, width in (("3x3", 3, three_reduce, three), ("5x5", 5, five_reduce, five)):
            if width:
                self.branches[name] = nn.Sequential(
                    convolution(channels, reduce, 1, batch_norm=batch_norm),
                    convolution(reduce, width, kernel, stride, batch_norm=batch_norm),
                )
        if pool:
            pooled: list[nn.Module] = [L2Pool(stride) if pool == "l2" else nn.MaxPool2d(3, stride, padding=1)]
            if project:
                pooled.append(convolution(channels, project, 1, batch_norm=batch_norm))
            self.branches["pool"] = nn.Sequential(*pooled)
        self.width = one + three + five + ((project or channels) if pool else 0)

    def forward(self, x: Float[Tensor, "B C Y X"]) -> Float[Tensor, "B D Z W"]:
        return torch.cat([branch(x) for branch in self.branches.values()], dim=1)


def _require_whole(branches: Branches) -> None:
    where = "Inception"
    if branches.pool is None:
        require(branches.project == 0, where, "project", "be 0 without a pool", branches.project)
    else:
        require_choice(where, "pool", branches.pool, ("max", "l2"))
    for name, reduce, width in (
        ("three_reduce", branches.three_reduce, branches.three),
        ("five_reduce", branches.five_reduce, branches.five),
    ):
        require((reduce > 0) == (width > 0), where, name, f"be 0 exactly where the width is, {width}", reduce)
    require(branches.stride == 1 or not branches.one, where, "one", "be 0 where the stride is not 1", branches.one)
    given = branches.one or branches.three or branches.five or branches.pool
    require(bool(given), where, "branches", "have at least one branch", tuple(branches))


class L2Pool(nn.Module):
    """y = sqrt(sum of x^2) over windows of 3x3, zeros around the image: the sum of squares and not their mean.

    Where a window is 0 the root has no derivative. There the gradient is 0, the shortest of all subgradients, and
    elsewhere x / y, never longer than 1; no epsilon changes the values.

    >>> L2Pool()(torch.tensor([[[[3.0, 0.0, 0.0], [0.0, 4.0, 0.0]]]]))
    tensor([[[[5., 5., 4.],
              [5., 5., 4.]]]])

    Paper: FaceNet, arXiv 1503.03832, Table 2, "L2".
    """

    def __init__(self, stride: int = 1) -> None:
        super().__init__()
        self.stride = stride

    def forward(self, x: Float[Tensor, "B C Y X"]) -> Float[Tensor, "B C Z W"]:
        squares = functional.avg_pool2d(x.square(), 3, self.stride, padding=1, divisor_override=1)
        if not squares.requires_grad:
            return squares.sqrt()
        # Both branches of a `where` are differentiated: the root must not see the 0 either.
        positive = squares > 0
        return squares.where(positive, 1.0).sqrt().where(positive, 0.0)


class ResponseNorm(nn.Module):
    """y_c = x_c / (1 + alpha / 5 * sum of x_j^2 over the five channels j around c)^(3/4), fewer at the ends.

    The same function as `torch.nn.LocalResponseNorm(5, alpha)`, some five times as fast on a CPU: sums of shifted
    channels instead of a pool in three dimensions, and two inverse roots instead of a power.

    >>> ResponseNorm(5.0)(torch.tensor([3.0, 0.0, 0.0, 0.0])[None, :, None, None]).flatten()  # 3 / (1 + 9)^(3/4)
    tensor([0.5335, 0.0000, 0.0000, 0.0000])

    Paper: ImageNet Classification with Deep Convolutional Neural Networks, 2012, section 3.3. alpha is OpenFace's,
    divided by the number of channels as there.
    """

    def __init__(self, alpha: float = 1e-4) -> None:
        super().__init__()
        self.alpha = alpha

    def forward(self, x: Float[Tensor, "B C Y X"]) -> Float[Tensor, "B C Y X"]:
        channels = x.shape[1]
        squares = functional.pad(x.square(), (0, 0, 0, 0, 2, 2))
        around = squares[:, :channels] + squares[:, 1 : channels + 1]
        for shift in (2, 3, 4):
            around = around + squares[:, shift : channels + shift]
        power = 1 + self.alpha / 5 * around
        return x * (power.rsqrt() * power.sqrt().rsqrt())


def convolution(channels: int, width: int, kernel: int, stride: int = 1, *, batch_norm: bool = False) -> nn.Sequential:
    """ReLU(conv(x)), padded so that stride s makes ceil(n / s) of n pixels; with BatchNorm before the ReLU if asked."""
    conv = before_relu(nn.Conv2d(channels, width, kernel, stride, padding=kernel // 2))
    return nn.Sequential(conv, *([nn.BatchNorm2d(width)] if batch_norm else []), nn.ReLU(inplace=True))
