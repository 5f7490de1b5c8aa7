"""Polynomials compared at all sizes: a proof that one is never below the other, or the first sizes at which it is.

Every size is at least 1. Written as 1 + x with x >= 0, a polynomial without a negative coefficient is never negative.
An assumption q >= 0 helps in two ways: it replaces a size (N >= 4*R: N is 4*R + x), or it is multiplied by a monomial
and taken away from what is to be proved.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import chain, product
from math import ceil

from likewise.claims.growth.cone import Ray, Sizes
from likewise.claims.growth.linear import lattice
from likewise.claims.growth.powers import Magnitude, Sum, magnitude, polynomial, power, times
from likewise.claims.language.claim import Claim, Compares, Tolerance
from likewise.claims.language.limits import DEGREE, MONOMIALS, SIZE
from likewise.claims.language.tree import NEGATED, Call, Chain, Comparison, Name, Node, children, fraction_text, names
from likewise.claims.verdict import Finding, Undecided
from likewise.polynomial import Polynomial, monomial

RADIUS, POINTS, WAYS = 5, 60_000, 64
ENGINE, EQUAL = "sizes", "equal as polynomials"
Fact = tuple[Polynomial, bool]  # at least 0; above 0 where True


@dataclass(frozen=True)
class Answer:
    """A proof; or the sizes that break a comparison, and both sides there."""

    proof: str
    point: Mapping[str, int] = field(default_factory=dict)
    values: tuple[Fraction, Fraction] = (Fraction(0), Fraction(0))


def cleared(*several: Sum) -> list[Polynomial]:
    """Sums with d/h in them, all multiplied by the sizes they are divided by: comparisons between them stay.

    >>> cleared({(("d", Fraction(1)), ("h", Fraction(-1))): Fraction(1)}, {(): Fraction(2)})
    [Polynomial('d'), Polynomial('2*h')]
    """
    below: dict[str, Fraction] = {}
    for name, exponent in (factor for terms in several for key in terms for factor in key):
        below[name] = max(below.get(name, Fraction(0)), -exponent)
    factor = power(below)
    found = [polynomial(Magnitude(({times(key, factor): value for key, value in terms.items()},))) for terms in several]
    if None in found:
        raise Undecided("roots of sizes are compared by their order only")
    return [part for part in found if part is not None]


def compared(left: Node, comparison: Comparison, right: Node, sizes: Sizes, within: Tolerance | None = None) -> Answer:
    """How a comparison over sizes was proved at all sizes the claim allows, or the first free sizes that break it.

    A maximum stands on either side only as a whole: it is at most c when each of its arguments is.

    >>> from likewise.claims.language.tree import Binary
    >>> n, sizes = Name("N"), Sizes(("N",), {}, ())
    >>> compared(Binary("*", n, n), ">=", n, sizes).proof
    'no negative coefficient at sizes 1 + x'
    >>> compared(Binary("*", n, n), ">", n, sizes)
    Answer(proof='', point={'N': 1}, values=(Fraction(1, 1), Fraction(1, 1)))
    """
    sides = [_arguments(node, sizes) for node in (left, right)]
    whole = cleared(*sides[0], *sides[1])
    degree = max(part.degree for part in whole)
    if degree > DEGREE:
        raise Undecided(f"a polynomial of degree {degree}; at most {DEGREE}")
    proof = _proof(whole[: len(sides[0])], whole[len(sides[0]) :], comparison, sizes, within)
    if proof:
        return Answer(proof)
    if sizes.forgotten:
        raise Undecided(f"the assumption {sizes.forgotten} is not decided")
    for point in _points(sizes):
        here = Ray({name: (value, 0) for name, value in point.items()})
        values = [max(sum(here.along(terms).values(), Fraction(0)) for terms in side) for side in sides]
        if not met(values[0], comparison, values[1], within) and sizes.allows(here):
            return Answer("", point, (values[0], values[1]))
    raise Undecided("neither proved, nor broken at any of the sizes tried")


def met(left: Fraction, comparison: Comparison, right: Fraction, within: Tolerance | None) -> bool:
    """Whether two numbers compare so; `within` loosens an equality."""
    slack = Fraction(0) if within is None else within.value * (abs(right) if within.relative else 1)
    return {
        "==": abs(left - right) <= slack,
        "!=": left != right,
        "<": left < right,
        "<=": left <= right,
        ">": left > right,
        ">=": left >= right,
    }[comparison]


def _arguments(node: Node, sizes: Sizes) -> list[Sum]:
    """Those of a maximum, or the whole; equations put in."""
    parts = children(node) if isinstance(node, Call) and node.function == "max" else (node,)
    found = [sizes.over_free(magnitude(part, sizes.names)) for part in parts]
    if not all(part.exact and len(part.sums) == 1 for part in found):
        raise Undecided("what is compared is no polynomial of the sizes, nor a maximum of some")
    return [part.sums[0] for part in found]


def _proof(
    left: list[Polynomial], right: list[Polynomial], comparison: Comparison, sizes: Sizes, within: Tolerance | None
) -> str:
    """Why the comparison holds at all sizes; empty where no reason was found."""
    if comparison in (">", ">="):
        return _proof(right, left, "<" if comparison == ">" else "<=", sizes, None)
    if comparison == "!=":
        return _proof(left, right, "<", sizes, None) or _proof(right, left, "<", sizes, None)
    if comparison == "==" and within is not None:
        # an absolute tolerance stays right under `cleared`, whose factor is at least 1, but is then too strict
        share, more = (within.value, 0) if within.relative else (Fraction(0), within.value)
        if share and not all(never_negative(part, sizes) for part in right):
            return ""
        above, below = ([part * (1 + sign * share) + sign * more for part in right] for sign in (1, -1))
        reasons = [_proof(left, above, "<=", sizes, None), _proof(below, left, "<=", sizes, None)]
        return reasons[0] if all(reasons) else ""
    if comparison == "==":
        reasons = [_proof(left, right, "<=", sizes, None), _proof(right, left, "<=", sizes, None)]
        return reasons[0] if all(reasons) else ""
    reason = ""
    for small in left:
        for large in right:
            facts, target = _facts(sizes, large - small)
            reason = EQUAL if not target and comparison == "<=" else _proved(target, comparison == "<", facts) or ""
            if reason:
                break
        else:
            return ""
    return reason


def _points(sizes: Sizes) -> Iterator[dict[str, int]]:
    """Small sizes in order, then powers of two up to SIZE."""
    free = sizes.free
    small = ([entry + 1 for entry in point] for point in lattice(len(free), RADIUS, least=0))
    doubling = [2**k for k in range(SIZE.bit_length())]
    large = product(doubling, repeat=len(free)) if len(doubling) ** len(free) <= POINTS else ()
    for values in chain(small, sorted(large, key=lambda point: (max(point, default=0), sum(point)))):
        yield dict(zip(free, values, strict=True))


def never_negative(part: Polynomial, sizes: Sizes) -> bool:
    """Whether a polynomial was proved to be at least 0 at all sizes."""
    facts, target = _facts(sizes, part)
    return not target or _proved(target, False, facts) is not None


def _facts(sizes: Sizes, target: Polynomial) -> tuple[list[Fact], Polynomial]:
    """The assumptions as facts, and the target after equal sizes were put in (M == D)."""
    facts: list[Fact] = []
    equal: list[Polynomial] = []
    for terms, comparison in sizes.conditions:
        (part,) = cleared(terms)
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


def decide(claim: Claim) -> Finding | None:
    """A comparison of polynomials over sizes alone, at all sizes."""
    relation = claim.relation
    scope = {size.name for size in claim.sizes}
    if not isinstance(relation, Compares) or claim.variables or not scope:
        return None
    if not all(names(term) <= scope for term in relation.chain.terms):
        return None
    return findings(claim, relation, ("proved", "exact witness"))


def findings(claim: Claim, relation: Compares, grades: tuple[str, str]) -> Finding:
    """What becomes of each link of a chain over sizes."""
    sizes, terms = Sizes.of(claim), relation.chain.terms
    proofs = []
    for left, comparison, right in zip(terms, relation.chain.comparisons, terms[1:], strict=False):
        answer = compared(left, comparison, right, sizes, relation.within)
        if not answer.proof:
            return refutation(answer, comparison, sizes, grades[1])
        proofs.append(answer.proof)
    detail = "; ".join(dict.fromkeys(proofs))
    if not sizes.names:
        values = [fraction_text(max(sum(part.values(), Fraction(0)) for part in _arguments(t, sizes))) for t in terms]
        detail = str(Compares(Chain(tuple(map(Name, values)), relation.chain.comparisons), relation.within))
    return Finding("holds", grades[0], detail, ENGINE)


def refutation(answer: Answer, comparison: Comparison, sizes: Sizes, grade: str, more: str = "") -> Finding:
    """The sizes, given by equations or free, and both values there."""
    ray = Ray({name: (value, 0) for name, value in answer.point.items()})
    values = {name: sum(ray.along(part.sums[0]).values(), Fraction(0)) for name, part in sizes.equations.items()}
    witness = tuple((name, str({**answer.point, **values}[name])) for name in sizes.names)
    left, right = map(fraction_text, answer.values)
    what = f"{left} {NEGATED[comparison]} {right}"
    where = " ".join(f"{name}={value}" for name, value in witness)
    found = witness or (("left", left), ("right", right))
    return Finding("refuted", grade, f"{where}: {what}".removeprefix(": ") + more, ENGINE, found)
