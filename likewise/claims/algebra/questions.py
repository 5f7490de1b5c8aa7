"""What a claim asks, ready for the exact engines: equations are solved, tolerances spelled out, names given values."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from random import Random

from likewise.claims import arrays
from likewise.claims.algebra.coordinates import Coordinates
from likewise.claims.algebra.exponomials import Form, size, variable
from likewise.claims.algebra.invariants import Invariants, named
from likewise.claims.arrays import Array
from likewise.claims.language.claim import Between, Claim, Compares, Integers, OneOf, Reals, Variable
from likewise.claims.language.expressions import QUANTITIES, rebuilt
from likewise.claims.language.limits import NODES
from likewise.claims.language.parser import nodes, over
from likewise.claims.language.tree import (
    Binary,
    Call,
    Chain,
    Comparison,
    Index,
    Join,
    Moment,
    Name,
    Negative,
    Node,
    Number,
    Probability,
    Text,
    Transpose,
    children,
    names,
)
from likewise.claims.verdict import Undecided

ZERO = Number(Fraction(0))
FLIPPED: dict[Comparison, Comparison] = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}


@dataclass(frozen=True)
class Question:
    """Is `chain` true for all free variables and sizes under the assumptions? `solved` names follow from the others."""

    claim: Claim
    chain: Chain
    assumptions: tuple[Chain, ...]
    variables: tuple[Variable, ...]
    sizes: tuple[str, ...]
    solved: tuple[tuple[str, Node], ...] = ()
    lying: bool = False  # vectors are rows or columns, because one is transposed

    def dims(self, each: Variable) -> tuple[Node, ...]:
        """The lengths of the axes of a variable."""
        dims = each.kind.dims if isinstance(each.kind, Reals) else ()
        if len(dims) != 1 or not (self.lying or each.layout):
            return dims
        column = each.layout == "col" if each.layout else self.claim.layout == "columns"
        one = Number(Fraction(1))
        return (*dims, one) if column else (one, *dims)

    def positive(self) -> frozenset[str]:
        """Variables that are above 0 by their domain or by an assumption."""
        found = {each.name for each in self.variables if _lowest(each) > 0}
        for left, comparison, right in comparisons(self.assumptions):
            if isinstance(left, Name) and isinstance(right, Number):
                above = right.value > 0 if comparison == ">=" else right.value >= 0
                found |= {left.name} if comparison in (">", ">=") and above else set()
        return frozenset(found)

    def symbols(self, lengths: Mapping[str, int], *, keep_sizes: bool = False) -> Coordinates:
        """Every variable as an array of symbols; `keep_sizes`: a size inside a formula stays a symbol too."""
        at, positive = Coordinates({}, lengths), self.positive()
        values = {name: arrays.scalar(size(name) if keep_sizes else Fraction(lengths[name])) for name in self.sizes}
        for each in self.variables:
            shape = tuple(at.whole(dim) for dim in self.dims(each))
            values[each.name] = arrays.filled(shape, lambda place, each=each: _symbol(each, place, positive))
        return Coordinates(values, lengths)

    def invariants(self) -> Invariants:
        """Every variable for every size at once; matrices have a shape but no value."""
        values = {name: arrays.scalar(size(name)) for name in self.sizes}
        lengths, positive = Invariants(values), self.positive()
        shapes: dict[str, tuple[Form, ...]] = dict.fromkeys(self.sizes, ())
        for each in self.variables:
            shapes[each.name] = tuple(lengths.scalar(dim) for dim in self.dims(each))
            if not shapes[each.name]:
                values[each.name] = arrays.scalar(variable(each.name, positive=each.name in positive))
            elif len(shapes[each.name]) == 1:
                values[each.name] = arrays.scalar(named(each.name, shapes[each.name][0]))
        return Invariants(values, shapes=shapes)

    def drawn(self, lengths: Mapping[str, int], draws: Random) -> dict[str, Array]:
        """A random value of every variable."""
        at, values = Coordinates({}, lengths), {}
        for each in self.variables:
            shape = tuple(at.whole(dim) for dim in self.dims(each))
            values[each.name] = arrays.filled(shape, lambda _, each=each: _random(each, draws))
        return values

    def complete(self, values: Mapping[str, Array], lengths: Mapping[str, int]) -> Coordinates:
        """A point, with the names that were solved for; sizes are sizes again, also where equations gave them."""
        full: dict[str, Array] = {name: arrays.scalar(Fraction(value)) for name, value in lengths.items()}
        full |= values
        for name, node in self.solved:
            full[name] = Coordinates(full, lengths).evaluate(node)
        return Coordinates(full, lengths)


def _symbol(each: Variable, place: tuple[int, ...], positive: frozenset[str]) -> Form:
    return variable(each.name, *(i + 1 for i in place), positive=each.name in positive)


def _random(each: Variable, draws: Random) -> Fraction:
    match each.kind:
        case Between(lowest, highest):
            return lowest + (highest - lowest) * Fraction(draws.randint(0, 64), 64)
        case OneOf(values):
            return draws.choice(values)
        case Integers(lowest, highest):
            return Fraction(draws.randint(-9 if lowest is None else lowest, 9 if highest is None else highest))
    return Fraction(draws.randint(-64, 64), 16)


def _lowest(each: Variable) -> Fraction | int:
    match each.kind:
        case Between(lowest, _):
            return lowest
        case OneOf(values):
            return min(values)
        case Integers(int(lowest), _):
            return lowest
    return -1


def _number(node: Node) -> Node:
    return Number(-node.operand.value) if isinstance(node, Negative) and isinstance(node.operand, Number) else node


def comparisons(chains: tuple[Chain, ...]) -> Iterator[tuple[Node, Comparison, Node]]:
    """Every single comparison, read from both sides; -1 is a number here."""
    for chain in chains:
        terms = [_number(term) for term in chain.terms]
        for left, comparison, right in zip(terms, chain.comparisons, terms[1:], strict=False):
            yield left, comparison, right
            yield right, FLIPPED[comparison], left


def question(claim: Claim) -> Question | None:
    """What is asked, if it is a comparison of expressions over variables and sizes without chance."""
    if not isinstance(claim.relation, Compares) or claim.program or claim.source:
        return None
    used = [node for part in (claim.relation, *claim.assumptions) for node in nodes(part)]
    free = {each.name for each in claim.variables if not each.random} | {each.name for each in claim.sizes}
    if any(_foreign(node) for node in used) or not set().union(*map(names, used)) <= free:
        return None
    return quantified(claim, claim.relation)


def quantified(claim: Claim, relation: Compares) -> Question:
    """The same without looking into the terms: what is random is left to whoever asks."""
    variables = tuple(each for each in claim.variables if not each.random)
    asked = Question(claim, _spelled(relation), claim.assumptions, variables, tuple(s.name for s in claim.sizes))
    for each in claim.sizes:
        if each.equation is not None:
            asked = _solve(asked, each.name, each.equation)
    asked = _relevant(_solved(asked))
    ranks = {each.name: len(each.kind.dims) for each in asked.variables if isinstance(each.kind, Reals)}
    terms = [term for chain in (asked.chain, *asked.assumptions) for term in chain.terms]
    return replace(asked, lying="layout" in claim.given_fields or any(_turns_a_vector(term, ranks) for term in terms))


def _relevant(asked: Question) -> Question:
    """Without variables and sizes that nothing depends on, which a search would try in vain."""
    random = [each.kind for each in asked.claim.variables if each.random]
    parts = [asked.chain, *asked.assumptions, *random]
    used = set().union(*(names(node) for part in parts for node in nodes(part)), *(names(n) for _, n in asked.solved))
    variables = tuple(each for each in asked.variables if each.name in used)
    used |= set().union(*(names(dim) for each in variables for dim in asked.dims(each)))
    return replace(asked, variables=variables, sizes=tuple(name for name in asked.sizes if name in used))


def _foreign(node: Node) -> bool:
    mine = isinstance(node, Moment | Probability) or (isinstance(node, Call) and node.function in QUANTITIES)
    return mine or any(map(_foreign, children(node)))


def _spelled(relation: Compares) -> Chain:
    """a == b within t is |a - b| <= t, or <= t·|b|."""
    chain, within = relation.chain, relation.within
    if within is None:
        return chain
    if chain.comparisons != ("==",):
        raise Undecided("within belongs to one ==")
    left, right = chain.terms
    bound = Number(within.value)
    least = Binary("*", bound, Call("abs", (right,))) if within.relative else bound
    return Chain((Call("abs", (Binary("-", left, right),)), least), ("<=",))


def _solved(asked: Question) -> Question:
    """Assumptions that say what a name is are used up, one after the other."""
    for chain in asked.assumptions:
        if len(chain.comparisons) != 1:
            continue
        for left, comparison, right in comparisons((chain,)):
            if comparison == "==" and isinstance(left, Name) and _gives(asked, left.name, right):
                rest = tuple(each for each in asked.assumptions if each is not chain)
                return _solved(_solve(replace(asked, assumptions=rest), left.name, right))
    return asked


def _gives(asked: Question, name: str, value: Node) -> bool:
    """Whether name == value says what the name is: not if it says that all entries of a vector are one number."""
    dims = {each.name: asked.dims(each) for each in asked.variables}
    rank = _rank(value, {each: len(axes) for each, axes in dims.items()})
    arrays = {dims[each] for each in names(value) & dims.keys() if dims[each]}
    return name not in names(value) and (rank == 0 or arrays == {dims.get(name, ())})


def _solve(asked: Question, name: str, value: Node) -> Question:
    """The name replaced by its value everywhere."""
    each = next((variable for variable in asked.variables if variable.name == name), None)
    dims = asked.dims(each) if each else ()
    if dims and not names(value) & {other.name for other in asked.variables if asked.dims(other)}:
        zeros = Call("zeros", dims)
        value = zeros if value == ZERO else Binary("*", value, Call("ones", dims))

    def put(node: Node) -> Node:
        return put_in(node, {name: value})

    return replace(
        asked,
        chain=over(asked.chain, put),
        assumptions=tuple(over(chain, put) for chain in asked.assumptions),
        variables=tuple(replace(other, kind=over(other.kind, put)) for other in asked.variables if other.name != name),
        sizes=tuple(other for other in asked.sizes if other != name),
        solved=(*((other, put(node)) for other, node in asked.solved), (name, value)),
    )


def put_in(node: Node, values: Mapping[str, Node]) -> Node:
    """The node with names replaced, unless it would grow beyond its bound."""
    if _count(node, {name: _count(value, {}) for name, value in values.items()}) > NODES:
        raise Undecided(f"more than {NODES} parts when equations are put in")

    def replaced(inner: Node) -> Node:
        return values.get(inner.name, inner) if isinstance(inner, Name) else rebuilt(inner, replaced)

    return replaced(node)


def _count(node: Node, grown: Mapping[str, int]) -> int:
    if isinstance(node, Name):
        return grown.get(node.name, 1)
    return 1 + sum(_count(child, grown) for child in children(node))


def _turns_a_vector(node: Node, ranks: Mapping[str, int]) -> bool:
    mine = isinstance(node, Transpose) and _rank(node.operand, ranks) == 1
    return mine or any(_turns_a_vector(child, ranks) for child in children(node))


def _rank(node: Node, ranks: Mapping[str, int]) -> int:
    """How many axes an expression has."""
    match node:
        case Name(name):
            return ranks.get(name, 0)
        case Negative(operand) | Transpose(operand):
            return _rank(operand, ranks)
        case Binary("@", left, right):
            return max(_rank(left, ranks) + _rank(right, ranks) - 2, 0)
        case Binary(_, left, right):
            return max(_rank(left, ranks), _rank(right, ranks))
        case Index(operand, indices):
            return max(_rank(operand, ranks) - len(indices), 0)
        case Join():
            return 1
        case Call("einsum", (Text(subscripts), *_)):
            return len(subscripts.partition("->")[2].strip())
        case Call(function, arguments):
            fixed = {"I": 2, "outer": 2, "vec": 1, "pairs": 1}
            fixed |= dict.fromkeys(("dot", "sqnorm", "norm", "sum", "mean", "tr", "dim", "choose"), 0)
            if function in ("ones", "zeros"):
                return len(arguments)
            inner = [_rank(part, ranks) for part in arguments if not isinstance(part, Text)]
            reduces = function in ("max", "min") and len(inner) == 1
            return fixed.get(function, 0 if reduces else max(inner, default=0))
    return 0
