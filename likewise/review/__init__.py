"""Answers and the verdicts on their claims: cards, chains of corrections, and the annotated page."""

from likewise.review.annotation import GRADES, Attempt, Card, annotated, attempts, corrections

__all__ = ["GRADES", "Attempt", "Card", "annotated", "attempts", "corrections"]
