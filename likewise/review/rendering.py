"""A review as one self-contained HTML page and as text."""

import base64
import hashlib
import json
import re
from dataclasses import dataclass

from likewise.claims.stated import UNNOTICED, Stated
from likewise.claims.verdict import Verdict
from likewise.page import render
from likewise.review.corrections import Attempt, attempts
from likewise.review.doubt import CHANGES, Doubt
from likewise.review.marks import TAGS, content_hash
from likewise.review.mathml import Unset, mathml
from likewise.review.reviewing import Counts, Review, Row
from likewise.review.setting import escaped
from likewise.review.statements import Statement, Status, Turn
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
    "unread": "not understood, or nothing to check; the reason stands beside it",
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
NUMBER = r"[-+]?\d[\d.]*(?:e[-+]?\d+)?"
COMPARED = re.compile(
    rf"^(?:(?P<point>[^:;]*): )?(?:[^;]*? = )?(?P<left>{NUMBER}) (?:!=|[<>]=?) (?:[^;]*? = )?(?P<right>{NUMBER})(?:;|$)"
)
CHANGE_SIGNS = {  # in the order of the table
    "broken": "\N{BALLOT X}",
    "repaired": "\N{CHECK MARK}",
    "changed": "\N{NOT EQUAL TO}",
    "reworded": "\N{ALMOST EQUAL TO}",
    "unmoved": "=",
    "dropped": "\N{MINUS SIGN}",
    "new": "+",
}
POLICY = "likewise-policy"  # stands in the page until the hashes of its style and script are known


@dataclass(frozen=True)
class Gist:
    """A refutation in one sentence, and what else its detail says."""

    words: str
    exact: str
    holds_if: str


def gist(verdict: Verdict | None) -> Gist | None:
    """The counterexample in numbers.

    >>> detail = "D=2 q=(1,0): exp(-1) = 0.367879 != exp(-2) = 0.135335; exact value exp(-D); true for D=1"
    >>> gist(Verdict("a", "refuted", "exact witness", detail)).words
    'D = 2, q = (1, 0): left 0.367879, right 0.135335.'
    """
    if verdict is None or verdict.verdict != "refuted":
        return None
    pieces = verdict.detail.split("; ")
    exact = next((piece.removeprefix("exact value ") for piece in pieces if piece.startswith("exact value ")), "")
    holds_if = " or ".join(verdict.suggestions[:2]).replace(" == ", " = ")
    compared = COMPARED.match(verdict.detail)
    if not compared:
        return Gist(f"{pieces[0].rstrip('.')}.", exact, holds_if)
    point = re.sub(r"(\S)=(?=\S)", r"\1 = ", compared["point"] or "").replace(" ", "\0")
    point = re.sub(r"\0(?=\w+\0=)", ", ", point).replace("\0", " ").replace(",", ", ").replace(",  ", ", ")
    where = f"{point}: " if point else ""
    return Gist(f"{where}left {compared['left']}, right {compared['right']}.", exact, holds_if)


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


def page(review: Review, *, live: bool = False) -> str:
    """One HTML file: no network, readable without its script, with a policy that lets only its own script run."""
    numbered = list(enumerate(review.statements, start=1))
    placed: dict[int, list[tuple[int, Statement]]] = {}
    unplaced = []
    for number, statement in numbered:
        row = review.row_of(statement.line)
        if row is None:
            unplaced.append(statement)
        else:
            placed.setdefault(row.first, []).append((number, statement))
    legend = {each.status.name: each.status for each in review.statements}
    summary = review.summary
    numbers = {statement.key: number for number, statement in numbered}
    filled = render(
        "review/templates/review.html",
        {
            "review": review,
            "summary": summary,
            "turns": [(turn, _rows(review, turn, placed)) for turn in review.turns],
            "unplaced": unplaced,
            "wrong": [(number, each) for number, each in numbered if each.refuted][:60],
            "marks": {mark.key: mark for mark in review.marks},
            "marks_json": _embedded([mark.to_json() for mark in review.marks]),
            "signs": SIGNS,
            "tags": TAGS,
            "gists": {number: gist(each.verdict) for number, each in numbered},
            "commands": {number: repeat(each) for number, each in numbered},
            "labelled": {number: _labelled(each) for number, each in numbered},
            "anchors": _Anchors(review),
            "legend": [(legend[name], words) for name, words in LEGEND.items() if name in legend],
            "corrections": _corrections(review),
            "tables": _tables(review),
            "doubts": [(doubt, _compared(doubt, numbers)) for doubt in review.doubts],
            "changes": CHANGES,
            "change_signs": CHANGE_SIGNS,
            "points": {each.part: each for each in review.points},
            "answer": content_hash(review.text)[:32],
            "grades": GRADES,
            "policy_mark": POLICY,
            "live": live,
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


def _rows(
    review: Review, turn: Turn, placed: dict[int, list[tuple[int, Statement]]]
) -> list[tuple[Row, list[tuple[int, Statement]]]]:
    return [(row, placed.get(row.first, [])) for row in review.rows if turn.first <= row.first <= turn.last]


def _tables(review: Review) -> list[tuple[str, list[tuple[str, Counts]]]]:
    """The counts by turn, part, topic and author; a table of one turn would repeat the summary."""
    summary = review.summary
    turns = [
        (f"{turn.speaker or 'the answer'}, lines {turn.first} to {turn.last}", counts)
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


def _compared(doubt: Doubt, numbers: dict[str, int]) -> list[tuple[str, list[tuple[int, str, Statement | None]]]]:
    """The rows of the table of a doubt: how a statement changed, then number and formula before and after it."""
    order = list(CHANGE_SIGNS)

    def side(each: Statement | None) -> tuple[int, str, Statement | None]:
        return (numbers[each.key], set_source(each), each) if each else (0, "", None)

    changes = sorted(doubt.changes, key=lambda change: order.index(change.kind))
    return [(change.kind, [side(change.before), side(change.after)]) for change in changes]


def set_source(statement: Statement) -> str:
    """The formula of a statement as HTML: MathML, or as typed."""
    if statement.id:
        return f"<code>{escaped(statement.id)}</code>"
    try:
        return mathml(statement.source.strip(), display=False)
    except Unset:
        return f"<code>{escaped(statement.source)}</code>"


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
    stated = [Stated(each.id, each.claim, each.line) for each in claims]
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
        found = gist(statement.verdict)
        words = found.words if found else statement.verdict.detail if statement.verdict else statement.reason
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
