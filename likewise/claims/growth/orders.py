"""O, Omega and Theta over all sizes of at least 1: a linear program in the logarithms of the sizes.

f is O(g) when f <= C*g for some C at *all* sizes that the claim allows. With y the logarithms, x^a is O(sum of x^b) iff
no y in the cone of the assumptions has a.y > b.y for every b. Scaled to a.y - b.y >= 1 that is one system of linear
comparisons: its certificate proves the bound, a whole solution y is a ray t^y along which f/g is unbounded.

Of the rays the first lattice point is shown (smallest exponents, then fewest sizes that move, then the earliest
declared), together with the first term, in printed order, that grows most along it.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import islice, product
from math import gcd, lcm

from likewise.claims.growth.cone import Ray, Sizes, exponent_text, logarithm
from likewise.claims.growth.everywhere import cleared, never_negative
from likewise.claims.growth.linear import Certificate, LinearForm, Row, lattice, solve
from likewise.claims.growth.powers import Magnitude, Power, Sum, magnitude, polynomial, power, power_text, times
from likewise.claims.language.claim import Bounded, Claim
from likewise.claims.verdict import Finding, Undecided
from likewise.polynomial import Polynomial

SHORT, ALTERNATIVES, LISTED, RAYS = 3, 3, 4, 2_000
NEVER = Fraction(-(10**9))
Pair = tuple[Power, Power]  # small <= large


@dataclass(frozen=True)
class Judgement:
    """Whether a bound holds; if not, a counterexample and assumptions under which it would."""

    holds: bool
    detail: str = ""
    witness: tuple[tuple[str, str], ...] = ()
    suggestions: tuple[str, ...] = ()


def positive(terms: Sum) -> list[Power]:
    """The powers with a coefficient above 0."""
    return [key for key, value in terms.items() if value > 0]


def printed(terms: Sum, order: Sequence[str]) -> list[Power]:
    """The powers in the order in which a polynomial prints them."""

    def rank(key: Power) -> tuple:
        exponents = dict(key)
        return (
            -sum(exponents.values()),
            -max(exponents.values(), default=0),
            -terms[key],
            [-exponents.get(n, 0) for n in order],
        )

    return sorted(terms, key=rank)


def dominated(small: Sequence[Power], large: Sequence[Power], rows: Sequence[Row]) -> Certificate | dict[str, Fraction]:
    """The certificate that the least of `small` is at most a constant times the sum of `large`, or logarithms against.

    >>> n, m = (("N", Fraction(1)),), (("M", Fraction(1)),)
    >>> dominated([n], [times(n, m)], [Row(-LinearForm.of("M"), "<="), Row(-LinearForm.of("N"), "<=")])
    Certificate(multipliers=(Fraction(1, 1), Fraction(1, 1), Fraction(0, 1)))
    """
    one = LinearForm(constant=Fraction(1))
    return solve([*(Row(logarithm(b) - logarithm(a) + one, "<=") for a, b in product(small, large)), *rows])


@dataclass(frozen=True)
class Question:
    """Is f in O(g) at these sizes? `whose` is put behind a term of f that escapes."""

    f: Magnitude
    g: Magnitude
    sizes: Sizes
    terms: tuple[tuple[Power, Fraction], ...]  # of f, as they are printed
    whose: str = ""

    def signed(self) -> "Iterator[Question]":
        """Orders are of absolute values: f and -f are both to stay below the bound."""
        yield self
        if self.f.exact and len(self.f.sums) == 1 and not self.f.positive:
            yield replace(self, f=self.f.scaled(Fraction(-1)), terms=tuple((key, -value) for key, value in self.terms))

    def escaping(self, sizes: Sizes) -> Iterator[tuple[Power, dict[str, Fraction]]]:
        """Terms of f that a solid bound does not hold, in printed order, each with logarithms that show it."""
        bounds = [positive(terms) for terms in sizes.over_free(self.g).sums]
        uncancelled = [set(positive(terms)) for terms in sizes.over_free(self.f).sums]
        first, *others = (
            {key: [p for p in _over_free(key, sizes) if p in left] for key in positive(terms)}
            for terms, left in zip(self.f.sums, uncancelled, strict=True)
        )
        rest = [[p for powers in part.values() for p in powers] for part in others]
        for key in [key for key, _ in self.terms if key in first]:
            for small in product(first[key], *rest):
                points = (dominated(small, large, rows) for large, rows in product(bounds, sizes.cone))
                point = next((found for found in points if not isinstance(found, Certificate)), None)
                if point is not None:
                    yield key, point
                    break

    def solid(self, sizes: Sizes) -> bool:
        """Whether the negative terms of g leave at least a fixed share of its positive ones, so that these bound."""
        return all(_solid(terms, sizes) for terms in sizes.over_free(self.g).sums)

    def ray(self, points: Sequence[Mapping[str, Fraction]]) -> tuple[Ray, Fraction] | None:
        """The first ray along which f/g grows, counted exactly, and the exponent of t with which it does."""
        f, g = self.sizes.over_free(self.f), self.sizes.over_free(self.g)
        for ray in self.sizes.rays(tuple(self._whole(point) for point in points)):
            above, below = (min(_degree(ray, terms) for terms in part.sums) for part in (f, g))
            if above > below > NEVER and self.sizes.allows(ray):
                return ray, above - below
        return None

    def _whole(self, point: Mapping[str, Fraction]) -> tuple[int, ...]:
        scale = lcm(*(value.denominator for value in point.values()))
        return tuple(int(scale * point.get(name, 0)) for name in self.sizes.free)

    def first_term(self, ray: Ray) -> str:
        """The first printed term that grows most along the ray."""
        degrees = {key: _degree(ray, _over_free(key, self.sizes)) for key, value in self.terms if value > 0}
        key = max(degrees, key=lambda key: degrees[key])  # the first of the largest
        return power_text(key, self.sizes.names, dict(self.terms)[key]) + self.whose


def _over_free(key: Power, sizes: Sizes) -> Sum:
    return sizes.over_free(Magnitude(({key: Fraction(1)},))).sums[0]


def _degree(ray: Ray, terms: Sum) -> Fraction:
    """The exponent of t with which a sum grows along a ray; below every other one where it does not stay above 0."""
    value = ray.along(terms)
    return max(value) if value and value[max(value)] > 0 else NEVER


def _solid(terms: Sum, sizes: Sizes) -> bool:
    """Whether a sum is at least a fixed share of its positive terms."""
    if all(value > 0 for value in terms.values()):
        return bool(terms)
    (whole,) = cleared(terms)
    above = Polynomial({key: value for key, value in whole.terms.items() if value > 0})
    return any(never_negative(whole - Fraction(1, 2**k) * above, sizes) for k in range(1, 7))


def primitive(small: Power, large: Power) -> Pair:
    """Common factors cancelled, roots and common exponents removed: N*D^2 <= N*M^2 becomes D <= M."""
    ratio = times(small, large, -1)
    scale = Fraction(lcm(*(e.denominator for _, e in ratio)), gcd(*(e.numerator for _, e in ratio)) or 1)
    sides = [power({name: sign * e * scale for name, e in ratio if sign * e > 0}) for sign in (1, -1)]
    return sides[0], sides[1]


def _length(pair: Pair) -> Fraction:
    return sum((exponent for side in pair for _, exponent in side), Fraction(0))


def suggestions(questions: Sequence[Question]) -> tuple[str, ...]:
    """Short assumptions under which every question is answered with yes.

    Each escaping term against each term of its bound is a candidate, in printed order. Those that suffice alone are
    alternatives, without any that says more than another; if none suffices, the first candidate of every escaping term
    together. One that stops a size from growing is taken only when there is no other.
    """
    sizes = questions[0].sizes
    options: list[list[Pair]] = []
    for question in questions:
        bounds = [key for terms in question.g.sums for key in positive(terms)]  # as written
        options += [_candidates(key, bounds, sizes) for key, _ in question.escaping(sizes)]

    def suffice(*pairs: Pair) -> bool:
        narrower = sizes.assuming(*pairs)
        return _possible(narrower) and not any(any(question.escaping(narrower)) for question in questions)

    alone = [pair for pair in dict.fromkeys(pair for each in options for pair in each) if suffice(pair)]
    growing = [pair for pair in alone if _moving(sizes.assuming(pair)) == _moving(sizes)]
    alone = _weakest(growing or alone[:1], sizes)
    if alone:
        return tuple(_pair_text(pair, sizes) for pair in alone[:ALTERNATIVES])
    together = list(dict.fromkeys(each[0] for each in options if each))
    if not all(options) or not suffice(*together):
        return ()
    for pair in list(together):
        others = [other for other in together if other != pair]
        together = others if suffice(*others) else together
    return (", ".join(_pair_text(pair, sizes) for pair in together),)


def _weakest(pairs: list[Pair], sizes: Sizes) -> list[Pair]:
    """Without those that imply another one; of equals the first stays."""
    kept: list[Pair] = []
    for place, pair in enumerate(pairs):
        implied = [other for other in pairs if other != pair and _implies(pair, other, sizes)]
        if all(_implies(other, pair, sizes) and pairs.index(other) > place for other in implied):
            kept.append(pair)
    return kept


def _implies(pair: Pair, other: Pair, sizes: Sizes) -> bool:
    """Whether, up to constant factors, the one assumption makes the other true."""
    small, large = (list(_over_free(side, sizes)) for side in other)
    found = (dominated(small, large, rows) for rows in sizes.assuming(pair).cone)
    return all(isinstance(point, Certificate) for point in found)


def _possible(sizes: Sizes) -> bool:
    """Whether some ray along which a size grows is still allowed."""
    growing = (ray for ray in islice(sizes.rays(), RAYS) if any(move for _, move in ray.sizes.values()))
    return any(map(sizes.allows, growing))


def _candidates(key: Power, bounds: Sequence[Power], sizes: Sizes) -> list[Pair]:
    found = []
    for bound in bounds:
        ends = [_over_free(each, sizes) for each in (key, bound)]
        ways = [(key, bound)] + [tuple(next(iter(end)) for end in ends)] * all(len(end) == 1 for end in ends)
        pairs = [primitive(*pair) for way in ways for pair in (way, tuple(map(sizes.renamed, way)))]
        pair = min(pairs, key=lambda pair: (_length(pair), len({name for side in pair for name, _ in side})))
        if 0 < _length(pair) <= SHORT:
            found.append(pair)
    return sorted(found, key=lambda pair: not pair[1])  # k <= 1 last


def _moving(sizes: Sizes) -> set[str]:
    """The free sizes that can grow at all."""
    return {
        name
        for name in sizes.free
        for rows in sizes.cone
        if not isinstance(solve([Row(LinearForm({name: Fraction(-1)}, Fraction(1)), "<="), *rows]), Certificate)
    }


def _pair_text(pair: Pair, sizes: Sizes) -> str:
    return f"{power_text(pair[0], sizes.names)} <= {power_text(pair[1], sizes.names)}"


def judge(order: str, questions: Mapping[str, Question]) -> Judgement:
    """Answer the questions an order asks: f in O(g), g in O(f), or both."""
    asked = [questions[name] for name in (("O", "Omega") if order == "Theta" else (order,))]
    for question in [signed for each in asked for signed in each.signed()]:
        if all(map(positive, question.sizes.over_free(question.f).sums)):  # else it is never above 0
            answer = _vanishing(question) or _escape(question)
            if answer:
                known = all(each.solid(each.sizes) for each in asked)
                return replace(answer, suggestions=suggestions(asked) if known else ())
    return Judgement(True)


def _escape(question: Question) -> Judgement | None:
    """A ray along which f/g grows; None where every term of f is held."""
    solid = question.solid(question.sizes)
    escaping = list(question.escaping(question.sizes)) if solid else []
    if solid and not escaping:
        return None
    found = question.ray([point for _, point in escaping])
    if found is None and not solid:
        raise Undecided("negative terms in the smaller side, which may come close to 0")
    if found is None:
        raise Undecided("a term escapes in logarithms, but no ray of whole sizes shows it")
    ray, exponent = found
    ratio = "t" if exponent == 1 else f"t^{exponent_text(exponent)}"
    where = question.sizes.text(ray)
    groups = [part.split("=") for part in where.split(", ")]
    witness = tuple((name, value) for *names, value in groups for name in names)
    return Judgement(False, f"{question.first_term(ray)} escapes along {where} (ratio ~ {ratio})", witness)


def _vanishing(question: Question) -> Judgement | None:
    """Small sizes at which the bound is 0 and what it should bound is not."""
    if all(terms and min(terms.values()) > 0 for terms in question.g.sums):
        return None
    f, g = (polynomial(question.sizes.over_free(part)) for part in (question.f, question.g))
    if f is None or g is None or question.sizes.forgotten:
        return None
    free = question.sizes.free
    for point in lattice(len(free), 2, least=0):
        values = {name: entry + 1 for name, entry in zip(free, point, strict=True)}
        ray = Ray({name: (value, 0) for name, value in values.items()})
        if question.sizes.allows(ray) and g.evaluate(values) == 0 != f.evaluate(values):
            witness = tuple((name, str(value)) for name, value in values.items())
            where = " ".join(f"{name}={value}" for name, value in witness)
            return Judgement(False, f"{where}: {g.text(free)} = {g.evaluate(values)}", witness)
    return None


def ask(f: Magnitude, g: Magnitude, sizes: Sizes, terms: Sequence[tuple[Power, Fraction]] = ()) -> dict[str, Question]:
    """The two questions between a quantity and its bound; `terms` are those of f as a person sees them."""
    if not sizes.cone:
        raise Undecided("nothing satisfies the assumptions")
    turned = [part.scaled(Fraction(-1)) if _below(part) else part for part in (f, g)]
    seen = tuple(terms) if terms and turned[0] is f else _terms(turned[0], sizes)
    f, g = turned
    return {"O": Question(f, g, sizes, seen), "Omega": Question(g, f, sizes, _terms(g, sizes), " of the bound")}


def _below(part: Magnitude) -> bool:
    """Whether a sum has negative terms alone, so that its absolute value is the sum without its sign."""
    return part.exact and len(part.sums) == 1 and bool(part.sums[0]) and all(v < 0 for v in part.sums[0].values())


def _terms(part: Magnitude, sizes: Sizes) -> tuple[tuple[Power, Fraction], ...]:
    return tuple((key, terms[key]) for terms in part.sums for key in printed(terms, sizes.names))


def decide(claim: Claim) -> Finding | None:
    """An order of an expression over sizes; those of programs are for `counts`."""
    relation = claim.relation
    if not isinstance(relation, Bounded) or isinstance(relation.quantity, str):
        return None
    sizes = Sizes.of(claim)
    quantity, bound = magnitude(relation.quantity, sizes.names), magnitude(relation.bound, sizes.names)
    questions = ask(quantity, bound, sizes)
    judgement = judge(relation.order, questions)
    if judgement.holds:
        return Finding("holds", "proved", _reason(relation.order, questions), "order")
    return refuted(judgement, "exact witness")


def refuted(judgement: Judgement, grade: str, more: str = "", numbers: tuple[tuple[str, str], ...] = ()) -> Finding:
    """The finding of a bound that fails; `more` stands between the ray and what would help."""
    helps = f"; holds assuming {', or '.join(judgement.suggestions)}" if judgement.suggestions else ""
    witness, ways = judgement.witness, judgement.suggestions
    return Finding("refuted", grade, judgement.detail + more + helps, "order", witness, ways, numbers)


def _reason(order: str, questions: Mapping[str, Question]) -> str:
    """Which term each term is held by, as the certificates say."""
    asked = [questions[name] for name in (("O", "Omega") if order == "Theta" else (order,))]
    if any(len(q.sizes.cone) > 1 or len(q.f.sums) > 1 or len(q.g.sums) > 1 for q in asked):
        return "linear program in the logarithms of the sizes"
    texts = list(dict.fromkeys(text for question in asked for text in _held(question)))
    more = f" and {len(texts) - LISTED} more" if len(texts) > LISTED else ""
    return "term by term" + (": " if texts else "") + ", ".join(texts[:LISTED]) + more


def _held(question: Question) -> list[str]:
    """x^a <= the product of x^b to the power theta, for every term that is not a bound itself."""
    sizes, texts = question.sizes, []
    (terms,) = sizes.over_free(question.f).sums
    bounds = positive(sizes.over_free(question.g).sums[0])
    for small in filter(positive(terms).__contains__, printed(terms, sizes.names)):
        certificate = dominated([small], bounds, sizes.cone[0])
        assert isinstance(certificate, Certificate)
        weights = certificate.multipliers[: len(bounds)]
        factors = []
        for key, weight in zip(bounds, weights, strict=True):
            text, share = power_text(key, sizes.names), weight / sum(weights)
            factors += [text if share == 1 else f"({text})^{exponent_text(share)}"] if weight else []
        if small not in bounds:
            texts.append(f"{power_text(small, sizes.names)} <= {'*'.join(factors)}")
    return texts
