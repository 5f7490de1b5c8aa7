"""`likewise train`: images of identities -> a network that embeds them, or that names them, in one file."""

import json
import signal
import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from likewise.checks import require
from likewise.cli.terminal import Json, examples, progress_bar, small_images
from likewise.cli.versions import show_versions, versions_json

if TYPE_CHECKING:
    from likewise.data import Skipped
    from likewise.training import Record
    from likewise.training.jobs import JobResult

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
    out: Annotated[
        Path | None, typer.Option(help="Where to write the network; DATA-NETWORK-OBJECTIVE.safetensors unless given.")
    ] = None,
    network: Annotated[
        str | None, typer.Option(help="nn1 .. nn4, nns1, nns2 (unless given), or a small one: resnet8 .. resnet56.")
    ] = None,
    objective: Annotated[
        Literal["triplet", "classes", "classifier"],
        typer.Option(help="What is learned: embeddings, or a classifier for `depth` and `exits`."),
    ] = "triplet",
    held_out: Annotated[
        float | None,
        typer.Option(
            help="Part not trained on, to measure by: of the images for a classifier (0.2 unless given), else of the "
            "identities (0.1 unless given, of 20 or more). 0 trains on all."
        ),
    ] = None,
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
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the files of an older run.")] = False,
    as_json: Json = False,
) -> None:
    """Train a network on images of identities and write it, with a log and a learning curve beside it.

    Ctrl-C finishes the step, leaves a checkpoint and exits with 130 (SIGTERM: 143); the same command with --resume goes
    on to the same result, digit by digit. Files that are no images, or damaged, are skipped and listed. Under
    `torchrun --no-python` the processes share every batch and give the network of one, up to rounding; after Ctrl-C it
    waits 30 seconds for the step (--shutdown-timeout) and ends with 1.
    """
    from likewise.metric import CollapseError
    from likewise.training import Diverged, Interrupted, TrainingJob, run_job
    from likewise.training.loop import joined_ranks

    job = TrainingJob(
        data=data,
        out=out,
        people=people,
        held_out=held_out,
        fold=fold,
        network=network,
        embedding_dim=embedding_dim,
        objective=objective,
        margin=margin,
        steps=steps,
        epochs=epochs,
        identities=identities,
        faces=faces,
        random=random,
        schedule=schedule,
        rate=rate,
        chunk=chunk,
        size=_size(size),
        augment=augment,
        seed=seed,
        head_steps=head_steps,
        harmonic_with=harmonic_with,
        start=start,
        compare=compare,
        far=far,
        workers=workers,
        every=every,
        snapshots=_snapshots(snapshots),
        resume=resume,
        overwrite=overwrite,
    )
    with joined_ranks() as ranks:
        try:
            with progress_bar(shown=ranks.writes) as progress, interruptible() as interrupted:
                result = run_job(job, progress=progress, interrupted=interrupted)
        except Interrupted:
            raise typer.Exit(interrupted.code) from None
        except (Diverged, CollapseError) as error:
            _show_failure(error, job.place, drawn=ranks.writes)
            raise typer.Exit(1) from None
    if ranks.writes:
        _show(result, as_json)
    if not result.finished:
        raise typer.Exit(interrupted.code)


def small_training(options: dict[str, Any]) -> bool:
    """Whether images stay small: those of the paper's networks are enlarged to their size."""
    return str(options["network"]).startswith("resnet") and small_images(options)


class Interruption:
    """Whether Ctrl-C was pressed or SIGTERM received, and the exit code that a shell gives for it."""

    def __init__(self) -> None:
        self.number: int | None = None

    def __call__(self) -> bool:
        return self.number is not None

    @property
    def code(self) -> int:
        """130 after Ctrl-C, 143 after SIGTERM."""
        return 128 + (self.number or signal.SIGINT)

    def note(self, number: int, frame: object) -> None:
        """A second Ctrl-C does not wait for the step to end."""
        if self.number is not None:
            if number == signal.SIGINT:
                raise KeyboardInterrupt
            return
        self.number = number
        again = "; Ctrl-C again stops at once" if number == signal.SIGINT else ""
        print(f"likewise: stopping after this step{again}", file=sys.stderr)


@contextmanager
def interruptible() -> Generator[Interruption]:
    """Yield a function that says whether Ctrl-C was pressed, or SIGTERM received."""
    found = Interruption()
    before = {number: signal.signal(number, found.note) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield found
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


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


def _draw(records: "Sequence[Record]", title: str, out: Path) -> Path:
    """The learning curve beside a network."""
    from likewise.files import write_whole
    from likewise.reports.learning import learning_curve
    from likewise.training import beside

    picture = beside(out, "svg")
    write_whole(picture, learning_curve(records, title=title))
    return picture


def _show(result: "JobResult", as_json: bool) -> None:
    from likewise.training import beside

    out, plan, data = result.job.place, result.plan, result.examples
    picture = _draw(result.records, f"{plan.network} on {data.title}", out)
    facts = {**result.to_json(), "picture": str(picture)}
    if result.versions:
        facts["versions"] = versions_json(result.versions)
    if as_json:
        print(json.dumps(facts))
    else:
        _list_skipped(result.skipped, beside(out, "skipped.txt"))
        if result.fitted.trained.finished:
            noun = "classes" if plan.objective != "triplet" or small_images({"data": result.job.data}) else "identities"
            print(f"Trained on {len(data):,} images of {len(data.identities):,} {noun}, {facts['steps']:,} steps")
            print(_measured(result, noun))
            print(f"network   {out}\nlog       {facts['log']}\npicture   {picture}")
        else:
            total = plan.head_steps + plan.steps
            print(f"Stopped after step {facts['steps']} of {total}; the same command with --resume goes on.")
        if result.versions:
            show_versions(result.versions, str(out))
    if result.control and not result.control.trained.finished:
        print("Stopped in the control; the same command with --resume goes on.", file=sys.stderr)


def _measured(result: "JobResult", noun: str) -> str:
    """How the network does on what was held out, in one line."""
    found = result.held_out
    if found is None and result.plan.objective == "classifier":
        return "Nothing was held out, so accuracy was not measured"
    if found is None:
        return "Nothing was held out to measure VAL on; --held-out 0.2 does that to a fifth of the identities"
    if found.accuracy is not None:
        return f"accuracy  {found.accuracy:.1%} on {found.images:,} images that it was not trained on ({found.what})"
    where = f"{found.images:,} images of {found.identities:,} {noun} that it was not trained on ({found.what})"
    if found.val is None:
        return f"VAL was not measured: too few pairs in {where}"
    return f"VAL       {found.val:.1%} at FAR {found.far:g} on {where}"


def _show_failure(error: Exception, out: Path, *, drawn: bool) -> None:
    """Say why training failed, where its checkpoint stands, and draw the learning curve so far."""
    from likewise.training import beside
    from likewise.training.checkpoints import read_records
    from likewise.training.fitting import unfinished

    logs = [log for log in (beside(out, "head.jsonl"), beside(out, "jsonl")) if log.is_file()]
    if drawn and logs:
        _draw(read_records(max(logs, key=lambda log: log.stat().st_mtime)), out.stem, out)
    print(f"likewise: {error}", file=sys.stderr)
    if left := unfinished(out):
        print(f"likewise: it stands at {left}; to begin anew, use --overwrite", file=sys.stderr)


def _list_skipped(skipped: "Sequence[Skipped]", file: Path) -> None:
    if not skipped:
        return
    file.write_text("".join(f"{item}\t{why}\n" for item, why in skipped), errors="surrogateescape")
    print(f"Skipped {len(skipped):,} files; all are in {file}")
    for item, why in skipped[:SHOWN]:
        print(f"  {item}: {why}".encode(errors="replace").decode())  # names of files need not be UTF-8
