"""Products of powers and factorials of sizes, compared by their logarithms: (1 + 1/N)^N < exp(1) is N*log(1 + 1/N) < 1.

Sizes may then be any numbers from a first one on, so that calculus proves it; the sizes before that are tried one by
one. N! is between sqrt(2*pi*N)*(N/e)^N and e*sqrt(N)*(N/e)^N.
"""

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

from likewise.claims.algebra.induction import holds_at
from likewise.claims.growth.upper import positive
from likewise.claims.language.claim import Claim, Compares, Reals, Variable
from likewise.claims.language.tree import Binary, Call, Chain, Constant, Name, Node, Number, children, names
from likewise.claims.verdict import Finding, Undecided

ENGINE = "logarithms"
STARTS = (1, 4, 10)  # sizes from which on calculus is asked
ZERO, ONE, TWO = (Number(Fraction(n)) for n in range(3))
Ask = Callable[[Claim], Finding]


def decide(claim: Claim, ask: Ask) -> Finding | None:
    """Proved, or None; `ask` decides the claim about logarithms."""
    relation = claim.relation
    if not isinstance(relation, Compares) or relation.within or claim.variables or claim.program or claim.source:
        return None
    if set(relation.chain.comparisons) - {"<", "<=", ">", ">="} or len(relation.chain.terms) != 2:
        return None
    sizes = [each.name for each in claim.sizes]
    if any(each.equation is not None for each in claim.sizes) or not any(map(_steep, relation.chain.terms)):
        return None
    (left, right), (sign,) = relation.chain.terms, relation.chain.comparisons
    try:
        upper = sign in ("<", "<=")
        chain = Chain((logarithm(left, upper), logarithm(right, not upper)), (sign,))
    except Undecided:
        return None
    given = tuple(each for each in claim.assumptions if frozenset[str]().union(*map(names, each.terms)) <= set(sizes))
    variables = tuple(Variable(name, Reals()) for name in sizes)
    for start in STARTS if len(sizes) == 1 else STARTS[:1]:
        least = Number(Fraction(start))
        more = tuple(Chain((Name(name), least), (">=",)) for name in sizes)
        tail = replace(
            claim,
            relation=replace(relation, chain=chain),
            variables=variables,
            sizes=(),
            assumptions=(*given, *more),
            written="",
            raw=(),
        )
        before = [holds_at(claim, value, sizes[0]) for value in range(1, start)]
        if any(ask(part).verdict != "holds" for part in before if not part.assumptions):
            return None
        if any(part.assumptions for part in before):
            continue
        found = ask(tail)
        if found.verdict == "holds" and not found.where:
            where = f" from {start} on" if start > 1 else ""
            return Finding(
                "holds", "proved", f"for every {', '.join(sizes)} (logarithms{where}: {found.detail})", ENGINE
            )
    return None


def _steep(node: Node) -> bool:
    """Whether a size stands in an exponent, or under a factorial."""
    mine = isinstance(node, Binary) and node.operator == "^" and bool(names(node.right))
    mine = mine or (isinstance(node, Call) and node.function == "factorial")
    return mine or any(map(_steep, children(node)))


def logarithm(node: Node, upper: bool) -> Node:
    """The logarithm of what is above 0; of a factorial a bound, from above or below."""
    match node:
        case Number(value) if value == 1:
            return ZERO
        case Binary("*", left, right):
            return Binary("+", logarithm(left, upper), logarithm(right, upper))
        case Binary("/", left, right):
            return Binary("-", logarithm(left, upper), logarithm(right, not upper))
        case Binary("^", left, Number(value)) if _factorial(left):
            return Binary("*", node.right, logarithm(left, upper if value >= 0 else not upper))
        case Binary("^", left, right) if positive(left) and not _factorial(left):
            return Binary("*", right, Call("log", (left,)))
        case Call("exp", (inner,)) if isinstance(inner, Node):
            return inner
        case Call("factorial", (Name() as n,)):
            log = Call("log", (n,))
            first = ONE if upper else Binary("/", Call("log", (Binary("*", TWO, Constant("pi")),)), TWO)
            body = Binary("-", Binary("*", Binary("+", n, Number(Fraction(1, 2))), log), n)
            return Binary("+", first, body)
    if positive(node) and not _factorial(node):
        return Call("log", (node,))
    raise Undecided(f"the logarithm of {node}")


def _factorial(node: Node) -> bool:
    return (isinstance(node, Call) and node.function == "factorial") or any(map(_factorial, children(node)))
