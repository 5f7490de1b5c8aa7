"""What is proved is true: at random points, at sizes the proof never looked at, judged in floating point."""

from itertools import combinations, permutations

import numpy as np
import pytest

from likewise.claims.algebra.identities import decide, proved, proved_at
from likewise.claims.algebra.questions import Question, question
from likewise.claims.algebra.stability import lengths
from likewise.claims.language.parser import parse
from likewise.claims.verdict import Undecided
from tests.claims.floats import clearly_false, number


def ask(text: str) -> Question:
    asked = question(parse(text))
    assert asked is not None
    return asked


def values(asked: Question, sizes: dict[str, int], seed: int) -> dict[str, np.ndarray]:
    draws = np.random.default_rng(seed)
    found: dict[str, np.ndarray] = {name: np.float64(n) for name, n in sizes.items()}  # ty: ignore[invalid-assignment]
    for each in asked.variables:
        found[each.name] = draws.normal(size=[int(number(dim, found)) for dim in asked.dims(each)])
    return found


SCALARS = [
    "0", "1", "4", "D", "D^2", "sqnorm(q)", "sum(q)", "dot(q, k)", "dot(q, k)^2", "dot(q*q, k*k)", "mean(q)",
    "mean(q)*D", "dim(q)", "dim(pairs(q))", "dim([q, k])", "choose(D, 2)", "2*D", "tr(I(D))", "sum(ones(D))",
    "sum(0*q + 1)", "dot([1, q], [1, k])", "1 + dot(q, k)", "dot([q, 1], [1, q])", "sum(pairs(q))",
    "(sum(q)^2 - sqnorm(q))/2", "dot(pairs(q), pairs(k))", "tr(outer(q, k))",
    "sum(outer(q, k))", "sum(q)*sum(k)", "max(q)", "max(sum(q), sum(q))",
    "norm(q)^2", "abs(sqnorm(q))", "sqrt(sqnorm(q)^2)", "relu(sqnorm(q))", "sum(relu(q))", "sum(abs(q))",
    "exp(sum(q))", "sum(exp(q))", "D*sum(exp(q))/sum(exp(q))", "q @ k", "sqnorm(q + k) - sqnorm(q - k)", "4*dot(q, k)",
    "sum(softmax(q))", "sum(q^3)", "sum(q)^3", "log(exp(sum(q)))", "cos(0*sum(q))", "-sqnorm(q)",
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("sign", ["==", ">=", ">"])
def test_what_is_proved_is_true_at_sizes_it_never_saw(sign: str) -> None:
    points = [(size, seed) for size in (1, 2, 3, 6) for seed in range(3)]
    known, count = {}, 0
    for text in SCALARS:
        asked = ask(f"given: q, k in R^D\nassert: {text} == 0")
        known[text] = [float(number(asked.chain.terms[0], values(asked, {"D": n}, seed))) for n, seed in points]
    for left, right in combinations(SCALARS, 2) if sign == "==" else permutations(SCALARS[::2], 2):
        if proved(ask(f"given: q, k in R^D\nassert: {left} {sign} {right}")):
            count += 1
            for a, b in zip(known[left], known[right], strict=True):
                room = 1e-9 * (1 + abs(a) + abs(b))
                assert abs(a - b) <= room if sign == "==" else a - b >= -room, (left, sign, right)
    assert count >= 15  # pairs of which something is proved


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("dot(q + k, q - k)", "sqnorm(q) - sqnorm(k)"),
        ("dot([1, q], [1, k])", "1 + dot(q, k)"),
        ("2*dot(pairs(q), pairs(k))", "dot(q, k)^2 - dot(q*q, k*k)"),
        ("sqnorm(vec(outer(q, k)))", "sqnorm(q)*sqnorm(k)"),
        ("sum(q + 1)", "sum(q) + D"),
        ("norm(2*q)", "2*norm(q)"),
        ("exp(dot(q, k))/exp(sum(q))", "exp(dot(q, k - 1))"),
        ("cos(dot(q, k + k))", "1 - 2*sin(dot(q, k))^2"),
        ("sqnorm(outer(q, k) @ k)", "sqnorm(q)*sqnorm(k)^2"),
        ("dot(q, k)/(1 + sqnorm(q)) + sqnorm(q)/(1 + sqnorm(q))", "dot(q, q + k)/(1 + sqnorm(q))"),
        ("sum(softmax(q + c)*k)", "sum(softmax(q)*k)"),
        ('einsum("i,j,i,j->", q, k, q, k)', "sqnorm(q)*sqnorm(k)"),
    ],
)
def test_identities_are_proved_for_every_size(left: str, right: str) -> None:
    asked = ask(f"given: q, k in R^D; c in R\nassert: {left} == {right}")
    found = proved(asked)
    assert found is not None
    assert (found.scope, found.method[:11]) == ("for every D", "normal form")
    for size in (1, 3, 6):
        assert not clearly_false(asked.chain, values(asked, {"D": size}, size))
    spoilt = ask(f"given: q, k in R^D; c in R\nassert: {left} == {right} + 1/1000")
    assert proved(spoilt) is None


@pytest.mark.parametrize(
    "right",
    [
        "sum(0*q + 1) == 1",  # true at D = 1, the degree of the difference
        "dot(ones(D), ones(D)) == 4",
        "dot([q, 1], [1, k]) == sum(q) + k[1]",
        "dot([q, 1], [1, q]) == sum(q) + sum(pairs(q))",  # true at D = 2, the degree
        "mean(q) == sum(q)/2",
        "tr(I(D)) == 1",
        "max(q) == sum(q)",
        "sum(exp(q)) == exp(sum(q))",
        "dim(q) == 1",
        "q + 1 == q + q/q",
    ],
)
def test_the_small_size_argument_needs_operations_that_forget_zeros(right: str) -> None:
    asked = ask(f"given: q, k in R^D\nassert: {right}")
    with pytest.raises(Undecided):
        lengths(asked)
    assert proved(asked) is None or right.startswith("q + 1")


def test_the_degree_in_each_size_is_the_length_that_decides() -> None:
    text = "given: A[N,M], B[M,N]; q, k in R^N\nassert: {} == 0"
    assert lengths(ask(text.format("tr(A @ B)"))) == {"N": 2, "M": 2}
    assert lengths(ask(text.format("dot(q, k)^3"))) == {"N": 6}
    assert lengths(ask(text.format("exp(dot(q, k)^2)*dot(q, k)"))) == {"N": 4}
    assert lengths(ask("given: S[N,N]\nassert: tr(S @ S) == tr(S' @ S')")) == {"N": 4}


def test_one_size_alone_would_accept_the_short_map() -> None:
    short = ask("given: q, k in R^D\nphi(x) = [1, sqrt(2)*x, x*x]\nassert: dot(phi(q), phi(k)) == (dot(q, k) + 1)^2")
    assert proved_at(short, {"D": 1})
    assert not proved_at(short, {"D": 2})
    assert proved(short) is None


@pytest.mark.parametrize(
    ("assumption", "claim"),
    [
        ("mu == 0", "sqnorm(q - mu) == sqnorm(q)"),
        ("s == 1", "s*sqnorm(q) == sqnorm(q)"),
        ("q == mu", "dot(q, mu) == sqnorm(q)"),
        ("sqnorm(q) == 1; sqnorm(mu) == 1", "sqnorm(q - mu) == 2 - 2*dot(q, mu)"),
        ("D == 1", "dot(q*q, mu*mu) == dot(q, mu)^2"),
        ("s > 0", "sqrt(s^2) == s"),
        ("sqnorm(q) <= s", "max(sqnorm(q) - s, 0) == 0"),
        ("s == 2; mu == s*q", "dot(q, mu) == 2*sqnorm(q)"),
    ],
)
def test_assumptions_are_used_and_needed(assumption: str, claim: str) -> None:
    given_ = "given: q, mu in R^D; s in R"
    assert proved(ask(f"{given_}\nassume: {assumption}\nassert: {claim}"))
    assert proved(ask(f"{given_}\nassert: {claim}")) is None


def test_a_bound_below_zero_is_no_sign() -> None:
    assert proved(ask("given: s in R\nassume: s >= -1\nassert: sqrt(s^2) == s")) is None


def test_a_size_of_one_claim_may_equal_another() -> None:
    assert proved(ask("sizes: M, D\nassume: M == D\nassert: M*D == D^2"))
    assert proved(ask("sizes: h, k, d = h*k\nassert: d^2 == h*k*d"))
    assert proved(ask("sizes: M, D\nassert: M*D == D^2")) is None


def test_a_quotient_is_claimed_only_where_it_is_defined() -> None:
    assert decide(parse("given: x in R\nassert: x/x == 1")) is None  # at 0 only one side is defined
    safe = decide(parse("given: x in R\nassert: (x^2 + 1)/(x^2 + 1) == 1"))
    assert safe is not None
    assert safe.detail == "for all values (normal form)"


def test_equations_that_feed_each_other_stay_bounded() -> None:
    chain = "; ".join(f"x{i} == x{i + 1}*x{i + 1}" for i in range(30))
    names = ", ".join(f"x{i}" for i in range(31))
    with pytest.raises(Undecided, match="parts"):
        question(parse(f"given: {names} in R\nassume: {chain}\nassert: x0 == 0"))


def test_claims_of_chance_and_programs_are_left_to_others() -> None:
    assert decide(parse("given: w ~ N(0, 1)\nassert: E[w] == 0")) is None
    assert decide(parse("source: {title: T, cells: {a: 85.1}}\nassert: a == 85.1")) is None


def test_the_same_claim_has_the_same_answer() -> None:
    text = "given: q, k in R^D\nassert: dot(q, k) == dot(k, q)"
    assert decide(parse(text)) == decide(parse(text))
