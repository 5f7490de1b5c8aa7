"""How the rows of a piece attend: through features, through the kernel itself, or near by the one and far by the other.

A piece is the last n rows of a problem whose keys begin somewhere before them. Which form it takes is settled from
sizes alone, by `Form.choose`; all forms are the same function of an exact map, up to rounding.
"""

from collections.abc import Iterator
from typing import NamedTuple, Self

import torch
from jaxtyping import Float
from torch import Tensor

from likewise.attention.prefix import Prefix, Sums, Window, can_look, finite
from likewise.attention.problem import Problem
from likewise.similarity import wide

PIECE = 512  # rows of a causal piece, whose chunks are worked on together: one product serves them all
NEAR = 128  # rows that are held against their window at once: with as many keys in the window half of the pairs count


class Span(NamedTuple):
    """Which positions a piece is made of."""

    low: int  # the first key that it needs
    start: int  # its rows are start..stop
    stop: int
    parts: int  # in how many chunks the rows form pairs of features


class Form(NamedTuple):
    """How causal rows see the keys at and before them."""

    chunk: int  # rows that form pairs of features at a time
    within: int | None = None  # keys less than so many positions back are seen through the kernel itself
    raw: bool = False  # all keys of a row's own piece are
    logarithmic: bool = False  # sums are kept relative to a scale

    @classmethod
    def features(cls, problem: Problem, chunk_size: int | None = None) -> Self:
        """All pairs through features.

        64 rows at a time: longer chunks cost more products of pairs, shorter ones waste the matrix unit. 16 where
        compiled graphs and vmap cannot avoid the pairwise path of `Prefix.attend`, of rows x chunk x F exponentials.
        """
        logarithmic = problem.keys(0, 0)[0].log is not None
        chunk = chunk_size or (64 if can_look(problem.k) or not logarithmic else 16)
        return cls(chunk, logarithmic=logarithmic)

    @classmethod
    def choose(
        cls, problem: Problem, *, causal: bool = True, chunk_size: int | None = None, within: int | None = None
    ) -> Self:
        """The form for these sizes.

        An exact map whose features are wider than its keys leaves pairs to its kernel: up to `exact_length` all of
        them, beyond it those of a piece. Of other maps pairs are formed of features, but for those `within` a window.
        """
        features, positions = problem.features, problem.k.shape[2]
        form = cls.features(problem, chunk_size)
        if not features.exact:
            return form._replace(within=None if within is None else min(within, positions))
        width, key_dim = problem.keys(0, 0)[0].width, problem.k.shape[3]
        if form.logarithmic or not features.has_named_kernel or width <= key_dim:
            return form
        if positions <= exact_length(width, key_dim, problem.v.shape[3], causal=causal):
            return cls(chunk_size or NEAR, within=positions)
        return cls(chunk_size or PIECE, raw=True)

    def begin(self, problem: Problem, prefix: Prefix | None) -> Prefix | None:
        """The prefix with the keys that lie before all rows, and before their windows."""
        before = problem.k.shape[2] - problem.q.shape[3] - (self.within or 0)
        return prefix if before <= 0 else problem.absorbed(prefix or problem.empty(), 0, before)

    def spans(self, past: int, positions: int) -> Iterator[Span]:
        """The pieces of rows that stand at past..positions."""
        if self.within is None:
            for start, stop, parts in pieces(past, positions, self.chunk, 1 if self.raw else PIECE // self.chunk):
                yield Span(start, start, stop, parts)
            return
        edge = min(max(past, self.within), positions)  # rows before it see nothing through features
        for begin, end in ((past, edge), (edge, positions)):
            for start, stop, parts in pieces(begin, end, self.chunk, NEAR // self.chunk):
                yield Span(max(0, start - self.within), start, stop, parts)

    def attend(self, piece: Problem, prefix: Prefix | None, parts: int) -> tuple[Sums, Prefix | None]:
        """The sums of a piece's rows and the prefix after it; None is the prefix of no keys."""
        rows, keys = piece.q.shape[3], piece.k.shape[2]
        window = Window(piece.q.shape[2], parts=parts)
        if self.within is None and not self.raw:
            return (prefix or piece.empty()).attend(
                piece.queries(0, rows), *piece.keys(0, rows), window, piece.first(0, rows), piece.space
            )
        near = near_sums(piece, keys - rows, self.within or keys, logarithmic=self.logarithmic)
        far = after = None
        if self.raw:
            far = None if prefix is None else prefix.read(piece.queries(0, rows), piece.space)
            after = (prefix or piece.empty()).absorb(*piece.keys(0, rows), piece.space)
        elif keys - rows == self.within:
            far, after = (prefix or piece.empty()).attend(
                piece.queries(0, rows), *piece.keys(0, rows), window, piece.first(0, rows), piece.space
            )
        elif prefix is not None:
            far, after = prefix.read(piece.queries(0, rows), piece.space), prefix
        return near if far is None else far | near, after


def pieces(start: int, stop: int, chunk: int, most: int) -> Iterator[tuple[int, int, int]]:
    """Start, stop and number of chunks, at most so many, of every piece; less than a chunk comes last, on its own.

    >>> list(pieces(0, 300, 64, most=4))
    [(0, 256, 4), (256, 300, 1)]
    """
    while start < stop:
        parts = max(1, min(most, (stop - start) // chunk))
        yield start, min(start + parts * chunk, stop), parts
        start += parts * chunk


def exact_length(width: int, key_dim: int, value_dim: int, *, causal: bool) -> int:
    """Up to how many positions the kernel itself is cheaper than features.

    A row costs S (K + V) multiply-adds by the kernel, half of that when causal, and 2 F V by features: F V to read the
    prefix and as many to extend it.
    """
    return (4 if causal else 2) * width * value_dim // max(1, key_dim + value_dim)


def near_sums(problem: Problem, offset: int, back: int, ahead: int = 1, *, logarithmic: bool) -> Sums:
    """The sums of rows over the keys less than `back` positions before and less than `ahead` after them, by the kernel.

    Row i stands at key i + offset. The scale of a row is the largest logarithm that it sees.
    """
    rows, kernel = problem.q.shape[3], problem.features.kernel
    keys, values, seen = problem.raw_keys(0, problem.k.shape[2])
    queries = problem.q.flatten(2, 3).to(wide(problem.q.dtype))
    near = torch.ones(rows, keys.shape[2], dtype=torch.bool, device=keys.device)
    near = near.triu_(offset - back + 1).tril_(offset + ahead - 1)
    hidden = ~near if seen is None else ~(near & seen[:, None, None, None])
    if not logarithmic:
        return Sums(_filled(kernel(queries, keys), hidden, 0.0) @ values, None)
    logs = _filled(kernel.log(queries, keys), hidden, -torch.inf)
    scale = logs.detach().amax(dim=-1, keepdim=True)
    return Sums((logs - finite(scale)).exp() @ values, scale)


def _filled(pairs: Float[Tensor, "B G rows S"], hidden: Tensor, value: float) -> Float[Tensor, "B G rows S"]:
    """The pairs with a value where they are hidden, (n, S) or (B, 1, 1, n, S), for each of the R query heads."""
    return pairs.unflatten(2, (-1, hidden.shape[-2])).masked_fill(hidden, value).flatten(2, 3)
