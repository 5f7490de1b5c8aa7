"""Reading: answers as people write them, Markdown with LaTeX, as claims with verdicts, place by place."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from likewise.reading.answers import Answer, Statement, check_answer, check_answers, read_answer
    from likewise.reading.segments import Turn

__all__ = ["Answer", "Statement", "Turn", "check_answer", "check_answers", "read_answer"]


def __getattr__(name: str) -> Any:
    """Load the reader when it is asked for; grading a final answer needs its tokens only."""
    if name in __all__:
        from likewise.reading import answers, segments

        return getattr(segments if name == "Turn" else answers, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
