"""The sizes a claim allows: their cone in logarithms, and the rays t^y in it."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import islice, product

from likewise.claims.growth.linear import LinearForm, Row, lattice
from likewise.claims.growth.powers import Magnitude, Power, Sum, added, magnitude, multiplied, power, raised, times
from likewise.claims.language.claim import Claim
from likewise.claims.language.tree import Call, Comparison, Node, Text
from likewise.claims.verdict import Undecided

CASES, RADIUS, RAYS = 64, 3, 20_000
LEADING: dict[Comparison, Callable[[Fraction], bool]] = {
    "<": lambda value: value < 0,
    "<=": lambda value: value <= 0,
    "==": lambda value: value == 0,
    "!=": lambda value: value != 0,
    ">=": lambda value: value >= 0,
    ">": lambda value: value > 0,
}


@dataclass(frozen=True)
class Ray:
    """Free sizes c*t^y for t = 1, 2, 3, ...: name -> (c, y)."""

    sizes: Mapping[str, tuple[int, int]]

    def along(self, terms: Sum) -> dict[Fraction, Fraction]:
        """A sum as a sum of powers of t: exponent -> coefficient, without zeros."""
        total: dict[Fraction, Fraction] = {}
        for key, value in terms.items():
            degree = Fraction(0)
            for name, exponent in key:
                factor, move = self.sizes[name]
                degree += exponent * move
                if factor != 1 and exponent.denominator > 1:
                    raise Undecided("roots of sizes next to constant factors")
                value *= Fraction(factor) ** int(exponent) if factor != 1 else 1
            total[degree] = total.get(degree, Fraction(0)) + value
        return {degree: value for degree, value in total.items() if value}


@dataclass(frozen=True)
class Sizes:
    """The sizes of a claim: those given by an equation are replaced by it, the others are free."""

    names: tuple[str, ...]
    equations: Mapping[str, Magnitude]  # over free sizes
    conditions: tuple[tuple[Sum, Comparison], ...]  # what is compared with 0, over free sizes
    forgotten: str = ""  # an assumption that is no matter of powers: proofs do without it, rays cannot

    @classmethod
    def of(cls, claim: Claim) -> "Sizes":
        """What a claim says of its sizes, equations in the order in which they need each other."""
        sizes = cls(tuple(size.name for size in claim.sizes), {}, ())
        waiting = {s.name: magnitude(s.equation, sizes.names) for s in claim.sizes if s.equation is not None}
        while waiting:
            ready = [name for name, part in waiting.items() if not waiting.keys() & _names(part)]
            if not ready:
                raise Undecided(f"the equations of {', '.join(waiting)} need each other")
            known = {name: sizes.over_free(waiting.pop(name)) for name in ready}
            sizes = cls(sizes.names, {**sizes.equations, **known}, ())
        minus_one = Magnitude(({(): Fraction(-1)},))
        least = [_single(added(part, minus_one)) for part in sizes.equations.values()]
        conditions: list[tuple[Sum, Comparison]] = [(terms, ">=") for terms in least]
        forgotten = ""
        for chain in claim.assumptions:
            for left, sign, right in zip(chain.terms, chain.comparisons, chain.terms[1:], strict=False):
                try:
                    pairs = _without_extremes(left, sign, right)
                    conditions += [(sizes.difference(a, b), sign) for a, b in pairs]
                except Undecided:
                    forgotten = str(chain)
        return cls(sizes.names, sizes.equations, tuple(conditions), forgotten)

    @property
    def free(self) -> list[str]:
        return [name for name in self.names if name not in self.equations]

    def difference(self, left: Node, right: Node) -> Sum:
        """left - right over free sizes."""
        sides = magnitude(left, self.names), magnitude(right, self.names).scaled(Fraction(-1))
        return _single(self.over_free(added(*sides)))

    def assuming(self, *pairs: tuple[Power, Power]) -> "Sizes":
        """The same with small <= large for each pair."""
        more = [Magnitude(({small: Fraction(1), large: Fraction(-1)},)) for small, large in pairs]
        conditions = (*self.conditions, *((_single(self.over_free(each)), "<=") for each in more))
        return Sizes(self.names, self.equations, conditions, self.forgotten)

    def renamed(self, key: Power) -> Power:
        """With M == D assumed: D for M, whichever is declared first."""
        first: dict[str, str] = {}
        for terms, comparison in self.conditions:
            pair = sorted((name for factors in terms for name, _ in factors), key=self.names.index)
            if comparison == "==" and sorted(terms.values()) == [-1, 1] and {*terms} == {((n, 1),) for n in pair}:
                first[pair[1]] = first.get(pair[0], pair[0])
        product: Power = ()
        for name, exponent in key:
            product = times(product, ((first.get(name, name), exponent),))
        return product

    def over_free(self, part: Magnitude) -> Magnitude:
        """The equations put in."""
        unknown = _names(part) - set(self.names)
        if unknown:
            raise Undecided(f"{min(unknown)} is no size of the claim")
        if not self.equations.keys() & _names(part):
            return part
        sums, exact = [], part.exact
        for terms in part.sums:
            total = Magnitude(({},))
            for key, value in terms.items():
                term = Magnitude(({power({name: e for name, e in key if name not in self.equations}): Fraction(1)},))
                for name, exponent in key:
                    if name in self.equations:
                        term = multiplied(term, raised(self.equations[name], exponent))
                exact &= term.exact
                total = added(total, Magnitude((_single(term),)).scaled(value))
            sums += total.sums
        return Magnitude(tuple(sums), exact)

    @cached_property
    def cone(self) -> list[list[Row]]:
        """In logarithms: alternatives, each a list of rows. Constant factors vanish, and strict is as good as not."""
        alternatives = [[Row(-LinearForm.of(name), "<=") for name in self.free]]
        for terms, comparison in self.conditions:
            above = [key for key, value in terms.items() if value > 0]
            below = [key for key, value in terms.items() if value < 0]
            if comparison in ("<", "<=", "=="):
                alternatives = _split(alternatives, above, below)
            if comparison in (">", ">=", "=="):
                alternatives = _split(alternatives, below, above)
        return alternatives

    def allows(self, ray: Ray) -> bool:
        """Whether, from some t on, every size is a whole number of at least 1 and the assumptions hold."""
        if self.forgotten:
            raise Undecided(f"the assumption {self.forgotten} is not decided along a ray")
        for part in self.equations.values():
            value = ray.along(_single(part))
            if any(degree < 0 or degree.denominator > 1 or c.denominator > 1 for degree, c in value.items()):
                return False
        for terms, comparison in self.conditions:
            value = ray.along(terms)
            if not LEADING[comparison](value[max(value)] if value else Fraction(0)):
                return False
        return True

    def rays(self, more: tuple[tuple[int, ...], ...] = ()) -> Iterator[Ray]:
        """Whole rays, smallest first, then `more`; with constant factors only after all without."""
        free = self.free
        moves = [*lattice(len(free), RADIUS, least=0), *more]
        found = {abs(value) for terms, _ in self.conditions for value in terms.values()}
        constants = sorted({1, 2} | {int(value) for value in found if value.denominator == 1 and value < RAYS})
        factors = product(constants if len(constants) > 1 and self.conditions else [1], repeat=len(free))
        for scale, move in islice(((scale, move) for scale in factors for move in moves), RAYS):
            yield Ray(dict(zip(free, zip(scale, move, strict=True), strict=True)))

    def text(self, ray: Ray) -> str:
        """The ray as people write it: sizes that stay are left out, unless an equation ties them to one that moves.

        b=n=h=d=t, k=1 where d = h*k.
        """
        values = {name: ray.along({((name, Fraction(1)),): Fraction(1)}) for name in self.free}
        values |= {name: ray.along(_single(part)) for name, part in self.equations.items()}
        moving = {name for name in self.names if set(values[name]) != {Fraction(0)}}
        equations = [{name, *_names(part)} for name, part in self.equations.items()]
        tied = {name for group in equations if group & moving for name in group}
        shown = [name for name in self.names if name in moving | tied or values[name] != {Fraction(0): Fraction(1)}]
        groups: dict[str, list[str]] = {}
        for name in sorted(shown, key=lambda name: name not in moving):
            groups.setdefault(_power_of_t(values[name]), []).append(name)
        return ", ".join(f"{'='.join(group)}={value}" for value, group in groups.items())


def _power_of_t(value: Mapping[Fraction, Fraction]) -> str:
    """2*t^3 + 1."""
    texts = []
    for degree, factor in sorted(value.items(), reverse=True):
        moving = [] if not degree else ["t" if degree == 1 else f"t^{exponent_text(degree)}"]
        texts.append("*".join([str(factor)] * (factor != 1 or not moving) + moving))
    return " + ".join(texts)


def exponent_text(exponent: Fraction) -> str:
    """2, or (1/2)."""
    return str(exponent) if exponent.denominator == 1 else f"({exponent})"


def logarithm(key: Power) -> LinearForm:
    """The linear form that a product of powers is in the logarithms.

    >>> logarithm((("D", Fraction(1, 2)), ("N", Fraction(2))))
    LinearForm(coefficients={'D': Fraction(1, 2), 'N': Fraction(2, 1)}, constant=Fraction(0, 1))
    """
    return LinearForm(dict(key))


def _names(part: Magnitude) -> set[str]:
    return {name for terms in part.sums for key in terms for name, _ in key}


def _single(part: Magnitude) -> Sum:
    if not part.exact or len(part.sums) > 1:
        raise Undecided("a maximum, a minimum or a root where an exact sum is needed")
    return part.sums[0]


def _without_extremes(left: Node, comparison: Comparison, right: Node) -> list[tuple[Node, Node]]:
    """max(a, b) <= c is a <= c and b <= c, and so for c >= max(a, b), a <= min(b, c) and min(b, c) >= a."""
    lower, upper = ("max", "min") if comparison in ("<", "<=") else ("min", "max")
    sides = [left], [right]
    for side, function in zip(sides, (lower, upper), strict=True):
        (node,) = side
        if isinstance(node, Call) and node.function == function and comparison not in ("==", "!="):
            side[:] = [argument for argument in node.arguments if not isinstance(argument, Text)]
    return list(product(*sides))


def _split(alternatives: list[list[Row]], small: list[Power], large: list[Power]) -> list[list[Row]]:
    """The sum of `small` at most that of `large`: each of the small ones is at most the largest of the large ones."""
    for key in small:
        alternatives = [
            [*rows, Row(logarithm(key) - logarithm(other), "<=")] for rows in alternatives for other in large
        ]
        if len(alternatives) > CASES:
            raise Undecided(f"the assumptions have more than {CASES} cases")
    return alternatives
