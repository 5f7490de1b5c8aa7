"""Linear attention over packed sequences: several in one row of the batch, none of which sees another."""

from typing import NamedTuple, Self

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn import functional

from likewise.attention.pieces import Form
from likewise.attention.prefix import Sums, Window
from likewise.attention.problem import Problem
from likewise.checks import refuse


def attend_packed(
    problem: Problem, ids: Int[Tensor, "B S"], *, causal: bool, chunk_size: int | None
) -> Float[Tensor, "B H T V"]:
    """Attention inside each run of equal ids, queries standing at the last T of the S positions.

    Every sequence is moved to the start of a chunk, and the prefix restarts there, so a sequence depends on its
    neighbours only through the default chunk size, that is in its last digits. Without `causal`, a row's keys are
    those up to its own position, read from the left, and those after it, read from the right.
    """
    length, positions = problem.q.shape[3], problem.k.shape[2]
    if torch.compiler.is_compiling():
        hint = "softmax_attention and kernel_attention take sequence_ids in compiled graphs."
        refuse("linear_attention", "sequence_ids", "be looked at, so not be compiled", "torch.compile", hint)
    mean = positions // (1 + int((ids.diff(dim=1) != 0).sum(1).max()))  # of the sequences in the row with most of them
    chunk = chunk_size or min(Form.features(problem).chunk, max(4, mean))
    layout = _Layout.of(ids, chunk)
    # Queries that are not there: rows of 0, whose outputs are dropped.
    whole = problem._replace(q=functional.pad(problem.q, (0, 0, positions - length, 0)))
    aligned = layout.aligned(whole)
    sums = _scan(aligned, layout.begins, chunk, diagonal=True)
    if not causal:
        ends = torch.cat([layout.begins[:, 1:], torch.ones_like(layout.begins[:, :1])], dim=1)
        after = _scan(aligned.reversed(), ends.flip(1), chunk, diagonal=False)
        sums = [left | problem.row_reversed(right) for left, right in zip(sums, reversed(after), strict=True)]
    out = torch.cat([aligned.unfold(part.output(problem.features.trusted)) for part in sums], dim=2)
    return layout.restored(out)[:, :, positions - length :]


class _Layout(NamedTuple):
    """Where packed positions go so that every sequence starts at a multiple of the chunk size."""

    source: Int[Tensor, "B A"]  # the position that stands at each aligned place; -1 for none
    target: Int[Tensor, "B S"]  # the aligned place of each position
    begins: Bool[Tensor, "B C"]  # which chunks begin a sequence

    @classmethod
    def of(cls, ids: Int[Tensor, "B S"], chunk: int) -> Self:
        at = torch.arange(ids.shape[1], device=ids.device).expand_as(ids)
        begin = starts(ids)
        ends = begin.roll(-1, dims=1)  # the first position begins a sequence, so the last ends one
        begun = (at * begin).cummax(dim=1).values
        room = -(-(at - begun + 1) // chunk) * chunk * ends  # of each sequence, at its last position
        target = room.cumsum(dim=1) - room + at - begun
        total = int(room.sum(dim=1).max())
        source = torch.full((ids.shape[0], total), -1, device=ids.device).scatter(1, target, at)
        first = source[:, ::chunk]
        return cls(source, target, (first >= 0) & begin.gather(1, first.clamp(min=0)))

    def aligned(self, problem: Problem) -> Problem:
        """The problem with every sequence at the start of a chunk, the gaps masked."""
        there, index = self.source >= 0, self.source.clamp(min=0)
        mask = there if problem.mask is None else there & problem.mask.gather(1, index)
        q, k, v = (_take(x, index, dim) for x, dim in ((problem.q, 3), (problem.k, 2), (problem.v, 2)))
        return Problem(problem.features, q, k, v, mask)

    def restored(self, out: Float[Tensor, "B H A V"]) -> Float[Tensor, "B H S V"]:
        """Aligned rows back in the order in which they came."""
        return _take(out, self.target, 2)


def starts(ids: Int[Tensor, "B S"]) -> Bool[Tensor, "B S"]:
    """Which positions begin a sequence."""
    return functional.pad(ids.diff(dim=1) != 0, (1, 0), value=True)


def _take(x: Tensor, index: Int[Tensor, "B N"], dim: int) -> Tensor:
    """x with its positions, at dimension `dim`, replaced by those that index names."""
    index = index.reshape(index.shape[0], *[1] * (dim - 1), index.shape[1], 1)
    return x.gather(dim, index.expand(*x.shape[:dim], index.shape[dim], x.shape[-1]))


def _scan(problem: Problem, begins: Bool[Tensor, "B C"], chunk: int, *, diagonal: bool) -> list[Sums]:
    """The sums of every chunk over the keys of its sequence before each row, and at it with `diagonal`."""
    window = Window(problem.q.shape[2], 0 if diagonal else -1)
    # Without `diagonal` the first row of a chunk is measured against a key that it does not see here; the scan from the
    # other side, to which this one is added, has seen that key.
    prefix, parts = problem.empty(), []
    for number, begin in enumerate(begins.unbind(1)):
        piece = number * chunk, (number + 1) * chunk
        prefix = prefix.restart(begin)
        queries, keys, first = problem.queries(*piece), problem.keys(*piece), problem.first(*piece)
        sums, prefix = prefix.attend(queries, *keys, window, first, problem.space)
        parts.append(sums)
    return parts
