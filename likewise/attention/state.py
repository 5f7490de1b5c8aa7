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
from safetensors.torch import save_file
from torch import Tensor

from likewise.attention.chunks import Problem, attend_causally
from likewise.attention.exact import shield
from likewise.attention.features import FeatureMap
from likewise.attention.linear import check_features
from likewise.attention.masks import check_key_mask, check_tensors
from likewise.attention.prefix import Prefix
from likewise.checks import refuse, require, require_count
from likewise.similarity import wide

FORMAT = "likewise.LinearState/1"


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

    def onto(self, prefix: Prefix, features: FeatureMap) -> Prefix:
        """The prefix after these positions, added one by one, so that it does not depend on how they were grouped."""
        problem = Problem(features, self.keys[:, :, None, :0], self.keys, self.values, self.seen)
        for at in range(self.length):
            prefix = prefix.absorb(*problem.keys(at, at + 1))
        return prefix


def _seen(rows: Rows) -> Tensor:
    return rows.keys.new_ones(rows.keys.shape[0], rows.length, dtype=torch.bool) if rows.seen is None else rows.seen


class Memory(NamedTuple):
    """What a state that has seen something holds."""

    folded: Prefix  # of the positions before the recent ones
    whole: Prefix  # of all: always `recent.onto(folded)`, to the last bit
    recent: Rows  # the last min(lag, length) positions; fewer after a rollback


@dataclass(frozen=True, eq=False)
class LinearState:
    """The prefix (S, Z) of all positions so far: one per key-value head, of a size that does not grow.

    The training form, `prefill` and `step` by `step` agree for any split. With `lag` the last so many keys and values
    are kept as they came too, so that up to `lag` positions can be taken back exactly: nothing is ever subtracted.

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
    length: int
    projection_id: str
    memory: Memory | None  # None before the first position

    @classmethod
    def empty(cls, features: FeatureMap, *, batch: int = 1, kv_heads: int, value_dim: int, lag: int = 0) -> Self:
        """The state of no positions. value_dim is per head; lag is how many positions `rollback` can take back."""
        where = "LinearState.empty"
        if not isinstance(features, FeatureMap):
            refuse(where, "features", "be a feature map", repr(features), "For example Elu().")
        require_count(where, "batch", batch, least=0)
        require_count(where, "kv_heads", kv_heads)
        require_count(where, "value_dim", value_dim, least=0)
        require_count(where, "lag", lag, least=0)
        rule = f"have kv_heads 1 or {kv_heads}"
        require(features.kv_heads in (1, kv_heads), where, "features", rule, features.kv_heads)
        return cls(features, batch, kv_heads, value_dim, lag, 0, features.projection_id, None)

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
        problem = Problem.fold(self.features, q, k, v, mask)
        folded, whole, recent = self.memory or Memory(problem.empty(), problem.empty(), Rows(k, v, mask).part(0, 0))
        out, after = attend_causally(problem, whole)
        surplus = max(0, recent.length + k.shape[2] - self.lag)
        older = min(surplus, recent.length)
        if self.lag == 0:
            folded = after
        else:
            folded = recent.part(0, older).onto(folded, self.features)
            folded = problem.absorbed(folded, 0, surplus - older)
        recent = recent.part(older).then(Rows(k, v, mask).part(surplus - older))  # a copy: k and v are not kept alive
        # One new position was just added one by one; more were added at once, and differ in their last bits.
        whole = after if k.shape[2] == 1 else recent.onto(folded, self.features)
        return out, replace(self, length=self.length + k.shape[2], memory=Memory(folded, whole, recent))

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
        kept = 0 if self.memory is None else self.memory.recent.length
        hint = f"The state was made with lag={self.lag}; keep a snapshot to go further back."
        require(positions <= kept, where, "positions", f"be at most {kept}, the positions still kept", positions, hint)
        if self.memory is None or positions == 0:
            return self
        self._check_projection(where, self.features.projection_id)
        recent = self.memory.recent.part(0, kept - positions)
        return replace(self, length=self.length - positions, memory=self._remember(self.memory.folded, recent))

    def merge(self, after: "LinearState") -> "LinearState":
        """The state of two adjacent spans: this one, then `after`, which was started empty where this one ends."""
        if not isinstance(after, LinearState):
            refuse("LinearState.merge", "after", "be a LinearState", repr(after))
        mine = (self.batch, self.kv_heads, self.value_dim, self.lag)
        theirs = (after.batch, after.kv_heads, after.value_dim, after.lag)
        require(mine == theirs, "LinearState.merge", "after", f"have (batch, kv_heads, value_dim, lag) {mine}", theirs)
        for projection_id in (after.projection_id, self.features.projection_id):
            self._check_projection("LinearState.merge", projection_id)
        if self.memory is None or after.memory is None:
            return after if self.memory is None else self
        dtypes = [[x.dtype for x in (m.folded.sums, m.recent.keys)] for m in (self.memory, after.memory)]
        require(dtypes[0] == dtypes[1], "LinearState.merge", "after", f"have the dtypes {dtypes[0]}", dtypes[1])
        length = self.length + after.length
        if after.length > after.memory.recent.length:  # some of its positions are folded, so all of ours must be
            folded = self.memory.whole.merge(after.memory.folded)
            return replace(self, length=length, memory=self._remember(folded, after.memory.recent))
        rows = self.memory.recent.then(after.memory.recent)
        surplus = max(0, rows.length - self.lag)
        folded = rows.part(0, surplus).onto(self.memory.folded, self.features)
        return replace(self, length=length, memory=self._remember(folded, rows.part(surplus)))

    def snapshot(self) -> "LinearState":
        """A copy with memory of its own and without gradient history."""
        return self._map(lambda x: x.detach().clone())

    def fork(self, copies: int = 1) -> "LinearState":
        """A state in which every batch row stands `copies` times in a row, to be continued separately."""
        require_count("LinearState.fork", "copies", copies)
        return replace(self._map(lambda x: x.repeat_interleave(copies, dim=0)), batch=self.batch * copies)

    @property
    def nbytes(self) -> int:
        """The memory the state holds."""
        return sum({id(tensor): tensor.nbytes for tensor in self._tensors().values()}.values())

    def save(self, path: str | Path) -> None:
        """Write the state to a safetensors file, with the id of the projection that it was made with."""
        facts = {name: getattr(self, name) for name in ("batch", "kv_heads", "value_dim", "lag")}
        metadata = {
            "format": FORMAT,
            "projection_id": self.projection_id,
            "length": str(self.length),
            "facts": json.dumps(facts),
        }
        tensors = {name: x.detach().contiguous() for name, x in self._tensors().items() if not name.startswith("whole")}
        save_file(tensors, path, metadata)

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
                folded = Prefix(tensors["folded.sums"], tensors.get("folded.scale"))
                recent = Rows(tensors["recent.keys"], tensors["recent.values"], tensors.get("recent.seen"))
        except (KeyError, TypeError, json.JSONDecodeError) as error:
            refuse(where, "path", "hold all parts of a state", f"{path} ({error!r})")
        return state if folded is None or recent is None else replace(state, memory=state._remember(folded, recent))

    def _remember(self, folded: Prefix, recent: Rows) -> Memory:
        return Memory(folded, recent.onto(folded, self.features), recent)

    def _tensors(self) -> dict[str, Tensor]:
        parts = {} if self.memory is None else self.memory._asdict()
        named = {f"{part}.{name}": x for part, fields in parts.items() for name, x in fields._asdict().items()}
        return {name: x for name, x in named.items() if x is not None}

    def _map(self, change: Callable[[Tensor], Tensor]) -> "LinearState":
        if self.memory is None:
            return self
        folded, whole, (keys, values, seen) = self.memory
        recent = Rows(change(keys), change(values), None if seen is None else change(seen))
        changed = Prefix(change(folded.sums), None if folded.scale is None else change(folded.scale))
        if whole is folded:
            return replace(self, memory=Memory(changed, changed, recent))
        both = Prefix(change(whole.sums), None if whole.scale is None else change(whole.scale))
        return replace(self, memory=Memory(changed, both, recent))

    def _check_next(self, where: str, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> None:
        check_tensors(where, q, k, v)
        check_features(where, self.features, k)
        check_key_mask(where, mask, (k.shape[0], k.shape[2]), k.device)
        require(q.shape[2] == k.shape[2], where, "k", f"have the positions of q, {q.shape[2]}", k.shape[2])
        shape, mine = (k.shape[0], k.shape[1], v.shape[3]), (self.batch, self.kv_heads, self.value_dim)
        require(shape == mine, where, "k and v", f"have the state's (batch, kv_heads, value_dim) {mine}", shape)
        self._check_projection(where, self.features.projection_id)
        if self.memory is not None:
            dtype = self.memory.folded.sums.dtype
            require(wide(k.dtype) == dtype, where, "k", f"be of a dtype summed in the state's {dtype}", k.dtype)

    def _check_projection(self, where: str, other: str) -> None:
        rule = f"be {self.projection_id}, with which the state was made"
        require(other == self.projection_id, where, "the projection", rule, other)
