"""Exact expectations over random vectors of any length D: contraction on the power sums S(x, y, ...) = Σ_i x_i·y_i···.

For w ~ N(m, c·I), taking one w out of a factor:
E[S(w, g)·F] = E[S(m, g)·F] + c·E[Σ_i ∂_i (g_i·F)],  and a derivative glues two factors into one, or closes a loop,
which is S() = D.
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from itertools import combinations

from likewise.claims.algebra.exponomials import Atom, Form, exp, form, of_atom
from likewise.claims.algebra.invariants import Product, Vector
from likewise.claims.algebra.printing import text
from likewise.claims.chance.moments import Split, split
from likewise.claims.verdict import Undecided

STEPS = 5_000  # of one contraction
CUMULANTS = {2: 1, 4: -2, 6: 16, 8: -272}  # of a sign: the coefficients of log cosh


def power_sum(names: Product, length: Form) -> Form:
    """Σ_i x_i·y_i···; of nothing it is the length."""
    return of_atom(Atom("invariant", text(length), names=tuple(sorted(names)))) if names else length


def _factors(parts: Split) -> list[Product]:
    return [atom.names for atom, e in parts.random.items() for _ in range(e)]


@dataclass(frozen=True)
class NormalVector:
    """w ~ N(mean, variance·I)."""

    name: str
    mean: Vector
    variance: Form

    def expected(self, value: Form) -> Form:
        """E over this vector.

        >>> from likewise.claims.algebra.exponomials import size
        >>> D, w = size("D"), of_atom(Atom("invariant", "D", names=("w", "w")))
        >>> text(NormalVector("w", Vector(D, {}), form(1)).expected(w**2))
        'D^2 + 2*D'
        """
        total, half = form(0), Fraction(1, 2)
        for (powers, exponent), coefficient in value.terms.items():
            parts = split(powers, exponent, frozenset({self.name}))
            slope = Vector(self.mean.length, {})
            for atom, piece in parts.slopes:
                slope = slope + Vector(self.mean.length, {self._linear(atom): piece})
            turned = slope.scaled(self.variance)
            tilt = parts.rest + (slope * (self.mean + turned.scaled(form(half)))).total()
            moment = self._moment(_factors(parts), self.mean + turned)
            total = total + parts.others * coefficient * exp(tilt) * moment
        return total

    def _linear(self, atom: Atom) -> Product:
        if atom.names.count(self.name) != 1:
            raise Undecided(f"no exact expectation of exp(... {text(of_atom(atom))})")
        return tuple(name for name in atom.names if name != self.name)

    def _moment(self, factors: list[Product], mean: Vector) -> Form:
        w, length, steps = self.name, mean.length, [0]

        @cache
        def moment(left: tuple[Product, ...]) -> Form:
            steps[0] += 1
            if steps[0] > STEPS:
                raise Undecided(f"more than {STEPS} contractions")
            place = next((place for place, names in enumerate(left) if w in names), None)
            if place is None:
                product = form(1)
                for names in left:
                    product = product * power_sum(names, length)
                return product
            others, inner = left[:place] + left[place + 1 :], _without(left[place], w)
            total = form(0)
            for names, coefficient in mean.terms.items():
                total = total + coefficient * moment(_sorted(inner + names, *others))
            if w in inner:
                loop = moment(_sorted(_without(inner, w), *others))
                total = total + self.variance * inner.count(w) * loop
            for i, names in enumerate(others):
                if w in names:
                    glued = _sorted(inner + _without(names, w), *others[:i], *others[i + 1 :])
                    total = total + self.variance * names.count(w) * moment(glued)
            return total

        return moment(_sorted(*factors))


def _without(names: Product, name: str) -> Product:
    place = names.index(name)
    return names[:place] + names[place + 1 :]


def _sorted(*factors: Product) -> tuple[Product, ...]:
    return tuple(sorted(tuple(sorted(names)) for names in factors))


@dataclass(frozen=True)
class SignVector:
    """A vector of independent fair signs: squares are 1, and a block of n factors counts with the n-th cumulant."""

    name: str
    length: Form

    def expected(self, value: Form) -> Form:
        """E over this vector, of a polynomial in it.

        >>> from likewise.claims.algebra.exponomials import size
        >>> s = of_atom(Atom("invariant", "D", names=("s",)))
        >>> text(SignVector("s", size("D")).expected(s**4))
        '3*D^2 - 2*D'
        """
        total = form(0)
        for (powers, exponent), coefficient in value.terms.items():
            parts = split(powers, exponent, frozenset({self.name}))
            if parts.slopes:
                raise Undecided(f"no exact expectation of an exponential of {self.name} for every size")
            known, odd = form(1), []
            for names in _factors(parts):
                rest = tuple(name for name in names if name != self.name)
                if (len(names) - len(rest)) % 2:
                    odd.append(rest)
                else:
                    known = known * power_sum(rest, self.length)
            if len(odd) > max(CUMULANTS):
                raise Undecided(f"more than {max(CUMULANTS)} factors of {self.name}")
            total = total + parts.others * coefficient * exp(parts.rest) * known * self._blocks(tuple(odd))
        return total

    def _blocks(self, factors: tuple[Product, ...]) -> Form:
        """The sum over all ways to put the factors into blocks of even size."""
        if not factors:
            return form(1)
        first, others, total = factors[0], range(1, len(factors)), form(0)
        for count in range(1, len(factors), 2):
            for chosen in combinations(others, count):
                block = power_sum(sum((factors[i] for i in chosen), first), self.length)
                left = tuple(factors[i] for i in others if i not in chosen)
                total = total + block * CUMULANTS[count + 1] * self._blocks(left)
        return total
