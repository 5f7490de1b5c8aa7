"""Any function or module to exact counts: parameters, multiply-adds, traffic and memory, and how they grow."""

# ruff: noqa: E402  without torch, this is the first line that fails
from likewise.checks import require_package

require_package("likewise.cost", "torch")

from likewise.cost.counting import Cost, Operation, cost
from likewise.cost.growth import BreakEven, Growth, NotPolynomial, Step, break_even, cost_polynomial, cost_steps
from likewise.cost.operations import Uncounted

__all__ = [
    "BreakEven",
    "Cost",
    "Growth",
    "NotPolynomial",
    "Operation",
    "Step",
    "Uncounted",
    "break_even",
    "cost",
    "cost_polynomial",
    "cost_steps",
]
