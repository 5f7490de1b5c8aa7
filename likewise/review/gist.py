"""A refutation in one sentence: the counterexample in numbers, and the nearest statement that is true."""

import re
from dataclasses import dataclass

from likewise.claims.language.claim import Compares
from likewise.claims.language.parser import parse
from likewise.claims.language.tokens import Unbounded, Unparsed
from likewise.claims.verdict import Verdict

NUMBER = r"[-+]?\d[\d.]*(?:e[-+]?\d+)?(?:/\d+)?"
VALUES = rf"(?:{NUMBER}|\((?:{NUMBER},? ?)+\))"
COMPARED = re.compile(
    rf"^(?:(?P<point>[^:;]*): )?(?:(?P<exact_left>[^;]*?) = )?(?P<left>{VALUES}) (?P<sign>!=|==|[<>]=?)"
    rf" (?:(?P<exact_right>[^;]*?) = )?(?P<right>{VALUES})"
    r"(?: within (?P<within>[^;,(]*?))?(?:, (?P<how>by [^;(]*?))?(?: \((?P<where>needed in line \d+)\))?(?:;|$)"
)
SAID = {"<=": ">", "<": ">=", ">": "<=", ">=": "<", "==": "!="}  # by what was found instead
ESCAPES = re.compile(r"^(?P<term>.+?)(?P<bound> of the bound)? escapes along (?P<ray>.+?) \(ratio ~ (?P<rate>.+?)\)")
SHAPED = re.compile(r"^(?P<found>[\[(][^;@]*[\])]), not (?P<said>[\[(][^;]*[\])])(?:;|$)")
OFF = re.compile(r"^(?P<found>[\d.]+), (?P<share>[\d.]+)% off")
EXPECTATION = re.compile(r"(?:E|Var|Cov|P)\[.*\]|(?:E|Var|Cov|P)\(.*\)")


@dataclass(frozen=True)
class Gist:
    """A refutation: the counterexample, the exact value, what is true instead, and what both sides are."""

    words: str
    exact: str = ""
    nearest: str = ""
    values: tuple[tuple[str, str], ...] = ()  # of both sides: a term, if there is one, and decimals


def gist(verdict: Verdict | None) -> Gist | None:
    """The counterexample in numbers.

    >>> detail = "D=2 q=(1,0): exp(-1) = 0.367879 != exp(-2) = 0.135335; exact value exp(-D); true for D=1"
    >>> gist(Verdict("a", "refuted", "exact witness", detail)).words
    'D = 2, q = (1, 0): left 0.367879, right 0.135335.'
    >>> gist(Verdict("a", "refuted", "exact witness", "0.394294 != 1/2, by quadrature with bounds")).words
    'left 0.394294, right 1/2, by quadrature with bounds.'
    >>> gist(Verdict("a", "refuted", "counted", "N^2*M escapes along M=t (ratio ~ t)")).words
    'With M = t, N^2*M exceeds the bound by a factor that grows as t.'
    """
    if verdict is None or verdict.verdict != "refuted":
        return None
    return Gist(_words(verdict.detail), verdict.exact, _nearest(verdict), _sides(verdict.detail))


def _sides(detail: str) -> tuple[tuple[str, str], ...]:
    if found := COMPARED.match(detail):
        return tuple((found[f"exact_{side}"] or "", _apart(found[side])) for side in ("left", "right"))
    return ()


def _words(detail: str) -> str:
    if found := COMPARED.match(detail):
        point = _spaced(found["point"] or "")
        said = f"; left {SAID[found['sign']]} right is claimed" if found["sign"] in SAID else ""
        within = f", not within {found['within']}" if found["within"] else ""
        where = f"{point}: " if point else ""
        left, right = _apart(found["left"]), _apart(found["right"])
        how = f", {found['how']}" if found["how"] else ""
        needed = f" ({found['where']})" if found["where"] else ""
        return f"{where}left {left}, right {right}{within}{how}{said}{needed}."
    if found := ESCAPES.match(detail):
        term, bound = found["term"], "the bound"
        more, less = (f"the term {term} of the bound", "the left side") if found["bound"] else (term, bound)
        return f"With {_spaced(found['ray'])}, {more} exceeds {less} by a factor that grows as {found['rate']}."
    if found := SHAPED.match(detail):
        return f"The shape is {found['found']}, not {found['said']}."
    if found := OFF.match(detail):
        return f"It is {found['found']}, {found['share']} % off."
    return f"{detail.partition('; ')[0].rstrip('.')}."


def _spaced(point: str) -> str:
    """A point as people write it: `D=2 q=(1,0)` becomes `D = 2, q = (1, 0)`."""
    point = re.sub(r"(\S)=(?=\S)", r"\1 = ", point).replace(" ", "\0")
    point = re.sub(r"(?<!=),?\0(?=\w+\0=)", ", ", point).replace("\0", " ")
    return _apart(point)


def _apart(values: str) -> str:
    return re.sub(r",(?=\S)", ", ", values)


def _nearest(verdict: Verdict) -> str:
    """What is true instead: an expectation with its exact value, or a sum of numbers with its result."""
    try:
        relation = parse(verdict.statement.replace(" | ", "\n"), id="claim").relation
    except (Unparsed, Unbounded):
        return ""
    if not isinstance(relation, Compares) or relation.within or relation.chain.comparisons != ("==",):
        return ""
    left, right = map(str, relation.chain.terms)
    if verdict.exact:
        sides = [side for side in (left, right) if EXPECTATION.fullmatch(side)]
        return f"{sides[0]} == {verdict.exact}" if len(sides) == 1 else ""
    value = dict(verdict.numbers).get("left", "") if verdict.grade == "arithmetic" else ""
    return f"{left} == {value}" if value not in ("", left) and re.fullmatch(NUMBER, right) else ""
