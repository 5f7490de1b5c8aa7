"""`likewise exits`: a classifier on disk -> heads on the way, thresholds with a guarantee, and a page about them."""

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from likewise.checks import require, require_package
from likewise.cli.terminal import Json, examples, progress_bar

if TYPE_CHECKING:
    from likewise.exits.study import ExitStudy
    from likewise.reports.facts import Facts

STOPPED = 130  # as a shell says of Ctrl-C
EXITS_EXAMPLES = examples(
    "likewise exits classifier.safetensors digits --held-out 0.5 --risk 0.02 --smaller resnet8",
    "likewise exits model.safetensors fashion/ --risk 0.01 --heads 4 --joint --folder work --out exits.html",
    "likewise exits model.safetensors fashion/ --no-depth --save exits.safetensors --json",
    "likewise exits net.py:trained digits --risk 0.05",
)


def exits(
    model: Annotated[
        str, typer.Argument(help="A classifier of `likewise train --objective classifier`, or file.py:function.")
    ],
    data: Annotated[str, typer.Argument(help='The data it was trained on: idx, CIFAR-10, a folder, or "digits".')],
    risk: Annotated[float, typer.Option(help="The share of answers that may differ from the whole network's.")] = 0.01,
    delta: Annotated[float, typer.Option(help="The chance, over calibration data, that the promise fails.")] = 0.05,
    heads: Annotated[int, typer.Option(min=1, help="How many heads, at most.")] = 3,
    grid: Annotated[int, typer.Option(min=1, help="A head sees the means of so many parts of an image each way.")] = 1,
    smaller: Annotated[
        list[str] | None, typer.Option(help="A smaller network to train and time beside it; repeat for more.")
    ] = None,
    steps: Annotated[int | None, typer.Option(min=1, help="Batches of training; 300 unless given.")] = None,
    epochs: Annotated[float | None, typer.Option(min=0, help="Instead of --steps: times through the data.")] = None,
    joint: Annotated[bool, typer.Option("--joint", help="Train the body with the heads.")] = False,
    depth: Annotated[bool, typer.Option(help="Place heads by prediction depth, or else evenly by cost.")] = True,
    held_out: Annotated[float, typer.Option(help="As in `train`: of data without a test half.")] = 0.2,
    folder: Annotated[
        Path | None, typer.Option(help="Where training is kept: the same command goes on after Ctrl-C.")
    ] = None,
    out: Annotated[Path, typer.Option(help="Where to write the page.")] = Path("exits.html"),
    save: Annotated[Path | None, typer.Option(help="Where to write network, heads and thresholds.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of all that is drawn.")] = 0,
    as_json: Json = False,
) -> None:
    """Give a classifier exits whose risk is controlled, and ask whether a smaller network would have done.

    The examples that were held out are dealt to selection, calibration and test; the page is written whole or not at
    all, and Ctrl-C leaves only what --folder keeps.
    """
    from likewise.exits.study import ExitJob, ExitPlan, run_exit_job
    from likewise.files import require_place, write_whole
    from likewise.reports.exits import exits_json, exits_page
    from likewise.reports.facts import gather_facts

    require_package("exits", "jinja2")
    require_place("exits", out)
    require(save is None or save.parent.is_dir(), "exits", "--save", "be in a folder that exists", str(save))
    require(folder is None or folder.is_dir(), "exits", "--folder", "be a folder that exists", str(folder))
    facts = gather_facts(())
    job = ExitJob(
        model=model,
        data=data,
        plan=ExitPlan(risk=risk, delta=delta, heads=heads, grid=grid, joint=joint, k=30 if depth else None, seed=seed),
        steps=steps,
        epochs=epochs,
        smaller=smaller or (),
        held_out=held_out,
        folder=folder,
        save=save,
    )
    try:
        with progress_bar() as progress:
            study = run_exit_job(job, progress=progress)
    except KeyboardInterrupt:
        again = "; the same command goes on" if folder else ""
        print(f"likewise: stopped, nothing was written{again}", file=sys.stderr)
        raise typer.Exit(STOPPED) from None
    if facts.busy:
        study = replace(study, notes=(*study.notes, busy(facts)))
    write_whole(out, exits_page(study, title=study.title, facts=facts))
    if as_json:
        saved = str(save) if save else None
        print(json.dumps({"report": str(out), "exits": saved, **exits_json(study)}))
    else:
        show(study, out, save)


def busy(facts: "Facts") -> str:
    """A note for times that were taken on a busy machine."""
    shared = f"{facts.load:.1f} programs shared its {facts.cores} cores before the run"
    return f"The machine was busy: {shared}. Repeat it on a quiet machine before you trust the times."


def show(study: "ExitStudy", out: Path, save: Path | None) -> None:
    """A table and the answer."""
    from likewise.text import seconds

    for note in study.notes:
        print(note)
    names = study.prepared.exits.names
    print(f"Heads behind {', '.join(names)}. {study.promise}")
    if study.prepared.depth_groups is not None:
        unsure = [
            study.prepared.depth_groups.groups[each.group] for each in study.controlled.groups if not each.certified
        ]
        print(f"Shown for all groups of difficulty but these: {', '.join(unsure) or 'none'}.")
    size = study.clock.sizes[-1]
    print(f"{'':>16}{'accuracy':>10}{'multiply-adds':>16}{f'time, batch {size}':>18}")
    for point in (*study.networks, *study.ladder):
        assert point.seconds is not None
        print(f"{point.name:>16}{point.accuracy:>10.2%}{point.macs:>16,.0f}{seconds(point.seconds):>18}")
    if study.idle:
        print(study.idle)
    for answer in study.answers:
        print(answer.text)
    print(f"The report is {out}")
    if save:
        print(f"Network, heads and thresholds are in {save}")
