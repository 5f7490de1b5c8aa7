"""E and Var inside expressions, exactly: for every size at once, or on coordinates at given lengths."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import product
from typing import Any, Protocol

from likewise.claims import arrays
from likewise.claims.algebra.coordinates import COMPARISONS, EXACT, Coordinates, plain, sign
from likewise.claims.algebra.elementary import maximum, step, substitute
from likewise.claims.algebra.exponomials import IMAGINARY, Atom, Form, exp, form, of_atom, of_key
from likewise.claims.algebra.invariants import (
    EVERY_SIZE,
    OPERATIONS,
    Invariants,
    Product,
    Value,
    Vector,
    named,
    number,
    over,
    times,
)
from likewise.claims.algebra.printing import text
from likewise.claims.arrays import Array, Entry
from likewise.claims.chance import pieces, special
from likewise.claims.chance.moments import Bent, Coin, ExponentialNumber, Normals, Sign, UniformNumber, touches
from likewise.claims.chance.wick import NormalVector
from likewise.claims.language.tree import Chain, Comparison, Join, Moment, Node, Probability
from likewise.claims.reader import Scalars
from likewise.claims.verdict import Undecided

CASES = 4096  # of signs that are tried one by one
OPPOSITE: dict[Comparison, Comparison] = {"<": ">=", "<=": ">", ">": "<=", ">=": "<"}
OPEN: dict[Comparison, Comparison] = {"<": ">", "<=": ">="}
BESIDE = "#"  # the name of a vector that no claim can contain


class Law(Protocol):
    """A law that a normal form can be averaged over."""

    def expected(self, value: Form) -> Form: ...


@dataclass(frozen=True)
class Laws:
    """The independent laws of random names, and by which methods expectations were taken."""

    of: Mapping[str, tuple[Law, ...]]
    methods: set[str] = field(default_factory=set)
    positive: tuple[Form, ...] = ()  # by the assumptions

    def expected(self, value: Form) -> Form:
        """E over everything random: of what has kinks piece by piece, of everything else by moments."""
        try:
            return self._mean(value)
        except Undecided:
            found = self._otherwise(value)
            if found is None:
                raise
            return found

    def _mean(self, value: Form) -> Form:
        bent = {term: c for term, c in value.terms.items() if self._bends(Form({term: c}))}
        smooth = Form({term: c for term, c in value.terms.items() if term not in bent})
        try:
            total = self._by_moments(smooth)
        except Bent:
            total, bent = form(0), value.terms
        for term, coefficient in bent.items():
            total = total + self._by_pieces(Form({term: coefficient}))
        return total

    def _bends(self, value: Form) -> bool:
        wide = self._wide
        return any(
            touches(atom, wide) and atom.name in pieces.BENT and atom.parts
            for powers, _ in value.terms
            for atom, _ in powers
        )

    @property
    def _wide(self) -> frozenset[str]:
        """Names whose laws have a density."""
        return frozenset(
            name for name, laws in self.of.items() if not all(isinstance(law, Sign | Coin) for law in laws)
        )

    def _by_pieces(self, value: Form) -> Form:
        """E of one term with a kink: one number after the other, or one linear form of normal numbers."""
        wide, reasons = self._wide, []
        found = self._positive_part(value)
        if found is not None:
            return found
        for atom in sorted(value.atoms()):
            if atom.kind == "variable" and atom.name in wide:
                law = next((d for each in self.of[atom.name] if (d := pieces.density(each, atom)) is not None), None)
                if law is None:
                    continue
                for way in (pieces.expected, pieces.uniform_positive_part):
                    try:
                        return self.expected(way(value, law))
                    except Undecided as reason:
                        reasons.append(str(reason))
        if reasons or any(touches(atom, wide) for atom in value.atoms()):
            raise Undecided(reasons[0] if reasons else f"no exact expectation of {text(value)}")
        return self._by_moments(value)

    def _otherwise(self, value: Form) -> Form | None:
        """E by the closed forms of `special`, term by term; or of an odd function under even laws."""
        total = form(0)
        try:
            for term, coefficient in value.terms.items():
                each = Form({term: coefficient})
                try:
                    total = total + self._mean(each)
                except Undecided:
                    found = self._special(each)
                    if found is None:
                        raise
                    total = total + found
        except Undecided:
            return self._by_symmetry(value)
        return total

    def _numbers(self, kind: type) -> list[Any]:
        return [law for laws in self.of.values() for law in laws if isinstance(law, kind)]

    def _special(self, term: Form) -> Form | None:
        """E of one term with a root, a logarithm or a quotient of uniform numbers, a length, or a race."""
        for law in self._numbers(UniformNumber):
            inside = [a for powers, _ in term.terms for a, e in powers if law.atom in of_atom(a).atoms()
                      and (a != law.atom or e < 0 or Fraction(e).denominator > 1)]  # fmt: skip
            if inside:
                return self.expected(special.uniform_mean(term, law))
        [((powers, exponent), coefficient)] = term.terms.items()
        names = frozenset(self.of)
        random = [(atom, e) for atom, e in powers if touches(atom, names)]
        if len(random) != 1 or any(touches(atom, names) for atom in of_key(exponent).atoms()):
            return None
        ((atom, e),) = random
        others = Form({(tuple(pair for pair in powers if pair[0] != atom), exponent): coefficient})
        if atom.kind == "power" and Fraction(2 * e).denominator == 1:
            found = special.radial(of_key(atom.parts[0]), self._numbers(Normals))
            if found is not None and not found[1].terms and self.is_positive(found[0] * found[3]):
                factor, _, atoms, variance = found
                n, twice = len(atoms), int(2 * e)
                return others * (factor * variance * 2) ** e * special.gamma_ratio(n, twice)
        if atom.name == "max" and len(atom.parts) == 2 and e == 1:
            a, b = map(of_key, atom.parts)
            run = special.race(a - b, self._numbers(ExponentialNumber), self.is_positive)
            if run is not None:
                return others * (run[1] + self.expected(b))
        return None

    def _by_symmetry(self, value: Form) -> Form | None:
        """E of f where (f(x) + f(-x))/2 is one number, the laws are even, and f grows no faster than a polynomial."""
        flipped: dict[Atom, Form] = {}
        for laws in self.of.values():
            for law in laws:
                if isinstance(law, Normals) and not any(mean.terms for mean in law.means):
                    flipped |= {atom: -of_atom(atom) for atom in law.atoms}
                elif isinstance(law, Sign) or (isinstance(law, UniformNumber) and not (law.lowest + law.highest).terms):
                    flipped[law.atom] = -of_atom(law.atom)
        used = {atom for atom in value.atoms() if touches(atom, frozenset(self.of)) and not atom.parts}
        if not used or not used <= flipped.keys():
            return None
        if not all(special.grows_slowly(term, frozenset(used)) for term in value.terms):
            return None
        self.methods.add("moments")
        return special.even_part(value, {atom: flipped[atom] for atom in used})

    def _positive_part(self, value: Form) -> Form | None:
        """E of a power of max(a, b), where a - b is linear in normal numbers."""
        [((powers, exponent), coefficient)] = value.terms.items()
        names = frozenset(self.of)
        random = [(atom, e) for atom, e in powers if touches(atom, names)]
        if len(random) != 1 or any(touches(atom, names) for atom in of_key(exponent).atoms()):
            return None
        ((atom, e),) = random
        others = Form({(tuple(pair for pair in powers if pair[0] != atom), exponent): coefficient})
        if atom.name != "max" or len(atom.parts) != 2 or Fraction(e).denominator > 1 or e < 1:
            return None
        a, b = map(of_key, atom.parts)
        if not self._is_normal(a - b):
            return None
        opposite = (a + b).is_zero()
        if e > 1 and b.terms and a.terms and not opposite:
            return None
        mean, variance = self._mean_and_variance(a - b if b.terms or not a.terms else a)
        if not a.terms:
            mean, variance = self._mean_and_variance(b)
        part = pieces.positive_part(int(e), mean, variance, self.is_positive(variance))
        self.methods.add(METHODS[1])
        if not a.terms or not b.terms:
            return others * part
        if opposite:  # |x|^k = 2·max(x, 0)^k - x^k for odd k, of a - b = 2x
            whole = self.expected(a ** int(e))
            return others * (part * Fraction(2, 2 ** int(e)) - whole) if e % 2 else others * whole
        return others * (part + self.expected(b))

    def _is_normal(self, value: Form) -> bool:
        """Whether a form is linear in normal numbers, and nothing else in it is random."""
        names = frozenset(self.of)
        for powers, exponent in value.terms:
            mine = [(atom, e) for atom, e in powers if touches(atom, names)]
            if any(touches(atom, names) for atom in of_key(exponent).atoms()) or len(mine) > 1:
                return False
            for atom, e in mine:
                normal = frozenset(
                    name
                    for name, laws in self.of.items()
                    if all(isinstance(law, Normals | NormalVector) for law in laws)
                )
                others = names - normal
                if e != 1 or atom.parts or _times(atom, names) != 1 or touches(atom, others):
                    return False
        return True

    def _mean_and_variance(self, value: Form) -> tuple[Form, Form]:
        mean = self._by_moments(value)
        return mean, self._by_moments(value * value) - mean * mean

    def is_positive(self, value: Form) -> bool:
        """Whether a form is surely above 0: by its terms, or by an assumption."""
        if not value.terms:
            return False
        for known in self.positive:
            ratio = next((value.terms[term] / known.terms[term] for term in known.terms if term in value.terms), None)
            if ratio is not None and ratio > 0 and value == known * ratio:
                return True
        sure = [
            coefficient > 0 and not exponent and all(atom.positive for atom, _ in powers)
            for (powers, exponent), coefficient in value.terms.items()
        ]
        try:
            return all(sure) or sign(value) > 0
        except Undecided:
            return False

    def probability(self, links: list[pieces.Link]) -> Form:
        """P that all comparisons with 0 are true."""
        unfolded = list(_unfolded(links))
        if len(links) == len(unfolded) == 1 and links[0][1] in (">", ">=", "<", "<="):
            ((value, how),) = links
            outside = list(_unfolded([(value, OPPOSITE[how])]))
            if len(outside) > 1:  # max(a, b) > c is not: a <= c and b <= c
                return 1 - self.probability(outside)
        links = [(self._scaled(value), how) for value, how in unfolded]
        discrete = [
            law
            for name, laws in self.of.items()
            for law in laws
            if isinstance(law, Sign | Coin) and any(law.atom in value.atoms() for value, _ in links)
        ]
        if 2 ** len(discrete) > CASES:
            raise Undecided("too many cases")
        if not discrete:
            return self._continuous(links)
        total = form(0)
        for chosen in product((1, 0), repeat=len(discrete)):
            weight, values = form(1), {}
            for law, up in zip(discrete, chosen, strict=True):
                if isinstance(law, Coin):
                    weight = weight * (law.chance if up else 1 - law.chance)
                else:
                    weight = weight * Fraction(1, 2)
                values[law.atom] = up if isinstance(law, Coin) or up else -1
            total = total + weight * self._continuous([(substitute(value, values), how) for value, how in links])
        return total

    def _scaled(self, value: Form) -> Form:
        """The form without a factor that is surely above 0: t*u - t/2 is u - 1/2 where t > 0."""
        for law in self._numbers(UniformNumber):
            if law.atom in value.atoms():
                try:
                    slope, rest = pieces.linear(value, law.atom)
                except Undecided:
                    continue
                ratio = next((rest.terms.get(term, Fraction(0)) / c for term, c in slope.terms.items()), Fraction(0))
                if (rest - slope * ratio).terms or slope.constant is not None:
                    continue
                if self.is_positive(slope) or self.is_positive(-slope):
                    return (of_atom(law.atom) + ratio) * (1 if self.is_positive(slope) else -1)
        return value

    def _continuous(self, links: list[pieces.Link]) -> Form:
        """The product over groups of comparisons that share no random name."""
        names, total = frozenset(self.of), form(1)
        waiting = list(links)
        while waiting:
            group = [waiting.pop(0)]
            used = self._random(group[0][0])
            while more := [link for link in waiting if self._random(link[0]) & used]:
                group += more
                waiting = [link for link in waiting if link not in more]
                used = used.union(*(self._random(value) for value, _ in more))
            if not any(touches(atom, names) for value, _ in group for atom in value.atoms()):
                total = total * int(all(COMPARISONS[how](sign(plain(value))) for value, how in group))
            else:
                total = total * self._of_group(group)
        self.methods.add("moments")
        return total

    def _random(self, value: Form) -> frozenset[Atom]:
        """Random numbers of a form; of vectors and joint laws the first number stands for all."""
        found = set()
        for atom in value.atoms():
            if atom.kind == "variable" and atom.name in self.of:
                joint = next(
                    (law for law in self.of[atom.name] if isinstance(law, Normals) and atom in law.atoms), None
                )
                found.add(atom if joint is None or _diagonal(joint) else joint.atoms[0])
            else:
                found |= {Atom("invariant", names=(name,)) for name in self.of if touches(atom, frozenset({name}))}
        return frozenset(found)

    def _of_group(self, links: list[pieces.Link]) -> Form:
        """P of comparisons that hang together."""
        atoms = {
            atom for value, _ in links for atom in value.atoms() if atom.name in self.of and atom.kind == "variable"
        }
        reasons: list[str] = []
        if len(atoms) == 1 and all(_only(value, atoms, frozenset(self.of)) for value, _ in links):
            (atom,) = atoms
            law = next((d for each in self.of[atom.name] if (d := self._density(each, atom)) is not None), None)
            if law is not None:
                try:
                    return pieces.probability(links, law)
                except Undecided as reason:
                    reasons.append(str(reason))
        if len(links) == 1:
            ((value, how),) = links
            if self._is_normal(value):
                mean, variance = self._mean_and_variance(value)
                if not variance.terms:  # it is its mean
                    return form(int(COMPARISONS[how](sign(plain(mean)))))
            if how in ("==", "!="):
                self._above(value)  # which has a density
                return form(int(how == "!="))
            return self._above(value if how in (">", ">=") else -value)
        if len(links) == 2 and all(how in ("<", "<=", ">", ">=") for _, how in links):
            sides = [(value, how) if how in (">", ">=") else (-value, OPEN[how]) for value, how in links]
            width = sides[0][0] + sides[1][0]
            if not any(touches(atom, frozenset(self.of)) for atom in width.atoms()):  # an interval
                side = sign(plain(width))
                if side > 0:  # one of both is true
                    return self._of_group(sides[:1]) + self._of_group(sides[1:]) - 1
                if side < 0:
                    return form(0)
        raise Undecided(reasons[0] if reasons else "no exact probability of such an event")

    def _density(self, law: Law, atom: Atom) -> "pieces.Density | None":
        if isinstance(law, Normals) and atom in law.atoms:
            place = list(law.atoms).index(atom)
            if not self.is_positive(law.covariance[place][place]):
                raise Undecided("a variance that may be 0")
        return pieces.density(law, atom)

    def _above(self, value: Form) -> Form:
        """P[value > 0], of a value with a density."""
        if self._is_normal(value):
            mean, variance = self._mean_and_variance(value)
            if not self.is_positive(variance):
                raise Undecided("a variance that may be 0")
            return pieces.tail_of_normal(mean, variance)
        laws = [law for name in self.of for law in self.of[name] if getattr(law, "atom", None) in value.atoms()]
        found = self._special_above(value)
        if found is not None:
            return found
        if laws and all(isinstance(law, UniformNumber) for law in laws):
            sides = [(law.atom, law.lowest, law.highest) for law in laws if isinstance(law, UniformNumber)]
            return pieces.box_probability(value, sides)
        if len(laws) == 1 and isinstance(laws[0], ExponentialNumber) and self.is_positive(laws[0].rate):
            slope, rest = pieces.linear(value, laws[0].atom)
            cut = -rest / slope
            beyond = exp(-(laws[0].rate * maximum(cut, 0)))
            return beyond if sign(slope) > 0 else 1 - beyond
        raise Undecided("no exact probability of such an event")

    def _special_above(self, value: Form) -> Form | None:
        """P[value > 0] of a product, of squares, of a race of waiting times."""
        run = special.race(value, self._numbers(ExponentialNumber), self.is_positive)
        if run is not None:
            return run[0]
        ball = special.radial(value, self._numbers(Normals))
        if ball is not None and self.is_positive(ball[3]):
            factor, rest, atoms, variance = ball
            squared = -rest / factor
            if sign(squared) <= 0:
                return form(int(sign(factor) > 0))
            within = special.inside_ball(squared, len(atoms), variance)
            return within if sign(factor) < 0 else 1 - within
        box = special.product_of_uniforms(value, self._numbers(UniformNumber))
        if box is not None:
            factor, rest, n = box
            below = special.below_product(-rest / factor, n)
            return below if sign(factor) < 0 else 1 - below
        atoms = frozenset(a for a in value.atoms() if a.kind == "variable" and a.name in self.of)
        product_ = special.factors_of(value, atoms)
        if product_ is None or not all(self._alone(atom) for atom, _ in product_):
            return None
        [((powers, exponent), coefficient)] = value.terms.items()
        rest = Form({(tuple(pair for pair in powers if pair[0] not in atoms), exponent): coefficient})
        if not rest.is_real:
            return None
        lead: Form | int = sign(rest)
        for atom, e in product_:
            above = self._of_group([(of_atom(atom), ">")])
            lead = (2 * above - 1) * lead if e % 2 else lead
        return form(1 + lead) * Fraction(1, 2)

    def _alone(self, atom: Atom) -> bool:
        """Whether a number has a density and depends on no other."""
        for law in self.of[atom.name]:
            if isinstance(law, Normals) and atom in law.atoms:
                return _diagonal(law)
            if getattr(law, "atom", None) == atom:
                return isinstance(law, UniformNumber | ExponentialNumber)
        return False

    def _by_moments(self, value: Form) -> Form:
        """E by the moments of each law."""
        self._exists(value)
        for term, coefficient in list(value.terms.items()):
            if self._steep(of_key(term[1])) is not None:
                value = value - Form({term: coefficient}) + self._flattened(Form({term: coefficient}))
        for name, laws in self.of.items():
            if not any(touches(atom, frozenset({name})) for atom in value.atoms()):
                continue
            normal = any(isinstance(law, Normals | NormalVector) for law in laws)
            self.methods.add(_method(value, name) if normal else METHODS[0])
            for law in laws:
                value = law.expected(value)
        return value

    def _steep(self, exponent: Form) -> tuple[Atom, Form, Form] | None:
        """A normal number that stands in an exponent squared, or beside another random one: its mean and variance."""
        wide = self._wide
        for powers, _ in exponent.terms:
            mine = [(atom, e) for atom, e in powers if touches(atom, wide)]
            if sum(abs(e) for _, e in mine) < 2:
                continue
            for atom, _ in mine:
                for law in self.of.get(atom.name, ()):
                    if isinstance(law, Normals) and atom in law.atoms and _diagonal(law):
                        place = list(law.atoms).index(atom)
                        return atom, law.means[place], law.covariance[place][place]
        return None

    def _flattened(self, term: Form) -> Form:
        """E over the normal numbers that stand squared in an exponent."""
        total, waiting = form(0), [term]
        while waiting:
            each = waiting.pop()
            [((powers, exponent), _)] = each.terms.items()
            steep = self._steep(of_key(exponent))
            if steep is None:
                total = total + each
                continue
            atom, mean, variance = steep
            factor, mean, variance = special.without_square(each, atom, mean, variance, self.is_positive)
            n = dict(powers).get(atom, 0)
            moment = Normals([atom], [mean], [[variance]]).expected(of_atom(atom, n)) if n else form(1)
            waiting += [Form({key: c}) for key, c in (factor * moment).terms.items()]
        self.methods.add(METHODS[2])
        return total

    def _exists(self, value: Form) -> None:
        """Refuses what one law would average to 0 although another has no mean of it: E[x/y], E[z*exp(x*y)]."""
        wide = self._wide
        for powers, exponent in value.terms:
            for atom, e in powers:
                if touches(atom, wide) and (atom.parts or e < 0 or Fraction(e).denominator > 1):
                    raise Undecided(f"no exact expectation of {text(of_atom(atom, e))}")
            if self._normal_squares(of_key(exponent)):
                self._flattened(Form({((), exponent): Fraction(1)}))  # or there is no mean
                continue
            for inner, deeper in of_key(exponent).terms:
                if sum(abs(e) * _times(atom, wide) for atom, e in inner) > 1 or any(
                    touches(atom, wide) for atom in of_key(deeper).atoms()
                ):
                    raise Undecided(f"no exact expectation of exp({text(of_key(exponent))})")

    def _normal_squares(self, exponent: Form) -> bool:
        """Whether an exponent is real and of degree 2 in independent normal numbers, and of nothing else random."""
        wide, names, degree = self._wide, frozenset(self.of), Fraction(0)
        for powers, deeper in exponent.terms:
            if any(touches(atom, names) for atom in of_key(deeper).atoms()) or IMAGINARY in dict(powers):
                return False
            mine = [(atom, e) for atom, e in powers if touches(atom, names)]
            if any(atom.parts or Fraction(e).denominator > 1 or e < 0 for atom, e in mine):
                return False
            wide_ones = [atom for atom, _ in mine if touches(atom, wide)]
            if not all(map(self._independent_normal, wide_ones)) or (wide_ones and len(mine) > len(wide_ones)):
                return False
            degree = max(degree, sum((Fraction(e) for _, e in mine), Fraction(0)))
        return degree == 2

    def _independent_normal(self, atom: Atom) -> bool:
        laws = self.of.get(atom.name, ()) if atom.kind == "variable" else ()
        return any(isinstance(law, Normals) and atom in law.atoms and _diagonal(law) for law in laws)

    def variance(self, value: Form) -> Form:
        """Var X = E X^2 - (E X)^2."""
        return self.expected(value * value) - self.expected(value) ** 2

    @property
    def method(self) -> str:
        """The strongest tool that was needed."""
        return max(self.methods, key=METHODS.index, default=METHODS[0])


def _diagonal(law: Normals) -> bool:
    places = range(len(law.atoms))
    return not any(law.covariance[i][j].terms for i in places for j in places if i != j)


def _only(value: Form, atoms: set[Atom], names: frozenset[str]) -> bool:
    """Whether nothing else in a form is random."""
    return all(atom in atoms or atom.parts or not touches(atom, names) for atom in value.atoms())


def _unfolded(links: list[pieces.Link]) -> Iterator[pieces.Link]:
    """max(a, b) < c is a < c and b < c; so with the smallest above something."""
    for value, how in links:
        if how in (">", ">="):
            value, how = -value, "<" if how == ">" else "<="
        tops = [
            (atom, coefficient)
            for (powers, exponent), coefficient in value.terms.items()
            if not exponent and len(powers) == 1 and powers[0][1] == 1
            for atom, _ in powers
            if atom.kind == "function" and atom.name == "max"
        ]
        if how in ("<", "<=") and len(tops) == 1 and tops[0][1] > 0:
            ((atom, coefficient),) = tops
            rest = value - of_atom(atom) * coefficient
            if atom not in rest.atoms():
                yield from _unfolded([(rest + of_key(part) * coefficient, how) for part in atom.parts])
                continue
        yield value, how


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

    def __neg__(self) -> "Joined":
        return Joined(tuple(-part for part in self.parts))


Many = Value | Joined


@dataclass(frozen=True)
class ForEverySize(Invariants):
    """The value of expressions with E and Var, whatever the sizes are."""

    scalars: Scalars = field(default_factory=lambda: PART_BY_PART)
    laws: Laws = field(default_factory=lambda: Laws({}))

    def evaluate(self, node: Node) -> Array:
        match node:
            case Moment(kind, body):
                value = self.many(body)
                if kind == "E":
                    return arrays.scalar(self._expected(value))
                return arrays.scalar(self.laws.variance(number(_single(value))))
            case Probability(event):
                terms = [number(_single(self.many(term))) for term in event.terms]
                return arrays.scalar(self.laws.probability(_links(event, terms)))
            case Join(parts):
                values = [self.many(part) for part in parts]
                flat = (inner for v in values for inner in (v.parts if isinstance(v, Joined) else (v,)))
                return arrays.scalar(Joined(tuple(flat)))
        return super().evaluate(node)

    def many(self, node: Node) -> Many:
        """The value of an expression: a number, a vector, or several."""
        return self.scalars.number(self.evaluate(node).scalar)

    def is_vector(self, value: Many) -> bool:
        return isinstance(value, Vector | Joined)

    def operation(self, sign: str) -> Callable[[Entry, Entry], Entry]:
        return lambda left, right: _each(OPERATIONS[sign], left, right)

    def dot(self, left: Many, right: Many) -> Form:
        return self.total(_each(times, left, right))

    def total(self, vector: Many) -> Form:
        if not isinstance(vector, Joined):
            return vector.total() if isinstance(vector, Vector) else vector
        return sum(map(self.total, vector.parts), form(0))

    def length(self, vector: Many) -> Form:
        if isinstance(vector, Vector):
            return vector.length
        raise Undecided("the length of [...]")

    def _expected(self, value: Many) -> Many:
        if isinstance(value, Joined):
            return Joined(tuple(_single(self._expected(part)) for part in value.parts))
        if isinstance(value, Form):
            return self.laws.expected(value)
        # A vector is known by its product with any other: that one is taken out of the result again.
        other = named(BESIDE, value.length)
        found: dict[Product, Form] = {}
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


PART_BY_PART = replace(EVERY_SIZE, divide=lambda left, right: _each(over, left, right))


@dataclass(frozen=True)
class AtLengths(Coordinates):
    """The value of expressions with E, Var and P of signs, where every axis has a length."""

    laws: Laws = field(default_factory=lambda: Laws({}))

    def evaluate(self, node: Node) -> Array:
        match node:
            case Moment(kind, body):
                average = self.laws.expected if kind == "E" else self.laws.variance
                return self._stepping().evaluate(body).map(lambda entry: _settled(average(form(entry))))
            case Probability(event):
                return arrays.scalar(_settled(form(self._stepping()._probability(event))))
        return super().evaluate(node)

    def _stepping(self) -> "AtLengths":
        """The same, where sign and floor of random numbers are atoms."""
        return replace(self, scalars=STEPPING)

    def _probability(self, event: Chain) -> Fraction | Form:
        """P of an event, of numbers."""
        terms = [form(self.evaluate(term).scalar) for term in event.terms]
        return plain(self.laws.probability(_links(event, terms)))


def _stepped(name: str) -> Callable[[Fraction | Form], Fraction | Form]:
    return lambda value: plain(step(name, value))


STEPPING = replace(EXACT, elementwise={**EXACT.elementwise, **{name: _stepped(name) for name in ("sign", "floor")}})


def _settled(value: Form) -> Fraction | Form:
    """An expectation, in which no jump may be left."""
    if any(atom.kind == "function" and atom.name in ("sign", "floor") for atom in value.atoms()):
        raise Undecided("a sign or a floor that is not known")
    return plain(value)


def _links(event: Chain, terms: list[Form]) -> list[pieces.Link]:
    return [(left - right, how) for left, how, right in zip(terms, event.comparisons, terms[1:], strict=False)]
