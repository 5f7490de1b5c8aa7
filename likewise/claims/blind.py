"""Points for the judge's blind search: chosen without knowing what an engine did.

Small and large sizes, zeros, ones, corners, equal and opposite vectors, unit vectors, huge and tiny entries, the
numbers written in the claim and their neighbours. Equations among the assumptions are solved where they name one side.
"""

from collections.abc import Iterator, Mapping
from fractions import Fraction
from itertools import chain, product
from math import prod
from random import Random
from typing import Any

from flint import ctx, fmpq

from likewise.claims import judge
from likewise.claims.language.claim import (
    Between,
    Bounded,
    Claim,
    Compares,
    HasShape,
    Integers,
    OneOf,
    Rademacher,
    Reals,
    Variable,
)
from likewise.claims.language.tree import Call, Chain, Indexed, Name, Node, Number, children, names

AXES = (2, 1, 3, 2, 4, 1, 2, 3, 5, 2, 3, 7, 1, 4, 9)
STYLES = (
    *("small", "zero", "one", "axis", "small", "equal", "parts", "opposite"),
    *("unit", "scales", "written", "positive", "huge", "tiny", "shares", "small"),
    *("symmetric", "skew", "turned", "projecting"),
)
SCALES = (0, 1, -1, 2, -3, 5, 10, -10, 100, 1000, -1000, 10**6, Fraction(1, 2), Fraction(1, 100), Fraction(-1, 10**6))
UNITS = (Fraction(3, 5), Fraction(4, 5))
CROSSINGS, HALVINGS = 8, 100  # of two sides, that are looked at; of the interval around one
CROSSING = "crossing"  # the engine whose witness is no fraction, but lies between two
FEW = 1_000  # points that are all looked at
MISSES = 400  # sizes in a row whose lengths do not fit, or that make large arrays
Sizes = dict[str, int]
Values = dict[str, list[Any]]


def nodes_of(claim: Claim) -> list[Node]:
    """The expressions of the relation and of the assumptions."""
    found: list[Node] = [term for assumption in claim.assumptions for term in assumption.terms]
    match claim.relation:
        case Compares(links, _):
            found += links.terms
        case Bounded(quantity, _, bound):
            found += [bound] if isinstance(quantity, str) else [quantity, bound]
        case HasShape(body, dims):
            found += [body, *dims]
    return found


def written(claim: Claim) -> list[Fraction]:
    """The numbers that stand in the claim."""
    found, waiting = {Fraction(0), Fraction(1)}, nodes_of(claim)
    while waiting:
        node = waiting.pop()
        waiting += children(node)
        found |= {node.value} if isinstance(node, Number) else set()
    return sorted(found)


def axes(claim: Claim) -> set[str]:
    """Sizes that are the length of an axis: those stay small."""
    dims: list[Node] = []
    for variable in claim.variables:
        match variable.kind:
            case Reals(mine):
                dims += mine
            case Rademacher(dim):
                dims.append(dim)
    waiting = [*nodes_of(claim), *(node for variable in claim.variables for node in _parameters(variable))]
    while waiting:
        node = waiting.pop()
        waiting += children(node)
        if isinstance(node, Call) and node.function in ("I", "ones", "zeros", "reshape"):
            dims += children(node)[int(node.function == "reshape") :]
        if isinstance(node, Indexed):
            dims += [node.lowest, node.highest]
    found = set().union(*map(names, dims)) if dims else set()
    equations = [size for size in claim.sizes if size.equation is not None and size.name in found]
    return found.union(*(names(size.equation) for size in equations if size.equation is not None))


def _parameters(variable: Variable) -> list[Node]:
    kind: Any = variable.kind
    parameters = [getattr(kind, name, None) for name in ("mean", "spread", "lowest", "highest", "rate", "chance")]
    return [] if isinstance(kind, Reals) else [node for node in parameters if isinstance(node, Node)]


def equations(assumptions: tuple[Chain, ...]) -> list[tuple[str, Node]]:
    """Assumptions that say what a name is: x == 2*y."""
    found = []
    for each in assumptions:
        if each.comparisons == ("==",):
            for left, right in (each.terms, each.terms[::-1]):
                if isinstance(left, Name) and left.name not in names(right):
                    found.append((left.name, right))
    return found


def every_point(claim: Claim) -> list[tuple[Sizes, Values]] | None:
    """All points, where there are few: no free size, and every variable has few values."""
    if any(size.equation is None for size in claim.sizes):
        return None
    choices: list[list[Any]] = []
    fixed = [variable for variable in claim.variables if not variable.random]
    for variable in fixed:
        match variable.kind:
            case OneOf(values):
                choices.append([judge.rational(value) for value in values])
            case Integers(int(lowest), int(highest)) if highest - lowest < FEW:
                choices.append([fmpq(value) for value in range(lowest, highest + 1)])
            case _:
                return None
    if prod(map(len, choices)) > FEW:
        return None
    names_ = [variable.name for variable in fixed]
    return [({}, {name: [value] for name, value in zip(names_, chosen, strict=True)}) for chosen in product(*choices)]


def points(claim: Claim, seed: int = 0) -> Iterator[tuple[Sizes, Values]]:
    """Many points, sizes and entries; not all of them satisfy the assumptions. None where no lengths fit."""
    draw, lengths, numbers, missed = Random(seed), axes(claim), written(claim), 0
    for number in range(10**6):
        sizes = _sizes(claim, draw, lengths, numbers, number)
        style = STYLES[number % len(STYLES)] if number < 3 * len(STYLES) else draw.choice(STYLES)
        found = filled(claim, sizes, {}, draw, style, numbers)
        missed = missed + 1 if found is None else 0
        if found is not None:
            yield found
        elif missed >= MISSES:
            return


def brackets(claim: Claim) -> Iterator[tuple[str, fmpq, fmpq]]:
    """Close numbers between which the two sides of an equation in one number cross."""
    free = [variable for variable in claim.variables if not variable.random]
    equation = judge.crossing(claim)
    if equation is None or claim.sizes or len(free) != 1:
        return
    name, kind = free[0].name, free[0].kind
    if kind != Reals(()) and not isinstance(kind, Between):
        return

    def side(at: fmpq) -> int | None:
        try:
            point = judge.place(claim, {}, {name: [at]})
            left, right = (judge.ball(point.value(term).array.item()) for term in equation.terms)
        except (judge.Undefined, judge.Unclear, judge.Misfit, judge.Outside, judge.Turned, OverflowError, ValueError):
            return None
        return 1 if left > right else -1 if left < right else None

    ctx.prec = 2 * HALVINGS
    seen: tuple[fmpq, int] | None = None
    ends = [kind.lowest, kind.highest] if isinstance(kind, Between) else []
    grid = {Fraction(n, 4) for n in range(-48, 49)} | {
        sign * Fraction(2) ** n for n in range(-8, 14) for sign in (1, -1)
    }
    for value in sorted(grid | {*written(claim)} | {*map(Fraction, ends)}):
        at = judge.rational(value)
        here = side(at)
        if here is None:
            continue
        if seen is not None and seen[1] != here:
            low, high = seen[0], at
            for _ in range(HALVINGS):
                middle = (low + high) / 2
                found = side(middle)
                if found is None:
                    break
                low, high = (middle, high) if found == seen[1] else (low, middle)
            yield name, low, high
        seen = at, here


def _sizes(claim: Claim, draw: Random, lengths: set[str], numbers: list[Fraction], number: int) -> Sizes:
    near = [int(value) + shift for value in numbers for shift in (-1, 0, 1) if 1 <= int(value) + shift <= 10**6]
    sizes: Sizes = {}
    for place, size in enumerate(each for each in claim.sizes if each.equation is None):
        if size.name in lengths:
            usual = AXES[number % len(AXES)] if number < 2 * len(AXES) else draw.choice(AXES[:11])
            sizes[size.name] = usual if place == 0 else draw.choice((1, 2, 3, 4, usual))
        elif number < 12:
            sizes[size.name] = draw.randint(1, 2 + number // 2)
        else:
            wide = (draw.randint(1, 12), draw.randint(1, 200), 10 ** draw.randint(1, 9), draw.choice(near or [1]))
            sizes[size.name] = draw.choice(wide)
    return sizes


def filled(
    claim: Claim, sizes: Sizes, values: Values, draw: Random, style: str, numbers: list[Fraction]
) -> tuple[Sizes, Values] | None:
    """The point with a value for every size and variable that has none yet; None if no lengths fit."""
    sizes, values, given = dict(sizes), dict(values), dict(equations(claim.assumptions))
    declared = {size.name for size in claim.sizes}
    try:
        for name, node in given.items():
            known = declared & names(node) <= sizes.keys() and names(node) <= declared
            if name in declared and known and name not in values:
                sizes[name] = judge.Point(claim, sizes, {}).whole(node, judge.LARGEST)
        sizes = judge.complete(claim, sizes)
        point = judge.place(claim, sizes, values)
        free = [variable for variable in claim.variables if not variable.random and variable.name not in values]
        for variable in free:
            count = prod(point.shape(variable))
            if count > 400:
                return None
            values[variable.name] = [_entry(variable, draw, style, numbers, place) for place in range(count)]
        real = [variable for variable in free if isinstance(variable.kind, Reals)]
        _related(claim, values, style, real)
        for variable in real:
            _shaped(values[variable.name], point.shape(variable), style)
        for variable in free:
            if variable.name in given:
                values[variable.name] = _solved(claim, sizes, values, variable, given[variable.name])
    except (judge.Undefined, judge.Unclear, judge.Misfit, judge.Outside, judge.Turned, OverflowError):
        return None
    return sizes, values


def _solved(claim: Claim, sizes: Sizes, values: Values, variable: Variable, node: Node) -> list[Any]:
    rest = {name: entries for name, entries in values.items() if name != variable.name}
    point = judge.place(claim, sizes, rest)
    shape = point.shape(variable)
    found = point.value(node).array
    if found.shape in ((), (1,)) and shape:
        return [found.reshape(-1)[0]] * prod(shape)
    return list(found.reshape(-1))


def _related(claim: Claim, values: Mapping[str, list], style: str, free: list[Variable]) -> None:
    """Vectors that are equal, or opposite."""
    if style not in ("equal", "opposite") or not free:
        return
    first = values[free[0].name]
    for variable in free[1:]:
        if len(values[variable.name]) == len(first) and variable.kind == free[0].kind:
            values[variable.name][:] = first if style == "equal" else [-entry for entry in first]


def _shaped(entries: list, shape: tuple[int, ...], style: str) -> None:
    """A matrix that is symmetric, the negative of its transpose, orthogonal (or part of such), or a projection."""
    if len(shape) != 2 or style not in ("symmetric", "skew", "turned", "projecting"):
        return
    rows, columns = shape
    for i, j in product(range(rows), range(columns)):
        if style == "turned":  # every row is moved on by one, the first changes its sign
            value = fmpq(int(j == (i + 1) % max(shape)) * (-1 if i == 0 else 1))
        elif style == "projecting":
            value = fmpq(int(i == j and i % 2 == 0))
        elif i < min(shape) and j < min(shape) and i >= j:
            other = entries[j * columns + i]
            value = other if style == "symmetric" or i == j else -other
            value = fmpq(0) if style == "skew" and i == j else value
        else:
            continue
        entries[i * columns + j] = value


def _entry(variable: Variable, draw: Random, style: str, numbers: list[Fraction], place: int) -> fmpq:
    match variable.kind:
        case OneOf(options):
            value = draw.choice(options)
        case Between(lowest, highest):
            share = Fraction(draw.choice((0, 12, 6, 0, 12, draw.randint(0, 12))), 12)
            share = abs(share - Fraction(1, 10**5)) if style in ("tiny", "huge") else share
            inside = [number for number in numbers if lowest <= number <= highest]
            value = draw.choice(inside) if style == "written" and inside else lowest + (highest - lowest) * share
        case Integers(lowest, highest):
            if lowest is not None and highest is not None:
                near = [int(number) for number in numbers if lowest <= number <= highest]
                value = draw.choice([lowest, highest, draw.randint(lowest, highest), *near])
            else:
                wide = (draw.randint(-3, 3), draw.randint(-30, 30), draw.randint(-1000, 1000))
                value = int(draw.choice(numbers)) + draw.randint(-1, 1) if style == "written" else draw.choice(wide)
        case _:
            value = _real(draw, style, numbers, place)
    return judge.rational(Fraction(value))


def _real(draw: Random, style: str, numbers: list[Fraction], place: int) -> Fraction | int:
    match style:
        case "zero":
            return 0
        case "one":
            return 1
        case "axis":
            return draw.choice((0, 0, 1)) if place else draw.choice((1, 1, 2, -1, 0))
        case "unit":
            return UNITS[place] * draw.choice((1, -1)) if place < 2 else 0
        case "shares":
            return (Fraction(1, 4), Fraction(3, 4), 0)[min(place, 2)]
        case "positive":
            return draw.choice((1, 2, 3, Fraction(1, 2), Fraction(1, 3), 7, Fraction(1, 10), 40))
        case "parts":
            return Fraction(draw.randint(-12, 12), draw.choice((2, 3, 4, 7)))
        case "scales":
            return draw.choice(SCALES)
        case "huge":
            return draw.choice((10**3, 10**6, -(10**6), 1, 0, 10**4))
        case "tiny":
            return draw.choice((Fraction(1, 10**3), Fraction(1, 10**6), Fraction(-1, 10**4), 1, 0))
        case "written":
            return draw.choice(list(chain(numbers, (-number for number in numbers)))) + draw.choice((0, 0, 0, 1, -1))
    return draw.randint(-2, 2)
