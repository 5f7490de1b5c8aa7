"""A survey, drawn identities and templates of bytes agree with what is counted pair by pair."""

import math
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from likewise.metric import all_pairs, bootstrap_threshold, clopper_pearson, quantised, restored, threshold_for
from likewise.metric.surveying import survey
from likewise.metric.templates import template_distances
from tests.metric.brute import batches


@settings(max_examples=40)
@given(batches(), st.integers(0, 9), st.integers(0, 9), st.integers(1, 9), st.integers(1, 40))
def test_a_survey_is_all_pairs_one_by_one(
    batch: tuple[Tensor, Tensor], farthest: int, nearest: int, bins: int, elements: int
) -> None:
    x, labels = batch
    if len(x) < 2:
        return
    found = survey(x, labels, farthest=farthest, nearest=nearest, bins=bins, elements=elements)
    pairs = {(i, j): (x[i] - x[j]).square().sum().item() for j in range(len(x)) for i in range(j)}
    same = {pair: d for pair, d in pairs.items() if labels[pair[0]] == labels[pair[1]]}
    other = {pair: d for pair, d in pairs.items() if pair not in same}
    for counts, kind in ((found.same, same), (found.different, other)):
        edges = found.edges.tolist()
        sure = [d for d in kind.values() if min(abs(d - edge) for edge in edges) > 1e-9]
        low = [0.0, *edges[:-1]]
        least = [sum(a < d <= b or (d == a == 0) for d in sure) for a, b in zip(low, edges, strict=True)]
        assert all(n >= m for n, m in zip(counts.tolist(), least, strict=True))
        assert int(counts.sum()) == len(kind)
    for kept, kind, count, sign in (
        (found.farthest_same, same, farthest, -1),
        (found.nearest_different, other, nearest, 1),
    ):
        assert kept.distances.tolist() == pytest.approx(sorted(kind.values(), key=lambda d: sign * d)[:count], abs=1e-9)
        named = [tuple(row) for row in kept.rows.tolist()]
        assert len(set(named)) == len(named) == min(count, len(kind))
        assert [kind[pair] for pair in named] == pytest.approx(kept.distances.tolist(), abs=1e-9)


def test_a_distance_on_an_edge_is_below_it() -> None:
    x = torch.tensor([[0.0], [1.0], [-1.0]])  # distances 1, 1 and 4
    found = survey(x, torch.tensor([0, 1, 2]), bins=4)
    assert found.different.tolist() == [2, 0, 0, 1]
    assert found.roc.far.tolist() == pytest.approx([2 / 3, 2 / 3, 2 / 3, 1])


def test_the_curve_of_a_survey_is_that_of_all_pairs() -> None:
    generator = torch.Generator().manual_seed(0)
    x = torch.nn.functional.normalize(torch.randn(97, 5, generator=generator, dtype=torch.float64))
    labels = torch.arange(97) // 4
    roc = survey(x, labels).roc
    for far in (0.01, 0.1, 0.5):
        exact = all_pairs(x, labels, far=far)
        place = int((roc.threshold <= exact.limit).sum()) - 1
        assert roc.far[place] <= far < roc.far[place + 1]
        assert roc.val[place] <= exact.val <= roc.val[place + 1]


@settings(max_examples=30)
@given(st.integers(0, 10**6), st.sampled_from([0.1, 0.3, 0.5]), st.integers(4, 9))
def test_drawn_people_bring_their_pairs(seed: int, far: float, people: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    faces = torch.randint(1, 4, (people,), generator=generator)
    who = torch.repeat_interleave(torch.arange(people), faces)
    pairs = [(i, j) for j in range(len(who)) for i in range(j) if who[i] != who[j]]
    d = torch.rand(len(pairs), generator=generator, dtype=torch.float64)
    d = (d * 8).round() / 8 if seed % 2 else d
    whose = who[torch.tensor(pairs)]
    again = torch.Generator().manual_seed(seed)
    drawn = torch.randint(people, (people,), generator=again).tolist()
    listed = [
        value
        for value, (one, two) in zip(d.tolist(), whose.tolist(), strict=True)
        for _ in range(drawn.count(one) * drawn.count(two))
    ]
    if not listed:
        with pytest.raises(ValueError, match="draws must be enough that one of them has pairs; got 1"):
            bootstrap_threshold(d, whose, far=far, draws=1, seed=seed)
        return
    found = bootstrap_threshold(d, whose, far=far, draws=1, seed=seed)
    assert found.far_low == found.far_high == pytest.approx(sum(v <= found.threshold for v in listed) / len(listed))
    assert sum(v <= found.low for v in listed) <= far * len(listed) * (1 + 1e-9)
    higher = min((v for v in d.tolist() if v > found.low), default=math.inf)
    assert sum(v <= higher for v in listed) > far * len(listed)
    tail = d.sort().indices
    if faces.sum() > people:  # the same from all pairs by their number
        assert bootstrap_threshold(d[tail], whose[tail], faces, far=far, draws=1, seed=seed) == found


def test_one_threshold_whoever_counts() -> None:
    d = torch.rand(500, generator=torch.Generator().manual_seed(1))
    whose = torch.stack([torch.arange(500) % 20, 20 + torch.arange(500) % 19], 1)
    with pytest.warns(UserWarning, match="fewer than"):
        plain = threshold_for(d, far=0.02)
    found = bootstrap_threshold(d, whose, far=0.02)
    assert (found.threshold, found.far) == (plain.threshold, plain.far)
    assert found.low <= found.threshold <= found.high
    assert found.far_low <= found.far <= found.far_high


@pytest.mark.slow
def test_intervals_hold_the_truth_where_people_differ() -> None:
    """Everybody has a place of his own, so that pairs of one person go together: D = a_i + a_j + noise."""
    generator = torch.Generator().manual_seed(0)
    people, rounds, threshold = 24, 60, -2.2
    i, j = torch.triu_indices(people, people, 1)
    truth = torch.distributions.Normal(0.0, math.sqrt(2.01)).cdf(torch.tensor(threshold)).item()
    held = {"people": 0, "pairs": 0}
    for seed in range(rounds):
        places = torch.randn(people, generator=generator, dtype=torch.float64)
        d = places[i] + places[j] + 0.1 * torch.randn(len(i), generator=generator, dtype=torch.float64)
        share = (d <= threshold).double().mean().item()
        if not 0 < share < 1:
            continue
        # A FAR whose threshold accepts just these.
        found = bootstrap_threshold(d, torch.stack([i, j], 1), far=share, draws=200, seed=seed)
        low, high = clopper_pearson(accepted=int((d <= threshold).sum()), total=len(d))
        held["people"] += found.far_low <= truth <= found.far_high
        held["pairs"] += low <= truth <= high
    assert held["people"] > 0.85 * rounds
    assert held["pairs"] < 0.7 * rounds


@given(st.integers(0, 10**6), st.integers(1, 130))
def test_bytes_are_within_half_a_step(seed: int, width: int) -> None:
    x = torch.randn(5, width, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    most = x.abs().amax(1, keepdim=True)
    q = quantised(x)
    assert q.dtype == torch.int8
    assert (q.int().abs().amax(1) == 127).all()
    assert ((q * most / 127 - x).abs() <= most / 254 * (1 + 1e-12)).all()
    assert torch.equal(quantised(3.7 * x), q)


@given(st.integers(0, 10**6), st.integers(1, 130))
def test_distances_of_bytes_are_those_of_whole_numbers(seed: int, width: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    q, p = torch.randint(-127, 128, (2, 4, width), generator=generator, dtype=torch.int8)
    q[:, 0], p[:, 0] = 127, -127
    found = template_distances(q, p)
    for row in range(4):
        one, two = q[row].tolist(), p[row].tolist()
        product = sum(a * b for a, b in zip(one, two, strict=True))
        squares = sum(a * a for a in one) * sum(b * b for b in two)
        assert found[row].item() == pytest.approx(2 - 2 * product / math.sqrt(squares), rel=1e-14, abs=1e-15)
    assert template_distances(q, q).tolist() == [0.0] * 4
    plain = (restored(q).double() - restored(p).double()).square().sum(1)
    torch.testing.assert_close(plain, found, rtol=1e-5, atol=1e-6)


def test_the_largest_product_of_128_bytes_is_exact() -> None:
    q = torch.full((1, 128), 127, dtype=torch.int8)
    assert (q.int() * q.int()).sum().item() == 128 * 127**2 == 2_064_512
    assert template_distances(q, -q).item() == 4.0


@pytest.mark.usefixtures("without_shape_checks")
def test_wrong_arguments_are_refused() -> None:
    d, whose = torch.arange(6.0), torch.tensor([[0, 1], [0, 2], [0, 3], [1, 2], [1, 3], [2, 3]])
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"far": 1.0}, "far must be between 0 and 1; got 1.0."),
        ({"far": 0.5, "confidence": 0}, "confidence must be between 0 and 1; got 0."),
        ({"far": 0.5, "draws": 0}, "draws must be a whole number of at least 1; got 0."),
        ({"far": 0.5, "seed": -1}, "seed must be a whole number of at least 0; got -1."),
    ]
    for options, message in wrong:
        with pytest.raises(ValueError) as error:  # noqa: PT011 -- the whole message is compared below
            bootstrap_threshold(d, whose, **options)
        assert str(error.value) == f"bootstrap_threshold: {message}"
    with pytest.raises(ValueError, match=r"identities must have two entries for each of 6 pairs; got \(5, 2\)"):
        bootstrap_threshold(d, whose[:5], far=0.5)
    with pytest.raises(ValueError, match=r"identities must differ in every pair; got a pair of one person"):
        bootstrap_threshold(d, whose * 0, far=0.5)
    with pytest.raises(ValueError, match=r"impostors must hold the smallest 4 distances; got 2"):
        bootstrap_threshold(d[:2], whose[:2], torch.tensor([1, 1, 1, 1]), far=0.5)
    with pytest.raises(ValueError, match=r"^survey: embeddings must have at least two rows; got 1"):
        survey(torch.zeros(1, 2), torch.tensor([0]))
    with pytest.raises(ValueError, match=r"^survey: bins must be a whole number of at least 1; got 0"):
        survey(torch.zeros(2, 2), torch.tensor([0, 1]), bins=0)
    with pytest.raises(ValueError, match=r"^quantised: embeddings must have finite rows that are not 0; got 1 that"):
        quantised(torch.tensor([[0.0, 0.0], [1.0, 0.0]]))
    with pytest.raises(ValueError, match=r"^template_distances: second must have the shape of first, \(1, 2\); got"):
        template_distances(torch.ones(1, 2, dtype=torch.int8), torch.ones(1, 3, dtype=torch.int8))
