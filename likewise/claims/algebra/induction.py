"""Sums and products over an index up to a size, and factorials, by induction on the size.

S(N) REL g(N) follows from the smallest N and from g(N) + body(N+1) REL g(N+1), for a product from g(N)*body(N+1).
Both are claims without the sum, which all engines may decide. The largest term of all is compared term by term.
"""

import operator
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from math import ceil, floor

from likewise.claims.algebra.questions import FLIPPED
from likewise.claims.language.claim import Claim, Compares, Reals, Size, Variable
from likewise.claims.language.expressions import rebuilt
from likewise.claims.language.parser import over
from likewise.claims.language.tree import (
    Binary,
    Call,
    Chain,
    Comparison,
    Indexed,
    Name,
    Node,
    Number,
    children,
    names,
)
from likewise.claims.spelling import put
from likewise.claims.verdict import Finding

ENGINE = "induction"
ONE, ZERO = Number(Fraction(1)), Number(Fraction(0))
MOST = 12  # values of a size that are tried one by one
TRUTH: dict[str, Callable[[Fraction, Fraction], bool]] = {
    "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip
STEPS = 6  # of a factorial beyond its size: (N + 6)! is a product times N!
WEAK: dict[str, Comparison] = {"<": "<=", ">": ">="}
Ask = Callable[[Claim], Finding]


def decide(claim: Claim, ask: Ask) -> Finding | None:
    """Proved by induction, or None; `ask` decides claims without the sum."""
    relation = claim.relation
    if not isinstance(relation, Compares) or relation.within or len(relation.chain.terms) != 2:
        return None
    (left, right), (sign,) = relation.chain.terms, relation.chain.comparisons
    if sign == "!=":
        return None
    found = _at_every_size(claim, ask)
    if found is not None:
        return found
    for total, other, how in ((left, right, sign), (right, left, FLIPPED[sign])):
        found = _by_induction(claim, _as_product(total), other, how, ask)
        if found is not None:
            return found
    return _by_recursion(claim, ask)


def _at_every_size(claim: Claim, ask: Ask) -> Finding | None:
    """Proved at each value of a size that the assumptions bound by numbers."""
    axes = {name for each in claim.variables for dim in _dims(each) for name in names(dim)}
    given = {name for each in claim.sizes if each.equation is not None for name in (each.name, *names(each.equation))}
    for each in claim.sizes:
        tops = [top for chain in claim.assumptions for top in _tops(chain, each.name)]
        if each.name in axes | given or not tops or min(tops) > MOST:
            continue
        parts = [holds_at(claim, value, each.name) for value in range(1, min(tops) + 1)]
        parts = [part for part in parts if not any(map(_false, part.assumptions))]
        if parts and all(ask(part).verdict == "holds" for part in parts):
            return Finding("holds", "proved", f"for each of {len(parts)} values of {each.name}", ENGINE)
    return None


def _tops(chain: Chain, name: str) -> Iterator[int]:
    """What a chain says a size is at most."""
    for left, sign, right in zip(chain.terms, chain.comparisons, chain.terms[1:], strict=False):
        for a, how, b in ((left, sign, right), (right, FLIPPED[sign], left)):
            if a == Name(name) and how in ("<", "<=") and isinstance(b, Number):
                yield floor(b.value) if how == "<=" else ceil(b.value) - 1


def _false(chain: Chain) -> bool:
    """Whether a comparison of written numbers is false."""
    pairs = zip(chain.terms, chain.comparisons, chain.terms[1:], strict=False)
    return any(
        isinstance(a, Number) and isinstance(b, Number) and not TRUTH[sign](a.value, b.value) for a, sign, b in pairs
    )


def _as_product(node: Node) -> Node:
    """N! as the product of the numbers up to N."""
    match node:
        case Call("factorial", (Name(name),)):
            return Indexed("prod", f"{name}'", ONE, Name(name), Name(f"{name}'"))
    return node


def _by_induction(claim: Claim, total: Node, other: Node, sign: Comparison, ask: Ask) -> Finding | None:
    if not isinstance(total, Indexed) or not isinstance(claim.relation, Compares):
        return None
    size, beyond = _end(total.highest)
    free = [each.name for each in claim.sizes if each.equation is None]
    if size not in free or size in names(total.body) | names(total.lowest) or any(map(_indexed, children(total))):
        return None
    if _indexed(other) or any(size in names(dim) for each in claim.variables for dim in _dims(each)):
        return None
    base = _least(claim, size)
    if base is None:
        return None
    n = Name(size)
    bigger: Node = Binary("+", n, ONE)
    added = put(total.body, {total.index: _plus(n, beyond + 1)})
    later = put(other, {size: bigger})
    every = (total.function, sign) in (("max", "<="), ("max", "<"), ("min", ">="), ("min", ">"))
    if every and size not in names(other):
        return _every_term(claim, total, other, sign, ask)
    join = {"sum": lambda a, b: Binary("+", a, b), "prod": lambda a, b: Binary("*", a, b)}.get(
        total.function, lambda a, b: Call(total.function, (a, b))
    )
    if total.function in ("max", "min", "mean") and (sign != "==" or total.function == "mean"):
        return None
    here = holds_at(claim, base, size)
    wanted = [_claim(claim, Chain((join(other, added), later), (WEAK.get(sign, sign),)))]
    if total.function == "prod" and sign != "==":
        wanted.append(_claim(claim, Chain((added, ZERO), (">" if sign in WEAK else ">=",))))
    for part in (here, *wanted):
        seen = ask(part)
        if seen.verdict != "holds" or seen.where:
            return None
    return Finding("holds", "proved", f"for every {size} (induction from {size}={base})", ENGINE)


def _every_term(claim: Claim, total: Indexed, other: Node, sign: Comparison, ask: Ask) -> Finding | None:
    """The largest term is at most c where every term is."""
    if total.lowest != ONE:
        return None
    index = f"{total.index}'"
    size = Size(index, None)
    body = put(total.body, {total.index: Name(index)})
    seen = ask(replace(_claim(claim, Chain((body, other), (sign,))), sizes=(*claim.sizes, size)))
    if seen.verdict != "holds" or seen.where:
        return None
    return Finding("holds", "proved", "term by term", ENGINE)


def _by_recursion(claim: Claim, ask: Ask) -> Finding | None:
    """Factorials as a product times the factorial of their size, which may then be any number above 0."""
    used = {name for node in _factorials(claim.relation) for name in names(node)}
    if len(used) != 1 or not isinstance(claim.relation, Compares):
        return None
    (size,) = used
    if size not in {each.name for each in claim.sizes}:
        return None
    symbol = f"{size}'"
    failed: list[Node] = []

    def change(node: Node) -> Node:
        if isinstance(node, Call) and node.function == "factorial" and isinstance(node.arguments[0], Node):
            name, beyond = _end(node.arguments[0])
            if name != size or not 0 <= beyond <= STEPS:
                failed.append(node)
                return node
            product: Node = Name(symbol)
            for step in range(1, beyond + 1):
                product = Binary("*", product, _plus(Name(size), step))
            return product
        return rebuilt(node, change)

    relation = over(claim.relation, change)
    if failed:
        return None
    positive = Chain((Name(symbol), ONE), (">=",))
    variables = (*claim.variables, Variable(symbol, Reals()))
    seen = ask(
        replace(claim, relation=relation, variables=variables, assumptions=(*claim.assumptions, positive), written="")
    )
    if seen.verdict != "holds":
        return None
    return replace(seen, engine=ENGINE, detail=f"{seen.detail}, (N + 1)! = (N + 1)*N!", suggestions=())


def _factorials(relation: Compares | object) -> Iterator[Node]:
    waiting: list[Node] = list(relation.chain.terms) if isinstance(relation, Compares) else []
    while waiting:
        node = waiting.pop()
        if isinstance(node, Call) and node.function == "factorial":
            yield node
        else:
            waiting += children(node)


def _claim(claim: Claim, chain: Chain) -> Claim:
    return replace(claim, relation=replace(claim.relation, chain=chain), written="", raw=())


def holds_at(claim: Claim, base: int, size: str) -> Claim:
    """The claim at one value of a size."""
    at = {size: Number(Fraction(base))}
    relation = over(claim.relation, lambda node: put(node, at))
    assumptions = tuple(over(chain, lambda node: put(node, at)) for chain in claim.assumptions)
    sizes = tuple(each for each in claim.sizes if each.name != size)
    return replace(claim, relation=relation, assumptions=assumptions, sizes=sizes, written="", raw=())


def _least(claim: Claim, size: str) -> int | None:
    """The smallest value of a size, if the assumptions about it say no more than that."""
    least = 1
    for chain in claim.assumptions:
        if not any(size in names(term) for term in chain.terms):
            continue
        match chain:
            case Chain((Name(name), Number(value)), (">=" | ">" as sign,)) if name == size and value.denominator == 1:
                least = max(least, int(value) + (sign == ">"))
            case _:
                return None
    return None if any(each.equation and size in names(each.equation) for each in claim.sizes) else least


def _end(node: Node) -> tuple[str, int]:
    """N and k of N + k."""
    match node:
        case Name(name):
            return name, 0
        case Binary("+", Name(name), Number(value)) | Binary("+", Number(value), Name(name)) if value.denominator == 1:
            return name, int(value)
        case Binary("-", Name(name), Number(value)) if value.denominator == 1:
            return name, -int(value)
    return "", 0


def _plus(node: Node, number: int) -> Node:
    if not number:
        return node
    return Binary("+" if number > 0 else "-", node, Number(Fraction(abs(number))))


def _indexed(node: Node) -> bool:
    return isinstance(node, Indexed) or any(map(_indexed, children(node)))


def _dims(each: Variable) -> tuple[Node, ...]:
    return each.kind.dims if isinstance(each.kind, Reals) else ()
