"""What is known about names: domains, sizes, relations between them, and what words such as log and FLOP mean."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from likewise.checks import require, require_choice
from likewise.grading.parsing import bare, readings
from likewise.reading.expressions import Node
from likewise.reading.latex import Unread

DOMAINS = {
    "R": "",
    "N": "natural",
    "Z": "whole",
    "R_+": "positive",
    "R_{+}": "positive",
    "R^+": "positive",
    "R_{>0}": "positive",
}
WORDS = {
    "positive": "positive", "natural": "natural", "integer": "whole", "whole": "whole", "real": "", "vector": "vector",
    "matrix": "matrix", "matrices": "matrix", "size": "natural", "number": "",
}  # fmt: skip
LOGS = {"e": "e", "ln": "e", "natural": "e", "2": "2", "10": "10"}


@dataclass
class Given:
    """Facts about names. `unread` holds the lines that were not understood."""

    positive: set[str] = field(default_factory=set)
    whole: set[str] = field(default_factory=set)
    types: dict[str, str] = field(default_factory=dict)
    shapes: dict[str, tuple[str, ...]] = field(default_factory=dict)
    values: dict[str, Node] = field(default_factory=dict)  # d = h*k
    relations: list[Node] = field(default_factory=list)  # x > 1
    declared: set[str] = field(default_factory=set)
    unread: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Conventions:
    """What a key says about how it is to be compared.

    log: the base of log (e, 2 or 10), "" if it is not said. flop: how many FLOP a multiply-add is. vectors: rows or
    columns. tolerance: an absolute difference that counts as equal. rounding: decimals to which numbers are compared.
    unit: the unit of a number without one. kind: text or choice, where a key is not a formula.
    """

    log: str = ""
    flop: int | None = None
    vectors: str = ""
    tolerance: Fraction | None = None
    rounding: int | None = None
    unit: str = ""
    kind: str = ""

    @property
    def nears(self) -> bool:
        """Whether numbers that are near count as equal."""
        return self.tolerance is not None or self.rounding is not None


def conventions_of(said: Mapping[str, Any] | None) -> Conventions:
    """Conventions from a mapping; an unknown one is an error."""
    said = dict(said or {})
    unknown = sorted(set(said) - set(Conventions.__dataclass_fields__))
    require(not unknown, "grade", "conventions", f"be among {', '.join(Conventions.__dataclass_fields__)}", unknown)
    made: dict[str, Any] = {}
    for name, value in said.items():
        if name == "log":
            require_choice("grade", "conventions['log']", str(value), tuple(LOGS))
            made[name] = LOGS[str(value)]
        elif name == "flop":
            require(value in (1, 2), "grade", "conventions['flop']", "be 1 or 2 for a multiply-add", repr(value))
            made[name] = value
        elif name == "vectors":
            require_choice("grade", "conventions['vectors']", value, ("rows", "columns"))
            made[name] = value
        elif name == "kind":
            require_choice("grade", "conventions['kind']", value, ("", "text", "choice", "formula"))
            made[name] = value
        elif name == "tolerance":
            made[name] = None if value is None else Fraction(str(value))
            require(value is None or made[name] >= 0, "grade", "conventions['tolerance']", "be at least 0", repr(value))
        elif name == "rounding":
            sound = value is None or (isinstance(value, int) and not isinstance(value, bool) and -20 <= value <= 50)
            require(sound, "grade", "conventions['rounding']", "be a number of decimals", repr(value))
            made[name] = value
        else:
            made[name] = str(value)
    return Conventions(**made)


def given_of(text: str | None) -> Given:
    """Facts from lines such as `x > 0; n in N; A, B in R^(n, n); d = h*k`."""
    found = Given()
    for line in re.split(r"[;\n]", text or ""):
        line = re.sub(r"^\s*(?:given|assume|where|with|let|sizes?)\b\s*:?", _size_word, line).strip(" .,$")
        if line:
            _take(found, line)
    return found


def _size_word(match: re.Match[str]) -> str:
    return "sizes " if "size" in match[0] else ""


def _take(found: Given, line: str) -> None:
    if line.startswith("sizes "):
        for name in _names(line.removeprefix("sizes ")) or []:
            _domain(found, name, "natural")
        return
    line = re.sub(r"\\mathbb\s*\{?\s*([RNZ])\s*\}?", r"\1", line).replace("ℝ", "R").replace("ℕ", "N").replace("ℤ", "Z")
    line = line.replace("∈", " in ").replace(r"\in ", " in ").replace(r"\in", " in ").replace(r"\times", ",")
    declared = re.fullmatch(r"(.+?)\s+(?:in|is|are)\s+(?:an?\s+)?(.+)", line)
    if declared and (names := _names(declared[1])) and _declare(found, names, declared[2].strip()):
        return
    spoken = re.fullmatch(r"(?:all\s+)?(.+?)\s+(positive|natural|integers?|real|vectors?|matrices|matrix)", line)
    if spoken and (names := _names(spoken[1])) and _declare(found, names, spoken[2]):
        return
    try:
        parts = readings(line)
        for part in parts[0].parts if parts[0].kind == "list" else parts[:1]:
            _relate(found, part, line)
    except Unread:
        found.unread.append(line)


def _names(text: str) -> list[str] | None:
    """The names of a list, or nothing if it holds something else."""
    try:
        tree = readings(text)[0]
    except Unread:
        return None
    parts = tree.parts if tree.kind == "list" else (tree,)
    return [name_of(part) for part in parts] if all(name_of(part) for part in parts) else None


def name_of(node: Node) -> str:
    """The name that a node is, or nothing."""
    node = bare(node)
    return node.text if node.kind == "name" else ""


def _declare(found: Given, names: list[str], domain: str) -> bool:
    words = [
        WORDS[each] for word in re.findall(r"[A-Za-z]+", domain) if (each := word.lower().removesuffix("s")) in WORDS
    ]
    words += [WORDS[word] for word in re.findall(r"[a-z]+", domain) if word in WORDS]
    if words and not re.search(r"[\d^(<>]", domain):
        for name in names:
            for word in words:
                _domain(found, name, word)
        return True
    if domain in DOMAINS:
        for name in names:
            _domain(found, name, DOMAINS[domain])
        return True
    array = re.fullmatch(r"R\s*\^\s*[{(]?\s*([\w]+)\s*(?:(?:,|x|×)\s*(\w+)\s*)?[})]?", domain)
    if array:
        for name in names:
            found.declared.add(name)
            found.types[name] = "matrix" if array[2] else "vector"
            found.shapes[name] = tuple(filter(None, array.groups()))
        return True
    try:
        region = readings(f"{names[0]} \\in {domain}")[0]
    except Unread:
        return False
    for name in names:
        found.declared.add(name)
        found.relations.append(Node("chain", (Node("name", text=name), *region.parts[1:]), joined=region.joined))
        low = bare(region.parts[1].parts[0]) if region.parts[1].parts else None
        if low is not None and low.kind == "number":
            found.positive.add(name)
    return True


def _domain(found: Given, name: str, domain: str) -> None:
    found.declared.add(name)
    if domain in ("vector", "matrix"):
        found.types[name] = domain
    if domain in ("positive", "natural"):
        found.positive.add(name)
    if domain in ("whole", "natural"):
        found.whole.add(name)


def _relate(found: Given, node: Node, line: str) -> None:
    if node.kind != "chain":
        raise Unread("no relation")
    found.declared |= {part.text for part in node.walk() if part.kind == "name"}
    name = name_of(node.parts[0])
    if node.joined == ("==",) and name and name not in node.parts[1].names:
        found.values[name] = node.parts[1]
        return
    if any(relation not in ("<", "<=", ">", ">=", "!=", "==", "in") for relation in node.joined):
        raise Unread("a relation that is not known")
    found.relations.append(node)
    for one, relation, other in zip(node.parts, node.joined, node.parts[1:], strict=False):
        above, below = (one, other) if relation in (">", ">=") else (other, one)
        low = bare(below)
        strict = relation in ("<", ">") or (low.kind == "number" and low.text.strip("0."))
        if relation in ("<", "<=", ">", ">=") and low.kind == "number" and strict and name_of(above):
            found.positive.add(name_of(above))


def substituted(node: Node, values: Mapping[str, Node]) -> Node:
    """The tree with values in place of names."""
    for _ in range(4):
        before = node
        node = _put(node, values)
        if node == before:
            break
    return node


def renamed(node: Node, names: Mapping[str, str]) -> Node:
    """The tree with other names, also where they are bound."""
    text = names.get(node.text, node.text) if node.kind == "name" else node.text
    return Node(node.kind, tuple(renamed(part, names) for part in node.parts), text, node.joined)


def _put(node: Node, values: Mapping[str, Node]) -> Node:
    if node.kind == "name" and node.text in values:
        return Node("group", (values[node.text],))
    return Node(node.kind, tuple(_put(part, values) for part in node.parts), node.text, node.joined)
