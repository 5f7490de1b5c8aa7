"""Claims and final answers with known truth, labelled by hand before any engine ran: which are wrong, which undecided.

Run: python -m studies.labelled claims | grades. True claims must hold and false ones be refuted; impossible ones, whose
assumptions nothing satisfies, and those that rounding or a tie leaves open stay inconclusive. Claims from d001 on were
added after the others; what they gave when they were first run stands in docs/claims.md. Pairs of answer and key are
equal, different or depend on a condition. The labels come from derivations and from evaluations that used no code of
ours. Answers with planted errors, labelled formula by formula, lie beside them: python -m studies.reading answers
studies/sets/answers.
"""

import json
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

from likewise.claims import check
from likewise.grading import grade

SETS = Path(__file__).parent / "sets"
RIGHT = {"true": "holds", "false": "refuted", "impossible": "inconclusive", "open": "inconclusive"}


def claim(row: dict[str, Any]) -> tuple[str, str]:
    """The kind of a claim, and whether its verdict is right, undecided or wrong."""
    verdict = check(row["claim"]).verdict
    if verdict == RIGHT[row["truth"]]:
        return row["kind"], "right"
    return row["kind"], "undecided" if verdict == "inconclusive" else "wrong"


def pair(row: dict[str, Any]) -> tuple[str, str]:
    """The label of an answer and its key, and whether the grade is right, undecided or wrong."""
    verdict = grade(row["answer"], row["key"], given=row.get("given")).verdict
    if verdict == row["label"]:
        return row["label"], "right"
    return row["label"], "undecided" if verdict in ("undecided", "depends") else "wrong"


def main(which: str) -> int:
    """Print what is wrong, and a table by kind; the exit code is 1 if something was wrong."""
    asked = {"claims": claim, "grades": pair}
    if which not in asked:
        sys.exit("python -m studies.labelled claims | grades")
    counts: Counter[tuple[str, str]] = Counter()
    began = time.perf_counter()
    for line in (SETS / f"{which}.jsonl").read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        kind, outcome = asked[which](row)
        counts[kind, outcome] += 1
        if outcome == "wrong":
            print(f"wrong: {line}", flush=True)
    print(f"{'kind':26} right undecided wrong")
    for kind in sorted({kind for kind, _ in counts}):
        print(f"{kind:26} {counts[kind, 'right']:5} {counts[kind, 'undecided']:9} {counts[kind, 'wrong']:5}")
    total: Counter[str] = Counter()
    for (_, outcome), count in counts.items():
        total[outcome] += count
    seconds = time.perf_counter() - began
    print(f"{total['right']} right, {total['undecided']} undecided, {total['wrong']} wrong, {seconds:.0f} s")
    return min(total["wrong"], 1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else ""))
