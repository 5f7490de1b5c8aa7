"""`likewise exits`: a classifier on disk -> heads on the way, thresholds with a guarantee, and a page about them."""

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from likewise.checks import require, require_package
from likewise.cli.terminal import Json, examples, own_network, progress_bar

if TYPE_CHECKING:
    from torch import nn

    from likewise.data import Halves, Preparation
    from likewise.exits import Splits
    from likewise.exits.study import ExitStudy, Plan
    from likewise.networks import Network
    from likewise.reports.facts import Facts

STOPPED = 130  # as a shell says of Ctrl-C
SELECTION, CALIBRATION, TEST = 0.2, 0.4, 0.4  # of the held-out half
EXITS_EXAMPLES = examples(
    "likewise exits classifier.safetensors digits --held-out 0.5 --risk 0.02 --smaller resnet8",
    "likewise exits model.safetensors fashion/ --risk 0.01 --heads 4 --joint --folder work --out exits.html",
    "likewise exits model.safetensors fashion/ --no-depth --save exits.safetensors --json",
    "likewise exits net.py:trained digits --risk 0.05",
)


class Model(NamedTuple):
    """A classifier. name: of one that can be built again, None for a user's own."""

    network: "nn.Module"
    preparation: "Preparation"
    classes: tuple[str, ...]
    name: str | None
    trained_on: str | None


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
    from likewise.exits import save_exits
    from likewise.exits.study import Plan, require_enough, study_exits
    from likewise.files import require_place, write_whole
    from likewise.reports import exits_json, exits_page, gather_facts

    require_package("exits", "jinja2")
    require_place("exits", out)
    require(save is None or save.parent.is_dir(), "exits", "--save", "be in a folder that exists", str(save))
    require(folder is None or folder.is_dir(), "exits", "--folder", "be a folder that exists", str(folder))
    facts = gather_facts(())
    found, halves, known = opened(model, data, held_out)
    plan = Plan(risk=risk, delta=delta, heads=heads, grid=grid, joint=joint, k=30 if depth else None, seed=seed)
    require_enough(plan, round(CALIBRATION * len(halves.test)))
    parts = deal(found, halves, seed=seed)
    plan = planned(plan, len(parts.train), steps, epochs)
    try:
        with progress_bar() as progress:
            study = study_exits(
                found.network,
                parts,
                plan=plan,
                smaller=untrained(smaller or [], found, seed=seed),
                folder=folder,
                progress=progress,
            )
    except KeyboardInterrupt:
        again = "; the same command goes on" if folder else ""
        print(f"likewise: stopped, nothing was written{again}", file=sys.stderr)
        raise typer.Exit(STOPPED) from None
    study = replace(study, notes=remarks(halves, trained_on=found.trained_on, known=known, facts=facts))
    title = f"{found.name or model} on {halves.train.title}"
    write_whole(out, exits_page(study, title=title, facts=facts))
    if save:
        options = {"channels": found.preparation.channels, "num_classes": len(found.classes)} if found.name else {}
        policy, preparation = study.controlled.policy, found.preparation
        save_exits(study.prepared.exits, save, name=found.name, options=options, policy=policy, preparation=preparation)
    if as_json:
        saved = str(save) if save else None
        print(json.dumps({"report": str(out), "exits": saved, **exits_json(study)}))
    else:
        show(study, out, save)


def opened(model: str, data: str, held_out: float) -> "tuple[Model, Halves, bool]":
    """The classifier, its training and held-out examples, and whether these are known to be its own."""
    from likewise.data import find_halves
    from likewise.networks import load_classifier

    if ".py:" in model:
        halves, known = find_halves(data, trained_on=None, held_out=held_out)
        network, preparation = own_network(model, "exits", halves.train)
        return Model(network.eval(), preparation, tuple(halves.train.identities), None, None), halves, known
    saved = load_classifier(model)
    halves, known = find_halves(data, trained_on=saved.trained_on, held_out=held_out)
    return Model(saved.network, saved.preparation, saved.classes, saved.name, saved.trained_on), halves, known


def deal(found: Model, halves: "Halves", *, seed: int) -> "Splits":
    """The training half to train, the other to selection, calibration and test; who is in both is not tested on."""
    from likewise.exits import Split, split_examples

    train, test = (Split.read(half.numbered_by(found.classes), found.preparation, role="train") for half in halves[:2])
    new = test.without(train)
    dealt = split_examples(new.inputs, new.labels, selection=SELECTION, calibration=CALIBRATION, test=TEST, seed=seed)
    return dealt._replace(train=train)


def planned(plan: "Plan", count: int, steps: int | None, epochs: float | None) -> "Plan":
    """The plan with its steps."""
    require(steps is None or epochs is None, "exits", "--epochs", "not be given with --steps", epochs)
    if epochs is not None:
        steps = max(1, round(epochs * count / min(plan.batch, count)))
    return plan if steps is None else replace(plan, steps=steps)


def untrained(names: list[str], found: Model, *, seed: int) -> "dict[str, Network]":
    """New networks for the same images and classes."""
    from likewise.networks import build_classifier

    channels, classes = found.preparation.channels, len(found.classes)
    return {name: build_classifier(name, channels=channels, num_classes=classes, seed=seed) for name in names}


def remarks(halves: "Halves", *, trained_on: str | None, known: bool, facts: "Facts") -> tuple[str, ...]:
    """What a reader must know of the data and of the machine."""
    notes = [f"Training and held-out examples: {halves.how}."]
    if facts.busy:
        shared = f"{facts.load:.1f} programs shared its {facts.cores} cores before the run"
        notes.append(f"The machine was busy: {shared}. Repeat it on a quiet machine before you trust the times.")
    if known:
        return tuple(notes)
    if trained_on is None:
        doubt = "The network does not say what it was trained on: if it saw held-out images"
    else:
        doubt = "The network was trained on other examples than this training half: if it saw held-out images"
    return *notes, f"{doubt}, accuracy is too high and the promise does not hold."


def show(study: "ExitStudy", out: Path, save: Path | None) -> None:
    """A table and the answer."""
    from likewise.text import seconds

    for note in study.notes:
        print(note)
    names = study.prepared.exits.names
    print(f"Heads behind {', '.join(names)}. {study.promise}")
    if study.prepared.settled is not None:
        unsure = [study.prepared.settled.groups[each.group] for each in study.controlled.groups if not each.certified]
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
