"""A service that runs: in a thread of the test, or as the command in a process of its own."""

import contextlib
import http.client
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Generator
from pathlib import Path
from typing import Any

import numpy
import uvicorn

from likewise.gallery import Gallery
from likewise.serving import Gate, guarded, listening
from likewise.web.running import TOKEN
from likewise.web.service import BODY, Audit, Rate, service

SECRET = "a-token-for-the-tests"
OTHERS = {"door": "the-token-of-the-door"}


class Client:
    """One connection to a service."""

    def __init__(self, port: int, token: str = SECRET) -> None:
        self.port, self.token = port, token
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)

    def ask(
        self, method: str, path: str, body: bytes | None = None, kind: str = "application/json", **headers: str
    ) -> tuple[int, Any]:
        """Status and JSON (or text) of an answer."""
        sent = {"Authorization": f"Bearer {self.token}", "Content-Type": kind}
        sent |= {name.replace("_", "-"): value for name, value in headers.items()}
        self.connection.request(method, path, body, {name: value for name, value in sent.items() if value})
        answer = self.connection.getresponse()
        data = answer.read()
        self.headers = answer.headers
        try:
            return answer.status, json.loads(data)
        except ValueError:
            return answer.status, data.decode("utf-8", "replace")

    def close(self) -> None:
        """Hang up."""
        self.connection.close()

    def vectors(self, path: str, rows: Any) -> tuple[int, Any]:
        """Send vectors."""
        return self.ask("POST", path, json.dumps({"vectors": numpy.asarray(rows).tolist()}).encode())


@contextlib.contextmanager
def running(gallery: Gallery, folder: Path, *, rate: float = 1e6) -> Generator[int]:
    """Serve a gallery in a thread; gives the port."""
    with listening(0) as sockets:
        port = sockets.getsockname()[1]
        app = guarded(
            service(gallery, rate=Rate(rate), audit=Audit(folder / "audit.jsonl")),
            Gate(port, SECRET, body=BODY, others=OTHERS),
            page=True,
        )
        server = uvicorn.Server(uvicorn.Config(app, log_level="critical", access_log=False, ws="none"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [sockets]}, daemon=True)
        thread.start()
        try:
            deadline = time.monotonic() + 30
            while not server.started:
                assert time.monotonic() < deadline
                time.sleep(0.01)
            yield port
        finally:
            server.should_exit = True
            thread.join(30)


@contextlib.contextmanager
def command(path: Path, *options: str) -> Generator[tuple[int, subprocess.Popen[str]]]:
    """Run `likewise serve`; gives the port and the process."""
    arguments = [sys.executable, "-m", "likewise", "serve", str(path), "--port", "0", *options]
    environment = {**os.environ, TOKEN: SECRET}
    process = subprocess.Popen(arguments, stderr=subprocess.PIPE, text=True, env=environment, cwd=path.parent)
    try:
        assert process.stderr is not None
        line = process.stderr.readline()
        assert "likewise: serving http://127.0.0.1:" in line, line
        yield int(line.split("127.0.0.1:")[1].split("/")[0]), process
    finally:
        process.terminate()
        process.wait(30)
        if process.stderr is not None:
            process.stderr.close()
