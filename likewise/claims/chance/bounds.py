"""Expectations and probabilities between rigorous bounds: boxes of draws and quadrature, where no formula was found.

The bounds are those of the judge. They refute at a point, and where a claim speaks of a few points only they prove an
inequality or a `within`; so that no proof rests on one reading alone, plain draws read by the engines must agree.
"""

import time
from collections.abc import Iterator
from itertools import islice
from typing import Any

import numpy as np
from flint import fmpq

from likewise.claims import blind, judge
from likewise.claims.chance.draws import Range
from likewise.claims.chance.trials import Question, averaged, is_variance
from likewise.claims.chance.trials import judge as ruled
from likewise.claims.language.claim import Claim, Compares
from likewise.claims.spelling import spelled
from likewise.claims.verdict import Finding, Undecided

ENGINE = "bounds"
BUDGET_SHARE, SECONDS = 0.3, 2.0  # of the budget; of process time
POINTS, FEW = 60, 40  # looked at for a counterexample; all points of a claim that is proved
TRIED = 600  # points of the blind search, for those
BITS = 64
MOST = 6  # random numbers at a point; boxes of more tell nothing
DRAWS, WIDTH = 20_000, 8.0  # that must agree, within so many standard errors


def decide(claim: Claim) -> Finding | None:
    """Refuted at a point, or proved where there are few points; None where the bounds leave it open."""
    if not isinstance(claim.relation, Compares) or claim.program:
        return None
    every = blind.every_point(claim)
    ends = time.process_time() + min(SECONDS, BUDGET_SHARE * claim.budget)
    points = every if every is not None else sorted(islice(_points(claim), POINTS), key=_weight)
    seen: list[str] = []
    for sizes, values in points:
        if judge.random_draws(claim, sizes, values) > MOST:
            return None
        seen.append(judge.rule(claim, sizes, values, (BITS,)))
        if seen[-1] == "false":
            if not _defined(claim, sizes, values):
                return None  # an event or a mean that is undefined for some draws is not called false
            shown = [(name, str(size)) for name, size in sizes.items()]
            shown += [(name, _shown(entries)) for name, entries in values.items()]
            place = " ".join(f"{name}={value}" for name, value in shown)
            seen_ = judge.against(claim, sizes, values)
            detail = f"{place}{': ' if place and seen_ else ''}{seen_}, by quadrature with bounds"
            return Finding("refuted", "exact witness", detail, ENGINE, tuple(shown) or (("seen", "quadrature"),))
        if time.process_time() > ends:
            return None
    if every is None or not every or len(every) > FEW or set(seen) - {"true", "outside"} or "true" not in seen:
        return None
    for (_, values), truth in zip(every, seen, strict=True):
        if truth == "true" and not _agrees(claim, values):
            raise AssertionError("draws contradict the bounds")
    return Finding("holds", "proved", "by quadrature, with bounds", ENGINE)


def _defined(claim: Claim, sizes: blind.Sizes, values: blind.Values) -> bool:
    """Whether every side is one number, or an array, for the judge."""
    assert isinstance(claim.relation, Compares)
    try:
        point = judge.place(claim, sizes, values)
        shapes = {point.value(term).array.shape for term in claim.relation.chain.terms}
    except (judge.Undefined, judge.Unclear, judge.Misfit, judge.Outside, judge.Turned):
        return False
    return len(shapes) == 1


def _points(claim: Claim) -> Iterator[tuple[blind.Sizes, blind.Values]]:
    """Points of the blind search with whole numbers and short fractions, each once."""
    seen = set()
    for sizes, values in islice(blind.points(claim, claim.seed or 0), TRIED):  # a size alone has few different values
        key = (tuple(sizes.items()), tuple((name, tuple(map(str, entries))) for name, entries in values.items()))
        if key not in seen and all(len(text) <= 4 for _, entries in key[1] for text in entries):
            seen.add(key)
            yield sizes, values


def _weight(point: tuple[blind.Sizes, blind.Values]) -> int:
    """How long it takes to look at a point: more draws take far longer."""
    return sum(point[0].values())


def _shown(entries: list[Any]) -> str:
    texts = list(map(str, entries))
    return texts[0] if len(texts) == 1 else f"({','.join(texts)})"


def _agrees(claim: Claim, values: blind.Values) -> bool:
    """Whether plain averages of draws, read by the engines, leave the claim possible at a point."""
    question = Question.of(spelled(claim))
    if question is None:
        return False
    numbers = {name: fmpq(entries[0]) for name, entries in values.items()}
    point = {name: np.asarray(float(value.p) / float(value.q)) for name, value in numbers.items()}
    try:
        with np.errstate(all="ignore"):
            scope = question.scope(point)
            drawn = question.drawn(scope, DRAWS, np.random.default_rng(question.seed))
            intervals = {mean: _interval(averaged(mean, drawn), squared=is_variance(mean)) for mean in question.means}
            refuted, _ = ruled(question, scope, intervals)
    except (Undecided, ValueError, IndexError):
        return False
    return not refuted.any()


def _interval(draws: np.ndarray, *, squared: bool) -> Range:
    """The average with a wide standard error; of a variance, of the squares from the mean."""
    values = (draws - draws.mean()) ** 2 if squared else draws
    middle, error = values.mean(), WIDTH * (values.std() + 1e-12) / np.sqrt(len(values))
    return Range(np.array([middle - error]), np.array([middle + error]))
