"""Assumptions that contradict each other, as far as those that are linear in numbers and sizes tell.

Each maximum, minimum, absolute value and relu is split into its cases. If in every case the linear comparisons have no
common solution, which a certificate shows, then nothing satisfies the assumptions and a proof says nothing.
"""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from math import gcd, lcm

from likewise.claims import arrays
from likewise.claims.algebra.exponomials import number_power
from likewise.claims.growth.linear import Certificate, LinearForm, NotLinear, Row, solve
from likewise.claims.language.claim import Between, Claim, Integers, OneOf, Reals, Variable
from likewise.claims.language.limits import EXPONENT
from likewise.claims.language.tree import Chain, Comparison
from likewise.claims.reader import Reader, Scalars
from likewise.claims.verdict import Undecided

CASES = 256


class _Split(Exception):
    """A case distinction met for the first time."""

    def __init__(self, key: object, branches: int) -> None:
        self.key, self.branches = key, branches


@dataclass
class _Case:
    """One branch of every case distinction, and the comparisons that lead there."""

    claim: Claim
    choices: dict[object, int]
    guards: list[Row] = field(default_factory=list)

    def choose(self, key: object, branches: int) -> int:
        if key not in self.choices:
            raise _Split(key, branches)
        return self.choices[key]

    def largest(self, *forms: LinearForm) -> LinearForm:
        """The largest of the forms, by a guard where it is another one in another case."""
        if all(not (form - forms[0]).coefficients for form in forms):
            return max(forms, key=lambda form: form.constant)
        key = ("largest", tuple((frozenset(form.coefficients.items()), form.constant) for form in forms))
        chosen = forms[self.choose(key, len(forms))]
        self.guards += [Row(form - chosen, "<=") for form in forms if form is not chosen]
        return chosen

    @cached_property
    def reader(self) -> Reader:
        """Every size and number as a form."""
        names = [size.name for size in self.claim.sizes]
        names += [each.name for each in self.claim.variables if not isinstance(each.kind, OneOf)]
        values = {name: arrays.scalar(LinearForm.of(name)) for name in names}
        for each in self.claim.variables:
            if isinstance(each.kind, OneOf):
                values[each.name] = arrays.scalar(LinearForm.made(self.one_of(each)))
        scalars = Scalars(
            elementwise={
                "abs": lambda form: self.largest(form, -form),
                "relu": lambda form: self.largest(form, LinearForm()),
            },
            maximum=self.largest,
            power=_power,
            number=LinearForm.made,
            divide=_over,
        )
        return Reader(values, scalars=scalars)

    def one_of(self, variable: Variable) -> Fraction:
        """The value that a variable with few values has in this case, so that products with it are linear."""
        values = variable.kind.values if isinstance(variable.kind, OneOf) else ()
        return values[self.choose(("one of", variable.name), len(values))]

    def stated(self, chain: Chain) -> Iterator[Row]:
        """Every comparison of a chain."""
        terms = [self.reader.evaluate(term).scalar for term in chain.terms]
        for left, comparison, right in zip(terms, chain.comparisons, terms[1:], strict=False):
            if comparison == "!=":
                key = ("unequal", frozenset((left - right).coefficients.items()), (left - right).constant)
                comparison = ("<", ">")[self.choose(key, 2)]
            yield _row(left, comparison, right)

    def assumed(self) -> list[Row]:
        """What the claim takes for granted: its assumptions, the domains, sizes of at least 1."""
        rows = [row for chain in self.claim.assumptions for row in self.stated(chain)]
        for variable in self.claim.variables:
            form = LinearForm.of(variable.name)
            match variable.kind:
                case Between(lowest, highest) | Integers(int(lowest), int(highest)):
                    rows += [_row(form, ">=", LinearForm.made(lowest)), _row(form, "<=", LinearForm.made(highest))]
                case OneOf():
                    rows.append(_row(form, "==", LinearForm.made(self.one_of(variable))))
        for size in self.claim.sizes:
            rows.append(_row(LinearForm.of(size.name), ">=", LinearForm.made(1)))
        return [*rows, *self.guards]


def _power(base: LinearForm, exponent: LinearForm | Fraction) -> LinearForm:
    exponent = LinearForm.made(exponent)
    power = exponent.constant
    if exponent.coefficients or power.denominator > 1 or not 0 <= power <= EXPONENT:
        raise NotLinear("a power")
    if base.coefficients and power != 1:
        raise NotLinear("a power of a variable")
    return base if power == 1 else LinearForm.made(number_power(base.constant, int(power)))


def _over(top: LinearForm, bottom: LinearForm) -> LinearForm:
    if bottom.coefficients:
        raise NotLinear("a division by a variable")
    return top * (1 / bottom.constant)


def _row(left: LinearForm, comparison: Comparison, right: LinearForm) -> Row:
    """A comparison other than != as one row."""
    if comparison in (">", ">="):
        left, right = right, left
    return Row(left - right, "==" if comparison == "==" else "<" if comparison in ("<", ">") else "<=")


def _cases(claim: Claim) -> Iterator[list[Row]]:
    """What is assumed in every branch of the distinctions that reading the assumptions meets."""
    waiting: list[dict[object, int]] = [{}]
    count = 0
    while waiting:
        case = _Case(claim, waiting.pop())
        try:
            yield case.assumed()
        except _Split as split:
            waiting += [{**case.choices, split.key: branch} for branch in reversed(range(split.branches))]
            count += split.branches
            if count > CASES:
                raise Undecided(f"more than {CASES} cases of max, min and abs") from None


def indivisible(rows: Iterable[Row], whole: Collection[str]) -> bool:
    """Whether an equation in whole numbers has no solution (4n + 2m = 7): a number divides all of it but its constant.

    >>> indivisible([Row(LinearForm({"n": Fraction(4), "m": Fraction(2)}, Fraction(-7)), "==")], ["n", "m"])
    True
    """
    for row in rows:
        numbers = list(row.form.coefficients.values())
        if row.comparison == "==" and numbers and set(row.form.coefficients) <= {*whole}:
            common = lcm(*(number.denominator for number in numbers))
            if (row.form.constant * common / gcd(*(int(number * common) for number in numbers))).denominator > 1:
                return True
    return False


def impossible(claim: Claim) -> bool:
    r"""Whether nothing satisfies the assumptions.

    >>> from likewise.claims.language.parser import parse
    >>> impossible(parse("given: x in R\nassume: x > 2; x < 1; x^2 < 9\nassert: x > 0"))
    True
    """
    arrays_ = [each for each in claim.variables if isinstance(each.kind, Reals) and each.kind.dims]
    numbers = [each for each in claim.variables if not each.random and each not in arrays_]
    sizes = tuple(size for size in claim.sizes if size.equation is None)
    alone = replace(claim, variables=tuple(numbers), sizes=sizes, assumptions=())
    linear = tuple(chain for chain in claim.assumptions if _possible(replace(alone, assumptions=(chain,))) is not None)
    return _possible(replace(alone, assumptions=linear)) is False


def _possible(claim: Claim) -> bool | None:
    """Whether linear assumptions have a common solution; None if one is not linear, or there are too many cases."""
    whole = {size.name for size in claim.sizes} | {v.name for v in claim.variables if isinstance(v.kind, Integers)}
    try:
        for rows in list(_cases(claim)):
            if not isinstance(solve(rows), Certificate) and not indivisible(rows, whole):
                return True
        return False
    except (Undecided, ArithmeticError, IndexError):
        return None
