"""Programs: the worked example to the letter, demonstrations for the catalogue's rows, and what hostile code gets."""

import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

import likewise
from likewise.claims.language.parser import parse
from likewise.claims.sandbox import child
from likewise.claims.sandbox.confinement import Code, _understood, run_confined
from likewise.claims.sandbox.engine import decide, program_file
from likewise.claims.verdict import Finding, Undecided
from likewise.programs.demonstrations import coursework
from tests.house import guards

X = "given: x[2,5,16]"
WIDE = """
import torch
from torch import nn


def split_heads(y):
    return y.view(y.shape[0], y.shape[1], 4, 4).transpose(1, 2)


def forward(x):
    return split_heads(nn.Linear(16, 32)(x))


def right(x):
    return split_heads(nn.Linear(16, 16)(x))
"""


def found(text: str, **options) -> Finding:
    finding = decide(parse(text), **options)
    assert finding is not None
    return finding


CATALOGUE = [
    (6, "run(argmax.scores) == [3, 11, 5, 2]", "holds"),
    (7, "run(argmax.output) == [1, 4, 3]", "holds"),
    (7, "run(argmax.output) == [0, -1, 4]", "refuted"),
    (9, "run(argmax.gradient_q) == 0", "holds"),
    (9, "run(argmax.gradient_k) == 0", "holds"),
    (10, "run(argmax.slope_at_a_tie) <= 1e6", "refuted"),
    (13, "run(argmax.gradient_v) == 0", "refuted"),
    (16, "run(mha.value_width_dk) succeeds", "refuted"),
    (17, "run(mha.full_width) succeeds", "holds"),
    (20, "run(attention.unscaled_error) <= 1e-9", "refuted"),
    (20, "run(attention.scaled_error) <= 1e-9", "holds"),
    (21, "run(softmax.row_sum_error) <= 1e-12", "holds"),
    (22, "run(mha.split_heads_error) == 0", "holds"),
    (23, "run(mha.bare_output_layer) succeeds", "refuted"),
    (23, "run(mha.bare_output_layer) raises NameError", "holds"),
    (23, "run(mha.own_output_layer) succeeds", "holds"),
    (24, "run(mha.key_width_dk) succeeds", "refuted"),
    (27, "run(mha.wide_values_fixed_split) succeeds", "refuted"),
    (27, "run(mha.wide_values_free_split) succeeds", "holds"),
    (62, "run(kernel.column_form_error) <= 1e-12", "holds"),
    (64, "run(kernel.mixed_form_error) <= 1e-12", "holds"),
    (69, "run(kernel.row_form_error) <= 1e-12", "holds"),
    (76, "run(softmax.online_error) <= 1e-12", "holds"),
    (94, "run(gram.exponential_smallest) >= 0", "holds"),
    (118, "run(causal.prefix_error) <= 1e-12", "holds"),
    (119, "run(causal.full_sums_error) <= 1e-9", "refuted"),
    (127, "run(causal.cumsum_error) > 1e-9", "refuted"),
    (176, "run(hooks.output_change) == 0", "holds"),
]


@pytest.mark.parametrize(("row", "relation", "verdict"), CATALOGUE)
def test_demonstrations_decide_their_rows_without_permission(row: int, relation: str, verdict: str) -> None:
    finding = found(f"assert: {relation}")
    assert (finding.verdict, finding.grade, finding.engine) == (verdict, "run", "run"), row


def test_every_demonstration_of_the_coursework_is_used_by_a_row() -> None:
    assert set(coursework.DEMONSTRATIONS) == {
        relation.partition("(")[2].partition(")")[0] for _, relation, _ in CATALOGUE
    }


def test_demonstrations_take_the_tensors_of_the_claim() -> None:
    finding = found(f"{X}\nassert: run(mha.value_width_dk, x) succeeds")
    assert finding.detail == "RuntimeError: shape '[2, 5, 4, 4]' is invalid for input of size 40"
    assert finding.witness == (("x", "normal [2, 5, 16], seed 0"),)
    finding = found("given: x[3,7,8]\nassert: run(mha.full_width, x) succeeds")
    assert finding.detail == "returned float32[3, 7, 8] for x normal [3, 7, 8], seed 0"


def test_wrong_number_of_inputs_is_no_refutation() -> None:
    with pytest.raises(Undecided, match="does not take 2 inputs"):
        decide(parse(f"{X}\nassert: run(mha.full_width, x, x) succeeds"))


def test_demonstrations_leave_the_random_numbers_of_others_alone() -> None:
    import torch

    torch.manual_seed(3)
    before = torch.get_rng_state()
    for demonstration in coursework.DEMONSTRATIONS.values():
        child.attempt(demonstration, [])
    assert torch.equal(before, torch.get_rng_state())


def test_code_is_off_without_permission(tmp_path: Path) -> None:
    (tmp_path / "mha_wide.py").write_text("raise SystemExit")
    finding = found(f"{X}\nassert: run(mha_wide.forward, x) succeeds", folder=str(tmp_path))
    assert (finding.verdict, finding.grade) == ("inconclusive", "undecided")
    assert finding.detail == "code claims are off; --allow-code runs them"


@pytest.mark.slow
def test_worked_example_prints_its_line(tmp_path: Path) -> None:
    (tmp_path / "mha_wide.py").write_text(WIDE)
    text = f"{X}\nbudget: 60\nassert: run(mha_wide.forward, x) succeeds"
    finding = found(text, allow_code=True, folder=str(tmp_path))
    assert (finding.verdict, finding.grade) == ("refuted", "run")
    assert finding.detail == "RuntimeError: shape '[2, 5, 4, 4]' is invalid for input of size 320"
    finding = found(text.replace("forward", "right"), allow_code=True, folder=str(tmp_path))
    assert finding.verdict == "holds"
    assert finding.detail == "returned float32[2, 4, 5, 4] for x normal [2, 5, 16], seed 0"


@pytest.mark.parametrize(
    "name", ["os.system", "a._hidden", "_a.f", "a.__class__", "sub.missing.f", "f", "outside.f", "a.b.c.d"]
)
def test_only_files_beside_the_claim_can_be_named(name: str, tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "a.py").write_text("_hidden = print")
    (tmp_path / "secret.py").write_text("def f(): return 1")
    (home / "outside.py").symlink_to(tmp_path / "secret.py")
    with pytest.raises(Undecided):
        program_file(name, str(home))
    with pytest.raises(Undecided):
        program_file(name, "")


FORGED = b'{"key": "", "outcome": {"returned": {"kind": "int", "numbers": ["0"]}}}\n'
# What code may try. None of it may harm, hang, or make the claim hold that the attempt succeeds.
ATTACKS = {
    "fork_bomb": "while True: os.fork()",
    "process": "subprocess.run([sys.executable, '-c', ''])",
    "exec": "os.execv(sys.executable, [sys.executable, '-c', ''])",
    "infinite_loop": "while True: pass",
    "sleep": "time.sleep(1000)",
    "huge_allocation": "return len(b'x' * (8 << 30))",
    "growing_list": "kept = []; deeper = [kept.append(bytearray(1 << 26)) for _ in range(10**9)]",
    "many_threads": "[threading.Thread(target=time.sleep, args=[99]).start() for _ in range(10**9)]",
    "write_here": "open('x', 'w').write('x')",
    "make_empty_file": "open('VICTIM.new', 'w').close()",
    "truncate": "open('VICTIM', 'w').close()",
    "remove": "os.remove('VICTIM')",
    "rename": "os.rename('VICTIM', 'VICTIM.old')",
    "permissions": "os.chmod('VICTIM', 0o777)",
    "folder": "os.mkdir('VICTIM.d')",
    "read_secret": "return len(open('VICTIM').read())",
    "open_socket": "socket.socket()",
    "connect": "socket.create_connection(('127.0.0.1', PORT), timeout=1)",
    "socket_pair": "socket.socketpair()",
    "environment": "return os.environ['LIKEWISE_TEST_SECRET']",
    "environment_of_parent": "return len(open(f'/proc/{os.getppid()}/environ', 'rb').read())",
    "memory_of_parent": "return open(f'/proc/{os.getppid()}/mem', 'rb').fileno()",
    "kill_parent": "os.kill(os.getppid(), 9)",
    "kill_group": "os.killpg(os.getpgid(os.getppid()), 9)",
    "kill_all": "os.kill(-1, 9)",
    "cores_of_parent": "os.sched_setaffinity(os.getppid(), os.sched_getaffinity(os.getppid()))",
    "policy_of_parent": "os.sched_setscheduler(os.getppid(), os.SCHED_BATCH, os.sched_param(0))",
    "signal_by_pipe": "fcntl.fcntl(os.pipe()[1], fcntl.F_SETOWN, os.getppid())",
    "signal_of_pipe": "fcntl.fcntl(os.pipe()[1], fcntl.F_SETSIG, 9)",
    "limits_of_parent": "resource.prlimit(os.getppid(), resource.RLIMIT_NOFILE, (1, 1))",
    "raise_limits": "resource.setrlimit(resource.RLIMIT_AS, (-1, -1))",
    "exit": "sys.exit(0)",
    "hard_exit": "os._exit(0)",
    "abort": "os.abort()",
    "crash": "ctypes.string_at(0)",
    "interrupt": "raise KeyboardInterrupt",
    "endless_recursion": "sys.setrecursionlimit(10**9); endless_recursion()",
    "message_that_exits": "raise type('E', (Exception,), {'__str__': lambda self: os._exit(0)})",
    "flood_of_answers": "[os.write(PIPE, b'x' * 65536) for _ in range(10**9)]",
    "forged_answer": "os.write(PIPE, FORGED)",
    "forged_and_left": "os.write(PIPE, FORGED); os._exit(0)",
    "malformed_answer": "os.write(PIPE, b'[' * 100_000 + b'\\n'); os._exit(0)",
}
REFUTED = ("environment", "raise_limits")
REASONS = {
    "infinite_loop": "",  # out of its time on the processor or, on a busy machine, on the clock
    "sleep": "still running after 6 s",
    "environment": "KeyError: 'LIKEWISE_TEST_SECRET'",
    "raise_limits": "ValueError: not allowed to raise maximum limit",
    "exit": "the code ended its process: SystemExit: 0",
    "interrupt": "the code ended its process: KeyboardInterrupt",
    "hard_exit": "ended without an answer (status 0)",
    "message_that_exits": "ended without an answer (status 0)",
    "abort": "ended without an answer (signal",
    "crash": "ended without an answer (signal 11)",
    "endless_recursion": "",  # out of stack or of time, whichever comes first
    "flood_of_answers": "answered with more than 1048576 bytes",
    "forged_answer": "not of the agreed form",
    "forged_and_left": "not of the agreed form",
    "malformed_answer": "not of the agreed form",
}
HEAVY = ("growing_list", "endless_recursion")  # tens of seconds on a busy machine
ENDLESS = ("infinite_loop", "sleep", "endless_recursion")
IMPORTS = "import ctypes, fcntl, os, resource, socket, subprocess, sys, threading, time\n"


@pytest.fixture(scope="module")
def layers(tmp_path_factory: pytest.TempPathFactory) -> str:
    """How this system confines code; hostile code is let loose only where every layer is there."""
    file = tmp_path_factory.mktemp("layers") / "net.py"
    file.write_text("def f(): return 1")
    _, said = run_confined(Code(file, "f"), 20)
    if "not forbidden" in said:
        pytest.skip(said)
    return said


@pytest.fixture
def hostile(tmp_path: Path, layers: str) -> Path:
    (tmp_path / "victim").write_text(f"precious: {layers}")
    return tmp_path


def answered(name: str, body: str, folder: Path, relation: str = "succeeds", budget: int = 30) -> tuple[str, str]:
    """The verdict on one function, and its detail."""
    (folder / "attack.py").write_text(f"{IMPORTS}\ndef {name}():\n    {body}\n")
    claim = parse(f"budget: {budget}\nassert: run(attack.{name}) {relation}")
    try:
        finding = decide(claim, allow_code=True, folder=str(folder))
    except Undecided as reason:
        return "inconclusive", str(reason)
    assert finding is not None
    return finding.verdict, finding.detail


@pytest.mark.slow
@pytest.mark.parametrize("name", [pytest.param(name, marks=[pytest.mark.full] * (name in HEAVY)) for name in ATTACKS])
def test_hostile_code_does_no_harm_and_never_succeeds(name: str, hostile: Path, monkeypatch) -> None:
    monkeypatch.setenv("LIKEWISE_TEST_SECRET", "hush")
    # The pipe of the answer is the only one above standard error; a hostile program would find it.
    pipe = "next(fd for fd in range(3, 64) if os.path.exists(f'/proc/self/fd/{fd}'))"
    before, started = (hostile / "victim").stat(), time.monotonic()
    precious = (hostile / "victim").read_text()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        body = (
            ATTACKS[name]
            .replace("VICTIM", str(hostile / "victim"))
            .replace("PIPE", pipe)
            .replace("FORGED", repr(FORGED))
        )
        body = body.replace("PORT", str(listener.getsockname()[1]))
        verdict, detail = answered(name, body, hostile, budget=2 if name in ENDLESS else 30)
    assert verdict == ("refuted" if name in REFUTED else "inconclusive"), detail
    assert REASONS.get(name, "the code met a limit of its confinement: ") in detail
    assert time.monotonic() - started < 40
    assert (hostile / "victim").read_text() == precious
    assert (hostile / "victim").stat().st_mode == before.st_mode
    assert sorted(os.listdir(hostile)) == ["attack.py", "victim"]
    assert not children_inside()


def children_inside(parent: int | None = None) -> list[int]:
    """Processes of ours, or of another, that run child.py."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            command = (folder / "cmdline").read_bytes()
            above = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
        except (OSError, ValueError):
            continue
        if above == (parent or os.getpid()) and child.__file__.encode() in command:
            found.append(int(folder.name))
    return found


@pytest.mark.slow
@pytest.mark.parametrize(
    ("body", "relation", "verdict", "detail"),
    [
        ("print('x' * 10**8); return 1", "succeeds", "holds", "returned int"),
        ("print('x' * 10**8); return 1", "== 1", "holds", "returned 1"),
        ("return float('nan')", "== 0", "refuted", "returned nan"),
        ("return float('nan')", "<= 0", "refuted", "returned nan"),
        ("return float('nan')", "> 0", "refuted", "returned nan"),
        ("return float('nan')", "!= 0", "inconclusive", "returned nan, which differs from everything"),
        ("return float('inf')", "> 0", "holds", "returned inf"),
        ("return float('-inf')", ">= 0", "refuted", "returned -inf"),
        ("return float('inf')", "== 0", "refuted", "returned inf"),
        ("return lambda: 0", "== 0", "inconclusive", "returned function, which is not numbers"),
        ("return (i for i in [0])", "== 0", "inconclusive", "returned generator, which is not numbers"),
        ("return threading.Lock()", "<= 1", "inconclusive", "returned lock, which is not numbers"),
        ("return '0'", "== 0", "inconclusive", "returned str, which is not numbers"),
        ("return []", "== 0", "inconclusive", "returned list, which is not numbers"),
        ("x = []; x.append(x); return x", "== 0", "inconclusive", "returned list, which is not numbers"),
        ("return [0.0] * 20_000", "== 0", "inconclusive", "returned list, which is not numbers"),
        ("return 10**10_000", "> 0", "inconclusive", "returned int, which is not numbers"),
        ("return type('Equal', (float,), {'__eq__': lambda a, b: True})(1)", "== 0", "inconclusive", None),
        ("return [1, (2, 3.5)]", "== [1, 2, 7/2]", "holds", "returned 1, 2, 3.5"),
        ("return [1, 2]", "== [1, 3]", "refuted", "entry 2: 2 != 3"),
        ("return [1, 2]", "== [1, 2, 3]", "refuted", "returned 2 numbers, not 3"),
        ("return 0.1", "== 0.1", "refuted", None),
        ("return 0.1", "== 0.1 within 1e-9", "holds", "returned 0.1"),
        ("return True", "== 1", "holds", "returned 1"),
        ("raise ValueError('a\\x1b[31mb\\nsecond line')", "raises ValueError", "holds", "ValueError: a[31mb"),
        ("raise UnicodeError('x')", "raises ValueError", "holds", "UnicodeError: x"),
        ("raise KeyError('x')", "raises ValueError", "refuted", "KeyError: 'x'"),
        ("raise KeyError('x')", "raises", "holds", "KeyError: 'x'"),
        ("raise KeyError('x')", "== 0", "refuted", "KeyError: 'x'"),
        ("sys.exit()", "raises", "inconclusive", None),
        ("os.fork()", "raises", "inconclusive", None),
        ("os._exit(0)", "raises", "inconclusive", None),
        ("import nowhere", "raises ImportError", "inconclusive", None),
        ("return 1", "raises ValueError", "refuted", "returned int"),
        ("return (", "succeeds", "refuted", "SyntaxError: '(' was never closed (attack.py, line 4)"),
    ],
)
def test_outcomes_are_judged_outside(body, relation, verdict, detail, tmp_path: Path) -> None:
    found_verdict, found_detail = answered("f", body, tmp_path, relation)
    assert found_verdict == verdict, found_detail
    assert detail is None or found_detail == detail


def test_missing_function_is_inconclusive(tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text("forward = 3")
    for name in ("net.forward", "net.backward"):
        with pytest.raises(Undecided, match="not defined there"):
            decide(parse(f"assert: run({name}) succeeds"), allow_code=True, folder=str(tmp_path))


def test_limits_and_layers_are_in_place(tmp_path: Path, layers: str) -> None:
    (tmp_path / "net.py").write_text(
        "import os, resource as r\ndef f(n):\n    return [*r.getrlimit(r.RLIMIT_AS), *r.getrlimit(r.RLIMIT_FSIZE), "
        "r.getrlimit(r.RLIMIT_NPROC)[0], r.getrlimit(r.RLIMIT_CPU)[0], len(os.listdir('.')), n]"
    )
    most = child.MEMORY
    text = f"budget: 30\nassert: run(net.f, 5) == [{most}, {most}, 0, 0, 0, 31, 0, 5]"
    finding = found(text, allow_code=True, folder=str(tmp_path))
    assert finding.verdict == "holds", finding
    assert layers == "limits of time and memory, no files, no names of files, no network, no processes or threads"
    assert dict(finding.numbers)["confinement"] == layers


def test_no_thread_is_started(tmp_path: Path) -> None:
    """Threads of root are bound by no limit of its own, and those of many claims add up: there are none."""
    body = "started = []\n    for _ in range(9):\n        threading.Thread(target=time.sleep, args=[0]).start()"
    verdict, detail = answered("threads", body, tmp_path)
    assert verdict == "inconclusive"
    assert "can't start new thread" in detail


@pytest.mark.usefixtures("layers")
def test_only_python_and_this_package_are_seen(tmp_path: Path) -> None:
    """Also in an editable install, whose checkout is an entry of sys.path; a name is not told either."""
    (tmp_path / "secret").write_text("hush")
    hidden = [guards.ROOT / "pyproject.toml", guards.ROOT / "tests", tmp_path / "secret", Path("/etc/passwd")]
    seen = [os.__file__, likewise.__file__, os.devnull]
    assert all(map(os.path.exists, map(str, [*hidden, *seen])))
    for paths, count in ((hidden, 0), (seen, len(seen))):
        names = list(map(str, paths))
        verdict, detail = answered("look", f"return sum(map(os.path.lexists, {names}))", tmp_path, f"== {count}")
        assert verdict == "holds", detail


def test_this_package_may_be_imported(tmp_path: Path) -> None:
    body = "from likewise.checks import require_count; return require_count('f', 'n', 3) is None"
    assert answered("ours", body, tmp_path, "== 1")[0] == "holds"


def test_layers_that_the_system_refused_are_said() -> None:
    returned = b'{"key": "k", "outcome": {"returned": {"kind": "int", "numbers": ["0"], "scalar": true}}}'
    _, said = _understood(b'{"files": true, "names": true, "network": false, "processes": false}\n' + returned, 0, "k")
    assert said == (
        "limits of time and memory, no files, no names of files; network, processes or threads not forbidden by this "
        "system, so the code was trusted"
    )


def test_code_dies_with_the_process_that_waits_for_it(tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text("import time\ndef f():\n    time.sleep(1000)")
    program = (
        "import sys; from pathlib import Path; from likewise.claims.sandbox.confinement import *; "
        "run_confined(Code(Path(sys.argv[1]), 'f'), 60)"
    )
    root = str(Path(child.__file__).parents[3])
    waiting = subprocess.Popen([sys.executable, "-c", program, str(tmp_path / "net.py")], cwd=root)
    ends = time.monotonic() + 30
    while not (children := children_inside(waiting.pid)) and time.monotonic() < ends:
        time.sleep(0.05)
    time.sleep(0.3)  # it has asked by then to die with its parent
    waiting.kill()
    waiting.wait()
    assert children
    while any(Path(f"/proc/{child}").exists() for child in children) and time.monotonic() < ends:
        time.sleep(0.05)
    assert not any(Path(f"/proc/{child}").exists() for child in children)
