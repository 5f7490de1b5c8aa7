"""Claims with E, Var or P, decided on draws with a bounded probability of error.

Variables that are not random are looked at in a few points, chosen where pilot draws disagree most with the claim.
Refuted: at some point no value inside the intervals satisfies the relation, or the bet against it has paid 1/alpha.
Holds: every value does, which needs a tolerance or an inequality. Otherwise inconclusive when the draws are spent.
"""

import math
import re
import time
from dataclasses import replace

import numpy as np

from likewise.claims.chance.draws import as_range, constant
from likewise.claims.chance.places import Point, candidates, text
from likewise.claims.chance.trials import Outcome, Question, Trial, averaged, is_variance
from likewise.claims.language.claim import Claim
from likewise.claims.language.tree import Probability
from likewise.claims.verdict import Finding, Undecided

DRAWS = 200_000  # per point
PILOT = 64  # draws that only choose where to look


def decide(claim: Claim, *, draws: int = DRAWS) -> Finding | None:
    """Refuted, holds or inconclusive, wrong with probability at most `claim.alpha`; None without an expectation."""
    question = Question.of(claim)
    if question is None:
        return None
    try:
        return _decided(question, draws)
    except (ValueError, IndexError) as reason:  # numpy's words for arrays that do not fit
        raise Undecided(f"shapes do not fit: {reason}") from None


def _decided(question: Question, draws: int) -> Finding:
    claim = question.claim
    end = time.process_time() + 0.9 * claim.budget  # the last block may take a little longer
    with np.errstate(all="ignore"):  # what is not finite is refused where it matters
        points = choose(question)
        outcomes: list[Outcome] = []
        for number, point in enumerate(points):
            # E-values of all points are averaged; one that was not looked at yet counts 1.
            others = [outcome.log_value for outcome in outcomes] + [0.0] * (len(points) - number - 1)
            generator = np.random.default_rng([question.seed, 1, number])
            trial = Trial(question, point, float(claim.alpha) / len(points))
            outcome = trial.run(generator, draws, end, others)
            if outcome.verdict == "refuted":
                return _refuted(question, point, outcome)
            outcomes.append(outcome)
    return _not_refuted(question, points, outcomes)


def choose(question: Question) -> list[Point]:
    """The most suspicious candidates, at first not more than half of them of one size."""
    generator = np.random.default_rng([question.seed, 0])
    scored = [(suspicion(question, point, generator), point) for point in candidates(question.claim, generator)]
    if not scored:
        raise Undecided("no point was found that satisfies the assumptions")
    scored.sort(key=lambda pair: -pair[0])
    most = question.claim.points if question.claim.sizes or len(question.claim.variables) else 1
    chosen: dict[tuple[tuple[str, str], ...], Point] = {}
    for share in (max(most // 2, 1), most):
        for _, point in scored:
            key = tuple(text(point, whole=True))
            same = sum(key[: len(question.claim.sizes)] == other[: len(question.claim.sizes)] for other in chosen)
            if key not in chosen and same < share and len(chosen) < most:
                chosen[key] = point
    return [*chosen.values()]


def suspicion(question: Question, point: Point, generator: np.random.Generator) -> float:
    """How far a few draws are from the relation, in widths of what is averaged."""
    scope = question.scope(point)
    drawn = question.drawn(scope, PILOT, generator)
    means, width = {}, 1e-9
    for mean in question.means:
        values = averaged(mean, drawn)
        means[mean] = constant(values.var() if is_variance(mean) else values.mean())
        width += float(np.ptp(values))
    terms = [as_range(replace(scope, moments=means).evaluate(term)).low.flat[0] for term in question.chain.terms]
    gaps = [
        {"==": abs(left - right), "<": left - right, "<=": left - right}.get(sign, right - left)
        for sign, left, right in zip(question.chain.comparisons, terms, terms[1:], strict=False)
    ]
    return float(max(gaps)) / width if np.isfinite([*gaps, width]).all() else -math.inf


def _refuted(question: Question, point: Point, outcome: Outcome) -> Finding:
    place = " ".join(f"{name}={value}" for name, value in text(point))
    found = _found(question, outcome)
    detail = f"{place}: {found} but claimed {_claimed(question, point, outcome)}" if place else found
    witness = tuple(text(point, whole=True))
    return Finding(
        "refuted", _grade(question, outcome.number), detail, "sampling", witness, numbers=_numbers([outcome])
    )


def _not_refuted(question: Question, points: list[Point], outcomes: list[Outcome]) -> Finding:
    number = sum(outcome.number for outcome in outcomes)
    everywhere = "" if not points[0] else f" at {len(points)} point{'s' * (len(points) > 1)}"
    if all(outcome.verdict == "holds" for outcome in outcomes):
        detail = _found(question, outcomes[0]) if not points[0] else f"within the claimed interval{everywhere}"
        if not points[0]:
            return Finding("holds", _grade(question, number), detail, "sampling", numbers=_numbers(outcomes))
    else:
        detail = f"no counterexample{everywhere} after {number} draws: {_found(question, outcomes[0])}"
    return Finding("inconclusive", "searched", detail, "sampling", numbers=_numbers(outcomes))


def _found(question: Question, outcome: Outcome) -> str:
    """What was estimated, in words."""
    if not outcome.shown and outcome.verdict == "refuted":
        name = "P" if isinstance(question.means[0], Probability) else "mean"
        return f"{name} near {outcome.seen:.4g} (e-value {math.exp(min(outcome.log_value, 700)):.2g})"
    single = len(question.means) == 1
    return ", ".join(
        f"{'P' if isinstance(mean, Probability) else 'Var' if is_variance(mean) else 'mean'}"
        f"{'' if single else f' of {mean}'} in [{interval.low[0]:.4g}, {interval.high[0]:.4g}]"
        for mean, interval in outcome.intervals.items()
    )


def _claimed(question: Question, point: Point, outcome: Outcome) -> str:
    if question.target is None:
        return str(question.chain)
    node, sign = question.target
    value = as_range(question.scope(point).evaluate(node)).low[0]
    return f"{'' if sign == '==' else f'{sign} '}{value:.4g}"


def _grade(question: Question, number: int) -> str:
    alpha = re.sub(r"e-0*", "e-", f"{float(question.claim.alpha):g}")
    return f"sampled, alpha={alpha}, n={number}"


def _numbers(outcomes: list[Outcome]) -> tuple[tuple[str, str], ...]:
    return (("n", str(sum(outcome.number for outcome in outcomes))),)
