"""What leaving early gained and lost on test data, and what it could have."""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor

from likewise.checks import require
from likewise.exits.costs import ExitCosts
from likewise.exits.losses import LOSSES, Loss
from likewise.exits.observing import Observed
from likewise.exits.paths import Path
from likewise.exits.policies import Policy
from likewise.stats import upper_bound


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
        some = losses[groups == name]
        upper = upper_bound(((some - least) / (1 - least)).numpy(), delta=delta / len(names)) * (1 - least) + least
        found.append(GroupRisk(name, len(some), some.mean().item(), upper))
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


def trade_off(seen: Observed, path: Path, *, costs: ExitCosts) -> tuple[Point, ...]:
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
