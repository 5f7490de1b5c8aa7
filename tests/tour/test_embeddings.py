"""What is judged was never seen, the control has the same batches, and the numbers are those of the library's calls."""

from dataclasses import replace
from itertools import islice, pairwise

import numpy
import pytest
import torch
from torch import Tensor
from torch.nn import functional

from likewise.data import digits
from likewise.metric import IdentitySampler, all_pairs
from likewise.metric.clusters import cluster_scores
from likewise.tour import embeddings
from likewise.tour.embeddings import (
    UNSEEN,
    Compared,
    Embeddings,
    InMemory,
    SmallNetwork,
    clustered,
    judge,
    measure_embeddings,
    moved,
    nearest,
    prepared,
    split_digits,
)
from likewise.tour.figures import triplets_figure, verification_figure
from tests.tour.plans import FEW


@pytest.fixture(scope="module")
def made() -> Embeddings:
    seen: list[float] = []
    result = measure_embeddings(plan=FEW, seed=3, progress=lambda done, doing: seen.append(done))
    assert seen == sorted(seen)
    assert seen[-1] == 1.0
    return result


def test_unseen_digits_are_in_no_class_that_is_trained_on() -> None:
    seen, unseen = split_digits()
    assert unseen.identities == UNSEEN
    assert len(seen.identities) == 7 * 8
    assert {name[0] for name in seen.identities} == set("0123457")
    assert len(seen) == 8 * (len(digits()) - len(unseen))


def test_classes_are_digits_turned_and_mirrored() -> None:
    seen, _ = split_digits()
    plain = digits().without(UNSEEN)
    for row in (0, 5, 700):
        image = plain.read(row)[..., 0]
        places = seen.rows([f"{plain.items[row]}/{position}" for position in range(8)])
        found = [seen.read(place)[..., 0] for place in places]
        assert numpy.array_equal(found[0], image)
        assert numpy.array_equal(found[3], numpy.rot90(image, 3))
        assert numpy.array_equal(found[4], image[:, ::-1])
        assert numpy.array_equal(found[6], numpy.rot90(image, 2)[:, ::-1])
        names = [seen.identities[int(seen.labels[place])] for place in places]
        assert len(set(names)) == 8
        assert {name[0] for name in names} == {plain.identities[int(plain.labels[row])]}


def test_images_move_by_a_pixel_at_most() -> None:
    images = torch.randn(97, 1, 8, 8, generator=torch.Generator().manual_seed(1))
    found = moved(images, torch.Generator().manual_seed(2))
    wide = functional.pad(images, (1, 1, 1, 1), value=-1.0)
    places = [(down, across) for down in range(3) for across in range(3)]
    windows = torch.stack([wide[:, :, y : y + 8, x : x + 8] for y, x in places])
    which = (windows == found).flatten(2).all(2)
    assert which.any(0).all()
    assert which.any(1).all()


def test_batches_are_the_same_from_any_step() -> None:
    labels = torch.arange(11).repeat_interleave(3)
    images = torch.randn(33, 1, 8, 8, generator=torch.Generator().manual_seed(1))
    feed = InMemory(images, labels, IdentitySampler(labels, identities=4, faces=2, random=0, seed=5))
    whole, later = list(islice(feed.since(0), 6)), next(feed.since(4))
    assert [batch.step for batch in whole] == list(range(6))
    assert torch.equal(whole[4].images, later.images)
    assert torch.equal(labels[later.rows], later.labels)
    assert not torch.equal(whole[3].rows, whole[4].rows)


def test_the_small_network_is_its_segments_and_its_seed() -> None:
    network = SmallNetwork(3, 7, seed=1)
    x = torch.randn(5, 1, 8, 8, generator=torch.Generator().manual_seed(1))
    out = x
    for _, segment in network.segments:
        out = segment(out)
    assert torch.equal(network(x), out)
    torch.testing.assert_close(out.norm(dim=1), torch.ones(5))
    assert torch.equal(SmallNetwork(3, 7, seed=1)(x), out)
    assert not torch.equal(SmallNetwork(3, 7, seed=2)(x), out)


def classes(noise: float) -> tuple[Tensor, Tensor]:
    labels = torch.arange(3).repeat_interleave(23)
    spread = noise * torch.randn(69, 3, generator=torch.Generator().manual_seed(1))
    return torch.eye(3)[labels] + spread, labels


def test_classes_apart_are_judged_perfect_and_chance_is_not() -> None:
    perfect = judge("a", "near", *classes(0.01), 0)
    assert (perfect.val, perfect.nearest, perfect.clusters.f, perfect.clusters.clusters) == (1.0, 1.0, 1.0, 3)
    vectors, labels = classes(9.0)
    poor = judge("a", "near", vectors, labels, 0)
    assert poor.val == all_pairs(vectors, labels, far=embeddings.FAR).val < 0.2
    assert poor.nearest < 0.6
    assert all(near[0] <= far[0] and near[1] <= far[1] for near, far in pairwise(poor.curve))


def test_nearest_are_nearest_and_not_the_row_itself() -> None:
    vectors, _ = classes(0.5)
    distances = torch.cdist(vectors.double(), vectors.double()).fill_diagonal_(torch.inf)
    assert torch.equal(nearest(vectors), distances.argsort(dim=1)[:, : embeddings.NEAREST])


def test_clusters_are_judged_on_the_half_that_chose_no_threshold() -> None:
    vectors, labels = classes(0.2)
    assert clustered(vectors, labels, generator=torch.Generator().manual_seed(1)).f > 0.9
    other = torch.randperm(69, generator=torch.Generator().manual_seed(1))[35:]
    labels[other] = torch.arange(34)  # all of different classes, so that no pair belongs together
    found = clustered(vectors, labels, generator=torch.Generator().manual_seed(1))
    assert (found.identities, found.precision) == (34, 0.0)


@pytest.mark.slow
def test_the_result_has_all_its_parts(made: Embeddings) -> None:
    assert (made.unseen, made.classes, made.seed, made.far) == (UNSEEN, 56, 3, 0.01)
    assert len(made.records) == FEW.steps
    assert [each.name for each in made.judged] == ["pixels", "before training", "after"]
    assert made.judged[1].val != made.judged[2].val
    assert [len(row.vals) for row in made.upgrade] == [FEW.runs] * 5
    assert len(set(made.upgrade[0].vals)) == FEW.runs
    assert len(made.neighbours) == 2 * len(UNSEEN)
    for row, digit in zip(made.neighbours, [digit for digit in UNSEEN for _ in range(2)], strict=True):
        assert row[0].digit == digit
        assert len(row) == 1 + embeddings.NEAREST
        assert all(0 <= ink <= 1 for each in row for ink in each.pixels)
    together = cluster_scores(torch.zeros(9, dtype=torch.int64), torch.arange(3).repeat(3)).f
    assert abs(made.one_cluster - together) < 0.11  # which counts no image with itself


@pytest.mark.full
def test_the_same_seed_gives_the_same_numbers(made: Embeddings) -> None:
    again = measure_embeddings(plan=replace(FEW, runs=1), seed=3)
    assert [row.vals[0] for row in again.upgrade] == [row.vals[0] for row in made.upgrade]
    assert again.neighbours == made.neighbours


@pytest.mark.full
@pytest.mark.filterwarnings("ignore::likewise.metric.FewImpostorsWarning")
def test_harmony_is_learned_and_the_control_differs_only_in_the_objective(monkeypatch: pytest.MonkeyPatch) -> None:
    # Judged on what was seen, harmony shows after few steps.
    seen = split_digits()[0].take(range(0, 2528, 5))
    plan = replace(FEW, old_channels=8, channels=8, embedding_dim=16, old_steps=9, steps=40, head_steps=20)
    data = embeddings.Data(*[prepared(seen), seen.labels] * 2, plan)
    batches: list[list[int]] = []
    train = embeddings.train

    def noted(network, objective, feed, *, steps, watch):
        batches.append([int(row) for batch in islice(feed.since(0), steps) for row in batch.rows])
        return train(network, objective, feed, steps=steps, watch=watch)

    monkeypatch.setattr(embeddings, "train", noted)
    found = embeddings.upgraded(data, seed=1).versions
    _, _, head, whole, control_head, control_whole = batches
    assert (head, whole) == (control_head, control_whole)
    assert head[:32] != whole[:32]
    assert found.control_mixed is not None
    assert found.mixed.rates.roc.area > found.control_mixed.rates.roc.area + 0.1


@pytest.mark.slow
def test_runs_in_the_papers_order_are_counted(made: Embeddings) -> None:
    rows = [
        Compared(name, vals, vals[::-1], (0.0, 0.0)) for name, vals in zip("abc", [(3, 1), (2, 5), (1, 4)], strict=True)
    ]
    assert replace(made, upgrade=tuple(rows)).by_val == 1
    assert rows[0].val == rows[0].accuracy == 2.0
    assert rows[0].far_kept == 0.0


@pytest.mark.slow
def test_figures_show_every_curve(made: Embeddings) -> None:
    assert verification_figure(made).count("<polyline") == 2 * 4  # for a page and for a phone
    assert "chance" in verification_figure(made)
    assert triplets_figure(made).count("<polyline") == 2 * 4
