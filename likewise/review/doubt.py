"""Replies before and after a doubt: what changed, and which verdicts changed with it.

A reply is what an assistant says between two turns of a user; remarks of an annotator do not end it. A user's turn is a
doubt if it asks for certainty or says that something is wrong. The page names its line, so a reader can judge the rule.
"""

import difflib
import itertools
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from likewise.review.corrections import BOOKKEEPING
from likewise.review.setting import Row
from likewise.review.statements import Statement, Turn

ChangeName = Literal["repaired", "broken", "unmoved", "reworded", "changed", "dropped", "new"]
CHANGES: dict[ChangeName, str] = {
    "repaired": "refuted before, holds after",
    "broken": "held before, is refuted after",
    "unmoved": "the same formula again",
    "reworded": "typed otherwise, the same claim",
    "changed": "another claim in its place; the verdicts stand beside it",
    "dropped": "not said again",
    "new": "not said before",
}
WORDS = {**{name: name for name in CHANGES}, "dropped": "not repeated"}  # as a reader meets them
DOUBT = re.compile(
    r"\b(?:are|r) you\b[^.?!]*\b(?:sure|certain|confident|correct|right)\b"
    r"|\b(?:incorrect|wrong|mistaken?|mistakes|errors?|typos?|mess(?:ed|ing)|doubt|forg[eo]t\w*|reconsider|re-?check)\b"
    r"|\bdouble[- ]check\b|\b(?:check|look|think)\b[^.?!]*\b(?:again|carefully)\b",
    re.IGNORECASE,
)
LONGEST = 100  # words of a doubt; a longer turn is a question of its own
SIMILAR, SAME_LEFT = 0.8, 0.5  # equal tokens from which two formulas are one attempt; fewer if the left sides agree
TOKEN = re.compile(r"\\?[A-Za-z]+|\d+(?:\.\d+)?|\S")
RELATION = re.compile(r"=|<|>|\\(?:leq?|geq?|approx|neq?|sim|in|to|equiv|propto)\b|:=")
SHARED = 0.4  # common words of two passages that are set side by side
PASSAGES = 200  # passages of one change that are aligned
COMPARED = 400  # statements of a reply that are compared with those of another


@dataclass(frozen=True)
class Change:
    """A statement before and after a doubt; one of the two is None if it was dropped or is new."""

    kind: ChangeName
    before: Statement | None
    after: Statement | None

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return {"kind": self.kind, **{name: _place(getattr(self, name)) for name in ("before", "after")}}


@dataclass(frozen=True)
class Doubt:
    """Two replies to one question with a doubt between them; all places are lines."""

    line: int
    before: tuple[int, int]
    after: tuple[int, int]
    changes: tuple[Change, ...]
    passages: tuple[tuple[Row | None, Row | None], ...]  # those that differ
    same: int  # passages that are the same in both

    @property
    def counts(self) -> dict[ChangeName, int]:
        """How many statements changed in which way."""
        found = Counter(change.kind for change in self.changes)
        return {name: found[name] for name in CHANGES if found[name]}

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "line": self.line,
            "before": list(self.before),
            "after": list(self.after),
            "counts": self.counts,
            "changes": [change.to_json() for change in self.changes],
            "passages_changed": len(self.passages),
            "passages_same": self.same,
        }


def is_doubt(words: str) -> bool:
    """Whether a turn of a user doubts the reply before it.

    >>> is_doubt("Are you absolutely sure about b?"), is_doubt("Be sure that it is accurate. Now part (b).")
    (True, False)
    """
    return len(words.split()) <= LONGEST and DOUBT.search(words) is not None


def doubts(text: str, turns: Sequence[Turn], rows: Sequence[Row], statements: Sequence[Statement]) -> list[Doubt]:
    """Every pair of replies with a doubt between them."""
    lines = text.split("\n")
    replies = list(_replies(turns))
    found = []
    for (_, before), (asked, after) in itertools.pairwise(replies):
        words = " ".join(" ".join(lines[turn.first - 1 : turn.last]) for turn in asked)
        if not asked or not is_doubt(words):
            continue
        said = [[each for each in statements if _within(each.line, reply)] for reply in (before, after)]
        shown = [[row for row in rows if _within(row.first, reply)] for reply in (before, after)]
        same, passages = _passages(*shown)
        spans = [(reply[0].first, reply[-1].last) for reply in (before, after)]
        found.append(Doubt(asked[0].first, *spans, tuple(compare(*said)), tuple(passages), same))
    return found


def compare(before: Sequence[Statement], after: Sequence[Statement]) -> Iterator[Change]:
    """Statements of two replies, matched: by `revises`, the same formula, the same claim, then by similar formulas."""
    before, after = [list(each)[:COMPARED] for each in (before, after)]
    partner: dict[int, int] = {}
    for match in (_revises, _same, _same_claim, None):
        pairs = (
            ((old, new) for old in range(len(before)) for new in range(len(after)) if match(before[old], after[new]))
            if match
            else _similar(before, after, partner)
        )
        for old, new in pairs:
            if old not in partner and new not in partner.values():
                partner[old] = new
    places = {new: old for old, new in partner.items()}
    for old, each in enumerate(before):
        new = partner.get(old)
        yield Change(kind_of(each, after[new]), each, after[new]) if new is not None else Change("dropped", each, None)
    for new, each in enumerate(after):
        if new not in places:
            yield Change("new", None, each)


def kind_of(before: Statement, after: Statement) -> ChangeName:
    """In which way two matched statements differ; a changed verdict comes first."""
    verdicts = [each.verdict.verdict if each.verdict else "" for each in (before, after)]
    if verdicts == ["refuted", "holds"]:
        return "repaired"
    if verdicts == ["holds", "refuted"]:
        return "broken"
    if _squeezed(before) == _squeezed(after):
        return "unmoved"
    return "reworded" if before.claim and _stated(before) == _stated(after) else "changed"


def _place(statement: Statement | None) -> dict[str, Any] | None:
    if statement is None:
        return None
    status = statement.status.label
    return {"line": statement.line, "column": statement.column, "source": statement.source, "status": status}


def _replies(turns: Sequence[Turn]) -> Iterator[tuple[list[Turn], list[Turn]]]:
    """Each reply with the turns of the user before it."""
    asked: list[Turn] = []
    reply: list[Turn] = []
    for turn in turns:
        if turn.speaker == "user":
            if reply:
                yield asked, reply
                asked, reply = [], []
            asked.append(turn)
        elif turn.speaker == "assistant":
            reply.append(turn)
    if reply:
        yield asked, reply


def _within(line: int, reply: Sequence[Turn]) -> bool:
    return any(turn.first <= line <= turn.last for turn in reply)


def _passages(before: Sequence[Row], after: Sequence[Row]) -> tuple[int, list[tuple[Row | None, Row | None]]]:
    """The number of passages that both have, and those that differ, aligned."""
    sources = [[" ".join(row.source.split()) for row in rows] for rows in (before, after)]
    same, found = 0, []
    for kind, a, b, c, d in difflib.SequenceMatcher(None, *sources, autojunk=False).get_opcodes():
        if kind == "equal":
            same += b - a
        if kind != "equal":
            found += _aligned(before[a:b], after[c:d])
    return same, found


def _aligned(before: Sequence[Row], after: Sequence[Row]) -> list[tuple[Row | None, Row | None]]:
    """Passages in order, those side by side that share most words; the others stand alone."""
    words = [[Counter(TOKEN.findall(row.source)) for row in rows[:PASSAGES]] for rows in (before, after)]
    best = [[0.0] * (len(words[1]) + 1) for _ in range(len(words[0]) + 1)]  # of what is left from here on
    alike = [[_alike(old, new) for new in words[1]] for old in words[0]]
    for i, j in itertools.product(reversed(range(len(words[0]))), reversed(range(len(words[1])))):
        best[i][j] = max(best[i + 1][j], best[i][j + 1], best[i + 1][j + 1] + alike[i][j])
    found: list[tuple[Row | None, Row | None]] = []
    i = j = 0
    while i < len(words[0]) and j < len(words[1]):
        if alike[i][j] and best[i][j] == best[i + 1][j + 1] + alike[i][j]:
            found.append((before[i], after[j]))
            i, j = i + 1, j + 1
        elif best[i][j] == best[i + 1][j]:
            found.append((before[i], None))
            i += 1
        else:
            found.append((None, after[j]))
            j += 1
    return [*found, *((row, None) for row in before[i:]), *((None, row) for row in after[j:])]


def _alike(before: Counter[str], after: Counter[str]) -> float:
    """The share of common words, or 0 if it is small."""
    total = before.total() + after.total()
    share = 2 * (before & after).total() / total if total else 0.0
    return share if share >= SHARED else 0.0


def _squeezed(statement: Statement) -> str:
    return "".join(_stated(statement).split()) if statement.id else "".join(statement.source.split())


def _stated(statement: Statement) -> str:
    """The lines of a claim that state something."""
    lines = (line.strip() for line in statement.claim.split("\n"))
    return "\n".join(line for line in lines if line and not line.startswith(BOOKKEEPING))


def _revises(before: Statement, after: Statement) -> bool:
    return bool(before.id) and after.verdict is not None and after.verdict.revises == before.id


def _same(before: Statement, after: Statement) -> bool:
    source = _squeezed(before)
    return bool(source) and source == _squeezed(after)


def _same_claim(before: Statement, after: Statement) -> bool:
    return bool(before.claim) and _stated(before) == _stated(after)


def _similar(
    before: Sequence[Statement], after: Sequence[Statement], partner: dict[int, int]
) -> Iterator[tuple[int, int]]:
    """Pairs that are not matched yet, the most similar first."""
    taken = set(partner.values())
    tokens = [[TOKEN.findall(each.source) for each in side] for side in (before, after)]
    lefts = [[RELATION.split("".join(each.source.split()))[0] for each in side] for side in (before, after)]
    found = []
    for old in range(len(before)):
        for new in range(len(after)):
            if old in partner or new in taken or not tokens[0][old] or not tokens[1][new]:
                continue
            least = SAME_LEFT if lefts[0][old] and lefts[0][old] == lefts[1][new] else SIMILAR
            matcher = difflib.SequenceMatcher(None, tokens[0][old], tokens[1][new], autojunk=False)
            if matcher.real_quick_ratio() >= least and matcher.quick_ratio() >= least:
                ratio = matcher.ratio()
                if ratio >= least:
                    found.append((ratio + (least == SAME_LEFT), old, new))
    for _, old, new in sorted(found, key=lambda each: (-each[0], each[1], each[2])):
        yield old, new
