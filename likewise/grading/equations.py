"""Equations, and inequalities in several names."""

import itertools
import random
from fractions import Fraction

from flint import acb, arb, fmpq

from likewise.grading.algebra import Forms
from likewise.grading.arithmetic import GENERATORS, ONE, Ratio, rational
from likewise.grading.balls import Point, Undefined, precise, surely_differ
from likewise.grading.conditions import commutation
from likewise.grading.given import substituted
from likewise.grading.matrices import MatrixForms, inferred_types
from likewise.grading.numbers import (
    ORDERED,
    compare_matrices,
    free_names,
    holds_at,
    points_of,
    polynomial_at,
    positive_names,
    same_but_for_order,
    seed_of,
    whole_names,
    witness_of,
)
from likewise.grading.outcomes import EQUAL, Outcome, World, depends, different, undecided
from likewise.reading.expressions import Node


def _gap(node: Node, forms: Forms) -> Ratio:
    return forms.form(Node("-", (node.parts[0], node.parts[1])))


def compare_equations(one: Node, other: Node, world: World) -> Outcome:
    trees = [substituted(node, world.given.values) for node in (one, other)]
    types = {**inferred_types([part for tree in trees for part in tree.parts]), **world.given.types}
    if types := {name: kind for name, kind in types.items() if any(name in tree.names for tree in trees)}:
        return _matrix_equations(trees, types, world)
    names = sorted(free_names(one) | free_names(other))
    forms = Forms(positive_names(trees, world), whole_names(trees, world), world.conventions.log, seconds=world.left)
    gaps = [_gap(tree, forms) for tree in trees]
    if any(gap.top == 0 for gap in gaps):  # an identity
        if all(gap.top == 0 for gap in gaps):
            same = forms.same(forms.form(trees[0].parts[0]), forms.form(trees[1].parts[0]))
            return EQUAL if same else undecided("two equations that always hold")
        open_one = trees[0] if gaps[1].top == 0 else trees[1]
        witness = witness_of(*open_one.parts, world)
        return different(f"one of them always holds, the other has {witness}") if witness else undecided("an identity")
    ratio = forms.over(gaps[0], gaps[1]) if gaps[1].top != 0 else None
    if ratio is not None and (fixed := rational(ratio)) is not None and fixed:
        flat = [Node("-", tree.parts) for tree in trees]
        said = commutation(flat[0], flat[1] if fixed > 0 else Node("neg", (flat[1],)), world, fixed)
        return depends(said) if said else EQUAL
    chance = random.Random(seed_of(*trees))
    for place, gap in enumerate(gaps):  # a point of one that is none of the other
        for name in names:
            if forms.atom("name", name) >= len(GENERATORS) or gap.top.degrees()[forms.atom("name", name)] != 1:
                continue
            if any(atom.kind not in ("name",) for atom in forms.atoms):
                break
            for _ in range(4):
                values = {each: Fraction(chance.randint(-30, 30), 7) for each in names if each != name}
                point = _root_of(trees[place], name, values)
                if (
                    point is not None
                    and holds_at(Node("chain", trees[1 - place].parts, joined=("==",)), point) is False
                ):
                    told = ", ".join(f"{each} = {value}" for each, value in sorted(point.items()))
                    return different(f"{told} solves one of the equations only")
    crossing = _crossing(gaps, forms, names, chance)
    return different(crossing) if crossing else undecided("two equations that are not multiples of each other")


def _crossing(gaps: list[Ratio], forms: Forms, names: list[str], chance: random.Random) -> str:
    """A root of one equation, enclosed by a change of sign, at which the other surely does not hold; or nothing."""
    if any(gap.bottom != ONE for gap in gaps) or any(atom.kind != "name" for atom in forms.atoms):
        return ""
    for mine, its in ((gaps[0], gaps[1]), (gaps[1], gaps[0])):
        for name, _ in itertools.product(names, range(3)):
            values = {each: fmpq(chance.randint(-20, 20), 7) for each in names}
            for low in range(-12, 12):
                ends = [fmpq(low), fmpq(low + 1)]
                signs = [polynomial_at(mine.top, forms, {**values, name: end}) for end in ends]
                if not signs[0] * signs[1] < 0:
                    continue
                for _ in range(60):
                    middle = (ends[0] + ends[1]) / 2
                    side = polynomial_at(mine.top, forms, {**values, name: middle})
                    ends = [middle, ends[1]] if side * signs[0] > 0 else [ends[0], middle]
                with precise():
                    around = arb((ends[0] + ends[1]) / 2, (ends[1] - ends[0]))
                    value = polynomial_at(its.top, forms, {**values, name: around})
                    if surely_differ(value, fmpq(0)):
                        rest = "".join(f", {each} = {values[each]}" for each in names if each != name)
                        return f"{name} = {around.str(8, radius=False)}...{rest} solves one of the equations only"
    return ""


def _matrix_equations(trees: list[Node], types: dict[str, str], world: World) -> Outcome:
    """Equations between vectors or matrices: the same statement, or a law against one that does not hold."""
    for place in (0, 1):
        if all(same_but_for_order(trees[0].parts[n], trees[1].parts[n ^ place]) for n in (0, 1)):
            return EQUAL
    forms = MatrixForms(Forms(positive_names(trees, world), whole_names(trees, world), seconds=world.left), types)
    sides = [[forms.form(part) for part in tree.parts] for tree in trees]
    laws = [forms.same(*each) for each in sides]
    if any(
        forms.same(sides[0][0], sides[1][place]) and forms.same(sides[0][1], sides[1][1 - place]) for place in (0, 1)
    ):
        return EQUAL
    if laws[0] != laws[1]:
        outcome = compare_matrices(*trees[laws[0]].parts, types, world)
        return (
            different(f"one of them holds always, in the other {outcome.why}")
            if outcome.verdict == "different"
            else outcome
        )
    return undecided("two laws that hold" if all(laws) else "two equations of vectors or matrices")


def _root_of(tree: Node, name: str, values: dict[str, Fraction]) -> dict[str, Fraction] | None:
    """The point of an equation that is linear in a name."""
    try:
        ends = [Point({**values, name: Fraction(end)}).value(Node("-", tree.parts)) for end in (0, 1)]
    except Undefined:
        return None
    if not all(isinstance(end, fmpq) for end in ends) or ends[0] == ends[1]:
        return None
    root = ends[0] / (ends[0] - ends[1])
    point = {**values, name: Fraction(int(root.numerator), int(root.denominator))}
    return point if holds_at(Node("chain", tree.parts, joined=("==",)), point) else None


def compare_inequalities(one: Node, other: Node, world: World) -> Outcome:
    if len(one.joined) != 1 or len(other.joined) != 1:
        return undecided("inequalities with several signs") if one != other else EQUAL
    forms = Forms(
        positive_names((one, other), world), whole_names((one, other), world), world.conventions.log, seconds=world.left
    )
    gaps = []
    for node in (one, other):
        turned, strict = ORDERED[node.joined[0]]
        gap = _gap(node, forms)
        gaps.append((gap if turned else forms.negative(gap), strict))
    ratio = forms.over(gaps[0][0], gaps[1][0]) if gaps[1][0].top != 0 else None
    if ratio is not None and (fixed := rational(ratio)) is not None and fixed > 0 and gaps[0][1] == gaps[1][1]:
        return EQUAL
    with precise():
        for point in points_of(one, other, world):
            holds = [_surely(node, point) for node in (one, other)]
            if None not in holds and holds[0] != holds[1]:
                return different(
                    "one of them only holds at "
                    + ", ".join(f"{name} = {value}" for name, value in sorted(point.items()))
                )
    if ratio is not None and rational(ratio) is not None and gaps[0][1] != gaps[1][1]:
        return different("one of them includes equality")
    return undecided("inequalities that no point tells apart")


def _surely(node: Node, point: dict[str, Fraction]) -> bool | None:
    try:
        left, right = (Point(point).value(part) for part in node.parts)
    except Undefined:
        return None
    if isinstance(left, acb) or isinstance(right, acb) or not surely_differ(left, right):
        return None
    return bool(left > right) if ORDERED[node.joined[0]][0] else bool(left < right)
