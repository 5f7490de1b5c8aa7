"""Proofs by normal form: for every size at once, by the small-D argument, or at sizes that are given."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from random import Random

from likewise.claims import arrays
from likewise.claims.algebra import equations, stability
from likewise.claims.algebra.coordinates import Coordinates, violated
from likewise.claims.algebra.domains import one_sided
from likewise.claims.algebra.elementary import substitute
from likewise.claims.algebra.exponomials import Atom, Form, form, of_atom, of_key
from likewise.claims.algebra.inequalities import inequalities, is_sum_of_squares
from likewise.claims.algebra.invariants import Invariants, Vector, plus, times
from likewise.claims.algebra.questions import FLIPPED, ZERO, Question, quantified, question
from likewise.claims.algebra.signs import (
    ANY,
    NOT_NEGATIVE,
    Expressions,
    Facts,
    allowed,
    facts,
    of_assumptions,
    of_names,
)
from likewise.claims.language.claim import Claim, Compares
from likewise.claims.language.tree import Binary, Chain, Comparison, Name, Node, Number, children, names
from likewise.claims.verdict import Finding, Undecided

HALF, SQUARED = Fraction(1, 2), 2  # the power of a root; how often both sides are squared
DIFFERENT = (2, 3, 5, 7, 11, 13, 17, 19, 23, 29)  # lengths for as many sizes
METHODS = (
    "normal form",
    "signs",
    "sum of squares",
    "both sides squared",
    "index notation",
)  # a proof is named after the least simple of its steps
Compared = tuple[Form, Comparison]  # a form left - right, and how it must compare with 0


@dataclass(frozen=True)
class Proof:
    """Where a question is proved, `for every D`, and by which method."""

    scope: str
    method: str
    condition: str = ""  # of the method, as it is printed

    def text(self, after: str = "") -> str:
        """In the words of a verdict; `after` names an earlier step, which a plain normal form only completes."""
        if after and self.method == METHODS[0] and not self.condition:
            return f"{self.scope} ({after})"
        how = f"{self.method}, {self.condition}" if self.condition else self.method
        return f"{self.scope} ({how})" + (f", {after}" if after else "")


def decide(claim: Claim, *, after: str = "") -> Finding | None:
    """Whether an equation is proved; what is not proved is left to the search for a counterexample."""
    asked = question(claim)
    if asked is None or not set(asked.chain.comparisons) <= {"==", "!="} or not (asked.variables or asked.sizes):
        return None
    proof = proved(asked)
    if proof is None:
        return None
    return Finding("holds", "proved", proof.text(after), engine="algebra", where=proof.condition)


def same_sides(claim: Claim) -> Finding | None:
    """A comparison of an expression with itself."""
    relation = claim.relation
    if not isinstance(relation, Compares) or not set(relation.chain.comparisons) <= {"==", "<=", ">="}:
        return None
    if len(set(relation.chain.terms)) > 1 or not names(relation.chain.terms[0]):
        return None
    return Finding("holds", "proved", "both sides are the same expression", engine="algebra")


def proved(asked: Question) -> Proof | None:
    r"""How the question is proved; None if it is not.

    >>> from likewise.claims.language.parser import parse
    >>> proved(question(parse("given: q, k in R^D\nassert: sqnorm(q - k) == sqnorm(q) - 2*dot(q, k) + sqnorm(k)")))
    Proof(scope='for every D', method='normal form', condition='')
    """
    ways: list[Callable[[Question], str | None]] = [_for_every_size, _by_small_sizes, _by_signs, _by_indices]
    if not _same_indices(asked) and _broken(asked):
        return None
    for way in ways:
        try:
            method = way(asked)
        except (Undecided, ArithmeticError, IndexError):
            continue
        if method is not None and _defined(asked) and not one_sided(asked):
            return Proof(_scope(asked), method, _condition(asked))
    return None


def _broken(asked: Question) -> bool:
    """Whether random numbers show at once that there is nothing to prove, before anything is expanded."""
    if asked.assumptions or asked.solved:
        return False
    for start in (0, 2):
        lengths, draws = dict(zip(asked.sizes, DIFFERENT[start:], strict=False)), Random(start)
        try:
            values = asked.drawn(lengths, draws)
            if violated(asked.complete(values, lengths), asked.chain) is not None:
                return True
        except (Undecided, ArithmeticError, IndexError):
            continue
    return False


def _scope(asked: Question) -> str:
    if asked.sizes:
        return f"for every {', '.join(asked.sizes)}"
    fixed = {size.name for size in asked.claim.sizes}
    given = [f"{name}={node}" for name, node in asked.solved if name in fixed]
    return f"at {', '.join(given)}" if given else "for all values"


def _defined(asked: Question) -> bool:
    """Whether both sides have a value at some point, with sizes that all differ: a proof about nothing is none."""
    lengths, draws = dict(zip(asked.sizes, DIFFERENT, strict=False)), Random(0)
    for attempt in range(6):
        try:
            values = asked.drawn(lengths, draws)
            if attempt % 2:  # roots and logarithms
                values = {each.name: values[each.name].map(abs) for each in asked.variables}
            at = asked.complete(values, lengths)
            terms = [at.evaluate(term) for term in asked.chain.terms]
            return all(arrays.broadcast(lambda a, b: a - b, *pair).entries for pair in pairwise(terms))
        except ArithmeticError:
            continue
        except (Undecided, IndexError):
            return False
    return False


def _condition(asked: Question) -> str:
    """A quotient is only claimed where it is defined; that is said unless signs exclude a denominator of 0."""
    reader = Expressions(of_names(asked), of_assumptions(asked))
    waiting = list(asked.chain.terms)
    while waiting:
        node = waiting.pop()
        waiting += children(node)
        if isinstance(node, Binary) and node.operator == "/" and 0 in reader.of(node.right):
            return "where denominators are not 0"
    return ""


def _for_every_size(asked: Question) -> str | None:
    if not set(asked.chain.comparisons) <= {"=="} and not _never_empty(asked):
        return None
    at = asked.invariants()
    return _decided(asked, _differences(at, asked.chain), _usable(lambda each: _numbers(at, each), asked))


def _by_small_sizes(asked: Question) -> str | None:
    """Equations at the lengths that decide every size; without free sizes, any comparison."""
    if asked.sizes and set(asked.chain.comparisons) != {"=="}:
        return None
    lengths = stability.lengths(asked) if asked.sizes else {}
    at = asked.symbols(lengths, keep_sizes=True)
    method = _decided(asked, _coordinates(at, asked.chain), [] if asked.sizes else _assumed(asked, at))
    used = ", ".join(f"{name}={n}" for name, n in lengths.items())
    return f"{method} at {used}" if method and used else method


def proved_at(asked: Question, lengths: Mapping[str, int]) -> bool:
    """Whether the question is proved with its sizes bound to these lengths."""
    try:
        at = asked.symbols(lengths)
        return _decided(asked, _coordinates(at, asked.chain), _assumed(asked, at)) is not None
    except (Undecided, ArithmeticError, IndexError):
        return False


def _assumed(asked: Question, at: Coordinates) -> list[Compared]:
    return _usable(lambda each: _coordinates(at, each), asked)


def _usable(read: Callable[[Chain], list[Compared]], asked: Question) -> list[Compared]:
    """The assumptions that have a normal form; one that has none is not used."""
    found: list[Compared] = []
    for each in asked.assumptions:
        try:
            found += read(each)
        except (Undecided, ArithmeticError, IndexError):
            continue
    return found


def _by_signs(asked: Question) -> str | None:
    """Every comparison by the signs of its sides."""
    if not _never_empty(asked):
        return None
    reader = Expressions(of_names(asked), of_assumptions(asked))
    for left, comparison, right in _links(asked.chain):
        difference: Node = left if right == ZERO else Binary("-", left, right)
        if not reader.of(difference) <= allowed(comparison):
            return None
    return "signs"


def _by_indices(asked: Question) -> str | None:
    """Equations between arrays of any length, entry by entry."""
    return "index notation" if equations.equal(asked) else None


def averaged(claim: Claim) -> Finding | None:
    """Equations of expectations and variances of polynomials, at every size, in index notation."""
    if not isinstance(claim.relation, Compares) or claim.program or claim.source:
        return None
    asked = quantified(claim, claim.relation)
    used = set().union(*(names(term) for term in asked.chain.terms))
    if asked.solved or not used <= {each.name for each in (*claim.variables, *claim.sizes)}:
        return None
    if not equations.equal(asked) or one_sided(asked):
        return None
    scope = _scope(asked)
    return Finding("holds", "proved", f"{scope} (index notation, cumulants{_condition(asked)})", engine="gaussian")


def _same_indices(asked: Question) -> bool:
    """Whether index notation, which is fast, shows that arrays are equal: then no number is tried first."""
    try:
        return any(map(asked.dims, asked.variables)) and equations.equal(asked)
    except (Undecided, ArithmeticError, IndexError):
        return False


def _never_empty(asked: Question) -> bool:
    """Whether every variable has an entry; a length that is a formula, such as D - 1, may be 0."""
    return all(isinstance(dim, Name | Number) for each in asked.variables for dim in asked.dims(each))


def _links(each: Chain) -> Iterable[tuple[Node, Comparison, Node]]:
    return zip(each.terms, each.comparisons, each.terms[1:], strict=False)


def _differences(at: Invariants, each: Chain) -> list[Compared]:
    """left - right of every comparison; vectors are equal in every coordinate, and are not compared otherwise."""
    found: list[Compared] = []
    for left, comparison, right in _links(each):
        difference = plus(at.one(left), times(form(-1), at.one(right)))
        if isinstance(difference, Vector) and comparison != "==":
            raise Undecided("vectors are compared coordinate by coordinate")
        parts = difference.terms.values() if isinstance(difference, Vector) else [difference]
        found += [(part, comparison) for part in parts]
    return found


def _numbers(at: Invariants, each: Chain) -> list[Compared]:
    """left - right of comparisons of numbers; that vectors are equal says nothing of their coefficients."""
    if any(isinstance(at.one(term), Vector) for term in each.terms):
        raise Undecided("an assumption about vectors")
    return _differences(at, each)


def _coordinates(at: Coordinates, each: Chain) -> list[Compared]:
    found: list[Compared] = []
    for left, comparison, right in _links(each):
        pairs = arrays.broadcast(lambda a, b: form(a - b), at.evaluate(left), at.evaluate(right)).entries
        if comparison == "!=" and len(pairs) > 1:
            raise Undecided("!= of arrays holds if one entry differs")
        found += [(pair, comparison) for pair in pairs]
    return found


def _decided(asked: Question, wanted: Sequence[Compared], assumed: Sequence[Compared]) -> str | None:
    """normal form, or signs where a comparison needed them; None if some comparison is open."""
    values = _solutions([value for value, comparison in assumed if comparison == "=="])
    left = [(substitute(value, values), comparison) for value, comparison in wanted] if values else wanted
    if left and all(comparison in ("==", "<=", ">=") and value.is_zero() for value, comparison in left):
        return METHODS[0]
    rest = [(substitute(value, values), comparison) for value, comparison in assumed]
    known = facts(asked, [*rest, *inequalities([value for value, _ in wanted])])
    methods = [_settled(known, value, comparison) for value, comparison in left]
    return None if not methods or None in methods else max(filter(None, methods), key=METHODS.index)


def _settled(known: Facts, value: Form, comparison: Comparison, depth: int = 0) -> str | None:
    if comparison in ("==", "<=", ">=") and (value.is_zero() or known.settled(value).is_zero()):
        return "normal form"
    value = _without_sizes(known.settled(value))
    signs = known.of(value)
    if signs and signs != ANY and comparison != "==" and signs <= allowed(comparison):
        return "signs"
    if is_sum_of_squares(value if comparison in (">", ">=") else -value, comparison):
        return "sum of squares"
    return _squared(known, value, comparison, depth) if depth < SQUARED else None


def _without_sizes(value: Form) -> Form:
    """The form times the powers of sizes, which are above 0, that leave no size below or in all terms."""
    sizes = {atom for powers, _ in value.terms for atom, _ in powers if atom.kind == "size"}
    for atom in sorted(sizes):
        least = min(dict(powers).get(atom, 0) for powers, _ in value.terms)
        value = value * of_atom(atom, -least) if least else value
    return value


def _squared(known: Facts, value: Form, comparison: Comparison, depth: int) -> str | None:
    """c·sqrt(p) <= rest, where c > 0 and the rest is not negative, is c²·p <= rest²; and so with <."""
    if comparison in (">", ">="):
        value, comparison = -value, FLIPPED[comparison]
    if comparison not in ("<", "<="):
        return None
    for (powers, exponent), coefficient in value.terms.items():
        if exponent or len(powers) != 1 or powers[0][0].kind != "power" or powers[0][1] != HALF or coefficient < 0:
            continue
        rest = Form({(powers, exponent): coefficient}) - value
        signs = known.of(rest)
        if signs and signs <= NOT_NEGATIVE:
            difference = of_key(powers[0][0].parts[0]) * coefficient**2 - rest * rest
            if _settled(known, difference, comparison, depth + 1):
                return "both sides squared"
    return None


def _solutions(equations: Sequence[Form]) -> dict[Atom, Form]:
    """Atoms that an equation determines: sqnorm(q) where sqnorm(q) - 1 is 0."""
    values: dict[Atom, Form] = {}
    for equation in equations:
        equation = substitute(equation, values)
        for term, coefficient in equation.terms.items():
            powers, exponent = term
            if exponent or len(powers) != 1 or powers[0][1] != 1 or powers[0][0].kind not in ("variable", "invariant"):
                continue
            atom, rest = powers[0][0], equation - of_atom(powers[0][0]) * coefficient
            if atom not in rest.atoms():
                solved = rest * (-1 / coefficient)
                values = {name: substitute(value, {atom: solved}) for name, value in values.items()} | {atom: solved}
                break
    return values
