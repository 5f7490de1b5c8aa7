"""One feature map beside the forms it stands for: how far from its kernel, how far from softmax, how fast."""

import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from likewise.attention.exact import kernel_attention, softmax_attention
from likewise.attention.features import Elu, FeatureMap, Quadratic, Relu, Taylor
from likewise.attention.linear import DenominatorWarning, linear_attention
from likewise.attention.random_features import Fourier, Hyperbolic, Positive, SoftmaxFourier
from likewise.checks import require, require_choice, require_count
from likewise.progress import Progress, silent

QUERY_BLOCK = 512  # rows of the T x S weights that exist at a time
REPEATS = 3

# From a name, the key width, the width of a random map (a frequency gives a sine and a cosine) and a generator.
FEATURES: dict[str, Callable[[int, int, torch.Generator], FeatureMap]] = {
    "elu": lambda key_dim, width, generator: Elu(),
    "relu": lambda key_dim, width, generator: Relu(),
    "quadratic": lambda key_dim, width, generator: Quadratic(key_dim),
    "taylor": lambda key_dim, width, generator: Taylor(key_dim),
    "fourier": lambda key_dim, width, generator: Fourier(key_dim, num_frequencies=width // 2, generator=generator),
    "softmax-fourier": lambda key_dim, width, generator: SoftmaxFourier(
        key_dim, num_frequencies=width // 2, generator=generator
    ),
    "positive": lambda key_dim, width, generator: Positive(key_dim, num_features=width, generator=generator),
    "hyperbolic": lambda key_dim, width, generator: Hyperbolic(key_dim, num_features=width, generator=generator),
}


@dataclass(frozen=True)
class MeasuredForm:
    """One way to attend: its time, and its distance |out - target| / |target| from two targets.

    `kernel_error` is None where the form was not made for that kernel.
    """

    name: str
    seconds: float
    kernel_error: float | None
    softmax_error: float


@dataclass(frozen=True)
class Comparison:
    """The linear form first, then what it is measured against, then what is simpler than it.

    warnings: what the linear form was warned of; every output shows it.
    """

    features: str
    feature_dim: int
    shape: tuple[int, ...]
    causal: bool
    forms: tuple[MeasuredForm, ...]
    warnings: tuple[str, ...] = ()


def compare_random(
    features: str,
    *,
    length: int = 2048,
    heads: int = 8,
    key_dim: int = 64,
    width: int = 256,
    causal: bool = False,
    seed: int = 0,
    progress: Progress = silent,
) -> Comparison:
    """`compare` on q, k, v ~ N(0, I) with a feature map chosen by name; `width` is that of the random maps.

    >>> linear, kernel, *_ = compare_random("quadratic", length=7, heads=2, key_dim=3).forms
    >>> linear.kernel_error < 1e-5
    True
    """
    require_choice("compare_random", "features", features, tuple(FEATURES))
    for name, value in (("length", length), ("heads", heads), ("key_dim", key_dim)):
        require_count("compare_random", name, value)
    require_count("compare_random", "width", width, least=2)

    generator = torch.Generator().manual_seed(seed)
    q, k, v = torch.randn(3, 1, heads, length, key_dim, generator=generator)
    feature_map = FEATURES[features](key_dim, width, generator)
    with torch.inference_mode():
        return compare(q, k, v, features=feature_map, causal=causal, progress=progress)


def compare(
    q: Float[Tensor, "B H T K"],
    k: Float[Tensor, "B G T K"],
    v: Float[Tensor, "B G T V"],
    *,
    features: FeatureMap,
    causal: bool = False,
    progress: Progress = silent,
) -> Comparison:
    """Attend with `features`, with the kernel they equal or estimate, and with softmax; report errors and times.

    The mean of the values and the Taylor map are reported too: an approximation that loses to either is not worth its
    width. The T x S weights of the kernel are built for a block of queries at a time, so memory stays linear in T.

    >>> from likewise.attention import Elu
    >>> q, k, v = torch.randn(3, 1, 2, 5, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    >>> linear, *_ = compare(q, k, v, features=Elu(), causal=True).forms
    >>> linear.kernel_error < 1e-12
    True
    """
    require(q.shape[-2] > 0, "compare", "q", "have at least one position", tuple(q.shape))
    require(q.shape[-2] == k.shape[-2], "compare", "k", f"have q's length {q.shape[-2]}", tuple(k.shape))

    progress(0.0, "linear form")
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always", DenominatorWarning)
        linear, linear_seconds = _timed(lambda: linear_attention(q, k, v, features=features, causal=causal))
    doubts = tuple(str(each.message) for each in seen)
    progress(0.1, "softmax")
    softmax, softmax_seconds = _timed(lambda: softmax_attention(q, k, v, causal=causal))
    progress(0.2, "Taylor map")
    taylor, taylor_seconds = _timed(lambda: linear_attention(q, k, v, features=Taylor(q.shape[-1]), causal=causal))
    mean, mean_seconds = _timed(lambda: _mean_of_values(q, v, causal=causal))

    started = time.perf_counter()
    blocks = []
    for done, block in _kernel_blocks(q, k, v, features, causal=causal):
        blocks.append(block)
        progress(0.3 + 0.7 * done, "T x S weights of the kernel")
    kernel, kernel_seconds = torch.cat(blocks, dim=-2), time.perf_counter() - started

    forms = (
        MeasuredForm("linear", linear_seconds, _distance(linear, kernel), _distance(linear, softmax)),
        MeasuredForm("kernel", kernel_seconds, 0.0, _distance(kernel, softmax)),
        MeasuredForm("softmax", softmax_seconds, None, 0.0),
        MeasuredForm("taylor", taylor_seconds, None, _distance(taylor, softmax)),
        MeasuredForm("mean of values", mean_seconds, None, _distance(mean, softmax)),
    )
    feature_dim = features.dim or q.shape[-1]
    return Comparison(type(features).__name__, feature_dim, tuple(q.shape), causal, forms, doubts)


def _kernel_blocks(
    q: Tensor, k: Tensor, v: Tensor, features: FeatureMap, *, causal: bool
) -> Iterator[tuple[float, Tensor]]:
    """Causal is lower-right, so a block of queries with the keys up to its last row is a causal problem of its own."""
    length = q.shape[-2]
    for start in range(0, length, QUERY_BLOCK):
        stop = min(start + QUERY_BLOCK, length)
        seen = stop if causal else length
        rows = q[..., start:stop, :], k[..., :seen, :], v[..., :seen, :]
        yield stop / length, kernel_attention(*rows, kernel=features.kernel, causal=causal)


def _mean_of_values(q: Tensor, v: Tensor, *, causal: bool) -> Tensor:
    length = v.shape[-2]
    counts = torch.arange(1, length + 1, dtype=v.dtype, device=v.device).unsqueeze(-1)
    mean_BGTV = v.cumsum(-2) / counts if causal else v.mean(-2, keepdim=True).expand_as(v)
    return mean_BGTV.repeat_interleave(q.shape[1] // v.shape[1], dim=1)


def _distance(out: Tensor, target: Tensor) -> float:
    difference, size = (out.double() - target.double()).norm().item(), target.double().norm().item()
    return difference / size if size else difference


def _timed(attend: Callable[[], Tensor]) -> tuple[Tensor, float]:
    """The output and the best time; the first call, which warms caches, is not counted unless it is slow already."""
    started = time.perf_counter()
    out = attend()
    first = time.perf_counter() - started
    if first > 1.0:
        return out, first
    times = []
    for _ in range(REPEATS):
        started = time.perf_counter()
        attend()
        times.append(time.perf_counter() - started)
    return out, min(times)
