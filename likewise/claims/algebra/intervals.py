"""Inequalities: by signs for all reals, by subdividing boxes in interval arithmetic; and what never separates."""

import random
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from itertools import islice

from likewise.claims import arrays
from likewise.claims.algebra import balls
from likewise.claims.algebra.balls import Unseparated
from likewise.claims.algebra.coordinates import BALLS, Coordinates
from likewise.claims.algebra.elementary import derivative, substitute
from likewise.claims.algebra.exponomials import Form, form
from likewise.claims.algebra.identities import proved, proved_at
from likewise.claims.algebra.points import SIZES, ordered, sizes, within
from likewise.claims.algebra.questions import Question, question
from likewise.claims.algebra.witnesses import Witness, admissible, is_proved, refuted, violation
from likewise.claims.arrays import Array
from likewise.claims.language.claim import Between, Claim, Variable
from likewise.claims.language.tree import Chain, Comparison
from likewise.claims.verdict import Finding, Undecided

BOXES = 4_000
NARROW = Fraction(1, 2**24)  # a box that is still open at this width will stay so
BUDGET_SHARE = 0.5  # of the budget
TRIES = 20  # points that are drawn for one that the assumptions admit
Box = dict[str, tuple[Fraction, Fraction]]


def decide(claim: Claim, *, after: str = "") -> Finding | None:
    """Proved by signs or on boxes; otherwise a search for a point that separates the sides.

    after: a step that came before, named in the detail.
    """
    asked = question(claim)
    if asked is None:
        return None
    proof = proved(asked)
    if proof is not None:
        return Finding("holds", "proved", proof.text(after), engine="interval", where=proof.condition)
    found = _on_boxes(asked) or unseparated(asked)
    return replace(found, detail=f"{found.detail}, {after}") if found and after else found


def _on_boxes(asked: Question) -> Finding | None:
    counted = None
    boxed = all(isinstance(each.kind, Between) for each in asked.variables) and not asked.sizes
    if boxed and asked.variables and "==" not in asked.chain.comparisons:
        with suppress(Undecided):
            counted = subdivided(asked)
        if counted is not None:
            return Finding(
                "holds", "proved", f"interval arithmetic, {counted} box{'es' if counted > 1 else ''}", engine="interval"
            )
    return None


def subdivided(asked: Question) -> int | None:
    """How many boxes prove the claim, halved where they must be; None if that takes too many."""
    ends = time.process_time() + BUDGET_SHARE * asked.claim.budget
    waiting: list[Box] = [{each.name: _ends(each) for each in asked.variables}]
    counted = 0
    while waiting:
        box = waiting.pop()
        counted += 1
        if counted > BOXES or time.process_time() > ends:
            return None
        if _outside(asked, box) or _holds(asked, box):
            continue
        widest = max(box, key=lambda name: box[name][1] - box[name][0])
        lowest, highest = box[widest]
        if highest - lowest <= NARROW:
            return None
        middle = (lowest + highest) / 2
        waiting += [box | {widest: (middle, highest)}, box | {widest: (lowest, middle)}]
    return counted


def _ends(each: Variable) -> tuple[Fraction, Fraction]:
    assert isinstance(each.kind, Between)
    return each.kind.lowest, each.kind.highest


def _holds(asked: Question, box: Box) -> bool:
    """Whether the claim holds in the whole box, seen at once or where its sides are monotonic."""
    if all(verdict is True for verdict in _compared(_at(asked, box), asked.chain)):
        return True
    try:
        at = asked.symbols({})
        links = zip(asked.chain.terms, asked.chain.comparisons, asked.chain.terms[1:], strict=False)
        return all(
            _at_the_corner(form(at.evaluate(a).scalar - at.evaluate(b).scalar), sign, box) for a, sign, b in links
        )
    except (Undecided, ArithmeticError):
        return False


def _at_the_corner(difference: Form, comparison: Comparison, box: Box) -> bool:
    """Whether difference >= 0, or <= 0, at the corner of the box where it is lowest, or highest.

    A variable whose partial derivative has one sign in the box is put to its end there.
    """
    if comparison in ("==", "!="):
        return False
    lowest = difference if comparison in (">", ">=") else -difference
    for name, ends in box.items():
        atom = next((atom for atom in lowest.atoms() if atom.name == name and atom.kind == "variable"), None)
        if atom is None:
            continue
        known = {each: balls.between(*box[each.name]) for each in lowest.atoms() if each.kind == "variable"}
        slope = balls.enclose(derivative(lowest, atom), known)
        if slope.a < 0 < slope.b:
            return False
        lowest = substitute(lowest, {atom: ends[0] if slope.a >= 0 else ends[1]})
    return balls.sign(lowest) >= (1 if comparison in ("<", ">") else 0)


def _outside(asked: Question, box: Box) -> bool:
    """Whether an assumption fails in the whole box."""
    at = _at(asked, box)
    return any(verdict is False for chain in asked.assumptions for verdict in _compared(at, chain))


def _at(asked: Question, box: Box) -> Coordinates:
    values: dict[str, Array] = {name: arrays.scalar(balls.between(*ends)) for name, ends in box.items()}
    return Coordinates(values, {}, BALLS)


def _compared(at: Coordinates, chain: Chain) -> Iterator[bool | None]:
    """For every comparison whether it holds, or fails, in the whole box; None where that is not seen."""
    try:
        terms = [at.evaluate(term) for term in chain.terms]
    except ArithmeticError:
        yield None
        return
    for left, comparison, right in zip(terms, chain.comparisons, terms[1:], strict=False):
        for difference in arrays.broadcast(lambda a, b: a - b, left, right).entries:
            yield _certain(difference, comparison)


def _certain(difference: balls.Ball, comparison: Comparison) -> bool | None:
    if comparison in (">", ">="):
        difference, comparison = -difference, "<" if comparison == ">" else "<="
    below, above = difference.b < 0, difference.a > 0
    if comparison in ("==", "!="):
        return (comparison == "!=") if below or above else None
    if below or (comparison == "<=" and difference.b <= 0):
        return True
    return False if above or (comparison == "<" and difference.a >= 0) else None


def unseparated(asked: Question) -> Finding | None:
    """The claim at random points; if the sides never separate there, that is all that is said."""
    draws, tried, every = random.Random(asked.claim.seed or 0), 0, list(islice(sizes(asked), 64))
    for _ in range(TRIES * asked.claim.points):
        if tried == asked.claim.points:
            break
        lengths = draws.choice(every)
        values = asked.drawn(lengths, draws)
        seen = _seen(asked, values, lengths)
        if seen:
            return refuted(asked, shrunk(asked, values, lengths), is_proved)
        tried += seen is not None
    if tried < asked.claim.points or set(asked.chain.comparisons) != {"=="}:
        raise Undecided(f"neither proved nor refuted at {tried} random points and on the lattice")
    true = [str(n) for n in range(1, SIZES) if len(asked.sizes) == 1 and proved_at(asked, {asked.sizes[0]: n})]
    known = f"true for {asked.sizes[0]}={','.join(true)}; " if true else ""
    return Finding("inconclusive", "searched", f"{known}no counterexample at {tried} points", engine="interval")


def _seen(asked: Question, values: dict[str, Array], lengths: dict[str, int]) -> str | None:
    """What violates the claim at a point; the empty text if nothing does; None where the point does not count."""
    try:
        at = asked.complete(values, lengths)
        return (violation(at, asked.chain) or "") if admissible(asked, at) else None
    except Unseparated:
        return ""
    except (ArithmeticError, IndexError):
        return None


def shrunk(asked: Question, values: dict[str, Array], lengths: dict[str, int]) -> Witness:
    """The violating point with every entry as simple as the violation allows."""
    for each in ordered(asked):
        for place, entry in enumerate(values[each.name].entries):
            for simpler in (
                Fraction(0),
                Fraction(1),
                Fraction(-1),
                Fraction(round(entry)),
                Fraction(round(2 * entry), 2),
            ):
                entries = [*values[each.name].entries]
                entries[place] = simpler
                smaller = values | {each.name: Array(values[each.name].shape, tuple(entries))}
                if within(each.kind, simpler) and _seen(asked, smaller, lengths):
                    values = smaller
                    break
    shown = tuple((each.name, values[each.name]) for each in ordered(asked))
    return Witness(lengths, shown, _seen(asked, values, lengths) or "")
