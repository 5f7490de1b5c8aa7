"""Reviews: an answer, what running it says, a person's marks, and where they differ; as values, page, JSON and text."""

from likewise.review.corrections import attempts, corrections
from likewise.review.folder import Folder, pages_of, review_file, review_folder
from likewise.review.live import serve_review
from likewise.review.marks import Mark, MarkFile
from likewise.review.rendering import page, text
from likewise.review.reviewing import Review, review, review_of
from likewise.review.rubric import Rubric, read_rubric

__all__ = [
    "Folder",
    "Mark",
    "MarkFile",
    "Review",
    "Rubric",
    "attempts",
    "corrections",
    "page",
    "pages_of",
    "read_rubric",
    "review",
    "review_file",
    "review_folder",
    "review_of",
    "serve_review",
    "text",
]
