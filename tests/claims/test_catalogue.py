"""The catalogue: every row in one place, never against its verdict, and decided by the engines as it says."""

import re
import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

import pytest

from likewise.claims import ClaimSource, Verdict, check_claims
from likewise.claims.language.claim import Claim, Compares
from likewise.claims.language.parser import parse
from likewise.claims.language.tokens import Unparsed
from likewise.claims.language.tree import Name, Number
from likewise.programs.rows import FOLDER, catalogue_claims, rows, totals

KINDS = {"h": "holds", "r": "refuted", "c": "conditional", "u": "unsupported"}

# The verdict of each row as the catalogue has it: one letter for each row, a line for a topic.
VERDICTS = (
    "hhhhhhhuhrrhcr"  # A, rows 1 to 14
    "rrhhrrhhcrhhru"  # B, from 15
    "rrhhhrhhrhrrrchr"  # C, from 29
    "hrrrhrrrchhrrhhrrhrhrrrrhrr"  # D, from 45
    "chrhrrcrhrhccrh"  # E, from 72
    "hrrrrrhh"  # F, from 87
    "rrrrcrhrhrhrr"  # G, from 95
    "rhhrhhhchc"  # H, from 108
    "hrrrrhhccruc"  # I, from 118
    "hchrrhhchcrchrhhhcrhhrhrhrchrhrrhhrrhccurrrcr"  # J, from 130
    "chhrch"  # K, from 175
    "rchhhrrr"  # L, from 181
)
ROWS = range(1, len(VERDICTS) + 1)
DECIDED = 135  # rows, at least
SECONDS = 90.0  # for the whole catalogue on two cores

# Under which assumption a conditional row holds must be found, not only confirmed.
SUGGESTED = {42: "h <= k", 53: "c == 0", 72: "M <= D", 83: "memory: streamed", 84: "N <= D^2"}

# Counterexamples that must stay the ones a reader can check in the head.
WITNESSES = {
    "row-16-narrow-values": "RuntimeError: shape '[2, 5, 4, 4]' is invalid for input of size 40",
    "row-27-one-line": "RuntimeError: shape '[2, 5, 4, 4]' is invalid for input of size 320",
    "row-30-order": "subscript d is 11 in x but 17 in W",
    "row-42-traffic": "6*b*n*h escapes along b=n=h=d=t, k=1",
    "row-46-necessary": "n=1 s=(-1)",
    "row-47-one-positive": "n=2 s=(1,-1): sum(s) = 0",
    "row-50-disjoint": "M=2 a=(1,0) b=(0,1): 0 <= 0",
    "row-51-quadratic": "D=1 q=(1) k=(-1): 0 <= 0",
    "row-56-no-root": "D=2 q=(1,1) k=(1,1): 3 != 4",
    "row-57-squares": "D=2 q=(1,1) k=(1,1): 2 != 4",
    "row-60-short-map": "D=2 q=(1,1) k=(1,1): 7 != 9; true for D=1",
    "row-61-width": "D=2: 6 != 5",
    "row-72-time": "N^2*M escapes along M=t",
    "row-83-kept-features": "3*N*D^2 escapes along N=t^2, D=M=t",
    "row-95-printed-law": "D=2 q=(1,0) k=(0,0): exp(-sqrt(2)/2) = 0.493069 != exp(-sqrt(2)/4) = 0.702189",
}


@dataclass(frozen=True)
class Fence:
    """One claim of the catalogue and what its fields say, also where it is meant not to parse."""

    stated: ClaimSource
    fields: dict[str, str]
    claim: Claim | None

    @property
    def row(self) -> int:
        return int(self.fields.get("row", 0))

    @property
    def corrects(self) -> bool:
        return "revises" in self.fields


def kind(row: int) -> str:
    return KINDS[VERDICTS[row - 1]]


@cache
def fences() -> list[Fence]:
    return [fence(stated) for stated in catalogue_claims()]


def fence(stated: ClaimSource) -> Fence:
    fields = dict(re.findall(r"^([a-z]+): *(.*)$", stated.text, re.MULTILINE))
    try:
        claim = parse(stated.text, id=stated.id)
    except Unparsed:
        claim = None
    return Fence(stated, fields, claim)


def by_row() -> dict[int, list[Fence]]:
    found: dict[int, list[Fence]] = defaultdict(list)
    for each in fences():
        if each.row:
            found[each.row].append(each)
    return found


def listed() -> Iterator[tuple[int, str]]:
    """The rows that are not decided by running, with the reason."""
    for file in FOLDER.glob("*.md"):
        _, _, rest = file.read_text(encoding="utf-8").partition("## Not decided by running")
        for row, reason in re.findall(r"^- row ([0-9]+): (.+)$", rest, re.MULTILINE):
            yield int(row), reason


@pytest.fixture(scope="module")
def run() -> tuple[dict[str, Verdict], float]:
    """The verdict of every fence, and how long all took."""
    started = time.monotonic()
    verdicts = check_claims([each.stated for each in fences()])
    return {verdict.id: verdict for verdict in verdicts}, time.monotonic() - started


def test_every_row_is_a_claim_or_is_listed_with_a_reason() -> None:
    claimed, left = set(by_row()), [row for row, _ in listed()]
    assert len(VERDICTS) == 188
    assert len(left) == len(set(left))
    assert not claimed & set(left)
    assert claimed | set(left) == set(ROWS)
    assert all(len(reason.split()) >= 3 for _, reason in listed())


def test_the_claims_of_a_row_stand_in_one_file() -> None:
    scattered = {row: found for row, found in by_row().items() if len({each.stated.file for each in found}) > 1}
    assert not scattered


def test_every_claim_has_an_id_of_its_own_that_names_its_row() -> None:
    ids = [each.stated.id for each in fences()]
    assert len(ids) == len(set(ids))
    assert not [each.stated.error for each in fences() if each.stated.error]
    assert not [each.stated.id for each in fences() if each.row and not each.stated.id.startswith(f"row-{each.row}-")]


def test_only_claims_that_are_to_be_malformed_fail_to_parse() -> None:
    assert not [each.stated.id for each in fences() if (each.claim is None) != (each.fields["expect"] == "malformed")]


def test_every_claim_says_what_it_expects_and_who_made_it() -> None:
    assert not [each.stated.id for each in fences() if "expect" not in each.fields]
    assert not [each.stated.id for each in fences() if each.row and not each.corrects and not each.fields.get("who")]


def test_a_false_statement_says_whether_anyone_noticed() -> None:
    false = [each for each in fences() if each.row and not each.corrects and kind(each.row) == "refuted"]
    assert not [each.stated.id for each in false if not each.fields.get("noticed")]


def test_a_correction_names_a_claim_of_the_catalogue() -> None:
    ids = {each.stated.id for each in fences()}
    assert not [each.stated.id for each in fences() if each.corrects and each.fields["revises"] not in ids]


@pytest.mark.parametrize("row", ROWS)
def test_no_row_expects_what_contradicts_its_verdict(row: int) -> None:
    found = by_row().get(row, [])
    everything = {each.fields["expect"] for each in found}
    own = {each.fields["expect"] for each in found if not each.corrects}
    match kind(row) if found else "":
        case "holds":
            assert everything == {"holds"}
        case "refuted":
            assert own == {"refuted"}
        case "conditional":  # once as it was said, once with its assumption
            assert "holds" in everything
            assert own & {"refuted", "malformed"}
        case "unsupported":
            assert own <= {"malformed", "inconclusive"}


def test_no_number_is_compared_with_itself() -> None:
    """Something is computed on one side at least: a cell that is copied from a paper proves nothing about the paper."""
    bare = [
        each.stated.id
        for each in fences()
        if each.claim and isinstance(each.claim.relation, Compares)
        if all(isinstance(term, Name | Number) for term in each.claim.relation.chain.terms)
    ]
    assert not bare


@pytest.mark.slow
def test_engines_decide_every_claim_as_expected(run: tuple[dict[str, Verdict], float]) -> None:
    verdicts, _ = run
    missed = [str(verdict) for verdict in verdicts.values() if not verdict.as_expected]
    assert not missed, "\n".join(missed)


@pytest.mark.slow
def test_engines_decide_enough_rows(run: tuple[dict[str, Verdict], float]) -> None:
    verdicts, _ = run
    assert totals(rows(catalogue_claims(), list(verdicts.values())))["decided"] >= DECIDED
    assert not [
        id for id, verdict in verdicts.items() if verdict.verdict in ("holds", "refuted") and not verdict.engine
    ]


@pytest.mark.slow
@pytest.mark.parametrize("id", WITNESSES)
def test_a_refutation_shows_its_smallest_counterexample(id: str, run: tuple[dict[str, Verdict], float]) -> None:
    verdicts, _ = run
    assert verdicts[id].detail.startswith(WITNESSES[id])


@pytest.mark.slow
@pytest.mark.parametrize("row", SUGGESTED)
def test_engines_find_the_missing_assumption(row: int, run: tuple[dict[str, Verdict], float]) -> None:
    verdicts, _ = run
    bare = next(each for each in by_row()[row] if each.fields["expect"] == "refuted")
    assert any(SUGGESTED[row] in suggestion for suggestion in verdicts[bare.stated.id].suggestions)


@pytest.mark.slow
def test_the_whole_catalogue_takes_no_longer_than_promised(run: tuple[dict[str, Verdict], float]) -> None:
    _, seconds = run
    assert seconds < SECONDS
