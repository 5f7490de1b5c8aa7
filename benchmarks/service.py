"""The service under load: 50 clients that identify probes over HTTP on the loopback address, for a minute.

Run it as `python -m benchmarks.service --rows 10000` and `--rows 1000000`, on a machine that does nothing else. Clients
and server share its cores. Answers are compared with a search by numpy first. Exit code 1: an answer is wrong, or a
figure misses its aim.
"""

import asyncio
import base64
import http.client
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy
import typer

from benchmarks.harness.measurement import machine
from benchmarks.harness.worker import RESULTS
from likewise.gallery import Gallery

WIDTH, CLIENTS, STRANGERS = 128, 50, 1000
TOKEN = "a-token-for-the-benchmark"
AIMS = {10_000: (1000.0, 0.150), 1_000_000: (80.0, 1.0)}  # rows -> requests a second at least, p99 in seconds at most
OUT = RESULTS / "service.json"
Format = Literal["json", "base64"]


def unit_rows(count: int, seed: int) -> numpy.ndarray:
    """Random unit vectors."""
    rows = numpy.random.default_rng(seed).standard_normal((count, WIDTH), numpy.float32)
    return rows / numpy.linalg.norm(rows, axis=1, keepdims=True)


def filled(path: Path, rows: int) -> numpy.ndarray:
    """A gallery of `rows` identities with a threshold for identification; its vectors."""
    vectors = unit_rows(rows, 0)
    with Gallery.open(path, model="random") as gallery:
        for start in range(0, rows, 50_000):
            part = vectors[start : start + 50_000]
            gallery.enrol([f"person {start + place}" for place in range(len(part))], part)
        gallery.calibrate(strangers=unit_rows(STRANGERS, 1), fpir=0.05)
    return vectors


def request(port: int, probe: numpy.ndarray, form: Format) -> bytes:
    """One request to identify a probe, as bytes."""
    if form == "json":
        body = json.dumps({"vectors": [probe.tolist()]}).encode()
    else:
        body = json.dumps(
            {"float32": base64.b64encode(probe.astype("<f4").tobytes()).decode(), "width": WIDTH}
        ).encode()
    head = (
        f"POST /api/identify?top=1 HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {TOKEN}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


class Client(asyncio.Protocol):
    """A connection that sends the next request as soon as the last is answered."""

    def __init__(self, requests: list[bytes], place: int, end: float) -> None:
        self.requests, self.place, self.end = requests, place, end
        self.seconds: list[float] = []
        self.errors: list[str] = []
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Send the first."""
        assert isinstance(transport, asyncio.Transport)
        self.transport, self.data = transport, b""
        self._send()

    def _send(self) -> None:
        self.start = time.perf_counter()
        if self.start >= self.end:
            self.transport.close()
            return
        self.place += 1
        self.transport.write(self.requests[self.place % len(self.requests)])

    def data_received(self, data: bytes) -> None:
        """Count a whole answer."""
        self.data += data
        head, found, body = self.data.partition(b"\r\n\r\n")
        if not found:
            return
        length = int(head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0])
        if len(body) < length:
            return
        self.seconds.append(time.perf_counter() - self.start)
        if not (head.startswith(b"HTTP/1.1 200") and b'"outcome":"known"' in body):
            self.errors.append((head.partition(b"\r\n")[0] + body[:100]).decode("utf-8", "replace"))
        self.data = body[length:]
        self._send()

    def connection_lost(self, exc: Exception | None) -> None:
        """The end, or an error."""
        if exc is not None or self.start < self.end:
            self.errors.append(f"the connection was closed: {exc}")
        if not self.done.done():
            self.done.set_result(None)


async def load(port: int, requests: list[bytes], seconds: float) -> tuple[list[float], list[str]]:
    """All clients at once; seconds of every request, and errors."""
    end = time.perf_counter() + seconds
    loop = asyncio.get_running_loop()
    made = [
        await loop.create_connection(
            lambda place=place: Client(requests, place * len(requests) // CLIENTS, end), "127.0.0.1", port
        )
        for place in range(CLIENTS)
    ]
    await asyncio.wait([client.done for _, client in made], timeout=seconds + 60)
    clients = [client for _, client in made]
    return [each for client in clients for each in client.seconds], [e for client in clients for e in client.errors]


def processor_seconds(pid: int) -> float:
    """Processor time that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def check(port: int, probes: numpy.ndarray, vectors: numpy.ndarray, form: Format) -> None:
    """Compare answers with a search by numpy."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    for probe in probes[:20]:
        head, _, body = request(port, probe, form).partition(b"\r\n\r\n")
        headers = dict(line.split(": ", 1) for line in head.decode().split("\r\n")[1:])
        connection.request("POST", "/api/identify?top=1", body, headers)
        answer = json.loads(connection.getresponse().read())
        right = f"person {int((vectors @ probe).argmax())}"
        if answer["answers"][0]["candidates"][0]["identity"] != right:
            sys.exit(f"The service answers {answer}; {right} is nearest.")
    connection.close()


def measure(rows: int, seconds: float, form: Format, folder: Path) -> dict[str, Any]:
    """Requests a second and their quantiles, with the processor time that each costs the server and the clients."""
    path = folder / "people.db"
    vectors = filled(path, rows)
    draw = numpy.random.default_rng(2)
    probes = vectors[draw.choice(rows, 256)] + 0.02 * draw.standard_normal((256, WIDTH), numpy.float32)
    environment = {**os.environ, "LIKEWISE_SERVE_TOKEN": TOKEN}
    command = [sys.executable, "-m", "likewise", "serve", str(path), "--port", "0", "--rate", "1e6"]
    command += ["--audit", str(folder / "audit.jsonl")]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment)
    try:
        assert process.stderr is not None
        port = int(process.stderr.readline().split("127.0.0.1:")[1].split("/")[0])
        check(port, probes, vectors, form)
        requests = [request(port, probe, form) for probe in probes]
        asyncio.run(load(port, requests, min(2.0, seconds)))  # does not count
        before = processor_seconds(process.pid), time.process_time()
        times, errors = asyncio.run(load(port, requests, seconds))
        spent = processor_seconds(process.pid) - before[0], time.process_time() - before[1]
    finally:
        process.terminate()
        process.wait(30)
    p50, p99 = numpy.quantile(times, [0.5, 0.99]).tolist()
    return {
        "rows": rows,
        "clients": CLIENTS,
        "seconds": seconds,
        "format": form,
        "requests a second": len(times) / seconds,
        "p50, s": p50,
        "p99, s": p99,
        "errors": len(errors),
        "first errors": errors[:3],
        "server, s of processor a request": spent[0] / len(times),
        "clients, s of processor a request": spent[1] / len(times),
        "load of the machine": os.getloadavg()[0],
    }


def main(
    rows: Annotated[int, typer.Option(min=1000)] = 10_000,
    seconds: Annotated[float, typer.Option(min=1)] = 60.0,
    form: Annotated[str, typer.Option(help="json or base64.")] = "json",
    write: Annotated[bool, typer.Option("--write", help="Write benchmarks/results/service.json.")] = False,
) -> None:
    """Measure, print the figures beside their aims, and write them if asked."""
    with tempfile.TemporaryDirectory() as folder:
        found = measure(rows, seconds, "base64" if form == "base64" else "json", Path(folder))
    print(json.dumps(found, indent=1))
    least, most = AIMS.get(rows, (0.0, numpy.inf))
    kept = found["requests a second"] >= least and found["p99, s"] <= most and not found["errors"]
    print(f"at least {least:g}/s, p99 at most {most:g} s, no error: {'kept' if kept else 'MISSED'}")
    if write:
        facts = json.loads(OUT.read_text()) if OUT.exists() else {"runs": []}
        others = [run for run in facts["runs"] if (run["rows"], run["format"]) != (rows, found["format"])]
        runs = sorted([*others, found], key=lambda run: (run["rows"], run["format"]))
        OUT.write_text(json.dumps({"machine": machine(), "runs": runs}, indent=1) + "\n")
    if not kept:
        sys.exit(1)


if __name__ == "__main__":
    typer.run(main)
