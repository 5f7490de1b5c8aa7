"""Protocols deal people and pairs as they say, and rates are those of pairs counted one by one."""

import math
from itertools import combinations
from typing import Any

import numpy
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from likewise.data import Examples
from likewise.data.examples import Stored, examples
from likewise.data.lfw import Pair, Protocol
from likewise.data.pair_lists import PairList
from likewise.evaluation import judge
from likewise.evaluation.judging import supported_far
from likewise.evaluation.protocols import Everyone, Listed, lfw_pairs, own_pairs
from likewise.metric import verification
from likewise.stats import mean_and_error
from tests.evaluation.faces import Looking, drawn_people, plain_vectors

LABELS = st.lists(st.integers(0, 7), min_size=4, max_size=30).map(torch.tensor)


@given(LABELS, st.integers(1, 5), st.integers(0, 99))
def test_people_are_dealt_whole_and_each_split_has_both_kinds(labels: torch.Tensor, splits: int, seed: int) -> None:
    _, sizes = labels.unique(return_counts=True)
    if len(sizes) < 2 or sizes.max() < 2:
        with pytest.raises(ValueError, match="labels must have two people, one with two images"):
            Everyone(splits).deal(labels)
        return
    split = Everyone(splits, seed).deal(labels)
    assert torch.equal(split, Everyone(splits, seed).deal(labels))
    assert split.unique().tolist() == list(range(min(splits, int((sizes > 1).sum()), len(sizes) // 2)))
    for name in labels.unique():
        assert len(split[labels == name].unique()) == 1
    for name in split.unique():
        _, counts = labels[split == name].unique(return_counts=True)
        assert len(counts) >= 2
        assert counts.max() >= 2


@pytest.mark.slow
@given(LABELS, st.integers(1, 4))
def test_drawn_pairs_are_half_and_half_inside_splits(labels: torch.Tensor, splits: int) -> None:
    _, sizes = labels.unique(return_counts=True)
    if len(sizes) < 2 or sizes.max() < 2:
        return
    protocol = Everyone(splits)
    drawn, split = protocol.draw(labels), protocol.deal(labels)
    assert isinstance(drawn.folds, torch.Tensor)
    assert torch.equal(labels[drawn.rows[:, 0]] == labels[drawn.rows[:, 1]], drawn.same)
    assert torch.equal(split[drawn.rows], torch.stack([drawn.folds] * 2, 1))
    assert len(drawn.rows.unique(dim=0)) == len(drawn.rows)
    assert (drawn.rows[:, 0] < drawn.rows[:, 1]).all()
    for fold in drawn.folds.unique():
        same = drawn.same[drawn.folds == fold]
        assert 2 * int(same.sum()) == len(same) > 0


def test_val_of_everyone_is_the_mean_over_splits_of_all_pairs() -> None:
    examples, protocol = drawn_people(12, 4, noise=60.0), Everyone(3)
    vectors = plain_vectors(examples, Looking()).double()
    found = judge(vectors, examples.labels, protocol=protocol, far=0.05)
    split, shares = protocol.deal(examples.labels), []
    for name in range(3):
        rows = (split == name).nonzero()[:, 0].tolist()
        pairs = [(i, j) for i, j in combinations(rows, 2)]
        d = torch.tensor([(vectors[i] - vectors[j]).square().sum().item() for i, j in pairs])
        same = torch.tensor([bool(examples.labels[i] == examples.labels[j]) for i, j in pairs])
        shares.append(verification(d, same, far=0.05, folds=1))
    assert (found.val, found.val_error) == pytest.approx(mean_and_error([each.val for each in shares]))
    assert found.far_found == pytest.approx(sum(each.far_found for each in shares) / 3)
    assert 0.2 < found.val < 1
    assert (found.same, found.different) == (12 * 6, 48 * 47 // 2 - 72)
    d = (vectors[:, None] - vectors).square().sum(-1)[examples.labels[:, None] != examples.labels]
    below, above = found.limit * (1 - 1e-12), found.limit * 1.02  # d is rounded otherwise
    assert (d <= below).double().mean() <= 0.05 < (d <= above).double().mean()


def test_a_list_is_judged_fold_by_fold() -> None:
    examples = drawn_people(10, 4, noise=60.0)
    vectors = plain_vectors(examples, Looking())
    drawn = Everyone(5).draw(examples.labels)
    d = (vectors[drawn.rows[:, 0]] - vectors[drawn.rows[:, 1]]).square().sum(-1)
    listed = verification(d, drawn.same, far=0.2, folds=drawn.folds)
    found = judge(vectors, examples.labels, protocol=drawn, far=0.2)
    assert (found.accuracy, found.val, found.folds) == (listed.accuracy, listed.val, listed.by_fold)
    for fold in range(5):
        one = Listed("", drawn.rows, drawn.same, drawn.folds, fold)
        alone, mine = judge(vectors, examples.labels, protocol=one, far=0.2), one.judged
        rest = verification(d[~mine], drawn.same[~mine], far=0.2, folds=1)
        right = (d[mine] <= rest.accuracy_threshold) == drawn.same[mine]
        assert alone.accuracy == pytest.approx(right.double().mean().item())
        assert (alone.threshold, alone.accuracy_threshold) == (rest.threshold, rest.accuracy_threshold)
        assert alone.limit == rest.limit
        assert alone.val == pytest.approx((d[mine & drawn.same] <= rest.limit).double().mean().item())
        assert (alone.same, alone.different) == (int((mine & drawn.same).sum()), int((mine & ~drawn.same).sum()))
        assert math.isnan(alone.val_error)


def test_others_are_the_second_of_a_pair() -> None:
    x, y = torch.tensor([[0.0], [5.0], [9.0]]), torch.tensor([[1.0], [7.0], [1.5]])
    pairs = Listed("", torch.tensor([[0, 1], [0, 2], [1, 2], [2, 1]]), torch.tensor([True, False, False, True]), 1)
    found = judge(x, torch.tensor([0, 0, 1]), y, protocol=pairs, far=0.5)
    # 49 and 4 same, 2.25 and 12.25 different: one may be accepted.
    assert found.val == 0.5
    assert (found.limit, found.threshold) == (pytest.approx(12.25), pytest.approx((4 + 12.25) / 2))


def lists() -> Protocol:
    one = (Pair("a/0", "a/1", True), Pair("a/0", "b/2", False))
    two = (Pair("c/3", "c/4", True), Pair("c/3", "d/5", False))
    return Protocol((("a", "b"), ("c", "d")), (one, two), ("a",), ("c", "d"), one, two)


def named_people() -> Examples:
    items = ["a/0", "a/1", "b/2", "c/3", "c/4", "d/5"]
    return examples("x", Stored(numpy.zeros((6, 2, 2, 1), numpy.uint8)), items, [item[0] for item in items])


@pytest.mark.usefixtures("without_shape_checks")
def test_lfw_gives_its_folds_and_its_test_pairs() -> None:
    examples = named_people()
    found = lfw_pairs(examples, lists())
    assert (found.title, found.rows.tolist()) == ("LFW View 2, 2 folds", [[0, 1], [0, 2], [3, 4], [3, 5]])
    assert isinstance(found.folds, torch.Tensor)
    assert found.folds.tolist() == [1, 1, 2, 2]
    assert found.calibrating.all()
    alone = lfw_pairs(examples, lists(), fold=2)
    assert alone.judged.tolist() == [False, False, True, True]
    assert alone.calibrating.tolist() == [True, True, False, False]
    first = lfw_pairs(examples, lists(), view=1)
    assert (first.rows.tolist(), first.folds) == ([[3, 4], [3, 5]], None)
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"fold": 3}, "fold must be from 1 to 2; got 3"),
        ({"fold": 0}, "fold must be a whole number of at least 1; got 0"),
        ({"view": 1, "fold": 1}, "fold must be of View 2; got 1"),
        ({"view": 3}, "view must be 1 or 2; got 3"),
    ]
    for options, message in wrong:
        with pytest.raises(ValueError, match=f"^lfw_pairs: {message}"):
            lfw_pairs(examples, lists(), **options)


@pytest.mark.usefixtures("without_shape_checks")
def test_own_pairs_bring_folds_or_are_dealt() -> None:
    examples, pairs = named_people(), lists().pairs[0] + lists().pairs[1]
    assert own_pairs(PairList(examples, pairs, None), folds=2).folds == 2
    found = own_pairs(PairList(examples, pairs, (7, 7, 9, 9)))
    assert isinstance(found.folds, torch.Tensor)
    assert found.folds.tolist() == [7, 7, 9, 9]
    with pytest.raises(ValueError, match=r"^own_pairs: folds must be those of the list; got 2\."):
        own_pairs(PairList(examples, pairs, (7, 7, 9, 9)), folds=2)
    with pytest.raises(ValueError, match=r"^Listed: fold must be one of the listed folds; got 3\."):
        Listed("", found.rows, found.same, found.folds, 3)
    with pytest.raises(ValueError, match=r"^Everyone: splits must be a whole number of at least 1; got 0\."):
        Everyone(0)
    with pytest.raises(ValueError, match=r"^Everyone: seed must be a whole number of at least 0; got -1\."):
        Everyone(5, -1)


def test_a_far_is_chosen_that_the_pairs_can_show() -> None:
    labels = torch.arange(200) // 2
    assert supported_far(labels, protocol=Everyone(1)) == 1e-3  # 19,800 pairs
    assert supported_far(labels, protocol=Everyone(5)) == 1e-2  # 760 in each split
    rows, same = torch.zeros(60, 2, dtype=torch.int64), torch.arange(60) < 30
    folds = torch.arange(60) % 3
    assert supported_far(labels, protocol=Listed("", rows, same, folds)) == 0.1  # 30 pairs
    with pytest.raises(ValueError, match=r"^supported_far: labels must give at least 30 different pairs .*; got 20\."):
        supported_far(labels, protocol=Listed("", rows, same, folds, 0))
