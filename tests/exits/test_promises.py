"""What is promised of a risk is kept, as often as it is promised."""

import math

import pytest
import torch
from torch import Tensor

from likewise.exits.risk import Method, RiskTest

ALPHA, DELTA, COUNT, DRAWS = 0.05, 0.1, 500, 600


def population(size: int = 100_000) -> Tensor:
    """Losses along a path of 24 thresholds, of two heads and an end that is always right: (steps, examples)."""
    generator = torch.Generator().manual_seed(11)
    scores = torch.rand(2, size, generator=generator)
    wrong = torch.rand(2, size, generator=generator) < torch.tensor([[0.30], [0.22]]) * (1 - scores) ** 0.7
    steps = []
    for threshold in torch.linspace(1, 0.2, 24):
        leaves = scores >= threshold
        steps.append(torch.where(leaves[0], wrong[0], leaves[1] & wrong[1]))
    return torch.stack(steps)


@pytest.fixture(scope="module")
def drawn() -> tuple[Tensor, Tensor]:
    """True risks, and the losses of calibration sets: (draws, steps, examples)."""
    everyone = population()
    rows = torch.randint(everyone.shape[1], (DRAWS, COUNT), generator=torch.Generator().manual_seed(5))
    return everyone.double().mean(1), everyone[:, rows].transpose(0, 1).double()


def evidence(losses: Tensor, method: Method) -> Tensor:
    """p-values of every step of every draw."""
    return torch.stack([RiskTest(ALPHA, DELTA, method).evidence(each) for each in losses])


def chosen(values: Tensor, limit: float) -> Tensor:
    """How many steps each draw walks."""
    return (values <= limit).long().cumprod(1).sum(1)


def broken(walked: Tensor, risks: Tensor) -> float:
    """In how many draws the true risk of the last step is above what is allowed."""
    truth = torch.cat([torch.zeros(1, dtype=torch.float64), risks])[walked]
    return (truth > ALPHA).double().mean().item()


SLACK = 3 * math.sqrt(DELTA * (1 - DELTA) / DRAWS)  # three standard deviations of a share of so many draws


def test_the_simulation_is_one_in_which_losses_do_not_grow_with_every_example(drawn: tuple[Tensor, Tensor]) -> None:
    risks, _ = drawn
    falls = (population(2000).int().diff(dim=0) < 0).any(0).double().mean()
    assert 0.01 < falls < 0.5
    assert risks[0] < ALPHA / 5
    assert risks[-1] > 2 * ALPHA


def test_a_threshold_that_looks_right_is_wrong_half_of_the_time(drawn: tuple[Tensor, Tensor]) -> None:
    risks, losses = drawn
    assert broken((losses.mean(2) <= ALPHA).long().cumprod(1).sum(1), risks) > 0.3


def test_learn_then_test_breaks_its_promise_no_more_often_than_delta(drawn: tuple[Tensor, Tensor]) -> None:
    risks, losses = drawn
    walked = chosen(evidence(losses, "learn then test"), DELTA)
    assert 0 < broken(walked, risks) <= DELTA + SLACK
    assert walked.min() > 3  # and it does walk


def test_betting_breaks_its_promise_no_more_often_than_delta(drawn: tuple[Tensor, Tensor]) -> None:
    risks, losses = drawn
    walked = chosen(evidence(losses, "betting"), DELTA)
    assert 0 < broken(walked, risks) <= DELTA + SLACK
    assert walked.min() > 3


def test_conformal_control_keeps_the_mean(drawn: tuple[Tensor, Tensor]) -> None:
    risks, losses = drawn
    proof = RiskTest(ALPHA, DELTA, "conformal")
    walked = torch.tensor([proof.walk(proof.evidence(each)) for each in losses])
    truth = torch.cat([torch.zeros(1, dtype=torch.float64), risks])[walked]
    assert truth.mean() <= ALPHA
    assert truth.mean() > 0.6 * ALPHA  # it is not merely afraid
    assert broken(walked, risks) > DELTA  # and it does not promise each


def test_conformal_control_counts_each_examples_worst_loss_so_far() -> None:
    losses = torch.tensor([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]], dtype=torch.float64)
    evidence = RiskTest(0.5, 0.1, "conformal").evidence(losses)
    assert evidence.tolist() == pytest.approx([(1 + 1) / 3, (2 + 1) / 3, (2 + 1) / 3])
