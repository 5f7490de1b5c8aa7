"""Means, spreads, consensus and quadrants, against counting by hand."""

import math
import statistics

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from likewise.difficulty.consistency import QUADRANTS, depth_consistency, quadrants
from likewise.difficulty.results import Depths

PROBES, CLASSES = 5, 3


def depths(values: list[int], predicted: list[int] | None = None, rows: list[int] | None = None) -> Depths:
    count = len(values)
    return Depths(
        torch.tensor(rows or list(range(count))),
        torch.zeros(count, dtype=torch.int64),
        torch.tensor(predicted or [0] * count),
        30,
        {30: torch.tensor(values)},
        probes=PROBES,
        classes=CLASSES,
    )


columns = st.lists(st.lists(st.integers(0, PROBES), min_size=6, max_size=6), min_size=1, max_size=4)


@settings(max_examples=60)
@given(columns, st.booleans())
def test_mean_and_spread_are_those_of_the_statistics_module(runs: list[list[int]], defined_only: bool) -> None:
    found = depth_consistency([depths(run) for run in runs], defined_only=defined_only)
    for row in range(6):
        values = [run[row] for run in runs if not defined_only or run[row] < PROBES]
        assert found.runs[row] == len(values)
        assert found.mean[row].item() == pytest.approx(statistics.mean(values) if values else math.nan, nan_ok=True)
        spread = statistics.stdev(values) if len(values) > 1 else math.nan
        assert found.spread[row].item() == pytest.approx(spread, nan_ok=True)


@settings(max_examples=30)
@given(st.lists(st.integers(0, PROBES), min_size=3, max_size=9), st.integers(0, 99))
def test_rank_correlation_is_that_of_scipy(values: list[int], seed: int) -> None:
    scipy = pytest.importorskip("scipy.stats")
    other = torch.randint(PROBES + 1, (len(values),), generator=torch.Generator().manual_seed(seed)).tolist()
    found = depth_consistency([depths(values), depths(other)]).rank_correlation
    if len(set(values)) == 1 or len(set(other)) == 1:
        assert math.isnan(found)
    else:
        assert found == pytest.approx(scipy.spearmanr(values, other).statistic)


def test_folds_meet_in_a_common_numbering() -> None:
    first, second = depths([1, 2], [0, 1]), depths([3, 4], [2, 1])
    found = depth_consistency([first, second], of=[torch.tensor([7, 3]), torch.tensor([3, 9])])
    assert found.rows.tolist() == [3, 7, 9]
    assert found.runs.tolist() == [2, 1, 1]
    assert found.mean.tolist() == [2.5, 1.0, 4.0]
    assert found.spread[0].item() == pytest.approx(math.sqrt(0.5))
    assert found.spread[1:].isnan().all()
    assert found.share.tolist() == [0.5, 1.0, 1.0]
    assert found.consensus.tolist() == [1, 0, 1]  # of one vote each the smaller class
    assert math.isnan(found.rank_correlation)


def test_consensus_is_what_most_networks_say() -> None:
    runs = [depths([0, 0], predicted) for predicted in ([1, 2], [1, 0], [0, 2])]
    found = depth_consistency(runs)
    assert found.consensus.tolist() == [1, 2]
    assert found.share.tolist() == [2 / 3, 2 / 3]
    assert repr(found) == "Consistency(2 examples, mean spread 0.00, rank correlation nan)"


def test_runs_that_do_not_fit_are_refused() -> None:
    other = Depths(torch.tensor([0]), torch.tensor([0]), torch.tensor([0]), 30, {30: torch.tensor([1])}, 9, CLASSES)
    for found, of, message in [
        ([], None, "found must hold a run; got 0"),
        ([depths([1])], [], "of must be one for each of 1 runs; got 0"),
        ([depths([1, 2])], [torch.tensor([1, 1])], "of must hold 2 different rows; got 2, 1 different"),
        ([depths([1]), other], None, "found must be of 5 probes and 3 classes, as the first; got 9 and 3"),
    ]:
        with pytest.raises(ValueError, match=f"^depth_consistency: {message}"):
            depth_consistency(found, of=of)


values = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=1, max_size=12)


@settings(max_examples=60)
@given(values, st.one_of(st.none(), st.integers(0, 5)), st.one_of(st.none(), st.integers(0, 5)))
def test_quadrants_are_by_the_cuts(
    pairs: list[tuple[int, int]], train_cut: int | None, heldout_cut: int | None
) -> None:
    train, heldout = (torch.tensor(side).double() for side in zip(*pairs, strict=True))
    found = quadrants(train, heldout, train_cut=train_cut, heldout_cut=heldout_cut)
    names = {(False, False): 0, (True, False): 1, (False, True): 2, (True, True): 3}
    for row, (one, two) in enumerate(pairs):
        assert found.code[row] == names[one > found.train_cut, two > found.heldout_cut]
    for cut, asked, side in [(found.train_cut, train_cut, train), (found.heldout_cut, heldout_cut, heldout)]:
        assert cut == (side.median() if asked is None else asked)
    assert sum(int(found.of(name).sum()) for name in QUADRANTS) == len(pairs)


def test_quadrants_print_their_cuts() -> None:
    found = quadrants(torch.tensor([0.0, 4.0]).double(), torch.tensor([1.0, 1.0]).double(), train_cut=2.5)
    assert str(found).splitlines() == [
        "low: at most 2.5 as training examples, 1 held out",
        "       1  easy",
        "       1  looks mislabelled",
        "       0  ambiguous without its label",
        "       0  ambiguous",
    ]


@pytest.mark.usefixtures("without_shape_checks")
def test_wrong_quadrants_are_refused() -> None:
    one = torch.zeros(2).double()
    with pytest.raises(ValueError, match="quadrants: depths must be of the same examples; got 2"):
        quadrants(one, one[:1])
    with pytest.raises(ValueError, match=r"quadrants: depths must be known in both roles; got NaN\. Leave"):
        quadrants(one, one + math.nan)
    with pytest.raises(ValueError, match=r"Quadrants.of: name must be one of 'easy', .*; got 'eassy'"):
        quadrants(one, one).of("eassy")  # ty: ignore[invalid-argument-type]
