"""Causal linear attention with a backward pass of its own: it keeps neither features nor pairs, and maps again instead.

For every piece, with Q, K the features, [V | 1] the values, S the sums before it and p its parts:

    [N | d]_p = P_p [V | 1]_p + Q_p S_p,   P_p = tril(Q_p K_p'),   S_p = S + sum_{r < p} K_r' [V | 1]_r,   O = N / d

so that, from dO and from the gradient G of the sums after the piece,

    d[N | d] = [dO | -dO.O] / d,   dP = tril(d[N | d] [V | 1]'),   R_p = G + sum_{r > p} Q_r' d[N | d]_r
    dQ_p = dP_p K_p + d[N | d]_p S_p',   dK_p = dP_p' Q_p + [V | 1]_p R_p',   d[V | 1]_p = P_p' d[N | d]_p + K_p R_p

No state is ever recovered by subtraction: the sums before every piece are kept, 1/256 of what all positions would need.
"""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from likewise.attention.chunks import Output, Problem, attend_causally, pieces
from likewise.attention.exact import inverse
from likewise.attention.features import FeatureMap
from likewise.attention.prefix import Chunk, Prefix, Window, plus_product
from likewise.similarity import wide


def can_scan(problem: Problem) -> bool:
    """Whether the backward pass below serves: gradients are wanted, of q, k, v only, and by plain autograd."""
    wanted = torch.is_grad_enabled() and any(x.requires_grad for x in (problem.q, problem.k, problem.v))
    learned = any(parameter.requires_grad for parameter in problem.features.parameters())
    transformed = torch.compiler.is_compiling() or torch._C._functorch.peek_interpreter_stack() is not None
    return wanted and not learned and not transformed and problem.q.shape[3] == problem.k.shape[2]


def scan(problem: Problem, chunk: int) -> Float[Tensor, "B H T V"]:
    """Causal outputs of S rows at S positions, the numbers of `attend_causally`."""
    out = _Scan.apply(problem.q, problem.k, problem.v, problem.mask, problem.features, chunk)
    assert isinstance(out, Tensor)
    return out


class _Scan(torch.autograd.Function):
    """Keeps q, k, v, the outputs, the denominators and the prefix before every piece."""

    @staticmethod
    def forward(
        ctx: Any, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, features: FeatureMap, chunk: int
    ) -> Tensor:
        problem = Problem(features, q, k, v, mask)
        output, denominators, prefixes = Output(problem), [], [problem.empty()]
        for start, stop, parts in pieces(0, q.shape[3], chunk):
            window = Window(q.shape[2], parts=parts)
            mapped, first = problem.keys(start, stop), problem.first(start, stop)
            sums, prefix = prefixes[-1].attend(problem.queries(start, stop), *mapped, window, first)
            output.append(problem.unfold(sums.output()))
            denominators.append(sums.total[..., -1:])
            prefixes.append(prefix)
        saved = [x for prefix in prefixes[:-1] for x in prefix]
        ctx.save_for_backward(q, k, v, mask, output.joined(), *denominators, *saved)
        ctx.features, ctx.chunk = features, chunk
        return output.joined()

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        q, k, v, mask, out, *rest = ctx.saved_tensors
        if torch.is_grad_enabled():  # somebody wants gradients of these gradients
            problem = Problem(ctx.features, q, k, v, mask)
            again, _ = attend_causally(problem, problem.empty(), chunk_size=ctx.chunk)
            wanted = [x for x in (q, k, v) if x.requires_grad]
            found = iter(torch.autograd.grad(again, wanted, grads, create_graph=True))
            return *(next(found) if x.requires_grad else None for x in (q, k, v)), None, None, None
        spans = list(pieces(0, q.shape[3], ctx.chunk))
        denominators, saved = rest[: len(spans)], rest[len(spans) :]
        grad, out = (x.unflatten(1, q.shape[1:3]) for x in (*grads, out))
        dq, dk, dv = torch.empty_like(q), torch.empty_like(k), torch.empty_like(v)
        later = torch.zeros_like(saved[-2])
        for number in reversed(range(len(spans))):
            start, stop, parts = spans[number]
            leaves = [
                x.detach().requires_grad_() for x in (q[:, :, :, start:stop], k[:, :, start:stop], v[:, :, start:stop])
            ]
            problem = Problem(ctx.features, *leaves, None if mask is None else mask[:, start:stop])
            rows = [x[:, :, :, start:stop].flatten(2, 3).to(wide(x.dtype)) for x in (grad, out)]
            prefix, window = Prefix(*saved[2 * number : 2 * number + 2]), Window(q.shape[2], parts=parts)
            gradients = _piece_backward(problem, prefix, window, *rows, denominators[number], later)
            dq[:, :, :, start:stop], dk[:, :, start:stop], dv[:, :, start:stop], later = gradients
        return dq, dk, dv, None, None, None


def _piece_backward(
    problem: Problem, prefix: Prefix, window: Window, grad: Tensor, out: Tensor, denominator: Tensor, later: Tensor
) -> tuple[Tensor, ...]:
    """Gradients of a piece's q, k, v and of the sums before it, from those of its outputs and of the sums after it."""
    length, inputs = problem.k.shape[2], (problem.q, problem.k, problem.v)
    with torch.enable_grad():
        queries, (keys, values) = problem.queries(0, length), problem.keys(0, length)
        piece = prefix.measure(queries, keys, problem.first(0, length))
        if piece.jumping is not None:
            leaf = Prefix(prefix.sums.detach().requires_grad_(), prefix.scale)
            sums, after = leaf.attend(queries, keys, values, window, problem.first(0, length))
            return torch.autograd.grad((sums.output(), after.sums), (*inputs, leaf.sums), (grad, later))
    if piece.latest is not None:
        later = Prefix(later, piece.reference).relative_to(piece.latest)
    total = torch.cat([grad, (grad * out).sum(-1, keepdim=True).neg_()], dim=-1).mul_(inverse(denominator))
    *gradients, before = _sums_backward(piece, values.detach(), window, total, later)
    if piece.reference is not None:
        before = Prefix(before, prefix.scale).relative_to(piece.reference)
    return *torch.autograd.grad((piece.factors, piece.weights, values), inputs, gradients), before


def _sums_backward(piece: Chunk, values: Tensor, window: Window, total: Tensor, later: Tensor) -> tuple[Tensor, ...]:
    """Gradients of a piece's features, of its values and of the sums before it: the formulas at the top."""
    factors, total = window.split_rows(piece.factors.detach()), window.split_rows(total)
    weights, values = window.split_keys(piece.weights.detach()), window.split_keys(values)
    states, _ = window.states(piece.before, weights.mT @ values)
    returns, before = window.states(later, (factors.mT @ total).flip(2))
    returns = returns.flip(2)
    pairs, dpairs = window.keep(factors @ weights.mT), window.keep(total @ values.mT)
    dfactors = plus_product(total @ states.mT, dpairs, weights)
    dweights = plus_product(values @ returns.mT, dpairs.mT, factors)
    dvalues = plus_product(weights @ returns, pairs.mT, total)
    return window.join_rows(dfactors), dweights.flatten(2, 3), dvalues.flatten(2, 3), before
