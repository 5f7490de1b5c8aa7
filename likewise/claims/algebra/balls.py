"""Numbers known up to an interval: a value is only said to differ from 0 when its interval does not contain 0."""

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from likewise.claims.algebra.exponomials import IMAGINARY, Atom, Form, Key, form, of_key
from likewise.claims.language.tree import fraction_text
from likewise.claims.verdict import Undecided

PRECISIONS = (64, 128, 256)  # bits
TAIL_BITS = 4_096
Ball = Any  # an interval of mpmath, which has no types


class Unseparated(Undecided):
    """Raised where a number may be 0 as far as the highest precision sees."""


def arithmetic(bits: int = 64) -> Any:
    """mpmath's interval arithmetic, at that precision; imported when a number is not rational, not before."""
    from mpmath import iv

    iv.prec = bits
    return iv


def ball(value: Fraction | int, bits: int = 64) -> Ball:
    """An interval around a rational number."""
    iv, value = arithmetic(bits), Fraction(value)
    return iv.mpf(value.numerator) / iv.mpf(value.denominator)


def between(lowest: Fraction | int, highest: Fraction | int, bits: int = 64) -> Ball:
    """An interval around all numbers from lowest to highest."""
    iv = arithmetic(bits)
    return iv.mpf([ball(lowest, bits).a, ball(highest, bits).b])


def enclose(value: Form, values: Mapping[Atom, Ball], bits: int = 64) -> Ball:
    """An interval that contains the real value of a form, for every choice of the atoms in theirs."""
    return _complex(value, values, bits)[0]


def _complex(value: Form, values: Mapping[Atom, Ball], bits: int) -> tuple[Ball, Ball]:
    """Intervals of the real and of the imaginary part."""
    real, imaginary = ball(0, bits), ball(0, bits)
    for (powers, exponent), coefficient in value.terms.items():
        size, turned = ball(coefficient, bits), False
        for atom, e in powers:
            if atom == IMAGINARY:
                turned = True
            else:
                size = size * raised(_atom(atom, values, bits), Fraction(e), bits)
        a, b = _exponential(exponent, values, bits)
        real, imaginary = (real - size * b, imaginary + size * a) if turned else (real + size * a, imaginary + size * b)
    return real, imaginary


def _exponential(exponent: Key, values: Mapping[Atom, Ball], bits: int) -> tuple[Ball, Ball]:
    iv = arithmetic(bits)
    if not exponent:
        return ball(1, bits), ball(0, bits)
    size, angle = _complex(of_key(exponent), values, bits)
    if size.b > 10**6:
        raise Undecided("a number too large")
    return iv.exp(size) * iv.cos(angle), iv.exp(size) * iv.sin(angle)


def _atom(atom: Atom, values: Mapping[Atom, Ball], bits: int) -> Ball:
    if atom in values:
        return values[atom]
    if atom.kind == "prime":
        return ball(atom.index[0], bits)
    if atom.kind == "pi":
        return pi(bits)
    inner = [enclose(of_key(part), values, bits) for part in atom.parts]
    if atom.kind == "power":
        return inner[0]
    if atom.kind == "function":
        if atom.name not in FUNCTIONS:
            raise Undecided(f"{atom.name} of what is not known")
        return FUNCTIONS[atom.name](*inner)
    raise Undecided(f"{atom.name} has no value")


def raised(base: Ball, exponent: Fraction, bits: int = 64) -> Ball:
    """A power; even powers of an interval around 0 start at 0, roots need what is not negative."""
    iv = arithmetic(bits)
    if exponent.denominator == 1:
        n = int(exponent)
        if n < 0:
            return 1 / raised(nonzero(base), -exponent, bits)
        if n % 2 == 0:
            base = absolute(base)
            return iv.mpf([(base.a**n).a, (base.b**n).b])
        return base**n
    if base.a < 0:
        raise ArithmeticError("a root of what may be negative")
    if base.a == 0:
        return iv.mpf([0, raised(iv.mpf([base.b, base.b]), exponent, bits).b]) if exponent > 0 else 1 / nonzero(base)
    return iv.exp(ball(exponent, bits) * iv.log(base))


def nonzero(value: Ball) -> Ball:
    """The same interval, which may be divided by."""
    if value.a <= 0 <= value.b:
        raise ZeroDivisionError("division by what may be 0")
    return value


def logarithm(value: Ball) -> Ball:
    """log of an interval of positive numbers."""
    if value.a <= 0:
        raise ArithmeticError("a logarithm of what may not be positive")
    return value.ctx.log(value)


def absolute(value: Ball) -> Ball:
    """|x| over an interval."""
    if value.a <= 0 <= value.b:
        return value.ctx.mpf([0, maximum(value, -value).b])
    return value if value.a > 0 else -value


def maximum(*values: Ball) -> Ball:
    """The interval of the largest."""
    lowest, highest = values[0].a, values[0].b
    for value in values[1:]:
        lowest, highest = (value.a if value.a > lowest else lowest), (value.b if value.b > highest else highest)
    return values[0].ctx.mpf([lowest, highest])


def pi(bits: int = 64) -> Ball:
    """An interval around the circle number."""
    return +arithmetic(bits).pi


def error_function(value: Ball) -> Ball:
    """erf over an interval, which grows: python-flint's balls at both ends."""
    from flint import arb, ctx

    iv = value.ctx
    before, ctx.prec = ctx.prec, iv.prec + 16
    try:
        ends = []
        for end, side in ((value.a, "lower"), (value.b, "upper")):
            sign, mantissa, exponent, _ = end._mpi_[0]
            exact = arb(-int(mantissa) if sign else int(mantissa)) * arb(2) ** int(exponent)
            whole, power = getattr(exact.erf(), side)().man_exp()
            ends.append(iv.ldexp(iv.mpf(int(whole)), int(power)))
        return iv.mpf([ends[0].a, ends[1].b])
    finally:
        ctx.prec = before


FUNCTIONS = {"log": logarithm, "max": maximum, "erf": error_function}


def sign(value: Form | Fraction | int) -> int:
    """-1, 0 or 1 for a constant, never a guess: 0 only if its normal form is 0.

    >>> from likewise.claims.algebra.exponomials import exp, power
    >>> sign(exp(1) - Fraction(2718, 1000)), sign(power(form(2), Fraction(1, 2)) ** 2 - 2)
    (1, 0)
    """
    value = form(value)
    rational = value.constant
    if rational is not None:
        return (rational > 0) - (rational < 0)
    tails = any(atom.name == "erf" for atom in value.atoms())  # 1 - erf(x) is tiny long before it is 0
    for bits in (*PRECISIONS, *([TAIL_BITS] if tails else [])):
        found = enclose(value, {}, bits)
        if not found.a <= 0 <= found.b:
            return 1 if found.a > 0 else -1
    if value.is_zero():
        return 0
    raise Unseparated(f"no sign after {PRECISIONS[-1]} bits")


def decimal(value: Form, digits: int = 6) -> str:
    """A constant in decimal digits, or exactly if that is as short.

    >>> from likewise.claims.algebra.exponomials import exp
    >>> decimal(exp(1)), decimal(form(Fraction(3, 4)))
    ('2.71828', '0.75')
    """
    if value.constant is not None:
        return fraction_text(value.constant)
    from mpmath import mp

    with mp.workprec(256):
        return mp.nstr(mp.mpf(enclose(value, {}, 256).mid.a), digits)


def middle(value: Form) -> Fraction:
    """A fraction within about 90 digits of a constant.

    >>> from likewise.claims.algebra.exponomials import exp
    >>> f"{float(middle(exp(1))):.6f}"
    '2.718282'
    """
    from mpmath import mp

    with mp.workprec(320):
        found = mp.mpf(enclose(value, {}, 320).mid.a)
        return Fraction(int(found.man)) * Fraction(2) ** int(found.exp) * (-1 if found < 0 else 1)
