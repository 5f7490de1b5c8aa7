"""What a run of keys leaves behind, S = sum_j phi(k_j)' v_j and Z = sum_j phi(k_j), and how rows read it.

Values carry a last column of ones, so Z is the last column of S and a denominator the last column of a numerator.

Maps with a log part (value * exp(log)) keep their sums relative to `scale`, the running maximum of the log of every
feature; a row of queries keeps its own. Scales cancel in the output, so gradients do not flow through them. A row's
scale depends only on keys that the row sees: no later key can change it, not by a bit. It is kept as two numbers, for
of -1e18 + 41 one number would keep nothing of the 41.
"""

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from likewise.attention.features import Scaled
from likewise.attention.transforms import allows_data_dependent_branching, can_write
from likewise.similarity import ratio, rounded_off

# How far, in natural logarithms, a feature of a key may exceed its chunk's reference and still be exponentiated against
# it. What a query's factor can lose by underflow is then below exp(JUMP - 87) = exp(-47) of the row in float32.
JUMP = {torch.float32: 40.0, torch.float64: 300.0}


class Window(NamedTuple):
    """Which of a chunk's keys its rows keep; rows stand head after head, for the R query heads of a key-value head."""

    repeats: int = 1  # R
    diagonal: int = 0  # row i keeps keys up to i + diagonal ...
    hidden: Tensor | None = None  # ... or, where this is given, those that it does not name, (rows, S)
    parts: int = 1  # pairs are formed inside this many equal parts; across them, rows read what the parts before left

    def keep(self, pairs: Float[Tensor, "*B rows S"]) -> Float[Tensor, "*B rows S"]:
        """The pairs of one part, 0 where they may not attend; they may be overwritten."""
        if self.hidden is not None:
            return pairs.masked_fill(self.hidden, 0)
        by_head = pairs.unflatten(-2, (self.repeats, -1))
        kept = by_head.tril_(self.diagonal) if allows_data_dependent_branching(pairs) else by_head.tril(self.diagonal)
        return kept.flatten(-3, -2)

    def split_rows(self, x: Float[Tensor, "B G rows X"]) -> Float[Tensor, "B G P part X"]:
        """Rows by part, those of all query heads together."""
        return x.unflatten(2, (self.repeats, self.parts, -1)).transpose(2, 3).flatten(3, 4)

    def split_keys(self, x: Float[Tensor, "B G S X"]) -> Float[Tensor, "B G P part X"]:
        """Keys or values by part."""
        return x.unflatten(2, (self.parts, -1))

    def states(
        self, first: Tensor, additions: Float[Tensor, "B G P F V1"], *, backwards: bool = False
    ) -> tuple[Tensor, Tensor]:
        """The sums before every part and after the last, from those before the first; backwards from the last part."""
        order = range(self.parts)[::-1] if backwards else range(self.parts)
        if can_write(first, additions):
            states, after = torch.empty_like(additions), torch.empty_like(first)
            places = [*(states[:, :, part] for part in order), after]
            places[0].copy_(first)
            for part, here, there in zip(order, places[:-1], places[1:], strict=True):
                torch.add(here, additions[:, :, part], out=there)
            return states, after
        sums = [first]
        for part in order:
            sums.append(sums[-1] + additions[:, :, part])
        return torch.stack([sums[number] for number in order], dim=2), sums[-1]

    def join_rows(self, x: Float[Tensor, "B G P part X"]) -> Float[Tensor, "B G rows X"]:
        """The inverse of `split_rows`."""
        return x.unflatten(3, (self.repeats, -1)).transpose(2, 3).flatten(2, 4)


class Sums(NamedTuple):
    """Numerator and denominator of some rows, (B, G, rows, V + 1), times exp(-scale)."""

    total: Tensor
    scale: Tensor | None  # (B, G, rows, 2), whose sum is the scale; None for maps without a log part

    def output(self, trusted: tuple[float, float] | None = None) -> Float[Tensor, "B G rows V"]:
        """The attention output: numerator over denominator."""
        return ratio(self.total[..., :-1], self.total[..., -1:], trusted)

    def __or__(self, other: "Sums") -> "Sums":
        """The sums over two disjoint sets of keys, for the same rows."""
        if self.scale is None or other.scale is None:
            return Sums(self.total + other.total, None)
        lowest = torch.finfo(self.scale.dtype).min  # instead of -inf, where nothing was seen
        ahead = (self.scale.clamp(min=lowest) - other.scale.clamp(min=lowest)).sum(-1, keepdim=True)
        mine, theirs = ahead.clamp(max=0).exp(), (-ahead).clamp(max=0).exp()
        scale = torch.where(ahead < 0, other.scale, self.scale)
        return Sums(self.total * mine + other.total * theirs, scale)


class Prefix(NamedTuple):
    """S and Z of the keys seen so far, (B, G, F, V + 1), times exp(-scale)."""

    sums: Tensor
    scale: Tensor | None  # (B, G, 1, F) or (B, G, 1, 1), -inf where nothing was seen; None for maps without a log part

    @classmethod
    def empty(cls, values: Float[Tensor, "B G S V1"], width: int, logs: int | None) -> "Prefix":
        """The prefix of no keys: of so many features and, where a map has logarithms, so many of them in a row."""
        sums = values.new_zeros(*values.shape[:2], width, values.shape[-1])
        return cls(sums, None if logs is None else sums.new_full((*sums.shape[:2], 1, logs), -torch.inf))

    def absorb(self, keys: Scaled, values: Float[Tensor, "B G S V1"]) -> "Prefix":
        """The prefix after these keys."""
        if keys.log is None or self.scale is None:
            return Prefix(plus_product(self.sums, keys.plain().mT, values), None)
        scale = torch.maximum(self.scale, keys.log.detach().amax(dim=-2, keepdim=True))
        return Prefix(plus_product(self.relative_to(scale), _weights(keys, scale).mT, values), scale)

    def merge(self, other: "Prefix") -> "Prefix":
        """The prefix of both runs of keys: associative and commutative."""
        if self.scale is None or other.scale is None:
            return Prefix(self.sums + other.sums, None)
        scale = torch.maximum(self.scale, other.scale)
        return Prefix(self.relative_to(scale) + other.relative_to(scale), scale)

    def restart(self, fresh: Bool[Tensor, " B"]) -> "Prefix":
        """This prefix, emptied in the batch rows that begin a new sequence."""
        fresh = fresh[:, None, None, None]
        scale = None if self.scale is None else self.scale.masked_fill(fresh, -torch.inf)
        return Prefix(self.sums.masked_fill(fresh, 0), scale)

    def read(self, queries: Scaled) -> Sums:
        """The sums of rows that see exactly these keys."""
        if self.scale is None:
            return Sums(product(queries.plain(), self.sums), None)
        factors, scale = _factors(queries, self.scale)
        return Sums(product(factors, self.sums), scale)

    def relative_to(self, scale: Tensor) -> Tensor:
        """The sums times exp(-scale) instead of exp(-self.scale)."""
        assert self.scale is not None
        return self.sums * (self.scale - finite(scale)).exp().mT

    def attend(
        self,
        queries: Scaled,
        keys: Scaled,
        values: Float[Tensor, "B G S V1"],
        window: Window,
        first: Tensor | None,
    ) -> tuple[Sums, "Prefix"]:
        """The sums of a chunk's rows over this prefix and the keys in their window, and the prefix after the chunk.

        All rows must see key 0 or, where this prefix is empty, all rows that see any key must see key `first`, of shape
        (B, 1, 1, 1).
        """
        chunk = self.measure(queries, keys, first)
        total, after = chunk.attend(values, window)
        sums, prefix = Sums(total, chunk.scale), Prefix(after, chunk.reference)
        if chunk.latest is not None:
            prefix = Prefix(prefix.relative_to(chunk.latest), chunk.latest)
        if chunk.jumping is None:
            return sums, prefix
        # Added to what the others get, never instead of it: rows and heads in which nothing jumps keep every bit.
        assert keys.log is not None
        far = Scaled(keys.value, keys.log.masked_fill(~chunk.jumping, -torch.inf))
        return sums | _attend_pairwise(queries, far, values, window), prefix.absorb(far, values)

    def measure(self, queries: Scaled, keys: Scaled, first: Tensor | None) -> "Chunk":
        """A chunk's features, and this prefix, against the reference that all of the chunk's rows share."""
        if keys.log is None or self.scale is None:
            return Chunk(queries.plain(), keys.plain(), self.sums, None, None, None, None)
        log = keys.log.detach()
        zeroth = log[:, :, :1]
        start = zeroth if first is None else log.gather(2, first.expand(*zeroth.shape))
        # Keys that all rows of the chunk are sure to see.
        reference = torch.where(self.scale == -torch.inf, start, torch.maximum(self.scale, zeroth))
        latest = torch.maximum(reference, log.amax(dim=-2, keepdim=True))
        limit = reference + JUMP[log.dtype]
        jumping = log > limit if not allows_data_dependent_branching(log) or bool((latest > limit).any()) else None
        near = keys if jumping is None else Scaled(keys.value, keys.log.masked_fill(jumping, -torch.inf))
        factors, scale = _factors(queries, reference)
        before = self.relative_to(reference)
        return Chunk(factors, _weights(near, reference), before, scale, reference, latest, jumping)


class Chunk(NamedTuple):
    """A chunk whose features are plain numbers: phi(q).phi(k) is factors . weights, times exp(scale)."""

    factors: Tensor  # (B, G, rows, F)
    weights: Tensor  # (B, G, S, F), 0 where `jumping`
    before: Tensor  # (B, G, F, V + 1): the prefix's sums against the same reference
    scale: Tensor | None  # (B, G, rows, 2)
    reference: Tensor | None  # (B, G, 1, F) or (B, G, 1, 1)
    latest: Tensor | None  # the running maximum after the chunk
    jumping: Tensor | None  # features of keys too far above the reference to be exponentiated against it

    def attend(
        self, values: Float[Tensor, "B G S V1"], window: Window
    ) -> tuple[Float[Tensor, "B G rows V1"], Float[Tensor, "B G F V1"]]:
        """The rows' sums over the prefix and the keys in their window, and the prefix's sums after the chunk."""
        if window.parts == 1:
            pairs = window.keep(product(self.factors, self.weights.mT))
            total = add_product(product(self.factors, self.before), pairs, values)
            return total, plus_product(self.before, self.weights.mT, values)
        factors = window.split_rows(self.factors)
        weights, values = window.split_keys(self.weights), window.split_keys(values)
        states, after = window.states(self.before, product(weights.mT, values))
        pairs = window.keep(product(factors, weights.mT))
        return window.join_rows(add_product(product(factors, states), pairs, values)), after


def _attend_pairwise(queries: Scaled, keys: Scaled, values: Tensor, window: Window) -> Sums:
    """The sums with every pair's features exponentiated on their own: right for any logs, but slow."""
    if window.parts == 1:
        return _pairwise(queries, keys, values, window)
    assert keys.log is not None
    prefix = Prefix.empty(values, keys.width, keys.log.shape[-1])
    totals, scales = [], []
    for part in range(window.parts):
        rows = Scaled(*(None if x is None else window.split_rows(x)[:, :, part] for x in queries))
        own = Scaled(*(None if x is None else window.split_keys(x)[:, :, part] for x in keys))
        own_values = window.split_keys(values)[:, :, part]
        sums = prefix.read(rows) | _pairwise(rows, own, own_values, window)
        totals.append(sums.total)
        scales.append(sums.scale)
        prefix = prefix.absorb(own, own_values)
    return Sums(window.join_rows(torch.stack(totals, dim=2)), window.join_rows(torch.stack(scales, dim=2)))


def _pairwise(queries: Scaled, keys: Scaled, values: Tensor, window: Window) -> Sums:
    """The sums over pairs of one part, by rows x S x F exponentials."""
    assert queries.log is not None
    assert keys.log is not None
    left, right = queries.log[:, :, :, None], keys.log[:, :, None]
    logs = left + right
    lost = rounded_off(left, right, logs)
    hidden = window.keep(torch.ones_like(logs[..., 0])) == 0
    logs = logs.masked_fill(hidden[..., None], -torch.inf)
    scale = logs.detach().amax(dim=(-2, -1), keepdim=True)
    rest = lost.masked_fill(logs.detach() < scale, -torch.inf).amax(dim=(-2, -1), keepdim=True)
    weights = ((logs - finite(scale)) + (lost - rest)).exp()
    if keys.value is not None and queries.value is not None:
        weights = weights * queries.value[:, :, :, None] * keys.value[:, :, None]
    return Sums(weights.sum(-1) @ values, torch.cat([scale, rest], dim=-1)[..., 0, :])


def _factors(queries: Scaled, reference: Tensor) -> tuple[Tensor, Tensor]:
    """Query features for keys measured against `reference`, times exp(-scale), and each row's scale."""
    assert queries.log is not None
    # The largest of the reference is added last: beside -1e18 the logarithms of the queries would be lost.
    shift = finite(reference.amax(dim=-1, keepdim=True))
    logs = queries.log + (reference - shift)
    scale = logs.detach().amax(dim=-1, keepdim=True)
    factors = logs.sub_(finite(scale)).exp_()
    whole = shift.expand_as(scale).masked_fill(scale == -torch.inf, -torch.inf)
    return factors if queries.value is None else queries.value * factors, torch.cat([whole, finite(scale)], dim=-1)


def _weights(keys: Scaled, reference: Tensor) -> Tensor:
    """Key features times exp(-reference)."""
    assert keys.log is not None
    weights = (keys.log - finite(reference)).exp_()
    return weights if keys.value is None else keys.value * weights


def paired(scale: Float[Tensor, "*B rows 1"]) -> Float[Tensor, "*B rows 2"]:
    """A scale of one number, as `Sums` keeps it."""
    return torch.cat([scale, torch.zeros_like(scale)], dim=-1)


def product(left: Tensor, right: Tensor) -> Tensor:
    """left @ right, as one batch of products."""
    return torch.bmm(left.flatten(0, -3), right.flatten(0, -3)).unflatten(0, left.shape[:-2])


def plus_product(base: Tensor, left: Tensor, right: Tensor) -> Tensor:
    """base + left @ right, in one pass."""
    flat = torch.baddbmm(base.flatten(0, -3), left.flatten(0, -3), right.flatten(0, -3))
    return flat.unflatten(0, base.shape[:-2])


def add_product(base: Tensor, left: Tensor, right: Tensor) -> Tensor:
    """base + left @ right where nothing else holds base, which may be overwritten."""
    if not allows_data_dependent_branching(base):
        return plus_product(base, left, right)
    return base.flatten(0, -3).baddbmm_(left.flatten(0, -3), right.flatten(0, -3)).unflatten(0, base.shape[:-2])


def finite(scale: Tensor) -> Tensor:
    """The scale, 0 where nothing was seen: exp(-inf - 0) is the 0 that exp(-inf - -inf) is not."""
    return scale.masked_fill(scale == -torch.inf, 0)
