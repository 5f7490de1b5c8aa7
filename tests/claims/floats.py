"""An evaluator of expressions in floating point, written apart from the exact ones, to judge them."""

import math
from collections.abc import Mapping
from functools import reduce
from itertools import combinations
from typing import Any

import numpy as np

from likewise.claims.language.tree import (
    Binary,
    Call,
    Chain,
    Index,
    Join,
    Name,
    Negative,
    Node,
    Number,
    Text,
    Transpose,
)

OPERATORS = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "/": np.divide,
    "^": np.power,
    "@": np.matmul,
}
FUNCTIONS = {
    "dot": lambda x, y: np.dot(x.ravel(), y.ravel()),
    "sqnorm": lambda x: np.sum(x * x),
    "norm": lambda x: np.sqrt(np.sum(x * x)),
    "sum": np.sum,
    "mean": np.mean,
    "max": lambda *x: np.max(x[0]) if len(x) == 1 else reduce(np.maximum, x),
    "min": lambda *x: np.min(x[0]) if len(x) == 1 else reduce(np.minimum, x),
    "abs": np.abs,
    "tr": np.trace,
    "vec": np.ravel,
    "outer": np.outer,
    "pairs": lambda x: np.array([a * b for a, b in combinations(x.ravel(), 2)]),
    "dim": lambda x: np.float64(x.size),
    "sqrt": np.sqrt,
    "exp": np.exp,
    "log": np.log,
    "sin": np.sin,
    "cos": np.cos,
    "relu": lambda x: np.maximum(x, 0),
    "softmax": lambda x: np.exp(x) / np.exp(x).sum(axis=-1, keepdims=True),
    "I": lambda n: np.eye(int(n)),
    "ones": lambda *n: np.ones([int(i) for i in n]),
    "zeros": lambda *n: np.zeros([int(i) for i in n]),
    "choose": lambda n, k: np.float64(math.comb(int(n), int(k))),
}


def number(node: Node, values: Mapping[str, Any]) -> Any:
    """The value of an expression at a point, as numpy computes it."""
    match node:
        case Number(value):
            return np.float64(float(value))
        case Name(name):
            return np.asarray(values[name], dtype=float)
        case Negative(operand):
            return -number(operand, values)
        case Transpose(operand):
            return number(operand, values).T
        case Binary(sign, left, right):
            return OPERATORS[sign](number(left, values), number(right, values))
        case Index(operand, indices):
            return number(operand, values)[tuple(int(number(index, values)) - 1 for index in indices)]
        case Join(parts):
            return np.concatenate([np.ravel(number(part, values)) for part in parts])
        case Call("einsum", (Text(subscripts), *rest)):
            return np.einsum(subscripts, *(number(part, values) for part in rest if not isinstance(part, Text)))
        case Call(function, arguments):
            return FUNCTIONS[function](*(number(part, values) for part in arguments if not isinstance(part, Text)))
    raise AssertionError(node)


def clearly_false(chain: Chain, values: Mapping[str, Any], slack: float = 1e-6) -> bool:
    """Whether some comparison is false by more than rounding."""
    terms = [number(term, values) for term in chain.terms]
    for left, sign, right in zip(terms, chain.comparisons, terms[1:], strict=False):
        gap = np.ravel(left - right)
        room = slack * (1 + np.max(np.abs(left)) + np.max(np.abs(right)))
        wrong = {
            "==": np.any(np.abs(gap) > room),
            "!=": False,  # equality is never clear
            "<": np.any(gap > room),
            "<=": np.any(gap > room),
            ">": np.any(gap < -room),
            ">=": np.any(gap < -room),
        }[sign]
        if wrong:
            return True
    return False
