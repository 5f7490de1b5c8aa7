"""Congruences of whole numbers: what is true of every residue is true of every whole number.

The remainder of a polynomial with whole coefficients, mod(n^3 - n, 6), depends on n only through mod(n, 6), so that six
values of n decide it. Two such polynomials that differ modulo one number at all residues are never equal:
n^2 != 3*m^2 + 2.
"""

from collections.abc import Iterator, Mapping
from itertools import product
from math import lcm

from likewise.claims.language.claim import Claim, Compares, Integers
from likewise.claims.language.tree import Binary, Call, Comparison, Name, Negative, Node, Number, names
from likewise.claims.verdict import Finding, Undecided

POINTS = 20_000  # residues that are tried, at most
HIGHEST = 64  # exponent, and modulus for two polynomials that are never equal
HOLDS: dict[Comparison, frozenset[int]] = {
    "==": frozenset({0}),
    "!=": frozenset({-1, 1}),
    "<": frozenset({-1}),
    "<=": frozenset({-1, 0}),
    ">": frozenset({1}),
    ">=": frozenset({0, 1}),
}


def decide(claim: Claim) -> Finding | None:
    """Proved if it is true of all residues; what is false of one is left to the engines that look for a point."""
    relation = claim.relation
    if not isinstance(relation, Compares) or relation.within is not None or claim.source is not None:
        return None
    whole = {size.name for size in claim.sizes if size.equation is None}
    whole |= {each.name for each in claim.variables if isinstance(each.kind, Integers)}
    terms = relation.chain.terms
    used = sorted(frozenset[str]().union(*map(names, terms)))
    if not used or not whole.issuperset(used):
        return None
    try:
        moduli = [each for term in terms for each in _moduli(term)]
    except Undecided:
        return _never_equal(terms, used) if relation.chain.comparisons == ("!=",) else None
    modulus = lcm(*moduli)
    if not moduli or modulus ** len(used) > POINTS:
        return None
    for at in _points(used, modulus):
        values = [_value(term, at) for term in terms]
        pairs = zip(relation.chain.comparisons, values, values[1:], strict=False)
        if not all((a > b) - (a < b) in HOLDS[sign] for sign, a, b in pairs):
            return None
    return _proved(used, modulus)


def _proved(used: list[str], modulus: int) -> Finding:
    return Finding("holds", "proved", f"for all residues of {', '.join(used)} modulo {modulus}", engine="algebra")


def _never_equal(terms: tuple[Node, ...], used: list[str]) -> Finding | None:
    """Two polynomials that differ, modulo some number, at all residues."""
    if not all(map(_is_polynomial, terms)):
        return None
    left, right = terms
    for modulus in range(2, HIGHEST + 1):
        if modulus ** len(used) > POINTS:
            return None
        if all((_value(left, at) - _value(right, at)) % modulus for at in _points(used, modulus)):
            return _proved(used, modulus)
    return None


def _points(used: list[str], modulus: int) -> Iterator[Mapping[str, int]]:
    for residues in product(range(modulus), repeat=len(used)):
        yield dict(zip(used, residues, strict=True))


def _moduli(node: Node) -> Iterator[int]:
    """The moduli of an expression in which names stand only inside remainders; Undecided if they stand elsewhere."""
    match node:
        case Number(value) if value.denominator == 1:
            return
        case Negative(operand):
            yield from _moduli(operand)
        case Binary("+" | "-" | "*", left, right):
            yield from _moduli(left)
            yield from _moduli(right)
        case Binary("^", left, Number(power)) if _is_exponent(power):
            yield from _moduli(left)
        case Call("mod", (inner, Number(value))) if value.denominator == 1 and value > 0 and _is_polynomial(inner):  # ty: ignore[invalid-argument-type]
            yield int(value)
        case _:
            raise Undecided("a name outside of a remainder")


def _is_polynomial(node: Node) -> bool:
    """Whether whole numbers give a whole number by sums, products and powers alone."""
    match node:
        case Number(value):
            return value.denominator == 1
        case Name():
            return True
        case Negative(operand):
            return _is_polynomial(operand)
        case Binary("+" | "-" | "*", left, right):
            return _is_polynomial(left) and _is_polynomial(right)
        case Binary("^", left, Number(power)):
            return _is_exponent(power) and _is_polynomial(left)
    return False


def _is_exponent(power: object) -> bool:
    return power in range(1, HIGHEST + 1)


def _value(node: Node, at: Mapping[str, int]) -> int:
    match node:
        case Number(value):
            return int(value)
        case Name(name):
            return at[name]
        case Negative(operand):
            return -_value(operand, at)
        case Binary("+", left, right):
            return _value(left, at) + _value(right, at)
        case Binary("-", left, right):
            return _value(left, at) - _value(right, at)
        case Binary("*", left, right):
            return _value(left, at) * _value(right, at)
        case Binary("^", left, Number(power)):
            return _value(left, at) ** int(power)
        case Call("mod", (inner, Number(value))):
            return _value(inner, at) % int(value)  # ty: ignore[invalid-argument-type]
    raise Undecided(f"no whole number: {node}")
