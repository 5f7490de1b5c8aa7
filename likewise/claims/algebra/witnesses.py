"""Counterexamples: points of a lattice at which a comparison fails in exact arithmetic, the simplest one first.

With one comes the missing assumption: simple ones are tried, and those that make the claim provable are suggested.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import chain, combinations

from likewise.claims.algebra.balls import decimal, middle
from likewise.claims.algebra.coordinates import Coordinates, sign, violated
from likewise.claims.algebra.exponomials import form
from likewise.claims.algebra.identities import proved, proved_at
from likewise.claims.algebra.points import WHOLE, Level, all_levels, finite, levels, ordered, points, sizes
from likewise.claims.algebra.printing import value_text
from likewise.claims.algebra.questions import Question, question
from likewise.claims.arithmetic.cited import told_apart
from likewise.claims.arrays import Array, Entry
from likewise.claims.language.claim import Between, Claim, Compares, Integers, OneOf, Reals
from likewise.claims.language.tree import Chain, Comparison, Name, Node, Number, fraction_text, names
from likewise.claims.verdict import Finding, Undecided

CONTRARY: dict[Comparison, str] = {"==": "!=", "!=": "=", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}
BUDGET_SHARE = 0.3  # of the budget that the search may take
MOST = 3  # suggestions
TRIED = 60  # sets of assumptions
SUGGESTING, SUGGESTING_SHARE = 1.0, 0.2  # seconds for them, and of the budget: a witness does not wait for more
LONGEST = 6  # sizes below that of a witness that are looked at
POINTS_PER_TIME_CHECK = 16  # points between two looks at the time


@dataclass(frozen=True)
class Witness:
    """A point, and what is seen there: `7 != 9`."""

    lengths: Mapping[str, int]
    values: tuple[tuple[str, Array], ...]
    seen: str
    is_undefined: bool = False  # of one side, where the other has a value

    def named(self) -> tuple[tuple[str, str], ...]:
        """Names and values, sizes first."""
        lengths = ((name, str(n)) for name, n in self.lengths.items())
        return (*lengths, *((name, array_text(value)) for name, value in self.values))

    def __str__(self) -> str:
        where = " ".join(f"{name}={value}" for name, value in self.named())
        return f"{where}: {self.seen}" if where else self.seen


@dataclass
class Search:
    """The first witness found, and how much was tried."""

    witness: Witness | None = None
    tried: int = 0  # points at which every assumption holds and both sides are defined
    complete: bool = False  # whether that was every point
    undefined: int = 0  # points at which a side is not defined
    reason: str = ""  # why some point could not be judged


Judge = Callable[[Coordinates], str | None]  # what is seen at a point that violates, None where nothing is violated


def decide(claim: Claim) -> Finding | None:
    """Refuted by the simplest counterexample; proved if the domain is finite and was tried whole."""
    asked = question(claim)
    if asked is None or ((asked.variables or asked.sizes) and proved(asked) is not None):
        return None
    found = search(asked, lambda at: violation(at, asked.chain))
    if found.witness:
        return refuted(asked, found.witness, is_proved)
    if found.complete and found.tried and not found.reason:
        if found.undefined and "==" in asked.chain.comparisons:
            return None  # one side alone may be undefined there, which the search of the judge sees
        cases = f"all {found.tried} cases" if asked.variables else _shown(asked)
        return Finding("holds", "proved", cases, engine="witness")
    if not found.tried:
        raise Undecided(found.reason or "no point that was tried satisfies the assumptions")
    return None


def _shown(asked: Question) -> str:
    """A true chain of numbers with its values: 4 == 4."""
    at = asked.complete({}, {})
    terms = [array_text(at.evaluate(term)) for term in asked.chain.terms]
    rest = (f" {comparison} {term}" for comparison, term in zip(asked.chain.comparisons, terms[1:], strict=True))
    return terms[0] + "".join(rest)


def is_proved(claim: Claim) -> bool:
    """Whether the claim is proved for its whole domain."""
    asked = question(claim)
    return asked is not None and proved(asked) is not None


def search(asked: Question, judge: Judge) -> Search:
    """Try whole numbers at every size, then other rationals, until the judge sees a violation."""
    ends, found, complete = time.process_time() + BUDGET_SHARE * asked.claim.budget, Search(), finite(asked)
    looked = 0
    for stage in _stages(asked, complete):
        for lengths in sizes(asked):
            try:
                for values in chain.from_iterable(points(asked, lengths, level) for level in stage):
                    looked += 1
                    if looked % POINTS_PER_TIME_CHECK == 0 and time.process_time() > ends:
                        found.reason = found.reason or "the search for a counterexample took too long"
                        return found
                    seen = _judged(asked, values, lengths, judge, found)
                    if seen is not None:
                        shown = tuple((each.name, values[each.name]) for each in ordered(asked))
                        found.witness = Witness(lengths, shown, seen)
                        return found
            except Undecided as reason:  # no such lengths, or too many entries
                found.reason = found.reason or str(reason)
    found.complete = complete
    return found


def _stages(asked: Question, complete: bool) -> Sequence[Sequence[Level]]:
    """What is tried at every size before anything else is: with several sizes first a few points at each."""
    if not asked.variables:
        return [WHOLE[:1]]
    if complete:
        return [all_levels(asked)]
    few = [replace(level, most=level.most // 10 + 1) for level in WHOLE[:3]]
    return [*([few] if len(asked.sizes) > 1 else []), *levels(asked)]


def _judged(
    asked: Question, values: Mapping[str, Array], lengths: Mapping[str, int], judge: Judge, found: Search
) -> str | None:
    try:
        at = asked.complete(values, lengths)
        if not admissible(asked, at):
            return None
        seen = judge(at)
        found.tried += 1
    except (ArithmeticError, IndexError):
        found.undefined += 1
        return None  # undefined here
    except Undecided as reason:
        found.reason = found.reason or str(reason)
        return None
    return seen


def admissible(asked: Question, at: Coordinates) -> bool:
    """Whether the assumptions hold, and what was solved for is in its domain."""
    names = {size.name for size in asked.claim.sizes}
    for name, _ in asked.solved:
        each, value = asked.claim.variable(name), at.values[name]
        if name in names and not (isinstance(value.scalar, Fraction) and value.scalar >= 1 == value.scalar.denominator):
            return False  # a size is a whole number; what is no fraction is irrational
        if each is not None and isinstance(each.kind, Between):
            ends = (value.scalar - each.kind.lowest, each.kind.highest - value.scalar)
            if min(map(sign, ends)) < 0:
                return False
        if each is not None and isinstance(each.kind, OneOf | Integers):
            raise Undecided(f"{name} is given by an equation and by a set")
    return all(violation(at, each) is None for each in asked.assumptions)


def violation(at: Coordinates, links: Chain) -> str | None:
    """What is seen where a comparison of the chain is false: `7 != 9`; None if the chain is true."""
    place = violated(at, links)
    if place is None:
        return None
    left, right = links.terms[place], links.terms[place + 1]
    return _seen(left, at.evaluate(left), links.comparisons[place], right, at.evaluate(right))


def _seen(left: Node, a: Array, comparison: Comparison, right: Node, b: Array) -> str:
    if comparison == "!=":
        return f"{left} = {array_text(a)}" if isinstance(right, Number) else f"{left} = {right} = {array_text(a)}"
    texts = (array_text(a), array_text(b)) if a.shape or b.shape else _told_apart(a.scalar, b.scalar)
    return f" {CONTRARY[comparison]} ".join(texts)


def _told_apart(left: Entry, right: Entry) -> tuple[str, ...]:
    """Two numbers; of one that is no fraction as many decimals as show where the other differs."""
    middles = [value if isinstance(value, Fraction | int) else middle(form(value)) for value in (left, right)]
    one, other = (Fraction(each) for each in middles)
    if all(isinstance(value, Fraction | int) for value in (left, right)) or abs(one - other) > abs(other) / 10**5:
        return _entry_text(left), _entry_text(right)
    return told_apart((one, one), (other, other))


def array_text(array: Array) -> str:
    """(1,-1), ((1,0),(0,1)), or just the number."""
    if not array.shape:
        return _entry_text(array.scalar)
    if len(array.shape) == 1:
        return f"({','.join(map(_entry_text, array.entries))})"
    step = len(array.entries) // array.shape[0]
    rows = (Array(array.shape[1:], array.entries[i : i + step]) for i in range(0, len(array.entries), max(step, 1)))
    return f"({','.join(map(array_text, rows))})"


def _entry_text(value: Entry) -> str:
    if isinstance(value, Fraction | int):
        return fraction_text(Fraction(value))
    shown = value_text(value)
    return shown if len(shown) <= 60 else decimal(form(value))


def refuted(asked: Question, witness: Witness, proves: Callable[[Claim], bool], exact: str = "") -> Finding:
    """The finding for a witness: where the claim is true nevertheless, or what it lacks, is said with it.

    `exact`, the value of the one expectation, is said too, unless the missing assumption says more; `proves` decides a
    claim under one more assumption.
    """
    try:
        smaller = [n for n in _smaller(asked, witness) if proves_at(asked, n)]
        suggestions = suggested(asked.claim, proves)
    except (Undecided, ArithmeticError, IndexError, RecursionError, MemoryError):  # the witness stays
        smaller, suggestions = [], []
    parts = [str(witness)]
    if exact and (smaller or not suggestions):
        parts.append(f"exact value {exact}")
    if smaller:
        parts.append(f"true for {asked.sizes[0]}={','.join(map(str, smaller))}")
    elif suggestions:
        parts.append(f"holds assuming {', or '.join(suggestions)}")
    return Finding(
        "refuted",
        "exact witness",
        "; ".join(parts),
        "witness",
        witness.named() or (("seen", witness.seen),),
        tuple(suggestions),
        exact=exact,
        is_undefined=witness.is_undefined,
    )


def _smaller(asked: Question, witness: Witness) -> Iterator[int]:
    """Sizes below the one of the witness, if there is one size."""
    if len(asked.sizes) == 1:
        yield from range(1, min(witness.lengths[asked.sizes[0]], LONGEST + 1))


def proves_at(asked: Question, n: int) -> bool:
    """Whether the claim is proved where its one size is n."""
    return proved_at(asked, {asked.sizes[0]: n})


def suggested(claim: Claim, proves: Callable[[Claim], bool]) -> list[str]:
    """Assumptions that turn the claim into a proved one, without making it empty or trivial: `mu == 0, s == 1`."""
    single = list(_candidates(claim))
    ends = time.process_time() + min(SUGGESTING, SUGGESTING_SHARE * claim.budget)
    for count in (1, 2):
        found: list[tuple[Chain, ...]] = []
        for chosen in list(combinations(single, count))[:TRIED]:
            if time.process_time() > ends:
                break
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
