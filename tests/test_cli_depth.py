"""`likewise depth` finds the depths that the library finds, says what they lack, and writes one page."""

import json
import re
from pathlib import Path

import pytest
import torch

from likewise import cli
from likewise.data import Examples, open_halves
from likewise.difficulty import labelled, prediction_depth
from likewise.difficulty.export import read_depth
from likewise.networks import load_classifier
from likewise.training import TrainingPlan, fit
from tests.data.drawing import people

MODULE = """
import torch
from likewise.data import Preparation

def plain():
    return torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(192, 4))

def prepared():
    return plain(), Preparation((8, 8), 3, 0.0, 1.0)

def number():
    return 3
"""


def run(*arguments: object) -> int:
    with pytest.raises(SystemExit) as stopped:
        cli.main(["depth", *map(str, arguments)])
    assert isinstance(stopped.value.code, int)
    return stopped.value.code


def trained(some: Examples, out: Path, *, steps: int, seed: int = 0) -> Path:
    plan = TrainingPlan(
        network="resnet8",
        objective="classifier",
        steps=steps,
        identities=8,
        faces=4,
        random=0,
        augment=False,
        seed=seed,
    )
    fit(some, plan, out, snapshots=(1,))
    return out


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return people(tmp_path_factory.mktemp("data") / "four", {"Ann": 25, "Bo": 20, "Cy": 15, "Di": 10}, size=(8, 8))


@pytest.fixture(scope="module")
def models(data: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Two folds and a second seed of the first, none of them converged: a test has no time for that."""
    place = tmp_path_factory.mktemp("models")
    folds = [open_halves(data, held_out=0.2, fold=fold).train for fold in (0, 1)]
    return {
        "first": trained(folds[0], place / "first.safetensors", steps=6),
        "early": place / "first.step-1.safetensors",
        "seed": trained(folds[0], place / "seed.safetensors", steps=3, seed=1),
        "fold": trained(folds[1], place / "fold.safetensors", steps=3),
    }


@pytest.mark.slow
def test_depths_are_those_of_the_library(
    data: Path, models: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, every, table = tmp_path / "page.html", tmp_path / "all.json", tmp_path / "all.csv"
    work = ["--folder", tmp_path / "work", "--max-memory", "40MB", "--json"]
    assert run(models["first"], data, "--k", 5, *work, "--out", out, "--csv", every) == 0
    shown = capsys.readouterr()
    facts = json.loads(shown.out)
    assert "70 queries against 56 training examples" in shown.err
    assert "(limit 40.0 MB)" in shown.err
    saved, halves = load_classifier(models["first"]), open_halves(data)
    sets = [labelled(some, preparation=saved.preparation) for some in halves[:2]]
    expected = prediction_depth(saved.network, *sets, k=5)
    assert expected.test is not None
    found = read_depth(every)
    assert found.test is not None
    assert torch.equal(found.test.depth, expected.test.depth)
    assert torch.equal(found.train.depth, expected.train.depth)
    counts = expected.test.counts.tolist()
    assert facts["depths"] == counts
    assert [row["probe"] for row in facts["probes"]] == list(expected.layers)
    assert facts["probes"][2]["settled"] == pytest.approx(sum(counts[:3]) / 14)
    assert facts["probes"][-1]["accuracy"] == pytest.approx(expected.curves["test"].accuracy[0, -1].item())
    assert facts["undefined_rate"] == expected.test.undefined_rate
    assert any("not converged" in warning for warning in facts["warnings"])
    assert not any("test half" in warning for warning in facts["warnings"])
    # The same command again reads what the folder kept; another k does not.
    assert run(models["first"], data, "--k", 5, *work, "--csv", table) == 0
    assert json.loads(capsys.readouterr().out)["depths"] == counts
    assert len([line for line in table.read_text().splitlines() if not line.startswith("#")]) == 1 + 70
    assert run(models["first"], data, "--k", 6, *work) == 2
    assert "folder must hold the run" in capsys.readouterr().err


@pytest.mark.slow
def test_the_page_stands_alone(
    data: Path, models: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "page.html"
    others = ["--again", models["fold"], "--again", models["seed"], "--checkpoints", models["early"]]
    assert run(models["first"], data, *others, "--k", 5, "--out", out) == 0
    shown = capsys.readouterr()
    assert "│ block3" in shown.out
    assert "looks mislabelled" in shown.out
    page = out.read_text()
    assert re.search(r"^warning: .* is not converged", shown.out, flags=re.MULTILINE)
    assert "is not converged" in page
    sources = re.findall(r'(?:src|href)="([^"]*)"', page)
    assert sources
    assert all(source.startswith(("data:image/png;base64,", "#")) for source in sources)
    for title in (
        "Depth",
        "What each layer knows",
        "Classes",
        "Examples",
        "What hard examples",
        "Before conv",
        "Over 3",
    ):
        assert f"<h2>{title}" in page
    for gallery in ("The easiest", "The hardest", "Suspicious labels"):
        assert f"<h3>{gallery}</h3>" in page
    assert page.count("<svg") == 2 * 4  # for a page and for a phone
    assert "<script" not in page
    assert not re.search(r"\bnan\b", re.sub(r"base64,[^\"]*", "", page))


def test_folds_are_found_by_what_a_model_was_trained_on(
    data: Path, models: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(models["fold"], data, "--k", 3, "--json") == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["halves"].endswith(", fold 1")
    scores = [row["score"] for row in facts["suspicious_labels"]]
    assert scores == sorted(scores, reverse=True)
    assert 0 <= facts["flagged_labels"] <= facts["test"]
    assert run(models["fold"], data, "--held-out", 0.1, "--k", 3, "--json") == 0
    facts = json.loads(capsys.readouterr().out)
    assert any("may have learned from the test half" in warning for warning in facts["warnings"])


def test_a_module_of_ones_own_is_run(data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "own.py").write_text(MODULE)
    for name in ("plain", "prepared"):
        assert run(f"{tmp_path}/own.py:{name}", data, "--k", 3, "--json") == 0
        facts = json.loads(capsys.readouterr().out)
        assert [row["probe"] for row in facts["probes"]] == ["input", "0", "softmax"]
        assert any("is not known" in warning for warning in facts["warnings"])
    assert run(f"{tmp_path}/own.py:number", data) == 2
    assert "model must be a function that returns a torch.nn.Module; got int" in capsys.readouterr().err


def test_training_examples_can_come_from_elsewhere(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    counts = {"Ann": 7, "Bo": 6, "Cy": 5}
    train = people(tmp_path / "train", counts, size=(8, 9))
    test = people(tmp_path / "test", {"Bo": 2, "Cy": 3}, size=(8, 9))
    (tmp_path / "own.py").write_text(
        "import torch\ndef make():\n    return torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(216, 3))\n"
    )
    assert run(f"{tmp_path}/own.py:make", test, "--train", train, "--k", 3, "--json", "--out", tmp_path / "p.html") == 0
    facts = json.loads(capsys.readouterr().out)
    assert (facts["train"], facts["test"], sum(facts["depths"])) == (18, 5, 5)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["none.safetensors", "{data}"], "load_classifier: path must be a classifier that likewise wrote"),
        (["none.py:make", "{data}"], "open_classifier: model must be in a file that exists"),
        (["{first}", "{data}", "--max-memory", "lots"], "--max-memory must be a size such as 500MB or 4GB; got 'lots'"),
        (["{first}", "{data}", "--csv", "depth.txt"], "--csv must end in .csv or .json; got 'depth.txt'"),
        (["{first}", "{data}", "--out", "nowhere/p.html"], "path must be in a folder that exists"),
        (["{first}", "{data}", "--held-out", "0"], "the test half must have examples; got 0"),
        (["{first}", "{data}", "--max-memory", "9kB"], "max_memory must be at least"),
        (["{first}", "{data}", "--checkpoints", "{fold}"], "checkpoints must be asked about the same test examples"),
    ],
)
def test_wrong_usage_is_one_line(
    data: Path, models: dict[str, Path], arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(*(argument.format(data=data, **models) for argument in arguments), "--k", 3) == 2
    shown = capsys.readouterr().err
    assert message in shown
    assert shown.count("\n") == 1
