"""Shapes: the worked examples to the letter, the catalogue's rows, and numpy as the reference."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from likewise.claims import check
from likewise.claims.language.claim import Bounded, Claim, HasShape
from likewise.claims.language.parser import parse
from likewise.claims.language.tree import Node
from likewise.claims.shapes import Misshapen, decide, shape_of, with_dims
from likewise.claims.verdict import Finding, Undecided

FQ = "given: fq, fk in R^M; v in R^D"
MIXED = "given: fq, fk in R^M col; v in R^D row"
HEADS = "sizes: h, k, d = h*k"
PHI = "given: q in R^D\nphi(x) = [1, sqrt(2)*x, sqrt(2)*pairs(x), x*x]"
FOURIER = "given: x in R^D; W[R,D]; v in R^M\nlayout: rows\npsi = [sin(x @ W'), cos(x @ W')]"


def body(claim: Claim) -> Node:
    assert isinstance(claim.relation, HasShape)
    return claim.relation.body


def found(text: str) -> Finding:
    finding = decide(parse(text))
    assert finding is not None
    return finding


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (
            'given: x[b,d], W[h,q,d]\nassert: einsum("bd,hdq->bhq", x, W) has shape [b, h, q]',
            "refuted subscript d is 11 in x but 17 in W (b=7 d=11 h=13 q=17); passes only when q == d",
        ),
        (
            f"{FQ}\nassert: fq' @ (fk' @ v) has shape [1, D]",
            "refuted (M x 1) @ (M x D) undefined with rows; (1 x M) @ (D x 1) undefined with columns",
        ),
        (f"{MIXED}\nassert: fq' @ (fk @ v) has shape [1, D]", "holds (1 x M) @ ((M x 1) @ (1 x D))"),
    ],
    ids=["mqa-wq", "causal-eq7", "kernel-mixed"],
)
def test_worked_examples_print_their_line(text: str, line: str) -> None:
    finding = found(text)
    grade = "proved" if finding.verdict == "holds" else "exact witness"
    assert (f"{finding.verdict} {finding.detail}", finding.grade, finding.engine) == (line, grade, "shape")


CATALOGUE = [
    (15, f"{HEADS}\ngiven: x[t,d], W[d,d]\nassert: x @ W has shape [t, k]", "refuted"),
    (18, f"{HEADS}\ngiven: Y[h,k]; Wo[d,d]\nlayout: rows\nassert: vec(Y) @ Wo has shape [1, d]", "holds"),
    (19, "given: Q, K in R^(N, d)\nassert: Q' @ K has shape [N, N]", "refuted"),
    (19, "given: Q, K in R^(N, d)\nassert: Q @ K' has shape [N, N]", "holds"),
    (25, f"{HEADS}, e = 2*d\ngiven: Y[h,2*k]\nassert: dim(vec(Y)) == e", "holds"),
    (26, f"{HEADS}\ngiven: Y[h,2*k]; Wo[2*d,d]\nlayout: rows\nassert: vec(Y) @ Wo has shape [1, d]", "holds"),
    (26, f"{HEADS}\ngiven: Y[h,2*k]; Wo[d,d]\nlayout: rows\nassert: vec(Y) @ Wo has shape [1, d]", "refuted"),
    (29, 'given: x[b,d], W[h,q]\nassert: einsum("bd,hdq->bhq", x, W) has shape [b, h, q]', "refuted"),
    (30, 'given: x[b,d], W[h,q,d]\nassert: einsum("bd,hdq->bhq", x, W) has shape [b, h, q]', "refuted"),
    (31, 'given: x[b,d], W[h,d,q]\nassert: einsum("bd,hdq->bhq", x, W) has shape [b, h, q]', "holds"),
    (32, 'given: x[b,d], W[d,k]\nassert: einsum("bd,dk->bk", x, W) has shape [b, k]', "holds"),
    (32, 'given: x[b,d], W[d,v]\nassert: einsum("bd,dv->bv", x, W) has shape [b, v]', "holds"),
    (59, f"{PHI}\nassert: dim(phi(q)) == 1 + D + D*(D + 1)/2", "holds"),
    (61, f"{PHI}\nassert: dim(phi(q)) == 2*D + 1", "refuted"),
    (62, f"{FQ}\nlayout: columns\nassert: fq' @ (fk @ v')/(fq' @ fk) has shape [1, D]", "holds"),
    (63, f"{MIXED}\nassert: fq' @ (fk @ v') has shape [1, D]", "refuted"),
    (64, f"{MIXED}\nassert: fq' @ (fk @ v)/(fq' @ fk) has shape [1, D]", "holds"),
    (65, f"{FQ}\nlayout: rows\nassert: fq @ (fk @ v)/(fq @ fk) has shape [1, D]", "refuted"),
    (66, f"{FQ}\nlayout: rows\nassert: fq @ (v' @ fk) has shape [1, D]", "refuted"),
    (66, f"{FQ}\nlayout: rows\nassert: fq @ fk has shape [1, 1]", "refuted"),
    (67, f"{FQ}\nlayout: rows\nassert: fq @ (fk' @ v') has shape [1, D]", "refuted"),
    (67, f"{FQ}\nlayout: rows\nassert: fq @ (fk' @ v')' has shape [1, D]", "refuted"),
    (68, f"{FQ}\nassert: fq @ fk has shape [1, 1]", "holds"),
    (68, f"{FQ}\nassert: fq' @ fk has shape [1, 1]", "inconclusive"),
    (69, f"{FQ}\nlayout: rows\nassert: fq @ fk' @ v/(fq @ fk') has shape [1, D]", "holds"),
    (70, f"{FQ}\nlayout: rows\nassert: fq @ fk' has shape [M, M]", "refuted"),
    (103, f"{FOURIER}\nassert: psi has shape [2*R]", "holds"),
    (103, f"{FOURIER}\nassert: dim(psi) == 2*R", "holds"),
    (104, f"{FOURIER}\nassert: psi has shape [R]", "refuted"),
    (104, f"{FOURIER}\nassert: psi' @ v has shape [R, M]", "refuted"),
    (120, f"{FQ}\nassert: fq' @ (fk' @ v)/(fq' @ fk') has shape [1, D]", "refuted"),
    (121, "given: fk in R^d row; v in R^M col\nassert: fk' @ v has shape [d, M]", "refuted"),
    (121, "given: fk in R^d row; v in R^M row\nassert: fk' @ v has shape [d, M]", "holds"),
    (122, "given: fk in R^d col; v in R^M row\nassert: fk @ v has shape [d, M]", "holds"),
    (122, "given: fk in R^d col; v in R^M row\nassert: fk @ v' has shape [d, M]", "refuted"),
    (184, "given: K[N,k], V[N,v]\nassert: K[1] has shape [k]", "holds"),
]


@pytest.mark.parametrize(("row", "text", "verdict"), CATALOGUE)
def test_rows_of_the_catalogue_get_their_verdict(row: int, text: str, verdict: str) -> None:
    assert found(text).verdict == verdict, row


def test_formula_that_fits_only_columns_is_inconclusive_and_says_so() -> None:
    finding = found(f"{FQ}\nassert: fq' @ (fk @ v') has shape [1, D]")
    assert finding.verdict == "inconclusive"
    assert finding.suggestions == ("layout: columns",)
    assert "(1 x M) @ (D x 1) undefined with rows" in finding.detail


def test_formula_that_fits_rows_holds_by_the_default_and_says_what_columns_do() -> None:
    finding = found(f"{FQ}\nassert: fq @ (fk' @ v) has shape [1, D]")
    assert finding.verdict == "holds"
    assert finding.detail == "(1 x M) @ ((M x 1) @ (1 x D)) with rows; (1 x M) @ (D x 1) undefined with columns"


def test_accident_of_primes_refutes_all_the_same() -> None:
    """7 + 11 + 13 = 31, but not of every four sizes."""
    text = "given: a in R^A; b in R^B; c in R^C; d in R^D\nassert: [a, b, c] + d has shape [D]"
    assert found(text).verdict == "refuted"
    text = "given: a in R^A; b in R^B; c in R^C; d in R^31\nassert: [a, b, c] + d has shape [31]"
    assert dict(found(text).witness) == {"A": "17", "B": "19", "C": "23"}


@pytest.mark.parametrize(
    ("assumption", "verdict"),
    [("q == d", "holds"), ("d == q", "holds"), ("q <= d", "refuted"), ("q == 2*d", "refuted"), ("d == q/2", "refuted")],
)
def test_assumed_sizes_are_respected(assumption: str, verdict: str) -> None:
    base = 'given: x[b,d], W[h,q,d]\nassert: einsum("bd,hdq->bhq", x, W) has shape [b, h, q]'
    finding = found(f"assume: {assumption}\n{base}")
    assert finding.verdict == verdict
    if assumption == "q <= d":
        assert int(dict(finding.witness)["q"]) <= int(dict(finding.witness)["d"])


@pytest.mark.parametrize(
    ("relation", "verdict"),
    [
        ("q @ k == dot(q, k)", None),  # vectors have one axis, unless one is transposed
        ("q == v", "refuted"),
        ("dot(q, v) == 0", "refuted"),
        ("q' @ k == dot(q, k)", None),  # D x D against a scalar is elementwise: others find it false
        ("q @ k' == dot(q, k)", None),
        ("relu(q) >= 0", None),
        ("tr(outer(q, v)) == 0", "refuted"),
        ("tr(outer(q, k)) == dot(q, k)", None),
    ],
)
def test_misshapen_comparison_is_refuted_and_a_fitting_one_left_to_others(relation: str, verdict: str | None) -> None:
    finding = decide(parse(f"given: q, k in R^D; v in R^M\nassert: {relation}"))
    assert (finding and finding.verdict) == verdict


def test_misshapen_with_rows_but_right_with_columns_is_never_refuted() -> None:
    finding = decide(parse("given: W[M,D]; x in R^D\nassert: sum(W @ x) == sum(x' @ W')"))
    assert finding is not None
    assert (finding.verdict, finding.suggestions) == ("inconclusive", ("layout: columns",))


def test_dims_in_orders_become_polynomials() -> None:
    claim = parse(f"{PHI}\nassert: dim(phi(q)) in O(D)")
    assert isinstance(claim.relation, Bounded)
    assert not isinstance(claim.relation.quantity, str)
    assert str(with_dims(claim, claim.relation.quantity)) == "0.5*D^2 + 1.5*D + 1"


@pytest.mark.parametrize(
    ("relation", "verdict", "detail"),
    [
        ("dim(vec(outer(q, q))) >= D", "holds", "D^2 for every D"),
        ("dim(vec(outer(q, q))) > D", "refuted", "D=1: 1 <= 1"),
        ("dim([1, q]) > D", "holds", "D + 1 for every D"),
        ("dim([1, q]) != D", "holds", "D + 1 for every D"),
    ],
)
def test_dims_are_compared_for_every_size(relation: str, verdict: str, detail: str) -> None:
    finding = found(f"given: q in R^D\nassert: {relation}")
    assert (finding.verdict, finding.detail) == (verdict, detail)


def test_dims_that_are_equal_at_large_sizes_only_are_not_called_different() -> None:
    """A*B + 1 - A - B = (A - 1)(B - 1) is 0 at A = 1, which the assumption moves out of sight."""
    text = "given: a in R^A; b in R^B\nassume: A + B >= 9\nassert: dim(vec(outer(a, b))) + 1 > A + B"
    with pytest.raises(Undecided, match="not at sizes up to 4"):
        decide(parse(text))


def test_condition_that_is_one_of_several_is_not_called_the_only_one() -> None:
    finding = found("given: Q, K in R^(N, d)\nassert: Q' @ K has shape [N, N]")
    assert finding.detail == "(d x N) @ (N x d) is (d x d), not (N x N); passes when d == N"


def test_dims_are_bounded_before_they_grow() -> None:
    nested = "q"
    for _ in range(4):
        nested = f"vec(outer({nested}, {nested}))"
    with pytest.raises(Undecided, match="degree above"):
        decide(parse(f"given: q in R^D\nassert: {nested} has shape [D]"))


def test_other_relations_are_not_for_this_engine() -> None:
    assert decide(parse("of: attention.softmax\nassert: cost in O(N)\nsizes: N")) is None
    assert decide(parse("given: x, y in R\nassert: x + y == y + x")) is None


sizes = st.integers(1, 4)


@settings(max_examples=60, deadline=None)
@given(
    letters=st.tuples(st.permutations("abcd"), st.permutations("abcd"), st.integers(1, 3), st.integers(1, 3)),
    dims=st.lists(sizes, min_size=6, max_size=6),
    kept=st.integers(0, 2),
)
def test_einsum_has_the_shape_numpy_gives(letters, dims, kept) -> None:
    first, second, a, b = letters
    left, right = "".join(first[:a]), "".join(second[:b])
    output = "".join(dict.fromkeys(left + right))[:kept]
    x, y = np.zeros(dims[:a]), np.zeros(dims[a : a + b])
    equation = f"{left},{right}->{output}"
    claim = parse(
        f"given: x[{','.join(map(str, x.shape))}], y[{','.join(map(str, y.shape))}]\n"
        f'assert: einsum("{equation}", x, y) has shape [1]'
    )
    # numpy lets a 1 stand for any size; we do not, so the reference compares sizes itself
    pairs = [(letter, size) for letter, size in zip(left + right, x.shape + y.shape, strict=True)]
    if len(set(pairs)) > len(set(left + right)):
        with pytest.raises(Misshapen):
            shape_of(claim, body(claim), {})
    else:
        shape = shape_of(claim, body(claim), {})
        expected = np.einsum(equation, x, y).shape
        assert shape == expected or (len(expected) == 1 and shape == (1, *expected))


@settings(max_examples=80, deadline=None)
@given(st.data())
def test_matrix_formulas_have_the_shape_numpy_gives(data) -> None:
    arrays = {name: np.ones((data.draw(sizes) + 1, data.draw(sizes) + 1)) for name in "ABC"}

    def formula(depth: int) -> str:
        if depth == 0:
            return data.draw(st.sampled_from("ABC")) + data.draw(st.sampled_from(["", "'"]))
        sign = data.draw(st.sampled_from(["@", "+", "*", "@"]))
        return f"({formula(depth - 1)} {sign} {formula(depth - 1)}){data.draw(st.sampled_from(['', chr(39)]))}"

    text = formula(2)
    given_ = "; ".join(f"{name}[{array.shape[0]},{array.shape[1]}]" for name, array in arrays.items())
    claim = parse(f"given: {given_}\nassert: {text} has shape [1]")
    try:
        expected = eval(text.replace("'", ".T"), {}, arrays).shape
    except ValueError:
        with pytest.raises(Misshapen):
            shape_of(claim, body(claim), {})
    else:
        assert shape_of(claim, body(claim), {}) == expected


def test_a_formula_of_numbers_alone_is_its_own_witness() -> None:
    finding = decide(parse("assert: 7[1] == 7"))
    assert finding is not None
    assert (finding.verdict, finding.witness) == ("refuted", (("formula", "7[1] == 7"),))


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        ("given: x[b, t, d], v[d]\nassert: x @ v has shape [b, t]", "holds"),
        ("given: x[b, d, t], v[d]\nassert: v @ x has shape [b, t]", "holds"),
        ("given: x[b, d, t], v[d]\nassert: v @ x has shape [b, 1, t]", "refuted"),
        ("given: A[n, d], c[d]\nassert: A @ c has shape [n]", "holds"),
        ("given: x[b, t, d], y[1, d, s]\nassert: x @ y has shape [b, t, s]", "holds"),
        ("given: x[b, t, d], y[c, d, s]\nassert: x @ y has shape [b, t, s]", "refuted"),
        ("given: q[b, h, t, k], K[b, 1, s, k]\nassert: q @ K' has shape [b, h, t, s]", "holds"),
        ("given: q in R^D\nlayout: rows\nassert: q' has shape [D]", "holds"),
        ("given: x[1, 1, 1], y[n]\nassert: x + y has shape [n]", "refuted"),
        ("given: x[1, 1, 1], y[n]\nassert: x + y has shape [1, 1, n]", "holds"),
        ("given: A in R^(D, D); x in R^D\nassert: x @ A @ x == x @ A' @ x", "holds"),
        ("given: A in R^(D, D); x in R^D\nassert: x @ A' has shape [D]", "holds"),
    ],
)
def test_vectors_have_one_axis_and_batches_broadcast_as_in_torch(text: str, verdict: str) -> None:
    assert check(text).verdict == verdict
