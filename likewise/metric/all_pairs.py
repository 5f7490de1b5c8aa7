"""VAL at a FAR over all pairs of a set, exactly, without holding the distances of all pairs."""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from likewise.checks import require
from likewise.metric.rates import Roc, allowed, below, tightest
from likewise.metric.triplet import require_batch, require_rows
from likewise.similarity import ELEMENTS, distance_blocks

POINTS = 400  # of the curve, spaced evenly in the logarithm of FAR


@dataclass(frozen=True)
class AllPairs:
    """VAL at a FAR, numbers of pairs, the curve up to that FAR; `threshold` and `limit` are those of `Verification`."""

    far: float
    val: float
    threshold: float
    limit: float
    same: int
    different: int
    roc: Roc


def all_pairs(
    embeddings: Float[Tensor, "N E"],
    labels: Int64[Tensor, "N"],
    others: Float[Tensor, "N E"] | None = None,
    *,
    far: float = 1e-3,
    elements: int = ELEMENTS,
) -> AllPairs:
    """VAL at the largest threshold whose FAR over all pairs is at most `far`.

    Every pair of two rows counts once, no row with itself. With `others`, the same rows embedded by another network,
    row i is compared with other row j for all i != j. Distances come in blocks of `elements`; kept are those of the
    same pairs and the smallest `far` of the others, so the answer is exact and not read off a histogram. LFW has
    87,549,528 pairs, of which it keeps 242,257 and 87,307.

    Paper: Schroff et al. 2015, section 4: 100k x 100k pairs of each split of a hold-out set.

    >>> found = all_pairs(torch.tensor([[0.0], [1.0], [3.0], [3.5]]), torch.tensor([0, 0, 1, 1]), far=0.3)
    >>> found.val, found.same, found.different, round(found.limit, 5)  # different: 4, 6.25, 9, 12.25
    (1.0, 2, 4, 6.25)
    >>> found.threshold  # the same pairs are at 0.25 and 1, so nothing is lost by accepting none of the others
    2.5
    """
    where = "all_pairs"
    require_batch(where, embeddings, labels)
    require(0 < far < 1, where, "far", "be between 0 and 1", far)
    if others is not None:
        shape = tuple(embeddings.shape)
        require(others.shape == shape, where, "others", f"have the shape of embeddings, {shape}", tuple(others.shape))
        require_rows(where, "others", others)
    _, counts = labels.unique(return_counts=True)
    ordered = 1 if others is not None else 2
    same = int((counts * (counts - 1)).sum()) // ordered
    different = (len(labels) * (len(labels) - 1)) // ordered - same
    require(same > 0 and different > 0, where, "labels", "give pairs of both kinds", f"{same} same, {different} other")
    keep = allowed(far, different) + 1
    near, low, held = [], [], 0
    bound = float("inf")
    position = torch.arange(len(labels), device=labels.device)
    for rows, d in distance_blocks(embeddings, embeddings if others is None else others, elements=elements):
        # With one set, pairs to the left of the diagonal have been met in the blocks before.
        right = slice(rows.start if others is None else 0, None)
        d, is_same = d[:, right], labels[rows, None] == labels[right]
        counted = position[rows, None] < position[right] if others is None else position[rows, None] != position
        near.append(d[is_same & counted])
        low.append(d[~is_same & counted & (d <= bound)])
        held += len(low[-1])
        if held > 2 * keep:
            # Only the smallest `keep` can matter; what is larger need not be looked at again.
            low = [_smallest(torch.cat(low), keep)]
            held, bound = keep, low[0].max().item()
    return _rates(torch.cat(near).sort().values, _smallest(torch.cat(low), keep).sort().values, far, different)


def _smallest(values: Float[Tensor, "n"], count: int) -> Float[Tensor, "k"]:
    return values.topk(min(count, len(values)), largest=False, sorted=False).values


def _rates(same: Float[Tensor, "n"], low: Float[Tensor, "k"], far: float, different: int) -> AllPairs:
    """The rates, from all same distances and the smallest others, both sorted; the last of these is not accepted."""
    limit = below(low[-1])
    # One point before each of some impostors: as far as one can go without accepting it.
    places = torch.logspace(0, torch.log10(torch.tensor(float(len(low)))).item(), POINTS, dtype=torch.float64)
    places = (places.round().long() - 1).clamp(0, len(low) - 1).unique()
    limits = torch.nextafter(low[places], torch.full_like(low[places], -float("inf")))
    val = torch.searchsorted(same, limits, right=True).double() / len(same)
    found = torch.searchsorted(low, limits, right=True).double() / different
    rates = far, val[-1].item(), tightest(same, low, limit), limit
    return AllPairs(*rates, len(same), different, Roc(limits, found, val))
