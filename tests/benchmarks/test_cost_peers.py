"""The table of docs/cost.md is the one that was measured, and what it says of torch's counter is still so."""

import json

import pytest

from benchmarks.cost_peers import PATH, by_torch, table
from benchmarks.cost_problem import PROBLEMS
from likewise.cost import cost
from tests.house.guards import ROOT

FACTS = json.loads(PATH.read_text())


def test_the_page_shows_what_was_measured() -> None:
    assert table(FACTS) in (ROOT / "docs/cost.md").read_text()


def test_what_differs_is_bold_and_what_is_missing_a_dash() -> None:
    row = {"program": "p", "likewise": 1000, "torch_meta": 1000, "torch_cpu": 0, "fvcore": None}
    shown = table({"torch": "2", "fvcore": "1", "rows": [row, {**row, "fvcore": "IndexError"}]}).splitlines()
    assert shown[2:4] == ["| p | 1,000 | 1,000 | **0** | — |", "| p | 1,000 | 1,000 | **0** | **IndexError** |"]


@pytest.mark.parametrize("name", ["attention, one call", "multi-head layer", "random features", "multi-query step"])
def test_counts_are_still_those_of_the_table(name: str) -> None:
    module, inputs, by_hand = PROBLEMS[name]()
    [row] = [row for row in FACTS["rows"] if row["program"] == name]
    assert cost(module, *inputs).macs == by_hand == row["likewise"]
    assert by_torch(module, inputs, "meta") == row["torch_meta"]
