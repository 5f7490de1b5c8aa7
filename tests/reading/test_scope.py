"""How far names and conditions reach: a wrong reach is a wrong verdict."""

import pytest

from likewise.reading import check_answer

CHAPTERS = r"""## Initialisation

Let $x \in \mathbb{R}^n$. With $\sigma^2 = 2/n$ and $\|x\|^2 = n$ we get $\sigma^2 \|x\|^2 = 2$.

## Sigmoid

$\sigma(x) = \frac{1}{1+e^{-x}}$, so $\sigma(-x) = 1 - \sigma(x)$.
"""


def test_a_chapter_ends_declarations_and_what_was_needed_of_a_name() -> None:
    found = check_answer(CHAPTERS).statements
    assert [each.verdict for each in found if each.line == 7] == [None, "holds"]
    assert "given: x in R\n" in found[-1].claim
    assert found[1].verdict is None  # a condition does not rest on itself


def test_headings_below_a_chapter_go_on_with_its_names() -> None:
    text = (
        "# One\n\n## A\n\nLet $q, k \\in \\mathbb{R}^D$.\n\n## B\n\n$$(q + k)^T q = q^T q + k^T q$$\n\n# Two\n\nWords."
    )
    assert check_answer(text).statements[-1].bindings == ("q: in R^(D), line 5", "k: in R^(D), line 5")
    assert check_answer(text.replace("## A", "# A").replace("## B", "# B")).statements[-1].bindings == ()


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        (r"With $\|a\| = \|p\| = 1$ we have $\|a - p\|^2 = 2 - 2 a^T p$.", "holds"),
        (r"With $\|a\| = \|p\| = 1$ we have $\|a - p\|^2 = 2 - a^T p$.", "refuted"),
        (r"If $\|a\| = \|p\| = 1$, then $\|a - p\|^2 = 2 - 2 a^T p$.", "holds"),
        (r"Assume $\|a\| = \|p\| = 1$. Then $\|a - p\|^2 = 2 - 2 a^T p$.", "holds"),
        (r"We have $\|a - p\|^2 = 2 - 2 a^T p$ for $\|a\| = \|p\| = 1$.", "holds"),
        (r"Words with $\|a\| = \|p\| = 1$ here. Then $\|a - p\|^2 = 2 - 2 a^T p$.", "inconclusive"),
        (r"Words with $\|a\| = \|p\| = 1$ here. Then $\|a - p\|^2 = 2 - a^T p$.", "refuted"),
        (r"Words with $\|a\| = \|p\| = 1$ here. Then $\|a - p\|^2 = \|p\|^2 - 2 a^T p + \|a\|^2$.", "holds"),
    ],
)
def test_a_condition_of_the_sentence_is_assumed_and_one_of_another_sentence_only_protects(
    text: str, verdict: str
) -> None:
    declared = "Let $a, p \\in \\mathbb{R}^n$.\n\n" + text
    (found,) = [each for each in check_answer(declared).statements if r"\|a - p" in each.source]
    assert found.verdict == verdict


def test_a_vector_that_an_earlier_chapter_defined_is_not_any_vector() -> None:
    text = (
        "### Setup\n\nLet $x \\in \\mathbb{R}^d$ and let $\\mu$, $\\sigma > 0$ be the mean and deviation of its "
        "entries. The result has entries\n\n$$\\hat{x}_i = \\frac{x_i - \\mu}{\\sigma}.$$\n\n### Length\n\n"
        "so $\\|\\hat{x}\\| = \\sqrt{d}$.\n"
    )
    assert check_answer(text).statements[-1].verdict != "refuted"
