"""kill -9 in the middle of enrolment, two writers and a reader: nothing acknowledged is lost, nobody is in part."""

import multiprocessing
import signal
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy
import pytest

from likewise.gallery import Gallery
from likewise.gallery.sqlite import PRAGMAS
from tests.gallery.people import embedded, model_of

TEMPLATES = 3  # of every identity
SECONDS = 120  # that two writers may take for a few enrolments on a busy machine
# Each process is a fork of one that has imported torch already: a hundred times that import takes minutes.
PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload(["tests.gallery.test_crashes"])


def write(path: Path, log: Path) -> None:
    """Enrol people until killed, and note each one that was acknowledged."""
    draw = numpy.random.default_rng()
    with Gallery.open(path) as gallery, log.open("a", buffering=1) as acknowledged:
        while True:
            who = f"{log.stem} {draw.integers(1 << 62)}"
            gallery.enrol(who, draw.normal(size=(TEMPLATES, 16)))
            acknowledged.write(who + "\n")


def read(path: Path, log: Path) -> None:
    """Ask until killed."""
    with Gallery.open(path) as gallery, log.open("a", buffering=1) as answered:
        while True:
            gallery.identify(numpy.ones((1, 16)), top=3)
            answered.write("read\n")
            time.sleep(0.002)


def length(log: Path) -> int:
    return len(log.read_text().splitlines()) if log.exists() else 0


@contextmanager
def killed(*processes: Any) -> Generator[None]:
    """Start processes; at the end they are killed, and must have lived until then."""
    for process in processes:
        process.start()
    try:
        yield
        assert all(process.exitcode is None for process in processes)
    finally:
        for process in processes:
            process.kill()
        for process in processes:
            process.join()
            assert process.exitcode == -signal.SIGKILL
            process.close()


def rounds(folder: Path, count: int, acknowledgements: int) -> int:
    """Kill both writers at a random moment, so many times; gives how many enrolments were acknowledged."""
    path, draw = folder / "a.db", numpy.random.default_rng(0)
    logs, answered = [folder / "one.log", folder / "two.log"], folder / "read.log"
    with Gallery.open(path) as gallery:
        gallery.enrol("first", numpy.ones((TEMPLATES, 16)))
    with killed(PROCESSES.Process(target=read, args=(path, answered))):
        for _ in range(count):
            before, deadline = [length(log) for log in logs], time.monotonic() + SECONDS
            with killed(*(PROCESSES.Process(target=write, args=(path, log)) for log in logs)):
                while any(length(log) < at + acknowledgements for log, at in zip(logs, before, strict=True)):
                    assert time.monotonic() < deadline
                    time.sleep(0.001)
                time.sleep(float(draw.uniform(0, 0.02)))
            check(path, [line for log in logs for line in log.read_text().splitlines()])
        assert length(answered) > 0  # the reader never failed
    return sum(map(length, logs))


def check(path: Path, acknowledged: list[str]) -> None:
    with Gallery.open(path) as gallery:
        assert embedded(gallery).pragmas() == PRAGMAS  # kill -9 cannot tell FULL from OFF
        there = set(gallery.identities())
        assert set(acknowledged) <= there
        identities, templates = gallery.store.count()
        assert templates == TEMPLATES * identities  # nobody in part
        model = model_of(gallery)
        owners = numpy.concatenate([each for _, each, _ in gallery.store.rows(model)])
        assert len(owners) == templates
        assert (numpy.unique(owners, return_counts=True)[1] == TEMPLATES).all()


@pytest.mark.full
def test_a_kill_loses_nothing(tmp_path: Path) -> None:
    assert rounds(tmp_path, 1, 20) >= 40


@pytest.mark.full
def test_a_hundred_kills_lose_nothing(tmp_path: Path) -> None:
    assert rounds(tmp_path, 100, 10) >= 2000


def test_every_connection_has_its_settings(tmp_path: Path) -> None:
    with Gallery.open(tmp_path / "a.db") as one, Gallery.open(tmp_path / "a.db") as two:
        wanted = {"journal_mode": "wal", "synchronous": 2, "secure_delete": 1, "foreign_keys": 1}
        for gallery in (one, two):
            assert {name: embedded(gallery).pragmas()[name] for name in wanted} == wanted
            assert (embedded(gallery).pragmas()["trusted_schema"], embedded(gallery).pragmas()["temp_store"]) == (0, 2)
