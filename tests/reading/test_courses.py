"""Sentences of a course on deep learning, each true and with one error: initialisation, softmax, losses, chance."""

import pytest

from likewise.reading import check_answer

ROWS = (
    r"Let $W \in \mathbb{R}^{m \times n}$ have independent entries $W_{ij} \sim \mathcal{N}(0, \sigma^2)$ and let "
    + (r"$x \in \mathbb{R}^n$. Put $y = Wx$. ")
)
SOFTMAX = r"For $z \in \mathbb{R}^n$ let $p_i = \frac{e^{z_i}}{\sum_j e^{z_j}}$. Then "
SIGMOID = r"Put $\sigma(x) = \frac{1}{1 + e^{-x}}$. Then "
SQUARES = r"Let $J(w) = \frac{1}{2}\|Xw - y\|^2$ with $X \in \mathbb{R}^{n \times d}$, $w \in \mathbb{R}^d$, " + (
    r"$y \in \mathbb{R}^n$. Then "
)


@pytest.mark.parametrize(
    ("before", "true", "false"),
    [
        (ROWS, r"$\mathrm{Var}(y_i) = \sigma^2 \|x\|^2$", r"$\mathrm{Var}(y_i) = \sigma \|x\|^2$"),
        (SOFTMAX, r"$\sum_i p_i = 1$", r"$\sum_i p_i = n$"),
        (SOFTMAX, r"$\max_i z_i \le \log \sum_i e^{z_i}$", r"$\max_i z_i \ge \log \sum_i e^{z_i}$"),
        (SOFTMAX, r"$\mathrm{softmax}(z + 3) = \mathrm{softmax}(z)$", r"$\mathrm{softmax}(3 z) = \mathrm{softmax}(z)$"),
        (SIGMOID, r"$\sigma(-x) = 1 - \sigma(x)$", r"$\sigma(-x) = 1 + \sigma(x)$"),
        (SIGMOID, r"$\sigma'(x) = \sigma(x)(1 - \sigma(x))$", r"$\sigma'(x) = \sigma(x)(1 + \sigma(x))$"),
        (SIGMOID, r"$\frac{d\sigma}{dx} = \sigma(x)\sigma(-x)$", r"$\frac{d\sigma}{dx} = \sigma(x)\sigma(x)$"),
        (SIGMOID, r"$\sigma'(0) = \frac{1}{4}$", r"$\sigma'(0) = \frac{1}{2}$"),
        (SIGMOID, r"$\tanh(x) = 2\sigma(2x) - 1$", r"$\tanh(x) = 2\sigma(x) - 1$"),
        ("", r"$\tanh'(x) = 1 - \tanh^2(x)$", r"$\tanh'(x) = 1 + \tanh^2(x)$"),
        (SQUARES, r"$\nabla_w J(w) = X^\top (Xw - y)$", r"$\nabla_w J(w) = 2X^\top (Xw - y)$"),
        (r"For $z \sim \mathcal{N}(0, 1)$, ", r"$\mathbb{E}[|z|] = \sqrt{2/\pi}$", r"$\mathbb{E}[|z|] = \sqrt{1/\pi}$"),
        (
            r"Let $p \in [0, 1]$ and $\ell(p) = -\log p$. Then ",
            r"$\ell'(p) = -\frac{1}{p}$",
            r"$\ell'(p) = \frac{1}{p}$",
        ),
    ],
)
def test_a_true_sentence_holds_and_its_error_is_refuted(before: str, true: str, false: str) -> None:
    for said, verdict in ((true, "holds"), (false, "refuted")):
        found = check_answer(f"{before}{said}.").statements[-1]
        assert (found.verdict, said) == (verdict, said)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (r"Put $f(x) = x^2 - 4$. We solve $f(x) = 3x$ and get $x = 4$.", "an equation"),
        (r"Put $f(x) = x^2 - 4$. Then $f'(x) = 0$ at the minimum.", "an equation"),
        (r"Let $f(x) = x^2$ and let $f'(x) = x^3$. So $f'(x) = x^3$.", "f' is another function"),
        (r"Let $x \in \mathbb{R}^d$. The share is $\frac{d x}{d y} = 3$.", "d is a size"),
        pytest.param(
            SOFTMAX + r"$\frac{\partial p_i}{\partial z_j} = p_i(\delta_{ij} - p_j)$.",
            "true, not proved",
            marks=pytest.mark.slow,
        ),
        (ROWS + r"With $\sigma^2 = 2/n$ and $\|x\|^2 = n$ we get $\mathrm{Var}(y_i) = 2$.", "true under both"),
        (ROWS.replace("independent ", "") + r"$\mathrm{Var}(y_i) = \sigma \|x\|^2$.", "independence is not said"),
        (r"We get $\sin(x) = \cos(x)$.", "an equation"),
        (
            r"Let $q, k \in \mathbb{R}^D$. The weights are $a_i = \exp(q^T k_i)$, so $a_i = \exp(k_i)$.",
            "rows, not entries",
        ),
    ],
)
def test_what_may_be_true_is_not_refuted(text: str, why: str) -> None:
    assert "refuted" not in [each.verdict for each in check_answer(text).statements], why


def test_a_loss_that_nothing_defines_has_no_derivative() -> None:
    text = r"Let $w \in \mathbb{R}^d$. Then $\nabla_w L = 0$, and $\nabla_w (L + \|w\|^2) = 2w$."
    assert [each.verdict for each in check_answer(text).statements] == [None, None, None]


def test_two_indices_are_a_matrix_and_a_wrong_sign_is_found() -> None:
    found = check_answer(SOFTMAX + r"$\frac{\partial p_i}{\partial z_j} = p_i(\delta_{ij} + p_j)$.").statements[-1]
    assert (found.verdict, found.claim.splitlines()[-1]) == (
        "refuted",
        "assert: grad(p, z) == I(n)*p + outer(p, p)",
    )


NORM = (
    r"For $x \in \mathbb{R}^d$ put $\mu = \frac{1}{d} \sum_{i=1}^d x_i$ and "
    r"$\sigma^2 = \frac{1}{d} \sum_{i=1}^d (x_i - \mu)^2$. With $y_i = \frac{x_i - \mu}{\sigma}$ we get "
)
DROPOUT = r"Let $x \in \mathbb{R}^d$. The mask $m_i \sim \text{Bernoulli}(q)$ gives $y_i = m_i x_i / q$, so "
NUMBERS = "For the first class the loss is "


@pytest.mark.parametrize(
    ("before", "true", "false"),
    [
        (
            NORM,
            r"$\sigma^2 = \frac{1}{d} \sum_{i=1}^d x_i^2 - \mu^2$",
            r"$\sigma^2 = \frac{1}{d} \sum_i x_i^2 + \mu^2$",
        ),
        (NORM, r"$\|y\|^2 = d$", r"$\|y\|^2 = 2d$"),
        (
            "",
            r"If $u \sim U(-a, a)$ then $\mathrm{Var}(u) = a^2/3$",
            r"If $u \sim U(-a, a)$ then $\mathrm{Var}(u) = a^2/6$",
        ),
        (NUMBERS, r"$-\log(0.665) = 0.408$", r"$-\log(0.665) = 0.508$"),
        ("", r"So $\lfloor (32 + 2 - 3)/2 \rfloor + 1 = 16$", r"So $\lfloor (32 + 2 - 3)/2 \rfloor + 1 = 17$"),
        ("", r"So $\sqrt{0.0004} = 0.02$", r"So $\sqrt{0.0004} = 0.04$"),
    ],
)
def test_normalisation_laws_and_logarithms_of_numbers(before: str, true: str, false: str) -> None:
    for said, verdict in ((true, "holds"), (false, "refuted")):
        found = check_answer(f"{before}{said}.", budget=10.0).statements[-1]
        assert (found.verdict, said) == (verdict, said)


def test_a_name_that_is_defined_further_on_is_another_one() -> None:
    text = NORM + r"$\|y\|^2 = d$. A layer is $y = Wx$ with $W \in \mathbb{R}^{m \times d}$."
    found = next(each for each in check_answer(text, budget=10.0).statements if each.source == r"\|y\|^2 = d")
    assert found.verdict == "holds"


def test_a_vector_whose_definition_is_not_read_is_not_any_vector() -> None:
    text = r"Let $x \in \mathbb{R}^d$. Then $y = \weird(x)$, and $\|y\|^2 = d$."
    assert check_answer(text).statements[-1].verdict != "refuted"
