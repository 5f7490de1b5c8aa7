"""After `forget`, no byte of a template is left in any file: a search finds it before and not after."""

import os
import sqlite3
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from functools import cache
from itertools import count
from pathlib import Path
from threading import Event
from typing import IO

import numpy
import pytest

from likewise.gallery import Gallery, Limits, dumps, sqlite
from likewise.gallery.byte_search import search_bytes
from likewise.gallery.dumps import part_file
from likewise.gallery.schema import PAGE
from tests.gallery.people import embedded, model_of, people

WIDTH = 128
EVERYBODY = people(40, 30, width=WIDTH)  # 1,200 templates: two chunks; some lie on two pages
SECRET = "a sentence about this person that is in no other place"


@cache
def template() -> bytes:
    """A gallery of everybody, made once."""
    with tempfile.TemporaryDirectory() as folder:
        with Gallery.open(f"{folder}/a.db") as gallery:
            for name, rows in EVERYBODY.items():
                gallery.enrol(name, rows, metadata={"note": f"{SECRET} {name}!"})
        return Path(folder, "a.db").read_bytes()


def filled(folder: Path) -> Gallery:
    (folder / "a.db").write_bytes(template())
    gallery = Gallery.open(folder / "a.db")
    gallery.enrol("person 7", EVERYBODY["person 7"][:1])  # the log has one of the templates, too
    return gallery


def left(folder: Path, name: str = "person 7") -> int:
    """Templates of a person of which a piece is in a file of the folder, and their note."""
    _, found = search_bytes(sorted(folder.iterdir()), [row.tobytes() for row in EVERYBODY[name]])
    note = f"{SECRET} {name}!".encode()
    return found + sum(note in path.read_bytes() for path in folder.iterdir())


@contextmanager
def reader(path: Path) -> Generator[sqlite3.Connection]:
    """Another connection in the middle of reading."""
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN")
        other.execute("SELECT count(*) FROM chunk").fetchone()
        yield other
        if other.in_transaction:
            other.execute("COMMIT")


def test_nothing_is_left(tmp_path: Path) -> None:
    with filled(tmp_path) as gallery:
        assert left(tmp_path) > 30
        found = gallery.forget("person 7", prove=True)
        assert (found.status, found.templates, found.found, found.warnings) == ("erased", 31, 0, ())
        assert {Path(path).name for path, _ in found.searched} >= {"a.db", "a.db-wal"}
        assert left(tmp_path) == 0
        assert left(tmp_path, "person 8") > 30
        embedded(gallery).compact()
        assert left(tmp_path) == 0
    assert left(tmp_path) == 0


def test_the_search_finds_a_template_across_two_pages(tmp_path: Path) -> None:
    row = EVERYBODY["person 0"][0].tobytes()
    path = tmp_path / "page"
    path.write_bytes(bytes(PAGE - 100) + row[:100] + b"next" + row[100:])
    assert search_bytes([path], [row]) == (((str(path), PAGE - 100 + len(row) + 4),), 1)


def plainly(data: bytes, templates: list[bytes]) -> int:
    """What `search_bytes` counts, by its definition."""
    cut = [[row[start : start + 32] for start in range(0, len(row), 32)] for row in templates]
    return sum(any(any(piece) and piece in data for piece in pieces) for pieces in cut)


@pytest.mark.parametrize("sparse", [False, True])
def test_the_search_equals_a_plain_one(sparse: bool, tmp_path: Path) -> None:
    draw = numpy.random.default_rng(3)
    rows = draw.normal(size=(60, 32)).astype(numpy.float32) * (draw.random((60, 32)) < (0.1 if sparse else 1))
    templates = [row.tobytes() for row in rows]
    data = bytearray(9 << 20)  # of zeros, over the edges of what is read at once
    for number in range(0, 60, 3):
        at = int(draw.integers(len(data) - 200)) if number else (1 << 22) - 20
        data[at : at + 64] = templates[number][32:96]
    path = tmp_path / "file"
    path.write_bytes(data)
    found = search_bytes([path], templates)[1]
    assert found == plainly(bytes(data), templates)
    assert found >= 15
    assert search_bytes([path], [row.tobytes() for row in draw.normal(size=(60, 32)).astype("f")])[1] == 0
    path.write_bytes(b"short" + bytes([1, 2, 3, 4]))
    assert search_bytes([path], [bytes([1, 2, 3, 4]), bytes([4, 3, 2, 1]), bytes(4)])[1] == 1


def test_a_reader_makes_it_pending_and_the_next_opening_finishes(tmp_path: Path) -> None:
    with filled(tmp_path) as gallery, reader(tmp_path / "a.db") as other:
        found = gallery.forget("person 7", prove=True)
        assert found.status == "pending"
        assert found.found
        assert "Another process still reads" in found.warnings[-1]
        assert "person 7" not in gallery
        assert not gallery.settle()
        other.execute("COMMIT")
        assert gallery.settle()
        assert left(tmp_path) == 0


def test_a_closed_gallery_finishes_when_it_is_opened(tmp_path: Path) -> None:
    gallery = filled(tmp_path)
    with reader(tmp_path / "a.db"):
        assert gallery.forget("person 7").status == "pending"
        gallery.close()
        assert left(tmp_path) > 0
    Gallery.open(tmp_path / "a.db").close()
    assert left(tmp_path) == 0


def test_backups_and_dumps_are_erased_too(tmp_path: Path) -> None:
    with filled(tmp_path) as gallery:
        gallery.backup(tmp_path / "b.db")
        gallery.backup(tmp_path / "moved.db")
        gallery.dump(tmp_path / "c.npz")
        (tmp_path / "moved.db").unlink()
        found = gallery.forget("person 7", prove=True)
        assert found.status == "erased"
        assert found.found == 0
        status = {Path(copy.path).name: copy.status for copy in found.copies}
        assert status == {"b.db": "erased", "c.npz": "erased", "moved.db": "missing"}
        assert "moved.db is not there any more" in found.warnings[0]
        assert left(tmp_path) == 0
    with Gallery.open(tmp_path / "b.db") as backup, Gallery.load(tmp_path / "c.npz", tmp_path / "d.db") as loaded:
        for copy in (backup, loaded):
            assert len(copy) == 39
            assert copy.identify(EVERYBODY["person 8"][0])[0].candidates[0].identity == "person 8"


def test_templates_that_were_given_to_another_identity_leave_copies_with_it(tmp_path: Path) -> None:
    rows = people(3, 2, width=WIDTH)
    with Gallery.open(tmp_path / "a.db") as gallery:
        for name in rows:
            gallery.enrol(name, rows[name])
        gallery.backup(tmp_path / "b.db")
        gallery.dump(tmp_path / "c.npz")
        owner = gallery.store.number("person 0")
        [(_, owners, numbers)] = gallery.store.rows(gallery.store.models()[0])
        gallery.assign([int(number) for number in numbers[owners == owner]], "ann")
        erasure = gallery.forget("ann", prove=True)
        assert erasure.status == "erased"
        assert erasure.found == 0
        assert list(gallery.identities()) == ["person 1", "person 2"]
    with Gallery.open(tmp_path / "b.db") as backup:
        assert list(backup.identities()) == ["person 1", "person 2"]


def test_a_backup_that_is_read_is_pending(tmp_path: Path) -> None:
    with filled(tmp_path) as gallery:
        gallery.backup(tmp_path / "b.db")
        Gallery.open(tmp_path / "b.db").close()  # its log is on from now
        with reader(tmp_path / "b.db"):
            assert gallery.forget("person 7").status == "pending"
        assert gallery.settle()
        assert left(tmp_path) == 0


def other_gallery(path: Path) -> None:
    with Gallery.open(path) as other:
        for name, rows in people(20, 2, width=WIDTH, seed=9).items():
            other.enrol(f"other {name}", rows)


def other_dump(path: Path) -> None:
    other_gallery(path.with_suffix(".other"))
    with Gallery.open(path.with_suffix(".other")) as other:
        other.dump(path)


REPLACEMENTS: dict[str, Callable[[Path], object]] = {
    "another gallery": other_gallery,
    "another dump": other_dump,
    "a diary": lambda path: path.write_text("a diary" * 9000),
    "nothing": lambda path: path.write_bytes(b""),
}


@pytest.mark.parametrize("kind", REPLACEMENTS)
def test_what_took_the_place_of_a_copy_is_left_alone(kind: str, tmp_path: Path) -> None:
    with filled(tmp_path) as gallery:
        places = tmp_path / "b.db", tmp_path / "c.npz"
        gallery.backup(places[0])
        gallery.dump(places[1])
        for place in places:
            place.unlink()
            REPLACEMENTS[kind](place)
        before = [place.read_bytes() for place in places]
        found = gallery.forget("person 7", prove=True)
        assert (found.status, found.found) == ("erased", 0)
        assert [copy.status for copy in found.copies] == ["replaced", "replaced"]
        assert "b.db is not the copy that this gallery made" in found.warnings[0]
        assert [place.read_bytes() for place in places] == before
    Gallery.open(tmp_path / "a.db").close()


def test_a_backup_that_went_its_own_way_keeps_its_own_people(tmp_path: Path) -> None:
    with filled(tmp_path) as gallery:
        gallery.backup(tmp_path / "b.db")
        gallery.enrol("max", EVERYBODY["person 1"][:1])
        with Gallery.open(tmp_path / "b.db") as backup:
            backup.enrol("zoe", EVERYBODY["person 2"][:1])  # by the number that max has
            assert backup.store.number("zoe") == gallery.store.number("max")
        gallery.forget("max")
        gallery.forget("person 3")
        with Gallery.open(tmp_path / "b.db") as backup:
            assert "zoe" in backup
            assert "person 3" not in backup


def test_a_database_that_names_itself_as_its_copy_is_opened(tmp_path: Path) -> None:
    with filled(tmp_path) as gallery:
        gallery.store.add_copy(tmp_path / "a.db", "backup")
        assert gallery.forget("person 7").status == "erased"
        with pytest.raises(ValueError, match="backup: path must be another file"):
            gallery.backup(tmp_path / "a.db")


def test_what_a_crash_left_of_a_copy_is_erased_too(tmp_path: Path) -> None:
    with filled(tmp_path) as gallery:
        gallery.dump(tmp_path / "c.npz")
        (tmp_path / ".c.npz.part").write_bytes(EVERYBODY["person 7"].tobytes())
        (tmp_path / ".c.npz.part-journal").write_bytes(EVERYBODY["person 7"].tobytes())
        assert gallery.forget("person 7").status == "erased"
        assert left(tmp_path) == 0
        assert not list(tmp_path.glob(".c.npz*"))


def test_a_copy_that_is_being_written_makes_it_pending(tmp_path: Path) -> None:
    with filled(tmp_path) as gallery:
        gallery.store.add_copy(tmp_path / "c.npz", "dump")
        with part_file(tmp_path / "c.npz") as part:
            found = gallery.forget("person 7")
            assert (found.status, found.copies[0].status) == ("pending", "pending")
            assert Path(part.name).exists()
        assert gallery.settle()


@pytest.mark.parametrize("kind", ["dump", "backup"])
def test_who_is_forgotten_while_a_copy_is_written_is_not_in_it(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = dumps if kind == "dump" else sqlite

    @contextmanager
    def slow(path: Path) -> Generator[IO[bytes]]:
        with part_file(path) as part:
            yield part
            monkeypatch.setattr(module, "part_file", part_file)
            assert other.forget("person 7").status == "pending"

    with filled(tmp_path) as gallery, Gallery.open(tmp_path / "a.db") as other:
        monkeypatch.setattr(module, "part_file", slow)
        getattr(gallery, kind)(tmp_path / "copy")
        assert gallery.settle()
        assert left(tmp_path) == 0
        assert left(tmp_path, "person 8") > 30


def test_a_dump_is_one_view_while_others_write(tmp_path: Path) -> None:
    stop = Event()

    def write() -> None:
        with Gallery.open(tmp_path / "a.db") as other:
            for number in count():
                if stop.is_set():
                    break
                other.enrol(f"new {number}", EVERYBODY["person 1"][:3])
                other.forget(f"new {number - 1}" if number else "person 0")

    with filled(tmp_path) as gallery, ThreadPoolExecutor(1) as pool:
        done = pool.submit(write)
        try:
            for _ in range(5):
                gallery.dump(tmp_path / "c.npz")
        finally:
            stop.set()
        done.result()
        dump = dumps.read_dump(tmp_path / "c.npz", Limits())
        assert {len(dump.owners[1][dump.owners[1] == number]) for number in dump.people} <= {3, 30, 31}


def test_two_who_forget_at_once_both_leave_the_dump(tmp_path: Path) -> None:
    names = [f"person {number}" for number in range(1, 7)]

    def forget(mine: list[str]) -> None:
        with Gallery.open(tmp_path / "a.db") as other:
            for name in mine:
                other.forget(name)

    with filled(tmp_path) as gallery, ThreadPoolExecutor(2) as pool:
        gallery.dump(tmp_path / "c.npz")
        list(pool.map(forget, (names[:3], names[3:])))
        assert gallery.settle()
        dump = dumps.read_dump(tmp_path / "c.npz", Limits())
        assert {name for name, _ in dump.people.values()} == set(EVERYBODY) - set(names)
        assert [path.name for path in tmp_path.glob(".*")] == []


def test_an_erasure_in_the_middle_of_another_one_is_not_taken_for_done(tmp_path: Path) -> None:
    with filled(tmp_path) as gallery, Gallery.open(tmp_path / "a.db") as other, ExitStack() as readers:
        with reader(tmp_path / "a.db"):
            assert gallery.forget("person 3").status == "pending"

        def between(statement: str) -> None:  # the log is cut, and not yet noted to be
            if statement.startswith("UPDATE state SET value = 0"):
                embedded(gallery)._db.set_trace_callback(None)
                readers.enter_context(reader(tmp_path / "a.db"))
                assert other.forget("person 7").status == "pending"

        embedded(gallery)._db.set_trace_callback(between)
        assert not gallery.settle()
        assert left(tmp_path) > 0
        readers.close()
        assert gallery.settle()
        assert left(tmp_path) == 0


CRASH = """
    import os, sys
    from likewise.gallery import Gallery, sqlite
    def crash(*_):
        os.kill(os.getpid(), 9)
    setattr(sqlite.SqliteStore, sys.argv[2], crash)
    Gallery.open(sys.argv[1]).forget("person 7")
"""


HALF = """
    import os, sys
    from likewise.gallery import Gallery
    def crash(*_):
        os.kill(os.getpid(), 9)
    os.fsync = crash
    getattr(Gallery.open(sys.argv[1]), sys.argv[2])(sys.argv[3])
"""


@pytest.mark.full
@pytest.mark.parametrize("kind", ["dump", "backup"])
def test_a_crash_in_the_middle_of_a_copy_leaves_nothing(kind: str, tmp_path: Path) -> None:
    filled(tmp_path).close()
    command = [sys.executable, "-c", textwrap.dedent(HALF), str(tmp_path / "a.db"), kind, str(tmp_path / "copy")]
    assert subprocess.run(command, check=False, env={**os.environ, "OMP_NUM_THREADS": "1"}).returncode == -9
    assert not (tmp_path / "copy").exists()
    with Gallery.open(tmp_path / "a.db") as gallery:
        assert gallery.forget("person 7", prove=True).status == "erased"
        assert left(tmp_path) == 0


@pytest.mark.full
@pytest.mark.parametrize("place", ["_forget_in_copies", "_follow_vacated"])
def test_a_crash_in_the_middle_is_finished_by_the_next_opening(place: str, tmp_path: Path) -> None:
    with filled(tmp_path) as gallery:
        gallery.backup(tmp_path / "b.db")
    command = [sys.executable, "-c", textwrap.dedent(CRASH), str(tmp_path / "a.db"), place]
    assert subprocess.run(command, check=False, env={**os.environ, "OMP_NUM_THREADS": "1"}).returncode == -9
    assert left(tmp_path) > 0
    with Gallery.open(tmp_path / "a.db") as gallery:
        assert "person 7" not in gallery
        assert left(tmp_path) == 0


def test_the_same_template_under_another_name_is_said(tmp_path: Path) -> None:
    with Gallery.open(tmp_path / "a.db") as gallery:
        gallery.enrol("ann", EVERYBODY["person 1"][:1])
        gallery.enrol("anna", EVERYBODY["person 1"][:1])
        found = gallery.forget("ann", prove=True)
        assert (found.status, found.found) == ("erased", 1)
        assert found.warnings == ("The same template may be enrolled under another name.",)


def test_zeros_are_in_memory_too(tmp_path: Path) -> None:
    with filled(tmp_path) as gallery:
        gallery.identify(EVERYBODY["person 7"][0])
        gallery.forget("person 7")
        matrix = embedded(gallery).matrix(model_of(gallery))
        assert not any((block == EVERYBODY["person 7"][0]).all(1).any() for block in matrix.blocks)
        assert int((matrix.owners != 0).sum()) == len(matrix) == 1170
        assert numpy.count_nonzero(matrix.blocks[0].any(1)) == 1170
