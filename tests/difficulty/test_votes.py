"""Votes, by hand and against counting one at a time."""

import re

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from likewise.difficulty import sweep
from likewise.difficulty.sweep import vote
from tests.difficulty import plain

rows = st.lists(st.lists(st.integers(0, 3), min_size=7, max_size=7), min_size=1, max_size=5)


@pytest.mark.slow
@settings(max_examples=100)
@given(rows, st.lists(st.integers(1, 7), min_size=1, max_size=3))
def test_votes_are_those_of_a_count(labels: list[list[int]], ks: list[int]) -> None:
    found = vote(torch.tensor(labels), ks=ks, classes=4)
    assert found.tolist() == [[plain.vote(row[:k]) for row in labels] for k in ks]


def test_votes_do_not_depend_on_how_many_are_counted_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    labels = torch.randint(4, (31, 7), generator=torch.Generator().manual_seed(0))
    whole = vote(labels, ks=(3, 7), classes=4)
    monkeypatch.setattr(sweep, "CELLS", 9)
    assert torch.equal(vote(labels, ks=(3, 7), classes=4), whole)


def test_ties_by_hand() -> None:
    assert vote(torch.tensor([[0, 1, 1, 0]]), ks=(4,), classes=2).tolist() == [[0]]  # 1 + 4 = 2 + 3: the nearest
    assert vote(torch.tensor([[0, 1, 1, 2, 0, 2]]), ks=(5,), classes=3).tolist() == [[1]]  # 2 + 3 < 1 + 5
    assert vote(torch.tensor([[3, 1, 1, 1]]), ks=(2, 4), classes=4).tolist() == [[3], [1]]


@pytest.mark.parametrize("k", [0, 5])
def test_more_votes_than_neighbours_are_refused(k: int) -> None:
    message = f"vote: ks must be from 1 to the 4 neighbours there are; got {k}."
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        vote(torch.zeros(2, 4, dtype=torch.int64), ks=[k], classes=2)
