"""Values of expressions at rational points, as balls that surely contain them: a sure difference is a witness."""

import hashlib
import os
import threading
import time
from collections.abc import Mapping
from fractions import Fraction
from math import comb, factorial
from typing import Any

from flint import acb, arb, ctx, fmpq

from likewise.grading.algebra import put
from likewise.grading.parsing import bare
from likewise.reading.expressions import Node, number

PRECISION = 240
RANGE = 3  # of an index of a sum without bounds
GREATEST = 2**40  # of an exponent, and of what a sine is taken of
Ball = Any  # fmpq, arb or acb, which have no types
LOCK = threading.Lock()  # the precision of python-flint is one for all threads


def _fresh_lock() -> None:
    """In a forked worker no thread is left that would release the lock."""
    global LOCK
    LOCK = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_fresh_lock)


class Undefined(Exception):
    """The expression has no value at the point, or none that is known here."""


class Unknown(Undefined):
    """The expression may have a value at the point, but none that can be computed here."""


class Point:
    """An assignment of rational values to names, and of arbitrary values to functions of which nothing is known."""

    def __init__(self, values: Mapping[str, Fraction], seed: str = "", base: str = "", seconds: float = 0.3) -> None:
        self.values = {name: fmpq(value.numerator, value.denominator) for name, value in values.items()}
        self.seed, self.base = seed, base
        self.free: dict[str, Fraction] = {}  # values that were chosen for functions
        self.until = time.thread_time() + seconds

    def value(self, node: Node) -> Ball:
        """The value of a tree."""
        if time.thread_time() > self.until:
            raise Unknown("the value took too long")
        node = bare(node)
        method = getattr(self, f"_{KINDS.get(node.kind, node.kind)}", None)
        if method is None:
            raise Undefined(f"{node.kind} has no value")
        return method(node)

    def whole(self, node: Node, most: int) -> int:
        """The value of what must be a small whole number."""
        value = self.value(node)
        if not isinstance(value, fmpq) or value.denominator != 1 or abs(value.numerator) > most:
            raise Undefined("no small whole number")
        return int(value.numerator)

    def choose(self, text: str) -> fmpq:
        """A value for a function at exact arguments, the same whenever it is asked for."""
        drawn = int.from_bytes(hashlib.sha256(f"{self.seed}:{text}".encode()).digest()[:4], "big")
        found = Fraction(drawn % 997 + 3, 127)
        self.free[text] = found
        return fmpq(found.numerator, found.denominator)

    def _number(self, node: Node) -> Ball:
        if len(node.text) > 5_000:
            raise Unknown("a number that is too large")
        value = Fraction(node.text)
        return fmpq(value.numerator, value.denominator)

    def _name(self, node: Node) -> Ball:
        if node.text in self.values:
            return self.values[node.text]
        match node.text:
            case "pi":
                return arb.pi()
            case "e":
                return arb(1).exp()
            case "i":
                return acb(0, 1)
        raise Undefined(f"{node.text} has no value")

    def _sum_over(self, node: Node) -> Ball:
        index, body = node.parts
        bounds = (number("1"), number(str(RANGE)))
        return self._sum(Node(node.kind.removesuffix("_over"), (index, *bounds, body)))

    def _index(self, node: Node) -> Ball:
        if node.text == "delta" and len(node.parts) == 2:
            one, other = map(self.value, node.parts)
            if isinstance(one, fmpq) and isinstance(other, fmpq):
                return fmpq(int(one == other))
        return self._chosen(node.text + "_", node)

    def _chosen(self, name: str, node: Node) -> Ball:
        values = [self.value(part) for part in node.parts]
        if not all(isinstance(value, fmpq) for value in values):
            raise Unknown("a function of what is not exact")
        return self.choose(f"{name}({', '.join(map(str, values))})")

    def _add(self, node: Node) -> Ball:
        one, other = map(self.value, node.parts)
        return one + other if node.kind == "+" else one - other

    def _neg(self, node: Node) -> Ball:
        return -self.value(node.parts[0])

    def _product(self, node: Node) -> Ball:
        if "⊙" in node.joined:
            raise Undefined("an elementwise product")
        found = self.value(node.parts[0])
        for part in node.parts[1:]:
            found = found * self.value(part)
        return found

    def _divide(self, node: Node) -> Ball:
        one, other = map(self.value, node.parts)
        return divide(one, other)

    def _percent(self, node: Node) -> Ball:
        return self.value(node.parts[0]) / 100

    def _degrees(self, node: Node) -> Ball:
        return self.value(node.parts[0]) * arb.pi() / 180

    def _power(self, node: Node) -> Ball:
        return power(self.value(node.parts[0]), self.value(node.parts[1]))

    def _root(self, node: Node) -> Ball:
        return power(self.value(node.parts[0]), divide(fmpq(1), self.value(node.parts[1])))

    def _abs(self, node: Node) -> Ball:
        value = self.value(node.parts[0])
        return value.abs_lower() if isinstance(value, acb) and value.rad() == 0 else abs(value)

    def _factorial(self, node: Node) -> Ball:
        value = self.whole(node.parts[0], 2_000)
        if value < 0:
            raise Undefined("a factorial of a negative number")
        return fmpq(factorial(value))

    def _choose(self, node: Node) -> Ball:
        above, below = (self.whole(part, 2_000) for part in node.parts)
        if above < 0:
            raise Undefined("a binomial coefficient of a negative number")
        return fmpq(comb(above, below) if below >= 0 else 0)

    def _floor(self, node: Node) -> Ball:
        value = self.value(node.parts[0])
        if isinstance(value, fmpq):
            return fmpq(value.floor() if node.kind == "floor" else value.ceil())
        found = (value.floor() if node.kind == "floor" else value.ceil()).unique_fmpz()
        if found is None:
            raise Undefined("a ball around a whole number")
        return fmpq(found)

    def _sum(self, node: Node) -> Ball:
        index, first, last, body = node.parts
        low, high = self.whole(first, 10**6), self.whole(last, 10**6)
        if high < low - 1:
            raise Undefined("a sum from a bound to a smaller one")
        if high - low > 400:
            raise Unknown("a sum of many terms")
        found = fmpq(int(node.kind == "prod"))
        for step in range(low, high + 1):
            term = self.value(put(body, index.text, step))
            found = found * term if node.kind == "prod" else found + term
        return found

    def _call(self, node: Node) -> Ball:
        name = node.text
        if name in ("log", "lg"):
            base = self.base if name == "log" else "lg"
            value = logarithm(self.value(node.parts[0]))
            if base == "e":
                return value
            return divide(
                value, arb(int(base)).log() if base.isdigit() else self.choose("the logarithm of the base of log") + 1
            )
        if name == "log_base":
            one, other = (logarithm(self.value(part)) for part in node.parts)
            return divide(one, other)
        if name == "conjugate":
            value = self.value(node.parts[0])
            return value.conjugate() if isinstance(value, acb) else value
        if name == "remainder":
            one, other = (self.value(part) for part in node.parts)
            if not isinstance(one, fmpq) or not isinstance(other, fmpq) or one.denominator != 1 or not other > 0:
                raise Undefined("a remainder that is not of integers")
            return one - other * fmpq((one / other).floor())
        if name in ("max", "min") and len(node.parts) > 1:
            return self._extreme(name, [self.value(part) for part in node.parts])
        if name in FUNCTIONS and len(node.parts) == 1:
            return FUNCTIONS[name](self.value(node.parts[0]))
        if name in NOT_ANY or name.split("_")[0] in NOT_ANY or "_given_" in name:
            raise Unknown(f"{name} is not any function")
        return self._chosen(name, node)

    def _extreme(self, name: str, values: list[Ball]) -> Ball:
        if all(isinstance(value, fmpq) for value in values):
            return (max if name == "max" else min)(values)
        found = arb(values[0])
        for value in values[1:]:
            found = found.max(arb(value)) if name == "max" else found.min(arb(value))
        return found


def divide(one: Ball, other: Ball) -> Ball:
    """one/other, undefined if other may be 0."""
    if other == 0 or (not isinstance(other, fmpq) and other.contains(0)):
        raise Undefined("a division by 0")
    return one / other


def power(base: Ball, exponent: Ball) -> Ball:
    """base^exponent; a root of a negative number is real if it is odd, undefined in the reals otherwise."""
    if isinstance(exponent, fmpq) and exponent.denominator == 1:
        whole = int(exponent.numerator)
        if abs(whole) > GREATEST:
            raise Unknown("a large exponent")
        if base == 0 and whole == 0:
            raise Undefined("0 to the power 0")
        if isinstance(base, fmpq) and _height(base) * abs(whole) > 60_000:
            base = arb(base)
        if whole < 0:
            return divide(fmpq(1), base**-whole)
        return base**whole
    if isinstance(base, acb) or isinstance(exponent, acb):
        if base == arb(1).exp() or (isinstance(base, arb) and base > 0):
            return (acb(base).log() * exponent).exp()
        raise Undefined("a power of a complex number")
    if base == 0:
        if isinstance(exponent, fmpq) and exponent > 0:
            return fmpq(0)
        raise Undefined("a power of 0")
    if base < 0:
        if isinstance(exponent, fmpq) and exponent.denominator % 2:
            found = (arb(-base).log() * exponent).exp()
            return -found if exponent.numerator % 2 else found
        if isinstance(exponent, fmpq) and exponent.denominator == 2:
            return acb(base).sqrt() ** int(exponent.numerator)
        raise Undefined("a power of a negative number")
    if not base > 0:
        raise Undefined("a power of what may be negative")
    if exponent == fmpq(1, 2):
        return arb(base).sqrt()
    value = arb(base).log() * exponent
    if not abs(value) < GREATEST:
        raise Unknown("a large exponent")
    return value.exp()


def logarithm(value: Ball) -> Ball:
    """log of a positive number."""
    if isinstance(value, acb) or not value > 0:
        raise Undefined("a logarithm of what is not positive")
    return arb(value).log()


def _height(value: fmpq) -> int:
    return max(int(value.numerator).bit_length(), int(value.denominator).bit_length())


def _elementary(name: str) -> Any:
    def found(value: Ball) -> Ball:
        ball = value if isinstance(value, acb) else arb(value)
        if not (abs(ball) < GREATEST):
            raise Unknown("a large argument")
        if name in ("asin", "acos") and not (isinstance(ball, arb) and abs(ball) <= 1):
            raise Undefined("no real value")
        return getattr(ball, name)()

    return found


def _sign(value: Ball) -> Ball:
    if value > 0 or value < 0:
        return fmpq(1 if value > 0 else -1)
    raise Undefined("a sign near 0")


FUNCTIONS = {
    name: _elementary(name) for name in ("exp", "sin", "cos", "tan", "cot", "sec", "csc", "sinh", "cosh", "tanh")
}
FUNCTIONS |= {"arcsin": _elementary("asin"), "arccos": _elementary("acos"), "arctan": _elementary("atan")}
FUNCTIONS |= {
    "ln": logarithm,
    "sqrt": lambda value: power(value, fmpq(1, 2)),
    "sgn": _sign,
    "relu": lambda value: max(value, fmpq(0)) if isinstance(value, fmpq) else arb(value).max(arb(0)),
    "sigmoid": lambda value: 1 / (1 + (-arb(value)).exp()),
}
NOT_ANY = {
    "E",
    "Var",
    "Cov",
    "P",
    "Pr",
    "gcd",
    "lcm",
    "norm",
    "det",
    "tr",
    "rank",
    "softmax",
    "diag",
    "vec",
    "Re",
    "Im",
    "arg",
}
KINDS = {"+": "add", "-": "add", "/": "divide", "^": "power", "%": "percent", "!": "factorial", "ceil": "floor"}
KINDS |= {"prod": "sum", "prod_over": "sum_over"}


def precise(bits: int = PRECISION) -> "_Precision":
    """A context in which balls have so many bits; one thread at a time."""
    return _Precision(bits)


class _Precision:
    def __init__(self, bits: int) -> None:
        self.bits = bits

    def __enter__(self) -> None:
        LOCK.acquire()
        self.before, ctx.prec = ctx.prec, self.bits

    def __exit__(self, *_: object) -> None:
        ctx.prec = self.before
        LOCK.release()


def surely_differ(one: Ball, other: Ball) -> bool:
    """Whether two balls have no number in common."""
    if isinstance(one, fmpq) and isinstance(other, fmpq):
        return one != other
    gap = acb(one) - acb(other)
    if not gap.is_finite():
        return False
    return not gap.contains(0)


def separation(node: Node) -> tuple[float, float, float] | None:
    """(log2 u, log2 l, degree) of a closed expression of integers, + - * / and roots, or nothing.

    If it is not 0, it is at least 1/(u^(degree^2 - 1) * l).

    Paper: Burnikel, Fleischer, Mehlhorn, Schirra, A strong and easily computable separation bound for arithmetic
    expressions involving radicals, Algorithmica 27 (2000), section 2.
    """
    from math import log2

    node = bare(node)
    match node.kind:
        case "number":
            value = Fraction(node.text)
            if not value:
                return 0.0, 0.0, 1.0
            return log2(abs(value.numerator)), log2(value.denominator), 1.0
        case "neg" | "%":
            found = separation(node.parts[0])
            return found if found is None or node.kind == "neg" else (found[0], found[1] + log2(100), found[2])
        case "+" | "-":
            one, other = map(separation, node.parts)
            if one is None or other is None:
                return None
            return max(one[0] + other[1], one[1] + other[0]) + 1, one[1] + other[1], one[2] * other[2]
        case "product":
            total = (0.0, 0.0, 1.0)
            for part in node.parts:
                found = separation(part)
                if found is None:
                    return None
                total = total[0] + found[0], total[1] + found[1], total[2] * found[2]
            return total
        case "/":
            one, other = map(separation, node.parts)
            if one is None or other is None:
                return None
            return one[0] + other[1], one[1] + other[0], one[2] * other[2]
        case "call" if node.text == "sqrt":
            return _rooted(separation(node.parts[0]), 2)
        case "root":
            degree = bare(node.parts[1])
            return (
                _rooted(separation(node.parts[0]), int(degree.text))
                if degree.kind == "number" and degree.text.isdigit()
                else None
            )
        case "^":
            return _powered(node)
    return None


def _powered(node: Node) -> tuple[float, float, float] | None:
    with_sign = bare(node.parts[1])
    negative = with_sign.kind == "neg"
    exponent = bare(with_sign.parts[0]) if negative else with_sign
    found = separation(node.parts[0])
    if found is None:
        return None
    degree = 1
    if exponent.kind == "/" and all(
        bare(part).kind == "number" and bare(part).text.isdigit() for part in exponent.parts
    ):
        times, degree = (int(bare(part).text) for part in exponent.parts)
    elif exponent.kind == "number" and exponent.text.isdigit():
        times = int(exponent.text)
    else:
        return None
    if times > 1_000 or not 1 <= degree <= 12:
        return None
    raised = (found[0] * times, found[1] * times, found[2])
    rooted = _rooted(raised, degree) if degree > 1 else raised
    return (rooted[1], rooted[0], rooted[2]) if rooted and negative else rooted


def _rooted(found: tuple[float, float, float] | None, degree: int) -> tuple[float, float, float] | None:
    if found is None or not 1 < degree <= 12:
        return None
    return found[0] / degree, found[1] / degree, found[2] * degree
