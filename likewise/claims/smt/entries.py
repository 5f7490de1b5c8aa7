"""Vectors of every length entry by entry: what is true of any one entry is summed over all of them.

A vector is known by one entry x_i, i arbitrary. sum(t) is a name S for the sum of t_i over i, max(t) a name M with
t_i <= M that one entry t_j attains. z3 is asked about the entry: t_i >= 0 for every i gives S >= 0 and S >= t_j;
u_i <= c*v_i, with c not depending on i, gives sum(u) <= c*sum(v); w_i^2 <= u_i*v_i gives sum(w)^2 <= sum(u)*sum(v)
(Cauchy and Schwarz); a tangent of exp at a point that does not depend on i can be summed (Jensen). A claim holds for
every length if these facts exclude that it fails. Nothing is refuted here.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import combinations, permutations, product
from math import prod
from typing import Any

import z3

from likewise.claims import arrays
from likewise.claims.algebra.identities import proved
from likewise.claims.algebra.questions import question
from likewise.claims.arrays import Array, Entry
from likewise.claims.language.claim import Claim, Compares
from likewise.claims.language.tree import Chain, Comparison, Name, Node, Text
from likewise.claims.reader import OPERATORS, Scalars, WholeVectors
from likewise.claims.smt.curves import Point, number_of, real
from likewise.claims.smt.problems import dims, entry_symbol, numbers_of, used_variables
from likewise.claims.smt.terms import Fact, Part, Term, Terms, compared_numbers
from likewise.claims.verdict import Finding, OutOfTime, Undecided

SECONDS, BUDGET_SHARE = 3.0, 0.6  # of process time, and of the budget, for all questions
QUERY, LAST = 150_000, 600_000  # steps of z3 for a question about one entry, and for one about the claim
SUMS, FACTORS = 7, 6  # of a claim; that may stand before a sum
ROUNDS = 3
MAXIMA = 3
ENGINE = "entries"
_LINEAR: dict[int, tuple[bool, Any]] = {}


@dataclass(frozen=True)
class Each:
    """A vector: its i-th entry."""

    term: Term

    def __neg__(self) -> "Each":
        return Each(-self.term)


@dataclass(frozen=True)
class Sum:
    """The sum over i of an entry."""

    entry: Term
    total: Term


@dataclass
class Facts:
    """Sums, maxima and what is known of them; facts about the entry i are true for every i."""

    terms: Terms
    ends: float
    length: Term = field(default_factory=lambda: z3.ToReal(z3.Int("length")))
    symbols: list[Term] = field(default_factory=list)  # x_i
    sums: list[Sum] = field(default_factory=list)
    largest: list[tuple[Term, Term]] = field(default_factory=list)  # an entry and the largest such entry
    known: list[Fact] = field(default_factory=list)
    indices: list[list[tuple[Term, Term]]] = field(default_factory=list)  # for each maximum: names of i, and of j
    tangents: list[Fact] = field(default_factory=list)  # of exp, which are tried last
    proved: set[int] = field(default_factory=set)  # parts that have a value

    def total(self, entry: Term) -> Term:
        """The sum of an entry over all of them."""
        entry = real(entry)
        if not self.depends(entry):
            return entry * self.length
        if z3.is_mul(entry):
            mine = [factor for factor in _flat(entry) if self.depends(factor)]
            others = [factor for factor in _flat(entry) if not self.depends(factor)]
            if others:
                return prod(others[1:], start=others[0]) * self.total(prod(mine[1:], start=mine[0]))
        if z3.is_add(entry) or z3.is_sub(entry):
            first, *rest = map(self.total, entry.children())
            return sum(rest, first) if z3.is_add(entry) else first - sum(rest[1:], rest[0])
        for each in self.sums:
            if number_of(each.entry - entry) == 0:
                return each.total
        if len(self.sums) >= SUMS:
            raise Undecided(f"more than {SUMS} sums")
        self.sums.append(Sum(entry, z3.Real(f"sum!{len(self.sums)}")))
        return self.sums[-1].total

    def maximum(self, entry: Term) -> Term:
        """The largest entry."""
        if not self.depends(real(entry)):
            return entry
        for mine, top in self.largest:
            if number_of(mine - entry) == 0:
                return top
        if len(self.largest) >= MAXIMA:
            raise Undecided(f"more than {MAXIMA} maxima")
        self.largest.append((entry, z3.Real(f"max!{len(self.largest)}")))
        return self.largest[-1][1]

    def depends(self, term: Term) -> bool:
        """Whether a term has to do with the entry i."""
        mine = {symbol.get_id() for symbol in self.local()}
        return any(symbol.get_id() in mine for symbol in _symbols(term))

    def local(self) -> list[Term]:
        """The names that stand for something of the entry i."""
        found = [*self.symbols]
        ids = {symbol.get_id() for symbol in found}
        for symbol, arguments in self.terms.definitions():
            if symbol.get_id() not in ids and any(s.get_id() in ids for t in arguments for s in _symbols(t)):
                found.append(symbol)
                ids.add(symbol.get_id())
        return found

    def excluded(self, *facts: Fact, most: int = QUERY, thorough: bool = True, last: bool = True) -> bool:
        """Whether z3 sees soon that nothing that is known allows these facts."""
        left = self.ends - time.process_time()
        if left <= 0:
            raise OutOfTime("entries were stopped at the end of their time")
        simple = [fact for fact in self.known if _linear(fact)]
        more = [self.known, *([[*self.known, *self.tangents]] if self.tangents and last else [])]
        for known in [simple, *(more if thorough else [])]:  # the simple ones alone, first
            solver = z3.Solver()
            solver.set("timeout", max(1, int(1000 * left)))
            solver.set("rlimit", most)  # of steps, not of time: the answer is the same on a busy machine
            solver.add(*known, *facts)
            if solver.check() == z3.unsat:
                return True
        return False

    def follows(self, fact: Fact, *, thorough: bool = True) -> bool:
        """Whether a fact follows from what is known, for every i; not thorough: from what is linear alone."""
        return self.excluded(z3.Not(fact), thorough=thorough)

    def learn(self, wanted: list[Part]) -> Iterator[bool]:
        """Sums from what is true of each entry, cheap steps first; True after the last one."""
        self._attained()
        for _ in range(ROUNDS):
            before = len(self.known)
            for part in wanted:
                if part.symbol.get_id() not in self.proved and self.follows(part.defined):
                    self.proved.add(part.symbol.get_id())
                    self.known += [part.defined, part.meaning]
                    self.known += [part.symbol > 0] if self.follows(part.symbol > 0) else []
            for each in self.sums:
                self._sign(each)
            if len(self.known) == before:
                break
        self._without_factors()
        yield False
        self._tangents()
        yield False
        ones = [z3.RealVal(1), z3.RealVal(-1)]
        self._compared([*ones, *self._factors()], thorough=False)
        yield False
        self._in_threes(thorough=False)
        yield False
        self._cauchy()
        yield False
        self._compared(ones, thorough=True)
        yield False
        self._in_threes(thorough=True)
        yield False
        self._compared(self._factors(), thorough=True)
        yield True

    def _attained(self) -> None:
        """Each largest entry is an entry of its own, of which all is true that is true of the entry i."""
        self.known += [entry <= top for entry, top in self.largest]
        general = [*self.known, *(part.meaning for part in self.terms.parts() if part.symbol.get_id() in self.proved)]
        points = [*self.terms.curves.points.items()]
        for number, (entry, top) in enumerate(self.largest):
            pairs = [(symbol, z3.Real(f"{symbol}@{number}")) for symbol in self.local()]
            self.indices.append(pairs)
            self.known += [z3.substitute(fact, *pairs) for fact in general] + [z3.substitute(entry, *pairs) == top]
            for key, point in points:
                moved = Point(*(z3.substitute(each, *pairs) for each in (point.x, point.y, point.defined)))
                if not moved.y.eq(point.y) or not moved.x.eq(point.x):
                    self.terms.curves.points[f"{key[0]} at {number}", key[1]] = moved
        points = [*self.terms.curves.points.values()]
        still = [point for point in points if not self.depends(point.x) and not self.depends(point.y)]
        self.known += self.terms.curves.relate([point for point in still if "@" not in f"{point.x} {point.y}"])
        self.known += self.terms.curves.facts(simple=True)
        self.tangents = self.terms.curves.tangents()

    def _without_factors(self) -> None:
        """c*t_i <= c*t_j, where c is above 0 and the same for every i, is t_i <= t_j."""
        for (entry, _), pairs in zip(self.largest, self.indices, strict=True):
            factors = list(_flat(entry)) if z3.is_mul(entry) else []
            mine = [factor for factor in factors if self.depends(factor)]
            others = [factor for factor in factors if not self.depends(factor)]
            if mine and others and all(self.follows(factor > 0) for factor in others):
                rest = prod(mine[1:], start=mine[0])
                self.known.append(rest <= z3.substitute(rest, *pairs))

    def _at_indices(self, entry: Term) -> Iterator[Term]:
        yield from (z3.substitute(entry, *pairs) for pairs in self.indices)

    def _sign(self, each: Sum) -> None:
        """t_i >= 0 for every i: the sum is at least every entry."""
        for sign in (1, -1):
            entry, total = sign * each.entry, sign * each.total
            known = total >= 0
            if any(known.eq(fact) for fact in self.known) or not self.follows(entry >= 0):
                continue
            self.known += [known, total >= entry, *(total >= at for at in self._at_indices(sign * each.entry))]
            if self.follows(entry > 0):
                self.known.append(total > 0)

    def _items(self) -> list[Sum]:
        return [*self.sums, Sum(z3.RealVal(1), self.length)]

    def _factors(self) -> list[Term]:
        """Numbers that may stand before a sum."""
        tops = [factor for _, top in self.largest for factor in (top, top * top)]
        attained = [at for each in self.sums for at in self._at_indices(each.entry)]
        return [*tops, *attained, *(each.total for each in self.sums)][:FACTORS]

    def _compared(self, factors: list[Term], *, thorough: bool) -> None:
        """u_i <= c*v_i, summed."""
        items, found = self._items(), []
        for small, large, sign, c in product(items, items, (1, -1), factors):
            summed = sign * small.total <= c * large.total
            if small is not large and not any(summed.eq(fact) for fact in self.known):
                found += [summed] if self.follows(sign * small.entry <= c * large.entry, thorough=thorough) else []
        self.known += found

    def _cauchy(self) -> None:
        """w_i^2 <= u_i*v_i, summed."""
        items, found = self._items(), []
        for mine, (left, right) in product(self.sums, combinations(items, 2)):
            both = left.entry * right.entry
            if (
                mine is not left
                and mine is not right
                and self.follows(z3.And(left.entry >= 0, right.entry >= 0, mine.entry * mine.entry <= both))
            ):
                found.append(mine.total * mine.total <= left.total * right.total)
        self.known += found

    def _in_threes(self, *, thorough: bool) -> None:
        """u_i >= v_i - w_i, summed."""
        found = []
        for large, small, less in permutations(self._items(), 3):
            if self.follows(large.entry >= small.entry - less.entry, thorough=thorough):
                found.append(large.total >= small.total - less.total)
        self.known += found

    def _tangents(self) -> None:
        """e^x_i >= b*(1 + x_i - a) of a point (a, b = e^a) that does not depend on i, summed."""
        points = self.terms.curves.all_points()
        still = [point for point in points if not self.depends(point.x) and not self.depends(point.y)]
        for point in points:
            if point in still or "@" in str(point.x) or not self.follows(point.defined):
                continue
            for at in still:
                if self.follows(at.defined):
                    line = at.y * (self.length * (1 - at.x) + self.total(point.x))
                    self.known.append(self.total(point.y) >= line)

    def linear(self, difference: Term) -> bool:
        """Whether a number is not negative because it is a sum over i of what is not."""
        names = [*((each.total, each.entry) for each in self.sums), (self.length, z3.RealVal(1))]
        zeros = [(total, z3.RealVal(0)) for total, _ in names]
        if number_of(z3.substitute(difference, *zeros)) != 0:
            return False
        one = z3.RealVal(1)
        coefficients = [
            z3.substitute(difference, *zeros[:k], (total, one), *zeros[k + 1 :]) for k, (total, _) in enumerate(names)
        ]
        rebuilt = sum((c * total for c, (total, _) in zip(coefficients, names, strict=True)), z3.RealVal(0))
        if number_of(difference - rebuilt) != 0:
            return False
        entry = sum((c * entry for c, (_, entry) in zip(coefficients, names, strict=True)), z3.RealVal(0))
        return self.follows(entry >= 0)


def _symbols(term: Term) -> Iterator[Term]:
    """The names in a term."""
    waiting, seen = [term], set()
    while waiting:
        node = waiting.pop()
        if isinstance(node, Fraction | int) or node.get_id() in seen:
            continue
        seen.add(node.get_id())
        if z3.is_const(node) and node.decl().kind() == z3.Z3_OP_UNINTERPRETED:
            yield node
        waiting += node.children()


def _linear(fact: Fact) -> bool:
    """Whether no two names are multiplied."""
    key = fact.get_id()
    if key not in _LINEAR:
        factors = [child for child in fact.children() if not z3.is_rational_value(child)] if z3.is_mul(fact) else []
        _LINEAR[key] = (len(factors) < 2 and all(map(_linear, fact.children())), fact)  # which keeps its number
    return _LINEAR[key][0]


def _flat(term: Term) -> Iterator[Term]:
    """The factors of a product."""
    for child in term.children():
        yield from _flat(child) if z3.is_mul(child) else [child]


def _plain(value: "Each | Term") -> Term:
    return value.term if isinstance(value, Each) else value


def _lifted(operation: Callable[..., Term]) -> "Callable[..., Each | Term]":
    """An operation, of vectors entry by entry."""

    def lifted(*values: "Each | Term") -> "Each | Term":
        found = operation(*map(_plain, values))
        return Each(found) if any(isinstance(value, Each) for value in values) else found

    return lifted


def entrywise(scalars: Scalars) -> Scalars:
    """What is done with numbers, of vectors entry by entry."""
    divide = _lifted(scalars.divide)

    def divided(top: "Each | Term", bottom: "Each | Term") -> "Each | Term":
        """A vector over a number is a product with its inverse, which can stand before a sum."""
        if isinstance(top, Each) and not isinstance(bottom, Each):
            return Each(top.term * scalars.divide(Fraction(1), bottom))
        return divide(top, bottom)

    return replace(
        scalars,
        elementwise={name: _lifted(function) for name, function in scalars.elementwise.items()},
        maximum=_lifted(scalars.maximum),
        power=_lifted(scalars.power),
        divide=divided,
    )


@dataclass(frozen=True)
class EntryReader(WholeVectors):
    """The reader, with the i-th entry of a vector in its place."""

    facts: Any = None
    axis: str = ""

    def is_vector(self, value: Entry) -> bool:
        return isinstance(value, Each)

    def operation(self, sign: str) -> Callable[[Entry, Entry], Entry]:
        return _lifted(OPERATORS[sign])

    def dot(self, left: Each, right: Each) -> Term:
        return self.facts.total(real(left.term) * real(right.term))

    def total(self, vector: Each) -> Term:
        return self.facts.total(real(vector.term))

    def length(self, vector: Each) -> Term:
        return self.facts.length

    def filled(self, value: Fraction, lengths: "tuple[Node | Text, ...]") -> Each:
        if [str(part) for part in lengths] != [self.axis]:
            raise Undecided("another length")
        return Each(value)

    def largest(self, vector: Each) -> Term:
        return self.facts.maximum(real(vector.term))


def prove(claim: Claim) -> Finding | None:
    """Proved for every length, or None."""
    asked = question(claim)
    if asked is None or asked.lying or any(each.layout for each in claim.variables):
        return None
    vectors = [each for each in used_variables(claim) if dims(each)]
    axes = {dims(each) for each in vectors}
    if len(axes) != 1 or not isinstance(claim.relation, Compares) or claim.relation.within is not None:
        return None
    ((length, *more),) = axes
    if proved(asked) is not None:  # by an argument that says more
        return None
    if more or not isinstance(length, Name) or any(size.equation is not None for size in claim.sizes):
        return None
    try:
        holds = _proved(claim, claim.relation.chain, length.name)
    except (Undecided, ArithmeticError, IndexError, z3.Z3Exception):
        return None
    return Finding("holds", "proved", f"for every {length} (entry by entry, z3)", ENGINE) if holds else None


def _proved(claim: Claim, chain: Chain, length: str) -> bool:
    _LINEAR.clear()
    terms = Terms(numbers=numbers_of(claim))
    facts = Facts(terms, time.process_time() + min(SECONDS, BUDGET_SHARE * claim.budget))
    facts.known.append(facts.length >= 1)
    values: dict[str, Array] = {}
    for size in claim.sizes:
        whole = facts.length if size.name == length else z3.ToReal(z3.Int(size.name))
        values[size.name] = arrays.scalar(whole)
        facts.known.append(whole >= 1)
    for each in used_variables(claim):
        symbol, value, inside = entry_symbol(f"{each.name}!i", each.kind)
        facts.known += inside
        if dims(each):
            facts.symbols.append(symbol)
        values[each.name] = arrays.scalar(Each(value) if dims(each) else value)
    reader = EntryReader(values, {}, entrywise(terms.scalars()), facts=facts, axis=length)
    for assumption in claim.assumptions:
        _assume(facts, reader, assumption)
    needed: dict[int, Part] = {}
    with terms.collected() as parts:
        sides = [reader.evaluate(term).scalar for term in chain.terms]
        needed |= parts
    links = list(zip(sides, chain.comparisons, sides[1:], strict=False))
    for last in facts.learn([*needed.values()]):
        if any(symbol not in facts.proved for symbol in needed):
            return False
        links = [link for link in links if not _link(facts, *link, last)]
        if not links:
            return True
    return False


def _assume(facts: Facts, reader: EntryReader, chain: Chain) -> None:
    """An assumption about numbers, or about every entry; one that is not read is left out."""
    try:
        with facts.terms.collected() as parts:
            sides = [reader.evaluate(term).scalar for term in chain.terms]
    except (Undecided, ArithmeticError, IndexError):
        return
    for part in parts.values():
        facts.known += [part.defined, part.meaning]
        facts.proved.add(part.symbol.get_id())
    for left, comparison, right in zip(sides, chain.comparisons, sides[1:], strict=False):
        if comparison != "!=" or not (isinstance(left, Each) or isinstance(right, Each)):
            facts.known.append(compared_numbers(_plain(left), comparison, _plain(right)))


def _link(facts: Facts, left: "Each | Term", comparison: Comparison, right: "Each | Term", last: bool) -> bool:
    """Whether a comparison is true of numbers, or of every entry."""
    a, b = real(_plain(left)), real(_plain(right))
    if isinstance(left, Each) or isinstance(right, Each):
        return comparison != "!=" and facts.excluded(
            z3.Not(compared_numbers(a, comparison, b)), most=LAST if last else QUERY, last=last
        )
    if comparison in ("<=", "==") and facts.linear(b - a) and (comparison == "<=" or facts.linear(a - b)):
        return True
    if comparison == ">=" and facts.linear(a - b):
        return True
    return facts.excluded(z3.Not(compared_numbers(a, comparison, b)), most=LAST if last else QUERY, last=last)
