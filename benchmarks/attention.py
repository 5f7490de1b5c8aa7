"""Causal attention, ours and others': time and memory against length, and the cost of a decode step.

Run it as `python benchmarks/attention.py`, on a machine that does nothing else; `benchmarks/peers/setup.sh` makes the
peers' environment. Every form runs in a process of its own. Outputs are compared with plain float64 forms first, and
nothing is reported when one of them is wrong. Exit code 0: all promises are kept or not judged; 1: one is broken, or an
output is wrong.
"""

import re
import sys
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import Progress

from benchmarks.attention_decoding import CACHE, decode, step_error
from benchmarks.attention_demands import demands
from benchmarks.attention_forms import ELU, PERFORMER, POSITIVE, TOLERANCE, Form, forms, relative_error
from benchmarks.attention_problem import FEATURES, HEADS, WIDTH, input_bytes
from benchmarks.attention_tables import show
from benchmarks.harness.measurement import ENOUGH, Measurement, machine, write_json
from benchmarks.harness.picture import draw
from benchmarks.harness.worker import ROOT, Worker, WorkerError

CHECKED_LENGTH = 509  # every row is checked at this length, several chunks and a bit
CHECKED_ROWS = 8  # the last rows are checked at every length that is timed
SLOW = 1.0  # seconds; the first call of such a form counts, warming up would change nothing
BURST = 0.3  # seconds; a fast form makes several calls each time it is its turn
CALLS = 6

Tick = Callable[[str], None]


@dataclass(frozen=True)
class Plan:
    """How much to measure."""

    lengths: tuple[int, ...] = tuple(2**power for power in range(9, 17))
    contexts: tuple[int, ...] = (1000, 100_000)
    rounds: int = 6
    budget: float = 20.0  # seconds per form and length, after which three times are enough
    peers_longest: int = 16384
    steps: int = 400
    exact_steps: int = 40


QUICK = Plan((256, 512, 1024), (100, 1000), rounds=2, budget=1.0, peers_longest=256, steps=50, exact_steps=10)


@dataclass
class Results:
    """What came out."""

    machine: dict[str, Any] = field(default_factory=machine)  # as it was when the run began
    errors: dict[str, float] = field(default_factory=dict)  # of the checked outputs, by what was checked
    attention: list[Measurement] = field(default_factory=list)
    decoding: list[Measurement] = field(default_factory=list)
    versions: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def check(self, what: str, error: float) -> None:
        """Keep an error, or refuse to go on."""
        if not error <= TOLERANCE:
            raise ValueError(
                f"{what} is wrong: off by {error:.2e} of its norm; at most {TOLERANCE:g}. Nothing reported."
            )
        self.errors[what] = error


@dataclass
class Job:
    """One form at one length, and its times so far."""

    form: Form
    length: int
    worker: Worker
    first: float  # its first call warms up, and counts only where that changes nothing
    times: list[float]

    def take_turn(self, budget: float) -> None:
        """A few more calls, unless they took too long already."""
        if len(self.times) >= ENOUGH and sum(self.times) > budget:
            return
        calls = int(BURST / min(self.first, *self.times, BURST))
        self.times += self.worker.seconds(self.length, min(calls, CALLS))


def time_all(plan: Plan, competitors: list[Form], results: Results, tick: Tick) -> list[Measurement]:
    """Times of every form at every length. A round visits all of them, so a disturbance hits them alike."""
    jobs: list[Job] = []
    with ExitStack() as stack:
        workers = {form.name: stack.enter_context(form.start()) for form in competitors}
        for form in competitors:
            results.versions.append(workers[form.name].about())
            _first_call(form, workers[form.name], CHECKED_LENGTH, CHECKED_LENGTH, results)
        for form, length in _pairs(plan.lengths, competitors):
            tick(f"first call: {form.name}, T = {length}")
            try:
                first = _first_call(form, workers[form.name], length, CHECKED_ROWS, results)
            except WorkerError as error:
                if form.name != PERFORMER:
                    raise
                results.notes.append(f"{form.name} failed at T = {length}: {error}")
                continue
            jobs.append(Job(form, length, workers[form.name], first, [first] if first > SLOW else []))
        for turn in range(plan.rounds):
            for job in jobs:
                tick(f"round {turn + 1} of {plan.rounds}: {job.form.name}, T = {job.length}")
                job.take_turn(plan.budget)
    return [Measurement(job.form.name, job.length, tuple(job.times)) for job in jobs]


def _first_call(form: Form, worker: Worker, length: int, rows: int, results: Results) -> float:
    (seconds,) = worker.seconds(length)
    results.check(
        f"{form.name}, T = {length}, last {rows} rows", relative_error(form.reference, worker.last_rows(rows), length)
    )
    return seconds


def _pairs(lengths: tuple[int, ...], competitors: list[Form]) -> list[tuple[Form, int]]:
    return [(form, length) for length in lengths for form in competitors if length <= form.longest]


def add_memory(
    measured: list[Measurement], plan: Plan, competitors: list[Form], results: Results, tick: Tick
) -> list[Measurement]:
    """The same measurements with the memory of one call, in a fresh process each."""
    found: dict[tuple[str, int], int] = {}
    for form, length in _pairs(plan.lengths, competitors):
        tick(f"memory: {form.name}, T = {length}")
        try:
            with form.start() as worker:
                found[form.name, length] = worker.extra_bytes(length)
        except WorkerError as error:
            results.notes.append(f"No memory of {form.name} at T = {length}: {error}")
    return [replace(each, extra_bytes=found.get((each.form, each.length))) for each in measured]


def measure(plan: Plan, competitors: list[Form], progress: Progress) -> Results:
    """Check, then time, then weigh, then decode."""
    results = Results()
    task = progress.add_task("first checks", total=len(_pairs(plan.lengths, competitors)) * (plan.rounds + 2) + 2)

    def tick(doing: str) -> None:
        progress.update(task, advance=1, description=doing)

    times = time_all(plan, competitors, results, tick)
    results.attention = add_memory(times, plan, competitors, results, tick)
    tick("decoding: checks")
    for name in (ELU, POSITIVE, CACHE):
        for context in plan.contexts:
            results.check(f"{name}, step after {context}", step_error(name, context))
    tick("decoding")
    results.decoding = list(decode(list(plan.contexts), plan.steps, plan.exact_steps))
    return results


def report(results: Results, plan: Plan, out: Path, console: Console) -> bool:
    """Print tables, write JSON and the picture; whether no promise is broken."""
    wanted = demands(results.attention, results.decoding)
    show(console, results.attention, results.decoding, wanted, results.notes)
    write_json(
        out.with_suffix(".json"),
        {
            "machine": results.machine,
            "problem": {"causal": True, "B": 1, "H": HEADS, "K": WIDTH, "V": WIDTH, "F": FEATURES, "dtype": "float32"},
            "versions": results.versions,
            "notes": results.notes,
            "demands": [demand.facts() for demand in wanted],
            "attention": [each.facts() for each in results.attention],
            "decoding": [each.facts() for each in results.decoding],
            "errors": results.errors,
        },
    )
    shape = f"B = 1, H = {HEADS}, K = V = {WIDTH}, float32"
    where = "{cpu}, {threads} threads, torch {torch}".format_map(results.machine)
    draw(
        out.with_suffix(".png"),
        f"Causal attention, {shape}; {where}",
        results.attention,
        {length: input_bytes(length) for length in plan.lengths},
    )
    console.print(f"Written to {out.parent}: {out.name}.json and {out.name}.png")
    return all(demand.holds is not False for demand in wanted)


def main(
    lengths: Annotated[str, typer.Option(help="Lengths T, with commas between; 512 to 65536 unless given.")] = "",
    quick: Annotated[bool, typer.Option("--quick", help="Short lengths and few rounds, to see that it works.")] = False,
    rounds: Annotated[int, typer.Option(min=1, help="Rounds; a slow form gets fewer.")] = 6,
    peers_python: Annotated[Path, typer.Option(help="Python of the peers' environment.")] = ROOT / ".peers/bin/python",
    out: Annotated[Path, typer.Option(help="Folder for the JSON and the picture.")] = ROOT / "benchmarks/results",
) -> None:
    """Measure causal attention against its peers; outputs are checked first."""
    plan = QUICK if quick else replace(Plan(), rounds=rounds)
    if lengths:
        plan = replace(plan, lengths=_parsed(lengths))
    has_peers = peers_python.exists()
    competitors = forms(str(peers_python) if has_peers else None)
    competitors = [replace(f, longest=plan.peers_longest) if f.name == PERFORMER else f for f in competitors]
    console = Console(width=None if sys.stdout.isatty() else 140)
    try:
        with Progress(console=Console(stderr=True), transient=True) as progress:
            results = measure(plan, competitors, progress)
    except (ValueError, WorkerError) as error:
        console.print(f"[red]{error}")
        raise typer.Exit(1) from error
    if results.machine["load"] > 0.5:
        results.notes.append(f"Others were at work when the run began: load {results.machine['load']:.2g}.")
    if not has_peers:
        results.notes.append("The peers are missing: run benchmarks/peers/setup.sh, or give --peers-python.")
    name = "attention-quick" if quick else "attention"
    kept = report(results, plan, out / name, console)
    raise typer.Exit(0 if kept else 1)


def _parsed(lengths: str) -> tuple[int, ...]:
    if not re.fullmatch(r"[1-9]\d*(,[1-9]\d*)*", lengths):
        raise typer.BadParameter(f"--lengths must be numbers with commas between; got {lengths!r}.")
    return tuple(sorted({int(length) for length in lengths.split(",")}))


if __name__ == "__main__":
    typer.run(main)
