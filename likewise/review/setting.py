r"""An answer in Markdown as rows of HTML: formulas as MathML, code highlighted, tables as tables; nothing is obeyed.

Formulas are cut out before Markdown is read, which would damage them (`\|q\|` would become `|q|`). Each leaves a sign
of the private use area that the text does not have, and comes back where that sign is drawn. A row is what a person
marks: a paragraph, a heading, an item of a list, a table, a block of code.
"""

import html
import itertools
import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from likewise.claims.documents import LINE_END, markdown_parser
from likewise.review.mathml import Unset, mathml
from likewise.text import printable

if TYPE_CHECKING:
    from markdown_it.token import Token

LONGEST = 20_000  # characters between two delimiters
WIDE = 30  # characters of an inline formula that may be wider than a phone
HIGHLIGHTED = 20_000  # characters of a block of code; a longer one is shown plain
PRIVATE = range(0xE000, 0xF8FF)
LINKED = re.compile(r"https?://[^\s\"'<>]+")
OPENING = re.compile(
    r"(?<!\\)(?:\$\$|\\\[|\\\()|(?<![\\$\w])\$(?=[^\s$])"
    r"|\\begin\{(?P<name>(?:equation|align|gather|eqnarray|aligned|multline)\*?)\}"
)
CLOSING = {"$$": ("$$", True), "\\[": ("\\]", True), "\\(": ("\\)", False), "$": ("$", False)}
BLANK_LINE = re.compile(r"(?:\r\n?|\n)[ \t]*(?:\r\n?|\n)")
TICKS = re.compile(r"`+")
PREFIX = re.compile(r"[ \t>]*")


@dataclass(frozen=True)
class Formula:
    """A formula as typed, without its delimiters; `start` and `end` are offsets of the whole in the text."""

    source: str
    line: int
    column: int
    start: int
    end: int
    displayed: bool

    @property
    def last(self) -> int:
        """Its last line."""
        return self.line + len(LINE_END.findall(self.source))

    def holds(self, line: int, column: int) -> bool:
        """Whether a place lies in it; columns count from 1."""
        if not self.line <= line <= self.last:
            return False
        first = self.column if line == self.line else 1
        ends = line == self.last  # on its other lines nothing stands beside it
        return first <= column and not (ends and column > first + len(LINE_END.split(self.source)[-1]))


@dataclass(frozen=True)
class Row:
    """A block of the answer: its lines, its source, its HTML, and what kind of block it is."""

    first: int
    last: int
    kind: str
    source: str
    html: str = field(repr=False)

    @property
    def key(self) -> str:
        """Its name among the things that can be marked."""
        return str(self.first)


Beside = Callable[[Formula], str]  # HTML after a formula: links to what was found


def set_rows(
    text: str,
    formulas: Sequence[Formula],
    beside: Beside = lambda formula: "",
    *,
    starts: Sequence[int] = (1,),
) -> list[Row]:
    """The rows of an answer, in order; `beside` adds HTML after each formula.

    starts: the first lines of the turns. Each turn is a document of its own, so no row holds words of two speakers.
    """
    lines = LINE_END.split(text)
    sign, plain = _without(text, formulas)
    parser = markdown_parser().enable("strikethrough")
    drawn = re.compile(f"{sign}([0-9]*){sign}")

    def formula_html(found: re.Match[str]) -> str:
        return _formula(formulas[int(found[1])], beside) if found[1] else ""

    def text_rule(_: Any, tokens: "Sequence[Token]", place: int, *rest: Any) -> str:
        content, shown, at = tokens[place].content, "", 0
        for found in drawn.finditer(content):
            shown += escaped(content[at : found.start()]) + formula_html(found)
            at = found.end()
        return shown + escaped(content[at:])

    def restored(content: str) -> str:
        return drawn.sub(lambda found: formulas[int(found[1])].source if found[1] else "", content)

    for name, rule in {
        "text": text_rule,
        "image": lambda _, tokens, place, *rest: _picture(restored(tokens[place].content)),
        "code_inline": lambda _, tokens, place, *rest: f"<code>{escaped(restored(tokens[place].content))}</code>",
        "code_block": lambda _, tokens, place, *rest: code(restored(tokens[place].content)),
        "fence": lambda _, tokens, place, *rest: code(restored(tokens[place].content), tokens[place].info),
        "link_open": _link_open,
        "link_close": _link_close,
        "table_open": lambda *_: '<div class="table"><table>',
        "table_close": lambda *_: "</table></div>",
    }.items():
        parser.add_render_rule(name, rule)
    rows = []
    plain_lines = LINE_END.split(plain)
    cuts = sorted({0, *(start - 1 for start in starts if start <= len(lines)), len(lines)})
    for begin, end in itertools.pairwise(cuts):
        for kind, (first, last), part in _blocks(parser.parse("\n".join(plain_lines[begin:end]))):
            shown = drawn.sub("", parser.renderer.render(part, parser.options, {})).replace(sign, "")
            first, last = begin + first, begin + max(last, first + 1)
            rows.append(Row(first + 1, last, kind, "\n".join(lines[first:last]).strip("\n"), shown))
    return rows


def escaped(text: str) -> str:
    """Text for a page: nothing is markup, and what a reader would not see is written out."""
    return html.escape(re.sub(r"[^\n\t ]", lambda found: printable(found[0]), text))


def code(content: str, info: str = "") -> str:
    """A block of code, highlighted if its language is known."""
    language = (info.split() or [""])[0].lower()
    inside = _highlighted(content, language) or escaped(content)
    label = f' aria-label="{escaped(language[:40])} code"' if language else ' aria-label="code"'
    return f'<pre class="code" tabindex="0" role="group"{label}><code>{inside}</code></pre>'


def _highlighted(content: str, language: str) -> str:
    if not language or len(content) > HIGHLIGHTED:
        return ""
    import pygments
    from pygments.formatters.html import HtmlFormatter
    from pygments.lexers import get_lexer_by_name
    from pygments.util import ClassNotFound

    try:
        lexer = get_lexer_by_name(language, stripnl=False, ensurenl=False)
    except ClassNotFound:
        return ""
    return pygments.highlight(content, lexer, HtmlFormatter(nowrap=True, classprefix="c-"))


def _formula(formula: Formula, beside: Beside) -> str:
    try:
        inside = mathml(formula.source.strip(), display=formula.displayed)
    except Unset as reason:
        title = f"shown as typed: {reason}"
        inside = f'<code class="unset" title="{escaped(title)}">{escaped(formula.source)}</code>'
        inside += f'<small class="unset-note">as typed: {escaped(str(reason))}</small>'
    if formula.displayed:
        return f'<span class="formula-display"><span class="set">{inside}</span>{beside(formula)}</span>'
    wide = " wide" if len(formula.source) > WIDE else ""
    return f'<span class="formula-inline{wide}">{inside}</span>{beside(formula)}'


def _picture(described: str) -> str:
    """A page that stands alone fetches no picture; what the picture is said to show remains."""
    return f'<span class="picture">[picture: {escaped(described)}]</span>'


def _link_open(_: Any, tokens: "Sequence[Token]", place: int, *rest: Any) -> str:
    address = str(tokens[place].attrGet("href") or "")
    if not LINKED.fullmatch(address):
        return '<span class="no-link">'
    return f'<a href="{html.escape(address)}" rel="noopener noreferrer nofollow">'


def _link_close(_: Any, tokens: "Sequence[Token]", place: int, *rest: Any) -> str:
    depth = 0
    for token in reversed(tokens[: place + 1]):
        depth += {"link_close": 1, "link_open": -1}.get(token.type, 0)
        if depth == 0:
            return "</a>" if LINKED.fullmatch(str(token.attrGet("href") or "")) else "</span>"
    return ""


def _without(text: str, formulas: Sequence[Formula]) -> tuple[str, str]:
    """A sign that the text does not have, and the text with every formula replaced; no line is lost or added."""
    used = set(text)
    sign = next(chr(number) for number in PRIVATE if chr(number) not in used)
    pieces, at = [], 0
    for number, formula in enumerate(formulas):
        if formula.start < at:
            continue
        pieces.append(text[at : formula.start])
        others = LINE_END.split(text[formula.start : formula.end])[1:]
        pieces.append(f"{sign}{number}{sign}")
        for line in others:
            prefix = PREFIX.match(line)
            pieces.append(f"\n{prefix[0] if prefix else ''}{sign}{sign}")
        at = formula.end
    return sign, "".join([*pieces, text[at:]])


def _blocks(tokens: "Sequence[Token]") -> Iterator[tuple[str, tuple[int, int], "list[Token]"]]:
    """Top-level blocks with their lines; a list becomes one list for each item, with its number."""
    start, depth, last = 0, 0, 0
    for place, token in enumerate(tokens):
        depth += token.nesting
        if depth:
            continue
        part = list(tokens[start : place + 1])
        start = place + 1
        first = part[0]
        here = (first.map[0], first.map[1]) if first.map else (last, last + 1)
        last = here[1]
        if first.type in ("bullet_list_open", "ordered_list_open"):
            yield from _items(part, first.type == "ordered_list_open")
        elif first.type != "hr":
            yield first.type.removesuffix("_open"), here, part


def _items(part: "list[Token]", numbered: bool) -> Iterator[tuple[str, tuple[int, int], "list[Token]"]]:
    opening, closing = part[0], part[-1]
    start, depth, number = 1, 0, int(opening.attrGet("start") or 1)
    for place, token in enumerate(part[1:-1], start=1):
        depth += token.nesting
        if depth:
            continue
        head = opening.copy()
        if numbered:
            head.attrs = {"start": number}
        first, last = part[start].map or opening.map or (0, 1)
        yield "item", (first, last), [head, *part[start : place + 1], closing]
        start, number = place + 1, number + 1


def find_formulas(text: str) -> list[Formula]:
    r"""The formulas between `$`, `$$`, `\(`, `\[` and in displayed environments, outside code, in order.

    >>> [(each.source, each.line, each.column) for each in find_formulas("It costs $5 and $6.\nSo $a=b$.")]
    [('a=b', 2, 5)]
    """
    starts = [0, *(found.end() for found in LINE_END.finditer(text))]
    searched = _without_code(text, starts)
    found, at = [], 0
    nowhere: set[str] = set()  # the closing delimiters that do not come any more, so that a search is not repeated
    while opening := OPENING.search(searched, at):
        at = opening.end()
        close, displayed = CLOSING.get(opening[0], (f"\\end{{{opening['name']}}}", True))
        if close in nowhere:
            continue
        end = searched.find(close, at)
        if end < 0:
            nowhere.add(close)
            continue
        if end - at > LONGEST:
            continue
        inside = searched[at:end]
        if close == "$" and not _is_inline(inside, searched[end + 1 : end + 2]):
            continue
        if not inside.strip() or BLANK_LINE.search(inside):
            continue
        environment = opening["name"] is not None
        first, last = (opening.start(), end + len(close)) if environment else (at, end)
        line = bisect_right(starts, first)
        column = first - starts[line - 1] + 1
        found.append(Formula(text[first:last], line, column, opening.start(), end + len(close), displayed))
        at = end + len(close)
    return found


def _is_inline(inside: str, after: str) -> bool:
    """Whether text between two dollar signs is a formula, and not two prices."""
    return not (inside[:1].isspace() or inside[-1:].isspace() or inside[-1:] == "\\" or after.isdigit())


def _without_code(text: str, starts: list[int]) -> str:
    """The text with code as blanks, so that offsets stay."""
    spans = [
        (starts[token.map[0]], starts[token.map[1]] if token.map[1] < len(starts) else len(text))
        for token in markdown_parser().disable("inline").parse(text)
        if token.type == "fence" and token.map
    ]
    signs = list(text)
    for first, last in spans:
        signs[first:last] = [sign if sign in "\r\n" else " " for sign in signs[first:last]]
    fenced = "".join(signs)
    runs: dict[int, list[int]] = {}
    ticks = list(TICKS.finditer(fenced))
    for run in ticks:
        runs.setdefault(len(run[0]), []).append(run.start())
    at = 0
    for run in ticks:
        same = runs[len(run[0])]
        after = bisect_right(same, run.start())
        if run.start() < at or after == len(same) or BLANK_LINE.search(fenced, run.end(), same[after]):
            continue
        at = same[after] + len(run[0])
        signs[run.start() : at] = [sign if sign in "\r\n" else " " for sign in signs[run.start() : at]]
    return "".join(signs)
