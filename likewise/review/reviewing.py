"""An answer, what running it says, and a person's marks, compared: the values that pages, JSON and text show."""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from likewise.checks import require_choice
from likewise.claims.checking import check_claims
from likewise.claims.documents import markdown_claims
from likewise.claims.stated import UNNOTICED, ClaimSource
from likewise.claims.verdict import SCHEMA, Verdict
from likewise.progress import Progress, parts, silent
from likewise.reading.answers import BUDGET, Answer, check_answers, read_answer
from likewise.reading.corrections import Correction
from likewise.reading.findings import Statement as Said
from likewise.reading.opening import Opened
from likewise.reading.speakers import headed, speaker_of
from likewise.review.doubt import CHANGES, WORDS, ChangeName, Doubt, doubts
from likewise.review.gist import gist
from likewise.review.marks import Mark, Place, Points, placed, to_json_lines, to_markdown
from likewise.review.nearest import with_nearest
from likewise.review.rubric import Rubric, asked_for, rows_of_parts
from likewise.review.setting import Formula, Row, escaped, find_formulas, set_rows
from likewise.review.statements import Binding, Link, Statement, Turn

BINDING = re.compile(r"(?P<name>[^:]+): (?P<meaning>.*), line (?P<line>\d+)", re.DOTALL)
COUNTED = ("statements", "understood", "decided", "holds", "refuted", "searched", "undecided", "malformed", "unread")
COUNTED += ("unchecked", "noticed", "unnoticed")
QUOTED = 160  # characters of a line that binds a name
TITLE = re.compile(r"#{1,2}\s+(.*\S)")
FINDING = re.compile(r"(?P<kind>contradicts|follows from) line (?P<line>\d+)")


@dataclass(frozen=True)
class Disagreement:
    """A place where the person and the run differ."""

    line: int
    column: int
    mark: str
    found: str
    source: str
    words: str

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return dict(vars(self))


@dataclass(frozen=True)
class Counts:
    """Counts over the statements of a turn, of a speaker or of the whole answer."""

    statements: int
    understood: int
    decided: int
    holds: int
    refuted: int
    searched: int
    undecided: int
    malformed: int
    unread: int
    unchecked: int  # read, but no claim: mostly an equation whose names nothing binds
    noticed: int  # refuted, and the person marked it wrong
    unnoticed: int
    repaired: int  # refuted before a doubt and held after it; counted where it was repaired
    broken: int  # held before a doubt and refuted after it
    first_error: int | None  # line
    marks: Mapping[str, int]

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return {**vars(self), "marks": dict(self.marks)}


@dataclass(frozen=True)
class Summary:
    """Counts of the whole, of each turn, part, topic and author, and the same in plain words."""

    whole: Counts
    turns: tuple[Counts, ...]
    parts: Mapping[str, Counts]  # of the rubric
    topics: Mapping[str, Counts]  # of the rubric, or the headings of the answer
    authors: Mapping[str, Counts]  # by the `who` of claims
    unanswered: tuple[str, ...]  # parts
    given: float | None  # points, None if no part has any
    possible: float  # points of the rubric
    ungraded: int  # parts without points
    doubts: Mapping[str, int]  # statements by how they changed after a doubt
    found: str  # what the run found, in plain words
    marked: str  # what the person marked
    asked: str  # what became of doubts, of the parts of the question and of lost marks

    @property
    def words(self) -> str:
        """A text to copy into a report."""
        return " ".join(words for words in (self.found, self.marked, self.asked) if words)

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return {
            **self.whole.to_json(),
            "turns": [counts.to_json() for counts in self.turns],
            "parts": {name: counts.to_json() for name, counts in self.parts.items()},
            "topics": {name: counts.to_json() for name, counts in self.topics.items()},
            "who": {who: counts.to_json() for who, counts in self.authors.items()},
            "unanswered": list(self.unanswered),
            "points": {"given": self.given, "possible": self.possible, "ungraded": self.ungraded},
            "after_doubt": dict(self.doubts),
            "words": self.words,
        }


@dataclass(frozen=True)
class Review:
    """A checked answer with a person's marks."""

    name: str
    text: str = field(repr=False)
    turns: tuple[Turn, ...]
    statements: tuple[Statement, ...]
    marks: tuple[Mark, ...] = ()
    lost: tuple[Mark, ...] = ()  # marks whose passage is no longer in the text
    rows: tuple[Row, ...] = field(default=(), repr=False)
    formulas: tuple[Formula, ...] = field(default=(), repr=False)
    doubts: tuple[Doubt, ...] = field(default=(), repr=False)
    rubric: Rubric | None = None
    points: tuple[Points, ...] = ()
    answer: Answer | None = field(default=None, repr=False)  # its formulas as they were read
    corrections: tuple[Correction, ...] = ()  # of readings, by the person
    known: dict[str, Verdict] = field(default_factory=dict, repr=False, compare=False)  # by claim, to read it again
    nearest: dict[str, str] = field(
        default_factory=dict, repr=False, compare=False
    )  # true statements, by refuted claim

    @cached_property
    def parts(self) -> dict[str, list[Row]]:
        """The rows that answer each part of the rubric."""
        found = rows_of_parts(self.rubric, self.rows, self.turns) if self.rubric else {}
        for part in self.answer.parts if self.answer else ():  # one that begins within a passage
            row = self.row_of(part.answered)
            if row and found.get(f"({part.label})") == []:
                found[f"({part.label})"].append(row)
        return found

    @property
    def disagreements(self) -> tuple[Disagreement, ...]:
        """Places where the person says right and the run refutes, or the person says wrong and it holds."""
        return disagreements_of(self)

    @property
    def summary(self) -> Summary:
        """Counts and plain words."""
        return summary_of(self)

    def with_marks(self, marks: Sequence[Mark], points: Sequence[Points] | None = None) -> "Review":
        """The same review with other marks, each put where its source stands now; and with other points, if given."""
        found, lost = placed(marks, self.places)
        given = self.points if points is None else tuple(points)
        return replace(self, marks=tuple(found), lost=tuple(lost), points=given)

    @property
    def places(self) -> list[Place]:
        """All that can be marked."""
        rows = [Place(row.first, 0, row.source) for row in self.rows]
        return rows + [Place(each.line, each.column, each.source) for each in self.statements]

    def row_of(self, line: int) -> Row | None:
        """The row that holds a line."""
        return next((row for row in self.rows if row.first <= line <= row.last), None)

    def to_json(self) -> dict[str, Any]:
        """Plain data, as `--json` prints it."""
        return {
            "schema": SCHEMA,
            "name": self.name,
            "turns": [vars(turn) for turn in self.turns],
            "statements": [statement.to_json() for statement in self.statements],
            "marks": [mark.to_json() for mark in self.marks],
            "lost": [mark.to_json() for mark in self.lost],
            "points": [each.to_json() for each in self.points],
            "disagreements": [each.to_json() for each in self.disagreements],
            "doubts": [each.to_json() for each in self.doubts],
            "summary": self.summary.to_json(),
        }


def review(
    text: str | Opened,
    marks: Sequence[Mark] | None = None,
    rubric: Rubric | None = None,
    *,
    name: str = "",
    seed: int = 0,
    budget: float | None = None,
    allow_code: bool = False,
    progress: Progress = silent,
) -> Review:
    r"""Check an answer and compare the verdicts with a person's marks.

    text: the answer, or an `Opened` that says who speaks and corrects readings; without one, headings say who speaks.
    rubric: the parts of the question. `with_marks` adds points, `read_again` other corrections.

    >>> found = review("```claim sum\nassert: 1 + 1 == 3\n```\n", [Mark(1, 1, "right")])
    >>> found.statements[0].status.label, found.disagreements[0].words
    ('refuted', 'Marked right, but refuted: left 2, right 3.')
    """
    opened = text if isinstance(text, Opened) else Opened("answer", text, headed(text))
    name = name or opened.name
    fenced, formulas = parts(progress, 2)
    stated = markdown_claims(opened.text, file=name)
    verdicts = check_claims(stated, seed=seed, budget=budget, allow_code=allow_code, progress=fenced)
    known: dict[str, Verdict] = {}
    [answer] = check_answers([opened.read()], seed=seed, budget=budget or BUDGET, progress=formulas, known=known)
    found = review_of(opened.text, stated, verdicts, marks, name=name, answer=answer, rubric=rubric)
    return replace(found, corrections=opened.corrections, known=known)


def read_again(review: Review, corrections: Sequence[Correction], *, seed: int = 0, budget: float = BUDGET) -> Review:
    """The review with its formulas read under other corrections; only what these change is checked again."""
    turns = review.answer.turns if review.answer else ()
    answer = read_answer(review.text, turns=turns, corrections=corrections)
    [answer] = check_answers([answer], seed=seed, budget=budget, known=review.known)
    claims = [each for each in review.statements if each.id]
    found = _reviewed(review.name, review.text, claims, answer, review.rubric, review.nearest)
    found = replace(found, corrections=tuple(corrections), known=review.known)
    return found.with_marks((*review.marks, *review.lost), review.points)


def review_of(
    text: str,
    stated: Sequence[ClaimSource],
    verdicts: Sequence[Verdict],
    marks: Sequence[Mark] | None = None,
    *,
    name: str = "answer",
    answer: Answer | None = None,
    rubric: Rubric | None = None,
) -> Review:
    """The review of an answer whose claims were checked already; claims and verdicts in the same order.

    answer: its formulas, read and checked; without it only claim fences are statements.
    """
    return _reviewed(name, text, list(map(_claimed, stated, verdicts)), answer, rubric).with_marks(marks or ())


def _reviewed(
    name: str,
    text: str,
    claims: Sequence[Statement],
    answer: Answer | None,
    rubric: Rubric | None,
    nearest: dict[str, str] | None = None,
) -> Review:
    nearest = {} if nearest is None else nearest
    said = [*claims, *(_statements_of(answer, text) if answer else ())]
    ordered = _told_apart(sorted(said, key=lambda each: (each.line, each.column)))
    statements = tuple(with_nearest(list(ordered), nearest))
    formulas = tuple(find_formulas(text))
    last = max(1, text.count("\n") + 1)
    spoken = [(turn.speaker, turn.first, turn.last) for turn in answer.turns] if answer else []
    turns = tuple(Turn(who if who != "unknown" else "", *lines) for who, *lines in spoken) or (Turn("", 1, last),)
    starts = [turn.first for turn in turns]
    rows = tuple(set_rows(text, formulas, _references(statements), starts=starts))
    changed = tuple(doubts(text, turns, rows, statements))
    rubric = rubric or (asked_for(answer.parts) if answer else None)
    return Review(
        name,
        text,
        turns,
        statements,
        rows=rows,
        formulas=formulas,
        doubts=changed,
        rubric=rubric,
        answer=answer,
        nearest=nearest,
    )


def totals(stated: Sequence[ClaimSource], verdicts: Sequence[Verdict]) -> dict[str, Any]:
    """Counts over the claims of any files, in all and for each `who`; a refuted claim is noticed as its label says."""
    statements = tuple(map(_claimed, stated, verdicts))
    counted = summary_of(Review("", "", (), statements)).to_json()
    return {name: value for name, value in counted.items() if name in (*COUNTED, "who")}


def _claimed(claim: ClaimSource, verdict: Verdict) -> Statement:
    return Statement(
        line=claim.line,
        column=1,
        source=claim.text,
        claim=claim.text,
        verdict=verdict,
        labels=claim.labels,
        id=claim.id,
    )


def _statements_of(answer: Answer, text: str) -> Iterator[Statement]:
    """What a reader found in the formulas of an answer; a formula that only names a term says nothing to check."""
    lines = text.split("\n")
    for each in answer.statements:
        if each.relation:
            yield Statement(
                line=each.line,
                column=each.column,
                source=each.source,
                role=each.role,
                speaker=each.speaker,
                claim=each.claim,
                bindings=tuple(_binding(words, lines) for words in each.bindings),
                verdict=replace(each.shown, detail=each.detail) if each.verdict else None,
                links=tuple(link for finding in each.findings for link in [_link(finding)] if link),
                reason=each.refusal,
                note=_unclaimed(each),
            )
    for line, column, reason in answer.unread:
        yield Statement(line=line, column=column, source="", role="formula", reason=reason)


def _unclaimed(statement: Said) -> str:
    """Why an assertion became no claim, though it was read: mostly, that nothing binds its names."""
    if statement.claim or statement.refusal or statement.role != "assertion":
        return ""
    return next((reading.refusal for reading in statement.readings if reading.refusal), "")


def _binding(words: str, lines: Sequence[str]) -> Binding:
    """A binding from `name: meaning, line 7`, with the words of that line."""
    found = BINDING.fullmatch(words)
    if not found:
        return Binding(words, "")
    line = int(found["line"])
    source = " ".join(lines[line - 1].split())[:QUOTED] if 0 < line <= len(lines) else ""
    meaning = re.sub(r"R\^\((\w+)\)", r"R^\1", found["meaning"])
    return Binding(found["name"], meaning, line, source)


def _link(words: str) -> Link | None:
    """A finding from `contradicts line 7` or `follows from line 7`."""
    found = FINDING.match(words)
    return Link(found["kind"].split()[0], int(found["line"]), words) if found else None


def _told_apart(statements: Sequence[Statement]) -> Iterator[Statement]:
    """Statements of one formula begin in the same place; each is given its own column, so that it can be marked."""
    used: set[tuple[int, int]] = set()
    for statement in statements:
        column = statement.column
        while (statement.line, column) in used:
            column += 1
        used.add((statement.line, column))
        yield replace(statement, column=column)


def _references(statements: Sequence[Statement]) -> Callable[[Formula], str]:
    """Links from a formula to what was found about it."""
    by_line: dict[int, list[tuple[int, Statement]]] = {}
    for number, statement in enumerate(statements, start=1):
        by_line.setdefault(statement.line, []).append((number, statement))

    def beside(formula: Formula) -> str:
        links = ""
        for line in range(formula.line, formula.last + 1):
            for number, each in by_line.get(line, ()):
                if formula.holds(each.line, each.column):
                    status = each.status
                    links += (
                        f'<a class="ref s-{status.name}" href="#s{number}-read" '
                        f'aria-label="statement {number}: {escaped(status.label)}">{status.sign}\u202f{number}</a>'
                    )
        return f'<span class="refs">{links}</span>' if links else ""

    return beside


def disagreements_of(review: Review) -> tuple[Disagreement, ...]:
    """Statements on which person and run differ; a mark on a passage counts for its refuted statements, too."""
    own = {mark.key: mark for mark in review.marks}
    found = []
    for statement in review.statements:
        row = review.row_of(statement.line)
        mark = own.get(statement.key) or (own.get(row.key) if row and statement.refuted else None)
        if mark is None or statement.verdict is None:
            continue
        name = statement.verdict.verdict
        seen = gist(statement.verdict)
        detail = (seen.words if seen else statement.verdict.detail.split("; ")[0]).rstrip(".")
        if mark.mark in ("right", "praise") and name == "refuted":
            words = f"Marked {mark.mark}, but refuted: {detail}."
        elif mark.mark == "wrong" and name == "holds":
            words = f"Marked wrong, but it holds ({statement.verdict.grade}): {detail}."
        else:
            continue
        found.append(Disagreement(statement.line, statement.column, mark.mark, name, statement.source, words))
    return tuple(found)


def summary_of(review: Review) -> Summary:
    """Counts by turn and author, and a text to copy into a report."""
    whole = _counts(review, review.statements, review.marks)
    turns = tuple(
        _counts(
            review,
            [each for each in review.statements if turn.first <= each.line <= turn.last],
            [mark for mark in review.marks if turn.first <= mark.line <= turn.last],
        )
        for turn in review.turns
    )
    names = dict.fromkeys(each.labels["who"] for each in review.statements if each.labels.get("who"))
    authors = {
        who: _counts(review, [each for each in review.statements if each.labels.get("who") == who], ()) for who in names
    }
    graded = {each.part: each.points for each in review.points}
    rubric = review.rubric.parts if review.rubric else ()
    given = [graded[part.name] for part in rubric if part.name in graded]
    changes = Counter(change.kind for doubt in review.doubts for change in doubt.changes)
    return Summary(
        whole=whole,
        turns=turns,
        parts={name: _counts_in(review, rows) for name, rows in review.parts.items()},
        topics={name: _counts_in(review, rows) for name, rows in _topics(review).items()},
        authors=authors,
        unanswered=tuple(name for name, rows in review.parts.items() if not rows),
        given=sum(given) if given else None,
        possible=sum(part.points for part in rubric),
        ungraded=len(rubric) - len(given),
        doubts={name: changes[name] for name in CHANGES if changes[name]},
        found=_found(review, whole),
        marked=_marked(review, whole),
        asked=_asked(review, changes, given),
    )


def _counts_in(review: Review, rows: Sequence[Row]) -> Counts:
    """Counts over the statements and marks of some rows."""
    lines = {line for row in rows for line in range(row.first, row.last + 1)}
    statements = [each for each in review.statements if each.line in lines]
    return _counts(review, statements, [mark for mark in review.marks if mark.line in lines])


def _topics(review: Review) -> dict[str, list[Row]]:
    """The rows of each topic: those of a rubric, else those under each heading of the first two levels."""
    found: dict[str, list[Row]] = {}
    if review.rubric and review.rubric.topics:
        for part in review.rubric.parts:
            if part.topic:
                found.setdefault(part.topic, []).extend(review.parts[part.name])
        return found
    current = ""
    for row in review.rows:
        if row.kind == "heading" and (title := TITLE.match(row.source)):
            current = "" if speaker_of(row.source) else title[1].strip()[:80]
        elif current:
            found.setdefault(current, []).append(row)
    return found if len(found) > 1 else {}


def noticed(review: Review, statement: Statement) -> bool:
    """True if somebody saw that a statement is wrong: a mark on it or on its passage, or its `noticed:` label."""
    label = statement.labels.get("noticed", "")
    row = review.row_of(statement.line)
    keys = {statement.key, *([row.key] if row else [])}
    marked = any(mark.key in keys and mark.mark == "wrong" for mark in review.marks)
    return marked or (bool(label) and not label.startswith(UNNOTICED))


def _counts(review: Review, statements: Sequence[Statement], marks: Sequence[Mark]) -> Counts:
    names = Counter(each.verdict.verdict if each.verdict else "unread" if each.reason else "" for each in statements)
    refuted = [each for each in statements if each.refuted]
    seen = sum(noticed(review, each) for each in refuted)
    searched = sum(each.status.name == "searched" for each in statements)
    keys = {each.key for each in statements}
    changed = Counter(
        change.kind
        for doubt in review.doubts
        for change in doubt.changes
        if change.after is not None and change.after.key in keys
    )
    return Counts(
        statements=len(statements),
        understood=sum(bool(each.claim) or not each.reason for each in statements),
        decided=names["holds"] + names["refuted"],
        holds=names["holds"],
        refuted=names["refuted"],
        searched=searched,
        undecided=names["inconclusive"] - searched,
        malformed=names["malformed"],
        unread=names["unread"],
        unchecked=sum(bool(each.note) for each in statements),
        noticed=seen,
        unnoticed=len(refuted) - seen,
        repaired=changed["repaired"],
        broken=changed["broken"],
        first_error=min((each.line for each in refuted), default=None),
        marks=dict(Counter(mark.mark for mark in marks)),
    )


def _found(review: Review, counts: Counts) -> str:
    """What the run found, in plain words."""
    if not counts.statements:
        return f"{review.name}: nothing in it could be checked."
    said = _some(counts.statements, "statement")
    hold = f"{counts.holds} {'holds' if counts.holds == 1 else 'hold'}"
    wrong = f"{counts.refuted} {'is' if counts.refuted == 1 else 'are'} refuted"
    first = f", the first on line {counts.first_error}" if counts.first_error else ""
    still = [
        f"{count} {words}"
        for count, words in (
            (counts.searched, "with no counterexample found"),
            (counts.undecided, "undecided"),
            (counts.malformed, "malformed"),
            (counts.unread, "not read"),
            (counts.unchecked, "not checked"),
        )
        if count
    ]
    rest = f" Open: {', '.join(still)}." if still else ""
    understood = f"{counts.understood} understood, {counts.decided} decided"
    return f"{review.name}: {said}, {understood}. {hold}, {wrong}{first}.{rest}"


def _marked(review: Review, counts: Counts) -> str:
    """What the person marked, in plain words."""
    found = []
    if review.marks:
        given = ", ".join(f"{count} {name}" for name, count in counts.marks.items())
        found.append(f"Marks: {given}; on {_some(len(review.disagreements), 'statement')} person and run differ.")
    if counts.refuted and (review.marks or any("noticed" in each.labels for each in review.statements)):
        found.append(f"Of the refuted, {counts.noticed} noticed, {counts.unnoticed} by nobody.")
    return " ".join(found)


def _asked(review: Review, changes: Counter[ChangeName], given: Sequence[float]) -> str:
    """What became of doubts, of the parts of the question and of lost marks, in plain words."""
    found = []
    if review.doubts:
        said = (
            ", ".join(f"{changes[name]} {WORDS[name]}" for name in CHANGES if changes[name])
            or "no statement to compare"
        )
        found.append(f"After {_some(len(review.doubts), 'doubt')}: {said}.")
    if review.rubric:
        missing = [name for name, rows in review.parts.items() if not rows]
        if missing:
            found.append(f"Not answered: {', '.join(missing)}.")
        if given:
            left = len(review.rubric.parts) - len(given)
            open_ = f", {_some(left, 'part')} without points" if left else ""
            found.append(f"Points: {sum(given):g} of {review.rubric.points:g}{open_}.")
    if review.lost:
        found.append(f"{_some(len(review.lost), 'mark')} could not be placed: the passage was changed.")
    return " ".join(found)


def _some(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


def export_marks(review: Review, suffix: str) -> str:
    """The marks of a review as .json, .md, or .jsonl (one line for each turn, as step-labelled data sets have it)."""
    require_choice("marks", "file", suffix, (".json", ".jsonl", ".md"))
    if suffix == ".md":
        return to_markdown(review.marks, review.name)
    if suffix == ".json":
        return json.dumps({"schema": SCHEMA, "marks": [mark.to_json() for mark in review.marks]}, indent=1) + "\n"
    lines = []
    for number, turn in enumerate(review.turns, start=1):
        steps = [(row.first, row.last, row.source) for row in review.rows if turn.first <= row.first <= turn.last]
        marks = [mark for mark in review.marks if turn.first <= mark.line <= turn.last]
        lines.append(to_json_lines(marks, steps, id=f"{review.name}#{number}", generator=turn.speaker))
    return "".join(lines)
