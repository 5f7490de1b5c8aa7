"""Verdicts as SARIF 2.1.0, which editors and code hosts show at the line of the claim."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote

import likewise
from likewise.claims.stated import ClaimSource
from likewise.claims.verdict import Verdict
from likewise.text import printable

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
RULES = {
    "refuted": "A claim is refuted by a counterexample.",
    "missed": "A claim's verdict is not the one that it expects.",
    "inconclusive": "A claim could not be decided.",
    "malformed": "A claim is not written in the language of claims.",
}
BRACES = str.maketrans({"\\": "\\\\", "[": "\\[", "]": "\\]", "{": "{{", "}": "}}"})


def sarif(stated: Sequence[ClaimSource], verdicts: Sequence[Verdict]) -> dict[str, Any]:
    """One run: what fails or is malformed is an error, what stays open a note; what passes is not mentioned."""
    driver = {
        "name": "likewise",
        "version": likewise.__version__,
        "rules": [{"id": rule, "shortDescription": {"text": text}} for rule, text in RULES.items()],
    }
    found = zip(stated, verdicts, strict=True)
    results = [_result(claim, verdict, rule) for claim, verdict in found if (rule := _rule(verdict))]
    run = {"tool": {"driver": driver}, "invocations": [{"executionSuccessful": True}], "results": results}
    return {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}


def message(text: str) -> str:
    r"""Text that SARIF shows as it is: brackets would be links there, and braces placeholders.

    >>> print(message("[proved](http://example.org) {0}"))
    \[proved\](http://example.org) {{0}}
    """
    return printable(text).translate(BRACES)


def _rule(verdict: Verdict) -> str | None:
    if verdict.outcome == "fails":
        return "refuted" if verdict.verdict == "refuted" else "missed"
    return {"open": "inconclusive", "malformed": "malformed"}.get(verdict.outcome)


def _level(rule: str) -> Literal["error", "note"]:
    return "note" if rule == "inconclusive" else "error"


def _result(claim: ClaimSource, verdict: Verdict, rule: str) -> dict[str, Any]:
    expected = f" (expected: {verdict.expect})" if rule == "missed" else ""
    region = {"startLine": max(1, claim.line)}
    if verdict.place:
        region = {"startLine": verdict.place[0], "startColumn": verdict.place[1]}
    place = {"artifactLocation": {"uri": _uri(claim.file)}, "region": region}
    return {
        "ruleId": rule,
        "ruleIndex": list(RULES).index(rule),
        "level": _level(rule),
        "message": {"text": message(f"{verdict}{expected}")},
        "locations": [{"physicalLocation": place}] if claim.file else [],
        "properties": verdict.to_json(),
    }


def _uri(file: str) -> str:
    path = Path(file)
    return path.as_uri() if path.is_absolute() else quote(path.as_posix())
