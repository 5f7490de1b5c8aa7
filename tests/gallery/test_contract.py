"""One contract for every store; a new engine is a new row of STORES. Engines that run apart are in the full run."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy
import pytest
import torch

from likewise.gallery import Gallery, Limits, Store
from likewise.gallery.opening import open_store
from likewise.gallery.store import Correction, Model, Person
from likewise.metric import quantised
from tests.gallery.engines import new_milvus, new_milvus_lite, new_postgres
from tests.gallery.people import WIDTH, people

# Each gives the URL of an empty gallery, and another one each time.
STORES: dict[str, Callable[[Path], str]] = {
    "sqlite": lambda folder: f"sqlite:///{folder}/gallery{len(list(folder.glob('gallery*')))}.db",
    "postgres": lambda folder: new_postgres(),
    "milvus-lite": new_milvus_lite,
    "milvus": lambda folder: new_milvus(),
}
RUN = [pytest.param(name, marks=[] if name == "sqlite" else pytest.mark.full) for name in STORES]
MODEL = Model(0, "v1", b"1" * 32, WIDTH, True, "float32")
CODES = Model(0, "codes", b"c" * 32, WIDTH, True, "int8")
FREE = Model(0, "free", b"f" * 32, WIDTH, False, "float32")


@pytest.fixture(params=RUN)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return STORES[request.param](tmp_path)


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    opened = open_store(url)
    yield opened
    opened.close()


def person(name: str, vectors: numpy.ndarray, metadata: str | None = None) -> Person:
    return Person(name, vectors, tuple(f"{name}/{row}" for row in range(len(vectors))), metadata)


def numbers_of(store: Store, model: Model) -> dict[str, list[int]]:
    """Numbers of the templates of each identity."""
    names = store.names()
    found: dict[str, list[int]] = {}
    for _, owners, numbers in store.rows(model):
        for owner, number in zip(owners.tolist(), numbers.tolist(), strict=True):
            found.setdefault(names[owner], []).append(number)
    return found


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
    rows, owners, numbers = (numpy.concatenate(each) for each in zip(*store.rows(model), strict=True))
    assert rows.tobytes() == b"".join(each.tobytes() for each in everybody.values())
    assert len(set(owners.tolist())) == 7
    assert (numpy.diff(numbers) > 0).all()


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


@pytest.mark.parametrize("model", [MODEL, CODES, FREE], ids=lambda model: model.name)
def test_the_nearest_are_exact_by_distance_and_then_by_enrolment(store: Store, model: Model) -> None:
    draw = numpy.random.default_rng(3)
    rows = numpy.concatenate(list(people(211, 3, spread=0.4).values()))
    rows[100:140] = rows[100]  # ties
    if model.name == "free":
        rows *= draw.uniform(0.5, 2, (len(rows), 1)).astype(numpy.float32)
    rows = quantised(torch.from_numpy(rows)).numpy() if model.kind == "int8" else rows
    added = store.add_model(model, current=True)
    store.add([person(f"p{number:03}", rows[number : number + 1]) for number in range(len(rows))], added)
    queries = rows[[100, 7, 400]]
    x, y = rows.astype(numpy.float64), queries.astype(numpy.float64)
    if model.kind == "int8":
        x, y = (each / numpy.linalg.norm(each, axis=1, keepdims=True) for each in (x, y))
    squared = ((y[:, None] - x) ** 2).sum(-1)
    order = numpy.argsort(squared.round(12), axis=1, kind="stable")[:, :50]
    hits = store.nearest(queries, added, k=50)
    names = store.names(hits.identities.ravel().tolist())
    assert [[names[number] for number in row] for row in hits.identities.tolist()] == [
        [f"p{number:03}" for number in row] for row in order.tolist()
    ]
    numpy.testing.assert_allclose(hits.squared, numpy.take_along_axis(squared, order, 1), rtol=1e-9, atol=1e-12)
    few = store.nearest(queries[:1], added, k=len(rows) + 5)
    assert (few.identities[0, len(rows) :] == 0).all()
    assert numpy.isinf(few.squared[0, len(rows) :]).all()
    assert sorted(few.identities[0, : len(rows)].tolist()) == sorted(store.names())


def test_templates_can_be_given_to_another_identity(store: Store) -> None:
    model = store.add_model(MODEL, current=True)
    everybody = people(4, 2)
    store.add([person(name, rows) for name, rows in everybody.items()], model)
    store.nearest(everybody["person 0"], model, k=1)  # what is in memory has to follow
    numbers = numbers_of(store, model)
    new = store.assign([*numbers["person 1"], numbers["person 2"][0]], "ann")
    assert (store.number("ann"), store.count()) == (new, (4, 8))
    assert list(store.names().values()) == ["ann", "person 0", "person 2", "person 3"]  # nobody is left without any
    assert store.nearest(everybody["person 1"], model, k=1).identities.tolist() == [[new], [new]]
    [held] = store.templates(new)
    assert held.sources == ("person 1/0", "person 1/1", "person 2/0")
    with pytest.raises(ValueError, match=r"assign: templates must be in the gallery; got \[1000000000\]"):
        store.assign([numbers["person 3"][0], 10**9], "nobody")
    assert (store.number("nobody"), store.number("person 3") > 0) == (0, True)
    assert store.assign(numbers["person 1"], "person 0") == store.number("person 0")
    assert (len(store.templates(store.number("person 0"))[0].rows), store.number("ann")) == (4, new)


def test_corrections_outlive_the_templates_between(store: Store) -> None:
    model = store.add_model(MODEL, current=True)
    everybody = people(5)
    store.add([person(name, rows) for name, rows in everybody.items()], model)
    one, two, three, four, _ = (numbers[0] for numbers in numbers_of(store, model).values())
    made = [Correction(one, two, True), Correction(two, three, True), Correction(two, four, False)]
    store.correct(made[:1])
    store.correct(made[1:])
    assert store.corrections() == tuple(made)
    store.remove("person 4", prove=False)
    assert store.corrections() == tuple(made)
    store.remove("person 1", prove=False)
    assert store.corrections() == (Correction(one, three, True), Correction(one, four, False))
    store.retire([model.id])
    assert store.corrections() == ()


def test_corrections_pass_to_the_templates_that_replace_others(store: Store) -> None:
    old = store.add_model(MODEL, current=True)
    everybody = people(4, 3)
    store.add([person(name, rows) for name, rows in everybody.items()], old)
    numbers = numbers_of(store, old)
    (one, two, three), (four, *_) = numbers["person 0"], numbers["person 1"]
    kept = numbers["person 2"][0]
    store.correct(
        [
            Correction(one, two, False),
            Correction(two, four, True),
            Correction(three, kept, True),
            Correction(two, kept, False),
        ]
    )
    new = store.add_model(Model(0, "v2", b"2" * 32, WIDTH, True, "float32", old.id), current=True)
    replaced = [  # other files of the same names in another order, and vectors without a source
        Person("person 0", everybody["person 0"][::-1], ("b/2", "b/1", "b/0")),
        Person("person 1", everybody["person 1"], ("", "", "")),
    ]
    store.add(replaced, new, replaces=[old.id])
    fresh = numbers_of(store, new)
    (third, second, first), (fourth, *_) = fresh["person 0"], fresh["person 1"]
    assert store.corrections() == (
        Correction(first, second, False),
        Correction(second, fourth, True),
        Correction(third, kept, True),
        Correction(second, kept, False),
    )
    newest = store.add_model(Model(0, "v3", b"3" * 32, WIDTH, True, "float32", new.id), current=True)
    store.add([Person("person 0", everybody["person 0"][:1], ("c/2",))], newest, replaces=[new.id])
    [last] = numbers_of(store, newest)["person 0"]
    assert store.corrections() == (Correction(last, kept, True), Correction(fourth, kept, False))
    store.add([person("person 3", everybody["person 3"])], newest)
    heir, *_ = numbers_of(store, newest)["person 3"]
    store.retire([old.id], heirs={kept: heir})
    assert store.corrections() == (Correction(last, heir, True), Correction(fourth, heir, False))


@pytest.mark.parametrize("codes", [False, True])
def test_a_gallery_moves_with_the_same_bytes(url: str, codes: bool, tmp_path: Path) -> None:
    """From the embedded store to an engine and back: templates, calibration and corrections."""
    rows = people(11, 2)
    with Gallery.open(tmp_path / "one.db", model="v1", codes=codes) as one:
        for turn in (0, 1):  # the templates of a person do not follow each other
            for name in rows:
                one.enrol(name, rows[name][[turn]], metadata={"name": name})
        one.calibrate(far=0.1)
        first, second = numbers_of(one.store, one.store.models()[0])["person 3"]
        one.store.correct([Correction(first, second, same=True)])
        one.dump(tmp_path / "one.npz")
        with Gallery.load(tmp_path / "one.npz", url) as two:
            assert two.identities() == one.identities()
            assert two.metadata("person 7") == {"name": "person 7"}
            assert two.calibration == one.calibration
            for name in one.identities():
                [a], [b] = (each.store.templates(each.store.number(name)) for each in (one, two))
                assert a.rows.tobytes() == b.rows.tobytes()
                assert a.sources == b.sources
            [moved] = two.store.corrections()
            assert [moved.one, moved.two] == numbers_of(two.store, two.store.models()[0])["person 3"]
            probe = people(11, 2)["person 5"][0]
            assert two.verify("person 5", probe) == one.verify("person 5", probe)
            assert [each.identity for each in two.identify(probe)[0].candidates] == [
                each.identity for each in one.identify(probe)[0].candidates
            ]
            two.dump(tmp_path / "two.npz")
            with Gallery.load(tmp_path / "two.npz", tmp_path / "three.db") as three:
                three.dump(tmp_path / "three.npz")
        found = [numpy.load(tmp_path / f"{name}.npz")["rows_1"].tobytes() for name in ("two", "three")]
        assert found[0] == found[1]


def test_quotas_refuse_before_anything_is_written(url: str) -> None:
    limits = Limits(identities=3, templates=5, templates_each=2, metadata=40, width=WIDTH, probes=4, top=2)
    rows = people(9)
    with Gallery.open(url, limits=limits) as gallery:
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
        with pytest.raises(ValueError, match="probes must be at most 4 in one call; got 5"):
            gallery.identify(numpy.concatenate([rows[f"person {n}"] for n in range(5)]), top=1)
        with pytest.raises(ValueError, match="top must be at most 2; got 3"):
            gallery.identify(rows["person 1"], top=3)
        assert gallery.store.count() == (1, 1)
