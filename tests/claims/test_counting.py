"""A file of the user is counted where it can do no harm, and what comes back is taken for nothing more than numbers."""

import json
import os
import socket
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import torch

from likewise import cli
from likewise.claims import checking
from likewise.claims.growth.counts import decide
from likewise.claims.language.parser import parse
from likewise.claims.language.tokens import Unparsed
from likewise.claims.sandbox import child
from likewise.claims.sandbox.confinement import MALFORMED, Code, program_file, run_confined
from likewise.claims.verdict import Finding, Undecided
from likewise.programs import counting
from likewise.programs.counting import count_file
from likewise.programs.sandbox_counting import loaded_counter

ATTEND = """
import torch


def attend(q, k, v):
    return (q @ k.T).softmax(-1) @ v


def step(N, D, M):
    return attend, torch.empty(N, D), torch.empty(N, D), torch.empty(N, M)


def layer():
    return torch.nn.Linear(3, 5), torch.empty(7, 3)


def roots(n):
    return torch.linalg.eigvals, torch.empty(n, n)


def branch(n):
    return (torch.sin if n < 7 else torch.nn.Softmax(0)), torch.empty(2**n)


def wrong(n):
    raise ValueError("no \\x1b[31m such thing\\nat all")


def leave(n):
    raise SystemExit


def listed(*, N, rows=3):
    return attend, torch.empty(N, rows), torch.empty(N, rows), torch.empty(N, rows)


def plain(n):
    return n


number = 3
"""
HARMS = """
import os, resource, socket, subprocess, sys, threading, torch


def nothing(n):
    harms = {
        "fork": lambda: os.fork(),
        "program": lambda: subprocess.run([sys.executable, "-c", ""]),
        "write": lambda: open("here", "w").write("x"),
        "truncate": lambda: open("VICTIM", "w").close(),
        "remove": lambda: os.remove("VICTIM"),
        "read": lambda: open("VICTIM").read(),
        "connect": lambda: socket.create_connection(("127.0.0.1", PORT), timeout=1),
        "kill": lambda: os.kill(os.getppid(), 9),
        "limits": lambda: resource.setrlimit(resource.RLIMIT_AS, (-1, -1)),
        "memory": lambda: bytearray(8 << 30),
        "tensor": lambda: torch.zeros(1 << 31),
        "secret": lambda: os.environ["LIKEWISE_TEST_SECRET"],
        "question": lambda: os.pread(0, 10**6, 0).index(b"key"),
    }
    done = []
    for name, harm in harms.items():
        try:
            harm()
        except (OSError, MemoryError, RuntimeError, ValueError, KeyError):
            continue
        done.append(name)
    raise RuntimeError(f"done: {done}")
"""


def found(text: str, folder: Path, **options: Any) -> Finding:
    finding = decide(parse(text.replace(" | ", "\n")), allow_code=True, folder=str(folder), **options)
    assert finding is not None
    return finding


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "attend.py").write_text(ATTEND)
    return tmp_path


@pytest.fixture
def in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the process of the code does, without the process; the way there and back is JSON all the same."""

    def run(code: Code, seconds: float) -> tuple[dict[str, Any], str]:
        request: dict[str, Any] = {"module": code.file.stem, "file": code.file.name, "source": code.source}
        request |= {"attribute": code.attribute, "arguments": list(code.arguments)}
        monkeypatch.setitem(sys.modules, code.file.stem, child)
        return json.loads(json.dumps(child.outcome(request, loaded_counter()))), "none"

    monkeypatch.setattr(counting, "run_confined", run)
    monkeypatch.setattr(counting, "_known", {})


SIZED = "of: attend.py:step | sizes: N, D, M"


@pytest.mark.slow
def test_file_is_counted_in_a_confined_process_and_its_polynomial_decides(folder: Path) -> None:
    (folder / "attend.py").write_text(f"from likewise.attention import Elu\n{ATTEND}")  # our package can be used
    finding = found(f"budget: 30 | {SIZED} | assert: cost in O(N*D*M)", folder)
    assert (finding.verdict, finding.grade) == ("refuted", "counted, your code, 12+4 runs")
    assert finding.detail == "N^2*D escapes along N=t (ratio ~ t); holds assuming N <= M, N <= D"
    assert dict(finding.witness)["N"] == "t"
    assert dict(finding.numbers)["cost(attend.py:step)"] == "N^2*D + N^2*M mac, N^2 elementwise"
    assert dict(finding.numbers)["confinement"].startswith("limits of time and memory")
    assert dict(finding.numbers)["torch"].startswith(torch.__version__.partition("+")[0])
    started = time.monotonic()
    finding = found(f"budget: 30 | {SIZED} | assert: cost in Theta(N^2*(D + M))", folder)
    assert (finding.verdict, time.monotonic() - started < 1) == ("holds", True)  # the same source was counted before


@pytest.mark.usefixtures("in_this_process")
@pytest.mark.parametrize(
    ("text", "verdict", "part"),
    [
        ("unit: mac | assert: cost == N^2*D + N^2*M", "holds", "N^2*D + N^2*M mac"),
        ("unit: flop | assert: cost == N^2*D + N^2*M", "refuted", "N=1 D=1 M=1: 4 != 2"),
        ("assert: peak == max(N^2 + 2*N*D + 2*N*M, 2*N^2 + 2*N*D + N*M)", "holds", "max("),
        ("assert: saved in Theta(N^2 + N*D + N*M)", "holds", "saved = N^2 + 2*N*D + N*M"),
        ("assert: traffic in O(N*D + N*M)", "refuted", "kernel: fused"),
        ("kernel: fused | assert: traffic == 2*N*D + 2*N*M", "holds", "2*N*D + 2*N*M"),
        ("assert: params == 0", "holds", "0"),
        ("unit: mac | assert: cost(attend.py:step) == cost(attention.softmax)", "holds", "equal as polynomials"),
        ("unit: mac | assert: cost(attend.step) == cost(attend.py:step)", "holds", "equal as polynomials"),
    ],
)
def test_every_quantity_is_decided_as_for_a_program_of_ours(text: str, verdict: str, part: str, folder: Path) -> None:
    finding = found(f"{SIZED} | {text}", folder)
    assert (finding.verdict, part in finding.detail) == (verdict, True), finding
    assert finding.grade.startswith("counted, your code, ")
    assert "confinement" not in finding.detail


@pytest.mark.usefixtures("in_this_process")
def test_file_without_sizes_is_counted_once(folder: Path) -> None:
    finding = found("of: attend.py:layer | assert: params == 20", folder)
    assert (finding.verdict, finding.grade, finding.detail) == ("holds", "counted, your code", "20")
    finding = found("of: attend.py:layer | unit: mac | assert: cost == 100", folder)
    assert (finding.verdict, finding.witness, finding.detail) == ("refuted", (("cost", "105"),), "105, 5% off")


@pytest.mark.usefixtures("in_this_process")
def test_file_may_have_the_name_of_a_program_of_ours(folder: Path) -> None:
    (folder / "attention.py").write_text(
        ATTEND.replace("def step", "def softmax").replace("(q @ k.T)", "(q @ k.T / 2)")
    )
    text = "of: {} | sizes: N, D, M | unit: mac | assert: traffic == 0"
    assert found(text.format("attention.softmax"), folder).grade == "counted, 12+4 runs"
    assert found(text.format("attention.py:softmax"), folder).grade == "counted, your code, 12+4 runs"


@pytest.mark.usefixtures("in_this_process")
@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("of: attend.py:missing | assert: params == 0", "attend.py:missing is not defined there, or cannot be called"),
        ("of: attend.py:number | assert: params == 0", "is not defined there, or cannot be called"),
        ("of: attend.py:wrong | assert: params == 0", "could not be counted: ValueError: no [31m such thing"),
        ("of: attend.py:leave | assert: params == 0", "could not be counted: SystemExit"),
        ("of: attend.py:plain | assert: params == 0", "could not be counted: TypeError: "),
        ("of: attend.py:roots | sizes: n | assert: cost in O(n^3)", "could not be counted: Uncounted: "),
        ("of: attend.py:branch | sizes: n | assert: cost in O(n)", "could not be counted: NotPolynomial: "),
        ("of: broken.py:f | assert: params == 0", "SyntaxError: '(' was never closed (broken.py, line 1)"),
        ("of: long.py:f | assert: params == 0", "long.py is longer than 1048576 bytes"),
        ("of: nowhere.py:f | assert: params == 0", "no nowhere.py beside the claim"),
        ("of: sub/nowhere.py:f | assert: params == 0", "no sub/nowhere.py beside the claim"),
        ("of: attend.py:_hidden | assert: params == 0", "names something private"),
        ("of: attend.py:step | assert: count == 1", "attend.py:step is no counter; ask for cost"),
        (f"{SIZED} | memory: streamed | assert: peak in O(N)", "attend.py:step has no streamed variant"),
        ("of: attend.py:step | sizes: N, D | assert: cost in O(N)", "M is not declared"),
    ],
)
def test_whatever_is_wrong_with_a_file_is_a_reason(text: str, reason: str, folder: Path) -> None:
    (folder / "broken.py").write_text("f = (")
    (folder / "long.py").write_text("#" * (1 << 20) + "\n")
    with pytest.raises(Undecided) as refused:
        found(text, folder)
    assert reason in str(refused.value)
    assert "\x1b" not in str(refused.value)


@pytest.mark.usefixtures("in_this_process")
def test_sizes_are_the_parameters_of_the_function(folder: Path) -> None:
    finding = found("of: attend.py:listed | sizes: N, rows | unit: mac | assert: cost == 2*N^2*rows", folder)
    assert finding.verdict == "holds"


def test_without_permission_no_file_is_looked_at(folder: Path) -> None:
    for name, reason in {
        "attend.py:step": "code claims are off; --allow-code runs them",
        "attend.step": "unknown program attend.step; --allow-code counts a function of your own file",
    }.items():
        with pytest.raises(Undecided) as refused:
            decide(parse(f"of: {name}\nassert: params == 0"), folder=str(folder / "nowhere"))
        assert str(refused.value) == reason


@pytest.mark.parametrize(
    "name", ["../a.py:f", "/a.py:f", "a.py", "a:f", "a/b", "a.py:f.g", "a.py:", "a.pyc:f", "~/a.py:f"]
)
def test_what_is_no_file_beside_the_claim_cannot_be_named(name: str, tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("def f(): return 1")
    home = tmp_path / "home"
    home.mkdir()
    try:
        claim = parse(f"of: {name}\nassert: params == 0")
    except Unparsed:
        return
    with pytest.raises(Undecided):
        program_file(str(claim.program), str(home))


@pytest.mark.parametrize("name", ["a/b", "a:f", "a.pyc:f", "a/b.pyx:f"])
def test_file_is_named_with_its_function(name: str) -> None:
    with pytest.raises(Unparsed, match=r"expected a function of a file, as in net\.py:step"):
        parse(f"of: {name}\nassert: params == 0")


def test_folders_are_written_as_paths_and_printed_back(tmp_path: Path) -> None:
    (tmp_path / "nets").mkdir()
    (tmp_path / "nets" / "small.py").write_text("")
    claim = parse("of: nets/small.py:step\nsizes: n\nassert: cost(nets/small.py:step)/n < cost(attention.softmax)")
    assert claim.statement == (
        "sizes: n | of: nets/small.py:step | assert: cost(nets/small.py:step)/n < cost(attention.softmax)"
    )
    assert parse(claim.statement.replace(" | ", "\n")).statement == claim.statement
    assert program_file("nets/small.py:step", str(tmp_path)) == (tmp_path / "nets" / "small.py", "step")
    assert program_file("nets.small.step", str(tmp_path)) == (tmp_path / "nets" / "small.py", "step")


@pytest.fixture(scope="module")
def confined(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Hostile code is let loose only where every layer is there."""
    file = tmp_path_factory.mktemp("layers") / "net.py"
    file.write_text("def f(): return 1")
    _, said = run_confined(Code(file, "f"), 20)
    if "not forbidden" in said:
        pytest.skip(said)


@pytest.mark.slow
@pytest.mark.usefixtures("confined")
def test_nothing_that_code_tries_while_it_is_counted_succeeds(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("LIKEWISE_TEST_SECRET", "hush")
    victim = tmp_path / "victim"
    victim.write_text("precious")
    home = tmp_path / "home"
    home.mkdir()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = str(listener.getsockname()[1])
        (home / "harm.py").write_text(HARMS.replace("VICTIM", str(victim)).replace("PORT", port))
        with pytest.raises(Undecided) as refused:
            count_file("harm.py:nothing", ("macs",), folder=str(home), seconds=30)
    assert str(refused.value) == "harm.py:nothing could not be counted: RuntimeError: done: []"
    assert victim.read_text() == "precious"
    assert os.listdir(home) == ["harm.py"]


PIPE = "next(fd for fd in range(3, 64) if os.path.exists(f'/proc/self/fd/{fd}'))"
LIE = f"""
main = next(f for f in map(sys._getframe, range(99)) if f.f_code.co_name == "main")
lie = {{"sizes": [], "polynomials": [[[[[], 10**100, 1]]]], "grid": 1, "hold_outs": 1}}
os.write({PIPE}, json.dumps({{"key": main.f_locals["key"], "outcome": {{"returned": lie}}}}).encode() + b"\\n")
os._exit(0)
"""  # a liar that finds the key
HOSTILE = {
    "loop": ("while True: pass", ""),  # out of its time on the processor or on the clock, whichever comes first
    "flood": (f"[os.write({PIPE}, b'x' * 65536) for _ in range(10**9)]", "answered with more than 1048576 bytes"),
    "lie": (LIE, MALFORMED),
}


@pytest.mark.full
@pytest.mark.usefixtures("confined")
@pytest.mark.parametrize("name", ["lie", *(pytest.param(name, marks=pytest.mark.full) for name in ("loop", "flood"))])
def test_file_that_will_not_be_counted_ends_undecided(name: str, tmp_path: Path) -> None:
    body, reason = HOSTILE[name]
    (tmp_path / "net.py").write_text(f"import json, os, sys\ndef f(): return 0\n{body}\n")
    with pytest.raises(Undecided) as refused:
        count_file("net.py:f", ("macs",), folder=str(tmp_path), seconds=1 if name == "loop" else 30)
    assert reason in str(refused.value)


PAGE = f"```claim mine\n{SIZED}\nunit: mac\nbudget: 30\nassert: cost == N^2*D\nexpect: {{}}\n```\n".replace(" | ", "\n")


@pytest.mark.parametrize(
    ("options", "expect", "part"), [([], "inconclusive", "off"), (["--allow-code"], "refuted", "2 != 1")]
)
def test_flag_of_the_command_line_lets_a_file_be_counted(options, expect, part, folder: Path, capsys) -> None:
    (folder / "page.md").write_text(PAGE.format(expect))
    with pytest.raises(SystemExit) as stopped:
        cli.main(["check", str(folder / "page.md"), *options])
    assert (stopped.value.code, part in capsys.readouterr().out) == (0, True)


def test_a_file_is_given_time_to_be_loaded_only_where_code_is_allowed() -> None:
    [stated] = checking.markdown_claims(PAGE.format("refuted"), file="page.md")
    asked = checking._ask(stated, 0, 5.0)
    assert asked.question(False)[::2] == ("pure", 5.0)
    kind, question, seconds = asked.question(True)
    assert (kind, question["allow_code"], seconds) == ("pure", True, 20.0)
