"""Spans: all values an expression over numbers takes while each of them moves within its rounding.

A span carries the span of its slope in every number, so that an expression that only rises or only falls in each of
them is known to reach its ends at corners, and both are exact. Otherwise they are safe: nothing lies outside.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache, reduce
from math import comb, isqrt
from typing import Any

from likewise.claims.language.limits import EXPONENT
from likewise.claims.language.tree import Binary, Call, Join, Name, Negative, Node, Number, children
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

    def __add__(self, other: "Span") -> "Span":
        return Span(plus(self.ends, other.ends), _both(self, other, ONE, ONE))

    def __mul__(self, other: "Span") -> "Span":
        return Span(times(self.ends, other.ends), _both(self, other, other.ends, self.ends))

    def __truediv__(self, other: "Span") -> "Span":
        ends = over(other.ends)
        return self * other.through(ends, times(MINUS, times(ends, ends)))

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


def number(value: Fraction | int) -> Span:
    """One number."""
    return Span((Fraction(value), Fraction(value)))


def power(base: Span, exponent: Span) -> Span:
    """base^exponent: exact for whole exponents."""
    n = exponent.exact
    if n == Fraction(1, 2):
        return root(base)
    if n is None or n.denominator > 1:
        return exponential(exponent * logarithm(base))
    if abs(n) > EXPONENT:
        raise Undecided(f"an exponent beyond {EXPONENT}")
    _require_small(max(base.ends, key=abs), times_bits=abs(int(n)))
    if n < 0:
        return number(1) / power(base, number(-n))
    corners = [end ** int(n) for end in base.ends]
    crosses = n > 0 and n % 2 == 0 and base.ends[0] < 0 < base.ends[1]
    ends = (Fraction(0) if crosses else min(corners), max(corners))
    slope = times(power(Span(base.ends), number(n - 1)).ends, (n, n)) if n > 0 else ZERO
    return base.through(ends, slope)


def root(base: Span) -> Span:
    """The square root; exact for squares."""
    if base.ends[0] < 0:
        raise Undecided("the root of a number that may be negative")
    ends = _root(base.ends[0])[0], _root(base.ends[1])[1]
    return base.through(ends, over((2 * ends[0], 2 * ends[1])) if ends[0] > 0 else None)


def exponential(base: Span) -> Span:
    """exp."""
    if max(map(abs, base.ends)) > 1_000:
        raise Undecided("exp of a number beyond 1000")
    ends = ONE if base.ends == ZERO else _enclosed("exp", base.ends)
    return base.through(ends, ends)


def logarithm(base: Span) -> Span:
    """log, of base e."""
    if base.ends[0] <= 0:
        raise Undecided("the logarithm of a number that may not be positive")
    return base.through(ZERO if base.ends == ONE else _enclosed("log", base.ends), over(base.ends))


def sine(base: Span) -> Span:
    """sin."""
    return base.through(_enclosed("sin", base.ends), _enclosed("cos", base.ends)) if base.ends != ZERO else number(0)


def cosine(base: Span) -> Span:
    """cos."""
    minus = times(_enclosed("sin", base.ends), MINUS)
    return base.through(_enclosed("cos", base.ends), minus) if base.ends != ZERO else number(1)


def largest(*spans: Span) -> Span:
    """The maximum; where two could be it, the slope is that of either."""
    lowest = max(span.ends[0] for span in spans)
    rivals = [span for span in spans if span.ends[1] >= lowest]
    slopes: dict[str, Ends | None] = {}
    for name in {name for span in rivals for name in span.slopes}:
        mine = [span.slopes.get(name, ZERO) for span in rivals]
        known = [slope for slope in mine if slope is not None]
        slopes[name] = hull(*known) if len(known) == len(mine) else None
    return Span((lowest, max(span.ends[1] for span in spans)), slopes)


def smallest(*spans: Span) -> Span:
    """The minimum."""
    return number(-1) * largest(*(number(-1) * span for span in spans))


def absolute(base: Span) -> Span:
    """|base|."""
    larger = largest(base, number(-1) * base)
    return Span((max(larger.ends[0], Fraction(0)), larger.ends[1]), larger.slopes)


def chosen(n: Span, k: Span) -> Span:
    """n over k, for whole numbers."""
    top, count = n.exact, k.exact
    if top is None or count is None or top.denominator > 1 or count.denominator > 1 or not 0 <= count <= top:
        raise Undecided("choose takes whole numbers, 0 <= k <= n")
    few = int(min(count, top - count))
    _require_small(top, times_bits=few or 1)
    return number(comb(int(top), few))


def _require_small(value: Fraction, times_bits: int = 1) -> None:
    if max(value.numerator.bit_length(), value.denominator.bit_length()) * times_bits > BITS:
        raise Undecided(f"a number of more than {BITS} bits")


def _root(value: Fraction) -> Ends:
    top, bottom = isqrt(value.numerator), isqrt(value.denominator)
    if top**2 == value.numerator and bottom**2 == value.denominator:
        return Fraction(top, bottom), Fraction(top, bottom)
    return _enclosed("sqrt", (value, value))


@cache
def _arithmetic() -> Any:
    from mpmath.ctx_iv import MPIntervalContext

    context = MPIntervalContext()  # our own: its precision is nobody else's
    context.prec = PRECISION
    return context


def _enclosed(function: str, ends: Ends) -> Ends:
    """A function of mpmath, rounded outwards."""
    from mpmath.libmp import to_rational

    iv = _arithmetic()
    low, high = (iv.mpf(end.numerator) / iv.mpf(end.denominator) for end in ends)
    call = {"sqrt": iv.sqrt, "exp": iv.exp, "log": iv.log, "sin": iv.sin, "cos": iv.cos}[function]
    found = call(iv.mpf([low.a, high.b]))
    return Fraction(*to_rational(found._mpi_[0])), Fraction(*to_rational(found._mpi_[1]))


ELEMENTWISE: dict[str, Callable[..., Span]] = {
    "sqrt": root, "exp": exponential, "log": logarithm, "sin": sine, "cos": cosine, "abs": absolute,
    "choose": chosen, "relu": lambda span: largest(span, number(0)),
}  # fmt: skip
OPERATORS: dict[str, Callable[..., Span]] = {
    "+": lambda a, b: a + b, "-": lambda a, b: a + number(-1) * b, "*": lambda a, b: a * b, "/": lambda a, b: a / b,
    "^": power,
}  # fmt: skip
Value = Span | list[Span]  # a scalar, or the entries of a vector


def evaluate(node: Node, box: Mapping[str, Ends]) -> Value:
    """The span of an expression over the names of the box.

    >>> half = Binary("/", Name("a"), Number(Fraction(2)))
    >>> evaluate(half, {"a": (Fraction(1), Fraction(3))}).ends
    (Fraction(1, 2), Fraction(3, 2))
    """
    match node:
        case Number(value):
            _require_small(value)
            return number(value)
        case Name(name) if name in box:
            return Span(box[name], {name: ONE})
        case Negative(operand):
            return broadcast(lambda span: number(-1) * span, evaluate(operand, box))
        case Binary(operator, left, right) if operator in OPERATORS:
            return broadcast(OPERATORS[operator], evaluate(left, box), evaluate(right, box))
        case Join():
            return [entry for part in children(node) for entry in entries(evaluate(part, box))]
        case Call(function):
            return _called(function, [evaluate(child, box) for child in children(node)])
    raise Undecided(f"{node} is no arithmetic")


def _called(function: str, arguments: list[Value]) -> Value:
    if function in ELEMENTWISE:
        return broadcast(ELEMENTWISE[function], *arguments)
    lists = list(map(entries, arguments))
    if function in ("max", "min"):
        pick = largest if function == "max" else smallest
        return broadcast(pick, *arguments) if len(arguments) > 1 else pick(*lists[0])
    if function in ("sum", "mean"):
        return total(lists[0]) / number(len(lists[0]) if function == "mean" else 1)
    if function == "dim":
        return number(len(lists[0]))
    if function in ("dot", "sqnorm", "norm"):
        left, right = lists[0], lists[-1]
        if len(left) != len(right):
            raise Undecided(f"dot of {len(left)} and {len(right)} numbers")
        product = total([power(a, number(2)) if a is b else a * b for a, b in zip(left, right, strict=True)])
        return root(product) if function == "norm" else product
    raise Undecided(f"{function} is no arithmetic of numbers")


def entries(value: Value) -> list[Span]:
    """A scalar is a vector of one."""
    return value if isinstance(value, list) else [value]


def total(spans: list[Span]) -> Span:
    """The sum."""
    return reduce(lambda a, b: a + b, spans)


def broadcast(function: Callable[..., Span], *values: Value) -> Value:
    """A function of scalars on vectors of one length and scalars."""
    lengths = {len(value) for value in values if isinstance(value, list)}
    if not lengths:
        return function(*values)
    if len(lengths) > 1:
        raise Undecided(f"vectors of {' and '.join(map(str, sorted(lengths)))} numbers")
    rows = [value if isinstance(value, list) else [value] * max(lengths) for value in values]
    return [function(*row) for row in zip(*rows, strict=True)]


def point(values: Mapping[str, Fraction]) -> dict[str, Ends]:
    """A box of one point."""
    return {name: (value, value) for name, value in values.items()}


def ends_of(node: Node, box: Mapping[str, Ends], pieces: int = PIECES) -> Ends:
    """Lowest and highest value of a scalar over the box; exact where it is monotone in every name.

    (a - b)/(100 - b) with a in [85.05, 85.15] and b in [76.25, 76.35] reaches its ends at corners:

    >>> ratio = Binary("/", Binary("-", Name("a"), Name("b")), Binary("-", Number(Fraction(100)), Name("b")))
    >>> box = {"a": (Fraction("85.05"), Fraction("85.15")), "b": (Fraction("76.25"), Fraction("76.35"))}
    >>> ends_of(ratio, box)
    (Fraction(174, 473), Fraction(178, 475))
    """
    span = evaluate(node, box)
    if isinstance(span, list):
        raise Undecided("a vector where a number is compared")
    rising = {name: _direction(span.slopes.get(name, ZERO)) for name in box}
    free = [name for name, sign in rising.items() if sign is None and box[name][0] < box[name][1]]
    if not free:
        lowest = point({name: box[name][sign == -1] for name, sign in rising.items()})
        highest = point({name: box[name][sign != -1] for name, sign in rising.items()})
        return entries(evaluate(node, lowest))[0].ends[0], entries(evaluate(node, highest))[0].ends[1]
    if pieces < 2:
        return span.ends
    widest = max(free, key=lambda name: box[name][1] - box[name][0])
    low, high = box[widest]
    halves = [{**box, widest: (low, (low + high) / 2)}, {**box, widest: ((low + high) / 2, high)}]
    return hull(*(ends_of(node, half, pieces // 2) for half in halves))


def _direction(slope: Ends | None) -> int | None:
    """1 where it never falls, -1 where it never rises."""
    return None if slope is None else 1 if slope[0] >= 0 else -1 if slope[1] <= 0 else None
