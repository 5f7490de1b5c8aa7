"""Scalars on python-flint: fractions while that lasts, then balls that surely contain the number.

Surely undefined is an ArithmeticError; a ball that leaves it open is Undecided.
"""

from fractions import Fraction
from typing import Any

from flint import arb, fmpq

from likewise.claims.language.limits import BITS
from likewise.claims.reader import Scalars
from likewise.claims.verdict import Undecided

Enclosed = Any  # fmpq or arb, neither of which has types


def exactly(value: Fraction | int) -> Enclosed:
    """A fraction."""
    return value if isinstance(value, fmpq | arb) else fmpq(value.numerator, value.denominator)


def sign(value: Enclosed) -> int:
    """-1, 0 or 1 where the ball tells.

    >>> sign(arb(2).sqrt() - 1), sign(fmpq(0))
    (1, 0)
    """
    for found, seen in ((1, value > 0), (-1, value < 0), (0, value == 0)):
        if seen:
            return found
    raise Undecided("a ball around 0")


def divide(top: Enclosed, bottom: Enclosed) -> Enclosed:
    """top/bottom."""
    if sign(bottom) == 0:
        raise ZeroDivisionError("division by 0")
    return top / bottom


def power(base: Enclosed, exponent: Enclosed) -> Enclosed:
    """base^exponent; a fraction for an exponent that is made of numbers alone."""
    if isinstance(exponent, arb):
        return _general(base, exponent)
    whole, root = Fraction(int(exponent.numerator), int(exponent.denominator)).as_integer_ratio()
    if root == 1:
        if isinstance(base, fmpq) and base.height_bits() * abs(whole) > BITS:
            base = arb(base)
        return base**whole if whole >= 0 else divide(fmpq(1), base ** (-whole))
    if sign(base) < 0:
        raise ArithmeticError("a root of a negative number")
    if sign(base) == 0:
        return divide(fmpq(0), fmpq(int(whole > 0)))
    if isinstance(base, fmpq) and root == 2 and (found := _square_root(base)) is not None:
        return power(found, fmpq(whole))
    return _general(base, arb(fmpq(whole, root))) if root > 2 else arb(base).sqrt() ** whole


def _square_root(value: Enclosed) -> Enclosed | None:
    top, bottom = value.numerator.isqrt(), value.denominator.isqrt()
    return fmpq(top, bottom) if top * top == value.numerator and bottom * bottom == value.denominator else None


def _general(base: Enclosed, exponent: Enclosed) -> Enclosed:
    side = sign(base)
    if side < 0:
        raise ArithmeticError("a power of a negative number")
    if side == 0:
        if sign(exponent) < 0:
            raise ZeroDivisionError("division by 0")
        return fmpq(int(sign(exponent) == 0))
    return (arb(base).log() * exponent).exp()


def logarithm(value: Enclosed) -> Enclosed:
    """log of a positive number."""
    if sign(value) <= 0:
        raise ArithmeticError("a logarithm of what is not positive")
    return fmpq(0) if value == 1 else arb(value).log()


def maximum(*values: Enclosed) -> Enclosed:
    """The largest."""
    if all(isinstance(value, fmpq) for value in values):
        return max(values)
    found = arb(values[0])
    for value in values[1:]:
        found = found.max(arb(value))
    return found


def floor(value: Enclosed) -> Enclosed:
    """The largest whole number that is not above, where the ball lies between two."""
    if isinstance(value, fmpq):
        return fmpq(value.floor())
    found = value.floor().unique_fmpz()
    if found is None:
        raise Undecided("a ball around a whole number")
    return fmpq(found)


ENCLOSURES = Scalars(
    elementwise={
        "sqrt": lambda value: power(value, fmpq(1, 2)),
        "exp": lambda value: fmpq(1) if value == 0 else arb(value).exp(),
        "log": logarithm,
        "sin": lambda value: fmpq(0) if value == 0 else arb(value).sin(),
        "cos": lambda value: fmpq(1) if value == 0 else arb(value).cos(),
        "abs": abs,
        "relu": lambda value: maximum(value, fmpq(0)),
        "erf": lambda value: fmpq(0) if value == 0 else arb(value).erf(),
        "sign": lambda value: fmpq(sign(value)),
        "floor": floor,
    },
    maximum=maximum,
    power=power,
    number=exactly,
    divide=divide,
    pi=arb.pi,
)
