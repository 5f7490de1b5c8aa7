"""Attention in chunks: the loop from q, k, v and a prefix to outputs, which maps only what it needs at a time."""

from collections.abc import Iterator
from typing import NamedTuple, Self

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from likewise.attention.features import FeatureMap, Scaled
from likewise.attention.masks import hide
from likewise.attention.prefix import Prefix, Window
from likewise.similarity import wide

PIECE = 256  # rows of a causal piece, whose chunks are worked on together: one product serves them all
BLOCK = 512  # rows mapped at a time where no pairs are formed: features of 256 for 8 heads are then 4 MB


class Problem(NamedTuple):
    """q, k, v with the R query heads of a key-value head side by side, mapped piece by piece when needed."""

    features: FeatureMap
    q: Tensor  # (B, G, R, T, K)
    k: Tensor  # (B, G, S, K)
    v: Tensor  # (B, G, S, V)
    mask: Tensor | None  # (B, S)

    @classmethod
    def fold(cls, features: FeatureMap, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Self:
        groups = k.shape[1]
        return cls(features, q.reshape(q.shape[0], groups, q.shape[1] // groups, *q.shape[2:]), k, v, mask)

    def rows(self, start: int) -> Self:
        """The same keys with the queries from `start` on."""
        return self._replace(q=self.q[:, :, :, start:])

    def queries(self, start: int, stop: int) -> Scaled:
        """Features of the queries of a piece, (B, G, R * n, ...)."""
        piece = self.q[:, :, :, start:stop].flatten(2, 3)
        return self.features.split_queries(piece.to(wide(piece.dtype)))

    def keys(self, start: int, stop: int) -> tuple[Scaled, Tensor]:
        """Features of the keys of a piece, those of masked keys being 0, and [v | 1]."""
        k, v = self.k[:, :, start:stop], self.v[:, :, start:stop]
        seen = None if self.mask is None else self.mask[:, start:stop]
        k, v = hide(k, seen).to(wide(k.dtype)), hide(v, seen).to(wide(v.dtype))
        value, log = self.features.split_keys(k)
        if seen is not None:
            hidden = ~seen[:, None, :, None]
            value = value if value is None or log is not None else value.masked_fill(hidden, 0)
            log = None if log is None else log.masked_fill(hidden, -torch.inf)
        return Scaled(value, log), torch.cat([v, v.new_ones(*v.shape[:-1], 1)], dim=-1)

    def first(self, start: int, stop: int) -> Tensor | None:
        """The first key of a piece that is not masked, (B, 1, 1, 1)."""
        return None if self.mask is None else self.mask[:, start:stop].int().argmax(dim=1)[:, None, None, None]

    def empty(self) -> Prefix:
        """The prefix of no keys."""
        return Prefix.empty(*self.keys(0, 0))

    def absorbed(self, prefix: Prefix, start: int, stop: int) -> Prefix:
        """The prefix after the keys of a piece."""
        for at in range(start, stop, BLOCK):
            prefix = prefix.absorb(*self.keys(at, min(at + BLOCK, stop)))
        return prefix

    def read(self, prefix: Prefix, start: int, stop: int, output: "Output") -> None:
        """The outputs of rows that see exactly a prefix, piece by piece."""
        for at in range(start, stop, BLOCK):
            output.append(self.unfold(prefix.read(self.queries(at, min(at + BLOCK, stop))).output()))

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
    """Outputs (B, H, T, V) that come in pieces, written where they belong or, for gradients, joined at the end."""

    def __init__(self, problem: Problem) -> None:
        batch, groups, repeats, length, _ = problem.q.shape
        self.whole = problem.v.new_empty(batch, groups * repeats, length, problem.v.shape[-1])
        self.pieces: list[Tensor] = []
        self.filled = 0

    def append(self, piece: Float[Tensor, "B H n V"]) -> None:
        """The next rows."""
        if piece.requires_grad:
            self.pieces.append(piece)
        else:
            self.whole[:, :, self.filled : self.filled + piece.shape[2]] = piece
        self.filled += piece.shape[2]

    def joined(self) -> Float[Tensor, "B H T V"]:
        """All rows."""
        assert self.filled == self.whole.shape[2]
        return torch.cat(self.pieces, dim=2) if self.pieces else self.whole


def attend_causally(
    problem: Problem, prefix: Prefix, *, block_size: int = 1, chunk_size: int | None = None
) -> tuple[Float[Tensor, "B H T V"], Prefix]:
    """Causal outputs of T rows at the last of S >= T positions that come after a prefix, and the prefix after them all.

    Rows see the prefix, all blocks before their own and their own block.
    """
    length, positions = problem.q.shape[3], problem.k.shape[2]
    past = positions - length
    if length <= 1:
        prefix = problem.absorbed(prefix, 0, positions)
        return problem.everything_read(prefix), prefix
    chunk = block_size * max(1, (chunk_size or default_chunk(prefix)) // block_size)
    start = past // block_size * block_size
    prefix = problem.absorbed(prefix, 0, start)
    output = Output(problem)
    for at, stop, parts in pieces(start, positions, chunk, most=1 if block_size > 1 else PIECE // chunk):
        rows = max(at, past) - past, stop - past
        if chunk == block_size > 1:  # the rows of one block see all of it: no pairs to tell apart
            prefix = problem.absorbed(prefix, at, stop)
            problem.read(prefix, *rows, output)
            continue
        hidden = None if block_size == 1 else later_blocks(problem, rows[0] + past - at, stop - at, block_size)
        window, first = Window(problem.q.shape[2], hidden=hidden, parts=parts), problem.first(at, stop)
        sums, prefix = prefix.attend(problem.queries(*rows), *problem.keys(at, stop), window, first)
        output.append(problem.unfold(sums.output()))
    return output.joined(), prefix


def pieces(start: int, stop: int, chunk: int, most: int | None = None) -> Iterator[tuple[int, int, int]]:
    """Start, stop and number of chunks of every piece; what is less than a chunk comes last, on its own.

    >>> list(pieces(0, 300, 64))
    [(0, 256, 4), (256, 300, 1)]
    """
    most = PIECE // chunk if most is None else most
    while start < stop:
        parts = max(1, min(most, (stop - start) // chunk))
        yield start, min(start + parts * chunk, stop), parts
        start += parts * chunk


def default_chunk(prefix: Prefix) -> int:
    """Rows per chunk: long enough for fast products; short where a compiled graph cannot avoid the pairwise path."""
    return 16 if torch.compiler.is_compiling() and prefix.scale is not None else 64


def later_blocks(problem: Problem, start: int, stop: int, block_size: int) -> Bool[Tensor, "rows S"]:
    """Which keys of a chunk lie in later blocks than its rows start..stop, for each of the R query heads."""
    block = torch.arange(stop, device=problem.k.device) // block_size
    return (block > block[start:, None]).repeat(problem.q.shape[2], 1)
