"""The page about claims shows what its claims are answered with."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from likewise.claims import check_claims
from likewise.claims.documents import markdown_claims, markdown_parser, yaml_claims
from tests.house import guards

PAGE = (guards.ROOT / "docs" / "claims.md").read_text(encoding="utf-8")
PATIENCE = "\nbudget: 30s"  # torch may have to be imported first, on a machine that is busy
PARTS = re.compile(r"^```(claim|text)([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def shown() -> list[tuple[list[str], list[str]]]:
    """Ids of claims, and the lines of text that follow them."""
    found: list[tuple[list[str], list[str]]] = []
    ids: list[str] = []
    for kind, id, content in PARTS.findall(PAGE):
        if kind == "claim":
            ids.append(id.strip())
        else:
            found.append((ids, content.splitlines()))
            ids = []
    assert ids == []
    return found


def test_the_page_shows_the_verdicts_of_its_claims() -> None:
    stated = [replace(claim, text=claim.text + PATIENCE) for claim in markdown_claims(PAGE)]
    verdicts = {verdict.id: verdict for verdict in check_claims(stated)}
    assert len(verdicts) == len(stated) >= 20
    for ids, lines in shown():
        assert lines == [str(verdicts[id]) for id in ids]
    assert [id for id, verdict in verdicts.items() if verdict.outcome != "passes"] == []


@pytest.mark.full
def test_program_on_the_page_is_counted_where_code_is_allowed(tmp_path: Path) -> None:
    [source] = [block for block in guards.python_blocks(PAGE) if block.startswith("# attend.py\n")]
    [line] = re.findall(r"^```console\n(.*)\n```$", PAGE, re.MULTILINE)
    (tmp_path / "attend.py").write_text(source)
    [claim] = [claim for claim in markdown_claims(PAGE, file=str(tmp_path / "page.md")) if claim.id == "own-program"]
    text = claim.text.replace("expect: inconclusive", PATIENCE)
    assert list(map(str, check_claims([replace(claim, text=text)], allow_code=True))) == [line]


def test_the_lists_on_the_page_are_read() -> None:
    [listed] = [token.content for token in markdown_parser().parse(PAGE) if token.info == "yaml"]
    [claim] = yaml_claims(listed)
    assert claim.error == ""
    [stated] = [each for each in markdown_claims(PAGE) if each.id == claim.id]
    assert claim.text.splitlines() == stated.text.splitlines()


def test_every_function_and_every_field_is_on_the_page() -> None:
    from likewise.claims.language.parser import CHOICES, FREE_TEXT, NUMBERS
    from likewise.claims.language.tree import FUNCTIONS

    words = set(re.findall(r"\w+", PAGE))
    assert {*FUNCTIONS, *CHOICES, *FREE_TEXT, *NUMBERS} - words == set()
    assert {choice for choices in CHOICES.values() for choice in choices} - words == set()


def test_every_grade_is_on_the_page_and_explained_by_reports() -> None:
    from likewise.review.rendering import GRADES

    table = PAGE[PAGE.index("| grade |") : PAGE.index("A malformed claim has no grade")]
    rows = re.findall(r"^\| ([a-z ]+?) \|", table, re.MULTILINE)
    assert rows == ["grade", *GRADES]
