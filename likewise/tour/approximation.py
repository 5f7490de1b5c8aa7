"""How far linear attention is from softmax attention, by feature map and by width, on drawn data and on real digits."""

from collections.abc import Callable
from dataclasses import dataclass
from statistics import median

import torch
from torch import Generator, Tensor
from torch.nn import functional

from likewise.attention import (
    Elu,
    FeatureMap,
    Fourier,
    Hyperbolic,
    Positive,
    Quadratic,
    Relu,
    SoftmaxFourier,
    Taylor,
    linear_attention,
    softmax_attention,
)
from likewise.checks import require
from likewise.progress import Progress, silent
from likewise.tour.measuring import one_thread

LOGIT_SDS = (0.25, 0.5, 1.0)
WIDTHS = (64, 128, 256, 512, 1024, 2048)
DIGITS_SD = 1.0

# From the key width, the width of the map, the number of draws (one set of frequencies per head) and a generator.
RANDOM_MAPS: dict[str, Callable[[int, int, int, Generator], FeatureMap]] = {
    "Fourier": lambda key_dim, width, draws, generator: Fourier(
        key_dim, num_frequencies=width // 2, kv_heads=draws, generator=generator
    ),
    "SoftmaxFourier": lambda key_dim, width, draws, generator: SoftmaxFourier(
        key_dim, num_frequencies=width // 2, kv_heads=draws, generator=generator
    ),
    "Positive": lambda key_dim, width, draws, generator: Positive(
        key_dim, num_features=width, kv_heads=draws, generator=generator
    ),
    "Hyperbolic": lambda key_dim, width, draws, generator: Hyperbolic(
        key_dim, num_features=width, kv_heads=draws, generator=generator
    ),
}
FIXED_MAPS: dict[str, Callable[[int], FeatureMap]] = {
    "Elu": lambda key_dim: Elu(),
    "Relu": lambda key_dim: Relu(),
    "Quadratic": Quadratic,
    "Taylor": Taylor,
}


@dataclass(frozen=True)
class AttentionSample:
    """Queries, keys and values; heads are draws of the data. `labels` are the right answers where values are votes.

    draws: how often the frequencies of a random map are drawn: once for each head, or as often on the only head.
    """

    title: str
    draws: int
    q: Tensor
    k: Tensor
    v: Tensor
    labels: Tensor | None = None
    images: Tensor | None = None


@dataclass(frozen=True)
class Point:
    """A map at one width: the median over draws of the relative squared error, and of the share of right answers."""

    map: str
    width: int
    error: float
    accuracy: float | None = None


@dataclass(frozen=True)
class ErrorsByWidth:
    """One problem: every map, and what needs no map at all."""

    title: str
    logit_sd: float  # as measured
    queries: int
    keys: int
    key_dim: int
    draws: int
    mean: Point  # of predicting the mean of the values
    softmax_accuracy: float | None
    fixed: tuple[Point, ...]
    random: tuple[Point, ...]

    def curve(self, name: str) -> tuple[Point, ...]:
        """The points of one random map, by width."""
        return tuple(point for point in self.random if point.map == name)

    @property
    def widest(self) -> tuple[Point, ...]:
        """Every random map at its largest width."""
        return tuple(self.curve(name)[-1] for name in dict.fromkeys(point.map for point in self.random))

    @property
    def best(self) -> Point:
        """The map and width with the smallest error."""
        return min((*self.fixed, *self.random), key=lambda point: point.error)


@dataclass(frozen=True)
class Reading:
    """What a form of attention takes some images for."""

    name: str
    answers: tuple[int, ...]


@dataclass(frozen=True)
class Readings:
    """The first of the asked images, pixels from 0 to 1, what they are, and how they are read."""

    images: tuple[tuple[float, ...], ...]
    labels: tuple[int, ...]
    readings: tuple[Reading, ...]


@dataclass(frozen=True)
class Approximation:
    """All problems, the real data last, and some of the real data's answers one by one."""

    problems: tuple[ErrorsByWidth, ...]
    readings: Readings
    seed: int


def measure_approximation(
    *, widths: tuple[int, ...] = WIDTHS, draws: int = 8, length: int = 256, seed: int = 0, progress: Progress = silent
) -> Approximation:
    """Relative squared error |out - softmax|^2 / |softmax|^2 of the output, both directions, float32.

    Drawn data: q, k, v ~ N(0, I), q and k scaled so that the logits have a given standard deviation. Real data:
    scikit-learn's digits, whose labels are the values, so that attention is a vote.
    """
    require(
        bool(widths) and all(width >= 2 for width in widths), "measure_approximation", "widths", "be 2 or more", widths
    )
    generator = Generator().manual_seed(seed)
    problems = [gaussian_problem(sd, draws, length, generator) for sd in LOGIT_SDS]
    problems.append(digits_problem(draws, length, generator))
    results = []
    with torch.inference_mode(), one_thread():  # not timed, and one thread does not mind other work on the machine
        for number, problem in enumerate(problems):
            progress(number / len(problems), f"approximation error, {problem.title}")
            results.append(errors_by_width(problem, widths, generator))
        readings = read_digits(problems[-1], widths[-1], generator)
    progress(1.0, "approximation error")
    return Approximation(tuple(results), readings, seed)


def gaussian_problem(
    logit_sd: float, draws: int, length: int, generator: Generator, key_dim: int = 32
) -> AttentionSample:
    """Independent normal q, k, v: with q, k ~ a N(0, I) the logits q.k / sqrt(K) have standard deviation a^2."""
    q, k, v = torch.randn(3, 1, draws, length, key_dim, generator=generator)
    return AttentionSample(f"drawn data, logit sd {logit_sd:g}", draws, q * logit_sd**0.5, k * logit_sd**0.5, v)


def digits_problem(draws: int, length: int, generator: Generator) -> AttentionSample:
    """Images as queries, four times as many others as keys, their labels as values: attention reads digits by vote."""
    from sklearn.datasets import load_digits

    images, labels = (torch.from_numpy(array) for array in load_digits(return_X_y=True))
    order = torch.randperm(len(images), generator=generator)[: 5 * length]
    asked, known = order[: len(order) // 5], order[len(order) // 5 :]
    centre = images[known].mean(0)
    q, k = images[asked] - centre, images[known] - centre
    scale = (DIGITS_SD / (q @ k.T / k.shape[1] ** 0.5).std()).sqrt()
    votes = functional.one_hot(labels[known], 10)
    q, k, v = (x.float()[None, None] for x in (q * scale, k * scale, votes))
    return AttentionSample(f"real digits, logit sd {DIGITS_SD:g}", draws, q, k, v, labels[asked], images[asked] / 16)


def read_digits(problem: AttentionSample, width: int, generator: Generator, count: int = 10) -> Readings:
    """The votes on the first few images, by softmax and by some maps; one draw of the random one."""
    assert problem.labels is not None and problem.images is not None
    q, k, v = problem.q[:, :, :count], problem.k, problem.v
    key_dim = q.shape[3]
    outputs = {"softmax": softmax_attention(q, k, v)}
    positive = RANDOM_MAPS["Positive"](key_dim, width, 1, generator)
    for name, features in {"Taylor": Taylor(key_dim), f"Positive, {width:,}": positive, "Elu": Elu()}.items():
        outputs[name] = linear_attention(q, k, v, features=features)
    return Readings(
        images=tuple(tuple(image) for image in problem.images[:count].tolist()),
        labels=tuple(problem.labels[:count].tolist()),
        readings=tuple(Reading(name, tuple(out[0, 0].argmax(-1).tolist())) for name, out in outputs.items()),
    )


def errors_by_width(problem: AttentionSample, widths: tuple[int, ...], generator: Generator) -> ErrorsByWidth:
    """Every map on one problem."""
    q, k, v = problem.q, problem.k, problem.v
    key_dim = q.shape[3]
    target = softmax_attention(q, k, v)
    logits = q[0] @ k[0].mT / key_dim**0.5

    def point(name: str, width: int, out: Tensor) -> Point:
        error = median(_relative_squares(out, target))
        return Point(name, width, error, None if problem.labels is None else _accuracy(out, problem.labels))

    def of_map(name: str, features: FeatureMap) -> Point:
        drawn = (x.expand(-1, max(features.kv_heads, x.shape[1]), -1, -1) for x in (q, k, v))
        return point(name, features.dim or key_dim, linear_attention(*drawn, features=features))

    return ErrorsByWidth(
        title=problem.title,
        logit_sd=logits.std().item(),
        queries=q.shape[2],
        keys=k.shape[2],
        key_dim=key_dim,
        draws=problem.draws,
        mean=point("mean of V", 1, v.mean(2, keepdim=True).expand_as(target)),
        softmax_accuracy=None if problem.labels is None else _accuracy(target, problem.labels),
        fixed=tuple(of_map(name, make(key_dim)) for name, make in FIXED_MAPS.items()),
        random=tuple(
            of_map(name, make(key_dim, width, problem.draws, generator))
            for name, make in RANDOM_MAPS.items()
            for width in widths
        ),
    )


def _relative_squares(out: Tensor, target: Tensor) -> list[float]:
    """Per draw."""
    squares, size = (out - target).double().square().sum((0, 2, 3)), target.double().square().sum((0, 2, 3))
    return (squares / size).tolist()


def _accuracy(out: Tensor, labels: Tensor) -> float:
    """The median over draws of the share of queries whose largest vote is the label."""
    return median((out.argmax(-1) == labels).double().mean((0, 2)).tolist())
