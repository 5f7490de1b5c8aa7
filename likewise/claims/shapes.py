"""Shapes: what every operation of the language asks of its operands, and what it gives; and the engine "shape".

A vector in R^M has one axis ("lines"). Where the claim states a layout, or transposes a vector, it is 1 x M under rows
and M x 1 under columns, or what its own `row` or `col` says. Elementwise operations broadcast as torch does. A dim is a
polynomial over the sizes of the claim: two are equal exactly when they agree at all sizes.

The engine says whether a formula typechecks, and to what shape, for every value of its sizes. Sizes are letters, so
`holds` is symbolic; a refutation is confirmed with numbers: distinct primes of at least 7, where no two sizes agree by
accident, then other primes (7 + 11 + 13 = 31), then whatever the assumptions ask for.
"""

import operator
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import reduce
from itertools import combinations, islice, pairwise, permutations
from itertools import product as every
from typing import Literal

from likewise.claims.language.claim import (
    Bernoulli,
    Claim,
    Compares,
    Exponential,
    HasShape,
    Normal,
    Rademacher,
    Reals,
    Size,
    Uniform,
)
from likewise.claims.language.expressions import rebuilt
from likewise.claims.language.limits import DEGREE, DIGITS
from likewise.claims.language.tree import (
    NEGATED,
    Binary,
    Call,
    Chain,
    Constant,
    Gradient,
    Index,
    Indexed,
    Join,
    Moment,
    Name,
    Negative,
    Node,
    Number,
    Probability,
    Text,
    Transpose,
    children,
    names,
)
from likewise.claims.verdict import Finding, Undecided
from likewise.polynomial import Polynomial

Layout = Literal["lines", "rows", "columns"]
HALF = Polynomial.constant(Fraction(1, 2))
TERMS = 200  # of a dim
ONE = Polynomial.constant(1)
EINSUM = re.compile(r"[A-Za-z,]*")
QUANTITIES = frozenset({"cost", "elementwise", "traffic", "params", "peak", "saved", "count"})
ELEMENTWISE = frozenset({
    "abs", "sqrt", "exp", "log", "sin", "cos", "relu", "softmax", "log2", "tanh", "sigmoid", "erf", "normcdf",
    "sign", "floor", "ceil", "factorial",
})  # fmt: skip
PRIMES = (7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59, 61, 67)
PARTIAL = frozenset({"sqrt", "log", "log2", "mod", "factorial", "argmax", "max", "min", "mean", "choose", "grad"})
SMALL = 4  # the largest size of a witness for a statement about dims
ASSIGNMENTS = 3_000  # tried at most, in search of sizes that satisfy the assumptions
HOLDS: dict[str, Callable[[Fraction, Fraction], bool]] = {
    "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip


class Misshapen(Exception):
    """Operands that do not fit; `sides` are the two dims that would have to be equal, if it is two."""

    def __init__(self, reason: str, sides: tuple[Polynomial, ...] = (), numbers_say_more: bool = False) -> None:
        super().__init__(reason)
        self.sides, self.numbers_say_more = sides, numbers_say_more


class Turned(Exception):
    """A vector with one axis is transposed: then every vector lies."""


@dataclass(frozen=True)
class Shape:
    """Dims; a `vector` has two, one of them 1 by its layout, and may be said to have just the other."""

    dims: tuple[Polynomial, ...] = ()
    vector: bool = False
    said: bool = (
        False  # that it is a row or a column was written; otherwise beside a matrix it has one axis, as in torch
    )

    @property
    def scalar(self) -> bool:
        return all(dim == ONE for dim in self.dims)

    @property
    def entries(self) -> Polynomial:
        """How many numbers it holds."""
        return product(*self.dims)

    @property
    def length(self) -> Polynomial:
        """Of a vector, which has one axis, one row or one column; Misshapen for anything wider."""
        if len(self.dims) > 1 and not (len(self.dims) == 2 and ONE in self.dims):
            raise Misshapen(f"{self} is no vector")
        return self.entries

    def fits(self, dims: tuple[Polynomial, ...]) -> bool:
        """Whether `has shape [dims]` is true of it."""
        if all(dim == ONE for dim in dims) and self.scalar:
            return True
        return dims == self.dims or (self.vector and dims == (self.entries,))

    def __str__(self) -> str:
        if len(self.dims) == 2:
            return f"({self.dims[0]} x {self.dims[1]})"
        return f"[{', '.join(map(str, self.dims))}]" if self.dims else "(scalar)"


SCALAR = Shape()


def shape_of(claim: Claim, node: Node, sizes: Mapping[str, int]) -> tuple[int, ...]:
    r"""The shape of an expression of the claim at these sizes under the claim's layout; Misshapen if it has none.

    >>> from likewise.claims.language.parser import parse
    >>> claim = parse("given: x, y in R^D\nassert: x' @ y has shape [D, D]")
    >>> shape_of(claim, claim.relation.body, {"D": 7})
    (7, 7)
    """
    values = solved(claim, {name: Polynomial.constant(value) for name, value in sizes.items()})
    return tuple(whole(dim) for dim in lying(claim, values, node).dims)


def lying(claim: Claim, sizes: Mapping[str, Polynomial], node: Node) -> Shape:
    """The shape of an expression: vectors have one axis, unless the claim states a layout or transposes one."""
    try:
        return Shapes(claim, sizes, claim.layout if "layout" in claim.given_fields else "lines").of(node)
    except Turned:
        return Shapes(claim, sizes, claim.layout).of(node)


def solved(claim: Claim, values: Mapping[str, Polynomial]) -> dict[str, Polynomial]:
    """All sizes of the claim, given those that no equation gives; d = h*k follows from h and k."""
    found = dict(values)
    waiting = [size for size in claim.sizes if size.name not in found]
    while waiting:
        ready = [size for size in waiting if size.equation is not None and names(size.equation) <= set(found)]
        if not ready:
            raise Undecided(f"the size {waiting[0].name} has no value")
        found |= {size.name: dim_of(size.equation, found) for size in ready if size.equation is not None}
        waiting = [size for size in waiting if size not in ready]
    return found


def whole(dim: Polynomial) -> int:
    """A dim at known sizes as a count."""
    value = value_of(dim)
    if value is None or value.denominator > 1 or value < 0:
        raise Undecided(f"a dim is {dim}, which is no whole number")
    return int(value)


@dataclass(frozen=True)
class Shapes:
    """The rules at sizes that are letters (polynomials) or numbers (constants): one text for both."""

    claim: Claim
    sizes: Mapping[str, Polynomial]
    layout: Layout
    bound: Mapping[str, Node] = field(default_factory=dict)  # names that derivatives are taken by

    def of(self, node: Node) -> Shape:
        """The shape of a node, or Misshapen."""
        match node:
            case Number() | Constant() | Probability():
                return SCALAR
            case Name(name):
                return self._named(name)
            case Negative(operand):
                return self.of(operand)
            case Transpose(operand):
                shape = self.of(operand)
                if len(shape.dims) == 1:
                    raise Turned
                turned = (*shape.dims[:-2], *shape.dims[:-3:-1])
                return replace(shape, dims=turned) if len(shape.dims) > 1 else shape
            case Moment(_, body):
                return self.of(body)
            case Binary("@", left, right):
                return multiplied(self.of(left), self.of(right))
            case Binary(operator, left, right):
                return together([self.of(left), self.of(right)], f" {operator} ".join)
            case Join(parts):
                return self._joined([self.of(part) for part in parts])
            case Index(operand, indices):
                return self._entry(self.of(operand), len(indices), node)
            case Indexed(_, index, _, _, body):
                return replace(self, sizes={**self.sizes, index: Polynomial.variable(index)}).of(body)
            case Call("grad", (body, by)) if isinstance(body, Node) and isinstance(by, Node):
                return self._derivative(self.of(body), self.of(by))
            case Gradient(name, body, place):
                return self._derivative(replace(self, bound={**self.bound, name: place}).of(body), self.of(place))
            case Call(function, arguments):
                return self._called(function, arguments)
        raise Undecided(f"the shape of {node} is not known")

    def vector(self, length: Polynomial, layout: Literal["row", "col"] | None = None) -> Shape:
        """A vector of that length: one axis, or as it lies in a matrix formula."""
        if self.layout == "lines" and layout is None:
            return Shape((length,))
        lies = layout or ("row" if self.layout == "rows" else "col")
        said = layout is not None or "layout" in self.claim.given_fields
        return Shape((ONE, length) if lies == "row" else (length, ONE), vector=True, said=said)

    def dim(self, node: Node) -> Polynomial:
        """An expression over sizes, at these sizes."""
        return dim_of(node, self.sizes)

    def _derivative(self, body: Shape, by: Shape) -> Shape:
        """The shape of the body, then that of the variable."""
        if not body.dims:
            return by
        if not by.dims:
            return body
        sides = [(shape.entries,) if shape.vector else shape.dims for shape in (body, by)]
        return Shape(sides[0] + sides[1])

    def _rearranged(self, function: str, shape: Shape, rest: list[Node]) -> Shape:
        """reshape(x, n, m) and transpose(x, i, j)."""
        dims = tuple(map(self.dim, rest))
        if function == "reshape":
            if product(*dims) != shape.entries:
                raise Misshapen(f"{shape} has {shape.entries} entries", (shape.entries, product(*dims)))
            return self.vector(dims[0]) if len(dims) == 1 else Shape(dims)
        axes, places = list(shape.dims), [whole(dim) - 1 for dim in dims]
        if shape.vector or not all(0 <= place < len(axes) for place in places):
            raise Misshapen(f"transpose of axes {rest[0]} and {rest[1]} of {shape}")
        axes[places[0]], axes[places[1]] = axes[places[1]], axes[places[0]]
        return Shape(tuple(axes))

    def _named(self, name: str) -> Shape:
        if name in self.bound:
            return self.of(self.bound[name])
        variable = self.claim.variable(name)
        if variable is None:
            cells = self.claim.source.cells if self.claim.source else ()
            if name in self.sizes or name in {cell for cell, _ in cells}:
                return SCALAR
            raise Undecided(f"the shape of {name} is not known")
        match variable.kind:
            case Reals(dims) if len(dims) != 1:
                return Shape(tuple(map(self.dim, dims)))
            case Reals(dims):
                return self.vector(self.dim(dims[0]), variable.layout)
            case Rademacher(dim):
                return self.vector(self.dim(dim), variable.layout)
            case Exponential(parameter) | Bernoulli(parameter):
                return self._drawn([self.of(parameter)], variable.layout)
            case Normal(mean, spread, _):
                return self._drawn([self.of(mean), self.of(spread)], variable.layout)
            case Uniform(lowest, highest):
                return self._drawn([self.of(lowest), self.of(highest)], variable.layout)
        return SCALAR

    def _drawn(self, parameters: list[Shape], layout: Literal["row", "col"] | None) -> Shape:
        """A draw is as long as its mean, or as either side of its covariance."""
        lengths = [max(shape.dims, key=lambda dim: dim != ONE) for shape in parameters if not shape.scalar]
        if not lengths:
            return SCALAR
        if lengths[0] != lengths[-1]:
            raise Misshapen(f"a law with parameters {' and '.join(map(str, parameters))}", (lengths[0], lengths[-1]))
        return self.vector(lengths[0], layout)

    def _joined(self, parts: list[Shape]) -> Shape:
        length = sum((part.length for part in parts), Polynomial())
        lies = {part.dims[0] == ONE for part in parts if not part.scalar and len(part.dims) == 2}
        return self.vector(length, None if len(lies) != 1 else "row" if lies == {True} else "col")

    def _entry(self, shape: Shape, indices: int, node: Node) -> Shape:
        depth = 1 if shape.vector else len(shape.dims)
        if indices > depth:
            raise Misshapen(f"{node} has more indices than {shape} has dims")
        if shape.vector or indices == depth:
            return SCALAR
        rest = shape.dims[indices:]
        return self.vector(rest[0]) if len(rest) == 1 else Shape(rest)

    def _called(self, function: str, arguments: tuple[Node | Text, ...]) -> Shape:
        nodes = [argument for argument in arguments if not isinstance(argument, Text)]
        if function in ("I", "ones", "zeros"):
            dims = tuple(map(self.dim, nodes))
            return Shape(dims * 2) if function == "I" else self.vector(dims[0]) if len(dims) == 1 else Shape(dims)
        if function in QUANTITIES:
            return SCALAR
        if function in ("reshape", "transpose"):
            return self._rearranged(function, self.of(nodes[0]), nodes[1:])
        shapes = [self.of(node) for node in nodes]
        if function in ELEMENTWISE:
            return shapes[0]
        if function in ("max", "min", "mod") and len(shapes) > 1:
            return together(shapes, lambda texts: f"{function}({', '.join(texts)})")
        if function == "vec":
            return self.vector(shapes[0].entries)
        if function == "pairs":
            length = shapes[0].length
            return self.vector(product(length, length - 1, HALF))
        if function == "outer":
            return Shape((shapes[0].length, shapes[1].length))
        if function == "einsum":
            dims = contracted(str(arguments[0]).strip('"'), list(map(str, nodes)), shapes)
            return self.vector(dims[0]) if len(dims) == 1 else Shape(dims)
        if function == "tr" and (len(shapes[0].dims) != 2 or shapes[0].dims[0] != shapes[0].dims[1]):
            raise Misshapen(f"tr{shapes[0]} undefined", shapes[0].dims)
        if function == "dot":
            _require_equal_lines(*shapes)
        return SCALAR  # dot, tr, sum, prod, mean, norm, sqnorm, dim, choose, argmax, and max or min of one argument

    def text(self, node: Node) -> str:
        """The formula with a shape in place of every operand: (1 x M) @ ((M x 1) @ (1 x D))."""
        return str(self._formula(node))

    def _formula(self, node: Node) -> Node:
        if isinstance(node, Binary):
            return Binary(node.operator, self._formula(node.left), self._formula(node.right))
        shape = self.of(node)
        return Name(str(shape)) if shape.dims else node


def together(shapes: list[Shape], words: Callable[[list[str]], str]) -> Shape:
    """The shape of an elementwise operation, broadcast as torch does: axes from the last on are equal, or one is 1."""
    arrays = [shape for shape in shapes if not shape.scalar]
    if not arrays:
        return max(shapes, key=lambda shape: len(shape.dims))
    deepest = max(len(shape.dims) for shape in shapes)
    same = all(shape.vector for shape in arrays) and len({shape.dims for shape in arrays}) == 1
    if same and deepest <= len(arrays[0].dims):
        return Shape(arrays[0].dims, True, any(shape.said for shape in arrays))
    mixed = not all(shape.vector for shape in arrays)
    sides = [(shape.entries,) if mixed and shape.vector and not shape.said else shape.dims for shape in arrays]
    rank = max(*map(len, sides), *(len(shape.dims) for shape in shapes if shape.scalar), 0)
    padded = [(ONE,) * (rank - len(dims)) + dims for dims in sides]
    result = []
    for axes in zip(*padded, strict=True):
        lengths = list(dict.fromkeys(dim for dim in axes if dim != ONE))
        if len(lengths) > 1:
            differ = [pair for pair in zip(*padded[:2], strict=True) if pair[0] != pair[1]]
            shown = differ[0] if len(differ) == 1 and len(arrays) == 2 else ()
            raise Misshapen(f"{words([str(shape) for shape in shapes])} undefined", shown)
        result.append(lengths[0] if lengths else ONE)
    return Shape(tuple(result))


def multiplied(left: Shape, right: Shape) -> Shape:
    """The shape of a matrix product as torch.matmul; axes before the last two are batches, which broadcast."""
    words = f"{left} @ {right} undefined"
    if not left.dims or not right.dims:
        raise Misshapen(words)
    a = left.dims if len(left.dims) > 1 else (ONE, *left.dims)
    b = right.dims if len(right.dims) > 1 else (*right.dims, ONE)
    if a[-1] != b[-2]:
        raise Misshapen(words, (a[-1], b[-2]))
    batches = together([Shape(a[:-2]), Shape(b[:-2])], lambda _: f"{left} @ {right}").dims
    return Shape((*batches, *a[-2:-1][: len(left.dims) - 1], *b[-1:][: len(right.dims) - 1]))


def contracted(equation: str, operands: list[str], shapes: list[Shape]) -> tuple[Polynomial, ...]:
    """The dims einsum gives; every subscript has one size wherever it stands."""
    inputs, arrow, output = equation.replace(" ", "").partition("->")
    if not EINSUM.fullmatch(inputs + output):
        raise Undecided(f"einsum takes letters, commas and ->; got {equation!r}")
    subscripts = inputs.split(",")
    if len(subscripts) != len(operands):
        raise Misshapen(f"{equation} names {len(subscripts)} operands, there are {len(operands)}")
    seen: dict[str, tuple[Polynomial, str]] = {}
    for letters, operand, shape in zip(subscripts, operands, shapes, strict=True):
        dims = (shape.entries,) if shape.vector else shape.dims
        if len(letters) != len(dims):
            raise Misshapen(f"{letters} has {len(letters)} subscripts, {operand} has {len(dims)} dims")
        for letter, dim in zip(letters, dims, strict=True):
            first, owner = seen.setdefault(letter, (dim, operand))
            if first != dim:
                reason = f"subscript {letter} is {first} in {owner} but {dim} in {operand}"
                raise Misshapen(reason, (first, dim), numbers_say_more=True)
    if not arrow:
        output = "".join(sorted(letter for letter in seen if inputs.count(letter) == 1))
    if not set(output) <= set(seen) or len(set(output)) < len(output):
        raise Misshapen(f"{equation}: the output takes each subscript of the inputs at most once")
    return tuple(seen[letter][0] for letter in output)


def _require_equal_lines(left: Shape, right: Shape) -> None:
    if left.dims == right.dims:
        return
    if left.length != right.length:
        raise Misshapen(f"dot({left}, {right}) undefined", (left.length, right.length))


def dim_of(node: Node, sizes: Mapping[str, Polynomial]) -> Polynomial:
    """What an expression over sizes is, as a polynomial.

    >>> pairs = Call("choose", (Binary("+", Name("D"), Number(Fraction(1))), Number(Fraction(2))))
    >>> dim_of(pairs, {"D": Polynomial.variable("D")})
    Polynomial('1/2*D^2 + 1/2*D')
    """
    match node:
        case Number(value):
            return product(Polynomial.constant(value))
        case Name(name) if name in sizes:
            return sizes[name]
        case Negative(operand):
            return -dim_of(operand, sizes)
        case Binary("+" | "-", left, right):
            a, b = dim_of(left, sizes), dim_of(right, sizes)
            return a + b if node.operator == "+" else a - b
        case Binary("*", left, right):
            return product(dim_of(left, sizes), dim_of(right, sizes))
        case Binary("/", left, right):
            divisor = value_of(dim_of(right, sizes))
            if divisor:
                return dim_of(left, sizes) * (1 / divisor)
        case Binary("^", left, right):
            return product(*[dim_of(left, sizes)] * _count(dim_of(right, sizes), node))
        case Call("choose"):
            top, count = (dim_of(child, sizes) for child in children(node))
            return product(*((top - i) * Fraction(1, i + 1) for i in range(_count(count, node))))
    raise Undecided(f"{node} is no polynomial over the sizes")


def product(*dims: Polynomial) -> Polynomial:
    """The product of dims, as long as it stays small."""
    return reduce(_times, dims, ONE)


def node_of(dim: Polynomial) -> Node:
    """A polynomial as an expression again.

    >>> print(node_of(2 * Polynomial.variable("D") ** 2 + 1))
    2*D^2 + 1
    """
    total: Node | None = None
    for factors, value in sorted(dim.terms.items(), key=lambda term: -sum(exponent for _, exponent in term[0])):
        powers = [Name(name) if n == 1 else Binary("^", Name(name), Number(Fraction(n))) for name, n in factors]
        parts: list[Node] = [*([] if powers and value == 1 else [Number(value)]), *powers]
        term = reduce(lambda left, right: Binary("*", left, right), parts)
        total = term if total is None else Binary("+", total, term)
    return total or Number(Fraction(0))


def value_of(dim: Polynomial) -> Fraction | None:
    """Its value, if it does not depend on a size."""
    return None if dim.variables else dim.coefficient()


def _times(left: Polynomial, right: Polynomial) -> Polynomial:
    if left.degree + right.degree > DEGREE:
        raise Undecided(f"a size of degree above {DEGREE}")
    found = left * right
    if len(found.terms) > TERMS:
        raise Undecided(f"a size of more than {TERMS} terms")
    if any(max(abs(value.numerator), value.denominator) >= 10 ** (2 * DIGITS) for value in found.terms.values()):
        raise Undecided(f"a size of more than {2 * DIGITS} digits")
    return found


def _count(power: Polynomial, node: Node) -> int:
    value = value_of(power)
    if value is None or value.denominator > 1 or not 0 <= value <= DEGREE:
        raise Undecided(f"{node}: the power is no whole number from 0 to {DEGREE}")
    return int(value)


def decide(claim: Claim) -> Finding | None:
    """Of `has shape` the verdict; of a comparison only that its sides fit no layout, or what its dims are."""
    relation = claim.relation
    if isinstance(relation, HasShape):
        return _typed(with_equations(claim))
    if not isinstance(relation, Compares):
        return None
    claim = with_equations(claim)
    try:
        found = _typed(claim)
    except Undecided:
        return None  # a name of unknown shape is no mistake of the formula
    return _compared_dims(claim, relation) if found.verdict == "holds" else found


def with_dims(claim: Claim, node: Node) -> Node:
    r"""The expression with every dim(...) replaced by the polynomial over sizes that it is.

    >>> from likewise.claims.language.parser import parse
    >>> claim = parse("given: x in R^D\nassert: dim([1, x, x*x]) in O(D)")
    >>> print(with_dims(claim, claim.relation.quantity))
    2*D + 1
    """
    if isinstance(node, Call) and node.function == "dim":
        return node_of(lying(claim, solved(claim, _letters(claim)), children(node)[0]).entries)
    return rebuilt(node, lambda part: with_dims(claim, part))


def with_equations(claim: Claim) -> Claim:
    """The claim with every assumption `q == d` about a free size also written as an equation of that size."""
    for chain in claim.assumptions:
        for name, right in (chain.terms, chain.terms[::-1]) if chain.comparisons == ("==",) else ():
            free = [size.name for size in claim.sizes if size.equation is None]
            if isinstance(name, Name) and name.name in free and names(right) <= {size.name for size in claim.sizes}:
                sizes = tuple(Size(name.name, right) if size.name == name.name else size for size in claim.sizes)
                changed = replace(claim, sizes=sizes)
                try:
                    solved(changed, _letters(changed))
                except Undecided:  # in a circle, or no polynomial: then it is only checked at the witness
                    continue
                claim = changed
                break
    return claim


def distinct_sizes(claim: Claim) -> dict[str, int]:
    r"""Sizes of which no two agree by accident, as the assumptions allow them: primes where possible.

    >>> from likewise.claims.language.parser import parse
    >>> distinct_sizes(parse("sizes: h, k, d = h*k\ngiven: x[b, d]\nassert: x has shape [b, d]"))
    {'h': 7, 'k': 11, 'b': 13, 'd': 77}
    """
    claim = with_equations(claim)
    for sizes in islice(_assignments(list(_letters(claim))), ASSIGNMENTS):
        values = {name: Polynomial.constant(value) for name, value in sizes.items()}
        if _allowed(claim, values):
            return {name: whole(value) for name, value in solved(claim, values).items()}
    raise Undecided("no sizes were found that satisfy the assumptions")


def _letters(claim: Claim) -> dict[str, Polynomial]:
    return {size.name: Polynomial.variable(size.name) for size in claim.sizes if size.equation is None}


def _typed(claim: Claim) -> Finding:
    """Both layouts are tried where a vector is transposed and none was written; fitting one is no refutation."""
    layouts: tuple[Layout, ...] = _layouts(claim)
    texts: dict[Layout, str] = {}
    failures: dict[Layout, Misshapen] = {}
    for layout in layouts:
        try:
            texts[layout] = _formula(claim, layout, _letters(claim))
        except Misshapen as failure:
            failures[layout] = failure
    outcomes = {layout: texts.get(layout) or str(failures.get(layout, "")) for layout in layouts}
    differ = len(set(outcomes.values())) > 1
    detail = "; ".join(f"{text} with {layout}" for layout, text in outcomes.items()) if differ else outcomes[layouts[0]]
    if layouts[0] in texts:
        return Finding("holds", "proved", detail, "shape")
    if texts:
        return Finding(
            "inconclusive", "undecided", f"layout missing: {detail}", "shape", suggestions=("layout: columns",)
        )
    sizes = _witness(claim, failures)
    conditions: tuple[str, ...] = ()
    if not differ:
        failure = failures[layouts[0]]
        conditions = tuple(_conditions(claim, layouts[0]))
        detail = _said(claim, layouts[0], failure, sizes) + _passes_when(conditions, failure)
    # Without sizes the formula itself is what does not fit.
    witness = tuple((name, str(value)) for name, value in sizes.items()) or (("formula", str(claim.relation)),)
    return Finding("refuted", "exact witness", detail, "shape", witness=witness, suggestions=conditions)


def _layouts(claim: Claim) -> tuple[Layout, ...]:
    if "layout" in claim.given_fields:
        return (claim.layout,)
    try:
        _formula(claim, "lines", _letters(claim))
    except Turned:
        return ("rows", "columns")
    except Misshapen:
        pass
    return ("lines",)


def _formula(claim: Claim, layout: Layout, values: Mapping[str, Polynomial]) -> str:
    """The relation with shapes for operands, or Misshapen."""
    shapes = Shapes(claim, solved(claim, values), layout)
    if isinstance(claim.relation, Compares):
        chain = claim.relation.chain
        terms = [shapes.of(term) for term in chain.terms]
        for sign, (left, right) in zip(chain.comparisons, pairwise(terms), strict=True):
            together([left, right], f" {sign} ".join)
        return ""
    assert isinstance(claim.relation, HasShape)
    body = claim.relation.body
    found, wanted = shapes.of(body), Shape(tuple(map(shapes.dim, claim.relation.dims)))
    text = shapes.text(body)
    if not found.fits(wanted.dims):
        differ = [(a, b) for a, b in zip(found.dims, wanted.dims, strict=False) if a != b]
        sides = differ[0] if len(differ) == 1 and len(found.dims) == len(wanted.dims) else ()
        raise Misshapen(f"{text} is {found}, not {wanted}" if text != str(found) else f"{found}, not {wanted}", sides)
    return text


def _said(claim: Claim, layout: Layout, failure: Misshapen, sizes: Mapping[str, int]) -> str:
    """The failure in letters, or with the numbers of the witness where they say more."""
    if not failure.numbers_say_more:
        return str(failure)
    try:
        _formula(claim, layout, {name: Polynomial.constant(value) for name, value in sizes.items()})
    except Misshapen as counted:
        return f"{counted} ({' '.join(f'{name}={value}' for name, value in sizes.items())})"
    return str(failure)


def _conditions(claim: Claim, layout: Layout) -> Iterator[str]:
    """Which two sizes would have to be equal for the formula to pass; else which would have to be 1."""
    letters = _letters(claim)
    found = False
    equal = [(b, a, letters[a]) for a, b in combinations(list(letters)[:8], 2)]
    for left, right, value in [*equal, *((name, "1", ONE) for name in letters)]:
        if right == "1" and found:
            return
        try:
            _formula(claim, layout, letters | {left: value})
        except (Misshapen, Undecided):
            continue
        found = True
        yield f"{left} == {right}"


def _passes_when(conditions: tuple[str, ...], failure: Misshapen) -> str:
    if not conditions:
        return ""
    only = len(conditions) == 1 and {str(side) for side in failure.sides} == set(conditions[0].split(" == "))
    return f"; passes {'only ' * only}when {', or '.join(conditions)}"


def _witness(claim: Claim, failures: Mapping[Layout, Misshapen]) -> dict[str, int]:
    """Sizes that satisfy the assumptions and at which every layout fails."""
    for sizes in islice(_assignments(list(_letters(claim))), ASSIGNMENTS):
        values = {name: Polynomial.constant(value) for name, value in sizes.items()}
        if _allowed(claim, values) and all(_fails(claim, layout, values) for layout in failures):
            return sizes
    raise Undecided("misshapen as written, but no sizes were found that satisfy the assumptions")


def _assignments(free: list[str]) -> Iterator[dict[str, int]]:
    count = len(free)
    rows: list[Iterator[tuple[int, ...]]] = [
        iter([PRIMES[:count], PRIMES[3 : count + 3], tuple(12 * prime for prime in PRIMES[:count])]),
        islice(permutations(PRIMES[:count]), ASSIGNMENTS // 3),
        every(range(1, SMALL + 1), repeat=count),
    ]
    for row in (row for group in rows for row in group if len(row) == count):
        yield dict(zip(free, row, strict=True))


def _allowed(claim: Claim, values: Mapping[str, Polynomial]) -> bool:
    """Whether these are sizes the claim speaks of: dims are whole, and what is assumed of sizes is true."""
    try:
        sizes = solved(claim, values)
        dims = [dim for each in claim.variables if isinstance(each.kind, Reals) for dim in each.kind.dims]
        counts = [whole(dim_of(dim, sizes)) for dim in dims] + [whole(size) for size in sizes.values()]
        about_sizes = [chain for chain in claim.assumptions if names_of(chain) <= set(sizes)]
        return min(counts, default=1) >= 1 and all(_true(chain, sizes) for chain in about_sizes)
    except Undecided:
        return False


def names_of(chain: Chain) -> set[str]:
    """Every name in a chain."""
    return set().union(*map(names, chain.terms))


def _true(chain: Chain, sizes: Mapping[str, Polynomial]) -> bool:
    terms = [value_of(dim_of(term, sizes)) for term in chain.terms]
    pairs = zip(chain.comparisons, pairwise(terms), strict=True)
    return all(a is not None and b is not None and HOLDS[sign](a, b) for sign, (a, b) in pairs)


def _fails(claim: Claim, layout: Layout, values: Mapping[str, Polynomial]) -> bool:
    try:
        _formula(claim, layout, values)
    except Misshapen:
        return True
    return False


def _compared_dims(claim: Claim, relation: Compares) -> Finding | None:
    """`dim([1, x]) == D + 1`, and nothing else but sizes: two polynomials."""
    terms = tuple(with_dims(claim, term) for term in relation.chain.terms)
    chain = Chain(terms, relation.chain.comparisons)
    if terms == relation.chain.terms or relation.within or not names_of(chain) <= {size.name for size in claim.sizes}:
        return None
    if any(map(_partial, relation.chain.terms)):
        return None  # a comparison speaks of values, and these may have none
    letters = solved(claim, _letters(claim))
    polynomials = [dim_of(term, letters) for term in terms]
    for sizes in islice(_smallest(list(_letters(claim))), ASSIGNMENTS):
        values = {name: Polynomial.constant(value) for name, value in sizes.items()}
        if _allowed(claim, values) and not _true(chain, solved(claim, values)):
            return _refuted_dims(chain, solved(claim, values), sizes)
    if all(_always(sign, a, b) for sign, (a, b) in zip(chain.comparisons, pairwise(polynomials), strict=True)):
        every = ", ".join(_letters(claim))
        return Finding("holds", "proved", f"{polynomials[0]}{f' for every {every}' if every else ''}", "shape")
    raise Undecided(f"{' and '.join(map(str, polynomials))} differ, but not at sizes up to {SMALL}")


def _partial(node: Node) -> bool:
    """Whether an operation may be undefined somewhere."""
    match node:
        case Binary("^", _, Number(value)) if value.denominator == 1 and value >= 0:
            pass
        case Binary("/", _, Number(value)) | Binary("/", _, Call("sqrt", (Number(value),))) if value > 0:
            return _partial(node.left)
        case Call("sqrt" | "log", (Number(value),)) if value > 0:
            return False
        case Binary("/" | "^", _, _) | Index() | Indexed():
            return True
        case Call(function, _) if function in PARTIAL:
            return True
    return any(map(_partial, children(node)))


def _smallest(free: list[str]) -> Iterator[dict[str, int]]:
    rows = sorted(every(range(1, SMALL + 1), repeat=min(len(free), 6)), key=lambda row: (max(row, default=0), row))
    return (dict(zip(free, row, strict=False)) for row in rows)


def _refuted_dims(chain: Chain, values: Mapping[str, Polynomial], sizes: Mapping[str, int]) -> Finding:
    pairs = zip(chain.comparisons, pairwise(chain.terms), strict=True)
    sign, left, right = next((sign, *pair) for sign, pair in pairs if not _true(Chain(pair, (sign,)), values))
    witness = tuple((name, str(value)) for name, value in sizes.items())
    point = " ".join(f"{name}={value}" for name, value in witness)
    detail = f"{point}{': ' * bool(point)}{dim_of(left, values)} {NEGATED[sign]} {dim_of(right, values)}"
    return Finding("refuted", "exact witness", detail, "shape", witness=witness)


def _always(sign: str, left: Polynomial, right: Polynomial) -> bool:
    """Whether a comparison of polynomials is plain from the signs of the coefficients in sizes 1 + t, t >= 0."""
    if sign == "==":
        return left == right
    above = left - right if sign in (">", ">=", "!=") else right - left
    shifted = above.substitute({name: 1 + Polynomial.variable(name) for name in above.variables})
    strict = sign in ("<", ">", "!=")
    return all(value >= 0 for value in shifted.terms.values()) and (not strict or shifted.coefficient() > 0)
