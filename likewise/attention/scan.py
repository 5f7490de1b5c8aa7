"""Causal linear attention with a backward pass of its own: it keeps neither features nor pairs, and maps again instead.

For every piece, with Q, K the features, [V | 1] the values, S the sums before it and p its parts:

    [N | d]_p = P_p [V | 1]_p + Q_p S_p,   P_p = tril(Q_p K_p'),   S_p = S + sum_{r < p} K_r' [V | 1]_r,   O = N / d

so that, from dO and from the gradient G of the sums after the piece,

    d[N | d] = [dO | -dO.O] / d,   dP = tril(d[N | d] [V | 1]'),   R_p = G + sum_{r > p} Q_r' d[N | d]_r
    dQ_p = dP_p K_p + d[N | d]_p S_p',   dK_p = dP_p' Q_p + [V | 1]_p R_p',   d[V | 1]_p = P_p' d[N | d]_p + K_p R_p

No state is ever recovered by subtraction: the sums before every piece are kept, 1/512 of what all positions would need.
"""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from likewise.attention.chunked import CausalOptions, GroupedQKV, Output, attend_causally
from likewise.attention.features import FeatureMap
from likewise.attention.prefix import Chunk, Prefix, Window, add_product, product
from likewise.attention.transforms import own_dtypes
from likewise.similarity import inverse, wide


def scan(problem: GroupedQKV, form: CausalOptions) -> Float[Tensor, "B H T V"]:
    """Causal outputs of S rows at S positions, the numbers of `attend_causally`."""
    out = _Scan.apply(problem.q, problem.k, problem.v, problem.mask, problem.features, form)
    assert isinstance(out, Tensor)
    return out


class _Scan(torch.autograd.Function):
    """Keeps q, k, v, the outputs, the denominators and the prefix before every piece."""

    @staticmethod
    def forward(
        ctx: Any, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, features: FeatureMap, form: CausalOptions
    ) -> Tensor:
        problem = GroupedQKV(features, q, k, v, mask)
        output, denominators, prefixes = Output(problem), [], []
        prefix = None
        for low, start, stop, parts in form.spans(0, q.shape[3]):
            prefixes.append(prefix)
            sums, prefix = form.attend(problem.part(low, start, stop), prefix, parts)
            output.append(sums)
            denominators.append(sums.total[..., -1:].clone())
        saved = [x for prefix in prefixes for x in prefix or (None, None)]
        ctx.save_for_backward(q, k, v, mask, output.joined(), *denominators, *saved)
        ctx.features, ctx.form = features, form
        return output.joined()

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        with own_dtypes(grads[0]):
            return _Scan.gradients(ctx, *grads)

    @staticmethod
    def gradients(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        """Of q, k and v, from the last piece to the first."""
        q, k, v, mask, out, *rest = ctx.saved_tensors
        problem, form = GroupedQKV(ctx.features, q, k, v, mask), ctx.form
        if torch.is_grad_enabled():  # somebody wants gradients of these gradients
            again, _ = attend_causally(problem, None, form)
            wanted = [x for x in (q, k, v) if x.requires_grad]
            found = iter(torch.autograd.grad(again, wanted, grads, create_graph=True))
            return *(next(found) if x.requires_grad else None for x in (q, k, v)), None, None, None
        spans = list(form.spans(0, q.shape[3]))
        denominators, saved = rest[: len(spans)], rest[len(spans) :]
        grad, out = (x.unflatten(1, q.shape[1:3]) for x in (*grads, out))
        dq, dk, dv = torch.empty_like(q), torch.empty_like(k), torch.empty_like(v)
        reached = k.shape[2]  # pieces overlap where they have a window: from here on gradients are added
        later = None  # the gradient of the sums after a piece
        for number in reversed(range(len(spans))):
            low, start, stop, parts = spans[number]
            piece = problem.part(low, start, stop)
            piece = piece._replace(**{name: getattr(piece, name).detach().requires_grad_() for name in ("q", "k", "v")})
            sums, scale = saved[2 * number : 2 * number + 2]
            prefix = None if sums is None else Prefix(sums, scale)
            rows = [x[:, :, :, start:stop].flatten(2, 3).to(wide(x.dtype)) for x in (grad, out)]
            if form.within is None and not form.raw:
                window = Window(q.shape[2], parts=parts)
                before, under = prefix or piece.empty(), denominators[number]
                gradients = _piece_backward(piece, before, window, *rows, under, later)
            else:
                gradients = _recomputed(piece, prefix, form, parts, rows[0], later)
            (dq[:, :, :, start:stop], dk_piece, dv_piece), later = gradients
            for whole, part in ((dk, dk_piece), (dv, dv_piece)):
                whole[:, :, low:reached] = part[:, :, : reached - low]
                if reached < stop:
                    whole[:, :, reached:stop] += part[:, :, reached - low :]
            reached = low
        return dq, dk, dv, None, None, None


def _recomputed(
    piece: GroupedQKV, prefix: Prefix | None, form: CausalOptions, parts: int, grad: Tensor, later: Tensor | None
) -> tuple[tuple[Tensor, ...], Tensor | None]:
    """Gradients of a piece's q, k, v and of the sums before it, by autograd over the piece alone."""
    with torch.enable_grad():
        leaf = None if prefix is None else Prefix(prefix.sums.detach().requires_grad_(), prefix.scale)
        sums, after = form.attend(piece, leaf, parts)
        outputs, grads = [sums.output(piece.features.trusted)], [grad]
        if later is not None and after is not None:
            outputs.append(after.sums)
            grads.append(later)
        inputs = [piece.q, piece.k, piece.v, *([] if leaf is None else [leaf.sums])]
        found = torch.autograd.grad(outputs, inputs, grads)
    return found[:3], None if leaf is None else found[3]


def _piece_backward(
    problem: GroupedQKV,
    prefix: Prefix,
    window: Window,
    grad: Tensor,
    out: Tensor,
    denominator: Tensor,
    later: Tensor | None,
) -> tuple[tuple[Tensor, ...], Tensor]:
    """Gradients of a piece's q, k, v and of the sums before it, from those of its outputs and of the sums after it."""
    length, inputs = problem.k.shape[2], (problem.q, problem.k, problem.v)
    later = torch.zeros_like(prefix.sums) if later is None else later
    with torch.enable_grad():
        queries, (keys, values) = problem.queries(0, length), problem.keys(0, length)
        piece = prefix.measure(queries, keys, problem.first(0, length))
        if piece.jumping is not None:
            leaf = Prefix(prefix.sums.detach().requires_grad_(), prefix.scale)
            sums, after = leaf.attend(queries, keys, values, window, problem.first(0, length))
            found = torch.autograd.grad((sums.output(), after.sums), (*inputs, leaf.sums), (grad, later))
            return found[:3], found[3]
    if piece.latest is not None:
        later = Prefix(later, piece.reference).relative_to(piece.latest)
    inner = (grad * out).sum(-1, keepdim=True)
    total = torch.cat([grad, inner.neg_()], dim=-1)
    total = total.mul_(inverse(denominator, problem.features.trusted))
    *gradients, before = _sums_backward(piece, values.detach(), window, total, later)
    if piece.reference is not None:
        before = Prefix(before, prefix.scale).relative_to(piece.reference)
    return torch.autograd.grad((piece.factors, piece.weights, values), inputs, gradients), before


def _sums_backward(piece: Chunk, values: Tensor, window: Window, total: Tensor, later: Tensor) -> tuple[Tensor, ...]:
    """Gradients of a piece's features, of its values and of the sums before it: the formulas at the top."""
    factors, total = window.split_rows(piece.factors.detach()), window.split_rows(total)
    weights, values = window.split_keys(piece.weights.detach()), window.split_keys(values)
    states, _ = window.states(piece.before, product(weights.mT, values))
    returns, before = window.states(later, product(factors.mT, total), backwards=True)
    pairs = window.keep(product(factors, weights.mT))
    dpairs = window.keep(product(total, values.mT))
    dfactors = add_product(product(total, states.mT), dpairs, weights)
    dweights = add_product(product(values, returns.mT), dpairs.mT, factors)
    dvalues = add_product(product(weights, returns), pairs.mT, total)
    return window.join_rows(dfactors), dweights.flatten(2, 3), dvalues.flatten(2, 3), before
