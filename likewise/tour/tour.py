"""The tour: every method on data that needs no download, and one page that shows what came out."""

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from likewise.attention import DenominatorWarning
from likewise.checks import require_package
from likewise.files import require_place, write_whole
from likewise.page import render
from likewise.progress import Progress, part, silent
from likewise.reports import exits as exit_pages
from likewise.reports.facts import Facts, gather_facts
from likewise.review import page
from likewise.tour import figures
from likewise.tour.approximation import WIDTHS, Approximation, measure_approximation
from likewise.tour.combinations import WIDEST
from likewise.tour.decoding import CONTEXTS, Decoding, measure_decoding
from likewise.tour.digit_depths import DigitDepths, DigitsPlan, measure_digit_depths
from likewise.tour.embeddings import DIGITS, Embeddings, EmbeddingsPlan, measure_embeddings
from likewise.tour.identities import FrequencyLaw, Identities, check_identities, measure_law
from likewise.tour.measuring import one_thread
from likewise.tour.real_attention import HALF, LOSS, TOUR, RealAttention, RealAttentionPlan, measure_real_attention
from likewise.tour.scaling import LENGTHS, Scaling, measure_scaling
from likewise.tour.statements import TOPICS, Statements, check_statements, review_example

Result = TypeVar("Result")

SHARES = (0.0, 0.03), (0.03, 0.08), (0.08, 0.2), (0.2, 0.25), (0.25, 0.55), (0.55, 0.7), (0.7, 0.86), (0.86, 1.0)


@dataclass(frozen=True)
class TourPlan:
    """How much to measure."""

    widths: tuple[int, ...] = WIDTHS
    draws: int = 8
    lengths: tuple[int, ...] = LENGTHS
    contexts: tuple[int, ...] = CONTEXTS
    allowance: float = 16.0  # seconds for time and memory against length
    real: RealAttentionPlan = TOUR
    embeddings: EmbeddingsPlan = DIGITS
    digits: DigitsPlan = field(default_factory=DigitsPlan)
    topics: str = TOPICS  # of the catalogue of statements
    seed: int = 0


@dataclass(frozen=True)
class Tour:
    """All results, where they were made, and the seconds that each section took."""

    facts: Facts
    identities: Identities
    law: FrequencyLaw
    approximation: Approximation
    scaling: Scaling
    decoding: Decoding
    real: RealAttention
    embeddings: Embeddings
    digits: DigitDepths
    statements: Statements
    took: dict[str, float] = field(default_factory=dict)


def write_tour(path: Path, progress: Progress = silent, *, plan: TourPlan | None = None) -> Path:
    """Measure everything, then write the page to `path` and a review beside it; interrupted, it writes neither."""
    require_package("write_tour", "jinja2", "sklearn")
    require_place("write_tour", path)
    tour = take_tour(progress, plan=plan)
    reviewed = path.with_name(f"{path.stem}-review.html")
    write_whole(reviewed, page(review_example()))
    return write_whole(path, render_tour(tour, reviewed=reviewed.name))


def take_tour(progress: Progress = silent, *, plan: TourPlan | None = None) -> Tour:
    """Measure everything that the page shows."""
    plan = plan or TourPlan()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DenominatorWarning)  # such maps are shown on purpose, with their errors
        return _measure(progress, plan)


def _measure(progress: Progress, plan: TourPlan) -> Tour:
    seed, facts = plan.seed, gather_facts()  # before there is any load of our own
    took: dict[str, float] = {}

    def timed(section: str, measure: Callable[[], Result]) -> Result:
        started = time.perf_counter()
        result = measure()
        took[section] = took.get(section, 0.0) + time.perf_counter() - started
        return result

    steps = [part(progress, start, stop) for start, stop in SHARES]
    identities = timed("identities", lambda: check_identities(seed=seed, progress=steps[0]))
    law = timed("identities", lambda: measure_law(seed=seed))
    approximation = timed(
        "approximation",
        lambda: measure_approximation(widths=plan.widths, draws=plan.draws, seed=seed, progress=steps[1]),
    )
    scaling = timed(
        "scaling",
        lambda: measure_scaling(lengths=plan.lengths, allowance=plan.allowance, seed=seed, progress=steps[2]),
    )
    decoding = timed("decoding", lambda: measure_decoding(contexts=plan.contexts, seed=seed, progress=steps[3]))
    with one_thread():  # two threads of small steps wait for each other when the machine has other work
        real = timed("real", lambda: measure_real_attention(plan=plan.real, seed=seed, progress=steps[4]))
        embeddings = timed("embeddings", lambda: measure_embeddings(plan=plan.embeddings, seed=seed, progress=steps[5]))
        digits = timed("digit_depths", lambda: measure_digit_depths(plan=plan.digits, seed=seed, progress=steps[6]))
    statements = timed("statements", lambda: check_statements(topics=plan.topics, seed=seed, progress=steps[7]))
    return Tour(facts, identities, law, approximation, scaling, decoding, real, embeddings, digits, statements, took)


def depth_figures(digits: DigitDepths) -> dict[str, str]:
    """The pictures of the section on difficulty."""
    depth_groups = digits.study.prepared.depth_groups
    assert depth_groups is not None
    return {
        "depth_figure": exit_pages.depth_figure(depth_groups),
        "trade_figure": exit_pages.trade_figure(digits.study),
    }


def render_tour(tour: Tour, *, reviewed: str = "") -> str:
    """The page; `reviewed` is the file beside it with the review of an answer, if there is one."""
    return render(
        "tour/templates/tour.html",
        {
            "tour": tour,
            "reviewed": reviewed,
            "look": figures.look,
            "image_figure": figures.image_figure,
            "law_figure": figures.law_figure(tour.law),
            "approximation_figure": figures.approximation_figure(tour.approximation),
            "scaling_figure": figures.scaling_figure(tour.scaling),
            "decoding_figure": figures.decoding_figure(tour.decoding),
            "real_figure": figures.real_figure(tour.real),
            "triplets_figure": figures.triplets_figure(tour.embeddings),
            "verification_figure": figures.verification_figure(tour.embeddings),
            **depth_figures(tour.digits),
            "half": HALF,
            "loss": LOSS,
            "widest": WIDEST,
        },
    )
