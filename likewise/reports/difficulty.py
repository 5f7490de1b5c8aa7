"""The page of `likewise depth`: charts, galleries and tables of a study, self-contained."""

from __future__ import annotations

import base64
import io
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy
from PIL import Image

from likewise.page import render
from likewise.reports.charts import Axis, Bars, Panel, Rule, Trace, draw
from likewise.stats import clopper_pearson
from likewise.text import percent

if TYPE_CHECKING:
    from likewise.data import Examples
    from likewise.data.pictures import Pixels
    from likewise.difficulty.results import Depths
    from likewise.difficulty.study import DepthStudy


SHOWN = 12  # pictures of a gallery
SIDE = 96  # pixels at most of a picture's longer side
NAMED = 9  # probes whose names fit under an axis
CLASSES = 20  # rows of the table of classes
STAGES = ("fourier", "positive", "hyperbolic", "softmax-fourier", "plain")  # colours of checkpoints


@dataclass(frozen=True)
class Shown:
    """A picture, its label, the class that was predicted, and its depth or probability in words."""

    picture: str
    item: str
    label: str
    predicted: str
    words: str


@dataclass(frozen=True)
class Gallery:
    """Pictures that have something in common."""

    title: str
    about: str
    shown: tuple[Shown, ...]
    total: int


def depth_page(study: DepthStudy) -> str:
    """The page as one HTML text."""
    return render(
        "reports/templates/difficulty.html",
        {
            "study": study,
            "found": study.found,
            "layers": _layers(study),
            "depths": _depth_rows(study),
            "histogram": histogram_figure(study),
            "accuracy": accuracy_figure(study),
            "probes": probes_figure(study),
            "stages": stages_figure(study),
            "looks": STAGES,
            "composition": _composition(study),
            "galleries": _galleries(study),
            "quadrants": _quadrants(study),
        },
    )


def histogram_figure(study: DepthStudy) -> str:
    """Which part of each half has which depth."""
    sets = {"positive": ("training", study.found.train), "elu": ("test", study.test)}
    parts = {look: (each.counts.double() / len(each)).tolist() for look, (_, each) in sets.items()}
    bars = []
    for shift, (look, (name, _)) in zip((-0.2, 0.2), sets.items(), strict=True):
        hints = tuple(f"{name}, depth {depth}: {percent(part)}" for depth, part in enumerate(parts[look]))
        points = tuple((depth + shift, part) for depth, part in enumerate(parts[look]))
        bars.append(Bars(look, points, 0.38, hints))
    most = max(part for values in parts.values() for part in values)
    panel = Panel("part of the examples", _depth_axis(study), _upto(most), (), bars=tuple(bars))
    return draw((panel,), name="histogram", label="Depth of training and test examples", height=270.0)


def accuracy_figure(study: DepthStudy) -> str:
    """How often the model is right, by depth, beside its accuracy on all."""
    points = [row for row in _depth_rows(study) if row["count"]]
    hints = tuple(
        f"depth {row['depth']}: {percent(row['accuracy'])} of {row['count']}, 95% from {percent(row['low'])} "
        f"to {percent(row['high'])}"
        for row in points
    )
    line = Trace("elu", tuple((row["depth"], row["accuracy"]) for row in points), hints)
    bounds = [Trace("plain", ((row["depth"], row["low"]), (row["depth"], row["high"])), dots=False) for row in points]
    rules = (Rule("fixed", study.test.accuracy, f"all test examples, {percent(study.test.accuracy)}"),)
    panel = Panel("accuracy of the model on test examples", _depth_axis(study), _upto(1.0), (*bounds, line), rules)
    return draw((panel,), name="accuracy", label="Accuracy of the model against depth", height=270.0)


def probes_figure(study: DepthStudy) -> str:
    """What the neighbours at each layer know: of the label, and of the model's answer."""
    curve = study.found.curves["test"]
    x = _axis("probe", study.found.layers)
    traces = []
    for look, name, values in (
        ("elu", "say the label", curve.accuracy[0].tolist()),
        ("fourier", "say what the model says", curve.agreement[0].tolist()),
    ):
        hints = tuple(f"{layer}: {percent(v)} {name}" for layer, v in zip(study.found.layers, values, strict=True))
        traces.append(Trace(look, tuple(enumerate(values)), hints))
    panel = Panel("test examples whose neighbours are right", x, _upto(1.0), tuple(traces))
    return draw((panel,), name="probes", label="Accuracy and agreement of the probes", height=270.0)


def stages_figure(study: DepthStudy) -> str:
    """Depths of the same test examples before and after convergence; nothing without checkpoints."""
    if not study.stages:
        return ""
    named = [(look, stage.name, stage.test) for look, stage in zip(STAGES, study.stages, strict=False)]
    named.append(("elu", study.subject.name, study.test))
    traces, most = [], 0.0
    for look, name, each in named:
        parts = (each.counts.double() / len(each)).tolist()
        hints = tuple(f"{name}, depth {depth}: {percent(part)}" for depth, part in enumerate(parts))
        traces.append(Trace(look, tuple(enumerate(parts)), hints))
        most = max(most, *parts)
    panel = Panel("part of the test examples", _depth_axis(study), _upto(most), tuple(traces))
    return draw((panel,), name="stages", label="Depth before and after convergence", height=270.0)


def picture_uri(pixels: Pixels) -> str:
    """A picture as a data URI of PNG, made smaller if it is large."""
    plain = numpy.ascontiguousarray(pixels[..., 0] if pixels.shape[2] == 1 else pixels)
    image, file = Image.fromarray(plain), io.BytesIO()
    if max(image.size) > SIDE:
        image.thumbnail((SIDE, SIDE))
    image.save(file, "PNG")
    return f"data:image/png;base64,{base64.b64encode(file.getvalue()).decode()}"


def _depth_axis(study: DepthStudy) -> Axis:
    return _axis("depth: settled from this probe on", (*study.found.layers, "undefined"))


def _axis(label: str, names: Sequence[str]) -> Axis:
    """Names under their places, or numbers where names would not fit."""
    few = len(names) <= NAMED
    ticks = tuple((number, name if few else f"{number}") for number, name in enumerate(names))
    step = -(-len(names) // 16)
    return Axis(label, -0.6, len(names) - 0.4, ticks[::step], log=False)


def _upto(most: float) -> Axis:
    """From 0 to a part, in tenths or fifths."""
    step = 0.2 if most > 0.5 else 0.1 if most > 0.2 else 0.05
    ticks = tuple((step * i, f"{step * i:.0%}") for i in range(math.floor(most / step + 1e-9) + 1))
    return Axis("", 0.0, 1.05 * most, ticks, log=False)


def _layers(study: DepthStudy) -> list[dict[str, object]]:
    curve = study.found.curves["test"]
    values = zip(study.found.plan.layers, curve.accuracy[0].tolist(), study.settled, strict=True)
    return [
        {"number": number, "name": plan.name, "width": plan.width, "accuracy": accuracy, "settled": settled}
        for number, (plan, accuracy, settled) in enumerate(values)
    ]


def _depth_rows(study: DepthStudy) -> list[dict]:
    """Of each depth how many test examples have it and how often the model is right, with a 95% interval."""
    right = study.test.depth[study.test.correct].bincount(minlength=study.test.probes + 1).tolist()
    names = (*study.found.layers, "undefined")
    train = study.found.train.counts.tolist()
    rows = []
    for depth, (name, count) in enumerate(zip(names, study.test.counts.tolist(), strict=True)):
        row: dict = {"depth": depth, "name": name, "train": train[depth], "count": count}
        if count:
            low, high = clopper_pearson(accepted=right[depth], total=count)
            row |= {"accuracy": right[depth] / count, "low": low, "high": high}
        rows.append(row)
    return rows


def _composition(study: DepthStudy) -> list[tuple[str, int, float, list[float]]]:
    """The classes, deepest first: name, test examples, mean depth, and which part has each depth."""
    table = study.test.classes_by_depth.double()
    depths = table.new_tensor(range(len(table)))
    totals = table.sum(dim=0)
    means = (depths @ table / totals).tolist()
    found = [
        (study.subject.test.identities[number], int(totals[number]), means[number], column.tolist())
        for number, column in enumerate((table / totals).T)
        if totals[number] > 0
    ]
    return sorted(found, key=lambda row: -row[2])


def _galleries(study: DepthStudy) -> list[Gallery]:
    test, overlap = study.test, study.overlap.nan_to_num().tolist()
    depth = test.depth.tolist()
    order = sorted(range(len(test)), key=lambda row: (depth[row], overlap[row]))
    images = study.subject.test
    easy = [row for row in order if depth[row] == depth[order[0]]]
    hard = [row for row in order[::-1] if depth[row] > 0]
    galleries = [
        Gallery("The easiest", "Least depth, then least overlap with another class.", _shown(images, test, easy), 0),
        Gallery("The hardest", "Most depth, above 0, then most overlap.", _shown(images, test, hard), 0),
    ]
    return [*galleries, _suspicious(study), *_mislabelled(study)]


def _suspicious(study: DepthStudy) -> Gallery:
    """Labels that models which had not seen the example find improbable."""
    about = (
        "Held-out examples with another class that is about as probable as it is for that class's own examples; the "
        "least probable labels first. Either the label is wrong or the example misleads. Look before you change one."
    )
    names = study.subject.test.identities
    places = _places(study)
    flagged = [row for row in study.labels.rows(len(study.labels.items)) if row["flagged"] and row["item"] in places]
    shown = []
    for row in flagged[:SHOWN]:
        split, place = places[row["item"]]
        words = f"probability of the label {percent(1 - row['score'])}"
        picture = picture_uri(split.read(place))
        shown.append(Shown(picture, row["item"], names[row["label"]], names[row["suggested"]], words))
    return Gallery("Suspicious labels", about, tuple(shown), len(flagged))


def _places(study: DepthStudy) -> dict[str, tuple[Examples, int]]:
    """Where the image of each example is."""
    halves = study.subject.train, study.subject.test
    return {item: (half, row) for half in halves for row, item in enumerate(half.items)}


def _mislabelled(study: DepthStudy) -> Iterable[Gallery]:
    """The quadrant of low held-out and high training depth, where there are folds."""
    runs = study.runs
    if runs is None or runs.quadrants is None:
        return
    assert runs.train_depth is not None
    assert runs.heldout_depth is not None
    assert runs.consensus is not None
    gap = (runs.train_depth - runs.heldout_depth).tolist()
    chosen = runs.quadrants.of("looks mislabelled").nonzero()[:, 0].tolist()
    test = study.subject.test
    places = _places(study)
    found = []
    for row in chosen:
        split, place = places[runs.items[row]]
        label, taken = int(split.labels[place]), int(runs.consensus[row])
        found.append((label == taken, -gap[row], row, label, taken))
    shown = []
    for _, _, row, label, taken in sorted(found)[:SHOWN]:
        split, place = places[runs.items[row]]
        depths = f"depth {runs.heldout_depth[row]:.1f} held out, {runs.train_depth[row]:.1f} in training"
        names = test.identities[label], test.identities[taken]
        shown.append(Shown(picture_uri(split.read(place)), runs.items[row], *names, depths))
    about = (
        "Low depth held out, high depth as training examples. First those that held-out models take for another class "
        "than their label, most apart first."
    )
    yield Gallery("Labels that look wrong by depth", about, tuple(shown), len(chosen))


def _shown(examples: Examples, depths: Depths, rows: Sequence[int]) -> tuple[Shown, ...]:
    return tuple(
        Shown(
            picture_uri(examples.read(row)),
            examples.items[row],
            examples.identities[int(depths.labels[row])],
            examples.identities[int(depths.predicted[row])],
            "depth undefined" if depths.undefined[row] else f"depth {int(depths.depth[row])}",
        )
        for row in rows[:SHOWN]
    )


def _quadrants(study: DepthStudy) -> list[tuple[str, int]]:
    if study.runs is None or study.runs.quadrants is None:
        return []
    return list(study.runs.quadrants.counts.items())
