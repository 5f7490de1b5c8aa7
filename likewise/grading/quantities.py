"""Numbers with units."""

import re
from collections.abc import Mapping
from fractions import Fraction

from likewise.grading.conditions import scalars
from likewise.grading.numbers import fraction_node
from likewise.grading.outcomes import Outcome, World, depends, different, undecided
from likewise.grading.units import BINARY, TEMPERATURES, VAGUE, unit_of
from likewise.reading.expressions import Node, number

COUNTED = re.compile(r"(?:[a-z]+ ){0,2}(?:[a-z]+[a-hj-rtv-z]s|people|children|men|women)")  # 17 ways
NO_COUNT = re.compile(  # words that change the number
    r"\b(?:per|each|every|more|less|fewer|or|and|of|not|times|plus|minus|squares?|squared|cubes|cubed"
    r"|(?<!ordered )(?<!distinct )pairs|halves|parts"
    r"|dozens|scores|couples|hundreds|thousands|millions|billions|\w+(?:th|rd|nd)s|quarters|is|as|was|less|digits|bits|exactly"
    r"|ones|tens|points|decimals|places|multiples|powers|factorials|percents?|ratios|degrees|units)\b"
)


def compare_quantities(one: Node, other: Node, world: World) -> Outcome:
    values = [node.parts[0] if node.kind == "unit" else node for node in (one, other)]
    texts = [node.text if node.kind == "unit" else world.conventions.unit for node in (one, other)]
    if not texts[0] and not texts[1]:
        return scalars(*values, world)
    units = [unit_of(text) if text else (Fraction(1), ()) for text in texts]
    if texts[0] and texts[1] and (units[0] is None or units[1] is None):
        same = {(text.lower() if len(text) > 3 else text).removesuffix("s").removesuffix("e") for text in texts}
        return scalars(*values, world) if len(same) == 1 else undecided(f"the units {texts[0]} and {texts[1]}")
    if units[0] is None or units[1] is None:
        named = texts[0] or texts[1]
        outcome = scalars(*values, world)
        if outcome.verdict == "equal" and COUNTED.fullmatch(named) and not NO_COUNT.search(named):
            world.notes.append(f"the number counts {named}")
            return outcome
        return depends(f"if the number counts {named}") if outcome.verdict == "equal" else outcome
    (factor, kind), (other_factor, other_kind) = units[0], units[1]
    if texts[0] != texts[1] and {kind, other_kind} <= {((name, 1),) for name in TEMPERATURES}:
        return scalars(
            *(_kelvin(value, dict(each)) for value, each in zip(values, (kind, other_kind), strict=True)), world
        )
    scaled = [_times(value, each) for value, each in zip(values, (factor, other_factor), strict=True)]
    if kind == other_kind:
        outcome = scalars(scaled[0], scaled[1], world)
        if (
            outcome.verdict == "different"
            and any(text in BINARY for text in texts)
            and not any("iB" in text for text in texts)
        ):  # 1 GB and 1024 MB
            sizes = [BINARY.get(text, each) for text, each in zip(texts, (factor, other_factor), strict=True)]
            if scalars(*map(_times, values, sizes), world).verdict == "equal":
                return depends("if prefixes of bytes are powers of 1024")
        return outcome
    if not texts[0] or not texts[1]:
        if {name for name, _ in kind or other_kind} == {"unit"}:  # 12 square units
            return scalars(*values, world)
        outcome = scalars(*values, world)
        named = texts[0] or texts[1]
        if outcome.verdict == "different" and {name for name, _ in kind or other_kind} & {"mac", "flop"}:
            for twice in (0, 1):  # a number beside multiply-adds may count FLOP, and the other way round
                both = [
                    Node("product", (value, number(str(1 + (place == twice)))), joined=("",))
                    for place, value in enumerate(values)
                ]
                if scalars(both[0], both[1], world).verdict == "equal":
                    return depends("if a multiply-add is 2 FLOP and one side counts each")
        return depends(f"if the number is in {named}") if outcome.verdict == "equal" else outcome
    return _operations(scaled, [dict(kind), dict(other_kind)], world)


def _times(value: Node, factor: Fraction) -> Node:
    return Node("product", (value, fraction_node(factor)), joined=("",))


def _kelvin(value: Node, kind: Mapping[str, int]) -> Node:
    """A temperature on the scale of kelvin."""
    factor, zero = TEMPERATURES[next(iter(kind))]
    return Node("+", (_times(value, factor), fraction_node(zero)))


def _operations(scaled: list[Node], kinds: list[dict[str, int]], world: World) -> Outcome:
    """FLOP against MAC: by the convention, or with it as the condition."""
    counted = [{("op" if name in ("flop", "mac") else name): power for name, power in kind.items()} for kind in kinds]
    if counted[0] != counted[1] and VAGUE & {*kinds[0], *kinds[1]}:
        return undecided("a unit without a fixed size")
    if counted[0] != counted[1]:
        return different("units of different dimensions")
    for flops in (world.conventions.flop,) if world.conventions.flop else (2, 1):
        both = [
            Node("product", (value, number(str(flops if "mac" in kind else 1))), joined=("",))
            for value, kind in zip(scaled, kinds, strict=True)
        ]
        outcome = scalars(both[0], both[1], world)
        if world.conventions.flop or outcome.verdict == "equal":
            if outcome.verdict == "equal" and not world.conventions.flop:
                return depends(f"if a multiply-add is {flops} FLOP")
            return outcome
    return different("no convention for FLOP makes them equal")
