"""What leaving at each exit costs, in multiply-adds per example."""

from dataclasses import dataclass

import torch
from torch import Tensor

from likewise.checks import require
from likewise.cost import cost
from likewise.exits.early import EarlyExit
from likewise.exits.policies import Policy


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
