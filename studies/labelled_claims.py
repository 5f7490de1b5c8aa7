"""Claims with known truth, written and labelled by hand before any engine ran: which verdicts are wrong, which missing.

Run: python -m studies.labelled_claims [FILE]. A line of the file has a claim, its truth (true, false, impossible) and
why. True claims must hold, false ones be refuted, and impossible ones, whose assumptions nothing satisfies, stay
inconclusive. The truth comes from derivations and from evaluations that used no code of ours.
"""

import json
import sys
import time
from collections import Counter
from pathlib import Path

from likewise.claims import check

FILE = Path(__file__).parent / "sets/claims.jsonl"
RIGHT = {"true": "holds", "false": "refuted", "impossible": "inconclusive"}


def main(file: Path) -> int:
    """Print what is wrong, and a table by kind; the exit code is the number of wrong verdicts, at most 1."""
    counts: Counter[tuple[str, str]] = Counter()
    began, wrong = time.perf_counter(), 0
    for line in file.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        verdict = check(row["claim"]).verdict
        if verdict == RIGHT[row["truth"]]:
            outcome = "right"
        elif verdict == "inconclusive":
            outcome = "undecided"
        else:
            outcome, wrong = "wrong", wrong + 1
            print(f"{row['id']}: {row['truth']}, but {verdict}: {row['claim']}", flush=True)
        counts[row["kind"], outcome] += 1
    print(f"{'kind':26} right undecided wrong")
    for kind in sorted({kind for kind, _ in counts}):
        print(f"{kind:26} {counts[kind, 'right']:5} {counts[kind, 'undecided']:9} {counts[kind, 'wrong']:5}")
    total = Counter(outcome for (_, outcome), count in counts.items() for _ in range(count))
    seconds = time.perf_counter() - began
    print(f"{total['right']} right, {total['undecided']} undecided, {wrong} wrong, {seconds:.0f} s")
    return min(wrong, 1)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]) if len(sys.argv) > 1 else FILE))
