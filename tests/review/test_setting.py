"""An answer is set as its author wrote it: formulas as MathML, tables as tables, and nothing in it is obeyed."""

import re
import time
from html.parser import HTMLParser

import pytest

from likewise.review.mathml import Unset, mathml
from likewise.review.setting import find_formulas, set_rows
from tests.review.payloads import ALL, LATEX


def sources(text: str) -> list[str]:
    return [each.source for each in find_formulas(text)]


def rows(text: str) -> list[str]:
    return [row.html for row in set_rows(text, find_formulas(text))]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("so $a=b$ and \\(c\\)", ["a=b", "c"]),
        ("$$\nx\n$$\n\n\\[ y \\]", ["\nx\n", " y "]),
        ("it costs $5 and $6, or $7.50", []),
        ("`$a$` and ``$b` $`` and $c$", ["c"]),
        ("```\n$a$\n```\n$b$", ["b"]),
        ("~~~\n\\[a\\]\n~~~", []),
        ("\\$5$ and \\\\(a\\)", []),
        ("$a\n\nb$", []),
        ("$$a$$b$$c$$", ["a", "c"]),
        ("\\begin{align*}a&=b\\\\c&=d\\end{align*}", ["\\begin{align*}a&=b\\\\c&=d\\end{align*}"]),
        ("\\[ unclosed and $x$", ["x"]),
        ("$ a $ is no formula, $$ $$ neither", []),
    ],
)
def test_formulas_are_found_between_their_delimiters(text: str, found: list[str]) -> None:
    assert sources(text) == found


def test_places_count_lines_and_columns_from_one() -> None:
    found = find_formulas("# A\r\nSo $a$,\n> $$\n> b\n> $$\n")
    assert [(each.line, each.column, each.last, each.displayed) for each in found] == [
        (2, 5, 2, False),
        (3, 5, 5, True),
    ]
    assert [found[1].holds(4, 3), found[1].holds(6, 1), found[0].holds(2, 5), found[0].holds(2, 9)] == [
        True,
        False,
        True,
        False,
    ]


def test_norms_keep_their_bars() -> None:
    [row] = rows("so \\(\\|q\\|^2\\)")
    assert "‖" in row
    assert 'alttext="\\|q\\|^2"' in row


def test_structure_inside_a_formula_is_not_markdown() -> None:
    [row] = rows("so\n$$\n- a\n= b\n# c_d_e\n$$\nend")
    assert not re.search("<(ul|h1|em)>", row)
    assert "end" in row


def test_what_cannot_be_set_is_shown_as_typed_and_says_why() -> None:
    [row] = rows("so $\\foo{x}$.")
    assert '<code class="unset" title="shown as typed: \\foo is not known">\\foo{x}</code>' in row


def test_a_row_is_a_block_and_an_item_of_a_list_is_one() -> None:
    text = "# T\n\npara\nmore\n\n3. a\n4. b\n   - c\n\n| x | y |\n|---|---|\n| 1 | 2 |\n\n```py\nz = 1\n```\n"
    found = set_rows(text, [])
    assert [(row.kind, row.first, row.last) for row in found] == [
        ("heading", 1, 1),
        ("paragraph", 3, 4),
        ("item", 6, 6),
        ("item", 7, 9),
        ("table", 10, 12),
        ("fence", 14, 16),
    ]
    assert '<ol start="4">' in found[3].html
    assert found[1].source == "para\nmore"


def test_aligned_equations_are_a_table() -> None:
    found = mathml("\\begin{aligned}a&=b\\\\&=c\\end{aligned}", display=True)
    assert found.count("<mtr>") == 2
    assert found.count('class="right"') == 2


def test_bold_letters_are_letters_of_their_own() -> None:
    assert "<mi>\N{MATHEMATICAL BOLD SMALL X}</mi>" in mathml("\\mathbf{x}")


@pytest.mark.parametrize("latex", ["", "{", "\\foo", "a & b", "\\newcommand{\\x}{y}\\x", "x" * 5000, "{" * 100])
def test_what_is_no_formula_is_refused(latex: str) -> None:
    with pytest.raises(Unset):
        mathml(latex)


KNOWN = """
p span code small div table thead tbody tr th td pre a ul ol li h1 h2 h3 h4 h5 h6 blockquote em strong s br hr
math mrow mi mn mo mtext mspace msub msup msubsup munder mover munderover mfrac msqrt mroot mtable mtr mtd mstyle
mpadded mphantom wbr
"""
ATTRIBUTES = """
class title href rel start tabindex role aria-label display alttext stretchy fence separator movablelimits accent
accentunder largeop symmetric displaystyle minsize maxsize lspace rspace width height depth voffset linethickness form
scriptlevel mathvariant
"""


class Tags(HTMLParser):
    def __init__(self, html: str) -> None:
        super().__init__()
        self.odd: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.odd += [tag] if tag not in KNOWN.split() else []
        self.odd += [name for name, _ in attrs if name not in ATTRIBUTES.split()]
        self.odd += [value or "" for name, value in attrs if name == "href" and not (value or "").startswith("http")]


def test_nothing_hostile_becomes_markup() -> None:
    for payload in ALL:
        assert Tags("".join(rows(payload))).odd == [], payload


def test_markup_would_be_found() -> None:
    assert Tags("<p onclick=1><script></script><a href='javascript:1'>").odd == ["onclick", "script", "javascript:1"]


@pytest.mark.parametrize(
    "piece", ["\\[", "$", "$$ ", "\\(", "`", "```\n", "\\begin{align}", "> ", "[", "*a ", *LATEX[-8:-5]]
)
def test_long_hostile_texts_take_no_longer_than_long_texts(piece: str) -> None:
    text = (piece * (50_000 // len(piece)))[:50_000]
    before = time.process_time()
    rows(text)
    assert time.process_time() - before < 5
