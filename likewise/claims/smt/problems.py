"""A claim as formulas: what is known of its names, and the ways in which it can be false."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from math import ceil, prod
from typing import Any

import z3

from likewise.claims import arrays
from likewise.claims.arrays import Array
from likewise.claims.language.claim import Between, Claim, Compares, Integers, OneOf, Reals, Tolerance, Variable
from likewise.claims.language.tree import Binary, Call, Chain, Comparison, Name, Node, Number, children, names
from likewise.claims.reader import Reader
from likewise.claims.smt.curves import Power, real
from likewise.claims.smt.gram import Axis, Combination, GramReader, compared_in_length
from likewise.claims.smt.terms import Fact, Side, Term, Terms, compared, require_numbers
from likewise.claims.verdict import Undecided

ENTRIES = 40  # of all arrays of a claim
DEGREE = 32  # of a side


@dataclass
class Encoding:
    """`known` holds wherever the claim says something; it is false where all of one of `violations` holds too."""

    symbols: dict[str, list[Term]] = field(default_factory=dict)  # entries of variables, and sizes, row by row
    axes: dict[str, Axis] = field(default_factory=dict)  # where vectors are known by their inner products
    known: list[Fact] = field(default_factory=list)
    products: list[Fact] = field(default_factory=list)  # what the inner products are
    simple: list[Fact] = field(default_factory=list)  # a part of that
    violations: list[list[Fact]] = field(default_factory=list)
    powers: list[Power] = field(default_factory=list)  # with a variable exponent
    curves: list[Fact] = field(default_factory=list)  # what is known of exponentials, logarithms, angles and powers
    parts: bool = False  # whether there are quotients, roots or logarithms


def used_variables(claim: Claim) -> list[Variable]:
    """Those that the statement or an assumption names."""
    used = _used_names(claim)
    return [each for each in claim.variables if each.name in used]


def _used_names(claim: Claim) -> set[str]:
    """Names of the statement, of the assumptions and of equations between sizes."""
    assert isinstance(claim.relation, Compares)
    used: set[str] = set()
    for chain in (claim.relation.chain, *claim.assumptions):
        used = used.union(*map(names, chain.terms))
    for size in claim.sizes:
        if size.equation is not None:
            used |= {size.name, *names(size.equation)}
    return used


def numbers_of(claim: Claim) -> list[Fraction]:
    """The numbers that the statement writes."""
    assert isinstance(claim.relation, Compares)
    waiting, found = list(claim.relation.chain.terms), []
    while waiting:
        node = waiting.pop()
        waiting += children(node)
        found += [node.value] if isinstance(node, Number) else []
    return list(dict.fromkeys(found))


def dims(each: Variable) -> tuple[Node, ...]:
    """The lengths of the axes of a variable."""
    return each.kind.dims if isinstance(each.kind, Reals) else ()


def problem(claim: Claim, lengths: Mapping[str, int] | None = None) -> Encoding:
    """The claim entry by entry with sizes of these lengths; None: for every length, by inner products."""
    assert isinstance(claim.relation, Compares)
    chains = (claim.relation.chain, *claim.assumptions)
    if max(_degree(term) for chain in chains for term in chain.terms) > DEGREE:
        raise Undecided(f"z3 is not asked about degrees above {DEGREE}")
    found, terms = Encoding(), Terms(numbers=numbers_of(claim))
    values: dict[str, Array] = {}
    used = _used_names(claim)
    for size in claim.sizes:
        if lengths and size.name in lengths:
            values[size.name] = arrays.scalar(Fraction(lengths[size.name]))
            continue
        if size.name not in used:
            continue
        whole = z3.Int(size.name)
        found.symbols[size.name] = [whole]
        found.known.append(whole >= 1)
        values[size.name] = arrays.scalar(z3.ToReal(whole))
    for each in used_variables(claim):
        values[each.name] = _variable(found, each, values, lengths)
    numbers = terms.scalars()
    if lengths is None:
        reader: Reader = GramReader(values, {}, numbers, axes=found.axes)
    else:
        reader = Reader(values, dict(lengths), numbers)
    statement = _Statement(reader, terms)
    for size in claim.sizes:
        if size.equation is not None:
            found.known += statement.true(Chain((Name(size.name), size.equation), ("==",)))
    for assumption in claim.assumptions:
        found.known += statement.true(assumption)
    found.violations = list(statement.false(claim.relation.chain, claim.relation.within))
    found.curves, found.powers = terms.curves.facts(), [*terms.curves.powers.values()]
    found.parts = bool(terms.known)
    for axis in found.axes.values():
        found.products += axis.facts()
        found.simple += axis.simple_facts()
        if axis.length is not None and axis.name not in found.symbols and not isinstance(axis.length, Fraction):
            found.symbols[axis.name] = [z3.Int(axis.name)]
            found.products.append(z3.Int(axis.name) >= 1)
    return found


def _degree(node: Node) -> int:
    """At most the degree of an expression in its names, where a quotient counts as a product."""
    inner = [_degree(child) for child in children(node)]
    match node:
        case Name():
            return 1
        case Binary("^", _, Number(value)):
            return inner[0] * max(1, ceil(abs(value)))
        case Binary("*" | "/" | "@", _, _) | Call("dot" | "outer", _):
            return sum(inner)
        case Call("sqnorm" | "norm" | "pairs", _):
            return 2 * inner[0]
        case Call("einsum", _):
            return sum(inner)
    return max(inner, default=0)


def _variable(found: Encoding, each: Variable, values: Mapping[str, Array], lengths: Mapping[str, int] | None) -> Array:
    if lengths is None and dims(each):
        return arrays.scalar(Combination(_axis(found, each, values), {each.name: Fraction(1)}))
    at = Reader({}, lengths or {})
    shape = tuple(at.whole(dim) for dim in dims(each))
    if prod(shape) + sum(map(len, found.symbols.values())) > ENTRIES:
        raise Undecided(f"z3 is not asked about more than {ENTRIES} entries")
    entries = []
    found.symbols[each.name] = []
    for number in range(prod(shape)):
        symbol, value, facts = entry_symbol(f"{each.name}!{number}", each.kind)
        found.symbols[each.name].append(symbol)
        found.known += facts
        entries.append(value)
    return Array(shape, tuple(entries))


def _axis(found: Encoding, each: Variable, values: Mapping[str, Array]) -> Axis:
    match dims(each):
        case (Name(name),):
            length = values[name].scalar if name in values else None
        case (Number(value),) if value >= 1 and value.denominator == 1:
            length = value
        case _:
            raise Undecided(f"z3 is not asked about arrays such as {each.name}")
    (dim,) = dims(each)
    return found.axes.setdefault(str(dim), Axis(str(dim), length))


def entry_symbol(name: str, kind: Any) -> tuple[Term, Term, list[Fact]]:
    """The symbol of an entry, its value as a real number, and that it is in its set."""
    if isinstance(kind, Integers):
        whole = z3.Int(name)
        facts = [] if kind.lowest is None else [whole >= kind.lowest]
        facts += [] if kind.highest is None else [whole <= kind.highest]
        return whole, z3.ToReal(whole), facts
    symbol = z3.Real(name)
    match kind:
        case Between(lowest, highest):
            return symbol, symbol, [symbol >= real(lowest), symbol <= real(highest)]
        case OneOf(options):
            return symbol, symbol, [z3.Or(*(symbol == real(option) for option in options))]
        case Reals():
            return symbol, symbol, []
    raise Undecided(f"z3 is not asked about {kind}")


@dataclass(frozen=True)
class _Statement:
    """Reads chains of comparisons."""

    reader: Reader
    terms: Terms

    def _side(self, node: Node) -> Side:
        with self.terms.collected() as parts:
            value = self.reader.evaluate(node)
        return Side(value, tuple(parts.values()))

    def _links(self, chain: Chain) -> Iterator[tuple[Side, Comparison, Side]]:
        sides = [self._side(term) for term in chain.terms]
        return zip(sides, chain.comparisons, sides[1:], strict=False)

    def _compared(self, left: Array, comparison: Comparison, right: Array) -> Fact:
        by_length = isinstance(self.reader, GramReader)
        return (compared_in_length if by_length else compared)(left, comparison, right)

    def true(self, chain: Chain) -> list[Fact]:
        """Every side has a value and every comparison is true."""
        found = []
        for left, comparison, right in self._links(chain):
            found += [*left.defined, *right.defined, self._compared(left.value, comparison, right.value)]
        return found

    def false(self, chain: Chain, within: Tolerance | None) -> Iterator[list[Fact]]:
        """The ways in which the chain is false: a comparison is, or one side of an == alone has no value."""
        for left, comparison, right in self._links(chain):
            true = self._compared(left.value, comparison, right.value) if within is None else _near(left, right, within)
            yield [*left.defined, *right.defined, z3.Not(true)]
            if comparison == "==":
                for one, other in ((left, right), (right, left)):
                    if {part.symbol.get_id() for part in one.parts} - {part.symbol.get_id() for part in other.parts}:
                        yield [*one.undefined, *other.defined]


def _near(left: Side, right: Side, within: Tolerance) -> Fact:
    """|left - right| is at most the tolerance, or that part of |right|."""
    require_numbers(left.value.scalar, right.value.scalar)
    a, b, most = real(left.value.scalar), real(right.value.scalar), real(within.value)
    most = most * z3.If(b >= 0, b, -b) if within.relative else most
    return z3.And(a - b <= most, b - a <= most)
