"""Ratios of polynomials (python-flint) over atoms, with the relations of the atoms: the arithmetic of exact forms."""

import time
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from fractions import Fraction
from math import comb, factorial
from typing import Any

from flint import Ordering, fmpq, fmpq_mpoly_ctx, fmpz

ATOMS = 40
TERMS = 5_000  # of a polynomial
BITS = 20_000  # of a coefficient
ROOT, PARTS = 12, 60  # atoms are twelfth roots, and exponentials of a sixtieth
CONTEXT = fmpq_mpoly_ctx.get([f"x{place}" for place in range(ATOMS)], Ordering.lex)
GENERATORS = CONTEXT.gens()
ONE, ZERO = CONTEXT.constant(1), CONTEXT.constant(0)
Poly = Any  # fmpq_mpoly has no types
COSINES = {  # cos(pi*k/60), as (rational, radicand) sums
    0: ((1, 1),),
    10: ((Fraction(1, 2), 3),),
    12: ((Fraction(1, 4), 1), (Fraction(1, 4), 5)),
    15: ((Fraction(1, 2), 2),),
    20: ((Fraction(1, 2), 1),),
    24: ((Fraction(-1, 4), 1), (Fraction(1, 4), 5)),
    30: (),
    5: ((Fraction(1, 4), 6), (Fraction(1, 4), 2)),
    25: ((Fraction(1, 4), 6), (Fraction(-1, 4), 2)),
}


class Unclear(Exception):
    """An expression has no exact form here; the text is the reason."""


@dataclass(frozen=True)
class Ratio:
    """top/bottom."""

    top: Poly
    bottom: Poly


@dataclass(frozen=True)
class Atom:
    """What a generator stands for."""

    kind: str
    text: str = ""
    inside: tuple[Ratio, ...] = ()


class Arithmetic:
    """The exact forms of one comparison: both sides share the atoms.

    positive and whole: names that are above 0, and integers. base: what log means ("" if it is not said).
    """

    def __init__(
        self, positive: Collection[str] = (), whole: Collection[str] = (), base: str = "", seconds: float = 0.5
    ) -> None:
        self.positive, self.whole, self.base = set(positive), set(whole), base
        self.atoms: list[Atom] = []
        self.relations: dict[int, tuple[int, Poly]] = {}  # atom -> (power, what the power is)
        self.bound: dict[str, str] = {}  # index of a sum -> its label
        self.unsigned = False  # whether |p| is taken as p
        self.until = time.thread_time() + seconds

    def same(self, one: Ratio, other: Ratio) -> bool:
        """Whether two forms are equal by the relations."""
        return self.reduced(one.top * other.bottom - other.top * one.bottom) == 0

    def ratio(self, top: Poly, bottom: Poly = ONE) -> Ratio:
        """A ratio in lowest terms."""
        top, bottom = self.reduced(top), self.reduced(bottom)
        if bottom == 0:
            raise Unclear("a division by 0")
        if not bottom.is_constant():
            common = top.gcd(bottom)
            if not common.is_constant():
                top, bottom = top / common, bottom / common
        if bottom.is_constant():
            return Ratio(top / bottom.leading_coefficient(), ONE)
        lead = bottom.leading_coefficient()
        return Ratio(top / lead, bottom / lead)

    def add(self, one: Ratio, other: Ratio) -> Ratio:
        """one + other."""
        _few(one.top, other.bottom)
        _few(other.top, one.bottom)
        return self.ratio(one.top * other.bottom + other.top * one.bottom, one.bottom * other.bottom)

    def times(self, one: Ratio, other: Ratio) -> Ratio:
        """one * other."""
        _few(one.top, other.top)
        _few(one.bottom, other.bottom)
        return self.ratio(one.top * other.top, one.bottom * other.bottom)

    def over(self, one: Ratio, other: Ratio) -> Ratio:
        """one / other."""
        return self.times(one, self.ratio(other.bottom, other.top))

    def whole_power(self, base: Ratio, exponent: int) -> Ratio:
        """base^exponent."""
        if base.top == 0 and exponent == 0:
            raise Unclear("0 to the power 0")
        if exponent < 0:
            base, exponent = self.ratio(base.bottom, base.top), -exponent
        for poly in (base.top, base.bottom):
            terms = len(poly)
            if terms > 1 and (exponent > 200 or comb(terms + exponent - 1, exponent) > TERMS):
                raise Unclear("a power with too many terms")
            if exponent * max((_bits(value) for value in poly.coeffs()), default=1) > BITS:
                raise Unclear("a number that is too large")
        return self.ratio(base.top**exponent, base.bottom**exponent)

    def reduced(self, poly: Poly) -> Poly:
        """A polynomial with the relations of its atoms applied."""
        for _ in range(20):
            degrees = poly.degrees()
            due = [
                place
                for place, (power, _) in self.relations.items()
                if place < len(degrees) and degrees[place] >= power
            ]
            if not due:
                return poly
            place = max(due)  # later atoms may stand for earlier ones
            power, value = self.relations[place]
            found = ZERO
            for exponents, coefficient in poly.terms():
                times, left = divmod(int(exponents[place]), power)
                if times * max(len(value), 1) > 400:
                    raise Unclear("a power with too many terms")
                rest = CONTEXT.term(coeff=coefficient, exp_vec=(*exponents[:place], left, *exponents[place + 1 :]))
                found += rest * value**times if times else rest
            poly = found
            if len(poly) > TERMS:
                raise Unclear("too many terms")
        raise Unclear("relations that do not end")

    def atom(self, kind: str, text: str = "", inside: tuple[Ratio, ...] = ()) -> int:
        """The place of an atom, made if it is new."""
        for place, other in enumerate(self.atoms):
            if (other.kind, other.text, len(other.inside)) == (kind, text, len(inside)) and all(
                self.same(one, two) for one, two in zip(inside, other.inside, strict=True)
            ):
                return place
        if len(self.atoms) >= ATOMS:
            raise Unclear(f"more than {ATOMS} different parts")
        self.atoms.append(Atom(kind, text, inside))
        return len(self.atoms) - 1

    def opaque(self, kind: str, text: str = "", inside: tuple[Ratio, ...] = ()) -> Ratio:
        """An atom as a value."""
        return Ratio(GENERATORS[self.atom(kind, text, inside)], ONE)

    def term(self, coefficient: Any, exponents: tuple[int, ...]) -> Poly:
        """A monomial in the atoms."""
        return CONTEXT.term(coeff=coefficient, exp_vec=exponents)

    def constant(self, value: Fraction | int) -> Ratio:
        """A fraction."""
        value = Fraction(value)
        return Ratio(CONTEXT.constant(fmpq(value.numerator, value.denominator)), ONE)

    def imaginary(self) -> Ratio:
        """The imaginary unit."""
        place = self.atom("i")
        self.relations[place] = (2, -ONE)
        return Ratio(GENERATORS[place], ONE)

    def is_positive(self, poly: Poly) -> bool:
        """Whether a polynomial is surely above 0 wherever it is defined."""
        if any(value <= 0 for value in poly.coeffs()):
            return False
        degrees = poly.degrees()
        odd = [
            place
            for place in range(len(self.atoms))
            if degrees[place] and any(exponents[place] % 2 for exponents in poly.monoms())
        ]
        if all(self._positive_atom(self.atoms[place]) for place in odd):
            some = poly.monoms()
            sure = [m for m in some if all(self._positive_atom(self.atoms[p]) for p in range(len(self.atoms)) if m[p])]
            return bool(sure) or not some
        return False

    def _positive_atom(self, atom: Atom) -> bool:
        match atom.kind:
            case "name":
                return atom.text in self.positive
            case "pi" | "root" | "factorial":
                return True
            case "exp":
                return not self._has_i(atom.inside[0].top)
            case "log":
                return atom.inside[0].top.is_constant() and atom.inside[0].top.leading_coefficient() > 1
        return False

    def _has_i(self, poly: Poly) -> bool:
        degrees = poly.degrees()
        return any(atom.kind == "i" and degrees[place] for place, atom in enumerate(self.atoms))

    def negative(self, value: Ratio) -> Ratio:
        """-value."""
        return Ratio(-value.top, value.bottom)

    def power(self, base: Ratio, exponent: Ratio) -> Ratio:
        """base^exponent."""
        fixed = rational(exponent)
        if fixed is not None and fixed.denominator == 1:
            return self.whole_power(base, int(fixed))
        if fixed is not None:
            return self.root(base, fixed)
        sign, factors = self.factors(base)
        found = self.constant(1)
        if sign < 0:
            found = self.parity(exponent)
        whole = self.is_whole(exponent)
        for poly, times in factors:
            if times % 2 == 0 and not whole and not self.is_positive(poly):
                raise Unclear("the power of a square")
            found = self.times(found, self.exp(self.times(exponent, self.log_of(poly, times))))
        return found

    def is_whole(self, value: Ratio) -> bool:
        """Whether a value is surely an integer: a polynomial in integers."""
        if value.bottom != ONE or any(coefficient.denominator != 1 for coefficient in value.top.coeffs()):
            return False
        degrees = value.top.degrees()
        return all(
            not degrees[place]
            or atom.kind in ("bound", "floor", "ceil")
            or (atom.kind == "name" and atom.text in self.whole)
            for place, atom in enumerate(self.atoms)
        )

    def parity(self, exponent: Ratio) -> Ratio:
        """(-1)^exponent for an integer exponent."""
        if not self.is_whole(exponent):
            raise Unclear("a power of a negative number")
        found = self.constant(1)
        for exponents, coefficient in exponent.top.terms():
            if int(coefficient.numerator) % 2:
                if not any(exponents):
                    found = self.negative(found)
                    continue
                monomial = Ratio(CONTEXT.term(coeff=1, exp_vec=exponents), ONE)
                place = self.atom("sign", "", (monomial,))
                self.relations[place] = (2, ONE)
                found = self.times(found, Ratio(GENERATORS[place], ONE))
        return found

    def factors(self, value: Ratio) -> tuple[int, list[tuple[Poly, int]]]:
        """The sign, and the factors with their powers; numbers as primes."""
        if value.top == 0:
            raise Unclear("a power or logarithm of 0")
        found: list[tuple[Poly, int]] = []
        sign = 1
        for poly, side in ((value.top, 1), (value.bottom, -1)):
            if len(poly) > 60 or max(poly.total_degree(), 0) > 2_000:
                raise Unclear("a polynomial that is too large to factor")
            if len(poly) == 1:
                coefficient = poly.leading_coefficient()
                parts = [(GENERATORS[place], power) for place, power in enumerate(poly.monoms()[0]) if power]
            else:
                coefficient, parts = poly.factor()
            sign *= -1 if coefficient < 0 else 1
            for number, way in ((coefficient.numerator, 1), (coefficient.denominator, -1)):
                found += [(CONTEXT.constant(prime), way * side * times) for prime, times in _primes(abs(number))]
            for factor, power in parts:
                times = int(power)
                if self.is_positive(-factor):
                    factor, sign = -factor, sign * (-1) ** times
                found.append((factor, side * times))
        return sign, found

    def log_of(self, poly: Poly, times: int = 1) -> Ratio:
        """times * log|poly| of a factor."""
        if poly == 1:
            return self.constant(0)
        if len(poly) == 1 and poly.total_degree() == 1 and poly.leading_coefficient() == 1:
            place = poly.degrees().index(1)
            if self.atoms[place].kind == "exp":
                if not self._has_i(self.atoms[place].inside[0].top):
                    return self.times(self.atoms[place].inside[0], self.constant(Fraction(times, PARTS)))
            elif self.atoms[place].kind == "root":
                inner = self.atoms[place].inside[0].top
                return self.times(self.log_of(inner), self.constant(Fraction(times, ROOT)))
        return self.times(self.opaque("log", "", (Ratio(poly, ONE),)), self.constant(times))

    def log(self, value: Ratio) -> Ratio:
        """The natural logarithm."""
        sign, factors = self.factors(value)
        if sign < 0 and rational(value) is not None:
            raise Unclear("a logarithm of a negative number")
        found = self.constant(0)
        for poly, times in factors:
            found = self.add(found, self.log_of(poly, times))
        return found

    def root(self, base: Ratio, exponent: Fraction) -> Ratio:
        """base^exponent for a fraction; an odd root of a negative number is negative."""
        if base.top == 0:
            if exponent < 0:
                raise Unclear("a division by 0")
            return base
        if ROOT % exponent.denominator:
            return self.opaque("power", str(exponent), (base,))
        sign, factors = self.factors(base)
        found = self.constant(1)
        even = exponent.denominator % 2 == 0
        loose: list[tuple[Poly, int]] = []  # factors of odd power whose sign is not known
        for poly, times in factors:
            raised = times * exponent
            if poly.is_constant() or self.is_positive(poly) or not even:
                found = self.times(found, self._raised(poly, raised, even))
            elif times % 2 == 0:
                if raised.denominator != 1:
                    raise Unclear("a root of a square")
                found = self.times(found, self.whole_power(self.absolute(Ratio(poly, ONE)), int(raised)))
            else:
                loose.append((poly, times))
        if loose:
            inner = CONTEXT.constant(sign)
            for poly, times in loose:  # p^3 = p * p^2, and a root of p^2 is |p|
                inner *= poly
                left = Fraction(times - 1) * exponent
                if left.denominator != 1:
                    raise Unclear("a root of a square")
                if left:
                    found = self.times(found, self.whole_power(self.absolute(Ratio(poly, ONE)), int(left)))
            return self.times(found, self._raised(inner, exponent, even))
        if sign > 0:
            return found
        if not even:
            return found if exponent.numerator % 2 == 0 else self.negative(found)
        if exponent.denominator == 2 and rational(base) is not None:
            return self.times(found, self.whole_power(self.imaginary(), exponent.numerator))
        raise Unclear("a root of a negative number")

    def _raised(self, poly: Poly, exponent: Fraction, even: bool) -> Ratio:
        """poly^exponent, poly not below 0 unless the root is odd."""
        if exponent.denominator == 1:
            return self.whole_power(Ratio(poly, ONE), int(exponent))
        if len(poly) == 1 and poly.total_degree() == 1 and poly.leading_coefficient() == 1:
            atom = self.atoms[poly.degrees().index(1)]
            if atom.kind == "exp":
                return self.exp(self.times(atom.inside[0], self.constant(exponent / PARTS)))
            if atom.kind == "root":
                inner = exponent / ROOT
                if ROOT % inner.denominator == 0:
                    return self._raised(atom.inside[0].top, inner, True)
                return self.opaque("power", str(exponent), (Ratio(poly, ONE),))
        if not even and not self.is_positive(poly) and not poly.is_constant():
            return self.opaque("power", str(exponent), (Ratio(poly, ONE),))
        place = self.atom("root", "", (Ratio(poly, ONE),))
        self.relations[place] = (ROOT, poly)
        return self.whole_power(Ratio(GENERATORS[place], ONE), int(exponent * ROOT))

    def absolute(self, value: Ratio) -> Ratio:
        """|value|."""
        fixed = rational(value)
        if fixed is not None:
            return self.constant(abs(fixed))
        if self.unsigned:
            return value
        if self._has_i(value.top) or self._has_i(value.bottom):
            square = self.times(value, self.conjugate(value))
            if self._has_i(square.top) or self._has_i(square.bottom):
                raise Unclear("the absolute value of a complex number")
            return self.root(square, Fraction(1, 2))
        _, factors = self.factors(value)
        found = self.constant(1)
        for poly, times in factors:
            if times % 2 == 0 or poly.is_constant() or self.is_positive(poly):
                found = self.times(found, self.whole_power(Ratio(poly, ONE), times))
                continue
            lead = poly.leading_coefficient()
            place = self.atom("abs", "", (Ratio(poly if lead > 0 else -poly, ONE),))
            self.relations[place] = (2, poly**2)
            found = self.times(found, self.whole_power(Ratio(GENERATORS[place], ONE), times))
        return found

    def conjugate(self, value: Ratio) -> Ratio:
        """The complex conjugate; names are real."""
        place = self.atom("i")
        for poly in (value.top, value.bottom):
            degrees = poly.degrees()
            if any(degrees[other] and other != place and self._depends(other, place) for other in range(ATOMS)):
                raise Unclear("the conjugate of a function")
        sides = [
            sum(
                (self.term(-each if exponents[place] % 2 else each, exponents) for exponents, each in poly.terms()),
                ZERO,
            )
            for poly in (self.reduced(value.top), self.reduced(value.bottom))
        ]
        return self.ratio(*sides)

    def exp(self, value: Ratio) -> Ratio:
        """The exponential: a product over the terms of the exponent."""
        found = self.constant(1)
        if len(value.top) > 30:
            raise Unclear("an exponent with too many terms")
        for exponents, coefficient in value.top.terms():
            factor = Fraction(int(coefficient.numerator), int(coefficient.denominator))
            part = self.ratio(CONTEXT.term(coeff=1, exp_vec=exponents), value.bottom)
            found = self.times(found, self._exp_term(factor, part))
        return found

    def _exp_term(self, factor: Fraction, part: Ratio) -> Ratio:
        top, bottom = part.top, part.bottom
        lead = top.leading_coefficient() / bottom.leading_coefficient()
        factor *= Fraction(int(lead.numerator), int(lead.denominator))
        part = Ratio(top / top.leading_coefficient(), bottom / bottom.leading_coefficient())
        used = [place for place, degree in enumerate(part.top.degrees()) if degree]
        kinds = sorted(self.atoms[place].kind for place in used)
        if part.bottom == ONE and kinds == ["log"] and part.top.total_degree() == 1:
            inner = self.atoms[used[0]].inside[0]
            if factor.denominator == 1 or inner.top.is_constant() or self.is_positive(inner.top):
                return self.power(inner, self.constant(factor))
        if (
            part.bottom == ONE
            and kinds == ["i", "pi"]
            and part.top.total_degree() == 2
            and PARTS % factor.denominator == 0
        ):
            turn = int(factor * PARTS) % (2 * PARTS)
            real, imaginary = self.cosine(turn), self.cosine((turn - PARTS // 2) % (2 * PARTS))
            if real is not None and imaginary is not None:
                return self.add(real, self.times(self.imaginary(), imaginary))
        if PARTS % factor.denominator:
            return self.opaque("exp_of", str(factor), (part,))
        place = self.atom("exp", "", (part,))
        return self.whole_power(Ratio(GENERATORS[place], ONE), int(factor * PARTS))

    def cosine(self, turn: int) -> Ratio | None:
        """cos(pi*turn/60) where it has a simple root."""
        turn = min(turn % 120, 120 - turn % 120)
        sign = 1
        if turn > 30:
            turn, sign = 60 - turn, -1
        if turn not in COSINES:
            return None
        found = self.constant(0)
        for factor, radicand in COSINES[turn]:
            found = self.add(
                found, self.times(self.constant(sign * factor), self.root(self.constant(radicand), Fraction(1, 2)))
            )
        return found

    def factorial(self, value: Ratio) -> Ratio:
        """value!, with a constant shift taken out: (n+2)! = (n+2)(n+1)n!."""
        fixed = rational(value)
        if fixed is not None:
            if fixed.denominator != 1 or not 0 <= fixed <= 1_000:
                raise Unclear("a factorial of a large number, or of no whole number")
            return self.constant(factorial(int(fixed)))
        if value.bottom != ONE:
            return self.opaque("factorial", "", (value,))
        shift = value.top.coefficient(len(value.top) - 1) if not any(value.top.monoms()[-1]) else fmpq(0)
        steps = int(shift.numerator // shift.denominator)
        if abs(steps) > 20:
            return self.opaque("factorial", "", (value,))
        rest = Ratio(value.top - steps, ONE)
        found = self.opaque("factorial", "", (rest,))
        for step in range(1, steps + 1):
            found = self.times(found, self.add(rest, self.constant(step)))
        for step in range(steps, 0):
            found = self.over(found, self.add(rest, self.constant(step + 1)))
        return found

    def choose(self, above: Ratio, below: Ratio) -> Ratio:
        """The binomial coefficient."""
        size, count = rational(above), rational(below)
        if size is not None and count is not None:
            if size.denominator != 1 or count.denominator != 1 or not 0 <= count <= size <= 1_000:
                raise Unclear("a binomial coefficient out of range")
            return self.constant(comb(int(size), int(count)))
        if count is not None and count.denominator == 1 and 0 <= count <= 12:
            found = self.constant(Fraction(1, factorial(int(count))))
            for step in range(int(count)):
                found = self.times(found, self.add(above, self.constant(-step)))
            return found
        rest = self.add(above, self.negative(below))
        left = rational(rest)
        if left is not None and left.denominator == 1 and 0 <= left <= 12:
            return self.choose(above, rest)
        return self.over(self.factorial(above), self.times(self.factorial(below), self.factorial(rest)))

    def rounded(self, value: Ratio) -> Ratio:
        """floor(value), with what is surely whole taken out; ceil(x) is -floor(-x)."""
        if value.bottom != ONE:
            return self.opaque("floor", "", (value,))
        whole = ZERO
        for exponents, coefficient in value.top.terms():
            if self.is_whole(Ratio(self.term(1, exponents), ONE)):
                whole += self.term(int(coefficient.numerator // coefficient.denominator), exponents)
        rest = value.top - whole
        return (
            Ratio(whole, ONE)
            if rest == 0
            else self.add(Ratio(whole, ONE), self.opaque("floor", "", (Ratio(rest, ONE),)))
        )

    def _whole_quotient(self, value: Ratio, *, up: bool) -> Ratio | None:
        """floor(p/q) or ceil(p/q) of integers with q > 0, with the multiples of q in p taken out.

        ceil(p/q) = floor((p + q - 1)/q). None if p and q are not known to be such.
        """
        scale = fmpz(1)
        for poly in (value.top, value.bottom):
            for each in poly.coeffs():
                scale = scale.lcm(each.denominator)
        top, bottom = value.top * int(scale), value.bottom * int(scale)
        content = fmpz(0)
        for poly in (top, bottom):
            for each in poly.coeffs():
                content = content.gcd(each.numerator)
        top, bottom = top / int(content), bottom / int(content)
        if not (self.is_whole(Ratio(top, ONE)) and self.is_whole(Ratio(bottom, ONE)) and self.is_positive(bottom)):
            return None
        top = top + bottom - 1 if up else top
        lead, most = bottom.monoms()[0], int(bottom.leading_coefficient().numerator)
        whole = ZERO
        for exponents, coefficient in top.terms():
            if all(mine >= its for mine, its in zip(exponents, lead, strict=True)):
                rest = tuple(mine - its for mine, its in zip(exponents, lead, strict=True))
                whole += self.term(int(coefficient.numerator) // most, rest)
        top -= whole * bottom
        if top == 0:
            return Ratio(whole, ONE)
        if top.is_constant() and bottom.is_constant():
            return Ratio(whole + int(top.leading_coefficient().numerator) // most, ONE)
        if bottom == 2 and not any(top.monoms()[-1]):  # floor((p + 1)/2) = p - floor(p/2)
            top = top - 1
            halved = self.opaque("floor", "", (self.ratio(top, bottom),))
            return self.add(Ratio(whole + top, ONE), self.negative(halved))
        return self.add(Ratio(whole, ONE), self.opaque("floor", "", (self.ratio(top, bottom),)))

    def _depends(self, atom: int, place: int) -> bool:
        inside = self.atoms[atom].inside if atom < len(self.atoms) else ()
        return atom == place or any(self.uses(part.top, place) or self.uses(part.bottom, place) for part in inside)

    def uses(self, poly: Poly, place: int) -> bool:
        """Whether an atom occurs, also inside other atoms."""
        degrees = poly.degrees()
        return any(degrees[other] and self._depends(other, place) for other in range(len(self.atoms)))

    def _sine(self, value: Ratio, hyperbolic: bool) -> tuple[Ratio, Ratio]:
        """The sine and cosine, from exponentials."""
        turned = value if hyperbolic else self.times(value, self.imaginary())
        up, down = self.exp(turned), self.exp(self.negative(turned))
        half = self.constant(Fraction(1, 2))
        sine = self.times(half, self.add(up, self.negative(down)))
        if not hyperbolic:
            sine = self.over(sine, self.imaginary())
        return sine, self.times(half, self.add(up, down))

    def _ratio_of_sines(self, value: Ratio, which: str) -> Ratio:
        sine, cosine = self._sine(value, which == "tanh")
        above = {"cot": cosine, "sec": self.constant(1), "csc": self.constant(1)}.get(which, sine)
        return self.over(above, sine if which in ("cot", "csc") else cosine)

    def _sigmoid(self, value: Ratio) -> Ratio:
        return self.over(self.constant(1), self.add(self.constant(1), self.exp(self.negative(value))))

    def _relu(self, value: Ratio) -> Ratio:
        return self.times(self.constant(Fraction(1, 2)), self.add(value, self.absolute(value)))

    def _arc(self, value: Ratio, which: str) -> Ratio:
        """An angle that is a simple part of pi, or an atom."""
        for turn in range(-30, 31, 5) if which != "arccos" else range(0, 61, 5):
            sine, cosine = self.cosine((turn - 30) % 120), self.cosine(turn % 120)
            known = sine if which == "arcsin" else cosine
            if which == "arctan" and sine is not None and cosine is not None and cosine.top != 0:
                known = self.over(sine, cosine)
            elif which == "arctan":
                continue
            if known is not None and self.same(value, known):
                return self.times(self.opaque("pi"), self.constant(Fraction(turn, PARTS)))
        return self.opaque(which, "", (value,))


def rational(value: Ratio) -> Fraction | None:
    """The value of a form without atoms."""
    if not value.top.is_constant() or not value.bottom.is_constant():
        return None
    if value.top == 0:
        return Fraction(0)
    found = value.top.leading_coefficient() / value.bottom.leading_coefficient()
    return Fraction(int(found.numerator), int(found.denominator))


def _few(one: Poly, other: Poly) -> None:
    if len(one) * len(other) > 20 * TERMS:
        raise Unclear("too many terms")


def _bits(value: Any) -> int:
    return max(abs(int(value.numerator)).bit_length(), abs(int(value.denominator)).bit_length()) - 1


def _primes(value: Any) -> Iterable[tuple[int, int]]:
    """The primes of a number; a large one is left whole, without small factors."""
    value = int(value)
    if value == 1:
        return []
    if value.bit_length() <= 80:
        return [(int(prime), int(times)) for prime, times in fmpz(value).factor()]
    found = []
    for prime in (2, 3, 5, 7, 11, 13):
        times = 0
        while value % prime == 0:
            value, times = value // prime, times + 1
        if times:
            found.append((prime, times))
    return [*found, (value, 1)] if value > 1 else found
