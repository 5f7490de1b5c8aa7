"""A collapse is seen from the batch alone, and training that goes on with it is stopped with the evidence."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from likewise.metric import CollapseError
from likewise.metric.collapse import CollapseGuard, collapse
from tests.metric.brute import batches
from tests.tolerance import assert_close


def unit(rows: int, width: int, *, spread: float = 1.0, seed: int = 0) -> Tensor:
    x = torch.randn(rows, width, generator=torch.Generator().manual_seed(seed))
    return torch.nn.functional.normalize(torch.ones(width) / width**0.5 * (1 - spread) + spread * x, dim=-1)


@given(batches().filter(lambda batch: len(batch[0]) > 1))
def test_the_mean_distance_is_that_of_all_pairs(batch: tuple[Tensor, Tensor]) -> None:
    x, _ = batch
    expected = (x[:, None] - x).square().sum(-1).mean()
    assert_close(torch.tensor(collapse(x).mean_distance, dtype=torch.float64), expected, atol=1e-15)


@given(st.integers(2, 12), st.integers(1, 9), st.integers(0, 99), st.sampled_from([1e-180, 1.0]))
def test_the_effective_rank_is_that_of_the_singular_values(rows: int, width: int, seed: int, size: float) -> None:
    x = torch.randn(rows, width, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    shares = torch.linalg.svdvals(x - x.mean(0)).square()
    shares = shares[shares > 1e-20] / shares.sum()
    expected = torch.exp(-(shares * shares.log()).sum())
    assert_close(torch.tensor(collapse(x * size).effective_rank, dtype=torch.float64), expected, atol=1e-9)


def test_spread_embeddings_show_no_sign() -> None:
    found = collapse(unit(200, 128), active_loss=0.2)  # at the margin, as untrained networks are
    assert not found.collapsed
    assert found.mean_distance == pytest.approx(2, abs=0.05)
    assert found.effective_rank > 50
    assert found.message.startswith("No collapse: mean squared distance 1.99, rank ")


@pytest.mark.parametrize(
    ("x", "loss", "signs"),
    [
        (unit(64, 16, spread=0.01), None, ["mean squared distance 0.00"]),
        (unit(64, 16, spread=0.06), 0.199, ["mean active loss 0.199 is stuck at the margin 0.2"]),
        (torch.outer(torch.linspace(-1, 1, 9), torch.ones(4)), None, ["effective rank 1 is below 1.05"]),
        (torch.full((3, 2), math.nan), None, ["not finite: mean squared distance nan"]),
        (unit(64, 16), math.nan, ["not finite: mean squared distance 1.9"]),
        (torch.ones(5, 3), 0.2, ["mean squared distance 0 is", "mean active loss 0.2 is", "effective rank 0 is"]),
    ],
)
def test_every_sign_is_seen(x: Tensor, loss: float | None, signs: list[str]) -> None:
    found = collapse(x, active_loss=loss)
    assert found.collapsed
    assert len(found.signs) == len(signs)
    assert all(mine.startswith(sign) for mine, sign in zip(found.signs, signs, strict=True)), found.signs


def test_the_guard_stops_at_the_end_of_its_patience_with_the_evidence() -> None:
    guard = CollapseGuard(patience=3)
    good, bad = unit(16, 8), torch.zeros(16, 8)
    for x in (bad, bad, good, bad, bad):
        guard.check(x)
    with pytest.raises(
        CollapseError, match=r"mean squared distance 0 is below 0\.1; .* for 3 batches in a row\. Train"
    ):
        guard.check(bad, active_loss=0.3)
    again = CollapseGuard(patience=3)
    again.load_state_dict({"streak": 2})
    with pytest.raises(CollapseError) as error:
        again.check(bad, active_loss=0.3)
    assert [each.active_loss for each in error.value.evidence] == [0.3]


def test_the_evidence_is_the_last_batches_in_order() -> None:
    guard = CollapseGuard(patience=2)
    for loss, x in ((0.1, torch.zeros(4, 2)), (0.2, unit(4, 4)), (0.3, torch.zeros(4, 2))):
        guard.check(x, active_loss=loss)
    assert guard.state_dict() == {"streak": 1}
    with pytest.raises(CollapseError) as error:
        guard.check(torch.zeros(4, 2), active_loss=0.4)
    assert [each.active_loss for each in error.value.evidence] == [0.3, 0.4]


def test_limits_can_be_set() -> None:
    line = torch.outer(torch.linspace(-1, 1, 9), torch.ones(4))
    assert not collapse(line, least_rank=0).collapsed
    assert collapse(unit(64, 16), least_distance=2.5).signs[0].endswith("is below 2.5")


def test_wrong_arguments_are_refused() -> None:
    with pytest.raises(ValueError, match=r"^collapse: embeddings must have at least two rows; got 1.$"):
        collapse(torch.zeros(1, 2))
    with pytest.raises(ValueError, match=r"^collapse: margin must be a positive number; got 0.$"):
        collapse(torch.zeros(2, 2), margin=0)
    with pytest.raises(ValueError, match=r"^CollapseGuard: patience must be a whole number of at least 1; got 0.$"):
        CollapseGuard(patience=0)
    with pytest.raises(ValueError, match=r"^load_state_dict: streak must be a whole number of at least 0; got None.$"):
        CollapseGuard().load_state_dict({})
