"""What one operation of torch costs. An operation that stands in no table has no cost here, not even 0."""

from collections.abc import Callable, Iterable
from math import prod
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch._ops import OpOverload
from torch.utils.flop_counter import flop_registry

from likewise.checks import refuse


class Uncounted(ValueError):
    """An operation whose cost is not known, so that no total would be right."""


Moves = list[tuple[Tensor, int]]


class Tally(NamedTuple):
    """What one operation computes, and which elements of which tensors it reads and writes."""

    macs: int
    elementwise: int
    reads: Moves
    writes: Moves
    copies: bool = False  # nothing but the layout changes


# Nothing is read or written: another look at the same elements, or room for some.
FREE = {
    "_unsafe_view", "empty", "empty_like", "empty_permuted", "empty_strided", "lift_fresh", "new_empty",
    "new_empty_strided", "promote_types",
}  # fmt: skip

# Elements move to another layout. Which programs need that depends on the version of torch.
COPIES = {"clone", "_to_copy", "lift_fresh_copy"}

# One result for each element written. torch tags what works element by element and what reduces; these it does not tag.
RESULTS = {
    "_adaptive_avg_pool2d", "_adaptive_avg_pool3d", "_batch_norm_no_update", "_batch_norm_with_update", "_log_softmax",
    "_log_softmax_backward_data", "_native_batch_norm_legit", "_native_batch_norm_legit_no_training", "_safe_softmax",
    "_softmax", "_softmax_backward_data", "arange", "argsort", "avg_pool1d", "avg_pool2d", "avg_pool2d_backward",
    "avg_pool3d", "bernoulli", "bucketize", "cat", "col2im", "constant_pad_nd", "copy", "cummax", "cummin", "cumprod",
    "cumsum", "diag_embed", "diagonal_backward", "embedding_dense_backward", "exponential", "eye", "fill", "flip",
    "floor_divide", "full", "full_like", "glu", "im2col", "index_add", "index_copy", "index_fill", "index_put",
    "kthvalue", "linspace", "logcumsumexp", "max_pool2d_with_indices", "max_pool2d_with_indices_backward",
    "max_pool3d_with_indices", "multinomial", "native_batch_norm", "native_batch_norm_backward", "native_dropout",
    "native_dropout_backward", "native_group_norm", "native_group_norm_backward", "native_layer_norm",
    "native_layer_norm_backward", "new_full", "new_ones", "new_zeros", "normal", "normal_functional", "ones",
    "ones_like", "rand", "rand_like", "randint", "randint_like", "randn", "randn_like", "randperm",
    "reflection_pad1d", "reflection_pad2d", "repeat", "repeat_interleave", "replication_pad1d", "replication_pad2d",
    "roll", "scalar_tensor", "scatter", "scatter_add", "scatter_reduce", "searchsorted", "select_backward",
    "select_scatter", "slice_backward", "slice_scatter", "sort", "stack", "threshold_backward", "topk", "tril",
    "tril_indices", "triu", "triu_indices", "uniform", "upsample_bicubic2d", "upsample_bilinear2d",
    "upsample_nearest1d", "upsample_nearest2d", "upsample_nearest3d", "zero", "zeros", "zeros_like",
}  # fmt: skip

# Of their first argument these read only what they choose.
PICKS = {"embedding", "gather", "index", "index_select", "take"}

# In place these overwrite what was there without reading it.
OVERWRITES = {
    "bernoulli_", "copy_", "exponential_", "fill_", "index_copy_", "index_fill_", "index_put_", "normal_", "random_",
    "scatter_", "uniform_", "zero_",
}  # fmt: skip


def _convolution(args: tuple[Any, ...], out: Tensor) -> int:
    x, weight, transposed = args[0], args[1], args[6]
    return (x if transposed else out).numel() * prod(weight.shape[1:])


def _attention(args: tuple[Any, ...], out: Tensor) -> int:
    q, k, v = args[:3]
    return prod(q.shape[:-1]) * k.shape[-2] * (q.shape[-1] + v.shape[-1])


# Multiply-adds of the operations that multiply and sum, from their arguments and first result.
PRODUCTS: dict[str, Callable[[tuple[Any, ...], Tensor], int]] = {
    "mm": lambda args, out: args[0].numel() * args[1].shape[-1],
    "bmm": lambda args, out: args[0].numel() * args[1].shape[-1],
    "addmm": lambda args, out: args[1].numel() * args[2].shape[-1],
    "baddbmm": lambda args, out: args[1].numel() * args[2].shape[-1],
    "addbmm": lambda args, out: args[1].numel() * args[2].shape[-1],
    "mv": lambda args, out: args[0].numel(),
    "addmv": lambda args, out: args[1].numel(),
    "dot": lambda args, out: args[0].numel(),
    "vdot": lambda args, out: args[0].numel(),
    "addr": lambda args, out: out.numel(),
    "linear": lambda args, out: args[0].numel() * args[1].shape[0],
    "_cdist_forward": lambda args, out: out.numel() * args[0].shape[-1],
    "convolution": _convolution,
    "_scaled_dot_product_cudnn_attention": _attention,
    "_scaled_dot_product_efficient_attention": _attention,
    "_scaled_dot_product_flash_attention": _attention,
    "_scaled_dot_product_flash_attention_for_cpu": _attention,
    "_scaled_dot_product_fused_attention_overrideable": _attention,
}
BIASED = {"addmm", "baddbmm", "addbmm", "addmv", "addr"}


def _put(args: tuple[Any, ...]) -> int:
    indices = [*args[1], *[None] * (args[0].dim() - len(args[1]))]
    whole = prod(size for size, index in zip(args[0].shape, indices, strict=True) if index is None)
    return whole * prod(torch.broadcast_shapes(*(index.shape for index in indices if index is not None)))


# How many elements of their first argument these write in place.
SCATTERS: dict[str, Callable[[tuple[Any, ...]], int]] = {
    "scatter": lambda args: args[2].numel(),
    "scatter_add": lambda args: args[2].numel(),
    "scatter_reduce": lambda args: args[2].numel(),
    "index_add": lambda args: args[3].numel(),
    "index_copy": lambda args: args[3].numel(),
    "index_fill": lambda args: args[0].numel() // args[0].shape[args[1]] * args[2].numel(),
    "index_put": _put,
}


def operation_name(func: OpOverload) -> str:
    """aten::add_ -> add_, whichever its overload."""
    return func._schema.name.partition("::")[2]


def is_view(func: OpOverload) -> bool:
    """Whether the result is only another look at the same elements; x.squeeze_() changes how x itself looks at them."""
    in_place = torch.Tag.inplace_view in func.tags and operation_name(func) not in ("resize_", "resize_as_", "set_")
    return func.is_view or in_place


def is_free(func: OpOverload) -> bool:
    """Whether an operation neither reads nor writes an element."""
    return is_view(func) or operation_name(func) in FREE


def reads_number(func: OpOverload) -> bool:
    """x.item() and its kin."""
    return operation_name(func) == "_local_scalar_dense"


def _needs_values(func: OpOverload, args: tuple[Any, ...]) -> bool:
    if operation_name(func) == "index":  # by whole numbers it does not
        return any(index.dtype in (torch.bool, torch.uint8) for index in tensors(args[1]))
    return torch.Tag.data_dependent_output in func.tags or torch.Tag.dynamic_output_shape in func.tags


def require_known(func: Any, args: tuple[Any, ...]) -> None:
    """Raise Uncounted for an operation in no table, and for one that needs values where there are none.

    >>> require_known(torch.ops.aten._fft_r2c.default, ())  # doctest: +IGNORE_EXCEPTION_DETAIL
    Traceback (most recent call last):
    Uncounted: cost: operations must stand in a table of likewise.cost; got aten._fft_r2c.default.
    """
    if not isinstance(func, OpOverload) or func.namespace != "aten":
        refuse("cost", "operations", "stand in a table of likewise.cost", func, error=Uncounted)
    if reads_number(func) and args[0].device.type != "meta":
        return  # a number that the program was given
    if _needs_values(func, args):
        hint = "A cost is counted without values: pass what depends on them as an argument."
        refuse("cost", "operations", "not depend on the values of tensors", func, hint, error=Uncounted)
    name = operation_name(func).removesuffix("_")
    tagged = torch.Tag.pointwise in func.tags or torch.Tag.reduction in func.tags
    listed = name in RESULTS or name in COPIES or name in PICKS or name in PRODUCTS
    if not (tagged or listed or is_free(func) or func._overloadpacket in flop_registry):
        refuse("cost", "operations", "stand in a table of likewise.cost", func, error=Uncounted)


def tally(func: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Tally:
    """Count a known operation that is not free, after it ran."""
    reads, writes = _moved(func, args, kwargs, out)
    name = operation_name(func).removesuffix("_")
    first = tensors(out)[0]
    if name in PRODUCTS:
        has_bias = name in BIASED or (name in ("convolution", "linear") and len(args) > 2 and args[2] is not None)
        weights = prod(args[0].shape[:-1]) * args[1].shape[-2] if PRODUCTS[name] is _attention else 0
        return Tally(PRODUCTS[name](args, first), weights + has_bias * first.numel(), reads, writes)
    if func._overloadpacket in flop_registry:
        return Tally(flop_registry[func._overloadpacket](*args, **kwargs, out_val=out) // 2, 0, reads, writes)
    copies = name in COPIES and first.dtype == args[0].dtype
    return Tally(0, 0 if copies else sum(count for _, count in writes), reads, writes, copies)


def _moved(func: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> tuple[Moves, Moves]:
    """Which elements an operation reads and which it writes."""
    name, base = operation_name(func), operation_name(func).removesuffix("_")
    mutated, outs = _mutated(func, args, kwargs)
    template = args[:1] if base.startswith("new_") or base.endswith("_like") else ()
    unread = [*outs, *template, *(mutated if name in OVERWRITES else [])]
    given = [x for x in tensors((args, kwargs)) if all(x is not other for other in unread)]
    reads = [(x, distinct_elements(x)) for x in _distinct(given)]
    writes = [(x, x.numel()) for x in _distinct([*tensors(out), *mutated, *outs])]
    if base in PICKS:
        return [(x, writes[0][1] if x is args[0] else count) for x, count in reads], writes
    if base in SCATTERS and name != base:
        chosen = SCATTERS[base](args)
        return [(x, chosen if x is args[0] else count) for x, count in reads], [(args[0], chosen)]
    return reads, writes


def tensors(value: Any) -> list[Tensor]:
    """The tensors in nested lists, tuples and mappings."""
    if isinstance(value, Tensor):
        return [value]
    if isinstance(value, dict):
        value = value.values()
    elif not isinstance(value, list | tuple):
        return []
    return [tensor for item in value for tensor in tensors(item)]


def distinct_elements(tensor: Tensor) -> int:
    """Elements without repetition: an axis that was expanded shows the same ones again.

    >>> distinct_elements(torch.ones(3, 1).expand(3, 5))
    3
    """
    return prod(size for size, stride in zip(tensor.shape, tensor.stride(), strict=True) if stride or size == 0)


def _distinct(values: Iterable[Tensor]) -> list[Tensor]:
    """Tensors that look at different elements: x * x reads x once."""
    seen = {(x.untyped_storage()._cdata, x.storage_offset(), x.shape, x.stride()): x for x in reversed(list(values))}
    return list(reversed(seen.values()))


def _mutated(func: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[list[Tensor], list[Tensor]]:
    """The arguments that an operation writes to: those that it also reads, and those given as `out`."""
    mutated, outs = [], []
    for place, argument in enumerate(func._schema.arguments):
        if argument.alias_info is not None and argument.alias_info.is_write:
            value = args[place] if place < len(args) else kwargs.get(argument.name)
            (outs if argument.is_out else mutated).extend(tensors(value))
    return mutated, outs
