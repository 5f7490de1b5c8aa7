"""The live page: marks reach the file at once, two tabs do not lose each other's, and nothing else is served."""

import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from likewise.claims.documents import markdown_claims
from likewise.claims.verdict import Verdict
from likewise.reading.corrections import corrections
from likewise.review import Mark, MarkFile, review, review_of, serve_review
from likewise.review.readings import ReadingFile
from likewise.review.reviewing import read_again

ANSWER = "# Title\n\nA passage.\n\n```claim a\nassert: 1 == 2\n```\n"
REFUTED = Verdict("a", "refuted", "arithmetic", "1 != 2", line=5)


@pytest.fixture
def marks(tmp_path: Path) -> Path:
    return tmp_path / "answer.marks.json"


@pytest.fixture
def address(marks: Path) -> Iterator[str]:
    found = review_of(ANSWER, markdown_claims(ANSWER), [REFUTED], name="answer.md")
    with serve_review(found, marks).running() as address:
        yield address


def ask(address: str, body: Any = None) -> tuple[int, Any]:
    data = None if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
    try:
        with urllib.request.urlopen(urllib.request.Request(address, data), timeout=10) as answer:
            status, kind, read = answer.status, answer.headers["Content-Type"], answer.read()
    except urllib.error.HTTPError as error:
        with error:
            status, kind, read = error.code, error.headers["Content-Type"], error.read()
    return status, json.loads(read) if kind == "application/json" else read.decode()


def put(address: str, line: int, column: int, mark: str, revision: int = 0, **more: str) -> tuple[int, Any]:
    return ask(f"{address}marks", {"put": {"line": line, "column": column, "mark": mark, "revision": revision, **more}})


def test_the_page_is_served_with_its_policy(address: str) -> None:
    with urllib.request.urlopen(address) as answer:
        policy, html = answer.headers["Content-Security-Policy"], answer.read().decode()
    assert "connect-src 'self'" in policy
    assert policy.endswith("frame-ancestors 'none'")
    assert policy.removesuffix("; frame-ancestors 'none'") in html
    assert 'data-live="yes"' in html


def test_a_mark_is_on_file_at_once_and_on_the_next_page(address: str, marks: Path) -> None:
    status, told = put(address, 3, 0, "wrong", remark="no <b>")
    assert (status, told["mark"]["revision"]) == (200, 1)
    assert MarkFile(marks).read() == [Mark(3, 0, "wrong", "no <b>", "", "A passage.", 1)]
    assert "no &lt;b&gt;" in ask(address)[1]
    assert ask(f"{address}marks")[1]["marks"][0]["remark"] == "no <b>"
    assert ask(f"{address}marks", {"remove": {"line": 3, "column": 0, "revision": 1}}) == (200, {"mark": None})
    assert MarkFile(marks).read() == []


def test_two_tabs_do_not_lose_each_others_marks(address: str, marks: Path) -> None:
    assert put(address, 3, 0, "right")[0] == 200
    assert put(address, 5, 1, "wrong")[0] == 200  # the other tab has not seen the first
    assert [mark.key for mark in MarkFile(marks).read()] == ["3", "5:1"]
    assert put(address, 3, 0, "wrong", remark="mine", revision=1)[0] == 200
    status, told = put(address, 3, 0, "praise", revision=1)
    assert (status, told["current"]["remark"]) == (409, "mine")
    assert put(address, 3, 0, "praise", revision=told["current"]["revision"])[0] == 200


def test_a_mark_of_an_older_text_is_found_and_changed_in_its_place(address: str, marks: Path) -> None:
    MarkFile(marks).put(Mark(9, 0, "wrong", source="A passage."))
    [shown] = ask(f"{address}marks")[1]["marks"]
    assert (shown["line"], shown["revision"]) == (3, 1)
    assert put(address, 3, 0, "right", revision=1)[0] == 200
    assert [(mark.line, mark.mark) for mark in MarkFile(marks).read()] == [(9, "right")]


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"[]", b"3", b'{"put": 3}', b'{"put": {"line": 3, "mark": "odd"}}', b'{"remove": {}}', b"[" * 50_000],
)
def test_what_is_no_mark_changes_nothing(address: str, marks: Path, body: bytes) -> None:
    assert ask(f"{address}marks", body)[0] == 400
    assert not marks.exists()


def test_what_is_not_on_the_page_cannot_be_marked(address: str, marks: Path) -> None:
    assert put(address, 4, 0, "right")[0] == 404
    assert put(address, 3, 9, "right")[0] == 404
    assert not marks.exists()


@pytest.mark.parametrize(
    "path", ["../answer.md", "answer.marks.json", "%2e%2e/%2e%2e/etc/passwd", "marks/x", "index.html"]
)
def test_nothing_of_the_file_system_is_served(address: str, path: str) -> None:
    assert ask(address + path)[0] in (401, 404)


def test_a_body_that_is_too_long_is_refused(address: str) -> None:
    assert ask(f"{address}marks", b"x" * 200_000)[0] == 413


def test_a_damaged_file_of_marks_is_told_and_kept(address: str, marks: Path) -> None:
    marks.write_text("damaged")
    status, told = put(address, 3, 0, "right")
    assert status == 400
    assert "must be marks that likewise wrote" in told["error"]
    assert ask(address)[0] == 500
    assert "must be marks that likewise wrote" in ask(f"{address}marks")[1]
    assert marks.read_text() == "damaged"


SPOKEN = "Let $q, k \\in \\mathbb{R}^D$.\n\nSo $12 + 5 = 18$ and $a = b$.\n"


@pytest.fixture
def read(tmp_path: Path) -> Iterator[tuple[str, Path]]:
    path = tmp_path / "answer.readings.yaml"
    with serve_review(review(SPOKEN), tmp_path / "answer.marks.json", readings=path).running() as address:
        yield address, path


def test_a_corrected_reading_is_kept_and_checked_again_at_once(read: tuple[str, Path]) -> None:
    address, path = read
    path.write_text("# by hand\n- {name: a, type: R}\n")
    status, told = ask(f"{address}readings", {"correct": {"line": 3, "role": "hypothesis"}})
    assert (status, told["version"]) == (200, 1)
    assert "line 3: hypothesis (was refuted)" in told["words"]
    assert path.read_text() == "# by hand\n- {name: a, type: R}\n- {line: 3, role: hypothesis}\n"
    html = ask(address)[1]
    assert 'data-version="1"' in html
    assert "line 3 is a hypothesis" in html
    assert ask(f"{address}marks")[1]["version"] == 1
    told = ask(f"{address}readings", {"correct": {"line": 3, "role": ""}})[1]
    assert "line 3: refuted (was hypothesis)" in told["words"]
    assert path.read_text() == "# by hand\n- {name: a, type: R}\n"


@pytest.mark.parametrize(
    "entry",
    [
        {"line": 3, "role": "nonsense"},
        {"line": 0, "role": "definition"},
        {"line": "3\n- x", "role": "definition"},
        {"name": "a", "type": "R^^2"},
        {"name": "a\n- {line: 1, role: question}", "type": "R"},
        {"line": 3, "program": "x" * 81},
        {"line": 3, "column": "4}\n- {x", "role": "question"},
        {"line": 3, "column": 4, "program": "attention.softmax"},
        {"line": 3, "role": "definition", "name": "a"},
        {},
        "definition",
    ],
)
def test_what_is_no_correction_changes_nothing(read: tuple[str, Path], entry: Any) -> None:
    address, path = read
    assert ask(f"{address}readings", {"correct": entry})[0] == 400
    assert not path.exists()
    assert ask(f"{address}marks")[1]["version"] == 0


def test_without_a_file_of_readings_none_is_corrected(address: str) -> None:
    assert ask(f"{address}readings", {"correct": {"line": 3, "role": "definition"}})[0] == 404


@pytest.mark.parametrize(
    ("before", "entry", "after"),
    [
        ("[]\n", {"name": "A", "type": "R^(N, D)"}, "- {name: A, type: 'R^(N, D)'}\n"),
        ("- line: 3\n  role: question\n", {"line": 3, "role": "definition"}, "- {line: 3, role: definition}\n"),
        (
            "- {line: 3, role: question, program: attention.softmax}\n- {line: 4, role: question}\n",
            {"line": 3, "role": ""},
            "- {line: 3, program: attention.softmax}\n- {line: 4, role: question}\n",
        ),
        (
            "- {line: 3, role: question}\n- {line: 3, column: 4, role: question}\n",
            {"line": 3, "column": 4, "role": ""},
            "- {line: 3, role: question}\n",
        ),
        (
            "- {line: 3, column: 4, role: question, program: attention.softmax}\n",
            {"line": 3, "column": 4, "role": "hypothesis"},
            "- {line: 3, program: attention.softmax}\n- {line: 3, column: 4, role: hypothesis}\n",
        ),
    ],
)
def test_one_correction_leaves_the_others_alone(tmp_path: Path, before: str, entry: Any, after: str) -> None:
    path = tmp_path / "a.readings.yaml"
    path.write_text(before)
    ReadingFile(path).put(entry)
    assert path.read_text() == after


def test_only_what_a_correction_changes_is_asked_again() -> None:
    found = review(SPOKEN)
    known = dict(found.known)
    again = read_again(found, corrections("- {line: 3, role: hypothesis}"))
    assert found.known == known  # nothing new was asked
    assert [each.status.label for each in again.statements if each.line == 3] == ["hypothesis", "hypothesis"]


def test_a_correction_tells_only_what_it_changed(tmp_path: Path) -> None:
    talk = "# A\n\nLet $a, b \\in \\mathbb{R}$.\n\n$$(a - b)^2 = a^2 - 2ab + b^2 = a^2 + 2ab + b^2$$\n"
    readings = tmp_path / "answer.readings.yaml"
    with serve_review(review(talk), tmp_path / "answer.marks.json", readings=readings).running() as address:
        status, told = ask(f"{address}readings", {"correct": {"line": 1, "role": "condition"}})
        assert (status, told) == (400, {"error": "not corrected: no formula that was read begins on line 1"})
        assert not readings.exists()
        status, told = ask(f"{address}readings", {"correct": {"name": "c", "type": "R"}})
        assert (status, told["words"]) == (200, "Checked again; no verdict changed.")


def test_the_second_statement_of_a_formula_and_a_cost_are_corrected(tmp_path: Path) -> None:
    talk = "So $$1 + 1 = 3, \\qquad 2 + 2 = 5.$$\n\n| method | memory |\n|---|---|\n| random features | $O(m d)$ |\n"
    found = review(talk)
    second, cost = [(each.line, each.column) for each in found.statements if each.refuted][1:]
    assert found.answer is not None
    assert second[1] == found.answer.statements[1].column + 1
    readings = tmp_path / "answer.readings.yaml"
    with serve_review(found, tmp_path / "answer.marks.json", readings=readings).running() as address:
        for (line, column), words in ((second, "line 1: hypothesis"), (cost, "line 5: hypothesis (was refuted)")):
            entry = {"line": line, "column": column, "role": "hypothesis"}
            status, told = ask(f"{address}readings", {"correct": entry})
            assert status == 200
            assert words in told["words"]
