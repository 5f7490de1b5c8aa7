"""Any function or module to exact counts: parameters, multiply-adds, traffic and memory, and how they grow."""

# ruff: noqa: E402  without torch, this is the first line that fails
from likewise.checks import require_package

require_package("likewise.cost", "torch")

from likewise.cost.counting import Cost, cost
from likewise.cost.growth import NotPolynomial, break_even, cost_polynomial, cost_steps
from likewise.cost.operations import Uncounted

__all__ = [
    "Cost",
    "NotPolynomial",
    "Uncounted",
    "break_even",
    "cost",
    "cost_polynomial",
    "cost_steps",
]
