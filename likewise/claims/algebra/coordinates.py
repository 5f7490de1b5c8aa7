"""Scalars that expressions are read over: exact ones (fractions, else normal forms) and balls.

The reading itself is `reader`'s. Where something is undefined an ArithmeticError says so.
"""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from math import floor, isqrt

from likewise.claims import arrays
from likewise.claims.algebra import balls, elementary
from likewise.claims.algebra.exponomials import PI, Form, form, number_power, of_atom, power
from likewise.claims.arrays import Array, Entry
from likewise.claims.language.limits import BITS, EXPONENT
from likewise.claims.language.tree import Chain, Comparison
from likewise.claims.reader import Reader, Scalars
from likewise.claims.verdict import Undecided


def plain(value: Form) -> Fraction | Form:
    """A fraction where that is all there is: much faster than a form."""
    constant = value.constant
    return value if constant is None else constant


def _sqrt(value: Entry) -> Entry:
    if isinstance(value, Fraction) and value >= 0:
        top, bottom = isqrt(value.numerator), isqrt(value.denominator)
        if top * top == value.numerator and bottom * bottom == value.denominator:
            return Fraction(top, bottom)
    return plain(elementary.sqrt(value))


def _maximum(*values: Entry) -> Entry:
    if all(isinstance(value, Fraction) for value in values):
        return max(values)
    return plain(elementary.maximum(*values))


def _power(base: Entry, exponent: Entry) -> Entry:
    exponent = exponent if isinstance(exponent, Fraction) else plain(form(exponent))
    if not isinstance(exponent, Fraction):
        return plain(elementary.exp(elementary.log(base) * exponent))
    whole = isinstance(base, Fraction) and exponent.denominator == 1 and (base or exponent > 0)
    if whole and max(abs(base.numerator), base.denominator).bit_length() * abs(exponent) <= BITS:
        return base ** int(exponent)
    if abs(exponent) > EXPONENT:
        raise Undecided(f"an exponent above {EXPONENT}")
    if isinstance(base, Fraction) and exponent.denominator == 1 and -8 <= exponent <= 8:
        return number_power(base, int(exponent))
    return plain(power(form(base), exponent))


def _floor(value: Entry) -> Entry:
    if not isinstance(value, Fraction):
        raise Undecided("floor of what is no fraction")
    return Fraction(floor(value))


EXACT = Scalars(
    elementwise={
        "sqrt": _sqrt,
        "exp": lambda value: plain(elementary.exp(value)),
        "log": lambda value: plain(elementary.log(value)),
        "sin": lambda value: plain(elementary.sin(value)),
        "cos": lambda value: plain(elementary.cos(value)),
        "abs": lambda value: _maximum(value, -value),
        "relu": lambda value: _maximum(value, Fraction(0)),
        "erf": lambda value: plain(elementary.erf(value)),
        "sign": lambda value: Fraction(sign(value)),
        "floor": _floor,
    },
    maximum=_maximum,
    power=_power,
    number=lambda value: value,
    pi=lambda: of_atom(PI),
)


def _ball_power(base: Entry, exponent: Entry) -> Entry:
    if isinstance(exponent, Fraction):
        return balls.raised(base, exponent)
    return base.ctx.exp(exponent * balls.logarithm(base))


BALLS = Scalars(
    elementwise={
        "sqrt": lambda value: balls.raised(value, Fraction(1, 2)),
        "exp": lambda value: value.ctx.exp(value),
        "log": balls.logarithm,
        "sin": lambda value: value.ctx.sin(value),
        "cos": lambda value: value.ctx.cos(value),
        "abs": balls.absolute,
        "relu": lambda value: balls.maximum(value, balls.ball(0)),
        "erf": balls.error_function,
    },
    maximum=balls.maximum,
    power=_ball_power,
    number=lambda value: balls.ball(value) if isinstance(value, Fraction) else value,
    pi=balls.pi,
)
COMPARISONS: dict[Comparison, Callable[[int], bool]] = {
    "==": lambda sign: sign == 0,
    "!=": lambda sign: sign != 0,
    "<": lambda sign: sign < 0,
    "<=": lambda sign: sign <= 0,
    ">": lambda sign: sign > 0,
    ">=": lambda sign: sign >= 0,
}


@dataclass(frozen=True)
class Coordinates(Reader):
    """Exact values unless other scalars are given."""

    scalars: Scalars = EXACT


def sign(value: Entry) -> int:
    """-1, 0 or 1 of an exact number."""
    return (value > 0) - (value < 0) if isinstance(value, Fraction) else balls.sign(value)


def compare(left: Array, comparison: Comparison, right: Array) -> bool:
    """Whether exact arrays compare so in every entry; `!=` is the contrary of `==`."""
    if comparison == "!=":
        return not compare(left, "==", right)
    signs = arrays.broadcast(lambda a, b: sign(a - b), left, right).entries
    return all(map(COMPARISONS[comparison], signs))


def violated(at: Coordinates, chain: Chain) -> int | None:
    """The place of the first comparison of a chain that is false here, None if the chain is true."""
    terms = [at.evaluate(term) for term in chain.terms]
    for place, comparison in enumerate(chain.comparisons):
        if not compare(terms[place], comparison, terms[place + 1]):
            return place
    return None
