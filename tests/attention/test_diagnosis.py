"""What a diagnosis says: its advice, its tables and its refusals, word by word."""

import math
import re
from collections.abc import Callable
from typing import Any

import pytest
import torch

from likewise.attention import Elu, Positive, Taylor, diagnose
from likewise.attention.diagnose import Measurement, advise
from tests.attention.drawing import Inputs, Sizes, draw, seeded


def measurement(name: str, error: float, macs: int, negative: float = 0.0) -> Measurement:
    return Measurement(name, 64, None, error, None, None, negative, macs)


@pytest.mark.parametrize(
    ("measurements", "mean", "text"),
    [
        (
            [measurement("dear", 0.01, 300), measurement("cheap", 0.05, 200), measurement("poor", 0.2, 100)],
            0.5,
            "cheap: error 0.05, 200 MACs per token, softmax 250",
        ),
        (
            [measurement("dear", 0.01, 300)],
            0.5,
            "dear: error 0.01, 300 MACs per token, softmax 250, which is less at this length",
        ),
        (
            [measurement("signed", 0.01, 100, negative=0.01), measurement("safe", 0.2, 200)],
            0.5,
            "do not linearise this head: the best map, safe, has error 0.2, wanted 0.1",
        ),
        (
            [measurement("flat", 0.05, 100)],
            0.05,
            "do not linearise this head: the best map, flat, has error 0.05, the mean of V 0.05",
        ),
        (
            [measurement("broken", math.inf, 100)],
            0.5,
            "do not linearise this head: the best map, broken, has error inf, the mean of V 0.5",
        ),
    ],
)
def test_advice_is_the_cheapest_that_will_do(measurements: list[Measurement], mean: float, text: str) -> None:
    advice = advise(measurements, mean, wanted_error=0.1, softmax_macs=250)
    assert advice.text == text
    assert advice.map == (None if text.startswith("do not") else text.partition(":")[0])


def test_a_diagnosis_reads_as_a_table() -> None:
    found = diagnose(
        *draw(Sizes(T=11, S=11), seeded(3)), {"elu": Elu(), "one": Positive(5, num_features=7)}, exact_within=3
    )
    lines = str(found).splitlines()
    assert repr(found) == str(found)
    assert lines[0].startswith("relative squared error against softmax, wanted 0.1; both directions, 11 rows, nothing")
    assert lines[1].split()[:3] == ["head", "mean", "of"]
    assert len(lines) == 2 + 6
    head, baselines, heading, elu, alone, near = str(found.heads[1]).splitlines()
    assert head == f"head 1: {found.heads[1].advice.text}"
    assert baselines.startswith("mean of V 0.")
    assert heading.split()[:3] == ["map", "window", "error"]
    assert (elu.split()[0], alone.split()[0], near.split()[:2]) == ("elu", "one", ["one", "3"])


MESSAGES: dict[str, tuple[Callable[[Inputs], tuple[Any, ...]], dict[str, Any], str]] = {
    "q without batch": (
        lambda x: (x[0][0], x[1], x[2]),
        {},
        "q must have 4 dimensions (batch, heads, positions, width); got (6, 7, 5).",
    ),
    "no positions": (lambda x: (x[0][:, :, :0], x[1], x[2]), {}, "q must have at least one entry; got (2, 6, 0, 5)."),
    "no values": (lambda x: (x[0], x[1], x[2][..., :0]), {}, "v must have at least one entry; got (2, 3, 11, 0)."),
    "nan": (
        lambda x: (x[0], x[1].index_fill(2, torch.tensor([4]), torch.nan), x[2]),
        {},
        "k must be finite where it is not masked; got 30 entries that are inf or nan.",
    ),
    "wanted error": (lambda x: x, {"wanted_error": 0.0}, "wanted_error must be a positive number; got 0.0."),
    "rows": (lambda x: x, {"rows": 0}, "rows must be a whole number of at least 1; got 0."),
    "window": (lambda x: x, {"exact_within": 0}, "exact_within must be a whole number of at least 1; got 0."),
    "window across": (
        lambda x: x,
        {"exact_within": 3},
        "exact_within must come with causal=True or with as many queries as keys, 11; got 7.",
    ),
    "no maps": (lambda x: (*x, {}), {}, "maps must name at least one map; got {}."),
    "maps without names": (lambda x: (*x, [7]), {}, "maps must name at least one map; got [7]."),
    "no map": (
        lambda x: (*x, {"elu": 7}),
        {},
        "features must be a feature map; got 7. For example features=Elu().",
    ),
    "two scales": (
        lambda x: (*x, {"one": Positive(5, scale=1.0), "other": Taylor(5, scale=0.5), "elu": Elu()}),
        {},
        "maps must stand for softmax of one scale; got 0.5 and 1.0.",
    ),
    "mask": (
        lambda x: x,
        {"mask": torch.ones(2, 7, dtype=torch.bool)},
        "mask must have shape (B, S) = (2, 11); got (2, 7).",
    ),
    "all masked": (
        lambda x: x,
        {"mask": torch.zeros(2, 11, dtype=torch.bool)},
        "q must have a row that sees a key; got none.",
    ),
}


@pytest.mark.usefixtures("without_shape_checks")
@pytest.mark.parametrize("case", MESSAGES)
def test_wrong_input_is_refused(case: str) -> None:
    change, options, message = MESSAGES[case]
    with pytest.raises(ValueError, match=f"^diagnose: {re.escape(message)}$"):
        diagnose(*change(draw(Sizes(), seeded(3))), **options)
