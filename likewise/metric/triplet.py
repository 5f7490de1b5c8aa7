"""The triplet loss: an anchor closer to a positive than to a negative, by a margin of squared distance."""

from typing import Literal, NamedTuple

import torch
from jaxtyping import Float, Int64
from torch import Tensor
from torch.autograd.function import FunctionCtx

from likewise.checks import require, require_choice, require_number
from likewise.similarity import wide

Reduction = Literal["sum", "mean"]
ROWS = 1 << 14  # pairs whose differences are held at once


class Triplets(NamedTuple):
    """Rows of one batch: every anchor shares its identity with its positive and not with its negative."""

    anchor: Int64[Tensor, "n"]
    positive: Int64[Tensor, "n"]
    negative: Int64[Tensor, "n"]


def triplet_loss(
    embeddings: Float[Tensor, "B E"], triplets: Triplets, *, margin: float = 0.2, reduction: Reduction = "sum"
) -> Float[Tensor, ""]:
    """sum over triplets of max(0, |a - p|^2 - |a - n|^2 + margin).

    `reduction` "sum" is the paper's; "mean" divides by the number of triplets whose loss is above 0. A sum over no
    triplets is 0, with gradient 0.

    Paper: Schroff et al. 2015, equation 3.

    >>> x = torch.tensor([[0.0], [1.0], [2.0]])
    >>> triplet_loss(x, Triplets(*torch.tensor([[0], [1], [2]])), margin=4.0)
    tensor(1.)
    """
    require_margin("triplet_loss", margin)
    require_choice("triplet_loss", "reduction", reduction, ("sum", "mean"))
    anchor, positive, negative = triplets
    terms = pair_distances(embeddings, anchor, positive) - pair_distances(embeddings, anchor, negative) + margin
    total = terms.clamp(min=0).sum(dtype=torch.float64)
    if reduction == "mean":
        total = total / (terms > 0).sum().clamp(min=1)
    return total.to(wide(embeddings.dtype))


def pair_distances(
    embeddings: Float[Tensor, "B E"], first: Int64[Tensor, "n"], second: Int64[Tensor, "n"]
) -> Float[Tensor, "n"]:
    """|e_i - e_j|^2 of listed pairs, from their differences, so that near-duplicates keep their digits.

    The backward pass is one product over the batch, 2 (diag(W 1) - W) E with W the weights of the pairs in both
    directions, and holds no row per pair.

    >>> pair_distances(torch.tensor([[1.0, 2.0], [3.0, 4.0]]), torch.tensor([0]), torch.tensor([1]))
    tensor([8.])
    """
    return _PairDistances.apply(embeddings, first, second)


class _PairDistances(torch.autograd.Function):
    @staticmethod
    def forward(embeddings: Tensor, first: Tensor, second: Tensor) -> Tensor:
        embeddings = embeddings.to(wide(embeddings.dtype))
        parts = [
            (embeddings[rows] - embeddings[others]).square().sum(-1)
            for rows, others in zip(first.split(ROWS), second.split(ROWS), strict=True)
        ]
        return torch.cat(parts)

    @staticmethod
    def setup_context(ctx: FunctionCtx, inputs: tuple[Tensor, Tensor, Tensor], output: Tensor) -> None:
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx: FunctionCtx, grad: Tensor) -> tuple[Tensor, None, None]:  # ty: ignore[incompatible-method-override]
        embeddings, first, second = ctx.saved_tensors  # ty: ignore[missing-attribute]
        weights = grad.new_zeros(len(embeddings), len(embeddings)).index_put((first, second), grad, accumulate=True)
        return pulled(embeddings, weights).to(embeddings.dtype), None, None


def pulled(embeddings: Float[Tensor, "B E"], weights: Float[Tensor, "B B"]) -> Float[Tensor, "B E"]:
    """The gradient of sum_ij w_ij |e_i - e_j|^2: 2 (diag(W 1) - W) E with W = w + w^T."""
    embeddings = embeddings.to(weights.dtype)
    # Two products instead of one with w + w^T, which would be a second matrix of B^2 and read across its rows.
    pushed = (weights.sum(0) + weights.sum(1))[:, None] * embeddings
    return 2 * (pushed - weights @ embeddings - weights.mT @ embeddings)


def require_margin(where: str, margin: float) -> None:
    """Refuse a margin that is no positive number."""
    require_number(where, "margin", margin)


def require_batch(where: str, embeddings: Tensor, labels: Tensor) -> None:
    """Refuse labels that are not one whole number for each row, and rows whose squared distances are no numbers."""
    whole = not (labels.is_floating_point() or labels.is_complex() or labels.dtype == torch.bool)
    require(whole, where, "labels", "be whole numbers", labels.dtype)
    rows = len(embeddings)
    require(labels.shape == (rows,), where, "labels", f"have one entry for each of {rows} rows", tuple(labels.shape))
    require_rows(where, "embeddings", embeddings)


def require_rows(where: str, name: str, rows: Float[Tensor, "N E"]) -> None:
    """Refuse rows whose squared distances are no numbers."""
    most = (torch.finfo(wide(rows.dtype)).max / 8) ** 0.5  # twice of it can be squared
    bad = int((~(torch.linalg.vector_norm(rows.detach(), dim=-1, dtype=torch.float64) <= most)).sum())
    require(bad == 0, where, name, f"have finite rows, of length up to {most:.2g}", f"{bad} that are not")
