"""Orders with differences, where an assumption says which of two sizes is larger: N > D is N = D + k for a size k.

N in O(N - D) asks whether D + k is in O(k), which k = 1 refutes: N = t + 1 and D = t.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction

from likewise.claims.growth.upper import whole
from likewise.claims.language.claim import Bounded, Claim, Size
from likewise.claims.language.expressions import rebuilt
from likewise.claims.language.parser import over
from likewise.claims.language.tree import Binary, Chain, Name, Negative, Node, Number, children, names
from likewise.claims.verdict import Finding

LETTERS = ("k", "j", "l", "m", "p", "r", "s")
Ray = dict[int, int]  # a size along a ray: coefficients by exponents of t


def decide(claim: Claim, ask: Callable[[Claim], Finding]) -> Finding | None:
    """Decided with the larger size written as the smaller one and what it has more."""
    relation = claim.relation
    if not isinstance(relation, Bounded) or isinstance(relation.quantity, str):
        return None
    if not _subtracts(relation.quantity) and not _subtracts(relation.bound):
        return None
    free = {size.name for size in claim.sizes if size.equation is None}
    if len(free) < len(claim.sizes) or not names(relation.quantity) | names(relation.bound) <= free:
        return None
    for chain in claim.assumptions:
        for larger, smaller, is_strict in _larger(chain, free):
            more = next((letter for letter in LETTERS if letter not in free), None)
            if more is None:
                return None
            values: list[Node] = [Binary("+", smaller, Name(more))] + ([] if is_strict else [smaller])
            found = [_case(claim, chain, larger, value, more, ask) for value in values]
            refuted = next((each for each in found if each.verdict == "refuted"), None)
            if refuted is not None:
                return refuted
            if all(each.verdict == "holds" for each in found):
                return replace(found[0], detail=f"{found[0].detail}, with {larger} = {values[0]}", suggestions=())
    return None


def _case(claim: Claim, chain: Chain, larger: str, value: Node, more: str, ask: Callable[[Claim], Finding]) -> Finding:
    """What is found with a value for the larger size; of a refutation its ray is that of the claim."""

    def put(node: Node) -> Node:
        return value if node == Name(larger) else rebuilt(node, put)

    sizes = [size for size in claim.sizes if size.name != larger]
    sizes += [Size(more)] if more in names(value) else []
    rest = tuple(over(each, put) for each in claim.assumptions if each is not chain)
    found = ask(replace(claim, sizes=tuple(sizes), assumptions=rest, relation=over(claim.relation, put)))
    if found.verdict != "refuted":
        return found
    rays: dict[str, Ray] = {}
    for name, text in found.witness:
        ray = along(text)
        if ray is None:
            return replace(found, verdict="inconclusive", grade="undecided")
        rays[name] = ray
    mine = _value(value, rays)
    witness = tuple(
        (size.name, written(mine if size.name == larger else rays.get(size.name, {0: 1}))) for size in claim.sizes
    )
    where = ", ".join(f"{name}={text}" for name, text in witness)
    detail = f"{relation_text(claim)} fails along {where}"
    return replace(found, detail=detail, witness=witness, suggestions=())


def relation_text(claim: Claim) -> str:
    """The relation as it is printed."""
    return str(claim.relation)


def along(text: str) -> Ray | None:
    """A size along a ray: `2*t^3+t+1`.

    >>> along("2*t^3+t+1"), along("7")
    ({3: 2, 1: 1, 0: 1}, {0: 7})
    """
    found: Ray = {}
    for part in text.replace(" ", "").split("+"):
        factor, _, power = part.partition("*") if "*" in part else ("1", "", part)
        if not power.startswith("t"):
            factor, power = part, "t^0"
        exponent = power.removeprefix("t").removeprefix("^") or "1"
        if not factor.isdigit() or not exponent.isdigit():
            return None
        found[int(exponent)] = found.get(int(exponent), 0) + int(factor)
    return found


def written(ray: Ray) -> str:
    """The text of a ray.

    >>> written({3: 2, 1: 1, 0: 1})
    '2*t^3+t+1'
    """
    parts = []
    for exponent, factor in sorted(ray.items(), reverse=True):
        power = "t" if exponent == 1 else f"t^{exponent}"
        parts.append(str(factor) if not exponent else power if factor == 1 else f"{factor}*{power}")
    return "+".join(parts)


def _value(node: Node, rays: dict[str, Ray]) -> Ray:
    """A sum or product of sizes along the rays."""
    match node:
        case Name(name):
            return rays.get(name, {0: 1})
        case Number(value):
            return {0: int(value)}
        case Binary("+", left, right):
            a, b = _value(left, rays), _value(right, rays)
            return {n: a.get(n, 0) + b.get(n, 0) for n in {*a, *b}}
        case Binary("*", left, right):
            found: Ray = {}
            for n, a in _value(left, rays).items():
                for m, b in _value(right, rays).items():
                    found[n + m] = found.get(n + m, 0) + a * b
            return found
    raise AssertionError(f"{node} is not whole")


def _larger(chain: Chain, free: set[str]) -> Iterator[tuple[str, Node, bool]]:
    """N, b and whether N > b, of an assumption N >= b or N > b with a whole b above 0."""
    if len(chain.comparisons) != 1:
        return
    (left, right), (comparison,) = chain.terms, chain.comparisons
    if comparison in ("<", "<="):
        left, right = right, left
    elif comparison not in (">", ">="):
        return
    if isinstance(left, Name) and left.name in free and whole(right) and names(right) and left.name not in names(right):
        yield left.name, right, comparison in (">", "<")


def _subtracts(node: Node) -> bool:
    mine = isinstance(node, Negative) or (isinstance(node, Binary) and node.operator == "-")
    mine = mine or (isinstance(node, Number) and node.value < Fraction(0))
    return mine or any(map(_subtracts, children(node)))
