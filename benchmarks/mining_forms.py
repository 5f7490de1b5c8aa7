"""Our mining and the sort form, answering benchmarks/mining.py, and every triplet by its definition, to check by."""

import sys

import torch
from torch import Generator, Tensor

from benchmarks.harness.worker import Run, serve
from benchmarks.mining_problem import (
    BATCH_ALL,
    BATCH_HARD,
    EASY_LIST,
    HARD_LIST,
    LOSS_MEAN,
    LOSS_SUM,
    MARGIN,
    RANDOM,
    SEMI_HARD,
    SEMI_HARD_LIST,
    inputs,
    with_gradient,
)
from likewise.metric import batch_all_loss, semi_hard_negatives

OURS, SORT = "likewise", "sort form"


def by_bins(x: Tensor, labels: Tensor) -> tuple[Tensor, ...]:
    """Ours."""
    return (torch.stack(semi_hard_negatives(x, labels, margin=MARGIN), dim=-1),)


def random_ours(x: Tensor, labels: Tensor) -> tuple[Tensor, ...]:
    """Ours, any negative within the band."""
    found = semi_hard_negatives(x, labels, margin=MARGIN, choose="random", generator=Generator().manual_seed(0))
    return (torch.stack(found, dim=-1),)


def both_passes(x: Tensor, labels: Tensor) -> tuple[Tensor, ...]:
    """Ours, with the gradient."""
    x = x.clone().requires_grad_()
    return with_gradient(batch_all_loss(x, labels, margin=MARGIN), x)


def by_sorting(x: Tensor, labels: Tensor) -> tuple[Tensor, ...]:
    """The other exact way: every anchor's negatives sorted, positives looked up in them; distances by one product."""
    d = (2 - 2 * x @ x.mT).clamp_(min=0)
    kin = labels[:, None] == labels
    ordered, order = d.masked_fill(kin, float("inf")).sort(1)
    anchor, positive = kin.fill_diagonal_(False).nonzero(as_tuple=True)
    t = d[anchor, positive]
    # Anchors have different numbers of positives in general: rows of one length, padded.
    counts = torch.bincount(anchor, minlength=len(x))
    column = torch.arange(len(anchor)) - (counts.cumsum(0) - counts)[anchor]
    padded = d.new_full((len(x), int(counts.max())), float("inf"))
    padded[anchor, column] = t
    place = torch.searchsorted(ordered, padded, right=True)[anchor, column].clamp(max=len(x) - 1)
    band = ordered[anchor, place]
    taken = (band > t) & (band < t + MARGIN)
    return (torch.stack([anchor, positive, order[anchor, place]], dim=-1)[taken],)


FORMS: dict[str, dict[str, Run]] = {
    OURS: {SEMI_HARD: by_bins, RANDOM: random_ours, BATCH_ALL: both_passes},
    SORT: {SEMI_HARD: by_sorting},
}


def by_definition(x: Tensor, labels: Tensor) -> dict[str, tuple[Tensor, ...]]:
    """Every answer from a cube of all triplets, distances from differences."""
    x = x.double().requires_grad_()
    d = (x[:, None] - x).square().sum(-1)
    kin = labels[:, None] == labels
    positive = kin & ~torch.eye(len(x), dtype=torch.bool)
    valid = positive[:, :, None] & ~kin[:, None, :]
    gap = d[:, None, :] - d[:, :, None]  # of the negative over the positive

    def listed(mask: Tensor) -> tuple[Tensor]:
        return ((mask & valid).nonzero(),)

    terms = (MARGIN - gap)[valid & (gap < MARGIN)]
    loss, gradient = with_gradient(terms.sum(), x)
    band = gap.masked_fill(~(valid & (gap > 0) & (gap < MARGIN)), float("inf")).detach()
    anchor, place = (band.amin(-1) < float("inf")).nonzero(as_tuple=True)
    hard = [torch.arange(len(x)), d.masked_fill(~positive, -1).argmax(1), d.masked_fill(kin, float("inf")).argmin(1)]
    has_both = positive.any(1) & ~kin.all(1)
    return {
        SEMI_HARD: (torch.stack([anchor, place, band[anchor, place].argmin(-1)], dim=-1),),
        SEMI_HARD_LIST: listed((gap > 0) & (gap < MARGIN)),
        HARD_LIST: listed(gap <= 0),
        EASY_LIST: listed(gap >= MARGIN),
        BATCH_HARD: (torch.stack(hard, dim=-1)[has_both],),
        LOSS_SUM: (loss, gradient),
        LOSS_MEAN: (loss / len(terms), gradient / len(terms)),
    }


def sorted_rows(rows: Tensor) -> Tensor:
    """A list of triplets in one order, to compare lists by."""
    top = int(rows.max()) + 1 if len(rows) else 1
    return rows.long()[(rows.long() @ torch.tensor([top * top, top, 1])).argsort()]


if __name__ == "__main__":
    name = sys.argv[1]
    serve(f"{name}, torch {torch.__version__}", lambda: FORMS[name], inputs)
