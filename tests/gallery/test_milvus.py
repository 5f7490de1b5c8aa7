"""Milvus as the engine: crashes, killed servers, approximate search, several clients. The rest is the contract."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import numpy
import pytest

from likewise.gallery import Gallery
from likewise.gallery.opening import open_store
from likewise.gallery.store import Model, Person
from tests.gallery.engines import new_milvus, new_milvus_lite, running_milvus
from tests.gallery.people import WIDTH, people

pytestmark = pytest.mark.full
MODEL = Model(0, "v1", b"1" * 32, WIDTH, True, "float32")
WRITER = """
import sys, numpy
from likewise.gallery import Gallery
with Gallery.open(sys.argv[1], model="v1") as gallery:
    draw, number = numpy.random.default_rng(int(sys.argv[2])), 0
    while True:
        gallery.enrol(f"{sys.argv[2]} {number}", draw.normal(size=(3, 13)))
        print(f"{sys.argv[2]} {number}", flush=True)
        if number % 3 == 2:
            gallery.forget(f"{sys.argv[2]} {number - 1}")
            print(f"-{sys.argv[2]} {number - 1}", flush=True)
        number += 1
"""


def wait_for(holds: Callable[[], bool], seconds: float = 180.0) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_killed_server_loses_nothing_and_clients_recover() -> None:
    """Whatever was acknowledged is there, once; no identity is there in part; a reader only waits."""
    url, server = new_milvus(), running_milvus()
    Gallery.open(url, model="v1").close()
    acknowledged: list[str] = []
    answered: list[int] = []
    failed: list[BaseException] = []
    stop = threading.Event()

    def write() -> None:
        draw = numpy.random.default_rng(0)
        with Gallery.open(url, model="v1") as gallery:
            while not stop.is_set():
                name = f"person {len(acknowledged)}"
                gallery.enrol(name, draw.normal(size=(3, WIDTH)))
                acknowledged.append(name)

    def read() -> None:
        with Gallery.open(url, model="v1") as gallery:
            while not stop.is_set():
                before = len(acknowledged)
                assert len(gallery.identities()) >= before
                answered.append(before)

    def guarded(work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=guarded, args=(work,), daemon=True) for work in (write, read)]
    for thread in threads:
        thread.start()
    try:
        wait_for(lambda: (len(acknowledged) >= 3 and len(answered) >= 3) or bool(failed))
        server.kill()
        time.sleep(0.2)
        server.start()
        before = len(acknowledged), len(answered)
        wait_for(lambda: (len(acknowledged) >= before[0] + 3 and len(answered) >= before[1] + 3) or bool(failed))
    finally:
        stop.set()
        for thread in threads:
            thread.join(60)
    assert failed == []
    with Gallery.open(url) as gallery:
        assert gallery.identities() == tuple(sorted(acknowledged))
        assert gallery.store.count() == (len(acknowledged), 3 * len(acknowledged))
        rows = [owner for _, owners, _ in gallery.store.rows(gallery.store.models()[0]) for owner in owners.tolist()]
        assert [rows.count(owner) for owner in set(rows)] == [3] * len(acknowledged)


def test_a_writer_of_a_file_that_is_killed_leaves_whole_people(tmp_path: Path) -> None:
    url = new_milvus_lite(tmp_path)
    expected: set[str] = set()
    for turn in range(3):
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        command = [sys.executable, "-W", "ignore", "-c", WRITER, url, str(turn)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
            assert process.stdout is not None
            lines = [process.stdout.readline().rstrip("\n") for _ in range(8)]
            time.sleep(0.003 * turn)
            process.send_signal(signal.SIGKILL)
            lines += [line.rstrip("\n") for line in process.stdout if line.endswith("\n")]
        assert all(lines)
        expected |= {line for line in lines if not line.startswith("-")}
        expected -= {line[1:] for line in lines}
        with Gallery.open(url, model="v1") as gallery:
            found = set(gallery.identities())
            # What was in progress when it was killed is there whole, or not at all.
            assert len(expected ^ found) <= 1
            expected = found
            assert gallery.store.count() == (len(found), 3 * len(found))
            owners = [w for _, who, _ in gallery.store.rows(gallery.store.models()[0]) for w in who.tolist()]
            assert sorted(map(owners.count, set(owners))) == [3] * len(found)


def interrupt(*_: object) -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize("at", ["_commit", "_finish"])
def test_a_crash_in_the_middle_is_undone_or_finished(at: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before the commit record nothing has happened, after it everything has."""
    url, everybody = new_milvus_lite(tmp_path), people(4, 2)
    with Gallery.open(url, model="v1") as gallery:
        for name in list(everybody)[:3]:
            gallery.enrol(name, everybody[name])
        with monkeypatch.context() as patch:
            patch.setattr(f"likewise.gallery.milvus.MilvusStore.{at}", interrupt)
            with pytest.raises(KeyboardInterrupt):
                gallery.forget("person 1")
            if at == "_commit":
                with pytest.raises(KeyboardInterrupt):
                    gallery.enrol("person 3", everybody["person 3"])
    with Gallery.open(url, model="v1") as gallery:
        left = (3, 6) if at == "_commit" else (2, 4)
        assert gallery.store.count() == left
        assert ("person 1" in gallery) is (at == "_commit")
        found = gallery.identify(everybody["person 1"][:1], top=4)[0].candidates
        assert len(found) == left[0]
        gallery.enrol("person 3", everybody["person 3"])
        assert gallery.identify(everybody["person 3"][:1], top=1)[0].candidates[0].identity == "person 3"
        rows = numpy.concatenate([rows for rows, *_ in gallery.store.rows(gallery.store.models()[0])])
        assert len(rows) == left[1] + 2


@pytest.mark.parametrize("new", [new_milvus_lite, lambda folder: new_milvus()], ids=["lite", "server"])
def test_one_client_sees_at_once_what_another_deleted(new: Callable[[Path], str], tmp_path: Path) -> None:
    url, everybody = new(tmp_path), people(12, 2)
    with Gallery.open(url, model="v1") as one, Gallery.open(url, model="v1") as two:
        one.enrol([name for name in everybody for _ in range(2)], numpy.concatenate(list(everybody.values())))
        for name, rows in list(everybody.items())[:5]:
            assert two.identify(rows[:1], top=1)[0].candidates[0].identity == name
            assert one.forget(name).status == "delegated"
            assert name not in [each.identity for each in two.identify(rows[:1], top=12)[0].candidates]
            assert name not in two


def test_approximate_search_finds_nearly_all_and_never_the_deleted(tmp_path: Path) -> None:
    url, rows = new_milvus_lite(tmp_path), people(400, 2, spread=0.3)
    whole, names = numpy.concatenate(list(rows.values())), [name for name in rows for _ in range(2)]
    with (
        Gallery.open(url, model="v1", search="approximate") as gallery,
        Gallery.open(tmp_path / "exact.db", model="v1") as exact,
    ):
        gallery.enrol(names, whole)
        exact.enrol(names, whole)
        found, right = (
            [{c.identity for c in answer.candidates} for answer in each.identify(whole[::20], top=5)]
            for each in (gallery, exact)
        )
        assert sum(len(a & b) for a, b in zip(found, right, strict=True)) / sum(map(len, right)) >= 0.95
        for name in list(rows)[:10]:
            gallery.forget(name)
        after = gallery.identify(whole[:20], top=5)
        assert {c.identity for answer in after for c in answer.candidates} & set(list(rows)[:10]) == set()
    with pytest.raises(ValueError, match="search must be approximate, as it was made; got exact"):
        open_store(url)


def test_ties_beyond_what_a_search_returns_are_ordered_by_enrolment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = new_milvus_lite(tmp_path)
    monkeypatch.setattr("likewise.gallery.milvus.MOST", 64)
    store = open_store(url)
    model = store.add_model(MODEL, current=True)
    row = people(1)["person 0"]
    store.add([Person(f"p{number:03}", row, ("",)) for number in range(90)], model)
    names = store.names()
    monkeypatch.setattr("likewise.gallery.milvus.WINDOW", 32)
    assert [names[number] for number in store.nearest(row, model, k=5).identities[0].tolist()] == [
        f"p{number:03}" for number in range(5)
    ]
    store.close()


def test_a_commit_record_of_several_parts_is_read_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    url = new_milvus_lite(tmp_path)
    monkeypatch.setattr("likewise.gallery.milvus.TEXT", 200)
    with Gallery.open(url, model="v1") as one, Gallery.open(url, model="v1") as two:
        one.enrol("ann", people(1)["person 0"])
        facts = {"curve": list(range(300))}
        one.store.set_calibration(1, "verify", facts)
        assert two.store.calibrations() == {(1, "verify"): facts}


def test_what_is_no_gallery_is_refused(tmp_path: Path) -> None:
    new_milvus_lite(tmp_path)
    for url, rule in (
        ("milvus:///people#a", "url must name a server, .* or a file that ends in .db"),
        (f"milvus:///{tmp_path}/a.db#Robert'); DROP", "url must end in #name, a small letter"),
    ):
        with pytest.raises(ValueError, match=rule):
            open_store(url)
    with pytest.raises(OSError, match=r"Gallery: 127.0.0.1:1#likewise: .*") as caught:
        open_store("milvus://user:hunter2@127.0.0.1:1")
    assert "hunter2" not in str(caught.value)


def test_a_file_has_one_process_at_a_time(tmp_path: Path) -> None:
    url = new_milvus_lite(tmp_path)
    code = "import sys; from likewise.gallery import Gallery; Gallery.open(sys.argv[1])"

    def other() -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-W", "ignore", "-c", code, url]
        return subprocess.run(command, capture_output=True, text=True, timeout=120)

    with Gallery.open(url):
        refused = other()
    assert "url must be a file of Milvus Lite" in refused.stderr
    assert "One process at a time" in refused.stderr
    assert other().returncode == 0
