"""Grading of final answers, ours and others': right and wrong verdicts, time, crashes and hangs.

Run it as `python -m benchmarks.grading`. `--peers PYTHON` names the interpreter of an environment that has math-verify
with an ANTLR runtime, verifiers and inspect-ai; without it they are left out. `--published FOLDER` is a copy of
Math-Verify's folder `tests`. The table of docs/grading.md is written from the results.
"""

import json
import os
import select
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Annotated, Any

import typer

from benchmarks.grading_pairs import HOSTILE_TEXTS, Pair, blind, generated, hand_written, hostile, labelled, published
from likewise.grading import grade
from likewise.grading.batches import Pair as Task
from likewise.grading.batches import grade_all

RESULTS = Path(__file__).parent / "results"
PAGE = Path(__file__).parent.parent / "docs/grading.md"
MARKS = "<!-- table of benchmarks/grading.py -->", "<!-- end of the table -->"
DISAGREEMENTS = "<!-- disagreements with Math-Verify's tests -->", "<!-- end of the disagreements -->"
THEIRS = "Math-Verify's tests"
PEERS = {"Math-Verify": "math-verify", "verifiers": "verifiers", "Inspect": "inspect"}
PATIENCE = 10.0  # seconds for one pair of a peer, then it has hung
Said = tuple[str, float]


class Peer:
    """A grader of others in a process of its own, started anew after a hang."""

    def __init__(self, python: str, name: str) -> None:
        self.python, self.name = python, name
        self.process: subprocess.Popen[str] | None = None

    def __call__(self, answer: str, key: str) -> Said:
        """The verdict and the seconds; equal, different, undecided (nothing was parsed), crash or hang."""
        if self.process is None:
            script = str(Path(__file__).parent / "peers/run_graders.py")
            self.process = subprocess.Popen(
                [self.python, script, self.name], stdin=-1, stdout=-1, stderr=-3, text=True, bufsize=1
            )
            assert self.process.stdout is not None
            self.process.stdout.readline()  # its imports are no part of the first answer
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
    start = time.process_time()
    try:
        found = grade(answer, key)
    except Exception:  # a crash is a result here
        return "crash", time.process_time() - start
    said = "crash" if "an error of the grader" in found.reason else found.verdict
    return said, time.process_time() - start


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
            if grader is ours:
                found = grade(answer, key)
                wrong[-1]["why"] = found.reason or found.condition or found.witness
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


def speed(pairs: list[Pair]) -> dict[str, float]:
    """Answers a minute over two processes, and the seconds of an import."""
    start = time.perf_counter()
    graded = list(grade_all([Task(str(n), answer, key) for n, (answer, key, _) in enumerate(pairs)], workers=2))
    rate = 60 * len(graded) / (time.perf_counter() - start)
    code = "import time; start = time.process_time(); import likewise.grading; print(time.process_time() - start)"
    load = os.getloadavg()[0]
    imports = [float(subprocess.check_output([sys.executable, "-c", code], text=True)) for _ in range(5)]
    return {"answers a minute": rate, "import": statistics.median(imports), "load": load}


def turned_around(pairs: list[Pair]) -> int:
    """How many pairs have another verdict in the other order."""
    return sum(grade(answer, key).verdict != grade(key, answer).verdict for answer, key, _ in pairs)


def _of_peers(rows: dict[str, Any], pairs: list[Pair]) -> dict[str, Any]:
    """The rows of peers that were measured before on as many pairs."""
    count = {name: sum(sum(each.values()) for each in row["counts"].values()) for name, row in rows.items()}
    return {name: row for name, row in rows.items() if name in PEERS and count[name] == len(pairs)}


def table(facts: dict[str, Any]) -> str:
    """The results as Markdown: for each set and grader what was accepted, called different, and the time."""
    heads = "pairs", "grader", "equal: accepted", "equal: called different", "near misses or hostile: accepted"
    lines = [f"| {' | '.join((*heads, 'depends: open', 'p50', 'p99', 'hangs, crashes'))} |"]
    lines.append("|---|---|---|---|---|---|---|---|---|")
    for name, rows in facts["sets"].items():
        for who, found in sorted(rows.items(), key=lambda row: (row[0] != "likewise", row[0] != "Math-Verify")):
            counts, ms = found["counts"], found["ms"]
            same, near = counts.get("equal", {}), {**counts.get("near miss", {})}
            for said, count in counts.get("hostile", {}).items():
                near[said] = near.get(said, 0) + count
            rest = counts.get("depends", {})
            total = [sum(each.values()) for each in (same, near, rest)]
            broken = sum(each.get(said, 0) for each in (same, near, rest) for said in ("hang", "crash"))
            left = total[2] - rest.get("equal", 0) - rest.get("different", 0)
            cells = [
                name, who,
                f"{same.get('equal', 0)} of {total[0]}" if total[0] else "",
                str(same.get("different", 0)) if total[0] else "",
                f"{near.get('equal', 0)} of {total[1]}" if total[1] else "",
                f"{left} of {total[2]}" if total[2] else "",
                f"{ms['p50']:.1f} ms", f"{ms['p99']:.0f} ms", str(broken),
            ]  # fmt: skip
            lines.append(f"| {' | '.join(cells)} |")
    found = facts["speed"]
    lines += [
        "",
        f"{found['answers a minute']:,.0f} answers a minute over two processes at load {found['load']:.0f}; "
        f"import {found['import']:.2f} s; ",
    ]
    lines[-1] += (
        f"{facts['turned around']} of {facts['pairs in both orders']:,} pairs have another verdict in the other order."
    )
    return "\n".join(lines)


def disagreements(pairs: list[Pair], wrong: list[dict[str, Any]]) -> str:
    """Every pair of Math-Verify's tests with another verdict here, with the reason, as Markdown."""

    def cell(text: str) -> str:
        text = " ".join(text.split())
        text = text if len(text) <= 70 else f"{text[:30]} ... {text[-35:]}"
        return "`` " + text.replace("|", "\\|") + " ``"

    lines = ["| its key | its answer | expected | here | why |", "|---|---|---|---|---|"]
    for row in wrong:
        expected = "equal" if row["label"] == "equal" else "not equal"
        why = row["why"].replace("|", "\\|").replace("\n", " ")[:110]
        lines.append(f"| {cell(row['key'])} | {cell(row['answer'])} | {expected} | {row['said']} | {why} |")
    return "\n".join([f"{len(wrong)} of {len(pairs)} pairs have another verdict here.", "", *lines])


def write_between(marks: tuple[str, str], text: str) -> None:
    """Put text between two marks of the page."""
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(marks[0])
    if rest:
        page = f"{before}{marks[0]}\n{text}\n{marks[1]}{rest.partition(marks[1])[2]}"
        PAGE.write_text(page, encoding="utf-8")


def peer_rows(python: str, who: str, sets: dict[str, list[Pair]]) -> dict[str, Any]:
    """What `measured` says of a peer, for each set."""
    grader = Peer(python, PEERS[who])
    try:
        return {name: measured(pairs, grader) for name, pairs in sets.items()}
    finally:
        grader.close()


def main(
    count: Annotated[int, typer.Option(help="Generated equivalents, and as many near misses.")] = 5000,
    peers: Annotated[str | None, typer.Option(help="Python of an environment with the peers.")] = None,
    published_folder: Annotated[Path | None, typer.Option("--published", help="Folder of Math-Verify's tests.")] = None,
    out: Annotated[Path, typer.Option(help="Where the results go.")] = RESULTS / "grading.json",
) -> None:
    """Measure all graders on all pairs and write the results."""
    by_hand = [*blind(), *hand_written()]
    sets = {"by hand": by_hand, "fresh": labelled(), "generated": generated(count), "hostile": hostile()}
    if published_folder is not None:
        sets[THEIRS] = list(published(published_folder))
    fewer = {**sets, "generated": sets["generated"][:400], "hostile": sets["hostile"][: len(HOSTILE_TEXTS)]}
    before = json.loads(out.read_text(encoding="utf-8"))["sets"] if out.exists() else {}
    facts: dict[str, Any] = {
        "sets": {name: _of_peers(before.get(name, {}), fewer[name]) for name in sets},
        "python": sys.version.split()[0],
    }
    ours("1", "1")
    for name, pairs in sets.items():
        facts["sets"][name]["likewise"] = measured(pairs, ours)
        print(name, facts["sets"][name]["likewise"]["counts"], facts["sets"][name]["likewise"]["ms"], flush=True)
    facts["pairs in both orders"] = len(by_hand) + min(2000, 2 * count)
    facts["turned around"] = turned_around([*by_hand, *sets["generated"][:2000]])
    facts["speed"] = speed(sets["generated"][:5000])
    print(facts["speed"], facts["turned around"], flush=True)
    if peers is None:
        print("The peers are not run: give --peers. Their rows of an earlier run on the same pairs stay.")
    else:
        with ThreadPoolExecutor(len(PEERS)) as threads:
            asked = threads.map(lambda who: peer_rows(str(peers), who, fewer), PEERS)
            for who, found in zip(PEERS, asked, strict=True):
                for name, row in found.items():
                    facts["sets"][name][who] = row
                    print(name, who, row["counts"], row["ms"], flush=True)
    out.write_text(json.dumps(facts, indent=1) + "\n")
    write_between(MARKS, table(facts))
    if theirs := sets.get(THEIRS):
        write_between(DISAGREEMENTS, disagreements(theirs, facts["sets"][THEIRS]["likewise"]["wrong"]))


if __name__ == "__main__":
    typer.run(main)
