"""Counterexamples are real, the simplest of their kind, and printed as the reference prints them."""

from fractions import Fraction
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from likewise.claims.algebra.points import Level, finite, points, sizes
from likewise.claims.algebra.questions import Question, question
from likewise.claims.algebra.witnesses import array_text, is_proved, search, suggested, violation
from likewise.claims.algebra.witnesses import decide as by_witnesses
from likewise.claims.engines import decide
from likewise.claims.language.parser import parse
from likewise.claims.verdict import Verdict
from tests.claims.floats import clearly_false, number

QK = "given: q, k in R^D"
SHORT = f"{QK}\nphi(x) = [1, sqrt(2)*x, x*x]\nassert: dot(phi(q), phi(k)) == (dot(q, k) + 1)^2"
FULL = SHORT.replace("x, x*x", "x, sqrt(2)*pairs(x), x*x")
DENOMINATOR = "given: s in R^n\nassume: max(s) > 0\nassert: sum(s) != 0"


def ask(text: str) -> Question:
    asked = question(parse(text))
    assert asked is not None
    return asked


@pytest.mark.parametrize(
    ("id", "text", "line"),
    [
        ("phi-short", SHORT, "refuted  phi-short  D=2 q=(1,1) k=(1,1): 7 != 9; true for D=1  [exact witness]"),
        ("phi-full", FULL, "holds  phi-full  for every D (normal form at D=4)  [proved]"),
        ("denominator", DENOMINATOR, "refuted  denominator  n=2 s=(1,-1): sum(s) = 0; true for n=1  [exact witness]"),
    ],
)
def test_worked_examples_print_their_line(id: str, text: str, line: str) -> None:
    found = decide(parse(text))
    assert str(Verdict(id, found.verdict, found.grade, found.detail)) == line


FALSE = [
    SHORT,
    DENOMINATOR,
    f"{QK}\nassert: dot(q, k) == dot(q, q)",
    f"{QK}\nassert: exp(dot(q, k)) >= 1",
    f"{QK}\nassert: norm(q + k) == norm(q) + norm(k)",
    f"{QK}\nassert: dot(q, k) < 4",
    "given: x in R\nassert: x^2 >= x",
    "given: x in R\nassume: x > 2\nassert: x^2 < 10",
    "given: x in [0, 1]\nassert: x*(1 - x) < 1/4",
    "given: x in [2, 3]\nassert: cos(x) < -0.42",
    "given: A[N,N], B[N,N]\nassert: A @ B == B @ A",
    "given: x in 1..9\nassert: x^2 != 49",
    "given: x in {0.5, 3}; y in Z\nassert: x*y <= 1",
    "given: x, y in R\nassume: x*y == 1; x > 0\nassert: x == y",
    "given: x in R\nassert: sqrt(x^2) == x",
    "given: q in R^D\nassert: softmax(2*q) == softmax(q)",
    "sizes: N, D\nassert: N*D <= 2*N + 2*D + 5",
    "sizes: D = 3\ngiven: q in R^D\nassert: q[1] == q[3]",
    "given: x in R\nassert: x < 100",
    "given: q in R^D\nassume: D >= 20\nassert: sum(q) == 0",
]


@pytest.mark.parametrize("text", FALSE)
def test_a_witness_is_admissible_and_violates_in_floating_point(text: str) -> None:
    asked = ask(text)
    found = search(asked, lambda at: violation(at, asked.chain)).witness
    assert found is not None
    at = dict(found.lengths) | {
        name: np.array([float(entry) for entry in value.entries]).reshape(value.shape) for name, value in found.values
    }
    at |= {name: number(node, at) for name, node in asked.solved}
    assert not any(clearly_false(chain, at, slack=1e-12) for chain in asked.assumptions)
    negated = {"==": False, "!=": True}.get(asked.chain.comparisons[0])
    sides = [number(term, at) for term in asked.chain.terms]
    if negated is None:
        gap = float(np.ravel(sides[0] - sides[1])[0]) * (-1 if asked.chain.comparisons[0][0] == "<" else 1)
        assert gap <= 1e-12
    else:
        assert np.allclose(sides[0], sides[1]) == negated


def test_points_come_in_the_order_in_which_they_are_preferred() -> None:
    asked = ask("given: q in R^D; c in R\nassert: c == sum(q)")
    level = Level(frozenset(map(Fraction, range(-2, 3))), frozenset(map(Fraction, (-2, 2))), 10**6)
    listed = [(*p["c"].entries, *p["q"].entries) for p in points(asked, {"D": 2}, level)]

    def rank(point: tuple[Fraction, ...]) -> tuple:
        return (sum(x != 0 for x in point), sum(x < 0 for x in point), tuple(-x for x in point))

    every = [p for p in product(map(Fraction, range(-2, 3)), repeat=3) if max(map(abs, p)) == 2]
    assert listed == sorted(every, key=rank)


@pytest.mark.parametrize("text", [SHORT, f"{QK}\nassert: dot(q, k) == dot(q, q)", f"{QK}\nassert: dot(q, k) > -4"])
def test_the_witness_is_the_first_of_all_small_ones(text: str) -> None:
    asked = ask(text)
    found = search(asked, lambda at: violation(at, asked.chain)).witness
    assert found is not None
    size = found.lengths["D"]
    mine = tuple(entry for _, value in found.values for entry in value.entries)
    largest = max(map(abs, mine))

    def rank(point: tuple) -> tuple:
        return (max(map(abs, point)), sum(x != 0 for x in point), sum(x < 0 for x in point), tuple(-x for x in point))

    for n in range(1, size + 1):
        for point in product(range(-int(largest), int(largest) + 1), repeat=2 * n):
            at = {"D": n, "q": np.array(point[:n], float), "k": np.array(point[n:], float)}
            wrong = not np.isclose(*(number(term, at) for term in asked.chain.terms))
            if asked.chain.comparisons == (">",):
                wrong = number(asked.chain.terms[0], at) <= -4
            if wrong:
                assert n == size
                assert rank(mine) <= rank(point)


def test_sizes_grow_and_include_those_near_numbers_of_the_claim() -> None:
    listed = list(sizes(ask("given: q in R^D\nassume: D >= 20\nassert: sum(q) == 0")))
    assert [each["D"] for each in listed] == [1, 2, 3, 4, 19, 20, 21]
    assert [tuple(each.values()) for each in sizes(ask("given: a in R^N; b in R^M\nassert: sum(a) == sum(b)"))][:4] == [
        (1, 1), (1, 2), (2, 1), (1, 3),
    ]  # fmt: skip


def test_names_that_do_not_matter_are_not_searched() -> None:
    found = decide(parse("sizes: D, M\ngiven: q, k in R^M; A[M,M]; c in R\nassume: c > 0\nassert: D == 1"))
    assert "D=2" in found.detail
    assert "2 != 1" in found.detail
    asked = ask("sizes: D, M\ngiven: q, k in R^M; A[M,M]; c in R\nassume: c > 0\nassert: D == 1")
    assert ([each.name for each in asked.variables], asked.sizes) == (["c"], ("D",))


def test_a_finite_domain_is_tried_whole() -> None:
    asked = ask("given: x in 1..6; y in {0.5, 2}\nassert: x*y <= 12")
    assert finite(asked)
    whole = by_witnesses(parse("given: x in 1..6; y in {0.5, 2}\nassert: x*y <= 12"))
    assert whole is not None
    assert (whole.verdict, whole.grade, whole.detail) == ("holds", "proved", "all 12 cases")
    false = by_witnesses(parse("given: x in 1..6; y in {0.5, 2}\nassert: x*y < 12"))
    assert false is not None
    assert false.detail == "x=6 y=2: 12 >= 12"


@pytest.mark.parametrize(
    ("text", "suggestions"),
    [
        (f"{QK}; c in R\nassert: (dot(q, k) + c)^2 == dot(q, k)^2", ["c == 0"]),
        ("given: s in R^n\nassert: sum(s) != 0", ["s > 0"]),
        ("given: q in R^D; c in R\nassert: c*sqnorm(q) == sqnorm(q)", ["c == 1"]),
        ("sizes: M, D\nassert: M*D == D^2", ["M == D"]),
        ("given: a, b in R\nassume: a > 0\nassert: a*b >= 0", ["b >= 0"]),
        ("given: x, y in R; q in R^D\nassert: (x + y)*sum(q) == sum(q)", ["x == 0, y == 1", "x == 1, y == 0"]),
        ("given: x in R\nassume: x > 0\nassert: x == 2*x", []),  # x == 0 would contradict
        (f"{QK}\nassert: dot(q, k) == 0", []),  # q == 0 would leave 0 == 0
    ],
)
def test_the_missing_assumption_is_suggested(text: str, suggestions: list[str]) -> None:
    assert suggested(parse(text), is_proved)[:2] == suggestions


def test_true_for_smaller_sizes_is_said_only_when_proved() -> None:
    assert decide(parse(f"{QK}\nassert: dot(q, k) == dot(q, q)")).detail.startswith("D=1 q=(1) k=(0): 0 != 1")
    open_at_one = "sum(relu(q)) - sum(relu(-q)) + (D - 1)*sum(q) == sum(q)"  # true there, but max is opaque
    found = by_witnesses(parse(f"given: q in R^D\nassert: {open_at_one}"))
    assert found is not None
    assert found.detail == "D=2 q=(1,0): 2 != 1"
    three = decide(parse("given: q in R^D\nassume: D >= 3\nassert: sum(q) == 0"))
    assert "true for" not in three.detail


def test_numbers_are_compared_exactly() -> None:
    close = "sqrt(2)^2 == 2", "sqrt(2)*sqrt(3) == sqrt(6)", "exp(2) == exp(1)*exp(1)"
    for text in close:
        assert decide(parse(f"assert: {text}")).verdict == "holds"
    found = decide(parse("assert: exp(1) == 2.718281828459045235360287"))
    assert found.detail == "2.7182818284590452353602875 != 2.718281828459045235360287"
    close = "3.14159265358979323846264338327950288419716939937510582097494"
    assert decide(parse(f"assert: -pi >= -{close}")).detail == f"-{close}5 < -{close}"
    assert decide(parse("assert: exp(1) == 2.718 within 0.001")).verdict == "holds"
    assert decide(parse("assert: exp(1) == 2.718 within 0.01%")).verdict == "refuted"


def test_assumptions_nothing_satisfies_are_inconclusive() -> None:
    found = decide(parse("given: x in R\nassume: x^2 < 0\nassert: x == 1"))
    assert found.verdict == "inconclusive"


def test_arrays_are_printed_in_brackets() -> None:
    found = decide(parse("given: A[N,N], B[N,N]\nassert: A @ B == B @ A"))
    assert found.detail.startswith("N=2 A=((1,0),(0,0)) B=((0,1),(0,0)): ((0,1),(0,0)) != ((0,0),(0,0))")
    assert found.witness[0] == ("N", "2")
    asked = ask("given: x in R\nassert: x == 1/2")
    assert array_text(asked.complete({}, {}).evaluate(asked.chain.terms[1])) == "0.5"


def test_no_engine_of_algebra_imports_tensors() -> None:
    import likewise.claims

    for path in Path(likewise.claims.__path__[0]).glob("*.py"):
        if path.stem in ("arrays", "balls", "coordinates", "exponomials", "identities", "witnesses", "intervals"):
            assert "import numpy" not in path.read_text()
            assert "import torch" not in path.read_text()
