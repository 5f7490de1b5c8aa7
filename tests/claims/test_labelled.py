"""Claims that were labelled by hand before any engine saw them: not one verdict may be wrong."""

from collections import Counter
from pathlib import Path

import pytest

from likewise.claims import ClaimSource, check_claims

pytestmark = pytest.mark.full

FILE = Path(__file__).with_name("labelled.txt")
TRUTH = {"T": "holds", "F": "refuted"}  # V: nothing satisfies the assumptions; O: rounding leaves it open
UNDECIDED = 0.25  # of what is true or false; the aim is 0.08


def labelled() -> list[tuple[str, str]]:
    """Label and text of each claim."""
    lines = [line for line in FILE.read_text().splitlines() if line[1:2] == " " and line[0] in "TFVO"]
    return [(line[0], line[2:].replace(" || ", "\n")) for line in lines]


def test_no_verdict_on_labelled_claims_is_wrong(disagreements: list[str]) -> None:
    claims = labelled()
    assert Counter(label for label, _ in claims)["F"] >= 150
    verdicts = check_claims([ClaimSource(str(number), text) for number, (_, text) in enumerate(claims)])
    decided = [
        (label, text, str(verdict))
        for (label, text), verdict in zip(claims, verdicts, strict=True)
        if verdict.verdict in ("holds", "refuted")
    ]
    wrong = [each for each in decided if not each[2].startswith(TRUTH.get(each[0], "undecided"))]
    assert not wrong
    # The judge stops the engine of shapes at A @ c of a tensor c[d]: undecided here, and the only such claim.
    assert [said for said in disagreements if "shape says refuted" not in said] == []
    assert len(disagreements) <= 1
    disagreements.clear()
    open_ones = sum(label in TRUTH for label, _ in claims) - len(decided)
    assert open_ones <= UNDECIDED * len(claims)
