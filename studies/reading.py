"""Count what the reader understands, decides and refutes, on the transcripts and on ProcessBench.

    python -m studies.reading transcripts     # LIKEWISE_TRANSCRIPTS, speakers in studies/speakers
    python -m studies.reading processbench    # LIKEWISE_PROCESSBENCH, alarms in studies/results/reading_alarms.json

Nothing of the texts is written: only ids, lines and counts.
"""

import argparse
import json
import os
import time
from collections import Counter
from pathlib import Path

from likewise.reading import Answer, check_answers, read_answer
from likewise.reading.speakers import speakers_of

RESULTS = Path(__file__).with_name("results")
SPEAKERS = Path(__file__).with_name("speakers")


def transcripts(verbose: bool) -> dict:
    """Different formulas with a relation, spoken by an assistant."""
    folder = Path(os.environ["LIKEWISE_TRANSCRIPTS"])
    started = time.perf_counter()
    read = []
    for path in sorted(folder.glob("*.txt")):
        text = path.read_text(encoding="utf-8")
        turns = speakers_of(SPEAKERS / f"{path.stem}.speakers.yaml", text)
        read.append((path.stem, read_answer(text, turns=turns)))
    checked = check_answers([answer for _, answer in read])
    found: dict[str, dict] = {}
    for (name, _), answer in zip(read, checked, strict=True):
        for statement in answer.statements:
            if not statement.relation or statement.speaker == "annotator":
                continue
            key = "".join(statement.source.split())
            row = found.setdefault(
                key,
                {"understood": False, "claim": False, "decided": False, "refuted": False, "where": [], "refusals": []},
            )
            row["where"].append((name, statement.line))
            row["understood"] |= statement.understood
            row["claim"] |= bool(statement.claim)
            substance = [
                verdict
                for reading, verdict in zip(
                    [each for each in statement.readings if each.claims], statement.verdicts, strict=True
                )
                if not reading.trivial and verdict.verdict in ("holds", "refuted")
            ]
            row["decided"] |= bool(substance)
            row["refuted"] |= statement.verdict == "refuted"
            row["refusals"].append(statement.refusal)
            if verbose:
                shown = (statement.claim or statement.refusal).replace("\n", " / ")
                print(
                    name,
                    statement.line,
                    statement.role,
                    statement.verdict,
                    "|",
                    statement.source[:90].replace("\n", " "),
                    "|",
                    shown[:300],
                    "|",
                    statement.detail[:160],
                )
    unread = {(name, line) for (name, _), answer in zip(read, checked, strict=True) for line, _, _ in answer.unread}
    rows = list(found.values())
    counts = {
        "formulas": sum(answer.formulas for answer in checked),
        "different with a relation": len(rows),
        "not LaTeX": len(unread),
        **{name: sum(row[name] for row in rows) for name in ("understood", "claim", "decided", "refuted")},
        "seconds": round(time.perf_counter() - started, 1),
    }
    reasons = Counter(reason for row in rows if not row["understood"] for reason in set(row["refusals"]))
    return {"counts": counts, "refused": dict(reasons.most_common(40))}


def processbench(verbose: bool) -> dict:
    """First errors found exactly, and alarms on solutions that experts marked right."""
    rows = json.loads(Path(os.environ["LIKEWISE_PROCESSBENCH"]).read_text(encoding="utf-8"))
    started = time.perf_counter()
    texts, answers = [], []
    for row in rows:
        text, lines, line = "", [], 1
        for step in row["steps"]:
            lines.append(line)
            text += step + "\n\n"
            line += step.count("\n") + 2
        texts.append(lines)
        answers.append(read_answer(text))
    read = time.perf_counter() - started
    checked = check_answers(answers)
    seconds = time.perf_counter() - started
    alarms, exact, false_alarms, steps, decided_steps = [], 0, 0, 0, 0
    for row, lines, answer in zip(rows, texts, checked, strict=True):
        found = sorted({step_of(each.line, lines) for each in answer.statements if each.verdict == "refuted"})
        decided = {step_of(each.line, lines) for each in answer.statements if each.decided}
        steps += len(lines)
        decided_steps += len(decided)
        if found:
            places = [[each.line, each.column] for each in answer.statements if each.verdict == "refuted"]
            alarms.append({"id": row["id"], "label": row["label"], "steps": found, "places": places})
            exact += found[0] == row["label"]
            false_alarms += row["label"] == -1
            if verbose:
                show(row, lines, answer)
    wrong = sum(row["label"] != -1 for row in rows)
    counts = {
        "solutions": len(rows),
        "wrong": wrong,
        "exact first error": exact,
        "share": round(exact / wrong, 4),
        "alarmed": len(alarms),
        "alarmed of those marked right": false_alarms,
        "steps": steps,
        "steps with something decided": decided_steps,
        "share decided": round(decided_steps / steps, 4),
        "claims": sum(answer.counts["claims"] for answer in checked),
        "seconds to read": round(read, 1),
        "seconds": round(seconds, 1),
    }
    return {"counts": counts, "alarms": alarms}


def step_of(line: int, lines: list[int]) -> int:
    """The step, from 0, in which a line stands."""
    return max(place for place, first in enumerate(lines) if first <= line)


def show(row: dict, lines: list[int], answer: Answer) -> None:
    """What is alarmed, on the screen only."""
    print("=====", row["id"], "label", row["label"])
    for each in answer.statements:
        if each.verdict == "refuted":
            step = step_of(each.line, lines)
            print(
                "  step",
                step,
                "|",
                each.source[:200].replace("\n", " "),
                "|",
                each.claim.replace("\n", " / ")[-160:],
                "|",
                each.detail[:120],
            )


def main() -> None:
    """Print counts; with --write, keep them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("transcripts", "processbench"))
    parser.add_argument("--verbose", action="store_true")
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    found = {"transcripts": transcripts, "processbench": processbench}[given.what](given.verbose)
    print(json.dumps(found["counts"], indent=1))
    if given.what == "transcripts":
        print(json.dumps(found["refused"], indent=1))
    if given.write:
        RESULTS.mkdir(exist_ok=True)
        (RESULTS / f"reading_{given.what}.json").write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
