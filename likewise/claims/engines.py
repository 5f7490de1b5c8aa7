"""Which engine is asked, in which order; each is imported when it is first needed."""

import importlib
import time
from collections.abc import Callable
from dataclasses import replace

from likewise.claims.growth.logic import impossible
from likewise.claims.language.claim import Bounded, Claim, Counts, HasShape, Runs
from likewise.claims.language.expressions import QUANTITIES, rebuilt
from likewise.claims.language.parser import nodes, over
from likewise.claims.language.tree import Call, Moment, Name, Node, Number, Probability, children
from likewise.claims.programs.registry import PROGRAMS
from likewise.claims.verdict import Finding, Undecided

# Exact before approximate, proof before search, cheap before dear. A module has decide(claim) -> Finding | None.
CITED, SHAPES = "arithmetic.cited", "shape.shapes"
COUNTS, ORDERS, CONFINED = "growth.counts", "growth.orders", "programs.confined"
GAUSSIAN = "chance.gaussian"
PROOFS, SEARCHES = (
    ("growth.logic", "algebra.identities", "growth.everywhere"),
    ("algebra.witnesses", "algebra.intervals"),
)
IDENTITIES = (CITED, SHAPES, *PROOFS, *SEARCHES)
CHANCES = (SHAPES, GAUSSIAN, "chance.sampling")


def engines_for(claim: Claim) -> tuple[str, ...]:
    """The engines that may decide a claim of this kind."""
    match claim.relation:
        case HasShape():
            return (SHAPES,)
        case Runs():
            return (CONFINED,)
        case Counts():
            return (COUNTS,)
        case Bounded():
            return (COUNTS, ORDERS)
    if any(_mentions(node, Moment | Probability) for node in nodes(claim.relation)):
        return CHANCES
    if programs_of(claim):
        return (COUNTS,)
    if any(_mentions(node, Moment | Probability) for chain in claim.assumptions for node in nodes(chain)):
        return (CITED, SHAPES, GAUSSIAN, *PROOFS, *SEARCHES)
    return IDENTITIES


def programs_of(claim: Claim) -> set[str]:
    """The programs whose quantities a claim compares."""
    waiting, found = list(nodes(claim.relation)), {claim.program} if claim.program else set()
    while waiting:
        node = waiting.pop()
        if isinstance(node, Call) and node.function in QUANTITIES:
            found |= {argument.name for argument in node.arguments if isinstance(argument, Name)}
        waiting += children(node)
    return found


def names_code(claim: Claim) -> bool:
    """Whether a program may be a file of the user: it is none of ours."""
    named = programs_of(claim) | ({claim.relation.program} if isinstance(claim.relation, Runs) else set())
    return not named <= PROGRAMS.keys()


def needs_torch(claim: Claim) -> bool:
    """Whether a program of ours has to run or be counted; a file of the user has a process of its own."""
    return any(":" not in name for name in programs_of(claim)) or isinstance(claim.relation, Runs)


def decide(claim: Claim, *, allow_code: bool = False, folder: str = "") -> Finding:
    """Ask one engine after the other; the first that decides has the word, and nothing is guessed when none does."""
    reasons: list[str] = []
    suggestions: list[str] = []
    weak: Finding | None = None
    ends = time.process_time() + claim.budget
    for name in engines_for(claim):
        engine: Callable[..., Finding | None] = importlib.import_module(f"likewise.claims.{name}").decide
        allowed = {"allow_code": allow_code, "folder": folder} if name in (CONFINED, COUNTS) else {}
        left = ends - time.process_time()
        if left <= 0:
            reasons.append(f"over its budget of {claim.budget:g} s")
            break
        asked = claim if name == CITED else with_numbers(claim)
        try:
            found = engine(replace(asked, budget=left), **allowed)
        except Undecided as reason:
            reasons.append(str(reason))
            continue
        if found is None:
            continue
        if name == CITED and claim.source and found.verdict == "inconclusive":
            return found  # the numbers as printed must not decide what their rounding leaves open
        if found.verdict == "inconclusive":
            reasons.append(found.detail)
            suggestions += found.suggestions
        elif found.verdict == "holds" and impossible(asked):
            return Finding("inconclusive", "none", "nothing satisfies the assumptions", engine=found.engine)
        elif found.grade == "not refuted":
            weak = weak or found
        else:
            return found
    if weak:
        return weak
    detail = "; ".join(dict.fromkeys(filter(None, reasons))) or "no engine decides such a statement"
    return Finding("inconclusive", "none", detail, engine="", suggestions=tuple(dict.fromkeys(suggestions)))


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
