"""Random frequencies: rows w with E[w w'] = I, independent or in blocks of orthogonal or repelling rows."""

import math
from typing import Literal, get_args

import torch
from jaxtyping import Float
from torch import Generator, Tensor

from likewise.checks import require_choice, require_count

Sampler = Literal["gaussian", "orthogonal", "simplex"]
SAMPLERS = get_args(Sampler)


def draw_frequencies(
    kv_heads: int, rows: int, key_dim: int, *, sampler: Sampler, generator: Generator | None
) -> Float[Tensor, "G R K"]:
    """Rows that are each N(0, I): independent ("gaussian"), or in blocks of K whose directions depend on each other.

    "orthogonal": the directions of a block are perpendicular. "simplex": they are the corners of a regular simplex
    around 0, so that each two have the product -1/(K-1) and all of them the sum 0.

    >>> w = draw_frequencies(1, 3, 3, sampler="orthogonal", generator=torch.Generator().manual_seed(0))[0]
    >>> bool((w @ w.T - (w @ w.T).diag().diag()).abs().max() < 1e-12)
    True

    Paper: Orthogonal Random Features, arXiv 1610.09072; FAVOR+, arXiv 2009.14794; Simplex Random Features, arXiv
    2301.13856 (SimRFs, whose directions do not depend on the norms).
    """
    require_choice("draw_frequencies", "sampler", sampler, SAMPLERS)
    require_count("draw_frequencies", "rows", rows)
    if sampler == "gaussian" or key_dim == 0:
        return torch.randn(kv_heads, rows, key_dim, dtype=torch.float64, generator=generator)
    blocks = -(-rows // key_dim)
    gaussian = torch.randn(kv_heads, blocks, key_dim, key_dim, dtype=torch.float64, generator=generator)
    rotations = haar(gaussian)
    blocks_of_directions = rotations if sampler == "orthogonal" else simplex(key_dim) @ rotations
    directions = blocks_of_directions.flatten(1, 2)[:, :rows]
    # Norms of fresh vectors: those of the rows that went into the QR are not independent of the directions.
    norms = torch.randn(kv_heads, rows, key_dim, dtype=torch.float64, generator=generator).norm(dim=-1, keepdim=True)
    return directions * norms


def simplex(key_dim: int) -> Float[Tensor, "K K"]:
    """K unit rows with the pairwise product -1/(K-1): the normalised rows of I - 11'/K, and 1 where K is 1.

    >>> simplex(2)
    tensor([[ 0.7071, -0.7071],
            [-0.7071,  0.7071]], dtype=torch.float64)
    """
    identity = torch.eye(key_dim, dtype=torch.float64)
    if key_dim == 1:  # one point around 0 would be 0 itself, which has no direction
        return identity
    return (identity - 1 / key_dim) / math.sqrt(1 - 1 / key_dim)


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
