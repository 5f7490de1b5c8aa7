"""Shapes of expressions: what every operation of the language asks of its operands, and what it gives.

A vector in R^M has one axis ("lines"). Where the claim states a layout, or transposes a vector, it is 1 x M under rows
and M x 1 under columns, or what its own `row` or `col` says. Elementwise operations broadcast as torch does. A dim is a
polynomial over the sizes of the claim: two are equal exactly when they agree at all sizes.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import reduce
from typing import Literal

from likewise.claims.language.claim import Bernoulli, Claim, Exponential, Normal, Rademacher, Reals, Uniform
from likewise.claims.language.limits import DEGREE, DIGITS
from likewise.claims.language.tree import (
    Binary,
    Call,
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
from likewise.claims.verdict import Undecided
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
