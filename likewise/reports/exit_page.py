"""What `likewise exits` found, as one page and as JSON."""

from pathlib import Path
from typing import Any

from likewise.files import write_whole
from likewise.page import render
from likewise.reports.exit_figures import depth_figure, trade_figure
from likewise.reports.exit_study import ExitStudy
from likewise.reports.facts import Facts

ASSUMED = (
    "Examples to come are drawn as the calibration examples were, one independently of the other. Other data, or data "
    "that drifts, is not covered: watch the shares of exits, which need no labels.",
    "Nothing was trained, selected or tuned on calibration data, and the path of thresholds was fixed before it was "
    "seen. The command deals the held-out half by chance and refuses an example that was used for something else.",
    "The promise is about the whole network's answer. Where that is wrong, so may be the early one.",
    "It is for all examples together; for a group of them it may fail, as the table by difficulty shows.",
)


def write_exits(path: Path, study: ExitStudy, *, title: str, facts: Facts) -> Path:
    """Write the page; title: which network on which data."""
    return write_whole(path, render_exits(study, title=title, facts=facts))


def render_exits(study: ExitStudy, *, title: str, facts: Facts) -> str:
    """The page."""
    settled = study.prepared.settled
    return render(
        "reports/templates/exits.html",
        {
            "study": study,
            "title": title,
            "facts": facts,
            "assumed": ASSUMED,
            "exits": (*study.prepared.exits.names, "the end"),
            "depth_figure": "" if settled is None else depth_figure(settled),
            "trade_figure": trade_figure(study),
        },
    )


def exits_json(study: ExitStudy) -> dict[str, Any]:
    """The numbers of the page, as JSON has them."""
    controlled, evaluation, against = study.controlled, study.evaluation, study.against
    prepared = study.prepared
    points = [("exits", point) for point in study.ladder] + [("network", point) for point in study.networks]
    names = () if prepared.settled is None else prepared.settled.groups
    return {
        "notes": list(study.notes),
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
