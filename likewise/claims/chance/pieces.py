"""Expectations of functions with kinks, and probabilities, exactly: the line is cut where something changes its sign.

Between two cuts  max(x, 0)  and the truth of  x^2 < 1/4  are settled, and what is left is  ∫ x^n·e^{sx}  against the
density of a uniform, normal or exponential number: polynomials, exponentials and erf. Linear events of several numbers
have closed forms: of normal ones by erf, of uniform ones by inclusion and exclusion over the corners of their box.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise, product
from math import ceil, factorial, floor

from likewise.claims.algebra.balls import enclose, sign
from likewise.claims.algebra.elementary import erf, log, maximum, sqrt, substitute
from likewise.claims.algebra.exponomials import IMAGINARY, PI, Atom, Form, exp, form, of_atom, of_key
from likewise.claims.chance.moments import ExponentialNumber, Normals, UniformNumber, split
from likewise.claims.language.tree import Comparison
from likewise.claims.verdict import Undecided

CUTS = 40
BENT = ("max", "sign", "floor")
CORNERS = 10  # numbers of a box
End = Form | None  # None: the line goes on for ever
Link = tuple[Form, Comparison]  # how a form compares with 0
HALF = Fraction(1, 2)


@dataclass(frozen=True)
class Density:
    """A continuous law of one number."""

    atom: Atom
    lowest: End
    highest: End
    moment: Callable[[int, Form, End, End], Form]  # ∫ x^n e^{sx} between two ends, against the density

    def mean(self, value: Form, low: End, high: End) -> Form:
        """The part of E that lies between two ends inside the support, of a form without kinks there."""
        total, names = form(0), frozenset({self.atom.name})
        for (powers, exponent), coefficient in value.terms.items():
            mine = tuple(pair for pair in powers if pair[0] == self.atom)
            if any(_inside(atom, self.atom) for atom, _ in powers):
                raise Undecided("a function of a random number without an exact mean")
            parts = split(mine, exponent, names) if mine or exponent else None
            slope = form(0) if parts is None else sum((s for a, s in parts.slopes if a == self.atom), form(0))
            rest = Form({(tuple(pair for pair in powers if pair[0] != self.atom), ()): coefficient})
            steady = of_key(exponent) - slope * of_atom(self.atom)
            if self.atom in steady.atoms():
                raise Undecided("an exponential that is not linear in a random number")
            n = int(dict(mine).get(self.atom, 0))
            total = total + rest * exp(steady) * self.moment(n, slope, low, high)
        return total


def density(law: object, atom: Atom) -> Density | None:
    """The density of one number under a law, if it is independent of all others there."""
    if isinstance(law, UniformNumber) and law.atom == atom:
        width = law.highest - law.lowest
        if sign(width) <= 0:
            raise Undecided("a uniform law without width")

        def uniform(n: int, slope: Form, low: End, high: End) -> Form:
            assert low is not None
            assert high is not None
            return _exponential_integral(n, slope, low, high) / width

        return Density(atom, law.lowest, law.highest, uniform)
    if isinstance(law, ExponentialNumber) and law.atom == atom:
        rate = law.rate

        def exponential(n: int, slope: Form, low: End, high: End) -> Form:
            assert low is not None
            fall = rate - slope
            if not fall.is_real or sign(fall) <= 0:
                raise Undecided("an exponential that grows as fast as its density falls")
            if high is not None:
                return rate * _exponential_integral(n, -fall, low, high)
            total = form(0)
            for k in range(n + 1):
                total = total + low ** (n - k) * Fraction(factorial(n), factorial(n - k)) / fall ** (k + 1)
            return rate * exp(-(fall * low)) * total

        return Density(atom, form(0), None, exponential)
    if isinstance(law, Normals) and atom in law.atoms:
        place = list(law.atoms).index(atom)
        if any(law.covariance[place][j].terms for j in range(len(law.atoms)) if j != place):
            return None
        return normal_density(atom, law.means[place], law.covariance[place][place])
    return None


def normal_density(atom: Atom, mean: Form, variance: Form) -> Density:
    """N(mean, variance) of a positive variance."""

    def normal(n: int, slope: Form, low: End, high: End) -> Form:
        if not slope.is_real:
            raise Undecided("a wave on a part of the line under a normal law")
        moved = mean + slope * variance
        tilt = exp(slope * mean + slope * slope * variance * HALF)
        return tilt * _normal_moment(n, moved, variance, low, high)

    return Density(atom, None, None, normal)


def _exponential_integral(n: int, slope: Form, low: Form, high: Form) -> Form:
    """∫ x^n e^{sx} from low to high."""
    if not slope.terms:
        return (high ** (n + 1) - low ** (n + 1)) / (n + 1)
    require_nonzero(slope)
    ends = [x**n * exp(slope * x) for x in (low, high)]
    whole = (ends[1] - ends[0]) / slope
    return whole - _exponential_integral(n - 1, slope, low, high) * n / slope if n else whole


def require_nonzero(value: Form) -> None:
    """Refuses what may be 0."""
    if len(value.terms) == 1:
        [((powers, exponent), _)] = value.terms.items()
        if not exponent and all(atom.positive or atom == IMAGINARY for atom, _ in powers):
            return
    if not value.is_real or sign(value) == 0:
        raise Undecided("a denominator that may be 0")


def _normal_moment(n: int, mean: Form, variance: Form, low: End, high: End) -> Form:
    """∫ x^n against N(mean, variance): M_n = m·M_(n-1) + (n-1)·v·M_(n-2) - v·[x^(n-1)·density]."""
    scale = sqrt(variance * 2)

    def below(end: End, side: int) -> Form:
        return form(side) if end is None else erf((end - mean) / scale)

    def edge(end: End, power: int) -> Form:
        if end is None:
            return form(0)
        bell = exp(-((end - mean) ** 2) / (variance * 2)) / sqrt(variance * of_atom(PI) * 2)
        return end**power * bell

    moments = [(below(high, 1) - below(low, -1)) * HALF]
    for k in range(1, n + 1):
        found = mean * moments[k - 1] - variance * (edge(high, k - 1) - edge(low, k - 1))
        moments.append(found + (variance * moments[k - 2] * (k - 1) if k > 1 else 0))
    return moments[n]


def bends(value: Form, atom: Atom) -> list[Atom]:
    """The max(...), sign(...) and floor(...) of a form that depend on a number."""
    return [
        each for each in sorted(value.atoms()) if each.name in BENT and each.kind == "function" and _inside(each, atom)
    ]


def _inside(outer: Atom, atom: Atom) -> bool:
    return any(atom in of_key(part).atoms() for part in outer.parts)


def linear(value: Form, atom: Atom) -> tuple[Form, Form]:
    """a and b of a·x + b."""
    slope, rest = form(0), form(0)
    for (powers, exponent), coefficient in value.terms.items():
        e = dict(powers).get(atom, 0)
        others = Form({(tuple(pair for pair in powers if pair[0] != atom), exponent): coefficient})
        if atom in others.atoms() or e not in (0, 1):
            raise Undecided("not linear in a random number")
        slope, rest = (slope + others, rest) if e else (slope, rest + others)
    return slope, rest


def expected(value: Form, law: Density) -> Form:
    """E of a form with kinks in one number."""
    cuts = [cut for bend in bends(value, law.atom) for cut in _crossings(bend, law)]
    total = form(0)
    for low, high, inner in _cells(cuts, law):
        total = total + law.mean(_settled(value, law.atom, inner), low, high)
    return total


def _crossings(bend: Atom, law: Density) -> Iterator[Form]:
    """Where two parts of a max are equal, or a sign or a floor jumps."""
    lines = [linear(of_key(part), law.atom) for part in bend.parts]
    if bend.name in ("sign", "floor"):
        ((slope, start),) = lines
        if not sign(slope):
            return
        levels = [0]
        if bend.name == "floor":
            if law.lowest is None or law.highest is None:
                raise Undecided("floor of what has no bounds")
            ends = sorted(_near(slope * end + start) for end in (law.lowest, law.highest))
            levels = list(range(floor(ends[0]) - 1, ceil(ends[1]) + 2))
            if len(levels) > CUTS:
                raise Undecided("too many pieces")
        yield from ((level - start) / slope for level in levels)
        return
    for i, (a, b) in enumerate(lines):
        for c, d in lines[:i]:
            if sign(a - c):
                yield (d - b) / (a - c)


def _settled(value: Form, atom: Atom, inner: Form) -> Form:
    """The form where every max is the part that is largest at a point."""
    chosen = {}
    for bend in bends(value, atom):
        parts = [of_key(part) for part in bend.parts]
        heights = [substitute(part, {atom: inner}) for part in parts]
        if bend.name == "sign":
            chosen[bend] = form(sign(heights[0]))
            continue
        if bend.name == "floor":
            level = floor(_near(heights[0]))
            if sign(heights[0] - level) <= 0 or sign(level + 1 - heights[0]) <= 0:
                raise Undecided("a floor that is not known")
            chosen[bend] = form(level)
            continue
        best = 0
        for place in range(1, len(parts)):
            best = place if sign(heights[place] - heights[best]) > 0 else best
        chosen[bend] = parts[best]
    return substitute(value, chosen) if chosen else value


def _cells(cuts: Sequence[Form], law: Density) -> Iterator[tuple[End, End, Form]]:
    """The support, cut: both ends of each piece, and a number inside."""
    if len(cuts) > CUTS:
        raise Undecided("too many pieces")
    inside: list[Form] = []
    for cut in cuts:
        if law.lowest is not None and sign(cut - law.lowest) <= 0:
            continue
        if law.highest is not None and sign(law.highest - cut) <= 0:
            continue
        place = 0
        while place < len(inside) and (side := sign(cut - inside[place])) >= 0:
            if side == 0:
                break
            place += 1
        else:
            inside.insert(place, cut)
    ends: list[End] = [law.lowest, *inside, law.highest]
    for low, high in pairwise(ends):
        yield low, high, _between(low, high)


def _between(low: End, high: End) -> Form:
    """A fraction between two numbers."""
    if low is None or high is None:
        middle = Fraction(0) if low is high else _near(low) + 1 if low is not None else _near(high) - 1  # ty: ignore
        return form(middle)
    return form((_near(low) + _near(high)) / 2)


def _near(value: Form) -> Fraction:
    if value.constant is not None:
        return value.constant
    ball = enclose(value, {}, 128)
    sign_, mantissa, exponent, _ = ball.mid.a._mpi_[0]
    return (-1) ** int(sign_) * Fraction(int(mantissa)) * Fraction(2) ** int(exponent)


def probability(links: Sequence[Link], law: Density) -> Form:
    """P that all comparisons are true, of one number: every sign change of a side is found first."""
    cuts: list[Form] = []
    for value, _ in links:
        kinks = [cut for bend in bends(value, law.atom) for cut in _crossings(bend, law)]
        cuts += kinks
        for _, _, inner in _cells(kinks, law):
            cuts += _roots(_settled(value, law.atom, inner), law.atom)
    total = form(0)
    for low, high, inner in _cells(cuts, law):
        truths = (
            _true(sign(substitute(_settled(value, law.atom, inner), {law.atom: inner})), how) for value, how in links
        )
        if all(truths):
            total = total + law.mean(form(1), low, high)
    return total


def _true(side: int, comparison: Comparison) -> bool:
    return {"<": side < 0, "<=": side <= 0, ">": side > 0, ">=": side >= 0, "==": side == 0, "!=": side != 0}[
        comparison
    ]


def _roots(value: Form, atom: Atom) -> list[Form]:
    """All numbers at which a form of one number is 0: of degree 1 or 2, a·x^n + b, or a·e^{cx} + b."""
    coefficients: dict[int, Form] = {}
    waves: list[tuple[Form, Form]] = []
    for (powers, exponent), coefficient in value.terms.items():
        rest = Form({(tuple(pair for pair in powers if pair[0] != atom), ()): coefficient})
        if atom in rest.atoms():
            raise Undecided("an event that is not solved")
        e = dict(powers).get(atom, 0)
        inner = of_key(exponent)
        if atom in inner.atoms():
            if e or waves:
                raise Undecided("an event that is not solved")
            slope, start = linear(inner, atom)
            waves.append((slope, rest * exp(start)))
            continue
        if Fraction(e).denominator > 1 or e < 0:
            raise Undecided("an event that is not solved")
        coefficients[int(e)] = coefficients.get(int(e), form(0)) + rest * exp(inner)
    coefficients = {e: c for e, c in coefficients.items() if c.terms}
    constant = coefficients.pop(0, form(0))
    if waves:
        ((slope, height),) = waves
        if coefficients or not height.is_real or not slope.is_real:
            raise Undecided("an event that is not solved")
        ratio = -constant / height
        return [log(ratio) / slope] if sign(ratio) > 0 and sign(slope) else []
    if not coefficients:
        return []
    if len(coefficients) == 1:
        ((n, factor),) = coefficients.items()
        ratio = -constant / factor
        side = sign(ratio)
        if side == 0:
            return [form(0)]
        if side < 0:
            return [-((-ratio) ** Fraction(1, n))] if n % 2 else []
        found = ratio ** Fraction(1, n)
        return [found] if n % 2 else [found, -found]
    if set(coefficients) == {1, 2}:
        a, b = coefficients[2], coefficients[1]
        inside = b * b - a * constant * 4
        if sign(inside) < 0:
            return []
        return [(-b + sqrt(inside) * s) / (a * 2) for s in (1, -1)]
    raise Undecided("an event that is not solved")


def box_probability(value: Form, sides: Sequence[tuple[Atom, Form, Form]]) -> Form:
    """P[c + Σ a_i·u_i > 0] of independent uniform numbers: Σ over corners of ± max(value, 0)^n / (n!·Π a_i·width_i)."""
    if len(sides) > CORNERS:
        raise Undecided("too many uniform numbers")
    below, rest = form(1), value
    for atom, lowest, highest in sides:
        slope, rest = linear(rest, atom)
        if sign(highest - lowest) <= 0 or not sign(slope):
            raise Undecided("a uniform law without width")
        below = below * slope * (highest - lowest)
    total, n = form(0), len(sides)
    for corner in product((0, 1), repeat=n):
        at = {atom: (highest if up else lowest) for up, (atom, lowest, highest) in zip(corner, sides, strict=True)}
        height = maximum(substitute(value, at), 0)
        total = total + height**n * (-1) ** (n - sum(corner))
    return total / (below * factorial(n))


def uniform_positive_part(value: Form, law: Density) -> Form:
    """E of max(a, b)^k over one uniform number, where cuts depend on others: [max(x, 0)^(k+1)]/(slope·(k+1)·width)."""
    [((powers, exponent), coefficient)] = value.terms.items()
    mine = [(atom, e) for atom, e in powers if atom == law.atom or _inside(atom, law.atom)]
    if len(mine) != 1 or law.lowest is None or law.highest is None or law.atom in of_key(exponent).atoms():
        raise Undecided("a kink that depends on several random numbers")
    ((atom, e),) = mine
    if atom.name != "max" or len(atom.parts) != 2 or Fraction(e).denominator > 1 or e < 1:
        raise Undecided("a kink that depends on several random numbers")
    others = Form({(tuple(pair for pair in powers if pair[0] != atom), exponent): coefficient})
    b, a = sorted(map(of_key, atom.parts), key=lambda part: bool(part.terms))
    if b.terms and e > 1:
        raise Undecided("a power of a maximum")
    slope, _ = linear(a - b, law.atom)
    if not sign(slope):
        raise Undecided("a slope of 0")
    ends = [maximum(substitute(a - b, {law.atom: end}), 0) ** (int(e) + 1) for end in (law.lowest, law.highest)]
    part = (ends[1] - ends[0]) / (slope * (int(e) + 1) * (law.highest - law.lowest))
    return others * (part + (law.mean(b, law.lowest, law.highest) if b.terms else 0))


def tail_of_normal(mean: Form, variance: Form) -> Form:
    """P[x > 0] of x ~ N(mean, variance), variance > 0."""
    return (erf(mean / sqrt(variance * 2)) + 1) * HALF


def positive_part(power: int, mean: Form, variance: Form, positive: bool) -> Form:
    """E[max(x, 0)^k] of x ~ N(mean, variance); a mean of 0 needs no positive variance."""
    if not mean.terms:
        even = Fraction(1, 2)
        for j in range(1, power, 2):
            even = even * (j if power % 2 == 0 else 1)
        if power % 2 == 0:
            return variance ** (power // 2) * even
        odd = Fraction(1)
        for j in range(2, power, 2):
            odd = odd * j
        return sqrt(variance / (of_atom(PI) * 2)) * variance ** ((power - 1) // 2) * odd
    if not positive:
        raise Undecided("a variance that may be 0")
    return _normal_moment(power, mean, variance, form(0), None)
