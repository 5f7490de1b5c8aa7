"""A shift changes what it says and nothing else, and a table's row is the judgement of shifted images."""

import io
import json
import math

import numpy
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from likewise.data import Preparation
from likewise.evaluation import judge
from likewise.evaluation.protocols import Everyone
from likewise.evaluation.shifts import Brightness, Cover, Gamma, Jpeg, Mirror, Move, Resolution, Shift, Turn, shifted
from likewise.evaluation.sweeps import SHIFTS, robustness, table4
from tests.data.drawing import picture
from tests.evaluation.faces import PREPARATION, Looking, drawn_people, plain_vectors

EVERY = [Mirror(), Jpeg(30), Resolution(50), *SHIFTS]


@pytest.mark.parametrize("shift", EVERY, ids=lambda shift: f"{shift.group} {shift.value:g}")
@pytest.mark.parametrize("channels", [1, 3])
def test_a_shift_keeps_the_form_and_the_original(shift: Shift, channels: int) -> None:
    pixels = numpy.asarray(picture(size=(23, 17)))[..., :channels]
    before = pixels.copy()
    found = shift(pixels)
    assert (found.shape, found.dtype) == (pixels.shape, numpy.uint8)
    assert not numpy.array_equal(found, before)
    assert numpy.array_equal(pixels, before)
    assert isinstance(shift, Shift)


@pytest.mark.parametrize(
    "shift", [Cover(0.0), Gamma(1.0), Brightness(0.0), Move(0.0), Turn(0.0), Resolution(23 * 17)], ids=lambda s: s.group
)
def test_no_shift_is_no_change(shift: Shift) -> None:
    pixels = numpy.asarray(picture(size=(23, 17)))
    assert numpy.array_equal(shift(pixels), pixels)


def test_jpeg_is_pillows_at_that_quality_and_worse_when_lower() -> None:
    image = picture(size=(24, 20))
    pixels = numpy.asarray(image).astype(int)
    file = io.BytesIO()
    image.save(file, "JPEG", quality=20)
    assert numpy.array_equal(Jpeg(20)(numpy.asarray(image)), numpy.asarray(Image.open(file)))
    errors = [numpy.abs(Jpeg(q)(numpy.asarray(image)) - pixels).mean() for q in (5, 30, 95)]
    assert errors[0] > errors[1] > errors[2]


def test_fewer_pixels_are_means_of_what_they_cover() -> None:
    flat = numpy.full((12, 12, 1), 77, numpy.uint8)
    assert numpy.array_equal(Resolution(9)(flat), flat)
    board = (numpy.indices((12, 12)).sum(0) % 2 * 200)[..., None].astype(numpy.uint8)
    assert abs(Resolution(9)(board).astype(float) - 100).max() < 15
    assert Resolution(144)(board) is board


@given(st.floats(0, 1), st.floats(0, 1), st.floats(0, 1), st.floats(0, 1))
def test_a_box_covers_its_part_and_lies_inside(high: float, wide: float, down: float, across: float) -> None:
    found = Cover(high, wide=wide, down=down, across=across)(numpy.zeros((20, 30, 1), numpy.uint8))[..., 0] == 128
    assert found.sum() == round(high * 20) * round(wide * 30)
    if found.any():
        rows, columns = found.any(1).nonzero()[0], found.any(0).nonzero()[0]
        assert found[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1].all()
        assert abs((rows[0] + rows[-1] + 1) / 2 - down * 20) <= 0.75 or rows[0] == 0 or rows[-1] == 19


def test_a_quarter_turn_is_against_the_clock() -> None:
    pixels = numpy.zeros((9, 9, 1), numpy.uint8)
    pixels[4, 8] = 255  # on the right
    assert Turn(90.0)(pixels)[0, 4, 0] > 200  # now at the top


def test_wrong_amounts_are_refused() -> None:
    for make, message in (
        (lambda: Jpeg(0), "Jpeg: value must be a quality from 1 to 95; got 0."),
        (lambda: Resolution(0), "Resolution: value must be a number of pixels; got 0."),
        (lambda: Cover(1.5), "Cover: value must be from 0 to 1; got 1.5."),
        (lambda: Cover(0.5, wide=-1.0), "Cover: wide must be from 0 to 1; got -1.0."),
        (lambda: Gamma(0.0), "Gamma: value must be positive; got 0.0."),
        (lambda: Move(2.0), "Move: value must be from -1 to 1; got 2.0."),
    ):
        with pytest.raises(ValueError) as error:  # noqa: PT011 -- the whole message is compared below
            make()
        assert str(error.value) == message


def test_a_shift_is_applied_at_the_networks_size() -> None:
    examples = drawn_people(2, 2)
    half = shifted(examples, Preparation((6, 4), channels=1), Move(0.5))
    assert half.read(0).shape == (6, 4, 1)
    expected = Preparation((6, 4), channels=1).fitted(examples.read(0))
    assert numpy.array_equal(half.read(0)[:, 2:], expected[:, :2])


@pytest.mark.parametrize("protocol", ["all", "listed"])
def test_a_row_is_the_judgement_of_shifted_images(protocol: str) -> None:
    examples, network = drawn_people(10, 4, noise=50.0), Looking()
    chosen = Everyone(2) if protocol == "all" else Everyone(2).draw(examples.labels)
    box = Cover(0.5)
    found = robustness(network, PREPARATION, examples, shifts=[box], protocol=chosen, far=0.1)
    clean = plain_vectors(examples, network)
    covered = plain_vectors(shifted(examples, PREPARATION, box), network)
    rates = judge(clean, examples.labels, covered, protocol=chosen, far=0.1)
    base = judge(clean, examples.labels, protocol=chosen, far=0.1)
    first, second = found.rows
    assert (first.group, first.val, first.threshold) == ("unchanged", base.val, base.threshold)
    assert (second.group, second.value, second.val, second.accuracy) == ("covered", 0.5, rates.val, rates.accuracy)
    assert second.val < first.val
    if protocol == "all":
        rows = [(i, j) for i in range(40) for j in range(40) if i != j]
    else:
        assert not isinstance(chosen, Everyone)
        rows = [tuple(row) for row in chosen.rows.tolist()]
    accepted = {True: [0, 0], False: [0, 0]}
    for i, j in rows:
        kind = accepted[bool(examples.labels[i] == examples.labels[j])]
        kind[0] += bool((clean[i] - covered[j]).square().sum() <= base.threshold)
        kind[1] += 1
    assert second.val_kept == pytest.approx(accepted[True][0] / accepted[True][1])
    assert second.far_kept == pytest.approx(accepted[False][0] / accepted[False][1])


@pytest.mark.slow
def test_table_4_changes_all_images_and_skips_what_changes_nothing() -> None:
    examples, network, told = drawn_people(8, 4, noise=50.0), Looking(), []
    found = table4(
        network, PREPARATION, examples, protocol=Everyone(2), far=0.1, progress=lambda done, doing: told.append(done)
    )
    assert network.shown == 11 * len(examples)  # all but that of more pixels than the network takes
    assert [(row.group, row.value) for row in found.rows[1:]] == [
        *(("JPEG quality", quality) for quality in (10, 20, 30, 50, 70, 90)),
        *(("pixels", pixels) for pixels in (5, 19, 43, 76, 195)),
    ]
    unchanged, *_, last = found.rows
    assert last.note == "as the 144 pixels that the network takes"
    assert (last.val, last.threshold) == (unchanged.val, unchanged.threshold)
    vectors = plain_vectors(shifted(examples, PREPARATION, Jpeg(10)), network)
    rates = judge(vectors, examples.labels, protocol=Everyone(2), far=0.1)
    assert (found.rows[1].val, found.rows[1].threshold) == (rates.val, rates.threshold)
    assert (found.far, found.protocol, found.finished) == (0.1, "all pairs", True)
    assert told == sorted(told)
    assert json.loads(json.dumps(found.to_json(), allow_nan=False))["rows"][1]["value"] == 10


def test_images_too_many_to_hold_are_read_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    from likewise.evaluation import sweeps

    examples = drawn_people(6, 4, noise=50.0)
    before = robustness(Looking(), PREPARATION, examples, shifts=[Gamma(2.0)], far=0.2)
    monkeypatch.setattr(sweeps, "HELD", 0)
    assert robustness(Looking(), PREPARATION, examples, shifts=[Gamma(2.0)], far=0.2) == before


def test_a_mirrored_sweep_mirrors_the_shifted_image() -> None:
    examples, network = drawn_people(6, 4, noise=50.0), Looking()
    found = robustness(network, PREPARATION, examples, shifts=[Move(0.25)], far=0.2, mirror=True)
    vectors = []
    for images in (examples, shifted(examples, PREPARATION, Move(0.25))):
        turned = shifted(images, PREPARATION, Mirror())
        both = plain_vectors(images, network) + plain_vectors(turned, network)
        vectors.append(torch.nn.functional.normalize(both))
    assert found.rows[1].val == judge(vectors[0], examples.labels, vectors[1], protocol=Everyone(), far=0.2).val
    assert not math.isnan(found.rows[1].far_kept)


def test_no_shift_at_all_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^robustness: shifts must hold at least one; got none\."):
        robustness(Looking(), PREPARATION, drawn_people(6, 4), shifts=[])
