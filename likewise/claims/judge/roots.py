"""Numbers made of fractions and roots, of which the judge knows whether they are 0.

A ball never says that sqrt(2)^2 - 2 is 0. But a number that + - * / and roots make of whole numbers is either 0 or not
too small: with u and l bounds of its numerator, conjugates included, and of its denominator, and d the product of the
degrees of its roots, it is at least 1/(u^(d^2 - 1)*l) if it is not 0.

Paper: Burnikel, Fleischer, Mehlhorn and Schirra, "A strong and easily computable separation bound for arithmetic
expressions involving radicals", 2000, Theorem 1. u and l are kept as logarithms to the base 2, rounded up.
"""

from dataclasses import dataclass
from math import ceil, prod
from typing import Any

from flint import arb, fmpq

DEGREE = 64  # of all roots together; beyond it only the ball is kept
LARGEST = 100_000  # bits of a bound
SLACK = 1e-9  # for the rounding of logarithms


@dataclass(frozen=True, eq=False)
class Root:
    """A ball, bounds log2(u) and log2(l), and the roots that it is made of, each with its degree."""

    ball: arb
    u: float
    l: float  # noqa: E741
    roots: frozenset[tuple[Any, int]]

    def __str__(self) -> str:
        return str(self.ball)

    @staticmethod
    def of(value: fmpq) -> "Root":
        """A fraction."""
        return Root(arb(value), _bits(int(value.p)), _bits(int(value.q)), frozenset())

    def sign(self) -> int | None:
        """-1, 0 or 1; None where the ball is still too wide."""
        if self.ball > 0 or self.ball < 0:
            return 1 if self.ball > 0 else -1
        d = prod(degree for _, degree in self.roots)
        bits = ceil((d * d - 1) * max(self.u, 0.0) + max(self.l, 0.0)) + 2
        return 0 if self.ball.is_finite() and abs(self.ball).upper() < arb(2) ** -bits else None

    def __neg__(self) -> "Root":
        return Root(-self.ball, self.u, self.l, self.roots)

    def __add__(self, other: Any) -> Any:
        if not isinstance(other, Root | fmpq | int):
            return self.ball + other
        it = _root(other)
        u = max(self.u + it.l, self.l + it.u) + 1 + SLACK
        return made(self.ball + it.ball, u, self.l + it.l + SLACK, self.roots | it.roots)

    def __sub__(self, other: Any) -> Any:
        return self + -other

    def __rsub__(self, other: Any) -> Any:
        return -self + other

    def __mul__(self, other: Any) -> Any:
        if not isinstance(other, Root | fmpq | int):
            return self.ball * other
        it = _root(other)
        return made(self.ball * it.ball, self.u + it.u + SLACK, self.l + it.l + SLACK, self.roots | it.roots)

    __radd__, __rmul__ = __add__, __mul__

    def inverse(self) -> Any:
        """1/x, of what is not 0."""
        return made(1 / self.ball, self.l, self.u, self.roots)

    def __rtruediv__(self, other: Any) -> Any:
        return self.inverse() * other

    def __truediv__(self, other: Any) -> Any:
        return self * (1 / other if isinstance(other, Root) else fmpq(1) / other)

    def __pow__(self, n: int) -> Any:
        return made(self.ball**n, n * self.u + SLACK, n * self.l + SLACK, self.roots)

    def root(self, k: int) -> Any:
        """The k-th root of what is above 0."""
        u, l = self.u, self.l  # noqa: E741
        u, l = ((u + (k - 1) * l) / k, l) if u >= l else (u, ((k - 1) * u + l) / k)  # noqa: E741
        return made(self.ball.root(k), u + SLACK, l + SLACK, self.roots | {(object(), k)})

    def __abs__(self) -> Any:
        side = self.sign()
        return abs(self.ball) if side is None else fmpq(0) if side == 0 else self if side > 0 else -self

    def __lt__(self, other: Any) -> bool:
        return _side(self - other) == -1

    def __gt__(self, other: Any) -> bool:
        return _side(self - other) == 1

    def __le__(self, other: Any) -> bool:
        return _side(self - other) in (-1, 0)

    def __ge__(self, other: Any) -> bool:
        return _side(self - other) in (0, 1)

    def __eq__(self, other: object) -> bool:
        return _side(self - other) == 0


def made(ball: arb, u: float, l: float, roots: frozenset) -> Any:  # noqa: E741
    """The root, or only its ball where the bound has become too weak."""
    small = prod(degree for _, degree in roots) <= DEGREE and u < LARGEST and l < LARGEST
    return Root(ball, u, l, roots) if small else ball


def root_of(value: fmpq, k: int) -> Any:
    """The k-th root of a fraction above 0; roots of one fraction are one root."""
    found = Root.of(value).root(k)
    return Root(found.ball, found.u, found.l, frozenset({((int(value.p), int(value.q)), k)}))


def _side(value: Any) -> int | None:
    if isinstance(value, Root):
        return value.sign()
    return 1 if value > 0 else -1 if value < 0 else 0 if value == 0 else None


def _root(value: "Root | fmpq | int") -> Root:
    return value if isinstance(value, Root) else Root.of(fmpq(value))


def _bits(number: int) -> float:
    """log2 of a whole number, rounded up; 0 counts as 1."""
    return float(max(abs(number) - 1, 0).bit_length())
