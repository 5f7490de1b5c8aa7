"""Orders of growth over named sizes that grow independently: O(f) = O(g) iff f and g bound each other.

A function is a sum of products of powers of sizes and of their logarithms. A term is below others iff a convex
combination of their exponents is above its own (the max-plus criterion); the proof is a combination of at most two, and
a refutation is a direction in which sizes grow: N = s^a, D = s^b.
"""

import itertools
import random
from fractions import Fraction

from likewise.grading.algebra import Forms, Ratio, Unclear
from likewise.reading.expressions import Node

Exponents = dict[tuple[str, str], Fraction]  # (size, "power" or "log") -> exponent


def terms_of(node: Node, forms: Forms) -> list[Exponents]:
    """The terms of a function of sizes, as exponents; constants are dropped."""
    value = forms.form(node)
    if len(value.bottom) != 1:
        raise Unclear("a quotient whose denominator is a sum")
    below = _exponents(value.bottom.monoms()[0], forms)
    found = []
    taken = []
    for exponents, coefficient in value.top.terms():
        term = _exponents(exponents, forms)
        for key, power in below.items():
            term[key] = term.get(key, Fraction(0)) - power
        (found if coefficient > 0 else taken).append({key: power for key, power in term.items() if power})
    if not found and len(taken) == 1:
        found, taken = taken, found
    if any(not any(_under(term, other) and term != other for other in found) for term in taken):
        raise Unclear("an order of a difference")  # it can cancel
    if not found:
        raise Unclear("the order of 0")
    return found


def _exponents(exponents: tuple[int, ...], forms: Forms) -> Exponents:
    found: Exponents = {}
    for place, raised in enumerate(exponents):
        if not raised:
            continue
        power = Fraction(int(raised))
        atom = forms.atoms[place]
        match atom.kind:
            case "name":
                key = (atom.text, "power")
            case "index" | "call":
                key = (f"{atom.text}:{[str(part.top) for part in atom.inside]}", "power")
            case "root" if _name(atom.inside[0], forms):
                key, power = (_name(atom.inside[0], forms), "power"), power / 12
            case "root" if atom.inside[0].top.is_constant():
                continue
            case "log" if _name(atom.inside[0], forms):
                key = (_name(atom.inside[0], forms), "log")
            case "log" if atom.inside[0].top.is_constant():
                continue
            case "log_base" | "pi":
                continue
            case "exp" if atom.inside[0].top.is_constant():
                continue
            case _:
                raise Unclear("an order that is not made of powers and logarithms")
        found[key] = found.get(key, Fraction(0)) + power
    return found


def _name(value: Ratio, forms: Forms) -> str:
    for place, atom in enumerate(forms.atoms):
        if atom.kind == "name" and value.bottom == 1 and len(value.top) == 1 and value.top.degrees()[place] == 1:
            return atom.text if value.top.total_degree() == 1 else ""
    return ""


def compare(one: list[Exponents], other: list[Exponents], seed: str) -> tuple[bool | None, str]:
    """(True, "") if the orders are the same, (False, direction) if they surely are not, (None, "") otherwise."""
    if all(_below(term, other) for term in one) and all(_below(term, one) for term in other):
        return True, ""
    keys = sorted({key for term in (*one, *other) for key in term})
    names = sorted({name for name, _ in keys})
    chance = random.Random(seed)
    directions = [tuple(int(name == each) for each in names) for name in names]
    directions += [tuple(int(name != each) for each in names) for name in names]
    directions += list(itertools.product((0, 1, 2, 3), repeat=len(names))) if len(names) <= 4 else []
    directions += [tuple(chance.randint(0, 9) for _ in names) for _ in range(200)]
    for direction in directions:
        speed = dict(zip(names, direction, strict=True))
        if _growth(one, speed) != _growth(other, speed):
            moving = ", ".join(
                f"{name} = s^{power}" if power != 1 else f"{name} = s" for name, power in speed.items() if power
            )
            still = [name for name, power in speed.items() if not power]
            return False, (moving or "all sizes fixed") + (
                f", {', '.join(still)} fixed" if still and moving else ""
            ) + ", s to infinity"
    return None, ""


def bounded(one: list[Exponents], other: list[Exponents]) -> bool:
    """Whether one is surely in O(other)."""
    return all(_below(term, other) for term in one)


def _growth(terms: list[Exponents], speed: dict[str, int]) -> tuple[Fraction, Fraction]:
    """The largest (power, power of the logarithm) along a direction; a size that stands still is a constant."""
    found = []
    for term in terms:
        power = sum((value * speed[name] for (name, kind), value in term.items() if kind == "power"), Fraction(0))
        logs = sum((value for (name, kind), value in term.items() if kind == "log" and speed[name]), Fraction(0))
        found.append((power, logs))
    return max(found)


def _below(term: Exponents, others: list[Exponents]) -> bool:
    """Whether a term is bounded by one of the others, or by a mean of two of them."""
    if any(_under(term, other) for other in others):
        return True
    for one, other in itertools.combinations(others, 2):
        low, high = Fraction(0), Fraction(1)  # share of `one`
        for key in {*term, *one, *other}:
            slope = one.get(key, Fraction(0)) - other.get(key, Fraction(0))
            need = term.get(key, Fraction(0)) - other.get(key, Fraction(0))
            if slope == 0:
                if need > 0:
                    low, high = Fraction(1), Fraction(0)
                    break
            elif slope > 0:
                low = max(low, need / slope)
            else:
                high = min(high, need / slope)
        if low <= high:
            return True
    return False


def _under(term: Exponents, other: Exponents) -> bool:
    """Whether term is in O(other): for each size a smaller power, or an equal one and fewer logarithms."""
    for name in {name for name, _ in {**term, **other}}:
        power = term.get((name, "power"), Fraction(0)) - other.get((name, "power"), Fraction(0))
        logs = term.get((name, "log"), Fraction(0)) - other.get((name, "log"), Fraction(0))
        if power > 0 or (power == 0 and logs > 0):
            return False
    return True
