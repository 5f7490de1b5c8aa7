"""`likewise evaluate`: a network and images that it has not seen -> how well it tells people apart."""

import json
import math
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from likewise.checks import require_package
from likewise.cli.terminal import Json, examples, progress_bar, small_images
from likewise.cli.train import STOPPED, interruptible
from likewise.text import aligned

if TYPE_CHECKING:
    from likewise.evaluation import Table
    from likewise.evaluation.jobs import EvaluationResult
    from likewise.evaluation.results import Evaluation

EVALUATE_EXAMPLES = examples(
    "likewise evaluate model.safetensors faces/",
    "likewise evaluate model.safetensors lfw.tar --view 1 --mirror --out report.html",
    "likewise evaluate fold3.safetensors lfw.tar --fold 3 --json",
    "likewise evaluate model.safetensors my/pairs.tsv --protocol pairs --far 0.01",
    "likewise evaluate model.safetensors faces/ --table 4 --robustness --out report.html",
    "likewise evaluate model.safetensors faces/ --table 5 --steps 500",
    "likewise evaluate nns2.safetensors faces/ --table 3 --beside nn4.safetensors --beside nns1.safetensors",
)

SHOWN = 3  # worst pairs of each kind; all of them are in the report and in the JSON
ProtocolName = Literal["lfw", "pairs", "folders"]


def evaluate(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A network that likewise train wrote.")],
    data: Annotated[
        str,
        typer.Argument(metavar="DATA", help="Folder of identities, LFW, idx, CIFAR-10, digits, a list of pairs."),
    ],
    protocol: Annotated[
        ProtocolName | None, typer.Option(help="LFW's pairs, a list of your own, or all pairs; by DATA unless given.")
    ] = None,
    far: Annotated[
        float | None, typer.Option(help="False accepts to allow; 0.001, or 0.01 or 0.1 if there are few pairs.")
    ] = None,
    view: Annotated[int, typer.Option(min=1, max=2, help="Of LFW: 2 for a result, 1 for all choices before.")] = 2,
    fold: Annotated[
        int | None, typer.Option(min=1, help="Of LFW: one fold, for a network trained on the other nine.")
    ] = None,
    folds: Annotated[int | None, typer.Option(min=1, help="Of a list of pairs that has none.")] = None,
    splits: Annotated[int, typer.Option(min=1, help="Of identities, for the error of VAL over all pairs.")] = 5,
    split: Annotated[Literal["train", "test"], typer.Option(help="Of idx and CIFAR-10.")] = "test",
    mirror: Annotated[bool, typer.Option("--mirror", help="Average each image with its mirror image.")] = False,
    clusters: Annotated[bool, typer.Option("--clusters", help="Find the people without names, and score it.")] = False,
    worst: Annotated[int, typer.Option(min=0, help="Worst pairs of each kind.")] = 12,
    tables: Annotated[
        list[int] | None,
        typer.Option(
            "--table", help="Of the paper: 3 networks, 4 quality of images; 5 width, 6 amount of data: these train."
        ),
    ] = None,
    beside: Annotated[
        list[Path] | None, typer.Option(metavar="MODEL", help="Of Table 3: another network; may be repeated.")
    ] = None,
    robustness: Annotated[bool, typer.Option("--robustness", help="Covered, lit, moved and turned images.")] = False,
    runs: Annotated[Path | None, typer.Option(help="Folder of Tables 5 and 6; MODEL.runs unless given.")] = None,
    steps: Annotated[int | None, typer.Option(min=1, help="Of Tables 5 and 6; as MODEL unless given.")] = None,
    held_out: Annotated[float, typer.Option(help="Share of identities that Tables 5 and 6 keep to judge by.")] = 0.2,
    seed: Annotated[int, typer.Option(min=0, help="Of splits and of what is held out.")] = 0,
    workers: Annotated[int | None, typer.Option(min=0, help="Processes that read images.")] = None,
    out: Annotated[Path | None, typer.Option(metavar="PAGE", help="Write a report, one HTML file.")] = None,
    as_json: Json = False,
) -> None:
    """Say how well a network tells people apart: accuracy, VAL at a FAR with errors, the threshold, the worst pairs.

    A list of pairs has lines of two image paths, relative to it, and 1 (same) or 0, separated by tabs. Tables 5 and 6
    train one network for each row by the plan of MODEL's checkpoint, on identities of DATA that are not held out (of
    LFW: View 1); Ctrl-C stops them and the same command goes on.
    """
    from likewise.evaluation import EvaluationJob, run_evaluation_job

    job = EvaluationJob(
        model=model,
        data=data,
        protocol=protocol,
        split=split,
        view=1 if view == 1 else 2,
        fold=fold,
        folds=folds,
        splits=splits,
        far=far,
        mirror=mirror,
        clusters=clusters,
        worst=worst,
        tables=tables or (),
        others=beside or (),
        robustness=robustness,
        runs=runs,
        steps=steps,
        held_out=held_out,
        seed=seed,
        workers=workers,
    )
    _require_page(out)
    with progress_bar() as progress, interruptible() if job.trains else nullcontext() as interrupted:
        result = run_evaluation_job(job, progress=progress, interrupted=interrupted)
    _show(result, out, as_json)
    if not result.finished:
        raise typer.Exit(STOPPED)


def small_evaluation(options: dict[str, Any]) -> bool:
    """Whether images stay small, as in training: those of the paper's networks are enlarged to their size."""
    if not small_images(options):
        return False
    from likewise.networks.weights import name_in_file

    return (name_in_file(options["model"]) or "").startswith("resnet")


def _require_page(out: Path | None) -> None:
    if out is not None:
        from likewise.files import require_place

        require_package("evaluate --out", "jinja2")
        require_place("evaluate --out", out)


def _show(result: "EvaluationResult", out: Path | None, as_json: bool) -> None:
    found = result.evaluation
    if out is not None:
        from likewise.files import write_whole
        from likewise.reports.evaluation import evaluation_page
        from likewise.reports.facts import gather_facts

        about = [("network", f"{result.saved.name}, {result.saved.hash[:12]}"), ("", gather_facts(()).day)]
        page = evaluation_page(found, result.examples, title=result.title, tables=result.tables, about=about)
        write_whole(out, page)
    if as_json:
        print(json.dumps({**result.to_json(), "report": None if out is None else str(out)}, allow_nan=False))
        for warning in result.warnings:
            print(f"likewise: {warning}", file=sys.stderr)
        return
    if found is not None:
        print(_text(found))
    for table in result.tables:
        print(f"\n{_table_text(table)}")
    if out is not None:
        print(f"\nThe report is {out}")


def _text(found: "Evaluation") -> str:
    rates, small, span, sure = found.rates, found.templates, found.interval, found.independent
    mirror = ", each with its mirror image" if found.mirror else ""
    lines = [
        ["accuracy", _share(rates.accuracy, rates.accuracy_error), f"threshold {rates.accuracy_threshold:.4f}"],
        [f"VAL at FAR {rates.far:g}", _share(rates.val, rates.val_error), "each fold or split by its own threshold"],
        ["  of all pairs", _share(rates.val_whole), f"threshold {rates.threshold:.4f}"],
        ["  wrongly accepted", f"{sure.accepted:,}", f"of {sure.impostors:,} different pairs"],
        [f"  in {small.bytes} bytes", _share(small.rates.val, small.rates.val_error), f"{100 * small.loss:.2f} lost"],
        ["largest threshold", f"{rates.limit:.4f}", f"that keeps FAR {rates.far:g} here"],
        ["  it, 95 %", f"{span.low:.4f} to {span.high:.4f}", f"{span.identities:,} identities drawn anew"],
        ["  its FAR, 95 %", f"{span.far_low:.2g} to {span.far_high:.2g}", f"{rates.different:,} different pairs"],
        ["area under ROC", f"{found.roc.area:.4f}", f"{rates.same:,} same pairs"],
    ]
    if found.clusters is not None:
        score = found.clusters
        text = f"precision {score.bcubed_precision:.3f}, recall {score.bcubed_recall:.3f} (B-cubed)"
        lines.append(["clusters", f"{score.clusters:,} of {score.identities:,} people", text])
    head = f"{found.data}, {found.protocol}: {found.images:,} images of {found.identities:,} identities{mirror}"
    worst = [
        f"  {pair.distance:.4f}  {pair.first}  {pair.second}"
        for kind in (found.worst_same, found.worst_different)
        for pair in kind[:SHOWN]
    ]
    pairs = f", with {found.left_out:,} listed pairs" if found.left_out else ""  # of all pairs they are not counted
    missing = [f"left out: {len(found.skipped):,} unreadable{pairs}"] if found.skipped else []
    note = "thresholds and distances are squared Euclidean distances; +- is a standard error"
    shown = ["", f"worst same pairs, then different ones ({SHOWN} each)", *worst] if worst else []
    doubts = [f"warning: {text}" for text in found.warnings]
    return "\n".join([head, *doubts, aligned(lines), note, *missing, *shown])


def _table_text(table: "Table") -> str:
    kept = any(math.isfinite(row.val_kept) for row in table.rows)  # a table that trains keeps no threshold
    rows = [["", f"VAL at FAR {table.far:g}", "accuracy", "threshold", *(["VAL, kept", "FAR, kept"] * kept), ""]]
    for row in table.rows:
        name = row.group if row.group == "unchanged" else f"{row.group} {row.amount}"
        rates = [_share(row.val, row.val_error), _share(row.accuracy, row.accuracy_error), f"{row.threshold:.4f}"]
        rows.append([name, *rates, *([_share(row.val_kept), f"{row.far_kept:.2g}"] * kept), row.note])
    end = "" if table.finished else "\nStopped; the same command goes on."
    return f"{table.title}\n{table.text} {table.protocol}.\n{aligned(rows)}{end}"


def _share(value: float, error: float = math.nan) -> str:
    return f"{100 * value:.2f} %" if math.isnan(error) else f"{100 * value:.2f} +- {100 * error:.2f} %"
