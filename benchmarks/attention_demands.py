"""What is promised of attention's speed and memory, beside what was measured."""

import math
from dataclasses import replace

from benchmarks.attention_forms import (
    ELU,
    ELU_BF16,
    ELU_ONE,
    ELU_REPEATED,
    FAST,
    PERFORMER,
    POSITIVE,
    POSITIVE_BF16,
    PRODUCT,
    PRODUCT_SIZE,
    SDPA,
)
from benchmarks.attention_problem import BOTH_WAYS, CAUSAL, CAUSAL_BACKWARD, HEADS, WIDTH, Task, input_bytes
from benchmarks.harness.measurement import Demand, Measurement, time_ratio

MISSING = "not measured"
LENGTH, SHORT, LONG = 16384, 4096, 65536  # where the promises are made
FEW, MANY = 1000, 100_000  # tokens before a decode step
EVEN = 512  # from this length on Elu is to be no slower than SDPA
CHUNK = 64  # rows whose pairs are formed at once, in the count of operations

Table = dict[tuple[str, str, int], Measurement]


def demands(times: list[Measurement], decoding: list[Measurement], *, bfloat16_unit: bool) -> list[Demand]:
    """All promises, each with what was measured of it."""
    table = {(each.task, each.form, each.length): each for each in times}
    steps = {(each.form, each.length): each for each in decoding}
    ours = (ELU, POSITIVE)
    return [
        _share_of_product(table),
        _faster(table, CAUSAL, ELU, SDPA, 30),
        _faster(table, CAUSAL, ELU, PERFORMER, 200),
        _faster(table, CAUSAL, ELU, FAST, 1),
        _faster(table, CAUSAL, POSITIVE, SDPA, 10),
        _faster(table, CAUSAL_BACKWARD, ELU, SDPA, 8, SHORT),
        _faster(table, CAUSAL_BACKWARD, ELU, SDPA, 25),
        _faster(table, BOTH_WAYS, POSITIVE, PERFORMER, 5),
        _faster(table, BOTH_WAYS, POSITIVE, SDPA, 10),
        _break_even(table),
        *(_growth(table, name) for name in ours),
        *(_memory(table, name) for name in ours),
        *(_memory_growth(table, name) for name in ours),
        *(_grouped(table, task) for task in (CAUSAL, CAUSAL_BACKWARD)),
        *(_half_precision(table, *pair, bfloat16_unit) for pair in ((ELU, ELU_BF16), (POSITIVE, POSITIVE_BF16))),
        *(_decoding(steps, name) for name in ours),
    ]


def operations(length: int) -> int:
    """Of causal Elu: 4 F V a row to extend and to read the sums, 64 (F + V) for the pairs of its chunk."""
    return HEADS * length * (4 * WIDTH * WIDTH + CHUNK * (WIDTH + WIDTH))


def product_rate(product: Measurement) -> float:
    """Operations in a second of the machine's own product of two square matrices."""
    return 2 * product.length**3 / product.best


def _share_of_product(table: Table) -> Demand:
    promise = f"{ELU}, {CAUSAL.name}, T = {LENGTH}: share of the rate of a matrix product, {PRODUCT_SIZE} cubed"
    product, ours = table.get((PRODUCT, PRODUCT, PRODUCT_SIZE)), table.get((CAUSAL.name, ELU, LENGTH))
    if product is None or ours is None:
        return Demand(promise, 0.4, True, None, note=MISSING, unit="")
    ratio = time_ratio(promise, 0.4, True, product, ours)
    scale = operations(LENGTH) / (2 * PRODUCT_SIZE**3)
    by_best, by_median = (None if x is None else x * scale for x in (ratio.measured, ratio.by_median))
    return replace(ratio, measured=by_best, by_median=by_median, unit="")


def _faster(table: Table, task: Task, ours: str, other: str, bound: float, at: int = LENGTH) -> Demand:
    """How many times faster, at the promised length or at the longest before it that both were measured at."""
    promise = f"{ours} faster than {other}, {task.name}, T = {at}"
    mine = {length for what, name, length in table if (what, name) == (task.name, ours)}
    theirs = {length for what, name, length in table if (what, name) == (task.name, other)}
    common = [length for length in mine & theirs if length <= at]
    if not common:
        return Demand(promise, bound, True, None, note=MISSING)
    length = max(common)
    demand = time_ratio(promise, bound, True, table[task.name, other, length], table[task.name, ours, length])
    share = f"at T = {length}, {length / at:.0%} of the promised length"
    return demand if length == at else replace(demand, note=share)


def _break_even(table: Table) -> Demand:
    """The least measured length from which on Elu is nowhere slower than SDPA."""
    promise = f"{ELU} no slower than {SDPA}, {CAUSAL.name}, from T on"
    lengths = sorted(length for what, name, length in table if (what, name) == (CAUSAL.name, SDPA))
    lengths = [length for length in lengths if (CAUSAL.name, ELU, length) in table]
    if not lengths:
        return Demand(promise, EVEN, False, None, note=MISSING, unit="")

    def reached(by: str) -> float:
        slower = [
            length
            for length in lengths
            if getattr(table[CAUSAL.name, ELU, length], by) > getattr(table[CAUSAL.name, SDPA, length], by)
        ]
        later = [length for length in lengths if not slower or length > max(slower)]
        return float(later[0]) if later else math.inf

    note = f"measured only up to T = {lengths[-1]}" if lengths[-1] < EVEN else ""
    return Demand(promise, EVEN, False, reached("best"), reached("median"), note, unit="")


def _growth(table: Table, name: str) -> Demand:
    promise = f"{name}, {CAUSAL.name}: time at T = {LONG} / at {SHORT}"
    long, short = table.get((CAUSAL.name, name, LONG)), table.get((CAUSAL.name, name, SHORT))
    if long is None or short is None:
        return Demand(promise, 18, False, None, note=MISSING)
    return time_ratio(promise, 18, False, long, short)


def _memory(table: Table, name: str) -> Demand:
    promise = f"{name}, {CAUSAL.name}: extra memory / inputs, T = {LONG}"
    extra = _extra(table, CAUSAL, name, LONG)
    return Demand(promise, 3, False, extra and extra / input_bytes(LONG), note="" if extra else MISSING)


def _memory_growth(table: Table, name: str) -> Demand:
    """Linear in T: four times the length, four times the memory, and a tenth for what the system rounds up."""
    promise = f"{name}, {CAUSAL_BACKWARD.name}: extra memory at T = {LONG} / at {LENGTH}"
    return _memory_ratio(promise, 4.4, *(_extra(table, CAUSAL_BACKWARD, name, length) for length in (LONG, LENGTH)))


def _grouped(table: Table, task: Task) -> Demand:
    promise = f"{ELU_ONE} / repeated to {HEADS}, {task.name}: extra memory, T = {LENGTH}"
    return _memory_ratio(promise, 1, *(_extra(table, task, name, LENGTH) for name in (ELU_ONE, ELU_REPEATED)))


def _memory_ratio(promise: str, bound: float, over: int | None, under: int | None) -> Demand:
    if not over or not under:
        return Demand(promise, bound, False, None, note=MISSING)
    return Demand(promise, bound, False, over / under)


def _extra(table: Table, task: Task, name: str, length: int) -> int | None:
    found = table.get((task.name, name, length))
    return found.extra_bytes if found else None


def _half_precision(table: Table, wide: str, narrow: str, has_unit: bool) -> Demand:
    promise = f"{narrow} faster than float32, {CAUSAL.name}, T = {LENGTH}"
    slow, fast = table.get((CAUSAL.name, wide, LENGTH)), table.get((CAUSAL.name, narrow, LENGTH))
    if slow is None or fast is None:
        return Demand(promise, 1, True, None, note=MISSING)
    demand = time_ratio(promise, 1, True, slow, fast)
    return demand if has_unit else replace(demand, note="the CPU has no bfloat16 unit")


def _decoding(steps: dict[tuple[str, int], Measurement], name: str) -> Demand:
    """By the median of many steps in turns, which disturbances hit alike: the least of so many times says little."""
    promise = f"{name}: decode step after {MANY} tokens / after {FEW}"
    if not {(name, MANY), (name, FEW)} <= steps.keys():
        return Demand(promise, 1.2, False, None, note=MISSING)
    ratio = steps[name, MANY].median / steps[name, FEW].median
    return Demand(promise, 1.2, False, ratio, ratio)
