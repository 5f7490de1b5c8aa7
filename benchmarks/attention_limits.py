"""What keeps linear attention from being faster: its products and exponentials alone, in memory that is there already.

Run it as `python -m benchmarks.attention_limits`, on a machine that does nothing else (about three minutes). For each
promise on speed: the time that it leaves, the time that ours takes, and a floor, which is what PyTorch's operators take
for the same products and exponentials and nothing else, with no memory to be found, no mask, no sum and no quotient.
Where the floor is above what is left, no arrangement of these operators keeps the promise. Then the whole causal loop
by hand in preallocated memory, in several arrangements, each compared with ours before it is timed; and a profile.
"""

import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Annotated, Any, NamedTuple

import torch
import typer
from rich.console import Console
from torch import Tensor
from torch.profiler import ProfilerActivity, profile

from benchmarks.attention_forms import ELU, PERFORMER, POSITIVE, PRODUCT_SIZE, SDPA, forms, make
from benchmarks.attention_problem import BOTH_WAYS, CAUSAL, CAUSAL_BACKWARD, FEATURES, HEADS, WIDTH, Task, inputs
from benchmarks.harness.measurement import machine, write_json
from benchmarks.harness.worker import PEERS_PYTHON, RESULTS, THREADS, WorkerError
from benchmarks.render import limits_tables

LENGTH, CHUNK, PIECE = 16384, 64, 256
TOLERANCE = 1e-4
LISTED = 12  # operators of the profile

Call = Callable[[], object]


class Limit(NamedTuple):
    """A promise: so many times as fast as a peer."""

    form: str
    task: Task
    times: float
    peer: str


LIMITS = (
    Limit(ELU, CAUSAL, 30, SDPA),
    Limit(POSITIVE, CAUSAL, 10, SDPA),
    Limit(ELU, CAUSAL_BACKWARD, 25, SDPA),
    Limit(POSITIVE, BOTH_WAYS, 5, PERFORMER),
)


def product(left: tuple[int, ...], right: tuple[int, ...], *, turned: bool = False) -> Call:
    """left @ right of such shapes, or left' @ right, into memory that is there."""
    one, two = torch.rand(left), torch.rand(right)
    one = one.mT if turned else one
    out = torch.empty(one.shape[0], one.shape[1], two.shape[2])
    return partial(torch.bmm, one, two, out=out)


def exponentials(*shape: int) -> Call:
    """exp of so many numbers, into memory that is there."""
    return partial(torch.exp, torch.rand(shape), out=torch.empty(shape))


def steps(limit: Limit) -> list[Call]:
    """Products and exponentials of PIECE rows of all heads; values carry a column of ones."""
    width, values = (WIDTH if limit.form == ELU else FEATURES), WIDTH + 1
    chunks = HEADS * PIECE // CHUNK
    mapped: list[Call] = [exponentials(HEADS, PIECE, width) for _ in "qk"]
    if limit.form == POSITIVE:
        mapped += [product((HEADS, PIECE, WIDTH), (HEADS, WIDTH, width)) for _ in "qk"]
    if not limit.task.causal:
        sums = product((HEADS, PIECE, width), (HEADS, PIECE, values), turned=True)
        return [*mapped, sums, product((HEADS, PIECE, width), (HEADS, width, values))]
    rows, states, pairs = (chunks, CHUNK, width), (chunks, width, values), (chunks, CHUNK, CHUNK)
    totals = (chunks, CHUNK, values)
    sums = product(rows, totals, turned=True)
    found = [*mapped, sums, product(rows, (chunks, width, CHUNK)), product(rows, states), product(pairs, totals)]
    if limit.task.backward:
        towards_features = product(totals, (chunks, values, width))  # with the states, and with what comes back
        found += [
            *mapped,  # features are not kept, but made again
            sums,  # nor are the states between chunks
            sums,  # what comes back, summed from the end
            product(rows, (chunks, width, CHUNK)),  # pairs, and their gradients
            product(totals, (chunks, values, CHUNK)),
            towards_features,  # factors: with states, with pairs
            product(pairs, rows),
            towards_features,  # weights
            product(pairs, rows, turned=True),
            product(rows, states),  # values
            product(pairs, totals, turned=True),
        ]
    return found


def floor(limit: Limit, rounds: int) -> float:
    """Seconds for LENGTH rows of products and exponentials alone: the sum of each one's least time."""
    return sum(least(call, rounds) for call in steps(limit)) * LENGTH / PIECE


def least(call: Call, rounds: int) -> float:
    """The least of several times, after one that warms up."""
    times = []
    for _ in range(rounds + 1):
        started = perf_counter()
        call()
        times.append(perf_counter() - started)
    return min(times[1:])


class Loop(NamedTuple):
    """Causal attention with elu + 1 by hand: all memory is found once, and used again by every piece."""

    piece: int = PIECE
    chunk: int = CHUNK
    ones: bool = True  # a column of ones beside the values; else denominators are summed apart

    @property
    def name(self) -> str:
        apart = "[V, 1]" if self.ones else "V and denominators apart"
        return f"pieces of {self.piece}, chunks of {self.chunk}, {apart}"

    def prepare(self, q: Tensor, k: Tensor, v: Tensor) -> Callable[[], Tensor]:
        """A call that computes the outputs of these."""
        parts, columns = self.piece // self.chunk, WIDTH + self.ones
        batch = HEADS * parts
        factors, weights, spare = torch.empty(3, HEADS, self.piece, WIDTH)
        values, total = torch.ones(HEADS, self.piece, columns), torch.empty(batch, self.chunk, columns)
        added, states = torch.empty(2, HEADS, parts, WIDTH, columns)
        pairs, state = torch.empty(batch, self.chunk, self.chunk), torch.empty(HEADS, WIDTH, columns)
        below, inside = torch.empty(HEADS, parts, WIDTH, 1), torch.empty(batch, self.chunk, 1)
        out = torch.empty(HEADS, LENGTH, WIDTH)
        before = torch.empty(HEADS, WIDTH, 1)

        def split(x: Tensor) -> Tensor:
            return x.view(batch, -1, x.shape[-1])

        def run() -> Tensor:
            state.zero_()
            before.zero_()
            for start in range(0, LENGTH, self.piece):
                rows = slice(start, start + self.piece)
                phi(q[0, :, rows], factors, spare)
                phi(k[0, :, rows], weights, spare)
                values[..., :WIDTH] = v[0, :, rows]
                torch.bmm(split(weights).mT, split(values), out=added.view(batch, WIDTH, columns))
                for part in range(parts):
                    states[:, part] = state
                    state.add_(added[:, part])
                torch.bmm(split(factors), split(weights).mT, out=pairs)
                pairs.tril_()
                torch.bmm(split(factors), states.view(batch, WIDTH, columns), out=total)
                total.baddbmm_(pairs, split(values))
                whole = total.view(HEADS, self.piece, columns)
                if self.ones:
                    torch.div(whole[..., :WIDTH], whole[..., WIDTH:], out=out[:, rows])
                    continue
                sums = weights.view(HEADS, parts, self.chunk, WIDTH).sum(2)
                for part in range(parts):
                    below[:, part] = before
                    before.add_(sums[:, part, :, None])
                torch.bmm(split(factors), below.view(batch, WIDTH, 1), out=inside)
                inside.add_(pairs.sum(-1, keepdim=True))
                torch.div(whole, inside.view(HEADS, self.piece, 1), out=out[:, rows])
            return out[None]

        return run


def phi(x: Tensor, out: Tensor, spare: Tensor) -> None:
    """min(exp(x), 1) + max(x, 0)."""
    torch.exp(x, out=out).clamp_(max=1)
    out.add_(torch.clamp(x, min=0, out=spare))


LOOPS = (Loop(), Loop(ones=False), Loop(piece=512), Loop(piece=1024), Loop(chunk=128), Loop(chunk=32))


def arrangements(rounds: int, notes: list[str]) -> dict[str, float]:
    """Seconds of ours, of every loop by hand, and of ours compiled, where there is a compiler; answers are compared."""
    q, k, v, _ = inputs(LENGTH)
    ours = partial(make(ELU, True), q, k, v)
    calls: dict[str, Callable[[], Tensor]] = {"likewise": ours}
    calls |= {loop.name: loop.prepare(q, k, v) for loop in LOOPS}
    if shutil.which("c++") or shutil.which("g++"):
        calls["likewise, torch.compile"] = partial(torch.compile(make(ELU, True), dynamic=False), q, k, v)
    else:
        notes.append("torch.compile was not tried: there is no C++ compiler.")
    found = dict.fromkeys(calls, float("inf"))
    with torch.inference_mode():
        expected = ours()
        for name, call in calls.items():
            error = (call() - expected).norm() / expected.norm()
            if not error < TOLERANCE:
                raise ValueError(f"{name} is wrong by {error:.2g}")
        for _ in range(rounds):
            for name, call in calls.items():
                found[name] = min(found[name], least(call, 1))
    return found


def profiled() -> list[tuple[str, float]]:
    """Which operators of ours take which part of the time, the largest first."""
    q, k, v, _ = inputs(LENGTH)
    attend = make(ELU, True)
    with torch.inference_mode(), profile(activities=[ProfilerActivity.CPU]) as seen:
        for _ in range(3):
            attend(q, k, v)
    operators = sorted(seen.key_averages(), key=lambda each: -each.self_cpu_time_total)
    whole = sum(each.self_cpu_time_total for each in operators)
    return [(each.key, each.self_cpu_time_total / whole) for each in operators[:LISTED]]


def measured(rounds: int, peers_python: Path, notes: list[str]) -> dict[tuple[str, str], float]:
    """Seconds of our forms and of the peers that promises are made against, each in a process of its own."""
    by_name = {form.name: form for form in forms({PERFORMER: str(peers_python)})}
    found = {}
    for name, task in dict.fromkeys((who, limit.task) for limit in LIMITS for who in (limit.form, limit.peer)):
        slow = name == SDPA
        try:
            with by_name[name].start() as worker:
                times = [time for _ in range(1 if slow else rounds) for time in worker.seconds(task.name, LENGTH, 2)]
            found[name, task.name] = min(times)
        except (WorkerError, FileNotFoundError) as error:
            notes.append(f"{name} was not measured: {str(error).strip().splitlines()[-1]}")
    return found


def product_rate(rounds: int) -> float:
    """Operations a second of a product of two large matrices."""
    one, two, out = torch.rand(3, PRODUCT_SIZE, PRODUCT_SIZE)
    return 2 * PRODUCT_SIZE**3 / least(partial(torch.mm, one, two, out=out), rounds)


def main(
    rounds: Annotated[int, typer.Option(min=1, help="Times of which the least counts.")] = 10,
    peers_python: Annotated[Path, typer.Option(help="Python of the peers' environment.")] = PEERS_PYTHON,
    out: Annotated[Path, typer.Option(help="Folder for the JSON.")] = RESULTS,
) -> None:
    """Measure floors, arrangements and a profile."""
    torch.set_num_threads(THREADS)
    facts, notes = machine(), list[str]()
    if facts["load"] > 0.5:
        notes.append(f"Others were at work when the run began: load {facts['load']:.2g}.")
    times = measured(rounds, peers_python, notes)
    limits = []
    for limit in LIMITS:
        ours, peer = times.get((limit.form, limit.task.name)), times.get((limit.peer, limit.task.name))
        if ours is not None and peer is not None:
            needed = {"needed": peer / limit.times, "ours": ours, "floor": floor(limit, rounds)}
            limits.append({"promise": f"{limit.form}, {limit.task.name}: {limit.times:g}x {limit.peer}", **needed})
    work = HEADS * LENGTH * (4 * WIDTH * WIDTH + 64 * 2 * WIDTH)
    result: dict[str, Any] = {
        "machine": facts,
        "length": LENGTH,
        "rate": product_rate(rounds),
        "work": work,
        "limits": limits,
        "arrangements": arrangements(rounds, notes),
        "profile": profiled(),
        "notes": notes,
    }
    write_json(out / "attention_limits.json", result)
    Console(soft_wrap=True).print(limits_tables(result), markup=False, highlight=False)


if __name__ == "__main__":
    typer.run(main)
