"""Decoding piece by piece is the causal forward pass, for every form of attention; and what modules refuse."""

import math
import re
from collections.abc import Callable
from typing import Any

import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from torch import Tensor

from likewise.attention import (
    Elu,
    Kernel,
    KeyValueCache,
    Linear,
    LinearState,
    MultiHeadAttention,
    Positive,
    Softmax,
)
from likewise.attention.heads import Cache
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


def decoded(
    module: MultiHeadAttention, x: Tensor, sizes: list[int], mask: Tensor | None = None, lag: int = 0
) -> tuple[Tensor, Cache]:
    """The outputs of x given in pieces of these sizes, then one by one, and the cache after them."""
    cache, outputs, first = module.empty_cache(batch=x.shape[0], lag=lag), [], 0
    for size in [*sizes, *[1] * (x.shape[1] - sum(sizes))]:
        seen = None if mask is None else mask[:, first : first + size]
        out, cache = module.decode(x[:, first : first + size], cache, mask=seen)
        outputs.append(out)
        first += size
    return torch.cat(outputs, dim=1), cache


@pytest.mark.slow
@BOTH_FORMS
@EVERY_ATTEND
@settings(max_examples=2)
@given(sizes=st.lists(st.integers(0, 4), max_size=3), kv_heads=st.sampled_from([1, G, H]))
@example(sizes=[], kv_heads=1)
@example(sizes=[T], kv_heads=G)
def test_decoding_piece_by_piece_is_the_causal_forward(attend: str, sizes: list[int], kv_heads: int) -> None:
    module, x = build(attend, kv_heads=kv_heads), tokens()
    expected = module(x, causal=True)
    out, cache = decoded(module, x, sizes)
    assert cache.length == T
    assert_same([out], [expected])
    assert_same(parameter_gradients(module, out), parameter_gradients(module, expected))


@BOTH_FORMS
@EVERY_ATTEND
def test_decoding_without_gradients_is_the_causal_forward(attend: str) -> None:
    module, x = build(attend), tokens()
    with torch.no_grad():  # exact forms then grow their caches in place
        assert_same([decoded(module, x, [3])[0]], [module(x, causal=True)])


@pytest.mark.slow
@BOTH_FORMS
@EVERY_ATTEND
@pytest.mark.parametrize("sizes", [[], [5, 3], [T]], ids=["one by one", "pieces", "at once"])
def test_decoding_padded_rows_is_decoding_them_alone(attend: str, sizes: list[int]) -> None:
    module = build(attend, bias=True)
    mask = torch.arange(T) >= torch.tensor([[0], [4]])  # a batch of prompts of unequal length is padded on the left
    x = tokens().masked_fill(~mask[:, :, None], torch.nan)
    out, _ = decoded(module, x, sizes, mask)
    alone = module(x[:1], causal=True), module(x[1:, 4:], causal=True)
    assert_same([out[:1], out[1:, 4:]], alone)
    expected = torch.zeros_like(out)
    expected[:1], expected[1:, 4:] = alone
    valid = out.masked_fill(~mask[:, :, None], 0)
    assert_same(parameter_gradients(module, valid), parameter_gradients(module, expected))


@BOTH_FORMS
@EVERY_ATTEND
def test_a_draft_that_is_taken_back_leaves_no_trace(attend: str) -> None:
    module, x, draft = build(attend), tokens(), tokens(4, seed=1)
    _, cache = decoded(module, x[:, :8], [5], lag=4)
    _, longer = module.decode(draft, cache)
    out, after = module.decode(x[:, 8:], longer.rollback(4))
    assert after.length == T
    assert_same([out], [module(x, causal=True)[:, 8:]])
    assert torch.equal(out, module.decode(x[:, 8:], cache)[0])


@pytest.mark.parametrize("kv_heads", [1, G])
def test_decoding_remembers_key_value_heads_only(kv_heads: int) -> None:
    for attend in LINEAR:
        module = build(attend, kv_heads=kv_heads)
        assert isinstance(module.attend, Linear)
        _, cache = decoded(module, tokens(), [5])
        assert isinstance(cache, LinearState)
        assert cache.memory is not None
        if cache.memory.whole is None:  # keys and values are still cheaper than sums
            assert cache.memory.recent.keys.shape == (B, kv_heads, T, K)
        else:
            assert cache.memory.whole.sums.shape == (B, kv_heads, module.attend.features.dim or K, V + 1)
    _, cache = decoded(build(kv_heads=kv_heads), tokens(), [5])
    assert isinstance(cache, KeyValueCache)
    assert cache.keys.shape == (B, kv_heads, T, K)
    assert cache.values.shape == (B, kv_heads, T, V)


def test_a_linear_cache_does_not_grow_and_an_exact_one_does() -> None:
    for attend in ATTENDS:
        module = build(attend)
        # Up to 80 positions the cubic map keeps keys and values: they are fewer numbers than its sums.
        (_, short), (_, long) = (decoded(module, tokens(length), [length]) for length in (81, 243))
        assert long.nbytes == short.nbytes * (1 if attend in LINEAR else 3)


def test_a_multi_query_step_is_the_papers_einsums() -> None:
    b, h, d, k, v = 2, 3, 15, 5, 7  # pairwise different, so that no axis can stand for another
    module = drawn(MultiHeadAttention(d, num_heads=h, num_kv_heads=1, value_dim=h * v).to(Drawn.dtype))
    hkd, gkd, gvd, dhv = by_head(module)
    w_q, w_k, w_v, w_o = hkd.transpose(1, 2), gkd[0].T, gvd[0].T, dhv.transpose(0, 1)
    assert [tuple(w.shape) for w in (w_q, w_k, w_v, w_o)] == [(h, d, k), (d, k), (d, v), (h, d, v)]
    keys, values = torch.zeros(b, 0, k, dtype=Drawn.dtype), torch.zeros(b, 0, v, dtype=Drawn.dtype)
    cache = module.empty_cache(batch=b)
    for n, x in enumerate(tokens(11, batch=b, width=d).unbind(1), start=1):
        q = torch.einsum("bd,hdk->bhk", x, w_q)
        keys = torch.cat([keys, torch.einsum("bd,dk->bk", x, w_k)[:, None]], dim=1)
        values = torch.cat([values, torch.einsum("bd,dv->bv", x, w_v)[:, None]], dim=1)
        logits = torch.einsum("bhk,bnk->bhn", q, keys) / math.sqrt(k)
        out = torch.einsum("bhn,bnv->bhv", logits.softmax(dim=-1), values)
        y = torch.einsum("bhv,hdv->bd", out, w_o)
        ours, cache = module.decode(x[:, None], cache)
        assert_same([ours[:, 0]], [y])
        assert isinstance(cache, KeyValueCache)
        assert cache.keys.shape == (b, 1, n, k)
        assert_close(cache.keys[:, 0], keys)
        assert_close(cache.values[:, 0], values)


def test_later_steps_leave_earlier_gradients_right() -> None:
    for attend in ("Softmax", "Argmax", "Gaussian", "Polynomial"):
        module, x = build(attend), tokens()
        for frozen in (module.w_k, module.w_v):  # the cache then grows in place, between forward and backward
            frozen.requires_grad_(False)
        learned = [module.w_q.weight, module.w_o.weight]
        direction = tokens(seed=3)
        actual = torch.autograd.grad(decoded(module, x, [])[0], learned, direction)
        assert_same(actual, torch.autograd.grad(module(x, causal=True), learned, direction))


@pytest.mark.parametrize("attend", ["Softmax", "Elu", "Positive"])
def test_decoding_in_bfloat16_is_the_causal_forward(attend: str) -> None:
    module, x = build(attend).bfloat16(), tokens().bfloat16()
    out, _ = decoded(module, x, [4])
    assert out.dtype == torch.bfloat16
    assert_close(out, module(x, causal=True))


def wrong_modules() -> dict[str, Callable[[], object]]:
    """By message, modules that cannot be."""
    count = "must be a whole number of at least 1; got"

    def made(**changed: Any) -> MultiHeadAttention:
        options: dict[str, Any] = {"dim": 12, "num_heads": 4} | changed
        return MultiHeadAttention(options.pop("dim"), **options)

    return {
        f"MultiHeadAttention: dim {count} 0.": lambda: made(dim=0),
        f"MultiHeadAttention: num_heads {count} 2.0.": lambda: made(num_heads=2.0),
        f"MultiHeadAttention: num_kv_heads {count} 0.": lambda: made(num_kv_heads=0),
        f"MultiHeadAttention: value_dim {count} -8.": lambda: made(value_dim=-8),
        "MultiHeadAttention: dim must be a multiple of num_heads = 4; got 10.": lambda: made(dim=10),
        "MultiHeadAttention: value_dim must be a multiple of num_heads = 4; got 10.": lambda: made(value_dim=10),
        "MultiHeadAttention: num_kv_heads must divide num_heads = 4; got 3.": lambda: made(num_kv_heads=3),
        "MultiHeadAttention: attend must be a form of attention; got 'softmax'.": lambda: made(attend="softmax"),
        "Kernel: kernel must be a kernel; got 'gaussian'.": lambda: Kernel("gaussian"),  # ty: ignore[invalid-argument-type]
        "Linear: features must be a feature map; got 'elu'.": lambda: Linear("elu"),  # ty: ignore[invalid-argument-type]
        "Linear: dropout must be 0; got 0.1. There are no weights to drop; drop outputs instead.": (
            lambda: Linear(Elu(), dropout=0.1)
        ),
        "Softmax: dropout must be at least 0 and below 1; got 1.0.": lambda: Softmax(dropout=1.0),
    }


def wrong_inputs() -> dict[str, Callable[[], object]]:
    """By message, what modules do not take."""
    x, yes = tokens(), torch.ones(B, T, dtype=torch.bool)
    softmax, linear, gaussian = build(), build("Elu"), build("Gaussian")
    shape = f"must have shape (batch, positions, {DIM}); got"
    pairs, bits = yes[:, None, None], "mask must be bool, True where a key may be seen; got"
    hint = "A mask over pairs of query and key needs softmax_attention or kernel_attention."
    narrow = build("Elu")
    narrow.attend = Linear(Positive(K + 1, num_features=11, generator=seeded(0)))
    return {
        f"MultiHeadAttention: x {shape} (2, 13, 104).": lambda: softmax(x[..., 1:]),
        f"MultiHeadAttention: x {shape} (13, 105).": lambda: softmax(x[0]),
        f"MultiHeadAttention: context {shape} (2, 13, 104).": lambda: softmax(x, x[..., 1:]),
        "softmax_attention: k must have the batch size of q, 2; got 1.": lambda: softmax(x, x[:1]),
        "MultiHeadAttention: mask must have shape (B, S) = (2, 13); got (2, 12).": lambda: softmax(x, mask=yes[:, 1:]),
        f"MultiHeadAttention: {bits} torch.float32.": lambda: softmax(x, mask=yes.float()),
        f"MultiHeadAttention.decode: {bits} torch.int64.": (
            lambda: softmax.decode(x, softmax.empty_cache(), mask=yes.long())
        ),
        f"MultiHeadAttention.decode: mask must have shape (B, S) = (2, 13); got (2, 1, 1, 13). {hint}": (
            lambda: softmax.decode(x, softmax.empty_cache(), mask=pairs)
        ),
        f"linear_attention: mask must have shape (B, S) = (2, 13); got (2, 1, 1, 13). {hint}": (
            lambda: linear(x, mask=pairs)
        ),
        "linear_attention: features must have key_dim = 7, the width of k; got 8.": lambda: narrow(x),
        "Softmax: cache must be a KeyValueCache; got LinearState.": (
            lambda: softmax.decode(x, linear.empty_cache(batch=B))
        ),
        "Kernel: cache must be a KeyValueCache; got LinearState.": (
            lambda: gaussian.decode(x, linear.empty_cache(batch=B))
        ),
        "Linear: cache must be a LinearState; got KeyValueCache.": lambda: linear.decode(x, softmax.empty_cache()),
        "LinearState.prefill: k and v must have the state's (batch, kv_heads, value_dim) (1, 3, 11); got (2, 3, 11).": (
            lambda: linear.decode(x, linear.empty_cache())
        ),
        "LinearState.empty: lag must be a whole number of at least 0; got -1.": lambda: linear.empty_cache(lag=-1),
    }


WRONG: dict[str, Callable[[], dict[str, Callable[[], object]]]] = {
    message: table for table in (wrong_modules, wrong_inputs) for message in table()
}


@pytest.mark.usefixtures("without_shape_checks")
@pytest.mark.parametrize("message", WRONG)
def test_what_modules_do_not_take_is_refused(message: str) -> None:
    use = WRONG[message]()[message]
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        use()


def test_a_cache_of_another_projection_is_refused() -> None:
    modules = [build("Positive"), build("Positive"), build("Hyperbolic")]
    features = Positive(K, num_features=11, generator=seeded(8))
    modules[1].attend = Linear(features)
    _, cache = modules[0].decode(tokens(), modules[0].empty_cache(batch=B))
    for other in modules[1:]:
        with pytest.raises(ValueError, match="projection"):
            other.decode(tokens(), cache)
