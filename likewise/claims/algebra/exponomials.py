"""One normal form for every scalar of a claim: a finite sum of terms  c · Π atom^e · exp(A),  c rational, A such a sum.

Equal sides have equal normal forms whenever they are polynomials, exponentials, sines, cosines, roots of numbers and of
sizes, or quotients of these: sin and cos are exponentials of i, so angle addition is the product of two terms.

    x, D = variable("x"), size("D")
    exp(x / sqrt(D)) * exp(-x / sqrt(D)) == 1         sqrt, log, sin, cos, max, abs and substitute are in `elementary`
    (a - b).is_zero()                                 denominators cleared
    for (powers, exponent), coefficient in form.terms.items():
        powers is ((atom, e), ...) and of_key(exponent) the form inside exp

Everything is exact; every product is bounded before it is expanded (`Undecided`).
"""

from collections.abc import Mapping
from fractions import Fraction
from functools import cached_property
from math import floor, gcd, lcm
from typing import Literal, NamedTuple

from likewise.claims.language.limits import BITS, DEGREE, MONOMIALS
from likewise.claims.verdict import Undecided


class Atom(NamedTuple):
    """What is not expanded further: x, q[1], dot(k, q), the size D, the root of a prime, i, log(...), max(...).

    A tuple, so that terms are ordered and hashed as they stand. `parts` are the keys of the forms inside.
    """

    kind: Literal["variable", "size", "prime", "pi", "i", "power", "function", "invariant"]
    name: str = ""
    index: tuple[int, ...] = ()  # of a coordinate, counted from 1; of a prime, the prime
    names: tuple[str, ...] = ()  # of the vectors of an invariant, in order
    parts: tuple["Key", ...] = ()
    positive: bool = False


class PositiveName(str):
    """The name of a vector whose entries are all positive, such as e^x entry by entry; it equals the plain name."""

    __slots__ = ()


Key = tuple  # a form as a sorted tuple: ((powers, exponent key), coefficient), ...
Term = tuple  # (powers, exponent key)
ONE: Term = ((), ())
IMAGINARY = Atom("i")
PI = Atom("pi", "pi", positive=True)
REDUCED = {"prime", "i", "power"}  # atoms whose powers become numbers or sums again


class Form:
    """An exact scalar in normal form; immutable. Compare with `==` (same normal form) or `(a - b).is_zero()`."""

    def __init__(self, terms: Mapping[Term, Fraction]) -> None:
        self.terms = {term: coefficient for term, coefficient in terms.items() if coefficient}

    @cached_property
    def key(self) -> Key:
        """The form as an ordered, hashable tuple."""
        return tuple(sorted(self.terms.items()))

    def __hash__(self) -> int:
        return hash(self.key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Form | Fraction | int) and self.terms == form(other).terms

    def __repr__(self) -> str:
        return f"Form({self.key})"

    def __add__(self, other: "Scalar") -> "Form":
        total = dict(self.terms)
        for term, coefficient in form(other).terms.items():
            total[term] = total.get(term, 0) + coefficient
        return Form(total)

    def __neg__(self) -> "Form":
        return Form({term: -coefficient for term, coefficient in self.terms.items()})

    def __sub__(self, other: "Scalar") -> "Form":
        return self + -form(other)

    def __rsub__(self, other: "Scalar") -> "Form":
        return form(other) - self

    def __mul__(self, other: "Scalar") -> "Form":
        other = form(other)
        if len(self.terms) * len(other.terms) > MONOMIALS:
            raise Undecided(f"more than {MONOMIALS} monomials")
        if min(len(self.terms), len(other.terms)) > 1 and self.degree + other.degree > DEGREE:
            raise Undecided(f"degree above {DEGREE}")
        total: dict[Term, Fraction] = {}
        for left, a in self.terms.items():
            for right, b in other.terms.items():
                for term, c in _product(left, right).items():
                    total[term] = total.get(term, 0) + a * b * c
        return Form(total)

    def __truediv__(self, other: "Scalar") -> "Form":
        return self * form(other) ** -1

    def __rtruediv__(self, other: "Scalar") -> "Form":
        return form(other) * self**-1

    def __pow__(self, exponent: "Fraction | int") -> "Form":
        return power(self, Fraction(exponent))

    __radd__, __rmul__ = __add__, __mul__

    @cached_property
    def degree(self) -> int:
        """The highest degree of a term outside of exponentials; sizes and numbers have degree 0."""
        return max((sum(degree_of(atom, e) for atom, e in powers) for powers, _ in self.terms), default=0)

    @property
    def constant(self) -> Fraction | None:
        """The value of a rational constant, otherwise None."""
        if not self.terms:
            return Fraction(0)
        return self.terms.get(ONE) if len(self.terms) == 1 else None

    def atoms(self) -> set[Atom]:
        """Every atom, also inside exponents and inside other atoms."""
        found: set[Atom] = set()
        for powers, exponent in self.terms:
            inner = [part for atom, _ in powers for part in atom.parts] + [exponent]
            found |= {atom for atom, _ in powers}.union(*(of_key(key).atoms() for key in inner if key))
        return found

    @property
    def is_real(self) -> bool:
        """Whether no imaginary unit occurs; sines and cosines contain one."""
        return IMAGINARY not in self.atoms()

    def is_zero(self) -> bool:
        """Whether the normal form is 0 once denominators are cleared (where they are not 0).

        >>> x, y = variable("x"), variable("y")
        >>> (x / (x + y) + y / (x + y) - 1).is_zero()
        True
        """
        return not self.cleared().terms

    def cleared(self) -> "Form":
        """The numerator over the common denominator: no sum stands in a denominator any more."""
        current = self
        while True:
            lowest: dict[Atom, int] = {}
            for powers, _ in current.terms:
                for atom, e in powers:
                    if atom.kind == "power" and e < 0:
                        lowest[atom] = min(lowest.get(atom, 0), floor(e))
            if not lowest:
                return current
            for atom, e in lowest.items():
                current = sum((_raised(term, atom, -e) * c for term, c in current.terms.items()), form(0))


Scalar = Form | Fraction | int


def form(value: Scalar) -> Form:
    """A number as a form; a form as it is."""
    return value if isinstance(value, Form) else Form({ONE: Fraction(value)})


def of_key(key: Key) -> Form:
    """The form that has this key."""
    return Form(dict(key))


def of_atom(atom: Atom, exponent: Fraction | int = 1) -> Form:
    """The form that is one atom, to a power."""
    return Form({(((atom, exponent),), ()): Fraction(1)})


def variable(name: str, *index: int, positive: bool = False) -> Form:
    """A real variable, or a coordinate of one; `positive` where an assumption says so."""
    return of_atom(Atom("variable", name, index, positive=positive))


def size(name: str) -> Form:
    """A size: a positive number, of which roots may be taken."""
    return of_atom(Atom("size", name, positive=True))


def degree_of(atom: Atom, exponent: Fraction | int) -> int:
    """How much an atom adds to the degree of its term: its power, nothing for numbers and sizes."""
    return 0 if atom.kind in ("prime", "pi", "i", "size") else abs(floor(exponent))


def _product(left: Term, right: Term) -> dict[Term, Fraction]:
    """Two terms of coefficient 1 multiplied; more than one term results where a power of a sum becomes whole."""
    exponent = _sum(left[1], right[1])
    if not left[0] or not right[0]:
        return {(left[0] or right[0], exponent): Fraction(1)}
    powers: dict[Atom, Fraction | int] = dict(left[0])
    for atom, e in right[0]:
        powers[atom] = powers.get(atom, 0) + e
    coefficient, whole = Fraction(1), []
    for atom in [atom for atom in powers if atom.kind in REDUCED]:
        period = 2 if atom == IMAGINARY else 1
        n = powers[atom] // period
        powers[atom] -= n * period
        if atom.kind != "power":
            coefficient *= Fraction(-1 if atom == IMAGINARY else atom.index[0]) ** int(n)
        elif n > 0:
            whole.append(of_key(atom.parts[0]) ** n)
        else:
            powers[atom] += n  # a denominator stays
    term = (tuple(sorted((atom, e) for atom, e in powers.items() if e)), exponent)
    if not whole:
        return {term: coefficient}
    product = Form({term: coefficient})
    for factor in whole:
        product = product * factor
    return product.terms


def _sum(left: Key, right: Key) -> Key:
    return (of_key(left) + of_key(right)).key if left and right else left or right


def _raised(term: Term, atom: Atom, exponent: int) -> Form:
    """The term times a whole power of the sum inside `atom`, its own power of that sum included."""
    powers = dict(term[0])
    e = powers.pop(atom, 0) + exponent
    rest = Form({(tuple(powers.items()), term[1]): Fraction(1)})
    whole, part = of_key(atom.parts[0]) ** floor(e), e - floor(e)
    return rest * whole * (of_atom(atom, part) if part else form(1))


def factors(n: int) -> dict[int, int]:
    """The primes of a number; numbers too large to factor at once are left whole."""
    found: dict[int, int] = {}
    divisor = 2
    while divisor * divisor <= n and divisor < 10_000:
        while n % divisor == 0:
            found[divisor], n = found.get(divisor, 0) + 1, n // divisor
        divisor += 1
    if n >= 10_000**2:
        raise Undecided("a root of a number too large to factor")
    return found | ({n: found.get(n, 0) + 1} if n > 1 else {})


def root(value: Fraction, exponent: Fraction) -> Form:
    """A positive rational to a rational power: 8^(1/2) is 2·2^(1/2)."""
    if value <= 0:
        raise ArithmeticError(f"{value} has no real power {exponent}")
    result = form(1)
    for n, sign in ((value.numerator, 1), (value.denominator, -1)):
        for prime, count in factors(n).items():
            e = sign * count * exponent
            part = of_atom(Atom("prime", index=(prime,), positive=True), e - floor(e)) if e != floor(e) else form(1)
            result = result * part * Fraction(prime) ** floor(e)
    return result


def power(base: Form, exponent: Fraction) -> Form:
    """base^exponent. A sum to a power that is no whole number >= 0 becomes an atom of its own, a term does not."""
    if exponent.denominator == 1 and exponent >= 0:
        return _whole_power(base, int(exponent))
    if not base.terms:
        if exponent < 0:
            raise ZeroDivisionError("division by 0")
        return form(0)
    if len(base.terms) == 1:
        return _term_power(base, exponent)
    common, primitive = content(base, signed=exponent.denominator == 1)
    scale = root(common, exponent) if exponent.denominator > 1 else common ** int(exponent)
    whole = floor(exponent) if exponent > 0 else 0
    return _whole_power(primitive, whole) * of_atom(Atom("power", parts=(primitive.key,)), exponent - whole) * scale


def number_power(value: Fraction, n: int) -> Fraction:
    """value^n, unless it is too long to be written down."""
    if max(value.numerator.bit_length(), value.denominator.bit_length()) * abs(n) > BITS:
        raise Undecided("a power of a number is too large")
    return value**n


def _whole_power(base: Form, n: int) -> Form:
    value = base.constant
    if value is not None:
        return form(number_power(value, n))
    if n > BITS:
        raise Undecided(f"an exponent above {BITS}")
    if len(base.terms) > 1 and base.degree * n > DEGREE:
        raise Undecided(f"degree above {DEGREE}")
    result = form(1)
    for _ in range(n):
        result = result * base
    return result


def _term_power(base: Form, exponent: Fraction) -> Form:
    """One term to any power; what may be negative stays under the root as an atom."""
    [((powers, inner), coefficient)] = base.terms.items()
    whole = exponent.denominator == 1
    if whole and IMAGINARY in dict(powers):  # 1/i = -i
        return _term_power(base * of_atom(IMAGINARY, 3), exponent) * of_atom(IMAGINARY) ** (int(exponent) % 4)
    result = form(coefficient ** int(exponent)) if whole else root(abs(coefficient), exponent)
    under = form(1 if whole or coefficient > 0 else -1)
    for atom, e in powers:
        if atom.kind == "prime":
            result = result * root(Fraction(atom.index[0]), e * exponent)
        elif whole or atom.positive:
            result = result * of_atom(atom, e * exponent)
        else:
            under = under * of_atom(atom, e)
    if whole or of_key(inner).is_real:
        result = result * exp(of_key(inner) * exponent)
    else:
        raise Undecided("a root of a complex number")
    if under == 1:
        return result
    if under == -1:
        raise ArithmeticError("a root of a negative number")
    return result * of_atom(Atom("power", parts=(under.key,)), exponent)


def content(base: Form, *, signed: bool) -> tuple[Fraction, Form]:
    """The common rational factor and the rest, whose first coefficient is positive where `signed`."""
    numbers = [*base.terms.values()]
    common = Fraction(gcd(*(n.numerator for n in numbers)), lcm(*(n.denominator for n in numbers)))
    if signed and base.key[0][1] < 0:
        common = -common
    return common, base * (1 / common)


def exp(value: Scalar) -> Form:
    """e^value; exp(log x) is x."""
    result, rest = form(1), {}
    for (powers, exponent), coefficient in form(value).terms.items():
        if (
            not exponent
            and len(powers) == 1
            and powers[0][0].name == "log"
            and powers[0][0].parts
            and powers[0][1] == 1
        ):
            result = result * power(of_key(powers[0][0].parts[0]), coefficient)
        elif not exponent and powers == HALF_TURN:
            turn, left = _turned(coefficient)
            result = result * turn
            if left:
                rest[powers, exponent] = left
        else:
            rest[powers, exponent] = coefficient
    return result * Form({((), Form(rest).key): Fraction(1)})


HALF_TURN = tuple(sorted(((IMAGINARY, 1), (PI, 1))))


def _turned(share: Fraction) -> tuple[Form, Fraction]:
    """e^{i·pi·share}: a number for multiples of a quarter, a third or a sixth of a half turn, and the angle left."""
    quarters = floor(share * 2)
    turn = of_atom(IMAGINARY) ** (quarters % 4)
    left = share - Fraction(quarters, 2)
    i, half = of_atom(IMAGINARY), Fraction(1, 2)
    known = {
        Fraction(1, 4): (root(Fraction(2), half), root(Fraction(2), half)),
        Fraction(1, 6): (root(Fraction(3), half), form(1)),
        Fraction(1, 3): (form(1), root(Fraction(3), half)),
    }
    if left not in known:
        return turn, left
    cosine, sine = known[left]
    return turn * (cosine + i * sine) * half, Fraction(0)
