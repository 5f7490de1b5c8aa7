"""What is promised of causal attention, beside what was measured."""

from dataclasses import replace

from benchmarks.attention_forms import ELU, PERFORMER, POSITIVE, SDPA
from benchmarks.attention_problem import input_bytes
from benchmarks.harness.measurement import Demand, Measurement, time_ratio

MISSING = "not measured"
LENGTH, SHORT, LONG = 16384, 4096, 65536  # where the promises are made
FEW, MANY = 1000, 100_000  # tokens before a decode step

Table = dict[tuple[str, int], Measurement]


def demands(attention: list[Measurement], decoding: list[Measurement]) -> list[Demand]:
    """All promises, each with what was measured of it."""
    table = {(each.form, each.length): each for each in attention}
    steps = {(each.form, each.length): each for each in decoding}
    ours = (ELU, POSITIVE)
    return [
        _faster(table, ELU, SDPA, 15),
        _faster(table, ELU, PERFORMER, 200),
        _faster(table, POSITIVE, SDPA, 4),
        *(_growth(table, name) for name in ours),
        *(_memory(table, name) for name in ours),
        *(_decoding(steps, name) for name in ours),
    ]


def _faster(table: Table, ours: str, other: str, bound: float) -> Demand:
    """How many times faster, at the promised length or at the longest before it that both were measured at."""
    promise = f"{ours} faster than {other}, T = {LENGTH}"
    common = [length for name, length in table if name == other and length <= LENGTH and (ours, length) in table]
    if not common:
        return Demand(promise, bound, True, None, note=MISSING)
    length = max(common)
    demand = time_ratio(promise, bound, True, table[other, length], table[ours, length])
    share = f"at T = {length}, {length / LENGTH:.0%} of the promised length"
    return demand if length == LENGTH else replace(demand, note=share)


def _growth(table: Table, name: str) -> Demand:
    promise = f"{name}: time at T = {LONG} / at {SHORT}"
    if not {(name, LONG), (name, SHORT)} <= table.keys():
        return Demand(promise, 18, False, None, note=MISSING)
    return time_ratio(promise, 18, False, table[name, LONG], table[name, SHORT])


def _memory(table: Table, name: str) -> Demand:
    promise = f"{name}: extra memory / inputs, T = {LONG}"
    extra = table[name, LONG].extra_bytes if (name, LONG) in table else None
    if extra is None:
        return Demand(promise, 3, False, None, note=MISSING)
    return Demand(promise, 3, False, extra / input_bytes(LONG))


def _decoding(steps: Table, name: str) -> Demand:
    """By the median of many steps in turns, which disturbances hit alike: the least of so many times says little."""
    promise = f"{name}: decode step after {MANY} tokens / after {FEW}"
    if not {(name, MANY), (name, FEW)} <= steps.keys():
        return Demand(promise, 1.2, False, None, note=MISSING)
    ratio = steps[name, MANY].median / steps[name, FEW].median
    return Demand(promise, 1.2, False, ratio, ratio)
