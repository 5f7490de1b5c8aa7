"""All comparisons are of the same pairs, and a gallery that keeps its old threshold is told what it will see."""

import itertools
import warnings

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from likewise.metric import FewImpostorsWarning, compare_versions, verification
from likewise.metric.versions import Match, dealt, distances, draw_pairs
from tests.tolerance import assert_close

pytestmark = pytest.mark.filterwarnings("ignore::likewise.metric.FewImpostorsWarning")
counts = st.lists(st.integers(1, 13), min_size=2, max_size=7)


def labels_of(sizes: list[int]) -> Tensor:
    return torch.cat([torch.full((size,), 3 * name) for name, size in enumerate(sizes)]).flip(0)


def normal(rows: int, width: int, seed: int) -> Tensor:
    return torch.randn(rows, width, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


@given(counts.filter(lambda sizes: max(sizes) > 1), st.integers(1, 5), st.integers(1, 9), st.integers(0, 3))
def test_pairs_are_what_they_are_said_to_be(sizes: list[int], splits: int, most: int, seed: int) -> None:
    labels = labels_of(sizes)
    try:
        pairs = draw_pairs(labels, splits=splits, most=most, seed=seed)
    except ValueError as error:  # no split has both kinds
        assert "labels must give pairs of both kinds" in str(error)  # noqa: PT017
        return
    assert torch.equal(labels[pairs.first] == labels[pairs.second], pairs.same)
    assert (pairs.first != pairs.second).all()
    once = {frozenset(pair) for pair in zip(pairs.first.tolist(), pairs.second.tolist(), strict=True)}
    assert len(once) == len(pairs.same)
    for split in pairs.split.unique():
        mine = pairs.same[pairs.split == split]
        assert mine.sum() * 2 == len(mine)
        assert mine.sum() <= most
    rows = [set(torch.cat(pairs[:2])[(pairs.split == split).repeat(2)].tolist()) for split in pairs.split.unique()]
    assert all(not a & b for a, b in itertools.combinations(rows, 2))
    again = draw_pairs(labels, splits=splits, most=most, seed=seed)
    assert all(map(torch.equal, pairs, again))


def test_one_split_has_every_same_pair_and_as_many_others() -> None:
    labels = labels_of([2, 3, 5])
    pairs = draw_pairs(labels, splits=1)
    assert int(pairs.same.sum()) == 1 + 3 + 10
    turned = draw_pairs(labels_of([7, 11, 13]), splits=1)
    assert 0.3 < (turned.first < turned.second).double().mean() < 0.7


@given(counts, counts, st.integers(0, 3))
def test_pairs_of_two_sets_take_one_row_of_each(mine: list[int], theirs: list[int], seed: int) -> None:
    labels, others = labels_of(mine), labels_of(theirs)
    pairs = draw_pairs(labels, others, splits=1, seed=seed)
    assert torch.equal(labels[pairs.first] == others[pairs.second], pairs.same)
    common = sum(a * b for a, b in zip(mine, theirs, strict=False))
    assert int(pairs.same.sum()) == min(common, len(labels) * len(others) - common)


@given(counts, st.integers(1, 5))
def test_people_with_few_images_stay_together(sizes: list[int], splits: int) -> None:
    numbers = torch.cat([torch.full((size,), name) for name, size in enumerate(sizes)])
    found = dealt(numbers, splits=splits, generator=torch.Generator().manual_seed(1))
    for name, size in enumerate(sizes):
        parts = found[numbers == name].unique(return_counts=True)[1]
        assert len(parts) == max(1, min(splits, size // 2))
        assert parts.min() >= min(2, size)
        assert parts.max() - parts.min() <= 1
        assert int(found[numbers == name].min()) >= 0
    if sizes[0] < 4:
        assert found[numbers == 0].tolist() == [0] * sizes[0]


def test_each_comparison_is_verification_of_its_own_distances() -> None:
    labels, new, old, control = labels_of([5, 7, 11]), normal(23, 3, 1), normal(23, 3, 2), normal(23, 3, 3)
    found = compare_versions(new, old, labels, control, far=0.1, splits=2, seed=4)
    pairs = draw_pairs(labels, splits=2, seed=4)
    assert found.pairs == int(pairs.same.sum())
    threshold = 0.0
    sides = {"old": (old, old), "new": (new, new), "mixed": (new, old), "control": (control, control)}
    for name, (a, b) in {**sides, "control_mixed": (control, old)}.items():
        d = torch.stack([(a[i] - b[j]).square().sum() for i, j in zip(pairs.first, pairs.second, strict=True)])
        assert_close(distances(a, b, pairs), d)
        expected = verification(distances(a, b, pairs), pairs.same, far=0.1, folds=pairs.split)
        match: Match = getattr(found, name)
        assert (match.val, match.rates.accuracy) == (expected.val, expected.accuracy)
        threshold = expected.limit if name == "old" else threshold
        assert match.val_kept == pytest.approx((d[pairs.same] <= threshold).double().mean().item())
        assert match.far_kept == pytest.approx((d[~pairs.same] <= threshold).double().mean().item())
    assert found.price is not None
    assert found.control is not None
    assert found.price == found.control.val - found.new.val


def classes(noise: float, seed: int, labels: Tensor, turn: Tensor | None = None) -> Tensor:
    centres = 4 * torch.eye(7, dtype=torch.float64)[labels // 3]
    return (centres + noise * normal(len(labels), 7, seed)) @ (
        torch.eye(7, dtype=torch.float64) if turn is None else turn
    )


def test_a_better_version_in_the_same_space_is_ordered_and_one_in_another_is_at_chance() -> None:
    labels = labels_of([40] * 7)
    old, new = classes(1.6, 1, labels), classes(0.8, 2, labels)
    turn, _ = torch.linalg.qr(normal(7, 7, 5))
    found = compare_versions(new, old, labels, classes(0.8, 2, labels, turn), far=0.02)
    assert found.ordered
    assert found.new.val > found.mixed.val + 0.05 > found.old.val + 0.1
    assert found.price == pytest.approx(0.0, abs=1e-9)  # turned as a whole, the control's own distances are the same
    assert found.control_mixed is not None
    assert found.control_mixed.val < 0.1 < found.mixed.val
    assert not compare_versions(old, new, labels, far=0.02).ordered
    assert compare_versions(old, new, labels, far=0.02).price is None


def test_the_same_version_twice_compares_alike() -> None:
    labels, old = labels_of([9, 9, 9]), normal(27, 5, 1)
    found = compare_versions(old.clone(), old, labels, far=0.3)
    assert found.new.val == found.mixed.val == found.old.val
    assert found.mixed.far_kept == found.old.far_kept <= 0.3


def test_stored_vectors_of_other_images_are_compared_by_name() -> None:
    labels, old_labels = labels_of([8, 9, 10]), labels_of([12, 7, 8])
    new, old = normal(27, 5, 1).float(), normal(27, 5, 2)
    found = compare_versions(new, old, labels, old_labels=old_labels, far=0.3, seed=3)
    pairs = draw_pairs(labels, old_labels, seed=3)
    expected = verification(distances(new, old, pairs), pairs.same, far=0.3, folds=pairs.split)
    assert found.mixed.val == expected.val
    assert found.pairs == int(pairs.same.sum())
    alone = draw_pairs(old_labels, seed=3)
    expected = verification(distances(old, old, alone), alone.same, far=0.3, folds=alone.split)
    assert found.old.val == expected.val
    own = draw_pairs(labels, seed=3)
    rows = [found.new.pairs, found.mixed.pairs, found.old.pairs]
    assert rows == [int(each.same.sum()) for each in (own, pairs, alone)]
    assert len(set(rows)) == 3


@pytest.mark.parametrize("of_same_images", [True, False])
def test_a_far_that_the_pairs_cannot_show_is_refused(of_same_images: bool) -> None:
    labels, new = labels_of([4, 4, 4]), normal(12, 5, 1)  # 6 same pairs of each, and as many different ones
    old_labels = None if of_same_images else labels
    with pytest.raises(
        ValueError, match=r"^compare_versions: far must be at least 3 / 18 different pairs; got 0\.16\."
    ):
        compare_versions(new, new, labels, old_labels=old_labels, far=0.16, splits=1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(FewImpostorsWarning, match=r"^compare_versions: 18 different pairs are fewer than 30 / far"):
            compare_versions(new, new, labels, old_labels=old_labels, far=0.17, splits=1)
        labels = torch.arange(40) // 10  # 180 of each
        compare_versions(normal(40, 5, 1), normal(40, 5, 2), labels, far=0.17, splits=1)


@pytest.mark.usefixtures("without_shape_checks")
def test_wrong_arguments_are_refused() -> None:
    labels, new = labels_of([3, 4]), normal(7, 5, 1)
    with pytest.raises(ValueError, match="compare_versions: old must have the width of new, 5; got 3"):
        compare_versions(new, normal(7, 3, 1), labels)
    with pytest.raises(ValueError, match="compare_versions: old_labels must be given when old has other rows than new"):
        compare_versions(new, normal(6, 5, 1), labels)
    with pytest.raises(
        ValueError, match=r"compare_versions: control must have the shape of new, \(7, 5\); got \(6, 5\)"
    ):
        compare_versions(new, new, labels, normal(6, 5, 1))
    with pytest.raises(ValueError, match="compare_versions: most must be a whole number of at least 1; got 0"):
        compare_versions(new, new, labels, most=0)
    with pytest.raises(ValueError, match="draw_pairs: splits must be a whole number of at least 1; got 0"):
        compare_versions(new, new, labels, splits=0)
    with pytest.raises(ValueError, match="draw_pairs: labels must give pairs of both kinds in one split; got none"):
        compare_versions(new, new, torch.arange(7))
