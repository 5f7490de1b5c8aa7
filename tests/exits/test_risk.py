"""Thresholds are chosen on calibration data, from the safest on, and say what they promise."""

import math
from typing import Any

import pytest
import torch
from torch import Tensor

from likewise.exits import (
    Entropy,
    MaxProbability,
    Patience,
    Policy,
    PredictedDepth,
    ThresholdPath,
    common_path,
    control_risk,
    matched_path,
    observe,
)
from likewise.exits.observing import LOSSES, Observed
from likewise.exits.risk import Method
from likewise.exits.splits import Split
from tests.exits.problems import CLASSES, rows, small
from tests.exits.rules import CRITERIA


def data(count: int, role: str, *, seed: int = 3) -> Split:
    labels = torch.randint(CLASSES, (count,), generator=torch.Generator().manual_seed(seed))
    return Split(rows(count, seed=seed), labels, role)  # ty: ignore[invalid-argument-type]


def seen(scores: list[list[float]], answers: list[list[int]], labels: list[int], role: str = "calibration") -> Observed:
    """By hand: a score for each head and a class for each exit, per example."""
    logits = 9 * torch.nn.functional.one_hot(torch.tensor(answers), 3).double()
    return Observed(MaxProbability(), role, torch.tensor(labels), torch.tensor(scores, dtype=torch.float64), logits)  # ty: ignore[invalid-argument-type]


@pytest.mark.parametrize("name", CRITERIA)
def test_following_what_was_observed_is_running_it(name: str) -> None:
    exits, split = small(), data(70, "test")
    criterion, threshold = CRITERIA[name]
    found = observe(exits, split, criterion=criterion, size=16)
    policy = found.policy(threshold)
    ran = exits.run(split.inputs, policy=policy, compact="always")
    left = policy.exits(found.scores)
    assert ran.exits.tolist() == left.tolist()
    assert ran.classes.tolist() == found.at(left).argmax(1).tolist()


def test_losses_by_hand() -> None:
    # One head; all leave there. Right both, lost, gained, wrong both alike, wrong both otherwise.
    found = seen([[1.0] * 5], [[0, 1, 0, 1, 1], [0, 0, 1, 1, 2]], [0] * 5)
    left = torch.zeros(5, dtype=torch.int64)
    by_name = {name: loss(found, left).tolist() for name, (loss, _) in LOSSES.items()}
    assert by_name["disagreement"] == [0, 1, 1, 0, 1]
    assert by_name["harm"] == [0, 1, 0, 0, 0]
    assert by_name["accuracy gap"] == [0, 1, -1, 0, 0]
    near = 1 / (1 + 2 * math.exp(-9))
    right = ((1 - near) ** 2 + 2 * ((1 - near) / 2) ** 2) / 2
    wrong = ((1 - (1 - near) / 2) ** 2 + near**2 + ((1 - near) / 2) ** 2) / 2
    assert by_name["Brier gap"] == pytest.approx([0, wrong - right, right - wrong, 0, 0], abs=1e-12)
    assert all(value == 0 for loss, _ in LOSSES.values() for value in loss(found, left + 1).tolist())


def known(errors: int, count: int) -> Observed:
    """One head with scores 1 - i / count; the last `errors` of them disagree."""
    scores = [1 - index / count for index in range(count)]
    answers = [int(index >= count - errors) for index in range(count)]
    return seen([scores], [answers, [0] * count], [0] * count)


def test_the_last_safe_step_is_chosen() -> None:
    found = control_risk(
        small(heads=("first",)),
        known(300, 1000),
        risk=0.05,
        delta=0.1,
        path=ThresholdPath(((0.9005,), (0.5005,), (0.2805,), (0.2005,), (0.1005,))),
    )
    assert [step.risk for step in found.steps] == pytest.approx([0, 0, 0.02, 0.1, 0.2])
    assert [step.early for step in found.steps] == pytest.approx([0.1, 0.5, 0.72, 0.8, 0.9])
    assert [step.evidence <= 0.1 for step in found.steps] == [True, True, True, False, False]
    assert (found.chosen, found.policy.thresholds, found.method) == (2, (0.2805,), "learn then test")
    assert "Step 3 of 5 was the last shown to be safe: thresholds 0.2805; there 72.0% leave early at a" in found.text
    assert "measured risk of 2.00%." in found.text
    assert "with certainty 90% over the draw of the 1,000 calibration examples" in found.text


def test_a_step_behind_an_unsafe_one_is_not_reached() -> None:
    # Risk falls again at the second head: leaving at the first step is wrong, at the second right.
    found = seen([[0.5] * 200, [0.9] * 200], [[0] * 200, [1] * 200, [0] * 200], [0] * 200)
    chosen = control_risk(
        small(heads=("first", "second")), found, risk=0.05, path=ThresholdPath(((1.0, 1.0), (0.8, 0.8), (0.4, 0.4)))
    )
    assert [step.risk for step in chosen.steps] == [0, 1, 0]
    assert chosen.chosen == 0


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("method", [None, "betting", "learn then test", "conformal"])
def test_every_loss_and_method_gives_a_policy_that_runs(loss: Any, method: Any) -> None:
    exits = small()
    found = control_risk(exits, data(400, "calibration"), risk=0.2, criterion=Entropy(), loss=loss, method=method)
    assert found.method == (method or ("learn then test" if loss in ("disagreement", "harm") else "betting"))
    assert exits.run(rows(5), policy=found.policy).logits.shape == (5, CLASSES)
    assert ("certainty" in found.text) == (found.method != "conformal")
    if found.chosen is not None:
        assert found.steps[found.chosen].risk <= 0.2


def test_betting_sees_gaps_that_are_mostly_zero() -> None:
    found, path = known(20, 2000), ThresholdPath(((0.9,), (0.5,), (0.005,)))
    methods: tuple[Method, ...] = ("betting", "learn then test")
    by = {
        m: control_risk(small(heads=("first",)), found, risk=0.02, loss="accuracy gap", method=m, path=path).chosen
        for m in methods
    }
    assert by == {"betting": 2, "learn then test": None}


def test_if_no_step_is_safe_nobody_leaves() -> None:
    exits = small(heads=("first",))
    found = control_risk(exits, known(100, 100), path=ThresholdPath(((0.1,),)), risk=0.05)
    assert found.chosen is None
    assert found.policy.thresholds == (math.inf,)
    assert "nobody leaves early" in found.text
    assert torch.equal(exits.run(rows(7), policy=found.policy).logits, exits.network(rows(7)))


def test_exits_do_not_depend_on_labels() -> None:
    split = data(60, "test")
    other = Split(split.inputs, (split.labels + 1) % CLASSES, "test")
    one, two = (observe(small(), each, criterion=MaxProbability()) for each in (split, other))
    assert torch.equal(one.policy(0.7).exits(one.scores), two.policy(0.7).exits(two.scores))
    calibration = data(400, "calibration")
    swapped = Split(calibration.inputs, (calibration.labels + 1) % CLASSES, "calibration")
    chosen = [control_risk(small(), each, risk=0.1).policy.thresholds for each in (calibration, swapped)]
    assert chosen[0] == chosen[1]


def groups_of(errors: int, count: int, hard: int) -> Tensor:
    return (torch.arange(count) >= count - hard).long() * 7


def test_a_hard_group_that_hides_behind_the_mean_is_found() -> None:
    path = ThresholdPath(((0.9,), (0.5,), (0.001,)))
    found = control_risk(
        small(heads=("first",)), known(20, 1000), risk=0.05, path=path, groups=groups_of(20, 1000, 100)
    )
    assert found.chosen == 2
    assert [(group.group, group.count, group.certified) for group in found.groups] == [(0, 900, True), (7, 100, False)]
    assert [group.risk for group in found.groups] == pytest.approx([0, 0.2])
    assert "Not shown for these groups: 7 (100 examples, risk 20.00%)" in found.text
    strict = control_risk(
        small(heads=("first",)),
        known(20, 1000),
        risk=0.05,
        path=path,
        groups=groups_of(20, 1000, 100),
        every_group=True,
    )
    assert strict.chosen == 1
    assert all(group.certified for group in strict.groups)


def test_groups_are_tested_at_their_share_of_delta() -> None:
    # 60 examples without a loss show a risk of 0.05 at delta 0.05, but not at 0.05 / 10.
    found, path = known(0, 600), ThresholdPath(((0.0,),))
    for parts, certified in ((1, True), (10, False)):
        groups = torch.arange(600) // (600 // parts) if parts > 1 else torch.zeros(600, dtype=torch.int64)
        result = control_risk(small(heads=("first",)), found, risk=0.05, path=path, groups=groups)
        assert [group.certified for group in result.groups] == [certified] * parts


def test_a_matched_path_falls_and_keeps_its_share_of_errors() -> None:
    found = observe(small(), data(300, "selection"), criterion=MaxProbability())
    path = matched_path(found, steps=12)
    for number, share in enumerate([0.0, *(1e-4 ** (1 - step / 11) for step in range(12))]):
        for head, threshold in enumerate(path.steps[number]):
            above = found.scores[head] >= threshold
            wrong = (found.classes[head] != found.full) & above
            assert wrong.sum() <= share * above.sum() + 1e-9
    assert path.steps[-1] == tuple(found.scores.amin(1).tolist())


@pytest.mark.usefixtures("without_shape_checks")
def test_paths_and_data_must_be_what_they_are_for() -> None:
    exits, calibration = small(), data(100, "calibration")
    wrong: Any = "x"
    refusals = [
        (
            lambda: control_risk(exits, data(100, "test")),
            "control_risk: data must be for calibration; got a split for test",
        ),
        (
            lambda: control_risk(exits, calibration),
            "data must be at least 299 for a risk of 0.01, even without a single loss; got 100",
        ),
        (lambda: control_risk(exits, calibration, risk=2.0), "control_risk: risk must be between 0 and 1; got 2.0"),
        (lambda: control_risk(exits, calibration, delta=0.0), "control_risk: delta must be between 0 and 1; got 0.0"),
        (lambda: control_risk(exits, calibration, loss=wrong), "control_risk: loss must be one of 'disagreement'"),
        (
            lambda: control_risk(exits, calibration, method=wrong),
            "method must be one of 'learn then test'",
        ),
        (
            lambda: control_risk(exits, seen([[1.0]], [[0], [0]], [0], "test")),
            "be observed on data for calibration; got data for test",
        ),
        (
            lambda: control_risk(exits, known(0, 9), criterion=Entropy()),
            "criterion must be left to what was observed; got Entropy",
        ),
        (
            lambda: control_risk(small(heads=("first",)), known(0, 999), every_group=True),
            "groups must be given where every_group is asked for; got None",
        ),
        (
            lambda: control_risk(small(heads=("first",)), known(0, 999), groups=torch.zeros(3, dtype=torch.int64)),
            "groups must be one for each of 999 examples; got 3",
        ),
        (
            lambda: matched_path(seen([[1.0]], [[0], [0]], [0])),
            "matched_path: seen must be observed on data for selection; got data for calibration",
        ),
        (
            lambda: common_path(PredictedDepth((), ()), heads=1),
            "common_path: criterion must have a highest score; got inf",
        ),
        (
            lambda: ThresholdPath(((0.1,), (0.2,))),
            "ThresholdPath: steps must start at the safest: no threshold may rise",
        ),
        (lambda: ThresholdPath(()), "ThresholdPath: steps must be one or more; got 0"),
        (lambda: Policy(Patience(), (float("nan"),)), "Policy: thresholds must be numbers"),
        (
            lambda: seen([[1.0]], [[0], [0]], [0]).policy(1, 2),
            "Observed.policy: thresholds must be one or one for each of 1 heads",
        ),
        (
            lambda: observe(exits.train(), data(3, "test"), criterion=Entropy()),
            "observe: exits must be in evaluation mode; got training mode",
        ),
    ]
    for call, message in refusals:
        with pytest.raises(ValueError, match=message.replace("(", r"\(")):
            call()


def test_a_threshold_cannot_be_chosen_on_test_data_by_accident() -> None:
    exits, test = small(), data(400, "test")
    observe(exits, test, criterion=MaxProbability())
    with pytest.raises(ValueError, match="be new examples for calibration; got 400 of 400 that were used for test"):
        control_risk(exits, Split(test.inputs, test.labels, "calibration"))


def test_equal_scores_are_let_go_together() -> None:
    # At score 1 one of two is wrong: no threshold lets go only the right one. Of all three, a third is wrong.
    found = seen([[1.0, 1.0, 0.5]], [[0, 1, 0], [0, 0, 0]], [0] * 3, "selection")
    assert matched_path(found, steps=2, least=0.4).steps == ((math.inf,), (0.5,), (0.5,))
