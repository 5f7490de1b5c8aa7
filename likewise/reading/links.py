"""A statement as claims: one for each of its links, or the reason why there is none.

A link with two possible readings (a printed decimal that is rounded or cut, 3 1/2 as a sum or a product, a share in per
cent) becomes several claims; they must agree.
"""

import copy
import re
from collections.abc import Collection, Sequence
from dataclasses import replace
from fractions import Fraction

from likewise.reading.arithmetic import (
    closed,
    congruence,
    decimal,
    ends_open,
    printed_number,
    require_units,
    tolerances,
)
from likewise.reading.chances import random_names
from likewise.reading.declared import space
from likewise.reading.earlier import put_back, restated
from likewise.reading.expressions import ELEMENTARY, Node
from likewise.reading.identities import alike, differ, expands, factors, skeleton, turned
from likewise.reading.latex import Unread
from likewise.reading.link import CONDITION, DEFINED, EQUATION, Reading, claim_text
from likewise.reading.names import Draft
from likewise.reading.orders import grows, of_sizes, order_of, polynomial
from likewise.reading.rows import (
    Misfit,
    Table,
    defined_before,
    in_space,
    layouts,
    misfit_claim,
    shape,
    split_letters,
    uses_rows,
)
from likewise.reading.scope import (
    INDEPENDENT,
    Binding,
    Condition,
    Scope,
    flat_names,
    head_name,
    is_polynomial,
    stands_for,
    whole_names,
)
from likewise.reading.statements import COMPARISONS, SEVERAL, Said
from likewise.reading.writing import Unfit, Writer, all_names, decimals, free_index

OPAQUE = "a similarity as it is defined, beside a map that may be any"
WORDED = re.compile(
    r"[\s,(]*(?:only )?(?:if|when|unless|provided|assuming|as long as|otherwise)\b(?P<clause>[^.;\n]*)", re.I
)


def readings(said: Said, scope: Scope, earlier: Sequence[Said]) -> list[Reading]:
    """The readings of all links of a statement."""
    found = []
    for place, relation in enumerate(said.relations):
        left, right = said.nodes[place], said.nodes[place + 1]
        try:
            found.append(_reading(said, scope, place, relation, left, right))
        except Unread as reason:
            found.append(Reading(place + 1, refusal=str(reason)))
        except RecursionError:
            found.append(Reading(place + 1, refusal="nested too deeply"))
    again = restated(said, scope, earlier)
    if again is not None:
        found = [again, *(found if found[0].claims else found[1:])]
    return [*found, *filter(None, [put_back(said, scope, earlier), _obliged(said, scope, earlier)])]


def defines(said: Said, scope: Scope) -> str:
    """The name that the first link of a statement binds, if it does."""
    for listed in scope.bindings.values():
        for binding in listed:
            if binding.number == said.number and binding.kind in ("value", "function", "type", "law"):
                return binding.name
    return ""


def _reading(said: Said, scope: Scope, place: int, relation: str, left: Node | Unread, right: Node | Unread) -> Reading:
    if relation == "in" and isinstance(left, Node) and (uses_rows(left) or _of_rows(said, scope, left, left)):
        return _in_space(said, scope, place, left)
    if relation not in COMPARISONS and relation != "equiv":
        raise Unread(
            {"->": "an arrow", "in": "a set", "sim": "about, or a law"}.get(relation, f"the relation {relation}")
        )
    for side in (left, right):
        if isinstance(side, Unread):
            raise Unread(str(side))
    assert isinstance(left, Node)
    assert isinstance(right, Node)
    if uses_rows(right) or uses_rows(left) or _of_rows(said, scope, left, right):
        return _rowed(said, scope, place, relation, left, right)
    by_hand = said.role == "definition" and said.read_as
    if place == 0 and (by_hand or defines(said, scope) or _defined_here(said, scope)):
        raise Unread(DEFINED)
    if said.modulus or relation == "equiv":
        return congruence(said, place, left, right)
    if ends_open(said, place):
        raise Unread("a quotient with a remainder, or a number that goes on in words")
    if any(part.kind == "order" for side in (left, right) for part in side.walk()):
        return order_of(said, scope, place, left, right)
    require_units(said, place)
    if relation == "approx" and not (left.closed or right.closed) and of_sizes(left, scope) and of_sizes(right, scope):
        return grows(said, scope, place, left, right, "Theta")
    if left.closed and right.closed:
        return closed(said, scope, place, relation, left, right)
    return _general(said, scope, place, relation, left, right)


def _defined_here(said: Said, scope: Scope) -> bool:
    """Whether a statement is the one that its left side, a name, is defined by."""
    first = said.nodes[0]
    name = head_name(first) if isinstance(first, Node) else ""
    return (
        bool(name)
        and any(
            condition.number == said.number and condition.role == "definition" and condition.relation == "=="
            for condition in scope.conditions
        )
        and Writer(scope, said).definition(name) is None
    )


def _of_rows(said: Said, scope: Scope, left: Node, right: Node) -> bool:
    """Whether a side only names what was defined as a sum of rows: `V'_i = S_i / Z_i`."""
    return any(
        part.kind in ("name", "index")
        and any(
            each.node is not None
            and each.number < said.number
            and uses_rows(each.node)
            and each.turn == said.formula.turn
            for each in scope.bindings.get(f"={stands_for(part)}", ())
        )
        for side in (left, right)
        for part in side.walk()
    )


def _rowed(said: Said, scope: Scope, place: int, relation: str, left: Node, right: Node) -> Reading:
    """Between sums of rows by an index, in the layouts that the text allows."""
    if relation not in ("==", ":=", "approx"):
        raise Unread("an inequality between rows")
    key = stands_for(left) if place == 0 else ""
    prior = defined_before(scope, key, said) if key and relation != "approx" else None
    if relation == "approx" and not key:
        raise Unread("an approximation that no law explains")
    ways, stated = layouts(scope, said)
    fitting: dict[str, tuple[Table, bool]] = {}
    misfits: dict[str, None] = {}
    refused: Unread | None = None
    split = next(iter([*split_letters(left), *split_letters(right)]), "")
    apart = prior is not None  # then both sides may follow conventions of their own
    alone = False
    for way in ways:
        table = Table(scope, said, way, split=split)
        try:
            other = table.value(right)
            alone = True
            if key and prior is None:
                fitting.setdefault(_rows_claim(table, f"{other.text} has shape [{shape(other)}]"), (table, True))
                continue
            one = table.value(prior.node if prior is not None and prior.node is not None else left)
            if prior is not None:
                table.bindings[key] = prior
            if one.form[1:] != other.form[1:]:  # a row beside the column that it is the transpose of: let pass
                if not (one.form and other.form):
                    raise Unread("sides of different shapes")
                raise Misfit(one.form, other.form, sides=True)
            sure = [f"{each} != 0" for each in table.divisors]
            same = one.text == other.text and not split
            fitting.setdefault(_rows_claim(table, f"{one.text} == {other.text}", sure), (table, same))
        except Misfit as found:
            misfits.setdefault(misfit_claim(found))
        except Unread as reason:
            refused = reason
    if refused is not None and not fitting:
        raise refused
    if not fitting and apart and alone:
        raise Unread("rows here, columns where it was defined")
    conventions = tuple(
        Binding("layout", "layout", -1, each.line, 0, each.turn, text=f"{each.what} are {each.kind}s")
        for each in stated
    )
    open_ = _by_role(said)
    if said.hedged:
        open_.append(said.hedged)
    if refused is not None:
        open_.append("another layout was not read")
    if WORDED.match(said.formula.after):
        open_.append("a condition follows in words")
    if not fitting:
        return Reading(place + 1, tuple(misfits), bindings=conventions, open=tuple(open_), notes=("no layout fits",))
    plain = {text: each for text, each in fitting.items() if "outer(" not in text}
    if plain and len(plain) < len(fitting) and not stated:
        fitting = plain  # a^T b is a dot product, unless the text says otherwise
    tables = [table for table, _ in fitting.values()]
    known = any(table.opaque and table.similar for table in tables)
    if known and not all(same for _, same in fitting.values()):
        raise Unread(OPAQUE)
    bindings = {name: each for table in tables for name, each in table.bindings.items()}
    if any(table.opaque and scope.bindings.get(name.partition("_")[0]) for table in tables for name in table.given):
        open_.append("a map is defined, and was read as any map")
    if prior is not None and prior.section != said.formula.section:
        open_.append(f"{left.text} was said to be another in line {prior.line}")
    chosen = len(ways) > 1
    return Reading(
        place + 1,
        tuple(fitting),
        bindings=(*bindings.values(), *conventions),
        open=tuple(open_),
        notes=("the layout is not stated: as the formula needs it",) if chosen else (),
        trivial=all(same for _, same in fitting.values()) and (chosen or prior is not None),
    )


def _in_space(said: Said, scope: Scope, place: int, left: Node) -> Reading:
    r"""`\sum_j \phi(K_j) V_j \in \mathbb{R}^{M \times D}`: the shape, in the layouts that the text allows."""
    dims = space(said.sides[place + 1])
    if dims is None:
        raise Unread("a set")
    if left.kind in ("name", "call") or (left.kind == "index" and not _of_rows(said, scope, left, left)):
        raise Unread("a declaration")
    ways, stated = layouts(scope, said)
    fitting, misfits, other = {}, {}, False
    for way in ways:
        table = Table(scope, said, way)
        try:
            found = table.value(left)
            text = in_space(found, dims, table.given)
            if text is None:
                other = True
                continue
            table.sizes |= dict.fromkeys(size for size in dims if size.isidentifier())
            fitting.setdefault(_rows_claim(table, text), table)
        except Misfit as found_:
            misfits.setdefault(misfit_claim(found_))
    bindings = tuple(
        Binding("layout", "layout", -1, each.line, 0, each.turn, text=f"{each.what} are {each.kind}s")
        for each in stated
    )
    if fitting:
        return Reading(place + 1, tuple(fitting), bindings=bindings, trivial=len(ways) > 1, open=("a shape",))
    if other or not misfits:
        raise Unread("a shape of another rank")
    return Reading(place + 1, tuple(misfits), bindings=bindings, notes=("no layout fits",))


def _rows_claim(table: Table, text: str, assumed: Sequence[str] = ()) -> str:
    said = " ".join([text, *assumed])
    given = [f"{name} {kind}" for name, kind in table.given.items() if re.search(rf"\b{name}\b", said)]
    used = set(re.findall(r"\w+", " ".join([said, *(each.partition(" ")[2] for each in given)])))
    sizes = [size for size in table.sizes if size in used]
    lines = [f"sizes: {', '.join(sizes)}"] if sizes else []
    lines += [f"given: {'; '.join(given)}"] if given else []
    lines += [f"assume: {'; '.join(assumed)}"] if assumed else []
    return "\n".join([*lines, f"assert: {text}"])


def _general(said: Said, scope: Scope, place: int, relation: str, left: Node, right: Node) -> Reading:
    """Between expressions with names; a name that is a vector elsewhere in the chapter may be a number here."""
    writer = Writer(scope, said)
    try:
        return _written(writer, said, scope, place, relation, left, right)
    except Unfit as found:
        declared = {name: each for name, each in writer.draft.bindings.items() if each.kind == "type"}
        open_ = (*_by_role(said), *([said.hedged] if said.hedged else []))
        return Reading(
            place + 1, (found.claim,), bindings=tuple(declared.values()), open=open_, notes=("no such product",)
        )
    except Unread as reason:
        names = {name for name in writer.draft.inferred if _argument(name, left, right)}
        for numbers, implied in ((names, True), (names, False)):
            if not numbers and implied:
                continue
            writer = Writer(scope, said)
            writer.numbers, writer.implied = numbers, implied
            try:
                return _written(writer, said, scope, place, relation, left, right)
            except Unread:
                pass
        raise reason


def _for_all(said: Said, scope: Scope, place: int, left: Node, right: Node) -> bool:
    """Whether an equation between names that nothing binds is said of all their values."""
    if EULER & (left.names | right.names):
        return False
    if expands(left, right) or factors(left, right) or alike(left, right) or turned(left, right):
        return True
    names = left.names - ELEMENTARY.keys()
    long = place > 1 or said.continued or bool(place and REWRITES.search(said.formula.before[-60:]))
    rewritten_ = long and left.kind != "name" and names == right.names - ELEMENTARY.keys()
    rewritten_ = rewritten_ and skeleton(left) != skeleton(right)
    called = any(part.kind == "call" and part.text not in ELEMENTARY for part in left.walk())
    return bool(rewritten_ and names and not called and not any(tied(name, said, scope) for name in names))


REWRITES = re.compile(r"\b(?:simplif|expand|factor|rewrit|combin|collect)", re.I)


def tied(name: str, said: Said, scope: Scope) -> bool:
    """Whether an earlier equation of the turn restricts a name: its value, or an equation that only names in it solve.

    What says what another name stands for, `y = 2x` or `f(x) = ax`, restricts nothing.
    """
    for each in scope.said[: said.number]:
        if each.formula.turn != said.formula.turn or each.formula.chapter not in (0, said.formula.chapter):
            continue
        if (
            each.hedged == SEVERAL
            or each.formula is said.formula
            or name not in each.names
            or "==" not in each.relations
        ):
            continue
        first = each.nodes[0]
        if not isinstance(first, Node) or first.kind in ("call", "grad", "E", "Var"):
            continue
        other = head_name(first)
        if other and other != name and each.nodes[0] == first and other not in whole_names_of(each):
            continue
        if other == name and each.formula.section != said.formula.section and _valued(each):
            continue  # a value of another section
        return True
    return False


def whole_names_of(each: Said) -> set[str]:
    """The names of all sides but the first."""
    return {name for node in each.nodes[1:] if isinstance(node, Node) for name in whole_names(node)}


def _valued(each: Said) -> bool:
    return isinstance(each.nodes[-1], Node) and each.nodes[-1].closed


def _argument(name: str, left: Node, right: Node) -> bool:
    """Whether a name is only ever the argument of functions or a number beside them, on both sides."""
    sides = [part for side in (left, right) for part in side.walk()]
    used = any(part.kind == "call" and Node("name", text=name) in part.parts for part in sides)
    vector = any(
        part.kind in ("transpose", "norm", "index") and part.parts[0] == Node("name", text=name) for part in sides
    )
    return used and not vector


def _written(writer: Writer, said: Said, scope: Scope, place: int, relation: str, left: Node, right: Node) -> Reading:
    writer.expected = relation == "approx" or any(
        part.kind in ("E", "Var") for side in (left, right) for part in side.walk()
    )
    declared = [
        (binding.turn == said.formula.turn, binding.number, binding.dims[0])
        for name in sorted(left.names | right.names)
        if (binding := scope.kind(name, "type", said)) is not None and len(binding.dims) == 1
    ]
    here, latest, writer.usual = max(declared, default=(False, -1, scope.default_size()))
    writer.turn = next((each.formula.turn for each in scope.said if each.number == latest), said.formula.turn)
    writer.here = here or bool(declared)
    if writer.usual in left.names | right.names and scope.is_vector(writer.usual, said):
        writer.usual = next(size for size in ("D", "d", "n", "m") if size not in left.names | right.names)
    writer.moments = random_names(scope, left, right)
    letters = free_index(left) | free_index(right)
    known = {part for part in letters if scope.bindings.get(part)}
    if len(letters) == 1 and not known:
        writer.running = writer.entry = next(iter(letters))
    if len(letters) == 2 and not known:
        rows, columns = dict.fromkeys(
            letter for side in (left, right) for letter in _in_order(side) if letter in letters
        )
        one, other = writer.grid(left, rows, columns), writer.grid(right, rows, columns)
        kind = second = ("mat",)
    else:
        (one, kind), (other, second) = writer.text(left), writer.text(right)
    if not writer.draft.bindings and not kind and not second:
        if relation not in ("==", ":=", "approx"):
            raise Unread(CONDITION)
        if differ(left, right):
            if not (relation == "==" and said.role == "assertion" and _for_all(said, scope, place, left, right)):
                raise Unread(EQUATION)
            writer.draft.every |= writer.draft.free
    bare = (left.kind == "name" and right.closed) or (right.kind == "name" and left.closed)
    if bare and relation not in ("==", ":=", "approx") and not writer.draft.definitions:
        raise Unread(CONDITION)  # `c > 0` of a number that is only declared
    if place == 0 and right.closed and head_name(left) and writer.draft.given and not writer.draft.bindings:
        raise Unread(EQUATION)  # `s_w^2 = 2/512`: a value
    near: list[Fraction] = []
    if relation == "approx" and not writer.draft.given and not writer.draft.sizes and not kind and not second:
        near, relation = tolerances("approx", left, right, percent=True), "=="
    if relation == "approx":
        one, other = _estimated(writer, left, right, one, other)
        relation = "=="
    if kind != second:
        if writer.running and () in (kind, second):
            pass  # an entry against a number: for every entry
        else:
            raise Unread("sides of different shapes")
    if kind and kind[0] == "row":
        pass
    draft = writer.draft
    firm, loose, left_out = _conditions(said, scope, writer, left, right)
    signs = _signs(said, scope, draft)
    firm += [each for texts in signs.values() for each in texts if each not in firm]
    reasons = [*_unbound(said, scope, draft, left, right, signs), *left_out][:3]
    text = f"{one} {'==' if relation == ':=' else relation} {other}"
    assumptions = ["sigma > 0"] if draft.given.get("sigma") == "in R" else []
    assumptions += [
        f"{name} != 0"
        for name in sorted(draft.divisors)
        if draft.given.get(name) == "in R" or (name in draft.definitions and not value_of(name, draft))
    ]
    exact, about = _about_sizes(said, scope, draft)
    assumptions += exact
    loose += about
    assumptions = list(dict.fromkeys([*assumptions, *draft.assumed, *firm]))
    if one == other or text in firm:
        return Reading(
            place + 1, (claim_text(draft, text, assumptions),), trivial=True, bindings=tuple(draft.bindings.values())
        )
    nonzero = [each for each in draft.nonzero if each not in assumptions]
    texts = tuple(f"{text} within {decimal(each)}" for each in near) or (text,)
    if not near and relation == "==" and not draft.free and not draft.given and not kind:
        unit = Fraction(0)
        for side in (left, right):
            plain = printed_number(side)
            if plain is not None and "." in plain.text:
                unit = Fraction(1, 10 ** len(plain.text.partition(".")[2]))
        rough = [half for binding in draft.bindings.values() if binding.node for _, half in decimals(binding.node)]
        if unit or rough:
            wide = unit + sum(rough, Fraction(0)) * 100
            texts = (f"{text} within {decimal(unit / 2)}" if unit else text, f"{text} within {decimal(wide)}")
    return Reading(
        place + 1,
        tuple(claim_text(draft, each, assumptions) for each in texts),
        bindings=tuple(draft.bindings.values()),
        also=(claim_text(writer.draft, text, [*assumptions, *loose]),) if loose else (),
        defined=tuple(claim_text(draft, each, [*assumptions, *nonzero]) for each in texts) if nonzero else (),
        open=tuple(reasons),
        notes=tuple(draft.notes),
    )


def value_of(name: str, draft: Draft) -> bool:
    """Whether a definition is a vector, a function or a number that is written out."""
    binding = draft.bindings.get(name)
    return binding is None or binding.node is not None


def _estimated(writer: Writer, left: Node, right: Node, one: str, other: str) -> tuple[str, str]:
    """A random estimate on one side: its expectation is the other."""
    random = [any(writer.has_law(name) for name in all_names(side, writer.scope, writer.at)) for side in (left, right)]
    if random == [True, False]:
        return f"E[{one}]", other
    if random == [False, True]:
        return one, f"E[{other}]"
    raise Unread("an approximation that no law explains")


def _unbound(said: Said, scope: Scope, draft: Draft, left: Node, right: Node, signs: Collection[int] = ()) -> list[str]:
    """Why a refutation would not count."""
    functions = [
        binding for binding in draft.bindings.values() if binding.kind == "function" and binding.node is not None
    ]
    bodies = {
        name for binding in functions if binding.node is not None for name in binding.node.names
    } - ELEMENTARY.keys()
    vectors = any("R^" in kind or "I(" in kind for kind in draft.given.values())
    spoken = whole_names(left) | whole_names(right) | left.names | right.names
    reasons = [
        f"nothing binds {name}"
        for name in sorted(draft.free)
        if not (vectors and name in bodies)
        and not (name in spoken and any(name in _law_names(binding) for binding in draft.bindings.values()))
        and name not in draft.every
        and not _any_number(name, said, scope, draft, left, right)
        and not _constant(name, said, scope, functions, left, right)
    ]
    reasons += draft.unsure
    reasons += [
        f"{name} was said to be something in line {each.formula.line}"
        for name in sorted(draft.inferred)
        for each in scope.heads.get(name, ())[:1]
        if each.number < said.number and each.formula.turn == said.formula.turn  # in an earlier chapter, too
    ]
    reasons += [
        f"{name} is the unknown of an equation"
        for name in sorted(draft.bindings)
        if (said.formula.turn, said.formula.section, name) in scope.solved and draft.given.get(name) == "in R"
    ]
    near = {each.number for each in scope.about(draft.free, said)} | set(signs)
    reasons += [  # a bandwidth that is set in another turn or section is still set
        f"the condition in line {each.line} was left out"
        for each in scope.visible(said)
        if each.names & draft.free and each.number not in near and not each.about_growth
    ][:1]
    reasons += [
        f"{binding.name} is a result of line {binding.line}"
        for binding in draft.bindings.values()
        if binding.kind == "value" and not binding.stated
    ]
    if not vectors:
        reasons += [f"{binding.name} may be defined elsewhere" for binding in functions if not _only(binding, scope)]
    reasons += [
        f"{binding.name} was defined in another turn, line {binding.line}"
        for binding in functions
        if binding.turn != said.formula.turn
        and left.kind == "call"
        and left.text == binding.name
        and "approx" not in said.relations
    ]
    reasons += [
        f"{binding.name} was defined in another section, line {binding.line}"
        for binding in functions
        if binding.turn == said.formula.turn
        and binding.chapter not in (0, said.formula.chapter)
        and "_" not in binding.name  # K_Gauss and sim_softmax are said of one thing only
    ]
    loose = [name for name in draft.given if name.startswith("mean_")]
    around = " ".join((said.formula.earlier, said.formula.before, said.formula.after))
    if len(loose) > 1 and not INDEPENDENT.search(around):
        reasons.append("whether they are independent is not said")
    unequal = set(said.relations) & {"<", "<=", ">", ">="} and not (left.closed or right.closed)
    if unequal and not SAID_OF_ALL.search(said.formula.before):
        reasons.append("an inequality that may only say which case is meant")
    if vectors and LIMITED.search(said.formula.earlier[-120:] + said.formula.before):
        reasons.append("a condition stands in words")
    if said.hedged:
        reasons.append(said.hedged)
    worded = WORDED.match(said.formula.after)
    if worded and not re.search(r"[$\\=<>]", worded["clause"]):
        reasons.append("a condition follows in words")
    return list(dict.fromkeys(reasons + _by_role(said)))


SAID_OF_ALL = re.compile(
    r"\b(?:always|all|any|every|never|at most|at least|bound\w*|hence|thus|so|therefore|then|inequality|holds?|have|"
    r"get|implies|since|because|follows|means|gives?|yields?)\b",
    re.I,
)
LIMITED = re.compile(
    r"\b(?:unit[- ](?:vectors?|norms?|length|variance)|normali[sz]ed|ortho(?:gonal|normal)|symmetric|invertible"
    r"|definite|uncorrelated|cent(?:er|re)d|zero[- ]mean)\b",
    re.I,
)


def _by_role(said: Said) -> list[str]:
    """Why a refutation would not count, as far as the role of the statement says so."""
    return [f"it is a {said.role}"] if said.role in ("condition", "requirement") else []


def _law_names(binding: Binding) -> set[str]:
    """The parameters of a law: any numbers that it allows."""
    if binding.law:
        return binding.law[0].names | binding.law[1].names
    return binding.node.names if binding.kind == "law" and binding.node else set()


EULER = {"e", "i"}  # numbers of their own, unless something binds them
SOLVES = re.compile(
    r"\b(?:solv\w+|roots?|equations?|intersect\w*|unknown|stationary|critical|minimi\w+|maximi\w+)\b", re.I
)


def _any_number(name: str, said: Said, scope: Scope, draft: Draft, left: Node, right: Node) -> bool:
    """Whether a name that nothing declares is the argument of a function: what is said holds for every value.

    Not where an equation is solved: a side without a name, a value for the name elsewhere, or the words that say so.
    """
    if (
        name not in draft.varied
        or name in EULER
        or Node("name", text=name) in (left, right)
        or left.closed
        or right.closed
        or (said.formula.turn, said.formula.section, name) in scope.solved
    ):
        return False
    set_ = any(
        each.turn == said.formula.turn and each.kind in ("value", "removed") and not each.spot
        for each in scope.bindings.get(name, ())
    )
    return not set_ and not SOLVES.search(said.formula.earlier + said.formula.before)


def _constant(name: str, said: Said, scope: Scope, functions: list[Binding], left: Node, right: Node) -> bool:
    """Whether a name that nothing declares is a constant, of which what is said holds whatever it is.

    It stands in a mean, a variance or a derivative, or in a function as it is defined, and nothing ties it.
    """
    parts = [part for side in (left, right) for part in side.walk()]
    if name not in left.names | right.names | whole_names(left) | whole_names(right):
        return False
    moments = any(part.kind in ("E", "Var", "grad") or part.text.endswith("_prime") for part in parts)
    inside = name in left.names | right.names and any(
        each.node is not None and name in whole_names(each.node) for each in functions
    )
    if not (moments or inside) or Node("name", text=name) in (left, right):
        return False
    if name in EULER or left.closed or right.closed or (said.formula.turn, said.formula.section, name) in scope.solved:
        return False
    return not tied(name, said, scope) and not SOLVES.search(said.formula.earlier + said.formula.before)


def _in_order(node: Node) -> list[str]:
    """Index letters in the order in which they are written."""
    return [part.text for each in node.walk() if each.kind == "index" for part in each.parts[1:] if part.kind == "name"]


def _conditions(
    said: Said, scope: Scope, writer: Writer, left: Node, right: Node
) -> tuple[list[str], list[str], list[str]]:
    """Stated conditions on the names of a claim: assumed, perhaps meant, and those that could not be written.

    Assumed are those of the same sentence, and those that are said to last. Of others nobody knows how far they reach.
    """
    draft = writer.draft
    nodes = [node for each in draft.bindings.values() for node in (each.node, *(each.law or ())) if node is not None]
    own = {name for node in (left, right, *nodes) for name in whole_names(node)} - ELEMENTARY.keys()
    own |= draft.given.keys() | draft.definitions.keys()
    vectors = any("R^" in kind or "I(" in kind for kind in draft.given.values())
    fixed = set(draft.definitions)
    used = {said.number, *(binding.number for binding in draft.bindings.values())}
    firm: list[str] = []
    loose: list[str] = []
    reasons = []
    for condition in sorted(scope.about(own, said), key=lambda each: not each.reaches(said)):
        if condition.opens and condition.number > said.number and condition.sentence != said.formula.sentence:
            continue  # "With x = 1 we get ..", further on
        if condition.number in used or condition.names <= fixed | set(scope.sizes) | scope.counts:
            continue
        if condition.about_growth:
            continue  # it restricts no value
        later = condition.number > said.number and condition.sentence != said.formula.sentence
        renamed = condition.nodes and head_name(condition.nodes[0]) in fixed
        if later and renamed and condition.role == "definition":
            continue  # the name is used anew further on
        if not _restricts(condition, own) and (vectors or _names_anew(condition, own)):
            continue
        if condition.sides and all(map(is_polynomial, condition.sides)) and condition.names & own <= draft.sizes.keys():
            continue  # among the assumptions, or about other sizes
        if condition.names & own <= fixed:
            continue
        if not condition.reaches(said) and writer.draft is draft:
            writer.draft = copy.deepcopy(draft)  # what may be meant is not shown in the claim
        try:
            varied = set(writer.draft.varied)
            texts = _assumed(condition, writer)
            writer.draft.varied = varied
        except Unread:
            reasons.append(f"the condition in line {condition.line} was left out")
            continue
        if condition.reaches(said):
            firm += texts
            place = (condition.number, condition.line, condition.section, condition.turn)
            draft.bindings[f"condition {condition.number}"] = Binding(
                "condition", "condition", *place, text="; ".join(texts)
            )
        else:
            loose += texts
    return firm, loose, reasons


def _signs(said: Said, scope: Scope, draft: Draft) -> dict[int, list[str]]:
    """Bounds of one number that another section of the turn lets last, "let s > 0", as assumptions."""
    found = {}
    for each in scope.visible(said):
        (name,) = each.names if len(each.names) == 1 else ("",)
        if (
            each.turn != said.formula.turn
            or draft.given.get(name) != "in R"
            or not set(each.relations) <= {"<", "<=", ">", ">="}
        ):
            continue
        plain = all(node.closed or node == Node("name", text=name) for node in each.nodes) and each.nodes
        if not plain or not each.lasting or each.number > said.number or each.withdrawn:
            continue
        writer = Writer(scope, said)
        try:
            texts = [writer.number(node) if node.closed else name for node in each.nodes]
        except Unread:
            continue
        found[each.number] = [
            f"{one} {sign} {other}" for one, sign, other in zip(texts, each.relations, texts[1:], strict=False)
        ]
        place = (each.number, each.line, each.section, each.turn)
        text = "; ".join(found[each.number])
        draft.bindings[f"condition {each.number}"] = Binding("condition", "condition", *place, text=text)
    return found


def _assumed(condition: Condition, writer: Writer) -> list[str]:
    """The links of a condition in the language of claims."""
    if not condition.nodes or not set(condition.relations) <= {"==", "<", "<=", ">", ">=", "!="}:
        raise Unread("a condition that no assumption says")
    if any(part.kind in ("E", "Var", "order") for node in condition.nodes for part in node.walk()):
        raise Unread("a condition about chance")
    sides = [writer.text(node) for node in condition.nodes]
    if len({kind for _, kind in sides}) > 1 or sides[0][1][:1] == ("row",):
        raise Unread("sides of different shapes")
    texts = [text for text, _ in sides]
    return [f"{one} {sign} {other}" for one, sign, other in zip(texts, condition.relations, texts[1:], strict=False)]


def _about_sizes(said: Said, scope: Scope, draft: Draft) -> tuple[list[str], list[str]]:
    """Stated conditions on the sizes of a claim: its assumptions, and what is said to hold about, `R ~ D`."""
    found: list[str] = []
    about: list[str] = []
    signs = {"gg": ">=", "ll": "<=", "sim": "==", "approx": "=="}
    for condition in scope.about(draft.sizes, said):
        if condition.sides is None or condition.number == said.number or not all(map(is_polynomial, condition.sides)):
            continue
        names: set[str] = set()
        try:
            left, right = (polynomial(side, names) for side in condition.sides)
        except Unread:
            continue
        if names <= draft.sizes.keys():
            (about if condition.relation in signs else found).append(
                f"{left} {signs.get(condition.relation, condition.relation)} {right}"
            )
    return list(dict.fromkeys(found)), list(dict.fromkeys(about))


def _restricts(condition: Condition, names: set[str]) -> bool:
    """Whether a condition says something about the values of these names, not about functions or a new name."""
    if condition.sides is None:
        return True
    left, right = condition.sides
    bare = left.parts[0] if left.kind == "^" else left
    if bare.kind in ("name", "index") and condition.relation == "==" and not flat_names(bare) & names:
        return False  # it says what another name stands for
    called = {part.text for side in condition.sides for part in side.walk() if part.kind == "call"} - ELEMENTARY.keys()
    return not called or right.closed  # an identity of functions holds for every argument


def _names_anew(condition: Condition, names: set[str]) -> bool:
    """Whether a condition only says what a name stands for that the claim does not speak of, `p = f(x)`."""
    first = condition.sides[0] if condition.sides else None
    plain = first is not None and first.kind == "name" and condition.relation == "=="
    return plain and first is not None and first.text not in names


def _only(function: Binding, scope: Scope) -> bool:
    """Whether a function of numbers is defined once, by an expression of all its parameters."""
    assert function.node is not None
    bound = [each for each in scope.bindings[function.name] if each.kind in ("function", "no function")]
    return (
        (function.stated or len(function.name) > 1)
        and len(bound) == 1
        and set(function.parameters) <= function.node.names
    )


def _obliged(said: Said, scope: Scope, earlier: Sequence[Said]) -> Reading | None:
    """`we need f with f(q)^T f(k) = ...`, and here f is defined: what is needed of it, put to the test."""
    name = next(
        (
            each.name
            for listed in scope.bindings.values()
            for each in listed
            if each.number == said.number and each.kind == "function"
        ),
        "",
    )
    if not name or not scope.vectors or said.role in ("hypothesis", "question"):
        return None
    for before in reversed(earlier):
        if (before.formula.turn, before.formula.chapter) != (said.formula.turn, said.formula.chapter) or (
            before.nodes
            and isinstance(before.nodes[0], Node)
            and before.nodes[0].kind == "call"
            and before.nodes[0].text == name
        ):
            return None  # defined before: what was needed then was met or not then
        if before.role not in ("requirement", "condition") or before.relations != ("==",) or before.hedged:
            continue
        left, right = before.nodes
        if not isinstance(left, Node) or not isinstance(right, Node) or name in right.names:
            continue
        if not any(part.kind == "call" and part.text == name for part in left.walk()):
            continue
        try:
            found = _general(said, scope, 0, "==", left, right)
        except Unread:
            return None
        reasons = tuple(each for each in found.open if each not in _by_role(said))
        notes = (f"needed in line {before.formula.line}",)
        return replace(found, link=len(said.relations) + 1, open=reasons, notes=notes)
    return None
