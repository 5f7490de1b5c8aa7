"""Rates are shares of pairs counted one by one, and thresholds come from pairs that they are not judged on."""

import math
import warnings
from dataclasses import replace
from itertools import product
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from likewise.metric import FewImpostorsWarning, all_pairs, clopper_pearson, threshold_for, verification
from likewise.metric.rates import tightened
from likewise.stats import mean_and_error
from tests.metric.brute import batches

FARS = st.sampled_from([0.01, 0.1, 0.25, 1 / 3, 0.5, 0.9])


@st.composite
def pair_lists(draw: st.DrawFn) -> tuple[Tensor, Tensor]:
    """Distances on a lattice, so that they tie, or anywhere; at least two pairs of each kind."""
    count = draw(st.integers(0, 30))
    same = torch.tensor([True, False, True, False, *draw(st.lists(st.booleans(), min_size=count, max_size=count))])
    d = torch.rand(len(same), generator=torch.Generator().manual_seed(draw(st.integers(0, 10**6))))
    return (d * 4).round() / 4 if draw(st.booleans()) else d, same


def shares(d: list[float], same: list[bool], threshold: float) -> tuple[float, float]:
    """VAL and FAR by their definitions."""
    accepted = [x <= threshold for x in d]
    val = [ok for ok, kind in zip(accepted, same, strict=True) if kind]
    far = [ok for ok, kind in zip(accepted, same, strict=True) if not kind]
    return sum(val) / len(val), sum(far) / len(far)


def accuracy_at(d: list[float], same: list[bool], threshold: float) -> float:
    return sum((x <= threshold) == kind for x, kind in zip(d, same, strict=True)) / len(d)


@given(pair_lists(), FARS)
def test_one_fold_is_judged_on_its_own_pairs(pairs: tuple[Tensor, Tensor], far: float) -> None:
    d, same = pairs[0].tolist(), pairs[1].tolist()
    found = verification(*pairs, far=far, folds=1)
    assert (found.val, found.far_found) == shares(d, same, found.limit)
    assert shares(d, same, found.threshold)[0] == found.val
    assert found.far_found <= far
    # Nothing larger will do: the next distance up would break the bound.
    higher = min(x for x in d if x > found.limit)
    assert shares(d, same, higher)[1] > far
    assert found.accuracy == pytest.approx(accuracy_at(d, same, found.accuracy_threshold))
    assert found.accuracy == pytest.approx(max(accuracy_at(d, same, x) for x in [-1.0, *d]))
    assert math.isnan(found.val_error)


@pytest.mark.slow
@given(pair_lists(), FARS, st.integers(2, 4))
def test_each_fold_is_judged_by_the_others(pairs: tuple[Tensor, Tensor], far: float, folds: int) -> None:
    distances, same = pairs
    turns = {True: 0, False: 0}
    fold = []
    for kind in same.tolist():
        fold.append(turns[kind] % folds)
        turns[kind] += 1
    if min(turns.values()) < folds:
        with pytest.raises(ValueError, match="verification: folds must be at most the"):
            verification(distances, same, far=far, folds=folds)
        return
    found = verification(distances, same, far=far, folds=folds)
    val, fars, accuracy = [], [], []
    for name in range(folds):
        mine = torch.tensor([each == name for each in fold])
        rest = verification(distances[~mine], same[~mine], far=far, folds=1)
        v, f = shares(distances[mine].tolist(), same[mine].tolist(), rest.limit)
        val, fars = [*val, v], [*fars, f]
        accuracy.append(accuracy_at(distances[mine].tolist(), same[mine].tolist(), rest.accuracy_threshold))
    assert (found.val, found.val_error) == pytest.approx(mean_and_error(val))
    assert (found.accuracy, found.accuracy_error) == pytest.approx(mean_and_error(accuracy))
    assert found.far_found == pytest.approx(sum(fars) / folds)
    listed = verification(distances, same, far=far, folds=torch.tensor(fold))
    assert replace(listed, roc=found.roc) == found


@pytest.mark.slow
@given(pair_lists())
def test_the_curve_is_the_shares_at_every_distance(pairs: tuple[Tensor, Tensor]) -> None:
    distances, same = pairs
    roc = verification(distances, same, far=0.5).roc
    assert roc.threshold[1:].tolist() == sorted(set(distances.tolist()))
    points = [shares(distances.tolist(), same.tolist(), x) for x in roc.threshold.tolist()]
    assert [(v, f) for v, f in zip(roc.val.tolist(), roc.far.tolist(), strict=True)] == points
    assert points[0] == (0, 0)
    wins = [(x < y) + (x == y) / 2 for x, y in product(distances[same].tolist(), distances[~same].tolist())]
    assert roc.area == pytest.approx(sum(wins) / len(wins))


def test_ten_folds_as_in_lfw_unless_told_otherwise() -> None:
    generator = torch.Generator().manual_seed(0)
    same = torch.arange(6000) % 600 < 300
    d = torch.where(same, 0.8, 1.6) + 0.3 * torch.randn(6000, generator=generator)
    lfw = verification(d, same, folds=torch.arange(6000) // 600)
    assert lfw.folds == verification(d, same).folds == 10
    assert lfw.accuracy == pytest.approx(0.909, abs=0.01)  # Phi(0.4 / 0.3)
    assert 0 < lfw.accuracy_error < 0.01
    assert lfw.accuracy_threshold == pytest.approx(1.2, abs=0.1)
    assert verification(d[298:303], same[298:303]).folds == 2


def test_a_threshold_holds_in_the_dtype_of_the_distances() -> None:
    d = torch.tensor([0.1, 0.5, 0.3, 0.7])
    found = verification(d, torch.tensor([True, True, False, False]), far=0.1, folds=1)
    assert (d <= found.threshold).tolist() == [True, False, False, False]


@given(pair_lists(), FARS)
def test_a_threshold_accepts_the_fewest_different_pairs_that_its_val_allows(
    pairs: tuple[Tensor, Tensor], far: float
) -> None:
    d, same = pairs[0].tolist(), pairs[1].tolist()
    found = verification(*pairs, far=far, folds=1)
    # Every threshold there is, by its shares: the lowest FAR of those with the highest VAL within the bound.
    kept = [(val, -wrong) for val, wrong in (shares(d, same, x) for x in [-1.0, *d]) if wrong <= far]
    val, wrong = shares(d, same, found.threshold)
    assert (val, -wrong) == max(kept) or val == 0


def test_pairs_that_can_be_told_apart_are_not_confused_for_the_sake_of_a_far() -> None:
    same = torch.arange(4000) < 2000
    d = torch.where(same, torch.linspace(0, 0.4, 4000), torch.linspace(-0.3, 1.0, 4000))  # up to 0.2, and from 0.35
    found = verification(d, same, far=0.02, folds=1)
    assert int((d[~same] <= found.limit).sum()) == 40
    assert ((d <= found.threshold) == same).all()
    assert found.threshold == found.accuracy_threshold
    low, high = d[same].max().item(), d[~same].min().item()
    assert found.threshold == pytest.approx((low + high) / 2)


def test_of_equally_accurate_thresholds_the_widest_gap_is_taken() -> None:
    d = torch.tensor([0.1, 0.2, 0.25, 0.3, 0.9])
    same = torch.tensor([True, False, True, True, False])
    # Right: 3 of 5 below 0.2, 4 of 5 between 0.3 and 0.9.
    assert verification(d, same, far=0.5, folds=1).accuracy_threshold == pytest.approx(0.6)
    # Now 0.15 and 0.6 are equally good; the lowest is not the safest.
    d, same = d[[0, 1, 3, 4]], same[[0, 1, 3, 4]]
    assert verification(d, same, far=0.5, folds=1).accuracy_threshold == pytest.approx(0.6)


def test_mean_and_error_are_those_of_the_statistics() -> None:
    values = [0.9, 0.92, 0.95]
    mean, error = mean_and_error(values)
    x = torch.tensor(values, dtype=torch.float64)
    assert (mean, error) == pytest.approx((x.mean().item(), x.std().item() / 3**0.5))


@settings(max_examples=30)
@given(batches(), FARS, st.integers(1, 40), st.booleans())
def test_all_pairs_are_the_listed_pairs(batch: tuple[Tensor, Tensor], far: float, elements: int, mixed: bool) -> None:
    x, labels = batch
    others = x.flip(1) * 1.5 if mixed else None
    second = x if others is None else others
    rows = [(i, j) for i in range(len(x)) for j in range(len(x)) if (i != j if mixed else i < j)]
    d = torch.tensor([(x[i] - second[j]).square().sum().item() for i, j in rows], dtype=torch.float64)
    same = torch.tensor([bool(labels[i] == labels[j]) for i, j in rows], dtype=torch.bool)
    if not 0 < int(same.sum()) < len(same):
        with pytest.raises(ValueError, match="all_pairs: labels must give pairs of both kinds; got"):
            all_pairs(x, labels, others, far=far)
        return
    found = all_pairs(x, labels, others, far=far, elements=elements)
    listed = verification(d, same, far=far, folds=1)
    assert (found.same, found.different) == (int(same.sum()), int((~same).sum()))
    assert found.limit == pytest.approx(listed.limit, abs=1e-12)
    # Distances of equal pairs are rounded differently here and there, which matters at a tie.
    unsure = ((d - listed.limit).abs() < 1e-12) & same
    assert abs(found.val - listed.val) <= int(unsure.sum()) / found.same + 1e-12
    assert found.roc.val[-1] == found.val
    assert found.roc.far[-1] <= far
    assert (found.roc.val.diff() >= 0).all()
    assert (found.roc.far.diff() >= 0).all()


def test_all_pairs_of_a_larger_set_in_small_blocks() -> None:
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(300, 8, generator=generator, dtype=torch.float64)
    labels = torch.arange(300) // 5
    i, j = torch.triu_indices(300, 300, 1)
    d, same = (x[i] - x[j]).square().sum(-1), labels[i] == labels[j]
    for far in (1e-4, 1e-2, 0.3):
        listed = verification(d, same, far=far, folds=1)
        found = all_pairs(x, labels, far=far, elements=2000)
        assert found.val == listed.val
        assert found.threshold == pytest.approx(listed.threshold, abs=1e-12)


@pytest.mark.slow
def test_intervals_hold_the_truth_as_often_as_they_say() -> None:
    # By the binomial's own chances, not by drawing.
    n, p = 50, 0.07
    chance = [math.comb(n, k) * p**k * (1 - p) ** (n - k) for k in range(n + 1)]
    spans = [clopper_pearson(accepted=k, total=n, confidence=0.9) for k in range(n + 1)]
    assert sum(c for c, (low, high) in zip(chance, spans, strict=True) if low <= p <= high) >= 0.9


@pytest.mark.slow
@given(st.integers(0, 10**6), st.sampled_from([0.05, 0.1, 0.5]), st.integers(600, 700))
def test_a_threshold_accepts_at_most_the_share(seed: int, far: float, count: int) -> None:
    d = (torch.rand(count, generator=torch.Generator().manual_seed(seed)) * 50).round() / 50
    found = threshold_for(d, far=far)
    assert found.accepted == int((d <= found.threshold).sum()) <= far * count
    assert found.far == found.accepted / count
    assert found.low <= found.far <= found.high
    assert (d <= d[d > found.threshold].min()).sum() > far * count


def test_few_impostors_are_warned_of_and_fewer_refused() -> None:
    d = torch.arange(30_000.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert threshold_for(d, far=1e-3).accepted == 30
    message = r"^threshold_for: 29,999 impostor distances are fewer than 30 / far, 30,000; see low and high\.$"
    with pytest.warns(FewImpostorsWarning, match=message):
        threshold_for(d[:-1], far=1e-3)
    with pytest.warns(FewImpostorsWarning):
        assert threshold_for(d[:3000], far=1e-3).accepted == 3
    message = r"^threshold_for: impostors must be at least 3 / far, 3000; got 2999\. With 2999 a FAR down to 0\.001 can"
    with pytest.raises(ValueError, match=message):
        threshold_for(d[:2999], far=1e-3)


@given(st.floats(1e-9, 0.5), st.integers(1, 10**9))
def test_a_tightened_far_gives_the_wanted_false_matches(fpir: float, gallery: int) -> None:
    far = tightened(fpir=fpir, gallery=gallery)
    assert -math.expm1(gallery * math.log1p(-far)) == pytest.approx(fpir, rel=1e-9)
    assert far <= fpir * (1 + 1e-12)


@pytest.mark.usefixtures("without_shape_checks")
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"far": 0.0}, "far must be between 0 and 1; got 0.0."),
        ({"same": torch.ones(4)}, "same must be true or false for each pair; got torch.float32."),
        ({"same": torch.ones(3).bool()}, "same must have one entry for each of 4; got 3."),
        ({"same": torch.ones(4).bool()}, "same must have pairs of both kinds; got 4 same."),
        ({"distances": torch.tensor([0.0, math.nan, 1, 2])}, "distances must be finite; got 1 that are not."),
        ({"distances": torch.arange(4)}, "distances must be floating-point numbers; got torch.int64."),
        ({"folds": 0}, "folds must be a whole number of at least 1; got 0."),
        ({"folds": 3}, "folds must be at most the 2 pairs of the rarer kind; got 3."),
        ({"folds": torch.zeros(3).long()}, "folds must have one entry for each of 4; got 3."),
        (
            {"folds": torch.tensor([0, 0, 1, 1])},
            "folds must each hold pairs of both kinds; got none in fold 0 or its rest.",
        ),
    ],
)
def test_wrong_arguments_are_refused(options: dict, message: str) -> None:
    tensors: dict[str, Any] = {"distances": torch.arange(4.0), "same": torch.tensor([True, True, False, False])}
    with pytest.raises(ValueError) as error:  # noqa: PT011 -- the whole message is compared below
        verification(**{**tensors, **options})
    assert str(error.value) == f"verification: {message}"


@pytest.mark.usefixtures("without_shape_checks")
def test_wrong_arguments_of_the_others_are_refused() -> None:
    x, labels = torch.zeros(3, 1), torch.tensor([0, 0, 1])
    with pytest.raises(ValueError, match=r"^all_pairs: far must be between 0 and 1; got 1.$"):
        all_pairs(x, labels, far=1)
    with pytest.raises(
        ValueError, match=r"^all_pairs: others must have the shape of embeddings, \(3, 1\); got \(2, 1\)"
    ):
        all_pairs(x, labels, x[:2])
    with pytest.raises(ValueError, match=r"^threshold_for: far must be between 0 and 1; got 2.$"):
        threshold_for(torch.zeros(3), far=2)
    with pytest.raises(ValueError, match=r"^threshold_for: confidence must be between 0 and 1; got 1.$"):
        threshold_for(torch.zeros(3), far=0.5, confidence=1)
    with pytest.raises(ValueError, match=r"^tightened: fpir must be between 0 and 1; got 0.$"):
        tightened(fpir=0, gallery=1)
    with pytest.raises(ValueError, match=r"^tightened: gallery must be a whole number of at least 1; got 0.$"):
        tightened(fpir=0.1, gallery=0)
    with pytest.raises(ValueError, match=r"^clopper_pearson: accepted must be at most total, 1; got 2.$"):
        clopper_pearson(accepted=2, total=1)
