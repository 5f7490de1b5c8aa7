"""What an engine finds, and the verdict that people, files and other programs are shown."""

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any, Literal, get_args

from likewise.claims.language.claim import VerdictName

SCHEMA = 1  # of the JSON in every output; a field may be added, none is renamed or removed without a new number
GRADES: dict[VerdictName, tuple[str, ...]] = {
    "holds": ("proved", "counted", "arithmetic", "sampled", "run"),
    "refuted": ("exact witness", "counted", "arithmetic", "sampled", "run"),
    "inconclusive": ("searched", "undecided", "late", "disagreement"),
    "malformed": ("",),
}
MARKS: dict[VerdictName, str] = {
    "holds": "\N{CHECK MARK}",
    "refuted": "\N{BALLOT X}",
    "inconclusive": "?",
    "malformed": "!",
}
SEARCHED = "~"
Outcome = Literal["malformed", "fails", "open", "passes"]  # the worst first
OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)


class Undecided(Exception):
    """Raised inside an engine when it cannot go on; its text is the reason an inconclusive verdict gives."""


class OutOfTime(Undecided):
    """Raised inside an engine when the time of its claim is over."""


@dataclass(frozen=True)
class Finding:
    """What one engine says of one claim."""

    verdict: VerdictName
    grade: str  # begins with one of GRADES[verdict]
    detail: str  # of a refutation the counterexample, of an inconclusive the reason
    engine: str  # which engine decided: algebra, witness, interval, gaussian, sampling, count, order, shape, ...
    witness: tuple[tuple[str, str], ...] = ()  # (name, value) pairs of the point, or of the ray, that refutes
    suggestions: tuple[str, ...] = ()  # assumptions, in the claim's language, under which it would hold
    numbers: tuple[tuple[str, str], ...] = ()  # (name, value) pairs worth keeping: exact counts, bounds, sample sizes
    link: int = 0  # of a refuted chain a == b == c: which comparison fails, 1 for the first; 0 if it is not known
    where: str = ""  # of a proof: the condition it adds, "where denominators are not 0"
    exact: str = ""  # of a refuted expectation that stands alone on one side: its exact value
    is_undefined: bool = False  # of a refutation: one side has no value there, the other has


@dataclass(frozen=True)
class Verdict:
    """The answer to one claim: holds, refuted (with a counterexample), inconclusive or malformed (with the reason)."""

    id: str
    verdict: VerdictName
    grade: str
    detail: str
    engine: str = ""
    witness: tuple[tuple[str, str], ...] = ()
    statement: str = ""  # the claim as it was parsed
    assumptions: tuple[str, ...] = ()
    suggestions: tuple[str, ...] = ()
    numbers: tuple[tuple[str, str], ...] = ()
    link: int = 0  # which comparison of a refuted chain fails, from 1
    where: str = ""  # the condition that a proof adds, such as "where denominators are not 0"
    exact: str = ""  # the exact value of a refuted expectation
    is_undefined: bool = False  # refuted because one side has no value there
    expect: VerdictName | None = None
    revises: str | None = None
    line: int = 0  # of the claim in its file
    place: tuple[int, int] | None = None  # of a malformed claim: line and column of what is wrong, in its file
    nearest: str = ""  # of a malformed claim: the name that was probably meant
    seed: int = 0
    budget: float = 0.0
    versions: tuple[tuple[str, str], ...] = ()
    seconds: float = 0.0

    @property
    def as_expected(self) -> bool:
        """Whether this verdict lets a build pass: it is what `expect:` says, or holds where nothing was said."""
        return self.verdict == (self.expect or "holds")

    @property
    def outcome(self) -> Outcome:
        """What a build makes of it: a missed expectation fails, and so does a refuted claim without one.

        >>> Verdict("late", "inconclusive", "late", "over its deadline").outcome
        'open'
        """
        if self.as_expected:
            return "passes"
        if self.verdict == "malformed":
            return "malformed"
        return "open" if self.expect is None and self.verdict == "inconclusive" else "fails"

    @property
    def mark(self) -> str:
        """One character; a search that found nothing has its own, for it is neither a tick nor a mere question."""
        return SEARCHED if self.grade.startswith("searched") else MARKS[self.verdict]

    def to_json(self) -> dict[str, Any]:
        """Plain data: strings, numbers, lists and mappings."""
        data: dict[str, Any] = {"schema": SCHEMA, **asdict(self), "mark": self.mark, "outcome": self.outcome}
        for name in ("witness", "numbers", "versions"):
            data[name] = dict(data[name])
        return json.loads(json.dumps(data))

    def __str__(self) -> str:
        """`verdict  id  detail  [grade]`, the line every door prints.

        >>> print(Verdict("sum", "refuted", "exact witness", "n=2 s=(1,-1): sum(s) = 0", expect="refuted"))
        refuted  sum  n=2 s=(1,-1): sum(s) = 0  [exact witness] (expected)
        """
        expected = " (expected)" if self.expect and self.as_expected and self.expect != "holds" else ""
        grade = f"  [{self.grade}]" if self.grade else ""
        return f"{self.verdict}  {self.id}  {self.detail}{grade}{expected}"


def worst(verdicts: Iterable[Verdict]) -> Outcome:
    """The outcome of a document: its worst counts, and one without verdicts is open, not a pass.

    >>> worst([Verdict("a", "holds", "proved", ""), Verdict("b", "refuted", "exact witness", "0 != 1")]), worst([])
    ('fails', 'open')
    """
    return min((verdict.outcome for verdict in verdicts), key=OUTCOMES.index, default="open")
