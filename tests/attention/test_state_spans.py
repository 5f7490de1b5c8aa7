"""States joined, copied, branched, written and read continue to what they stand for, and do not grow."""

import weakref
from pathlib import Path

import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from torch import Tensor

from likewise.attention import FeatureMap, LinearState
from tests.attention import brute
from tests.attention.drawing import Drawn, assert_same, with_gradients
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

pytestmark = pytest.mark.usefixtures("both_forms")
T = SIZES.T
LAGS = [0, 1, 5]
EVERY_LAG = pytest.mark.parametrize("lag", LAGS)


def expected_after(name: str, features: FeatureMap, before: list[Tensor], news: list[Tensor]) -> Tensor:
    """What `news` give after `before`, by brute force."""
    out = brute.linear(name, features, *joined(before, news), {"causal": True})
    return out[:, :, before[0].shape[2] :]


@pytest.mark.slow
@EVERY_MAP
@EVERY_LAG
@settings(max_examples=2)
@given(lengths=st.lists(st.integers(0, 7), min_size=2, max_size=4))
@example(lengths=[4, 2])  # the second span is shorter than the lag,
@example(lengths=[2, 7])  # and longer
@example(lengths=[3, 1, 1])
@example(lengths=[0, 3, 0, 6])
def test_merging_spans_is_one_span(name: str, lag: int, lengths: list[int]) -> None:
    features, future = make(name), at(sequence(2, seed=2), 0)
    spans = [at(sequence(length, seed=3 + index), 0) for index, length in enumerate(lengths)]
    states = [after(start(features, lag), span) for span in spans]
    from_the_left = states[0]
    for state in states[1:]:
        from_the_left = from_the_left.merge(state)
    from_the_right = states[-1]
    for state in reversed(states[:-1]):
        from_the_right = state.merge(from_the_right)
    whole = joined(*spans)
    for merged in (from_the_left, from_the_right):
        assert merged.length == sum(lengths)
        assert_same([fed(merged, future, [1])[0]], [expected_after(name, features, whole, future)])
        reach = min(lag, merged.length)
        shorter = at(whole, 0, merged.length - reach)
        back = merged.rollback(reach)
        assert_same([fed(back, future, [1])[0]], [expected_after(name, features, shorter, future)])
        with pytest.raises(ValueError, match="positions must be at most"):
            back.rollback(1) if reach == lag else merged.rollback(reach + 1)


@EVERY_KIND
@EVERY_LAG
def test_gradients_flow_through_both_spans(name: str, lag: int) -> None:
    features = make(name)

    def merged(*qkv: Tensor) -> Tensor:
        first, second = (after(start(features, lag), span) for span in (at(qkv, 0, 6), at(qkv, 6, 10)))
        return fed(first.merge(second), at(qkv, 10), [1])[0]

    def plain(*qkv: Tensor) -> Tensor:
        return expected_after(name, features, at(qkv, 0, 10), at(qkv, 10))

    assert_same(with_gradients(merged, *sequence()), with_gradients(plain, *sequence()))


@pytest.mark.slow
@EVERY_KIND
@EVERY_LAG
def test_merging_with_the_empty_state_changes_no_bit(name: str, lag: int) -> None:
    features = make(name)
    empty, state = start(features, lag), after(start(features, lag), sequence())
    nothing = after(empty, at(sequence(), 0, 0))  # empty too, but it has seen a shape
    for merged in (empty.merge(state), state.merge(empty), nothing.merge(state), state.merge(nothing)):
        assert_same_future(merged, state, sequence(4, seed=1))
    assert empty.merge(empty).length == 0


@EVERY_KIND
def test_a_huge_key_in_either_span_does_not_drown_the_other(name: str) -> None:
    features = make(name)
    for huge in (2, 9):
        q, k, v = sequence()
        k = k.clone()
        k[:, :, huge] *= 40
        spans = at([q, k, v], 0, 7), at([q, k, v], 7, 12)
        first, second = (after(start(features, 2), span) for span in spans)
        last = at([q, k, v], 12)
        # Rows that miss the huge key see similarities far below it; the rest cancel against it.
        out = first.merge(second).step(*last)[0]
        assert_same([out], [expected_after(name, features, joined(*spans), last)], atol=1e-9)


@EVERY_KIND
@EVERY_LAG
def test_a_snapshot_shares_neither_gradients_nor_memory(name: str, lag: int) -> None:
    inputs = [x.requires_grad_() for x in sequence()]
    state = after(start(make(name), lag), at(inputs, 0, 9))
    assert any(x.requires_grad for x in tensors(state))
    copy, again = state.snapshot(), state.snapshot()
    assert_bitwise(copy, state)
    assert not any(x.requires_grad for x in tensors(copy))
    kept = {x.untyped_storage().data_ptr() for x in tensors(copy) if x.numel()}
    assert kept.isdisjoint({x.untyped_storage().data_ptr() for x in tensors(state) if x.numel()})
    with torch.no_grad():
        for x in tensors(state):
            x.zero_()
    assert_bitwise(copy, again)


@EVERY_KIND
@EVERY_LAG
def test_forked_rows_continue_as_separate_sequences(name: str, lag: int) -> None:
    features, copies = make(name), 3
    prompt = at(sequence(), 0, 8)
    branches = [at(sequence(5, seed=10 + copy), 0) for copy in range(copies)]
    forked = after(start(features, lag), prompt).fork(copies)
    assert forked.batch == SIZES.B * copies
    # Row 0 in all its copies comes first, then row 1.
    news = [torch.stack(parts, dim=1).flatten(0, 1) for parts in zip(*branches, strict=True)]
    out, later = fed(forked, news, [1, 1])
    again, _ = fed(later.rollback(lag), at(news, 5 - lag), [])
    for copy, branch in enumerate(branches):
        assert_same([out[copy::copies]], [expected_after(name, features, prompt, branch)])
    assert_same([again], at([out], 5 - lag))


@pytest.mark.parametrize("name", ["Elu", "Positive"])
@pytest.mark.parametrize("lag", [0, 2])
def test_selected_rows_continue_as_their_own_sequences(name: str, lag: int) -> None:
    features, rows = make(name), torch.tensor([1, 0, 1])
    state = after(start(features, lag), at(sequence(), 0, 8))
    chosen = state.select(rows)
    assert (chosen.batch, chosen.length) == (3, state.length)
    news = at(sequence(5, seed=9), 0)
    out, later = fed(chosen, [x[rows] for x in news], [1, 1])
    assert_same([out], [fed(state, news, [1, 1])[0][rows]])
    assert later.rollback(lag).length == 13 - lag


@pytest.mark.parametrize("rows", [[2], [-1], [0.5]])
def test_rows_to_select_are_rows_of_the_batch(rows: list[float]) -> None:
    state = after(start(make("Elu"), 0), at(sequence(), 0, 8))
    with pytest.raises(ValueError, match=r"LinearState.select: rows must be"):
        state.select(torch.tensor(rows))


def test_an_empty_state_forks_and_copies() -> None:
    state = start(make("Positive"), 2).fork(3).snapshot()
    assert (state.batch, state.length, state.nbytes) == (3 * SIZES.B, 0, 0)
    inputs = [x.repeat_interleave(3, dim=0) for x in sequence()]
    assert fed(state, inputs, [1])[1].length == T


@EVERY_MAP
@pytest.mark.parametrize("lag", [0, 5])
def test_a_loaded_state_is_the_saved_one_to_the_last_bit(name: str, lag: int, tmp_path: Path) -> None:
    features, path = make(name), tmp_path / "state.safetensors"
    state = after(start(features, lag), sequence())
    for saved in (state, state.rollback(lag), start(features, lag)):
        saved.save(path)
        loaded = LinearState.load(path, make(name))  # made anew with the same seed: the same projection
        assert_bitwise(loaded, saved)
    state.save(path)
    assert_same_future(LinearState.load(path, features), state, sequence(4, seed=1))


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_dtype_padding_and_gradients_survive_a_file(dtype: torch.dtype, tmp_path: Path) -> None:
    inputs = [x.requires_grad_() for x in sequence(dtype=dtype)]
    mask = torch.arange(T) >= torch.tensor([[0], [T - 3]])
    _, state = fed(start(make("Positive"), 5), inputs, [2, 1], mask)
    state.save(str(tmp_path / "state"))
    loaded = LinearState.load(str(tmp_path / "state"), make("Positive"))
    assert_bitwise(loaded, state)
    assert not any(x.requires_grad for x in tensors(loaded))


def test_saving_that_is_interrupted_leaves_the_file_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(descriptor: int) -> None:
        raise OSError("the disk is full")

    path, state = tmp_path / "state", after(start(make("Positive")), sequence())
    state.save(path)
    before = path.read_bytes()
    monkeypatch.setattr("os.fsync", fail)
    with pytest.raises(OSError, match="the disk is full"):
        state.rollback(0).save(path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


@EVERY_MAP
@EVERY_LAG
def test_a_state_does_not_grow(name: str, lag: int) -> None:
    features = make(name)
    width = features.dim or SIZES.K
    _, state = fed(start(features, lag), sequence(100), [])  # more than a wide map keeps as they came
    _, longer = fed(state, sequence(200, seed=1), [150, 1, 1])
    assert longer.nbytes == state.nbytes
    scales = {"SoftmaxFourier": 1, "Elu": width, "Positive": width, "Hyperbolic": width, "Fitted": width}.get(name, 0)
    prefix = width * (SIZES.V + 1) + scales
    # With a lag there are two prefixes, of the positions folded so far and of all.
    words = (2 * prefix + lag * (SIZES.K + SIZES.V)) if lag else prefix
    assert state.nbytes == Drawn.dtype.itemsize * SIZES.B * SIZES.G * words


@EVERY_KIND
@EVERY_LAG
def test_a_state_does_not_keep_its_prompt_alive(name: str, lag: int) -> None:
    features, held = make(name), []
    for length in (211, 503):
        q, k, v = sequence(length)
        state = after(start(features, lag), [q, k, v])
        watched = [weakref.ref(x) for x in (q, k, v)]
        storages = {x.untyped_storage().data_ptr(): x.untyped_storage().nbytes() for x in tensors(state)}
        del q, k, v
        assert [ref() for ref in watched] == [None] * 3
        held.append(sum(storages.values()))
        assert held[-1] == state.nbytes
    assert held[0] == held[1]
