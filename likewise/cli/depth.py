"""`likewise depth`: from which layer on a model's answer for each example is settled, and one page that shows it."""

import json
import math
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from likewise.checks import refuse, require, require_package
from likewise.cli.terminal import Json, examples, own_network, progress_bar

if TYPE_CHECKING:
    from likewise.data import Halves
    from likewise.difficulty.study import DepthStudy, Subject

UNITS = {"": 1, "kB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
DEPTH_EXAMPLES = examples(
    "likewise depth a.safetensors digits --out depth.html",
    "likewise depth a.safetensors digits --checkpoints a.step-5.safetensors --checkpoints a.step-20.safetensors",
    "likewise depth model.py:make images/ --train other_images/ --folder work --max-memory 2GB",
    "likewise depth fold0.safetensors digits --again fold1.safetensors --again fold2.safetensors --csv depth.csv",
)


def depth(
    model: Annotated[str, typer.Argument(help="A classifier that likewise wrote, or file.py:function, which is run.")],
    data: Annotated[str, typer.Argument(help='Folder of classes, idx, CIFAR-10 or "digits".')],
    train: Annotated[str | None, typer.Option(metavar="DATA", help="Training examples, if DATA has none.")] = None,
    k: Annotated[int, typer.Option(min=1, help="Neighbours that vote.")] = 30,
    held_out: Annotated[float, typer.Option(help="Of data without a test half: which part is held out.")] = 0.2,
    max_memory: Annotated[str, typer.Option(help="Of our arrays; what is above goes to disk.")] = "4GB",
    folder: Annotated[
        Path | None, typer.Option(help="Keeps finished layers, so that the same command goes on.")
    ] = None,
    again: Annotated[list[str] | None, typer.Option(help="The model again, from another seed or fold.")] = None,
    checkpoints: Annotated[list[str] | None, typer.Option(help="The model before it had converged.")] = None,
    out: Annotated[Path | None, typer.Option(help="Where to write the page.")] = None,
    csv: Annotated[Path | None, typer.Option(help="Where to write every depth; .json holds all results.")] = None,
    as_json: Json = False,
) -> None:
    """Find prediction depth: the layer from which on the nearest training examples say what the model says.

    A function of a file is plain code of yours and runs with all your rights; it returns a module that gives logits, or
    the module and a likewise.data.Preparation. Options --again and --checkpoints may be given several times.
    """
    from likewise.difficulty import write_depth
    from likewise.difficulty.study import plan_study, study_depth
    from likewise.files import require_place, write_whole

    if out is not None:
        require_package("depth", "jinja2")
    for path in (out, csv):
        if path is not None:
            require_place("depth", path)
    good = csv is None or csv.suffix in (".csv", ".json")
    require(good, "depth", "--csv", "end in .csv or .json", repr(str(csv)))
    limit = _bytes(max_memory)
    with progress_bar() as progress:
        progress(0.0, "images")
        texts = [model, *(again or ()), *(checkpoints or ())]
        subject, *others = [_subject(text, data, train, held_out) for text in texts]
        print(plan_study(subject, k=k, max_memory=limit), file=sys.stderr if as_json else sys.stdout)
        found = study_depth(
            subject,
            again=others[: len(again or ())],
            checkpoints=others[len(again or ()) :],
            k=k,
            max_memory=limit,
            folder=folder,
            progress=progress,
        )
    if csv is not None:
        write_depth(found.found, csv)
    if out is not None:
        from likewise.reports import depth_page

        write_whole(out, depth_page(found))
    if as_json:
        print(json.dumps(_facts(found) | {"report": out and str(out), "csv": csv and str(csv)}, allow_nan=False))
    else:
        _show(found, out, csv)


def _bytes(text: str) -> int:
    """4GB -> 4,000,000,000."""
    parts = re.fullmatch(r"(\d+(?:\.\d+)?) ?([kMGT]?B)?", text)
    if parts is None:
        refuse("depth", "--max-memory", "be a size such as 500MB or 4GB", repr(text))
    return int(float(parts[1]) * UNITS.get(parts[2] or "", 1))


def _subject(text: str, data: str, train: str | None, held_out: float) -> "Subject":
    """A saved classifier with the half that it was trained on, if it is one of this data; or a user's own module."""
    from likewise.difficulty.study import subject_of
    from likewise.networks import load_classifier

    if ".py:" not in text:
        saved = load_classifier(text)
        halves, known = _halves(data, train, held_out, saved.trained_on)
        here = None if saved.trained_on is None else known
        name = Path(text).name.removesuffix(".safetensors")
        return subject_of(name, saved.network, saved.preparation, halves, classes=saved.classes, trained_here=here)
    halves, _ = _halves(data, train, held_out, None)
    return subject_of(text, *own_network(text, "depth", halves.train), halves)


def _halves(data: str, train: str | None, held_out: float, trained_on: str | None) -> "tuple[Halves, bool]":
    """Training and test examples, and whether the model was trained on the former."""
    from likewise.data import Halves, find_halves, open_examples

    if train is None:
        return find_halves(data, trained_on=trained_on, held_out=held_out)
    support = open_examples(train)
    test = open_examples(data, split="test").numbered_by(support.identities)
    return Halves(support, test, f"training examples from {train}, test examples from {data}"), (
        support.fingerprint == trained_on
    )


def _rows(found: "DepthStudy") -> list[dict[str, Any]]:
    """A line for each probe: its accuracy on test examples, and which part of them is settled there."""
    curve = found.found.curves["test"]
    accuracies, agreements = curve.accuracy[0].tolist(), curve.agreement[0].tolist()
    names = ("probe", "accuracy", "agreement", "settled")
    lines = zip(found.found.layers, accuracies, agreements, found.settled, strict=True)
    return [dict(zip(names, line, strict=True)) for line in lines]


def _facts(found: "DepthStudy") -> dict[str, Any]:
    """What `--json` prints."""
    runs, test = found.runs, found.test
    return {
        "model": found.subject.name,
        "halves": found.subject.how,
        "train": len(found.found.train),
        "test": len(test),
        "k": found.found.k,
        "train_accuracy": found.found.train.accuracy,
        "test_accuracy": test.accuracy,
        "undefined_rate": test.undefined_rate,
        "mean_depth": test.mean(),
        "probes": _rows(found),
        "depths": test.counts.tolist(),
        "accuracy_by_depth": [_known(value) for value in test.accuracy_by_depth.tolist()],
        "traits": {trait.name: [_known(value) for value in trait.correlation] for trait in found.traits},
        "checkpoints": [
            {"name": stage.name, "train_accuracy": stage.train_accuracy, "test_accuracy": stage.test.accuracy}
            | {"mean_depth": stage.test.mean(), "undefined_rate": stage.test.undefined_rate}
            | {"rank_correlation": [_known(value) for value in stage.agreement]}
            for stage in found.stages
        ],
        "runs": runs and {"models": runs.names, "rank_correlation": _known(runs.heldout.rank_correlation)},
        "quadrants": runs and runs.quadrants and str(runs.quadrants),
        "warnings": found.warnings,
        "fingerprint": found.found.fingerprint,
        "seconds": found.found.seconds,
    }


def _known(value: float) -> float | None:
    """JSON has no NaN."""
    return None if math.isnan(value) else value


def _show(found: "DepthStudy", out: Path | None, csv: Path | None) -> None:
    from rich.console import Console
    from rich.table import Table

    test = found.test
    rates = f"test accuracy {test.accuracy:.1%}, depth undefined for {test.undefined_rate:.1%} of {len(test):,}"
    table = Table("probe", title=f"{found.subject.name}, k={found.found.k}", caption=rates)
    for heading in ("accuracy", "settled"):
        table.add_column(heading, justify="right")
    for row in _rows(found):
        table.add_row(row["probe"], f"{row['accuracy']:.1%}", f"{row['settled']:.1%}")
    Console().print(table)
    for warning in found.warnings:
        print(f"warning: {warning}")
    if found.runs is not None:
        print(f"as training examples: {found.runs.train!r}\nheld out: {found.runs.heldout!r}")
        if found.runs.quadrants is not None:
            print(found.runs.quadrants)
    for what, path in (("page", out), ("depths", csv)):
        if path is not None:
            print(f"{what:8}  {path}")
