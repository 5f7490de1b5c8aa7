"""A gallery as one page: answers with pictures, near misses, and the curves that thresholds rest on."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from likewise.page import render
from likewise.reports.charts import Axis, Mark, Panel, Trace, draw
from likewise.reports.evaluation import EMPTY, small_picture
from likewise.text import power, scientific

if TYPE_CHECKING:
    from likewise.gallery import Calibration, Identified

NEAR = 1.25  # times the threshold: an unknown probe up to there is a near miss
MOST = 200  # answers that are shown with pictures
CANDIDATES = 3
WHOLE = 0.999  # share at which a curve ends


def gallery_page(
    title: str, answers: Sequence[Identified], calibration: Calibration, sources: Mapping[str, Sequence[str]]
) -> str:
    """The page. sources: image files of each identity, as far as they are known."""
    shown = [_answer(each, sources) for each in answers[:MOST]]
    near = [each for each in shown if each["near"]]
    values: dict[str, Any] = {
        "title": title,
        "answers": shown,
        "left_out": len(answers) - len(shown),
        "near": near,
        "counts": {name: sum(each.outcome == name for each in answers) for name in ("known", "unknown", "undecided")},
        "calibration": calibration,
        "verify_curve": "",
        "identify_curve": "",
        "warnings": list(dict.fromkeys([*calibration.warnings, *(t for each in answers for t in each.warnings)])),
    }
    if calibration.verify is not None:
        each = calibration.verify
        label = "Share of impostor pairs accepted"
        values["verify_curve"] = curve_figure(each.curve, each.threshold, each.far, label, "verify")
    if calibration.identify is not None:
        each = calibration.identify
        label = "Share of strangers accepted"
        values["identify_curve"] = curve_figure(each.curve, each.threshold, each.fpir, label, "identify")
    return render("reports/templates/gallery.html", values)


def curve_figure(curve: Sequence[tuple[float, float]], threshold: float, share: float, label: str, name: str) -> str:
    """A share on a logarithmic axis against squared distance, with the threshold marked."""
    points = [(squared, rate) for squared, rate in curve if rate > 0]
    whole = next((place for place, (_, rate) in enumerate(points) if rate >= WHOLE), len(points))
    points = points[: whole + 1]  # beyond, the curve is a line
    lowest = math.floor(math.log10(points[0][1]))
    left, right = min(points[0][0], threshold), points[-1][0]
    ticks = tuple((left + (right - left) * i / 4, f"{left + (right - left) * i / 4:.2f}") for i in range(5))
    x = Axis("squared distance", left, right if right > left else left + 1, ticks, log=False)
    y = Axis("", 10.0**lowest, 1.0, tuple((10.0**e, power(e)) for e in range(lowest, 1)))
    mark = Mark("curve", threshold, share, f"threshold {threshold:.3f} at {scientific(share)}")
    panel = Panel(label, x, y, (Trace("curve", tuple(points), dots=False),), marks=(mark,))
    return draw((panel,), name=name, label=f"{label} against squared distance", height=300.0)


def _answer(found: Identified, sources: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    candidates = [
        {"name": each.identity, "squared": each.squared, "picture": _first(sources.get(each.identity, ()))}
        for each in found.candidates[:CANDIDATES]
    ]
    limit = found.threshold
    near = found.outcome == "unknown" and limit is not None and bool(candidates)
    return {
        "outcome": found.outcome,
        "identity": found.identity,
        "source": found.source,
        "picture": _first((found.source,)),
        "candidates": candidates,
        "odds": found.odds,
        "near": near and limit is not None and found.candidates[0].squared <= NEAR * limit,
    }


def _first(paths: Sequence[str]) -> str:
    """The first image that can still be read, as a small picture."""
    from likewise.data import Unreadable
    from likewise.gallery.embedding import pixels_of

    for path in paths:
        if path:
            try:
                return small_picture(pixels_of(path, least=112))
            except Unreadable:
                continue
    return EMPTY
