"""Derivatives at one point: every expression moves along one entry of a variable, forward and backward.

A partial derivative exists where the two rates are opposite. At a kink (abs and relu at 0, the largest of equal
numbers) they are not, and it is undefined.
"""

import operator
from collections.abc import Callable

from flint import arb, fmpq

from likewise.claims.judge.numbers import (
    ELEMENTWISE,
    OPERATORS,
    Misfit,
    Scalar,
    Unclear,
    Undefined,
    ball,
    clear_sign,
    divide,
    larger,
    power,
    sign,
    smaller,
)
from likewise.claims.judge.point import Point, Value, boxed, each, number, total
from likewise.claims.language.tree import (
    Binary,
    Call,
    Index,
    Indexed,
    Join,
    Matrix,
    Name,
    Negative,
    Node,
    Text,
    Transpose,
    names,
)

Moving = tuple[Value, Value]  # a value and its rate of change, of one shape


def derivative(point: Point, body: Node, by: Name | Index) -> Value:
    """grad(f, x): the shape of f, then the shape of x; grad(f, x[i]) is its entry."""
    name = by.name if isinstance(by, Name) else by.operand
    if isinstance(name, Name):
        name = name.name
    if not isinstance(name, str):
        raise Unclear("grad by what is no variable")
    place = point.value(Name(name))
    columns = []
    for i in range(place.array.size):
        forward, backward = (_along(point, body, name, place, i, direction) for direction in (1, -1))
        together = each(operator.add, forward, backward)
        if any(sign(entry) not in (0, None) for entry in together.array.reshape(-1)):
            raise Undefined("a kink")
        columns.append(forward)
    if not columns:
        raise Unclear("a derivative by nothing")
    inner = columns[0]
    entries = [column.array.reshape(-1)[k] for k in range(inner.array.size) for column in columns]
    if not inner.array.ndim:
        found = Value(boxed(entries, place.array.shape), place.line)
    elif not place.array.ndim:
        found = Value(boxed(entries, inner.array.shape), inner.line)
    else:
        shapes = [(value.array.size,) if value.line else value.array.shape for value in (inner, place)]
        found = Value(boxed(entries, shapes[0] + shapes[1]))
    if isinstance(by, Index):
        if inner.array.ndim:
            raise Unclear("the derivative of an array by an entry")
        return point._entry(found, [point.whole(index) for index in by.indices])
    return found


def _along(point: Point, body: Node, name: str, place: Value, i: int, direction: int) -> Value:
    entries = [fmpq(direction if k == i else 0) for k in range(place.array.size)]
    return _Path(name, Value(boxed(entries, place.array.shape), place.line)).moving(point, body)[1]


class _Path:
    """One variable moves, all others stand still."""

    def __init__(self, name: str, direction: Value) -> None:
        self.name, self.direction = name, direction

    def moving(self, point: Point, node: Node) -> Moving:
        """The value of an expression and its rate."""
        value = point.value(node)
        if self.name not in names(node):
            return value, each(lambda entry: fmpq(0), value)
        return value, self.rate(point, node, value)

    def rate(self, point: Point, node: Node, value: Value) -> Value:
        match node:
            case Name():
                return self.direction
            case Negative(operand):
                return each(operator.neg, self.moving(point, operand)[1])
            case Binary("+" | "-" as operation, left, right):
                return each(OPERATORS[operation], self.moving(point, left)[1], self.moving(point, right)[1])
            case Binary("*", left, right):
                (a, da), (b, db) = self.moving(point, left), self.moving(point, right)
                return each(lambda a, da, b, db: da * b + a * db, a, da, b, db)
            case Binary("/", left, right):
                (a, da), (b, db) = self.moving(point, left), self.moving(point, right)
                return each(lambda a, da, b, db: divide(da * b - a * db, b * b), a, da, b, db)
            case Binary("^", left, right):
                (a, da), (b, db) = self.moving(point, left), self.moving(point, right)
                return each(_power_rate, a, da, b, db)
            case Binary("@", left, right):
                (a, da), (b, db) = self.moving(point, left), self.moving(point, right)
                return each(operator.add, point._product(da, b), point._product(a, db))
            case Transpose(operand):
                return point._transposed(self.moving(point, operand)[1])
            case Index(operand, indices):
                return point._entry(self.moving(point, operand)[1], [point.whole(index) for index in indices])
            case Join(parts):
                return point._joined([self.moving(point, part)[1] for part in parts])
            case Matrix(rows):
                return point._stacked([self.moving(point, row)[1] for row in rows])
            case Indexed(function, _, _, _, body):
                return _folded_rate(point, function, [self.moving(inner, body) for inner in point.indexed(node)])
            case Call("reshape" | "transpose" as function, (first, *rest)) if isinstance(first, Node):
                numbers = [point.whole(part) for part in rest if isinstance(part, Node)]
                return point.rearranged(function, self.moving(point, first)[1], numbers)
            case Call("einsum", (Text(subscripts), *operands)):
                given = [self.moving(point, part) for part in operands if isinstance(part, Node)]
                return _product_rule(lambda *values: point._einsum(subscripts, list(values)), given)
            case Call(function, arguments):
                given = [self.moving(point, part) for part in arguments if isinstance(part, Node)]
                return _called_rate(point, function, given, value)
        raise Unclear(f"the derivative of {node}")


def _product_rule(function: Callable[..., Value], given: list[Moving]) -> Value:
    """The rate of what is linear in each of its arguments."""
    found = None
    for place, (_, rate) in enumerate(given):
        values = [rate if other == place else value for other, (value, _) in enumerate(given)]
        part = function(*values)
        found = part if found is None else each(operator.add, found, part)
    if found is None:
        raise Misfit("a product of nothing")
    return found


def _called_rate(point: Point, function: str, given: list[Moving], value: Value) -> Value:
    (first, rate), *others = given
    if function in ("sum", "mean", "tr", "vec"):
        return point._call(function, [rate])
    if function in ("dot", "outer"):
        return _product_rule(lambda *values: point._call(function, list(values)), given)
    if function in RATES:
        return each(RATES[function], first, rate)
    if function in ("max", "min"):
        if not others:
            entries = zip(first.array.reshape(-1), rate.array.reshape(-1), strict=True)
            given = [(Value(boxed(a)), Value(boxed(da))) for a, da in entries]
        return _folded_rate(point, function, given)
    match function:
        case "sqnorm":
            return each(lambda entry: entry * 2, point._call("dot", [first, rate]))
        case "norm":
            if clear_sign(value.array.reshape(-1)[0]) == 0:
                return point._call("norm", [rate])
            return each(divide, point._call("dot", [first, rate]), value)
        case "prod":
            parts = [
                (Value(boxed(a)), Value(boxed(da)))
                for a, da in zip(first.array.reshape(-1), rate.array.reshape(-1), strict=True)
            ]
            return _folded_rate(point, "prod", parts)
        case "softmax":
            flat, moved = value.array, rate.array
            if value.line:
                flat, moved = flat.reshape(1, -1), moved.reshape(1, -1)
            pairs = zip(flat.reshape(-1, flat.shape[-1]), moved.reshape(-1, flat.shape[-1]), strict=True)
            rows = [total(a * b for a, b in zip(*pair, strict=True)).array[()] for pair in pairs]
            means = Value(boxed(rows, (*flat.shape[:-1], 1)))
            found = each(lambda s, ds, mean: s * (ds - mean), Value(flat), Value(moved), means)
            return Value(found.array.reshape(value.array.shape), value.line)
    raise Unclear(f"the derivative of {function}")


def _folded_rate(point: Point, function: str, given: list[Moving]) -> Value:
    if function in ("sum", "mean"):
        return point.folded(function, [rate for _, rate in given])
    if not given:
        return number(0)
    value, rate = given[0]
    for other, change in given[1:]:
        if function == "prod":
            rate = each(lambda a, da, b, db: da * b + a * db, value, rate, other, change)
            value = each(operator.mul, value, other)
        else:
            pick = larger if function == "max" else smaller
            rate = each(_higher_rate if function == "max" else _lower_rate, value, rate, other, change)
            value = each(pick, value, other)
    return rate


def _higher_rate(a: Scalar, da: Scalar, b: Scalar, db: Scalar) -> Scalar:
    """The rate of max(a, b): of equal numbers the faster one leads."""
    side = clear_sign(a - b)
    return da if side > 0 else db if side < 0 else larger(da, db)


def _lower_rate(a: Scalar, da: Scalar, b: Scalar, db: Scalar) -> Scalar:
    return -_higher_rate(-a, -da, -b, -db)


def _power_rate(a: Scalar, da: Scalar, b: Scalar, db: Scalar) -> Scalar:
    """The rate of a^b."""
    found: Scalar = fmpq(0)
    if not isinstance(db, fmpq) or db != 0:
        found = power(a, b) * ELEMENTWISE["log"](a) * db
    if (not isinstance(da, fmpq) or da != 0) and (not isinstance(b, fmpq) or b != 0):
        if not (isinstance(b, fmpq) and b.q == 1) and clear_sign(a) == 0:
            if sign(da) in (0, None):
                raise Unclear("a power of 0 that may stand still")
            raise Undefined("a power that ends at 0")
        found = found + b * _steep(lambda: power(a, b - 1), da) * da
    return found


def _steep(slope: Callable[[], Scalar], rate: Scalar) -> Scalar:
    """A slope that may be infinite; what stands still there is not told."""
    try:
        return slope()
    except Undefined:
        if sign(rate) in (0, None):
            raise Unclear("a root of 0 that may stand still") from None
        raise


def _root_rate(a: Scalar, da: Scalar) -> Scalar:
    if isinstance(da, fmpq) and da == 0:
        if clear_sign(a) == 0:
            raise Unclear("a root of 0 that may stand still")
        return fmpq(0)
    return _steep(lambda: power(a, fmpq(-1, 2)), da) * da / 2


def _jump_rate(a: Scalar, da: Scalar) -> Scalar:
    """sign: flat but where it jumps."""
    if clear_sign(a) == 0:
        raise Unclear("a jump")
    return fmpq(0)


def _bell(a: Scalar) -> Scalar:
    return (-(ball(a) * ball(a))).exp()


def _normal_rate(a: Scalar, da: Scalar) -> Scalar:
    return _bell(ball(a) / arb(2).sqrt()) / (2 * arb.pi()).sqrt() * da


def _tanh_rate(a: Scalar, da: Scalar) -> Scalar:
    height = ELEMENTWISE["tanh"](a)
    return (1 - height * height) * da


def _sigmoid_rate(a: Scalar, da: Scalar) -> Scalar:
    height = ELEMENTWISE["sigmoid"](a)
    return height * (1 - height) * da


RATES: dict[str, Callable[[Scalar, Scalar], Scalar]] = {
    "exp": lambda a, da: ELEMENTWISE["exp"](a) * da,
    "log": lambda a, da: divide(da, a),
    "log2": lambda a, da: divide(da, a * arb(2).log()),
    "sin": lambda a, da: ELEMENTWISE["cos"](a) * da,
    "cos": lambda a, da: -ELEMENTWISE["sin"](a) * da,
    "sqrt": _root_rate,
    "abs": lambda a, da: _higher_rate(a, da, -a, -da),
    "relu": lambda a, da: _higher_rate(a, da, fmpq(0), fmpq(0)),
    "tanh": _tanh_rate,
    "sigmoid": _sigmoid_rate,
    "erf": lambda a, da: 2 / arb.pi().sqrt() * _bell(a) * da,
    "normcdf": _normal_rate,
    "sign": _jump_rate,
}
