"""Points of a lattice in the order in which counterexamples are preferred.

Small sizes first; then small entries, few that are not 0, few that are negative, and of these the lexicographically
largest: the first violation met is the one to show.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import islice, product
from math import prod

from likewise.claims.algebra.coordinates import Coordinates
from likewise.claims.algebra.questions import Question
from likewise.claims.arrays import Array
from likewise.claims.language.claim import Between, Integers, OneOf, Reals, Variable
from likewise.claims.language.tree import Node, Number, children
from likewise.claims.verdict import Undecided

SIZES = 4  # the largest size that is tried with variables
ENTRIES = 200  # of all variables of a point
STEPS = 64  # levels of a finite domain of several variables
MANY = 4096  # size tuples tried without variables, and points of a finite domain


@dataclass(frozen=True)
class Level:
    """Values an entry may take, of which at least one of the point must be fresh; `most` points are tried."""

    values: frozenset[Fraction]
    fresh: frozenset[Fraction]
    most: int


def _level(values: Sequence[Fraction | int], fresh: Sequence[Fraction | int], most: int) -> Level:
    return Level(frozenset(map(Fraction, values)), frozenset(map(Fraction, fresh)), most)


def _parts(denominator: int) -> Level:
    """Halves or thirds, up to 2."""
    values = [Fraction(i, denominator) for i in range(-2 * denominator, 2 * denominator + 1)]
    return _level(values, [value for value in values if value.denominator > 1], 300)


WHOLE = (_level([0], [0], 1), *(_level(range(-r, r + 1), [-r, r], 1000 // r) for r in (1, 2, 3)))
PARTS = tuple(_parts(d) for d in (2, 3))
FAR = tuple(_level([0, -1, 1, -r, r], [-r, r], 200) for r in (10, 100))


def sizes(question: Question) -> Iterator[dict[str, int]]:
    """Lengths of the free sizes, small ones first; those near numbers of the claim come last."""
    names = question.sizes
    if not question.variables:
        most = next(n for n in range(64, 0, -1) if n ** len(names) <= MANY or n == 1) if names else 1
    else:
        most = SIZES if len(names) < 3 else 2
    special = sorted({n for value in numbers(question) for n in near(value) if most < n <= 64})
    usual, more = [*range(1, most + 1)], special if len(names) < 3 else []
    chosen = list(product(usual, repeat=len(names)))
    extra = [each for each in product([*usual, *more], repeat=len(names)) if more and max(each, default=0) > most]
    for group in (chosen, extra):
        for each in sorted(group, key=lambda each: (sum(each), each)):
            yield dict(zip(names, each, strict=True))


def near(value: Fraction) -> set[int]:
    """Whole numbers next to a number."""
    floor = int(value)
    return {n for n in (floor - 1, floor, floor + 1) if n >= 1}


def numbers(question: Question) -> set[Fraction]:
    """Numbers written in the claim: where something may change."""
    found: set[Fraction] = set()
    waiting: list[Node] = [term for chain in (question.chain, *question.assumptions) for term in chain.terms]
    while waiting:
        node = waiting.pop()
        waiting += children(node)
        found |= {node.value} if isinstance(node, Number) else set()
    for each in question.variables:
        match each.kind:
            case Between(lowest, highest):
                found |= {lowest, highest, (lowest + highest) / 2, (3 * lowest + highest) / 4}
            case OneOf(values):
                found |= set(values)
            case Integers(int(lowest), int(highest)):
                found |= {Fraction(lowest), Fraction(highest)}
    return found


def levels(question: Question) -> tuple[tuple[Level, ...], tuple[Level, ...]]:
    """Whole numbers, and what is tried after them: parts of numbers, numbers of the claim, large numbers."""
    written = numbers(question)
    around = {sign * (value + shift) for value in written for shift in (-1, 0, 1) for sign in (-1, 1)}
    known = frozenset(map(Fraction, range(-1, 2)))
    return WHOLE, (*PARTS, Level(known | around, frozenset(around) - known, 500), *FAR)


def finite(question: Question) -> bool:
    """Whether all points can be tried one by one."""
    if question.sizes or not question.variables:
        return not question.sizes
    return (
        all(_values(each.kind) for each in question.variables)
        and prod(len(_values(each.kind)) for each in question.variables) <= MANY
    )


def _values(kind: object) -> list[Fraction]:
    match kind:
        case OneOf(values):
            return [*values]
        case Integers(int(lowest), int(highest)) if highest - lowest < MANY:
            return [Fraction(n) for n in range(lowest, highest + 1)]
    return []


def all_levels(question: Question) -> list[Level]:
    """Levels that together contain every point of a finite domain."""
    values = {value for each in question.variables for value in _values(each.kind)}
    radii = sorted({abs(value) for value in values})
    if len(question.variables) == 1:
        fresh = [[value for value in (r, -r) if value in values] for r in radii]
        return [_level(each, each, MANY) for each in fresh]
    step = len(radii) // STEPS + 1  # by steps of several radii where there are many
    ends = [*radii[step - 1 :: step], *radii[-1:]]
    starts = [Fraction(-1), *ends]
    return [
        _level([v for v in values if abs(v) <= end], [v for v in values if start < abs(v) <= end], MANY)
        for start, end in zip(starts, dict.fromkeys(ends), strict=False)
    ]


def within(kind: object, value: Fraction) -> bool:
    """Whether a number is in the domain."""
    match kind:
        case Integers(lowest, highest):
            whole = value.denominator == 1
            return whole and (lowest is None or value >= lowest) and (highest is None or value <= highest)
        case OneOf(values):
            return value in values
        case Between(lowest, highest):
            return lowest <= value <= highest
    return isinstance(kind, Reals)


def ordered(question: Question) -> list[Variable]:
    """Numbers before vectors, as a verdict prints them."""
    return sorted(question.variables, key=lambda each: bool(question.dims(each)))


def points(question: Question, lengths: dict[str, int], level: Level) -> Iterator[dict[str, Array]]:
    """Points of one level at these lengths, the preferred ones first."""
    at, shapes, choices = Coordinates({}, lengths), {}, []
    for each in ordered(question):
        shapes[each.name] = tuple(at.whole(dim) for dim in question.dims(each))
        values = sorted((value for value in level.values if within(each.kind, value)), reverse=True)
        choices += [values] * prod(shapes[each.name])
    if len(choices) > ENTRIES:
        raise Undecided(f"a search over more than {ENTRIES} entries")
    chosen = (
        entries
        for nonzero in range(len(choices) + 1)
        for negative in range(nonzero + 1)
        for entries in _fill(choices, 0, nonzero, negative, level.fresh if choices else frozenset())
    )
    for entries in islice(chosen, level.most):
        found, start = {}, 0
        for name, shape in shapes.items():
            found[name] = Array(shape, entries[start : start + prod(shape)])
            start += prod(shape)
        yield found


def _fill(
    choices: Sequence[Sequence[Fraction]], place: int, nonzero: int, negative: int, fresh: frozenset[Fraction]
) -> Iterator[tuple[Fraction, ...]]:
    """Entries from `place` on: so many are not 0, so many below 0, and one is fresh unless `fresh` is empty."""
    left = len(choices) - place
    if not 0 <= nonzero <= left or not 0 <= negative <= nonzero:
        return
    if not left:
        if not fresh:
            yield ()
        return
    for value in choices[place]:
        needed = frozenset() if value in fresh else fresh
        for entries in _fill(choices, place + 1, nonzero - (value != 0), negative - (value < 0), needed):
            yield (value, *entries)
