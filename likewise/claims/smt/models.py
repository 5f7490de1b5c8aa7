"""From a model of z3 to a counterexample: a point of fractions at which exact arithmetic sees the violation."""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from math import sqrt
from types import MappingProxyType

import z3

from likewise.claims.algebra.coordinates import Coordinates
from likewise.claims.algebra.exponomials import form, power
from likewise.claims.algebra.holes import undefined_side
from likewise.claims.algebra.intervals import shrunk
from likewise.claims.algebra.points import ordered
from likewise.claims.algebra.questions import Question
from likewise.claims.algebra.witnesses import Witness, admissible, violation
from likewise.claims.arrays import Array, Entry
from likewise.claims.smt.curves import real
from likewise.claims.smt.gram import ONES
from likewise.claims.smt.problems import Encoding
from likewise.claims.smt.terms import Fact, Term
from likewise.claims.verdict import OutOfTime, Undecided

QUERY, SOON, GUESS = 2.0, 0.5, 0.2  # seconds for a question, for a simple one, and for a guess at one entry
GUESSES = 1.5  # seconds for all guesses of a point
LONGEST = (1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 64)  # bounds of the sizes of a counterexample, tried in this order
PARTS = (1, 2, 12, 100, 10**4, 10**8)  # denominators to which the entries of a vector are rounded
ON_CIRCLE = tuple(Fraction(*pair) for pair in ((3, 5), (4, 5), (5, 13), (12, 13), (8, 17), (15, 17), (7, 25), (24, 25)))
TINY = 1e-9
FEW = 16  # entries that are made as simple as they can be
Values = dict[str, list[Fraction]]


@dataclass(frozen=True)
class Query:
    """Questions to z3 until the time is over."""

    ends: float  # of process time

    def left(self, most: float = QUERY) -> float:
        """Seconds that a question may take."""
        left = min(most, self.ends - time.process_time())
        if left <= 0:
            raise OutOfTime("z3 was stopped at the end of its time")
        return left

    def solver(self, facts: Sequence[Fact]) -> z3.Solver:
        """A solver that knows these facts."""
        solver = z3.Solver()
        solver.set("timeout", max(1, int(1000 * self.left())))
        solver.add(*facts)
        return solver

    def model(self, facts: Sequence[Fact]) -> "z3.ModelRef | None":
        """What satisfies the facts, None if nothing does; Undecided if z3 cannot tell."""
        solver = self.solver(facts)
        answer = solver.check()
        if answer == z3.unknown:
            raise Undecided(f"z3 cannot tell: {solver.reason_unknown()}")
        return solver.model() if answer == z3.sat else None

    def is_empty(self, facts: Sequence[Fact]) -> bool:
        """Whether z3 sees soon that nothing satisfies the facts."""
        solver = self.solver(facts)
        solver.set("timeout", max(1, int(1000 * self.left(SOON))))
        return solver.check() == z3.unsat


def near(model: z3.ModelRef, term: Term) -> Fraction:
    """The value of a term in a model, rounded if it is irrational."""
    value = model.eval(term, model_completion=True)
    if z3.is_algebraic_value(value):
        value = value.approx(40)
    if z3.is_int_value(value):
        return Fraction(value.as_long())
    if not z3.is_rational_value(value):
        raise Undecided("a model of z3 without numbers")
    return value.as_fraction()


def exact(model: z3.ModelRef, term: Term) -> Entry:
    """The value of a term in a model, also if it is a root of a number or of a quadratic."""
    value = model.eval(term, model_completion=True)
    if not z3.is_algebraic_value(value):
        return near(model, term)
    coefficients = [Fraction(part.as_fraction()) for part in value.poly()]
    middle, top = near(model, term), coefficients[-1]
    degree = len(coefficients) - 1
    if not any(coefficients[1:-1]):
        root = form(power(form(abs(coefficients[0] / top)), Fraction(1, degree)))
        return root if middle > 0 else -root
    if degree > 2:
        raise Undecided("a root of a polynomial that is not shown")
    c, b, a = coefficients
    half = power(form(b * b - 4 * a * c), Fraction(1, 2)) * (1 / (2 * abs(a)))
    return form(-b / (2 * a)) + (half if middle > -b / (2 * a) else -half)


def confirmed(asked: Question, values: Values, lengths: Mapping[str, int]) -> Witness | None:
    """The point as a witness, if exact arithmetic finds every assumption true there and the statement false."""
    found = {}
    try:
        at = Coordinates({}, lengths)
        for each in asked.variables:
            shape = tuple(at.whole(dim) for dim in asked.dims(each))
            found[each.name] = Array(shape, tuple(values[each.name]))
        at = asked.complete(found, lengths)
        if not admissible(asked, at):
            return None
        try:
            seen, hole = violation(at, asked.chain), False
        except (ArithmeticError, IndexError):
            seen, hole = undefined_side(asked, at), True
        else:
            fractions = all(isinstance(entry, Fraction) for array in found.values() for entry in array.entries)
            if seen and fractions and sum(len(array.entries) for array in found.values()) <= FEW:
                return shrunk(asked, found, dict(lengths))
    except (Undecided, ArithmeticError, IndexError):
        return None
    shown = tuple((each.name, found[each.name]) for each in ordered(asked))
    return Witness(lengths, shown, seen, is_undefined=hole) if seen else None


def witness_at(
    asked: Question, stated: Encoding, query: Query, lengths: Mapping[str, int] = MappingProxyType({})
) -> Witness | None:
    """A counterexample of a claim that was read entry by entry."""
    for violation_ in stated.violations:
        solver = query.solver([*stated.known, *stated.curves, *violation_])
        if solver.check() != z3.sat:
            continue
        for values in _points(solver, stated, query):
            sizes = {name: lengths[name] if name in lengths else int(values[name][0]) for name in asked.sizes}
            witness = confirmed(asked, values, sizes)
            if witness:
                return witness
    return None


def _points(solver: z3.Solver, stated: Encoding, query: Query) -> Iterator[Values]:
    """The model with entry after entry made simple, then the model as it came."""
    model, first, rest = solver.model(), solver.model(), Query(min(query.ends, time.process_time() + GUESSES))
    try:
        for symbol in (symbol for entries in stated.symbols.values() for symbol in entries):
            for guess in _guesses(near(model, symbol), symbol.is_int()):
                solver.set("timeout", max(1, int(1000 * rest.left(GUESS))))
                solver.push()
                solver.add(symbol == guess)
                if solver.check() == z3.sat:
                    model = solver.model()
                    break
                solver.pop()
    except OutOfTime:
        pass
    for each, value_in in ((model, near), (first, near), (model, exact), (first, exact)):
        with suppress(Undecided):
            yield {name: [value_in(each, symbol) for symbol in entries] for name, entries in stated.symbols.items()}


def _guesses(value: Fraction, whole: bool) -> list[Term]:
    """Simple numbers to try instead of a value, those next to it last."""
    simple = [Fraction(0), Fraction(1), Fraction(-1), Fraction(round(value))]
    if whole:
        return [z3.IntVal(int(guess)) for guess in dict.fromkeys(simple)]
    sign = -1 if value < 0 else 1
    circle = sorted((sign * part for part in ON_CIRCLE), key=lambda part: abs(part - value))[:2]
    parts = [value.limit_denominator(most) for most in (2, 12, 1000, 10**9)]
    return [real(guess) for guess in dict.fromkeys([*simple, *parts[:2], *circle, *parts[2:]])]


def witness_of_products(asked: Question, stated: Encoding, query: Query) -> Witness | None:
    """Vectors that have the inner products of a model, in few dimensions."""
    sizes = [symbol for name in asked.sizes for symbol in stated.symbols.get(name, [])]
    known = [*stated.known, *stated.curves, *stated.products]
    for violated, longest in product(stated.violations, LONGEST if sizes else LONGEST[:1]):
        try:
            model = query.model([*known, *violated, *(symbol <= longest for symbol in sizes)])
        except OutOfTime:
            return None
        except Undecided:
            continue
        for values, lengths in _candidates(stated, model) if model is not None else ():
            witness = confirmed(asked, values, {name: lengths[name] for name in asked.sizes})
            if witness:
                return witness
    return None


def _candidates(stated: Encoding, model: z3.ModelRef) -> Iterator[tuple[Values, dict[str, int]]]:
    """Points near the model, coarse ones first; once with the vectors as they are and once made as long as 1."""
    scalars = {name: [near(model, symbol) for symbol in entries] for name, entries in stated.symbols.items()}
    lengths = {name: int(entries[0]) for name, entries in scalars.items()}
    rows: dict[str, list[float]] = {}
    for axis in stated.axes.values():
        order = sorted(axis.vectors, key=lambda name: name != ONES)
        products = [[float(near(model, real(axis.product(a, b)))) for b in order] for a in order]
        found = _factor(products)
        length = max([1, *map(len, found)]) if axis.length is None else int(near(model, real(axis.length)))
        lengths[axis.name] = length
        padded = [(row + [0.0] * length)[:length] for row in found]
        rows |= dict(zip(order, map(_turned, padded) if ONES in order else padded, strict=True))
    largest = max((abs(entry) for row in rows.values() for entry in row), default=0.0)
    for parts in PARTS:
        values: Values = {name: [_rounded(entry, parts) for entry in each] for name, each in scalars.items()}
        for scale in dict.fromkeys((1.0, 1 / largest if largest > TINY else 1.0)):
            yield values | {n: [_rounded(x * scale, parts) for x in row] for n, row in rows.items()}, lengths


def _rounded(value: Fraction | float, parts: int) -> Fraction:
    return Fraction(round(value * parts), parts)


def _factor(products: list[list[float]]) -> list[list[float]]:
    """Rows with these inner products; each needs at most one coordinate more than those before it.

    >>> _factor([[4.0, 2.0], [2.0, 1.0]])
    [[2.0], [1.0]]
    """
    rows: list[list[float]] = []
    pivots: list[int] = []
    for i, mine in enumerate(products):
        row: list[float] = []
        for place, j in enumerate(pivots):
            known = sum(a * b for a, b in zip(row, rows[j], strict=False))
            row.append((mine[j] - known) / rows[j][place])
        rest = mine[i] - sum(entry * entry for entry in row)
        if rest > TINY:
            row.append(sqrt(rest))
            pivots.append(i)
        rows.append(row)
    return rows


def _turned(row: list[float]) -> list[float]:
    """The row reflected so that the first axis becomes the direction of (1, ..., 1)."""
    n = len(row)
    normal = [(1.0 if i == 0 else 0.0) - 1 / sqrt(n) for i in range(n)]
    square = sum(entry * entry for entry in normal)
    if square < TINY:
        return row
    share = 2 * sum(a * b for a, b in zip(row, normal, strict=True)) / square
    return [a - share * b for a, b in zip(row, normal, strict=True)]
