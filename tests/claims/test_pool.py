"""A claim gets its time and no more; whatever happens to a worker, the next claim is answered."""

import os
import signal
import threading
import time
from dataclasses import replace
from typing import Any

import pytest

from likewise.claims import ClaimSource, check, check_claims
from likewise.claims import pool as pools
from likewise.claims.language.parser import parse
from likewise.claims.pool import Late, Pool, Worker

TRUE = {"claim": replace(parse("assert: 1 == 1"), seed=0), "allow_code": False, "folder": ""}
HANG = "import json, time; print(json.dumps({'ready': 1}), flush=True); input(); time.sleep(60)"
DIES = "import json, os; print(json.dumps({'ready': 1}), flush=True); input(); os._exit(3)"
CHATS = "import json; print(json.dumps({'ready': 1}), flush=True); input(); print('x' * (1 << 21))"
NEVER_READY = "import time; time.sleep(60)"


@pytest.mark.parametrize(
    ("program", "reason"), [(HANG, "over its deadline"), (DIES, "its worker ended"), (CHATS, "its answer was too long")]
)
def test_a_worker_that_misbehaves_is_late_and_gone(program: str, reason: str, monkeypatch: pytest.MonkeyPatch) -> None:
    worker = Worker("pure")
    monkeypatch.setattr(Worker, "boot", program)
    started = time.monotonic()
    with pytest.raises(Late, match=reason):
        worker.ask(TRUE, 1.0)
    assert time.monotonic() - started < 20.0
    monkeypatch.undo()
    assert worker.ask(TRUE, 30.0)["finding"]["verdict"] == "holds"
    worker.stop()


def test_a_worker_that_never_starts_is_late(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Worker, "boot", NEVER_READY)
    monkeypatch.setattr(pools, "START", 0.5)
    with pytest.raises(Late, match="over its deadline"):
        Worker("pure").ask(TRUE, 1.0)


def test_a_killed_worker_is_replaced() -> None:
    worker = Worker("pure")
    assert worker.ask(TRUE, 30.0)["finding"]["verdict"] == "holds"
    assert worker._process is not None
    os.kill(worker._process.pid, signal.SIGKILL)
    worker._process.wait()
    with pytest.raises(Late, match="its worker ended"):
        worker.ask(TRUE, 30.0)
    assert worker.ask(TRUE, 30.0)["finding"]["verdict"] == "holds"
    worker.stop()


def test_a_stopped_worker_leaves_no_process() -> None:
    worker = Worker("pure")
    worker.ask(TRUE, 30.0)
    assert worker._process is not None
    number = worker._process.pid
    worker.stop()
    with pytest.raises(ProcessLookupError):
        os.kill(number, 0)


@pytest.mark.parametrize("reason", ["seconds", "gone"])
def test_all_questions_end_together(reason: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A deadline for all, or nobody who waits: what runs is killed, and what waits is not begun."""
    monkeypatch.setattr(Worker, "boot", HANG)
    pool, answers, gone = Pool(2), {}, threading.Event()
    threading.Timer(1.0, gone.set).start()
    started = time.monotonic()
    seconds = 1.0 if reason == "seconds" else 100.0
    pool.ask_all([("pure", TRUE, 30.0)] * 5, answers.__setitem__, seconds=seconds, gone=gone)
    assert time.monotonic() - started < 20.0
    assert sorted(answers) == [0, 1, 2, 3, 4]
    assert all(isinstance(answer, Late) for answer in answers.values())
    for _ in range(100):
        if len(pool._idle["pure"]) == 2:
            break
        time.sleep(0.1)
    assert all(worker._process is None for worker in pool._idle["pure"])
    assert 1 <= len(pool._idle["pure"]) <= 2


def test_a_pool_keeps_its_workers_and_answers_all() -> None:
    pool = Pool(2)
    answers: dict[int, Any] = {}
    for _ in range(2):
        pool.ask_all([("pure", {**TRUE, "id": str(i)}, 30.0) for i in range(5)], answers.__setitem__)
        assert sorted(answers) == [0, 1, 2, 3, 4]
        assert all(answer["finding"]["verdict"] == "holds" for answer in answers.values())
    assert 1 <= len(pool._idle["pure"]) <= 2
    pool.close()
    assert pool._idle == {"pure": [], "torch": []}


@pytest.mark.full
def test_a_late_claim_is_inconclusive_and_the_rest_is_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pools, "GRACE", 0.0)
    monkeypatch.setattr(pools, "WALL_TIME_FACTOR", 1.0)
    slow = ClaimSource("slow", "assert: 1 == 1\nbudget: 1e-6s")
    verdicts = check_claims([slow, ClaimSource("fast", "assert: 1 == 2")])
    assert [verdict.verdict for verdict in verdicts] == ["inconclusive", "refuted"]
    assert "deadline" in verdicts[0].detail or "budget" in verdicts[0].detail


def test_checks_from_many_threads_are_answered() -> None:
    found: list[str] = []

    def ask(number: int) -> None:
        found.append(check(f"{number} == {number}").verdict)

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert found == ["holds"] * 6
