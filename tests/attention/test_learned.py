"""Learned positive features: what they start as, every form from one formula, states, gradients of their weights."""

import math

import pytest
import torch
from torch import Tensor

from likewise.attention import Exponential, Learned, LinearState, Positive, kernel_attention, linear_attention
from tests.attention.calibration import fitted
from tests.attention.drawing import seeded
from tests.tolerance import assert_close

B, H, G, T, K, V, F = 2, 6, 3, 23, 5, 7, 11


def changed(kv_heads: int = G, scale: float | None = 0.7) -> Learned:
    """A map with weights that no draw gives."""
    phi = Learned(K, num_features=F, scale=scale, kv_heads=kv_heads, generator=seeded(1))
    with torch.no_grad():
        for parameter in phi.parameters():
            parameter.add_(torch.randn(parameter.shape, generator=seeded(parameter.numel())) / 3)
    return phi


def qkv(dtype: torch.dtype = torch.float64) -> tuple[Tensor, Tensor, Tensor]:
    shapes = (B, H, T, K), (B, G, T, K), (B, G, T, V)
    q, k, v = (torch.randn(s, generator=seeded(n), dtype=torch.float64).to(dtype) for n, s in enumerate(shapes))
    return q, k, 1 + v.abs()  # averages of positive values do not cancel


def by_formula(phi: Learned, q: Tensor, k: Tensor, v: Tensor, *, causal: bool, within: int | None) -> Tensor:
    """The outputs pair by pair, head by head, from the formula of the class."""
    out = torch.zeros(B, H, T, V, dtype=torch.float64)
    for h in range(H):
        g = h // (H // G)
        own = g if phi.kv_heads > 1 else 0

        def logs(x: Tensor, side: str, own: int = own) -> Tensor:
            w, b, c = (getattr(phi, f"{side}_{name}")[own].double() for name in ("weights", "biases", "curves"))
            return torch.einsum("btk,fk->btf", x, w) + b - torch.einsum("btk,k->bt", x.square(), c)[..., None]

        pairs = (logs(q[:, h], "query")[:, :, None] + logs(k[:, g], "key")[:, None]).logsumexp(-1)
        apart = (torch.arange(T)[:, None] - torch.arange(T)).abs()
        if within is not None:
            assert isinstance(phi.kernel, Exponential)
            exact = phi.kernel.scale_for(K) * torch.einsum("btk,bsk->bts", q[:, h], k[:, g])
            pairs = torch.where(apart < within, exact, pairs)
        if causal:
            pairs = pairs.masked_fill(torch.ones(T, T).triu(1).bool(), -torch.inf)
        out[:, h] = pairs.softmax(-1) @ v[:, g]
    return out


@pytest.mark.parametrize("kv_heads", [1, G])
@pytest.mark.parametrize("within", [None, 4])
@pytest.mark.parametrize("causal", [False, True])
def test_every_form_is_the_formula(causal: bool, within: int | None, kv_heads: int) -> None:
    phi, (q, k, v) = changed(kv_heads), qkv()
    expected = by_formula(phi, q, k, v, causal=causal, within=within)
    out = linear_attention(q, k, v, features=phi, causal=causal, exact_within=within, chunk_size=4)
    assert_close(out, expected)
    narrow = [x.float() for x in (q, k, v)]
    assert_close(linear_attention(*narrow, features=phi, causal=causal, exact_within=within), expected.float())
    if causal:
        state = LinearState.empty(phi, batch=B, kv_heads=G, value_dim=V, exact_within=within)
        first, state = state.prefill(q[:, :, :9], k[:, :, :9], v[:, :, :9])
        outs = [first]
        for t in range(9, T):
            at, state = state.step(q[:, :, t : t + 1], k[:, :, t : t + 1], v[:, :, t : t + 1])
            outs.append(at)
        assert_close(torch.cat(outs, dim=2), expected)


def test_before_learning_the_map_is_a_draw_of_positive() -> None:
    ours = Learned(K, num_features=F, scale=0.7, kv_heads=G, generator=seeded(3))
    theirs = Positive(K, num_features=F, scale=0.7, kv_heads=G, generator=seeded(3))
    q, k, _ = qkv(torch.float32)
    assert_close(ours.queries(q), theirs.queries(q))
    assert_close(ours.keys(k), theirs.keys(k))
    assert ours.kernel == theirs.kernel


def test_a_fitted_map_is_taken_over() -> None:
    start = fitted(K, num_features=F, scale=0.7, kv_heads=G, generator=seeded(3))
    phi = Learned(K, num_features=F, scale=0.7, kv_heads=G, generator=seeded(4)).start_from(start)
    q, k, _ = qkv(torch.float32)
    assert_close(phi.queries(q), start.queries(q))
    assert_close(phi.keys(k), start.keys(k))
    with pytest.raises(ValueError, match=r"Learned.start_from: fitted must have key_dim, num_features and kv_heads"):
        changed(kv_heads=1).start_from(start)


@pytest.mark.parametrize("within", [None, 4])
@pytest.mark.parametrize("causal", [False, True])
def test_weights_get_the_gradients_of_the_formula(causal: bool, within: int | None) -> None:
    phi, (q, k, v) = changed().double(), qkv()
    weight = torch.randn(B, H, T, V, generator=seeded(9), dtype=torch.float64)
    parameters = list(phi.parameters())
    out = linear_attention(q, k, v, features=phi, causal=causal, exact_within=within, chunk_size=4)
    got = torch.autograd.grad((out * weight).sum(), parameters)
    expected = torch.autograd.grad((by_formula(phi, q, k, v, causal=causal, within=within) * weight).sum(), parameters)
    for ours, theirs in zip(got, expected, strict=True):
        assert_close(ours, theirs, atol=1e-11)  # 0 where a factor of a whole row cancels


def test_learning_brings_the_output_nearer_to_softmax() -> None:
    q, k, v = qkv(torch.float32)
    phi = Learned(K, num_features=F, kv_heads=G, generator=seeded(5))
    target = kernel_attention(q, k, v, kernel=Exponential(), causal=True)
    optimizer, errors = torch.optim.Adam(phi.parameters(), lr=0.05), []
    for _ in range(60):
        error = (linear_attention(q, k, v, features=phi, causal=True) - target).square().sum() / target.square().sum()
        optimizer.zero_grad()
        error.backward()
        optimizer.step()
        errors.append(error.item())
    assert errors[-1] < errors[0] / 4


def test_a_state_refuses_the_map_after_it_has_learned() -> None:
    phi, (q, k, v) = changed(), qkv()
    state = LinearState.empty(phi, batch=B, kv_heads=G, value_dim=V)
    _, state = state.prefill(q, k, v)
    before = phi.projection_id
    assert before == phi.projection_id
    with torch.no_grad():
        phi.key_biases.add_(math.log(2))
    assert phi.projection_id != before
    other = LinearState.empty(phi, batch=B, kv_heads=G, value_dim=V)
    with pytest.raises(ValueError, match="projection"):
        state.merge(other)


def test_what_is_loaded_is_what_was_saved() -> None:
    phi = changed()
    copy = Learned(K, num_features=F, scale=0.7, kv_heads=G, generator=seeded(8))
    copy.load_state_dict(phi.state_dict())
    assert copy.projection_id == phi.projection_id
