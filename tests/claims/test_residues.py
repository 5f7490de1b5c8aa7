"""Congruences: proved by all residues, and never where one residue fails or a name stands outside of a remainder."""

import random

import pytest

from likewise.claims import check
from likewise.claims.algebra.residues import decide
from likewise.claims.language.parser import parse

PROVED = [
    "sizes: n | assert: mod(n^3 - n, 6) == 0",
    "given: n in Z | assert: mod(n^5 - n, 30) == 0",
    "given: a, b in Z | assert: mod(a*b*(a^2 - b^2), 6) == 0",
    "given: n in Z | assert: mod(n^2, 8) <= 4",
    "given: n in Z | assert: 0 <= mod(n^2, 3) < 2",
    "given: n in Z | assert: mod(n, 4)^2 != 5",
    "given: a in Z | assume: a >= 7 | assert: mod(a^2 + a, 2) == 0",
    "sizes: n, m | assert: n^2 != 3*m^2 + 2",
    "given: x, y in Z | assert: x^2 + y^2 != 4*x*y + 3 + 4*y",
    "sizes: N | assert: mod(2^N, 7) <= 4",
    "sizes: N | assert: mod(10^N, 9) == 1",
    "sizes: N | assert: mod(6^N + N^2, 4) != 2",
    "sizes: N | assume: mod(N, 3) == 0 | assert: mod(2^N, 7) == 1",
    "given: a, b in Z | assume: mod(a, 2) == 0; mod(b, 3) == 0 | assert: mod(a*b, 6) == 0",
    "given: a in Z | assume: a > 3; mod(a, 4) == 3 | assert: mod(a^2, 8) == 1",
]
NOT_PROVED = [
    "sizes: n | assert: mod(n^3 - n, 12) == 0",
    "given: n in Z | assert: mod(n^2, 8) < 4",
    "given: n in R | assert: mod(n^2 - n, 2) == 0",
    "given: n in Z | assert: mod(n/2, 2) != 3/2",
    "given: n in Z | assert: mod(n, 4) == n",
    "given: n in Z | assert: mod(n^2 + n, -2) == 0",
    "sizes: n, m | assert: n^2 != 61*m^2 + 1",
    "sizes: n, d = 2*n | assert: mod(d, 2) == 0",
    "sizes: n, m | assert: n^2 != m^2",
    "sizes: N | assert: mod(2^N, 7) < 4",
    "sizes: N | assert: mod(2^N, 64) == 0",
    "sizes: N | assert: mod(6^N + N^2, 4) != 3",
    "sizes: N | assert: mod(2^N, 4) <= 1",
    "given: n in Z | assert: mod(2^n, 7) <= 4",
    "sizes: N | assert: 2^N != 3*N^2 + 2",
    "given: a, b in Z | assume: mod(a, 2) == 0; mod(b, 3) == 0 | assert: mod(a*b, 12) == 0",
]


@pytest.mark.parametrize("text", PROVED)
def test_what_is_true_of_all_residues_is_proved_and_the_judge_agrees(text: str) -> None:
    found = decide(parse(text.replace(" | ", "\n")))
    assert found is not None
    assert found.verdict == "holds"
    assert check(text.replace(" | ", "\n"), seed=0).verdict == "holds"


@pytest.mark.parametrize("text", NOT_PROVED)
def test_what_fails_for_some_residue_or_is_no_congruence_is_not_proved(text: str) -> None:
    assert decide(parse(text.replace(" | ", "\n"))) is None


def test_powers_are_tried_until_they_repeat() -> None:
    draw, proved = random.Random(1), 0
    for _ in range(300):
        base, m, r = draw.randint(-5, 12), draw.choice((2, 3, 4, 6, 7, 8, 12, 16)), draw.randint(0, 11)
        found = decide(parse(f"sizes: N\nassert: mod(({base})^N + N, {m}) != {r}"))
        truth = all((base**n + n) % m != r for n in range(1, 400))
        assert truth or found is None
        proved += found is not None
    assert proved > 30


def test_a_proof_is_true_of_large_and_negative_numbers() -> None:
    draw, proved = random.Random(0), 0
    for _ in range(400):
        a, b, c = (draw.randint(-3, 3) for _ in range(3))
        m, r = draw.randint(2, 6), draw.randint(0, 3)
        found = decide(parse(f"given: n in Z\nassert: mod({a}*n^3 + {b}*n^2 + ({c})*n, {m}) != {r}"))
        numbers = [draw.randint(-(10**9), 10**9) for _ in range(60)]
        truth = all((a * n**3 + b * n**2 + c * n) % m != r for n in numbers)
        assert truth is (found is not None)
        proved += truth
    assert 50 < proved < 350
