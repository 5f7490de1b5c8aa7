"""Results, measured and shown."""

from likewise.reports.comparison import Comparison, Form, compare, compare_random

__all__ = ["Comparison", "Form", "compare", "compare_random"]
