"""What may attend to what: the checks every form of attention makes, and the mask that the exact forms build from them.

Masks are bool and True means "may attend". Two dimensions are always (B, S), for keys; four broadcast to (B, H, T, S).
Queries stand at the last T of the S positions: query i is at position i + S - T.
"""

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn import functional

from likewise.checks import refuse, require, require_count


class Structure(NamedTuple):
    """Which pairs a caller lets attend: the arguments of that name, kept together."""

    causal: bool = False
    mask: Tensor | None = None  # (B, S) or, in the exact forms, anything that broadcasts to (B, H, T, S)
    sequence_ids: Tensor | None = None  # (B, S): packed sequences, each one unbroken run of an id
    prefix_lengths: Tensor | None = None  # (B,): the first so many positions are seen by all
    block_size: int | None = None  # positions of one block see each other and all blocks before

    def is_plain(self) -> bool:
        """Whether nothing but `causal` is given."""
        return all(part is None for part in self[1:])


def check_tensors(where: str, q: Tensor, k: Tensor, v: Tensor) -> None:
    """Refuse q, k, v that do not fit together as (B, H, T, K), (B, G, S, K), (B, G, S, V) with H a multiple of G.

    Rules are worded only when they are broken: a decode step takes less time than wording them all.
    """
    for name, x in (("q", q), ("k", k), ("v", v)):
        _check_tensor(where, name, x)
        if x.dim() != 4:
            refuse(where, name, "have 4 dimensions (batch, heads, positions, width)", tuple(x.shape))
        if not x.is_floating_point():
            refuse(where, name, "be a floating point tensor", x.dtype)
        if x.dtype != q.dtype:
            refuse(where, name, f"have the dtype of q, {q.dtype}", x.dtype)
        if x.device != q.device:
            refuse(where, name, f"be on the device of q, {q.device}", x.device)
    (batch, heads, _, width), (key_batch, groups, positions, key_width), values = q.shape, k.shape, v.shape
    for name, size in (("k", key_batch), ("v", values[0])):
        if size != batch:
            refuse(where, name, f"have the batch size of q, {batch}", size)
    if key_width != width:
        refuse(where, "k", f"have the width of q, {width}", key_width)
    if values[1] != groups:
        refuse(where, "v", f"have the heads of k, {groups}", values[1])
    if values[2] != positions:
        refuse(where, "v", f"have the positions of k, {positions}", values[2])
    if min(heads, groups) == 0 or heads % groups:
        refuse(where, "q", f"have a multiple of the {groups} heads of k and v", f"{heads} heads")


def check_key_mask(where: str, mask: Tensor | None, shape: tuple[int, int], device: torch.device) -> None:
    """Refuse a mask that is not bool (B, S)."""
    if mask is None:
        return
    _check_tensor(where, "mask", mask)
    _check_device(where, "mask", mask, device)
    require(mask.dtype == torch.bool, where, "mask", "be bool, True where a key may be seen", mask.dtype)
    hint = "A mask over pairs of query and key needs softmax_attention or kernel_attention." if mask.dim() == 4 else ""
    require(tuple(mask.shape) == shape, where, "mask", f"have shape (B, S) = {shape}", tuple(mask.shape), hint)


def check_pair_mask(where: str, mask: Tensor | None, q: Tensor, k: Tensor) -> None:
    """Refuse a mask that is neither bool (B, S) nor bool and broadcastable to (B, H, T, S)."""
    if mask is None:
        return
    _check_tensor(where, "mask", mask)
    _check_device(where, "mask", mask, q.device)
    require(mask.dtype == torch.bool, where, "mask", "be bool, True where a query may attend", mask.dtype)
    whole = (q.shape[0], q.shape[1], q.shape[2], k.shape[2])
    keys = tuple(mask.shape) == (whole[0], whole[3])
    pairs = mask.dim() == 4 and all(m in (1, n) for m, n in zip(mask.shape, whole, strict=True))
    rule = f"have shape (B, S) = {(whole[0], whole[3])}, or 4 dimensions that broadcast to (B, H, T, S) = {whole}"
    require(keys or pairs, where, "mask", rule, tuple(mask.shape))


def check_structure(where: str, q: Tensor, k: Tensor, structure: Structure) -> None:
    """Refuse structure that is malformed or contradicts itself (the mask has checks of its own)."""
    causal, _, sequence_ids, prefix_lengths, block_size = structure
    batch, length, positions = q.shape[0], q.shape[2], k.shape[2]
    given = [name for name in ("sequence_ids", "prefix_lengths", "block_size") if getattr(structure, name) is not None]
    rule = "be at most one of sequence_ids, prefix_lengths and block_size"
    require(len(given) <= 1, where, "structure", rule, " and ".join(given))
    readable = not torch.compiler.is_compiling()  # inside a compiled graph the values cannot be looked at
    if sequence_ids is not None:
        _check_device(where, "sequence_ids", sequence_ids, q.device)
        _check_integers(where, "sequence_ids", sequence_ids, (batch, positions))
        rule = f"have at most the {positions} positions that sequence_ids describes"
        require(length <= positions, where, "q", rule, length)
        unbroken = not readable or _runs_are_unbroken(sequence_ids)
        require(unbroken, where, "sequence_ids", "give each sequence one unbroken run", "an id that comes back")
    if prefix_lengths is not None:
        _check_device(where, "prefix_lengths", prefix_lengths, q.device)
        _check_integers(where, "prefix_lengths", prefix_lengths, (batch,))
        require(causal, where, "prefix_lengths", "come with causal=True", "causal=False")
        inside = not readable or bool(((prefix_lengths >= 0) & (prefix_lengths <= positions)).all())
        require(inside, where, "prefix_lengths", f"lie between 0 and S = {positions}", prefix_lengths)
    if block_size is not None:
        require_count(where, "block_size", block_size)
        require(causal, where, "block_size", "come with causal=True", "causal=False")


def _check_tensor(where: str, name: str, x: object) -> None:
    require(isinstance(x, Tensor), where, name, "be a tensor", type(x).__name__)


def _check_device(where: str, name: str, x: Tensor, device: torch.device) -> None:
    require(x.device == device, where, name, f"be on the device of q, {device}", x.device)


def _check_integers(where: str, name: str, x: Tensor, shape: tuple[int, ...]) -> None:
    whole = not (x.is_floating_point() or x.is_complex() or x.dtype == torch.bool)
    require(whole, where, name, "be an integer tensor", x.dtype)
    require(tuple(x.shape) == shape, where, name, f"have shape {shape}", tuple(x.shape))


def _runs_are_unbroken(ids: Tensor) -> bool:
    """Whether each row of ids has as many runs as different ids."""
    runs = (ids.diff(dim=1) != 0).sum(1)
    different = (ids.sort(dim=1).values.diff(dim=1) != 0).sum(1)
    return bool((runs == different).all())


def visible(length: int, positions: int, structure: Structure, device: torch.device) -> Bool[Tensor, "_ _ _ _"] | None:
    """The whole mask of an exact form, True where query i may attend to key j; None when every pair may.

    Its four dimensions broadcast to (B, H, T, S).

    >>> visible(2, 3, Structure(causal=True), torch.device("cpu")).int()
    tensor([[[[1, 1, 0],
              [1, 1, 1]]]], dtype=torch.int32)
    """
    causal, mask, sequence_ids, prefix_lengths, block_size = structure
    keys = torch.arange(positions, device=device)
    queries = torch.arange(length, device=device)[:, None] + (positions - length)
    allowed = None
    if causal and length > 1:  # a single query stands at the last position and sees all
        size = 1 if block_size is None else block_size
        allowed = (keys // size <= queries // size)[None, None]
    if prefix_lengths is not None and allowed is not None:
        allowed = allowed | (keys < prefix_lengths[:, None, None, None])
    if sequence_ids is not None:
        together = sequence_ids[:, None, positions - length :, None] == sequence_ids[:, None, None, :]
        allowed = together if allowed is None else allowed & together
    if mask is not None:
        mask = mask[:, None, None, :] if mask.dim() == 2 else mask
        allowed = mask if allowed is None else allowed & mask
    return allowed


def sees_something(length: int, positions: int, structure: Structure) -> Bool[Tensor, "B T"]:
    """Which queries have a key that the (B, S) mask leaves, found without the T x S mask.

    >>> sees_something(3, 3, Structure(causal=True, mask=torch.tensor([[False, True, True]])))
    tensor([[False,  True,  True]])
    """
    causal, mask, sequence_ids, prefix_lengths, block_size = structure
    assert mask is not None
    at = torch.arange(length, device=mask.device).expand(mask.shape[0], length) + (positions - length)
    start, stop = torch.zeros_like(at), torch.full_like(at, positions)
    if causal:
        size = 1 if block_size is None else block_size
        stop = ((at // size + 1) * size).clamp(0, positions)
    if prefix_lengths is not None:
        stop = torch.maximum(stop, prefix_lengths[:, None])
    if sequence_ids is not None:
        everywhere = torch.arange(positions, device=mask.device).expand_as(mask)
        change = sequence_ids.diff(dim=1) != 0
        start = functional.pad(everywhere[:, 1:] * change, (1, 0)).cummax(dim=1).values[:, positions - length :]
        last = functional.pad(everywhere[:, 1:].masked_fill(~change, positions), (0, 1), value=positions)
        ends = last.flip(1).cummin(dim=1).values.flip(1)[:, positions - length :]
        stop = torch.minimum(stop, ends)
    before = functional.pad(mask.long().cumsum(dim=1), (1, 0))  # how many keys are left before each position
    return before.gather(1, stop) > before.gather(1, start)


def hide(x: Float[Tensor, "B G S X"], seen: Bool[Tensor, "#B #S"] | None) -> Float[Tensor, "B G S X"]:
    """Rows that nothing sees, set to 0: what stands there, even NaN, reaches neither outputs nor gradients."""
    return x if seen is None else x.masked_fill(~seen[:, None, :, None], 0)
