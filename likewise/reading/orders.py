"""Orders of growth: sums and simplifications of O(..), and costs of programs."""

import re

from likewise.reading.costs import Text, renamed, subject
from likewise.reading.costs import claim as program_claim
from likewise.reading.expressions import Node, rewritten
from likewise.reading.latex import Unread
from likewise.reading.link import Reading
from likewise.reading.scope import Binding, Fact, Scope, flat_names, is_polynomial
from likewise.reading.statements import Said, role_of


def order_of(said: Said, scope: Scope, place: int, left: Node, right: Node) -> Reading:
    r"""O(a) + O(b) = O(c): the sum of the left ones grows no faster than the right one."""
    if right.kind != "order":
        raise Unread("an order on the left of something else")
    if said.formula.line in scope.programs and left.kind in ("name", "index", "call"):
        return costs(scope.programs[said.formula.line], right, said.formula.line, place)
    ordered = any(part.kind == "order" for part in left.walk())
    if (
        not ordered
        and left.kind in ("name", "index", "call")
        and not any(
            fact.relation == "==" and fact.left == left for fact in facts_about(scope, said, flat_names(left))[0]
        )
    ):
        raise Unread("which program?")
    return grows(said, scope, place, left, right.parts[0], right.text)


def costed(said: Said, scope: Scope) -> Reading | None:
    """A bare order, `O(N^2 D)`, as a claim about the program whose cost it gives; nothing if that is not said."""
    order = said.nodes[0] if said.nodes else None
    if not isinstance(order, Node) or order.kind != "order" or said.hedged:
        return None
    if role_of(said.formula, ["=="]) in ("hypothesis", "question", "requirement"):
        return None
    if said.formula.line in scope.programs:
        return costs(scope.programs[said.formula.line], order, said.formula.line)
    found = subject(said, Text(scope.lines, scope.turns))
    if found is None:
        return None
    program, kind, line = found
    names: set[str] = set()
    more: set[str] = set()
    try:
        text = polynomial(order.parts[0], names)
        facts, open_ = facts_about(scope, said, names)
        assumed = [
            f"{polynomial(fact.left, more)} {fact.relation} {polynomial(fact.right, more)}"
            for fact in facts
            if fact.relation != "==" or flat_names(fact.left) <= names or len(flat_names(fact.left)) > 1
        ]
    except Unread:
        return None
    told = scope.sizes.keys() | _letters_of(scope, said)
    if any(program.letters.get(name, name) in told - {name} for name in names):
        return None  # d beside D is another size
    claim = program_claim(program, (kind, order.text, text), sorted(names))
    if claim is None:
        return None
    known = [fact for fact in assumed if set(re.findall(r"[A-Za-z]\w*", fact)) <= names]
    if len(known) < len(assumed):
        open_ = [*open_, "what is said about other sizes was left out"]
    if known:
        above, _, below = claim.rpartition("\n")
        claim = f"{above}\nassume: {'; '.join(renamed(fact, program) for fact in known)}\n{below}"
    binding = Binding(kind, "program", -1, line, 0, said.formula.turn, text=f"of {program.name}")
    return Reading(1, (claim,), bindings=(binding,), open=tuple(open_))


def _letters_of(scope: Scope, said: Said) -> set[str]:
    """Sizes that the turn says something about."""
    return {name for fact in scope.facts if fact.turn == said.formula.turn for name in fact.names}


def costs(program: str, order: Node, line: int, place: int = 0) -> Reading:
    """`cost in O(...)` of a program."""
    names: set[str] = set()
    text = polynomial(order.parts[0], names)
    binding = Binding("cost", "program", -1, line, 0, 0, text=f"of {program}")
    claim = f"of: {program}\nsizes: {', '.join(sorted(names))}\nassert: cost in {order.text}({text})"
    return Reading(place + 1, (claim,), bindings=(binding,))


def grows(said: Said, scope: Scope, place: int, left: Node, right: Node, order: str) -> Reading:
    """`left in O(right)`, under what is said about the sizes."""
    names: set[str] = set()
    one, other = (
        polynomial(rewritten(side, lambda part: _bare(part.parts[0]) if part.kind == "order" else None), names)
        for side in (left, right)
    )
    if not names:
        raise Unread("an order without sizes")
    facts, open_ = facts_about(scope, said, names)
    assumed = [f"{polynomial(fact.left, names)} {fact.relation} {polynomial(fact.right, names)}" for fact in facts]
    told = {name for fact in facts if fact.relation == "==" for name in fact.names}
    only = flat_names(left) - flat_names(right) - told
    if only:
        open_.append(f"nothing is said about {', '.join(sorted(only))}")
    lines = [f"sizes: {', '.join(sorted(names))}"]
    if assumed:
        lines.append(f"assume: {'; '.join(assumed)}")
    bindings = tuple(
        Binding(min(fact.names), "fact", fact.number, fact.line, 0, fact.turn, text=text)
        for fact, text in zip(facts, assumed, strict=True)
    )
    lines.append(f"assert: {one} in {order}({other})")
    return Reading(place + 1, ("\n".join(lines),), open=tuple(open_), trivial=one == other, bindings=bindings)


def facts_about(scope: Scope, said: Said, names: set[str]) -> tuple[list[Fact], list[str]]:
    """What the same turn says about these sizes before the statement, and why a refutation would not count."""
    wanted, found, open_ = set(names), [], []
    told = [fact for fact in scope.facts if fact.turn == said.formula.turn and fact.number < said.number]
    grown = True
    while grown:
        grown = False
        for fact in told:
            if fact in found or not fact.names & wanted:
                continue
            others = [each for each in found if each.relation == fact.relation == "==" and each.left == fact.left]
            if any(each.right != fact.right for each in others):
                lines = " and ".join(sorted({str(others[0].line), str(fact.line)}, key=int))
                open_.append(f"{min(flat_names(fact.left))} is given twice (lines {lines})")
            if not others:
                found.append(fact)
                wanted |= fact.names
                grown = True
    unread = [
        each.line
        for each in scope.conditions
        if each.sides is None and each.turn == said.formula.turn and each.names & names
    ]
    if unread:
        open_.append(f"the condition in line {unread[0]} was left out")
    return found, list(dict.fromkeys(open_))


def _bare(node: Node) -> Node:
    return Node("group", (node,))


def polynomial(node: Node, names: set[str]) -> str:
    match node.kind:
        case "number":
            return node.text
        case "name":
            name = node.text if node.text not in ("in", "has", "shape", "I") else f"{node.text}_"
            names.add(name)
            return name
        case "group":
            return f"({polynomial(node.parts[0], names)})"
        case "+":
            return f"({polynomial(node.parts[0], names)} + {polynomial(node.parts[1], names)})"
        case "product":
            return "(" + "*".join(polynomial(part, names) for part in node.parts) + ")"
        case "/":
            return f"({polynomial(node.parts[0], names)}/{polynomial(node.parts[1], names)})"
        case "^":
            if node.parts[1].kind == "number":
                return f"({polynomial(node.parts[0], names)}^{node.parts[1].text})"
        case "call" if node.text == "max":
            return "(" + " + ".join(polynomial(part, names) for part in node.parts) + ")"
        case "index" if len(node.parts) == 2 and node.parts[1].kind in ("name", "number"):
            return polynomial(Node("name", text=f"{node.text}_{node.parts[1].text}"), names)
    raise Unread("an order that is no polynomial")


def of_sizes(node: Node, scope: Scope) -> bool:
    r"""Whether a side is a product of sizes, as in a list of costs: `h \times b \times d`."""
    if not is_polynomial(node) or not scope.vectors:
        return False
    names = flat_names(node)
    return names <= scope.sizes.keys() | scope.counts or (
        all(len(name) == 1 or "_" in name for name in names) and any(part.kind == "product" for part in node.walk())
    )
