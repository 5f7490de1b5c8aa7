"""E, Var and P at one point: signs are tried one by one, all else is averaged over standard draws."""

import operator
from dataclasses import replace
from fractions import Fraction
from itertools import product
from math import prod
from typing import Any

import numpy as np
from flint import fmpq

from likewise.claims.judge.numbers import ELEMENTWISE, Misfit, Outside, Scalar, Unclear, Wave, clear_sign, divide, power
from likewise.claims.judge.point import Point, Value, boxed, each, number
from likewise.claims.language.claim import Normal, Rademacher, Uniform, Variable
from likewise.claims.language.tree import Binary, Chain, Moment, Node, Number, Probability, names

SIGNS = 10  # that are tried one by one


class RandomPoint(Point):
    """A point of a claim with random variables."""

    def value(self, node: Node) -> Value:
        """The value of an expression; E[...], Var[...] and P[...] are averaged."""
        match node:
            case Moment(kind, body):
                return _moment(self, kind, body)
            case Probability(event):
                return _probability(self, event)
        return super().value(node)


def _moment(point: Point, kind: str, body: Node) -> Value:
    if point.drawn is not None:
        raise Unclear("an expectation inside another")
    if kind == "Var":
        square = _moment(point, "E", Binary("^", body, Number(Fraction(2))))
        mean = _moment(point, "E", body)
        return each(operator.sub, square, each(operator.mul, mean, mean))
    used = [variable for variable in point.claim.variables if variable.random and variable.name in names(body)]
    if all(isinstance(variable.kind, Rademacher) for variable in used):
        cases = _cases(point, used)
        values = [case.value(body) for case in cases]
        found = values[0]
        for value in values[1:]:
            found = each(operator.add, found, value)
        return each(divide, found, number(len(cases)))
    laws: dict[Any, str] = {}
    drawn = {variable.name: _waves(point, variable, laws) for variable in used}
    found = replace(point, drawn=drawn).value(body)
    return each(lambda entry: entry.mean(laws) if isinstance(entry, Wave) else entry, found)


def _probability(point: Point, event: Chain) -> Value:
    used = [v for v in point.claim.variables if v.random and any(v.name in names(term) for term in event.terms)]
    if point.drawn is not None or not all(isinstance(variable.kind, Rademacher) for variable in used):
        raise Unclear("the probability of an event that is not finite")
    truths = [case.truth(event) for case in _cases(point, used)]
    if any(truth not in ("true", "false") for truth in truths):
        raise Unclear("an event that is not clear")
    return number(Fraction(truths.count("true"), len(truths)))


def _cases(point: Point, used: list[Variable]) -> list[Point]:
    """One point for every choice of the signs."""
    lengths = [point.whole(variable.kind.dim) for variable in used if isinstance(variable.kind, Rademacher)]
    if sum(lengths) > SIGNS:
        raise Unclear("too many signs")
    found = []
    for signs in product((fmpq(1), fmpq(-1)), repeat=sum(lengths)):
        rest, drawn = list(signs), {}
        for variable, length in zip(used, lengths, strict=True):
            drawn[variable.name] = realised(point, variable, rest[:length])
            rest = rest[length:]
        found.append(replace(point, drawn=drawn))
    return found


def _waves(point: Point, variable: Variable, laws: dict[Any, str]) -> Value:
    """A random variable as a function of independent standard draws."""
    kind = variable.kind
    law = "normal" if isinstance(kind, Normal) else "uniform" if isinstance(kind, Uniform) else "sign"
    zs = [(variable.name, i) for i in range(draws(point, variable))]
    laws |= dict.fromkeys(zs, law)
    return realised(point, variable, [Wave([(fmpq(1), {z: 1}, {})]) for z in zs])


def draws(point: Point, variable: Variable) -> int:
    """How many standard draws a random variable is made of."""
    match variable.kind:
        case Rademacher(dim):
            return point.whole(dim)
        case Uniform(lowest, highest):
            return prod(each(operator.add, point.value(lowest), point.value(highest)).array.shape)
        case Normal(mean, spread, _):
            shape = point.value(spread).array.shape
            return shape[0] if shape else prod(point.value(mean).array.shape)
    raise Unclear(f"{variable.name} is not random")


def realised(point: Point, variable: Variable, z: list[Scalar]) -> Value:
    """The random variable at standard draws z: a + (b - a)z, mean + root @ z, or z itpoint."""
    match variable.kind:
        case Rademacher():
            shape = point.lies((len(z),), variable.layout)
            return Value(boxed(z, shape), len(shape) == 2)
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
