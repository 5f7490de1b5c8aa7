"""The kernel as operators of torch, with gradients and shapes; gradients of gradients come from the torch form."""

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import torch
from jaxtyping import Float
from torch import Tensor
from torch.autograd import forward_ad
from torch.library import Library

from likewise.attention.chunked import (
    CausalOptions,
    GroupedQKV,
    attend_all,
    attend_both_ways,
    attend_causally,
    attend_packed,
)
from likewise.attention.features import Elu, FeatureMap, Relu, Scaled
from likewise.attention.fitted import Fitted
from likewise.attention.kernels import Exponential
from likewise.attention.native import library
from likewise.attention.prefix import Prefix
from likewise.attention.random_features import Hyperbolic, Positive
from likewise.attention.transforms import has_tangent

ELU, RELU, EXPONENTIALS = range(3)  # as the kernel numbers its maps
DTYPES = (torch.float32, torch.bfloat16)
NO_NUMBERS = (0,) * 10  # addresses
NO_STATES = (None,) * 4


class Exponents(NamedTuple):
    """log phi(x) = W x' + offsets + x'.(slope - curve x') of x' = x - mean; one set for all heads, or one for each."""

    frequencies: Tensor  # (sets, F, K)
    offsets: Tensor  # (sets, F)
    mean: Tensor  # (sets, K)
    slope: Tensor  # (sets, K)
    curve: Tensor  # (sets, K)

    def logarithms(self, x: Float[Tensor, "B G T K"]) -> Float[Tensor, "B G T F"]:
        """log phi of every row."""
        w, (offsets, mean, slope, curve) = self[0].to(x.dtype), (part.to(x.dtype)[:, None] for part in self[1:])
        x = x - mean
        return x @ w.mT + offsets + (x * (slope - curve * x)).sum(-1, keepdim=True)


class Near(NamedTuple):
    """Pairs less than `within` positions apart have the weight exp(scale q.k); within = 0 is none."""

    within: int = 0
    scale: float = 0.0


NO_WINDOW = Near()


class Described(NamedTuple):
    """A feature map as numbers: which one, and the exponents of queries and of keys."""

    kind: int
    numbers: list[
        Tensor
    ]  # the fields of two Exponents, then both frequencies as (sets, K, F); empty unless EXPONENTIALS


def _of_exponents(queries: Exponents, keys: Exponents) -> Described:
    both = [*queries, *keys, queries.frequencies.mT, keys.frequencies.mT]
    return Described(EXPONENTIALS, [x.detach().float().contiguous() for x in both])


def _positive(features: Positive | Hyperbolic) -> Described:
    scale = features.input_scale
    w = features.frequencies * scale
    w = torch.cat([w, -w], dim=1) if isinstance(features, Hyperbolic) else w
    zeros = torch.zeros_like(w[:, 0])
    exponents = Exponents(w, torch.full_like(w[..., 0], -math.log(w.shape[1]) / 2), zeros, zeros, zeros + scale**2 / 2)
    return _of_exponents(exponents, exponents)


def _fitted(features: Fitted) -> Described:
    queries = Exponents(features.query_frequencies, features.offsets, *features.query_terms)
    return _of_exponents(queries, Exponents(features.key_frequencies, features.offsets, *features.key_terms))


# By the type itself: a subclass may say anew what its features are.
DESCRIPTIONS: dict[type[FeatureMap], Callable[[Any], Described]] = {
    Elu: lambda features: Described(ELU, []),
    Relu: lambda features: Described(RELU, []),
    Positive: _positive,
    Hyperbolic: _positive,
    Fitted: _fitted,
}
_described: WeakKeyDictionary[FeatureMap, tuple[tuple[Tensor, ...], tuple[int, ...], Described]] = WeakKeyDictionary()


def describe(features: FeatureMap) -> Described:
    """The numbers of a map that the kernel covers, found once for as long as its buffers stay as they are."""
    made = DESCRIPTIONS[type(features)]
    if not isinstance(features, (Positive, Hyperbolic, Fitted)):
        return made(features)
    sources = (features.frequencies,) if not isinstance(features, Fitted) else (features.offsets, features.frequencies)
    if torch.compiler.is_compiling() or any(x.is_inference() for x in sources):
        return made(features)
    versions = tuple(x._version for x in sources)
    known = _described.get(features)
    if known is not None and known[1] == versions and all(a is b for a, b in zip(known[0], sources, strict=True)):
        return known[2]
    with torch.inference_mode(False), torch.no_grad():  # what is kept must do for autograd too
        described = made(features)
    _described[features] = sources, versions, described
    return described


def covers(features: FeatureMap, q: Tensor, k: Tensor, v: Tensor) -> bool:
    """True if the kernel can take these. It leaves forward mode and vmap to torch: its operators cannot follow them."""
    if library.kernel.functions is None or type(features) not in DESCRIPTIONS or q.dtype not in DTYPES:
        return False
    if q.device.type != "cpu" or 0 in q.shape or 0 in v.shape or 0 in k.shape:
        return False
    if torch.compiler.is_compiling():
        return forward_ad._current_level < 0
    if torch._C._functorch.peek_interpreter_stack() is not None or any(type(x) is not Tensor for x in (q, k, v)):
        return False
    return forward_ad._current_level < 0 or not any(has_tangent(x) for x in (q, k, v))


def near(features: FeatureMap, within: int | None, key_dim: int) -> Near:
    """The window of a map that the kernel covers; an exact map's features are as good."""
    if within is None or features.exact:
        return Near()
    assert isinstance(features.kernel, Exponential)
    return Near(within, features.kernel.scale_for(key_dim))


def attend(
    features: FeatureMap,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    seen: Tensor | None,
    begins: Tensor | None,
    *,
    causal: bool,
    within: int | None = None,
) -> Float[Tensor, "B H T V"]:
    """Outputs (B, H, T, V). begins: (B, S), True where a packed sequence begins."""
    kind, numbers = describe(features)
    window = near(features, within, q.shape[3])
    return torch.ops.likewise.attend(q, k, v, seen, begins, kind, numbers, causal, *window)[0]


def extend(
    features: FeatureMap,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    seen: Tensor | None,
    prefix: Prefix | None,
    within: int | None = None,
) -> tuple[Float[Tensor, "B H T V"], Prefix]:
    """Causal outputs of the last T of S positions after a prefix, and the prefix after them. It passes no gradients.

    With a window, the prefix of all but the last within - 1 positions: the next row sees these pair by pair.
    """
    kind, numbers = describe(features)
    window = near(features, within, q.shape[3])
    sums, scale = (None, None) if prefix is None else prefix
    # A step takes less time than torch takes to find its operator; only who watches operators needs one.
    watched = torch.compiler.is_compiling() or torch._C._len_torch_dispatch_stack() > 0
    op = torch.ops.likewise.extend if watched else _extend
    out, sums, scale = op(q, k, v, seen, sums, scale, kind, numbers, *window)
    return out, Prefix(sums, None if kind == RELU else scale)


def extends(features: FeatureMap, q: Tensor, k: Tensor, v: Tensor, prefix: Prefix | None) -> bool:
    """Whether `extend` can take these: `covers`, and nobody wants gradients."""
    if torch.is_grad_enabled() and any(x.requires_grad for x in (q, k, v, *(() if prefix is None else (prefix.sums,)))):
        return False
    return covers(features, q, k, v)


_library = Library("likewise", "DEF")
_library.define(
    "attend(Tensor q, Tensor k, Tensor v, Tensor? seen, Tensor? begins, int kind, Tensor[] numbers, bool causal,"
    " int within, float scale) -> (Tensor, Tensor)"
)
_library.define(
    "attend_backward(Tensor grad, Tensor out, Tensor log_sums, Tensor q, Tensor k, Tensor v, Tensor? seen,"
    " Tensor? begins, int kind, Tensor[] numbers, bool causal, int within, float scale) -> (Tensor, Tensor, Tensor)"
)
_library.define(
    "extend(Tensor q, Tensor k, Tensor v, Tensor? seen, Tensor? sums, Tensor? scale, int kind, Tensor[] numbers,"
    " int within, float window_scale) -> (Tensor, Tensor, Tensor)"
)


class Sizes(NamedTuple):
    """The sizes of a call, in the kernel's order."""

    batch: int
    heads: int
    groups: int
    length: int
    positions: int
    key_dim: int
    features: int
    value_dim: int
    sets: int
    slices: int  # into which the query heads of a group are shared out, where groups are fewer than threads

    @classmethod
    def of(cls, q: Tensor, k: Tensor, v: Tensor, numbers: list[Tensor]) -> "Sizes":
        (batch, heads, length, key_dim), (groups, positions) = q.shape, k.shape[1:3]
        sets, features = numbers[0].shape[:2] if numbers else (1, key_dim)
        repeats = heads // groups
        slices = 1 if repeats == 1 else max(1, min(repeats, library.threads() // (batch * groups)))
        return cls(batch, heads, groups, length, positions, key_dim, features, v.shape[3], sets, slices)


def _call(
    name: str,
    matrices: tuple[Tensor, ...],
    masks: tuple[Tensor | None, Tensor | None],
    states: tuple[Tensor | None, ...],
    kind: int,
    numbers: list[Tensor],
    sizes: Sizes,
    causal: bool,
    near: Near = NO_WINDOW,
    strict: bool = False,
    log_sums: Tensor | None = None,
) -> bool:
    """Call the kernel with the fields of its `Call`, in order; matrices that are not given are the last ones.

    A decode step takes a few microseconds, so what is not given is not looked at one by one.
    """
    masks = None if masks[0] is None else masks[0].contiguous(), None if masks[1] is None else masks[1].contiguous()
    fields: list[float] = []
    for x in matrices:
        fields += library.matrix(x)
    fields += [0] * (library.MATRICES - len(fields))
    fields += [0 if x is None else x.data_ptr() for x in masks + states]
    fields += [x.data_ptr() for x in numbers[:10]] if numbers else NO_NUMBERS
    fields += sizes
    bf16 = matrices[0].dtype == torch.bfloat16
    fields += (kind, causal, bf16, bf16 and sizes.slices > 1, library.threads(), near.within, strict)
    fields += (0 if log_sums is None else log_sums.data_ptr(), near.scale)
    return library.call(name, fields)


def _in_rows(x: Tensor) -> Tensor:
    """x with its last axis contiguous, as the kernel reads it."""
    return x if x.stride(3) == 1 or x.shape[3] == 1 else x.contiguous()


def _attend(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    seen: Tensor | None,
    begins: Tensor | None,
    kind: int,
    numbers: list[Tensor],
    causal: bool,
    within: int,
    scale: float,
) -> tuple[Tensor, Tensor]:
    near = Near(within, scale)
    if causal or not within:
        return _forward_pass(q, k, v, seen, begins, kind, numbers, causal, near)
    # What rows see of the keys up to their own and, from the other end, of the keys after it
    left, left_sums = _forward_pass(q, k, v, seen, None, kind, numbers, True, near)
    other = _forward_pass(*_flipped(q, k, v), _flipped_mask(seen), None, kind, numbers, True, near, strict=True)
    right, right_sums = _flipped(*other)
    log_sums = torch.logaddexp2(left_sums, right_sums)
    finite = log_sums.masked_fill(log_sums == -torch.inf, 0)
    left, right = (x * (sums - finite).exp2()[..., None] for x, sums in ((left, left_sums), (right, right_sums)))
    return (left + right).to(q.dtype), log_sums


def _forward_pass(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    seen: Tensor | None,
    begins: Tensor | None,
    kind: int,
    numbers: list[Tensor],
    causal: bool,
    near: Near,
    *,
    strict: bool = False,
) -> tuple[Tensor, Tensor]:
    q, k, v = _in_rows(q), _in_rows(k), _in_rows(v)
    out, log_sums, sizes = _outputs(q, v), _log_sums(q, near.within), Sizes.of(q, k, v, numbers)
    given = (kind, numbers, sizes, causal, near, strict, log_sums)
    _call("attend", (q, k, v, out), (seen, begins), NO_STATES, *given)
    return out, log_sums


def _flipped(*tensors: Tensor) -> tuple[Tensor, ...]:
    """Positions from right to left."""
    return tuple(x.flip(2) for x in tensors)


def _flipped_mask(mask: Tensor | None) -> Tensor | None:
    return None if mask is None else mask.flip(1)


def _log_sums(q: Tensor, within: int) -> Tensor:
    """With a window, memory for log2 of every row's denominator."""
    return q.new_empty(q.shape[:3] if within else 0, dtype=torch.float32)


def _outputs(q: Tensor, v: Tensor) -> Tensor:
    return q.new_empty(*q.shape[:3], v.shape[3])


def _attend_backward(
    grad: Tensor,
    out: Tensor,
    log_sums: Tensor,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    seen: Tensor | None,
    begins: Tensor | None,
    kind: int,
    numbers: list[Tensor],
    causal: bool,
    within: int,
    scale: float,
) -> tuple[Tensor, Tensor, Tensor]:
    near = Near(within, scale)
    given = (kind, numbers, causal or within > 0, near)
    gradients = _backward_pass(grad, out, log_sums, q, k, v, seen, begins, *given)
    if causal or not within:
        return gradients
    flipped = *_flipped(grad, out, log_sums, q, k, v), _flipped_mask(seen)
    others = _flipped(*_backward_pass(*flipped, None, *given, strict=True))
    dq, dk, dv = (one.add_(other) for one, other in zip(gradients, others, strict=True))
    return dq, dk, dv


def _backward_pass(
    grad: Tensor,
    out: Tensor,
    log_sums: Tensor,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    seen: Tensor | None,
    begins: Tensor | None,
    kind: int,
    numbers: list[Tensor],
    causal: bool,
    near: Near,
    *,
    strict: bool = False,
) -> tuple[Tensor, Tensor, Tensor]:
    q, k, v, out, grad = (_in_rows(x) for x in (q, k, v, out, grad))
    sizes = Sizes.of(q, k, v, numbers)
    # Each slice of a group's query heads has gradients of keys and values of its own, which are then summed.
    dtype, heads = (k.dtype if sizes.slices == 1 else torch.float32), sizes.groups * sizes.slices
    dq = q.new_empty(q.shape)
    dk, dv = (x.new_empty(sizes.batch, heads, *x.shape[2:], dtype=dtype) for x in (k, v))
    given = (kind, numbers, sizes, causal, near, strict, log_sums.contiguous())
    _call("differentiate", (q, k, v, out, grad, dq, dk, dv), (seen, begins), NO_STATES, *given)
    if sizes.slices > 1:
        dk, dv = (x.unflatten(1, (-1, sizes.slices)).sum(2).to(k.dtype) for x in (dk, dv))
    return dq, dk, dv


def _extend(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    seen: Tensor | None,
    sums: Tensor | None,
    scale: Tensor | None,
    kind: int,
    numbers: list[Tensor],
    within: int,
    window_scale: float,
) -> tuple[Tensor, Tensor, Tensor]:
    q, k, v = _in_rows(q), _in_rows(k), _in_rows(v)
    out, sizes = _outputs(q, v), Sizes.of(q, k, v, numbers)
    after, scale_after = _states(k, v, kind, sizes.features)
    name = "attend"
    if sizes.length == 1 and not within:
        # A single row reads frequencies as (K, F).
        name, numbers = "step", numbers and [numbers[10], *numbers[1:5], numbers[11], *numbers[6:10]]
    states = (
        None if sums is None else sums.contiguous(),
        None if scale is None else scale.contiguous(),
        after,
        scale_after if kind != RELU else None,
    )
    near, log_sums = (Near(within, window_scale), _log_sums(q, within)) if within else (NO_WINDOW, None)
    given = (kind, numbers, sizes, True, near, False, log_sums)
    if _call(name, (q, k, v, out), (seen, None), states, *given):
        return out, after, scale_after
    problem = GroupedQKV.fold(Elu(), q, k, v, seen)
    before = None if sums is None or scale is None else Prefix(sums, scale)
    out, found = attend_causally(problem, before, CausalOptions.features(problem))
    assert found is not None
    assert found.scale is not None
    return out, found.sums, found.scale


def _states(k: Tensor, v: Tensor, kind: int, features: int) -> tuple[Tensor, Tensor]:
    """New sums and their scale, which has no numbers where the map has no logarithm."""
    batch, groups = k.shape[:2]
    sums = k.new_empty(batch, groups, features, v.shape[3] + 1, dtype=torch.float32)
    return sums, k.new_empty(batch, groups, 1, 0 if kind == RELU else features, dtype=torch.float32)


_library.impl("attend", _attend, "CPU")
_library.impl("attend_backward", _attend_backward, "CPU")
_library.impl("extend", _extend, "CPU")


@torch.library.register_fake("likewise::attend", lib=_library)
def _attend_shape(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    seen: object,
    begins: object,
    kind: int,
    numbers: object,
    causal: bool,
    within: int,
    scale: float,
) -> tuple[Tensor, Tensor]:
    return _outputs(q, v), _log_sums(q, within)


@torch.library.register_fake("likewise::attend_backward", lib=_library)
def _attend_backward_shape(
    grad: Tensor, out: Tensor, log_sums: Tensor, q: Tensor, k: Tensor, v: Tensor, *rest: object
) -> tuple[Tensor, ...]:
    return q.new_empty(q.shape), k.new_empty(k.shape), v.new_empty(v.shape)


@torch.library.register_fake("likewise::extend", lib=_library)
def _extend_shape(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    seen: object,
    sums: object,
    scale: object,
    kind: int,
    numbers: list[Tensor],
    *window: object,
) -> tuple[Tensor, Tensor, Tensor]:
    return _outputs(q, v), *_states(k, v, kind, numbers[0].shape[1] if numbers else q.shape[3])


def _keep(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    q, k, v, seen, begins, ctx.kind, numbers, *ctx.how = inputs
    ctx.mark_non_differentiable(output[1])
    ctx.save_for_backward(*output, q, k, v, seen, begins, *numbers)


def _gradients(ctx: Any, grad: Tensor, _: Tensor) -> tuple[Any, ...]:
    out, log_sums, q, k, v, seen, begins, *numbers = ctx.saved_tensors
    given = (grad, out, log_sums, q, k, v, seen, begins, ctx.kind, numbers, *ctx.how)
    return *torch.ops.likewise.attend_backward(*given), None, None, None, [None] * len(numbers), None, None, None


def _keep_backward(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
    grad, _, _, q, k, v, seen, begins, ctx.kind, numbers, *ctx.how = inputs
    ctx.save_for_backward(grad, q, k, v, seen, begins, *numbers)


def _second_gradients(ctx: Any, *grads: Tensor) -> tuple[Any, ...]:
    """Of the backward pass, by the torch form; what its outputs say of `out` is said of q, k and v instead."""
    grad, q, k, v, seen, begins, *numbers = ctx.saved_tensors
    again, (causal, within, scale) = torch.is_grad_enabled(), ctx.how
    with torch.enable_grad():
        leaves = [x if again and x.requires_grad else x.detach().requires_grad_() for x in (grad, q, k, v)]
        out = _torch_form(ctx.kind, numbers, *leaves[1:], seen, begins, causal=causal, near=Near(within, scale))
        first = torch.autograd.grad(out, leaves[1:], leaves[0], create_graph=True)
        second = torch.autograd.grad(first, leaves, grads, create_graph=again, allow_unused=True)
    nothing = (None, None, None, [None] * len(numbers), None, None, None)
    return second[0], None, None, *second[1:], *nothing


torch.library.register_autograd("likewise::attend", _gradients, setup_context=_keep, lib=_library)
torch.library.register_autograd(
    "likewise::attend_backward", _second_gradients, setup_context=_keep_backward, lib=_library
)


class _Given(FeatureMap):
    """The map that the kernel was given as numbers."""

    exact = False
    logarithmic = "features"

    def __init__(self, numbers: Sequence[Tensor], scale: float) -> None:
        super().__init__(Exponential(scale or None))
        self.of_queries, self.of_keys = Exponents(*numbers[:5]), Exponents(*numbers[5:10])
        self.kv_heads, self.dim = numbers[0].shape[:2]

    def split_queries(self, x: Float[Tensor, "*B T K"]) -> Scaled:
        return Scaled(None, self.of_queries.logarithms(x))

    def split_keys(self, x: Float[Tensor, "*B S K"]) -> Scaled:
        return Scaled(None, self.of_keys.logarithms(x))


def _torch_form(
    kind: int,
    numbers: list[Tensor],
    q: Tensor,
    k: Tensor,
    v: Tensor,
    seen: Tensor | None,
    begins: Tensor | None,
    *,
    causal: bool,
    near: Near,
) -> Tensor:
    """What the kernel computes, by torch's operators."""
    features = Elu() if kind == ELU else Relu() if kind == RELU else _Given(numbers, near.scale)
    problem = GroupedQKV.fold(features, q, k, v, seen)
    if begins is not None:
        return attend_packed(problem, begins.long().cumsum(1), causal=causal, chunk_size=None)
    form = CausalOptions.choose(problem, causal=causal, within=near.within or None)
    if causal:
        return attend_causally(problem, None, form)[0]
    return attend_both_ways(problem, form) if near.within else attend_all(problem)
