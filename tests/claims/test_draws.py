"""The evaluator on arrays: every function by hand, and ranges that hold every draw."""

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from likewise.claims.chance.draws import FUNCTIONS, Range, Scope, as_range, constant
from likewise.claims.language.claim import Compares
from likewise.claims.language.parser import parse
from likewise.claims.language.tree import FUNCTIONS as LANGUAGE
from likewise.claims.language.tree import Chain, Node
from likewise.claims.spelling import DERIVED
from likewise.claims.verdict import Undecided

Q, K, A, S = np.array([1.0, -2.0, 3.0]), np.array([0.5, 4.0, -1.0]), np.arange(9.0).reshape(3, 3), np.array(2.0)
GIVEN = "given: q, k in R^3; A in R^(3, 3); s in R\n"
HAND = [
    ("dot(q, k)", Q @ K),
    ("sqnorm(q) + norm(q)^2", 28.0),
    ("sum(A)", 36.0),
    ("mean(q)", 2 / 3),
    ("max(q) - min(k)", 4.0),
    ("max(s, 3, 1)", 3.0),
    ("abs(q)", [1, 2, 3]),
    ("tr(A)", 12.0),
    ("vec(A)", np.arange(9.0)),
    ("outer(q, k)", np.outer(Q, K)),
    ("pairs(q)", [-2, 3, -6]),
    ("dim([q, k, 1])", 7.0),
    ("sqrt(s)*exp(s)*log(s)*sin(s)*cos(s)", 2**0.5 * np.exp(2) * np.log(2) * np.sin(2) * np.cos(2)),
    ("relu(q)", [1, 0, 3]),
    ("softmax([0, log(3)])", [0.25, 0.75]),
    ('einsum("ij,j->i", A, q)', A @ Q),
    ("I(2)", np.eye(2)),
    ("ones(2, 3) + zeros(2, 3)", np.ones((2, 3))),
    ("choose(5, 2)", 10.0),
    ("q @ k'", Q @ K),
    ("q' @ k", np.outer(Q, K)),
    ("A @ q'", (A @ Q)[:, None]),
    ("A'", A.T),
    ("-q*k/s", -Q * K / 2),
    ("A[2, 3]", 5.0),
    ("s^3 - q[2]", 10.0),
]


def terms(text: str) -> tuple[Node, ...]:
    relation = parse(f"{GIVEN}assert: {text}").relation
    assert isinstance(relation, Compares)
    return relation.chain.terms


@pytest.mark.parametrize(("text", "value"), HAND, ids=[text for text, _ in HAND])
def test_values_by_hand(text: str, value: npt.ArrayLike) -> None:
    scope = Scope({name: constant(array) for name, array in {"q": Q, "k": K, "A": A, "s": S}.items()}, {})
    np.testing.assert_allclose(as_range(scope.evaluate(terms(f"{text} == 0")[0])).low[0], value)  # ty: ignore[no-matching-overload]


def test_every_function_of_the_language_is_there() -> None:
    by_pieces = {"prod", "argmax", "factorial", "reshape", "transpose"}  # left to the exact engines
    assert {*FUNCTIONS, "einsum"} == LANGUAGE - {"grad", *DERIVED} - by_pieces


@settings(deadline=None, max_examples=60)
@given(
    text=st.sampled_from([text for text, _ in HAND if "log" not in text]),
    seed=st.integers(0, 10**6),
    width=st.sampled_from([0.0, 0.1, 3.0]),
)
def test_no_draw_leaves_its_range(text: str, seed: int, width: float) -> None:
    generator = np.random.default_rng(seed)
    middle = {name: generator.normal(size=shape) for name, shape in {"q": 3, "k": 3, "A": (3, 3)}.items()}
    middle["s"] = np.asarray(generator.uniform(4, 5))
    draws = {name: value + width * generator.uniform(-1, 1, (50, *value.shape)) for name, value in middle.items()}
    ranges = {name: Range(constant(value - width), constant(value + width)) for name, value in middle.items()}
    (node, _), slack = terms(f"{text} == 0"), 1e-9
    found, bounds = (
        as_range(Scope(draws, {}).evaluate(node)).low,
        as_range(Scope({**draws, **ranges}, {}).evaluate(node)),
    )
    assert (found >= bounds.low - slack * (1 + np.abs(found))).all()
    assert (found <= bounds.high + slack * (1 + np.abs(found))).all()


@pytest.mark.parametrize(
    ("text", "low", "high"),
    [
        ("s*s", 0, 4),
        ("s^2 - 1", -1, 3),
        ("1/(2 + s^2)", 1 / 6, 0.5),
        ("1/s", -np.inf, np.inf),
        ("cos(exp(s))", -1, 1),
        ("abs(s) - 1", -1, 1),
        ("exp(-s)", np.exp(-2), np.exp(2)),
        ("sum(softmax([s, 1]))", 0, 2),
        ("(s^2 + 1)^(-1/2)", 5**-0.5, 1),
        ("2^s", 0.25, 4),
        ("log(s)/2", -np.inf, np.log(2) / 2),
        ("sqrt(s)", 0, 2**0.5),
        ("(s + 2)^(1/2)", 0, 2),
    ],
)
def test_ranges_by_hand(text: str, low: float, high: float) -> None:
    with np.errstate(all="ignore"):
        found = Scope({"s": Range(np.array([-2.0]), np.array([2.0]))}, {}).evaluate(terms(f"{text} == 0")[0])
    assert isinstance(found, Range)
    np.testing.assert_allclose([found.low[0], found.high[0]], [low, high])


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("dot(q, [k, 1])", "do not fit"),
        ("q @ k", "undefined"),
        ("I(4096*4096)", "over the bound"),
        ("q[4]", "outside of a shape"),
        ("choose(5000, 2)", "out of bounds"),
        ("I(s + 0.5)", "whole number"),
        ("tr(q)", "needs a matrix"),
        ('einsum("i,j,k->", q, k)', "einsum"),
    ],
)
def test_what_has_no_value_is_refused(text: str, reason: str) -> None:
    scope = Scope({"q": constant(Q), "k": constant(K), "s": constant(S)}, {})
    with pytest.raises(Undecided, match=reason):
        scope.evaluate(terms(f"{text} == 0")[0])


def test_a_chain_is_true_where_all_its_comparisons_are() -> None:
    scope = Scope({"s": np.array([0.0, 1.0, 2.0])}, {})
    assert scope.holds(Chain(terms("0 < s <= 1"), ("<", "<="))).tolist() == [False, True, False]


def test_columns_turn_vectors_the_other_way() -> None:
    scope = Scope({"q": constant(Q), "k": constant(K)}, {}, "columns")
    np.testing.assert_allclose(as_range(scope.evaluate(terms("q' @ k == 0")[0])).low, [Q @ K])
    rows = Scope({"q": constant(Q), "k": constant(K)}, {}, "columns", {"q": "row"})
    np.testing.assert_allclose(as_range(rows.evaluate(terms("q @ k == 0")[0])).low, [Q @ K])
