"""Batches that shrink: run a segment and its head, let finished rows go, carry on with the others."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor

from likewise.exits.criteria import Seen
from likewise.exits.policies import Policy

HeadCall = Callable[[Tensor], tuple[Tensor, Tensor]]  # -> features, logits


@dataclass(frozen=True, eq=False)
class Outcome:
    """Answers in the order of the inputs, and what was run for them.

    exits: the number of the head at which each example left, or the number of heads for the end. For every segment,
    `computed` counts the rows that went through it, and `wanted` those that had not left; for every head, `asked`.
    """

    logits: Float[Tensor, "B C"]
    exits: Int64[Tensor, "B"]
    computed: tuple[int, ...]
    wanted: tuple[int, ...]
    asked: tuple[int, ...]

    @property
    def classes(self) -> Int64[Tensor, "B"]:
        return self.logits.argmax(1)


@runtime_checkable
class Compaction(Protocol):
    """Whether to copy the rows that are left, instead of carrying those that have left along."""

    def pays(self, segment: int, rows: int, left: int) -> bool:
        """After a segment, with so many rows, of which so many are left."""
        ...


@dataclass(frozen=True)
class Always:
    """Copy whenever somebody has left."""

    def pays(self, segment: int, rows: int, left: int) -> bool:
        return True


@dataclass(frozen=True)
class Never:
    """Carry all rows to the end, or until all have left."""

    def pays(self, segment: int, rows: int, left: int) -> bool:
        return False


@dataclass(eq=False)
class _Rows:
    """The rows under way: their values, where they stand in the batch, what is remembered, and who is still in."""

    x: Tensor
    where: Int64[Tensor, "b"]
    state: Float[Tensor, "b W"]
    inside: Bool[Tensor, "b"]
    left: int

    def compacted(self) -> "_Rows":
        kept = self.inside.nonzero()[:, 0]
        return _Rows(gathered(self.x, kept), self.where[kept], self.state[kept], self.inside[kept], self.left)


def gathered(x: Tensor, rows: Int64[Tensor, "b"]) -> Tensor:
    """Some rows of a batch, as a copy in the same memory format, which `index_select` would not keep."""
    return x[rows]


def run_exits(
    x: Tensor,
    *,
    segments: Sequence[Callable[[Tensor], Tensor]],
    heads: Sequence[HeadCall],
    places: Sequence[int],
    policy: Policy,
    compaction: Compaction,
) -> Outcome:
    """The scheduler: segments in turn, and after segment places[i] head i, until every row has left.

    It knows nothing of where segments and heads come from: modules here, exported programs elsewhere.
    """
    at = {place: head for head, place in enumerate(places) if policy.needs(head)}
    total = len(x)
    if not at:  # the network itself, without any books to keep
        for segment in segments:
            x = segment(x)
        everybody = (total,) * len(segments)
        return Outcome(x, torch.full((total,), len(places), device=x.device), everybody, everybody, (0,) * len(places))
    rows = _Rows(
        x,
        torch.arange(total, device=x.device),
        torch.zeros(total, policy.criterion.width, device=x.device),
        torch.ones(total, dtype=torch.bool, device=x.device),
        total,
    )
    exits = torch.full((total,), len(places), device=x.device)
    computed, wanted, asked = [0] * len(segments), [0] * len(segments), [0] * len(places)
    out: Tensor | None = None
    for number, segment in enumerate(segments):
        computed[number], wanted[number] = len(rows.x), rows.left
        rows.x = segment(rows.x)
        if number not in at:
            continue
        head = at[number]
        asked[head] = len(rows.x)
        features, logits = heads[head](rows.x)
        scores, rows.state = policy.criterion.step(Seen(head, number + 1, features, logits), rows.state)
        leaving = rows.inside & policy.leaves(scores, head=head)
        count = int(leaving.sum())
        if count:
            out = logits.new_empty(total, logits.shape[1]) if out is None else out
            out[rows.where[leaving]], exits[rows.where[leaving]] = logits[leaving], head
            rows.inside, rows.left = rows.inside & ~leaving, rows.left - count
            if not rows.left:
                return Outcome(out, exits, tuple(computed), tuple(wanted), tuple(asked))
            if compaction.pays(number, len(rows.x), rows.left):
                rows = rows.compacted()
    if out is None:  # nobody left
        out = rows.x
    else:
        out[rows.where[rows.inside]] = rows.x[rows.inside]
    return Outcome(out, exits, tuple(computed), tuple(wanted), tuple(asked))
