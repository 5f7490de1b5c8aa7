"""Conditions under which sizes are the same: D = d, M = N, D = K = V, d = h*k."""

import itertools
from collections.abc import Iterator, Mapping, Sequence

from likewise.grading.given import name_of
from likewise.grading.numbers import free_names
from likewise.grading.outcomes import World
from likewise.grading.showing import shown
from likewise.reading.expressions import Node

SIZE_LETTERS = {*"dDnNmMhHrR"}  # with an index they are still sizes: d_k
COST_LETTERS = {*"bBcCdDfFgGhHkKlLmMnNpPqQrRsStTvVwW"}  # of a formula that counts operations or parameters
COST_KINDS = {"number", "name", "index", "+", "product", "/", "^", "group"}
TRIES = 80
Pair = tuple[Node, Node]


def same_sizes(one: Node, other: Node, world: World, *, sizes: bool = False) -> Iterator[tuple[str, Node, Node]]:
    """Conditions that make names the same, each with both expressions under it, the simplest first.

    Always: names that differ in case (D = d), and sizes that differ in their index (d_k = d_v, d_k = d). Where `sizes`:
    sizes that only one side has are other ones (M = N; D = K = V), or one size is a product (d = h*k).
    """
    symbols = [_symbols(node) for node in (one, other)]
    only = [sorted(symbols[0] - symbols[1], key=shown), sorted(symbols[1] - symbols[0], key=shown)]
    alike = [(left, right) for left in only[0] for right in only[1] if shown(left).lower() == shown(right).lower()]
    same_base = [
        (left, right)
        for left, right in itertools.product(only[0], only[1])
        if _base(left) == _base(right) and _base(left) in SIZE_LETTERS
    ]
    free: list[Pair] = []
    if sizes:
        for place in (0, 1):
            free += [(mine, its) for mine in only[place] for its in sorted(symbols[1 - place], key=shown)]
    single = dict.fromkeys([*same_base, *free])
    tries: list[Sequence[Pair]] = [alike] if alike else []
    tries += [(pair,) for pair in single]
    tries += [(*alike, pair) for pair in single] if alike else []
    tries += itertools.combinations(dict.fromkeys([*alike, *single]), 2)
    seen = set()
    for pairs in tries[:TRIES]:
        if any({shown(left), shown(right)} <= world.given.declared for left, right in pairs):
            continue
        groups = _groups(pairs)
        said = " and ".join(sorted(" = ".join(map(shown, group)) for group in groups))
        if said not in seen:
            seen.add(said)
            values = {name: group[0] for group in groups for name in group[1:]}
            yield said, replaced(one, values), replaced(other, values)
    if sizes:
        yield from _products(one, other, only, symbols)


def _products(
    one: Node, other: Node, only: list[list[Node]], symbols: list[set[Node]]
) -> Iterator[tuple[str, Node, Node]]:
    for place in (0, 1):
        for factors in itertools.combinations(only[place][:4], 2):
            for whole in sorted(symbols[1 - place], key=shown)[:4]:
                values = {whole: Node("group", (Node("product", factors, joined=("",)),))}
                said = f"{shown(whole)} = {'*'.join(map(shown, factors))}"
                yield said, replaced(one, values), replaced(other, values)
        if any(part.kind == "/" for part in (one, other)[1 - place].walk()):  # d_k beside D/H
            for mine in only[place][:4]:
                for whole, its in itertools.permutations(sorted(only[1 - place], key=shown)[:4], 2):
                    product = Node("group", (Node("product", (its, mine), joined=("",)),))
                    said = f"{shown(whole)} = {shown(its)}*{shown(mine)}"
                    yield said, replaced(one, {whole: product}), replaced(other, {whole: product})


def _groups(pairs: Sequence[Pair]) -> list[list[Node]]:
    """The names that pairs make one, each group in order."""
    groups: list[set[Node]] = []
    for pair in pairs:
        joined = {*pair}
        apart = []
        for group in groups:
            if group & joined:
                joined |= group
            else:
                apart.append(group)
        groups = [*apart, joined]
    return [sorted(group, key=shown) for group in groups]


def counts_sizes(one: Node, other: Node) -> bool:
    """Whether both are formulas of a cost or a number of parameters: sums of products of three sizes or more."""
    nodes = [node for tree in (one, other) for node in tree.walk()]
    names = {_base(node) for node in nodes if node.kind in ("name", "index")}
    symbols = _symbols(one) | _symbols(other)
    return {node.kind for node in nodes} <= COST_KINDS and names <= COST_LETTERS and len(symbols) > 2


def _symbols(node: Node) -> set[Node]:
    """Free names, and sizes with a letter as index: d_k."""
    found = {part for part in node.walk() if part.kind == "index" and part.text in SIZE_LETTERS}
    found = {part for part in found if len(part.parts) == 1 and name_of(part.parts[0]) not in ("", "i", "i_", "j")}
    inside = {name_of(part.parts[0]) for part in found}
    return found | {Node("name", text=name) for name in free_names(node) - inside}


def _base(node: Node) -> str:
    return node.text.split("_")[0]


def replaced(node: Node, values: Mapping[Node, Node]) -> Node:
    """The tree with other trees in place of names and indexed names."""
    if node in values:
        return values[node]
    if node.kind in ("sum", "prod", "sum_over", "prod_over"):  # its index is another name
        values = {old: new for old, new in values.items() if old != node.parts[0]}
        rest = tuple(replaced(part, values) for part in node.parts[1:])
        return Node(node.kind, (node.parts[0], *rest), node.text, node.joined)
    return Node(node.kind, tuple(replaced(part, values) for part in node.parts), node.text, node.joined)
