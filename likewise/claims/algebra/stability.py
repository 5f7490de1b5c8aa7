"""When one size decides all: the small-D argument.

If an expression is built from operations that commute with permuting coordinates and with deleting coordinates that
are 0, every monomial of it touches at most as many indices as its degree m; put the others to 0. So two polynomials
that agree at D = m agree at every D. The same holds for the polynomials inside exponentials, roots and denominators.
A size inside a formula (sqrt(D)) is kept as a symbol, so that no coefficient depends on the D that was chosen.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from math import ceil

from likewise.claims.algebra.questions import Question
from likewise.claims.language.limits import DEGREE
from likewise.claims.language.tree import (
    Binary,
    Call,
    Chain,
    Index,
    Join,
    Name,
    Negative,
    Node,
    Number,
    Text,
    Transpose,
    children,
    names,
)
from likewise.claims.verdict import Undecided

Axis = str | tuple  # a size, #3 for a fixed length, or how the axis was put together: ("join", ...), ("pairs", axis)
Degrees = Mapping[str, int]


@dataclass(frozen=True)
class Stable:
    """Axes, and the degree in the variables of each size, of numerator and denominator."""

    axes: tuple[Axis, ...] = ()
    over: Degrees = field(default_factory=dict)
    under: Degrees = field(default_factory=dict)
    zero: bool = False  # the number 0, which may be added to anything


def _plus(left: Degrees, right: Degrees) -> Degrees:
    return {name: left.get(name, 0) + right.get(name, 0) for name in {*left, *right}}


def _most(*degrees: Degrees) -> Degrees:
    return {name: max(each.get(name, 0) for each in degrees) for each in degrees for name in each}


def _proper(axes: tuple[Axis, ...]) -> tuple[Axis, ...]:
    """The axes, none of a matrix with one entry."""
    return () if set(axes) == {"#1"} else axes


def _unstable(node: Node) -> Undecided:
    return Undecided(f"{node} does not commute with leaving out coordinates that are 0")


def lengths(question: Question) -> dict[str, int]:
    r"""A length of every free size at which the truth of the question's equations decides every size.

    >>> from likewise.claims.language.parser import parse
    >>> from likewise.claims.algebra.questions import question
    >>> lengths(question(parse("given: q, k in R^D\nassert: dot(q, k)^2 == dot(outer(q, q)@k, k)")))
    {'D': 4}
    """
    reader = _Reader(question)
    highest: Degrees = {}
    for left, right in zip(question.chain.terms, question.chain.terms[1:], strict=False):
        highest = _most(highest, reader.sum(reader.read(left), reader.read(right), question.chain).over)
    highest = _most(highest, reader.inner)
    if max(highest.values(), default=0) > DEGREE:
        raise Undecided(f"degree above {DEGREE}")
    return {name: max(highest.get(name, 0), 1) for name in question.sizes}


class _Reader:
    """Reads an expression, and remembers the degrees inside exponentials and roots."""

    def __init__(self, question: Question) -> None:
        self.inner: Degrees = {}
        self.known = {name: Stable() for name in question.sizes}
        for each in question.variables:
            axes = tuple(_axis(dim) for dim in question.dims(each))
            sizes = [axis for axis in axes if isinstance(axis, str) and not axis.startswith("#")]
            self.known[each.name] = Stable(axes, {name: sizes.count(name) for name in sizes})

    def read(self, node: Node) -> Stable:
        match node:
            case Number(value):
                return Stable(zero=value == 0)
            case Name(name) if name in self.known:
                return self.known[name]
            case Negative(operand):
                return self.read(operand)
            case Transpose(operand):
                inner = self.read(operand)
                return Stable(inner.axes[::-1], inner.over, inner.under)
            case Binary("+" | "-", left, right):
                return self.sum(self.read(left), self.read(right), node)
            case Binary("*", left, right):
                return self.product(self.read(left), self.read(right), node)
            case Binary("/", left, right):
                return self.quotient(self.read(left), self.read(right), node)
            case Binary("@", left, right):
                return self.matmul(self.read(left), self.read(right), node)
            case Binary("^", left, Number(value)):
                return self.power(self.read(left), value, node)
            case Binary("^", left, Negative(Number(value))):
                return self.power(self.read(left), -value, node)
            case Index(operand, indices):
                inner = self.read(operand)
                fixed = all(str(axis).startswith("#") for axis in inner.axes[: len(indices)])
                if fixed and not any(map(names, indices)):
                    return Stable(inner.axes[len(indices) :], inner.over, inner.under)
            case Join(parts):
                read = [self.read(part) for part in parts]
                if all(len(part.axes) <= 1 for part in read):
                    under = self.common(read)
                    axis = ("join", tuple(part.axes for part in read))
                    return Stable((axis,), _plus(_most(*(part.over for part in read)), under), under)
            case Call(function, arguments):
                return self.call(node, function, arguments)
        raise _unstable(node)

    def common(self, parts: list[Stable]) -> Degrees:
        """The degree of a common denominator."""
        total: Degrees = {}
        for part in parts:
            total = _plus(total, part.under)
        return total

    def sum(self, left: Stable, right: Stable, node: "Node | Chain") -> Stable:
        if left.zero or right.zero:
            return left if right.zero else right
        if _proper(left.axes) != _proper(right.axes):
            raise Undecided(f"{node} adds what has different axes")
        over = _most(_plus(left.over, right.under), _plus(right.over, left.under))
        return Stable(left.axes, over, _plus(left.under, right.under))

    def product(self, left: Stable, right: Stable, node: Node) -> Stable:
        if _proper(left.axes) and _proper(right.axes) and left.axes != right.axes:
            raise _unstable(node)
        axes = left.axes if _proper(left.axes) else right.axes
        return Stable(axes, _plus(left.over, right.over), _plus(left.under, right.under))

    def quotient(self, left: Stable, right: Stable, node: Node) -> Stable:
        if right.axes:
            raise _unstable(node)
        return Stable(left.axes, _plus(left.over, right.under), _plus(left.under, right.over))

    def matmul(self, left: Stable, right: Stable, node: Node) -> Stable:
        if not left.axes or not right.axes or left.axes[-1] != right.axes[0]:
            raise _unstable(node)
        axes = left.axes[:-1] + right.axes[1:]
        return Stable(axes, _plus(left.over, right.over), _plus(left.under, right.under))

    def power(self, base: Stable, exponent: Fraction, node: Node) -> Stable:
        if base.axes and (exponent.denominator > 1 or exponent < 1):
            raise _unstable(node)
        times = ceil(abs(exponent))
        over, under = ({name: n * times for name, n in part.items()} for part in (base.over, base.under))
        if exponent.denominator > 1:
            self.inner = _most(self.inner, _plus(base.over, base.under))
        return Stable(base.axes, under, over) if exponent < 0 else Stable(base.axes, over, under)

    def call(self, node: Node, function: str, arguments: "tuple[Node | Text, ...]") -> Stable:
        if function == "zeros":
            return Stable(tuple(_axis(part) for part in arguments if not isinstance(part, Text)))
        given = [self.read(part) for part in arguments if not isinstance(part, Text)]
        over, under = given[0].over, given[0].under
        both = (_plus(over, given[-1].over), _plus(under, given[-1].under))
        axes = [each.axes for each in given]
        match function, axes:
            case "dot", [left, right] if left == right and len(left) <= 2:
                return Stable((), *both)
            case "outer", [[left], [right]]:
                return Stable((left, right), *both)
            case "sqnorm" | "sum" | "tr", [_] if function != "tr" or len(set(axes[0])) == 1:
                return Stable((), *(both if function == "sqnorm" else (over, under)))
            case "pairs", [[axis]]:
                return Stable((("pairs", axis),), *both)
            case "vec", [inner]:
                return Stable((("vec", inner),), over, under)
            case "einsum", _ if isinstance(arguments[0], Text):
                return _einsum(arguments[0].text, given, node)
            case "choose", [[], []] if isinstance(arguments[1], Number):
                return self.power(given[0], arguments[1].value, node)
            case "norm", [_]:
                self.inner = _most(self.inner, *map(_plus, both, both[::-1]))
                return Stable((), *both)
        if function in ("exp", "log") and any(map(_of_exponentials, arguments)):
            raise _unstable(node)  # exp(log p) is p, whose degree was left inside
        if any(axes) or function not in ("exp", "log", "sin", "cos", "sqrt", "abs", "relu", "max", "min"):
            raise _unstable(node)
        self.inner = _most(self.inner, *(_plus(each.over, each.under) for each in given))
        if function in ("exp", "log", "sin", "cos"):
            return Stable()
        return Stable((), _plus(_most(*(each.over for each in given)), self.common(given)), self.common(given))


def _of_exponentials(node: "Node | Text") -> bool:
    """Whether an exponential or a logarithm occurs."""
    if isinstance(node, Text):
        return False
    mine = isinstance(node, Call) and node.function in ("exp", "log")
    return mine or any(map(_of_exponentials, children(node)))


def _axis(dim: Node) -> Axis:
    if isinstance(dim, Name):
        return dim.name
    if isinstance(dim, Number):
        return f"#{dim.value}"
    raise Undecided(f"an axis of length {dim}")


def _einsum(subscripts: str, given: list[Stable], node: Node) -> Stable:
    inputs, _, output = subscripts.replace(" ", "").partition("->")
    axes: dict[str, Axis] = {}
    over: Degrees = {}
    under: Degrees = {}
    for group, each in zip(inputs.split(","), given, strict=False):
        if len(group) != len(each.axes):
            raise _unstable(node)
        for letter, axis in zip(group, each.axes, strict=True):
            if axes.setdefault(letter, axis) != axis:
                raise _unstable(node)
        over, under = _plus(over, each.over), _plus(under, each.under)
    if not set(output) <= set(axes):
        raise _unstable(node)
    return Stable(tuple(axes[letter] for letter in output), over, under)
