"""Multi-head, grouped and multi-query attention are one function of their weights, around every form of attention."""

import math
import re

import pytest
import torch
from torch import Tensor

from likewise.attention import (
    Exponential,
    Kernel,
    Linear,
    MultiHeadAttention,
    Positive,
    Softmax,
    softmax_attention,
)
from tests.attention.drawing import Drawn, assert_same, seeded
from tests.attention.modules import (
    ATTENDS,
    DIM,
    B,
    G,
    H,
    K,
    T,
    V,
    build,
    by_head,
    drawn,
    parameter_gradients,
    tokens,
)
from tests.tolerance import assert_close

BOTH_FORMS = pytest.mark.usefixtures("both_forms")
EVERY_ATTEND = pytest.mark.parametrize("attend", ATTENDS)
LINEAR = [name for name in ATTENDS if isinstance(ATTENDS[name](), Linear)]
DIRECTIONS = pytest.mark.parametrize("causal", [False, True], ids=["bidirectional", "causal"])


def by_hand(module: MultiHeadAttention, x: Tensor, context: Tensor, allowed: Tensor) -> Tensor:
    """Softmax attention of a multi-head module in einsums; allowed broadcasts to (B, H, T, S)."""
    w_q, w_k, w_v, w_o = by_head(module)
    q = torch.einsum("btd,hkd->bhtk", x, w_q)
    k = torch.einsum("bsd,hkd->bhsk", context, w_k)
    v = torch.einsum("bsd,hvd->bhsv", context, w_v)
    logits = torch.einsum("bhtk,bhsk->bhts", q, k) / math.sqrt(q.shape[-1])
    weights = logits.masked_fill(~allowed, -torch.inf).softmax(dim=-1)
    out = torch.einsum("bhts,bhsv->bhtv", weights, v)
    return torch.einsum("bhtv,dhv->btd", out, w_o)


@pytest.mark.parametrize("value_width", [K, V, 2 * K], ids=["as keys", "own", "twice the model"])
@DIRECTIONS
def test_multi_head_is_its_einsums(value_width: int, causal: bool) -> None:
    module, x = build(kv_heads=H, value_width=value_width), tokens()
    ones = torch.ones(T, T, dtype=torch.bool)
    actual, expected = module(x, causal=causal), by_hand(module, x, x, ones.tril() if causal else ones)
    assert_same([actual], [expected])
    assert_same(parameter_gradients(module, actual), parameter_gradients(module, expected))


def test_values_of_twice_the_width_split_by_their_own() -> None:
    module = drawn(MultiHeadAttention(16, num_heads=4, value_dim=32).to(Drawn.dtype))
    assert (module.head_key_dim, module.head_value_dim) == (4, 8)
    shapes = [tuple(w.weight.shape) for w in (module.w_q, module.w_k, module.w_v, module.w_o)]
    assert shapes == [(16, 16), (16, 16), (32, 16), (16, 32)]
    joined: list[Tensor] = []
    module.w_o.register_forward_pre_hook(lambda _, inputs: joined.append(inputs[0]))
    x = tokens(width=16)
    assert_same([module(x)], [by_hand(module, x, x, torch.ones(T, T, dtype=torch.bool))])
    assert joined[0].shape == (B, T, 32)


def test_the_scale_is_that_of_keys_whatever_the_values() -> None:
    x = tokens()
    for value_width in (V, 2 * K):
        module = build(kv_heads=H, value_width=value_width)
        module.attend = Softmax(scale=1 / math.sqrt(K))
        scaled = module(x)
        module.attend = Softmax()
        assert_close(module(x), scaled)
        module.attend = Softmax(scale=1 / math.sqrt(value_width))
        assert not torch.allclose(module(x), scaled, rtol=1e-3)


def test_biases_are_added_to_every_projection() -> None:
    module, x = build(bias=True), tokens()
    by_name = dict(module.named_parameters())
    q, k, v = (
        (x @ by_name[f"{name}.weight"].T + by_name[f"{name}.bias"]).unflatten(-1, (heads, -1)).transpose(1, 2)
        for name, heads in (("w_q", H), ("w_k", G), ("w_v", G))
    )
    out = softmax_attention(q, k, v).transpose(1, 2).flatten(2)
    assert_same([module(x)], [out @ by_name["w_o.weight"].T + by_name["w_o.bias"]])
    assert "w_q.bias" not in dict(build().named_parameters())


def repeated(module: MultiHeadAttention, attend: str) -> MultiHeadAttention:
    """The multi-head module whose every query head has a copy of its key-value head's weights."""
    multi = build(attend, kv_heads=H)
    with torch.no_grad():
        for name in ("w_q", "w_o"):
            multi.get_submodule(name).load_state_dict(module.get_submodule(name).state_dict())
        _, w_k, w_v, _ = by_head(module)
        repeats = H // module.num_kv_heads
        multi.w_k.weight.copy_(w_k.repeat_interleave(repeats, dim=0).flatten(0, 1))
        multi.w_v.weight.copy_(w_v.repeat_interleave(repeats, dim=0).flatten(0, 1))
    return multi


@BOTH_FORMS
@EVERY_ATTEND
@pytest.mark.parametrize("kv_heads", [1, G], ids=["multi-query", "grouped"])
@DIRECTIONS
def test_multi_query_is_multi_head_with_repeated_keys_and_values(attend: str, kv_heads: int, causal: bool) -> None:
    few = build(attend, kv_heads=kv_heads)
    many, x = repeated(few, attend), tokens()
    out, out_many = few(x, causal=causal), many(x, causal=causal)
    assert_same([out], [out_many])
    gradients, gradients_many = parameter_gradients(few, out), parameter_gradients(many, out_many)
    for index, width in ((1, K), (2, V)):  # a shared weight gets the sum of what its copies get
        copies = gradients_many[index].view(kv_heads, H // kv_heads, width, DIM)
        gradients_many[index] = copies.sum(1).flatten(0, 1)
    assert_same(gradients, gradients_many)


@BOTH_FORMS
@EVERY_ATTEND
@DIRECTIONS
def test_wide_values_change_nothing_but_the_width(attend: str, causal: bool) -> None:
    narrow, wide, x = build(attend, value_width=V), build(attend, value_width=V + 6), tokens()
    wide.w_q, wide.w_k = narrow.w_q, narrow.w_k
    columns: list[Tensor] = []
    for module in (narrow, wide):
        module.w_o.register_forward_pre_hook(lambda _, inputs: columns.append(inputs[0].unflatten(-1, (H, -1))))
    with torch.no_grad():
        wide.w_v.weight.view(G, V + 6, DIM)[:, :V] = narrow.w_v.weight.view(G, V, DIM)
        wide.w_o.weight.view(DIM, H, V + 6)[:, :, :V] = narrow.w_o.weight.view(DIM, H, V)
        wide.w_o.weight.view(DIM, H, V + 6)[:, :, V:] = 0
    assert_same([wide(x, causal=causal)], [narrow(x, causal=causal)])
    assert_same([columns[0][..., :V]], [columns[1]])


@pytest.mark.parametrize("length", [5, T, 17])
def test_cross_attention_is_its_einsums(length: int) -> None:
    module, x, context = build(kv_heads=H), tokens(), tokens(length, seed=1)
    mask = torch.rand(B, length, generator=seeded(2)) > 0.4
    mask[:, 0] = True
    both = torch.ones(T, length, dtype=torch.bool)
    assert_same([module(x, context)], [by_hand(module, x, context, both)])
    assert_same([module(x, context, mask=mask)], [by_hand(module, x, context, mask[:, None, None])])
    lower_right = both.tril(length - T)
    rows = slice(max(T - length, 0), None)  # rows before the first key see nothing
    expected = by_hand(module, x[:, rows], context, lower_right[rows])
    actual = module(x, context, causal=True)
    assert_same([actual[:, rows]], [expected])
    assert (actual[:, : max(T - length, 0)] == 0).all()


@BOTH_FORMS
@EVERY_ATTEND
@DIRECTIONS
def test_attending_to_oneself_is_attending_to_a_context(attend: str, causal: bool) -> None:
    module, x = build(attend), tokens()
    assert_same([module(x, causal=causal)], [module(x, x.clone(), causal=causal)])


@BOTH_FORMS
@EVERY_ATTEND
def test_structure_reaches_the_attention(attend: str) -> None:
    module, x = build(attend), tokens()
    everything, causal = module(x), module(x, causal=True)
    lengths = torch.tensor([0, T])
    prefix = module(x, causal=True, prefix_lengths=lengths)
    assert_same([prefix[0], prefix[1]], [causal[0], everything[1]])
    assert_same([module(x, causal=True, block_size=T)], [everything])
    blocks = torch.cat([module(x[:, :5], x[:, :5]), module(x[:, 5:10], x[:, :10]), module(x[:, 10:], x)], dim=1)
    assert_same([module(x, causal=True, block_size=5)], [blocks])
    ids = torch.tensor([[3] * 5 + [1] * (T - 5)]).expand(B, T)
    for direction in (False, True):
        apart = torch.cat([module(x[:, :5], causal=direction), module(x[:, 5:], causal=direction)], dim=1)
        assert_same([module(x, causal=direction, sequence_ids=ids)], [apart])


@pytest.mark.parametrize("attend", [name for name in ATTENDS if name not in LINEAR])
def test_a_mask_over_pairs_reaches_the_exact_forms(attend: str) -> None:
    module, x = build(attend), tokens()
    lower = torch.ones(T, T, dtype=torch.bool).tril()[None, None]
    assert_same([module(x, mask=lower)], [module(x, causal=True)])


def padding() -> tuple[Tensor, Tensor]:
    """x with NaN, and one infinity, in positions at either end, and the mask that says so."""
    mask = torch.ones(B, T, dtype=torch.bool)
    mask[0, -4:], mask[1, :3] = False, False
    x = tokens().masked_fill(~mask[:, :, None], torch.nan)
    x[0, -1, 0] = torch.inf
    return x, mask


@BOTH_FORMS
@EVERY_ATTEND
@DIRECTIONS
def test_padding_is_as_if_it_were_not_there(attend: str, causal: bool) -> None:
    module, (x, mask) = build(attend, bias=True), padding()
    out = module(x, causal=causal, mask=mask)
    alone = [module(x[:1, :-4], causal=causal), module(x[1:, 3:], causal=causal)]
    assert_same([out[:1, :-4], out[1:, 3:]], alone)
    valid = out.masked_fill(~mask[:, :, None], 0)
    expected = torch.zeros_like(out)
    expected[:1, :-4], expected[1:, 3:] = alone
    assert_same(parameter_gradients(module, valid), parameter_gradients(module, expected))


@BOTH_FORMS
@EVERY_ATTEND
def test_padding_in_a_context_is_as_if_it_were_not_there(attend: str) -> None:
    module, (context, mask), x = build(attend, bias=True), padding(), tokens(7, seed=1)
    out = module(x, context, mask=mask)
    expected = torch.cat([module(x[:1], context[:1, :-4]), module(x[1:], context[1:, 3:])])
    assert_same([out], [expected])
    assert_same(parameter_gradients(module, out), parameter_gradients(module, expected))


def test_only_values_and_what_follows_learn_through_argmax() -> None:
    module = build("Argmax")
    queries, keys, values, outputs = parameter_gradients(module, module(tokens(), causal=True))
    assert (queries == 0).all()
    assert (keys == 0).all()
    assert (values != 0).any()
    assert (outputs != 0).any()


def test_weights_are_dropped_in_training_only() -> None:
    module, x = build(), tokens()
    plain = module(x)
    module.attend = Softmax(dropout=0.5)
    assert not torch.allclose(module(x), plain)
    assert torch.equal(module.eval()(x), plain)


def test_softmax_is_the_default_and_the_exponential_kernel() -> None:
    module, x = drawn(MultiHeadAttention(DIM, num_heads=H).to(Drawn.dtype)), tokens()
    assert isinstance(module.attend, Softmax)
    expected = module(x, causal=True)
    module.attend = Kernel(Exponential())
    assert_same([module(x, causal=True)], [expected])


def test_a_state_dict_carries_the_frequencies() -> None:
    def made(seed: int) -> MultiHeadAttention:
        features = Positive(K, num_features=17, kv_heads=G, generator=seeded(seed))
        return drawn(
            MultiHeadAttention(DIM, num_heads=H, num_kv_heads=G, attend=Linear(features)).to(Drawn.dtype), seed
        )

    one, other, x = made(1), made(2), tokens()
    names = {"w_q.weight", "w_k.weight", "w_v.weight", "w_o.weight", "attend.features.frequencies"}
    assert names <= set(one.state_dict())
    assert one.state_dict()["attend.features.frequencies"].shape == (G, 17, K)
    assert not torch.allclose(one(x), other(x))
    other.load_state_dict(one.state_dict())
    assert torch.equal(one(x), other(x))
    _, cache = one.decode(x, one.empty_cache(batch=B))
    assert torch.equal(other.decode(x, cache)[0], one.decode(x, cache)[0])  # the same projection, so it may go on


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("attend", ["Softmax", "Gaussian", "Elu", "Positive"])
def test_a_module_works_in_its_dtype(attend: str, dtype: torch.dtype) -> None:
    module = build(attend).double()
    frequencies = {name: x.clone() for name, x in module.named_buffers() if name.endswith("frequencies")}
    module = module.to(dtype)  # rounds the parameters; the float64 module has the rounded ones too
    exact = build(attend).double()
    for parameter, rounded in zip(exact.parameters(), module.parameters(), strict=True):
        parameter.data.copy_(rounded)
    x = tokens().to(dtype)
    out = module(x, causal=True)
    assert out.dtype == dtype
    # Outputs are sums of both signs of H * V terms of order 0.1; bfloat16 rounds q, k, v and the joined values too.
    assert_close(out, exact(x.double(), causal=True), atol=1e-5 if dtype == torch.float32 else 1e-2)
    for name, before in frequencies.items():
        assert_close(dict(module.named_buffers())[name].double(), before)


@pytest.mark.usefixtures("without_shape_checks")
def test_input_of_another_dtype_is_refused() -> None:
    module = MultiHeadAttention(6, num_heads=2)
    message = "x must have the dtype and device of the weights, torch.float32 on cpu; got torch.float64 on cpu."
    with pytest.raises(ValueError, match=f"^MultiHeadAttention: {re.escape(message)}$"):
        module(torch.ones(1, 2, 6, dtype=torch.float64))


def test_a_scale_is_refused_where_it_is_given() -> None:
    with pytest.raises(ValueError, match=r"^Softmax: scale must be a positive number; got -1\.0\.$"):
        Softmax(scale=-1.0)
