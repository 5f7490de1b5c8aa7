"""The learning curve of a run, as a picture that stands alone."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from likewise.reports.charts import WIDTH, Axis, Panel, Trace, draw_alone, round_step, ticks_to

if TYPE_CHECKING:
    from likewise.training import Record


POINTS = 400  # of a line; a long run is drawn by the means of its parts
HEIGHT = 260.0
COLOURS = {
    "loss": "#2456b3",
    "accuracy": "#1f7a46",
    "hard": "#b3261e",
    "semi-hard": "#cf5f00",
    "easy": "#1f7a46",
    "spread": "#7a4fd0",
}
LOOKS = {"accuracy": "accuracy", "hard": "hard", "semi_hard": "semi-hard", "easy": "easy", "mean_distance": "spread"}
MEASURED = (  # heading, the highest value, what is drawn
    ("accuracy on batches, before they are learned from", 1.0, ("accuracy",)),
    ("triplets that are hard, semi-hard, easy", 1.0, ("hard", "semi_hard", "easy")),
    ("mean squared distance of two embeddings (about 2 is spread, 0 collapsed)", 2.2, ("mean_distance",)),
)
STYLE = """
text { font: 11.5px system-ui, sans-serif; fill: #4b5361; } .title { font-size: 13px; font-weight: 620; fill: #1d222b; }
.grid { stroke: #ddd8cd; } .axis { stroke: #737b89; } polyline { fill: none; stroke-width: 1.6; }
.tag { paint-order: stroke; stroke: #fcfbf8; stroke-width: 4px; }
"""


def learning_curve(records: Sequence[Record], *, title: str) -> str:
    """The loss, and what the objective measured, against steps, as one SVG file.

    >>> from likewise.training import Record
    >>> record = Record(0, 0.5, 1e-3, 40, 0.25, {"accuracy": 0.75})
    >>> learning_curve([record], title="digits").startswith("<svg xmlns=")
    True
    """
    panels = learning_panels(records, title=title)
    label = f"Learning curve against steps. {'; '.join(panel.title for panel in panels)}"
    svg = draw_alone(panels, name="learning", label=label, height=HEIGHT)
    looks = "".join(
        f".{look} polyline {{ stroke: {colour}; }} .{look} text {{ fill: {colour}; }} "
        for look, colour in COLOURS.items()
    )
    size = f'width="{WIDTH:g}" height="{len(panels) * HEIGHT:g}"'
    paper = '<rect width="100%" height="100%" fill="#fcfbf8"></rect>'
    head, rest = svg.split(">", 1)
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size}{head[4:]}><style>{STYLE}{looks}</style>{paper}{rest}\n'


def learning_panels(records: Sequence[Record], *, title: str) -> tuple[Panel, ...]:
    """The loss; then, where they were measured, accuracy, shares of triplets and mean squared distance."""
    steps = [record.step + 1 for record in records]
    x = _steps(max(steps, default=1))

    def lines(names: tuple[str, ...]) -> tuple[Trace, ...]:
        known = all(name in record.measures for record in records for name in names)
        values = ([record.measures[name] for record in records] for name in names) if known and records else ()
        return tuple(_line(LOOKS[name], steps, each) for name, each in zip(names, values, strict=False))

    losses = _line("loss", steps, [record.loss for record in records])
    most = max((y for _, y in losses.points), default=1.0) or 1.0
    panels = [Panel(f"{title}: loss", x, _upto(most), (losses,))]
    for heading, highest, names in MEASURED:
        if traces := lines(names):
            panels.append(Panel(heading, x, _upto(highest), traces))
    return tuple(panels)


def _line(name: str, steps: list[int], values: list[float]) -> Trace:
    """A line of at most POINTS points, each the mean of a part of the steps."""
    each = -(-len(steps) // POINTS) or 1
    parts = range(0, len(steps), each)
    points = [(sum(part) / len(part), _mean(values[i : i + each])) for i in parts for part in [steps[i : i + each]]]
    return Trace(
        name, tuple(points), dots=False, tag="" if name in ("loss", "accuracy", "spread") else name, tag_left=True
    )


def _mean(values: list[float]) -> float:
    return math.fsum(values) / len(values)


def _steps(last: int) -> Axis:
    each = round_step(last / 5)
    ticks = tuple((float(step), f"{step:g}") for step in range(0, last + 1, max(1, int(each))))
    return Axis("steps", 0.0, float(max(last, 1)), ticks, log=False)


def _upto(most: float) -> Axis:
    return Axis("", 0.0, 1.05 * most, ticks_to(most, 4), log=False)
