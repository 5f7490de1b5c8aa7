"""Any function or module to exact counts: parameters, multiply-adds, traffic and memory, and how they grow."""

from likewise.cost.counting import Cost, Operation, cost
from likewise.cost.operations import Uncounted

__all__ = ["Cost", "Operation", "Uncounted", "cost"]
