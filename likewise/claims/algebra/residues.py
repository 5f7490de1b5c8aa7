"""Congruences of whole numbers: what is true of every residue is true of every whole number.

The remainder of a polynomial with whole coefficients, mod(n^3 - n, 6), depends on n only through mod(n, 6), so that six
values of n decide it. Two such polynomials that differ modulo one number at all residues are never equal:
n^2 != 3*m^2 + 2. Powers of a number repeat: mod(2^N, 7) depends on mod(N, 3). Assumed congruences leave residues out.
"""

from collections.abc import Iterator, Mapping
from itertools import product
from math import lcm

from likewise.claims.language.claim import Claim, Compares, Integers
from likewise.claims.language.tree import Binary, Call, Chain, Comparison, Name, Negative, Node, Number, children, names
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
    given = [chain for chain in claim.assumptions if _tells(chain, used)]
    moduli += [each for chain in given for term in chain.terms for each in _moduli(term)]
    raised = {name for chain in (relation.chain, *given) for term in chain.terms for name in _exponents(term)}
    modulus = lcm(*moduli)
    start = max(moduli, default=1).bit_length()  # from there on the powers repeat
    if not moduli or (modulus + start) ** len(used) > POINTS or not raised <= {size.name for size in claim.sizes}:
        return None
    ranges = [range(1, start + modulus) if name in raised else range(modulus) for name in used]
    for residues in product(*ranges):
        at = dict(zip(used, residues, strict=True))
        if all(_true(chain, at) for chain in given) and not _true(relation.chain, at):
            return None
    return _proved(used, modulus)


def _tells(chain: Chain, used: list[str]) -> bool:
    """Whether an assumption speaks of remainders of these names alone."""
    try:
        moduli = [each for term in chain.terms for each in _moduli(term)]
    except Undecided:
        return False
    return bool(moduli) and frozenset[str]().union(*map(names, chain.terms)) <= set(used)


def _true(chain: Chain, at: Mapping[str, int]) -> bool:
    values = [_value(term, at) for term in chain.terms]
    pairs = zip(chain.comparisons, values, values[1:], strict=False)
    return all((a > b) - (a < b) in HOLDS[sign] for sign, a, b in pairs)


def _exponents(node: Node) -> frozenset[str]:
    """Names that stand in an exponent."""
    mine = names(node.right) if isinstance(node, Binary) and node.operator == "^" else frozenset[str]()
    return frozenset(mine.union(*map(_exponents, children(node))))


def _bases(node: Node) -> Iterator[int]:
    """Numbers that are raised to a power with a name in it."""
    match node:
        case Binary("^", Number(value), right) if names(right):
            yield int(value)
        case _:
            for child in children(node):
                yield from _bases(child)


def _period(base: int, modulus: int) -> int:
    """After how many steps the powers of a number repeat."""
    seen: dict[int, int] = {}
    value, n = 1 % modulus, 0
    while value not in seen:
        seen[value] = n
        value, n = value * base % modulus, n + 1
    return n - seen[value]


def _proved(used: list[str], modulus: int) -> Finding:
    return Finding("holds", "proved", f"for all residues of {', '.join(used)} modulo {modulus}", engine="algebra")


def _never_equal(terms: tuple[Node, ...], used: list[str]) -> Finding | None:
    """Two polynomials that differ, modulo some number, at all residues."""
    if not all(map(_is_polynomial, terms)) or any(map(_exponents, terms)):
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
            yield from (_period(base, int(value)) for base in _bases(inner))  # ty: ignore[invalid-argument-type]
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
        case Binary("^", Number(value), Name()):
            return value.denominator == 1 and abs(value) <= HIGHEST
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
        case Binary("^", left, right):
            return _value(left, at) ** _value(right, at)
        case Call("mod", (inner, Number(value))):
            return _value(inner, at) % int(value)  # ty: ignore[invalid-argument-type]
    raise Undecided(f"no whole number: {node}")
