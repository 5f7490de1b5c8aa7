"""`likewise exits` writes a page, a file that leaves early, and nothing at all when it is stopped."""

import json
from pathlib import Path
from typing import Any

import pytest

from likewise import cli
from likewise.data import Preparation, digits
from likewise.data.opening import Halves
from likewise.exits import load_exits
from likewise.networks import build_classifier, build_network, save_classifier, save_network

SMALL = ["--risk", "0.1", "--heads", "2", "--steps", "2", "--no-depth"]
CLASSES = tuple(map(str, range(10)))


def few(data: str, *, trained_on: str | None, held_out: float) -> tuple[Halves, bool]:
    assert data == "digits"
    some = digits()
    halves = Halves(some.take(range(61)), some.take(range(61, 61 + int(400 * held_out))), f"{held_out} held out")
    return halves, halves.train.fingerprint == trained_on


@pytest.fixture(autouse=True)
def few_digits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("likewise.networks.classifiers.find_halves", few)
    monkeypatch.setattr("likewise.reports.facts.Facts.busy", False)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "c.safetensors"
    network = build_classifier("resnet8", channels=1, num_classes=10)
    preparation, seen = Preparation((8, 8), 1), few("digits", trained_on=None, held_out=0.2)[0].train.fingerprint
    save_classifier(network, path, name="resnet8", classes=CLASSES, preparation=preparation, trained_on=seen)
    return path


def run(model: Path, *more: str, function: str = "") -> int:
    with pytest.raises(SystemExit) as stopped:
        cli.main(["exits", f"{model}{function}", "digits", "--out", str(model.parent / "e.html"), *more])
    assert isinstance(stopped.value.code, int)
    return stopped.value.code


def test_a_page_and_a_file_are_written(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    saved = model.parent / "e.safetensors"
    assert run(model, *SMALL, "--save", str(saved), "--json") == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["notes"][0] == "Training and held-out examples: 0.2 held out."
    assert [each["text"].partition(" By ")[0] for each in shown["answers"].values()] == [
        "Early exit or the whole network?",
    ] * 2
    assert shown["examples"] == {"train": 61, "selection": 16, "calibration": 32, "test": 32}
    assert Path(shown["report"]).read_text(encoding="utf-8").startswith("<!doctype html>")
    found = load_exits(shown["exits"])
    assert list(found.exits.names) == shown["heads"]
    assert found.policy is not None
    assert [None if each == float("inf") else each for each in found.policy.thresholds] == shown["thresholds"]
    assert found.preparation == Preparation((8, 8), 1)


@pytest.mark.slow
def test_smaller_networks_and_the_answer_are_printed(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(model, *SMALL, "--smaller", "resnet14", "--joint") == 0
    out = capsys.readouterr().out
    assert "resnet14" in out
    assert out.count("Early exit or a smaller model?") == 2
    assert f"The report is {model.parent / 'e.html'}\n" in out


def test_a_busy_machine_is_said_in_every_output(
    model: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("likewise.reports.facts.Facts.busy", True)
    said = "The machine was busy: "
    assert run(model, *SMALL) == 0
    assert said in capsys.readouterr().out
    assert said in (model.parent / "e.html").read_text(encoding="utf-8")
    assert run(model, *SMALL, "--json") == 0
    assert json.loads(capsys.readouterr().out)["notes"][1].startswith(said)


def test_a_comparison_without_a_difference_is_called_so(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Heads that are hardly trained let no example leave: the clock's differences are noise."""
    assert run(model, "--risk", "0.1", "--heads", "1", "--steps", "1", "--no-depth", "--json") == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["shares"][-1] == 1.0
    assert {each["verdict"] for each in shown["answers"].values()} == {"no difference beyond the noise"}
    page = (model.parent / "e.html").read_text(encoding="utf-8")
    assert page.count("No example left early, so early exit was the whole network.") == 2
    idle = "no example left early: it is the whole network, and its time differs by noise alone."
    assert idle in page
    assert idle in shown["notes"][-1]
    assert run(model, "--risk", "0.1", "--heads", "1", "--steps", "1", "--no-depth") == 0
    assert idle in capsys.readouterr().out


@pytest.mark.parametrize(("seen", "note"), [(None, "does not say what"), ("another", "on other examples")])
def test_a_network_of_unknown_training_is_noted(
    model: Path, seen: str | None, note: str, capsys: pytest.CaptureFixture[str]
) -> None:
    network = build_classifier("resnet8", channels=1, num_classes=10)
    preparation = Preparation((8, 8), 1)
    save_classifier(network, model, name="resnet8", classes=CLASSES, preparation=preparation, trained_on=seen)
    assert run(model, *SMALL) == 0
    assert note in capsys.readouterr().out
    assert note in (model.parent / "e.html").read_text(encoding="utf-8")


def test_a_stopped_run_writes_nothing(
    model: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def stop(*args: object, **more: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("likewise.exits.study.measure_exits", stop)
    assert run(model, *SMALL, "--folder", str(model.parent)) == 130
    assert "stopped, nothing was written; the same command goes on" in capsys.readouterr().err
    assert not (model.parent / "e.html").exists()
    assert (model.parent / "heads.checkpoint").is_file()


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--risk", "0.01"], "study_exits: calibration must have at least 299 examples for a risk of 0.01"),
        (
            ["--risk", "0.1", "--steps", "2", "--epochs", "1"],
            "exits: epochs must not be given with steps; got 1.0.",
        ),
        (["--folder", "nowhere"], "exits: --folder must be a folder that exists; got nowhere."),
        (["--save", "nowhere/e.safetensors"], "exits: --save must be in a folder that exists; got nowhere"),
        (["--risk", "0.1", "--smaller", "resnet9"], "build_classifier: name must be one of 'resnet8'"),
    ],
)
def test_wrong_usage_is_one_line(
    model: Path, more: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(model, *more) == 2
    assert message in capsys.readouterr().err
    assert not (model.parent / "e.html").exists()


def test_a_network_that_embeds_is_no_classifier(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = {"channels": 1, "embedding_dim": 7}
    network = build_network("resnet8", options)
    save_network(network, model, name="resnet8", options=options, preparation=Preparation((8, 8), 1))
    assert run(model, *SMALL) == 2
    assert "must be a classifier; got a network, " in capsys.readouterr().err


def test_epochs_are_steps(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(model, "--risk", "0.1", "--no-depth", "--epochs", "3", "--folder", str(model.parent)) == 0
    assert len((model.parent / "heads.jsonl").read_text().splitlines()) == 3


OWN = """
from torch import nn
def trained():
    body = nn.Sequential(nn.Flatten(), nn.Linear(64, 12), nn.ReLU(), nn.Linear(12, 12), nn.ReLU(), nn.Linear(12, 10))
    return body.train()
def number():
    return 7
def whole():
    class One(nn.Module):
        def forward(self, x):
            return x.flatten(1)[:, :10]
    return One()
"""


def test_a_network_of_ones_own_is_given_exits(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model, saved = tmp_path / "own.py", tmp_path / "own.safetensors"
    model.write_text(OWN)
    assert run(model, *SMALL, "--save", str(saved), "--json", function=":trained") == 0
    shown = json.loads(capsys.readouterr().out)
    assert "does not say what it was trained on" in shown["notes"][1]
    names: dict[str, Any] = {}
    exec(OWN, names)
    found = load_exits(saved, network=names["trained"]())
    assert list(found.exits.names) == shown["heads"]
    assert found.preparation == Preparation((8, 8), 1)
    for function, message in (
        (":number", "open_classifier: model must be a function that returns a torch.nn.Module; got int"),
        (":whole", "network must"),
    ):
        assert run(model, *SMALL, function=function) == 2
        assert message in capsys.readouterr().err
