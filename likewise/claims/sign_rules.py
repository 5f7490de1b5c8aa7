"""Signs: claims that follow from which of their parts are positive, zero or negative, for vectors of every length.

A part is known by the set of signs that its entries may have; sums and products of signs do the rest.
"""

from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from itertools import product

from likewise.claims.claim import Between, Claim, Compares, Domain, Integers, OneOf, Reals
from likewise.claims.tree import (
    Binary,
    Call,
    Chain,
    Comparison,
    Join,
    Name,
    Negative,
    Node,
    Number,
    Text,
)
from likewise.claims.verdict import Finding

Signs = frozenset[int]
Length = tuple[str, ...]
ANY, POSITIVE, ZERO, LEAST_ZERO = frozenset({-1, 0, 1}), frozenset({1}), frozenset({0}), frozenset({0, 1})
ALLOWED: dict[Comparison, Signs] = {
    "==": ZERO, "!=": frozenset({-1, 1}), "<": frozenset({-1}), "<=": frozenset({-1, 0}), ">": POSITIVE, ">=": LEAST_ZERO,
}  # fmt: skip
MIRRORED: dict[Comparison, Comparison] = {"==": "==", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


def added(left: Signs, right: Signs) -> Signs:
    """Signs of a sum of two numbers.

    >>> sorted(added(POSITIVE, LEAST_ZERO)), sorted(added(POSITIVE, frozenset({-1})))
    ([1], [-1, 0, 1])
    """
    pairs = ({a} if a == b or not b else {b} if not a else ANY for a, b in product(left, right))
    return frozenset().union(*pairs)


def multiplied(left: Signs, right: Signs) -> Signs:
    """Signs of a product."""
    return frozenset(a * b for a, b in product(left, right))


def _sign(value: Fraction | int) -> int:
    return (value > 0) - (value < 0)


def _power(base: Signs, exponent: Node) -> Signs:
    if base == POSITIVE:
        return POSITIVE
    if not isinstance(exponent, Number) or exponent.value.denominator > 1 or exponent.value < 0:
        return ANY
    if exponent.value == 0:
        return POSITIVE
    return base if exponent.value % 2 else multiplied(base, base) - {-1}


def _square(base: Signs) -> Signs:
    return frozenset(sign * sign for sign in base)


def _pick(choose: Callable[[Iterable[int]], int]) -> Callable[..., Signs]:
    return lambda *parts: frozenset(choose(signs) for signs in product(*parts))


# Entries of the arguments -> entries of the result. No vector is empty, so a sum mixes what is there and nothing else.
CALLS: dict[str, Callable[..., Signs]] = {
    "sum": lambda part: added(part, part),
    "mean": lambda part: added(part, part),
    "dot": lambda a, b: added(multiplied(a, b), multiplied(a, b)),
    "sqnorm": _square,
    "norm": _square,
    "abs": _square,
    "max": _pick(max),
    "min": _pick(min),
    "relu": lambda part: frozenset(max(sign, 0) for sign in part),
    "sqrt": lambda part: part if part <= LEAST_ZERO else ANY,
    "exp": lambda part: POSITIVE,
    "softmax": lambda part: POSITIVE,
}
SCALAR = {"sum", "mean", "dot", "sqnorm", "norm", "max", "min"}


def signs(node: Node | Text, known: Mapping[str, Signs]) -> Signs:
    """The signs that the entries of an expression may have."""
    match node:
        case Number(value):
            return frozenset({_sign(value)})
        case Name(name):
            return known.get(name, ANY)
        case Negative(operand):
            return multiplied(signs(operand, known), frozenset({-1}))
        case Join(parts):
            return frozenset().union(*(signs(part, known) for part in parts))
        case Binary("+", left, right):
            return added(signs(left, known), signs(right, known))
        case Binary("-", left, right):
            return added(signs(left, known), signs(Negative(right), known))
        case Binary("*", left, right):
            return _square(signs(left, known)) if left == right else multiplied(signs(left, known), signs(right, known))
        case Binary("/", left, right):
            below = signs(right, known)
            return ANY if 0 in below else multiplied(signs(left, known), below)
        case Binary("^", base, exponent):
            return _power(signs(base, known), exponent)
        case Call(function, arguments) if function in CALLS:
            return CALLS[function](*(signs(argument, known) for argument in arguments))
    return ANY


def length(node: Node | Text, declared: Mapping[str, Length]) -> Length | None:
    """() for a scalar, the parts of its length for a vector, None where that is not for this engine to say.

    >>> length(Join((Number(Fraction(1)), Name("x"))), {"x": ("D",)})
    ('1', 'D')
    """
    match node:
        case Number():
            return ()
        case Name(name):
            return declared.get(name)
        case Negative(operand):
            return length(operand, declared)
        case Join(parts):
            found = [length(part, declared) for part in parts]
            return None if None in found else tuple(text for part in found for text in part or ("1",))
        case Binary("+" | "-" | "*" | "/" | "^", left, right):
            return _common([length(left, declared), length(right, declared)])
        case Call(function, arguments) if function in CALLS:
            found = [length(argument, declared) for argument in arguments]
            common = _common(found)
            if common is None or (function == "dot" and found[0] != found[1]):
                return None
            return () if function in SCALAR else common
    return None


def _common(lengths: list[Length | None]) -> Length | None:
    longer = {each for each in lengths if each != ()}
    return None if len(longer) > 1 else next(iter(longer), ())


def _of_domain(domain: Domain) -> Signs:
    match domain:
        case OneOf(values):
            return frozenset(map(_sign, values))
        case Between(lowest, highest) | Integers(int(lowest), int(highest)):
            return frozenset(range(_sign(lowest), _sign(highest) + 1))
    return ANY


def _learn(left: Node, comparison: Comparison, right: Node, known: dict[str, Signs]) -> None:
    """x > 0, 0 < min(x), max(x) <= 0: what an assumption says of all entries of one name."""
    for node, sign, other in ((left, comparison, right), (right, MIRRORED[comparison], left)):
        if not isinstance(other, Number):
            continue
        away = frozenset({-_sign(other.value)})
        allowed = frozenset(s for s in ANY if ALLOWED[sign] & added(frozenset({s}), away))  # x > 2 leaves only 1
        match node:
            case Name(name) if name in known:
                known[name] &= allowed
            case Call("min", (Name(name),)) if sign in (">", ">=") and name in known:
                known[name] &= allowed
            case Call("max", (Name(name),)) if sign in ("<", "<=") and name in known:
                known[name] &= allowed


def _links(chain: Chain) -> list[tuple[Node, Comparison, Node]]:
    return list(zip(chain.terms, chain.comparisons, chain.terms[1:], strict=False))


def decide(claim: Claim) -> Finding | None:
    """Prove a claim from signs alone; None where they do not suffice."""
    if not isinstance(claim.relation, Compares) or claim.relation.within is not None:
        return None
    known = {size.name: POSITIVE for size in claim.sizes}
    declared: dict[str, Length] = {size.name: () for size in claim.sizes}
    for variable in claim.variables:
        if isinstance(variable.kind, Domain):
            known[variable.name] = _of_domain(variable.kind)
            dims = variable.kind.dims if isinstance(variable.kind, Reals) else ()
            if len(dims) < 2:
                declared[variable.name] = tuple(map(str, dims))
    links = _links(claim.relation.chain)
    for left, comparison, right in [link for chain in claim.assumptions for link in _links(chain)] + links:
        shape = _common([length(left, declared), length(right, declared)])
        if shape is None or (shape and comparison == "!="):  # whether all entries differ, or one, is not said
            return None
    for chain in claim.assumptions:
        for link in _links(chain):
            _learn(*link, known)
    for left, comparison, right in links:
        if not added(signs(left, known), signs(Negative(right), known)) <= ALLOWED[comparison]:
            return None
    if not all(known.values()):
        return None  # nothing satisfies the assumptions
    lengths = sorted({name for shape in declared.values() for name in shape if not name.isdigit()})
    return Finding("holds", "proved", f"by signs{', for every ' + ', '.join(lengths) if lengths else ''}", "signs")
