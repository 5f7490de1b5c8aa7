"""Where to look: values of the sizes and variables a claim quantifies over, small and large, near and far."""

from collections.abc import Iterator
from itertools import product

import numpy as np

from likewise.claims.chance.draws import Array, Scope, Value, constant, known, room, whole
from likewise.claims.language.claim import Between, Claim, Domain, Integers, Law, OneOf, Reals, Size
from likewise.claims.language.tree import Chain, Name, Node
from likewise.claims.verdict import Undecided

SIZES = (1, 2, 4, 16)
RADII = (0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0)
COMBINATIONS = 16  # of sizes, at most
SHOWN = 4  # entries of a vector in a detail

Point = dict[str, Array]  # sizes first, then variables, in the order of the claim


def candidates(claim: Claim, generator: np.random.Generator) -> Iterator[Point]:
    """Points that satisfy the assumptions: every size with every radius, along an axis and in general position.

    At equal directions two laws of variances v and v' differ most at radius^2 = 2 ln(v/v')/(v - v'); the radii
    enclose it for the variances people write.
    """
    quantified = [variable for variable in claim.variables if not variable.random]
    fixed = _equations(claim.assumptions)
    radii = RADII if quantified else RADII[:1]
    styles = ("axis", "general", "general") if quantified else ("axis",)
    for sizes, radius, style in product(_sizes(claim.sizes, fixed, generator), radii, styles):
        point, length = dict(sizes), radius  # along the axis, for the first vector; the others stay at 0
        for variable in quantified:
            dims = _dims(variable.kind, _scope(claim, point))
            room(*dims)
            if variable.name in fixed:
                value = np.broadcast_to(known(_scope(claim, point).evaluate(fixed[variable.name])), dims)
            else:
                value = _value(variable.kind, generator)
                if value is None and style == "axis":
                    value = _along_axis(dims, length)
                elif value is None:
                    value = _in_general(dims, radius, generator)
            length = 0.0 if dims else length
            point[variable.name] = value
        if all(_scope(claim, point).holds(chain).all() for chain in claim.assumptions):
            yield point


def text(point: Point, *, whole: bool = False) -> list[tuple[str, str]]:
    """Names and values as people write them; long vectors are cut unless `whole`."""
    return [(name, _text(value, whole)) for name, value in point.items()]


def scope_values(point: Point) -> dict[str, Value]:
    """The point as values of one draw."""
    return {name: constant(value) for name, value in point.items()}


def _scope(claim: Claim, point: Point) -> Scope:
    return Scope(scope_values(point), {}, claim.layout)


def _equations(assumptions: tuple[Chain, ...]) -> dict[str, Node]:
    """`mu == 0` fixes mu; other assumptions are only checked."""
    pairs = [chain.terms for chain in assumptions if chain.comparisons == ("==",)]
    return {left.name: right for left, right in pairs if isinstance(left, Name)}


def _sizes(sizes: tuple[Size, ...], fixed: dict[str, Node], generator: np.random.Generator) -> list[dict[str, Array]]:
    """Values of all sizes; those given by an equation follow from those before."""
    free = [size.name for size in sizes if size.equation is None and size.name not in fixed]
    grid = [dict(zip(free, values, strict=True)) for values in _grid(len(free), generator)]
    found = []
    for values in grid:
        filled: dict[str, Array] = {}
        for size in sizes:
            equation = fixed.get(size.name, size.equation)
            value = values[size.name] if equation is None else _size(equation, filled)
            filled[size.name] = np.asarray(float(value))
        found.append(filled)
    return found


def _grid(count: int, generator: np.random.Generator) -> list[tuple[int, ...]]:
    if len(SIZES) ** count <= COMBINATIONS:
        return [*product(SIZES, repeat=count)]
    rest = [tuple(map(int, generator.choice(SIZES, count))) for _ in range(COMBINATIONS - len(SIZES))]
    return [(size,) * count for size in SIZES] + rest


def _size(equation: Node, filled: dict[str, Array]) -> float:
    number = whole(Scope(scope_values(filled), {}).evaluate(equation), f"a size, {equation},")
    if number < 1:
        raise Undecided(f"a size is {equation}, which is below 1")
    return number


def _dims(kind: Domain | Law, scope: Scope) -> tuple[int, ...]:
    return tuple(
        whole(scope.evaluate(dim), f"a size, {dim},") for dim in (kind.dims if isinstance(kind, Reals) else ())
    )


def _value(domain: Domain | Law, generator: np.random.Generator) -> Array | None:
    """A value of a domain that is not all real numbers."""
    if isinstance(domain, OneOf):
        return np.asarray(float(generator.choice([float(value) for value in domain.values])))
    if isinstance(domain, Between):
        low, high = float(domain.lowest), float(domain.highest)
        return np.asarray(round(low + (high - low) * generator.random(), 2)).clip(low, high)
    if isinstance(domain, Integers):
        low, high = (-4, 4) if domain.lowest is None or domain.highest is None else (domain.lowest, domain.highest)
        return np.asarray(float(generator.integers(low, high, endpoint=True)))
    return None


def _along_axis(dims: tuple[int, ...], length: float) -> Array:
    value = np.zeros(dims)
    value.flat[:1] = length if dims else 1.0
    return value


def _in_general(dims: tuple[int, ...], radius: float, generator: np.random.Generator) -> Array:
    """A random direction, rounded so that it can be printed."""
    noise = generator.standard_normal(dims)
    return np.asarray(np.round(radius * noise / (np.linalg.norm(noise) if dims else 1.0), 2))


def _text(value: Array, whole: bool) -> str:
    if value.ndim == 0:
        return f"{float(value):g}"
    if value.ndim > 1:
        return f"({','.join(_text(row, whole) for row in value)})"
    shown = [f"{entry:g}" for entry in value.tolist()]
    return f"({','.join(shown if whole or len(shown) <= SHOWN else [*shown[:2], '...'])})"
