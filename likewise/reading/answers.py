"""An answer with its statements: read, and checked place by place.

Refuted is said only if every name of the claim has a binding that is shown and no stated condition about its names was
left out. Everything else that is not proved is inconclusive, with the reason.
"""

import math
import threading
import time
from collections import Counter
from collections.abc import Mapping, MutableMapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from likewise.checks import require
from likewise.claims.checking import check_claims
from likewise.claims.language.limits import DOCUMENT
from likewise.claims.language.parser import parse
from likewise.claims.language.tokens import Unbounded, Unparsed
from likewise.claims.stated import ClaimSource
from likewise.claims.verdict import SCHEMA, Undecided, Verdict
from likewise.progress import Progress, silent
from likewise.reading.code import Found, einsums
from likewise.reading.corrections import Correction, with_roles
from likewise.reading.expressions import Node, value
from likewise.reading.findings import Part, Statement, parts_of, related
from likewise.reading.link import CONDITION, DEFINED, EQUATION, Reading
from likewise.reading.links import defines, readings
from likewise.reading.orders import costed
from likewise.reading.rows import conventions
from likewise.reading.scope import Binding, Scope, heads, scope_of
from likewise.reading.segments import Turn, corrected, formulas
from likewise.reading.statements import Said, is_range, parsed, statements

BUDGET = 2.0  # seconds for one claim
COUNTED = 10.0  # for a claim about a program, whose first one waits for torch
SHORT = 0.5  # for a claim between numbers whose refutation would not count: it is asked for a proof only
UNKNOWN = "unknown"


@dataclass(frozen=True)
class Answer:
    """A text with its turns and statements."""

    turns: tuple[Turn, ...]
    statements: tuple[Statement, ...]
    formulas: int  # all of them, with and without a relation
    unread: tuple[tuple[int, int, str], ...] = ()  # line, column and reason of formulas that are no LaTeX
    parts: tuple[Part, ...] = ()  # lettered parts of the question, with the lines that answer them

    @property
    def counts(self) -> dict[str, int]:
        """How many statements there are, and how many of them were understood, became claims and were decided."""
        said = [each for each in self.statements if each.relation]
        return {
            "formulas": self.formulas,
            "statements": len(said) + len(self.unread),
            "understood": sum(each.understood for each in said),
            "claims": sum(bool(each.claim) for each in said),
            "decided": sum(each.decided for each in said),
            "holds": sum(each.verdict == "holds" for each in said),
            "refuted": sum(each.verdict == "refuted" for each in said),
        }

    @property
    def refused(self) -> dict[str, int]:
        """Why statements were not read, and how often, the most frequent first."""
        reasons = Counter(each.refusal for each in self.statements if each.relation and not each.understood)
        reasons.update(reason for _, _, reason in self.unread)
        return dict(reasons.most_common())

    def as_claims(self, file: str = "") -> list[tuple[ClaimSource, Verdict]]:
        """Statements with a verdict as claims of a file, at their place, for SARIF and tests."""
        found = []
        for number, each in enumerate(self.statements):
            if each.verdict is not None:
                stated = ClaimSource(f"formula-{number}", each.claim, each.line, file, column=each.column)
                place = (each.line, each.column)
                detail = "; ".join([each.detail, *each.findings])
                found.append((stated, replace(each.shown, id=stated.id, detail=detail, line=each.line, place=place)))
        return found

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        listed = [each.to_json() for each in self.statements if each.relation]
        parts = [asdict(part) for part in self.parts]
        return {"schema": SCHEMA, "counts": self.counts, "refused": self.refused, "statements": listed, "parts": parts}


def read_answer(
    text: str, *, speaker: str = UNKNOWN, turns: Sequence[Turn] = (), corrections: Sequence[Correction] = ()
) -> Answer:
    r"""Read the formulas of an answer as claims, and check nothing.

    speaker: who speaks, where `turns` does not say. Formulas of a user are givens; an annotator's are not read.
    corrections: what a person says about roles, types and programs; it overrules the text.

    >>> print(read_answer("So $2 + 2 = 5$.").statements[0].claim)
    assert: 2 + 2 == 5
    """
    require(len(text) <= DOCUMENT, "read_answer", "text", f"have at most {DOCUMENT:,} characters", len(text))
    spoken = corrected(text, tuple(turns) or (Turn(speaker, 1, text.count("\n") + 1),))
    found = formulas(text, spoken)
    heard = [each for each in found if spoken[each.turn].speaker != "annotator"]
    said, unread = statements(heard)
    called = heads(said)
    said = with_roles([parsed(each, called) for each in said], corrections)
    scope = scope_of(said, called, corrections, conventions(text, spoken))
    scope.lines, scope.turns = tuple(text.split("\n")), spoken
    made = [_statement(each, scope, said, spoken) for each in said]
    made += [_coded(each, spoken) for each in einsums(text, spoken)]
    places = tuple((heard[place].line, heard[place].column, reason) for place, reason in unread.items())
    return Answer(spoken, tuple(made), len(found), places, parts_of(text, spoken))


def check_answer(
    text: str,
    *,
    speaker: str = UNKNOWN,
    turns: Sequence[Turn] = (),
    corrections: Sequence[Correction] = (),
    seed: int = 0,
    budget: float = BUDGET,
    progress: Progress = silent,
    seconds: float = math.inf,
    gone: threading.Event | None = None,
) -> Answer:
    r"""Read the formulas of an answer and decide what they say.

    >>> found = check_answer("We have $3 \\times 4 = 12$ apples, so $12 + 5 = 18$ in all.").statements
    >>> [(each.line, each.column, each.verdict) for each in found]
    [(1, 10, 'holds'), (1, 39, 'refuted')]
    """
    answer = read_answer(text, speaker=speaker, turns=turns, corrections=corrections)
    return check_answers([answer], seed=seed, budget=budget, progress=progress, seconds=seconds, gone=gone)[0]


def check_answers(
    answers: Sequence[Answer],
    *,
    seed: int = 0,
    budget: float = BUDGET,
    progress: Progress = silent,
    seconds: float = math.inf,
    gone: threading.Event | None = None,
    known: MutableMapping[str, Verdict] | None = None,
) -> list[Answer]:
    """Decide the statements of several answers at once; equal claims are asked about once.

    known: verdicts by claim, taken from and added to; a text that is read again asks only about what changed.
    """
    read = [reading for answer in answers for statement in answer.statements for reading in statement.readings]
    texts = dict.fromkeys(claim for reading in read for claim in reading.claims)
    plain = dict.fromkeys(claim for reading in read if reading.plain for claim in reading.claims)
    verdicts = {} if known is None else known
    for claim in plain:
        if claim not in verdicts and (verdict := numbers(claim, budget)) is not None:
            verdicts[claim] = verdict
    until = time.monotonic() + seconds
    firm = {claim for reading in read if not reading.open for claim in asked_of(reading)}
    patience = {
        claim: max(budget, COUNTED)
        if claim.startswith("of:")
        else budget
        if claim in firm or "R^" in claim
        else min(budget, SHORT)
        for reading in read
        for claim in asked_of(reading)
    }
    for _ in range(2):
        for seconds_each in sorted(set(patience.values())):
            asked = [claim for claim in texts if claim not in verdicts and patience[claim] == seconds_each]
            stated = [ClaimSource(f"r{number}", claim) for number, claim in enumerate(asked)]
            left = max(0.0, until - time.monotonic())
            found = check_claims(stated, seed=seed, budget=seconds_each, progress=progress, seconds=left, gone=gone)
            verdicts.update(dict(zip(asked, found, strict=True)))
        texts = dict.fromkeys(  # what would be refuted is asked again under conditions that may be meant
            claim
            for reading in read
            if reading.also and not reading.open and all(verdicts[each].verdict == "refuted" for each in reading.claims)
            for claim in reading.also
        )
        texts |= dict.fromkeys(  # and what has no value somewhere, where no denominator is 0
            claim
            for reading in read
            if reading.defined and any(undefined(verdicts[each]) for each in reading.claims)
            for claim in reading.defined
        )
    return [
        replace(answer, statements=related([_judged(each, verdicts) for each in answer.statements]))
        for answer in answers
    ]


def asked_of(reading: Reading) -> tuple[str, ...]:
    """All claims that may be asked for a reading."""
    return (*reading.claims, *reading.also, *reading.defined)


def undefined(verdict: Verdict) -> bool:
    """Whether a claim is refuted only by having no value somewhere."""
    return verdict.verdict == "refuted" and verdict.is_undefined


def _where_defined(reading: Reading, verdicts: Mapping[str, Verdict]) -> list[Verdict]:
    """The verdicts on the claims of a reading; on those without a value somewhere, the verdicts where they have one."""
    found = [verdicts[claim] for claim in reading.claims]
    if reading.defined and any(map(undefined, found)) and all(claim in verdicts for claim in reading.defined):
        return [verdicts[claim] for claim in reading.defined]
    return found


def numbers(claim: str, budget: float) -> Verdict | None:
    """The verdict on a claim between fractions, by the same engines and judge without a worker process."""
    from likewise.claims.engines import decide

    try:
        parsed = parse(claim, id="claim")
        found = decide(replace(parsed, seed=0, budget=budget))
    except (Unparsed, Unbounded, Undecided):
        return None
    if found.engine != "arithmetic":
        return None
    return Verdict(
        "claim",
        found.verdict,
        found.grade,
        found.detail,
        engine=found.engine,
        witness=found.witness,
        statement=parsed.statement,
        numbers=found.numbers,
        budget=budget,
    )


def _statement(said: Said, scope: Scope, all_said: Sequence[Said], turns: tuple[Turn, ...]) -> Statement:
    speaker = turns[said.formula.turn].speaker
    place = (said.formula.line, said.formula.column, said.formula.source)
    if not said.relations:
        cost = costed(said, scope) if speaker != "user" else None
        if cost is None:
            return Statement(*place, "term", speaker, relation=False)
        if said.read_as and said.role != "assertion":  # a person says that it is none
            return Statement(*place, said.role, speaker)
        bound, claim = tuple(map(str, cost.bindings)), _printed(cost.claims[0])
        return Statement(*place, "assertion", speaker, claim, bound, readings=(cost,))
    role = "given" if speaker == "user" else said.role
    if is_range(said):
        return Statement(*place, "declaration", speaker)
    if role in ("given", "hypothesis", "question"):
        return Statement(*place, role, speaker)
    found = readings(said, scope, all_said[: said.number])
    claims = [reading for reading in found if reading.claims]
    bindings = dict.fromkeys(str(binding) for reading in claims for binding in reading.bindings)
    equation = any(each.refusal in (EQUATION, CONDITION) for each in found)
    refusal = (
        "" if claims or equation or _kept(said, scope) else next((each.refusal for each in found if each.refusal), "")
    )
    shown = "\n\n".join(_printed(reading.claims[0]) for reading in claims)
    if defines(said, scope) and role == "assertion":
        role = "definition"
    first, last = said.nodes[0], said.nodes[-1]
    named = isinstance(first, Node) and first.kind in ("name", "call") and said.relations[0] == "=="
    plain = named and isinstance(last, Node) and set(said.relations) == {"=="} and not said.hedged
    return Statement(
        *place,
        role,
        speaker,
        shown,
        tuple(bindings),
        refusal=refusal,
        readings=tuple(found),
        head=first.text if named and isinstance(first, Node) else "",
        worth=value(last) if plain and isinstance(last, Node) else None,
        follows=said.number - 1 if said.continued or said.led else -1,
        place=(said.formula.section, said.formula.turn),
    )


def _coded(found: Found, turns: tuple[Turn, ...]) -> Statement:
    """A call in code as a statement about shapes."""
    bindings = tuple(
        Binding(name, "type", -1, line, 0, found.turn, text=f"of shape {axes}") for name, axes, line in found.shapes
    )
    speaker = turns[found.turn].speaker if turns else UNKNOWN
    reading = Reading(1, (found.claim,), bindings=bindings)
    shown = tuple(map(str, bindings))
    return Statement(
        found.line, found.column, found.source, "assertion", speaker, found.claim, shown, readings=(reading,)
    )


def _printed(claim: str) -> str:
    """The claim as its language prints it, without needless parentheses."""
    try:
        return parse(claim, id="claim").statement.replace(" | ", "\n")
    except (Unparsed, Unbounded):
        return claim


def _kept(said: Said, scope: Scope) -> bool:
    """Whether a statement has its place among the bindings and conditions."""
    if defines(said, scope):
        return True
    first = said.nodes[0]
    read = all(isinstance(node, Node) for node in said.nodes)
    if read and isinstance(first, Node) and first.kind in ("name", "index") and said.relations[0] in ("==", ":="):
        return True  # it says what a name stands for, in a form that no claim needs
    return any(condition.number == said.number and condition.sides is not None for condition in scope.conditions)


def _judged(statement: Statement, verdicts: Mapping[str, Verdict]) -> Statement:
    asked = [reading for reading in statement.readings if reading.claims]
    if not asked:
        return statement
    links = [
        _link(
            reading,
            _where_defined(reading, verdicts),
            [verdicts[claim] for claim in reading.also if claim in verdicts],
        )
        for reading in asked
    ]
    worst = next(
        (
            (verdict, reading)
            for name in ("refuted", "inconclusive", "holds")
            for verdict, reading in zip(links, asked, strict=True)
            if verdict.verdict == name
        ),
    )
    verdict, reading = worst
    detail = verdict.detail
    unread = [
        each.refusal
        for each in statement.readings
        if each.refusal and not each.claims and not (each.link == 1 and each.refusal in (EQUATION, CONDITION, DEFINED))
    ]
    if verdict.verdict == "holds" and unread:  # a chain holds only if all of its links do
        detail = f"{len(links)} of {len(links) + len(unread)} links hold, one was not read: {unread[0]}"
        return replace(statement, verdict="inconclusive", grade="undecided", detail=detail, verdicts=tuple(links))
    if reading.notes and reading.notes[-1].startswith(("put back", "needed in")):
        detail = f"{detail} ({reading.notes[-1]})"
    return replace(
        statement,
        verdict=verdict.verdict,
        grade=verdict.grade,
        detail=detail,
        witness=verdict.witness,
        verdicts=tuple(links),
    )


def _link(reading: Reading, found: list[Verdict], also: list[Verdict]) -> Verdict:
    """The verdict on one link: its readings must agree, and a refutation needs every name bound."""
    first = found[0]
    names = {each.verdict for each in found}
    if reading.either and "holds" in names:
        return next(each for each in found if each.verdict == "holds")
    if "malformed" in names:
        return replace(
            first, verdict="inconclusive", grade="undecided", detail=f"not a claim: {first.detail}", place=None
        )
    if names == {"holds", "refuted"} or len(names) > 1:
        detail = "two readings: " + "; or ".join(f"{each.verdict}, {each.detail}" for each in found)
        return replace(first, verdict="inconclusive", grade="undecided", detail=detail)
    if first.verdict == "refuted" and first.is_undefined:
        return replace(first, verdict="inconclusive", grade="undecided", detail=f"no real number: {first.detail}")
    if first.verdict == "refuted" and reading.open:
        detail = f"refuted as it stands, but {'; '.join(reading.open)}: {first.detail}"
        return replace(first, verdict="inconclusive", grade="undecided", detail=detail)
    if first.verdict == "refuted" and any(each.verdict != "refuted" for each in also):
        detail = f"refuted as it stands, but not shown to be under conditions that may be meant: {first.detail}"
        return replace(first, verdict="inconclusive", grade="undecided", detail=detail)
    return found[-1] if first.verdict == "refuted" else first
