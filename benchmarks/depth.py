"""Prediction depth at full size: time, resident memory, what the short circuit spares, and scikit-learn on one layer.

Run it as `python -m benchmarks.depth`, with LIKEWISE_CIFAR10 naming CIFAR-10 (our copy is JPEG, so lossy) or without,
on images drawn by chance; `--part 10` takes a tenth of the examples. A ResNet-20 is trained for a few steps, enough for
depths to differ and far from converged: then only times and bytes mean something. `--study` takes the network that
`python -m studies.depth --train` left in studies/trained and asks what that study asks, 2,000 training examples too, so
that it finds its answers there. Neighbours are compared with those of scikit-learn in float64 before anything is
reported.
"""

import os
import time
from collections.abc import Callable
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

import numpy
import torch
import typer
from rich.console import Console
from torch import Tensor, nn

from benchmarks.harness.measurement import Demand, machine, write_json
from benchmarks.harness.memory import CLEAR, peak_bytes
from benchmarks.harness.worker import RESULTS
from likewise.data import Batches, Examples, Preparation, held
from likewise.data.arrays import cifar10
from likewise.data.batches import Shuffled
from likewise.data.examples import Stored, examples
from likewise.difficulty import Taps, labelled, prediction_depth
from likewise.difficulty.depth import plan_depth
from likewise.difficulty.labelled import Labelled
from likewise.difficulty.results import PredictionDepth
from likewise.networks import Network, resnet20
from likewise.similarity import nearest
from studies import depth
from studies.classifiers import cifar
from studies.classifiers import trained as classifier

SUPPORT, QUERIES, CLASSES, K = 50_000, 10_000, 10, 30
SECONDS, BYTES, SAVING = 15 * 60, 6e9, 2.0
LAYERS = ["stem", *(f"block{number}" for number in range(1, 10))]  # with input and softmax 105,482 numbers
COMPARED = "block9"
CHECKED = 50  # queries whose neighbours are compared
PREPARATION = Preparation((32, 32))


def data(part: int) -> tuple[Examples, Examples, str]:
    """A part of CIFAR-10, or of as many drawn images; and which."""
    place = os.environ.get("LIKEWISE_CIFAR10")
    if not place:
        return drawn(SUPPORT // part, 0), drawn(QUERIES // part, 1), "images drawn by chance"
    found = [cifar10(place, split=split) for split in ("train", "test")]
    train, test = (held(each.take(range(0, len(each), part)), PREPARATION) for each in found)
    lossy = " as JPEG (lossy)" if place.endswith(".npz") else ""
    return train, test, f"CIFAR-10{lossy}"


def drawn(count: int, seed: int) -> Examples:
    """Images of ten classes: the picture of the class, half hidden by noise."""
    pictures = numpy.random.default_rng(0).integers(0, 256, (CLASSES, 32, 32, 3))
    chance = numpy.random.default_rng((seed, count))
    labels = chance.permutation(numpy.arange(count) % CLASSES)
    pixels = (pictures[labels] + 3 * chance.integers(0, 256, (count, 32, 32, 3))) // 4
    names = [str(label) for label in labels]
    return examples("drawn", Stored(pixels.astype(numpy.uint8)), [str(n) for n in range(count)], names)


def trained(some: Examples, steps: int) -> Network:
    """A ResNet-20 after some steps."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = resnet20(num_classes=CLASSES)
    optimiser = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, nesterov=True)
    for batch in islice(Batches(some, PREPARATION, Shuffled(len(some), 128)).since(0), steps):
        optimiser.zero_grad()
        nn.functional.cross_entropy(model(batch.images), batch.labels).backward()
        optimiser.step()
    return model.eval()


def studied(folder: Path) -> tuple[Network, Labelled, Labelled, dict[str, Any]]:
    """The network of the study, its training and test examples, and how it asks."""
    train, test = cifar()
    recipe, _ = depth.TRAININGS["cifar"][0]
    model = classifier("resnet20", "cifar", train, recipe, folder=folder, say=print)
    support, queries = (labelled((each.inputs, each.labels)) for each in (train, test))
    rows, kept = depth.some_rows(train).tolist(), folder / f"depth-cifar-{recipe.seed}"
    return model, support, queries, {"train_rows": rows, "sample": depth.SAMPLE, "folder": kept}


def activations(model: Network, some: Labelled) -> Tensor:
    """One layer's, all in memory."""
    rows = []
    with Taps(model, [COMPARED]) as taps, torch.no_grad():
        for inputs in some.batches():
            model(inputs)
            rows.append(taps.features[COMPARED].flatten(1))
    return torch.cat(rows)


def peer_seconds(model: Network, train: Labelled, test: Labelled) -> tuple[float, float, list[str]]:
    """Seconds of scikit-learn's brute force and of ours on one layer, each after the other; and complaints."""
    from sklearn.neighbors import NearestNeighbors

    support, queries = activations(model, train), activations(model, test)
    small = NearestNeighbors(n_neighbors=K, algorithm="brute").fit(support.double().numpy())
    right = small.kneighbors(queries[:CHECKED].double().numpy())
    found = nearest(queries[:CHECKED], support, k=K)
    differ = (found.squared.sqrt().numpy() - right[0]) / right[0].clip(1e-9)
    complaints = [] if abs(differ).max() < 1e-6 else ["distances of neighbours differ from scikit-learn's in float64"]
    del small, right
    peer = NearestNeighbors(n_neighbors=K, algorithm="brute").fit(support.numpy())
    theirs = _seconds(lambda: peer.kneighbors(queries.numpy()))
    ours = _seconds(lambda: nearest(queries, support, k=K))
    return theirs, ours, complaints


def _seconds(call: Callable[[], object]) -> float:
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


def demands(found: PredictionDepth, peak: int, part: int) -> list[Demand]:
    """What the issue of this room promises, at full size."""
    note = "" if part == 1 else f"at 1/{part} of the size"
    return [
        Demand(
            f"depth of {QUERIES:,} queries against {SUPPORT:,}", SECONDS, False, found.seconds, note=note, unit=" s"
        ),
        Demand("resident memory at the most", BYTES / 1e9, False, peak / 1e9, note=note, unit=" GB"),
        Demand("fewer numbers read than by the full sweep", SAVING, True, found.reads.saving, note=note),
    ]


def facts(found: PredictionDepth) -> dict[str, Any]:
    """The run itself."""
    assert found.test is not None
    agreement = found.curves["test"].agreement[0].tolist()
    return {
        "plan": str(found.plan).splitlines(),
        "seconds": found.seconds,
        "recomputed": found.recomputed,
        "undefined": found.test.undefined_rate,
        "accuracy": found.test.accuracy,
        "depths": found.test.counts.tolist(),
        "agreement": dict(zip(found.layers, agreement, strict=True)),
    }


def main(
    part: Annotated[int, typer.Option(min=1, help="Take one of so many examples.")] = 1,
    steps: Annotated[int, typer.Option(min=0, help="Steps of training, 128 images each.")] = 600,
    study: Annotated[Path | None, typer.Option(help="The folder of a study whose network is trained.")] = None,
    gigabytes: Annotated[float, typer.Option(help="What our arrays may take.")] = 4.0,
    out: Annotated[Path, typer.Option(help="Folder for the JSON.")] = RESULTS,
) -> None:
    """Measure prediction depth; neighbours are checked first."""
    console, where = Console(soft_wrap=True), machine()
    options: dict[str, Any] = {"k": K, "layers": LAYERS, "train_rows": (), "max_memory": int(gigabytes * 2**30)}
    if study:
        model, support, queries, kept = studied(study)
        title, how = "CIFAR-10 as JPEG (lossy)", f"trained for {depth.TRAININGS['cifar'][0][0].epochs} epochs"
        options |= kept
    else:
        train, test, title = data(part)
        model, how = trained(train, steps), f"{steps} steps of training"
        support, queries = (labelled(each, preparation=PREPARATION) for each in (train, test))
        options |= {"sample": 1000 // part}
    console.print(f"{title}, {how}, load {where['load']:.2g}", markup=False)
    planned = {name: value for name, value in options.items() if name not in ("sample", "folder")}
    console.print(str(plan_depth(model, support, queries, **planned)), markup=False, highlight=False)
    with suppress(OSError):
        CLEAR.write_text("5")
    began = time.process_time()
    found = prediction_depth(model, support, queries, **options)
    peak, processor = peak_bytes(), time.process_time() - began
    theirs, ours, complaints = peer_seconds(model, support, queries)
    if complaints:
        console.print("\n".join(complaints), style="red")
        raise typer.Exit(1)
    wanted = demands(found, peak, part)
    result = {
        "machine": where,
        "data": title,
        "part": part,
        "training": how,
        "demands": [each.facts() for each in wanted],
        "run": facts(found) | {"processor_seconds": processor},
        "one_layer": {"layer": COMPARED, "scikit-learn_seconds": theirs, "likewise_seconds": ours},
    }
    if part == 1:
        write_json(out / "depth.json", result)
    console.print(facts(found))
    for each in wanted:
        console.print(f"{each.promise}: {each.measured:.3g}{each.unit}, asked {each.bound:g} {each.note}", markup=False)
    console.print(f"{processor:.1f} s of processor time; busy machines stretch the clock", markup=False)
    console.print(f"{COMPARED} alone: scikit-learn {theirs:.1f} s, ours {ours:.1f} s", markup=False)
    raise typer.Exit(1 if any(each.holds is False for each in wanted) else 0)


if __name__ == "__main__":
    typer.run(main)
