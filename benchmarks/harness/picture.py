"""A picture of measurements: time against length on the left, memory on the right."""

from pathlib import Path

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullFormatter, NullLocator

from benchmarks.harness.measurement import Measurement

# Told apart also by those who see fewer colours (Okabe and Ito), and in print by their markers.
STYLES = (("#0072B2", "o"), ("#009E73", "s"), ("#D55E00", "^"), ("#CC79A7", "D"), ("#56B4E9", "v"), ("#E69F00", "P"))


def draw(path: Path, title: str, measured: list[Measurement], input_bytes: dict[int, int]) -> None:
    """Time and memory of all forms against length, on logarithmic axes; a slope of one is growth like T."""
    with mpl.rc_context({"font.size": 11, "axes.grid": True, "grid.alpha": 0.3, "axes.axisbelow": True}):
        figure = Figure(figsize=(12, 5.2), layout="constrained")
        left, right = figure.subplots(1, 2)
        names = list(dict.fromkeys(each.form for each in measured))
        for name, (colour, marker) in zip(names, STYLES, strict=False):
            mine = [each for each in measured if each.form == name]
            known = [each for each in mine if each.extra_bytes]
            style = {"color": colour, "marker": marker, "linewidth": 2, "label": name}
            left.plot([each.length for each in mine], [each.best for each in mine], **style)
            right.plot([each.length for each in known], [(each.extra_bytes or 0) / 2**20 for each in known], **style)
        in_mib = [size / 2**20 for size in input_bytes.values()]
        right.plot(list(input_bytes), in_mib, color="0.45", linestyle="--", label="the inputs q, k, v themselves")
        _label(left, "time of one forward call, best of the runs", list(input_bytes), _seconds)
        _label(right, "peak memory beyond the inputs, output included", list(input_bytes), _mebibytes)
        figure.legend(*right.get_legend_handles_labels(), loc="outside lower center", ncols=6, frameon=False)
        figure.suptitle(title, fontsize=12)
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=110)


def _label(axes: Axes, title: str, lengths: list[int], unit: FuncFormatter) -> None:
    axes.set(xscale="log", yscale="log", xlabel="length T", title=title)
    axes.set_xticks(lengths, [f"{length // 1024}k" if length % 1024 == 0 else str(length) for length in lengths])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(unit)
    axes.yaxis.set_minor_formatter(NullFormatter())


_seconds = FuncFormatter(lambda value, _: f"{value:g} s" if value >= 1 else f"{value * 1000:g} ms")
_mebibytes = FuncFormatter(lambda value, _: f"{value:g} MiB")
