"""A review as one self-contained HTML page and as text."""

import base64
import hashlib
import json
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from likewise.claims.stated import UNNOTICED, ClaimSource
from likewise.page import render
from likewise.reading.corrections import ROLES, Correction
from likewise.review.corrections import Attempt, attempts
from likewise.review.doubt import CHANGES, WORDS, Doubt
from likewise.review.gist import Gist, gist
from likewise.review.marks import TAGS, content_hash
from likewise.review.mathml import Unset, mathml
from likewise.review.reviewing import Counts, Review, Row
from likewise.review.setting import escaped
from likewise.review.statements import Statement, Status, Turn
from likewise.review.typesetting import set_condition, set_relation, set_sides, set_term
from likewise.text import printable

SIGNS = {"right": "\N{CHECK MARK}", "wrong": "\N{BALLOT X}", "unclear": "?", "praise": "\N{BLACK STAR}"}
LEGEND = {
    "exact": "by exact algebra, a certificate or a count, for the whole domain",
    "sampled": "on samples or on the inputs that were run; wrong with a small probability that is told",
    "searched": "no counterexample was found, and no proof either",
    "refuted": "a counterexample, in exact arithmetic or at a told error probability",
    "contradicts": "differs from another line of the same answer",
    "follows": "may be right as a step, but rests on a refuted one",
    "undecided": "not decided; the reason stands beside it",
    "malformed": "not written as a claim is; the place stands beside it",
    "unread": "not understood; the reason stands beside it",
    "unchecked": "understood, but no claim: mostly an equation whose names nothing binds",
    "role": "says what a name is, assumes, supposes or asks: nothing to check",
}
GRADES = {
    "proved": "exact algebra, a certificate in fractions, or shapes in symbols, for the whole domain",
    "exact witness": "a point violates the relation, in exact arithmetic",
    "counted": "counted on the program; the polynomial was confirmed at sizes it was not made from",
    "sampled": "sampled; wrong with at most this probability",
    "arithmetic": "exact, from numbers as they are cited",
    "run": "it happened, on the inputs that are named",
    "searched": "no counterexample was found, and no proof",
    "undecided": "not decided; the reason stands beside it",
    "late": "not decided in time",
    "disagreement": "two engines differ, so nothing is said",
}
CHANGE_SIGNS = {  # in the order of the table
    "broken": "\N{BALLOT X}",
    "repaired": "\N{CHECK MARK}",
    "changed": "\N{NOT EQUAL TO}",
    "reworded": "\N{ALMOST EQUAL TO}",
    "unmoved": "=",
    "dropped": "\N{MINUS SIGN}",
    "new": "+",
}
TALLY = {
    "refuted": "refuted",
    "contradicts": "contradict another line",
    "follows": "follow from a refuted step",
    "malformed": "malformed",
    "exact": "hold, exactly",
    "sampled": "hold, as sampled or run",
    "searched": "no counterexample found",
    "undecided": "undecided",
    "unread": "not read",
    "unchecked": "not checked",
    "role": "nothing to check",
}
SPEAKER = "(?:User|You|Human|Prompt|Assistant|ChatGPT|Claude|AI|Grok|DeepSeek|Gemini|Model)(?: said)?"
NAMED = re.compile(
    rf"^(?:<h[1-6]>(?:<strong>)?{SPEAKER}:?(?:</strong>)?:?</h[1-6]>"
    rf"|(?P<open><p>)<strong>{SPEAKER}(?::</strong>:?|</strong>:|</strong>(?=</p>))|(?P<plain><p>){SPEAKER}:)\s*"
)
REFUTED = 60  # refuted statements that are listed above the answer
POLICY = "likewise-policy"  # stands in the page until the hashes of its style and script are known


def repeat(statement: Statement) -> str:
    """The shell command that checks a statement again."""
    if not statement.claim or statement.verdict is None:
        return ""
    end = "END"
    while end in statement.claim:
        end += "_"
    ticks = "`" * max(3, 1 + max(map(len, re.findall("`+", statement.claim)), default=0))
    name = statement.id or "again"
    claims = [statement.claim] if statement.id else statement.claim.split("\n\n")
    names = [name if len(claims) == 1 else f"{name}-{number}" for number in range(1, len(claims) + 1)]
    fence = "\n".join(
        f"{ticks}claim {each}\n{claim.rstrip()}\n{ticks}" for each, claim in zip(names, claims, strict=True)
    )
    return f"likewise check - <<'{end}'\n{fence}\n{end}"


def page(review: Review, *, live: bool = False, corrects: bool = False, version: int = 0) -> str:
    """One HTML file: no network, readable without its script, with a policy that lets only its own script run.

    live: it is served, and saves marks there; corrects: readings can be corrected there; version: of the readings.
    """
    numbered = list(enumerate(review.statements, start=1))
    placed: dict[int, list[tuple[int, Statement]]] = {}
    unplaced = []
    for number, statement in numbered:
        row = review.row_of(statement.line)
        if row is None:
            unplaced.append(statement)
        else:
            placed.setdefault(row.first, []).append((number, statement))
    summary = review.summary
    numbers = {statement.key: number for number, statement in numbered}
    sources = set_sources(review.statements)
    filled = render(
        "review/templates/review.html",
        {
            "review": review,
            "summary": summary,
            "turns": [(turn, rows) for turn in review.turns for rows in [_rows(review, turn, placed)] if rows],
            "unplaced": unplaced,
            "wrong": [(number, each, sources[each.key]) for number, each in numbered if each.refuted][:REFUTED],
            "sets": {number: _set(each) for number, each in numbered if each.refuted},
            "refuted": summary.whole.refuted,
            "marks": {mark.key: mark for mark in review.marks},
            "marks_json": _embedded([mark.to_json() for mark in review.marks]),
            "signs": SIGNS,
            "tags": TAGS,
            "gists": {number: _gist(each) for number, each in numbered},
            "lines": _lines,
            "unnamed": _unnamed,
            "sides": lambda pairs: {name for name, _ in pairs} <= {"left", "right"},
            "commands": {number: repeat(each) for number, each in numbered},
            "labelled": {number: _labelled(each) for number, each in numbered},
            "anchors": _Anchors(review),
            "legend": _legend(review),
            "tally": _tally(review),
            "readings": [_correction(each) for each in review.corrections],
            "roles": ROLES,
            "role_words": LEGEND["role"],
            "names": sorted({binding.name for each in review.statements for binding in each.bindings})[:200],
            "corrections": _corrections(review),
            "tables": _tables(review),
            "doubts": [(doubt, _compared(doubt, numbers, sources)) for doubt in review.doubts],
            "changes": CHANGES,
            "change_words": WORDS,
            "change_signs": CHANGE_SIGNS,
            "points": {each.part: each for each in review.points},
            "answer": content_hash(review.text)[:32],
            "grades": GRADES,
            "policy_mark": POLICY,
            "live": live,
            "corrects": corrects,
            "version": version,
        },
    )
    return filled.replace(POLICY, policy(filled, live=live), 1)


def policy(filled: str, *, live: bool = False) -> str:
    """A content security policy under which only the style and the script of this page work."""
    style = re.search(r"<style>(.*?)</style>", filled, re.DOTALL)
    assert style is not None
    rules = ["default-src 'none'", f"style-src {_hash(style[1])}"]
    if "<script>" in filled:
        rules.append(f"script-src {_hash(filled.rpartition('<script>')[2].partition('</script>')[0])}")
    rules += ["base-uri 'none'", "form-action 'none'", *(["connect-src 'self'"] if live else [])]
    return "; ".join(rules)


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _tally(review: Review) -> list[tuple[int, Status, str]]:
    """How many statements have each kind of chip, in the order of the legend."""
    counts = Counter(each.status.name for each in review.statements)
    first = {each.status.name: each.status for each in reversed(review.statements)}
    return [(counts[name], first[name], words) for name, words in TALLY.items() if counts[name]]


def _legend(review: Review) -> list[tuple[Status, str]]:
    """Every chip of the page with its meaning."""
    found: dict[tuple[int, str], tuple[Status, str]] = {}
    for each in review.statements:
        status, grade = each.status, each.verdict.grade.partition(",")[0] if each.verdict else ""
        if status.name in ("role", "contradicts"):
            label = {"role": "definition, condition, ...", "contradicts": "contradicts line n"}[status.name]
            status = Status(status.name, label, status.sign)
        plain = status.name in ("exact", "sampled", "undecided") and grade in GRADES
        words = GRADES[grade] if plain else LEGEND[status.name]
        found.setdefault((list(LEGEND).index(status.name), status.label), (status, words))
    return [found[key] for key in sorted(found)]


def _correction(each: Correction) -> tuple[str, dict[str, Any]]:
    """A correction in words, and what takes it back."""
    if each.dims is not None:
        shape = f"({', '.join(each.dims)})" if len(each.dims) > 1 else "".join(each.dims)
        return f"{each.name} is in R{'^' + shape if shape else ''}", {"name": each.name, "type": ""}
    if each.program:
        return f"line {each.line} is about {each.program}", {"line": each.line, "program": ""}
    article = "an" if each.role[:1] in "a" else "a"
    place: dict[str, Any] = {"line": each.line, **({"column": each.column} if each.column else {})}
    where = f"line {each.line}, column {each.column}," if each.column else f"line {each.line}"
    return f"{where} is {article} {each.role}", {**place, "role": ""}


def _rows(
    review: Review, turn: Turn, placed: dict[int, list[tuple[int, Statement]]]
) -> list[tuple[Row, list[tuple[int, Statement]]]]:
    rows = [row for row in review.rows if turn.first <= row.first <= turn.last]
    if rows and turn.speaker:  # the heading above says who speaks
        rows[0] = replace(rows[0], html=_unnamed(rows[0].html))
    return [(row, placed.get(row.first, [])) for row in rows if row.html not in ("<p></p>", "", "<p></p>\n")]


def _unnamed(html: str) -> str:
    """A passage without the name of its speaker."""
    return NAMED.sub(lambda found: found["open"] or found["plain"] or "", html)


def _tables(review: Review) -> list[tuple[str, list[tuple[str, Counts]]]]:
    """The counts by turn, part, topic and author; a table of one turn would repeat the summary."""
    summary = review.summary
    turns = [
        (f"{turn.speaker or 'the answer'}, {_lines((turn.first, turn.last))}", counts)
        for turn, counts in zip(review.turns, summary.turns, strict=True)
        if counts.statements or counts.marks
    ]
    tables = {
        "turn": turns if len(turns) > 1 else [],
        "part": list(summary.parts.items()),
        "topic": list(summary.topics.items()),
        "author": list(summary.authors.items()),
    }
    return [(name, rows) for name, rows in tables.items() if rows]


def _compared(
    doubt: Doubt, numbers: dict[str, int], sources: dict[str, str]
) -> list[tuple[str, list[tuple[int, str, Statement | None]]]]:
    """The rows of the table of a doubt: how a statement changed, then number and formula before and after it."""
    order = list(CHANGE_SIGNS)

    def side(each: Statement | None) -> tuple[int, str, Statement | None]:
        return (numbers[each.key], sources[each.key], each) if each else (0, "", None)

    changes = sorted(doubt.changes, key=lambda change: order.index(change.kind))
    return [(change.kind, [side(change.before), side(change.after)]) for change in changes]


def set_sources(statements: Sequence[Statement]) -> dict[str, str]:
    """The formula of each statement as HTML; where one formula makes several statements, each as it was read."""
    uses = Counter((each.line, each.source) for each in statements)
    return {each.key: _set_source(each, shared=uses[each.line, each.source] > 1) for each in statements}


def _set_source(statement: Statement, *, shared: bool) -> str:
    if statement.id:
        return f"<code>{escaped(statement.id)}</code>"
    if shared and statement.claim:
        return ", ".join(set_relation(claim) for claim in statement.claim.split("\n\n"))
    try:
        return mathml(statement.source.strip(), display=False)
    except Unset:
        return f"<code>{escaped(statement.source)}</code>"


def _set(statement: Statement) -> dict[str, Any]:
    """What refutes a statement as HTML: the two sides worked out, and what would be true."""
    found, verdict = _gist(statement), statement.verdict
    if found is None or verdict is None:
        return {}
    stated = verdict.statement
    sides = [side for side in set_sides(stated, verdict.link) if side]
    worked = []
    for side, (exact, value) in zip(sides, found.values, strict=False):
        terms = dict.fromkeys([side, *([set_term(stated, exact)] if exact else []), escaped(value)])
        worked.append(" = ".join(terms))
    return {
        "nearest": set_relation(stated, found.nearest) if found.nearest else "",
        "exact": set_term(stated, found.exact) if found.exact else "",
        "worked": worked,
        "true_if": [set_condition(stated, each) for each in verdict.suggestions],
    }


def _gist(statement: Statement) -> Gist | None:
    """The refutation of a statement in one sentence, with what is true instead."""
    found = gist(statement.verdict)
    return replace(found, nearest=found.nearest or statement.nearest) if found else None


def _lines(span: tuple[int, int]) -> str:
    """Lines in words: `line 7`, or `lines 7 to 9`."""
    first, last = span
    return f"line {first}" if first == last else f"lines {first} to {last}"


def _labelled(statement: Statement) -> str:
    """Whether the `noticed` label of a claim says that somebody saw an error; empty without a label."""
    label = statement.labels.get("noticed", "")
    return ("no" if label.startswith(UNNOTICED) else "yes") if label else ""


def _embedded(data: object) -> str:
    """JSON inside a page, where no character can end its element."""
    text = json.dumps(data, ensure_ascii=True)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _corrections(review: Review) -> list[list[Attempt]]:
    claims = [each for each in review.statements if each.id and each.verdict]
    stated = [ClaimSource(each.id, each.claim, each.line) for each in claims]
    return attempts(stated, [each.verdict for each in claims if each.verdict])


class _Anchors:
    """The row in which a line stands, as templates ask for it."""

    def __init__(self, review: Review) -> None:
        self._review = review

    def __getitem__(self, line: int) -> int:
        row = self._review.row_of(line)
        return row.first if row else line


def text(review: Review) -> str:
    """The statements of a review, one line each, then disagreements and the summary, for a terminal."""
    lines = []
    marks = {mark.key: mark for mark in review.marks}
    for statement in review.statements:
        found = _gist(statement)
        true = f" True: {found.nearest}." if found and found.nearest else ""
        words = found.words + true if found else statement.verdict.detail if statement.verdict else statement.reason
        mark = (
            f"  ({SIGNS[marks[statement.key].mark]} marked {marks[statement.key].mark})"
            if statement.key in marks
            else ""
        )
        name = statement.id or " ".join(statement.source.split())[:60]
        lines.append(f"{statement.line}:{statement.column}  {_sign(statement.status)}  {name}  {words}{mark}")
    lines += [f"differs, line {each.line}: {each.words}" for each in review.disagreements]
    return "\n".join(printable(line) for line in [*lines, review.summary.words])


def _sign(status: Status) -> str:
    return f"{status.sign} {status.label}"
