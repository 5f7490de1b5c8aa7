"""Statements come out as they are: true ones hold, broken maps are refuted."""

import math

import pytest
import torch
from torch import Tensor

from likewise.attention import Fourier, Positive, Quadratic
from likewise.attention.features import Scaled
from likewise.tour import identities
from likewise.tour.agreement import Check, agree, changed, residual
from likewise.tour.identities import check_identities, draw, feature_maps, measure_law

BOUND = 1e-9


def generator() -> torch.Generator:
    return torch.Generator().manual_seed(5)


class WithoutProducts(Quadratic):
    """[1, sqrt2 x, x^2]: the quadratic map as it is often misremembered."""

    def __init__(self, key_dim: int) -> None:
        super().__init__(key_dim)
        self.dim = 1 + 2 * key_dim

    def split_keys(self, x: Tensor) -> Scaled:
        return Scaled(torch.cat([torch.ones_like(x[..., :1]), math.sqrt(2) * x, x * x], dim=-1), None)


class SeesTheFuture(Positive):
    """Keys less the largest of all of them: the stabiliser that leaks."""

    def split_keys(self, x: Tensor) -> Scaled:
        value, log = super().split_keys(x)
        assert log is not None
        return Scaled(value, log - log.amax(dim=-2, keepdim=True).abs())


@pytest.fixture(scope="module")
def result() -> identities.Identities:
    before = torch.get_num_threads()
    result = check_identities()
    assert torch.get_num_threads() == before
    return result


@pytest.mark.slow
def test_every_statement_holds(result: identities.Identities) -> None:
    assert [check.statement for check in result.all_checks if not check.holds] == []
    assert result.holding == len(result.all_checks) == 9 * 5 + 12


def test_residuals_are_those_of_double_precision(result: identities.Identities) -> None:
    relative = [check.residual for check in result.all_checks if check.bound == identities.EXACT]
    assert max(relative) < 1e-11
    assert any(check.bound == 0 for check in result.checks)


def test_a_map_that_is_not_its_kernel_is_refuted() -> None:
    agreement = agree("wrong", WithoutProducts(identities.KEY_DIM), draw(generator()), bound=BOUND)
    assert not agreement.holds
    verdicts = {check.how: check.holds for check in agreement.checks}
    assert verdicts == {"plain": True, "linear": False, "chunked": False, "streaming": False, "gradients": False}


def test_a_map_that_sees_the_future_is_refuted() -> None:
    maps = {"leaky": SeesTheFuture(identities.KEY_DIM, generator=generator())}
    qkv = draw(generator())
    assert not identities.check_future(maps, qkv).holds
    assert not agree("leaky", maps["leaky"], qkv, bound=BOUND).holds


def test_a_right_map_passes_the_same_checks() -> None:
    maps, qkv = feature_maps(identities.KEY_DIM, generator()), draw(generator())
    right = {name: maps[name] for name in ("Quadratic", "Positive")}
    assert identities.check_future(right, qkv).holds
    assert all(agree(name, features, qkv, bound=BOUND).holds for name, features in right.items())


@pytest.mark.parametrize(
    ("value", "bound", "apart", "holds"),
    [
        (0.0, 0.0, False, True),
        (1e-300, 0.0, False, False),
        (0.1, 0.2, True, False),
        (0.3, 0.2, True, True),
        (math.nan, 1.0, False, False),
        (math.nan, 1.0, True, False),
        (math.inf, 1.0, False, False),
    ],
)
def test_the_verdict_is_computed(value: float, bound: float, apart: bool, holds: bool) -> None:
    assert Check("", "", value, bound, apart=apart).holds is holds


def test_nan_is_never_a_small_residual() -> None:
    nan, one = torch.tensor([1.0, torch.nan]), torch.ones(2)
    assert residual(nan, one) == residual(one, nan) == changed(nan, one) == math.inf
    assert changed(torch.tensor([1.0]), torch.tensor([1.0 + 2**-23])) == 2**-23


def test_the_right_law_gives_the_kernel_and_the_wrong_one_does_not() -> None:
    result = measure_law(frequencies=1000)
    assert [check.holds for check in result.checks] == [True, True]
    assert result.checks[1].residual > 20 * result.checks[0].residual
    assert result.exact == pytest.approx([math.exp(-(d**2) / 8) for d in result.distances])


def test_the_inverse_law_is_refuted(monkeypatch: pytest.MonkeyPatch) -> None:
    def inverse(
        key_dim: int, *, num_frequencies: int, variance: float, sampler: str, generator: torch.Generator
    ) -> Fourier:
        assert sampler == "gaussian"
        return Fourier(
            key_dim, num_frequencies=num_frequencies, variance=1 / variance, sampler="gaussian", generator=generator
        )

    monkeypatch.setattr(identities, "Fourier", inverse)
    assert [check.holds for check in measure_law(frequencies=1000).checks] == [False, False]


def test_the_standard_error_is_that_of_many_draws() -> None:
    runs = [measure_law(frequencies=50, points=3, seed=seed) for seed in range(120)]
    estimates = torch.tensor([run.right for run in runs], dtype=torch.float64)
    spread = (estimates - torch.tensor(runs[0].exact)).square().mean(0).sqrt()
    assert spread.tolist() == pytest.approx(runs[0].standard_errors, rel=0.3)
