"""Extreme logits and low precision: finite, and right against float64 brute force.

Brute force gets the same rounded inputs, so only our own rounding is measured. In float32 a logarithm of size 300, as
q, k ~ 6 N(0, I) give at K = 64, is rounded by 1.5e-5, and a weight by the same share of itself. An output is a mean
of values with such weights: its error is a few times that share of the largest value, not of the entry itself. Hence
1e-4 of the largest entry, `assert_same_beside_the_largest`.
"""

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import mpmath
import pytest
import torch
from torch import Tensor

from likewise.attention import (
    DenominatorWarning,
    Elu,
    Exponential,
    FeatureMap,
    Gaussian,
    Hyperbolic,
    LinearState,
    Positive,
    Quadratic,
    Relu,
    SoftmaxFourier,
    kernel_attention,
    linear_attention,
    softmax_attention,
)
from tests.attention import brute
from tests.attention.drawing import (
    Inputs,
    Sizes,
    assert_same_beside_the_largest,
    draw,
    seeded,
    torch_form,
    wild_rows,
    with_gradients,
)
from tests.tolerance import assert_close

DIRECTIONS = pytest.mark.parametrize("causal", [False, True], ids=["bidirectional", "causal"])
WIDTHS = pytest.mark.parametrize("K", [16, 64])
POSITIVE = pytest.mark.parametrize("name", ["Positive", "Hyperbolic"])
HALF = pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
PLACES = pytest.mark.parametrize("place", [0, 3, 70, -1])
LENGTH = 97  # more than a chunk

MAKE: dict[str, Callable[[int], FeatureMap]] = {
    "Positive": lambda K: Positive(K, num_features=64, generator=seeded(1)),
    "Hyperbolic": lambda K: Hyperbolic(K, num_features=64, generator=seeded(2)),
    "SoftmaxFourier": lambda K: SoftmaxFourier(K, num_frequencies=64, generator=seeded(3)),
}


def extreme(K: int, *, size: float = 1.0) -> Inputs:
    return draw(Sizes(B=1, G=1, T=LENGTH, S=LENGTH, K=K, V=7), seeded(5), size=size, dtype=torch.float32)


@POSITIVE
@WIDTHS
@DIRECTIONS
def test_linear_attention_is_right_at_extreme_logits(name: str, K: int, causal: bool) -> None:
    features, inputs = MAKE[name](K), extreme(K, size=6.0)
    ours = with_gradients(partial(linear_attention, features=features, causal=causal), *inputs)
    plain = with_gradients(lambda *x: brute.linear(name, features, *x, {"causal": causal}), *inputs)
    assert_same_beside_the_largest(ours, plain)


@pytest.mark.slow
@POSITIVE
@PLACES
@DIRECTIONS
@pytest.mark.parametrize(("K", "factor"), [(16, 100.0), (64, -1e4), (16, 1e12)])
def test_one_huge_key_is_right_wherever_it_stands(name: str, place: int, causal: bool, K: int, factor: float) -> None:
    features, (q, k, v) = MAKE[name](K), extreme(K)
    k[:, :, place] *= factor
    # The keys are constant: a huge one's gradient is its own size times a difference that is rounding only.
    ours = with_gradients(lambda q, v: linear_attention(q, k, v, features=features, causal=causal), q, v)
    plain = with_gradients(lambda q, v: brute.linear(name, features, q, k, v, {"causal": causal}), q, v)
    assert_same_beside_the_largest(ours, plain)


@POSITIVE
@PLACES
def test_a_key_whose_square_overflows_is_as_if_absent(name: str, place: int) -> None:
    features, (q, k, v) = MAKE[name](16), extreme(16)
    k[:, :, place] *= 1e25
    seen = torch.ones(1, LENGTH, dtype=torch.bool)
    seen[:, place] = False
    for causal in (False, True):
        out = linear_attention(q, k, v, features=features, causal=causal)
        expected = brute.linear(name, features, q, k, v, {"causal": causal, "mask": seen})
        assert_same_beside_the_largest([out], [expected])


@WIDTHS
@DIRECTIONS
@pytest.mark.parametrize(("size", "place"), [(6.0, None), (1.0, 3), (1.0, -3)])
def test_waves_with_norms_are_right_where_they_do_not_cancel(
    K: int, causal: bool, size: float, place: int | None
) -> None:
    features, (q, k, v) = MAKE["SoftmaxFourier"](K), extreme(K, size=size)
    if place is not None:
        k[:, :, place] *= 100  # outweighs all others: exp(+|k|^2/2)
    w = brute.frequencies(features, q)
    wild = brute.condition(brute.waves(norms=True), q, k, {"causal": causal}, w) > 20
    assert (~wild).sum() > 3
    out = linear_attention(q, k, v, features=features, causal=causal)
    assert out.isfinite().all()
    expected = brute.linear("SoftmaxFourier", features, q, k, v, {"causal": causal})
    assert_same_beside_the_largest([out.masked_fill(wild, 0)], [expected.masked_fill(wild, 0)])


@WIDTHS
@DIRECTIONS
@pytest.mark.parametrize("attend", [softmax_attention, partial(kernel_attention, kernel=Exponential())])
def test_softmax_is_right_at_extreme_logits(attend: Callable[..., Tensor], K: int, causal: bool) -> None:
    inputs = extreme(K, size=6.0)
    plain = with_gradients(lambda *x: brute.kernel(brute.exponential(None), *x, {"causal": causal}), *inputs)
    assert_same_beside_the_largest(with_gradients(partial(attend, causal=causal), *inputs), plain)


@DIRECTIONS
@PLACES
@pytest.mark.parametrize("factor", [100.0, -1e4, 1e6])
def test_the_gaussian_kernel_is_right_beside_one_huge_key(causal: bool, place: int, factor: float) -> None:
    q, k, v = extreme(16)
    k[:, :, place] *= factor
    rows = slice(None) if place else slice(1, None)  # row 0 would see the huge key alone, exp(-|k|^2) of nothing
    out = kernel_attention(q, k, v, kernel=Gaussian(), causal=causal)[:, :, rows]
    expected = brute.kernel(brute.gaussian(None), q, k, v, {"causal": causal})[:, :, rows]
    assert_same_beside_the_largest([out], [expected])


@POSITIVE
def test_all_keys_huge_or_all_far_apart_stays_finite(name: str) -> None:
    features = MAKE[name](16)
    q, k, v = extreme(16)
    ramp = torch.logspace(-3, 5, LENGTH)[:, None]
    for keys in (k * 1e5, k * ramp, k * ramp.flip(0)):
        for causal in (False, True):
            results = with_gradients(partial(linear_attention, features=features, causal=causal), q, keys, v)
            assert all(result.isfinite().all() for result in results)
            assert results[0].abs().max() <= v.abs().max() * (1 + 1e-5)  # a mean of values, with positive weights


LEVELS = pytest.mark.parametrize(("query", "key"), [(-46.0, -46.0), (-55.0, -55.0), (0.0, -95.0), (-4000.0, -4000.0)])
STRUCTURES = pytest.mark.parametrize(
    "structure",
    [
        {},
        {"causal": True},
        {"causal": True, "block_size": 2},
        {"causal": True, "prefix_lengths": torch.tensor([2])},
        {"causal": True, "sequence_ids": torch.tensor([[0, 0, 1, 1, 1]])},
    ],
    ids=["both ways", "causal", "blocks", "prefix", "packed"],
)


@LEVELS
@STRUCTURES
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_elu_far_below_zero_is_the_mean_of_values(
    query: float, key: float, structure: dict[str, Any], dtype: torch.dtype, both_forms: str
) -> None:
    q, k = torch.full((1, 1, 5, 3), query, dtype=dtype), torch.full((1, 1, 5, 3), key, dtype=dtype)
    v = torch.full((1, 1, 5, 1), 3.0, dtype=dtype)
    out, *grads = with_gradients(partial(linear_attention, features=Elu(), **structure), q, k, v)
    assert_close(out, torch.full_like(out, 3.0))
    assert all(grad.isfinite().all() for grad in grads)


@DIRECTIONS
def test_gradients_of_elu_far_below_zero_are_right(causal: bool, both_forms: str) -> None:
    q, k, v = extreme(16)
    for shift in (-46.5, -60.0):
        inputs = [(q + shift).float(), (k + shift).float(), v.float()]
        ours = with_gradients(partial(linear_attention, features=Elu(), causal=causal), *inputs)
        wide = [x.double() for x in inputs]
        plain = with_gradients(lambda *x: brute.linear("Elu", Elu(), *x, {"causal": causal}), *wide)
        assert_same_beside_the_largest(ours, [x.float() for x in plain])


@STRUCTURES
def test_gradients_of_elu_are_right_wherever_its_denominator_stands(structure: dict[str, Any], both_forms: str) -> None:
    # From 1e-26 to 1e26: the square of its inverse, which the gradient has, overflows long before it vanishes itself.
    v = torch.tensor([1.0, -2.0, 3.0, 0.5, 2.0]).view(1, 1, 5, 1)
    for level in (-30.0, -24.0, -23.8, -23.6, -23.4, -17.0, 1e5, 1e10, 1e13):
        q, k = torch.full((1, 1, 5, 3), level), torch.full((1, 1, 5, 3), level)
        _, *grads = with_gradients(partial(linear_attention, features=Elu(), **structure), q, k, v)
        assert all(grad.isfinite().all() and grad.abs().max() < 10 for grad in grads), level


@DIRECTIONS
@pytest.mark.parametrize("size", [1e-30, 1e30])
def test_values_of_any_size_are_averaged_by_elu_far_from_zero(size: float, causal: bool, both_forms: str) -> None:
    q, k, v = extreme(16)
    for level in (-20.0, 5e5):
        out = linear_attention(q + level, k + level, v * size, features=Elu(), causal=causal)
        plain = brute.linear("Elu", Elu(), *((x + level).double() for x in (q, k)), v.double(), {"causal": causal})
        assert_same_beside_the_largest([out / size], [plain.float()])


@DIRECTIONS
@pytest.mark.parametrize("shift", [-120.0, -46.5, -22.0, 300.0])
def test_the_kernel_of_elu_is_right_far_from_zero(shift: float, causal: bool) -> None:
    q, k, v = extreme(16)
    q[:, :, 40:43] += shift
    k[:, :, :2] += shift
    k[:, :, 41] += shift
    ours = with_gradients(partial(kernel_attention, kernel=Elu().kernel, causal=causal), q, k, v)
    wide = [x.double() for x in (q, k, v)]
    plain = with_gradients(lambda *x: brute.linear("Elu", Elu(), *x, {"causal": causal}), *wide)
    assert_same_beside_the_largest(ours, [x.float() for x in plain])


@DIRECTIONS
def test_rows_of_elu_far_below_zero_are_right_beside_usual_ones(causal: bool, both_forms: str) -> None:
    q, k, v = extreme(16)
    q[:, :, 40:43] -= 120
    k[:, :, :2] -= 120
    k[:, :, 41] -= 120
    ours = with_gradients(partial(linear_attention, features=Elu(), causal=causal), q, k, v)
    wide = [x.double() for x in (q, k, v)]
    plain = with_gradients(lambda *x: brute.linear("Elu", Elu(), *x, {"causal": causal}), *wide)
    assert_same_beside_the_largest(ours, [x.float() for x in plain])


@pytest.mark.parametrize("level", [-120.0, 1e20])
def test_a_later_key_of_elu_far_out_changes_no_bit_before_it(level: float) -> None:
    q, k, v = extreme(16)
    with torch_form():
        before = linear_attention(q, k, v, features=Elu(), causal=True)
        q[:, :, 50:], k[:, :, 50:] = level, level
        after = linear_attention(q, k, v, features=Elu(), causal=True)
    assert torch.equal(before[:, :, :50], after[:, :, :50])


@STRUCTURES
@pytest.mark.parametrize(("query", "key"), [(1e19, 1e19), (1e30, 1e30), (-80.0, 1e38), (1e20, -1e20)])
def test_elu_of_large_numbers_is_the_mean_of_values(
    query: float, key: float, structure: dict[str, Any], both_forms: str
) -> None:
    q, k = torch.full((1, 1, 5, 3), query), torch.full((1, 1, 5, 3), key)
    v = torch.full((1, 1, 5, 1), 3.0)
    out, *grads = with_gradients(partial(linear_attention, features=Elu(), **structure), q, k, v)
    assert_close(out, torch.full_like(out, 3.0))
    assert all(grad.isfinite().all() for grad in grads)


def _elu_pair_by_pair(q: Tensor, k: Tensor, v: Tensor, *, causal: bool) -> Tensor:
    """Weights sum_f e^(min(q, 0) + min(k, 0)) (1 + max(q, 0)) (1 + max(k, 0)) of float64, the first factor relative to
    the row's largest."""
    exponents = q.clamp(max=0)[:, :, :, None] + k.clamp(max=0)[:, :, None]
    if causal:
        exponents = exponents.masked_fill(torch.ones(exponents.shape[2:4]).triu(1).bool()[..., None], -torch.inf)
    factors = (1 + q.relu())[:, :, :, None] * (1 + k.relu())[:, :, None]
    relative = exponents - exponents.detach().amax(dim=(3, 4), keepdim=True)
    weights = (relative.exp() * factors).sum(-1)
    return weights @ v / weights.sum(-1, keepdim=True)


@DIRECTIONS
@pytest.mark.parametrize("size", [1.0, 50.0, 1e3, 1e10, 1e18, 3e19, 1e25, 1e37])
def test_elu_is_right_for_queries_and_keys_of_any_size(size: float, causal: bool, both_forms: str) -> None:
    for seed in range(12):
        drawn = torch.randn(3, 2, 3, 17, 4, generator=seeded(seed))
        inputs = [drawn[0] * size, drawn[1] * size, drawn[2]]
        ours = with_gradients(partial(linear_attention, features=Elu(), causal=causal), *inputs)
        wide = [x.double() for x in inputs]
        plain = with_gradients(partial(_elu_pair_by_pair, causal=causal), *wide)
        for one, other in zip(ours, plain, strict=True):
            assert_close(one, other.float(), atol=2e-5)


@DIRECTIONS
@pytest.mark.parametrize("level", [-1e4, -3e38])
def test_elu_is_right_far_below_zero_in_the_plain_form_and_step_by_step(level: float, causal: bool) -> None:
    drawn = torch.randn(3, 1, 1, 7, 4, generator=seeded(0))
    q, k, v = drawn[0], drawn[1], drawn[2]
    for inputs in ([q * 0 + level, k * 0 + level, v], [q + level, k + level, v], [q * (level / 4), k * (level / 4), v]):
        wide = [x.double() for x in inputs]
        plain = with_gradients(partial(_elu_pair_by_pair, causal=causal), *wide)
        by_kernel = partial(kernel_attention, kernel=Elu().kernel, causal=causal)
        stepwise = [_step_by_step] if causal else []
        for form in (by_kernel, *stepwise):
            for one, other in zip(with_gradients(form, *inputs), plain, strict=True):
                assert_close(one, other.float(), atol=1e-3)


def _step_by_step(q: Tensor, k: Tensor, v: Tensor, *, rows: int = 1) -> Tensor:
    state, out = LinearState.empty(Elu(), batch=1, kv_heads=1, value_dim=v.shape[-1]), []
    for one, two, three in zip(*(x.split(rows, dim=2) for x in (q, k, v)), strict=True):
        found, state = state.prefill(one, two, three)
        out.append(found)
    return torch.cat(out, dim=2)


def _elu_in_long_numbers(q: Tensor, k: Tensor, v: Tensor) -> list[Tensor]:
    """Causal outputs, and the gradient of their sum with respect to v, of (1, 1, T, ...) in numbers of 400 bits."""
    with mpmath.workprec(400):
        phi_q, phi_k = (
            [[x + 1 if x > 0 else mpmath.exp(x) for x in map(mpmath.mpf, row)] for row in part[0, 0].tolist()]
            for part in (q, k)
        )
        out, grads = [], [mpmath.mpf(0)] * len(phi_k)
        for i, row in enumerate(phi_q):
            weights = [mpmath.fdot(row, key) for key in phi_k[: i + 1]]
            shares = [weight / mpmath.fsum(weights) for weight in weights]
            out.append(mpmath.fdot(shares, v[0, 0, : i + 1, 0].tolist()))
            grads = [grad + (shares[j] if j <= i else 0) for j, grad in enumerate(grads)]
        return [torch.tensor(list(map(float, each))).view(v.shape) for each in (out, grads)]


@pytest.mark.parametrize("size", [1e6, 1e9, 1e18, 3e38])
def test_elu_keeps_what_is_small_beside_what_is_huge(size: float, both_forms: str) -> None:
    # Weights that differ by e^2 beside others of e^-1e38: of -1e18 + 2 a number of float32 or float64 keeps no 2.
    usual, v = (torch.randn(1, 1, 6, width, generator=seeded(5)) for width in (3, 1))
    far, first, crossed = usual - size, usual.clone(), usual.clone()
    first[:, :, 0], first[:, :, 3] = -size, size
    crossed[0, 0, :2] = torch.tensor([[-size / 2, -size, -size], [-size, -size / 2, -size]])
    level, low = usual * 0 - size, usual * 0 + torch.tensor([-0.3, -1.7, -0.9])
    forms = [
        partial(linear_attention, features=Elu(), causal=True),
        partial(linear_attention, features=Elu(), causal=True, block_size=1),
        partial(linear_attention, features=Elu(), causal=True, prefix_lengths=torch.tensor([1])),
        partial(linear_attention, features=Elu(), causal=True, sequence_ids=torch.zeros(1, 6, dtype=torch.int64)),
        partial(kernel_attention, kernel=Elu().kernel, causal=True),
        _step_by_step,
        partial(_step_by_step, rows=3),
    ]
    for q, k in [(level, usual), (level, first), (first, first), (low, crossed), (usual, crossed), (far, first)]:
        expected = _elu_in_long_numbers(q, k, v)
        for form in forms:
            values = v.clone().requires_grad_()
            out = form(q, k, values)
            out.sum().backward()
            assert values.grad is not None
            for one, other in zip([out, values.grad], expected, strict=True):
                assert_close(one, other, atol=2e-5)
            with torch.no_grad():
                assert_close(form(q, k, v), expected[0], atol=2e-5)


def test_rows_of_elu_that_see_nothing_are_0_by_one_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    q, k, v = extreme(16)
    mask = torch.ones(1, LENGTH, dtype=torch.bool)
    mask[:, :3] = False
    monkeypatch.setattr(Elu, "split_keys", None)  # logarithms, which nothing here needs
    with torch_form():
        out = linear_attention(q, k, v, features=Elu(), causal=True, mask=mask)
    assert (out[:, :, :3] == 0).all()
    assert (out[:, :, 3:].abs().amax(dim=-1) > 0).all()


@pytest.mark.parametrize(("features", "size"), [(Relu(), 1e-23), (Quadratic(3, constant=0.0), 1e-12)])
def test_products_that_underflow_are_said(features: FeatureMap, size: float) -> None:
    x, v = torch.full((1, 1, 2, 3), size), torch.ones(1, 1, 2, 1)
    features.has_warned = False
    with pytest.warns(DenominatorWarning, match="underflow in torch.float32, and an output is 0"):
        linear_attention(x, x, v, features=features, causal=True)
    features.has_warned = False
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        large = x / size
        linear_attention(-large if isinstance(features, Relu) else large, large, v, features=features)


@DIRECTIONS
@pytest.mark.parametrize(("features", "size"), [(Relu(), 1e20), (Quadratic(3), 1e12)])
@pytest.mark.parametrize("value", [1.0, 1e-12])
def test_products_that_overflow_are_said(
    features: FeatureMap, size: float, value: float, causal: bool, both_forms: str
) -> None:
    x, v = torch.full((1, 1, 700, 3), size), torch.full((1, 1, 700, 1), value)
    features.has_warned = False
    with pytest.warns(DenominatorWarning, match="overflow in torch.float32, and an output is 0 or NaN"):
        linear_attention(x, x, v, features=features, causal=causal)


# Low precision: sums are kept in float32.

MANY = 70_001  # ones: a float16 sum of them is infinite, a bfloat16 sum stops at 256


@pytest.mark.full
@HALF
@pytest.mark.parametrize("structure", [{}, {"causal": True}, {"sequence_ids": torch.zeros(1, MANY, dtype=torch.int64)}])
def test_sums_of_seventy_thousand_ones_do_not_saturate(dtype: torch.dtype, structure: dict[str, Any]) -> None:
    q, k = torch.zeros(1, 1, 2, 1, dtype=dtype), torch.zeros(1, 1, MANY, 1, dtype=dtype)
    v = torch.ones(1, 1, MANY, 1, dtype=dtype)
    v[:, :, ::2] = 0.5  # the mean is 3/4
    for features in (Elu(), Positive(1, num_features=1, generator=seeded(7))):
        out = linear_attention(q, k, v, features=features, chunk_size=512, **structure)
        assert out.dtype == dtype
        assert_close(out, torch.full((1, 1, 2, 1), 0.75))


@HALF
def test_exact_sums_of_seventy_thousand_ones_do_not_saturate(dtype: torch.dtype) -> None:
    q, k = torch.zeros(1, 1, 2, 1, dtype=dtype), torch.zeros(1, 1, MANY, 1, dtype=dtype)
    v = torch.ones(1, 1, MANY, 1, dtype=dtype)
    for kernel in (brute.KERNELS["Exponential"][0], brute.KERNELS["Polynomial"][0]):
        assert_close(kernel_attention(q, k, v, kernel=kernel), torch.ones(1, 1, 2, 1))
    assert_close(softmax_attention(q, k, v), torch.ones(1, 1, 2, 1))


@HALF
@DIRECTIONS
@pytest.mark.parametrize("name", brute.MAPS)
def test_low_precision_inputs_are_close_to_brute_force(name: str, causal: bool, dtype: torch.dtype) -> None:
    features = brute.MAPS[name].make(5, 1, seeded(11))
    inputs = draw(Sizes(T=53, S=61), seeded(13), size=0.5, dtype=dtype)
    wild = wild_rows(name, features, inputs, {"causal": causal})
    out = linear_attention(*inputs, features=features, causal=causal)
    assert out.dtype == dtype
    expected = brute.linear(name, features, *inputs, {"causal": causal})
    assert_close(out.masked_fill(wild, 0), expected.masked_fill(wild, 0))


@HALF
@DIRECTIONS
@pytest.mark.parametrize("name", brute.KERNELS)
def test_low_precision_inputs_of_kernels_are_close_to_brute_force(name: str, causal: bool, dtype: torch.dtype) -> None:
    kernel, similarity = brute.KERNELS[name]
    inputs = draw(Sizes(T=53, S=61), seeded(17), size=0.5, dtype=dtype)
    out = kernel_attention(*inputs, kernel=kernel, causal=causal)
    assert out.dtype == dtype
    assert_close(out, brute.kernel(similarity, *inputs, {"causal": causal}))


@HALF
@DIRECTIONS
def test_low_precision_inputs_of_softmax_are_close_to_brute_force(causal: bool, dtype: torch.dtype) -> None:
    inputs = draw(Sizes(T=53, S=61), seeded(19), dtype=dtype)
    out = softmax_attention(*inputs, causal=causal)
    assert out.dtype == dtype
    assert_close(out, brute.kernel(brute.exponential(None), *inputs, {"causal": causal}))


def test_low_precision_extreme_logits_are_close_to_brute_force() -> None:
    features = MAKE["Positive"](16)
    inputs = tuple(x.bfloat16() for x in extreme(16, size=6.0))
    out = linear_attention(*inputs, features=features, causal=True)
    assert_close(out, brute.linear("Positive", features, *inputs, {"causal": True}))
