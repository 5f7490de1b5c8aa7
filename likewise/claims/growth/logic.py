"""Linear arithmetic as logic: a claim that is linear in its variables is proved, or refuted by a point.

Each maximum, minimum, absolute value and relu is split into its cases. In every case the assumptions and the negated
relation are linear comparisons: no solution in any case proves the claim, a solution in one refutes it.
"""

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import product
from math import gcd, lcm

from likewise.claims.algebra.exponomials import number_power
from likewise.claims.growth.linear import Certificate, Form, Row, small_solution, solve
from likewise.claims.language.claim import Between, Claim, Compares, Integers, OneOf, Reals, Tolerance, Variable
from likewise.claims.language.limits import EXPONENT
from likewise.claims.language.tree import (
    NEGATED,
    Binary,
    Call,
    Chain,
    Comparison,
    Index,
    Join,
    Name,
    Negative,
    Node,
    Number,
    Text,
    fraction_text,
    names,
)
from likewise.claims.verdict import Finding, Undecided

CASES, LARGEST, ELEMENTS = 256, 3, 12
ENGINE = "linear arithmetic"

ZERO = Fraction(0)
Value = Form | tuple[Form, ...]  # a scalar, or the coordinates of a vector
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

    def largest(self, forms: tuple[Form, ...], sign: int) -> Form:
        """The largest of the forms (sign 1), or the smallest (-1)."""
        if all(not (form - forms[0]).coefficients for form in forms):
            return max(forms, key=lambda form: sign * form.constant)
        key = ("largest", sign, tuple((frozenset(form.coefficients.items()), form.constant) for form in forms))
        chosen = forms[self.choose(key, len(forms))]
        self.guards += [Row(sign * (form - chosen), "<=") for form in forms if form is not chosen]
        return chosen

    def value(self, node: Node) -> Value:
        """The linear form of a scalar, or those of the coordinates of a vector."""
        match node:
            case Number(number):
                return Form(constant=number)
            case Name(name):
                return self._named(name)
            case Negative(operand):
                return self.value(Binary("-", Number(ZERO), operand))
            case Binary(operator, left, right):
                sides = self.value(left), self.value(right)
                found = tuple(self._combine(operator, a, b) for a, b in _paired(*sides))
                return found[0] if all(isinstance(side, Form) for side in sides) else found
            case Join(parts):
                return tuple(form for part in parts for form in _entries(self.value(part)))
            case Index(operand, (Number(at),)):
                forms = self.value(operand)
                if isinstance(forms, tuple) and at.denominator == 1 and 1 <= at <= len(forms):
                    return forms[int(at) - 1]
            case Call(function, arguments):
                if not any(isinstance(argument, Text) for argument in arguments):
                    return self._call(function, [self.value(part) for part in arguments if not isinstance(part, Text)])
        raise _Foreign

    def _named(self, name: str) -> Value:
        if name in self.sizes:
            return Form(constant=Fraction(self.sizes[name]))
        variable = self.claim.variable(name)
        if variable is None and self.claim.size(name) is None:
            raise _Foreign
        if variable is not None and isinstance(variable.kind, OneOf):
            return Form(constant=self.one_of(variable))
        entries = [name] if variable is None else self.coordinates(variable)
        return Form.of(name) if entries == [name] else tuple(map(Form.of, entries))

    def one_of(self, variable: Variable) -> Fraction:
        """The value that a variable with few values has in this case, so that products with it are linear."""
        values = variable.kind.values if isinstance(variable.kind, OneOf) else ()
        return values[self.choose(("one of", variable.name), len(values))]

    def coordinates(self, variable: Variable) -> list[str]:
        """x[1], x[2], ... of a vector; a scalar is its own."""
        dims = variable.kind.dims if isinstance(variable.kind, Reals) else ()
        if len(dims) > 1:
            raise _Foreign
        length = self.value(dims[0]) if dims else Form()
        if not isinstance(length, Form) or length.coefficients or length.constant.denominator > 1:
            raise _Foreign
        if dims and not 1 <= length.constant <= ELEMENTS:
            raise _Foreign
        return [f"{variable.name}[{index + 1}]" for index in range(int(length.constant))] if dims else [variable.name]

    def _combine(self, operator: str, left: Form, right: Form) -> Form:
        if operator == "+":
            return left + right
        if operator == "-":
            return left - right
        if operator == "*" and not (left.coefficients and right.coefficients):
            return left.constant * right if not left.coefficients else right.constant * left
        if operator == "/" and not right.coefficients and right.constant:
            return 1 / right.constant * left
        power = right.constant
        if operator == "^" and not right.coefficients and power.denominator == 1 and 0 <= power <= EXPONENT:
            if not left.coefficients:
                return Form(constant=number_power(left.constant, int(power)))
            if power == 1:
                return left
        raise _Foreign

    def _call(self, function: str, values: list[Value]) -> Value:
        if function in ("max", "min") and values:
            return self._extreme(values, 1 if function == "max" else -1)
        if function == "dot" and all(isinstance(value, tuple) for value in values):
            return sum((self._combine("*", a, b) for a, b in _paired(*values)), Form())
        if len(values) == 1:
            (value,) = values
            forms = _entries(value)
            if function in ("abs", "relu"):
                found = tuple(self.largest((form, -form if function == "abs" else Form()), 1) for form in forms)
                return found[0] if isinstance(value, Form) else found
            if function in ("sum", "mean"):
                return Fraction(1, len(forms) if function == "mean" else 1) * sum(forms, Form())
            if function == "dim":
                return Form(constant=Fraction(len(forms)))
        raise _Foreign

    def _extreme(self, values: list[Value], sign: int) -> Value:
        """The largest entry of one vector; of several the largest entry by entry."""
        if len(values) == 1:
            return self.largest(_entries(values[0]), sign)
        lengths = {len(value) for value in values if isinstance(value, tuple)}
        if len(lengths) > 1:
            raise _Foreign
        length = lengths.pop() if lengths else None
        columns = [value if isinstance(value, tuple) else (value,) * (length or 1) for value in values]
        found = tuple(self.largest(forms, sign) for forms in zip(*columns, strict=True))
        return found[0] if length is None else found

    def unknowns(self) -> list[str]:
        """Every coordinate that a point must give, then the sizes that are not bound."""
        coordinates = [name for variable in self.claim.variables for name in self.coordinates(variable)]
        return coordinates + [size.name for size in self.claim.sizes if size.name not in self.sizes]

    def links(self, chain: Chain) -> list[Link]:
        """Every comparison of a chain, coordinate by coordinate."""
        values = [self.value(term) for term in chain.terms]
        steps = list(zip(values, chain.comparisons, values[1:], strict=False))
        if any(sign == "!=" and (isinstance(a, tuple) or isinstance(b, tuple)) for a, sign, b in steps):
            raise _Foreign  # whether all entries differ, or one, is not said
        return [(a, comparison, b) for left, comparison, right in steps for a, b in _paired(left, right)]

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
                rows += _rows(Form.of(size.name), "==", *_entries(self.value(size.equation)))
        return rows


def _entries(value: Value) -> tuple[Form, ...]:
    return (value,) if isinstance(value, Form) else value


def _paired(left: Value, right: Value) -> list[tuple[Form, Form]]:
    """Coordinate by coordinate; a scalar goes with every one."""
    if isinstance(left, tuple) and isinstance(right, tuple):
        if len(left) != len(right):
            raise _Foreign
        return list(zip(left, right, strict=True))
    return [(a, b) for a in _entries(left) for b in _entries(right)]


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
