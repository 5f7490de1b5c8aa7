"""What the pages and the docstrings state is checked: every claim fence has the verdict it expects."""

from functools import cache
from pathlib import Path

import pytest

from likewise.claims import ClaimSource, Verdict, check_claims
from likewise.claims.documents import file_claims
from tests.house import guards
from tests.house.test_pages import PAGES

ROOMS_WITH_FACTS = {"attention", "networks"}


@cache
def answers() -> list[tuple[ClaimSource, Verdict]]:
    """Every claim of the pages and of the package's docstrings, all checked at once."""
    stated = [claim for path in [*PAGES, *guards.sources()] for claim in file_claims(path)]
    return list(zip(stated, check_claims(stated, budget=60.0), strict=True))


@pytest.mark.slow
def test_every_claim_has_the_verdict_it_expects() -> None:
    found = [f"{stated.file}:{stated.line} {verdict}" for stated, verdict in answers() if not verdict.as_expected]
    assert found == []


@pytest.mark.parametrize(
    "page", sorted(path.name for path in PAGES if path.parent.name == "docs" or path.stem == "README")
)
def test_a_page_states_its_facts_as_claims(page: str) -> None:
    assert page in {Path(stated.file).name for stated, _ in answers()}


@pytest.mark.parametrize("room", sorted(ROOMS_WITH_FACTS))
def test_docstrings_of_a_room_state_facts_as_claims(room: str) -> None:
    files = [Path(stated.file) for stated, _ in answers()]
    assert any(guards.PACKAGE / room in file.parents for file in files)


def test_the_readme_shows_the_lines_that_its_claims_get() -> None:
    lines = (guards.ROOT / "README.md").read_text(encoding="utf-8").splitlines()
    shown = [str(verdict) for stated, verdict in answers() if Path(stated.file).name == "README.md"]
    assert shown
    assert [line for line in shown if line not in lines] == []
