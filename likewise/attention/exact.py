"""Softmax, argmax and any-kernel attention: they build the T x S weights; the fast forms are held against them."""

from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn import functional

from likewise.attention.kernels import Exponential, SimilarityKernel
from likewise.attention.masks import Structure, check_pair_mask, check_structure, check_tensors, hide, visible
from likewise.checks import refuse, require, require_number
from likewise.similarity import products, ratio, wide


def softmax_attention(
    q: Float[Tensor, "B H T K"],
    k: Float[Tensor, "B G S K"],
    v: Float[Tensor, "B G S V"],
    *,
    causal: bool = False,
    mask: Bool[Tensor, "..."] | None = None,
    scale: float | None = None,
    dropout: float = 0.0,
    sequence_ids: Int[Tensor, "B S"] | None = None,
    prefix_lengths: Int[Tensor, " B"] | None = None,
    block_size: int | None = None,
) -> Float[Tensor, "B H T V"]:
    """softmax(scale q k') v, by PyTorch's own scaled_dot_product_attention; scale is 1/sqrt(K) unless given.

    It equals `kernel_attention(..., kernel=Exponential(scale))`, the plain form, always. What it adds to PyTorch's:
    causal is lower-right when T != S (query i sees keys j <= i + S - T), a row with nothing to see gives 0 with
    gradient 0, and what stands in keys and values that no row sees, even NaN, reaches nothing. `dropout` is the share
    of weights to drop.

    >>> q = torch.tensor([1.0, 1.0, 2.0]).view(1, 1, 1, 3)
    >>> k = torch.tensor([[1.0, 2.0, 0.0], [0.0, 3.0, 4.0], [5.0, 0.0, 0.0], [0.0, 0.0, 1.0]]).view(1, 1, 4, 3)
    >>> v = torch.tensor([[2.0, 0.0, 1.0], [1.0, 4.0, 3.0], [0.0, -1.0, 4.0], [1.0, 0.0, -1.0]]).view(1, 1, 4, 3)
    >>> softmax_attention(q, k, v).flatten()
    tensor([0.9795, 3.7916, 2.9899])

    Paper: Attention Is All You Need, arXiv 1706.03762, eq. 1.
    """
    where = "softmax_attention"
    check_tensors(where, q, k, v)
    if scale is not None:
        require_number(where, "scale", scale)
    kernel = Exponential(scale)
    require(0 <= dropout < 1, where, "dropout", "be at least 0 and below 1", dropout)
    structure = Structure(causal, mask, sequence_ids, prefix_lengths, block_size)
    options: dict[str, Any] = {"dropout_p": dropout, "scale": kernel.scale_for(q.shape[-1])}
    if k.shape[2] == 0 or q.shape[2] == 0:
        check_pair_mask(where, mask, q, k)
        check_structure(where, q, k, structure)
        return no_pairs(q, k, v)
    if causal and structure.is_plain() and q.shape[2] == k.shape[2]:
        grouped = q.shape[1] != k.shape[1]
        return functional.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=grouped, **options)
    problem = _fold(where, q, k, v, structure)
    out = functional.scaled_dot_product_attention(problem.q, problem.k, problem.v, attn_mask=problem.allowed, **options)
    return _unfold(out, q, problem)


def kernel_attention(
    q: Float[Tensor, "B H T K"],
    k: Float[Tensor, "B G S K"],
    v: Float[Tensor, "B G S V"],
    *,
    kernel: SimilarityKernel,
    causal: bool = False,
    mask: Bool[Tensor, "..."] | None = None,
    sequence_ids: Int[Tensor, "B S"] | None = None,
    prefix_lengths: Int[Tensor, " B"] | None = None,
    block_size: int | None = None,
) -> Float[Tensor, "B H T V"]:
    """O_i = sum_j sim(q_i, k_j) v_j / sum_j sim(q_i, k_j) for any kernel: the plain form, which keeps T x S numbers.

    Positive kernels are normalised through their logarithm, so nothing overflows. Others are divided as they are,
    without epsilon; a denominator of exactly 0 gives output 0 with gradient 0.

    >>> from likewise.attention import Polynomial
    >>> q, k = torch.ones(1, 1, 1, 2), torch.tensor([[1.0, 1.0], [1.0, -1.0]]).view(1, 1, 2, 2)
    >>> v = torch.tensor([[0.0], [10.0]]).view(1, 1, 2, 1)
    >>> kernel_attention(q, k, v, kernel=Polynomial(degree=2, constant=1.0)).item()  # weights 9 and 1
    1.0
    """
    if not isinstance(kernel, SimilarityKernel):
        refuse("kernel_attention", "kernel", "be a kernel", repr(kernel), "For example kernel=Gaussian().")
    problem = _fold("kernel_attention", q, k, v, Structure(causal, mask, sequence_ids, prefix_lengths, block_size))
    dtype = wide(q.dtype)
    queries, keys, values = problem.q.to(dtype), problem.k.to(dtype), problem.v.to(dtype)
    hidden = None if problem.allowed is None else ~problem.allowed
    if kernel.positive:
        logits = kernel.logits(queries, keys, hidden)
        out = logits.softmax(dim=-1) @ values.to(logits.dtype)
    else:
        weights = kernel(queries, keys)
        weights = weights if hidden is None else weights.masked_fill(hidden, 0)
        out = ratio(weights @ values, weights.sum(-1, keepdim=True))
    return _unfold(out.to(q.dtype), q, problem)


def argmax_attention(
    q: Float[Tensor, "B H T K"],
    k: Float[Tensor, "B G S K"],
    v: Float[Tensor, "B G S V"],
    *,
    causal: bool = False,
    mask: Bool[Tensor, "..."] | None = None,
    sequence_ids: Int[Tensor, "B S"] | None = None,
    prefix_lengths: Int[Tensor, " B"] | None = None,
    block_size: int | None = None,
) -> Float[Tensor, "B H T V"]:
    """v_j of the key with the largest q.k; ties go to the lowest index.

    Nothing can be learned through the choice: moving q or k a little does not change which key wins, so their
    gradient is 0 wherever it exists (it does not at a tie, where we say 0 too). Only v gets a gradient.

    >>> q = torch.tensor([1.0, 1.0, 2.0]).view(1, 1, 1, 3)
    >>> k = torch.tensor([[1.0, 2.0, 0.0], [0.0, 3.0, 4.0], [5.0, 0.0, 0.0], [0.0, 0.0, 1.0]]).view(1, 1, 4, 3)
    >>> v = torch.tensor([[2.0, 0.0, 1.0], [1.0, 4.0, 3.0], [0.0, -1.0, 4.0], [1.0, 0.0, -1.0]]).view(1, 1, 4, 3)
    >>> argmax_attention(q, k, v).flatten()  # scores 3, 11, 5, 2
    tensor([1., 4., 3.])
    """
    problem = _fold("argmax_attention", q, k, v, Structure(causal, mask, sequence_ids, prefix_lengths, block_size))
    if k.shape[2] == 0 or q.shape[2] == 0:
        return no_pairs(q, k, v)
    dtype = wide(q.dtype)
    scores = products(problem.q.detach().to(dtype), problem.k.detach().to(dtype))
    if problem.allowed is not None:
        scores = scores.masked_fill(~problem.allowed, -torch.inf)
    out = _Pick.apply(problem.q, problem.k, problem.v, scores.argmax(dim=-1, keepdim=True))
    assert isinstance(out, Tensor)
    return _unfold(out, q, problem)


class _Pick(torch.autograd.Function):
    """The rows of v at `index`, with a gradient of exact zeros for q and k."""

    generate_vmap_rule = True

    @staticmethod
    def forward(q: Tensor, k: Tensor, v: Tensor, index: Tensor) -> Tensor:
        return v.gather(2, index.expand(*index.shape[:-1], v.shape[-1]))

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, ...], output: Tensor) -> None:
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor, Tensor, None]:
        q, k, v, index = ctx.saved_tensors
        (grad,) = grads
        picked = torch.zeros_like(v, dtype=wide(v.dtype))
        picked = picked.scatter_add(2, index.expand_as(grad), grad.to(picked.dtype))
        return torch.zeros_like(q), torch.zeros_like(k), picked.to(v.dtype), None


class _Problem(NamedTuple):
    """Attention with the query heads of a group folded into rows: keys and values are never repeated."""

    q: Tensor  # (B, G, R*T, K)
    k: Tensor  # (B, G, S, K), unseen rows 0
    v: Tensor  # (B, G, S, V), unseen rows 0
    allowed: Tensor | None  # broadcasts to (B, G, R*T, S); rows that see nothing are open, so that softmax is finite
    awake: Tensor | None  # broadcasts to (B, H, T, 1): rows that see something
    broken: Tensor | None  # (B, H, T, 1): those of them whose query is not finite


def _fold(where: str, q: Tensor, k: Tensor, v: Tensor, structure: Structure) -> _Problem:
    """Check the arguments and bring them into the form in which the weights are one batched product."""
    check_tensors(where, q, k, v)
    check_pair_mask(where, structure.mask, q, k)
    check_structure(where, q, k, structure)
    heads, groups, length, positions = q.shape[1], k.shape[1], q.shape[2], k.shape[2]
    shape = q.shape[0], groups, heads // groups * length, q.shape[3]
    allowed = visible(length, positions, structure, q.device)
    if allowed is None:
        return _Problem(q.reshape(shape), k, v, None, None, None)
    awake = allowed.any(-1, keepdim=True)
    q, broken = shield(q)
    seen = allowed.any(2).any(1)
    allowed = allowed | ~awake
    if heads != groups and allowed.shape[1:3] != (1, 1):
        each = allowed.expand(allowed.shape[0], heads, length, positions)
        allowed = each.reshape(allowed.shape[0], groups, shape[2], positions)
    return _Problem(q.reshape(shape), hide(k, seen), hide(v, seen), allowed, awake, broken & awake)


def _unfold(out: Tensor, q: Tensor, problem: _Problem) -> Tensor:
    """Rows back to heads, rows that see nothing to 0, and broken queries that see something to NaN."""
    out = out.reshape(*q.shape[:3], out.shape[-1])
    if problem.awake is None or problem.broken is None:
        return out
    return out.masked_fill(~problem.awake, 0).masked_fill(problem.broken, torch.nan)


def shield(q: Float[Tensor, "B H T K"]) -> tuple[Float[Tensor, "B H T K"], Bool[Tensor, "B H T 1"]]:
    """q with 0 for the queries that are not finite, and which those were.

    Queries of padding may be NaN. Their own outputs are, but in the backward pass 0 * NaN must not reach the others.
    """
    broken = ~q.isfinite().all(dim=-1, keepdim=True)
    return q.masked_fill(broken, 0), broken


def no_pairs(q: Float[Tensor, "B H T K"], k: Float[Tensor, "B G S K"], v: Float[Tensor, "B G S V"]) -> Tensor:
    """Attention without a query or without a key: zeros, through which gradients of zeros flow."""
    folded = q.reshape(q.shape[0], k.shape[1], q.shape[1] // k.shape[1] * q.shape[2], q.shape[3])
    return (products(folded, k) @ v).reshape(*q.shape[:3], v.shape[3])
