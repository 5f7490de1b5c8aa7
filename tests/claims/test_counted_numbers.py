"""What a counted file sends back is taken for numbers and for nothing else."""

import copy
from itertools import product
from typing import Any

import pytest

from likewise.claims.sandbox.confinement import MALFORMED
from likewise.claims.verdict import Undecided
from likewise.programs.counting import measured

GOOD: dict[str, Any] = {
    "sizes": ["N", "D"],
    "polynomials": [[[[[["D", 1], ["N", 2]], 1, 1], [[["N", 2]], 1, 2], [[["N", 1]], 1, 2]]]],
    "grid": 6,
    "hold_outs": 4,
}
TERM = GOOD["polynomials"][0][0][0]
LIES = {
    "no map": lambda good: [good],
    "another key": lambda good: good | {"more": 1},
    "a missing key": lambda good: {name: good[name] for name in good if name != "grid"},
    "sizes that are no list": lambda good: good | {"sizes": "ND"},
    "a size that is no name": lambda good: good | {"sizes": ["N", "D", "\x1b[31m"]},
    "a size of another alphabet": lambda good: good | {"sizes": ["N", "D", "\u0445"]},
    "a long size": lambda good: good | {"sizes": ["N", "D", "x" * 65]},
    "a size that is a number": lambda good: good | {"sizes": ["N", "D", 1]},
    "a size twice": lambda good: good | {"sizes": ["N", "D", "D"]},
    "too many sizes": lambda good: good | {"sizes": ["N", "D", *(f"x{i}" for i in range(11))]},
    "no polynomial": lambda good: good | {"polynomials": [[]]},
    "too few quantities": lambda good: good | {"polynomials": []},
    "too many quantities": lambda good: good | {"polynomials": good["polynomials"] * 2},
    "several moments of a cost": lambda good: good | {"polynomials": [good["polynomials"][0] * 2]},
    "an unknown size": lambda good: with_term(good, [[["M", 1]], 1, 1]),
    "a degree of nought": lambda good: with_term(good, [[["D", 0]], 1, 1]),
    "a high degree": lambda good: with_term(good, [[["D", 5]], 1, 1]),
    "a degree below nought": lambda good: with_term(good, [[["D", -1]], 1, 1]),
    "a broken degree": lambda good: with_term(good, [[["D", 1.5]], 1, 1]),
    "a degree that is true": lambda good: with_term(good, [[["D", True]], 1, 1]),
    "factors out of order": lambda good: with_term(good, [[["N", 1], ["D", 1]], 1, 1]),
    "a factor twice": lambda good: with_term(good, [[["D", 1], ["D", 1]], 1, 1]),
    "a term twice": lambda good: with_term(good, TERM),
    "a float": lambda good: with_term(good, [[["D", 1]], 1.0, 1]),
    "not a number": lambda good: with_term(good, [[["D", 1]], float("nan"), 1]),
    "infinity": lambda good: with_term(good, [[["D", 1]], float("inf"), 1]),
    "a text": lambda good: with_term(good, [[["D", 1]], "1", 1]),
    "too many digits": lambda good: with_term(good, [[["D", 1]], 10**65, 1]),
    "nought below": lambda good: with_term(good, [[["D", 1]], 1, 0]),
    "a count below nought": lambda good: with_term(good, [[], -(10**9), 1]),
    "half a count": lambda good: with_term(good, [[], 1, 2]),
    "a term that is no list": lambda good: with_term(good, {"D": 1}),
    "a term of four": lambda good: with_term(good, [[["D", 1]], 1, 1, 1]),
    "a factor of three": lambda good: with_term(good, [[["D", 1, 1]], 1, 1]),
    "a factor that is a list": lambda good: with_term(good, [[[["D"], 1]], 1, 1]),
    "too many terms": lambda good: good | {"polynomials": [[[TERM] * 2_001]]},
    "no runs": lambda good: good | {"grid": 0},
    "runs in words": lambda good: good | {"grid": "many \x1b[31m"},
    "too many runs": lambda good: good | {"hold_outs": 10**9},
}


def with_term(good: dict[str, Any], term: Any) -> dict[str, Any]:
    good["polynomials"][0][0].append(term)
    return good


def test_polynomials_of_the_agreed_form_are_taken() -> None:
    taken = measured(copy.deepcopy(GOOD), ["macs"], "confined")
    assert [part.text(("N", "D")) for part in taken.parts[0]] == ["N^2*D + 1/2*N^2 + 1/2*N"]
    assert (taken.sizes, taken.runs, taken.confinement) == (("N", "D"), "6+4 runs", "confined")
    moments = GOOD | {"polynomials": [GOOD["polynomials"][0] * 3]}
    assert len(measured(moments, ["peak"], "").parts[0]) == 3
    assert measured({**GOOD, "sizes": [], "polynomials": [[[]]]}, ["macs"], "").parts[0][0] == 0


@pytest.mark.parametrize("name", LIES)
def test_anything_else_is_refused(name: str) -> None:
    with pytest.raises(Undecided, match=MALFORMED):
        measured(LIES[name](copy.deepcopy(GOOD)), ["macs"], "")


@pytest.mark.parametrize(
    ("moments", "each", "taken"), [(64, 1, True), (65, 1, False), (1, 2_000, True), (2, 1_001, False)]
)
def test_moments_and_terms_of_a_peak_are_bounded_in_all(moments: int, each: int, taken: bool) -> None:
    sizes = ["a", "b", "c", "d", "e"]
    degrees = list(product(range(5), repeat=5))
    terms = [[[[name, n] for name, n in zip(sizes, each, strict=True) if n], 1, 1] for each in degrees]
    sent = GOOD | {"sizes": sizes, "polynomials": [[terms[:each]] * moments]}
    if taken:
        assert len(measured(sent, ["peak"], "").parts[0]) == moments
    else:
        with pytest.raises(Undecided, match=MALFORMED):
            measured(sent, ["peak"], "")
