r"""A text cut into turns and formulas, each with its line, its column and the prose around it.

Delimiters are looked for first, in the text as it stands: Markdown would take the backslash of `\(` away. Markdown says
where code stands and where a heading begins. `$5 and $6` is money, not a formula.
"""

import functools
import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from likewise.claims.documents import markdown_parser

if TYPE_CHECKING:
    from markdown_it import MarkdownIt

SHOWN = 240  # characters of prose that are looked at on either side
DELIMITED = re.compile(
    r"\$\$(?P<display>.+?)\$\$"
    r"|\\\[(?P<bracket>.+?)\\\]"
    r"|\\\((?P<paren>.+?)\\\)"
    r"|(?P<environment>\\begin\{(?P<name>equation|align|gather|eqnarray|aligned|multline)\*?\}.+?\\end\{(?P=name)\*?\})"
    r"|(?<![\\$\w])\$(?P<inline>(?!\s)(?:\\.|[^$\\\n]|\n(?!\s*\n)){1,2000}?(?<!\s))\$(?!\d)",
    re.DOTALL,
)
SIGNS = r"(?:[\d$%(),.+\-*/×÷·−^ ]|(?<=\d) x (?=[\d$(]))*"
ARITHMETIC = re.compile(rf"(?<![\w\\^_.])[\d$(.]{SIGNS}[=≈]{SIGNS.replace('^ ', '^=≈ ')}[\d)%]")
OPERATOR_BEFORE = re.compile(
    r"(?:[-+*/×÷·−^=<>≤≥≈%$(\[|&]|\b(?:of|times|plus|minus|by|from|than|over|and|to|mod|cos|sin|tan|log|ln|choose))\s*$",
    re.I,
)
JOINED_AFTER = re.compile(r"\s*[-+*/×÷·−^!(\[|_&\\{=<>≤≥≈°]|[A-Za-z_]|\s*(?:mod|choose|factorial)\b|\s*\(mod")
HEADING = re.compile(
    r"\s*(?:#{1,6}\s|\**\s*(?:Part|Problem|Question|Solution|Case|Answer|Exercise|Q\d|Method|Approach|Option)\b"
    r"|\**\(?[a-z0-9ivx]{1,4}\)\s)",
)
BOLD = re.compile(r"\*\*[^*\n]{2,60}[.:]?\*\*(?:\s|$)")  # a heading on a line of its own, or before its text
PROBLEM = re.compile(r"\b(?:Solution|Answer|Problem|Question|Part|Exercise)\b|\bQ\d")
CHAPTER = re.compile(r"\s*\**\s*(?:Problem|Question|Exercise|Q)\s*\d")
CORRECTION = re.compile(
    r"\W*(?:no, |yes, |ah, |good catch\W+)?"
    r"(?:you(?:'re|’re| are) (?:absolutely |completely |totally )?(?:right|correct)"
    r"|i (?:apologi[sz]e|was wrong|made a(?:n)? (?:mistake|error))|my (?:mistake|apologies)|apologies|let me correct"
    r"|correction\b|sorry\b)",
    re.I,
)
SAID = re.compile(r"[$\\=]|(?:\w+\W+){4}")  # more than the name of a speaker and "Sure."
CODE = re.compile(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)", re.DOTALL)
STOP = re.compile(r"(?<![A-Z])[.!?][\"*)]*\s+(?=[A-Z\\$(*\0\d-])|(?<=[.!?\0*)])\s*\n\s*\n|\n\s*(?:[-*•#]|\d+\.)\s")
SENTENCE = re.compile(r"(?<![A-Z]\.)(?<=[.!?:;])\s+(?=[A-Z\\$(*\-\d])|\n\s*\n|\n\s*[-*•]\s|\n\s*\d+\.\s")


@dataclass(frozen=True)
class Turn:
    """What one speaker says, by lines from 1; `hint` is a guess that is shown and never trusted."""

    speaker: str  # assistant, user, annotator or unknown
    first: int
    last: int
    hint: str = ""


@dataclass(frozen=True)
class Formula:
    """A formula as typed, without its delimiters, and where it stands."""

    source: str
    line: int
    column: int
    start: int  # offset in the text, of the content
    end: int
    displayed: bool
    plain: bool = False  # arithmetic in prose, without delimiters
    before: str = field(default="", repr=False)  # the sentence up to here
    after: str = field(default="", repr=False)  # and on from here
    earlier: str = field(default="", repr=False)  # the sentence before that
    section: int = 0
    turn: int = 0
    chapter: int = 0  # declarations end with it; 0 is what stands before the first one of a turn
    sentence: int = 0


def corrected(text: str, turns: tuple[Turn, ...]) -> tuple[Turn, ...]:
    r"""The turns, cut where a speaker takes something back: what was said before is not taken for granted after.

    >>> [(turn.first, turn.last) for turn in corrected("$a$\nYou are right, I erred.\nb", (Turn("assistant", 1, 3),))]
    [(1, 1), (2, 3)]
    """
    lines = text.split("\n")
    starts = {number for number, line in enumerate(lines, start=1) if CORRECTION.match(line)}
    made = []
    for turn in turns:
        first = turn.first
        for line in sorted(starts):
            if first < line <= turn.last and SAID.search("\n".join(lines[first - 1 : line - 1])):
                made.append(Turn(turn.speaker, first, line - 1, turn.hint))
                first = line
        made.append(Turn(turn.speaker, first, turn.last, turn.hint))
    return tuple(made)


def formulas(text: str, turns: tuple[Turn, ...]) -> list[Formula]:
    r"""All formulas of a text, in order.

    >>> [(each.source, each.line, each.column) for each in formulas("It costs $5 and $6.\nSo $a=b$.", ())]
    [('a=b', 2, 5)]
    """
    starts = [0, *(match.end() for match in re.finditer(r"\n", text))]
    fenced, headings = _blocks(text, starts)
    blanked = _blanked(text, fenced)
    found = []
    covered: list[tuple[int, int]] = []
    for match in DELIMITED.finditer(blanked):
        kind = next(
            name for name in ("display", "bracket", "paren", "environment", "inline") if match[name] is not None
        )
        start, end = match.span(kind)
        covered.append(match.span())
        if kind == "inline" and _money(text, match):
            continue
        found.append((start, end, kind != "inline" and kind != "paren", False, match.span()))
    prose = list(blanked)
    for first, last in covered:
        prose[first:last] = "\0" * (last - first)
    plain_prose = "".join(prose)
    found += [(start, end, False, True, (start, end)) for start, end in _arithmetic(plain_prose)]
    sections = sorted(starts[line - 1] for line in headings)
    sections += [starts[turn.first - 1] for turn in turns[1:] if turn.first <= len(starts)]
    sections.sort()
    chapters = _chapters(text, turns, fenced, starts)
    stops = _stops(plain_prose, text, covered)
    made = []
    for start, end, displayed, plain, (outer_start, outer_end) in sorted(found):
        line = bisect_right(starts, start)
        before, earlier = _before(text, outer_start)
        made.append(
            Formula(
                source=text[start:end],
                line=line,
                column=start - starts[line - 1] + 1,
                start=outer_start,
                end=outer_end,
                displayed=displayed,
                plain=plain,
                before=before,
                after=_after(text, outer_end),
                earlier=earlier,
                section=bisect_right(sections, start),
                turn=_turn_at(turns, line),
                chapter=chapters[line],
                sentence=bisect_right(stops, outer_start),
            )
        )
    return made


def _stops(prose: str, text: str, covered: list[tuple[int, int]]) -> list[int]:
    """Offsets where sentences end, in prose with its formulas blanked and at formulas that end with a full stop."""
    inside = [last for first, last in covered if text[first:last].rstrip("$]) \\\n").endswith(".")]
    return sorted([*inside, *(match.end() for match in STOP.finditer(prose))])


def _chapters(text: str, turns: tuple[Turn, ...], fenced: list[tuple[int, int]], starts: list[int]) -> list[int]:
    """The chapter of every line, from 1: in each turn the highest level of headings that occurs more than once.

    What stands alone above is a title, unless it names one problem. Deeper headings, steps and lettered parts go on
    with the same names.
    """
    levels = {}
    for token in _blocks_only().parse(text):
        if token.type == "heading_open" and token.map is not None:
            levels[token.map[0] + 1] = int(token.tag[1:])
    lines = text.split("\n")
    for number, line in enumerate(lines, start=1):
        code = any(first <= starts[number - 1] < last for first, last in fenced)
        if number not in levels and not code and len(line) < 200 and CHAPTER.match(line):
            levels[number] = 0
        elif number not in levels and not code and BOLD.match(line):
            levels[number] = 7
    found = [0] * (len(starts) + 1)
    chapter = 0
    for turn in turns or (Turn("unknown", 1, len(starts)),):
        inside = {line: level for line, level in levels.items() if turn.first <= line <= turn.last}
        often = [
            level
            for line, level in inside.items()
            if list(inside.values()).count(level) > 1 or PROBLEM.search(lines[line - 1])
        ]
        begins = {line for line, level in inside.items() if often and level <= min(often)}
        heads = sorted(inside)
        alone = heads and list(inside.values()).count(inside[heads[0]]) == 1
        if alone and not PROBLEM.search(lines[heads[0] - 1]):
            begins.discard(heads[0])  # a title
        current = 0
        for line in range(turn.first, min(turn.last, len(starts)) + 1):
            if line in begins:
                chapter += 1
                current = chapter
            found[line] = current
    return found


def _turn_at(turns: tuple[Turn, ...], line: int) -> int:
    for place, turn in enumerate(turns):
        if turn.first <= line <= turn.last:
            return place
    return 0


def _blocks(text: str, starts: list[int]) -> tuple[list[tuple[int, int]], list[int]]:
    """Offsets of fenced code, and lines on which a section begins."""
    fenced = []
    headings = {
        number for number, line in enumerate(text.split("\n"), start=1) if len(line) < 200 and HEADING.match(line)
    }
    for token in _blocks_only().parse(text):
        if token.map is None:
            continue
        if token.type == "fence":
            last = starts[token.map[1]] if token.map[1] < len(starts) else len(text)
            fenced.append((starts[token.map[0]], last))
        elif token.type == "heading_open":
            headings.add(token.map[0] + 1)
    return fenced, sorted(headings)


@functools.cache
def _blocks_only() -> "MarkdownIt":
    return markdown_parser().disable("inline")


def _blanked(text: str, fenced: list[tuple[int, int]]) -> str:
    """The text with code as blanks, so that offsets stay."""
    characters = list(text)
    inline = [match.span() for match in CODE.finditer(text) if "\n\n" not in match[0] and len(match[0]) < 400]
    for first, last in [*fenced, *inline]:
        characters[first:last] = [each if each == "\n" else " " for each in text[first:last]]
    return "".join(characters)


def _money(text: str, match: "re.Match[str]") -> bool:
    """Whether dollar signs around a piece are prices: words between them, and a number after the first."""
    inside = match["inline"]
    return bool(re.match(r"\d[\d,.]*\s+[a-z]{2,}", inside) or re.search(r"[a-z]{3,} [a-z]{2,} [a-z]{2,}", inside)) and (
        "\\" not in inside
    )


def _arithmetic(prose: str) -> Iterator[tuple[int, int]]:
    """Equations between numbers that stand in prose without delimiters."""
    for match in ARITHMETIC.finditer(prose):
        start, end = match.span()
        piece = match[0]
        while piece.count("(") < piece.count(")") and piece.endswith(")"):
            piece = piece[:-1].rstrip()
        end = start + len(piece)
        left = re.split(r"[=≈]", piece)[0]
        if piece.count("(") != piece.count(")") or not re.search(r"[+*/×÷·−^]|\d\s*-|\sx\s", left):
            continue
        if OPERATOR_BEFORE.search(prose[max(0, start - 12) : start]) or JOINED_AFTER.match(prose, end):
            continue
        if re.search(r"[A-Za-z\0]\s*$", prose[max(0, start - 3) : start]) and not re.search(
            r"(?:\b[a-z]{2,}|[a-z])\s$", prose[max(0, start - 12) : start]
        ):
            continue
        yield start, end


def _before(text: str, start: int) -> tuple[str, str]:
    window = text[max(0, start - 2 * SHOWN) : start]
    pieces = [piece for piece in SENTENCE.split(window) if piece and piece.strip()]
    ended = re.search(r"(?:[.!?]\s+|\n\s*\n\s*)$", window)
    if ended and not re.search(r"[:,]\s*$", window):
        return ("", pieces[-1][-SHOWN:] if pieces else "")
    if not pieces:
        return ("", "")
    return pieces[-1][-SHOWN:], pieces[-2][-SHOWN:] if len(pieces) > 1 else ""


def _after(text: str, end: int) -> str:
    return text[end : end + SHOWN]
