"""Tokens into the tree of an expression: a Pratt parser, and definitions put in where they are used."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from likewise.claims.language.limits import DEPTH, NODES
from likewise.claims.language.tokens import Reader, Unbounded, Unparsed, number
from likewise.claims.language.tree import (
    CONSTANTS,
    FUNCTIONS,
    INDEXED,
    PRECEDENCE,
    Binary,
    Call,
    Chain,
    Comparison,
    Constant,
    Gradient,
    Index,
    Indexed,
    Join,
    Matrix,
    Moment,
    Name,
    Negative,
    Node,
    Number,
    Probability,
    Text,
    Transpose,
    names,
)

COMPARISONS: tuple[Comparison, ...] = ("==", "!=", "<", "<=", ">", ">=")
QUANTITIES = ("cost", "elementwise", "traffic", "params", "peak", "saved", "count")
ARITY = dict.fromkeys(FUNCTIONS, 1) | dict.fromkeys(["dot", "outer", "choose", "mod", "grad"], 2) | {"transpose": 3}
MANY = {"max", "min", "ones", "zeros", "einsum", "reshape"}
DEEP = f"deeper than {DEPTH} levels"
Part = TypeVar("Part")


def expression(reader: Reader, least: int = 1, depth: int = 0) -> Node:
    """An expression whose operators bind at least so tightly; a long sum is deep too, for it is a tree to the left."""
    if depth > DEPTH:
        raise Unbounded(DEEP)
    left = _prefix(reader, depth)
    while reader.next.kind == "sign":
        depth += 1
        operator = {"**": "^"}.get(reader.next.text, reader.next.text)
        strength = PRECEDENCE.get(operator, 0)  # 0 for a sign that is no operator
        if strength < least:
            break
        reader.take()
        if operator == "^":
            left = Binary("^", left, expression(reader, PRECEDENCE["-x"], depth + 1))
        else:
            left = Binary(operator, left, expression(reader, strength + 1, depth + 1))  # ty: ignore[invalid-argument-type]
    return left


def chain(reader: Reader, first: Node | None = None, depth: int = 0) -> Chain:
    """a < b <= c."""
    terms, signs = [expression(reader, depth=depth) if first is None else first], []
    while sign := comparison(reader):
        signs.append(sign)
        terms.append(expression(reader, depth=depth))
    if not signs:
        reader.refuse("a comparison")
    return Chain(tuple(terms), tuple(signs))


def comparison(reader: Reader) -> Comparison | None:
    """Take a comparison, if one is next."""
    found = next((sign for sign in COMPARISONS if reader.at(sign)), None)
    if found:
        reader.take()
    return found


def items(reader: Reader, item: Callable[[Reader], Part], closing: str) -> tuple[Part, ...]:
    """One or more, separated by commas, up to the closing bracket."""
    found = [item(reader)]
    while reader.skip(","):
        found.append(item(reader))
    reader.want(closing)
    return tuple(found)


def program_name(reader: Reader) -> str:
    """attention.softmax or, for a function of a file, nets/small.py:step."""
    name = reader.name()
    while reader.at(".", "/"):
        name += reader.take().text + reader.name()
    if name.endswith(".py") and reader.skip(":"):
        return f"{name}:{reader.name()}"
    if "/" in name or reader.at(":"):
        reader.refuse("a function of a file, as in net.py:step")
    return name


def _prefix(reader: Reader, depth: int) -> Node:
    if reader.skip("-"):
        return Negative(expression(reader, PRECEDENCE["-x"], depth + 1))
    if reader.skip("+"):
        return expression(reader, PRECEDENCE["-x"], depth + 1)
    node = _atom(reader, depth)
    while reader.at("'", "[", "!"):
        depth += 1
        if depth > DEPTH:
            raise Unbounded(DEEP)
        sign = reader.take().text
        if sign == "'":
            node = Transpose(node)
        elif sign == "!":
            node = Call("factorial", (node,))
        else:
            node = Index(node, items(reader, partial(expression, depth=depth + 1), "]"))
    return node


def _atom(reader: Reader, depth: int) -> Node:
    inner = partial(expression, depth=depth + 1)
    if reader.next.kind == "number":
        return Number(number(reader.take().text))
    if reader.skip("("):
        node = inner(reader)
        reader.want(")")
        return node
    if reader.skip("["):
        return _bracketed(items(reader, inner, "]"))
    if reader.next.kind != "name":
        reader.refuse("an expression")
    name = reader.take().text
    if name in ("E", "Var") and reader.skip("["):
        node = Moment("E" if name == "E" else "Var", inner(reader))
        reader.want("]")
        return node
    if name == "P" and reader.skip("["):
        node = Probability(chain(reader, depth=depth + 1))
        reader.want("]")
        return node
    if not reader.skip("("):
        return Constant("pi") if name in CONSTANTS else Name(name)
    if name in INDEXED and reader.next.kind == "name" and reader.after().text == "in":
        return _indexed(reader, name, depth)
    if name in QUANTITIES:
        program = program_name(reader)
        reader.want(")")
        return Call(name, (Name(program),))
    return _call(name, items(reader, lambda inner_reader: _argument(inner_reader, inner), ")"))


def _indexed(reader: Reader, function: str, depth: int) -> Node:
    """sum(i in 1..N, j in 1..i, x[i]*x[j]), after its opening bracket; a second index is a sum inside."""
    if depth > DEPTH:
        raise Unbounded(DEEP)
    index = reader.name()
    reader.want("in")
    lowest = expression(reader, depth=depth + 1)
    reader.want("..")
    highest = expression(reader, depth=depth + 1)
    reader.want(",")
    if reader.next.kind == "name" and reader.after().text == "in":
        body = _indexed(reader, function, depth + 1)
    else:
        body = expression(reader, depth=depth + 1)
        reader.want(")")
    return Indexed(function, index, lowest, highest, body)  # ty: ignore[invalid-argument-type]


def _bracketed(parts: tuple[Node, ...]) -> Node:
    """[a, b] is a vector; brackets written directly inside brackets are the rows of a matrix."""
    nested = [isinstance(part, Join | Matrix) for part in parts]
    if any(nested) and not all(nested):
        raise Unparsed("brackets inside brackets are the rows of a matrix: all parts, or none")
    return Matrix(parts) if all(nested) else Join(parts)


def _argument(reader: Reader, inner: Callable[[Reader], Node]) -> Node | Text:
    return Text(reader.take().text.strip('"')) if reader.next.kind == "text" else inner(reader)


def _call(name: str, arguments: tuple[Node | Text, ...]) -> Call:
    """A call of one of FUNCTIONS has the right number of arguments; a definition's is counted when it is put in."""
    texts = [place for place, argument in enumerate(arguments) if isinstance(argument, Text)]
    if texts != ([0] if name == "einsum" else []):
        raise Unparsed(f"{name}: a string stands first in einsum and nowhere else", name=name)
    if name in FUNCTIONS and name not in MANY and len(arguments) != ARITY[name]:
        takes = f"{ARITY[name]} argument{'s' * (ARITY[name] > 1)}"
        raise Unparsed(f"{name} takes {takes}, got {len(arguments)}", name=name)
    if name == "reshape" and len(arguments) < 2:
        raise Unparsed("reshape takes an array and its new dims", name=name)
    return Call(name, arguments)


class Definitions:
    """What a claim defines, in order; a body may use only earlier definitions, so none is recursive.

    A body is kept as it was written and read in its own environment: its parameters, and outside of them the names of
    the claim. What a caller calls its own parameters never reaches it.
    """

    def __init__(self) -> None:
        self._bodies: dict[str, tuple[tuple[str, ...], Node]] = {}

    def __contains__(self, name: str) -> bool:
        return name in self._bodies

    def add(self, name: str, parameters: tuple[str, ...], body: Node) -> None:
        """A definition as it was written."""
        self._bodies[name] = (parameters, body)

    def inlined(self, node: Node, parameters: tuple[str, ...] = ()) -> Node:
        """The node with every definition replaced by its body; parameters hide definitions of their name."""
        return self._replaced(node, {name: _Measured(Name(name)) for name in parameters}).node

    def _replaced(self, node: Node, known: Mapping[str, "_Measured"]) -> "_Measured":
        """The new node and how large it is, which is bounded before it is built."""
        if isinstance(node, Name) and node.name in known:
            return known[node.name]
        name = node.name if isinstance(node, Name) else node.function if isinstance(node, Call) else ""
        if name in self:
            given = node.arguments if isinstance(node, Call) else ()
            parameters, body = self._bodies[name]
            if len(parameters) != len(given):
                raise Unparsed(f"{name} takes {len(parameters)} arguments, got {len(given)}", name=name)
            arguments = [self._replaced(part, known) for part in given if not isinstance(part, Text)]
            return self._replaced(body, dict(zip(parameters, arguments, strict=True)))
        if isinstance(node, Call) and node.function in QUANTITIES:
            return _Measured(node, 2, 2)
        if isinstance(node, Call) and node.function not in FUNCTIONS:
            there = {*FUNCTIONS, *QUANTITIES, *self._bodies}
            raise Unparsed(f"unknown name {node.function} (nothing assumed)", name=node.function, known=there)
        if isinstance(node, Indexed):
            self._refuse_captured(node, known)
        if isinstance(node, Call) and node.function == "grad":
            bound = self._gradient(node, known)
            if bound is not None:
                return bound
        whole = _Measured(node)

        def part(child: Node) -> Node:
            new = self._replaced(child, known)
            whole.add(new)
            return new.node

        whole.node = rebuilt(node, part)
        return whole

    def _refuse_captured(self, node: Indexed, known: Mapping[str, "_Measured"]) -> None:
        """What is put into the body of a sum must not contain its index."""
        put_in = [known[name].node for name in names(node.body) if name in known]
        if node.index in known or node.index in self or any(node.index in names(each) for each in put_in):
            raise Unparsed(f"the index {node.index} has two meanings", name=node.index)

    def _gradient(self, node: Call, known: Mapping[str, "_Measured"]) -> "_Measured | None":
        """grad(f, p) by a parameter p, for which an expression is put in, or a variable that f contains otherwise.

        It is the derivative by p, which nothing else is called, at the place that is put in. None if the variable that
        is put in for p can be what the derivative is taken by.
        """
        body, by = node.arguments
        parameter = by.operand if isinstance(by, Index) else by
        if not isinstance(parameter, Name) or parameter.name not in known or isinstance(body, Text):
            return None
        place = known[parameter.name]
        self._replaced(body, known)  # refuses the index of a sum that would have two meanings
        taken = {name for part in known.values() for name in names(part.node)}
        bound = parameter.name + "'"
        while bound in taken:
            bound += "'"
        moved = self._replaced(body, {**known, parameter.name: _Measured(Name(bound))})
        if isinstance(place.node, Name) and place.node.name not in names(moved.node):
            return None
        if isinstance(by, Index):
            raise Unparsed(f"grad by an entry of {parameter}: what is put in for it is no variable of its own")
        whole = _Measured(Gradient(bound, moved.node, place.node))
        whole.add(moved)
        whole.add(place)
        return whole


@dataclass
class _Measured:
    node: Node
    count: int = 1
    depth: int = 1

    def add(self, part: "_Measured") -> None:
        self.count += part.count
        self.depth = max(self.depth, part.depth + 1)
        if self.count > NODES:
            raise Unbounded(f"more than {NODES} parts when definitions are put in")
        if self.depth > DEPTH:
            raise Unbounded(DEEP)


def rebuilt(node: Node, part: Callable[[Node], Node]) -> Node:
    """The same kind of node over other parts."""
    match node:
        case Call(function, arguments):
            return Call(function, tuple(each if isinstance(each, Text) else part(each) for each in arguments))
        case Negative(operand):
            return Negative(part(operand))
        case Transpose(operand):
            return Transpose(part(operand))
        case Binary(operator, left, right):
            return Binary(operator, part(left), part(right))
        case Index(operand, indices):
            return Index(part(operand), tuple(map(part, indices)))
        case Join(parts):
            flat = ((each.parts if isinstance(each, Join) else (each,)) for each in map(part, parts))
            return Join(tuple(inner for each in flat for inner in each))  # a definition's vector is joined, not stacked
        case Matrix(rows):
            return Matrix(tuple(map(part, rows)))
        case Moment(kind, body):
            return Moment(kind, part(body))
        case Probability(event):
            return Probability(Chain(tuple(map(part, event.terms)), event.comparisons))
        case Indexed(function, index, lowest, highest, body):
            return Indexed(function, index, part(lowest), part(highest), part(body))
        case Gradient(name, body, place):
            return Gradient(name, part(body), part(place))
    return node
