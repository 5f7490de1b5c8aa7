"""`likewise grade`: files in, grades out, resumed where it stopped; a late process is killed, the next one is sound."""

import json
from pathlib import Path

import pytest

from likewise.cli import main
from likewise.grading import batches, grade
from likewise.grading.batches import Pair, grade_all

ANSWERS = [r"So \boxed{\frac{2x}{4}}.", "(AB)^{-1}", "O(ND^2)", "100000000!"]
KEYS = ["x/2", "A^{-1}B^{-1}", "O(Nd^2)", "1"]


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    rows = {"answers": [{"id": n, "answer": text} for n, text in enumerate(ANSWERS)]}
    rows["keys"] = [{"id": n, "key": text} for n, text in reversed([*enumerate(KEYS)])]
    for name, lines in rows.items():
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return [str(tmp_path / "answers.jsonl"), "--keys", str(tmp_path / "keys.jsonl")]


def run(*arguments: str) -> int:
    with pytest.raises(SystemExit) as stopped:
        main(["grade", *arguments])
    return int(stopped.value.code or 0)


@pytest.mark.slow
def test_a_file_is_graded_as_one_by_one_and_resumed(files: list[str], tmp_path: Path, capsys) -> None:
    out = tmp_path / "grades.jsonl"
    assert run(*files, "--json", "--out", str(out), "--undecided", "0.25") == 0
    found = json.loads(capsys.readouterr().out)
    alone = [grade(answer, key, undecided=0.25) for answer, key in zip(ANSWERS, KEYS, strict=True)]
    assert [row["verdict"] for row in found["grades"]] == ["equal", "different", "depends", "undecided"]
    assert [batches.Grade.from_json(row) for row in found["grades"]] == alone
    assert found["totals"]["equal"]["count"] == 1
    lines = out.read_text().splitlines(keepends=True)
    marked = lines[0].replace('"seconds": ', '"seconds": 77')  # what is finished is not graded again
    out.write_text(marked + lines[1] + lines[2][:40])
    assert run(*files, "--out", str(out), "--undecided", "0.25") == 0
    again = out.read_text().splitlines(keepends=True)
    assert again[:2] == [marked, lines[1]]
    assert len(again) == 4
    assert "4 answers" in capsys.readouterr().out


@pytest.mark.slow
def test_a_late_process_is_stopped_and_the_next_answer_is_graded(monkeypatch) -> None:
    deadlines = iter([0.0, batches.DEADLINE])
    ask = batches.Worker.ask
    monkeypatch.setattr(batches.Worker, "ask", lambda self, question, _: ask(self, question, next(deadlines)))
    found = dict(grade_all([Pair("late", "x", "x + 1"), Pair("next", "x", "x + 1")], undecided=0.5, workers=1))
    by_name = {pair.id: each for pair, each in found.items()}
    assert by_name["late"].verdict == "undecided"
    assert by_name["late"].reward == 0.5
    assert "deadline" in by_name["late"].reason
    assert by_name["next"].verdict == "different"


def test_wrong_files_are_one_line(files: list[str], tmp_path: Path, capsys) -> None:
    other = tmp_path / "other.jsonl"
    other.write_text('{"id": "z", "answer": "1"}\n')
    assert run(str(other), *files[1:]) == 2
    assert "grade: answers must have ids that the keys have; got 'z'." in capsys.readouterr().err
    other.write_text("nothing\n")
    assert run(str(other)) == 2
    assert "grade: other.jsonl:1: line must be a JSON object; got nothing." in capsys.readouterr().err
    other.write_text('{"answer": "1"}\n')
    assert run(str(other)) == 2
    assert (
        "grade: 1: key must stand beside the answer, or in a file given as keys; got None." in capsys.readouterr().err
    )
