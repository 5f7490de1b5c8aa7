"""Where to put heads, before any is trained: at the positions that the depths of examples pay for."""

from dataclasses import dataclass
from typing import NamedTuple

from jaxtyping import Float, Int64
from torch import Tensor

from likewise.checks import require, require_count


@dataclass(frozen=True)
class Placement:
    """Positions of heads, and the mean cost if every example left at the first exit at or behind its depth."""

    positions: tuple[int, ...]
    cost: float
    full: float

    @property
    def saving(self) -> float:
        """How many times less than the whole network: a bound, as no criterion knows depths."""
        return self.full / self.cost


def suggest_placement(
    depth_histogram: Int64[Tensor, "depths"],
    costs: Float[Tensor, "positions"],
    *,
    heads: int,
    head_cost: float = 0.0,
    first: int = 1,
) -> Placement:
    """At most `heads` positions that minimise sum_d histogram[d] cost(first exit >= d), by dynamic programming.

    depth_histogram: how many examples have prediction depth d = 0, 1, ..., P; P means undefined, and goes to the end.
    costs: of running up to position p = 0, ..., P - 1, position 0 being the input and P - 1 the end, which is always an
    exit. head_cost: of asking one head, paid by everyone who comes to it. first: the least position a head may have.
    With B(j, p) the least cost of all who left up to p, the j-th head being there, and N(p) how many have depth <= p,
    B(j, p) = min_{q < p} B(j - 1, q) + cost(p) (N(p) - N(q)) + head_cost (N(P) - N(q)): O(P^2 K).

    >>> import torch
    >>> suggest_placement(torch.tensor([0, 6, 0, 2, 0]), torch.tensor([0.0, 1.0, 2.0, 4.0]), heads=1)
    Placement(positions=(1,), cost=1.75, full=4.0)
    """
    where = "suggest_placement"
    require_count(where, "heads", heads)
    require_count(where, "first", first, least=0)
    end = len(costs) - 1
    fits = len(depth_histogram) <= end + 2
    rule = f"have at most {end + 2} entries, one more than there are positions"
    require(fits, where, "depth_histogram", rule, len(depth_histogram))
    total = int(depth_histogram.sum())
    require(total > 0, where, "depth_histogram", "count some examples", total)
    price = costs.double().tolist()
    require(price == sorted(price) and price[-1] > 0, where, "costs", "not fall, and end above 0", price)
    counts = [*depth_histogram.tolist(), *[0] * (end + 2 - len(depth_histogram))]
    settled = [sum(counts[: depth + 1]) for depth in range(end + 1)]

    def then(chain: Chained, place: int) -> Chained:
        """Who comes past the last head asks the one at `place`, and leaves there if settled; at the end all leave."""
        coming = total - (settled[chain.positions[-1]] if chain.positions else 0)
        leaving = coming if place == end else coming - (total - settled[place])
        asking = 0.0 if place == end else head_cost * coming
        return Chained(chain.spent + price[place] * leaving + asking, (*chain.positions, place))

    chains = [Chained(0.0, ())]  # the best ones of so many heads, by their last position
    best = then(chains[0], end)
    for _ in range(heads):
        steps = [
            [then(chain, place) for chain in chains if not chain.positions or chain.positions[-1] < place]
            for place in range(first, end)
        ]
        chains = [min(step) for step in steps if step]
        best = min([best, *(then(chain, end) for chain in chains)])
    return Placement(best.positions[:-1], best.spent / total, price[end])


class Chained(NamedTuple):
    """Heads so far, and what was spent on all who have left."""

    spent: float
    positions: tuple[int, ...]
