"""What the run says is set as formulas: read again, they are the same claims."""

import re

import pytest

from likewise.claims.language.claim import Compares
from likewise.claims.language.parser import parse
from likewise.reading.answers import read_answer
from likewise.review import page, review
from likewise.review.mathml import mathml
from likewise.review.typesetting import chain, set_condition, set_relation, set_sides, set_term

SPOKEN = (
    "Let $x, y \\in \\mathbb{R}^d$, $A \\in \\mathbb{R}^{d \\times d}$, $a, b, t \\in \\mathbb{R}$ and "
    "$w \\sim \\mathcal{N}(0, I_d)$."
)
GIVEN = "given: x, y in R^d; A in R^(d, d); a, b, t in R; w ~ N(0, I(d))"


def latex_of(relation: str) -> str:
    found = parse(f"{GIVEN}\nassert: {relation}", id="claim").relation
    assert isinstance(found, Compares)
    return chain(found.chain)


@pytest.mark.parametrize(
    ("relation", "read"),
    [
        ("sqnorm(x - y) == sqnorm(x) - 2*dot(x, y)", "sqnorm(x - y) == sqnorm(x) - dot(2*x, y)"),
        ("exp(dot(x, y)) <= exp(norm(x)^2/2)*exp(sqnorm(y)/2)", "exp(dot(x, y)) <= exp(sqnorm(x)/2)*exp(sqnorm(y)/2)"),
        ("E[exp(dot(w, x))] == exp(sqnorm(x)/2)", ""),
        ("Var[dot(w, x)^2] == 2*sqnorm(x)^2", "Var[dot(w, x)^2] == 2*norm(x)^4"),
        ("tr(A') == tr(A)", ""),
        ("dot(x, A @ y) == dot(A' @ x, y)", ""),
        ("outer(x, y) == A @ A", ""),
        ("(a + b)^2 == a^2 + 2*(a*b) + b^2", ""),
        ("abs(a - b) <= abs(a) + abs(b)", ""),
        ("-a/(b^2 + 1) >= -(a + 1)", ""),
        ("a*-b <= (-a)^2", "a*(-b) <= (-a)^2"),
        ("sqrt(t^2 + 1) > t/3", ""),
        ("sin(t)^2 + cos(t)^2 == 1", ""),
        ("log(a^2 + 1)^2 >= max(a, b)", ""),
        ("exp(-t^2/2)^2 < 3*5 + 0.25", ""),
        ("a - (b - t) != a/(b/t)", ""),
        ("(a*b)^(1/3) == 2^t", ""),
        ("a*(b + t)^2*t <= floor(a)", ""),
    ],
)
def test_a_relation_that_is_set_reads_as_itself(relation: str, read: str) -> None:
    statement = read_answer(f"{SPOKEN}\n\nHence ${latex_of(relation)}$.").statements[-1]
    found = [str(parse(text, id="claim").relation) for text in statement.claim.split("\n\n")]
    assert found == [str(parse(f"{GIVEN}\nassert: {read or relation}", id="claim").relation)]


@pytest.mark.parametrize("relation", ["A^2 == A", "A*A == A", "x*y == x", "a/x == x", "dot(x*x, y) == 1"])
def test_operations_entry_by_entry_stay_as_they_are_typed(relation: str) -> None:
    assert set_relation(f"{GIVEN} | assert: {relation}") == f"<code>{relation}</code>"


def shown(html: str) -> str:
    return re.sub(r"<[^>]*>", "", html)


def test_sums_and_entries_are_set() -> None:
    statement = "given: x in R^N | assert: sum(i in 1..N, x[i]) <= N*max(i in 1..N, x[i])"
    assert shown(set_relation(statement)) == "∑i=1Nxi≤N(maxi=1,…,Nxi)"
    assert shown(set_relation("given: A in R^(N, N) | assert: A[1, 2]^2 <= softmax(A[1])[2]")) == "(A1,2)2≤softmax(A1)2"


def test_the_sides_of_a_chain_are_those_that_fail() -> None:
    statement = "given: a in R | assert: a <= a + 1 <= a + 2 <= a"
    assert [shown(side) for side in set_sides(statement, 3)] == ["a+2", "a"]
    assert set_sides(statement) == ("", "")
    assert set_sides("assert: peak in O(N)") == ("", "")


def test_conditions_are_set_one_by_one() -> None:
    statement = "sizes: N, D | assert: N <= 2*D"
    assert shown(set_condition(statement, "N <= D, D == 1")) == "N≤D, D=1"
    assert set_condition(statement, "kernel: fused") == "<code>kernel: fused</code>"


@pytest.mark.parametrize("typed", ["x +", "<b>", "f(", "\\input", 'einsum("ij->i", A)'])
def test_what_is_no_term_stays_as_it_is_typed_and_is_no_markup(typed: str) -> None:
    assert set_term("given: A in R^(N, N) | assert: 1 == 1", typed).startswith("<code>")
    assert "<b>" not in set_term("assert: 1 == 1", typed)


def test_a_refutation_is_worked_out_in_formulas() -> None:
    found = page(review("Let $x \\in \\mathbb{R}$. So $(x + 1)^2 = x^2 + 1$.", name="a.md"))
    [worked] = re.findall(r"<dt>Worked out</dt><dd>(.*?)</dd>", found)
    assert shown(worked.replace("</span>", "; ")) == "(x+1)2 = 4; x2+1 = 2; "


def test_each_of_two_statements_in_one_formula_is_listed_alone() -> None:
    found = page(review("So $$1 + 1 = 2, \\qquad 2 + 2 = 5, \\qquad 3 + 3 = 7.$$", name="a.md"))
    listed = re.findall(r'<span class="formula-scroll">(.*?)</span><span class="worked">', found)
    assert [shown(each) for each in listed] == ["2+2=5", "3+3=7"]


LONG = "\\exp(a + b + c + d + e + f) \\le \\sum_{i=1}^n (x_i = 3), \\qquad z = 4"


def test_a_long_formula_is_cut_before_its_outer_relations() -> None:
    for display in (False, True):
        pieces = mathml(LONG, display=display).split("<wbr>")
        assert [shown(each) for each in pieces] == ["exp(a+b+c+d+e+f)", "≤∑i=1n(xi=3),", "z", "=4"]
        assert all(each.count("<math ") == each.count("</math>") == 1 for each in pieces)
    assert "<wbr>" not in mathml("a = b")
