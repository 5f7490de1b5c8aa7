"""Answers that were doubted and corrected: every attempt is judged as expected, and the last one holds."""

from pathlib import Path

import pytest

from likewise.claims.checking import check_claims
from likewise.claims.documents import file_claims
from likewise.claims.verdict import Verdict
from likewise.programs.rows import FOLDER

ANSWERS = sorted((FOLDER.parent / "answers").glob("*.md"))


def attempts(verdicts: list[Verdict], first: str) -> list[Verdict]:
    """A statement and its revisions, in the order in which each revises the one before."""
    found = [next(verdict for verdict in verdicts if verdict.id == first)]
    while later := [verdict for verdict in verdicts if verdict.revises == found[-1].id]:
        found += later
    return found


@pytest.mark.parametrize("answer", ANSWERS, ids=lambda answer: answer.stem)
def test_every_claim_of_an_answer_is_as_expected(answer: Path) -> None:
    verdicts = check_claims(file_claims(answer))
    assert len(verdicts) > 1
    assert not [str(verdict) for verdict in verdicts if not verdict.as_expected]


def test_the_covariance_is_doubted_twice_and_then_proved() -> None:
    (answer,) = (answer for answer in ANSWERS if answer.stem == "covariance")
    tried = attempts(check_claims(file_claims(answer)), "law-as-answered")
    assert [verdict.verdict for verdict in tried] == ["refuted", "refuted", "holds"]
    assert [verdict.grade for verdict in tried] == ["exact witness", "exact witness", "proved"]
    assert dict(tried[0].witness)["D"] == "2"
