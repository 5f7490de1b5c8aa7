"""Reviews: an answer, what running it says, a person's marks, and where they differ; as values, page, JSON and text."""

from likewise.review.corrections import attempts, corrections
from likewise.review.live import serve_review
from likewise.review.marks import Mark, MarkFile
from likewise.review.rendering import page, text
from likewise.review.reviewing import Review, review, review_of

__all__ = [
    "Mark",
    "MarkFile",
    "Review",
    "attempts",
    "corrections",
    "page",
    "review",
    "review_of",
    "serve_review",
    "text",
]
