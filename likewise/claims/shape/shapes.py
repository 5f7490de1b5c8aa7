"""Engine "shape": does a formula typecheck, and to what shape, for every value of its sizes?

Sizes are letters, so `holds` is symbolic; a refutation is confirmed with numbers: distinct primes of at least 7, where
no two sizes agree by accident, then other primes (7 + 11 + 13 = 31), then whatever the assumptions ask for.
"""

import operator
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from fractions import Fraction
from itertools import combinations, islice, pairwise, permutations, product

from likewise.claims.language.claim import Claim, Compares, HasShape, Reals, Size
from likewise.claims.language.expressions import rebuilt
from likewise.claims.language.tree import (
    NEGATED,
    Binary,
    Call,
    Chain,
    Index,
    Indexed,
    Name,
    Node,
    Number,
    children,
    names,
)
from likewise.claims.shape.shaped import (
    ONE,
    Layout,
    Misshapen,
    Shape,
    Shapes,
    Turned,
    dim_of,
    lying,
    node_of,
    shape_of,
    solved,
    together,
    value_of,
    whole,
)
from likewise.claims.verdict import Finding, Undecided
from likewise.polynomial import Polynomial

__all__ = ["Misshapen", "decide", "distinct_sizes", "shape_of", "with_dims"]

PRIMES = (7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59, 61, 67)
PARTIAL = frozenset({"sqrt", "log", "log2", "mod", "factorial", "argmax", "max", "min", "mean", "choose", "grad"})
SMALL = 4  # the largest size of a witness for a statement about dims
ASSIGNMENTS = 3_000  # tried at most, in search of sizes that satisfy the assumptions
HOLDS: dict[str, Callable[[Fraction, Fraction], bool]] = {
    "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip


def decide(claim: Claim) -> Finding | None:
    """Of `has shape` the verdict; of a comparison only that its sides fit no layout, or what its dims are."""
    relation = claim.relation
    if isinstance(relation, HasShape):
        return _typed(with_equations(claim))
    if not isinstance(relation, Compares):
        return None
    claim = with_equations(claim)
    try:
        found = _typed(claim)
    except Undecided:
        return None  # a name of unknown shape is no mistake of the formula
    return _compared_dims(claim, relation) if found.verdict == "holds" else found


def with_dims(claim: Claim, node: Node) -> Node:
    r"""The expression with every dim(...) replaced by the polynomial over sizes that it is.

    >>> from likewise.claims.language.parser import parse
    >>> claim = parse("given: x in R^D\nassert: dim([1, x, x*x]) in O(D)")
    >>> print(with_dims(claim, claim.relation.quantity))
    2*D + 1
    """
    if isinstance(node, Call) and node.function == "dim":
        return node_of(lying(claim, solved(claim, _letters(claim)), children(node)[0]).entries)
    return rebuilt(node, lambda part: with_dims(claim, part))


def with_equations(claim: Claim) -> Claim:
    """The claim with every assumption `q == d` about a free size also written as an equation of that size."""
    for chain in claim.assumptions:
        for name, right in (chain.terms, chain.terms[::-1]) if chain.comparisons == ("==",) else ():
            free = [size.name for size in claim.sizes if size.equation is None]
            if isinstance(name, Name) and name.name in free and names(right) <= {size.name for size in claim.sizes}:
                sizes = tuple(Size(name.name, right) if size.name == name.name else size for size in claim.sizes)
                changed = replace(claim, sizes=sizes)
                try:
                    solved(changed, _letters(changed))
                except Undecided:  # in a circle, or no polynomial: then it is only checked at the witness
                    continue
                claim = changed
                break
    return claim


def distinct_sizes(claim: Claim) -> dict[str, int]:
    r"""Sizes of which no two agree by accident, as the assumptions allow them: primes where possible.

    >>> from likewise.claims.language.parser import parse
    >>> distinct_sizes(parse("sizes: h, k, d = h*k\ngiven: x[b, d]\nassert: x has shape [b, d]"))
    {'h': 7, 'k': 11, 'b': 13, 'd': 77}
    """
    claim = with_equations(claim)
    for sizes in islice(_assignments(list(_letters(claim))), ASSIGNMENTS):
        values = {name: Polynomial.constant(value) for name, value in sizes.items()}
        if _allowed(claim, values):
            return {name: whole(value) for name, value in solved(claim, values).items()}
    raise Undecided("no sizes were found that satisfy the assumptions")


def _letters(claim: Claim) -> dict[str, Polynomial]:
    return {size.name: Polynomial.variable(size.name) for size in claim.sizes if size.equation is None}


def _typed(claim: Claim) -> Finding:
    """Both layouts are tried where a vector is transposed and none was written; fitting one is no refutation."""
    layouts: tuple[Layout, ...] = _layouts(claim)
    texts: dict[Layout, str] = {}
    failures: dict[Layout, Misshapen] = {}
    for layout in layouts:
        try:
            texts[layout] = _formula(claim, layout, _letters(claim))
        except Misshapen as failure:
            failures[layout] = failure
    outcomes = {layout: texts.get(layout) or str(failures.get(layout, "")) for layout in layouts}
    differ = len(set(outcomes.values())) > 1
    detail = "; ".join(f"{text} with {layout}" for layout, text in outcomes.items()) if differ else outcomes[layouts[0]]
    if layouts[0] in texts:
        return Finding("holds", "proved", detail, "shape")
    if texts:
        return Finding(
            "inconclusive", "undecided", f"layout missing: {detail}", "shape", suggestions=("layout: columns",)
        )
    sizes = _witness(claim, failures)
    conditions: tuple[str, ...] = ()
    if not differ:
        failure = failures[layouts[0]]
        conditions = tuple(_conditions(claim, layouts[0]))
        detail = _said(claim, layouts[0], failure, sizes) + _passes_when(conditions, failure)
    # Without sizes the formula itself is what does not fit.
    witness = tuple((name, str(value)) for name, value in sizes.items()) or (("formula", str(claim.relation)),)
    return Finding("refuted", "exact witness", detail, "shape", witness=witness, suggestions=conditions)


def _layouts(claim: Claim) -> tuple[Layout, ...]:
    if "layout" in claim.given_fields:
        return (claim.layout,)
    try:
        _formula(claim, "lines", _letters(claim))
    except Turned:
        return ("rows", "columns")
    except Misshapen:
        pass
    return ("lines",)


def _formula(claim: Claim, layout: Layout, values: Mapping[str, Polynomial]) -> str:
    """The relation with shapes for operands, or Misshapen."""
    shapes = Shapes(claim, solved(claim, values), layout)
    if isinstance(claim.relation, Compares):
        chain = claim.relation.chain
        terms = [shapes.of(term) for term in chain.terms]
        for sign, (left, right) in zip(chain.comparisons, pairwise(terms), strict=True):
            together([left, right], f" {sign} ".join)
        return ""
    assert isinstance(claim.relation, HasShape)
    body = claim.relation.body
    found, wanted = shapes.of(body), Shape(tuple(map(shapes.dim, claim.relation.dims)))
    text = shapes.text(body)
    if not found.fits(wanted.dims):
        differ = [(a, b) for a, b in zip(found.dims, wanted.dims, strict=False) if a != b]
        sides = differ[0] if len(differ) == 1 and len(found.dims) == len(wanted.dims) else ()
        raise Misshapen(f"{text} is {found}, not {wanted}" if text != str(found) else f"{found}, not {wanted}", sides)
    return text


def _said(claim: Claim, layout: Layout, failure: Misshapen, sizes: Mapping[str, int]) -> str:
    """The failure in letters, or with the numbers of the witness where they say more."""
    if not failure.numbers_say_more:
        return str(failure)
    try:
        _formula(claim, layout, {name: Polynomial.constant(value) for name, value in sizes.items()})
    except Misshapen as counted:
        return f"{counted} ({' '.join(f'{name}={value}' for name, value in sizes.items())})"
    return str(failure)


def _conditions(claim: Claim, layout: Layout) -> Iterator[str]:
    """Which two sizes would have to be equal for the formula to pass; else which would have to be 1."""
    letters = _letters(claim)
    found = False
    equal = [(b, a, letters[a]) for a, b in combinations(list(letters)[:8], 2)]
    for left, right, value in [*equal, *((name, "1", ONE) for name in letters)]:
        if right == "1" and found:
            return
        try:
            _formula(claim, layout, letters | {left: value})
        except (Misshapen, Undecided):
            continue
        found = True
        yield f"{left} == {right}"


def _passes_when(conditions: tuple[str, ...], failure: Misshapen) -> str:
    if not conditions:
        return ""
    only = len(conditions) == 1 and {str(side) for side in failure.sides} == set(conditions[0].split(" == "))
    return f"; passes {'only ' * only}when {', or '.join(conditions)}"


def _witness(claim: Claim, failures: Mapping[Layout, Misshapen]) -> dict[str, int]:
    """Sizes that satisfy the assumptions and at which every layout fails."""
    for sizes in islice(_assignments(list(_letters(claim))), ASSIGNMENTS):
        values = {name: Polynomial.constant(value) for name, value in sizes.items()}
        if _allowed(claim, values) and all(_fails(claim, layout, values) for layout in failures):
            return sizes
    raise Undecided("misshapen as written, but no sizes were found that satisfy the assumptions")


def _assignments(free: list[str]) -> Iterator[dict[str, int]]:
    count = len(free)
    rows: list[Iterator[tuple[int, ...]]] = [
        iter([PRIMES[:count], PRIMES[3 : count + 3], tuple(12 * prime for prime in PRIMES[:count])]),
        islice(permutations(PRIMES[:count]), ASSIGNMENTS // 3),
        product(range(1, SMALL + 1), repeat=count),
    ]
    for row in (row for group in rows for row in group if len(row) == count):
        yield dict(zip(free, row, strict=True))


def _allowed(claim: Claim, values: Mapping[str, Polynomial]) -> bool:
    """Whether these are sizes the claim speaks of: dims are whole, and what is assumed of sizes is true."""
    try:
        sizes = solved(claim, values)
        dims = [dim for each in claim.variables if isinstance(each.kind, Reals) for dim in each.kind.dims]
        counts = [whole(dim_of(dim, sizes)) for dim in dims] + [whole(size) for size in sizes.values()]
        about_sizes = [chain for chain in claim.assumptions if names_of(chain) <= set(sizes)]
        return min(counts, default=1) >= 1 and all(_true(chain, sizes) for chain in about_sizes)
    except Undecided:
        return False


def names_of(chain: Chain) -> set[str]:
    """Every name in a chain."""
    return set().union(*map(names, chain.terms))


def _true(chain: Chain, sizes: Mapping[str, Polynomial]) -> bool:
    terms = [value_of(dim_of(term, sizes)) for term in chain.terms]
    pairs = zip(chain.comparisons, pairwise(terms), strict=True)
    return all(a is not None and b is not None and HOLDS[sign](a, b) for sign, (a, b) in pairs)


def _fails(claim: Claim, layout: Layout, values: Mapping[str, Polynomial]) -> bool:
    try:
        _formula(claim, layout, values)
    except Misshapen:
        return True
    return False


def _compared_dims(claim: Claim, relation: Compares) -> Finding | None:
    """`dim([1, x]) == D + 1`, and nothing else but sizes: two polynomials."""
    terms = tuple(with_dims(claim, term) for term in relation.chain.terms)
    chain = Chain(terms, relation.chain.comparisons)
    if terms == relation.chain.terms or relation.within or not names_of(chain) <= {size.name for size in claim.sizes}:
        return None
    if any(map(_partial, relation.chain.terms)):
        return None  # a comparison speaks of values, and these may have none
    letters = solved(claim, _letters(claim))
    polynomials = [dim_of(term, letters) for term in terms]
    for sizes in islice(_smallest(list(_letters(claim))), ASSIGNMENTS):
        values = {name: Polynomial.constant(value) for name, value in sizes.items()}
        if _allowed(claim, values) and not _true(chain, solved(claim, values)):
            return _refuted_dims(chain, solved(claim, values), sizes)
    if all(_always(sign, a, b) for sign, (a, b) in zip(chain.comparisons, pairwise(polynomials), strict=True)):
        every = ", ".join(_letters(claim))
        return Finding("holds", "proved", f"{polynomials[0]}{f' for every {every}' if every else ''}", "shape")
    raise Undecided(f"{' and '.join(map(str, polynomials))} differ, but not at sizes up to {SMALL}")


def _partial(node: Node) -> bool:
    """Whether an operation may be undefined somewhere."""
    match node:
        case Binary("^", _, Number(value)) if value.denominator == 1 and value >= 0:
            pass
        case Binary("/", _, Number(value)) | Binary("/", _, Call("sqrt", (Number(value),))) if value > 0:
            return _partial(node.left)
        case Call("sqrt" | "log", (Number(value),)) if value > 0:
            return False
        case Binary("/" | "^", _, _) | Index() | Indexed():
            return True
        case Call(function, _) if function in PARTIAL:
            return True
    return any(map(_partial, children(node)))


def _smallest(free: list[str]) -> Iterator[dict[str, int]]:
    rows = sorted(product(range(1, SMALL + 1), repeat=min(len(free), 6)), key=lambda row: (max(row, default=0), row))
    return (dict(zip(free, row, strict=False)) for row in rows)


def _refuted_dims(chain: Chain, values: Mapping[str, Polynomial], sizes: Mapping[str, int]) -> Finding:
    pairs = zip(chain.comparisons, pairwise(chain.terms), strict=True)
    sign, left, right = next((sign, *pair) for sign, pair in pairs if not _true(Chain(pair, (sign,)), values))
    witness = tuple((name, str(value)) for name, value in sizes.items())
    point = " ".join(f"{name}={value}" for name, value in witness)
    detail = f"{point}{': ' * bool(point)}{dim_of(left, values)} {NEGATED[sign]} {dim_of(right, values)}"
    return Finding("refuted", "exact witness", detail, "shape", witness=witness)


def _always(sign: str, left: Polynomial, right: Polynomial) -> bool:
    """Whether a comparison of polynomials is plain from the signs of the coefficients in sizes 1 + t, t >= 0."""
    if sign == "==":
        return left == right
    above = left - right if sign in (">", ">=", "!=") else right - left
    shifted = above.substitute({name: 1 + Polynomial.variable(name) for name in above.variables})
    strict = sign in ("<", ">", "!=")
    return all(value >= 0 for value in shifted.terms.values()) and (not strict or shifted.coefficient() > 0)
