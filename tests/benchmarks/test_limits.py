"""The loops by hand, from which the benchmark says what limits ours, compute the same attention; floors do the work."""

import pytest
import torch

import benchmarks.attention_limits as limits
from benchmarks.attention_problem import inputs
from likewise.attention import Elu, linear_attention
from likewise.cost import cost


@pytest.mark.parametrize("loop", limits.LOOPS, ids=lambda loop: loop.name)
def test_a_loop_by_hand_is_the_same_attention(loop: limits.Loop, monkeypatch: pytest.MonkeyPatch) -> None:
    length = 2 * loop.piece
    monkeypatch.setattr(limits, "LENGTH", length)
    q, k, v, _ = inputs(length)
    run = loop.prepare(q, k, v)
    expected = linear_attention(q, k, v, features=Elu(), causal=True)
    for _ in range(2):  # nothing is left over from the call before
        torch.testing.assert_close(run(), expected, atol=1e-5, rtol=1e-5)


# Products of a row: with a state (F x V1), with the features of a chunk (64 x F), with its values (64 x V1), and maps.
PRODUCTS = [(64, 2, 1, 1, 0), (256, 2, 1, 1, 2), (64, 7, 4, 3, 0), (256, 2, 0, 0, 2)]


@pytest.mark.parametrize(("limit", "products"), list(zip(limits.LIMITS, PRODUCTS, strict=True)))
def test_a_floor_has_the_products_of_the_formulas(limit: limits.Limit, products: tuple[int, ...]) -> None:
    width, states, features, values, maps = products
    row = states * width * 65 + features * 64 * width + values * 64 * 65 + maps * 64 * width
    calls = limits.steps(limit)
    assert cost(lambda: [call() for call in calls]).macs == 8 * limits.PIECE * row
