"""Grading final answers: equal with a proof, different with a witness, depends with a condition, or undecided."""

from typing import TYPE_CHECKING, Any

from likewise.grading.grading import Grade, grade

if TYPE_CHECKING:
    from likewise.grading.steps import Steps, grade_steps

__all__ = ["Grade", "Steps", "grade", "grade_steps"]


def __getattr__(name: str) -> Any:
    """Load the reader of derivations when it is asked for; grading a final answer does not need it."""
    if name in ("Steps", "grade_steps"):
        from likewise.grading import steps

        return getattr(steps, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
