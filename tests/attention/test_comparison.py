"""The comparison behind `likewise attention`."""

import math

import pytest
import torch
from torch import Tensor

from likewise.attention import Elu, Polynomial, Quadratic, compare, comparison, kernel_attention, softmax_attention
from likewise.attention.comparison import Comparison, MeasuredForm, compare_random

B, H, G, T, K, V = 2, 6, 3, 11, 5, 7


def draw(*shape: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(sum(shape)), dtype=torch.float64)


@pytest.fixture
def qkv() -> tuple[Tensor, Tensor, Tensor]:
    return draw(B, H, T, K), draw(B, G, T, K), draw(B, G, T, V)


def by_name(result: Comparison) -> dict[str, MeasuredForm]:
    return {form.name: form for form in result.forms}


@pytest.mark.parametrize("causal", [False, True])
def test_errors_are_the_relative_distances(qkv: tuple[Tensor, Tensor, Tensor], causal: bool) -> None:
    forms = by_name(compare(*qkv, features=Quadratic(K), causal=causal))
    softmax = softmax_attention(*qkv, causal=causal)
    exact = kernel_attention(*qkv, kernel=Polynomial(degree=2, constant=1.0), causal=causal)
    distance = ((exact - softmax).norm() / softmax.norm()).item()
    assert forms["kernel"].softmax_error == pytest.approx(distance, rel=1e-12)
    assert forms["linear"].softmax_error == pytest.approx(distance, rel=1e-9)
    assert forms["linear"].kernel_error == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("causal", [False, True])
def test_blocks_of_queries_change_nothing(
    qkv: tuple[Tensor, Tensor, Tensor], causal: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = by_name(compare(*qkv, features=Elu(), causal=causal))["kernel"]
    monkeypatch.setattr(comparison, "QUERY_BLOCK", 3)
    blocks = by_name(compare(*qkv, features=Elu(), causal=causal))["kernel"]
    assert blocks.softmax_error == pytest.approx(whole.softmax_error, rel=1e-12)


def test_causal_mean_is_over_what_came_before() -> None:
    q, v = torch.zeros(1, 2, 3, 1), torch.tensor([3.0, 5.0, 10.0]).reshape(1, 1, 3, 1)
    assert comparison._mean_of_values(q, v, causal=True)[0, 1].flatten().tolist() == [3.0, 4.0, 6.0]
    assert comparison._mean_of_values(q, v, causal=False)[0, 0].flatten().tolist() == [6.0, 6.0, 6.0]


def test_the_same_seed_gives_the_same_errors() -> None:
    def linear(seed: int) -> MeasuredForm:
        return by_name(compare_random("positive", length=T, heads=2, key_dim=K, width=14, seed=seed))["linear"]

    first, again, other = linear(3), linear(3), linear(4)
    assert first.kernel_error == again.kernel_error != other.kernel_error
    assert math.isfinite(first.softmax_error)


def test_progress_goes_from_0_to_1(qkv: tuple[Tensor, Tensor, Tensor]) -> None:
    seen: list[float] = []
    compare(*qkv, features=Elu(), progress=lambda done, doing: seen.append(done))
    assert (seen[0], seen[-1]) == (0.0, 1.0)
    assert seen == sorted(seen)


def test_wrong_arguments_are_named(qkv: tuple[Tensor, Tensor, Tensor]) -> None:
    with pytest.raises(ValueError, match=r"compare_random: features must be one of 'elu', .*; got 'eli'"):
        compare_random("eli")
    with pytest.raises(ValueError, match="compare_random: length must be a whole number of at least 1; got 0"):
        compare_random("elu", length=0)
    with pytest.raises(ValueError, match="compare_random: width must be a whole number of at least 2; got 1"):
        compare_random("fourier", width=1)
    empty = [x[:, :, :0] for x in qkv]
    with pytest.raises(ValueError, match=r"compare: q must have at least one position; got \(2, 6, 0, 5\)"):
        compare(*empty, features=Elu())


@pytest.mark.usefixtures("without_shape_checks")
def test_lengths_must_agree(qkv: tuple[Tensor, Tensor, Tensor]) -> None:
    q, k, v = qkv
    with pytest.raises(ValueError, match=r"compare: k must have q's length 11; got \(2, 3, 10, 5\)"):
        compare(q, k[:, :, 1:], v[:, :, 1:], features=Elu())
