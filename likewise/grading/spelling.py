r"""The text of an answer in one spelling: what people type, and short forms of LaTeX, as commands that are read."""

import re
import unicodedata
from collections.abc import Callable
from functools import lru_cache

from likewise.grading.units import unit_of
from likewise.reading.latex import Unread

LONGEST = 2_000  # characters of a final answer
SPELLED = (
    "alpha|beta|gamma|delta|epsilon|theta|kappa|lambda|mu|nu|rho|sigma|tau|phi|psi|omega"
    "|Omega|Theta|Gamma|Delta|Sigma|pi"
)
SUPERSCRIPTS = dict(zip("⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻ⁿ", "0123456789+-n", strict=True))
LAW_NAMES = "Bernoulli|Bern|Ber|Binomial|Bin|Poisson|Poi|Uniform|Unif|Geometric|Geom|Geo|Normal|Exponential|Beta|Dir"
INTEGERS = re.compile(  # at the end: k is an integer; any integer k; k \in \mathbb{Z}
    r"(?:integers?\s+([kmnlj])|(?<![A-Za-z\\])([kmnlj])\s*(?:\\text\s*\{\s*)?is\s+any?\s+integer"
    r"|(?<![A-Za-z\\])([kmnlj])\s*(?:\\in|∈|in)\s*(?:\\mathbb\s*\{?\s*Z\s*\}?|ℤ|Z))[\s})]*$"
)
JOINING = re.compile(r"(?:\\q?quad|\\[ ,;]|\\text\s*\{|[(,;]|\b(?:where|for|with|any|some|all|every|each))\s*$")
CONGRUENT = re.compile(
    r"((?:≡|\\equiv)[^\\]*?)\s*\(?\s*(?:\\[bp]?mod|\\text\s*\{\s*mod\s*\}|\\operatorname\{mod\}|\bmod)(?![A-Za-z{])"
    r"\s*([A-Za-z\d]+)\s*\)?$"
)
CHOOSE = re.compile(r"\{([^{}]*)\\choose(?![A-Za-z])([^{}]*)\}|^([^{}\\]+)\\choose(?![A-Za-z])([^{}\\]+)$")
GROUPED = re.compile(r"(?<![\w.,\\])\d{1,3}(?:(?: |\\,|\\;|\u2009|\u202f|\u00a0|~)\d{3})+(?![\w.,]\d|\d)")  # 1 000 000
UPRIGHT = re.compile(r"\\mathrm\s*\{((?:[^{}]|\{[^{}]*\})*\\,(?:[^{}]|\{[^{}]*\})*)\}")  # m\,s^{-2}
DOUBLED = re.compile(  # \\frac, escaped twice; a new row before a command keeps a space
    r"\\\\(?=(?:[dt]?frac|sqrt|left|right|pi|cdot|times|text|boxed|mathrm|mathbb|infty|[lg]eq?|pm|cup|in)(?![A-Za-z]))(?!.*\\begin)",
    re.S,
)
UPRIGHT_WORD = r"\\(?:text|mathrm)\s*\{\s*([A-Za-z ]+(?:\^\d)?)\s*\}(\^\d)?"
UNIT_QUOTIENT = re.compile(rf"\\frac\s*\{{\s*{UPRIGHT_WORD}\s*\}}\s*\{{\s*{UPRIGHT_WORD}\s*\}}")
ENDS = r"(\s*[^\[\](){}]+,[^\[\](){}]+)"  # of an interval with outward brackets
STARRED = re.compile(
    r"^((?:\\(?:mathbf|boldsymbol|bm|hat)\s*)?\{?\\?[A-Za-z]+\}?)\s*\^\s*\{?\s*(?:\*|\\ast|\\star)\s*\}?\s*(?==)"
)
VALUED = re.compile(  # a derivative, limit or integral whose value is stated: dL/dz = p - y
    r"^((?:\\nabla(?:_(?:\{[^{}]*\}|\\?\w+))?\s*(?:\\?[A-Za-z]+|\\mathcal\s*\{?[A-Za-z]\}?)(?:\([^()=]*\))?"
    r"|\\[dt]?frac\s*\{\s*(?:d|\\partial|\\mathrm\s*\{d\})(?:[^{}]|\{[^{}]*\})*\}\s*"
    r"\{\s*(?:d|\\partial|\\mathrm\s*\{d\})(?:[^{}]|\{[^{}]*\})+\}"
    r"|\\lim_\{[^{}]*\}[^=+]*|\\int(?![A-Za-z])[^=]*d\s*\\?[A-Za-z]+))\s*=(?=[^=]*$)"
)


def _micro(match: "re.Match[str]") -> str:
    """Microseconds and micrometres, whose prefix is typed as the letter mu."""
    return rf" \text{{ µ{match[1] or match[2]}}}"


TYPED: tuple[tuple[re.Pattern[str], str | Callable[[re.Match[str]], str]], ...] = (
    (re.compile(r"(?<=[\w)}\]])[⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻ⁿ]{2,}|[⁰¹⁴⁵⁶⁷⁸⁹ⁿ]"), lambda m: _raised(m[0])),
    (re.compile(r"\\[dtc]frac(?![A-Za-z])"), r"\\frac"),
    (re.compile(r"\\[dt]?binom\s*([A-Za-z\d])\s*([A-Za-z\d])"), r"\\binom{\1}{\2}"),
    (CHOOSE, lambda m: rf"{{\binom{{{m[1] or m[3]}}}{{{m[2] or m[4]}}}}}"),
    (DOUBLED, r"\\"),
    (re.compile(r"\\(q?quad)(?=[A-Za-z])"), r"\\\1 "),
    (re.compile(r"\\text(?:normal|rm|up|it|sf|tt|md|sl)(?![A-Za-z])"), r"\\text"),
    (re.compile(r"(?<=\d)\s+x\s+(?=\d)"), r"\\times "),
    (UNIT_QUOTIENT, lambda m: _quotient_of_units(f"{m[1]}{m[2] or ''}/{m[3]}{m[4] or ''}", m[0])),
    (re.compile(r"(?:^|\{\})[_^]\{?(\w+)\}?\s*C_\{?(\w+)\}?"), r"\\binom{\1}{\2}"),
    (re.compile(r"(?<![\w.])(\d+)\.(\d*)\((\d+)\)"), lambda m: _bracketed(*m.groups())),
    (re.compile(r"(?<=\d)\\dot\s*\{?(\d)\}?$|(?<=\d\.)\\dot\s*\{?(\d)\}?$"), r"\\overline{\1\2}"),
    (re.compile(r"(?<![\w./^_])(\d+) (\d+)/(\d+)(?![\w./^])"), lambda m: _mixed(*m.groups())),
    (GROUPED, lambda m: re.sub(r"\D", "", m[0])),
    (re.compile(rf"(?<![\\A-Za-z{{])({LAW_NAMES})(?=\s*\()"), r"\\mathrm{\1}"),
    (re.compile(r"\\pmod\s*([A-Za-z\d]+)"), r"\\pmod{\1}"),
    (CONGRUENT, r"\1 \\pmod{\2}"),
    (re.compile(r"^\{\s*\}$"), r"\\emptyset"),
    (re.compile(r"^\{([^{}]*,[^{}]*)\}$"), r"\\{\1\\}"),  # {1, 2} as typed is a set, no invisible group
    (re.compile(rf"^\]{ENDS}\[$"), r"(\1)"),  # ]0, 1[
    (re.compile(rf"^\]{ENDS}\]$"), r"(\1]"),
    (re.compile(rf"^\[{ENDS}\[$"), r"[\1)"),
    (UPRIGHT, lambda m: _spaced_unit(m[1], m[0])),
    (re.compile(r"^[^\\]*(?:@|[A-Za-z)]\.(?:m?T|transpose\())[^\\]*$"), lambda m: _typed_matrices(m[0])),
    (STARRED, r"\1_{\\text{star}} "),
    (VALUED, lambda m: rf"\text{{ValueOf{re.sub(r'[^A-Za-z0-9]', '', m[1]).replace('x', 'xx')}}} = "),
    (
        re.compile(r"(?<=\d)(?:\\[ ,;]|\s)*(?:\\mu\s*|[µμ])(?:\\(?:text|mathrm)\s*\{\s*([smgLA])\s*\}|([smgLA]))$"),
        _micro,
    ),
    (re.compile(r"^(?:torch\.)?Size\(\s*(\[[^\]]*\])\s*\)$"), r"\1"),
    (re.compile(r"^(?:the\s+)?shape\s*:?\s*(?=[(\[])", re.I), ""),
    (re.compile(r"^(?:all real numbers|all reals|the real numbers|any real number)$", re.I), r"\\mathbb{R}"),
    (re.compile(r"^(?:there (?:is|are) )?(?:no (?:real )?solutions?|(?:the )?empty set)$", re.I), r"\\emptyset"),
)
TEMPERATURE = re.compile(
    r"\\(?:text|mathrm|rm)\s*\{\s*(?:°|degrees?)\s*(C|F)[a-z]*\s*\}"
    r"|(?:\^\s*\{?\s*(?:\\circ|\\degree|°)\s*\}?|\\degree|°|(?<=\d)\s*degrees?)(?:\\[ ,;]|\s)*"
    r"(?:\\(?:text|mathrm|rm)\s*\{\s*(C|F)(?:elsius|ahrenheit)?\s*\}|(C|F)(?:elsius|ahrenheit)?(?![A-Za-z]))"
)
DEGREES = {"C": "celsius", "F": "fahrenheit"}


@lru_cache(maxsize=64)  # one comparison asks several times
def cleaned(text: str) -> str:
    r"""The text of an answer without delimiters, with one spelling of what people write in several ways.

    >>> cleaned("$2**3 != 1e-3$.")
    '2^3 \\neq  1\\cdot 10^{-3}'
    """
    text = "".join(_plain_letter(each) for each in text).strip()
    if re.search(r"(?<!\.\d)(?<!\d\d)\.{2,}$|\\[lc]?dots\W*$", text):
        raise Unread("an answer that is not complete (...)")
    for _ in range(4):
        before = text
        text = text.strip().rstrip(".,;:!" if not re.search(r"[\w)}\]]!+$", text) else ".,;:").strip()
        for opening, closing in (("$$", "$$"), ("$", "$"), (r"\(", r"\)"), (r"\[", r"\]"), ("**", "**"), ("`", "`")):
            inner = text[len(opening) : len(text) - len(closing)]
            if len(text) > len(opening + closing) and text.startswith(opening) and text.endswith(closing):
                text = inner if opening not in inner and closing not in inner else text
        if text == before:
            break
    if len(text) > LONGEST:
        raise Unread(f"longer than {LONGEST:,} characters")
    text = TEMPERATURE.sub(lambda match: rf"\text{{ {DEGREES[match[1] or match[2] or match[3]]}}}", text)
    for pattern, put in TYPED:
        text = pattern.sub(put, text)
    text = _for_integers(text)
    if re.search(r"\d\s*x\s*\d|[A-Za-z0-9]\s+x\s+[A-Za-z0-9]", text):
        raise Unread("an x that may be a sign of multiplication")
    if re.search(r"(?<![A-Za-z\\])d[a-zA-Z]?\s*/\s*d[a-zA-Z](?![A-Za-z])", text):
        raise Unread("a derivative")
    if re.match(r"~\s*[\d$]", text):
        raise Unread("an approximation")
    if re.fullmatch(r"\d{4}-\d\d?-\d\d?|\d\d?/\d\d?/\d{2,4}", text):
        raise Unread("a date, or a difference or quotient of three numbers")
    if re.search(r"\\(?:[bx]?cancel|st|sout|not)(?![A-Za-z])", text):
        raise Unread("a part that is struck out")
    text = re.sub(r"(?<!\\)%", r"\\%", text)
    text = re.sub(r"\\(?:dollar|\$)|(?<!\\)\$(?=\s*\d)", r"\\$", text)
    text = text.replace("**", "^").replace("!=", r"\neq ").replace(r"\ne ", r"\neq ")
    text = re.sub(r"(?<![\w.\\])(\d+(?:\.\d+)?)[eE]([+-]?\d+)(?!\w)", r"\1\\cdot 10^{\2}", text)
    text = re.sub(rf"(?<![\\A-Za-z])({SPELLED})(?![A-Za-z])", r"\\\1 ", text)
    text = re.sub(r"(?<![\\A-Za-z])(?:infinity|infty|inf)(?![A-Za-z])|∞", r"\\infty ", text)
    text = re.sub(r"(?<![\\A-Za-z])(sqrt|relu|ReLU|sigmoid|softmax)\s*(?=\()", r"\\operatorname{\1}", text)
    text = re.sub(r"(?<![\\A-Za-z])(arcsin|arccos|arctan|sinh|cosh)(?![A-Za-z])", r"\\\1 ", text)
    text = re.sub(
        r"(?<=[(\[{,])(\s*\d{1,3}),(?=\d{3}\s*[,)\]}])",
        lambda m: f"{m[1]}, " if re.search(r"[(\[{][^)\]}]*$", m.string[: m.start()]) else m[0],
        text,
    )
    text = re.sub(r"\\(?:displaystyle|left|right|limits)(?![A-Za-z])\s*", "", text)
    text = re.sub(r"\^\s*(\\circ|°)", r"^{\\circ}", text)
    text = re.sub(r"(\d),\\!\s*(?=\d{3})", r"\1,", text)
    text = re.sub(r"\\(?:text|mathrm|textbf|mathbf|mbox)\s*\{\s*\\?\$\s*\}", r"\\$", text)
    text = re.sub(r"\\text\s*\{\s*(-?\d[\d.,]*)\s+([A-Za-z][A-Za-z ]*)\}", r"\1 \\text{ \2}", text)
    text = re.sub(r"(?<=[)\]}\d])\s*(or|and)\s*(?=[(\[{\\\d-])", r"\\text{ \1 }", text)
    text = re.sub(r"(?<=[\d}])\s*\\(?:mathrm|text|operatorname)\s*\{\s*min\s*\}", r"\\text{ minutes}", text)
    text = re.sub(r"^([^{}\\]+)\\over(?![A-Za-z])([^{}\\]+)$", r"\\frac{\1}{\2}", text)
    text = re.sub(r"\{([^{}]*)\\over(?![A-Za-z])([^{}]*)\}", r"\\frac{\1}{\2}", text)
    text = re.sub(r"(\d+)\.(\d*)\\overline\s*\{\s*(\d+)\s*\}", _repeating, text)
    return text.strip()


NUMBERS = [
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve",
    "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen",
]  # fmt: skip
TENS = ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]
SHARES = {
    "half": 2,
    "halve": 2,
    "third": 3,
    "quarter": 4,
    "fourth": 4,
    "fifth": 5,
    "sixth": 6,
    "eighth": 8,
    "tenth": 10,
}


def spelled_number(text: str) -> str:
    """A number in words as digits, or nothing.

    >>> spelled_number("twenty-one"), spelled_number("three quarters"), spelled_number("one of two")
    ('21', '3/4', '')
    """
    words = re.findall(r"[a-z]+", text.lower()) if re.fullmatch(r"[A-Za-z -]{3,30}\.?", text.strip()) else []
    if words and words[0] in TENS and len(words) < 3:
        rest = NUMBERS[:10].index(words[1]) if words[1:] and words[1] in NUMBERS[1:10] else 0
        return str(10 * TENS.index(words[0]) + 20 + rest) if rest or len(words) == 1 else ""
    if len(words) == 2 and words[0] in ("a", *NUMBERS[1:]) and (share := SHARES.get(words[1].removesuffix("s"))):
        return f"{1 if words[0] == 'a' else NUMBERS.index(words[0])}/{share}"
    return str(NUMBERS.index(words[0])) if len(words) == 1 and words[0] in NUMBERS else ""


def _for_integers(text: str) -> str:
    """2*pi*k, where k is an integer, with its last words as a formula."""
    start = max(len(text) - 90, 0)
    found = INTEGERS.search(text, start)
    if not found:
        return text
    before = text[: found.start()].rstrip()
    while joining := JOINING.search(before, start):
        before = before[: joining.start()].rstrip()
    return rf"{before}, {found[1] or found[2] or found[3]} \in \mathbb{{Z}}" if before else text


def _raised(text: str) -> str:
    return f"^{{{''.join(SUPERSCRIPTS[each] for each in text)}}}"


def _bracketed(whole: str, before: str, again: str) -> str:
    """0.(3) is a repeating decimal; 0.1(6) may be a product."""
    if before:
        raise Unread("a repeating decimal or a product")
    return rf"{whole}.\overline{{{again}}}"


def _mixed(whole: str, above: str, below: str) -> str:
    """1 1/2, typed, is a mixed number if the fraction is proper."""
    return rf"{whole}\frac{{{above}}}{{{below}}}" if int(above) < int(below) else f"{whole} {above}/{below}"


def _typed_matrices(text: str) -> str:
    """Products and transposes of matrices in Python: Q @ K.T, k.transpose(-2, -1)."""
    text = re.sub(r"\b(?:torch|np|jnp|F|nn|functional)\.(?=\w)", "", text)
    text = re.sub(r"\.transpose\(\s*(?:-2\s*,\s*-1|-1\s*,\s*-2)\s*\)|\.m?T\b", "^T", text)
    text = re.sub(r"\s*,\s*(?:dim|axis)\s*=\s*-1\s*(?=\))", "", text)
    return re.sub(r"\s*@\s*", " ", text)


def _spaced_unit(inside: str, before: str) -> str:
    r"""A unit with spaces inside one command for upright letters: m\,s^{-2}."""
    plain = re.sub(r"\^\s*\{\s*(-?\d+)\s*\}", r"^\1", re.sub(r"\\[,;! ]", " ", inside)).strip()
    return rf"\text{{ {plain}}}" if unit_of(plain) else before


def _quotient_of_units(unit: str, before: str) -> str:
    """A fraction of units in one command: km/h."""
    return rf"\text{{ {unit}}}" if unit_of(unit) else before


def _repeating(match: re.Match[str]) -> str:
    """A repeating decimal as a fraction: 0.1 with 6 repeated is 15/90."""
    whole, before, again = match[1], match[2], match[3]
    top = int(whole + before + again) - int(whole + before)
    return rf"\frac{{{top}}}{{{10 ** len(before) * (10 ** len(again) - 1)}}}"


def _plain_letter(character: str) -> str:
    """Full-width and mathematical letters as plain ones; other look-alikes stay, and are not read."""
    if character.isascii():
        return character
    name = unicodedata.name(character, "")
    if name.startswith("VULGAR FRACTION") and "⁄" in (parts := unicodedata.normalize("NFKC", character))[:-1]:
        above, _, below = parts.partition("⁄")
        return rf"\frac{{{above}}}{{{below}}}"
    if name.startswith(("FULLWIDTH", "MATHEMATICAL", "IDEOGRAPHIC SPACE")):
        return unicodedata.normalize("NFKC", character)
    if name.startswith("SUBSCRIPT") and character.isdigit():
        return f"_{unicodedata.digit(character)}"
    return character
