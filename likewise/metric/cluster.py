"""Who is who without names: agglomerative clustering of distances, and how good the clusters are."""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int64
from torch import Tensor

from likewise.checks import require
from likewise.similarity import wide


@dataclass(frozen=True)
class ClusterScores:
    """Pairwise and B-cubed precision, recall and their harmonic mean F; how many clusters, and how many people."""

    precision: float
    recall: float
    f: float
    bcubed_precision: float
    bcubed_recall: float
    bcubed_f: float
    clusters: int
    identities: int


def cluster(distances: Float[Tensor, "N N"], *, threshold: float) -> Int64[Tensor, "N"]:
    """Merge the two closest clusters, by the mean distance between their rows, while it is at most the threshold.

    The result numbers the clusters in the order of their first rows. Found by the nearest-neighbour chain: exact,
    time N^2 for the merges that happen, and one copy of the distances in memory (50,000 rows: 10 GB in float32). A
    cluster all of whose neighbours are beyond the threshold is settled at once, for a mean cannot fall below both of
    the distances it is made of. `squared_distances` gives the distances; the threshold is in their unit.

    Paper: Schroff et al. 2015, section 5.8: agglomerative clustering. The linkage is not stated; ours is the average.

    >>> x = torch.tensor([0.0, 1.0, 1.5, 5.0])
    >>> cluster((x[:, None] - x).abs(), threshold=1.25)  # 1 and 1.5 join at 0.5, with 0 at (1 + 1.5) / 2
    tensor([0, 0, 0, 1])
    """
    where = "cluster"
    square = distances.ndim == 2 and distances.shape[0] == distances.shape[1]
    require(square, where, "distances", "be square", tuple(distances.shape))
    require(threshold >= 0, where, "threshold", "be a number of at least 0", threshold)
    require(bool(distances.isfinite().all()), where, "distances", "be finite", "some that are not")
    table = distances.detach().to(wide(distances.dtype)).cpu().numpy().copy()
    for row in range(len(table)):
        there, back = table[row, row + 1 :], table[row + 1 :, row]
        require(
            np.allclose(there, back, rtol=1e-4, atol=1e-6), where, "distances", "be symmetric", f"another row {row}"
        )
        back[:] = there  # to the last digit, or the chain could run in a circle
        table[row, row] = np.inf
    parent = _merged(table, threshold)
    roots = [_root(parent, row) for row in range(len(parent))]
    numbers = {root: number for number, root in enumerate(dict.fromkeys(roots))}
    return torch.tensor([numbers[root] for root in roots], dtype=torch.int64, device=distances.device)


def _merged(table: np.ndarray, threshold: float) -> list[int]:
    """For every row the row that its cluster was merged into, itself for a root. The table is used up."""
    count = len(table)
    parent, sizes = list(range(count)), np.ones(count)
    waiting = list(range(count - 1, -1, -1))
    chain: list[int] = []
    settled = np.zeros(count, dtype=bool)
    while chain or waiting:
        if not chain:
            row = waiting.pop()
            if settled[row]:
                continue
            chain.append(row)
        tip = chain[-1]
        nearest = int(table[tip].argmin())
        distance = table[tip, nearest]
        if not distance <= threshold:
            # So are all before it in the chain: their nearest neighbours are no closer.
            for row in chain:
                settled[row] = True
                table[row], table[:, row] = np.inf, np.inf
            chain = []
        elif len(chain) > 1 and table[tip, chain[-2]] <= distance:
            other = chain[-2]
            del chain[-2:]
            kept, gone = min(tip, other), max(tip, other)
            joined = (sizes[kept] * table[kept] + sizes[gone] * table[gone]) / (sizes[kept] + sizes[gone])
            joined = np.maximum(joined, np.minimum(table[kept], table[gone]))  # which rounding could undercut
            joined[kept] = np.inf
            table[kept], table[:, kept] = joined, joined
            table[gone], table[:, gone] = np.inf, np.inf
            sizes[kept] += sizes[gone]
            parent[gone], settled[gone] = kept, True
            waiting.append(kept)  # what is left of the chain need not lead to it
        else:
            chain.append(nearest)
    return parent


def _root(parent: list[int], row: int) -> int:
    while parent[row] != row:
        parent[row] = parent[parent[row]]
        row = parent[row]
    return row


def cluster_scores(found: Int64[Tensor, "N"], truth: Int64[Tensor, "N"]) -> ClusterScores:
    """Compare clusters with identities; both are numbers, and which numbers does not matter.

    Pairwise: of all pairs put together, the share that belongs together (precision), and of all pairs that belong
    together, the share put together (recall); with no such pair, 1. B-cubed: the means over rows of |C & L| / |C| and
    |C & L| / |L|, with C the row's cluster and L its identity.

    >>> scores = cluster_scores(torch.tensor([0, 0, 0, 1]), torch.tensor([5, 5, 6, 6]))
    >>> round(scores.precision, 4), scores.recall, round(scores.bcubed_precision, 4), scores.bcubed_recall
    (0.3333, 0.5, 0.6667, 0.75)
    """
    where = "cluster_scores"
    require(found.shape == truth.shape, where, "truth", f"have one entry for each of {len(found)}", len(truth))
    require(len(found) > 0, where, "found", "have at least one row", 0)
    _, clusters, cluster_sizes = found.unique(return_inverse=True, return_counts=True)
    _, people, person_sizes = truth.unique(return_inverse=True, return_counts=True)
    _, both, sizes = (clusters * len(person_sizes) + people).unique(return_inverse=True, return_counts=True)
    together, joined, kin = (_pairs(each) for each in (sizes, cluster_sizes, person_sizes))
    precision, recall = together / joined if joined else 1.0, together / kin if kin else 1.0
    shared = sizes[both].double()
    cubed = [(shared / each).mean().item() for each in (cluster_sizes[clusters], person_sizes[people])]
    return ClusterScores(
        precision, recall, _f(precision, recall), *cubed, _f(*cubed), len(cluster_sizes), len(person_sizes)
    )


def _pairs(sizes: Int64[Tensor, "k"]) -> int:
    return int((sizes * (sizes - 1)).sum()) // 2


def _f(precision: float, recall: float) -> float:
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0
