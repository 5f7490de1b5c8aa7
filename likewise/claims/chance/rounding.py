"""Floats that decide are recomputed in balls: the rounding of draws never decides an event or a mean.

A draw is a float, hence an exact number, and what the claim says of it has an exact value. Events whose sides nearly
touch are decided by that value; where there are too many of them, or where floats lose the digits of what is averaged,
the claim is undecided.
"""

from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise

import numpy as np
from flint import ctx, fmpq

from likewise.claims import judge
from likewise.claims.chance.draws import Array, Scope, as_range
from likewise.claims.language.claim import Claim, Normal, Rademacher
from likewise.claims.language.tree import (
    Binary,
    Call,
    Index,
    Moment,
    Name,
    Negative,
    Node,
    Number,
    Probability,
    children,
    names,
)
from likewise.claims.verdict import Undecided

BITS = 320
NEAR = 1e-7  # gap between the sides of an event, relative to their size, below which floats do not decide
MANY = 400  # such draws of one block
LOOKED = 12  # draws of a block whose floats are compared with exact values
LOSS = 1e-8  # of the largest value: more is lost digits
SUMS = ("dot", "sum", "sqnorm", "tr", "vec", "outer", "pairs", "dim", "ones", "zeros", "I")
EXACT = frozenset({*SUMS, "abs", "max", "min", "relu"})  # exact in floats, on whole numbers


def verified(
    claim: Claim, point: Mapping[str, Array], mean: Moment | Probability, block: Scope, values: Array
) -> Array:
    """The values of a block, those that rounding could have decided replaced by exact ones."""
    if "out" in names(mean) or claim.program or not _random(claim, mean):
        return values
    places = list(range(min(LOOKED, len(values))))
    if isinstance(mean, Moment):
        _require_digits(mean, [float(values[i]) for i in places], [_body(claim, point, mean, block, i) for i in places])
        return values
    if _whole(claim, mean):
        return values
    near = np.flatnonzero(_gaps(mean, block, len(values)) < NEAR)
    if len(near) > MANY:
        raise Undecided(
            f"{mean}: the sides nearly touch for {len(near)} of {len(values)} draws, which floats cannot decide"
        )
    found = np.array(values, dtype=float)
    for i in near:
        found[i] = _event(claim, point, mean, block, int(i))
    for i in places:
        if found[i] != _event(claim, point, mean, block, i):
            raise Undecided(f"{mean}: floats lose the digits that decide")
    return found


def _random(claim: Claim, node: Node) -> bool:
    return any(variable.random and variable.name in names(node) for variable in claim.variables)


def _whole(claim: Claim, event: Probability) -> bool:
    """Whether floats are exact: sums and products of signs and whole numbers."""
    signs = {v.name for v in claim.variables if isinstance(v.kind, Rademacher)} | {size.name for size in claim.sizes}

    def plain(node: Node) -> bool:
        match node:
            case Number(value):
                return value.denominator == 1 and abs(value) < 2**20
            case Name(name):
                return name in signs
            case Binary("+" | "-" | "*" | "@") | Negative() | Index():
                return all(map(plain, children(node)))
            case Call(function, _):
                return function in EXACT and all(map(plain, children(node)))
        return False

    return all(map(plain, event.event.terms))


def _gaps(event: Probability, block: Scope, count: int) -> Array:
    """How far the sides of an event are apart on every draw, relative to their size."""
    terms = [as_range(block.evaluate(term)).low for term in event.event.terms]
    gaps = [np.abs(a - b) / (np.abs(a) + np.abs(b) + 1e-300) for a, b in pairwise(terms)]
    return np.broadcast_to(np.minimum.reduce(np.broadcast_arrays(*gaps)), (count,))


def _drawn(claim: Claim, point: Mapping[str, Array], block: Scope, i: int) -> judge.Point:
    """The i-th draw of a block as a point of the judge: every float is the exact number that it is."""
    ctx.prec = BITS
    sizes = {size.name: int(point[size.name]) for size in claim.sizes}
    fixed = {v.name: [_exact(x) for x in np.ravel(point[v.name])] for v in claim.variables if not v.random}
    try:
        here = judge.place(claim, sizes, fixed)
        drawn = {}
        for variable in claim.variables:
            if variable.random:
                values = as_range(block.values[variable.name]).low
                row = values[i if len(values) > 1 else 0]
                drawn[variable.name] = judge.Value(judge.boxed([_exact(x) for x in np.ravel(row)], row.shape))
    except (judge.Unclear, judge.Misfit, judge.Outside, judge.Turned, judge.Undefined) as reason:
        raise Undecided(f"draws cannot be recomputed: {reason}") from None
    return replace(here, drawn=drawn)


def _exact(value: float) -> fmpq:
    top, bottom = float(value).as_integer_ratio()
    return fmpq(top, bottom)


def _event(claim: Claim, point: Mapping[str, Array], mean: Probability, block: Scope, i: int) -> float:
    try:
        truth = _drawn(claim, point, block, i).truth(mean.event)
    except (judge.Misfit, judge.Turned, judge.Outside):
        truth = "unclear"
    correlated = any(
        isinstance(v.kind, Normal) and v.name in names(mean) and as_range(block.values[v.name]).low.ndim > 1
        and not isinstance(v.kind.spread, Call) and "==" in mean.event.comparisons for v in claim.variables
    )  # fmt: skip
    if truth not in ("true", "false") or correlated:
        raise Undecided(f"{mean}: a draw that lies within the rounding of floats")
    return float(truth == "true")


def _body(claim: Claim, point: Mapping[str, Array], mean: Moment, block: Scope, i: int) -> float | None:
    """The exact value of what is averaged, as a float; None where the judge has none."""
    try:
        found = _drawn(claim, point, block, i).value(mean.body).array.reshape(-1)
    except (judge.Unclear, judge.Misfit, judge.Turned, judge.Outside):
        return None
    except judge.Undefined:
        raise Undecided(f"{mean.body} is undefined for some draws") from None
    return float(judge.ball(found[0]).mid()) if len(found) == 1 else None


def _require_digits(mean: Moment, floats: list[float], exact: list[float | None]) -> None:
    scale = max([abs(value) for value in exact if value is not None], default=0.0)
    for value, other in zip(floats, exact, strict=True):
        if other is not None and abs(value - other) > LOSS * scale:
            raise Undecided(f"{mean.body}: floats lose its digits ({value:g} instead of {other:g})")


def require_digits(claim: Claim, point: Mapping[str, Array], node: Node, value: float) -> None:
    """Refuses a claimed number whose floats have lost their digits."""
    ctx.prec = BITS
    sizes = {size.name: int(point[size.name]) for size in claim.sizes}
    fixed = {v.name: [_exact(x) for x in np.ravel(point[v.name])] for v in claim.variables if not v.random}
    try:
        found = judge.place(claim, sizes, fixed).value(node).array.reshape(-1)
    except (judge.Unclear, judge.Misfit, judge.Outside, judge.Turned, judge.Undefined):
        return
    if len(found) == 1 and not abs(value - float(judge.ball(found[0]).mid())) <= LOSS * max(abs(value), 1e-300):
        raise Undecided(f"{node}: floats lose its digits")
