"""More programs of ours that `run(...)` may name: the package's own attention, at inputs chosen by hand.

torch is imported by what runs, not by who lists.
"""

from collections.abc import Callable
from typing import Any


def argmax_quotients_at_a_tie() -> float:
    """How the difference quotient grows when the step shrinks a thousandfold; 1 where there is a derivative.

    >>> round(argmax_quotients_at_a_tie())
    1000
    """
    short, long = 1e-6, 1e-3
    at_tie = _argmax_of_width_one(0.0)
    return (at_tie - _argmax_of_width_one(-short)) / short / ((at_tie - _argmax_of_width_one(-long)) / long)


def argmax_above_its_chord() -> float:
    """How far the output half way between two queries lies above the mean of their outputs; if convex, nowhere.

    >>> argmax_above_its_chord()
    0.5
    """
    return _argmax_of_width_one(0.5) - (_argmax_of_width_one(-1.0) + _argmax_of_width_one(2.0)) / 2


def _argmax_of_width_one(query: float) -> float:
    """The keys 0 and -1 with values 1 and 0: a step from 0 to 1 where the query passes 0, a tie."""
    import torch

    from likewise.attention import argmax_attention

    q, k, v = (torch.tensor(row, dtype=torch.float64).view(1, 1, -1, 1) for row in ([query], [0.0, -1.0], [1.0, 0.0]))
    return argmax_attention(q, k, v).item()


def quadratic_kernel() -> list[float]:
    """Our kernel at q = (1, 1) and the keys (1, 1), (1, -1), (-1, 0), whose products with q are 2, 0 and -1.

    >>> quadratic_kernel()
    [9.0, 1.0, 0.0]
    """
    import torch

    from likewise.attention import Polynomial

    q, k = torch.ones(1, 1, 1, 2), torch.tensor([[1.0, 1.0], [1.0, -1.0], [-1.0, 0.0]]).view(1, 1, 3, 2)
    return Polynomial(degree=2, constant=1.0)(q, k).flatten().tolist()


DEMONSTRATIONS: dict[str, Callable[..., Any]] = {
    "argmax.quotients_at_a_tie": argmax_quotients_at_a_tie,
    "argmax.above_its_chord": argmax_above_its_chord,
    "kernel.quadratic": quadratic_kernel,
}
