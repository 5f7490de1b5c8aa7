"""Orders of what has differences inside maxima, signs, sines or logarithms of powers: by simpler terms or larger ones.

|max(a, b)| <= |a| + |b|, |a - b| <= |a| + |b|, |floor(a)| <= |a| + 1, mod(a, b) <= min(a, b) and |sin(a)| <= 1: if the
larger is in O(g), so is the term. Where a and b are above 0, log(a/b) is log(a) - log(b), log(a^b) is b*log(a),
exp(k*log(a)) is a^k and sqrt(a) - sqrt(b) is (a - b)/(sqrt(a) + sqrt(b)).
"""

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

from likewise.claims.language.claim import Bounded, Claim
from likewise.claims.language.expressions import rebuilt
from likewise.claims.language.tree import Binary, Call, Name, Negative, Node, Number, names
from likewise.claims.verdict import Finding, Undecided

ONE, NONE = Number(Fraction(1)), Number(Fraction(0))
HALF = Fraction(1, 2)
POWER = 12


def decide(claim: Claim, ask: Callable[[Claim], Finding]) -> Finding | None:
    """Decided with simpler terms, or proved with larger ones."""
    relation = claim.relation
    if not isinstance(relation, Bounded) or isinstance(relation.quantity, str):
        return None
    sizes = {size.name for size in claim.sizes}
    if not names(relation.quantity) | names(relation.bound) <= sizes:
        return None
    f, g = simpler(relation.quantity), simpler(relation.bound)
    if (f, g) != (relation.quantity, relation.bound):
        found = ask(replace(claim, relation=replace(relation, quantity=f, bound=g)))
        if found.verdict in ("holds", "refuted"):
            return found
    parts = [(f, g)] if relation.order == "O" else [(g, f)] if relation.order == "Omega" else [(f, g), (g, f)]
    larger = [(above(one), other) for one, other in parts]
    if larger == parts:
        return None
    for one, other in larger:
        found = ask(replace(claim, relation=Bounded(one, "O", other)))
        if found.verdict != "holds":
            return None
    said = " and ".join(f"{one} in O({other})" for one, other in larger)
    return replace(found, detail=f"{said}: {found.detail}", suggestions=())


def positive(node: Node) -> bool:
    """Whether an expression over sizes is surely above 0."""
    match node:
        case Name():
            return True
        case Number(value):
            return value > 0
        case Binary("+" | "*" | "/", left, right):
            return positive(left) and positive(right)
        case Binary("^", left, _):
            return positive(left)
        case Call("exp" | "factorial", _):
            return True
        case Call("sqrt", (inner,)) if isinstance(inner, Node):
            return positive(inner)
    return False


def least_one(node: Node) -> bool:
    """Whether an expression over sizes is surely at least 1."""
    match node:
        case Name():
            return True
        case Number(value):
            return value >= 1
        case Binary("+" | "*", left, right):
            return least_one(left) and least_one(right)
        case Binary("^", left, Number(power)):
            return least_one(left) and power >= 0
        case Call("factorial", _):
            return True
    return False


def whole(node: Node) -> bool:
    """Whether an expression over sizes is surely a whole number above 0."""
    match node:
        case Name():
            return True
        case Number(value):
            return value.denominator == 1 and value > 0
        case Binary("+" | "*", left, right):
            return whole(left) and whole(right)
    return False


def simpler(node: Node) -> Node:
    """The same with logarithms and exponentials of them written out."""
    node = rebuilt(node, simpler)
    match node:
        case Call("log", (Call("exp", (inner,)),)):
            return inner if isinstance(inner, Node) else node
        case Call("log", (Binary("/", a, b),)) if positive(a) and positive(b):
            return Negative(log(b)) if a == ONE else Binary("-", log(a), log(b))
        case Call("log", (Binary("^", a, b),)) if positive(a):
            return Binary("*", b, log(a))
        case Call("exp", (Call("log", (a,)),)) if isinstance(a, Node) and positive(a):
            return a
        case Call("exp", (Binary("*", Number() as k, Call("log", (a,))),)) if isinstance(a, Node) and positive(a):
            return Binary("^", a, k)
        case Call("exp", (Binary("*", Call("log", (a,)), Number() as k),)) if isinstance(a, Node) and positive(a):
            return Binary("^", a, k)
        case Binary("-", left, right) if positive(left) and positive(right):
            a, b = _radicand(left), _radicand(right)
            if a is None and b is None:
                return node
            two = Number(Fraction(2))
            above_ = Binary("-", a or Binary("^", left, two), b or Binary("^", right, two))
            return Binary("/", above_, Binary("+", left, right))
        case Binary("^", Number(b), Binary("/", Call("log", (a,)), Call("log", (Number(c),)))):
            if isinstance(a, Node) and positive(a) and c > 1:
                power = next((k for k in range(1, POWER) if c**k == b), None)
                return node if power is None else Binary("^", a, Number(Fraction(power)))
    return node


def _radicand(node: Node) -> Node | None:
    """a of the root of a."""
    match node:
        case Call("sqrt", (inner,)) if isinstance(inner, Node):
            return inner
        case Binary("^", inner, Number(value)) if value == HALF:
            return inner
    return None


def log(node: Node) -> Node:
    """log, taken apart once more."""
    return simpler(Call("log", (node,)))


def above(node: Node) -> Node:
    """Something that is never below the absolute value; Undecided where none is known."""
    if positive(node):
        return node
    match node:
        case Number(value):
            return Number(abs(value))
        case Negative(inner):
            return above(inner)
        case Binary("-", a, Binary("*", b, Call("floor", (Binary("/", c, d),)))) if (a, b) == (c, d):
            if positive(a) and positive(b):
                return Call("min", (a, b))  # the remainder mod(a, b)
            raise Undecided(f"no bound of {node}")
        case Binary("+" | "-", left, right):
            a, b = above(left), above(right)
            return a if b == NONE else b if a == NONE else Binary("+", a, b)
        case Binary("*", left, right):
            return Binary("*", above(left), above(right))
        case Binary("/", left, right) if positive(right):
            return Binary("/", above(left), right)
        case Binary("^", Negative(Number(value)), exponent) if value == 1 and whole(exponent):
            return ONE
        case Binary("^", left, Number(power)) if power.denominator == 1 and 0 < power <= POWER:
            return Binary("^", above(left), node.right)
        case Call("max" | "min", parts) if len(parts) > 1:
            nodes = [above(part) for part in parts if isinstance(part, Node)]
            kept = [part for part in nodes if part != NONE] or [NONE]
            total = kept[0]
            for part in kept[1:]:
                total = Binary("+", total, part)
            return total
        case Call("abs" | "relu", (inner,)) if isinstance(inner, Node):
            return above(inner)
        case Call("sin" | "cos" | "sign", (inner,)) if isinstance(inner, Node):
            above(inner)  # so that it is defined
            return ONE
        case Call("floor", (inner,)) if isinstance(inner, Node):
            return Binary("+", above(inner), ONE)
        case Call("log", (inner,)) if isinstance(inner, Node) and least_one(inner):
            return node
    raise Undecided(f"no bound of {node}")
