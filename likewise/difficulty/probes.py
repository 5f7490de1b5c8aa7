"""Probes: what the nearest training examples say of an example, at one layer."""

from collections.abc import Sequence

import torch
from jaxtyping import Float64, Int64
from torch import Tensor

from likewise.checks import require
from likewise.difficulty.activations import Stored
from likewise.difficulty.plan import LayerPlan
from likewise.progress import Progress, parts
from likewise.similarity import nearest

CELLS = 1 << 22  # examples x classes whose votes are counted at a time


def vote(neighbours: Int64[Tensor, "N K"], *, ks: Sequence[int], classes: int) -> Int64[Tensor, "k N"]:
    """The class that most of the first k neighbours have, for each k, from their labels, nearest first.

    Of equally many votes the smaller sum of ranks wins, and of equal sums the nearest neighbour.

    >>> vote(torch.tensor([[2, 0, 0, 2, 1]]), ks=(1, 3, 4, 5), classes=3).tolist()  # ranks 1 + 4 against 2 + 3
    [[2], [0], [2], [2]]
    """
    count, most = neighbours.shape
    for k in ks:
        require(1 <= k <= most, "vote", "ks", f"be from 1 to the {most} neighbours there are", k)
    found = torch.zeros(len(ks), count, dtype=torch.int64)
    ranks = torch.arange(1, most + 1)
    for some in torch.arange(count).split(max(1, CELLS // classes)):
        votes = torch.zeros(len(some), classes, dtype=torch.int64)
        sums, first = torch.zeros_like(votes), torch.full_like(votes, most + 1)
        for rank in ranks.tolist():
            column = neighbours[some, rank - 1, None]
            votes.scatter_add_(1, column, torch.ones_like(column))
            sums.scatter_add_(1, column, torch.full_like(column, rank))
            first.scatter_reduce_(1, column, torch.full_like(column, rank), "amin")
            if rank in ks:
                scores = (votes * (most * most + 1) - sums) * (most + 2) - first
                for number in (number for number, k in enumerate(ks) if k == rank):
                    found[number, some] = scores.argmax(dim=1)
    return found


def probe(
    queries: Stored,
    rows: Int64[Tensor, "n"],
    support: Stored,
    labels: Int64[Tensor, "M"],
    *,
    ks: Sequence[int],
    classes: int,
    centre: Float64[Tensor, "_"],
    plan: LayerPlan,
    same: bool,
    progress: Progress,
) -> tuple[Int64[Tensor, "k n"], int]:
    """Votes of the training examples nearest to some queries; and for how many single precision did not settle them.

    same: the queries are training examples, none of which is its own neighbour.
    """
    votes, recomputed = [], 0
    blocks = rows.split(plan.queries)
    steps = parts(progress, len(blocks))
    for number, some in enumerate(blocks if len(rows) else ()):
        found = nearest(
            queries[some],
            support,
            k=max(ks),
            exclude=some if same else None,
            centre=centre,
            support=plan.support,
            progress=steps[number],
        )
        votes.append(vote(labels[found.indices], ks=ks, classes=classes))
        recomputed += found.recomputed
        steps[number](1.0, "nearest neighbours")
    return torch.cat(votes, dim=1) if votes else torch.zeros(len(ks), 0, dtype=torch.int64), recomputed
