"""What is promised of a risk is kept, as often as it is promised."""

import math
from itertools import pairwise

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from likewise.exits.bounds import betting, hoeffding_bentkus, least_examples, upper_bound
from likewise.exits.risk import Proof

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


def chosen(evidence: Tensor, limit: float) -> Tensor:
    """How many steps each draw walks."""
    return (evidence <= limit).long().cumprod(1).sum(1)


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
    walked = chosen(hoeffding_bentkus(losses, risk=ALPHA), DELTA)
    assert 0 < broken(walked, risks) <= DELTA + SLACK
    assert walked.min() > 3  # and it does walk


def test_betting_breaks_its_promise_no_more_often_than_delta(drawn: tuple[Tensor, Tensor]) -> None:
    risks, losses = drawn
    walked = chosen(betting(losses, risk=ALPHA, delta=DELTA), DELTA)
    assert 0 < broken(walked, risks) <= DELTA + SLACK
    assert walked.min() > 3


def test_conformal_control_keeps_the_mean(drawn: tuple[Tensor, Tensor]) -> None:
    risks, losses = drawn
    proof = Proof(ALPHA, DELTA, "conformal")
    walked = torch.tensor([proof.walk(proof.evidence(each)) for each in losses])
    truth = torch.cat([torch.zeros(1, dtype=torch.float64), risks])[walked]
    assert truth.mean() <= ALPHA
    assert truth.mean() > 0.6 * ALPHA  # it is not merely afraid
    assert broken(walked, risks) > DELTA  # and it does not promise each


@given(st.floats(0.005, 0.5), st.floats(0.005, 0.5))
def test_fewer_examples_than_the_least_prove_nothing(risk: float, delta: float) -> None:
    enough = least_examples(risk=risk, delta=delta)
    without_loss = [torch.zeros(count, dtype=torch.float64) for count in (enough, enough - 1)]
    assert hoeffding_bentkus(without_loss[0], risk=risk) <= delta * (1 + 1e-9)
    if enough > 1:
        assert hoeffding_bentkus(without_loss[1], risk=risk) > delta * (1 - 1e-9)
        assert betting(without_loss[1], risk=risk, delta=delta) > delta * (1 - 1e-9)


@given(st.integers(1, 60), st.integers(0, 60), st.floats(0.02, 0.98))
def test_hoeffding_bentkus_is_its_formula(count: int, errors: int, risk: float) -> None:
    errors = min(errors, count)
    losses = torch.cat([torch.ones(errors), torch.zeros(count - errors)]).double()
    seen = min(errors / count, risk)
    divergence = (seen * math.log(seen / risk) if seen else 0) + (1 - seen) * math.log((1 - seen) / (1 - risk))
    tail = sum(math.comb(count, k) * risk**k * (1 - risk) ** (count - k) for k in range(errors + 1))
    assert hoeffding_bentkus(losses, risk=risk).item() == pytest.approx(
        min(math.exp(-count * divergence), math.e * tail, 1), rel=1e-9
    )


@given(st.lists(st.floats(0, 1), min_size=1, max_size=30), st.floats(0.01, 0.99), st.floats(0.01, 0.5))
def test_betting_is_its_formula(values: list[float], risk: float, delta: float) -> None:
    count, capital, most, losses = len(values), 1.0, 0.0, []
    squares, variance = 0.0, 0.25
    for loss in values:
        stake = min(1, math.sqrt(2 * math.log(1 / delta) / (count * variance)))
        capital *= 1 - stake * (loss - risk)
        most = max(most, capital)
        losses.append(loss)
        squares += (loss - (0.5 + sum(losses)) / (1 + len(losses))) ** 2
        variance = (0.25 + squares) / (1 + len(losses))
    found = betting(torch.tensor(values, dtype=torch.float64), risk=risk, delta=delta).item()
    assert found == pytest.approx(min(1, 1 / most) if most else 1, rel=1e-9)


@given(st.lists(st.sampled_from([0.0, 0.5, 1.0]), min_size=2, max_size=50), st.sampled_from([0.05, 0.2]))
def test_the_bound_is_where_betting_begins_to_win(values: list[float], delta: float) -> None:
    losses = torch.tensor(values, dtype=torch.float64)
    bound = upper_bound(losses, delta=delta)
    assert losses.mean() <= bound <= 1
    if bound < 1:
        assert betting(losses, risk=bound + 1e-9, delta=delta) <= delta
        assert betting(losses, risk=bound - 1e-9, delta=delta) >= delta


def test_more_losses_never_make_a_smaller_p() -> None:
    rows = torch.stack([torch.cat([torch.ones(k), torch.zeros(100 - k)]) for k in range(100)]).double()
    for p in (hoeffding_bentkus(rows, risk=0.3), betting(rows, risk=0.3, delta=0.1)):
        assert all(before <= after for before, after in pairwise(p.tolist()))
        assert p[-1] == 1


def test_bounds_of_nothing_are_refused() -> None:
    with pytest.raises(ValueError, match="upper_bound: losses must not be empty; got 0"):
        upper_bound(torch.zeros(0), delta=0.1)


def test_conformal_control_counts_each_examples_worst_loss_so_far() -> None:
    losses = torch.tensor([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]], dtype=torch.float64)
    evidence = Proof(0.5, 0.1, "conformal").evidence(losses)
    assert evidence.tolist() == pytest.approx([(1 + 1) / 3, (2 + 1) / 3, (2 + 1) / 3])
