"""`likewise review` writes a page, JSON or text, moves marks in and out, and serves until Ctrl-C."""

import json
import os
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from likewise.cli import main

ANSWER = "The sum.\n\n```claim sum\nassert: 1 + 1 == 3\n```\n\n```claim one\nassert: 1 == 1\n```\n"


@pytest.fixture
def answer(tmp_path: Path) -> Path:
    path = tmp_path / "answer.md"
    path.write_text(ANSWER)
    return path


def run(*arguments: str) -> int:
    with pytest.raises(SystemExit) as stopped:
        main(["review", *arguments])
    return int(stopped.value.code or 0)


def test_the_page_is_written_and_the_text_printed(answer: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = answer.with_name("review.html")
    assert run(str(answer), "--out", str(out)) == 1
    assert "<title>answer.md: review</title>" in out.read_text()
    assert "✗ refuted  sum  left 2, right 3." in capsys.readouterr().out


def test_json_has_statements_marks_and_summary(answer: Path, capsys: pytest.CaptureFixture[str]) -> None:
    mark = {"line": 3, "column": 1, "mark": "right"}
    answer.with_name("answer.marks.json").write_text(json.dumps({"marks": [mark]}))
    assert run(str(answer), "--json") == 1
    found = json.loads(capsys.readouterr().out)
    assert found["summary"]["refuted"] == 1
    assert found["disagreements"][0]["words"] == "Marked right, but refuted: left 2, right 3."


def test_marks_leave_and_come_back(answer: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = answer.with_name("answer.marks.json")
    file.write_text(json.dumps({"marks": [{"line": 1, "column": 0, "mark": "unclear", "remark": "which?"}]}))
    for suffix in (".md", ".jsonl"):
        assert run(str(answer), "--export", str(tmp_path / f"out{suffix}")) == 1
    file.unlink()
    assert run(str(answer), "--import", str(tmp_path / "out.jsonl")) == 1
    assert json.loads(file.read_text())["marks"][0]["remark"] == "which?"
    capsys.readouterr()
    assert run(str(answer), "--import", str(tmp_path / "out.md")) == 1
    assert "line 1 has a mark already; the imported one was left out" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["missing.md"], "check: file must exist; got missing.md."),
        (
            ["x.pdf"],
            "review: answer must end in .md, .markdown, .txt, or .json for an exported conversation; got x.pdf.",
        ),
        (["missing.md", "--open"], "review: --open must go with --out or --serve; got no page."),
        (["missing.md", "--out", "no/where.html"], "review: path must be in a folder that exists; got no/where.html."),
    ],
)
def test_wrong_usage_is_one_line(arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(*arguments) == 2
    assert capsys.readouterr().err == f"likewise: {words}\n"


@pytest.mark.slow
def test_it_is_served_until_ctrl_c(answer: Path) -> None:
    command = [sys.executable, "-m", "likewise", "review", str(answer), "--serve"]
    process = subprocess.Popen(  # Ctrl-C is heard even where the tests run in the background of a shell
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    assert process.stderr is not None
    address = process.stderr.readline().split()[2]
    with urllib.request.urlopen(address) as page:
        assert "answer.md: review" in page.read().decode()
    os.kill(process.pid, signal.SIGINT)
    _, error = process.communicate(timeout=20)
    assert (process.returncode, error) == (1, "")
