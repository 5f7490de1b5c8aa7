"""Batches are the same whenever, and by however many workers, they are read."""

import multiprocessing
import time
import tracemalloc
from pathlib import Path

import numpy
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from likewise.data import Batches, Preparation, digits, folders, held
from likewise.data.batches import PIECE, Augmentation, Shuffled, in_order
from likewise.data.examples import Stored, examples
from tests.data.drawing import people

DIGITS = Preparation((8, 8), channels=1)
DRAWN = [[3, 1, 4], [1, 5], [9, 2, 6, 5], [3, 5]]


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("step", [0, 2])
def test_batches_depend_on_step_and_row_alone(workers: int, step: int) -> None:
    before = torch.get_rng_state()
    batches = Batches(digits(), DIGITS, DRAWN, Augmentation(), seed=7, workers=workers)
    found = list(batches.since(step))
    assert [batch.step for batch in found] == list(range(step, 4))
    assert [batch.rows.tolist() for batch in found] == DRAWN[step:]
    assert torch.equal(torch.get_rng_state(), before)
    for batch in found:
        for image, row in zip(batch.images, batch.rows.tolist(), strict=True):
            pixels = Augmentation()(digits().read(row), 7, batch.step, row)
            assert torch.equal(image, DIGITS(pixels))


@pytest.mark.slow
@pytest.mark.parametrize("workers", [0, 2])
def test_pieces_join_to_the_batch_that_was_asked_for(tmp_path: Path, workers: int) -> None:
    found = folders(people(tmp_path / "set", {"Ann": 3, "Bo": 2}, size=(40, 50)))
    damaged = tmp_path / "set" / "Ann" / "Ann_0002.jpg"
    damaged.write_bytes(damaged.read_bytes()[:700])
    prepared = Preparation((7, 11), mean=0.3, deviation=0.7)
    drawn = [[row % 5 for row in range(size)] for size in (3 * PIECE + 5, 2 * PIECE, 0, PIECE, PIECE + 1)]
    batches = list(Batches(found, prepared, drawn, Augmentation(), seed=7, workers=workers).since(0))
    assert [batch.rows.tolist() for batch in batches] == [[row for row in rows if row != 1] for rows in drawn]
    assert [len(batch.skipped) for batch in batches] == [rows.count(1) for rows in drawn]
    assert [batch.step for batch in batches] == [0, 1, 2, 3, 4]
    for batch in batches:
        assert torch.equal(batch.labels, found.labels[batch.rows])
        assert batch.images.shape == (len(batch.rows), 3, 7, 11)
        assert batch.images.is_contiguous()
        for image, row in zip(batch.images, batch.rows.tolist(), strict=True):
            pixels = Augmentation()(prepared.fitted(found.read(row, least=11)), 7, batch.step, row)
            assert torch.equal(image, prepared(pixels))


def test_a_batch_is_numbers_once() -> None:
    pixels = numpy.zeros((1, 40, 50, 3), numpy.uint8)
    batches = Batches(examples("dots", Stored(pixels), ["a/1"], ["a"]), Preparation((40, 50)), [[0] * 9 * PIECE])
    tracemalloc.start()  # sees numpy's memory and not torch's, where the batch itself lies
    [batch] = batches.since(0)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < batch.images.nbytes / 4


class Counted:
    """A source that counts what is read, by whatever process."""

    def __init__(self) -> None:
        self.reads = multiprocessing.get_context().Value("i", 0)

    def read(self, index: int, *, least: int | None = None) -> numpy.ndarray:
        with self.reads.get_lock():
            self.reads.value += 1
        return numpy.zeros((2, 2, 1), numpy.uint8)


def test_workers_read_one_large_batch_ahead_in_all() -> None:
    source, size = Counted(), 10 * PIECE
    some = examples("dots", source, ["a/1"], ["a"])
    batches = Batches(some, Preparation((2, 2), channels=1), [[0] * size] * 9, workers=2).since(0)
    next(batches)
    before = -1
    for _ in range(100):  # until the workers have begun another one, and rest
        time.sleep(0.3)
        if size < before == source.reads.value:
            break
        before = source.reads.value
    assert size < before <= 2 * size
    assert len(list(batches)) == 8


@given(st.integers(0, 99), st.integers(0, 99))
def test_augmented_images_are_moved_mirrored_and_lit(epoch: int, row: int) -> None:
    pixels = numpy.random.default_rng(0).integers(90, 160, (20, 30, 3), numpy.uint8)
    moved = Augmentation(shift=0.1, light=0.0)(pixels, 1, epoch, row)
    candidates = [
        numpy.roll(image, (down, across), (0, 1))[2:-2, 3:-3]
        for image in (pixels, pixels[:, ::-1])
        for down in range(-2, 3)
        for across in range(-3, 4)
    ]
    assert any(numpy.array_equal(moved[2:-2, 3:-3], candidate) for candidate in candidates)
    lit = Augmentation(mirror=0.0, shift=0.0, light=0.2)(pixels, 1, epoch, row).astype(float)
    slope, offset = numpy.polyfit(pixels.ravel(), lit.ravel(), 1)
    assert 0.79 < slope < 1.21
    assert numpy.abs(lit - (slope * pixels + offset)).max() < 1.5
    assert numpy.array_equal(moved, Augmentation(shift=0.1, light=0.0)(pixels, 1, epoch, row))


def test_augmentation_reaches_every_change() -> None:
    pixels = numpy.zeros((9, 11, 1), numpy.uint8)
    pixels[4, 5] = 255
    changed = [Augmentation(mirror=0.0, shift=0.2, light=0.0)(pixels, 0, 0, row) for row in range(400)]
    places = {tuple(numpy.argwhere(image[..., 0])[0].tolist()) for image in changed}
    assert places == {(4 + down, 5 + across) for down in (-1, 0, 1) for across in (-2, -1, 0, 1, 2)}


@given(st.integers(1, 20), st.integers(1, 30), st.integers(0, 3))
def test_shuffled_batches_visit_every_row_once_an_epoch(count: int, size: int, seed: int) -> None:
    rows = [row for step in range(2 * count) for row in Shuffled(count, size, seed)[step]]
    assert len(rows) == 2 * count * size
    epochs = [rows[start : start + count] for start in range(0, len(rows), count)]
    assert all(sorted(epoch) == list(range(count)) for epoch in epochs)
    assert rows == [row for step in range(2 * count) for row in Shuffled(count, size, seed)[step]]


def test_preparation_gives_one_size_and_number_of_channels() -> None:
    pixels = numpy.array([[[0, 30, 60]] * 2, [[200, 100, 20]] * 2], numpy.uint8).repeat(8, 0).repeat(8, 1)
    smaller = Preparation((2, 3), mean=0.0, deviation=1 / 255)(pixels)
    assert smaller.shape == (3, 2, 3)
    assert smaller.mean((1, 2)).round().tolist() == pixels.mean((0, 1)).tolist()
    assert (smaller[0, 0] < 40).all()
    grey = Preparation((16, 16), channels=1, mean=0.0, deviation=1 / 255)(pixels)
    assert grey[0, ::15, 0].round().tolist() == [24, 121]
    spread = Preparation((16, 16), mean=0.0, deviation=1 / 255)(pixels[..., :1])
    assert torch.equal(spread[0], spread[2])
    assert Preparation.from_json(Preparation((5, 7), 1, 0.25, 2.0).to_json()) == Preparation((5, 7), 1, 0.25, 2.0)


def test_unreadable_images_are_left_out_and_listed(tmp_path: Path) -> None:
    found = folders(people(tmp_path / "set", {"Ann": 2, "Bo": 2}, size=(40, 50)))
    damaged = tmp_path / "set" / "Ann" / "Ann_0002.jpg"
    damaged.write_bytes(damaged.read_bytes()[:700])
    [batch] = Batches(found, Preparation((20, 30)), [[3, 1, 0]]).since(0)
    assert batch.rows.tolist() == [3, 0]
    assert batch.labels.tolist() == [1, 0]
    [(item, why)] = batch.skipped
    assert item == "Ann/Ann_0002.jpg"
    assert why.startswith("damaged: ")
    kept = held(found, Preparation((20, 30)))
    assert kept.items == ("Ann/Ann_0001.jpg", "Bo/Bo_0001.jpg", "Bo/Bo_0002.jpg")
    assert kept.skipped == batch.skipped
    assert numpy.array_equal(kept.read(2), Preparation((20, 30)).fitted(found.read(3)))
    [none] = Batches(found, Preparation((20, 30)), [[1]]).since(0)
    assert none.images.shape == (0, 3, 20, 30)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Preparation((0, 3)), "Preparation: rows must be a whole number of at least 1; got 0"),
        (lambda: Preparation((3, 3), channels=2), "Preparation: channels must be 1 or 3; got 2"),
        (lambda: Preparation((3, 3), deviation=0.0), "Preparation: deviation must be positive; got 0.0"),
        (lambda: Augmentation(mirror=1.5), "Augmentation: mirror must be from 0 to 1; got 1.5"),
        (lambda: Batches(digits(), DIGITS, [], seed=-1), "Batches: seed must be a whole number of at least 0; got -1"),
        (lambda: Batches(digits(), DIGITS, [], workers=-1), "Batches: workers must be a whole number"),
        (lambda: Shuffled(0, 3), "Shuffled: count must be a whole number of at least 1; got 0"),
        (lambda: in_order(5, 0), "in_order: size must be a whole number of at least 1; got 0"),
        (lambda: held(digits().take([]), DIGITS), "held: examples must not be empty; got 0"),
    ],
)
def test_wrong_arguments_are_refused(make, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize(("mean", "deviation"), [(0.5, 0.5), (0.0, 1.0), (0.485, 0.229), (0.1, 0.3)])
@pytest.mark.parametrize("channels", [1, 3])
def test_bytes_become_the_same_numbers_to_the_last_bit(mean: float, deviation: float, channels: int) -> None:
    pixels = numpy.arange(256 * channels, dtype=numpy.int64).reshape(2, 8, 16, channels).astype(numpy.uint8)
    preparation = Preparation((8, 16), channels, mean, deviation)
    found = preparation.numbers(torch.from_numpy(pixels))
    plain = (pixels.astype(numpy.float32) / 255 - mean) / deviation
    assert torch.equal(found, torch.from_numpy(plain.transpose(0, 3, 1, 2)))
    assert torch.equal(found, torch.stack([preparation(each) for each in pixels]))
    assert found.is_contiguous()
    some = examples("dots", Stored(pixels), ["a/1", "b/1"], ["a", "b"])
    asked = [[1, 0, 1], [0]]
    for plain, small in zip(
        Batches(some, preparation, asked).since(0),
        Batches(some, preparation, asked, as_bytes=True).since(0),
        strict=True,
    ):
        assert small.images.dtype == torch.uint8
        assert torch.equal(preparation.numbers(small.images), plain.images)
        assert small.rows.tolist() == plain.rows.tolist()
