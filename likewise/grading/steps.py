"""A derivation and its final answer: the first error, right steps with a wrong answer, and the points of a rubric."""

import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from likewise.grading.comparing import compared
from likewise.grading.given import conventions_of, given_of
from likewise.grading.grading import SECONDS, Grade, grade
from likewise.grading.outcomes import World
from likewise.grading.parsing import readings
from likewise.reading import check_answer
from likewise.reading.findings import Statement
from likewise.reading.latex import Unread


@dataclass(frozen=True)
class Steps:
    """The grade of the final answer and what the reader says of the statements before it.

    first_error: the first statement that is refuted, or None. refuted, held, open: how many statements are refuted,
    hold, and are not decided or not read. points: for each line of the rubric True if a statement of the answer says
    it, and None otherwise: what was not read may say it.
    """

    final: Grade
    first_error: Statement | None
    refuted: int
    held: int
    open: int
    points: tuple[bool | None, ...] = ()

    @property
    def verdict(self) -> str:
        """right, right answer after an error, wrong answer after right steps, wrong from the first error, or open."""
        match self.final.verdict:
            case "equal":
                return "right answer after an error" if self.refuted else "right"
            case "different":
                if self.refuted:
                    return "wrong from the first error"
                return "wrong answer after right steps" if self.held and not self.open else "wrong answer"
        return "open"


def grade_steps(
    answer: str,
    key: str,
    given: str | None = None,
    conventions: Mapping[str, Any] | None = None,
    *,
    rubric: tuple[str, ...] = (),
    seconds: float = 10.0,
) -> Steps:
    r"""Grade the final answer, and read and check the statements of the derivation.

    rubric: formulas, one a point; a point is given if a formula of the answer states the same. seconds: for the reader.

    >>> found = grade_steps("First $3 \\times 4 = 12$, then $12 + 5 = 18$.\n\nAnswer: $18$", "17")
    >>> found.verdict, found.first_error.source
    ('wrong from the first error', '12 + 5 = 18')
    """
    final = grade(answer, key, given, conventions)
    statements = [each for each in check_answer(answer, seconds=seconds).statements if each.relation]
    refuted = [each for each in statements if each.verdict == "refuted"]
    held = sum(each.verdict == "holds" for each in statements)
    return Steps(
        final,
        refuted[0] if refuted else None,
        len(refuted),
        held,
        len(statements) - len(refuted) - held,
        tuple(_stated(point, statements, given, conventions) for point in rubric),
    )


def _stated(
    point: str, statements: list[Statement], given: str | None, conventions: Mapping[str, Any] | None
) -> bool | None:
    """True if a formula of the answer, or a side of it, is equal to the point of a rubric."""
    world = World(given_of(given), conventions_of(conventions), time.thread_time() + SECONDS)
    try:
        wanted = readings(point)[0]
    except Unread as error:
        raise ValueError(
            f"grade_steps: rubric must be made of formulas that are read; got {point!r} ({error})."
        ) from error
    for statement in statements:
        if statement.verdict == "refuted":
            continue
        for text in (statement.source, *re.split(r"(?<![<>!:])=", statement.source)):
            try:
                if compared(readings(text)[0], wanted, world).verdict == "equal":
                    return True
            except Unread:
                continue
    return None
