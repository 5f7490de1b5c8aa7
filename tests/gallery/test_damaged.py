"""A damaged or hostile file is refused in a line, and nothing it holds is run."""

import json
import sqlite3
import tempfile
import zipfile
from collections.abc import Callable
from contextlib import closing
from functools import cache
from pathlib import Path

import numpy
import pytest

from likewise.gallery import Gallery
from likewise.gallery.store import Damaged
from tests.gallery.people import people


@cache
def template() -> bytes:
    """A gallery, made once."""
    everybody = people(30, 5, width=64)
    names = [name for name, rows in everybody.items() for _ in rows]
    with tempfile.TemporaryDirectory() as folder:
        with Gallery.open(f"{folder}/a.db") as gallery:
            gallery.enrol(names, numpy.concatenate(list(everybody.values())))
            gallery.calibrate(far=0.05)
        return Path(folder, "a.db").read_bytes()


def filled(path: Path) -> None:
    path.write_bytes(template())


def changed(statement: str, *values: object) -> Callable[[Path], None]:
    def change(path: Path) -> None:
        with closing(sqlite3.connect(path, isolation_level=None)) as db:
            db.execute("PRAGMA writable_schema=ON")
            db.execute("PRAGMA ignore_check_constraints=ON")
            db.execute(statement, values)

    return change


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: 3 * 8192])


def scrambled(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[8192 : 20 * 8192] = numpy.random.default_rng(0).bytes(19 * 8192)
    path.write_bytes(data)


ONE_LINE = r"^Gallery(\.open|\.dump)?: \w+ must [^\n]*; got [^\n]*\.( [^\n]*)?$"
HOSTILE: dict[str, Callable[[Path], object]] = {
    "text": lambda path: path.write_text("a diary" * 9000),
    "cut": cut,
    "scrambled": scrambled,
    "another application": changed("PRAGMA application_id=7"),
    "a later version": changed("PRAGMA user_version=99"),
    "a trigger": changed("CREATE TRIGGER t AFTER INSERT ON identity BEGIN DELETE FROM identity; END"),
    "a view": changed("CREATE VIEW v AS SELECT load_extension('x')"),
    "another table": changed("CREATE TABLE x(y)"),
    "a missing table": changed("DROP TABLE calibration"),
    "a short chunk": changed("UPDATE chunk SET vectors = zeroblob(7)"),
    "a long chunk": changed("UPDATE chunk SET owners = zeroblob(20000000)"),
    "vectors of no length": changed("UPDATE chunk SET vectors = zeroblob(1024 * 64 * 4)"),
    "negative owners": changed("UPDATE chunk SET owners = ?", numpy.full(1024, -1, "<i8").tobytes()),
    "a width of a million": changed("UPDATE model SET width = 1000000"),
    "a name of a megabyte": changed("UPDATE model SET name = ?", "x" * 1000000),
    "a circle of models": changed("UPDATE model SET compatible_with = 1"),
    "calibration": changed("UPDATE calibration SET facts = '[1'"),
    "calibration without its numbers": changed("UPDATE calibration SET facts = '{}'"),
    "a threshold that is no number": changed("UPDATE calibration SET facts = json_set(facts, '$.threshold', 'x')"),
    "a threshold of no pairs": changed("UPDATE calibration SET facts = json_set(facts, '$.pairs', 0)"),
    "lists in lists": changed("UPDATE calibration SET facts = ?", "[" * 100_000),
    "metadata": changed("UPDATE identity SET metadata = '{'"),
    "metadata that is a list": changed("UPDATE identity SET metadata = '[1]'"),
    "no state": changed("DELETE FROM state"),
    "a state below 0": changed("UPDATE state SET value = -1"),
    "a current model that is not there": changed("UPDATE state SET value = 77 WHERE name = 'current'"),
    "templates of no model": changed("UPDATE template SET model = 9"),
    "templates of another identity": changed("UPDATE template SET identity = 4"),
    "templates without a chunk": changed("UPDATE template SET slot = slot + 9000000000"),
    "a negative slot": changed("UPDATE template SET slot = -slot"),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_hostile_database_is_refused_in_a_line(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    filled(path)
    HOSTILE[kind](path)
    with pytest.raises(ValueError, match=ONE_LINE):
        asked(path)


def asked(path: Path) -> None:
    with Gallery.open(path) as gallery:
        gallery.identify(numpy.ones((1, 64)))
        gallery.verify("person 3", numpy.ones(64))
        gallery.metadata("person 3")
        gallery.dump(path.with_suffix(".npz"))
        gallery.forget("person 3", prove=True)


def test_a_whole_one_is_not_refused(tmp_path: Path) -> None:
    filled(tmp_path / "a.db")
    asked(tmp_path / "a.db")


def test_a_folder_or_a_missing_one_is_refused(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "none" / "a.db"):
        with pytest.raises(ValueError, match=ONE_LINE):
            Gallery.open(path)


def dump(path: Path) -> None:
    with Gallery.open(path.with_suffix(".db")) as gallery:
        for name, rows in people(5, 2).items():
            gallery.enrol(name, rows)
        gallery.dump(path)


def edited(path: Path, name: str, value: object) -> None:
    """Another value in the facts of a dump."""
    with numpy.load(path) as found:
        arrays = dict(found)
    facts = json.loads(arrays["facts"].tobytes())
    facts[name] = value
    arrays["facts"] = numpy.frombuffer(json.dumps(facts).encode(), numpy.uint8)
    numpy.savez(path, **arrays)


def without_rows(path: Path) -> None:
    with numpy.load(path) as found:
        arrays = dict(found)
    numpy.savez(path, **{**arrays, "rows_1": arrays["rows_1"][:3]})


ODD_DUMPS: dict[str, Callable[[Path], object]] = {
    "text": lambda path: path.write_text("a diary"),
    "cut": lambda path: path.write_bytes(path.read_bytes()[:-300]),
    "pickle": lambda path: numpy.savez(path, facts=numpy.array([{}], object)),
    "version": lambda path: edited(path, "version", 9),
    "models": lambda path: edited(path, "models", [{"id": 1}]),
    "people": lambda path: edited(path, "people", [[1, "ann", "{}"]]),
    "names": lambda path: edited(path, "people", [[n, "ann", "{}"] for n in range(1, 6)]),
    "numbers": lambda path: edited(path, "people", 7),
    "current": lambda path: edited(path, "current", 9),
    "rows": without_rows,
    "zip": lambda path: zipfile.ZipFile(path, "w").close(),
}


@pytest.mark.parametrize("kind", ODD_DUMPS)
def test_an_odd_dump_is_refused_in_a_line(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "d.npz"
    dump(path)
    ODD_DUMPS[kind](path)
    with pytest.raises(Damaged, match=r"^Gallery\.load: path must be a whole dump of a gallery; got [^\n]*\.$"):
        Gallery.load(path, tmp_path / "new.db")
    assert not (tmp_path / "new.db").exists()
