"""What a derivation says of all values, in means and sums, and of what was said before: refuted where it is wrong."""

import pytest

from likewise.reading import check_answer


def verdict(text: str) -> str | None:
    return check_answer(text).statements[-1].verdict


BATCH = r"Let $m = \frac{1}{B} \sum_{i=1}^B x_i$. "


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        (
            r"We get $\cos(a - b) = \cos a \cos b + \sin a \sin b$.",
            r"We get $\cos(a - b) = \cos a \cos b - \sin a \sin b$.",
        ),
        (r"We get $x^2 - 5x + 6 = (x - 2)(x - 3)$.", r"We get $x^2 - 5x + 6 = (x - 2)(x + 3)$."),
        (r"We get $a^4 - b^4 = (a - b)(a + b)(a^2 + b^2)$.", r"We get $a^4 + b^4 = (a - b)(a + b)(a^2 + b^2)$."),
        (r"So $C = N R M + N R M = 2 N R M$.", r"So $C = N R M + N R M = 3 N R M$."),
        (r"Simplifying, $p = 2(q + r) + q = 3q + 2r$.", r"Simplifying, $p = 2(q + r) + q = 3q + r$."),
        (r"We have $\sum_{i=1}^N i = \frac{N(N + 1)}{2}$.", r"We have $\sum_{i=1}^N i = \frac{N(N - 1)}{2}$."),
        (BATCH + r"Then $\sum_{i=1}^B x_i = B m$.", BATCH + r"Then $\sum_{i=1}^B x_i = m$."),
        (
            r"So $\operatorname{Var}(aX + b) = a^2 \operatorname{Var}(X)$.",
            r"So $\operatorname{Var}(aX + b) = a \operatorname{Var}(X)$.",
        ),
        (
            r"For independent $X$, $Y$: $\operatorname{Var}(X - Y) = \operatorname{Var}(X) + \operatorname{Var}(Y)$.",
            r"For independent $X$, $Y$: $\operatorname{Var}(X - Y) = \operatorname{Var}(X) - \operatorname{Var}(Y)$.",
        ),
        (
            r"So $\sigma^2 = \frac{4}{n}$ and $\sigma = \frac{2}{\sqrt{n}}$.",
            r"So $\sigma^2 = \frac{2}{n}$ and $\sigma = \frac{2}{\sqrt{n}}$.",
        ),
        (
            r"A step is $u_{t+1} = u_t - \eta (g_t + c u_t)$, that is $u_{t+1} = (1 - \eta c) u_t - \eta g_t$.",
            r"A step is $u_{t+1} = u_t - \eta (g_t + c u_t)$, that is $u_{t+1} = (1 + \eta c) u_t - \eta g_t$.",
        ),
        (
            r"Let $B \in \mathbb{R}^{m \times r}$, $A \in \mathbb{R}^{r \times n}$. Then $(BA)^\top = A^\top B^\top$.",
            r"Let $B \in \mathbb{R}^{m \times r}$, $A \in \mathbb{R}^{r \times n}$. Then $(BA)^\top = B^\top A^\top$.",
        ),
        (
            r"If $p \in \mathbb{R}$, $\frac{(1 - p) p}{1 - p} = p$.",
            r"If $p \in \mathbb{R}$, $\frac{(1 - p) p}{1 - p} = 2p$.",
        ),
        (r"So $0.8 \cdot 0.8 = 0.64$.", r"So $0.8 \cdot 0.8 = 0.68$."),
    ],
)
def test_what_holds_is_told_from_what_does_not(right: str, wrong: str) -> None:
    assert (verdict(right), verdict(wrong)) == ("holds", "refuted")


@pytest.mark.parametrize(
    "text",
    [
        r"We have $x^2 + y^2 = 2xy$.",  # to be solved
        r"The lines meet where $y = 2x + 1 = x + 3$.",
        r"Equal radii: $r^2 = (h - 2)^2 + k^2 = (h - 4)^2 + k^2$.",
        r"Let $f(x) = 2^{kx} + 9$. We have $f(3) = \frac{1}{3} f(6)$.",
        r"So $\ln e - \ln(e - 1) = 1 - \ln(e - 1)$.",
        r"So $\frac{9 + 1 + 9}{4} = 5$.",  # wrong, or about
        r"With a third each, $0.3 \cdot 0.7 = 0.22$.",  # 1/3 and 2/3
        r"Let $u \in \mathbb{R}^d$ with $\|u\| = 1$.",  # says which u is meant
        r"For unit vectors, $\|u\| = \|v\| = 1$, this is easy.",
        r"Then $\operatorname{Var}(X - Y) = \operatorname{Var}(X) - \operatorname{Var}(Y)$.",  # of what X and Y?
        r"* semi-hard: $\|a - p\|^2 < \|a - n\|^2$",  # says which case is meant
        r"So $C = 2$ $D_r$ in all.",  # one formula in two
    ],
)
def test_what_may_be_meant_otherwise_is_not_refuted(text: str) -> None:
    assert verdict(text) not in ("refuted", "holds")


def test_a_value_at_a_point_is_not_the_value_elsewhere() -> None:
    text = r"Let $\sigma(x) = \frac{1}{1 + e^{-x}}$. At $x = 0$ we have $\sigma(x) = \frac{1}{2}$. "
    assert verdict(text + r"Also $\sigma'(x) = \sigma(x)(1 - \sigma(x))$.") == "holds"
    assert verdict(text + r"Also $\sigma'(x) = \sigma(x)/2$.") == "refuted"


def test_what_stands_under_a_title_reaches_all_sections() -> None:
    text = "# Dropout\n\nLet $m \\sim \\operatorname{Bernoulli}(q)$.\n\n## Mean\n\n"
    text += "We have $\\mathbb{E}[m] = q$.\n\n## Square\n\n"
    assert verdict(text + r"We have $\mathbb{E}[m^2] = q$.") == "holds"
    assert verdict(text + r"We have $\mathbb{E}[m^2] = q^2$.") == "refuted"
