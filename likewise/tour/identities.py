"""Statements that hold exactly, each checked by computing both sides: the forms of attention that are one function."""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import torch
from torch import Generator, Tensor

from likewise.attention import (
    Elu,
    Exponential,
    FeatureMap,
    Fourier,
    Gaussian,
    Hyperbolic,
    LinearState,
    Monomials,
    Positive,
    Quadratic,
    Relu,
    SoftmaxFourier,
    Taylor,
    kernel_attention,
    linear_attention,
    softmax_attention,
)
from likewise.attention.kernels import Induced
from likewise.progress import Progress, part, silent
from likewise.tour.agreement import QKV, Agreement, Check, agree, changed, residual
from likewise.tour.measuring import one_thread

SURPRISE = 5.0  # standard errors beyond which chance is no explanation


@dataclass(frozen=True)
class FrequencyLaw:
    """The Gaussian kernel at some distances, and what random waves make of it under two laws.

    right: frequencies N(0, I / variance). wrong: N(0, variance I), which papers print. standard_errors: of an estimate
    by the right law, sqrt(Var cos(w.u) / R) with Var cos(w.u) = (1 - exp(-|u|^2 / variance))^2 / 2.
    """

    variance: float
    key_dim: int
    frequencies: int
    distances: tuple[float, ...]
    exact: tuple[float, ...]
    right: tuple[float, ...]
    wrong: tuple[float, ...]
    standard_errors: tuple[float, ...]
    seed: int

    @property
    def checks(self) -> tuple[Check, Check]:
        """The right law estimates the kernel; the wrong one does not."""
        how = (
            f"{self.frequencies:,} frequencies, variance {self.variance:g}, K = {self.key_dim}, worst of {{}} distances"
        )
        how = how.format(len(self.distances))
        return (
            Check(
                "Fourier's frequencies, N(0, I/variance), give the Gaussian",
                how,
                self._worst(self.right),
                SURPRISE,
                "s.e.",
            ),
            Check(
                "The law N(0, variance·I), printed elsewhere, does not",
                how,
                self._worst(self.wrong),
                SURPRISE,
                "s.e.",
                True,
            ),
        )

    def _worst(self, estimates: tuple[float, ...]) -> float:
        rows = zip(estimates, self.exact, self.standard_errors, strict=True)
        return max(abs(estimate - exact) / error for estimate, exact, error in rows)


def measure_law(
    *, variance: float = 4.0, key_dim: int = 8, frequencies: int = 4096, points: int = 24, seed: int = 0
) -> FrequencyLaw:
    """Estimate exp(-|u|^2 / (2 variance)) for u from 0 on, by phi(u).phi(0), under both laws.

    The wrong law is the right one of another kernel, of variance 1/variance: only at variance 1 are they the same.

    >>> right, wrong = measure_law().checks
    >>> right.holds, wrong.holds
    (True, True)
    """
    generator = Generator().manual_seed(seed)
    distances = torch.linspace(0, 4 * math.sqrt(variance), points + 1, dtype=torch.float64)[1:]
    direction = torch.nn.functional.normalize(torch.randn(key_dim, dtype=torch.float64, generator=generator), dim=0)
    ends, origin = distances[:, None] * direction, torch.zeros(1, key_dim, dtype=torch.float64)

    def estimates(of_variance: float) -> Tensor:
        waves = Fourier(
            key_dim, num_frequencies=frequencies, variance=of_variance, sampler="gaussian", generator=generator
        )
        return (waves.queries(ends) @ waves.keys(origin).mT).flatten()

    exact = Gaussian(variance)(ends, origin).flatten()
    return FrequencyLaw(
        variance=variance,
        key_dim=key_dim,
        frequencies=frequencies,
        distances=tuple(distances.tolist()),
        exact=tuple(exact.tolist()),
        right=tuple(estimates(variance).tolist()),
        wrong=tuple(estimates(1 / variance).tolist()),
        standard_errors=tuple(((1 - exact.square()) / math.sqrt(2 * frequencies)).tolist()),
        seed=seed,
    )


BATCH, HEADS, KV_HEADS, LENGTH, KEY_DIM, VALUE_DIM = 2, 6, 3, 53, 7, 5
EXACT = 1e-9  # of float64, relative to the largest entry


@dataclass(frozen=True)
class Identities:
    """For every feature map, how far its forms are from brute force; then single statements."""

    maps: tuple[Agreement, ...]
    checks: tuple[Check, ...]
    shape: tuple[int, int, int, int, int, int]  # B, H, G, T, K, V
    seed: int

    @property
    def all_checks(self) -> tuple[Check, ...]:
        """Every single comparison."""
        return (*(check for agreement in self.maps for check in agreement.checks), *self.checks)

    @property
    def holding(self) -> int:
        """How many comparisons came out as stated."""
        return sum(check.holds for check in self.all_checks)


def check_identities(*, seed: int = 0, progress: Progress = silent) -> Identities:
    """Compute both sides of every statement, in float64, on sizes that are distinct primes or their products."""
    generator = Generator().manual_seed(seed)
    with one_thread():  # tensors are so small that threads would only wait for each other
        maps = feature_maps(KEY_DIM, generator)
        qkv = draw(generator)
        agreements = []
        for number, (name, features) in enumerate(maps.items()):
            progress(0.7 * number / len(maps), f"all forms of {name}")
            agreements.append(agree(name, features, qkv, bound=EXACT))
        checks = single_checks(maps, qkv, generator, progress=part(progress, 0.7, 1.0))
    shape = (BATCH, HEADS, KV_HEADS, LENGTH, KEY_DIM, VALUE_DIM)
    return Identities(tuple(agreements), checks, shape, seed)


def feature_maps(key_dim: int, generator: Generator) -> dict[str, FeatureMap]:
    """One of each feature map."""
    return {
        "Elu": Elu(),
        "Relu": Relu(),
        "Quadratic": Quadratic(key_dim),
        "Monomials, cubic": Monomials(key_dim, degree=3),
        "Taylor": Taylor(key_dim),
        "Fourier": Fourier(key_dim, num_frequencies=32, generator=generator),
        "SoftmaxFourier": SoftmaxFourier(key_dim, num_frequencies=32, generator=generator),
        "Positive": Positive(key_dim, num_features=64, generator=generator),
        "Hyperbolic": Hyperbolic(key_dim, num_features=64, generator=generator),
    }


def draw(generator: Generator, *, heads: int = HEADS, kv_heads: int = KV_HEADS) -> QKV:
    """q, k, v ~ N(0, I) in float64."""

    def normal(count: int, width: int) -> Tensor:
        return torch.randn(BATCH, count, LENGTH, width, dtype=torch.float64, generator=generator)

    return normal(heads, KEY_DIM), normal(kv_heads, KEY_DIM), normal(kv_heads, VALUE_DIM)


def single_checks(
    maps: Mapping[str, FeatureMap], qkv: QKV, generator: Generator, *, progress: Progress = silent
) -> tuple[Check, ...]:
    """The statements that are not about the forms of one map."""
    makers: tuple[Callable[[], Check], ...] = (
        lambda: check_softmax_is_sdpa(qkv),
        lambda: check_softmax_is_gaussian_times_norms(qkv),
        lambda: check_quadratic(qkv),
        lambda: check_taylor(qkv),
        lambda: check_worked_example(),
        lambda: check_multi_query(maps, generator),
        lambda: check_future(maps, qkv),
        lambda: check_rollback(maps, qkv),
        lambda: check_merge(maps, qkv),
        lambda: check_padding(maps, qkv),
        lambda: check_nothing_to_see(maps, qkv),
        lambda: check_extreme_logits(generator),
    )
    checks = []
    for number, make in enumerate(makers):
        checks.append(make())
        progress((number + 1) / len(makers), "single statements")
    return tuple(checks)


def check_softmax_is_sdpa(qkv: QKV) -> Check:
    """PyTorch's fused attention is kernel attention with exp(q.k / sqrt K)."""
    residuals = [
        residual(softmax_attention(*qkv, causal=causal), kernel_attention(*qkv, kernel=Exponential(), causal=causal))
        for causal in (False, True)
    ]
    return Check(
        "Softmax attention is kernel attention with exp(q·k / √K)",
        "PyTorch's fused SDPA against the plain form, which writes all weights down, causal and not",
        max(residuals),
        EXACT,
    )


def check_softmax_is_gaussian_times_norms(qkv: QKV) -> Check:
    """exp(q.k / sqrt K) = exp(|q|^2 / 2 sqrt K) exp(-|q - k|^2 / 2 sqrt K) exp(|k|^2 / 2 sqrt K)."""
    q, k = qkv[0][:, :KV_HEADS], qkv[1]
    norms_q, norms_k = ((x.square().sum(-1) / (2 * math.sqrt(KEY_DIM))).exp() for x in (q, k))
    product = norms_q[..., :, None] * Gaussian()(q, k) * norms_k[..., None, :]
    return Check(
        "The softmax kernel is the Gaussian kernel times a factor of |q| and one of |k|",
        "exp(q·k/√K) against a product of three exponentials, every pair",
        residual(product, Exponential()(q, k)),
        EXACT,
    )


def check_quadratic(qkv: QKV) -> Check:
    """Features of width 1 + K + K(K+1)/2 give (q.k + 1)^2, and a map of each degree gives its power."""
    q, k = qkv[0][:, :KV_HEADS], qkv[1]
    dots = torch.einsum("bhtk,bhsk->bhts", q, k)
    residuals = []
    for degree in (1, 2, 3):
        phi = Monomials(KEY_DIM, degree=degree) if degree != 2 else Quadratic(KEY_DIM)
        residuals.append(residual(phi.queries(q) @ phi.keys(k).mT, (dots + 1) ** degree))
    return Check(
        "The quadratic map gives (q·k + 1)², Monomials any power",
        "φ(q)·φ(k) against the formula, degrees 1, 2, 3, every pair",
        max(residuals),
        EXACT,
    )


def check_taylor(qkv: QKV) -> Check:
    """Features of the same width give 1 + s + s^2/2."""
    q, k = qkv[0][:, :KV_HEADS], qkv[1]
    phi, s = Taylor(KEY_DIM), torch.einsum("bhtk,bhsk->bhts", q, k) / math.sqrt(KEY_DIM)
    return Check(
        "The Taylor map gives 1 + s + s²/2 with s = q·k / √K",
        "φ(q)·φ(k) against the formula, every pair",
        residual(phi.queries(q) @ phi.keys(k).mT, 1 + s + s**2 / 2),
        EXACT,
    )


def check_worked_example() -> Check:
    """Two tokens by hand: 1, then (3*1 + 4*3) / (3 + 4)."""
    q, k, v = (
        torch.tensor(rows, dtype=torch.float64).view(1, 1, 2, -1)
        for rows in ([[1.0, 0.0], [1.0, 1.0]], [[1.0, 2.0], [3.0, 1.0]], [[1.0], [3.0]])
    )
    out = linear_attention(q, k, v, features=Relu(), causal=True).flatten()
    return Check(
        "Two tokens worked out by hand give 1 and 15/7",
        "the causal example in the docstring of linear_attention",
        residual(out, torch.tensor([1.0, 15 / 7], dtype=torch.float64)),
        EXACT,
    )


def check_multi_query(maps: Mapping[str, FeatureMap], generator: Generator) -> Check:
    """One key-value head shared by all query heads = that head repeated."""
    q, k, v = draw(generator, kv_heads=1)
    repeated = k.expand(-1, HEADS, -1, -1), v.expand(-1, HEADS, -1, -1)
    residuals = [residual(softmax_attention(q, k, v, causal=True), softmax_attention(q, *repeated, causal=True))]
    for features in maps.values():
        shared = linear_attention(q, k, v, features=features, causal=True)
        residuals.append(residual(shared, linear_attention(q, *repeated, features=features, causal=True)))
    return Check(
        "Multi-query attention is multi-head attention with the keys and values repeated",
        f"softmax and all {len(maps)} maps, {HEADS} query heads on one key-value head, causal",
        max(residuals),
        EXACT,
    )


def check_future(maps: Mapping[str, FeatureMap], qkv: QKV) -> Check:
    """Multiply every key and value after a position by 8: rows up to it keep every bit."""
    worst = 0.0
    for dtype in (torch.float64, torch.float32):
        q, k, v = (x.to(dtype) for x in qkv)
        for features in maps.values():
            before = linear_attention(q, k, v, features=features, causal=True, chunk_size=16)
            for now in (1, 17, LENGTH - 1):
                later = (torch.arange(LENGTH) >= now)[:, None]
                moved = (torch.where(later, 8 * x, x) for x in (k, v))
                after = linear_attention(q, *moved, features=features, causal=True, chunk_size=16)
                worst = max(worst, changed(after[:, :, :now], before[:, :, :now]))
    return Check(
        "Causal output does not depend on the future, not by one bit",
        f"later keys and values times 8, all {len(maps)} maps, float64 and float32",
        worst,
        0.0,
    )


def check_rollback(maps: Mapping[str, FeatureMap], qkv: QKV) -> Check:
    """Three tokens taken back: the next output is the one without them, bit for bit."""
    worst, at = 0.0, LENGTH - 4
    for features in maps.values():
        empty = LinearState.empty(features, batch=BATCH, kv_heads=KV_HEADS, value_dim=VALUE_DIM, lag=3)
        _, state = empty.prefill(*_span(qkv, 0, at))
        _, further = state.prefill(*(8 * x for x in _span(qkv, at, at + 3)))
        expected, _ = state.step(*_span(qkv, at, at + 1))
        actual, _ = further.rollback(3).step(*_span(qkv, at, at + 1))
        worst = max(worst, changed(actual, expected))
    return Check(
        "Taking back tokens leaves the state as if they had never come, not one bit off",
        f"LinearState: 3 loud tokens in, rollback(3), one more step, all {len(maps)} maps",
        worst,
        0.0,
    )


def check_merge(maps: Mapping[str, FeatureMap], qkv: QKV) -> Check:
    """States of two adjacent spans, made apart, joined."""
    residuals, middle, last = [], 19, LENGTH - 1
    for features in maps.values():
        empty = LinearState.empty(features, batch=BATCH, kv_heads=KV_HEADS, value_dim=VALUE_DIM)
        (_, left), (_, right) = (empty.prefill(*_span(qkv, *ends)) for ends in ((0, middle), (middle, last)))
        joined, _ = left.merge(right).step(*_span(qkv, last, LENGTH))
        whole = linear_attention(*qkv, features=features, causal=True)
        residuals.append(residual(joined, whole[:, :, last:]))
    return Check(
        "States of two neighbouring spans, computed apart, merge into the state of both",
        f"the first {middle} tokens, the next {last - middle}, then one step, against one pass, all {len(maps)} maps",
        max(residuals),
        EXACT,
    )


def check_padding(maps: Mapping[str, FeatureMap], qkv: QKV) -> Check:
    """NaN in padded keys and values reaches neither outputs nor gradients."""
    kept = torch.arange(LENGTH).expand(BATCH, -1) < torch.tensor([[LENGTH - 11], [LENGTH - 2]])
    worst = 0.0
    for features in maps.values():
        results = []
        for filler in (0.0, torch.nan):
            k, v = (torch.where(kept[:, None, :, None], x, filler) for x in qkv[1:])
            leaves = [x.detach().clone().requires_grad_() for x in (qkv[0], k, v)]
            out = linear_attention(*leaves, features=features, causal=True, mask=kept)
            results.append((out, *torch.autograd.grad(out.square().sum(), leaves)))
        worst = max(worst, *(changed(poisoned, clean) for clean, poisoned in zip(*results, strict=True)))
    return Check(
        "Padding changes nothing, even when it is NaN",
        f"padded keys and values NaN against 0, outputs and gradients bit by bit, all {len(maps)} maps",
        worst,
        0.0,
    )


def check_nothing_to_see(maps: Mapping[str, FeatureMap], qkv: QKV) -> Check:
    """A row with every key masked gives 0, not NaN."""
    nothing = torch.zeros(BATCH, LENGTH, dtype=torch.bool)
    outputs = [linear_attention(*qkv, features=features, mask=nothing) for features in maps.values()]
    outputs.append(softmax_attention(*qkv, mask=nothing))
    return Check(
        "A query with nothing to attend to gets 0",
        f"every key masked, softmax and all {len(maps)} maps",
        max(changed(out, torch.zeros_like(out)) for out in outputs),
        0.0,
    )


def check_extreme_logits(generator: Generator) -> Check:
    """float32 with logits in the hundreds against float64 brute force."""
    residuals = []
    q, k, v = draw(generator)
    for make in (Positive, Hyperbolic):
        features = make(KEY_DIM, num_features=64, generator=generator)
        expected = kernel_attention(6 * q, 6 * k, v, kernel=Induced(features.queries, features.keys), causal=True)
        single = (6 * q).float(), (6 * k).float(), v.float()
        residuals.append(residual(linear_attention(*single, features=features, causal=True), expected))
    return Check(
        "Large logits neither overflow nor vanish",
        "Positive and Hyperbolic in float32, q, k ~ 6 N(0, I), against float64 brute force",
        max(residuals),
        1e-4,
    )


def _span(qkv: QKV, start: int, stop: int) -> Iterator[Tensor]:
    return (x[:, :, start:stop] for x in qkv)
