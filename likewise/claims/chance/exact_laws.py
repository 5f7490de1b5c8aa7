"""The laws of random names as the exact engine reads them: vectors c·I for every size, anything at given lengths."""

from fractions import Fraction

from likewise.claims.algebra import arrays
from likewise.claims.algebra.arrays import Array
from likewise.claims.algebra.coordinates import Coordinates
from likewise.claims.algebra.exponomials import Atom, Form, form, variable
from likewise.claims.algebra.invariants import Invariants, Vector, named, number, ones
from likewise.claims.chance.chances import Law
from likewise.claims.chance.moments import Normals, Sign, UniformNumber
from likewise.claims.chance.wick import NormalVector, SignVector
from likewise.claims.language.claim import Normal, Rademacher, Uniform, Variable
from likewise.claims.language.tree import Binary, Call, Negative, Node
from likewise.claims.verdict import Undecided


def law_for_every_size(each: Variable, at: Invariants) -> tuple[Law, Form | Vector, Form | None]:
    """The law of a number or vector, the symbol for it, and what must not be negative: a variance, a length."""
    atom = Atom("variable", each.name)
    if isinstance(each.kind, Uniform):
        ends = at.scalar(each.kind.lowest), at.scalar(each.kind.highest)
        return UniformNumber(atom, *ends), variable(each.name), doubtful(ends[1] - ends[0])
    if isinstance(each.kind, Rademacher):
        length = at.scalar(each.kind.dim)
        return SignVector(each.name, length), named(each.name, length), None
    assert isinstance(each.kind, Normal)
    spread, length = _multiple(each.kind.spread, at)
    variance = spread * spread if each.kind.is_std else spread
    mean = at.evaluate(each.kind.mean)
    if length is None:
        return Normals([atom], [number(mean)], [[variance]]), variable(each.name), doubtful(variance)
    vector = ones(length).scaled(mean) if isinstance(mean, Form) else mean
    if vector.length != length:
        raise Undecided(f"the mean and the covariance of {each.name} have different sizes")
    kept = Vector(length, {names: c for names, c in vector.terms.items() if c.terms})
    return NormalVector(each.name, kept, variance), named(each.name, length), doubtful(variance)


def _multiple(node: Node, at: Invariants) -> tuple[Form, Form | None]:
    """c and D of c·I(D); no D for a number."""
    match node:
        case Call("I", (length,)) if isinstance(length, Node):
            return form(1), at.scalar(length)
        case Negative(operand):
            value, length = _multiple(operand, at)
            return -value, length
        case Binary("+" | "-" | "*" | "/" | "@" as operator, left, right):
            (a, m), (b, n) = _multiple(left, at), _multiple(right, at)
            fits = {"+": m == n, "-": m == n, "*": True, "/": n is None, "@": m is not None and m == n}
            if not fits[operator] or (m is not None and n is not None and m != n):
                raise Undecided(f"{node} is no multiple of the identity")
            value = {"+": a + b, "-": a - b, "/": a / b if operator == "/" else a}.get(operator, a * b)
            return value, n if m is None else m
    return at.scalar(node), None


def doubtful(variance: Form) -> Form | None:
    """What is not seen to be positive, term by term."""
    sure = all(
        coefficient > 0 and not exponent and all(atom.positive or Fraction(e) % 2 == 0 for atom, e in powers)
        for (powers, exponent), coefficient in variance.terms.items()
    )
    return None if sure else variance


def laws_on_coordinates(each: Variable, at: Coordinates) -> tuple[Array, tuple[Law, ...], list[Form]]:
    """The symbols of a random variable, their laws, and what must not be negative."""
    if isinstance(each.kind, Rademacher):
        symbols = _symbols(each.name, (at.whole(each.kind.dim),))
        return symbols, tuple(Sign(atom) for atom in _atoms(symbols)), []
    if isinstance(each.kind, Uniform):
        ends = arrays.broadcast(
            lambda a, b: (form(a), form(b)), *map(at.evaluate, (each.kind.lowest, each.kind.highest))
        )
        symbols = _symbols(each.name, ends.shape)
        pairs = zip(_atoms(symbols), ends.entries, strict=True)
        spans = [doubtful(highest - lowest) for lowest, highest in ends.entries]
        return symbols, tuple(UniformNumber(atom, *pair) for atom, pair in pairs), [span for span in spans if span]
    assert isinstance(each.kind, Normal)
    mean, spread = at.evaluate(each.kind.mean), at.evaluate(each.kind.spread)
    if spread.shape not in ((), (len(mean.entries),) * 2) and (mean.shape or len(set(spread.shape)) != 1):
        raise Undecided(f"{each}: a vector needs a covariance matrix, for example s^2*I(D)")
    if mean.shape and not spread.shape:
        raise Undecided(f"{each}: a vector needs a covariance matrix, for example s^2*I(D)")
    n = spread.shape[0] if spread.shape else 1
    symbols = _symbols(each.name, spread.shape[:1])
    rows = [[form(spread.entries[i * n + j]) for j in range(n)] for i in range(n)]
    if each.kind.is_std:
        rows = [[sum((a * b for a, b in zip(left, right, strict=True)), form(0)) for right in rows] for left in rows]
    means = [form(entry) for entry in (mean.entries if mean.shape else mean.entries * n)]
    return symbols, (Normals(_atoms(symbols), means, rows),), _checked(rows, each)


def _symbols(name: str, shape: tuple[int, ...]) -> Array:
    return arrays.filled(shape, lambda place: variable(name, *(i + 1 for i in place)))


def _atoms(symbols: Array) -> list[Atom]:
    return [next(iter(entry.atoms())) for entry in symbols.entries]


def _checked(rows: list[list[Form]], each: Variable) -> list[Form]:
    """Variances to be assumed not negative; a covariance of numbers is checked here, by elimination."""
    places = range(len(rows))
    if all(not rows[i][j].terms for i in places for j in places if i != j):
        return [doubt for i in places if (doubt := doubtful(rows[i][i]))]
    left = [[entry.constant for entry in row if entry.constant is not None] for row in rows]
    if any(len(row) < len(rows) for row in left) or any(left[i][j] != left[j][i] for i in places for j in places):
        raise Undecided(f"{each}: a covariance that is neither diagonal nor made of numbers")
    for i in places:
        pivot = left[i][i]
        if pivot < 0 or (pivot == 0 and any(left[i][i + 1 :])):
            raise Undecided(f"{each}: the covariance is not positive")
        for j in places[i + 1 :]:
            share = left[j][i] / pivot if pivot else Fraction(0)
            left[j] = [a - share * b for a, b in zip(left[j], left[i], strict=True)]
    return []
