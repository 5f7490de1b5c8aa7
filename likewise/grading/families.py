"""Values for all integers, such as pi/4 + k*pi, and congruences: unions of progressions a + b*k."""

from fractions import Fraction
from math import lcm

from likewise.grading.algebra import Forms
from likewise.grading.arithmetic import Ratio, Unclear, rational
from likewise.grading.given import name_of
from likewise.grading.numbers import free_names
from likewise.grading.outcomes import EQUAL, Outcome, World, depends, different, undecided
from likewise.grading.parsing import bare
from likewise.grading.showing import shown
from likewise.reading.expressions import Node

LETTERS = {*"kmnlj"}
MOST = 60  # progressions of one side over the common period
Progression = tuple[Ratio, Ratio]  # (a, b) of a + b*k


def integer_name(node: Node) -> str:
    """The name in `k in Z`, or nothing."""
    node = bare(node)
    if node.kind == "chain" and node.joined == ("in",) and name_of(node.parts[1]) == "bb_Z":
        return name_of(node.parts[0])
    return ""


def family(values: "tuple[Node, ...]", name: str) -> Node:
    """The values for all integers that a name can be."""
    flat: list[Node] = []
    for value in map(bare, values):
        inner = bare(value.parts[0]) if value.kind == "defined" else value
        flat += family(inner.parts, name).parts if inner.kind == "set" else [inner]
    return Node("family", tuple(flat), name)


def as_family(node: Node) -> Node | None:
    """An expression or a set with one letter for an integer, as a family; or nothing."""
    node = bare(node)
    if node.kind == "family":
        return node
    values = node.parts if node.kind in ("set", "defined") else (node,)
    names = {name for value in values for name in free_names(value)} & LETTERS
    return family(tuple(values), names.pop()) if len(names) == 1 else None


def compare_families(one: Node, other: Node, world: World) -> Outcome:
    """Two unions of progressions, over their common period."""
    pair = [as_family(node) for node in (one, other)]
    if pair[0] is None or pair[1] is None:
        return undecided("values for all integers, and something else")
    forms = Forms(world.given.positive, seconds=world.left)
    sides = [[_progression(value, each.text, forms) for value in each.parts] for each in pair if each]
    step = sides[0][0][1]
    periods = [[_times(step, each, forms) for _, each in side] for side in sides]
    all_periods = [period for side in periods for period in side]
    below = lcm(*(period.denominator for period in all_periods))
    common = Fraction(lcm(*(int(period * below) for period in all_periods)), below)
    whole = forms.times(forms.constant(common), step)
    rows: list[list[Ratio]] = []
    for side, each in zip(sides, periods, strict=True):
        rows.append(
            [
                forms.add(start, forms.times(forms.constant(turn), by))
                for (start, by), period in zip(side, each, strict=True)
                for turn in range(int(common / period))
            ]
        )
    if max(map(len, rows)) > MOST:
        return undecided("too many values in one period")
    table = [[_apart(left, right, whole, forms) for right in rows[1]] for left in rows[0]]
    lines = [*table, *map(list, zip(*table, strict=True))]
    if all(True in line for line in lines):
        return EQUAL
    if any(all(same is False for same in line) for line in lines):
        return different(f"{shown(one)} and {shown(other)} are not the same for all integers")
    return undecided("values for all integers that are not told apart")


def if_integers(one: Node, other: Node, world: World) -> Outcome | None:
    """The condition that letters are integers, for angles such as pi/4 + k*pi and pi/4 + n*pi; or nothing."""
    angles = [{part.kind for part in node.walk()} & {"degrees"} or "pi" in node.names for node in (one, other)]
    pair = [as_family(node) for node in (one, other)]
    if not all(angles) or pair[0] is None or pair[1] is None:
        return None
    try:
        same = compare_families(pair[0], pair[1], world).verdict == "equal"
    except Unclear:
        return None
    return (
        depends(f"if {' and '.join(sorted({each.text for each in pair if each}))} can be any integer") if same else None
    )


def _progression(value: Node, name: str, forms: Forms) -> Progression:
    found = forms.form(value)
    place = forms.atom("name", name)
    if forms.uses(found.bottom, place):
        raise Unclear("values that are not evenly spaced")
    parts = {0: forms.constant(0), 1: forms.constant(0)}
    for exponents, coefficient in found.top.terms():
        power = int(exponents[place])
        rest = forms.term(coefficient, (*exponents[:place], 0, *exponents[place + 1 :]))
        if power > 1 or forms.uses(rest, place):
            raise Unclear("values that are not evenly spaced")
        parts[power] = forms.add(parts[power], forms.ratio(rest, found.bottom))
    if parts[1].top == 0:
        raise Unclear("values that do not depend on the integer")
    return parts[0], parts[1]


def _times(step: Ratio, other: Ratio, forms: Forms) -> Fraction:
    found = rational(forms.over(other, step))
    if found is None:
        raise Unclear("values without a common period")
    return abs(found)


def _apart(one: Ratio, other: Ratio, whole: Ratio, forms: Forms) -> bool | None:
    """Whether two values differ by a multiple of the period."""
    found = rational(forms.over(forms.add(one, forms.negative(other)), whole))
    return None if found is None else found.denominator == 1
