"""`likewise train`: images of identities -> a network that embeds them, or that names them, in one file."""

import json
import os
import signal
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from likewise.checks import refuse, require
from likewise.cli.terminal import Json, examples, progress_bar

if TYPE_CHECKING:
    from likewise.data import Examples, Skipped
    from likewise.training import Fitted, Harmonic, Plan, Record

SHOWN = 10  # skipped files that are listed; all of them are in the file beside the network
STOPPED = 130  # as a shell says of Ctrl-C
TRAIN_EXAMPLES = examples(
    "likewise train digits --network resnet8 --embedding-dim 32 --steps 200 --out digits.safetensors",
    "likewise train digits --objective classifier --network resnet8 --steps 300 --out classifier.safetensors",
    "likewise train faces/ --network nns2 --out model.safetensors",
    "likewise train lfw.tar --people view1 --epochs 20 --schedule adagrad --out model.safetensors",
    "likewise train faces/ --harmonic-with old.safetensors --out new.safetensors",
    "likewise train faces/ --out model.safetensors --resume",
)


def train(
    data: Annotated[str, typer.Argument(help='Folder of identities, LFW (folder or .tar), idx, CIFAR-10 or "digits".')],
    out: Annotated[Path, typer.Option(help="Where to write the network.")] = Path("model.safetensors"),
    network: Annotated[str, typer.Option(help="nn1 .. nn4, nns1, nns2, or a small one: resnet8 .. resnet56.")] = "nns2",
    objective: Annotated[
        Literal["triplet", "classes", "classifier"],
        typer.Option(help="What is learned: embeddings, or a classifier for `depth` and `exits`."),
    ] = "triplet",
    held_out: Annotated[
        float, typer.Option(help="Of data without a test half: the part that a classifier does not see.")
    ] = 0.2,
    fold: Annotated[int, typer.Option(min=0, help="Which such part, from 0; no two share an image.")] = 0,
    snapshots: Annotated[str, typer.Option(metavar="N,N,...", help="After so many steps, write the network too.")] = "",
    steps: Annotated[int | None, typer.Option(min=1, help="How many batches; 1000 unless given.")] = None,
    epochs: Annotated[float | None, typer.Option(min=0, help="Instead of --steps: times through the images.")] = None,
    harmonic_with: Annotated[
        Path | None, typer.Option(metavar="V1", help="An older network, or a .npz of its vectors and names.")
    ] = None,
    people: Annotated[str, typer.Option(help="Of LFW: all, view1, or without-fold-3 (folds 1 to 10).")] = "all",
    embedding_dim: Annotated[int, typer.Option(min=1, help="Numbers in an embedding.")] = 128,
    margin: Annotated[float, typer.Option(help="Of the triplet loss, in squared distance.")] = 0.2,
    identities: Annotated[int, typer.Option(min=1, help="People in a batch.")] = 30,
    faces: Annotated[int, typer.Option(min=2, help="Images of each.")] = 10,
    random: Annotated[int, typer.Option(min=0, help="Images of anybody besides.")] = 60,
    schedule: Annotated[Literal["cosine", "adagrad"], typer.Option(help="AdamW, or as in the paper.")] = "cosine",
    rate: Annotated[float | None, typer.Option(help="Learning rate; the schedule has its own.")] = None,
    chunk: Annotated[
        int | None, typer.Option(min=1, help="Images in memory at a time; the result is the same.")
    ] = None,
    size: Annotated[str | None, typer.Option(metavar="ROWSxCOLUMNS", help="Of images, for a small network.")] = None,
    augment: Annotated[bool, typer.Option(help="Mirror, shift and light images by chance.")] = True,
    seed: Annotated[int, typer.Option(min=0, help="Of all that is drawn.")] = 0,
    workers: Annotated[int | None, typer.Option(min=0, help="Processes that read images.")] = None,
    every: Annotated[int, typer.Option(min=1, help="Steps between checkpoints.")] = 100,
    resume: Annotated[bool, typer.Option("--resume", help="Go on from the checkpoint, exactly.")] = False,
    as_json: Json = False,
) -> None:
    """Train a network on images of identities and write it, with a log and a learning curve beside it.

    Ctrl-C finishes the step, leaves a checkpoint and exits with 130; the same command with --resume goes on to the same
    result, digit by digit. Files that are no images, or damaged, are skipped and listed.
    """
    from likewise.metric import CollapseError
    from likewise.training import Diverged, Plan, fit

    require(out.parent.is_dir(), "train", "--out", "be in a folder that exists", repr(str(out)))
    some = _examples(data, people, held_out if objective == "classifier" else 0.0, fold)
    plan = Plan(
        network=network,
        embedding_dim=embedding_dim,
        objective=objective,
        margin=margin,
        steps=_steps(steps, epochs, some, identities * faces + random),
        identities=identities,
        faces=faces,
        random=random,
        schedule=schedule,
        rate=rate,
        chunk=chunk,
        size=_size(size),
        augment=augment,
        seed=seed,
    )
    processes = min(2, os.cpu_count() or 1) if workers is None else workers
    try:
        with progress_bar() as progress, interruptible() as interrupted:
            harmonic = _harmonic(harmonic_with, some, plan, processes) if harmonic_with else None

            def watch(record: "Record") -> bool:
                progress((record.step + 1) / plan.steps, f"step {record.step + 1}, loss {record.loss:.4f}")
                return interrupted()

            fitted = fit(
                some,
                plan,
                out,
                harmonic=harmonic,
                resume=resume,
                workers=processes,
                every=every,
                snapshots=_snapshots(snapshots),
                watch=watch,
            )
    except (Diverged, CollapseError) as error:
        print(f"likewise: {error}", file=sys.stderr)
        raise typer.Exit(1) from None
    _show(fitted, some, plan, out, as_json)
    if not fitted.trained.finished:
        raise typer.Exit(STOPPED)


@contextmanager
def interruptible() -> Generator[Callable[[], bool]]:
    """Yield a function that says whether Ctrl-C was pressed; a second Ctrl-C does not wait for the step to end."""
    pressed: list[int] = []

    def note(number: int, frame: object) -> None:
        if pressed:
            raise KeyboardInterrupt
        pressed.append(number)
        print("likewise: stopping after this step; Ctrl-C again stops at once", file=sys.stderr)

    before = signal.signal(signal.SIGINT, note)
    try:
        yield lambda: bool(pressed)
    finally:
        signal.signal(signal.SIGINT, before)


def _examples(data: str, people: str, held_out: float, fold: int) -> "Examples":
    from likewise.data import is_lfw, lfw_protocol, open_examples, open_halves

    some = open_halves(data, held_out=held_out, fold=fold).train if held_out else open_examples(data)
    if people == "all":
        return some
    require(is_lfw(Path(data)), "train", "--people", "be all for data that is not LFW", repr(people))
    protocol = lfw_protocol(data)
    if people == "view1":
        return some.of(protocol.train_people)
    left = people.removeprefix("without-fold-")
    right = left != people and left.isdecimal() and 1 <= int(left) <= len(protocol.people)
    require(right, "train", "--people", "be all, view1 or without-fold-1 to without-fold-10", repr(people))
    return some.of(protocol.outside(int(left) - 1))


def _steps(steps: int | None, epochs: float | None, some: "Examples", images: int) -> int:
    require(steps is None or epochs is None, "train", "--epochs", "not be given with --steps", epochs)
    if epochs is None:
        return 1000 if steps is None else steps
    return max(1, round(epochs * len(some) / min(images, len(some))))


def _snapshots(text: str) -> tuple[int, ...]:
    steps = [step for step in text.split(",") if step]
    right = all(step.isascii() and step.isdecimal() and int(step) for step in steps)
    require(right, "train", "--snapshots", "be numbers of steps such as 20,100", repr(text))
    return tuple(map(int, steps))


def _size(text: str | None) -> tuple[int, int] | None:
    if text is None:
        return None
    rows, cross, columns = text.partition("x")
    right = bool(cross) and all(side.isascii() and side.isdecimal() and int(side) for side in (rows, columns))
    require(right, "train", "--size", "be ROWSxCOLUMNS, such as 64x48", repr(text))
    return int(rows), int(columns)


def _harmonic(path: Path, some: "Examples", plan: "Plan", workers: int) -> "Harmonic":
    """The vectors of an older network for these examples, or the stored ones of a .npz."""
    import numpy
    import torch

    from likewise.networks import load_network
    from likewise.training import Harmonic, embed_examples

    if path.suffix != ".npz":
        saved = load_network(path)
        found = embed_examples(saved.network, saved.preparation, some, workers=workers)
        vectors, labels = found.vectors, found.labels
        rows = torch.full((len(some),), -1, dtype=torch.int64)
        rows[found.rows] = torch.arange(len(found.rows))
    else:
        with numpy.load(path, allow_pickle=False) as stored:
            missing = {"vectors", "names"} - set(stored)
            require(not missing, "train", "--harmonic-with", "hold vectors and names", ", ".join(stored))
            numbers = {name: number for number, name in enumerate(some.identities)}
            known = numpy.array([name in numbers for name in stored["names"].tolist()], bool)
            labels = torch.tensor([numbers[name] for name in stored["names"][known].tolist()], dtype=torch.int64)
            vectors, rows = torch.from_numpy(stored["vectors"][known].astype(numpy.float32)), None
        if not len(vectors):
            refuse("train", "--harmonic-with", "have vectors of people in the data", "none")
    width = vectors.shape[1]
    require(width == plan.embedding_dim, "train", "--embedding-dim", f"be that of V1, {width}", plan.embedding_dim)
    return Harmonic(vectors, labels, rows=rows, margin=plan.margin, seed=plan.seed)


def _show(fitted: "Fitted", some: "Examples", plan: "Plan", out: Path, as_json: bool) -> None:
    from likewise.reports.curves import learning_curve
    from likewise.training import beside

    records = fitted.trained.records
    picture = beside(out, "svg")
    picture.write_text(learning_curve(records, title=f"{plan.network} on {some.title}"))
    skipped = list(dict.fromkeys([*some.skipped, *fitted.trained.skipped]))
    result = {
        "network": str(out) if fitted.hash else None,
        "hash": fitted.hash,
        "finished": fitted.trained.finished,
        "steps": len(records),
        "loss": records[-1].loss if records else None,
        "seconds": sum(record.seconds for record in records),
        "images": len(some),
        "identities": len(some.identities),
        "checkpoint": str(beside(out, "checkpoint")),
        "log": str(beside(out, "jsonl")),
        "picture": str(picture),
        "skipped": [file._asdict() for file in skipped],
    }
    if as_json:
        print(json.dumps(result))
        return
    _list_skipped(skipped, beside(out, "skipped.txt"))
    if not fitted.trained.finished:
        print(f"Stopped after step {len(records)} of {plan.steps}; the same command with --resume goes on.")
        return
    print(f"Trained on {len(some):,} images of {len(some.identities):,} identities, {len(records):,} steps")
    print(f"network   {out}\nlog       {result['log']}\npicture   {picture}")


def _list_skipped(skipped: "list[Skipped]", file: Path) -> None:
    if not skipped:
        return
    file.write_text("".join(f"{item}\t{why}\n" for item, why in skipped))
    print(f"Skipped {len(skipped):,} files; all are in {file}")
    for item, why in skipped[:SHOWN]:
        print(f"  {item}: {why}")
