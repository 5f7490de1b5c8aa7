"""An example has one use."""

from itertools import islice

import numpy
import pytest
import torch

from likewise.data import Preparation
from likewise.data.examples import Stored, examples
from likewise.exits import split_examples
from likewise.exits.splits import Ledger, Split


def numbered(count: int, *, start: int = 0, role: str = "train") -> Split:
    values = torch.arange(start, start + count)
    return Split(values[:, None, None, None].float(), values % 3, role)  # ty: ignore[invalid-argument-type]


def test_splits_share_nothing_and_lose_nothing() -> None:
    whole = numbered(101)
    parts = split_examples(whole.inputs, whole.labels, selection=0.1, calibration=0.3, test=0.2, seed=4)
    assert [part.role for part in parts] == ["train", "selection", "calibration", "test"]
    assert [len(part) for part in parts] == [40, 10, 30, 21]
    assert sorted(torch.cat([part.inputs.flatten() for part in parts]).tolist()) == list(range(101))
    assert all(torch.equal(part.labels, part.inputs.flatten().long() % 3) for part in parts)
    again, other = (split_examples(whole.inputs, whole.labels, seed=seed).test.ids for seed in (0, 1))
    assert torch.equal(again, split_examples(whole.inputs, whole.labels).test.ids)
    assert not torch.equal(again, other)


def test_equal_inputs_stay_together() -> None:
    values = torch.arange(300) % 30
    parts = split_examples(values[:, None].float(), values)
    held = [set(part.labels.tolist()) for part in parts]
    assert sum(map(len, held)) == 30
    assert all(len(part) == 10 * len(some) for part, some in zip(parts, held, strict=True))


def test_an_example_is_known_again_wherever_it_comes_from() -> None:
    split = numbered(9)
    assert torch.equal(split.take(torch.tensor([4, 2])).ids, split.ids[[4, 2]])
    assert len(split.ids.unique()) == 9
    assert split.without(numbered(5, start=7, role="test")).inputs.flatten().tolist() == list(range(7))


def test_data_for_another_use_is_refused() -> None:
    with pytest.raises(ValueError, match="fit: data must be for train; got a split for test"):
        Ledger().take("fit", numbered(3, role="test"), roles=("train",))


def test_an_example_that_was_used_for_something_else_is_refused() -> None:
    ledger, ids = Ledger(), ("train", "calibration")
    ledger.take("fit", numbered(5), roles=ids)
    ledger.take("fit", numbered(9), roles=ids)  # for the same use again
    with pytest.raises(ValueError, match="choose: data must be new examples for calibration; got 2 of 4 that were"):
        ledger.take("choose", numbered(4, start=7, role="calibration"), roles=ids)
    ledger.take("choose", numbered(4, start=7, role="calibration").without(numbered(9)), roles=ids)
    ledger.forget("calibration")
    assert ledger.used.keys() == {"train"}


def test_training_batches_go_on_for_ever_and_from_anywhere() -> None:
    feed = numbered(10).feed(size=4, seed=2)
    batches = [batch.rows.tolist() for batch in islice(feed.since(0), 5)]
    assert sorted(row for rows in batches for row in rows) == sorted([*range(10)] * 2)
    assert next(feed.since(3)).rows.tolist() == batches[3]
    assert next(feed.since(3)).step == 3


def test_a_split_is_read_from_examples() -> None:
    pixels = numpy.arange(3 * 4, dtype=numpy.uint8).reshape(3, 2, 2, 1)
    some = examples("dots", Stored(pixels), ["a/1", "b/1", "b/2"], ["a", "b", "b"])
    split = Split.read(some, Preparation((2, 2), 1, 0.0, 1 / 255), role="test")
    assert split.labels.tolist() == [0, 1, 1]
    assert split.inputs.flatten().round().tolist() == list(range(12))
    assert repr(split) == "Split(3 examples, test)"


@pytest.mark.usefixtures("without_shape_checks")
def test_wrong_arguments_are_refused() -> None:
    with pytest.raises(ValueError, match=r"Split: role must be one of 'train', 'selection', .*; got 'x'"):
        numbered(2, role="x")
    with pytest.raises(ValueError, match="Split: labels must be one for each of 3 inputs; got 2"):
        Split(torch.zeros(3, 1), torch.zeros(2, dtype=torch.int64), "test")
    with pytest.raises(ValueError, match="split_examples: shares must be 0 or more and at most 1 together"):
        split_examples(torch.zeros(3, 1), torch.zeros(3, dtype=torch.int64), selection=0.9)
