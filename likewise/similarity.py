"""Products and squared distances between rows: the one implementation that kernels, mining and probes call."""

from collections.abc import Iterator

import torch
from jaxtyping import Float
from torch import Tensor

from likewise.checks import require, require_count

ELEMENTS = 1 << 19  # distances of one block: 4 MB in float64, about what a core's cache holds


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
    centre = _centre(y)
    x, y = x - centre, y - centre
    squares = x.square().sum(-1)[..., :, None] + y.square().sum(-1)[..., None, :]
    return (squares - 2 * products(x, y)).clamp(min=0)


def distance_blocks(
    x: Float[Tensor, "N K"], y: Float[Tensor, "M K"], *, elements: int = ELEMENTS
) -> Iterator[tuple[slice, Float[Tensor, "n M"]]]:
    """`squared_distances` a few rows of x at a time, as (rows, their distances to all y): about `elements` at once.

    Centre and squares are found once. Products are taken in float64, so that near-duplicates keep their digits, and
    rounded once, to float32 at least. There is no gradient.

    >>> [(rows.start, d.tolist()) for rows, d in distance_blocks(torch.eye(2), torch.zeros(1, 2), elements=1)]
    [(0, [[1.0]]), (1, [[1.0]])]
    """
    require(x.shape[-1] == y.shape[-1], "distance_blocks", "y", f"have the width of x, {x.shape[-1]}", y.shape[-1])
    require_count("distance_blocks", "elements", elements)
    kept, centre = wide(torch.promote_types(x.dtype, y.dtype)), _centre(y)
    x = x.detach().double() - centre
    y = y.detach().double() - centre
    squares_x, squares_y, minus_two_y = x.square().sum(-1, keepdim=True), y.square().sum(-1), y.mT * -2
    step = max(1, elements // max(len(y), 1))
    for start in range(0, len(x), step):
        rows = slice(start, min(start + step, len(x)))
        d = torch.addmm(squares_y, x[rows], minus_two_y).add_(squares_x[rows]).clamp_(min=0)
        yield rows, d.to(kept)


def _centre(y: Float[Tensor, "*batch M K"]) -> Float[Tensor, "*batch 1 K"] | float:
    """The median of the rows. Not the mean: one row that lies far out would take the digits of all others with it."""
    return y.detach().sort(dim=-2).values[..., y.shape[-2] // 2, None, :] if y.shape[-2] else 0.0
