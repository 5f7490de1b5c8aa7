"""The judge's numbers: fractions, balls, and random quantities that can be averaged."""

import operator
from collections.abc import Callable, Mapping
from fractions import Fraction
from math import comb, prod
from typing import Any

from flint import acb, arb, fmpq

from likewise.claims.judge.roots import Root, root_of

TERMS = 3_000  # of one random quantity
EXPONENT = 4_096
FACTORIAL = 2_000  # beyond it a ball
DIGITS = 1 << 16  # bits of a whole number that is read off a ball
Scalar = Any  # fmpq, Root, arb or Wave


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
        terms = [(c.ball if isinstance(c, Root) else c, powers, slopes) for c, powers, slopes in terms]
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


class Curve:
    """A function of one draw on a piece of the complex plane around it, for quadrature.

    Where `analytic` is set, a kink or a branch cut inside the piece must give no number.
    """

    def __init__(self, value: acb, analytic: bool) -> None:
        self.value, self.analytic = value, analytic

    def _of(self, value: acb) -> "Curve":
        return Curve(value, self.analytic)

    @staticmethod
    def _number(other: Scalar) -> acb:
        return other.value if isinstance(other, Curve) else acb(ball(other) if isinstance(other, Root) else other)

    def __add__(self, other: Scalar) -> "Curve":
        return self._of(self.value + self._number(other))

    def __sub__(self, other: Scalar) -> "Curve":
        return self._of(self.value - self._number(other))

    def __rsub__(self, other: Scalar) -> "Curve":
        return self._of(self._number(other) - self.value)

    def __mul__(self, other: Scalar) -> "Curve":
        return self._of(self.value * self._number(other))

    def __neg__(self) -> "Curve":
        return self._of(-self.value)

    __radd__, __rmul__ = __add__, __mul__

    def divided(self, by: Scalar) -> "Curve":
        return self._of(self.value / self._number(by))

    def raised(self, exponent: Scalar) -> "Curve":
        if isinstance(exponent, fmpq) and exponent.q == 1 and abs(exponent) <= 64:
            return self._of(self.value ** int(exponent.p))
        if isinstance(exponent, Curve) or not self.value.real > 0:
            return self._of(acb(float("nan")))
        return self._of((self.value.log() * self._number(exponent)).exp())

    def mapped(self, function: str) -> "Curve":
        z = self.value
        match function:
            case "exp" | "sin" | "cos" | "erf" | "tanh":
                return self._of(getattr(z, function)())
            case "sigmoid":
                return self._of(1 / (1 + (-z).exp()))
            case "normcdf":
                return self._of((-z / arb(2).sqrt()).erfc() / 2)
            case "log" | "log2" | "sqrt":
                if not z.real > 0:
                    root = z.real.nonnegative_part().sqrt() if function == "sqrt" and not self.analytic else arb.nan()
                    return self._of(acb(root if not z.real < 0 else arb.nan()))
                return self._of(
                    z.sqrt() if function == "sqrt" else z.log() / (arb(2).log() if function == "log2" else 1)
                )
            case "abs":
                return self.larger(-self)
            case "relu":
                return self.larger(fmpq(0))
            case "sign":
                if z.real > 0 or z.real < 0:
                    return self._of(acb(1 if z.real > 0 else -1))
                return self._of(acb(float("nan")) if self.analytic else acb(arb(0, 1)))
            case "floor":
                low, high = _floors(z.real)
                if low is None or high is None or (low != high and self.analytic):
                    return self._of(acb(float("nan")))
                return self._of(acb(arb(low) if low == high else arb(low).union(arb(high))))
        raise Unclear(f"{function} under an integral")

    def larger(self, other: Scalar) -> "Curve":
        b = self._number(other)
        side = (self.value - b).real
        if side > 0 or side < 0:
            return self._of(self.value if side > 0 else b)
        return self._of(acb(float("nan")) if self.analytic else acb(self.value.real.max(b.real)))


def _merged(left: dict, right: dict) -> dict:
    return {key: left.get(key, 0) + right.get(key, 0) for key in {*left, *right}}


def _standard_mean(law: str, k: int, a: Scalar | None) -> Scalar:
    """E[z^k e^(a z)] of a standard normal or exponential, a uniform number of [0, 1], or a fair sign."""
    if law == "sign":
        return fmpq(1 - k % 2) if a is None else (acb(a).exp() + (-1) ** k * acb(-a).exp()) / 2
    if law == "exponential":
        if a is None:
            return fmpq(prod(range(1, k + 1)))
        fall = 1 - acb(a)
        if not fall.real > 0:
            raise Unclear("a mean that may not exist")
        return prod(range(1, k + 1)) / fall ** (k + 1)
    if law == "uniform":
        if a is not None and isinstance(a, fmpq) and a == 0:
            a = None
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


def ball(value: Scalar) -> arb:
    """A scalar that is not random as a ball."""
    return value.ball if isinstance(value, Root) else arb(value)


def sign(value: Scalar) -> int | None:
    """-1, 0 or 1; None where the ball does not say."""
    value = still(value)
    if isinstance(value, Root):
        return value.sign()
    if isinstance(value, Curve):
        raise Unclear("a comparison under an integral")
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
    if isinstance(b, Curve):
        return (a if isinstance(a, Curve) else b * 0 + a).divided(b)
    if clear_sign(b) == 0:
        raise Undefined("division by 0")
    inverse = 1 / still(b)
    return a * inverse


def power(a: Scalar, b: Scalar) -> Scalar:
    """a^b: repeated products for whole b, otherwise exp(b log a), which needs a > 0, or a = 0 and b > 0."""
    b = still(b)
    if isinstance(a, Curve):
        return a.raised(b)
    if isinstance(b, Curve):
        return (b * logarithm(a)).mapped("exp")
    if isinstance(b, fmpq) and b.q == 1:
        n = int(b.p)
        if n < 0:
            return divide(fmpq(1), power(a, -b))
        if isinstance(a, Wave):
            if n > 16:
                raise Unclear("a large power of a random quantity")
            return prod([a] * n, start=Wave.of(fmpq(1)))
        if n > EXPONENT or (isinstance(a, fmpq) and a.height_bits() * n > 1_000_000):
            a = ball(a)
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
    if isinstance(a, fmpq | Root) and isinstance(b, fmpq) and b.q <= 8 and abs(b.p) <= 64:
        found = root_of(a, int(b.q)) if isinstance(a, fmpq) else a.root(int(b.q))
        return power(found, fmpq(b.p))
    return (ball(a).log() * ball(b)).exp()


def exponential(a: Scalar) -> Scalar:
    if isinstance(a, Curve):
        return a.mapped("exp")
    if isinstance(a, Wave):
        return a.exp(fmpq(1))
    return fmpq(1) if isinstance(a, fmpq) and a == 0 else ball(a).exp()


def logarithm(a: Scalar) -> Scalar:
    a = still(a)
    if clear_sign(a) <= 0:
        raise Undefined("the logarithm of what is not positive")
    return fmpq(0) if isinstance(a, fmpq) and a == 1 else ball(a).log()


def binary_logarithm(a: Scalar) -> Scalar:
    """log(a)/log(2), exactly for powers of 2."""
    a = still(a)
    if isinstance(a, fmpq) and a > 0:
        power = a.p.bit_length() - a.q.bit_length()
        if a == fmpq(2) ** power:
            return fmpq(power)
    return divide(logarithm(a), logarithm(fmpq(2)))


def sine(a: Scalar) -> Scalar:
    if isinstance(a, Wave):
        return (a.exp(acb(0, 1)) - a.exp(acb(0, -1))) * (acb(0, -1) / 2)
    return fmpq(0) if isinstance(a, fmpq) and a == 0 else ball(a).sin()


def cosine(a: Scalar) -> Scalar:
    if isinstance(a, Wave):
        return (a.exp(acb(0, 1)) + a.exp(acb(0, -1))) * fmpq(1, 2)
    return fmpq(1) if isinstance(a, fmpq) and a == 0 else ball(a).cos()


def larger(a: Scalar, b: Scalar) -> Scalar:
    a, b = still(a), still(b)
    if isinstance(a, Curve):
        return a.larger(b)
    if isinstance(b, Curve):
        return b.larger(a)
    if isinstance(a, fmpq | Root) and isinstance(b, fmpq | Root):
        side = sign(a - b)
        if side is not None:
            return a if side >= 0 else b
    return ball(a).max(ball(b))


def smaller(a: Scalar, b: Scalar) -> Scalar:
    return -larger(-still(a), -still(b))


def step(a: Scalar) -> Scalar:
    """-1, 0 or 1."""
    return fmpq(clear_sign(a))


def _floors(a: arb) -> tuple[Any, Any]:
    """The floors of both ends of a ball; None where an end is infinite or has more digits than memory should hold."""
    if not abs(a) < arb(2) ** DIGITS:
        return None, None
    return a.lower().floor().unique_fmpz(), a.upper().floor().unique_fmpz()


def whole_part(a: Scalar) -> Scalar:
    """The largest whole number that is not above a."""
    a = still(a)
    if isinstance(a, Curve):
        return a.mapped("floor")
    if isinstance(a, fmpq):
        return fmpq(a.p // a.q)
    low, high = _floors(ball(a))
    if low is None or low != high:
        raise Unclear("a ball around a whole number")
    return fmpq(low)


def hyperbolic(a: Scalar) -> Scalar:
    a = still(a)
    return fmpq(0) if isinstance(a, fmpq) and a == 0 else ball(a).tanh()


def logistic(a: Scalar) -> Scalar:
    a = still(a)
    return fmpq(1, 2) if isinstance(a, fmpq) and a == 0 else 1 / (1 + (-ball(a)).exp())


def error_function(a: Scalar) -> Scalar:
    a = still(a)
    return fmpq(0) if isinstance(a, fmpq) and a == 0 else ball(a).erf()


def normal_below(a: Scalar) -> Scalar:
    """The chance that a standard normal number is at most a; erfc keeps a tiny one apart from 0."""
    a = still(a)
    return fmpq(1, 2) if isinstance(a, fmpq) and a == 0 else (-ball(a) / arb(2).sqrt()).erfc() / 2


def many(a: Scalar) -> Scalar:
    """1*2*...*n."""
    a = still(a)
    if not isinstance(a, fmpq):
        raise Unclear("the factorial of a ball")
    if a.q != 1 or a < 0:
        raise Undefined("the factorial of what is no whole number")
    return factorial_of(int(a.p))


def factorial_of(n: int) -> Scalar:
    """n! of a whole number; of a large one a ball."""
    return fmpq(prod(range(1, n + 1))) if n <= FACTORIAL else (arb(n) + 1).gamma()


def remainder(a: Scalar, b: Scalar) -> Scalar:
    """a - b*floor(a/b)."""
    return a - b * whole_part(divide(a, b))


OF_NUMBERS: dict[str, Callable[[Scalar], Scalar]] = {
    "sqrt": lambda a: power(a, fmpq(1, 2)),
    "exp": exponential,
    "log": logarithm,
    "sin": sine,
    "cos": cosine,
    "abs": lambda a: abs(still(a)),
    "relu": lambda a: larger(a, fmpq(0)),
    "log2": binary_logarithm,
    "tanh": hyperbolic,
    "sigmoid": logistic,
    "erf": error_function,
    "normcdf": normal_below,
    "sign": step,
    "floor": whole_part,
    "ceil": lambda a: -whole_part(-still(a)),
    "factorial": many,
}
ELEMENTWISE: dict[str, Callable[[Scalar], Scalar]] = {
    name: lambda a, name=name: a.mapped(name) if isinstance(a, Curve) else OF_NUMBERS[name](a) for name in OF_NUMBERS
}
OPERATORS: dict[str, Callable[[Scalar, Scalar], Scalar]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": divide,
    "^": power,
}
