"""Polynomials compared at all sizes: a proof that one is never below the other, or the first sizes at which it is.

Every size is at least 1. Written as 1 + x with x >= 0, a polynomial without a negative coefficient is never negative.
An assumption q >= 0 helps in two ways: it replaces a size (N >= 4*R: N is 4*R + x), or it is multiplied by a monomial
and taken away from what is to be proved.
"""

from collections.abc import Iterator, Mapping
from fractions import Fraction
from itertools import product
from math import ceil

from likewise.claims.cone import Ray, Sizes
from likewise.claims.limits import DEGREE, MONOMIALS, SIZE
from likewise.claims.linear import lattice
from likewise.claims.powers import Growth, Sum, polynomial, times
from likewise.claims.tree import Comparison
from likewise.claims.verdict import Undecided
from likewise.polynomial import Polynomial, monomial

RADIUS, POINTS, WAYS = 5, 60_000, 64
Fact = tuple[Polynomial, bool]  # at least 0; above 0 where True


def cleared(terms: Sum) -> Polynomial:
    """A sum with d/h in it, multiplied by the sizes it is divided by: its sign stays.

    >>> cleared({(("d", Fraction(1)), ("h", Fraction(-1))): Fraction(1), (): Fraction(-2)})
    Polynomial('d - 2*h')
    """
    below: dict[str, Fraction] = {}
    for key in terms:
        for name, exponent in key:
            below[name] = max(below.get(name, Fraction(0)), -exponent)
    factor = tuple(sorted((name, exponent) for name, exponent in below.items() if exponent))
    found = polynomial(Growth(({times(key, factor): value for key, value in terms.items()},)))
    if found is None:
        raise Undecided("roots of sizes are compared by their order only")
    return found


def compared(difference: Sum, comparison: Comparison, sizes: Sizes) -> dict[str, int] | str:
    """How `difference ? 0` was proved at all sizes the claim allows, or free sizes that break it.

    >>> n = (("N", Fraction(1)),)
    >>> sizes = Sizes(("N",), {}, ())
    >>> compared({times(n, n): Fraction(1), n: Fraction(-1)}, ">=", sizes)
    'no negative coefficient at sizes 1 + x'
    >>> compared({times(n, n): Fraction(1), n: Fraction(-1)}, ">", sizes)
    {'N': 1}
    """
    target = cleared(difference)
    if target.degree > DEGREE:
        raise Undecided(f"a polynomial of degree {target.degree}; at most {DEGREE}")
    facts, target = _facts(sizes, target)
    if not target and comparison in ("==", "<=", ">="):
        return "equal as polynomials"
    for sign in {"<": [-1], "<=": [-1], ">": [1], ">=": [1], "!=": [1, -1]}.get(comparison, []):
        reason = _proved(sign * target, comparison not in ("<=", ">="), facts)
        if reason:
            return reason
    if sizes.forgotten:
        raise Undecided(f"the assumption {sizes.forgotten} is not decided")
    broken = _first_broken(cleared(difference), comparison, sizes)
    if broken is None:
        raise Undecided("neither proved, nor broken at any of the sizes tried")
    return broken


def never_negative(terms: Sum, sizes: Sizes) -> bool:
    """Whether a sum was proved to be at least 0 at all sizes."""
    facts, target = _facts(sizes, cleared(terms))
    return not target or _proved(target, False, facts) is not None


def _facts(sizes: Sizes, target: Polynomial) -> tuple[list[Fact], Polynomial]:
    """The assumptions as facts, and the target after equal sizes were put in (M == D)."""
    facts: list[Fact] = []
    equal: list[Polynomial] = []
    for terms, comparison in sizes.conditions:
        part = cleared(terms)
        if comparison == "==":
            equal.append(part)
        elif comparison != "!=":
            facts.append((part if comparison in (">", ">=") else -part, comparison in ("<", ">")))
    facts += [(Polynomial.variable(name) - 1, False) for name in sizes.free]
    for place, part in enumerate(equal):
        solved = next(_solved(part), None)
        if solved is None:
            facts += [(part, False), (-part, False)]
            continue
        target = target.substitute(solved)
        facts = [(fact.substitute(solved), strict) for fact, strict in facts]
        equal[place + 1 :] = [other.substitute(solved) for other in equal[place + 1 :]]
    return [fact for fact in facts if fact[0]], target


def _solved(part: Polynomial) -> Iterator[dict[str, Polynomial]]:
    """Ways to read part = 0 as name = the rest."""
    for name in sorted(part.variables):
        factor = part.coefficient((name, 1))
        if abs(factor) == 1 and part.degree_in(name) == 1 and part.coefficients(name)[1] == factor:
            yield {name: Polynomial.variable(name) - factor * part}


def _proved(target: Polynomial, strict: bool, facts: list[Fact]) -> str | None:
    """A reason why the target is never negative (strict: always positive)."""
    least = _least(facts)
    start = "sizes 1 + x" if set(least.values()) <= {1} else "sizes from the assumed ones on"
    if _clear(target, strict, least):
        return f"no negative coefficient at {start}"
    for replacement in _replacements(facts):
        if _clear(target.substitute(replacement), strict, {**least, **dict.fromkeys(replacement, 0)}):
            return "no negative coefficient once the assumptions are put in"
    for fact, above in facts:
        for (term, value), (other, factor) in product(target.terms.items(), fact.terms.items()):
            exponents = dict(term)
            for name, exponent in other:
                exponents[name] = exponents.get(name, 0) - exponent
            if value > 0 < factor and min(exponents.values(), default=0) >= 0:
                used = Polynomial({monomial(exponents.items()): value / factor}) * fact
                if _clear(target - used, strict and not above, least):
                    return "an assumption times a monomial"
    return None


def _least(facts: list[Fact]) -> dict[str, int]:
    """The smallest value that each size may take, as far as an assumption about it alone says so."""
    least: dict[str, int] = {}
    for fact, strict in facts:
        if len(fact.variables) == 1 and fact.degree == 1:
            (name,) = fact.variables
            factor = fact.coefficient((name, 1))
            if factor > 0:
                bound = -fact.coefficient() / factor
                whole = ceil(bound) + (strict and bound.denominator == 1)
                least[name] = max(least.get(name, 1), whole)
    return least


def _replacements(facts: list[Fact]) -> list[dict[str, Polynomial]]:
    """Sizes replaced by what they are at least, plus a slack of the same name."""
    ways: list[dict[str, Polynomial]] = [{}]
    for fact, strict in facts:
        if len(fact.variables) < 2:
            continue
        whole = all(value.denominator == 1 for value in fact.terms.values())
        bound = fact - 1 if strict and whole else fact
        for way in list(ways):
            for solved in _solved(bound):
                ((name, _),) = solved.items()
                if bound.coefficient((name, 1)) < 0 or name in way:
                    continue
                lower = {name: solved[name].substitute(way) + Polynomial.variable(name)}
                if len(ways) < WAYS and name not in solved[name].substitute(way).variables:
                    ways.append({**{key: value.substitute(lower) for key, value in way.items()}, **lower})
    return ways[1:]


def _clear(target: Polynomial, strict: bool, least: Mapping[str, int]) -> bool:
    """Whether no coefficient is negative once every size is its least value plus x."""
    size = 1
    for name in target.variables:
        size *= target.degree_in(name) + 1
    if size > MONOMIALS:
        raise Undecided(f"more than {MONOMIALS} terms")
    shifted = target.substitute({name: Polynomial.variable(name) + least.get(name, 1) for name in target.variables})
    return min(shifted.terms.values(), default=Fraction(0)) >= 0 and (not strict or shifted.coefficient() > 0)


def _first_broken(target: Polynomial, comparison: Comparison, sizes: Sizes) -> dict[str, int] | None:
    """The first allowed sizes at which the comparison fails: small ones in order, then powers of two up to SIZE."""
    free = sizes.free
    small = ([entry + 1 for entry in point] for point in lattice(len(free), RADIUS, least=0))
    doubling = [2**k for k in range(SIZE.bit_length())]
    large = product(doubling, repeat=len(free)) if len(doubling) ** len(free) <= POINTS else ()
    for values in (*small, *sorted(large, key=lambda point: (max(point, default=0), sum(point)))):
        point = dict(zip(free, values, strict=True))
        value = target.evaluate(point)
        fails = {"==": value != 0, "!=": value == 0, "<": value >= 0, "<=": value > 0, ">": value <= 0, ">=": value < 0}
        if fails[comparison] and sizes.allows(Ray({name: (x, 0) for name, x in point.items()})):
            return point
    return None
