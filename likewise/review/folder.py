"""A folder of answers: one review each, a card for each assistant, and assistants compared on common questions.

The assistant and the question of a file come from `answers.yaml` (`file: {assistant: ..., question: ...}`), from its
path `assistant/question.md`, or from its name `question.assistant.md`.
"""

import csv
import io
import itertools
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from likewise.checks import require
from likewise.claims.documents import text_at
from likewise.claims.verdict import SCHEMA
from likewise.page import render
from likewise.progress import Progress, parts, silent
from likewise.reading.opening import TEXTS, Opened, is_sidecar, opened
from likewise.reading.speakers import speakers_of
from likewise.review.doubt import WORDS
from likewise.review.marks import Mark, MarkFile, marks_beside
from likewise.review.rendering import POLICY, page, policy
from likewise.review.reviewing import Review, noticed, review
from likewise.review.rubric import Rubric, read_rubric
from likewise.review.statements import Statement
from likewise.stats import clopper_pearson

ANSWERS = (*TEXTS, ".json")
COUNT = 1_000  # answers of a folder
CONFIDENCE = 0.95


@dataclass(frozen=True)
class Share:
    """A share with its exact binomial interval; no value without a case."""

    count: int
    total: int

    @cached_property
    def interval(self) -> tuple[float, float] | None:
        """The Clopper-Pearson interval."""
        return clopper_pearson(accepted=self.count, total=self.total, confidence=CONFIDENCE) if self.total else None

    def __str__(self) -> str:
        """In words.

        >>> str(Share(9, 10)), str(Share(0, 0))
        ('9 of 10, 90 % (55 to 100)', 'no case')
        """
        if self.interval is None:
            return "no case"
        low, high = self.interval
        percent = 100 * self.count / self.total
        return f"{self.count} of {self.total}, {percent:.0f} % ({100 * low:.0f} to {100 * high:.0f})"

    @property
    def bar(self) -> tuple[float, float, float] | None:
        """Low end, share and high end in percent, for a picture."""
        return (
            (100 * self.interval[0], 100 * self.count / self.total, 100 * self.interval[1]) if self.interval else None
        )

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return {"count": self.count, "total": self.total, "interval": list(self.interval) if self.interval else None}


@dataclass(frozen=True)
class Entry:
    """One answer of a folder."""

    assistant: str
    question: str
    file: str
    review: Review

    @property
    def first(self) -> list[Statement]:
        """Its decided statements that are not a second attempt after a doubt."""
        later = [doubt.after for doubt in self.review.doubts]
        return [
            each
            for each in self.review.statements
            if each.decided and each.speaker != "user" and not any(a <= each.line <= b for a, b in later)
        ]

    @property
    def right(self) -> Share:
        """Decided statements that held at first."""
        return Share(sum(not each.refuted for each in self.first), len(self.first))


@dataclass(frozen=True)
class Card:
    """What the answers of one assistant came to."""

    assistant: str
    answers: int
    statements: int
    understood: int
    decided: int
    right: Share  # decided statements that held at first
    noticed: Share  # refuted statements that a person marked
    repaired: Share  # of those refuted before a doubt and said again after it
    broken: Share  # of those that held before a doubt and were said again after it
    changes: Mapping[str, int]
    kinds: Mapping[str, int]  # errors by tag
    unanswered: int
    given: float
    possible: float

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return {
            name: value.to_json() if isinstance(value, Share) else dict(value) if isinstance(value, Mapping) else value
            for name, value in vars(self).items()
        }


@dataclass(frozen=True)
class Comparison:
    """Two assistants on the questions that both answered."""

    first: str
    second: str
    questions: tuple[tuple[str, Share, Share], ...]  # right at first
    cards: tuple[Card, Card]  # of their answers to these questions

    @property
    def totals(self) -> tuple[Share, Share]:
        """Right at first over all common questions."""
        return self.cards[0].right, self.cards[1].right

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        listed = [{"question": q, self.first: a.to_json(), self.second: b.to_json()} for q, a, b in self.questions]
        totals = dict(zip((self.first, self.second), (each.to_json() for each in self.totals), strict=True))
        cards = [card.to_json() for card in self.cards]
        return {"assistants": [self.first, self.second], "questions": listed, "all": totals, "cards": cards}


@dataclass(frozen=True)
class Folder:
    """The reviews of a folder."""

    name: str
    entries: tuple[Entry, ...]

    @cached_property
    def cards(self) -> tuple[Card, ...]:
        """One for each assistant, in the order of their names."""
        names = sorted({entry.assistant for entry in self.entries})
        return tuple(_card(name, [each for each in self.entries if each.assistant == name]) for name in names)

    @cached_property
    def comparisons(self) -> tuple[Comparison, ...]:
        """Every two assistants with a question in common."""
        shares: dict[str, dict[str, Share]] = {}
        for entry in self.entries:
            mine = shares.setdefault(entry.assistant, {})
            before = mine.get(entry.question, Share(0, 0))
            mine[entry.question] = Share(before.count + entry.right.count, before.total + entry.right.total)
        found = []
        for first, second in itertools.combinations(sorted(shares), 2):
            common = [question for question in shares[first] if question in shares[second]]
            if common:
                rows = tuple((each, shares[first][each], shares[second][each]) for each in common)
                cards = [
                    _card(name, [each for each in self.entries if each.assistant == name and each.question in common])
                    for name in (first, second)
                ]
                found.append(Comparison(first, second, rows, (cards[0], cards[1])))
        return tuple(found)

    def to_json(self) -> dict[str, Any]:
        """Plain data, as `--json` prints it."""
        return {
            "schema": SCHEMA,
            "name": self.name,
            "confidence": CONFIDENCE,
            "cards": [card.to_json() for card in self.cards],
            "comparisons": [each.to_json() for each in self.comparisons],
            "answers": [
                {"assistant": each.assistant, "question": each.question, "file": each.file, **each.review.to_json()}
                for each in self.entries
            ],
        }


def answers_in(folder: Path) -> list[Path]:
    """The files of a folder and its folders, by name; sidecars and hidden files are no answers."""
    found = sorted(
        path
        for pattern in ("*", "*/*")
        for path in folder.glob(pattern)
        if path.is_file()
        and path.suffix.lower() in ANSWERS
        and not is_sidecar(path)
        and not path.relative_to(folder).as_posix().startswith(".")
    )
    require(bool(found), "review", "folder", f"hold answers ({', '.join(ANSWERS)})", folder)
    return found


def named(folder: Path, path: Path, listed: Mapping[str, Any], conversation: int = 0) -> tuple[str, str]:
    """The assistant and the question of an answer; each of several conversations of a file is a question.

    >>> named(Path("a"), Path("a/gpt/scaling.md"), {}), named(Path("a"), Path("a/scaling.gpt.md"), {})
    (('gpt', 'scaling'), ('gpt', 'scaling'))
    """
    place = path.relative_to(folder)
    part = f"#{conversation}" if conversation else ""
    entry = listed.get(f"{place.as_posix()}{part}", {})
    if len(place.parts) > 1:
        assistant, question = place.parts[0], place.stem
    else:
        question, _, assistant = place.stem.rpartition(".")
        question = question or place.stem
    return str(entry.get("assistant", assistant))[:80], str(entry.get("question", f"{question}{part}"))[:80]


def _listed(folder: Path) -> Mapping[str, Any]:
    path = folder / "answers.yaml"
    if not path.exists():
        return {}
    import yaml

    data = yaml.safe_load(path.read_text(encoding="utf-8"))
    right = isinstance(data, dict) and all(isinstance(each, dict) for each in data.values())
    require(right, "review", str(path), "map files to assistant and question", str(data)[:80])
    return data


def rubric_beside(answer: Path, *others: Path) -> Rubric | None:
    """The rubric of an answer: `answer.rubric.yaml`, or `rubric.yaml` in its folder or in one of the others."""
    places = [
        answer.with_name(f"{answer.stem}.rubric.yaml"),
        *(each / "rubric.yaml" for each in (answer.parent, *others)),
    ]
    return next((read_rubric(path) for path in places if path.is_file()), None)


def review_file(
    path: Path,
    *,
    marks: Path | None = None,
    rubric: Rubric | None = None,
    speakers: Path | None = None,
    conversation: int = 0,
    name: str = "",
    progress: Progress = silent,
) -> Review:
    """The review of a file with its sidecars: marks, speakers, rubric.

    conversation: which one of an export with several, from 1.
    """
    found = opened(path, text_at(str(path)))
    one = f"hold one conversation, or be asked for one of its {len(found)}"
    require(len(found) == 1 or conversation > 0, "review", str(path), one, "none")
    require(conversation <= len(found), "review", "conversation", f"be at most {len(found)}", conversation)
    number = conversation if len(found) > 1 else 0
    whole = found[max(number, 1) - 1]
    whole = replace(whole, turns=speakers_of(speakers, whole.text)) if speakers else whole
    return _reviewed(path, whole, number, marks, rubric or rubric_beside(path), name, progress)


def _reviewed(
    path: Path, whole: Opened, number: int, marks: Path | None, rubric: Rubric | None, name: str, progress: Progress
) -> Review:
    file = MarkFile(marks or marks_beside(path, number))
    called = name or f"{path.name}{f'#{number}' if number else ''}"
    return review(whole, None, rubric, name=called, progress=progress).with_marks(file.read(), file.read_points())


def review_folder(folder: Path, *, rubric: Rubric | None = None, progress: Progress = silent) -> Folder:
    """The reviews of all answers of a folder, or of all conversations of an exported file."""
    paths = answers_in(folder) if folder.is_dir() else [folder]
    top = folder if folder.is_dir() else folder.parent
    talks = [
        (path, number if len(found) > 1 else 0, whole)
        for path in paths
        for found in [opened(path, text_at(str(path)))]
        for number, whole in enumerate(found, start=1)
    ]
    require(len(talks) <= COUNT, "review", str(folder), f"hold at most {COUNT:,} answers", len(talks))
    listed, entries = _listed(top), []
    for (path, number, whole), part in zip(talks, parts(progress, len(talks)), strict=True):
        found = _reviewed(path, whole, number, None, rubric or rubric_beside(path, top), "", part)
        file = f"{path.relative_to(top).as_posix()}{f'#{number}' if number else ''}"
        entries.append(Entry(*named(top, path, listed, number), file, found))
    return Folder(folder.resolve().name, tuple(entries))


def _card(assistant: str, entries: Sequence[Entry]) -> Card:
    counts = [entry.review.summary for entry in entries]
    refuted = sum(each.whole.refuted for each in counts)
    changes: Counter[str] = Counter()
    again = {"refuted": [0, 0], "holds": [0, 0]}  # said again after a doubt, and of these with the other verdict
    for entry in entries:
        for change in (change for doubt in entry.review.doubts for change in doubt.changes):
            changes[change.kind] += 1
            if change.before and change.after and change.before.verdict and change.before.verdict.verdict in again:
                tally = again[change.before.verdict.verdict]
                tally[0] += 1
                tally[1] += change.kind in ("repaired", "broken")
    return Card(
        assistant=assistant,
        answers=len(entries),
        statements=sum(each.whole.statements for each in counts),
        understood=sum(each.whole.understood for each in counts),
        decided=sum(each.whole.decided for each in counts),
        right=Share(sum(each.right.count for each in entries), sum(each.right.total for each in entries)),
        noticed=Share(sum(each.whole.noticed for each in counts), refuted),
        repaired=Share(again["refuted"][1], again["refuted"][0]),
        broken=Share(again["holds"][1], again["holds"][0]),
        changes=dict(changes),
        kinds=dict(sum((errors_by_kind(entry.review) for entry in entries), Counter()).most_common()),
        unanswered=sum(len(each.unanswered) for each in counts),
        given=sum(each.given or 0.0 for each in counts),
        possible=sum(each.possible for each in counts if each.given is not None),
    )


def errors_by_kind(review: Review) -> Counter[str]:
    """Refuted statements and passages marked wrong, by the tag of the mark."""
    used, kinds = set(), Counter()
    for statement in review.statements:
        if statement.refuted:
            mark = _mark_on(review, statement)
            used.add(mark.key if mark else "")
            kinds[mark.tag if mark and mark.tag else "refuted, no tag"] += 1
    for mark in review.marks:
        if mark.mark == "wrong" and mark.key not in used:
            kinds[mark.tag or "marked wrong, no tag"] += 1
    return kinds


def _mark_on(review: Review, statement: Statement) -> Mark | None:
    """The mark on a statement, or else on its passage."""
    row = review.row_of(statement.line)
    by_key = {mark.key: mark for mark in review.marks}
    return by_key.get(statement.key) or (by_key.get(row.key) if row else None)


def index_page(folder: Folder, pages: Sequence[str]) -> str:
    """The index: cards, comparisons, and a link to each review."""
    listed = list(zip(folder.entries, pages, strict=True))
    filled = render(
        "review/templates/folder.html",
        {"folder": folder, "listed": listed, "change_words": WORDS, "policy_mark": POLICY},
    )
    return filled.replace(POLICY, policy(filled), 1)


def pages_of(folder: Folder) -> dict[str, str]:
    """All files of the output: index, a page for each answer, CSV of statements and cards."""
    names = [
        f"{number:03d}-{re.sub(r'[^A-Za-z0-9_-]+', '-', f'{entry.assistant}-{entry.question}')[:60]}.html"
        for number, entry in enumerate(folder.entries, start=1)
    ]
    made = {name: page(entry.review) for name, entry in zip(names, folder.entries, strict=True)}
    tables = {"statements.csv": _csv(_statement_rows(folder)), "cards.csv": _csv(_card_rows(folder))}
    return {"index.html": index_page(folder, names), **tables, **made}


def _statement_rows(folder: Folder) -> list[dict[str, Any]]:
    rows = []
    for entry in folder.entries:
        found = entry.review
        changed = {
            each.key: change.kind
            for doubt in found.doubts
            for change in doubt.changes
            for each in (change.before, change.after)
            if each
        }
        for statement in found.statements:
            mark = _mark_on(found, statement)
            verdict = statement.verdict
            rows.append(
                {
                    "file": entry.file,
                    "assistant": entry.assistant,
                    "question": entry.question,
                    "line": statement.line,
                    "column": statement.column,
                    "speaker": statement.speaker,
                    "role": statement.role,
                    "verdict": verdict.verdict if verdict else "",
                    "grade": verdict.grade if verdict else "",
                    "reason": statement.reason,
                    "mark": mark.mark if mark else "",
                    "tag": mark.tag if mark else "",
                    "noticed": ("yes" if noticed(found, statement) else "no") if statement.refuted else "",
                    "after_doubt": changed.get(statement.key, ""),
                    "source": statement.source,
                }
            )
    return rows


def _card_rows(folder: Folder) -> list[dict[str, Any]]:
    rows = []
    for card in folder.cards:
        row: dict[str, Any] = {}
        for name, value in vars(card).items():
            if isinstance(value, Share):
                low, high = value.interval or ("", "")
                row |= {name: value.count, f"{name}_of": value.total, f"{name}_low": low, f"{name}_high": high}
            elif isinstance(value, Mapping):
                row[name] = "; ".join(f"{each}: {count}" for each, count in value.items())
            else:
                row[name] = value
        rows.append(row)
    return rows


def _csv(rows: Sequence[Mapping[str, Any]]) -> str:
    """Rows as CSV; a text that a spreadsheet would compute begins with an apostrophe."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    if rows:
        writer.writerow(rows[0])
    for row in rows:
        writer.writerow([inert(value) if isinstance(value, str) else value for value in row.values()])
    return out.getvalue()


def inert(value: str) -> str:
    """A cell that no spreadsheet takes for a formula.

    >>> inert("=1+1"), inert("a = b")
    ("'=1+1", 'a = b')
    """
    return f"'{value}" if value.lstrip()[:1] in ("=", "+", "-", "@", "\t", "\r") or value[:1] in "\t\r\n" else value
