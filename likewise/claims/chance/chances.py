"""E and Var inside expressions, exactly: for every size at once, or on coordinates at given lengths."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import product
from typing import Protocol

from likewise.claims import arrays
from likewise.claims.algebra import invariants
from likewise.claims.algebra.coordinates import COMPARISONS, Coordinates, plain, sign
from likewise.claims.algebra.elementary import sqrt, substitute
from likewise.claims.algebra.exponomials import IMAGINARY, Atom, Form, form, of_atom, of_key
from likewise.claims.algebra.invariants import Invariants, Value, Vector, named, number
from likewise.claims.algebra.printing import text
from likewise.claims.arrays import Array
from likewise.claims.chance.moments import Normals, Sign, touches
from likewise.claims.chance.wick import NormalVector
from likewise.claims.language.tree import Binary, Call, Chain, Join, Moment, Negative, Node, Probability, names
from likewise.claims.verdict import Undecided

CASES = 4096  # of signs that are tried one by one
BESIDE = "#"  # the name of a vector that no claim can contain


class Law(Protocol):
    """A law that a normal form can be averaged over."""

    def expected(self, value: Form) -> Form: ...


@dataclass(frozen=True)
class Laws:
    """The independent laws of random names, and by which methods expectations were taken."""

    of: Mapping[str, tuple[Law, ...]]
    methods: set[str] = field(default_factory=set)

    def expected(self, value: Form) -> Form:
        """E over everything random."""
        self._exists(value)
        for name, laws in self.of.items():
            if not any(touches(atom, frozenset({name})) for atom in value.atoms()):
                continue
            normal = any(isinstance(law, Normals | NormalVector) for law in laws)
            self.methods.add(_method(value, name) if normal else METHODS[0])
            for law in laws:
                value = law.expected(value)
        return value

    def _exists(self, value: Form) -> None:
        """Refuses what one law would average to 0 although another has no mean of it: E[x/y], E[z*exp(x*y)]."""
        wide = frozenset(name for name, laws in self.of.items() if not all(isinstance(law, Sign) for law in laws))
        for powers, exponent in value.terms:
            for atom, e in powers:
                if touches(atom, wide) and (atom.parts or e < 0 or Fraction(e).denominator > 1):
                    raise Undecided(f"no exact expectation of {text(of_atom(atom, e))}")
            for inner, deeper in of_key(exponent).terms:
                if sum(abs(e) * _times(atom, wide) for atom, e in inner) > 1 or any(
                    touches(atom, wide) for atom in of_key(deeper).atoms()
                ):
                    raise Undecided(f"no exact expectation of exp({text(of_key(exponent))})")

    def variance(self, value: Form) -> Form:
        """Var X = E X^2 - (E X)^2."""
        return self.expected(value * value) - self.expected(value) ** 2

    @property
    def method(self) -> str:
        """The strongest tool that was needed."""
        return max(self.methods, key=METHODS.index, default=METHODS[0])


def _times(atom: Atom, names: frozenset[str]) -> int:
    """How many random factors an atom is: two for sqnorm(w)."""
    return max(sum(touches(Atom("invariant", names=(name,)), names) for name in atom.names), touches(atom, names))


METHODS = ("moments", "Wick", "moment generating function", "characteristic function")


def _method(value: Form, name: str) -> str:
    exponents = [of_key(exponent) for _, exponent in value.terms]
    mine = [inner for inner in exponents if any(touches(atom, frozenset({name})) for atom in inner.atoms())]
    return METHODS[3] if any(IMAGINARY in inner.atoms() for inner in mine) else METHODS[2] if mine else METHODS[1]


@dataclass(frozen=True)
class Joined:
    """[a, b, ...]: numbers and vectors whose lengths are not added up."""

    parts: tuple[Value, ...]


Many = Value | Joined


@dataclass(frozen=True)
class ForEverySize(Invariants):
    """The value of expressions with E and Var, whatever the sizes are."""

    laws: Laws

    def evaluate(self, node: Node) -> Many:  # ty: ignore[incompatible-method-override]
        match node:
            case Moment(kind, body):
                value = self.evaluate(body)
                return self._expected(value) if kind == "E" else self.laws.variance(number(_single(value)))
            case Join(parts):
                values = [self.evaluate(part) for part in parts]
                return Joined(tuple(inner for v in values for inner in (v.parts if isinstance(v, Joined) else (v,))))
            case Negative(operand):
                return _each(lambda value: invariants.times(form(-1), value), self.evaluate(operand))
            case Binary("+" | "-" | "*" | "/" as operator, left, right):
                return _each(invariants.OPERATORS[operator], self.evaluate(left), self.evaluate(right))
            case Call("dot" | "sqnorm" | "norm" | "sum" as function, arguments):
                given = [self.evaluate(part) for part in arguments if isinstance(part, Node)]
                if any(isinstance(value, Joined) for value in given):
                    return _reduced(function, given)
        return super().evaluate(node)

    def _expected(self, value: Many) -> Many:
        if isinstance(value, Joined):
            return Joined(tuple(_single(self._expected(part)) for part in value.parts))
        if isinstance(value, Form):
            return self.laws.expected(value)
        # A vector is known by its product with any other: that one is taken out of the result again.
        other = named(BESIDE, value.length)
        found: dict[invariants.Product, Form] = {}
        for (powers, exponent), coefficient in self.laws.expected((value * other).total()).terms.items():
            (mine,) = (atom for atom, _ in powers if BESIDE in atom.names)
            rest = Form({(tuple(pair for pair in powers if pair[0] != mine), exponent): coefficient})
            entries = tuple(name for name in mine.names if name != BESIDE)
            found[entries] = found.get(entries, form(0)) + rest
        return Vector(value.length, found)


def _single(value: Many) -> Value:
    if isinstance(value, Joined):
        raise Undecided("expected a number or a vector, got several")
    return value


def _each(operation: Callable[..., Value], *values: Many) -> Many:
    """An operation on every part; numbers go with all parts."""
    counts = {len(value.parts) for value in values if isinstance(value, Joined)}
    if not counts:
        return operation(*values)
    if len(counts) > 1 or any(isinstance(value, Vector) for value in values):
        raise Undecided("[...] of different parts")
    (count,) = counts
    spread = [value.parts if isinstance(value, Joined) else (value,) * count for value in values]
    return Joined(tuple(operation(*parts) for parts in zip(*spread, strict=True)))


def _reduced(function: str, given: list[Many]) -> Form:
    """dot, sqnorm, norm or sum, part by part."""
    products = _each(invariants.times, *(given * 2 if len(given) == 1 else given)) if function != "sum" else given[0]
    parts = products.parts if isinstance(products, Joined) else ()
    total = sum((number(invariants.FUNCTIONS["sum"](part)) for part in parts), form(0))
    return sqrt(total) if function == "norm" else total


@dataclass(frozen=True)
class AtLengths(Coordinates):
    """The value of expressions with E, Var and P of signs, where every axis has a length."""

    laws: Laws = field(default_factory=lambda: Laws({}))

    def evaluate(self, node: Node) -> Array:
        match node:
            case Moment(kind, body):
                average = self.laws.expected if kind == "E" else self.laws.variance
                return self.evaluate(body).map(lambda entry: plain(average(form(entry))))
            case Probability(event):
                return arrays.scalar(self._probability(event))
        return super().evaluate(node)

    def _probability(self, event: Chain) -> Fraction:
        """The share of all signs for which an event is true."""
        used = set().union(*map(names, event.terms)) & set(self.laws.of)
        signs = [law for name in sorted(used) for law in self.laws.of[name]]
        if not signs or not all(isinstance(law, Sign) for law in signs) or 2 ** len(signs) > CASES:
            raise Undecided(f"P[{event}] is not counted exactly")
        atoms: list[Atom] = [law.atom for law in signs if isinstance(law, Sign)]
        terms = [form(self.evaluate(term).scalar) for term in event.terms]
        true = 0
        for values in product((1, -1), repeat=len(atoms)):
            numbers = [substitute(term, dict(zip(atoms, values, strict=True))) for term in terms]
            pairs = zip(event.comparisons, numbers, numbers[1:], strict=False)
            true += all(COMPARISONS[comparison](sign(plain(left - right))) for comparison, left, right in pairs)
        return Fraction(true, 2 ** len(atoms))
