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
EVALUATIONS = 3_000  # of an integrand
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
    if kinds == {"exponential"} and len(slopes) == 2 and isinstance(constant, fmpq) and constant == 0:
        up, down = sorted(slopes.values(), key=lambda c: sign(c) or 0, reverse=True)
        if sign(up) == 1 and sign(down) == -1:
            return up / (up - down)  # of two waiting times the one that is slower by this much
    if kinds == {"exponential"} and len(slopes) == 1:
        (c,) = slopes.values()
        cut, side = -constant / c, sign(c)
        if side is None or sign(cut) is None:
            return None
        beyond = fmpq(1) if sign(cut) != 1 else (-ball(cut)).exp()
        return beyond if side > 0 else 1 - beyond
    return None


def curved_probability(wave: Wave, laws: Laws) -> Scalar | None:
    """P[wave > 0] of k*(z_1^2 + ... + z_n^2) + c of normal draws and k*z_1*...*z_n + c of uniform ones; else None."""
    constant: Scalar = fmpq(0)
    terms: list[tuple[Scalar, dict]] = []
    for c, powers, steep in _not_zero(wave):
        if steep:
            return None
        if powers:
            terms.append((c, powers))
        else:
            constant = constant + c
    if not terms or sign(terms[0][0]) not in (1, -1):
        return None
    factor = terms[0][0] if len(terms) == 1 else _hull([c for c, _ in terms])
    if sign(factor) not in (1, -1):
        return None
    positive = sign(factor) == 1
    cut = -constant / factor
    if sign(cut) is None:
        return None
    kinds = {laws[z] for _, powers in terms for z in powers}
    if kinds == {"normal"}:  # the chance falls with every factor, so that of their hull contains it
        if any([*powers.values()] != [2] for _, powers in terms):
            return None
        half = arb(len(terms)) / 2
        inside = fmpq(0) if sign(cut) != 1 else (ball(cut) / 2).gamma_lower(half, 1)
        return 1 - inside if positive else inside
    if kinds == {"uniform"} and len(terms) == 1 and {*terms[0][1].values()} == {1}:
        side = sign(1 - cut)
        if side is None:
            return None
        inside = fmpq(0) if sign(cut) != 1 else fmpq(1)
        if sign(cut) == 1 and side == 1:
            fall = -ball(cut).log()
            inside = ball(cut) * sum((fall**k / factorial(k) for k in range(len(terms[0][1]))), arb(0))
        return 1 - inside if positive else inside
    return None


def _not_zero(wave: Wave) -> list[tuple[Scalar, dict, dict]]:
    return [term for term in wave.terms if not (isinstance(term[0], fmpq | arb) and term[0] == 0)]


def _hull(values: list[Scalar]) -> arb:
    """The smallest ball around all of them."""
    found = ball(values[0])
    for value in values[1:]:
        found = found.union(ball(value))
    return found


def positive_mean(wave: Wave, laws: Laws) -> Scalar | None:
    """E[max(wave, 0)] of a wave that is linear in normal draws, or in two exponential ones without a constant."""
    constant: Scalar = fmpq(0)
    slopes: dict[Draw, Scalar] = {}
    for c, powers, steep in _not_zero(wave):
        if steep or sum(powers.values()) > 1:
            return None
        if powers:
            (z,) = powers
            slopes[z] = slopes.get(z, fmpq(0)) + c
        else:
            constant = constant + c
    kinds = {laws[z] for z in slopes}
    if kinds == {"normal"}:
        spread = ball(sum((c * c for c in slopes.values()), fmpq(0))).sqrt()
        if not spread > 0:
            return None
        m = ball(constant)
        below_ = (-m / (spread * arb(2).sqrt())).erfc() / 2
        return m * below_ + spread * (-((m / spread) ** 2) / 2).exp() / (2 * arb.pi()).sqrt()
    if kinds == {"exponential"} and len(slopes) == 2 and isinstance(constant, fmpq) and constant == 0:
        up, down = sorted(slopes.values(), key=lambda c: sign(c) or 0, reverse=True)
        if sign(up) == 1 and sign(down) == -1:
            return up * up / (up - down)
    return None


def length_mean(wave: Wave, laws: Laws) -> Scalar | None:
    """E[sqrt(wave)] of k*(z_1^2 + ... + z_n^2), normal draws."""
    terms = [(c, powers) for c, powers, steep in _not_zero(wave) if not steep]
    if len(terms) < len(_not_zero(wave)) or not terms:
        return None
    factor = _hull([c for c, _ in terms])
    alike = all([*powers.values()] == [2] for _, powers in terms)
    if not alike or sign(factor) != 1 or {laws[z] for _, powers in terms for z in powers} != {"normal"}:
        return None
    half = arb(len(terms)) / 2
    return (2 * ball(factor)).sqrt() * (half + arb(1) / 2).gamma() / half.gamma()


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
            total = total + acb.integral(height, a, b, rel_tol=2.0**-50, abs_tol=2.0**-50, eval_limit=EVALUATIONS)
        if not total.real.is_finite():
            raise Unclear("an integral that does not converge")
        tail = arb(0) if law == "uniform" else _tail(law, *_steep(point, body, random))
        return total.real + arb(0, tail.upper())

    places = iter(range(shape.array.size))
    return each(lambda _: entry(next(places)), shape)


def _tail(law: str, coefficients: list[arb], square: arb, slope: arb) -> arb:
    """The integral beyond the cut of a polynomial in |z| times exp(square*z^2 + slope*|z|)."""
    cut, total = arb(CUT[law]), arb(0)
    fall = arb(1) / 2 - square - slope / cut if law == "normal" else 1 - slope
    if not fall > 0 or (law != "normal" and not square <= 0):
        raise Unclear("no bound far out")
    for k, c in enumerate(coefficients):
        if law == "normal":  # 2 * int_T^oo z^k e^{-fall z^2} / sqrt(2 pi)
            part = (fall * cut * cut).gamma_upper(arb(k + 1) / 2) / fall ** (arb(k + 1) / 2)
            total = total + c * part / (2 * arb.pi()).sqrt()
        else:
            total = total + c * (fall * cut).gamma_upper(arb(k + 1)) / fall ** (k + 1)
    return total


def _steep(point: Point, body: Node, random: dict[str, tuple[Scalar, Scalar]]) -> tuple[list[arb], arb, arb]:
    """A bound of a product with one exponential: its polynomial, and what stands in the exponent."""
    try:
        return growth(point, body, random), arb(0), arb(0)
    except Unclear:
        factors = _factors(body)
        steep = [each for each in factors if isinstance(each, Call) and each.function == "exp"]
        if len(steep) != 1:
            raise
    (inner,) = steep[0].arguments
    assert isinstance(inner, Node)
    (name,) = random
    base, step = random[name]
    wave = replace(point, drawn={name: Value(boxed(Wave([(base, {}, {}), (step, {"z": 1}, {})])))}).value(inner)
    parts = [arb(0), arb(0), arb(0)]
    for c, powers, slopes in Wave.of(wave.array.reshape(-1)[0]).terms:
        degree = int(powers.get("z", 0))
        if slopes or degree > 2 or wave.array.size != 1:
            raise Unclear("no bound far out")
        parts[degree] = parts[degree] + ball(c)
    found = [parts[0].exp()]
    for each_ in factors:
        if each_ is not steep[0]:
            found = _product(found, growth(point, each_, random))
    return found, parts[2], abs(parts[1])


def _factors(node: Node) -> list[Node]:
    return _factors(node.left) + _factors(node.right) if isinstance(node, Binary) and node.operator == "*" else [node]


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
