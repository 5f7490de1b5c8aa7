"""A person's marks on an answer: right, wrong, unclear or praise, with a remark and a tag, kept in a file beside it.

A mark says where it stands and quotes what it is about, so it finds its place again after the answer was edited. The
file is written whole, under a lock, one mark at a time: two tabs, or two processes, do not lose each other's marks.
"""

import contextlib
import hashlib
import json
import os
import re
import threading
from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal, get_args

from likewise.checks import refuse, require, require_choice
from likewise.files import write_whole
from likewise.reading.opening import sidecar

MarkName = Literal["right", "wrong", "unclear", "praise"]
MARKS: tuple[MarkName, ...] = get_args(MarkName)
TAGS = (  # the kinds that people used on transcripts
    "wrong mathematics",
    "wrong figure",
    "wrong shape or cost",
    "wrong code",
    "self-contradiction",
    "unsupported claim",
    "notation",
    "missing expansion",
    "lost information",
    "did not answer",
    "wordy",
    "helpful",
)
SCHEMA = 1
REMARK, SOURCE, COUNT, FILE = 4_000, 20_000, 10_000, 20_000_000  # characters, characters, marks, bytes
RATINGS = {"wrong": -1, "unclear": 0, "right": 1, "praise": 1}
HEADING = re.compile(r"### line (\d+)(?:, column (\d+))?: (\w+)(?: \((.*)\))?")
SPECIAL = re.compile(r"([\\`*_{}\[\]<>#&!|~$^@:/])")


@dataclass(frozen=True)
class Mark:
    """One mark. Column 0 is a whole passage, any other one statement; `source` quotes what was marked."""

    line: int
    column: int
    mark: MarkName
    remark: str = ""
    tag: str = ""
    source: str = ""
    revision: int = 0  # of the file when it was written; 0 if it is not written yet

    def __post_init__(self) -> None:
        """Refuse what is no mark."""
        for name, least in (("line", 1), ("column", 0), ("revision", 0)):
            value = getattr(self, name)
            whole = isinstance(value, int) and not isinstance(value, bool) and least <= value < 10**9
            require(whole, "mark", name, f"be a whole number of at least {least}", repr(value)[:40])
        require_choice("mark", "mark", self.mark, MARKS)
        for name, most in (("remark", REMARK), ("source", SOURCE), ("tag", 80)):
            value = getattr(self, name)
            right = isinstance(value, str) and len(value) <= most and value.isprintable() | (name != "tag")
            require(right, "mark", name, f"be text of at most {most:,} characters", repr(value)[:40])

    @property
    def key(self) -> str:
        """What it marks: the line of a passage, or line:column of a statement."""
        return f"{self.line}:{self.column}" if self.column else str(self.line)

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self)


@dataclass(frozen=True)
class Points:
    """Points that a person gave for a part of a rubric."""

    part: str
    points: float
    revision: int = 0  # of the file when they were written

    def __post_init__(self) -> None:
        """Refuse what are no points."""
        right = isinstance(self.part, str) and 0 < len(self.part) <= 80
        require(right, "points", "part", "be a text of at most 80 characters", repr(self.part)[:40])
        number = (
            isinstance(self.points, int | float) and not isinstance(self.points, bool) and 0 <= self.points <= 10_000
        )
        require(number, "points", "points", "be a number from 0 to 10,000", repr(self.points)[:40])

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self)


def points_of(data: Any) -> Points:
    """Points from plain data."""
    names = ("part", "points", "revision")
    right = isinstance(data, Mapping) and set(data) <= set(names) and {"part", "points"} <= set(data)
    require(right, "points", "points", f"be a mapping of {', '.join(names)}", repr(data)[:80])
    return Points(**data)


def mark_of(data: Any) -> Mark:
    """A mark from plain data; unknown names are refused, for a typo must not lose a remark."""
    if not isinstance(data, Mapping):
        refuse("mark", "mark", "be a mapping", type(data).__name__)
    names = ("line", "column", "mark", "remark", "tag", "source", "revision")
    unknown = [str(name)[:40] for name in data if name not in names]
    require(not unknown, "mark", "names", f"be among {', '.join(names)}", ", ".join(unknown))
    require("line" in data and "mark" in data, "mark", "line and mark", "be given", sorted(map(str, data))[:7])
    return Mark(**{"column": 0, **data})  # ty: ignore[invalid-argument-type]


@dataclass(frozen=True)
class Place:
    """Something that can be marked."""

    line: int
    column: int
    source: str


def placed(marks: Iterable[Mark], places: Sequence[Place]) -> tuple[list[Mark], list[Mark]]:
    """Marks moved to where their source stands now, and those whose source is gone.

    A mark without a source stays on its line and column.

    >>> moved, lost = placed([Mark(1, 0, "wrong", source="b"), Mark(2, 0, "right", source="c")], [Place(4, 0, "b")])
    >>> moved[0].line, lost[0].source
    (4, 'c')
    """
    exact = {(place.line, place.column): place for place in places}
    by_source: dict[tuple[bool, str], list[Place]] = {}
    for place in places:
        by_source.setdefault((place.column > 0, _squeezed(place.source)), []).append(place)
    found, lost = [], []
    for mark in marks:
        here = exact.get((mark.line, mark.column))
        source = _squeezed(mark.source)
        if here and (not source or _squeezed(here.source) == source):
            found.append(mark)
        elif others := by_source.get((mark.column > 0, source)):
            nearest = min(others, key=lambda place: abs(place.line - mark.line))
            found.append(replace(mark, line=nearest.line, column=nearest.column))
        else:
            lost.append(mark)
    return found, lost


def _squeezed(source: str) -> str:
    return " ".join(source.split())[:SOURCE]


class Conflict(Exception):
    """A mark, or points, that another tab changed meanwhile; `current` is what it is now, None if it was removed."""

    def __init__(self, current: "Mark | Points | None") -> None:
        super().__init__("this mark was changed elsewhere")
        self.current = current


class MarkFile:
    """The marks of one answer in `answer.marks.json`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()

    def read(self) -> list[Mark]:
        """All marks, in the order of the answer; none if there is no file."""
        return self._read()[1]

    def read_points(self) -> list[Points]:
        """The points of each part that has some."""
        return self._read()[2]

    def put_points(self, given: Points) -> Points:
        """Write the points of one part; `Conflict` if their revision is not the one on file."""
        with self._locked():
            last, marks, points = self._read()
            current = next((each for each in points if each.part == given.part), None)
            if given.revision != (current.revision if current else 0):
                raise Conflict(current)
            saved = replace(given, revision=last + 1)
            self._write(last + 1, marks, [*(each for each in points if each is not current), saved])
            return saved

    def put(self, mark: Mark) -> Mark:
        """Write one mark and return it with its new revision; `Conflict` if its revision is not the one on file."""
        return self._change(mark.line, mark.column, mark.revision, mark)  # ty: ignore[invalid-return-type]

    def remove(self, line: int, column: int, revision: int) -> None:
        """Remove one mark; `Conflict` if its revision is not the one on file."""
        self._change(line, column, revision, None)

    def add(self, marks: Iterable[Mark]) -> list[Mark]:
        """Add imported marks and return those that were left out, because their place has a mark already."""
        with self._locked():
            revision, present, points = self._read()
            keys = {mark.key for mark in present}
            left, new = [], []
            for mark in marks:
                (left if mark.key in keys else new).append(replace(mark, revision=revision + 1))
                keys.add(mark.key)
            if new:
                self._write(revision + 1, [*present, *new], points)
            return left

    def _change(self, line: int, column: int, revision: int, mark: Mark | None) -> Mark | None:
        with self._locked():
            last, marks, points = self._read()
            current = next((each for each in marks if (each.line, each.column) == (line, column)), None)
            if revision != (current.revision if current else 0):
                raise Conflict(current)
            others = [each for each in marks if each is not current]
            changed = None if mark is None else replace(mark, revision=last + 1)
            self._write(last + 1, others if changed is None else [*others, changed], points)
            return changed

    def _read(self) -> tuple[int, list[Mark], list[Points]]:
        if not self.path.exists():
            return 0, [], []
        require(self.path.stat().st_size <= FILE, "marks", "file", f"have at most {FILE:,} bytes", self.path)
        try:
            data = json.loads(self.path.read_text(encoding="utf-8"))
            marks = [mark_of(each) for each in data["marks"]]
            points = [points_of(each) for each in data.get("points", [])]
            return max([int(data.get("revision", 0)), *(each.revision for each in (*marks, *points))]), marks, points
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            refuse("marks", "file", "be marks that likewise wrote", f"{self.path}: {error}")

    def _write(self, revision: int, marks: list[Mark], points: list[Points]) -> None:
        require(len(marks) <= COUNT, "marks", "marks", f"be at most {COUNT:,}", len(marks))
        marks = sorted(marks, key=lambda mark: (mark.line, mark.column))
        data: dict[str, Any] = {"schema": SCHEMA, "revision": revision, "marks": [mark.to_json() for mark in marks]}
        if points:
            data["points"] = [each.to_json() for each in points]
        write_whole(self.path, json.dumps(data, ensure_ascii=False, indent=1) + "\n")

    def _locked(self) -> contextlib.AbstractContextManager[None]:
        return alone(self.path, self._lock)


@contextlib.contextmanager
def alone(path: Path, lock: threading.Lock) -> Generator[None]:
    """Alone among threads, and among processes where the system has locks; the lock is on the folder of the file."""
    with lock, contextlib.ExitStack() as stack:
        with contextlib.suppress(ImportError):
            import fcntl

            folder = os.open(path.parent, os.O_RDONLY)
            stack.callback(os.close, folder)
            fcntl.flock(folder, fcntl.LOCK_EX)
        yield


def marks_beside(answer: Path, conversation: int = 0) -> Path:
    """The file of the marks of an answer, or of one conversation of an export: answer.md has answer.marks.json."""
    return sidecar(answer, "marks.json", conversation)


def to_markdown(marks: Sequence[Mark], name: str = "the answer") -> str:
    """Marks for a report; `from_markdown` reads it back. Remarks are escaped: they bring no markup of their own."""
    parts = [f"# Marks on {_escape(' '.join(name.split()))}\n"]
    for mark in marks:
        tag = f" ({_escape(mark.tag)})" if mark.tag else ""
        column = f", column {mark.column}" if mark.column else ""
        parts.append(f"### line {mark.line}{column}: {mark.mark}{tag}\n")
        if mark.source:
            fence = "`" * max(3, 1 + max(map(len, re.findall("`+", mark.source)), default=0))
            parts.append(f"{fence}text\n{mark.source}\n{fence}\n")
        if mark.remark:
            parts.append("".join(f"> {_escape(line)}\n" for line in mark.remark.split("\n")))
    return "\n".join(parts)


def from_markdown(text: str) -> list[Mark]:
    """The marks of a text that `to_markdown` wrote."""
    marks: list[Mark] = []
    fence, source, remark = "", [], []
    head: re.Match[str] | None = None

    def finish() -> None:
        if head is not None:
            place = {
                "line": int(head[1]),
                "column": int(head[2] or 0),
                "mark": head[3],
                "tag": _unescape(head[4] or ""),
            }
            marks.append(mark_of({**place, "source": "\n".join(source), "remark": "\n".join(remark)}))

    for line in text.split("\n"):
        if fence:
            if line == fence:
                fence = ""
            else:
                source.append(line)
        elif found := HEADING.fullmatch(line):
            finish()
            head, source, remark = found, [], []
        elif head and (opening := re.fullmatch(r"(`{3,})text", line)):
            fence = opening[1]
        elif head and line.startswith(">"):
            remark.append(_unescape(line[2:]))
    finish()
    return marks


def _escape(text: str) -> str:
    return SPECIAL.sub(r"\\\1", text)


def _unescape(text: str) -> str:
    return re.sub(r"\\([!-/:-@\[-`{-~])", r"\1", text)


def to_json_lines(marks: Sequence[Mark], steps: Sequence[tuple[int, int, str]], *, id: str, generator: str = "") -> str:
    """One turn as step-labelled data: steps, a rating for each, the index of the first wrong step (-1: none).

    steps: first line, last line and source of each passage. The marks themselves are kept under `marks`.
    """
    ratings: list[int | None] = []
    for first, last, _ in steps:
        here = [RATINGS[mark.mark] for mark in marks if first <= mark.line <= last]
        ratings.append(min(here) if here else None)
    record = {
        "id": id,
        "generator": generator,
        "steps": [source for _, _, source in steps],
        "ratings": ratings,
        "label": next((place for place, rating in enumerate(ratings) if rating == -1), -1),
        "marks": [mark.to_json() for mark in marks],
    }
    return json.dumps(record, ensure_ascii=True) + "\n"


def from_json_lines(text: str) -> list[Mark]:
    """The marks of JSON Lines that `to_json_lines` wrote."""
    marks = []
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip():
            continue
        try:
            marks += [mark_of(each) for each in json.loads(line)["marks"]]
        except (KeyError, TypeError, ValueError, RecursionError) as error:
            refuse("marks", "lines", "each be an object with marks", f"line {number}: {error}")
    return marks


def import_marks(path: Path) -> list[Mark]:
    """The marks of a .json, .jsonl or .md file."""
    require_choice("marks", "file", path.suffix, (".json", ".jsonl", ".md"))
    require(path.is_file(), "marks", "file", "exist", path)
    require(path.stat().st_size <= FILE, "marks", "file", f"have at most {FILE:,} bytes", path)
    if path.suffix == ".json":
        return MarkFile(path).read()
    text = path.read_text(encoding="utf-8")
    return from_markdown(text) if path.suffix == ".md" else from_json_lines(text)


def content_hash(text: str) -> str:
    """SHA-256 of an answer, by which a page finds its own marks in a browser."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
