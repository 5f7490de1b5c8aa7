"""Reading: answers as people write them, Markdown with LaTeX, as claims with verdicts, place by place."""

from likewise.reading.answers import Answer, Statement, check_answer, check_answers, read_answer
from likewise.reading.segments import Turn

__all__ = ["Answer", "Statement", "Turn", "check_answer", "check_answers", "read_answer"]
