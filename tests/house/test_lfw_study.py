"""LFW's study: nobody is trained and tested on, faces change as they should, and the page says what the numbers say."""

import json
import re
from pathlib import Path

import numpy
import pytest
import torch

from likewise.data.examples import Stored, examples
from likewise.data.lfw import Pair
from likewise.metric import verification
from likewise.stats import mean_and_error
from studies import lfw as study
from studies import lfw_faces, lfw_textures

RECIPE = lfw_faces.Recipe(width=4, epochs=1, rounds=1, batch=8, people=3, faces=2, others=2)


def people(count: int = 8, images: int = 3) -> study.Faces:
    """Blobs of noise: each person's images are alike."""
    rng = numpy.random.default_rng(0)
    faces = rng.integers(0, 256, (count, 10, 10, 3)).repeat(images, 0).repeat(15, 1).repeat(15, 2)
    pixels = (faces + rng.integers(-20, 20, faces.shape)).clip(0, 255).astype(numpy.uint8)
    names = [f"P{number}" for number in range(count) for _ in range(images)]
    items = [f"{name}/{name}_{row % images + 1:04d}.jpg" for row, name in enumerate(names)]
    some = examples("blobs", Stored(pixels), items, names)
    described = {kind: torch.randn(len(some), 30, generator=torch.Generator().manual_seed(1)) for kind in study.KINDS}
    return study.Faces(some, lfw_faces.canvases(some), described, protocol=None)  # ty: ignore[invalid-argument-type]


def outcomes(folds: int = 3) -> list[study.Outcome]:
    generator = torch.Generator().manual_seed(2)
    made = []
    for part in [study.VIEW_1, *map(study.fold_name, range(folds))]:
        same = torch.arange(40) % 2 == 0
        names = ("network", *study.KINDS)
        noise = torch.randn(len(names), 40, generator=generator) * torch.tensor([[1.0], [2.0], [3.0]])
        scores = {name: tuple((row + 2 * same).tolist()) for name, row in zip(names, noise, strict=True)}
        made.append(study.Outcome(part, 10, 20, 60.0, tuple(same.tolist()), scores))
    return made


def test_the_page_says_what_the_numbers_say() -> None:
    saved = study.read(study.RESULTS / "lfw.jsonl")
    if not saved:
        pytest.skip("the study has not been run")
    tried = json.loads((study.RESULTS / "lfw_tried.json").read_text(encoding="utf-8"))
    page = study.PAGE.read_text(encoding="utf-8")
    assert study.filled(page, study.render(saved, tried)) == page


@pytest.mark.parametrize("folds", [3, 10])
def test_the_page_says_when_folds_are_missing(folds: int) -> None:
    said = "7 of the 10 folds were not trained yet" in study.render(outcomes(folds), [])
    assert said == (folds < 10)


def test_saved_outcomes_come_back_in_order(tmp_path: Path) -> None:
    made, path = outcomes(10), tmp_path / "lfw.jsonl"
    path.write_text("".join(each.to_line() for each in reversed(made)), encoding="utf-8")
    assert study.read(path) == made


def test_accuracy_is_that_of_the_protocol() -> None:
    made = outcomes(4)
    _, *folds = made
    found = study.judged(made)
    fold, same = torch.arange(4).repeat_interleave(40), torch.tensor([kind for each in folds for kind in each.same])
    for each in found:
        distances = torch.cat([-study.scored(each.way, outcome, made[0]) for outcome in folds])
        whole = verification(distances, same, folds=fold)
        assert mean_and_error(list(each.folds)) == pytest.approx((whole.accuracy, whole.accuracy_error))


def test_both_ways_weigh_alike_on_view_1() -> None:
    view_1, fold = outcomes(1)
    scores = {name: torch.tensor(view_1.scores[name]).double() for name in view_1.scores}
    textures = scores["gradients"] + scores["patterns"]
    expected = torch.tensor(fold.scores["network"]).double() / scores["network"].std()
    expected += sum(torch.tensor(fold.scores[kind]).double() for kind in study.KINDS) / textures.std()
    torch.testing.assert_close(study.scored("both", fold, view_1), expected)


def test_a_tested_person_is_refused_in_training() -> None:
    pairs = [Pair("P1/P1_0001.jpg", "P2/P2_0001.jpg", False)]
    message = "measure: people must be none of those in the pairs; got ['P2']."
    with pytest.raises(ValueError, match=re.escape(message)):
        study.measure(people(), "fold", ["P2", "P3"], pairs, RECIPE, print)


def test_a_training_gives_a_score_of_every_kind_for_every_pair() -> None:
    faces, said = people(), []
    pairs = [Pair("P0/P0_0001.jpg", "P0/P0_0002.jpg", True), Pair("P0/P0_0001.jpg", "P1/P1_0001.jpg", False)]
    known = [f"P{number}" for number in range(2, 8)]
    found = [study.measure(faces, "fold", known, pairs, RECIPE, said.append) for _ in range(2)]
    assert found[0].scores == found[1].scores
    assert set(found[0].scores) == {"network", *study.KINDS}
    assert found[0].same == (True, False)
    assert [text.split(":")[0] for text in said[:2]] == ["fold, classes, epoch 1 of 1", "fold, triplets, epoch 1 of 1"]


def test_without_change_a_changed_face_is_the_centre() -> None:
    faces = people().canvases
    none = lfw_faces.Recipe(turn=0.0, zoom=0.0, move=0.0, light=0.0, hide=0.0)
    plain = lfw_faces.centre(faces)
    changed = lfw_faces.changed(faces, none, torch.Generator().manual_seed(0))
    mirrored = (changed - plain.flip(3)).abs().amax((1, 2, 3)) < 1e-3
    same = (changed - plain).abs().amax((1, 2, 3)) < 1e-3
    assert (mirrored ^ same).all()
    assert mirrored.any()
    assert same.any()


def test_a_hidden_part_is_one_rectangle_of_one_grey() -> None:
    noise = torch.randn(50, 3, lfw_faces.ROWS, lfw_faces.COLUMNS, generator=torch.Generator().manual_seed(0))
    hidden = lfw_faces._hidden(noise, 0.5, torch.Generator().manual_seed(1))
    changed = (hidden != noise).any(1)
    assert 15 < int(changed.any(2).any(1).sum()) < 35
    for image, where in zip(hidden, changed, strict=True):
        rows, columns = where.any(1), where.any(0)
        assert torch.equal(where, rows[:, None] & columns)
        if where.any():
            assert image[:, where].unique().numel() == 1
            assert lfw_faces.ROWS / 6 - 1 <= int(rows.sum()) <= lfw_faces.ROWS / 2 + 1


def test_an_epoch_has_at_most_so_many_images_of_a_person() -> None:
    labels = torch.tensor([0] * 9 + [1] * 2 + [2] * 5)
    capped = lfw_faces.Capped(labels, most=3, size=4, seed=0)
    assert len(capped) == 2
    for epoch in range(5):
        rows = capped[2 * epoch] + capped[2 * epoch + 1]
        assert len(set(rows)) == 8
        assert labels[rows].bincount().max() <= 3
    assert capped[0] != capped[2]


def test_patterns_have_59_kinds_and_count_every_pixel() -> None:
    kinds = lfw_textures._uniform()
    assert kinds.unique().tolist() == list(range(59))
    x = torch.rand(2, 1, 23, 30, generator=torch.Generator().manual_seed(0))
    found = lfw_textures.patterns(x).reshape(2, 59, 6)
    assert torch.allclose(found.square().sum(1), torch.ones(2, 6))
    flat = lfw_textures.patterns(torch.ones(1, 1, 10, 10))[0]
    assert flat[kinds[255]] == 1  # every neighbour is as light


def test_gradients_of_a_slope_point_one_way() -> None:
    across = torch.arange(40.0).expand(1, 1, 24, 40)
    found = lfw_textures.gradients(across).reshape(1, 16, 3, 5)
    assert (found[0, 0, 1, 1:4] > 0.9).all()
    assert (found[0, 1:, 1, 1:4] == 0).all()


def test_only_the_region_between_the_marks_is_written() -> None:
    page = f"before\n{study.BEGIN}\nold\n{study.END}\nafter\n"
    assert study.filled(page, "new") == f"before\n{study.BEGIN}\n\nnew\n\n{study.END}\nafter\n"
    with pytest.raises(ValueError, match="filled: page must hold <!-- lfw: begin --> and then"):
        study.filled("no marks", "new")
