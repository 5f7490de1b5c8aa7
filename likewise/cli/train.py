"""`likewise train`: images of identities -> a network that embeds them, or that names them, in one file."""

import json
import os
import signal
import sys
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from likewise.checks import require
from likewise.cli.terminal import Json, examples, progress_bar
from likewise.cli.versions import show_versions, versions_json

if TYPE_CHECKING:
    from likewise.data import Examples, Skipped
    from likewise.metric import Versions
    from likewise.training import Fitted, Harmonic, Plan, Record

SHOWN = 10  # skipped files that are listed; all of them are in the file beside the network
STOPPED = 130  # as a shell says of Ctrl-C
TRAIN_EXAMPLES = examples(
    "likewise train digits --network resnet8 --embedding-dim 32 --steps 200 --out digits.safetensors",
    "likewise train digits --objective classifier --network resnet8 --steps 300 --out classifier.safetensors",
    "likewise train faces/ --network nns2 --out model.safetensors",
    "likewise train lfw.tar --people view1 --epochs 20 --schedule adagrad --out model.safetensors",
    "likewise train faces/ --harmonic-with v1.safetensors --start v2.safetensors --out new.safetensors",
    "likewise train faces/ --harmonic-with v1.npz --start v2.safetensors --compare others/ --out new.safetensors",
    "likewise train faces/ --out model.safetensors --resume",
)


def train(
    data: Annotated[str, typer.Argument(help='Folder of identities, LFW (folder or .tar), idx, CIFAR-10 or "digits".')],
    out: Annotated[Path, typer.Option(help="Where to write the network.")] = Path("model.safetensors"),
    network: Annotated[
        str | None, typer.Option(help="nn1 .. nn4, nns1, nns2 (unless given), or a small one: resnet8 .. resnet56.")
    ] = None,
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
    start: Annotated[
        Path | None, typer.Option(metavar="V2", help="A network to start from, trained independently of V1.")
    ] = None,
    head_steps: Annotated[
        int | None,
        typer.Option(min=0, help="Steps of V2's embedding layer alone, begun anew; with V1 a quarter of the others."),
    ] = None,
    compare: Annotated[
        str | None,
        typer.Option(metavar="HELDOUT", help="Train a control without V1, too; compare on identities not in DATA."),
    ] = None,
    far: Annotated[float, typer.Option(help="FAR of the comparison.")] = 1e-3,
    people: Annotated[
        str, typer.Option(help="all, or the first so many; of LFW view1, or without-fold-3 (folds 1 to 10).")
    ] = "all",
    embedding_dim: Annotated[
        int | None, typer.Option(min=1, help="Numbers in an embedding; V1's, V2's or 128 unless given.")
    ] = None,
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
    result, digit by digit. Files that are no images, or damaged, are skipped and listed. Under `torchrun --no-python`
    the processes share every batch and give the network of one, up to rounding; after Ctrl-C it waits 30 seconds for
    the step (--shutdown-timeout) and ends with 1.
    """
    from likewise.metric import CollapseError
    from likewise.networks import load_network
    from likewise.training import (
        Diverged,
        Plan,
        beside,
        compare_fitted,
        fit,
        harmony,
        joined_ranks,
        old_width,
        open_older,
        read_records,
        require_comparable,
        unfinished,
        unseen,
    )

    require(out.parent.is_dir(), "train", "--out", "be in a folder that exists", repr(str(out)))
    require(not out.is_dir(), "train", "--out", "be a file", repr(str(out)))
    left = None if resume else unfinished(out)
    hint = "Go on with --resume, or remove it to begin anew."
    require(left is None, "train", "--out", "have no interrupted run beside it", left, hint)
    require(0 < far < 1, "train", "--far", "be between 0 and 1", far)
    require(compare is None or harmonic_with is not None, "train", "--compare", "go with --harmonic-with", compare)
    older = open_older(harmonic_with) if harmonic_with else None
    first = load_network(start) if start else None
    some = _examples(data, people, held_out if objective == "classifier" else 0.0, fold)
    others = unseen(_examples(compare, "all", 0.0, 0), some) if compare else None
    if older and others:
        require_comparable(older, others, far=far)
    count = _steps(steps, epochs, some, identities * faces + random)
    default_dim = old_width(older) if older else first.network.embedding_dim if first else 128
    plan = Plan(
        network=network or (first.name if first else "nns2"),
        embedding_dim=embedding_dim or default_dim,
        objective=objective,
        margin=margin,
        steps=count,
        identities=identities,
        faces=faces,
        random=random,
        schedule=schedule,
        rate=rate,
        chunk=chunk,
        size=_size(size),
        augment=augment,
        seed=seed,
        head_steps=(count + 3) // 4 if head_steps is None and first and older else head_steps or 0,
    )
    processes = min(2, os.cpu_count() or 1) if workers is None else workers
    control, found = None, None
    try:
        with joined_ranks() as ranks, progress_bar(shown=ranks.writes) as progress, interruptible() as interrupted:

            def watching(start: float, stop: float, name: str) -> "Callable[[Record], bool]":
                def watch(record: "Record") -> bool:
                    done = (record.step + 1) / (plan.head_steps + plan.steps)
                    progress(start + (stop - start) * done, f"{name}step {record.step + 1}, loss {record.loss:.4f}")
                    return interrupted()

                return watch

            def run(place: Path, harmonic: "Harmonic | None", watch: "Callable[[Record], bool]") -> "Fitted":
                return fit(
                    some,
                    plan,
                    place,
                    harmonic=harmonic,
                    start=first,
                    resume=resume,
                    workers=processes,
                    every=every,
                    snapshots=_snapshots(snapshots),
                    watch=watch,
                )

            def embedding(start: float, stop: float, name: str) -> "Callable[[float], None]":
                def tell(part: float) -> None:
                    progress(start + (stop - start) * part, name)
                    if interrupted():  # nothing is lost: the runs are kept, and this is done again
                        raise typer.Exit(STOPPED)

                return tell

            before = embedding(0.0, 0.02, "vectors of v1")
            harmonic = harmony(older, some, plan, workers=processes, progress=before) if older else None
            fitted = run(out, harmonic, watching(0.02 if older else 0.0, 0.49 if others else 1.0, ""))
            if others and fitted.trained.finished:
                control = run(beside(out, "control.safetensors"), None, watching(0.49, 0.96, "control, "))
            if older and others and control and control.trained.finished and ranks.writes:
                last = embedding(0.96, 1.0, "comparing")
                found = compare_fitted(
                    fitted, older, others, control=control, far=far, workers=processes, progress=last
                )
    except (Diverged, CollapseError) as error:
        logs = [log for log in (beside(out, "head.jsonl"), beside(out, "jsonl")) if log.is_file()]
        if ranks.writes and logs:
            _draw(read_records(max(logs, key=lambda log: log.stat().st_mtime)), some, plan, out)
        print(f"likewise: {error}", file=sys.stderr)
        if left := unfinished(out):
            print(f"likewise: it stands at {left}; to begin anew, remove that file", file=sys.stderr)
        raise typer.Exit(1) from None
    if ranks.writes:
        _show(fitted, some, plan, out, found, as_json)
    if ranks.writes and control and not control.trained.finished:
        print("Stopped in the control; the same command with --resume goes on.", file=sys.stderr)
    if not (control or fitted).trained.finished:
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
    if people.isdecimal():
        count, most = int(people), len(some.identities)
        require(1 <= count <= most, "train", "--people", f"be at most the {most} identities of the data", people)
        return some.of(some.identities[:count])
    require(is_lfw(Path(data)), "train", "--people", "be all or a number for data that is not LFW", repr(people))
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


def _draw(records: "Sequence[Record]", some: "Examples", plan: "Plan", out: Path) -> Path:
    """The learning curve beside a network."""
    from likewise.networks.weights import write_whole
    from likewise.reports.curves import learning_curve
    from likewise.training import beside

    picture = beside(out, "svg")
    write_whole(picture, learning_curve(records, title=f"{plan.network} on {some.title}").encode())
    return picture


def _show(fitted: "Fitted", some: "Examples", plan: "Plan", out: Path, found: "Versions | None", as_json: bool) -> None:
    from likewise.training import beside

    records = fitted.trained.records
    picture = _draw(records, some, plan, out)
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
    if found:
        result["versions"] = versions_json(found)
    if as_json:
        print(json.dumps(result))
        return
    _list_skipped(skipped, beside(out, "skipped.txt"))
    if not fitted.trained.finished:
        total = plan.head_steps + plan.steps
        print(f"Stopped after step {len(records)} of {total}; the same command with --resume goes on.")
        return
    print(f"Trained on {len(some):,} images of {len(some.identities):,} identities, {len(records):,} steps")
    print(f"network   {out}\nlog       {result['log']}\npicture   {picture}")
    if found:
        show_versions(found, str(out))


def _list_skipped(skipped: "list[Skipped]", file: Path) -> None:
    if not skipped:
        return
    file.write_text("".join(f"{item}\t{why}\n" for item, why in skipped), errors="surrogateescape")
    print(f"Skipped {len(skipped):,} files; all are in {file}")
    for item, why in skipped[:SHOWN]:
        print(f"  {item}: {why}".encode(errors="replace").decode())  # names of files need not be UTF-8
