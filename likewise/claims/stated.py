"""A claim as its file has it, and the rules of every file: ids are plain and unique, and there are not too many."""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from likewise.claims.language.limits import CLAIMS, DOCUMENT

NOTHING = "nothing to check: there is no claim"
UNNOTICED = ("nobody", "not visibly flagged")  # how the label `noticed` begins where no one did
LABEL = re.compile(r"^[ \t]*(row|who|noticed|note):[ \t]*(\S.*?)[ \t]*$", re.MULTILINE)
ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


@dataclass(frozen=True)
class ClaimSource:
    """One claim as its file has it; `error` says what was wrong with the file there, and nothing is checked then."""

    id: str
    text: str
    line: int = 0
    file: str = ""
    error: str = ""
    column: int = field(default=1, repr=False, compare=False)
    spans: "tuple[Span, ...]" = field(default=(), repr=False, compare=False)

    @property
    def labels(self) -> dict[str, str]:
        r"""What a claim says about itself and is not checked: who said it, who noticed, its row, a note.

        >>> ClaimSource("a", "who: GPT\nnoticed: nobody\nassert: 1 == 2").labels
        {'who': 'GPT', 'noticed': 'nobody'}
        """
        return dict(LABEL.findall(self.text))

    def place(self, at: tuple[int, int]) -> tuple[int, int]:
        """The line and column of the file for a line and column of the text.

        >>> ClaimSource("a", "assert: 1", spans=(Span(1, 1, 7, 3), Span(1, 9, 8, 5))).place((1, 10))
        (8, 6)
        """
        line, column = at
        before = [span for span in self.spans if span.line == line and span.column <= column]
        if not before:
            return at
        return before[-1].file_line, before[-1].file_column + column - before[-1].column


class Span(NamedTuple):
    """A piece of a claim's text, up to the next one, and where it stands in the file; all count from 1."""

    line: int
    column: int
    file_line: int
    file_column: int


class Entry(NamedTuple):
    """What a reader of files found; an id may be missing or wrong still."""

    line: int
    id: str
    text: str
    error: str = ""
    column: int = 1
    spans: tuple[Span, ...] = ()


class Misread(Exception):
    """A file, or a part of it, is not of the agreed form."""

    def __init__(self, reason: str, line: int = 1, column: int = 1) -> None:
        super().__init__(reason)
        self.line, self.column = line, column


def stated(read: Callable[[str], Iterable[Entry]], text: str, file: str) -> list[ClaimSource]:
    """The claims that `read` finds in a text; a file that cannot be read is one claim with an error.

    >>> twice = lambda text: [Entry(1, "a", text), Entry(5, "", text), Entry(9, "a", text)]
    >>> [(each.id, each.error) for each in stated(twice, "assert: 1 == 1", "")]
    [('a', ''), ('claim-2', ''), ('a', 'the id a is given twice')]
    """
    try:
        if len(text) > DOCUMENT:
            raise Misread(f"longer than {DOCUMENT:,} characters")
        found = list(read(text))
    except Misread as reason:
        return [ClaimSource("document", "", reason.line, file, str(reason), reason.column)]
    claims, seen = [], set()
    for number, entry in enumerate(found[:CLAIMS], start=1):
        usable = ID.fullmatch(entry.id)
        id, error = entry.id if usable else f"claim-{number}", entry.error
        if entry.id and not usable:
            error = error or f"an id is made of letters, digits, '.', '_' and '-'; got {entry.id[:80]!r}"
        elif id in seen:
            error = error or f"the id {id} is given twice"
        seen.add(id)
        claims.append(ClaimSource(id, entry.text, entry.line, file, error, entry.column, entry.spans))
    if len(found) > CLAIMS:
        reason = f"more than {CLAIMS} claims in one file; the rest was not read"
        claims.append(ClaimSource("document", "", found[CLAIMS].line, file, reason))
    return claims


def or_nothing(claims: list[ClaimSource], file: str = "") -> list[ClaimSource]:
    """The claims of a document, or one that says that there are none: an empty document is no pass."""
    return claims or [ClaimSource("document", "", 1, file, NOTHING)]
