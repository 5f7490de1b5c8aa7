"""Which engine is asked, in which order. Workers import this; the process that asks them does not need to."""

import time
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from importlib import import_module
from itertools import pairwise
from types import ModuleType

from likewise.claims import cells, shapes
from likewise.claims.agreement import agreed
from likewise.claims.algebra import entries, holes, identities, induction, intervals, residues, witnesses
from likewise.claims.arithmetic import cited
from likewise.claims.chance import gaussian
from likewise.claims.growth import counts, everywhere, orders
from likewise.claims.growth.impossible import impossible
from likewise.claims.language.claim import (
    Bernoulli,
    Bounded,
    Claim,
    Compares,
    Counts,
    Exponential,
    HasShape,
    Integers,
    Reals,
    Runs,
    Uniform,
)
from likewise.claims.language.parser import nodes
from likewise.claims.language.tree import Chain, Moment, Node, Number, Probability, children, names
from likewise.claims.registry import programs_of
from likewise.claims.sandbox import engine as sandbox
from likewise.claims.spelling import spelled
from likewise.claims.verdict import Finding, OutOfTime, Undecided

Engine = Callable[..., Finding | None]
ZERO, ONE = Number(Fraction(0)), Number(Fraction(1))


def sampling(claim: Claim) -> Finding | None:
    """Decide by draws; numpy takes longer to load than most claims to decide, so it waits for the first of these."""
    from likewise.claims.chance.sampling import decide

    return decide(claim)


def inductive(claim: Claim) -> Finding | None:
    """Prove sums, products and factorials up to a size by induction on it."""
    return induction.decide(claim, lambda part: found_by_engines(replace(part, budget=PART * claim.budget)))


def by_logarithms(claim: Claim) -> Finding | None:
    """Prove inequalities of powers and factorials of sizes by their logarithms, and sums of logarithms by products."""
    if not isinstance(claim.relation, Compares):
        return None
    module = "logsums" if claim.relation.chain.comparisons == ("==",) else "logarithms"
    return _later(f"algebra.{module}").decide(
        claim, lambda part: found_by_engines(replace(part, budget=PART * claim.budget))
    )


def case_by_case(claim: Claim) -> Finding | None:
    """Decide a claim for each value of a whole number from few that a range or an index contains."""
    if not any(isinstance(each.kind, Integers) for each in claim.variables):
        return None
    return _later("algebra.cases").decide(claim, found_by_engines)


def as_vectors(claim: Claim) -> Finding | None:
    """Prove for matrices of which only the entries matter what holds for vectors."""
    flat = entries.as_vectors(claim)
    found = None if flat is None else found_by_engines(flat)
    if found is None or found.verdict != "holds":
        return None
    return replace(found, detail=f"{found.detail}, entries as one vector", suggestions=())


def bounding(claim: Claim) -> Finding | None:
    """Decide expectations and probabilities by quadrature with rigorous bounds, at points."""
    return _later("chance.bounds").decide(claim)


def without_chance(claim: Claim) -> Finding | None:
    """Decide the claim with every expectation replaced by its exact value, by all engines."""
    exact = gaussian.exact(claim)
    if exact is None:
        return None
    found = found_by_engines(exact.claim)
    if found.verdict not in ("holds", "refuted"):
        return None
    if found.verdict == "holds":
        return replace(found, engine="gaussian", detail=f"{found.detail}, {exact.method}", suggestions=())
    return replace(found, engine="gaussian", suggestions=())


def solving_soon(claim: Claim) -> Finding | None:
    """Prove by z3 what it sees at once, before a search takes its time."""
    return _z3().prove(claim)


def differentiating(claim: Claim) -> Finding | None:
    """Prove an inequality in one number by Taylor coefficients in balls."""
    return _later("algebra.calculus").decide(claim)


def solving(claim: Claim) -> Finding | None:
    """Decide by z3 what nothing else decides."""
    return _z3().decide(claim)


def entrywise(claim: Claim) -> Finding | None:
    """Prove for vectors of every length entry by entry, unless a few points show already that it is false."""
    if not any(isinstance(each.kind, Reals) and each.kind.dims for each in claim.variables):
        return None
    return None if _later("search").refuted_soon(claim) else _z3("entries").prove(claim)


def searching(claim: Claim) -> Finding | None:
    """Refute by points of the blind search and by steps downhill from them."""
    return _later("search").decide(claim)


def growing(claim: Claim) -> Finding | None:
    """Decide an order by z3's linear arithmetic: logarithms, exponentials, minima, differences."""
    return _z3("orders").decide(claim)


def bounding_terms(claim: Claim) -> Finding | None:
    """Decide an order with simpler terms, or prove it with larger ones."""
    return _later("growth.upper").decide(claim, found_by_engines)


def widening(claim: Claim) -> Finding | None:
    """Decide an order with a difference of sizes of which one is assumed to be larger."""
    return _later("growth.gaps").decide(claim, found_by_engines)


def _later(module: str) -> ModuleType:
    """Loaded when it is first asked."""
    return import_module(f"likewise.claims.{module}")


def _z3(module: str = "solving") -> ModuleType:
    """Loaded for the first claim that no proof decides."""
    try:
        return _later(f"smt.{module}")
    except ImportError as error:
        raise Undecided(f"z3 might decide it, but does not load here: {error}") from None


def engines_for(claim: Claim) -> tuple[Engine, ...]:
    """The engines that may decide a claim of this kind."""
    return tuple(engine for engine in _engines_for(claim) if ONLY.get(engine, _any)(claim))


def _engines_for(claim: Claim) -> tuple[Engine, ...]:
    match claim.relation:
        case HasShape():
            return (shapes.decide,)
        case Runs():
            return (sandbox.decide,)
        case Counts():
            return (counts.decide,)
        case Bounded():
            return (counts.decide, orders.decide, widening, growing, bounding_terms)
    if any(_mentions(node, Moment | Probability) for node in nodes(claim.relation)):
        return CHANCES
    if programs_of(claim):
        return (counts.decide,)
    if any(_mentions(node, Moment | Probability) for chain in claim.assumptions for node in nodes(chain)):
        return (cited.decide, shapes.decide, gaussian.decide, *PROOFS, *SEARCHES)
    return IDENTITIES


def decide(claim: Claim, *, allow_code: bool = False, folder: str = "") -> Finding:
    """Decide a claim; of a refuted chain it is said which comparison fails."""
    ends = time.process_time() + claim.budget
    found = _decided(claim, allow_code, folder)
    relation = claim.relation
    if found.verdict != "refuted" or not isinstance(relation, Compares) or len(relation.chain.comparisons) < 2:
        return found
    pairs = zip(relation.chain.comparisons, pairwise(relation.chain.terms), strict=True)
    for place, (sign, terms) in enumerate(pairs, start=1):
        left = ends - time.process_time()
        if left <= 0:
            break
        link = replace(relation, chain=Chain(terms, (sign,)))
        blamed = _decided(replace(claim, relation=link, written="", raw=(), budget=left), allow_code, folder)
        if blamed.verdict == "refuted":
            return replace(blamed, detail=f"{link} fails: {blamed.detail}", link=place)
    return found


def _decided(claim: Claim, allow_code: bool, folder: str) -> Finding:
    """What the engines find, if the judge agrees."""

    def ask(asked: Claim) -> Finding:
        found = found_by_engines(asked, allow_code, folder)
        shared = agreed(asked, found)
        if shared.grade == "undecided" and found.engine == "gaussian" and found.verdict == "refuted":
            return _drawn(asked) or shared  # the judge has no value there, but draws may tell
        return shared

    if claim.source is None or of_numbers(claim):
        return ask(claim)
    rounded = cells.used(claim)
    return cells.decide(claim, rounded, ask) if rounded else ask(claim)


def with_laws(claim: Claim) -> Claim:
    """The claim with the assumptions that its laws exist: a point at which one does not is left out anyway."""
    more: list[Chain] = []
    for each in claim.variables:
        match each.kind:
            case Exponential(rate) if names(rate):
                more.append(Chain((rate, ZERO), (">",)))
            case Bernoulli(chance) if names(chance):
                more.append(Chain((ZERO, chance, ONE), ("<=", "<=")))
            case Uniform(low, high) if names(low) | names(high):
                more.append(Chain((low, high), ("<=",)))
    new = tuple(chain for chain in more if chain not in claim.assumptions)
    return replace(claim, assumptions=(*claim.assumptions, *new)) if new else claim


def of_numbers(claim: Claim) -> bool:
    """Whether a claim speaks of numbers alone: those it writes, and cited ones."""
    cited_ = {name for name, _ in claim.source.cells} if claim.source else set()
    names_ = set().union(*(names(node) for node in nodes(claim.relation)))
    return not claim.assumptions and not programs_of(claim) and names_ <= cited_


def of_whole_numbers(claim: Claim) -> bool:
    """Whether every name is a size or a whole number."""
    real = {each.name for each in claim.variables if not isinstance(each.kind, Integers)}
    return not any(names(node) & real for node in nodes(claim.relation))


def _any(claim: Claim) -> bool:
    return True


def _drawn(claim: Claim) -> Finding | None:
    """A refutation by draws."""
    try:
        found = sampling(spelled(cells.with_numbers(claim)))
    except Undecided:
        return None
    return found if found is not None and found.verdict == "refuted" else None


def found_by_engines(claim: Claim, allow_code: bool = False, folder: str = "") -> Finding:
    """Ask one engine after the other; the first decisive finding, and nothing is guessed when there is none."""
    reasons: list[str] = []
    suggestions: list[str] = []
    searched: Finding | None = None
    late = False
    faults: list[str] = []
    ends = time.process_time() + claim.budget
    stated = claim
    try:
        stated = with_laws(stated)
        claim = spelled(stated)
    except Undecided as reason:
        return Finding("inconclusive", "undecided", str(reason), engine="")
    for engine in engines_for(claim):
        allowed = {"allow_code": allow_code, "folder": folder} if engine in MAY_RUN_CODE else {}
        left = ends - time.process_time()
        if left <= 0:
            late = True
            reasons.append(f"over its budget of {claim.budget:g} s")
            break
        asked = stated if engine in AS_WRITTEN else claim
        asked = asked if engine is cited.decide or asked.source is None else cells.with_numbers(asked)
        try:
            found = engine(replace(asked, budget=left), **allowed)
        except Undecided as reason:
            late = isinstance(reason, OutOfTime)
            reasons.append(str(reason))
            continue
        except (MemoryError, ImportError):
            raise
        except RecursionError:
            reasons.append("nested too deeply")
            continue
        except Exception as error:  # whatever it is: the fault of an engine is no verdict, and no crash
            faults.append(f"internal error of {engine.__module__}: {type(error).__name__}: {error}")
            continue
        if found is None:
            continue
        if engine is cited.decide and claim.source and found.verdict == "inconclusive":
            return found  # the numbers as printed must not decide what their rounding leaves open
        if found.grade == "searched":
            searched = searched or found
        elif found.verdict == "inconclusive":
            reasons.append(found.detail)
            suggestions += found.suggestions
        elif found.verdict == "holds" and (asked.assumptions or asked.sizes) and impossible(asked):
            return Finding("inconclusive", "undecided", "nothing satisfies the assumptions", engine=found.engine)
        else:
            return found
    if not faults and claim.assumptions and impossible(claim):
        return Finding("inconclusive", "undecided", "nothing satisfies the assumptions", engine="")
    if searched:
        return searched
    detail = "; ".join(dict.fromkeys(filter(None, faults + reasons))) or "no engine decides such a statement"
    grade = "disagreement" if faults else "late" if late else "undecided"
    return Finding("inconclusive", grade, detail, engine="", suggestions=tuple(dict.fromkeys(suggestions)))


PART = 0.3  # of the budget, for a step of a proof
# Exact before approximate, proof before search, cheap before dear.
PROOFS: tuple[Engine, ...] = (residues.decide, identities.decide, holes.decide, everywhere.decide)
SEARCHES: tuple[Engine, ...] = (
    inductive,
    by_logarithms,
    case_by_case,
    as_vectors,
    solving_soon,
    entrywise,
    witnesses.decide,
    intervals.decide,
    identities.same_sides,
    differentiating,
    solving,
    searching,
)
IDENTITIES: tuple[Engine, ...] = (cited.decide, shapes.decide, *PROOFS, *SEARCHES)
CHANCES: tuple[Engine, ...] = (shapes.decide, gaussian.decide, without_chance, identities.averaged, bounding, sampling)
AS_WRITTEN: tuple[Engine, ...] = (
    shapes.decide,
    residues.decide,
    bounding,
    searching,
)  # these read functions that `spelled` replaces
ONLY: dict[Engine, Callable[[Claim], bool]] = {cited.decide: of_numbers, residues.decide: of_whole_numbers}
MAY_RUN_CODE: tuple[Engine, ...] = (counts.decide, sandbox.decide)  # of the user, where it is allowed


def _mentions(node: Node, kinds: "type | object") -> bool:
    return isinstance(node, kinds) or any(_mentions(child, kinds) for child in children(node))  # ty: ignore[invalid-argument-type]
