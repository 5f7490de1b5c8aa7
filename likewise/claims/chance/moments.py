"""Exact expectations over random numbers: E of a normal form is a normal form in what is not random.

For w ~ N(m, S):  E[P(w)·e^{a·w}] = e^{a·m + a'Sa/2} · E[P(w + Sa)], also for complex a, which gives sines and cosines;
and E[w_i·P(w)] = m_i·E[P] + Σ_j S_ij·E[∂_j P], which is Wick's sum over pairings, one pair at a time.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from math import factorial

from likewise.claims.algebra.elementary import substitute
from likewise.claims.algebra.exponomials import Atom, Form, Key, exp, form, of_atom, of_key
from likewise.claims.algebra.printing import text
from likewise.claims.language.limits import DEGREE
from likewise.claims.verdict import Undecided


class Bent(Undecided):
    """Raised for what a law averages only piece by piece (`pieces`)."""


Powers = tuple[tuple[Atom, Fraction | int], ...]


def touches(atom: Atom, names: frozenset[str]) -> bool:
    """Whether an atom depends on one of the names; a vector exp(a*w) is named after what it is made of."""
    parts = {word for name in atom.names for word in re.findall(r"\w+", name)}
    if (atom.kind == "variable" and atom.name in names) or parts & names:
        return True
    return any(touches(inner, names) for key in atom.parts for inner in of_key(key).atoms())


@dataclass(frozen=True)
class Split:
    """A term  c · Π random^e · others · exp(Σ slope·random + rest)."""

    random: Mapping[Atom, int]
    others: Form
    slopes: Sequence[tuple[Atom, Form]]
    rest: Form


def split(powers: Powers, exponent: Key, names: frozenset[str]) -> Split:
    """A term taken apart, if what is random stands in it as a polynomial times an exponential of something linear."""
    random: dict[Atom, int] = {}
    slopes: list[tuple[Atom, Form]] = []
    rest = form(0)
    for atom, e in powers:
        if touches(atom, names):
            if Fraction(e).denominator > 1 or e < 0:
                raise Undecided(f"no exact expectation of {text(of_atom(atom, e))}")
            random[_plain(atom, names)] = int(e)
    if sum(random.values()) > DEGREE:
        raise Undecided(f"degree above {DEGREE}")
    for (inner, deeper), coefficient in of_key(exponent).terms.items():
        mine = [(atom, e) for atom, e in inner if touches(atom, names)]
        if len(mine) > 1 or any(e != 1 for _, e in mine) or any(touches(a, names) for a in of_key(deeper).atoms()):
            raise Undecided(f"no exact expectation of exp({text(of_key(exponent))})")
        piece = Form({(tuple(pair for pair in inner if pair not in mine), deeper): coefficient})
        slopes += [(_plain(atom, names), piece) for atom, _ in mine]
        rest = rest if mine else rest + piece
    others = tuple(pair for pair in powers if not touches(pair[0], names))
    return Split(random, Form({(others, ()): Fraction(1)}), slopes, rest)


def _plain(atom: Atom, names: frozenset[str]) -> Atom:
    """The atom, if it is a random number or an invariant of random vectors and nothing is done to it."""
    if atom.parts or any(touches(Atom("invariant", names=(name,)), names - {name}) for name in atom.names):
        raise Undecided(f"no exact expectation of {text(of_atom(atom))}")
    return atom


@dataclass(frozen=True)
class Normals:
    """Numbers with a joint normal law."""

    atoms: Sequence[Atom]
    means: Sequence[Form]
    covariance: Sequence[Sequence[Form]]

    def expected(self, value: Form) -> Form:
        """E over these numbers.

        >>> from likewise.claims.algebra.elementary import cos
        >>> from likewise.claims.algebra.exponomials import variable
        >>> x = Normals([Atom("variable", "x")], [form(0)], [[variable("v")]])
        >>> text(x.expected(variable("x") ** 4)), text(x.expected(cos(variable("x"))))
        ('3*v^2', 'exp(-v/2)')
        """
        names, total, places = frozenset(atom.name for atom in self.atoms), form(0), range(len(self.atoms))
        for (powers, exponent), coefficient in value.terms.items():
            parts = split(powers, exponent, names)
            slopes = [sum((piece for atom, piece in parts.slopes if atom == mine), form(0)) for mine in self.atoms]
            turned = [sum((self.covariance[i][j] * slopes[j] for j in places), form(0)) for i in places]
            tilt = sum((slopes[i] * (self.means[i] + turned[i] * Fraction(1, 2)) for i in places), parts.rest)
            moment = self._moment([parts.random.get(atom, 0) for atom in self.atoms], turned)
            total = total + parts.others * coefficient * exp(tilt) * moment
        return total

    def _moment(self, exponents: Sequence[int], shift: Sequence[Form]) -> Form:
        """E of Π x_i^e_i, the means shifted."""

        @cache
        def moment(left: tuple[int, ...]) -> Form:
            i = next((place for place, e in enumerate(left) if e), None)
            if i is None:
                return form(1)
            less = tuple(e - (place == i) for place, e in enumerate(left))
            total = (self.means[i] + shift[i]) * moment(less)
            for j, e in enumerate(less):
                if e and self.covariance[i][j].terms:
                    fewer = tuple(e - (place == j) for place, e in enumerate(less))
                    total = total + self.covariance[i][j] * e * moment(fewer)
            return total

        return moment(tuple(exponents))


@dataclass(frozen=True)
class Sign:
    """-1 or 1, each with probability 1/2."""

    atom: Atom

    def expected(self, value: Form) -> Form:
        """The mean of both cases."""
        return (substitute(value, {self.atom: 1}) + substitute(value, {self.atom: -1})) * Fraction(1, 2)


@dataclass(frozen=True)
class UniformNumber:
    """U(lowest, highest): E[x^n] = Σ_k lowest^k·highest^(n-k) / (n + 1)."""

    atom: Atom
    lowest: Form
    highest: Form

    def expected(self, value: Form) -> Form:
        """E over this number, of a polynomial in it."""
        total = form(0)
        for (powers, exponent), coefficient in value.terms.items():
            parts = split(powers, exponent, frozenset({self.atom.name}))
            if any(atom == self.atom for atom, _ in parts.slopes):
                raise Bent(f"no exact expectation of exp({text(of_key(exponent))}) under a uniform law")
            n = parts.random.get(self.atom, 0)
            moment = sum((self.lowest**k * self.highest ** (n - k) for k in range(n + 1)), form(0)) / (n + 1)
            whole = Form({(tuple(pair for pair in powers if pair[0] != self.atom), exponent): coefficient})
            total = total + whole * moment
        return total


@dataclass(frozen=True)
class ExponentialNumber:
    """Exp(rate): E[x^n] = n!/rate^n."""

    atom: Atom
    rate: Form

    def expected(self, value: Form) -> Form:
        """E over this number, of a polynomial in it.

        >>> from likewise.claims.algebra.exponomials import variable
        >>> text(ExponentialNumber(Atom("variable", "x"), form(2)).expected(variable("x") ** 2))
        '1/2'
        """
        total = form(0)
        for (powers, exponent), coefficient in value.terms.items():
            parts = split(powers, exponent, frozenset({self.atom.name}))
            if any(atom == self.atom for atom, _ in parts.slopes):
                raise Bent(f"no exact expectation of exp({text(of_key(exponent))}) under an exponential law")
            n = parts.random.get(self.atom, 0)
            rest = Form({(tuple(pair for pair in powers if pair[0] != self.atom), exponent): coefficient})
            total = total + rest * factorial(n) / self.rate**n
        return total


@dataclass(frozen=True)
class Coin:
    """1 with probability p, else 0."""

    atom: Atom
    chance: Form

    def expected(self, value: Form) -> Form:
        """The weighted mean of both cases."""
        up, down = (substitute(value, {self.atom: case}) for case in (1, 0))
        return up * self.chance + down * (1 - self.chance)
