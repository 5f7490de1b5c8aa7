"""How programs are counted: ours and registered ones here, a function of a file of the user in a sandbox.

`of: net.py:step` names such a function. `step(N, D)` is called with sizes and returns a program followed by its
inputs, as for `likewise cost net.py:step`. The process that counts has run the file, so its numbers are as honest as
the file is, and the grade of a verdict says whose they are; here they are only taken if they are polynomials at all.
"""

import re
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Any

from likewise.claims.language.limits import DIGITS
from likewise.claims.registry import Make, Measured
from likewise.claims.sandbox.confinement import MALFORMED, Code, printable, program_file, run_confined
from likewise.claims.verdict import Undecided
from likewise.polynomial import Polynomial

SIZES, MOMENTS, TERMS = 12, 64, 2_000  # of one program; moments of a peak; terms of all its polynomials
DEGREE = 4  # in one size
RUNS = 2_000
TOOL = "likewise.programs.sandbox_counting:loaded_counter"
KEPT = 64  # programs whose counts are remembered
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")


def prepare() -> None:
    """Load torch and what counts, on one thread: that takes seconds, which are no part of a claim's time."""
    import torch

    import likewise.cost  # noqa: F401

    torch.set_num_threads(1)


def count_program(make: Make, sizes: tuple[str, ...], quantities: tuple[str, ...]) -> Measured:
    """Quantities of what `make` makes of its sizes; Undecided if they are no polynomials."""
    from likewise.cost import NotPolynomial, Uncounted

    try:
        return _counted(make, sizes, quantities)
    except (NotPolynomial, Uncounted) as reason:
        raise Undecided(str(reason)) from None


@lru_cache(maxsize=256)
def _counted(make: Make, sizes: tuple[str, ...], quantities: tuple[str, ...]) -> Measured:
    """A program without sizes is counted once."""
    from likewise.cost import cost, cost_polynomial

    if sizes:
        grown = cost_polynomial(make, sizes, quantities=quantities)
        return Measured(sizes, tuple(grown.polynomials[quantity] for quantity in quantities), grown.runs)
    found = cost(*make())
    numbers = {
        "params": found.params,
        "macs": found.macs,
        "elementwise": found.elementwise,
        "traffic": found.traffic,
        "fused_traffic": found.fused_traffic,
        "peak": found.peak,
        "saved": found.saved,
    }
    return Measured((), tuple((Polynomial.constant(numbers[quantity]),) for quantity in quantities))


_known: dict[tuple[Code, str], Measured] = {}


def count_file(name: str, quantities: tuple[str, ...], *, folder: str, seconds: float) -> Measured:
    """Quantities of what a function of a file beside the claim makes; Undecided if there is anything wrong with it."""
    file, attribute = program_file(name, folder)
    code = Code(file, attribute, quantities, tool=TOOL)
    if (code, code.source) not in _known:
        outcome, confinement = run_confined(code, seconds)
        if "missing" in outcome:
            raise Undecided(f"{name} is not defined there, or cannot be called")
        if "raised" in outcome:
            kind, message = printable(outcome["raised"][0]), printable(outcome["message"])
            raise Undecided(f"{name} could not be counted: {kind}{': ' * bool(message)}{message}")
        if len(_known) >= KEPT:
            _known.clear()
        _known[code, code.source] = measured(outcome["returned"], quantities, confinement)
    return _known[code, code.source]


def measured(found: Any, quantities: Sequence[str], confinement: str) -> Measured:
    """What `sandbox_counting.counted` sent, if it is that: the code may have sent anything.

    >>> square = {"sizes": ["n"], "polynomials": [[[[[["n", 3]], 1, 1]]]], "grid": 4, "hold_outs": 4}
    >>> measured(square, ["macs"], "").parts
    ((Polynomial('n^3'),),)
    """
    _require(isinstance(found, dict) and found.keys() == {"sizes", "polynomials", "grid", "hold_outs"})
    sizes, several = tuple(_list(found["sizes"], SIZES)), _list(found["polynomials"], len(quantities))
    _require(len(several) == len(quantities) and len(set(sizes)) == len(sizes))
    _require(all(isinstance(name, str) and NAME.fullmatch(name) for name in sizes))
    terms_left, parts = TERMS, []
    for quantity, moments in zip(quantities, several, strict=True):
        listed = [_list(terms, terms_left) for terms in _list(moments, MOMENTS if quantity == "peak" else 1)]
        terms_left -= sum(map(len, listed))
        _require(bool(listed) and terms_left >= 0)
        parts.append(tuple(_polynomial(terms, sizes) for terms in listed))
    grid, hold_outs = (_whole(found[name], 1, RUNS) for name in ("grid", "hold_outs"))
    return Measured(sizes, tuple(parts), f"{grid}+{hold_outs} runs" if sizes else "", confinement)


def _polynomial(terms: list[Any], sizes: tuple[str, ...]) -> Polynomial:
    """Every monomial once, in the sizes, of a low degree; where all sizes are equal a count is a whole number."""
    found = {}
    for term in terms:
        _require(isinstance(term, list) and len(term) == 3)
        factors = tuple(_factor(factor, sizes) for factor in _list(term[0], len(sizes)))
        _require(factors == tuple(sorted(dict(factors).items())) and factors not in found)
        most = 10**DIGITS
        found[factors] = Fraction(_whole(term[1], -most, most), _whole(term[2], 1, most))
    whole = Polynomial(found)
    counts = [whole.evaluate(dict.fromkeys(sizes, size)) for size in (2, 7, 11)]
    _require(all(count >= 0 and count.denominator == 1 for count in counts))
    return whole


def _factor(found: Any, sizes: tuple[str, ...]) -> tuple[str, int]:
    _require(isinstance(found, list) and len(found) == 2 and found[0] in sizes)
    return found[0], _whole(found[1], 1, DEGREE)


def _list(found: Any, most: int) -> list[Any]:
    _require(isinstance(found, list) and len(found) <= most)
    return found


def _whole(found: Any, least: int, most: int) -> int:
    _require(type(found) is int and least <= found <= most)
    return found


def _require(agreed: bool) -> None:
    if not agreed:
        raise Undecided(MALFORMED)
