"""No verdict is printed that the judge does not share.

A refutation is printed if the judge finds its point inside every set, every assumption surely true there and the
relation surely false. A proof is printed if the judge's blind search found points that satisfy the assumptions and no
counterexample. Otherwise engine and judge disagree: the verdict is inconclusive, and its numbers say all that is needed
to mend the one that is wrong. What the judge has no second implementation of (counts, runs and draws of programs, and
samples, which carry their own error) stays as its engine found it.
"""

import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from fractions import Fraction
from itertools import islice, pairwise
from random import Random
from typing import Any

from flint import arb, ctx

from likewise.claims import blind, judge
from likewise.claims.language.claim import Bounded, Claim, Compares, HasShape
from likewise.claims.language.expressions import QUANTITIES, expression
from likewise.claims.language.tokens import Reader, Unparsed
from likewise.claims.language.tree import Call, Node, children
from likewise.claims.verdict import Finding

POINTS = 120  # that the blind search looks at
ENOUGH = 60  # of them satisfy the assumptions
TRIES = 1_200  # points that are drawn for these
FEW = 12  # that satisfy the assumptions are enough once the time is over
SECONDS = 0.15  # of the blind search, unless it needs longer for the few
BUDGET_SHARE = 0.2  # of the budget, at most
POINTS_PER_TIME_CHECK = 8  # points between two looks at the time
FILLS = ("zero", "one", "small", "positive", "parts", "small", "unit", "axis")
BITS, ROOT_BITS = 128, 1024
NOTHING = Finding("inconclusive", "undecided", "no point was found that satisfies the assumptions", engine="judge")
NUMBER = re.compile(r"-?[0-9]+(?:\.[0-9]+)?(?:/[0-9]+)?")
PART = re.compile(r"(?:([0-9]+)\*)?t(?:\^([0-9]+))?|([0-9]+)")  # of a size along a ray
Ray = tuple[tuple[int, int], ...]  # factors and exponents of t, to be added up
BESIDE = 0.2  # of the rays
STEPS = (2**12, 2**24, 2**48)  # values of t along a ray
FAR = (2**96, 2**192, 2**384)  # for what grows slowly
FARTHEST = (2**4096, 2**8192, 2**16384)  # for small powers next to logarithms
NEAR = (2**3, 2**6, 2**12)  # where a sum over an index has too many terms at those
GROWS, NEARLY, STAYS = 1.4, 1.5, 8.0  # factors between them: a logarithm doubles, a power of t^(1/4) grows eightfold


def agreed(claim: Claim, found: Finding) -> Finding:
    """The finding, if the judge agrees; otherwise inconclusive, with both sides of the disagreement."""
    if found.verdict not in ("holds", "refuted"):
        return found
    if not judged(claim, found):
        return found if _satisfied(claim) else NOTHING
    if not judge.same_definitions(claim):
        return _disagreement(claim, found, "it reads the definitions otherwise")
    if found.verdict == "refuted":
        return _confirmed(claim, found)
    return _survives(claim, found)


def judged(claim: Claim, found: Finding) -> bool:
    """Whether the judge has a reading of its own: not of programs, and not of samples."""
    if claim.program or found.engine in ("sampling", "count", "run"):
        return False
    if isinstance(claim.relation, Bounded):
        return not isinstance(claim.relation.quantity, str) and not any(map(_counts, blind.nodes_of(claim)))
    if isinstance(claim.relation, Compares):
        return not any(map(_counts, claim.relation.chain.terms))
    return isinstance(claim.relation, HasShape)


def _counts(node: Node) -> bool:
    return (isinstance(node, Call) and node.function in QUANTITIES) or any(map(_counts, children(node)))


def _confirmed(claim: Claim, found: Finding) -> Finding:
    """The refutation, where the judge sees it at the engine's point or, failing that, at one of its own."""
    if isinstance(claim.relation, Bounded):
        escapes = _escapes(claim, found)
        if escapes is None:
            return _no_value(found)
        return found if escapes else _disagreement(claim, found, "the ratio does not grow there")
    if found.engine == blind.CROSSING:
        name, low, high = (text for _, text in found.numbers)
        ends = (judge.rational(Fraction(end)) for end in (low, high))
        return found if judge.crosses(claim, name, *ends) == "false" else _no_value(found)
    seen = ruled(claim, found)
    if seen == "false":
        return found
    for sizes, values, ruling in _rulings(claim):
        if ruling == "false":
            if isinstance(claim.relation, HasShape):
                return found  # the engine's sizes are large primes; small ones show the same
            where = _where(sizes, values)
            shown = judge.against(claim, sizes, values)
            detail = f"{' '.join(f'{k}={v}' for k, v in where)}{f': {shown}' if shown else ''}"
            return replace(found, detail=detail, witness=where, suggestions=())
    if seen in ("unclear", "doubtful") or (seen == "close" and found.engine == "gaussian"):
        return _no_value(found)
    return _disagreement(claim, found, f"{seen} at the engine's point")


def _no_value(found: Finding) -> Finding:
    reason = f"the judge has no value at the counterexample of {found.engine}: {found.detail}"
    return Finding("inconclusive", "undecided", reason, engine="judge")


def ruled(claim: Claim, found: Finding) -> str:
    """What the judge says of the engine's point; cited numbers are all that their rounding leaves open."""
    seen = "outside"
    for sizes, values in _points_of(claim, found):
        seen = judge.rule(claim, sizes, values)
        if seen == "false":
            break
    return seen


def _survives(claim: Claim, found: Finding) -> Finding:
    """The proof, if the judge's own search finds points to speak of and nothing against it."""
    if isinstance(claim.relation, Bounded):
        against = _growing(claim)
        if against is None and not _satisfied(claim):
            return NOTHING
        return found if against is None else _disagreement(claim, found, f"the ratio grows along {against}")
    satisfied, undefined, doubtful = 0, 0, 0
    for sizes, values, seen in _rulings(claim):
        if seen == "false":
            return _disagreement(claim, found, f"false at {_text(sizes, values)}")
        satisfied += seen in ("true", "close", "unclear")
        undefined += seen == "undefined"
        doubtful += seen == "doubtful" and not doubtful and judge.may_satisfy(claim, sizes, values)
    if not satisfied and not doubtful and not undefined:
        crossings = [judge.crosses(claim, *bracket) for bracket in islice(blind.brackets(claim), blind.CROSSINGS)]
        if "false" in crossings:
            return _disagreement(claim, found, "false where both sides of the assumed equation cross")
        satisfied = sum(ruling in ("true", "close") for ruling in crossings)
    if not satisfied and not doubtful:
        if not undefined:
            return NOTHING
        return Finding("inconclusive", "undecided", "undefined wherever it was tried", engine="judge")
    if undefined and not found.where:
        where = "where both sides are defined"
        return replace(found, detail=f"{found.detail}, {where}", where=where)
    return found


def _satisfied(claim: Claim) -> bool:
    """Whether the judge finds a point in every set at which the assumptions may be true."""
    if not claim.assumptions and all(size.equation is None for size in claim.sizes):
        return True
    ends = time.process_time() + BUDGET_SHARE * claim.budget
    for looked, (sizes, values) in enumerate(islice(blind.points(claim, claim.seed or 0), TRIES)):
        if judge.satisfied(claim, sizes, values, BITS) and (
            judge.rule(claim, sizes, values, (BITS,)) != "doubtful" or judge.may_satisfy(claim, sizes, values)
        ):
            return True
        if looked % POINTS_PER_TIME_CHECK == 0 and time.process_time() > ends:
            break
    return False


def _rulings(claim: Claim) -> Iterator[tuple[Mapping[str, int], Mapping[str, Any], str]]:
    """The judge on points of its own, until enough of them satisfied the assumptions or the time is over."""
    started, spent, satisfied = time.process_time(), 0.0, 0
    every = blind.every_point(claim)
    points = islice(blind.points(claim, claim.seed or 0), TRIES) if every is None else iter(every)
    for looked, (sizes, values) in enumerate(points, start=1):
        seen = judge.rule(claim, sizes, values, (BITS,))
        satisfied += seen not in ("outside", "doubtful")
        yield sizes, values, seen
        if looked % POINTS_PER_TIME_CHECK == 0:  # reading the clock takes longer than many points
            spent = time.process_time() - started
        enough = satisfied >= ENOUGH or (satisfied >= FEW and (looked >= POINTS or spent > SECONDS))
        if (enough and every is None) or spent > BUDGET_SHARE * claim.budget:
            return


def _points_of(claim: Claim, found: Finding) -> Iterator[tuple[blind.Sizes, blind.Values]]:
    """The engine's witness as numbers, with every name that it leaves out given a few values."""
    sizes: blind.Sizes = {}
    values: blind.Values = {}
    roots: dict[str, str] = {}
    for name, text in found.witness:
        numbers = NUMBER.findall(text)
        if NUMBER.sub("", text).strip("(), ") and NUMBER.sub("", text).replace(",", "").strip("() "):
            roots[name] = text  # made of more than numbers
        elif claim.size(name) is not None:
            sizes[name] = int(Fraction(numbers[0]))
        elif claim.variable(name) is not None:
            values[name] = [judge.rational(Fraction(number)) for number in numbers]
    ctx.prec = ROOT_BITS
    for name, text in roots.items():
        entries = _with_roots(claim, text) if claim.variable(name) is not None else None
        values |= {name: entries} if entries else {}
    written, draw = blind.written(claim), Random(0)
    for place, style in enumerate(FILLS):
        more = {size.name: 1 + place % 3 for size in claim.sizes if size.equation is None and size.name not in sizes}
        point = blind.filled(claim, {**more, **sizes}, values, draw, style, written)
        if point is not None:
            yield point
        if not more and all(variable.random or variable.name in values for variable in claim.variables):
            return


def _with_roots(claim: Claim, text: str) -> list[Any] | None:
    """The entries of a witness such as (sqrt(2),1); None where it is solved for again."""
    entries, depth = [""], 0
    for letter in text[1:-1] if text.startswith("(") and text.endswith(")") and "," in text else text:
        depth += (letter == "(") - (letter == ")")
        if letter == "," and not depth:
            entries.append("")
        else:
            entries[-1] += letter
    try:
        nodes = [expression(Reader(entry)) for entry in entries]
        return [judge.Point(claim, {}, {}).value(node).array.reshape(-1)[0] for node in nodes]
    except (Unparsed, judge.Undefined, judge.Unclear, judge.Misfit):
        return None


def _escapes(claim: Claim, found: Finding) -> bool | None:
    """Whether |f|/|g| grows along the engine's ray, or is infinite at its point; None where it has no value."""
    assert isinstance(claim.relation, Bounded)
    ray: dict[str, Ray] = {}
    for name, text in found.witness:
        parts = [PART.fullmatch(part) for part in text.split("+")]
        if claim.size(name) is not None and all(parts):
            ray[name] = tuple(
                (int(fixed), 0) if fixed else (int(factor or 1), int(exponent or 1))
                for factor, exponent, fixed in (part.groups() for part in parts if part)
            )
    free = [size.name for size in claim.sizes if size.equation is None]
    full = {name: ray.get(name, ((1, 0),)) for name in free}
    orders = ("O", "Omega") if claim.relation.order == "Theta" else (claim.relation.order,)
    seen, rising = False, False
    for steps, factor in ((STEPS, GROWS), (NEAR, NEARLY), (FAR, GROWS), (FARTHEST, GROWS)):
        ratios = _along(claim, full, steps)
        if ratios is None or (seen and steps == NEAR):
            continue
        turned = _turned(ratios)
        seen |= steps != NEAR
        if ("O" in orders and _grows(ratios, factor)) or ("Omega" in orders and _grows(turned, factor)):
            return True
        rising |= ("O" in orders and _grows(ratios, 1)) or ("Omega" in orders and _grows(turned, 1))
    return None if rising or not seen else False


def _turned(ratios: list[Any]) -> list[Any]:
    """1/r, infinite only where r is surely 0."""
    return [arb.pos_inf() if ratio == 0 else 1 / ratio for ratio in ratios]


def _grows(ratios: list[Any], factor: float) -> bool:
    if not ratios[-1].is_finite():
        return ratios[-1] == arb.pos_inf()
    return all(bool(b > a * factor) for a, b in pairwise(ratios))


def _along(claim: Claim, ray: Mapping[str, Ray], steps: tuple[int, ...] = STEPS) -> list[Any] | None:
    """|f|/|g| at three steps of a ray; None where the ray leaves the claim."""
    ctx.prec = BITS
    found = []
    for t in steps:
        try:
            value = judge.ratio(
                claim, {name: sum(factor * t**exponent for factor, exponent in parts) for name, parts in ray.items()}
            )
        except (judge.Undefined, judge.Unclear, judge.Misfit, judge.Outside, judge.Turned, OverflowError):
            return None
        if value is None:
            return None
        found.append(value)
    return found


def _growing(claim: Claim) -> str | None:
    """A ray, found blindly, along which a bound that was proved is left behind."""
    assert isinstance(claim.relation, Bounded)
    draw, free = Random(claim.seed or 0), [size.name for size in claim.sizes if size.equation is None]
    orders = ("O", "Omega") if claim.relation.order == "Theta" else (claim.relation.order,)
    ends = time.process_time() + BUDGET_SHARE * claim.budget
    for _ in range(POINTS):
        ray: dict[str, Ray] = {}
        for name in free:
            ray[name] = ((draw.choice((1, 1, 2, 3)), draw.choice((0, 0, 1, 1, 2, 3))),)
        if len(free) > 1 and draw.random() < BESIDE:  # one size, and one that is larger by 1
            one, other = draw.sample(free, 2)
            ray[one] = (*ray[other], (1, 0))
        ratios = _along(claim, ray)
        ratios = _along(claim, ray, NEAR) if ratios is None else ratios
        if ratios is not None:
            turned = _turned(ratios)
            if ("O" in orders and _grows(ratios, STAYS)) or ("Omega" in orders and _grows(turned, STAYS)):
                return ", ".join(
                    f"{name}={'+'.join(f'{factor}*t^{exponent}' for factor, exponent in parts)}"
                    for name, parts in ray.items()
                )
        if time.process_time() > ends:
            break
    return None


def _disagreement(claim: Claim, found: Finding, seen: str) -> Finding:
    """Inconclusive, with what each side said."""
    said = f"{found.engine} says {found.verdict}: {found.detail} [{found.grade}]"
    return Finding(
        "inconclusive",
        "disagreement",
        f"the judge disagrees ({seen}); {said}",
        engine="judge",
        numbers=(("engine", said), ("judge", seen), ("claim", claim.statement), ("seed", str(claim.seed))),
    )


def _where(sizes: Mapping[str, int], values: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    shown = [(name, str(size)) for name, size in sizes.items()]
    for name, entries in values.items():
        texts = [str(entry) for entry in entries]
        shown.append((name, texts[0] if len(texts) == 1 else f"({','.join(texts)})"))
    return tuple(shown)


def _text(sizes: Mapping[str, int], values: Mapping[str, Any]) -> str:
    return " ".join(f"{name}={value}" for name, value in _where(sizes, values))
