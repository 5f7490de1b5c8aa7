"""Linear attention piece by piece, by torch's operators: the loops from q, k, v and a prefix to outputs.

A piece is the last n rows of a problem whose keys begin somewhere before them. Its rows attend through features,
through the kernel itself, or near by the one and far by the other. Which form it takes is settled from sizes alone,
by `CausalOptions.choose`; all forms are the same function of an exact map, up to rounding.
"""

from collections.abc import Iterator
from typing import NamedTuple, Self

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn import functional

from likewise.attention.features import FeatureMap, Scaled
from likewise.attention.masks import hide
from likewise.attention.prefix import Prefix, Sums, Window, finite, paired
from likewise.attention.transforms import allows_data_dependent_branching, can_write
from likewise.checks import refuse, require
from likewise.similarity import inverse, wide

BLOCK = 512  # rows mapped at a time where no pairs are formed: features of 256 for 8 heads are then 4 MB
PIECE = 512  # rows of a causal piece, whose chunks are worked on together: one product serves them all
NEAR = 128  # rows that are held against their window at once: with as many keys in the window half of the pairs count


class GroupedQKV(NamedTuple):
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

    def part(self, low: int, start: int, stop: int) -> Self:
        """The queries that stand at positions start..stop, with the keys from `low` to there."""
        past = self.k.shape[2] - self.q.shape[3]
        q, k, v = self.q[:, :, :, start - past : stop - past], self.k[:, :, low:stop], self.v[:, :, low:stop]
        return self._replace(q=q, k=k, v=v, mask=None if self.mask is None else self.mask[:, low:stop])

    def reversed(self) -> Self:
        """The same read from right to left."""
        mask = None if self.mask is None else self.mask.flip(1)
        return self._replace(q=self.q.flip(3), k=self.k.flip(2), v=self.v.flip(2), mask=mask)

    def row_reversed(self, sums: Sums) -> Sums:
        """Sums with the rows of each of the R query heads in reverse order."""

        def turn(x: Tensor) -> Tensor:
            return x.unflatten(2, (self.q.shape[2], -1)).flip(3).flatten(2, 3)

        return Sums(turn(sums.total), None if sums.scale is None else turn(sums.scale))

    def queries(self, start: int, stop: int) -> Scaled:
        """Features of the queries of a piece, (B, G, R * n, ...), each row up to a factor that its output has not."""
        found = self.features.split_queries(self.q[:, :, :, start:stop].flatten(2, 3).to(wide(self.q.dtype)))
        if found.log is None or self.features.direct() is None:
            return found
        # Logarithms of maps with a plain form may be -1e38, beside which those of keys would be lost.
        return Scaled(found.value, found.log - found.log.detach().amax(dim=-1, keepdim=True))

    def raw_keys(self, start: int, stop: int) -> tuple[Tensor, Tensor, Tensor | None]:
        """The keys of a piece, [v | 1], and which of them are not masked."""
        k, v = self.k[:, :, start:stop], self.v[:, :, start:stop]
        seen = None if self.mask is None else self.mask[:, start:stop]
        k, v, ones = hide(k, seen), hide(v, seen), v.new_ones(*v.shape[:-1], 1, dtype=wide(v.dtype))
        return k.to(wide(k.dtype)), torch.cat([v, ones], dim=-1), seen

    def keys(self, start: int, stop: int) -> tuple[Scaled, Tensor]:
        """Features of the keys of a piece, those of masked keys being 0, and [v | 1]."""
        k, values, seen = self.raw_keys(start, stop)
        value, log = self.features.split_keys(k)
        self._check_map(Scaled(value, log))
        if seen is not None:
            hidden = ~seen[:, None, :, None]
            value = value if value is None or log is not None else value.masked_fill(hidden, 0)
            log = None if log is None else log.masked_fill(hidden, -torch.inf)
        return Scaled(value, log), values

    def _check_map(self, keys: Scaled) -> None:
        """Refuse features that are not what the attributes of their map say."""
        features, key_dim = self.features, self.k.shape[-1]
        expected = features.width(key_dim), features.log_width(key_dim)
        given = keys.width, None if keys.log is None else keys.log.shape[-1]
        rule = f"give features and logarithms as `dim` and `logarithmic` say, {expected}"
        require(given == expected, type(features).__name__, "split_keys", rule, given)

    def first(self, start: int, stop: int) -> Tensor | None:
        """The first key of a piece that is not masked, (B, 1, 1, 1)."""
        return None if self.mask is None else self.mask[:, start:stop].int().argmax(dim=1)[:, None, None, None]

    def empty(self) -> Prefix:
        """The prefix of no keys."""
        values = self.v.new_empty(*self.v.shape[:2], 0, self.v.shape[-1] + 1, dtype=wide(self.v.dtype))
        key_dim = self.k.shape[-1]
        return Prefix.empty(values, self.features.width(key_dim), self.features.log_width(key_dim))

    def absorbed(self, prefix: Prefix, start: int, stop: int) -> Prefix:
        """The prefix after the keys of a piece."""
        # Cut at once: the gradient of all cuts is one copy, that of every slice would be as large as the whole.
        keys, values = (x[:, :, start:stop].split(BLOCK, dim=2) for x in (self.k, self.v))
        for number, (k, v) in enumerate(zip(keys, values, strict=True) if start < stop else ()):
            at = start + number * BLOCK
            block = self._replace(k=k, v=v, mask=None if self.mask is None else self.mask[:, at : at + k.shape[2]])
            prefix = prefix.absorb(*block.keys(0, k.shape[2]))
        return prefix

    def read(self, prefix: Prefix, start: int, stop: int, output: "Output") -> None:
        """The outputs of rows that see exactly a prefix, piece by piece."""
        for q in self.q[:, :, :, start:stop].split(BLOCK, dim=3) if start < stop else ():
            queries = self._replace(q=q).queries(0, q.shape[3])
            output.append(prefix.read(queries))

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

    def __init__(self, problem: GroupedQKV) -> None:
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
        if can_write(total) and not self.pieces:
            place = self.whole[:, :, self.filled : stop].unflatten(1, (groups, repeats))
            torch.mul(total[..., :-1], inverse(total[..., -1:], self.problem.features.trusted), out=place)
        else:
            if self.filled and not self.pieces:  # a window needs no gradients of a map's weights; what follows does
                self.pieces.append(self.whole[:, :, : self.filled])
            self.pieces.append(self.problem.unfold(sums.output(self.problem.features.trusted)))
        self.filled = stop

    def joined(self) -> Float[Tensor, "B H T V"]:
        """All rows."""
        assert self.filled == self.whole.shape[2]
        return torch.cat(self.pieces, dim=2) if self.pieces else self.whole


class Span(NamedTuple):
    """Which positions a piece is made of."""

    low: int  # the first key that it needs
    start: int  # its rows are start..stop
    stop: int
    parts: int  # in how many chunks the rows form pairs of features


class CausalOptions(NamedTuple):
    """How causal rows see the keys at and before them."""

    chunk: int  # rows that form pairs of features at a time
    within: int | None = None  # keys less than so many positions back are seen through the kernel itself
    raw: bool = False  # all keys of a row's own piece are
    logarithmic: bool = False  # sums are kept relative to a scale

    @classmethod
    def features(cls, problem: GroupedQKV, chunk_size: int | None = None) -> Self:
        """All pairs through features.

        64 rows at a time: longer chunks cost more products of pairs, shorter ones waste the matrix unit. 16 where
        compiled graphs and vmap cannot avoid the pairwise path of `Prefix.attend`, of rows x chunk x F exponentials.
        """
        logarithmic = problem.features.logarithmic != "no"
        chunk = chunk_size or (64 if allows_data_dependent_branching(problem.k) or not logarithmic else 16)
        return cls(chunk, logarithmic=logarithmic)

    @classmethod
    def choose(
        cls, problem: GroupedQKV, *, causal: bool = True, chunk_size: int | None = None, within: int | None = None
    ) -> Self:
        """The form for these sizes.

        An exact map whose features are wider than its keys leaves pairs to its kernel: up to `exact_length` all of
        them, beyond it those of a piece. Of other maps pairs are formed of features, but for those `within` a window.
        """
        features, positions = problem.features, problem.k.shape[2]
        form = cls.features(problem, chunk_size)
        if not features.exact:
            return form._replace(within=None if within is None else min(within, positions))
        width, key_dim = features.width(problem.k.shape[3]), problem.k.shape[3]
        if form.logarithmic or not features.has_named_kernel or width <= key_dim:
            return form
        if positions <= exact_length(width, key_dim, problem.v.shape[3], causal=causal):
            return cls(chunk_size or NEAR, within=positions)
        return cls(chunk_size or PIECE, raw=True)

    def begin(self, problem: GroupedQKV, prefix: Prefix | None) -> Prefix | None:
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

    def attend(self, piece: GroupedQKV, prefix: Prefix | None, parts: int) -> tuple[Sums, Prefix | None]:
        """The sums of a piece's rows and the prefix after it; None is the prefix of no keys."""
        rows, keys = piece.q.shape[3], piece.k.shape[2]
        window = Window(piece.q.shape[2], parts=parts)
        if self.within is None and not self.raw:
            return (prefix or piece.empty()).attend(
                piece.queries(0, rows), *piece.keys(0, rows), window, piece.first(0, rows)
            )
        near = near_sums(piece, keys - rows, self.within or keys, logarithmic=self.logarithmic)
        far = after = None
        if self.raw:
            far = None if prefix is None else prefix.read(piece.queries(0, rows))
            after = (prefix or piece.empty()).absorb(*piece.keys(0, rows))
        elif keys - rows == self.within:
            far, after = (prefix or piece.empty()).attend(
                piece.queries(0, rows), *piece.keys(0, rows), window, piece.first(0, rows)
            )
        elif prefix is not None:
            far, after = prefix.read(piece.queries(0, rows)), prefix
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


def near_sums(problem: GroupedQKV, offset: int, back: int, ahead: int = 1, *, logarithmic: bool) -> Sums:
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
    return Sums((logs - finite(scale)).exp() @ values, paired(scale))


def _filled(pairs: Float[Tensor, "B G rows S"], hidden: Tensor, value: float) -> Float[Tensor, "B G rows S"]:
    """The pairs with a value where they are hidden, (n, S) or (B, 1, 1, n, S), for each of the R query heads."""
    return pairs.unflatten(2, (-1, hidden.shape[-2])).masked_fill(hidden, value).flatten(2, 3)


def attend_all(problem: GroupedQKV) -> Float[Tensor, "B H T V"]:
    """Outputs of rows that see all keys."""
    return problem.everything_read(problem.absorbed(problem.empty(), 0, problem.k.shape[2]))


def attend_causally(
    problem: GroupedQKV, prefix: Prefix | None, form: CausalOptions
) -> tuple[Float[Tensor, "B H T V"], Prefix | None]:
    """Causal outputs of T rows at the last of S >= T positions after a prefix, and the prefix that the last row read.

    Without a window, that is the prefix of all keys.
    """
    length, positions = problem.q.shape[3], problem.k.shape[2]
    if length <= 1 and form.within is None:
        prefix = problem.absorbed(prefix or problem.empty(), 0, positions)
        return problem.everything_read(prefix), prefix
    past = positions - length
    prefix, output = form.begin(problem, prefix), Output(problem)
    for low, start, stop, parts in form.spans(past, positions):
        sums, prefix = form.attend(problem.part(low, start, stop), prefix, parts)
        output.append(sums)
    return output.joined(), prefix


def attend_blocks(problem: GroupedQKV, form: CausalOptions, block_size: int) -> Float[Tensor, "B H T V"]:
    """Outputs of T rows at the last of S >= T positions that see their own block and all before it."""
    length, positions = problem.q.shape[3], problem.k.shape[2]
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
        sums, prefix = prefix.attend(problem.queries(*rows), *problem.keys(start, stop), window, first)
        output.append(sums)
    return output.joined()


def attend_both_ways(problem: GroupedQKV, form: CausalOptions) -> Float[Tensor, "B H S V"]:
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


def _far_sums(problem: GroupedQKV, form: CausalOptions) -> Sums | None:
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
    return Sums(total, torch.cat([paired(nothing[..., :1] - torch.inf), *scales], dim=3).flatten(2, 3))


def _rows(sums: Sums, problem: GroupedQKV, start: int, stop: int) -> Sums:
    """The sums of rows start..stop of each of the R query heads."""
    repeats = problem.q.shape[2]
    parts = [None if x is None else x.unflatten(2, (repeats, -1))[:, :, :, start:stop].flatten(2, 3) for x in sums]
    assert parts[0] is not None
    return Sums(parts[0], parts[1])


def _later_blocks(problem: GroupedQKV, start: int, stop: int, block_size: int) -> Bool[Tensor, "rows S"]:
    """Which keys of a chunk lie in later blocks than its rows start..stop, for each of the R query heads."""
    block = torch.arange(stop, device=problem.k.device) // block_size
    return (block > block[start:, None]).repeat(problem.q.shape[2], 1)


def attend_packed(
    problem: GroupedQKV, ids: Int[Tensor, "B S"], *, causal: bool, chunk_size: int | None
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
    chunk = chunk_size or min(CausalOptions.features(problem).chunk, max(4, mean))
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

    def aligned(self, problem: GroupedQKV) -> GroupedQKV:
        """The problem with every sequence at the start of a chunk, the gaps masked."""
        there, index = self.source >= 0, self.source.clamp(min=0)
        mask = there if problem.mask is None else there & problem.mask.gather(1, index)
        q, k, v = (_take(x, index, dim) for x, dim in ((problem.q, 3), (problem.k, 2), (problem.v, 2)))
        return GroupedQKV(problem.features, q, k, v, mask)

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


def _scan(problem: GroupedQKV, begins: Bool[Tensor, "B C"], chunk: int, *, diagonal: bool) -> list[Sums]:
    """The sums of every chunk over the keys of its sequence before each row, and at it with `diagonal`."""
    window = Window(problem.q.shape[2], 0 if diagonal else -1)
    # Without `diagonal` the first row of a chunk is measured against a key that it does not see here; the scan from the
    # other side, to which this one is added, has seen that key.
    prefix, parts = problem.empty(), []
    for number, begin in enumerate(begins.unbind(1)):
        piece = number * chunk, (number + 1) * chunk
        prefix = prefix.restart(begin)
        queries, keys, first = problem.queries(*piece), problem.keys(*piece), problem.first(*piece)
        sums, prefix = prefix.attend(queries, *keys, window, first)
        parts.append(sums)
    return parts
