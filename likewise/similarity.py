"""Products and squared distances between rows: the one implementation that kernels, mining and probes call."""

import torch
from jaxtyping import Float
from torch import Tensor

from likewise.checks import require


def wide(dtype: torch.dtype) -> torch.dtype:
    """The dtype in which to sum numbers of a dtype: float32 at least.

    >>> wide(torch.bfloat16), wide(torch.float64)
    (torch.float32, torch.float64)
    """
    return torch.promote_types(dtype, torch.float32)


def products(x: Float[Tensor, "*batch N K"], y: Float[Tensor, "*batch M K"]) -> Float[Tensor, "*batch N M"]:
    """Inner products x_i . y_j of all pairs of rows.

    >>> products(torch.tensor([[1.0, 2.0]]), torch.tensor([[3.0, 4.0], [0.0, 1.0]]))
    tensor([[11.,  2.]])
    """
    require(x.shape[-1] == y.shape[-1], "products", "y", f"have the width of x, {x.shape[-1]}", y.shape[-1])
    return x @ y.mT


def squared_distances(x: Float[Tensor, "*batch N K"], y: Float[Tensor, "*batch M K"]) -> Float[Tensor, "*batch N M"]:
    """Squared Euclidean distances |x_i - y_j|^2 of all pairs of rows, never negative.

    Both sides are first moved by the median of y: distances do not change, but |x|^2 + |y|^2 - 2 x.y then cancels far
    fewer digits when all rows share a large offset.

    >>> squared_distances(torch.tensor([[1.0, 2.0]]), torch.tensor([[3.0, 4.0], [1.0, 2.0]]))
    tensor([[8., 0.]])
    """
    require(x.shape[-1] == y.shape[-1], "squared_distances", "y", f"have the width of x, {x.shape[-1]}", y.shape[-1])
    # Not the mean: one row that lies far out would take the digits of all others with it.
    centre = y.detach().sort(dim=-2).values[..., y.shape[-2] // 2, None, :] if y.shape[-2] else 0.0
    x, y = x - centre, y - centre
    squares = x.square().sum(-1)[..., :, None] + y.square().sum(-1)[..., None, :]
    return (squares - 2 * products(x, y)).clamp(min=0)
