"""Dims: polynomials over the sizes of a claim, equal exactly when they agree at all sizes."""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import groupby

from likewise.claims.limits import DEGREE, DIGITS
from likewise.claims.tree import Binary, Call, Name, Negative, Node, Number, children, fraction_text
from likewise.claims.verdict import Undecided

Monomial = tuple[str, ...]  # names in order, repeated for powers; () is the constant
TERMS = 200


@dataclass(frozen=True)
class Dim:
    """A polynomial with rational coefficients, in the one form that equal polynomials share."""

    terms: tuple[tuple[Monomial, Fraction], ...] = ()

    @staticmethod
    def of(value: int | Fraction | str) -> "Dim":
        """A constant, or the size of that name.

        >>> print(Dim.of("D") * Dim.of("D") + Dim.of("D") * Dim.of(3) + Dim.of(1))
        D^2 + 3*D + 1
        """
        return _sorted({(value,): Fraction(1)} if isinstance(value, str) else {(): Fraction(value)})

    def __add__(self, other: "Dim") -> "Dim":
        found = dict(self.terms)
        for monomial, coefficient in other.terms:
            found[monomial] = found.get(monomial, Fraction(0)) + coefficient
        return _sorted(found)

    def __mul__(self, other: "Dim") -> "Dim":
        found: dict[Monomial, Fraction] = {}
        for left, a in self.terms:
            for right, b in other.terms:
                monomial = tuple(sorted(left + right))
                found[monomial] = found.get(monomial, Fraction(0)) + a * b
        return _sorted(found)

    def __sub__(self, other: "Dim") -> "Dim":
        return self + other * Dim.of(-1)

    @property
    def constant(self) -> Fraction | None:
        """Its value, if it does not depend on a size."""
        return None if any(monomial for monomial, _ in self.terms) else sum((c for _, c in self.terms), Fraction(0))

    def at(self, values: Mapping[str, "Dim"]) -> "Dim":
        """The polynomial with sizes replaced; a name without a value stays."""
        total = Dim()
        for monomial, coefficient in self.terms:
            product = Dim.of(coefficient)
            for name in monomial:
                product = product * values.get(name, Dim.of(name))
            total = total + product
        return total

    def __str__(self) -> str:
        text = ""
        for monomial, coefficient in sorted(self.terms, key=lambda term: (-len(term[0]), term[0])):
            sign = "-" if coefficient < 0 else "+"
            text += f" {sign} {_term_text(monomial, abs(coefficient))}" if text else ""
            text = text or ("-" if coefficient < 0 else "") + _term_text(monomial, abs(coefficient))
        return text or "0"


ONE = Dim((((), Fraction(1)),))


def dim_of(node: Node, sizes: Mapping[str, Dim]) -> Dim:
    """What an expression over sizes is, as a polynomial.

    >>> from likewise.claims.tree import Binary, Call, Name, Number
    >>> pairs = Call("choose", (Binary("+", Name("D"), Number(Fraction(1))), Number(Fraction(2))))
    >>> print(dim_of(pairs, {"D": Dim.of("D")}))
    D^2/2 + D/2
    """
    match node:
        case Number(value):
            return Dim.of(value)
        case Name(name) if name in sizes:
            return sizes[name]
        case Negative(operand):
            return Dim() - dim_of(operand, sizes)
        case Binary("+" | "-" | "*", left, right):
            a, b = dim_of(left, sizes), dim_of(right, sizes)
            return a + b if node.operator == "+" else a - b if node.operator == "-" else a * b
        case Binary("/", left, right):
            divisor = dim_of(right, sizes).constant
            if divisor:
                return dim_of(left, sizes) * Dim.of(1 / divisor)
        case Binary("^", left, right):
            return _product([dim_of(left, sizes)] * _count(dim_of(right, sizes), node))
        case Call("choose"):
            n, k = children(node)
            top, count = dim_of(n, sizes), _count(dim_of(k, sizes), node)
            return _product([(top - Dim.of(i)) * Dim.of(Fraction(1, i + 1)) for i in range(count)])
    raise Undecided(f"{node} is no polynomial over the sizes")


def _count(power: Dim, node: Node) -> int:
    value = power.constant
    if value is None or value.denominator > 1 or not 0 <= value <= DEGREE:
        raise Undecided(f"{node}: the power is no whole number from 0 to {DEGREE}")
    return int(value)


def _product(factors: list[Dim]) -> Dim:
    total = ONE
    for factor in factors:
        total = total * factor
    return total


def _sorted(terms: dict[Monomial, Fraction]) -> Dim:
    kept = tuple(sorted((monomial, value) for monomial, value in terms.items() if value))
    if len(kept) > TERMS or any(len(monomial) > DEGREE for monomial, _ in kept):
        raise Undecided(f"a size of degree above {DEGREE}, or of more than {TERMS} terms")
    if any(max(abs(value.numerator), value.denominator) >= 10 ** (2 * DIGITS) for _, value in kept):
        raise Undecided(f"a size of more than {2 * DIGITS} digits")
    return Dim(kept)


def _term_text(monomial: Monomial, coefficient: Fraction) -> str:
    powers = [(name, len(list(group))) for name, group in groupby(monomial)]
    product = "*".join(name if power == 1 else f"{name}^{power}" for name, power in powers)
    if not product:
        return fraction_text(coefficient)
    over = f"/{coefficient.denominator}" if coefficient.denominator > 1 else ""
    return f"{coefficient.numerator}*{product}{over}" if coefficient.numerator > 1 else f"{product}{over}"
