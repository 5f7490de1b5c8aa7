"""Counterexamples by search: many points of many kinds, then steps downhill from the best of them, ruled by the judge.

The points are those of the blind search, at longer vectors too. Where a comparison is nearly false the point is moved,
entry by entry, to where it is less true: narrow and steep regions are found so. A point that the judge calls false is
made simpler while it stays false, and read once more by the engines' own reader.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import islice, product
from math import inf, isqrt
from random import Random
from typing import Any

import numpy as np
from flint import ctx, fmpq

from likewise.claims import blind, judge
from likewise.claims.algebra.coordinates import Coordinates
from likewise.claims.algebra.questions import question
from likewise.claims.algebra.witnesses import Witness, violation
from likewise.claims.arrays import Array
from likewise.claims.language.claim import Claim, Compares, Integers, OneOf, Reals
from likewise.claims.language.tree import Name
from likewise.claims.verdict import Finding, Undecided

SECONDS, BUDGET_SHARE = 1.5, 0.3  # of process time, and of the budget
POINTS, LONG = 400, 60  # that are looked at; with long vectors
STARTS, STEPS = 8, 160  # points to move downhill from, and looks for each
SUMS = (40, 90, 160, 290)  # terms of a sum over an index
EVEN = (4, 8, 9, 16, 25, 36)  # lengths of vectors whose entries are all the same
LENGTHS = (5, 7, 8, 9, 11, 16, 23, 32, 40)  # of vectors
POINTS_PER_TIME_CHECK = 8  # points between two looks at the time
SMALLEST = Fraction(1, 2**14)  # step
WRITTEN = 100  # points made of the numbers of the claim
BITS = 64
ENGINE = "search"


@dataclass(frozen=True)
class At:
    """A point: sizes, and entries of variables."""

    sizes: blind.Sizes
    values: blind.Values

    def moved(self, name: str, place: int, value: fmpq) -> "At":
        """The same with one entry, or one size, changed."""
        if name in self.sizes:
            return replace(self, sizes={**self.sizes, name: int(value.p)})
        entries = [*self.values[name]]
        entries[place] = value
        return replace(self, values={**self.values, name: entries})


def refuted_soon(claim: Claim, points: int = 60) -> bool:
    """Whether a few points show already that the claim is false."""
    return any(judge.rule(claim, at.sizes, at.values, (BITS,)) == "false" for at in islice(_points(claim), points))


def decide(claim: Claim) -> Finding | None:
    """Refuted by a point, or None."""
    if not isinstance(claim.relation, Compares) or question(claim) is None:
        return None
    crossed = _crossed(claim)
    if crossed is not None:
        return crossed
    ends = time.process_time() + min(SECONDS, BUDGET_SHARE * claim.budget)
    found = _found(claim, ends)
    if found is None:
        return None
    return _refuted(claim, _simpler(claim, found, ends + SECONDS))


def _crossed(claim: Claim) -> Finding | None:
    """Refuted at a number that is no fraction, where two sides cross: cos(x) != x."""
    for name, low, high in islice(blind.brackets(claim), blind.CROSSINGS):
        if judge.crosses(claim, name, low, high) == "false":
            about = f"{float(Fraction(int(low.p), int(low.q))):.12g}"
            equation = judge.crossing(claim)
            assert equation is not None
            left, right = equation.terms
            detail = f"{name}={about}..., where {left} crosses {right}"
            numbers = (("of", name), ("above", str(low)), ("below", str(high)))
            return Finding(
                "refuted", "exact witness", detail, blind.CROSSING, ((name, f"{about}..."),), numbers=numbers
            )
    return None


def _points(claim: Claim) -> Iterator[At]:
    """The points of the blind search, here and there one with long vectors."""
    draw, axes, written = Random(claim.seed or 0), blind.axes(claim), blind.written(claim)
    numbers = [each for each in claim.variables if isinstance(each.kind, Reals) and not each.kind.dims]
    if len(numbers) == len(claim.variables) and not claim.sizes:  # where something may change
        chosen = product([sign * value for value in written for sign in (1, -1)], repeat=len(numbers))
        for values in islice(chosen, WRITTEN):
            pairs = zip(numbers, values, strict=True)
            yield At({}, {each.name: [judge.rational(value)] for each, value in pairs})
    yield from _even(claim, axes)
    for number, (sizes, values) in enumerate(blind.points(claim, claim.seed or 0)):
        yield At(sizes, values)
        if axes and number % 6 == 5:
            length = LENGTHS[number // 6 % len(LENGTHS)]
            longer = {name: length if name in axes else size for name, size in sizes.items()}
            free = {size.name for size in claim.sizes if size.equation is None}
            style = draw.choice(("one", "zero", "axis", "small", "positive", "equal", "huge", "written"))
            found = blind.filled(claim, {n: v for n, v in longer.items() if n in free}, {}, draw, style, written)
            if found is not None:
                yield At(*found)


def _even(claim: Claim, axes: set[str]) -> Iterator[At]:
    """Long sums; and, where something is assumed of vectors, those whose equal entries have the sum 1 or the norm 1."""
    free = {size.name for size in claim.sizes if size.equation is None}
    vectors = [each for each in claim.variables if isinstance(each.kind, Reals) and len(each.kind.dims) == 1]
    if not claim.variables and axes:
        yield from (At(dict.fromkeys(free, terms), {}) for terms in SUMS)
    if not vectors or not claim.assumptions or free != axes or len(vectors) < len(claim.variables):
        return
    for length in EVEN:
        for share in {Fraction(1, length), Fraction(1, isqrt(length)) if isqrt(length) ** 2 == length else Fraction(1)}:
            entries = {each.name: [judge.rational(share)] * length for each in vectors}
            if all(isinstance(each.kind, Reals) and isinstance(each.kind.dims[0], Name) for each in vectors):
                yield At(dict.fromkeys(free, length), entries)


def _found(claim: Claim, ends: float) -> At | None:
    best: list[tuple[float, int, At]] = []
    for number, at in enumerate(islice(_points(claim), POINTS)):
        if number % POINTS_PER_TIME_CHECK == 0 and time.process_time() > ends:
            break
        if judge.rule(claim, at.sizes, at.values, (BITS,)) == "false":
            return at
        margin = _margin(claim, at)
        if margin is not None:
            best.append((margin, number, at))
    assert isinstance(claim.relation, Compares)
    if not {*claim.relation.chain.comparisons} <= {"==", "!="}:
        for _, _, at in sorted(best)[:STARTS]:
            lower = _downhill(claim, at, ends)
            if lower is not None:
                return lower
    return None


def _margin(claim: Claim, at: At) -> float | None:
    """How far the claim is from being false, as a float; None where it says nothing."""
    ctx.prec = BITS
    least = inf
    try:
        point = judge.place(claim, at.sizes, at.values)
        if any(point.truth(assumption) != "true" for assumption in claim.assumptions):
            return None
        assert isinstance(claim.relation, Compares)
        chain = claim.relation.chain
        sides = [point.value(term) for term in chain.terms]
        for left, sign, right in zip(sides, chain.comparisons, sides[1:], strict=False):
            if sign in ("==", "!="):
                continue
            small, large = (left, right) if sign in ("<", "<=") else (right, left)
            for entry in np.asarray(large.array - small.array, dtype=object).reshape(-1):
                least = min(least, float(judge.ball(entry).mid()))
    except (judge.Undefined, judge.Unclear, judge.Misfit, judge.Outside, judge.Turned, OverflowError, ValueError):
        return None
    return least if least == least and least < inf else None


def _downhill(claim: Claim, at: At, ends: float) -> At | None:
    """A point at which the claim is false, found by steps along one entry at a time."""
    places = _places(claim, at)
    if not places:
        return None
    lowest = _margin(claim, at)
    steps = {place: Fraction(1) for place in places}
    looks = 0
    while lowest is not None and looks < STEPS and max(steps.values()) >= SMALLEST and time.process_time() < ends:
        for name, place in places:
            step, whole = steps[name, place], _is_whole(claim, name)
            if step < SMALLEST or (whole and step < 1):
                steps[name, place] = Fraction(0)
                continue
            here = at.sizes[name] if name in at.sizes else at.values[name][place]
            for move in (step, -step):
                looks += 1
                there = at.moved(name, place, fmpq(1) * here + judge.rational(move))
                margin = _margin(claim, there)
                if margin is not None and margin < lowest:
                    at, lowest = there, margin
                    steps[name, place] = 2 * step
                    break
            else:
                steps[name, place] = step / 4
        if lowest < 0 and judge.rule(claim, at.sizes, at.values) == "false":
            return at
    return None


def _places(claim: Claim, at: At) -> list[tuple[str, int]]:
    """What can be moved: entries of variables that no equation gives, and sizes that are no lengths."""
    given, axes = dict(blind.equations(claim.assumptions)), blind.axes(claim)
    found = [(size.name, 0) for size in claim.sizes if size.equation is None and size.name not in axes]
    for each in claim.variables:
        if each.name in at.values and each.name not in given and not isinstance(each.kind, OneOf):
            found += [(each.name, place) for place in range(len(at.values[each.name]))]
    return found[:12]


def _is_whole(claim: Claim, name: str) -> bool:
    each = claim.variable(name)
    return each is None or isinstance(each.kind, Integers)


def _simpler(claim: Claim, at: At, ends: float) -> At:
    """The point with vectors as short, and every entry as simple, as the judge allows."""
    at = _shorter(claim, at)
    for each in claim.variables:
        for place, entry in enumerate(at.values.get(each.name, [])):
            if not isinstance(entry, fmpq):
                continue
            value = Fraction(int(entry.p), int(entry.q))
            simple = [Fraction(0), Fraction(1), Fraction(-1), Fraction(round(value))]
            simple += [value.limit_denominator(most) for most in (2, 10, 100, 1000)]
            for guess in dict.fromkeys(simple):
                there = at.moved(each.name, place, judge.rational(guess))
                if guess == value or time.process_time() > ends:
                    break
                if judge.rule(claim, there.sizes, there.values) == "false":
                    at = there
                    break
    return at


def _shorter(claim: Claim, at: At) -> At:
    """The point with the last entries of its vectors left out, where they all have one length."""
    vectors = {each.name: each.kind.dims for each in claim.variables if isinstance(each.kind, Reals) and each.kind.dims}
    if len(set(vectors.values())) != 1 or len(claim.sizes) != 1:
        return at
    ((dim, *more),) = {*vectors.values()}
    if more or not isinstance(dim, Name):
        return at
    for length in range(1, at.sizes[dim.name]):
        values = {name: entries[:length] if name in vectors else entries for name, entries in at.values.items()}
        if judge.rule(claim, {dim.name: length}, values) == "false":
            return At({dim.name: length}, values)
    return at


def _refuted(claim: Claim, at: At) -> Finding | None:
    """The point as a witness; the engines' reader must not contradict it."""
    asked = question(claim)
    assert asked is not None
    lengths = {name: at.sizes[name] for name in asked.sizes}
    values: dict[str, Array] = {}
    try:
        reading = Coordinates({}, lengths)
        for each in asked.variables:
            shape = tuple(reading.whole(dim) for dim in asked.dims(each))
            values[each.name] = Array(shape, tuple(_fraction(entry) for entry in at.values[each.name]))
        seen: Any = violation(asked.complete(values, lengths), asked.chain)
        if seen is None:
            raise AssertionError(f"the reader sees no violation at {at}")
    except (Undecided, ArithmeticError, IndexError):
        seen = "false, in balls"
    witness = Witness(lengths, tuple((name, array) for name, array in values.items()), seen)
    return Finding("refuted", "exact witness", str(witness), ENGINE, witness.named() or (("seen", seen),))


def _fraction(entry: Any) -> Fraction:
    if not isinstance(entry, fmpq):
        raise Undecided("an entry that is no fraction")
    return Fraction(int(entry.p), int(entry.q))
