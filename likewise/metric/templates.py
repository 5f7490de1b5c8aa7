"""Embeddings in one byte for each number, compared by their angle: 128 numbers are 128 bytes."""

import torch
from jaxtyping import Float, Int8
from torch import Tensor

from likewise.checks import require

MOST = 127  # of a signed byte, the same on both sides


def quantised(embeddings: Float[Tensor, "N E"]) -> Int8[Tensor, "N E"]:
    """round(127 x / max |x|) of every row, in one byte for each number.

    The scale is not stored: `template_distances` does not need it. The largest number of a row becomes 127 or -127, so
    no bit is wasted; a number is wrong by at most max |x| / 254.

    Paper: Schroff et al. 2015, section 4: "quantized to 128-bytes without loss of accuracy". How is not said.

    >>> quantised(torch.tensor([[0.6, -0.8], [3.0, 0.0]]))
    tensor([[  95, -127],
            [ 127,    0]], dtype=torch.int8)
    """
    embeddings = embeddings.detach().double()
    most = embeddings.abs().amax(-1, keepdim=True)
    bad = int((~(most > 0) | ~most.isfinite()).sum())
    require(bad == 0, "quantised", "embeddings", "have finite rows that are not 0", f"{bad} that are")
    return (MOST * embeddings / most).round().to(torch.int8)


def template_distances(first: Int8[Tensor, "n E"], second: Int8[Tensor, "n E"]) -> Float[Tensor, "n"]:
    """The squared distance of two templates on the unit sphere, row by row: D = 2 - 2 q.q' / (|q| |q'|).

    q.q' and |q|^2 are whole numbers, and exact; so the distance of a template to itself is 0 to the last bit.

    >>> template_distances(torch.tensor([[3, 4]], dtype=torch.int8), torch.tensor([[4, 3]], dtype=torch.int8)).item()
    0.08...
    """
    same = first.shape == second.shape
    require(same, "template_distances", "second", f"have the shape of first, {tuple(first.shape)}", tuple(second.shape))
    q, p = first.int(), second.int()
    product, squares = (q * p).sum(-1).double(), (q * q).sum(-1).double() * (p * p).sum(-1).double()
    return (2 - 2 * product / squares.sqrt()).clamp(min=0)


def restored(templates: Int8[Tensor, "N E"]) -> Float[Tensor, "N E"]:
    """The unit vector of every template, q / |q|: squared distances of these are the templates' distances.

    >>> restored(torch.tensor([[3, -4]], dtype=torch.int8))
    tensor([[ 0.6000, -0.8000]])
    """
    q = templates.double()
    return (q / q.norm(dim=-1, keepdim=True)).float()
