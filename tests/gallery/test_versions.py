"""A new model beside an old one: proved compatible, refused, or enrolled anew."""

from functools import partial
from pathlib import Path

import numpy
import pytest

from likewise.gallery import Embedder, Gallery, Incompatible
from likewise.gallery.jobs import upgrade_gallery
from tests.gallery.people import model_of, people

EVERYBODY = people(90, 8, spread=0.15)
TURNED = numpy.linalg.qr(numpy.random.default_rng(5).normal(size=(13, 13)))[0].astype(numpy.float32)
V1, V2, V3 = (Embedder(None, name) for name in ("v1", "v2", "v3"))
HELD_OUT = dict(list(EVERYBODY.items())[40:])
KNOWN = dict(list(EVERYBODY.items())[:40])


def harmonic(rows: numpy.ndarray) -> numpy.ndarray:
    """A better model whose vectors may be compared with the old ones: less noise."""
    centre = rows.mean(0, keepdims=True)
    return centre + 0.3 * (rows - centre)


def filled(folder: Path) -> Gallery:
    gallery = Gallery.open(folder / "a.db", V1)
    for name, rows in KNOWN.items():
        gallery.enrol(name, rows)
    gallery.calibrate(HELD_OUT, far=0.05)
    return gallery


def test_a_compatible_model_is_proved_and_a_mixed_gallery_works(tmp_path: Path) -> None:
    with filled(tmp_path) as gallery:
        before = gallery.calibration
        found = gallery.upgrade(V2, {n: harmonic(rows) for n, rows in HELD_OUT.items()}, old=HELD_OUT)
        assert found.compatible, found.reasons
        assert found.versions.far == 0.05
        assert model_of(gallery).name == "v2"
        assert gallery.calibration == before
        gallery.enrol("new", harmonic(people(1, 4, seed=9)["person 0"]))
        for name, rows in KNOWN.items():
            assert gallery.identify(harmonic(rows)[0])[0].candidates[0].identity == name
        assert gallery.identify(harmonic(people(1, 4, seed=9)["person 0"])[1])[0].candidates[0].identity == "new"
        assert len(gallery.outdated()) == 40
    with Gallery.open(tmp_path / "a.db", V1) as old:  # an old client is still understood
        assert old.identify(KNOWN["person 3"][0])[0].candidates[0].identity == "person 3"


def test_a_model_that_is_not_compatible_changes_nothing(tmp_path: Path) -> None:
    with filled(tmp_path) as gallery:
        found = gallery.upgrade(V2, {n: rows @ TURNED for n, rows in HELD_OUT.items()}, old=HELD_OUT)
        assert not found.compatible
        assert ": no." in " ".join(found.reasons)
        assert (model_of(gallery).name, len(gallery.store.models())) == ("v1", 1)
    with (
        Gallery.open(tmp_path / "a.db", V2) as gallery,
        pytest.raises(Incompatible, match=r"embed must be of v1 \(\w+\) or compatible with it; got v2"),
    ):
        gallery.identify(KNOWN["person 3"] @ TURNED)


def test_enrolling_anew_goes_on_where_it_stopped(tmp_path: Path) -> None:
    with filled(tmp_path) as gallery:
        gallery.upgrade(V2, {n: harmonic(rows) for n, rows in HELD_OUT.items()}, old=HELD_OUT)
        asked: list[str] = []

        def images(name: str) -> numpy.ndarray:
            asked.append(name)
            return harmonic(KNOWN[name])

        first = gallery.reenrol(images, interrupted=lambda: len(asked) == 15)
        assert (first.identities, len(gallery.outdated())) == (15, 25)
        assert gallery.identify(harmonic(KNOWN["person 39"])[0])[0].candidates[0].identity == "person 39"
        second = gallery.reenrol(images)
        assert (second.identities, gallery.outdated(), len(set(asked))) == (25, (), 40)
        assert gallery.store.count() == (40, 320)


def test_another_model_takes_over_when_everybody_has_templates(tmp_path: Path) -> None:
    with filled(tmp_path) as gallery:
        turned = {name: rows @ TURNED for name, rows in KNOWN.items()}
        count = iter(range(100))
        gallery.reenrol(turned, embed=V3, interrupted=lambda: next(count) == 30)
        assert model_of(gallery).name == "v1"
        assert gallery.identify(KNOWN["person 3"][0])[0].candidates[0].identity == "person 3"
        gallery.reenrol(turned, embed=V3)
        assert model_of(gallery).name == "v3"
        assert gallery.store.count() == (40, 320)
        assert gallery.calibration.verify is None  # thresholds belong to a model
        assert gallery.identify(turned["person 3"][0])[0].candidates[0].squared < 1e-6


def test_compatibility_is_not_passed_along_a_chain(tmp_path: Path) -> None:
    with filled(tmp_path) as gallery:
        better = {n: harmonic(rows) for n, rows in HELD_OUT.items()}
        gallery.upgrade(V2, better, old=HELD_OUT)
        with pytest.raises(ValueError, match="gallery must hold templates of one model; got 40 older ones"):
            gallery.upgrade(V3, better, old=better)
        gallery.reenrol({name: harmonic(rows) for name, rows in KNOWN.items()})
        assert gallery.upgrade(V3, better, old=better).compatible


@pytest.mark.parametrize(
    ("embed", "held_out", "message"),
    [
        (V1, HELD_OUT, "embed must be another model; got v1"),
        (V2, {"a": numpy.eye(12), "b": numpy.eye(12)}, "embed must give vectors like those of v1"),
        (V2, {}, "held_out must hold images of two people; got 0"),
    ],
)
def test_odd_upgrades_are_refused(embed: Embedder, held_out: dict, message: str, tmp_path: Path) -> None:
    with filled(tmp_path) as gallery, pytest.raises(ValueError, match=message):
        gallery.upgrade(embed, held_out)


def test_one_call_judges_and_enrols_and_goes_on_where_it_stopped(tmp_path: Path) -> None:
    pictures = {name: numpy.stack([coded(row) for row in rows]) for name, rows in EVERYBODY.items()}
    known, held_out = (dict(list(pictures.items())[part]) for part in (slice(0, 40), slice(40, None)))
    same, turned = (Embedder(call, name) for call, name in ((decoded, "v2"), (lambda x: decoded(x) @ TURNED, "v3")))
    with Gallery.open(tmp_path / "a.db", decoded, model="v1") as gallery:
        for name, rows in known.items():
            gallery.enrol(name, rows)
        for newer, replace in ((same, False), (turned, True)):
            upgrade = partial(upgrade_gallery, gallery, newer, held_out, far=0.05, images=known, replace=replace)
            stopped = iter([False] * 15 + [True]).__next__
            first, added = upgrade(interrupted=stopped)
            assert first is not None
            assert added is not None
            assert (first.compatible, added.identities) == (not replace, 15)
            again, added = upgrade()
            assert again is None
            assert added is not None
            assert (added.identities, gallery.outdated(newer), gallery.embedder.name) == (25, (), newer.name)
            assert gallery.store.count() == (40, 320)
        verdict, added = upgrade_gallery(gallery, same, held_out, far=0.05, images=known)
        assert verdict is not None
        assert (verdict.compatible, added) == (False, None)


def coded(row: numpy.ndarray) -> numpy.ndarray:
    """A vector as a picture of 1 x 13."""
    return numpy.repeat(((row + 1) * 127).astype(numpy.uint8)[None, :, None], 3, axis=2)


def decoded(images: list[numpy.ndarray]) -> numpy.ndarray:
    return numpy.stack([image[0, :, 0] / 127 - 1 for image in images])


def test_images_that_are_not_known_are_asked_for(tmp_path: Path) -> None:
    with (
        filled(tmp_path) as gallery,
        pytest.raises(ValueError, match="images must be known; got no path for 'person 0'"),
    ):
        gallery.reenrol(embed=V3)
