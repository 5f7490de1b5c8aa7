"""A normal form written in the claim language again: squares of differences and cosines are put together."""

from collections.abc import Sequence
from fractions import Fraction
from functools import reduce

from likewise.claims.algebra.balls import decimal
from likewise.claims.algebra.exponomials import IMAGINARY, Atom, Form, Key, form, of_atom, of_key
from likewise.claims.language.tree import Binary, Call, Constant, Index, Name, Negative, Node, Number

ZERO = Number(Fraction(0))


def text(value: Form | Fraction | int, order: Sequence[str] = ()) -> str:
    """A form as text; `order` says which vector is named first.

    >>> from likewise.claims.algebra.elementary import cos, sqrt
    >>> from likewise.claims.algebra.exponomials import exp, size, variable
    >>> x = variable("x")
    >>> text(exp(-sqrt(size("D")) * x / 2) * cos(x) * 3), text(sqrt(Fraction(1, 8)))
    ('3*exp(-sqrt(D)*x/2)*cos(x)', 'sqrt(2)/4')
    """
    return str(node_of(form(value), order))


def value_text(value: Form | Fraction | int, order: Sequence[str] = ()) -> str:
    """A constant with its decimals where it is no fraction: exp(1) = 2.71828."""
    shown = text(value, order)
    return shown if form(value).constant is not None else f"{shown} = {decimal(form(value))}"


def node_of(value: Form, order: Sequence[str] = ()) -> Node:
    """The tree of a form."""
    total: Node | None = None
    for coefficient, factors in sorted(_terms(value, order), key=_rank):
        node = _term(abs(coefficient), factors, order)
        if total is None:
            total = node if coefficient > 0 else _negative(node)
        else:
            total = Binary("+" if coefficient > 0 else "-", total, node)
    return ZERO if total is None else total


Factors = tuple[tuple[tuple[Atom | Node, Fraction | int], ...], Key]


def _rank(term: tuple[Fraction, "Factors"]) -> tuple[int, str]:
    """Higher degree first, then as the letters go."""
    powers, exponent = term[1]
    degree = sum(int(e) for atom, e in powers if not isinstance(atom, Atom) or atom.kind not in ("prime", "pi", "size"))
    return (-degree - bool(exponent), str([str(atom) for atom, _ in powers]))


def _negative(node: Node) -> Node:
    """-a*b/c with the sign at the first factor, where it reads best."""
    if isinstance(node, Binary) and node.operator in "*/":
        return Binary(node.operator, _negative(node.left), node.right)
    return Number(-node.value) if isinstance(node, Number) else Negative(node)


def _term(coefficient: Fraction, factors: "Factors", order: Sequence[str]) -> Node:
    powers, exponent = factors
    over = [_power(atom, e, order) for atom, e in powers if e > 0]
    under = [_power(atom, -e, order) for atom, e in powers if e < 0]
    over += [Call("exp", (node_of(of_key(exponent), order),))] if exponent else []
    if coefficient.numerator != 1 or not over:
        over = [Number(Fraction(coefficient.numerator)), *over]
    if coefficient.denominator != 1:
        under = [Number(Fraction(coefficient.denominator)), *under]
    top = reduce(lambda left, right: Binary("*", left, right), over)
    return Binary("/", top, reduce(lambda left, right: Binary("*", left, right), under)) if under else top


def _power(atom: Atom | Node, exponent: Fraction | int, order: Sequence[str]) -> Node:
    base = _atom(atom, order) if isinstance(atom, Atom) else atom
    if exponent == 1:
        return base
    if exponent == Fraction(1, 2):
        return Call("sqrt", (base,))
    return Binary("^", base, Number(Fraction(exponent)))


def _atom(atom: Atom, order: Sequence[str]) -> Node:
    parts = tuple(node_of(of_key(part), order) for part in atom.parts)
    match atom.kind:
        case "prime":
            return Number(Fraction(atom.index[0]))
        case "power":
            return parts[0]
        case "function":
            return Call(atom.name, parts)
        case "invariant":
            return invariant(atom.names, order)
        case "pi":
            return Constant("pi")
        case "i":
            return Name("sqrt(-1)")  # no claim can declare it
    indices = tuple(Number(Fraction(i)) for i in atom.index)
    return Index(Name(atom.name), indices) if indices else Name(atom.name)


def invariant(names: Sequence[str], order: Sequence[str] = ()) -> Node:
    """Σ_i x_i·y_i···: sum(x), sqnorm(x), dot(x, y), or the sum of a longer product."""
    first = [*(name for name in order if name in names for _ in range(list(names).count(name)))]
    nodes = [Name(name) for name in first + [name for name in names if name not in first]]
    if len(nodes) == 2:
        return Call("sqnorm", (nodes[0],)) if nodes[0] == nodes[1] else Call("dot", tuple(nodes))
    return Call("sum", (reduce(lambda left, right: Binary("*", left, right), nodes),))


def _terms(value: Form, order: Sequence[str]) -> list[tuple[Fraction, "Factors"]]:
    """The terms, after waves and squares were put together."""
    waves, rest = _waves(value, order)
    squares, rest = _squares(rest, order)
    return waves + squares + [(coefficient, term) for term, coefficient in rest.terms.items()]


def _squares(value: Form, order: Sequence[str]) -> tuple[list[tuple[Fraction, "Factors"]], Form]:
    """sqnorm(x) - 2 dot(x, y) + sqnorm(y), times anything, as sqnorm(x - y); and what is left."""
    found: list[tuple[Fraction, Factors]] = []
    for (powers, exponent), c in [*value.terms.items()]:
        for atom, e in powers:
            if atom.kind != "invariant" or e != 1 or len(set(atom.names)) != 2 or len(atom.names) != 2:
                continue
            others = tuple(pair for pair in powers if pair[0] != atom)
            sums = [of_atom(atom._replace(names=(name, name))) for name in atom.names]
            cofactor = Form({(others, exponent): Fraction(1)})
            sides = [next(iter((cofactor * each).terms)) for each in sums]
            here = value.terms.get(sides[0], Fraction(0))
            if (powers, exponent) not in value.terms or here != value.terms.get(sides[1]) or abs(here) * 2 != abs(c):
                continue
            value = value - cofactor * ((sums[0] + sums[1]) * here + of_atom(atom) * c)
            left, right = sorted(atom.names, key=lambda name: [*order, name].index(name))
            square = Call("sqnorm", (Binary("+" if c * here > 0 else "-", Name(left), Name(right)),))
            found.append((here, ((*others, (square, 1)), exponent)))
    return found, value


def _waves(value: Form, order: Sequence[str]) -> tuple[list[tuple[Fraction, "Factors"]], Form]:
    """a·e^{R+iT} + conjugate as 2a·e^R·cos(T), likewise with the sine; and what is left."""
    found: list[tuple[Fraction, Factors]] = []
    for (powers, exponent), coefficient in [*value.terms.items()]:
        real, angle = _parts(of_key(exponent))
        if not angle.terms or (powers, exponent) not in value.terms:
            continue
        sine = (IMAGINARY, 1) in powers
        others = tuple(pair for pair in powers if pair[0] != IMAGINARY)
        opposite = (powers, (real - of_atom(IMAGINARY) * angle).key)
        if value.terms.get(opposite) != (-coefficient if sine else coefficient):
            continue
        value = value - Form({(powers, exponent): coefficient, opposite: -coefficient if sine else coefficient})
        turned = -1 if angle.key[0][1] < 0 else 1  # cos(-T) = cos T, sin(-T) = -sin T
        wave = Call("sin" if sine else "cos", (node_of(angle * turned, order),))
        grown: list[tuple[Atom | Node, Fraction | int]] = [*others]
        grown += [(Call("exp", (node_of(real, order),)), 1)] if real.terms else []
        found.append((coefficient * 2 * (-turned if sine else 1), ((*grown, (wave, 1)), ())))
    return found, value


def _parts(value: Form) -> tuple[Form, Form]:
    """R and T of R + iT."""
    turned = {term: c for term, c in value.terms.items() if IMAGINARY in dict(term[0])}
    imaginary = Form(turned)
    return value - imaginary, imaginary / of_atom(IMAGINARY)
