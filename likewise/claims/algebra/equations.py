"""Equations of arrays at every size: index notation of both sides, and of the equations that are assumed.

A == A'            A is (A + A')/2       sqnorm(u) == 1    Σ_k u[k]^2 is 1
A' == -A           A is (A - A')/2       A' @ A == I(n)    Σ_k A[k, i]*A[k, j] is δ(i, j)
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise, permutations

from likewise.claims.algebra.indices import (
    EXPONENT,
    FUNCTIONS,
    HALF,
    ONE,
    Atom,
    Expr,
    Place,
    Reader,
    Term,
    added,
    has,
    mentions,
    narrow,
    new_place,
    of_atom,
    over_atoms,
    renamed,
    summed,
    times,
)
from likewise.claims.algebra.questions import Question, put_in
from likewise.claims.language.tree import Binary, Chain, Name, Negative, Node, Number, Transpose
from likewise.claims.verdict import Undecided

STEPS, FACTORS = 8, 3  # of rewriting; of an assumed sum of products


def equal(asked: Question) -> bool:
    """Whether every equation of the chain has the same normal form on both sides, at all lengths."""
    if set(asked.chain.comparisons) != {"=="}:
        return False
    asked = _free(asked)
    reader = Reader(asked)
    sides = [reader.of(term) for term in asked.chain.terms]
    rules = list(_rules(asked, reader))
    for left, right in pairwise(sides):
        axes = reader.together([left.axes, right.axes])
        at = tuple("1" if length == ONE else f"^{number}" for number, length in enumerate(axes))
        difference = left.entry(narrow(at, left.axes)) + right.entry(narrow(at, right.axes)).scaled(-1)
        if any(mentions(atom, name) for name in reader.laws for term, _ in difference.terms for atom, _ in term):
            return False
        if not _is_zero(_reduced(difference, rules)):
            return False
    return True


def _is_zero(value: Expr) -> bool:
    """Whether it is 0 after denominators were multiplied out."""
    for _ in range(EXPONENT):
        below = {}
        for term, _ in value.terms:
            for atom, exponent in term:
                if atom[0] == "plus" and exponent < 0 and exponent.denominator == 1:
                    below[atom] = min(exponent, below.get(atom, exponent))
        if not below:
            break
        atom, exponent = min(below.items(), key=repr)
        if -exponent > EXPONENT:
            raise Undecided("a high power of a denominator")
        value = added(times([*term, (atom, -exponent)], coefficient) for term, coefficient in value.terms)
    return not value.terms


def _free(asked: Question) -> Question:
    """A matrix assumed to be its transpose, or the negative of it, as half the sum of a free one and its own."""
    square = {each.name for each in asked.variables if len(dims := asked.dims(each)) == 2 and dims[0] == dims[1]}
    values: dict[str, Node] = {}
    for chain in asked.assumptions:
        for one, other in _equations(chain):
            flip = "+"
            if isinstance(other, Negative):
                other, flip = other.operand, "-"
            if isinstance(one, Transpose):
                one, other = other, one
            match one, other:
                case Name(name), Transpose(Name(same)) if name == same and name in square:
                    whole = Binary(flip, Name(name), Transpose(Name(name)))
                    values[name] = Binary("/", whole, Number(Fraction(2)))
    if not values:
        return asked
    terms = tuple(put_in(term, values) for term in asked.chain.terms)
    return replace(asked, chain=replace(asked.chain, terms=terms))


def _equations(chain: Chain) -> Iterator[tuple[Node, Node]]:
    """Both sides of every equation, in both orders."""
    for (left, right), comparison in zip(pairwise(chain.terms), chain.comparisons, strict=True):
        if comparison == "==":
            yield left, right
            yield right, left


@dataclass(frozen=True)
class _Rule:
    """Σ over `bound` of a product of entries is `result`; indices that begin with ? stand for any other."""

    bound: Place
    length: Expr
    factors: tuple[Atom, ...]
    result: Expr


def _rules(asked: Question, reader: Reader) -> Iterator[_Rule]:
    """What the assumed equations say of sums of products."""
    for chain in asked.assumptions:
        for one, other in _equations(chain):
            try:
                left, right = reader.of(one), reader.of(other)
                if left.axes != right.axes:
                    continue
                at = tuple("1" if length == ONE else f"?{number}" for number, length in enumerate(left.axes))
                rule = _rule(left.entry(at), right.entry(at))
            except (Undecided, ArithmeticError):
                continue
            if rule is not None:
                yield rule


def _rule(left: Expr, right: Expr) -> _Rule | None:
    """The rule of c*n*Σ product == right, or of the root of such a sum == a number."""
    if len(left.terms) != 1 or any(atom[0] == "sum" for term, _ in right.terms for atom, _ in term):
        return None
    ((term, value),) = left.terms
    sums = [(atom, exponent) for atom, exponent in term if atom[0] == "sum"]
    others = [(atom, -exponent) for atom, exponent in term if atom[0] != "sum"]
    if len(sums) != 1 or any(atom[0] not in ("n", "num", "pi") for atom, _ in others):
        return None
    ((atom, exponent),) = sums
    right = right * times(others, 1 / value)
    if exponent == HALF:
        right = right * right
    elif exponent != 1:
        return None
    _, ranges, inner = atom
    if len(ranges) != 1 or len(inner.terms) != 1:
        return None
    ((product_, factor),) = inner.terms
    factors = _written_out(product_)
    if factors is None:
        return None
    ((bound, length),) = ranges
    return _Rule(bound, length, factors, right.scaled(1 / factor))


def _written_out(term: Term) -> tuple[Atom, ...] | None:
    """The entries of a product one by one; None if it is no product of few entries."""
    if any(atom[0] != "x" or exponent.denominator > 1 or exponent < 1 for atom, exponent in term):
        return None
    factors = tuple(atom for atom, exponent in term for _ in range(min(int(exponent), FACTORS + 1)))
    return factors if 0 < len(factors) <= FACTORS else None


def _reduced(value: Expr, rules: list[_Rule]) -> Expr:
    """The same with the rules applied, until none applies."""
    for _ in range(STEPS if rules else 0):
        changed = over_atoms(value, lambda atom: _changed(atom, rules))
        if changed == value:
            break
        value = changed
    return value


def _changed(atom: Atom, rules: list[_Rule]) -> Expr:
    match atom:
        case ("sum", ranges, inner):
            fresh = {bound: new_place() for bound, _ in ranges}
            body, moved = renamed(inner, fresh), [(fresh[bound], length) for bound, length in ranges]
            for rule in rules:
                found = _applied(rule, body, moved)
                if found is not None:
                    return found
            changed = over_atoms(body, lambda each: _changed(each, rules))
            return of_atom(*atom) if changed == body else summed(changed, moved)
        case (kind, Expr() as inner):
            changed = over_atoms(inner, lambda each: _changed(each, rules))
            return of_atom(*atom) if changed == inner else FUNCTIONS[kind](changed)
    return of_atom(*atom)


def _applied(rule: _Rule, body: Expr, ranges: list[tuple[Place, Expr]]) -> Expr | None:
    """A sum in which an index stands just where the bound one of the rule does."""
    if len(body.terms) != 1:
        return None
    ((term, value),) = body.terms
    for place, length in ranges:
        mine = tuple(pair for pair in term if has(pair[0], place))
        factors = _written_out(mine) if length == rule.length else None
        if factors is None or len(factors) != len(rule.factors):
            continue
        for order in permutations(factors):
            places = _matched(rule, order, place)
            if places is not None:
                rest = times([pair for pair in term if pair not in mine], value)
                left = [(each, n) for each, n in ranges if each != place]
                return summed(rest * renamed(rule.result, places), left)
    return None


def _matched(rule: _Rule, factors: tuple[Atom, ...], place: Place) -> dict[Place, Place] | None:
    """The indices that the rule's stand for."""
    places: dict[Place, Place] = {rule.bound: place}
    for (_, name, at), (_, same, here) in zip(rule.factors, factors, strict=True):
        if name != same or len(at) != len(here):
            return None
        for one, other in zip(at, here, strict=True):
            if one.startswith("?") and one not in places and other != place:
                places[one] = other
            elif places.get(one, one) != other:
                return None
    return places
