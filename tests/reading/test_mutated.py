"""Mutated texts: nothing crashes, hangs or is executed, however a formula is torn."""

import random
import time

import pytest

from likewise.reading import read_answer
from likewise.reading.latex import NESTING
from studies.reading_torn import SLOWEST, passages, torn


@pytest.mark.parametrize(
    "seed", [pytest.param(0), *(pytest.param(seed, marks=pytest.mark.full) for seed in range(1, 4))]
)
def test_torn_texts_are_read_without_a_crash(seed: int) -> None:
    draw = random.Random(seed)
    bases = passages()
    for _ in range(200 if seed == 0 else 1_000):
        text = torn(draw, draw.choice(bases))
        started = time.process_time()
        answer = read_answer(text)
        assert time.process_time() - started < SLOWEST, text
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
        r"\frac{" * 25 + "1 = 1",  # open braces, which pylatexenc tries again in every way
        r"\begin{aligned}{" * 20 + "1 = 1",
    ],
)
def test_deep_long_and_bare_formulas_are_refused_at_once(source: str) -> None:
    started = time.process_time()
    read_answer(f"Let $x \\in \\mathbb{{R}}^d$.\n\n$${source}$$")
    assert time.process_time() - started < SLOWEST
