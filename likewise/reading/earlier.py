"""A statement against earlier ones: a value put back into its equation, and what is said again in another form."""

import re
from collections.abc import Sequence

from likewise.reading.arithmetic import short
from likewise.reading.expressions import ELEMENTARY, Node, number, rewritten, value
from likewise.reading.latex import Unread
from likewise.reading.link import Reading, claim_text
from likewise.reading.scope import Binding, Scope
from likewise.reading.statements import Said
from likewise.reading.writing import Writer, decimals

OTHERWISE = re.compile(r"\W*\b(?:or|either|when|if|case|other|another|alternatively|for)\b", re.I)
RESTATES = re.compile(
    r"\b(?:written|rewritten|rewrite|other words|that is|i\.e\.|equivalent\w*|simplif\w*|expand\w*|rearrang\w*"
    r"|factor\w*)\b[^.$]{0,40}$",
    re.I,
)
PLAIN = {"number", "name", "+", "-", "neg", "product", "/", "^", "group", "call"}


def put_back(said: Said, scope: Scope, earlier: Sequence[Said]) -> Reading | None:
    """`3x + 2 = 11, so x = 3`: the value put back into the equation just before."""
    first, last = said.nodes[0], said.nodes[-1]
    if said.role not in ("assertion",) or said.hedged or said.relations[0] != "==" or not isinstance(first, Node):
        return None
    if OTHERWISE.search(said.formula.before[-60:]) or OTHERWISE.match(said.formula.after[:12]):
        return None
    if first.kind != "name" or not isinstance(last, Node) or value(last) is None or decimals(last):
        return None
    name = first.text
    if said.number and not all(relation == "==" for relation in said.relations):
        return None
    for before in reversed(earlier[-4:]):
        if (before.formula.section, before.formula.turn) != (said.formula.section, said.formula.turn):
            return None
        if name not in before.names and not any(isinstance(node, Unread) for node in before.nodes):
            continue
        if (
            before.relations != ("==",)
            or before.role not in ("assertion", "condition", "definition")
            or before.hedged
            or before.modulus
            or any(isinstance(node, Unread) for node in before.nodes)
            or before.names != {name}
        ):
            return None
        left, right = before.nodes
        assert isinstance(left, Node)
        assert isinstance(right, Node)
        if left == first or right == first or decimals(left) or decimals(right):
            return None
        if any(
            part.kind in ("unit", "%", "call", "index", "dots", "mixed")
            for side in (left, right)
            for part in side.walk()
        ):
            return None
        try:
            if scope.value(name, before) is not None or (
                scope.bindings.get(name)
                and len({each.node for each in scope.bindings[name] if each.section == said.formula.section}) > 1
            ):
                return None
            writer = Writer(Scope(), said)
            texts = [writer.number(side) for side in (left, right)]
            shown = Writer(Scope(), said).number(last)
        except Unread:
            return None
        safe = writer.safe(name)
        claim = f"{safe} = {shown}\nassert: {texts[0]} == {texts[1]}"
        note = f"put back into line {before.formula.line}"
        put = [rewritten(side, lambda part: last if part == first else None) for side in (left, right)]
        return Reading(len(said.relations) + 1, (claim,), notes=(note,), plain=all(map(short, put)))
    return None


def restated(said: Said, scope: Scope, earlier: Sequence[Said]) -> Reading | None:
    """`y = a(b + c)`, which can be written as `y = ab + ac`; `s^2 = 4/n` and `s = 2/sqrt(n)`: both sides agree."""
    first = said.nodes[0]
    if said.relations != ("==",) or said.role not in ("assertion", "definition") or said.hedged or said.modulus:
        return None
    if not isinstance(first, Node) or first.kind not in ("name", "index"):
        return None
    words = said.formula.before if said.formula.before.strip() else said.formula.earlier
    cue = bool(RESTATES.search(words[-80:].rstrip()))
    for before in reversed(earlier[-6:]):
        if (before.formula.turn, before.formula.section) != (said.formula.turn, said.formula.section):
            return None
        if before.role == "condition":
            return None  # it may hold under that only
        squared = before.nodes[0] == Node("^", (first, number("2")))
        if not squared and before.nodes[0] != first:
            continue
        same = before.formula.sentence == said.formula.sentence
        last = before.nodes[-1]
        right = said.nodes[1]
        if not (same if squared else cue) or set(before.relations) != {"=="} or before.hedged or before.modulus:
            return None
        if before.role not in ("assertion", "definition") or not isinstance(last, Node) or not isinstance(right, Node):
            return None
        one, other = _opaque(last), _opaque(right)
        kinds = {part.kind for side in (one, other) for part in side.walk()}
        names = one.names - ELEMENTARY.keys()
        if not names or names != other.names - ELEMENTARY.keys() or not kinds <= PLAIN:
            return None
        if any(part.kind == "call" and part.text != "sqrt" for side in (one, other) for part in side.walk()):
            return None
        writer = Writer(Scope(), said)
        try:
            texts = [writer.number(one), writer.number(other)]
        except Unread:
            return None
        roots = any(part.kind == "call" for side in (one, other) for part in side.walk())
        assumed = [f"{writer.safe(name)} > 0" for name in sorted(names)] if squared or roots else []
        text = f"{texts[0]} == {f'({texts[1]})^2' if squared else texts[1]}"
        binding = Binding(
            first.text, "value", before.number, before.formula.line, 0, before.formula.turn, text="as said"
        )
        claims = (claim_text(writer.draft, text, assumed),)
        nonzero = [each for each in writer.draft.nonzero if not assumed]
        where = (claim_text(writer.draft, text, nonzero),) if nonzero else ()
        note = f"needed in line {before.formula.line}"
        return Reading(1, claims, bindings=(binding,), notes=(note,), defined=where)
    return None


def _opaque(node: Node) -> Node:
    """The side with `x_{t+1}` as one name."""
    return rewritten(
        node,
        lambda part: (
            Node("name", text=_flat_index(part)) if part.kind == "index" and part.parts[0].kind == "name" else None
        ),
    )


def _flat_index(node: Node) -> str:
    below = "_".join(part.text or part.kind for each in node.parts[1:] for part in each.walk() if part.kind != "group")
    return f"{node.text}_{''.join(each if each.isalnum() else 'p' for each in below)}"
