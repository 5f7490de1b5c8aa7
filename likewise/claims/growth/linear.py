"""Exact linear arithmetic: a point that satisfies linear comparisons, or a certificate that none exists.

A simplex on bounded slacks (Dutertre and de Moura 2006) in fractions, with Bland's rule, so it ends. A strict
comparison is met by staying an infinitesimal below its bound; a value is therefore a pair (number, infinitesimals).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import product
from typing import Literal

from likewise.claims.verdict import Undecided

ROWS, PIVOTS, POINTS, HALVINGS = 400, 5_000, 20_000, 500
ZERO = Fraction(0)


class NotLinear(Undecided):
    """Raised where an operation on forms gives none."""


@dataclass(frozen=True)
class LinearForm:
    """A linear form: the sum of coefficient * name, plus a constant.

    >>> x, y = LinearForm.of("x"), LinearForm.of("y")
    >>> (2 * x - y + LinearForm(constant=Fraction(1))).at({"x": Fraction(3), "y": Fraction(1)})
    Fraction(6, 1)
    """

    coefficients: Mapping[str, Fraction] = field(default_factory=dict)
    constant: Fraction = ZERO

    @classmethod
    def of(cls, name: str) -> "LinearForm":
        return cls({name: Fraction(1)})

    @classmethod
    def made(cls, value: "LinearForm | Fraction | int") -> "LinearForm":
        """A number as a form."""
        return value if isinstance(value, LinearForm) else cls(constant=Fraction(value))

    def __add__(self, other: "LinearForm | Fraction | int") -> "LinearForm":
        other = self.made(other)
        sums = dict(self.coefficients)
        for name, value in other.coefficients.items():
            sums[name] = sums.get(name, ZERO) + value
        return LinearForm({name: value for name, value in sums.items() if value}, self.constant + other.constant)

    def __mul__(self, other: "LinearForm | Fraction | int") -> "LinearForm":
        """The product, if one of both is a number."""
        number, form = sorted((self, self.made(other)), key=lambda each: len(each.coefficients))
        if number.coefficients:
            raise NotLinear("a product of variables")
        factor = number.constant
        return LinearForm(
            {name: factor * value for name, value in form.coefficients.items() if factor}, factor * form.constant
        )

    __rmul__ = __mul__

    def __neg__(self) -> "LinearForm":
        return -1 * self

    def __sub__(self, other: "LinearForm | Fraction | int") -> "LinearForm":
        return self + -self.made(other)

    def at(self, point: Mapping[str, Fraction]) -> Fraction:
        """The value where every name has the value the point gives it."""
        return self.constant + sum((value * point[name] for name, value in self.coefficients.items()), ZERO)


@dataclass(frozen=True)
class Row:
    """A linear form that is to be at most 0, below 0, or 0."""

    form: LinearForm
    comparison: Literal["<=", "<", "=="]

    def holds(self, point: Mapping[str, Fraction]) -> bool:
        value = self.form.at(point)
        return value == 0 if self.comparison == "==" else value < 0 or (value == 0 and self.comparison == "<=")


@dataclass(frozen=True)
class Certificate:
    """One multiplier per row whose combination is a contradiction, 0 < 0 or a positive number <= 0 (Farkas)."""

    multipliers: tuple[Fraction, ...]

    def proves(self, rows: Sequence[Row]) -> bool:
        """Whether the combination contradicts itself: every multiplier of an inequality is at least 0, names cancel."""
        total, strict = LinearForm(), False
        for row, multiplier in zip(rows, self.multipliers, strict=True):
            if multiplier < 0 and row.comparison != "==":
                return False
            total += multiplier * row.form
            strict |= row.comparison == "<" and multiplier > 0
        return not total.coefficients and (total.constant > 0 or (strict and total.constant == 0))


def solve(rows: Sequence[Row]) -> dict[str, Fraction] | Certificate:
    """A point that satisfies every row, or the certificate that no point does; both are checked before they leave.

    >>> x, one = LinearForm.of("x"), LinearForm(constant=Fraction(1))
    >>> solve([Row(x - one, "<"), Row(one - x, "<")])
    Certificate(multipliers=(Fraction(1, 1), Fraction(1, 1)))
    >>> solve([Row(x - one, "<="), Row(one - x, "<=")])
    {'x': Fraction(1, 1)}
    """
    if len(rows) > ROWS:
        raise Undecided(f"{len(rows)} linear comparisons at once; at most {ROWS}")
    simplex = _Simplex(rows)
    multipliers = simplex.run()
    if multipliers is not None:
        certificate = Certificate(multipliers)
        assert certificate.proves(rows)
        return certificate
    point = simplex.point(rows)
    assert all(row.holds(point) for row in rows)
    return point


class _Simplex:
    """Names and slacks are numbered, names first; slack i is the form of row i without its constant."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self.names = sorted({name for row in rows for name in row.form.coefficients})
        first = len(self.names)
        number = {name: index for index, name in enumerate(self.names)}
        # basic variable -> its coefficients over the others
        self.table = {
            first + index: {number[name]: value for name, value in row.form.coefficients.items()}
            for index, row in enumerate(rows)
        }
        self.upper = {
            first + i: (-row.form.constant, Fraction(-int(row.comparison == "<"))) for i, row in enumerate(rows)
        }
        self.lower = {
            slack: self.upper[slack] for slack, row in zip(self.upper, rows, strict=True) if row.comparison == "=="
        }
        self.value: list[tuple[Fraction, Fraction]] = [(ZERO, ZERO)] * (first + len(rows))

    def run(self) -> tuple[Fraction, ...] | None:
        """Pivot until every slack is within its bounds (None), or one cannot be: then the multipliers say why."""
        for _ in range(PIVOTS):
            above = (s for s in self.table if s in self.upper and self.value[s] > self.upper[s])
            below = (s for s in self.table if s in self.lower and self.value[s] < self.lower[s])
            broken = min([*above, *below], default=None)
            if broken is None:
                return None
            down = 1 if self.value[broken] > self.upper[broken] else -1
            row = self.table[broken]
            entering = min((other for other in row if self._can_move(other, -down * row[other])), default=None)
            if entering is None:
                return self._contradiction(broken, down)
            self._pivot(broken, entering, self.upper[broken])
        raise Undecided(f"more than {PIVOTS} steps of linear arithmetic")

    def _can_move(self, variable: int, direction: Fraction) -> bool:
        if direction > 0:
            return variable not in self.upper or self.value[variable] < self.upper[variable]
        return variable not in self.lower or self.value[variable] > self.lower[variable]

    def _pivot(self, leaving: int, entering: int, target: tuple[Fraction, Fraction]) -> None:
        """Exchange the two; the leaving one takes its bound, every basic value follows."""
        row = self.table.pop(leaving)
        factor = row.pop(entering)
        solved = {leaving: 1 / factor, **{other: -value / factor for other, value in row.items()}}
        step = [(new - old) / factor for new, old in zip(target, self.value[leaving], strict=True)]
        self.value[leaving] = target
        for variable in (entering, *(basic for basic in self.table if entering in self.table[basic])):
            scale = Fraction(1) if variable == entering else self.table[variable][entering]
            number, tiny = self.value[variable]
            self.value[variable] = (number + scale * step[0], tiny + scale * step[1])
        for basic in self.table.values():
            scale = basic.pop(entering, ZERO)
            for other, value in solved.items() if scale else ():
                basic[other] = basic.get(other, ZERO) + scale * value
                if not basic[other]:
                    del basic[other]
        self.table[entering] = solved

    def _contradiction(self, broken: int, sign: int) -> tuple[Fraction, ...]:
        """A row that is stuck: its slack and those it consists of, all at their bounds, sum to a contradiction."""
        first = len(self.names)
        multipliers = [ZERO] * (len(self.value) - first)
        multipliers[broken - first] = Fraction(sign)
        for other, value in self.table[broken].items():
            multipliers[other - first] = -sign * value
        return tuple(multipliers)

    def point(self, rows: Sequence[Row]) -> dict[str, Fraction]:
        """The names at a concrete infinitesimal, halved until every row holds."""
        tiny = Fraction(1)
        for _ in range(HALVINGS):
            point = {name: self.value[i][0] + tiny * self.value[i][1] for i, name in enumerate(self.names)}
            if all(row.holds(point) for row in rows):
                return point
            tiny /= 2
        raise Undecided(f"a point closer than 2^-{HALVINGS} to what it must not touch")


def lattice(dimension: int, radius: int, *, least: int | None = None) -> Iterable[tuple[int, ...]]:
    """Whole points by largest entry, non-zero entries, negative entries, then lexicographically largest first.

    >>> list(lattice(2, 1, least=0))
    [(0, 0), (1, 0), (0, 1), (1, 1)]
    """
    for largest in range(radius + 1):
        axis = range(largest, (-largest if least is None else least) - 1, -1)
        if len(axis) ** dimension > POINTS:
            return
        shell = [point for point in product(axis, repeat=dimension) if max(map(abs, point), default=0) == largest]
        yield from sorted(shell, key=lambda p: (sum(map(bool, p)), sum(x < 0 for x in p)))  # stable: largest first
