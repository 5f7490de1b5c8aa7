"""Error of linear attention against width: every map that stands for softmax, beside softmax itself in float64.

Run it as `python -m benchmarks.attention_error`; it takes about three minutes and does not mind other work on the
machine. What is reported is the relative squared error of the output, |out - softmax|^2 / |softmax|^2 over the rows of
a head, and of that the median over heads, each with data and frequencies of its own. `benchmarks/peers/setup.sh` makes
the environment in which performer-pytorch answers; without it that row is missing, and the notes say so.
"""

import subprocess
import tempfile
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Annotated

import torch
import typer
from rich.console import Console
from rich.progress import Progress
from torch import Generator, Tensor

from benchmarks.harness.measurement import machine, write_json
from benchmarks.harness.picture import Panel, draw
from benchmarks.harness.worker import PEERS_PYTHON, RESULTS, ROOT
from likewise.attention import (
    DenominatorWarning,
    FeatureMap,
    Fitted,
    Hyperbolic,
    Positive,
    SoftmaxFourier,
    Taylor,
    linear_attention,
    softmax_attention,
)
from likewise.tour.measuring import one_thread

LENGTH, KEY_DIM, VALUE_DIM = 256, 32, 32
WIDTHS = tuple(2**power for power in range(4, 12))
NEAR = 64  # exact_within
HEADS = 12  # draws, of data and of frequencies
LOGIT_SDS = (0.25, 0.5, 1.0)
AXES = (2.0, 0.1)  # deviations of the first and of the last axis of anisotropic data, log-spaced between
SHOWN = (5e-5, 30.0)  # errors in the picture; those of SoftmaxFourier go on far above
OFFSET = 0.5  # deviation of an axis' mean, in deviations of the axis

MEAN, TAYLOR, PERFORMER = "mean of V", "Taylor", "performer-pytorch"
DIRECTIONS = BOTH_WAYS, CAUSAL = "both ways", "causal"

# From a width, a number of heads (one set of frequencies each) and a generator.
Make = Callable[..., FeatureMap]
MAPS: dict[str, Make] = {
    "SoftmaxFourier": lambda width, heads, generator: SoftmaxFourier(
        KEY_DIM, num_frequencies=width // 2, kv_heads=heads, generator=generator
    ),
    "Hyperbolic": lambda width, heads, generator: Hyperbolic(
        KEY_DIM, num_features=width, kv_heads=heads, generator=generator
    ),
} | {
    f"{phi.__name__}, {sampler}": partial(
        lambda width, heads, generator, phi, sampler: phi(
            KEY_DIM, num_features=width, kv_heads=heads, sampler=sampler, generator=generator
        ),
        phi=phi,
        sampler=sampler,
    )
    for phi, samplers in ((Positive, ("gaussian", "orthogonal", "simplex")), (Fitted, ("orthogonal", "simplex")))
    for sampler in samplers
}


@dataclass(frozen=True)
class Data:
    """Queries, keys and values of all heads, and other queries and keys of the same law, to fit a map to."""

    name: str
    q: Tensor
    k: Tensor
    v: Tensor
    other_q: Tensor
    other_k: Tensor


@dataclass(frozen=True)
class Point:
    """The error of a map at one width. near: the pairs less than so many positions apart are exact."""

    data: str
    direction: str
    near: int | None
    map: str
    width: int | None
    error: float


def drawn(name: str, spread: Tensor, offset: float, heads: int, generator: Generator) -> Data:
    """Normal rows with a deviation for every axis, and for every head and axis a mean, `offset` deviations large."""

    def normal(*shape: int) -> Tensor:
        return torch.randn(shape, dtype=torch.float64, generator=generator)

    q_mean, k_mean = offset * normal(2, 1, heads, 1, KEY_DIM)
    q, k, other_q, other_k = normal(4, 1, heads, LENGTH, KEY_DIM)
    v = normal(1, heads, LENGTH, VALUE_DIM)
    q, k, other_q, other_k = (x * spread for x in (q + q_mean, k + k_mean, other_q + q_mean, other_k + k_mean))
    return Data(name, q, k, v, other_q, other_k)


def all_data(heads: int, generator: Generator) -> list[Data]:
    """With q, k ~ a N(0, I) the logits q.k / sqrt(K) have standard deviation a^2."""
    alike = [
        drawn(f"logit sd {sd:g}", torch.full((KEY_DIM,), sd**0.5, dtype=torch.float64), 0.0, heads, generator)
        for sd in LOGIT_SDS
    ]
    axes = torch.tensor(AXES, dtype=torch.float64).log()
    spread = torch.linspace(*axes.tolist(), KEY_DIM, dtype=torch.float64).exp()
    return [*alike, drawn("anisotropic", spread, OFFSET, heads, generator)]


def error_of(out: Tensor, target: Tensor) -> float:
    """The median over heads of |out - target|^2 / |target|^2."""
    squares, size = (x.double().square().sum((0, 2, 3)) for x in (out - target, target))
    return (squares / size).quantile(0.5).item()


def mean_of_values(v: Tensor, causal: bool) -> Tensor:
    """What no query and no key can change: the mean of the values that a row sees."""
    if not causal:
        return v.mean(2, keepdim=True).expand_as(v)
    return v.cumsum(2) / torch.arange(1, v.shape[2] + 1, dtype=v.dtype)[:, None]


def errors(data: Data, widths: tuple[int, ...], generator: Generator, tick: Callable[[str], None]) -> list[Point]:
    """Every map at every width, and what has no width, on one kind of data."""
    q, k, v = data.q, data.k, data.v
    targets = {direction: softmax_attention(q, k, v, causal=direction == CAUSAL) for direction in DIRECTIONS}

    def point(name: str, width: int | None, direction: str, near: int | None, out: Tensor) -> Point:
        return Point(data.name, direction, near, name, width, error_of(out, targets[direction]))

    def of_map(name: str, features: FeatureMap, direction: str, near: int | None) -> Point:
        out = linear_attention(q, k, v, features=features, causal=direction == CAUSAL, exact_within=near)
        return point(name, features.dim, direction, near, out)

    found = []
    for direction in DIRECTIONS:
        found.append(point(MEAN, None, direction, None, mean_of_values(v, direction == CAUSAL)))
        found.append(of_map(TAYLOR, Taylor(KEY_DIM), direction, None))
    for name, make in MAPS.items():
        tick(f"{data.name}: {name}")
        for width in widths:
            features = make(width, q.shape[1], generator)
            if isinstance(features, Fitted):
                features.fit(data.other_q, data.other_k)
            found += [of_map(name, features, direction, near) for direction in DIRECTIONS for near in (None, NEAR)]
    return found


def performer_errors(kinds: list[Data], widths: tuple[int, ...], python: Path) -> list[Point]:
    """performer-pytorch as it comes, with its epsilon and its stabiliser, in its own environment and in float32."""
    with tempfile.TemporaryDirectory() as folder:
        asked, answered = Path(folder) / "asked.pt", Path(folder) / "answered.pt"
        problems = [(x.q.float(), x.k.float(), x.v.float()) for x in kinds]
        torch.save((problems, list(widths)), asked)
        command = [python, "-W", "ignore", "-m", "benchmarks.peers.performer_outputs", asked, answered]
        subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
        outputs = torch.load(answered)
    return [
        Point(
            data.name,
            direction,
            None,
            PERFORMER,
            width,
            error_of(out, softmax_attention(data.q, data.k, data.v, causal=causal)),
        )
        for data, by_direction in zip(kinds, outputs, strict=True)
        for direction, causal, outs in zip(DIRECTIONS, (False, True), by_direction, strict=True)
        for width, out in zip(widths, outs, strict=True)
    ]


def measure(
    widths: tuple[int, ...], heads: int, peers_python: Path, progress: Progress
) -> tuple[list[Point], list[str]]:
    """All points, and notes on what is missing."""
    generator = Generator().manual_seed(0)
    kinds = all_data(heads, generator)
    task = progress.add_task("", total=len(kinds) * len(MAPS) + 1)

    def tick(doing: str) -> None:
        progress.update(task, advance=1, description=doing)

    found: list[Point] = []
    # Nothing is timed, and one thread does not mind other work on the machine.
    with torch.inference_mode(), one_thread(), warnings.catch_warnings():
        # That denominators of SoftmaxFourier vanish is what its errors show.
        warnings.simplefilter("ignore", DenominatorWarning)
        for data in kinds:
            found += errors(data, widths, generator, tick)
    if not peers_python.exists():
        return found, ["performer-pytorch was not measured: run benchmarks/peers/setup.sh, or give --peers-python."]
    tick(PERFORMER)
    return found + performer_errors(kinds, widths, peers_python), []


def panels(points: list[Point]) -> list[Panel]:
    """A row for both ways, one for causal, one for causal with exact near pairs; a column for each kind of data."""
    kinds = list(dict.fromkeys(point.data for point in points))
    widths = sorted({point.width for point in points if point.width and point.map in MAPS})
    found = []
    for direction, near in ((BOTH_WAYS, None), (CAUSAL, None), (CAUSAL, NEAR)):
        for data in kinds:
            here = [point for point in points if (point.data, point.direction) == (data, direction)]
            curves: dict[str, list[tuple[float, float]]] = {}
            for point in here:
                if point.width and (point.near == near or point.map == TAYLOR):
                    curves.setdefault(point.map, []).append((point.width, point.error))
            level = next(point.error for point in here if point.map == MEAN)
            title = f"{data}, {direction}{f', exact within {near}' if near else ''}"
            dashed: dict[str, list[tuple[float, float]]] = {MEAN: [(widths[0], level), (widths[-1], level)]}
            found.append(Panel(title, "width F", curves, dashed, limits=SHOWN))
    return found


def main(
    quick: Annotated[bool, typer.Option("--quick", help="Few widths and heads, to see that it works.")] = False,
    peers_python: Annotated[Path, typer.Option(help="Python of the peers' environment.")] = PEERS_PYTHON,
    out: Annotated[Path, typer.Option(help="Folder for the JSON and the picture.")] = RESULTS,
) -> None:
    """Measure the error of every map against width; `python -m benchmarks.render` then renders the tables."""
    widths, heads = ((16, 64), 3) if quick else (WIDTHS, HEADS)
    facts = {key: value for key, value in machine().items() if key not in ("load", "threads")}
    with Progress(console=Console(stderr=True), transient=True) as progress:
        points, notes = measure(widths, heads, peers_python, progress)
    name = "attention_error-quick" if quick else "attention_error"
    results = {
        "machine": facts,
        "problem": {"T": LENGTH, "K": KEY_DIM, "V": VALUE_DIM, "heads": heads, "exact_within": NEAR},
        "notes": notes,
        "points": [asdict(point) for point in points],
    }
    write_json(out / f"{name}.json", results)
    title = f"Relative squared error of the output against softmax, T = {LENGTH}, K = {KEY_DIM}, by width of the map"
    draw(out / f"{name}.png", title, panels(points), columns=len(LOGIT_SDS) + 1)
    Console().print(f"Written to {out}: {name}.json and {name}.png", *notes, sep="\n")


if __name__ == "__main__":
    typer.run(main)
