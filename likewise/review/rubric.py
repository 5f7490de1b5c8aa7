"""Rubrics: the parts of a question, the points of each, and the passages of an answer that belong to it."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from likewise.checks import refuse, require
from likewise.reading.findings import Part as Asked
from likewise.review.doubt import is_doubt
from likewise.review.setting import Row
from likewise.review.statements import Turn

PARTS, SIZE = 200, 200_000  # parts, characters of a file
DECORATION = re.compile(r"^[\s#>*_\-+|`\"']+")


@dataclass(frozen=True)
class Part:
    """A part of a question. `begins`: how a passage begins that answers it; the name of the part unless given."""

    name: str
    points: float = 0.0
    topic: str = ""
    begins: tuple[str, ...] = ()

    def named_by(self, words: str, *, anywhere: bool = False) -> bool:
        """Whether a passage begins with this part's name; `anywhere`: whether it mentions it."""
        plain = " ".join(DECORATION.sub("", words).replace("*", "").split())
        for start in self.begins or (self.name,):
            pattern = rf"(?<![\w(]){re.escape(' '.join(start.split()))}(?!\w)"
            if (re.search if anywhere else re.match)(pattern, plain, re.IGNORECASE):
                return True
        return False


@dataclass(frozen=True)
class Rubric:
    """Parts with their points; `found`: they are those of the question, and nobody wrote a rubric."""

    parts: tuple[Part, ...]
    found: bool = False

    @property
    def points(self) -> float:
        """The points of all parts."""
        return sum(part.points for part in self.parts)

    @property
    def topics(self) -> tuple[str, ...]:
        """The topics, in order."""
        return tuple(dict.fromkeys(part.topic for part in self.parts if part.topic))


def rubric_of(text: str, where: str = "rubric.yaml") -> Rubric:
    r"""A rubric from YAML.

    >>> rubric_of("parts: [{name: (a), points: 2, topic: kernels}]").parts[0]
    Part(name='(a)', points=2.0, topic='kernels', begins=())
    """
    import yaml

    require(len(text) <= SIZE, "rubric", where, f"have at most {SIZE:,} characters", len(text))
    try:
        data = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        refuse("rubric", where, "be YAML", str(error).split("\n")[0])
    listed = isinstance(data, dict) and list(data) == ["parts"] and isinstance(data["parts"], list)
    require(listed and data["parts"], "rubric", where, "be `parts:` with a list of parts", str(data)[:80])
    require(len(data["parts"]) <= PARTS, "rubric", where, f"have at most {PARTS} parts", len(data["parts"]))
    parts = tuple(_part(each, where) for each in data["parts"])
    names = [part.name for part in parts]
    require(len(set(names)) == len(names), "rubric", f"names in {where}", "differ", ", ".join(names)[:80])
    return Rubric(parts)


def asked_for(parts: Sequence[Asked]) -> Rubric | None:
    """The lettered parts that a user asks for, as a rubric without points."""
    if not any(part.asked for part in parts):
        return None
    begins = ("({0})", "Part ({0})", "Question ({0})", "{0})", "Part {0}:", "Part {0}.")
    found = [Part(f"({part.label})", begins=tuple(each.format(part.label) for each in begins)) for part in parts]
    return Rubric(tuple(found), found=True)


def read_rubric(path: Path) -> Rubric:
    """The rubric of a file."""
    require(path.is_file(), "rubric", "file", "exist", path)
    require(path.stat().st_size <= 4 * SIZE, "rubric", str(path), f"have at most {SIZE:,} characters", "more")
    return rubric_of(path.read_text(encoding="utf-8"), str(path))


def _part(data: Any, where: str) -> Part:
    allowed = ("name", "points", "topic", "begins")
    known = isinstance(data, dict) and set(data) <= set(allowed)
    require(known, "rubric", f"each part in {where}", f"have {', '.join(allowed)} only", str(data)[:80])
    name, points, topic = str(data.get("name", "")).strip(), data.get("points", 0), str(data.get("topic", ""))
    require(
        0 < len(name) <= 80 and name.isprintable(), "rubric", f"name in {where}", "be a short text", repr(name)[:80]
    )
    number = isinstance(points, int | float) and not isinstance(points, bool) and 0 <= points <= 10_000
    require(number, "rubric", f"points of {name}", "be a number from 0 to 10,000", repr(points)[:40])
    begins = data.get("begins", [])
    begins = [begins] if isinstance(begins, str) else begins
    right = isinstance(begins, list) and all(isinstance(each, str) and each.strip() for each in begins)
    require(right, "rubric", f"begins of {name}", "be a text or a list of texts", repr(begins)[:80])
    return Part(name, float(points), topic[:80], tuple(begins))


def rows_of_parts(rubric: Rubric, rows: Sequence[Row], turns: Sequence[Turn]) -> dict[str, list[Row]]:
    """The rows of an assistant for each part; a part without rows was not answered.

    A passage that begins with the name of a part opens it, and so does a user who mentions one part. A new question
    closes it, a doubt does not.
    """
    found: dict[str, list[Row]] = {part.name: [] for part in rubric.parts}
    speakers = {line: turn for turn in turns for line in range(turn.first, turn.last + 1)}
    current, asked = "", None
    for row in rows:
        turn = speakers.get(row.first)
        if turn is not None and turn.speaker == "user":
            named = [part.name for part in rubric.parts if part.named_by(row.source, anywhere=True)]
            if turn is not asked and not is_doubt(_words(rows, turn)):
                current = ""
            asked = turn
            current = named[0] if len(named) == 1 else current
        elif turn is None or turn.speaker != "annotator":
            current = next((part.name for part in rubric.parts if part.named_by(row.source)), current)
            if current:
                found[current].append(row)
    return found


def _words(rows: Sequence[Row], turn: Turn) -> str:
    return " ".join(row.source for row in rows if turn.first <= row.first <= turn.last)
