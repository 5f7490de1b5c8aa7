"""Matrices of which only the entries matter, as vectors: norm(A + B) <= norm(A) + norm(B)."""

from dataclasses import replace

from likewise.claims.language.claim import Claim, Compares, Reals, Size
from likewise.claims.language.expressions import rebuilt
from likewise.claims.language.parser import nodes, over
from likewise.claims.language.tree import Binary, Call, Constant, Name, Negative, Node, Number, children, names
from likewise.claims.reader import ELEMENTWISE


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
