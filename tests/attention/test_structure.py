"""Packed sequences, prefix-LM and block-causal structure, in the linear and the exact forms, against dense masks."""

from functools import partial
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from likewise.attention import (
    Elu,
    Exponential,
    Positive,
    argmax_attention,
    kernel_attention,
    linear_attention,
    softmax_attention,
)
from likewise.attention.masks import Structure, sees_something, visible
from tests.attention import brute
from tests.attention.drawing import SMALL, Inputs, Sizes, assert_same, both, draw, seeded, structures, with_gradients

KINDS = ("packed", "prefix", "block")
EVERY_KIND = pytest.mark.parametrize("kind", KINDS)
BOTH_FORMS = pytest.mark.usefixtures("both_forms")
EVERY_MAP = pytest.mark.parametrize("name", brute.MAPS)
OF_EACH_SORT = pytest.mark.parametrize("name", ["Elu", "Relu", "SoftmaxFourier", "Positive"])
FORMS = {
    "softmax": softmax_attention,
    "argmax": argmax_attention,
    "kernel": partial(kernel_attention, kernel=Exponential()),
    "plain": partial(linear_attention, features=Elu()),
    "log": partial(linear_attention, features=Positive(5, num_features=11, generator=seeded(1))),
}
EVERY_FORM = pytest.mark.parametrize("attend", FORMS.values(), ids=FORMS)


@st.composite
def packs(draw: st.DrawFn, batch: int, positions: int) -> Tensor:
    """ids (B, S): runs of random lengths whose labels come in no order."""
    rows = []
    for _ in range(batch):
        edges = draw(st.sets(st.integers(1, max(positions - 1, 1)), max_size=4))
        lengths = [b - a for a, b in zip([0, *sorted(edges)], [*sorted(edges), positions], strict=True)]
        labels = draw(st.permutations([-3, 0, 5, 8, 11]))
        rows.append([label for label, length in zip(labels, lengths, strict=False) for _ in range(length)])
    return torch.tensor(rows).view(batch, positions)


@st.composite
def problems(draw: st.DrawFn, kind: str) -> tuple[Sizes, dict[str, Any], int]:
    """Sizes, a structure of this kind, with or without padding, and a seed."""
    sizes = Sizes(
        B=draw(st.sampled_from([1, 2, 3])),
        G=draw(st.sampled_from([1, 2])),
        repeats=draw(st.sampled_from([1, 3])),
        T=draw(st.sampled_from([1, 2, 5, 11, 17])),
        S=draw(st.sampled_from([1, 2, 5, 11, 17])),
        K=3,
        V=2,
    )
    structure: dict[str, Any] = {"causal": True}
    if kind == "packed":
        sizes = sizes._replace(T=min(sizes.T, sizes.S))
        structure = {"causal": draw(st.booleans()), "sequence_ids": draw(packs(sizes.B, sizes.S))}
    elif kind == "prefix":
        lengths = draw(st.lists(st.integers(0, sizes.S), min_size=sizes.B, max_size=sizes.B))
        structure["prefix_lengths"] = torch.tensor(lengths)
    elif kind == "none":
        structure["causal"] = draw(st.booleans())
    else:
        structure["block_size"] = draw(st.sampled_from([1, 2, 3, 5, 16, 23]))
    seed = draw(st.integers(0, 2**32))
    if draw(st.booleans()):
        structure["mask"] = torch.rand(sizes.B, sizes.S, generator=seeded(seed)) > 0.3
    return sizes, structure, seed


@BOTH_FORMS
@pytest.mark.slow
@EVERY_KIND
@OF_EACH_SORT
@settings(max_examples=15)
@given(data=st.data(), chunk_size=st.sampled_from([1, 2, 3, 7, None]))
def test_structured_linear_attention_is_brute_force(
    kind: str, name: str, data: st.DataObject, chunk_size: int | None
) -> None:
    sizes, structure, seed = data.draw(problems(kind))
    features = brute.MAPS[name].make(sizes.K, 1, seeded(seed))
    assert_same(*both(name, features, draw(sizes, seeded(seed), size=SMALL), structure, chunk_size))


@EVERY_KIND
@settings(max_examples=15)
@given(data=st.data())
def test_structured_softmax_is_brute_force(kind: str, data: st.DataObject) -> None:
    sizes, structure, seed = data.draw(problems(kind))
    inputs = draw(sizes, seeded(seed))
    plain = with_gradients(lambda *x: brute.kernel(brute.exponential(None), *x, structure), *inputs)
    assert_same(with_gradients(partial(softmax_attention, **structure), *inputs), plain)
    assert_same(with_gradients(partial(kernel_attention, kernel=Exponential(), **structure), *inputs), plain)


@BOTH_FORMS
@pytest.mark.slow
@EVERY_MAP
@pytest.mark.parametrize("kind", structures(3))
def test_every_map_is_brute_force_under_every_structure(name: str, kind: str) -> None:
    features = brute.MAPS[name].make(5, 3, seeded(3))
    assert_same(*both(name, features, draw(Sizes(T=11), seeded(5), size=SMALL), structures(11)[kind], 4))


@BOTH_FORMS
@pytest.mark.parametrize("name", ["Elu", "Positive"])
@pytest.mark.parametrize("kind", KINDS)
def test_structure_is_brute_force_beyond_every_default_chunk(name: str, kind: str) -> None:
    S = 541
    structure: dict[str, Any] = {
        "packed": {"sequence_ids": torch.tensor([[7] * 3 + [2] * 311 + [4] * 227])},
        "prefix": {"causal": True, "prefix_lengths": torch.tensor([149])},
        "block": {"causal": True, "block_size": 37},
    }[kind]
    features = brute.MAPS[name].make(3, 1, seeded(7))
    inputs = draw(Sizes(B=1, G=1, T=S - 2, S=S, K=3, V=2), seeded(11), size=SMALL)
    assert_same(*both(name, features, inputs, structure))


@EVERY_KIND
@settings(max_examples=15)
@given(data=st.data())
def test_the_dense_mask_is_the_definition(kind: str, data: st.DataObject) -> None:
    sizes, structure, seed = data.draw(problems(kind))
    q, k, _ = draw(sizes, seeded(seed))
    dense = visible(sizes.T, sizes.S, Structure(**structure), q.device)
    dense = torch.ones(1, 1, 1, 1, dtype=torch.bool) if dense is None else dense  # None: every pair may attend
    assert torch.equal(dense.expand(sizes.B, q.shape[1], sizes.T, sizes.S), brute.allowed(q, k, structure))


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["none", *KINDS])
@settings(max_examples=15)
@given(data=st.data())
def test_rows_that_see_something_are_those_of_the_definition(kind: str, data: st.DataObject) -> None:
    sizes, structure, seed = data.draw(problems(kind))
    q, k, _ = draw(sizes, seeded(seed))
    structure["mask"] = torch.rand(sizes.B, sizes.S, generator=seeded(seed)) > 0.8
    awake = sees_something(sizes.T, sizes.S, Structure(**structure))
    assert torch.equal(awake, brute.allowed(q, k, structure)[:, 0].any(-1))


def test_no_structure_needs_no_dense_mask() -> None:
    assert visible(3, 5, Structure(), torch.device("cpu")) is None


@BOTH_FORMS
@EVERY_FORM
def test_one_sequence_is_no_pack(attend: partial[Tensor]) -> None:
    inputs = draw(Sizes(), seeded(13))
    for causal in (False, True):
        alone = attend(*inputs, causal=causal)
        assert_same([attend(*inputs, causal=causal, sequence_ids=torch.full((2, 11), 6))], [alone])


@BOTH_FORMS
@EVERY_FORM
def test_sequences_of_one_position_return_their_values(attend: partial[Tensor]) -> None:
    q, k, v = draw(Sizes(G=1, T=7), seeded(17))
    for causal in (False, True):
        out = attend(q, k, v, causal=causal, sequence_ids=torch.arange(11).expand(2, 11))
        assert_same([out], [v[:, :, 4:].expand(2, 2, 7, 13)])


@EVERY_FORM
def test_a_prefix_of_nothing_is_causal_and_of_everything_bidirectional(attend: partial[Tensor]) -> None:
    inputs = draw(Sizes(), seeded(19))
    out = attend(*inputs, causal=True, prefix_lengths=torch.tensor([0, 11]))
    assert_same([out[0], out[1]], [attend(*inputs, causal=True)[0], attend(*inputs)[1]])


@EVERY_FORM
def test_blocks_of_one_are_causal_and_one_block_is_bidirectional(attend: partial[Tensor]) -> None:
    inputs = draw(Sizes(), seeded(23))
    assert_same([attend(*inputs, causal=True, block_size=1)], [attend(*inputs, causal=True)])
    for block_size in (11, 12, 1000):
        assert_same([attend(*inputs, causal=True, block_size=block_size)], [attend(*inputs)])


# What a sequence gets does not depend on its company.

LENGTHS = {"alone": [5], "first": [5, 7, 3], "between": [2, 5, 11], "last": [13, 1, 5]}


def packed(middle: Inputs, lengths: list[int], seed: int, *, size: float = 1.0) -> tuple[Inputs, Tensor, slice]:
    """A sequence of 5 positions among others of these lengths, the ids, and where it stands."""
    start = sum(lengths[: lengths.index(5)])
    q, k, v = draw(Sizes(T=sum(lengths), S=sum(lengths)), seeded(seed), size=size)
    here = slice(start, start + 5)
    for whole, part in zip((q, k, v), middle, strict=True):
        whole[:, :, here] = part
    ids = torch.repeat_interleave(torch.arange(len(lengths)), torch.tensor(lengths)).expand(2, -1)
    return (q, k, v), ids, here


@BOTH_FORMS
@EVERY_FORM
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("place", LENGTHS)
def test_a_packed_sequence_is_the_sequence_alone(attend: partial[Tensor], causal: bool, place: str) -> None:
    sequence = draw(Sizes(T=5, S=5), seeded(29))
    inputs, ids, here = packed(sequence, LENGTHS[place], 31)
    alone = with_gradients(partial(attend, causal=causal), *sequence)
    out, *grads = with_gradients(partial(attend, causal=causal, sequence_ids=ids), *inputs, rows=here)
    assert_same([out, *[grad[:, :, here] for grad in grads]], alone)
    for grad in grads:
        elsewhere = torch.ones(grad.shape[2], dtype=torch.bool)
        elsewhere[here] = False
        assert (grad[:, :, elsewhere] == 0).all()


@BOTH_FORMS
@EVERY_FORM
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("place", ["first", "between", "last"])
def test_neighbours_in_a_pack_change_no_bit(attend: partial[Tensor], causal: bool, place: str) -> None:
    sequence = draw(Sizes(T=5, S=5), seeded(37))
    outputs = []
    for seed, size in ((41, 1.0), (43, 50.0), (47, 0.01)):
        inputs, ids, here = packed(sequence, LENGTHS[place], seed, size=size)
        outputs.append(attend(*inputs, causal=causal, sequence_ids=ids)[:, :, here])
    assert torch.equal(outputs[0], outputs[1])
    assert torch.equal(outputs[0], outputs[2])


@BOTH_FORMS
@EVERY_FORM
@pytest.mark.parametrize("kind", structures(3))
def test_the_rest_of_the_batch_changes_nothing(attend: partial[Tensor], kind: str) -> None:
    inputs, structure = draw(Sizes(T=11), seeded(53)), structures(11)[kind]
    whole = attend(*inputs, **structure)
    for b in range(2):
        part = {key: x[b : b + 1] if isinstance(x, Tensor) else x for key, x in structure.items()}
        assert_same([attend(*[x[b : b + 1] for x in inputs], **part)], [whole[b : b + 1]])
