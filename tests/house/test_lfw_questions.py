"""The paper's questions on LFW: damage is what its name says, every training runs, and the page shows the answers."""

from itertools import pairwise
from pathlib import Path

import pytest
import torch
from torch import nn

from likewise.data.lfw import Pair, pair_rows
from likewise.metric.collapse import CollapseGuard
from studies import lfw as study
from studies import lfw_questions as questions
from studies.lfw_faces import CANVAS
from tests.house.test_lfw_study import people


def data() -> questions.Data:
    faces = people(12, 3)
    names = faces.examples.identities
    known, tested = faces.examples.of(names[:6]), faces.examples.of(names[6:])
    pairs = [Pair(f"{one}/{one}_0001.jpg", f"{one}/{one}_0002.jpg", True) for one in names[6:]]
    pairs += [Pair(f"{a}/{a}_0001.jpg", f"{b}/{b}_0003.jpg", False) for a, b in pairwise(names[6:])]
    cut = [faces.canvases[faces.examples.rows(some.items)] for some in (known, tested)]
    return questions.Data(known, *cut, tested.labels, *pair_rows(tested, pairs))


def test_the_page_shows_the_answers() -> None:
    path = study.RESULTS / "lfw_questions.jsonl"
    saved = questions.read(path)
    if not saved:
        pytest.skip("the study has not been run")
    page = study.PAGE.read_text(encoding="utf-8")
    found = [each for question in questions.QUESTIONS for each in saved.get(question, [])]
    region = questions.render(found, questions.seconds_of(path))
    assert study.filled(page, region, marks=(questions.BEGIN, questions.END)) == page


@pytest.mark.parametrize("objective", questions.OBJECTIVES)
def test_every_objective_trains(objective: str) -> None:
    network, said = questions.fitted(data(), objective, dim=8, images=1)
    assert network.embedding_dim == 8
    assert said == ""


@pytest.mark.full
def test_a_network_can_be_asked_without_its_norms() -> None:
    network, _ = questions.fitted(data(), "hardest triplets", dim=8, images=1, norms=False)
    assert not any(isinstance(module, nn.BatchNorm1d | nn.BatchNorm2d) for module in network.modules())
    assert [each.case for each in questions.answers(data(), questions.BARE, 1)] == [
        "random triplets",
        "semi-hard triplets",
        "hardest triplets",
    ]


def test_a_collapse_is_noted_with_its_step(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(questions, "CollapseGuard", lambda: CollapseGuard(patience=2, least_distance=5.0))
    _, said = questions.fitted(data(), "hardest triplets", dim=8, images=10_000)
    assert said.startswith("stopped after 2 of ")
    assert "mean squared distance" in said


@pytest.mark.slow
def test_answers_come_back(tmp_path: Path) -> None:
    found = questions.answers(data(), "people (Table 6)", 1)
    assert [each.case for each in found] == ["one in 8", "one in 4", "one in 2", "everybody"]
    path = tmp_path / "answers.jsonl"
    path.write_text(questions.json.dumps(["people (Table 6)", [questions.asdict(each) for each in found]]) + "\n")
    assert questions.read(path) == {"people (Table 6)": found}
    assert questions.render(found).count("\n| one in") == 3


def test_the_time_is_shown_if_it_is_known_of_every_question(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(study.VARIABLE, "somewhere")
    monkeypatch.setattr(questions, "opened", lambda path: data())
    monkeypatch.setattr(questions, "answers", lambda data, question, images: [])
    path, (first, *rest) = tmp_path / "lfw_questions.jsonl", questions.QUESTIONS
    path.write_text(questions.json.dumps([first, []]) + "\n")  # as it was written before
    questions.main(images=1, only=None, only_render=False, out=tmp_path)
    assert list(questions.read(path)) == [first, *rest]
    assert questions.seconds_of(path) is None
    path.unlink()
    questions.main(images=1, only=None, only_render=False, out=tmp_path)
    assert questions.seconds_of(path) is not None
    assert questions.render([], 7260.0).endswith("All of it took 121 minutes on one thread.")


def test_the_upgrade_says_how_it_differs_from_the_rest() -> None:
    shown = questions.render([questions.Answer(questions.UPGRADE, "v1 with v1", 0.5, 0.5, 0.5)])
    assert "every network but those of the harmonic upgrade started from scratch" in shown
    assert shown.endswith(questions.UPGRADED)


@pytest.mark.full
def test_all_damage_and_the_clusters_are_measured() -> None:
    found = questions.answers(data(), "damage and clusters", 1)
    assert len(found) == sum(map(len, questions.DAMAGE.values())) + 1
    assert "6 people in" in found[-1].note


@pytest.mark.slow
def test_an_upgrade_is_compared_with_what_was_stored_and_with_a_control() -> None:
    found = questions.answers(data(), questions.UPGRADE, 8)
    cases = ["v1 with v1", "v2 with v1", "v2 with v2", "control with v1", "control with control"]
    assert [each.case for each in found] == cases


@pytest.mark.full
def test_an_upgrade_starts_from_the_body_and_learns_the_old_space() -> None:
    some = data()
    start = questions.usual(some, 1)
    old = questions.embedded(questions.fitted(some, "every triplet", width=8, images=1)[0], some.faces)
    new, control = (questions.upgraded(some, start, beside, 1500) for beside in (old, None))
    near = [(questions.embedded(each, some.faces) * old).sum(1).mean() for each in (new, control)]
    assert near[0] > near[1] + 0.2


def test_damage_keeps_the_shape_and_is_in_its_place() -> None:
    faces = data().tested
    for cases in questions.DAMAGE.values():
        for damage in cases.values():
            changed = damage(faces)
            assert (changed.shape, changed.dtype) == (faces.shape, torch.uint8)
            assert not torch.equal(changed, faces)
    hidden = questions.DAMAGE["hidden"]["left half"](faces)
    assert (hidden[..., : CANVAS // 2] == 128).all()
    assert torch.equal(hidden[..., CANVAS // 2 :], faces[..., CANVAS // 2 :])
    moved = questions.moved(faces, 4)
    assert torch.equal(moved[..., 4:], faces[..., :-4])
    assert torch.equal(questions.lit(faces, gain=0.5).int(), (faces / 2).round().int())


def test_better_quality_is_closer() -> None:
    faces = data().tested.float()
    errors = [(questions.encoded(faces.byte(), quality).float() - faces).abs().mean() for quality in (10, 50, 90)]
    assert errors[0] > errors[1] > errors[2]
    shrunk = [(questions.shrunk(faces.byte(), side).float() - faces).abs().mean() for side in (12, 37)]
    assert shrunk[0] > shrunk[1]
