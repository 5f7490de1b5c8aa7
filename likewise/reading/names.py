"""What the names of a statement are: their values, definitions, types and laws, with the bindings that say so."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace

from likewise.reading.expressions import Node, number, rewritten, value
from likewise.reading.latex import Unread
from likewise.reading.scope import INDICES, SUMMED, Binding, Condition, Scope, flat_name
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
FUNCTIONS = {"exp", "log", "sin", "cos", "relu", "softmax", "sqrt", "max", "min", "tr", "vec", "tanh", "sigmoid"}
NETWORKS = {"tanh", "sigmoid", "softmax", "relu"}  # an equation about these is for every argument
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
    nonzero: dict[str, None] = field(default_factory=dict)  # denominators as they are written
    divisors: set[str] = field(default_factory=set)  # names that something is divided by
    assumed: list[str] = field(default_factory=list)  # where a derivative is taken
    every: set[str] = field(default_factory=set)  # names of an equation that is said of all their values
    varied: set[str] = field(
        default_factory=set
    )  # arguments of functions and names that something is differentiated by
    unsure: list[str] = field(default_factory=list)  # conventions that the text does not state
    notes: list[str] = field(default_factory=list)


class Names(ABC):
    """The names of one statement; how an expression of them is written is for `Writer` to say."""

    def __init__(self, scope: Scope, at: Said, *, percent: bool = True, mixed: bool = True) -> None:
        self.scope, self.at = scope, at
        self.percent, self.mixed = percent, mixed
        self.draft = Draft()
        self.local: dict[str, Type] = {}  # parameters of the function that is written
        self.running = ""  # the index letter that runs over the entries of vectors
        self.expected = False  # whether random names are written with their law, or as any value
        self.scalar = 0  # inside how many functions of numbers: there w x is a dot product
        self.usual = scope.default_size()  # the size of a vector whose size is not said
        self.here = False  # whether a turn says so
        self.turn = -1  # which one; sizes of others end with them
        self.summed = 0  # sums over random features so far, of which one stands for all
        self.values: dict[str, Node] = {}
        self.sizes: dict[str, str] = {}  # of index letters
        self.indices: set[str] = set()  # of ranges, around what is written
        self.ranges: set[str] = set()  # names that are sizes because a range ends with them
        self.moments: set[str] = set()  # random names of which only the first two moments matter
        self.variables: set[str] = set()  # names that something is differentiated by
        self.numbers: set[str] = set()  # names that are used as vectors elsewhere, and as numbers here
        self.base = ""  # of logarithms of numbers: e, 2 or 10
        self.bases = False  # whether there are such logarithms
        self.implied = True  # whether a name means what its first mention says
        self.entry = ""  # the free index of a statement: x_i is a number of its own if x is no vector
        self.shifted = False  # inside softmax, where a number is added to every entry

    @abstractmethod
    def text(self, node: Node) -> tuple[str, Type]:
        """A tree in the language of claims, with its type."""

    def number(self, node: Node) -> str:
        """The text of what must be a number."""
        text, kind = self.text(node)
        if kind != NUMBER:
            raise Unread("a vector where a number is wanted")
        return text

    def wrap(self, text: str) -> str:
        """In parentheses, unless it is one word or in some already."""
        return text if text.replace("_", "").isalnum() or (text[:1] == "(" and _matched(text)) else f"({text})"

    def has_law(self, name: str) -> bool:
        """Whether a name is random."""
        return self.scope.kind(name, "law", self.at) is not None

    def _name(self, node: Node) -> tuple[str, Type]:
        name = node.text
        if name in self.local:
            return self.safe(name), self.local[name]
        if name == "pi" and not self.scope.bindings.get("pi"):
            return "pi", NUMBER
        binding = self.scope.value(name, self.at)
        if binding is not None and binding.number != self.at.number and not self.passed(binding):
            return self.bound(binding)
        if name in self.ranges:
            return self.safe(name, size=True), NUMBER
        if name not in self.variables and (kind := self.fixed(name, "definition")) is not None:
            return self.safe(name), kind
        declared = self.scope.kind(name, "type", self.at)
        law = self.scope.kind(name, "law", self.at)
        if declared is not None and declared.text.startswith(SUMMED):
            if name not in self.variables and (kind := self.fixed(name)) is not None:
                return self.safe(name), kind
            self.draft.inferred.add(name)
        if law is not None and self.expected:
            return self.random(name, law, declared)
        if declared is not None:
            return self.declared(name, declared)
        if law is not None or name in self.scope.rows:
            return self.any_value(name, law)
        if name in self.scope.sizes or name in self.scope.counts:
            self.draft.sizes[self.safe(name, size=True)] = None
            return self.safe(name, size=True), NUMBER
        vector = self.scope.is_vector(name, self.at) and name not in self.numbers
        if vector and (kind := self.fixed(name)) is not None:
            return self.safe(name), kind
        if vector:
            size = self.usual
            self.draft.sizes[size] = None
            self.draft.inferred.add(name)
            self.draft.given[self.safe(name)] = f"in R^{size}"
            return self.safe(name), ("col", size)
        if name not in self.variables and (kind := self.fixed(name)) is not None:
            return self.safe(name), kind
        if name in self.moments:
            return self.any_law(name)
        self.draft.free.add(name)
        self.draft.given[self.safe(name)] = "in R"
        return self.safe(name), NUMBER

    def any_law(self, name: str) -> tuple[str, Type]:
        """A random number of which only mean and variance matter: a normal one with any mean and variance."""
        key = self.safe(name)
        mean, spread = f"mean_{key}", f"std_{key}"
        self.draft.given |= {mean: "in R", spread: "in R", key: f"~ N({mean}, {spread}^2)"}
        self.draft.notes.append(f"{name} is random, with any mean and variance")
        return key, NUMBER

    def passed(self, binding: Binding) -> bool:
        """Whether a value was that of another sentence, "at x = 0", and a function of its name is spoken of here."""
        if binding.sentence in (-1, self.at.formula.sentence) or not isinstance(self.at.nodes[0], Node):
            return False
        first = self.at.nodes[0]
        return first.kind in ("call", "grad") and Node("name", text=binding.name) in first.parts

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

    def definition(self, name: str, role: str = "") -> tuple[str, Condition] | None:
        """The one condition `name = ..`, `name^2 = ..` or `name_i = ..` that a statement can see, and which it is."""
        found: dict[tuple[str, Node], Condition] = {}
        for condition in self.scope.visible(self.at):
            if condition.relation != "==" or condition.sides is None or name not in condition.names:
                continue
            if condition.number == self.at.number or condition.withdrawn or (role and condition.role != role):
                continue  # it does not rest on itself
            once = len(self.scope.heads.get(name, ())) == 1  # then it means one thing throughout
            if condition.implied and (not self.implied or (condition.section != self.at.formula.section and not once)):
                continue
            if condition.number > self.at.number and condition.sentence != self.at.formula.sentence:
                continue  # what is defined further on is another thing
            if (
                condition.role != "definition"
                and not condition.lasting
                and condition.sentence != self.at.formula.sentence
            ):
                continue  # said of another sentence
            left, right = condition.sides
            flat = flat_name(left.parts[0] if left.kind == "^" else left)
            bare = left.parts[0] if left.kind in ("^", "index") else left
            bare = Node("name", text=flat) if flat else bare
            if bare != Node("name", text=name) or name in right.names:
                continue
            single = left.kind == "index" and len(left.parts) == 2 and not flat
            letter = left.parts[1].text if single else ""
            if left.kind == "name" or flat_name(left) or left.parts[1] == number("2") or letter in INDICES:
                found.setdefault((letter or ("name" if flat_name(left) else left.kind), right), condition)
        if len(found) != 1:
            return None
        (((way, _), condition),) = found.items()
        return way, condition

    def fixed(self, name: str, role: str = "") -> Type | None:
        """The type of a name that a condition gives, `name = ..`, `name^2 = ..` or `name_i = ..`, now a definition."""
        found = self.definition(name, role)
        if found is None:
            return None
        way, condition = found
        assert condition.sides is not None
        before = self.running, self.local
        self.running, self.local = way if way in INDICES else "", {}
        try:
            text, kind = self.text(condition.sides[1])
        finally:
            self.running, self.local = before
        single = kind == NUMBER and way == self.entry and self.expected
        if (
            (way == "^" and kind)
            or (way in INDICES and kind[:1] != ("col",) and not single)
            or kind[:1] == ("row",)
            or len(kind) == 3
        ):
            raise Unread(f"what {name} is in line {condition.line} was not read")
        key = self.safe(name)
        self.draft.definitions.setdefault(key, f"{key} = sqrt({text})" if way == "^" else f"{key} = {text}")
        place = (condition.number, condition.line, condition.section, condition.turn, condition.chapter)
        own = condition.sentence == self.at.formula.sentence and not condition.sides[1].closed
        stated = condition.role == "definition" or bool(self.scope.vectors) or own
        self.draft.bindings[name] = Binding(name, "value", *place, text=condition.role, stated=stated)
        return kind

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
        if self.here and len(binding.dims) == 1 and binding.turn not in (self.at.formula.turn, self.turn):
            binding = replace(binding, dims=(self.usual,))  # a size of another turn ends with it
        self.draft.bindings[name] = binding
        for size in binding.dims:
            if size.isidentifier():
                self.draft.sizes[size] = None
        key = self.safe(name)
        if not binding.dims:
            open_ = binding.text.startswith("in (")
            text = f"in [{binding.text[4:-1]}]" if open_ else binding.text
            self.draft.given[key] = text if text.startswith(("in [", "in {")) else "in R"
            if open_:
                low, high = binding.text[4:-1].split(", ")
                self.draft.assumed += [
                    each for each in (f"{key} > {low}", f"{key} < {high}") if each not in self.draft.assumed
                ]
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
        self.draft.bindings[name] = law
        key = self.safe(name)
        if law.law is None:
            return self.other_law(key, law, declared)
        mean, covariance = law.law
        if declared is not None and len(declared.dims) > 1:
            raise Unread("a random matrix")
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

    def other_law(self, key: str, law: Binding, declared: Binding | None) -> tuple[str, Type]:
        """A number with a uniform, exponential or Bernoulli law."""
        assert law.node is not None
        if declared is not None and declared.dims:
            raise Unread("a random vector that is not normal")
        before, self.running = self.running, ""
        try:
            parts = [self.number(part) for part in law.node.parts]
        finally:
            self.running = before
        self.draft.given[key] = f"~ {law.node.text}({', '.join(parts)})"
        match law.node.text:
            case "U":
                self.draft.assumed.append(f"{parts[0]} < {parts[1]}")
            case "Exp":
                self.draft.assumed.append(f"{parts[0]} > 0")
            case _:
                self.draft.assumed += [f"{parts[0]} >= 0", f"{parts[0]} <= 1"]
        return key, NUMBER

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

    def known_vector(self, name: str) -> bool:
        """Whether a name is said to be a vector or random where the statement stands."""
        kinds = ("type", "law")
        return self.scope.is_vector(name, self.at) or any(self.scope.kind(name, kind, self.at) for kind in kinds)

    def row_of(self, name: str) -> tuple[str, Type] | None:
        """An entry of y = W x for a matrix W of independent entries with one law: one row of W times x."""
        found = self.definition(name)
        if found is None or found[0] != "name" or found[1].sides is None:
            return None
        right = found[1].sides[1]
        if right.kind != "product" or len(right.parts) != 2 or right.parts[0].kind != "name":
            return None
        matrix = right.parts[0].text
        law, declared = (self.scope.kind(matrix, kind, self.at) for kind in ("law", "type"))
        if law is None or law.law is None or declared is None or len(declared.dims) != 2:
            return None
        before, self.running = self.running, ""
        try:
            vector, kind = self.text(right.parts[1])
            mean, variance = (self.number(each) for each in law.law)
        finally:
            self.running = before
        if kind != ("col", declared.dims[1]):
            raise Unread("a product whose shapes do not fit")
        key, size = self.safe(f"{matrix}_row"), declared.dims[1]
        if value(law.law[0]) != 0:
            raise Unread("a random matrix whose mean is not 0")
        if size.isidentifier():
            self.draft.sizes[size] = None
        self.draft.given[key] = f"~ N({mean}, {self.wrap(variance)}*I({size}))"
        self.draft.bindings |= {matrix: law, f"{matrix} in": declared}
        condition = found[1]
        place = (condition.number, condition.line, condition.section, condition.turn, condition.chapter)
        self.draft.bindings[name] = Binding(name, "definition", *place, text="as defined")
        if "independent" not in law.text:
            self.draft.unsure.append(f"whether the entries of {matrix} are independent is not said")
        return f"dot({key}, {vector})", NUMBER

    def forget(self, name: str) -> None:
        """Take back that a name was used."""
        self.draft.free.discard(name)
        self.draft.given.pop(self.safe(name), None)

    def safe(self, name: str, size: bool = False) -> str:
        """A name that the language of claims allows."""
        key = name if name.isidentifier() else "".join(each if each.isalnum() else "_" for each in name)
        return f"{key}_" if key in RESERVED and not (size and key in SIZES_ALLOWED) else key


def _identity_size(covariance: Node) -> str | None:
    for part in covariance.walk():
        if part.kind == "index" and part.text == "I" and part.parts[1].kind == "name":
            return part.parts[1].text
    return None


def _matched(text: str) -> bool:
    """Whether the first parenthesis closes with the last."""
    depth = 0
    for place, character in enumerate(text):
        depth += (character == "(") - (character == ")")
        if not depth:
            return place == len(text) - 1
    return False
