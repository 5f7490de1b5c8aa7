"""Rank correlations against a plain one, intervals that cover, and traits that are what they say."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from likewise.difficulty import labelled, rank_correlation
from likewise.difficulty.traits import input_traits


def plain_spearman(x: list[float], y: list[float]) -> float:
    """Pearson's correlation of mean ranks, by counting."""

    def ranks(values: list[float]) -> list[float]:
        return [sum(b < a for b in values) + (sum(b == a for b in values) + 1) / 2 for a in values]

    one, two = ranks(x), ranks(y)
    mean = (len(x) + 1) / 2
    dots = [
        sum((a - mean) * (b - mean) for a, b in zip(s, t, strict=True)) for s, t in ((one, two), (one, one), (two, two))
    ]
    return dots[0] / math.sqrt(dots[1] * dots[2]) if dots[1] * dots[2] else math.nan


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=2, max_size=12))
@settings(max_examples=60)
def test_the_value_is_spearmans_with_ties(pairs: list[tuple[int, int]]) -> None:
    x, y = ([float(pair[side]) for pair in pairs] for side in (0, 1))
    found = rank_correlation(torch.tensor(x).double(), torch.tensor(y).double())
    expected = plain_spearman(x, y)
    assert found.count == len(pairs)
    assert found.value == pytest.approx(expected, nan_ok=True, abs=1e-12)
    if len(pairs) > 3 and not math.isnan(expected):
        assert found.low <= found.value + 1e-12
        assert found.value <= found.high + 1e-12


def test_an_interval_by_hand() -> None:
    x = torch.arange(28.0).double()
    found = rank_correlation(x, x.roll(14))
    half = 1.959964 * math.sqrt((1 + found.value**2 / 2) / 25)
    assert found.low == pytest.approx(math.tanh(math.atanh(found.value) - half), abs=1e-6)
    assert found.high == pytest.approx(math.tanh(math.atanh(found.value) + half), abs=1e-6)
    with pytest.raises(ValueError, match="rank_correlation: confidence must be between 0 and 1; got 1"):
        rank_correlation(x, x, confidence=1)


def test_intervals_of_unrelated_numbers_miss_zero_as_often_as_they_say() -> None:
    generator = torch.Generator().manual_seed(0)
    missed = 0
    for _ in range(400):
        x, y = torch.randn(2, 40, generator=generator, dtype=torch.float64)
        found = rank_correlation(x, y)
        missed += not found.low <= 0 <= found.high
    assert 5 <= missed <= 40  # 20 are expected


def test_traits_are_those_of_the_example_and_its_class() -> None:
    generator = torch.Generator().manual_seed(1)
    inputs, labels = torch.randn(23, 2, 3, generator=generator), torch.arange(23) % 3
    some, own = torch.randn(7, 2, 3, generator=generator), torch.tensor([0, 1, 2, 0, 1, 2, 0])
    found = input_traits(labelled((inputs, labels), batch=5), labelled((some, own), batch=4))
    means = [inputs[labels == c].double().mean(0) for c in range(3)]
    for row in range(7):
        distances = [(some[row].double() - mean).norm().item() for mean in means]
        mine = distances.pop(int(own[row]))
        assert found["contrast"][row].item() == pytest.approx(some[row].double().flatten().std(correction=0).item())
        assert found["rarity"][row].item() == pytest.approx(mine)
        assert found["overlap"][row].item() == pytest.approx(mine / min(distances))
    assert found["class size"].tolist() == [8, 8, 7, 8, 8, 7, 8]


def test_equal_classes_have_no_class_size_and_an_unknown_class_no_rarity() -> None:
    train = labelled((torch.eye(4), torch.tensor([0, 0, 1, 1])))
    found = input_traits(train, labelled((torch.ones(2, 4), torch.tensor([1, 2]))))
    assert "class size" not in found
    assert found["rarity"].isnan().tolist() == [False, True]
