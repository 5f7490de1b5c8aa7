"""Timing and weighing of all forms: who takes turns with whom, and what is checked before."""

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import Any

from benchmarks.attention_forms import (
    FAST,
    PERFORMER,
    PRODUCT,
    PRODUCT_SIZE,
    Form,
    expected_rows,
    inputs_of,
    relative_error,
)
from benchmarks.attention_problem import CAUSAL, CAUSAL_BACKWARD, TASKS, Task
from benchmarks.harness.measurement import ENOUGH, Measurement, machine
from benchmarks.harness.worker import Worker, WorkerError

CHECKED_LENGTH = 509  # every row and every gradient is checked at this length, several chunks and a bit
CHECKED_ROWS = 8  # the last rows are checked at every length that is timed
SLOW = 1.0  # seconds; the first call of such a form counts, warming up would change nothing
BURST = 0.3  # seconds; a fast form makes several calls each time it is its turn
CALLS = 6

Tick = Callable[[str], None]


@dataclass(frozen=True)
class Plan:
    """How much to measure."""

    lengths: tuple[int, ...] = tuple(2**power for power in range(7, 17))
    weighed: tuple[int, ...] = (1024, 4096, 16384, 65536)
    special: int = 16384  # where bfloat16 and grouped heads are measured
    contexts: tuple[int, ...] = (1000, 100_000)
    rounds: int = 6
    budget: float = 4.0  # seconds per form, task and length, after which three times are enough
    steps: int = 400
    exact_steps: int = 40

    def lengths_of(self, form: Form, task: Task) -> tuple[int, ...]:
        """Where a form is timed."""
        lengths = (self.special,) if form.special else self.lengths
        return tuple(length for length in lengths if length <= form.longest[task])

    def weighed_of(self, form: Form, task: Task) -> tuple[int, ...]:
        """Where its memory is measured: where it is timed, when causal."""
        causal = task in (CAUSAL, CAUSAL_BACKWARD)
        return tuple(length for length in self.lengths_of(form, task) if causal and length in self.weighed)


QUICK = Plan((128, 256), (256,), 256, (100, 1000), rounds=2, budget=0.3, steps=50, exact_steps=10)


@dataclass
class Results:
    """What came out."""

    machine: dict[str, Any] = field(default_factory=machine)  # as it was when the run began
    errors: dict[str, float] = field(default_factory=dict)  # of the checked outputs, by what was checked
    times: list[Measurement] = field(default_factory=list)
    decoding: list[Measurement] = field(default_factory=list)
    versions: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def check(self, what: str, error: float, tolerance: float) -> None:
        """Keep an error, or refuse to go on."""
        if not error <= tolerance:
            raise ValueError(
                f"{what} is wrong: off by {error:.2e} of its norm; at most {tolerance:g}. Nothing reported."
            )
        self.errors[what] = error


@dataclass
class Job:
    """One form, task and length, and its times so far."""

    form: str
    task: str
    length: int
    worker: Worker
    first: float  # its first call warms up, and counts only where that changes nothing
    times: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.times = [self.first] if self.first > SLOW else []

    def take_turn(self, budget: float) -> None:
        """A few more calls, unless they took too long already."""
        if len(self.times) >= ENOUGH and sum(self.times) > budget:
            return
        calls = int(BURST / min(self.first, *self.times, BURST))
        self.times += self.worker.seconds(self.task, self.length, min(calls, CALLS))


def time_all(plan: Plan, competitors: list[Form], results: Results, tick: Tick) -> list[Measurement]:
    """Times of every form at every task and length. A round visits all of them, so a disturbance hits them alike."""
    jobs: list[Job] = []
    with ExitStack() as stack:
        workers = {form.name: stack.enter_context(form.start()) for form in competitors}
        product = stack.enter_context(Worker(competitors[0].python, competitors[0].module, PRODUCT))
        (first,) = product.seconds(PRODUCT, PRODUCT_SIZE)
        jobs.append(Job(PRODUCT, PRODUCT, PRODUCT_SIZE, product, first))
        for form in competitors:
            results.versions.append(workers[form.name].about())
            for task in TASKS:
                if plan.lengths_of(form, task):
                    tick(f"checks: {form.name}, {task.name}")
                    _first_call(form, task, workers[form.name], CHECKED_LENGTH, CHECKED_LENGTH, results)
        for form, task, length in _triples(competitors, plan.lengths_of):
            tick(f"first call: {form.name}, {task.name}, T = {length}")
            try:
                first = _first_call(form, task, workers[form.name], length, min(CHECKED_ROWS, length), results)
            except WorkerError as error:
                if form.name not in (PERFORMER, FAST):
                    raise
                results.notes.append(f"{form.name}, {task.name}, failed at T = {length}: {error}")
                continue
            jobs.append(Job(form.name, task.name, length, workers[form.name], first))
        for turn in range(plan.rounds):
            for job in jobs:
                tick(f"round {turn + 1} of {plan.rounds}: {job.form}, {job.task}, T = {job.length}")
                job.take_turn(plan.budget)
    return [Measurement(job.form, job.length, tuple(job.times), task=job.task) for job in jobs]


def _first_call(form: Form, task: Task, worker: Worker, length: int, rows: int, results: Results) -> float:
    (seconds,) = worker.seconds(task.name, length)
    expected = expected_rows(form.reference(task.causal), inputs_of(form.name)(length), task, rows)
    error = relative_error(worker.last_rows(rows), expected)
    results.check(f"{form.name}, {task.name}, T = {length}, last {rows} rows", error, form.tolerance)
    return seconds


def _triples(competitors: list[Form], lengths: Callable[[Form, Task], tuple[int, ...]]) -> list[tuple[Form, Task, int]]:
    """Every form, task and length; neighbours share a length, so that what is compared runs one after the other."""
    found = [(form, task, length) for task in TASKS for form in competitors for length in lengths(form, task)]
    return sorted(found, key=lambda triple: (TASKS.index(triple[1]), triple[2]))


def add_memory(
    measured: list[Measurement], plan: Plan, competitors: list[Form], results: Results, tick: Tick
) -> list[Measurement]:
    """The same measurements with the memory of one call, in a fresh process each."""
    found: dict[tuple[str, str, int], int] = {}
    for form, task, length in _triples(competitors, plan.weighed_of):
        tick(f"memory: {form.name}, {task.name}, T = {length}")
        try:
            with form.start() as worker:
                found[form.name, task.name, length] = worker.extra_bytes(task.name, length)
        except WorkerError as error:
            results.notes.append(f"No memory of {form.name}, {task.name}, at T = {length}: {error}")
    return [replace(each, extra_bytes=found.get((each.form, each.task, each.length))) for each in measured]


def count_ticks(plan: Plan, competitors: list[Form]) -> int:
    """How often `time_all` and `add_memory` tick."""
    timed, weighed = (len(_triples(competitors, each)) for each in (plan.lengths_of, plan.weighed_of))
    checks = sum(bool(plan.lengths_of(form, task)) for form in competitors for task in TASKS)
    return checks + timed + (timed + 1) * plan.rounds + weighed
