"""What is written says everything, and comes back."""

import csv
import json
import re
from pathlib import Path

import pytest
import torch

from likewise.difficulty import prediction_depth
from likewise.difficulty.export import depth_csv, depth_json, read_depth, write_depth
from likewise.difficulty.results import PredictionDepth
from tests.difficulty.problems import TEST, TRAIN, examples, fitted


@pytest.fixture(scope="module")
def found() -> PredictionDepth:
    return prediction_depth(fitted(), examples(TRAIN, 5), examples(TEST, 6), k=5, sweep_ks=(1, 3), sample=9)


def test_json_comes_back(found: PredictionDepth, tmp_path: Path) -> None:
    write_depth(found, tmp_path / "depth.json")
    again = read_depth(tmp_path / "depth.json")
    assert depth_json(again) == depth_json(found)
    assert again.plan == found.plan
    assert again.reads == found.reads
    assert torch.equal(again.train.depth, found.train.depth)
    assert torch.equal(again.curves["test"].accuracy, found.curves["test"].accuracy)
    alone = prediction_depth(fitted(), examples(TRAIN, 5), None, k=5, train_rows=())
    write_depth(alone, tmp_path / "alone.json")
    assert read_depth(tmp_path / "alone.json").test is None


def test_json_is_plain_and_says_how_it_came_about(found: PredictionDepth) -> None:
    def constant(name: str) -> None:
        raise AssertionError(name)

    facts = json.loads(depth_json(found), parse_constant=constant)  # no NaN: others could not read it
    assert facts["fingerprint"] == found.fingerprint
    assert facts["settings"]["k"] == 5
    assert facts["settings"]["self"] == "excluded by index"
    assert set(facts["versions"]) == {"likewise", "torch", "numpy", "python"}
    assert facts["sets"]["train"]["counts"] == found.train.counts.tolist()


def test_csv_has_a_line_for_each_example(found: PredictionDepth) -> None:
    lines = depth_csv(found).splitlines()
    notes = {line[2:].partition(": ")[0]: json.loads(line.partition(": ")[2]) for line in lines if line[0] == "#"}
    assert notes["fingerprint"] == found.fingerprint
    assert notes["layers"] == list(found.layers)
    rows = list(csv.DictReader(line for line in lines if line[0] != "#"))
    assert len(rows) == TRAIN + TEST
    assert found.test is not None
    for offset, which, each in [(0, "train", found.train), (TRAIN, "test", found.test)]:
        for number in range(len(each)):
            row = rows[offset + number]
            assert row == {
                "set": which,
                "row": str(number),
                "label": str(each.labels[number].item()),
                "predicted": str(each.predicted[number].item()),
                "correct": str(int(each.labels[number] == each.predicted[number])),
                "depth": str(each.depth[number].item()),
                "undefined": str(int(each.depth[number] == 6)),
                "depth_k1": str(each.sweep[1][number].item()),
                "depth_k3": str(each.sweep[3][number].item()),
            }


def test_csv_goes_to_a_file(found: PredictionDepth, tmp_path: Path) -> None:
    write_depth(found, tmp_path / "depth.csv")
    assert (tmp_path / "depth.csv").read_text() == depth_csv(found)
    assert [path.name for path in tmp_path.iterdir()] == ["depth.csv"]


def test_wrong_files_are_refused(found: PredictionDepth, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=re.escape("write_depth: path must end in .csv or .json; got 'depth.txt'.")):
        write_depth(found, "depth.txt")
    for text in ("{}", "[1]", "{"):
        (tmp_path / "x.json").write_text(text)
        with pytest.raises(ValueError, match="read_depth: path must be a JSON of write_depth; got "):
            read_depth(tmp_path / "x.json")
