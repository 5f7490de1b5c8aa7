"""Rubrics name parts; the passages of each are found, and a part without any was not answered."""

import re
from pathlib import Path

import pytest

from likewise.review import MarkFile, page, review
from likewise.review.marks import Conflict, Mark, Points
from likewise.review.rubric import rubric_of

RUBRIC = (
    "parts: [{name: (a), points: 3, topic: sums}, {name: (b), points: 2}, {name: (c), begins: [Third], topic: sums}]"
)
ANSWER = """\
# Answer

**(a)** We have $1 + 1 = 3$.

More about it: $2 + 2 = 4$.

(b) Here $3 + 3 = 6$.
"""


def test_passages_belong_to_the_part_that_was_opened_last() -> None:
    found = review(ANSWER, [], rubric_of(RUBRIC)).with_marks([], [Points("(a)", 1.5)])
    parts = found.summary.parts
    assert {name: (counts.statements, counts.refuted) for name, counts in parts.items()} == {
        "(a)": (2, 1),
        "(b)": (1, 0),
        "(c)": (0, 0),
    }
    assert found.summary.unanswered == ("(c)",)
    assert found.summary.topics["sums"].statements == 2
    assert (found.summary.given, found.summary.possible, found.summary.ungraded) == (1.5, 5.0, 2)
    assert "Not answered: (c). Points: 1.5 of 5, 2 parts without points." in found.summary.words
    assert "not answered" in page(found)
    assert found.to_json()["summary"]["parts"]["(a)"]["first_error"] == 3


def test_a_user_opens_a_part_and_a_doubt_leaves_it_open() -> None:
    talk = (
        "**User:** Solve (b).\n\n**Assistant:** So $1 + 1 = 2$.\n\n**User:** Are you sure?\n\n"
        "**Assistant:** Yes, $1 + 1 = 2$.\n\n**User:** Thanks, something else.\n\n**Assistant:** Fine, $2 + 2 = 4$.\n"
    )
    found = review(talk, [], rubric_of(RUBRIC))
    assert [row.first for row in found.parts["(b)"]] == [3, 7]


def test_without_a_rubric_headings_are_topics() -> None:
    found = review("# One\n\n$1 + 1 = 3$\n\n## Two\n\n$2 + 2 = 4$\n")
    assert {name: counts.refuted for name, counts in found.summary.topics.items()} == {"One": 1, "Two": 0}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[1", "rubric: rubric.yaml must be YAML; got"),
        ("parts: []", "rubric: rubric.yaml must be `parts:` with a list of parts; got"),
        (
            "parts: [{name: a, weight: 1}]",
            "rubric: each part in rubric.yaml must have name, points, topic, begins only",
        ),
        ("parts: [{name: a, points: .inf}]", "rubric: points of a must be a number from 0 to 10,000; got inf."),
        ("parts: [{name: a, points: .nan}]", "rubric: points of a must be a number from 0 to 10,000; got nan."),
        ("parts: [{name: a}, {name: a}]", "rubric: names in rubric.yaml must differ; got a, a."),
        ("parts: [{points: 1}]", "rubric: name in rubric.yaml must be a short text; got ''."),
    ],
)
def test_a_wrong_rubric_is_refused(text: str, words: str) -> None:
    with pytest.raises(ValueError, match="^" + re.escape(words)):
        rubric_of(text)


def test_points_are_kept_with_the_marks_and_two_tabs_are_told(tmp_path: Path) -> None:
    file = MarkFile(tmp_path / "answer.marks.json")
    first = file.put_points(Points("(a)", 2))
    file.put(Mark(1, 0, "right"))
    with pytest.raises(Conflict) as conflict:
        file.put_points(Points("(a)", 1))
    assert conflict.value.current == first
    file.put_points(Points("(a)", 1, first.revision))
    assert [(each.part, each.points) for each in file.read_points()] == [("(a)", 1)]
    assert [mark.key for mark in file.read()] == ["1"]
    with pytest.raises(ValueError, match="points: points must be a number from 0 to 10,000; got -1"):
        Points("(a)", -1)


def test_parts_that_are_asked_within_a_sentence_are_parts() -> None:
    talk = (
        "**User:** Show that (a) $1 + 1 = 2$ holds, (b) $2 + 2 = 4$ holds, and (c) say why it does.\n\n"
        "**Assistant:** (a) So $1 + 1 = 2$.\n\nPart b: So $2 + 2 = 4$.\n"
    )
    found = review(talk)
    assert {name: [row.first for row in rows] for name, rows in found.parts.items()} == {
        "(a)": [3],
        "(b)": [5],
        "(c)": [],
    }
    assert found.summary.unanswered == ("(c)",)
    assert "not answered" in page(found)


@pytest.mark.parametrize("words", ["See parts (a) and (b) of the text.", "Is f(a) (b) times as large?", "See (b) too."])
def test_a_part_that_is_only_mentioned_is_not_asked(words: str) -> None:
    assert review(f"**User:** {words}\n\n**Assistant:** Fine.\n").parts == {}
