"""Orders of growth over named sizes that grow independently: O(f) = O(g) iff f and g bound each other.

A function is a sum of products of powers of sizes, their logarithms, exponentials and factorials. A term is below
others iff a convex combination of their exponents is above its own (the max-plus criterion); the proof is a combination
of at most two, and a refutation is a direction in which sizes grow: N = s^a, D = s^b.
"""

import itertools
import random
from fractions import Fraction
from math import log

from likewise.grading.algebra import Forms
from likewise.grading.arithmetic import ATOMS, Ratio, Unclear, rational
from likewise.grading.given import name_of, substituted
from likewise.grading.numbers import seed_of
from likewise.grading.outcomes import EQUAL, Outcome, World, depends, different, undecided
from likewise.grading.parsing import bare
from likewise.grading.sizes import same_sizes
from likewise.reading.expressions import Node
from likewise.reading.latex import Unread

Exponents = dict[tuple[str, str], Fraction]  # (size, one of LADDER) -> exponent
LADDER = ("factorial", "exp", "power", "log", "loglog")  # n^n, e^n, n, log n, log log n, the fastest first


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
            case "log" if name := _log_of(atom.inside[0], forms):
                key = (name, "loglog")
            case "log" if name := _factorial_of(atom.inside[0], forms):  # log n! grows like n log n
                for kind in ("power", "log"):
                    found[name, kind] = found.get((name, kind), Fraction(0)) + power
                continue
            case "log_base" | "pi":
                continue
            case "exp" if atom.inside[0].top.is_constant():
                continue
            case "exp":
                key, rate = _rate(atom.inside[0], forms)
                power = power / 60 * rate
            case "factorial" if name := _name(atom.inside[0], forms):  # Stirling: n^n e^-n n^(1/2)
                for kind, times in (("factorial", Fraction(1)), ("exp", Fraction(-1)), ("power", Fraction(1, 2))):
                    found[name, kind] = found.get((name, kind), Fraction(0)) + power * times
                continue
            case _:
                raise Unclear("an order that is not made of powers, exponentials and logarithms")
        found[key] = found.get(key, Fraction(0)) + power
    return found


def _rate(value: Ratio, forms: Forms) -> tuple[tuple[str, str], Fraction]:
    """The growth of exp(value): n log n is like a factorial, c n is an exponential with this rate."""
    if value.bottom != 1 or len(value.top) != 1 or value.top.total_degree() > 2:
        raise Unclear("an exponential of what is not linear")
    used = [forms.atoms[place] for place, degree in enumerate(value.top.degrees()) if degree]
    names = [atom.text for atom in used if atom.kind == "name"]
    logs = [atom.inside[0] for atom in used if atom.kind == "log"]
    if len(names) != 1 or len(names) + len(logs) != len(used) or value.top.total_degree() != len(used):
        raise Unclear("an exponential of what is not linear")
    if not logs:
        return (names[0], "exp"), Fraction(1)
    if (fixed := rational(logs[0])) is not None:
        if not 1 < fixed < 10**6:
            raise Unclear("a large base")
        return (names[0], "exp"), Fraction(round(log(fixed), 12)).limit_denominator(10**12)
    if _name(logs[0], forms) == names[0]:
        return (names[0], "factorial"), Fraction(1)
    raise Unclear("a power of two sizes")


def _factorial_of(value: Ratio, forms: Forms) -> str:
    """The name n if the value is n!, or nothing."""
    for place, atom in enumerate(forms.atoms):
        if atom.kind == "factorial" and value.bottom == 1 and value.top == forms.term(1, _unit(place)):
            return _name(atom.inside[0], forms)
    return ""


def _log_of(value: Ratio, forms: Forms) -> str:
    """The name n if the value is log n, or nothing."""
    for place, atom in enumerate(forms.atoms):
        if atom.kind == "log" and value.bottom == 1 and value.top == forms.term(1, _unit(place)):
            return _name(atom.inside[0], forms)
    return ""


def _unit(place: int) -> tuple[int, ...]:
    return tuple(int(each == place) for each in range(ATOMS))


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
    if all(kind in ("power", "log", "loglog") for _, kind in keys):
        directions += list(itertools.product((0, 1, 2, 3), repeat=len(names))) if len(names) <= 4 else []
        directions += [tuple(chance.randint(0, 9) for _ in names) for _ in range(200)]
    else:  # the rates of exponentials add up only for sizes of one speed
        directions += list(itertools.product((0, 1), repeat=len(names))) if len(names) <= 6 else []
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


def _growth(terms: list[Exponents], speed: dict[str, int]) -> tuple[Fraction, ...]:
    """The largest rates along a direction, those of LADDER; a size that stands still is a constant."""
    found = []
    for term in terms:
        rates = dict.fromkeys(LADDER, Fraction(0))
        for (name, kind), value in term.items():
            rates[kind] += value * (speed[name] if kind in LADDER[:3] else speed[name] > 0)
        found.append(tuple(rates.values()))
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
    """Whether term is in O(other): for each size the first rate that differs, from the top of LADDER, is smaller."""
    for name in {name for name, _ in {**term, **other}}:
        rates = [term.get((name, kind), Fraction(0)) - other.get((name, kind), Fraction(0)) for kind in LADDER]
        if next((rate for rate in rates if rate), 0) > 0:
            return False
    return True


def joined_orders(node: Node) -> Node:
    """O(f) + O(g) as O(f + g), O(f) O(g) as O(f g) and f O(g) as O(f g); other nodes as they are."""
    node = bare(node)
    parts = tuple(map(bare, node.parts))
    if node.kind not in ("+", "product") or not any(part.kind == "order" for each in parts for part in each.walk()):
        return node
    parts = tuple(map(joined_orders, parts))
    kinds = {part.text for part in parts if part.kind == "order"}
    plain = [part for part in parts if part.kind != "order"]
    if len(kinds) != 1 or not kinds <= {"O", "Theta", "Omega"} or (plain and node.kind == "+"):
        raise Unread("an order beside something else")
    inner = tuple(Node("group", part.parts) if part.kind == "order" else part for part in parts)
    return Node("order", (Node(node.kind, inner, node.text, node.joined),), kinds.pop())


def compare_orders(one: Node, other: Node, world: World) -> Outcome:
    if one.kind != other.kind:
        inner = one.parts[0] if one.kind == "order" else other.parts[0]
        rest = other if one.kind == "order" else one
        if rest.kind in ("set", "vector", "unit", "interval"):
            return undecided("an order and something else")
        outcome = _growths(inner, rest, world)
        return depends("if an order is meant") if outcome.verdict == "equal" else outcome
    outcome = _growths(one.parts[0], other.parts[0], world)
    soft = [node.text == "soft O" for node in (one, other)]
    if any(soft) and outcome.verdict != "equal":
        rough = _growths(one.parts[0], other.parts[0], world, without_logs=True)
        if rough.verdict != "equal":
            return rough
        return EQUAL if all(soft) else depends("if logarithmic factors are left out")
    if outcome.verdict == "equal" and one.text != other.text:
        return depends(f"if the bound {one.text} is the bound {other.text}")
    return outcome


def _growths(one: Node, other: Node, world: World, *, without_logs: bool = False) -> Outcome:
    values = dict(world.given.values)
    for relation in world.given.relations:  # N >= D becomes N = D * (a size of its own)
        names = [name_of(part) for part in relation.parts]
        if len(names) == 2 and all(names) and relation.joined[0] in (">", ">=", "<", "<="):
            above, below = names if relation.joined[0] in (">", ">=") else reversed(names)
            values.setdefault(
                above, Node("product", (Node("name", text=below), Node("name", text=f"{above}/{below}")), joined=("",))
            )
        elif not all(bare(part).kind == "number" or name_of(part) for part in relation.parts):
            world.notes.append("a condition was not used for the order")
    trees = [_summed(substituted(node, values)) for node in (one, other)]
    if without_logs:
        return _growth_outcome(trees, world, without_logs=True)
    outcome = _growth_outcome(trees, world)
    if outcome.verdict == "different":
        products = not any(part.kind in ("+", "-") for tree in trees for part in tree.walk())
        for said, *folded in same_sizes(trees[0], trees[1], world, sizes=products):
            if _growth_outcome(folded, world).verdict == "equal":
                return depends(f"if {said}")
    if outcome.verdict == "different" and world.given.unread:
        return undecided(f"a condition is not read: {world.given.unread[0]}")
    return outcome


def _summed(node: Node) -> Node:
    """The tree with max(a, b) as a + b, which grow alike, where it is a summand or factor."""
    node = bare(node)
    if node.kind == "call" and node.text == "max":
        total = node.parts[0]
        for part in node.parts[1:]:
            total = Node("+", (total, part))
        return total
    if node.kind in ("+", "product"):
        return Node(node.kind, tuple(map(_summed, node.parts)), node.text, node.joined)
    return node


def _growth_outcome(trees: list[Node], world: World, *, without_logs: bool = False) -> Outcome:
    names = {part.text for tree in trees for part in tree.walk() if part.kind == "name"}
    forms = Forms(names, names, base="e", seconds=world.left)
    try:
        terms = [terms_of(tree, forms) for tree in trees]
    except Unclear as error:
        forms = Forms(names, names, base="e", seconds=world.left)
        one, other = map(forms.form, trees)
        ratio = forms.over(one, other) if other.top != 0 else None
        if ratio is not None and (fixed := rational(ratio)) is not None and fixed > 0:
            return EQUAL
        return undecided(str(error))
    if without_logs:
        terms = [
            [{key: power for key, power in term.items() if "log" not in key[1]} for term in each] for each in terms
        ]
    found, direction = compare(terms[0], terms[1], seed_of(*trees))
    if found:
        return EQUAL
    if found is False:
        side = " (the one is in O of the other)" if bounded(terms[0], terms[1]) or bounded(terms[1], terms[0]) else ""
        return different(f"they grow differently for {direction}{side}")
    return undecided("orders that no direction tells apart")
