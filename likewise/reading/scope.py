"""Who bound each name, where, and until when.

Bindings are collected before any claim is written, for a law may stand after its first use. A value ends with its
section, a hypothesis or a line that cannot be read takes the older binding away, and two that differ are no binding.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise

from likewise.reading.corrections import Correction
from likewise.reading.declared import interval_of, names_of, other_law, space, split_commas
from likewise.reading.expressions import BOUND_E, ELEMENTARY, Node, Parser, base_of, features, value
from likewise.reading.latex import Token, Unread
from likewise.reading.segments import Turn
from likewise.reading.statements import AT, SEVERAL, Said, head_of

FORMULA = re.compile(r"\$[^$]*\$|\\\(.*?\\\)", re.DOTALL)
SETS = re.compile(r"\b(?:let|define|denote|put)\b\W*(?:[\w-]+\W+){0,4}$", re.I)
INDEPENDENT = re.compile(r"independ|i\.?\s?i\.?\s?d\b", re.I)
OPENING = re.compile(r"\W*(?:\d+\.\s+)?(?:with|if|for|when|under|using|setting|in case)\b", re.I)
LASTING = re.compile(r"\b(?:assum\w+|suppose|given|let|throughout)\b", re.I)
SIZES = {"N", "D", "M", "R", "d", "n", "m", "O", "Theta", "Omega", "E", "Var", "Cov"}  # never functions of one answer
INDICES = {"i", "j", "l", "m", "t", "s", "n", "k"}


@dataclass(frozen=True)
class Binding:
    """kind: value, type, law, function or removed; `node` is the value or the body of a function."""

    name: str
    kind: str
    number: int  # of the statement that binds
    line: int
    section: int
    turn: int
    chapter: int = 0
    node: Node | None = None
    dims: tuple[str, ...] = ()  # of a type: () is a number
    parameters: tuple[str, ...] = ()
    law: tuple[Node, Node] | None = None  # mean, covariance
    text: str = ""
    stated: bool = True  # whether the text sets it; a value that was worked out may belong to another case
    sentence: int = -1  # of a value that a condition gives, "for x = 0"
    spot: bool = False  # "at x = 0": for this sentence only

    def __str__(self) -> str:
        return f"{self.name.removeprefix('=')}: {self.text or self.kind}, line {self.line}"


@dataclass(frozen=True)
class Condition:
    """A stated condition, and the names that it is about."""

    names: frozenset[str]
    number: int
    line: int
    section: int
    turn: int
    chapter: int = 0
    sentence: int = 0
    role: str = ""
    lasting: bool = False  # "assume ..": it holds from there on, not in its sentence alone
    opens: bool = False  # "With .. we get": its sentence begins with it
    withdrawn: bool = False  # a person says that it is none: nothing is refuted that holds under it
    relations: tuple[str, ...] = ()
    nodes: tuple[Node, ...] = ()  # nothing if it could not be read
    implied: bool = False  # a definition only because the name is new

    def reaches(self, at: Said) -> bool:
        """Whether it surely belongs to a statement: it stands in the same sentence, or is said to last."""
        return self.role == "condition" and (self.lasting or self.sentence == at.formula.sentence)

    @property
    def about_growth(self) -> bool:
        """Whether it is an equation between orders, as `O(N) + O(1) = O(N)`."""
        return any(part.kind == "order" for node in self.nodes for part in node.walk())

    @property
    def relation(self) -> str:
        """The first relation."""
        return self.relations[0]

    @property
    def sides(self) -> tuple[Node, Node] | None:
        """Both sides of a condition with one relation."""
        return (self.nodes[0], self.nodes[1]) if len(self.nodes) == 2 else None


@dataclass(frozen=True)
class Fact:
    """What is said about sizes: `d = 2R`, `M = O(D^2)`, `N >> D`; left, relation (==, <= or both) and right."""

    left: Node
    relation: str
    right: Node
    number: int
    line: int
    turn: int

    @property
    def names(self) -> set[str]:
        """The sizes it is about."""
        return flat_names(self.left) | flat_names(self.right)


@dataclass(frozen=True)
class Convention:
    """What a line says of rows such as `Q_i`, or of the values of a map, as rows or columns."""

    what: str  # rows, or the name of the map
    kind: str
    line: int
    turn: int
    user: bool = False  # what a user says reaches the turn that answers


@dataclass
class Scope:
    """All bindings of a text."""

    bindings: dict[str, list[Binding]] = field(default_factory=dict)
    conditions: list[Condition] = field(default_factory=list)
    facts: list[Fact] = field(default_factory=list)
    vectors: dict[str, set[tuple[int, int]]] = field(default_factory=dict)  # used as vectors: turns and chapters
    sizes: Counter[str] = field(default_factory=Counter)  # names used as sizes, and how often
    called: frozenset[str] = frozenset()  # names of functions that the text defines somewhere
    solved: set[tuple[int, int, str]] = field(default_factory=set)  # turn, section, name of equations in one unknown
    programs: dict[int, str] = field(default_factory=dict)  # by lines, as a person says
    counts: set[str] = field(default_factory=set)  # names of how many features a list with dots has
    rows: set[str] = field(default_factory=set)  # names that such a list numbers: w of w_1, ..., w_R
    conventions: tuple[Convention, ...] = ()  # what the prose says about rows and columns
    exact: set[str] = field(default_factory=set)  # decimals that the text introduces, `p = 0.2`
    rounded: set[str] = field(default_factory=set)  # decimals that the text got by rounding, `1/3 = 0.33`
    said: tuple[Said, ...] = ()  # all statements
    heads: dict[str, list[Said]] = field(default_factory=dict)  # statements that say what a name is
    lines: tuple[str, ...] = ()  # of the text
    turns: tuple[Turn, ...] = ()

    def is_vector(self, name: str, at: Said) -> bool:
        """Whether a name is used as a vector, transposed or inside a norm, where the statement can see it."""
        return any(_sees(turn, chapter, at) for turn, chapter in self.vectors.get(name, ()))

    def add(self, binding: Binding) -> None:
        """Bind a name."""
        self.bindings.setdefault(binding.name, []).append(binding)

    def value(self, name: str, at: Said) -> Binding | None:
        """The value of a name at a statement; two that differ are an Unread."""
        live = [
            each
            for each in self.bindings.get(name, ())
            if each.kind in ("value", "removed")
            and each.number < at.number
            and (each.section, each.turn) == (at.formula.section, at.formula.turn)
            and not (each.spot and each.sentence != at.formula.sentence)
        ]
        if not live:
            return None
        if any(each.kind == "removed" for each in live):
            raise Unread(f"{name} was set anew in a way that was not read")
        if len({value(each.node) if each.node and value(each.node) is not None else each.node for each in live}) > 1:
            lines = " and ".join(dict.fromkeys(str(each.line) for each in live))
            raise Unread(f"{name} has two values (lines {lines})")
        return live[-1]

    def kind(self, name: str, kind: str, at: Said) -> Binding | None:
        """The type, law or function of a name: the last before the statement, or else the first in its section.

        Types and laws end with their chapter. A function of another chapter is known as long as the name means nothing
        else here.
        """
        found = [each for each in self.bindings.get(name, ()) if each.kind in (kind, f"no {kind}")]
        here = [each for each in found if each.number < 0 or _sees(each.turn, each.chapter, at)]
        if here or kind != "function" or any(_sees(e.turn, e.chapter, at) for e in self.bindings.get(name, ())):
            found = here
        if kind == "law":  # a law belongs to its problem: the turn it stands in, and the one that answers it
            found = [each for each in found if at.formula.turn - 1 <= each.turn <= at.formula.turn]
        before = [each for each in found if each.number <= at.number]
        after = [each for each in found if each.number > at.number and each.section == at.formula.section]
        chosen = before[-1] if before else after[0] if after else None
        if chosen is not None and chosen.kind != kind:
            raise Unread(f"the definition of {name} in line {chosen.line} was not read")
        return chosen

    def about(self, names: Iterable[str], at: Said) -> list[Condition]:
        """Conditions stated in the same section, or just before, about these names."""
        wanted = set(names)
        return [
            each
            for each in self.conditions
            if each.names & wanted
            and (each.turn, each.section) == (at.formula.turn, at.formula.section)
            and _sees(each.turn, each.chapter, at)
        ]

    def visible(self, at: Said) -> list[Condition]:
        """All conditions that a statement can see."""
        return [each for each in self.conditions if _sees(each.turn, each.chapter, at)]

    def default_size(self) -> str:
        """The size that vectors have if nobody says: the one the text uses most, D of square roots and R^D."""
        return self.sizes.most_common(1)[0][0] if self.sizes else "n"


def _sees(turn: int, chapter: int, at: Said) -> bool:
    """Whether a statement knows what stands in a chapter of a turn: its own, the text before all, or another turn."""
    return turn != at.formula.turn or chapter in (0, at.formula.chapter)


def heads(said: Sequence[Said]) -> set[str]:
    """Names that are functions somewhere: the left side of an equation is the name with plain parameters.

    Not tanh, which everybody knows, nor f' beside f, unless the text sets it: what is said of them can be false.
    """
    found, set_ = set(), set()
    for each in said:
        if each.relations[:1] in (("in",), ("sim",)) and any(token.text == "e" for token in each.sides[0]):
            found.add(BOUND_E)
        if each.relations[:1] in (("==",), (":=",), ("approx",)) and (head := head_of(each.sides[0])):
            name, parameters = head
            if (
                name.partition("_")[0] not in SIZES
                and name not in parameters
                and (len(parameters) > 1 or len(name) > 1 or name not in "abcdknmxyztuvw")
            ):
                found.add(name)
            if _sets(each):
                set_.add(name)
    known = found | set(ELEMENTARY.values())
    derived = {name for name in found - set_ if name.endswith("_prime") and base_of(name) in known}
    return found - derived - set(ELEMENTARY.values())


def scope_of(
    said: Sequence[Said],
    called: Collection[str],
    corrections: Sequence[Correction] = (),
    conventions: tuple[Convention, ...] = (),
) -> Scope:
    """The first pass: what every statement binds; a person's corrections overrule it."""
    scope = Scope(
        programs={each.line: each.program for each in corrections if each.program},
        called=frozenset(called),
        conventions=conventions,
    )
    for each in said:
        for node in each.nodes:
            if isinstance(node, Node):
                _uses(node, scope, (each.formula.turn, each.formula.chapter))
    if not scope.vectors:  # then a square root is no sign of a size
        scope.sizes.clear()
    scope.said = tuple(said)
    _entries(said, scope)
    for each in said:
        _rounds(each, scope)
        _bind(each, scope)
        _fact(each, scope)
        _stands_for(each, scope)
    _first_heads(said, scope)
    for each in corrections:
        if each.dims is not None:
            _correct(each, each.dims, scope)
    return scope


def _correct(each: Correction, dims: tuple[str, ...], scope: Scope) -> None:
    """Give a name the type that a person says, everywhere."""
    shown = "in R" + (f"^({', '.join(dims)})" if dims else "") + ", as corrected"
    kept = [one for one in scope.bindings.get(each.name, ()) if one.kind in ("value", "function")]
    scope.bindings[each.name] = [*kept, Binding(each.name, "type", -1, each.line, 0, 0, dims=dims, text=shown)]
    scope.vectors.pop(each.name, None)
    scope.rows.discard(each.name)
    for size in dims:
        if size.isidentifier():
            scope.sizes[size] += 1


def _fact(each: Said, scope: Scope) -> None:
    """Keep what a statement says about sizes."""
    if each.role in ("hypothesis", "question", "requirement") or each.hedged or each.modulus or len(each.nodes) < 2:
        return
    if EXAMPLE.search(each.formula.before[-80:]):
        return
    if not all(isinstance(node, Node) for node in each.nodes):
        return
    first, relation = each.nodes[0], each.relations[0]
    last = next((node for node in each.nodes[1:] if isinstance(node, Node) and is_polynomial(node)), each.nodes[1])
    assert isinstance(first, Node)
    assert isinstance(last, Node)
    order = last.kind == "order"
    last = last.parts[0] if order else last
    if relation not in FACTS or not (is_polynomial(first) and is_polynomial(last)) or not flat_names(last):
        return
    if flat_names(first) & flat_names(last) or not flat_names(first):
        return
    if relation in ("sim", "approx") and (first.kind not in SIMPLE or last.kind not in (*SIMPLE, "/")):
        return  # an approximation between products is a claim, not a convention
    if relation == "==" and first.kind not in SIMPLE and each.role == "assertion":
        return
    signs = {"gg": ">=", "ll": "<=", "approx": "==", "sim": "=="}
    place = (each.number, each.formula.line, each.formula.turn)
    scope.facts.append(Fact(first, "<=" if order else signs.get(relation, relation), last, *place))


EXAMPLE = re.compile(
    r"\b(?:e\.g\.|for example|say|for instance|if (?:we|one|you) (?:assume|take|choose|set))[^.$]*\$?$", re.I
)
FACTS = ("==", "approx", "sim", "gg", "ll", "<=", ">=", ":=")
SIMPLE = ("name", "index")


def is_polynomial(node: Node) -> bool:
    """Whether a side could be a size: sums, products, powers and quotients of names and numbers."""
    if node.kind == "index":
        return (
            len(node.parts) == 2
            and node.parts[1].kind in ("name", "number")
            and node.parts[1].text not in INDICES - {"k", "m", "n"}
        )
    if node.kind in ("name", "number"):
        return True
    return node.kind in ("+", "product", "/", "^", "group", "neg", "-") and all(map(is_polynomial, node.parts))


def flat_names(node: Node) -> set[str]:
    """Names of sizes, with an index as part of the name."""
    if node.kind == "index":
        return {f"{node.text}_{node.parts[1].text}"} if len(node.parts) == 2 else {node.text}
    found = {node.text} if node.kind == "name" else set()
    return found.union(*map(flat_names, node.parts)) if node.parts else found


def _uses(node: Node, scope: Scope, place: tuple[int, int]) -> None:
    def vector(name: str) -> None:
        scope.vectors.setdefault(name, set()).add(place)

    for part in node.walk():
        if part.kind == "transpose" and part.parts[0].kind == "name":
            name = part.parts[0].text
            if (len(name) == 1 and (name.islower())) or name in ("mu", "omega", "theta", "beta"):
                vector(name)
        elif part.kind == "product":
            for one, other in pairwise(part.parts):  # q^T k: the right one is a vector too
                single = one.kind == "transpose" and one.parts[0].kind == other.kind == "name"
                if single and one.parts[0].text.islower() and other.text.islower() and len(other.text) == 1:
                    vector(other.text)
        elif part.kind == "norm":
            inner = part.parts[0]
            for leaf in [inner, *inner.parts] if inner.kind in ("+", "-", "neg", "group") else [inner]:
                if leaf.kind == "name":
                    vector(leaf.text)
        elif part.kind == "vector" and (blocks := features(part)) is not None:
            scope.counts.add(blocks.text)
            scope.rows |= set(blocks.joined)
        elif part.kind == "call" and part.text == "sqrt" and part.parts[0].text in ("D", "d", "N", "M", "d_k"):
            scope.sizes[part.parts[0].text] += 1


def _bind(each: Said, scope: Scope) -> None:
    place = (each.number, each.formula.line, each.formula.section, each.formula.turn, each.formula.chapter)
    if not each.relations:
        if re.search(r"(?:sampled|drawn|distributed|samples?)[^.$\\]{0,40}$", each.formula.before):
            _bind_law(_last_names(each.formula.before), each.sides[0], place, scope)
        return
    if each.role == "question":
        if each.withdrawn:
            _condition(each, place, scope)
        return
    relation = each.relations[0]
    if relation == "in":
        names = names_of(each.sides[0])
        dims = space(each.sides[1])
        if names and (interval := interval_of(each.sides[1])):
            for name in names:
                scope.add(Binding(name, "type", *place, text=interval))
        for name in names or ():
            if dims is not None:
                scope.add(
                    Binding(name, "type", *place, dims=dims, text="in R" + (f"^({', '.join(dims)})" if dims else ""))
                )
                for size in dims:
                    if size.isidentifier():
                        scope.sizes[size] += 5
        return
    if relation == "sim":
        names = names_of(each.sides[0])
        if names and any(token.text == "(" for token in each.sides[1]):
            independent = INDEPENDENT.search(each.formula.before[-80:] + " " + each.formula.after[:60])
            _bind_law(names, each.sides[1], place, scope, "independent entries" if independent else "law")
        else:  # D' ~ D: about the same size
            _condition(each, place, scope)
        return
    if relation not in ("==", ":=", "approx"):
        _condition(each, place, scope)
        return
    _unknowns(each, scope)
    head = head_of(each.sides[0])
    head = head if head and head[0] in scope.called else None
    right = each.nodes[1] if len(each.nodes) > 1 else None
    first = each.nodes[0]
    if head and isinstance(first, Node) and first.kind == "call" and relation != "approx":
        name, parameters = head
        known = [binding for binding in scope.bindings.get(name, ()) if binding.kind == "function"]
        if each.role == "hypothesis":
            if _sets(each) or not scope.vectors:  # what is only written again while something is tried changes nothing
                scope.add(Binding(name, "no function", *place))
        elif (
            not known
            or _sets(each)
            or (isinstance(right, Node) and _lists(right))
            or (each.role in ("definition", "condition") and (not scope.vectors or known[-1].turn != each.formula.turn))
        ):
            if isinstance(right, Node) and name not in right.names:
                shown = f"{name}({', '.join(parameters)}) as defined"
                stated = _sets(each) or bool(re.search(r"\b(given|function|polynomial|where)\b", each.formula.before))
                scope.add(
                    Binding(name, "function", *place, node=right, parameters=parameters, text=shown, stated=stated)
                )
            elif isinstance(right, Unread) and (_sets(each) or not known):
                scope.add(Binding(name, "no function", *place))
        return
    if isinstance(first, Node) and relation != "approx":
        name = _single(first)
        if name and isinstance(right, Node) and (size := _own_entries(name, right)):
            shown = f"in R^{size}"
            scope.add(Binding(name, "type", *place, dims=(size,), text=shown))
            scope.sizes[size] += 1
            return
        if name:
            last = each.nodes[-1]
            if each.hedged == SEVERAL:
                return
            if each.role in ("hypothesis", "requirement") or each.hedged or each.modulus:
                scope.add(Binding(name, "removed", *place))
                return
            if isinstance(last, Node) and _is_value(last):
                literal = last.kind in ("vector", "matrix", "transpose")
                passing = each.formula.sentence if each.role == "condition" and not _sets(each) else -1
                stated = literal or _sets(each)
                spot = passing >= 0 and bool(AT.search(each.formula.before[-8:]))
                scope.add(
                    Binding(name, "value", *place, node=last, text="value", stated=stated, sentence=passing, spot=spot)
                )
                return
            if any(isinstance(node, Unread) for node in each.nodes):
                scope.add(Binding(name, "removed", *place))
    _condition(each, place, scope)


def _stands_for(each: Said, scope: Scope) -> None:
    """Keep what a name is said to be, with or without an index, as it stands; `phi(K_j) in R^M` is a type."""
    place = (each.number, each.formula.line, each.formula.section, each.formula.turn, each.formula.chapter)
    first = each.nodes[0]
    if not isinstance(first, Node) or not each.relations or each.role in ("hypothesis", "question", "requirement"):
        return
    if each.relations[-1] == "in" and len(each.nodes) == 2 and first.kind == "call" and len(first.parts) == 1:
        if first.parts[0].kind != "name" or not first.parts[0].text.isupper():  # of one row, not of a whole matrix
            dims = space(each.sides[-1])
            row = [size for size in dims or () if size != "1"]
            if len(row) == 1:
                scope.add(Binding(f"{first.text}()", "type", *place, dims=(row[0],), text=f"has {row[0]} features"))
        return
    key = stands_for(first)
    if key and each.relations[0] in ("==", ":=") and not each.hedged and not each.modulus:
        right = each.nodes[1]
        node = right if isinstance(right, Node) else None
        scope.add(Binding(f"={key}", "formula", *place, node=node, text="as said"))


def stands_for(node: Node) -> str:
    """The name of a left side that only names: `S`, `S_i` (any index), `S_KV`."""
    if node.kind == "name":
        return node.text
    if node.kind != "index" or node.parts[0].kind != "name" or any(part.kind != "name" for part in node.parts[1:]):
        return ""
    below = [part.text for part in node.parts[1:]]
    return f"{node.parts[0].text}_{'*' if len(below) == 1 and below[0] in INDICES else ''.join(below)}"


def _unknowns(each: Said, scope: Scope) -> None:
    """Keep the name of an equation in one unknown, `f(x) = 0` or `x^2 = 9`: the name is not any number there."""
    if each.role in ("condition", "definition") and isinstance(each.nodes[0], Node) and each.nodes[0].kind == "name":
        return  # "at x = 0": a place, not a solution
    for one, other in pairwise(each.nodes):
        if isinstance(one, Node) and isinstance(other, Node) and one.closed != other.closed:
            parts = [*one.walk(), *other.walk()]
            names = {part.text for part in parts if part.kind == "name"}
            called = any(part.kind in ("call", "norm", "grad", "transpose", "E", "Var") for part in parts)
            if len(names) == 1 and (not called or value(one) == 0 or value(other) == 0):
                scope.solved.add((each.formula.turn, each.formula.section, names.pop()))


def _entries(said: Sequence[Said], scope: Scope) -> None:
    r"""`\sum_{i=1}^B x_i`: what is summed up to B by its index is a vector of B entries, if it is never a number."""
    found: dict[tuple[str, int, int], dict[str, Said]] = {}
    bare: set[tuple[str, int, int]] = set()  # as numbers, before or in the same section
    for each in said:
        place = (each.formula.turn, each.formula.chapter)
        for node in each.nodes:
            for part in node.walk() if isinstance(node, Node) else ():
                if part.kind in ("sum", "prod") and part.parts[2].kind == "name" and value(part.parts[1]) == 1:
                    for name in _indexed(part.parts[3], part.parts[0]):
                        if (name, *place) not in bare:
                            found.setdefault((name, *place), {}).setdefault(part.parts[2].text, each)
            for name in _bare_names(node) if isinstance(node, Node) else ():
                if (name, *place) not in found or next(iter(found[name, *place].values())).formula.section == (
                    each.formula.section
                ):
                    bare.add((name, *place))
    declared = {name for name, listed in scope.bindings.items() if any(one.kind == "type" for one in listed)}
    for each in said:
        if each.relations and each.relations[0] == "in":
            declared |= set(names_of(each.sides[0]) or ())
    for key, sizes in found.items():
        name = key[0]
        ((size, first), *more) = sizes.items()
        alone = key in bare or name in declared or name in scope.called
        if more or alone or not name.islower() or size == name:
            continue
        place = (first.number, first.formula.line, first.formula.section, first.formula.turn, first.formula.chapter)
        scope.add(Binding(name, "type", *place, dims=(size,), text=f"{SUMMED} {size}"))
        scope.sizes[size] += 1


SUMMED = "summed up to"  # a type that nothing but a sum says


def _indexed(body: Node, index: Node) -> set[str]:
    """Names that stand in a sum with its index alone."""
    return {
        part.text
        for part in body.walk()
        if part.kind == "index" and part.parts[1:] == (index,) and part.parts[0].kind == "name"
    }


def _bare_names(node: Node) -> set[str]:
    """Names that stand without an index."""
    if node.kind == "index":
        return set().union(*map(_bare_names, node.parts[1:]))
    found = {node.text} if node.kind == "name" else set()
    return found.union(*map(_bare_names, node.parts)) if node.parts else found


def _rounds(each: Said, scope: Scope) -> None:
    """Keep decimals that stand for what was computed."""
    for relation, (one, other) in zip(each.relations, pairwise(each.nodes), strict=True):
        if not isinstance(one, Node) or not isinstance(other, Node) or relation not in ("==", "approx"):
            continue
        for side, computed in ((one, other), (other, one)):
            if side.kind != "number" or "." not in side.text or computed.kind in ("name", "index"):
                continue
            if relation == "approx" or value(computed) != value(side):
                scope.rounded.add(side.text)


def _own_entries(name: str, node: Node) -> str:
    """The size D, if a side is `[x_1, ..., x_D]` for the name x."""
    node = node.parts[0] if node.kind == "transpose" else node
    listed = features(node) if node.kind == "vector" else None
    return listed.text if listed is not None and listed.parts == (Node("name", text=name),) else ""


def _lists(node: Node) -> bool:
    """Whether a side is a list of entries, or a number times one: it says what a map is."""
    if node.kind in ("transpose", "group"):
        return _lists(node.parts[0])
    if node.kind == "vector" and any(part.kind == "dots" for part in node.parts):
        return features(node) is not None
    return node.kind == "vector" or (node.kind == "product" and any(map(_lists, node.parts[-1:])))


def _sets(each: Said) -> bool:
    """Whether the words just before set a name: "let a = 3", "define f(x) = ..."."""
    before = FORMULA.sub("x", each.formula.before)
    return ":=" in each.relations or bool(SETS.search(before))


def _condition(each: Said, place: tuple[int, int, int, int, int], scope: Scope) -> None:
    stays = each.withdrawn or each.role in ("condition", "definition", "requirement")
    if not stays and each.relations[0] not in (
        "sim",
        "ll",
        "gg",
        "<",
        ">",
        "<=",
        ">=",
    ):
        return
    if each.role in ("assertion", "hypothesis") and each.names == set():
        return
    nodes = tuple(node for node in each.nodes if isinstance(node, Node))
    whole = len(nodes) == len(each.nodes)
    found = set().union(*map(whole_names, nodes)) if whole else each.names | _letters(each.sides)
    names = frozenset(found - ELEMENTARY.keys())
    before = each.formula.before
    told = (each.formula.sentence, each.role, bool(LASTING.search(before)), bool(OPENING.match(before)))
    read = nodes if len(nodes) == len(each.nodes) else ()
    scope.conditions.append(Condition(names, *place, *told, each.withdrawn, each.relations, read))


def _first_heads(said: Sequence[Said], scope: Scope) -> None:
    """The first mention of a name that says what it is defines it, `y_i = (x_i - m)/s`, where vectors are spoken of."""
    for each in said:
        first = each.nodes[0]
        name = head_name(first) if isinstance(first, Node) and each.relations[:1] in (("==",), (":=",)) else ""
        if name and len(each.nodes) == 2 and isinstance(each.nodes[1], Node) and each.nodes[1].kind == "number":
            scope.exact.add(each.nodes[1].text)
        if name:
            scope.heads.setdefault(name, []).append(each)
    kinds = {part.kind for each in said for node in each.nodes if isinstance(node, Node) for part in node.walk()}
    if not (scope.vectors or kinds & {"grad", "E", "Var"}) and not any(
        each.dims for listed in scope.bindings.values() for each in listed
    ):
        return
    seen: dict[tuple[int, int], set[str]] = {}
    known = {condition.number for condition in scope.conditions}
    for each in said:
        place = (each.number, each.formula.line, each.formula.section, each.formula.turn, each.formula.chapter)
        before = seen.setdefault((each.formula.turn, each.formula.chapter), set())
        first = each.nodes[0]
        name = head_name(first) if isinstance(first, Node) else ""
        before_here = set(before)
        before |= {part for node in each.nodes if isinstance(node, Node) for part in whole_names(node)}
        if (
            name
            and each.role == "assertion"
            and each.relations[:1] == ("==",)
            and name not in before_here
            and not any(
                (one.turn, one.chapter) in ((each.formula.turn, each.formula.chapter), (each.formula.turn, 0))
                for one in scope.bindings.get(name, ())
            )
            and each.number not in known
            and not each.hedged
            and not each.modulus
            and isinstance(second := each.nodes[1], Node)
            and isinstance(first, Node)
            and name not in second.names
            and not second.closed
        ):
            names = frozenset((whole_names(first) | whole_names(second)) - ELEMENTARY.keys())
            told = (each.formula.sentence, "definition", False, False, False, each.relations[:1])
            scope.conditions.append(Condition(names, *place, *told, (first, second), implied=True))
    scope.conditions.sort(key=lambda each: each.number)


def head_name(node: Node) -> str:
    """The name of a left side that only names: `m`, `s^2`, `y_i`."""
    bare = node.parts[0] if node.kind == "^" and node.parts[1].text == "2" else node
    if bare.kind == "index" and len(bare.parts) == 2:
        return bare.text if bare.parts[1].text in INDICES else flat_name(bare)
    return bare.text if bare.kind == "name" else ""


def flat_name(node: Node) -> str:
    r"""`\sigma_w` as a name, if its index is a letter that counts nothing."""
    if node.kind == "index" and len(node.parts) == 2 and node.parts[1].kind == "name":
        return "" if node.parts[1].text in INDICES else f"{node.text}_{node.parts[1].text}"
    return ""


def whole_names(node: Node) -> set[str]:
    r"""All names below, where `\sigma_w` is one name."""
    if flat := flat_name(node):
        return {flat}
    found = {node.text} if node.kind in ("name", "call") else set()
    return found.union(*map(whole_names, node.parts)) if node.parts else found


def _letters(sides: Sequence[Sequence[Token]]) -> set[str]:
    found = set()
    for side in sides:
        for token in side:
            if token.kind == "name":
                found.add(token.text)
            for inner in token.inner:
                found |= _letters([inner])
    return found


def _single(node: Node) -> str:
    """The name of a side that is one name, with a number as an index or without."""
    if node.kind == "name":
        return node.text
    if node.kind == "index" and len(node.parts) == 2 and node.parts[1].kind == "number":
        return f"{node.text}_{node.parts[1].text}"
    if node.kind == "index" and len(node.parts) == 2 and node.parts[1].kind == "name":
        letter = node.parts[1].text
        if letter not in INDICES or (letter == "k" and node.text in ("d", "D", "n", "N")):  # d_h, d_k
            return f"{node.text}_{letter}"
    return ""


def _is_value(node: Node) -> bool:
    if node.kind == "transpose":
        node = node.parts[0]
    if node.kind in ("vector", "matrix"):
        return all(_is_value(part) or value(part) is not None for part in node.parts)
    return node.closed and not any(part.kind in ("dots", "mixed") for part in node.walk())


def _last_names(before: str) -> list[str]:
    found = re.findall(r"\$\s*\\?(?:mathbf\{)?([A-Za-z]+)\}?(?:_\{?[a-z]\}?)?\s*\$|\b([a-z])_[a-z]\b", before)
    return [next(filter(None, found[-1]))] if found else []


def _bind_law(
    names: list[str], side: Sequence[Token], place: tuple[int, int, int, int, int], scope: Scope, text: str = "law"
) -> None:
    side = list(side)
    law = None
    if (other := other_law(side)) is not None:
        for name in names:
            scope.add(Binding(name, "law", *place, node=other, text=text))
        return
    if len(side) > 3 and side[0].text == "N" and side[1].text == "(":
        depth, inside, rest = 0, [], []
        for place_, token in enumerate(side[1:], start=1):
            if token.kind == "sign" and token.text == "(":
                depth += 1
                if depth == 1:
                    continue
            if token.kind == "sign" and token.text == ")":
                depth -= 1
                if not depth:
                    rest = side[place_ + 1 :]
                    break
            inside.append(token)
        parts = split_commas(inside)
        rest = [token for token in rest if token.kind != "word"]
        if rest and rest[0].text == "I" and len(parts) == 2:  # N(0, s) I_D, with the identity outside
            parts[1], rest = [Token("sign", "("), *parts[1], Token("sign", ")"), *rest], []
        if len(parts) == 2 and not [token for token in rest if token.kind != "sign"]:
            try:
                law = (Parser(parts[0]).side(), Parser(parts[1]).side())
            except Unread:
                law = None
    for part in law[1].walk() if law else ():
        if part.kind == "index" and part.text == "I" and part.parts[1].kind == "name":
            scope.sizes[part.parts[1].text] += 1
    for name in names:
        if law is None:
            scope.add(Binding(name, "no law", *place))
        else:
            scope.add(Binding(name, "law", *place, law=law, text=text))


def small_whole(node: Node, most: int = 60) -> int | None:
    """A whole number that is written out, if it is small."""
    found = value(node)
    return int(found) if found is not None and found.denominator == 1 and abs(found) <= most else None


ONE = Fraction(1)
