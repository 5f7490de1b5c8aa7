"""Cited numbers beside variables, sizes, expectations and programs: a printed 0.5 is any number from 0.45 to 0.55.

A claim about cells alone is `arithmetic.cited`'s. Elsewhere it holds if it holds for all numbers that print so, and is
refuted if one point refutes it for all of them. An == without a tolerance, and a count that is said to equal a printed
number, speak of the numbers as they are printed.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction
from itertools import islice, product

from likewise.claims.agreement import judged, ruled
from likewise.claims.language.claim import Between, Cell, Claim, Compares, Counts, Variable
from likewise.claims.language.expressions import rebuilt
from likewise.claims.language.parser import nodes, over
from likewise.claims.language.tree import Moment, Name, Node, Number, Probability, children, names
from likewise.claims.registry import programs_of
from likewise.claims.verdict import Finding

CORNERS = 16
OPEN = "the rounding of the cells leaves it open"


def used(claim: Claim) -> dict[str, Cell]:
    """The cells that a claim speaks of, unless it is an equality of numbers as they are printed."""
    relation = claim.relation
    exact = isinstance(relation, Compares) and relation.within is None and "==" in relation.chain.comparisons
    counted = isinstance(relation, Counts) and relation.comparison == "=="
    if not claim.source or exact or counted:
        return {}
    parts = [relation, *claim.assumptions, *(variable.kind for variable in claim.variables)]
    mentioned = set().union(*(names(node) for part in parts for node in nodes(part)))
    return {name: cell for name, cell in claim.source.cells if name in mentioned}


def with_numbers(claim: Claim, values: Mapping[str, Fraction] | None = None) -> Claim:
    """The claim with numbers in place of its cells: the printed ones, or others that print so."""
    cells = {name: Number(cell.value) for name, cell in claim.source.cells} if claim.source else {}
    cells |= {name: Number(value) for name, value in (values or {}).items()}

    def put(node: Node) -> Node:
        return cells.get(node.name, node) if isinstance(node, Name) else rebuilt(node, put)

    if not cells:
        return replace(claim, source=None)
    assumptions = tuple(over(assumption, put) for assumption in claim.assumptions)
    variables = tuple(replace(variable, kind=over(variable.kind, put)) for variable in claim.variables)
    relation = over(claim.relation, put)
    return replace(claim, source=None, relation=relation, assumptions=assumptions, variables=variables, raw=())


def decide(claim: Claim, cells: Mapping[str, Cell], ask: Callable[[Claim], Finding]) -> Finding:
    """The verdict that all numbers agree on which print as the cells do."""
    random = any(map(_chance, nodes(claim.relation))) or any(variable.random for variable in claim.variables)
    if not isinstance(claim.relation, Compares) or programs_of(claim) or random:
        return _at_corners(claim, cells, ask)
    ends = {name: (cell.value - cell.half_unit, cell.value + cell.half_unit) for name, cell in cells.items()}
    moving = tuple(Variable(name, Between(*pair)) for name, pair in ends.items())
    everywhere = ask(replace(claim, source=None, written="", raw=(), variables=(*claim.variables, *moving)))
    if everywhere.verdict == "holds":
        return everywhere
    for found in (everywhere, ask(with_numbers(claim))):
        if found.verdict == "refuted" and judged(claim, found) and ruled(claim, found) == "false":
            return found
    return Finding("inconclusive", "undecided", OPEN, engine="arithmetic")


def _chance(node: Node) -> bool:
    return isinstance(node, Moment | Probability) or any(map(_chance, children(node)))


def _at_corners(claim: Claim, cells: Mapping[str, Cell], ask: Callable[[Claim], Finding]) -> Finding:
    """Where cells cannot be variables: as printed, and at the ends of what prints so."""
    printed = ask(with_numbers(claim))
    if printed.verdict not in ("holds", "refuted"):
        return printed
    ends = [[cell.value - cell.half_unit, cell.value + cell.half_unit] for cell in cells.values()]
    for corner in islice(product(*ends), CORNERS):
        if ask(with_numbers(claim, dict(zip(cells, corner, strict=True)))).verdict != printed.verdict:
            return Finding("inconclusive", "undecided", OPEN, engine=printed.engine)
    return printed
