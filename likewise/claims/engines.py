"""Which engine is asked, in which order; each is imported when it is first needed."""

import importlib
import importlib.util
import time
from collections.abc import Callable
from dataclasses import replace

from likewise.claims.claim import Bounded, Claim, Counts, HasShape, Runs
from likewise.claims.expressions import QUANTITIES, rebuilt
from likewise.claims.parser import nodes, over
from likewise.claims.tree import Call, Moment, Name, Node, Number, Probability, children
from likewise.claims.verdict import Finding, Undecided

# Exact before approximate, proof before search, cheap before dear. A module has decide(claim) -> Finding | None.
IDENTITIES = ("cited", "shapes", "logic", "identities", "everywhere", "witnesses", "intervals")
CHANCES = ("shapes", "gaussian", "sampling")


def engines_for(claim: Claim) -> tuple[str, ...]:
    """The engines that may decide a claim of this kind."""
    match claim.relation:
        case HasShape():
            return ("shapes",)
        case Runs():
            return ("confined",)
        case Counts():
            return ("counts",)
        case Bounded():
            return ("counts", "orders")
    if any(_mentions(node, Moment | Probability) for node in nodes(claim.relation)):
        return CHANCES
    if any(_mentions_quantity(node) for node in nodes(claim.relation)):
        return ("counts",)
    return IDENTITIES


def needs_torch(claim: Claim) -> bool:
    """Whether a program has to run or be counted."""
    return (
        claim.program is not None
        or isinstance(claim.relation, Runs)
        or any(_mentions_quantity(node) for node in nodes(claim.relation))
    )


def decide(claim: Claim, *, allow_code: bool = False, folder: str = "") -> Finding:
    """Ask one engine after the other; the first that decides has the word, and nothing is guessed when none does."""
    reasons: list[str] = []
    weak: Finding | None = None
    ends = time.monotonic() + claim.budget
    for name in engines_for(claim):
        if importlib.util.find_spec(f"likewise.claims.{name}") is None:
            continue
        engine: Callable[..., Finding | None] = importlib.import_module(f"likewise.claims.{name}").decide
        allowed = {"allow_code": allow_code, "folder": folder} if name == "confined" else {}
        left = ends - time.monotonic()
        if left <= 0:
            reasons.append(f"over its budget of {claim.budget:g} s")
            break
        asked = claim if name == "cited" else with_numbers(claim)
        try:
            found = engine(replace(asked, budget=left), **allowed)
        except Undecided as reason:
            reasons.append(str(reason))
            continue
        if found is None:
            continue
        if found.verdict == "inconclusive":
            reasons.append(found.detail)
        elif found.grade == "not refuted":
            weak = weak or found
        else:
            return found
    if weak:
        return weak
    detail = "; ".join(dict.fromkeys(filter(None, reasons))) or "no engine decides such a statement"
    return Finding("inconclusive", "none", detail, engine="")


def with_numbers(claim: Claim) -> Claim:
    """The claim with the numbers of its source in place of their names; only `cited` asks how they were rounded."""
    cells = {name: Number(cell.value) for name, cell in claim.source.cells} if claim.source else {}

    def put(node: Node) -> Node:
        return cells.get(node.name, node) if isinstance(node, Name) else rebuilt(node, put)

    if not cells:
        return replace(claim, source=None)
    assumptions = tuple(over(assumption, put) for assumption in claim.assumptions)
    variables = tuple(replace(variable, kind=over(variable.kind, put)) for variable in claim.variables)
    relation = over(claim.relation, put)
    return replace(claim, source=None, relation=relation, assumptions=assumptions, variables=variables)


def _mentions(node: Node, kinds: "type | object") -> bool:
    return isinstance(node, kinds) or any(_mentions(child, kinds) for child in children(node))  # ty: ignore[invalid-argument-type]


def _mentions_quantity(node: Node) -> bool:
    mine = isinstance(node, Call) and node.function in QUANTITIES
    return mine or any(_mentions_quantity(child) for child in children(node))
