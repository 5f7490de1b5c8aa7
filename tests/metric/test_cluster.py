"""Clusters are those of average linkage cut at the threshold, and scores are those of their definitions."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from likewise.metric.clusters import Clusters, cluster, cluster_scores
from likewise.similarity import squared_distances

labels_of_rows = st.integers(1, 15).flatmap(
    lambda n: st.tuples(*[st.lists(st.integers(0, 4), min_size=n, max_size=n)] * 2)
)


Pairs = list[tuple[int, int]]


def merged_by_hand(
    d: list[list[float]], threshold: float, same: Pairs | None = None, different: Pairs | None = None
) -> set[frozenset[int]]:
    """Merge the closest two that may be merged until none is close enough."""
    groups = [frozenset([row]) for row in range(len(d))]
    for pair in same or []:
        joined = [group for group in groups if group & set(pair)]
        groups = [group for group in groups if group not in joined] + [frozenset().union(*joined)]

    def mean(one: frozenset[int], two: frozenset[int]) -> float:
        apart = any({i, j} in map(set, different or []) for i in one for j in two)
        return math.inf if apart else sum(d[i][j] for i in one for j in two) / (len(one) * len(two))

    while len(groups) > 1:
        near, one, two = min((mean(a, b), i, j) for i, a in enumerate(groups) for j, b in enumerate(groups[:i]))
        if near > threshold:
            break
        groups = [group for place, group in enumerate(groups) if place not in (one, two)] + [groups[one] | groups[two]]
    return set(groups)


def grouped(found: Tensor) -> set[frozenset[int]]:
    return {frozenset((found == number).nonzero().flatten().tolist()) for number in found.unique()}


@given(st.integers(0, 25), st.integers(0, 10**6), st.floats(0, 8))
def test_clusters_are_those_of_merging_the_closest(rows: int, seed: int, threshold: float) -> None:
    x = torch.randn(rows, 2, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    d = squared_distances(x, x)
    found = cluster(d, threshold=threshold)
    assert grouped(found) == merged_by_hand(d.tolist(), threshold)
    firsts = [int((found == number).nonzero()[0]) for number in range(len(found.unique()))]
    assert firsts == sorted(firsts)


def points(rows: int, seed: int) -> Tensor:
    return torch.randn(rows, 2, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def corrections_of(rows: int, seed: int, count: int) -> tuple[Pairs, Pairs]:
    """Pairs that some truth, unknown to the clusters, puts together or apart: no contradiction among them."""
    generator = torch.Generator().manual_seed(seed)
    truth = torch.randint(0, 4, (rows,), generator=generator).tolist()
    pairs = [(a, b) for a, b in torch.randint(0, rows, (count, 2), generator=generator).tolist() if a != b]
    return [pair for pair in pairs if truth[pair[0]] == truth[pair[1]]], [
        pair for pair in pairs if truth[pair[0]] != truth[pair[1]]
    ]


@given(st.integers(1, 16), st.integers(0, 10**6), st.floats(0, 8), st.integers(0, 12))
def test_corrected_clusters_are_those_of_merging_by_hand(rows: int, seed: int, threshold: float, count: int) -> None:
    x = points(rows, seed)
    d, (same, different) = squared_distances(x, x), corrections_of(rows, seed, count)
    found = cluster(d, threshold=threshold, same=same, different=different)
    assert grouped(found) == merged_by_hand(d.tolist(), threshold, same, different)
    assert all(found[a] == found[b] for a, b in same)
    assert all(found[a] != found[b] for a, b in different)


@given(st.integers(1, 20), st.integers(0, 10**6), st.floats(0, 2), st.integers(0, 12), st.sampled_from([0.0, 1e6]))
def test_clusters_of_rows_that_arrive_are_those_of_all_at_once(
    rows: int, seed: int, threshold: float, count: int, offset: float
) -> None:
    """Rows in pieces, with the corrections in between as soon as their rows are there."""
    x = points(rows, seed) + offset
    same, different = corrections_of(rows, seed, count)
    clusters, size = Clusters(threshold=threshold), 1 + seed % 7
    for start in range(0, rows, size):
        before = len(clusters)
        clusters.add(x[start : start + size])
        for pairs, correct in ((same, clusters.same), (different, clusters.different)):
            for pair in pairs:
                if before <= max(pair) < len(clusters):
                    correct(*pair)
    found = cluster(squared_distances(x, x), threshold=threshold, same=same, different=different)
    assert clusters.labels.tolist() == found.tolist()
    assert clusters.exact


def test_a_component_that_is_too_large_waits_until_it_is_settled() -> None:
    x = 0.3 * points(60, seed=3)
    d = squared_distances(x, x)
    clusters = Clusters(threshold=0.1, largest=20)
    for row in x:
        clusters.add(row[None])
    assert not clusters.exact
    assert not torch.equal(clusters.labels, cluster(d, threshold=0.1))
    clusters.different(0, 1)  # a person's word counts at once, in a large component too
    assert clusters.labels[0] != clusters.labels[1]
    clusters.settle()
    assert clusters.exact
    assert torch.equal(clusters.labels, cluster(d, threshold=0.1, different=[(0, 1)]))


def test_corrections_that_contradict_each_other_are_refused_and_change_nothing() -> None:
    clusters = Clusters(threshold=0.5)
    clusters.add(torch.tensor([[0.0], [1.0], [2.0], [3.0]]))
    clusters.same(0, 1)
    clusters.same(2, 3)
    clusters.different(1, 2)
    with pytest.raises(ValueError, match=r"^Clusters\.same: rows must be the same only .* \(1, 2\) different\.$"):
        clusters.same(0, 3)
    with pytest.raises(ValueError, match=r"^Clusters\.different: rows must be different only .* got 2 and 3\.$"):
        clusters.different(2, 3)
    with pytest.raises(ValueError, match=r"^Clusters\.same: row must be below 4; got 4\.$"):
        clusters.same(0, 4)
    with pytest.raises(ValueError, match=r"^Clusters\.add: vectors must be rows of 1; got \(1, 2\)\.$"):
        clusters.add(torch.zeros(1, 2))
    with pytest.raises(ValueError, match=r"^Clusters\.add: vectors must be finite; got some that are not\.$"):
        clusters.add(torch.tensor([[math.nan]]))
    assert clusters.labels.tolist() == [0, 0, 1, 1]
    assert repr(clusters) == "Clusters(4 rows in 2 clusters)"


@given(st.integers(1, 25), st.integers(0, 10**6), st.integers(0, 9))
def test_ties_end_and_nothing_far_stays_apart_that_could_join(rows: int, seed: int, threshold: int) -> None:
    x = torch.randint(0, 3, (rows, 2), generator=torch.Generator().manual_seed(seed)).double()
    d = squared_distances(x, x)
    groups = [sorted(group) for group in grouped(cluster(d, threshold=threshold))]
    between = [d[one][:, two].mean() for place, one in enumerate(groups) for two in groups[:place]]
    assert all(mean > threshold - 1e-9 for mean in between)


@pytest.mark.parametrize("threshold", [0.3, 0.9, 1.2, 5.0])
def test_clusters_are_those_of_scikit_learn_and_scipy(threshold: float) -> None:
    agglomerative = pytest.importorskip("sklearn.cluster").AgglomerativeClustering
    hierarchy = pytest.importorskip("scipy.cluster.hierarchy")
    from scipy.spatial.distance import squareform

    generator = torch.Generator().manual_seed(0)
    centres = torch.nn.functional.normalize(torch.randn(40, 16, generator=generator), dim=-1)
    x = torch.nn.functional.normalize(centres.repeat(8, 1) + 0.2 * torch.randn(320, 16, generator=generator), dim=-1)
    d = squared_distances(x.double(), x.double()).fill_diagonal_(0)
    d = (d + d.T) / 2
    found = grouped(cluster(d, threshold=threshold))
    theirs = agglomerative(n_clusters=None, metric="precomputed", linkage="average", distance_threshold=threshold)
    assert found == grouped(torch.from_numpy(theirs.fit_predict(d.numpy())))
    tree = hierarchy.linkage(squareform(d.numpy()), "average")
    assert found == grouped(torch.from_numpy(hierarchy.fcluster(tree, threshold, "distance")))
    assert found == grouped(cluster(d.float(), threshold=threshold))


def test_a_distance_at_the_threshold_joins() -> None:
    d = torch.tensor([[0.0, 1.0, 3.0], [1.0, 0.0, 2.0], [3.0, 2.0, 0.0]])
    assert cluster(d, threshold=1.0).tolist() == [0, 0, 1]
    assert cluster(d, threshold=2.5).tolist() == [0, 0, 0]
    assert cluster(d, threshold=float(np.nextafter(np.float32(2.5), np.float32(0)))).tolist() == [0, 0, 1]
    assert cluster(d[:0, :0], threshold=1.0).tolist() == []


def test_the_distances_are_left_as_they_were() -> None:
    d = torch.rand(7, 7, generator=torch.Generator().manual_seed(0))
    d = (d + d.T).requires_grad_()
    before = d.detach().clone()
    cluster(d, threshold=1.0)
    assert torch.equal(d.detach(), before)


@given(labels_of_rows)
def test_scores_are_those_of_their_definitions(labels: tuple[tuple[int, ...], tuple[int, ...]]) -> None:
    found, truth = labels
    rows = range(len(found))
    pairs = [(i, j) for i in rows for j in rows if i < j]
    joined = [(i, j) for i, j in pairs if found[i] == found[j]]
    kin = [(i, j) for i, j in pairs if truth[i] == truth[j]]
    both = set(joined) & set(kin)
    cubed = []
    for key in (found, truth):
        shares = []
        for i in rows:
            mine = [j for j in rows if key[j] == key[i]]
            shares.append(sum(found[j] == found[i] and truth[j] == truth[i] for j in mine) / len(mine))
        cubed.append(sum(shares) / len(shares))
    scores = cluster_scores(torch.tensor(found), torch.tensor(truth))
    precision, recall = len(both) / len(joined) if joined else 1, len(both) / len(kin) if kin else 1
    assert (scores.precision, scores.recall) == (precision, recall)
    assert (scores.bcubed_precision, scores.bcubed_recall) == pytest.approx(tuple(cubed))
    assert (scores.clusters, scores.identities) == (len(set(found)), len(set(truth)))
    for f, p, r in ((scores.f, precision, recall), (scores.bcubed_f, *cubed)):
        assert f == pytest.approx(2 * p * r / (p + r) if p + r else 0)


@pytest.mark.usefixtures("without_shape_checks")
def test_wrong_arguments_are_refused() -> None:
    with pytest.raises(ValueError, match=r"^cluster: distances must be square; got \(2, 3\)\.$"):
        cluster(torch.zeros(2, 3), threshold=1.0)
    with pytest.raises(ValueError, match=r"^cluster: threshold must be a finite number of at least 0; got nan\.$"):
        cluster(torch.zeros(2, 2), threshold=float("nan"))
    with pytest.raises(ValueError, match=r"^cluster: distances must be finite; got some that are not\.$"):
        cluster(torch.full((2, 2), float("inf")), threshold=1.0)
    with pytest.raises(ValueError, match=r"^cluster: distances must be symmetric; got another row 0\.$"):
        cluster(torch.tensor([[0.0, 1.0], [2.0, 0.0]]), threshold=1.0)
    with pytest.raises(ValueError, match=r"^cluster_scores: truth must have one entry for each of 2; got 3\.$"):
        cluster_scores(torch.zeros(2).long(), torch.zeros(3).long())
    with pytest.raises(ValueError, match=r"^cluster_scores: found must have at least one row; got 0\.$"):
        cluster_scores(torch.zeros(0).long(), torch.zeros(0).long())
