"""A diagnosis of attention heads as a picture: heads by maps."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING
from xml.etree.ElementTree import Element, SubElement, tostring

from likewise.text import length, short

if TYPE_CHECKING:
    from likewise.attention.diagnose import Diagnosis, HeadDiagnosis, Measurement


CELL, ROW, LEFT, TOP, RIGHT, BOTTOM = 46.0, 26.0, 64.0, 208.0, 330.0, 84.0
LEGEND = 1260.0  # its width
# Steps of error / wanted error, from met with ease to lost, the colour of each and that of text on it.
SHADES = (
    (0.1, "at most a tenth of the wanted error", "#1f7a46", "#ffffff"),
    (1.0, "at most the wanted error", "#a9d8b8", "#1d222b"),
    (3.0, "up to 3 times it", "#fbe3c8", "#1d222b"),
    (10.0, "up to 10 times it", "#f2b27c", "#1d222b"),
    (math.inf, "more", "#c9632a", "#ffffff"),
)
INK, SOFT, PAPER = "#1d222b", "#4b5361", "#fcfbf8"


def diagnosis_picture(diagnosis: Diagnosis) -> str:
    """Heads by maps, from cheap to dear: each cell is an error, shaded by how it compares with the wanted one.

    The advised cell of a head has a frame. The first two columns are what a map must beat.
    """
    columns = sorted(diagnosis.heads[0].measurements, key=lambda m: (m.macs, m.map))
    names = ["mean of V", "Taylor-2", *(m.label for m in columns)]
    costs = ["", "", *(_thousands(m.macs) for m in columns)]
    width, height = max(LEGEND, _left(len(names)) + RIGHT), TOP + ROW * len(diagnosis.heads) + BOTTOM
    box = f"0 0 {width:g} {height:g}"
    svg = Element("svg", {"xmlns": "http://www.w3.org/2000/svg", "viewBox": box, "role": "img"})
    svg.set("width", f"{width:g}")
    svg.set("height", f"{height:g}")
    svg.set("font-family", "system-ui, 'Segoe UI', 'Liberation Sans', Arial, sans-serif")
    SubElement(svg, "title").text = "Error of linear attention by head and map"
    SubElement(svg, "rect", {"width": "100%", "height": "100%", "fill": PAPER})
    _text(svg, 20, 32, "What each head loses when softmax is replaced", size=18, weight="600")
    direction = "causal" if diagnosis.causal else "both directions"
    about = (
        f"relative squared error of the output, wanted {diagnosis.wanted_error:g}; {direction}, {diagnosis.rows} rows"
    )
    _text(svg, 20, 52, f"{about}; {diagnosis.held_out}", size=12, fill=SOFT)
    for number, (name, cost) in enumerate(zip(names, costs, strict=True)):
        x = _left(number) + CELL / 2
        label = _text(svg, x + 4, TOP - 8, name, size=11)
        label.set("transform", f"rotate(-45 {x + 4:g} {TOP - 8:g})")
        _text(svg, x, TOP + ROW * len(diagnosis.heads) + 18, cost, size=11, fill=SOFT, anchor="middle")
    bottom = TOP + ROW * len(diagnosis.heads)
    note = f"MACs per token and head (softmax: {_thousands(diagnosis.softmax_macs)})"
    _text(svg, _left(len(names)) + 12, bottom + 18, note, size=11, fill=SOFT)
    for row, head in enumerate(diagnosis.heads):
        _draw_head(svg, TOP + ROW * row, head, columns, diagnosis.wanted_error)
    _draw_legend(svg, bottom + 52)
    return tostring(svg, encoding="unicode")


def _draw_head(svg: Element, top: float, head: HeadDiagnosis, columns: list[Measurement], wanted: float) -> None:
    measured = {(m.map, m.exact_within): m for m in head.measurements}
    errors = [head.mean_of_values_error, head.taylor_error]
    errors += [measured[column.map, column.exact_within].squared_error for column in columns]
    hints = ["mean of V", "Taylor-2", *(column.label for column in columns)]
    _text(svg, LEFT - 10, top + 17, f"head {head.head}", size=12, anchor="end")
    for number, (error, hint) in enumerate(zip(errors, hints, strict=True)):
        colour, ink = next((colour, ink) for step, _, colour, ink in SHADES if error <= step * wanted)
        place = {"x": f"{_left(number) + 1:g}", "y": f"{top + 1:g}", "width": f"{CELL - 2:g}", "height": f"{ROW - 2:g}"}
        cell = SubElement(svg, "rect", {**place, "fill": colour})
        SubElement(cell, "title").text = f"head {head.head}, {hint}: {error:.3g}"
        _text(svg, _left(number) + CELL / 2, top + 17, _brief(error), size=11, fill=ink, anchor="middle")
        if number >= 2 and (columns[number - 2].map, columns[number - 2].exact_within) == (
            head.advice.map,
            head.advice.exact_within,
        ):
            SubElement(svg, "rect", {**place, "fill": "none", "stroke": INK, "stroke-width": "2.5"})
    advice = "do not linearise" if head.advice.map is None else head.shown.label
    weight = "400" if head.advice.map is None else "600"
    _text(svg, _left(len(errors)) + 12, top + 17, advice, size=12, weight=weight)


def _draw_legend(svg: Element, y: float) -> None:
    x = LEFT
    for _, name, colour, _ in SHADES:
        SubElement(svg, "rect", {"x": f"{x:g}", "y": f"{y:g}", "width": "16", "height": "14", "fill": colour})
        _text(svg, x + 22, y + 11, name, size=11, fill=SOFT)
        x += 42 + 6.0 * len(name)
    frame = {"x": f"{x:g}", "y": f"{y:g}", "width": "16", "height": "14", "fill": "none", "stroke": INK}
    SubElement(svg, "rect", {**frame, "stroke-width": "2.5"})
    _text(
        svg,
        x + 22,
        y + 11,
        "advised: the cheapest that meets the wanted error and beats the mean of V",
        size=11,
        fill=SOFT,
    )


def _left(number: int) -> float:
    """Where a column begins; the two baselines stand a little apart."""
    return LEFT + CELL * (number + (0.5 if number >= 2 else 0))


def _thousands(macs: int) -> str:
    """Multiply-adds in a few letters.

    >>> _thousands(6272), _thousands(1048640), _thousands(812)
    ('6.3k', '1.0M', '812')
    """
    for factor, unit in ((1e6, "M"), (1e3, "k")):
        if macs >= factor:
            return f"{short(macs / factor, 2 if macs < 10 * factor else 3)}{unit}"
    return length(macs)


def _brief(error: float) -> str:
    """An error in five letters or less.

    >>> _brief(0.0123), _brief(1.8e-7), _brief(7.25), _brief(43210.0), _brief(math.inf)
    ('.012', '2e-7', '7.2', '4e4', 'inf')
    """
    if not math.isfinite(error) or error == 0:
        return f"{error:g}"
    if error < 0.001 or error >= 1000:
        mantissa, exponent = f"{error:.0e}".split("e")
        return f"{mantissa}e{int(exponent)}"
    return f"{error:.2g}".removeprefix("0") if error < 100 else f"{error:.0f}"


def _text(
    parent: Element,
    x: float,
    y: float,
    text: str,
    *,
    size: int,
    fill: str = INK,
    anchor: str = "start",
    weight: str = "400",
) -> Element:
    place = {"x": f"{x:g}", "y": f"{y:g}", "font-size": f"{size}", "font-weight": weight}
    element = SubElement(parent, "text", {**place, "fill": fill, "text-anchor": anchor})
    element.text = text
    return element
