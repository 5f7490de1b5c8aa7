"""`likewise depth`: from which layer on a model's answer for each example is settled, and one page that shows it."""

import functools
import json
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from likewise.checks import refuse, require, require_package
from likewise.cli.terminal import Json, examples, progress_bar

if TYPE_CHECKING:
    from likewise.difficulty.study import DepthStudy

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
    from likewise.difficulty.export import write_depth
    from likewise.difficulty.study import DepthJob, run_depth_job
    from likewise.files import require_place, write_whole

    if out is not None:
        require_package("depth", "jinja2")
    for path in (out, csv):
        if path is not None:
            require_place("depth", path)
    good = csv is None or csv.suffix in (".csv", ".json")
    require(good, "depth", "--csv", "end in .csv or .json", repr(str(csv)))
    job = DepthJob(
        model=model,
        data=data,
        train=train,
        held_out=held_out,
        again=again or (),
        checkpoints=checkpoints or (),
        k=k,
        max_memory=_bytes(max_memory),
        folder=folder,
    )
    with progress_bar() as progress:
        planned = functools.partial(print, file=sys.stderr if as_json else sys.stdout)
        study = run_depth_job(job, planned=planned, progress=progress)
    if csv is not None:
        write_depth(study.found, csv)
    if out is not None:
        from likewise.reports.difficulty import depth_page

        write_whole(out, depth_page(study))
    if as_json:
        print(json.dumps({**study.to_json(), "report": out and str(out), "csv": csv and str(csv)}, allow_nan=False))
    else:
        _show(study, out, csv)


def _bytes(text: str) -> int:
    """4GB -> 4,000,000,000."""
    parts = re.fullmatch(r"(\d+(?:\.\d+)?) ?([kMGT]?B)?", text)
    if parts is None:
        refuse("depth", "--max-memory", "be a size such as 500MB or 4GB", repr(text))
    return int(float(parts[1]) * UNITS.get(parts[2] or "", 1))


def _show(study: "DepthStudy", out: Path | None, csv: Path | None) -> None:
    from rich.console import Console
    from rich.table import Table

    test = study.test
    rates = f"test accuracy {test.accuracy:.1%}, depth undefined for {test.undefined_rate:.1%} of {len(test):,}"
    table = Table("probe", title=f"{study.subject.name}, k={study.found.k}", caption=rates)
    for heading in ("accuracy", "settled"):
        table.add_column(heading, justify="right")
    for row in study.probes:
        table.add_row(row["probe"], f"{row['accuracy']:.1%}", f"{row['settled']:.1%}")
    Console().print(table)
    for warning in study.warnings:
        print(f"warning: {warning}")
    if study.runs is not None:
        print(f"as training examples: {study.runs.train!r}\nheld out: {study.runs.heldout!r}")
        if study.runs.quadrants is not None:
            print(study.runs.quadrants)
    labels = study.labels
    print(f"{labels.ranking!r} of held-out examples; the most suspicious:")
    names = study.subject.test.identities
    for row in labels.rows(3):
        label, suggested = names[row["label"]], names[row["suggested"]]
        print(f"  {row['item']}: labelled {label} with probability {1 - row['score']:.2g}, suggested {suggested}")
    for what, path in (("page", out), ("depths", csv)):
        if path is not None:
            print(f"{what:8}  {path}")
