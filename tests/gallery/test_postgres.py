"""PostgreSQL as the engine: crashes, lost answers, several clients, approximate search. The rest is the contract."""

import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy
import psycopg
import pytest

from likewise.gallery import Gallery
from likewise.gallery.opening import open_store
from likewise.gallery.postgres import PostgresStore
from tests.gallery.engines import new_postgres, running_postgres
from tests.gallery.people import WIDTH, people

pytestmark = pytest.mark.full
ROUNDS, WRITERS = 2, 2


def test_a_killed_server_loses_nothing_and_clients_recover() -> None:
    """Whatever was acknowledged is there, once; nobody is there in part."""
    server, url = running_postgres(), new_postgres()
    Gallery.open(url, model="v1").close()
    acknowledged: list[str] = []
    failed: list[BaseException] = []
    stop = threading.Event()

    def write(writer: int) -> None:
        draw = numpy.random.default_rng(writer)
        try:
            with Gallery.open(url, model="v1") as gallery:
                number = 0
                while not stop.is_set():
                    gallery.enrol(f"{writer} {number}", draw.normal(size=(3, WIDTH)))
                    acknowledged.append(f"{writer} {number}")
                    gallery.identify(draw.normal(size=(1, WIDTH)))
                    number += 1
        except BaseException as error:
            failed.append(error)

    writers = [threading.Thread(target=write, args=(number,), daemon=True) for number in range(WRITERS)]
    for writer in writers:
        writer.start()
    try:
        for turn in range(ROUNDS):
            wait_for(lambda turn=turn: len(acknowledged) >= 10 * (turn + 1) or bool(failed))
            server.kill()
            time.sleep(0.2)
            server.start()
        before = len(acknowledged)
        wait_for(lambda: len(acknowledged) >= before + 10 or bool(failed))
    finally:
        stop.set()
        for writer in writers:
            writer.join(30)
    assert failed == []
    with Gallery.open(url) as gallery:
        assert set(gallery.identities()) == set(acknowledged)
        assert gallery.store.count() == (len(acknowledged), 3 * len(acknowledged))
        model = gallery.store.models()[0]
        assert sum(len(owners) for _, owners, _ in gallery.store.rows(model)) == 3 * len(acknowledged)


def wait_for(holds, seconds: float = 120.0) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.01)


class Forgetful:
    """A proxy that passes on a commit, reads the server's answer, and hangs up instead of passing it on."""

    def __init__(self, folder: Path, target: str) -> None:
        self.commits = 0  # that are answered no more
        self._target = target
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.bind(str(folder / ".s.PGSQL.5432"))
        self._socket.listen()
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._socket.accept()
            except OSError:
                return
            server = socket.socket(socket.AF_UNIX)
            server.connect(self._target)
            threading.Thread(target=self._pass, args=(client, server), daemon=True).start()

    def _pass(self, client: socket.socket, server: socket.socket) -> None:
        threading.Thread(target=self._back, args=(server, client), daemon=True).start()
        with client, server:
            while data := client.recv(1 << 16):
                self._silent = b"COMMIT" in data and self.commits > 0
                server.sendall(data)

    def _back(self, server: socket.socket, client: socket.socket) -> None:
        while True:
            try:
                data = server.recv(1 << 16)
                if not data:
                    return
                if self._silent:
                    self.commits -= 1
                    client.shutdown(socket.SHUT_RDWR)
                    return
                client.sendall(data)
            except OSError:
                return

    _silent = False

    def close(self) -> None:
        self._socket.close()


@pytest.fixture
def forgetful(tmp_path: Path) -> Iterator[Forgetful]:
    uri = running_postgres().uri
    proxy = Forgetful(tmp_path, uri.partition("host=")[2] + "/.s.PGSQL.5432")
    yield proxy
    proxy.close()


def test_a_commit_whose_answer_was_lost_is_not_made_twice(forgetful: Forgetful, tmp_path: Path) -> None:
    name = new_postgres().partition("#")[2]
    with Gallery.open(f"postgresql://postgres:@/postgres?host={tmp_path}#{name}", model="v1") as gallery:
        gallery.enrol("ann", numpy.ones((1, WIDTH)))
        forgetful.commits = 1
        assert gallery.enrol("ann", numpy.ones((2, WIDTH))).templates == 2
        assert (gallery.store.count(), forgetful.commits) == ((1, 3), 0)
        forgetful.commits = 1
        assert gallery.forget("ann").templates == 3
        assert (gallery.store.count(), forgetful.commits) == ((0, 0), 0)


def test_a_transaction_that_the_server_ended_is_made_again() -> None:
    url = new_postgres()
    with Gallery.open(url, model="v1") as gallery:
        gallery.enrol("ann", numpy.ones((1, WIDTH)))
        with psycopg.connect(url.partition("#")[0], autocommit=True) as db:
            db.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'likewise'")
        gallery.enrol("bob", numpy.ones((1, WIDTH)))
        assert gallery.identities() == ("ann", "bob")


def test_a_forgotten_identity_is_delegated_and_gone_from_dumps(tmp_path: Path) -> None:
    with Gallery.open(new_postgres(), model="v1") as gallery:
        for name, rows in people(3, 2).items():
            gallery.enrol(name, rows)
        gallery.dump(tmp_path / "all.npz")
        found = gallery.forget("person 1", prove=True)
        assert (found.status, found.copies[0].status) == ("delegated", "erased")
        assert "write-ahead log" in found.warnings[-1]
        assert len(numpy.load(tmp_path / "all.npz")["rows_1"]) == 4


@pytest.mark.parametrize("codes", [False, True])
def test_approximate_search_finds_nearly_all_and_never_the_deleted(codes: bool) -> None:
    rows = people(800, 2, spread=0.3)
    whole = numpy.concatenate(list(rows.values()))
    names = [name for name in rows for _ in range(2)]
    url = new_postgres()
    with (
        Gallery.open(url, model="v1", codes=codes, search="approximate") as gallery,
        Gallery.open(url, model="v1") as exact,
    ):
        gallery.enrol(names, whole)
        assert isinstance(gallery.store, PostgresStore)
        gallery.store._within(lambda db: db.execute("SET enable_seqscan = off"))  # cheaper for so few rows
        assert plan(gallery.store).count("nearest_1") == 1
        probes = whole[::20]
        found, right = (
            [{c.identity for c in answer.candidates} for answer in each.identify(probes, top=5)]
            for each in (gallery, exact)
        )
        hits = sum(len(a & b) for a, b in zip(found, right, strict=True))
        assert hits / (5 * len(probes)) >= 0.95
        for name in list(rows)[:40]:
            gallery.forget(name)
        after = gallery.identify(whole[:80], top=5)
        assert {c.identity for answer in after for c in answer.candidates} & set(list(rows)[:40]) == set()


def plan(store: PostgresStore) -> str:
    """How the server would search."""
    found: list[str] = []
    operator = "<=>" if store.models()[0].kind == "int8" else "<->"
    kind = "halfvec" if operator == "<=>" else "vector"
    vector = "[" + ",".join(["1"] * WIDTH) + "]"

    def work(db: psycopg.Connection) -> None:
        query = f"EXPLAIN SELECT id FROM template_1 ORDER BY vector {operator} '{vector}'::{kind} LIMIT 5"
        found.extend(row[0] for row in db.execute(query.encode()))

    store._within(work)
    return "\n".join(found)


@pytest.mark.usefixtures("without_shape_checks")
def test_what_is_no_gallery_is_refused(tmp_path: Path) -> None:
    uri = running_postgres().uri
    with pytest.raises(ValueError, match="url must end in #name, a small letter"):
        open_store(f"{uri}#Robert'; DROP TABLE")
    with pytest.raises(ValueError, match="search must be exact in the embedded store; got approximate"):
        Gallery.open(tmp_path / "a.db", search="approximate")
    with pytest.raises(ValueError, match="search must be one of 'exact', 'approximate'"):
        Gallery.open(tmp_path / "a.db", search="exacct")  # ty: ignore[invalid-argument-type]
    with psycopg.connect(uri, autocommit=True) as db:
        db.execute("CREATE SCHEMA other; CREATE TABLE other.state(name text, value bigint)")
    with pytest.raises(ValueError, match="url must be a gallery of version 1; got 0, in local/postgres#other"):
        open_store(f"{uri}#other")


def test_a_server_that_is_not_there_is_said_without_its_password(tmp_path: Path) -> None:
    with pytest.raises(OSError, match=r"Gallery: local/db#likewise: .*") as caught:
        open_store(f"postgresql://user:hunter2@/db?host={tmp_path}")
    assert "hunter2" not in str(caught.value)
