"""One contract for every store; a new engine is a new row of STORES."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy
import pytest

from likewise.gallery import Gallery, Limits, Store
from likewise.gallery.sqlite import SqliteStore
from likewise.gallery.store import Model, Person
from tests.gallery.people import WIDTH, people

STORES: dict[str, Callable[[Path], Store]] = {"sqlite": lambda folder: SqliteStore(folder / "gallery.db")}
MODEL = Model(0, "v1", b"1" * 32, WIDTH, True, "float32")


@pytest.fixture(params=STORES)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    opened = STORES[request.param](tmp_path)
    yield opened
    opened.close()


def person(name: str, vectors: numpy.ndarray, metadata: str | None = None) -> Person:
    return Person(name, vectors, tuple(f"{name}/{row}" for row in range(len(vectors))), metadata)


def test_a_store_is_one(store: Store) -> None:
    assert isinstance(store, Store)
    assert store.erases in ("proven", "delegated")
    assert store.origin > 0
    with store.snapshot():
        assert store.count() == (0, 0)


def test_what_is_added_is_found(store: Store) -> None:
    model = store.add_model(MODEL, current=True)
    assert store.current() == model
    everybody = people(7, 3)
    added = store.add([person(name, rows, '{"a": 1}') for name, rows in everybody.items()], model)
    assert (added, store.count()) == (21, (7, 21))
    assert list(store.names().values()) == sorted(everybody)
    number = store.number("person 3")
    assert store.names([number, 10**9]) == {number: "person 3"}
    assert json.loads(store.metadata(number)) == {"a": 1}
    [found] = store.templates(number)
    assert found.model == model
    assert found.sources == ("person 3/0", "person 3/1", "person 3/2")
    numpy.testing.assert_array_equal(found.rows, everybody["person 3"])
    hits = store.nearest(everybody["person 3"], model, k=3)
    assert (hits.identities == number).all()
    assert numpy.allclose(hits.squared[:, 0], 0, atol=1e-12)
    rows, owners = (numpy.concatenate(each) for each in zip(*store.rows(model), strict=True))
    assert rows.tobytes() == b"".join(each.tobytes() for each in everybody.values())
    assert len(set(owners.tolist())) == 7


def test_more_templates_of_an_identity_add_up(store: Store) -> None:
    model = store.add_model(MODEL, current=True)
    one, two = people(2, 2).values()
    store.add([person("ann", one, '{"a": 1}')], model)
    store.add([person("ann", two)], model)
    assert store.count() == (1, 4)
    assert store.metadata(store.number("ann")) == '{"a": 1}'


def test_what_is_removed_is_not_found_and_its_number_never_comes_back(store: Store) -> None:
    model = store.add_model(MODEL, current=True)
    everybody = people(5, 2)
    store.add([person(name, rows) for name, rows in everybody.items()], model)
    store.nearest(everybody["person 4"], model, k=1)
    number = store.number("person 4")
    erasure = store.remove("person 4", prove=True)
    assert (erasure.templates, erasure.status) == (2, "erased" if store.erases == "proven" else "delegated")
    assert (store.number("person 4"), store.count(), store.names([number])) == (0, (4, 8), {})
    assert number not in store.nearest(everybody["person 4"], model, k=8).identities
    store.add([person("person 4", everybody["person 4"])], model)
    assert store.number("person 4") > number
    with pytest.raises(ValueError, match="identity must be in the gallery; got 'nobody'"):
        store.remove("nobody", prove=False)


def test_models_are_known_by_their_fingerprints(store: Store) -> None:
    first = store.add_model(MODEL, current=True)
    assert store.add_model(MODEL, current=False) == first
    second = store.add_model(Model(0, "v2", b"2" * 32, WIDTH, True, "float32", first.id), current=True)
    assert store.models() == (first, second)
    assert store.current() == second
    store.add([person("ann", people(1, 2)["person 0"])], first)
    assert store.waiting([first.id]) == ("ann",)
    store.add([person("ann", people(1, 3)["person 0"])], second, replaces=[first.id])
    assert (store.waiting([first.id]), store.waiting([second.id]), store.count()) == ((), ("ann",), (1, 3))
    assert store.nearest(people(1)["person 0"], first, k=1).identities.tolist() == [[0]]
    assert store.retire([second.id]) == 3
    assert store.nearest(people(1)["person 0"], second, k=1).identities.tolist() == [[0]]


def test_calibrations_are_kept_by_model_and_kind(store: Store) -> None:
    model = store.add_model(MODEL, current=True)
    store.set_calibration(model.id, "verify", {"threshold": 0.1})
    store.set_calibration(model.id, "verify", {"threshold": 0.25})
    store.set_calibration(model.id, "identify", {"threshold": 1.0})
    assert store.calibrations() == {
        (model.id, "verify"): {"threshold": 0.25},
        (model.id, "identify"): {"threshold": 1.0},
    }


@pytest.mark.parametrize("codes", [False, True])
def test_a_dump_has_the_same_bytes(codes: bool, tmp_path: Path) -> None:
    with Gallery.open(tmp_path / "one.db", model="v1", codes=codes) as one:
        for name, rows in people(11, 2).items():
            one.enrol(name, rows, metadata={"name": name})
        one.calibrate(far=0.1)
        one.dump(tmp_path / "all.npz")
        with Gallery.load(tmp_path / "all.npz", tmp_path / "two.db") as two:
            assert two.identities() == one.identities()
            assert two.metadata("person 7") == {"name": "person 7"}
            assert two.calibration == one.calibration
            for name in one.identities():
                [a], [b] = (each.store.templates(each.store.number(name)) for each in (one, two))
                assert a.rows.tobytes() == b.rows.tobytes()
            probe = people(11, 2)["person 5"][0]
            assert two.verify("person 5", probe) == one.verify("person 5", probe)
            two.dump(tmp_path / "again.npz")
        assert (
            numpy.load(tmp_path / "all.npz")["rows_1"].tobytes()
            == numpy.load(tmp_path / "again.npz")["rows_1"].tobytes()
        )


def test_quotas_refuse_before_anything_is_written(tmp_path: Path) -> None:
    limits = Limits(identities=3, templates=5, templates_each=2, metadata=40, width=WIDTH, probes=4, top=2)
    rows = people(9)
    with Gallery.open(tmp_path / "a.db", limits=limits) as gallery:
        gallery.enrol("ann", rows["person 0"])
        with pytest.raises(ValueError, match="an identity must have at most 2 templates; got 3 for 'ann'"):
            gallery.enrol("ann", people(1, 2)["person 0"])
        with pytest.raises(ValueError, match="identities must be at most 3 in all; got 4"):
            gallery.enrol(["b", "c", "d"], numpy.concatenate([rows[f"person {n}"] for n in (1, 2, 3)]))
        assert (len(gallery), gallery.store.count()) == (1, (1, 1))
        with pytest.raises(ValueError, match="metadata must be at most 40 characters of JSON"):
            gallery.enrol("e", rows["person 1"], metadata={"x": "y" * 50})
        with pytest.raises(ValueError, match=r"vectors must have the width of vectors \(\w+\), 13; got 14"):
            gallery.enrol("e", numpy.ones((1, 14)))
        with pytest.raises(ValueError, match="probes must be at most 4; got 5"):
            gallery.identify(numpy.concatenate([rows[f"person {n}"] for n in range(5)]), top=1)
        with pytest.raises(ValueError, match="top must be at most 2; got 3"):
            gallery.identify(rows["person 1"], top=3)
        assert gallery.store.count() == (1, 1)
