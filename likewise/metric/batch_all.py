"""The loss over every active triplet of a batch, and its gradient, without a list of triplets.

Sort an anchor's positives, t_1 <= t_2 <= ...; a negative d that clears j of them, t_k + margin <= d, is active for all
later ones. With c_k and s_k the count and the sum of the d that clear fewer than k positives,

    L = sum_k c_k (t_k + margin) - s_k,    dL/dD_ap = c_k,    dL/dD_an = -(P - j).
"""

import torch
from jaxtyping import Float, Int64
from torch import Tensor
from torch.autograd.function import FunctionCtx

from likewise.checks import require_choice
from likewise.metric.mining import BucketedSearch, blocks
from likewise.metric.triplet import Reduction, pulled, require_batch, require_margin
from likewise.similarity import wide


def batch_all_loss(
    embeddings: Float[Tensor, "B E"], labels: Int64[Tensor, "B"], *, margin: float = 0.2, reduction: Reduction = "sum"
) -> Float[Tensor, ""]:
    """sum over every anchor, positive and negative of max(0, |a - p|^2 - |a - n|^2 + margin).

    `reduction` "mean" divides by the number of triplets whose loss is above 0. Time B^2 log n for n faces of an
    identity, memory B^2; a batch of 4,096 with 40 faces each has six hundred million triplets.

    Paper: Hermans et al. 2017, equation 6, on squared distances.

    >>> batch_all_loss(torch.tensor([[0.0], [0.5], [0.6], [3.0]]), torch.tensor([0, 0, 1, 1]), margin=0.2)
    tensor(12.0800)
    """
    require_margin("batch_all_loss", margin)
    require_choice("batch_all_loss", "reduction", reduction, ("sum", "mean"))
    require_batch("batch_all_loss", embeddings, labels)
    total, active, weights = _sums(embeddings, labels, margin)
    total = _WithGradient.apply(embeddings, weights, total)
    return (total / max(active, 1) if reduction == "mean" else total).to(wide(embeddings.dtype))


@torch.no_grad()
def _sums(
    embeddings: Float[Tensor, "B E"], labels: Int64[Tensor, "B"], margin: float
) -> tuple[Float[Tensor, ""], int, Float[Tensor, "B B"]]:
    """The loss, the number of active triplets, and dL/dD."""
    weights = torch.zeros(len(labels), len(labels), dtype=wide(embeddings.dtype), device=embeddings.device)
    total, active = torch.zeros((), dtype=torch.float64, device=embeddings.device), 0
    for part in (part for block in blocks(embeddings, labels) for part in block.parts()):
        bounds = part.near + margin
        bins = BucketedSearch.of(bounds).reached(part.d)
        shape = (len(bins), bounds.shape[1] + 1)
        d = part.d.masked_fill(~part.negative, 0).double()
        counts = d.new_zeros(shape).scatter_add_(1, bins, part.negative.to(d.dtype)).cumsum(1)[:, :-1]
        sums = d.new_zeros(shape).scatter_add_(1, bins, d).cumsum(1)[:, :-1]
        counts, sums = counts * part.positive, sums * part.positive
        total += (counts * bounds.masked_fill(~part.positive, 0) - sums).sum()
        active += int(counts.sum())
        left = (part.positive.sum(-1, keepdim=True) - bins) * part.negative
        weights[part.anchors] = (-left.to(weights.dtype)).scatter_add(1, part.who, counts.to(weights.dtype))
    return total, active, weights


class _WithGradient(torch.autograd.Function):
    """A loss that was summed up elsewhere, with the gradient that dL/dD gives the embeddings.

    The weights are constant between the ties of distances, so the second derivative is right too.
    """

    @staticmethod
    def forward(embeddings: Tensor, weights: Tensor, total: Tensor) -> Tensor:
        return total.clone()

    @staticmethod
    def setup_context(ctx: FunctionCtx, inputs: tuple[Tensor, Tensor, Tensor], output: Tensor) -> None:
        ctx.save_for_backward(*inputs[:2])

    @staticmethod
    def backward(ctx: FunctionCtx, grad: Tensor) -> tuple[Tensor, None, None]:  # ty: ignore[incompatible-method-override]
        embeddings, weights = ctx.saved_tensors  # ty: ignore[missing-attribute]
        return (grad.to(weights.dtype) * pulled(embeddings, weights)).to(embeddings.dtype), None, None
