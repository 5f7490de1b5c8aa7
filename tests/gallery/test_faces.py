"""A detector is an injected part: what the model is given, what has no face, and what the fingerprint says."""

import os
import re
import tarfile
from importlib.util import find_spec
from pathlib import Path

import numpy
import pytest

from likewise.checks import MissingPackage
from likewise.data import Unreadable, decode
from likewise.gallery import Centre, DlibFaces, Embedder, Gallery, Incompatible, face_embedder
from likewise.gallery.faces import Box, largest_face, open_detector
from tests.gallery.test_gallery import flat


def painted(*boxes: Box) -> numpy.ndarray:
    """A dark picture with a light rectangle for each face."""
    pixels = numpy.zeros((60, 80, 3), numpy.uint8)
    for number, (top, left, bottom, right) in enumerate(boxes):
        pixels[top:bottom, left:right] = 200 + number
    return pixels


class Light:
    """A detector of light rectangles."""

    name = "light 1"

    def __call__(self, pixels: numpy.ndarray) -> list[Box]:
        found: list[Box] = []
        for shade in range(200, 210):
            rows, columns = (pixels[..., 0] == shade).nonzero()
            if len(rows):
                found.append((int(rows.min()), int(columns.min()), int(rows.max()) + 1, int(columns.max()) + 1))
        return found


def test_the_largest_face_is_what_the_model_sees(tmp_path: Path) -> None:
    seen: list[tuple[int, ...]] = []

    def mean(images: list[numpy.ndarray]) -> list[numpy.ndarray]:
        seen.extend(image.shape for image in images)
        return [image.mean((0, 1)) + numpy.arange(3) for image in images]

    embedder = face_embedder(Embedder(mean, "mean"), Light())
    one, two = painted((5, 5, 25, 15)), painted((40, 40, 44, 44), (0, 0, 30, 40))
    with Gallery.open(tmp_path / "a.db", embedder) as gallery:
        found = gallery.enrol("ann", [one, painted(), two])
        assert (found.templates, [why for _, why in found.skipped]) == (2, ["no face was found"])
        assert seen == [(20, 10, 3), (30, 40, 3)]
        assert gallery.verify("ann", one).squared < 1e-9
        with pytest.raises(ValueError, match="verify: probe must be readable; got no face was found"):
            gallery.verify("ann", painted())
        assert [each.outcome for each in gallery.identify([painted(), one])] == ["unreadable", "undecided"]


def test_boxes_are_widened_and_cut_at_the_edges() -> None:
    pixels = painted((0, 0, 20, 40))
    assert largest_face(pixels, Light(), 0.25).shape == (25, 50, 3)
    assert largest_face(pixels, lambda _: [(-30, -30, 10, 10), (70, 90, 99, 99)]).shape == (10, 10, 3)
    for boxes in ([], [(70, 90, 99, 99)], [(5, 5, 5, 9)]):
        with pytest.raises(Unreadable, match="no face was found"):
            largest_face(pixels, lambda _, boxes=boxes: boxes)
    assert largest_face(numpy.zeros((250, 250, 3), numpy.uint8), Centre()).shape == (114, 114, 3)
    assert largest_face(numpy.zeros((1, 7, 3), numpy.uint8), Centre()).shape == (1, 1, 3)


def test_templates_of_other_crops_are_of_another_model(tmp_path: Path) -> None:
    plain = Embedder(flat, "flat 1")
    made = [
        face_embedder(plain),
        face_embedder(plain, Centre(0.5)),
        face_embedder(plain, Light()),
        face_embedder(plain, Light(), margin=0.1),
    ]
    assert len({each.fingerprint for each in (plain, *made)}) == 5
    assert face_embedder(plain).fingerprint == face_embedder(Embedder(flat, "flat 1"), Centre()).fingerprint
    with Gallery.open(tmp_path / "a.db", made[0]) as gallery:
        gallery.enrol("ann", painted((0, 0, 60, 80)))
    with (
        Gallery.open(tmp_path / "a.db", plain) as gallery,
        pytest.raises(Incompatible, match="embed must be of flat 1, faces: centre"),
    ):
        gallery.identify(painted((0, 0, 60, 80)))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("face", "--faces must be centre, dlib or file.py:function; got 'face'"),
        ("a.py:find", "--faces: faces must be in a file that exists; got 'a.py'"),
    ],
)
def test_an_odd_detector_is_refused(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        open_detector(text)


def test_a_detector_needs_a_name_and_a_model_of_images() -> None:
    with pytest.raises(ValueError, match="face_embedder: detect must have a name"):
        face_embedder(Embedder(flat, "flat 1"), lambda pixels: [])
    with pytest.raises(ValueError, match="face_embedder: embedder must take images; got one of vectors"):
        face_embedder(Embedder(None, "vectors"))
    with pytest.raises(ValueError, match="face_embedder: margin must be at least 0"):
        face_embedder(Embedder(flat, "flat 1"), margin=-0.1)


def test_a_detector_of_ones_own_is_known_by_its_file(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    names = []
    for side in (1, 10):
        path.write_text(f"def find(pixels):\n    return [(0, 0, {side}, {side})]\n")
        detector = open_detector(f"{path}:find")
        assert detector(numpy.zeros((9, 9, 3), numpy.uint8)) == [(0, 0, side, side)]
        names.append(getattr(detector, "name", ""))
    assert names[0] != names[1]


def test_without_its_package_dlib_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("likewise.checks.find_spec", lambda name: None)
    with pytest.raises(MissingPackage, match=re.escape("pip install 'likewise[faces]'")):
        open_detector("dlib")


@pytest.mark.full
def test_dlib_finds_the_faces_of_lfw() -> None:
    archive = os.environ.get("LIKEWISE_LFW")
    if not archive or find_spec("dlib") is None:
        pytest.skip("LIKEWISE_LFW is not set, or dlib is not installed: the detector is tested on LFW")
    detect, found, middle, looked = DlibFaces(), 0, 0, 0
    with tarfile.open(archive) as opened:
        for number, member in enumerate(each for each in opened if each.name.endswith("_0001.jpg")):
            if number % 40 == 0:
                file = opened.extractfile(member)
                assert file is not None
                boxes = detect(decode(file.read()))
                looked += 1
                found += bool(boxes)
                middle += any(top < 125 < bottom and left < 125 < right for top, left, bottom, right in boxes)
    assert looked > 100
    assert (found / looked, middle / looked) > (0.97, 0.97)
    large = numpy.zeros((3000, 4000, 3), numpy.uint8)
    assert detect(large) == []
