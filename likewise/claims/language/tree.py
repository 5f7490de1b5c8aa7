"""The tree of an expression: what the parser builds, the engines read, and every verdict prints back.

Nothing here computes. A node knows its parts and its text; the text parses to the same node again.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

Comparison = Literal["==", "!=", "<", "<=", ">", ">="]
NEGATED: dict[Comparison, Comparison] = {"==": "!=", "!=": "==", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}


@dataclass(frozen=True, slots=True)
class Number:
    """An exact number: 85.1 is 851/10."""

    value: Fraction

    def __str__(self) -> str:
        return fraction_text(self.value)


@dataclass(frozen=True, slots=True)
class Name:
    """A size, a variable, a cell of a source, `out`, or a parameter of a definition."""

    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Constant:
    """A number that is no fraction and has a name: pi."""

    name: Literal["pi"]

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Text:
    """The subscripts of einsum; the only string of the language."""

    text: str

    def __str__(self) -> str:
        return f'"{self.text}"'


@dataclass(frozen=True, slots=True)
class Call:
    """One of FUNCTIONS, or a definition of the claim before `inlined` has replaced it by its body."""

    function: str
    arguments: tuple["Node | Text", ...]

    def __str__(self) -> str:
        return f"{self.function}({', '.join(map(str, self.arguments))})"


@dataclass(frozen=True, slots=True)
class Negative:
    """The operand with its sign changed."""

    operand: "Node"

    def __str__(self) -> str:
        return f"-{inside(self.operand, PRECEDENCE['-x'])}"


@dataclass(frozen=True, slots=True)
class Binary:
    """`*` is elementwise, `@` the matrix product; scalars broadcast."""

    operator: Literal["+", "-", "*", "/", "@", "^"]
    left: "Node"
    right: "Node"

    def __str__(self) -> str:
        mine = PRECEDENCE[self.operator]
        if self.operator == "^":
            return f"{inside(self.left, mine + 1)}^{inside(self.right, mine)}"
        space = " " if self.operator in "+-@" else ""
        return f"{inside(self.left, mine)}{space}{self.operator}{space}{inside(self.right, mine + 1)}"


@dataclass(frozen=True, slots=True)
class Transpose:
    """x' in the claim."""

    operand: "Node"

    def __str__(self) -> str:
        return f"{inside(self.operand, PRECEDENCE['x'])}'"


@dataclass(frozen=True, slots=True)
class Index:
    """x[i, j], counted from 1."""

    operand: "Node"
    indices: tuple["Node", ...]

    def __str__(self) -> str:
        return f"{inside(self.operand, PRECEDENCE['x'])}[{', '.join(map(str, self.indices))}]"


@dataclass(frozen=True, slots=True)
class Join:
    """[a, b, ...]: scalars and vectors put one after the other into one vector."""

    parts: tuple["Node", ...]

    def __str__(self) -> str:
        return f"[{', '.join(map(str, self.parts))}]"


@dataclass(frozen=True, slots=True)
class Matrix:
    """[[a, b], [c, d]]: brackets written directly inside brackets are the rows of a matrix."""

    rows: tuple["Node", ...]

    def __str__(self) -> str:
        return f"[{', '.join(map(str, self.rows))}]"


@dataclass(frozen=True, slots=True)
class Moment:
    """E[...] or Var[...] over every random variable of the claim."""

    kind: Literal["E", "Var"]
    body: "Node"

    def __str__(self) -> str:
        return f"{self.kind}[{self.body}]"


@dataclass(frozen=True, slots=True)
class Chain:
    """a < b <= c: terms and the comparisons between them."""

    terms: tuple["Node", ...]
    comparisons: tuple[Comparison, ...]

    def __str__(self) -> str:
        rest = (f" {sign} {term}" for sign, term in zip(self.comparisons, self.terms[1:], strict=True))
        return str(self.terms[0]) + "".join(rest)


@dataclass(frozen=True, slots=True)
class Probability:
    """P[a < b]."""

    event: Chain

    def __str__(self) -> str:
        return f"P[{self.event}]"


@dataclass(frozen=True, slots=True)
class Indexed:
    """sum(i in 1..N, body): the function of the values of the body for every whole i; `index` is bound in the body."""

    function: Literal["sum", "prod", "mean", "max", "min"]
    index: str
    lowest: "Node"
    highest: "Node"
    body: "Node"

    def __str__(self) -> str:
        return f"{self.function}({self.index} in {self.lowest}..{self.highest}, {self.body})"


@dataclass(frozen=True, slots=True)
class Gradient:
    """The derivative of the body by its bound name, at a place; what grad(f, x) is once it is taken out of its names.

    Definitions make it where an expression is put in for what the derivative is taken by. `name` is none that a claim
    can contain, so that equations put in for x do not change what the body is differentiated by.
    """

    name: str
    body: "Node"
    place: "Node"

    def __str__(self) -> str:
        return f"grad({self.body}, {self.name} = {self.place})"


Node = (
    Number | Name | Constant | Call | Negative | Binary | Transpose | Index | Join | Matrix
    | Moment | Probability | Indexed | Gradient
)  # fmt: skip


FUNCTIONS = frozenset({
    "dot", "sqnorm", "norm", "sum", "mean", "max", "min", "abs", "tr", "vec", "outer", "pairs", "dim", "sqrt", "exp",
    "log", "sin", "cos", "relu", "softmax", "einsum", "I", "ones", "zeros", "choose",
    "log2", "tanh", "sigmoid", "erf", "normcdf", "sign", "floor", "ceil", "mod", "factorial",
    "prod", "argmax", "reshape", "transpose", "grad",
})  # fmt: skip
INDEXED = ("sum", "prod", "mean", "max", "min")  # may be taken over an index: sum(i in 1..N, ...)
CONSTANTS = ("pi",)
RESERVED = frozenset({"E", "Var", "P", "O", "Omega", "Theta", "pi"})  # never a variable, definition, parameter or cell
PRECEDENCE = {"+": 1, "-": 1, "*": 2, "/": 2, "@": 2, "-x": 3, "^": 4, "x": 5}


def precedence(node: Node) -> int:
    """How tightly the text of a node binds; names, calls and brackets bind most."""
    if isinstance(node, Binary):
        return PRECEDENCE[node.operator]
    if isinstance(node, Negative):
        return PRECEDENCE["-x"]
    if isinstance(node, Number) and "/" in str(node):
        return PRECEDENCE["/"]
    if isinstance(node, Number) and node.value < 0:
        return PRECEDENCE["-x"]
    return PRECEDENCE["x"]


def children(node: Node) -> tuple[Node, ...]:
    """The nodes directly below."""
    match node:
        case Call(_, arguments):
            return tuple(argument for argument in arguments if not isinstance(argument, Text))
        case Negative(operand) | Transpose(operand):
            return (operand,)
        case Binary(_, left, right):
            return (left, right)
        case Index(operand, indices):
            return (operand, *indices)
        case Join(parts) | Matrix(parts):
            return parts
        case Moment(_, body):
            return (body,)
        case Probability(event):
            return event.terms
        case Indexed(_, _, lowest, highest, body):
            return (lowest, highest, body)
        case Gradient(_, body, place):
            return (body, place)
    return ()


def names(node: Node) -> set[str]:
    """Every name that is free in the node, sizes and variables alike.

    >>> sorted(names(Indexed("sum", "i", Number(Fraction(1)), Name("N"), Index(Name("x"), (Name("i"),)))))
    ['N', 'x']
    """
    found, waiting = set(), [node]
    while waiting:
        current = waiting.pop()
        match current:
            case Name(name):
                found.add(name)
            case Indexed(_, index, lowest, highest, body):
                waiting += [lowest, highest]
                found |= names(body) - {index}
            case Gradient(bound, body, place):
                waiting.append(place)
                found |= names(body) - {bound}
            case _:
                waiting += children(current)
    return found


def fraction_text(value: Fraction) -> str:
    """An exact number as people write it: 851/10 is 85.1, 1/3 stays 1/3.

    >>> fraction_text(Fraction(851, 10)), fraction_text(Fraction(-1, 3)), fraction_text(Fraction(10**9))
    ('85.1', '-1/3', '1000000000')
    """
    rest, digits = value.denominator, 0
    while rest % 10 == 0 or rest % 5 == 0 or rest % 2 == 0:
        rest, digits = (rest // 10 if rest % 10 == 0 else rest // 5 if rest % 5 == 0 else rest // 2), digits + 1
    if value.denominator == 1 or rest != 1 or digits > 12:
        return str(value)
    text = f"{abs(value.numerator) * 10**digits // value.denominator:0{digits + 1}d}"
    return f"{'-' if value < 0 else ''}{text[:-digits]}.{text[-digits:]}".rstrip("0")


def inside(node: Node, least: int) -> str:
    """The text of a node as part of one that binds with `least`."""
    return f"({node})" if precedence(node) < least else str(node)
