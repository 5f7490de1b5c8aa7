r"""LaTeX formulas as MathML Core, built from an allow-list; what cannot be set is left to be shown as it is typed.

latex2mathml reads the structure (MIT, pure Python, no dependency; with what is changed here it sets all 913 different
formulas of five transcripts). Its output is not used as it is: `\text{<script>}` and `\href{javascript:...}` pass
through it. Its tree is rebuilt here from elements and attributes that are known, and every text is escaped. `aligned`
and its kin become tables.
"""

import functools
import html
import re
from typing import TYPE_CHECKING
from xml.sax.saxutils import escape, quoteattr

from likewise.checks import require_package

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

LONGEST = 4_000  # characters of a formula
DEEPEST = 60  # nested groups
ELEMENTS = frozenset(
    [
        *("math", "mrow", "mi", "mn", "mo", "mtext", "mspace", "mstyle", "mpadded", "mphantom", "menclose"),
        *("msub", "msup", "msubsup", "munder", "mover", "munderover"),
        *("mfrac", "msqrt", "mroot", "mtable", "mtr", "mtd"),
    ]
)
WORDS = frozenset(
    ("stretchy", "fence", "separator", "movablelimits", "accent", "accentunder", "largeop", "symmetric", "displaystyle")
)
LENGTHS = frozenset(("minsize", "maxsize", "lspace", "rspace", "width", "height", "depth", "voffset", "linethickness"))
LENGTH = re.compile(r"[-+]?\d{0,2}(?:\.\d{1,4})?(?:em|ex|px|pt|%)?")
# Macros are not expanded: a few lines of them can grow beyond all bounds.
DEFINING = re.compile(r"\\(?:[gex]?def|let|(?:re|provide)?newcommand|newenvironment|DeclareMathOperator|require)\b")
ALIGNED = re.compile(r"\\(begin|end)\{(?:aligned|align|alignat|split|eqnarray|gathered|gather|multline|equation)\*?\}")
UNSEEN = re.compile(r"\\(?:label\{[^{}]*\}|nonumber|notag|displaystyle\b|limits\b|middle\b)")
NESTING = re.compile(r"\\(?:left|begin|right|end)(?![a-zA-Z])|[{}]")
WRAPPED = 30  # characters of a formula that is cut before its relations, so that it wraps on a narrow screen
RELATIONS = frozenset("=<>≤≥≠≈≡\N{TILDE OPERATOR}≃≅∝∈∉⊂⊆⪯⪰≪≫→⇒⇔⟹⟺⟸≔↦")
BRACKETS = {**dict.fromkeys("([{⌊⌈⟨", 1), **dict.fromkeys(")]}⌋⌉⟩", -1)}
WIDE_SPACE = ("1em", "2em")  # of \\quad and \\qquad
BOLD = {"bold": (0x1D400, 0x1D41A, 0x1D7CE), "bold-italic": (0x1D468, 0x1D482, 0x1D7CE)}  # of A, a and 0


class Unset(Exception):
    """A formula that cannot be set; the text is the reason."""


@functools.lru_cache(maxsize=4096)
def mathml(latex: str, *, display: bool = False) -> str:
    r"""The formula as a `<math>` element, or `Unset` with the reason.

    A long one becomes several, cut before its outer relations and after wide spaces: browsers do not break one element.

    >>> print(mathml("a<b"))
    <math display="inline" alttext="a&lt;b"><mrow><mi>a</mi><mo>&lt;</mo><mi>b</mi></mrow></math>
    """
    require_package("review", "latex2mathml")
    from latex2mathml.converter import convert_to_element

    if len(latex) > LONGEST:
        raise Unset(f"longer than {LONGEST:,} characters")
    if _depth(latex) > DEEPEST:
        raise Unset(f"nested more than {DEEPEST} deep")
    if found := DEFINING.search(latex):
        raise Unset(f"macros are not expanded: {found[0]}")
    try:
        tree = convert_to_element(_prepared(latex), display="block" if display else "inline")
        pieces = _pieces(tree) if len(latex) > WRAPPED else []
        return _wrapped(pieces, display=display) if len(pieces) > 1 else _element(tree, alttext=latex)
    except Unset:
        raise
    except (Exception, RecursionError) as error:  # a parser of another project, fed with anything
        raise Unset(f"{type(error).__name__} of latex2mathml") from None


def _pieces(tree: "Element") -> "list[list[Element]]":
    """The parts of a formula between which a line may be broken."""
    row = tree[0] if len(tree) == 1 and _tag(tree[0]) == "mrow" else tree
    pieces: list[list[Element]] = [[]]
    depth = 0
    for node in row:
        sign = html.unescape(node.text or "") if _tag(node) == "mo" else ""
        depth += BRACKETS.get(sign, 0)
        if sign in RELATIONS and depth == 0 and any(_tag(each) != "mo" for each in pieces[-1]):
            pieces.append([])
        pieces[-1].append(node)
        if _tag(node) == "mspace" and node.get("width") in WIDE_SPACE and depth == 0:
            pieces.append([])
    return [piece for piece in pieces if piece]


def _wrapped(pieces: "list[list[Element]]", *, display: bool) -> str:
    style = "true" if display else "false"
    inside = ("".join(map(_element, piece)) for piece in pieces)
    return "<wbr>".join(f'<math display="inline" displaystyle="{style}"><mrow>{each}</mrow></math>' for each in inside)


def _tag(node: "Element") -> str:
    return node.tag.rpartition("}")[2]


def _depth(latex: str) -> int:
    deepest = depth = 0
    for sign in NESTING.findall(latex):
        depth += 1 if sign in ("{", "\\left", "\\begin") else -1
        deepest = max(deepest, depth)
    return deepest


def _prepared(latex: str) -> str:
    return UNSEEN.sub(" ", ALIGNED.sub(r"\\\1{align*}", latex)) or " "


def _element(node: "Element", alttext: str | None = None) -> str:
    tag = _tag(node)
    if tag not in ELEMENTS:
        raise Unset(f"there is no {tag} in MathML Core")
    text = html.unescape(node.text or "").strip("\n")
    variant = node.get("mathvariant", "")
    if tag == "mi" and (text.startswith("\\") or text == "&"):
        raise Unset(f"{text} is not known" if text != "&" else "an & stands outside a table")
    if tag in ("mi", "mn") and variant in BOLD:
        text = "".join(_bold(sign, BOLD[variant]) for sign in text)
    attributes = {name: value for name, value in node.items() if _allowed(name, value)}
    if tag == "mi" and variant == "normal":
        attributes["mathvariant"] = "normal"
    if tag == "mtd" and node.get("columnalign") in ("left", "right"):
        attributes["class"] = node.get("columnalign", "")
    if tag == "menclose":  # not part of MathML Core; the style sheet draws the box
        tag, attributes = "mrow", {"class": "boxed"}
    if alttext is not None:
        attributes["alttext"] = _visible(alttext)
    inside = escape(_visible(text)) + "".join(map(_element, node))
    return f"<{tag}{''.join(f' {name}={quoteattr(value)}' for name, value in attributes.items())}>{inside}</{tag}>"


def _allowed(name: str, value: str) -> bool:
    if name in WORDS:
        return value in ("true", "false")
    if name in LENGTHS:
        return bool(LENGTH.fullmatch(value))
    return (name, value) in {("display", "block"), ("display", "inline"), ("form", "prefix"), ("form", "postfix")} or (
        name == "scriptlevel" and value in ("0", "1", "2")
    )


def _visible(text: str) -> str:
    """Without what XML does not have, and what turns the direction of writing."""
    return "".join(sign for sign in text if sign.isprintable() or sign in "\n\u00a0\u2009\u2061\u2062\u200a\u2003")


def _bold(sign: str, starts: tuple[int, int, int]) -> str:
    for first, start, count in (("A", starts[0], 26), ("a", starts[1], 26), ("0", starts[2], 10)):
        if 0 <= ord(sign) - ord(first) < count:
            return chr(start + ord(sign) - ord(first))
    return sign
