"""Harmonic embeddings: a new network whose vectors can be compared with those that an old one has stored."""

from collections.abc import Mapping
from itertools import product

import torch
from jaxtyping import Float, Int64
from torch import Generator, Tensor

from likewise.checks import require, require_choice
from likewise.metric.mining import Choose, Fallback, semi_hard_negatives
from likewise.metric.triplet import Reduction, pair_distances, require_batch, require_margin
from likewise.similarity import wide

# Versions of anchor, positive and negative: n is new, o is old. Three old ones teach the new network nothing.
COMBINATIONS = tuple("".join(versions) for versions in product("no", repeat=3) if "n" in versions)


def harmonic_loss(
    new: Float[Tensor, "B E"],
    old: Float[Tensor, "M E"],
    labels: Int64[Tensor, "B"],
    *,
    old_labels: Int64[Tensor, "M"] | None = None,
    margin: float = 0.2,
    weights: Mapping[str, float] | None = None,
    reduction: Reduction = "sum",
    choose: Choose = "closest",
    fallback: Fallback = "skip",
    generator: Generator | None = None,
) -> Float[Tensor, ""]:
    """sum over combinations c of w_c sum over triplets of c of max(0, |a - p|^2 - |a - n|^2 + margin).

    Every ordered pair of one identity, new or old, gets one semi-hard negative out of both sets. A combination is
    written by the versions of anchor, positive and negative, as "nno"; `weights` sets w_c where it is not 1. The
    gradient reaches `new` only. `old` may be the vectors of the same images (`old_labels` None: the labels of `new`,
    row by row; the two vectors of one image are then a positive pair) or any stored vectors with labels: the old
    network is not needed. "mean" divides by the sum of w_c over triplets whose loss is above 0.

    Paper: Schroff et al. 2015, appendix 7, which mixes both versions within triplets and does not state the weights.

    >>> new, old = torch.tensor([[0.0], [1.0]]), torch.tensor([[0.5], [0.8]])
    >>> harmonic_loss(new, old, torch.tensor([0, 1]), margin=0.5)  # 0.11 + 0.29 + 0.45
    tensor(0.8500)
    """
    where = "harmonic_loss"
    require_margin(where, margin)
    require_choice(where, "reduction", reduction, ("sum", "mean"))
    require(new.shape[-1] == old.shape[-1], where, "old", f"have the width of new, {new.shape[-1]}", old.shape[-1])
    if old_labels is None:
        require(len(old) == len(new), where, "old_labels", "be given when old has other rows than new", None)
        old_labels = labels
    require_batch(where, new, labels)
    require_batch(where, old, old_labels)
    scale = _by_version(where, weights or {}).to(new.device)
    # Stored vectors may be narrower than what is being trained.
    dtype = torch.promote_types(new.dtype, old.dtype)
    stacked = torch.cat([new.to(dtype), old.detach().to(dtype)])
    rows = semi_hard_negatives(
        stacked,
        torch.cat([labels, old_labels]),
        margin=margin,
        choose=choose,
        fallback=fallback,
        generator=generator,
    )
    is_old = (torch.arange(len(stacked), device=new.device) >= len(new)).long()
    weight = scale[is_old[rows.anchor], is_old[rows.positive], is_old[rows.negative]]
    anchor, positive, negative = (each[weight > 0] for each in rows)
    weight = weight[weight > 0]
    terms = pair_distances(stacked, anchor, positive) - pair_distances(stacked, anchor, negative) + margin
    total = (terms.clamp(min=0) * weight).sum(dtype=torch.float64)
    if reduction == "mean":
        active = weight[terms > 0].sum()
        total = total / active if active > 0 else total
    return total.to(wide(dtype))


def _by_version(where: str, weights: Mapping[str, float]) -> Float[Tensor, "2 2 2"]:
    """The weights as a table, by whether anchor, positive and negative are old."""
    table = torch.ones(2, 2, 2, dtype=torch.float64)
    table[1, 1, 1] = 0
    for name, weight in weights.items():
        require_choice(where, "weights", name, COMBINATIONS)
        require(0 <= weight < float("inf"), where, f"weights[{name!r}]", "be a number of at least 0", weight)
        table[tuple("no".index(version) for version in name)] = weight
    return table
