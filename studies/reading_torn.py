r"""Torn texts: pieces of answers with LaTeX put in, taken out, doubled, nested deeply and left bare.

`python -m studies.reading torn 100000` reads them and reports the slowest text and the memory; tests read a few.
"""

import random
import resource
import time
from pathlib import Path

from likewise.reading import read_answer

ANSWERS = Path(__file__).with_name("sets") / "answers"
SLOWEST = 2.0  # seconds for one formula; a torn text has several and must stay below, too
TEXT = r"""# Layers

Let $x \in \mathbb{R}^d$ and $\mu = \frac{1}{d} \sum_{i=1}^d x_i$. Then $\|x - \mu\|^2 = \sum_i x_i^2 - d\mu^2$.

$$V'_i = \frac{\sum_{j=1}^N \text{sim}(Q_i, K_j) V_j}{\sum_{j=1}^N \text{sim}(Q_i, K_j)}$$

Softmax attention costs $O(N^2 D)$; with $p = 0.2$ we get $0.2/0.8 = 0.25$ and $\sigma(x) = \frac{1}{1+e^{-x}}$.
"""
SIGNS = ["{", "}", "$", "$$", r"\[", r"\]", r"\(", r"\)", "_", "^", "|", r"\\", "&", "'", '"', "!", "%", "~", "#", "\t"]
BARE = [r"\frac", r"\sqrt", r"\sum", r"\binom", r"\text", r"\boxed", r"\mathbb", r"\operatorname", r"\left", r"\right"]
BARE += [r"\begin", r"\end", r"\nabla", r"\partial", r"\pmod", r"\underbrace", r"\hat", r"\prod", r"\lim", r"\int"]
PIECES = [
    *(r"\frac{1}{", r"\sum_{j=1}^N", r"\sqrt{", r"\begin{aligned}", r"\end{aligned}", r"\begin{bmatrix}", r"\boxed{"),
    *(r"\left(", r"\right)", r"\text{if}", r"\mathbb{R}^{N \times D}", "= 1", r"\in", r"\phi(K_j)^T", "V_j"),
    *(r"S_{i-1}", r"\sigma'(x)", 'einsum("ab,bc->ac", x, y)', "```", "\n\n", "# A\n", "\0", "é", "$5", "∑", "²"),
    *(r"O(N^2 D)", r"\sim \mathcal{N}(0, I)", r"\ldots", "x_{i", "12,345", "1/0", "9^{9^9}", "9^{9^{9^9}}", "10^{400}"),
    *(
        r"\mathbb{E}[",
        r"\operatorname{Var}(",
        r"\frac{\partial L}{\partial",
        "99999999!",
        "nn.Linear(3, 4)",
        "x.view(2, -1)",
    ),
]
DEEP = [
    "{",
    "(",
    "[",
    r"\left(",
    r"\frac{",
    r"\sqrt{",
    "x^{",
    "x_{",
    r"\text{",
    "f(",
    "-",
    "2^",
    "'",
    "!",
    r"\frac",
    "|",
]


def passages() -> list[str]:
    """Paragraphs of the labelled answers, two at a time."""
    found = [TEXT]
    for path in sorted(ANSWERS.glob("*.md")):
        paragraphs = path.read_text(encoding="utf-8").split("\n\n")
        found += ["\n\n".join(paragraphs[place : place + 2]) for place in range(0, len(paragraphs), 2)]
    return found


def torn(draw: random.Random, text: str) -> str:
    """A text with pieces put in, taken out, doubled and exchanged."""
    for _ in range(draw.randint(1, 8)):
        place, end = sorted(draw.choices(range(len(text) + 1), k=2))
        end = min(end, place + 30)
        way = draw.randrange(8)
        if way < 2:
            text = text[:place] + draw.choice(PIECES) + text[place:]
        elif way == 2:
            text = text[:place] + text[end:]
        elif way == 3:
            text = text[:end] + text[place:end] * draw.randint(1, 5) + text[end:]
        elif way == 4:
            text = text[:place] + draw.choice(PIECES) + text[end:]
        elif way == 5:
            text = text[:place] + draw.choice(SIGNS) + text[end if draw.random() < 0.5 else place :]
        elif way == 6:
            text = text[:place] + draw.choice(BARE) * draw.choice((1, 1, 1, 2, 40)) + text[place:]
        else:
            text = text[:place] + draw.choice(DEEP) * draw.choice((3, 30, 300)) + text[place:]
    return text


def study(count: int, seed: int) -> dict:
    """Read so many torn texts; a crash ends the study with the text that caused it."""
    draw = random.Random(seed)
    bases = passages()
    slowest, slow, statements, formulas = 0.0, 0, 0, 0
    started, before = time.perf_counter(), _megabytes()
    for number in range(count):
        text = torn(draw, draw.choice(bases))
        begun = time.process_time()
        try:
            answer = read_answer(text)
        except Exception:
            print(f"text {number}: {text!r}")
            raise
        took = time.process_time() - begun
        if took > SLOWEST:
            print(f"text {number}, {took:.2f} s: {text!r}")
        slowest, slow = max(slowest, took), slow + (took > SLOWEST)
        statements += len(answer.statements)
        formulas += answer.formulas
        if number == count // 10:
            before = _megabytes()  # by then everything is loaded
    counts = {
        "texts": count,
        "seed": seed,
        "formulas": formulas,
        "statements": statements,
        "crashes": 0,
        f"texts past {SLOWEST:g} s": slow,
        "slowest text, seconds": round(slowest, 3),
        "memory after a tenth, MB": before,
        "memory at the end, MB": _megabytes(),
        "seconds": round(time.perf_counter() - started, 1),
    }
    return {"counts": counts}


def _megabytes() -> int:
    """The most memory that the process has had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
