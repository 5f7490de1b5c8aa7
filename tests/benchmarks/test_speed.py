"""The speed benchmark's own checks: a wrong gradient is found, and promises are judged where they were made."""

import math

import pytest
import torch

from benchmarks.attention_demands import EVEN, demands, operations
from benchmarks.attention_forms import ELU, SDPA, TOLERANCE, expected_rows, induced, inputs_of, make, relative_error
from benchmarks.attention_problem import CAUSAL, TASKS, Task, runs
from benchmarks.harness.measurement import Demand, Measurement

LENGTH, ROWS = 11, 5


def found_and_expected(task: Task, rows: int) -> tuple[list[torch.Tensor], tuple[torch.Tensor, ...]]:
    given = inputs_of(ELU)(LENGTH)
    found = runs(lambda causal: make(ELU, causal))[task.name](*given)
    return [x[:, :, -rows:] for x in found], expected_rows(induced(ELU)(task.causal), given, task, rows)


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
@pytest.mark.parametrize("rows", [ROWS, LENGTH])
def test_last_rows_and_all_rows_agree_with_the_plain_form(task: Task, rows: int) -> None:
    found, expected = found_and_expected(task, rows)
    assert relative_error(tuple(found), expected) < TOLERANCE


@pytest.mark.parametrize("number", range(4), ids=["output", "q", "k", "v"])
@pytest.mark.parametrize("wrong", [1.01, math.nan])
def test_a_wrong_output_or_gradient_is_found(number: int, wrong: float) -> None:
    found, expected = found_and_expected(Task(causal=True, backward=True), ROWS)
    found[number] = found[number] * wrong
    assert not relative_error(tuple(found), expected) <= TOLERANCE


def break_even(elu: dict[int, float], sdpa: dict[int, float]) -> Demand:
    """The promise, from a time for every length."""
    times = [
        Measurement(form, length, (seconds,) * 3, task=CAUSAL.name)
        for form, by_length in ((ELU, elu), (SDPA, sdpa))
        for length, seconds in by_length.items()
    ]
    (found,) = [each for each in demands(times, [], bfloat16_unit=True) if each.promise.endswith("from T on")]
    return found


def test_break_even_is_the_length_from_which_on_we_are_never_slower() -> None:
    demand = break_even({128: 2.0, 256: 1.0, 512: 2.0, 1024: 2.0}, {128: 1.0, 256: 1.5, 512: 1.0, 1024: 3.0})
    assert (demand.measured, demand.holds) == (1024, False)


def test_break_even_that_is_never_reached_is_a_broken_promise() -> None:
    demand = break_even({256: 2.0, EVEN: 2.0}, {256: 1.0, EVEN: 1.0})
    assert (demand.measured, demand.holds) == (math.inf, False)


def test_break_even_beyond_what_was_measured_is_not_judged() -> None:
    assert break_even({128: 2.0}, {128: 1.0}).holds is None


def test_operations_are_those_of_the_promise() -> None:
    assert operations(3) == 8 * 3 * (4 * 64 * 64 + 64 * (64 + 64))
