"""Statements about vectors that are statements about their entries: q + k >= min(q, k), sum(abs(q)) == sum(max(q, -q)).

Both sides compare entry by entry, or both are sums Σ_i f(x_i) of one function of the entries. Then the claim holds for
every D if and only if it holds for D = 1, where the vectors are numbers.
"""

from dataclasses import dataclass, replace
from fractions import Fraction

from likewise.claims.language.claim import Claim, Compares, Reals, Variable
from likewise.claims.language.parser import nodes
from likewise.claims.language.tree import Binary, Call, Chain, Constant, Name, Negative, Node, Number, children, names
from likewise.claims.verdict import Finding

ELEMENTWISE = frozenset({"abs", "relu", "sqrt", "exp", "log", "sin", "cos", "erf", "sign", "floor"})
TWO = Number(Fraction(2))


class Mixed(Exception):
    """Raised inside where an operation mixes the entries of a vector."""


def same_sides(claim: Claim) -> Finding | None:
    """A comparison of an expression with itself."""
    relation = claim.relation
    if not isinstance(relation, Compares) or not set(relation.chain.comparisons) <= {"==", "<=", ">="}:
        return None
    if len(set(relation.chain.terms)) > 1 or not names(relation.chain.terms[0]):
        return None
    return Finding("holds", "proved", "both sides are the same expression", engine="algebra")


def for_one_entry(claim: Claim) -> tuple[Claim, str] | None:
    r"""The claim with numbers in the place of its vectors, and the name of their length; None if entries are mixed.

    Assumptions about vectors are not used, so that only a proof, or a refutation without such, is one of the claim.

    >>> from likewise.claims.language.parser import parse
    >>> claim, length = for_one_entry(parse("given: q, k in R^D\nassert: sum(max(q, k)) + dot(q, k) >= sum(q + q*k)"))
    >>> print(claim.relation, length)
    max(q, k) + q*k >= q + q*k D
    """
    relation = claim.relation
    if not isinstance(relation, Compares) or relation.within is not None or "!=" in relation.chain.comparisons:
        return None
    used = set().union(*(names(node) for node in nodes(relation)))
    vectors = [
        each for each in claim.variables if isinstance(each.kind, Reals) and each.kind.dims and each.name in used
    ]
    lengths = {each.kind.dims for each in vectors if isinstance(each.kind, Reals)}
    if len(lengths) != 1 or any(each.layout for each in vectors) or "layout" in claim.given_fields:
        return None
    (dims,) = lengths
    if len(dims) != 1 or not isinstance(dims[0], Name):
        return None
    reading = _Reading(frozenset(each.name for each in vectors), dims[0].name)
    for way in (reading.entry, reading.summand):
        try:
            terms = tuple(map(way, relation.chain.terms))
        except Mixed:
            continue
        if way == reading.entry and not any(reading.moves(term) for term in relation.chain.terms):
            continue
        return _with_numbers(claim, Chain(terms, relation.chain.comparisons), reading), reading.length
    return None


def _with_numbers(claim: Claim, chain: Chain, reading: "_Reading") -> Claim:
    """Assumptions about vectors and their length are not used."""
    gone = {*reading.vectors, reading.length}
    gone |= {each.name for each in claim.variables if any(reading.length in names(node) for node in nodes(each.kind))}
    return replace(
        claim,
        relation=Compares(chain),
        assumptions=tuple(
            each for each in claim.assumptions if not gone & set().union(*(names(node) for node in nodes(each)))
        ),
        variables=tuple(
            Variable(each.name, Reals()) if each.name in reading.vectors else each
            for each in claim.variables
            if each.name in reading.vectors or each.name not in gone
        ),
        sizes=tuple(size for size in claim.sizes if size.name != reading.length),
        written="",
        raw=(),
    )


@dataclass(frozen=True)
class _Reading:
    vectors: frozenset[str]
    length: str

    def moves(self, node: Node) -> bool:
        """Whether a vector stands in the expression."""
        return bool(names(node) & self.vectors)

    def entry(self, node: Node) -> Node:
        """One entry of an expression that is computed entry by entry; a number is the same for all."""
        if self.length in names(node) and not self.moves(node):
            match node:
                case Call("ones" | "zeros" as function, (Name(name),)) if name == self.length:
                    return Number(Fraction(function == "ones"))
        match node:
            case Number() | Constant():
                return node
            case Name(name) if name != self.length:
                return node
            case Negative(operand):
                return Negative(self.entry(operand))
            case Binary("+" | "-" | "*" | "/" | "^" as sign, left, right):
                return Binary(sign, self.entry(left), self.entry(right))
            case Call(function, (operand,)) if function in ELEMENTWISE and isinstance(operand, Node):
                return Call(function, (self.entry(operand),))
            case Call("max" | "min" as function, arguments) if len(arguments) > 1:
                return Call(function, tuple(self.entry(part) for part in children(node)))
        raise Mixed

    def summand(self, node: Node) -> Node:
        """f of an expression that is a sum Σ_i f(x_i) over the entries."""
        match node:
            case Number(value) if value == 0:
                return node
            case Name(name) if name == self.length:
                return Number(Fraction(1))
            case Negative(operand):
                return Negative(self.summand(operand))
            case Binary("+" | "-" as sign, left, right):
                return Binary(sign, self.summand(left), self.summand(right))
            case Binary("*", left, right) if not self.moves(left) and self.length not in names(left):
                return Binary("*", self.entry(left), self.summand(right))
            case Binary("*", left, right) if not self.moves(right) and self.length not in names(right):
                return Binary("*", self.summand(left), self.entry(right))
            case Binary("/", left, right) if not self.moves(right) and self.length not in names(right):
                return Binary("/", self.summand(left), self.entry(right))
            case Call("sum", (operand,)) if isinstance(operand, Node) and self.moves(operand):
                return self.entry(operand)
            case Call("dot", (left, right)) | Binary("@", left, right) if isinstance(left, Node):
                assert isinstance(right, Node)
                if self._vector(left) and self._vector(right):
                    return Binary("*", self.entry(left), self.entry(right))
            case Call("sqnorm", (operand,)) if isinstance(operand, Node) and self._vector(operand):
                return Binary("^", self.entry(operand), TWO)
        raise Mixed

    def _vector(self, node: Node) -> bool:
        """Whether an expression that is computed entry by entry has as many entries as there are coordinates."""
        return self.moves(node) or bool(isinstance(node, Call) and node.function in ("ones", "zeros"))
