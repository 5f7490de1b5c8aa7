"""Prediction depth on Fashion-MNIST and CIFAR-10: accuracy, human doubt, and labels that look wrong.

Run it as `python -m studies.depth`, with Debian's dataset-fashion-mnist installed or LIKEWISE_FASHION_MNIST naming its
folder, with LIKEWISE_CIFAR10 naming CIFAR-10 (our copy is JPEG, so lossy) and LIKEWISE_CIFAR10_HUMAN the file of human
labels (`cifar10n_*`, `cifar10h_counts`, `cscore`); what is not there is left out, and said so. Networks are trained
first and stay in a folder, depths are kept layer by layer: it goes on where it was stopped. `--train` only trains.
"""

import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import numpy
import torch
import typer
from jaxtyping import Int64
from rich.console import Console
from torch import Tensor

from likewise.difficulty import prediction_depth, rank_correlation
from likewise.difficulty.consistency import depth_consistency
from likewise.difficulty.results import Depths, PredictionDepth
from likewise.files import write_whole
from likewise.networks import Network
from studies import mislabelled
from studies.classifiers import CIFAR, FASHION, Pictures, Recipe, Say, cifar, fashion, trained
from studies.lfw import filled

ROOT = Path(__file__).parents[1]
RESULTS, WORK, PAGE = ROOT / "studies/results", ROOT / "studies/trained", ROOT / "docs/difficulty.md"
MARKS = "<!-- depth study: begin -->", "<!-- depth study: end -->"
HUMAN = os.environ.get("LIKEWISE_CIFAR10_HUMAN", "")
NETWORK, K = "resnet20", 30
LAYERS = ["stem", *(f"block{number}" for number in range(1, 10))]
TRAININGS = {  # and how many of the test images are asked, the first ones
    "fashion": ((Recipe(epochs=8), 4000),),
    "cifar": ((Recipe(epochs=14), 10_000), (Recipe(epochs=14, seed=1), 2000)),
}
TRAIN_ROWS = 2000  # training images whose depth is asked, too
SAMPLE = 1000  # images of each set that are asked at every probe
MEMORY = 4 << 30
PARTS = ("fashion", "cifar", "labels")


@dataclass(frozen=True)
class Settled:
    """The depths that one network gave, and what they took."""

    data: str
    seed: int
    layers: tuple[str, ...]
    train_rows: tuple[int, ...]
    train_depth: tuple[int, ...]
    train_accuracy: float
    test_depth: tuple[int, ...]
    test_predicted: tuple[int, ...]
    test_labels: tuple[int, ...]
    probe_accuracy: tuple[float, ...]
    saving: float

    @property
    def depths(self) -> Depths:
        """Of the test images."""
        rows, labels, predicted, depth = (
            torch.tensor(values)
            for values in (range(len(self.test_depth)), self.test_labels, self.test_predicted, self.test_depth)
        )
        return Depths(rows, labels, predicted, K, {K: depth}, probes=len(self.layers), classes=10)


def settled(data: str, seed: int, network: Network, train: Pictures, test: Pictures, folder: Path, say: Say) -> Settled:
    """Depths of some test images, and of some training images, against all training images."""
    found = asked(network, train, test, some_rows(train), folder / f"depth-{data}-{seed}", say, sample=SAMPLE)
    assert found.test is not None
    return Settled(
        data,
        seed,
        found.layers,
        tuple(found.train.rows.tolist()),
        tuple(found.train.depth.tolist()),
        found.train.accuracy,
        tuple(found.test.depth.tolist()),
        tuple(found.test.predicted.tolist()),
        tuple(found.test.labels.tolist()),
        tuple(found.curves["test"].accuracy[0].tolist()),
        found.reads.saving,
    )


def some_rows(train: Pictures) -> Int64[Tensor, "n"]:
    """Training images by chance, always the same."""
    return torch.randperm(len(train), generator=torch.Generator().manual_seed(0))[:TRAIN_ROWS].sort().values


def asked(
    network: Network,
    train: Pictures,
    test: Pictures,
    rows: Int64[Tensor, "n"],
    folder: Path,
    say: Say,
    *,
    sample: int = 0,
) -> PredictionDepth:
    """Depths against all training images, of all test images and of some training images."""
    told: set[str] = set()

    def progress(done: float, what: str) -> None:
        if what not in told:
            told.add(what)
            say(f"{folder.name}: {what}")

    return prediction_depth(
        network,
        (train.inputs, train.labels),
        (test.inputs, test.labels),
        k=K,
        layers=LAYERS,
        train_rows=rows.tolist(),
        sample=sample,
        max_memory=MEMORY,
        folder=folder,
        progress=progress,
    )


def read(path: Path) -> list[Settled]:
    """What a file holds, by data and seed."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    found = []
    for line in lines:
        saved: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in json.loads(line).items()}
        found.append(Settled(**saved))
    return sorted(found, key=lambda each: (each.data, each.seed))


def doubts(human: Any, found: Sequence[Settled]) -> dict[str, list[float]]:
    """Spearman's correlations of CIFAR-10 depths with what people said of the same images."""
    counts = torch.from_numpy(human["cifar10h_counts"].astype(numpy.float64))
    shares = counts / counts.sum(1, keepdim=True)
    entropy = -torch.xlogy(shares, shares).sum(1)
    labels = numpy.stack([human[f"cifar10n_random_label{number}"] for number in (1, 2, 3)])
    apart = torch.from_numpy(3 - numpy.stack([(labels == own).sum(0) for own in labels]).max(0)).double()
    rows = torch.tensor(found[0].train_rows)
    score = torch.from_numpy(human["cscore"]).double()[rows]
    correlations = {}
    for each in found:
        train, test = torch.tensor(each.train_depth).double(), torch.tensor(each.test_depth).double()
        whose = f"seed {each.seed}"
        correlations |= {
            f"CIFAR-10H entropy, test, {whose}": list(rank_correlation(test, entropy[: len(test)])),
            f"CIFAR-10N disagreement, training, {whose}": list(rank_correlation(train, apart[rows])),
            f"C-score, training, {whose}": list(rank_correlation(train, score)),
        }
    return correlations


def by_accuracy(found: Sequence[Settled]) -> list[dict[str, Any]]:
    """How accuracy goes with depth, for each network."""
    rows = []
    for each in found:
        depths = each.depths
        rows.append(
            {
                "data": each.data,
                "seed": each.seed,
                "train_accuracy": each.train_accuracy,
                "accuracy": depths.accuracy,
                "undefined": depths.undefined_rate,
                "mean": depths.mean(),
                "spearman": list(rank_correlation(depths.correct.double(), depths.depth.double())),
                "by_depth": [None if value != value else value for value in depths.accuracy_by_depth.tolist()],
                "counts": depths.counts.tolist(),
                "probes": dict(zip(each.layers, each.probe_accuracy, strict=True)),
                "saving": each.saving,
            }
        )
    return rows


def spread(found: Sequence[Settled]) -> dict[str, float] | None:
    """How far the depths of one image lie apart from network to network; None for one network."""
    if len(found) < 2:
        return None
    across = depth_consistency([each.depths for each in found])
    return {"networks": len(found), "spread": across.spread.nanmean().item(), "spearman": across.rank_correlation}


def everything(folder: Path, out: Path, only_train: bool, parts: Sequence[str], say: Say) -> None:
    """Train and measure what is not there yet."""
    numbers = out / "depth.jsonl"
    for data, there, opened in (("fashion", FASHION.is_dir(), fashion), ("cifar", bool(CIFAR), cifar)):
        if data not in parts or not there:
            say(f"Left out: {data}{'' if there else ', whose images are not there'}")
            continue
        train, test = opened()
        for recipe, most in TRAININGS[data]:
            network = trained(NETWORK, data, train, recipe, folder=folder, say=say)
            if not only_train and not any((each.data, each.seed) == (data, recipe.seed) for each in read(numbers)):
                some = test.take(torch.arange(min(most, len(test))))
                found = settled(data, recipe.seed, network, train, some, folder, say)
                with numbers.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(asdict(found)) + "\n")
    if "labels" not in parts or not (CIFAR and HUMAN):
        say("Left out: labels that look wrong")
        return
    train, _ = cifar()
    with numpy.load(HUMAN) as human:
        labels = torch.from_numpy(human[mislabelled.LABELS].astype(numpy.int64))
    pictures, halves = train.labelled(labels), mislabelled.Halves.deal(len(train), mislabelled.ASKED)
    networks = tuple(
        trained(NETWORK, f"half{half}", pictures.take(members), mislabelled.RECIPE, folder=folder, say=say)
        for half, members in enumerate(halves.members)
    )
    if not only_train and not (out / "mislabelled.json").is_file():

        def ask(half: int, known: Pictures, new: Pictures, rows: Int64[Tensor, "n"]) -> PredictionDepth:
            return asked(networks[half], known, new, rows, folder / f"depth-half{half}", say)

        found = mislabelled.suspected(networks, pictures, train.labels, halves, ask=ask, folder=folder)
        write_whole(out / "mislabelled.json", json.dumps(asdict(found), indent=1) + "\n")


def compared(out: Path) -> None:
    """Keep what the human labels say of the depths there are."""
    seeds = [each for each in read(out / "depth.jsonl") if each.data == "cifar"]
    if HUMAN and seeds:
        with numpy.load(HUMAN) as human:
            write_whole(out / "depth_human.json", json.dumps(doubts(human, seeds), indent=1) + "\n")


def summary(out: Path) -> dict[str, Any]:
    """All numbers of the page."""
    found = read(out / "depth.jsonl")
    seeds = [each for each in found if each.data == "cifar"]
    saved = {name: out / f"{name}.json" for name in ("depth_human", "mislabelled")}
    kept = {name: json.loads(file.read_text(encoding="utf-8")) for name, file in saved.items() if file.is_file()}
    return {"networks": by_accuracy(found), "spread": spread(seeds), **kept}


def render(found: dict[str, Any]) -> str:
    """The part of the page that holds numbers."""
    lines = [
        "| ResNet-20 | right: training, test | undefined | mean depth | right, with depth | fewer reads |",
        "| --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    for each in found["networks"]:
        named = {"fashion": "Fashion-MNIST", "cifar": "CIFAR-10 (JPEG, lossy)"}[each["data"]]
        lines.append(
            f"| {named}, seed {each['seed']} | {each['train_accuracy']:.1%}, {each['accuracy']:.1%} | "
            f"{each['undefined']:.1%} | {each['mean']:.2f} | {_correlation(each['spearman'])} | "
            f"{each['saving']:.1f}x |"
        )
    networks = found["networks"]
    depths = range(max(len(each["by_depth"]) for each in networks))
    lines += _table("Accuracy by depth, the last undefined", depths, networks, [each["by_depth"] for each in networks])
    title = f"Accuracy of the {K} nearest training images alone, over {SAMPLE:,} test images"
    probes = [list(each["probes"].values()) for each in networks]
    lines += _table(title, networks[0]["probes"], networks, probes)
    if found["spread"]:
        across = found["spread"]
        lines += [
            "",
            f"Between {across['networks']} networks on CIFAR-10 the depth of one image has a mean standard "
            f"deviation of {across['spread']:.2f}, and a rank correlation of {across['spearman']:.2f}.",
        ]
    if "depth_human" in found:
        lines += ["", "| CIFAR-10 (JPEG, lossy), depth with | Spearman |", "| --- | ---: |"]
        lines += [f"| {name} | {_correlation(value)} |" for name, value in found["depth_human"].items()]
    if "mislabelled" in found:
        lines += ["", *_suspects(found["mislabelled"])]
    return "\n".join(lines)


def _table(title: str, heads: Iterable[Any], networks: list[Any], values: list[list[float | None]]) -> list[str]:
    lines = ["", f"{title}:", "", "| | " + " | ".join(map(str, heads)) + " |"]
    lines.append("| --- |" + " ---: |" * len(values[0]))
    for each, row in zip(networks, values, strict=True):
        cells = ["" if value is None else f"{value:.0%}" for value in row]
        lines.append(f"| {each['data']}, seed {each['seed']} | {' | '.join(cells)} |")
    return lines


def _correlation(found: Sequence[float]) -> str:
    value, low, high, count = found
    return f"{value:.3f} ({low:.3f} to {high:.3f}, {count:,} images)"


def _suspects(found: dict[str, Any]) -> list[str]:
    looks, are = found["quadrant"]
    return [
        f"**Labels that look wrong.** Two ResNet-20, each trained on half of CIFAR-10 (JPEG, lossy) with one person's "
        f"labels of CIFAR-10N, of which {found['noise']:.1%} are wrong among the {found['images']:,} images asked "
        f"about; {found['fit']:.1%} of training labels were learned, and held out {found['accuracy']:.1%} of the true "
        f'classes were said. Of {looks:,} images that "look mislabelled" {are:,} are ({are / max(looks, 1):.1%}).',
        "",
        "| score | area under ROC |",
        "| --- | ---: |",
        *(f"| {name} | {value:.3f} ({low:.3f} to {high:.3f}) |" for name, (value, low, high) in found["areas"].items()),
    ]


def main(
    only_train: Annotated[bool, typer.Option("--train", help="Only train what is not there yet.")] = False,
    only_render: Annotated[bool, typer.Option("--render", help="Only write the page from numbers there are.")] = False,
    part: Annotated[list[str] | None, typer.Option(help="fashion, cifar or labels; all unless given.")] = None,
    folder: Annotated[Path, typer.Option(help="Where trained networks are kept.")] = WORK,
    out: Annotated[Path, typer.Option(help="Folder for the numbers.")] = RESULTS,
    threads: Annotated[int, typer.Option(min=1, help="Threads of this process.")] = 2,
) -> None:
    """Train what is not there yet, measure, and write the page."""
    console = Console(stderr=True)
    if unknown := set(part or ()) - set(PARTS):
        raise typer.BadParameter(f"--part must be one of {', '.join(PARTS)}; got {', '.join(sorted(unknown))}.")
    if not only_render:
        torch.set_num_threads(threads)
        out.mkdir(parents=True, exist_ok=True)
        say = partial(console.print, highlight=False, markup=False)
        everything(folder, out, only_train, part or PARTS, say)
        compared(out)
    if only_train:
        return
    if not read(out / "depth.jsonl"):
        console.print("No depths are there yet: no page.")
        return
    text = render(summary(out))
    if out == RESULTS:
        write_whole(PAGE, filled(PAGE.read_text(encoding="utf-8"), text, marks=MARKS))
    console.print(text, soft_wrap=True, highlight=False, markup=False)


if __name__ == "__main__":
    typer.run(main)
