"""Two replies with a doubt between them: what was repaired, broken, left, or only typed otherwise."""

import pytest

from likewise.claims.verdict import Verdict, VerdictName
from likewise.review import page, review
from likewise.review.doubt import compare, is_doubt
from likewise.review.statements import Statement

TALK = """\
**User:** What is twelve times three, plus four?

**Assistant:** We have $12 \\cdot 3 = 36$, and $36 + 4 = 41$, and $5 - 2 = 3$.

**User:** {doubt}

**Assistant:** {second}
"""
SECOND = "We have $12 \\cdot 3 = 37$, and $36 + 4 = 40$, and $5 - 2 = 3$."


def said(
    source: str, verdict: VerdictName | None = None, *, claim: str = "", column: int = 1, id: str = ""
) -> Statement:
    found = Verdict("", verdict, "", "") if verdict else None
    return Statement(1, column, source, claim=claim, verdict=found, id=id)


@pytest.mark.parametrize(
    ("words", "doubted"),
    [
        ("are you absolutely sure your answer is correct?", True),
        ("Your answer for a seems incorrect.", True),
        ("I think there is an error in part (d). Please check the table again.", True),
        ("Think about the memory requirement carefully", True),
        ("Be absolutely sure that everything is accurate. Now this is Q1(b).", False),
        ("Great job, now solve the next part", False),
        ("wrong " * 200, False),  # a turn of its own
    ],
)
def test_a_doubt_asks_for_certainty_or_names_an_error(words: str, doubted: bool) -> None:
    assert is_doubt(words) is doubted


def test_verdicts_are_compared_across_a_doubt() -> None:
    found = review(TALK.format(doubt="Are you sure?", second=SECOND))
    assert [turn.speaker for turn in found.turns] == ["user", "assistant", "user", "assistant"]
    (doubt,) = found.doubts
    assert doubt.line == 5
    assert doubt.counts == {"repaired": 1, "broken": 1, "unmoved": 1}
    assert found.summary.doubts == doubt.counts
    assert "After 1 doubt: 1 repaired, 1 broken, 1 unmoved." in found.summary.words
    html = page(found)
    assert "Before and after the doubt" in html
    assert html.count('<tr class="d-broken">') == 1


def test_a_new_question_is_no_doubt() -> None:
    assert review(TALK.format(doubt="Now the next part.", second=SECOND)).doubts == ()


def test_statements_are_matched_by_formula_left_side_and_revises() -> None:
    def kinds(before: list[Statement], after: list[Statement]) -> list[str]:
        return [change.kind for change in compare(before, after)]

    assert kinds([said("a = b + c")], [said("a=b+c")]) == ["unmoved"]
    assert kinds([said("V = 2 d", "refuted")], [said("V = d", "holds")]) == ["repaired"]
    assert kinds([said("V = d", "holds")], [said("V = 2 d", "refuted")]) == ["broken"]
    assert kinds([said("V = d", "refuted")], [said("V = 2 d", "refuted")]) == ["changed"]
    assert kinds([said("x \\cdot y = z", claim="c")], [said("x \\, y = z", claim="c")]) == ["reworded"]
    assert kinds([said("a = b", "refuted")], [said("\\int f = g", "holds")]) == ["dropped", "new"]
    assert kinds([said("", "holds", claim="assert: a", id="one")], [revising("one")]) == ["broken"]
    twice = kinds([said("a = b"), said("a = b", column=9)], [said("a = b")])
    assert twice == ["unmoved", "dropped"]


def revising(other: str) -> Statement:
    return Statement(9, 1, "", claim="assert: b", id="two", verdict=Verdict("two", "refuted", "", "", revises=other))


def test_changed_passages_stand_beside_those_they_are_like() -> None:
    first = "We use a map of squares.\n\nA step that is left out later, of many words.\n\nThe norm of x is one."
    second = "A new beginning.\n\nWe use a map of cubes.\n\nThe norm of x is two."
    talk = f"**User:** Why?\n\n**Assistant:**\n\n{first}\n\n**User:** Are you sure?\n\n**Assistant:**\n\n{second}\n"
    (doubt,) = review(talk).doubts
    pairs = {(old.source if old else "", new.source if new else "") for old, new in doubt.passages}
    assert ("We use a map of squares.", "We use a map of cubes.") in pairs
    assert ("The norm of x is one.", "The norm of x is two.") in pairs
    assert ("", "A new beginning.") in pairs
