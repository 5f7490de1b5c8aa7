"""The nearest true statement: a refuted equation or inequality with one small change, which is then proved.

A change is a sign, a factor of 2 or -1, a number, a missing cross term, or the relation (of an inequality: only that).
Every candidate is checked as a claim of its own, so what is suggested is proved; where no candidate is, nothing is
suggested.
"""

import itertools
from collections.abc import Iterator, MutableMapping, Sequence
from dataclasses import fields, is_dataclass, replace
from fractions import Fraction
from typing import Any

from likewise.claims.checking import check_claims
from likewise.claims.language.claim import Claim, Compares, Reals
from likewise.claims.language.parser import parse
from likewise.claims.language.tokens import Unbounded, Unparsed
from likewise.claims.language.tree import Binary, Call, Comparison, Name, Negative, Node, Number
from likewise.claims.stated import ClaimSource
from likewise.review.gist import gist
from likewise.review.statements import Statement

REFUTED, CANDIDATES, BUDGET = 12, 32, 1.0  # statements of an answer, claims for each, seconds for each claim
STEP = 8  # candidates that are checked at once; the nearest come first
LONGEST = 400  # characters of a claim that is changed
EXACT = ("proved", "arithmetic")
RELATIONS: dict[Comparison, tuple[Comparison, ...]] = {"==": ("<=", ">="), "<=": (">=",), ">=": ("<=",)}
TWO = Number(Fraction(2))


def with_nearest(statements: Sequence[Statement], known: MutableMapping[str, str]) -> list[Statement]:
    """The statements, the first refuted ones with what is true instead; `known`: by claim, what was found before."""
    asked = [
        each.verdict.statement
        for each in statements
        if each.verdict and (found := gist(each.verdict)) and not found.nearest
    ]
    new = [text for text in dict.fromkeys(asked) if text not in known][:REFUTED]
    known.update(dict.fromkeys(new, ""))
    left = {text: changed(text) for text in new}
    while left:
        batch = [(text, candidate) for text, found in left.items() for candidate in found[:STEP]]
        verdicts = check_claims([ClaimSource("nearest", candidate) for _, candidate in batch], budget=BUDGET)
        for (text, candidate), verdict in zip(batch, verdicts, strict=True):
            if not known[text] and verdict.verdict == "holds" and verdict.grade in EXACT:
                known[text] = candidate.rpartition("assert: ")[2]
        left = {text: found[STEP:] for text, found in left.items() if found[STEP:] and not known[text]}
    return [
        replace(each, nearest=known.get(each.verdict.statement, "")) if each.refuted and each.verdict else each
        for each in statements
    ]


def changed(statement: str) -> list[str]:
    r"""The claims that differ from a refuted one by one small change, the nearest first.

    >>> changed("given: a in R; b in R | assert: (a + b)^2 == a^2 - 2*a*b + b^2")[0]
    'given: a in R; b in R\nassert: (a + b)^2 == a^2 - 2*a*b - b^2'
    """
    text = statement.replace(" | ", "\n")
    head, found, _ = text.rpartition("assert: ")
    try:
        claim = parse(text, id="claim") if found and len(text) <= LONGEST else None
    except (Unparsed, Unbounded):
        claim = None
    if claim is None or not isinstance(claim.relation, Compares) or claim.relation.within:
        return []
    chain = claim.relation.chain
    if len(chain.terms) != 2 or chain.comparisons[0] not in RELATIONS:
        return []
    (left, right), relation = chain.terms, chain.comparisons[0]
    made = [f"{left} == {node}" for node in _changes(right, claim)] if relation == "==" else []
    if made and not isinstance(left, Name):
        made += [f"{node} == {right}" for node in _signs(left)]
    kept = [each for each in dict.fromkeys(made) if each != f"{left} == {left}"][: CANDIDATES - 2]
    kept += [f"{left} {other} {right}" for other in RELATIONS[relation]]
    return [f"{head}assert: {each}" for each in kept]


def _changes(node: Node, claim: Claim) -> Iterator[Node]:
    yield from _signs(node)
    yield from _everywhere(node, _factors)
    yield from _crossed(node, claim)


def _signs(node: Node) -> Iterator[Node]:
    """Another sign of one term or of the whole."""
    yield from _everywhere(node, _flipped)
    yield Negative(node)


def _flipped(node: Node) -> Iterator[Node]:
    if isinstance(node, Binary) and node.operator in "+-":
        yield replace(node, operator="-" if node.operator == "+" else "+")
    if isinstance(node, Negative):
        yield node.operand


def _factors(node: Node) -> Iterator[Node]:
    """A number beside it, or another factor of a call, a power or a product."""
    if isinstance(node, Number):
        for value in (2 * node.value, node.value / 2, node.value + 1, node.value - 1):
            yield Number(value)
    elif isinstance(node, Call) or (isinstance(node, Binary) and node.operator in "*/^"):
        yield Binary("*", TWO, node)
        yield Binary("/", node, TWO)


def _crossed(node: Node, claim: Claim) -> Iterator[Node]:
    """A cross term more: twice the product of two numbers or vectors."""
    plain = [each for each in claim.variables if isinstance(each.kind, Reals) and len(each.kind.dims) <= 1]
    for first, second in itertools.pairwise(plain):
        if first.kind == second.kind:
            names = (Name(first.name), Name(second.name))
            vectors = isinstance(first.kind, Reals) and first.kind.dims
            product = Call("dot", names) if vectors else Binary("*", *names)
            for operator in ("+", "-"):
                yield Binary(operator, node, Binary("*", TWO, product))
                yield Binary(operator, node, product)


def _everywhere(node: Node, change: Any) -> Iterator[Node]:
    """The tree with one change at one place, from the outside to the inside."""
    yield from change(node)
    for each in fields(node) if is_dataclass(node) else ():
        inside = getattr(node, each.name)
        if isinstance(inside, tuple):
            for place, part in enumerate(inside):
                for other in _everywhere(part, change) if _is_node(part) else ():
                    yield replace(node, **{each.name: (*inside[:place], other, *inside[place + 1 :])})
        elif _is_node(inside):
            for other in _everywhere(inside, change):
                yield replace(node, **{each.name: other})


def _is_node(value: Any) -> bool:
    return isinstance(value, Node) and not isinstance(value, str)
