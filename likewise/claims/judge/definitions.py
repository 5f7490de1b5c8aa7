"""Definitions as the judge reads them: a body sees its own parameters and the claim's names, nothing of its caller."""

from likewise.claims.language.claim import Claim, Definition
from likewise.claims.language.expressions import QUANTITIES, rebuilt
from likewise.claims.language.parser import over
from likewise.claims.language.tree import Call, Gradient, Name, Node, Text, names


def same_definitions(claim: Claim) -> bool:
    """Whether the claim, as the parser put its definitions in, is the claim that the judge reads."""
    if not claim.raw:
        return True
    known = {each.name: each for each in claim.definitions}
    mine = tuple(over(part, lambda node: _read(node, {}, known)) for part in claim.raw)
    return mine == (claim.relation, *claim.assumptions, *(each.kind for each in claim.variables))


def _read(node: Node, bound: dict[str, Node], known: dict[str, Definition]) -> Node:
    if isinstance(node, Name):
        if node.name in bound:
            return bound[node.name]
        return _read(known[node.name].body, {}, known) if node.name in known else node
    if isinstance(node, Call) and node.function in known:
        arguments = [_read(part, bound, known) for part in node.arguments if not isinstance(part, Text)]
        definition = known[node.function]
        return _read(definition.body, dict(zip(definition.parameters, arguments, strict=True)), known)
    if isinstance(node, Call) and node.function == "grad":
        body, by = node.arguments[0], node.arguments[1]
        argument = bound.get(by.name) if isinstance(by, Name) else None
        if argument is not None and isinstance(by, Name) and isinstance(body, Node):
            around = set().union(*map(names, bound.values()))
            fresh = next(name for n in range(1, len(around) + 2) if (name := by.name + n * "'") not in around)
            inside = _read(body, {**bound, by.name: Name(fresh)}, known)
            if not isinstance(argument, Name) or argument.name in names(inside):
                return Gradient(fresh, inside, argument)
    if isinstance(node, Call) and len(node.arguments) == 1 and node.function in QUANTITIES:
        return node
    return rebuilt(node, lambda part: _read(part, bound, known))
