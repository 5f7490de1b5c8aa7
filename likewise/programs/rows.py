"""The catalogue: what was said about these methods in five transcripts, row by row, and whether anyone noticed.

Its claims stand in catalogue/*.md. A row may have several: what needs an assumption appears without and with it.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from likewise.claims.documents import file_claims
from likewise.claims.stated import UNNOTICED, ClaimSource
from likewise.claims.verdict import Verdict

FOLDER = Path(__file__).parent / "catalogue"
ORDER = ("malformed", "inconclusive", "refuted", "holds")  # a row is what its worst claim is
WORDS = re.compile(r"^\*\*Row ([0-9]+)\.\*\* (.+?)(?=\n\n|\n```|\Z)", re.MULTILINE | re.DOTALL)
LISTED = re.compile(r"^- row ([0-9]+): (.+)$", re.MULTILINE)


@dataclass(frozen=True)
class Row:
    """One statement of the catalogue, with the verdicts of its claims."""

    number: int
    who: str
    noticed: str
    verdicts: tuple[Verdict, ...]

    @property
    def decided(self) -> bool:
        """Whether engines decided all its claims, as the catalogue has it."""
        return all(verdict.as_expected and verdict.verdict in ("holds", "refuted") for verdict in self.verdicts)

    @property
    def kind(self) -> Literal["holds", "refuted", "conditional", "inconclusive", "malformed"]:
        """What became of the statement; it is conditional if it is refuted and holds with an assumption."""
        found = {verdict.verdict for verdict in self.verdicts}
        return "conditional" if found >= {"holds", "refuted"} else min(found, key=ORDER.index)

    @property
    def unnoticed(self) -> bool:
        """Whether it is false and nobody saw it."""
        return self.kind == "refuted" and self.noticed.startswith(UNNOTICED)

    def to_json(self) -> dict[str, Any]:
        """Plain data; the verdicts by their ids."""
        return {
            "row": self.number,
            "who": self.who,
            "noticed": self.noticed,
            "kind": self.kind,
            "decided": self.decided,
            "claims": [verdict.id for verdict in self.verdicts],
        }


def catalogue_claims() -> list[ClaimSource]:
    """Every claim of the catalogue."""
    return [claim for file in sorted(FOLDER.glob("*.md")) for claim in file_claims(file)]


def rows(stated: Sequence[ClaimSource], verdicts: Sequence[Verdict]) -> list[Row]:
    """The verdicts by row, in order; claims without a row are left out."""
    found: dict[int, list[tuple[dict[str, str], Verdict]]] = {}
    for claim, verdict in zip(stated, verdicts, strict=True):
        fields = claim.labels  # also of a claim that is meant not to parse
        if fields.get("row", "").isdecimal():
            found.setdefault(int(fields["row"]), []).append((fields, verdict))
    return [_row(number, found[number]) for number in sorted(found)]


def _row(number: int, members: list[tuple[dict[str, str], Verdict]]) -> Row:
    who, noticed = (next((fields[name] for fields, _ in members if name in fields), "") for name in ("who", "noticed"))
    return Row(number, who, noticed, tuple(verdict for _, verdict in members))


def listed() -> dict[int, str]:
    """The rows that no engine can decide, each with the reason that its file gives."""
    text = "\n".join(file.read_text(encoding="utf-8") for file in sorted(FOLDER.glob("*.md")))
    return {int(row): reason for row, reason in LISTED.findall(text)}


def words() -> dict[int, str]:
    """Every row's statement in words, as its file has it before the claims."""
    text = "\n\n".join(file.read_text(encoding="utf-8") for file in sorted(FOLDER.glob("*.md")))
    return {int(row): " ".join(said.split()) for row, said in WORDS.findall(text)}


def totals(found: Sequence[Row]) -> dict[str, int]:
    """How many rows have claims, how many engines decided, what these are, and how many false ones nobody noticed."""
    decided = [row for row in found if row.decided]
    kinds = {kind: sum(row.kind == kind for row in decided) for kind in ("holds", "refuted", "conditional")}
    unnoticed = sum(row.unnoticed for row in decided)
    return {"rows": len(found), "decided": len(decided), **kinds, "unnoticed": unnoticed, "listed": len(listed())}
