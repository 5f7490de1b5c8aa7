"""Attention by brute force, in float64, from the mathematics alone: no kernel, map or mask of ours is called.

A similarity is kept as value * exp(log), so that extreme inputs stay within range; of a random map only the frequencies
are taken, its similarity is written anew from its formula. A new feature map is a new row of MAPS.
"""

import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import torch
from torch import Generator, Tensor

from likewise.attention import (
    Elu,
    Exponential,
    FeatureMap,
    Fourier,
    Gaussian,
    Hyperbolic,
    Monomials,
    Polynomial,
    Positive,
    Quadratic,
    Relu,
    SoftmaxFourier,
    Taylor,
)
from likewise.attention.kernels import SimilarityKernel, Truncated
from tests.attention.calibration import calibration, fitted

Structure = Mapping[str, Any]  # causal, mask, sequence_ids, prefix_lengths, block_size, as the library takes them


class Pairs(NamedTuple):
    """Similarities value * exp(log) of all pairs, (B, H, T, S).

    size: what the rounding of value is relative to, |phi(q)| |phi(k)| or, where no term is negative, the value itself.
    """

    value: Tensor
    log: Tensor
    size: Tensor


Similarity = Callable[[Tensor, Tensor, Tensor], Pairs]  # of q (B, H, T, K), k (B, H, S, K), frequencies (H, R, K)


def positive(logs: Tensor) -> Pairs:
    return Pairs(torch.ones_like(logs), logs, torch.ones_like(logs))


def dots(q: Tensor, k: Tensor) -> Tensor:
    """q_i . k_j of all pairs."""
    return torch.einsum("bhtk,bhsk->bhts", q, k)


def exponential(scale: float | None) -> Similarity:
    """exp(scale q.k)."""

    def similarity(q: Tensor, k: Tensor, w: Tensor) -> Pairs:
        logs = dots(q, k) * (q.shape[-1] ** -0.5 if scale is None else scale)
        return positive(logs)

    return similarity


def gaussian(variance: float | None) -> Similarity:
    """exp(-|q - k|^2 / (2 variance))."""

    def similarity(q: Tensor, k: Tensor, w: Tensor) -> Pairs:
        squares = (q[:, :, :, None] - k[:, :, None]).square().sum(-1)
        logs = -squares / (2 * (q.shape[-1] ** 0.5 if variance is None else variance))
        return positive(logs)

    return similarity


def polynomial(degree: int, constant: float) -> Similarity:
    """(q.k + constant)^degree."""

    def similarity(q: Tensor, k: Tensor, w: Tensor) -> Pairs:
        lengths = q.norm(dim=-1)[:, :, :, None] * k.norm(dim=-1)[:, :, None]
        values = (dots(q, k) + constant) ** degree
        return Pairs(values, torch.zeros_like(values), (lengths + constant) ** degree)

    return similarity


def truncated(scale: float | None) -> Similarity:
    """1 + s + s^2/2 with s = scale q.k."""

    def similarity(q: Tensor, k: Tensor, w: Tensor) -> Pairs:
        s = dots(q, k) * (q.shape[-1] ** -0.5 if scale is None else scale)
        values = 1 + s + s * s / 2
        return Pairs(values, torch.zeros_like(values), values)

    return similarity


def induced(phi: Callable[[Tensor], Tensor]) -> Similarity:
    """phi(q).phi(k)."""

    def similarity(q: Tensor, k: Tensor, w: Tensor) -> Pairs:
        values = dots(phi(q), phi(k))
        return Pairs(values, torch.zeros_like(values), values)

    return similarity


def waves(*, norms: bool) -> Similarity:
    """mean_r cos(w_r.(q - k)); with norms of x = q K^(-1/4), y = k K^(-1/4), times exp((|x|^2 + |y|^2)/2)."""

    def similarity(q: Tensor, k: Tensor, w: Tensor) -> Pairs:
        width = q.shape[-1] ** -0.25 if norms else 1.0
        x, y = q * width, k * width
        angles = along(x, w)[:, :, :, None] - along(y, w)[:, :, None]
        values = angles.cos().mean(-1)
        return Pairs(values, half_squares(x, y) if norms else torch.zeros_like(values), torch.ones_like(values))

    return similarity


def exponentials(scale: float | None, *, both_signs: bool) -> Similarity:
    """mean_r exp(w_r.(x + y)) exp(-(|x|^2 + |y|^2)/2), x = sqrt(scale) q; with both signs the mean over w and -w."""

    def similarity(q: Tensor, k: Tensor, w: Tensor) -> Pairs:
        width = (q.shape[-1] ** -0.5 if scale is None else scale) ** 0.5
        x, y = q * width, k * width
        sums = along(x, w)[:, :, :, None] + along(y, w)[:, :, None]
        sums = torch.cat([sums, -sums], dim=-1) if both_signs else sums
        logs = sums.logsumexp(-1) - math.log(sums.shape[-1]) - half_squares(x, y)
        return positive(logs)

    return similarity


def dense_exponentials(scale: float | None) -> Similarity:
    """mean_r f(w_r, x') f(w_r, y') times exp(mx.(y - my) + x.my), f = Dn exp(w'Aw + w'Bx' - |x'|^2/2).

    A = diag(a) and B = diag(sqrt(1 - 4a)) Q' of the reference, with statistics worked out anew; w_r turned by Q'.
    """

    def similarity(q: Tensor, k: Tensor, w: Tensor) -> Pairs:
        width = (q.shape[-1] ** -0.5 if scale is None else scale) ** 0.5
        x, y, xs, ys = (rows * width for rows in (q, k, *calibration(q.shape[-1])))
        mx, my = xs.mean(0), ys.mean(0)
        psi = ((ys - my).square().sum(0) / (xs - mx).square().sum(0)) ** 0.25
        together = torch.cat([(xs - mx) * psi, (ys - my) / psi])
        eigenvalues, axes = torch.linalg.eigh(2 * together.T @ together / len(together))
        a = (1 - 2 * eigenvalues - ((2 * eigenvalues + 1) ** 2 + 8 * eigenvalues).sqrt()) / 16
        w = w @ axes
        inner, outer = (x - mx) * psi, (y - my) / psi
        sums = along(inner @ axes * (1 - 4 * a).sqrt(), w)[:, :, :, None]
        sums = sums + along(outer @ axes * (1 - 4 * a).sqrt(), w)[:, :, None] + 2 * (w * w @ a)[:, None, None]
        logs = sums.logsumexp(-1) - math.log(sums.shape[-1]) - half_squares(inner, outer)
        return positive(logs + (1 - 4 * a).log().sum() / 2 + ((y - my) @ mx)[:, :, None] + (x @ my)[..., None])

    return similarity


def along(x: Tensor, w: Tensor) -> Tensor:
    """w_r . x of every row, (B, H, T, R)."""
    return torch.einsum("bhtk,hrk->bhtr", x, w)


def half_squares(x: Tensor, y: Tensor) -> Tensor:
    """(|x_i|^2 + |y_j|^2)/2 of all pairs."""
    return (x.square().sum(-1)[:, :, :, None] + y.square().sum(-1)[:, :, None]) / 2


class Row(NamedTuple):
    """A feature map of the contract: how it is made from (K, kv_heads, generator), and its similarity."""

    make: Callable[[int, int, Generator], FeatureMap]
    similarity: Similarity


MAPS: dict[str, Row] = {
    "Elu": Row(lambda K, G, g: Elu(), induced(lambda x: torch.where(x > 0, x + 1, x.clamp(max=0).exp()))),
    "Relu": Row(lambda K, G, g: Relu(), induced(lambda x: x.clamp(min=0))),
    "Quadratic": Row(lambda K, G, g: Quadratic(K), polynomial(2, 1.0)),
    "Quadratic, homogeneous": Row(lambda K, G, g: Quadratic(K, constant=0.0), polynomial(2, 0.0)),
    "Monomials of degree 3": Row(lambda K, G, g: Monomials(K, degree=3, constant=2.0), polynomial(3, 2.0)),
    "Taylor": Row(lambda K, G, g: Taylor(K), truncated(None)),
    "Taylor, scaled": Row(lambda K, G, g: Taylor(K, scale=1.5), truncated(1.5)),
    "Fourier": Row(lambda K, G, g: Fourier(K, num_frequencies=7, kv_heads=G, generator=g), waves(norms=False)),
    "Fourier, wide": Row(
        lambda K, G, g: Fourier(K, num_frequencies=5, variance=3.0, kv_heads=G, sampler="gaussian", generator=g),
        waves(norms=False),
    ),
    "SoftmaxFourier": Row(
        lambda K, G, g: SoftmaxFourier(K, num_frequencies=7, kv_heads=G, generator=g), waves(norms=True)
    ),
    "Positive": Row(
        lambda K, G, g: Positive(K, num_features=11, kv_heads=G, generator=g), exponentials(None, both_signs=False)
    ),
    "Positive, scaled": Row(
        lambda K, G, g: Positive(K, num_features=7, scale=0.7, kv_heads=G, sampler="gaussian", generator=g),
        exponentials(0.7, both_signs=False),
    ),
    "Hyperbolic": Row(
        lambda K, G, g: Hyperbolic(K, num_features=10, kv_heads=G, generator=g), exponentials(None, both_signs=True)
    ),
    "Fitted": Row(
        lambda K, G, g: fitted(K, num_features=7, scale=None, kv_heads=G, generator=g), dense_exponentials(None)
    ),
    "Fitted, scaled": Row(
        lambda K, G, g: fitted(K, num_features=11, scale=0.7, kv_heads=G, sampler="simplex", generator=g),
        dense_exponentials(0.7),
    ),
}
LOGARITHMIC = ("SoftmaxFourier", "Positive", "Positive, scaled", "Hyperbolic", "Fitted", "Fitted, scaled")
SIGNED = ("Quadratic", "Quadratic, homogeneous", "Monomials of degree 3", "Fourier", "Fourier, wide", "SoftmaxFourier")

KERNELS: dict[str, tuple[SimilarityKernel, Similarity]] = {
    "Exponential": (Exponential(), exponential(None)),
    "Exponential, scaled": (Exponential(scale=0.7), exponential(0.7)),
    "Gaussian": (Gaussian(), gaussian(None)),
    "Gaussian, wide": (Gaussian(variance=3.0), gaussian(3.0)),
    "Polynomial": (Polynomial(degree=2, constant=1.0), polynomial(2, 1.0)),
    "Polynomial of degree 3": (Polynomial(degree=3, constant=2.0), polynomial(3, 2.0)),
    "Truncated": (Truncated(scale=1.5), truncated(1.5)),
}


def allowed(q: Tensor, k: Tensor, structure: Structure) -> Tensor:
    """Which query may attend to which key, (B, H, T, S), pair by pair as the house defines it."""
    batch, heads, length, positions = q.shape[0], q.shape[1], q.shape[2], k.shape[2]
    ids, prefixes = structure.get("sequence_ids"), structure.get("prefix_lengths")
    ids = None if ids is None else ids.tolist()
    prefixes = [0] * batch if prefixes is None else prefixes.tolist()
    block = structure.get("block_size") or 1
    rows = []
    for b in range(batch):
        for i in range(length):
            at = i + positions - length
            row = [True] * positions
            if structure.get("causal"):
                last = at // block * block + block - 1
                row = [j <= last or j < prefixes[b] for j in range(positions)]
            if ids is not None:
                row = [seen and ids[b][j] == ids[b][at] for j, seen in enumerate(row)]
            rows.append(row)
    may = torch.tensor(rows, dtype=torch.bool).view(batch, 1, length, positions)
    mask = structure.get("mask")
    if mask is not None:
        may = may & (mask[:, None, None, :] if mask.dim() == 2 else mask)
    return may.expand(batch, heads, length, positions)


def weigh(pairs: Pairs, seen: Tensor) -> tuple[Tensor, Tensor]:
    """The similarities of every row, and their sizes, times one factor per row."""
    log = pairs.log.masked_fill(~seen, -torch.inf)
    top = log.detach().amax(-1, keepdim=True) if log.shape[-1] else log.sum(-1, keepdim=True)
    factors = (log - top.masked_fill(top == -torch.inf, 0)).exp()
    return pairs.value.masked_fill(~seen, 0) * factors, pairs.size.masked_fill(~seen, 0) * factors


def attend(similarity: Similarity, q: Tensor, k: Tensor, v: Tensor, structure: Structure, w: Tensor) -> Tensor:
    """sum_j sim_ij v_j / sum_j sim_ij over the keys that row i sees; 0 where it sees none or the sum is exactly 0."""
    seen = allowed(q, k, structure)
    q, k, v = (x.double().repeat_interleave(q.shape[1] // x.shape[1], dim=1) for x in (q, k, v))
    weights, _ = weigh(similarity(q, k, w), seen)
    total = weights.sum(-1, keepdim=True)
    sums = torch.einsum("bhts,bhsv->bhtv", weights, v)
    return (sums / total.masked_fill(total == 0, 1)).masked_fill(total == 0, 0)


def linear(
    name: str, features: FeatureMap, q: Tensor, k: Tensor, v: Tensor, structure: Structure | None = None
) -> Tensor:
    """Linear attention with the map MAPS[name], of which only the frequencies are used."""
    return attend(MAPS[name].similarity, q, k, v, structure or {}, frequencies(features, q))


def kernel(similarity: Similarity, q: Tensor, k: Tensor, v: Tensor, structure: Structure | None = None) -> Tensor:
    """Exact attention with a kernel."""
    return attend(similarity, q, k, v, structure or {}, frequencies(None, q))


def frequencies(features: FeatureMap | None, q: Tensor) -> Tensor:
    """The frequencies of every query head, (H, R, K); none for a map without."""
    buffers = {} if features is None else dict(features.named_buffers())
    w = buffers.get("frequencies", torch.zeros(1, 0, q.shape[-1])).double()
    return w.repeat_interleave(q.shape[1] // w.shape[0], dim=0)


@torch.no_grad()
def condition(similarity: Similarity, q: Tensor, k: Tensor, structure: Structure, w: Tensor) -> Tensor:
    """How many times larger than its denominator are the terms that a row adds up, (B, H, T, 1); 1 is the best."""
    seen = allowed(q, k, structure)
    k = k.double().repeat_interleave(q.shape[1] // k.shape[1], dim=1)
    weights, sizes = weigh(similarity(q.double(), k, w), seen)
    total, size = weights.sum(-1, keepdim=True).abs(), sizes.sum(-1, keepdim=True)
    return torch.where(size == 0, 1, size / total)
