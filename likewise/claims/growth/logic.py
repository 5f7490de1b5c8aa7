"""Linear arithmetic as logic: a claim that is linear in its variables is proved, or refuted by a point.

Each maximum, minimum, absolute value and relu is split into its cases. In every case the assumptions and the negated
relation are linear comparisons: no solution in any case proves the claim, a solution in one refutes it.
"""

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from itertools import product
from math import gcd, lcm

from likewise.claims import arrays
from likewise.claims.algebra.exponomials import number_power
from likewise.claims.arrays import Array
from likewise.claims.growth.linear import Certificate, Form, NotLinear, Row, small_solution, solve
from likewise.claims.language.claim import Between, Claim, Compares, Integers, OneOf, Reals, Tolerance, Variable
from likewise.claims.language.limits import EXPONENT
from likewise.claims.language.tree import (
    NEGATED,
    Chain,
    Comparison,
    Node,
    fraction_text,
    names,
)
from likewise.claims.reader import Reader, Scalars
from likewise.claims.verdict import Finding, Undecided

CASES, LARGEST, ELEMENTS = 256, 3, 12
ENGINE = "linear arithmetic"
Link = tuple[Form, Comparison, Form]


class _Foreign(Exception):
    """Something that is not linear: another engine's claim."""


class _Split(Exception):
    """A case distinction met for the first time."""

    def __init__(self, key: object, branches: int) -> None:
        self.key, self.branches = key, branches


@dataclass
class _Case:
    """One branch of every case distinction, and the comparisons that lead there."""

    claim: Claim
    sizes: dict[str, int]
    choices: dict[object, int]
    guards: list[Row] = field(default_factory=list)

    def choose(self, key: object, branches: int) -> int:
        if key not in self.choices:
            raise _Split(key, branches)
        return self.choices[key]

    def largest(self, *forms: Form) -> Form:
        """The largest of the forms, by a guard where it is another one in another case."""
        if all(not (form - forms[0]).coefficients for form in forms):
            return max(forms, key=lambda form: form.constant)
        key = ("largest", tuple((frozenset(form.coefficients.items()), form.constant) for form in forms))
        chosen = forms[self.choose(key, len(forms))]
        self.guards += [Row(form - chosen, "<=") for form in forms if form is not chosen]
        return chosen

    @cached_property
    def reader(self) -> Reader:
        """Every size and variable as a form, or as an array of the forms of its coordinates."""
        values = {name: arrays.scalar(Form.made(size)) for name, size in self.sizes.items()}
        values |= {size.name: arrays.scalar(Form.of(size.name)) for size in self.claim.sizes if size.name not in values}
        reader = Reader(values, self.sizes, self.scalars)
        for variable in self.claim.variables:
            if isinstance(variable.kind, OneOf):
                values[variable.name] = arrays.scalar(Form.made(self.one_of(variable)))
            elif isinstance(variable.kind, Reals) and variable.kind.dims:
                values[variable.name] = self._vector(variable, reader)
            else:
                values[variable.name] = arrays.scalar(Form.of(variable.name))
        return reader

    @property
    def scalars(self) -> Scalars:
        """Forms; of a maximum, and so of an absolute value, one that is the largest in this case."""
        return Scalars(
            elementwise={
                "abs": lambda form: self.largest(form, -form),
                "relu": lambda form: self.largest(form, Form()),
            },
            maximum=self.largest,
            power=_power,
            number=Form.made,
            divide=_over,
        )

    def _vector(self, variable: Variable, reader: Reader) -> Array:
        dims = variable.kind.dims if isinstance(variable.kind, Reals) else ()
        if len(dims) > 1:
            raise _Foreign
        length = _read(reader, dims[0]).scalar
        if length.coefficients or length.constant.denominator > 1 or not 1 <= length.constant <= ELEMENTS:
            raise _Foreign
        stated = "layout" in self.claim.given_fields
        layout = variable.layout or ({"rows": "row", "columns": "col"}[self.claim.layout] if stated else None)
        forms = [Form.of(f"{variable.name}[{place}]") for place in range(1, int(length.constant) + 1)]
        return arrays.lying(forms, layout=layout)

    def one_of(self, variable: Variable) -> Fraction:
        """The value that a variable with few values has in this case, so that products with it are linear."""
        values = variable.kind.values if isinstance(variable.kind, OneOf) else ()
        return values[self.choose(("one of", variable.name), len(values))]

    def coordinates(self, variable: Variable) -> list[str]:
        """x[1], x[2], ... of a vector; a scalar is its own."""
        if isinstance(variable.kind, OneOf):
            return [variable.name]
        return [name for form in self.reader.values[variable.name].entries for name in form.coefficients]

    def unknowns(self) -> list[str]:
        """Every coordinate that a point must give, then the sizes that are not bound."""
        coordinates = [name for variable in self.claim.variables for name in self.coordinates(variable)]
        return coordinates + [size.name for size in self.claim.sizes if size.name not in self.sizes]

    def links(self, chain: Chain) -> list[Link]:
        """Every comparison of a chain, coordinate by coordinate."""
        values = [_read(self.reader, term) for term in chain.terms]
        found: list[Link] = []
        for left, comparison, right in zip(values, chain.comparisons, values[1:], strict=False):
            if comparison == "!=" and (left.shape or right.shape):
                raise _Foreign  # an entry that differs is enough, which is no linear comparison
            try:
                pairs = arrays.broadcast(lambda a, b: (a, b), left, right).entries
            except Undecided:
                raise _Foreign from None
            found += [(a, comparison, b) for a, b in pairs]
        return found

    def assumed(self) -> list[Row]:
        """What the claim takes for granted: its assumptions, the domains, sizes of at least 1."""
        rows = []
        for chain in self.claim.assumptions:
            for left, comparison, right in self.links(chain):
                if comparison == "!=":
                    key = ("unequal", frozenset((left - right).coefficients.items()), (left - right).constant)
                    comparison = ("<", ">")[self.choose(key, 2)]
                rows += _rows(left, comparison, right)
        for variable in self.claim.variables:
            form = Form.of(variable.name)
            match variable.kind:
                case Between(lowest, highest):
                    rows += _rows(form, ">=", Form(constant=lowest)) + _rows(form, "<=", Form(constant=highest))
                case Integers(int(lowest), int(highest)):
                    ends = Form(constant=Fraction(lowest)), Form(constant=Fraction(highest))
                    rows += _rows(form, ">=", ends[0]) + _rows(form, "<=", ends[1])
                case OneOf():
                    rows += _rows(form, "==", Form(constant=self.one_of(variable)))
        free = [size for size in self.claim.sizes if size.name not in self.sizes]
        rows += [row for size in free for row in _rows(Form.of(size.name), ">=", Form(constant=Fraction(1)))]
        for size in free:
            if size.equation is not None:
                rows += _rows(Form.of(size.name), "==", _read(self.reader, size.equation).scalar)
        return rows


def _read(reader: Reader, node: Node) -> Array:
    """The forms of an expression; _Foreign where they are not linear, or not defined."""
    try:
        return reader.evaluate(node)
    except (Undecided, ArithmeticError, IndexError):
        raise _Foreign from None


def _power(base: Form, exponent: Form | Fraction) -> Form:
    exponent = Form.made(exponent)
    power = exponent.constant
    if exponent.coefficients or power.denominator > 1 or not 0 <= power <= EXPONENT:
        raise NotLinear("a power")
    if base.coefficients and power != 1:
        raise NotLinear("a power of a variable")
    return base if power == 1 else Form.made(number_power(base.constant, int(power)))


def _over(top: Form, bottom: Form) -> Form:
    if bottom.coefficients:
        raise NotLinear("a division by a variable")
    return top * (1 / bottom.constant)


def _rows(left: Form, comparison: Comparison, right: Form) -> list[Row]:
    """A comparison other than != as one row."""
    if comparison in (">", ">="):
        left, right = right, left
    return [Row(left - right, "==" if comparison == "==" else "<" if comparison in ("<", ">") else "<=")]


def _negations(link: Link, within: Tolerance | None) -> list[list[Row]]:
    """The ways to break a link."""
    left, comparison, right = link
    slack = Form()
    if within is not None:
        if within.relative and right.coefficients:
            raise _Foreign
        slack = Form(constant=within.value * (abs(right.constant) if within.relative else 1))
    if comparison == "==":
        return [_rows(left + slack, "<", right), _rows(left, ">", right + slack)]
    if within is not None:
        raise _Foreign
    return [_rows(left, NEGATED[comparison], right)]


def _cases(claim: Claim, sizes: dict[str, int], read: Callable[[_Case], object]) -> Iterator[_Case]:
    """Every branch of the distinctions that reading the claim meets."""
    waiting: list[dict[object, int]] = [{}]
    count = 0
    while waiting:
        case = _Case(claim, sizes, waiting.pop())
        try:
            read(case)
        except _Split as split:
            waiting += [{**case.choices, split.key: branch} for branch in reversed(range(split.branches))]
            count += split.branches
            if count > CASES:
                raise Undecided(f"more than {CASES} cases of max, min and abs") from None
        else:
            yield _Case(claim, sizes, case.choices)


def _search(claim: Claim, relation: Compares, sizes: dict[str, int]) -> tuple[dict[str, Fraction], Link] | int:
    """A point and the link it breaks at these sizes, or the number of cases without; 0 if nothing is allowed there."""
    whole = _whole(claim)
    count, possible, only_fractions = 0, False, False
    for case in _cases(claim, sizes, lambda case: (case.assumed(), case.links(relation.chain))):
        count += 1
        rows, links = case.assumed(), case.links(relation.chain)
        rows += case.guards
        possible = possible or not (isinstance(solve(rows), Certificate) or indivisible(rows, whole))
        for link in links:
            for negation in _negations(link, relation.within):
                point = small_solution([*rows, *negation], case.unknowns())
                if isinstance(point, Certificate) or indivisible([*rows, *negation], whole):
                    continue
                if all(point[name].denominator == 1 for name in whole & point.keys()):
                    return point, link
                only_fractions = True
    if only_fractions:
        raise Undecided("broken by fractions; whole numbers were not found")
    return count if possible else 0


def _whole(claim: Claim) -> set[str]:
    """What is a whole number: sizes, and variables in Z or a range of it."""
    return {size.name for size in claim.sizes} | {v.name for v in claim.variables if isinstance(v.kind, Integers)}


def indivisible(rows: Iterable[Row], whole: Collection[str]) -> bool:
    """Whether an equation in whole numbers has no solution: a number divides all of it but its constant.

    >>> indivisible([Row(Form({"n": Fraction(4), "m": Fraction(2)}, Fraction(-7)), "==")], ["n", "m"])  # 4n + 2m = 7
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
    r"""Whether nothing satisfies the assumptions, as far as those that are linear in numbers and sizes tell.

    >>> from likewise.claims.language.parser import parse
    >>> impossible(parse("given: x in R\nassume: x > 2; x < 1; x^2 < 9\nassert: x > 0"))
    True
    """
    arrays = [each for each in claim.variables if isinstance(each.kind, Reals) and each.kind.dims]
    numbers = [each for each in claim.variables if not each.random and each not in arrays]
    sizes = tuple(size for size in claim.sizes if size.equation is None)
    alone = replace(claim, variables=tuple(numbers), sizes=sizes, assumptions=())
    linear = tuple(chain for chain in claim.assumptions if _possible(replace(alone, assumptions=(chain,))) is not None)
    return _possible(replace(alone, assumptions=linear)) is False


def _possible(claim: Claim) -> bool | None:
    """Whether linear assumptions have a common solution; None if one is not linear, or there are too many cases."""
    try:
        for case in list(_cases(claim, {}, _Case.assumed)):
            rows = [*case.assumed(), *case.guards]
            if not isinstance(solve(rows), Certificate) and not indivisible(rows, _whole(claim)):
                return True
        return False
    except (_Foreign, Undecided):
        return None


def _refutation(claim: Claim, sizes: dict[str, int], point: dict[str, Fraction], link: Link, chain: Chain) -> Finding:
    left, comparison, right = link
    values = [fraction_text(form.at(point)) for form in (left, right)]
    witness = [(name, str(value)) for name, value in sizes.items()]
    for variable in claim.variables:
        entries = [fraction_text(value) for name, value in point.items() if name.partition("[")[0] == variable.name]
        witness.append((variable.name, entries[0] if variable.name in point else f"({','.join(entries)})"))
    witness += [(size.name, str(point[size.name])) for size in claim.sizes if size.name in point]
    what = f"{values[0]} {NEGATED[comparison]} {values[1]}"
    if comparison == "!=" and len(chain.comparisons) == 1:
        what = f"{chain.terms[0]} = {values[0]}"
    where = " ".join(f"{name}={value}" for name, value in witness)
    sides = (("left", values[0]), ("right", values[1]))
    return Finding(
        "refuted", "exact witness", f"{where}: {what}".removeprefix(": "), ENGINE, witness=tuple(witness) or sides
    )


def decide(claim: Claim) -> Finding | None:
    """Prove or refute a claim that is linear in its variables; None where it is not.

    Vectors of symbolic length are tried at lengths 1 to 3, which can only refute.
    """
    relation = claim.relation
    if not isinstance(relation, Compares) or any(variable.random for variable in claim.variables):
        return None
    kinds = [variable.kind for variable in claim.variables]
    lengths = {name for kind in kinds if isinstance(kind, Reals) for dim in kind.dims for name in names(dim)}
    bound = [size.name for size in claim.sizes] if lengths else []
    if len(bound) > 2 or (lengths and any(size.equation is not None for size in claim.sizes)):
        return None
    true_at: list[str] = []
    try:
        for values in sorted(product(range(1, LARGEST + 1), repeat=len(bound)), key=sum):
            sizes = dict(zip(bound, values, strict=True))
            found = _search(claim, relation, sizes)
            if not isinstance(found, int):
                finding = _refutation(claim, sizes, *found, relation.chain)
                smaller = f"; true for {bound[0]}={','.join(true_at)}" if true_at and len(bound) == 1 else ""
                return replace(finding, detail=finding.detail + smaller)
            true_at += [str(*values[:1])] if found else []
    except _Foreign:
        return None
    if bound:
        return None
    if not found:
        raise Undecided("nothing satisfies the assumptions")
    return Finding("holds", "proved", f"linear arithmetic, {found} case{'s' if found > 1 else ''}", ENGINE)
