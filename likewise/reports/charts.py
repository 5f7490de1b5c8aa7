"""Charts of lines and bars as SVG that takes its colours and letters from the page it stands in.

A chart is made of panels, a panel of axes, traces, bars, rules and marks, all of them values. `look` is the class by
which the page's style sheet colours something. The SVG is built as a tree, so that any text in it is escaped.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from xml.etree.ElementTree import Element, SubElement, tostring

from likewise.checks import require, require_count

Number = int | float
WIDTH = 720.0
LEFT, RIGHT, TOP, BOTTOM = 52.0, 14.0, 30.0, 44.0
LINE_HEIGHT = 13.0


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
    tags: list[tuple[float, float]] = field(default_factory=list)  # where text stands
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
    """The chart as one SVG element.

    name: unique on its page. label: what a reader who cannot see it is told. height: of one panel, all included.

    >>> axis = Axis("T", 1.0, 10.0, ((1.0, "1"), (10.0, "10")))
    >>> panel = Panel("a < b", axis, axis, (Trace("elu", ((1.0, 1.0), (10.0, 5.0))),))
    >>> "a &lt; b" in draw((panel,), name="example", label="an example")
    True
    """
    require_count("draw", "columns", columns)
    require(bool(panels), "draw", "panels", "hold at least one", "none")
    rows = -(-len(panels) // columns)
    svg = Element("svg", {"viewBox": f"0 0 {WIDTH:g} {rows * height:g}", "role": "img", "aria-label": label})
    each = WIDTH / columns
    for number, panel in enumerate(panels):
        row, column = divmod(number, columns)
        left, top = column * each + LEFT, row * height + TOP
        canvas = _Canvas(panel, SubElement(svg, "g"), left, top, each - LEFT - RIGHT, height - TOP - BOTTOM)
        _draw_panel(canvas, f"{name}-{number}")
    return tostring(svg, encoding="unicode", short_empty_elements=False)


def _draw_panel(canvas: _Canvas, clip: str) -> None:
    _draw_axes(canvas)
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
    for value, text in panel.x.ticks:
        x, _ = canvas.at(value, panel.y.low)
        _line(group, "axis", x, canvas.bottom, x, canvas.bottom + 4)
        _text(group, "tick", x, canvas.bottom + 17, text, anchor="middle")
    _line(group, "axis", canvas.left, canvas.bottom, canvas.right, canvas.bottom)
    _text(group, "name", (canvas.left + canvas.right) / 2, canvas.bottom + 34, panel.x.label, anchor="middle")
    _text(group, "title", canvas.left, canvas.top - 12, panel.title)


def _draw_rule(canvas: _Canvas, rule: Rule) -> None:
    if not canvas.panel.y.low <= rule.value <= canvas.panel.y.high:
        return
    x, y = canvas.at(canvas.panel.x.high, rule.value)
    _line(canvas.group, f"rule {rule.look}", canvas.left, y, canvas.right, y)
    _text(canvas.group, f"tag {rule.look}", x, y - 5, rule.name, anchor="end")
    canvas.tags.append((x, y - 5))


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
        y = _free(canvas, x, y + 4)
        shift, anchor = (-8, "end") if trace.tag_left else (8, "start")
        _text(group, "tag", x + shift, y, trace.tag, anchor=anchor)


def _free(canvas: _Canvas, x: float, y: float) -> float:
    """The height nearest to y at which no other tag near x is in the way."""
    for candidate in _around(y):
        if all(abs(candidate - other) >= LINE_HEIGHT or abs(x - at) > 60 for at, other in canvas.tags):
            canvas.tags.append((x, candidate))
            return candidate
    return y


def _around(y: float) -> Iterator[float]:
    yield y
    for shift in range(1, 40):
        yield y + shift
        yield y - shift


def _draw_mark(canvas: _Canvas, mark: Mark) -> None:
    group = SubElement(canvas.group, "g", {"class": f"mark {mark.look}"})
    x, y = canvas.at(mark.x, mark.y)
    SubElement(group, "circle", {"cx": f"{x:.1f}", "cy": f"{y:.1f}", "r": "7"})
    _line(group, "drop", x, y + 7, x, canvas.bottom)
    low = canvas.bottom - y < 3 * LINE_HEIGHT  # beside the drop line there is no room
    _text(group, "tag", x + 6, _free(canvas, x, y - LINE_HEIGHT if low else canvas.bottom - 6), mark.text)


def _line(parent: Element, look: str, x1: float, y1: float, x2: float, y2: float) -> None:
    ends = {"x1": x1, "y1": y1, "x2": x2, "y2": y2}
    SubElement(parent, "line", {"class": look, **{key: f"{value:.1f}" for key, value in ends.items()}})


def _text(parent: Element, look: str, x: float, y: float, text: str, *, anchor: str = "start") -> None:
    attributes = {"class": look, "x": f"{x:.1f}", "y": f"{y:.1f}", "text-anchor": anchor}
    SubElement(parent, "text", attributes).text = text
