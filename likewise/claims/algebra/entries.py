"""Statements about vectors that are statements about their entries: q + k >= min(q, k), sum(abs(q)) == sum(max(q, -q)).

Both sides compare entry by entry, or both are sums Σ_i f(x_i) of one function of the entries. Then the claim holds for
every D if and only if it holds for D = 1, where the vectors are numbers.
"""

from dataclasses import dataclass, replace
from fractions import Fraction

from likewise.claims.language.claim import Claim, Compares, Reals, Size, Variable
from likewise.claims.language.expressions import rebuilt
from likewise.claims.language.parser import nodes, over
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


def as_vectors(claim: Claim) -> Claim | None:
    r"""The claim with vectors in the place of its matrices, where only their entries matter; None elsewhere.

    A vector of N*D entries is any vector, so a proof for vectors of every length is one for all matrices.

    >>> from likewise.claims.language.parser import parse
    >>> print(as_vectors(parse("given: A, B in R^(N, D)\nassert: norm(A + B) <= norm(A) + norm(B)")).variables[0])
    A in R^entries'
    """
    if not isinstance(claim.relation, Compares) or "layout" in claim.given_fields:
        return None
    matrices = [each for each in claim.variables if isinstance(each.kind, Reals) and len(each.kind.dims) == 2]
    shapes = {each.kind.dims for each in matrices if isinstance(each.kind, Reals)}
    if len(shapes) != 1 or any(each.random for each in claim.variables):
        return None
    (dims,) = shapes
    axes = {name for dim in dims for name in names(dim)}
    if (
        not all(isinstance(dim, Name) for dim in dims)
        or dims[0] == dims[1]
        or any(each.equation for each in claim.sizes)
    ):
        return None
    if any(axes & names(node) for each in claim.variables if each not in matrices for node in nodes(each.kind)):
        return None
    length, known = "entries'", frozenset(each.name for each in matrices)
    count = [Binary("*", *pair) for pair in (dims, dims[::-1])]

    def change(node: Node) -> Node:
        return Name(length) if node in count else rebuilt(node, change)

    relation = over(claim.relation, change)
    assumptions = tuple(over(chain, change) for chain in claim.assumptions)
    stated = [*nodes(relation), *(node for chain in assumptions for node in nodes(chain))]
    if any(axes & names(node) for node in stated) or any(_flat(node, known) is None for node in stated):
        return None
    variables = tuple(
        replace(each, kind=Reals((Name(length),))) if each in matrices else each for each in claim.variables
    )
    sizes = (*(each for each in claim.sizes if each.name not in axes), Size(length, None))
    return replace(
        claim, relation=relation, assumptions=assumptions, variables=variables, sizes=sizes, written="", raw=()
    )


def _flat(node: Node, matrices: frozenset[str]) -> bool | None:
    """Whether a node is an array as its matrices are, of which only entries matter; None where more than that does."""
    parts = [_flat(child, matrices) for child in children(node)]
    if None in parts:
        return None
    match node:
        case Name(name):
            return name in matrices
        case Number() | Constant():
            return False
        case Negative() | Binary("+" | "-" | "*" | "/", _, _):
            return any(parts)
        case Binary("^", _, _):
            return parts[0] if not parts[1] else None
        case Call("sqnorm" | "norm" | "sum" | "mean" | "dim", _):
            return False
        case Call("dot", _):
            return False if all(parts) else None
        case Call("max" | "min", arguments):
            return False if len(arguments) == 1 else any(parts)
        case Call(function, _) if function in ELEMENTWISE:
            return parts[0]
    return None if any(parts) or not isinstance(node, Call) else False
