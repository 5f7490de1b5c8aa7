"""The LaTeX of one formula as a flat list of tokens; pylatexenc finds macros, groups and environments.

Nothing here knows what a formula means. What LaTeX would refuse, or what is nested too deeply, is `Unread`.
"""

import functools
import re
from dataclasses import dataclass
from typing import Any

LENGTH = 6_000  # characters of one formula
NESTING = 40  # of groups and environments
TOKENS = 3_000
UNCLOSED = 3  # braces and environments; pylatexenc tries an open one again in every way, twice as many for each


class Unread(Exception):
    """A formula, or a part of it, is not read; the text is the reason that is shown and counted."""


@dataclass(frozen=True, slots=True)
class Token:
    """kind: number, name, sign, relation, arrow, word, group, macro, matrix, row, gap, dots or other.

    The pieces of a formula may also begin with hedge (its words limit the formula) or conditions (conditions follow).
    """

    kind: str
    text: str
    inner: tuple[tuple["Token", ...], ...] = ()  # arguments of a macro, the content of a group, cells of a matrix
    style: str = ""  # cal, bb or accent of a name
    spaced: bool = False  # whether a space stands before it


UNICODE = {
    "×": r"\times ",
    "·": r"\cdot ",
    "⋅": r"\cdot ",
    "∙": r"\cdot ",
    "÷": r"\div ",
    "−": "-",
    "–": "-",
    "≤": r"\leq ",
    "≥": r"\geq ",
    "≠": r"\neq ",
    "≈": r"\approx ",
    "≡": r"\equiv ",
    "∈": r"\in ",
    "∼": r"\sim ",
    "∝": r"\propto ",
    "→": r"\rightarrow ",
    "⇒": r"\Rightarrow ",
    "⟹": r"\Rightarrow ",
    "∑": r"\sum ",
    "Σ": r"\Sigma ",
    "∏": r"\prod ",
    "√": r"\sqrt ",
    "∥": r"\|",
    "‖": r"\|",
    "ℝ": r"\mathbb{R}",
    "⊤": r"\top ",
    "ᵀ": r"^{\top}",
    "′": "'",
    "’": "'",
    "⊙": r"\odot ",
    "…": r"\ldots ",
    "∞": r"\infty ",
    "±": r"\pm ",
    "²": "^{2}",
    "³": "^{3}",
    "½": r"\frac{1}{2}",
    "°": r"^{\circ}",
    "π": r"\pi ",
    "\u00a0": " ",
    "\u2009": " ",
}
GREEK = [
    "alpha",
    "beta",
    "gamma",
    "delta",
    "epsilon",
    "varepsilon",
    "zeta",
    "eta",
    "theta",
    "vartheta",
    "iota",
    "kappa",
    "lambda",
    "mu",
    "nu",
    "xi",
    "rho",
    "sigma",
    "tau",
    "upsilon",
    "phi",
    "varphi",
    "chi",
    "psi",
    "omega",
    "Gamma",
    "Delta",
    "Theta",
    "Lambda",
    "Xi",
    "Pi",
    "Sigma",
    "Upsilon",
    "Phi",
    "Psi",
    "Omega",
    "ell",
]
LETTERS = {
    "α": "alpha",
    "β": "beta",
    "γ": "gamma",
    "δ": "delta",
    "ε": "epsilon",
    "ϵ": "epsilon",
    "η": "eta",
    "θ": "theta",
    "κ": "kappa",
    "λ": "lambda",
    "μ": "mu",
    "ν": "nu",
    "ξ": "xi",
    "ρ": "rho",
    "σ": "sigma",
    "τ": "tau",
    "φ": "phi",
    "ϕ": "phi",
    "χ": "chi",
    "ψ": "psi",
    "ω": "omega",
    "Γ": "Gamma",
    "Δ": "Delta",
    "Λ": "Lambda",
    "Φ": "Phi",
    "Ψ": "Psi",
    "Ω": "Omega",
}
SIGNS = {
    "cdot": "·",
    "times": "×",
    "ast": "*",
    "div": "/",
    "odot": "⊙",
    "otimes": "⊗",
    "circ": "°",
    "top": "⊤",
    "|": "‖",
    "Vert": "‖",
}
SIGNS |= {"lVert": "‖", "rVert": "‖", "vert": "|", "lvert": "|", "rvert": "|", "pm": "±", "mp": "±", "%": "%"}
SIGNS |= {"{": "{", "}": "}", "lfloor": "⌊", "rfloor": "⌋", "lceil": "⌈", "rceil": "⌉", "intercal": "⊤", "colon": ":"}
SIGNS |= {"langle": "⟨", "rangle": "⟩", "prime": "'", "mid": "|", "$": "$", "lbrace": "{", "rbrace": "}"}
RELATIONS = {"=": "==", "<": "<", ">": ">"}
MACRO_RELATIONS = {
    "leq": "<=",
    "le": "<=",
    "leqslant": "<=",
    "geq": ">=",
    "ge": ">=",
    "geqslant": ">=",
    "neq": "!=",
    "ne": "!=",
    "approx": "approx",
    "approxeq": "approx",
    "simeq": "approx",
    "cong": "cong",
    "equiv": "equiv",
    "in": "in",
    "sim": "sim",
    "propto": "propto",
    "ll": "ll",
    "gg": "gg",
    "lt": "<",
    "gt": ">",
    "coloneqq": ":=",
    "triangleq": ":=",
    "doteq": ":=",
    "to": "->",
    "rightarrow": "->",
    "mapsto": "->",
    "longrightarrow": "->",
    "mid": "|",
}
ARROWS = {"Rightarrow", "implies", "Longrightarrow", "Leftrightarrow", "iff", "Longleftrightarrow", "therefore"}
SPACES = {",", ";", ":", "!", " ", "thinspace", "displaystyle", "textstyle", "limits", "nolimits", "left", "right"}
SPACES |= {"big", "Big", "bigg", "Bigg", "bigl", "bigr", "Bigl", "Bigr", "biggl", "biggr", "Biggl", "Biggr", "notag"}
SPACES |= {"nonumber", "hline", "middle", "scriptstyle", "negthinspace", "allowbreak", "large", "Large"}
STYLES = {
    "mathbf",
    "boldsymbol",
    "bm",
    "bf",
    "mathrm",
    "mathit",
    "rm",
    "vec",
    "pmb",
    "mathsf",
    "underline",
    "mathstrut",
}
ACCENTS = {"hat", "bar", "tilde", "widehat", "widetilde", "dot", "ddot", "overline", "check"}
WORDS = {
    "text",
    "textbf",
    "textrm",
    "textit",
    "mbox",
    "operatorname",
    "texttt",
    "mathtt",
    "textsf",
    "emph",
    "textnormal",
}
TAKES = {"binom": 2, "dbinom": 2, "tbinom": 2, "pmod": 1, "boxed": 1, "operatorname": 1, "overset": 2, "underset": 2}
TAKES |= {
    "dfrac": 2,
    "tfrac": 2,
    "cfrac": 2,
    "underbrace": 1,
    "overbrace": 1,
    "cancel": 1,
    "tag": 1,
    "bmod": 0,
    "bm": 1,
}
TAKES |= {
    "mathtt": 1,
    "boldsymbol": 1,
    "widehat": 1,
    "pmb": 1,
    "mathsf": 1,
    "textsf": 1,
    "stackrel": 2,
    "fbox": 1,
    "phantom": 1,
    "mbox": 1,
}
DOTS = {"dots", "ldots", "cdots", "vdots", "ddots", "dotsc", "dotsb", "dotsm"}
MATRICES = {"bmatrix", "pmatrix", "matrix", "Bmatrix", "vmatrix", "Vmatrix", "smallmatrix", "array"}
ROWS = {"aligned", "align", "align*", "gathered", "gather", "gather*", "split", "equation", "equation*", "eqnarray"}
ROWS |= {"eqnarray*", "alignedat", "multline", "multline*", "flalign", "flalign*"}
FUNCTIONS = {
    "exp",
    "log",
    "ln",
    "lg",
    "sin",
    "cos",
    "tan",
    "cot",
    "sec",
    "csc",
    "arcsin",
    "arccos",
    "arctan",
    "sinh",
    "cosh",
    "tanh",
    "max",
    "min",
    "gcd",
    "lcm",
    "det",
    "dim",
}
FUNCTIONS |= {"sup", "inf", "lim", "Pr", "deg", "arg", "ker", "hom"}
SPOKEN = FUNCTIONS | {
    "sqrt",
    "relu",
    "ReLU",
    "softmax",
    "sigmoid",
    "Var",
    "Cov",
    "tr",
    "Tr",
    "vec",
    "diag",
    "sim",
    "sgn",
    "sign",
    "rank",
    "argmax",
    "mod",
    "Attention",
}
WORD = 5  # letters in a row that are a word, although nothing marks them as one
NUMBER = re.compile(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\{,\}\d{3})+|\d+(?:\.\d+)?|\.\d+")
LETTER_RUN = re.compile(r"[A-Za-z]+")


def tokens(source: str) -> list[Token]:
    r"""The tokens of a formula, without its delimiters.

    >>> [each.text for each in tokens(r"\frac{1}{2}x^2 \leq 3{,}000")]
    ['frac', 'x', '^', '2', '<=', '3000']
    """
    if len(source) > LENGTH:
        raise Unread(f"longer than {LENGTH:,} characters")
    text = source.replace("{,}", "")
    if not text.isascii():
        text = "".join(UNICODE.get(character, character) for character in text)
    if _depth(text) > NESTING:
        raise Unread(f"nested more than {NESTING} deep")
    if _unclosed(text) > UNCLOSED:
        raise Unread("braces that do not match")
    from pylatexenc.latexwalker import LatexWalker

    try:
        nodes = LatexWalker(text, latex_context=_macros(), tolerant_parsing=True).get_latex_nodes()[0]
        found = list(_flat(nodes))
    except (RecursionError, IndexError, ValueError, AttributeError, TypeError) as error:
        raise Unread("not LaTeX") from error
    if len(found) > TOKENS:
        raise Unread(f"more than {TOKENS:,} tokens")
    return found


@functools.cache
def _macros() -> Any:
    from pylatexenc.latexwalker import get_default_latex_context_db

    return get_default_latex_context_db()


def _depth(text: str) -> int:
    """How deeply braces, brackets and environments are nested, and how long a run of macros without argument is."""
    depth = deepest = 0
    for piece in re.finditer(r"\\begin\b|\\end\b|\\[A-Za-z]+|\\.|[{}\[\]()]", text):
        if piece[0] in ("{", "[", "(", r"\begin"):
            depth += 1
        elif piece[0] in ("}", "]", ")", r"\end"):
            depth -= 1
        deepest = max(deepest, depth)
    runs = [len(run[0]) for run in re.finditer(r"(?:\\[A-Za-z]+\s*)+", text)]
    return max(deepest, max(runs, default=0) // 12)


def _unclosed(text: str) -> int:
    """How many braces and environments are left open, or are closed without one."""
    found = 0
    for opening, closing in (("{", "}"), (r"\begin", r"\end")):
        depth = 0
        for piece in re.finditer(r"\\begin\b|\\end\b|\\.|[{}]", text, re.DOTALL):
            if piece[0] == opening:
                depth += 1
            elif piece[0] == closing:
                found += not depth
                depth -= bool(depth)
        found += depth
    return found


def _flat(nodes: Any) -> "list[Token]":
    found: list[Token] = []
    nodes = [node for node in nodes or [] if node is not None]
    place = 0
    spaced = False
    while place < len(nodes):
        node = nodes[place]
        place += 1
        kind = type(node).__name__
        if kind == "LatexCharsNode":
            made = _characters(node.chars, spaced)
            spaced = node.chars[-1:].isspace()
            found += made
            continue
        if kind == "LatexGroupNode":
            found.append(Token("group", node.delimiters[0] or "{", (tuple(_flat(node.nodelist)),), spaced=spaced))
        elif kind == "LatexMacroNode":
            arguments = list((node.nodeargd.argnlist if node.nodeargd else []) or [])
            wanted = TAKES.get(node.macroname, 0)
            given = [each for each in arguments if each is not None]
            if wanted and len(given) < wanted:
                place, more = _arguments(nodes, place, wanted - len(given))
                given += more
            found += _macro(node.macroname, arguments, given, spaced)
            spaced = bool(node.macro_post_space) or node.macroname in (",", ";", ":", " ")
            continue
        elif kind == "LatexEnvironmentNode":
            found += _environment(node, spaced)
        elif kind == "LatexSpecialsNode":
            if node.specials_chars == "&":
                found.append(Token("cell", "&"))
            elif node.specials_chars == "~":
                spaced = True
                continue
            else:
                found += _characters(node.specials_chars.replace("``", '"').replace("''", "''"), spaced)
        elif kind == "LatexMathNode":
            found += _flat(node.nodelist)
        spaced = False
    return found


def _arguments(nodes: list[Any], place: int, wanted: int) -> tuple[int, list[Any]]:
    """The next so many groups, where pylatexenc does not know that a macro takes them."""
    found = []
    while len(found) < wanted and place < len(nodes):
        node = nodes[place]
        if type(node).__name__ == "LatexCharsNode" and not node.chars.strip():
            place += 1
            continue
        if type(node).__name__ != "LatexGroupNode":
            break
        found.append(node)
        place += 1
    return place, found


def _inner(node: Any) -> tuple[Token, ...]:
    return tuple(_flat(node.nodelist if type(node).__name__ == "LatexGroupNode" else [node]))


def _verbatim(node: Any) -> str:
    text = node.latex_verbatim()
    return text[1:-1] if text[:1] == "{" and text[-1:] == "}" else text


def _macro(name: str, arguments: list[Any], given: list[Any], spaced: bool) -> list[Token]:
    if name in SPACES:
        return []
    if name in ("quad", "qquad", "hspace", "enspace"):
        return [Token("gap", name)]
    if name in ("\\", "newline", "cr"):
        return [Token("row", name)]
    if name in ("frac", "dfrac", "tfrac", "cfrac"):
        if len(given) != 2:
            raise Unread("a fraction without both parts")
        return [Token("macro", "frac", tuple(map(_inner, given)), spaced=spaced)]
    if name in ("binom", "dbinom", "tbinom") and len(given) == 2:
        return [Token("macro", "binom", tuple(map(_inner, given)), spaced=spaced)]
    if name == "sqrt":
        if not given:
            return [Token("macro", "sqrt", (), spaced=spaced)]
        degree = [_inner(arguments[0])] if len(arguments) == 2 and arguments[0] is not None else []
        return [Token("macro", "sqrt", (_inner(given[-1]), *degree), spaced=spaced)]
    if name == "pmod" and given:
        return [Token("macro", "pmod", (_inner(given[0]),))]
    if name in ("bmod", "mod"):
        return [Token("sign", "mod")]
    if name in ("boxed", "fbox") and given:
        return [Token("boxed", "", (_inner(given[0]),))]
    if name in ("tag", "label", "phantom"):
        return []
    if name in ("underbrace", "overbrace", "cancel") and given:
        return [Token("group", "{", (_inner(given[0]),), spaced=spaced), Token("sign", "note")]
    if name in WORDS:
        words = " ".join(_verbatim(each) for each in given)
        return [Token("word", words, spaced=spaced or words[:1].isspace())]
    if name in STYLES:
        inner = _inner(given[0]) if given else ()
        if name in ("mathrm", "rm", "mathit") and len(inner) > 1 and all(each.kind == "name" for each in inner):
            return [Token("word", "".join(each.text for each in inner), spaced=spaced)]
        return [Token("group", "{", (inner,), style="bold", spaced=spaced)] if len(inner) != 1 else [*inner]
    if name in ("mathcal", "mathbb", "mathscr", "mathfrak") and given:
        inner = _inner(given[0])
        style = "bb" if name == "mathbb" else "cal"
        return [Token(each.kind, each.text, each.inner, style, spaced) for each in inner]
    if name in ACCENTS:
        inner = _inner(given[0]) if given else ()
        if len(inner) == 1 and inner[0].kind == "name":
            return [Token("name", f"{inner[0].text}_{name.removeprefix('wide')}", spaced=spaced)]
        if name == "overline" and all(each.kind == "number" for each in inner) and len(inner) == 1:
            return [Token("other", "a recurring decimal")]
        if name == "overline":
            return [Token("other", "overline", (inner,))]
        raise Unread(f"an accent over more than a name ({name})")
    if name in MACRO_RELATIONS and name != "mid":
        return [Token("relation", MACRO_RELATIONS[name])]
    if name in ARROWS:
        return [Token("arrow", name)]
    if name in SIGNS:
        return [Token("sign", SIGNS[name], spaced=spaced)]
    if name in DOTS:
        return [Token("dots", "...", spaced=spaced)]
    if name in GREEK:
        return [Token("name", name.removeprefix("var"), spaced=spaced)]
    if name in FUNCTIONS:
        return [Token("name", name, style="function", spaced=spaced)]
    if name in ("sum", "prod", "pi", "infty", "int", "partial", "nabla", "forall", "exists", "not"):
        return [Token("macro", name, spaced=spaced)]
    return [Token("other", "\\" + name)]


def _environment(node: Any, spaced: bool) -> list[Token]:
    name = node.environmentname
    if name in ROWS:
        return [Token("row", "begin"), *_flat(node.nodelist), Token("row", "end")]
    if name in MATRICES:
        cells: list[tuple[Token, ...]] = []
        rows: list[Token] = []
        for row in _split(_flat(node.nodelist), "row"):
            cells = [tuple(cell) for cell in _split(row, "cell")]
            if any(cells):
                rows.append(Token("group", "row", tuple(cells)))
        return [Token("matrix", name, tuple((row,) for row in rows), spaced=spaced)]
    return [Token("other", f"the environment {name}")]


def _split(found: list[Token], kind: str) -> list[list[Token]]:
    parts: list[list[Token]] = [[]]
    for token in found:
        if token.kind == kind:
            parts.append([])
        else:
            parts[-1].append(token)
    return parts


def _characters(text: str, spaced: bool) -> list[Token]:
    found: list[Token] = []
    place = 0
    while place < len(text):
        character = text[place]
        if character.isspace():
            spaced = True
            place += 1
            continue
        before, spaced = spaced, False
        if number := NUMBER.match(text, place):
            found.append(Token("number", number[0].replace(",", "").replace("{}", ""), spaced=before))
            place = number.end()
            continue
        if letters := LETTER_RUN.match(text, place):
            run = letters[0]
            if run in SPOKEN:
                found.append(Token("name", run, style="function" if run in FUNCTIONS else "", spaced=before))
            elif len(run) >= WORD and re.search("[aeiou]", run[1:]) and list(run) != sorted(run):
                found.append(Token("word", run, spaced=before))  # "Total" is a word, not a product of five names
            else:
                found += [Token("name", letter, spaced=before and place == 0) for place, letter in enumerate(run)]
            place = letters.end()
            continue
        if text.startswith(":=", place):
            found.append(Token("relation", ":="))
            place += 2
            continue
        if text.startswith(("<=", ">=", "=="), place):
            found.append(Token("relation", text[place : place + 2]))
            place += 2
            continue
        if text.startswith(("=>", "->"), place):
            found.append(Token("arrow", "=>") if text[place] == "=" else Token("relation", "->"))
            place += 2
            continue
        if text.startswith("...", place):
            found.append(Token("dots", "...", spaced=before))
            place += 3
            continue
        if character in RELATIONS:
            found.append(Token("relation", RELATIONS[character]))
        elif character in LETTERS:
            found.append(Token("name", LETTERS[character], spaced=before))
        elif character == '"':
            raise Unread("words inside the formula")
        else:
            found.append(Token("sign", character, spaced=before))
        place += 1
    return found
