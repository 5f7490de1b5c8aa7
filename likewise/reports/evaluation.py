"""An evaluation as one page: the curve, the distances, the worst pairs as pictures, and the tables."""

from __future__ import annotations

import base64
import io
import math
from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

import numpy
from PIL import Image

from likewise.page import render
from likewise.reports.charts import Axis, Mark, Panel, Trace, draw, ticks_to
from likewise.text import percent, power, scientific, short

if TYPE_CHECKING:
    from likewise.data import Examples
    from likewise.evaluation import Table
    from likewise.evaluation.results import Evaluation, Histogram, Worst
    from likewise.metric.rates import Roc


SIDE = 112  # pixels of a small picture
EMPTY = "data:,"
LOWEST = -7  # decade of FAR


def evaluation_page(
    found: Evaluation | None,
    examples: Examples | None,
    *,
    title: str,
    tables: Sequence[Table] = (),
    about: Sequence[tuple[str, str]] = (),
) -> str:
    """The page. examples: images of the worst pairs are read from here. about: facts for the head, name and value."""
    values: dict[str, Any] = {
        "found": found,
        "title": title,
        "about": list(about),
        "tables": [_plain(table) for table in tables],
        "roc": "",
        "histogram": "",
        "accuracy_text": "",
        "worst_same": [],
        "worst_different": [],
    }
    if found is not None and examples is not None:
        values |= {
            "roc": roc_figure(found.roc, far=found.rates.far, pairs=found.rates.different),
            "histogram": histogram_figure(found.histogram, threshold=found.rates.threshold),
            "accuracy_text": _accuracy_text(found),
            "worst_same": [_card(pair, examples) for pair in found.worst_same],
            "worst_different": [_card(pair, examples) for pair in found.worst_different],
        }
    return render("reports/templates/evaluation.html", values)


def roc_figure(roc: Roc, *, far: float, pairs: int) -> str:
    """VAL against FAR, which is on a logarithmic axis that begins near one pair in all."""
    lowest = max(LOWEST, math.floor(math.log10(1 / max(pairs, 10))))
    low = 10.0**lowest
    curve = roc.thinned()
    points = [(x, y) for x, y in zip(curve.far.tolist(), curve.val.tolist(), strict=True) if x >= low]
    start = max((y for x, y in zip(roc.far.tolist(), roc.val.tolist(), strict=True) if x <= low), default=0.0)
    trace = Trace("curve", ((low, start), *points), dots=False)
    chance = Trace("plain", tuple((10 ** (lowest * i / 60), 10 ** (lowest * i / 60)) for i in range(61)), dots=False)
    x = Axis("FAR: share of different pairs accepted", low, 1.0, tuple((10.0**e, power(e)) for e in range(lowest, 1)))
    y = Axis("", 0.0, 1.02, tuple((i / 5, f"{20 * i}%") for i in range(6)), log=False)
    val = max((v for f, v in zip(roc.far.tolist(), roc.val.tolist(), strict=True) if f <= far), default=0.0)
    mark = Mark("curve", max(far, low), val, f"{percent(val)} at FAR {scientific(far)}")
    panel = Panel("VAL: share of same pairs accepted", x, y, (chance, trace), marks=(mark,))
    return draw((panel,), name="roc", label="VAL against FAR on a logarithmic axis", height=330.0)


def histogram_figure(shape: Histogram, *, threshold: float) -> str:
    """The shares of same and of different pairs in each bin of squared distance, as two steps of a stair each."""
    shape = _coarser(shape)
    edges = [0.0, *shape.edges.tolist()]
    used = (shape.same + shape.different).nonzero()[:, 0]
    last = int(used.max()) + 1 if len(used) else 1
    traces, most = [], 0.0
    for look, counts in (("same", shape.same), ("different", shape.different)):
        shares = (counts.double() / max(1, int(counts.sum()))).tolist()[:last]
        most = max(most, *shares)
        points = [(edge, share) for number, share in enumerate(shares) for edge in edges[number : number + 2]]
        traces.append(Trace(look, ((0.0, 0.0), *points, (edges[last], 0.0)), dots=False))
    end = edges[last]
    x = Axis("squared distance", 0.0, end, ticks_to(end, 8), log=False)
    y = Axis("", 0.0, 1.08 * most, ticks_to(most, 6, unit=0.01, sign="%"), log=False)
    inside = 0 <= threshold <= end
    marks = (Mark("curve", threshold, 1.0 * most, f"threshold {short(threshold, 3)}"),) if inside else ()
    panel = Panel("share of pairs", x, y, tuple(traces), marks=marks)
    label = "Shares of same and of different pairs by squared distance"
    return draw((panel,), name="histogram", label=label, height=290.0)


def _coarser(shape: Histogram) -> Histogram:
    """Neighbouring bins joined until there are no more of them than few pairs can fill: 2 sqrt(n)."""
    pairs = min(int(shape.same.sum()), int(shape.different.sum()))
    while len(shape.edges) % 2 == 0 and len(shape.edges) > max(8.0, 2 * math.sqrt(pairs)):
        counts = [kind.reshape(-1, 2).sum(1) for kind in (shape.same, shape.different)]
        shape = replace(shape, edges=shape.edges[1::2], same=counts[0], different=counts[1])
    return shape


def small_picture(pixels: numpy.ndarray) -> str:
    """An image as a small JPEG inside an address."""
    grey = pixels.shape[2] == 1
    picture = Image.fromarray(numpy.ascontiguousarray(pixels[..., 0] if grey else pixels))
    scale = SIDE / max(picture.size)
    how = Image.Resampling.NEAREST if scale > 3 else Image.Resampling.BILINEAR
    size = max(1, round(picture.width * scale)), max(1, round(picture.height * scale))
    file = io.BytesIO()
    picture.resize(size, how).save(file, "JPEG", quality=82)
    return f"data:image/jpeg;base64,{base64.b64encode(file.getvalue()).decode()}"


def _card(pair: Worst, examples: Examples) -> dict[str, Any]:
    return {**asdict(pair), "pictures": [_picture(examples, row) for row in examples.rows([pair.first, pair.second])]}


def _picture(examples: Examples, row: int) -> str:
    from likewise.data import Unreadable

    try:
        return small_picture(examples.read(row, least=SIDE))
    except Unreadable:  # it could be read before; the page is worth having without it
        return EMPTY


def _plain(table: Table) -> dict[str, Any]:
    kept = any(math.isfinite(row.val_kept) for row in table.rows)
    return {**vars(table), "kept": kept}


def _accuracy_text(found: Evaluation) -> str:
    folds = len(found.rates.folds)
    judged = f"each of {folds} folds judged by the others" if folds > 1 else "one fold, judged by the others"
    if not found.listed:
        return f"as many drawn pairs of each kind; {judged}"
    return judged
