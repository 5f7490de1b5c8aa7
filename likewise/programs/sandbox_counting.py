"""Counting inside the sandbox, where code of the user runs: what `likewise.claims.sandbox.child` loads for it.

It stands alone, so that the process of the code loads nothing of ours but `likewise.cost`.
"""

import inspect
from collections.abc import Callable, Sequence
from typing import Any


def loaded_counter() -> Callable[..., Any]:
    """What counts, after one use of it, for that loads parts of torch."""
    import torch

    from likewise.cost import cost

    torch.set_num_threads(1)
    cost(torch.sin, torch.empty(1))
    return counted


def counted(make: Callable[..., Any], quantities: Sequence[str]) -> dict[str, Any]:
    """Polynomials of what `make` makes of its sizes; a term is its factors and the two parts of a fraction."""
    from likewise.cost import cost_polynomial

    sizes = list(inspect.signature(make).parameters)
    found = cost_polynomial(make, sizes, quantities=quantities)
    polynomials = [
        [[[factors, value.numerator, value.denominator] for factors, value in part.terms.items()] for part in parts]
        for parts in (found.polynomials[quantity] for quantity in quantities)
    ]
    return {"sizes": sizes, "polynomials": polynomials, "grid": found.grid, "hold_outs": found.hold_outs}
