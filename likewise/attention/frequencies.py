"""Random frequencies: rows w with E[w w'] = I, independent or in orthogonal blocks."""

from typing import Literal, get_args

import torch
from jaxtyping import Float
from torch import Generator, Tensor

from likewise.checks import require_choice, require_count

Sampler = Literal["gaussian", "orthogonal"]
SAMPLERS = get_args(Sampler)


def draw_frequencies(
    kv_heads: int, rows: int, key_dim: int, *, sampler: Sampler, generator: Generator | None
) -> Float[Tensor, "G R K"]:
    """Rows that are each N(0, I); with "orthogonal" the rows of one block of K are also perpendicular to each other.

    >>> w = draw_frequencies(1, 3, 3, sampler="orthogonal", generator=torch.Generator().manual_seed(0))[0]
    >>> bool((w @ w.T - (w @ w.T).diag().diag()).abs().max() < 1e-12)
    True

    Paper: Orthogonal Random Features, arXiv 1610.09072; FAVOR+, arXiv 2009.14794.
    """
    require_choice("draw_frequencies", "sampler", sampler, SAMPLERS)
    require_count("draw_frequencies", "rows", rows)
    if sampler == "gaussian" or key_dim == 0:
        return torch.randn(kv_heads, rows, key_dim, dtype=torch.float64, generator=generator)
    blocks = -(-rows // key_dim)
    gaussian = torch.randn(kv_heads, blocks, key_dim, key_dim, dtype=torch.float64, generator=generator)
    directions = haar(gaussian).flatten(1, 2)[:, :rows]
    # Norms of fresh vectors: those of the rows that went into the QR are not independent of the directions.
    norms = torch.randn(kv_heads, rows, key_dim, dtype=torch.float64, generator=generator).norm(dim=-1, keepdim=True)
    return directions * norms


def haar(gaussian: Float[Tensor, "*batch K K"]) -> Float[Tensor, "*batch K K"]:
    """Uniformly distributed orthogonal matrices from Gaussian ones.

    QR alone is not uniform: LAPACK leaves the signs of R's diagonal to the algorithm, which makes Q[0, 0] always
    negative and one-sided exponential features biased (by a third at K = 4). Moving the signs into Q's columns
    repairs it.

    Paper: Mezzadri, How to generate random matrices from the classical compact groups, arXiv math-ph/0609050.
    """
    q, r = torch.linalg.qr(gaussian)
    signs = torch.where(r.diagonal(dim1=-2, dim2=-1) < 0, -1.0, 1.0).to(q.dtype)
    return q * signs[..., None, :]
