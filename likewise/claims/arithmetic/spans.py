"""Spans: all values an expression over numbers takes while each of them moves within its rounding.

A span carries the span of its slope in every number, so that an expression that only rises or only falls in each of
them is known to reach its ends at corners, and both are exact. Otherwise they are safe: nothing lies outside.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from math import isqrt

from flint import arb, ctx, fmpq

from likewise.claims import arrays
from likewise.claims.language.limits import EXPONENT
from likewise.claims.language.tree import Node
from likewise.claims.reader import Reader, Scalars
from likewise.claims.verdict import Undecided

BITS = 20_000  # of a numerator, at most
PRECISION = 160  # bits of exp, log, sin, cos and inexact roots
PIECES = 64  # of the box, where an expression rises and falls
Ends = tuple[Fraction, Fraction]
ZERO: Ends = (Fraction(0), Fraction(0))
ONE: Ends = (Fraction(1), Fraction(1))
MINUS: Ends = (Fraction(-1), Fraction(-1))


def plus(a: Ends, b: Ends) -> Ends:
    """Every sum."""
    return a[0] + b[0], a[1] + b[1]


def times(a: Ends, b: Ends) -> Ends:
    """Every product."""
    products = [x * y for x in a for y in b]
    _require_small(max(products, key=abs))
    return min(products), max(products)


def over(a: Ends) -> Ends:
    """Every 1/a."""
    if a[0] <= 0 <= a[1]:
        raise Undecided("a division by a number that may be 0")
    return 1 / a[1], 1 / a[0]


def hull(*all_ends: Ends) -> Ends:
    """The smallest interval around all."""
    return min(ends[0] for ends in all_ends), max(ends[1] for ends in all_ends)


@dataclass(frozen=True)
class Span:
    """Lowest and highest value, and for every name the slope in it; None where there may be no slope."""

    ends: Ends
    slopes: dict[str, Ends | None] = field(default_factory=dict)

    def __add__(self, other: "Span | Fraction | int") -> "Span":
        other = made(other)
        return Span(plus(self.ends, other.ends), _both(self, other, ONE, ONE))

    def __mul__(self, other: "Span | Fraction | int") -> "Span":
        if other is self:
            return power(self, Fraction(2))
        other = made(other)
        return Span(times(self.ends, other.ends), _both(self, other, other.ends, self.ends))

    __radd__, __rmul__ = __add__, __mul__

    def __neg__(self) -> "Span":
        return self * -1

    def __sub__(self, other: "Span | Fraction | int") -> "Span":
        return self + -made(other)

    def __rsub__(self, other: "Span | Fraction | int") -> "Span":
        return -self + other

    def through(self, ends: Ends, slope: Ends | None) -> "Span":
        """A function of this span, from its values and its slope."""
        slopes = {
            name: None if mine is None or slope is None else times(mine, slope) for name, mine in self.slopes.items()
        }
        return Span(ends, slopes)

    @property
    def exact(self) -> Fraction | None:
        """Its value, if there is only one."""
        return self.ends[0] if self.ends[0] == self.ends[1] else None


def _both(a: Span, b: Span, weight_a: Ends, weight_b: Ends) -> dict[str, Ends | None]:
    found: dict[str, Ends | None] = {}
    for name in a.slopes | b.slopes:
        left, right = a.slopes.get(name, ZERO), b.slopes.get(name, ZERO)
        found[name] = None if left is None or right is None else plus(times(left, weight_a), times(right, weight_b))
    return found


Number = Span | Fraction  # fractions while they are exact


def made(value: Number | int) -> Span:
    """A number as a span."""
    return value if isinstance(value, Span) else Span((Fraction(value), Fraction(value)))


def divide(top: Number, bottom: Number) -> Span:
    """top/bottom."""
    bottom = made(bottom)
    ends = over(bottom.ends)
    return top * bottom.through(ends, times(MINUS, times(ends, ends)))


def power(base: Number, exponent: Number) -> Span:
    """base^exponent: exact for whole exponents."""
    n = made(exponent).exact
    if n == Fraction(1, 2):
        return root(base)
    if n is None or n.denominator > 1:
        return exponential(exponent * logarithm(base))
    if abs(n) > EXPONENT:
        raise Undecided(f"an exponent beyond {EXPONENT}")
    base = made(base)
    _require_small(max(base.ends, key=abs), times_bits=abs(int(n)))
    if n < 0:
        return divide(Fraction(1), power(base, -n))
    corners = [end ** int(n) for end in base.ends]
    crosses = n > 0 and n % 2 == 0 and base.ends[0] < 0 < base.ends[1]
    ends = (Fraction(0) if crosses else min(corners), max(corners))
    slope = times(power(Span(base.ends), n - 1).ends, (n, n)) if n > 0 else ZERO
    return base.through(ends, slope)


def root(base: Number) -> Span:
    """The square root; exact for squares."""
    base = made(base)
    if base.ends[0] < 0:
        raise Undecided("the root of a number that may be negative")
    ends = _root(base.ends[0])[0], _root(base.ends[1])[1]
    return base.through(ends, over((2 * ends[0], 2 * ends[1])) if ends[0] > 0 else None)


def exponential(base: Number) -> Span:
    """exp."""
    base = made(base)
    if max(map(abs, base.ends)) > 1_000:
        raise Undecided("exp of a number beyond 1000")
    ends = ONE if base.ends == ZERO else _rising("exp", base.ends)
    return base.through(ends, ends)


def logarithm(base: Number) -> Span:
    """log, of base e."""
    base = made(base)
    if base.ends[0] <= 0:
        raise Undecided("the logarithm of a number that may not be positive")
    return base.through(ZERO if base.ends == ONE else _rising("log", base.ends), over(base.ends))


def sine(base: Number) -> Span:
    """sin."""
    base = made(base)
    return base.through(_wave("sin", base.ends), _wave("cos", base.ends)) if base.ends != ZERO else made(0)


def cosine(base: Number) -> Span:
    """cos."""
    base = made(base)
    minus = times(_wave("sin", base.ends), MINUS)
    return base.through(_wave("cos", base.ends), minus) if base.ends != ZERO else made(1)


def largest(*numbers: Number) -> Span:
    """The maximum; where two could be it, the slope is that of either."""
    spans = list(map(made, numbers))
    lowest = max(span.ends[0] for span in spans)
    rivals = [span for span in spans if span.ends[1] >= lowest]
    slopes: dict[str, Ends | None] = {}
    for name in {name for span in rivals for name in span.slopes}:
        mine = [span.slopes.get(name, ZERO) for span in rivals]
        known = [slope for slope in mine if slope is not None]
        slopes[name] = hull(*known) if len(known) == len(mine) else None
    return Span((lowest, max(span.ends[1] for span in spans)), slopes)


def absolute(base: Number) -> Span:
    """|base|."""
    larger = largest(base, -base)
    return Span((max(larger.ends[0], Fraction(0)), larger.ends[1]), larger.slopes)


def _require_small(value: Fraction, times_bits: int = 1) -> None:
    if max(value.numerator.bit_length(), value.denominator.bit_length()) * times_bits > BITS:
        raise Undecided(f"a number of more than {BITS} bits")


def _root(value: Fraction) -> Ends:
    top, bottom = isqrt(value.numerator), isqrt(value.denominator)
    if top**2 == value.numerator and bottom**2 == value.denominator:
        return Fraction(top, bottom), Fraction(top, bottom)
    return _rising("sqrt", (value, value))


def _ball(value: Fraction) -> arb:
    return arb(fmpq(value.numerator, value.denominator))


def _ends(ball: arb) -> Ends:
    low, high = ball.lower().fmpq(), ball.upper().fmpq()
    return Fraction(int(low.p), int(low.q)), Fraction(int(high.p), int(high.q))


def _rising(function: str, ends: Ends) -> Ends:
    """A function that rises, rounded outwards."""
    with ctx.workprec(PRECISION):
        return _ends(getattr(_ball(ends[0]), function)())[0], _ends(getattr(_ball(ends[1]), function)())[1]


def _wave(function: str, ends: Ends) -> Ends:
    """sin and cos, which stay between -1 and 1."""
    with ctx.workprec(PRECISION):
        low, high = _ends(getattr(_ball(ends[0]).union(_ball(ends[1])), function)())
    return max(low, Fraction(-1)), min(high, Fraction(1))


SPANS = Scalars(
    elementwise={
        "sqrt": root,
        "exp": exponential,
        "log": logarithm,
        "sin": sine,
        "cos": cosine,
        "abs": absolute,
        "relu": lambda value: largest(value, Fraction(0)),
    },
    maximum=largest,
    power=power,
    number=lambda value: value,
    divide=divide,
    pi=lambda: Span(_pi()),
)


def _pi() -> Ends:
    with ctx.workprec(PRECISION):
        return _ends(arb.pi())


def span_of(node: Node, box: Mapping[str, Ends]) -> Span:
    """The span of a number over the names of the box.

    >>> from likewise.claims.language.tree import Binary, Name, Number
    >>> half = Binary("/", Name("a"), Number(Fraction(2)))
    >>> span_of(half, {"a": (Fraction(1), Fraction(3))}).ends
    (Fraction(1, 2), Fraction(3, 2))
    """
    values = {
        name: arrays.scalar(Span(ends, {name: ONE}) if ends[0] < ends[1] else ends[0]) for name, ends in box.items()
    }
    try:
        span = made(Reader(values, scalars=SPANS).evaluate(node).scalar)
    except (ArithmeticError, IndexError) as reason:
        raise Undecided(str(reason)) from None
    _require_small(max(span.ends, key=abs))
    return span


def point(values: Mapping[str, Fraction]) -> dict[str, Ends]:
    """A box of one point."""
    return {name: (value, value) for name, value in values.items()}


def ends_of(node: Node, box: Mapping[str, Ends], pieces: int = PIECES) -> Ends:
    """Lowest and highest value of a scalar over the box; exact where it is monotone in every name.

    (a - b)/(100 - b) with a in [85.05, 85.15] and b in [76.25, 76.35] reaches its ends at corners:

    >>> from likewise.claims.language.tree import Binary, Name, Number
    >>> ratio = Binary("/", Binary("-", Name("a"), Name("b")), Binary("-", Number(Fraction(100)), Name("b")))
    >>> box = {"a": (Fraction("85.05"), Fraction("85.15")), "b": (Fraction("76.25"), Fraction("76.35"))}
    >>> ends_of(ratio, box)
    (Fraction(174, 473), Fraction(178, 475))
    """
    span = span_of(node, box)
    rising = {name: _direction(span.slopes.get(name, ZERO)) for name in box}
    free = [name for name, sign in rising.items() if sign is None and box[name][0] < box[name][1]]
    if not free:
        lowest = point({name: box[name][sign == -1] for name, sign in rising.items()})
        highest = point({name: box[name][sign != -1] for name, sign in rising.items()})
        return span_of(node, lowest).ends[0], span_of(node, highest).ends[1]
    if pieces < 2:
        return span.ends
    widest = max(free, key=lambda name: box[name][1] - box[name][0])
    low, high = box[widest]
    halves = [{**box, widest: (low, (low + high) / 2)}, {**box, widest: ((low + high) / 2, high)}]
    return hull(*(ends_of(node, half, pieces // 2) for half in halves))


def _direction(slope: Ends | None) -> int | None:
    """1 where it never falls, -1 where it never rises."""
    return None if slope is None else 1 if slope[0] >= 0 else -1 if slope[1] <= 0 else None
