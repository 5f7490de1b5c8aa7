r"""Formulas that hold, changed in one place: a sign, an exponent, an index, a transpose, a bound or a factor.

`python -m studies.reading mutations FOLDER` changes the LaTeX in its text, reads the whole text again and asks what is
said of the changed formula. Counted are identities (between names), expectations (E and Var) and plain arithmetic.
A mutant that holds is either equivalent, which a person says in results/reading_equivalent.json, or a failure.
"""

import json
import random
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from likewise.reading import Answer, Statement, check_answers, read_answer

EQUIVALENT = Path(__file__).with_name("results") / "reading_equivalent.json"
WAYS = {  # the place, and what it becomes
    "sign": [(r"(?<=[\w})\]|]) ?\+ ?", " - "), (r"(?<=[\w})\]|]) - ", " + "), (r"(?<=[\w})\]])-(?=[\w\\(])", "+")],
    "exponent": [(r"\^2(?!\d)|\^\{2\}", "^3"), (r"\^3(?!\d)|\^\{3\}", "^2"), (r"(?<=\^\{)-", "")],
    "index": [(r"_1(?!\d)", "_2"), (r"_2(?!\d)", "_1"), (r"_i\b", "_k"), (r"_j\b", "_i"), (r"_\{ij\}", "_{ji}")],
    "transpose": [(r"\^\\top|\^T\b|\^\{\\top\}|\^\{T\}", "")],
    "bound": [
        (r"(?<=_\{[ijkl]=)1(?=\})", "2"),
        (r"(?<=_\{[ijkl]=)0(?=\})", "1"),
        (r"(?<=\}\^)([A-Za-z\d])", r"{\1-1}"),
    ],
    "factor": [
        (r"(?<![\w.^_{,])2(?=\\?[A-Za-z ]|\()", "3"),
        (r"\\frac\{?1\}?\{?2\}?", r"\\frac{1}{3}"),
        (r"(?<== )(?=\\frac|[A-Za-z(])", "2"),
        (r"(?<=\{)2(?=[\\A-Za-z])", "3"),
    ],
}
ORDER = re.compile(r"\b(?:has shape|in (?:O|Theta|Omega)\()|^of:", re.M)


def kind_of(statements: Sequence[Statement]) -> str:
    """identity, expectation or arithmetic; nothing for orders, shapes and what holds by definition."""
    claims = [claim for each in statements for reading in each.readings for claim in reading.claims]
    if not claims or any(ORDER.search(claim) or "==" not in claim for claim in claims):
        return ""
    if all(reading.trivial for each in statements for reading in each.readings if reading.claims):
        return ""
    if any(re.search(r"\b(?:E|Var)\[", claim) for claim in claims):
        return "expectation"
    return "identity" if any(re.search(r"^(?:given|sizes):", claim, re.M) for claim in claims) else "arithmetic"


def mutants(source: str) -> Iterator[tuple[str, str]]:
    """Each way with a formula that it makes, one place at a time."""
    for way, rules in WAYS.items():
        for pattern, put in rules:
            for match in re.finditer(pattern, source):
                new = source[: match.start()] + match.expand(put) + source[match.end() :]
                if new != source:
                    yield way, new


def at(answer: Answer, place: tuple[int, int]) -> tuple[Statement, ...]:
    """The statements of the formula at a place that say something."""
    return tuple(each for each in answer.statements if (each.line, each.column) == place and each.relation)


def study(texts: dict[str, str], most: int, seed: int, verbose: bool) -> dict:
    """What is said of the mutants of all formulas that hold, at most so many."""
    known = json.loads(EQUIVALENT.read_text(encoding="utf-8")) if EQUIVALENT.exists() else []
    equivalent = {(each["text"], each["line"], each["mutant"]) for each in known}
    checked = dict(zip(texts, check_answers([read_answer(text) for text in texts.values()]), strict=True))
    found: list[tuple[str, tuple[int, int], str, str, str, str]] = []
    for name, answer in checked.items():
        lines = texts[name].split("\n")
        for place in dict.fromkeys((each.line, each.column) for each in answer.statements):
            said = at(answer, place)
            if not said or any(each.verdict != "holds" for each in said) or not (kind := kind_of(said)):
                continue
            start = sum(len(line) + 1 for line in lines[: place[0] - 1]) + place[1] - 1
            source = said[0].source
            if texts[name][start : start + len(source)] != source:
                continue
            for way, new in mutants(source):
                found.append(
                    (name, place, kind, way, new, texts[name][:start] + new + texts[name][start + len(source) :])
                )
    chosen = random.Random(seed).sample(found, min(most, len(found)))
    read = []
    for _, place, *_, text in chosen:
        answer = read_answer(text)
        read.append(replace(answer, statements=at(answer, place)))
    rows: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for (name, place, kind, way, new, _), answer in zip(chosen, check_answers(read), strict=True):
        verdicts = {each.verdict for each in answer.statements}
        outcome = "undecided" if any(each.claim for each in answer.statements) else "not read"
        if "refuted" in verdicts:
            outcome = "refuted"
        elif verdicts == {"holds"}:
            outcome = "equivalent" if (name, place[0], new) in equivalent else "holds"
        rows[kind][outcome] += 1
        rows[f"{kind}, {way}"][outcome] += 1
        if verbose and outcome not in ("refuted", "equivalent"):
            print(f"{outcome}  {kind}, {way}  {name} {place[0]}: {new}")
            for each in answer.statements:
                print(f"    {each.role} {each.detail or each.refusal} | {each.claim.replace(chr(10), ' / ')}")
    counts = {
        "formulas": len({(name, place) for name, place, *_ in found}),
        "mutants": len(chosen),
        **{kind: {**dict(sorted(row.items())), "share refuted": _share(row)} for kind, row in sorted(rows.items())},
    }
    return {"counts": counts}


def _share(row: Counter[str]) -> float | None:
    """Of the mutants that are not equivalent."""
    told = row.total() - row["equivalent"]
    return round(row["refuted"] / told, 3) if told else None
