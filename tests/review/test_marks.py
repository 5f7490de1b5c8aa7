"""Marks find their place again, survive two writers, and come back from every form in which they leave."""

import json
import subprocess
import sys
import threading
from pathlib import Path

import hypothesis
import hypothesis.strategies as st
import pytest
import yaml

from likewise.review.marks import (
    MARKS,
    TAGS,
    Conflict,
    Mark,
    MarkFile,
    Place,
    from_json_lines,
    from_markdown,
    import_marks,
    mark_of,
    marks_beside,
    placed,
    to_json_lines,
    to_markdown,
)
from tests.review.payloads import ALL

SOME = [
    Mark(3, 0, "wrong", "not so:\n\n> `a` <b> & \\ *c* _d_ [e](f) ![g](h) $x$", "wrong figure", "a ``` fence\n````\n"),
    Mark(3, 7, "right"),
    Mark(9, 0, "praise", "", "helpful", "x"),
]
TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r"), max_size=60)
MARK = st.builds(
    Mark,
    st.integers(1, 500),
    st.integers(0, 90),
    st.sampled_from(MARKS),
    TEXT,
    st.sampled_from(["", *TAGS]),
    TEXT,
)


@hypothesis.given(st.lists(MARK, max_size=4))
def test_markdown_and_back_is_the_same(marks: list[Mark]) -> None:
    assert from_markdown(to_markdown(marks, "answer.md")) == marks


@hypothesis.given(st.lists(MARK, max_size=4))
def test_json_lines_and_back_is_the_same(marks: list[Mark]) -> None:
    assert from_json_lines(to_json_lines(marks, [(1, 500, "step")], id="a")) == marks


def test_hostile_remarks_leave_as_text() -> None:
    """Rendered by a renderer that lets HTML through, an exported remark is still only text."""
    from markdown_it import MarkdownIt

    renderer = MarkdownIt("commonmark", {"html": True})
    for payload in ALL:
        mark = Mark(1, 0, "wrong", payload.replace("\r", "")[:4000], "", payload.replace("\r", ""))
        exported = to_markdown([mark], payload)
        html = renderer.render(exported)
        for markup in ("<script", "<img", "<svg", "<a ", "<iframe", "<style", "<math", "<em"):
            assert markup not in html, payload
        assert from_markdown(exported) == [mark], payload


def test_steps_are_labelled_as_data_sets_do() -> None:
    steps = [(1, 2, "first"), (3, 5, "second"), (6, 9, "third"), (10, 11, "fourth")]
    record = json.loads(to_json_lines(SOME, steps, id="a#1", generator="model"))
    assert record["steps"] == ["first", "second", "third", "fourth"]
    assert record["ratings"] == [None, -1, 1, None]
    assert record["label"] == 1
    assert json.loads(to_json_lines([], steps, id="a"))["label"] == -1


def test_a_mark_follows_its_passage() -> None:
    places = [Place(4, 0, "a"), Place(9, 0, "same"), Place(20, 0, "same"), Place(9, 3, "same")]
    found, lost = placed(
        [
            Mark(4, 0, "right", source="a"),
            Mark(18, 0, "wrong", source=" same\n"),
            Mark(1, 8, "wrong", source="same"),
            Mark(4, 0, "unclear", source="gone"),
            Mark(4, 0, "unclear"),
            Mark(5, 0, "unclear"),
        ],
        places,
    )
    assert [(mark.line, mark.column) for mark in found] == [(4, 0), (20, 0), (9, 3), (4, 0)]
    assert [(mark.line, mark.source) for mark in lost] == [(4, "gone"), (5, "")]


def test_what_is_no_mark_is_refused() -> None:
    for data, words in [
        ({"line": 0, "mark": "right"}, "line must be a whole number of at least 1; got 0"),
        ({"line": True, "mark": "right"}, "line must be a whole number"),
        ({"line": 1, "mark": "Right"}, "mark must be one of 'right'"),
        ({"line": 1, "mark": "right", "remark": 3}, "remark must be text"),
        ({"line": 1, "mark": "right", "remark": "x" * 5000}, "remark must be text of at most 4,000 characters"),
        ({"line": 1, "mark": "right", "tag": "a\nb"}, "tag must be text"),
        ({"line": 1, "mark": "right", "remarks": ""}, "names must be among"),
        ({"line": 1}, "line and mark must be given"),
        ([], "mark must be a mapping"),
    ]:
        with pytest.raises(ValueError, match=words):
            mark_of(data)


def test_a_file_keeps_what_was_put(tmp_path: Path) -> None:
    file = MarkFile(tmp_path / "a.marks.json")
    assert file.read() == []
    first = file.put(SOME[1])
    second = file.put(SOME[0])
    assert [first.revision, second.revision] == [1, 2]
    assert MarkFile(file.path).read() == [second, first]  # a passage before the statement in it
    file.remove(3, 0, 2)
    assert file.read() == [first]
    assert [path.name for path in tmp_path.iterdir()] == ["a.marks.json"]


def test_a_change_of_an_older_revision_is_a_conflict(tmp_path: Path) -> None:
    file = MarkFile(tmp_path / "a.marks.json")
    mine = file.put(Mark(1, 0, "right"))
    theirs = file.put(Mark(1, 0, "wrong", "theirs", revision=mine.revision))
    with pytest.raises(Conflict) as conflict:
        file.put(Mark(1, 0, "unclear", revision=mine.revision))
    assert conflict.value.current == theirs
    with pytest.raises(Conflict):
        file.put(Mark(1, 0, "praise"))
    with pytest.raises(Conflict):
        file.remove(1, 0, mine.revision)
    file.remove(1, 0, theirs.revision)
    with pytest.raises(Conflict) as conflict:
        file.put(Mark(1, 0, "unclear", revision=theirs.revision))
    assert conflict.value.current is None


def test_threads_do_not_lose_marks(tmp_path: Path) -> None:
    file = MarkFile(tmp_path / "a.marks.json")
    threads = [
        threading.Thread(target=lambda first=first: [file.put(Mark(first + 4 * n, 0, "right")) for n in range(10)])
        for first in range(1, 5)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [mark.line for mark in file.read()] == list(range(1, 41))
    assert sorted(mark.revision for mark in file.read()) == list(range(1, 41))


@pytest.mark.slow
def test_processes_do_not_lose_marks(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from likewise.review.marks import Mark, MarkFile\n"
        "for n in range(10): MarkFile(Path(sys.argv[1])).put(Mark(int(sys.argv[2]) + 3 * n, 0, 'right'))"
    )
    path = tmp_path / "a.marks.json"
    running = [subprocess.Popen([sys.executable, "-c", code, str(path), str(first)]) for first in (1, 2, 3)]
    assert [process.wait(60) for process in running] == [0, 0, 0]
    assert [mark.line for mark in MarkFile(path).read()] == list(range(1, 31))


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"marks": 3}', '{"marks": [{"line": 1}]}', "[" * 100_000])
def test_a_damaged_file_is_refused_and_left_alone(tmp_path: Path, text: str) -> None:
    path = tmp_path / "a.marks.json"
    path.write_text(text)
    with pytest.raises(ValueError, match="marks: file must be marks that likewise wrote"):
        MarkFile(path).put(Mark(1, 0, "right"))
    assert path.read_text() == text


def test_imported_marks_do_not_replace_present_ones(tmp_path: Path) -> None:
    file = MarkFile(tmp_path / "a.marks.json")
    kept = file.put(Mark(3, 0, "right"))
    left = file.add(SOME)
    assert [mark.key for mark in left] == ["3"]
    assert file.read()[0] == kept
    assert [mark.key for mark in file.read()] == ["3", "3:7", "9"]


def test_every_form_is_imported_by_its_name(tmp_path: Path) -> None:
    forms = {".md": to_markdown(SOME), ".jsonl": to_json_lines(SOME, [], id="a")}
    for suffix, text in forms.items():
        (tmp_path / f"marks{suffix}").write_text(text)
        assert import_marks(tmp_path / f"marks{suffix}") == SOME
    with pytest.raises(ValueError, match=r"marks: file must be one of '.json', '.jsonl', '.md'; got '.txt'"):
        import_marks(tmp_path / "marks.txt")
    (tmp_path / "odd.jsonl").write_text('{"marks": []}\n{"steps": []}\n')
    with pytest.raises(ValueError, match="line 2"):
        import_marks(tmp_path / "odd.jsonl")


def test_marks_lie_beside_their_answer() -> None:
    assert marks_beside(Path("folder/answer.md")) == Path("folder/answer.marks.json")


def test_marks_of_the_transcripts_are_line_mark_and_tag_only() -> None:
    """No sentence of the transcripts is in the repository."""
    about = yaml.safe_load((Path(__file__).parents[2] / "studies" / "reviews.yaml").read_text())
    assert len(about) == 5
    for said in about.values():
        assert set(said) == {"assistant", "questions", "marks"}
        spans = list(said["questions"].values())
        for line, mark, *tag in said["marks"]:
            assert any(first <= line <= last for first, last in spans)
            assert mark in MARKS
            assert all(each in TAGS for each in tag)
            assert len(tag) <= 1
