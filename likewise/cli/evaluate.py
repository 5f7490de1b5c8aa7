"""`likewise evaluate`: a network and images that it has not seen -> how well it tells people apart."""

import json
import math
import os
import sys
import warnings
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from likewise.checks import require, require_package
from likewise.cli.terminal import Json, examples, progress_bar
from likewise.cli.train import STOPPED, interruptible
from likewise.text import aligned

if TYPE_CHECKING:
    from likewise.data import Examples
    from likewise.evaluation import Evaluation, Everyone, Listed, Table
    from likewise.networks import Saved

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
LISTS = (".txt", ".tsv")
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
    from likewise.evaluation import evaluate as judged
    from likewise.evaluation import robustness as shaken
    from likewise.evaluation import table3, table4
    from likewise.metric import FewImpostorsWarning
    from likewise.networks import load_network

    numbers = sorted({*(tables or ()), *([3] if beside else [])})
    require(set(numbers) <= {3, 4, 5, 6}, "evaluate", "--table", "be 3, 4, 5 or 6", ", ".join(map(str, numbers)))
    hint = "Name other networks with --beside."
    require(3 not in numbers or bool(beside), "evaluate", "--table", "not be 3 for one network", 3, hint)
    _require_page(out)
    saved = load_network(model)
    others = {path: load_network(path) for path in beside or ()}
    processes = min(2, os.cpu_count() or 1) if workers is None else workers
    found, made, some = None, [], None
    if not numbers or {3, 4} & set(numbers) or robustness:
        some, chosen = _subject(data, protocol, view, fold, folds, splits, split, seed)
        trained_on, doubts = _trained_on(model)
        network = saved.network, saved.preparation, some
        with progress_bar() as progress, warnings.catch_warnings(action="ignore", category=FewImpostorsWarning):
            found = judged(
                *network,
                protocol=chosen,
                far=far,
                mirror=mirror,
                clusters=clusters,
                worst=worst,
                workers=processes,
                trained_on=trained_on,
                progress=progress,
            )
            found = replace(found, warnings=(*doubts, *found.warnings))
            if 3 in numbers:
                known = {path: (each.network, each.preparation) for path, each in {model: saved, **others}.items()}
                names = {_network_name(path, some): pair for path, pair in known.items()}
                options = {"far": found.rates.far, "mirror": mirror, "workers": processes, "progress": progress}
                made.append(table3(names, some, protocol=chosen, **options))
            for wanted, sweep in ((4 in numbers, table4), (robustness, shaken)):
                if wanted:
                    rate = found.rates.far
                    made.append(
                        sweep(*network, protocol=chosen, far=rate, mirror=mirror, workers=processes, progress=progress)
                    )
    for number in numbers:
        if number > 4 and all(each.finished for each in made):
            made.append(_trained(number, model, data, far, splits, runs, steps, held_out, seed, processes))
    _show(found, made, some, saved, model, data, out, as_json)
    if not all(each.finished for each in made):
        raise typer.Exit(STOPPED)


def _require_page(out: Path | None) -> None:
    if out is not None:
        from likewise.files import require_place

        require_package("evaluate --out", "jinja2")
        require_place("evaluate --out", out)


def _subject(
    data: str,
    protocol: ProtocolName | None,
    view: int,
    fold: int | None,
    folds: int | None,
    splits: int,
    split: Literal["train", "test"],
    seed: int,
) -> "tuple[Examples, Listed | Everyone]":
    """The images, and which pairs of them are judged."""
    from likewise.data import is_lfw, lfw_protocol, open_examples, read_pairs
    from likewise.evaluation import Everyone, lfw_pairs, own_pairs

    place = Path(data)
    lfw = place.exists() and (place.suffix == ".tar" or (place.is_dir() and is_lfw(place)))
    listed = place.is_file() and place.suffix in LISTS
    protocol = protocol or ("lfw" if lfw else "pairs" if listed else "folders")
    for option, value, owner in (("--fold", fold, "lfw"), ("--folds", folds, "pairs")):
        require(value is None or protocol == owner, "evaluate", option, f"be for --protocol {owner}", value)
    if protocol == "pairs":
        found = read_pairs(data)
        return found.examples, own_pairs(found, folds=folds)
    some = open_examples(data, split=split)
    if protocol == "folders":
        return some, Everyone(splits, seed)
    require(lfw, "evaluate", "--protocol", "not be lfw for data that is not LFW", repr(data))
    return some, lfw_pairs(some, lfw_protocol(data), view=1 if view == 1 else 2, fold=fold)


def _trained(
    number: int,
    model: Path,
    data: str,
    far: float | None,
    splits: int,
    runs: Path | None,
    steps: int | None,
    share: float,
    seed: int,
    workers: int,
) -> "Table":
    """Table 5 or 6: networks like MODEL, trained on some people of the data and judged by others."""
    from likewise.data import is_lfw, lfw_protocol, open_examples
    from likewise.evaluation import Everyone, held_out, plan_of, table5, table6
    from likewise.training import beside

    plan = plan_of(model)
    plan = plan if steps is None else replace(plan, steps=steps)
    some = open_examples(data)
    if Path(data).exists() and is_lfw(Path(data)):
        lists = lfw_protocol(data)
        train, test = some.of(lists.train_people), some.of(lists.test_people)
    else:
        train, test = held_out(some, share, seed=seed)
    folder = beside(model, "runs") if runs is None else runs
    with progress_bar() as progress, interruptible() as interrupted:

        def watch(done: float, doing: str) -> bool:
            progress(done, doing)
            return interrupted()

        make = table5 if number == 5 else table6
        protocol = Everyone(splits, seed)
        return make(train, test, plan, folder, protocol=protocol, far=far, workers=workers, watch=watch)


def _trained_on(model: Path) -> tuple[str | None, tuple[str, ...]]:
    """The fingerprint of a network's training images, from the checkpoint beside it; or why it is not known."""
    from likewise.training import beside, checkpoint_settings

    file = beside(model, "checkpoint")
    if not file.is_file():
        return None, ()
    try:
        return checkpoint_settings(file).get("data"), ()
    except (ValueError, OSError) as error:
        return None, (f"Whether the network was trained on these images is not known. {error}",)


def _network_name(model: Path, some: "Examples") -> str:
    """How Table 3 calls a network."""
    seen = _trained_on(model)[0] == some.fingerprint
    return f"{model.name}, trained on these images" if seen else model.name


def _show(
    found: "Evaluation | None",
    tables: "list[Table]",
    some: "Examples | None",
    saved: "Saved",
    model: Path,
    data: str,
    out: Path | None,
    as_json: bool,
) -> None:
    if out is not None:
        from likewise.files import write_whole
        from likewise.reports import evaluation_page, gather_facts

        about = [("network", f"{saved.name}, {saved.hash[:12]}"), ("", gather_facts(()).day)]
        title = f"{model.name} on {some.title if some else Path(data).name}"
        write_whole(out, evaluation_page(found, some, title=title, tables=tables, about=about))
    if as_json:
        result: dict[str, Any] = {"network": str(model), "hash": saved.hash, **(found.to_json() if found else {})}
        result["tables"] = [table.to_json() for table in tables]
        print(json.dumps({**result, "report": None if out is None else str(out)}, allow_nan=False))
        for warning in found.warnings if found else ():
            print(f"likewise: {warning}", file=sys.stderr)
        return
    if found is not None:
        print(_text(found))
    for table in tables:
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
