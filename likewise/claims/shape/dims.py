"""Dims: polynomials over the sizes of a claim, equal exactly when they agree at all sizes."""

from collections.abc import Mapping
from fractions import Fraction
from functools import reduce

from likewise.claims.language.limits import DEGREE, DIGITS
from likewise.claims.language.tree import Binary, Call, Name, Negative, Node, Number, children
from likewise.claims.verdict import Undecided
from likewise.polynomial import Polynomial

TERMS = 200
ONE = Polynomial.constant(1)


def dim_of(node: Node, sizes: Mapping[str, Polynomial]) -> Polynomial:
    """What an expression over sizes is, as a polynomial.

    >>> pairs = Call("choose", (Binary("+", Name("D"), Number(Fraction(1))), Number(Fraction(2))))
    >>> dim_of(pairs, {"D": Polynomial.variable("D")})
    Polynomial('1/2*D^2 + 1/2*D')
    """
    match node:
        case Number(value):
            return product(Polynomial.constant(value))
        case Name(name) if name in sizes:
            return sizes[name]
        case Negative(operand):
            return -dim_of(operand, sizes)
        case Binary("+" | "-", left, right):
            a, b = dim_of(left, sizes), dim_of(right, sizes)
            return a + b if node.operator == "+" else a - b
        case Binary("*", left, right):
            return product(dim_of(left, sizes), dim_of(right, sizes))
        case Binary("/", left, right):
            divisor = value_of(dim_of(right, sizes))
            if divisor:
                return dim_of(left, sizes) * (1 / divisor)
        case Binary("^", left, right):
            return product(*[dim_of(left, sizes)] * _count(dim_of(right, sizes), node))
        case Call("choose"):
            top, count = (dim_of(child, sizes) for child in children(node))
            return product(*((top - i) * Fraction(1, i + 1) for i in range(_count(count, node))))
    raise Undecided(f"{node} is no polynomial over the sizes")


def product(*dims: Polynomial) -> Polynomial:
    """The product of dims, as long as it stays small."""
    return reduce(_times, dims, ONE)


def node_of(dim: Polynomial) -> Node:
    """A polynomial as an expression again.

    >>> print(node_of(2 * Polynomial.variable("D") ** 2 + 1))
    2*D^2 + 1
    """
    total: Node | None = None
    for factors, value in sorted(dim.terms.items(), key=lambda term: -sum(exponent for _, exponent in term[0])):
        powers = [Name(name) if n == 1 else Binary("^", Name(name), Number(Fraction(n))) for name, n in factors]
        parts: list[Node] = [*([] if powers and value == 1 else [Number(value)]), *powers]
        term = reduce(lambda left, right: Binary("*", left, right), parts)
        total = term if total is None else Binary("+", total, term)
    return total or Number(Fraction(0))


def value_of(dim: Polynomial) -> Fraction | None:
    """Its value, if it does not depend on a size."""
    return None if dim.variables else dim.coefficient()


def _times(left: Polynomial, right: Polynomial) -> Polynomial:
    if left.degree + right.degree > DEGREE:
        raise Undecided(f"a size of degree above {DEGREE}")
    found = left * right
    if len(found.terms) > TERMS:
        raise Undecided(f"a size of more than {TERMS} terms")
    if any(max(abs(value.numerator), value.denominator) >= 10 ** (2 * DIGITS) for value in found.terms.values()):
        raise Undecided(f"a size of more than {2 * DIGITS} digits")
    return found


def _count(power: Polynomial, node: Node) -> int:
    value = value_of(power)
    if value is None or value.denominator > 1 or not 0 <= value <= DEGREE:
        raise Undecided(f"{node}: the power is no whole number from 0 to {DEGREE}")
    return int(value)
