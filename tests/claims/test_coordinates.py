"""Exact evaluation agrees with numpy, on coordinates, for every size at once, and in balls."""

import random
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from likewise.claims import arrays
from likewise.claims.algebra import balls
from likewise.claims.algebra.coordinates import BALLS, Coordinates
from likewise.claims.algebra.exponomials import Atom, form, of_atom
from likewise.claims.algebra.invariants import Invariants, Vector, named
from likewise.claims.algebra.questions import question
from likewise.claims.arrays import Array
from likewise.claims.language.parser import parse
from likewise.claims.language.tree import Call, Name, Node
from likewise.claims.verdict import Undecided
from tests.claims.floats import number

SEEDS = st.integers(0, 2**32)
few = settings(max_examples=4)
EXPRESSIONS = [
    "dot(q, k)", "sqnorm(q - k)", "norm(q)", "sum(q*k + 1)", "mean(q)", "max(q)", "min(q)", "min(q, k)", "max(q, k, 0)",
    "abs(q)", "tr(outer(q, k))", "vec(A)", "outer(q, k) @ k", "A @ A'", "pairs(q)", "dim(pairs(A[1]))", "sqrt(abs(q))",
    "exp(q/2)", "log(1 + q*q)", "sin(q)", "cos(q - k)", "relu(q - k)", "softmax(q)", "softmax(A)", "I(D) @ q",
    'einsum("ij,j->i", A, q)', 'einsum("ij,ij->", A, A)', "ones(D) + zeros(D)", "choose(D + 2, 2)", "[1, q, k[1]]",
    "q^2 - 2*q", "D^3/2", "q @ k", "A[2, 1]", "A[1] - q", "-q + D", "sqnorm(q)^0.5", "2^-2*q", "(1 + q*q)^-1",
]  # fmt: skip


def expression(text: str) -> Node:
    asked = question(parse(f"sizes: D\ngiven: q, k in R^D; A[D,D]\nassert: {text} == 0"))
    assert asked is not None
    return asked.chain.terms[0]


def point(seed: int) -> tuple[dict[str, Array], dict[str, Any]]:
    values: dict[str, Array] = {"D": arrays.scalar(Fraction(3))}
    draws = random.Random(seed)
    for name, shape in {"q": (3,), "k": (3,), "A": (3, 3)}.items():
        count = int(np.prod(shape))
        values[name] = Array(shape, tuple(Fraction(draws.randint(-8, 8), 4) for _ in range(count)))
    floats: dict[str, Any] = {
        name: np.array([float(v) for v in value.entries]).reshape(value.shape) for name, value in values.items()
    }
    return values, floats


@pytest.mark.parametrize("text", EXPRESSIONS)
@few
@given(SEEDS)
def test_exact_values_agree_with_numpy(text: str, seed: int) -> None:
    values, floats = point(seed)
    exact = Coordinates(values, {"D": 3}).evaluate(expression(text))
    expected = np.asarray(number(expression(text), floats))
    assert exact.shape == expected.shape
    middle = [float(balls.enclose(form(entry), {}).mid) for entry in exact.entries]
    np.testing.assert_allclose(middle, expected.ravel(), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("text", [text for text in EXPRESSIONS if "choose" not in text])
@few
@given(SEEDS)
def test_balls_contain_the_exact_value(text: str, seed: int) -> None:
    values, _ = point(seed)
    node = expression(text)
    exact = Coordinates(values, {"D": 3}).evaluate(node)
    wide = {name: value.map(lambda entry: balls.between(entry - 1, entry + 1)) for name, value in values.items()}
    wide["D"] = arrays.scalar(balls.ball(3))
    try:
        found = Coordinates(wide, {"D": 3}, BALLS).evaluate(node)
    except ArithmeticError:
        assume(False)
        raise
    for entry, enclosure in zip(exact.entries, found.entries, strict=True):
        tight = balls.enclose(form(entry), {})
        assert enclosure.a <= tight.b
        assert tight.a <= enclosure.b


INVARIANTS = [
    "dot(q, k)", "sqnorm(q - k)/sqrt(D)", "norm(q)", "sum(q*q*k + 1)", "mean(q - 2)", "exp(dot(q, k))*cos(sum(q))",
    "D^2", "sum(softmax(q)*k)", "dim(pairs(q))", "choose(D + 2, 2)", "max(dot(q, k), 0)", "dot(ones(D), q)",
    "(q @ k)^3", "sum(exp(q + k - 1))", "dim([1, q, pairs(q), vec(outer(q, k))])",
]  # fmt: skip


@pytest.mark.parametrize("text", INVARIANTS)
@few
@given(SEEDS)
def test_forms_for_every_size_have_the_right_value_at_one(text: str, seed: int) -> None:
    _, floats = point(seed)
    node = expression(text)
    D = Atom("size", "D", positive=True)
    length = of_atom(D)
    values = {"D": length, "q": named("q", length), "k": named("k", length)}
    at = Invariants(
        {name: arrays.scalar(value) for name, value in values.items()}, shapes=dict.fromkeys("qk", (length,))
    )
    value = at.scalar(node)
    sums = {atom: _sum(atom, floats) for atom in value.atoms() if atom.kind == "invariant"}
    got = balls.enclose(value, {D: balls.ball(3), **{atom: balls.ball(Fraction(x)) for atom, x in sums.items()}})
    np.testing.assert_allclose(float(got.mid), float(number(node, floats)), rtol=1e-9, atol=1e-9)


def _sum(atom: Atom, floats: dict[str, Any]) -> float:
    """Σ_i of the product of the named vectors, where a name may be exp(c*x)."""
    product = np.ones(3)
    for name in atom.names:
        inner = name.removeprefix("exp(").removesuffix(")")
        factor, _, vector = inner.rpartition("*")
        product = product * (np.exp(float(factor or 1) * floats[vector]) if inner != name else floats[name])
    return float(product.sum())


def test_shapes_that_do_not_fit_are_refused() -> None:
    at = Coordinates({"a": Array((2,), (1, 2)), "b": Array((3,), (1, 2, 3))}, {})
    asked = question(parse("given: a in R^2; b in R^3\nassert: a + b == dot(a, b)"))
    assert asked is not None
    for node in asked.chain.terms:
        with pytest.raises(Undecided):
            at.evaluate(node)
    with pytest.raises(Undecided, match="entries"):
        arrays.outer(Array((200,), (1,) * 200), Array((200,), (1,) * 200))


def test_vectors_lie_as_rows_or_columns_once_one_is_transposed() -> None:
    def shape(text: str) -> tuple[int, ...]:
        asked = question(parse(text))
        assert asked is not None
        return asked.symbols({"D": 3}).evaluate(asked.chain.terms[0]).shape

    assert shape("given: q, k in R^D\nassert: q @ k == 0") == ()
    assert shape("given: q, k in R^D\nassert: q @ k' == 0") == (1, 1)
    assert shape("given: q, k in R^D\nassert: q' @ k == 0") == (3, 3)
    assert shape("given: q, k in R^D\nlayout: columns\nassert: q' @ k == 0") == (1, 1)
    assert shape("given: q in R^D col; k in R^D row\nassert: q @ k == 0") == (3, 3)


def test_a_vector_to_every_size_is_a_sum_of_products() -> None:
    asked = question(parse("given: q, k in R^D\nassert: 2*q*q + k == 0"))
    assert asked is not None
    found = asked.invariants().one(asked.chain.terms[0])
    assert isinstance(found, Vector)
    assert dict(found.terms) == {("q", "q"): form(2), ("k",): form(1)}


@pytest.mark.parametrize(
    "text",
    ["prod(q)", "argmax(q)", "vec(q)", "pairs(q)", "outer(q, k)", "max(q)", "q[1]", "reshape(q, D)", "[q, 1]", "I(D)"],
)
def test_what_looks_into_a_vector_is_not_read_for_every_size(text: str) -> None:
    asked = question(parse("given: q, k in R^D\nassert: q == k"))
    assert asked is not None
    with pytest.raises(Undecided):
        asked.invariants().one(expression(text))


def test_a_derivative_that_was_left_is_not_read_for_every_size() -> None:
    asked = question(parse("given: q, k in R^D\nassert: q == k"))
    assert asked is not None
    with pytest.raises(Undecided):
        asked.invariants().one(Call("grad", (Call("sqnorm", (Name("q"),)), Name("q"))))
