"""Generated trees of expressions, for laws of the language."""

from fractions import Fraction
from typing import Any

from hypothesis import strategies as st

from likewise.claims.language.expressions import COMPARISONS
from likewise.claims.language.tree import (
    Binary,
    Call,
    Chain,
    Comparison,
    Constant,
    Index,
    Indexed,
    Join,
    Matrix,
    Moment,
    Name,
    Negative,
    Node,
    Number,
    Probability,
    Transpose,
)

NAMES = ("x", "y", "D", "N")
ONE_ARGUMENT = ("sqnorm", "sum", "max", "sqrt", "exp", "cos", "pairs", "relu", "I", "tanh", "floor", "argmax")

# Only numbers that are written without a sign or a bar come out of one token.
numbers = st.builds(lambda top, low: Number(Fraction(top, low)), st.integers(0, 999), st.sampled_from([1, 10, 100]))


def chains(node: st.SearchStrategy[Node]) -> st.SearchStrategy[Chain]:
    def joined(first: Node, second: Node, third: Node, signs: tuple[Comparison, Comparison], long: bool) -> Chain:
        return Chain((first, second, third), signs) if long else Chain((first, second), signs[:1])

    sign = st.sampled_from(COMPARISONS)
    return st.builds(joined, node, node, node, st.tuples(sign, sign), st.booleans())


def _brackets(parts: list[Node]) -> Node:
    """Brackets in brackets are a matrix; where only some parts are brackets they are joined."""
    nested = [isinstance(part, Join | Matrix) for part in parts]
    if all(nested):
        return Matrix(tuple(parts))
    return Join(tuple(Negative(part) if inside else part for part, inside in zip(parts, nested, strict=True)))


def _indexed(function: Any, lowest: Node, highest: Node, body: Node) -> Node:
    """The index is a name that the body does not contain."""
    inside = str(body)
    index = next(name for name in (f"i{place}" for place in range(99)) if f"{name} in" not in inside)
    return Indexed(function, index, lowest, highest, Binary("+", body, Name(index)))


def _larger(node: st.SearchStrategy[Node]) -> st.SearchStrategy[Any]:
    return st.one_of(
        st.builds(Binary, st.sampled_from("+-*/@^"), node, node),
        st.builds(Negative, node),
        st.builds(Transpose, node),
        st.builds(lambda name, argument: Call(name, (argument,)), st.sampled_from(ONE_ARGUMENT), node),
        st.builds(lambda left, right: Call("dot", (left, right)), node, node),
        st.builds(_brackets, st.lists(node, min_size=1, max_size=3)),
        st.builds(lambda body, places: Index(body, tuple(places)), node, st.lists(node, min_size=1, max_size=2)),
        st.builds(Moment, st.sampled_from(["E", "Var"]), node),
        st.builds(Probability, chains(node)),
        st.builds(_indexed, st.sampled_from(["sum", "prod", "max"]), node, node, node),
        st.builds(lambda body, name: Call("grad", (body, Name(name))), node, st.sampled_from(["x", "y"])),
    )


nodes: st.SearchStrategy[Any] = st.recursive(
    numbers | st.builds(Name, st.sampled_from(NAMES)) | st.just(Constant("pi")),
    _larger,
    max_leaves=12,
)
