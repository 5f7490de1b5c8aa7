"""The paper's questions, asked of LFW's View 1: mining, classes or triplets, width, data, damage, clusters, upgrade.

Run it as `python -m studies.lfw_questions` with LIKEWISE_LFW set. Every training but those of the upgrade starts from
scratch and sees the same number of images; people of the test are in none. It goes on where it was stopped, question by
question.
"""

import io
import json
import os
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from itertools import groupby
from pathlib import Path
from typing import Annotated

import numpy
import torch
import typer
from PIL import Image
from rich.console import Console
from torch import Tensor, nn
from torch.nn import functional

from likewise.data import Examples, Preparation, held, lfw
from likewise.data.lfw import lfw_protocol, pair_rows
from likewise.files import write_whole
from likewise.metric import CollapseError, verification
from likewise.metric.clusters import cluster, cluster_scores
from likewise.metric.collapse import CollapseGuard
from likewise.similarity import squared_distances
from likewise.training import Classes, Cosine, EveryTriplet, Hardest, Harmonic, RandomTriplets, Record, SemiHard, train
from studies import lfw as study
from studies.lfw_faces import CANVAS, Capped, FaceNetwork, Grouped, Portraits, Recipe, canvases, embedded, without_norms

BEGIN, END = "<!-- lfw questions: begin -->", "<!-- lfw questions: end -->"
IMAGES = 40_000  # that each training sees
FAR = 0.01
UPGRADE = "harmonic upgrade"
BARE = "trained for, without BatchNorm"
UPGRADED = (
    f"v1 is half as wide as the others and saw {IMAGES // 4:,} images. v2 and the control start from the network that "
    f"was trained with every triplet, get a new last layer and see {IMAGES // 2:,} images more, all layers learning "
    "from the first step on: the steps in which the new layer learns alone, which `likewise train --harmonic-with` "
    "takes with `--start`, are left out. Besides v1 one more thing differs: a pair with no negative beyond its "
    "positive takes its farthest one in v2 and is left out in the control."
)

OBJECTIVES: dict[str, Callable[[int, int], nn.Module]] = {
    "random triplets": lambda dim, people: RandomTriplets(),
    "semi-hard triplets": lambda dim, people: SemiHard(),
    "hardest triplets": lambda dim, people: Hardest(),
    "every triplet": lambda dim, people: EveryTriplet(),
    "classes": lambda dim, people: Classes(dim, people, scale=Recipe.scale, margin=Recipe.margin),
}
TRAINED_FOR = {"trained for": tuple(OBJECTIVES), BARE: tuple(OBJECTIVES)[:3]}
WIDTHS = (16, 64, 256)
PARTS = (8, 4, 2)
QUALITIES = (10, 20, 30, 50, 70, 90)
SIDES = (12, 18, 25, 37)


@dataclass(frozen=True)
class Answer:
    """How a network that was trained in some way, or whose images were damaged in some way, tells pairs apart."""

    question: str
    case: str
    accuracy: float
    area: float
    val: float
    note: str = ""


@dataclass(frozen=True, eq=False)
class Data:
    """View 1: people to train on, and pairs of others."""

    known: Examples
    faces: Tensor
    tested: Tensor
    labels: Tensor
    pair: Tensor
    same: Tensor


def opened(path: str) -> Data:
    """Decode View 1."""
    some = held(lfw(path, crop=study.CUT), Preparation((study.CUT, study.CUT)))
    protocol, faces = lfw_protocol(path), canvases(some)
    known, tested = some.of(protocol.train_people), some.of(protocol.test_people)
    pair, same = pair_rows(tested, protocol.test_pairs)
    return Data(known, faces[some.rows(known.items)], faces[some.rows(tested.items)], tested.labels, pair, same)


def fitted(
    data: Data,
    objective: str,
    *,
    width: int = Recipe.width,
    dim: int = 128,
    part: int = 1,
    images: int = IMAGES,
    norms: bool = True,
) -> tuple[FaceNetwork, str]:
    """A network trained from scratch, `width` channels wide, to `dim` numbers, on every `part`-th person; and what the
    guard said.
    """
    known = data.known.of(data.known.identities[::part])
    faces = data.faces[data.known.rows(known.items)]
    if objective == "classes":
        several = known.with_at_least(2)
        faces, known = faces[known.rows(several.items)], several
        drawn = Capped(known.labels, most=Recipe.most, size=Recipe.batch, seed=0)
    else:
        drawn = Grouped(known.labels, Recipe())
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        network = FaceNetwork(width, embedding_dim=dim)
    if not norms:
        without_norms(network)
    steps = max(1, images // len(drawn[0]))
    portraits = Portraits(faces, known.labels, drawn, Recipe())
    loss = OBJECTIVES[objective](dim, len(known.identities))
    guard = None if objective == "classes" else CollapseGuard()
    schedule = Cosine(peak=Recipe.peak, decay=Recipe.decay)
    taken = 0

    def count(record: Record) -> None:
        nonlocal taken
        taken = record.step + 1

    try:
        train(network, loss, portraits, steps=steps, schedule=schedule, guard=guard, watch=count)
    except CollapseError as error:
        return network, f"stopped after {taken + 1} of {steps} steps. {error}"
    return network, ""


@lru_cache(1)
def usual(data: Data, images: int) -> FaceNetwork:
    """The network of all questions where nothing else is said."""
    return fitted(data, "every triplet", images=images)[0]


def upgraded(data: Data, start: FaceNetwork, old: Tensor | None, images: int) -> FaceNetwork:
    """A network with a new last layer, trained in harmony with the vectors that an old one has of the same faces.

    All layers learn from the first step on. Without old vectors it is the control: the same start, steps and images,
    and semi-hard triplets of new vectors only, of which those without a negative beyond the positive are left out.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        network = FaceNetwork(Recipe.width)
    for name in ("stem", "blocks"):
        getattr(network, name).load_state_dict(getattr(start, name).state_dict())
    labels = data.known.labels
    objective = SemiHard() if old is None else Harmonic(old, labels, rows=torch.arange(len(labels)))
    drawn = Grouped(labels, Recipe())
    steps = max(1, images // len(drawn[0]))
    schedule = Cosine(peak=Recipe.peak, decay=Recipe.decay)
    train(network, objective, Portraits(data.faces, labels, drawn, Recipe()), steps=steps, schedule=schedule)
    return network


def versions(data: Data, images: int) -> list[Answer]:
    """An old network, half as wide and trained for a quarter of the time, and two successors."""
    old, _ = fitted(data, "every triplet", width=Recipe.width // 2, images=images // 4)
    stored, vectors = embedded(old, data.faces), embedded(old, data.tested)
    found = [judged(data, UPGRADE, "v1 with v1", vectors)]
    for name, beside in (("v2", stored), ("control", None)):
        new = embedded(upgraded(data, usual(data, images), beside, images // 2), data.tested)
        found += [
            judged(data, UPGRADE, f"{name} with v1", new, vectors),
            judged(data, UPGRADE, f"{name} with {name}", new),
        ]
    return found


def judged(
    data: Data, question: str, case: str, vectors: Tensor, others: Tensor | None = None, note: str = ""
) -> Answer:
    """The pairs of View 1's test; `others` are the vectors of second images, if they differ."""
    second = vectors if others is None else others
    distances = (vectors[data.pair[:, 0]] - second[data.pair[:, 1]]).square().sum(1)
    found = verification(distances, data.same, far=FAR)
    return Answer(question, case, round(found.accuracy, 4), round(found.roc.area, 4), round(found.val, 4), note)


def encoded(faces: Tensor, quality: int) -> Tensor:
    """Each canvas after a JPEG of some quality."""
    found = []
    for face in faces.permute(0, 2, 3, 1).numpy():
        file = io.BytesIO()
        Image.fromarray(face).save(file, "JPEG", quality=quality)
        found.append(torch.from_numpy(numpy.array(Image.open(file))))
    return torch.stack(found).permute(0, 3, 1, 2)


def shrunk(faces: Tensor, side: int) -> Tensor:
    """Each canvas reduced to so many rows and columns, and enlarged again."""
    small = functional.interpolate(faces.float(), size=(side, side), mode="bilinear", antialias=True)
    large = functional.interpolate(small, size=(CANVAS, CANVAS), mode="bilinear")
    return large.round().clamp(0, 255).byte()


def lit(faces: Tensor, *, gain: float = 1.0, side: float = 0.0) -> Tensor:
    """Brighter or darker, and light from one side: v * gain * (1 + side * x), x from -1 to 1 across."""
    slope = 1 + side * torch.linspace(-1, 1, CANVAS)
    return (faces.float() * gain * slope).round().clamp(0, 255).byte()


def covered(faces: Tensor, rows: slice, columns: slice = slice(None)) -> Tensor:
    """A rectangle in middle grey."""
    changed = faces.clone()
    changed[:, :, rows, columns] = 128
    return changed


def moved(faces: Tensor, pixels: int) -> Tensor:
    """So many pixels to the right; the edge repeats."""
    return faces[..., (torch.arange(CANVAS) - pixels).clamp(min=0)]


DAMAGE: dict[str, dict[str, Callable[[Tensor], Tensor]]] = {
    "JPEG quality (Table 4)": {f"{quality}": lambda x, q=quality: encoded(x, q) for quality in QUALITIES},
    "pixels (Table 4)": {f"{side}x{side} of {CANVAS}x{CANVAS}": lambda x, s=side: shrunk(x, s) for side in SIDES},
    "hidden": {
        "eyes": lambda x: covered(x, slice(24, 36)),
        "mouth": lambda x: covered(x, slice(46, 60)),
        "left half": lambda x: covered(x, slice(None), slice(0, CANVAS // 2)),
    },
    "light": {
        "half": lambda x: lit(x, gain=0.5),
        "double": lambda x: lit(x, gain=2.0),
        "from one side": lambda x: lit(x, side=0.7),
    },
    "moved across": {f"{pixels} of {CANVAS} pixels": lambda x, p=pixels: moved(x, p) for pixels in (2, 4, 8)},
}


def damaged(data: Data, network: FaceNetwork) -> list[Answer]:
    """The second image of every pair is damaged, the first is not."""
    vectors = embedded(network, data.tested)
    return [
        judged(data, question, case, vectors, embedded(network, damage(data.tested)))
        for question, cases in DAMAGE.items()
        for case, damage in cases.items()
    ]


def clustered(data: Data, network: FaceNetwork) -> Answer:
    """All images of people never seen, merged up to the distance that lets one in a hundred different pairs pass."""
    vectors = embedded(network, data.tested)
    answer = judged(data, "clusters", "average linkage", vectors)
    distances = (vectors[data.pair[:, 0]] - vectors[data.pair[:, 1]]).square().sum(1)
    threshold = verification(distances, data.same, far=FAR, folds=1).limit
    found = cluster_scores(cluster(squared_distances(vectors, vectors), threshold=threshold), data.labels)
    note = (
        f"{len(vectors):,} images, {found.identities:,} people in {found.clusters:,} clusters; B-cubed precision "
        f"{found.bcubed_precision:.3f}, recall {found.bcubed_recall:.3f}"
    )
    return replace(answer, note=note)


def answers(data: Data, question: str, images: int) -> list[Answer]:
    """All answers to one question."""
    if question in TRAINED_FOR:
        found = []
        for objective in TRAINED_FOR[question]:
            network, said = fitted(data, objective, images=images, norms=question != BARE)
            found.append(judged(data, question, objective, embedded(network, data.tested), note=said))
        return found
    if question == "embedding width (Table 5)":
        networks = {f"{dim}": fitted(data, "every triplet", dim=dim, images=images)[0] for dim in WIDTHS}
        networks["128"] = usual(data, images)
    elif question == "people (Table 6)":
        networks = {f"one in {part}": fitted(data, "every triplet", part=part, images=images)[0] for part in PARTS}
        networks["everybody"] = usual(data, images)
    elif question == UPGRADE:
        return versions(data, images)
    else:
        network = usual(data, images)
        return [*damaged(data, network), clustered(data, network)]
    return [judged(data, question, case, embedded(network, data.tested)) for case, network in networks.items()]


QUESTIONS = (*TRAINED_FOR, "embedding width (Table 5)", "people (Table 6)", "damage and clusters", UPGRADE)


def render(found: list[Answer], seconds: float | None = None) -> str:
    """One table for each question, and how long all of them took, if it is known."""
    lines = [
        f"View 1; every network but those of the harmonic upgrade started from scratch and saw about {IMAGES:,} "
        "images; accuracy by ten folds, VAL at a FAR of 1 %. Where nothing else is said it was trained "
        "with every triplet of a batch, to 128 numbers, on everybody."
    ]
    if seconds is not None:
        lines[0] += f" All of it took {seconds / 60:.0f} minutes on one thread."
    for question, group in groupby(found, key=lambda answer: answer.question):
        lines += ["", f"| {question} | accuracy | area under ROC | VAL | |", "| --- | ---: | ---: | ---: | --- |"]
        for each in group:
            numbers = f"{100 * each.accuracy:.1f} | {each.area:.4f} | {100 * each.val:.1f}"
            lines.append(f"| {each.case} | {numbers} | {each.note} |")
        if question == UPGRADE:
            lines += ["", UPGRADED]
    return "\n".join(lines)


def read(path: Path) -> dict[str, list[Answer]]:
    """The answers of a file, by what was asked."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    return {question: [Answer(**each) for each in found] for question, found, *_ in map(json.loads, lines)}


def seconds_of(path: Path) -> float | None:
    """How long all questions took; none, if it was not noted of each."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    known = {question: rest[0] for question, _, *rest in map(json.loads, lines) if rest}
    return sum(known.values()) if known.keys() == set(QUESTIONS) else None


def main(
    images: Annotated[int, typer.Option(min=1, help="That each training sees; fewer need --out.")] = IMAGES,
    only: Annotated[list[str] | None, typer.Option(help="Only this question; may be repeated.")] = None,
    only_render: Annotated[bool, typer.Option("--render", help="Only write the page from numbers there are.")] = False,
    out: Annotated[Path, typer.Option(help="Folder for the numbers.")] = study.RESULTS,
) -> None:
    """Ask what is not answered yet, then write the page."""
    console = Console(stderr=True)
    if images != IMAGES and out == study.RESULTS:
        raise typer.BadParameter("--images must have an --out of its own; got none.")
    if unknown := set(only or ()) - set(QUESTIONS):
        raise typer.BadParameter(f"--only must be one of {', '.join(QUESTIONS)}; got {', '.join(sorted(unknown))}.")
    if study.VARIABLE not in os.environ and not only_render:
        console.print(f"Skipped: {study.VARIABLE} does not say where LFW's deep-funneled images are.")
        return
    numbers = out / "lfw_questions.jsonl"
    asked = [] if only_render else [question for question in QUESTIONS if only is None or question in only]
    left = [question for question in asked if question not in read(numbers)]
    if left:
        out.mkdir(parents=True, exist_ok=True)
        torch.set_num_threads(1)
        data = opened(os.environ[study.VARIABLE])
        for question in left:
            started = time.perf_counter()
            found = [asdict(answer) for answer in answers(data, question, images)]
            seconds = round(time.perf_counter() - started, 1)
            with numbers.open("a", encoding="utf-8") as file:
                file.write(json.dumps([question, found, seconds]) + "\n")
            console.print(f"{question}: answered", highlight=False)
    saved = read(numbers)
    shown = [answer for question in QUESTIONS for answer in saved.get(question, [])]
    region = render(shown, seconds_of(numbers))
    if out == study.RESULTS:
        page = study.PAGE.read_text(encoding="utf-8")
        write_whole(study.PAGE, study.filled(page, region, marks=(BEGIN, END)))
    console.print(region, soft_wrap=True, highlight=False, markup=False)


if __name__ == "__main__":
    typer.run(main)
