"""Ours against the answers that pytorch-metric-learning 2.9.0 gave once, without it being there.

`.peers/bin/python -m benchmarks.peers.answers tests/metric/metric_learning_answers.json` made them, in float64, on
batches without ties; `make bench` asks it anew.
"""

import json
from pathlib import Path
from typing import Any, Literal

import pytest
import torch
from torch import Tensor

from benchmarks.mining_problem import BATCH_HARD, EASY_LIST, HARD_LIST, LOSS_MEAN, LOSS_SUM, SEMI_HARD_LIST
from likewise.metric import batch_all_loss, batch_hard, semi_hard_negatives
from likewise.metric.mining import negative_shares
from tests.metric.brute import all_triplets, exact_distances
from tests.tolerance import assert_close

STORED: dict[str, Any] = json.loads(Path(__file__).with_name("metric_learning_answers.json").read_text())
Rows = set[tuple[int, ...]]


class Asked:
    """A batch, and the lists and losses that were answered."""

    def __init__(self, stored: dict[str, Any]) -> None:
        self.margin: float = stored["margin"]
        self.x = torch.tensor(stored["embeddings"], dtype=torch.float64)
        self.labels = torch.tensor(stored["labels"])
        self.answers: dict[str, list[Any]] = stored["answers"]

    def rows(self, question: str) -> Rows:
        [found] = self.answers[question]
        assert len(set(map(tuple, found))) == len(found) > 0
        return set(map(tuple, found))


@pytest.fixture(params=STORED["batches"], ids=["16 rows", "24 rows"])
def asked(request: pytest.FixtureRequest) -> Asked:
    return Asked(request.param)


def rows_of(triplets: tuple[Tensor, ...]) -> Rows:
    return set(zip(*(part.tolist() for part in triplets), strict=True))


def test_the_answers_are_of_the_version_that_is_said() -> None:
    assert STORED["by"] == "pytorch-metric-learning 2.9.0"
    assert [len(each["labels"]) for each in STORED["batches"]] == [16, 24]


def test_a_closest_semi_hard_negative_is_the_closest_of_theirs(asked: Asked) -> None:
    d, closest = exact_distances(asked.x), {}
    for anchor, positive, negative in sorted(asked.rows(SEMI_HARD_LIST), key=lambda row: -d[row[0]][row[2]]):
        closest[anchor, positive] = negative  # the closest comes last
    found = rows_of(semi_hard_negatives(asked.x, asked.labels, margin=asked.margin))
    assert found == {(*pair, negative) for pair, negative in closest.items()}


@pytest.mark.slow
def test_a_random_semi_hard_negative_is_one_of_theirs(asked: Asked) -> None:
    theirs, generator = asked.rows(SEMI_HARD_LIST), torch.Generator().manual_seed(1)
    met: Rows = set()
    for _ in range(200):
        drawn = semi_hard_negatives(
            asked.x, asked.labels, margin=asked.margin, choose="random", fallback="skip", generator=generator
        )
        met |= rows_of(drawn)
    assert met == theirs


def test_shares_are_the_lengths_of_their_lists(asked: Asked) -> None:
    lists = [asked.rows(question) for question in (HARD_LIST, SEMI_HARD_LIST, EASY_LIST)]
    found = negative_shares(asked.x, asked.labels, margin=asked.margin)
    assert [round(share * found.count, 9) for share in found[:3]] == [len(each) for each in lists]
    assert set.union(*lists) == set(all_triplets(asked.labels.tolist()))
    assert found.count == sum(map(len, lists))


def test_hardest_triplets_are_theirs(asked: Asked) -> None:
    assert rows_of(batch_hard(asked.x, asked.labels)) == asked.rows(BATCH_HARD)


@pytest.mark.parametrize(("question", "reduction"), [(LOSS_SUM, "sum"), (LOSS_MEAN, "mean")])
def test_the_loss_over_all_triplets_and_its_gradient_are_theirs(
    asked: Asked, question: str, reduction: Literal["sum", "mean"]
) -> None:
    expected, slope = (torch.tensor(part, dtype=torch.float64) for part in asked.answers[question])
    x = asked.x.clone().requires_grad_()
    loss = batch_all_loss(x, asked.labels, margin=asked.margin, reduction=reduction)
    assert_close(loss.detach(), expected[0, 0])
    [found] = torch.autograd.grad(loss, x)
    assert_close(found, slope, atol=1e-12 * slope.abs().max().item())  # entries are differences of larger ones
