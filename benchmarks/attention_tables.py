"""The tables that benchmarks/attention.py prints."""

from collections.abc import Callable

from rich.console import Console
from rich.table import Table

from benchmarks.attention_problem import input_bytes
from benchmarks.harness.measurement import Demand, Measurement


def show(
    console: Console,
    attention: list[Measurement],
    decoding: list[Measurement],
    wanted: list[Demand],
    notes: list[str],
) -> None:
    """Times, memory, decode steps and promises."""
    weighed = [each for each in attention if each.extra_bytes is not None]
    console.print(_against_length("Time of one forward call, ms: least (median)", "T", attention, _milliseconds))
    console.print(_against_length("Peak memory beyond the inputs, MiB (x inputs)", "T", weighed, _mebibytes))
    console.print(_against_length("One decode step, ms: least (median)", "tokens before it", decoding, _milliseconds))
    console.print(_promises(wanted))
    for note in notes:
        console.print(f"Note: {note}")


def _against_length(title: str, heading: str, measured: list[Measurement], cell: Callable[[Measurement], str]) -> Table:
    names = list(dict.fromkeys(each.form for each in measured))
    cells = {(each.form, each.length): cell(each) for each in measured}
    table = Table(title=title)
    for column in (heading, *names):
        table.add_column(column, justify="right")
    for length in sorted({each.length for each in measured}):
        table.add_row(f"{length}", *(cells.get((name, length), "-") for name in names))
    return table


def _promises(wanted: list[Demand]) -> Table:
    table = Table("promise", title="Promises; ratios of the least times, beside them those of the medians")
    for column in ("bound", "measured", "by median", "verdict"):
        table.add_column(column, justify="right")
    verdicts = {True: "[green]PASS", False: "[red]FAIL", None: "[yellow]not judged"}
    for demand in wanted:
        bound = f"{'>=' if demand.at_least else '<='} {demand.bound:g}x"
        numbers = ("" if x is None else f"{x:.3g}x" for x in (demand.measured, demand.by_median))
        table.add_row(demand.promise, bound, *numbers, f"{verdicts[demand.holds]}{demand.note and f': {demand.note}'}")
    return table


def _milliseconds(each: Measurement) -> str:
    return f"{each.best * 1e3:#.3g} ({each.median * 1e3:#.3g})"


def _mebibytes(each: Measurement) -> str:
    extra = each.extra_bytes or 0
    return f"{extra / 2**20:.1f} ({extra / input_bytes(each.length):.2f})"
