"""What stands in padding, even NaN, reaches nothing; rows that see nothing give 0; sizes 0 and 1 work."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor

from likewise.attention import (
    Exponential,
    Gaussian,
    Polynomial,
    argmax_attention,
    kernel_attention,
    linear_attention,
    softmax_attention,
)
from tests.attention import brute
from tests.attention.drawing import SMALL, Inputs, Sizes, assert_same, draw, seeded, with_gradients

Attend = Callable[..., Tensor]
K = 5
FORMS: dict[str, Attend] = {
    "softmax": softmax_attention,
    "argmax": argmax_attention,
    "exponential kernel": partial(kernel_attention, kernel=Exponential()),
    "Gaussian kernel": partial(kernel_attention, kernel=Gaussian()),
    "polynomial kernel": partial(kernel_attention, kernel=Polynomial()),
    **{name: partial(linear_attention, features=row.make(K, 1, seeded(1))) for name, row in brute.MAPS.items()},
}
BOTH_FORMS = pytest.mark.usefixtures("both_forms")
EVERY_FORM = pytest.mark.parametrize("attend", FORMS.values(), ids=FORMS)
DIRECTIONS = pytest.mark.parametrize("causal", [False, True], ids=["bidirectional", "causal"])
SIDES = pytest.mark.parametrize("side", ["left", "right", "scattered"])
HUGE = {torch.float64: 1e300, torch.float32: 1e38}  # the similarities of such a query are beyond the dtype
GARBAGE = (float("nan"), float("inf"), -float("inf"), -1e15)

S = 11
PADDED = {"left": [0, 1, 2], "right": [7, 8, 9, 10], "scattered": [0, 4, 5, 10]}


def padded(side: str) -> tuple[Tensor, list[int]]:
    """A mask (B, S), the same for both rows of the batch, and the positions it keeps."""
    mask = torch.ones(2, S, dtype=torch.bool)
    mask[:, PADDED[side]] = False
    return mask, [j for j in range(S) if j not in PADDED[side]]


def poisoned(inputs: Inputs, where: list[int], garbage: float, *, queries: bool = False) -> Inputs:
    q, k, v = (x.clone() for x in inputs)
    if queries:
        q[:, :, where] = garbage
    k[:, :, where] = garbage
    v[:, :, where] = garbage
    return q, k, v


@BOTH_FORMS
@pytest.mark.slow
@EVERY_FORM
@DIRECTIONS
@SIDES
def test_padded_is_unpadded_whatever_stands_in_the_padding(attend: Attend, causal: bool, side: str) -> None:
    mask, kept = padded(side)
    inputs = draw(Sizes(T=S, S=S), seeded(3), size=SMALL)
    unpadded = with_gradients(partial(attend, causal=causal), *[x[:, :, kept] for x in inputs])

    def rows_kept(*inputs: Tensor) -> Tensor:
        return attend(*inputs, causal=causal, mask=mask)[:, :, kept]

    huge = HUGE[inputs[0].dtype]
    for garbage in (*GARBAGE, huge) if side == "scattered" else (float("nan"), huge):
        queries = garbage != huge
        out, *grads = with_gradients(rows_kept, *poisoned(inputs, PADDED[side], garbage, queries=queries))
        assert_same([out, *[grad[:, :, kept] for grad in grads]], unpadded)
        for grad in grads:
            assert (grad[:, :, PADDED[side]] == 0).all()


@BOTH_FORMS
@EVERY_FORM
def test_a_query_of_padding_that_is_not_finite_says_so(attend: Attend) -> None:
    mask, kept = padded("right")
    for causal, garbage in ((False, float("nan")), (True, float("nan")), (False, float("inf")), (True, float("inf"))):
        inputs = poisoned(draw(Sizes(T=S, S=S), seeded(37), size=SMALL), PADDED["right"], garbage, queries=True)
        out = attend(*inputs, causal=causal, mask=mask)
        assert out[:, :, PADDED["right"]].isnan().all()
        assert out[:, :, kept].isfinite().all()


STRUCTURES: dict[str, dict[str, Any]] = {
    "packed": {"sequence_ids": torch.tensor([[0] * 4 + [1] * 7, [2] * 9 + [1] * 2])},
    "packed causal": {"sequence_ids": torch.tensor([[0] * 4 + [1] * 7, [2] * 9 + [1] * 2]), "causal": True},
    "prefix": {"prefix_lengths": torch.tensor([3, 8]), "causal": True},
    "block": {"block_size": 3, "causal": True},
}


@BOTH_FORMS
@EVERY_FORM
@pytest.mark.parametrize("kind", STRUCTURES)
def test_garbage_in_padding_changes_no_bit_under_structure(attend: Attend, kind: str) -> None:
    side = "scattered"  # at the first key, the last, and between
    mask, _ = padded(side)
    inputs = draw(Sizes(T=7, S=S), seeded(5), size=SMALL)
    masked = partial(attend, mask=mask, **STRUCTURES[kind])
    clean = with_gradients(masked, *poisoned(inputs, PADDED[side], 0.0))
    for garbage in (float("nan"), float("inf")):
        for one, other in zip(with_gradients(masked, *poisoned(inputs, PADDED[side], garbage)), clean, strict=True):
            assert torch.equal(one, other)


@BOTH_FORMS
@EVERY_FORM
@DIRECTIONS
def test_a_fully_padded_sequence_gives_zero_with_gradient_zero(attend: Attend, causal: bool) -> None:
    mask = torch.ones(2, S, dtype=torch.bool)
    mask[1] = False
    inputs = draw(Sizes(S=S), seeded(7), size=SMALL)
    unmasked = with_gradients(partial(attend, causal=causal), *inputs)
    for garbage in (1.0, float("nan"), float("inf")):
        q, k, v = (x.clone() for x in inputs)
        k[1], v[1] = garbage, garbage
        results = with_gradients(partial(attend, causal=causal, mask=mask), q, k, v)
        for result, expected in zip(results, unmasked, strict=True):
            assert torch.equal(result[1], torch.zeros_like(result[1]))
            assert_same([result[0]], [expected[0]])


@BOTH_FORMS
@EVERY_FORM
def test_rows_before_the_first_key_give_zero_with_gradient_zero(attend: Attend) -> None:
    q, k, v = draw(Sizes(T=11, S=7), seeded(11), size=SMALL)
    inputs = q.abs(), k.abs(), v  # so that a relu leaves no row without a key
    out = attend(*inputs, causal=True)
    assert torch.equal(out[:, :, :4], torch.zeros(2, 6, 4, 13, dtype=torch.float64))
    assert (out[:, :, 4:] != 0).any(-1).all()
    for grad in with_gradients(partial(attend, causal=True), *inputs, rows=slice(0, 4))[1:]:
        assert torch.equal(grad, torch.zeros_like(grad))


@BOTH_FORMS
@EVERY_FORM
@DIRECTIONS
def test_rows_that_see_only_padding_give_zero_with_gradient_zero(attend: Attend, causal: bool) -> None:
    ids = torch.tensor([[0] * 3 + [1] * 5 + [2] * 3]).expand(2, S)
    mask = ids != 1
    inputs = poisoned(draw(Sizes(T=S), seeded(13), size=SMALL), [3, 4, 5, 6, 7], float("nan"))
    structured = partial(attend, causal=causal, mask=mask, sequence_ids=ids)
    results = with_gradients(structured, *inputs)
    assert all(result.isfinite().all() for result in results)
    assert torch.equal(results[0][:, :, 3:8], torch.zeros(2, 6, 5, 13, dtype=torch.float64))
    for grad in with_gradients(structured, *inputs, rows=slice(3, 8))[1:]:
        assert torch.equal(grad, torch.zeros_like(grad))


@pytest.mark.parametrize("name", ["softmax", "argmax", "exponential kernel", "Gaussian kernel", "polynomial kernel"])
def test_a_row_masked_pair_by_pair_gives_zero_with_gradient_zero(name: str) -> None:
    mask = torch.ones(2, 1, 7, S, dtype=torch.bool)
    mask[0, :, 3] = False
    mask[1, :, :, 4] = False
    inputs = draw(Sizes(T=7, S=S), seeded(17), size=SMALL)
    inputs[1][1, :, 4] = float("nan")
    inputs[2][1, :, 4] = float("inf")
    masked = partial(FORMS[name], mask=mask)
    results = with_gradients(masked, *inputs)
    assert all(result.isfinite().all() for result in results)
    assert torch.equal(results[0][0, :, 3], torch.zeros(6, 13, dtype=torch.float64))
    assert torch.equal(results[1][0, :, 3], torch.zeros(6, K, dtype=torch.float64))
    assert (results[2][1, :, 4] == 0).all()
    assert (results[3][1, :, 4] == 0).all()


@BOTH_FORMS
@EVERY_FORM
@DIRECTIONS
def test_a_row_that_sees_nothing_does_not_read_its_query(attend: Attend, causal: bool) -> None:
    mask = torch.ones(2, S, dtype=torch.bool)
    mask[1] = False
    q, k, v = draw(Sizes(T=13, S=S), seeded(31), size=SMALL)
    masked = partial(attend, causal=causal, mask=mask)
    clean = with_gradients(masked, q, k, v)
    for garbage in (float("nan"), float("inf")):
        q[1] = garbage
        if causal:
            q[0, :, :2] = garbage  # before the first key
        for one, other in zip(with_gradients(masked, q, k, v), clean, strict=True):
            assert torch.equal(one, other)


SINGLE_AND_EMPTY = [
    Sizes(B=0),
    Sizes(T=0),
    Sizes(S=0),
    Sizes(T=0, S=0),
    Sizes(V=0),
    Sizes(B=1, G=1, repeats=1, T=1, S=1, V=1),
    Sizes(T=1),
    Sizes(S=1),
]


@BOTH_FORMS
@EVERY_FORM
@DIRECTIONS
def test_empty_and_single_sizes_work(attend: Attend, causal: bool) -> None:
    for sizes in SINGLE_AND_EMPTY:
        q, k, v = draw(sizes, seeded(19), size=SMALL)
        inputs = q.abs(), k.abs(), v
        for mask in (None, torch.ones(sizes.B, sizes.S, dtype=torch.bool)):
            out, *grads = with_gradients(partial(attend, causal=causal, mask=mask), *inputs)
            assert out.shape == (sizes.B, sizes.G * sizes.repeats, sizes.T, sizes.V), sizes
            assert [grad.shape for grad in grads] == [x.shape for x in inputs], sizes
            assert all(x.isfinite().all() for x in (out, *grads)), sizes
            if sizes.S == 0:
                assert (out == 0).all(), sizes
            if sizes.S == 1:  # a single key is the whole answer of the rows that see it
                assert_same([out[:, :, -1:]], [v.repeat_interleave(sizes.repeats, dim=1)])


@BOTH_FORMS
@EVERY_FORM
@pytest.mark.parametrize("kind", ["packed", "prefix", "block"])
def test_empty_and_single_sizes_work_under_structure(attend: Attend, kind: str) -> None:
    for sizes in (Sizes(B=0), Sizes(T=0), Sizes(T=0, S=0), Sizes(T=1, S=1)):
        structure: dict[str, Any] = {
            "packed": {"sequence_ids": torch.zeros(sizes.B, sizes.S, dtype=torch.int64)},
            "prefix": {"prefix_lengths": torch.zeros(sizes.B, dtype=torch.int64), "causal": True},
            "block": {"block_size": 3, "causal": True},
        }[kind]
        q, k, v = draw(sizes, seeded(23), size=SMALL)
        inputs = q.abs(), k.abs(), v
        out, *grads = with_gradients(partial(attend, **structure), *inputs)
        assert out.shape == (sizes.B, 6, sizes.T, sizes.V), sizes
        assert [grad.shape for grad in grads] == [x.shape for x in inputs], sizes
        if sizes.S == 1:
            assert_same([out], [v.repeat_interleave(2, dim=1)])


@pytest.mark.parametrize("K", [0, 1])
@pytest.mark.parametrize("name", ["softmax", "argmax", "exponential kernel", "Gaussian kernel", "polynomial kernel"])
def test_keys_of_no_width_are_all_alike(name: str, K: int) -> None:
    q, k, v = draw(Sizes(K=K), seeded(29))
    out, *grads = with_gradients(FORMS[name], q * 0, k * 0, v)
    mean = v[:, :, :1] if name == "argmax" else v.mean(2, keepdim=True)
    assert_same([out], [mean.repeat_interleave(2, dim=1).expand(2, 6, 7, 13)])
    assert [grad.shape for grad in grads] == [q.shape, k.shape, v.shape]
