"""Equations of sums of logarithms, by the products under them: log(a) + log(b) == log(c) where a*b == c.

Both sides are defined at the same points if everything under the left logarithms is above 0 just where everything
under the right ones is.
"""

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

from likewise.claims.language.claim import Claim, Compares
from likewise.claims.language.tree import Binary, Call, Chain, Negative, Node, Number, children
from likewise.claims.verdict import Finding

ENGINE = "logarithms"
MOST = 8  # logarithms, and the factor of one
ZERO, ONE = Number(Fraction(0)), Number(Fraction(1))
Ask = Callable[[Claim], Finding]
Parts = list[tuple[int, Node]]


def decide(claim: Claim, ask: Ask) -> Finding | None:
    """Proved, or None; `ask` decides claims without the logarithms."""
    relation = claim.relation
    if not isinstance(relation, Compares) or relation.within or relation.chain.comparisons != ("==",):
        return None
    sides = [_logarithms(term, 1) for term in relation.chain.terms]
    left, right = sides
    if left is None or right is None or not 1 < len(left) + len(right) <= MOST:
        return None

    def holds(chains: list[Chain], given: list[Chain]) -> bool:
        for chain in chains:
            asked = replace(
                claim,
                relation=replace(relation, chain=chain),
                assumptions=(*claim.assumptions, *given),
                written="",
                raw=(),
            )
            found = ask(asked)
            if found.verdict != "holds" or found.where:
                return False
        return True

    above = [[Chain((part, ZERO), (">",)) for _, part in side] for side in (left, right)]
    equation = Chain((_product(left), _product(right)), ("==",))
    if holds([equation], above[0] + above[1]) and holds(above[1], above[0]) and holds(above[0], above[1]):
        return Finding("holds", "proved", f"for all values (logarithms of {equation})", ENGINE)
    return None


def _logarithms(node: Node, factor: int) -> Parts | None:
    """What stands under the logarithms of a sum, with the factors of these; None of other sums."""
    match node:
        case Number(value) if value == 0:
            return []
        case Call("log", (inner,)) if isinstance(inner, Node) and not _takes_logarithms(inner):
            return [(factor, inner)]
        case Negative(operand):
            return _logarithms(operand, -factor)
        case Binary("+" | "-" as sign, left, right):
            one, other = _logarithms(left, factor), _logarithms(right, factor if sign == "+" else -factor)
            return None if one is None or other is None else one + other
        case Binary("*", Number(value), inner) | Binary("*", inner, Number(value)):
            whole = value.denominator == 1 and 0 < abs(value) <= MOST
            return _logarithms(inner, factor * int(value)) if whole else None
    return None


def _takes_logarithms(node: Node) -> bool:
    return (isinstance(node, Call) and node.function == "log") or any(map(_takes_logarithms, children(node)))


def _product(parts: Parts) -> Node:
    """The product of powers."""
    found: Node = ONE
    for factor, part in sorted(parts, key=lambda pair: -pair[0]):
        for _ in range(abs(factor)):
            found = part if found is ONE and factor > 0 else Binary("*" if factor > 0 else "/", found, part)
    return found
