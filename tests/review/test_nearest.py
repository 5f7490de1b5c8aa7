"""The nearest true statement of a refuted one: proved on its own, and one small change away."""

import pytest

from likewise.claims import check
from likewise.review import review, text
from likewise.review.nearest import changed

GIVEN = "Let $a, b, t \\in \\mathbb{R}$ and $q, k \\in \\mathbb{R}^D$.\n\n"


@pytest.mark.parametrize(
    ("wrong", "true"),
    [
        ("\\|q - k\\|^2 = \\|q\\|^2 + 2 q^\\top k + \\|k\\|^2", "sqnorm(q - k) == sqnorm(q) - dot(2*q, k) + sqnorm(k)"),
        ("\\|q + k\\|^2 = \\|q\\|^2 + \\|k\\|^2", "sqnorm(q + k) == sqnorm(q) + sqnorm(k) + 2*dot(q, k)"),
        ("\\sin^2 t + \\cos^2 t = 2", "sin(t)^2 + cos(t)^2 == 1"),
        ("(a + b)^2 = a^2 + b^2", "(a + b)^2 == a^2 + b^2 + 2*(a*b)"),
        ("a^2 + b^2 = 2ab", "a^2 + b^2 >= 2*a*b"),
        ("|a + b| \\ge |a| + |b|", "abs(a + b) <= abs(a) + abs(b)"),
        ("5 \\cdot 7 = 36", "5*7 == 35"),
    ],
)
def test_what_is_refuted_gets_the_nearest_true_statement(wrong: str, true: str) -> None:
    found = review(f"{GIVEN}Then ${wrong}$ holds.")
    [statement] = [each for each in found.statements if each.refuted]
    assert f" True: {true}." in text(found)
    if statement.nearest:
        given = statement.claim.rpartition("assert:")[0]
        verdict = check(f"{given}assert: {statement.nearest}")
        assert (verdict.verdict, verdict.grade) == ("holds", "proved")
        assert found.to_json()["statements"][-1]["nearest"] == true


def test_nothing_is_suggested_where_nothing_near_is_true() -> None:
    found = review(f"{GIVEN}Then $a^5 + 3a = b^7 - 11$ holds.")
    [statement] = [each for each in found.statements if each.refuted]
    assert statement.nearest == ""


@pytest.mark.parametrize(
    "statement", ["", "assert: (", "given: x in R | assert: x == 1 == 2", "a | b", "assert: 1 in O(N)"]
)
def test_what_is_no_equation_has_no_candidates(statement: str) -> None:
    assert changed(statement) == []
