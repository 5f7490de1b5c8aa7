"""Claims with E and Var, exactly: expectations are replaced by their values, and what is left is decided by algebra.

Normal vectors with covariance c·I and signs are averaged for every size at once; anything else at given lengths.
"""

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product

from likewise.claims import arrays
from likewise.claims.algebra import identities, intervals
from likewise.claims.algebra.balls import sign
from likewise.claims.algebra.coordinates import Coordinates, violated
from likewise.claims.algebra.exponomials import Atom, Form, form, variable
from likewise.claims.algebra.invariants import Invariants, Vector, named, number, ones
from likewise.claims.algebra.printing import node_of, value_text
from likewise.claims.algebra.questions import Question, comparisons, question
from likewise.claims.algebra.witnesses import is_proved, refuted, search, violation
from likewise.claims.arrays import Array
from likewise.claims.chance.chances import AtLengths, ForEverySize, Joined, Law, Laws
from likewise.claims.chance.moments import Coin, ExponentialNumber, Normals, Sign, UniformNumber
from likewise.claims.chance.wick import NormalVector, SignVector
from likewise.claims.growth.impossible import impossible
from likewise.claims.language.claim import (
    Bernoulli,
    Claim,
    Compares,
    Exponential,
    Normal,
    Rademacher,
    Reals,
    Uniform,
    Variable,
)
from likewise.claims.language.expressions import rebuilt
from likewise.claims.language.parser import nodes, over
from likewise.claims.language.tree import (
    NEGATED,
    Binary,
    Call,
    Chain,
    Join,
    Matrix,
    Moment,
    Name,
    Negative,
    Node,
    Number,
    Probability,
    children,
    names,
)
from likewise.claims.verdict import Finding, Undecided

LENGTHS = (1, 2, 3)  # tried one by one where no formula serves every size
COMBINATIONS = 9
POINTS = ((0,), (1,), (1, -2, 3))  # numbers that all variables take in turn
BUDGET_SHARE = 0.4  # of the budget, for one way of deciding what is left without chance


def decide(claim: Claim) -> Finding | None:
    """Proved, or refuted with a point, where every expectation has an exact value."""
    stated = [node for part in (claim.relation, *claim.assumptions) for node in nodes(part)]
    if not isinstance(claim.relation, Compares) or claim.program or not any(map(_chance, stated)):
        return None
    try:
        exact = _for_every_size(claim)
    except (Undecided, ArithmeticError):
        try:
            return _at_lengths(claim)
        except (ArithmeticError, IndexError) as reason:
            raise Undecided(f"undefined: {reason}") from None
        except Undecided:
            found = _at_points(claim)
            if found is None:
                raise
            return found
    return _settled(claim, exact)


def exact(claim: Claim) -> "Exact | None":
    """The claim without chance, where every expectation has an exact value; None else."""
    stated = [node for part in (claim.relation, *claim.assumptions) for node in nodes(part)]
    if not isinstance(claim.relation, Compares) or claim.program or not any(map(_chance, stated)):
        return None
    given = {size.name: int(n) for size in claim.sizes if (n := _given(claim, size.name)) is not None}
    ways: list[Callable[[], Exact]] = [lambda: _for_every_size(claim)]
    if all(size.equation is not None or size.name in given for size in claim.sizes):
        ways.append(lambda: _at(claim, given))
    for way in ways:
        with suppress(Undecided, ArithmeticError, IndexError):
            found = way()
            if not impossible(found.claim):
                return replace(found, claim=replace(found.claim, budget=claim.budget))
    return None


def _at_points(claim: Claim) -> Finding | None:
    """A counterexample at a simple point: all zeros, where a law may be degenerate, all ones, small numbers."""
    assert isinstance(claim.relation, Compares)
    free = [size.name for size in claim.sizes if size.equation is None]
    fixed = [each for each in claim.variables if not each.random]
    if claim.relation.within is not None or not fixed or not all(isinstance(each.kind, Reals) for each in fixed):
        return None
    for length, numbers in product((1, 2), POINTS):
        lengths = {name: int(_given(claim, name) or length) for name in free}
        try:
            at = _at_values(claim, lengths, numbers)
            if any(violated(at, assumption) is not None for assumption in claim.assumptions):
                continue
            if violated(at, claim.relation.chain) is None:
                continue
            sides = [_sides(at.evaluate(term)) for term in claim.relation.chain.terms]
        except (Undecided, ArithmeticError, IndexError):
            continue
        shown = [(name, str(n)) for name, n in lengths.items()]
        shown += [(each.name, _sides(at.values[each.name])) for each in fixed]
        place = " ".join(f"{name}={value}" for name, value in shown)
        signs = claim.relation.chain.comparisons
        text_ = " ".join([sides[0], *(f"{NEGATED[how]} {side}" for how, side in zip(signs, sides[1:], strict=True))])
        return Finding("refuted", "exact witness", f"{place}: {text_}", engine="gaussian", witness=tuple(shown))
    return None


def _sides(array: Array) -> str:
    texts = [value_text(form(entry)) for entry in array.entries]
    return f"({','.join(texts)})" if array.shape else texts[0]


def _at_values(claim: Claim, lengths: dict[str, int], numbers: tuple[int, ...]) -> AtLengths:
    """Every variable that is not random as numbers, taken in turn."""
    at = _plain(claim).symbols(lengths)
    values = dict(at.values)
    for each in claim.variables:
        if not each.random:
            count = len(values[each.name].entries)
            entries = tuple(Fraction(numbers[i % len(numbers)]) for i in range(count))
            values[each.name] = replace(values[each.name], entries=entries)
    at, laws = replace(at, values=values), {}
    for each in claim.variables:
        if each.random:
            values[each.name], laws[each.name], unsure = laws_on_coordinates(each, at)
            if any(sign(entry) < 0 for entry in unsure):
                raise Undecided("a law that does not exist")
    return AtLengths(values, lengths, laws=Laws(laws))


def _chance(node: Node) -> bool:
    return isinstance(node, Moment | Probability) or any(map(_chance, children(node)))


@dataclass(frozen=True)
class Exact:
    """The claim without chance, and how expectations were taken."""

    claim: Claim
    method: str


def _for_every_size(claim: Claim) -> Exact:
    at = _plain(claim).invariants()
    laws, allowed = {}, []
    values, shapes = dict(at.values), dict(at.shapes)
    for each in claim.variables:
        if each.random:
            law, value, spread = law_for_every_size(each, at)
            laws[each.name], values[each.name] = (law,), arrays.scalar(value)
            shapes[each.name] = (value.length,) if isinstance(value, Vector) else ()
            allowed += [spread] if spread is not None else []
    found = ForEverySize(values, shapes=shapes, laws=Laws(laws))
    positive = _positive(claim, found.scalar)
    found = replace(found, laws=Laws(laws, positive=positive))
    order = [each.name for each in claim.variables]
    return _rewritten(claim, lambda node: _node(found.many(node), order), found.laws, allowed)


def _positive(claim: Claim, value: Callable[[Node], Form]) -> tuple[Form, ...]:
    """What the assumptions say is above 0."""
    found = []
    for left, comparison, right in comparisons(claim.assumptions):
        if comparison == "!=" or (comparison == ">" and not isinstance(right, Number)):
            with suppress(Undecided, ArithmeticError, IndexError):
                found.append(value(Binary("-", left, right)) ** (2 if comparison == "!=" else 1))
        above = isinstance(right, Number) and (right.value > 0 or (right.value == 0 and comparison == ">"))
        if above and comparison in (">", ">=", "=="):
            with suppress(Undecided, ArithmeticError, IndexError):
                found.append(value(left))
    return tuple(found)


def _plain(claim: Claim) -> Question:
    """The claim's names as they stand, no equation solved."""
    assert isinstance(claim.relation, Compares)
    fixed = tuple(each for each in claim.variables if not each.random)
    return Question(claim, claim.relation.chain, claim.assumptions, fixed, tuple(size.name for size in claim.sizes))


def _node(value: Form | Vector | Joined, order: list[str]) -> Node:
    """A value as an expression of the claim language."""
    if isinstance(value, Joined):
        return Join(tuple(_node(part, order) for part in value.parts))
    if isinstance(value, Form):
        return node_of(value, order)
    total: Node = Call("zeros", (node_of(value.length, order),))
    for vectors, coefficient in value.terms.items():
        term = node_of(coefficient, order)
        for name in vectors:
            term = Binary("*", term, Name(name))
        total = Binary("+", total, term)
    return total


def _rewritten(claim: Claim, exact: Callable[[Node], Node], laws: Laws, allowed: list[Form]) -> Exact:
    """The claim with every expectation replaced; a variance that could be negative is assumed not to be."""
    assert isinstance(claim.relation, Compares)
    free = {each.name for each in claim.variables if not each.random} | {size.name for size in claim.sizes}

    def change(node: Node) -> Node:
        if not isinstance(node, Moment | Probability):
            return rebuilt(node, change)
        value = exact(node)
        if not names(value) <= free:
            raise Undecided(f"{node} has no real value in closed form")
        return value

    zero = Number(Fraction(0))
    positive = tuple(Chain((node_of(variance), zero), (">=",)) for variance in allowed)
    new = replace(
        claim,
        relation=over(claim.relation, change),
        assumptions=tuple(over(chain, change) for chain in claim.assumptions) + positive,
        variables=tuple(each for each in claim.variables if not each.random),
        written="",
        budget=BUDGET_SHARE * claim.budget,
    )
    return Exact(new, laws.method)


def _settled(claim: Claim, exact: Exact) -> Finding | None:
    """The finding of the exact engines on the claim without chance, in the words of this one."""
    if impossible(exact.claim):
        raise Undecided("nothing satisfies the assumptions, or a law does not exist")
    found = identities.decide(exact.claim, after=exact.method)
    if found is not None:
        return replace(found, engine="gaussian")
    asked = question(exact.claim)
    if asked is None:
        return None
    tried = search(asked, lambda at: violation(at, asked.chain))
    if tried.witness:
        return replace(refuted(asked, tried.witness, is_proved, exact=_value(claim, exact)), engine="gaussian")
    if tried.complete and tried.tried and not tried.reason:
        return Finding("holds", "proved", f"exactly ({exact.method})", engine="gaussian")
    found = intervals.decide(exact.claim, after=exact.method)
    return found and replace(found, engine="gaussian")


def _value(claim: Claim, exact: Exact) -> str:
    """The exact value of an expectation that stands alone on one side; "" if none does."""
    assert isinstance(claim.relation, Compares)
    assert isinstance(exact.claim.relation, Compares)
    pairs = zip(claim.relation.chain.terms, exact.claim.relation.chain.terms, strict=True)
    alone = [str(value) for term, value in pairs if isinstance(term, Moment) and names(value)]
    return alone[0] if len(alone) == 1 else ""


def _at_lengths(claim: Claim) -> Finding | None:
    """The same at every small choice of the free sizes; a claim with free sizes can only be refuted so."""
    given = {size.name: int(n) for size in claim.sizes if (n := _given(claim, size.name)) is not None}
    free = [size.name for size in claim.sizes if size.equation is None and size.name not in given]
    if not free:
        return _settled(claim, _at(claim, given))
    checked, chosen = [], list(_lengths(free))
    for lengths in chosen:
        bound = tuple(Chain((Name(name), Number(Fraction(n))), ("==",)) for name, n in lengths.items())
        here = replace(claim, assumptions=claim.assumptions + bound, budget=claim.budget / len(chosen))
        place = " ".join(f"{name}={n}" for name, n in lengths.items())
        try:
            found = _settled(here, _at(here, given | lengths))
        except (ArithmeticError, IndexError):
            continue  # undefined here
        if found is not None and found.verdict == "refuted":
            witness = tuple((name, str(n)) for name, n in lengths.items()) + found.witness
            return replace(found, detail=f"{place}{' ' if found.witness else ': '}{found.detail}", witness=witness)
        checked += [place] if found is not None and found.grade == "proved" else []
    raise Undecided(f"true for {', '.join(checked)}, not proved for every size" if checked else "no closed form")


def _given(claim: Claim, name: str) -> Fraction | None:
    """The number that an assumption gives a size."""
    pairs = [chain.terms for chain in claim.assumptions if chain.comparisons == ("==",)]
    values = [right.value for left, right in pairs if left == Name(name) and isinstance(right, Number)]
    return next((value for value in values if value.denominator == 1), None)


def _lengths(free: list[str]) -> Iterator[dict[str, int]]:
    for values in sorted(product(LENGTHS, repeat=len(free)), key=sum)[:COMBINATIONS]:
        yield dict(zip(free, values, strict=True))


def _at(claim: Claim, lengths: dict[str, int]) -> Exact:
    """Every variable as an array of symbols, random ones too."""
    sized = Coordinates({}, lengths)
    for size in claim.sizes:
        if size.equation is not None:
            lengths = {**lengths, size.name: sized.whole(size.equation)}
            sized = Coordinates({}, lengths)
    at = _plain(claim).symbols(lengths)
    laws: dict[str, tuple[Law, ...]] = {}
    values, allowed = dict(at.values), []
    for each in claim.variables:
        if each.random:
            values[each.name], laws[each.name], doubtful = laws_on_coordinates(each, at)
            allowed += doubtful
    found = AtLengths(values, lengths, laws=Laws(laws))
    positive = _positive(claim, lambda node: form(found.evaluate(node).scalar))
    found = AtLengths(values, lengths, laws=Laws(laws, positive=positive))
    return _rewritten(claim, lambda node: _array_node(found.evaluate(node)), found.laws, allowed)


def _array_node(array: Array) -> Node:
    if not array.shape:
        return node_of(form(array.scalar))
    if len(array.shape) > 2 or array.line:
        raise Undecided("the expectation of a tensor")
    if len(array.shape) == 2:
        n = array.shape[1]
        rows = [array.entries[i : i + n] for i in range(0, len(array.entries), n)]
        return Matrix(tuple(Join(tuple(node_of(form(entry)) for entry in row)) for row in rows))
    return Join(tuple(node_of(form(entry)) for entry in array.entries))


def law_for_every_size(each: Variable, at: Invariants) -> tuple[Law, Form | Vector, Form | None]:
    """The law of a number or vector, the symbol for it, and what must not be negative: a variance, a length."""
    atom = Atom("variable", each.name)
    if isinstance(each.kind, Uniform):
        ends = at.scalar(each.kind.lowest), at.scalar(each.kind.highest)
        return UniformNumber(atom, *ends), variable(each.name), doubtful(ends[1] - ends[0])
    if isinstance(each.kind, Exponential):
        rate = at.scalar(each.kind.rate)
        return ExponentialNumber(atom, rate), variable(each.name), doubtful(rate)
    if isinstance(each.kind, Bernoulli):
        chance = at.scalar(each.kind.chance)
        return Coin(atom, chance), variable(each.name), None if chance.constant is not None else chance * (1 - chance)
    if isinstance(each.kind, Rademacher):
        length = at.scalar(each.kind.dim)
        return SignVector(each.name, length), named(each.name, length), None
    assert isinstance(each.kind, Normal)
    spread, length = _multiple(each.kind.spread, at)
    variance = spread * spread if each.kind.is_std else spread
    mean = at.one(each.kind.mean)
    if length is None:
        width = spread if each.kind.is_std else variance
        return Normals([atom], [number(mean)], [[variance]]), variable(each.name), doubtful(width)
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
    if isinstance(each.kind, Exponential | Bernoulli):
        waits = isinstance(each.kind, Exponential)
        given = at.evaluate(each.kind.rate if isinstance(each.kind, Exponential) else each.kind.chance).map(form)
        symbols = _symbols(each.name, given.shape)
        pairs = list(zip(_atoms(symbols), given.entries, strict=True))
        found = tuple(ExponentialNumber(*pair) if waits else Coin(*pair) for pair in pairs)
        unsure = [entry if waits else entry * (1 - entry) for entry in given.entries if entry.constant is None]
        return symbols, found, unsure
    if isinstance(each.kind, Uniform):
        ends = arrays.broadcast(
            lambda a, b: (form(a), form(b)), *map(at.evaluate, (each.kind.lowest, each.kind.highest))
        )
        symbols = _symbols(each.name, ends.shape)
        pairs = zip(_atoms(symbols), ends.entries, strict=True)
        spans = [doubtful(highest - lowest) for lowest, highest in ends.entries]
        if any(end.constant is None for both in ends.entries for end in both):  # low + (high - low)*u
            law = tuple(UniformNumber(atom, form(0), form(1)) for atom in _atoms(symbols))
            moved = [low + (high - low) * form(u) for u, (low, high) in zip(symbols.entries, ends.entries, strict=True)]
            return replace(symbols, entries=tuple(moved)), law, [span for span in spans if span]
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
    if each.kind.is_std and not spread.shape:
        width = doubtful(form(spread.entries[0]))
        return symbols, (Normals(_atoms(symbols), means, rows),), [width] if width else []
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
