"""The mining benchmark's own checks: a wrong triplet, loss or gradient is found before anything is timed."""

import pytest
import torch
from torch import Tensor

from benchmarks.harness.measurement import Measurement
from benchmarks.mining import PML, check, demands, our_answers, wrong_answers
from benchmarks.mining_forms import OURS, SORT, by_definition
from benchmarks.mining_problem import BATCH_ALL, BATCH_HARD, LOSS_SUM, SEMI_HARD, inputs


@pytest.fixture(scope="module")
def answers() -> tuple[dict[str, tuple[Tensor, ...]], dict[str, tuple[Tensor, ...]]]:
    x, labels = inputs(81)
    return our_answers(x.double(), labels), by_definition(x.double(), labels)


def test_ours_and_the_sort_form_are_right() -> None:
    assert check(None) == []


def test_every_kind_of_triplet_occurs(answers: tuple[dict, dict]) -> None:
    assert all(len(each) for answer in answers[1].values() for each in answer)


@pytest.mark.parametrize("name", [SEMI_HARD, BATCH_HARD])
def test_a_missing_or_wrong_triplet_is_found(name: str, answers: tuple[dict, dict]) -> None:
    ours, right = answers
    (rows,) = ours[name]
    wrong = rows.clone()
    wrong[3, 2] = 0 if wrong[3, 2] else 1
    for found in (rows[1:], wrong, rows[:, [1, 0, 2]]):
        assert wrong_answers("it", {name: (found,)}, right) == [f"it is wrong: {name}"]
    assert wrong_answers("it", {name: (rows.flip(0),)}, right) == []


@pytest.mark.parametrize("number", [0, 1], ids=["loss", "gradient"])
def test_a_wrong_loss_or_gradient_is_found(number: int, answers: tuple[dict, dict]) -> None:
    ours, right = answers
    for factor in (1 + 1e-6, float("nan")):
        found = list(ours[LOSS_SUM])
        found[number] = found[number] * factor
        assert wrong_answers("it", {LOSS_SUM: tuple(found)}, right) == [f"it is wrong: {LOSS_SUM}"]


@pytest.mark.parametrize("seconds", [0.1, 3.0])
def test_promises_are_judged(seconds: float) -> None:
    times = [
        Measurement(OURS, 1800, (seconds,) * 3, 10**8, SEMI_HARD),
        Measurement(SORT, 1800, (0.3,) * 3, 10**8, SEMI_HARD),
        Measurement(PML, 1800, (30.0,) * 3, 10**10, SEMI_HARD),
        Measurement(OURS, 4096, (seconds * 10,) * 3, 10**8, BATCH_ALL),
    ]
    verdict = seconds == 0.1
    assert [each.holds for each in demands(times)] == [verdict, verdict, True, verdict, True]


def test_the_problem_is_the_same_everywhere() -> None:
    assert all(torch.equal(one, two) for one, two in zip(inputs(81), inputs(81), strict=True))
