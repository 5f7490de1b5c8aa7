"""The missing assumption: simple ones are tried, and those under which the claim is proved are suggested."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import combinations

from likewise.claims.algebra.coordinates import Coordinates, violated
from likewise.claims.algebra.exponomials import form
from likewise.claims.algebra.questions import Question, question
from likewise.claims.language.claim import Claim, Compares, Reals
from likewise.claims.language.tree import Chain, Comparison, Name, Number, names
from likewise.claims.verdict import Undecided

MOST = 3  # suggestions
TRIED = 60  # sets of assumptions


def suggested(claim: Claim, proves: Callable[[Claim], bool]) -> list[str]:
    """Assumptions that turn the claim into a proved one, without making it empty or trivial: `mu == 0, s == 1`."""
    single = list(_candidates(claim))
    for count in (1, 2):
        found: list[tuple[Chain, ...]] = []
        for chosen in list(combinations(single, count))[:TRIED]:
            weaker = any(all(map(_implied, other, chosen)) for other in found)
            if len(found) < MOST and not weaker and _helps(claim, chosen, proves):
                found.append(chosen)
        if found:
            return [", ".join(map(str, chosen)) for chosen in found]
    return []


def _implied(weak: Chain, strong: Chain) -> bool:
    """x >= 0 follows from x > 0."""
    return weak == strong or (
        weak.terms == strong.terms and weak.comparisons == (">=",) and strong.comparisons == (">",)
    )


def _candidates(claim: Claim) -> Iterator[Chain]:
    used = set().union(*map(names, claim.relation.chain.terms)) if isinstance(claim.relation, Compares) else set()
    orders = isinstance(claim.relation, Compares) and set(claim.relation.chain.comparisons) != {"=="}
    free = [size.name for size in claim.sizes]
    bound = {size.name for size in claim.sizes if size.equation is not None}
    for each in claim.variables:
        if each.random or each.name not in used or not isinstance(each.kind, Reals):
            continue
        if orders:
            yield from (_assumption(each.name, comparison, 0) for comparison in (">=", ">"))
        else:
            yield from (_assumption(each.name, "==", value) for value in ((0,) if each.kind.dims else (0, 1)))
    if not orders:
        yield from (Chain((Name(a), Name(b)), ("==",)) for a, b in combinations(free, 2) if not {a, b} <= bound)
    yield from (_assumption(name, "==", 1) for name in free if name not in bound)


def _assumption(name: str, comparison: Comparison, value: int) -> Chain:
    return Chain((Name(name), Number(Fraction(value))), (comparison,))


def _helps(claim: Claim, chosen: tuple[Chain, ...], proves: Callable[[Claim], bool]) -> bool:
    if isinstance(claim.relation, Compares) and claim.relation.chain in chosen:
        return False  # that it holds if it holds
    assumed = replace(claim, assumptions=claim.assumptions + chosen)
    try:
        return not _empty(assumed) and proves(assumed)
    except (Undecided, ArithmeticError, IndexError):
        return False


def _empty(claim: Claim) -> bool:
    """Whether the assumptions contradict each other, or leave nothing but numbers to compare."""
    asked = question(claim)
    if asked is None:
        return False
    chains = [chain for chain in asked.assumptions if not any(map(names, chain.terms))]
    return any(violated(Coordinates({}), chain) is not None for chain in chains) or _trivial(asked)


def _trivial(asked: Question) -> bool:
    """Whether an equation says only that a number is itself."""
    if set(asked.chain.comparisons) != {"=="}:
        return False
    try:
        at = asked.symbols(dict.fromkeys(asked.sizes, 2), keep_sizes=True)
        entries = [entry for term in asked.chain.terms for entry in at.evaluate(term).entries]
        return all(form(entry).constant is not None for entry in entries)
    except (Undecided, ArithmeticError, IndexError):
        return False
