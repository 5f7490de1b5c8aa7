"""Early exit of a ResNet-20 on Fashion-MNIST, beside smaller networks: accuracy, the clock, and the promise kept.

Run it as `python -m studies.early_exit`, with Debian's dataset-fashion-mnist installed or LIKEWISE_FASHION_MNIST naming
a folder of its idx files. Networks are trained first, each by the same recipe, and stay in a folder: it goes on where
it was stopped. `--train` only trains; without it everything is measured at the end, on a machine that should do nothing
else. The test images are dealt to selection, calibration and test; no network sees any of them.
"""

import json
import math
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import torch
import typer
from rich.console import Console

from likewise.difficulty import rank_correlation
from likewise.exits import (
    EarlyExit,
    Loss,
    MaxProbability,
    clocked,
    control_risk,
    evaluate_exits,
    fit_temperatures,
    load_exits,
    matched_path,
    observe,
    save_exits,
    split_examples,
    train_exits,
)
from likewise.exits.evaluating import exit_costs
from likewise.exits.observing import LOSSES, Observed
from likewise.exits.splits import Split, Splits
from likewise.exits.study import DepthGroups, ExitPlan, Prepared, accuracy, group_by_depth, measure_exits, place_heads
from likewise.files import write_whole
from likewise.networks import Network
from likewise.training import Cosine
from studies.classifiers import (
    CLASSES,
    FASHION,
    Moved,
    Pictures,
    Recipe,
    Say,
    fashion,
    halved,
    kept,
    told,
    trained,
)
from studies.lfw import filled

ROOT = Path(__file__).parents[1]
RESULTS, WORK, PAGE = ROOT / "studies/results", ROOT / "studies/trained", ROOT / "docs/exits.md"
MARKS = "<!-- fashion: begin -->", "<!-- fashion: end -->"
RECIPE, HEADS = Recipe(epochs=8), Recipe(epochs=6)
WHOLE, SMALLER = "resnet20", ("resnet8", "resnet14")
PLAN = ExitPlan(risk=0.01, delta=0.05, heads=5, grid=4, repeats=5)
TIMED = 1024  # test images on the clock of three
LOST = 0.005  # of accuracy, at most
SPLITS, CALIBRATION = 200, 2000
ALONE, NEVER, LOSING = f"{WHOLE} alone", "exits, nobody leaves", "exits, at most half a point lost"


class Seen(NamedTuple):
    """What every head says of the examples that no network was trained on."""

    selection: Observed
    calibration: Observed
    test: Observed

    @property
    def pool(self) -> Observed:
        """Calibration and test data together, to be dealt anew."""
        _, one, two = self
        scores, logits = torch.cat([one.scores, two.scores], 1), torch.cat([one.logits, two.logits], 1)
        return replace(one, labels=torch.cat([one.labels, two.labels]), scores=scores, logits=logits)


@dataclass(frozen=True)
class Kept:
    """How often the promise was broken, over so many draws of calibration data.

    fresh: on the examples that were not drawn, whose mean is itself a draw. drawn: calibration data drawn with
    replacement, so that the mean over all examples is the true risk. slack: breaks that a chance of delta gives, at
    most, in 99 of 100 such studies. mean_risk: the true risk, on average.
    """

    loss: Loss
    risk: float
    delta: float
    splits: int
    fresh: int
    drawn: int
    slack: int
    mean_risk: float


def dealt(train: Pictures, test: Pictures) -> Splits:
    """The training images to train; of the others a fifth to selection and two fifths each to calibration and test."""
    known = Split(train.inputs, train.labels, "train")
    new = Split(test.inputs, test.labels, "train").without(known)
    parts = split_examples(new.inputs, new.labels, selection=0.2, calibration=0.4, test=0.4, seed=0)
    return parts._replace(train=known)


def with_heads(exits: EarlyExit, pictures: Pictures, recipe: Recipe, *, folder: Path, say: Say) -> EarlyExit:
    """The network as it was, and trained heads; or read."""
    stem = f"fashion-{WHOLE}-exits-{'-'.join(exits.names)}-{recipe.epochs}-{recipe.seed}"
    done = folder / f"{stem}.safetensors"
    if not done.is_file():
        steps = recipe.steps(len(pictures))
        with halved():
            train_exits(
                exits,
                Moved(pictures, recipe.batch, recipe.seed),
                steps=steps,
                schedule=Cosine(peak=PLAN.rate),
                keep=kept(folder, stem, WHOLE, recipe),
                resume=True,
                seed=recipe.seed,
                watch=told(say, stem, steps),
            )
        options = {"channels": pictures.preparation.channels, "num_classes": CLASSES}
        save_exits(exits, done, name=WHOLE, options=options, preparation=pictures.preparation)
    return load_exits(done).exits


def prepared(parts: Splits, networks: dict[str, Network], exits: EarlyExit, depth_groups: DepthGroups) -> Prepared:
    """All that was trained, as the report of `likewise exits` takes it."""
    exits.ledger.take("early_exit", parts.train, roles=("train",))
    alone = accuracy(networks[WHOLE], parts.test.inputs, parts.test.labels)
    smaller = {name: networks[name] for name in SMALLER} | {f"{WHOLE} alone": networks[WHOLE]}
    temperatures = fit_temperatures(exits, parts.selection)
    return Prepared(exits, exit_costs(exits, parts.test.inputs), temperatures, depth_groups, None, alone, smaller)


def checked(exits: EarlyExit, seen: Seen, *, loss: Loss, risk: float, splits: int = SPLITS) -> Kept:
    """Deal calibration and test data anew, so many times, and count where the risk is above what was promised."""
    pool, path = seen.pool, matched_path(seen.selection)
    chance = torch.Generator().manual_seed(0)
    fresh, drawn = [], []
    for _ in range(splits):
        order = torch.randperm(len(pool), generator=chance)
        again = torch.randint(len(pool), (CALIBRATION,), generator=chance)
        for risks, some, rest in ((fresh, order[:CALIBRATION], order[CALIBRATION:]), (drawn, again, order)):
            found = control_risk(exits, pool.take(some), risk=risk, delta=PLAN.delta, path=path, loss=loss)
            others = pool.take(rest)
            risks.append(LOSSES[loss][0](others, found.policy.exits(others.scores)).mean().item())
    broken = [sum(each > risk for each in risks) for risks in (fresh, drawn)]
    return Kept(loss, risk, PLAN.delta, splits, *broken, most_breaks(splits, PLAN.delta), sum(drawn) / splits)


def most_breaks(splits: int, delta: float, certainty: float = 0.99) -> int:
    """The least number m with P[Bin(splits, delta) <= m] >= certainty.

    >>> most_breaks(200, 0.05)
    18
    """
    below = 0.0
    for broken in range(splits + 1):
        below += math.comb(splits, broken) * delta**broken * (1 - delta) ** (splits - broken)
        if below >= certainty:
            return broken
    return splits


def measured(
    parts: Splits, networks: dict[str, Network], exits: EarlyExit, depth_groups: DepthGroups, say: Say
) -> dict[str, Any]:
    """Everything that is said of calibration and test data, as JSON has it."""
    ready = prepared(parts, networks, exits, depth_groups)
    study = measure_exits(ready, parts, plan=PLAN, progress=lambda done, what: say(what))
    seen = Seen(*(observe(exits, some, criterion=MaxProbability()) for some in parts[1:]))
    path = matched_path(seen.selection)
    gap = control_risk(exits, seen.calibration, risk=LOST, delta=PLAN.delta, path=path, loss="accuracy gap")
    gained = evaluate_exits(seen.test, policy=gap.policy, costs=ready.costs)
    contestants = {
        ALONE: networks[WHOLE],
        NEVER: lambda x: exits.run(x, policy=exits.never),
        LOSING: lambda x: exits.run(x, policy=gap.policy),
    }
    clock = clocked(contestants, parts.test.inputs[:TIMED], sizes=(1, *PLAN.sizes), repeats=PLAN.repeats)
    depths = depth_groups.test.depth
    return {
        "counts": list(study.counts),
        "heads": list(exits.names),
        "networks": [asdict(point) for point in study.networks],
        "ladder": [asdict(point) for point in study.ladder],
        "alone": ready.alone,
        "losing": {
            "accuracy": gained.accuracy,
            "full_accuracy": gained.full_accuracy,
            "disagreement": gained.disagreement,
            "shares": list(gained.shares),
            "macs": gained.macs,
            "full_macs": gained.full_macs,
        },
        "clock": asdict(clock),
        "kept": [
            asdict(checked(exits, seen, loss="disagreement", risk=PLAN.risk)),
            asdict(checked(exits, seen, loss="disagreement", risk=0.05)),
        ],
        "depth": {
            "layers": list(depth_groups.layers),
            "support": depth_groups.support,
            "counts": depth_groups.test.counts.tolist(),
            "accuracy": rank_correlation(
                (depth_groups.test.predicted == depth_groups.test.labels).double(), depths.double()
            ),
        },
        "answers": [answer.text for answer in study.answers],
    }


def render(found: dict[str, Any]) -> str:
    """The part of the page that holds numbers."""
    points = [*found["networks"], *found["ladder"]]
    lines = [
        _set_up(found),
        "",
        "| | accuracy | multiply-adds | microseconds an image, batch 256 |",
        "| --- | ---: | ---: | ---: |",
        *(f"| {_called(each)} | {each['accuracy']:.2%} | {each['macs']:,.0f} | {_time(each)} |" for each in points),
        "",
        _half_a_point(found),
        "",
        *map(_promise, found["kept"]),
        "",
        *(line for answer in found["answers"] for line in (answer, "")),
        _by_depth(found["depth"]),
    ]
    return "\n".join(lines)


def _set_up(found: dict[str, Any]) -> str:
    train, selection, calibration, test = found["counts"]
    return (
        f"A ResNet-20, {' and '.join(SMALLER)} were trained by one recipe: {found['recipe']['epochs']} epochs of "
        f"Fashion-MNIST's {train:,} training images, moved and mirrored, with products in bfloat16. The ResNet-20 "
        f"stays bit for bit what it was; it was given heads behind {', '.join(found['heads'])}, where prediction "
        f"depth suggests them. Each sees the means of {PLAN.grid} x {PLAN.grid} parts of an image, and learned for "
        f"{HEADS.epochs} epochs. Of the test images {selection:,} served selection, {calibration:,} calibration and "
        f"{test:,} the test, where one standard error of an accuracy is {100 * _error(found):.1f} points. Times are "
        f"the least of {PLAN.repeats} turns, on {found['clock']['threads']} threads. That the heads see a grid "
        f"and are as many as they are was settled after a look at numbers like these; no threshold was."
    )


def _half_a_point(found: dict[str, Any]) -> str:
    losing, clock = found["losing"], found["clock"]
    alone, never, leaving = clock["best"]
    rows = list(zip(clock["sizes"], alone, never, leaving, strict=True))
    faster = ", ".join(f"{one / left:.2f}x at batch {size}" for size, one, _, left in rows)
    idle = ", ".join(f"{none / one:.3f}x at batch {size}" for size, one, none, _ in rows)
    return (
        f"**At most half a point lost** (accuracy gap at most {LOST:g} with certainty {1 - PLAN.delta:.0%}, chosen on "
        f"calibration data): {losing['accuracy']:.2%} right on test data, where the whole network has "
        f"{losing['full_accuracy']:.2%} and {WHOLE} alone {found['alone']:.2%}, with "
        f"{losing['full_macs'] / losing['macs']:.2f}x fewer multiply-adds. On one clock it is faster than {WHOLE} "
        f"alone by {faster}; the network with exits that nobody takes needs {idle} of the time of {WHOLE} alone."
    )


def _by_depth(depth: dict[str, Any]) -> str:
    value, low, high, count = depth["accuracy"]
    return (
        "Accuracy falls with prediction depth: Spearman's correlation of being right with depth is "
        f"{value:.3f} ({low:.3f} to {high:.3f}) over {count:,} test images, compared with {depth['support']:,} of the "
        "training images (one network)."
    )


def _error(found: dict[str, Any]) -> float:
    return (found["alone"] * (1 - found["alone"]) / found["counts"][3]) ** 0.5


def _called(point: dict[str, Any]) -> str:
    return f"exits, {point['name']}" if point["name"].startswith("risk") else point["name"]


def _time(point: dict[str, Any]) -> str:
    return f"{1e6 * point['seconds']:.0f}"


def _promise(kept: dict[str, Any]) -> str:
    return (
        f"* Promise of {kept['loss']} at most {kept['risk']:.0%}, from {CALIBRATION:,} calibration examples, drawn "
        f"{kept['splits']} times: the true risk was above in {kept['drawn']} draws, and that of examples not drawn in "
        f"{kept['fresh']}; {kept['slack']} would be within chance at delta {kept['delta']:g}. Mean risk "
        f"{kept['mean_risk']:.2%}."
    )


def main(
    only_train: Annotated[bool, typer.Option("--train", help="Only train what is not there yet.")] = False,
    only_render: Annotated[bool, typer.Option("--render", help="Only write the page from numbers there are.")] = False,
    only: Annotated[list[str] | None, typer.Option(help="With --train: only this network; may be repeated.")] = None,
    epochs: Annotated[int, typer.Option(min=1, help="Fewer, to see that it works; needs --out.")] = RECIPE.epochs,
    folder: Annotated[Path, typer.Option(help="Where trained networks are kept.")] = WORK,
    out: Annotated[Path, typer.Option(help="Folder for the numbers.")] = RESULTS,
    threads: Annotated[int, typer.Option(min=1, help="Threads of this process.")] = 2,
) -> None:
    """Train what is not there yet, measure, and write the page."""
    console = Console(stderr=True)
    if epochs != RECIPE.epochs and out == RESULTS:
        raise typer.BadParameter("--epochs must have an --out of its own; got none.")
    if not only_render:
        if not FASHION.is_dir():
            console.print("Skipped: neither Debian's dataset-fashion-mnist nor LIKEWISE_FASHION_MNIST is there.")
            return
        torch.set_num_threads(threads)
        say = partial(console.print, highlight=False, markup=False)
        train, test = fashion()
        recipe = replace(RECIPE, epochs=epochs)
        names = tuple(only or (WHOLE, *SMALLER))
        networks = {name: trained(name, "fashion", train, recipe, folder=folder, say=say) for name in names}
        if only_train and WHOLE not in names:
            return
        parts = dealt(train, test)
        depth_groups = group_by_depth(networks[WHOLE], parts, plan=PLAN, progress=lambda done, what: None)
        exits, _ = place_heads(networks[WHOLE], parts.train.inputs[:2], depth_groups, plan=PLAN)
        exits = with_heads(exits, train, min(recipe, HEADS, key=lambda each: each.epochs), folder=folder, say=say)
        if only_train:
            return
        found = {"recipe": asdict(recipe), **measured(parts, networks, exits, depth_groups, say)}
        out.mkdir(parents=True, exist_ok=True)
        write_whole(out / "early_exit.json", json.dumps(found, indent=1) + "\n")
    if not (out / "early_exit.json").is_file():
        console.print("No numbers are there yet: no page.")
        return
    found = json.loads((out / "early_exit.json").read_text(encoding="utf-8"))
    if out == RESULTS:
        write_whole(PAGE, filled(PAGE.read_text(encoding="utf-8"), render(found), marks=MARKS))
    console.print(render(found), soft_wrap=True, highlight=False, markup=False)


if __name__ == "__main__":
    typer.run(main)
