"""Linear attention against its targets: one table, target beside measured, within eight minutes.

Run it as `python -m benchmarks.attention_speed --table` or `python -m benchmarks.attention_table`, on a quiet machine,
and then `python -m benchmarks.render`, which puts the table on docs/attention_measured.md. `--rows 1,2,6` chooses rows
by number and leaves the page alone. Outputs are compared with a plain float64 form first; where one is wrong nothing is
reported. All times are of the public call with fresh outputs, the least of several, in turns; beside them stands what
the processor times say, which others at work on the machine disturb less. Exit code 1: a target is missed, or an output
is wrong.
"""

import resource
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from functools import partial
from statistics import median
from typing import Annotated, Any, NamedTuple

import torch
import typer
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from benchmarks.attention_demands import operations
from benchmarks.attention_forms import (
    ELU,
    FAST,
    PERFORMER,
    POSITIVE,
    PRODUCT_SIZE,
    TOLERANCE,
    expected_rows,
    feature_map,
    forms,
    induced,
    relative_error,
)
from benchmarks.attention_problem import (
    BOTH_WAYS,
    CAUSAL,
    CAUSAL_BACKWARD,
    FEATURES,
    HEADS,
    WIDTH,
    Task,
    inputs,
    outputs,
    outputs_and_gradients,
    projection,
)
from benchmarks.harness.measurement import machine, write_json
from benchmarks.harness.worker import PEERS_PYTHON, RESULTS, THREADS, WorkerError
from likewise.attention import Elu, LinearState, linear_attention
from likewise.attention.native import library, ops

LENGTH, SHORT, LONG = 16384, 4096, 65536
DECODED = 64  # steps in a row, as tokens are decoded: the first few find a state that is no longer in the cache
REPEATED = 50  # decode steps, each of which is too short for the clock of the system
EVEN = (32, 64, 96, 128, 192, 256)
Call = Callable[[], object]


class Row(NamedTuple):
    """A line of the table."""

    what: str
    bound: float | None  # None: shown beside, not demanded
    at_least: bool
    measured: float
    unit: str
    note: str = ""
    by_processor: float | None = None  # the same of processor times

    @property
    def holds(self) -> bool:
        """True if the target is met, or there is none."""
        return self.bound is None or (self.measured >= self.bound if self.at_least else self.measured <= self.bound)

    def line(self) -> str:
        """As printed."""
        sign = ">=" if self.at_least else "<="
        target = "beside" if self.bound is None else f"{sign} {self.bound:g}{self.unit}"
        mark = "" if self.holds else "  MISSED"
        note = f"  ({self.note})" if self.note else ""
        note += "" if self.by_processor is None else f"  by processor time {self.by_processor:.3g}{self.unit}"
        return f"{self.what:<58} {target:>12} {self.measured:>10.3g}{self.unit}{mark}{note}"


class Times(NamedTuple):
    """Of the calls of one thing: seconds that passed, and seconds of the processors."""

    passed: list[float]
    processor: list[float]


class Least(NamedTuple):
    """The least seconds that passed, and the least of the processors."""

    passed: float
    processor: float

    def share(self, parts: int) -> "Least":
        """What one of so many equal parts takes."""
        return Least(self.passed / parts, self.processor / parts)

    def over(self, other: "Least") -> tuple[float, float]:
        """How many times as much it takes, by both."""
        return self.passed / other.passed, self.processor / other.processor


def in_turns(calls: dict[str, Call], rounds: int, *, slow: tuple[str, ...] = ()) -> dict[str, Times]:
    """Times of every call in turns, after one call each that warms up; slow ones have one time, not warmed up."""
    times = {name: Times([], []) for name in calls}
    for turn in range(rounds + 1):
        for name, call in calls.items():
            if name in slow and turn > 0:
                continue
            started, before = time.perf_counter(), time.process_time()
            call()
            passed, processor = time.perf_counter() - started, time.process_time() - before
            if turn > 0 or name in slow:
                times[name].passed.append(passed)
                times[name].processor.append(processor)
    return times


def best(calls: dict[str, Call], rounds: int = 7, *, slow: tuple[str, ...] = ()) -> dict[str, Least]:
    """The least times of every call."""
    return {name: Least(*map(min, times)) for name, times in in_turns(calls, rounds, slow=slow).items()}


def faster(what: str, bound: float | None, ours: Least, theirs: Least, note: str = "") -> Row:
    """How many times as fast ours is."""
    passed, processor = theirs.over(ours)
    return Row(what, bound, True, passed, "x", note, processor)


@contextmanager
def torch_form() -> Generator[None]:
    """Within it the kernel is off."""
    found, library.kernel = library.kernel, library.Kernel(None, "turned off by a benchmark")
    try:
        yield
    finally:
        library.kernel = found


def off(call: Call) -> Call:
    """The call without the kernel."""

    def run() -> None:
        with torch_form():
            call()

    return run


def attends(name: str, task: Task) -> Callable[..., Tensor]:
    """One of our forms."""
    return partial(linear_attention, features=feature_map(name), causal=task.causal)


def call_of(attend: Callable[..., Tensor], task: Task, length: int) -> Call:
    """A call of what a task times."""
    return partial(outputs_and_gradients if task.backward else outputs, attend, *inputs(length))


def sdpa(causal: bool = True) -> Callable[..., Tensor]:
    """PyTorch's own attention."""
    return partial(scaled_dot_product_attention, is_causal=causal)


def check(name: str, task: Task, length: int, rows: int) -> None:
    """Refuse to time what is wrong."""
    tensors = inputs(length)
    run = outputs_and_gradients if task.backward else outputs
    found = tuple(x[:, :, -rows:] for x in run(attends(name, task), *tensors))
    error = relative_error(found, expected_rows(induced(name)(task.causal), tensors, task, rows))
    if not error <= TOLERANCE:
        raise ValueError(f"{name}, {task.name}, T = {length}, is off by {error:.2e}; at most {TOLERANCE:g}.")


def forward() -> Iterator[Row]:
    """1: Elu forward."""
    a = torch.randn(PRODUCT_SIZE, PRODUCT_SIZE)
    calls: dict[str, Call] = {ELU: call_of(attends(ELU, CAUSAL), CAUSAL, LENGTH), "product": lambda: a @ a}
    calls["torch form"] = off(calls[ELU])
    calls["SDPA"] = call_of(sdpa(), CAUSAL, LENGTH)
    found = best(calls, 9) | best({"SDPA": calls.pop("SDPA")}, 2)
    ours, product = found[ELU], found["product"]
    yield faster("Elu forward against SDPA", 60, ours, found["SDPA"], f"{ours.passed * 1e3:.1f} ms")
    rate, work = 2 * PRODUCT_SIZE**3, operations(LENGTH)
    shares = (100 * work / mine / (rate / large) for mine, large in zip(ours, product, strict=True))
    share, by_processor = shares
    note = f"{work / ours.passed / 1e9:.0f} GF/s"
    yield Row("Elu forward, share of the sgemm rate", 50, True, share, " %", note, by_processor)
    yield faster("Elu forward against the torch form", None, ours, found["torch form"])


def backward() -> Iterator[Row]:
    """2: Elu forward and backward."""
    for length, bound in ((SHORT, 15), (LENGTH, 50)):
        calls = {ELU: call_of(attends(ELU, CAUSAL), CAUSAL_BACKWARD, length)}
        calls["SDPA"] = call_of(sdpa(), CAUSAL_BACKWARD, length)
        found = best(calls, 5, slow=("SDPA",))
        note = f"{found[ELU].passed * 1e3:.1f} ms"
        yield faster(f"Elu forward + backward, T = {length}, against SDPA", bound, found[ELU], found["SDPA"], note)


def positive() -> Iterator[Row]:
    """3: Positive causal forward."""
    calls = {POSITIVE: call_of(attends(POSITIVE, CAUSAL), CAUSAL, LENGTH), "SDPA": call_of(sdpa(), CAUSAL, LENGTH)}
    calls["torch form"] = off(calls[POSITIVE])
    found = best(calls, 5, slow=("SDPA",))
    ours = found[POSITIVE]
    note = f"{ours.passed * 1e3:.1f} ms"
    yield faster(f"{POSITIVE} causal forward against SDPA", 15, ours, found["SDPA"], note)
    yield faster(f"{POSITIVE} causal forward against the torch form", 2.5, ours, found["torch form"])


def performer(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """performer-pytorch's formula both ways, where its package is not installed."""
    frequencies = projection()

    def phi(x: Tensor, over: tuple[int, ...]) -> Tensor:
        x = x * x.shape[-1] ** -0.25
        projected = x @ frequencies.mT
        logs = projected - x.square().sum(-1, keepdim=True) / 2 - projected.amax(over, keepdim=True)
        return (logs.exp() + 1e-4) * FEATURES**-0.5

    queries, keys = phi(q, (-1,)), phi(k, (-1, -2))
    return queries @ (keys.mT @ v) / (queries @ keys.sum(-2)[..., None])


def both_ways() -> Iterator[Row]:
    """4: both ways."""
    calls = {POSITIVE: call_of(attends(POSITIVE, BOTH_WAYS), BOTH_WAYS, LENGTH)}
    calls["formula"] = call_of(performer, BOTH_WAYS, LENGTH)
    found = best(calls, 5)
    what = f"both ways {POSITIVE} against performer-pytorch"
    yield faster(f"{what}'s formula", 5, found[POSITIVE], found["formula"], f"{found[POSITIVE].passed * 1e3:.1f} ms")
    theirs = peer(PERFORMER, BOTH_WAYS)
    if theirs is not None:
        yield Row(what, 5, True, theirs / found[POSITIVE].passed, "x", "its package")


def peer(name: str, task: Task) -> float | None:
    """The least time of a peer in its own environment, if that is there."""
    if not PEERS_PYTHON.exists():
        return None
    (form,) = [form for form in forms({name: str(PEERS_PYTHON)}) if form.name == name]
    try:
        with form.start() as worker:
            return min(worker.seconds(task.name, LENGTH, 4))
    except WorkerError:
        return None


def break_even() -> Iterator[Row]:
    """5: the length from which on Elu is nowhere slower."""
    slower = 0
    for length in EVEN:
        q, k, v, _ = inputs(length)
        with torch.inference_mode():
            found = best({ELU: partial(attends(ELU, CAUSAL), q, k, v), "SDPA": partial(sdpa(), q, k, v)}, 200)
        slower = length if found[ELU].passed > found["SDPA"].passed else slower
    even = [length for length in EVEN if length > slower]
    yield Row("break-even with SDPA, T", 128, False, even[0] if even else float("inf"), "")


def exact_step(q: Tensor, k: Tensor, v: Tensor, cache_k: Tensor, cache_v: Tensor) -> Tensor:
    """A step of PyTorch's attention whose cache has room for the token."""
    cache_k[:, :, -1:], cache_v[:, :, -1:] = k, v
    return scaled_dot_product_attention(q, cache_k, cache_v)


class Decoder:
    """Decoding that goes on from turn to turn.

    One that began anew in every turn would give both its states back to the system and have their pages cleared again,
    2,000 of them a state for 64 sequences: ten times what a step takes.
    """

    def __init__(self, state: LinearState) -> None:
        self.state = state

    def decode(self, q: Tensor, k: Tensor, v: Tensor, tokens: int) -> None:
        """So many steps, each after the one before it."""
        for _ in range(tokens):
            _, self.state = self.state.step(q, k, v)


def decoding() -> Iterator[Row]:
    """6 and 7: decode steps."""
    with torch.inference_mode():
        for batch in (1, 64):
            q, k, v = torch.randn(3, batch, HEADS, 1, WIDTH)
            state = LinearState.empty(Elu(), batch=batch, kv_heads=HEADS, value_dim=WIDTH).prefill(q, k, v)[1]
            assert state.memory is not None
            prefix = state.memory.whole
            calls: dict[str, Call] = {
                "op": partial(ops.extend, Elu(), q, k, v, None, prefix),
                "step": partial(state.step, q, k, v),
            }
            if batch > 1:
                cache_k, cache_v = torch.randn(2, batch, HEADS, SHORT + 1, WIDTH)

                calls["cache"] = partial(exact_step, q, k, v, cache_k, cache_v)
                calls["in a row"] = partial(Decoder(state).decode, q, k, v, DECODED)
            found = best(calls, 300 if batch == 1 else 40)
            if batch == 1:
                yield Row("decode step, B = 1, in the op", 15, False, found["op"].passed * 1e6, " us")
                yield Row("decode step, B = 1, from Python", 60, False, found["step"].passed * 1e6, " us")
            else:
                ours, what = found["in a row"].share(DECODED), "decode, B = 64, after 4,096 tokens, against SDPA"
                yield faster(what, 150, ours, found["cache"], f"{ours.passed * 1e3:.2f} ms, {DECODED} steps in a row")
                alone, note = found["step"], f"{found['step'].passed * 1e3:.2f} ms, right after its cache was read"
                yield faster(f"{what}, one step alone", None, alone, found["cache"], note)


def half_precision() -> Iterator[Row]:
    """8: bfloat16."""
    tensors = [x.bfloat16() for x in inputs(LENGTH)]
    calls: dict[str, Call] = {"wide": call_of(attends(ELU, CAUSAL), CAUSAL, LENGTH)}
    calls["half"] = partial(outputs, attends(ELU, CAUSAL), *tensors)
    found = best(calls)
    passed, processor = found["half"].over(found["wide"])
    yield Row("bfloat16 / float32, Elu forward", 1.05, False, passed, "x", by_processor=processor)


def growth() -> Iterator[Row]:
    """9: linear in T."""
    calls = {length: call_of(attends(ELU, CAUSAL), CAUSAL, length) for length in (SHORT, LONG)}
    found = best({str(length): call for length, call in calls.items()})
    passed, processor = found[str(LONG)].over(found[str(SHORT)])
    note = f"{found[str(SHORT)].passed * 1e3:.2f} to {found[str(LONG)].passed * 1e3:.1f} ms"
    yield Row(f"Elu forward, growth {SHORT} -> {LONG}", 19, False, passed, "x", note, processor)


def one_head() -> Iterator[Row]:
    """10: one head on two threads."""
    q, k, v, _ = (x[:, :1] for x in inputs(LENGTH))

    def on(threads: int) -> None:
        torch.set_num_threads(threads)
        with torch.inference_mode():
            linear_attention(q, k, v, features=Elu(), causal=True)
        torch.set_num_threads(THREADS)

    found = best({str(threads): partial(on, threads) for threads in (1, 2)}, 30)
    # Two threads that share the work evenly and wait for nothing would take half of what both took together.
    bound = THREADS * found["1"].processor / found["2"].processor
    note = f"{found['1'].passed * 1e3:.2f} ms on one; by processor time: if both cores were free"
    yield Row("one head on two threads against one", 1.5, True, found["1"].passed / found["2"].passed, "x", note, bound)


def busy() -> Iterator[Row]:
    """11: with a busy loop on each core."""
    calls = {ELU: call_of(attends(ELU, CAUSAL), CAUSAL, LENGTH)}
    calls["torch form"] = off(calls[ELU])
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(THREADS)]
    try:
        times = in_turns(calls, 9)
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()
    ratio = median(times["torch form"].passed) / median(times[ELU].passed)
    yield Row("with a busy loop on each core, against the torch form", 5, True, ratio, "x", "medians")


def peers() -> Iterator[Row]:
    """12: other implementations, beside."""
    ours = best({ELU: call_of(attends(ELU, CAUSAL), CAUSAL, LENGTH)})[ELU]
    theirs = peer(FAST, CAUSAL)
    if theirs is not None:
        yield Row("Elu forward against pytorch-fast-transformers", None, True, theirs / ours.passed, "x")
    theirs = peer(PERFORMER, CAUSAL)
    if theirs is not None:
        yield Row("Elu forward against performer-pytorch, causal", None, True, theirs / ours.passed, "x")

    def plain(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        phi_q, phi_k = (torch.nn.functional.elu(x) + 1 for x in (q, k))
        parts = [x.unflatten(2, (-1, 64)) for x in (phi_q, phi_k, v)]
        added = parts[1].mT @ parts[2]
        states, sums = added.cumsum(2) - added, parts[1].sum(3)
        pairs = (parts[0] @ parts[1].mT).tril()
        under = (parts[0] @ (sums.cumsum(2) - sums)[..., None]) + pairs.sum(-1, keepdim=True)
        return ((parts[0] @ states + pairs @ parts[2]) / under).flatten(2, 3)

    tensors = inputs(LENGTH)
    try:
        compiled = torch.compile(plain)
        found = best({"compiled": partial(outputs, compiled, *tensors)}, 5)["compiled"]
        yield faster("Elu forward against torch.compile of the plain form", None, ours, found)
    except Exception as error:  # a compiler that fails is a note, not the end
        print(f"torch.compile of the plain form was not measured: {type(error).__name__}")
    try:
        from torch.nn.attention.flex_attention import create_block_mask, flex_attention

        mask = create_block_mask(lambda b, h, q, k: q >= k, None, None, LENGTH, LENGTH, device="cpu")
        flex: Any = torch.compile(partial(flex_attention, block_mask=mask))
        found = best({"flex": partial(outputs, flex, *tensors)}, 1)["flex"]
        yield faster("Elu forward against flex_attention, causal softmax", None, ours, found)
    except Exception as error:
        print(f"flex_attention was not measured: {type(error).__name__}")


ROWS: tuple[Callable[[], Iterator[Row]], ...] = (
    forward,
    backward,
    positive,
    both_ways,
    break_even,
    decoding,
    half_precision,
    growth,
    one_head,
    busy,
    peers,
)


class Profile(NamedTuple):
    """Where the time of a call goes: in milliseconds, the least of several; faults are of pages of fresh memory."""

    what: str
    passed: float
    processor: float
    system: float  # of the processor time: the operating system finds and clears pages
    faults: int


def profiled(what: str, call: Call, rounds: int) -> Profile:
    """The call that took the least processor time."""
    call()
    least: Profile | None = None
    for _ in range(rounds):
        before, started = resource.getrusage(resource.RUSAGE_SELF), time.perf_counter()
        call()
        passed, after = time.perf_counter() - started, resource.getrusage(resource.RUSAGE_SELF)
        user, system = after.ru_utime - before.ru_utime, after.ru_stime - before.ru_stime
        faults = after.ru_minflt - before.ru_minflt
        found = Profile(what, passed * 1e3, (user + system) * 1e3, system * 1e3, faults)
        least = found if least is None or found.processor < least.processor else least
    assert least is not None
    return least


def profile() -> list[Profile]:
    """The calls of the table, and the parts of a decode step."""
    found = [
        profiled(f"Elu forward, T = {length}", call_of(attends(ELU, CAUSAL), CAUSAL, length), 9)
        for length in (SHORT, LENGTH, LONG)
    ]
    found.append(profiled(f"{POSITIVE} forward, T = {LENGTH}", call_of(attends(POSITIVE, CAUSAL), CAUSAL, LENGTH), 5))
    backward = call_of(attends(ELU, CAUSAL), CAUSAL_BACKWARD, LENGTH)
    found.append(profiled(f"Elu forward + backward, T = {LENGTH}", backward, 5))
    tensors = [x[:, :1] for x in inputs(LENGTH)]
    for threads in (1, THREADS):
        torch.set_num_threads(threads)
        head = partial(outputs, attends(ELU, CAUSAL), *tensors)
        found.append(profiled(f"Elu forward, one head, T = {LENGTH}, threads: {threads}", head, 15))
    with torch.inference_mode():
        for batch in (1, 64):
            q, k, v = torch.randn(3, batch, HEADS, 1, WIDTH)
            state = LinearState.empty(Elu(), batch=batch, kv_heads=HEADS, value_dim=WIDTH).prefill(q, k, v)[1]
            assert state.memory is not None
            prefix = state.memory.whole
            calls: dict[str, Call] = {
                "three new tensors": lambda q=q, k=k, v=v: (ops._outputs(q, v), ops._states(k, v, ops.ELU, WIDTH)),
                "the kernel, its call and three new tensors": partial(ops.extend, Elu(), q, k, v, None, prefix),
                "the step, with its checks": partial(state.step, q, k, v),
            }
            for name, call in calls.items():
                repeated = profiled(f"decode step, B = {batch}: {name}", partial(_again, call, REPEATED), 10)
                numbers = [seconds / REPEATED for seconds in repeated[1:4]]
                found.append(Profile(repeated.what, *numbers, repeated.faults // REPEATED))
    return found


def _again(call: Call, times: int) -> None:
    for _ in range(times):
        call()


def table(chosen: list[int]) -> list[Row]:
    """Check, then measure the chosen rows, printing each as it comes."""
    torch.set_num_threads(THREADS)
    for name in (ELU, POSITIVE):
        for task in (CAUSAL, CAUSAL_BACKWARD, BOTH_WAYS):
            check(name, task, 509, 509)
        check(name, CAUSAL, LENGTH, 8)
    found = []
    for number in chosen:
        for row in ROWS[number - 1]():
            print(row.line(), flush=True)
            found.append(row)
    return found


def main(
    rows: Annotated[str, typer.Option(help=f"Numbers 1 to {len(ROWS)} with commas between; all unless given.")] = "",
) -> None:
    """Measure linear attention against its targets; outputs and gradients are checked first."""
    chosen = [int(number) for number in rows.split(",")] if rows else list(range(1, len(ROWS) + 1))
    load = machine()["load"]
    print(f"kernel {library.about()}; load {load:.2g}; target beside measured")
    try:
        found = table(chosen)
    except ValueError as error:
        print(error)
        raise typer.Exit(1) from error
    whole = len(chosen) == len(ROWS)
    parts = profile() if whole else []
    for part in parts:
        print(f"{part.what:<76} {part.passed:>9.4g} ms {part.processor:>9.4g} {part.system:>9.4g} {part.faults:>8}")
    facts = {
        "machine": machine() | {"load": load},
        "kernel": library.about(),
        "rows": [row._asdict() | {"holds": row.holds} for row in found],
        "profile": [part._asdict() for part in parts],
    }
    write_json(RESULTS / ("attention_table.json" if whole else "attention_table-quick.json"), facts)
    raise typer.Exit(0 if all(row.holds for row in found) else 1)


if __name__ == "__main__":
    typer.run(main)
