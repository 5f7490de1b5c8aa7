"""Programs reach the parent and every worker through entry points, and run under a deadline and a bound of memory."""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from likewise.claims import ClaimSource, check, check_claims
from likewise.claims import pool as pools
from likewise.claims.registry import demonstrations, program, registered_here
from likewise.claims.worker import MEMORY
from tests.house.test_lightness import heavy_imports

SOFTMAX = "of: attention.softmax\nsizes: N, D, M\nunit: mac\nassert: cost == N^2*D + N^2*M"
OTHERS = """
    def limits():
        import os, resource
        return [*resource.getrlimit(resource.RLIMIT_AS)[:1], os.getpid()]


    def sleep():
        import time
        time.sleep(600)


    def fill():
        return len(bytearray(64 << 30))


    def rows(n, d):
        import torch
        return (torch.empty(n, d, device="meta"),)


    def register_all():
        from likewise.claims.registry import register, register_demonstration
        register("others.gram", lambda x: x @ x.T, rows)
        for function in (limits, sleep, fill):
            register_demonstration(f"others.{function.__name__}", function)
"""
CHECKS = """
    import json, sys
    from likewise.claims import check
    assert "torch" not in sys.modules
    print(json.dumps([check(text).to_json() for text in sys.argv[1:]]))
    assert "torch" not in sys.modules
"""


@pytest.fixture
def other_package(tmp_path: Path) -> dict[str, str]:
    """An installed package with programs of its own: the environment of a process that finds it."""
    (tmp_path / "others.py").write_text(textwrap.dedent(OTHERS))
    info = tmp_path / "others-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: others\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[likewise.programs]\nothers = others:register_all\n")
    return {**os.environ, "PYTHONPATH": str(tmp_path)}


def checked(environment: dict[str, str], *texts: str) -> list[dict]:
    command = [sys.executable, "-c", textwrap.dedent(CHECKS), *texts]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=300)
    import json

    return json.loads(done.stdout)


def test_another_package_brings_programs_that_run_in_a_bounded_worker(other_package: dict[str, str]) -> None:
    gram, limits, filled, late = checked(
        other_package,
        "of: others.gram\nsizes: n, d\nunit: mac\nassert: cost == n^2*d",
        f"assert: run(others.limits) == [{MEMORY['torch']}, 0]",
        "assert: run(others.fill) > 0",
        "budget: 1\nassert: run(others.sleep) > 0",
    )
    assert (gram["verdict"], gram["detail"]) == ("holds", "n^2*d mac")
    assert limits["detail"].startswith("entry 2: ")  # its memory is bounded, and its process is another one
    assert (filled["verdict"], "MemoryError" in filled["detail"]) == ("inconclusive", True)
    assert (late["verdict"], late["detail"]) == ("inconclusive", "over its deadline (1 s)")


def test_a_program_of_ours_is_counted_in_a_worker_with_a_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    ask = pools.Worker.ask

    def noted(worker: pools.Worker, question: dict, seconds: float) -> dict:
        asked.append((worker._kind, question["claim"].program, seconds))
        return ask(worker, question, seconds)

    monkeypatch.setattr(pools.Worker, "ask", noted)
    found = check(SOFTMAX, budget=7.0)
    assert str(found) == "holds  claim  N^2*D + N^2*M mac  [counted, 12+4 runs]"
    assert asked == [("torch", "attention.softmax", pools.WALL_TIME_FACTOR * 5.0 + pools.GRACE)]
    monkeypatch.setattr(pools, "WALL_TIME_FACTOR", 0.0)
    monkeypatch.setattr(pools, "GRACE", 1e-6)
    assert check(SOFTMAX).detail == "over its deadline (5 s)"


@pytest.mark.full
def test_a_broken_package_takes_nothing_else_away(tmp_path: Path, other_package: dict[str, str]) -> None:
    (tmp_path / "others.py").write_text("raise ImportError('no such luck')")
    [found] = checked(other_package, SOFTMAX)
    assert found["verdict"] == "holds"


def test_without_torch_a_count_says_what_to_install(tmp_path: Path) -> None:
    (tmp_path / "torch.py").write_text("raise ModuleNotFoundError('No module named torch', name='torch')")
    counted, algebra = checked({**os.environ, "PYTHONPATH": str(tmp_path)}, SOFTMAX, "assert: 1 == 1")
    assert counted["verdict"] == "inconclusive"
    assert counted["detail"].endswith("Try: pip install 'likewise[torch]'")
    assert algebra["verdict"] == "holds"


def test_loading_programs_imports_nothing_heavy() -> None:
    load = "from likewise.claims.registry import load_programs, programs; load_programs(); assert programs()"
    assert heavy_imports(load) == set()


def test_programs_of_packages_are_known_everywhere_and_those_of_the_caller_only_here() -> None:
    assert not registered_here("attention.softmax")
    assert program("attention.softmax").sizes == ("N", "D", "M")
    assert "probes.support_lost" in demonstrations()
    assert not registered_here("nobody.registered_this")


def test_claims_without_programs_load_no_entry_points() -> None:
    code = (
        "from likewise.claims import check\nfrom likewise.claims import registry\n"
        "assert check('1 == 1').verdict == 'holds'\nassert not registry._is_loaded"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_malformed_claims_start_no_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pools.Worker, "_start", lambda worker: pytest.fail("a worker was started"))
    [found] = check_claims([ClaimSource("typo", "assert: 1 ==")])
    assert found.verdict in ("inconclusive", "malformed")
