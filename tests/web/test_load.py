"""Many clients at once, and uploads that are damaged on purpose."""

import http.client
import io
import json
import os
import threading
import time
from pathlib import Path

import numpy
import pytest
from PIL import Image

from likewise.gallery import Gallery
from tests.web.running import SECRET, Client, command

pytestmark = pytest.mark.full
MODEL = """
import numpy
def embed(images):
    return [numpy.concatenate([image.mean((0, 1)), numpy.ones(125)]) for image in images]
"""
CLIENTS = 50
SECONDS = float(os.environ.get("LIKEWISE_LOAD_SECONDS", "5"))
ROWS = int(os.environ.get("LIKEWISE_LOAD_ROWS", "10000"))
UPLOADS = int(os.environ.get("LIKEWISE_UPLOADS", "1000"))


def test_fifty_clients_are_answered_without_an_error(tmp_path: Path) -> None:
    """LIKEWISE_LOAD_SECONDS=60 LIKEWISE_LOAD_ROWS=1000000 measure more; rates are of the whole machine, clients too."""
    draw = numpy.random.default_rng(0)
    with Gallery.open(tmp_path / "a.db", model="v1") as gallery:
        for start in range(0, ROWS, 10_000):
            names = [f"person {number}" for number in range(start, min(ROWS, start + 10_000))]
            gallery.enrol(names, draw.normal(size=(len(names), 128)))
    with command(tmp_path / "a.db", "--rate", "1e6") as (port, _):
        body = json.dumps({"vectors": draw.normal(size=(1, 128)).tolist()})
        sent = {"Authorization": f"Bearer {SECRET}", "Content-Type": "application/json"}
        times: list[float] = []
        wrong: list[object] = []
        end = time.monotonic() + SECONDS

        def work() -> None:
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
            try:
                while time.monotonic() < end:
                    start = time.monotonic()
                    connection.request("POST", "/api/identify?top=1", body, sent)
                    answer = connection.getresponse()
                    data = answer.read()
                    times.append(time.monotonic() - start)
                    if answer.status != 200 or b'"outcome":"undecided"' not in data:
                        wrong.append((answer.status, data[:100]))
            except Exception as error:
                wrong.append(error)
            finally:
                connection.close()

        threads = [threading.Thread(target=work) for _ in range(CLIENTS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    p50, p99 = numpy.quantile(times, [0.5, 0.99]) * 1000
    (tmp_path / "load.txt").write_text(f"{ROWS:,} rows: {len(times) / SECONDS:.0f}/s, p50 {p50:.0f} ms, p99 {p99:.0f}")
    if report := os.environ.get("LIKEWISE_LOAD_REPORT"):
        Path(report).write_text((tmp_path / "load.txt").read_text() + "\n")
    assert wrong == []
    assert len(times) > 2 * CLIENTS


def test_damaged_uploads_are_no_error_of_the_server_and_leave_no_memory(tmp_path: Path) -> None:
    draw = numpy.random.default_rng(0)
    (tmp_path / "mine.py").write_text(MODEL)
    with Gallery.open(tmp_path / "a.db"):
        pass
    seeds = []
    for kind in ("PNG", "JPEG", "GIF", "BMP", "WEBP", "TIFF"):
        file = io.BytesIO()
        Image.fromarray(draw.integers(0, 255, (40, 40, 3), numpy.uint8)).save(file, kind)
        seeds.append(file.getvalue())
    with command(tmp_path / "a.db", "--model", "mine.py:embed", "--rate", "1e6") as (port, process):
        client = Client(port)
        counts: dict[int, int] = {}
        for number in range(UPLOADS):
            if number == UPLOADS // 10:
                before = resident(process.pid)
            data = mutated(seeds[number % len(seeds)], draw)
            path = ("/api/identify", "/api/enrol")[number % 20 == 0]
            status, _ = client.ask("POST", path, data, "image/png")
            counts[status] = counts.get(status, 0) + 1
        grown = resident(process.pid) - before
        client.close()
    assert set(counts) <= {200, 415, 422}, counts
    assert counts[415] > UPLOADS / 10
    assert grown <= 30 * 2**20


def mutated(data: bytes, draw: numpy.random.Generator) -> bytes:
    """Some bytes changed, a piece cut out or the end cut off."""
    changed = bytearray(data)
    for _ in range(int(draw.integers(1, 12))):
        changed[int(draw.integers(len(changed)))] = int(draw.integers(256))
    cut = int(draw.integers(len(changed)))
    if draw.random() < 0.3:
        del changed[cut:]
    elif draw.random() < 0.3:
        del changed[cut : cut + int(draw.integers(1, 200))]
    return bytes(changed)


def resident(pid: int) -> int:
    """Memory of a process in bytes."""
    line = next(each for each in Path(f"/proc/{pid}/status").read_text().splitlines() if each.startswith("VmRSS"))
    return int(line.split()[1]) * 1024
