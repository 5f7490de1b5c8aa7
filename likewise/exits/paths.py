"""Thresholds in one line, from the safest on: what is left to choose is how far to go."""

import math
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from likewise.checks import require, require_count
from likewise.exits.criteria import Criterion
from likewise.exits.observing import Observed

STEPS = 50


@dataclass(frozen=True)
class Path:
    """Thresholds for every head, in steps from the safest on; fixed before calibration data is seen."""

    steps: tuple[tuple[float, ...], ...]

    def __post_init__(self) -> None:
        require(len(self.steps) > 0, "Path", "steps", "be one or more", 0)
        falls = all(
            later <= earlier
            for first, second in zip(self.steps, self.steps[1:], strict=False)
            for earlier, later in zip(first, second, strict=True)
        )
        require(falls, "Path", "steps", "start at the safest: no threshold may rise", self.steps)


def common_path(criterion: Criterion, *, heads: int, steps: int = STEPS) -> Path:
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
    return Path(tuple((highest * (1 - share),) * heads for share in shares))


def matched_path(seen: Observed, *, steps: int = STEPS, least: float = 1e-4) -> Path:
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
    return Path(tuple(zip(*heads, strict=True)))


def _lowest(scores: Float[Tensor, "N"], wrong: Bool[Tensor, "N"], shares: list[float]) -> list[float]:
    order = scores.sort(descending=True)
    errors = wrong[order.indices].double().cumsum(0) / torch.arange(1, len(scores) + 1)
    last = torch.cat([order.values[:-1] > order.values[1:], torch.ones(1, dtype=torch.bool)])  # of equal scores
    found = []
    for share in shares:
        fits = ((errors <= share) & last).nonzero()[:, 0]
        found.append(order.values[fits[-1]].item() if len(fits) else math.inf)
    return found
