"""One point of a claim under draws: every moment gets an interval, and the relation is judged on intervals.

At the end: draws of a law, and the range that it cannot leave.
"""

import hashlib
import math
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from likewise.claims.chance.draws import Array, Range, Scope, apply, as_range, constant, known, room, shape
from likewise.claims.chance.places import Point, scope_values
from likewise.claims.chance.rounding import require_digits, verified
from likewise.claims.language.claim import (
    Bernoulli,
    Claim,
    Compares,
    Exponential,
    Law,
    Normal,
    Rademacher,
    Tolerance,
    Uniform,
    Variable,
)
from likewise.claims.language.limits import ELEMENTS
from likewise.claims.language.tree import Call, Chain, Comparison, Moment, Node, Probability, children, names
from likewise.claims.registry import samplers
from likewise.claims.verdict import Undecided
from likewise.stats import BettingProcess, ConfidenceSequence, average

FIRST_BLOCK, LARGEST_BLOCK = 64, 16_384
SLACK = 1e-9  # relative: nothing is refuted by the rounding of floats
ROUNDING = 1e-9  # of an eigenvalue, relative to the largest
MIRRORED: dict[Comparison, Comparison] = {"==": "==", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
Mean = Moment | Probability


def means_of(*nodes: Node) -> list[Mean]:
    """Every E, Var and P below the nodes, once; one inside another is refused."""
    found: list[Mean] = []
    waiting = [*nodes]
    while waiting:
        node = waiting.pop(0)
        if isinstance(node, Moment | Probability):
            if means_of(*children(node)):
                raise Undecided(f"{node} has an expectation inside")
            found += [node] * (node not in found)
        else:
            waiting += children(node)
    return found


@dataclass(frozen=True)
class Question:
    """What is asked of the draws."""

    claim: Claim
    chain: Chain
    within: Tolerance | None
    means: list[Mean]
    seed: int

    @classmethod
    def of(cls, claim: Claim) -> "Question | None":
        """The question a claim asks, if it has an expectation."""
        if not isinstance(claim.relation, Compares):
            return None
        means = means_of(*claim.relation.chain.terms)
        hashed = int.from_bytes(hashlib.sha256(claim.statement.encode()).digest()[:8], "big")
        seed = hashed if claim.seed is None else abs(claim.seed)
        return cls(claim, claim.relation.chain, claim.relation.within, means, seed) if means else None

    @property
    def target(self) -> tuple[Node, Comparison] | None:
        """The claimed value and its comparison, where one E or P stands alone against something known."""
        if len(self.means) != 1 or len(self.chain.terms) != 2 or is_variance(self.means[0]):
            return None
        (mean,), (left, right), (sign,) = self.means, self.chain.terms, self.chain.comparisons
        if mean == left and not means_of(right):
            return right, sign
        return (left, MIRRORED[sign]) if mean == right and not means_of(left) else None

    def scope(self, point: Point) -> Scope:
        """The values of a point."""
        layouts = {variable.name: variable.layout for variable in self.claim.variables if variable.layout}
        return Scope(scope_values(point), {}, self.claim.layout, layouts)

    def drawn(self, scope: Scope, number: int, generator: np.random.Generator) -> Scope:
        """The scope with so many draws of everything random."""
        values = {v.name: draw(v, scope, number, generator) for v in self.claim.variables if v.random}
        if self.claim.program and any("out" in names(mean) for mean in self.means):
            values["out"] = _sampled(self.claim.program, number, generator)
        return replace(scope, values={**scope.values, **values})

    def bounds(self, mean: Mean, scope: Scope) -> Range:
        """What the averaged quantity cannot leave."""
        if isinstance(mean, Probability):
            return Range(np.zeros(1), np.ones(1))
        if self.claim.bounded is not None:
            return Range(*(np.array([float(end)]) for end in self.claim.bounded))
        ranges = {variable.name: support(variable, scope) for variable in self.claim.variables if variable.random}
        ranges["out"] = Range(np.array([-np.inf]), np.array([np.inf]))
        bounds = as_range(replace(scope, values={**scope.values, **ranges}).evaluate(mean.body))
        if not (np.isfinite(bounds.low) & np.isfinite(bounds.high)).all():
            raise Undecided(f"{mean.body} is unbounded: sampling needs a bounded quantity, or `bounded: [low, high]`")
        return bounds


def _sampled(name: str, number: int, generator: np.random.Generator) -> Array:
    """Draws of what a program with a random output returns."""
    if name not in samplers():
        raise Undecided(f"{name} is not a program with a random output; there are {', '.join(samplers())}")
    return samplers()[name](number, generator)


def is_variance(mean: Mean) -> bool:
    """Var[...], which takes two averages: of the quantity and of its square."""
    return isinstance(mean, Moment) and mean.kind == "Var"


def averaged(mean: Mean, scope: Scope) -> Array:
    """What a mean is the mean of, on every draw."""
    if isinstance(mean, Probability):
        terms = [as_range(scope.evaluate(term)).low for term in mean.event.terms]
        if any(term.ndim != 1 for term in terms):
            raise Undecided(f"{mean} compares arrays: whether all entries, or one, is not said")
        if any(np.isnan(term).any() for term in terms):
            raise Undecided(f"{mean}: a side of the event is undefined for some draws")
        return scope.holds(mean.event).astype(float)
    value = as_range(scope.evaluate(mean.body)).low
    if value.ndim != 1:
        raise Undecided(f"{mean.body} is not a number but has shape {value.shape[1:]}")
    return value


class Stream:
    """The interval of the mean of something between two bounds."""

    def __init__(self, bounds: Range, alpha: float) -> None:
        self.low, self.high = float(bounds.low[0]), float(bounds.high[0])
        self.span = self.high - self.low
        self.sequence = ConfidenceSequence(alpha)

    def scaled(self, draws: Array) -> Array:
        """Draws moved into [0, 1]."""
        result = (draws - self.low) / (self.span or 1.0)
        if not np.isfinite(draws).all() or (result < -SLACK).any() or (result > 1 + SLACK).any():
            worst = draws[np.argmax(np.nan_to_num(np.abs(result - 0.5), nan=np.inf))]
            raise Undecided(f"a draw is {worst:g}, outside of [{self.low:g}, {self.high:g}]")
        return result.clip(0, 1)

    def update(self, draws: Array) -> Range:
        """The interval after each draw."""
        low, high = self.sequence.update(self.scaled(draws))
        return Range(self.low + self.span * low, self.low + self.span * high)


class Watch:
    """E, Var or P with the streams it is estimated from."""

    def __init__(self, mean: Mean, bounds: Range, alpha: float) -> None:
        self.mean = mean
        self.middle = (bounds.low + bounds.high) / 2
        self.streams = [Stream(bounds, alpha)]
        if is_variance(mean):  # Var X = E (X - c)^2 - (E X - c)^2, sharpest with c in the middle
            square = as_range(apply("^", apply("-", bounds, self.middle), constant(2)))
            self.streams.append(Stream(square, alpha))

    def update(self, draws: Array) -> Range:
        """The interval of the mean after each draw."""
        first = self.streams[0].update(draws)
        if not is_variance(self.mean):
            return first
        square = self.streams[1].update((draws - self.middle) ** 2)
        variance = apply("-", square, apply("^", apply("-", first, self.middle), constant(2)))
        return as_range(apply("max", variance, constant(0)))


def judge(question: Question, scope: Scope, intervals: dict[Mean, Range]) -> tuple[Array, Array]:
    """After each draw: whether no value inside the intervals satisfies the relation, and whether every one does."""
    terms = [as_range(replace(scope, moments=intervals).evaluate(term)) for term in question.chain.terms]
    if any(term.low.ndim != 1 for term in terms):
        raise Undecided("the relation is not one between numbers")
    refuted, holds = [], []
    for sign, left, right in zip(question.chain.comparisons, terms, terms[1:], strict=False):
        allowed = tolerance(question.within, right)
        slack = SLACK * np.maximum(np.abs(left.low), np.abs(right.high))
        above, below = (
            left.low - right.high - slack,
            right.low - left.high - slack,
        )  # how far one surely exceeds the other
        over, under = left.high - right.low, right.high - left.low  # how far it may
        low, high = allowed.low, allowed.high
        verdicts = {
            "==": ((above > high) | (below > high), (over <= low) & (under <= low)),
            "!=": (np.zeros(1, bool), (above > high) | (below > high)),
            "<": (above > high, over < low if question.within else over < 0),
            "<=": (above > high, over <= low),
            ">": (below > high, under < low if question.within else under < 0),
            ">=": (below > high, under <= low),
        }
        refuted.append(verdicts[sign][0])
        holds.append(verdicts[sign][1])
    judged = np.broadcast_arrays(*refuted, *holds)
    return np.logical_or.reduce(judged[: len(refuted)]), np.logical_and.reduce(judged[len(refuted) :])


def tolerance(within: Tolerance | None, right: Range) -> Range:
    """The allowed difference; relative ones follow the right side."""
    value = 0.0 if within is None else float(within.value)
    if within is None or not within.relative:
        return Range(np.full(1, value), np.full(1, value))
    size = as_range(apply("abs", right))
    return Range(value * size.low, value * size.high)


def blocks(
    question: Question, scope: Scope, generator: np.random.Generator, draws: int, end: float
) -> Iterator[tuple[int, Scope]]:
    """Fresh draws in growing blocks, with how many they are, until the draws or the time are spent."""
    values = question.drawn(scope, 1, generator).values.values()
    entries = max([as_range(value).low.size for value in values], default=1)
    made, size = 0, FIRST_BLOCK
    while made < draws and (not made or time.process_time() < end):
        size = max(1, min(size, draws - made, LARGEST_BLOCK, ELEMENTS // (16 * entries)))
        yield size, question.drawn(scope, size, generator)
        made, size = made + size, 2 * size


@dataclass(frozen=True)
class Outcome:
    """How far the draws went at one point."""

    verdict: str  # refuted, holds or open
    number: int  # of draws
    intervals: dict[Mean, Range]  # at the end
    seen: float  # the plain average of the first mean
    log_value: float = 0.0  # of the bet, a logarithm
    shown: bool = False  # whether the intervals alone decide


class Trial:
    """One point, watched until it is decided; with a tolerance all draws are made, for the interval is the news."""

    def __init__(self, question: Question, point: Point, alpha: float) -> None:
        self.question, self.point, self.scope = question, point, question.scope(point)
        for term in question.chain.terms:
            value = as_range(self.scope.evaluate(term)).low if not means_of(term) else np.zeros(0)
            if value.shape == (1,):
                require_digits(question.claim, point, term, float(value[0]))
        count = sum(1 + is_variance(mean) for mean in question.means)
        share = alpha / count / (2 if question.target else 1)
        self.watches = [Watch(mean, question.bounds(mean, self.scope), share) for mean in question.means]
        self.bet = self._bet()

    def _bet(self) -> BettingProcess | None:
        """A bet against the claimed mean, on the scale of its stream."""
        target = self.question.target
        if target is None or target[1] == "!=":
            return None
        claimed = as_range(self.scope.evaluate(target[0]))
        if shape(claimed):
            raise Undecided(f"{target[0]} is no number")
        margin, stream = float(tolerance(self.question.within, claimed).high[0]), self.watches[0].streams[0]
        span = stream.span or 1.0
        low, high = ((float(claimed.low[0]) + side * margin - stream.low) / span for side in (-1, 1))
        low, high = (
            low if target[1] in ("==", ">", ">=") else -math.inf,
            high if target[1] in ("==", "<", "<=") else math.inf,
        )
        return BettingProcess(low, high, float(self.question.claim.alpha))

    def run(self, generator: np.random.Generator, draws: int, end: float, others: list[float]) -> Outcome:
        """Draws until decided; `others` are the logarithms of the e-values of the other points.

        A bet that has paid is followed until the interval shows the same, if it does.
        """
        outcome = Outcome("open", 0, {}, 0.0)
        for size, block in blocks(self.question, self.scope, generator, draws, end):
            outcome = self._step(size, block, outcome, others)
            if outcome.shown and self.question.within is None:
                break
        return outcome

    def _averaged(self, mean: Mean, block: Scope, size: int) -> Array:
        values = np.broadcast_to(averaged(mean, block), (size,))
        return verified(self.question.claim, self.point, mean, block, values)

    def _step(self, size: int, block: Scope, before: Outcome, others: list[float]) -> Outcome:
        drawn = [self._averaged(watch.mean, block, size) for watch in self.watches]
        intervals = {watch.mean: watch.update(values) for watch, values in zip(self.watches, drawn, strict=True)}
        refuted, holds = judge(self.question, self.scope, intervals)
        shown, log_values = refuted | holds, np.zeros(size)
        if self.bet is not None:
            log_values = self.bet.update(self.watches[0].streams[0].scaled(drawn[0]))
            refuted = refuted | (joined(log_values, others) >= math.log(2 / float(self.question.claim.alpha)))
        decided = refuted | holds
        last = int(np.argmax(shown)) if shown.any() and self.question.within is None else size - 1
        verdict = before.verdict
        if verdict == "open" and decided.any():
            verdict = "refuted" if refuted[np.argmax(decided)] else "holds"
        return Outcome(
            verdict=verdict,
            number=before.number + last + 1,
            intervals={mean: Range(part.low[[last]], part.high[[last]]) for mean, part in intervals.items()},
            seen=(before.seen * before.number + float(drawn[0][: last + 1].sum())) / (before.number + last + 1),
            log_value=float(log_values[last]),
            shown=bool(shown[last]),
        )


def joined(log_values: Array, others: list[float]) -> Array:
    """The average of the e-value, after each draw, with those of other points."""
    if not others:
        return log_values
    rest = average(others) + math.log(len(others))
    return np.logaddexp(log_values, rest) - math.log(len(others) + 1)


def draw(variable: Variable, scope: Scope, count: int, generator: np.random.Generator) -> Array:
    """So many independent draws, one per row."""
    law = _law(variable)
    if isinstance(law, Normal):
        mean, root = _normal(law, scope, variable.name)
        sizes = root.shape[:1] or mean.shape
        room(count, *sizes)
        noise = generator.standard_normal((count, *sizes))
        return mean + (noise @ root.T if root.ndim == 2 else noise * root)
    if isinstance(law, Uniform):
        low, high = _ends(law, scope, variable.name)
        room(count, *low.shape)
        return low + (high - low) * generator.random((count, *low.shape))
    if isinstance(law, Exponential | Bernoulli):
        given = _parameter(law, scope, variable.name)
        room(count, *given.shape)
        if isinstance(law, Exponential):
            return generator.standard_exponential((count, *given.shape)) / given
        return (generator.random((count, *given.shape)) < given).astype(float)
    (size,) = _finite(Call("zeros", (law.dim,)), scope, variable.name).shape
    room(count, size)
    return 2.0 * generator.integers(0, 2, (count, size)) - 1


def support(variable: Variable, scope: Scope) -> Range:
    """The smallest range that holds every draw."""
    law = _law(variable)
    if isinstance(law, Uniform):
        low, high = _ends(law, scope, variable.name)
        return Range(low[None], high[None])
    if isinstance(law, Exponential | Bernoulli):
        given = _parameter(law, scope, variable.name)[None]
        return Range(np.zeros_like(given), np.full_like(given, np.inf if isinstance(law, Exponential) else 1.0))
    if isinstance(law, Rademacher):
        ones = np.ones_like(_finite(Call("zeros", (law.dim,)), scope, variable.name))[None]
        return Range(-ones, ones)
    mean, root = _normal(law, scope, variable.name)
    infinite = np.full((1, *(root.shape[:1] or mean.shape)), np.inf)
    return Range(-infinite, infinite)


def _law(variable: Variable) -> Law:
    assert isinstance(variable.kind, Law)
    return variable.kind


def _parameter(law: Exponential | Bernoulli, scope: Scope, name: str) -> Array:
    """The rate, which is above 0, or the probability."""
    value = _finite(law.rate if isinstance(law, Exponential) else law.chance, scope, name)
    wrong = (value <= 0).any() if isinstance(law, Exponential) else ((value < 0) | (value > 1)).any()
    if wrong:
        raise Undecided(f"{name} ~ {law} does not exist")
    return value


def _finite(node: Node, scope: Scope, name: str) -> Array:
    """A parameter of a law: a value without an axis of draws, for variables are independent."""
    value = known(scope.evaluate(node))
    if not np.isfinite(value).all():
        raise Undecided(f"{node}, in the law of {name}, is not finite")
    return value


def _ends(law: Uniform, scope: Scope, name: str) -> tuple[Array, Array]:
    low, high = np.broadcast_arrays(_finite(law.lowest, scope, name), _finite(law.highest, scope, name))
    if (low > high).any():
        raise Undecided(f"{name} ~ {law} has its ends the wrong way round")
    return low, high


def _normal(law: Normal, scope: Scope, name: str) -> tuple[Array, Array]:
    """The mean and a root of the covariance: a number for a number, a matrix for a vector."""
    mean, spread = _finite(law.mean, scope, name), _finite(law.spread, scope, name)
    if spread.ndim == 0 and mean.ndim == 0:
        if spread < 0:
            raise Undecided(f"{name} ~ {law} has a negative variance")
        return mean, spread if law.is_std else np.sqrt(spread)
    if spread.ndim != 2 or spread.shape[0] != spread.shape[1] or mean.shape not in ((), spread.shape[:1]):
        raise Undecided(f"{name} ~ {law}: a vector needs a covariance matrix, for example s^2*I(D)")
    if law.is_std:
        return mean, spread
    values, vectors = np.linalg.eigh(spread)
    if not np.allclose(spread, spread.T) or values.min() < -ROUNDING * max(values.max(), 1):
        raise Undecided(f"{name} ~ {law}: the covariance is not symmetric and positive")
    return mean, vectors * np.sqrt(values.clip(0))
