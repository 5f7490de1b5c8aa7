"""E, Var and P at one point: signs are tried one by one, all else is averaged over standard draws."""

import operator
from dataclasses import replace
from fractions import Fraction
from itertools import product
from math import prod
from typing import Any

import numpy as np
from flint import fmpq

from likewise.claims.judge import measures
from likewise.claims.judge.numbers import ELEMENTWISE, Misfit, Outside, Scalar, Unclear, Wave, clear_sign, divide, power
from likewise.claims.judge.point import Point, Value, boxed, each
from likewise.claims.judge.slopes import derivative
from likewise.claims.language.claim import Bernoulli, Exponential, Normal, Rademacher, Uniform, Variable
from likewise.claims.language.tree import (
    Binary,
    Call,
    Chain,
    Gradient,
    Index,
    Moment,
    Name,
    Negative,
    Node,
    Number,
    Probability,
    names,
)

SIGNS = 10  # that are tried one by one


class RandomPoint(Point):
    """A point of a claim that may have random variables."""

    def averaged(self, node: Node) -> Value:
        """E[...], Var[...] and P[...] over all draws, and derivatives."""
        match node:
            case Moment(kind, body):
                return _moment(self, kind, body)
            case Probability(event):
                return _probability(self, event)
            case Call("grad", (body, Name() | Index() as by)) if isinstance(body, Node):
                reached = {each.name for each in self.claim.variables if each.random and names(by) & _parts(each)}
                if reached & names(body):
                    raise Unclear("a derivative by a part of a law")
                return derivative(self, body, by)
            case Gradient(name, body, place):
                return derivative(replace(self, moved={**self.moved, name: self.value(place)}), body, Name(name))
        return super().averaged(node)


def _parts(variable: Variable) -> set[str]:
    """The names in a law."""
    kind: Any = variable.kind
    fields = [getattr(kind, slot) for slot in kind.__slots__]
    return set().union(*(names(part) for part in fields if isinstance(part, Node)))


def _moment(point: Point, kind: str, body: Node) -> Value:
    if point.drawn is not None:
        raise Unclear("an expectation inside another")
    if kind == "Var":
        square = _moment(point, "E", Binary("^", body, Number(Fraction(2))))
        mean = _moment(point, "E", body)
        return each(operator.sub, square, each(operator.mul, mean, mean))
    used = [variable for variable in point.claim.variables if variable.random and variable.name in names(body)]
    whole = all(_discrete(variable) for variable in used)
    if whole or any(isinstance(variable.kind, Bernoulli) for variable in used):
        rest = [variable for variable in used if not _discrete(variable)]
        cases = _cases(point, [variable for variable in used if _discrete(variable)])
        parts = [each(operator.mul, Value(boxed(weight)), _averaged(case, body, rest)) for weight, case in cases]
        found = parts[0]
        for part in parts[1:]:
            found = each(operator.add, found, part)
        return found
    return _averaged(point, body, used)


def _averaged(point: Point, body: Node, used: list[Variable]) -> Value:
    """E over variables that are not tried one by one: by moments, or by quadrature over a single draw."""
    if not used:
        return point.value(body)
    laws: dict[Any, str] = {}
    drawn = {variable.name: _waves(point, variable, laws) for variable in used}
    try:
        found = replace(point, drawn={**(point.drawn or {}), **drawn}).value(body)
        return each(lambda entry: entry.mean(laws) if isinstance(entry, Wave) else entry, found)
    except Unclear:
        if point.drawn is None and not any(map(_discrete, used)):
            try:
                alone = _by_parts(point, body, used)
            except Unclear:
                alone = None
            if alone is not None:
                return Value(boxed(alone))
        if 2 <= len(laws) <= 3 and set(laws.values()) == {"uniform"}:
            return measures.box_mean(point, body, len(laws), _realiser(point, used))
        if len(laws) != 1 or "sign" in laws.values():
            raise
    ((_, law),) = laws.items()
    (variable,) = used
    base, step = (realised(point, variable, [fmpq(z)]).array.reshape(-1)[0] for z in (0, 1))
    return measures.mean(point, body, law, _realiser(point, used), {variable.name: (base, step - base)})


def _realiser(point: Point, used: list[Variable]) -> measures.Drawn:
    counts = [draws(point, variable) for variable in used]

    def drawn(zs: list[Scalar]) -> dict[str, Value]:
        rest, found = list(zs), dict(point.drawn or {})
        for variable, count in zip(used, counts, strict=True):
            found[variable.name] = realised(point, variable, rest[:count])
            rest = rest[count:]
        return found

    return drawn


def _discrete(variable: Variable) -> bool:
    return isinstance(variable.kind, Rademacher | Bernoulli)


def _probability(point: Point, event: Chain) -> Value:
    if point.drawn is not None:
        raise Unclear("a probability inside another")
    used = [v for v in point.claim.variables if v.random and any(v.name in names(term) for term in event.terms)]
    rest = [variable for variable in used if not _discrete(variable)]
    total: Scalar = fmpq(0)
    for weight, case in _cases(point, [variable for variable in used if _discrete(variable)]):
        total = total + weight * _chance(case, event, rest)
    return Value(boxed(total))


def _chance(point: Point, event: Chain, used: list[Variable]) -> Scalar:
    """P of an event, what is discrete being settled."""
    if not used:
        truth = point.truth(event)
        if truth not in ("true", "false"):
            raise Unclear("an event that is not clear")
        return fmpq(int(truth == "true"))
    laws: dict[Any, str] = {}
    drawn = {variable.name: _waves(point, variable, laws) for variable in used}
    if len(event.comparisons) == 1 and event.comparisons[0] not in ("==", "!="):
        try:
            at = replace(point, drawn={**(point.drawn or {}), **drawn})
            sides = [at.value(term).array for term in event.terms]
            if any(side.size != 1 for side in sides):
                raise Misfit("an event compares numbers")
            left, right = (Wave.of(side.reshape(-1)[0]) for side in sides)
            upward = event.comparisons[0] in (">", ">=")
            wave = left - right if upward else right - left
            found = measures.linear_probability(wave, laws)
            found = measures.curved_probability(wave, laws) if found is None else found
            if found is not None:
                return found
        except Unclear:
            pass
        found = _of_product(point, event, used)
        if found is not None:
            return found
    return measures.box_probability(point, event, list(laws.values()), _realiser(point, used))


def _of_product(point: Point, event: Chain, used: list[Variable]) -> Scalar | None:
    """P[f*g > 0] of independent f and g by the chances of their signs; None for another event."""
    product_, zero = event.terms
    comparison = event.comparisons[0]
    if not (isinstance(product_, Binary) and product_.operator == "*" and zero == Number(Fraction(0))):
        return None
    random = {variable.name for variable in used}
    parts = [product_.left, product_.right]
    if names(parts[0]) & names(parts[1]) & random or any(not names(part) & random for part in parts):
        return None
    chances = []
    for part in parts:
        mine = [variable for variable in used if variable.name in names(part)]
        chances.append([_chance(point, Chain((part, zero), (how,)), mine) for how in (">", "<")])
    (a, b), (c, d) = chances
    above, below = a * c + b * d, a * d + b * c
    return {">": above, "<": below, ">=": 1 - below, "<=": 1 - above}[comparison]


def _by_parts(point: Point, body: Node, used: list[Variable]) -> Scalar | None:
    """E of sums, factors that are not random, and maxima, parts above 0 and lengths of normal or waiting numbers."""
    random = {variable.name for variable in used}
    match body:
        case Negative(operand):
            found = _part(point, operand)
            return None if found is None else -found
        case Binary("+" | "-" as how, left, right):
            sides = [_part(point, side) for side in (left, right)]
            if sides[0] is None or sides[1] is None:
                return None
            return sides[0] + sides[1] if how == "+" else sides[0] - sides[1]
        case Binary("*", left, right) if not (names(left) & random and names(right) & random):
            factor, rest = (right, left) if names(left) & random else (left, right)
            found, value = _part(point, rest), point.value(factor).array
            return None if found is None or value.size != 1 else found * value.reshape(-1)[0]
        case Call("max" | "min" as how, (left, right)) if isinstance(left, Node) and isinstance(right, Node):
            gap = Binary("-", left, right) if how == "max" else Binary("-", right, left)
            sides = [_part(point, right), _above_zero(point, gap, used)]
            if sides[0] is None or sides[1] is None:
                return None
            return sides[0] + sides[1] if how == "max" else sides[0] - sides[1]
        case Call("relu", (operand,)) if isinstance(operand, Node):
            return _above_zero(point, operand, used)
        case Call("abs", (operand,)) if isinstance(operand, Node):
            sides = [_above_zero(point, side, used) for side in (operand, Negative(operand))]
            return None if sides[0] is None or sides[1] is None else sides[0] + sides[1]
        case Call("norm", (operand,)) if isinstance(operand, Node):
            laws, wave = _wave_of(point, Call("sqnorm", (operand,)), used)
            return measures.length_mean(wave, laws)
        case Call("max" | "min" as how, (Name(name),)) if name in random:
            laws, waves = _waves_of(point, name, used)
            if len(waves) == 2:
                gap = waves[0] - waves[1] if how == "max" else waves[1] - waves[0]
                rise, rest = measures.positive_mean(gap, laws), Wave.of(waves[1]).mean(laws)
                return None if rise is None else rest + rise if how == "max" else rest - rise
    return None


def _part(point: Point, node: Node) -> Scalar | None:
    found = _moment(point, "E", node).array
    return found.reshape(-1)[0] if found.size == 1 else None


def _waves_of(point: Point, name: str, used: list[Variable]) -> tuple[dict[Any, str], list[Wave]]:
    laws: dict[Any, str] = {}
    drawn = {variable.name: _waves(point, variable, laws) for variable in used}
    return laws, [Wave.of(entry) for entry in drawn[name].array.reshape(-1)]


def _wave_of(point: Point, node: Node, used: list[Variable]) -> tuple[dict[Any, str], Wave]:
    laws: dict[Any, str] = {}
    drawn = {variable.name: _waves(point, variable, laws) for variable in used}
    value = replace(point, drawn={**(point.drawn or {}), **drawn}).value(node).array
    if value.size != 1:
        raise Unclear("an array")
    return laws, Wave.of(value.reshape(-1)[0])


def _above_zero(point: Point, node: Node, used: list[Variable]) -> Scalar | None:
    laws, wave = _wave_of(point, node, used)
    return measures.positive_mean(wave, laws)


def _cases(point: Point, used: list[Variable]) -> list[tuple[Scalar, Point]]:
    """One point with its weight for every choice of the signs and coins."""
    counts = [draws(point, variable) for variable in used]
    if sum(counts) > SIGNS:
        raise Unclear("too many signs")
    found: list[tuple[Scalar, Point]] = []
    for chosen in product((1, 0), repeat=sum(counts)):
        rest, drawn = list(chosen), dict(point.drawn or {})
        weight: Scalar = fmpq(1)
        for variable, count in zip(used, counts, strict=True):
            mine, rest = rest[:count], rest[count:]
            if isinstance(variable.kind, Bernoulli):
                chances = point.value(variable.kind.chance).array
                for up, chance in zip(mine, chances.reshape(-1), strict=True):
                    if clear_sign(chance) < 0 or clear_sign(1 - chance) < 0:
                        raise Outside("a probability that is not from 0 to 1")
                    weight = weight * (chance if up else 1 - chance)
                drawn[variable.name] = Value(boxed([fmpq(up) for up in mine], chances.shape))
            else:
                weight = weight / 2**count
                drawn[variable.name] = realised(point, variable, [fmpq(1 if up else -1) for up in mine])
        found.append((weight, replace(point, drawn=drawn) if drawn else point))
    return found


def _waves(point: Point, variable: Variable, laws: dict[Any, str]) -> Value:
    """A random variable as a function of independent standard draws."""
    kind = variable.kind
    named = {Normal: "normal", Uniform: "uniform", Exponential: "exponential"}
    law = named.get(type(kind), "sign")
    zs = [(variable.name, i) for i in range(draws(point, variable))]
    laws |= dict.fromkeys(zs, law)
    return realised(point, variable, [Wave([(fmpq(1), {z: 1}, {})]) for z in zs])


def draws(point: Point, variable: Variable) -> int:
    """How many standard draws a random variable is made of."""
    match variable.kind:
        case Rademacher(dim):
            return point.whole(dim)
        case Exponential(parameter) | Bernoulli(parameter):
            return point.value(parameter).array.size
        case Uniform(lowest, highest):
            return prod(each(operator.add, point.value(lowest), point.value(highest)).array.shape)
        case Normal(mean, spread, _):
            shape = point.value(spread).array.shape
            return shape[0] if shape else prod(point.value(mean).array.shape)
    raise Unclear(f"{variable.name} is not random")


def realised(point: Point, variable: Variable, z: list[Scalar]) -> Value:
    """The random variable at standard draws z: a + (b - a)z, mean + root @ z, or z itself."""
    match variable.kind:
        case Rademacher():
            shape = point.lies((len(z),), variable.layout)
            return Value(boxed(z, shape), len(shape) == 2)
        case Exponential(rate):
            speed = point.value(rate)
            if any(clear_sign(entry) <= 0 for entry in speed.array.reshape(-1)):
                raise Outside("a rate that is not above 0")
            return each(lambda entry, fast: entry * (1 / fast), Value(boxed(z, speed.array.shape)), speed)
        case Uniform(lowest, highest):
            low, high = point.value(lowest), point.value(highest)
            width = each(operator.sub, high, low)
            if any(clear_sign(entry) < 0 for entry in width.array.reshape(-1)):
                raise Outside("a uniform law with its ends the wrong way round")
            return each(operator.add, low, each(operator.mul, width, Value(boxed(z, width.array.shape))))
        case Normal(mean, spread, is_std):
            centre, width = point.value(mean), point.value(spread)
            if not width.array.shape:
                if centre.array.shape:
                    raise Misfit("a vector needs a covariance matrix")
                if clear_sign(width.array[()]) < 0:
                    raise Outside("a negative spread")
                root = width if is_std else each(ELEMENTWISE["sqrt"], width)
                return each(operator.add, centre, each(operator.mul, root, Value(boxed(z[0]))))
            root = width.array if is_std else cholesky(width.array)
            moved = [sum((root[i, j] * z[j] for j in range(len(z))), fmpq(0)) for i in range(len(root))]
            line = point.line(moved)
            if variable.layout:
                line = Value(line.array.reshape(point.lies((len(moved),), variable.layout)), True)
            return each(
                operator.add, point.line(list(centre.array.reshape(-1))) if centre.array.shape else centre, line
            )
    raise Unclear(f"{variable.name} is not random")


def cholesky(matrix: np.ndarray) -> np.ndarray:
    """The lower triangular root of a covariance; a pivot of 0 leaves a column of zeros."""
    n = len(matrix)
    if matrix.shape != (n, n):
        raise Misfit("a covariance that is no square matrix")
    if any(clear_sign(matrix[i, j] - matrix[j, i]) for i in range(n) for j in range(i)):
        raise Outside("a covariance that is not symmetric")
    root = boxed([fmpq(0)] * (n * n), (n, n))
    for j in range(n):
        rest = [matrix[i, j] - sum((root[i, k] * root[j, k] for k in range(j)), fmpq(0)) for i in range(n)]
        pivot = clear_sign(rest[j])
        if pivot < 0 or (pivot == 0 and any(clear_sign(rest[i]) for i in range(j + 1, n))):
            raise Outside("a covariance that is not positive")
        if pivot:
            root[j, j] = power(rest[j], fmpq(1, 2))
            for i in range(j + 1, n):
                root[i, j] = divide(rest[i], root[j, j])
    return root
