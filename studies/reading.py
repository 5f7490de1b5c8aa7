"""Count what the reader understands, decides and refutes.

    python -m studies.reading transcripts         # LIKEWISE_TRANSCRIPTS, speakers in studies/speakers
    python -m studies.reading processbench        # LIKEWISE_PROCESSBENCH, alarms in results/reading_alarms.json
    python -m studies.reading sample 200 --seed 1 # formulas of the transcripts at random, for a second reader
    python -m studies.reading answers FOLDER      # answers whose lines a person labelled true or false
    python -m studies.reading mutations FOLDER    # formulas of these answers that hold, changed in one place
    python -m studies.reading torn 100000         # torn texts: crashes, seconds, memory

Nothing of the texts is written: only ids, lines and counts. `answers` takes NAME.md with NAME.labels.json, a list of
`{"line": 3, "source": "LaTeX as typed", "truth": "true" | "false" | "not a statement", "why": "..."}`.
"""

import argparse
import hashlib
import json
import os
import random
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from likewise.checks import require
from likewise.reading import Answer, Statement, check_answers, read_answer
from likewise.reading.speakers import speakers_of
from studies import reading_mutated, reading_torn

RESULTS = Path(__file__).with_name("results")
SPEAKERS = Path(__file__).with_name("speakers")


def read_transcripts() -> list[tuple[str, Answer]]:
    """All transcripts with their speakers, read and not checked."""
    read = []
    for path in sorted(Path(os.environ["LIKEWISE_TRANSCRIPTS"]).glob("*.txt")):
        text = path.read_text(encoding="utf-8")
        turns = speakers_of(SPEAKERS / f"{path.stem}.speakers.yaml", text)
        read.append((path.stem, read_answer(text, turns=turns)))
    return read


def transcripts(verbose: bool) -> dict:
    """Different formulas with a relation, spoken by an assistant."""
    started = time.perf_counter()
    read = read_transcripts()
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


def half(name: str) -> int:
    """1 for the solutions that may be looked at while rules are changed, 2 for those that are only counted."""
    return 1 + hashlib.sha256(name.encode()).digest()[0] % 2


def processbench(verbose: bool) -> dict:
    """First errors found exactly, and alarms on solutions that experts marked right; shown are alarms of half 1."""
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
    alarms, false_alarms, steps, decided_steps = [], 0, 0, 0
    exact: Counter[int] = Counter()
    for row, lines, answer in zip(rows, texts, checked, strict=True):
        found = sorted({step_of(each.line, lines) for each in answer.statements if each.verdict == "refuted"})
        decided = {step_of(each.line, lines) for each in answer.statements if each.decided}
        steps += len(lines)
        decided_steps += len(decided)
        if found:
            places = [[each.line, each.column] for each in answer.statements if each.verdict == "refuted"]
            alarms.append({"id": row["id"], "label": row["label"], "steps": found, "places": places})
            exact[half(row["id"])] += found[0] == row["label"]
            false_alarms += row["label"] == -1
            if verbose and half(row["id"]) == 1:
                show(row, lines, answer)
    wrong = Counter(half(row["id"]) for row in rows if row["label"] != -1)
    counts = {
        "solutions": len(rows),
        "wrong": wrong.total(),
        "exact first error": exact.total(),
        "share": round(exact.total() / wrong.total(), 4),
        **{f"exact of half {part}": f"{exact[part]} of {wrong[part]}" for part in (1, 2)},
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


def sample(count: int, seed: int) -> None:
    """Print understood formulas at random, each once: its place, the LaTeX as typed and what was read, no verdict."""
    found: dict[str, tuple[str, Statement]] = {}
    for name, answer in read_transcripts():
        for statement in answer.statements:
            if statement.relation and statement.understood and statement.speaker != "annotator":
                found.setdefault(f"{''.join(statement.source.split())} {statement.claim}", (name, statement))
    drawn = random.Random(seed).sample(sorted(found), min(count, len(found)))
    for number, (name, statement) in enumerate((found[key] for key in drawn), start=1):
        print(f"--- {number}  {name} line {statement.line}, column {statement.column}, {statement.speaker}")
        print(f"typed:  {statement.source.strip()}")
        print(f"role:   {statement.role}")
        for line in statement.claim.splitlines():
            print(f"claim:  {line}")
        for binding in statement.bindings:
            print(f"bound:  {binding}")


def answers(folder: Path, verbose: bool) -> dict:
    """Errors found, true statements refuted and false ones held, of answers with labels.

    A label is of a whole formula, found by its LaTeX and, if that occurs more than once, by its line. It is refuted if
    one of its statements is, and held if all that it asserts holds.
    """
    paths = sorted(path for path in folder.glob("*.md") if path.with_suffix(".labels.json").exists())
    require(bool(paths), "answers", str(folder), "hold NAME.md with NAME.labels.json", "none")
    read = check_answers([read_answer(path.read_text(encoding="utf-8")) for path in paths])
    rows: Counter[str] = Counter()
    shown: list[str] = []
    for path, answer in zip(paths, read, strict=True):
        left = [each for each in answer.statements if each.relation]
        for label in json.loads(path.with_suffix(".labels.json").read_text(encoding="utf-8")):
            said = labelled(label, answer.statements)
            left = [each for each in left if each not in said]
            outcome = outcome_of(said)
            rows[f"{label['truth']}: {outcome}"] += 1
            wrong = (label["truth"], outcome) in (
                ("true", "refuted"),
                ("false", "holds"),
                ("not a statement", "refuted"),
            )
            if verbose or wrong:
                shown.append(f"{path.stem} {label['line']} {label['truth']}: {outcome}  {label['source']}")
                shown += [f"    {each.role} {each.detail or each.refusal}" for each in said]
                shown += [
                    f"    {line}" for each in said for line in each.claim.splitlines() if outcome != "holds" or wrong
                ]
        for each in left:
            rows[f"unlabelled: {outcome_of([each])}"] += 1
            if verbose or each.verdict == "refuted":
                shown.append(f"{path.stem} {each.line} unlabelled: {outcome_of([each])}  {each.source}")
    print("\n".join(shown))
    errors = sum(count for name, count in rows.items() if name.startswith("false:"))
    found = rows["false: refuted"]
    counts = {
        "answers": len(paths),
        "errors": errors,
        "errors found": found,
        "share": round(found / errors, 3) if errors else None,
        "true statements refuted": rows["true: refuted"],
        "false ones held": rows["false: holds"],
        "no statements, yet refuted": rows["not a statement: refuted"],
        "unlabelled, refuted": rows["unlabelled: refuted"],
        "labels": dict(sorted(rows.items())),
    }
    return {"counts": counts}


def labelled(label: dict, statements: Sequence[Statement]) -> list[Statement]:
    """The statements of the formula that a label is about."""
    source = bare(label["source"])
    ways = (
        lambda each: bare(each.source) == source,
        lambda each: bool(source) and source in bare(each.source),
        lambda each: bool(bare(each.source)) and bare(each.source) in source,
    )
    for way in ways:
        same = [
            each
            for each in statements
            if way(each) and each.line - 2 <= label["line"] <= each.line + each.source.count("\n") + 2
        ]
        if same:
            near = min(same, key=lambda each: abs(each.line - label["line"]))
            return [each for each in same if (each.line, each.column) == (near.line, near.column)]
    return []


def bare(source: str) -> str:
    """LaTeX without blanks, delimiters and the full stop."""
    found = "".join(source.split())
    for mark in ("$$", "$", r"\[", r"\]", r"\(", r"\)"):
        found = found.removeprefix(mark).removesuffix(mark)
    return found.rstrip(".,;")


def outcome_of(said: Sequence[Statement]) -> str:
    """What the reader says of a formula with several statements."""
    asserted = [each for each in said if each.relation and (each.claim or each.refusal)]
    verdicts = {each.verdict for each in asserted}
    if "refuted" in verdicts:
        return "refuted"
    if verdicts == {"holds"}:
        return "holds"
    if not said:
        return "not found"
    if not asserted:
        return "understood"  # a definition, a condition, a given or a question
    return "undecided" if any(each.claim for each in asserted) else "not read"


def main() -> None:
    """Print counts; with --write, keep them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("transcripts", "processbench", "sample", "answers", "mutations", "torn"))
    parser.add_argument("of", nargs="?", help="how many formulas or texts, or the folder of the answers")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--most", type=int, default=10_000, help="mutants at most")
    parser.add_argument("--verbose", action="store_true")
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    match given.what:
        case "sample":
            sample(int(given.of or 200), given.seed)
            return
        case "answers":
            require(bool(given.of), "answers", "FOLDER", "be given", "none")
            found = answers(Path(given.of), given.verbose)
        case "mutations":
            texts = {path.stem: path.read_text(encoding="utf-8") for path in sorted(Path(given.of or "").glob("*.md"))}
            require(bool(texts), "mutations", "FOLDER", "hold answers, NAME.md", given.of)
            found = reading_mutated.study(texts, given.most, given.seed, given.verbose)
        case "torn":
            found = reading_torn.study(int(given.of or 100_000), given.seed)
        case "transcripts":
            found = transcripts(given.verbose)
        case _:
            found = processbench(given.verbose)
    print(json.dumps(found["counts"], indent=1))
    if given.what == "transcripts":
        print(json.dumps(found["refused"], indent=1))
    if given.write:
        RESULTS.mkdir(exist_ok=True)
        (RESULTS / f"reading_{given.what}.json").write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
