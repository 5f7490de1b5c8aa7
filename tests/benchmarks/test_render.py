"""The page of measurements is what the renderer makes of the committed results."""

import json
import re
from pathlib import Path

import pytest

from benchmarks.render import CAPTIONS, METRIC_REGIONS, PAGE, PAGES, REGIONS, RESULTS, render

EMPTY = "\n".join(f"before\n<!-- {name}: begin -->\n<!-- {name}: end -->\nafter" for name in REGIONS)


def demand(holds: bool | None, note: str = "") -> dict[str, object]:
    numbers = {"bound": 30, "at_least": True, "measured": 31.26, "by_median": None, "unit": "x"}
    return {"promise": "a", "holds": holds, "note": note, **numbers}


def target(what: str, bound: float | None, measured: float, unit: str, *, holds: bool) -> dict[str, object]:
    numbers = {"bound": bound, "at_least": True, "measured": measured, "unit": unit, "by_processor": None}
    return {"what": what, "holds": holds, "note": "", **numbers}


MACHINE = {"cpu": "C", "cores": 2, "threads": 2, "torch": "2", "python": "3", "date": "d"}
TIME = {"form": "Elu", "length": 128, "best_seconds": 0.0012345, "median_seconds": 0.2, "runs": 3}
SPEED = {
    "machine": MACHINE,
    "product_gflops": 123.4,
    "demands": [demand(True), demand(False), demand(None, "why")],
    "times": [
        {"task": "causal", **TIME, "extra_bytes": 3 * 2**20},
        {"task": "causal", **TIME, "length": 256, "extra_bytes": None},
        {"task": "causal", **TIME, "form": "Elu, bfloat16", "extra_bytes": 2**19},
    ],
    "decoding": [{**TIME, "extra_bytes": None}],
    "versions": ["one"],
    "notes": ["it rained"],
}


def point(name: str, width: int | None, error: float, near: int | None = None) -> dict[str, object]:
    return {"data": "normal", "direction": "causal", "near": near, "map": name, "width": width, "error": error}


ERROR = {
    "machine": MACHINE,
    "problem": {"T": 7, "K": 5, "V": 3, "heads": 2},
    "notes": [],
    "points": [
        point("mean of V", None, 0.5),
        point("Taylor", 21, 0.125),
        point("Positive", 16, 1234.5),
        point("Positive", 32, 0.0666),
        point("Positive", 16, 0.25, near=64),
        point("Positive", 32, 0.2, near=64),
    ],
}


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_the_pages_are_what_the_results_say(path: Path) -> None:
    page = path.read_text()
    assert render(page, regions=PAGES[path]) == page, "run: python -m benchmarks.render"


def test_a_number_edited_by_hand_is_found() -> None:
    page = PAGE.read_text()
    number = re.search(r"\| (0\.\d+) \|", page)
    assert number is not None
    edited = page[: number.start(1)] + "0.1234567" + page[number.end(1) :]
    assert render(edited) == page != edited


def test_what_was_not_measured_says_so(tmp_path: Path) -> None:
    assert render(EMPTY, tmp_path).count("Not measured yet.") == len(REGIONS)


def test_text_outside_the_regions_is_kept(tmp_path: Path) -> None:
    assert render(EMPTY, tmp_path).count("before\n") == len(REGIONS)
    assert render(EMPTY, tmp_path).count("\nafter") == len(REGIONS)


@pytest.mark.parametrize("page", ["", EMPTY + EMPTY])
def test_a_region_that_is_not_there_once_is_refused(page: str) -> None:
    with pytest.raises(ValueError, match=r"render: page must have one region <!-- attention_error: begin -->"):
        render(page)


SPEED_LINES = [
    "| a | >= 30x | 31.3x |  | met |",
    "| a | >= 30x | 31.3x |  | **missed** |",
    "| a | >= 30x | 31.3x |  | not judged: why |",
    "| 128 | 1.23 (200) |",
    "| 128 | 3.0 |",
    "| Elu, bfloat16 | causal | 128 | 1.23 (200) | 0.5 |",
    "Note: it rained",
]
LIMITS = {
    "machine": MACHINE,
    "length": 9,
    "rate": 4e9,
    "work": 10**6,
    "limits": [
        {"promise": "a", "needed": 0.002, "ours": 0.001, "floor": 0.0005},
        {"promise": "b", "needed": 0.002, "ours": 0.003, "floor": 0.0015},
        {"promise": "c", "needed": 0.002, "ours": 0.003, "floor": 0.0025},
    ],
    "arrangements": {"by hand": 0.001},
    "profile": [["bmm", 0.25]],
    "notes": ["it rained"],
}
LIMITS_LINES = [
    "| a | 2.00 | 1.00 | 0.500 | kept |",
    "| b | 2.00 | 3.00 | 1.50 | not excluded |",
    "| c | 2.00 | 3.00 | 2.50 | out of reach |",
    "| by hand | 1.00 | 25.0% |",
    "| bmm | 25.0% |",
    "Note: it rained",
]
TABLE = {
    "machine": MACHINE | {"load": 1.25},
    "kernel": "in use",
    "rows": [
        target("a", 60, 61.25, "x", holds=True) | {"note": "5 ms", "by_processor": 70.1},
        target("b", 15, 16.0, " us", holds=False) | {"at_least": False},
        target("c", None, 2.0, "x", holds=True),
    ],
    "profile": [{"what": "a step", "passed": 0.0123, "processor": 0.02, "system": 0.0, "faults": 7}],
}
TABLE_LINES = [
    "C, 2 cores, 2 threads, torch 2, Python 3, d. Kernel: in use. Load when it began: 1.2.",
    "| a | >= 60x | 61.2x | 70.1x | 5 ms | met |",
    "| b | <= 15 us | 16 us |  |  | **missed** |",
    "| c |  | 2x |  |  |  |",
    "| a step | 0.0123 | 0.02 | 0 | 7 |",
]
ERROR_LINES = [
    "| map \\ F | 16 | 32 |",
    "| mean of V | 0.5 | 0.5 |",
    "| Taylor, F = 21 | 0.12 | 0.12 |",
    "| Positive | 1234 | 0.067 |",
    "| Positive, exact within 64 | 0.25 | 0.2 |",
]


@pytest.mark.parametrize(
    ("name", "facts", "lines"),
    [
        ("attention_speed", SPEED, SPEED_LINES),
        ("attention_error", ERROR, ERROR_LINES),
        ("attention_limits", LIMITS, LIMITS_LINES),
        ("attention_table", TABLE, TABLE_LINES),
    ],
)
def test_results_are_rendered(name: str, facts: dict[str, object], lines: list[str], tmp_path: Path) -> None:
    (tmp_path / f"{name}.json").write_text(json.dumps(facts))
    found = render(EMPTY, tmp_path).splitlines()
    assert [line for line in lines if line not in found] == []


def test_mining_is_rendered(tmp_path: Path) -> None:
    facts = {
        "machine": MACHINE,
        "problem": {"E": 5, "faces": 3, "margin": 0.2, "dtype": "float32"},
        "demands": [demand(True)],
        "times": [{"task": "mine", **TIME, "extra_bytes": 2**20}],
        "versions": ["one"],
        "notes": ["it rained"],
    }
    (tmp_path / "mining.json").write_text(json.dumps(facts))
    rates = {"machine": MACHINE, "macs": {"Elu": 10**9}, "chosen": 16, "versions": ["one"], "notes": ["it snowed"]}
    times = [{"task": "last", **TIME, "best_seconds": 0.5, "extra_bytes": None}]
    (tmp_path / "embedding.json").write_text(json.dumps({**rates, "demands": [demand(True)], "times": times}))
    page = "".join(f"<!-- {name}: begin --><!-- {name}: end -->" for name in METRIC_REGIONS)
    found = render(page, tmp_path, METRIC_REGIONS).splitlines()
    lines = [SPEED_LINES[0], "| Elu | mine | 128 | 1.23 (200) | 3 | 1.0 |", "Note: it rained"]
    lines += ["| Elu, last | 256 |", "Note: it snowed"]  # 128 images of a thousand million in half a second
    assert [line for line in lines if line not in found] == []


def test_every_region_has_its_picture_when_it_has_its_numbers() -> None:
    for name in CAPTIONS:
        measured = (RESULTS / f"{name}.json").exists()
        assert (RESULTS / f"{name}.png").exists() == measured
        assert (f"results/{name}.png" in PAGE.read_text()) == measured
