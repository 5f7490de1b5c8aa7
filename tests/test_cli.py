"""The command: each verb shows one library result, and says with its exit code how it went."""

import json
import shlex
import sys
import types
import warnings
from pathlib import Path
from typing import get_args
from xml.etree import ElementTree

import pytest
import torch
import typer
import typer.core
import typer.main

from likewise import cli
from likewise.cli import terminal
from likewise.cli.attention import FeatureName


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


@pytest.mark.parametrize("features", get_args(FeatureName))
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


def test_a_warning_stands_with_the_errors_it_is_about(capsys: pytest.CaptureFixture[str]) -> None:
    sizes = ["--length", "31", "--heads", "2", "--key-dim", "5", "--width", "2", "--causal"]
    said = "linear_attention: a denominator of SoftmaxFourier came near zero"
    assert run("attention", "--features", "softmax-fourier", *sizes) == 0
    assert capsys.readouterr().out.splitlines()[-1].startswith(f"warning: {said}")
    assert run("attention", "--features", "softmax-fourier", *sizes, "--json") == 0
    shown = capsys.readouterr()
    assert [text.startswith(said) for text in json.loads(shown.out)["warnings"]] == [True]
    assert shown.err == ""


def test_a_warning_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = cli._show_warning  # ty: ignore[invalid-assignment]
        warnings.warn("doubtful", stacklevel=1)
    assert capsys.readouterr().err == "likewise: doubtful\n"


def test_attention_draws_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("attention", "--length", "7", "--key-dim", "3") == 0
    shown = capsys.readouterr().out
    for word in ("Elu", "T=7", "linear", "kernel", "softmax", "taylor", "mean of values"):
        assert word in shown


def test_names_of_maps_are_those_of_the_library() -> None:
    from likewise.reports.comparison import FEATURES

    assert get_args(FeatureName) == tuple(FEATURES)


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
        monkeypatch.setattr(terminal, "PATIENCE", patience)
        with terminal.progress_bar() as progress:
            progress(0.5, "half way")
            time.sleep(seconds)
        assert ("half way" in capsys.readouterr().err) is shows


@pytest.fixture
def layer(tmp_path: Path) -> Path:
    """A flat head and a peaked one, without a batch."""
    from safetensors.torch import save_file

    q, k, v = torch.randn(3, 2, 149, 16, generator=torch.Generator().manual_seed(0))
    q[0] *= 0.4
    q[1] *= 6.0
    path = tmp_path / "layer.safetensors"
    save_file({"q": q, "k": k, "v": v}, path)
    return path


def test_diagnose_prints_a_table_and_an_advice_for_every_head(layer: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("attention", "diagnose", str(layer), "--causal", "--wanted-error", "0.2") == 0
    summary, heading, flat, peaked, first, second = capsys.readouterr().out.splitlines()
    assert summary.startswith("relative squared error against softmax, wanted 0.2; causal, 75 rows, fitted on")
    assert heading.split()[:3] == ["head", "mean", "of"]
    assert (flat.split()[-1], peaked.split()[-1]) == ("yes", "no")
    assert first.startswith("head 0: ")
    assert second.startswith("head 1: do not linearise this head: the best map, ")
    assert run("attention", "diagnose", str(layer), "--all") == 0
    assert capsys.readouterr().out.count("\nHyperbolic 128 ") == 2 * 2  # two heads, with and without a window


def test_diagnose_gives_json_and_a_picture(layer: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    picture = tmp_path / "heads.svg"
    arguments = ["attention", "diagnose", str(layer), "--exact-within", "149", "--seed", "3", "--json"]
    assert run(*arguments, "--picture", str(picture)) == 0
    shown = capsys.readouterr().out
    found = json.loads(shown, parse_constant=lambda word: pytest.fail(f"{word} is no JSON"))
    assert [head["head"] for head in found["heads"]] == [0, 1]
    [near] = [m for m in found["heads"][1]["measurements"] if (m["map"], m["exact_within"]) == ("Positive 64", 149)]
    assert near["squared_error"] < 1e-9
    assert near["log10_variance"] is None  # a variance of 0 has no logarithm
    assert ElementTree.parse(picture).getroot().tag == "{http://www.w3.org/2000/svg}svg"
    assert run(*arguments) == 0
    assert capsys.readouterr().out == shown


def test_diagnose_refuses_in_one_line(layer: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from safetensors.torch import save_file

    partial, garbage, absent = (tmp_path / name for name in ("partial.safetensors", "garbage", "absent"))
    save_file({"q": torch.ones(2, 3, 5), "w": torch.ones(1)}, partial)
    garbage.write_bytes(b"no tensors at all")
    for file, options, code, message in (
        (partial, [], 2, f"attention diagnose: {partial} must hold the tensors q, k and v (no k, v); got q, w."),
        (garbage, [], 2, f"attention diagnose: {garbage} must be a safetensors file; got "),
        (absent, [], 1, "No such file or directory: "),
        (layer, ["--wanted-error", "-1"], 2, "diagnose: wanted_error must be a positive number; got -1.0."),
        (
            layer,
            ["--picture", str(tmp_path)],
            2,
            f"attention diagnose: path must be a file; got the folder {tmp_path}.",
        ),
    ):
        assert run("attention", "diagnose", str(file), *options) == code
        shown = capsys.readouterr()
        assert shown.out == ""
        assert shown.err.startswith(f"likewise: {message}")
        assert shown.err.count("\n") == 1
    assert run("attention", "diagnose") == 2
    assert run("attention", "diagnose", str(layer), "--exact-within", "0") == 2


def test_options_before_the_verb_are_not_lost(layer: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("attention", "--causal", "diagnose", str(layer)) == 2
    assert capsys.readouterr().err == "likewise: attention: options must come after diagnose; got --causal before it.\n"


def test_every_help_ends_in_examples_that_parse() -> None:
    group = typer.main.get_command(cli.app)
    assert isinstance(group, typer.core.TyperGroup)
    attention = group.commands["attention"]
    assert isinstance(attention, typer.core.TyperGroup)
    assert list(attention.commands) == ["diagnose"]
    for example in (attention.commands["diagnose"].epilog or "").split("\n\n")[1:]:
        program, verb, inner, *arguments = shlex.split(example)
        assert (program, verb, inner) == ("likewise", "attention", "diagnose")
        attention.commands[inner].make_context(inner, arguments)
    for name, command in {"": group, **group.commands, "attention diagnose": attention.commands["diagnose"]}.items():
        heading, *examples = (command.epilog or "").split("\n\n")
        assert heading == "Examples:"
        assert examples
        for example in examples:
            program, verb, *arguments = shlex.split(example)
            assert program == "likewise"
            assert name.partition(" ")[0] in ("", verb)
            group.commands[verb].make_context(verb, arguments)
