"""Formulas of an answer are statements of its review: each has a chip beside it, its bindings, and can be marked."""

import pytest

from likewise.reading import Answer, Turn
from likewise.reading import Statement as Read
from likewise.review import Mark, Review, page, review, review_of
from likewise.review.reviewing import Binding, Link

ANSWER = """\
Let $q, k \\in \\mathbb{R}^D$. Then $\\|q - k\\|^2 = \\|q\\|^2 + \\|k\\|^2 - 2 q^\\top k$ and also

$$
\\|q - k\\|^2 = \\|q\\|^2 + \\|k\\|^2 + 2 q^\\top k
$$

So $12 + 5 = 18$ in all, and $x = \\oint y$.
"""


@pytest.fixture(scope="module")
def found() -> Review:
    return review(ANSWER, [Mark(3, 3, "right")], name="answer.md")


def test_formulas_are_statements_in_order(found: Review) -> None:
    labels = [(each.line, each.status.name) for each in found.statements]
    assert labels == [(1, "role"), (1, "exact"), (3, "refuted"), (7, "refuted"), (7, "unread")]
    assert found.summary.whole.first_error == 3
    assert found.summary.whole.unread == 1  # a declaration is understood


def test_a_formula_is_followed_by_a_link_to_its_chip(found: Review) -> None:
    html = page(found)
    for number in range(1, 6):
        assert html.count(f'href="#s{number}-read"') == 1
    assert html.index('href="#s2-read"') < html.index('id="s2"')


def test_bindings_say_where_they_come_from(found: Review) -> None:
    names = {binding.name: binding.line for binding in found.statements[1].bindings}
    assert names == {"q": 1, "k": 1}
    assert '<code>q</code>: in R^D, <a href="#l1">line 1</a>' in page(found)


def test_a_formula_is_marked_and_compared(found: Review) -> None:
    [differs] = found.disagreements
    assert (differs.line, differs.found) == (3, "refuted")


def test_findings_turns_and_places_are_taken_over() -> None:
    statements = (
        Read(1, 2, "a=b", "assertion", "assistant", findings=("contradicts line 3: another sign",)),
        Read(1, 2, "b=c", "assertion", "assistant", findings=("follows from line 3",), bindings=("x: a, b, line 12",)),
        Read(3, 2, "c", "term", "assistant", relation=False),
    )
    answer = Answer((Turn("user", 1, 2), Turn("unknown", 3, 9)), statements, 3, ((5, 1, "no LaTeX"),))
    made = review_of("$a=b$\n\n$c$\n\n$\\x$\n", [], [], answer=answer)
    assert [(each.line, each.column, each.status.label) for each in made.statements] == [
        (1, 2, "contradicts line 3"),
        (1, 3, "follows from a refuted step"),
        (5, 1, "not read"),
    ]
    assert made.statements[1].bindings == (Binding("x", "a, b", 12),)
    assert made.statements[1].links == (Link("follows", 3, "follows from line 3"),)
    assert [turn.speaker for turn in made.turns] == ["user", ""]


def test_several_claims_of_a_formula_are_repeated_by_one_command() -> None:
    made = review("So $1 + 1 = 2 = 3$.", name="a.md")
    assert made.statements[0].status.name == "refuted"
    assert page(made).count("```claim again") >= 1


def test_what_is_understood_and_not_checked_is_told_apart_from_what_is_not_read() -> None:
    made = review("Then $a + b = c + 1$.\n\nLet $q \\in \\mathbb{R}^D$.\n\nSo $x = \\oint y$.\n", name="a.md")
    told = [(each.status.label, each.reason, each.note) for each in made.statements]
    assert told[0] == ("not checked", "", "an equation between names that nothing binds")
    assert told[1] == ("declaration", "", "")
    assert told[2] == ("not read", told[2][1], "")
    assert told[2][1]
    counts = made.summary.whole
    assert (counts.understood, counts.unread, counts.unchecked) == (2, 1, 1)
    assert "Open: 1 not read, 1 not checked." in made.summary.found


def test_a_binding_quotes_the_line_that_says_it() -> None:
    made = review("Let $q \\in \\mathbb{R}^D$.\n\n$$\\|q\\|^2 = q^\\top q$$\n", name="a.md")
    [binding] = made.statements[1].bindings
    assert (binding.line, binding.source) == (1, "Let $q \\in \\mathbb{R}^D$.")
    assert "Let $q \\in \\mathbb{R}^D$." in page(made)


def test_the_nearest_true_statement_stands_beside_what_is_refuted() -> None:
    made = review("So $12 + 5 = 18$.", name="a.md")
    assert 'True: <math display="inline" alttext="12 + 5 = 17">' in page(made)


def test_lettered_parts_of_the_question_are_parts_without_a_rubric() -> None:
    talk = "**User:** Solve\n(a) sums\n(b) products\n\n**Assistant:**\n\n(a) So $1 + 1 = 2$.\n"
    made = review(talk, name="a.md")
    assert made.summary.unanswered == ("(b)",)
    assert made.summary.parts["(a)"].statements == 1
    assert "Not answered: (b)." in made.summary.words
    assert 'id="rubric"' not in page(made)  # nobody gave points
