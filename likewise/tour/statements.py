"""What was said about these methods, executed: the catalogue row by row, and one answer that was corrected."""

from dataclasses import dataclass
from pathlib import Path

from likewise.claims import check_claims
from likewise.claims.documents import file_claims
from likewise.programs.rows import FOLDER, Row, catalogue_claims, listed, rows, totals, words
from likewise.progress import Progress, part, silent
from likewise.review import MarkFile, Review, attempts, review
from likewise.review.corrections import Attempt
from likewise.review.marks import marks_beside

COVARIANCE = FOLDER.parent / "answers" / "covariance.md"
EXAMPLE = FOLDER.parent / "answers" / "linear_attention.md"
ANSWER = 0.05  # of the time
TOPICS = "abcdefghijkl"  # the catalogue's files by their first letter


@dataclass(frozen=True)
class Statements:
    """The rows of the catalogue with their verdicts, what they add up to, and the attempts at one answer."""

    rows: tuple[Row, ...]
    totals: dict[str, int]
    listed: dict[int, str]  # rows that no run can decide, with the reason
    claims: int
    attempts: tuple[Attempt, ...]
    seed: int
    words: dict[int, str]  # every row's statement in words

    @property
    def unnoticed(self) -> tuple[Row, ...]:
        """What is false, and nobody saw it."""
        return tuple(row for row in self.rows if row.decided and row.unnoticed)


def check_statements(*, topics: str = TOPICS, seed: int = 0, progress: Progress = silent) -> Statements:
    """Check every claim of the catalogue's topics, and the answer about the law of random features."""
    answer = file_claims(COVARIANCE)
    judged = check_claims(answer, seed=seed, progress=part(progress, 0.0, ANSWER))
    stated = [claim for claim in catalogue_claims() if Path(claim.file).name[0] in topics]
    verdicts = check_claims(stated, seed=seed, progress=part(progress, ANSWER, 1.0))
    found = rows(stated, verdicts)
    (chain,) = attempts(answer, judged)
    return Statements(tuple(found), totals(found), listed(), len(stated), tuple(chain), seed, words())


def review_example(*, seed: int = 0) -> Review:
    """The review of an answer, with marks, that repeats known mistakes: law, short map, cost, lost sign."""
    marks = MarkFile(marks_beside(EXAMPLE)).read()
    return review(EXAMPLE.read_text(encoding="utf-8"), marks, name=EXAMPLE.name, seed=seed)
