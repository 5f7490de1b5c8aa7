"""`likewise cost` shows what the library counts, and refuses in one line."""

import json
from pathlib import Path

import pytest

from likewise import cli
from likewise.claims.registry import program
from likewise.cost import cost, cost_polynomial


def run(*arguments: str) -> int:
    with pytest.raises(SystemExit) as stopped:
        cli.main(list(arguments))
    assert isinstance(stopped.value.code, int)
    return stopped.value.code


def test_a_network_is_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("cost", "nns2") == 0
    heading, *rows, _, legend = capsys.readouterr().out.splitlines()
    found = cost(*program("facenet.nns2").make()())
    assert heading.strip() == "facenet.nns2"
    shown = {row.rpartition("  ")[0].strip(): int(row.rpartition("  ")[2].replace(",", "")) for row in rows}
    assert shown == {
        "parameters (elements)": found.params,
        "multiply-adds (mac)": found.macs,
        "elementwise (results)": found.elementwise,
        "traffic (elements)": found.traffic,
        "traffic, fused (elements)": found.fused_traffic,
        "peak (elements)": found.peak,
        "saved for backward (elements)": found.saved,
    }
    assert legend == "A mac is one multiply-add, 2 flop. An element is one number: 4 bytes in float32."


def test_sizes_are_options(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("cost", "mqa_step", "--b", "2", "--n=3", "--h", "5", "--k", "7", "--v", "13", "--d", "11", "--json") == 0
    data = json.loads(capsys.readouterr().out)
    [shown] = data["programs"]
    assert (data["units"]["macs"], data["units"]["traffic"]) == ("mac", "elements")
    mqa = program("attention.mqa_step")
    sizes = {"b": 2, "n": 3, "h": 5, "k": 7, "v": 13, "d": 11}
    assert (shown["name"], shown["sizes"], shown["runs"]) == ("attention.mqa_step", sizes, "64+4 runs")
    assert shown["cost"]["traffic"] == cost(*mqa.make()(**sizes)).traffic
    assert shown["polynomials"]["traffic"] == cost_polynomial(mqa.make(), mqa.sizes).text("traffic")


def test_without_sizes_polynomials_are_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("cost", "softmax", "--streamed") == 0
    shown = capsys.readouterr().out
    basis = "fitted to 12 runs, confirmed by 4 runs at larger sizes"
    assert shown.startswith(f"attention.softmax, exact in N, D, M: {basis}\nmultiply-adds (mac)            N^2*D\n")
    assert "peak (elements)                5*N*M + 2*N*D + 6*N\n" in shown


def test_two_programs_stand_side_by_side_with_the_length_where_one_wins(capsys: pytest.CaptureFixture[str]) -> None:
    both = ["cost", "random_features", "--D", "64", "--M", "64", "--R", "100", "--compare", "softmax"]
    assert run(*both) == 0
    *_, macs, traffic, _, _ = capsys.readouterr().out.splitlines()
    wins = "attention.random_features costs less than attention.softmax from"
    assert macs == f"multiply-adds: {wins} N=302 on"
    assert traffic == f"traffic: {wins} N=665 on"
    assert run(*both, "--N", "10", "--json") == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["break_even"][0] == {
        "quantity": "macs",
        "over": "N",
        "cheaper": "attention.random_features",
        "than": "attention.softmax",
        "from": 302,
    }
    assert [one["cost"]["macs"] for one in shown["programs"]] == [10 * 100 * (4 * 64 + 2 * 64 + 2), 100 * 128]


SMALL_STEP = ["--b", "8", "--h", "4", "--k", "2", "--v", "2", "--d", "8"]


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["softmax", "--compare", "kernel", "--D", "4", "--M", "4"], "multiply-adds: the same as attention.kernel"),
        (
            ["softmax", "--compare", "random_features", "--D", "4"],
            "Give all of M, N, R but a length to see from where on one costs less.",
        ),
        (
            [
                *[
                    "mha_step",
                    "--compare",
                    "mqa_step",
                    "--b",
                    "8",
                    "--h",
                    "4",
                    "--k",
                    "2",
                    "--v",
                    "2",
                    "--d",
                    "8",
                    "--over",
                    "n",
                ]
            ],
            "traffic: attention.mqa_step costs less than attention.mha_step from n=1 on",
        ),
    ],
)
def test_comparisons_say_what_they_found(arguments: list[str], line: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("cost", *arguments) == 0
    assert line in capsys.readouterr().out.splitlines()


@pytest.mark.slow
def test_networks_compare_without_lengths(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("cost", "resnet50", "--compare", "resnet50.v1_5") == 0
    shown = capsys.readouterr().out.split()
    assert shown[:2] == ["resnet50.v1", "resnet50.v1_5"]
    assert shown[shown.index("(mac)") + 1 :][:2] == ["3,857,973,248", "4,089,184,256"]


def test_every_compared_program_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("cost", "nns2", "--compare", "cifar.resnet8", "--compare", "cifar.vit", "--json") == 0
    shown = json.loads(capsys.readouterr().out)["programs"]
    assert [one["name"] for one in shown] == ["facenet.nns2", "cifar.resnet8", "cifar.vit"]
    sizes = ["--D", "4", "--M", "4", "--R", "4"]
    assert run("cost", "softmax", *sizes, "--compare", "kernel", "--compare", "random_features", "--json") == 0
    won = json.loads(capsys.readouterr().out)["break_even"]
    assert [win["quantity"] for win in won] == ["macs", "traffic"] * 2
    assert (won[0]["cheaper"], won[0]["than"]) == (None, "attention.kernel")
    assert {win["cheaper"] for win in won[2:]} == {"attention.random_features"}


def test_steps_are_shown_as_polynomials_or_numbers(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("cost", "softmax", "--steps") == 0
    table = capsys.readouterr().out.split("steps of attention.softmax")[1].splitlines()[1:5]
    assert [row.split()[-5:-3] if "+" in row else row.split()[-4:-1] for row in table][1] == ["div", "0", "N^2"]
    assert "N^2*D" in table[0]
    assert "N^2*M" in table[3]
    assert run("cost", "softmax", "--steps", "--N", "10", "--D", "3", "--M", "5") == 0
    table = capsys.readouterr().out.split("steps of attention.softmax")[1].splitlines()[1:5]
    assert [row.split()[-4:] for row in table] == [
        ["mm", "300", "0", "160"],
        ["div", "0", "100", "200"],
        ["_softmax", "0", "100", "200"],
        ["mm", "500", "0", "200"],
    ]


def test_steps_of_a_network_are_its_segments(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("cost", "nns2", "--steps", "--json") == 0
    [shown] = json.loads(capsys.readouterr().out)["programs"]
    for quantity in ("params", "macs", "elementwise"):
        assert sum(step[quantity] for step in shown["steps"]) == shown["cost"][quantity]
    assert (shown["steps"][0]["name"], shown["steps"][0]["shape"]) == ("conv1", [12, 70, 58])
    assert run("cost", "nns2", "--steps") == 0
    assert "conv1" in capsys.readouterr().out


@pytest.mark.full
def test_all_networks_stand_in_one_table_beside_resnet50(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("cost", "networks") == 0
    heading, *rows, _, _ = capsys.readouterr().out.splitlines()
    shown = {row.split()[0]: row.split() for row in rows}
    assert {
        "facenet.nn1",
        "facenet.nns2",
        "resnet50.v1",
        "resnet50.v1_5",
        "cifar.resnet56",
        "cifar.vit",
    } <= shown.keys()
    assert heading.endswith("mac of resnet50.v1_5")
    assert shown["facenet.nn2"][1:3] + shown["facenet.nn2"][-2:] == ["7,456,304", "1,596,530,688", "39", "%"]
    macs = [int(row.split()[2].replace(",", "")) for row in rows]
    assert macs == sorted(macs, reverse=True)


FILE = """
import torch
from torch import nn

def step(batch, width):
    return nn.Linear(width, 3), torch.empty(batch, width)

def fixed():
    return lambda x: x.exp(), torch.empty(5)

def jumps(n):
    return lambda x: x + 1, torch.empty(n if n < 6 else n * n)

number = 1
"""


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "model.py"
    path.write_text(FILE)
    return str(path)


def test_a_function_of_a_file_is_counted(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("cost", f"{file}:step", "--batch", "2", "--width", "5", "--operations") == 0
    shown = capsys.readouterr().out
    assert "multiply-adds (mac)            3*batch*width\n" in shown
    assert "aten.addmm.default" in shown.splitlines()[-3]
    assert run("cost", f"{file}:fixed", "--json") == 0
    assert json.loads(capsys.readouterr().out)["programs"][0]["cost"]["elementwise"] == 5


def test_what_is_no_polynomial_is_said_beside_the_counts(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("cost", f"{file}:jumps", "--n", "7") == 0
    shown = capsys.readouterr()
    assert shown.err.startswith("likewise: cost_polynomial: counts must be polynomials of degree at most 4")
    assert ["traffic", "(elements)", "98"] in [line.split() for line in shown.out.splitlines()]
    assert run("cost", f"{file}:jumps") == 2


def test_refusals_are_one_line(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    for arguments, message in (
        (["sofmax"], "cost: program must be a registered program or file.py:function; got 'sofmax'. There are att"),
        (["triplets"], "program: facenet.triplets must be a program; got a counter. Ask for its count."),
        (["softmax", "--Q", "4"], "cost: sizes must be N, D, M for attention.softmax; got Q."),
        (["nn1", "--N", "4"], "cost: sizes must be none for facenet.nn1; got N."),
        (
            ["softmax", "--compare", "kernel", "--R", "4"],
            "cost: sizes must be N, D, M for attention.softmax or N, D, M",
        ),
        (["softmax", "--N", "4", "--N", "5"], "cost: --N must be given once; got 4 and 5."),
        (["networks", "--compare", "softmax"], "cost: networks must stand alone; got softmax."),
        (["softmax", "--N", "0"], "cost: --N must be a whole number of at least 1; got '0'."),
        (["softmax", "--N", "٣"], "cost: --N must be a whole number of at least 1; got '٣'."),
        (["softmax", "--N"], "cost: --N must be a whole number of at least 1; got ''."),
        (["softmax", "N", "4"], "cost: sizes must be options such as --N 8; got N."),
        (["mqa_step", "--streamed"], "program: memory must be materialised for attention.mqa_step; got 'streamed'."),
        (["absent.py:f"], "cost: program must be in a file that exists; got 'absent.py'."),
        ([f"{file}:number"], f"cost: program must name a function of {file}; got 'number'. Its functions: step, "),
        ([f"{file}:fixed", "--streamed"], f"cost: --streamed must be for registered programs; got {file}:fixed."),
        (
            ["softmax", "--compare", "kernel", "--over", "R"],
            "cost: --over must be a size of both, N, D, M; got 'R'.",
        ),
    ):
        assert run("cost", *arguments) == 2
        shown = capsys.readouterr()
        assert shown.out == ""
        assert shown.err.startswith(f"likewise: {message}")
        assert shown.err.count("\n") == 1
