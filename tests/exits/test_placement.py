"""Heads stand where they spare most."""

from itertools import combinations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from likewise.exits import suggest_placement


def spent(histogram: list[int], costs: list[float], at: tuple[int, ...], head_cost: float) -> float:
    """One example after the other."""
    total, end = 0.0, len(costs) - 1
    for depth, count in enumerate(histogram):
        leaves = [place for place in at if place >= depth]
        asked = at.index(leaves[0]) + 1 if leaves else len(at)
        total += count * (costs[leaves[0] if leaves else end] + asked * head_cost)
    return total / sum(histogram)


@given(st.data(), st.integers(2, 7), st.integers(1, 3), st.sampled_from([0.0, 0.3, 2.0]))
def test_no_other_choice_is_cheaper(data: st.DataObject, positions: int, heads: int, head_cost: float) -> None:
    histogram = data.draw(st.lists(st.integers(0, 9), min_size=positions + 1, max_size=positions + 1).filter(any))
    steps = data.draw(st.lists(st.integers(1, 9), min_size=positions - 1, max_size=positions - 1))
    costs = [float(sum(steps[:place])) for place in range(positions)]
    found = suggest_placement(torch.tensor(histogram), torch.tensor(costs), heads=heads, head_cost=head_cost)
    choices = [at for count in range(heads + 1) for at in combinations(range(1, positions - 1), count)]
    best = min(spent(histogram, costs, at, head_cost) for at in choices)
    assert found.cost == pytest.approx(best)
    assert spent(histogram, costs, found.positions, head_cost) == pytest.approx(best)
    assert len(found.positions) <= heads
    assert found.full == costs[-1]


def test_a_head_that_costs_more_than_it_spares_is_left_out() -> None:
    histogram, costs = torch.tensor([0, 5, 5, 0]), torch.tensor([0.0, 9.0, 10.0])
    assert suggest_placement(histogram, costs, heads=1).positions == (1,)
    assert suggest_placement(histogram, costs, heads=1, head_cost=1.0).positions == ()


@pytest.mark.parametrize(
    ("histogram", "costs", "message"),
    [
        ([1, 2, 3, 4, 5], [0.0, 1.0, 2.0], "depth_histogram must have at most 4 entries, one more than there are"),
        ([0, 0], [0.0, 1.0], "depth_histogram must count some examples; got 0"),
        ([1, 1], [0.0, 2.0, 1.0], r"costs must not fall, and end above 0; got \[0.0, 2.0, 1.0\]"),
    ],
)
def test_what_cannot_be_placed_is_refused(histogram: list[int], costs: list[float], message: str) -> None:
    with pytest.raises(ValueError, match=f"suggest_placement: {message}"):
        suggest_placement(torch.tensor(histogram), torch.tensor(costs), heads=1)
