"""Costs are polynomials in the sizes, confirmed where they were not made; what is none is refused."""

from fractions import Fraction
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

from likewise.cost import NotPolynomial, Uncounted, break_even, cost, cost_polynomial, cost_steps
from likewise.cost.growth import QUANTITIES, BreakEven, never_less, sign_changes, undominated
from likewise.polynomial import Polynomial

N, D, M = map(Polynomial.variable, "NDM")


def attention(N: int, D: int, M: int) -> tuple[Any, ...]:
    return lambda q, k, v: (q @ k.T).softmax(-1) @ v, torch.empty(N, D), torch.empty(N, D), torch.empty(N, M)


def test_every_quantity_is_its_polynomial_at_larger_sizes() -> None:
    growth = cost_polynomial(attention, "NDM")
    sizes = {"N": 101, "D": 17, "M": 31}
    found = cost(*attention(**sizes))
    for quantity in QUANTITIES:
        if quantity != "peak":
            assert growth.of(quantity).evaluate(sizes) == getattr(found, quantity)
    assert max(moment.evaluate(sizes) for moment in growth.peak) == found.peak
    assert growth.macs == N**2 * D + N**2 * M
    assert growth.flops == 2 * growth.macs
    assert (growth.grid, growth.hold_outs, growth.runs) == (12, 4, "12+4 runs")


def test_a_module_has_polynomials_too() -> None:
    def make(d: int, b: int) -> tuple[Any, ...]:
        return nn.Linear(d, 3 * d), torch.empty(b, d)

    growth = cost_polynomial(make, ["b", "d"])
    assert (growth.text("params"), growth.text("macs")) == ("3*d^2 + 3*d", "3*b*d^2")
    assert growth.text("elementwise") == "3*b*d"


def test_degrees_are_raised_until_the_hold_outs_agree() -> None:
    def make(n: int, m: int) -> tuple[Any, ...]:
        return lambda x: x * 2, torch.empty(n, n, n, m)

    growth = cost_polynomial(make, ["n", "m"], quantities=["elementwise"])
    assert (growth.text("elementwise"), growth.runs) == ("n^3*m", "8+4 runs")


def test_a_term_that_the_smallest_sizes_hide_is_found() -> None:
    def make(n: int, m: int) -> tuple[Any, ...]:
        return lambda x: x * 2, torch.empty(n * (n - 2) * (m - 2) + 1)

    growth = cost_polynomial(make, ["n", "m"], quantities=["elementwise"])
    assert growth.text("elementwise") == "n^2*m - 2*n^2 - 2*n*m + 4*n + 1"


@pytest.mark.parametrize("of_size", [lambda n: 2**n, lambda n: n if n < 6 else n * n, lambda n: n // 2])
def test_what_is_no_polynomial_is_refused(of_size: Any) -> None:
    def make(n: int) -> tuple[Any, ...]:
        return lambda x: x + 1, torch.empty(of_size(n))

    message = "cost_polynomial: counts must be polynomials of degree at most 4 in each of n; got others for traffic."
    with pytest.raises(NotPolynomial) as stopped:
        cost_polynomial(make, ["n"], quantities=["traffic"])
    assert str(stopped.value) == message


def doubled_rows(x: Tensor) -> Tensor:
    return torch.stack([row * 2 for row in x])


def test_the_peak_of_a_loop_is_fitted_by_place() -> None:
    growth = cost_polynomial(lambda N, D: (doubled_rows, torch.empty(N, D)), "ND")
    assert growth.text("peak") == "3*N*D"
    assert growth.text("elementwise") == "2*N*D"


def test_of_a_loop_the_largest_turn_counts() -> None:
    def shrinking(x: Tensor) -> None:
        for start in range(len(x)):
            rest = x[start:] * 2
        del rest

    growth = cost_polynomial(lambda N: (shrinking, torch.empty(N)), "N", quantities=["peak"])
    assert growth.text("peak") == "3*N - 1"  # x, the first rest, and the second, shorter by one


def test_events_that_come_and_go_are_refused() -> None:
    def make(n: int) -> tuple[Any, ...]:
        return (lambda x: x.exp() if n % 2 else x.sin()), torch.empty(n)

    with pytest.raises(NotPolynomial, match="peak must have the same events at every size; got others"):
        cost_polynomial(make, ["n"], quantities=["peak"])
    assert cost_polynomial(make, ["n"], quantities=["traffic"]).text("traffic") == "2*n"


def test_a_program_that_does_nothing_peaks_at_its_inputs() -> None:
    assert cost_polynomial(lambda n: (lambda x: x.T, torch.empty(n, n)), "n").text("peak") == "n^2"


def test_an_unknown_operation_is_not_hidden_by_the_fit() -> None:
    with pytest.raises(Uncounted):
        cost_polynomial(lambda n: (torch.linalg.inv, torch.empty(n, n)), "n")


def test_only_fitted_quantities_are_answered() -> None:
    growth = cost_polynomial(attention, "NDM", quantities=["macs"])
    with pytest.raises(ValueError, match="Growth: quantity must be one of 'macs'; got 'peak'"):
        growth.text("peak")
    with pytest.raises(ValueError, match="cost_polynomial: quantities must be one of 'params', 'macs'"):
        cost_polynomial(attention, "NDM", quantities=["mac"])


def test_dominated_moments_are_left_out() -> None:
    assert undominated([2 * N, N, N * D, N, N**2 + 2 * N]) == (N * D, N**2 + 2 * N)
    assert undominated([N * D + 1, D * N]) == (N * D + 1,)
    assert undominated([N, N]) == (N,)
    assert never_less(N * D, N + D - 1)  # (N - 1)(D - 1) >= 0
    assert not never_less(N * D, N + D)


lines = st.lists(st.integers(-30, 30), min_size=2, max_size=4).filter(lambda values: values[-1] != 0)


def value(values: list[int], t: int) -> int:
    return sum(coefficient * t**power for power, coefficient in enumerate(values))


@given(lines)
def test_sign_changes_are_those_of_a_search(values: list[int]) -> None:
    bound = 64  # beyond the Cauchy bound 1 + 30 there is none
    search = [t for t in range(2, bound) if (value(values, t) > 0) != (value(values, t - 1) > 0)]
    assert sign_changes([Fraction(coefficient) for coefficient in values]) == search


@given(lines, lines)
def test_from_the_break_even_on_one_is_cheaper_and_before_it_is_not(first: list[int], second: list[int]) -> None:
    T = Polynomial.variable("T")
    a, b = (sum((c * T**power for power, c in enumerate(values)), Polynomial()) for values in (first, second))
    found = break_even(a, b)
    if found.cheaper is None:
        assert a == b
        return
    cheap, dear = (first, second) if found.cheaper == "a" else (second, first)
    assert found.start is not None
    assert all(value(cheap, t) < value(dear, t) for t in range(found.start, found.start + 200))
    assert found.start == 1 or value(cheap, found.start - 1) >= value(dear, found.start - 1)
    assert break_even(b, a).start == found.start


def test_break_even_takes_the_other_sizes() -> None:
    linear, quadratic = 4 * N * D * M, N**2 * D
    assert break_even(linear, quadratic, over="N", at={"D": 5, "M": 10}) == BreakEven("N", 41, "a")
    assert str(break_even(quadratic, linear, over="N", at={"D": 5, "M": 10})) == "b costs less from N=41 on"
    assert str(break_even(N, 1 * N, over="N")) == "a and b cost the same at every N"
    assert break_even(N, N + 1, over="N").start == 1
    assert break_even(10**30 * N, N**3, over="N").start == 10**15 + 1
    with pytest.raises(ValueError, match="break_even: at must give every size but N; got nothing for D, M"):
        break_even(linear, quadratic, over="N")


def looped(N: int, D: int) -> tuple[Any, ...]:
    def program(q: Tensor, k: Tensor) -> Tensor:
        total = q.new_zeros(len(q))
        for row in k:
            total = total + (q @ row).exp()
        return total

    return program, torch.empty(N, D), torch.empty(N, D)


@pytest.mark.parametrize(("make", "sizes"), [(attention, "NDM"), (looped, "ND")])
def test_steps_add_up_to_the_whole(make: Any, sizes: str) -> None:
    whole, steps = cost_polynomial(make, sizes), cost_steps(make, sizes)
    for quantity in ("macs", "elementwise", "traffic"):
        assert sum((getattr(step, quantity) for step in steps), Polynomial.constant(0)) == whole.of(quantity)


def test_turns_of_a_loop_are_one_step_with_its_source() -> None:
    filled, product, power, added = cost_steps(looped, "ND")
    assert [step.operation for step in (filled, product, power, added)] == ["new_zeros", "mv", "exp", "add"]
    assert product.macs.text("ND") == "N^2*D"
    assert power.elementwise.text("ND") == added.elementwise.text("ND") == "N^2"
    assert product.source == power.source == added.source == "total = total + (q @ row).exp()"
    assert product.place.startswith("test_growth.py:")


def test_products_on_one_line_are_steps_of_their_own() -> None:
    assert [step.macs.text("NDM") for step in cost_steps(attention, "NDM")] == ["N^2*D", "0", "N^2*M"]


def test_a_program_with_other_steps_at_other_sizes_has_no_table() -> None:
    def make(n: int) -> tuple[Any, ...]:
        return lambda x: x.exp() if n < 6 else x.sin(), torch.empty(n)

    with pytest.raises(NotPolynomial):
        cost_steps(make, "n")
