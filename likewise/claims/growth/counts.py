"""Quantities of programs: counted exactly, then compared with numbers and polynomials, or bounded by an order.

In an order `cost` is multiply-adds and elementwise results together; against a polynomial or a number it is what `unit`
says. A peak is the maximum of several polynomials; for an order their sum grows alike. A program is one of ours, or a
function of a file of the user where code is allowed.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from importlib.metadata import version

from likewise.claims.growth.cone import Sizes
from likewise.claims.growth.everywhere import compared, findings, met, refutation
from likewise.claims.growth.orders import Judgement, ask, judge, printed, refuted
from likewise.claims.growth.powers import Power, magnitude, of_polynomials
from likewise.claims.language.claim import Bounded, Claim, Compares, Counts, Size
from likewise.claims.language.expressions import QUANTITIES, rebuilt
from likewise.claims.language.parser import nodes, over
from likewise.claims.language.tree import NEGATED, Binary, Call, Name, Node, Number, children, fraction_text
from likewise.claims.registry import Measured, Program, counting, programs
from likewise.claims.sandbox.confinement import OFF
from likewise.claims.verdict import Finding, Undecided
from likewise.polynomial import Polynomial, interpolate

ENGINE = "count"
HIGHEST, HOLD_OUTS = 4, 4  # degree of a counter in one size; runs at larger sizes that confirm it
TOTAL = "macs and elementwise"  # what `cost` means in an order


@dataclass(frozen=True)
class Counted:
    """A quantity of a program: the maximum of some polynomials in its sizes; one, mostly."""

    parts: tuple[Polynomial, ...]
    sizes: tuple[str, ...]
    text: str
    runs: str = ""
    confinement: str = ""  # of a program of the user

    @property
    def node(self) -> Node:
        """The same as an expression."""
        found = [_tree(part) for part in self.parts]
        return found[0] if len(found) == 1 else Call("max", tuple(found))


def _tree(part: Polynomial) -> Node:
    """A polynomial as an expression."""
    total: Node | None = None
    for factors, value in part.terms.items():
        term: Node = Number(value)
        for name, exponent in factors:
            term = Binary("*", term, Binary("^", Name(name), Number(Fraction(exponent))))
        total = term if total is None else Binary("+", total, term)
    return total or Number(Fraction(0))


@dataclass(frozen=True)
class Allowed:
    """Which code of the user a claim may name: none, or functions of files in a folder."""

    allow_code: bool = False
    folder: str = ""


def counted(name: str, quantity: str, claim: Claim, unit: str | None, allowed: Allowed) -> Counted:
    """A quantity under the claim's conventions; `unit` is mac, flop, or TOTAL in an order."""
    if name not in programs() and not allowed.allow_code:
        unknown = f"unknown program {name}; --allow-code counts a function of your own file"
        raise Undecided(OFF if ":" in name else unknown)
    if quantity == "count":
        return _counter(name)
    if quantity == "cost":
        return _cost(name, claim, unit, allowed)
    wanted = "fused_traffic" if (quantity, claim.kernel) == ("traffic", "fused") else quantity
    found = _measured(name, (wanted,), claim, allowed)
    (parts,) = found.parts
    texts = [part.text(found.sizes) for part in parts]
    return _counted(found, parts, texts[0] if len(texts) == 1 else f"max({', '.join(texts)})")


def _cost(name: str, claim: Claim, unit: str | None, allowed: Allowed) -> Counted:
    if unit == TOTAL:
        found = _measured(name, ("macs", "elementwise"), claim, allowed)
        ((macs,), (elementwise,)) = found.parts
        text = f"{macs.text(found.sizes)} mac, {elementwise.text(found.sizes)} elementwise"
        return _counted(found, (macs + elementwise,), text)
    found = _measured(name, ("macs",), claim, allowed)
    ((macs,),) = found.parts
    if unit is None:
        raise Undecided(f"unit missing: {macs.text(found.sizes)} mac = {(2 * macs).text(found.sizes)} flop")
    part = macs if unit == "mac" else 2 * macs
    return _counted(found, (part,), f"{part.text(found.sizes)} {unit}")


def _counted(found: Measured, parts: tuple[Polynomial, ...], text: str) -> Counted:
    return Counted(parts, found.sizes, text, found.runs, found.confinement)


def _measured(name: str, quantities: tuple[str, ...], claim: Claim, allowed: Allowed) -> Measured:
    """Each quantity as polynomials: of a program of ours, or of the user."""
    if name in programs():
        return _of_ours(programs()[name], quantities, claim.memory)
    if claim.memory != "materialised":
        raise Undecided(f"{name} has no {claim.memory} variant")
    return counting().of_file(name, quantities, folder=allowed.folder, seconds=claim.budget)


def _of_ours(program: Program, quantities: tuple[str, ...], memory: str) -> Measured:
    if not program.makes:
        raise Undecided(f"{program.name} is a counter; ask for its count")
    if memory not in program.makes:
        raise Undecided(f"{program.name} has no {memory} variant")
    try:
        return counting().of_program(program.makes[memory], program.sizes, quantities)
    except Undecided as reason:
        raise Undecided(f"{program.name}: {reason}") from None


def _counter(name: str) -> Counted:
    """What a counter returns, as the polynomial of least degree that four larger sizes confirm."""
    count = programs()[name].count if name in programs() else None
    if count is None:
        raise Undecided(f"{name} is no counter; ask for cost, elementwise, traffic, params, peak or saved")
    sizes = programs()[name].sizes
    larger = [{name: 6 + (2 * i + 3 * j) % 7 for j, name in enumerate(sizes)} for i in range(HOLD_OUTS)]
    for degree in range(1, HIGHEST + 1):
        found = interpolate(lambda point: count(**point), sizes, [degree] * len(sizes), 1)
        if all(found.evaluate(point) == count(**point) for point in larger):
            runs = f"{(degree + 1) ** len(sizes)}+{HOLD_OUTS} runs" if sizes else ""
            return Counted((found,), sizes, found.text(sizes), runs)
    raise Undecided(f"{name} is no polynomial of degree {HIGHEST} in {', '.join(sizes)}")


class _Inliner:
    """Replaces cost(attention.softmax) and its kin by what was counted, and cells by their numbers."""

    def __init__(self, claim: Claim, unit: str | None, allowed: Allowed) -> None:
        self.claim, self.unit, self.allowed = claim, unit, allowed
        self.cells = dict(claim.source.cells) if claim.source else {}
        self.seen: dict[str, Counted] = {}

    def quantity(self, program: str, quantity: str) -> Counted:
        found = counted(program, quantity, self.claim, self.unit, self.allowed)
        self.seen[f"{quantity}({program})"] = found
        return found

    def __call__(self, node: Node) -> Node:
        if isinstance(node, Call) and node.function in QUANTITIES and isinstance(node.arguments[0], Name):
            return self.quantity(node.arguments[0].name, node.function).node
        if isinstance(node, Name) and node.name in self.cells:
            return Number(self.cells[node.name].value)
        return rebuilt(node, self)

    @property
    def sized(self) -> Claim:
        """The claim with all sizes of its programs: it declares none of them, or every one."""
        declared = {size.name for size in self.claim.sizes}
        for name, found in self.seen.items():
            missing = [size for size in found.sizes if size not in declared]
            if declared and missing:
                raise Undecided(f"{name} has the sizes {', '.join(found.sizes)}; {missing[0]} is not declared")
        needed = dict.fromkeys(size for found in self.seen.values() for size in found.sizes)
        return self.claim if declared else replace(self.claim, sizes=tuple(map(Size, needed)))

    @property
    def numbers(self) -> tuple[tuple[str, str], ...]:
        return (*((name, found.text) for name, found in self.seen.items()), *self.elsewhere)

    @property
    def elsewhere(self) -> tuple[tuple[str, str], ...]:
        """Of programs of the user: what their process could not do, and which torch it had."""
        said = dict.fromkeys(found.confinement for found in self.seen.values() if found.confinement)
        return (*(("confinement", text) for text in said), *([("torch", version("torch"))] if said else []))

    @property
    def grade(self) -> str:
        runs = dict.fromkeys(found.runs.removesuffix(" runs") for found in self.seen.values() if found.runs)
        said = [f"{' and '.join(runs)} runs"] if runs else []
        return ", ".join(["counted", *(["your code"] if self.elsewhere else []), *said])


def names_a_quantity(node: Node) -> bool:
    """Whether cost(attention.softmax) or its kin is somewhere in it."""
    mine = isinstance(node, Call) and node.function in QUANTITIES
    return mine or any(map(names_a_quantity, children(node)))


def decide(claim: Claim, *, allow_code: bool = False, folder: str = "") -> Finding | None:
    """A claim about a quantity of a program; None if it names none."""
    relation, allowed = claim.relation, Allowed(allow_code, folder)
    quantities = any(map(names_a_quantity, nodes(relation)))
    if isinstance(relation, Counts) or (isinstance(relation, Bounded) and isinstance(relation.quantity, str)):
        if claim.program is None:
            raise Undecided(f"{relation.quantity} of what? of: is missing")
    elif not quantities:
        return None
    match relation:
        case Bounded():
            return _bounded(claim, relation, allowed)
        case Counts():
            return _compared(claim, relation, allowed)
        case Compares() if not claim.variables:
            inline = _Inliner(claim, claim.unit, allowed)
            plain = over(relation, inline)
            found = findings(inline.sized, plain, (inline.grade, inline.grade))
            counts = [f"{name} = {subject.text}" for name, subject in inline.seen.items() if inline.sized.sizes]
            detail = "; ".join(filter(None, [found.detail, *counts]))
            return replace(found, engine=ENGINE, detail=detail, numbers=inline.numbers)
    return None


def _bounded(claim: Claim, relation: Bounded, allowed: Allowed) -> Finding:
    judgement, inline, subject = _judged(claim, relation, allowed)
    if judgement.holds:
        detail = "; ".join(subject.text for subject in inline.seen.values()) if subject is None else subject.text
        named = "" if subject is None or relation.quantity == "cost" else f"{relation.quantity} = "
        return Finding("holds", inline.grade, named + detail, "order", numbers=inline.numbers)
    peak = f"; peak = {subject.text}" if relation.quantity == "peak" and subject else ""
    return refuted(_with_variants(claim, relation, judgement, allowed), inline.grade, peak, inline.numbers)


def _judged(claim: Claim, relation: Bounded, allowed: Allowed) -> tuple[Judgement, _Inliner, Counted | None]:
    """The answer to an order, and what was counted for it."""
    inline = _Inliner(claim, TOTAL, allowed)
    subject = None
    if isinstance(relation.quantity, str):
        subject = inline.quantity(str(claim.program), relation.quantity)
        quantity = subject.node
    else:
        quantity = inline(relation.quantity)
    bound = inline(relation.bound)
    sizes = Sizes.of(inline.sized)
    left = magnitude(quantity, sizes.names) if subject is None else of_polynomials(subject.parts)
    right = magnitude(bound, sizes.names)
    terms = _printed_terms(subject.parts, sizes.names) if subject else ()
    return judge(relation.order, ask(left, right, sizes, terms)), inline, subject


def _printed_terms(parts: Sequence[Polynomial], order: Sequence[str]) -> list[tuple[Power, Fraction]]:
    """The terms of every part in turn, each with the coefficient it has where it is first seen."""
    found: dict[Power, Fraction] = {}
    for part in parts:
        (terms,) = of_polynomials([part]).sums
        for key in printed(terms, order):
            found.setdefault(key, terms[key])
    return list(found.items())


def _with_variants(claim: Claim, relation: Bounded, judgement: Judgement, allowed: Allowed) -> Judgement:
    """The suggestions, with another kernel or memory that would satisfy the bound."""
    others = []
    if relation.quantity == "traffic" and claim.kernel == "unfused":
        others.append(("kernel: fused", replace(claim, kernel="fused")))
    if relation.quantity == "peak" and claim.memory == "materialised":
        others.append(("memory: streamed", replace(claim, memory="streamed")))
    for text, other in others:
        try:
            found, _, _ = _judged(other, relation, allowed)
        except Undecided:
            continue
        if found.holds:
            judgement = replace(judgement, suggestions=(*judgement.suggestions, text))
    return judgement


def _compared(claim: Claim, relation: Counts, allowed: Allowed) -> Finding:
    """A quantity against an expression."""
    inline = _Inliner(claim, claim.unit, allowed)
    subject = inline.quantity(str(claim.program), relation.quantity)
    right = inline(relation.right)
    sizes = Sizes.of(inline.sized)
    answer = compared(subject.node, relation.comparison, right, sizes, relation.within)
    (number,) = magnitude(right, sizes.names).sums[:1]
    if not subject.sizes and not set(number) - {()}:
        found = _number(claim, relation, max(part.coefficient() for part in subject.parts), number.get((), Fraction(0)))
        return replace(found, grade=inline.grade, numbers=found.numbers + inline.elsewhere)
    if answer.proof:
        detail = subject.text if relation.comparison == "==" else f"{subject.text}; {answer.proof}"
        return Finding("holds", inline.grade, detail, ENGINE, numbers=inline.numbers)
    found = refutation(answer, relation.comparison, sizes, inline.grade, f"; {relation.quantity} = {subject.text}")
    return replace(found, engine=ENGINE, numbers=inline.numbers)


def _number(claim: Claim, relation: Counts, value: Fraction, right: Fraction) -> Finding:
    """A number against a number."""
    holds = met(value, relation.comparison, right, relation.within)
    if relation.comparison == "==":
        detail = fraction_text(value) + (f", {percent(value, right)} off" if value != right and right else "")
    else:
        sign = relation.comparison if holds else NEGATED[relation.comparison]
        detail = f"{fraction_text(value)} {sign} {fraction_text(right)}"
    pair = ((relation.quantity, fraction_text(value)),)
    if holds:
        return Finding("holds", "", detail, ENGINE, numbers=pair)
    return Finding("refuted", "", detail + _siblings(claim, relation, right), ENGINE, pair, numbers=pair)


def _siblings(claim: Claim, relation: Counts, right: Fraction) -> str:
    """Other programs of the same family, of ours, that satisfy the relation: (v1.5: 4089184256)."""
    if claim.program not in programs():
        return ""
    family = f"{str(claim.program).rpartition('.')[0]}."
    found = []
    for name, program in programs().items():
        if name.startswith(family) and name != claim.program and not program.sizes:
            try:
                (part,) = counted(name, relation.quantity, claim, claim.unit, Allowed()).parts
            except Undecided:
                continue
            if met(part.coefficient(), relation.comparison, right, relation.within):
                variant = re.sub(r"(?<=[0-9])_(?=[0-9])", ".", name.removeprefix(family))  # v1_5 is v1.5
                found.append(f"{variant}: {fraction_text(part.coefficient())}")
    return f" ({', '.join(found)})" if found else ""


def percent(value: Fraction, right: Fraction) -> str:
    """How far a value is from the right side, in percent of it: two decimals, or the first digit that is not 0.

    >>> percent(Fraction(140025664), Fraction(140000000)), percent(Fraction(3857973248), Fraction(4100000000))
    ('0.02%', '5.9%')
    """
    share = 100 * abs((value - right) / right)
    decimals = 2
    while share and round(share, decimals) == 0:
        decimals += 1
    return f"{fraction_text(round(share, decimals))}%"
