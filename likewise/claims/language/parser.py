"""The text of a claim into a Claim: one line, one thing; nothing is guessed.

The grammar, with an example of every relation, is in docs/claims.md.
"""

import math
import operator
import re
import textwrap
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

from likewise.claims.language.claim import (
    Bernoulli,
    Between,
    Bounded,
    Cell,
    Claim,
    Compares,
    Counts,
    Definition,
    Domain,
    Exponential,
    HasShape,
    Integers,
    Law,
    Normal,
    OneOf,
    Rademacher,
    Reals,
    Relation,
    Runs,
    Size,
    Source,
    Tolerance,
    Uniform,
    Variable,
)
from likewise.claims.language.expressions import (
    QUANTITIES,
    Definitions,
    chain,
    comparison,
    expression,
    items,
    program_name,
)
from likewise.claims.language.limits import SOURCE
from likewise.claims.language.tokens import Line, Reader, Unbounded, Unparsed, decimals, number, tokens
from likewise.claims.language.tree import (
    CONSTANTS,
    FUNCTIONS,
    PRECEDENCE,
    RESERVED,
    Binary,
    Call,
    Chain,
    Constant,
    Gradient,
    Index,
    Indexed,
    Moment,
    Name,
    Negative,
    Node,
    Number,
    Probability,
    children,
    names,
)

FIELD = re.compile(r"([A-Za-z_]+)\s*:\s*(.*)", re.DOTALL)
COMMENT = re.compile(r"(?:^|\s)#.*")
CHOICES = {
    "expect": ("holds", "refuted", "inconclusive", "malformed"),
    "unit": ("mac", "flop"),
    "layout": ("rows", "columns"),
    "kernel": ("unfused", "fused"),
    "memory": ("materialised", "streamed"),
}
FREE_TEXT = ("who", "noticed", "note", "revises")
LONGEST_BUDGET = 600.0
ORDERS = ("O", "Omega", "Theta")
LAWS = ("N", "U", "Rademacher", "Exp", "Bernoulli")
ONE_PARAMETER = {"Rademacher": Rademacher, "Exp": Exponential, "Bernoulli": Bernoulli}
FLOW = re.compile(r'\s*([{}:,]|"[^"]*"|[^{}:,"]+)')


def parse(text: str, *, id: str = "claim") -> Claim:
    r"""The claim a text states, or Unparsed with the place and the reason.

    >>> print(parse("given: q, k in R^D\nassert: dot(q,k)==dot(k,q)").statement)
    given: q in R^D; k in R^D | assert: dot(q, k) == dot(k, q)
    """
    if len(text) > SOURCE:
        raise Unbounded(f"longer than {SOURCE} characters")
    draft, read = _Draft(id), []
    try:
        for line in lines(text):
            read = [line]
            draft.read(line.text)
        read = sorted(lines(text), key=_rank)
        return draft.claim()
    except Unparsed as reason:
        reason.place = _place(reason, read)
        raise


def lines(text: str) -> Iterator[Line]:
    """Logical lines: comments are dropped, an indented line goes on with the one before."""
    waiting: Line | None = None
    written = text.splitlines()
    for place, line in enumerate(textwrap.dedent(text).splitlines(), start=1):
        line = COMMENT.sub("", line).rstrip()
        if not line:
            continue
        column = len(written[place - 1]) - len(written[place - 1].lstrip()) + 1
        if line[0].isspace() and waiting:
            pieces = (*waiting.pieces, (len(waiting.text) + 1, place, column))
            waiting = Line(f"{waiting.text} {line.strip()}", pieces)
            continue
        if waiting:
            yield waiting
        waiting = Line(line.strip(), ((0, place, column),))
    if waiting:
        yield waiting


def _rank(line: Line) -> int:
    """Where a name is looked for first: where it is declared; last in definitions, where it may be a parameter."""
    ranks = [rank for rank, name in enumerate(("given", "sizes", "assume", "assert")) if line.text.startswith(name)]
    return ranks[0] if ranks else 4


def _place(error: Unparsed, read: list[Line]) -> tuple[int, int]:
    """Where the error is, in one of the lines that were read last."""
    if error.column:
        return read[0].place(error.column)
    for line in read:
        with suppress(Unparsed):
            found = FIELD.match(line.text)
            if found and found.group(1) in FREE_TEXT:
                continue
            for token in tokens(line.text):
                if token.kind == "name" and token.text == error.name:
                    return line.place(token.column)
    return read[0].place(1) if read else (1, 1)


@dataclass
class _Draft:
    """A claim that is being read."""

    id: str
    variables: list[Variable] = field(default_factory=list)
    sizes: list[Size] = field(default_factory=list)
    assumptions: list[Chain] = field(default_factory=list)
    written: list[Definition] = field(default_factory=list)
    definitions: Definitions = field(default_factory=Definitions)
    relation: Relation | None = None
    fields: dict[str, Any] = field(default_factory=dict)

    def read(self, line: str) -> None:
        """One logical line."""
        found = FIELD.match(line)
        if not found:
            self._define(Reader(line))
            return
        name, value, start = found.group(1), found.group(2), found.start(2)
        if name in self.fields or (name == "assert" and self.relation is not None):
            raise Unparsed(f"{name} is given twice")
        if name in CHOICES:
            if value not in CHOICES[name]:
                reason = f"{name} is one of {', '.join(CHOICES[name])}; got {value!r}"
                raise Unparsed(reason, column=start + 1, name=value, known=CHOICES[name])
            self.fields[name] = value
        elif name in FREE_TEXT:
            self.fields[name] = value
        elif name == "source":
            self.fields[name] = _source(value)
        else:
            self._read_tokens(name, line, start)

    def _read_tokens(self, name: str, line: str, start: int) -> None:
        if name not in FIELDS:
            raise Unparsed(f"unknown field {name!r}", column=1, name=name, known=FIELDS)
        reader = Reader(line, start)
        if name == "given":
            self.variables += [variable for group in _separated(reader, ";", _variables) for variable in group]
        elif name == "assume":
            self.assumptions += _separated(reader, ";", chain)
        elif name == "sizes":
            self.sizes += _separated(reader, ",", _size)
        elif name == "assert":
            self.relation = _relation(reader, self._declared())
        elif name == "of":
            self.fields["program"] = program_name(reader)
        else:
            column = reader.next.column
            try:
                self.fields[name] = NUMBERS[name](reader)
            except Unparsed as reason:
                reason.column = reason.column or column
                raise
        reader.end()

    def _define(self, reader: Reader) -> None:
        name = reader.name()
        parameters = items(reader, lambda inner: inner.name(), ")") if reader.skip("(") else ()
        _refuse_reserved(name, *parameters)
        reader.want("=")
        body = expression(reader)
        reader.end()
        if name in self.definitions or name in FUNCTIONS or len(set(parameters)) < len(parameters):
            raise Unparsed(f"{name} is defined already", name=name)
        whole = self.definitions.inlined(body, parameters)
        for each in (*self.written, Definition(name, parameters, whole)):
            if name in names(each.body) - {*each.parameters}:
                raise Unparsed(f"{name} is used before it is defined", name=name)
        self.written.append(Definition(name, parameters, body))
        self.definitions.add(name, parameters, body)

    def _declared(self) -> set[str]:
        return {each.name for each in [*self.variables, *self.sizes, *self.written]}

    def claim(self) -> Claim:
        """The whole, after every name was found in its place."""
        if self.relation is None:
            raise Unparsed("there is no assert:")
        inlined = self.definitions.inlined
        found = Claim(
            id=self.id,
            relation=over(self.relation, inlined),
            variables=tuple(replace(each, kind=over(each.kind, inlined)) for each in self.variables),
            sizes=tuple(self.sizes),
            assumptions=tuple(over(each, inlined) for each in self.assumptions),
            definitions=tuple(self.written),
            written=str(self.relation),
            raw=(self.relation, *self.assumptions, *(each.kind for each in self.variables)) if self.written else (),
            given_fields=frozenset(self.fields),
            **self.fields,
        )
        found = replace(found, sizes=found.sizes + _implied_sizes(found))
        _require_scope(found, {each.name for each in self.written})
        return found


def over(part: Any, change: Callable[[Node], Node]) -> Any:
    """A relation, chain, domain or law with every expression in it changed."""
    match part:
        case Chain(terms, signs):
            return Chain(tuple(map(change, terms)), signs)
        case Compares(inner, within):
            return Compares(over(inner, change), within)
        case Bounded(quantity, order, bound):
            return Bounded(quantity if isinstance(quantity, str) else change(quantity), order, change(bound))
        case Counts(quantity, sign, right, within):
            return Counts(quantity, sign, change(right), within)
        case HasShape(body, dims):
            return HasShape(change(body), tuple(map(change, dims)))
        case Runs(_, arguments, _, _, right, _):
            right = None if right is None else change(right)
            return replace(part, arguments=tuple(map(change, arguments)), right=right)
        case Reals(dims):
            return Reals(tuple(map(change, dims)))
        case Normal(mean, spread, is_std):
            return Normal(change(mean), change(spread), is_std)
        case Uniform(lowest, highest):
            return Uniform(change(lowest), change(highest))
        case Rademacher(dim):
            return Rademacher(change(dim))
        case Exponential(rate):
            return Exponential(change(rate))
        case Bernoulli(chance):
            return Bernoulli(change(chance))
    return part


def nodes(part: Any) -> list[Node]:
    """The expressions directly in a relation, chain, domain or law."""
    found: list[Node] = []

    def keep(node: Node) -> Node:
        found.append(node)
        return node

    over(part, keep)
    return found


def _separated(reader: Reader, sign: str, item: Callable[[Reader], Any]) -> list[Any]:
    found = [item(reader)]
    while reader.skip(sign):
        found.append(item(reader))
    return found


def _pair(reader: Reader) -> tuple[Fraction, Fraction]:
    reader.want("[")
    lowest = _signed(reader)
    reader.want(",")
    highest = _signed(reader)
    reader.want("]")
    if lowest >= highest:
        raise Unparsed("bounded: the first number must be below the second")
    return lowest, highest


def _seconds(reader: Reader) -> float:
    value = _signed(reader)
    reader.skip("s")
    if not 0 < value <= LONGEST_BUDGET:
        raise Unparsed(f"a budget is above 0 and at most {LONGEST_BUDGET:.0f} s")
    return float(value)


def _level(reader: Reader) -> Fraction:
    value = _signed(reader)
    if not 0 < value < 1:
        raise Unparsed("alpha is between 0 and 1")
    return value


def _whole(reader: Reader) -> int:
    value = _signed(reader)
    if value.denominator > 1 or value < 0:
        raise Unparsed("expected a whole number")
    return int(value)


def _some(reader: Reader) -> int:
    value = _whole(reader)
    if not 1 <= value <= 1000:
        raise Unparsed("expected a whole number from 1 to 1000")
    return value


NUMBERS: dict[str, Callable[[Reader], Any]] = {
    "alpha": _level,
    "budget": _seconds,
    "points": _some,
    "seed": _whole,
    "row": _whole,
    "bounded": _pair,
}
FIELDS = {"given", "assume", "sizes", "assert", "of", "source", *CHOICES, *FREE_TEXT, *NUMBERS}


def _variables(reader: Reader) -> list[Variable]:
    """`q, k in R^D`, `w ~ N(0, I(D))` or `x[b, d], W[h, q, d]`."""
    if reader.after().text == "[":
        found = [_tensor(reader)]
        while reader.skip(","):
            found.append(_tensor(reader))
        return found
    declared = [reader.name()]
    while reader.skip(","):
        declared.append(reader.name())
    kind = _law(reader) if reader.skip("~") else _domain(reader)
    layout = "row" if reader.skip("row") else "col" if reader.skip("col") else None
    return [Variable(name, kind, layout) for name in declared]


def _size(reader: Reader) -> Size:
    """`N`, or `d = h*k`."""
    name = reader.name()
    return Size(name, expression(reader) if reader.skip("=") else None)


def _relation(reader: Reader, declared: set[str]) -> Relation:
    """What is asserted; a quantity's name that the claim declares itself is no quantity."""
    if reader.at("run") and reader.after().text == "(":
        return _run(reader)
    quantity = next((name for name in QUANTITIES if reader.at(name) and name not in declared), None)
    if quantity and (reader.after().text == "in" or reader.after().text in ("==", "!=", "<", "<=", ">", ">=")):
        reader.take()
        sign = comparison(reader)
        if sign is None:
            return _bounded(reader, quantity)
        right, within = expression(reader), _tolerance(reader)
        if within is not None and sign != "==":
            raise Unparsed("within belongs to one ==")
        return Counts(quantity, sign, right, within)
    body = expression(reader)
    if reader.at("in"):
        return _bounded(reader, body)
    if reader.skip("has"):
        reader.want("shape")
        reader.want("[")
        return HasShape(body, items(reader, expression, "]"))
    links, within = chain(reader, body), _tolerance(reader)
    if within is not None and links.comparisons != ("==",):
        raise Unparsed("within belongs to one ==")
    return Compares(links, within)


def _tolerance(reader: Reader) -> Tolerance | None:
    """`within 0.01`, `within 1%`, or nothing."""
    if not reader.skip("within"):
        return None
    value = _signed(reader)
    if value < 0:
        raise Unparsed("a tolerance below zero")
    return Tolerance(value / 100, True) if reader.skip("%") else Tolerance(value, False)


def _signed(reader: Reader) -> Fraction:
    """A number or a fraction of two, with its sign."""
    sign = -1 if reader.skip("-") else 1
    if reader.next.kind != "number":
        reader.refuse("a number")
    value = sign * number(reader.take().text)
    if not reader.skip("/"):
        return value
    if reader.next.kind != "number" or not number(reader.next.text):
        reader.refuse("a number that is not 0")
    return value / number(reader.take().text)


def _source(text: str) -> Source:
    """`{title: FaceNet, place: Table 6, cells: {a: 85.1, b: 76.3}}`: a flow map of text and numbers, no more."""
    parts = FLOW.findall(text)
    if "".join(parts).replace(" ", "") != text.replace(" ", ""):
        raise Unparsed("a source is {title: ..., place: ..., cells: {name: number, ...}}")
    content = _flow(parts)
    cells = content.pop("cells", {})
    title, place = content.pop("title", ""), content.pop("place", "")
    if parts or content or not (isinstance(cells, dict) and isinstance(title, str) and isinstance(place, str)):
        raise Unparsed("a source has title, place and cells, and nothing else")
    return Source(title, place, tuple((name, _cell(name, value)) for name, value in cells.items()))


def _flow(parts: list[str]) -> dict[str, "str | dict"]:
    """The entries of one map; takes them off the front of the parts."""
    found: dict[str, str | dict] = {}
    _take(parts, "{")
    while not found or parts[:1] == [","]:
        if found:
            parts.pop(0)
        name = parts.pop(0).strip() if parts else ""
        _take(parts, ":")
        if not name.isidentifier() or name in found or len(found) > 50:
            raise Unparsed(f"a source names each entry once; got {name!r}")
        nested = parts[:1] == ["{"]
        found[name] = _flow(parts) if nested else (parts.pop(0) if parts else "").strip().strip('"')
    _take(parts, "}")
    return found


def _take(parts: list[str], sign: str) -> None:
    if parts[:1] != [sign]:
        raise Unparsed(f"a source needs {sign!r} here; got {parts[0] if parts else 'its end'!r}")
    parts.pop(0)


def _cell(name: str, text: "str | dict") -> Cell:
    if not isinstance(text, str) or not re.fullmatch(r"-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?", text):
        raise Unparsed(f"the cell {name} is no number: {text}")
    value = number(text.lstrip("-"))
    return Cell(-value if text.startswith("-") else value, decimals(text.lstrip("-")))


def _tensor(reader: Reader) -> Variable:
    name = reader.name()
    reader.want("[")
    return Variable(name, Reals(items(reader, expression, "]")))


def _domain(reader: Reader) -> Domain:
    reader.want("in")
    if reader.skip("R"):
        if not reader.skip("^"):
            return Reals()
        return Reals(items(reader, expression, ")") if reader.skip("(") else (expression(reader, PRECEDENCE["x"]),))
    if reader.skip("Z"):
        return Integers()
    if reader.skip("{"):
        return OneOf(items(reader, _signed, "}"))
    if reader.skip("["):
        lowest = _signed(reader)
        reader.want(",")
        highest = _signed(reader)
        reader.want("]")
        return Between(lowest, _ordered(lowest, highest))
    if reader.next.kind != "number" and not reader.at("-"):
        reader.refuse("a set")
    lowest = _signed(reader)
    reader.want("..")
    highest = _signed(reader)
    if lowest.denominator > 1 or highest.denominator > 1:
        raise Unparsed("a range goes from one whole number to another")
    return Integers(int(lowest), int(_ordered(lowest, highest)))


def _ordered(lowest: Fraction, highest: Fraction) -> Fraction:
    if lowest > highest:
        raise Unparsed(f"an empty set, from {lowest} to {highest}")
    return highest


def _law(reader: Reader) -> Law:
    column, name = reader.next.column, reader.name()
    if name not in LAWS:
        there = "N, U, Rademacher, Exp and Bernoulli"
        raise Unparsed(f"unknown law {name}; there are {there}", column=column, name=name, known=LAWS)
    reader.want("(")
    first = expression(reader)
    if name in ONE_PARAMETER:
        reader.want(")")
        return ONE_PARAMETER[name](first)
    reader.want(",")
    is_std = name == "N" and reader.at("std") and reader.after().text == "="
    if is_std:
        reader.take()
        reader.take()
    second = expression(reader)
    reader.want(")")
    return Normal(first, second, is_std) if name == "N" else Uniform(first, second)


def _bounded(reader: Reader, quantity: "str | object") -> Bounded:
    reader.skip("in")
    if not reader.at(*ORDERS):
        reader.refuse("O, Omega or Theta")
    order = reader.take().text
    reader.want("(")
    bound = expression(reader)
    reader.want(")")
    return Bounded(quantity, order, bound)  # ty: ignore[invalid-argument-type]


def _run(reader: Reader) -> Runs:
    reader.take()
    reader.want("(")
    program = program_name(reader)
    arguments = []
    while reader.skip(","):
        arguments.append(expression(reader))
    reader.want(")")
    if reader.skip("succeeds"):
        return Runs(program, tuple(arguments), "succeeds")
    if reader.skip("raises"):
        return Runs(program, tuple(arguments), "raises", reader.take().text if reader.next.kind == "name" else None)
    sign = comparison(reader)
    if sign is None:
        reader.refuse("succeeds, raises or a comparison")
    right, within = expression(reader), _tolerance(reader)
    if within is not None and sign != "==":
        raise Unparsed("within belongs to one ==")
    return Runs(program, tuple(arguments), sign, right=right, within=within)


def _implied_sizes(claim: Claim) -> tuple[Size, ...]:
    """Names of dims, of what I, ones, zeros and reshape are given, and of ranges, that nothing else declares."""
    everything = [claim.relation, *claim.assumptions, *(variable.kind for variable in claim.variables)]
    dims = [dim for variable in claim.variables for dim in _dims(variable.kind)]
    dims += [dim for part in everything for node in nodes(part) for dim in _filled_dims(node)]
    dims += claim.relation.dims if isinstance(claim.relation, HasShape) else ()
    declared = {size.name for size in claim.sizes} | {variable.name for variable in claim.variables}
    found = [name for dim in dims for name in sorted(names(dim)) if name not in declared]
    return tuple(Size(name) for name in dict.fromkeys(found))


def _dims(kind: Any) -> tuple[Node, ...]:
    return kind.dims if isinstance(kind, Reals) else (kind.dim,) if isinstance(kind, Rademacher) else ()


def _filled_dims(node: Node) -> list[Node]:
    mine: list[Node] = []
    match node:
        case Call("I" | "ones" | "zeros"):
            mine = list(children(node))
        case Call("reshape", (_, *dims)):
            mine = [dim for dim in dims if isinstance(dim, Node)]
        case Indexed(_, index, lowest, highest, body):
            inner = [dim for dim in _filled_dims(body) if index not in names(dim)]
            return [lowest, highest, *_filled_dims(lowest), *_filled_dims(highest), *inner]
        case Gradient(bound, body, place):
            return [*(dim for dim in _filled_dims(body) if bound not in names(dim)), *_filled_dims(place)]
    return mine + [dim for child in children(node) for dim in _filled_dims(child)]


def _refuse_reserved(*declared: str) -> None:
    for name in declared:
        if name in RESERVED:
            if name in CONSTANTS:
                raise Unparsed(f"{name} is reserved: it is the number", name=name)
            raise Unparsed(f"{name} is reserved: E, Var and P are moments, O, Omega and Theta are orders", name=name)


def _require_scope(claim: Claim, defined: set[str]) -> None:
    """Every name is declared once, and every name that is used is declared."""
    declared = [each.name for each in (*claim.variables, *claim.sizes)] + sorted(defined)
    cells = [name for name, _ in claim.source.cells] if claim.source else []
    _refuse_reserved(*(variable.name for variable in claim.variables), *cells)
    twice = sorted({name for name in declared + cells if (declared + cells).count(name) > 1 or name in FUNCTIONS})
    if twice:
        raise Unparsed(f"{twice[0]} has two meanings", name=twice[0])
    scope = {*declared, *cells, *(["out"] if claim.program else [])}
    for part in [claim.relation, *claim.assumptions, *(variable.kind for variable in claim.variables)]:
        for node in nodes(part):
            _require_known(node, scope)
            _require_one_average(node)
            _require_variables(node, {variable.name for variable in claim.variables})
    sizes = {size.name for size in claim.sizes}
    for size_ in claim.sizes:
        if size_.equation is not None and not names(size_.equation) <= sizes - {size_.name}:
            raise Unparsed(f"the size {size_.name} is given by an equation over other sizes", name=size_.name)
    _require_laws(claim)
    random = {variable.name for variable in claim.variables if variable.random}
    for variable in claim.variables:
        mixed = sorted(random & set().union(*map(names, nodes(variable.kind))))
        if mixed:
            reason = f"the law of {variable.name} depends on {mixed[0]}, which is random"
            raise Unparsed(reason, name=variable.name)
        for dim in _dims(variable.kind):
            if not names(dim) <= sizes:
                raise Unparsed(f"the dims of {variable.name} are made of sizes", name=variable.name)


def _require_one_average(node: Node, inside: bool = False) -> None:
    average = isinstance(node, Moment | Probability)
    if average and inside:
        name = "P" if isinstance(node, Probability) else node.kind
        raise Unparsed("E, Var and P do not stand inside one another", name=name)
    for child in children(node):
        _require_one_average(child, inside or average)


def _require_laws(claim: Claim) -> None:
    """A constant spread is not below zero, and constant ends are in their order."""
    for name, law in ((variable.name, variable.kind) for variable in claim.variables):
        if isinstance(law, Normal) and (spread := _constant(law.spread)) is not None and spread[1] < 0:
            what = "standard deviation" if law.is_std else "variance"
            raise Unparsed(f"the {what} of {name} is below zero: {law.spread}", name=name)
        if isinstance(law, Exponential) and (rate := _constant(law.rate)) is not None and rate[1] <= 0:
            raise Unparsed(f"the rate of {name} is not above zero: {law.rate}", name=name)
        chance = _constant(law.chance) if isinstance(law, Bernoulli) else None
        if isinstance(law, Bernoulli) and chance is not None and (chance[1] < 0 or chance[0] > 1):
            raise Unparsed(f"the probability of {name} is not from 0 to 1: {law.chance}", name=name)
        if isinstance(law, Uniform):
            lowest, highest = _constant(law.lowest), _constant(law.highest)
            if lowest is not None and highest is not None and lowest[0] > highest[1]:
                raise Unparsed(f"{name} has an empty range, from {law.lowest} to {law.highest}", name=name)


ROUNDING = Fraction(1, 10**6)  # far more than the rounding of math.exp, of math.log of up to 1e300 and of math.pi
ROOT_DIGITS = 10**12  # bounds of a square root are 1/ROOT_DIGITS apart


def _constant(node: object) -> tuple[Fraction, Fraction] | None:
    """Bounds of a constant, or of a multiple of the identity matrix; None for what is not made of these operations."""
    match node:
        case Number(value):
            return value, value
        case Negative(operand):
            bounds = _constant(operand)
            return None if bounds is None else (-bounds[1], -bounds[0])
        case Call("I"):
            return Fraction(1), Fraction(1)
        case Call("sqrt", (operand,)):
            bounds = _constant(operand)
            if bounds is None or bounds[0] < 0:
                return None
            low, high = (math.isqrt(math.floor(bound * ROOT_DIGITS**2)) for bound in bounds)
            exact = low == high and Fraction(low, ROOT_DIGITS) ** 2 == bounds[0] == bounds[1]
            return Fraction(low, ROOT_DIGITS), Fraction(high + (not exact), ROOT_DIGITS)
        case Call("exp", (operand,)):
            bounds = _constant(operand)
            if bounds is None or max(map(abs, bounds)) > 700:
                return None
            low, high = (Fraction(math.exp(bound)) for bound in bounds)
            return low * (1 - ROUNDING), high * (1 + ROUNDING)
        case Call("log", (operand,)):
            bounds = _constant(operand)
            if bounds is None or not 1e-300 < bounds[0] <= bounds[1] < 1e300:
                return None
            low, high = (Fraction(math.log(bound)) for bound in bounds)
            return low - ROUNDING, high + ROUNDING
        case Constant("pi"):
            return Fraction(math.pi) - ROUNDING, Fraction(math.pi) + ROUNDING
        case Binary("^", base, Number(power)) if power.denominator == 1 and 0 <= power <= 64:
            bounds = _constant(base)
            if bounds is None or max(max(abs(b.numerator), b.denominator) for b in bounds) > ROOT_DIGITS**8:
                return None
            ends = sorted(bound ** int(power) for bound in bounds)
            return (Fraction(0) if power and power % 2 == 0 and bounds[0] < 0 < bounds[1] else ends[0]), ends[1]
        case Binary("+" | "-" | "*" | "/" as sign, left, right):
            first, second = _constant(left), _constant(right)
            if first is None or second is None or (sign == "/" and second[0] <= 0 <= second[1]):
                return None
            apply = {"+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv}
            corners = [apply[sign](one, other) for one in first for other in second]
            return min(corners), max(corners)
    return None


def _require_variables(node: Node, variables: set[str]) -> None:
    """What a derivative is taken by is a variable, or an entry of one."""
    if isinstance(node, Call) and node.function == "grad":
        by = node.arguments[1]
        by = by.operand if isinstance(by, Index) else by
        if not isinstance(by, Name) or by.name not in variables:
            raise Unparsed("grad(f, x) is taken by a variable x of given:, or by an entry x[i] of one", name="grad")
    if isinstance(node, Gradient):
        _require_variables(node.body, {*variables, node.name})
        _require_variables(node.place, variables)
        return
    for child in children(node):
        _require_variables(child, variables)


def _require_known(node: Node, scope: set[str]) -> None:
    if isinstance(node, Call) and node.function in QUANTITIES:
        return
    if isinstance(node, Indexed):
        if node.index in scope or node.index in FUNCTIONS or node.index in RESERVED:
            raise Unparsed(f"the index {node.index} has two meanings", name=node.index)
        _require_known(node.lowest, scope)
        _require_known(node.highest, scope)
        _require_known(node.body, {*scope, node.index})
        return
    if isinstance(node, Gradient):
        _require_known(node.body, {*scope, node.name})
        _require_known(node.place, scope)
        return
    if not children(node):
        unknown = sorted(names(node) - scope)
        if unknown:
            known = scope | {*FUNCTIONS}
            raise Unparsed(f"unknown name {unknown[0]} (nothing assumed)", name=unknown[0], known=known)
    for child in children(node):
        _require_known(child, scope)
