"""Grading final answers: equal with a proof, different with a witness, depends with a condition, or undecided."""

from likewise.grading.grading import Grade, grade

__all__ = ["Grade", "grade"]
