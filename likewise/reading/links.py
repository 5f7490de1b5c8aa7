"""A statement as claims: one for each of its links, or the reason why there is none.

A link with two possible readings (a printed decimal that is rounded or cut, 3 1/2 as a sum or a product, a share in per
cent) becomes several claims; they must agree.
"""

import copy
import math
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import product

from likewise.reading.costs import Text, renamed, subject
from likewise.reading.costs import claim as program_claim
from likewise.reading.expressions import ELEMENTARY, Node, bits, number, rewritten, value
from likewise.reading.latex import Unread
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
    Binding,
    Condition,
    Fact,
    Scope,
    flat_names,
    head_name,
    is_polynomial,
    space,
    stands_for,
    whole_names,
)
from likewise.reading.statements import COMPARISONS, REMAINDER, SCALE, Said, role_of
from likewise.reading.writing import Draft, Writer, all_names, decimals, free_index

EQUATION = "an equation between names that nothing binds"
DEFINED = "a definition"
CONDITION = "an inequality between names that nothing binds"
WORDED = re.compile(
    r"[\s,(]*(?:only )?(?:if|when|unless|provided|assuming|as long as|otherwise)\b(?P<clause>[^.;\n]*)", re.I
)
OTHERWISE = re.compile(r"\W*\b(?:or|either|when|if|case|other|another|alternatively|for)\b", re.I)
DIGITS = 60  # of a number that is decided without a worker process
NEAR = Fraction(1, 20)  # an "about" that is further off than this, relative to the printed number, is wrong


@dataclass(frozen=True)
class Reading:
    """One link of a statement: the claims it may mean, and what they rest on; or a refusal."""

    link: int
    claims: tuple[str, ...] = ()  # readings that must agree; the first is shown
    refusal: str = ""
    bindings: tuple[Binding, ...] = ()
    also: tuple[str, ...] = ()  # the claim under conditions that may belong to it: refuted only if this is, too
    open: tuple[str, ...] = ()  # why a refutation would not count: names that nothing binds, conditions left out
    notes: tuple[str, ...] = field(default=(), compare=False)
    trivial: bool = False  # a definition repeated
    plain: bool = False  # between fractions of bounded size: no worker process is needed
    either: bool = False  # one of the claims suffices: logarithms whose base is not said


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
    more = [_put_back(said, scope, earlier), _obliged(said, scope, earlier)]
    return [*found, *filter(None, more)]


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
        return _congruence(said, place, left, right)
    if _ends_open(said, place):
        raise Unread("a quotient with a remainder, or a number that goes on in words")
    if any(part.kind == "order" for side in (left, right) for part in side.walk()):
        return _order(said, scope, place, left, right)
    _require_units(said, place)
    if (
        relation == "approx"
        and not (left.closed or right.closed)
        and _of_sizes(left, scope)
        and _of_sizes(right, scope)
    ):
        return _grows(said, scope, place, left, right, "Theta")
    if left.closed and right.closed:
        return _closed(said, scope, place, relation, left, right)
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
    tables = [table for table, _ in fitting.values()]
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


def _of_sizes(node: Node, scope: Scope) -> bool:
    r"""Whether a side is a product of sizes, as in a list of costs: `h \times b \times d`."""
    if not is_polynomial(node) or not scope.vectors:
        return False
    names = flat_names(node)
    return names <= scope.sizes.keys() | scope.counts or (
        all(len(name) == 1 or "_" in name for name in names) and any(part.kind == "product" for part in node.walk())
    )


def _ends_open(said: Said, place: int) -> bool:
    last = place == len(said.relations) - 1
    return last and bool(REMAINDER.match(said.formula.after) or SCALE.match(said.formula.after))


def _require_units(said: Said, place: int) -> None:
    """5 pairs = 5 * 2 is a conversion: a bare quantity whose unit the other side has not."""
    left, right = said.nodes[place], said.nodes[place + 1]
    assert isinstance(left, Node)
    assert isinstance(right, Node)
    units = [{part.text for part in side.walk() if part.kind == "unit"} for side in (left, right)]
    if units[0] and units[1] and units[0] != units[1]:
        raise Unread("units differ: a conversion")
    if left.kind == "unit" and not units[1] and left.text not in ("dollars", "degrees"):
        raise Unread("units differ: a conversion")


def _congruence(said: Said, place: int, left: Node, right: Node) -> Reading:
    if not said.modulus:
        raise Unread("a congruence without its modulus")
    from likewise.reading.expressions import Parser

    modulus, one, other = value(Parser(said.modulus).side()), value(left), value(right)
    if modulus is None or one is None or other is None or modulus.denominator != 1 or modulus <= 0:
        raise Unread("a congruence between names")
    if one.denominator != 1 or other.denominator != 1:
        raise Unread("a congruence between fractions")
    whole = (one - other) // modulus
    writer = Writer(Scope(), said)
    text = f"{writer.number(left)} - {writer.number(right)} == {modulus}*{whole}"
    return Reading(place + 1, (_claim(writer.draft, text),), notes=(f"{whole} is the whole part of the quotient",))


def _closed(said: Said, scope: Scope, place: int, relation: str, left: Node, right: Node) -> Reading:
    """Between numbers: exact, or to the printed digits."""
    if _running_total(said, place):
        raise Unread("= as an arrow: a running total")
    texts = []
    kinds = {part.kind for side in (left, right) for part in side.walk()}
    draft = Draft()
    bare = any(_bare_share(side) for side in (left, right))  # 0.2 * 100 = 20% is how many write a share
    spoken = {part.text for side in (left, right) for part in side.walk() if part.kind == "call"}
    bases = ("", "2", "10") if "log" in spoken and not _natural(said) else ("",)
    for percent, mixed, base in product(
        (True, False) if bare else (True,), (True, False) if "mixed" in kinds else (True,), bases
    ):
        writer = Writer(scope, said, percent=percent, mixed=mixed)
        writer.base = base
        one, other = writer.number(left), writer.number(right)
        draft = writer.draft
        if relation in ("==", ":=", "approx"):
            narrow, *wide = _tolerances(relation, left, right, percent)
            texts.append(f"{one} == {other}{f' within {_decimal(narrow)}' if narrow else ''}")
            bounds = _bounds(left, right, scope.exact) if relation != "approx" and wide else None
            if bounds is not None:
                low, high, printed = bounds
                texts.append(f"{_rounded(low, up=False)} <= {printed} <= {_rounded(high, up=True)}")
            else:
                texts += [f"{one} == {other} within {_decimal(each)}" for each in wide if each]
        else:
            texts.append(f"{one} {relation} {other}")
    return Reading(
        place + 1,
        tuple(dict.fromkeys(_claim(draft, text) for text in texts)),
        bindings=tuple(draft.bindings.values()),
        notes=tuple(draft.notes),
        plain=all(short(side) for side in (left, right)),
        either=len(bases) > 1,
    )


def _natural(said: Said) -> bool:
    r"""Whether every logarithm of a statement is written `\ln` or has a base."""
    return not re.search(r"\\?log(?!_)", said.formula.source)


def short(side: Node) -> bool:
    """Whether a side is a fraction of few digits, so that no step of its arithmetic is long."""
    found = value(side)
    return found is not None and max(abs(found.numerator), found.denominator) < 10**DIGITS


def _bare_share(side: Node) -> bool:
    while side.kind in ("neg", "group"):
        side = side.parts[0]
    return side.kind == "%"


def _tolerances(relation: str, left: Node, right: Node, percent: bool) -> list[Fraction]:
    """Half a unit of the last printed digit; and the widest that a careful reader would let pass."""
    unit = Fraction(0)
    for side in (left, right):
        plain = _printed(side)
        if plain is not None:
            digits = plain.text.partition(".")[2]
            scale = 100 if any(part.kind == "%" for part in side.walk()) and percent else 1
            if digits:
                unit = max(unit, Fraction(1, 10 ** len(digits) * scale))
            elif relation == "approx" or _is_fraction(left) or _is_fraction(right):
                unit = max(unit, Fraction(1, scale))
    one, other = value(left), value(right)
    spread = _spread(left) + _spread(right)
    if relation == "approx":
        size = (
            max(abs(each) for each in (one, other) if each is not None) if one is not None or other is not None else 1
        )
        return [max(unit, Fraction(1, 10**6)) / 2, max(unit + spread, size * NEAR)]
    if not unit and not spread:
        return [Fraction(0)]
    exact = one is not None and other is not None and one == other
    return [Fraction(0)] if exact else [unit / 2, unit + spread]


def _printed(side: Node) -> Node | None:
    """The number, if a side is one number with a sign or a unit."""
    while side.kind in ("neg", "unit", "%", "group"):
        side = side.parts[0]
    return side if side.kind == "number" else None


def _is_fraction(side: Node) -> bool:
    found = value(side)
    return found is None or found.denominator != 1


def _spread(side: Node) -> Fraction:
    """How far a computation with printed decimals may be off, if they were rounded."""
    if _printed(side) is not None:
        return Fraction(0)
    found = Fraction(0)
    centre = value(side)
    for printed, half in decimals(side):
        if centre is None:
            found += abs(printed) * half  # no fraction: a rough share
            continue
        moved = value(
            rewritten(
                side,
                lambda part, printed=printed, half=half: (
                    number(_decimal(printed + half))
                    if part.kind == "number" and "." in part.text and Fraction(part.text) == printed
                    else None
                ),
            )
        )
        found += abs(moved - centre) if moved is not None else abs(centre) * NEAR
    return found


def _bounds(left: Node, right: Node, exact: Collection[str]) -> tuple[Fraction, Fraction, str] | None:
    """Bounds for a printed number, if the decimals of the computation beside it were rounded, or itself was cut."""
    for side, other in ((left, right), (right, left)):
        printed, centre, plain = value(other), value(side), _printed(other)
        if plain is None or printed is None or centre is None or not decimals(side) or other.kind == "%":
            continue
        found = interval(side, exact)
        if found is not None and not any(part.kind in ("%", "mixed") for part in side.walk()):
            unit = Fraction(1, 10 ** len(plain.text.partition(".")[2]))
            cut = unit * Fraction(999_999, 1_000_000)  # what is cut off is less than a unit
            low, high = min(found[0] - unit / 2, centre - cut), max(found[1] + unit / 2, centre + cut)
            return low, high, str(printed)
    return None


def interval(node: Node, exact: Collection[str]) -> tuple[Fraction, Fraction] | None:
    """Bounds of closed arithmetic in which every decimal is rounded to its printed digits, but those that are exact."""
    if node.kind == "number":
        centre = Fraction(node.text)
        rounded = "." in node.text and node.text not in exact
        half = Fraction(1, 2 * 10 ** len(node.text.partition(".")[2])) if rounded else Fraction(0)
        return centre - half, centre + half
    ends = [found for part in node.parts if (found := interval(part, exact)) is not None]
    if len(ends) < len(node.parts) or any(bits(end) > DIGITS * 4 for pair in ends for end in pair):
        return None
    match node.kind:
        case "group" | "unit":
            return ends[0]
        case "neg":
            return -ends[0][1], -ends[0][0]
        case "+":
            return ends[0][0] + ends[1][0], ends[0][1] + ends[1][1]
        case "-":
            return ends[0][0] - ends[1][1], ends[0][1] - ends[1][0]
        case "product":
            found = ends[0]
            for other in ends[1:]:
                corners = [one * two for one in found for two in other]
                found = min(corners), max(corners)
            return found
        case "/" if ends[1][0] > 0 or ends[1][1] < 0:
            corners = [one / two for one in ends[0] for two in ends[1]]
            return min(corners), max(corners)
        case "^" if node.parts[1].kind == "number" and node.parts[1].text.isdigit() and int(node.parts[1].text) <= 12:
            corners = [end ** int(node.parts[1].text) for end in ends[0]]
            crosses = ends[0][0] < 0 < ends[0][1]
            return min([*corners, *([Fraction(0)] if crosses else [])]), max(corners)
    return None


def _rounded(exact: Fraction, *, up: bool) -> str:
    """A bound as a decimal of twelve digits, away from what it bounds."""
    scaled = exact * 10**12
    whole = -((-scaled.numerator) // scaled.denominator) if up else scaled.numerator // scaled.denominator
    sign = "-" if whole < 0 else ""
    return f"{sign}{abs(whole) // 10**12}.{abs(whole) % 10**12:012d}".rstrip("0").rstrip(".")


def _decimal(exact: Fraction) -> str:
    """A fraction as a decimal, rounded up if it does not end."""
    for digits in range(13):
        if (exact * 10**digits).denominator == 1:
            break
    else:
        exact = Fraction(-((-exact * 10**12) // 1), 10**12)
        digits = 12
    text = f"{int(exact * 10**digits):0{digits + 1}d}" if exact >= 0 else f"-{int(-exact * 10**digits):0{digits + 1}d}"
    return f"{text[:-digits]}.{text[-digits:]}" if digits else text


def _running_total(said: Said, place: int) -> bool:
    """`5 + 3 = 8 + 2 = 10`: a side that begins with the value of the one before, and more follows."""
    left, right = said.nodes[place], said.nodes[place + 1]
    assert isinstance(left, Node)
    assert isinstance(right, Node)
    before, whole = value(left), value(right)
    if before is None or whole is None or before == whole:
        return False
    first = right
    while first.kind in ("+", "-", "product", "/", "group", "unit"):
        first = first.parts[0]
        if value(first) == before:
            return True
    return False


def _general(said: Said, scope: Scope, place: int, relation: str, left: Node, right: Node) -> Reading:
    """Between expressions with names; a name that is a vector elsewhere in the chapter may be a number here."""
    writer = Writer(scope, said)
    try:
        return _written(writer, said, scope, place, relation, left, right)
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
        (binding.turn == said.formula.turn, binding.dims[0])
        for name in sorted(left.names | right.names)
        if (binding := scope.kind(name, "type", said)) is not None and len(binding.dims) == 1
    ]
    writer.here, writer.usual = max(declared, default=(False, scope.default_size()))
    if writer.usual in left.names | right.names and scope.is_vector(writer.usual, said):
        writer.usual = next(size for size in ("D", "d", "n", "m") if size not in left.names | right.names)
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
        if _differ(left, right):
            if not (relation == "==" and said.role == "assertion" and _expands(left, right)):
                raise Unread(EQUATION)
            writer.draft.varied |= writer.draft.free
    bare = (left.kind == "name" and right.closed) or (right.kind == "name" and left.closed)
    if bare and relation not in ("==", ":=", "approx") and not writer.draft.definitions:
        raise Unread(CONDITION)  # `c > 0` of a number that is only declared
    if place == 0 and right.closed and head_name(left) and writer.draft.given and not writer.draft.bindings:
        raise Unread(EQUATION)  # `s_w^2 = 2/512`: a value
    near: list[Fraction] = []
    if relation == "approx" and not writer.draft.given and not writer.draft.sizes and not kind and not second:
        near, relation = _tolerances("approx", left, right, percent=True), "=="
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
    reasons = [*_unbound(said, scope, draft, left, right), *left_out][:3]
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
            place + 1, (_claim(draft, text, assumptions),), trivial=True, bindings=tuple(draft.bindings.values())
        )
    texts = tuple(f"{text} within {_decimal(each)}" for each in near) or (text,)
    if not near and relation == "==" and not draft.free and not draft.given and not kind:
        unit = Fraction(0)
        for side in (left, right):
            plain = _printed(side)
            if plain is not None and "." in plain.text:
                unit = Fraction(1, 10 ** len(plain.text.partition(".")[2]))
        rough = [half for binding in draft.bindings.values() if binding.node for _, half in decimals(binding.node)]
        if unit or rough:
            wide = unit + sum(rough, Fraction(0)) * 100
            texts = (f"{text} within {_decimal(unit / 2)}" if unit else text, f"{text} within {_decimal(wide)}")
    return Reading(
        place + 1,
        tuple(_claim(draft, each, assumptions) for each in texts),
        bindings=tuple(draft.bindings.values()),
        also=(_claim(writer.draft, text, [*assumptions, *loose]),) if loose else (),
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


def _unbound(said: Said, scope: Scope, draft: Draft, left: Node, right: Node) -> list[str]:
    """Why a refutation would not count."""
    functions = [
        binding for binding in draft.bindings.values() if binding.kind == "function" and binding.node is not None
    ]
    bodies = {
        name for binding in functions if binding.node is not None for name in binding.node.names
    } - ELEMENTARY.keys()
    vectors = any("R^" in kind or "I(" in kind for kind in draft.given.values())
    reasons = [
        f"nothing binds {name}"
        for name in sorted(draft.free)
        if not (vectors and name in bodies)
        and not any(name in _law_names(binding) for binding in draft.bindings.values())
        and not _any_number(name, said, scope, draft, left, right)
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
    near = {each.number for each in scope.about(draft.free, said)}
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
    if said.hedged:
        reasons.append(said.hedged)
    worded = WORDED.match(said.formula.after)
    if worded and not re.search(r"[$\\=<>]", worded["clause"]):
        reasons.append("a condition follows in words")
    return list(dict.fromkeys(reasons + _by_role(said)))


def _by_role(said: Said) -> list[str]:
    """Why a refutation would not count, as far as the role of the statement says so."""
    return [f"it is a {said.role}"] if said.role in ("condition", "requirement") else []


def _law_names(binding: Binding) -> set[str]:
    """The parameters of a law: any numbers that it allows."""
    if binding.law:
        return binding.law[0].names | binding.law[1].names
    return binding.node.names if binding.kind == "law" and binding.node else set()


SOLVES = re.compile(
    r"\b(?:solv\w+|roots?|equations?|intersect\w*|unknown|stationary|critical|minimi\w+|maximi\w+)\b", re.I
)


def _any_number(name: str, said: Said, scope: Scope, draft: Draft, left: Node, right: Node) -> bool:
    """Whether a name that nothing declares is the argument of a function: what is said holds for every value.

    Not where an equation is solved: a side without a name, a value for the name elsewhere, or the words that say so.
    """
    if (
        name not in draft.varied
        or left.closed
        or right.closed
        or (said.formula.turn, said.formula.section, name) in scope.solved
    ):
        return False
    set_ = any(
        each.turn == said.formula.turn and each.kind in ("value", "removed") for each in scope.bindings.get(name, ())
    )
    return not set_ and not SOLVES.search(said.formula.earlier + said.formula.before)


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
        if vectors and not _restricts(condition, own):
            continue
        if condition.sides and all(map(is_polynomial, condition.sides)) and condition.names & own <= draft.sizes.keys():
            continue  # among the assumptions, or about other sizes
        if condition.names & own <= fixed:
            continue
        if not condition.reaches(said) and writer.draft is draft:
            writer.draft = copy.deepcopy(draft)  # what may be meant is not shown in the claim
        try:
            texts = _assumed(condition, writer)
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


def _only(function: Binding, scope: Scope) -> bool:
    """Whether a function of numbers is defined once, by an expression of all its parameters."""
    assert function.node is not None
    bound = [each for each in scope.bindings[function.name] if each.kind in ("function", "no function")]
    return (
        (function.stated or len(function.name) > 1)
        and len(bound) == 1
        and set(function.parameters) <= function.node.names
    )


def _expands(left: Node, right: Node) -> bool:
    """`(a - b)^3 = a^3 - 3a^2 b + ..`: a product of sums in several letters beside a sum of terms of its degree.

    Nobody solves such an equation; it says how the product expands, for all letters.
    """
    terms = _terms(right)
    whole = _degree(left)
    sums = any(part.kind in ("+", "-") for part in left.walk())
    return (
        left.kind in ("^", "product")
        and sums
        and len(left.names) >= 2
        and left.names == right.names
        and len(terms) >= 3
        and not any(part.kind in ("+", "-", "/") for term in terms for part in term.walk())
        and whole is not None
        and {_degree(term) for term in terms} == {whole}
    )


def _terms(node: Node) -> list[Node]:
    if node.kind in ("+", "-"):
        return [*_terms(node.parts[0]), *_terms(node.parts[1])]
    return _terms(node.parts[0]) if node.kind in ("neg", "group") else [node]


def _degree(node: Node) -> int | None:
    """The degree of a homogeneous polynomial, if a side is one."""
    parts = [_degree(part) for part in node.parts]
    match node.kind:
        case "number":
            return 0
        case "name":
            return 1
        case "group" | "neg":
            return parts[0]
        case "+" | "-":
            return parts[0] if parts[0] == parts[1] else None
        case "product" if None not in parts:
            return sum(part for part in parts if part is not None)
        case "^" if parts[0] is not None and node.parts[1].text.isdigit() and node.parts[1].kind == "number":
            return parts[0] * int(node.parts[1].text)
    return None


POINTS = (Fraction(7, 5), Fraction(11, 3), Fraction(13, 7), Fraction(17, 9), Fraction(23, 11), Fraction(29, 13))


def _differ(left: Node, right: Node) -> bool:
    """Whether two sides of numbers differ at a point: an equation to be solved, not an identity."""
    names = sorted({part.text for side in (left, right) for part in side.walk() if part.kind == "name"})
    if len(names) > len(POINTS):
        return True  # a word that was cut into letters, or an equation between many quantities
    points = {name: number(str(point)) for name, point in zip(names, POINTS, strict=False)}
    put = [
        rewritten(side, lambda part: points.get(part.text) if part.kind == "name" else None) for side in (left, right)
    ]
    one, other = map(value, put)
    if one is not None and other is not None:
        return one != other
    try:
        one_, other_ = map(_float, put)
    except (ValueError, ZeroDivisionError, OverflowError, TypeError):
        return False
    return abs(one_ - other_) > 1e-6 * max(1.0, abs(one_), abs(other_))


def _float(node: Node) -> float:
    """A rough value, to tell an equation from an identity; never for a verdict."""
    if (exact := value(node)) is not None:
        return float(exact)
    parts = [_float(part) for part in node.parts]
    match node.kind:
        case "+":
            return parts[0] + parts[1]
        case "-":
            return parts[0] - parts[1]
        case "neg":
            return -parts[0]
        case "product":
            return math.prod(parts)
        case "/":
            return parts[0] / parts[1]
        case "^":
            found = parts[0] ** parts[1]
            return found if isinstance(found, float) else math.nan
        case "group":
            return parts[0]
        case "floor" | "ceil":
            return float(math.floor(parts[0]) if node.kind == "floor" else math.ceil(parts[0]))
        case "call" if node.text in ("exp", "log", "sin", "cos", "tan", "sqrt", "tanh") and len(parts) == 1:
            return float(getattr(math, node.text)(parts[0]))
    raise ValueError(node.kind)


def _order(said: Said, scope: Scope, place: int, left: Node, right: Node) -> Reading:
    r"""O(a) + O(b) = O(c): the sum of the left ones grows no faster than the right one."""
    if right.kind != "order":
        raise Unread("an order on the left of something else")
    if said.formula.line in scope.programs and left.kind in ("name", "index", "call"):
        return costs(scope.programs[said.formula.line], right, said.formula.line, place)
    ordered = any(part.kind == "order" for part in left.walk())
    if (
        not ordered
        and left.kind in ("name", "index", "call")
        and not any(fact.relation == "==" and fact.left == left for fact in _facts(scope, said, flat_names(left))[0])
    ):
        raise Unread("which program?")
    return _grows(said, scope, place, left, right.parts[0], right.text)


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
        facts, open_ = _facts(scope, said, names)
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


def _grows(said: Said, scope: Scope, place: int, left: Node, right: Node, order: str) -> Reading:
    """`left in O(right)`, under what is said about the sizes."""
    names: set[str] = set()
    one, other = (
        polynomial(rewritten(side, lambda part: _bare(part.parts[0]) if part.kind == "order" else None), names)
        for side in (left, right)
    )
    if not names:
        raise Unread("an order without sizes")
    facts, open_ = _facts(scope, said, names)
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


def _facts(scope: Scope, said: Said, names: set[str]) -> tuple[list[Fact], list[str]]:
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


def _claim(draft: Draft, text: str, assumptions: Sequence[str] = ()) -> str:
    lines = []
    defined = set(draft.definitions)
    given = [f"{name} {kind}" for name, kind in draft.given.items() if name not in defined]
    sizes = [size for size in draft.sizes if size not in defined]
    if sizes:
        lines.append(f"sizes: {', '.join(sizes)}")
    if given:
        lines.append(f"given: {'; '.join(given)}")
    if assumptions:
        lines.append(f"assume: {'; '.join(assumptions)}")
    lines += draft.definitions.values()
    lines.append(f"assert: {text}")
    return "\n".join(lines)


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


def _put_back(said: Said, scope: Scope, earlier: Sequence[Said]) -> Reading | None:
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
