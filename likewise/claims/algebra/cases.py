"""Claims whose ranges, indices or factorials contain a whole number from few: decided for each of its values."""

import operator
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

from likewise.claims.language.claim import Claim, Integers
from likewise.claims.language.parser import nodes, over
from likewise.claims.language.tree import Call, Chain, Index, Indexed, Node, Number, children, names
from likewise.claims.reader import Reader
from likewise.claims.spelling import put
from likewise.claims.verdict import Finding

MOST = 40  # values
SIGNS = {"==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}


def decide(claim: Claim, ask: Callable[[Claim], Finding]) -> Finding | None:
    """Holds if every case does; refuted with the value of the first case that is."""
    counting = set().union(*map(_counting, nodes(claim.relation)))
    chosen = next((each for each in claim.variables if each.name in counting and _values(each.kind)), None)
    if chosen is None:
        return None
    last = ""
    for value in _values(chosen.kind):
        case = _with_number(claim, chosen.name, value)
        if case is None:
            continue  # an assumption excludes it
        found = ask(replace(case, budget=claim.budget / MOST))
        if found.verdict == "refuted":
            witness = ((chosen.name, str(value)), *found.witness)
            return replace(found, detail=f"{chosen.name}={value} {found.detail}", witness=witness, suggestions=())
        if found.verdict != "holds":
            return None
        last = f"at {chosen.name}={value}: {found.detail}"
    return Finding("holds", "proved", f"for each {chosen.name}; {last}", engine="algebra") if last else None


def _counting(node: Node) -> set[str]:
    """The names that ranges, indices, lengths and factorials contain."""
    found = set().union(*map(_counting, children(node)))
    match node:
        case Indexed(_, _, lowest, highest, _):
            found |= names(lowest) | names(highest)
        case Index(_, indices):
            found |= set().union(*map(names, indices))
        case Call("factorial" | "choose", _):
            found |= names(node)
    return found


def _values(kind: object) -> list[int]:
    if isinstance(kind, Integers) and kind.lowest is not None and kind.highest is not None:
        return list(range(kind.lowest, kind.highest + 1)) if kind.highest - kind.lowest < MOST else []
    return []


def _with_number(claim: Claim, name: str, value: int) -> Claim | None:
    """The claim with a variable replaced by a number; None if an assumption about it alone is false."""

    def there(node: Node) -> Node:
        return put(node, {name: Number(Fraction(value))})

    moved = [over(each, there) for each in claim.assumptions]
    if not all(_true(each) for each in moved if not any(map(names, each.terms))):
        return None
    rest = tuple(replace(each, kind=over(each.kind, there)) for each in claim.variables if each.name != name)
    assumptions = tuple(each for each in moved if any(map(names, each.terms)))
    relation = over(claim.relation, there)
    return replace(claim, relation=relation, assumptions=assumptions, variables=rest, raw=(), written="")


def _true(chain: Chain) -> bool:
    """Whether a chain of fractions is true."""
    values = [Reader({}).evaluate(term).scalar for term in chain.terms]
    return all(SIGNS[sign](*pair) for sign, pair in zip(chain.comparisons, pairwise(values), strict=True))
