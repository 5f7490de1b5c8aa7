"""Linear attention, both directions and causal: the same function as `kernel_attention`, without the T x S weights."""

import warnings
from typing import Any, Literal

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from likewise.attention.chunked import (
    CausalOptions,
    GroupedQKV,
    attend_all,
    attend_blocks,
    attend_both_ways,
    attend_causally,
    attend_packed,
    starts,
)
from likewise.attention.exact import no_pairs, shield
from likewise.attention.features import FeatureMap
from likewise.attention.masks import Structure, check_key_mask, check_structure, check_tensors, sees_something
from likewise.attention.native import library, ops
from likewise.attention.scan import scan
from likewise.attention.transforms import allows_data_dependent_branching, has_tangent, is_transformed, own_dtypes
from likewise.checks import refuse, require, require_count
from likewise.similarity import wide

AMPLIFIED = 10.0  # how many times the largest value an output may be before its denominator is called vanishing


class DenominatorWarning(UserWarning):
    """A denominator came near zero: similarities of both signs cancelled, and outputs are far larger than values."""


def linear_attention(
    q: Float[Tensor, "B H T K"],
    k: Float[Tensor, "B G S K"],
    v: Float[Tensor, "B G S V"],
    *,
    features: FeatureMap,
    causal: bool = False,
    mask: Bool[Tensor, "B S"] | None = None,
    sequence_ids: Int[Tensor, "B S"] | None = None,
    prefix_lengths: Int[Tensor, " B"] | None = None,
    block_size: int | None = None,
    exact_within: int | None = None,
    chunk_size: int | None = None,
) -> Float[Tensor, "B H T V"]:
    """O_i = phi(q_i) S_i / (phi(q_i) Z_i), S_i = sum phi(k_j)' v_j and Z_i = sum phi(k_j)' over the keys row i sees.

    Time grows like T + S; without gradients, memory beyond the output does not grow. It equals `kernel_attention`
    with the kernel of an exact map, and with the kernel that a random map's features induce. Maps of exponentials
    work on logarithms throughout: no epsilon, no overflow, and a causal row does not depend on later keys and values
    (finite ones: 0 * inf is NaN), not by a bit.

    mask: keys to leave out (False), (B, S). sequence_ids, prefix_lengths, block_size: packed sequences, prefix-LM and
    block-causal structure, one at a time. exact_within: pairs less than so many positions apart are weighed by the
    kernel itself, and only those further apart by features: near terms add no error, and numerator and denominator
    stay what they estimate. With exact_within >= S this is `kernel_attention`. An exact map does not need it.
    chunk_size: rows that form pairs at a time; the result does not depend on it.

    >>> from likewise.attention import Relu
    >>> q, k = torch.tensor([[[[1.0, 0.0], [1.0, 1.0]]]]), torch.tensor([[[[1.0, 2.0], [3.0, 1.0]]]])
    >>> v = torch.tensor([[[[1.0], [3.0]]]])
    >>> linear_attention(q, k, v, features=Relu(), causal=True).flatten()  # 1 and (3*1 + 4*3) / (3 + 4) = 15/7
    tensor([1.0000, 2.1429])

    Autocast stays outside: sums are of float32 at least, whatever it says; call backward after it, as torch asks.

    Paper: Transformers are RNNs, arXiv 2006.16236, eqs. 5 and 9. Differs: logarithms, so no stabiliser that sees the
    future.
    """
    where = "linear_attention"
    structure = Structure(causal, mask, sequence_ids, prefix_lengths, block_size)
    check_tensors(where, q, k, v)
    check_features(where, features, k)
    check_key_mask(where, mask, (k.shape[0], k.shape[2]), q.device)
    check_structure(where, q, k, structure)
    for name, count in (("chunk_size", chunk_size), ("exact_within", exact_within)):
        if count is not None:
            require_count(where, name, count)
    if exact_within is not None:
        _check_window(where, q, k, structure)
    if 0 in (q.shape[0], q.shape[2], k.shape[2]):
        return no_pairs(q, k, v)
    if mask is None:
        out = _attend(features, q, k, v, structure, exact_within, chunk_size)
        _warn_if_vanishing(features, out, q, k, v)
        return out
    q, broken = shield(q)
    awake = sees_something(q.shape[2], k.shape[2], structure)[:, None, :, None]
    out = _attend(features, q, k, v, structure, exact_within, chunk_size)
    _warn_if_vanishing(features, out, q, *(x.masked_fill(~mask[:, None, :, None], 0) for x in (k, v)))
    return out.masked_fill(broken & awake, torch.nan)


def recurrent_attention(
    q: Float[Tensor, "B H T K"], k: Float[Tensor, "B G T K"], v: Float[Tensor, "B G T V"], *, features: FeatureMap
) -> Float[Tensor, "B H T V"]:
    """Causal linear attention as the paper writes it, one position after another: slow, and what the others compute.

        S_t = S_{t-1} + phi(k_t)' v_t,    Z_t = Z_{t-1} + phi(k_t)',    O_t = phi(q_t) S_t / (phi(q_t) Z_t)

    Paper: Katharopoulos et al. 2020, equations 16 to 20. Nothing guards against overflow: read it, run the fast form.
    """
    heads = q.shape[1]
    phi_q_BHTF, phi_k_BGTF = features.queries(q), features.keys(k)
    phi_k_BHTF = phi_k_BGTF.repeat_interleave(heads // k.shape[1], dim=1)
    v_BHTV = v.repeat_interleave(heads // v.shape[1], dim=1)
    sum_kv_BHFV = torch.zeros_like(phi_k_BHTF[:, :, :1].mT * v_BHTV[:, :, :1])
    sum_k_BHF = torch.zeros_like(phi_k_BHTF[:, :, 0])
    out = []
    for t in range(q.shape[2]):
        sum_kv_BHFV = sum_kv_BHFV + phi_k_BHTF[:, :, t, :, None] * v_BHTV[:, :, t, None, :]
        sum_k_BHF = sum_k_BHF + phi_k_BHTF[:, :, t]
        numerator = torch.einsum("bhf,bhfv->bhv", phi_q_BHTF[:, :, t], sum_kv_BHFV)
        denominator = torch.einsum("bhf,bhf->bh", phi_q_BHTF[:, :, t], sum_k_BHF)
        out.append(numerator / denominator[..., None])
    return torch.stack(out, dim=2)


def _attend(
    features: FeatureMap,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    structure: Structure,
    within: int | None,
    chunk_size: int | None,
) -> Float[Tensor, "B H T V"]:
    """Linear attention of checked arguments."""
    direct, transformed = features.direct(), is_transformed() or any(x.is_meta or has_tangent(x) for x in (q, k, v))
    plain = structure.prefix_lengths is None and structure.block_size is None
    placed = q.shape[2] <= k.shape[2] or not structure.causal
    if library.kernel.functions is not None and plain and placed and ops.covers(features, q, k, v):
        begins = None if structure.sequence_ids is None else starts(structure.sequence_ids)
        window = None if within is None else min(within, k.shape[2])
        out = ops.attend(features, q, k, v, structure.mask, begins, causal=structure.causal, within=window)
    else:
        chosen = features if direct is None or transformed else direct
        out = _attend_in_torch(chosen, q, k, v, structure, within, chunk_size)
    if direct is None or transformed or out.numel() == 0:
        return out
    lost = _without_output(out, structure, k.shape[2])
    if not lost.any():
        return out
    # Row by row, by what the row itself sees: no later key changes an output, not by a bit. In float64 products of
    # features and values of float32 cannot overflow, and a logarithm of -1e18 is not what is left of -1e18 + 41.
    wider = (x.double() for x in (q, k, v))
    safe = _attend_in_torch(features, *wider, structure, within, chunk_size).to(out.dtype)
    out = _Values.apply(torch.where(lost, safe, out).detach(), safe)
    assert isinstance(out, Tensor)
    return out


def _attend_in_torch(
    features: FeatureMap,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    structure: Structure,
    within: int | None,
    chunk_size: int | None,
) -> Float[Tensor, "B H T V"]:
    """Linear attention by PyTorch's operators."""
    with own_dtypes(q):
        return _attend_problem(GroupedQKV.fold(features, q, k, v, structure.mask), structure, within, chunk_size)


class _Values(torch.autograd.Function):
    """These values, with the gradients of others that agree with them up to rounding."""

    @staticmethod
    def forward(ctx: Any, values: Tensor, others: Tensor) -> Tensor:
        return values

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[None, Tensor]:
        return None, grads[0]


def _without_output(out: Float[Tensor, "B H T V"], structure: Structure, positions: int) -> Bool[Tensor, "B H T 1"]:
    """Rows that see a key and all of whose outputs are near 0, or one of them near infinity or NaN.

    Near: numerators of these outputs, over denominators in the range that is trusted, may have left that of float32.
    """
    low, high = 1e-20, 1e20
    sizes = out.detach()[..., :1].abs()
    suspect = ~((sizes > low) & (sizes < high))
    if not suspect.any():  # the usual case, without reading all of the output
        return suspect
    mask = out.new_ones(out.shape[0], positions, dtype=torch.bool) if structure.mask is None else structure.mask
    awake = sees_something(out.shape[2], positions, structure._replace(mask=mask))
    largest = out.detach().abs().amax(dim=-1, keepdim=True)
    return ~((largest > low) & (largest < high)) & awake[:, None, :, None]


def _attend_problem(
    problem: GroupedQKV, structure: Structure, within: int | None, chunk_size: int | None
) -> Float[Tensor, "B H T V"]:
    """By features or by the kernel, all at once or piece by piece, as structure and sizes say."""
    causal, mask, sequence_ids, prefix_lengths, block_size = structure
    rows, positions = problem.q.shape[3], problem.k.shape[2]
    if sequence_ids is not None:
        return attend_packed(problem, sequence_ids, causal=causal, chunk_size=chunk_size)
    form = CausalOptions.choose(problem, causal=causal, chunk_size=chunk_size, within=within)
    if not causal:
        if form.within is not None and rows == positions:
            return attend_both_ways(problem, form)
        return attend_all(problem)
    early = max(rows - positions, 0)  # rows that stand before the first key
    late = problem.rows(early)
    if block_size is not None:
        out = attend_blocks(late, CausalOptions.features(problem, chunk_size), block_size)
    elif wants_scan(late):
        out = scan(late, form)
    else:
        out = attend_causally(late, None, form)[0]
    out = torch.cat([out.new_zeros(*out.shape[:2], early, out.shape[3]), out], dim=2) if early else out
    if prefix_lengths is None:
        return out
    in_prefix = torch.arange(positions, device=problem.k.device) < prefix_lengths[:, None]
    seen_by_all = attend_all(problem._replace(mask=in_prefix if mask is None else in_prefix & mask))
    at = torch.arange(rows, device=problem.k.device) + (positions - rows)
    return torch.where((at < prefix_lengths[:, None])[:, None, :, None], seen_by_all, out)


def wants_scan(problem: GroupedQKV) -> bool:
    """True if the backward pass of `scan` serves: gradients of q, k, v only are wanted, by plain autograd."""
    inputs = (problem.q, problem.k, problem.v)
    if not torch.is_grad_enabled() or not any(x.requires_grad for x in inputs):
        return False
    learned = any(parameter.requires_grad for parameter in problem.features.parameters())
    transformed = is_transformed() or any(has_tangent(x) for x in inputs)
    return not learned and not transformed and problem.q.shape[3] == problem.k.shape[2]


def _warn_if_vanishing(features: FeatureMap, out: Tensor, q: Tensor, k: Tensor, v: Tensor) -> None:
    """Warn, once for a map, when an output shows that a denominator nearly vanished.

    With similarities of one sign an output is an average of values, never larger than the largest. One that is c times
    larger has a denominator below 1/c of the sum of its terms' sizes. Compiled graphs and vmap cannot look.
    """
    if features.positive or features.has_warned or out.numel() == 0 or not allows_data_dependent_branching(out):
        return
    out, v = out.detach(), v.detach()
    rows, value = out.abs().amax(dim=-1), v.abs().amax().item()
    largest = rows.nan_to_num(nan=0.0).amax().item()
    gone = ~(rows > 0)
    if value > 0 and bool(gone.any()) and (how := _out_of_range(features, q.detach()[gone], k.detach())):
        features.has_warned = True
        shown, remedy = ("0", ", or use a positive map") if how == "underflow" else ("0 or NaN", "")
        message = (
            f"linear_attention: a denominator of {type(features).__name__} came near zero or infinity: products of its"
            f" features {how} in {wide(q.dtype)}, and an output is {shown}. Scale q and k{remedy}."
        )
        warnings.warn(message, DenominatorWarning, stacklevel=3)
    elif largest > AMPLIFIED * value:
        features.has_warned = True
        message = (
            f"linear_attention: a denominator of {type(features).__name__} came near zero: an output is"
            f" {largest:.3g}, the largest value {value:.3g}. Use a positive map, or look at it with diagnose."
        )
        warnings.warn(message, DenominatorWarning, stacklevel=3)


def _out_of_range(features: FeatureMap, q: Float[Tensor, "rows K"], k: Tensor) -> Literal["underflow", "overflow", ""]:
    """How the products of a row's features with those of all keys leave the range of the dtype, if they do."""
    if features.kv_heads > 1:
        return ""
    sizes = features.queries(q.double()).abs().amax(dim=-1)
    products, limits = sizes * features.keys(k.double()).abs().amax(), torch.finfo(wide(q.dtype))
    if bool((products > limits.max / k.shape[2] / k.shape[3]).any()):
        return "overflow"
    return "underflow" if bool(((products > 0) & (products < limits.tiny)).any()) else ""


def _check_window(where: str, q: Tensor, k: Tensor, structure: Structure) -> None:
    """Refuse a window beside other structure, and one between positions that are not those of one sequence."""
    for name in ("sequence_ids", "prefix_lengths", "block_size"):
        require(getattr(structure, name) is None, where, "exact_within", f"come without {name}", f"{name} too")
    rule = f"come with causal=True or with as many queries as keys, {k.shape[2]}"
    require(structure.causal or q.shape[2] == k.shape[2], where, "exact_within", rule, q.shape[2])


def check_features(where: str, features: FeatureMap, k: Tensor) -> None:
    """Refuse what is no feature map, or one made for other keys or heads."""
    if not isinstance(features, FeatureMap):
        refuse(where, "features", "be a feature map", repr(features), "For example features=Elu().")
    _, groups, _, width = k.shape
    if features.kv_heads not in (1, groups):
        refuse(where, "features", f"have kv_heads 1 or that of k, {groups}", features.kv_heads)
    if features.key_dim not in (None, width):
        refuse(where, "features", f"have key_dim = {width}, the width of k", features.key_dim)
    for buffer in features.buffers():
        if buffer.device != k.device:
            refuse(where, "features", f"be on the device of k, {k.device}", buffer.device)
