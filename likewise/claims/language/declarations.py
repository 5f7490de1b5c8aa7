"""What stands on the right of a field: sets, laws, sizes, relations, sources, numbers."""

import re
from fractions import Fraction

from likewise.claims.language.claim import (
    Bernoulli,
    Between,
    Bounded,
    Cell,
    Compares,
    Counts,
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
from likewise.claims.language.expressions import QUANTITIES, chain, comparison, expression, items, program_name
from likewise.claims.language.tokens import Reader, Unparsed, decimals, number
from likewise.claims.language.tree import PRECEDENCE

ORDERS = ("O", "Omega", "Theta")
LAWS = ("N", "U", "Rademacher", "Exp", "Bernoulli")
ONE_PARAMETER = {"Rademacher": Rademacher, "Exp": Exponential, "Bernoulli": Bernoulli}
FLOW = re.compile(r'\s*([{}:,]|"[^"]*"|[^{}:,"]+)')


def variables(reader: Reader) -> list[Variable]:
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


def size(reader: Reader) -> Size:
    """`N`, or `d = h*k`."""
    name = reader.name()
    return Size(name, expression(reader) if reader.skip("=") else None)


def relation(reader: Reader, declared: set[str]) -> Relation:
    """What is asserted; a quantity's name that the claim declares itself is no quantity."""
    if reader.at("run") and reader.after().text == "(":
        return _run(reader)
    quantity = next((name for name in QUANTITIES if reader.at(name) and name not in declared), None)
    if quantity and (reader.after().text == "in" or reader.after().text in ("==", "!=", "<", "<=", ">", ">=")):
        reader.take()
        sign = comparison(reader)
        if sign is None:
            return _bounded(reader, quantity)
        right, within = expression(reader), tolerance(reader)
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
    links, within = chain(reader, body), tolerance(reader)
    if within is not None and links.comparisons != ("==",):
        raise Unparsed("within belongs to one ==")
    return Compares(links, within)


def tolerance(reader: Reader) -> Tolerance | None:
    """`within 0.01`, `within 1%`, or nothing."""
    if not reader.skip("within"):
        return None
    value = constant(reader)
    if value < 0:
        raise Unparsed("a tolerance below zero")
    return Tolerance(value / 100, True) if reader.skip("%") else Tolerance(value, False)


def constant(reader: Reader) -> Fraction:
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


def source(text: str) -> Source:
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
        return OneOf(items(reader, constant, "}"))
    if reader.skip("["):
        lowest = constant(reader)
        reader.want(",")
        highest = constant(reader)
        reader.want("]")
        return Between(lowest, _ordered(lowest, highest))
    if reader.next.kind != "number" and not reader.at("-"):
        reader.refuse("a set")
    lowest = constant(reader)
    reader.want("..")
    highest = constant(reader)
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
    right, within = expression(reader), tolerance(reader)
    if within is not None and sign != "==":
        raise Unparsed("within belongs to one ==")
    return Runs(program, tuple(arguments), sign, right=right, within=within)
