"""Statements with their verdicts, what they say about each other, and which lettered parts of a question were answered.

Apart from `answers`, which reads and checks: here verdicts of the whole text are compared.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

from likewise.claims.verdict import Verdict, VerdictName
from likewise.reading.link import Reading
from likewise.reading.segments import Turn

LABEL = re.compile(  # at the beginning of a line: "(a)", "a)", "Part (a)", "Part a:"
    r"\s*(?:#{1,6}\s*)?(?:[-*]\s+)?\**(?:(?:Part|Question)\s+(?=[a-z](?:[:.*]|\s*$)|\())?"
    r"(?:(?<=\s)(?P<plain>[a-z])(?![\w)])|\(?(?P<letter>[a-z])\))(?:\([ivx]+\))?\**[\s:.)*]*"
)
INLINE = re.compile(
    r"(?<![\w(\\$])\((?P<letter>[a-z])\)(?:\([ivx]+\))?\**(?=\s)"
)  # within a line, after a space or a sign
OPENS = re.compile(r"(?:^|[.!?:;,])[\s*_\"]*$")  # before a part that is answered within a line: a sentence ended
ASKED_WORDS = 2  # words after an inline label that ask something: "(a) and (b)" only mentions them
SAID = ("assertion", "definition")
WORDS = re.compile(r"\w+")


@dataclass(frozen=True)
class Statement:
    """One statement of an answer, in the order of the text; `claim` is what was read, `refusal` why nothing was."""

    line: int
    column: int
    source: str  # as typed, without delimiters
    role: str
    speaker: str
    claim: str = ""
    bindings: tuple[str, ...] = ()  # name, what it is, and the line that says so
    verdict: VerdictName | None = None  # nothing if no claim was read
    grade: str = ""
    detail: str = ""
    witness: tuple[tuple[str, str], ...] = ()
    findings: tuple[str, ...] = ()  # contradicts line n, follows from line n
    refusal: str = ""
    relation: bool = True  # whether it says something, or only names a term
    head: str = field(default="", repr=False)  # the name or function on its left side
    worth: Fraction | None = field(default=None, repr=False)  # the number that it gives the name
    follows: int = field(default=-1, repr=False)  # the statement that it goes on from
    place: tuple[int, int] = field(default=(0, 0), repr=False)  # section and turn
    readings: tuple[Reading, ...] = field(default=(), repr=False)
    verdicts: tuple[Verdict, ...] = field(default=(), repr=False)

    @property
    def understood(self) -> bool:
        """Whether it has a claim, or a place among the bindings and conditions."""
        return bool(self.claim) or self.refusal == ""

    @property
    def shown(self) -> Verdict:
        """The verdict on the link that decides the statement."""
        found = next((each for each in self.verdicts if each.verdict == self.verdict), self.verdicts[0])
        if found.verdict == self.verdict or self.verdict is None:
            return found
        return replace(found, verdict=self.verdict, grade=self.grade, detail=self.detail, witness=())

    @property
    def decided(self) -> bool:
        """Whether it holds or is refuted."""
        return self.verdict in ("holds", "refuted")

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        names = ("line", "column", "source", "role", "speaker", "claim", "verdict", "grade", "detail", "refusal")
        plain = {name: getattr(self, name) for name in names}
        return {
            **plain,
            "bindings": list(self.bindings),
            "witness": dict(self.witness),
            "findings": list(self.findings),
        }


@dataclass(frozen=True)
class Part:
    """A lettered part: the lines where it is asked and answered, 0 where it is not."""

    label: str
    asked: int
    answered: int


def related(statements: Sequence[Statement]) -> tuple[Statement, ...]:
    """The statements with what contradicts an earlier line and what follows from a refuted one."""
    made: list[Statement] = []
    wrong: dict[int, int] = {}  # statements that are refuted or rest on one that is, with the line to blame
    for number, each in enumerate(statements):
        found = list(each.findings)
        if each.verdict == "refuted":
            own = [
                binding.line
                for reading, verdict in zip([one for one in each.readings if one.claims], each.verdicts, strict=True)
                if verdict.verdict == "refuted" and reading.link == 1
                for binding in reading.bindings
                if binding.kind == "function" and binding.name == each.head and binding.number < number
            ]
            found += [f"contradicts line {line}" for line in own[-1:]]
        rests = [binding.number for reading in each.readings for binding in reading.bindings if binding.kind != "fact"]
        blamed = next((wrong[before] for before in [each.follows, *rests] if before in wrong and before != number), 0)
        if blamed and each.verdict != "refuted":
            found.append(f"follows from line {blamed}, which is refuted")
        if each.verdict == "refuted":
            wrong[number] = each.line
        elif blamed and each.verdict is not None:
            wrong[number] = blamed
        found += [f"contradicts line {line}" for line in _boxed_otherwise(each, statements[:number])]
        made.append(replace(each, findings=tuple(dict.fromkeys(found))))
    return tuple(made)


def _boxed_otherwise(each: Statement, earlier: Sequence[Statement]) -> list[int]:
    """The line of the value that a derivation gave a name, if the box gives it another one."""
    if r"\boxed" not in each.source or each.worth is None or each.role not in SAID:
        return []
    same = [
        one
        for one in earlier
        if one.head == each.head and one.worth is not None and one.place == each.place and one.role in SAID
    ]
    differs = same and same[-1].worth != each.worth and len({one.worth for one in same}) == 1
    return [same[-1].line] if differs else []


def parts_of(text: str, turns: Sequence[Turn]) -> tuple[Part, ...]:
    r"""Lettered parts: those that a user asks for; without a user, those that the text names.

    >>> spoken = (Turn("user", 1, 2), Turn("assistant", 3, 4))
    >>> parts_of("(a) Why?\n(b) How?\n(a) Because it holds.\n(b)", spoken)
    (Part(label='a', asked=1, answered=3), Part(label='b', asked=2, answered=0))
    >>> parts_of("Say that (a) it grows, (b) it ends.\n(a) Yes.", (Turn("user", 1, 1), Turn("assistant", 2, 2)))
    (Part(label='a', asked=1, answered=2), Part(label='b', asked=1, answered=0))
    """
    lines = text.split("\n")
    asked: dict[str, int] = {}
    answered: dict[str, int] = {}
    named: dict[str, int] = {}
    for turn in turns:
        labels = list(_labels(lines, turn, inline=turn.speaker == "user"))
        for place, (number, letter, end) in enumerate(labels):
            if turn.speaker == "user":
                asked.setdefault(letter, number)
                continue
            named.setdefault(letter, number)
            last = labels[place + 1][0] - 1 if place + 1 < len(labels) else turn.last
            said = lines[number - 1][end:] + " " + " ".join(lines[number:last])
            if WORDS.search(said):
                answered.setdefault(letter, number)
        if turn.speaker != "user":
            for number in range(turn.first, min(turn.last, len(lines)) + 1):
                for found in INLINE.finditer(lines[number - 1]):
                    opens = OPENS.search(lines[number - 1][: found.start()])
                    if found["letter"] in asked and opens and WORDS.search(lines[number - 1][found.end() :]):
                        answered.setdefault(found["letter"], number)
    wanted = asked or named
    letters = sorted(wanted)
    if len(letters) < 2 or letters != [chr(ord("a") + place) for place in range(len(letters))]:
        return ()
    return tuple(Part(letter, asked.get(letter, 0), answered.get(letter, 0)) for letter in letters)


def _labels(lines: Sequence[str], turn: Turn, *, inline: bool) -> Iterator[tuple[int, str, int]]:
    """Line, letter and end of each label of a turn; inline ones only if they go on from the letter before."""
    before = ""
    for number in range(turn.first, min(turn.last, len(lines)) + 1):
        line = lines[number - 1]
        start = LABEL.match(line)
        if start:
            before = start["letter"] or start["plain"]
            yield number, before, start.end()
        found = list(INLINE.finditer(line)) if inline else []
        ends = [*(each.start() for each in found[1:]), len(line)]
        for each, end in zip(found, ends, strict=False):
            follows = ord(each["letter"]) == (ord(before) + 1 if before else ord("a"))
            if follows and len(WORDS.findall(line[each.end() : end])) >= ASKED_WORDS:
                before = each["letter"]
                yield number, before, each.end()
