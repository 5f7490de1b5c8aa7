"""Orders about programs, and calls of einsum: which program, which quantity, which shapes; else nothing is claimed."""

import pytest

from likewise.reading import check_answer, read_answer

TABLE = r"""| Method | Time complexity | Per query |
|---|---|---|
| Softmax attention | $O(N^2 D)$ | $O(N D)$ |
| Our method | $O(N D)$ | $O(D)$ |
"""


def claims(text: str) -> list[str]:
    return [each.claim for each in read_answer(text).statements if each.claim]


@pytest.mark.parametrize(
    "text",
    [
        r"Softmax attention costs $O(N^2 D)$.",
        "For softmax attention we count products.\n\nTime complexity: $O(N^2 D)$",
        "Total computational cost of softmax attention:\n\n$$O(N^2 D)$$",
        TABLE,
    ],
)
def test_an_order_is_about_the_program_that_is_named(text: str) -> None:
    assert claims(text) == ["sizes: N, D, M = D\nof: attention.softmax\nassert: cost in O(N^2*D)"]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (r"Time complexity: $O(N^2 D)$", "no program"),
        ("Softmax attention and random features.\n\nTime complexity: $O(N^2 D)$", "two programs"),
        (r"The numerator of softmax attention costs $O(N D)$.", "a part"),
        (r"Softmax attention costs $O(N D)$ if tiles are kept.", "a condition"),
        (r"FlashAttention, unlike softmax attention, takes $O(N)$ memory.", "another program"),
        (r"Is it true that softmax attention costs $O(N)$?", "a question"),
        (r"Let $d = 2D$. Softmax attention costs $O(N^2 d)$.", "d beside D"),
    ],
)
def test_what_is_about_no_program_of_the_list_is_no_claim(text: str, why: str) -> None:
    assert not [claim for claim in claims(text) if "of:" in claim], why


@pytest.mark.slow
def test_a_cost_without_the_projection_is_refuted() -> None:
    text = "We use random Fourier features.\n\nSo total cost:\n\n$$O(N R M)$$"
    assert check_answer(text).statements[-1].verdict == "refuted"
    assert check_answer(text.replace("R M", "R (D + M)")).statements[-1].verdict == "holds"


EINSUM = (
    '`W_q` has shape `[h, q, d]`.\n\nSo `torch.einsum("bd,hdq->bhq", x, W_q)`:\n\n- $x: [b, d]$\n- $W_q: [h, d, q]$\n'
)


def test_a_shape_that_does_not_fit_the_call_is_refuted_at_the_line_that_states_it() -> None:
    found = [(each.line, each.verdict) for each in check_answer(EINSUM).statements if "einsum" in each.claim]
    assert sorted(found) == [(1, "refuted"), (3, "holds")]


def test_a_call_without_shapes_is_left_alone() -> None:
    assert not claims(EINSUM.replace("- $x: [b, d]$", ""))
