"""What an engine finds, and the verdict that people, files and other programs are shown."""

import json
from dataclasses import asdict, dataclass
from typing import Any, Literal

from likewise.claims.language.claim import VerdictName


class Undecided(Exception):
    """Raised inside an engine when it cannot go on; its text is the reason an inconclusive verdict gives."""


@dataclass(frozen=True)
class Finding:
    """What one engine says of one claim."""

    verdict: VerdictName
    grade: str  # proved, exact witness, exact count..., shape, alpha=..., arithmetic, run, not refuted, none
    detail: str  # of a refutation the counterexample, of an inconclusive the reason
    engine: str  # which engine decided: algebra, witness, interval, gaussian, sampling, count, order, shape, ...
    witness: tuple[tuple[str, str], ...] = ()  # (name, value) pairs of the point, or of the ray, that refutes
    suggestions: tuple[str, ...] = ()  # assumptions, in the claim's language, under which it would hold
    numbers: tuple[tuple[str, str], ...] = ()  # (name, value) pairs worth keeping: exact counts, bounds, sample sizes
    link: int = 0  # of a refuted chain a == b == c: which comparison fails, 1 for the first; 0 if it is not known


@dataclass(frozen=True)
class Verdict:
    """The answer to one claim: holds, refuted (with a counterexample) or inconclusive (with the reason)."""

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
    expect: VerdictName | None = None
    revises: str | None = None
    line: int = 0  # of the fence in its file
    seed: int = 0
    budget: float = 0.0
    versions: tuple[tuple[str, str], ...] = ()
    seconds: float = 0.0

    @property
    def as_expected(self) -> bool:
        """Whether this verdict lets a build pass: it is what `expect:` says, or holds where nothing was said."""
        return self.verdict == (self.expect or "holds")

    @property
    def outcome(self) -> Literal["passes", "fails", "open"]:
        """What a build makes of it: a missed expectation fails, and so does a refuted claim without one.

        >>> Verdict("typo", "inconclusive", "none", "unknown name x (nothing assumed)").outcome
        'open'
        """
        if self.as_expected:
            return "passes"
        return "open" if self.expect is None and self.verdict == "inconclusive" else "fails"

    def to_json(self) -> dict[str, Any]:
        """Plain data: strings, numbers, lists and mappings."""
        data = asdict(self)
        for name in ("witness", "numbers", "versions"):
            data[name] = dict(data[name])
        return json.loads(json.dumps(data))

    def __str__(self) -> str:
        """`verdict  id  detail  [grade]`, the line every door prints.

        >>> print(Verdict("sum", "refuted", "exact witness", "n=2 s=(1,-1): sum(s) = 0", expect="refuted"))
        refuted  sum  n=2 s=(1,-1): sum(s) = 0  [exact witness] (expected)
        """
        expected = " (expected)" if self.expect and self.as_expected and self.expect != "holds" else ""
        return f"{self.verdict}  {self.id}  {self.detail}  [{self.grade}]{expected}"
