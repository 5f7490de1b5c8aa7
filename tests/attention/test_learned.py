"""Learned positive features: landmarks, every form from one formula, states, gradients of their weights."""

import math

import pytest
import torch
from torch import Tensor

from likewise.attention import Exponential, Learned, LinearState, kernel_attention, linear_attention
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

        def along(x: Tensor, side: str, own: int = own) -> Tensor:
            w, b = (getattr(phi, f"{side}_{name}")[own].double() for name in ("weights", "biases"))
            return torch.einsum("btk,fk->btf", x, w) + b

        curve = torch.einsum("btk,k->bt", q[:, h].square(), phi.query_curves[own].double())
        shares = along(k[:, g], "key").softmax(-1).clamp(min=math.exp(-25))
        slope = torch.einsum("btk,k->bt", k[:, g], phi.key_slopes[own].double())
        pairs = (along(q[:, h], "query").exp() @ shares.mT).log() - curve[..., None] + slope[:, None]
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


@pytest.mark.parametrize("kv_heads", [1, G])
def test_keys_that_are_landmarks_have_their_own_similarity(kv_heads: int) -> None:
    generator = seeded(2)
    few = torch.randn(1, G, 3, K, generator=generator) * 2
    few = few if kv_heads > 1 else few[:, :1].expand(1, G, 3, K)
    k, q = few.repeat(B, 1, 5, 1), torch.randn(B, H, T, K, generator=generator)
    phi = Learned(K, num_features=3, scale=0.7, kv_heads=kv_heads).fit(q, k, generator=generator)
    expected = phi.kernel.log(q, k.repeat_interleave(H // G, dim=1))
    got = (phi.queries(q) @ phi.keys(k).repeat_interleave(H // G, dim=1).mT).log()
    assert_close(got, expected, atol=1e-2)  # a key leaves a small share to other landmarks


def test_more_landmarks_estimate_more_exactly_and_better_than_a_draw() -> None:
    q, k, _ = (torch.randn(1, heads, 400, K, generator=seeded(heads)) for heads in (H, G, G))
    target = Exponential(0.7).log(q, k.repeat_interleave(H // G, dim=1)).softmax(-1)

    def error(phi: Learned) -> float:
        """Total variation from softmax's weights, the mean over rows."""
        ours = phi.queries(q) @ phi.keys(k).repeat_interleave(H // G, dim=1).mT
        return (ours / ours.sum(-1, keepdim=True) - target).abs().sum(-1).mean().item() / 2

    errors = []
    for number in (2, 16, 128):
        phi = Learned(K, num_features=number, scale=0.7, kv_heads=G, generator=seeded(1))
        drawn = error(phi)
        errors.append(error(phi.fit(q, k, generator=seeded(1))))
        assert errors[-1] < drawn
    assert errors == sorted(errors, reverse=True)
    assert errors[-1] < 0.2, errors


@pytest.mark.usefixtures("without_shape_checks")
def test_landmarks_go_where_keys_count() -> None:
    q, k = torch.randn(1, G, 50, K, generator=seeded(0)), torch.randn(1, G, 40, K, generator=seeded(1))
    counts = torch.zeros(1, G, 40)
    counts[:, :, 10:13] = 1.0
    phi = Learned(K, num_features=3, scale=0.7, kv_heads=G).fit(q, k, counts=counts, generator=seeded(2))
    landmarks = phi.query_weights.detach() / 0.7
    distances = torch.cdist(k[0, :, 10:13], landmarks).amin(dim=-1)
    assert_close(distances, torch.zeros(G, 3), atol=1e-4)
    for wrong, message in ((counts[:, :1], "have shape"), (-counts - 1, "be at least 0")):
        with pytest.raises(ValueError, match=rf"Learned.fit: counts must {message}"):
            phi.fit(q, k, counts=wrong)


def test_the_mean_query_sees_every_key_as_it_is() -> None:
    k, mean = torch.randn(1, 1, T, K, generator=seeded(0)), torch.full((1, 1, 1, K), 3.0)
    q = mean + torch.randn(1, 1, T, K, generator=seeded(1))
    phi = Learned(K, num_features=2).fit(q, k, generator=seeded(2))
    centre = q.mean(dim=2, keepdim=True)
    assert_close((phi.queries(centre) @ phi.keys(k).mT).log(), phi.kernel.log(centre, k), atol=1e-4)


def test_constant_keys_and_queries_can_be_fitted() -> None:
    one = torch.ones(B, G, T, K)
    phi = Learned(K, num_features=F, kv_heads=G).fit(one, one, generator=seeded(0))
    assert_close(phi.queries(one) @ phi.keys(one).mT, Exponential()(one, one), atol=1e-4)


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
    assert errors[-1] < errors[0] / 4, errors


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
