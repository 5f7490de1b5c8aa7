"""What early exit gains and loses on test data: multiply-adds, risk, and the comparison with smaller networks."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor

from likewise.checks import require, require_choice
from likewise.cost import cost
from likewise.exits.criteria import Policy
from likewise.exits.early import EarlyExit
from likewise.exits.observing import LOSSES, Loss, Observed
from likewise.exits.risk import ThresholdPath
from likewise.stats import upper_bound


@dataclass(frozen=True)
class ExitCosts:
    """Multiply-adds of every segment and of every head, for one example.

    >>> costs = ExitCosts((10, 20, 30), (1, 2), (0, 1))
    >>> costs.full, costs.leaving((True, True)), costs.leaving((False, True))
    (60, (11, 33, 63), (10, 32, 62))
    """

    segments: tuple[int, ...]
    heads: tuple[int, ...]
    places: tuple[int, ...]

    @property
    def full(self) -> int:
        """The whole network, without heads."""
        return sum(self.segments)

    def leaving(self, asked: tuple[bool, ...], extra: tuple[int, ...] | None = None) -> tuple[int, ...]:
        """What has been spent when leaving at each head, and at the end, if these heads are asked.

        extra: of a criterion at each head.
        """
        extra = (0,) * len(self.heads) if extra is None else extra
        each = [own + more if ask else 0 for own, more, ask in zip(self.heads, extra, asked, strict=True)]
        bodies = [sum(self.segments[: place + 1]) for place in self.places]
        spent = [body + sum(each[: head + 1]) for head, body in enumerate(bodies)]
        return (*spent, self.full + sum(each))

    def under(self, policy: Policy) -> tuple[int, ...]:
        """What has been spent when leaving at each exit under a policy, which may leave heads out."""
        heads = range(len(self.heads))
        return self.leaving(tuple(map(policy.needs, heads)), tuple(map(policy.criterion.macs, heads)))

    @property
    def positions(self) -> tuple[int, ...]:
        """Up to every probe of prediction depth, for `suggest_placement`: input, segments, softmax."""
        return (0, *(sum(self.segments[: number + 1]) for number in range(len(self.segments))), self.full)


def exit_costs(exits: EarlyExit, x: Tensor) -> ExitCosts:
    """Count the segments and heads on inputs like those of x, by `likewise.cost`."""
    require(len(x) > 0, "exit_costs", "x", "have a row", len(x))
    x = x[:1]
    segments, heads = [], []
    at = dict(zip(exits.places, exits.heads, strict=True))
    with torch.no_grad():
        for number, segment in enumerate(exits.segments):
            segments.append(cost(segment, x).macs)
            x = segment(x)
            if number in at:
                heads.append(cost(at[number], x).macs)
    return ExitCosts(tuple(segments), tuple(heads), exits.places)


@dataclass(frozen=True)
class GroupRisk:
    """The mean loss within a group; below `upper` in all groups at once, with certainty 1 - delta."""

    group: int
    count: int
    risk: float
    upper: float


@dataclass(frozen=True)
class Evaluation:
    """A policy on test data. shares: who leaves at each head, and at the end; macs: per example, heads included.

    pays: for each head, whether it spares more than it costs: e / s > c_head / c_rest, where s is the share that comes
    to it, e the share that leaves there, and c_rest what those would still spend on average.
    """

    policy: Policy
    count: int
    accuracy: float
    full_accuracy: float
    disagreement: float
    harm: float
    shares: tuple[float, ...]
    macs: float
    full_macs: int
    pays: tuple[bool, ...]
    groups: tuple[GroupRisk, ...]


def evaluate_exits(
    seen: Observed,
    *,
    policy: Policy,
    costs: ExitCosts,
    groups: Int64[Tensor, "N"] | None = None,
    loss: Loss = "disagreement",
    delta: float = 0.05,
) -> Evaluation:
    """Follow a policy on test data. Within groups the loss is bounded from above, each at delta / groups."""
    where = "evaluate_exits"
    require(seen.role == "test", where, "seen", "be observed on data for test", f"data for {seen.role}")
    left = policy.exits(seen.scores)
    spent = torch.tensor(costs.under(policy), dtype=torch.float64)
    counts = left.bincount(minlength=len(spent))
    loss_of, least = LOSSES[loss]
    losses = loss_of(seen, left)
    names = [] if groups is None else groups.unique().tolist()
    found = []
    for name in names:
        group = losses[groups == name]
        upper = upper_bound(((group - least) / (1 - least)).numpy(), delta=delta / len(names)) * (1 - least) + least
        found.append(GroupRisk(name, len(group), group.mean().item(), upper))
    return Evaluation(
        policy=policy,
        count=len(seen),
        accuracy=_mean(seen.at(left).argmax(1) == seen.labels),
        full_accuracy=_mean(seen.full == seen.labels),
        disagreement=LOSSES["disagreement"][0](seen, left).mean().item(),
        harm=LOSSES["harm"][0](seen, left).mean().item(),
        shares=tuple((counts.double() / len(seen)).tolist()),
        macs=spent[left].mean().item(),
        full_macs=costs.full,
        pays=tuple(_paying(counts, spent, costs, policy)),
        groups=tuple(found),
    )


def _paying(
    counts: Int64[Tensor, "exits"], spent: Float[Tensor, "exits"], costs: ExitCosts, policy: Policy
) -> Iterator[bool]:
    for head, own in enumerate(costs.heads):
        coming, leaving, later = counts[head:].sum(), counts[head], counts[head + 1 :]
        # Those who leave here would go on like those who do; if nobody does, to the end.
        rest = (spent[head + 1 :] * later).sum() / later.sum() if later.sum() else spent[-1]
        asked = (own + policy.criterion.macs(head)) * policy.needs(head)
        yield bool(leaving * (rest - spent[head]) > asked * coming)


@dataclass(frozen=True)
class Point:
    """One way to answer: how often it is right, and what it takes per example.

    seconds, middle: the least and the median of measured times. early: the share of examples that left early.
    """

    name: str
    accuracy: float
    macs: float
    seconds: float | None = None
    middle: float | None = None
    early: float | None = None


def trade_off(seen: Observed, path: ThresholdPath, *, costs: ExitCosts) -> tuple[Point, ...]:
    """Accuracy against multiply-adds at every step of a path on test data: to be shown, not to be chosen from."""
    require(seen.role == "test", "trade_off", "seen", "be observed on data for test", f"data for {seen.role}")
    points = []
    for number, thresholds in enumerate(path.steps, start=1):
        policy = seen.policy(*thresholds)
        left = policy.exits(seen.scores)
        spent = torch.tensor(costs.under(policy), dtype=torch.float64)[left].mean().item()
        points.append(Point(f"step {number}", _mean(seen.at(left).argmax(1) == seen.labels), spent))
    return tuple(points)


@dataclass(frozen=True, eq=False)
class DepthByExit:
    """Prediction depth against the exit taken.

    table: examples of every depth (rows, the last one undefined) at every exit. wasted: segments gone beyond the first
    exit at or behind the depth, and multiply-adds, on average over all. premature: shares that left before their depth
    with another answer than the network's, where the network was right and where it was wrong. free_wins: left before
    their depth with the network's answer, so that depth is no lower bound. overthinking: right at some head, wrong at
    the end. oracles: mean multiply-adds if all left, by magic, at the first exit behind their depth, where the heads'
    last run on the network's answer begins, or at the first right answer; headroom: (spent - oracle) / full.
    """

    table: Int64[Tensor, "depths exits"]
    wasted: float
    wasted_macs: float
    premature_right: float
    premature_wrong: float
    free_wins: float
    overthinking: float
    oracles: dict[str, float]
    headroom: dict[str, float]


def depth_by_exit(
    seen: Observed,
    depths: Int64[Tensor, "N"],
    *,
    policy: Policy,
    positions: tuple[int, ...],
    costs: ExitCosts,
) -> DepthByExit:
    """Set the exits taken against prediction depths.

    depths: 0 for the input up to positions[-1] + 1 for undefined. positions: the probe at which each exit stands, as
    `EarlyExit.positions` has them where the probes are input, segments and softmax.
    """
    where = "depth_by_exit"
    require(len(depths) == len(seen), where, "depths", f"be one for each of {len(seen)} examples", len(depths))
    last = positions[-1] + 1
    fits = len(depths) == 0 or bool((depths.min() >= 0) & (depths.max() <= last))
    require(fits, where, "depths", f"lie between 0 and {last}", depths.unique().tolist())
    require(len(positions) == len(seen.logits), where, "positions", f"be one for each of {len(seen.logits)}", positions)
    left, exits = policy.exits(seen.scores), len(positions)
    at = torch.tensor(positions)
    answers, full = seen.at(left).argmax(1), seen.full
    settled = first_true(at[:, None] >= depths)
    asked = torch.tensor(costs.leaving((True,) * len(costs.heads)), dtype=torch.float64)
    spent = torch.tensor(costs.under(policy), dtype=torch.float64)[left].mean().item()
    early, same = at[left] < depths, answers == full
    right = seen.classes == seen.labels
    # From its start on, a last run on the network's answer has no disagreement: count those that are still to come.
    to_come = (seen.classes != full).int().flip(0).cumsum(0).flip(0)
    choices = {"depth": settled, "head": first_true(to_come == 0), "correct": first_true(right)}
    oracles = {name: asked[choice].mean().item() for name, choice in choices.items()}
    return DepthByExit(
        table=torch.bincount(depths * exits + left, minlength=(last + 1) * exits).reshape(last + 1, exits),
        wasted=(at[left] - at[settled]).clamp(min=0).double().mean().item(),
        wasted_macs=(asked[left] - asked[settled]).clamp(min=0).mean().item(),
        premature_right=_mean(early & ~same & (full == seen.labels)),
        premature_wrong=_mean(early & ~same & (full != seen.labels)),
        free_wins=_mean(early & same),
        overthinking=_mean(right[:-1].any(0) & ~right[-1]),
        oracles=oracles,
        headroom={name: (spent - oracle) / costs.full for name, oracle in oracles.items()},
    )


def first_true(holds: Bool[Tensor, "exits N"]) -> Int64[Tensor, "N"]:
    """The first exit where something holds, or else the end.

    >>> first_true(torch.tensor([[False, False], [True, False], [True, False]]))
    tensor([1, 2])
    """
    return torch.cat([holds[:-1], torch.ones_like(holds[:1])]).int().argmax(0)


def _mean(holds: Bool[Tensor, "N"]) -> float:
    return holds.double().mean().item()


EXITS, SMALLER, WHOLE = "early exit", "a smaller model", "the whole network"
NOISE = "no difference beyond the noise"
ERRORS = 2  # standard errors that a difference of accuracies must exceed
Clock = Literal["seconds", "macs"]


@dataclass(frozen=True)
class Answer:
    """Which of the two is better, and where. frontier: the points that nothing beats, each with its kind."""

    verdict: Literal[
        "early exit", "a smaller model", "the whole network", "it depends", "no difference beyond the noise"
    ]
    by: Clock
    frontier: tuple[tuple[str, Point], ...]
    text: str


def pareto(points: Sequence[Point], *, by: Clock) -> tuple[Point, ...]:
    """The points that no other beats in accuracy and cost, cheapest first; of equal ones the first.

    >>> points = [Point("a", 0.9, 5.0), Point("b", 0.8, 6.0), Point("c", 0.95, 7.0)]
    >>> [point.name for point in pareto(points, by="macs")]
    ['a', 'c']
    """
    require_choice("pareto", "by", by, ("seconds", "macs"))
    kept: list[Point] = []
    for point in sorted(points, key=lambda point: (_cost(point, by), -point.accuracy)):
        if not kept or point.accuracy > kept[-1].accuracy:
            kept.append(point)
    return tuple(kept)


def exits_or_smaller(
    exits: Sequence[Point], smaller: Sequence[Point], *, by: Clock, examples: int | None = None
) -> Answer:
    """Compare points of early exit with those of networks trained alone, on the same data, device and batch.

    The last of the networks is the whole one; if it is the only one, early exit is compared with it alone. A point is
    worth having if no other is at least as accurate for less: the kind that owns all those points has won, else it
    depends on the accuracy that is wanted. A policy by which no example left early is the whole network: what the clock
    says of it is noise, and it is not compared. examples: how many the accuracies rest on.

    Within the noise are times whose spans from the least to the median overlap, and accuracies that are less than two
    standard errors apart. If no point of early exit differs from one of the networks beyond it, that is the verdict.
    """
    for name, points in (("exits", exits), ("smaller", smaller)):
        require(len(points) > 0, "exits_or_smaller", name, "not be empty", 0)
    against = WHOLE if len(smaller) == 1 else SMALLER
    unit = "wall clock" if by == "seconds" else "multiply-adds"
    asked = f"{EXITS.capitalize()} or {against}? By {unit}: "
    leaving = [point for point in exits if point.early != 0]
    if not leaving:
        text = f"{asked}{NOISE}. No example left early, so early exit was {WHOLE}."
        return Answer(NOISE, by, ((WHOLE, smaller[-1]),), text)
    kinds = [(WHOLE if point is smaller[-1] else SMALLER, point) for point in smaller]
    kinds += [(EXITS, point) for point in leaving]
    best = pareto([point for _, point in kinds], by=by)
    frontier = tuple(next(kind for kind in kinds if kind[1] is point) for point in best)
    clear = [_apart(one, other, examples) != 0 or _cheaper(one, other, by) != 0 for one in leaving for other in smaller]
    verdict = _verdict({kind for kind, _ in frontier}) if any(clear) else NOISE
    lines = [f"{asked}{verdict}."]
    if verdict == "it depends":
        lines.append(_ranges(frontier))
    lines += [_against(point, leaving, by, examples) for point in pareto(smaller, by=by)]
    return Answer(verdict, by, frontier, " ".join(lines))  # ty: ignore[invalid-argument-type]


def _verdict(owners: set[str]) -> str:
    """The kind that owns the frontier; networks trained alone are one kind, whose best may be the whole one."""
    if owners == {WHOLE}:
        return WHOLE
    return "it depends" if EXITS in owners and len(owners) > 1 else EXITS if EXITS in owners else SMALLER


def _apart(one: Point, other: Point, examples: int | None) -> int:
    """1 if one is more accurate beyond the noise, -1 if the other is, 0 if that cannot be said."""
    error = ERRORS * _error(one, other, examples)
    difference = one.accuracy - other.accuracy
    return 0 if abs(difference) <= error else 1 if difference > 0 else -1


def _error(one: Point, other: Point, examples: int | None) -> float:
    """The standard error of a difference of independent accuracies, sqrt((p (1 - p) + q (1 - q)) / n)."""
    variance = sum(point.accuracy * (1 - point.accuracy) for point in (one, other))
    return 0.0 if examples is None else (variance / examples) ** 0.5


def _cheaper(one: Point, other: Point, by: Clock) -> int:
    """1 if one costs less beyond the noise, -1 if the other does, 0 if that cannot be said."""
    if by == "macs":
        return (one.macs < other.macs) - (one.macs > other.macs)
    spans = [(_cost(point, by), point.middle or _cost(point, by)) for point in (one, other)]
    return (spans[0][1] < spans[1][0]) - (spans[0][0] > spans[1][1])


def _ranges(frontier: tuple[tuple[str, Point], ...]) -> str:
    """Up to which accuracy each kind is the cheaper one."""
    parts = []
    for number, (kind, point) in enumerate(frontier):
        if number + 1 == len(frontier) or frontier[number + 1][0] != kind:
            parts.append(f"up to {point.accuracy:.2%} {kind}")
    return f"Cheapest for an accuracy of {', '.join(parts)}."


def _against(point: Point, exits: Sequence[Point], by: Clock, examples: int | None) -> str:
    """What early exit takes to be as accurate as a network, or as accurate within the noise."""
    good = [other for other in exits if other.accuracy >= point.accuracy]
    near = [other for other in exits if _apart(other, point, examples) >= 0]
    if not near:
        return f"Early exit never reaches the {point.accuracy:.2%} of {point.name}."
    found = min(good or near, key=lambda other: _cost(other, by))
    ratio = _cost(found, by) / _cost(point, by)
    much = f"{1 / ratio:.2f} times less" if ratio < 1 else f"{ratio:.2f} times as much"
    if _cheaper(found, point, by) == 0 and ratio != 1:
        much += ", which is within the noise of the clock"
    if good:
        return f"To be as accurate as {point.name} ({point.accuracy:.2%}), early exit needs {much}."
    error = f"within the noise of {100 * _error(found, point, examples):.1f} points (standard error)"
    return f"Early exit reaches {found.accuracy:.2%}, {error} of {point.name} ({point.accuracy:.2%}), and needs {much}."


def _cost(point: Point, by: Clock) -> float:
    if by == "macs":
        return point.macs
    require(point.seconds is not None, "pareto", "points", "have seconds", point.name, "Measure them with `clocked`.")
    assert point.seconds is not None
    return point.seconds
