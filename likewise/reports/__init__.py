"""Results as pages and pictures: values in, HTML or SVG out. Nothing is measured or trained here.

What a page shows is imported for its types only, so that writing one page loads no room that it does not show.
"""

from likewise.reports.diagnosis import diagnosis_picture
from likewise.reports.difficulty import depth_page
from likewise.reports.evaluation import evaluation_page
from likewise.reports.exits import exits_json, exits_page
from likewise.reports.facts import Facts, gather_facts
from likewise.reports.learning import learning_curve

__all__ = [
    "Facts",
    "depth_page",
    "diagnosis_picture",
    "evaluation_page",
    "exits_json",
    "exits_page",
    "gather_facts",
    "learning_curve",
]
