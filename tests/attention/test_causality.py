"""A causal row does not depend on later keys and values, not by a bit, and passes no gradient to them."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor

from likewise.attention import (
    Exponential,
    Polynomial,
    argmax_attention,
    kernel_attention,
    linear_attention,
    softmax_attention,
)
from tests.attention import brute
from tests.attention.drawing import Inputs, Sizes, draw, seeded, with_gradients
from tests.tolerance import assert_close

Attend = Callable[..., Tensor]
Change = Callable[[Tensor], Tensor]
K, T = 5, 29
LINEAR: dict[str, Attend] = {
    name: partial(linear_attention, features=row.make(K, 3, seeded(1)), chunk_size=8)
    for name, row in brute.MAPS.items()
}
EXACT: dict[str, Attend] = {
    "softmax": softmax_attention,
    "argmax": argmax_attention,
    "exponential kernel": partial(kernel_attention, kernel=Exponential()),
    "polynomial kernel": partial(kernel_attention, kernel=Polynomial()),
}
FORMS = LINEAR | EXACT
EVERY_FORM = pytest.mark.parametrize("attend", FORMS.values(), ids=FORMS)
BOTH_FORMS = pytest.mark.usefixtures("both_forms")
EVERY_MAP = pytest.mark.parametrize("attend", LINEAR.values(), ids=LINEAR)
LOG_MAPS = pytest.mark.parametrize("name", brute.LOGARITHMIC)
DTYPES = pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
CUTS = (1, 8, 9, 20)  # inside chunks of 8 and at their edges
CHANGES: dict[str, tuple[str, Change]] = {
    "keys times 8": ("k", lambda x: x * 8),
    "keys and values times 100": ("kv", lambda x: x * 100),
    "keys times -1e6": ("k", lambda x: x * -1e6),
    "values times -1e6": ("v", lambda x: x * -1e6),
    "other keys and values": ("kv", lambda x: x.roll(1, dims=-1) + 1),
}


def changed(inputs: Inputs, start: int, which: str, change: Change) -> Inputs:
    """The inputs with keys, values or both changed from a position on."""
    q, k, v = (x.clone() for x in inputs)
    for name, x in (("k", k), ("v", v)):
        if name in which:
            x[:, :, start:] = change(x[:, :, start:])
    return q, k, v


def assert_earlier_rows_keep_their_bits(
    attend: Attend, inputs: Inputs, structure: dict[str, Any] | None = None, cuts: tuple[int, ...] = CUTS
) -> None:
    """Change what stands at and after each row of `cuts`: rows before give the same bits."""
    causal = partial(attend, causal=True, **structure or {})
    past = inputs[1].shape[2] - inputs[0].shape[2]
    before = causal(*inputs)
    for cut in cuts:
        for name, (which, change) in CHANGES.items():
            after = causal(*changed(inputs, past + cut, which, change))
            assert torch.equal(after[:, :, :cut], before[:, :, :cut]), f"{name} from row {cut} on"
        # The last change is one that no map is blind to: the comparison can fail.
        assert not torch.equal(after[:, :, cut:], before[:, :, cut:])


@BOTH_FORMS
@EVERY_FORM
def test_later_keys_and_values_change_no_bit(attend: Attend) -> None:
    assert_earlier_rows_keep_their_bits(attend, draw(Sizes(T=T, S=T), seeded(3), dtype=torch.float32))


@BOTH_FORMS
@pytest.mark.parametrize("name", ["Elu", "SoftmaxFourier", "Positive", "softmax"])
@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_later_keys_and_values_change_no_bit_in_any_dtype(name: str, dtype: torch.dtype) -> None:
    assert_earlier_rows_keep_their_bits(FORMS[name], draw(Sizes(T=T, S=T), seeded(43), dtype=dtype))


@BOTH_FORMS
@EVERY_MAP
def test_later_keys_and_values_change_no_bit_behind_a_past(attend: Attend) -> None:
    inputs = draw(Sizes(T=T, S=T + 5), seeded(5), dtype=torch.float32)
    assert_earlier_rows_keep_their_bits(attend, inputs, cuts=(1, 9))


@BOTH_FORMS
@EVERY_MAP
def test_later_keys_and_values_change_no_bit_beside_padding(attend: Attend) -> None:
    mask = torch.rand(2, T, generator=seeded(7)) > 0.3
    mask[0, :9] = False  # a chunk and one key without anything to measure by
    mask[:, -1] = True
    inputs = draw(Sizes(T=T, S=T), seeded(11), dtype=torch.float32)
    assert_earlier_rows_keep_their_bits(attend, inputs, {"mask": mask}, cuts=(1, 9, 12))


@BOTH_FORMS
@EVERY_MAP
def test_later_keys_and_values_of_a_packed_sequence_change_no_bit(attend: Attend) -> None:
    ids = torch.tensor([[1] * 3 + [2] * 26, [0] * 29])
    inputs = draw(Sizes(T=T, S=T), seeded(13), dtype=torch.float32)
    assert_earlier_rows_keep_their_bits(attend, inputs, {"sequence_ids": ids}, cuts=(4, 12))


@BOTH_FORMS
@pytest.mark.slow
@EVERY_MAP
@pytest.mark.parametrize(
    "structure", [{"block_size": 4}, {"block_size": 11}, {"prefix_lengths": torch.tensor([3, 11])}]
)
def test_later_blocks_and_what_follows_a_prefix_change_no_bit(attend: Attend, structure: dict[str, Any]) -> None:
    inputs = draw(Sizes(T=T, S=T), seeded(17), dtype=torch.float32)
    cuts = (8, 20) if structure.get("block_size") == 4 else (11, 22)  # where blocks begin, behind the prefixes
    assert_earlier_rows_keep_their_bits(attend, inputs, structure, cuts)


@BOTH_FORMS
@pytest.mark.parametrize("name", ["Elu", "SoftmaxFourier", "Positive"])
def test_later_keys_and_values_change_no_bit_with_the_default_chunk(name: str) -> None:
    attend = partial(linear_attention, features=brute.MAPS[name].make(K, 1, seeded(19)))
    inputs = draw(Sizes(B=1, G=1, T=151, S=157), seeded(23), dtype=torch.float32)
    assert_earlier_rows_keep_their_bits(attend, inputs, cuts=(1, 63, 64, 65, 130))


@BOTH_FORMS
@LOG_MAPS
@DTYPES
def test_later_keys_that_jump_change_no_bit(name: str, dtype: torch.dtype) -> None:
    """Early keys have tiny features, so that ordinary later ones exceed them by hundreds of logarithms."""
    attend = partial(linear_attention, features=brute.MAPS[name].make(K, 1, seeded(29)), chunk_size=8)
    q, k, v = draw(Sizes(G=1, T=T, S=T), seeded(31), dtype=dtype)
    far, near = (k * 0.1, k * 50) if name == "SoftmaxFourier" else (k * 50, k * 0.1)
    before = attend(q, far, v, causal=True)
    for cut in (1, 3, 7, 8, 9, 20):
        for keys in (near, k):
            later = torch.cat([far[:, :, :cut], keys[:, :, cut:]], dim=2)
            assert torch.equal(attend(q, later, v, causal=True)[:, :, :cut], before[:, :, :cut])


@BOTH_FORMS
@EVERY_MAP
@pytest.mark.parametrize(
    "structure", [{}, {"block_size": 4}, {"sequence_ids": torch.arange(T).div(12).long().expand(2, T)}]
)
def test_other_sequences_and_heads_change_no_bit(attend: Attend, structure: dict[str, Any]) -> None:
    causal = partial(attend, causal=True, **structure)
    inputs = draw(Sizes(T=T, S=T), seeded(41), dtype=torch.float32)
    before = causal(*inputs)
    for factor in (8.0, 50.0, 0.02):
        q, k, v = (x.clone() for x in inputs)
        k[1] *= factor
        k[0, 2] *= factor
        assert torch.equal(causal(q, k, v)[0, :4], before[0, :4])  # key-value heads 0 and 1 serve query heads 0 to 3


@BOTH_FORMS
@EVERY_FORM
@pytest.mark.parametrize("cut", [1, 9, 16])
def test_earlier_rows_pass_no_gradient_to_later_keys_and_values(attend: Attend, cut: int) -> None:
    inputs = draw(Sizes(T=T, S=T), seeded(37), dtype=torch.float32)
    causal = partial(attend, causal=True)
    clean = with_gradients(causal, *inputs, rows=slice(0, cut))
    _, grad_q, grad_k, grad_v = clean
    for grad in (grad_q, grad_k, grad_v):
        assert torch.equal(grad[:, :, cut:], torch.zeros_like(grad[:, :, cut:]))
    assert (grad_v[:, :, :cut] != 0).any()
    for which, change in list(CHANGES.values())[1:3]:
        results = with_gradients(causal, *changed(inputs, cut, which, change), rows=slice(0, cut))
        assert torch.equal(results[0], clean[0])
        for one, other in zip(results[1:], clean[1:], strict=True):
            assert torch.equal(one[:, :, cut:], torch.zeros_like(one[:, :, cut:]))
            # The rest may round differently: a piece in which a key jumps is differentiated in another way.
            # With one key in sight all but the gradient of v is 0 in exact arithmetic, a difference of terms that a
            # small denominator of a signed map makes large: hence the largest of all, to float32's five digits.
            assert_close(one, other, atol=1e-5 * max(x.abs().max().item() for x in clean[1:]))
