"""The command: each verb shows one library result, and says with its exit code how it went."""

import importlib
import json
import os
import shlex
import subprocess
import sys
import types
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import get_args
from xml.etree import ElementTree

import pytest
import torch
import typer
import typer.core
import typer.main

from likewise import checks, cli
from likewise.checks import MissingPackage
from likewise.cli import terminal
from likewise.cli.attention import FeatureName
from likewise.data import Preparation
from likewise.networks import build_network, save_network
from tests.house.guards import ROOT


def run(*arguments: str) -> int:
    with pytest.raises(SystemExit) as stopped:
        cli.main(list(arguments))
    assert isinstance(stopped.value.code, int)
    return stopped.value.code


@pytest.fixture
def tour_module(monkeypatch: pytest.MonkeyPatch) -> types.ModuleType:
    """A tour that takes no time."""
    module = types.ModuleType("likewise.tour")
    monkeypatch.setitem(sys.modules, "likewise.tour", module)
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
    from likewise.attention.comparison import FEATURES

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
            MissingPackage("tour", "jinja2"),
            1,
            "likewise: tour: jinja2 must be installed; got no such package. Try: pip install 'likewise[report]'\n",
        ),
        (
            ModuleNotFoundError("No module named 'torch'", name="torch.nn"),
            1,
            "likewise: tour: torch must be installed; got no such package. Try: pip install 'likewise[torch]'\n",
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


def test_a_module_of_no_extra_is_a_fault_of_ours(tour_module: types.ModuleType) -> None:
    def write_tour(path: Path, progress: object) -> None:
        raise ModuleNotFoundError("No module named 'nowhere'", name="nowhere")

    vars(tour_module)["write_tour"] = write_tour
    with pytest.raises(ModuleNotFoundError, match="nowhere"):
        cli.main(["tour"])


def test_digits_without_scikit_learn_name_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    find = checks.find_spec
    monkeypatch.setattr(checks, "find_spec", lambda name: None if name == "sklearn" else find(name))
    assert run("train", "digits", "--out", str(tmp_path / "m.safetensors")) == 1
    message = "digits: scikit-learn must be installed; got no such package. Try: pip install 'likewise[report]'"
    assert capsys.readouterr().err == f"likewise: {message}\n"


@pytest.fixture
def threads(tour_module: types.ModuleType, monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, str | None]]:
    """The threads of torch, in this process and for those it starts, during each tour."""
    seen: list[tuple[int, str | None]] = []

    def write_tour(path: Path, progress: object) -> None:
        seen.append((torch.get_num_threads(), os.environ.get("OMP_NUM_THREADS")))

    vars(tour_module)["write_tour"] = write_tour
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    return seen


def test_threads_are_those_of_the_command_only(
    threads: list[tuple[int, str | None]], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = torch.get_num_threads()
    assert run("tour", "--threads", "3") == 0
    monkeypatch.setenv("LIKEWISE_THREADS", "5")
    assert run("tour") == run("tour", "--threads", "2") == 0
    assert threads == [(3, "3"), (5, "5"), (2, "2")]
    assert torch.get_num_threads() == before
    assert "OMP_NUM_THREADS" not in os.environ
    assert run("tour", "--threads", "0") == 2


def test_small_work_takes_one_thread_unless_asked(
    threads: list[tuple[int, str | None]], monkeypatch: pytest.MonkeyPatch
) -> None:
    def work(data: str, as_json: bool = False) -> None:
        threads.append((torch.get_num_threads(), os.environ.get("OMP_NUM_THREADS")))

    before = torch.get_num_threads()
    app = typer.Typer()
    app.command()(terminal.verb(work, small=terminal.small_images))
    for arguments in (["digits"], ["faces"], ["digits", "--threads", "2"]):
        with pytest.raises(SystemExit):
            app(arguments)
    monkeypatch.setenv("OMP_NUM_THREADS", "4")  # somebody has chosen
    with pytest.raises(SystemExit):
        app(["digits"])
    assert threads == [(1, "1"), (before, None), (2, "2"), (before, "4")]
    small = importlib.import_module("likewise.cli.train").small_training
    chosen = [small({"data": "digits", "network": network}) for network in ("resnet8", "nns2", None)]
    assert chosen == [True, False, False]


def test_small_networks_and_small_tensors_take_one_thread(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    seen: list[int] = []

    def note(*args: object, **options: object) -> None:
        seen.append(torch.get_num_threads())
        raise ValueError("enough")

    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setattr("likewise.evaluation.run_evaluation_job", note)
    monkeypatch.setattr("likewise.attention.comparison.compare_random", note)
    monkeypatch.setattr(sys.modules["likewise.attention.diagnose"], "diagnose_file", note)
    for name, options in (("resnet8", {"channels": 1, "embedding_dim": 3}), ("nns2", {"embedding_dim": 3})):
        preparation = Preparation((8, 8), 1) if name == "resnet8" else Preparation((140, 140), 3)
        network = build_network(name, options)
        save_network(network, tmp_path / name, name=name, options=options, preparation=preparation)
    (tmp_path / "small").write_bytes(b"0" * 2**20)
    (tmp_path / "large").write_bytes(b"0" * (2**20 + 1))
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    try:
        for command in (
            f"evaluate {tmp_path}/resnet8 digits",
            f"evaluate {tmp_path}/nns2 digits",
            f"evaluate {tmp_path}/none digits",
            f"evaluate {tmp_path}/resnet8 {tmp_path}",
            "attention --length 512",
            "attention --length 513",
            f"attention diagnose {tmp_path}/small",
            f"attention diagnose {tmp_path}/large",
        ):
            assert run(*command.split()) == 2
    finally:
        torch.set_num_threads(before)
    assert seen == [1, 3, 3, 3, 1, 3, 1, 3]


def test_work_that_waited_for_the_machine_says_so(
    threads: list[tuple[int, str | None]], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert terminal.held_up(19.0, 1.0, 2) is None
    assert terminal.held_up(100.0, 101.0, 2) is None
    assert terminal.held_up(100.0, 99.0, 2) == (
        "100 s by the clock, 99 s of CPU time on 2 threads: the machine was busy, or threads idle; try --threads 1."
    )
    assert terminal.held_up(100.0, 49.0, 1) == (
        "100 s by the clock, 49 s of CPU time on 1 thread: the machine was busy or slow to read files."
    )
    monkeypatch.setattr(terminal, "_cpu_seconds", lambda: 0.0)
    monkeypatch.setattr(terminal, "LONG", -1.0)
    monkeypatch.setattr(terminal, "IDLE", 10.0)
    assert run("tour") == 0
    assert " of CPU time on " in capsys.readouterr().err
    assert run("tour", "--quiet") == 0
    assert capsys.readouterr().err == ""


def test_quiet_prints_no_result_but_json(
    tour_module: types.ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def write_tour(path: Path, progress: Callable[[float, str], None]) -> None:
        progress(0.5, "half way")

    vars(tour_module)["write_tour"] = write_tour
    monkeypatch.setattr(terminal, "BETWEEN_LINES", 0.0)
    assert run("tour") == 0
    shown = capsys.readouterr()
    assert (shown.out, shown.err) == ("The report is likewise-report.html\n", "likewise: 50%, half way\n")
    assert run("tour", "--quiet") == 0
    assert capsys.readouterr() == ("", "")
    assert run("tour", "--quiet", "--json") == 0
    assert json.loads(capsys.readouterr().out) == {"report": "likewise-report.html"}
    vars(tour_module)["write_tour"] = None
    with pytest.raises(TypeError):
        cli.main(["tour", "--quiet"])


def test_through_a_pipe_long_work_says_a_line_now_and_then(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now = iter([0.0, 14.0, 16.0, 16.0, 20.0, 31.5, 31.5])
    monkeypatch.setattr(terminal, "time", types.SimpleNamespace(monotonic=lambda: next(now)))
    with terminal.progress_bar() as progress:
        for done, doing in ((0.1, "one"), (0.2, "two"), (0.3, "three"), (0.4, "four")):
            progress(done, doing)
    assert capsys.readouterr().err == "likewise: 20%, two\nlikewise: 40%, four\n"


def test_a_page_is_opened_when_it_is_there(
    tour_module: types.ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    opened: list[str] = []
    monkeypatch.setattr(terminal.webbrowser, "open", opened.append)
    vars(tour_module)["write_tour"] = lambda path, progress: path.write_text("page")
    page = tmp_path / "page.html"
    assert run("tour", "--out", str(page)) == 0
    assert opened == []
    assert run("tour", "--out", str(page), "--open") == 0
    assert opened == [page.as_uri()]
    assert run("evaluate", "m.safetensors", "digits", "--open") == 2
    assert capsys.readouterr().err == "likewise: evaluate: --open must go with --out; got no page.\n"


def test_python_dash_m_is_the_command() -> None:
    done = subprocess.run([sys.executable, "-m", "likewise", "--version"], cwd=ROOT, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "0.1.0\n")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_shell_completes_verbs_and_options(shell: str, tmp_path: Path) -> None:
    asked = {"COMP_WORDS": "likewise train --ove", "COMP_CWORD": "2", "_TYPER_COMPLETE_ARGS": "likewise train --ove"}
    variables = {**asked, "_LIKEWISE_COMPLETE": f"complete_{shell}", "_TYPER_COMPLETE_FISH_ACTION": "get-args"}
    command = [sys.executable, "-m", "likewise"]
    done = subprocess.run(command, cwd=ROOT, env={**os.environ, **variables}, capture_output=True, text=True)
    assert "--overwrite" in done.stdout
    assert "--resume" not in done.stdout
    home = {
        **os.environ,
        "HOME": str(tmp_path),
        "SHELL": f"/bin/{shell}",
        "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1",
    }
    made = subprocess.run([*command, "--install-completion", shell], cwd=ROOT, env=home, capture_output=True, text=True)
    assert made.returncode == 0, made.stderr
    written = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert any("_LIKEWISE_COMPLETE" in path.read_text() for path in written)


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


@pytest.mark.slow
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
            words = shlex.split(example)
            program, verb, *arguments = words[1:] if words[0].startswith("LIKEWISE_") else words
            assert program == "likewise"
            assert name.partition(" ")[0] in ("", verb)
            group.commands[verb].make_context(verb, arguments)
