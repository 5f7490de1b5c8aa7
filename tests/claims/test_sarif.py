"""SARIF says what a build makes of each claim, at its line, and nothing of what passes."""

import json
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse

import pytest
from hypothesis import given
from hypothesis import strategies as st

from likewise.claims.sarif import message, sarif
from likewise.claims.stated import ClaimSource
from likewise.claims.verdict import Verdict

VERDICTS = {
    "error": [
        Verdict("refuted", "refuted", "exact witness", "x=1: 1 != 2"),
        Verdict("refuted-not-expected", "refuted", "exact witness", "x=1: 1 != 2", expect="holds"),
        Verdict("holds-not-expected", "holds", "proved", "for every D", expect="refuted"),
        Verdict("missed", "inconclusive", "undecided", "too close to tell", expect="refuted"),
        Verdict("typo", "malformed", "", "page.md:14:3: unknown field 'givn'", expect="refuted", place=(14, 3)),
    ],
    "note": [
        Verdict("open", "inconclusive", "undecided", "too close to tell"),
        Verdict("searched", "inconclusive", "searched", "no counterexample at 8 points"),
    ],
    None: [
        Verdict("holds", "holds", "proved", "for every D"),
        Verdict("expected", "refuted", "exact witness", "x=1: 1 != 2", expect="refuted"),
        Verdict("expected-open", "inconclusive", "undecided", "too close to tell", expect="inconclusive"),
        Verdict("expected-typo", "malformed", "", "unknown name x", expect="malformed"),
    ],
}
LEVELS = {verdict.id: level for level, verdicts in VERDICTS.items() for verdict in verdicts}
ALL = [verdict for verdicts in VERDICTS.values() for verdict in verdicts]


def log(file: str = "docs/page.md") -> dict[str, Any]:
    return sarif([ClaimSource(each.id, "", 10 + place, file) for place, each in enumerate(ALL)], ALL)


def results(found: dict[str, Any]) -> list[dict[str, Any]]:
    [run] = found["runs"]
    return run["results"]


def test_a_level_for_each_outcome() -> None:
    found = {result["properties"]["id"]: result["level"] for result in results(log())}
    assert found == {id: level for id, level in LEVELS.items() if level}


def test_what_the_schema_requires_is_there() -> None:
    found = json.loads(json.dumps(log(), allow_nan=False))
    assert found["version"] == "2.1.0"
    assert urlparse(found["$schema"]).path.endswith("/sarif-schema-2.1.0.json")
    [run] = found["runs"]
    assert set(run) == {"tool", "invocations", "results"}
    assert run["invocations"] == [{"executionSuccessful": True}]
    driver = run["tool"]["driver"]
    assert driver["name"] == "likewise"
    rules = [rule["id"] for rule in driver["rules"]]
    assert len(set(rules)) == len(rules)
    assert all(rule["shortDescription"]["text"] for rule in driver["rules"])
    assert {result["ruleId"] for result in run["results"]} == set(rules)
    for result in run["results"]:
        assert set(result) == {"ruleId", "ruleIndex", "level", "message", "locations", "properties"}
        assert rules[result["ruleIndex"]] == result["ruleId"]
        assert result["level"] in ("none", "note", "warning", "error")
        assert result["message"]["text"]
        [location] = result["locations"]
        place = location["physicalLocation"]
        assert place["artifactLocation"] == {"uri": "docs/page.md"}
        line = 10 + list(LEVELS).index(result["properties"]["id"])
        column = {"startColumn": 3} if result["properties"]["id"] == "typo" else {}
        assert place["region"] == {"startLine": line, **column}


def test_a_missed_expectation_says_what_was_expected() -> None:
    [text] = [each["message"]["text"] for each in results(log()) if each["properties"]["id"] == "holds-not-expected"]
    assert text == r"holds  holds-not-expected  for every D  \[proved\] (expected: refuted)"


@pytest.mark.parametrize("file", ["a b/ä%:x.md", "c:\\x.md", "-"])
def test_a_place_is_a_relative_uri(file: str) -> None:
    for result in results(log(file)):
        uri = result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
        assert urlparse(uri).scheme == ""
        assert uri.isascii()
        assert unquote(uri) == file


def test_an_absolute_path_is_a_file_uri(tmp_path: Path) -> None:
    uri = results(log(str(tmp_path / "x.md")))[0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
    assert uri == (tmp_path / "x.md").as_uri()


def test_a_text_without_a_file_has_no_place() -> None:
    assert all(result["locations"] == [] for result in results(log("")))


@given(st.text())
def test_a_message_holds_no_link_no_placeholder_and_no_control_character(text: str) -> None:
    shown = message(text)
    assert shown.isprintable()
    left = shown.replace("\\\\", "").replace("\\[", "").replace("\\]", "").replace("{{", "").replace("}}", "")
    assert not set(left) & set("[]{}\\")


def test_a_message_is_read_back_as_it_was() -> None:
    assert message(r"[x](1) {0} \ ok") == r"\[x\](1) {{0}} \\ ok"
