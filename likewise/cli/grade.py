"""`likewise grade`: final answers against keys."""

import json
from pathlib import Path
from typing import Annotated

import typer

from likewise.cli.terminal import Json, examples, progress_bar

GRADE_EXAMPLES = examples(
    "likewise grade answers.jsonl --keys keys.jsonl",
    "likewise grade pairs.jsonl --out grades.jsonl",
    "likewise grade answers.jsonl --keys keys.jsonl --json",
)
Reward = Annotated[float | None, typer.Option(min=0.0, max=1.0, help="Reward of this verdict; none unless given.")]


def grade(
    answers: Annotated[Path, typer.Argument(metavar="ANSWERS", help="Lines of JSON: id, answer.")],
    keys: Annotated[
        Path | None, typer.Option(help="Lines of JSON: id, key, given, conventions; beside the answers unless given.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="GRADES", help="Write grades as lines of JSON; finished ones are kept.")
    ] = None,
    depends: Reward = None,
    undecided: Reward = None,
    workers: Annotated[int | None, typer.Option(min=1, help="Processes; two unless given.")] = None,
    as_json: Json = False,
) -> None:
    """Grade final answers: equal, different, depends or undecided, with a reason for each.

    Exit code 0: all were graded, whatever the verdicts; 2: wrong usage.
    """
    from likewise.files import require_place
    from likewise.grading.batches import grade_file

    if out is not None:
        require_place("grade", out)
    with progress_bar() as progress:
        rows, totals = grade_file(
            answers, keys, out, depends=depends, undecided=undecided, workers=workers, progress=progress
        )
    if as_json:
        print(json.dumps({"schema": 1, "totals": totals, "grades": rows}))
        return
    for row in rows if out is None else ():
        why = row["witness"] or row["condition"] or row["reason"]
        print(f"{row['verdict']:<10} {row['id']}" + (f"  {why}" if why else ""))
    print(f"{totals['answers']} answers")
    for verdict in ("equal", "different", "depends", "undecided"):
        found = totals[verdict]
        if totals["answers"]:
            low, high = found["interval"]
            print(f"{verdict:<10} {found['count']:>6}  {found['share']:.1%} (95 % interval {low:.1%} to {high:.1%})")
