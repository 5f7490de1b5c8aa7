"""Scalars of the reader that are terms of z3, and what it says of a comparison that it is true, false or undefined.

Every term is a real number; a whole number is one that came from an integer. Numbers of the claim stay fractions. A
quotient or a root is a new name: its `Part` says where it is defined, and what it is there. z3's own division, which
has some value at 0, is never used.
"""

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import z3

from likewise.claims import arrays
from likewise.claims.arrays import Array, Entry
from likewise.claims.language.tree import Comparison
from likewise.claims.reader import Scalars
from likewise.claims.smt.curves import Curves, real
from likewise.claims.verdict import Undecided

DEGREE, ROOT = 12, 6  # the largest exponent, and the largest root
Term = Any  # a Fraction, or a term of z3
Fact = Any  # a formula of z3


@dataclass(frozen=True)
class Part:
    """A quotient or a root: where it is defined, and what it is there."""

    symbol: Term
    defined: Fact
    meaning: Fact


@dataclass(frozen=True)
class Side:
    """A side of a comparison, and the parts that must be defined for it to have a value."""

    value: Array
    parts: tuple[Part, ...]

    @property
    def defined(self) -> list[Fact]:
        """The side has a value."""
        return [fact for part in self.parts for fact in (part.defined, part.meaning)]

    @property
    def undefined(self) -> list[Fact]:
        """The side has none; a part that is defined still means what it means."""
        somewhere = z3.Or(*(z3.Not(part.defined) for part in self.parts))
        return [somewhere, *(z3.Implies(part.defined, part.meaning) for part in self.parts)]


@dataclass
class Terms:
    """Makes the parts, one for each operation on the same terms; `numbers` are those that the claim writes."""

    numbers: list[Fraction] = field(default_factory=list)
    known: dict[tuple[str, int, int], tuple[Part, tuple]] = field(default_factory=dict)
    used: dict[int, Part] = field(default_factory=dict)  # by the side that is being read
    curves: Curves = field(default_factory=Curves)

    def __post_init__(self) -> None:
        self.curves.numbers = self.numbers

    def parts(self) -> list[Part]:
        """Every quotient, root and logarithm that was made."""
        return [part for part, _ in self.known.values()]

    def definitions(self) -> list[tuple[Term, tuple[Term, ...]]]:
        """Every name that was made, and of what: often enough for what is made of another."""
        made = [(part.symbol, arguments) for part, arguments in self.known.values()]
        return [*made, *self.curves.definitions()] * 3

    @contextmanager
    def collected(self) -> Generator[dict[int, Part]]:
        """The parts that are used inside."""
        before, self.used = self.used, {}
        try:
            yield self.used
        finally:
            self.used = before

    def scalars(self) -> Scalars:
        """What the reader computes with."""
        return Scalars(
            elementwise={
                "abs": lambda value: maximum(value, -value),
                "relu": lambda value: maximum(value, Fraction(0)),
                "sqrt": lambda value: self.power(value, Fraction(1, 2)),
                "exp": lambda value: self.curves.exp(_number(value)),
                "log": self.logarithm,
                "sin": lambda value: self.curves.turn(_number(value)).sine,
                "cos": lambda value: self.curves.turn(_number(value)).cosine,
                "sign": sign,
                "floor": floor,
            },
            maximum=maximum,
            power=self.power,
            number=lambda value: value,
            divide=self.divide,
        )

    def divide(self, top: Term, bottom: Term) -> Term:
        """top/bottom."""
        require_numbers(bottom)
        if isinstance(bottom, Fraction):
            if not bottom:
                raise ZeroDivisionError("division by 0")
            return top * (1 / bottom)
        if isinstance(top, Fraction | int | z3.ArithRef):
            return self._part("quotient", real(top), bottom)
        return top * self._part("quotient", real(Fraction(1)), bottom)

    def power(self, base: Term, exponent: Term) -> Term:
        """base^exponent; a fraction for an exponent."""
        require_numbers(base, exponent)
        if not isinstance(exponent, Fraction):
            if not isinstance(base, Fraction):
                raise Undecided("z3 is not asked about a variable base with a variable exponent")
            return self.curves.power(base, exponent)
        if exponent.denominator > ROOT or abs(exponent.numerator) > DEGREE:
            raise Undecided(f"a power above {DEGREE}, or a root above {ROOT}")
        if exponent.denominator > 1:
            if isinstance(base, Fraction) and base < 0:
                raise ArithmeticError("a root of a negative number")
            base = self._part("root", real(base), z3.RealVal(exponent.denominator), exponent.denominator)
        raised: Term = Fraction(1)
        for _ in range(abs(exponent.numerator)):
            raised = raised * base
        return raised if exponent >= 0 else self.divide(Fraction(1), raised)

    def logarithm(self, value: Term) -> Term:
        """log(value): a part, for it needs what is above 0."""
        require_numbers(value)
        found = self.curves.log(value)
        if isinstance(value, Fraction):
            return found
        key = ("log", value.get_id(), 0)
        self.known.setdefault(key, (Part(found, value > 0, z3.BoolVal(True)), (value,)))
        self.used[found.get_id()] = self.known[key][0]
        return found

    def _part(self, kind: str, term: Term, other: Term, root: int = 0) -> Term:
        key = (kind, term.get_id(), other.get_id())
        if key not in self.known:
            symbol = z3.Real(f"{kind}!{len(self.known)}")
            if root:
                product = symbol
                for _ in range(root - 1):
                    product = product * symbol
                part = Part(symbol, term >= 0, z3.And(symbol >= 0, product == term))
            else:
                part = Part(symbol, other != 0, symbol * other == term)
            self.known[key] = part, (term, other)  # which stay alive, for their numbers are the key
        part = self.known[key][0]
        self.used[part.symbol.get_id()] = part
        return part.symbol


def _number(value: Term) -> Term:
    require_numbers(value)
    return value


def require_numbers(*values: Term) -> None:
    """Only numbers and terms, nothing that stands for a vector."""
    if not all(isinstance(value, Fraction | int | z3.ArithRef) for value in values):
        raise Undecided("z3 is not asked about such a function of a vector")


def maximum(*values: Entry) -> Term:
    """The largest."""
    require_numbers(*values)
    largest = values[0]
    for value in values[1:]:
        if isinstance(largest, Fraction) and isinstance(value, Fraction):
            largest = max(largest, value)
        else:
            a, b = real(largest), real(value)
            largest = z3.If(a >= b, a, b)
    return largest


def sign(value: Entry) -> Term:
    """-1, 0 or 1."""
    require_numbers(value)
    if isinstance(value, Fraction):
        return Fraction((value > 0) - (value < 0))
    one = z3.RealVal(1)
    return z3.If(value > 0, one, z3.If(value < 0, -one, z3.RealVal(0)))


def floor(value: Entry) -> Term:
    """The largest whole number that is not above."""
    require_numbers(value)
    return Fraction(value // 1) if isinstance(value, Fraction) else z3.ToReal(z3.ToInt(real(value)))


def compared(left: Array, comparison: Comparison, right: Array) -> Fact:
    """That a comparison of arrays, both defined, is true: in every entry, and != if it is not so of ==."""
    if comparison == "!=":
        return z3.Not(compared(left, "==", right))
    entries = arrays.broadcast(lambda a, b: compared_numbers(a, comparison, b), left, right).entries
    if not entries:
        raise Undecided("a comparison of nothing")
    return z3.And(*entries)


def compared_numbers(left: Term, comparison: Comparison, right: Term) -> Fact:
    """That a comparison of two numbers is true."""
    require_numbers(left, right)
    a, b = real(left), real(right)
    match comparison:
        case "==":
            return a == b
        case "<":
            return a < b
        case "<=":
            return a <= b
        case ">":
            return a > b
        case ">=":
            return a >= b
        case "!=":
            return a != b
    raise Undecided(f"z3 is not asked about {comparison}")
