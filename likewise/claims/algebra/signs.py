"""Which signs a value can have, for all values of its variables: a set of -1, 0, 1.

Squares, norms and exponentials, sums and products of what has one sign, and what an assumption says, decide most
inequalities that hold for every size; nothing here is ever guessed, {-1, 0, 1} means that nothing is known.
"""

from collections.abc import Iterable, Mapping
from fractions import Fraction
from itertools import product
from typing import NamedTuple

from likewise.claims.algebra.coordinates import COMPARISONS, plain
from likewise.claims.algebra.elementary import substitute
from likewise.claims.algebra.exponomials import Atom, Form, PositiveName, form, of_key
from likewise.claims.algebra.questions import ZERO, Question, comparisons
from likewise.claims.language.claim import Between, Integers, OneOf
from likewise.claims.language.tree import (
    Binary,
    Call,
    Comparison,
    Constant,
    Index,
    Join,
    Name,
    Negative,
    Node,
    Number,
    Text,
    Transpose,
    children,
)
from likewise.claims.verdict import Undecided

Signs = frozenset[int]
ANY: Signs = frozenset({-1, 0, 1})
POSITIVE, NOT_NEGATIVE = frozenset({1}), frozenset({0, 1})


def of_number(value: Fraction | int) -> Signs:
    """The sign of a number."""
    return frozenset({(value > 0) - (value < 0)})


def plus(left: Signs, right: Signs) -> Signs:
    """The signs of a sum; of -1 and 1 it is anything."""
    found: set[int] = set()
    for a, b in product(left, right):
        found |= ANY if a * b < 0 else {a or b}
    return frozenset(found)


def times(left: Signs, right: Signs) -> Signs:
    """The signs of a product."""
    return frozenset(a * b for a, b in product(left, right))


def square(signs: Signs) -> Signs:
    """The signs of x·x."""
    return frozenset(a * a for a in signs)


def summed(signs: Signs) -> Signs:
    """The signs of a sum of one or more such terms."""
    return plus(signs, signs)


def raised(base: Signs, exponent: Fraction) -> Signs:
    """The signs of a power where it is defined."""
    if exponent == 0:
        return POSITIVE
    base = base - {0} if exponent < 0 else base
    if exponent.denominator > 1:
        return base & NOT_NEGATIVE
    return square(base) if exponent.numerator % 2 == 0 else base


def largest(parts: Iterable[Signs]) -> Signs:
    """The signs of the largest of several."""
    return frozenset(map(max, product(*parts)))


def allowed(comparison: Comparison) -> Signs:
    """The signs of left - right that a comparison accepts."""
    return frozenset(sign for sign in ANY if COMPARISONS[comparison](sign))


def of_names(question: Question) -> dict[str, Signs]:
    """The signs of variables, of every entry if they are arrays, by their domains and by assumptions."""
    found: dict[str, Signs] = dict.fromkeys(question.sizes, POSITIVE)
    for each in question.variables:
        match each.kind:
            case Between(lowest, highest) | Integers(int(lowest), int(highest)):
                ends = {of_number(lowest), of_number(highest)} | ({of_number(0)} if lowest <= 0 <= highest else set())
                found[each.name] = frozenset().union(*ends)
            case OneOf(values):
                found[each.name] = frozenset().union(*map(of_number, values))
            case _:
                found[each.name] = ANY
    for left, comparison, right in comparisons(question.assumptions):
        match left:
            case Call("min", (Name() as entries,)) if comparison in (">", ">="):
                left = entries  # what the least entry is above, every entry is
            case Call("max", (Name() as entries,)) if comparison in ("<", "<="):
                left = entries
        if isinstance(left, Name) and isinstance(right, Number) and left.name in found:
            array = any(each.name == left.name and question.dims(each) for each in question.variables)
            if comparison != "!=" or not array:  # of an array it only says that some entry differs
                found[left.name] &= _beyond(comparison, right.value)
    return found


def _beyond(comparison: Comparison, bound: Fraction) -> Signs:
    """The signs of x where x compares so with a number."""
    points = (Fraction(-1) - abs(bound), bound - 1, bound, bound + 1, Fraction(1) + abs(bound), Fraction(0), bound / 2)
    return frozenset((x > 0) - (x < 0) for x in points if COMPARISONS[comparison]((x > bound) - (x < bound)))


def of_assumptions(question: Question) -> dict[Node, Signs]:
    """The signs of left - right, and of left where right is 0; of arrays `!=` says nothing about an entry."""
    found: dict[Node, Signs] = {}
    for left, comparison, right in comparisons(question.assumptions):
        if comparison != "!=":
            node = left if right == ZERO else Binary("-", left, right)
            found[node] = found.get(node, ANY) & allowed(comparison)
    return found


class Expressions(NamedTuple):
    """Signs of expressions from the signs of names, for every size at once."""

    names: Mapping[str, Signs]
    known: Mapping[Node, Signs]  # what assumptions say of whole expressions

    def of(self, node: Node) -> Signs:
        """The signs of every entry."""
        found = self._of(node) & self.known.get(node, ANY)
        if not found:
            raise Undecided(f"{node} is nowhere defined")
        return found

    def _of(self, node: Node) -> Signs:
        match node:
            case Number(value):
                return of_number(value)
            case Constant():
                return POSITIVE
            case Name(name):
                return self.names.get(name, ANY)
            case Negative(operand):
                return times(of_number(-1), self.of(operand))
            case Transpose(operand) | Index(operand, _):
                return self.of(operand)
            case Join(parts):
                return frozenset().union(*map(self.of, parts))
            case Binary("+", left, right):
                return plus(self.of(left), self.of(right))
            case Binary("-", left, right):
                return plus(self.of(left), times(of_number(-1), self.of(right)))
            case Binary("*", left, right):
                return square(self.of(left)) if left == right else times(self.of(left), self.of(right))
            case Binary("/", left, right):
                return times(self.of(left), self.of(right) - {0})
            case Binary("@", left, right):
                return summed(times(self.of(left), self.of(right))) | _of_nothing(node)
            case Binary("^", left, Number(value)):
                return raised(self.of(left), value)
            case Binary("^", left, _):
                return self.of(left) if self.of(left) <= POSITIVE else ANY
            case Call(function, arguments):
                return self.call(function, [part for part in arguments if not isinstance(part, Text)])
        return ANY

    def call(self, function: str, arguments: list[Node]) -> Signs:
        given = [self.of(part) for part in arguments]
        nothing = frozenset().union(*map(_of_nothing, arguments))
        match function:
            case "exp" | "softmax":
                return POSITIVE
            case "ones":
                return POSITIVE
            case "dim":
                return POSITIVE | nothing
            case "sqnorm" | "norm":
                return square(given[0]) | nothing
            case "dot":
                same = arguments[0] == arguments[1]
                return summed(square(given[0]) if same else times(*given)) | nothing
            case "outer" | "einsum":
                return summed(_product(given)) | nothing
            case "sum" | "mean" | "tr":
                return summed(given[0]) | nothing
            case "max":
                return largest(given)
            case "min":
                return times(of_number(-1), largest(times(of_number(-1), each) for each in given))
            case "relu":
                return largest([given[0], of_number(0)])
            case "erf" | "sign":
                return given[0]
            case "factorial" | "argmax":
                return POSITIVE
            case "abs":
                return square(given[0])
            case "sqrt":
                return given[0] & NOT_NEGATIVE
            case "vec":
                return given[0]
            case "pairs":
                return times(given[0], given[0])
            case "I":
                return NOT_NEGATIVE  # but choose(n, k) is a polynomial in n, below 0 for some n
            case "zeros":
                return of_number(0)
        return ANY


def _of_nothing(node: Node) -> Signs:
    """{0} where an array may have no entries, for their sum is then 0: one coordinate has no pairs."""
    filled = (
        isinstance(node, Call)
        and node.function in ("ones", "zeros")
        and not all(isinstance(part, Name) for part in node.arguments)
    )
    mine = filled or (isinstance(node, Call) and node.function == "pairs")
    return of_number(0) if mine else frozenset().union(*map(_of_nothing, children(node)))


def _product(parts: Iterable[Signs]) -> Signs:
    found: Signs = POSITIVE
    for part in parts:
        found = times(found, part)
    return found


class Facts(NamedTuple):
    """Signs of forms: what assumptions say of whole forms, and of the atoms by name."""

    names: Mapping[str, Signs]
    forms: tuple[tuple[Form, Signs], ...] = ()

    def of(self, value: Form) -> Signs:
        """The signs of a form: term by term, and as a multiple of an assumption plus the rest.

        >>> from likewise.claims.algebra.exponomials import variable
        >>> x, y = variable("x"), variable("y")
        >>> sorted(Facts({}, ((x - y, POSITIVE),)).of(2 * x - 2 * y + x * x))
        [1]
        """
        found = self.by_terms(value)
        for known, signs in self.forms:
            for term, coefficient in known.terms.items():
                if term in value.terms:
                    ratio = value.terms[term] / coefficient
                    found &= plus(times(of_number(ratio), signs), self.by_terms(value - known * ratio))
        return found

    def by_terms(self, value: Form) -> Signs:
        """The signs of the sum, from the signs of its terms."""
        total: Signs = of_number(0)
        for (powers, exponent), coefficient in value.terms.items():
            signs = of_number(coefficient) if of_key(exponent).is_real else ANY
            for atom, e in powers:
                signs = times(signs, raised(self.of_atom(atom), Fraction(e)))
            total = plus(total, signs)
        return total

    def of_atom(self, atom: Atom) -> Signs:
        """The signs of an atom."""
        if atom.positive:
            return POSITIVE
        inner = [self.by_terms(of_key(part)) for part in atom.parts]
        match atom.kind:
            case "variable":
                return self.names.get(atom.name, ANY)
            case "power":
                return inner[0]
            case "invariant":
                return plus(self._entry(atom), self._entry(atom))
            case "function" if atom.name == "max":
                return largest(inner)
        return ANY

    def _entry(self, atom: Atom) -> Signs:
        """The signs of one summand x_i·y_i··· of an invariant."""
        signs: Signs = POSITIVE
        for name in set(atom.names):
            mine = POSITIVE if isinstance(name, PositiveName) else self.names.get(name, ANY)
            signs = times(signs, square(mine) if atom.names.count(name) % 2 == 0 else mine)
        return signs

    def settled(self, value: Form) -> Form:
        """The form with every max decided that the facts decide."""
        for atom in sorted(value.atoms()):
            if atom.kind != "function" or atom.name != "max":
                continue
            parts = [self.settled(of_key(part)) for part in atom.parts]
            for part in parts:
                if all(self.of(part - other) <= NOT_NEGATIVE for other in parts):
                    return self.settled(substitute(value, {atom: plain(part)}))
        return value


def facts(question: Question, forms: Iterable[tuple[Form, Comparison]]) -> Facts:
    """What the question assumes, given the forms left - right of its assumptions."""
    known = tuple((value, allowed(comparison)) for value, comparison in forms if form(value).terms)
    return Facts(of_names(question), known)
