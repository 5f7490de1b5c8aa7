"""Claims whose truth is known by how they were made, so that no engine of ours is asked for it.

Run it as `python -m studies.known_claims --count 20000 --seed 0`. A family makes a true claim from something it
knows (a polynomial and its expansion, a point, a certificate) and a false one by changing it where the change can be
seen at a known point. It prints one JSON object and ends with 1 if any verdict is wrong, or if more than a tenth of a
family stays undecided.
"""

import json
import math
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise
from random import Random
from typing import Annotated, NamedTuple

import typer
from rich.console import Console
from rich.progress import Progress

from likewise.claims import ClaimSource, Verdict, check_claims

UNDECIDED = 0.10  # of a family, at most
BATCH = 200
LISTED = 40


class Known(NamedTuple):
    """A claim and whether it is true."""

    text: str
    true: bool


def fraction(value: Fraction) -> str:
    """A number as claims write it.

    >>> fraction(Fraction(-3, 4)), fraction(Fraction(2))
    ('(-3/4)', '2')
    """
    return f"({value})" if value < 0 or value.denominator > 1 else str(value)


def number(random: Random, most: int = 5, *, zero: bool = False) -> Fraction:
    """A small fraction, mostly whole."""
    while True:
        value = Fraction(random.randint(-most, most), random.choice((1, 1, 1, 2, 3)))
        if value or zero:
            return value


Poly = dict[tuple[int, ...], Fraction]


def times(a: Poly, b: Poly) -> Poly:
    """The product of two polynomials, by exponents of their names."""
    product: Poly = {}
    for left, x in a.items():
        for right, y in b.items():
            powers = tuple(i + j for i, j in zip(left, right, strict=True))
            product[powers] = product.get(powers, Fraction(0)) + x * y
    return {powers: value for powers, value in product.items() if value}


def value(poly: Poly, point: tuple[Fraction, ...]) -> Fraction:
    """The polynomial at a point."""
    return sum(
        (
            c * math.prod((x**n for x, n in zip(point, powers, strict=True)), start=Fraction(1))
            for powers, c in poly.items()
        ),
        start=Fraction(0),
    )


def written(poly: Poly, names: tuple[str, ...]) -> str:
    """The polynomial as a sum of its terms.

    >>> written({(2, 0): Fraction(1), (0, 1): Fraction(-1, 2)}, ("x", "y"))
    '1*x^2 + (-1/2)*y'
    """
    terms = [
        "*".join([fraction(c), *(f"{n}^{p}" if p > 1 else n for n, p in zip(names, powers, strict=True) if p)])
        for powers, c in poly.items()
    ]
    return " + ".join(terms) or "0"


def _linear(random: Random, count: int) -> Poly:
    unit = [tuple(int(i == j) for j in range(count)) for i in range(count)]
    poly = {powers: number(random) for powers in random.sample(unit, random.randint(1, count))}
    return poly | ({(0,) * count: number(random)} if random.random() < 0.6 else {})


def _changed(poly: Poly, random: Random) -> Poly:
    """Another coefficient for one term: another polynomial, so it differs somewhere."""
    powers = random.choice(list(poly))
    return {**poly, powers: poly[powers] + number(random)}


def polynomials(random: Random) -> Known:
    """A product of linear factors against its expansion."""
    names = ("x", "y", "z")[: random.randint(1, 3)]
    factors = [_linear(random, len(names)) for _ in range(random.randint(2, 4))]
    expanded = factors[0]
    for factor in factors[1:]:
        expanded = times(expanded, factor)
    true = random.random() < 0.5
    shown = expanded if true else _changed(expanded, random)
    product = "*".join(f"({written(factor, names)})" for factor in factors)
    return Known(f"given: {', '.join(names)} in R\nassert: {product} == {written(shown, names)}", true)


def vectors(random: Random) -> Known:
    """The dot product of two combinations of vectors, term by term."""
    names = ("q", "k", "v")[: random.randint(2, 3)]
    left, right = ({name: number(random) for name in names} for _ in range(2))
    terms = {(a, b): left[a] * right[b] for a in names for b in names}
    true = random.random() < 0.5
    if not true:
        chosen = random.choice(list(terms))
        terms[chosen] += number(random)
    sums = [" + ".join(f"{fraction(c)}*{name}" for name, c in side.items()) for side in (left, right)]
    shown = " + ".join(f"{fraction(c)}*dot({a}, {b})" for (a, b), c in terms.items())
    return Known(f"given: {', '.join(names)} in R^D\nassert: dot({sums[0]}, {sums[1]}) == {shown}", true)


def squares(random: Random) -> Known:
    """A sum of squares and a number: at least 0, or below 0 at a known point."""
    names = ("x", "y")[: random.randint(1, 2)]
    bases = [_linear(random, len(names)) for _ in range(random.randint(1, 2))]
    total: Poly = {}
    for base in bases:
        square = times(base, base)
        total = {p: total.get(p, Fraction(0)) + square.get(p, Fraction(0)) for p in total.keys() | square.keys()}
    true = random.random() < 0.5
    constant = (0,) * len(names)
    if true:
        gap = Fraction(random.randint(0, 3))
    else:
        point = tuple(number(random, zero=True) for _ in names)
        gap = -value(total, point) - Fraction(1, random.choice((1, 10, 100)))
    total = {p: c for p, c in {**total, constant: total.get(constant, Fraction(0)) + gap}.items() if c}
    return Known(f"given: {', '.join(names)} in R\nassert: {written(total, names)} >= 0", true)


def consequences(random: Random) -> Known:
    """A sum of linear assumptions with weights of at least 0, or a bound that a known point breaks."""
    names = ("a", "b", "c")
    point = tuple(number(random) for _ in names)
    rows = []
    for _ in range(random.randint(2, 3)):
        row = _linear(random, 3)
        row.pop((0, 0, 0), None)
        rows.append((row or {(1, 0, 0): Fraction(1)}, Fraction(random.randint(0, 3))))
    assumptions = [f"{written(row, names)} >= {fraction(value(row, point) - slack)}" for row, slack in rows]
    weights = [Fraction(random.randint(0, 3)) for _ in rows]
    weights[0] = weights[0] or Fraction(1)
    total: Poly = {}
    bound = Fraction(0)
    for (row, slack), weight in zip(rows, weights, strict=True):
        total = {p: total.get(p, Fraction(0)) + weight * row.get(p, Fraction(0)) for p in total.keys() | row.keys()}
        bound += weight * (value(row, point) - slack)
    total = {p: c for p, c in total.items() if c}
    true = random.random() < 0.5
    least = bound - random.randint(0, 2) if true else value(total, point) + Fraction(1, random.choice((1, 7)))
    shown = written(total, names)
    return Known(f"given: a, b, c in R\nassume: {'; '.join(assumptions)}\nassert: {shown} >= {fraction(least)}", true)


def orders(random: Random) -> Known:
    """A monomial under the geometric mean of two bounds, or above every bound in one direction."""
    names = ("N", "D", "M")
    bounds = [tuple(random.randint(0, 3) for _ in names) for _ in range(random.randint(2, 3))]
    true = random.random() < 0.5
    if true:
        i, j = random.choice(bounds), random.choice(bounds)
        term = tuple(random.randint(0, (a + b) // 2) for a, b in zip(i, j, strict=True))
    else:
        direction = tuple(random.randint(0, 3) for _ in names)
        if not any(direction):
            direction = (1, 0, 0)
        most = max(sum(d * p for d, p in zip(direction, bound, strict=True)) for bound in bounds)
        grows = random.choice([i for i, d in enumerate(direction) if d])
        term = tuple(most // direction[grows] + 1 if i == grows else random.randint(0, 2) for i in range(3))
    shown = written({term: Fraction(random.randint(1, 9))}, names)
    total = " + ".join(written({bound: Fraction(1)}, names) for bound in bounds)
    return Known(f"sizes: N, D, M\nassert: {shown} in O({total})", true)


def moments(random: Random) -> Known:
    """Moments of one Gaussian, uniform or sign variable, from their formulas."""
    degree = random.randint(1, 4)
    poly: Poly = {(n,): number(random) for n in range(degree + 1)}
    law = random.choice(("U(0, 1)", "N(0, std=1)", "U(-1, 1)"))
    moment = {
        "U(0, 1)": lambda n: Fraction(1, n + 1),
        "U(-1, 1)": lambda n: Fraction(0) if n % 2 else Fraction(1, n + 1),
        "N(0, std=1)": lambda n: Fraction(0) if n % 2 else Fraction(math.prod(range(1, n, 2))),
    }[law]
    mean = sum((c * moment(powers[0]) for powers, c in poly.items()), start=Fraction(0))
    true = random.random() < 0.5
    shown = mean if true else mean + number(random)
    return Known(f"given: x ~ {law}\nassert: E[{written(poly, ('x',))}] == {fraction(shown)}", true)


def gaussian_vectors(random: Random) -> Known:
    """Second moments and characteristic functions of a Gaussian vector in every dimension."""
    a, b, s = number(random), number(random), Fraction(random.randint(1, 4))
    true = random.random() < 0.5
    off = Fraction(0) if true else number(random)
    kind = random.randrange(4)
    q = f"({fraction(a)}*q + {fraction(b)}*k)"
    head = f"given: q, k in R^D; w ~ N(0, {s}*I(D))\nassert: "
    if kind == 0:
        return Known(
            head + f"E[dot(w, q)*dot(w, {q})] == {fraction(s * a + off)}*sqnorm(q) + {fraction(s * b)}*dot(q, k)", true
        )
    if kind == 1:
        return Known(head + f"E[cos(dot(w, {q}))] == exp({fraction(-s / 2 + off)}*sqnorm({q}))", true)
    if kind == 2:
        return Known(head + f"E[exp(dot(w, {q}))] == exp({fraction(s / 2 + off)}*sqnorm({q}))", true)
    return Known(head + f"Var[{fraction(a)}*dot(w, q)] == {fraction(s * a * a + off)}*sqnorm(q)", true)


def chances(random: Random) -> Known:
    """A linear event of a uniform variable."""
    low, width = number(random, zero=True), Fraction(random.randint(1, 6), random.choice((1, 2)))
    share = Fraction(random.randint(0, 12), 12)
    cut = low + share * width
    slope = abs(number(random))
    up = random.random() < 0.5
    sign = "<=" if up else ">"
    chance = share if up else 1 - share
    true = random.random() < 0.5
    shown = chance if true else (chance + Fraction(random.randint(1, 11), 12)) % 1
    true = shown == chance
    event = f"{fraction(slope)}*u {sign} {fraction(slope * cut)}"
    return Known(f"given: u ~ U({low}, {low + width})\nassert: P[{event}] == {fraction(shown)}", true)


def shapes(random: Random) -> Known:
    """A chain of matrix products, with or without a transpose too many."""
    letters = random.sample("abcdefg", random.randint(3, 4))
    given, parts = [], []
    for i, (rows, columns) in enumerate(pairwise(letters)):
        turned = random.random() < 0.4
        given.append(f"{'XYZ'[i]}[{columns}, {rows}]" if turned else f"{'XYZ'[i]}[{rows}, {columns}]")
        parts.append(f"{'XYZ'[i]}'" if turned else "XYZ"[i])
    true = random.random() < 0.5
    claimed = [letters[0], letters[-1]]
    if not true:
        match random.randrange(3):
            case 0:
                claimed.reverse()
            case 1:
                i = random.randrange(len(parts))
                parts[i] = parts[i].removesuffix("'") if parts[i].endswith("'") else parts[i] + "'"
            case _:
                claimed = [letters[0], letters[1]] if len(letters) > 2 else claimed[::-1]
    return Known(f"given: {', '.join(given)}\nassert: {' @ '.join(parts)} has shape [{', '.join(claimed)}]", true)


def whole_numbers(random: Random) -> Known:
    """A polynomial inequality over a range, tried at every number of it."""
    low = random.randint(-20, 20)
    high = low + random.randint(5, 400)
    root = random.randint(low, high)
    poly = {(2,): Fraction(1), (1,): Fraction(-2 * root), (0,): Fraction(root * root + random.choice((-1, 0, 0, 1)))}
    sign = random.choice((">", ">=", "!="))
    meets = {">": lambda v: v > 0, ">=": lambda v: v >= 0, "!=": lambda v: v != 0}[sign]
    true = all(meets(value(poly, (Fraction(n),))) for n in range(low, high + 1))
    return Known(f"given: n in {low}..{high}\nassert: {written(poly, ('n',))} {sign} 0", true)


def arithmetic(random: Random) -> Known:
    """Exact fractions."""

    def tree(depth: int) -> tuple[str, Fraction]:
        if depth == 0 or random.random() < 0.2:
            shown = number(random, 20)
            return fraction(shown), shown
        (a, x), (b, y) = tree(depth - 1), tree(depth - 1)
        sign = random.choice("+-*/" if y else "+-*")
        result = {"+": lambda: x + y, "-": lambda: x - y, "*": lambda: x * y, "/": lambda: x / y}[sign]()
        return f"({a} {sign} {b})", result

    text, result = tree(random.randint(1, 4))
    true = random.random() < 0.5
    shown = result if true else result + number(random) / random.choice((1, 1000, 10**12))
    return Known(f"assert: {text} == {fraction(shown)}", true)


class Defined(NamedTuple):
    """f(parameter) = a*parameter + b*free + c*inner(parameter)."""

    name: str
    parameter: str
    free: str
    weights: tuple[Fraction, Fraction, Fraction]
    inner: "Defined | None"

    @property
    def line(self) -> str:
        a, b, c = map(fraction, self.weights)
        call = f" + {c}*{self.inner.name}({self.parameter})" if self.inner else ""
        return f"{self.name}({self.parameter}) = {a}*{self.parameter} + {b}*{self.free}{call}"

    def at(self, argument: Fraction, point: dict[str, Fraction]) -> Fraction:
        """Its value: a free name is the one of the claim, whatever a caller's parameter is called."""
        a, b, c = self.weights
        other = argument if self.free == self.parameter else point[self.free]
        return a * argument + b * other + (c * self.inner.at(argument, point) if self.inner else 0)


def definitions(random: Random) -> Known:
    """Functions that call each other, with parameters of the same names as what is free elsewhere."""
    names = ("x", "y", "z")
    point = {name: number(random) for name in names}
    functions: list[Defined] = []
    for name in ("f", "g", "h")[: random.randint(2, 3)]:
        weights = number(random, 3), number(random, 3), number(random, 3)
        inner = random.choice(functions) if functions else None
        functions.append(Defined(name, random.choice(names), random.choice(names), weights, inner))
    argument = random.choice(names)
    result = functions[-1].at(point[argument], point)
    true = random.random() < 0.5
    shown = result if true else result + number(random)
    lines = [
        "given: x, y, z in R",
        "assume: " + "; ".join(f"{name} == {fraction(at)}" for name, at in point.items()),
        *(function.line for function in functions),
        f"assert: {functions[-1].name}({argument}) == {fraction(shown)}",
    ]
    return Known("\n".join(lines), true)


def exponentials(random: Random) -> Known:
    """Sums in exponents and products of exponentials; angles added."""
    names = ("x", "y")
    a, b = ({name: Fraction(random.randint(-3, 3)) for name in names} for _ in range(2))
    true = random.random() < 0.5
    total = {name: a[name] + b[name] for name in names}
    if not true:
        total[random.choice(names)] += random.choice((-2, -1, 1, 2))

    def combination(parts: dict[str, Fraction]) -> str:
        return " + ".join(f"{fraction(c)}*{name}" for name, c in parts.items())

    one, two, both = combination(a), combination(b), combination(total)
    if random.random() < 0.5:
        return Known(f"given: x, y in R\nassert: exp({one})*exp({two}) == exp({both})", true)
    text = f"cos({one})*cos({two}) - sin({one})*sin({two}) == cos({both})"
    same = all(total[n] == a[n] + b[n] for n in names) or all(total[n] == -(a[n] + b[n]) for n in names)
    return Known(f"given: x, y in R\nassert: {text}", same)


def extremes(random: Random) -> Known:
    """max, min and abs of numbers, against the same function written another way."""
    a, b, c = (number(random, 3) for _ in range(3))
    one, two = f"({fraction(a)}*x + {fraction(b)}*y)", f"({fraction(c)}*x + 1)"
    true = random.random() < 0.5
    factor = Fraction(1) if true else Fraction(1) + abs(number(random))
    kind = random.randrange(3)
    if kind == 0:
        shown = f"{fraction(factor)}*({one} + {two} + abs({one} - {two}))/2"
        return Known(f"given: x, y in R\nassert: max({one}, {two}) == {shown}", true)
    if kind == 1:
        return Known(
            f"given: x, y in R\nassert: max({one}, {two}) + min({one}, {two}) == {fraction(factor)}*({one} + {two})",
            true,
        )
    return Known(f"given: x, y in R\nassert: relu({one}) - relu(-{one}) == {fraction(factor)}*{one}", true)


def gram(random: Random) -> Known:
    """The square of a combination of vectors, written out, is at least 0; or below a bound at known vectors."""
    a, b = number(random), number(random)
    expanded = f"{fraction(a * a)}*sqnorm(q) + {fraction(2 * a * b)}*dot(q, k) + {fraction(b * b)}*sqnorm(k)"
    if random.random() < 0.5:
        return Known(f"given: q, k in R^D\nassert: {expanded} >= {fraction(-Fraction(random.randint(0, 2)))}", True)
    q = tuple(random.randint(-2, 2) for _ in range(2))
    k = tuple(random.randint(-2, 2) for _ in range(2))
    most = sum((a * x + b * y) ** 2 for x, y in zip(q, k, strict=True))
    return Known(f"given: q, k in R^D\nassert: {expanded} >= {fraction(most + Fraction(1, 5))}", False)


def holes(random: Random) -> Known:
    """A factor over itself: equal to 1 only where it is not 0."""
    root, base = number(random), _linear(random, 1)
    true = random.random() < 0.5
    without = f"assume: x != {fraction(root)}\n" if true else ""
    shown = written(base, ("x",))
    factor = f"(x - {fraction(root)})"
    return Known(f"given: x in R\n{without}assert: ({shown})*{factor}/{factor} == {shown}", true)


def logarithms(random: Random) -> Known:
    """Logarithms of products of powers of positive numbers."""
    a, b = (random.choice((-3, -2, -1, 1, 2, 3)) for _ in range(2))
    true = random.random() < 0.5
    shown = b if true else b + random.choice((-1, 1))
    head = "given: x, y in R\nassume: x > 0; y > 0\n"
    return Known(
        f"{head}assert: log(x^({a})*y^({b})) == {fraction(Fraction(a))}*log(x) + {fraction(Fraction(shown))}*log(y)",
        true,
    )


def entries(random: Random) -> Known:
    """max, min and relu of vectors, entry by entry."""
    factor = abs(number(random))
    true = random.random() < 0.5
    off = Fraction(0) if true else abs(number(random))
    c, d = fraction(factor), fraction(factor + off)
    text = random.choice((
        f"{c}*sum(max(q, k)) + {c}*sum(min(q, k)) == {d}*sum(q) + {d}*sum(k)",
        f"sum(relu({c}*q)) - sum(relu(-{c}*q)) == {d}*sum(q)",
        f"{c}*sum(abs(q)) == {d}*sum(max(q, -q))",
    ))  # fmt: skip
    return Known(f"given: q, k in R^D\nassert: {text}", true)


def large_sizes(random: Random) -> Known:
    """A quadratic against a linear bound: broken only by large sizes; or with the sizes bounded, never."""
    slope, constant = random.randint(5, 5000), random.randint(0, 50)
    true = random.random() < 0.5
    bound = f"assume: N <= {slope}\n" if true else ""
    return Known(f"sizes: N\n{bound}assert: N^2 <= {slope}*N + {constant}", true)


FAMILIES: dict[str, Callable[[Random], Known]] = {
    "polynomials": polynomials,
    "vectors": vectors,
    "squares": squares,
    "consequences": consequences,
    "orders": orders,
    "moments": moments,
    "gaussian_vectors": gaussian_vectors,
    "chances": chances,
    "shapes": shapes,
    "whole_numbers": whole_numbers,
    "arithmetic": arithmetic,
    "definitions": definitions,
    "exponentials": exponentials,
    "extremes": extremes,
    "gram": gram,
    "holes": holes,
    "logarithms": logarithms,
    "entries": entries,
    "large_sizes": large_sizes,
}


def outcome(known: Known, verdict: Verdict) -> str:
    """right, wrong or undecided."""
    if verdict.verdict not in ("holds", "refuted"):
        return "undecided"
    return "right" if (verdict.verdict == "holds") == known.true else "wrong"


def main(
    count: Annotated[int, typer.Option(min=1, help="Claims in all.")] = 20_000,
    seed: Annotated[int, typer.Option(min=0, help="The same seed makes the same claims.")] = 0,
    family: Annotated[str, typer.Option(help="Only this family.")] = "",
) -> None:
    """Make claims, have them checked, and count what is right, wrong and undecided."""
    chosen = [family] if family else list(FAMILIES)
    random = Random(seed)
    made = [(name, FAMILIES[name](random)) for name in (chosen[i % len(chosen)] for i in range(count))]
    counts: dict[str, Counter[str]] = {name: Counter() for name in chosen}
    offending: list[str] = []
    with Progress(console=Console(stderr=True)) as bar:
        task = bar.add_task("claims", total=count)
        for start in range(0, count, BATCH):
            part = made[start : start + BATCH]
            sources = [ClaimSource(f"{name}-{start + i}", known.text) for i, (name, known) in enumerate(part)]
            verdicts = check_claims(sources)
            for (name, known), verdict in zip(part, verdicts, strict=True):
                result = outcome(known, verdict)
                counts[name][result] += 1
                if result == "wrong":
                    offending.append(f"{verdict}\n{known.text}")
            bar.advance(task, len(part))
    doubtful = [name for name, each in counts.items() if each["undecided"] > UNDECIDED * each.total()]
    print(json.dumps({"families": counts, "too often undecided": doubtful, "wrong": offending[:LISTED]}, indent=1))
    raise typer.Exit(1 if offending or doubtful else 0)


if __name__ == "__main__":
    typer.run(main)
