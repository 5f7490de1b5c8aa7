"""Equations of arrays for every size, in index notation: entries are sums of products with free and summed indices.

    (A @ B)[i, k]      Σ_j A[i, j]*B[j, k]          softmax(x)[i]      exp(x[i])*(Σ_j exp(x[j]))^-1
    tr(A @ B)          Σ_i Σ_j A[i, j]*B[j, i]      I(N)[i, j]         δ(i, j)

A sum is a factor of its own, with the factors that its index does not touch outside and its index renamed by a rule, so
that equal sums are equal factors, also inside quotients, roots and functions. Two sides with the same normal form are
equal at all lengths. What is undefined is not seen here: who asks looks at it (`domains`).
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from itertools import combinations, count, groupby, permutations, product
from math import comb, factorial, floor
from typing import Any

from likewise.claims.algebra.questions import Question
from likewise.claims.language.claim import Bernoulli, Exponential, Normal, Rademacher, Uniform
from likewise.claims.language.limits import BITS
from likewise.claims.language.tree import (
    Binary,
    Call,
    Constant,
    Gradient,
    Index,
    Indexed,
    Matrix,
    Moment,
    Name,
    Negative,
    Node,
    Number,
    Text,
    Transpose,
)
from likewise.claims.verdict import Undecided

MOMENT = 8  # degree, in random entries
TERMS, EXPONENT, BOUND = 300, 8, 5  # of a sum; of a power that is multiplied out; indices of one sum
ONE = Number(Fraction(1))
HALF = Fraction(1, 2)
OPAQUE = frozenset({"sin", "cos", "abs", "relu", "erf", "sign", "floor"})
SMOOTH = frozenset({"sin", "cos"})

Place = str  # an index: a bound or free name, or a number
Atom = tuple  # (kind, ...): x entry, n size, i index, d delta, exp, sum, plus, num, pi, a function, max
Term = tuple  # ((atom, exponent), ...) in order
_fresh = count()


def new_place() -> Place:
    """The name of an index, which no claim can contain."""
    return f"~{next(_fresh)}"


@dataclass(frozen=True)
class Expr:
    """A sum of products: terms with their coefficients, in order."""

    terms: tuple[tuple[Term, Fraction], ...]

    def __add__(self, other: "Expr") -> "Expr":
        return _expr((*self.terms, *other.terms))

    def __mul__(self, other: "Expr") -> "Expr":
        pairs = list(product(self.terms, other.terms))
        if len(pairs) > TERMS:
            raise Undecided(f"more than {TERMS} products")
        return added(times([*a, *b], c * d) for (a, c), (b, d) in pairs)

    def scaled(self, factor: Fraction | int) -> "Expr":
        """A multiple."""
        return _expr((term, factor * value) for term, value in self.terms)


def _expr(pairs: Iterable[tuple[Term, Fraction]]) -> Expr:
    found: dict[Term, Fraction] = {}
    for term, value in pairs:
        found[term] = found.get(term, Fraction(0)) + value
    kept = [(term, value) for term, value in found.items() if value]
    if len(kept) > TERMS:
        raise Undecided(f"more than {TERMS} terms")
    return Expr(tuple(sorted(kept, key=repr)))


def added(parts: Iterable[Expr]) -> Expr:
    return _expr(pair for part in parts for pair in part.terms)


def _number(value: Fraction | int) -> Expr:
    return _expr([((), Fraction(value))])


def of_atom(*parts: Any) -> Expr:
    return Expr(((((parts, Fraction(1)),), Fraction(1)),))


ZERO, UNIT = _number(0), _number(1)


def times(factors: Iterable[tuple[Atom, Fraction]], coefficient: Fraction) -> Expr:
    """A product with equal factors together, deltas used up, and numbers under roots taken out where they can be."""
    powers: dict[Atom, Fraction] = {}
    for atom, exponent in factors:
        powers[atom] = powers.get(atom, Fraction(0)) + exponent
    for atom, exponent in [*powers.items()]:
        if not exponent:
            del powers[atom]
        elif atom[0] == "d":
            if exponent < 0:
                raise Undecided("a quotient by an entry of the identity matrix")
            powers[atom] = Fraction(1)
        elif atom[0] == "num" and exponent.denominator == 1:
            coefficient *= _raised(atom[1], int(exponent))
            del powers[atom]
        elif atom[0] == "num" and not 0 < exponent < 1:
            whole = floor(exponent)
            coefficient *= _raised(atom[1], whole)
            powers[atom] = exponent - whole
    for atom in [atom for atom in powers if atom[0] == "d"]:
        _, one, other = atom
        kept, gone = sorted((one, other), key=lambda place: (not place.isdigit(), place))
        rest = [(each, exponent) for each, exponent in powers.items() if each != atom]
        if any(has(each, gone) for each, _ in rest):
            moved = renamed(Expr(((tuple(rest), coefficient),)), {gone: kept})
            return added(times([*term, (atom, Fraction(1))], value) for term, value in moved.terms)
    for atom, exponent in powers.items():
        if atom[0] == "plus" and exponent.denominator == 1 and 0 < exponent <= EXPONENT:
            rest = [(each, power) for each, power in powers.items() if each != atom]
            return reduce(lambda a, b: a * b, [atom[1]] * int(exponent), times(rest, coefficient))
    return Expr(((tuple(sorted(powers.items(), key=repr)), coefficient),)) if coefficient else ZERO


def _delta(one: Place, other: Place) -> Expr:
    if one == other:
        return UNIT
    if one.isdigit() and other.isdigit():
        return ZERO
    return of_atom("d", *sorted((one, other)))


def has(part: Any, place: Place) -> bool:
    """Whether an index occurs free; the names of bound ones are those of no other."""
    if isinstance(part, Expr):
        return any(has(atom, place) for term, _ in part.terms for atom, _ in term)
    if isinstance(part, tuple):
        return any(has(each, place) for each in part)
    return part == place


def renamed(part: Expr, places: Mapping[Place, Place]) -> Expr:
    """The same with free indices replaced."""
    return over_atoms(part, lambda atom: _renamed_atom(atom, places))


def over_atoms(part: Expr, change: Callable[[Atom], Expr]) -> Expr:
    """Every atom replaced by what it becomes."""
    return added(
        reduce(lambda a, b: a * b, [_power(change(atom), exponent) for atom, exponent in term], _number(value))
        for term, value in part.terms
    )


def _renamed_atom(atom: Atom, places: Mapping[Place, Place]) -> Expr:
    if not any(has(atom, place) for place in places):
        return of_atom(*atom)
    match atom:
        case ("x", name, at):
            return of_atom("x", name, tuple(places.get(each, each) for each in at))
        case ("i", at):
            moved = places.get(at, at)
            return _number(int(moved)) if moved.isdigit() else of_atom("i", moved)
        case ("d", one, other):
            return _delta(places.get(one, one), places.get(other, other))
        case ("exp", inner):
            return _exp(renamed(inner, places))
        case ("sum", ranges, inner):
            fresh = {bound: new_place() for bound, _ in ranges}
            body = renamed(inner, {**places, **fresh})
            return summed(body, [(fresh[bound], length) for bound, length in ranges])
        case ("max", parts):
            return of_atom("max", tuple(sorted((renamed(each, places) for each in parts), key=repr)))
        case (kind, inner):
            return FUNCTIONS[kind](renamed(inner, places))
    raise Undecided("an index inside")


def summed(body: Expr, ranges: list[tuple[Place, Expr]]) -> Expr:
    """Σ over indices of a sum of products, each split into what its indices tie together."""
    return added(_summed_term(term, value, ranges) for term, value in body.terms)


def _summed_term(term: Term, value: Fraction, ranges: list[tuple[Place, Expr]]) -> Expr:
    bound, factors = dict(ranges), list(term)
    for place in [*bound]:
        atom = next((a for a, _ in factors if a[0] == "d" and place in a[1:]), None)
        if atom is not None:  # Σ_j δ(i, j)*f(j) is f(i)
            other = atom[1] if atom[2] == place else atom[2]
            rest = Expr(((tuple(pair for pair in factors if pair[0] != atom), value),))
            left = [(each, length) for each, length in bound.items() if each != place]
            return summed(renamed(rest, {place: other}), left)
    for atom, exponent in factors:
        inside = any(has(atom, place) for place in bound)
        if atom[0] == "sum" and inside and exponent.denominator == 1 and 0 < exponent <= EXPONENT:
            rest = Expr(((tuple(pair for pair in factors if pair[0] != atom), value),))
            for _ in range(int(exponent)):
                fresh = {each: new_place() for each, _ in atom[1]}
                ranges = [*ranges, *((fresh[each], length) for each, length in atom[1])]
                rest = rest * renamed(atom[2], fresh)
            return summed(rest, ranges)
    for place, length in bound.items():  # Σ_j exp(x[i, j]) times its own inverse, inside a sum over i
        mine = [(atom, e) for atom, e in factors if has(atom, place)]
        below = [atom for atom, e in factors if e < 0 and e.denominator == 1 and atom[0] == "sum"]
        if below and mine and not any(atom in below for atom, _ in mine):
            whole = _closed(mine, [(place, length)])
            if any(whole == of_atom(*atom) for atom in below):
                rest = Expr(((tuple(pair for pair in factors if pair not in mine), value),)) * whole
                return summed(rest, [(each, n) for each, n in bound.items() if each != place])
    found = _number(value)
    while bound:
        tied, mine = {next(iter(bound))}, []
        while True:
            mine = [(atom, e) for atom, e in factors if any(has(atom, place) for place in tied)]
            more = {place for place in bound if any(has(atom, place) for atom, _ in mine)} | tied
            if more == tied:
                break
            tied = more
        factors = [pair for pair in factors if pair not in mine]
        found = found * (_closed(mine, [(place, bound[place]) for place in tied]) if mine else bound[min(tied)])
        bound = {place: length for place, length in bound.items() if place not in tied}
    return found * Expr(((tuple(factors), Fraction(1)),))


def _closed(factors: list[tuple[Atom, Fraction]], ranges: list[tuple[Place, Expr]]) -> Expr:
    """One sum as a factor, its indices named by a rule: of all orders of like indices, the text that sorts first."""
    if len(ranges) > BOUND:
        raise Undecided(f"more than {BOUND} indices of one sum")
    body = Expr(((tuple(factors), Fraction(1)),))
    level = 1 + _level(body)

    def looks(place: Place) -> str:
        others = {each: "?" for each, _ in ranges if each != place}
        return repr(bound[place]) + repr(_plain(body, {**others, place: "!"}))

    bound = dict(ranges)
    order = sorted(bound, key=looks)
    groups = [list(group) for _, group in groupby(order, key=looks)]
    best: tuple[str, Expr, tuple] | None = None
    for chosen in product(*map(permutations, groups)):
        places = [place for group in chosen for place in group]
        names = {place: f"%{level}.{number}" for number, place in enumerate(places)}
        named = renamed(body, names)
        text = repr(named)
        if best is None or text < best[0]:
            best = text, named, tuple((names[place], bound[place]) for place in places)
    assert best is not None
    return of_atom("sum", best[2], best[1])


def _plain(part: Any, names: Mapping[Place, str]) -> Any:
    """The same with places replaced, without any rule of order but that of texts."""
    if isinstance(part, Expr):
        return sorted(repr(_plain(pair, names)) for pair in part.terms)
    if isinstance(part, tuple):
        moved = tuple(_plain(each, names) for each in part)
        return tuple(sorted(map(repr, moved))) if all(isinstance(each, tuple) for each in part) else moved
    return names.get(part, part) if isinstance(part, str) else part


def _level(part: Any) -> int:
    """How deep the sums in it stand."""
    if isinstance(part, Expr):
        return max((_level(atom) for term, _ in part.terms for atom, _ in term), default=0)
    if isinstance(part, tuple):
        return max(map(_level, part), default=0) + (bool(part) and part[0] == "sum")
    return 0


def _never_negative(atom: Atom) -> bool:
    match atom:
        case ("n" | "i" | "exp" | "num" | "pi" | "abs" | "relu" | "d", *_):
            return True
        case ("sum", _, inner) | ("plus", inner):
            return all(value > 0 and all(_even(*pair) for pair in term) for term, value in inner.terms)
    return False


def _even(atom: Atom, exponent: Fraction) -> bool:
    return _never_negative(atom) or (exponent.denominator == 1 and exponent % 2 == 0)


def _positive(atom: Atom) -> bool:
    match atom:
        case ("n" | "i" | "exp" | "num" | "pi", *_):
            return True
        case ("sum", _, inner) | ("plus", inner):
            return all(value > 0 and all(_positive(each) for each, _ in term) for term, value in inner.terms)
    return False


def _power(base: Expr, exponent: Fraction) -> Expr:
    """base^exponent."""
    if exponent == 1 or (exponent == 0 and base.terms):
        return base if exponent else UNIT
    if not base.terms:
        if exponent > 0:
            return ZERO
        raise Undecided("a power of 0")
    if exponent.denominator == 1 and 0 < exponent <= EXPONENT and len(base.terms) > 1:
        return reduce(lambda a, b: a * b, [base] * int(exponent))
    if len(base.terms) == 1:
        ((term, value),) = base.terms
        if exponent.denominator == 1:
            return times([(atom, e * exponent) for atom, e in term], _raised(value, int(exponent)))
        if value > 0:
            inside = [pair for pair in term if _never_negative(pair[0])]
            rest = tuple(pair for pair in term if pair not in inside)
            if all(e.denominator == 1 and e % 2 for _, e in rest) or not rest:
                outside = [(atom, e * exponent) for atom, e in inside] + _root_of(value, exponent)
                alone = len(rest) == 1 and rest[0][0][0] == "plus" and rest[0][1] == 1
                left = [(rest[0][0] if alone else ("plus", Expr(((rest, Fraction(1)),))), exponent)] if rest else []
                return times([*outside, *left], Fraction(1))
        return times([(("plus", base), exponent)], Fraction(1))
    leading = base.terms[0][1]
    if exponent.denominator == 1:
        unit = base.scaled(1 / leading)
        return times([(("plus", unit), exponent)], _raised(leading, int(exponent)))
    unit = base.scaled(1 / abs(leading))
    return times([(("plus", unit), exponent), *_root_of(abs(leading), exponent)], Fraction(1))


def _raised(value: Fraction, exponent: int) -> Fraction:
    """A power of a number that does not grow beyond its bound."""
    if max(abs(value.numerator), value.denominator).bit_length() * abs(exponent) > BITS:
        raise Undecided("a large power")
    return value**exponent


def _root_of(value: Fraction, exponent: Fraction) -> list[tuple[Atom, Fraction]]:
    """value^exponent of a number above 0, by its prime factors."""
    found: list[tuple[Atom, Fraction]] = []
    for number, sign in ((value.numerator, 1), (value.denominator, -1)):
        if number > 10**6:
            raise Undecided("the root of a large number")
        divisor = 2
        while number > 1:
            if divisor * divisor > number:
                divisor = number
            if number % divisor == 0:
                found.append((("num", Fraction(divisor)), sign * exponent))
                number //= divisor
            else:
                divisor += 1
    return found


def _exp(inner: Expr) -> Expr:
    """exp(a*s + b*t) is exp(s)^a*exp(t)^b; exp(log(t)) of what is above 0 is t."""
    factors: list[tuple[Atom, Fraction]] = []
    for term, value in inner.terms:
        factors.append((("exp", Expr(((term, Fraction(1)),))), value))
    return times(factors, Fraction(1))


def _log(inner: Expr) -> Expr:
    """log of a product of what is above 0 is a sum."""
    if not inner.terms:
        raise Undecided("a logarithm of 0")
    if len(inner.terms) == 1:
        ((term, value),) = inner.terms
        if value > 0 and all(_positive(atom) for atom, _ in term):
            parts = [_log_of(atom).scaled(exponent) for atom, exponent in term]
            return added(
                [*parts, *(of_atom("log", of_atom(*atom)).scaled(e) for atom, e in _root_of(value, Fraction(1)))]
            )
    return of_atom("log", inner)


def _log_of(atom: Atom) -> Expr:
    return atom[1] if atom[0] == "exp" else of_atom("log", of_atom(*atom))


def _opaque(name: str) -> Callable[[Expr], Expr]:
    """A function of which only its symmetry is known."""

    def of(inner: Expr) -> Expr:
        if name in ("sin", "cos", "abs", "erf", "sign") and inner.terms and inner.terms[0][1] < 0:
            inner = inner.scaled(-1)
            return of_atom(name, inner).scaled(-1 if name in ("sin", "erf", "sign") else 1)
        return of_atom(name, inner)

    return of


FUNCTIONS: dict[str, Callable[[Expr], Expr]] = {
    "exp": _exp,
    "log": _log,
    "sqrt": lambda inner: _power(inner, HALF),
    "plus": lambda inner: inner,
    **{name: _opaque(name) for name in OPAQUE},
}


@dataclass(frozen=True)
class Tensor:
    """An array of any length: the lengths of its axes, and its entry at indices."""

    axes: tuple[Node, ...]
    entry: Callable[[tuple[Place, ...]], Expr]

    @property
    def scalar(self) -> Expr:
        """A number."""
        if self.axes:
            raise Undecided("an array where a number is needed")
        return self.entry(())


def _scalar(value: Expr) -> Tensor:
    return Tensor((), lambda places: value)


def _place(length: Node) -> Place:
    """A new index; of an axis of length 1 it is 1."""
    return "1" if length == ONE else new_place()


class Reader:
    """Expressions as tensors."""

    def __init__(self, asked: Question, values: Mapping[str, Tensor] | None = None) -> None:
        self.asked = asked
        self.laws: dict[str, Any] = {each.name: each.kind for each in asked.claim.variables if each.random}
        self.values: dict[str, Tensor] = dict(values or {})
        if values is None:
            if asked.lying or any(each.layout for each in asked.variables):
                raise Undecided("rows and columns")
            self.values = {name: _scalar(of_atom("n", name)) for name in asked.sizes}
            for each in asked.variables:
                dims = asked.dims(each)
                if not all(isinstance(dim, Name | Number) for dim in dims):
                    raise Undecided("a length that is a formula")
                self.values[each.name] = Tensor(dims, lambda at, name=each.name: of_atom("x", name, at))
            for name, law in self.laws.items():
                axes = self.random_axes(law)
                if not all(isinstance(dim, Name | Number) for dim in axes):
                    raise Undecided("a length that is a formula")
                self.values[name] = Tensor(axes, lambda at, name=name: of_atom("x", name, at))

    def with_value(self, name: str, value: Tensor) -> "Reader":
        return Reader(self.asked, {**self.values, name: value})

    def of(self, node: Node) -> Tensor:
        """The tensor that an expression is."""
        match node:
            case Number(value):
                return _scalar(_number(value))
            case Constant():
                return _scalar(of_atom("pi", ""))
            case Name(name) if name in self.values:
                return self.values[name]
            case Negative(operand):
                return self.each(lambda a: a.scaled(-1), operand)
            case Binary("+", left, right):
                return self.each(lambda a, b: a + b, left, right)
            case Binary("-", left, right):
                return self.each(lambda a, b: a + b.scaled(-1), left, right)
            case Binary("*", left, right):
                return self.each(lambda a, b: a * b, left, right)
            case Binary("/", left, right):
                return self.each(lambda a, b: a * _power(b, Fraction(-1)), left, right)
            case Binary("^", left, right):
                exponent = self.of(right).scalar
                if len(exponent.terms) > 1 or (exponent.terms and exponent.terms[0][0]):
                    raise Undecided("an exponent that is no number")
                power = exponent.terms[0][1] if exponent.terms else Fraction(0)
                return self.each(lambda a: _power(a, power), left)
            case Binary("@", left, right):
                return self.matmul(self.of(left), self.of(right))
            case Transpose(operand):
                inner = self.of(operand)
                if len(inner.axes) == 1:
                    raise Undecided("rows and columns")
                if not inner.axes:
                    return inner
                axes = (*inner.axes[:-2], inner.axes[-1], inner.axes[-2])
                return Tensor(axes, lambda at: inner.entry((*at[:-2], at[-1], at[-2])))
            case Index(operand, indices):
                inner, at = self.of(operand), tuple(map(self.index, indices))
                if len(at) > len(inner.axes):
                    raise Undecided("more indices than axes")
                return Tensor(inner.axes[len(at) :], lambda rest: inner.entry((*at, *rest)))
            case Indexed("sum" | "mean", index, Number(Fraction(numerator=1, denominator=1)), highest, body):
                return self.indexed(node.function, index, highest, body)
            case Matrix():
                raise Undecided("a matrix of numbers")
            case Moment(kind, body):
                inner = self.of(body)
                if kind == "E":
                    return Tensor(inner.axes, lambda at: self.mean(inner.entry(at)))
                return Tensor(inner.axes, lambda at: self.variance(inner.entry(at)))
            case Gradient(name, body, place):
                return self.gradient(name, body, self.of(place))
            case Call("grad", (body, Name(name))) if isinstance(body, Node):
                return self.gradient(name, body, self.values[name])
            case Call(function, arguments):
                return self.call(function, arguments)
        raise Undecided(f"{node} has no index notation")

    def variance(self, value: Expr) -> Expr:
        """E[x^2] - E[x]^2."""
        return self.mean(value * value) + _power(self.mean(value), Fraction(2)).scaled(-1)

    def mean(self, value: Expr) -> Expr:
        """The expectation of a polynomial in random entries, by their cumulants."""
        return added(self.mean_of_term(term, coefficient) for term, coefficient in value.terms)

    def mean_of_term(self, term: Term, coefficient: Fraction) -> Expr:
        """Sums are written out, each copy with an index of its own; what is random is a product of entries then."""
        drawn: list[tuple[str, tuple[Place, ...]]] = []
        ranges: list[tuple[Place, Expr]] = []
        still: list[tuple[Atom, Fraction]] = []
        waiting = list(term)
        while waiting:
            atom, exponent = waiting.pop()
            if not any(mentions(atom, name) for name in self.laws):
                still.append((atom, exponent))
                continue
            if exponent.denominator > 1 or not 0 < exponent <= MOMENT:
                raise Undecided("the mean of what is no polynomial")
            for _ in range(int(exponent)):
                if atom[0] == "x":
                    drawn.append((atom[1], atom[2]))
                elif atom[0] == "sum":
                    fresh = {bound: new_place() for bound, _ in atom[1]}
                    ranges += [(fresh[bound], length) for bound, length in atom[1]]
                    ((inner, factor),) = renamed(atom[2], fresh).terms
                    coefficient *= factor
                    waiting += inner
                else:
                    raise Undecided("the mean of what is no polynomial")
        if len(drawn) > MOMENT:
            raise Undecided(f"a moment of degree above {MOMENT}")
        found = times(still, coefficient)
        for name, law in self.laws.items():
            found = found * self.joint(law, [at for each, at in drawn if each == name])
        return summed(found, ranges)

    def joint(self, law: "Normal | Uniform | Rademacher | Exponential | Bernoulli", places: list) -> Expr:
        """E[x_i*x_j*...]: over all ways to split the entries into groups, the product of the groups' cumulants."""
        if not places:
            return UNIT
        first, *rest = places
        total = ZERO
        for size in range(len(places)):
            for others in combinations(range(len(rest)), size):
                mine = self.cumulant(law, [first, *(rest[k] for k in others)])
                if mine.terms:
                    total = total + mine * self.joint(law, [at for k, at in enumerate(rest) if k not in others])
        return total

    def cumulant(self, law: "Normal | Uniform | Rademacher | Exponential | Bernoulli", places: list) -> Expr:
        """The joint cumulant of entries."""
        n, at = len(places), places[0]

        def value(node: Node) -> Expr:
            tensor = self.of(node)
            return tensor.entry(narrow(at, tensor.axes))

        if isinstance(law, Normal):
            if n != 2:
                return value(law.mean) if n == 1 else ZERO
            spread = self.of(law.spread)
            i, j = places
            if not spread.axes:
                return _power(spread.scalar, Fraction(2 if law.is_std else 1))
            if not law.is_std:
                return spread.entry((*i, *j))
            return self.total(spread.axes[1:], lambda k: spread.entry((*i, *k)) * spread.entry((*j, *k)))
        same = reduce(
            lambda a, b: a * b, [_delta(*pair) for other in places[1:] for pair in zip(at, other, strict=True)], UNIT
        )
        match law:
            case Rademacher():
                return same.scaled({1: 0, 2: 1, 4: -2, 6: 16, 8: -272}.get(n, 0))
            case Uniform(low, high):
                if n == 1:
                    return (value(low) + value(high)).scaled(HALF)
                bernoulli = {2: Fraction(1, 6), 4: Fraction(-1, 30), 6: Fraction(1, 42), 8: Fraction(-1, 30)}.get(n)
                width = value(high) + value(low).scaled(-1)
                return ZERO if bernoulli is None else same * _power(width, Fraction(n)).scaled(bernoulli / n)
            case Exponential(rate):
                return same * _power(value(rate), Fraction(-n)).scaled(factorial(n - 1))
            case Bernoulli(chance):
                p, found = value(chance), {1: value(chance)}
                for k in range(2, n + 1):  # E[x^k] is p for all k
                    found[k] = p + added((found[j] * p).scaled(-comb(k - 1, j - 1)) for j in range(1, k))
                return same * found[n]
        raise Undecided("a law without cumulants here")

    def random_axes(self, law: "Normal | Uniform | Rademacher | Exponential | Bernoulli") -> tuple[Node, ...]:
        """The shape of a draw."""
        match law:
            case Rademacher(dim):
                return (dim,)
            case Normal(mean, spread, _):
                return self.of(spread).axes[:1] or self.of(mean).axes
            case Uniform(low, high):
                return self.together([self.of(low).axes, self.of(high).axes])
            case Exponential(only) | Bernoulli(only):
                return self.of(only).axes
        raise Undecided("a law without cumulants here")

    def index(self, node: Node) -> Place:
        terms = self.of(node).scalar.terms
        if len(terms) == 1:
            ((term, number),) = terms
            if not term and number.denominator == 1 and number > 0:
                return str(number)
            if number == 1 and len(term) == 1 and term[0][0][0] == "i" and term[0][1] == 1:
                return term[0][0][1]
        raise Undecided(f"the index {node}")

    def length(self, node: Node) -> Expr:
        return self.of(node).scalar

    def together(self, shapes: list[tuple[Node, ...]]) -> tuple[Node, ...]:
        """The shape that arrays are broadcast to."""
        widest = max(map(len, shapes))
        found: list[Node] = []
        for axis in range(widest):
            lengths = {shape[axis - widest] for shape in shapes if len(shape) >= widest - axis} - {ONE}
            if len(lengths) > 1:
                raise Undecided("axes of different lengths")
            found.append(lengths.pop() if lengths else ONE)
        return tuple(found)

    def each(self, function: Callable[..., Expr], *nodes: Node) -> Tensor:
        return self.spread(function, [self.of(node) for node in nodes])

    def spread(self, function: Callable[..., Expr], given: list[Tensor]) -> Tensor:
        """Entry by entry, broadcast."""
        axes = self.together([each.axes for each in given])

        def entry(at: tuple[Place, ...]) -> Expr:
            return function(*(each.entry(narrow(at, each.axes)) for each in given))

        return Tensor(axes, entry)

    def matmul(self, left: Tensor, right: Tensor) -> Tensor:
        if not left.axes or not right.axes or left.axes[-1] != right.axes[-2 if len(right.axes) > 1 else 0]:
            raise Undecided("a product that does not fit")
        length = left.axes[-1]
        batch = self.together([left.axes[:-2], right.axes[:-2]])
        rows, columns = left.axes[-2:-1], right.axes[-1:] if len(right.axes) > 1 else ()

        def entry(at: tuple[Place, ...]) -> Expr:
            outer, inner = at[: len(batch)], at[len(batch) :]
            mine = narrow(outer, left.axes[:-2]) + inner[: len(rows)]
            its = narrow(outer, right.axes[:-2])
            return self.total(
                [length],
                lambda k: left.entry((*mine, *k)) * right.entry((*its, *k, *(inner[len(rows) :] if columns else ()))),
            )

        return Tensor((*batch, *rows, *columns), entry)

    def total(self, lengths: Iterable[Node], body: Callable[[tuple[Place, ...]], Expr]) -> Expr:
        """Σ over new indices."""
        lengths = list(lengths)
        at = tuple(map(_place, lengths))
        ranges = [(place, self.length(n)) for place, n in zip(at, lengths, strict=True) if n != ONE]
        return summed(body(at), ranges)

    def indexed(self, function: str, index: str, highest: Node, body: Node) -> Tensor:
        def entry(at: tuple[Place, ...]) -> Expr:
            place = new_place()
            inside = self.with_value(index, _scalar(of_atom("i", place))).of(body)
            length = self.length(highest)
            found = summed(inside.entry(at), [(place, length)])
            return found * _power(length, Fraction(-1)) if function == "mean" else found

        if not isinstance(highest, Name | Number):
            raise Undecided("a range that is a formula")
        axes = self.with_value(index, _scalar(of_atom("i", "~"))).of(body).axes
        return Tensor(axes, entry)

    def all(self, operand: Tensor, function: Callable[[Expr], Expr] = lambda value: value) -> Expr:
        return self.total(operand.axes, lambda at: function(operand.entry(at)))

    def call(self, function: str, arguments: "tuple[Node | Text, ...]") -> Tensor:
        if function == "einsum" and isinstance(arguments[0], Text):
            return self.einsum(arguments[0].text, [self.of(part) for part in arguments[1:] if isinstance(part, Node)])
        nodes = [part for part in arguments if isinstance(part, Node)]
        if function in ("ones", "zeros", "I"):
            axes = (nodes[0], nodes[0]) if function == "I" else tuple(nodes)
            if function == "I":
                return Tensor(axes, lambda at: _delta(*at))
            return _constant(axes, UNIT if function == "ones" else ZERO)
        if function in ("reshape", "vec"):
            raise Undecided("entries in another shape")
        if function == "transpose":
            return self.exchanged(self.of(nodes[0]), [int(self.index(each)) - 1 for each in nodes[1:]])
        if function in FUNCTIONS:
            return self.each(FUNCTIONS[function], *nodes)
        given = [self.of(node) for node in nodes]
        first = given[0]
        match function:
            case "max" | "min" if len(given) > 1:
                flip = 1 if function == "max" else -1
                return self.spread(
                    lambda *parts: of_atom("max", tuple(sorted({p.scaled(flip) for p in parts}, key=repr))).scaled(
                        flip
                    ),
                    given,
                )
            case "sum":
                return _scalar(self.all(first))
            case "mean":
                return _scalar(self.all(first) * _power(self.entries(first), Fraction(-1)))
            case "sqnorm":
                return _scalar(self.all(first, lambda a: a * a))
            case "norm":
                return _scalar(_power(self.all(first, lambda a: a * a), HALF))
            case "dot" if first.axes == given[1].axes:
                return _scalar(self.total(first.axes, lambda at: first.entry(at) * given[1].entry(at)))
            case "tr" if len(first.axes) == 2 and first.axes[0] == first.axes[1]:
                return _scalar(self.total(first.axes[:1], lambda at: first.entry((*at, *at))))
            case "outer" if len(first.axes) == len(given[1].axes) == 1:
                other = given[1]
                return Tensor(first.axes + other.axes, lambda at: first.entry(at[:1]) * other.entry(at[1:]))
            case "dim":
                return _scalar(self.entries(first))
            case "softmax" if first.axes:

                def share(at: tuple[Place, ...]) -> Expr:
                    below = self.total(first.axes[-1:], lambda k: _exp(first.entry((*at[:-1], *k))))
                    return _exp(first.entry(at)) * _power(below, Fraction(-1))

                return Tensor(first.axes, share)
        raise Undecided(f"{function} has no index notation")

    def entries(self, value: Tensor) -> Expr:
        return reduce(lambda a, b: a * b, map(self.length, value.axes), UNIT)

    def exchanged(self, value: Tensor, axes: list[int]) -> Tensor:
        one, other = axes
        if not 0 <= min(axes) <= max(axes) < len(value.axes):
            raise Undecided("axes that are not there")

        def swapped(parts: tuple) -> tuple:
            found = list(parts)
            found[one], found[other] = found[other], found[one]
            return tuple(found)

        return Tensor(swapped(value.axes), lambda at: value.entry(swapped(at)))

    def einsum(self, text: str, given: list[Tensor]) -> Tensor:
        inputs, arrow, output = text.replace(" ", "").partition("->")
        groups = inputs.split(",")
        if not arrow:
            letters = inputs.replace(",", "")
            output = "".join(sorted(letter for letter in {*letters} if letters.count(letter) == 1))
        lengths: dict[str, Node] = {}
        for group, each in zip(groups, given, strict=True):
            if len(group) != len(each.axes):
                raise Undecided("einsum does not fit")
            for letter, length in zip(group, each.axes, strict=True):
                if lengths.setdefault(letter, length) != length:
                    raise Undecided("einsum does not fit")
        gone = [letter for letter in lengths if letter not in output]
        if not {*output} <= {*lengths} or len({*output}) < len(output):
            raise Undecided("einsum does not fit")

        def entry(at: tuple[Place, ...]) -> Expr:
            def body(places: tuple[Place, ...]) -> Expr:
                where = dict(zip(output, at, strict=True)) | dict(zip(gone, places, strict=True))
                parts = [each.entry(tuple(map(where.get, group))) for group, each in zip(groups, given, strict=True)]  # ty: ignore[invalid-argument-type]
                return reduce(lambda a, b: a * b, parts)

            return self.total([lengths[letter] for letter in gone], body)

        return Tensor(tuple(lengths[letter] for letter in output), entry)

    def gradient(self, name: str, body: Node, place: Tensor) -> Tensor:
        """The derivatives by every entry of a name, then the place put in for it."""
        moving = self.with_value(name, Tensor(place.axes, lambda at: of_atom("x", GRADIENT + name, at)))
        value = moving.of(body)

        def entry(at: tuple[Place, ...]) -> Expr:
            inner, by = at[: len(value.axes)], at[len(value.axes) :]
            found = _derivative(value.entry(inner), GRADIENT + name, by)
            return _put(found, GRADIENT + name, place)

        return Tensor(value.axes + place.axes, entry)


GRADIENT = "d "  # before the name that a derivative is taken by


def _constant(axes: tuple[Node, ...], value: Expr) -> Tensor:
    return Tensor(axes, lambda at: value)


def narrow(at: tuple[Place, ...], axes: tuple[Node, ...]) -> tuple[Place, ...]:
    """The indices of an array that is broadcast: its last axes, and 1 where it has one entry."""
    mine = at[len(at) - len(axes) :]
    return tuple("1" if length == ONE else place for place, length in zip(mine, axes, strict=True))


def _derivative(value: Expr, name: str, by: tuple[Place, ...]) -> Expr:
    """The derivative of an entry by the entry of a name."""
    parts = []
    for term, coefficient in value.terms:
        for number, (atom, exponent) in enumerate(term):
            if not mentions(atom, name):
                continue
            rest = [*term[:number], *term[number + 1 :]]
            lower = [(atom, exponent - 1)] if exponent != 1 else []
            outer = times([*rest, *lower], coefficient * exponent)
            parts.append(outer * _rate(atom, name, by))
    return added(parts)


def _rate(atom: Atom, name: str, by: tuple[Place, ...]) -> Expr:
    match atom:
        case ("x", _, at):
            return reduce(lambda a, b: a * b, [_delta(*pair) for pair in zip(at, by, strict=True)], UNIT)
        case ("exp", inner):
            return of_atom(*atom) * _derivative(inner, name, by)
        case ("log", inner):
            return _power(inner, Fraction(-1)) * _derivative(inner, name, by)
        case ("sin", inner):
            return FUNCTIONS["cos"](inner) * _derivative(inner, name, by)
        case ("cos", inner):
            return FUNCTIONS["sin"](inner).scaled(-1) * _derivative(inner, name, by)
        case ("plus", inner):
            return _derivative(inner, name, by)
        case ("sum", ranges, inner):
            fresh = {bound: new_place() for bound, _ in ranges}
            moved = _derivative(renamed(inner, fresh), name, by)
            return summed(moved, [(fresh[bound], length) for bound, length in ranges])
    raise Undecided(f"the derivative of {atom[0]}")


def mentions(part: Any, name: str) -> bool:
    if isinstance(part, Expr):
        return any(mentions(atom, name) for term, _ in part.terms for atom, _ in term)
    if isinstance(part, tuple):
        return (len(part) == 3 and part[0] == "x" and part[1] == name) or any(mentions(each, name) for each in part)
    return False


def _put(value: Expr, name: str, place: Tensor) -> Expr:
    """The entries of a name replaced by those of a tensor."""

    def put(atom: Atom) -> Expr:
        if not mentions(atom, name):
            return of_atom(*atom)
        match atom:
            case ("x", _, at):
                return place.entry(at)
            case ("sum", ranges, inner):
                fresh = {bound: new_place() for bound, _ in ranges}
                body = _put(renamed(inner, fresh), name, place)
                return summed(body, [(fresh[bound], length) for bound, length in ranges])
            case ("max", parts):
                return of_atom("max", tuple(sorted((_put(each, name, place) for each in parts), key=repr)))
            case (kind, inner):
                return FUNCTIONS[kind](_put(inner, name, place))
        raise Undecided("a place inside")

    return over_atoms(value, put)


def axes(asked: Question, node: Node) -> tuple[Node, ...]:
    """The lengths of the axes of an array, sizes or numbers, so that none is empty; () where it has no notation."""
    try:
        return Reader(asked).of(node).axes
    except (Undecided, ArithmeticError):
        return ()
