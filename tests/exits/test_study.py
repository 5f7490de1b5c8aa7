"""What was gained and lost, counted by hand and one by one."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, cast

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from likewise.exits import (
    EarlyExit,
    MaxProbability,
    Policy,
    ThresholdPath,
    clocked,
    depth_by_exit,
    evaluate_exits,
    exits_or_smaller,
    trade_off,
)
from likewise.exits.evaluating import ExitCosts, Point, exit_costs, pareto
from likewise.exits.observing import Observed
from likewise.networks import resnet8
from tests.exits.problems import CLASSES, WIDTH, rows, small
from tests.exits.rules import CRITERIA

COSTS = ExitCosts((10, 20, 30, 40), (1, 2), (0, 1))  # leaving costs 11, 33, 103
POSITIONS = (1, 2, 5)


def seen(scores: list[list[float]], answers: list[list[int]], labels: list[int], role: str = "test") -> Observed:
    logits = 9 * torch.nn.functional.one_hot(torch.tensor(answers), 3).double()
    values = torch.tensor(scores, dtype=torch.float64)
    return Observed(MaxProbability(), cast(Any, role), torch.tensor(labels), values, logits)


# Six examples with label 0. Left at the first head, at the second, or at the end.
SIX = seen(
    [[0.9, 0.9, 0.1, 0.1, 0.1, 0.9], [0.9, 0.1, 0.9, 0.9, 0.1, 0.9]],
    [[0, 1, 0, 1, 0, 0], [0, 0, 0, 1, 0, 1], [0, 0, 0, 1, 1, 1]],
    [0] * 6,
)
HALF = SIX.policy(0.5)


def test_multiply_adds_of_segments_and_heads_are_counted() -> None:
    found = exit_costs(small(), rows(3))
    assert found == ExitCosts((WIDTH * WIDTH,) * 4 + (WIDTH * CLASSES,), (WIDTH * CLASSES,) * 3, (0, 1, 2))
    images = EarlyExit(resnet8(channels=1, num_classes=10), heads=["stem", "block2"])
    found = exit_costs(images, torch.zeros(3, 1, 8, 8))
    assert found.segments[0] == 64 * 16 * 9
    assert found.heads == (16 * 10, 32 * 10)
    assert found.positions == (0, *torch.tensor(found.segments).cumsum(0).tolist(), found.full)


def test_a_policy_pays_for_the_heads_and_criteria_it_asks() -> None:
    assert COSTS.under(HALF) == (11, 33, 103)
    assert COSTS.under(SIX.policy(2.0, 0.5)) == (10, 32, 102)
    neighbours = CRITERIA["neighbours"][0]
    three = ExitCosts((10,) * 5, (1, 2, 3), (0, 1, 2))
    assert three.under(Policy(neighbours, (0.5, 2.0, 2.0)))[0] == 11 + 31 * WIDTH
    assert three.under(Policy(neighbours, (0.5, 2.0, 2.0)))[-1] == 51 + 31 * WIDTH


def test_an_evaluation_by_hand() -> None:
    found = evaluate_exits(SIX, policy=HALF, costs=COSTS, groups=torch.tensor([0, 0, 0, 1, 1, 1]))
    assert found.shares == pytest.approx((3 / 6, 2 / 6, 1 / 6))
    assert found.accuracy == pytest.approx(3 / 6)  # the first, third and last
    assert found.full_accuracy == pytest.approx(3 / 6)
    assert found.disagreement == pytest.approx(2 / 6)  # the second and the last
    assert found.harm == pytest.approx(1 / 6)
    assert found.macs == pytest.approx((3 * 11 + 2 * 33 + 103) / 6)
    assert [(group.group, group.count) for group in found.groups] == [(0, 3), (1, 3)]
    assert [group.risk for group in found.groups] == pytest.approx([1 / 3, 1 / 3])
    assert all(group.risk < group.upper <= 1 for group in found.groups)
    assert found.pays == (True, True)


def test_a_head_that_lets_too_few_go_does_not_pay() -> None:
    dear = ExitCosts((10, 20, 30, 40), (1, 80), (0, 1))
    assert evaluate_exits(SIX, policy=HALF, costs=dear).pays == (True, False)
    assert evaluate_exits(SIX, policy=SIX.policy(0.5, 2.0), costs=dear).pays == (True, False)


def test_a_trade_off_has_a_point_for_each_step() -> None:
    points = trade_off(SIX, ThresholdPath(((2.0, 2.0), (0.5, 0.5), (0.0, 0.0))), costs=COSTS)
    assert [point.macs for point in points] == pytest.approx([100, (3 * 11 + 2 * 33 + 103) / 6, 11])
    assert [point.accuracy for point in points] == pytest.approx([3 / 6, 3 / 6, 4 / 6])


def test_depth_by_exit_by_hand() -> None:
    # Exits stand at probes 1, 2 and 5; the fifth example is undefined (6).
    depths = torch.tensor([0, 2, 1, 2, 6, 4])
    found = depth_by_exit(SIX, depths, policy=HALF, positions=POSITIONS, costs=COSTS)
    assert found.table.shape == (7, 3)
    assert found.table.nonzero().tolist() == [[0, 0], [1, 1], [2, 0], [2, 1], [4, 0], [6, 2]]
    assert found.wasted == pytest.approx(1 / 6)  # the third left at 2 and could have at 1
    assert found.wasted_macs == pytest.approx(22 / 6)
    assert found.premature_right == pytest.approx(1 / 6)  # the second: another answer than the right one at the end
    assert found.premature_wrong == pytest.approx(1 / 6)  # the last
    assert found.free_wins == pytest.approx(1 / 6)  # the fifth: undefined, left with the network's answer
    assert found.overthinking == pytest.approx(2 / 6)  # the fifth and the last were right once
    spent = (3 * 11 + 2 * 33 + 103) / 6
    oracles = {
        "depth": (11 + 33 + 11 + 33 + 103 + 103) / 6,
        "head": (11 + 33 + 11 + 11 + 103 + 33) / 6,
        "correct": (11 + 33 + 11 + 103 + 11 + 11) / 6,
    }
    assert found.oracles == pytest.approx(oracles)
    assert found.headroom == pytest.approx({name: (spent - oracle) / 100 for name, oracle in oracles.items()})


@given(st.integers(0, 2**32), st.sampled_from([0.2, 0.5, 0.8]))
def test_depth_by_exit_one_by_one(seed: int, threshold: float) -> None:
    generator = torch.Generator().manual_seed(seed)
    scores = torch.rand(2, 17, generator=generator)
    answers = torch.randint(3, (3, 17), generator=generator)
    some = seen(scores.tolist(), answers.tolist(), torch.randint(3, (17,), generator=generator).tolist())
    depths = torch.randint(7, (17,), generator=generator)
    found = depth_by_exit(some, depths, policy=some.policy(threshold), positions=POSITIONS, costs=COSTS)
    price, wasted, head = (11, 33, 103), 0, 0
    for n in range(17):
        left = next((i for i in range(2) if some.scores[i, n] >= threshold), 2)
        settled = next((i for i in range(3) if POSITIONS[i] >= depths[n]), 2)
        wasted += max(0, POSITIONS[left] - POSITIONS[settled])
        head += price[next(i for i in range(3) if all(answers[j, n] == answers[2, n] for j in range(i, 3)))]
    assert found.wasted == pytest.approx(wasted / 17)
    assert found.oracles["head"] == pytest.approx(head / 17)
    assert found.table.sum() == 17
    same = found.premature_right + found.premature_wrong + found.free_wins
    left_at = torch.tensor(POSITIONS)[some.policy(threshold).exits(some.scores)]
    assert same == pytest.approx((left_at < depths).double().mean().item())


FULL = Point("whole", 0.95, 100, 1.0)


@pytest.mark.parametrize(
    ("exits", "smaller", "verdict", "said"),
    [
        (
            [Point("e", 0.95, 50, 0.5)],
            [Point("s", 0.9, 60, 0.6), FULL],
            "early exit",
            "early exit needs 2.00 times less",
        ),
        (
            [Point("e", 0.89, 50, 0.9)],
            [Point("s", 0.9, 40, 0.4), FULL],
            "a smaller model",
            "never reaches the 90.00% of s",
        ),
        (
            [Point("e", 0.94, 50, 0.7)],
            [Point("s", 0.9, 40, 0.4), FULL],
            "it depends",
            "up to 90.00% a smaller model, up to 94.00% early exit, up to 95.00% the whole network.",
        ),
    ],
)
def test_early_exit_or_a_smaller_model(exits: list[Point], smaller: list[Point], verdict: str, said: str) -> None:
    for by, unit in (("seconds", "wall clock"), ("macs", "multiply-adds")):
        found = exits_or_smaller(exits, smaller, by=cast(Any, by))
        assert found.verdict == verdict
        assert found.text.startswith(f"Early exit or a smaller model? By {unit}: {verdict}.")
        assert said in found.text


@pytest.mark.parametrize("by", ["seconds", "macs"])
@pytest.mark.parametrize(
    ("point", "verdict"),
    [
        (Point("e", 0.96, 50, 0.5), "early exit"),
        (Point("e", 0.94, 120, 1.2), "the whole network"),
        (Point("e", 0.9, 50, 0.5), "it depends"),
    ],
)
def test_without_a_smaller_network_none_is_recommended(by: Any, point: Point, verdict: str) -> None:
    found = exits_or_smaller([point], [FULL], by=by)
    assert found.verdict == verdict
    assert found.text.startswith("Early exit or the whole network? By ")
    assert "smaller" not in found.text


@pytest.mark.parametrize("by", ["seconds", "macs"])
def test_where_no_example_leaves_early_the_clock_is_not_believed(by: Any) -> None:
    """It is the whole network, whatever 1.72 times says."""
    found = exits_or_smaller([Point("e", 0.95, 100, 1 / 1.72, early=0.0)], [FULL], by=by)
    assert found.verdict == "no difference beyond the noise"
    assert "No example left early, so early exit was the whole network." in found.text
    assert "times" not in found.text


def test_times_whose_spans_overlap_decide_nothing() -> None:
    whole = replace(FULL, middle=1.3)
    unsure = exits_or_smaller([Point("e", 0.95, 90, 0.8, 1.1)], [whole], by="seconds")
    assert unsure.verdict == "no difference beyond the noise"
    assert "early exit needs 1.25 times less, which is within the noise of the clock." in unsure.text
    sure = exits_or_smaller([Point("e", 0.95, 90, 0.8, 0.9)], [whole], by="seconds")
    assert sure.verdict == "early exit"
    assert "noise" not in sure.text


def test_accuracies_less_than_two_standard_errors_apart_are_called_so() -> None:
    near, far = Point("e", 0.94, 50, 0.5), Point("e", 0.84, 50, 0.5)
    found = exits_or_smaller([near], [FULL], by="macs", examples=300)
    # sqrt((0.94 * 0.06 + 0.95 * 0.05) / 300) is 1.86 %.
    said = (
        "Early exit reaches 94.00%, within the noise of 1.9 points (standard error) of whole (95.00%), and needs 2.00"
    )
    assert said in found.text
    assert "never reaches the 95.00% of whole" in exits_or_smaller([far], [FULL], by="macs", examples=300).text
    assert "never reaches the 95.00% of whole" in exits_or_smaller([near], [FULL], by="macs").text
    # As dear and as accurate as far as anybody can tell.
    same = exits_or_smaller([Point("e", 0.94, 100)], [FULL], by="macs", examples=300)
    assert same.verdict == "no difference beyond the noise"


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(1, 9)), min_size=1, max_size=12))
def test_nothing_beats_the_frontier(pairs: list[tuple[int, int]]) -> None:
    points = [Point(str(number), accuracy / 9, macs) for number, (accuracy, macs) in enumerate(pairs)]
    kept = pareto(points, by="macs")
    for point in points:
        beaten = any(
            other.accuracy >= point.accuracy
            and other.macs <= point.macs
            and (other.accuracy, other.macs) != (point.accuracy, point.macs)
            for other in points
        )
        assert any((point.accuracy, point.macs) == (other.accuracy, other.macs) for other in kept) == (not beaten)


def test_contestants_take_turns_and_answer_everything() -> None:
    asked: list[tuple[str, int]] = []

    def contestant(name: str) -> Callable[[Tensor], object]:
        return lambda x: asked.append((name, len(x)))

    found = clocked({"a": contestant("a"), "b": contestant("b")}, rows(5), sizes=(2, 9), repeats=2)
    turn = [("a", 2), ("a", 2), ("a", 1), ("b", 2), ("b", 2), ("b", 1), ("a", 5), ("b", 5)]
    assert asked == turn * 3
    assert 0 < found.seconds("b", 9) <= found.middle[1][1]
    assert [line.split()[0] for line in str(found).splitlines()] == ["microseconds", "batch", "a", "b"]


@pytest.mark.usefixtures("without_shape_checks")
def test_what_cannot_be_studied_is_refused() -> None:
    other = seen([[1.0]], [[0], [0]], [0], "calibration")
    depths, nobody = torch.zeros(6, dtype=torch.int64), cast(Any, {})
    refusals = [
        (
            lambda: evaluate_exits(other, policy=HALF, costs=COSTS),
            "evaluate_exits: seen must be observed on data for test; got data for calibration",
        ),
        (
            lambda: trade_off(other, ThresholdPath(((1.0,),)), costs=COSTS),
            "trade_off: seen must be observed on data for test",
        ),
        (
            lambda: depth_by_exit(SIX, depths[:2], policy=HALF, positions=POSITIONS, costs=COSTS),
            "depths must be one for each of 6 examples; got 2",
        ),
        (
            lambda: depth_by_exit(SIX, depths + 7, policy=HALF, positions=POSITIONS, costs=COSTS),
            "depths must lie between 0 and 6; got",
        ),
        (
            lambda: depth_by_exit(SIX, depths, policy=HALF, positions=(1, 5), costs=COSTS),
            "positions must be one for each of 3; got",
        ),
        (lambda: exits_or_smaller([], [FULL], by="macs"), "exits_or_smaller: exits must not be empty; got 0"),
        (lambda: pareto([Point("a", 0.5, 1.0)], by="seconds"), "pareto: points must have seconds; got a. Measure them"),
        (lambda: pareto([FULL], by=cast(Any, "x")), "pareto: by must be one of 'seconds', 'macs'; got 'x'"),
        (lambda: clocked(nobody, rows(2)), "clocked: x must have rows, and somebody to answer them"),
        (lambda: exit_costs(small(), rows(0)), "exit_costs: x must have a row; got 0"),
    ]
    for call, message in refusals:
        with pytest.raises(ValueError, match=message):
            call()
