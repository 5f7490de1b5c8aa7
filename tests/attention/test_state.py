"""The training form, prefill and step by step are one function, and what is taken back was never there."""

from collections.abc import Sequence

import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from torch import Tensor

from likewise.attention import LinearState, Relu, linear_attention
from tests.attention import brute
from tests.attention.drawing import assert_same, with_gradients
from tests.attention.states import (
    EVERY_KIND,
    EVERY_MAP,
    SIZES,
    after,
    assert_bitwise,
    assert_same_future,
    at,
    fed,
    joined,
    make,
    sequence,
    start,
    tensors,
)
from tests.tolerance import assert_close

pytestmark = pytest.mark.usefixtures("both_forms")
T = SIZES.T
LAGS = [0, 1, 5]
HEADS = {"multi-head": (3, 1), "grouped": (3, 5), "multi-query": (1, 5)}  # key-value heads, query heads of each

EVERY_LAG = pytest.mark.parametrize("lag", LAGS)


@st.composite
def splits(draw_one: st.DrawFn, length: int = T) -> list[int]:
    """Sizes of pieces that leave at least nothing of `length`; some are 0 and some are 1."""
    sizes = draw_one(st.lists(st.integers(0, 5), max_size=length))
    while sum(sizes) > length:
        sizes.pop()
    return sizes


@pytest.mark.slow
@EVERY_MAP
@EVERY_LAG
@settings(max_examples=2)
@given(sizes=splits(), heads=st.sampled_from(sorted(HEADS)))
@example(sizes=[1] * (T - 1), heads="grouped")
@example(sizes=[], heads="multi-query")
def test_training_form_is_prefill_is_step_by_step(name: str, lag: int, sizes: list[int], heads: str) -> None:
    groups, _ = HEADS[heads]
    features, inputs = make(name, kv_heads=groups), sequence(heads=HEADS[heads])

    def streaming(*qkv: Tensor) -> Tensor:
        return fed(start(features, lag, kv_heads=groups), qkv, sizes)[0]

    def training(*qkv: Tensor) -> Tensor:
        return linear_attention(*qkv, features=features, causal=True)

    def plain(*qkv: Tensor) -> Tensor:
        return brute.linear(name, features, *qkv, {"causal": True})

    expected = with_gradients(plain, *inputs)
    assert_same(with_gradients(streaming, *inputs), expected)
    assert_same(with_gradients(training, *inputs), expected)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@EVERY_KIND
@EVERY_LAG
def test_streaming_keeps_the_accuracy_of_its_dtype(name: str, lag: int, dtype: torch.dtype) -> None:
    features, inputs = make(name), sequence(dtype=dtype)
    out, state = fed(start(features, lag), inputs, [5, 1, 1, 3])
    assert out.dtype == dtype
    # Of sums of both signs some cancel to nearly 0; what is left is accurate to roundings of the terms, of order 1.
    assert_close(out, brute.linear(name, features, *inputs, {"causal": True}), atol=1e-4)
    assert state.memory is not None
    if state.memory.whole is not None:  # a wide exact map still has its keys and values instead
        assert state.memory.whole.sums.dtype == torch.float32


def test_bfloat16_sums_do_not_stop_growing() -> None:
    count, width = 307, 1
    ones = torch.ones(1, 1, count, width, dtype=torch.bfloat16)
    values = torch.zeros_like(ones)
    values[:, :, 300:] = 1  # a sum of ones in bfloat16 stops at 256, and would see none of these
    _, state = fed(
        LinearState.empty(Relu(), kv_heads=1, value_dim=width), [ones, ones, values], [300, 1, 1, 1, 1, 1, 1]
    )
    assert state.memory is not None
    assert state.memory.whole is not None
    assert state.memory.whole.sums.flatten().tolist() == [7.0, 307.0]


def padded() -> tuple[list[Tensor], Tensor, list[int]]:
    """A sequence in which row 1 starts with 4 positions of padding, the mask, and each row's first own position."""
    first = [0, 4]
    mask = torch.arange(T) >= torch.tensor(first)[:, None]
    return list(sequence()), mask, first


def poisoned(inputs: Sequence[Tensor], mask: Tensor) -> list[Tensor]:
    """NaN, and in one column infinity, wherever the mask hides a position."""
    hidden = ~mask[:, None, :, None]
    bad = [x.masked_fill(hidden, torch.nan) for x in inputs]
    for x in bad:
        x[..., -1:].masked_fill_(hidden, torch.inf)
    return bad


@pytest.mark.slow
@EVERY_MAP
@EVERY_LAG
@settings(max_examples=2)
@given(sizes=splits())
@example(sizes=[2, 1, 1, 1, 1])
def test_left_padding_is_as_if_it_were_not_there(name: str, lag: int, sizes: list[int]) -> None:
    features = make(name)
    inputs, mask, first = padded()
    out, state = fed(start(features, lag), poisoned(inputs, mask), sizes, mask)
    for row, begin in enumerate(first):
        own = [x[row : row + 1] for x in at(inputs, begin)]
        assert_same([out[row : row + 1, :, begin:]], [brute.linear(name, features, *own, {"causal": True})])
    assert state.length == T


@EVERY_KIND
@EVERY_LAG
@pytest.mark.parametrize("sizes", [[], [2, 1, 1, 3, 1]], ids=["at once", "in pieces"])
def test_padding_gets_no_gradient_and_changes_none(name: str, lag: int, sizes: list[int]) -> None:
    features = make(name)
    inputs, mask, first = padded()

    def streaming(*qkv: Tensor) -> Tensor:
        out = fed(start(features, lag), qkv, sizes, mask)[0]
        return out.masked_fill(~mask[:, None, :, None], 0)

    def plain(*qkv: Tensor) -> Tensor:
        out = brute.linear(name, features, *qkv, {"causal": True, "mask": mask})
        return out.masked_fill(~mask[:, None, :, None], 0)

    actual = with_gradients(streaming, *poisoned(inputs, mask))
    assert_same(actual, with_gradients(plain, *inputs))
    assert all((x[1, :, : first[1]] == 0).all() for x in actual)


@EVERY_KIND
def test_a_row_of_nothing_but_padding_gives_zero(name: str) -> None:
    inputs = sequence()
    mask = torch.zeros(SIZES.B, T, dtype=torch.bool)
    mask[0] = True
    out, _ = fed(start(make(name), 1), [inputs[0], *poisoned(inputs, mask)[1:]], [3, 1], mask)
    assert (out[1] == 0).all()
    assert (out[0] != 0).all()


@pytest.mark.slow
@EVERY_MAP
@pytest.mark.parametrize(("lag", "count", "before"), [(1, 1, 8), (5, 5, 0), (5, 5, 3), (5, 2, 8)])
def test_rollback_is_exact_to_the_last_bit(name: str, lag: int, count: int, before: int) -> None:
    inputs, state = sequence(), start(make(name), lag)
    state = after(state, at(inputs, 0, before)) if before else state
    for sizes in ([1] * (count - 1), []):  # one by one, and at once
        _, later = fed(state, at(inputs, before, before + count), sizes)
        assert later.length == before + count
        assert_same_future(later.rollback(count), state, sequence(7, seed=5))


@pytest.mark.full
@pytest.mark.parametrize("name", brute.LOGARITHMIC)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
@pytest.mark.parametrize("own", [1, SIZES.G], ids=["shared frequencies", "own frequencies"])
def test_rollback_is_exact_however_keys_lie_in_memory(name: str, dtype: torch.dtype, own: int) -> None:
    def one_by_one(length: int, seed: int) -> list[list[Tensor]]:
        """Each position as a projection makes it: its heads lie side by side."""
        inputs = [x.transpose(1, 2).contiguous() for x in sequence(length, seed=seed, dtype=dtype)]
        return [[x[:, t : t + 1].clone().transpose(1, 2) for x in inputs] for t in range(length)]

    state = start(make(name, kv_heads=own), 5)
    for position in one_by_one(7, 0):
        state = after(state, position)
    later = state
    for position in one_by_one(4, 1):
        later = after(later, position)
    assert_same_future(later.rollback(4), state, sequence(3, seed=2, dtype=dtype))


@pytest.mark.slow
@EVERY_MAP
@EVERY_LAG
@settings(max_examples=4)
@given(moves=st.lists(st.integers(-5, 4), max_size=8))
@example(moves=[4, 3, -5, 1, 2, -3, 4])
def test_any_history_is_the_sequence_that_remains(name: str, lag: int, moves: list[int]) -> None:
    features, supply = make(name), sequence(40)
    state, kept, used, reach = start(features, lag), at(supply, 0, 0), 0, 0
    for move in moves:
        if move > 0:
            news = at(supply, used, used + move)
            state, kept, used, reach = after(state, news), joined(kept, news), used + move, min(lag, reach + move)
        else:
            back = min(-move, reach)
            state, kept, reach = state.rollback(back), at(kept, 0, kept[0].shape[2] - back), reach - back
    last = at(supply, 39)
    assert state.length == kept[0].shape[2]
    expected = brute.linear(name, features, *joined(kept, last), {"causal": True})[:, :, -1:]
    assert_same([state.step(*last)[0]], [expected])


@EVERY_KIND
def test_what_was_rolled_back_gets_no_gradient(name: str) -> None:
    features = make(name)

    def draft_and_replace(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        state = after(start(features, 5), at([q, k, v], 0, 9)).rollback(2)
        return fed(state, at([q, k, v], 9), [1])[0]

    def plain(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        kept = joined(at([q, k, v], 0, 7), at([q, k, v], 9))
        return brute.linear(name, features, *kept, {"causal": True})[:, :, 7:]

    actual = with_gradients(draft_and_replace, *sequence())
    assert_same(actual, with_gradients(plain, *sequence()))
    assert all((gradient[:, :, 7:9] == 0).all() for gradient in actual[1:])


@EVERY_KIND
def test_rollback_over_padding_counts_positions(name: str) -> None:
    inputs, mask, _ = padded()
    features = make(name)
    _, state = fed(start(features, 5), at(inputs, 0, 2), [], mask[:, :2])
    _, later = fed(state, at(inputs, 2, 6), [1, 1], mask[:, 2:6])
    assert_same_future(later.rollback(4), state, sequence(7, seed=5))
    assert later.rollback(3).length == 3


def test_rollback_reaches_as_far_as_the_lag_and_no_further() -> None:
    features, inputs = make("Elu"), sequence()
    for lag in LAGS:
        for length in range(T):
            state = after(start(features, lag), at(inputs, 0, length))
            reach = min(lag, length)
            assert state.rollback(reach).length == length - reach
            with pytest.raises(ValueError, match=rf"^LinearState.rollback: positions must be at most {reach}, "):
                state.rollback(reach + 1)


@EVERY_KIND
@EVERY_LAG
def test_a_state_is_a_value(name: str, lag: int) -> None:
    state = after(start(make(name), lag), at(sequence(), 0, 8))
    before, copy = state.snapshot(), [x.clone() for x in tensors(state)]
    for later in (state.rollback(lag), state.fork(2), after(state, at(sequence(), 8)), state.merge(state)):
        assert later.length >= 8 - lag
    assert_bitwise(state, before)
    assert all(torch.equal(x, y) for x, y in zip(tensors(state), copy, strict=True))


@pytest.mark.slow
@pytest.mark.parametrize("name", brute.LOGARITHMIC)
@EVERY_LAG
def test_states_of_extreme_sequences_are_finite_and_right(name: str, lag: int) -> None:
    features, length = make(name), 61
    q, k, v = sequence(length, size=6.0, seed=3)
    k = k.clone()
    k[:, :, 2] *= 3  # one huge key early, one late
    k[:, :, -4] *= 3
    expected = brute.linear(name, features, q, k, v, {"causal": True})
    out, state = fed(start(features, lag), [q, k, v], [7, 1, 1, 20, 1])
    # Similarities of both signs cancel in SoftmaxFourier; float32 is looked at below.
    assert_close(out, expected, atol=1e-9 if out.dtype == torch.float64 else 1e-3)
    narrow, wide_state = fed(start(features, lag), [x.float() for x in (q, k, v)], [7, 1, 1, 20, 1])
    assert narrow.isfinite().all()
    for held in (*tensors(state), *tensors(wide_state)):
        assert not held.isnan().any()
        assert not (held == torch.inf).any()
    if features.positive:
        # Logarithms of the size of 100 carry 1e-5 in float32, and so do weights; outputs are means of values up to 4.
        assert_close(narrow, expected, atol=1e-3)


@EVERY_KIND
@EVERY_LAG
def test_no_positions_and_one_are_sequences_too(name: str, lag: int) -> None:
    features, inputs = make(name), sequence()
    empty = start(features, lag)
    out, still = empty.prefill(*at(inputs, 0, 0))
    assert out.shape == (SIZES.B, SIZES.G * SIZES.repeats, 0, SIZES.V)
    assert still.length == 0
    first = at(inputs, 0, 1)
    value = first[2].repeat_interleave(SIZES.repeats, dim=1)  # one key has all the weight, whatever the similarity
    for state in (empty, still):
        assert_same([state.step(*first)[0]], [value])
        assert_same([fed(state, inputs, [1, 0, 5])[0]], [fed(empty, inputs, [])[0]])
    nobody = [x[:0] for x in inputs]
    assert fed(start(features, lag, batch=0), nobody, [3, 1])[0].shape == (0, 15, T, SIZES.V)


@pytest.mark.parametrize("name", ["Elu", "Positive"])
def test_masked_prefill_is_the_training_form_at_every_position(name: str) -> None:
    features, (q, k, v) = make(name), sequence()
    mask = torch.ones(k.shape[0], k.shape[2], dtype=torch.bool)
    mask[1, 5:8] = False
    out, _ = start(features, 2).prefill(q, k, v, mask=mask)
    assert_close(out, linear_attention(q, k, v, features=features, causal=True, mask=mask))
