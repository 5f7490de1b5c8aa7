"""A person's corrections of a reading, kept in `answer.readings.yaml` and changed one at a time.

The file may be written by hand, too: its other lines, comments included, stay as they are.
"""

import threading
from pathlib import Path
from typing import Any

from likewise.checks import require
from likewise.files import write_whole
from likewise.reading.corrections import Correction, corrections
from likewise.reading.opening import sidecar
from likewise.review.marks import alone

FILE, TEXT = 200_000, 80  # characters of a file and of a field
Key = tuple[str, int | str, int]  # role or program and its line, or type and its name; the column of a role, or 0


def readings_beside(answer: Path, conversation: int = 0) -> Path:
    """The file of the corrections of an answer, or of one conversation: answer.md has answer.readings.yaml."""
    return sidecar(answer, "readings.yaml", conversation)


class ReadingFile:
    """The corrections of one answer."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()

    def read(self) -> tuple[Correction, ...]:
        """All corrections, in the order of the file; none if there is no file."""
        return _parsed(self._text(), str(self.path))

    def entries(self) -> list[dict[str, Any]]:
        """The same as plain data, as the file has it."""
        return _entries(self._text())

    def put(self, entry: dict[str, Any]) -> None:
        """Write one entry in place of another about the same line or name; one without a value takes that away.

        entry: `{line, role}`, `{line, column, role}`, `{line, program}` or `{name, type}`.
        """
        kind = next((kind for kind in ("role", "program", "type") if kind in entry), "")
        place = "name" if kind == "type" else "line"
        column = ["column"] if kind == "role" and "column" in entry else []
        whole = set(entry) == {kind, place, *column}
        require(whole, "readings", "correction", "be a line with role or program, or a name with type", entry)
        named = (place, *column, kind)
        plain = {name: entry[name] if name in ("line", "column") else str(entry[name]).strip() for name in named}
        short = all(len(str(value)) <= TEXT and str(value).isprintable() for value in plain.values())
        require(short, "readings", "correction", f"have values of at most {TEXT} characters", str(plain)[:TEXT])
        given = bool(plain[kind])
        if given:
            _parsed(_line(plain), "the correction")
        with alone(self.path, self._lock):
            text = _without(self._text(), (kind, plain[place], entry.get("column", 0)))
            text += _line(plain) if given else ""
            _parsed(text, str(self.path))
            write_whole(self.path, text or "[]\n")

    def _text(self) -> str:
        if not self.path.exists():
            return ""
        require(self.path.stat().st_size <= FILE, "readings", "file", f"have at most {FILE:,} bytes", self.path)
        return self.path.read_text(encoding="utf-8")


def _parsed(text: str, where: str) -> tuple[Correction, ...]:
    return corrections(text, where) if _entries(text, where) else ()


def _entries(text: str, where: str = "readings") -> list[dict[str, Any]]:
    import yaml

    try:
        found = yaml.safe_load(text) or []
    except yaml.YAMLError as error:
        reason = str(error).split("\n")[0]
        raise ValueError(f"readings: {where} must be YAML; got {reason}.") from None
    require(isinstance(found, list), "readings", where, "be a list of corrections", type(found).__name__)
    return found


def _line(entry: dict[str, Any]) -> str:
    import yaml

    text = yaml.safe_dump(entry, default_flow_style=True, sort_keys=False, width=1000, allow_unicode=True)
    return f"- {text.strip()}\n"


def _keys(entry: Any) -> set[Key]:
    if not isinstance(entry, dict):
        return set()
    keys: set[Key] = {("role", entry.get("line", 0), entry.get("column", 0))} if "role" in entry else set()
    keys |= {("program", entry.get("line", 0), 0)} if "program" in entry else set()
    return keys | ({("type", str(entry.get("name", "")), 0)} if "type" in entry else set())


def _without(text: str, key: Key) -> str:
    """The text without the entries about a place; all else stays as typed, if each such entry is one line."""
    import yaml

    kept = []
    for line in text.splitlines():
        try:
            alone_ = yaml.safe_load(line) if line.startswith("-") else None
        except yaml.YAMLError:
            alone_ = None
        if not (isinstance(alone_, list) and len(alone_) == 1 and _keys(alone_[0]) == {key}):
            kept.append(line)
    left = "".join(f"{line}\n" for line in kept if line.strip() != "[]")
    found = _entries(left)
    if not any(key in _keys(entry) for entry in found):
        return left
    pruned = []
    for entry in found:  # an entry of several lines, or about several things: the list is written anew
        gone = {key[0], "column"} if key[0] == "role" else {key[0]}
        rest = {name: value for name, value in entry.items() if not (key in _keys(entry) and name in gone)}
        if _keys(rest):
            pruned.append(rest)
    return "".join(map(_line, pruned))
