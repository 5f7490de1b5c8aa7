"""The command: each verb shows one library result, and says with its exit code how it went."""

import json
import shlex
import sys
import types
from pathlib import Path
from typing import get_args

import pytest
import typer
import typer.core
import typer.main

from likewise import cli


def run(*arguments: str) -> int:
    with pytest.raises(SystemExit) as stopped:
        cli.main(list(arguments))
    assert isinstance(stopped.value.code, int)
    return stopped.value.code


@pytest.fixture
def tour_module(monkeypatch: pytest.MonkeyPatch) -> types.ModuleType:
    """A tour that takes no time."""
    module = types.ModuleType("likewise.reports.tour")
    monkeypatch.setitem(sys.modules, "likewise.reports.tour", module)
    return module


def test_no_verb_shows_the_verbs(capsys: pytest.CaptureFixture[str]) -> None:
    assert run() == 2
    shown = capsys.readouterr()
    assert "attention" in shown.out + shown.err


def test_version_is_the_package_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--version") == 0
    assert capsys.readouterr().out == "0.1.0\n"


@pytest.mark.parametrize("arguments", [["dance"], ["attention", "--features", "eli"], ["attention", "--length", "0"]])
def test_wrong_usage_exits_2(arguments: list[str]) -> None:
    assert run(*arguments) == 2


@pytest.mark.parametrize("features", get_args(cli.FeatureName))
def test_attention_compares_every_map(features: str, capsys: pytest.CaptureFixture[str]) -> None:
    sizes = ["--length", "13", "--heads", "2", "--key-dim", "5", "--width", "14"]
    assert run("attention", "--features", features, *sizes, "--causal", "--json") == 0
    result = json.loads(capsys.readouterr().out)
    linear, kernel, softmax, *simpler = result["forms"]
    assert result["shape"] == [1, 2, 13, 5]
    assert softmax["softmax_error"] == 0
    assert [form["name"] for form in simpler] == ["taylor", "mean of values"]
    if features in ("elu", "relu", "quadratic", "taylor"):
        assert linear["kernel_error"] < 1e-4
        assert linear["softmax_error"] == pytest.approx(kernel["softmax_error"], rel=1e-3)


def test_attention_draws_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("attention", "--length", "7", "--key-dim", "3") == 0
    shown = capsys.readouterr().out
    for word in ("Elu", "T=7", "linear", "kernel", "softmax", "taylor", "mean of values"):
        assert word in shown


def test_names_of_maps_are_those_of_the_library() -> None:
    from likewise.reports.comparison import FEATURES

    assert get_args(cli.FeatureName) == tuple(FEATURES)


def test_tour_prints_where_the_report_is(
    tour_module: types.ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def write_tour(path: Path, progress: object) -> None:
        path.write_text("page")

    vars(tour_module)["write_tour"] = write_tour
    page = tmp_path / "page.html"
    assert run("tour", "--out", str(page)) == 0
    assert page.read_text() == "page"
    assert str(page) in capsys.readouterr().out.replace("\n", "")
    assert run("tour", "--out", str(page), "--json") == 0
    assert json.loads(capsys.readouterr().out) == {"report": str(page)}


@pytest.mark.parametrize(
    ("error", "code", "line"),
    [
        (ValueError("tour: x must be 1; got 2."), 2, "likewise: tour: x must be 1; got 2.\n"),
        (
            PermissionError(13, "Permission denied", "page.html"),
            1,
            "likewise: [Errno 13] Permission denied: 'page.html'\n",
        ),
        (
            ModuleNotFoundError("tour: jinja2 must be installed; got no such package.", name="jinja2"),
            1,
            "likewise: tour: jinja2 must be installed; got no such package.\n",
        ),
    ],
)
def test_an_expected_error_is_one_line(
    error: Exception, code: int, line: str, tour_module: types.ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    def write_tour(path: Path, progress: object) -> None:
        raise error

    vars(tour_module)["write_tour"] = write_tour
    assert run("tour") == code
    assert capsys.readouterr().err == line


def test_progress_appears_only_when_work_is_slow(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import time

    monkeypatch.setenv("FORCE_COLOR", "1")  # rich then takes the captured stream for a terminal
    for patience, seconds, shows in ((60.0, 0.0, False), (0.01, 0.3, True)):
        monkeypatch.setattr(cli, "PATIENCE", patience)
        with cli._progress_bar() as progress:
            progress(0.5, "half way")
            time.sleep(seconds)
        assert ("half way" in capsys.readouterr().err) is shows


def test_every_help_ends_in_examples_that_parse() -> None:
    group = typer.main.get_command(cli.app)
    assert isinstance(group, typer.core.TyperGroup)
    for name, command in {"": group, **group.commands}.items():
        heading, *examples = (command.epilog or "").split("\n\n")
        assert heading == "Examples:"
        assert examples
        for example in examples:
            program, verb, *arguments = shlex.split(example)
            assert program == "likewise"
            assert name in ("", verb)
            group.commands[verb].make_context(verb, arguments)
