"""Probabilities and means that moments do not give, with rigorous bounds: boxes of draws, and Arb's quadrature.

A probability is the measure of the boxes on which the event is surely true, give or take that of the boxes on which it
is not clear; boxes are halved until little is left. A mean over one draw is an integral: `acb.integral` on a finite
piece of the line, and beyond it a bound by a polynomial in the draw.
"""

import operator
from collections.abc import Callable
from dataclasses import replace
from heapq import heappop, heappush
from itertools import count as count_up
from itertools import product
from math import factorial

from flint import acb, arb, ctx, fmpq

from likewise.claims.judge.numbers import Curve, Scalar, Unclear, Undefined, Wave, ball, sign
from likewise.claims.judge.point import Point, Value, boxed, each
from likewise.claims.language.tree import Binary, Call, Chain, Name, Negative, Node, Number, names

BOXES = 1_200
LINEAR = 8  # uniform draws of a linear event
FAR = 1_024  # beyond it a normal draw has a chance of exp(-2^19)
CUT = {"normal": 24, "exponential": 300}  # where quadrature ends
Draw = tuple[str, int]
Laws = dict[Draw, str]
Drawn = Callable[[list[Scalar]], dict[str, Value]]  # random variables at given draws


def below(law: str, z: Scalar) -> Scalar:
    """P[draw > z], for z >= 0 of a normal draw."""
    if law == "normal":
        return (arb(z) / arb(2).sqrt()).erfc() / 2
    if law == "exponential":
        return (-arb(z)).exp()
    return fmpq(1) - z


def measure(law: str, low: fmpq, high: fmpq) -> Scalar:
    """P[low < draw < high]."""
    if law == "normal" and low < 0:
        return measure(law, -high, -low) if high <= 0 else 1 - below(law, -low) - below(law, high)
    return below(law, low) - below(law, high)


def _little(waiting: list, sure: Scalar) -> bool:
    """Whether the boxes that are not clear weigh next to nothing."""
    left = sum((arb(size) for *_, size in waiting), arb(0))
    return bool(left < arb(sure) * arb(2) ** -60) or bool(left < arb(2) ** (-4 * ctx.prec))


def linear_probability(wave: Wave, laws: Laws) -> Scalar | None:
    """P[wave > 0] of a wave that is linear in draws of one kind; None for another."""
    constant: Scalar = fmpq(0)
    slopes: dict[Draw, Scalar] = {}
    for c, powers, steep in wave.terms:
        if steep or sum(powers.values()) > 1:
            return None
        if not powers:
            constant = constant + c
        else:
            (z,) = powers
            slopes[z] = slopes.get(z, fmpq(0)) + c
    slopes = {z: c for z, c in slopes.items() if not (isinstance(c, fmpq) and c == 0)}
    kinds = {laws[z] for z in slopes}
    if not slopes or len(kinds) > 1:
        return None
    if kinds == {"normal"}:
        spread = sum((c * c for c in slopes.values()), fmpq(0))
        if sign(spread) != 1:
            return None
        return (-(ball(constant) / (2 * ball(spread)).sqrt())).erfc() / 2
    if kinds == {"uniform"} and len(slopes) <= LINEAR and all(sign(c) in (1, -1) for c in slopes.values()):
        total, n = arb(0), len(slopes)
        if all(isinstance(c, fmpq) for c in (constant, *slopes.values())):
            total = fmpq(0)
        for corner in product((0, 1), repeat=n):
            height = constant + sum((c for c, up in zip(slopes.values(), corner, strict=True) if up), fmpq(0))
            side = sign(height)
            if side is None:
                return None
            if side > 0:
                total = total + (-1) ** (n - sum(corner)) * height**n
        for c in slopes.values():
            total = total / c
        return total / factorial(n)
    if kinds == {"exponential"} and len(slopes) == 1:
        (c,) = slopes.values()
        cut, side = -constant / c, sign(c)
        if side is None or sign(cut) is None:
            return None
        beyond = fmpq(1) if sign(cut) != 1 else (-ball(cut)).exp()
        return beyond if side > 0 else 1 - beyond
    return None


def box_probability(point: Point, event: Chain, kinds: list[str], drawn: Drawn) -> Scalar:
    """The measure of the draws for which an event is true, by halving boxes."""
    start, sure, outside = [], fmpq(0), fmpq(0)
    for law in kinds:
        start.append(
            {"normal": (fmpq(-FAR), fmpq(FAR)), "exponential": (fmpq(0), fmpq(FAR))}.get(law, (fmpq(0), fmpq(1)))
        )
        if law != "uniform":
            outside = outside + below(law, fmpq(FAR)) * (2 if law == "normal" else 1)
    waiting: list = []
    number = 0

    def look(box: list[tuple[fmpq, fmpq]], depth: int) -> None:
        nonlocal sure, number
        size: Scalar = fmpq(1)
        for law, (low, high) in zip(kinds, box, strict=True):
            size = size * measure(law, low, high)
        balls = [arb((low + high) / 2, arb((high - low) / 2).upper()) for low, high in box]
        truth = replace(point, drawn=drawn(balls)).truth(event)
        if truth == "true":
            sure = sure + size
        elif truth == "undefined":
            raise Undefined("an event of which a side is undefined")
        elif truth != "false":
            number += 1
            heappush(waiting, (-float(ball(size).upper().log()) if ball(size) > 0 else 1e9, number, depth, box, size))

    look(start, 0)
    for turn in range(BOXES):
        if not waiting or (turn % 16 == 0 and _little(waiting, sure)):
            break
        _, _, depth, box, _ = heappop(waiting)
        place = depth % len(box)
        low, high = box[place]
        for half in ((low, (low + high) / 2), ((low + high) / 2, high)):
            look([*box[:place], half, *box[place + 1 :]], depth + 1)
    unclear = outside
    for *_, size in waiting:
        unclear = unclear + size
    if isinstance(unclear, fmpq) and unclear == 0:
        return sure
    top = ball(unclear).upper()
    return ball(sure) + arb(top / 2, top / 2)


def box_mean(point: Point, body: Node, count: int, drawn: Drawn) -> Value:
    """E of a number over several uniform draws, between what it is at least and at most on every box."""
    found: list = []
    numbers = count_up()

    def look(box: list[tuple[fmpq, fmpq]], depth: int) -> None:
        balls = [arb((low + high) / 2, arb((high - low) / 2).upper()) for low, high in box]
        value = replace(point, drawn=drawn(balls)).value(body).array
        if value.size != 1:
            raise Unclear("the mean of an array over several draws")
        part = ball(value.reshape(-1)[0]) * arb(fmpq(1, 2**depth))
        if not part.is_finite():
            raise Unclear("what is not bounded")
        heappush(found, (-float(part.rad()), next(numbers), depth, box, part))

    look([(fmpq(0), fmpq(1))] * count, 0)
    for _ in range(BOXES):
        _, _, depth, box, _ = heappop(found)
        place = depth % count
        low, high = box[place]
        for half in ((low, (low + high) / 2), ((low + high) / 2, high)):
            look([*box[:place], half, *box[place + 1 :]], depth + 1)
    return Value(boxed(sum((part for *_, part in found), arb(0))))


def mean(point: Point, body: Node, law: str, drawn: Drawn, random: dict[str, tuple[Scalar, Scalar]]) -> Value:
    """E of an expression of one draw, entry by entry."""
    shape = replace(point, drawn=drawn([arb(fmpq(1, 3))])).value(body)

    def entry(place: int) -> Scalar:
        def height(z: acb, analytic: bool) -> acb:
            try:
                found = replace(point, drawn=drawn([Curve(acb(z), analytic)])).value(body).array.reshape(-1)[place]
            except (Undefined, Unclear):
                return acb(float("nan"))
            value = found.value if isinstance(found, Curve) else acb(ball(found))
            if law == "normal":
                return value * (-(z * z) / 2).exp() / (2 * arb.pi()).sqrt()
            return value * (-z).exp() if law == "exponential" else value

        low, high = {"normal": (-CUT["normal"], CUT["normal"]), "exponential": (0, CUT["exponential"])}.get(law, (0, 1))
        pieces = [(low, 0), (0, high)] if low < 0 else [(low, high)]
        total = acb(0)
        for a, b in pieces:
            total = total + acb.integral(height, a, b, rel_tol=2.0**-50, abs_tol=2.0**-50, eval_limit=20_000)
        if not total.real.is_finite():
            raise Unclear("an integral that does not converge")
        tail = arb(0) if law == "uniform" else _tail(law, growth(point, body, random))
        return total.real + arb(0, tail.upper())

    places = iter(range(shape.array.size))
    return each(lambda _: entry(next(places)), shape)


def _tail(law: str, coefficients: list[arb]) -> arb:
    """The integral of a polynomial in |z| beyond the cut."""
    cut, total = arb(CUT[law]), arb(0)
    for k, c in enumerate(coefficients):
        if law == "normal":  # 2 * int_T^oo z^k density
            total = total + c * arb(2) ** (arb(k) / 2) * (cut * cut / 2).gamma_upper(arb(k + 1) / 2) / arb.pi().sqrt()
        else:
            total = total + c * cut.gamma_upper(arb(k + 1))
    return total


def growth(point: Point, node: Node, random: dict[str, tuple[Scalar, Scalar]]) -> list[arb]:
    """c_k with |node| <= sum of c_k |z|^k."""
    if not names(node) & random.keys():
        entries = point.value(node).array.reshape(-1)
        return [sum((abs(ball(entry)) for entry in entries), arb(0))]
    match node:
        case Name(name):
            return [abs(ball(part)) for part in random[name]]
        case Negative(operand):
            return growth(point, operand, random)
        case Binary("+" | "-", left, right):
            return _sum(growth(point, left, random), growth(point, right, random))
        case Binary("*" | "@", left, right) | Call("dot", (left, right)) if isinstance(left, Node):
            assert isinstance(right, Node)
            return _product(growth(point, left, random), growth(point, right, random))
        case Binary("/", left, right) if not names(right) & random.keys():
            below_ = min((abs(ball(entry)).lower() for entry in point.value(right).array.reshape(-1)), key=float)
            if not below_ > 0:
                raise Unclear("division by 0")
            return [c / below_ for c in growth(point, left, random)]
        case Binary("^", left, Number(value)) if value.denominator == 1 and 0 <= value <= 8:
            found = [arb(1)]
            for _ in range(int(value)):
                found = _product(found, growth(point, left, random))
            return found
        case Call("sin" | "cos" | "tanh" | "sigmoid" | "erf" | "normcdf" | "sign", _):
            return [arb(1)]
        case Call("abs" | "relu" | "sum" | "norm" | "mean", (operand,)) if isinstance(operand, Node):
            return growth(point, operand, random)
        case Call("sqnorm", (operand,)) if isinstance(operand, Node):
            inner = growth(point, operand, random)
            return _product(inner, inner)
        case Call("sqrt", (operand,)) if isinstance(operand, Node):
            return _sum([arb(1)], growth(point, operand, random))
        case Call("max" | "min", arguments):
            found = [arb(0)]
            for part in arguments:
                if isinstance(part, Node):
                    found = _sum(found, growth(point, part, random))
            return found
    raise Unclear(f"no bound of {node} far out")


def _sum(left: list[arb], right: list[arb]) -> list[arb]:
    n = max(len(left), len(right))
    a, b = (side + [arb(0)] * (n - len(side)) for side in (left, right))
    return list(map(operator.add, a, b))


def _product(left: list[arb], right: list[arb]) -> list[arb]:
    found = [arb(0)] * (len(left) + len(right) - 1)
    for i, a in enumerate(left):
        for j, b in enumerate(right):
            found[i + j] = found[i + j] + a * b
    return found
