"""The study of depth: images move as one, a training can be had again, halves swap roles, the page shows it."""

from pathlib import Path

import pytest
import torch

from likewise.data import Preparation
from studies import classifiers, depth, mislabelled
from studies.classifiers import Momentum, Moved, Pictures, Recipe, moved
from studies.lfw import filled


def pictures(count: int = 40, seed: int = 0) -> Pictures:
    chance = torch.Generator().manual_seed(seed)
    images = torch.randint(1, 256, (count, 3, 8, 8), generator=chance, dtype=torch.uint8)
    return Pictures(images, torch.arange(count) % 10, Preparation((8, 8)))


def test_the_page_shows_the_numbers() -> None:
    if not depth.read(depth.RESULTS / "depth.jsonl"):
        pytest.skip("the study has not been run")
    page = depth.PAGE.read_text(encoding="utf-8")
    assert filled(page, depth.render(depth.summary(depth.RESULTS)), marks=depth.MARKS) == page


def test_an_image_is_mirrored_or_not_and_moved_with_all_its_channels() -> None:
    images = pictures().images
    found = moved(images, torch.Generator().manual_seed(1))
    ground = torch.nn.functional.pad(images, (classifiers.SHIFT,) * 4)
    seen = set()
    for picture, wide in zip(found, ground, strict=True):
        places = [
            (flipped, down, right)
            for flipped, source in ((False, wide), (True, wide.flip(2)))
            for down in range(2 * classifiers.SHIFT + 1)
            for right in range(2 * classifiers.SHIFT + 1)
            if torch.equal(picture, source[:, down : down + 8, right : right + 8])
        ]
        assert places
        seen |= set(places)
    assert {flipped for flipped, _, _ in seen} == {False, True}
    assert len(seen) > len(images) // 2


def test_batches_follow_from_seed_and_step() -> None:
    some = pictures()
    feed = Moved(some, 16, seed=3)
    from_start, later = feed.since(0), feed.since(2)
    batches = [next(from_start) for _ in range(3)]
    again = next(later)
    assert torch.equal(batches[2].images, again.images)
    assert torch.equal(batches[2].labels, some.labels[again.rows])
    assert not torch.equal(batches[2].images, next(Moved(some, 16, seed=4).since(2)).images)
    still = next(Moved(some, 16, still=True).since(0))
    assert torch.equal(still.images, some.inputs[still.rows])


def test_the_rate_rises_and_falls_to_nothing() -> None:
    rates = [Momentum(peak=1.0, warmup=0.25).rate(step, 8) for step in range(8)]
    assert rates == pytest.approx([0.5, 1.0, 1.0, 5 / 6, 4 / 6, 3 / 6, 2 / 6, 1 / 6])


def test_a_network_is_trained_once_and_read_afterwards(tmp_path: Path) -> None:
    said: list[str] = []
    ask = {"folder": tmp_path, "say": said.append}
    one = classifiers.trained("resnet8", "dots", pictures(), Recipe(epochs=1, batch=20), **ask)
    count = len(said)
    two = classifiers.trained("resnet8", "dots", pictures(), Recipe(epochs=1, batch=20), **ask)
    assert count == len(said) == 1
    x = pictures().inputs
    assert torch.equal(one(x), two(x))


@pytest.mark.slow
def test_a_network_learns(tmp_path: Path) -> None:
    some = pictures(20)
    recipe = Recipe(epochs=60, batch=20, still=True)
    network = classifiers.trained("resnet8", "dots", some, recipe, folder=tmp_path, say=lambda text: None)
    with torch.no_grad():
        assert (network(some.inputs).argmax(1) == some.labels).double().mean() > 0.9


def test_depths_come_back_and_are_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(depth, "LAYERS", ["stem", "block3"])
    monkeypatch.setattr(depth, "TRAIN_ROWS", 10)
    train_set, test_set = pictures(), pictures(12, seed=1)
    with (tmp_path / "depth.jsonl").open("w") as file:
        for seed in (1, 0):
            recipe = Recipe(epochs=1, batch=20, seed=seed)
            network = classifiers.trained("resnet8", "dots", train_set, recipe, folder=tmp_path, say=lambda text: None)
            found = depth.settled("cifar", seed, network, train_set, test_set, tmp_path, lambda text: None)
            file.write(depth.json.dumps(depth.asdict(found)) + "\n")
    saved = depth.read(tmp_path / "depth.jsonl")
    assert [each.seed for each in saved] == [0, 1]
    assert saved[0] == found
    with torch.no_grad():
        said = network(test_set.inputs).argmax(1)
    assert found.test_predicted == tuple(said.tolist())
    assert len(found.train_depth) == 10
    text = depth.render(depth.summary(tmp_path))
    assert text.count("CIFAR-10 (JPEG, lossy), seed") == 2
    assert "Between 2 networks" in text


def test_each_half_is_held_out_from_the_other() -> None:
    halves = mislabelled.Halves.deal(40, 6)
    members, asked = halves.members, halves.asked
    assert sorted(torch.cat(members).tolist()) == list(range(40))
    assert all(set(some.tolist()) <= set(all_of.tolist()) for some, all_of in zip(asked, members, strict=True))
    assert [len(some) for some in asked] == [6, 6]

    class Says(torch.nn.Module):
        def __init__(self, number: float) -> None:
            super().__init__()
            self.number = number

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.tensor([self.number, 0.0]).expand(len(x), 2)

    shares = mislabelled.held_out_shares((Says(5.0), Says(-5.0)), pictures(), halves)  # ty: ignore[invalid-argument-type]
    assert (shares[members[1], 0] > 0.9).all()  # by the network of the first half
    assert (shares[members[0], 0] < 0.1).all()


@pytest.mark.slow
def test_the_area_is_that_of_all_pairs() -> None:
    score = torch.tensor([3.0, 1.0, 2.0, 2.0, 0.0]).double()
    wrong = torch.tensor([True, False, True, False, False])
    value, low, high = mislabelled.area(score.repeat(20), wrong.repeat(20))
    assert value == pytest.approx(5.5 / 6)  # six pairs, one of them a tie
    assert low < value < high
