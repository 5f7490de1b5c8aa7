"""exp, log, sin, cos and powers with a variable exponent as names of z3, with what is known of them everywhere.

Every fact is true of the real functions, so that what z3 excludes is excluded; what it allows need not exist. exp and
log are points of one curve: it is increasing, convex (it lies above its tangents), above its Taylor polynomials of odd
degree, and turns sums into products. sin and cos are points of a circle.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import combinations, permutations
from typing import Any

import z3
from flint import arb, ctx, fmpq

from likewise.claims.verdict import Undecided

POINTS, RELATED = 10, 4  # on a curve at most; among which quotients are points too
NUMBERS = 4  # of the claim that are points too
LARGEST = 40  # of an exponent that is a number
FEW = 8  # powers that are known exactly
DIGITS = 10**9
Term = Any
Fact = Any


@dataclass(frozen=True)
class Point:
    """e^x = y, where `defined` is true."""

    x: Term
    y: Term
    defined: Fact


ORIGIN = Point(z3.RealVal(0), z3.RealVal(1), z3.BoolVal(True))


@dataclass(frozen=True)
class Turn:
    """The sine and the cosine of an angle."""

    angle: Term
    sine: Term
    cosine: Term


@dataclass(frozen=True)
class Power:
    """base^exponent of a number above 0."""

    base: Fraction
    exponent: Term
    value: Term


@dataclass
class Curves:
    """The points that were made, each once, and the numbers of the claim."""

    points: dict[tuple[str, int], Point] = field(default_factory=dict)
    turns: dict[int, Turn] = field(default_factory=dict)
    powers: dict[tuple[Fraction, int], Power] = field(default_factory=dict)
    enclosed: list[Fact] = field(default_factory=list)  # numbers and what they lie between
    numbers: list[Fraction] = field(default_factory=list)
    ratios: list[Point] = field(default_factory=list)

    def exp(self, x: Term) -> Term:
        """e^x."""
        if isinstance(x, Fraction):
            if not x:
                return Fraction(1)
            if abs(x) > LARGEST:
                raise Undecided("z3 is not asked about so large an exponent")
            return self._number("exp", x).y
        key = ("exp", x.get_id())
        if key not in self.points:
            self._add(key, Point(x, z3.Real(f"exp!{len(self.points)}"), z3.BoolVal(True)))
        return self.points[key].y

    def log(self, y: Term) -> Term:
        """The logarithm; where y is not above 0 nothing is known of it."""
        if isinstance(y, Fraction):
            if y <= 0:
                raise ArithmeticError("a logarithm of what is not positive")
            return Fraction(0) if y == 1 else self._number("log", y).x
        key = ("log", y.get_id())
        if key not in self.points:
            self._add(key, Point(z3.Real(f"log!{len(self.points)}"), y, y > 0))
        return self.points[key].x

    def _add(self, key: tuple[str, int], point: Point) -> None:
        if len(self.points) >= POINTS:
            raise Undecided("z3 is not asked about so many exponentials")
        self.points[key] = point

    def _number(self, kind: str, value: Fraction) -> Point:
        key = (f"{kind} {value}", 0)
        if key not in self.points:
            ctx.prec = 128
            given = arb(fmpq(value.numerator, value.denominator))
            ball = given.exp() if kind == "exp" else given.log()
            symbol, known = z3.Real(f"{kind}({value})"), real(value)
            low = (ball * DIGITS).floor().lower().floor().unique_fmpz()
            if low is None:
                raise Undecided(f"{kind}({value}) is not enclosed")
            self.enclosed += [symbol >= z3.Q(int(low) - 1, DIGITS), symbol <= z3.Q(int(low) + 2, DIGITS)]
            x, y = (known, symbol) if kind == "exp" else (symbol, known)
            self._add(key, Point(x, y, z3.BoolVal(True)))
        return self.points[key]

    def turn(self, angle: Term) -> Turn:
        """sin and cos of an angle."""
        angle = real(angle)
        key = angle.get_id()
        if key not in self.turns:
            number = len(self.turns)
            self.turns[key] = Turn(angle, z3.Real(f"sin!{number}"), z3.Real(f"cos!{number}"))
        return self.turns[key]

    def power(self, base: Fraction, exponent: Term) -> Term:
        """base^exponent."""
        if base <= 0:
            raise Undecided("z3 is not asked about a variable exponent of what is not above 0")
        if base == 1:
            return Fraction(1)
        key = (base, exponent.get_id())
        if key not in self.powers:
            self.powers[key] = Power(base, exponent, z3.Real(f"power!{len(self.powers)}"))
        return self.powers[key].value

    def definitions(self) -> list[tuple[Term, tuple[Term, ...]]]:
        """Every name that was made, and of what."""
        found = [(p.y, (p.x,)) if kind.startswith("exp") else (p.x, (p.y,)) for (kind, _), p in self.points.items()]
        found += [(name, (turn.angle,)) for turn in self.turns.values() for name in (turn.sine, turn.cosine)]
        return found + [(power.value, (power.exponent,)) for power in self.powers.values()]

    def facts(self, *, simple: bool = False) -> list[Fact]:
        """What is known of all of them; simple: the order of points alone."""
        if simple:
            return [*self.enclosed, *_simple(self.all_points()), *_of_turns([*self.turns.values()])]
        if self.points:
            for number in [n for n in self.numbers if n and abs(n) <= LARGEST][:NUMBERS]:
                if len(self.points) < POINTS:
                    self._number("exp", number)
        return [*self.enclosed, *self._of_points(), *_of_turns([*self.turns.values()]), *self._of_powers()]

    def all_points(self) -> list[Point]:
        """The points, and quotients of some, as facts() made them."""
        return [*self.points.values(), *self.ratios]

    def tangents(self) -> list[Fact]:
        """That each point lies above the tangents of the others."""
        return [_tangents(one, other) for one, other in combinations([ORIGIN, *self.all_points()], 2)]

    def relate(self, points: list[Point]) -> list[Fact]:
        """e^(a - b) = e^a/e^b, of a few: these quotients are points too."""
        self.ratios, found = [], []
        for number, (one, other) in enumerate(permutations(points, 2) if len(points) <= RELATED else ()):
            if zero(one.x + other.x) or _known(one.x - other.x, self.all_points()):
                continue
            y, defined = z3.Real(f"ratio!{number}"), z3.And(one.defined, other.defined)
            found.append(z3.Implies(defined, z3.And(y > 0, y * other.y == one.y)))
            self.ratios.append(Point(one.x - other.x, y, defined))
        return found

    def _of_points(self) -> Iterator[Fact]:
        yield from self.relate([point for point in self.points.values() if not _constant(point)])
        points = self.all_points()
        for point in points:
            x = point.x
            cubic = 1 + x + x * x / 2 + x * x * x / 6
            above = z3.Implies(x <= 0, point.y <= 1 + x + x * x / 2)
            yield z3.Implies(point.defined, z3.And(point.y > 0, point.y >= cubic, above))
        for one, other in combinations([ORIGIN, *points], 2):
            yield _order(one, other)
            yield _tangents(one, other)
            if zero(one.x + other.x):
                yield z3.Implies(z3.And(one.defined, other.defined), one.y * other.y == 1)
        mine = [*self.points.values()]
        for one, other, third in ((a, b, c) for a in mine for b in mine for c in mine if c is not a and c is not b):
            if zero(one.x + other.x - third.x):
                defined = z3.And(one.defined, other.defined, third.defined)
                yield z3.Implies(defined, one.y * other.y == third.y)

    def _of_powers(self) -> Iterator[Fact]:
        powers = [*self.powers.values()]
        for power in powers:
            yield power.value > 0
            n, rising = power.exponent, power.base > 1
            for k in range(FEW + 1):
                exact = real(power.base**k)
                yield (n == k) == (power.value == exact)
                yield (n > k) == (power.value > exact if rising else power.value < exact)
                if is_whole(n):  # Bernoulli: b^(n - k) >= 1 + (n - k)*(b - 1) for whole numbers
                    yield power.value >= exact * (1 + (n - k) * real(power.base - 1))
        for one, other in combinations(powers, 2):
            if one.base != other.base:
                continue
            yield (one.exponent < other.exponent) == ((one.value < other.value) == (one.base > 1))
            step = number_of(other.exponent - one.exponent)
            if step is not None and step.denominator == 1 and abs(step) <= LARGEST:
                yield other.value == one.value * real(one.base ** int(step))


def _simple(points: list[Point]) -> Iterator[Fact]:
    yield from (z3.Implies(point.defined, point.y > 0) for point in points)
    yield from (_order(one, other) for one, other in combinations([ORIGIN, *points], 2))


def _order(one: Point, other: Point) -> Fact:
    """e^x rises."""
    order = z3.And((one.x < other.x) == (one.y < other.y), (one.x == other.x) == (one.y == other.y))
    return z3.Implies(z3.And(one.defined, other.defined), order)


def _tangents(one: Point, other: Point) -> Fact:
    """Each of two points lies above the tangent of the other."""
    step = other.x - one.x
    tangents = z3.And(other.y >= one.y * (1 + step), one.y >= other.y * (1 - step))
    return z3.Implies(z3.And(one.defined, other.defined), tangents)


def _of_turns(turns: list[Turn]) -> Iterator[Fact]:
    for turn in turns:
        x, s, c = turn.angle, turn.sine, turn.cosine
        square, cube = x * x, x * x * x / 6
        yield s * s + c * c == 1
        yield z3.And(s <= 1, s >= -1, c <= 1, c >= -1, c >= 1 - square / 2, c <= 1 - square / 2 + square * square / 24)
        yield z3.Implies(x >= 0, z3.And(s <= x, s >= x - cube))
        yield z3.Implies(x <= 0, z3.And(s >= x, s <= x - cube))
    for one, other in combinations(turns, 2):
        if zero(one.angle + other.angle):
            yield z3.And(one.sine == -other.sine, one.cosine == other.cosine)
    for one, other, third in ((a, b, c) for a in turns for b in turns for c in turns if c is not a and c is not b):
        if zero(one.angle + other.angle - third.angle):
            yield third.sine == one.sine * other.cosine + one.cosine * other.sine
            yield third.cosine == one.cosine * other.cosine - one.sine * other.sine


def real(value: Term) -> Term:
    """A number as a term."""
    return z3.RealVal(str(value)) if isinstance(value, Fraction | int) else value


def number_of(term: Term) -> Fraction | None:
    """The number that a term is after all terms were collected, if it is one."""
    value = z3.simplify(term, som=True)
    return value.as_fraction() if z3.is_rational_value(value) else None


def zero(term: Term) -> bool:
    """Whether a term is 0 after all terms were collected."""
    return number_of(term) == 0


def _constant(point: Point) -> bool:
    return z3.is_rational_value(point.x) or z3.is_rational_value(point.y)


def _known(x: Term, points: Iterable[Point]) -> bool:
    return any(zero(x - point.x) for point in points)


def is_whole(term: Term) -> bool:
    """Whether a real term is a whole number: sums and products of whole numbers."""
    if z3.is_rational_value(term):
        return term.denominator_as_long() == 1
    if z3.is_to_real(term):
        return True
    if z3.is_add(term) or z3.is_sub(term) or z3.is_mul(term):
        return all(is_whole(child) for child in term.children())
    return False
