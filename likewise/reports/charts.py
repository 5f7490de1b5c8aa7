"""Charts of lines and bars as SVG that takes its colours and letters from the page it stands in.

A chart is made of panels, a panel of axes, traces, bars, rules and marks, all of them values. `look` is the class by
which the page's style sheet colours something. The SVG is built as a tree, so that any text in it is escaped.
"""

import math
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from xml.etree.ElementTree import Element, SubElement, tostring

from likewise.checks import require, require_count

Number = int | float
WIDTH, NARROW = 720.0, 350.0  # of a page, and of a phone
LEFT, RIGHT, TOP, BOTTOM = 52.0, 14.0, 30.0, 44.0
LINE_HEIGHT = 13.0
LETTER, ASCENT, DESCENT = 6.3, 10.0, 3.0  # about what a letter of a label takes
TITLE_LETTER, TITLE_HEIGHT = 6.9, 16.0
Box = tuple[float, float, float, float]  # left, top, right, bottom
Segment = tuple[tuple[float, float], tuple[float, float]]


@dataclass(frozen=True)
class Axis:
    """A scale from low to high with written ticks; logarithmic unless told."""

    label: str
    low: Number
    high: Number
    ticks: tuple[tuple[Number, str], ...]
    log: bool = True

    def place(self, value: Number) -> float:
        """Where a value stands: 0 at low, 1 at high.

        >>> Axis("", 1.0, 100.0, ()).place(10.0)
        0.5
        """
        if not self.log:
            return (value - self.low) / (self.high - self.low)
        return math.log(value / self.low) / math.log(self.high / self.low)


@dataclass(frozen=True)
class Trace:
    """Points, joined by a line unless told. `hints` show when a point is pointed at; `tag` stands beside the last."""

    look: str
    points: tuple[tuple[Number, Number], ...]
    hints: tuple[str, ...] = ()
    joined: bool = True
    dots: bool = True
    tag: str = ""
    tag_left: bool = False


@dataclass(frozen=True)
class Bars:
    """A bar from the bottom up to each point, `width` wide in units of x; `hints` show when one is pointed at."""

    look: str
    points: tuple[tuple[Number, Number], ...]
    width: float
    hints: tuple[str, ...] = ()


@dataclass(frozen=True)
class Rule:
    """A horizontal line across the panel, with its name."""

    look: str
    value: Number
    name: str


@dataclass(frozen=True)
class Mark:
    """A ring around a point, with a remark."""

    look: str
    x: Number
    y: Number
    text: str


@dataclass(frozen=True)
class Panel:
    """One pair of axes and what is drawn in it."""

    title: str
    x: Axis
    y: Axis
    traces: tuple[Trace, ...]
    rules: tuple[Rule, ...] = ()
    marks: tuple[Mark, ...] = ()
    bars: tuple[Bars, ...] = ()


@dataclass
class _Canvas:
    """A panel's place in the picture."""

    panel: Panel
    group: Element
    left: float
    top: float
    width: float
    height: float
    boxes: list[Box] = field(default_factory=list)  # where text stands
    lines: list[Segment] = field(default_factory=list)  # what text should not cover
    beyond: list[float] = field(default_factory=list)  # where arrow heads stand

    def at(self, x: Number, y: Number) -> tuple[float, float]:
        """Where values stand, in the picture's units."""
        across, up = self.panel.x.place(x), self.panel.y.place(y)
        return self.left + across * self.width, self.top + (1 - up) * self.height

    @property
    def right(self) -> float:
        return self.left + self.width

    @property
    def bottom(self) -> float:
        return self.top + self.height


def draw(panels: tuple[Panel, ...], *, name: str, label: str, columns: int = 1, height: float = 300.0) -> str:
    """The chart as one element with two pictures, one for a wide page and one for a phone; the style sheet shows one.

    name: unique on its page. label: what a reader who cannot see it is told. height: of one panel, all included.

    >>> axis = Axis("T", 1.0, 10.0, ((1.0, "1"), (10.0, "10")))
    >>> panel = Panel("a < b", axis, axis, (Trace("elu", ((1.0, 1.0), (10.0, 5.0))),))
    >>> "a &lt; b" in draw((panel,), name="example", label="an example")
    True
    """
    chart = Element("div", {"class": "chart"})
    for look, columns_here, width in (("wide", columns, WIDTH), ("narrow", 1, NARROW)):
        svg = _picture(panels, f"{name}-{look}", label, columns_here, height, width)
        svg.set("class", look)
        chart.append(svg)
    return tostring(chart, encoding="unicode", short_empty_elements=False)


def draw_alone(panels: tuple[Panel, ...], *, name: str, label: str, columns: int = 1, height: float = 300.0) -> str:
    """The wide picture of `draw` as one SVG element."""
    return tostring(
        _picture(panels, name, label, columns, height, WIDTH), encoding="unicode", short_empty_elements=False
    )


def ticks_to(high: float, count: int, unit: float = 1.0, sign: str = "") -> tuple[tuple[float, str], ...]:
    """About `count` ticks from 0 to `high`, in steps of 1, 2 or 5 times a power of ten, written in a unit.

    >>> ticks_to(0.944, 4, unit=0.01, sign="%")
    ((0.0, '0%'), (0.5, '50%'))
    >>> [text for _, text in ticks_to(4.1, 8)]
    ['0', '1', '2', '3', '4']
    """
    step = round_step(high / count)
    return tuple((step * i, f"{step * i / unit:.9g}{sign}") for i in range(int(high / step + 1e-9) + 1))


def round_step(width: float) -> float:
    """The step between ticks: 1, 2 or 5 times a power of ten, at least `width`.

    >>> round_step(0.3), round_step(70.0)
    (0.5, 100.0)
    """
    power = 10.0 ** math.floor(math.log10(width))
    return next(times * power for times in (1, 2, 5, 10) if times * power >= width * (1 - 1e-9))


def _picture(panels: tuple[Panel, ...], name: str, label: str, columns: int, height: float, width: float) -> Element:
    require_count("draw", "columns", columns)
    require(bool(panels), "draw", "panels", "hold at least one", "none")
    each = width / columns
    titles = [_wrapped(panel.title, each - LEFT) for panel in panels]
    height += TITLE_HEIGHT * (max(map(len, titles)) - 1)
    rows = -(-len(panels) // columns)
    svg = Element("svg", {"viewBox": f"0 0 {width:g} {rows * height:g}", "role": "img", "aria-label": label})
    for number, (panel, title) in enumerate(zip(panels, titles, strict=True)):
        row, column = divmod(number, columns)
        left, top = column * each + LEFT, row * height + TOP + TITLE_HEIGHT * (len(title) - 1)
        below = (row + 1) * height - top - BOTTOM
        canvas = _Canvas(panel, SubElement(svg, "g"), left, top, each - LEFT - RIGHT, below)
        for line, text in enumerate(title):
            _text(canvas.group, "title", left, row * height + TOP - 12 + TITLE_HEIGHT * line, text)
        _draw_panel(canvas, f"{name}-{number}")
    return svg


def _wrapped(text: str, width: float) -> list[str]:
    """A title in as many lines as it takes."""
    return textwrap.wrap(text, max(12, int(width / TITLE_LETTER))) or [""]


def _draw_panel(canvas: _Canvas, clip: str) -> None:
    _draw_axes(canvas)
    for trace in canvas.panel.traces:
        places = [canvas.at(x, min(max(y, canvas.panel.y.low), canvas.panel.y.high)) for x, y in trace.points]
        canvas.lines += pairwise(places) if trace.joined and len(places) > 1 else [(place, place) for place in places]
    definition = SubElement(canvas.group, "clipPath", {"id": clip})
    box = {"x": canvas.left, "y": canvas.top, "width": canvas.width, "height": canvas.height}
    SubElement(definition, "rect", {key: f"{value:g}" for key, value in box.items()})
    for bars in canvas.panel.bars:
        _draw_bars(canvas, bars)
    for rule in canvas.panel.rules:
        _draw_rule(canvas, rule)
    for trace in canvas.panel.traces:
        _draw_trace(canvas, trace, clip)
    for mark in canvas.panel.marks:
        _draw_mark(canvas, mark)


def _draw_axes(canvas: _Canvas) -> None:
    group, panel = canvas.group, canvas.panel
    for value, text in panel.y.ticks:
        _, y = canvas.at(panel.x.low, value)
        _line(group, "grid", canvas.left, y, canvas.right, y)
        _text(group, "tick", canvas.left - 7, y + 4, text, anchor="end")
    places = [(canvas.at(value, panel.y.low)[0], text) for value, text in panel.x.ticks]
    for x, _ in places:
        _line(group, "axis", x, canvas.bottom, x, canvas.bottom + 4)
    for x, text in _apart(places):
        _text(group, "tick", x, canvas.bottom + 17, text, anchor="middle")
    _line(group, "axis", canvas.left, canvas.bottom, canvas.right, canvas.bottom)
    _text(group, "name", (canvas.left + canvas.right) / 2, canvas.bottom + 34, panel.x.label, anchor="middle")


def _apart(places: list[tuple[float, str]]) -> list[tuple[float, str]]:
    """Every tick, or every second, or third, so that their texts do not touch."""
    for step in range(1, len(places)):
        chosen = places[::step]
        if all(y - x > LETTER * (len(a) + len(b) + 1) / 2 for (x, a), (y, b) in pairwise(chosen)):
            return chosen
    return places[:1]


def _draw_rule(canvas: _Canvas, rule: Rule) -> None:
    if not canvas.panel.y.low <= rule.value <= canvas.panel.y.high:
        return
    x, y = canvas.at(canvas.panel.x.high, rule.value)
    _line(canvas.group, f"rule {rule.look}", canvas.left, y, canvas.right, y)
    above, below = y - 5, y + LINE_HEIGHT
    places = [
        (x, above, "end"),
        (x, below, "end"),
        (canvas.left + 4, above, "start"),
        (canvas.left + 4, below, "start"),
    ]
    _tag(canvas, canvas.group, f"tag {rule.look}", rule.name, places)
    canvas.lines.append(((canvas.left, y), (canvas.right, y)))


def _draw_bars(canvas: _Canvas, bars: Bars) -> None:
    group = SubElement(canvas.group, "g", {"class": f"bars {bars.look}"})
    for number, (x, y) in enumerate(bars.points):
        left, top = canvas.at(x - bars.width / 2, y)
        right, bottom = canvas.at(x + bars.width / 2, canvas.panel.y.low)
        box = {"x": left, "y": top, "width": right - left, "height": bottom - top}
        shape = SubElement(group, "rect", {key: f"{value:.1f}" for key, value in box.items()})
        if number < len(bars.hints):
            SubElement(shape, "title").text = bars.hints[number]


def _draw_trace(canvas: _Canvas, trace: Trace, clip: str) -> None:
    group = SubElement(canvas.group, "g", {"class": trace.look})
    top, bottom = canvas.panel.y.high, canvas.panel.y.low
    if trace.joined and len(trace.points) > 1:
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in (canvas.at(*point) for point in trace.points))
        SubElement(group, "polyline", {"points": path, "clip-path": f"url(#{clip})"})
    for number, (x, y) in enumerate(trace.points if trace.dots else ()):
        across, up = canvas.at(x, min(max(y, bottom), top))
        if y > top:  # beyond the scale: an arrow head at its edge
            while any(abs(across - taken) < 10 for taken in canvas.beyond):
                across += 10
            canvas.beyond.append(across)
            shape = SubElement(group, "path", {"d": f"M{across - 5:.1f} {up + 8:.1f}h10l-5 -8z"})
        else:
            shape = SubElement(group, "circle", {"cx": f"{across:.1f}", "cy": f"{up:.1f}", "r": "3"})
        if number < len(trace.hints):
            SubElement(shape, "title").text = trace.hints[number]
    if trace.tag and trace.points:
        x, y = canvas.at(*trace.points[-1])
        sides = [(x + 8, "start"), (x - 8, "end")]
        heights = list(_around(y + 4))
        places = [
            (at, height, anchor) for at, anchor in (sides[::-1] if trace.tag_left else sides) for height in heights
        ]
        _tag(canvas, group, "tag", trace.tag, places)


def _tag(canvas: _Canvas, parent: Element, look: str, text: str, places: list[tuple[float, float, str]]) -> None:
    """Write a label at the first place where it covers nothing, or no other label, or at the first of all."""
    boxes = [_box(text, *place) for place in places]
    inside = [canvas.left <= box[0] and box[2] <= canvas.right + RIGHT and box[3] <= canvas.bottom for box in boxes]
    free = [all(not _meet(box, other) for other in canvas.boxes) for box in boxes]
    clear = (
        number
        for number, box in enumerate(boxes)
        if inside[number] and free[number] and not any(_crosses(line, box) for line in canvas.lines)
    )
    near = (number for number in range(len(boxes)) if inside[number] and free[number])
    chosen = next(clear, next(near, 0))
    canvas.boxes.append(boxes[chosen])
    x, y, anchor = places[chosen]
    _text(parent, look, x, y, text, anchor=anchor)


def _box(text: str, x: float, y: float, anchor: str) -> Box:
    """About where a text stands."""
    left = x - LETTER * len(text) if anchor == "end" else x
    return left, y - ASCENT, left + LETTER * len(text), y + DESCENT


def _meet(one: Box, other: Box) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


def _crosses(line: Segment, box: Box) -> bool:
    """Whether a segment has a point in a box: the part of it between the box's left and right, then its heights.

    >>> diagonal = (0.0, 0.0), (9.0, 9.0)
    >>> _crosses(diagonal, (4.0, 3.0, 6.0, 5.0)), _crosses(diagonal, (4.0, 7.0, 6.0, 9.0))
    (True, False)
    """
    (x1, y1), (x2, y2) = sorted(line)
    if x2 < box[0] or box[2] < x1:
        return False
    slope = (y2 - y1) / (x2 - x1) if x2 > x1 else 0.0
    inside = [y1 + slope * (min(max(x, x1), x2) - x1) for x in (box[0], box[2])]
    low, high = (min(inside), max(inside)) if x2 > x1 else (y1, y2)
    return low <= box[3] and box[1] <= high


def _around(y: float) -> Iterator[float]:
    yield y
    for shift in range(2, 80, 2):
        yield y - shift
        yield y + shift


def _draw_mark(canvas: _Canvas, mark: Mark) -> None:
    group = SubElement(canvas.group, "g", {"class": f"mark {mark.look}"})
    x, y = canvas.at(mark.x, mark.y)
    SubElement(group, "circle", {"cx": f"{x:.1f}", "cy": f"{y:.1f}", "r": "7"})
    _line(group, "drop", x, y + 7, x, canvas.bottom)
    low = canvas.bottom - y < 3 * LINE_HEIGHT  # beside the drop line there is no room
    heights = list(_around(y - LINE_HEIGHT if low else canvas.bottom - 6))
    places = [(at, height, anchor) for at, anchor in ((x + 6, "start"), (x - 6, "end")) for height in heights]
    canvas.boxes.append((x - 7, y - 7, x + 7, y + 7))
    _tag(canvas, group, "tag", mark.text, places)


def _line(parent: Element, look: str, x1: float, y1: float, x2: float, y2: float) -> None:
    ends = {"x1": x1, "y1": y1, "x2": x2, "y2": y2}
    SubElement(parent, "line", {"class": look, **{key: f"{value:.1f}" for key, value in ends.items()}})


def _text(parent: Element, look: str, x: float, y: float, text: str, *, anchor: str = "start") -> None:
    attributes = {"class": look, "x": f"{x:.1f}", "y": f"{y:.1f}", "text-anchor": anchor}
    SubElement(parent, "text", attributes).text = text
