"""Exact near, features far: one consistent estimate of the kernel's attention; and the short cuts of exact maps."""

import re
from typing import Any

import pytest
import torch
from torch import Tensor

from likewise.attention import (
    Elu,
    Exponential,
    Hyperbolic,
    Linear,
    LinearState,
    MultiHeadAttention,
    Positive,
    Quadratic,
    Taylor,
    kernel_attention,
    linear_attention,
)
from likewise.attention.chunked import CausalOptions, GroupedQKV, attend_causally, exact_length
from tests.attention import brute
from tests.attention.drawing import Drawn, assert_same, assert_same_beside_the_largest, seeded
from tests.attention.states import assert_same_future, at, fed
from tests.tolerance import assert_close

pytestmark = pytest.mark.usefixtures("both_forms")
B, H, G, T, K, V = 2, 6, 3, 41, 5, 7
RANDOM = [name for name in brute.MAPS if not brute.MAPS[name].make(K, G, seeded(3)).exact]
POSITIVE = [name for name in RANDOM if name not in brute.SIGNED]
EXACT = [name for name in brute.MAPS if name not in RANDOM]


def draw(size: float = 0.5, dtype: torch.dtype | None = None, length: int = T, queries: int | None = None) -> Any:
    shapes = ((B, H, queries or length, K), (B, G, length, K), (B, G, length, V))
    drawn = [torch.randn(shape, dtype=torch.float64, generator=seeded(i)) for i, shape in enumerate(shapes)]
    dtype = dtype or Drawn.dtype
    return [(drawn[0] * size).to(dtype), (drawn[1] * size).to(dtype), drawn[2].to(dtype)]


def mask_of(length: int = T) -> Tensor:
    mask = torch.rand(B, length, generator=seeded(5)) > 0.3
    mask[1, :9] = False
    return mask


def mixed(name: str, features: Any, q: Tensor, k: Tensor, v: Tensor, within: int, **structure: Any) -> Tensor:
    """Brute force: the kernel's similarity near by, that of the features further away."""
    kernel = brute.gaussian if name.startswith("Fourier") else brute.exponential
    parameter = {"Fourier, wide": 3.0, "Positive, scaled": 0.7, "Fitted, scaled": 0.7}.get(name)

    def similarity(q: Tensor, k: Tensor, w: Tensor) -> brute.Pairs:
        near, far = kernel(parameter)(q, k, w), brute.MAPS[name].similarity(q, k, w)
        here = torch.arange(q.shape[2])[:, None] + k.shape[2] - q.shape[2]
        close = (here - torch.arange(k.shape[2])).abs() < within
        return brute.Pairs(*(torch.where(close, a, b) for a, b in zip(near, far, strict=True)))

    return brute.attend(similarity, q, k, v, structure, brute.frequencies(features, q))


@pytest.mark.slow
@pytest.mark.parametrize("name", RANDOM)
@pytest.mark.parametrize(
    ("within", "masked"), [(1, True), (2, False), (8, True), (8, False), (40, True), (41, False), (90, False)]
)
@pytest.mark.parametrize("causal", [True, False])
def test_near_pairs_are_the_kernels_and_far_ones_the_features(
    name: str, within: int, masked: bool, causal: bool
) -> None:
    features, inputs = brute.MAPS[name].make(K, G, seeded(3)), draw()
    mask = mask_of() if masked else None
    found = linear_attention(*inputs, features=features, causal=causal, mask=mask, exact_within=within, chunk_size=8)
    expected = mixed(name, features, *inputs, within, causal=causal, mask=mask)
    # Sums of both signs can cancel; what is left is accurate to roundings of terms of order 1.
    assert_same([found], [expected], atol=1e-6 if name in brute.SIGNED else 1e-12)


@pytest.mark.parametrize("within", [1, 5, 30])
@pytest.mark.parametrize("queries", [3, 29, 50])
def test_queries_at_the_last_positions_have_their_windows_there(within: int, queries: int) -> None:
    features, inputs = brute.MAPS["Hyperbolic"].make(K, G, seeded(3)), draw(queries=queries)
    found = linear_attention(*inputs, features=features, causal=True, exact_within=within, chunk_size=4)
    assert_same([found], [mixed("Hyperbolic", features, *inputs, within, causal=True)], atol=1e-12)


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("length", [T, 700])
def test_a_window_as_long_as_the_sequence_is_exact_attention(causal: bool, length: int) -> None:
    inputs = draw(2.0, length=length)
    found = linear_attention(
        *inputs, features=Positive(K, num_features=3, generator=seeded(0)), causal=causal, exact_within=length
    )
    assert_same([found], [kernel_attention(*inputs, kernel=Exponential(), causal=causal)])


@pytest.mark.slow
@pytest.mark.parametrize("name", POSITIVE)
@pytest.mark.parametrize("causal", [True, False])
def test_a_window_over_many_pieces_agrees_in_every_dtype(name: str, causal: bool) -> None:
    features = brute.MAPS[name].make(K, 1, seeded(3))
    q, k, v = draw(dtype=torch.bfloat16, length=300)
    inputs = q[:1, :2], k[:1, :1], v[:1, :1]
    expected = mixed(name, features, *inputs, 100, causal=causal)  # the same in every dtype, which holds these inputs
    for dtype in (torch.float64, torch.float32, torch.bfloat16):
        same = [x.to(dtype) for x in inputs]
        found = linear_attention(*same, features=features, causal=causal, exact_within=100)
        assert found.dtype == dtype
        # Values of order 1 may cancel to 1e-8, where 1e-16 is a large part.
        assert_close(found, expected, atol={torch.float64: 1e-15, torch.float32: 1e-4}.get(dtype, 0.0))


@pytest.mark.parametrize("name", POSITIVE)
@pytest.mark.parametrize("masked", [True, False])
def test_gradients_are_those_of_brute_force(name: str, masked: bool) -> None:
    features, mask = brute.MAPS[name].make(K, G, seeded(3)), mask_of() if masked else None
    weights = torch.randn(B, H, T, V, dtype=torch.float64, generator=seeded(8)).to(Drawn.dtype)
    for causal in (True, False):
        inputs = [x.requires_grad_() for x in draw()]
        found = linear_attention(*inputs, features=features, causal=causal, mask=mask, exact_within=6, chunk_size=4)
        expected = mixed(name, features, *inputs, 6, causal=causal, mask=mask)
        ours, theirs = (torch.autograd.grad((out * weights).sum(), inputs) for out in (found, expected))
        assert_same(ours, theirs)


@pytest.mark.slow
def test_gradients_of_gradients_exist() -> None:
    features = Positive(2, num_features=3, generator=seeded(0))
    inputs = [
        torch.randn(1, 1, 7, width, dtype=torch.float64, generator=seeded(width)).requires_grad_()
        for width in (2, 2, 3)
    ]
    inputs[1] = (inputs[1].detach() * 0.7).requires_grad_()

    def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return linear_attention(q, k, v, features=features, causal=True, exact_within=3, chunk_size=2)

    assert torch.autograd.gradcheck(attend, inputs)
    assert torch.autograd.gradgradcheck(attend, inputs, fast_mode=True)


def test_a_causal_window_does_not_depend_on_later_keys_by_a_bit() -> None:
    features = Hyperbolic(K, num_features=8, generator=seeded(0))
    q, k, v = draw(dtype=torch.float32, length=300)
    later = k.clone()
    later[:, :, 200:] *= 30
    one, other = (
        linear_attention(q, keys, v, features=features, causal=True, exact_within=17)[:, :, :200] for keys in (k, later)
    )
    assert torch.equal(one, other)


def test_extreme_logits_stay_finite() -> None:
    features = Positive(K, num_features=16, generator=seeded(2))
    found = linear_attention(*draw(9.0, torch.float32), features=features, causal=True, exact_within=4)
    assert_close(found, mixed("Positive", features, *draw(9.0, torch.float32), 4, causal=True), atol=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["SoftmaxFourier", "Positive", "Hyperbolic", "Fourier"])
@pytest.mark.parametrize("lag", [0, 3])
@pytest.mark.parametrize("within", [1, 2, 9, 60])
def test_streaming_with_a_window_equals_one_shot(name: str, lag: int, within: int) -> None:
    features, inputs, mask = brute.MAPS[name].make(K, G, seeded(3)), draw(), mask_of()
    expected = linear_attention(*inputs, features=features, causal=True, mask=mask, exact_within=within)
    state = LinearState.empty(features, batch=B, kv_heads=G, value_dim=V, lag=lag, exact_within=within)
    for sizes in ([], [1] * 20, [5, 1, 1, 0, 12]):
        out, after = fed(state, inputs, sizes, mask)
        assert_same([out], [expected], atol=1e-7 if name in brute.SIGNED else 1e-11)
        assert after.memory is not None
        assert after.memory.recent.length == min(T, lag + within - 1)


@pytest.mark.parametrize("within", [1, 4, 60])
def test_positions_in_the_window_can_be_taken_back(within: int) -> None:
    features, inputs = brute.MAPS["Positive"].make(K, G, seeded(3)), draw()
    state = LinearState.empty(features, batch=B, kv_heads=G, value_dim=V, lag=3, exact_within=within)
    _, before = fed(state, at(inputs, 0, 20), [9, 1])
    for sizes in ([], [1, 1]):
        _, after = fed(before, at(inputs, 20, 23), sizes)
        assert_same_future(after.rollback(3), before, at(inputs, 30, 35))
    with pytest.raises(ValueError, match=r"^LinearState\.rollback: positions must be at most 3"):
        after.rollback(4)


def test_a_second_rollback_reaches_no_further_than_the_lag() -> None:
    """Rows inside the window are still kept after the first one, but they cannot be taken back: the rows before them,
    which would enter the window, are already in the sums.
    """
    features, inputs = brute.MAPS["Positive"].make(K, G, seeded(3)), draw()
    state = LinearState.empty(features, batch=B, kv_heads=G, value_dim=V, lag=3, exact_within=4)
    _, before = fed(state, at(inputs, 0, 20), [9, 1])
    _, after = fed(before, at(inputs, 20, 23), [])
    assert_same_future(after.rollback(2).rollback(1), before, at(inputs, 30, 35))
    with pytest.raises(ValueError, match=r"^LinearState\.rollback: positions must be at most 0"):
        after.rollback(2).rollback(1).rollback(1)
    with pytest.raises(ValueError, match=r"^LinearState\.rollback: positions must be at most 1"):
        after.rollback(2).rollback(2)


@pytest.mark.slow
def test_states_with_a_window_merge_fork_and_are_saved(tmp_path: Any) -> None:
    features, inputs = brute.MAPS["Hyperbolic"].make(K, G, seeded(3)), draw()
    empty = LinearState.empty(features, batch=B, kv_heads=G, value_dim=V, lag=2, exact_within=6)
    expected = linear_attention(*inputs, features=features, causal=True, exact_within=6)[:, :, 30:]
    for cut in (2, 5, 15, 27):
        (_, left), (_, right) = fed(empty, at(inputs, 0, cut), [1]), fed(empty, at(inputs, cut, 30), [1])
        merged = left.merge(right)
        assert_same([fed(merged, at(inputs, 30), [1, 1])[0]], [expected])
        merged.save(tmp_path / "state")
        loaded = LinearState.load(tmp_path / "state", features)
        assert_same_future(loaded, merged, at(inputs, 30))
    assert fed(merged.fork(2), [x.repeat_interleave(2, 0) for x in at(inputs, 30)], [])[0].shape[0] == 2 * B


def test_decoding_with_a_window_equals_the_whole() -> None:
    attend = Linear(Positive(4, num_features=16, generator=seeded(0)), exact_within=5)
    torch.manual_seed(0)
    module = MultiHeadAttention(12, num_heads=3, num_kv_heads=1, attend=attend).double()
    x = torch.randn(2, 19, 12, dtype=torch.float64, generator=seeded(1))
    cache, outputs = module.empty_cache(batch=2), []
    for at_once in x.split([7, 1, 1, 1, 9], dim=1):
        out, cache = module.decode(at_once, cache)
        outputs.append(out)
    assert_close(torch.cat(outputs, dim=1), module(x, causal=True), atol=1e-12)


@pytest.mark.usefixtures("without_shape_checks")
@pytest.mark.parametrize(
    ("message", "options"),
    {
        "exact_within must be a whole number of at least 1; got 0.": {"exact_within": 0, "causal": True},
        "exact_within must be a whole number of at least 1; got 2.5.": {"exact_within": 2.5, "causal": True},
        "exact_within must come without block_size; got block_size too.": {
            "exact_within": 3,
            "causal": True,
            "block_size": 2,
        },
        "exact_within must come with causal=True or with as many queries as keys, 41; got 9.": {"exact_within": 3},
    }.items(),
)
def test_windows_that_cannot_be_are_refused(message: str, options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=f"^linear_attention: {re.escape(message)}$"):
        linear_attention(*draw(queries=9), features=Positive(K, generator=seeded(0)), **options)


@pytest.mark.parametrize("name", EXACT)
def test_an_exact_map_needs_no_window(name: str) -> None:
    features, inputs = brute.MAPS[name].make(K, G, seeded(3)), draw()
    one, other = (linear_attention(*inputs, features=features, causal=True, exact_within=w) for w in (None, 3))
    assert torch.equal(one, other)


@pytest.mark.parametrize("name", EXACT)
@pytest.mark.parametrize("masked", [True, False])
def test_the_kernel_takes_over_from_an_exact_map_without_a_trace(name: str, masked: bool) -> None:
    """Pairs by features, pairs of a piece by the kernel, and all by the kernel: values and gradients."""
    features, mask = brute.MAPS[name].make(K, G, seeded(3)), mask_of() if masked else None
    found = []
    for form in (CausalOptions(8), CausalOptions(8, raw=True), CausalOptions(8, within=T)):
        inputs = [x.requires_grad_() for x in (draw()[0] + 0.5, draw()[1] + 0.5, draw()[2])]
        problem = GroupedQKV.fold(features, inputs[0], inputs[1], inputs[2], mask)
        out, _ = attend_causally(problem, None, form)
        found.append([out, *torch.autograd.grad(out.square().sum(), inputs)])
    for other in found[1:]:
        assert_same_beside_the_largest(found[0], other)


def test_a_wide_exact_map_leaves_short_sequences_to_its_kernel() -> None:
    features = Quadratic(16)
    problem = GroupedQKV.fold(features, *(torch.zeros(1, 1, 300, width) for width in (16, 16, 16)), None)
    assert exact_length(153, 16, 16, causal=True) == 2 * exact_length(153, 16, 16, causal=False) == 2 * 153
    assert CausalOptions.choose(problem).within == 300
    longer = problem._replace(k=torch.zeros(1, 1, 307, 16), v=torch.zeros(1, 1, 307, 16))
    assert CausalOptions.choose(longer).raw
    assert CausalOptions.choose(problem, causal=False).raw
    assert CausalOptions.choose(problem._replace(features=Elu())) == CausalOptions(64, logarithmic=True)


@pytest.mark.parametrize("features", [Quadratic(K), Taylor(K)])
def test_a_state_keeps_keys_and_values_while_they_are_fewer_numbers_than_sums(features: Any) -> None:
    inputs = draw()
    state = LinearState.empty(features, batch=B, kv_heads=G, value_dim=V)
    sums = Drawn.dtype.itemsize * B * G * 21 * (V + 1)
    outputs, sizes = [], []
    for position in range(T):
        out, state = state.step(*at(inputs, position, position + 1))
        outputs.append(out)
        sizes.append(state.nbytes)
    assert_same([torch.cat(outputs, dim=2)], [linear_attention(*inputs, features=features, causal=True)])
    assert max(sizes) == sizes[-1] == sums
    switch = 21 * (V + 1) // (K + V)
    assert sizes[switch - 1] == Drawn.dtype.itemsize * B * G * switch * (K + V) <= sums
