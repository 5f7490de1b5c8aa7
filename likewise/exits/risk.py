"""Thresholds with a guarantee: a path of them, how often leaving early may matter, and with what certainty."""

import math
from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor

from likewise.checks import require, require_choice, require_count
from likewise.exits.criteria import Criterion, MaxProbability, Policy
from likewise.exits.early import EarlyExit
from likewise.exits.observing import LOSSES, Loss, Observed, observe
from likewise.exits.splits import Split
from likewise.stats import betting, hoeffding_bentkus, least_examples

STEPS = 50


@dataclass(frozen=True)
class ThresholdPath:
    """Thresholds for every head, in steps from the safest on; fixed before calibration data is seen."""

    steps: tuple[tuple[float, ...], ...]

    def __post_init__(self) -> None:
        require(len(self.steps) > 0, "ThresholdPath", "steps", "be one or more", 0)
        falls = all(
            later <= earlier
            for first, second in zip(self.steps, self.steps[1:], strict=False)
            for earlier, later in zip(first, second, strict=True)
        )
        require(falls, "ThresholdPath", "steps", "start at the safest: no threshold may rise", self.steps)


def common_path(criterion: Criterion, *, heads: int, steps: int = STEPS) -> ThresholdPath:
    """One threshold for all heads, from close to the highest score down; it looks at no data.

    It is (1 - t) times the highest score, t growing from 0.0001 to 1 by equal factors.

    >>> from likewise.exits.criteria import MaxProbability
    >>> [f"{step[0]:.4f}" for step in common_path(MaxProbability(), heads=2, steps=3).steps]
    ['0.9999', '0.9900', '0.0000']
    """
    require_count("common_path", "steps", steps, least=2)
    highest = max(criterion.highest(head) for head in range(heads))
    hint = "Use matched_path on a selection split."
    require(math.isfinite(highest), "common_path", "criterion", "have a highest score", highest, hint)
    shares = [10 ** (-4 + 4 * step / (steps - 1)) for step in range(steps)]
    return ThresholdPath(tuple((highest * (1 - share),) * heads for share in shares))


def matched_path(seen: Observed, *, steps: int = STEPS, least: float = 1e-4) -> ThresholdPath:
    """Thresholds that let heads err alike, from selection data: one step for each share of errors t.

    At step t a head's threshold is the lowest at which at most a share t of the selection examples at or above it
    disagree with the whole network; t grows from `least` to 1 by equal factors.
    """
    role = f"data for {seen.role}"
    require(seen.role == "selection", "matched_path", "seen", "be observed on data for selection", role)
    require_count("matched_path", "steps", steps, least=2)
    shares = [0.0, *(least ** (1 - step / (steps - 1)) for step in range(steps))]
    heads = [
        _lowest(score.double(), answer != seen.full, shares)
        for score, answer in zip(seen.scores, seen.classes[:-1], strict=True)
    ]
    return ThresholdPath(tuple(zip(*heads, strict=True)))


def _lowest(scores: Float[Tensor, "N"], wrong: Bool[Tensor, "N"], shares: list[float]) -> list[float]:
    order = scores.sort(descending=True)
    errors = wrong[order.indices].double().cumsum(0) / torch.arange(1, len(scores) + 1)
    last = torch.cat([order.values[:-1] > order.values[1:], torch.ones(1, dtype=torch.bool)])  # of equal scores
    found = []
    for share in shares:
        fits = ((errors <= share) & last).nonzero()[:, 0]
        found.append(order.values[fits[-1]].item() if len(fits) else math.inf)
    return found


Method = Literal["learn then test", "betting", "conformal"]
METHODS = ("learn then test", "betting", "conformal")


@dataclass(frozen=True)
class Step:
    """One step of a path on the calibration data.

    evidence: the p-value of "the risk is too high", to be at most delta; for the conformal method the corrected risk,
    to be at most the risk allowed. early: the share of examples that leave before the end.
    """

    thresholds: tuple[float, ...]
    risk: float
    evidence: float
    early: float


@dataclass(frozen=True)
class Group:
    """The risk within one group at the chosen thresholds; certified: shown to be allowed, at delta / groups."""

    group: int
    count: int
    risk: float
    certified: bool


@dataclass(frozen=True, eq=False)
class Controlled:
    """A policy, and what is known of its risk. `chosen` is its step, None if no step passed: then nobody exits."""

    policy: Policy
    chosen: int | None
    loss: Loss
    method: Method
    risk: float
    delta: float
    count: int
    steps: tuple[Step, ...]
    groups: tuple[Group, ...]

    @property
    def text(self) -> str:
        """What was done and what it promises, in words."""
        return " ".join(explanation(self))


def control_risk(
    exits: EarlyExit,
    data: Split | Observed,
    *,
    risk: float = 0.01,
    delta: float = 0.05,
    criterion: Criterion | None = None,
    path: ThresholdPath | None = None,
    loss: Loss = "disagreement",
    method: Method | None = None,
    groups: Int64[Tensor, "N"] | None = None,
    every_group: bool = False,
) -> Controlled:
    """The least safe thresholds of a path whose risk, the mean loss, is shown to be at most `risk` by calibration data.

    "learn then test" (Hoeffding-Bentkus p-values) and "betting" go down the path from the safest step while each is
    shown to be safe at level delta, and keep the last: P(true risk <= risk) >= 1 - delta, also for losses that do not
    grow along the path. "conformal" only bounds the mean over calibration sets: E[loss] <= risk. Unless given, it is
    learn then test for losses of 0 or 1, and betting for gaps, which mostly are near 0: Hoeffding-Bentkus would not see
    it.

    data: a split for calibration, or what was observed on one. criterion: MaxProbability unless given. path:
    `common_path` unless given. groups: of each example, for example by its prediction depth; the risk within each is
    tested at delta / groups and, with every_group, the path ends where one is not shown to be safe.

    Paper: arXiv 2110.01052; 2101.02703 and 2010.09686; 2208.02814.
    """
    where = "control_risk"
    require_choice(where, "loss", loss, tuple(LOSSES))
    loss_of, least = LOSSES[loss]
    method = ("learn then test" if least == 0 else "betting") if method is None else method
    test = RiskTest(risk, delta, method, least)
    seen = _observed(exits, data, criterion)
    test.require_enough(len(seen))
    path = common_path(seen.criterion, heads=len(seen.scores)) if path is None else path
    left = torch.stack([seen.policy(*thresholds).exits(seen.scores) for thresholds in path.steps])
    losses = torch.stack([loss_of(seen, each) for each in left])
    evidence = test.evidence(losses)
    safe = test.walk(evidence)
    within = _within(test, losses, groups)
    require(not every_group or groups is not None, where, "groups", "be given where every_group is asked for", groups)
    if every_group:
        safe = min(safe, *(walked for *_, walked in within))
    never = (math.inf,) * len(seen.scores)
    early = (left < len(seen.scores)).double().mean(1)
    facts = zip(path.steps, losses.mean(1).tolist(), evidence.tolist(), early.tolist(), strict=True)
    chosen = torch.cat([torch.zeros_like(losses[:1]), losses])[safe]  # nobody loses who leaves at the end
    return Controlled(
        policy=Policy(seen.criterion, (never, *path.steps)[safe]),
        chosen=safe - 1 if safe else None,
        loss=loss,
        method=method,
        risk=risk,
        delta=delta,
        count=len(seen),
        steps=tuple(Step(*fact) for fact in facts),
        groups=tuple(
            Group(name, int(rows.sum()), chosen[rows].mean().item(), safe <= walked) for name, rows, walked in within
        ),
    )


def _observed(exits: EarlyExit, data: Split | Observed, criterion: Criterion | None) -> Observed:
    if isinstance(data, Split):
        require(data.role == "calibration", "control_risk", "data", "be for calibration", f"a split for {data.role}")
        return observe(exits, data, criterion=MaxProbability() if criterion is None else criterion)
    right = data.role == "calibration"
    require(right, "control_risk", "data", "be observed on data for calibration", f"data for {data.role}")
    require(criterion is None, "control_risk", "criterion", "be left to what was observed", criterion)
    return data


def _within(
    test: "RiskTest", losses: Float[Tensor, "steps N"], groups: Int64[Tensor, "N"] | None
) -> list[tuple[int, Bool[Tensor, "N"], int]]:
    """Each group, its rows, and how many steps it walks at delta / groups."""
    if groups is None:
        return []
    same = len(groups) == losses.shape[1]
    require(same, "control_risk", "groups", f"be one for each of {losses.shape[1]} examples", len(groups))
    names = groups.unique().tolist()
    stricter = RiskTest(test.risk, test.delta / len(names), test.method, test.least)
    rows = [(name, groups == name) for name in names]
    return [(name, members, stricter.walk(stricter.evidence(losses[:, members]))) for name, members in rows]


@dataclass(frozen=True)
class RiskTest:
    """One way to show that a mean loss is at most `risk`; losses lie between `least` and 1."""

    risk: float
    delta: float
    method: Method
    least: float = 0.0

    def __post_init__(self) -> None:
        for name in ("risk", "delta"):
            require(0 < getattr(self, name) < 1, "control_risk", name, "be between 0 and 1", getattr(self, name))
        require_choice("control_risk", "method", self.method, METHODS)

    @property
    def scaled(self) -> float:
        """The risk where losses are moved to [0, 1]: (risk - least) / (1 - least)."""
        return (self.risk - self.least) / (1 - self.least)

    @property
    def least_examples(self) -> int:
        """Fewer cannot show it."""
        if self.method == "conformal":
            return math.ceil((1 - self.risk) / self.risk - 1e-9)
        return least_examples(risk=self.scaled, delta=self.delta)

    def require_enough(self, count: int) -> None:
        """Refuse fewer."""
        rule = f"be at least {self.least_examples} for a risk of {self.risk:g}, even without a single loss"
        require(count >= self.least_examples, "control_risk", "data", rule, count)

    def evidence(self, losses: Float[Tensor, "steps N"]) -> Float[Tensor, "steps"]:
        """p-values; or, for the conformal method, n / (n + 1) R + 1 / (n + 1), R the mean of each example's worst loss
        up to a step, which makes losses grow along the path.
        """
        if self.method == "conformal":
            count = losses.shape[1]
            return losses.cummax(0).values.mean(1) * count / (count + 1) + 1 / (count + 1)
        scaled = ((losses - self.least) / (1 - self.least)).numpy()
        if self.method == "betting":
            return torch.from_numpy(betting(scaled, risk=self.scaled, delta=self.delta))
        return torch.from_numpy(hoeffding_bentkus(scaled, risk=self.scaled))

    def walk(self, evidence: Float[Tensor, "steps"]) -> int:
        """How many steps may be gone: up to the first whose evidence is not enough."""
        limit = self.risk if self.method == "conformal" else self.delta
        return int((evidence <= limit).long().cumprod(0).sum())


WHAT = {
    "disagreement": "the answer differs from the whole network's",
    "harm": "a right answer of the whole network is lost",
    "accuracy gap": "accuracy is lost, gains set against losses,",
    "Brier gap": "the Brier score (of 0 to 1) gets worse, gains set against losses,",
}
WHY = {
    "learn then test": "Learn then test with Hoeffding-Bentkus p-values: it assumes nothing of how the loss changes "
    "along the path, and is sharp for losses of 0 or 1.",
    "betting": "Steps are tested by betting: it assumes nothing of how the loss changes along the path, and uses "
    "that most losses are alike.",
    "conformal": "Conformal risk control, on each example's worst loss up to a step: a promise on average over "
    "calibration sets, not for this one.",
}


def explanation(found: Controlled) -> list[str]:
    """Sentences."""
    promise = f"{WHAT[found.loss]} in at most {found.risk:.2%} of examples like these"
    if found.method != "conformal":
        promise += f", with certainty {1 - found.delta:.0%} over the draw of the {found.count:,} calibration examples"
    lines = [f"Promised: {promise}.", WHY[found.method]]
    if found.chosen is None:
        lines.append("No step of the path was shown to be safe: nobody leaves early.")
    else:
        step = found.steps[found.chosen]
        shown = ", ".join(f"{threshold:.4g}" for threshold in step.thresholds)
        lines.append(
            f"Step {found.chosen + 1} of {len(found.steps)} was the last shown to be safe: thresholds {shown}; there "
            f"{step.early:.1%} leave early at a measured risk of {step.risk:.2%}."
        )
    unsure = [
        f"{group.group} ({group.count:,} examples, risk {group.risk:.2%})"
        for group in found.groups
        if not group.certified
    ]
    if unsure:
        lines.append(f"Not shown for these groups: {', '.join(unsure)}.")
    lines.append("It holds while examples to come are drawn as the calibration data was: watch the shares of exits.")
    return lines
