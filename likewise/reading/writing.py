"""The typed elaborator: one link of a statement as a claim, with the bindings it rests on.

Types are numbers, columns, rows and matrices with sizes. A row times a column is a dot product, a column times a row an
outer product; what does not fit is refused, never mended.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from fractions import Fraction

from likewise.reading.expressions import Node, features, number, rewritten, value
from likewise.reading.latex import Unread
from likewise.reading.scope import INDICES, Binding, Scope, small_whole
from likewise.reading.statements import Said

Type = tuple[str, ...]  # () a number; (col, n), (row, n), (mat, n, m)
NUMBER: Type = ()
RESERVED = {
    "E",
    "Var",
    "P",
    "O",
    "Omega",
    "Theta",
    "I",
    "R",
    "N",
    "Z",
    "U",
    "in",
    "has",
    "shape",
    "within",
    "cost",
    "out",
}
RESERVED |= {
    "count",
    "params",
    "peak",
    "saved",
    "traffic",
    "dim",
    "sum",
    "mean",
    "max",
    "min",
    "abs",
    "vec",
    "tr",
    "pairs",
}
RESERVED |= {"dot", "norm", "ones", "zeros", "choose", "sign", "floor", "grad", "pi", "sigmoid", "tanh", "erf", "round"}
SIZES_ALLOWED = {"N", "R", "O", "P", "E"}
FUNCTIONS = {"exp", "log", "sin", "cos", "relu", "softmax", "sqrt", "max", "min", "tr", "vec"}
GREATEST_FACTORIAL = 25


@dataclass
class Draft:
    """What a claim needs besides its assertion, collected while its sides are written."""

    sizes: dict[str, None] = field(default_factory=dict)
    given: dict[str, str] = field(default_factory=dict)  # name -> declaration
    definitions: dict[str, str] = field(default_factory=dict)  # name -> line, in order
    bindings: dict[str, Binding] = field(default_factory=dict)
    free: set[str] = field(default_factory=set)  # names that nothing binds
    inferred: set[str] = field(default_factory=set)  # vectors by the way they are used
    random: bool = False
    divisors: set[str] = field(default_factory=set)  # names that something is divided by
    notes: list[str] = field(default_factory=list)


class Writer:
    """Writes the sides of one statement."""

    def __init__(self, scope: Scope, at: Said, *, percent: bool = True, mixed: bool = True) -> None:
        self.scope, self.at = scope, at
        self.percent, self.mixed = percent, mixed
        self.draft = Draft()
        self.local: dict[str, Type] = {}  # parameters of the function that is written
        self.running = ""  # the index letter that runs over the entries of vectors
        self.expected = False  # whether random names are written with their law, or as any value
        self.scalar = 0  # inside how many functions of numbers: there w x is a dot product
        self.usual = scope.default_size()  # the size of a vector whose size is not said
        self.here = False  # whether the turn itself says so
        self.summed = 0  # sums over random features so far, of which one stands for all
        self.values: dict[str, Node] = {}

    def text(self, node: Node) -> tuple[str, Type]:
        """A tree in the language of claims, with its type."""
        method = getattr(self, f"_{NAMED.get(node.kind, node.kind)}", None)
        if method is None:
            named = {"series": "a sum without its bounds", "dots": "dots"}
            raise Unread(named.get(node.kind, f"{node.kind} is not in the language of claims"))
        return method(node)

    def _number(self, node: Node) -> tuple[str, Type]:
        text = node.text if not node.text.startswith(".") else f"0{node.text}"
        return text, NUMBER

    def _group(self, node: Node) -> tuple[str, Type]:
        text, kind = self.text(node.parts[0])
        return f"({text})", kind

    def _unit(self, node: Node) -> tuple[str, Type]:
        self.draft.notes.append(f"unit {node.text}")
        return self.text(node.parts[0])

    def _percent(self, node: Node) -> tuple[str, Type]:
        text = self.number(node.parts[0])
        return (f"(({text})/100)" if self.percent else text), NUMBER

    def _mixed(self, node: Node) -> tuple[str, Type]:
        whole, part = map(self.number, node.parts)
        return f"({whole} {'+' if self.mixed else '*'} {part})", NUMBER

    def number(self, node: Node) -> str:
        """The text of what must be a number."""
        text, kind = self.text(node)
        if kind != NUMBER:
            raise Unread("a vector where a number is wanted")
        return text

    def _add(self, node: Node) -> tuple[str, Type]:
        (left, one), (right, other) = map(self.text, node.parts)
        if one != other:
            if {len(one), len(other)} == {0, 2} and not self.running:
                raise Unread("a number added to a vector")
            raise Unread("a sum of different shapes")
        return f"({left} {node.kind} {right})", one

    def _neg(self, node: Node) -> tuple[str, Type]:
        text, kind = self.text(node.parts[0])
        return f"(-{text})", kind

    def _divide(self, node: Node) -> tuple[str, Type]:
        above, kind = self.text(node.parts[0])
        below, second = self.linear(node.parts[1])
        if second != NUMBER:
            raise Unread("a division by a vector")
        if node.parts[1].kind == "name":
            self.draft.divisors.add(below)
        return f"({above}/{self.wrap(below)})", kind

    def wrap(self, text: str) -> str:
        """In parentheses, unless it is one word or in some already."""
        return text if text.replace("_", "").isalnum() or (text[:1] == "(" and _matched(text)) else f"({text})"

    def _power(self, node: Node) -> tuple[str, Type]:
        base, exponent = node.parts
        if base.kind == "norm" and exponent == number("2"):
            return f"sqnorm({self.linear(base.parts[0])[0]})", NUMBER
        text, kind = self.linear(base)
        if kind != NUMBER:
            if kind[0] == "col" and exponent == number("2") and not self.running:
                raise Unread("the square of a vector can be read in two ways")
            if kind[0] == "mat":
                raise Unread("the power of a matrix")
        return f"({self.wrap(text)}^{self.wrap(self.number(exponent))})", kind

    def _norm(self, node: Node) -> tuple[str, Type]:
        return f"norm({self.linear(node.parts[0])[0]})", NUMBER

    def _abs(self, node: Node) -> tuple[str, Type]:
        return f"abs({self.number(node.parts[0])})", NUMBER

    def _transpose(self, node: Node) -> tuple[str, Type]:
        text, kind = self.text(node.parts[0])
        if not kind:
            raise Unread("the transpose of a number")
        if kind[0] == "mat":
            return f"{text}'", ("mat", kind[2], kind[1])
        return text, ("row" if kind[0] == "col" else "col", *kind[1:])

    def _factorial(self, node: Node) -> tuple[str, Type]:
        whole = small_whole(node.parts[0], GREATEST_FACTORIAL)
        if whole is None or whole < 0:
            raise Unread("a factorial that is not of a small number")
        return "(" + "*".join(map(str, range(1, whole + 1))) + ")" if whole else "1", NUMBER

    def _choose(self, node: Node) -> tuple[str, Type]:
        above, below = map(self.number, node.parts)
        return f"choose({above}, {below})", NUMBER

    def _vector(self, node: Node) -> tuple[str, Type]:
        if any(part.kind == "dots" for part in node.parts):
            listed = features(node)
            if listed is None:
                raise Unread("a list with dots")
            return self.listed(listed)
        if node.text == "tuple":
            raise Unread("a pair or a point")
        parts, size = [], []
        for part in node.parts:
            text, kind = self.text(part)
            if kind and kind[0] == "mat":
                raise Unread("a matrix inside a vector")
            parts.append(text)
            size.append(kind[1] if kind else "1")
        return f"[{', '.join(parts)}]", ("col", "+".join(size) if not all(s == "1" for s in size) else str(len(size)))

    def listed(self, node: Node) -> tuple[str, Type]:
        """One of R features that differ only in their number; a sum over all of them is R times one."""
        size = self.safe(node.text, size=True)
        self.draft.sizes[size] = None
        parts = [self.number(part) for part in node.parts]
        self.draft.notes.append(f"one of {node.text} features that are alike")
        return f"[{', '.join(parts)}]", ("col", f"{len(parts)}*{size}", size)

    def linear(self, node: Node) -> tuple[str, Type]:
        """What must not hold a sum over features, for one of them would not stand for all."""
        before = self.summed
        found = self.text(node)
        if self.summed != before or (len(found[1]) == 3 and found[1][0] in ("col", "row")):
            raise Unread("a sum over features that is not linear")
        return found

    def _matrix(self, node: Node) -> tuple[str, Type]:
        rows = [f"[{', '.join(map(self.number, row.parts))}]" for row in node.parts]
        return f"[{', '.join(rows)}]", ("mat", str(len(rows)), str(len(node.parts[0].parts)))

    def _E(self, node: Node) -> tuple[str, Type]:  # noqa: N802 (the kind of a node)
        return self.chance("E", node)

    def _Var(self, node: Node) -> tuple[str, Type]:  # noqa: N802
        return self.chance("Var", node)

    def chance(self, kind: str, node: Node) -> tuple[str, Type]:
        """E or Var of what must be random."""
        text, inside = self.text(node.parts[0])
        if not any(self.has_law(name) for name in all_names(node, self.scope, self.at)):
            raise Unread("no law before the expectation")
        self.draft.random = True
        return f"{kind}[{text}]", inside

    def has_law(self, name: str) -> bool:
        """Whether a name is random."""
        return self.scope.kind(name, "law", self.at) is not None

    def _product(self, node: Node) -> tuple[str, Type]:
        before = self.summed
        text, kind = self.text(node.parts[0])
        text = self.wrap(text)
        for sign, part in zip(node.joined, node.parts[1:], strict=True):
            sums = self.summed - before
            right, other = self.text(part)
            if sums and self.summed - before > sums:
                raise Unread("a product of sums over features")
            text, kind = self.multiplied(text, kind, sign, self.wrap(right), other)
        return text, kind

    def multiplied(self, left: str, one: Type, sign: str, right: str, other: Type) -> tuple[str, Type]:
        """A product of two factors, by their shapes."""
        if not one or not other:
            return f"({left}*{right})", one or other
        if self.running:
            return f"({left}*{right})", one
        if sign == "⊙":
            if one[0] != other[0]:
                raise Unread("an elementwise product of different shapes")
            return f"({left}*{right})", one
        if sign == "⊗":
            if one[0] != "col" or other[0] != "col" or len(one) > 2 or len(other) > 2:
                raise Unread("a Kronecker product of other than columns")
            return f"vec(outer({left}, {right}))", ("col", f"{one[1]}*{other[1]}")
        if one[0] == "col" and other[0] == "col":
            if sign not in ("·",) and not self.scalar:
                raise Unread("a product of two columns")
            return self.dot(left, one, right, other)
        if one[0] == "row" and other[0] == "col":
            return self.dot(left, one, right, other)
        if (len(one) == 3 and one[0] != "mat") or (len(other) == 3 and other[0] != "mat"):
            raise Unread("a matrix of features")
        if one[0] == "col" and other[0] == "row":
            return f"outer({left}, {right})", ("mat", one[1], other[1])
        if one[0] == "mat" and other[0] in ("col", "mat") and sign != "·":
            return f"({left} @ {right})", ("col", one[1]) if other[0] == "col" else ("mat", one[1], other[2])
        if one[0] == "row" and other[0] == "mat" and sign != "·":
            return f"({right}' @ {left})", ("row", other[2])
        raise Unread("a product whose shapes do not fit")

    def dot(self, left: str, one: Type, right: str, other: Type) -> tuple[str, Type]:
        """A dot product; of features, R times that of one of them."""
        if one[1:] != other[1:] and 3 in (len(one), len(other)):
            raise Unread("a product of different features")
        if len(one) < 3:
            return f"dot({left}, {right})", NUMBER
        self.summed += 1
        return f"({one[2]}*dot({left}, {right}))", NUMBER

    def _call(self, node: Node) -> tuple[str, Type]:
        name = node.text
        if name in FUNCTIONS:
            self.scalar += name in ("sin", "cos", "exp")
            try:
                arguments = [self.linear(part) for part in node.parts]
            finally:
                self.scalar -= name in ("sin", "cos", "exp")
            texts = ", ".join(text for text, _ in arguments)
            kind = arguments[0][1] if arguments else NUMBER
            if name in ("tr", "max", "min") or len(arguments) > 1:
                if name in ("max", "min") and any(kind for _, kind in arguments):
                    raise Unread(f"{name} of a vector")
                kind = NUMBER
            if name == "vec":
                kind = ("col", "n")
            if name in ("sin", "cos") and node.parts[0].closed:
                raise Unread("an angle without radians")
            if name in ("exp", "log", "sin", "cos", "sqrt") and kind and not self.running:
                raise Unread(f"{name} of a vector")
            return f"{name}({texts})", kind
        if name in ("tan", "tanh", "sigmoid", "log_base"):
            raise Unread(f"{name} is not in the language of claims")
        binding = self.scope.kind(name, "function", self.at)
        if binding is None or binding.node is None:
            raise Unread(f"the function {name} is not defined")
        return self.applied(binding, node)

    def applied(self, binding: Binding, node: Node) -> tuple[str, Type]:
        """A call of a function that the answer defines."""
        assert binding.node is not None
        if len(node.parts) != len(binding.parameters):
            raise Unread(f"{binding.name} is called with another number of arguments")
        arguments = [self.text(part) for part in node.parts]
        if self.running:
            raise Unread("a function of an entry")
        self.draft.bindings[binding.name] = binding
        kinds = tuple(kind for _, kind in arguments)
        before, self.local = self.local, dict(zip(binding.parameters, kinds, strict=True))
        try:
            body, kind = self.text(binding.node)
        finally:
            self.local = before
        if kind[:1] == ("row",) and any(
            part.kind == "transpose" and part.parts[0].kind == "vector" and not part.parts[0].text
            for part in binding.node.walk()
        ):
            kind = ("col", *kind[1:])  # f(x) = [a, b]^T is how a column is printed on one line
        name = self.safe(binding.name)
        parameters = ", ".join(self.safe(each) for each in binding.parameters)
        self.draft.definitions.setdefault(name, f"{name}({parameters}) = {body}")
        return f"{name}({', '.join(text for text, _ in arguments)})", kind

    def _name(self, node: Node) -> tuple[str, Type]:
        name = node.text
        if name in self.local:
            return self.safe(name), self.local[name]
        if name in ("pi",):
            raise Unread("pi is not in the language of claims")
        if (binding := self.scope.value(name, self.at)) is not None and binding.number != self.at.number:
            return self.bound(binding)
        declared = self.scope.kind(name, "type", self.at)
        law = self.scope.kind(name, "law", self.at)
        if law is not None and self.expected:
            return self.random(name, law, declared)
        if declared is not None:
            return self.declared(name, declared)
        if law is not None or name in self.scope.rows:
            return self.any_value(name, law)
        if name in self.scope.sizes or name in self.scope.counts:
            self.draft.sizes[self.safe(name, size=True)] = None
            return self.safe(name, size=True), NUMBER
        if self.scope.is_vector(name, self.at):
            size = self.usual
            self.draft.sizes[size] = None
            self.draft.inferred.add(name)
            self.draft.given[self.safe(name)] = f"in R^{size}"
            return self.safe(name), ("col", size)
        if self.fixed(name):
            return self.safe(name), NUMBER
        self.draft.free.add(name)
        self.draft.given[self.safe(name)] = "in R"
        return self.safe(name), NUMBER

    def any_value(self, name: str, law: Binding | None) -> tuple[str, Type]:
        """A random name outside an expectation: any value."""
        size = None
        if law is not None and law.law is not None:
            self.draft.bindings[name] = law
            size = self.law_size(name, law.law[1])
        elif name in self.scope.rows:
            size = self.usual
        if size is None:
            self.draft.given[self.safe(name)] = "in R"
            return self.safe(name), NUMBER
        self.draft.sizes[size] = None
        self.draft.given[self.safe(name)] = f"in R^{size}"
        return self.safe(name), ("col", size)

    def law_size(self, name: str, covariance: Node) -> str | None:
        """The size of a random vector: that of its identity matrix, or the usual one if this has none."""
        size = _identity_size(covariance)
        vector = self.scope.is_vector(name, self.at) or name in self.scope.rows
        bare = any(part.kind == "name" and part.text == "I" for part in covariance.walk())
        return size or (self.usual if bare or vector else None)

    def fixed(self, name: str) -> bool:
        """Whether a condition `name = ...` or `name^2 = ...` gives the name; then it becomes a definition."""
        found = {}
        for condition in self.scope.visible(self.at):
            if condition.relation != "==" or condition.sides is None or name not in condition.names:
                continue
            if condition.number == self.at.number:
                continue  # it does not rest on itself
            left, right = condition.sides
            squared = left.kind == "^" and left.parts == (Node("name", text=name), number("2"))
            if (squared or left == Node("name", text=name)) and name not in right.names:
                found.setdefault((squared, right), condition)
        if len(found) != 1:
            return False
        ((squared, right), condition) = found.popitem()
        text, key = self.number(right), self.safe(name)
        self.draft.definitions.setdefault(key, f"{key} = sqrt({text})" if squared else f"{key} = {text}")
        place = (condition.number, condition.line, condition.section, condition.turn, condition.chapter)
        self.draft.bindings[name] = Binding(name, "value", *place, text="condition", stated=bool(self.scope.vectors))
        return True

    def bound(self, binding: Binding) -> tuple[str, Type]:
        """A name with a value."""
        assert binding.node is not None
        node = binding.node
        self.draft.bindings[binding.name] = binding
        name = self.safe(binding.name)
        turned = node.kind == "transpose"
        node = node.parts[0] if turned else node
        if node.kind == "vector" and node.text == "tuple":
            node = Node("vector", node.parts)
        text, kind = self.text(node)
        self.draft.definitions.setdefault(name, f"{name} = {text}")
        return name, kind  # [1, 1, 2]^T is how a column is printed on one line

    def declared(self, name: str, binding: Binding) -> tuple[str, Type]:
        """A name with a type."""
        if self.here and len(binding.dims) == 1 and binding.turn != self.at.formula.turn:
            binding = replace(binding, dims=(self.usual,))  # a size of another turn ends with it
        self.draft.bindings[name] = binding
        for size in binding.dims:
            if size.isidentifier():
                self.draft.sizes[size] = None
        key = self.safe(name)
        if not binding.dims:
            self.draft.given[key] = "in R"
            return key, NUMBER
        if len(binding.dims) == 1:
            self.draft.given[key] = f"in R^{binding.dims[0]}"
            return key, ("col", binding.dims[0])
        if len(binding.dims) > 2:
            raise Unread("an array of more than two axes")
        self.draft.given[key] = f"in R^({', '.join(binding.dims)})"
        return key, ("mat", *binding.dims)

    def random(self, name: str, law: Binding, declared: Binding | None) -> tuple[str, Type]:
        """A name with a law."""
        assert law.law is not None
        self.draft.bindings[name] = law
        mean, covariance = law.law
        key = self.safe(name)
        size = _identity_size(covariance)
        if size is None and declared is not None and declared.dims:
            size = declared.dims[0]
        size = size or self.law_size(name, covariance)
        before, self.running = self.running, ""
        try:
            spread = self.covariance(covariance, size)
            centre = "0" if value(mean) == 0 else self.text(mean)[0]
        finally:
            self.running = before
        if size is None:
            self.draft.given[key] = f"~ N({centre}, {spread})"
            return key, NUMBER
        self.draft.sizes[size] = None
        self.draft.given[key] = f"~ N({centre}, {spread})"
        return key, ("col", size)

    def covariance(self, node: Node, size: str | None) -> str:
        """A covariance with its identity matrix."""
        if size is None:
            return self.number(node)

        def marked(part: Node) -> Node | None:
            if (part.kind == "name" and part.text == "I") or (part.kind == "index" and part.text == "I"):
                return Node("identity", text=size)
            return None

        found = rewritten(node, marked)
        if not any(part.kind == "identity" for part in found.walk()):  # the law of one entry, or of each
            return f"({self.number(node)}*I({size}))"
        return self.text(found)[0]

    def _identity(self, node: Node) -> tuple[str, Type]:
        return f"I({node.text})", NUMBER  # scales like a number inside a covariance

    def _index(self, node: Node) -> tuple[str, Type]:
        base, *indices = node.parts
        flat = f"{base.text}_{indices[0].text}" if len(indices) == 1 and indices[0].kind in ("name", "number") else ""
        if flat and (self.scope.value(flat, self.at) is not None):
            return self._name(Node("name", text=flat))
        if len(indices) != 1:
            raise Unread("an entry of a matrix")
        only = indices[0]
        text, kind = self._name(base) if base.text not in ("I",) else ("", ())
        if base.text == "I":
            raise Unread("an identity matrix outside a covariance")
        if only.kind == "number":
            if kind and kind[0] == "col":
                return f"{text}[{only.text}]", NUMBER
            self.forget(base.text)
            return self._name(Node("name", text=flat))
        if only.kind == "name" and kind and kind[0] == "col":
            if self.running and only.text == self.running:
                return text, kind
            raise Unread("an index that nothing binds")
        raise Unread("index notation of what is not a vector")

    def forget(self, name: str) -> None:
        """Take back that a name was used."""
        self.draft.free.discard(name)
        self.draft.given.pop(self.safe(name), None)

    def _sum(self, node: Node) -> tuple[str, Type]:
        index, first, last, body = node.parts
        low, high = small_whole(first), small_whole(last)
        if low is not None and high is not None:
            return self.expanded(node.kind, index.text, low, high, body)
        if node.kind == "prod":
            raise Unread("a product over an index")
        if low != 1 or last.kind != "name" or self.running:
            raise Unread("a sum over an index")
        if index.text not in body.names and not any(
            index.text in part.names for part in body.walk() if part.kind == "index"
        ):
            bound = self.number(last)
            return f"({bound}*{self.wrap(self.number(body))})", NUMBER
        if any(part == index for part in _outside_index(body)):
            raise Unread("a sum whose index is used as a number")
        self.running = index.text
        try:
            text, kind = self.text(body)
        finally:
            self.running = ""
        if not kind or kind[0] != "col" or kind[1] != last.text:
            raise Unread("a sum over other entries than a vector has")
        return f"sum({text})", NUMBER

    def expanded(self, kind: str, index: str, low: int, high: int, body: Node) -> tuple[str, Type]:
        """A sum of few terms, written out."""
        if high - low > 40 or high < low:
            raise Unread("a sum of many terms")
        terms = []
        for each in range(low, high + 1):
            put = rewritten(
                body, lambda part, each=each: number(str(each)) if part == Node("name", text=index) else None
            )
            terms.append(self.wrap(self.number(put)))
        return "(" + (" + " if kind == "sum" else "*").join(terms) + ")", NUMBER

    def safe(self, name: str, size: bool = False) -> str:
        """A name that the language of claims allows."""
        key = name if name.isidentifier() else "".join(each if each.isalnum() else "_" for each in name)
        return f"{key}_" if key in RESERVED and not (size and key in SIZES_ALLOWED) else key


NAMED = {"+": "add", "-": "add", "/": "divide", "^": "power", "%": "percent", "!": "factorial", "prod": "sum"}


def _matched(text: str) -> bool:
    """Whether the first parenthesis closes with the last."""
    depth = 0
    for place, character in enumerate(text):
        depth += (character == "(") - (character == ")")
        if not depth:
            return place == len(text) - 1
    return False


def _identity_size(covariance: Node) -> str | None:
    for part in covariance.walk():
        if part.kind == "index" and part.text == "I" and part.parts[1].kind == "name":
            return part.parts[1].text
    return None


def _outside_index(node: Node) -> Iterable[Node]:
    if node.kind == "index":
        return
    yield node
    for part in node.parts:
        yield from _outside_index(part)


def all_names(node: Node, scope: Scope, at: Said) -> set[str]:
    """Names below, also in the bodies of functions that are called."""
    found: set[str] = set()
    waiting = [node]
    while waiting:
        for part in waiting.pop().walk():
            name = part.parts[0].text if part.kind == "index" else part.text
            if part.kind not in ("name", "call", "index") or name in found:
                continue
            found.add(name)
            binding = scope.kind(name, "function", at)
            if binding is not None and binding.node is not None:
                waiting.append(binding.node)
    return found


def free_index(node: Node) -> set[str]:
    """Index letters that no sum binds."""
    if node.kind in ("sum", "prod"):
        return free_index(node.parts[3]) - {node.parts[0].text}
    if node.kind == "index":
        return {part.text for part in node.parts[1:] if part.kind == "name" and part.text in INDICES}
    return {letter for part in node.parts for letter in free_index(part)}


def decimals(node: Node) -> list[tuple[Fraction, Fraction]]:
    """Printed decimals below, each with half a unit of its last digit."""
    return [
        (Fraction(part.text), Fraction(1, 2 * 10 ** len(part.text.partition(".")[2])))
        for part in node.walk()
        if part.kind == "number" and "." in part.text
    ]
