"""Numbers against numbers: exact or to the printed digits, congruences, units and running totals."""

import re
from collections.abc import Collection
from fractions import Fraction
from itertools import product

from likewise.reading.expressions import Node, Parser, bits, number, rewritten, value
from likewise.reading.latex import Unread
from likewise.reading.link import Reading, claim_text
from likewise.reading.names import Draft
from likewise.reading.scope import Scope
from likewise.reading.statements import REMAINDER, SCALE, Said
from likewise.reading.writing import Writer, decimals

DIGITS = 60  # of a number that is decided without a worker process
NEAR = Fraction(1, 20)  # an "about" that is further off than this, relative to the printed number, is wrong


def ends_open(said: Said, place: int) -> bool:
    last = place == len(said.relations) - 1
    return last and bool(REMAINDER.match(said.formula.after) or SCALE.match(said.formula.after))


def require_units(said: Said, place: int) -> None:
    """5 pairs = 5 * 2 is a conversion: a bare quantity whose unit the other side has not."""
    left, right = said.nodes[place], said.nodes[place + 1]
    assert isinstance(left, Node)
    assert isinstance(right, Node)
    units = [{part.text for part in side.walk() if part.kind == "unit"} for side in (left, right)]
    if units[0] and units[1] and units[0] != units[1]:
        raise Unread("units differ: a conversion")
    if left.kind == "unit" and not units[1] and left.text not in ("dollars", "degrees"):
        raise Unread("units differ: a conversion")


def congruence(said: Said, place: int, left: Node, right: Node) -> Reading:
    if not said.modulus:
        raise Unread("a congruence without its modulus")
    modulus, one, other = value(Parser(said.modulus).side()), value(left), value(right)
    if modulus is None or one is None or other is None or modulus.denominator != 1 or modulus <= 0:
        raise Unread("a congruence between names")
    if one.denominator != 1 or other.denominator != 1:
        raise Unread("a congruence between fractions")
    whole = (one - other) // modulus
    writer = Writer(Scope(), said)
    text = f"{writer.number(left)} - {writer.number(right)} == {modulus}*{whole}"
    return Reading(place + 1, (claim_text(writer.draft, text),), notes=(f"{whole} is the whole part of the quotient",))


def closed(said: Said, scope: Scope, place: int, relation: str, left: Node, right: Node) -> Reading:
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
            narrow, *wide = tolerances(relation, left, right, percent)
            texts.append(f"{one} == {other}{f' within {decimal(narrow)}' if narrow else ''}")
            bounds = _bounds(left, right, scope.exact) if relation != "approx" and wide else None
            if relation != "approx" and wide and _printed_whole(left, right, scope.rounded):
                texts[-1] = f"{one} == {other}"
            elif bounds is not None:
                low, high, printed = bounds
                texts.append(f"{_rounded(low, up=False)} <= {printed} <= {_rounded(high, up=True)}")
            else:
                texts += [f"{one} == {other} within {decimal(each)}" for each in wide if each]
        else:
            texts.append(f"{one} {relation} {other}")
    return Reading(
        place + 1,
        tuple(dict.fromkeys(claim_text(draft, text) for text in texts)),
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


def tolerances(relation: str, left: Node, right: Node, percent: bool) -> list[Fraction]:
    """Half a unit of the last printed digit; and the widest that a careful reader would let pass."""
    unit = whole = Fraction(0)
    for side in (left, right):
        plain = printed_number(side)
        if plain is not None:
            digits = plain.text.partition(".")[2]
            scale = 100 if any(part.kind == "%" for part in side.walk()) and percent else 1
            if digits:
                unit = max(unit, Fraction(1, 10 ** len(digits) * scale))
            elif relation == "approx":
                unit = max(unit, Fraction(1, scale))
            elif _is_fraction(left) or _is_fraction(right):  # 10/3 = 3: about, or wrong
                whole = max(whole, Fraction(1, scale))
    one, other = value(left), value(right)
    spread = _spread(left) + _spread(right)
    if relation == "approx":
        size = (
            max(abs(each) for each in (one, other) if each is not None) if one is not None or other is not None else 1
        )
        return [max(unit, Fraction(1, 10**6)) / 2, max(unit + spread, size * NEAR)]
    if not unit and not spread and not whole:
        return [Fraction(0)]
    exact = one is not None and other is not None and one == other
    return [Fraction(0)] if exact else [unit / 2, max(unit, whole) + spread]


def printed_number(side: Node) -> Node | None:
    """The number, if a side is one number with a sign or a unit."""
    while side.kind in ("neg", "unit", "%", "group"):
        side = side.parts[0]
    return side if side.kind == "number" else None


def _is_fraction(side: Node) -> bool:
    found = value(side)
    return found is None or found.denominator != 1


def _spread(side: Node) -> Fraction:
    """How far a computation with printed decimals may be off, if they were rounded."""
    if printed_number(side) is not None:
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
                    number(decimal(printed + half))
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
        printed, centre, plain = value(other), value(side), printed_number(other)
        if plain is None or printed is None or centre is None or not decimals(side) or other.kind == "%":
            continue
        found = interval(side, exact)
        if found is not None and not any(part.kind in ("%", "mixed") for part in side.walk()):
            unit = Fraction(1, 10 ** len(plain.text.partition(".")[2]))
            cut = unit * Fraction(999_999, 1_000_000)  # what is cut off is less than a unit
            low, high = min(found[0] - unit / 2, centre - cut), max(found[1] + unit / 2, centre + cut)
            return low, high, str(printed)
    return None


def _printed_whole(left: Node, right: Node, rounded: Collection[str]) -> bool:
    """`0.8 * 0.8 = 0.68`: the result is printed to its last digit, and is another one.

    Not where a decimal was rounded before, here or in its own line (0.3 for 1/3), nor where the last digit of a sum is
    off by what rounding its terms makes up.
    """
    for side, other in ((left, right), (right, left)):
        plain, printed, centre = printed_number(other), value(other), value(side)
        shown = [part for part in side.walk() if part.kind == "number" and "." in part.text]
        if plain is None or printed is None or centre is None or not shown or len(shown) > 4:
            continue
        unit = Fraction(1, 10 ** len(plain.text.partition(".")[2]))
        if (centre / (10 * unit)).denominator == 1:
            return False  # more digits are printed than the computation has: it was done with others
        if (centre / unit).denominator != 1 or any(part.kind in ("%", "mixed", "unit") for part in side.walk()):
            return False
        if abs(centre - printed) <= unit * len(shown) or any(part.text in rounded for part in shown):
            return False
        return not any(abs(each - printed) < unit for each in _meant(side, [part.text for part in shown]))
    return False


def _meant(side: Node, shown: list[str]) -> list[Fraction]:
    """The values of a computation if its decimals are thirds, sixths, sevenths or ninths that were rounded."""
    ways = []
    for text in dict.fromkeys(shown):
        half = Fraction(1, 2 * 10 ** len(text.partition(".")[2]))
        near = [Fraction(round(Fraction(text) * each), each) for each in (3, 6, 7, 9)]
        ways.append([(text, each) for each in {Fraction(text), *near} if abs(each - Fraction(text)) <= half])
    found = []
    for way in product(*ways):
        put = {text: Node("/", (number(str(each.numerator)), number(str(each.denominator)))) for text, each in way}
        moved = value(rewritten(side, lambda part, put=put: put.get(part.text) if part.kind == "number" else None))
        found += [moved] if moved is not None else []
    return found


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


def decimal(exact: Fraction) -> str:
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
