r"""A final answer as a tree, on the tokens of the reader.

The reader's own parser reads sides of statements and refuses what a claim cannot say. An answer may be a set, an
interval, a list of roots, a unit or an order, so it has a parser of its own. What is not read is `Unread`,
never dropped. Where a line can be read in two ways (1/2x, \log n d) it is parsed in both; `readings` gives the list.
"""

import re
from collections.abc import Sequence
from dataclasses import replace

from likewise.grading.names import ALIASES, FUNCTIONS, GREEK_LETTERS, LAWS, OPAQUE, ORDERS
from likewise.grading.spelling import cleaned
from likewise.grading.splitting import (
    OPENING,
    cut_at_commas,
    cut_at_words,
    depth_step,
    flattened,
    in_base,
    refuse_words,
    shown_token,
    with_units,
    word_name,
)
from likewise.grading.units import unit_of
from likewise.reading.expressions import Node, number
from likewise.reading.latex import Token, Unread, tokens

BARS = {"|", "‖"}
RATIO = re.compile(r"(?![A-J]\s*:)[^:={}|\\<>]*[\w)][^:={}|\\<>]*(?::[^:={}|\\<>]*[\w)][^:={}|\\<>]*){1,3}")
NAMED_RATIO = re.compile(
    r"(?:\|?[A-Z]+\|?|[A-Za-z]_\{?\w+\}?)\s*:\s*(?:\|?[A-Z]+\|?|[A-Za-z]_\{?\w+\}?)\s*=\s*([^=A-Za-z]+(?:\\[^=]*)?)"
)
VECTORS = {*"xyzuvwqk"}
ROUND = {"⌊": ("⌋", "floor"), "⌈": ("⌉", "ceil")}


def readings(text: str, applied: frozenset[str] = frozenset()) -> list[Node]:
    """All trees of an answer; more than one where a line can be read in several ways.

    applied: names that are functions wherever a parenthesis follows, such as sigma.
    """
    text = cleaned(text)
    if named := NAMED_RATIO.fullmatch(text):  # V_1 : V_2 = 11 : 21
        text = named[1]
    if RATIO.fullmatch(text):
        if re.search(r":\s*0|^\s*0", text):
            raise Unread("a time of day, or a ratio with 0")
        return [Node("ratio", tuple(readings(part, applied)[0] for part in text.split(":")))]
    found = flattened(with_units(tokens(text)))
    while len(found) == 1 and found[0].kind == "group" and found[0].text == "{":  # braces that are not printed
        found = flattened(found[0].inner[0])
    if not found:
        raise Unread("nothing to read")
    refuse_words(found)
    strict = Parser(found, tight=False, applied=applied)
    trees = [strict.answer()]
    if strict.ambiguous:
        trees.append(Parser(found, tight=True, applied=applied).answer())
    return trees


class Parser:
    r"""One answer; `tight` reads 1/2x as 1/(2x) and \log n d as log(nd)."""

    def __init__(
        self,
        found: Sequence[Token],
        *,
        tight: bool,
        outer: "Parser | None" = None,
        applied: frozenset[str] = frozenset(),
    ) -> None:
        self.found, self.place, self.tight = list(found), 0, tight
        self.applied = outer.applied if outer else applied
        self.outer = outer or self
        self.ambiguous = False

    def inner(self, found: Sequence[Token]) -> "Parser":
        """A parser of a part."""
        return Parser(flattened(found), tight=self.tight, outer=self.outer)

    def part(self, found: Sequence[Token]) -> Node:
        """The tree of a part that must be one expression."""
        return self.inner(found).whole()

    def doubt(self) -> None:
        """Say that the line can be read in two ways."""
        self.outer.ambiguous = True

    def peek(self) -> Token | None:
        return self.found[self.place] if self.place < len(self.found) else None

    def at(self, *signs: str) -> bool:
        token = self.peek()
        return token is not None and token.kind == "sign" and token.text in signs

    def take(self) -> Token:
        token = self.peek()
        if token is None:
            raise Unread("the formula ends too early")
        self.place += 1
        return token

    # Statements

    def answer(self) -> Node:
        """The whole answer: a list of statements, or one."""
        if (groups := self.groups()) is not None:
            return Node("list", groups, "or")
        cut, separators = self.cut()
        parts = [self.inner(each).statement() for each in cut]
        text = "or" if separators == {"or"} else ""
        return parts[0] if len(parts) == 1 else Node("list", tuple(parts), text)

    def groups(self) -> tuple[Node, ...] | None:
        """Several assignments with semicolons between them, such as p = 5, q = 2; p = 7, q = 2; or nothing."""
        places = [place for place, token in enumerate(self.found) if token.kind == "sign" and token.text == ";"]
        if not places or not any(token.text == "," for token in self.found):
            return None
        ends = zip([-1, *places], [*places, len(self.found)], strict=True)
        groups = [self.found[start + 1 : end] for start, end in ends]
        relations = [sum(token.kind == "relation" and token.text == "==" for token in group) for group in groups]
        if min(relations) < 2 or len({*relations}) > 1:
            return None
        return tuple(self.inner(group).answer() for group in groups)

    def cut(self) -> tuple[list[list[Token]], set[str]]:
        """Statements between commas, semicolons, rows and the words or, and; and which of these there are."""
        parts: list[list[Token]] = [[]]
        separators: set[str] = set()
        depth = 0
        for token in self.found:
            depth += depth_step(token)
            separates = (token.kind == "sign" and token.text in ",;") or token.kind == "row"
            separates |= token.kind == "word" and token.text.strip(" ,") in ("or", "and")
            if not depth and separates:
                parts.append([])
                separators.add(token.text.strip(" ,"))
            else:
                parts[-1].append(token)
        parts = cut_at_words(parts, separators)
        if len(parts) > 1 and not all(parts):
            parts = [part for part in parts if part]
        return parts, separators

    def statement(self) -> Node:
        """Sides with relations between them, or one expression."""
        sides: list[list[Token]] = [[]]
        relations: list[str] = []
        depth = 0
        for token in self.found:
            depth += depth_step(token)
            if token.kind == "arrow":
                raise Unread("a deduction, not an answer")
            if token.kind == "relation" and not depth:
                relations.append(token.text)
                sides.append([])
            else:
                sides[-1].append(token)
        if not relations:
            return self.inner(sides[0]).whole()
        if relations == ["=="] or relations == ["equiv"]:
            last = sides[1][-1:]
            if last and last[0].kind == "macro" and last[0].text == "pmod":
                return Node("congruent", (self.part(sides[0]), self.part(sides[1][:-1]), self.part(last[0].inner[0])))
        if "->" in relations:
            return self.mapped(sides, relations)
        if any(
            relation not in ("==", ":=", "<", "<=", ">", ">=", "!=", "in", "sim", "approx", "equiv")
            for relation in relations
        ):
            raise Unread(f"the relation {relations[0]}")
        if relations == ["sim"]:
            return Node("law_of", (self.part(sides[0]), self.law(sides[1])))
        if "sim" in relations:
            raise Unread("the relation ~")
        if {*relations} == {"=="} and sides[-1]:  # 1 + 2 + ... + n = n(n + 1)/2
            sides = [side for side in sides[:-1] if not any(token.kind == "dots" for token in side)] + sides[-1:]
            relations = relations[: len(sides) - 1]
            if not relations:
                return self.part(sides[0])
        return Node("chain", tuple(map(self.part, sides)), joined=tuple(relations))

    def mapped(self, sides: list[list[Token]], relations: list[str]) -> Node:
        if relations != ["->"]:
            raise Unread("an arrow")
        text = ["".join(token.text for token in side if token.kind in ("name", "sign")) for side in sides]
        if not all(re.fullmatch(r"[A-Za-z,]*", each) for each in text):
            raise Unread("an arrow")
        return Node("einsum", text="->".join(text))

    def law(self, found: Sequence[Token]) -> Node:
        """A law such as N(0, 1)."""
        node = self.part(found)
        if node.kind != "law":
            raise Unread("a law that is not known")
        return node

    def whole(self) -> Node:
        """One expression and nothing after it."""
        node = self.union()
        if self.place < len(self.found):
            raise Unread(f"not read: {shown_token(self.found[self.place])}")
        return node

    def union(self) -> Node:
        node = self.sum()
        while (token := self.peek()) is not None and token.text in (
            r"\cup",
            "∪",
            "∖",
            r"\setminus",
            r"\backslash",
            r"\cap",
        ):
            self.take()
            kind = {"\\cup": "union", "∪": "union", r"\cap": "meet"}.get(token.text, "without")
            node = Node(kind, (node, self.sum()))
        return node

    # Expressions

    def sum(self) -> Node:
        node = self.leading()
        while self.at("+", "-", "±"):
            sign = self.take().text
            right = self.signed_term()
            node = Node("pm" if sign == "±" else sign, (node, right))
        if self.at("mod"):
            self.take()
            if node.kind in ("+", "-", "pm"):
                raise Unread("a remainder of a sum, or a sum with a remainder")
            node = Node("call", (node, self.factor()), "remainder")
        return node

    def leading(self) -> Node:
        if self.at("±"):
            self.take()
            return Node("pm", (number("0"), self.signed_term()))
        return self.signed_term()

    def signed_term(self) -> Node:
        negative = False
        while self.at("+", "-"):
            negative ^= self.take().text == "-"
        node = self.term()
        return Node("neg", (node,)) if negative else node

    def term(self) -> Node:
        factors = [self.factor()]
        signs: list[str] = []
        slashed = False
        while (token := self.peek()) is not None:
            if self.at("·", "×", "*", "⊙"):
                signs.append(self.take().text)
                factors.append(self.signed())
                slashed = False
            elif self.at("/"):
                self.take()
                below = self.signed()
                slashed = below.kind not in ("group",)
                if slashed and self.tight:
                    extra = [below]
                    while (token := self.peek()) is not None and self.starts(token) and token.kind != "word":
                        self.doubt()
                        extra.append(self.factor())
                    below = _product(extra, [""] * (len(extra) - 1))
                factors, signs = [Node("/", (_product(factors, signs), below))], []
            elif token.kind == "word" and (unit := self.unit(known=factors[-1].kind == "name")) is not None:
                factors, signs = [_united(_product(factors, signs), unit)], []
            elif self.starts(token):
                if slashed:
                    self.doubt()
                if _long_word(factors[-1]) or (token.kind == "word" and len(token.text.strip()) > 3):
                    raise Unread(f"a word beside a formula: {shown_token(token)}")
                after = self.found[self.place + 1 : self.place + 2]
                factorials = factors[-1].kind == "!" and [each.text for each in after] == ["!"]  # 2!3!
                if factors[-1].kind in ("number", "!", "%") and token.kind == "number" and not factorials:
                    raise Unread("two numbers side by side")
                if factors[-1].kind in ("unit",):
                    raise Unread(f"not read after the unit: {shown_token(token)}")
                mixed = factors[-1].kind == "number" and factors[-1].text.isdigit() and token.text == "frac"
                factors.append(self.factor())
                signs.append("")
                if mixed and len(factors) == 2 and factors[1].kind == "%" and _proper(factors[1].parts[0]):  # 33 1/3 %
                    factors, signs = [Node("%", (Node("+", (factors[0], factors[1].parts[0])),))], []
                elif mixed and len(factors) == 2 and _proper(factors[-1]):
                    factors, signs = [Node("+", tuple(factors))], []
            elif token.kind == "macro" and token.text == "pmod":
                raise Unread("a remainder")
            else:
                break
        return _product(factors, signs)

    def signed(self) -> Node:
        if self.at("-", "+"):
            sign = self.take().text
            node = self.signed()
            return Node("neg", (node,)) if sign == "-" else node
        return self.factor()

    def starts(self, token: Token) -> bool:
        """Whether a factor begins here."""
        if token.kind in ("number", "name", "group", "matrix", "word"):
            return True
        if token.kind == "macro":
            return token.text in ("frac", "sqrt", "binom", "sum", "prod", "pi", "infty", "int")
        if token.kind != "sign":
            return False
        return token.text in ("(", "[", "{", "⌊", "⌈", "⟨") or (token.text in BARS and token.text not in self.open_bars)

    open_bars: tuple[str, ...] = ()

    def unit(self, *, known: bool) -> str | None:
        """The unit that stands here, taken; or nothing. known: whether it must be in the table of units."""
        start = self.place
        words = []
        while (token := self.peek()) is not None:
            if token.kind == "word":
                words.append(self.take().text.strip())
                if self.at("^"):
                    self.take()
                    power = "".join(each.text for each in self.script())
                    words.append(f"^{power}")
            elif (
                self.at("/", "·")
                and words
                and self.place + 1 < len(self.found)
                and self.found[self.place + 1].kind == "word"
            ):
                words.append("/" if self.take().text == "/" else "*")
            else:
                break
        text = " ".join(words)
        if words and (words[0] in FUNCTIONS or self.at("(", "[")):
            text = ""
        if not re.fullmatch(r"[A-Za-zµμ][A-Za-zµμ0-9 /*^.\-]{0,40}", text) or (known and unit_of(text) is None):
            self.place = start
            return None
        return text

    def factor(self) -> Node:
        node = self.primary()
        while self.peek() is not None:
            if self.at("^"):
                self.take()
                before = node
                node = self.powered(node)
                if before.kind == node.kind == "^":
                    raise Unread("a power of a power without braces")
            elif self.at("'"):
                self.take()
                node = Node("name", text=f"{node.text}_prime") if node.kind == "name" else Node("transpose", (node,))
            elif self.at("!"):
                self.take()
                if self.at("!"):
                    raise Unread("a double factorial")
                node = Node("!", (node,))
            elif self.at("_") and node.kind == "number":
                self.take()
                node = in_base(node.text, "".join(each.text for each in self.script()))
            elif self.at("%"):
                self.take()
                node = Node("%", (node,))
            elif self.at("°"):
                self.take()
                after = self.peek()
                if after is not None and (node.kind != "number" or self.starts(after)):
                    raise Unread("a composition, or degrees")
                node = Node("degrees", (node,))
            elif self.at("⊤"):
                self.take()
                node = Node("transpose", (node,))
            else:
                break
        return node

    def script(self) -> list[Token]:
        """The tokens of an upper or lower index."""
        token = self.take()
        if token.kind == "group" and token.text == "{":
            return flattened(token.inner[0])
        if token.kind == "sign" and token.text == "(":  # 2^(n+1), typed without braces
            self.place -= 1
            return self.enclosed()[1]
        if token.kind == "sign" and token.text == "-":
            return [token, *self.script()]
        return [token]

    def powered(self, node: Node) -> Node:
        above = self.script()
        shown = [each.text for each in above]
        if shown in (["T"], ["⊤"]) and node == number("1"):
            raise Unread("a vector of ones")
        if shown in (["T"], ["⊤"]) and node.kind not in ("number",) and not _greek(node):
            return Node("transpose", (node,))
        if shown == ["t"] and node.kind == "name" and node.text[0].isupper():
            return Node("transpose", (node,))
        if shown in (["-", "T"], ["-", "⊤"]):
            return Node("transpose", (Node("^", (node, Node("neg", (number("1"),)))),))
        if shown == ["°"]:
            return Node("degrees", (node,))
        if shown in (["*"], ["†"], [r"\dagger"], ["'"]) or not above:
            raise Unread("an upper index that is no exponent")
        if shown == ["c"] or any(each.kind == "word" for each in above):
            raise Unread("an upper index that is no exponent")
        if shown == ["+"] or shown == ["-"]:
            raise Unread("an upper index that is no exponent")
        if node.text.startswith("bb_") and any(each.text == "×" for each in above):
            sizes = sizes_of(self.part(above))
            if node.text != "bb_R" or not sizes:
                raise Unread("a space of matrices")
            return Node("vector", sizes, "()")
        return Node("^", (node, self.part(above)))

    def primary(self) -> Node:
        token = self.take()
        match token.kind:
            case "number":
                if self.at("."):
                    raise Unread("a number with two points")
                return number(token.text)
            case "name":
                return self.named(token)
            case "word":
                return self.worded(token)
            case "group":
                if not token.inner[0]:
                    raise Unread("an empty group")
                return Node("group", (self.part(token.inner[0]),))
            case "matrix":
                return self.matrix(token)
            case "macro":
                return self.macro(token)
            case "sign" if token.text in OPENING:
                self.place -= 1
                return self.bracketed()
            case "sign" if token.text in BARS:
                return self.between(token.text, token.text, "norm" if token.text == "‖" else "abs")
            case "sign" if token.text in ROUND:
                return self.between(*((token.text, *ROUND[token.text])))
            case "sign" if token.text == "⟨":
                parts = tuple(map(self.part, cut_at_commas(self.until("⟩"))))
                if len(parts) == 2 and all(part.names & VECTORS for part in parts):  # an inner product
                    return Node("product", (Node("transpose", parts[:1]), parts[1]), joined=("",))
                return Node("vector", parts, "()")
            case "sign" if token.text == "$":
                return Node("unit", (self.factor(),), "dollars")
            case "other" if token.text == "overline" and token.inner:
                inside = self.part(token.inner[0])
                if not inside.names <= {"i"}:  # a mean, or a segment
                    raise Unread("a line over what is no complex number")
                return Node("call", (inside,), "conjugate")
            case "other" if token.text in (r"\emptyset", r"\varnothing"):
                return Node("set")
        raise Unread(f"not read: {shown_token(token)}")

    def until(self, closing: str) -> list[Token]:
        found = []
        while not self.at(closing):
            found.append(self.take())
        self.take()
        return found

    def between(self, opening: str, closing: str, kind: str) -> Node:
        """What stands between bars."""
        found, depth = [], 0
        while depth or not self.at(closing):
            token = self.take()
            depth += depth_step(token)
            found.append(token)
        self.take()
        node = Node(kind, (self.part(found),))
        if kind == "norm" and self.at("_"):
            self.take()
            order = "".join(each.text for each in self.script())
            return node if order == "2" else Node("call", node.parts, f"norm_{order}")
        return node

    def enclosed(self) -> tuple[str, list[Token]]:
        """The brackets that open here, and what they hold."""
        opening = self.take().text
        found, depth = [], 1
        while True:
            token = self.take()
            depth += depth_step(token)
            if not depth:
                return opening + token.text, found
            found.append(token)

    def bracketed(self) -> Node:
        brackets, inside = self.enclosed()
        if not inside:
            if brackets == "{}":
                return Node("set")
            raise Unread("empty brackets")
        parts = cut_at_commas(inside)
        if brackets == "{}":
            return self.braced(inside, parts)
        if len(parts) == 2 and brackets in ("[)", "(]"):
            return Node("interval", tuple(map(self.part, parts)), brackets)
        if len(parts) > 1 and brackets in ("()", "[]"):
            if brackets == "[]" and all(each[0].text == "[" for each in parts):  # [[1, 2], [3, 4]]
                rows = tuple(self.part(each) for each in parts)
                if all(row.kind == "vector" for row in rows) and len({len(row.parts) for row in rows}) == 1:
                    return Node("matrix", rows)
            return Node("vector", tuple(map(self.part, parts)), brackets)
        if brackets not in ("()", "[]"):
            raise Unread("brackets that do not match")
        if self.at("_") and [each.text for each in self.found[self.place + 1 : self.place + 2]] == ["+"]:  # [x]_+
            self.place += 2
            return Node("call", (self.part(inside),), "relu")
        return Node("group", (self.part(inside),))

    def braced(self, inside: list[Token], parts: list[list[Token]]) -> Node:
        bar = [place for place, each in enumerate(inside) if each.text in ("|", ":", r"\mid")]
        if len(bar) == 1 and bar[0]:
            left = self.inner(inside[: bar[0]]).statement()
            name = left.parts[0] if left.kind == "chain" else left
            if name.kind != "name":
                raise Unread("a set by a condition on more than a name")
            return Node("where", (name, self.inner(inside[bar[0] + 1 :]).statement()))
        return Node("set", tuple(map(self.part, parts)))

    def worded(self, token: Token) -> Node:
        name = re.sub(r"\W+", "_", token.text.replace("\\", "").strip()).strip("_")
        if " " in token.text.strip() or not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", name):
            raise Unread("words inside the formula")
        return self.named(replace(token, kind="name", text=name, style="word"))

    def named(self, token: Token) -> Node:
        name = ALIASES.get(token.text, token.text)
        if token.style == "bb" and name in ("R", "N", "Z", "Q", "C") and not self.at("_", "^"):
            return Node("name", text=f"bb_{name}")
        if name in ORDERS and (self.at("(") or token.style == "cal") and (name != "o" or self.at("(")):
            return self.order(ORDERS[name])
        if name in LAWS and (token.style in ("cal", "word") or name == "N") and self.at("(", "[") and self.several():
            return Node("law", tuple(map(self.part, cut_at_commas(self.enclosed()[1]))), LAWS[name])
        if name in ("Poisson", "Poi", "Bernoulli", "Bern", "Exp", "Exponential", "Geometric", "Geom") and self.at("("):
            return Node("law", (self.part(self.enclosed()[1]),), LAWS[name])
        if name in FUNCTIONS:
            return self.function(name)
        if name == "mod":
            raise Unread("a remainder")
        if name in ("E", "Var", "Cov") and (token.style == "bb" or name != "E" or self.at("[", "_")):
            return self.chance(name)
        if token.style == "bb":
            name = f"bb_{name}"
        if token.style == "cal":
            name = f"cal_{name}"
        node: Node = Node("name", text=name)
        while self.at("_", "'"):
            node = self.indexed(node) if self.take().text == "_" else Node("name", text=f"{_label(node)}_prime")
        head = name.removesuffix("_prime")
        called = (head in OPAQUE and not self.multiplied(head)) or head in self.applied or token.style == "word"
        if self.at("(") and node.kind == "name" and (called or self.several() or self.several("|")):
            name = "sigmoid" if node.text == "sigma" and head in self.applied else node.text
            return self.conditional(self.enclosed()[1], name)
        return node

    def multiplied(self, name: str) -> bool:
        """Whether a name stands before a difference of itself: P(P - 1) is a product."""
        inside: list[Token] = []
        depth = 0
        for token in self.found[self.place :]:
            depth += depth_step(token)
            inside.append(token)
            if depth <= 0:
                break
        signs = {token.text for token in inside[1:-1] if token.kind != "number" and token.text != name}
        return any(token.text == name for token in inside) and bool(signs) and signs <= {"+", "-"}

    def conditional(self, found: Sequence[Token], name: str) -> Node:
        """A call; with one bar between its arguments it is another function: P(A | B)."""
        bars = [place for place, token in enumerate(found) if token.kind == "sign" and token.text == "|"]
        if len(bars) != 1:
            return Node("call", tuple(map(self.part, cut_at_commas(found))), name)
        sides = [cut_at_commas(found[: bars[0]]), cut_at_commas(found[bars[0] + 1 :])]
        return Node("call", tuple(self.part(each) for side in sides for each in side), f"{name}_given_{len(sides[1])}")

    def indexed(self, node: Node) -> Node:
        """A lower index: part of the name if it is a number or word, else an argument."""
        below = self.script()
        if not below:
            raise Unread("an empty index")
        if node.kind == "index":
            raise Unread("an index of an index")
        if all(each.kind in ("number", "word") or (each.kind == "name" and len(each.text) > 2) for each in below):
            return Node("name", text=f"{node.text}_{'_'.join(word_name(each.text) for each in below)}")
        if len(below) > 2 and all(each.kind == "name" and not each.style for each in below):
            return Node("name", text=f"{node.text}_{''.join(each.text for each in below)}")  # D_{random}
        if len(below) > 1 and all(each.kind in ("name", "number", "word") for each in below):
            return Node("index", tuple(self.part([each]) for each in below), node.text)  # a_{ij}
        return Node("index", tuple(map(self.part, cut_at_commas(below))), node.text)

    def several(self, sign: str = ",") -> bool:
        """Whether the parenthesis that opens here holds a comma, or one bar, at its first level."""
        if sign == "|" and sum(token.text == "|" for token in self.found) != 1:
            return False
        depth = 0
        for token in self.found[self.place :]:
            depth += depth_step(token)
            if token.kind == "sign" and token.text == sign and depth == 1:
                return True
            if not depth:
                return False
        return False

    def order(self, kind: str) -> Node:
        if not self.at("("):
            raise Unread("an order without an argument")
        return Node("order", (self.part(self.enclosed()[1]),), kind)

    def chance(self, kind: str) -> Node:
        below = ""
        if self.at("_"):
            self.take()
            below = "_" + "".join(each.text for each in self.script())
        if not self.at("[", "(", "{"):
            raise Unread(f"{kind} without brackets")
        return self.conditional(self.enclosed()[1], f"{kind}{below}")

    def function(self, name: str) -> Node:
        base = power = None
        while self.at("_", "^"):
            if self.take().text == "_":
                base = self.part(self.script())
            else:
                power = self.part(self.script())
        if power == Node("neg", (number("1"),)):
            if name not in ("sin", "cos", "tan"):
                raise Unread("an inverse function or a reciprocal")
            name, power = f"arc{name}", None
        if self.at("(", "[", "{"):
            brackets, inside = self.enclosed()
            if brackets not in ("()", "[]", "{}"):
                raise Unread("brackets that do not match")
            arguments = tuple(map(self.part, cut_at_commas(inside)))
            after = self.peek()
            if self.at("^") and name != "sqrt" and power is None:
                self.take()
                power = self.part(self.script())
            elif after is not None and after.kind == "sign" and after.text == "!":
                raise Unread("a factorial after a function")
        else:
            arguments = (self.tight_argument(),)
        if base is not None:
            if name == "softmax":
                raise Unread("softmax over a named axis")
            if name not in ("log", "max", "min"):
                raise Unread(f"{name} with a lower index")
            if name != "log":
                raise Unread(f"{name} over an index")
            if len(arguments) != 1:
                raise Unread("a logarithm of several numbers")
            node = Node("call", (*arguments, base), "log_base")
        else:
            node = Node("call", arguments, name)
        return node if power is None else Node("^", (node, power))

    def tight_argument(self) -> Node:
        r"""The argument of \sin 2x: one factor, or a number and a factor; further names can be read in two ways."""
        token = self.peek()
        if token is None or not self.starts(token):
            raise Unread("a function without an argument")
        factors = [self.factor()]
        if factors[0].kind == "number" and self.letter():
            factors.append(self.factor())
        while self.letter():
            self.doubt()
            if not self.tight:
                break
            factors.append(self.factor())
        if self.at("/"):
            self.doubt()
            if self.tight:
                self.take()
                return Node("/", (_product(factors, [""] * (len(factors) - 1)), self.factor()))
        return _product(factors, [""] * (len(factors) - 1))

    def letter(self) -> bool:
        token = self.peek()
        if token is None or (token.kind == "name" and (token.text in FUNCTIONS or token.text in ALIASES)):
            return False
        return token.kind == "name" or (token.kind == "macro" and token.text == "pi")

    def macro(self, token: Token) -> Node:
        match token.text:
            case "frac":
                above, below = ("".join(each.text for each in part) for part in token.inner)
                if re.match(r"d($|[a-z^])", above) and re.match(r"d[a-zA-Z](\^|$)", below):
                    raise Unread("a derivative")
                return Node("group", (Node("/", tuple(map(self.part, token.inner))),))
            case "binom":
                return Node("choose", tuple(map(self.part, token.inner)))
            case "sqrt":
                if not token.inner:
                    return Node("call", (self.primary(),), "sqrt")
                inside = self.part(token.inner[0])
                if len(token.inner) == 1:
                    return Node("call", (inside,), "sqrt")
                return Node("group", (Node("root", (inside, self.part(token.inner[1]))),))
            case "pi":
                return Node("name", text="pi")
            case "infty":
                return Node("name", text="infty")
            case "sum" | "prod":
                return self.repeated(token.text)
        raise Unread(f"not read: {shown_token(token)}")

    def repeated(self, kind: str) -> Node:
        low: list[Token] = []
        high: list[Token] = []
        while self.at("_", "^"):
            if self.take().text == "_":
                low = self.script()
            else:
                high = self.script()
        body = self.term()
        if high and len(low) > 2 and low[0].kind == "name" and low[1].text == "==":
            index = Node("name", text=low[0].text)
            return Node(kind, (index, self.part(low[2:]), self.part(high), body))
        names = low[::2]
        commas = all(each.text == "," for each in low[1::2]) and len(low) % 2
        if not high and commas and all(each.kind == "name" for each in names):  # over i, j
            for each in reversed(names):
                body = Node(f"{kind}_over", (Node("name", text=each.text), body))
            return body
        raise Unread("a sum without its bounds")

    def matrix(self, token: Token) -> Node:
        rows = tuple(
            Node("vector", tuple(self.part(cell) for cell in row[0].inner if cell), "[]") for row in token.inner
        )
        if not rows or len({len(row.parts) for row in rows}) != 1 or not rows[0].parts:
            raise Unread("a matrix with gaps")
        if token.text in ("vmatrix",):
            return Node("call", (Node("matrix", rows),), "det")
        return Node("matrix", rows)


def _united(value: Node, unit: str) -> Node:
    """A value with a unit; percent and degrees are factors."""
    if re.fullmatch(r"percent|pct|per\s?cent", unit):
        return Node("%", (value,))
    if re.fullmatch(r"deg(?:rees?)?", unit):
        return Node("degrees", (value,))
    return Node("unit", (value,), unit)


def _product(factors: list[Node], signs: list[str]) -> Node:
    return factors[0] if len(factors) == 1 else Node("product", tuple(factors), joined=tuple(signs))


def _proper(node: Node) -> bool:
    """Whether a node is a fraction of whole numbers below 1: then a whole number before it is added."""
    inner = node.parts[0] if node.kind == "group" else node
    if inner.kind != "/" or any(part.kind != "number" or not part.text.isdigit() for part in map(bare, inner.parts)):
        return False
    above, below = (int(bare(part).text) for part in inner.parts)
    return above < below


def sizes_of(node: Node) -> tuple[Node, ...]:
    """The sizes of a shape N x 3D, or nothing if the signs of a product are others."""
    if node.kind != "product" or "×" not in node.joined or {*node.joined} - {"×", ""}:
        return ()
    sizes = [[node.parts[0]]]
    for sign, part in zip(node.joined, node.parts[1:], strict=True):
        if sign:
            sizes.append([part])
        else:
            sizes[-1].append(part)
    return tuple(_product(size, [""] * (len(size) - 1)) for size in sizes)


def bare(node: Node) -> Node:
    """The node inside its groups."""
    while node.kind == "group":
        node = node.parts[0]
    return node


def _long_word(node: Node) -> bool:
    return node.kind == "name" and bool(re.fullmatch(r"[A-Za-z]{4,}", node.text)) and node.text not in GREEK_LETTERS


def _greek(node: Node) -> bool:
    return node.kind == "name" and node.text in ("gamma", "beta", "alpha", "rho", "e")


def _label(node: Node) -> str:
    if node.kind != "name":
        raise Unread("a prime after an index")
    return node.text
