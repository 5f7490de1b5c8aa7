"""Tokens of one side of a formula as a tree. What a name means is not known here, only how the side is put together.

Where mathematicians disagree on how to read a line (1/2x, a slash followed by a product) it is not read.
"""

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, comb, factorial, floor

from likewise.reading.latex import SPOKEN, Token, Unread

HEADS = {"f", "g", "h", "F", "G", "phi", "psi", "sim", "Phi", "Psi", "rho"}  # called when a parenthesis follows
ELEMENTARY = {"exp": "exp", "log": "log", "ln": "log", "sin": "sin", "cos": "cos", "tan": "tan", "tanh": "tanh"}
ELEMENTARY |= {"relu": "relu", "ReLU": "relu", "sigmoid": "sigmoid", "softmax": "softmax", "sqrt": "sqrt", "tr": "tr"}
ELEMENTARY |= {"Tr": "tr", "vec": "vec", "max": "max", "min": "min"}
CLOSED = {"sqrt", "log", "exp"}  # of a number they are numbers
ORDERS = {"O": "O", "Theta": "Theta", "Omega": "Omega"}
BOUND_E = "e ="  # among the functions where the text declares a name e: then e^2 is its square
CLOSING = {"(": ")", "[": "]", "{": "}", "‖": "‖", "|": "|", "⌊": "⌋", "⌈": "⌉", "⟨": "⟩"}


@dataclass(frozen=True, slots=True)
class Node:
    """kind: number, name, call, +, -, neg, product, /, ^, transpose, norm, abs, index, sum, prod, E, Var, vector,
    matrix, order, grad, !, choose, %, floor, ceil or unit. `text` is a name or number, `joined` the signs of a product.
    """

    kind: str
    parts: tuple["Node", ...] = ()
    text: str = ""
    joined: tuple[str, ...] = ()

    def walk(self) -> "Iterator[Node]":
        """This node and all below."""
        yield self
        for part in self.parts:
            yield from part.walk()

    @property
    def names(self) -> set[str]:
        """All names below, of functions too."""
        return {node.text for node in self.walk() if node.kind in ("name", "call")}

    @property
    def closed(self) -> bool:
        """Whether no name occurs; sqrt(2) is closed."""
        return not any(
            node.kind in ("name", "dots", "index", "order", "E", "Var")
            or (node.kind == "call" and node.text not in CLOSED)
            for node in self.walk()
        )


def number(text: str) -> Node:
    """A number as it is printed."""
    return Node("number", text=text)


def value(node: Node) -> Fraction | None:
    """The exact value of closed arithmetic, if it is a fraction; used to choose readings, never to give a verdict."""
    try:
        return _value(node)
    except (ValueError, ZeroDivisionError, OverflowError, KeyError):
        return None


BITS = 20_000  # of a number whose exact value is looked at


def bits(number: Fraction) -> int:
    """How long a fraction is."""
    return max(number.numerator.bit_length(), number.denominator.bit_length())


def _value(node: Node) -> Fraction:
    match node.kind:
        case "number":
            return Fraction(node.text)
        case "+" | "-":
            left, right = map(_value, node.parts)
            return left + right if node.kind == "+" else left - right
        case "neg":
            return -_value(node.parts[0])
        case "product":
            found = Fraction(1)
            for part in node.parts:
                found *= _value(part)
                if bits(found) > BITS:
                    raise ValueError
            return found
        case "/":
            return _value(node.parts[0]) / _value(node.parts[1])
        case "^":
            base, exponent = map(_value, node.parts)
            if exponent.denominator != 1 or abs(exponent) > 64 or bits(base) * abs(exponent) > BITS:
                raise ValueError
            return base ** int(exponent)
        case "%":
            return _value(node.parts[0]) / 100
        case "unit" | "group":
            return _value(node.parts[0])
        case "floor" | "ceil":
            return Fraction((floor if node.kind == "floor" else ceil)(_value(node.parts[0])))
        case "!" if (whole := _value(node.parts[0])).denominator == 1 and 0 <= whole <= 60:
            return Fraction(factorial(int(whole)))
        case "choose":
            above, below = map(_value, node.parts)
            if above.denominator != 1 or below.denominator != 1 or not 0 <= below <= above <= 500:
                raise ValueError
            return Fraction(comb(int(above), int(below)))
    raise ValueError(node.kind)


class Parser:
    """One side; `called` says which names are functions."""

    def __init__(self, found: Sequence[Token], called: Collection[str] = ()) -> None:
        self.found = list(found)
        self.place = 0
        self.called = called

    def side(self) -> Node:
        """The whole side."""
        node = self.sum()
        if self.place < len(self.found):
            raise Unread(f"not read from {_shown(self.found[self.place])}")
        return node

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

    def sum(self) -> Node:
        negative = False
        while self.at("+", "-"):
            negative ^= self.take().text == "-"
        node = self.term()
        node = Node("neg", (node,)) if negative else node
        while self.at("+", "-", "±"):
            sign = self.take().text
            if sign == "±":
                raise Unread("plus or minus: two values")
            turned = False
            while self.at("-", "+"):
                turned ^= self.take().text == "-"
            right = self.term()
            node = Node(sign, (node, Node("neg", (right,)) if turned else right))
        return node

    def term(self) -> Node:
        factors, joined = [self.factor()], []
        slashed = False
        while (token := self.peek()) is not None:
            if self.at("·", "×", "*", "⊙", "⊗"):
                joined.append(self.take().text)
                factors.append(self.signed())
                slashed = False
            elif self.at("/"):
                self.take()
                below = self.signed()
                factors, joined = [Node("/", (_product(factors, joined), below))], []
                slashed = below.kind in ("number", "name", "^", "index")
            elif self.at("mod") or (token.kind == "macro" and token.text == "pmod"):
                raise Unread("a remainder inside an expression")
            elif self.starts(token):
                if slashed:
                    raise Unread("a slash followed by a product can be read in two ways")
                if factors[-1].kind in ("number", "!", "%") and token.kind == "number":
                    raise Unread("two numbers side by side")
                if factors[-1].kind == "unit":
                    raise Unread("words inside the formula")
                mixed = factors[-1].kind == "number" and token.kind == "macro" and token.text == "frac"
                factors.append(self.factor())
                joined.append("")
                if mixed and factors[-1].closed and factors[-2].text.isdigit() and len(factors) == 2:
                    factors, joined = [Node("mixed", tuple(factors))], []
            else:
                break
        return _product(factors, joined)

    def signed(self) -> Node:
        if self.at("-"):
            self.take()
            return Node("neg", (self.signed(),))
        if self.at("+"):
            self.take()
            return self.signed()
        return self.factor()

    def starts(self, token: Token) -> bool:
        """Whether a factor can begin here."""
        if token.kind in ("number", "name", "group", "matrix", "boxed", "word"):
            return True
        if token.kind == "macro":
            return token.text in ("frac", "sqrt", "binom", "sum", "prod", "pi", "nabla")
        return (
            token.kind == "sign"
            and token.text in ("(", "[", "{", "‖", "|", "⌊", "⌈", "⟨", "$")
            and not (token.text in "‖|" and self.inside == token.text)
        )

    inside = ""  # the bar that is open

    def factor(self) -> Node:
        node = self.primary()
        if node.kind == "grad" and node.parts[0].kind == "nothing":
            node = self.applied(node)
        while (token := self.peek()) is not None:
            if self.at("^"):
                self.take()
                node = self.powered(node)
            elif self.at("_"):
                node = self.indexed(node)
            elif self.at("'"):
                self.take()
                node = Node("name", text=f"{node.text}_prime") if node.kind == "name" else Node("transpose", (node,))
            elif self.at("!"):
                self.take()
                if self.at("!"):
                    raise Unread("a double factorial")
                node = Node("!", (node,))
            elif self.at("%"):
                self.take()
                node = Node("%", (node,))
            elif self.at("note"):
                self.take()
                if self.at("_", "^"):  # what stands below a brace is a remark
                    self.take()
                    self.take()
            elif token.kind == "word" and _unit(token.text) and _quantity(node):
                self.take()
                unit = _unit(token.text)
                if self.at("^"):  # square centimetres
                    self.take()
                    unit += self.take().text
                node = Node("unit", (node,), unit)
            else:
                break
        return node

    def powered(self, node: Node) -> Node:
        """What follows a caret: a transpose, degrees, or an exponent."""
        exponent = self.script()
        if len(exponent) == 1:
            only = exponent[0]
            if only.text in ("T", "⊤") and only.kind in ("name", "sign"):
                return Node("transpose", (node,))
            if only.text == "t" and node.kind == "name" and node.text.isupper():
                raise Unread("V^t may be a transpose or another name")
            if only.kind == "sign" and only.text == "°":
                return Node("unit", (node,), "degrees")
            if only.kind == "sign" and only.text in ("'", "*", "+", "-"):
                raise Unread(f"a name marked {only.text}")
            if only.kind in ("word", "name") and only.style != "" and only.kind == "word":
                raise Unread("words in an exponent")
        if all(each.kind == "sign" and each.text == "'" for each in exponent):
            return Node("name", text=f"{node.text}_prime")
        if any(each.kind == "sign" and each.text in "()" for each in exponent[:1]) and node.kind == "name":
            raise Unread("an upper index")
        return Node("^", (node, Parser(exponent, self.called).side()))

    def script(self) -> list[Token]:
        token = self.take()
        if token.kind == "group" and token.text == "{":
            return list(token.inner[0])
        if token.kind == "number" and len(token.text) > 1 and not token.spaced:  # x^23 is x^2 followed by 3 in LaTeX
            raise Unread("an exponent of several digits without braces")
        if token.kind == "sign" and token.text in ("-", "+"):
            return [token, *self.script()]
        if token.kind == "sign" and token.text == "(":
            return self.until(")", keep=True)
        return [token]

    def until(self, closing: str, keep: bool = False) -> list[Token]:
        """The tokens up to the closing bracket of one that was just taken."""
        opening = {")": "(", "]": "[", "}": "{"}.get(closing, "")
        depth, found = 1, []
        while True:
            token = self.peek()
            if token is None:
                raise Unread(f"no {closing} for an opening one")
            self.place += 1
            if token.kind == "sign" and token.text == closing:
                depth -= 1
                if not depth:
                    return [Token("sign", "("), *found, Token("sign", ")")] if keep else found
            elif token.kind == "sign" and opening and token.text == opening:
                depth += 1
            found.append(token)

    def indexed(self, node: Node) -> Node:
        """A lower index: part of the name if it is a word or number, else an index."""
        self.take()
        below = self.script()
        if node.kind == "call" and node.text == "log" and not node.parts:
            return Node("call", (Parser(below, self.called).side(),), "log_base")
        if node.kind == "norm":
            if [each.text for each in below] == ["2"]:
                return node
            raise Unread("a norm that is not the Euclidean one")
        if node.kind not in ("name", "call"):
            raise Unread("an index of more than a name")
        words = [each for each in below if each.kind in ("word", "number", "name")]
        if len(below) == 1 and len(words) == 1:
            only = below[0]
            if only.kind == "word" or only.text in SPOKEN or (only.kind == "name" and len(only.text) > 2):
                return Node("name", text=f"{node.text}_{_plain(only.text)}")
            return Node("index", (node, Parser(below, self.called).side()), node.text)
        if below and all(each.kind == "name" and len(each.text) == 1 for each in below) and len(below) > 2:
            return Node("name", text=f"{node.text}_{''.join(each.text for each in below)}")  # D_{random} without \text
        if any(each.kind == "word" for each in below):
            joined = "_".join(_plain(each.text) for each in below if each.kind in ("word", "number", "name"))
            return Node("name", text=f"{node.text}_{joined}")
        parts = [Parser(each, self.called).side() for each in _commas(below)]
        if len(below) == 2 and all(each.kind == "name" for each in below):  # a_{ij}
            parts = [Node("name", text=each.text) for each in below]
        return Node("index", (node, *parts), node.text)

    def primary(self) -> Node:
        token = self.take()
        match token.kind:
            case "number":
                return number(token.text)
            case "name":
                return self.named(token)
            case "word":
                return self.worded(token)
            case "group":
                return self.grouped(token)
            case "boxed":
                return Parser(token.inner[0], self.called).side()
            case "matrix":
                return self.matrix(token)
            case "macro":
                return self.macro(token)
            case "sign":
                return self.bracketed(token)
            case "dots":
                return Node("dots")
        raise Unread(f"not read: {_shown(token)}")

    def grouped(self, token: Token) -> Node:
        if token.text == "[":
            self.found[self.place : self.place] = [*token.inner[0], Token("sign", "]")]
            return self.bracketed(Token("sign", "["))
        inner = token.inner[0]
        if not inner:
            raise Unread("an empty group")
        return Parser(inner, self.called).side()

    def worded(self, token: Token) -> Node:
        name = _plain(token.text)
        if name in ("Var", "var"):
            return self.chance("Var")
        if name in ELEMENTARY or name in SPOKEN:
            return self.named(Token("name", name, style="function" if name in ELEMENTARY else ""))
        if not name or " " in token.text.strip() or not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", name):
            raise Unread("words inside the formula")
        if self.at("(") and (name in self.called or not token.text.endswith(" ")):
            return self.call(name)
        return Node("name", text=name)

    def named(self, token: Token) -> Node:
        name = token.text
        if name in ("E",) and (token.style == "bb" or self.at("[") or self.group_next("[")):
            return self.chance("E")
        if (token.style == "bb" and name == "P") or name == "Pr":
            raise Unread("a probability")
        if name == "Var":
            return self.chance("Var")
        if name in ORDERS and (self.at("(") or token.style == "cal") and name not in self.called:
            if not self.at("("):
                raise Unread("an order without an argument")
            self.take()
            return Node("order", (Parser(self.until(")"), self.called).side(),), ORDERS[name])
        if name in ("sin", "tan") and self.at("_"):  # \sin_{softmax} for sim_{softmax}
            node = self.indexed(Node("name", text="sim"))
            return self.call(node.text) if self.at("(") else node
        if name in ELEMENTARY:
            return self.elementary(name)
        if name in ("gcd", "lcm", "argmax", "det", "lim", "sup", "inf", "deg", "arg", "Cov", "diag", "rank", "mod"):
            raise Unread(f"{name} is not in the language of claims")
        if token.style == "cal" and not self.at("_"):
            name = f"cal_{name}"
        if name == "e" and self.at("^") and not (BOUND_E in self.called and self.numbered()):
            self.take()
            return Node("call", (Parser(self.script(), self.called).side(),), "exp")
        node = Node("name", text=name)
        if self.at("_"):
            node = self.indexed(node)
        while self.at("'"):
            self.take()
            node = Node("name", text=f"{_flat_name(node)}_prime")
        if self.at("_") and node.kind == "name":
            node = self.indexed(node)
        if self.at("(") and node.kind in ("name", "index"):
            flat = _flat_name(node)
            if flat in self.called or base_of(flat) in self.called or name in HEADS or self.several():
                return self.call(flat)
        return node

    def numbered(self) -> bool:
        """Whether an exponent of one digit follows."""
        after = self.found[self.place + 1 : self.place + 2]
        inner = after[0].inner[0] if after and after[0].kind == "group" else tuple(after)
        return len(inner) == 1 and inner[0].kind == "number"

    def group_next(self, opening: str) -> bool:
        token = self.peek()
        return token is not None and token.kind == "group" and token.text == opening

    def several(self) -> bool:
        """Whether the parenthesis that opens here has a comma at its first level: then it holds arguments."""
        depth = 0
        for token in self.found[self.place :]:
            if token.kind != "sign":
                continue
            if token.text in "([":
                depth += 1
            elif token.text in ")]":
                depth -= 1
                if not depth:
                    return False
            elif token.text == "," and depth == 1:
                return True
        return False

    def call(self, name: str) -> Node:
        self.take()
        arguments = [Parser(each, self.called).side() for each in _commas(self.until(")"))]
        return Node("call", tuple(arguments), name)

    def elementary(self, name: str) -> Node:
        function = ELEMENTARY[name]
        base = power = None
        while self.at("'"):
            self.take()
            function += "_prime"
        while self.at("_", "^"):
            if self.take().text == "_":
                base = Parser(self.script(), self.called).side()
            else:
                power = Parser(self.script(), self.called).side()
        if power is not None and power.kind == "neg":
            raise Unread("an inverse function or a reciprocal")
        if self.at("(") or self.at("[") or self.at("{") or self.group_next("["):
            opening = self.take()
            inside = list(opening.inner[0]) if opening.kind == "group" else self.until(CLOSING[opening.text])
            arguments = [Parser(each, self.called).side() for each in _commas(inside)]
        else:
            token = self.peek()
            if token is None or not self.starts(token):
                raise Unread(f"{name} without an argument")
            arguments = [self.tight()]
        if base is not None:
            if function in ("max", "min") and base.kind == "name" and len(arguments) == 1 and power is None:
                return Node(f"{function} over", (base, number("1"), Node("all"), arguments[0]))
            if function != "log":
                raise Unread(f"{name} with a lower index")
            node = Node("/", (Node("call", tuple(arguments), "log"), Node("call", (base,), "log")))
        else:
            node = Node("call", tuple(arguments), function)
        return Node("^", (node, power)) if power is not None else node

    def tight(self) -> Node:
        r"""The argument of `\sin 2x`: numbers and names up to the next sign."""
        factors = [self.factor()]
        while (token := self.peek()) is not None and token.kind in ("number", "name") and token.style != "function":
            factors.append(self.factor())
        return _product(factors, [""] * (len(factors) - 1))

    def chance(self, kind: str) -> Node:
        if self.at("_"):
            self.take()
            self.script()
        if self.group_next("["):
            return Node(kind, (Parser(self.take().inner[0], self.called).side(),))
        if not self.at("[", "("):
            raise Unread(f"{kind} without brackets")
        return Node(kind, (Parser(self.until(CLOSING[self.take().text]), self.called).side(),))

    def macro(self, token: Token) -> Node:
        if token.text == "nabla":
            if not self.at("_"):
                return Node("grad", (Node("nothing"), Node("nothing")))
            self.take()
            return Node("grad", (Node("nothing"), Parser(self.script(), self.called).side()))
        if token.text == "frac" and (found := self.derivative(*token.inner)) is not None:
            return found
        if token.text == "frac":
            above, below = (Parser(each, self.called).side() for each in token.inner)
            return Node("/", (above, below))
        if token.text == "binom":
            return Node("choose", tuple(Parser(each, self.called).side() for each in token.inner))
        if token.text == "sqrt":
            if not token.inner:
                return Node("call", (self.primary(),), "sqrt")
            inside = Parser(token.inner[0], self.called).side()
            if len(token.inner) == 1:
                return Node("call", (inside,), "sqrt")
            degree = Parser(token.inner[1], self.called).side()
            return Node("^", (inside, Node("/", (number("1"), degree))))
        if token.text == "pi":
            return Node("name", text="pi")
        if token.text in ("sum", "prod"):
            return self.repeated(token.text)
        raise Unread(f"not read: {_shown(token)}")

    def derivative(self, above: Sequence[Token], below: Sequence[Token]) -> Node | None:
        r"""`\frac{\partial f}{\partial x}`, or `\frac{df}{dx}`, whose d may also be a size: `text` says so."""
        sign = below[0] if below else Token("other", "")
        if not above or above[0].text != sign.text or len(below) < 2 or sign.text not in ("partial", "d"):
            return None
        if sign.text == "d" and (len(below) != 2 or below[1].kind != "name" or self.at("_", "^")):
            return None
        if any(token.kind == "sign" and token.text == "^" for token in (*above[1:2], *below)):
            raise Unread("a higher derivative")
        inside = Parser(above[1:], self.called).side() if above[1:] else Node("nothing")
        return Node("grad", (inside, Parser(below[1:], self.called).side()), "d" if sign.text == "d" else "")

    def applied(self, node: Node) -> Node:
        """The operator d/dx or nabla before what it acts on."""
        token = self.peek()
        if token is None or not self.starts(token):
            raise Unread("a derivative of nothing")
        inside, variable = self.factor(), node.parts[1]
        if variable.kind == "nothing":  # of f(w), by w
            if inside.kind != "call" or len(inside.parts) != 1 or inside.parts[0].kind != "name":
                raise Unread("a gradient by an unnamed variable")
            variable = inside.parts[0]
        return Node("grad", (inside, variable), node.text)

    def repeated(self, kind: str) -> Node:
        low: list[Token] = []
        high: list[Token] = []
        while self.at("_", "^"):
            if self.take().text == "_":
                low = self.script()
            else:
                high = self.script()
        relations = [place for place, each in enumerate(low) if each.kind == "relation"]
        if not high and len(low) == 1 and low[0].kind == "name":  # over all entries
            return Node(kind, (Node("name", text=low[0].text), number("1"), Node("all"), self.term()))
        if not high or len(relations) != 1 or low[relations[0]].text != "==" or relations[0] != 1:
            return Node("series", (self.term(),))
        first = Parser(low[2:], self.called).side()
        last = Parser(high, self.called).side()
        body = self.term()
        return Node(kind, (Node("name", text=low[0].text), first, last, body))

    def matrix(self, token: Token) -> Node:
        if token.text in ("vmatrix", "Vmatrix"):
            raise Unread("a determinant")
        rows = [[Parser(cell, self.called).side() for cell in row[0].inner if cell] for row in token.inner]
        if not rows or any(len(row) != len(rows[0]) for row in rows) or not rows[0]:
            raise Unread("a matrix with gaps")
        if len(rows[0]) == 1:
            return Node("vector", tuple(row[0] for row in rows), "column")
        if len(rows) == 1:
            return Node("transpose", (Node("vector", tuple(rows[0]), "column"),))
        return Node("matrix", tuple(Node("vector", tuple(row)) for row in rows))

    def bracketed(self, token: Token) -> Node:
        if token.text == "$":  # an amount of money
            return Node("unit", (self.factor(),), "dollars")
        if token.text == "(":
            parts = _commas(self.until(")"))
            if len(parts) > 1:
                return Node("vector", tuple(Parser(each, self.called).side() for each in parts), "tuple")
            return Node("group", (Parser(parts[0], self.called).side(),))
        if token.text == "[":
            inside = self.until("]")
            parts = _commas(inside)
            if self.at("_") and self.found[self.place + 1 : self.place + 2] and self.found[self.place + 1].text == "+":
                self.take()
                self.take()
                return Node("call", (Parser(inside, self.called).side(),), "relu")
            if len(parts) > 1:
                return Node("vector", tuple(Parser(each, self.called).side() for each in parts))
            return Node("group", (Parser(inside, self.called).side(),))
        if token.text == "{":
            return Node("group", (Parser(self.until("}"), self.called).side(),))
        if token.text in ("‖", "|"):
            inside = []
            while not self.at(token.text):
                inside.append(self.take())
            self.take()
            node = Parser(inside, self.called).side()
            return Node("norm" if token.text == "‖" else "abs", (node,))
        if token.text in ("⌊", "⌈"):
            inside = []
            while not self.at(CLOSING[token.text]):
                inside.append(self.take())
            self.take()
            return Node("floor" if token.text == "⌊" else "ceil", (Parser(inside, self.called).side(),))
        raise Unread(f"not read: {token.text}")


def base_of(name: str) -> str:
    """The function whose derivative `f'` or `f''` is, or the name itself."""
    while name.endswith("_prime"):
        name = name.removesuffix("_prime")
    return name


def _product(factors: list[Node], joined: list[str]) -> Node:
    return factors[0] if len(factors) == 1 else Node("product", tuple(factors), joined=tuple(joined))


def _commas(found: Sequence[Token]) -> list[list[Token]]:
    parts: list[list[Token]] = [[]]
    depth = 0
    for token in found:
        if token.kind == "sign" and token.text in "([{" and len(token.text) == 1:
            depth += 1
        elif token.kind == "sign" and token.text in ")]}" and len(token.text) == 1:
            depth -= 1
        if token.kind == "sign" and token.text in (",", ";") and not depth:
            parts.append([])
        else:
            parts[-1].append(token)
    if not all(parts):
        raise Unread("a comma without an expression beside it")
    return parts


def _plain(text: str) -> str:
    r"""A word as a name: sim\_softmax and sim_softmax are one."""
    return re.sub(r"\W+", "_", text.replace("\\", "").strip()).strip("_")


def _flat_name(node: Node) -> str:
    if node.kind == "index":
        inside = node.parts[1]
        return f"{node.text}_{inside.text}" if len(node.parts) == 2 and inside.kind in ("name", "number") else ""
    return node.text


def _unit(text: str) -> str:
    """A word that can follow a number as its unit, or nothing."""
    words = text.replace("\\", " ").strip(" .,")
    return (
        words
        if re.fullmatch(r"[A-Za-z][A-Za-z /²³^0-9.-]{0,40}", words)
        and words not in ("and", "or", "if")
        and "remain" not in words
        else ""
    )


def _quantity(node: Node) -> bool:
    return node.closed and node.kind not in ("unit",)


def _shown(token: Token) -> str:
    return {"other": token.text, "macro": f"\\{token.text}"}.get(token.kind, token.text or token.kind)


def features(node: Node) -> Node | None:
    r"""`[a(w_1), \dots, a(w_R), b(w_1), \dots, b(w_R)]` as one of its R parts, or nothing if it is no such list.

    The parts of the result are a(w) and b(w), its text is R and `joined` are the numbered names.
    """
    bodies: list[Node] = []
    last, numbered = "", set()
    parts = list(node.parts)
    while parts:
        if len(parts) < 3 or parts[1].kind != "dots":
            return None
        first, final, parts = parts[0], parts[2], parts[3:]
        ends = {part.parts[1].text for part in final.walk() if part.kind == "index" and len(part.parts) == 2}
        if len(ends) != 1 or (last and {last} != ends):
            return None
        last = ends.pop()
        one, other = _numbered(first, "1"), _numbered(final, last)
        if one != other or one == first:
            return None
        numbered |= {part.text for part in final.walk() if part.kind == "index"}
        bodies.append(one)
    return Node("features", tuple(bodies), last, tuple(sorted(numbered))) if bodies else None


def _numbered(node: Node, number: str) -> Node:
    return rewritten(
        node,
        lambda part: (
            part.parts[0] if part.kind == "index" and len(part.parts) == 2 and part.parts[1].text == number else None
        ),
    )


Rewrite = Callable[[Node], Node | None]


def rewritten(node: Node, rule: Rewrite) -> Node:
    """The tree with every part replaced for which the rule gives another, from above."""
    found = rule(node)
    if found is not None:
        return found
    return Node(node.kind, tuple(rewritten(part, rule) for part in node.parts), node.text, node.joined)
