"""Answers as people write them: what is read, what is refused, and that nothing true is refuted."""

import pytest

from likewise.reading import Statement, Turn, check_answer, read_answer

KERNEL = r"""We have $q, k \in \mathbb{R}^D$ and $K(q, k) = \exp(-\|q - k\|^2/(2\sigma^2))$.

$$\|q - k\|_2^2 = \|q\|_2^2 + \|k\|_2^2 - 2 q^T k.$$

$$K(q,k) = \exp\left(\frac{(-\|q\|^2 - 2q^T k + \|k\|^2)}{2\sigma^2}\right)$$
"""


def verdicts(text: str) -> list[tuple[str | None, int, int]]:
    return [(each.verdict, each.line, each.column) for each in check_answer(text).statements if each.relation]


def only(text: str) -> Statement:
    found = [each for each in check_answer(text).statements if each.claim]
    assert len(found) == 1, [each.source for each in found]
    return found[0]


def test_vectors_are_read_by_their_shapes_and_a_wrong_sign_is_refuted_with_a_witness() -> None:
    found = check_answer(KERNEL).statements
    assert [each.verdict for each in found] == [None, None, "holds", "refuted"]
    wrong = found[-1]
    assert (wrong.line, wrong.column, wrong.role) == (5, 3, "assertion")
    assert dict(wrong.witness)
    assert any("K(q, k) as defined, line 1" in binding for binding in wrong.bindings)


def test_the_covariance_of_random_features_is_refuted_from_its_law() -> None:
    text = r"""Let $q, k \in \mathbb{R}^D$ and $w \sim \mathcal{N}(0, \sqrt{D} I_D)$. Then
$$\mathbb{E}[\cos(w^\top (q-k))] = \exp\left(-\frac{\|q-k\|^2}{2\sqrt{D}}\right)$$"""
    assert check_answer(text).statements[-1].verdict == "refuted"
    right = text.replace(r"\sqrt{D} I_D", r"I_D / \sqrt{D}")
    assert check_answer(right).statements[-1].verdict == "holds"


@pytest.mark.parametrize(
    "text",
    [
        r"So $3 \times 4 = 12$.",
        r"So \(20\% \times 50 = 10\).",
        r"$\frac{2}{3} = 0.67$",
        r"$\frac{2}{3} \approx 0.667$",
        r"$5! = 120$ ways",
        r"$\binom{5}{2} = 10$",
        r"$17 \equiv 3 \pmod{7}$",
        r"\[ 2\frac{1}{2} + 1 = 3.5 \]",
        "The total is 12 + 6 = 18 apples.",
        r"$\sum_{k=1}^{4} k = 10$",
        r"$1{,}000 + 1 = 1001$",
        r"$3x + 2 = 11$, so $x = 3$.",
    ],
)
def test_right_arithmetic_is_not_refuted(text: str) -> None:
    assert "refuted" not in [verdict for verdict, _, _ in verdicts(text)]
    assert any(each.claim for each in check_answer(text).statements)


@pytest.mark.parametrize(
    "text",
    [
        r"So $3 \times 4 = 13$.",
        r"So \(20\% \times 50 = 11\).",
        r"$\frac{2}{3} = 0.76$",
        r"$5! = 100$ ways",
        r"$17 \equiv 4 \pmod{7}$",
        "The total is 12 + 6 = 19 apples.",
        r"$3x + 2 = 11$, so $x = 4$.",
        r"Let $a = 3$. Then $a^2 + 1 = 11$.",
    ],
)
def test_wrong_arithmetic_is_refuted(text: str) -> None:
    assert "refuted" in [verdict for verdict, _, _ in verdicts(text)]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (r"Is it true that $2 + 2 = 5$?", "a question"),
        (r"We get $3/2 = 1/3$. This is not true.", "denied on the next line"),
        (r"Let us try whether $4 + 5 = 10$ helps.", "tried"),
        (r"$225 \div 17 = 13 \text{ remainder } 4$", "a remainder"),
        ("194 ÷ 11 = 17 with a remainder of 7.", "a remainder"),
        (r"$x + y = 10$", "an equation"),
        (r"$x^2 - 3 = 0$ or $x = 0$", "another case"),
        (r"$5 + 3 = 8 + 2 = 10$", "a running total"),
        (r"$3 \text{ hours} = 3 \times 60 = 180 \text{ minutes}$", "a conversion"),
        (r"$\sin 30^\circ = \frac{1}{2}$", "degrees"),
        ("It costs $5 and $6 = 11 in all.", "money"),
        ("There are (5 + 3) choose (4 - 1) = 56 ways.", "words between"),
        (r"$f(x) = x$ is one solution, and $f(x) = 1$ is another, as $f(0) = 1$.", "a functional equation"),
        (r"$1!=1$", "a factorial, not an inequality"),
        (r"Let $a_n = 1$ if $n$ is even, and $a_n = 0$ otherwise.", "two cases"),
        (r"We know that $c_n = a_n + b_n$ for these sequences.", "sequences that nothing defines"),
        (r"Let $c \in \mathbb{R}$. There is a constant $c > 0$ with this property.", "a condition on a name"),
        (r"$10^{12}/7 = 142857142857$", "printed as an integer"),
        (r"$\sqrt{n} = 5$", "no vectors, no size"),
    ],
)
def test_what_nobody_asserts_is_never_refuted(text: str, why: str) -> None:
    assert "refuted" not in [verdict for verdict, _, _ in verdicts(text)], why


def test_a_refutation_needs_every_name_bound() -> None:
    found = check_answer(r"$(a + b)^2 = a^2 + b^2$").statements[0]
    assert found.verdict is None
    assert found.understood


def test_a_redefinition_that_is_not_read_takes_the_older_one_away() -> None:
    text = "Let $c = 2$. Then let $c = \\weird$. So $c + 1 = 7$."
    assert [each.verdict for each in check_answer(text).statements if each.verdict] == []


def test_a_value_ends_with_its_section() -> None:
    text = "## One\nLet $c = 2$.\n\n## Two\nSo $c + 1 = 7$."
    assert [each.verdict for each in check_answer(text).statements if each.verdict == "refuted"] == []


def test_rows_of_a_derivation_go_on_from_the_row_before() -> None:
    text = "\\[ \\begin{aligned} (1+2)^2 &= 1 + 4 + 4 \\\\ &= 10 \\end{aligned} \\]"
    assert [each.verdict for each in check_answer(text).statements] == ["holds", "refuted"]


def test_speakers_decide_who_is_judged() -> None:
    text = "Is $2 + 2 = 5$ right\n$2 + 2 = 6$\n$2 + 2 = 7$"
    turns = (Turn("user", 1, 1), Turn("annotator", 2, 2), Turn("assistant", 3, 3))
    found = check_answer(text, turns=turns).statements
    assert [(each.speaker, each.role, each.verdict) for each in found] == [
        ("user", "given", None),
        ("assistant", "assertion", "refuted"),
    ]


def test_the_same_number_of_formulas_is_found_under_every_delimiter() -> None:
    for opening, closing in (("$", "$"), ("$$", "$$"), (r"\(", r"\)"), (r"\[", r"\]")):
        found = read_answer(f"Then\n{opening}1 + 1 = 2{closing}\n").statements
        assert [(each.line, each.source) for each in found] == [(2, "1 + 1 = 2")]


def test_code_is_not_read() -> None:
    assert read_answer("```\n$1 + 1 = 3$\n```\nand `$1 = 2$`").statements == ()


@pytest.mark.parametrize(
    "source", ["{" * 500, r"\frac" * 400, r"\frac{1", r"\left(" * 60, "^" * 50, r"\begin{aligned}" * 50, "a_" * 999]
)
def test_broken_latex_is_refused_and_nothing_raises(source: str) -> None:
    found = read_answer(f"$${source} = 1$$")
    assert not any(each.claim for each in found.statements)


def test_counts_add_up() -> None:
    counts = check_answer(KERNEL + "\nSo $2 + 2 = 5$ and $\\weird = 3$.").counts
    assert counts["refuted"] == 2
    assert counts["decided"] == counts["holds"] + counts["refuted"]
    assert counts["understood"] < counts["statements"]


def test_a_condition_of_another_turn_is_not_left_out() -> None:
    text = r"""We set $\sigma^2 = \sqrt{D}$ under the assumption $\sigma^2 = \sqrt{D}$.
$K(q, k) = \exp(-\|q - k\|^2/(2\sigma^2))$.
$$\exp(q^T k/\sqrt{D}) = K(q, k) \exp(\|q\|^2/(2\sqrt{D})) \exp(\|k\|^2/(2\sqrt{D}))$$"""
    turns = (Turn("user", 1, 1), Turn("assistant", 2, 3))
    assert check_answer(text, turns=turns).statements[-1].verdict == "holds"
    mixed = text.replace(r"under the assumption $\sigma^2 = \sqrt{D}$", r"under the assumption $\sigma^2 = 2D$")
    assert check_answer(mixed, turns=turns).statements[-1].verdict == "inconclusive"


FEATURES = r"""Let $K(q, k) = \exp(-\|q - k\|^2/(2\sigma^2))$ with $\sigma^2 = \sqrt{D}$. The random features are
$\phi(x) = \sqrt{\frac{1}{R}} [\sin(w_1 x), \dots, \sin(w_R x), \cos(w_1 x), \dots, \cos(w_R x)]^T$
with $w_i \sim \mathcal{N}(0, LAW)$.

So $K(q, k) \approx \phi(q)^T \phi(k)$.
"""


def test_features_with_dots_are_unbiased_under_the_right_law_only() -> None:
    assert check_answer(FEATURES.replace("LAW", r"\sigma^2 I")).statements[-1].verdict == "refuted"
    right = check_answer(FEATURES.replace("LAW", r"\frac{1}{\sigma^2} I")).statements[-1]
    assert right.verdict == "holds"
    assert any(binding.startswith("w: law") for binding in right.bindings)


def test_an_abbreviated_list_is_not_taken_for_its_parts() -> None:
    text = FEATURES.replace("LAW", r"\sigma^2 I").replace(r", \dots, \sin(w_R x), \cos(w_1 x)", "")
    assert check_answer(text).statements[-1].verdict is None


def test_what_is_needed_of_a_map_is_checked_where_the_map_is_defined() -> None:
    text = r"""We need a map $\phi$ with $\phi(q)^\top \phi(k) = (q^\top k + 1)^2$.

$$\phi(q) = MAP$$"""
    wrong = check_answer(text.replace("MAP", r"\begin{bmatrix} 1 \\ \sqrt{2} q \\ q \odot q \end{bmatrix}")).statements[
        -1
    ]
    assert (wrong.verdict, wrong.line) == ("refuted", 3)
    assert "needed in line 1" in wrong.detail
    right = text.replace("MAP", r"\begin{bmatrix} 1 \\ \sqrt{2} q \\ q \otimes q \end{bmatrix}")
    assert check_answer(right).statements[-1].verdict == "holds"


def test_orders_are_compared_under_what_is_said_about_the_sizes() -> None:
    text = "Let $q^T k$ be a score and $d = 2 R$. The cost is $O(N d M) = O(N R M)$."
    assert check_answer(text).statements[-1].verdict == "holds"
    assert check_answer(text.replace("d = 2 R", "d = R^2")).statements[-1].verdict == "refuted"
    assert check_answer(text.replace("$d = 2 R$", "$d$ a size")).statements[-1].verdict == "inconclusive"
    twice = text.replace("$d = 2 R$", "$d = R^2$ or rather $d = 2 R$")
    assert check_answer(twice).statements[-1].verdict == "inconclusive"


def test_a_correction_ends_what_was_said_before() -> None:
    text = "Define $f(q, k) = (q^T k)^2$.\n\nYou are right, I was wrong.\n\n$$f(q, k) = (q^T k + 1)^2$$"
    assert check_answer(text).statements[-1].verdict == "inconclusive"
    assert check_answer(text.replace("You are right, I was wrong.", "So")).statements[-1].verdict == "refuted"


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        (r"So $2 \cdot 3 = 6 = \weird{5}$.", "inconclusive"),  # a chain holds only if all of its links do
        (r"So $\sqrt{0.003^2} = \sqrt{9 \cdot 10^{-6}} = 0.03$.", "refuted"),
        (r"So $1/(1 - 0.999) = 100$.", "refuted"),  # also if 0.999 was rounded
        (r"So $1/(1 - 0.9) = 9$.", "inconclusive"),  # not if 0.9 was
        (r"With $b = 0.9$ we get $1/(1 - 0.9) = 9$.", "refuted"),  # which the text says it was not
        (r"So $e^{1.5} \approx 10.04$.", "refuted"),
        (r"So $e^{-1/2}/e^{-2} = e^{3/2}$.", "holds"),
        (r"Put $\sigma(x) = \frac{1}{1+e^{-x}}$. So $\sigma(-2) \approx 0.1292$.", "refuted"),
        (r"So $(a - b)^3 = a^3 - 3a^2 b + 3ab^2 + b^3$.", "refuted"),  # an expansion, for all a and b
        (r"So $(a - b)^3 = a^3 - 3a^2 b + 3ab^2 - b^3$.", "holds"),
        (r"We get $(x + y)^2 = x^2 + y^2$.", None),  # perhaps an equation
    ],
)
def test_numbers_and_expansions_are_decided_and_what_may_be_rounded_is_not(text: str, verdict: str | None) -> None:
    assert check_answer(text).statements[-1].verdict == verdict
