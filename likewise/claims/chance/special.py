"""Closed forms of single shapes: powers and logarithms of a uniform number, exponentials of squares of normal ones,
lengths of normal vectors, products, races of waiting times, and odd functions under laws that are even.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from math import factorial

from likewise.claims.algebra.balls import sign
from likewise.claims.algebra.elementary import erf, log, sqrt, substitute
from likewise.claims.algebra.exponomials import IMAGINARY, PI, Atom, Form, Term, exp, form, of_atom, of_key
from likewise.claims.chance.moments import ExponentialNumber, Normals, UniformNumber
from likewise.claims.chance.pieces import linear
from likewise.claims.verdict import Undecided

HALF = Fraction(1, 2)
Sure = Callable[[Form], bool]  # whether a form is surely above 0


def uniform_mean(term: Form, law: UniformNumber) -> Form:
    """E of x^n·L^e·log(L)^k for one L that is linear in a uniform number x and not negative; k is 0 or 1."""
    [((powers, exponent), coefficient)] = term.terms.items()
    if law.atom in of_key(exponent).atoms():
        raise Undecided("an exponential beside a root or a logarithm")
    whole, e, logs, base = 0, Fraction(0), 0, None
    others: list = []
    for atom, power in powers:
        if law.atom not in of_atom(atom).atoms():
            others.append((atom, power))
            continue
        if atom == law.atom and Fraction(power).denominator == 1 and power >= 0:
            whole = int(power)
            continue
        inner = of_atom(atom) if atom == law.atom else of_key(atom.parts[0])
        is_log = atom.kind == "function" and atom.name == "log"
        if (base is not None and base != inner) or not (is_log or atom == law.atom or atom.kind == "power"):
            raise Undecided("a function of a random number without an exact mean")
        base = inner
        logs, e = (logs + int(power), e) if is_log else (logs, e + Fraction(power))
        if is_log and (Fraction(power).denominator > 1 or power < 0):
            raise Undecided("a power of a logarithm")
    if base is None or logs > 1:
        raise Undecided("a function of a random number without an exact mean")
    slope, start = linear(base, law.atom)
    width = law.highest - law.lowest
    ends = [substitute(base, {law.atom: end}) for end in (law.lowest, law.highest)]
    if sign(width) <= 0 or min(map(sign, ends)) < 0 or not sign(slope):
        raise Undecided("a root or a logarithm of what may be negative")
    total = form(0)
    for k in range(whole + 1):  # x^n = ((L - b)/a)^n
        share = Fraction(factorial(whole), factorial(k) * factorial(whole - k))
        sides = [_antiderivative(end, e + k, logs) for end in ends]
        total = total + (-start) ** (whole - k) * share * (sides[1] - sides[0])
    rest = Form({(tuple(others), exponent): coefficient})
    return rest * total / (slope ** (whole + 1) * width)


def _antiderivative(end: Form, e: Fraction, logs: int) -> Form:
    """∫ y^e·log(y)^k, 0 at an end of 0."""
    if not end.terms:
        if e <= -1:
            raise ArithmeticError("an expectation that does not exist")
        return form(0)
    if e == -1:
        return log(end) ** 2 * HALF if logs else log(end)
    raised = end ** (e + 1) / (e + 1)
    return raised * (log(end) - 1 / (e + 1)) if logs else raised


def squares(exponent: Form, laws: Sequence[Normals]) -> Iterator[tuple[Atom, Form, Form]]:
    """Normal numbers x that stand as A·x² in an exponent, with A and their law's mean and variance."""
    for law in laws:
        for place, atom in enumerate(law.atoms):
            if any(dict(powers).get(atom, 0) == 2 for powers, _ in exponent.terms):
                yield atom, law.means[place], law.covariance[place][place]


def without_square(term: Form, atom: Atom, mean: Form, variance: Form, sure: Sure) -> tuple[Form, Form, Form]:
    """E of P(x)·e^{Ax² + Bx + C} under N(m, v) as that of P under another normal law: factor, mean, variance.

    e^{(Am² + Bm + vB²/2)/(1 - 2Av)}/sqrt(1 - 2Av), m' = (m + vB)/(1 - 2Av), v' = v/(1 - 2Av), where 2Av < 1.
    """
    [((powers, exponent), coefficient)] = term.terms.items()
    square, slope, rest = form(0), form(0), form(0)
    for (inner, deeper), c in of_key(exponent).terms.items():
        e = dict(inner).get(atom, 0)
        piece = Form({(tuple(pair for pair in inner if pair[0] != atom), deeper): c})
        if atom in piece.atoms() or e not in (0, 1, 2):
            raise Undecided("an exponential that is not quadratic in a normal number")
        square, slope, rest = square + piece * (e == 2), slope + piece * (e == 1), rest + piece * (e == 0)
    room = 1 - square * variance * 2
    if not room.is_real or not slope.is_real:
        raise Undecided("a wave of a square")
    if not sure(room):
        if room.constant is not None:
            raise ArithmeticError("an expectation that does not exist")
        raise Undecided("an exponential that may grow as fast as the density falls")
    tilt = (square * mean * mean + slope * mean + variance * slope * slope * HALF) / room
    factor = exp(tilt + rest) / sqrt(room) * Form({(tuple(p for p in powers if p[0] != atom), ()): coefficient})
    return factor, (mean + variance * slope) / room, variance / room


def gamma_ratio(n: int, twice: int) -> Form:
    """Γ((n + k)/2)/Γ(n/2) for whole n and k."""
    if n + twice <= 0:
        raise ArithmeticError("an expectation that does not exist")
    return _gamma(n + twice) / _gamma(n)


def _gamma(n: int) -> Form:
    """Γ(n/2)."""
    value, k = (form(1), 2) if n % 2 == 0 else (sqrt(of_atom(PI)), 1)
    while k < n:
        value, k = value * Fraction(k, 2), k + 2
    return value


def radial(value: Form, laws: Sequence[Normals]) -> tuple[Form, Form, list[Atom], Form] | None:
    """Of k·(x_1² + ... + x_n²) + c the factor k, the constant c, the numbers and their variance; None for another."""
    atoms: list[Atom] = []
    factor: Form | None = None
    rest = form(0)
    known = {atom: (law, place) for law in laws for place, atom in enumerate(law.atoms)}
    for (powers, exponent), coefficient in value.terms.items():
        mine = [(atom, e) for atom, e in powers if atom in known]
        piece = Form({(tuple(pair for pair in powers if pair not in mine), exponent): coefficient})
        if any(atom in known for atom in piece.atoms()):
            return None
        if not mine:
            rest = rest + piece
        elif len(mine) == 1 and mine[0][1] == 2 and (factor is None or factor == piece):
            factor = piece
            atoms.append(mine[0][0])
        else:
            return None
    variances = set()
    for atom in atoms:
        law, place = known[atom]
        row = law.covariance[place]
        if law.means[place].terms or any(entry.terms for j, entry in enumerate(row) if j != place):
            return None
        variances.add(row[place])
    if factor is None or len(variances) != 1:
        return None
    return factor, rest, atoms, variances.pop()


def inside_ball(squared: Form, n: int, variance: Form) -> Form:
    """P[x_1² + ... + x_n² <= r²] of n normal numbers, r² > 0 and the variance > 0."""
    half = squared / (variance * 2)
    total = erf(sqrt(half)) if n % 2 else 1 - exp(-half)
    k = 1 if n % 2 else 2
    while k < n:
        total = total - half ** Fraction(k, 2) * exp(-half) / _gamma(k + 2)
        k += 2
    return total


def race(value: Form, laws: Sequence[ExponentialNumber], sure: Sure) -> tuple[Form, Form] | None:
    """Of a·x - b·y, two waiting times with a, b > 0: P that it is above 0, and E[max(it, 0)]. None for another."""
    mine = {law.atom: law for law in laws if law.atom in value.atoms()}
    if len(mine) != 2:
        return None
    rest, speeds = value, {}
    try:
        for atom in mine:
            slope, rest = linear(rest, atom)
            speeds[sign(slope)] = (atom, slope)
    except Undecided:
        return None
    if rest.terms or set(speeds) != {1, -1}:
        return None
    (x, a), (y, b) = speeds[1], speeds[-1]
    fast, slow = mine[x].rate / a, mine[y].rate / -b  # a·x ~ Exp(rate/a)
    if not (sure(fast) and sure(slow)):
        return None
    first = slow / (fast + slow)  # a·x outlasts b·y, and then waits as long again
    return first, first / fast


def product_of_uniforms(value: Form, laws: Sequence[UniformNumber]) -> tuple[Form, Form, int] | None:
    """Of k·u_1···u_n + c the factor k·heights, the constant c and n, for u_i ~ U(0, height); None for another."""
    mine = [law for law in laws if law.atom in value.atoms()]
    atoms = {law.atom for law in mine}
    if len(mine) < 2 or any(law.lowest.terms for law in mine):
        return None
    factor, rest = None, form(0)
    for (powers, exponent), coefficient in value.terms.items():
        used = {atom for atom, e in powers if atom in atoms and e == 1}
        piece = Form({(tuple(pair for pair in powers if pair[0] not in atoms), exponent): coefficient})
        if any(atom in atoms for atom in piece.atoms()):
            return None
        if not used and not any(atom in atoms for atom, _ in powers):
            rest = rest + piece
        elif used == atoms and factor is None:
            factor = piece
        else:
            return None
    if factor is None:
        return None
    for law in mine:
        factor = factor * law.highest
    return factor, rest, len(mine)


def below_product(cut: Form, n: int) -> Form:
    """P[u_1···u_n <= c] = c·Σ_k (-log c)^k/k! of n numbers uniform on [0, 1]."""
    if sign(cut) <= 0:
        return form(0)
    if sign(1 - cut) <= 0:
        return form(1)
    total = form(0)
    for k in range(n):
        total = total + (-log(cut)) ** k * Fraction(1, factorial(k))
    return cut * total


def factors_of(value: Form, random: frozenset[Atom]) -> list[tuple[Atom, int]] | None:
    """The random numbers of a single product of them, with their powers; None for another form."""
    if len(value.terms) != 1:
        return None
    [((powers, exponent), _)] = value.terms.items()
    mine = [(atom, e) for atom, e in powers if atom in random]
    rest = [atom for atom, _ in powers if atom not in random]
    if any(random & of_atom(atom).atoms() for atom in rest) or random & of_key(exponent).atoms():
        return None
    if len(mine) < 2 or any(Fraction(e).denominator > 1 for _, e in mine):
        return None
    return [(atom, int(e)) for atom, e in mine]


def even_part(value: Form, flipped: Mapping[Atom, Form]) -> Form | None:
    """(f(x) + f(-x))/2, where that is one number; None where it is not."""
    both = (value + substitute(value, flipped)) * HALF
    middle = substitute(value, dict.fromkeys(flipped, 0))
    return middle if (both - middle).is_zero() else None


def grows_slowly(term: Term, random: frozenset[Atom]) -> bool:
    """Whether a term is at most a polynomial in the random numbers: exponentials are divided by larger ones."""
    powers, exponent = term
    inner = of_key(exponent)
    real = {key: c for key, c in inner.terms.items() if IMAGINARY not in dict(key[0])}
    grows = Form({key: c for key, c in real.items() if random & of_powers(key[0])})
    if any(of_key(deeper).terms for _, deeper in inner.terms):
        return False
    bounded = False
    for atom, e in powers:
        if not random & of_atom(atom).atoms() or (atom in random and e >= 0):
            continue
        if atom.kind == "function" and atom.name in ("erf", "sign", "max", "floor") and e >= 0:
            if atom.name == "max" and not all(_polynomial(of_key(part), random) for part in atom.parts):
                return False
            continue
        if atom.kind != "power" or e != -1 or bounded:
            return False
        inner = of_key(atom.parts[0])
        if not all(c > 0 and not random & of_powers(p) for (p, _), c in inner.terms.items()):
            return False
        if not any(not p and of_key(deeper) == grows for p, deeper in inner.terms):
            return False
        bounded = True
    return bounded or not grows.terms


def of_powers(powers: tuple) -> set[Atom]:
    """The atoms of a product."""
    return set().union(*(of_atom(atom).atoms() for atom, _ in powers))


def _polynomial(value: Form, random: frozenset[Atom]) -> bool:
    return all(
        (atom in random and e >= 0 and Fraction(e).denominator == 1) or not random & of_atom(atom).atoms()
        for powers, exponent in value.terms
        for atom, e in powers
    ) and not any(random & of_key(exponent).atoms() for _, exponent in value.terms)
