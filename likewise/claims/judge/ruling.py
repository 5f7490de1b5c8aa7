"""What a claim is worth at one point: its definitions, its sets, its assumptions, its relation."""

from collections.abc import Mapping
from dataclasses import replace
from math import prod
from typing import Any, Literal

import numpy as np
from flint import arb, ctx, fmpq

from likewise.claims.judge.chance import RandomPoint, draws
from likewise.claims.judge.numbers import Misfit, Outside, Turned, Unclear, Undefined, ball, rational, still
from likewise.claims.judge.point import Point, boxed
from likewise.claims.language.claim import (
    Between,
    Bounded,
    Claim,
    Compares,
    Definition,
    HasShape,
    Integers,
    OneOf,
    Reals,
    Variable,
)
from likewise.claims.language.expressions import QUANTITIES, rebuilt
from likewise.claims.language.parser import over
from likewise.claims.language.tree import (
    Binary,
    Call,
    Chain,
    Constant,
    Gradient,
    Name,
    Negative,
    Node,
    Number,
    Text,
    children,
    names,
)

LONG = 5_000  # terms of a sum, where one point tells much
LARGEST = 10**400  # value of a size that is no axis
PRECISIONS = (64, 256, 1024)  # bits
HIGHEST, LARGEST_STATED = 8192, 2000  # bits that tell exp(-x) from 0 for x up to twice the largest stated number
Ruling = Literal["true", "false", "undefined", "outside", "close", "unclear", "doubtful"]


def same_definitions(claim: Claim) -> bool:
    """Whether the claim, as the parser put its definitions in, is the claim that the judge reads."""
    if not claim.raw:
        return True
    known = {each.name: each for each in claim.definitions}
    mine = tuple(over(part, lambda node: _read(node, {}, known)) for part in claim.raw)
    return mine == (claim.relation, *claim.assumptions, *(each.kind for each in claim.variables))


def _read(node: Node, bound: dict[str, Node], known: dict[str, Definition]) -> Node:
    if isinstance(node, Name):
        if node.name in bound:
            return bound[node.name]
        return _read(known[node.name].body, {}, known) if node.name in known else node
    if isinstance(node, Call) and node.function in known:
        arguments = [_read(part, bound, known) for part in node.arguments if not isinstance(part, Text)]
        definition = known[node.function]
        return _read(definition.body, dict(zip(definition.parameters, arguments, strict=True)), known)
    if isinstance(node, Call) and node.function == "grad":
        body, by = node.arguments[0], node.arguments[1]
        argument = bound.get(by.name) if isinstance(by, Name) else None
        if argument is not None and isinstance(by, Name) and isinstance(body, Node):
            around = set().union(*map(names, bound.values()))
            fresh = next(name for n in range(1, len(around) + 2) if (name := by.name + n * "'") not in around)
            inside = _read(body, {**bound, by.name: Name(fresh)}, known)
            if not isinstance(argument, Name) or argument.name in names(inside):
                return Gradient(fresh, inside, argument)
    if isinstance(node, Call) and len(node.arguments) == 1 and node.function in QUANTITIES:
        return node
    return rebuilt(node, lambda part: _read(part, bound, known))


def complete(claim: Claim, sizes: Mapping[str, int]) -> dict[str, int]:
    """All sizes: those that an equation gives follow from the others; Outside if one is no whole number above 0."""
    found = dict(sizes)
    for _ in claim.sizes:
        for size in claim.sizes:
            if size.equation is not None and names(size.equation) <= found.keys():
                try:
                    value = Point(claim, found, {}).whole(size.equation, LARGEST)
                except Undefined as reason:
                    raise Outside(str(reason)) from None
                if found.setdefault(size.name, value) != value:
                    raise Outside(f"{size.name} is not {size.equation}")
    if any(size.name not in found for size in claim.sizes):
        raise Unclear("a size without a value")
    if any(value < 1 for value in found.values()):
        raise Outside("a size below 1")
    return found


def belongs(variable: Variable, value: np.ndarray) -> bool:
    """Whether every entry is in the variable's set."""
    if isinstance(variable.kind, Reals):
        return True
    for entry in value.reshape(-1):
        match variable.kind:
            case Integers(lowest, highest):
                whole = isinstance(entry, fmpq) and entry.q == 1
                if not whole or (lowest is not None and entry < lowest) or (highest is not None and entry > highest):
                    return False
            case OneOf(values):
                if not any(entry == rational(other) for other in values):
                    return False
            case Between(lowest, highest):
                if not (entry >= rational(lowest) and entry <= rational(highest)):
                    return False
    return True


def cell_values(claim: Claim) -> dict[str, np.ndarray]:
    """Cited numbers: balls over what their rounding leaves open; an == without a tolerance takes them as printed."""
    relation = claim.relation
    printed = isinstance(relation, Compares) and relation.within is None and "==" in relation.chain.comparisons
    found = {}
    for name, cell in claim.source.cells if claim.source else ():
        middle = rational(cell.value)
        ball = arb(middle) + arb(0, arb(rational(cell.half_unit)).upper())
        found[name] = boxed(middle if printed else ball)
    return found


def place(claim: Claim, sizes: Mapping[str, int], values: Mapping[str, Any], lying: bool = False) -> Point:
    """The point with these sizes and entries (row by row); Outside if something is not in its set."""
    point = RandomPoint(claim, complete(claim, sizes), cell_values(claim), lying)
    arrays = dict(point.values)
    for variable in claim.variables:
        if not variable.random and variable.name in values:
            shape, entries = point.shape(variable), list(values[variable.name])
            if len(entries) != prod(shape):
                raise Outside(f"{variable.name} has {len(entries)} entries, not {prod(shape)}")
            array = boxed(entries, shape)
            if not belongs(variable, array):
                raise Outside(f"{variable.name} is not in its set")
            arrays[variable.name] = array
    return replace(point, values=arrays)


def rule(
    claim: Claim, sizes: Mapping[str, int], values: Mapping[str, Any], precisions: tuple[int, ...] = PRECISIONS
) -> Ruling:
    """What a comparison, or a shape, is worth at a point; `values` maps names to lists of fmpq, row by row."""
    found: Ruling = "unclear"
    for bits in precisions:
        ctx.prec = bits
        found = _ruled(claim, sizes, values)
        if found not in ("close", "unclear", "doubtful"):
            break
    return found


CONTINUOUS = frozenset(
    {"exp", "log", "sqrt", "sin", "cos", "tanh", "sigmoid", "erf", "normcdf", "abs", "relu", "max", "min"}
)


def crossing(claim: Claim) -> Chain | None:
    """The one equation between numbers that a claim assumes or, if it assumes none, denies."""
    assumed = [each for each in claim.assumptions if "==" in each.comparisons]
    relation = claim.relation
    if not assumed and isinstance(relation, Compares) and relation.chain.comparisons == ("!=",):
        assumed = [relation.chain]
    if len(assumed) != 1 or len(assumed[0].terms) != 2 or not all(map(_continuous, assumed[0].terms)):
        return None
    return assumed[0]


def crosses(claim: Claim, name: str, low: fmpq, high: fmpq) -> Ruling:
    """What a claim is worth where both sides of its `crossing` are equal, somewhere between two numbers.

    By the intermediate value theorem: the sides are continuous and have values on the whole interval, and their
    difference surely changes its sign. All else must be surely true, or false, on the whole interval.
    """
    equation = crossing(claim)
    if equation is None or not isinstance(claim.relation, Compares):
        return "unclear"
    ctx.prec = PRECISIONS[1]
    try:
        signs = []
        for end in (low, high):
            point = place(claim, {}, {name: [end]})
            left, right = (ball(point.value(term).array.item()) for term in equation.terms)
            signs.append(1 if left > right else -1 if left < right else 0)
        middle = (low + high) / 2
        point = place(claim, {}, {name: [arb(middle) + arb(0, arb(high - middle).upper())]})
        values = [ball(point.value(term).array.item()) for term in equation.terms]
        if signs[0] * signs[1] != -1 or not all(value.is_finite() for value in values):
            return "unclear"
        if any(point.truth(each) != "true" for each in claim.assumptions if each is not equation):
            return "outside"
        return "false" if equation is claim.relation.chain else point.truth(claim.relation.chain, claim.relation.within)
    except Outside:
        return "outside"
    except (Turned, Misfit, Unclear, Undefined, RecursionError, OverflowError, ValueError):
        return "unclear"


def _continuous(node: Node) -> bool:
    match node:
        case Call(function, _):
            mine = function in CONTINUOUS
        case Binary("^", left, right):
            mine = not names(right) or (isinstance(left, Number) and left.value > 0)
        case Binary(operator, _, _):
            mine = operator != "@"
        case _:
            mine = isinstance(node, Number | Name | Constant | Negative)
    return mine and all(map(_continuous, children(node)))


def against(claim: Claim, sizes: Mapping[str, int], values: Mapping[str, Any]) -> str:
    """Both sides of the comparison that `rule` found false at a point, in numbers; empty where that is not shown."""
    if not isinstance(claim.relation, Compares):
        return ""
    for lying in (False, True):
        try:
            return place(claim, sizes, values, lying).against(claim.relation.chain, claim.relation.within)
        except Turned:
            continue
        except (Outside, Misfit, Unclear, Undefined, RecursionError, OverflowError):
            return ""
    return ""


def may_satisfy(claim: Claim, sizes: Mapping[str, int], values: Mapping[str, Any]) -> bool:
    """Whether the assumptions may be true at a point where the ruling is doubtful, the strict ones (<, >, !=) surely.

    Balls that touch are what an equality of irrational numbers looks like, and a strict inequality that is false. At
    large numbers they are also what exp(-x) == 0 looks like; so only moderate ones count, at a high precision.
    """
    entries = [*sizes.values(), *(entry for each in values.values() for entry in each)]
    ctx.prec = PRECISIONS[0]
    if not all(abs(ball(fmpq(1) * entry)) < _moderate(claim) for entry in entries):
        return False
    ctx.prec = HIGHEST
    strict = [each for each in claim.assumptions if {"<", ">", "!="} & set(each.comparisons)]
    try:
        point = place(claim, sizes, values)
        truths = {each: point.truth(each) for each in claim.assumptions}
        return all(truths[each] == "true" for each in strict) and "false" not in truths.values()
    except (Turned, Outside, Misfit, Unclear, Undefined, RecursionError, OverflowError):
        return not strict


def _moderate(claim: Claim) -> arb:
    """How large the numbers of a point may be for which balls that touch count: as those that the claim speaks of."""
    stated, waiting = [4.0], [term for each in claim.assumptions for term in each.terms]
    while waiting:
        node = waiting.pop()
        waiting += children(node)
        stated += [abs(float(node.value))] if isinstance(node, Number) and abs(node.value) < LARGEST_STATED else []
    return arb(2 * max(stated))


def random_draws(claim: Claim, sizes: Mapping[str, int], values: Mapping[str, Any], least: int = 10**6) -> int:
    """How many random numbers a claim has at a point; `least` where that is not known."""
    try:
        point = place(claim, sizes, values)
        return sum(draws(point, variable) for variable in claim.variables if variable.random)
    except (Turned, Outside, Misfit, Unclear, Undefined, OverflowError):
        return least


def satisfied(claim: Claim, sizes: Mapping[str, int], values: Mapping[str, Any], bits: int) -> bool:
    """Whether a point is in every set and no assumption is surely false there."""
    ctx.prec = bits
    try:
        point = place(claim, sizes, values)
        truths = [point.truth(assumption) for assumption in claim.assumptions]
    except Turned:
        return True
    except (Outside, Misfit, Unclear, Undefined, RecursionError, OverflowError):
        return False
    return all(truth in ("true", "close") for truth in truths)


def _ruled(claim: Claim, sizes: Mapping[str, int], values: Mapping[str, Any]) -> Ruling:
    for lying in (False, True):
        assumed: Ruling = "doubtful"  # what an error means until the assumptions are known to be true
        try:
            point = place(claim, sizes, values, lying)
            for assumption in claim.assumptions:
                truth = point.truth(assumption)
                if truth != "true":
                    return "doubtful" if truth in ("close", "unclear") else "outside"
            assumed = "unclear"
            if isinstance(claim.relation, HasShape):
                return _shaped(point, claim.relation)
            if not isinstance(claim.relation, Compares):
                return "unclear"
            return point.truth(claim.relation.chain, claim.relation.within)
        except Turned:
            continue
        except Outside:
            return "outside"
        except (Misfit, Unclear, RecursionError, OverflowError):
            return assumed
    return "doubtful"


def ratio(claim: Claim, sizes: Mapping[str, int]) -> "arb | None":
    """|f|/|g| of `f in O(g)` at sizes that the claim allows; infinite where g is 0 and f is not.

    None outside of the claim, and where numbers overflow.
    """
    relation = claim.relation
    assert isinstance(relation, Bounded)
    assert not isinstance(relation.quantity, str)
    point = replace(place(claim, sizes, {}), terms=LONG)
    if any(point.truth(assumption) != "true" for assumption in claim.assumptions):
        return None
    f, g = (ball(still(point.value(side).array.reshape(-1)[0])) for side in (relation.quantity, relation.bound))
    if g == 0:
        return arb.pos_inf() if f.is_finite() and f != 0 else None
    quotient = abs(f) / abs(g)
    return quotient if quotient.is_finite() else None


def _shaped(point: Point, relation: HasShape) -> Ruling:
    try:
        found = point.value(relation.body)
    except Misfit:
        return "false"
    except Undefined:
        return "undefined"
    wanted = tuple(point.whole(dim) for dim in relation.dims)
    shape = found.array.shape
    alone = set(wanted) <= {1} and set(shape) <= {1}
    return "true" if shape == wanted or alone or (found.line and wanted == (found.array.size,)) else "false"
