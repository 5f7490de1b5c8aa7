"""Functions, indexed sums and derivatives written out in simpler operations, for engines that read the tree.

    sigmoid(x)                          1/(1 + exp(-x))
    sum(i in 1..D, q[i]*k[i])           sum(q*k), where every array that i indexes has D entries along that axis
    sum(i in 1..N, i^2)                 N*(N + 1)*(2*N + 1)/6
    grad(log(sum(exp(x))), x)           exp(x)/sum(exp(x)), by reverse differentiation of the tree, whatever D is

What cannot be written out stays: the reader computes it entry by entry at given sizes. The judge never sees any of
this; it reads a claim as it was written.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import reduce
from itertools import combinations
from math import comb

from likewise.claims.language.claim import Bernoulli, Claim, Exponential, Normal, Rademacher, Reals, Uniform
from likewise.claims.language.expressions import rebuilt
from likewise.claims.language.parser import over
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

UNROLLED = 16  # terms of a sum between numbers
POWER = 12  # of the index, in a sum that has a closed form
REARRANGED = frozenset({"grad", "vec", "reshape", "transpose", "I", "tr", "prod", "softmax"})
PLACE = "'"  # ends the name that a derivative is taken by, which no claim can contain
Dims = tuple[Node, ...]


class Unspelled(Exception):
    """Raised inside where an operation has no simpler form."""


def number(value: Fraction | int) -> Number:
    """An exact number."""
    return Number(Fraction(value))


ZERO, ONE, TWO = number(0), number(1), number(2)


def plus(left: Node, right: Node) -> Node:
    """left + right, without what is 0."""
    if ZERO in (left, right):
        return right if left == ZERO else left
    return Binary("+", left, right)


def minus(left: Node, right: Node) -> Node:
    """left - right."""
    return left if right == ZERO else Binary("-", left, right)


def times(left: Node, right: Node) -> Node:
    """left*right, without what is 1."""
    if ONE in (left, right):
        return right if left == ONE else left
    return Binary("*", left, right)


def over_(left: Node, right: Node) -> Node:
    """left/right."""
    return left if right == ONE else Binary("/", left, right)


def call(function: str, *arguments: Node) -> Node:
    """A call of nodes."""
    return Call(function, arguments)


DERIVED: dict[str, Callable[..., Node]] = {
    "sigmoid": lambda x: over_(ONE, plus(ONE, call("exp", Negative(x)))),
    "tanh": lambda x: minus(ONE, over_(TWO, plus(call("exp", times(TWO, x)), ONE))),
    "log2": lambda x: over_(call("log", x), call("log", TWO)),
    "normcdf": lambda x: over_(plus(ONE, call("erf", over_(x, call("sqrt", TWO)))), TWO),
    "ceil": lambda x: Negative(call("floor", Negative(x))),
    "mod": lambda a, b: minus(a, times(b, call("floor", over_(a, b)))),
}


def spelled(claim: Claim) -> Claim:
    r"""The claim in simpler operations.

    >>> from likewise.claims.language.parser import parse
    >>> print(spelled(parse("given: x in R^D\nassert: grad(sqnorm(x), x) == 2*sum(i in 1..D, x[i])")).relation)
    2*x == 2*sum(x)
    """
    if not any(_needed(node) for node in _everything(claim)):
        return claim
    speller = _Speller(_dims(claim), frozenset(size.name for size in claim.sizes), _reached(claim))
    relation = over(claim.relation, speller.spell)
    assumptions = tuple(over(chain, speller.spell) for chain in claim.assumptions)
    variables = tuple(replace(each, kind=over(each.kind, speller.spell)) for each in claim.variables)
    return replace(claim, relation=relation, assumptions=assumptions, variables=variables, raw=())


def _everything(claim: Claim) -> list[Node]:
    found: list[Node] = []

    def keep(node: Node) -> Node:
        found.append(node)
        return node

    for part in (claim.relation, *claim.assumptions, *(each.kind for each in claim.variables)):
        over(part, keep)
    return found


def _reached(claim: Claim) -> dict[str, frozenset[str]]:
    """The random names whose law each name is part of."""
    found: dict[str, frozenset[str]] = {}
    for each in claim.variables:
        parts: list[Node] = []
        if each.random:
            over(each.kind, lambda node, parts=parts: parts.append(node) or node)
        for name in set().union(*map(names, parts)):
            found[name] = found.get(name, frozenset()) | {each.name}
    return found


def _needed(node: Node) -> bool:
    sandwich = isinstance(node, Binary) and node.operator == "@" and isinstance(node.left, Binary)
    mine = (
        sandwich
        or isinstance(node, Indexed | Join | Gradient)
        or (isinstance(node, Call) and (node.function in DERIVED or node.function in REARRANGED))
    )
    return mine or any(map(_needed, children(node)))


def _dims(claim: Claim) -> dict[str, Dims]:
    """The lengths of the axes of every name; a random vector's are those of its law."""
    found: dict[str, Dims] = {size.name: () for size in claim.sizes}
    for each in claim.variables:
        match each.kind:
            case Reals(dims):
                if len(dims) == 1 and (each.layout or "layout" in claim.given_fields):
                    continue  # rows and columns are left to the reader
                found[each.name] = dims
            case Rademacher(dim):
                found[each.name] = (dim,)
            case Normal(_, spread, _):
                lengths = _identity(spread)
                if lengths is not None:
                    found[each.name] = lengths
            case Uniform() | Exponential() | Bernoulli():
                pass  # as long as their parameters, which is left to the reader
            case _:
                found[each.name] = ()
    return found


def _identity(spread: Node) -> Dims | None:
    """The length of a vector whose covariance is a multiple of I(D); () for a number."""
    match spread:
        case Call("I", (Name() | Number() as length,)):
            return (length,)
        case Binary("*" | "/", left, right):
            sides = [_identity(left), _identity(right)]
            return None if None in sides else max((side for side in sides if side is not None), key=len)
        case Number() | Constant():
            return ()
        case Name() | Call("sqrt" | "exp", (Name(),)):
            return ()
        case Binary("^", left, Number()):
            return _identity(left)
    return None


@dataclass(frozen=True)
class _Speller:
    dims: Mapping[str, Dims]
    sizes: frozenset[str]
    reached: Mapping[str, frozenset[str]] = field(default_factory=dict)  # random names whose law a name is part of

    def spell(self, node: Node) -> Node:
        """The node, its parts first."""
        if isinstance(node, Indexed):
            inner = replace(self, dims={**self.dims, node.index: ()})
            node = Indexed(
                node.function, node.index, self.spell(node.lowest), self.spell(node.highest), inner.spell(node.body)
            )
            return self._summed(node)
        if isinstance(node, Call) and node.function == "grad":
            return self._gradient(node)
        if isinstance(node, Gradient):
            return self._gradient_at(node)
        node = rebuilt(node, self.spell)
        if isinstance(node, Call) and node.function in DERIVED:
            return DERIVED[node.function](*node.arguments)
        return self._rearranged(node)

    def _rearranged(self, node: Node) -> Node:
        """The same without a rearrangement that changes nothing, an identity matrix, or the trace of a product."""
        match node:
            case Call("vec", (operand,)) if isinstance(operand, Node) and len(self._known(operand) or ()) == 1:
                return operand
            case Call("reshape", (operand, *dims)) if isinstance(operand, Node):
                inner = operand
                while isinstance(inner, Call) and inner.function in ("vec", "reshape"):
                    inner = children(inner)[0]
                if self._known(inner) == tuple(dims):
                    return inner
                if len(dims) == 1 and self._known(inner) is not None:
                    return Call("vec", (inner,))
            case Call("transpose", (operand, Number(one), Number(two))) if isinstance(operand, Node):
                if {one, two} == {1, 2} and len(self._known(operand) or ()) == 2:
                    return Transpose(operand)
            case Binary("@", Call("I", (length,)), right):
                if (self._known(right) or (None,))[0] == length:
                    return right
            case Binary("@", left, Call("I", (length,))):
                if (self._known(left) or (None,))[-1] == length:
                    return left
            case Binary("@", Binary("@", x, Binary("@", Transpose(a), b)), y) if a == b and x == y:
                if len(self._known(x) or ()) == 1 and len(self._known(a) or ()) == 2:
                    return call("sqnorm", product(a, x))
            case Call("tr", (Binary("@", left, right),)):
                shapes = self._known(left), self._known(right)
                if shapes[0] and shapes[1] and len(shapes[0]) == 2 and shapes[0] == shapes[1][::-1]:
                    turned = left.operand if isinstance(left, Transpose) else None
                    a, b = (turned, right) if turned is not None else (left, _turned(right))
                    return call("sqnorm", a) if a == b else call("sum", times(a, b))
            case Call("sum" | "sqnorm" as function, (Join(parts),)):
                if all(self._known(part) is not None for part in parts):
                    return sum_of([self._alone(function, part) for part in parts])
            case Call("dot", (Join(parts), Join(others))) if len(parts) == len(others):
                pairs = list(zip(parts, others, strict=True))
                if all(self._known(a) is not None and self._known(a) == self._known(b) for a, b in pairs):
                    return sum_of([times(a, b) if self._known(a) == () else call("dot", a, b) for a, b in pairs])
            case Call("prod", (Call("exp", (operand,)),)) if isinstance(operand, Node):
                return call("exp", call("sum", operand))
            case Call("sum", (Binary("*", left, right),)):
                axes = self._known(left), self._known(right)
                if axes[0] and axes[1] and len(axes[0]) == 2 and len(axes[1]) == 1 and axes[0][1] == axes[1][0]:
                    return call("sum", Binary("@", left, right))
            case Call("sum", (Call("softmax", (operand,)),)) if isinstance(operand, Node):
                known = self._known(operand)
                if known and len(known) == 2 and not _partial(operand, self.sizes):
                    return known[0]
        return node

    def _alone(self, function: str, part: Node) -> Node:
        """sum or sqnorm of one part of [a, b]."""
        if self._known(part) == ():
            return part if function == "sum" else times(part, part)
        return self._rearranged(call(function, part))

    def _summed(self, node: Indexed) -> Node:
        lowest, highest = _whole(node.lowest), _whole(node.highest)
        if lowest is not None and highest is not None and node.function in UNROLL and lowest <= highest:
            if highest - lowest >= UNROLLED:
                return node
            parts = [put(node.body, {node.index: number(i)}) for i in range(lowest, highest + 1)]
            return self.spell(UNROLL[node.function](parts))
        try:
            return self._along(node)
        except Unspelled:
            pass
        try:
            return _closed(node)
        except Unspelled:
            return node

    def _along(self, node: Indexed) -> Node:
        """The same over an axis: every array that is indexed has as many entries as there are terms."""
        if node.lowest != ONE:
            raise Unspelled
        lifted = _Lifted(self, node.index, node.highest).lift(node.body)
        if not lifted.moves:
            if lifted.rank or node.function == "prod":
                raise Unspelled
            return times(node.highest, node.body) if node.function == "sum" else node.body
        if lifted.rank == 0:
            return Call(node.function, (lifted.node,))
        if lifted.rank == 1 and node.function == "sum":
            return Call("einsum", (Text("ij->j"), lifted.node))
        raise Unspelled

    def _gradient(self, node: Call) -> Node:
        body, by = node.arguments
        assert isinstance(body, Node)
        body = self.spell(body)
        if isinstance(by, Index):
            assert isinstance(by.operand, Name)
            whole = self._gradient(Call("grad", (node.arguments[0], by.operand)))
            if self._known(body) == ():
                return Index(whole, tuple(map(self.spell, by.indices)))
            raise Undecided("the derivative of an array by an entry")
        assert isinstance(by, Name)
        if self.reached.get(by.name, frozenset()) & names(body):
            raise Undecided(f"the derivative by {by}, on which a law depends")
        try:
            return _Differential(self, by.name).of(body)
        except Unspelled:
            bound = by.name + PLACE
            return Gradient(bound, put(body, {by.name: Name(bound)}), by)

    def _gradient_at(self, node: Gradient) -> Node:
        """The derivative by a bound name, with the place put in for it."""
        place = self.spell(node.place)
        dims = self._known(place)
        inner = self if dims is None else replace(self, dims={**self.dims, node.name: dims})
        body = inner.spell(node.body)
        try:
            return put(_Differential(inner, node.name).of(body), {node.name: place})
        except Unspelled:
            return Gradient(node.name, body, place)

    def _known(self, node: Node) -> Dims | None:
        try:
            return self.shape(node)
        except Unspelled:
            return None

    def shape(self, node: Node) -> Dims:
        """The lengths of the axes; Unspelled where that is not plain to see."""
        match node:
            case Number() | Constant() | Probability():
                return ()
            case Name(name) if name in self.dims:
                return self.dims[name]
            case Negative(operand) | Moment("E" | "Var", operand):
                return self.shape(operand)
            case Transpose(operand):
                axes = self.shape(operand)
                if len(axes) == 1:
                    raise Unspelled
                return (*axes[:-2], *axes[:-3:-1])
            case Binary("@", left, right):
                a, b = self.shape(left), self.shape(right)
                if not 1 <= len(a) <= 2 or not 1 <= len(b) <= 2 or a[-1] != b[0]:
                    raise Unspelled
                return a[:-1] + b[1:]
            case Binary(_, left, right):
                return self.together([left, right])
            case Index(operand, indices):
                axes = self.shape(operand)
                if len(indices) > len(axes):
                    raise Unspelled
                return axes[len(indices) :]
            case Call("dot" | "sqnorm" | "norm" | "sum" | "mean" | "tr" | "dim" | "choose" | "factorial" | "argmax", _):
                return ()
            case Call("max" | "min" | "prod", (_,)):
                return ()
            case Call("max" | "min", arguments):
                return self.together([part for part in arguments if isinstance(part, Node)])
            case Call("outer"):
                left, right = children(node)
                return self.shape(left) + self.shape(right)
            case Call("I", (length,)) if isinstance(length, Node):
                return (length, length)
            case Call("ones" | "zeros", lengths):
                return tuple(length for length in lengths if isinstance(length, Node))
            case Call(function, (operand,)) if function in ELEMENTWISE and isinstance(operand, Node):
                return self.shape(operand)
            case Call("einsum", (Text(subscripts), *operands)):
                inputs, arrow, output = subscripts.replace(" ", "").partition("->")
                lengths = {
                    letter: dim
                    for group, part in zip(inputs.split(","), operands, strict=False)
                    if isinstance(part, Node)
                    for letter, dim in zip(group, self.shape(part), strict=True)
                }
                if arrow:
                    return tuple(lengths[letter] for letter in output)
        raise Unspelled

    def together(self, parts: list[Node]) -> Dims:
        """Shapes that are equal, or empty."""
        shapes = {self.shape(part) for part in parts} - {()}
        if len(shapes) > 1:
            raise Unspelled
        return shapes.pop() if shapes else ()


ELEMENTWISE = frozenset({"sqrt", "exp", "log", "sin", "cos", "abs", "relu", "erf", "sign", "floor", "softmax"})
UNROLL: dict[str, Callable[[list[Node]], Node]] = {
    "sum": lambda parts: reduce(plus, parts),
    "prod": lambda parts: reduce(times, parts),
    "mean": lambda parts: over_(reduce(plus, parts), number(len(parts))),
    "max": lambda parts: Call("max", tuple(parts)) if len(parts) > 1 else parts[0],
    "min": lambda parts: Call("min", tuple(parts)) if len(parts) > 1 else parts[0],
}


def put(node: Node, values: Mapping[str, Node]) -> Node:
    """The node with free names replaced; what is put in has no name that is bound there."""
    if isinstance(node, Name):
        return values.get(node.name, node)
    if isinstance(node, Indexed | Gradient):
        bound = node.index if isinstance(node, Indexed) else node.name
        rest = {name: value for name, value in values.items() if name != bound}
        body, outside = put(node.body, rest), [put(part, values) for part in children(node) if part is not node.body]
        if isinstance(node, Gradient):
            return Gradient(bound, body, outside[0])
        return Indexed(node.function, bound, outside[0], outside[1], body)
    return rebuilt(node, lambda part: put(part, values))


def sum_of(parts: list[Node]) -> Node:
    """a + b + c."""
    total = parts[0]
    for part in parts[1:]:
        total = plus(total, part)
    return total


def _turned(node: Node) -> Node:
    return node.operand if isinstance(node, Transpose) else Transpose(node)


def _whole(node: Node) -> int | None:
    return int(node.value) if isinstance(node, Number) and node.value.denominator == 1 else None


@dataclass(frozen=True)
class _Value:
    """An expression for every index at once: where it `moves` a first axis counts the index; `rank` is without it."""

    node: Node
    moves: bool
    rank: int


@dataclass(frozen=True)
class _Lifted:
    """Reads the body of a sum for all values of its index at once."""

    speller: _Speller
    index: str
    highest: Node

    def lift(self, node: Node) -> _Value:
        if self.index not in names(node):
            return _Value(node, False, len(self.speller.shape(node)))
        match node:
            case Negative(operand):
                inner = self.lift(operand)
                return replace(inner, node=Negative(inner.node))
            case Index(array, indices) if self.index not in names(array):
                return self._entry(array, indices)
            case Binary("*", left, right):
                return self._product(self.lift(left), self.lift(right))
            case Binary("+" | "-" | "/" | "^" as sign, left, right):
                a, b = self.lift(left), self.lift(right)
                if (a.rank, a.moves) != (b.rank, b.moves) and (a.rank or b.rank):
                    raise Unspelled
                return _Value(Binary(sign, a.node, b.node), True, a.rank)
            case Call("dot", (left, right)) | Binary("@", left, right) if isinstance(left, Node):
                assert isinstance(right, Node)
                return self._dot(self.lift(left), self.lift(right))
            case Call("sqnorm", (operand,)) if isinstance(operand, Node):
                inner = self.lift(operand)
                return self._dot(inner, inner)
            case Call("sum", (operand,)) if isinstance(operand, Node):
                if isinstance(operand, Binary) and operand.operator == "*":
                    sides = self.lift(operand.left), self.lift(operand.right)
                    if (sides[0].rank, sides[1].rank) == (1, 1):
                        return self._dot(*sides)
                inner = self.lift(operand)
                if inner.rank == 1:
                    return _Value(Call("einsum", (Text("ij->i"), inner.node)), True, 0)
            case Call(function, (operand,)) if function in ELEMENTWISE - {"softmax"} and isinstance(operand, Node):
                inner = self.lift(operand)
                return replace(inner, node=Call(function, (inner.node,)))
            case Call("max" | "min" as function, arguments) if len(arguments) > 1:
                parts = [self.lift(part) for part in arguments if isinstance(part, Node)]
                if not any(part.rank for part in parts):
                    return _Value(Call(function, tuple(part.node for part in parts)), True, 0)
        raise Unspelled

    def _entry(self, array: Node, indices: Dims) -> _Value:
        axes = self.speller.shape(array)
        mine = Name(self.index)
        if len(indices) > len(axes) or len(axes) > 2:
            raise Unspelled
        places = [place for place, index in enumerate(indices) if index == mine]
        if len(places) != 1 or any(self.index in names(index) for index in indices if index != mine):
            raise Unspelled
        (place,) = places
        if axes[place] != self.highest:
            raise Unspelled
        if len(indices) == 1:
            return _Value(array, True, len(axes) - 1)
        other = indices[1 - place]
        return _Value(Index(array if place else Transpose(array), (other,)), True, 0)

    def _product(self, left: _Value, right: _Value) -> _Value:
        if left.rank > right.rank:
            left, right = right, left
        if left.rank == right.rank and (left.rank == 0 or left.moves == right.moves):
            return _Value(times(left.node, right.node), True, left.rank)
        if (left.rank, right.rank) == (1, 1):
            return _Value(times(left.node, right.node), True, 1)  # a row broadcasts along the rows
        if (left.rank, right.rank) == (0, 1):
            if not left.moves:
                return _Value(times(left.node, right.node), True, 1)
            if not right.moves:
                return _Value(Call("outer", (left.node, right.node)), True, 1)
            return _Value(Call("einsum", (Text("i,ij->ij"), left.node, right.node)), True, 1)
        raise Unspelled

    def _dot(self, left: _Value, right: _Value) -> _Value:
        if (left.rank, right.rank) != (1, 1):
            raise Unspelled
        if left.moves and right.moves:
            return _Value(Call("einsum", (Text("ij,ij->i"), left.node, right.node)), True, 0)
        moving, still = (left, right) if left.moves else (right, left)
        return _Value(Binary("@", moving.node, still.node), True, 0)


def _closed(node: Indexed) -> Node:
    """The sum of a polynomial in its index, from 0 or 1 to a size or one less."""
    lowest = _whole(node.lowest)
    match node.highest:
        case Name() | Binary("-", Name(), Number(Fraction(numerator=1, denominator=1))):
            pass
        case _:
            raise Unspelled
    if node.function not in ("sum", "mean") or lowest not in (0, 1):
        raise Unspelled
    if node.function == "mean" and (not isinstance(node.highest, Name) or lowest != 1):
        raise Unspelled
    total: Node = ZERO
    for power, factor in sorted(_polynomial(node.body, node.index).items()):
        total = plus(total, times(factor, _power_sum(power, node.highest, lowest)))
    return over_(total, node.highest) if node.function == "mean" else total


def _polynomial(node: Node, index: str) -> dict[int, Node]:
    """The coefficients of a polynomial in the index."""
    if index not in names(node):
        return {0: node}
    match node:
        case Name():
            return {1: ONE}
        case Negative(operand):
            return {power: Negative(factor) for power, factor in _polynomial(operand, index).items()}
        case Binary("+" | "-" as sign, left, right):
            a, b = _polynomial(left, index), _polynomial(right, index)
            join = plus if sign == "+" else minus
            return {power: join(a.get(power, ZERO), b.get(power, ZERO)) for power in {*a, *b}}
        case Binary("*", left, right):
            found: dict[int, Node] = {}
            for i, a in _polynomial(left, index).items():
                for j, b in _polynomial(right, index).items():
                    found[i + j] = plus(found.get(i + j, ZERO), times(a, b))
            if max(found) > POWER:
                raise Unspelled
            return found
        case Binary("/", left, right) if index not in names(right):
            return {power: over_(factor, right) for power, factor in _polynomial(left, index).items()}
        case Binary("^", left, Number(value)) if value.denominator == 1 and 1 <= value <= POWER:
            whole = int(value)
            half = node.left if whole == 1 else Binary("*", left, Binary("^", left, number(whole - 1)))
            return _polynomial(half, index)
    raise Unspelled


def _power_sum(power: int, highest: Node, lowest: int) -> Node:
    """0^p or 1^p up to n^p by Faulhaber's formula, as a polynomial in n."""
    bernoulli = [Fraction(1)]
    for m in range(1, power + 1):
        bernoulli.append(-sum((comb(m + 1, k) * bernoulli[k] for k in range(m)), Fraction(0)) / (m + 1))
    if power >= 1:
        bernoulli[1] = Fraction(1, 2)
    total: Node = number(1 if power == 0 and lowest == 0 else 0)
    for j in range(power + 1):
        factor = comb(power + 1, j) * bernoulli[j] / (power + 1)
        exponent = power + 1 - j
        if factor:
            raised = highest if exponent == 1 else Binary("^", highest, number(exponent))
            total = plus(total, times(_fraction(factor), raised))
    return total


def _fraction(value: Fraction) -> Node:
    """A number as people write it: a quotient of whole numbers."""
    if value.denominator == 1:
        return number(value)
    return Binary("/", number(value.numerator), number(value.denominator))


@dataclass(frozen=True)
class _Differential:
    """Derivatives of expressions by one variable: a gradient by going back from the value to the variable."""

    speller: _Speller
    name: str

    def of(self, body: Node) -> Node:
        """df/dx: the shape of f, then the shape of x."""
        mine, axes = self.speller.dims.get(self.name), self.speller.shape(body)
        if mine is None:
            raise Unspelled
        if _bends(body, self.name) and not (mine and _stays_bent(body, self.name)):
            raise Unspelled  # at a kink only the reader knows on which side it is, and whether it is one
        if not axes:
            parts: list[Node] = []
            self._back(body, ONE, parts)
            found = reduce(plus, parts) if parts else (Call("zeros", mine) if mine else ZERO)
            sizes = self.speller.sizes
            return plus(found, times(ZERO, body)) if _partial(body, sizes) else found  # defined where the body is
        if len(axes) == len(mine) == 1:
            return self._jacobian(body)
        raise Unspelled

    def _rank(self, node: Node) -> int:
        return len(self.speller.shape(node))

    def _back(self, node: Node, slope: Node, parts: list[Node]) -> None:
        """Adds what the node gives to df/dx; `slope` is df/d(node), a number where all entries have the same."""
        if self.name not in names(node):
            return
        match node:
            case Name():
                mine = self.speller.dims[self.name]
                uniform = mine and not self._rank(slope)
                parts.append(times(slope, Call("ones", mine)) if uniform else slope)
            case Negative(operand):
                self._back(operand, Negative(slope), parts)
            case Binary("+" | "-" as sign, left, right):
                self._back(left, self._spread(slope, left, node), parts)
                self._back(right, self._spread(slope if sign == "+" else Negative(slope), right, node), parts)
            case Binary("*", left, right):
                self._back(left, self._spread(times(slope, right), left, node), parts)
                self._back(right, self._spread(times(slope, left), right, node), parts)
            case Binary("/", left, right):
                self._back(left, self._spread(over_(slope, right), left, node), parts)
                turned = Negative(over_(times(slope, left), Binary("^", right, TWO)))
                self._back(right, self._spread(turned, right, node), parts)
            case Binary("^", left, right):
                self._powered(node, left, right, slope, parts)
            case Binary("@", left, right):
                self._multiplied(left, right, slope, parts)
            case Transpose(operand):
                if self._rank(operand) != 2:
                    raise Unspelled
                self._back(operand, Transpose(slope) if self._rank(slope) else slope, parts)
            case Call("einsum", (Text(subscripts), *operands)):
                self._contracted(subscripts, [part for part in operands if isinstance(part, Node)], slope, parts)
            case Call(function, arguments):
                self._called(node, function, [part for part in arguments if isinstance(part, Node)], slope, parts)
            case _:
                raise Unspelled

    def _spread(self, slope: Node, part: Node, whole: Node) -> Node:
        """The slope of an operand that was broadcast to the whole: summed over what it was repeated along."""
        axes, wide = self.speller.shape(part), self.speller.shape(whole)
        if axes == wide:
            return slope
        if self.name not in names(part):
            return slope
        if axes:
            raise Unspelled
        if self._rank(slope):
            return call("sum", slope)
        return times(slope, reduce(times, wide, ONE))

    def _powered(self, node: Node, base: Node, exponent: Node, slope: Node, parts: list[Node]) -> None:
        if self.name in names(exponent):
            self._back(exponent, self._spread(times(times(slope, node), call("log", base)), exponent, node), parts)
        if self.name in names(base):
            if isinstance(exponent, Number):
                less = exponent.value - 1
                lower = ONE if less == 0 else base if less == 1 else Binary("^", base, number(less))
            else:
                lower = Binary("^", base, minus(exponent, ONE))
            if exponent != ZERO:
                self._back(base, self._spread(times(slope, times(exponent, lower)), base, node), parts)

    def _multiplied(self, left: Node, right: Node, slope: Node, parts: list[Node]) -> None:
        ranks = self._rank(left), self._rank(right)
        if ranks == (1, 1):
            self._back(left, times(slope, right), parts)
            self._back(right, times(slope, left), parts)
            return
        uniform = not self._rank(slope)
        if uniform:
            slope = times(slope, Call("ones", self.speller.shape(Binary("@", left, right))))
        if ranks == (2, 1):
            self._back(left, call("outer", slope, right), parts)
            self._back(right, product(Transpose(left), slope), parts)
        elif ranks == (1, 2):
            self._back(left, product(right, slope), parts)
            self._back(right, call("outer", left, slope), parts)
        elif ranks == (2, 2):
            self._back(left, product(slope, Transpose(right)), parts)
            self._back(right, product(Transpose(left), slope), parts)
        else:
            raise Unspelled

    def _contracted(self, subscripts: str, operands: list[Node], slope: Node, parts: list[Node]) -> None:
        inputs, arrow, output = subscripts.replace(" ", "").partition("->")
        groups = inputs.split(",")
        if not arrow or len(groups) != len(operands) or (output and not self._rank(slope)):
            raise Unspelled
        for place, (group, operand) in enumerate(zip(groups, operands, strict=True)):
            others = [*groups[:place], *groups[place + 1 :]]
            rest = [*operands[:place], *operands[place + 1 :]]
            if self.name not in names(operand):
                continue
            if len(set(group)) < len(group) or not set(group) <= {*output, *"".join(others)}:
                raise Unspelled
            if output:
                others, rest = [output, *others], [slope, *rest]
            if not rest:
                raise Unspelled
            turned: Node = Call("einsum", (Text(f"{','.join(others)}->{group}"), *rest))
            self._back(operand, turned if output else times(slope, turned), parts)

    def _called(self, node: Call, function: str, given: list[Node], slope: Node, parts: list[Node]) -> None:
        first = given[0]
        match function, given:
            case "dot", [left, right]:
                if self.speller.shape(left) != self.speller.shape(right):
                    raise Unspelled
                self._back(left, times(slope, right), parts)
                self._back(right, times(slope, left), parts)
            case "sum", _:
                self._back(first, slope, parts)
            case "mean", _:
                self._back(first, over_(slope, reduce(times, self.speller.shape(first), ONE)), parts)
            case "sqnorm", _:
                self._back(first, times(times(TWO, slope), first), parts)
            case "norm", _:
                self._back(first, over_(times(slope, first), node), parts)
            case "tr", _:
                self._back(first, times(slope, Call("I", self.speller.shape(first)[:1])), parts)
            case "outer", [left, right]:
                if not self._rank(slope):
                    self._back(left, times(slope, call("sum", right)), parts)
                    self._back(right, times(slope, call("sum", left)), parts)
                else:
                    self._back(left, product(slope, right), parts)
                    self._back(right, product(Transpose(slope), left), parts)
            case "softmax", _:
                if self._rank(first) != 1:
                    raise Unspelled
                if self._rank(slope):
                    self._back(first, times(node, minus(slope, call("dot", slope, node))), parts)
            case (("max" | "min"), [left, right]):
                turned = Binary("-", left, right) if function == "max" else Binary("-", right, left)
                back = Binary("-", right, left) if function == "max" else Binary("-", left, right)
                self._back(left, self._spread(times(slope, step(turned)), left, node), parts)
                self._back(right, self._spread(times(slope, step(back)), right, node), parts)
            case _:
                if function not in SLOPES:
                    raise Unspelled
                self._back(first, times(slope, SLOPES[function](first)), parts)

    def _jacobian(self, node: Node) -> Node:
        """The matrix of df_i/dx_j of a vector."""
        (own,) = self.speller.dims[self.name]
        if self.name not in names(node):
            return Call("zeros", (*self.speller.shape(node), own))
        match node:
            case Name():
                return Call("I", (own,))
            case Negative(operand):
                return Negative(self._jacobian(operand))
            case Binary("+" | "-" as sign, left, right) if self._rank(left) == self._rank(right) == 1:
                if self.name not in names(right):
                    return self._jacobian(left)
                inner = self._jacobian(right)
                if self.name not in names(left):
                    return inner if sign == "+" else Negative(inner)
                return Binary(sign, self._jacobian(left), inner)
            case Binary("*", left, right) if 0 in (self._rank(left), self._rank(right)):
                factor, vector = (left, right) if self._rank(left) == 0 else (right, left)
                moved = times(factor, self._jacobian(vector))
                if self.name not in names(factor):
                    return moved
                return plus(call("outer", vector, self.of(factor)), moved)
            case Binary("/", left, right) if self._rank(right) == 0 and self.name not in names(right):
                return over_(self._jacobian(left), right)
            case Binary("@", left, right) if self._rank(left) == 2 and self.name not in names(left):
                return product(left, self._jacobian(right))
            case Call(function, (operand,)) if function in SLOPES and isinstance(operand, Node):
                return _rows(SLOPES[function](operand), self._jacobian(operand))
            case Call("softmax", (operand,)) if isinstance(operand, Node):
                inner = self._jacobian(operand)
                identity = isinstance(inner, Call) and inner.function == "I"
                weighted = call("outer", node, node if identity else product(node, inner))
                return minus(_rows(node, inner), weighted)
        raise Unspelled


def bending(node: Node, name: str) -> tuple[Node, ...]:
    """What must not be 0 for this operation to have a derivative by the name: at 0 it has a kink, a jump or an edge."""
    if name not in names(node):
        return ()
    match node:
        case Call("max" | "min", (_, _, *_)):
            pairs = combinations(children(node), 2)
            return tuple(Binary("-", a, b) for a, b in pairs if name in names(a) | names(b))
        case Call("abs" | "relu" | "sign" | "norm" | "sqrt", (operand,)) if isinstance(operand, Node):
            return (operand,)
        case Call("max" | "min" | "floor" | "argmax", _) | Indexed("max" | "min", _, _, _, _):
            return (ZERO,)
        case Binary("^", _, Number(value)) if value.denominator == 1:
            return ()
        case Binary("^", base, _) if name in names(base):
            return (base,)
    return ()


def _bends(node: Node, name: str) -> bool:
    """Whether an operation that may have no derivative is taken of something that moves."""
    return bool(bending(node, name)) or any(_bends(child, name) for child in children(node))


def _stays_bent(node: Node, name: str) -> bool:
    """Whether f has no derivative wherever the one bent operation in it has none: nothing smooths it."""
    match node:
        case Call("abs" | "relu" | "norm", (operand,)) if isinstance(operand, Node):
            return _moves(operand, name)
        case Call("sum" | "mean" | "exp" | "log", (operand,)) if isinstance(operand, Node):
            return _stays_bent(operand, name)
        case Negative(operand):
            return _stays_bent(operand, name)
        case Binary("+" | "-", left, right):
            bent = [part for part in (left, right) if _bends(part, name)]
            return len(bent) == 1 and _stays_bent(bent[0], name)
        case Binary("*" | "/", left, right):
            factor, bent = (left, right) if isinstance(left, Number) else (right, left)
            return isinstance(factor, Number) and factor != ZERO and _stays_bent(bent, name)
    return False


def _moves(node: Node, name: str) -> bool:
    """Whether every entry moves with its entry of the variable: x itself, shifted or scaled by a number."""
    match node:
        case Name(mine):
            return mine == name
        case Negative(operand):
            return _moves(operand, name)
        case Binary("+" | "-", left, right):
            moving = [part for part in (left, right) if name in names(part)]
            return len(moving) == 1 and _moves(moving[0], name)
        case Binary("*" | "/", left, right):
            factor, rest = (left, right) if isinstance(left, Number) else (right, left)
            return isinstance(factor, Number) and factor != ZERO and _moves(rest, name)
    return False


def _partial(node: Node, sizes: frozenset[str]) -> bool:
    """Whether an operation may be undefined somewhere; roots and logarithms of sizes are not."""
    match node:
        case Call("log" | "sqrt", (operand,)) if isinstance(operand, Node) and not names(operand) <= sizes:
            return True
        case Binary("/", _, right) if not names(right) <= sizes and not _positive(right):
            return True
        case Binary("^", _, right) if not isinstance(right, Number) or right.value.denominator > 1 or right.value < 0:
            return True
    return any(_partial(child, sizes) for child in children(node))


def _positive(node: Node) -> bool:
    """Above 0 whatever its names are: sums of exponentials and positive numbers."""
    match node:
        case Number(value):
            return value > 0
        case Call("exp", _):
            return True
        case Binary("+", left, right):
            return _positive(left) and _positive(right)
        case Call("sum", (operand,)) if isinstance(operand, Node):
            return _positive(operand)
    return False


def _rows(factors: Node, matrix: Node) -> Node:
    """Every row of a matrix times its factor."""
    if isinstance(matrix, Call) and matrix.function == "I":
        return times(matrix, factors)  # of a diagonal matrix rows or columns
    return Call("einsum", (Text("i,ij->ij"), factors, matrix))


def product(left: Node, right: Node) -> Node:
    """left @ right, without identities."""
    if isinstance(right, Call) and right.function == "I":
        return left
    return Binary("@", left, right)


def step(node: Node) -> Node:
    """1 where the node is above 0, 0 below, undefined at 0."""
    return over_(call("relu", node), node)


SLOPES: dict[str, Callable[[Node], Node]] = {
    "exp": lambda a: call("exp", a),
    "log": lambda a: over_(ONE, a),
    "sqrt": lambda a: over_(ONE, times(TWO, call("sqrt", a))),
    "sin": lambda a: call("cos", a),
    "cos": lambda a: Negative(call("sin", a)),
    "abs": lambda a: over_(call("abs", a), a),
    "relu": step,
    "erf": lambda a: times(over_(TWO, call("sqrt", Constant("pi"))), call("exp", Negative(Binary("^", a, TWO)))),
}
