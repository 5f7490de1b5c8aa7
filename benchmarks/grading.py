"""Grading of final answers, ours and Math-Verify's: right and wrong verdicts, time, crashes and hangs.

Run it as `python -m benchmarks.grading`. `--peer PYTHON` names the interpreter of an environment that has math-verify
with an ANTLR runtime; without it the peer is left out. `--published FOLDER` is a copy of its folder `tests`.
"""

import json
import select
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from benchmarks.grading_pairs import Pair, generated, hand_written, hostile, published
from likewise.grading import grade

RESULTS = Path(__file__).parent / "results"
PATIENCE = 15.0  # seconds for one pair of the peer, then it has hung
Said = tuple[str, float]


class Peer:
    """Math-Verify in a process of its own, started anew after a hang."""

    def __init__(self, python: str) -> None:
        self.python = python
        self.process: subprocess.Popen[str] | None = None

    def __call__(self, answer: str, key: str) -> Said:
        """The verdict and the seconds; equal, different, undecided (nothing was parsed), crash or hang."""
        if self.process is None:
            script = str(Path(__file__).parent / "peers/run_math_verify.py")
            self.process = subprocess.Popen([self.python, script], stdin=-1, stdout=-1, stderr=-3, text=True, bufsize=1)
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        start = time.perf_counter()
        try:
            self.process.stdin.write(json.dumps([answer, key]) + "\n")
            if select.select([self.process.stdout], [], [], PATIENCE)[0] and (line := self.process.stdout.readline()):
                said, seconds = json.loads(line)
                return said.split()[0], seconds
            said = "hang" if self.process.poll() is None else "crash"
        except BrokenPipeError:
            said = "crash"
        self.close()
        return said, time.perf_counter() - start

    def close(self) -> None:
        """End the process."""
        if self.process is not None:
            self.process.kill()
            self.process.communicate()
            self.process = None


def ours(answer: str, key: str) -> Said:
    """The verdict of `grade` and its seconds."""
    start = time.perf_counter()
    try:
        return grade(answer, key).verdict, time.perf_counter() - start
    except Exception:  # a crash is a result here
        return "crash", time.perf_counter() - start


def measured(pairs: list[Pair], grader: Callable[[str, str], Said]) -> dict[str, Any]:
    """Counts of verdicts for each label, times, and the pairs that were accepted or refused wrongly."""
    counts: dict[str, dict[str, int]] = {}
    wrong, times = [], []
    for answer, key, label in pairs:
        said, seconds = grader(answer, key)
        times.append(seconds)
        row = counts.setdefault(label, {})
        row[said] = row.get(said, 0) + 1
        bad = {
            "equal": said != "equal",
            "near miss": said == "equal",
            "depends": said in ("equal", "different"),
            "hostile": said in ("equal", "crash", "hang"),
        }[label]
        if bad:
            wrong.append({"answer": answer[:300], "key": key[:300], "label": label, "said": said})
    times.sort()
    return {
        "counts": counts,
        "ms": {
            "p50": 1e3 * statistics.median(times),
            "p99": 1e3 * times[int(0.99 * (len(times) - 1))],
            "most": 1e3 * times[-1],
        },
        "wrong": wrong,
    }


def main(
    count: Annotated[int, typer.Option(help="Generated equivalents, and as many near misses.")] = 1000,
    peer: Annotated[str | None, typer.Option(help="Python of an environment with math-verify.")] = None,
    published_folder: Annotated[Path | None, typer.Option("--published", help="Folder of Math-Verify's tests.")] = None,
    out: Annotated[Path, typer.Option(help="Where the results go.")] = RESULTS / "grading.json",
) -> None:
    """Measure all graders on all pairs and write the results."""
    sets = {"by hand": hand_written(), "generated": generated(count), "hostile": hostile()}
    if published_folder is not None:
        sets["Math-Verify's tests"] = list(published(published_folder))
    graders: dict[str, Callable[[str, str], Said]] = {"likewise": ours}
    if peer is not None:
        graders["Math-Verify"] = Peer(peer)
    else:
        print("Math-Verify is left out: give --peer")
    facts: dict[str, Any] = {"sets": {}, "python": sys.version.split()[0]}
    ours("1", "1")
    for name, pairs in sets.items():
        for who, grader in graders.items():
            if isinstance(grader, Peer):
                grader("1", "1")
            found = measured(pairs, grader)
            facts["sets"].setdefault(name, {})[who] = found
            ms = ", ".join(f"{key} {value:.1f} ms" for key, value in found["ms"].items())
            print(f"{name:<20} {who:<12} {found['counts']}  {ms}", flush=True)
    for grader in graders.values():
        if isinstance(grader, Peer):
            grader.close()
    out.write_text(json.dumps(facts, indent=1) + "\n")


if __name__ == "__main__":
    typer.run(main)
