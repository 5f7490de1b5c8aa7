"""The tour: every method on data that needs no download, one chapter a file, and one page of what came out."""

from likewise.tour.tour import write_tour

__all__ = [
    "write_tour",
]
