"""Pictures of measurements: panels with curves on logarithmic axes."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Told apart also by those who see fewer colours (Okabe and Ito), and in print by their markers.
STYLES = (
    ("#0072B2", "o"),
    ("#009E73", "s"),
    ("#D55E00", "^"),
    ("#CC79A7", "D"),
    ("#56B4E9", "v"),
    ("#E69F00", "P"),
    ("#000000", "X"),
    ("#7F5F00", "<"),
    ("#999999", "*"),
)


def plain(value: float) -> str:
    """Label of a tick without a unit."""
    return f"{value:g}"


def in_seconds(value: float) -> str:
    """Label of a tick in seconds."""
    return f"{value:g} s" if value >= 1 else f"{value * 1000:g} ms"


def in_mebibytes(value: float) -> str:
    """Label of a tick in MiB."""
    return f"{value:g} MiB"


@dataclass(frozen=True)
class Panel:
    """Curves by name, each of points (x, y), and dashed lines: a level (y) is one across the panel."""

    title: str
    x_label: str
    curves: dict[str, list[tuple[float, float]]]
    dashed: dict[str, list[tuple[float, float]]] = field(default_factory=dict)
    tick: Callable[[float], str] = plain
    limits: tuple[float, float] | None = None  # of y; what lies beyond is not shown


def draw(path: Path, title: str, panels: Sequence[Panel], columns: int) -> None:
    """Panels in rows; a name has the same colour and marker in all of them, and one entry in the legend."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    names = list(dict.fromkeys(name for panel in panels for name in panel.curves))
    styles = dict(zip(names, STYLES, strict=False))
    rows = -(-len(panels) // columns)
    with mpl.rc_context({"font.size": 11, "axes.grid": True, "grid.alpha": 0.3, "axes.axisbelow": True}):
        figure = Figure(figsize=(4.6 * columns, 4.1 * rows + 1), layout="constrained")
        entries = {}
        for axes, panel in zip(figure.subplots(rows, columns, squeeze=False).flat, panels, strict=True):
            for name, points in panel.curves.items():
                colour, marker = styles[name]
                (entries[name],) = axes.plot(*zip(*points, strict=True), color=colour, marker=marker, linewidth=1.8)
            for name, points in panel.dashed.items():
                (entries[name],) = axes.plot(*zip(*points, strict=True), color="0.45", linestyle="--")
            _label(axes, panel)
        figure.legend(list(entries.values()), list(entries), loc="outside lower center", ncols=5, frameon=False)
        figure.suptitle(title, fontsize=13)
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=90)


def _label(axes: "Axes", panel: Panel) -> None:
    from matplotlib.ticker import NullFormatter, NullLocator

    ticks = sorted(
        {x for points in (*panel.curves.values(), *panel.dashed.values()) for x, _ in points if _is_power(x)}
    )
    axes.set(xscale="log", yscale="log", xlabel=panel.x_label, title=panel.title, ylim=panel.limits)
    axes.set_xticks(ticks[-1::-2], [f"{x / 1024:g}k" if x >= 1024 else f"{x:g}" for x in ticks[-1::-2]])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(lambda value, _: panel.tick(value))
    axes.yaxis.set_minor_formatter(NullFormatter())


def _is_power(x: float) -> bool:
    return x == int(x) and int(x).bit_count() == 1
