"""LFW, "unrestricted, no outside data": ten networks, each trained on the people of nine folds only.

Run it as `python -m studies.lfw --folds 10` with LIKEWISE_LFW set to the deep-funneled images, as a folder or a tar. It
goes on where it was stopped, fold by fold; `--render` only writes the page from numbers that are there. Two processes
may share the work: give each its folds with `--only`.

View 1 comes first. All choices were made there; from it come the weights of the two ways and one threshold.
"""

import json
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import torch
import typer
from rich.console import Console
from torch import Tensor

from likewise.checks import require
from likewise.data import Examples, Preparation, held, lfw
from likewise.data.lfw import Pair, Protocol, lfw_protocol, pair_rows
from likewise.files import write_whole
from likewise.metric import verification
from likewise.stats import mean_and_error
from studies.lfw_faces import Recipe, canvases, embedded, trained
from studies.lfw_textures import KINDS, learned, textures

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "studies/results"
PAGE = ROOT / "docs/facenet.md"
BEGIN, END = "<!-- lfw: begin -->", "<!-- lfw: end -->"
VARIABLE = "LIKEWISE_LFW"
CUT = 150  # pixels of 250, from the centre
VIEW_1, FOLDS = "view 1", 10
DIGITS = 5
Say = Callable[[str], None]

WAYS = ("network", "textures", "both")


@dataclass(frozen=True)
class Outcome:
    """One training and the scores of the pairs it was not trained on; a higher score means more alike."""

    part: str
    people: int
    images: int
    seconds: float
    same: tuple[bool, ...]
    scores: dict[str, tuple[float, ...]]

    def to_line(self) -> str:
        """One line of JSON."""
        return json.dumps(asdict(self)) + "\n"


def read(path: Path) -> list[Outcome]:
    """The outcomes of a file: View 1, then the folds in order."""
    found = {}
    for line in path.read_text(encoding="utf-8").splitlines() if path.is_file() else []:
        saved: dict[str, Any] = json.loads(line)
        scores = {name: tuple(values) for name, values in saved["scores"].items()}
        fields: dict[str, Any] = {**saved, "same": tuple(saved["same"]), "scores": scores}
        found[saved["part"]] = Outcome(**fields)
    return [found[part] for part in sorted(found, key=lambda part: (part != VIEW_1, part))]


def fold_name(fold: int) -> str:
    """As the records and the page say it: counted from 1, as the protocol does."""
    return f"fold {fold + 1:2d}"


@dataclass(frozen=True, eq=False)
class Faces:
    """All images, cut and described once."""

    examples: Examples
    canvases: Tensor
    textures: dict[str, Tensor]
    protocol: Protocol


def opened(path: str) -> Faces:
    """Decode and describe everything: a minute or two."""
    pixels = Preparation((CUT, CUT))
    some = held(lfw(path, crop=CUT), pixels)
    return Faces(some, canvases(some), textures(some), lfw_protocol(path))


def measure(faces: Faces, part: str, people: Sequence[str], pairs: Sequence[Pair], recipe: Recipe, say: Say) -> Outcome:
    """Train on some people; score pairs of others."""
    tested = {pair[place].partition("/")[0] for pair in pairs for place in (0, 1)}
    require(
        not tested & set(people), "measure", "people", "be none of those in the pairs", sorted(tested & set(people))
    )
    started = time.perf_counter()
    known = faces.examples.of(people)
    rows = torch.tensor(faces.examples.rows(known.items))
    pair, same = pair_rows(faces.examples, pairs)
    network = trained(known, faces.canvases[rows], recipe, say=lambda text: say(f"{part}, {text}"))
    vectors = embedded(network, faces.canvases)
    first, second = vectors[pair[:, 0]], vectors[pair[:, 1]]
    scores = {"network": (first * second).sum(1)}
    for kind, described in faces.textures.items():
        model = learned(described[rows], known.labels)
        scores[kind] = model.scores(described[pair[:, 0]], described[pair[:, 1]])
    return Outcome(
        part,
        len(known.identities),
        len(known),
        round(time.perf_counter() - started, 1),
        tuple(same.tolist()),
        {name: tuple(round(value, DIGITS) for value in found.tolist()) for name, found in scores.items()},
    )


@dataclass(frozen=True)
class Found:
    """Accuracies of one way of scoring; `fixed` are with the threshold of View 1."""

    way: str
    view_1: float
    area: float
    folds: tuple[float, ...]
    fixed: tuple[float, ...]


def judged(outcomes: list[Outcome]) -> list[Found]:
    """Every way of scoring, by the protocol and with the threshold of View 1."""
    view_1, *folds = outcomes
    require(view_1.part == VIEW_1, "judged", "outcomes", "begin with View 1", view_1.part)
    same = [torch.tensor(each.same) for each in outcomes]
    found = []
    for way in WAYS:
        distances = [-scored(way, each, view_1) for each in outcomes]
        first = verification(distances[0], same[0])
        fixed = [_accuracy(distances[k], same[k], first.accuracy_threshold) for k in range(1, len(outcomes))]
        own = []
        for fold in range(1, len(outcomes)) if len(folds) > 1 else []:
            rest = [other for other in range(1, len(outcomes)) if other != fold]
            others = verification(torch.cat([distances[k] for k in rest]), torch.cat([same[k] for k in rest]), folds=1)
            own.append(_accuracy(distances[fold], same[fold], others.accuracy_threshold))
        found.append(Found(way, first.accuracy, first.roc.area, tuple(own), tuple(fixed)))
    return found


def scored(way: str, outcome: Outcome, view_1: Outcome) -> Tensor:
    """The pairs' scores: textures add up as likelihoods do; both are the two ways, by their deviations on View 1."""
    if way == "both":
        ways = [way for way in WAYS if way != "both"]
        return sum((scored(way, outcome, view_1) / scored(way, view_1, view_1).std() for way in ways), torch.zeros(()))
    names = KINDS if way == "textures" else (way,)
    return torch.tensor([outcome.scores[name] for name in names], dtype=torch.float64).sum(0)


def _accuracy(distances: Tensor, same: Tensor, threshold: float) -> float:
    return ((distances <= threshold) == same).double().mean().item()


def render(outcomes: list[Outcome], tried: list[list[str]]) -> str:
    """The part of the page that holds numbers."""
    found = judged(outcomes)
    folds = outcomes[1:]
    lines = ["| way | View 1 | area under ROC | View 2 | threshold of View 1 |", "| --- | ---: | ---: | ---: | ---: |"]
    lines += [
        f"| {each.way} | {100 * each.view_1:.1f} | {each.area:.4f} | {_mean(each.folds)} | {_mean(each.fixed)} |"
        for each in found
    ]
    lines += ["", _said(found), "", *_by_fold(found, folds), "", _made(outcomes), ""]
    lines += [
        "**What was tried on View 1** before the recipe was settled, one training each, with a script of like parts "
        "that is not kept (1,000 pairs: one standard error is about one point)",
        "",
    ]
    lines += ["| what | accuracy | area under ROC |", "| --- | ---: | ---: |"]
    lines += [f"| {' | '.join(row)} |" for row in tried]
    return "\n".join(lines)


def _said(found: list[Found]) -> str:
    """Which way reaches what: the aim was 90 % on View 2, and who reads one number must know whose it is."""
    network, _, both = (_mean(each.folds) for each in found)
    return (
        f"The network alone reaches {network} % on View 2, {both} % with the hand-made textures beside it. The aim was "
        "90 %."
    )


def _mean(values: Sequence[float]) -> str:
    if len(values) < 2:
        return "not yet"
    mean, error = mean_and_error(list(values))
    return f"{100 * mean:.2f} ± {100 * error:.2f}"


def _by_fold(found: list[Found], folds: list[Outcome]) -> list[str]:
    lines = ["| fold | people, images trained on | " + " | ".join(each.way for each in found) + " |"]
    lines += ["| --- | ---: |" + " ---: |" * len(found)]
    for number, fold in enumerate(folds):
        cells = [f"{100 * each.folds[number]:.2f}" if each.folds else "" for each in found]
        lines.append(f"| {fold.part.split()[1]} | {fold.people:,}, {fold.images:,} | {' | '.join(cells)} |")
    return lines


def _made(outcomes: list[Outcome]) -> str:
    recipe = ", ".join(f"{name} {value}" for name, value in asdict(Recipe()).items())
    seconds, left = [each.seconds for each in outcomes], FOLDS + 1 - len(outcomes)
    warning = f"**{left} of the {FOLDS} folds were not trained yet: this is no result of the protocol.** "
    return (
        f"{warning if left else ''}Recipe: {recipe}. {len(outcomes)} trainings took {sum(seconds) / 60:.0f} minutes "
        f"on one thread each ({min(seconds) / 60:.0f} to {max(seconds) / 60:.0f} minutes; others were at work on the "
        "machine)."
    )


def filled(page: str, region: str, *, marks: tuple[str, str] = (BEGIN, END)) -> str:
    """The page with a new region between its marks."""
    before, begin, rest = page.partition(marks[0])
    _, end, after = rest.partition(marks[1])
    require(bool(begin and end), "filled", "page", f"hold {marks[0]} and then {marks[1]}", "a page without")
    return f"{before}{begin}\n\n{region}\n\n{end}{after}"


def main(
    folds: Annotated[int, typer.Option(min=0, max=10, help="How many of the ten folds.")] = 10,
    only: Annotated[
        list[int] | None, typer.Option(min=1, max=10, help="Only this fold, without View 1; may be repeated.")
    ] = None,
    epochs: Annotated[int | None, typer.Option(min=1, help="Fewer, to see that it works; needs --out.")] = None,
    only_render: Annotated[bool, typer.Option("--render", help="Only write the page from numbers there are.")] = False,
    out: Annotated[Path, typer.Option(help="Folder for the numbers.")] = RESULTS,
    threads: Annotated[int, typer.Option(min=1, help="Threads of this process.")] = 1,
) -> None:
    """View 1, then the folds that are not there yet, then the page."""
    console = Console(stderr=True)
    if epochs is not None and out == RESULTS:
        raise typer.BadParameter("--epochs must have an --out of its own; got none.")
    if VARIABLE not in os.environ and not only_render:
        console.print(f"Skipped: {VARIABLE} does not say where LFW's deep-funneled images are.")
        return
    numbers = out / "lfw.jsonl"
    if not only_render:
        torch.set_num_threads(threads)
        out.mkdir(parents=True, exist_ok=True)
        recipe = Recipe() if epochs is None else Recipe(epochs=epochs, rounds=epochs)
        wanted: list[int | None] = [number - 1 for number in only] if only else [None, *range(folds)]
        run(numbers, wanted, recipe, lambda text: console.print(text, highlight=False))
    outcomes = read(numbers)
    if not outcomes or outcomes[0].part != VIEW_1:
        console.print("View 1 is not there yet: no page.")
        return
    tried = json.loads((RESULTS / "lfw_tried.json").read_text(encoding="utf-8"))
    if out == RESULTS:
        write_whole(PAGE, filled(PAGE.read_text(encoding="utf-8"), render(outcomes, tried)))
    console.print(render(outcomes, tried), soft_wrap=True, highlight=False, markup=False)


def run(numbers: Path, wanted: list[int | None], recipe: Recipe, say: Say) -> None:
    """Measure what is not in the file yet; None is View 1."""
    names = [VIEW_1 if fold is None else fold_name(fold) for fold in wanted]
    there = {each.part for each in read(numbers)}
    if set(names) <= there:
        return
    faces = opened(os.environ[VARIABLE])
    protocol = faces.protocol
    say(f"{len(faces.examples):,} images read")
    for fold, name in zip(wanted, names, strict=True):
        if name in {each.part for each in read(numbers)}:
            continue
        people = protocol.train_people if fold is None else protocol.outside(fold)
        pairs = protocol.test_pairs if fold is None else protocol.pairs[fold]
        outcome = measure(faces, name, people, pairs, recipe, say)
        with numbers.open("a", encoding="utf-8") as file:
            file.write(outcome.to_line())
        say(f"{name}: done in {outcome.seconds:.0f} s")


if __name__ == "__main__":
    typer.run(main)
