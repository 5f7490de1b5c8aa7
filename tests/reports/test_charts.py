"""Charts: round ticks, labels that cover nothing, and a picture for narrow screens."""

import re
from itertools import pairwise
from xml.etree import ElementTree

import pytest

from likewise.reports.charts import Axis, Mark, Panel, Rule, Trace, _box, _crosses, _meet, draw, round_step, ticks_to

UNIT = Axis("", 0.0, 1.0, ((0.0, "0"), (1.0, "1")), log=False)


def labels(svg: ElementTree.Element) -> list[tuple[float, float, float, float]]:
    """Where the labels of a picture stand."""
    found = [text for text in svg.iter("text") if (text.get("class") or "").startswith("tag")]
    return [
        _box(text.text or "", float(text.get("x", 0)), float(text.get("y", 0)), text.get("text-anchor", "start"))
        for text in found
    ]


def lines(svg: ElementTree.Element) -> list[tuple[tuple[float, float], tuple[float, float]]]:
    found = []
    for line in svg.iter("polyline"):
        points = [tuple(map(float, pair.split(","))) for pair in (line.get("points") or "").split()]
        found += [((a[0], a[1]), (b[0], b[1])) for a, b in pairwise(points)]
    return found


@pytest.mark.parametrize("high", [0.315, 0.944, 1.0, 7.0, 123.0, 4.1e-5])
def test_ticks_are_round_numbers(high: float) -> None:
    values = [value for value, _ in ticks_to(high, 5)]
    assert values[0] == 0
    assert 3 <= len(values) <= 6
    step = values[1]
    assert f"{step:.0e}"[0] in "125"
    assert values == pytest.approx([step * i for i in range(len(values))])
    assert values[-1] <= high < values[-1] + step
    assert step == round_step(high / 5)


def test_ticks_are_written_as_people_do() -> None:
    assert [text for _, text in ticks_to(0.944, 5, unit=0.01, sign="%")] == ["0%", "20%", "40%", "60%", "80%"]
    assert [text for _, text in ticks_to(0.31, 4)] == ["0", "0.1", "0.2", "0.3"]


@pytest.mark.parametrize("width", ["wide", "narrow"])
def test_labels_cover_no_line_and_no_label(width: str) -> None:
    """A mark and a rule where the curve goes, and two curves that end at one place."""
    flat = Trace("a", ((0.0, 0.5), (1.0, 0.52)), tag="the first", tag_left=True)
    steep = Trace("b", ((0.0, 0.1), (0.5, 0.1), (1.0, 0.5)), tag="the second", tag_left=True)
    panel = Panel(
        "", UNIT, UNIT, (flat, steep), rules=(Rule("c", 0.48, "the rule"),), marks=(Mark("d", 0.2, 0.5, "a remark"),)
    )
    pictures = {svg.get("class"): svg for svg in ElementTree.fromstring(draw((panel,), name="n", label="l"))}
    boxes, segments = labels(pictures[width]), lines(pictures[width])
    [rule] = [line for line in pictures[width].iter("line") if line.get("class") == "rule c"]
    x1, y1, x2, y2 = (float(rule.get(name, 0)) for name in ("x1", "y1", "x2", "y2"))
    segments.append(((x1, y1), (x2, y2)))
    assert len(boxes) == 4
    assert not [box for box in boxes if any(_crosses(segment, box) for segment in segments)]
    assert not [(a, b) for a in boxes for b in boxes if a is not b and _meet(a, b)]
    high = float((pictures[width].get("viewBox") or "").split()[2])
    assert all(box[0] >= 0 and box[2] <= high for box in boxes)


def test_narrow_panels_stand_one_under_another_with_ticks_that_do_not_touch() -> None:
    names = tuple((float(i), f"block number {i}") for i in range(9))
    panel = Panel(
        "accuracy of every probe on examples that were held out", Axis("", 0.0, 8.0, names, log=False), UNIT, ()
    )
    wide, narrow = ElementTree.fromstring(draw((panel, panel), name="n", label="l", columns=2, height=200))
    boxes = [tuple(map(float, (svg.get("viewBox") or "").split()))[2:] for svg in (wide, narrow)]
    assert boxes[0][0] == 720
    assert boxes[1][0] == 350
    assert boxes[1][1] >= 400
    for svg in (wide, narrow):
        ticks = [text for text in svg.iter("text") if re.match("block", text.text or "")]
        places = sorted((float(text.get("x", 0)), float(text.get("y", 0))) for text in ticks)
        rows = {y for _, y in places}
        for y in rows:
            xs = [x for x, at in places if at == y]
            assert all(b - a > 6 * len("block number 1") for a, b in pairwise(xs))
    titles = [text.text for text in narrow.iter("text") if text.get("class") == "title"]
    assert len(titles) == 4  # two lines each
