"""A study of early exit: heads, thresholds and smaller networks, each from the data that is for it, and its page."""

import copy
import json
import math
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from likewise.difficulty.results import Depths
from likewise.exits import split_examples
from likewise.exits.evaluating import ExitCosts
from likewise.exits.splits import Split, Splits
from likewise.exits.study import ExitPlan, ExitStudy, risk_name, spread, study_exits, train_classifier
from likewise.reports.exits import exits_json, exits_page, outline
from likewise.reports.facts import gather_facts
from tests.tour.test_tour import Reader

CLASSES, WIDTH = 3, 5
PLAN = ExitPlan(risk=0.1, delta=0.1, heads=2, steps=12, batch=16, k=5, queries=31, sizes=(8, 16), repeats=1)


def layer(width: int) -> nn.Module:
    return nn.Sequential(nn.Linear(width, width), nn.ReLU())


def network(*, seed: int, layers: int = 4) -> nn.Sequential:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        first = nn.Sequential(nn.Flatten(), nn.Linear(WIDTH, 8), nn.ReLU())
        return nn.Sequential(first, *(layer(8) for _ in range(layers - 1)), nn.Linear(8, CLASSES))


def blobs() -> Splits:
    generator = torch.Generator().manual_seed(7)
    labels = torch.arange(307) % CLASSES
    inputs = torch.randn(307, WIDTH, generator=generator) + 1.5 * nn.functional.one_hot(labels, WIDTH)
    return split_examples(inputs[:, :, None, None], labels, selection=0.1, calibration=0.3, test=0.2, seed=1)


@pytest.fixture(scope="module")
def parts() -> Splits:
    return blobs()


@pytest.fixture(scope="module")
def trained(parts: Splits) -> nn.Module:
    found = network(seed=0)
    train_classifier(found, parts, plan=replace(PLAN, steps=40), name="whole")
    return found


@pytest.fixture(scope="module")
def study(parts: Splits, trained: nn.Module) -> ExitStudy:
    told: list[float] = []
    found = study_exits(
        trained,
        parts,
        plan=PLAN,
        smaller={"small": network(seed=2, layers=1)},
        progress=lambda done, doing: told.append(done),
    )
    assert told == sorted(told)
    return found


def same(one: nn.Module, other: nn.Module) -> bool:
    mine, yours = one.state_dict(), other.state_dict()
    return mine.keys() == yours.keys() and all(torch.equal(mine[key], yours[key]) for key in mine)


@pytest.mark.slow
@pytest.mark.parametrize("joint", [False, True])
def test_the_network_is_left_as_it_was(parts: Splits, trained: nn.Module, joint: bool) -> None:
    before = copy.deepcopy(trained)
    found = study_exits(trained, parts, plan=replace(PLAN, joint=joint, steps=3))
    assert same(before, trained)
    assert same(found.prepared.exits.network, trained) is not joint


@pytest.mark.slow
def test_test_labels_choose_nothing(parts: Splits, trained: nn.Module, study: ExitStudy) -> None:
    other = parts._replace(test=Split(parts.test.inputs, parts.test.labels.flip(0), "test"))
    found = study_exits(trained, other, plan=PLAN)
    assert found.prepared.exits.names == study.prepared.exits.names
    assert found.controlled.policy.thresholds == study.controlled.policy.thresholds
    assert found.whole.accuracy != study.whole.accuracy


def test_the_points_are_those_of_the_networks_and_of_running_the_exits(parts: Splits, study: ExitStudy) -> None:
    exits, x, labels = study.prepared.exits, parts.test.inputs, parts.test.labels
    outcome = exits.run(x, policy=study.controlled.policy)
    assert study.chosen.accuracy == (outcome.classes == labels).double().mean().item()
    assert study.evaluation.shares == tuple(
        (outcome.exits.bincount(minlength=len(exits.heads) + 1).double() / len(x)).tolist()
    )
    assert [point.name for point in study.networks] == ["small", "whole network"]
    for point, each in zip(study.networks, (study.prepared.smaller["small"], exits.network), strict=True):
        assert point.accuracy == (each(x).argmax(1) == labels).double().mean().item()
    assert study.whole.macs == study.prepared.costs.full == WIDTH * 8 + 3 * 8 * 8 + 8 * CLASSES
    assert study.networks[0].macs == WIDTH * 8 + 8 * CLASSES
    assert risk_name(PLAN.risk) in [point.name for point in study.ladder]
    assert study.chosen.macs == study.evaluation.macs
    assert all(point.seconds and point.seconds > 0 for point in (*study.ladder, *study.networks))


def test_more_risk_is_never_more_work(study: ExitStudy) -> None:
    spent = [point.macs for point in study.ladder]
    assert spent == sorted(spent, reverse=True)
    assert len(spent) == len({point.name for point in study.ladder}) >= 3


def test_groups_of_difficulty_part_the_examples(study: ExitStudy) -> None:
    depth_groups = study.prepared.depth_groups
    assert depth_groups is not None
    assert len(depth_groups.groups) == len(depth_groups.cuts) + 1
    ends = torch.tensor([*depth_groups.cuts, depth_groups.test.probes])
    assert depth_groups.group(ends).tolist() == list(range(len(ends)))
    share = depth_groups.train.counts.cumsum(0) / len(depth_groups.train)
    assert all(share[cut] >= 0.5 for cut in depth_groups.cuts)
    assert sum(group.count for group in study.evaluation.groups) == len(depth_groups.test) == study.counts[3]
    assert sum(group.count for group in study.controlled.groups) == len(depth_groups.calibration) == study.counts[2]
    assert study.against is not None
    assert int(study.against.table.sum()) == study.counts[3]
    assert depth_groups.layers == ("input", "0", "1", "2", "3", "4", "softmax")


@pytest.mark.slow
def test_depths_are_of_the_network_that_answers(parts: Splits, trained: nn.Module) -> None:
    found = study_exits(trained, parts, plan=replace(PLAN, joint=True, rate=0.05))
    depth_groups = found.prepared.depth_groups
    assert depth_groups is not None
    with torch.no_grad():
        assert torch.equal(depth_groups.test.predicted, found.prepared.exits.network(parts.test.inputs).argmax(1))
        assert torch.equal(depth_groups.calibration.labels, parts.calibration.labels)


def test_without_depth_heads_stand_evenly(parts: Splits, trained: nn.Module) -> None:
    found = study_exits(trained, parts, plan=replace(PLAN, k=None, steps=2))
    assert found.prepared.exits.names == tuple(str(place) for place in spread(found.prepared.costs, heads=2))
    assert (found.prepared.depth_groups, found.prepared.placement, found.against) == (None, None, None)
    text = exits_page(found, title="blobs", facts=gather_facts(()))
    assert Reader(text).complaints == []
    assert 'id="difficulty"' not in text
    assert exits_json(found)["depth_by_exit"] is None


@pytest.mark.parametrize("heads", [1, 2, 3, 9])
def test_even_heads_are_near_their_shares(heads: int) -> None:
    costs = ExitCosts((1,) * 12, (), ())
    places = spread(costs, heads=heads)
    assert len(places) == heads
    for number, place in enumerate(places, start=1):
        assert abs(place + 1 - 12 * number / (heads + 1)) <= 0.5


class Stop(Exception):
    """As Ctrl-C would."""


@pytest.mark.slow
def test_a_stopped_study_goes_on_to_the_same_end(
    parts: Splits, trained: nn.Module, study: ExitStudy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("likewise.exits.study.EVERY", 5)

    def stop(done: float, doing: str) -> None:
        if doing.startswith("training small, step 8"):
            raise Stop

    def again(progress: Callable[[float, str], None]) -> ExitStudy:
        small = {"small": network(seed=2, layers=1)}
        return study_exits(trained, parts, plan=PLAN, smaller=small, folder=tmp_path, progress=progress)

    with pytest.raises(Stop):
        again(stop)
    trained_again: list[str] = []
    found = again(lambda done, doing: trained_again.append(doing))
    assert not any("training heads" in doing for doing in trained_again)
    assert "training small, step 6 of 12" in trained_again
    assert "training small, step 5 of 12" not in trained_again
    assert same(found.prepared.smaller["small"], study.prepared.smaller["small"])
    assert same(found.prepared.exits, study.prepared.exits)


def test_too_few_calibration_examples_are_refused_before_any_work(parts: Splits, trained: nn.Module) -> None:
    message = (
        "study_exits: calibration must have at least 230 examples for a risk of 0.01 at delta 0.1; got 92. "
        "Allow more risk, or hold more examples out."
    )
    with pytest.raises(ValueError, match=re.escape(message)):
        study_exits(trained, parts, plan=replace(PLAN, risk=0.01), progress=lambda done, doing: pytest.fail(doing))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"risk": 0.0}, "ExitPlan: risk must be between 0 and 1; got 0.0."),
        ({"delta": 1}, "ExitPlan: delta must be between 0 and 1; got 1."),
        ({"heads": 0}, "ExitPlan: heads must be a whole number of at least 1; got 0."),
    ],
)
def test_a_wrong_plan_is_refused(change: dict, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        replace(PLAN, **change)


def test_the_page_is_whole_and_shows_what_was_found(study: ExitStudy) -> None:
    noted = replace(study, notes=("mind <i> this",))
    text = exits_page(noted, title="<b> on blobs", facts=gather_facts(()))
    reader = Reader(text)
    assert reader.complaints == []
    assert not reader.tags & {"script", "link", "img", "iframe"}
    assert "&lt;b&gt; on blobs" in text
    assert "mind &lt;i&gt; this" in text
    for answer in study.answers:
        assert answer.text in text.replace("&#39;", "'")
    assert study.promise in text.replace("&#39;", "'")
    for point in (*study.ladder, *study.networks):
        right = f'<td class="n" data-column="accuracy">{100 * point.accuracy:.2f}%</td>'
        assert f'<th scope="row">{point.name}</th>{right}' in text
    assert text.count("✓ yes") == sum(group.certified for group in study.controlled.groups)
    assert text.count("✗ no") == sum(not group.certified for group in study.controlled.groups)


def test_nobody_leaving_is_shown_too(study: ExitStudy) -> None:
    heads = len(study.prepared.exits.heads)
    policy = replace(study.controlled.policy, thresholds=(math.inf,) * heads)
    never = replace(study.controlled, chosen=None, policy=policy)
    evaluation = replace(study.evaluation, policy=policy, shares=(0.0,) * heads + (1.0,))
    found = replace(study, controlled=never, evaluation=evaluation)
    text = exits_page(found, title="blobs", facts=gather_facts(()))
    assert "nobody leaves early" in text
    assert text.count("not asked") == heads
    assert exits_json(found)["thresholds"] == [None] * heads


def test_the_numbers_are_json(study: ExitStudy) -> None:
    found = json.loads(json.dumps(exits_json(study), allow_nan=False))
    assert found["examples"] == {"train": 123, "selection": 31, "calibration": 92, "test": 61}
    assert found["heads"] == list(study.prepared.exits.names)
    assert found["risk"] == {"allowed": 0.1, "delta": 0.1, "test": study.evaluation.disagreement}
    assert [point["name"] for point in found["points"] if point["kind"] == "network"] == ["small", "whole network"]
    assert set(found["answers"]) == {"macs", "seconds"}
    assert len(found["groups"]) == len(study.evaluation.groups)


def test_a_histogram_has_its_corners_where_they_belong() -> None:
    def one(*values: int) -> Tensor:
        return torch.tensor(values)

    depths = Depths(one(0, 1, 2), one(0, 0, 0), one(0, 0, 0), 3, {3: one(0, 0, 2)}, probes=2, classes=2)
    assert outline(depths) == (
        (-0.5, 0.5),
        (-0.5, 2),
        (0.5, 2),
        (0.5, 0.5),
        (1.5, 0.5),
        (1.5, 1),
        (2.5, 1),
        (2.5, 0.5),
    )
