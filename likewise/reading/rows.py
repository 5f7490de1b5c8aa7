r"""Index notation with rows of matrices: `V'_i = \frac{\phi(Q_i) \sum_j \phi(K_j)^T V_j}{\phi(Q_i) \sum_j \phi(K_j)^T}`

Whether `Q_i` and `phi(Q_i)` are rows or columns is a layout. A text that states one is held to it; otherwise all four
are tried, and a formula is refuted only if none fits, or if it is false in all that fit. A map that nothing defines is
any map: its values at the rows of K are the rows of a matrix of their own.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import product

from likewise.reading.expressions import ELEMENTARY, Node, rewritten
from likewise.reading.latex import Unread
from likewise.reading.scope import INDICES, Binding, Convention, Scope, is_polynomial, stands_for
from likewise.reading.segments import Turn
from likewise.reading.statements import Said

Form = tuple[str, ...]  # () a number; (row, n), (col, n), (mat, n, m)
SAID = re.compile(
    r"(?P<subject>[^.;:!?\n]{1,80}?)\s(?:is|are|as)\s"
    r"(?:(?:all|both|also|already|the|an?)\s|\*\*|\$1 ?\\times ?\w\$\s)*(?P<kind>row|column)[- ]vectors?\b",
    re.I,
)
OF_MAP = re.compile(
    r"\\(?P<map>phi|psi)(?:_\\text\{\w+\}|_\{\\text\{\w+\}\})?\((?P<of>[^()]*)\)(?P<turned>\^\{?\\?(?:T|top)\b)?"
)
OF_ROWS = re.compile(r"\b[QKV]_\{?[a-z]\b|\b(?:queries|keys|values|tokens?|each vector|token's representation)\b", re.I)
MAPS_TO = re.compile(r"maps\b[^.;]{0,80}?\bto (?:a |one )?\**(?P<kind>row|column)[- ]vector", re.I)
AGREED = re.compile(r"\b(?P<kind>row|column)-vector (?:convention|notation)", re.I)
IN_SPACE = re.compile(
    r"(?P<what>(?:[QKV]_\{?[a-z]\}?|\\phi\([A-Z]_\{?[a-z]\}?\)))(?:, ?[^$\n]{1,40})?\s*\\in\s*\\mathbb\{R\}\^"
    r"\{(?P<one>1\s*\\times\s*\w+|\w+\s*\\times\s*1)\}"
)
NEAR = 12  # lines: so far from a formula its layout may be said; derivations change it further on
MUSED = re.compile(
    r"\?|\b(?:wait|hmm|actually|probably|careful|maybe|might|depending|typically|suppose|whether)\b", re.I
)


class Misfit(Exception):
    """A product whose shapes do not fit in a layout, or two sides that differ in shape: both shapes."""

    def __init__(self, left: Form, right: Form, *, sides: bool = False) -> None:
        super().__init__("a product whose shapes do not fit")
        self.left, self.right, self.sides = left, right, sides


def conventions(text: str, turns: Sequence[Turn]) -> tuple[Convention, ...]:
    """What the prose says about rows and columns, in order; a line that wonders says nothing.

    >>> [(each.what, each.kind) for each in conventions("Here $Q_i$ and $K_j$ are row vectors.", ())]
    [('rows', 'row')]
    """
    found = []
    for number, line in enumerate(text.split("\n"), start=1):
        if ("vector" not in line and "times" not in line) or MUSED.search(line):
            continue
        turn = next((place for place, each in enumerate(turns) if each.first <= number <= each.last), 0)
        if turns and turns[turn].speaker == "annotator":
            continue
        said: list[tuple[str, str]] = []
        for match in SAID.finditer(line):
            subject, kind = match["subject"][-80:], _kind(match["kind"])
            if mapped := OF_MAP.search(subject):
                said.append((mapped["map"], _other(kind) if mapped["turned"] else kind))
            elif OF_ROWS.search(subject) and "^" not in subject:
                said.append(("rows", kind))
        said += [("phi", _kind(match["kind"])) for match in MAPS_TO.finditer(line)]
        said += [("rows", _kind(match["kind"])) for match in AGREED.finditer(line)]
        for match in IN_SPACE.finditer(line):
            said.append(("phi" if "phi" in match["what"] else "rows", "row" if match["one"][0] == "1" else "col"))
        user = bool(turns) and turns[turn].speaker == "user"
        found += [Convention(what, kind, number, turn, user) for what, kind in dict.fromkeys(said)]
    return tuple(found)


def _kind(word: str) -> str:
    return "row" if word.lower() == "row" else "col"


def _other(kind: str) -> str:
    return "col" if kind == "row" else "row"


def layouts(scope: Scope, at: Said) -> tuple[list[dict[str, str]], list[Convention]]:
    """The layouts that a statement may have, and what its turn, or the user before it, says of them."""
    called = {part.text for node in at.nodes if isinstance(node, Node) for part in node.walk() if part.kind == "call"}
    stated: dict[str, Convention] = {}
    for what, names in (("rows", {"rows"}), ("mapped", called)):
        known = [each for each in scope.conventions if each.what in names]
        near = [each for each in known if each.turn == at.formula.turn and abs(each.line - at.formula.line) <= NEAR]
        before = [each for each in near if each.line <= at.formula.line]
        own = before or near or [each for each in known if each.user and each.turn == at.formula.turn - 1]
        if own and len({each.kind for each in own}) == 1:
            stated[what] = own[-1]
    ways = [[stated[what].kind] if what in stated else ["row", "col"] for what in ("rows", "mapped")]
    return [dict(zip(("rows", "mapped"), way, strict=True)) for way in product(*ways)], list(stated.values())


def uses_rows(node: Node) -> bool:
    """Whether a side speaks of rows by an index: as the argument of a map, or multiplied with a transpose of one."""
    for part in node.walk():
        if part.kind == "call" and part.text not in ELEMENTARY.values() and any(map(is_row, part.parts)):
            return True
        if part.kind == "product" and any(each.kind == "transpose" and is_row(each.parts[0]) for each in part.parts):
            return True
    return False


def is_row(node: Node) -> bool:
    """`Q_i`: a capital with one letter below."""
    return (
        node.kind == "index"
        and len(node.parts) == 2
        and node.parts[1].kind == "name"
        and node.parts[1].text in INDICES
        and re.fullmatch(r"[A-Z]", node.text) is not None
    )


@dataclass(frozen=True)
class Value:
    """What a part is in one layout; `over`: one for each j, with their axis first."""

    text: str
    form: Form = ()
    over: bool = False
    factor: str = ""  # a number for each j that a vector is multiplied by
    right: str = ""  # of an outer product for each j: its second factors; `text` are the first
    rows: str = ""  # of a sum of vectors: the matrix whose rows they are


@dataclass
class Table:
    """Writes sides in one layout."""

    scope: Scope
    at: Said
    layout: dict[str, str]
    given: dict[str, str] = field(default_factory=dict)
    sizes: dict[str, None] = field(default_factory=dict)
    bindings: dict[str, Binding] = field(default_factory=dict)
    divisors: dict[str, None] = field(default_factory=dict)
    running: str = ""  # the index of the sum
    bound: str = ""  # how far it runs
    split: str = ""  # the index i, where i - 1 occurs: a sum to i is one to i - 1 and its last term
    local: dict[str, Value] = field(default_factory=dict)
    loose: bool = False  # inside the definition of a number, where a^T b and a b^T are both the product of two vectors
    opaque: bool = False  # whether a map or similarity stands for any
    similar: bool = False  # whether a similarity stands for what it was defined to be, without a map
    depth: int = 0

    def value(self, node: Node) -> Value:
        """One part."""
        match node.kind:
            case "number":
                return Value(node.text)
            case "group":
                found = self.value(node.parts[0])
                return replace(found, text=_wrap(found.text))
            case "name":
                return self.name(node.text)
            case "index":
                return self.entry(node)
            case "call":
                return self.call(node)
            case "transpose":
                return _turned(self.value(node.parts[0]))
            case "product":
                found = self.value(node.parts[0])
                for sign, part in zip(node.joined, node.parts[1:], strict=True):
                    found = self.times(found, sign, self.value(part))
                return found
            case "/":
                return self.quotient(*map(self.value, node.parts))
            case "+" | "-":
                one, other = map(self.value, node.parts)
                if one.factor or other.factor or one.right or other.right or one.over != other.over:
                    raise Unread("a sum of different terms for each index")
                if one.form != other.form:
                    if not (one.form and other.form):
                        raise Unread("a sum of different shapes")
                    raise Misfit(one.form, other.form, sides=True)
                return replace(one, text=f"({one.text} {node.kind} {other.text})", rows="")
            case "neg":
                found = self.value(node.parts[0])
                if found.right:
                    raise Unread("a negative outer product for each index")
                return replace(found, text=f"(-{found.text})", rows="")
            case "^" if node.parts[1].kind == "number":
                found = self.value(node.parts[0])
                if found.form:
                    raise Unread("the power of a vector")
                return replace(found, text=f"({_wrap(found.text)}^{node.parts[1].text})")
            case "norm":
                found = self.value(node.parts[0])
                if found.over or not found.form or found.form[0] == "mat":
                    raise Unread("a norm for each index")
                return Value(f"norm({found.text})")
            case "sum":
                return self.summed(node)
        raise Unread("index notation of what is not a vector")

    def name(self, name: str) -> Value:
        if name in self.local:
            return self.local[name]
        if (found := self.defined(name)) is not None:
            return found
        if is_polynomial(Node("name", text=name)) and (
            name in self.scope.sizes or name in self.scope.counts or len(name) == 1
        ):
            if name.isupper() and name not in self.scope.sizes and name not in self.scope.counts:
                raise Unread("index notation of what is not a vector")
            self.sizes[safe(name)] = None
            return Value(safe(name))
        raise Unread("index notation of what is not a vector")

    def defined(self, key: str) -> Value | None:
        """What an earlier line says the name stands for, `S = ..` or `S_i = ..`, put in its place."""
        binding = defined_before(self.scope, key, self.at)
        if binding is None or binding.node is None:
            return None
        if self.depth > 4:
            raise Unread("a definition of itself")
        self.bindings[key] = binding
        before = self.local, self.running, self.bound
        self.local, self.running, self.bound = {}, "", ""
        self.depth += 1
        try:
            found = self.value(binding.node)
        finally:
            self.local, self.running, self.bound = before
            self.depth -= 1
        return replace(found, text=_wrap(found.text))

    def entry(self, node: Node) -> Value:
        """`K_j`: the row of the running index, or of a fixed one; `S_i`: what it was defined to be."""
        base, index = node.parts[0], node.parts[1]
        if index.kind == "-" and self.split and index.parts[0].text == self.split and index.parts[1].text == "1":
            binding = defined_before(self.scope, f"{base.text}_*", self.at)
            if binding is None or binding.node is None or binding.node.kind != "sum":
                raise Unread("a recurrence of what is not a sum")
            self.bindings[base.text] = binding
            before, self.split = self.split, ""
            try:
                return self.summed(
                    rewritten(
                        binding.node, lambda part: Node("name", text="n") if part == Node("name", text=before) else None
                    ),
                    "n",
                )
            finally:
                self.split = before
        if (found := self.defined(stands_for(node))) is not None:
            return found
        if index.kind != "name" or len(node.parts) != 2:
            raise Unread("an entry of a matrix")
        if not is_row(node):
            raise Unread("index notation of what is not a vector")
        key, width = safe(base.text), self.width(base.text)
        self.sizes[width] = None
        form = (self.layout["rows"], width)
        if index.text == self.running:
            self.given[key] = f"in R^({self.bound}, {width})"
            return Value(key, form, over=True)
        self.given[f"{base.text}_{index.text}"] = f"in R^{width}"
        return Value(f"{base.text}_{index.text}", form)

    def width(self, base: str) -> str:
        """The length of the rows of a matrix: as declared, or that of queries and keys, or of values."""
        declared = self.scope.kind(base, "type", self.at)
        if declared is not None and len(declared.dims) == 2:
            self.bindings[f"{base} in"] = declared
            return declared.dims[1]
        return "M" if base == "V" else "D"

    def call(self, node: Node) -> Value:
        name = node.text
        if name in ("exp", "log", "sqrt", "tanh", "relu", "abs"):
            found = self.value(node.parts[0])
            if found.form:
                raise Unread(f"{name} of a vector")
            return Value(f"{name}({found.text})", (), found.over)
        arguments = [self.value(part) for part in node.parts]
        if len(arguments) == 1 and arguments[0].form[:1] in (("row",), ("col",)):
            return self.mapped(name, arguments[0])
        if len(arguments) == 2 and all(each.form[:1] in (("row",), ("col",)) for each in arguments):
            return self.similarity(name, arguments)
        raise Unread("index notation of what is not a vector")

    def mapped(self, name: str, argument: Value) -> Value:
        """The value of a feature map, any map, at a row or at each row."""
        if argument.factor or argument.right or not argument.text.isidentifier():
            raise Unread("a map of an expression")
        self.opaque = True
        width = self.features(name)
        self.sizes[width] = None
        key = f"{safe(name)}_{argument.text}"
        self.given[key] = f"in R^({self.bound}, {width})" if argument.over else f"in R^{width}"
        return Value(key, (self.layout["mapped"], width), argument.over)

    def features(self, name: str) -> str:
        """How many features a map has: as declared, or F."""
        declared = self.scope.kind(f"{name}()", "type", self.at)
        if declared is not None and len(declared.dims) == 1 and declared.dims[0].isidentifier():
            self.bindings[f"{name} in"] = declared
            return declared.dims[0]
        return "F" if "F" not in self.scope.sizes else "F_"

    def similarity(self, name: str, arguments: list[Value]) -> Value:
        """A similarity as it is defined; one that nothing defines is any number for each key."""
        binding = self.scope.kind(name, "function", self.at)
        if binding is None or binding.node is None or len(binding.parameters) != 2:
            raise Unread(f"the function {name} is not defined")
        if self.depth > 4:
            raise Unread("a definition of itself")
        self.bindings[name] = binding
        called = {part.text for part in binding.node.walk() if part.kind == "call"}
        self.similar |= not called - ELEMENTARY.keys()
        before = self.local, self.loose
        self.local, self.loose = dict(zip(binding.parameters, arguments, strict=True)), True
        self.depth += 1
        try:
            found = self.value(binding.node)
        finally:
            self.local, self.loose = before
            self.depth -= 1
        if found.form:
            raise Unread(f"the function {name} is not a number")
        return replace(found, text=_wrap(found.text))

    def quotient(self, above: Value, below: Value) -> Value:
        if below.form:
            raise Unread("a division by a vector")
        if above.right or above.factor or (above.over and above.form) or (below.over and not above.over):
            raise Unread("a quotient for each index")
        if not below.over and not below.text.isdigit():
            self.divisors[below.text] = None
        return replace(above, text=f"({above.text}/{_wrap(below.text)})", rows="")

    def times(self, one: Value, sign: str, other: Value) -> Value:
        """A product, by the shapes of its factors."""
        if not one.form or not other.form:
            return self.scaled(one, other) if not one.form else self.scaled(other, one)
        left, right = one.form[0], other.form[0]
        single = any(each.factor or each.right for each in (one, other))
        if "mat" not in (left, right):
            if (left, right) == ("row", "col") or (left == right and sign == "·") or self.loose:
                return self.dotted(one, other)
            if left == right:
                raise Misfit(one.form, other.form)
            if sign == "·" and one.form[1] == other.form[1]:
                return self.dotted(one, other)
            return self.outer(one, other)
        inner = (one.form[1] if left == "row" else "1" if left == "col" else one.form[2], other.form[1])
        if right == "row":
            inner = (inner[0], "1")
        if sign == "·" and inner[0] != inner[1]:
            raise Unread("a dot between a vector and a matrix")
        if inner[0] != inner[1]:
            raise Misfit(one.form, other.form)
        if single or one.over or other.over or "1" in inner:
            raise Unread("a matrix product for each index")
        if left == "row":
            return Value(f"({one.text} @ {_wrap(other.text)})", ("row", other.form[2]))
        if right == "col":
            return Value(f"({_wrap(one.text)} @ {other.text})", ("col", one.form[1]))
        return Value(f"({_wrap(one.text)} @ {_wrap(other.text)})", ("mat", one.form[1], other.form[2]))

    def scaled(self, number: Value, other: Value) -> Value:
        """A number, or one for each j, times what may be a vector."""
        if not other.form:
            return Value(f"({number.text}*{other.text})", (), number.over or other.over)
        if number.over and other.right:
            raise Unread("a product of several terms for each index")
        if number.over:
            if not other.over:
                raise Unread("a sum of multiples of one vector")
            factor = f"({number.text}*{other.factor})" if other.factor else number.text
            return replace(other, factor=factor)
        return replace(other, text=f"({number.text}*{other.text})", rows="")

    def dotted(self, one: Value, other: Value) -> Value:
        if one.form[1] != other.form[1]:
            raise Misfit(one.form, other.form)
        if (one.over and other.over) or any(each.factor or each.right for each in (one, other)):
            raise Unread("a product of two rows with one index")
        if one.over or other.over:
            rows, vector = (one, other) if one.over else (other, one)
            return Value(f"({rows.text} @ {vector.text})", (), over=True)
        if one.rows or other.rows:  # the product with a sum is the sum of the products
            rows, vector = (one.rows, other.text) if one.rows else (other.rows, one.text)
            return Value(f"sum({_wrap(rows)} @ {vector})")
        return Value(f"dot({one.text}, {other.text})")

    def outer(self, one: Value, other: Value) -> Value:
        form = ("mat", one.form[1], other.form[1])
        if one.factor or other.factor:
            raise Unread("a product of several terms for each index")
        if one.over and other.over:
            return Value(one.text, form, over=True, right=other.text)
        if one.over or other.over:
            return Value("", form, over=True, right="one row")  # of which only the shape is known
        return Value(f"outer({one.text}, {other.text})", form)

    def summed(self, node: Node, bound: str = "") -> Value:
        """A sum over the rows, j = 1, ..., N."""
        index, first, last, body = node.parts
        if first.text != "1" or last.kind not in ("name", "all") or self.running:
            raise Unread("a sum over an index")
        if self.split and last.text == self.split:
            short = self.summed(Node("sum", (index, first, Node("name", text="n"), body)), "n")
            final = self.value(rewritten(body, lambda part: last if part == index else None))
            if short.form != final.form:
                raise Unread("a sum of different shapes")
            return replace(short, text=f"({short.text} + {final.text})", rows="")
        bound = bound or (last.text if last.kind == "name" else "N")
        if self.bound and self.bound != bound:
            raise Unread("sums with different bounds")
        for declared in self.given.values():
            if declared.startswith("in R^(") and not declared.startswith(f"in R^({bound},"):
                raise Unread("sums with different bounds")
        self.running, self.bound = index.text, bound
        self.sizes[bound] = None
        try:
            found = self.value(body)
        finally:
            self.running, self.bound = "", ""
        if not found.over:
            raise Unread("a sum of what does not depend on its index")
        if not found.form:
            return Value(f"sum({found.text})")
        if found.right == "one row":
            raise Unread("an outer product with one row")
        if found.right:
            return Value(f"({found.text}' @ {found.right})", found.form)
        if found.factor:
            return Value(f"({found.factor} @ {found.text})", found.form)
        return Value(f"(ones({bound}) @ {found.text})", found.form, rows=found.text)


def _turned(found: Value) -> Value:
    if not found.form:
        raise Unread("the transpose of a number")
    if found.form[0] == "mat":
        if found.right:
            return replace(found, text=found.right, right=found.text, form=("mat", *found.form[:0:-1]))
        return replace(found, text=f"{_wrap(found.text)}'", form=("mat", *found.form[:0:-1]))
    return replace(found, form=("row" if found.form[0] == "col" else "col", found.form[1]))


def _wrap(text: str) -> str:
    return text if re.fullmatch(r"\w+|\([^()]*\)", text) else f"({text})"


def defined_before(scope: Scope, key: str, at: Said) -> Binding | None:
    """What a name was said to stand for, before a statement, in its chapter and turn."""
    found = [
        each
        for each in scope.bindings.get(f"={key}", ())
        if each.number < at.number and each.turn == at.formula.turn and each.chapter in (0, at.formula.chapter)
    ]
    if not found:
        return None
    if found[-1].node is None:
        raise Unread(f"the definition of {key.removesuffix('_*')} in line {found[-1].line} was not read")
    return found[-1]


def safe(name: str) -> str:
    """A name that the language of claims allows."""
    key = re.sub(r"\W", "_", name)
    return (
        f"{key}_"
        if key in ("E", "Var", "P", "O", "Omega", "Theta", "I", "R", "N", "Z", "U", "sim") and len(key) < 6
        else key
    )


def shape(found: Value) -> str:
    """The axes of a value as the claim writes it: a vector has one."""
    return ", ".join(found.form[1:])


def in_space(found: Value, dims: Sequence[str], given: dict[str, str]) -> str | None:
    """The claim that a value has these axes, or nothing if its rank is another; lengths nobody declared are theirs."""
    axes = (
        {"row": ("1", *found.form[1:]), "col": (*found.form[1:], "1"), "mat": found.form[1:]}[found.form[0]]
        if found.form
        else ()
    )
    wanted = tuple(dims)
    if len(wanted) == 1 and len(found.form) == 2:
        axes = found.form[1:]
    if len(axes) != len(wanted):
        return None
    free = {mine: theirs for mine, theirs in zip(axes, wanted, strict=True) if mine in FREE and theirs.isidentifier()}
    if any((mine == "1") != (theirs == "1") for mine, theirs in zip(axes, wanted, strict=True)):
        return None

    def put(text: str) -> str:
        return re.sub(r"\w+", lambda match: free.get(match[0], match[0]), text)

    for name in list(given):
        given[name] = put(given[name])
    lengths = [theirs for mine, theirs in zip(axes, wanted, strict=True) if mine != "1"]
    return f"{put(found.text)} has shape [{', '.join(lengths)}]"


FREE = ("F", "F_", "M", "D")  # lengths that stand for any


def misfit_claim(found: Misfit) -> str:
    """A claim that shapes refute: of a product that does not exist, or of two sides that are no equals."""
    sides = [_axes(found.left), _axes(found.right)]
    if found.sides:
        return f"given: left in R^({', '.join(sides[0])})\nassert: left has shape [{', '.join(sides[1])}]"
    given = f"given: left in R^({', '.join(sides[0])}); right in R^({', '.join(sides[1])})"
    return f"{given}\nassert: left @ right has shape [{sides[0][0]}, {sides[1][1]}]"


def _axes(form: Form) -> tuple[str, str]:
    if form[0] == "row":
        return "1", form[1]
    return (form[1], "1") if form[0] == "col" else (form[1], form[2])


def split_letters(node: Node) -> Iterator[str]:
    """Index letters i for which i - 1 occurs as an index."""
    for part in node.walk():
        if (
            part.kind == "index"
            and len(part.parts) == 2
            and part.parts[1].kind == "-"
            and part.parts[1].parts[1].text == "1"
        ):
            yield part.parts[1].parts[0].text
