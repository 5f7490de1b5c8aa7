"""Enrolment of many identities: batches of a model, transactions of several people, interruptions."""

from collections.abc import Sequence
from pathlib import Path

import numpy
import pytest

from likewise.gallery import Gallery, batches
from likewise.gallery.embedding import Embedder, vectors_of_each
from likewise.gallery.jobs import enrol_people
from likewise.gallery.store import Model, Person
from tests.gallery.test_gallery import flat, picture


class Counting:
    """A model that notes how many images it was given at once."""

    def __init__(self) -> None:
        self.sizes: list[int] = []

    def __call__(self, images: list[numpy.ndarray]) -> list[list[float]]:
        self.sizes.append(len(images))
        return flat(images)


def pictures(count: int, each: int = 2) -> dict[str, list[numpy.ndarray]]:
    return {f"person {n}": [picture(n * each + k) for k in range(each)] for n in range(count)}


def noted(gallery: Gallery, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of identities of every transaction from now on."""
    sizes: list[int] = []
    add = gallery.store.add

    def counting(people: Sequence[Person], model: Model, *, replaces: Sequence[int] = ()) -> int:
        sizes.append(len(people))
        return add(people, model, replaces=replaces)

    monkeypatch.setattr(gallery.store, "add", counting)
    return sizes


def test_people_share_batches_of_the_model_and_transactions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    call, people = Counting(), pictures(50)
    with Gallery.open(tmp_path / "a.db", call, model="flat 1") as gallery:
        sizes = noted(gallery, monkeypatch)
        found = enrol_people(gallery, people)
        assert (found.added.identities, found.added.templates, found.finished) == (50, 100, True)
        assert call.sizes == [32, 32, 32, 4]
        assert sum(sizes) == 50
        assert len(sizes) < 10  # by time: at most a second each
        for name, images in people.items():
            [held] = gallery.store.templates(gallery.store.number(name))
            assert held.rows.tobytes() == gallery.embedder(images).vectors.tobytes()


def test_what_cannot_be_read_is_left_out_of_its_own_identity(tmp_path: Path) -> None:
    (tmp_path / "diary.jpg").write_text("a diary")
    people = {"ann": [picture(1), tmp_path / "diary.jpg"], "bob": [b"", picture(2)], "eve": [b""], "zoe": [picture(3)]}
    found = dict(vectors_of_each(people.items(), Embedder(flat, "flat 1")))
    assert {name: (len(each.vectors), each.places) for name, each in found.items()} == {
        "ann": (1, (0,)),
        "bob": (1, (1,)),
        "eve": (0, ()),
        "zoe": (1, (0,)),
    }
    assert [item for each in found.values() for item, _ in each.skipped] == [
        str(tmp_path / "diary.jpg"),
        "image 0",
        "image 0",
    ]
    with Gallery.open(tmp_path / "a.db", flat, model="flat 1") as gallery:
        added = enrol_people(gallery, people).added
        assert (added.identities, added.templates, len(added.skipped)) == (3, 3, 3)
        assert gallery.identities() == ("ann", "bob", "zoe")


def test_an_interrupted_enrolment_keeps_whole_people_and_goes_on(tmp_path: Path) -> None:
    people = pictures(60)
    with Gallery.open(tmp_path / "a.db", flat, model="flat 1") as gallery:
        asked = iter(range(100))
        first = enrol_people(gallery, people, interrupted=lambda: next(asked) == 21)
        assert (first.added.identities, first.finished, gallery.store.count()) == (21, False, (21, 42))
        second = enrol_people(gallery, people)
        assert (second.already, second.added.identities, second.finished) == (21, 39, True)
        assert gallery.store.count() == (60, 120)


def test_an_error_leaves_what_was_embedded_before_it(tmp_path: Path) -> None:
    def failing(images: list[numpy.ndarray]) -> list[list[float]]:
        if any((image == picture(80)).all() for image in images):
            raise RuntimeError("the model failed")
        return flat(images)

    with Gallery.open(tmp_path / "a.db", failing, model="flat 1") as gallery:
        with pytest.raises(RuntimeError, match="the model failed"):
            enrol_people(gallery, pictures(60))
        assert gallery.store.count() == (32, 64)  # of person 40, in the third batch, and those beside, nothing


def test_who_was_enrolled_meanwhile_is_left(tmp_path: Path) -> None:
    people = pictures(8)
    with (
        Gallery.open(tmp_path / "a.db", flat, model="flat 1") as one,
        Gallery.open(tmp_path / "a.db", flat, model="flat 1") as two,
    ):

        def other() -> bool:
            if "person 5" not in two:
                two.enrol("person 5", people["person 5"])
            return False

        first = iter([False])
        found = enrol_people(one, people, interrupted=lambda: next(first, None) is None and other())
        assert (found.added.identities, found.already, one.store.count()) == (7, 1, (8, 16))


def test_a_slow_model_waits_for_no_full_transaction(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "SECONDS", 0.0)
    with Gallery.open(tmp_path / "a.db", flat, model="flat 1") as gallery:
        sizes = noted(gallery, monkeypatch)
        enrol_people(gallery, pictures(7))
        assert sizes == [1] * 7
