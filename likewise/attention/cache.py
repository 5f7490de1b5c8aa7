"""The key-value cache of the exact forms of attention: it grows with every position."""

from dataclasses import dataclass, replace
from typing import Self

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from likewise.attention.masks import check_key_mask
from likewise.checks import require, require_count


class _Storage:
    """Room for more positions than are used; caches that grew from each other share it."""

    def __init__(self, keys: Tensor, values: Tensor, seen: Tensor, used: int) -> None:
        self.keys, self.values, self.seen, self.used = keys, values, seen, used

    @property
    def tensors(self) -> tuple[Tensor, Tensor, Tensor]:
        return self.keys, self.values, self.seen


@dataclass(frozen=True, eq=False)
class KeyValueCache:
    """All keys and values so far, one set per key-value head. A value: `append` leaves the old cache as it was.

    Without gradients, appending is amortised: the storage doubles, and only a cache that is not its newest copies.

    >>> cache = KeyValueCache.empty().append(torch.ones(1, 1, 2, 3), torch.ones(1, 1, 2, 5))
    >>> cache.length, cache.append(torch.ones(1, 1, 1, 3), torch.ones(1, 1, 1, 5)).length, cache.length
    (2, 3, 2)
    """

    length: int
    storage: _Storage | None  # None before the first position
    masked: bool  # whether any position was padding

    @classmethod
    def empty(cls) -> Self:
        """The cache of no positions; batch, heads, widths and dtype are those of what comes first."""
        return cls(0, None, False)

    @property
    def keys(self) -> Float[Tensor, "B G S K"]:
        """The keys so far."""
        return self._stored().keys[:, :, : self.length]

    @property
    def values(self) -> Float[Tensor, "B G S V"]:
        """The values so far."""
        return self._stored().values[:, :, : self.length]

    @property
    def mask(self) -> Bool[Tensor, "B S"] | None:
        """Which positions are no padding; None when none was."""
        return self._stored().seen[:, : self.length] if self.masked else None

    @property
    def nbytes(self) -> int:
        """The memory that the positions so far need."""
        return 0 if self.storage is None else self.keys.nbytes + self.values.nbytes

    def select(self, rows: Tensor) -> "KeyValueCache":
        """A cache of these batch rows, in this order; a row may stand several times, as in beam search."""
        if self.storage is None:
            return self
        check_rows("KeyValueCache.select", rows, self.keys.shape[0])
        chosen = (x.index_select(0, rows.to(x.device)) for x in (self.keys, self.values, self._stored().seen))
        keys, values, seen = chosen
        return replace(self, storage=_Storage(keys, values, seen[:, : self.length], self.length))

    def append(
        self,
        k: Float[Tensor, "B G T K"],
        v: Float[Tensor, "B G T V"],
        mask: Bool[Tensor, "B T"] | None = None,
    ) -> "KeyValueCache":
        """The cache after these positions."""
        where = "KeyValueCache.append"
        for name, x in (("k", k), ("v", v)):
            require(x.dim() == 4, where, name, "have 4 dimensions (batch, heads, positions, width)", tuple(x.shape))
        heads, positions = tuple(k.shape[:2]), k.shape[2]
        if self.storage is None:
            require(v.shape[:2] == heads, where, "v", f"have the batch and heads of k, {heads}", tuple(v.shape[:2]))
        require(v.shape[2] == positions, where, "v", f"have the positions of k, {positions}", v.shape[2])
        check_key_mask(where, mask, (k.shape[0], k.shape[2]), k.device)
        seen = k.new_ones(k.shape[0], k.shape[2], dtype=torch.bool) if mask is None else mask
        length, masked = self.length + k.shape[2], self.masked or mask is not None
        if self.storage is None:
            return KeyValueCache(length, _Storage(k.clone(), v.clone(), seen.clone(), length), masked)
        old, new = self.storage.tensors, (k, v, seen)
        for name, a, b in zip(("k", "v"), old, new, strict=False):
            same = (a.shape[:2], a.shape[3], a.dtype) == (b.shape[:2], b.shape[3], b.dtype)
            rule = f"have the cache's batch, heads, width and dtype {(*a.shape[:2], a.shape[3], a.dtype)}"
            require(same, where, name, rule, (*b.shape[:2], b.shape[3], b.dtype))
        pieces = [(a.narrow(_axis(a), 0, self.length), b) for a, b in zip(old, new, strict=True)]
        if torch.is_grad_enabled():  # what was read from the storage may be needed by a backward pass: leave it alone
            return KeyValueCache(length, _Storage(*(torch.cat(p, dim=_axis(p[0])) for p in pieces), length), masked)
        storage = self.storage
        frozen = storage.keys.is_inference() and not torch.is_inference_mode_enabled()
        if storage.used != self.length or storage.keys.shape[2] < length or frozen:
            storage = _Storage(*(_with_room(a, 2 * length) for a, _ in pieces), self.length)
        for target, source in zip(storage.tensors, new, strict=True):
            target.narrow(_axis(target), self.length, k.shape[2]).copy_(source)
        storage.used = length
        return KeyValueCache(length, storage, masked)

    def rollback(self, positions: int) -> "KeyValueCache":
        """The cache without the last so many positions."""
        require_count("KeyValueCache.rollback", "positions", positions, least=0)
        rule = f"be at most the length, {self.length}"
        require(positions <= self.length, "KeyValueCache.rollback", "positions", rule, positions)
        return replace(self, length=self.length - positions)

    def _stored(self) -> _Storage:
        require(self.storage is not None, "KeyValueCache", "the cache", "hold a position", "an empty one")
        assert self.storage is not None
        return self.storage


def _axis(x: Tensor) -> int:
    """The dimension of positions: 2 for keys and values, 1 for (B, S)."""
    return 2 if x.dim() == 4 else 1


def _with_room(x: Tensor, room: int) -> Tensor:
    """A copy of x with room for more positions; what stands there is never read."""
    shape = list(x.shape)
    shape[_axis(x)] = room
    grown = x.new_zeros(shape)
    grown.narrow(_axis(x), 0, x.shape[_axis(x)]).copy_(x)
    return grown


def check_rows(where: str, rows: Tensor, batch: int) -> None:
    """Refuse anything but whole numbers that name batch rows."""
    whole = rows.dim() == 1 and not rows.dtype.is_floating_point and rows.dtype != torch.bool
    require(whole, where, "rows", "be a vector of whole numbers", f"{rows.dtype} {tuple(rows.shape)}")
    inside = rows.numel() == 0 or (rows.min().item() >= 0 and rows.max().item() < batch)
    require(inside, where, "rows", f"be at least 0 and below the batch, {batch}", rows.tolist())
