"""Elementary functions of forms, and substitution into them."""

from collections.abc import Mapping
from fractions import Fraction
from math import floor

from likewise.claims.algebra.balls import sign
from likewise.claims.algebra.exponomials import (
    IMAGINARY,
    PI,
    Atom,
    Form,
    Scalar,
    content,
    exp,
    factors,
    form,
    of_atom,
    of_key,
    power,
)
from likewise.claims.verdict import Undecided


def sqrt(value: Scalar) -> Form:
    """The square root; sqrt(x)·sqrt(x) is x.

    >>> from likewise.claims.algebra.exponomials import size
    >>> sqrt(8) * sqrt(2) == 4, sqrt(size("D")) ** 2 == size("D")
    (True, True)
    """
    return power(form(value), Fraction(1, 2))


def log(value: Scalar) -> Form:
    """The natural logarithm: of a product of positive factors the sum of theirs."""
    value = form(value)
    if value.constant is not None and value.constant <= 0:
        raise ArithmeticError("a logarithm of a number that is not positive")
    if len(value.terms) > 1:
        common, primitive = content(value, signed=False)
        return log(common) + of_atom(Atom("function", "log", parts=(primitive.key,)))
    [((powers, exponent), coefficient)] = value.terms.items()
    total, under = of_key(exponent), form(1 if coefficient > 0 else -1)
    for n, count in ((abs(coefficient).numerator, 1), (abs(coefficient).denominator, -1)):
        for prime, times in factors(n).items():
            total = total + _log(form(prime)) * (count * times)
    for atom, e in powers:
        if atom.positive:
            total = total + _log(form(atom.index[0]) if atom.kind == "prime" else of_atom(atom)) * Fraction(e)
        else:
            under = under * of_atom(atom, e)
    return total if under == 1 else total + _log(under)


def _log(value: Form) -> Form:
    return of_atom(Atom("function", "log", parts=(value.key,)))


def cos(value: Scalar) -> Form:
    """(e^{ix} + e^{-ix})/2.

    >>> from likewise.claims.algebra.exponomials import variable
    >>> x = variable("x")
    >>> cos(2 * x) == 2 * cos(x) ** 2 - 1
    True
    """
    angle = of_atom(IMAGINARY) * form(value)
    return (exp(angle) + exp(-angle)) * Fraction(1, 2)


def sin(value: Scalar) -> Form:
    """(e^{ix} - e^{-ix})/(2i)."""
    angle = of_atom(IMAGINARY) * form(value)
    return (exp(-angle) - exp(angle)) * of_atom(IMAGINARY) * Fraction(1, 2)


def maximum(*values: Scalar) -> Form:
    """The largest; an atom of those that cannot be compared.

    >>> from likewise.claims.algebra.exponomials import variable
    >>> maximum(1, 3, 2) == 3, maximum(variable("x"), 2, 1) == maximum(2, variable("x"))
    (True, True)
    """
    best: list[Form] = []
    for value in map(form, values):
        if any(_known_sign(value - other) in (-1, 0) for other in best):
            continue
        best = [other for other in best if _known_sign(value - other) != 1] + [value]
    if len(best) == 1:
        return best[0]
    return of_atom(Atom("function", "max", parts=tuple(sorted(value.key for value in best))))


def minimum(*values: Scalar) -> Form:
    """The smallest, -max(-x, ...)."""
    return -maximum(*(-form(value) for value in values))


def absolute(value: Scalar) -> Form:
    """max(x, -x)."""
    return maximum(value, -form(value))


def _known_sign(value: Form) -> int | None:
    """The sign of what is constant, or of one term that is positive whatever its atoms are."""
    if len(value.terms) == 1:
        [((powers, exponent), coefficient)] = value.terms.items()
        if of_key(exponent).is_real and all(atom.positive for atom, _ in powers):
            return 1 if coefficient > 0 else -1
    try:
        return sign(value)
    except Undecided:
        return None


def erf(value: Scalar) -> Form:
    """The error function, 2/sqrt(pi) times the integral of exp(-t^2) from 0; erf(-x) is -erf(x).

    >>> from likewise.claims.algebra.exponomials import variable
    >>> erf(0) == 0, erf(-variable("x")) == -erf(variable("x"))
    (True, True)
    """
    value = form(value)
    if not value.terms:
        return form(0)
    turned = -1 if value.key[0][1] < 0 else 1
    return of_atom(Atom("function", "erf", parts=((value * turned).key,))) * turned


def step(name: str, value: Scalar) -> Form:
    """sign or floor: a number where the value is one, else an atom, which only expectations can take away again."""
    value = form(value)
    known = value.constant
    if known is not None:
        return form((known > 0) - (known < 0) if name == "sign" else floor(known))
    try:
        if name == "sign" and value.is_real:
            return form(sign(value))
    except Undecided:
        pass
    return of_atom(Atom("function", name, parts=(value.key,)))


FUNCTIONS = {
    "log": log,
    "max": maximum,
    "erf": erf,
    "sign": lambda value: step("sign", value),
    "floor": lambda value: step("floor", value),
}


def substitute(value: Form, values: Mapping[Atom, Scalar]) -> Form:
    """The form with atoms replaced, also inside exponents and inside other atoms.

    >>> from likewise.claims.algebra.exponomials import variable
    >>> x, y = Atom("variable", "x"), variable("y")
    >>> substitute(cos(of_atom(x)), {x: y + y}) == 2 * cos(y) ** 2 - 1
    True
    """
    if not values:
        return value
    total = form(0)
    for (powers, exponent), coefficient in value.terms.items():
        product = exp(substitute(of_key(exponent), values)) * coefficient if exponent else form(coefficient)
        for atom, e in powers:
            product = product * _replaced(atom, values) ** e
        total = total + product
    return total


def _replaced(atom: Atom, values: Mapping[Atom, Scalar]) -> Form:
    if atom in values:
        return form(values[atom])
    if not atom.parts:
        return of_atom(atom)
    inner = [substitute(of_key(part), values) for part in atom.parts]
    return inner[0] if atom.kind == "power" else FUNCTIONS[atom.name](*inner)


def derivative(value: Form, by: Atom) -> Form:
    """The partial derivative; Undecided where a max is in the way.

    >>> from likewise.claims.algebra.exponomials import variable
    >>> x = Atom("variable", "x")
    >>> derivative(sin(of_atom(x)), x) == cos(of_atom(x))
    True
    """
    total = form(0)
    for (powers, exponent), coefficient in value.terms.items():
        term = Form({(powers, exponent): coefficient})
        if exponent:
            total = total + term * derivative(of_key(exponent), by)
        for atom, e in powers:
            inner = _inner_derivative(atom, by)
            if inner.terms:
                rest = Form({(tuple(pair for pair in powers if pair[0] != atom), exponent): coefficient})
                total = total + rest * _replaced(atom, {}) ** (Fraction(e) - 1) * inner * Fraction(e)
    return total


def _inner_derivative(atom: Atom, by: Atom) -> Form:
    if atom == by or not any(by in of_key(part).atoms() for part in atom.parts):
        return form(int(atom == by))
    inside = of_key(atom.parts[0])
    if atom.kind == "power":
        return derivative(inside, by)
    if atom.name == "log":
        return derivative(inside, by) / inside
    if atom.name == "erf":
        return derivative(inside, by) * exp(-(inside * inside)) * 2 / sqrt(of_atom(PI))
    raise Undecided(f"{atom.name} has no derivative everywhere")
