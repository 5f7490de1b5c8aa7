"""Mutated texts: nothing crashes, hangs or is executed, however a formula is torn."""

import random
import time

import pytest

from likewise.reading import read_answer
from likewise.reading.latex import NESTING

PIECES = [
    *(
        r"\frac",
        r"\sum_{j=1}^N",
        r"\sqrt",
        "{",
        "}",
        "$",
        "$$",
        r"\[",
        r"\]",
        r"\(",
        r"\)",
        r"\begin{aligned}",
        "_",
        "^",
        "|",
    ),
    *(
        r"\end{aligned}",
        r"\\",
        "&",
        r"\left(",
        r"\right)",
        r"\text{if}",
        r"\mathbb{R}^{N \times D}",
        "= 1",
        r"\in",
        "'",
    ),
    *(
        r"\phi(K_j)^T",
        "V_j",
        r"S_{i-1}",
        r"\sigma'(x)",
        'einsum("ab,bc->ac", x, y)',
        "```",
        "\n\n",
        "# A\n",
        "\0",
        "é",
        "$5",
    ),
    *(
        r"\boxed{",
        r"\pmod",
        r"O(N^2 D)",
        r"\sim \mathcal{N}(0, I)",
        r"\ldots",
        "x_{i",
        "12,345",
        "%",
        "!",
        "1/0",
        "9^{9^9}",
    ),
]
TEXT = r"""# Layers

Let $x \in \mathbb{R}^d$ and $\mu = \frac{1}{d} \sum_{i=1}^d x_i$. Then $\|x - \mu\|^2 = \sum_i x_i^2 - d\mu^2$.

$$V'_i = \frac{\sum_{j=1}^N \text{sim}(Q_i, K_j) V_j}{\sum_{j=1}^N \text{sim}(Q_i, K_j)}$$

Softmax attention costs $O(N^2 D)$; with $p = 0.2$ we get $0.2/0.8 = 0.25$ and $\sigma(x) = \frac{1}{1+e^{-x}}$.
"""


def mutated(draw: random.Random) -> str:
    """A text with pieces put in, taken out, doubled and exchanged."""
    text = TEXT
    for _ in range(draw.randint(1, 8)):
        place, end = sorted(draw.choices(range(len(text) + 1), k=2))
        end = min(end, place + 30)
        way = draw.randrange(4)
        if way == 0:
            text = text[:place] + draw.choice(PIECES) + text[place:]
        elif way == 1:
            text = text[:place] + text[end:]
        elif way == 2:
            text = text[:end] + text[place:end] * draw.randint(1, 5) + text[end:]
        else:
            text = text[:place] + draw.choice(PIECES) + text[end:]
    return text


@pytest.mark.parametrize(
    "seed", [pytest.param(0), *(pytest.param(seed, marks=pytest.mark.full) for seed in range(1, 4))]
)
def test_torn_texts_are_read_without_a_crash(seed: int) -> None:
    draw = random.Random(seed)
    for _ in range(60 if seed == 0 else 1_000):
        text = mutated(draw)
        started = time.process_time()
        answer = read_answer(text)
        assert time.process_time() - started < 2, text
        assert all(1 <= each.line <= text.count("\n") + 1 for each in answer.statements)


@pytest.mark.parametrize(
    "source",
    [
        "{" * 5_000 + "}" * 5_000,
        r"\frac" * 500,
        r"\sqrt{" * 200 + "1" + "}" * 200,
        "(" * (NESTING - 1) + "1" + ")" * (NESTING - 1) + " = 1",
        r"\sum_{i=1}^{n} " * 30 + "x_i = 1",
        "x^" * 300 + "2 = 1",
        "2" + "^2" * 300 + " = 1",
        "9^{9^{9^9}} = 1",
        r"\frac{d}{dx}" * 40 + "x = 1",
        r"\phi(" * 30 + "K_j" + ")" * 30 + r" = \sum_j \phi(K_j)",
        "1" * 5_000 + " = 2",
        "f'" + "'" * 2_000 + "(x) = 1",
        "-" * 3_000 + "1 = 1",
    ],
)
def test_deep_long_and_bare_formulas_are_refused_at_once(source: str) -> None:
    started = time.process_time()
    read_answer(f"Let $x \\in \\mathbb{{R}}^d$.\n\n$${source}$$")
    assert time.process_time() - started < 2
