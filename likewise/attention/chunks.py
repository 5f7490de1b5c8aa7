"""Attention piece by piece: the loops from q, k, v and a prefix to outputs."""

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from likewise.attention.pieces import NEAR, Form, near_sums, pieces
from likewise.attention.prefix import Prefix, Sums, Window
from likewise.attention.problem import Output, Problem


def attend_all(problem: Problem) -> Float[Tensor, "B H T V"]:
    """Outputs of rows that see all keys."""
    problem = problem.reusing()
    return problem.everything_read(problem.absorbed(problem.empty(), 0, problem.k.shape[2]))


def attend_causally(
    problem: Problem, prefix: Prefix | None, form: Form
) -> tuple[Float[Tensor, "B H T V"], Prefix | None]:
    """Causal outputs of T rows at the last of S >= T positions after a prefix, and the prefix that the last row read.

    Without a window, that is the prefix of all keys.
    """
    problem, length, positions = problem.reusing(), problem.q.shape[3], problem.k.shape[2]
    if length <= 1 and form.within is None:
        prefix = problem.absorbed(prefix or problem.empty(), 0, positions)
        return problem.everything_read(prefix), prefix
    past = positions - length
    prefix, output = form.begin(problem, prefix), Output(problem)
    for low, start, stop, parts in form.spans(past, positions):
        sums, prefix = form.attend(problem.part(low, start, stop), prefix, parts)
        output.append(sums)
    return output.joined(), prefix


def attend_blocks(problem: Problem, form: Form, block_size: int) -> Float[Tensor, "B H T V"]:
    """Outputs of T rows at the last of S >= T positions that see their own block and all before it."""
    problem, length, positions = problem.reusing(), problem.q.shape[3], problem.k.shape[2]
    past = positions - length
    chunk = block_size * max(1, form.chunk // block_size)
    begin = past // block_size * block_size
    prefix, output = problem.absorbed(problem.empty(), 0, begin), Output(problem)
    for start, stop, _ in pieces(begin, positions, chunk, most=1):
        rows = max(start, past) - past, stop - past
        if chunk == block_size:  # the rows of one block see all of it: no pairs to tell apart
            prefix = problem.absorbed(prefix, start, stop)
            problem.read(prefix, *rows, output)
            continue
        hidden = _later_blocks(problem, rows[0] + past - start, stop - start, block_size)
        window, first = Window(problem.q.shape[2], hidden=hidden), problem.first(start, stop)
        sums, prefix = prefix.attend(problem.queries(*rows), *problem.keys(start, stop), window, first, problem.space)
        output.append(sums)
    return output.joined()


def attend_both_ways(problem: Problem, form: Form) -> Float[Tensor, "B H S V"]:
    """Outputs of S rows that see all S keys: those less than `within` positions away through the kernel itself."""
    positions = problem.k.shape[2]
    assert form.within is not None
    left, right = _far_sums(problem, form), _far_sums(problem.reversed(), form)
    if left is not None and right is not None:
        left = left | problem.row_reversed(right)
    output = Output(problem)
    for start in range(0, positions, NEAR):
        stop = min(start + NEAR, positions)
        low, high = max(0, start - form.within), min(positions, stop + form.within)
        piece = problem.part(low, low, high)._replace(q=problem.q[:, :, :, start:stop])
        sums = near_sums(piece, start - low, form.within, form.within, logarithmic=form.logarithmic)
        output.append(sums if left is None else sums | _rows(left, problem, start, stop))
    return output.joined()


def _far_sums(problem: Problem, form: Form) -> Sums | None:
    """The sums of all rows over the keys at least `within` positions before them, through features."""
    repeats, positions = problem.q.shape[2], problem.k.shape[2]
    assert form.within is not None
    if form.within >= positions:
        return None
    # Row i sees keys up to i - within: rows from `within` on, held against the keys that many positions before.
    far = problem.part(0, 0, positions - form.within)._replace(q=problem.q[:, :, :, form.within :])
    causal, prefix, found = form._replace(within=None), None, []
    for low, start, stop, parts in causal.spans(0, positions - form.within):
        sums, prefix = causal.attend(far.part(low, start, stop), prefix, parts)
        found.append([None if x is None else x.unflatten(2, (repeats, -1)) for x in sums])
    totals, scales = zip(*found, strict=True)
    nothing = totals[0].new_zeros(*totals[0].shape[:3], form.within, totals[0].shape[4])
    total = torch.cat([nothing, *totals], dim=3).flatten(2, 3)
    if scales[0] is None:
        return Sums(total, None)
    return Sums(total, torch.cat([nothing[..., :1] - torch.inf, *scales], dim=3).flatten(2, 3))


def _rows(sums: Sums, problem: Problem, start: int, stop: int) -> Sums:
    """The sums of rows start..stop of each of the R query heads."""
    repeats = problem.q.shape[2]
    parts = [None if x is None else x.unflatten(2, (repeats, -1))[:, :, :, start:stop].flatten(2, 3) for x in sums]
    assert parts[0] is not None
    return Sums(parts[0], parts[1])


def _later_blocks(problem: Problem, start: int, stop: int, block_size: int) -> Bool[Tensor, "rows S"]:
    """Which keys of a chunk lie in later blocks than its rows start..stop, for each of the R query heads."""
    block = torch.arange(stop, device=problem.k.device) // block_size
    return (block > block[start:, None]).repeat(problem.q.shape[2], 1)
