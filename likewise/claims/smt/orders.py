"""O, Omega and Theta in max-plus: the logarithms of sizes are reals, sums are maxima, and z3 compares linear terms.

An expression over sizes is known by two terms in logarithms: `low` and `high` with c*e^low <= |value| <= C*e^high at
*all* sizes that the claim allows, small ones too. f is in O(g) if nothing in the cone of the assumptions has
high(f) > low(g). Besides y = log(N) there are log(log(N)), which stays below every share of y, and N itself, the
logarithm of e^N, which exceeds every multiple of y. Along a ray N = c*t^k of one number t the leading term is all that
counts, so that both terms agree: a bound fails if a ray of whole sizes has low(f) > high(g) there.

By Stirling's formula log(N!) is N*log(N) - N + log(N)/2 up to a constant; N*log(N) is a name of its own, which exceeds
every multiple of N. A sum over an index is known by its integral: sum(i in 1..N, 1/i) is between log(N + 1) and
1 + log(N).
"""

import operator
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import islice, product
from math import factorial, floor, prod
from typing import Any

import z3

from likewise.claims import arrays
from likewise.claims.arrays import Array
from likewise.claims.language.claim import Bounded, Claim, Size
from likewise.claims.language.expressions import rebuilt
from likewise.claims.language.limits import EXPONENT
from likewise.claims.language.parser import over
from likewise.claims.language.tree import Binary, Call, Chain, Comparison, Indexed, Name, Negative, Node, Number, names
from likewise.claims.reader import Reader, Scalars
from likewise.claims.verdict import Finding, Undecided

BUDGET_SHARE, SOON = 0.6, 0.4  # of the budget for all; seconds for the question whether a difference keeps its size
TINY, HUGE = z3.Q(1, 10**9), z3.RealVal(10**9)  # log(log(N)) <= TINY*log(N); N >= HUGE*log(N), up to a constant
TERMS = 200  # of one sum
SHARES = (Fraction(1, 2), Fraction(1, 8), Fraction(1, 64))  # of its positive terms that a difference keeps
FACTORS, MOVES, RAYS = (1, 2, 3), (0, 1, 2, 3), 3_000  # N = factor*t^move
QUERY = 2000  # milliseconds for one question
FEW = 10  # added to the argument of a factorial
CASES = 3  # sizes whose value 1 is a case of its own
SMALL, POINTS = (40, 12, 4), 300  # sizes at which a bound may be 0
DIGITS = 10**12  # logarithms of primes are enclosed so closely
ENGINE = "max-plus"
Power = tuple[tuple[str, Fraction], ...]  # of names, sorted, exponents not 0
Term = z3.ArithRef


@dataclass(frozen=True)
class LogBounds:
    """The sign of a number (0: not known), its logarithm from below (None: it may be 0) and above (None: it is 0)."""

    sign: int
    low: Term | None
    high: Term | None
    positive: Term | None = None  # bounds max(value, 0), where that is less than |value|


@dataclass(frozen=True)
class Growth:
    """A number that depends on the sizes: an exact sum of powers, or what bounds it."""

    book: "Book"
    terms: Mapping[Power, Fraction] | None
    known: LogBounds | None = None
    largest_of: "tuple[Growth, ...]" = ()
    smallest_of: "tuple[Growth, ...]" = ()
    logs: Mapping[str, Fraction] | None = None  # a logarithm: the factors of log(N), up to a constant
    log: "Growth | None" = None  # the logarithm, where it is known better than by `bounds`

    @property
    def bounds(self) -> LogBounds:
        """Of an exact sum they are found when they are first asked for."""
        return self.known if self.terms is None and self.known is not None else self.book.bounds(self.terms or {})

    def __neg__(self) -> "Growth":
        if self.terms is not None:
            return self.book.summed({key: -value for key, value in self.terms.items()})
        mine = self.bounds
        largest, smallest = (tuple(map(operator.neg, parts)) for parts in (self.smallest_of, self.largest_of))
        return Growth(self.book, None, LogBounds(-mine.sign, mine.low, mine.high), largest, smallest)

    def __add__(self, other: "Growth | Fraction | int") -> "Growth":
        other = self.book.number(other)
        if self.terms is not None and other.terms is not None:
            total = dict(self.terms)
            for key, value in other.terms.items():
                total[key] = total.get(key, Fraction(0)) + value
            return self.book.summed(total)
        a, b = self.bounds, other.bounds
        if a.high is None or b.high is None:
            return self if b.high is None else other
        sign = a.sign if a.sign == b.sign else 0
        if not sign and self.book.ray:
            return self.book.leading(self, other)
        lows = [low for low in (a.low, b.low) if low is not None]
        return Growth(
            self.book, None, LogBounds(sign, _largest(lows) if sign and lows else None, _largest([a.high, b.high]))
        )

    def __sub__(self, other: "Growth | Fraction | int") -> "Growth":
        return self + -self.book.number(other)

    def __rsub__(self, other: "Fraction | int") -> "Growth":
        return -self + other

    def __mul__(self, other: "Growth | Fraction | int") -> "Growth":
        other = self.book.number(other)
        if self.terms is not None and other.terms is not None and len(self.terms) * len(other.terms) <= TERMS:
            total: dict[Power, Fraction] = {}
            for (left, a), (right, b) in product(self.terms.items(), other.terms.items()):
                key = _times(left, right)
                total[key] = total.get(key, Fraction(0)) + a * b
            return self.book.summed(total)
        mine, its = self.bounds, other.bounds
        if mine.high is None or its.high is None:
            return self.book.summed({})
        low = None if mine.low is None or its.low is None else mine.low + its.low
        return Growth(self.book, None, LogBounds(mine.sign * its.sign, low, mine.high + its.high))

    __radd__, __rmul__ = __add__, __mul__

    def inverse(self) -> "Growth":
        """1/value, of what is never 0."""
        mine = self.bounds
        if mine.low is None or mine.high is None:
            raise Undecided("a quotient by what may be 0")
        if self.terms is not None and len(self.terms) == 1:
            return self.book.summed({_raised(key, Fraction(-1)): 1 / value for key, value in self.terms.items()})
        return Growth(self.book, None, LogBounds(mine.sign, -mine.high, -mine.low))


@dataclass
class Book:
    """The logarithms that occur, and what is known of them; `ray`: sizes are powers of one t, which is large."""

    claim: Claim
    ray: bool = False
    logs: dict[str, Term] = field(default_factory=dict)  # y = log(N)
    double: dict[str, Term] = field(default_factory=dict)  # log(log(N))
    raised: dict[Power, Term] = field(default_factory=dict)  # N^2*D itself, the logarithm of e^(N^2*D)
    primes: dict[tuple[int, Power], Term] = field(default_factory=dict)  # log(p)*N^2*D
    tall: dict[tuple[Power, str], Term] = field(default_factory=dict)  # N^2*log(N)
    squares: dict[str, Term] = field(default_factory=dict)  # log(N)^2
    facts: list[z3.BoolRef] = field(default_factory=list)
    assumed: list[tuple[Mapping[Power, Fraction], Comparison]] = field(default_factory=list)  # what is compared with 0
    compared: list[tuple[Mapping[Power, Fraction], Comparison]] = field(default_factory=list)  # without a constant
    found: dict[frozenset, LogBounds] = field(default_factory=dict)  # of exact sums

    def scalars(self) -> Scalars:
        """What the reader computes with."""
        return Scalars(
            elementwise={
                "abs": lambda value: value if value.bounds.sign > 0 else self.maximum(value, -value, whole=True),
                "relu": lambda value: self.maximum(value, self.summed({})),
                "sqrt": lambda value: self.power(value, Fraction(1, 2)),
                "log": self.logarithm,
                "exp": lambda value: self.exponential(value, ()),
                "floor": self.floor,
                "sin": lambda value: Growth(self, None, LogBounds(0, None, z3.RealVal(0))),
                "cos": lambda value: Growth(self, None, LogBounds(0, None, z3.RealVal(0))),
            },
            maximum=self.maximum,
            power=self.power,
            number=self.number,
            divide=lambda top, bottom: top * bottom.inverse(),
        )

    def number(self, value: "Growth | Fraction | int") -> Growth:
        """A constant."""
        return value if isinstance(value, Growth) else self.summed({(): Fraction(value)})

    def log(self, name: str) -> Term:
        """y = log(N)."""
        if name not in self.logs:
            self.logs[name] = z3.Real(f"log {name}")
            self.facts.append(self.logs[name] >= (1 if self.ray else 0))
        return self.logs[name]

    def summed(self, terms: Mapping[Power, Fraction]) -> Growth:
        """A sum of products of powers, exactly known."""
        if len(terms) > TERMS:
            raise Undecided(f"more than {TERMS} terms")
        return Growth(self, {key: value for key, value in terms.items() if value})

    def bounds(self, terms: Mapping[Power, Fraction]) -> LogBounds:
        """Of an exact sum: both agree unless its terms may cancel."""
        key = frozenset(terms.items())
        if key not in self.found:
            self.found[key] = self._bounds(terms)
        return self.found[key]

    def _bounds(self, terms: Mapping[Power, Fraction]) -> LogBounds:
        if not terms:
            return LogBounds(1, None, None)
        if self.ray:
            top = max(terms, key=lambda key: sum((exponent for _, exponent in key), Fraction(0)))
            return LogBounds(1 if terms[top] > 0 else -1, self._linear(top), self._linear(top))
        for sign in (1, -1):
            mine = {key: sign * value for key, value in terms.items()}
            above = [key for key, value in mine.items() if value > 0]
            if len(above) == len(mine) or (above and self._solid(mine)):
                size = _largest([self._linear(key) for key in above])
                return LogBounds(sign, size, size)
        above = [self._linear(key) for key, value in terms.items() if value > 0]
        return LogBounds(0, None, _largest([self._linear(key) for key in terms]), _largest(above) if above else None)

    def leading(self, left: Growth, right: Growth) -> Growth:
        """Along a ray, of two terms with different signs the one that grows faster."""
        for first, second in ((left, right), (right, left)):
            low, high = first.bounds.low, second.bounds.high
            if low is not None and high is not None and self.excluded(low <= high):
                return Growth(self, None, first.bounds)
        raise Undecided("terms that may cancel along a ray")

    def excluded(self, fact: z3.BoolRef) -> bool:
        """Whether nothing that is known allows the fact."""
        solver = z3.Solver()
        solver.set("timeout", QUERY)
        solver.add(*self.facts, *self._of_primes(), fact)
        return solver.check() == z3.unsat

    def _of_primes(self) -> list[z3.BoolRef]:
        """What is known of N^2*D, times the logarithm of a prime."""
        found = []
        for prime in {prime for prime, _ in self.primes}:
            for terms, comparison in self.compared:
                parts = [real(value) * self._times_log(prime, key) for key, value in terms.items()]
                found.append(COMPARED[comparison](sum(parts, z3.RealVal(0)), 0))
        return found

    def _linear(self, key: Power) -> Term:
        total: Term = z3.RealVal(0)
        for name, exponent in key:
            total = total + real(exponent) * self.log(name)
        return total

    def _solid(self, terms: Mapping[Power, Fraction]) -> bool:
        """Whether a sum with negative terms keeps a share of its positive ones, at all sizes."""
        if not all(_whole(exponent) for key in terms for _, exponent in key):
            return False
        names = {name for key in terms for name, _ in key}
        names |= {name for part, _ in self.assumed for key in part for name, _ in key}
        for kind in (z3.Real, z3.Int):
            at = {name: kind(f"at {name}") for name in names}
            solver = z3.Solver()
            solver.set("timeout", int(1000 * SOON))
            solver.add(*(value >= 1 for value in at.values()))
            solver.add(*(COMPARED[sign](_at(part, at), 0) for part, sign in self.assumed))
            above = {key: value for key, value in terms.items() if value > 0}
            for share in SHARES:
                solver.push()
                solver.add(_at(terms, at) < _at({key: share * value for key, value in above.items()}, at))
                if solver.check() == z3.unsat:
                    return True
                solver.pop()
        return False

    def maximum(self, *values: Growth, whole: bool = False) -> Growth:
        """The largest; `whole`: of x and -x, which is 0 only where x is."""
        if self.ray and all(value.terms is not None for value in values):
            return _largest_at_last(values)
        bounds = [value.bounds for value in values]
        if all(each.sign < 0 and each.high is not None for each in bounds):  # |max(-a, -b)| is min(a, b)
            highs = [-each.high for each in bounds if each.high is not None]
            lows = [-each.low for each in bounds if each.low is not None]
            low = -_largest(lows) if len(lows) == len(values) else None
            return Growth(self, None, LogBounds(-1, low, -_largest(highs)), values)
        sign = 1 if whole or any(each.sign > 0 for each in bounds) else 0
        lows = [each.low for each in bounds if each.sign > 0 and each.low is not None]
        highs = [each.high for each in bounds if each.high is not None and not (sign and each.sign < 0)]
        if sign and not whole:
            tops = [each.positive if each.positive is not None else each.high for each in bounds if each.sign >= 0]
            highs = [top for top in tops if top is not None]
        if not highs:
            return self.summed({})
        if self.ray and not sign:
            raise Undecided("a maximum of what has no sign along a ray")
        return Growth(self, None, LogBounds(sign, _largest(lows) if lows else None, _largest(highs)), values)

    def power(self, base: Growth, exponent: "Growth | Fraction") -> Growth:
        """base^exponent, of a number and a fraction, or of a constant and a polynomial."""
        if isinstance(exponent, Growth):
            constant = _constant(base)
            if exponent.logs is not None or constant is None:
                return self._variable_power(base, exponent)
            if constant <= 0:
                raise Undecided("a power with a variable exponent, of what is no positive number")
            factors = _prime_powers(constant)
            return self.exponential(exponent, factors) if factors else self.number(1)
        if exponent < 0:
            return self.power(base, -exponent).inverse()
        one = base.terms is not None and list(base.terms.values()) == [1]
        if exponent > EXPONENT and not one:
            raise Undecided(f"an exponent beyond {EXPONENT}")
        if (
            exponent.denominator == 1
            and exponent <= EXPONENT
            and base.terms is not None
            and len(base.terms) ** int(exponent) <= TERMS
        ):
            return prod([base] * int(exponent), start=self.number(1))
        if one:
            return self.summed({_raised(key, exponent): Fraction(1) for key in base.terms or ()})
        mine = base.bounds
        if mine.high is None:
            return base
        if exponent.denominator > 1 and mine.sign <= 0:
            raise Undecided("a root of what may be negative")
        sign = 1 if exponent.numerator % 2 == 0 else mine.sign
        low = None if mine.low is None else real(exponent) * mine.low
        return Growth(self, None, LogBounds(sign, low, real(exponent) * mine.high))

    def _variable_power(self, base: Growth, exponent: Growth) -> Growth:
        """(c*N)^exponent; b^log(N) and N^log(N) too."""
        if base.terms is None or len(base.terms) != 1:
            raise Undecided("a power with a variable exponent, of what is no product of sizes")
        ((key, c),) = base.terms.items()
        if c <= 0:
            raise Undecided("a power with a variable exponent, of what is no positive number")
        if exponent.logs is None:
            found = self.exponential(exponent, _prime_powers(c)) if c != 1 else self.number(1)
            assert exponent.terms is not None or c == 1
            if exponent.terms is None or any(power < 0 for inner in exponent.terms for _, power in inner):
                raise Undecided("an exponent that is no polynomial")
            total = found.bounds.high
            for (inner, value), (name, e) in product(exponent.terms.items(), key):
                total = total + real(value * e) * (self._tall(inner, name) if inner else self.log(name))
            return Growth(self, None, LogBounds(1, total, total))
        low = high = z3.RealVal(0)
        for name, factor in exponent.logs.items():
            for other, e in key:
                if other != name:
                    raise Undecided("a product of logarithms of different sizes in an exponent")
                low, high = (side + real(factor * e) * self._square(name) for side in (low, high))
            if c != 1:
                ends = [(factor * count * end for end in _log_between(prime)) for prime, count in _prime_powers(c)]
                least, most = (sum(sides, Fraction(0)) for sides in zip(*map(sorted, ends), strict=True))
                low, high = low + real(least) * self.log(name), high + real(most) * self.log(name)
        return Growth(self, None, LogBounds(1, low, high))

    def factorial(self, value: Growth) -> Growth:
        """(c*N + d)!, by Stirling's formula."""
        constant = _constant(value)
        if constant is not None:
            if constant.denominator > 1 or constant < 0:
                raise ArithmeticError("a factorial of what is no whole number")
            if constant > EXPONENT:
                raise Undecided("a factorial of a large number")
            return self.number(factorial(int(constant)))
        terms = dict(value.terms or {})
        shift = terms.pop((), Fraction(0))
        if len(terms) != 1 or value.terms is None:
            raise Undecided("a factorial of what is no multiple of a size")
        (((*pairs,), c),) = terms.items()
        if len(pairs) != 1 or c.denominator > 1 or shift.denominator > 1 or abs(shift) > FEW or c + min(shift, 0) < 0:
            raise Undecided("a factorial of what is no multiple of a size")
        ((name, e),) = pairs
        if not _whole(e):
            raise Undecided("a factorial of a root")
        key = ((name, e),)
        total = real(c * e) * self._tall(key, name) - real(c) * self._value(key)
        for prime, count in _prime_powers(c):
            total = total + real(c * count) * self._times_log(prime, key)
        total = total + real(e * (shift + Fraction(1, 2))) * self.log(name)
        log = None
        if shift == 0 or shift > 0:
            steep = self._double(name) if c == 1 and not shift else _largest([z3.RealVal(0), self._double(name)])
            log = Growth(self, None, LogBounds(1, real(e) * self.log(name) + steep, real(e) * self.log(name) + steep))
        return Growth(self, None, LogBounds(1, total, total), log=log)

    def floor(self, value: Growth) -> Growth:
        """The largest whole number that is not above a value."""
        constant = _constant(value)
        if constant is not None:
            return self.number(floor(constant))
        mine = value.bounds
        if mine.sign == 0 or mine.high is None:
            raise Undecided("floor of what may be above or below 0")
        falls = self.ray and self.excluded(mine.high >= 0)  # ever closer to 0
        if mine.sign < 0:  # -ceil(x); ceil(x) is between x and x + 1, and at least 1 unless x is 0
            if falls and value.terms is not None:
                return self.number(-1)
            one = z3.RealVal(0)
            low = mine.low if value.terms is None or mine.low is None else _largest([mine.low, one])
            return Growth(self, None, LogBounds(-1, low, _largest([mine.high, one])))
        if falls:
            return self.number(0)
        if self.ray and mine.low is not None and not self.excluded(mine.low <= 0):
            raise Undecided("floor of what may stay small along a ray")
        large = self.ray or (value.terms is not None and self._at_least_one(value.terms))
        return Growth(self, None, LogBounds(1 if large else 0, mine.low if large else None, mine.high))

    def _at_least_one(self, terms: Mapping[Power, Fraction]) -> bool:
        """Whether an exact sum is at least 1 at all sizes; then its floor is at least half of it."""
        if min(terms.values()) > 0 and all(e >= 0 for key in terms for _, e in key) and sum(terms.values()) >= 1:
            return True
        if not all(_whole(exponent) for key in terms for _, exponent in key):
            return False
        used = {name for key in terms for name, _ in key} | {n for part, _ in self.assumed for k in part for n, _ in k}
        at = {name: z3.Real(f"at {name}") for name in used}
        solver = z3.Solver()
        solver.set("timeout", int(1000 * SOON))
        solver.add(*(value >= 1 for value in at.values()))
        solver.add(*(COMPARED[sign](_at(part, at), 0) for part, sign in self.assumed))
        solver.add(_at(terms, at) < 1)
        return solver.check() == z3.unsat

    def harmonic(self, n: Growth, power: Fraction, logs: int) -> Growth:
        """sum(i in 1..n, i^power*log(i)^logs) for a whole n >= 1, up to constants."""
        if power > -1:
            found = self.power(n, power + 1)
            return found * self.power(self.logarithm(n), Fraction(logs)) if logs else found
        if power == -1:
            if logs:
                return self.power(self.logarithm(n), Fraction(logs + 1))
            return self.logarithm(n * 3)  # which is never 0
        if logs:
            raise Undecided("a sum of logarithms that converges")
        return self.number(1)

    def _tall(self, key: Power, name: str) -> Term:
        """N^a*log(N): above every multiple of N^a, below every share of a higher power."""
        if (key, name) not in self.tall:
            mine, value = z3.Real(f"tall {key} {name}"), self._value(key)
            e = dict(key).get(name, Fraction(0))
            self.facts.append(mine >= 0)
            if e > 0:
                self.facts.append(mine >= HUGE * value)
            self.tall[key, name] = mine
            for (other, whose), its in [*self.tall.items()]:
                if len(other) == len(key) == 1 and whose == name and other[0][0] == key[0][0] == name:
                    f = other[0][1]
                    self.facts += [mine >= HUGE * its] if e > f else [its >= HUGE * mine] if f > e else []
                elif len(other) == len(key) == 1 and other == ((whose, e),) and key == ((name, e),):
                    self.facts.append(z3.Or(self.log(name) >= self.log(whose), mine <= its))
                    self.facts.append(z3.Or(self.log(whose) >= self.log(name), its <= mine))
            for other, its in [*self.raised.items()]:
                self._above_tall(other, its)
        return self.tall[key, name]

    def _above_tall(self, key: Power, value: Term) -> None:
        """N^2*D >= any multiple of N*log(N)."""
        for (other, name), mine in self.tall.items():
            rest = dict(key)
            if all(rest.get(n, Fraction(0)) >= e for n, e in other) and rest.get(name, 0) > dict(other).get(name, 0):
                grows = dict(other).get(name, 0) > 0
                self.facts.append(value >= (HUGE if grows else 1) * mine)
        for name, mine in self.squares.items():
            if dict(key).get(name, 0) > 0:
                self.facts.append(value >= HUGE * mine)

    def _square(self, name: str) -> Term:
        """log(N)^2."""
        if name not in self.squares:
            mine = z3.Real(f"log {name} squared")
            self.facts.append(mine >= HUGE * self.log(name))
            self.squares[name] = mine
            for key, value in [*self.raised.items()]:
                self._above_tall(key, value)
        return self.squares[name]

    def exponential(self, exponent: Growth, factors: tuple[tuple[int, int], ...]) -> Growth:
        """(prod p^k)^exponent, or e^exponent without factors."""
        if exponent.terms is None or any(power < 0 for key in exponent.terms for _, power in key):
            raise Undecided("an exponent that is no polynomial")
        total: Term = z3.RealVal(0)
        for key, value in exponent.terms.items():
            if key:
                for prime, count in factors or ((0, 1),):
                    total = total + real(value * count) * self._times_log(prime, key)
        return Growth(self, None, LogBounds(1, total, total))

    def _value(self, key: Power) -> Term:
        """N^2*D itself: larger than every multiple of its logarithm, and than what divides it."""
        if key not in self.raised:
            mine = z3.Real(f"value {key}")
            self.facts += [mine >= HUGE * self._linear(key), mine >= 0]
            for other, value in self.raised.items():
                for small, large, least, most in ((key, other, mine, value), (other, key, value, mine)):
                    if all(exponent <= dict(large).get(name, 0) for name, exponent in small):
                        self.facts.append(most >= (HUGE if self.ray else 1) * least)
                        self.compared.append(({small: Fraction(1), large: Fraction(-1)}, "<="))
            self.raised[key] = mine
            self._above_tall(key, mine)
        return self.raised[key]

    def _times_log(self, prime: int, key: Power) -> Term:
        """log(p)*N^2*D; 0 stands for e."""
        value = self._value(key)
        if prime == 0:
            return value
        if (prime, key) not in self.primes:
            low, high = _log_between(prime)
            mine = z3.Real(f"log {prime} * {key}")
            self.facts += [mine >= real(low) * value, mine <= real(high) * value]
            self.primes[prime, key] = mine
        return self.primes[prime, key]

    def logarithm(self, value: Growth) -> Growth:
        """log of a product of sizes, or of a sum that is at least 2."""
        if value.log is not None:
            return value.log
        terms = value.terms
        if terms is None or not terms or min(terms.values()) < 0 or any(e < 0 for key in terms for _, e in key):
            raise Undecided("a logarithm of what is no sum of products of sizes")
        if sum(terms.values()) < 1:
            raise Undecided("a logarithm of what may be below 1")
        parts = [self._double(name) for name in dict.fromkeys(name for key in terms for name, _ in key)]
        logs = dict(next(iter(terms))) if len(terms) == 1 else None
        if list(terms.values()) == [1]:
            return (
                Growth(self, None, LogBounds(1, _largest(parts), _largest(parts)), logs=logs)
                if parts
                else self.summed({})
            )
        if sum(terms.values()) < 2:
            raise Undecided("a logarithm of what may be close to 1")
        size = _largest([z3.RealVal(0), *parts])
        return Growth(self, None, LogBounds(1, size, size), logs=logs)

    def _double(self, name: str) -> Term:
        """log(log(N)): -infinity where N may be 1."""
        if name not in self.double:
            mine = z3.Real(f"log log {name}")
            self.facts.append(mine <= TINY * self.log(name))
            if self.ray:
                self.facts.append(mine >= 1)
            elif self.above_one(name):
                self.facts.append(mine >= 0)
            for other, value in self.double.items():
                for a, b, less, more in ((name, other, mine, value), (other, name, value, mine)):
                    self.facts.append(z3.Or(self.log(a) >= 2 * self.log(b), less <= more))
            self.double[name] = mine
        return self.double[name]

    def above_one(self, name: str) -> bool:
        """Whether a size is surely at least 2."""
        return self._solid({((name, Fraction(1)),): Fraction(1), (): Fraction(-1)})

    def assume(self, left: Growth, comparison: Comparison, right: Growth) -> None:
        """What a comparison says of the logarithms, constant factors left out."""
        if comparison in ("<", "<=", "=="):
            pairs = [*((part, right) for part in left.largest_of), *((left, part) for part in right.smallest_of)]
            for small, large in pairs:
                self.assume(small, "<=", large)
        if comparison in (">", ">=", "=="):
            pairs = [*((part, right) for part in left.smallest_of), *((left, part) for part in right.largest_of)]
            for large, small in pairs:
                self.assume(large, ">=", small)
        for small, large in _ordered(left.bounds, comparison, right.bounds):
            if small.sign > 0 and small.low is not None and large.high is not None:
                self.facts.append(small.low <= large.high)
        difference = (left - right).terms
        if difference is None or comparison == "!=" or any(not _whole(e) for key in difference for _, e in key):
            return
        self.assumed.append((difference, comparison))
        self.found.clear()  # more is known of the signs
        if len(difference) > 1 and () not in difference:
            total = sum((real(value) * self._value(key) for key, value in difference.items()), z3.RealVal(0))
            self.facts.append(COMPARED[comparison](total, 0))
            self.compared.append((difference, comparison))


COMPARED = {
    "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge
}  # fmt: skip


def real(value: Fraction) -> Term:
    """A fraction as a term."""
    return z3.Q(value.numerator, value.denominator)


def _largest(parts: "list[Term]") -> Term:
    found = parts[0]
    for part in parts[1:]:
        found = z3.If(found >= part, found, part)
    return found


def _whole(exponent: Fraction) -> bool:
    return exponent.denominator == 1 and exponent >= 0


def _times(left: Power, right: Power) -> Power:
    total = dict(left)
    for name, exponent in right:
        total[name] = total.get(name, Fraction(0)) + exponent
    return tuple(sorted((name, exponent) for name, exponent in total.items() if exponent))


def _raised(key: Power, exponent: Fraction) -> Power:
    return tuple((name, exponent * power) for name, power in key)


def _at(terms: Mapping[Power, Fraction], at: Mapping[str, Term]) -> Term:
    """A sum of products of whole powers at sizes."""
    total: Term = z3.RealVal(0)
    for key, value in terms.items():
        factors = [at[name] for name, exponent in key for _ in range(int(exponent))]
        total = total + prod(factors, start=real(value))
    return total


def _largest_at_last(values: tuple[Growth, ...]) -> Growth:
    """The largest of exact sums of powers of t, from some t on."""
    found = values[0]
    for value in values[1:]:
        found = value if (value - found).bounds.sign > 0 else found
    return found


def _constant(value: Growth) -> Fraction | None:
    return None if value.terms is None or set(value.terms) - {()} else value.terms.get((), Fraction(0))


def _factors(number: int) -> list[tuple[int, int]]:
    """Prime factors of a number that is written in a claim."""
    found, prime = [], 2
    while number > 1:
        if prime * prime > number:
            prime = number
        count = 0
        while number % prime == 0:
            number, count = number // prime, count + 1
        found += [(prime, count)] if count else []
        prime += 1
        if prime > 10**5 and number > 1:
            raise Undecided("a large base")
    return found


def _prime_powers(value: Fraction) -> tuple[tuple[int, int], ...]:
    """Primes and their exponents, below 0 in the denominator."""
    below = [(prime, -count) for prime, count in _factors(value.denominator)]
    return (*_factors(value.numerator), *below)


def _log_between(prime: int) -> tuple[Fraction, Fraction]:
    from flint import arb, ctx

    ctx.prec = 128
    below = (arb(prime).log() * DIGITS).floor().unique_fmpz()
    if below is None:
        raise Undecided(f"log({prime}) to so many digits")
    return Fraction(int(below), DIGITS), Fraction(int(below) + 1, DIGITS)


def _ordered(left: LogBounds, comparison: Comparison, right: LogBounds) -> list[tuple[LogBounds, LogBounds]]:
    """The pairs small <= large that a comparison states."""
    pairs = [(left, right)] if comparison in ("<", "<=", "==") else []
    return pairs + ([(right, left)] if comparison in (">", ">=", "==") else [])


@dataclass(frozen=True)
class Ray:
    """Free sizes N = factor*t^move, and those that equations give."""

    moves: Mapping[str, tuple[int, int]]
    blamed: str = ""  # what grows faster

    def text(self) -> str:
        """N=2*t^3, D=1."""
        return ", ".join(f"{name}={value}" for name, value in self.witness())

    def witness(self) -> tuple[tuple[str, str], ...]:
        """Names and values."""
        return tuple((name, _monomial(factor, move)) for name, (factor, move) in self.moves.items())


def _monomial(factor: int, move: int) -> str:
    if move == 0:
        return str(factor)
    power = "t" if move == 1 else f"t^{move}"
    return power if factor == 1 else f"{factor}*{power}"


@dataclass(frozen=True)
class OrderReader(Reader):
    """The reader, with sums, factorials and remainders known by their order alone."""

    book: Any = None

    def evaluate(self, node: Node) -> Array:
        """The value of an expression over sizes."""
        match node:
            case Call("factorial", (operand,)) if isinstance(operand, Node):
                return arrays.scalar(self.book.factorial(self._number(operand)))
            case Call("choose", (top, bottom)) if isinstance(top, Node) and isinstance(bottom, Node):
                n, k = self._number(top), self._number(bottom)
                if _constant(k) is None:
                    parts = [self.book.factorial(value) for value in (n, k, n - k)]
                    return arrays.scalar(parts[0] * parts[1].inverse() * parts[2].inverse())
            case Binary("-", a, Binary("*", b, Call("floor", (Binary("/", c, d),)))) if a == c and b == d:
                whole = self._number(b).bounds
                if whole.sign > 0 and not (self.book.ray and _constant(self._number(a)) is not None):
                    return arrays.scalar(Growth(self.book, None, LogBounds(0, None, whole.high)))
            case Indexed("sum" | "mean", index, lowest, highest, body) if names(highest) - self.sizes.keys():
                if lowest != Number(Fraction(1)):
                    raise Undecided("a sum that does not begin at 1")
                n = self._number(highest)
                if n.terms is None or not n.terms or min(n.terms.values()) < 0 or sum(n.terms.values()) < 1:
                    raise Undecided("a sum that may be empty")
                total = self._summed(index, n, body)
                return arrays.scalar(total if node.function == "sum" else total * n.inverse())
            case Indexed("prod", index, Number(Fraction(numerator=1, denominator=1)), highest, Name(inner)):
                if inner == index:
                    return arrays.scalar(self.book.factorial(self._number(highest)))
        return super().evaluate(node)

    def _number(self, node: Node) -> Growth:
        return self.book.number(self.evaluate(node).scalar)

    def _summed(self, index: str, n: Growth, body: Node) -> Growth:
        """The sum of the body for index = 1, ..., n."""
        if isinstance(body, Binary) and body.operator == "+":
            sides = [self._summed(index, n, side) for side in (body.left, body.right)]
            if any(side.bounds.sign <= 0 and side.bounds.high is not None for side in sides):
                raise Undecided("a sum of terms that may cancel")
            return sides[0] + sides[1]
        factor, power, logs, base = self.book.number(1), Fraction(0), 0, Fraction(1)
        for part, e in _factors_of(body, 1):
            match part:
                case _ if index not in names(part):
                    value = self._number(part)
                    factor = factor * (value if e > 0 else value.inverse())
                case Call("log", (inner,)) if e > 0 and inner == Name(index):
                    logs += 1
                case Binary("^", Number(value), Name(name)) if name == index and value > 0:
                    base *= value**e
                case Binary("^", inner, Number(value)) if abs(value) <= EXPONENT:
                    self._shifted(index, inner)
                    power += e * value
                case Call("sqrt", (inner,)) if isinstance(inner, Node):
                    self._shifted(index, inner)
                    power += Fraction(e, 2)
                case _:
                    self._shifted(index, part)
                    power += e
        if base == 1:
            return factor * self.book.harmonic(n, power, logs)
        if base < 1 and not logs:
            return factor  # the sum converges, and its first term is above 0
        if base < 1:
            raise Undecided("a sum of logarithms that converges")
        last = self.book.power(self.book.number(base), n) * self.book.power(n, power)
        return factor * (last * self.book.power(self.book.logarithm(n), Fraction(logs)) if logs else last)

    def _shifted(self, index: str, node: Node) -> None:
        """Refuses what is not the index, or a number above it: up to a constant these are the same."""
        match node:
            case Name(name) if name == index:
                return
            case Binary("+", Name(name), Number(value)) if name == index and value >= 0:
                return
            case Binary("+", Number(value), Name(name)) if name == index and value >= 0:
                return
        raise Undecided("a sum over an index that is not decided")


def _factors_of(node: Node, exponent: int) -> Iterator[tuple[Node, int]]:
    """The factors of a product, with 1 or -1."""
    match node:
        case Binary("*", left, right):
            yield from _factors_of(left, exponent)
            yield from _factors_of(right, exponent)
        case Binary("/", left, right):
            yield from _factors_of(left, exponent)
            yield from _factors_of(right, -exponent)
        case Negative(operand):
            yield Number(Fraction(-1)), 1
            yield from _factors_of(operand, exponent)
        case _:
            yield node, exponent


@dataclass(frozen=True)
class Statement:
    """A bound as it is read in one book."""

    book: Book
    quantity: Growth
    bound: Growth

    @classmethod
    def read(cls, claim: Claim, ray: Ray | None = None) -> "Statement":
        """The claim over free sizes, or along a ray."""
        assert isinstance(claim.relation, Bounded)
        assert not isinstance(claim.relation.quantity, str)
        book = Book(claim, ray is not None)
        values, still = {}, {}
        for size in claim.sizes:
            if size.equation is None:
                factor, move = ray.moves[size.name] if ray else (1, 1)
                still |= {size.name: factor} if not move else {}
                power = (("t" if ray else size.name, Fraction(move)),) if move else ()
                values[size.name] = arrays.scalar(book.summed({power: Fraction(factor)}))
        scalars = book.scalars()
        for _ in claim.sizes:
            for size in claim.sizes:
                if size.equation is not None and size.name not in values:
                    try:
                        values[size.name] = OrderReader(values, still, scalars, book=book).evaluate(size.equation)
                    except Undecided:
                        continue
        reader = OrderReader(values, still, scalars, book=book)
        for size in claim.sizes:
            if size.equation is not None:
                book.assume(reader.evaluate(size.equation).scalar, ">=", book.number(1))
        for chain in claim.assumptions:
            _assume(book, reader, chain)
        sides = (claim.relation.quantity, claim.relation.bound)
        return cls(book, *(reader.evaluate(side).scalar for side in sides))

    def ways(self, order: str) -> list[tuple[LogBounds, LogBounds]]:
        """What must stay below what."""
        quantity, bound = self.quantity.bounds, self.bound.bounds
        pairs = [(quantity, bound)] if order in ("O", "Theta") else []
        return pairs + ([(bound, quantity)] if order in ("Omega", "Theta") else [])


def _assume(book: Book, reader: Reader, chain: Chain) -> None:
    """Assumptions over sizes; one that cannot be read is left out, which proofs may and rays may not."""
    try:
        sides = [reader.evaluate(term).scalar for term in chain.terms]
    except (Undecided, ArithmeticError, IndexError):
        if book.ray:
            raise
        return
    for left, comparison, right in zip(sides, chain.comparisons, sides[1:], strict=False):
        if book.ray and not _true_at_last(left, comparison, right):
            raise Undecided("the assumption fails along the ray")
        if not book.ray:
            book.assume(left, comparison, right)


def _true_at_last(left: Growth, comparison: Comparison, right: Growth) -> bool:
    """Whether a comparison is true from some t on."""
    try:
        difference = left - right
    except Undecided:
        return False
    seen = difference.bounds
    return (seen.high is None or seen.low is not None) and COMPARED[comparison](
        0 if seen.high is None else seen.sign, 0
    )


def decide(claim: Claim) -> Finding | None:
    """An order of an expression over sizes: proved for all of them, or refuted by a ray or by a point."""
    relation = claim.relation
    if not isinstance(relation, Bounded) or isinstance(relation.quantity, str):
        return None
    ends = time.process_time() + BUDGET_SHARE * claim.budget
    try:
        if proved(claim):
            return Finding("holds", "proved", "maxima of linear terms in the logarithms of the sizes", ENGINE)
    except Undecided as reason:
        why = str(reason)
    else:
        why = "neither proved nor refuted along a ray"
    ray = escaping(claim, ends)
    if ray is not None:
        detail = f"{ray.blamed} escapes along {ray.text()}"
        return Finding("refuted", "exact witness", detail, ENGINE, ray.witness())
    raise Undecided(why)


def proved(claim: Claim, cases: int = CASES) -> bool:
    """Whether the bound holds at all sizes; N = 1, where log(N) is 0, may be a case of its own."""
    stated = Statement.read(claim)
    assert isinstance(claim.relation, Bounded)
    try:
        if _bounded(claim, stated):
            return True
    except Undecided:
        if not cases or not stated.book.double:
            raise
    one = next((name for name in stated.book.double if not stated.book.above_one(name)), None)
    if one is None or not cases:
        return False
    above = Chain((Name(one), Number(Fraction(2))), (">=",))
    larger = replace(claim, assumptions=(*claim.assumptions, above))
    return proved(larger, cases - 1) and proved(_with_one(claim, one), cases - 1)


def _with_one(claim: Claim, name: str) -> Claim:
    """The claim at N = 1."""

    def put(node: Node) -> Node:
        return Number(Fraction(1)) if node == Name(name) else rebuilt(node, put)

    sizes = tuple(
        Size(size.name, None if size.equation is None else put(size.equation))
        for size in claim.sizes
        if size.name != name
    )
    given = [size.equation for size in claim.sizes if size.name == name and size.equation is not None]
    equal = tuple(Chain((put(node), Number(Fraction(1))), ("==",)) for node in given)
    assumptions = (*(over(chain, put) for chain in claim.assumptions), *equal)
    return replace(claim, sizes=sizes, relation=over(claim.relation, put), assumptions=assumptions)


def _bounded(claim: Claim, stated: Statement) -> bool:
    """Whether nothing that is known lets the bound fail."""
    assert isinstance(claim.relation, Bounded)
    for small, large in stated.ways(claim.relation.order):
        if small.high is None:
            continue
        if large.low is None:
            raise Undecided("a bound that may be 0")
        if not stated.book.excluded(small.high > large.low):
            return False
    return True


def escaping(claim: Claim, ends: float) -> Ray | None:
    """The first ray, small ones first, along which the bound fails."""
    assert isinstance(claim.relation, Bounded)
    for ray in rays(claim):
        if time.process_time() > ends:
            return None
        try:
            stated = Statement.read(claim, ray)
            for small, large in stated.ways(claim.relation.order):
                if small.low is None:
                    continue
                if large.high is None or stated.book.excluded(small.low <= large.high):
                    mine = small == stated.quantity.bounds and claim.relation.order != "Omega"
                    blamed = claim.relation.quantity if mine else f"{claim.relation.bound} of the bound"
                    return replace(ray, blamed=str(blamed))
        except (Undecided, ArithmeticError, IndexError):
            continue
    return None


def rays(claim: Claim) -> Iterator[Ray]:
    """Small points, then whole rays: few that move, slowly, first; constant factors last."""
    free = [size.name for size in claim.sizes if size.equation is None]
    most = SMALL[min(len(free), len(SMALL)) - 1]
    still = sorted(product(range(1, most + 1), repeat=len(free)), key=lambda at: (sum(at), at))
    for at in still[:POINTS]:
        yield Ray({name: (value, 0) for name, value in zip(free, at, strict=True)})
    moves = sorted(product(MOVES, repeat=len(free)), key=lambda at: (sum(at), max(at, default=0), [-m for m in at]))
    factors = sorted(product(FACTORS, repeat=len(free)), key=sum)
    for scale, move in islice(product(factors, moves), RAYS):
        if any(move):
            yield Ray(dict(zip(free, zip(scale, move, strict=True), strict=True)))
