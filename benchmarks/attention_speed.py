"""Attention, ours and others': time and memory against length, both ways and causal, and the cost of a decode step.

Run it as `python -m benchmarks.attention_speed`, on a machine that does nothing else (about a quarter of an hour);
`benchmarks/peers/setup.sh` makes the peers' environment. Every form runs in a process of its own, every timed call
starts with a cold cache. Outputs and gradients are compared with plain float64 forms first, and nothing is reported
when one of them is wrong. Exit code 0: all promises are kept or not judged; 1: one is broken, or an output is wrong.
"""

import re
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import torch
import typer
from rich.console import Console
from rich.progress import Progress

from benchmarks import attention_table
from benchmarks.attention_decoding import CACHE, decode, step_error
from benchmarks.attention_demands import demands, product_rate
from benchmarks.attention_forms import ELU, FAST, PERFORMER, POSITIVE, PRODUCT, TOLERANCE, Form, forms
from benchmarks.attention_problem import CAUSAL, CAUSAL_BACKWARD, FEATURES, HEADS, TASKS, WIDTH, Task, input_bytes
from benchmarks.attention_timing import QUICK, Plan, Results, add_memory, count_ticks, time_all
from benchmarks.harness.measurement import Measurement, write_json
from benchmarks.harness.picture import Panel, draw, in_mebibytes, in_seconds
from benchmarks.harness.worker import PEERS_PYTHON, RESULTS, THREADS, WorkerError
from benchmarks.render import speed_tables

PACKAGES = {PERFORMER: "performer_pytorch", FAST: "fast_transformers.causal_product"}


def peers_in(python: Path) -> tuple[dict[str, str], list[str]]:
    """The peers that an environment has, and notes on those that it has not."""
    found, notes = {}, []
    for name, package in PACKAGES.items():
        reason = "run benchmarks/peers/setup.sh, or give --peers-python"
        if python.exists():
            command = [str(python), "-W", "ignore", "-c", f"import torch, {package}"]
            tried = subprocess.run(command, capture_output=True, text=True)
            if tried.returncode == 0:
                found[name] = str(python)
                continue
            reason = tried.stderr.strip().splitlines()[-1]
        notes.append(f"{name} was not measured: {reason}.")
    return found, notes


def measure(plan: Plan, competitors: list[Form], progress: Progress) -> Results:
    """Check, then time, then weigh, then decode."""
    results = Results()
    bar = progress.add_task("starting", total=count_ticks(plan, competitors) + 2)

    def tick(doing: str) -> None:
        progress.update(bar, advance=1, description=doing)

    times = time_all(plan, competitors, results, tick)
    results.times = add_memory(times, plan, competitors, results, tick)
    tick("decoding: checks")
    for name in (ELU, POSITIVE, CACHE):
        for context in plan.contexts:
            results.check(f"{name}, step after {context}", step_error(name, context), TOLERANCE)
    tick("decoding")
    results.decoding = list(decode(list(plan.contexts), plan.steps, plan.exact_steps))
    return results


def facts(results: Results) -> dict[str, Any]:
    """For JSON: everything but the single times."""
    wanted = demands(results.times, results.decoding, bfloat16_unit=results.machine["bfloat16_unit"])
    (product,) = [each for each in results.times if each.form == PRODUCT]
    return {
        "machine": results.machine,
        "problem": {"B": 1, "H": HEADS, "K": WIDTH, "V": WIDTH, "F": FEATURES, "dtype": "float32"},
        "versions": results.versions,
        "notes": results.notes,
        "product_gflops": product_rate(product) / 1e9,
        "demands": [demand.facts() for demand in wanted],
        "times": [each.facts() for each in results.times if each is not product],
        "decoding": [each.facts() for each in results.decoding],
        "errors": results.errors,
    }


def panels(times: list[Measurement], lengths: tuple[int, ...]) -> list[Panel]:
    """Times of both causal tasks and the memory of the first; below both tasks of both ways, and that of the second."""
    swept = {name for name in (each.form for each in times) if _lengths(times, name) > 1}
    by_time = {task: _curves(times, swept, task, memory=False) for task in TASKS}
    by_memory = {task: _curves(times, swept, task, memory=True) for task in (CAUSAL, CAUSAL_BACKWARD)}
    inputs = {"the inputs q, k, v": [(float(length), input_bytes(length) / 2**20) for length in lengths]}
    time_panels = [Panel(f"time: {task.name}", "length T", by_time[task], tick=in_seconds) for task in TASKS]
    memory_panels = [
        Panel(f"memory: {task.name}", "length T", curves, inputs, tick=in_mebibytes)
        for task, curves in by_memory.items()
    ]
    return [*time_panels[:2], memory_panels[0], *time_panels[2:], memory_panels[1]]


def _lengths(times: list[Measurement], form: str) -> int:
    return len({each.length for each in times if each.form == form})


def _curves(
    times: list[Measurement], swept: set[str], task: Task, *, memory: bool
) -> dict[str, list[tuple[float, float]]]:
    found: dict[str, list[tuple[float, float]]] = {}
    for each in sorted(times, key=lambda each: each.length):
        value = (each.extra_bytes or 0) / 2**20 if memory else each.best
        if each.form in swept and each.task == task.name and value > 0:
            found.setdefault(each.form, []).append((each.length, value))
    return found


def main(
    lengths: Annotated[str, typer.Option(help="Lengths T, with commas between; 128 to 65536 unless given.")] = "",
    quick: Annotated[bool, typer.Option("--quick", help="Short lengths and few rounds, to see that it works.")] = False,
    rounds: Annotated[int, typer.Option(min=1, help="Rounds; a slow form gets fewer.")] = Plan.rounds,
    peers_python: Annotated[Path, typer.Option(help="Python of the peers' environment.")] = PEERS_PYTHON,
    out: Annotated[Path, typer.Option(help="Folder for the JSON and the picture.")] = RESULTS,
    table: Annotated[bool, typer.Option("--table", help="Only the targets, within eight minutes.")] = False,
) -> None:
    """Measure attention against its peers; outputs and gradients are checked first."""
    if table:
        attention_table.main()
    plan = QUICK if quick else replace(Plan(), rounds=rounds)
    if lengths:
        plan = replace(plan, lengths=_parsed(lengths))
    torch.set_num_threads(THREADS)
    console = Console(soft_wrap=True)
    peers, missing = peers_in(peers_python)
    try:
        with Progress(console=Console(stderr=True), transient=True) as progress:
            results = measure(plan, forms(peers), progress)
    except (ValueError, WorkerError) as error:
        console.print(f"[red]{error}")
        raise typer.Exit(1) from error
    if results.machine["load"] > 0.5:
        results.notes.append(f"Others were at work when the run began: load {results.machine['load']:.2g}.")
    results.notes += missing
    name = "attention_speed-quick" if quick else "attention_speed"
    found = facts(results)
    write_json(out / f"{name}.json", found)
    where = "{cpu}, {threads} threads, torch {torch}".format_map(results.machine)
    title = f"Attention, B = 1, H = {HEADS}, K = V = {WIDTH}, float32; {where}"
    draw(out / f"{name}.png", title, panels(results.times, plan.lengths), columns=3)
    console.print(speed_tables(found), markup=False, highlight=False)
    console.print(f"Written to {out}: {name}.json and {name}.png")
    raise typer.Exit(1 if any(demand["holds"] is False for demand in found["demands"]) else 0)


def _parsed(lengths: str) -> tuple[int, ...]:
    if not re.fullmatch(r"[1-9]\d*(,[1-9]\d*)*", lengths):
        raise typer.BadParameter(f"--lengths must be numbers with commas between; got {lengths!r}.")
    return tuple(sorted({int(length) for length in lengths.split(",")}))


if __name__ == "__main__":
    typer.run(main)
