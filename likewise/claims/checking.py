"""Texts in, verdicts out: what every door calls."""

import hashlib
import logging
import math
import platform
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import likewise
from likewise.checks import require, require_count
from likewise.claims.documents import markdown_claims
from likewise.claims.language.claim import Claim
from likewise.claims.language.parser import CHOICES, parse
from likewise.claims.language.tokens import Unbounded, Unparsed
from likewise.claims.pool import WALL_TIME_FACTOR, Kind, Late, shared_pool
from likewise.claims.registry import misspelt, names_code, needs_torch, programs_of, registered_here
from likewise.claims.stated import NOTHING, ClaimSource, Span, or_nothing
from likewise.claims.verdict import Verdict
from likewise.progress import Progress, silent

LOG = logging.getLogger("likewise.claims.disagreement")  # all that is needed to mend the engine or the judge
CEILING = 60.0  # seconds a claim may ask for, unless the caller says otherwise


class _Space(str):
    """R, R["D"], R["N", "D"]: sets for `given` in Python."""

    __slots__ = ()

    def __getitem__(self, dims: Any) -> str:
        return f"R^({', '.join(map(str, dims))})" if isinstance(dims, tuple) else f"R^({dims})"


R = _Space("R")


def check(
    text: str,
    *,
    id: str = "claim",
    given: Mapping[str, str] | None = None,
    seed: int = 0,
    budget: float | None = None,
    allow_code: bool = False,
    seconds: float = math.inf,
    gone: threading.Event | None = None,
) -> Verdict:
    """Decide one claim: a block of lines, or one relation with its variables in `given`.

    >>> print(check("dot(q, k) == dot(k, q)", given={"q": R["D"], "k": R["D"]}))
    holds  claim  for every D (normal form)  [proved]
    """
    before = "" if "assert:" in text or "\n" in text.strip() else "assert: "
    declared = f"given: {'; '.join(f'{name} in {domain}' for name, domain in given.items())}\n" if given else ""
    spans = tuple(  # so that a malformed claim's place is one of `text`
        Span(line + bool(given), 1 + len(before), line, 1) for line in range(1, len(text.splitlines()) + 1)
    )
    return check_claims(
        [ClaimSource(id, declared + before + text, spans=spans)],
        seed=seed,
        budget=budget,
        allow_code=allow_code,
        seconds=seconds,
        gone=gone,
    )[0]


def check_claims(
    stated: Sequence[ClaimSource],
    *,
    seed: int = 0,
    budget: float | None = None,
    allow_code: bool = False,
    progress: Progress = silent,
    seconds: float = math.inf,
    gone: threading.Event | None = None,
) -> list[Verdict]:
    """Decide many claims at once, in worker processes; the verdicts come in the order of the claims.

    seconds: on the clock, for all of them; what is not decided then is late. gone: set by another thread to stop.
    A claim that names a program which you registered is decided in your own process, which alone knows it.
    """
    require_count("check", "seed", seed, least=0)
    require(budget is None or budget > 0, "check", "budget", "be a number of seconds above 0", budget)
    asked = [_ask(each, seed, budget) for each in stated]
    verdicts: list[Verdict] = [_unasked(each) for each in asked]
    places = [place for place, each in enumerate(asked) if each.claim is not None]

    def answered(number: int, found: "dict[str, Any] | Late") -> None:
        each = asked[places[number]]
        verdicts[places[number]] = _verdict(each, found)
        done[0] += 1
        progress(done[0] / len(places), each.stated.id)

    done = [0]
    questions = [asked[place].question(allow_code) for place in places]
    here = [number for number, place in enumerate(places) if asked[place].here]
    if here:
        from likewise.claims.worker import answer  # with all engines, which only a worker needs else

        for number in here:
            answered(number, answer(questions[number][1]))
    elsewhere = [number for number in range(len(places)) if number not in here]
    if elsewhere:
        waiting = [questions[number] for number in elsewhere]
        shared_pool().ask_all(
            waiting, lambda place, found: answered(elsewhere[place], found), seconds=seconds, gone=gone
        )
    return verdicts


def check_document(
    markdown: str,
    *,
    seed: int = 0,
    budget: float | None = None,
    allow_code: bool = False,
    seconds: float = math.inf,
    gone: threading.Event | None = None,
) -> list[Verdict]:
    r"""Decide the claim fences of a Markdown text, in their order; without any, the one verdict is inconclusive.

    >>> print(*check_document("```claim half\nassert: 1/2 == 0.5\n```\n"))
    holds  half  0.5 == 0.5  [arithmetic]
    """
    return check_claims(
        or_nothing(markdown_claims(markdown)),
        seed=seed,
        budget=budget,
        allow_code=allow_code,
        seconds=seconds,
        gone=gone,
    )


@dataclass(frozen=True)
class _Asked:
    """One claim on its way to a worker; without a claim there is a reason, and a place if it is malformed."""

    stated: ClaimSource
    claim: Claim | None
    seed: int
    budget: float
    reason: str = ""
    place: tuple[int, int] | None = None
    nearest: str = ""

    @property
    def here(self) -> bool:
        """Whether only this process can decide it."""
        return self.claim is not None and any(map(registered_here, programs_of(self.claim)))

    def question(self, allow_code: bool) -> tuple[Kind, dict[str, Any], float]:
        assert self.claim is not None
        question = {
            "claim": replace(self.claim, seed=self.seed, budget=self.budget),
            "allow_code": allow_code,
            "folder": str(Path(self.stated.file).parent) if self.stated.file else "",
        }
        patience = 0.0
        if allow_code and names_code(self.claim):
            from likewise.claims.sandbox.confinement import LOADING

            patience = LOADING / WALL_TIME_FACTOR
        return "torch" if needs_torch(self.claim) else "pure", question, self.budget + patience


def _ask(stated: ClaimSource, seed: int, budget: float | None) -> _Asked:
    if stated.error:
        place = None if stated.error == NOTHING else (max(stated.line, 1), stated.column)
        return _Asked(stated, None, seed, 0.0, stated.error, place)
    try:
        claim = parse(stated.text, id=stated.id)
    except Unbounded as reason:
        return _Asked(stated, None, seed, 0.0, str(reason))
    except Unparsed as reason:
        return _Asked(stated, None, seed, 0.0, str(reason), stated.place(reason.place or (1, 1)), reason.nearest)
    for name in sorted(programs_of(claim)):
        if meant := misspelt(name):
            reason = f"unknown program {name}; did you mean {meant}?"
            return _Asked(stated, None, seed, 0.0, reason, stated.place(_found(name, stated.text)), meant)
    own = claim.seed if claim.seed is not None else _hashed(claim.statement, seed)
    return _Asked(stated, claim, own, min(claim.budget, budget or CEILING))


def _found(name: str, text: str) -> tuple[int, int]:
    """The line and column, from 1, of a name that the text has."""
    before = text[: text.index(name)]
    return before.count("\n") + 1, len(before) - before.rfind("\n")


def _hashed(statement: str, seed: int) -> int:
    """The seed of a claim: from what it says and what the user chose, so that an edit elsewhere changes nothing."""
    return int.from_bytes(hashlib.sha256(f"{seed}\n{statement}".encode()).digest()[:6], "big")


def _verdict(asked: _Asked, answer: "dict[str, Any] | Late") -> Verdict:
    """A worker's answer, judged here: what is not of the agreed form is no verdict."""
    if isinstance(answer, Late):
        limit = f" ({asked.budget:g} s)" if answer.is_overdue and not answer.is_document else ""
        return _inconclusive(asked, f"{answer}{limit}", "late" if answer.is_overdue else "undecided")
    found = answer.get("finding")
    if not isinstance(found, dict) or found.get("verdict") not in ("holds", "refuted", "inconclusive"):
        return _inconclusive(asked, "its worker's answer was not understood")
    assert asked.claim is not None
    if found["grade"] == "disagreement":
        LOG.warning("%s: %s\n%s\nseed %d", asked.stated.id, found["detail"], asked.stated.text, asked.seed)
    return Verdict(
        verdict=found["verdict"],
        grade=str(found["grade"]),
        detail=str(found["detail"]),
        engine=str(found["engine"]),
        witness=_pairs(found["witness"]),
        suggestions=tuple(map(str, found["suggestions"])),
        numbers=_pairs(found["numbers"]),
        link=int(found.get("link", 0)),
        where=str(found.get("where", "")),
        exact=str(found.get("exact", "")),
        is_undefined=bool(found.get("is_undefined", False)),
        seconds=float(answer.get("seconds", 0.0)),
        **_known(asked, tuple(sorted(answer.get("versions", {}).items()))),
    )


def _unasked(asked: _Asked) -> Verdict:
    """The verdict on what no engine is asked about."""
    if asked.place is None:
        return _inconclusive(asked, asked.reason)
    line, column = asked.place
    where = f"{asked.stated.file}:{line}:{column}" if asked.stated.file else f"line {line}, column {column}"
    detail = f"{where}: {asked.reason}"
    known = _known(asked, ())
    return Verdict(verdict="malformed", grade="", detail=detail, place=asked.place, nearest=asked.nearest, **known)


def _inconclusive(asked: _Asked, reason: str, grade: str = "undecided") -> Verdict:
    return Verdict(verdict="inconclusive", grade=grade, detail=reason, **_known(asked, ()))


def _known(asked: _Asked, versions: tuple[tuple[str, str], ...]) -> dict[str, Any]:
    """What a verdict says of its claim, whatever was found."""
    claim = asked.claim
    here = (("likewise", likewise.__version__), ("python", platform.python_version()))
    return {
        "id": asked.stated.id,
        "statement": claim.statement if claim else "",
        "assumptions": tuple(map(str, claim.assumptions)) if claim else (),
        "expect": claim.expect if claim else _expected(asked.stated.text),
        "revises": claim.revises if claim else None,
        "line": asked.stated.line,
        "seed": asked.seed,
        "budget": asked.budget,
        "versions": here + versions,
    }


def _expected(text: str) -> Any:
    """What an unparsed claim expects: a statement that cannot be read may be kept on purpose, as malformed."""
    wanted = [line.partition(":")[2].strip() for line in text.splitlines() if line.strip().startswith("expect:")]
    return wanted[0] if len(wanted) == 1 and wanted[0] in CHOICES["expect"] else None


def _pairs(found: Any) -> tuple[tuple[str, str], ...]:
    return tuple((str(name), str(value)) for name, value in found)
