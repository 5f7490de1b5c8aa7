"""A disagreement of engine and judge fails the test in which it happens, unless the test asks for it."""

import logging
from collections.abc import Iterator

import pytest

from likewise.claims.checking import LOG


class Kept(logging.Handler):
    """Keeps what is logged."""

    def __init__(self) -> None:
        super().__init__()
        self.said: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.said.append(record.getMessage())


@pytest.fixture(autouse=True)
def disagreements() -> Iterator[list[str]]:
    kept = Kept()
    LOG.addHandler(kept)
    yield kept.said
    LOG.removeHandler(kept)
    assert kept.said == [], "engine and judge disagree"
