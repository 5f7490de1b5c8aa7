"""Random names without a law, of which a statement about E and Var needs no more than mean and variance."""

from collections.abc import Iterator

from likewise.reading.expressions import Node, rewritten
from likewise.reading.scope import Scope


def random_names(scope: Scope, left: Node, right: Node) -> set[str]:
    """Random names of which nothing but mean and variance matters: E and Var of sums of their multiples.

    Random is what stands alone in E or Var somewhere: X in Var(aX + b) = a^2 Var(X), but neither a nor b.
    """
    chances = [part for side in (left, right) for part in side.walk() if part.kind in ("E", "Var")]
    flat = [_numbered(_flat(part.parts[0])) for part in chances]
    random = {part.text for part in flat if part.kind == "name"}
    outside = [_numbered(part) for side in (left, right) for part in _outside_chance(side)]
    whole = {part.text for part in outside if part.kind in ("name", "index")}
    sides = all(any(part.kind in ("E", "Var") for part in side.walk()) for side in (left, right))
    plain = sides and all(_linear(part, random) for part in flat)
    return {name for name in random - whole if name not in scope.heads} if plain else set()


def _flat(node: Node) -> Node:
    while node.kind == "group":
        node = node.parts[0]
    return node


def _numbered(node: Node) -> Node:
    """The side with `p_1` as one name."""

    def named(part: Node) -> Node | None:
        plain = part.kind == "index" and len(part.parts) == 2 and part.parts[1].kind == "number"
        return Node("name", text=f"{part.text}_{part.parts[1].text}") if plain else None

    return rewritten(node, named)


def _outside_chance(node: Node) -> Iterator[Node]:
    if node.kind in ("E", "Var"):
        return
    yield node
    for part in node.parts:
        yield from _outside_chance(part)


def _linear(node: Node, random: set[str]) -> bool:
    """Whether random names are only added and multiplied by others."""
    if not node.names & random or node.kind == "name":
        return True
    if node.kind in ("+", "-", "group", "neg"):
        return all(_linear(part, random) for part in node.parts)
    if node.kind == "/":
        return not node.parts[1].names & random and _linear(node.parts[0], random)
    if node.kind == "product":
        return sum(bool(part.names & random) for part in node.parts) == 1 and all(
            _linear(part, random) for part in node.parts
        )
    return False
