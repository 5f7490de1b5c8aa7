"""kill -9 in the middle of enrolment, two writers and a reader: nothing acknowledged is lost, nobody is in part."""

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import numpy
import pytest

from likewise.gallery import Gallery
from likewise.gallery.sqlite import PRAGMAS
from tests.gallery.people import embedded, model_of

TEMPLATES = 3  # of every identity
WRITER = """
    import sys, numpy
    from likewise.gallery import Gallery
    path, name, log = sys.argv[1:]
    draw = numpy.random.default_rng()
    with Gallery.open(path) as gallery, open(log, "a", buffering=1) as acknowledged:
        while True:
            who = f"{name} {draw.integers(1 << 62)}"
            gallery.enrol(who, draw.normal(size=(3, 16)))
            acknowledged.write(who + "\\n")
"""
READER = """
    import sys, time, numpy
    from likewise.gallery import Gallery
    with Gallery.open(sys.argv[1]) as gallery:
        while True:
            gallery.identify(numpy.ones((1, 16)), top=3)
            print("read", flush=True)
            time.sleep(0.002)
"""


def started(code: str, *arguments: str, output: int | None = None) -> subprocess.Popen[str]:
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", textwrap.dedent(code), *arguments]
    return subprocess.Popen(command, stdout=output, env=environment, text=True)


def rounds(folder: Path, count: int, acknowledgements: int) -> int:
    """Kill both writers at a random moment, so many times; gives how many enrolments were acknowledged."""
    path, draw = folder / "a.db", numpy.random.default_rng(0)
    with Gallery.open(path) as gallery:
        gallery.enrol("first", numpy.ones((TEMPLATES, 16)))
    watching = started(READER, str(path), output=subprocess.PIPE)
    try:
        for _ in range(count):
            logs = [folder / f"{name}.log" for name in ("one", "two")]
            before = [log.stat().st_size if log.exists() else 0 for log in logs]
            writers = [started(WRITER, str(path), log.stem, str(log)) for log in logs]
            deadline = time.monotonic() + 60
            while any(
                not log.exists() or log.stat().st_size < start + 20 * acknowledgements
                for log, start in zip(logs, before, strict=True)
            ):
                assert time.monotonic() < deadline
                assert all(writer.poll() is None for writer in writers)
                time.sleep(0.001)
            time.sleep(float(draw.uniform(0, 0.02)))
            for writer in writers:
                writer.send_signal(signal.SIGKILL)
                assert writer.wait() == -signal.SIGKILL
            check(path, [line for log in logs for line in log.read_text().splitlines()])
        assert watching.poll() is None  # the reader never failed
        assert watching.stdout is not None
        assert watching.stdout.readline() == "read\n"
    finally:
        watching.kill()
        watching.wait()
        assert watching.stdout is not None
        watching.stdout.close()
    return sum(len(log.read_text().splitlines()) for log in logs)


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
