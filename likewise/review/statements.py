"""Statements of an answer with their verdicts, and the turns they stand in."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from likewise.claims.verdict import Verdict

DECIDED = ("holds", "refuted")


@dataclass(frozen=True)
class Status:
    """What a chip says: a word, a sign and a class of the style sheet. No two meanings differ by colour alone."""

    name: str
    label: str
    sign: str


@dataclass(frozen=True)
class Binding:
    """What a name means in a claim that was read, and the line that says so; line 0 if no line does."""

    name: str
    meaning: str
    line: int = 0
    source: str = ""


@dataclass(frozen=True)
class Link:
    """A finding about two statements: this one contradicts another, or follows from it."""

    kind: str
    line: int
    detail: str = ""


@dataclass(frozen=True)
class Statement:
    """A formula, step or claim of the answer, how it was read, and its verdict, if it was checked."""

    line: int
    column: int
    source: str
    role: str = "claim"
    speaker: str = ""
    claim: str = ""  # in the language of claims; empty if it was not read
    bindings: tuple[Binding, ...] = ()
    verdict: Verdict | None = None
    links: tuple[Link, ...] = ()
    reason: str = ""  # why it was not read
    note: str = ""  # why it became no claim, though it was read
    labels: Mapping[str, str] = field(default_factory=dict)  # who, noticed, row, note of a claims file
    id: str = ""
    nearest: str = ""  # a true statement that differs from a refuted one by one change

    @property
    def key(self) -> str:
        """Its name among the things that can be marked."""
        return f"{self.line}:{self.column}"

    @property
    def status(self) -> Status:
        """What its chip says."""
        return status_of(self)

    @property
    def refuted(self) -> bool:
        """True if running it gave a counterexample, or a step of its own before it did and it follows from that."""
        return self.verdict is not None and self.verdict.verdict == "refuted"

    @property
    def decided(self) -> bool:
        """True if it holds or is refuted."""
        return self.verdict is not None and self.verdict.verdict in DECIDED

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "line": self.line,
            "column": self.column,
            "id": self.id,
            "source": self.source,
            "role": self.role,
            "speaker": self.speaker,
            "status": self.status.label,
            "claim": self.claim,
            "bindings": [vars(binding) for binding in self.bindings],
            "verdict": self.verdict.to_json() if self.verdict else None,
            "findings": [vars(link) for link in self.links],
            "reason": self.reason or self.note,
            "nearest": self.nearest,
            **{name: self.labels.get(name, "") for name in ("who", "noticed", "row", "note")},
        }


def status_of(statement: Statement) -> Status:
    """The chip of a statement; what is wrong comes before what is open, and no weak verdict looks like a proof.

    >>> status_of(Statement(1, 1, "x", verdict=Verdict("a", "holds", "sampled, alpha=1e-06, n=10", ""))).label
    'holds, sampled'
    """
    verdict, links = statement.verdict, {link.kind: link for link in statement.links}
    if verdict is not None and verdict.verdict == "refuted":
        return Status("refuted", "refuted", "\N{BALLOT X}")
    if "contradicts" in links:
        return Status("contradicts", f"contradicts line {links['contradicts'].line}", "\N{NOT EQUAL TO}")
    if "follows" in links:
        return Status("follows", "follows from a refuted step", "\N{DOWNWARDS ARROW WITH TIP RIGHTWARDS}")
    if verdict is None:
        if statement.reason and not statement.claim:
            return Status("unread", "not read", "\N{HORIZONTAL ELLIPSIS}")
        if statement.reason or statement.note or statement.claim:
            return Status("unchecked", "not checked", "\N{EN DASH}")
        return Status("role", statement.role, "\N{MIDDLE DOT}")
    grade = verdict.grade.partition(",")[0]
    if verdict.verdict == "holds":
        exact = grade in ("proved", "counted", "arithmetic")
        label = grade if grade in ("proved", "counted") else f"holds, {grade}" if grade else "holds"
        return Status("exact" if exact else "sampled", label, "\N{CHECK MARK}" if exact else "\N{ALMOST EQUAL TO}")
    if verdict.verdict == "malformed":
        return Status("malformed", "malformed", "!")
    if grade == "searched":
        return Status("searched", "no counterexample found", "~")
    return Status("undecided", grade if grade in ("late", "disagreement") else "undecided", "?")


@dataclass(frozen=True)
class Turn:
    """What one speaker says, by lines from 1."""

    speaker: str
    first: int
    last: int
