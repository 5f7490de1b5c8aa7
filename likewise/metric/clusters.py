"""Who is who without names: agglomerative clustering of distances, and how good the clusters are."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int64
from torch import Tensor

from likewise.checks import require, require_count
from likewise.similarity import distance_blocks, squared_distances, wide

ROUNDING = 1e-12  # of a squared distance in float64, beside the largest one


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


Pairs = Iterable[tuple[int, int]]


def cluster(
    distances: Float[Tensor, "N N"], *, threshold: float, same: Pairs = (), different: Pairs = ()
) -> Int64[Tensor, "N"]:
    """Merge the two closest clusters, by the mean distance between their rows, while it is at most the threshold.

    same, different: pairs of rows that a person put together or kept apart. Rows that are the same begin as one
    cluster, whatever their distance; clusters that hold a different pair are never merged.

    The result numbers the clusters in the order of their first rows. Found by the nearest-neighbour chain: exact,
    time N^2 for the merges that happen, and one copy of the distances in memory (50,000 rows: 10 GB in float32). A
    cluster all of whose neighbours are beyond the threshold is settled at once, for a mean cannot fall below both of
    the distances it is made of. `squared_distances` gives the distances; the threshold is in their unit.

    Paper: Schroff et al. 2015, section 5.8: agglomerative clustering. The linkage is not stated; ours is the average.

    >>> x = torch.tensor([0.0, 1.0, 1.5, 5.0])
    >>> distances = (x[:, None] - x).abs()
    >>> cluster(distances, threshold=1.25)  # 1 and 1.5 join at 0.5, with 0 at (1 + 1.5) / 2
    tensor([0, 0, 0, 1])
    >>> cluster(distances, threshold=1.25, same=[(0, 3)], different=[(0, 2)])
    tensor([0, 1, 1, 0])
    """
    where = "cluster"
    square = distances.ndim == 2 and distances.shape[0] == distances.shape[1]
    require(square, where, "distances", "be square", tuple(distances.shape))
    _require_threshold(where, threshold)
    require(bool(distances.isfinite().all()), where, "distances", "be finite", "some that are not")
    table = distances.detach().to(wide(distances.dtype)).cpu().numpy().copy()
    for row in range(len(table)):
        there, back = table[row, row + 1 :], table[row + 1 :, row]
        require(
            np.allclose(there, back, rtol=1e-4, atol=1e-6), where, "distances", "be symmetric", f"another row {row}"
        )
        back[:] = there  # to the last digit, or the chain could run in a circle
    corrections = _Corrections(len(table))
    for one, two in same:
        corrections.put_together(where, one, two)
    for one, two in different:
        corrections.keep_apart(where, one, two)
    return torch.from_numpy(_numbered(_clustered(table, threshold, corrections))).to(distances.device)


class Clusters:
    """Clusters of vectors that arrive over time: always those that `cluster` finds in all of them at once.

    A mean distance within the threshold needs one pair of rows within it. So no cluster crosses from one connected
    component (of rows within the threshold of each other, or corrected to be the same) into another, and only the
    components that a new row or a correction touches are clustered again.

    largest: rows of a component that `add` still clusters again; time and memory grow with the square. In a larger one
    a new row only joins the cluster whose mean squared distance is the least, if that is within the threshold. Then
    `exact` is False until `settle` is called.

    >>> clusters = Clusters(threshold=1.6)
    >>> clusters.add(torch.tensor([[0.0], [1.0], [5.0]]))
    >>> clusters.add(torch.tensor([[1.5]]))
    >>> clusters.labels.tolist()
    [0, 1, 2, 1]
    >>> clusters.different(1, 3)
    >>> clusters.same(2, 3)
    >>> clusters.labels.tolist()
    [0, 0, 1, 1]
    """

    def __init__(self, *, threshold: float, largest: int = 4096) -> None:
        _require_threshold("Clusters", threshold)
        require_count("Clusters", "largest", largest)
        self.threshold, self.largest = threshold, largest
        self.vectors = torch.empty(0, 0, dtype=torch.float64)
        self._corrections = _Corrections(0)
        self._first = np.empty(0, dtype=np.int64)  # for each row, the first row of its cluster
        self._component = np.empty(0, dtype=np.int64)  # for each row, a row that names its component
        self._components: dict[int, list[int]] = {}
        self._unsettled: set[int] = set()

    def __len__(self) -> int:
        return len(self.vectors)

    def __repr__(self) -> str:
        return f"Clusters({len(self):,} rows in {len(np.unique(self._first)):,} clusters)"

    @property
    def labels(self) -> Int64[Tensor, "N"]:
        """The cluster of each row, numbered in the order of their first rows."""
        return torch.from_numpy(_numbered(self._first))

    @property
    def exact(self) -> bool:
        """Whether the clusters are those of `cluster`. If not, a component is larger than `largest`: `settle` it."""
        return not self._unsettled

    def add(self, vectors: Float[Tensor, "M E"]) -> None:
        """Add rows, numbered on from the last."""
        where, new = "Clusters.add", vectors.detach().double().cpu()
        width = self.vectors.shape[1] if len(self) else new.shape[-1]
        require(new.ndim == 2 and new.shape[1] == width, where, "vectors", f"be rows of {width}", tuple(new.shape))
        require(bool(new.isfinite().all()), where, "vectors", "be finite", "some that are not")
        numbers = np.arange(len(self), len(self) + len(new))
        self.vectors = torch.cat([self.vectors.reshape(-1, width), new])
        self._corrections.grow(len(new))
        self._first, self._component = (np.concatenate([each, numbers]) for each in (self._first, self._component))
        self._components |= {row: [row] for row in numbers.tolist()}
        # A component that is too large changes no cluster, one that is too small might: so rounding makes it larger.
        spread = (self.vectors - self.vectors[:1]).square().sum(1).max().item() if len(self) else 0.0
        within = self.threshold + ROUNDING * (self.threshold + spread)
        for rows, distances in distance_blocks(new, self.vectors):
            for row, near in zip(numbers[rows].tolist(), (distances <= within).numpy(), strict=True):
                for component in np.unique(self._component[near]).tolist():
                    self._connect(row, component)
        for component in dict.fromkeys(self._component[numbers].tolist()):
            rows = self._components[component]
            if len(rows) <= self.largest:
                self._cluster_again(component)
            else:
                self._unsettled.add(component)
                for row in rows:
                    if row >= numbers[0]:
                        self._attach(row, rows)

    def same(self, one: int, two: int) -> None:
        """Put two rows together for good, with all that are the same as either."""
        self.correct(same=[(one, two)])

    def different(self, one: int, two: int) -> None:
        """Keep two rows apart for good, with all that are the same as either."""
        self.correct(different=[(one, two)])

    def correct(self, *, same: Pairs = (), different: Pairs = ()) -> None:
        """Several corrections at once, all of them or, if one contradicts an earlier one, none."""
        together, apart, made = list(same), list(different), self._corrections.copy()
        for one, two in together:
            made.put_together("Clusters.same", one, two)
        for one, two in apart:
            made.keep_apart("Clusters.different", one, two)
        self._corrections = made
        for one, two in together:
            self._connect(one, two)
        inside = [pair for pair in apart if self._component[pair[0]] == self._component[pair[1]]]
        for component in sorted({int(self._component[one]) for one, _ in (*together, *inside)}):
            self._cluster_again(component)

    def settle(self) -> None:
        """Cluster the components again that were too large for `add`."""
        for component in sorted(self._unsettled):
            self._cluster_again(component)

    def _connect(self, one: int, two: int) -> int:
        """One component of those of two rows; its name."""
        kept, gone = int(self._component[one]), int(self._component[two])
        if kept == gone:
            return kept
        if len(self._components[kept]) < len(self._components[gone]):
            kept, gone = gone, kept
        moved = self._components.pop(gone)
        self._component[moved] = kept
        self._components[kept] += moved
        if gone in self._unsettled:
            self._unsettled.remove(gone)
            self._unsettled.add(kept)
        return kept

    def _cluster_again(self, component: int) -> None:
        rows = np.sort(self._components[component])
        vectors = self.vectors[rows]
        table = squared_distances(vectors, vectors).numpy()
        table = np.minimum(table, table.T)  # the chain needs symmetry to the last digit
        self._first[rows] = rows[_clustered(table, self.threshold, self._corrections.among(rows))]
        self._unsettled.discard(component)

    def _attach(self, row: int, rows: list[int]) -> None:
        """Put a row that is alone with the cluster of the nearest mean, among some rows."""
        others = np.array([other for other in rows if other < row])
        if not len(others):
            return
        squared = squared_distances(self.vectors[[row]], self.vectors[others])[0].numpy()
        firsts, places, sizes = np.unique(self._first[others], return_inverse=True, return_counts=True)
        means = np.bincount(places, squared) / sizes
        if means.min() <= self.threshold:
            self._first[row] = firsts[means.argmin()]


class _Corrections:
    """Which of some rows are the same, and which are different. What contradicts an earlier correction is refused."""

    def __init__(self, count: int) -> None:
        self.parent = list(range(count))
        self.apart: list[tuple[int, int]] = []

    def grow(self, count: int) -> None:
        self.parent += range(len(self.parent), len(self.parent) + count)

    def put_together(self, where: str, one: int, two: int) -> None:
        self._require_rows(where, one, two)
        roots = {_root(self.parent, one), _root(self.parent, two)}
        against = next((pair for pair in self.apart if {_root(self.parent, row) for row in pair} == roots), None)
        rule = "be the same only if they are not different"
        require(against is None, where, "rows", rule, f"{one} and {two}, with {against} different")
        self.parent[max(roots)] = min(roots)

    def keep_apart(self, where: str, one: int, two: int) -> None:
        self._require_rows(where, one, two)
        together = _root(self.parent, one) == _root(self.parent, two)
        require(not together, where, "rows", "be different only if they are not the same", f"{one} and {two}")
        self.apart.append((one, two))

    def copy(self) -> "_Corrections":
        """One that can be changed by itself."""
        found = _Corrections(0)
        found.parent, found.apart = list(self.parent), list(self.apart)
        return found

    def among(self, rows: np.ndarray) -> "_Corrections":
        """Those of some rows, in order, that no row outside is the same as."""
        places = {row: place for place, row in enumerate(rows.tolist())}
        found = _Corrections(0)
        found.parent = [places[_root(self.parent, row)] for row in places]
        found.apart = [(places[one], places[two]) for one, two in self.apart if one in places and two in places]
        return found

    def _require_rows(self, where: str, *rows: int) -> None:
        count = len(self.parent)
        for row in rows:
            require_count(where, "row", row, least=0)
            require(row < count, where, "row", f"be below {count}", row)


def _require_threshold(where: str, threshold: float) -> None:
    require(0 <= threshold < np.inf, where, "threshold", "be a finite number of at least 0", threshold)


def _clustered(table: np.ndarray, threshold: float, corrections: _Corrections) -> np.ndarray:
    """For every row the first row of its cluster. The table of distances, symmetric to the last digit, is used up."""
    count = len(table)
    np.fill_diagonal(table, np.inf)
    parent, sizes = list(range(count)), np.ones(count)
    settled = np.zeros(count, dtype=bool)

    def join(one: int, two: int) -> int:
        kept, gone = min(one, two), max(one, two)
        joined = (sizes[kept] * table[kept] + sizes[gone] * table[gone]) / (sizes[kept] + sizes[gone])
        joined = np.maximum(joined, np.minimum(table[kept], table[gone]))  # which rounding could undercut
        joined[kept] = np.inf
        table[kept], table[:, kept] = joined, joined
        table[gone], table[:, gone] = np.inf, np.inf
        sizes[kept] += sizes[gone]
        parent[gone], settled[gone] = kept, True
        return kept

    for row in range(count):
        one, two = _root(parent, row), _root(parent, _root(corrections.parent, row))
        if one != two:
            join(one, two)
    for one, two in corrections.apart:
        # Clusters kept apart are infinitely far from each other, and so is what they are merged with.
        one, two = _root(parent, one), _root(parent, two)
        table[one, two] = table[two, one] = np.inf
    waiting = list(range(count - 1, -1, -1))
    chain: list[int] = []
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
            kept = join(tip, chain[-2])
            del chain[-2:]
            waiting.append(kept)  # what is left of the chain need not lead to it
        else:
            chain.append(nearest)
    return np.array([_root(parent, row) for row in range(count)], dtype=np.int64)


def _root(parent: list[int], row: int) -> int:
    while parent[row] != row:
        parent[row] = parent[parent[row]]
        row = parent[row]
    return row


def _numbered(firsts: np.ndarray) -> np.ndarray:
    """Clusters numbered in the order of their first rows."""
    return np.unique(firsts, return_inverse=True)[1].astype(np.int64)


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
