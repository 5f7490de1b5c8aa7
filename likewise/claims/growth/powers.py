"""Expressions over sizes, as far as their order of growth goes: minima of sums of powers.

Sizes are at least 1, so max(a, b) grows like a + b, the root of a sum like the sum of the roots, and 1/(a + b) like
min(1/a, 1/b). Where such a step was taken the coefficients no longer count, and `exact` says so.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product

from likewise.claims import arrays
from likewise.claims.language.limits import BITS, EXPONENT
from likewise.claims.language.tree import Node
from likewise.claims.reader import Reader, Scalars
from likewise.claims.verdict import Undecided
from likewise.polynomial import Polynomial

TERMS, SUMS = 500, 64
Power = tuple[tuple[str, Fraction], ...]  # (("D", 1/2), ("N", 2)): sorted by name, exponents not 0
Sum = Mapping[Power, Fraction]


def power(exponents: Mapping[str, Fraction]) -> Power:
    """Factors in the order of their names, without those of exponent 0."""
    return tuple(sorted((name, exponent) for name, exponent in exponents.items() if exponent))


def times(left: Power, right: Power, scale: Fraction | int = 1) -> Power:
    """left * right^scale.

    >>> n, d = (("N", Fraction(1)),), (("D", Fraction(1)),)
    >>> power_text(times(times(n, n), d, Fraction(-1, 2)))
    'D^(-1/2)*N^2'
    """
    exponents = dict(left)
    for name, exponent in right:
        exponents[name] = exponents.get(name, Fraction(0)) + scale * exponent
    return power(exponents)


def power_text(factors: Power, order: Sequence[str] = (), coefficient: Fraction = Fraction(1)) -> str:
    """N^2*D, with the names in the given order; 1 for the empty product."""
    ranked = sorted(factors, key=lambda factor: (order.index(factor[0]) if factor[0] in order else len(order), factor))
    texts = [str(coefficient)] if coefficient != 1 or not factors else []
    for name, exponent in ranked:
        whole = exponent.denominator == 1 and exponent > 0
        texts.append(name if exponent == 1 else f"{name}^{exponent}" if whole else f"{name}^({exponent})")
    return "*".join(texts)


@dataclass(frozen=True)
class Magnitude:
    """The minimum of some sums; one sum, mostly."""

    sums: tuple[Sum, ...]
    exact: bool = True

    @property
    def positive(self) -> bool:
        return all(value > 0 for each in self.sums for value in each.values())

    def scaled(self, factor: Fraction) -> "Magnitude":
        return Magnitude(tuple({key: factor * value for key, value in each.items()} for each in self.sums), self.exact)

    def __add__(self, other: "Magnitude") -> "Magnitude":
        return added(self, other)

    def __neg__(self) -> "Magnitude":
        return _single(self).scaled(Fraction(-1))

    def __sub__(self, other: "Magnitude | int") -> "Magnitude":
        return added(_single(self), -constant(other))

    def __mul__(self, other: "Magnitude") -> "Magnitude":
        return multiplied(self, other)


def constant(value: Magnitude | Fraction | int) -> Magnitude:
    """A number, which grows like 1 unless it is 0."""
    return value if isinstance(value, Magnitude) else Magnitude(({(): Fraction(value)} if value else {},))


def added(left: Magnitude, right: Magnitude) -> Magnitude:
    """The sum; a minimum plus a sum is the minimum of the sums."""
    sums = []
    for a, b in _pairs(left, right):
        total = dict(a)
        for key, value in b.items():
            total[key] = total.get(key, Fraction(0)) + value
        sums.append({key: value for key, value in total.items() if value})
    return Magnitude(tuple(sums), left.exact and right.exact)


def multiplied(left: Magnitude, right: Magnitude) -> Magnitude:
    """The product; of minima only where nothing is negative."""
    exact = left.exact and right.exact
    if not (exact and len(left.sums) == len(right.sums) == 1) and not (left.positive and right.positive):
        raise Undecided("a difference next to a maximum, a minimum or a root")
    sums = []
    for a, b in _pairs(left, right):
        if len(a) * len(b) > TERMS:
            raise Undecided(f"more than {TERMS} terms")
        total: dict[Power, Fraction] = {}
        for (one, first), (other, second) in product(a.items(), b.items()):
            key = times(one, other)
            total[key] = total.get(key, Fraction(0)) + first * second
        if any(value.numerator.bit_length() + value.denominator.bit_length() > 2 * BITS for value in total.values()):
            raise Undecided("a power of a number is too large")
        sums.append({key: value for key, value in total.items() if value})
    return Magnitude(tuple(sums), exact)


def raised(base: Magnitude, exponent: Fraction) -> Magnitude:
    """base^exponent: exact for powers of one term and for whole exponents, otherwise up to constant factors."""
    if abs(exponent) > EXPONENT:
        raise Undecided(f"an exponent beyond {EXPONENT}")
    if exponent.denominator == 1 and exponent >= 0:
        result = Magnitude(({(): Fraction(1)},))
        for _ in range(int(exponent)):
            result = multiplied(result, base)
        return result
    if not base.positive or not all(base.sums):
        raise Undecided("a root or an inverse of a difference")
    if exponent < 0:
        return _inverse(raised(base, -exponent))
    one_term = len(base.sums) == 1 and set(base.sums[0].values()) == {Fraction(1)} and len(base.sums[0]) == 1
    roots = tuple({times((), key, exponent): Fraction(1) for key in each} for each in base.sums)
    return Magnitude(roots, base.exact and one_term)


def _inverse(base: Magnitude) -> Magnitude:
    """1/min(a, b + c) grows like 1/a + min(1/b, 1/c)."""
    parts = [Magnitude(tuple({times((), key, -1): 1 / value} for key, value in each.items())) for each in base.sums]
    total = parts[0]
    for part in parts[1:]:
        total = added(total, part)
    return Magnitude(total.sums, base.exact and len(base.sums) == 1 and len(base.sums[0]) == 1)


def magnitude(node: Node, sizes: Iterable[str]) -> Magnitude:
    """How an expression over sizes grows, or Undecided where that is not a matter of powers.

    >>> from likewise.claims.language.tree import Binary, Call, Name
    >>> product = Binary("*", Name("N"), Call("max", (Name("D"), Name("M"))))
    >>> [*magnitude(product, "NDM").sums[0]] == [(("D", 1), ("N", 1)), (("M", 1), ("N", 1))]
    True
    """
    named = {name: arrays.scalar(Magnitude(({((name, Fraction(1)),): Fraction(1)},))) for name in sizes}
    try:
        return constant(Reader(named, scalars=MAGNITUDES).evaluate(node).scalar)
    except (ArithmeticError, IndexError) as reason:
        raise Undecided(str(reason)) from None


def _power(base: Magnitude, exponent: Magnitude | Fraction) -> Magnitude:
    (found,) = _single(constant(exponent)).sums
    if set(found) - {()}:
        raise Undecided("an exponent that is not a number")
    return raised(base, found.get((), Fraction(0)))


def _largest(*parts: Magnitude) -> Magnitude:
    """The maximum, which grows like the sum."""
    total = _positive("max", parts)[0]
    for part in parts[1:]:
        total = added(total, part)
    return Magnitude(total.sums, exact=len(parts) == 1 and total.exact)


def _smallest(*parts: Magnitude) -> Magnitude:
    sums = tuple(each for part in _positive("min", parts) for each in part.sums)
    return Magnitude(sums, exact=len(parts) == 1 and parts[0].exact)


def _positive(function: str, parts: tuple[Magnitude, ...]) -> tuple[Magnitude, ...]:
    if not all(part.positive for part in parts):
        raise Undecided(f"a difference inside {function}")
    return parts


def _single(part: Magnitude) -> Magnitude:
    if not part.exact or len(part.sums) > 1:
        raise Undecided("a difference next to a maximum, a minimum or a root")
    return part


MAGNITUDES = Scalars(
    elementwise={"sqrt": lambda part: raised(part, Fraction(1, 2))},
    maximum=_largest,
    minimum=_smallest,
    power=_power,
    number=constant,
    divide=lambda top, bottom: multiplied(top, raised(bottom, Fraction(-1))),
)


def _pairs(left: Magnitude, right: Magnitude) -> list[tuple[Sum, Sum]]:
    pairs = list(product(left.sums, right.sums))
    if len(pairs) > SUMS or any(len(a) + len(b) > TERMS for a, b in pairs):
        raise Undecided(f"more than {SUMS} minima, or {TERMS} terms")
    return pairs


def of_polynomials(parts: Iterable[Polynomial]) -> Magnitude:
    """The sum of polynomials, which grows like their maximum."""
    total = sum(parts, Polynomial())
    return Magnitude(({tuple((name, Fraction(e)) for name, e in key): value for key, value in total.terms.items()},))


def polynomial(part: Magnitude) -> Polynomial | None:
    """The polynomial that an exact magnitude is, or None."""
    if not part.exact or len(part.sums) > 1:
        return None
    (terms,) = part.sums
    if any(exponent.denominator > 1 or exponent < 0 for key in terms for _, exponent in key):
        return None
    return Polynomial({tuple((name, int(exponent)) for name, exponent in key): value for key, value in terms.items()})
