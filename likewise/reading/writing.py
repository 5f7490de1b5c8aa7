"""The typed elaborator: one link of a statement as a claim, with the bindings it rests on.

Types are numbers, columns, rows and matrices with sizes. A row times a column is a dot product, a column times a row an
outer product; what does not fit is refused, never mended.
"""

import copy
from collections.abc import Iterable
from fractions import Fraction

from likewise.reading.expressions import Node, base_of, features, number, rewritten
from likewise.reading.latex import Unread
from likewise.reading.names import FUNCTIONS, GREATEST_FACTORIAL, NETWORKS, NUMBER, Names, Type
from likewise.reading.scope import INDICES, Binding, Scope, is_polynomial, small_whole
from likewise.reading.statements import Said


class Unfit(Unread):
    """A product of two matrices whose declared axes do not meet; `claim` says that it has a shape."""

    def __init__(self, left: Type, right: Type) -> None:
        super().__init__("a product whose shapes do not fit")
        self.claim = (
            f"given: left in R^({left[1]}, {left[2]}); right in R^({right[1]}, {right[2]})\n"
            f"assert: left @ right has shape [{left[1]}, {right[2]}]"
        )


class Writer(Names):
    """Writes the sides of one statement."""

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

    def _add(self, node: Node) -> tuple[str, Type]:
        (left, one), (right, other) = map(self.text, node.parts)
        if one != other:
            entry = self.running and self.running in free_index(node.parts[0] if one else node.parts[1])
            if (self.shifted or entry) and {len(one), len(other)} == {0, 2}:
                return f"({left} {node.kind} {right})", one or other
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
        if not self.local:
            self.draft.divisors |= {self.safe(name) for name in _factors(node.parts[1])}
        if not node.parts[1].closed and not self.running and not self.local.keys() & node.parts[1].names:
            self.draft.nonzero[f"{below} != 0"] = None
        return f"({above}/{self.wrap(below)})", kind

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

    def _floor(self, node: Node) -> tuple[str, Type]:
        return f"{node.kind}({self.number(node.parts[0])})", NUMBER

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
        if not any(declared.startswith("~") for declared in self.draft.given.values()):
            raise Unread("no law before the expectation")
        self.draft.random = True
        return f"{kind}[{text}]", inside

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
            if one != other or one[0] != "col":
                raise Unread("entries of different shapes")
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
        sized = [axis.isidentifier() for axis in (*one[1:], *other[1:])]
        if one[0] == other[0] == "mat" and one[2] != other[1] and all(sized) and sign == "":
            raise Unfit(one, other)
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
            shifted, self.shifted = self.shifted, name == "softmax"
            try:
                arguments = [self.linear(part) for part in node.parts]
            finally:
                self.scalar -= name in ("sin", "cos", "exp")
                self.shifted = shifted
            texts = ", ".join(text for text, _ in arguments)
            kind = arguments[0][1] if arguments else NUMBER
            if name in NETWORKS:
                self.draft.varied |= {part.text for part in node.parts if part.kind == "name"}
            if name == "log" and node.parts[0].closed:
                self.bases = True
                texts = f"{texts})/log({self.base}" if self.base else texts
            if name == "softmax" and (not kind or self.running):
                raise Unread("softmax of an entry")
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
            return (f"({name}({texts}))" if self.base else f"{name}({texts})"), kind
        if name in ("tan", "log_base"):
            raise Unread(f"{name} is not in the language of claims")
        if name.endswith("_prime") and self.scope.kind(name, "function", self.at) is None:
            return self.derivative(node)
        binding = self.scope.kind(name, "function", self.at)
        if binding is None or binding.node is None:
            raise Unread(f"the function {name} is not defined")
        self.draft.varied |= {part.text for part in node.parts if part.kind == "name"}
        return self.applied(binding, [self.text(part) for part in node.parts])

    def derivative(self, node: Node) -> tuple[str, Type]:
        """`f'(x)` of a function of one number, `f''(x)` too; elsewhere than at a name, at a point that is assumed."""
        name = base_of(node.text)
        binding = self.scope.kind(name, "function", self.at)
        if name not in FUNCTIONS and (binding is None or binding.node is None):
            raise Unread(f"the function {name} is not defined")
        if len(node.parts) != 1 or self.running:
            raise Unread("a derivative by several arguments")
        text, kind = self.text(node.parts[0])
        if kind != NUMBER:
            raise Unread("a derivative by a vector")
        if node.parts[0].kind != "name" or (text not in self.local and text not in self.draft.given):
            if self.local:
                raise Unread("a derivative inside a definition")
            point, text = text, f"t_{len(self.draft.assumed) + 1}"
            self.draft.given[text] = "in R"
            self.draft.assumed.append(f"{text} == {point}")
        else:
            self.draft.varied.add(node.parts[0].text)
        found, kind = (f"{name}({text})", NUMBER) if binding is None else self.applied(binding, [(text, NUMBER)])
        if kind != NUMBER:
            raise Unread("a derivative of a vector")
        for _ in range(node.text.count("_prime")):
            found = f"grad({found}, {text})"
        return found, NUMBER

    def _grad(self, node: Node) -> tuple[str, Type]:
        function, variable = node.parts
        if node.text == "d" and ("d" in self.scope.sizes or self.scope.bindings.get("d")):
            raise Unread("d may be a size or a differential")
        if function.kind == "name" and variable.kind == "name" and self.scope.kind(function.text, "function", self.at):
            function = Node("call", (variable,), function.text)
        name = variable.parts[0] if variable.kind == "index" else variable
        self.variables.add(name.text)
        if name.kind != "name" or (
            variable.kind == "index" and [part.text for part in variable.parts[1:]] != [self.running]
        ):
            raise Unread("a derivative by other than a name")
        by, over = self._name(name)
        if not self.draft.given.get(by, "").startswith("in R") and by not in self.local:
            raise Unread("a derivative by what is no variable")
        self.draft.varied.add(name.text)
        before, self.running = self.running, "" if variable.kind == "index" else self.running
        try:
            text, kind = self.text(function)
        finally:
            self.running = before
        unknown = {part.text for part in function.walk() if part.kind == "name"} & self.draft.free - {name.text}
        if (function.kind == "name" and text in self.draft.given) or any(each.isupper() for each in unknown):
            raise Unread("a derivative of a name that nothing defines")
        if kind and (self.running or kind[0] != "col" or over[:1] != ("col",)):
            raise Unread("a derivative of a vector")
        return f"grad({text}, {by})", ("mat", kind[1], over[1]) if kind else over

    def grid(self, node: Node, rows: str, columns: str) -> str:
        """A side with two free indices as a matrix: entries by row and column."""
        if node.kind == "grad":
            function, variable = node.parts
            letters = [
                tuple(part.text for part in each.parts[1:]) for each in (function, variable) if each.kind == "index"
            ]
            if letters not in ([(rows,), (columns,)], [(rows, columns)]):
                raise Unread("a derivative with other indices")
            plain = [each.parts[0] if each.kind == "index" else each for each in (function, variable)]
            return self.text(Node("grad", tuple(plain), node.text))[0]
        made = []
        for sign, factors in _expanded(node):
            parts: dict[str, list[str]] = {"": [], rows: [], columns: [], "both": []}
            diagonal = False
            for factor in factors:
                letters_ = free_index(factor)
                if factor.kind == "index" and letters_ == {rows, columns}:
                    if factor.parts[0].text == "delta" and not self.is_matrix("delta"):
                        diagonal = True
                        continue
                    text, kind = self._name(factor.parts[0])
                    if kind[:1] != ("mat",):
                        raise Unread("two indices of what is not a matrix")
                    turned = [part.text for part in factor.parts[1:]] != [rows, columns]
                    sizes = kind[:0:-1] if turned else kind[1:]
                    self.axes(rows, sizes[0])
                    self.axes(columns, sizes[1])
                    parts["both"].append(f"{text}'" if turned else text)
                elif len(letters_) == 2:
                    raise Unread("an entry by two indices")
                else:
                    letter = "".join(letters_)
                    before, self.running = self.running, letter
                    try:
                        text, kind = self.text(factor)
                    finally:
                        self.running = before
                    if letter and kind[:1] != ("col",):
                        raise Unread("index notation of what is not a vector")
                    if letter:
                        self.axes(letter, kind[1])
                    elif kind:
                        raise Unread("a vector among entries")
                    parts[letter].append(self.wrap(text))
            made.append((sign, parts, diagonal))
        if {rows, columns} - self.sizes.keys() and any(diagonal for _, _, diagonal in made):
            size = next(iter(self.sizes.values()), "")
            self.axes(rows, size)
            self.axes(columns, size)
        if {rows, columns} - self.sizes.keys():
            raise Unread("entries of unknown size")
        text = ""
        for sign, parts, diagonal in made:
            one, other = ("*".join(parts[letter]) for letter in (rows, columns))
            if diagonal and self.sizes[rows] != self.sizes[columns]:
                raise Unread("a Kronecker delta of different sizes")
            factors_ = [*parts[""], *parts["both"]]
            if diagonal:
                factors_ += [f"I({self.sizes[rows]})", *parts[rows], *parts[columns]]
            elif one or other or not parts["both"]:
                one, other = one or f"ones({self.sizes[rows]})", other or f"ones({self.sizes[columns]})"
                factors_.append(f"outer({one}, {other})")
            text += f" {sign} " + "*".join(factors_)
        return "(" + (text[3:] if text.startswith(" + ") else f"0{text}") + ")"

    def is_matrix(self, name: str) -> bool:
        """Whether a name is declared with two axes."""
        declared = self.scope.kind(name, "type", self.at)
        return declared is not None and len(declared.dims) == 2

    def axes(self, letter: str, size: str) -> None:
        """Keep the size that an index runs to; it has one."""
        if self.sizes.setdefault(letter, size) != size or not size:
            raise Unread("an index with two sizes")

    def applied(self, binding: Binding, arguments: list[tuple[str, Type]]) -> tuple[str, Type]:
        """A call of a function that the answer defines."""
        assert binding.node is not None
        if len(arguments) != len(binding.parameters):
            raise Unread(f"{binding.name} is called with another number of arguments")
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

    def _identity(self, node: Node) -> tuple[str, Type]:
        return f"I({node.text})", NUMBER  # scales like a number inside a covariance

    def _index(self, node: Node) -> tuple[str, Type]:
        base, *indices = node.parts
        flat = f"{base.text}_{indices[0].text}" if len(indices) == 1 and indices[0].kind in ("name", "number") else ""
        if flat in self.moments:
            return self.any_law(flat)
        if flat and (self.scope.value(flat, self.at) is not None):
            return self._name(Node("name", text=flat))
        if self.indices & {part.text for each in indices for part in each.walk()}:
            text, kind = self._name(base)
            if len(kind) != len(indices) + 1 or kind[:1] not in (("col",), ("mat",)):
                raise Unread("index notation of what is not a vector")
            return f"{text}[{', '.join(map(self.number, indices))}]", NUMBER
        if len(indices) != 1:
            raise Unread("an entry of a matrix")
        only = indices[0]
        if (
            only.kind == "name"
            and only.text not in INDICES
            and base.kind == "name"
            and not self.known_vector(base.text)
        ):
            return self._name(Node("name", text=flat))
        if self.expected and only.kind == "name" and (row := self.row_of(base.text)) is not None:
            return row
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
        if only.kind == "name" and only.text == self.entry and kind == NUMBER:
            if base.text in self.draft.bindings:  # x_i is declared as a number, with its index
                return text, kind
            self.forget(base.text)
            if self.expected:  # the mean of what is made of any x_i; elsewhere a_n may be a sequence
                self.draft.varied.add(flat)
            return self._name(Node("name", text=flat))
        raise Unread("index notation of what is not a vector")

    def _sum(self, node: Node) -> tuple[str, Type]:
        """A sum, product, maximum or minimum over an index: of the entries of vectors, else term by term."""
        draft = copy.deepcopy(self.draft)
        before = self.running, dict(self.local), self.summed
        try:
            return self.entries(node)
        except Unread as reason:
            self.draft, (self.running, self.local, self.summed) = draft, before
            try:
                return self.ranged(node)
            except Unread:
                self.draft, (self.running, self.local, self.summed) = draft, before
                raise reason from None

    def ranged(self, node: Node) -> tuple[str, Type]:
        r"""`\sum_{i=1}^N i^2` as `sum(i in 1..N, i^2)`: the index is a number, `x_i` an entry."""
        index, first, last, body = node.parts
        name = index.text
        taken = {*self.draft.given, *self.draft.sizes, *self.draft.definitions, *self.local}
        if self.running or name in taken or not name.isidentifier() or name != self.safe(name):
            raise Unread("a sum over one of two indices")
        if last.kind == "all":
            raise Unread("a sum over other entries than a vector has")
        low, high = self.number(first), self.bound_of(last)
        before = self.local
        self.local = {**self.local, name: NUMBER}
        self.indices.add(name)
        try:
            text = self.number(body)
        finally:
            self.local = before
            self.indices.discard(name)
        if name in self.draft.free or name in self.draft.given:
            raise Unread("an index that is a name elsewhere")
        return f"{node.kind.partition(' ')[0]}({name} in {low}..{high}, {text})", NUMBER

    def bound_of(self, last: Node) -> str:
        """The end of a range: a name that nothing binds is a size there."""
        names = {part.text for part in last.walk() if part.kind == "name"} - self.local.keys()
        if not is_polynomial(last):
            raise Unread("a sum over an index")
        for name in names:
            if self.scope.value(name, self.at) is None and self.scope.kind(name, "type", self.at) is None:
                if self.scope.is_vector(name, self.at) or self.safe(name, size=True) in self.draft.given:
                    raise Unread("a bound that is used as another number")
                self.draft.sizes[self.safe(name, size=True)] = None
                self.ranges.add(name)
        return self.wrap(self.number(last))

    def entries(self, node: Node) -> tuple[str, Type]:
        """A sum over the entries of vectors."""
        index, first, last, body = node.parts
        low, high = small_whole(first), small_whole(last)
        if low is not None and high is not None:
            return self.expanded(node.kind, index.text, low, high, body)
        if low != 1 or last.kind not in ("name", "all"):
            raise Unread("a sum over an index")
        if (product := self.row_times(body, index.text)) is not None:
            return product
        if self.running and self.running in free_index(body):
            raise Unread("a sum over one of two indices")
        if index.text not in {part.text for part in body.walk() if part.kind == "name"}:
            bound = self.number(last) if last.kind == "name" else ""
            if not bound or node.kind != "sum":
                raise Unread("a sum of what does not depend on its index")
            return f"({bound}*{self.wrap(self.number(body))})", NUMBER
        if any(part == index for part in _outside_index(body)):
            raise Unread("a sum whose index is used as a number")
        before, self.running = self.running, index.text
        try:
            text, kind = self.text(body)
        finally:
            self.running = before
        if not kind or kind[0] != "col" or (last.kind == "name" and kind[1] != last.text):
            raise Unread("a sum over other entries than a vector has")
        return f"{node.kind.partition(' ')[0]}({text})", NUMBER

    def row_times(self, body: Node, index: str) -> tuple[str, Type] | None:
        r"""`\sum_j W_{ij} x_j` with i running: the entries of W x."""
        if not self.running or body.kind != "product" or len(body.parts) != 2:
            return None
        matrix, vector = sorted(body.parts, key=lambda part: -len(part.parts))
        letters = [part.text for part in matrix.parts[1:]]
        if matrix.kind != "index" or sorted(letters) != sorted([self.running, index]) or free_index(vector) != {index}:
            return None
        (one, kind), before = self._name(matrix.parts[0]), self.running
        self.running = index
        try:
            other, second = self.text(vector)
        finally:
            self.running = before
        if letters[0] == index:
            one, kind = f"{one}'", ("mat", *kind[:0:-1])
        if kind[:1] != ("mat",) or second != ("col", kind[2]):
            raise Unread("a product whose shapes do not fit")
        return f"({one} @ {other})", ("col", kind[1])

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


NAMED = {"+": "add", "-": "add", "/": "divide", "^": "power", "%": "percent", "!": "factorial", "prod": "sum"}
NAMED |= {"max over": "sum", "min over": "sum", "ceil": "floor"}


def _factors(node: Node) -> set[str]:
    """The names that a denominator is a product of."""
    if node.kind == "name":
        return {node.text}
    if node.kind == "index":
        return {f"{node.text}_{node.parts[1].text}"} if len(node.parts) == 2 else set()
    if node.kind in ("product", "group", "^"):
        return {name for part in node.parts[: 1 if node.kind == "^" else None] for name in _factors(part)}
    return set()


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
    if node.kind in ("sum", "prod", "max over", "min over"):
        return free_index(node.parts[3]) - {node.parts[0].text}
    if node.kind == "index":
        return {part.text for part in node.parts[1:] if part.kind == "name" and part.text in INDICES}
    return {letter for part in node.parts for letter in free_index(part)}


def _expanded(node: Node) -> list[tuple[str, list[Node]]]:
    """A side as a sum of products: signs and factors."""
    match node.kind:
        case "group":
            return _expanded(node.parts[0])
        case "+" | "-":
            one, other = map(_expanded, node.parts)
            return [*one, *((sign if node.kind == "+" else _turned(sign), each) for sign, each in other)]
        case "neg":
            return [(_turned(sign), each) for sign, each in _expanded(node.parts[0])]
        case "product":
            found: list[tuple[str, list[Node]]] = [("+", [])]
            for part in node.parts:
                found = [
                    (sign if other == "+" else _turned(sign), [*each, *more])
                    for sign, each in found
                    for other, more in _expanded(part)
                ]
            return found
    return [("+", [node])]


def _turned(sign: str) -> str:
    return "-" if sign == "+" else "+"


def decimals(node: Node) -> list[tuple[Fraction, Fraction]]:
    """Printed decimals below, each with half a unit of its last digit."""
    return [
        (Fraction(part.text), Fraction(1, 2 * 10 ** len(part.text.partition(".")[2])))
        for part in node.walk()
        if part.kind == "number" and "." in part.text
    ]
