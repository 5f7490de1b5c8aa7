"""Formulas as statements: sides and relations, and the role that the words around them give.

A chain a = b = c is one statement with two links. A row of a derivation that begins with a relation goes on from the
row before. What is tried and dropped, asked, or denied on the next line is nobody's assertion.
"""

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from likewise.reading.expressions import Node, Parser
from likewise.reading.latex import Token, Unread, tokens
from likewise.reading.segments import Formula

Role = Literal["definition", "condition", "assertion", "hypothesis", "question", "requirement", "declaration", "term"]
COMPARISONS = {"==", "!=", "<", "<=", ">", ">=", "approx", ":="}
TRIED = re.compile(
    r"\b(try|tries|trying|tried|test|tests|testing|check (?:if|whether|that)|whether|instead|unless|guess|would|could|"
    r"hypothetical\w*|for contradiction|contradiction|might|maybe|perhaps|mistaken\w*|incorrect\w*|wrong\w*|does not|"
    r"doesn't|cannot|can't|is not|isn't|are not|not equal|instead of|rather than|never|no solution)\b",
    re.I,
)
DENIED = re.compile(
    r"(?:[.;:]\s*(?:this|that|which|but|however|so this)\b)?[^.\n]{0,80}?\b(not|n't|false|impossible|contradict\w*|"
    r"incorrect|wrong|invalid|fails?|absurd|never|cannot|no longer|too (?:large|small|big|high|low|many|few|much)|"
    r"isn't|doesn't|don't|error|mistake)\b",
    re.I,
)
DOUBT = re.compile(r"\W{0,6}(?:wait|hmm|no,|oops|but wait|actually|hold on|however|but)\b", re.I)
DEFINING = re.compile(
    r"\b(let|put|define|defines|defined|denote|denoted|set|setting|call|write|introduce|consider)\b", re.I
)
GIVEN = re.compile(
    r"\b(given|where|assume|assuming|suppose|with|under|such that|since we have|recall|known|satisfy\w*|"
    r"(?:that|which) satisfies|subject to|for|if|when|because|let|put|define|denote|set|using|assumption)\b"
    r"(?P<rest>[^.,;]{0,40})$",
    re.I,
)
RESULT = re.compile(
    r"\bwith (?:the |a )?(?:\w+ )?(?:derivative|gradient|mean|variance|expectation|norm|jacobian|hessian|result)s? *$",
    re.I,
)
APPOSED = re.compile(r"\b(?:for|when|if|with|under) (?:[\w-]+ ){0,4}[\w-]+[,(]\s*$", re.I)  # "for unit vectors, .."
CASE = re.compile(r"\s*(?:for|if|when|means|denotes|stands)\b", re.I)  # "(y = 1 for the same class)"
SEVERAL = "one of several cases"
AT = re.compile(r"\bat\W*$", re.I)  # "at x = 0 we have ..": a place
PLACE = re.compile(
    r"\s*\\?[A-Za-z]+(?:_\w|_\{\w+\})?\s*=\s*-?(?:[\d./]+|\\[td]?frac\{?\d+\}?\{?\d+\}?|\\pi)\s*[.,]?\s*"
)
LOOSE = ("for", "with", "under", "when", "using", "because")
STATES = re.compile(r"\b(?:is|are|equals?|becomes?|gives?|yields?|has|have)\W*$", re.I)  # "for class 1 it is ..."
CONCLUDES = re.compile(r"[$)]\W*\b(?:we|one|it|this|then|the|gives?|yields?|has|have|is|are|equals?)\b[^$]*$", re.I)
WANTED = re.compile(
    r"\b(need|needs|want|wants|require[sd]?|requires|must|should|goal|seek|looking for|find|so that|solve)\b", re.I
)
REMARK = re.compile(r"\([^()$\\]{0,120}\)(?=[:\s]*$)")  # a remark that ends before the formula
LIMITS = re.compile(r"\b(?:if|when|unless|assum|provided|since|because|only|for|where|with|mod)\w*", re.I)
REMAINDER = re.compile(r"\s*[,(]?\s*(?:with\b|and\b)?\s*(?:a\s+)?(?:remainder|R\s?\d|rem\b|mod\b|\(mod)", re.I)
GOES_ON = re.compile(r"[ \t]*\$(?![\s$])(?!\s*=)")  # `$d = 2$ $D_r$`: one formula in two
SCALE = re.compile(
    r"\s*(?:million|billion|thousand|hundred|dozen|k\b|M\b|trillion|pairs?\b|%|percent|(?:hours?|hrs?|h|minutes?|min|days?|weeks?|years?|months?|feet|foot|ft|yards?|pounds?|lbs?|dollars?|"
    r"quarters?|dimes?|degrees?) (?:and )?\d)",
    re.I,
)


@dataclass(frozen=True)
class Said:
    """One statement: sides with the relations between them; a side that could not be read has its reason instead."""

    formula: Formula
    number: int  # in the order of the text
    sides: tuple[tuple[Token, ...], ...]
    relations: tuple[str, ...]
    role: Role
    modulus: tuple[Token, ...] = ()
    led: bool = False  # an arrow stands before it: it follows from the statement before
    defining: bool = False
    hedged: str = ""  # words in the formula that limit it: "if ..", "or .."
    continued: bool = False  # its first side is the last side of the statement before
    read_as: str = ""  # the role that the text gives, where a person gives one
    nodes: tuple[Node | Unread, ...] = field(default=(), compare=False)

    @property
    def withdrawn(self) -> bool:
        """Whether the text has it as a condition, and a person says that it is none."""
        return self.read_as == "condition" and self.role in ("assertion", "hypothesis", "question")

    @property
    def names(self) -> set[str]:
        """The names on the sides that were read."""
        return {name for node in self.nodes if isinstance(node, Node) for name in node.names}


def statements(found: Sequence[Formula]) -> tuple[list[Said], dict[int, str]]:
    """All statements, without their trees, and for formulas that LaTeX itself would refuse the reason."""
    made: list[Said] = []
    refused: dict[int, str] = {}
    last: tuple[Formula, tuple[Token, ...]] | None = None
    for place, formula in enumerate(found):
        try:
            pieces = _pieces(_without_remarks(_tokens(formula)))
        except Unread as reason:
            refused[place] = str(reason)
            last = None
            continue
        hedged = next((piece[0].text for _, piece, _ in pieces if piece[0].kind == "hedge"), "")
        if not formula.displayed and not formula.plain and GOES_ON.match(formula.after):
            hedged = hedged or "it goes on in the next formula"
        if formula.before.rstrip().endswith("(") and PLACE.fullmatch(formula.source) and CASE.match(formula.after):
            hedged = hedged or SEVERAL
        given = False
        for led, piece, modulus in pieces:
            if piece[0].kind == "conditions":
                given = True
                continue
            sides, relations = _sides(piece)
            continued = False
            if relations and not sides[0]:
                if last is None or not _adjacent(last[0], formula):
                    sides, relations = sides[1:], relations[1:]
                else:
                    sides, continued = [last[1], *sides[1:]], True
            while relations and not sides[-1]:
                sides, relations = sides[:-1], relations[:-1]
            if not sides or not sides[0]:
                continue
            role = role_of(formula, relations)
            if given and role == "assertion":
                role = "condition"
            defining = ":=" in relations or bool(DEFINING.search(formula.before[-60:]))
            made.append(
                Said(
                    formula,
                    len(made),
                    tuple(map(tuple, sides)),
                    tuple(relations),
                    role,
                    modulus,
                    led,
                    defining,
                    hedged,
                    continued,
                )
            )
            last = (formula, tuple(sides[-1]))
    return made, refused


def is_range(said: Said) -> bool:
    """`i = 1, ..., N`: the values that an index takes, listed."""
    return (
        said.relations in (("==",), ("in",))
        and len(said.sides[0]) == 1
        and said.sides[0][0].kind == "name"
        and any(token.kind == "sign" and token.text == "," for token in said.sides[1])
        and not any(token.kind == "sign" and token.text in "([" for token in said.sides[1])
    ) or (
        said.relations == ("==",)
        and len(said.sides[0]) == 1
        and [token.text for token in said.sides[1]][1:3] == [".", "."]
    )


def parsed(said: Said, called: Collection[str]) -> Said:
    """The statement with its trees."""
    nodes: list[Node | Unread] = []
    for side in said.sides:
        try:
            nodes.append(Parser(side, called).side())
        except Unread as reason:
            nodes.append(reason)
        except RecursionError:
            nodes.append(Unread("nested too deeply"))
    first = nodes[0] if nodes else None
    named = not isinstance(first, Node) or first.kind in ("name", "index", "call", "^", "grad", "E", "Var")
    if said.role == "definition" and not named:  # "let u be a vector with |u| = 1"
        return replace(said, nodes=tuple(nodes), role="condition")
    return replace(said, nodes=tuple(nodes))


def head_of(side: Iterable[Token]) -> tuple[str, tuple[str, ...]] | None:
    """The function and its parameters, if a side is `f(x, y)` with plain names."""
    try:
        node = Parser(list(side), _Any()).side()
    except (Unread, RecursionError):
        return None
    if node.kind != "call" or not node.parts or any(part.kind != "name" for part in node.parts):
        return None
    names = tuple(part.text for part in node.parts)
    return (node.text, names) if len(set(names)) == len(names) else None


class _Any(frozenset):
    """Every name is a function, while heads are looked for."""

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str)


def role_of(formula: Formula, relations: Sequence[str]) -> Role:
    """What the words around a formula make of it."""
    before, after = REMARK.sub("", formula.before), formula.after
    before = before.rpartition(";")[2]
    if not relations:
        return "term"
    if set(relations) <= {"in", "sim"}:
        return "declaration"
    if re.match(r"\s*[)\"]?\s*\?", after) or re.search(
        r"\b(whether|is it true|does(?=\s*$)|verify that|check that|prove that|show that)\b[^.]{0,40}$", before, re.I
    ):
        return "question"
    if TRIED.search(before) or DOUBT.match(after) or DENIED.match(after):
        return "hypothesis"
    if WANTED.search(before[-80:]):
        return "requirement"
    if AT.search(before[-8:]) and PLACE.fullmatch(formula.source):
        return "condition"
    if APPOSED.search(before[-80:]) and re.match(r"\s*[,)]", after):
        return "condition"
    given = GIVEN.search(before[-60:])
    if given and (RESULT.search(before) or (given[1].lower() in LOOSE and STATES.search(given["rest"]))):
        given = None
    if given and not CONCLUDES.search(given["rest"]):
        return "definition" if DEFINING.search(before[-60:]) else "condition"
    if DEFINING.search(before[-40:]):
        return "definition"
    return "assertion"


def _tokens(formula: Formula) -> list[Token]:
    source = formula.source
    if formula.plain:
        source = re.sub(r"(?<=\d) x (?=[\d$(])", r" \\times ", source)
        source = source.replace("%", r"\%").replace("$", r"\$").replace("≈", r"\approx ").rstrip(" ,.")
    return tokens(source.strip())


def _without_remarks(found: list[Token]) -> list[Token]:
    """The tokens without remarks in parentheses that begin with a word: `(a d x M matrix)` says what a thing is."""
    made: list[Token] = []
    place = 0
    while place < len(found):
        token = found[place]
        opens = token.kind == "sign" and token.text == "(" and found[place + 1 : place + 2]
        worded = bool(opens) and found[place + 1].kind == "word" and bool(found[place + 1].text.strip())
        worded = worded and (" " in found[place + 1].text or found[place + 2 : place + 3] in ([], [Token("sign", ")")]))
        if token.kind == "word" and token.text.strip().startswith("(") and not LIMITS.search(token.text):
            depth = token.text.count("(") - token.text.count(")")
        elif worded and not LIMITS.search(found[place + 1].text) and made:
            depth = 1
        else:
            made.append(token)
            place += 1
            continue
        place += 1
        while depth > 0 and place < len(found):
            inside = found[place]
            if inside.kind == "sign" and inside.text in "()":
                depth += 1 if inside.text == "(" else -1
            elif inside.kind == "word":
                depth += inside.text.count("(") - inside.text.count(")")
            place += 1
    return made


def _pieces(found: list[Token]) -> list[tuple[bool, list[Token], tuple[Token, ...]]]:
    """Statements of one formula: rows, quads, arrows, and commas between relations part them."""
    pieces: list[tuple[bool, list[Token]]] = [(False, [])]
    depth = 0
    found = _unboxed(found)
    for place, token in enumerate(found):
        if token.kind == "sign" and token.text in ("(", "[", "{"):
            depth += 1
        elif token.kind == "sign" and token.text in (")", "]", "}"):
            depth -= 1
        if token.kind in ("row", "gap") or (token.kind == "arrow" and depth <= 0):
            pieces.append((token.kind == "arrow", []))
            depth = 0
        elif token.kind == "cell":
            continue
        elif token.kind == "word" and re.fullmatch(
            r"\W*(and|or|where|with|for|if|so|then|since|because|but|thus|implies|gives)\b.*",
            token.text.strip(),
            re.I | re.DOTALL,
        ):
            pieces.append((False, []))
            if re.match(r"\W*(?:where|with|because|since)\b", token.text, re.I):
                pieces += [(False, [Token("conditions", token.text)]), (False, [])]
            elif not re.fullmatch(r"\W*(and|so|then|thus|implies|gives)\W*", token.text.strip(), re.I):
                pieces.append((False, [Token("hedge", "said with " + token.text.strip()[:20])]))
        elif token.kind == "sign" and token.text in (",", ";") and depth <= 0 and _parts(found, place):
            pieces.append((False, []))
        elif token.kind == "sign" and token.text in (".", ",") and place + 1 == len(found):
            continue
        else:
            pieces[-1][1].append(token)
    made = []
    for led, piece in pieces:
        while piece and piece[-1].kind == "sign" and piece[-1].text in (".", ",", ";", ":"):
            piece.pop()
        if not piece:
            continue
        piece, modulus = _modulus(piece)
        if piece:
            made.append((led, piece, modulus))
    return made


def _unboxed(found: list[Token]) -> list[Token]:
    """A box around a whole statement is opened."""
    made: list[Token] = []
    for token in found:
        script = bool(made) and made[-1].kind == "sign" and made[-1].text in ("_", "^")
        if script:  # the bound of a sum stays below it
            made.append(token)
        elif (token.kind == "boxed" and any(each.kind in ("relation", "row") for each in token.inner[0])) or (
            token.kind == "group" and token.text == "{" and any(each.kind == "relation" for each in token.inner[0])
        ):
            made += _unboxed(list(token.inner[0]))
        else:
            made.append(token)
    return made


def _parts(found: list[Token], comma: int) -> bool:
    """Whether a comma parts two statements: a relation stands on both sides of it, up to the next comma."""
    before = after = False
    for token in reversed(found[:comma]):
        if token.kind in ("row", "gap", "arrow"):
            break
        before |= token.kind == "relation"
    for token in found[comma + 1 :]:
        if token.kind in ("row", "gap", "arrow") or (token.kind == "sign" and token.text == "," and after):
            break
        after |= token.kind == "relation"
    names_follow = False
    for token in found[comma + 1 :]:  # "q, k \sim ..": names up to a declaring relation belong together
        if token.kind == "relation":
            names_follow = token.text in ("in", "sim") and not before
            break
    return before and after and not names_follow


def _modulus(piece: list[Token]) -> tuple[list[Token], tuple[Token, ...]]:
    for place, token in enumerate(piece):
        if token.kind == "macro" and token.text == "pmod":
            return piece[:place] + piece[place + 1 :], token.inner[0]
        if (
            token.kind == "sign"
            and token.text == "("
            and place + 1 < len(piece)
            and (piece[place + 1].text.strip() == "mod")
        ):
            return piece[:place], tuple(piece[place + 2 : -1])
    return piece, ()


def _sides(piece: list[Token]) -> tuple[list[list[Token]], list[str]]:
    sides: list[list[Token]] = [[]]
    relations: list[str] = []
    depth = 0
    for token in piece:
        if token.kind == "sign" and token.text in ("(", "[", "{"):
            depth += 1
        elif token.kind == "sign" and token.text in (")", "]", "}"):
            depth = max(0, depth - 1)
        if token.kind == "relation" and not depth:
            relations.append(token.text)
            sides.append([])
        else:
            sides[-1].append(token)
    return sides, relations


def _adjacent(before: Formula, formula: Formula) -> bool:
    """Whether only blanks, ticks or punctuation stand between two formulas."""
    return before is formula or (
        before.displayed and formula.displayed and formula.start - before.end < 12 and before.turn == formula.turn
    )
