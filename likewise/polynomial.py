"""Exact polynomials in named variables: what a cost is, as a function of its sizes."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import product
from types import MappingProxyType

from likewise.checks import refuse, require_count

__all__ = ["Polynomial"]

Monomial = tuple[tuple[str, int], ...]  # (("D", 1), ("N", 2)) is N^2*D: sorted by name, exponents of at least 1
Scalar = int | Fraction


@dataclass(frozen=True, eq=False)
class Polynomial:
    """A sum of monomials with rational coefficients; equal polynomials have equal terms.

    >>> n, d = Polynomial.variable("N"), Polynomial.variable("D")
    >>> (n + 2 * d) ** 2
    Polynomial('4*D^2 + N^2 + 4*D*N')
    >>> ((n + 2 * d) ** 2).evaluate({"N": 3, "D": 1})
    Fraction(25, 1)
    """

    terms: Mapping[Monomial, Fraction] = field(default_factory=dict)

    def __post_init__(self) -> None:
        kept = {factors: Fraction(value) for factors, value in self.terms.items() if value != 0}
        object.__setattr__(self, "terms", MappingProxyType(kept))

    @classmethod
    def constant(cls, value: Scalar) -> "Polynomial":
        return cls({(): Fraction(value)})

    @classmethod
    def variable(cls, name: str) -> "Polynomial":
        return cls({((name, 1),): Fraction(1)})

    @classmethod
    def of(cls, value: "Polynomial | Scalar") -> "Polynomial":
        """The value itself, or the constant that it is."""
        return value if isinstance(value, Polynomial) else cls.constant(value)

    def __add__(self, other: "Polynomial | Scalar") -> "Polynomial":
        sums = dict(self.terms)
        for factors, value in Polynomial.of(other).terms.items():
            sums[factors] = sums.get(factors, Fraction(0)) + value
        return Polynomial(sums)

    def __neg__(self) -> "Polynomial":
        return Polynomial({factors: -value for factors, value in self.terms.items()})

    def __sub__(self, other: "Polynomial | Scalar") -> "Polynomial":
        return self + -Polynomial.of(other)

    def __rsub__(self, other: Scalar) -> "Polynomial":
        return Polynomial.of(other) - self

    def __mul__(self, other: "Polynomial | Scalar") -> "Polynomial":
        products: dict[Monomial, Fraction] = {}
        for right, factor in Polynomial.of(other).terms.items():
            for left, value in self.terms.items():
                both = times(left, right)
                products[both] = products.get(both, Fraction(0)) + value * factor
        return Polynomial(products)

    __radd__ = __add__
    __rmul__ = __mul__

    def __pow__(self, exponent: int) -> "Polynomial":
        require_count("Polynomial", "exponent", exponent, least=0)
        result, square = Polynomial.constant(1), self
        while exponent:
            if exponent % 2:
                result *= square
            exponent //= 2
            if exponent:
                square *= square
        return result

    def __eq__(self, other: object) -> bool:
        if isinstance(other, int | Fraction):
            other = Polynomial.constant(other)
        return self.terms == other.terms if isinstance(other, Polynomial) else NotImplemented

    def __hash__(self) -> int:
        return hash(frozenset(self.terms.items()))

    def __bool__(self) -> bool:
        """Whether it is not 0."""
        return bool(self.terms)

    def __reduce__(self) -> tuple[type["Polynomial"], tuple[dict[Monomial, Fraction]]]:
        return Polynomial, (dict(self.terms),)  # a MappingProxyType does not pickle

    @property
    def variables(self) -> frozenset[str]:
        return frozenset(name for factors in self.terms for name, _ in factors)

    @property
    def degree(self) -> int:
        """The largest degree of a monomial; 0 for the polynomial 0."""
        return max(map(total_degree, self.terms), default=0)

    def degree_in(self, name: str) -> int:
        """The largest exponent of one variable."""
        return max((dict(factors).get(name, 0) for factors in self.terms), default=0)

    def coefficient(self, *factors: tuple[str, int]) -> Fraction:
        """What stands before a monomial, given as (name, exponent) pairs; without any, the constant term.

        >>> Polynomial.variable("N").coefficient(("N", 1)), Polynomial.variable("N").coefficient()
        (Fraction(1, 1), Fraction(0, 1))
        """
        return self.terms.get(monomial(factors), Fraction(0))

    def coefficients(self, name: str) -> tuple["Polynomial", ...]:
        """Of name^0, name^1, ...: polynomials in the other variables, at least one.

        >>> n, d = Polynomial.variable("N"), Polynomial.variable("D")
        >>> (3 * n**2 * d + n**2 + d).coefficients("N")
        (Polynomial('D'), Polynomial('0'), Polynomial('3*D + 1'))
        """
        found: list[dict[Monomial, Fraction]] = [{} for _ in range(self.degree_in(name) + 1)]
        for factors, value in self.terms.items():
            exponent = dict(factors).get(name, 0)
            found[exponent][tuple(factor for factor in factors if factor[0] != name)] = value
        return tuple(map(Polynomial, found))

    def evaluate(self, values: Mapping[str, Scalar]) -> Fraction:
        """The exact value at a point that gives every variable."""
        if not self.variables <= values.keys():
            refuse("Polynomial.evaluate", "values", f"give every variable of {self}", sorted(values))
        total = Fraction(0)
        for factors, value in self.terms.items():
            for name, exponent in factors:
                value *= Fraction(values[name]) ** exponent
            total += value
        return total

    def substitute(self, replacements: Mapping[str, "Polynomial | Scalar"]) -> "Polynomial":
        """Every named variable replaced, all at once, by a polynomial or a number."""
        total = Polynomial()
        for factors, value in self.terms.items():
            term = Polynomial({tuple(factor for factor in factors if factor[0] not in replacements): value})
            for name, exponent in factors:
                if name in replacements:
                    term *= Polynomial.of(replacements[name]) ** exponent
            total += term
        return total

    def text(self, order: Iterable[str] = ()) -> str:
        """Terms by degree, then largest exponent, then coefficient, then the order of the variables.

        >>> n, d, m = map(Polynomial.variable, "NDM")
        >>> (n * m + 2 * n * d + 2 * n**2).text("NDM"), (n**2 * m + n**2 * d).text("NDM")
        ('2*N^2 + 2*N*D + N*M', 'N^2*D + N^2*M')
        """
        order = [*order, *sorted(self.variables - set(order))]

        def rank(term: tuple[Monomial, Fraction]) -> tuple[int, int, Fraction, list[int]]:
            exponents = dict(term[0])
            largest = max(exponents.values(), default=0)
            return -total_degree(term[0]), -largest, -term[1], [-exponents.get(name, 0) for name in order]

        text = "".join(term_text(*term, order) for term in sorted(self.terms.items(), key=rank))
        return {" + ": "", " - ": "-"}.get(text[:3], "0") + text[3:]

    def __str__(self) -> str:
        return self.text()

    def __repr__(self) -> str:
        return f"Polynomial({str(self)!r})"


def monomial(factors: Iterable[tuple[str, int]]) -> Monomial:
    """Factors in the order of their names, without those of exponent 0.

    >>> monomial([("N", 2), ("M", 0), ("D", 1)])
    (('D', 1), ('N', 2))
    """
    return tuple(sorted(factor for factor in factors if factor[1]))


def total_degree(factors: Monomial) -> int:
    """The sum of the exponents."""
    return sum(exponent for _, exponent in factors)


def times(left: Monomial, right: Monomial) -> Monomial:
    """The product of two monomials."""
    exponents = dict(left)
    for name, exponent in right:
        exponents[name] = exponents.get(name, 0) + exponent
    return monomial(exponents.items())


def term_text(factors: Monomial, value: Fraction, order: list[str]) -> str:
    """One term with its sign in front: " + 2*N^2", " - D"."""
    ordered = sorted(factors, key=lambda factor: order.index(factor[0]))
    powers = [f"{name}^{exponent}" if exponent > 1 else name for name, exponent in ordered]
    number = [str(abs(value))] if abs(value) != 1 or not powers else []
    return f" {'-' if value < 0 else '+'} {'*'.join([*number, *powers])}"


def interpolate(
    count: Callable[[dict[str, int]], Scalar], names: Iterable[str], degrees: Iterable[int], start: int = 2
) -> Polynomial:
    """The one polynomial of at most these degrees, each in its variable, that agrees with `count` on a grid.

    The grid has prod(degree + 1) points, from `start` on in every variable. Nothing says that `count` is a polynomial:
    try the result on other points.

    >>> interpolate(lambda sizes: sizes["N"] ** 2 * sizes["D"] + 1, ["N", "D"], [2, 1])
    Polynomial('D*N^2 + 1')
    """
    names, degrees = list(names), list(degrees)
    axes = [range(start, start + degree + 1) for degree in degrees]
    values = {point: Fraction(count(dict(zip(names, point, strict=True)))) for point in product(*axes)}
    for axis, nodes in enumerate(axes):  # values along one axis become coefficients along it
        basis = {node: lagrange(node, nodes) for node in nodes}
        coefficients: dict[tuple[int, ...], Fraction] = {}
        for point, value in values.items():
            for exponent, factor in enumerate(basis[point[axis]]):
                place = (*point[:axis], exponent, *point[axis + 1 :])
                coefficients[place] = coefficients.get(place, Fraction(0)) + value * factor
        values = coefficients
    return Polynomial({monomial(zip(names, place, strict=True)): value for place, value in values.items()})


def lagrange(node: int, nodes: Iterable[int]) -> list[Fraction]:
    """The coefficients, constant first, of the polynomial that is 1 at its node and 0 at the others.

    >>> lagrange(2, [2, 3])
    [Fraction(3, 1), Fraction(-1, 1)]
    """
    coefficients = [Fraction(1)]
    for other in nodes:
        if other != node:
            shifted, scaled = [Fraction(0), *coefficients], [*(-other * c for c in coefficients), Fraction(0)]
            coefficients = [(a + b) / (node - other) for a, b in zip(shifted, scaled, strict=True)]
    return coefficients
