"""How many sorted numbers lie below each of many others, row by row: the one search of mining and of batch-all."""

from collections.abc import Callable
from typing import NamedTuple, Self

import torch
from jaxtyping import Float, Int32
from torch import Tensor
from torch.nn import functional

CELLS = 256
LEAST_SPREAD = 1e-30
NEVER = float("inf")


class Bounds(NamedTuple):
    """Each row's bounds in ascending order, to hold numbers against; a bound of inf counts as none.

    A row's line from its least to its greatest bound is cut into equal cells, and a table says how many bounds lie in
    the cells before each. Subtraction and multiplication keep the order of what they round, so the cell of a number
    settles how it stands to the bounds of all others; among those of its own it is searched by halves. All numbers are
    halved at the same time: a processor that searches for one after the other guesses wrongly at every second turn
    which half is next, which takes longer than the search itself.

    >>> bounds = Bounds.of(torch.tensor([[1.0, 2.0, 2.0, 5.0]]))
    >>> bounds.below(torch.tensor([[0.0, 2.0, 9.0]])).tolist(), bounds.reached(torch.tensor([[0.0, 2.0, 9.0]])).tolist()
    ([[0, 1, 4]], [[0, 3, 4]])
    """

    ordered: Float[Tensor, "b Q"]  # nan, which nothing passes, from the last bound on
    least: Float[Tensor, "b 1"]
    scale: Float[Tensor, "b 1"]  # cells for each unit of length
    before: Int32[Tensor, "b cells"]  # how many bounds the earlier cells hold
    fullest: int  # how many bounds the fullest cell holds

    @classmethod
    def of(cls, bounds: Float[Tensor, "b P"]) -> Self:
        """Bounds that were sorted."""
        bounds = functional.pad(bounds, (0, 1), value=NEVER)  # there may be none
        present = bounds < NEVER
        least = bounds[:, :1].masked_fill(~present[:, :1], 0)
        greatest = bounds.masked_fill(~present, -NEVER).amax(1, keepdim=True)
        scale = CELLS / (greatest - least).clamp(min=LEAST_SPREAD)
        held = torch.zeros(len(bounds), CELLS + 1, dtype=torch.int32, device=bounds.device)
        held.scatter_add_(1, _cells(bounds, least, scale).long(), present.int())
        fullest = int(held.max()) if len(held) else 0
        ordered = functional.pad(bounds.masked_fill(~present, torch.nan), (0, fullest), value=torch.nan)
        return cls(ordered, least, scale, held.cumsum(1, dtype=torch.int32) - held, fullest)

    def below(self, d: Float[Tensor, "n B"], rows: slice = slice(None)) -> Int32[Tensor, "n B"]:
        """How many bounds of its row are less than each number; `d` has some rows of these bounds."""
        return self._passed(d, rows, torch.lt)

    def reached(self, d: Float[Tensor, "n B"], rows: slice = slice(None)) -> Int32[Tensor, "n B"]:
        """How many bounds of its row are at most each number."""
        return self._passed(d, rows, torch.le)

    def _passed(self, d: Tensor, rows: slice, passes: Callable[..., Tensor]) -> Tensor:
        found = self.before[rows].gather(1, _cells(d, self.least[rows], self.scale[rows]))
        bound, step = torch.empty_like(d), torch.empty_like(found)
        half = 1 << self.fullest.bit_length() >> 1
        while half:
            torch.gather(self.ordered[rows, half - 1 :], 1, found, out=bound)
            passes(bound, d, out=step)
            found.add_(step, alpha=half)
            half //= 2
        return found


def _cells(d: Float[Tensor, "n B"], least: Float[Tensor, "n 1"], scale: Float[Tensor, "n 1"]) -> Int32[Tensor, "n B"]:
    """In which cell of its row each number lies; what lies outside, in the first or the last."""
    return d.sub(least).mul_(scale).clamp_(0, CELLS).int()
