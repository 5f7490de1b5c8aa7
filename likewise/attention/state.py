"""The prefix state of linear attention: constant in size, and a value.

Every method returns a new state and leaves the old one as it was.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple, Self

import torch
from jaxtyping import Bool, Float
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from likewise.attention.cache import check_rows
from likewise.attention.chunked import CausalOptions, GroupedQKV, attend_causally
from likewise.attention.exact import shield
from likewise.attention.features import Elu, FeatureMap
from likewise.attention.linear import check_features
from likewise.attention.masks import check_key_mask, check_tensors
from likewise.attention.native import ops
from likewise.attention.prefix import Prefix
from likewise.attention.transforms import own_dtypes
from likewise.checks import refuse, require, require_count
from likewise.files import write_whole
from likewise.similarity import wide

FORMAT = "likewise.LinearState/2"


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

    def none(self) -> "Rows":
        """No positions, of these sizes, in memory of their own."""
        (batch, groups, _, key_dim), value_dim = self.keys.shape, self.values.shape[3]
        return Rows(
            self.keys.new_empty(batch, groups, 0, key_dim), self.values.new_empty(batch, groups, 0, value_dim), None
        )

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
        problem = GroupedQKV(features, self.keys[:, :, None, :0], self.keys, self.values, self.seen)
        prefix = prefix or problem.empty()
        with own_dtypes(self.keys):
            if not one_by_one:
                return problem.absorbed(prefix, 0, self.length)
            for at in range(self.length):
                prefix = prefix.absorb(*problem.keys(at, at + 1))
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
        if self.recent.length == 0:
            return self.whole, self.recent
        start = max(0, self.recent.length - near)
        unread = self.recent.part(max(0, self.recent.length - self.near), start)
        return unread.onto(self.whole, features, one_by_one=False), self.recent.part(start)

    def then(self, new: Rows, near: int, lag: int, features: FeatureMap, after: Prefix | None = None) -> "Memory":
        """The memory after new positions, of which `lag` can be taken back; `after`: the sums to be read, if known."""
        before, length = self.recent.length, self.recent.length + new.length
        surplus = max(0, length - lag - near)
        recent = self._across(new, surplus, length)
        if lag == 0 and after is not None:
            return Memory(after, after, recent, near)
        unread = self._across(new, max(0, before - self.near), max(0, length - near))
        if lag == 0:
            whole = unread.onto(self.whole, features, one_by_one=False)
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
        if before == 0 and start == stop:
            return self.recent
        return self.recent.part(start, stop).then(new.part(max(0, start - before), max(0, stop - before)))

    def map(self, change: Callable[[Tensor], Tensor]) -> "Memory":
        """The memory with every tensor changed."""
        keys, values, seen = self.recent
        recent = Rows(change(keys), change(values), None if seen is None else change(seen))
        folded = _map_prefix(self.folded, change)
        return Memory(
            folded, folded if self.whole is self.folded else _map_prefix(self.whole, change), recent, self.near
        )


def _map_prefix(prefix: Prefix | None, change: Callable[[Tensor], Tensor]) -> Prefix | None:
    if prefix is None:
        return None
    return Prefix(change(prefix.sums), None if prefix.scale is None else change(prefix.scale))


@dataclass(frozen=True, eq=False)
class LinearState:
    """The prefix (S, Z) of all positions so far: one per key-value head, of a size that does not grow.

    The training form, `prefill` and `step` by `step` agree for any split. With `lag` the last so many keys and values
    are kept as they came too, so that up to `lag` positions can be taken back exactly: nothing is ever subtracted.
    With `exact_within` the window of that many positions is kept as it came, and seen through the kernel itself.

    An exact map needs no features while keys and values are fewer numbers than its sums: without a lag, the state
    keeps them as they come up to that length, and folds them then.

    >>> import torch
    >>> from likewise.attention import Relu
    >>> k, v = torch.tensor([[1.0, 2.0], [3.0, 1.0]]).view(1, 1, 2, 2), torch.tensor([[1.0], [3.0]]).view(1, 1, 2, 1)
    >>> state = LinearState.empty(Relu(), batch=1, kv_heads=1, value_dim=1)
    >>> _, state = state.step(torch.tensor([1.0, 0.0]).view(1, 1, 1, 2), k[:, :, :1], v[:, :, :1])
    >>> out, state = state.step(torch.ones(1, 1, 1, 2), k[:, :, 1:], v[:, :, 1:])
    >>> out.item(), state.length  # (3*1 + 4*3) / (3 + 4) = 15/7
    (2.142857..., 2)
    """

    features: FeatureMap
    batch: int
    kv_heads: int
    value_dim: int
    lag: int
    exact_within: int | None
    length: int
    projection_id: str
    memory: Memory | None  # None before the first position

    @classmethod
    def empty(
        cls,
        features: FeatureMap,
        *,
        batch: int = 1,
        kv_heads: int,
        value_dim: int,
        lag: int = 0,
        exact_within: int | None = None,
    ) -> Self:
        """The state of no positions. value_dim is per head; lag is how many positions `rollback` can take back."""
        where = "LinearState.empty"
        if not isinstance(features, FeatureMap):
            refuse(where, "features", "be a feature map", repr(features), "For example Elu().")
        require_count(where, "batch", batch, least=0)
        require_count(where, "kv_heads", kv_heads)
        require_count(where, "value_dim", value_dim, least=0)
        require_count(where, "lag", lag, least=0)
        if exact_within is not None:
            require_count(where, "exact_within", exact_within)
        rule = f"have kv_heads 1 or {kv_heads}"
        require(features.kv_heads in (1, kv_heads), where, "features", rule, features.kv_heads)
        return cls(features, batch, kv_heads, value_dim, lag, exact_within, 0, features.projection_id, None)

    def prefill(
        self,
        q: Float[Tensor, "B H T K"],
        k: Float[Tensor, "B G T K"],
        v: Float[Tensor, "B G T V"],
        *,
        mask: Bool[Tensor, "B T"] | None = None,
    ) -> tuple[Float[Tensor, "B H T V"], "LinearState"]:
        """The causal outputs of the next T positions, which see all before them, and the state after them.

        mask: False for padding among the new positions; they count for `length` but leave nothing behind.
        """
        self._check_next("LinearState.prefill", q, k, v, mask)
        if mask is not None:  # NaN in the queries of padding would reach the gradients of the others
            q = q.masked_fill(shield(q)[1] & ~mask[:, None, :, None], 0)
        with own_dtypes(q):
            return self._extended(q, Rows(k, v, mask))

    def _extended(self, q: Tensor, new: Rows) -> tuple[Tensor, "LinearState"]:
        """The outputs of new rows, and the state after them."""
        length = self.length + new.length
        memory = self.memory or Memory(None, None, new.none(), 0)
        near = self._near(length, new.keys.shape[3])
        prefix, rows = memory.read(near, self.features)
        windowed = near > 0 or self._window is not None
        every = rows.then(new) if rows.length else new
        native = (self._window is not None or (not windowed and not rows.length)) and ops.extends(
            self.features, q, every.keys, every.values, prefix
        )
        if native:
            out, after = ops.extend(self.features, q, *every, prefix, near + 1 if windowed else None)
        else:
            problem = GroupedQKV.fold(self.features, q, *every)
            form = CausalOptions.features(problem)
            out, after = attend_causally(problem, prefix, form._replace(within=near + 1) if windowed else form)
        # One position, or all when none is to be taken back, was just added as it would be here. What may be taken back
        # is added by the torch form alone: the kernel rounds otherwise, and a rollback is exact to the bit. With a
        # window the kernel leaves what the next row reads, the torch form what the last row read.
        if windowed:
            added = native and self.lag == 0 and every.length > near
        else:
            added = self.lag == 0 or (new.length == 1 and not native)
        memory = memory.then(new, near, self.lag, self.features, after if added else None)
        return out, replace(self, length=length, memory=memory)

    def step(
        self,
        q: Float[Tensor, "B H 1 K"],
        k: Float[Tensor, "B G 1 K"],
        v: Float[Tensor, "B G 1 V"],
        *,
        mask: Bool[Tensor, "B 1"] | None = None,
    ) -> tuple[Float[Tensor, "B H 1 V"], "LinearState"]:
        """The output of the next position and the state after it, at a cost that does not depend on the length.

        F (V + 1) multiply-adds to read the state, for each query head, and as many to extend it, for each key-value
        head (twice as many with a lag), beside the map.
        """
        one = q.dim() == 4 and q.shape[2] == 1
        require(one, "LinearState.step", "q", "have one position", tuple(q.shape), "Use prefill for more.")
        return self.prefill(q, k, v, mask=mask)

    def rollback(self, positions: int) -> "LinearState":
        """The state without the last so many positions, as if they had never come."""
        where = "LinearState.rollback"
        require_count(where, "positions", positions, least=0)
        kept = self._kept()
        hint = f"The state was made with lag={self.lag}; keep a snapshot to go further back."
        require(positions <= kept, where, "positions", f"be at most {kept}, the positions still kept", positions, hint)
        if self.memory is None or positions == 0:
            return self
        self._check_projection(where, self.features.projection_id)
        recent = self.memory.recent.part(0, self.memory.recent.length - positions)
        memory = Memory.of(self.memory.folded, recent, self.memory.near, self.features)
        return replace(self, length=self.length - positions, memory=memory)

    def merge(self, after: "LinearState") -> "LinearState":
        """The state of two adjacent spans: this one, then `after`, which was started empty where this one ends."""
        where = "LinearState.merge"
        if not isinstance(after, LinearState):
            refuse(where, "after", "be a LinearState", repr(after))
        facts = ("batch", "kv_heads", "value_dim", "lag", "exact_within")
        mine, theirs = (tuple(getattr(state, name) for name in facts) for state in (self, after))
        require(mine == theirs, where, "after", f"have ({', '.join(facts)}) {mine}", theirs)
        for projection_id in (after.projection_id, self.features.projection_id):
            self._check_projection(where, projection_id)
        if self.memory is None or after.memory is None:
            return after if self.memory is None else self
        dtypes = [m.recent.keys.dtype for m in (self.memory, after.memory)]
        require(dtypes[0] == dtypes[1], where, "after", f"have keys of the dtype {dtypes[0]}", dtypes[1])
        length, later = self.length + after.length, after.memory.recent
        near = self._near(length, later.keys.shape[3])
        if after.memory.folded is None:
            return replace(self, length=length, memory=self.memory.then(later, near, self.lag, self.features))
        # Some of its positions are folded, so all of ours must be.
        mine, _ = self.memory.read(0, self.features)
        folded = after.memory.folded if mine is None else mine.merge(after.memory.folded)
        return replace(self, length=length, memory=Memory.of(folded, later, near, self.features))

    def snapshot(self) -> "LinearState":
        """A copy with memory of its own and without gradient history."""
        return self._map(lambda x: x.detach().clone())

    def fork(self, copies: int = 1) -> "LinearState":
        """A state in which every batch row stands `copies` times in a row, to be continued separately."""
        require_count("LinearState.fork", "copies", copies)
        return replace(self._map(lambda x: x.repeat_interleave(copies, dim=0)), batch=self.batch * copies)

    def select(self, rows: Tensor) -> "LinearState":
        """A state of these batch rows, in this order; a row may stand several times, as in beam search."""
        check_rows("LinearState.select", rows, self.batch)
        return replace(self._map(lambda x: x.index_select(0, rows.to(x.device))), batch=len(rows))

    @property
    def nbytes(self) -> int:
        """The memory the state holds."""
        return sum({id(tensor): tensor.nbytes for tensor in self._tensors().values()}.values())

    def save(self, path: str | Path) -> None:
        """Write the state to a safetensors file, whole or not at all, with the id of the projection it is of."""
        facts = {name: getattr(self, name) for name in ("batch", "kv_heads", "value_dim", "lag", "exact_within")}
        metadata = {
            "format": FORMAT,
            "projection_id": self.projection_id,
            "length": str(self.length),
            "facts": json.dumps(facts),
        }
        tensors = {name: x.detach().contiguous() for name, x in self._tensors().items() if not name.startswith("whole")}
        write_whole(path, save(tensors, metadata))

    @classmethod
    def load(cls, path: str | Path, features: FeatureMap) -> Self:
        """Read a state that `save` wrote; refuses one made with another projection than that of `features`."""
        where = "LinearState.load"
        require(Path(path).is_file(), where, "path", "be a file", str(path))
        try:
            with safe_open(path, framework="pt") as file:
                metadata = file.metadata() or {}
                tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118, it cannot be iterated
        except SafetensorError as error:
            refuse(where, "path", "be a safetensors file", f"{path} ({error})")
        require(metadata.get("format") == FORMAT, where, "path", f"hold a {FORMAT}", metadata.get("format"))
        try:
            facts, projection_id = json.loads(metadata["facts"]), metadata["projection_id"]
            state = replace(cls.empty(features, **facts), length=int(metadata["length"]), projection_id=projection_id)
            state._check_projection(where, features.projection_id)
            folded = recent = None
            if tensors:
                recent = Rows(tensors["recent.keys"], tensors["recent.values"], tensors.get("recent.seen"))
                if state.length > recent.length:
                    folded = Prefix(tensors["folded.sums"], _scale(tensors, features))
        except (KeyError, TypeError, json.JSONDecodeError) as error:
            refuse(where, "path", "hold all parts of a state", f"{path} ({error!r})")
        if recent is None:
            return state
        near = state._near(state.length, recent.keys.shape[3])
        return replace(state, memory=Memory.of(folded, recent, near, features))

    @property
    def _window(self) -> int | None:
        """Of how many positions the next row sees the keys themselves; an exact map's features are as good."""
        return None if self.features.exact else self.exact_within

    def _near(self, length: int, key_dim: int) -> int:
        """How many of the last of so many positions are to be kept as they came, and out of the sums."""
        if self._window is not None:
            return self._window - 1
        features = self.features
        if self.lag > 0 or not (features.exact and features.has_named_kernel):
            return 0
        cheaper = (features.dim or key_dim) * (self.value_dim + 1) // (key_dim + self.value_dim)
        return cheaper if length <= cheaper else 0

    def _kept(self) -> int:
        """How many positions can be taken back."""
        if self.memory is None:
            return 0
        rows, near = self.memory.recent.length, self.memory.near
        return min(self.lag, rows if rows == self.length else rows - near)

    def _tensors(self) -> dict[str, Tensor]:
        if self.memory is None:
            return {}
        parts = {"folded": self.memory.folded, "whole": self.memory.whole, "recent": self.memory.recent}
        named = {
            f"{part}.{name}": x for part, fields in parts.items() if fields for name, x in fields._asdict().items()
        }
        return {name: x for name, x in named.items() if x is not None}

    def _map(self, change: Callable[[Tensor], Tensor]) -> "LinearState":
        return self if self.memory is None else replace(self, memory=self.memory.map(change))

    def _check_next(self, where: str, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> None:
        check_tensors(where, q, k, v)
        check_features(where, self.features, k)
        check_key_mask(where, mask, (k.shape[0], k.shape[2]), k.device)
        if q.shape[2] != k.shape[2]:
            refuse(where, "k", f"have the positions of q, {q.shape[2]}", k.shape[2])
        shape, mine = (*k.shape[:2], v.shape[3]), (self.batch, self.kv_heads, self.value_dim)
        if shape != mine:
            refuse(where, "k and v", f"have the state's (batch, kv_heads, value_dim) {mine}", shape)
        self._check_projection(where, self.features.projection_id)
        if self.memory is not None:
            dtype = wide(self.memory.recent.keys.dtype)
            if wide(k.dtype) != dtype:
                refuse(where, "k", f"be of a dtype summed in the state's {dtype}", k.dtype)

    def _check_projection(self, where: str, other: str) -> None:
        rule = f"be {self.projection_id}, with which the state was made"
        require(other == self.projection_id, where, "the projection", rule, other)


def _scale(tensors: dict[str, Tensor], features: FeatureMap) -> Tensor | None:
    """The scale of saved sums; those of Elu had none before its logarithms were kept, that is a scale of 0."""
    sums, scale = tensors["folded.sums"], tensors.get("folded.scale")
    return sums.new_zeros(*sums.shape[:2], 1, sums.shape[2]) if scale is None and isinstance(features, Elu) else scale
