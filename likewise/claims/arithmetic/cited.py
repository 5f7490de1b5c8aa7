"""Engine "arithmetic": statements about numbers alone, those of a cited table and those written out.

A number that was printed as 85.1 stands for any of 85.05 to 85.15. A verdict is what all of these agree on; that the
number is printed there is the author's word.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import Literal

from likewise.claims.arithmetic.spans import Ends, ends_of, point
from likewise.claims.language.claim import Cell, Claim, Compares, Tolerance
from likewise.claims.language.tree import NEGATED, Binary, Call, Comparison, Node, Number, fraction_text, names
from likewise.claims.verdict import Finding, Undecided

FLOAT_DIGITS = 15
MOST_DIGITS = 80  # of a number that is shown; a claim's own has 64
Answer = Literal["holds", "refuted", "inconclusive"]


def decide(claim: Claim) -> Finding | None:
    """Exact arithmetic, with the interval that the rounding of the cells leaves.

    >>> from likewise.claims.language.parser import parse
    >>> print(decide(parse("assert: choose(40, 2) == 781")).detail)
    780 != 781
    """
    relation = claim.relation
    if not isinstance(relation, Compares) or claim.assumptions:
        return None
    printed = dict(claim.source.cells) if claim.source else {}
    used = set().union(*map(names, relation.chain.terms))
    if not used <= set(printed):
        return None
    cells = {name: cell for name, cell in printed.items() if name in used}
    pairs = zip(relation.chain.comparisons, pairwise(relation.chain.terms), strict=True)
    found = [Compared(left, sign, right, relation.within, cells) for sign, (left, right) in pairs]
    worst = min(found, key=lambda compared: ("refuted", "inconclusive", "holds").index(compared.answer))
    if worst.answer == "inconclusive" and not cells:
        raise Undecided(f"{worst.detail}: too close to tell")
    answer = worst.answer
    cited = f"{claim.source.title}, {claim.source.place}".strip(", ") if claim.source and cells else ""
    witness = tuple((name, fraction_text(cell.value)) for name, cell in cells.items())
    return Finding(
        verdict=answer,
        grade="undecided" if answer == "inconclusive" else "arithmetic",
        detail=worst.detail,
        engine="arithmetic",
        witness=(witness or worst.sides) if answer == "refuted" else (),
        numbers=worst.sides + ((("source", f"{cited} (as cited by the author)"),) if cited else ()),
    )


@dataclass(frozen=True)
class Compared:
    """One comparison, at the numbers as printed and over their rounding."""

    left: Node
    sign: Comparison
    right: Node
    within: Tolerance | None
    cells: Mapping[str, Cell]

    @cached_property
    def answer(self) -> Answer:
        as_printed = self._truth(self._printed)
        if not self.cells or (self.sign == "==" and self.within is None and as_printed == "holds"):
            return as_printed  # equality without a tolerance speaks of the numbers as they are printed
        return self._truth(self._rounded)

    @property
    def detail(self) -> str:
        left, right = (ends_of(side, self._printed) for side in (self.left, self.right))
        if not self.cells:
            sign = NEGATED[self.sign] if self.answer == "refuted" else self.sign
            within = f" within {self.within}" if self.within else ""
            return f" {sign} ".join(told_apart(left, right)) + within
        text, shown = number_text(left), self.left
        if names(self.right):
            shown = Binary("-", self.left, self.right)
            difference = number_text(ends_of(shown, self._printed))
            text = f"{text} against {number_text(right)}, difference {difference}"
        low, high = (digits(end, 4) for end in ends_of(shown, self._rounded))
        crosses = "; both answers are possible within it" if self.answer == "inconclusive" else ""
        return f"{text} (rounding of the cells: {low} to {high}{crosses})"

    @property
    def sides(self) -> tuple[tuple[str, str], ...]:
        """Both sides as numbers."""
        left, right = told_apart(*(ends_of(side, self._printed) for side in (self.left, self.right)))
        return (("left", left), ("right", right))

    @property
    def _printed(self) -> dict[str, Ends]:
        return point({name: cell.value for name, cell in self.cells.items()})

    @property
    def _rounded(self) -> dict[str, Ends]:
        return {name: (cell.value - cell.half_unit, cell.value + cell.half_unit) for name, cell in self.cells.items()}

    def _truth(self, box: Mapping[str, Ends]) -> Answer:
        """holds or refuted if the comparison is the same everywhere in the box."""
        strict = self.sign in ("<", ">")
        found = [_not_above_zero(ends_of(excess, box), strict) for excess in self._excesses()]
        answer: Answer = "refuted" if "refuted" in found else "inconclusive" if "inconclusive" in found else "holds"
        if self.sign == "!=":
            return "refuted" if answer == "holds" else "holds" if answer == "refuted" else answer
        return answer

    def _excesses(self) -> list[Node]:
        """What must not be above 0 for the comparison to be true; for != to be false."""
        over, under = Binary("-", self.left, self.right), Binary("-", self.right, self.left)
        found: list[Node] = (
            [over] if self.sign in ("<", "<=") else [under] if self.sign in (">", ">=") else [over, under]
        )
        if self.within is None:
            return found
        room: Node = Number(self.within.value)
        if self.within.relative:
            room = Binary("*", room, Call("abs", (self.right,)))
        return [Binary("-", excess, room) for excess in found]


def _not_above_zero(ends: Ends, strict: bool) -> Answer:
    low, high = ends
    if high < 0 or (high == 0 and not strict):
        return "holds"
    return "refuted" if low > 0 or (low == 0 and strict) else "inconclusive"


def digits(value: Fraction, count: int) -> str:
    """A few digits of a number of any size."""
    if value and not Fraction(1, 10**300) < abs(value) < 10**300:  # no float holds it
        return f"{Decimal(value.numerator) / Decimal(value.denominator):.{count - 1}e}"
    if count > FLOAT_DIGITS:
        with localcontext() as context:
            context.prec = count
            return f"{(Decimal(value.numerator) / Decimal(value.denominator)).normalize():f}"
    return f"{float(value):.{count}g}"


def told_apart(left: Ends, right: Ends) -> tuple[str, str]:
    """Two numbers, with as many digits more than usual as it takes to see that they differ.

    >>> one, other = Fraction(1, 3), Fraction(33333333, 10**8)
    >>> told_apart((one, one), (other, other))
    ('0.333333333', '0.33333333')
    """
    number = 6
    if left[1] < right[0] or right[1] < left[0]:
        while number < MOST_DIGITS and digits(_middle(left), number) == digits(_middle(right), number):
            number += 1
    return number_text(left, number), number_text(right, number)


def _middle(ends: Ends) -> Fraction:
    return (ends[0] + ends[1]) / 2


def number_text(ends: Ends, number: int = 6) -> str:
    """A number as people write it: whole or short decimals exactly, others with six digits.

    >>> number_text((Fraction(88, 237), Fraction(88, 237))), number_text((Fraction(780), Fraction(780)))
    ('0.371308', '780')
    """
    exact = fraction_text(ends[0]) if ends[0] == ends[1] else ""
    return exact if exact and "/" not in exact and len(exact) <= number + 3 else digits(_middle(ends), number)
