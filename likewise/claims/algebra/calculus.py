"""Inequalities in one number: Taylor coefficients in balls over boxes, and derivatives of sums of exponentials beyond.

On a box f >= 0 if its ball says so, or if at one end f, f', ... are >= 0 up to a derivative that is > 0 on the box: so
exp(x) >= 1 + x is proved where both sides touch. On [X, inf) a sum of P(x)*exp(q(x)) is divided by its slowest
exponential and differentiated until that is gone: each step must be >= 0 at X, the last one is a polynomial. A number
above 0 of which logarithms or roots are taken is exp(t).
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import pairwise
from math import factorial
from typing import Any

from flint import arb, ctx, fmpq

from likewise.claims import arrays
from likewise.claims.algebra.exponomials import form
from likewise.claims.algebra.questions import Question, comparisons, question
from likewise.claims.enclosures import ENCLOSURES, divide, exactly, sign
from likewise.claims.language.claim import Between, Claim, Integers, Reals
from likewise.claims.language.expressions import rebuilt
from likewise.claims.language.tree import (
    Binary,
    Call,
    Comparison,
    Constant,
    Name,
    Negative,
    Node,
    Number,
    children,
    names,
)
from likewise.claims.reader import Reader, Scalars
from likewise.claims.spelling import put
from likewise.claims.verdict import Finding, Undecided

ORDER, BOXES, DEEPEST = 5, 1500, 40  # of Taylor coefficients; boxes looked at; halvings
BUDGET_SHARE = 0.3
BEYOND = (8, 40, 200)  # where the tails may begin
WHOLE = 450  # whole numbers that are tried one by one
TERMS, EXPONENT, STEPS, LONG = 60, 12, 40, 8192  # the last in bits
Enclosed = Any  # a fraction or a ball
ZERO = fmpq(0)


class Fails(Exception):
    """Raised where the inequality is surely false: there is nothing to prove."""


@dataclass(frozen=True)
class Jet:
    """Taylor coefficients; fewer where only they are known."""

    c: tuple[Enclosed, ...]

    def __neg__(self) -> "Jet":
        return Jet(tuple(-a for a in self.c))

    def __add__(self, other: "Jet") -> "Jet":
        return Jet(tuple(a + b for a, b in zip(self.c, other.c, strict=False)))

    def __sub__(self, other: "Jet") -> "Jet":
        return self + -other

    def __mul__(self, other: "Jet") -> "Jet":
        most = min(len(self.c), len(other.c))
        return Jet(tuple(_dot(self.c, other.c, k) for k in range(most)))


def _dot(a: tuple, b: tuple, k: int) -> Enclosed:
    return sum((a[j] * b[k - j] for j in range(k + 1)), ZERO)


def constant(value: Any) -> Jet:
    """A number."""
    if isinstance(value, Jet):
        return value
    return Jet((exactly(value) if isinstance(value, Fraction | int) else value, *[ZERO] * ORDER))


def _exp(a: Jet) -> Jet:
    found = [ENCLOSURES.elementwise["exp"](a.c[0])]
    for k in range(1, len(a.c)):
        found.append(sum((j * a.c[j] * found[k - j] for j in range(1, k + 1)), ZERO) / k)
    return Jet(tuple(found))


def _quotient(a: Jet, b: Jet) -> Jet:
    found: list[Enclosed] = []
    for k in range(min(len(a.c), len(b.c))):
        rest = a.c[k] - sum((b.c[j] * found[k - j] for j in range(1, k + 1)), ZERO)
        found.append(divide(rest, b.c[0]))
    return Jet(tuple(found))


def _log(a: Jet) -> Jet:
    found = [ENCLOSURES.elementwise["log"](a.c[0])]
    for k in range(1, len(a.c)):
        rest = a.c[k] - sum((j * found[j] * a.c[k - j] for j in range(1, k)), ZERO) / k
        found.append(divide(rest, a.c[0]))
    return Jet(tuple(found))


def _as_ball(value: Enclosed, exponent: int) -> Enclosed:
    """A fraction whose power would be long, as a ball."""
    return arb(value) if isinstance(value, fmpq) and value.height_bits() * exponent > LONG else value


def _power(a: Jet, exponent: Any) -> Jet:
    if isinstance(exponent, Jet):
        if sign(a.c[0]) <= 0:
            raise Undecided("a power with a variable exponent, of what is not above 0")  # whole ones have a value
        return _exp(_log(a) * exponent)
    power = Fraction(exponent)
    if power.denominator == 1 and 0 <= power <= EXPONENT:
        found = constant(1)
        small = Jet(tuple(_as_ball(value, int(power)) for value in a.c))
        for _ in range(int(power)):
            found = found * small
        whole = ENCLOSURES.power(a.c[0], exactly(power))
        return Jet((whole, *found.c[1:]))
    first = ENCLOSURES.power(a.c[0], exactly(power))
    try:
        below = sign(a.c[0]) == 0
    except Undecided:
        below = True
    if below:
        return Jet((first,))
    found_ = [first]
    for k in range(1, len(a.c)):
        total = sum((exactly(power * j - (k - j)) * a.c[j] * found_[k - j] for j in range(1, k + 1)), ZERO)
        found_.append(divide(total, k * a.c[0]))
    return Jet(tuple(found_))


def _turns(a: Jet) -> tuple[Jet, Jet]:
    sines, cosines = [ENCLOSURES.elementwise["sin"](a.c[0])], [ENCLOSURES.elementwise["cos"](a.c[0])]
    for k in range(1, len(a.c)):
        sines.append(sum((j * a.c[j] * cosines[k - j] for j in range(1, k + 1)), ZERO) / k)
        cosines.append(-sum((j * a.c[j] * sines[k - j] for j in range(1, k + 1)), ZERO) / k)
    return Jet(tuple(sines)), Jet(tuple(cosines))


def _erf(a: Jet) -> Jet:
    slope = _exp(-(a * a)) * constant(2 / arb.pi().sqrt())
    found = [ENCLOSURES.elementwise["erf"](a.c[0])]
    rest = (sum((j * a.c[j] * slope.c[k - j] for j in range(1, k + 1)), ZERO) / k for k in range(1, len(a.c)))
    return Jet((*found, *rest))


def _bent(a: Jet, below: Callable[[Jet], Jet], either: Callable[[Enclosed], Enclosed]) -> Jet:
    """The jet itself above 0, what `below` makes of it below, and one ball where it is not known which."""
    try:
        side = sign(a.c[0])
    except Undecided:
        return Jet((either(arb(a.c[0])),))
    if side == 0:
        return Jet((ZERO,))
    return a if side > 0 else below(a)


def _abs(a: Jet) -> Jet:
    return _bent(a, lambda b: -b, abs)


def _relu(a: Jet) -> Jet:
    return _bent(a, lambda b: Jet(tuple(ZERO for _ in b.c)), lambda ball: ball.max(arb(0)))


def _largest(*values: Jet) -> Jet:
    found = values[0]
    for value in values[1:]:
        found = value + _relu(found - value)
    return found


JETS = Scalars(
    elementwise={
        "exp": _exp,
        "log": _log,
        "sqrt": lambda a: _power(a, Fraction(1, 2)),
        "sin": lambda a: _turns(a)[0],
        "cos": lambda a: _turns(a)[1],
        "erf": _erf,
        "abs": _abs,
        "relu": _relu,
    },
    maximum=_largest,
    power=_power,
    number=constant,
    divide=_quotient,
    pi=lambda: constant(arb.pi()),
)


@dataclass
class Range:
    """Where the number may lie; an end that is None is infinite, an open end is not part of it."""

    low: Fraction | None = None
    high: Fraction | None = None
    open_low: bool = False
    open_high: bool = False
    whole: bool = False

    def below(self, bound: Fraction, is_open: bool) -> None:
        """x <= bound, or x < bound."""
        if self.high is None or bound < self.high or (bound == self.high and is_open):
            self.high, self.open_high = bound, is_open

    def above(self, bound: Fraction, is_open: bool) -> None:
        """x >= bound, or x > bound."""
        if self.low is None or bound > self.low or (bound == self.low and is_open):
            self.low, self.open_low = bound, is_open


def decide(claim: Claim) -> Finding | None:
    """Proves a chain of inequalities in one number; None if it is not of this kind or is not proved."""
    asked = question(claim)
    if asked is None or len(asked.variables) + len(asked.sizes) != 1 or "==" in asked.chain.comparisons:
        return None
    name = (*asked.sizes, *(each.name for each in asked.variables))[0]
    place = _range(asked, name)
    if place is None or not all(map(_smooth, asked.chain.terms)):
        return None
    ctx.prec = 128
    ends = time.process_time() + BUDGET_SHARE * claim.budget
    try:
        links = list(zip(asked.chain.terms, asked.chain.comparisons, asked.chain.terms[1:], strict=False))
        if all(_proved(name, place, *link, ends) for link in links):
            scope = f"for every {name}" if asked.sizes else "for all values"
            return Finding("holds", "proved", f"{scope} (derivatives and balls)", engine="calculus")
    except (Undecided, Fails, ArithmeticError, OverflowError):
        pass
    return None


def _smooth(node: Node) -> bool:
    """Whether an expression is made of numbers and of functions that have Taylor coefficients beside their kinks."""
    match node:
        case Call(function, arguments):
            mine = function in JETS.elementwise or (function in ("max", "min") and len(arguments) == 2)
        case Binary(operator, _, _):
            mine = operator != "@"
        case _:
            mine = isinstance(node, Number | Name | Constant | Negative)
    return mine and all(map(_smooth, children(node)))


def _range(asked: Question, name: str) -> Range | None:
    """The set that a number comes from, made smaller by assumptions that compare it with numbers."""
    found = Range()
    if asked.sizes:
        found = Range(low=Fraction(1), whole=True)
    else:
        (each,) = asked.variables
        match each.kind:
            case Reals(()):
                pass
            case Between(low, high):
                found = Range(Fraction(low), Fraction(high))
            case Integers(low, high):
                least, most = (None if end is None else Fraction(end) for end in (low, high))
                found = Range(least, most, whole=True)
            case _:
                return None
    for left, comparison, right in comparisons(asked.assumptions):
        if not isinstance(right, Number) or comparison not in ("<", "<=", ">", ">="):
            continue
        if left == Name(name):
            side = found.below if comparison in ("<", "<=") else found.above
            side(right.value, comparison in ("<", ">"))
        elif left == Call("abs", (Name(name),)) and comparison in ("<", "<="):
            found.below(right.value, comparison == "<")
            found.above(-right.value, comparison == "<")
    if found.low is not None and found.high is not None and found.low >= found.high:
        return None
    return found


def _proved(name: str, place: Range, left: Node, comparison: Comparison, right: Node, ends: float) -> bool:
    if comparison == "!=":
        return any(_link(name, place, left, way, right, ends) for way in ("<", ">"))
    return _link(name, place, left, comparison, right, ends)


def _link(name: str, place: Range, left: Node, comparison: str, right: Node, ends: float) -> bool:
    difference = Binary("-", right, left) if comparison in ("<", "<=") else Binary("-", left, right)
    try:
        return _Problem(name, place, difference, comparison in ("<", ">"), ends).proved()
    except Fails:
        return False


NOUGHT = Fraction(0)
RAISED: dict[tuple[Any, Any], tuple[Fraction | None, Fraction | None]] = {  # where exp(t) is, and where t is
    (0, None): (None, None),
    (1, None): (NOUGHT, None),
    (0, 1): (None, NOUGHT),
}


@dataclass
class _Problem:
    """f >= 0, or f > 0, for all numbers in a range."""

    name: str
    place: Range
    node: Node
    strict: bool
    ends: float
    boxes: int = 0
    points: dict[Fraction, Jet] = field(default_factory=dict)

    def proved(self) -> bool:
        place = self.place
        ends = (place.low, place.high)
        if ends in RAISED and not place.whole and _needs_logarithm(self.node, self.name):
            if place.low == 0 and not place.open_low and not self.at_end(Fraction(0)):
                return False
            moved = Range(*RAISED[ends], place.open_low, place.open_high)
            return replace(self, place=moved, node=_raised(self.node, self.name), points={}).proved()
        return any(self.beyond(Fraction(far)) for far in BEYOND)

    def at_end(self, end: Fraction) -> bool:
        """Whether the inequality is true, or says nothing, at one point."""
        try:
            value = self.at(exactly(end)).c[0]
            return bool(value > 0 if self.strict else value >= 0)
        except ArithmeticError:
            return True
        except Undecided:
            return False

    def beyond(self, far: Fraction) -> bool:
        """Proved with tails that begin at ±far."""
        place = self.place
        low = min(-far, place.high - 1 if place.high is not None else -far) if place.low is None else place.low
        high = max(far, low + 1) if place.high is None else place.high
        if place.high is None and not self.tail(high, 1):
            return False
        if place.low is None and not self.tail(-low, -1):
            return False
        if place.whole and high - low <= WHOLE:
            return all(self.at_end(Fraction(n)) for n in range(-(-low // 1), high // 1 + 1))
        marks = sorted({low, high, *(each for each in map(Fraction, (-1, 0, 1)) if low < each < high)})
        return all(self.box(a, b, 0) for a, b in pairwise(marks))

    def at(self, value: Enclosed) -> Jet:
        """The Taylor coefficients of f at a point, or around all points of a ball."""
        moving = Jet((value, fmpq(1), *[ZERO] * (ORDER - 1)))
        found = Reader({self.name: arrays.scalar(moving)}, {}, JETS).evaluate(self.node).scalar
        return constant(found)

    def box(self, low: Fraction, high: Fraction, depth: int) -> bool:
        """Proved for low <= x <= high."""
        self.boxes += 1
        if self.boxes > BOXES or depth > DEEPEST or time.process_time() > self.ends:
            raise Undecided("too many boxes")
        middle = (low + high) / 2
        ball = arb(exactly(middle)) + arb(0, arb(exactly(high - middle)).upper())
        try:
            inside = self.at(ball)
            first = inside.c[0]
            if first > 0 or (first >= 0 and not self.strict):
                return True
            if first < 0:
                raise Fails
            if any(self.from_end(inside, end, way) for end, way in ((low, 1), (high, -1))):
                return True
        except ArithmeticError:
            return True  # undefined in the whole box: nothing is said there
        except Undecided:
            pass
        return self.box(low, middle, depth + 1) and self.box(middle, high, depth + 1)

    def from_end(self, inside: Jet, end: Fraction, way: int) -> bool:
        """f, f', ... at an end up to a derivative that is above 0 on the whole box, all as seen into the box."""
        try:
            if end not in self.points:
                self.points[end] = self.at(exactly(end))
            there = self.points[end]
        except (Undecided, ArithmeticError):
            return False
        for k in range(1, min(len(inside.c), len(there.c) + 1)):
            if k > 1 and not self.is_positive(there.c[k - 1] * way ** (k - 1), end, k - 1):
                return False
            if inside.c[k] * way**k > 0:
                if not self.is_positive(there.c[0], end, 0):
                    return False
                if not self.strict or there.c[0] > 0:
                    return True
                return self.excluded(end)
        return False

    def excluded(self, end: Fraction) -> bool:
        place = self.place
        return (end == place.low and place.open_low) or (end == place.high and place.open_high)

    def is_positive(self, value: Enclosed, end: Fraction, k: int) -> bool:
        """>= 0 at an end; what a ball around 0 leaves open is looked at in normal form."""
        if value >= 0:
            return True
        if k or value < 0:
            return False
        there = put(self.node, {self.name: Number(end)})
        from likewise.claims.algebra.coordinates import Coordinates

        return form(Coordinates({}, {}).evaluate(there).scalar).is_zero()

    def tail(self, far: Fraction, way: int) -> bool:
        """Proved for x >= far, or, mirrored, for x <= -far."""
        try:
            node = self.node if way > 0 else put(self.node, {self.name: Negative(Name(self.name))})
            value = _Tail(self.name, far).of(node)
            if not _rises(value.under, far, strict=True):
                if not _rises(value.under.scaled(fmpq(-1)), far, strict=True):
                    return False
                value = _Far(value.over.scaled(fmpq(-1)), value.under.scaled(fmpq(-1)), value.low)
            return _rises(value.over + value.under.scaled(value.low), far, strict=self.strict)
        except (Undecided, ArithmeticError, OverflowError):
            return False


Log = tuple[tuple[int, Fraction], ...]  # 1 and logarithms of primes, with factors: 3 - 2*log(2) is ((1, 3), (2, -2))
Rate = tuple[Log, ...]  # of x, x^2, ... in an exponent


@dataclass(frozen=True)
class Sum:
    """Σ c*x^k*exp(q(x))."""

    terms: dict[tuple[Rate, int], Enclosed]

    def __add__(self, other: "Sum") -> "Sum":
        found = dict(self.terms)
        for key, value in other.terms.items():
            found[key] = found.get(key, ZERO) + value
        found = {key: value for key, value in found.items() if not (isinstance(value, fmpq) and value == 0)}
        if len(found) > TERMS:
            raise Undecided("many terms")
        return Sum(found)

    def __mul__(self, other: "Sum") -> "Sum":
        total = Sum({})
        for (p, j), a in self.terms.items():
            for (q, k), b in other.terms.items():
                total = total + Sum({(_plus(p, q), j + k): a * b})
        return total

    def scaled(self, factor: Enclosed) -> "Sum":
        return (
            Sum({}) if isinstance(factor, fmpq) and factor == 0 else Sum({k: v * factor for k, v in self.terms.items()})
        )

    def at(self, x: fmpq) -> Enclosed:
        """Its value, exact where it is a polynomial."""
        total: Enclosed = ZERO
        for (rate, k), value in self.terms.items():
            power = sum((_value(log) * x**i for i, log in enumerate(rate, start=1)), ZERO)
            total = total + value * x**k * (arb(power).exp() if rate else fmpq(1))
        return total


NUMBER = ((), 0)
UNIT = Sum({NUMBER: fmpq(1)})


def _plus(p: Rate, q: Rate) -> Rate:
    longer, shorter = (p, q) if len(p) >= len(q) else (q, p)
    found = [_together(log, shorter[i] if i < len(shorter) else ()) for i, log in enumerate(longer)]
    while found and not found[-1]:
        found.pop()
    return tuple(found)


def _together(one: Log, other: Log) -> Log:
    found = dict(one)
    for base, value in other:
        found[base] = found.get(base, Fraction(0)) + value
    return tuple(sorted((base, value) for base, value in found.items() if value))


def _value(log: Log) -> Enclosed:
    if all(base == 1 for base, _ in log):
        return exactly(log[0][1]) if log else ZERO
    return sum((exactly(v) * (arb(base).log() if base > 1 else fmpq(1)) for base, v in log), ZERO)


def _growth(rate: Rate) -> list[Enclosed]:
    return [_value(log) for log in reversed(rate)]


def _slower(p: Rate, q: Rate) -> bool:
    """Whether exp(p(x)) grows slower than exp(q(x))."""
    minus = _plus(q, tuple(tuple((base, -value) for base, value in log) for log in p))
    return bool(minus) and sign(_value(minus[-1])) > 0


def _rises(value: Sum, far: Fraction, *, strict: bool, steps: int = STEPS) -> bool:
    """Whether a sum is >= 0 (> 0) for all x >= far: by Rolle, one exponential after the other."""
    if not value.terms:
        return not strict
    if steps == 0:
        return False
    at = exactly(far)
    least = min(k for _, k in value.terms)
    if far > 0 and least:
        value = Sum({(rate, k - least): c for (rate, k), c in value.terms.items()})
    if any(k < 0 for _, k in value.terms):
        return False
    if (far > 0 or (far == 0 and not strict)) and all(c > 0 for c in value.terms.values()):
        return True
    here = value.at(at)
    if not (here > 0 or (here >= 0 and not strict)):
        return False
    rates = {rate for rate, _ in value.terms}
    slowest = next(rate for rate in rates if all(rate == other or _slower(rate, other) for other in rates))
    back = tuple(tuple((base, -v) for base, v in log) for log in slowest)
    value = Sum({(_plus(rate, back), k): c for (rate, k), c in value.terms.items()})
    if len(rates) == 1:
        return all(c >= 0 for c in _shifted({k: c for (_, k), c in value.terms.items()}, at))
    return _rises(_derivative(value), far, strict=False, steps=steps - 1)


def _shifted(polynomial: dict[int, Enclosed], at: fmpq) -> list[Enclosed]:
    """The Taylor coefficients of a polynomial at a point."""
    degree = max(polynomial)
    found = []
    for k in range(degree + 1):
        parts = (
            c * at ** (n - k) * (factorial(n) // (factorial(k) * factorial(n - k)))
            for n, c in polynomial.items()
            if n >= k
        )
        found.append(sum(parts, ZERO))
    return found


def _derivative(value: Sum) -> Sum:
    total = Sum({})
    for (rate, k), c in value.terms.items():
        if k:
            total = total + Sum({(rate, k - 1): c * k})
        for i, log in enumerate(rate, start=1):
            if log:
                total = total + Sum({(rate, k + i - 1): c * _value(log) * i})
    return total


@dataclass(frozen=True)
class _Far:
    """over/under plus something that is at least `low`, for all x from somewhere on; exact if nothing is added."""

    over: Sum
    under: Sum = UNIT
    low: Enclosed = ZERO
    high: Enclosed = ZERO

    @property
    def exact(self) -> bool:
        return isinstance(self.low, fmpq) and isinstance(self.high, fmpq) and self.low == self.high == 0


class _Tail:
    """An expression as a quotient of sums of exponentials."""

    def __init__(self, name: str, far: Fraction) -> None:
        self.name, self.far = name, far

    def of(self, node: Node) -> _Far:
        if self.name not in names(node):
            value = Reader({}, {}, ENCLOSURES).evaluate(node).scalar
            value = exactly(value) if isinstance(value, Fraction | int) else value
            return _Far(Sum({NUMBER: value}) if not (isinstance(value, fmpq) and value == 0) else Sum({}))
        match node:
            case Name():
                return _Far(Sum({((), 1): fmpq(1)}))
            case Negative(operand):
                inner = self.of(operand)
                return _Far(inner.over.scaled(fmpq(-1)), inner.under, -inner.high, -inner.low)
            case Binary("+" | "-" as operator, left, right):
                a = self.of(left)
                b = self.of(right if operator == "+" else Negative(right))
                return self.added(a, b)
            case Binary("*", left, right):
                a, b = self.of(left), self.of(right)
                if a.exact and b.exact:
                    return _Far(a.over * b.over, a.under * b.under)
                raise Undecided("a product with a logarithm")
            case Binary("/", left, right):
                a, b = self.of(left), self.of(right)
                if a.exact and b.exact and b.over.terms:
                    return _Far(a.over * b.under, a.under * b.over)
                raise Undecided("a quotient with a logarithm")
            case Binary("^", base, exponent) if self.name not in names(exponent):
                return self.powered(self.of(base), Reader({}).evaluate(exponent).scalar)
            case Binary("^", Number(base), exponent) if base > 0:
                return self.exponential(self.of(exponent), _logarithm(base))
            case Call("exp", (operand,)) if isinstance(operand, Node):
                return self.exponential(self.of(operand), ((1, Fraction(1)),))
            case Call("log", (operand,)) if isinstance(operand, Node):
                return self.logarithm(self.of(operand))
            case Call("abs" | "relu" as function, (operand,)) if isinstance(operand, Node):
                inner = self.of(operand)
                return (
                    inner
                    if self.is_above(inner)
                    else self.of(Negative(operand))
                    if function == "abs"
                    else _Far(Sum({}))
                )
            case Call("max" | "min", (one, other)) if isinstance(one, Node) and isinstance(other, Node):
                first = self.is_above(self.of(Binary("-", one, other)))
                return self.of(one if first == (node.function == "max") else other)
            case Call("erf", (operand,)) if isinstance(operand, Node):
                inner = self.of(operand)
                above = self.is_above(inner)
                least = abs(ENCLOSURES.elementwise["erf"](arb(inner.over.at(exactly(self.far)))))
                if inner.under is not UNIT or not _rises(
                    _derivative(inner.over.scaled(fmpq(1 if above else -1))), self.far, strict=False
                ):
                    raise Undecided("erf of what does not rise")
                low, high = (least.lower(), arb(1)) if above else (arb(-1), -least.lower())
                return _Far(Sum({}), UNIT, low, high)
        raise Undecided(f"{node} is no sum of exponentials")

    def added(self, a: _Far, b: _Far) -> _Far:
        if a.under.terms == b.under.terms:
            over, under = a.over + b.over, a.under
        else:
            over, under = a.over * b.under + b.over * a.under, a.under * b.under
        return _Far(over, under, a.low + b.low, a.high + b.high)

    def is_above(self, value: _Far) -> bool:
        """Whether it is above 0 beyond; Undecided if it is neither so nor below."""
        if not value.exact:
            raise Undecided("a side that is not known")
        both = value.over * value.under
        if _rises(both, self.far, strict=True):
            return True
        if _rises(both.scaled(fmpq(-1)), self.far, strict=True):
            return False
        raise Undecided("a side that is not known")

    def powered(self, base: _Far, exponent: Any) -> _Far:
        if not isinstance(exponent, Fraction) or not base.exact or abs(exponent) > EXPONENT:
            raise Undecided("a power")
        parts = (*base.over.terms.values(), *base.under.terms.values())
        if any(isinstance(c, fmpq) and c.height_bits() * abs(exponent) > LONG for c in parts):
            raise Undecided("a large power")
        if exponent.denominator == 1:
            total = _Far(UNIT)
            for _ in range(abs(int(exponent))):
                total = _Far(total.over * base.over, total.under * base.under)
            return total if exponent >= 0 else _Far(total.under, total.over)
        if len(base.over.terms) == 1 and base.under.terms == UNIT.terms:  # of c*exp(q) alone
            (((rate, k), c),) = base.over.terms.items()
            if k == 0 and c > 0:
                moved = tuple(tuple((p, v * exponent) for p, v in log) for log in rate)
                return _Far(Sum({(moved, 0): ENCLOSURES.power(c, exactly(exponent))}))
        raise Undecided("a root")

    def exponential(self, inner: _Far, log: Log) -> _Far:
        """b^u of a polynomial u."""
        if not inner.exact or set(inner.under.terms) != {NUMBER} or any(rate for rate, _ in inner.over.terms):
            raise Undecided("an exponent that is no polynomial")
        below = inner.under.terms[NUMBER]
        rates: dict[int, Log] = {}
        factor: Enclosed = fmpq(1)
        for (_, k), c in inner.over.terms.items():
            value = c / below
            if k == 0:
                factor = ENCLOSURES.elementwise["exp"](value * _value(log))
                continue
            if not isinstance(value, fmpq):
                raise Undecided("a rate that is no fraction")
            rates[k] = tuple((base, v * Fraction(int(value.p), int(value.q))) for base, v in log)
        rate = tuple(rates.get(k, ()) for k in range(1, max(rates, default=0) + 1))
        return _Far(Sum({(rate, 0): factor}))

    def logarithm(self, inner: _Far) -> _Far:
        """log(c*exp(q)*(1 + r)) is log(c) + q + log(1 + r), and r falls to 0."""
        if not inner.exact:
            raise Undecided("a logarithm of a logarithm")
        top, bottom = self.leading(inner.over), self.leading(inner.under)
        return _Far(top[0] + bottom[0].scaled(fmpq(-1)), UNIT, top[1] - bottom[2], top[2] - bottom[1])

    def leading(self, value: Sum) -> tuple[Sum, Enclosed, Enclosed]:
        if not value.terms:
            raise ArithmeticError("a logarithm of 0")
        rates = {rate for rate, _ in value.terms}
        fastest = next(rate for rate in rates if all(rate == other or _slower(other, rate) for other in rates))
        mine = {k: c for (rate, k), c in value.terms.items() if rate == fastest}
        if set(mine) != {0} or not mine[0] > 0:
            raise Undecided("a logarithm of a power")
        low = high = ZERO
        for (rate, k), c in value.terms.items():
            if rate == fastest:
                continue
            back = tuple(tuple((base, -v) for base, v in log) for log in fastest)
            term = Sum({(_plus(rate, back), k): abs(c) / mine[0]})
            if not _rises(_derivative(term).scaled(fmpq(-1)), self.far, strict=False):
                raise Undecided("a term that does not fall")
            most = arb(term.at(exactly(self.far))).upper()
            low, high = (low, high + most) if c > 0 else (low - most, high)
        shift = Sum({NUMBER: arb(mine[0]).log()}) if mine[0] != 1 else Sum({})
        for i, log in enumerate(fastest, start=1):
            shift = shift + (Sum({((), i): _value(log)}) if log else Sum({}))
        if not low > -1:
            raise Undecided("a logarithm near 0")
        return shift, (1 + arb(low)).log() if low != 0 else ZERO, (1 + arb(high)).log() if high != 0 else ZERO


def _logarithm(value: Fraction) -> Log:
    """The logarithm of a fraction above 0 by its primes."""
    found: Log = ()
    for number, way in ((value.numerator, 1), (value.denominator, -1)):
        if number > 10**6:
            raise Undecided("the logarithm of a large number")
        divisor = 2
        while number > 1:
            divisor = number if divisor * divisor > number else divisor
            if number % divisor == 0:
                found, number = _together(found, ((divisor, Fraction(way)),)), number // divisor
            else:
                divisor += 1
    return found


def _needs_logarithm(node: Node, name: str) -> bool:
    """Whether a logarithm or a root of the number is taken, or it is a base and an exponent."""
    match node:
        case Call("log" | "sqrt", (inner,)) if isinstance(inner, Node) and inner == Name(name):
            return True
        case Binary("^", Name(base), Number(exponent)) if base == name and exponent.denominator > 1:
            return True
        case Binary("^", Name(base), exponent) if base == name and not isinstance(exponent, Number):
            return True
    return any(_needs_logarithm(child, name) for child in children(node))


def _raised(node: Node, name: str) -> Node:
    """exp(x) in place of x, with logarithms and powers of it written out."""
    x = Name(name)
    match node:
        case Name(other) if other == name:
            return Call("exp", (x,))
        case Call("log", (inner,)) if inner == x:
            return x
        case Call("sqrt", (inner,)) if inner == x:
            return Call("exp", (Binary("*", Number(Fraction(1, 2)), x),))
        case Binary("^", base, exponent) if base == x:
            return Call("exp", (Binary("*", _raised(exponent, name), x),))
    return rebuilt(node, lambda part: _raised(part, name))
