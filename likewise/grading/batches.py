"""Many answers against their keys, over processes with a hard deadline for each answer."""

import contextlib
import json
import os
import pickle
import queue
import sys
import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

from likewise.checks import require, require_count
from likewise.claims.pool import Late, Worker
from likewise.files import json_hash, write_whole
from likewise.grading.grading import SECONDS, VERDICTS, Grade, grade, reward_of
from likewise.progress import Progress, silent
from likewise.stats import clopper_pearson

DEADLINE = 4 * SECONDS + 2  # seconds by the clock, after which a process is killed; grade() itself stops at SECONDS
MEMORY = 2 << 30  # bytes of address space
BOOT = "import sys; sys.path.insert(0, sys.argv[2]); from likewise.grading.batches import serve; serve()"


@dataclass(frozen=True)
class Pair:
    """One answer and its key; the other fields are those of `grade`."""

    id: str
    answer: str
    key: str
    given: str | None = None
    conventions: Mapping[str, Any] | None = None

    @property
    def hash(self) -> str:
        """SHA-256 of all fields."""
        return json_hash([self.id, self.answer, self.key, self.given, dict(self.conventions or {})])


def grade_all(
    pairs: Iterable[Pair],
    *,
    depends: float | None = None,
    undecided: float | None = None,
    workers: int | None = None,
    progress: Progress = silent,
) -> Iterator[tuple[Pair, Grade]]:
    """Grade pairs in worker processes; yields each pair with its grade as soon as it is finished.

    A process that is late or dies is killed and replaced; its answer is undecided, the next finds a new process.
    workers: processes; two or the number of cores, if that is less, unless given.
    """
    pairs = list(pairs)
    if workers is not None:
        require_count("grade_all", "workers", workers)
    for pair in pairs[:1]:  # wrong rewards and conventions are an error here, not in every process
        grade("1", "1", pair.given, pair.conventions, depends=depends, undecided=undecided)
    waiting: queue.SimpleQueue[Pair] = queue.SimpleQueue()
    finished: queue.SimpleQueue[tuple[Pair, Grade]] = queue.SimpleQueue()
    for pair in pairs:
        waiting.put(pair)
    stop = threading.Event()

    def work() -> None:
        worker = _Grader("pure")
        try:
            while not stop.is_set():
                try:
                    pair = waiting.get_nowait()
                except queue.Empty:
                    return
                finished.put((pair, _asked(worker, pair, depends, undecided)))
        finally:
            worker.stop()

    most = min(len(pairs), workers or max(1, min(2, os.cpu_count() or 1)))
    threads = [threading.Thread(target=work, daemon=True) for _ in range(most)]
    for thread in threads:
        thread.start()
    try:
        for done in range(1, len(pairs) + 1):
            yield finished.get()
            progress(done / len(pairs), f"{done} of {len(pairs)} answers")
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def _asked(worker: Worker, pair: Pair, depends: float | None, undecided: float | None) -> Grade:
    question = {"pair": pair, "depends": depends, "undecided": undecided}
    try:
        found = worker.ask(question, DEADLINE)
    except Late as late:
        reason = f"its process was stopped: {late}"
    else:
        if "grade" in found:
            return Grade.from_json(found["grade"])
        reason = found["failed"]
    return Grade("undecided", reward_of("undecided", depends, undecided), reason=reason, reasons=(reason,))


class _Grader(Worker):
    boot = BOOT


def serve() -> None:
    """Grade what comes in until the other side closes the pipe: pickled pairs in, lines of JSON out."""
    out, sys.stdout = sys.stdout, sys.stderr
    _limit_memory()
    _say(out, {"ready": True})
    while True:
        try:
            question = pickle.load(sys.stdin.buffer)
        except EOFError:
            return
        pair = question["pair"]
        try:
            found = grade(
                pair.answer,
                pair.key,
                pair.given,
                pair.conventions,
                depends=question["depends"],
                undecided=question["undecided"],
            )
            said = {"grade": found.to_json()}
        except Exception as error:  # one answer must not end the others
            said = {"failed": f"{type(error).__name__}: {error}"}
        _say(out, said)


def _say(out: TextIO, data: dict[str, Any]) -> None:
    out.write(json.dumps(data) + "\n")
    out.flush()


def _limit_memory() -> None:
    try:
        import resource
    except ImportError:  # not on this system; the deadline remains
        return
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY if hard < 0 else min(MEMORY, hard), hard))


def read_pairs(answers: Path, keys: Path | None = None) -> list[Pair]:
    """Pairs from lines of JSON.

    answers: objects with `answer`, and `id` unless the number of the line is the id. keys: objects with `key`, and
    `given` and `conventions` if wanted, with the same ids; without this file these fields stand beside the answers.
    """
    rows = _rows(answers)
    beside = _rows(keys) if keys is not None else []
    by_name = dict(beside)
    require(len(by_name) == len(beside), "grade", "keys", "have ids that differ", keys)
    found = []
    for name, row in rows:
        require(keys is None or name in by_name, "grade", "answers", "have ids that the keys have", repr(name))
        key = row if keys is None else by_name[name]
        where = f"grade: {name}"
        require(isinstance(row.get("answer"), str), where, "answer", "be a text", repr(row.get("answer")))
        rule = (
            "be a text" if keys is not None or "key" in key else "stand beside the answer, or in a file given as keys"
        )
        require(isinstance(key.get("key"), str), where, "key", rule, repr(key.get("key")))
        found.append(Pair(name, row["answer"], key["key"], key.get("given"), key.get("conventions")))
    return found


def _rows(path: Path) -> list[tuple[str, dict[str, Any]]]:
    require(path.is_file(), "grade", path.name, "be a file of JSON lines", path)
    return [(str(row.get("id", number)), row) for number, row in _objects(path.name, path.read_text(encoding="utf-8"))]


def _objects(name: str, text: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """Lines of JSON with their numbers; each must be an object."""
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        row: Any = None
        with contextlib.suppress(json.JSONDecodeError):
            row = json.loads(line)
        require(isinstance(row, dict), f"grade: {name}:{number}", "line", "be a JSON object", line[:60])
        yield number, row


def grade_file(
    answers: Path,
    keys: Path | None = None,
    out: Path | None = None,
    *,
    depends: float | None = None,
    undecided: float | None = None,
    workers: int | None = None,
    progress: Progress = silent,
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Grade a file of answers; returns a row for each answer, in the order of the file, and the totals.

    out: rows are added to this file as they are finished. Pairs that it holds with the same text, key and rewards are
    not graded again.
    """
    pairs = read_pairs(answers, keys)
    settings = [depends, undecided]
    names = {id(pair): json_hash([pair.hash, settings]) for pair in pairs}
    found = _finished(out) if out is not None else {}
    left = [pair for pair in pairs if names[id(pair)] not in found]
    graded = grade_all(left, depends=depends, undecided=undecided, workers=workers, progress=progress)
    with out.open("a", encoding="utf-8") if out is not None else contextlib.nullcontext() as file:
        for pair, each in graded:
            row = {"id": pair.id, "hash": names[id(pair)], **each.to_json()}
            found[row["hash"]] = row
            if file is not None:
                file.write(json.dumps(row) + "\n")
                file.flush()
    rows = [found[names[id(pair)]] for pair in pairs]
    return rows, totals(rows)


def _finished(path: Path) -> dict[str, dict[str, Any]]:
    """Rows of an earlier output, by hash; a last line that was cut off is taken out of the file."""
    if not path.exists():
        return {}
    text = path.read_text(encoding="utf-8")
    whole = text[: text.rfind("\n") + 1]
    if whole != text:
        write_whole(path, whole)
    found = {}
    for number, row in _objects(path.name, whole):
        sound = row.get("verdict") in VERDICTS and isinstance(row.get("hash"), str)
        require(sound, f"grade: {path.name}:{number}", "line", "be a grade of an earlier run", repr(row)[:60])
        found[row["hash"]] = row
    return found


def totals(rows: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """How many answers have each verdict, and the share of it with an exact 95 % interval."""
    counts = Counter(row["verdict"] for row in rows)
    total = sum(counts.values())
    return {
        "answers": total,
        **{
            verdict: {
                "count": counts[verdict],
                "share": counts[verdict] / total if total else None,
                "interval": list(clopper_pearson(accepted=counts[verdict], total=total)) if total else None,
            }
            for verdict in VERDICTS
        },
    }
