"""Polynomial, rational and piecewise comparisons by z3.

A claim holds if nothing is known to it that makes it false; a model of what makes it false becomes a point of
fractions, at which exact arithmetic must see the violation again.
"""

import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace

import z3

from likewise.claims.algebra.identities import proved
from likewise.claims.algebra.points import finite
from likewise.claims.algebra.questions import Question, question
from likewise.claims.algebra.witnesses import Witness, is_proved, refuted
from likewise.claims.language.claim import Between, Claim
from likewise.claims.language.tree import names
from likewise.claims.smt.curves import number_of, real
from likewise.claims.smt.models import Query, witness_at, witness_of_products
from likewise.claims.smt.problems import Encoding, dims, problem, used_variables
from likewise.claims.smt.terms import Fact
from likewise.claims.verdict import Finding, Undecided

MEMORY = 1024  # megabytes that z3 may take
BUDGET_SHARE = 0.7  # of what is left of the budget
SOON = 0.5  # seconds before the searches
LENGTHS = (2, 1, 3)  # of axes, at which a counterexample is looked for
MOST = 16  # a size up to which smaller ones are looked at too
ENGINE = "z3"
FIRST, STEP = (1, 2, 4, 7), 8  # where an induction may begin; by how much an exponent may grow in a step


def prove(claim: Claim) -> Finding | None:
    """Proved, if z3 sees it soon and no engine before it would have: a search has not begun yet."""
    asked = _asked(claim)
    if asked is None or proved(asked) is not None or finite(asked) or _boxed(asked):
        return None
    arrays = any(dims(each) for each in used_variables(claim))
    stated = _stated(asked, None if arrays else {})
    if stated is None:
        return None
    with suppress(Undecided), _faults_said():
        found = _answered(asked, stated, Query(time.process_time() + min(SOON, BUDGET_SHARE * claim.budget)), _nowhere)
        return found if found.verdict == "holds" else None
    return None


def decide(claim: Claim) -> Finding | None:
    """Proved, refuted by an exact point, or inconclusive because nothing satisfies the assumptions."""
    asked = _asked(claim)
    if asked is None:
        return None
    with _faults_said():
        return _decided(asked, Query(time.process_time() + BUDGET_SHARE * claim.budget))


def _asked(claim: Claim) -> Question | None:
    """A comparison without chance; vectors do not lie as rows or columns."""
    asked = question(claim)
    return None if asked is None or asked.lying or any(each.layout for each in claim.variables) else asked


def _boxed(asked: Question) -> bool:
    """Whether boxes may prove it, which show more than z3's word."""
    return not asked.sizes and all(isinstance(each.kind, Between) for each in asked.variables)


@contextmanager
def _faults_said() -> Generator[None]:
    """What z3 cannot do is undecided; its memory is bounded."""
    z3.set_param("memory_max_size", MEMORY)
    try:
        yield
    except z3.Z3Exception as reason:
        raise Undecided(f"z3: {reason}") from None


def _nowhere(asked: Question, stated: Encoding, query: Query) -> None:
    """No witness is looked for."""


def _decided(asked: Question, query: Query) -> Finding | None:
    arrays = [each for each in used_variables(asked.claim) if dims(each)]
    axes = sorted(set().union(*(names(dim) for each in arrays for dim in dims(each))))
    by_products = _stated(asked, None) if arrays else None
    if by_products is not None:
        with suppress(Undecided):
            return _answered(asked, by_products, query, witness_of_products)
    by_entries = _stated(asked, {}) if not axes else None
    if by_entries is not None:
        return _by_induction(asked, by_entries, query) or _answered(asked, by_entries, query, witness_at)
    for length in LENGTHS if axes else ():
        lengths = dict.fromkeys(axes, length)
        here = _stated(asked, lengths)
        witness = witness_at(asked, here, query, lengths) if here is not None else None
        if witness:
            return _refuted(asked, witness)
    return None


def _stated(asked: Question, lengths: Mapping[str, int] | None) -> Encoding | None:
    """The claim as a problem of z3, None if it has no words for it."""
    try:
        return problem(asked.claim, lengths)
    except (Undecided, ArithmeticError, IndexError):
        return None


def _answered(asked: Question, stated: Encoding, query: Query, witness_in: Callable[..., Witness | None]) -> Finding:
    """The finding, for all sizes and values that the problem speaks of."""
    for violated in stated.violations:
        if stated.axes and query.is_empty([*stated.known, *stated.curves, *stated.simple, *violated]):
            continue
        facts = [*stated.known, *stated.curves, *stated.products, *violated]
        if query.model(facts) is not None:
            witness = witness_in(asked, stated, query)
            if witness is None:
                raise Undecided("z3 has a counterexample that no point of fractions shows")
            return _refuted(asked, witness)
    if query.model([*stated.known, *stated.curves, *stated.products]) is None:
        return Finding("inconclusive", "undecided", "nothing satisfies the assumptions", engine=ENGINE)
    lengths = ", ".join(name for name in asked.sizes if name in stated.axes)
    where = f"for every {lengths}" if lengths else "for all values"
    how = "inner products, z3" if stated.axes else "z3"
    return Finding("holds", "proved", f"{where} ({how})", engine=ENGINE)


def _by_induction(asked: Question, stated: Encoding, query: Query) -> Finding | None:
    """Proved for every N where powers such as 2^N occur: for small N, and from N to N + 1."""
    names_ = [name for name in stated.symbols if stated.symbols[name][0].is_int()]
    if not stated.powers or len(asked.sizes) != 1 or names_ != [*asked.sizes] or stated.parts:
        return None
    (size,) = asked.sizes
    n = stated.symbols[size][0]
    next_ = [(n, n + 1)]
    for power in stated.powers:
        step = number_of(z3.substitute(power.exponent, (n, n + 1)) - power.exponent)
        if step is None or step.denominator > 1 or abs(step) > STEP:
            return None
        next_.append((power.value, power.value * real(power.base ** int(step))))

    def moved(facts: list[Fact]) -> list[Fact]:
        return [z3.substitute(fact, *next_) for fact in facts]

    known, wrong = [*stated.known, *stated.curves], z3.Or(*(z3.And(*each) for each in stated.violations))
    for first in FIRST:
        step = [*moved(known), *stated.curves, n >= first, z3.Not(wrong)]
        if not query.is_empty([*known, n <= first, wrong]):
            return None
        if query.is_empty(
            [*moved(known), *stated.curves, n >= first, z3.Not(z3.And(*stated.known))]
        ) and query.is_empty([*step, *moved([wrong])]):
            return Finding("holds", "proved", f"for every {size} (induction from {size}={first}, z3)", engine=ENGINE)
    return None


def _refuted(asked: Question, witness: Witness) -> Finding:
    """With what the claim lacks, unless every smaller size would be looked at for it."""
    if max(witness.lengths.values(), default=0) > MOST:
        return Finding(
            "refuted", "exact witness", str(witness), ENGINE, witness.named(), is_undefined=witness.is_undefined
        )
    return replace(refuted(asked, witness, is_proved), engine=ENGINE)
