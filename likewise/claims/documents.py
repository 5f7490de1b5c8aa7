"""Claims as they stand in files."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Stated:
    """One claim as its file has it; `error` says what was wrong with the file there, and nothing is checked then."""

    id: str
    text: str
    line: int = 0
    file: str = ""
    error: str = ""
