"""Rows of matrices by an index: layouts that a text states, layouts that a formula needs, and sums that telescope."""

import pytest

from likewise.reading import Statement, check_answer, read_answer
from likewise.reading.rows import conventions

KERNEL = (
    r"Let $\text{sim}(q, k) = \phi(q)^T \phi(k)$ and "
    r"$V'_i = \frac{\sum_j \text{sim}(Q_i, K_j) V_j}{\sum_j \text{sim}(Q_i, K_j)}$."
)
ROWS = r"All $Q_i$, $K_j$ and $V_j$ are row vectors, and $\phi(Q_i)$ is a row vector. "
PREFIX = r"Put $S_i = \sum_{j=1}^i \phi(K_j)^T V_j$. "


def last(text: str) -> Statement:
    return check_answer(text, budget=10.0).statements[-1]


@pytest.mark.parametrize(
    ("formula", "verdict"),
    [
        (r"\frac{\phi(Q_i) (\sum_j \phi(K_j)^T V_j)}{\phi(Q_i) \sum_j \phi(K_j)^T}", "holds"),
        (r"\frac{\phi(Q_i)^T (\sum_j \phi(K_j) V_j^T)}{\phi(Q_i)^T \sum_j \phi(K_j)}", "holds"),
        (r"\frac{\phi(Q_i) (\sum_j \phi(K_j)^T V_j)}{\sum_j \phi(K_j) \phi(K_j)^T}", None),
        (r"\frac{\phi(Q_i) (\sum_j \phi(K_j)^T V_j)}{2\phi(Q_i) \sum_j \phi(K_j)^T}", "refuted"),
        (r"\frac{\phi(Q_i)^T (\sum_j \phi(K_j)^T V_j)}{\phi(Q_i)^T \sum_j \phi(K_j)^T}", "refuted"),
    ],
)
def test_linear_attention_is_softmax_with_another_similarity(formula: str, verdict: str | None) -> None:
    assert last(f"{KERNEL} So $V'_i = {formula}$.").verdict == verdict


def test_a_stated_layout_refutes_a_product_that_another_layout_allows() -> None:
    formula = r"$$\sum_j [\phi(Q_i)^T \phi(K_j)] V_j = \phi(Q_i)^T (\sum_j \phi(K_j) V_j^T)$$"
    assert last(formula).verdict == "holds"
    found = last(ROWS + formula)
    assert (found.verdict, found.bindings) == (
        "refuted",
        ("layout: rows are rows, line 1", "layout: phi are rows, line 1"),
    )


@pytest.mark.parametrize(
    ("line", "found"),
    [
        (r"Each $V_j$ is a **row vector** of width $M$.", [("rows", "row")]),
        (r"So $\phi(K_j)^T$ is a column vector.", [("phi", "row")]),
        (r"Here $\phi$ maps a row vector to a column vector.", [("phi", "col")]),
        (r"We use the row-vector convention.", [("rows", "row")]),
        (r"So $K_j \in \mathbb{R}^{D \times 1}$.", [("rows", "col")]),
        (r"Is $\phi(K_j)$ a row vector? Actually $\phi(K_j)$ is a column vector.", []),
        (r"Then $Z_i$ is a column vector.", []),
    ],
)
def test_conventions_are_taken_from_plain_sentences_only(line: str, found: list[tuple[str, str]]) -> None:
    assert [(each.what, each.kind) for each in conventions(line, ())] == found


def test_a_recurrence_adds_the_last_term_of_its_sum() -> None:
    right = last(PREFIX + r"Then $S_i = S_{i-1} + \phi(K_i)^T V_i$.")
    wrong = last(PREFIX + r"Then $S_i = S_{i-1} + 2\phi(K_i)^T V_i$.")
    assert (right.verdict, wrong.verdict) == ("holds", "refuted")


def test_the_shape_of_a_sum_counts_only_in_a_layout_that_is_stated() -> None:
    formula = r"Then $\sum_j \phi(K_j) V_j \in \mathbb{R}^{F \times M}$."
    assert last(formula).readings[0].trivial
    assert last(ROWS + formula).verdict == "refuted"
    assert last(ROWS + formula.replace("(K_j)", "(K_j)^T")).verdict == "holds"


def test_random_variables_and_entries_are_no_rows() -> None:
    text = r"Let $X_i$ be independent. Then $\mathbb{E}[\bar X] = \frac{1}{n} \sum_{i=1}^n \mathbb{E}[X_i]$."
    assert all(not each.claim for each in read_answer(text).statements)


def test_a_condition_in_words_after_a_formula_keeps_a_refutation_back() -> None:
    formula = r"$$\sum_j [\phi(Q_i)^T \phi(K_j)] V_j = \phi(Q_i)^T (\sum_j \phi(K_j) V_j^T)$$"
    assert last(f"{ROWS}{formula} if columns are meant.").verdict == "inconclusive"
    assert last("Let $a = 3$. Then $a^2 + 1 = 11$ if rounding is off.").verdict == "inconclusive"
    assert last("Let $a = 3$. Then $a^2 + 1 = 11$.").verdict == "refuted"
