"""q, k, v and a feature map as one problem, mapped only where and when needed, and outputs that come in parts."""

from typing import NamedTuple, Self

import torch
from jaxtyping import Float
from torch import Tensor

from likewise.attention.exact import inverse
from likewise.attention.features import FeatureMap, Scaled
from likewise.attention.masks import hide
from likewise.attention.prefix import Prefix, Sums
from likewise.attention.workspace import FRESH, Workspace, can_write
from likewise.similarity import wide

BLOCK = 512  # rows mapped at a time where no pairs are formed: features of 256 for 8 heads are then 4 MB


class Problem(NamedTuple):
    """q, k, v with the R query heads of a key-value head side by side, mapped piece by piece when needed."""

    features: FeatureMap
    q: Tensor  # (B, G, R, T, K)
    k: Tensor  # (B, G, S, K)
    v: Tensor  # (B, G, S, V)
    mask: Tensor | None  # (B, S)
    space: Workspace = FRESH  # where to write features, and what is computed from them

    @classmethod
    def fold(cls, features: FeatureMap, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Self:
        groups = k.shape[1]
        return cls(features, q.reshape(q.shape[0], groups, q.shape[1] // groups, *q.shape[2:]), k, v, mask)

    def reusing(self) -> Self:
        """The problem with memory that its pieces use one after the other: what one leaves, the next overwrites."""
        return self._replace(space=Workspace.beside(self.q, self.k, self.v, *self.features.parameters()))

    def rows(self, start: int) -> Self:
        """The same keys with the queries from `start` on."""
        return self._replace(q=self.q[:, :, :, start:])

    def part(self, low: int, start: int, stop: int) -> Self:
        """The queries that stand at positions start..stop, with the keys from `low` to there."""
        past = self.k.shape[2] - self.q.shape[3]
        q, k, v = self.q[:, :, :, start - past : stop - past], self.k[:, :, low:stop], self.v[:, :, low:stop]
        return self._replace(q=q, k=k, v=v, mask=None if self.mask is None else self.mask[:, low:stop])

    def reversed(self) -> Self:
        """The problem read from right to left."""
        mask = None if self.mask is None else self.mask.flip(1)
        return self._replace(q=self.q.flip(3), k=self.k.flip(2), v=self.v.flip(2), mask=mask)

    def row_reversed(self, sums: Sums) -> Sums:
        """Sums with the rows of each of the R query heads in reverse order."""

        def turn(x: Tensor) -> Tensor:
            return x.unflatten(2, (self.q.shape[2], -1)).flip(3).flatten(2, 3)

        return Sums(turn(sums.total), None if sums.scale is None else turn(sums.scale))

    def queries(self, start: int, stop: int) -> Scaled:
        """Features of the queries of a piece, (B, G, R * n, ...)."""
        piece, space = self.q[:, :, :, start:stop].flatten(2, 3), self.space.part("queries")
        return self.features.queries_in(space, space.widened("x", piece))

    def raw_keys(self, start: int, stop: int) -> tuple[Tensor, Tensor, Tensor | None]:
        """The keys of a piece, [v | 1], and which of them are not masked."""
        k, v = self.k[:, :, start:stop], self.v[:, :, start:stop]
        seen = None if self.mask is None else self.mask[:, start:stop]
        k, v, ones = hide(k, seen), hide(v, seen), v.new_ones(*v.shape[:-1], 1, dtype=wide(v.dtype))
        values = torch.cat([v, ones], dim=-1, out=self.space("values", *v.shape[:-1], v.shape[-1] + 1))
        return self.space.part("keys").widened("x", k), values, seen

    def keys(self, start: int, stop: int) -> tuple[Scaled, Tensor]:
        """Features of the keys of a piece, those of masked keys being 0, and [v | 1]."""
        k, values, seen = self.raw_keys(start, stop)
        value, log = self.features.keys_in(self.space.part("keys"), k)
        if seen is not None:
            hidden = ~seen[:, None, :, None]
            value = value if value is None or log is not None else value.masked_fill(hidden, 0)
            log = None if log is None else log.masked_fill(hidden, -torch.inf)
        return Scaled(value, log), values

    def first(self, start: int, stop: int) -> Tensor | None:
        """The first key of a piece that is not masked, (B, 1, 1, 1)."""
        return None if self.mask is None else self.mask[:, start:stop].int().argmax(dim=1)[:, None, None, None]

    def empty(self) -> Prefix:
        """The prefix of no keys."""
        return Prefix.empty(*self.keys(0, 0))

    def absorbed(self, prefix: Prefix, start: int, stop: int) -> Prefix:
        """The prefix after the keys of a piece."""
        # Cut at once: the gradient of all cuts is one copy, that of every slice would be as large as the whole.
        keys, values = (x[:, :, start:stop].split(BLOCK, dim=2) for x in (self.k, self.v))
        for number, (k, v) in enumerate(zip(keys, values, strict=True) if start < stop else ()):
            at = start + number * BLOCK
            block = self._replace(k=k, v=v, mask=None if self.mask is None else self.mask[:, at : at + k.shape[2]])
            prefix = prefix.absorb(*block.keys(0, k.shape[2]), self.space)
        return prefix

    def read(self, prefix: Prefix, start: int, stop: int, output: "Output") -> None:
        """The outputs of rows that see exactly a prefix, piece by piece."""
        for q in self.q[:, :, :, start:stop].split(BLOCK, dim=3) if start < stop else ():
            queries = self._replace(q=q).queries(0, q.shape[3])
            output.append(prefix.read(queries, self.space))

    def everything_read(self, prefix: Prefix) -> Tensor:
        """The outputs when all rows see exactly a prefix."""
        output = Output(self)
        self.read(prefix, 0, self.q.shape[3], output)
        return output.joined()

    def unfold(self, rows: Float[Tensor, "B G rows X"]) -> Float[Tensor, "B H n X"]:
        """Rows of a piece back to heads."""
        batch, groups, repeats = self.q.shape[:3]
        by_head = rows.reshape(batch, groups * repeats, rows.shape[2] // repeats, rows.shape[3])
        return by_head.to(self.q.dtype)


class Output:
    """Outputs (B, H, T, V) that come in pieces: written where they belong or, for gradients and vmap, joined later."""

    def __init__(self, problem: Problem) -> None:
        batch, groups, repeats, length, _ = problem.q.shape
        self.problem = problem
        self.whole = problem.v.new_empty(batch, groups * repeats, length, problem.v.shape[-1])
        self.pieces: list[Tensor] = []
        self.filled = 0

    def append(self, sums: Sums) -> None:
        """The next rows, from their sums: numerator over denominator."""
        groups, repeats = self.problem.q.shape[1:3]
        total = sums.total.unflatten(2, (repeats, -1))
        stop = self.filled + total.shape[3]
        if can_write(total):
            place = self.whole[:, :, self.filled : stop].unflatten(1, (groups, repeats))
            torch.mul(total[..., :-1], inverse(total[..., -1:], self.problem.features.trusted), out=place)
        else:
            self.pieces.append(self.problem.unfold(sums.output(self.problem.features.trusted)))
        self.filled = stop

    def joined(self) -> Float[Tensor, "B H T V"]:
        """All rows."""
        assert self.filled == self.whole.shape[2]
        return torch.cat(self.pieces, dim=2) if self.pieces else self.whole
