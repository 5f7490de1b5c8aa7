"""What `likewise exits` found, as one page, its pictures and JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from likewise.page import render
from likewise.reports.charts import Axis, Panel, Trace, draw, ticks_to
from likewise.reports.facts import Facts
from likewise.text import percent, seconds, short

if TYPE_CHECKING:
    from likewise.difficulty.results import Depths
    from likewise.exits.evaluating import Point
    from likewise.exits.study import DepthGroups, ExitStudy


LEAST = 0.5  # of a histogram in logarithms: below one example
Corners = tuple[tuple[float, float], ...]


def depth_figure(groups: DepthGroups) -> str:
    """How many examples have each depth, and how often the network is right about them."""
    last = groups.test.probes
    x = Axis("prediction depth", -0.6, last + 0.6, tuple((float(d), str(d)) for d in range(last + 1)), log=False)
    most = max(int(each.counts.max()) for each in (groups.train, groups.test))
    decades = [10**power for power in range(len(str(most)))]
    y = Axis("", LEAST, 1.3 * most, tuple((float(count), f"{count:,}") for count in decades))
    histograms = [
        Trace(look, outline(each), dots=False) for look, each in (("plain", groups.train), ("elu", groups.test))
    ]
    panels = (
        Panel("examples of each depth", x, y, tuple(histograms)),
        Panel("the network's accuracy by depth", x, _shares(), (_accuracies(groups.test),)),
    )
    label = "How many examples have each prediction depth, and how often the network is right about them"
    return draw(panels, name="depths", label=label, columns=2, height=270.0)


def outline(depths: Depths) -> Corners:
    """The corners of a histogram, bars from half below a depth to half above it."""
    corners = []
    for depth, count in enumerate(depths.counts.tolist()):
        height = max(count, LEAST)
        corners += [(depth - 0.5, height), (depth + 0.5, height)]
    return ((-0.5, LEAST), *corners, (corners[-1][0], LEAST))


def _accuracies(depths: Depths) -> Trace:
    found = enumerate(zip(depths.counts.tolist(), depths.accuracy_by_depth.tolist(), strict=True))
    points = [(depth, count, right) for depth, (count, right) in found if count]
    hints = tuple(f"depth {depth}: {right:.0%} of {count} right" for depth, count, right in points)
    return Trace("elu", tuple((depth, right) for depth, _, right in points), hints)


def _shares() -> Axis:
    return Axis("", 0.0, 1.05, tuple((i / 4, f"{25 * i}%") for i in range(5)), log=False)


def trade_figure(study: ExitStudy) -> str:
    """Accuracy against multiply-adds and against the clock, with the smaller networks."""
    everything = (*study.ladder, *study.networks)
    low = min(point.accuracy for point in everything)
    y = _accuracy_axis(low, max(point.accuracy for point in everything))
    by_macs = [point.macs / 1e6 for point in everything]
    by_time = [1e6 * (point.seconds or 0.0) for point in everything]
    path = Trace("plain", tuple((point.macs / 1e6, point.accuracy) for point in study.path), dots=False)
    panels = (
        Panel(
            "accuracy by multiply-adds", _upto("million multiply-adds per example", by_macs), y, (path, *_dots(study))
        ),
        Panel(
            "accuracy by wall clock",
            _upto(f"microseconds per example, batches of {study.clock.sizes[-1]}", by_time),
            y,
            _dots(study, clock=True),
        ),
    )
    return draw(panels, name="trade", label="Accuracy of exits and of networks by cost", columns=2, height=300.0)


def _dots(study: ExitStudy, *, clock: bool = False) -> tuple[Trace, ...]:
    def at(point: Point) -> tuple[float, float]:
        return (1e6 * (point.seconds or 0.0) if clock else point.macs / 1e6), point.accuracy

    def hint(point: Point) -> str:
        spent = seconds(point.seconds or 0.0) if clock else f"{short(point.macs / 1e6, 3)} million"
        return f"{point.name}: {percent(point.accuracy)}, {spent}"

    ladder = sorted(study.ladder, key=at)
    alone = tuple(
        Trace("positive", (at(point),), (hint(point),), tag=point.name.removesuffix(" network"), tag_left=True)
        for point in study.networks
    )
    exits = Trace("near", tuple(map(at, ladder)), tuple(map(hint, ladder)))
    asked = Trace("best", (at(study.chosen),), (hint(study.chosen),), tag=study.chosen.name)
    return exits, *alone, asked


def _accuracy_axis(low: float, high: float) -> Axis:
    """From below the lowest to above the highest, in steps of 1, 2, 5, 10 or 20 points."""
    room = max(high - low, 0.01)
    step = next((step for step in (1, 2, 5, 10) if 100 * room / step <= 6), 20)
    first = int(100 * low // step) * step
    last = min(int(-(-100 * high // step)) * step, 100)
    ticks = tuple((tick / 100, f"{tick}%") for tick in range(first, last + 1, step))
    return Axis("", first / 100, max(last / 100, first / 100 + 0.01), ticks, log=False)


def _upto(label: str, values: list[float]) -> Axis:
    most = max(values)
    return Axis(label, 0.0, 1.15 * most, ticks_to(most, 6), log=False)


ASSUMED = (
    "Examples to come are drawn as the calibration examples were, one independently of the other. Other data, or data "
    "that drifts, is not covered: watch the shares of exits, which need no labels.",
    "Nothing was trained, selected or tuned on calibration data, and the path of thresholds was fixed before it was "
    "seen. The command deals the held-out half by chance and refuses an example that was used for something else.",
    "The promise is about the whole network's answer. Where that is wrong, so may be the early one.",
    "It is for all examples together; for a group of them it may fail, as the table by difficulty shows.",
)


def exits_page(study: ExitStudy, *, title: str, facts: Facts) -> str:
    """The page; title: which network on which data."""
    depth_groups = study.prepared.depth_groups
    return render(
        "reports/templates/exits.html",
        {
            "study": study,
            "title": title,
            "facts": facts,
            "assumed": ASSUMED,
            "exits": (*study.prepared.exits.names, "the end"),
            "depth_figure": "" if depth_groups is None else depth_figure(depth_groups),
            "trade_figure": trade_figure(study),
        },
    )


def exits_json(study: ExitStudy) -> dict[str, Any]:
    """The numbers of the page, as JSON has them."""
    controlled, evaluation, against = study.controlled, study.evaluation, study.against
    prepared = study.prepared
    points = [("exits", point) for point in study.ladder] + [("network", point) for point in study.networks]
    names = () if prepared.depth_groups is None else prepared.depth_groups.groups
    return {
        "notes": [*study.notes, *filter(None, [study.idle])],
        "examples": dict(zip(("train", "selection", "calibration", "test"), study.counts, strict=True)),
        "heads": list(prepared.exits.names),
        "thresholds": [None if each == float("inf") else each for each in controlled.policy.thresholds],
        "temperatures": list(prepared.temperatures),
        "risk": {"allowed": controlled.risk, "delta": controlled.delta, "test": evaluation.disagreement},
        "accuracy": {"exits": evaluation.accuracy, "whole": evaluation.full_accuracy, "before": prepared.alone},
        "shares": list(evaluation.shares),
        "macs": {"exits": evaluation.macs, "whole": evaluation.full_macs},
        "points": [{"kind": kind, **vars(point)} for kind, point in points],
        "groups": [
            {"group": names[each.group], "count": each.count, "risk": each.risk, "upper": each.upper}
            for each in evaluation.groups
        ],
        "depth_by_exit": against
        and {
            "wasted_segments": against.wasted,
            "premature_right": against.premature_right,
            "premature_wrong": against.premature_wrong,
            "free_wins": against.free_wins,
            "overthinking": against.overthinking,
            "oracles": against.oracles,
            "headroom": against.headroom,
        },
        "answers": {answer.by: {"verdict": answer.verdict, "text": answer.text} for answer in study.answers},
    }
