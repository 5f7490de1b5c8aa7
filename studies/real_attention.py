"""Softmax replaced in trained networks, at length: numbers, a picture, and the page that shows them.

Run it as `python studies/real_attention.py` (minutes), or with `--render` to write the page anew from numbers that are
there. Everything is written at the end and at once, so that an interrupted run leaves all files as they were.
"""

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.progress import Progress

from likewise.checks import require
from likewise.files import write_whole
from likewise.reports.facts import Facts, gather_facts
from likewise.text import percent, short
from likewise.tour.combinations import BASELINE, MEAN, NOTHING, WIDEST
from likewise.tour.learning import Recipe
from likewise.tour.real_attention import (
    HALF,
    LOSS,
    STUDY,
    Outcome,
    RealAttention,
    Subject,
    measure_real_attention,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "studies/results"
PAGE = ROOT / "docs/real_attention.md"
BEGIN, END = "<!-- real attention: begin -->", "<!-- real attention: end -->"

UNTESTED = (
    "**So this text does not put the maps to the test:** the network loses no more when the far positions are left out "
    "altogether."
)

QUICK = replace(
    STUDY,
    text=Recipe(num_layers=2, num_heads=2, dim=32, steps=5, batch=2, rate=1e-3),
    images=Recipe(num_layers=1, num_heads=2, dim=32, steps=5, batch=8, rate=1e-3),
    context=160,
    sequences=2,
    held_out=20,
    draws=1,
)


def to_json(result: RealAttention, facts: Facts) -> str:
    """The numbers and where they were made."""
    return json.dumps({"facts": asdict(facts), "result": asdict(result)}, indent=1) + "\n"


def from_json(text: str) -> tuple[RealAttention, Facts]:
    """What `to_json` wrote."""
    saved: dict[str, Any] = json.loads(text)
    facts: dict[str, Any] = {**saved["facts"], "versions": tuple(map(tuple, saved["facts"]["versions"]))}
    result = saved["result"]
    networks = _subject(result["text"]), _subject(result["images"])
    return RealAttention(*networks, result["files"], result["seed"]), Facts(**facts)


def _subject(saved: dict[str, Any]) -> Subject:
    outcomes = tuple(
        Outcome(each["map"], each["width"], each["within"], tuple(each["errors"]), each["score"])
        for each in saved["outcomes"]
    )
    lists = {name: tuple(saved.get(name, ())) for name in ("logit_sds", "advice")}
    fields: dict[str, Any] = {**saved, **lists, "outcomes": outcomes}
    return Subject(**fields)


def render(result: RealAttention, facts: Facts) -> str:
    """The part of the page that holds numbers."""
    lines = [_made(result, facts), "", *_aims(result)]
    for subject in result.subjects:
        lines += ["", *_table(subject)]
    return "\n".join(lines)


def _made(result: RealAttention, facts: Facts) -> str:
    networks = " and ".join(
        f"{each.title} ({each.layers} layers of {each.heads} heads of width {each.key_dim}, {each.length} positions, "
        f"{each.training_seconds:.0f} s of training, logit sd {short(min(each.logit_sds))} to "
        f"{short(max(each.logit_sds))})"
        for each in result.subjects
    )
    versions = ", ".join(f"{name} {version}" for name, version in facts.versions)
    return f"Made on {facts.day}, {facts.cores} cores, seed {result.seed}, with {versions}: {networks}."


def _aims(result: RealAttention) -> list[str]:
    halves = "; ".join(
        f"in {each.title} {each.best.name} has {short(each.ratio(each.best))} of it, at most half on "
        f"{sum(ratio <= HALF for ratio in each.head_ratios(each.best))} of {len(each.best.errors)} heads, and the best "
        f"map alone, {each.alone.name}, has {short(each.ratio(each.alone))}"
        for each in result.subjects
    )
    worst, text = result.worst_near, result.text
    tested = "" if result.far_matters else f" {UNTESTED}"
    left_out = percent(text.loss(result.nothing_beyond))
    best = text.best
    window = text.of(NOTHING, 0, best.within)
    beside = ""
    if window:
        part = short(window.error / text.baseline(best).error)
        beside = f" In {text.title} exact weights within {best.within} and nothing beyond already have {part}."
    return [
        f"- **{_reached(result.half_reached)}**: at most half of FAVOR+'s squared error at the same width, up to "
        f"{WIDEST} features, as a mean over heads: {halves}.{beside}",
        f"- **{_reached(result.loss_reached)}**: with exact weights within {worst.within} positions every positive map "
        f"keeps the bits per byte within {percent(LOSS)} of softmax's. The worst, {worst.name}, costs "
        f"{percent(text.loss(worst))}; exact weights near by and nothing beyond cost {left_out}.{tested}",
    ]


def _reached(holds: bool) -> str:
    return "Reached" if holds else "Missed"


def _table(subject: Subject) -> list[str]:
    """One row for each map and width; for each reach of exact weights a score and an error."""
    reaches = [f"exact within {within}" if within else "no exact weights" for within in subject.withins]
    columns = [f"{reach}: {what}" for reach in reaches for what in (subject.scored, "error")]
    rows = [["softmax", "", _score(subject, subject.softmax), "0", *[""] * (len(columns) - 2)]]
    for name, width in subject.rows:
        cells = [subject.of(name, width, within) for within in subject.withins]
        pairs = [(_score(subject, each.score), short(each.error)) if each else ("", "") for each in cells]
        rows.append([name, str(width or ""), *[cell for pair in pairs for cell in pair]])
    head = ["in softmax's place", "F", *columns]
    start = subject.title[0].upper() + subject.title[1:]
    note = "" if subject.more_is_better else ", less is better"
    return [
        f"{start}, all layers replaced: {subject.scored} on held-out data{note}; error is the mean over heads.",
        "",
        f"| {' | '.join(head)} |",
        f"|---|{'---:|' * (len(head) - 1)}",
        *[f"| {' | '.join(row)} |" for row in rows],
    ]


def _score(subject: Subject, value: float) -> str:
    return percent(value) if subject.more_is_better else f"{value:.3f}"


def filled(page: str, region: str) -> str:
    """The page with another region between the marks."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    require(bool(begin and end), "filled", "page", f"hold {BEGIN} and then {END}", "a page without")
    return f"{before}{BEGIN}\n{region}\n{END}{after}"


def draw(path: Path, result: RealAttention) -> None:
    """Error of every head: the baseline, the best map alone, the best of all, and the mean of the values."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context({"font.size": 11, "axes.grid": True, "grid.alpha": 0.3, "axes.axisbelow": True}):
        figure = Figure(figsize=(12, 4.8), layout="constrained")
        for axes, subject in zip(figure.subplots(1, 2), result.subjects, strict=True):
            _draw_heads(axes, subject)
        figure.suptitle("Squared error of every head's output, softmax replaced in trained networks", fontsize=12)
        unfinished = path.with_name(f".{path.name}")
        try:
            figure.savefig(unfinished, dpi=100, format="png")
            unfinished.replace(path)
        finally:
            unfinished.unlink(missing_ok=True)


def _draw_heads(axes: "Axes", subject: Subject) -> None:
    width = subject.best.width
    shown = [
        (f"FAVOR+, F = {width}", subject.of(BASELINE, width), "#D55E00", "^"),
        (subject.alone.name, subject.alone, "#009E73", "s"),
        (subject.best.name, subject.best, "#0072B2", "o"),
        (MEAN, subject.of(MEAN, 0), "0.6", "_"),
    ]
    heads = range(subject.layers * subject.heads)
    for name, outcome, colour, marker in shown:
        if outcome:
            axes.plot(heads, outcome.errors, color=colour, marker=marker, linestyle="", markersize=8, label=name)
    axes.set(yscale="log", xlabel="layer.head", title=subject.title)
    axes.set_xticks(list(heads), [f"{head // subject.heads + 1}.{head % subject.heads + 1}" for head in heads])
    axes.legend(fontsize=9, ncols=2, loc="upper center", bbox_to_anchor=(0.5, -0.13), frameon=False)


def main(
    quick: Annotated[bool, typer.Option("--quick", help="Barely train, to see that it works; needs --out.")] = False,
    only_render: Annotated[bool, typer.Option("--render", help="Only write the page from numbers there are.")] = False,
    out: Annotated[Path, typer.Option(help="Folder for the JSON and the picture.")] = RESULTS,
    seed: Annotated[int, typer.Option(help="Of the weights, the data and the maps.")] = 0,
) -> None:
    """Train, replace, and write the numbers, the picture and the page."""
    console = Console(stderr=True)
    if quick and out == RESULTS:
        raise typer.BadParameter("--quick must have an --out of its own; got none.")
    if only_render:
        result, facts = from_json((out / "real_attention.json").read_text(encoding="utf-8"))
    else:
        facts = gather_facts()
        with Progress(console=console, transient=True) as bar:
            task = bar.add_task("", total=1.0)
            result = measure_real_attention(
                plan=QUICK if quick else STUDY,
                seed=seed,
                progress=lambda done, doing: bar.update(task, completed=done, description=doing),
            )
        out.mkdir(parents=True, exist_ok=True)
        write_whole(out / "real_attention.json", to_json(result, facts))
    draw(out / "real_attention.png", result)
    if out == RESULTS:
        write_whole(PAGE, filled(PAGE.read_text(encoding="utf-8"), render(result, facts)))
    console.print(render(result, facts), soft_wrap=True, highlight=False, markup=False)


if __name__ == "__main__":
    typer.run(main)
