"""What a state of linear attention holds: sums of old positions, and recent ones as they came."""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from likewise.attention.features import FeatureMap
from likewise.attention.prefix import Prefix
from likewise.attention.problem import Problem
from likewise.attention.workspace import own_dtypes


class Rows(NamedTuple):
    """Some positions' keys and values as they came, and which of them are no padding (None: all)."""

    keys: Tensor  # (B, G, r, K)
    values: Tensor  # (B, G, r, V)
    seen: Tensor | None  # (B, r)

    @property
    def length(self) -> int:
        """How many positions."""
        return self.keys.shape[2]

    def part(self, start: int, stop: int | None = None) -> "Rows":
        """The positions from start to stop."""
        seen = None if self.seen is None else self.seen[:, start:stop]
        return Rows(self.keys[:, :, start:stop], self.values[:, :, start:stop], seen)

    def then(self, other: "Rows") -> "Rows":
        """These positions, followed by those."""
        seen = None
        if self.seen is not None or other.seen is not None:
            seen = torch.cat([_seen(self), _seen(other)], dim=1)
        return Rows(torch.cat([self.keys, other.keys], dim=2), torch.cat([self.values, other.values], dim=2), seen)

    def onto(self, prefix: Prefix | None, features: FeatureMap, *, one_by_one: bool) -> Prefix | None:
        """The prefix after these positions; added one by one it does not depend on how they were grouped."""
        if self.length == 0:
            return prefix
        problem = Problem(features, self.keys[:, :, None, :0], self.keys, self.values, self.seen)
        prefix = prefix or problem.empty()
        with own_dtypes(self.keys):
            if not one_by_one:
                return problem.absorbed(prefix, 0, self.length)
            for at in range(self.length):
                prefix = prefix.absorb(*problem.keys(at, at + 1), problem.space)
        return prefix


def _seen(rows: Rows) -> Tensor:
    return rows.keys.new_ones(rows.keys.shape[0], rows.length, dtype=torch.bool) if rows.seen is None else rows.seen


class Memory(NamedTuple):
    """Recent positions as they came, the sums of all before them, and the sums that the next row reads.

    The last `near` positions are in no sums that are read: the next row sees them through the kernel itself.
    """

    folded: Prefix | None  # of the positions before the recent ones; None for none
    whole: Prefix | None  # of all but the last `near` positions: those beyond `folded` were added one by one
    recent: Rows  # the last lag + near positions; fewer after a rollback
    near: int

    @classmethod
    def of(cls, folded: Prefix | None, recent: Rows, near: int, features: FeatureMap) -> "Memory":
        """The memory of recent positions that come after folded ones."""
        whole = recent.part(0, max(0, recent.length - near)).onto(folded, features, one_by_one=True)
        return cls(folded, whole, recent, near)

    def read(self, near: int, features: FeatureMap) -> tuple[Prefix | None, Rows]:
        """The sums of all but the last `near` positions, and those positions."""
        start = max(0, self.recent.length - near)
        unread = self.recent.part(max(0, self.recent.length - self.near), start)
        return unread.onto(self.whole, features, one_by_one=False), self.recent.part(start)

    def then(self, new: Rows, near: int, lag: int, features: FeatureMap, after: Prefix | None = None) -> "Memory":
        """The memory after new positions, of which `lag` can be taken back; `after`: the sums to be read, if known."""
        before, length = self.recent.length, self.recent.length + new.length
        surplus = max(0, length - lag - near)
        recent = self._across(new, surplus, length)
        unread = self._across(new, max(0, before - self.near), max(0, length - near))
        if lag == 0:
            whole = unread.onto(self.whole, features, one_by_one=False) if after is None else after
            return Memory(whole, whole, recent, near)
        older = min(surplus, before)
        folded = self.recent.part(0, older).onto(self.folded, features, one_by_one=True)
        if surplus > older:
            folded = new.part(0, surplus - older).onto(folded, features, one_by_one=False)
            return Memory.of(folded, recent, near, features)
        whole = unread.onto(self.whole, features, one_by_one=True) if after is None else after
        return Memory(folded, whole, recent, near)

    def _across(self, new: Rows, start: int, stop: int) -> Rows:
        """The positions from start to stop of the recent ones and the new ones behind them, as a copy."""
        before = self.recent.length
        return self.recent.part(start, stop).then(new.part(max(0, start - before), max(0, stop - before)))

    def map(self, change: Callable[[Tensor], Tensor]) -> "Memory":
        """The memory with every tensor changed."""
        keys, values, seen = self.recent
        recent = Rows(change(keys), change(values), None if seen is None else change(seen))
        folded = _map(self.folded, change)
        return Memory(folded, folded if self.whole is self.folded else _map(self.whole, change), recent, self.near)


def _map(prefix: Prefix | None, change: Callable[[Tensor], Tensor]) -> Prefix | None:
    if prefix is None:
        return None
    return Prefix(change(prefix.sums), None if prefix.scale is None else change(prefix.scale))
