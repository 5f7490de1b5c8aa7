"""The judge's numbers: fractions, balls, and random quantities that can be averaged."""

import operator
from collections.abc import Callable, Mapping
from fractions import Fraction
from math import comb, prod
from typing import Any

from flint import acb, arb, fmpq

TERMS = 3_000  # of one random quantity
EXPONENT = 4_096
Scalar = Any  # fmpq, arb or Wave


class Undefined(Exception):
    """The expression surely has no value at the point."""


class Unclear(Exception):
    """The judge cannot tell."""


class Misfit(Exception):
    """Shapes that do not fit."""


class Outside(Exception):
    """The claim does not speak of this point."""


class Turned(Exception):
    """A vector was transposed: the vectors of this claim are rows or columns."""


def rational(value: Fraction | int) -> fmpq:
    """A Python number as an fmpq."""
    return fmpq(value.numerator, value.denominator)


class Wave:
    """A random quantity: a sum of c * prod z_i^k_i * exp(sum a_i z_i) over independent standard draws z_i."""

    def __init__(self, terms: list[tuple[Scalar, dict, dict]]) -> None:
        plain: dict[Any, Scalar] = {}
        self.terms = [term for term in terms if term[2]]
        for c, powers, slopes in terms:
            if not slopes:
                key = tuple(sorted(powers.items()))
                plain[key] = plain[key] + c if key in plain else c
        self.terms += [(c, dict(key), {}) for key, c in plain.items()]
        if len(self.terms) > TERMS:
            raise Unclear("too many random terms")

    @staticmethod
    def of(value: Scalar) -> "Wave":
        return value if isinstance(value, Wave) else Wave([(value, {}, {})])

    def __add__(self, other: Scalar) -> "Wave":
        return Wave(self.terms + Wave.of(other).terms)

    def __mul__(self, other: Scalar) -> "Wave":
        right = Wave.of(other).terms
        if len(self.terms) * len(right) > 10 * TERMS:
            raise Unclear("too many random terms")
        return Wave([
            (c * d, _merged(powers, more), _merged(slopes, steeper))
            for c, powers, slopes in self.terms
            for d, more, steeper in right
        ])  # fmt: skip

    def __neg__(self) -> "Wave":
        return self * fmpq(-1)

    def __sub__(self, other: Scalar) -> "Wave":
        return self + -Wave.of(other)

    def __rsub__(self, other: Scalar) -> "Wave":
        return -self + other

    __radd__, __rmul__ = __add__, __mul__

    def exp(self, factor: Scalar) -> "Wave":
        """exp(factor * self), where self is linear in the draws."""
        constant, slopes = fmpq(0), {}
        for c, powers, steep in self.terms:
            if steep or sum(powers.values()) > 1:
                raise Unclear("the exponential of what is not linear in the draws")
            if powers:
                slopes = _merged(slopes, {next(iter(powers)): c * factor})
            else:
                constant = constant + c * factor
        return Wave([(acb(constant).exp(), {}, slopes)])

    def mean(self, laws: Mapping[Any, str]) -> Scalar:
        """The expectation, draw by draw."""
        total: Scalar = fmpq(0)
        for c, powers, slopes in self.terms:
            for z in {*powers, *slopes}:
                c = c * _standard_mean(laws[z], powers.get(z, 0), slopes.get(z))
            total = total + c
        return total.real if isinstance(total, acb) else total


def _merged(left: dict, right: dict) -> dict:
    return {key: left.get(key, 0) + right.get(key, 0) for key in {*left, *right}}


def _standard_mean(law: str, k: int, a: Scalar | None) -> Scalar:
    """E[z^k e^(a z)] of a standard normal, a uniform number of [0, 1], or a fair sign."""
    if law == "sign":
        return fmpq(1 - k % 2) if a is None else (acb(a).exp() + (-1) ** k * acb(-a).exp()) / 2
    if law == "uniform":
        if a is None:
            return fmpq(1, k + 1)
        if acb(a).contains(acb(0)):
            raise Unclear("a slope that may be 0")
        mean = (acb(a).exp() - 1) / acb(a)
        for j in range(1, k + 1):
            mean = (acb(a).exp() - j * mean) / acb(a)
        return mean
    centred = [fmpq(0) if j % 2 else fmpq(prod(range(1, j, 2))) for j in range(k + 1)]
    if a is None:
        return centred[k]
    return acb(a * a / 2).exp() * sum((comb(k, j) * centred[j] * acb(a) ** (k - j) for j in range(k + 1)), acb(0))


def still(value: Scalar) -> Scalar:
    """A scalar that is not random."""
    if not isinstance(value, Wave):
        return value
    if any(powers or slopes for _, powers, slopes in value.terms):
        raise Unclear("a function of a random quantity that the judge cannot average")
    total = sum((c for c, _, _ in value.terms), fmpq(0))
    return total.real if isinstance(total, acb) else total


def sign(value: Scalar) -> int | None:
    """-1, 0 or 1; None where the ball does not say."""
    value = still(value)
    if not isinstance(value, fmpq) and not value.is_finite():
        return None
    return 1 if value > 0 else -1 if value < 0 else 0 if value == 0 else None


def clear_sign(value: Scalar) -> int:
    found = sign(value)
    if found is None:
        raise Unclear("the sign of a ball around 0")
    return found


def divide(a: Scalar, b: Scalar) -> Scalar:
    """a/b; nothing where b is 0."""
    if clear_sign(b) == 0:
        raise Undefined("division by 0")
    inverse = 1 / still(b)
    return a * inverse


def power(a: Scalar, b: Scalar) -> Scalar:
    """a^b: repeated products for whole b, otherwise exp(b log a), which needs a > 0, or a = 0 and b > 0."""
    b = still(b)
    if isinstance(b, fmpq) and b.q == 1:
        n = int(b.p)
        if n < 0:
            return divide(fmpq(1), power(a, -b))
        if isinstance(a, Wave):
            if n > 16:
                raise Unclear("a large power of a random quantity")
            return prod([a] * n, start=Wave.of(fmpq(1)))
        if n > EXPONENT or (isinstance(a, fmpq) and a.height_bits() * n > 1_000_000):
            a = arb(a)
        return a**n
    a = still(a)
    side = clear_sign(a)
    if side < 0:
        raise Undefined("a power of a negative number")
    if side == 0:
        if clear_sign(b) < 0:
            raise Undefined("division by 0")
        return fmpq(0) if clear_sign(b) > 0 else fmpq(1)
    if isinstance(a, fmpq) and isinstance(b, fmpq) and b.q < 64:
        top, bottom = a.p.root(int(b.q)), a.q.root(int(b.q))
        if top ** int(b.q) == a.p and bottom ** int(b.q) == a.q:
            return power(fmpq(top, bottom), fmpq(b.p))
    return (arb(a).log() * arb(b)).exp() if not isinstance(b, fmpq) or b.q != 2 else arb(a).sqrt() ** int(b.p)


def exponential(a: Scalar) -> Scalar:
    if isinstance(a, Wave):
        return a.exp(fmpq(1))
    return fmpq(1) if isinstance(a, fmpq) and a == 0 else arb(a).exp()


def logarithm(a: Scalar) -> Scalar:
    a = still(a)
    if clear_sign(a) <= 0:
        raise Undefined("the logarithm of what is not positive")
    return fmpq(0) if isinstance(a, fmpq) and a == 1 else arb(a).log()


def sine(a: Scalar) -> Scalar:
    if isinstance(a, Wave):
        return (a.exp(acb(0, 1)) - a.exp(acb(0, -1))) * (acb(0, -1) / 2)
    return fmpq(0) if isinstance(a, fmpq) and a == 0 else arb(a).sin()


def cosine(a: Scalar) -> Scalar:
    if isinstance(a, Wave):
        return (a.exp(acb(0, 1)) + a.exp(acb(0, -1))) * fmpq(1, 2)
    return fmpq(1) if isinstance(a, fmpq) and a == 0 else arb(a).cos()


def larger(a: Scalar, b: Scalar) -> Scalar:
    a, b = still(a), still(b)
    return (a if a >= b else b) if isinstance(a, fmpq) and isinstance(b, fmpq) else arb(a).max(arb(b))


def smaller(a: Scalar, b: Scalar) -> Scalar:
    return -larger(-still(a), -still(b))


ELEMENTWISE: dict[str, Callable[[Scalar], Scalar]] = {
    "sqrt": lambda a: power(a, fmpq(1, 2)),
    "exp": exponential,
    "log": logarithm,
    "sin": sine,
    "cos": cosine,
    "abs": lambda a: abs(still(a)),
    "relu": lambda a: larger(a, fmpq(0)),
}
OPERATORS: dict[str, Callable[[Scalar, Scalar], Scalar]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": divide,
    "^": power,
}
