"""A person's corrections of a reading: `answer.readings.yaml` beside the file, honoured in every run.

Apart from `scope`, because a person writes it and it outlives the text's own words.

A role for a line is for what the line says, not for the conditions under which it says it: were they no conditions any
more, what holds under them would be refuted. A role for a column is for that formula, whatever it is.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from likewise.checks import require
from likewise.reading.expressions import Node
from likewise.reading.statements import Said

ROLES = ("definition", "condition", "assertion", "hypothesis", "question", "requirement")
SPACE = re.compile(r"R(?:\^\(?\s*([A-Za-z0-9_]+(?:\s*,\s*[A-Za-z0-9_]+)*)\s*\)?)?")
FIELDS = {"line", "column", "role", "name", "type", "program"}
DEFINED = ("name", "index", "call")  # a side that a definition gives a meaning


@dataclass(frozen=True)
class Correction:
    """What one entry says: a role for a line or a formula, a type for a name, or the program of a line's orders."""

    line: int = 0
    role: str = ""
    name: str = ""
    dims: tuple[str, ...] | None = None  # of the type; () is a number
    program: str = ""
    column: int = 0  # of the formula that has the role; 0 is the line


def corrections_of(sidecar: Path) -> tuple[Correction, ...]:
    """The corrections of a sidecar, none if it does not exist."""
    return corrections(sidecar.read_text(encoding="utf-8"), str(sidecar)) if sidecar.exists() else ()


def corrections(yaml_text: str, where: str = "readings") -> tuple[Correction, ...]:
    r"""Corrections from a list of entries.

    >>> corrections("- {name: A, type: 'R^(N, D)'}\n- {line: 3, role: definition}")[0].dims
    ('N', 'D')
    """
    import yaml

    found = yaml.safe_load(yaml_text)
    require(isinstance(found, list), "readings", where, "be a list of corrections", type(found).__name__)
    made = []
    for entry in found:
        require(isinstance(entry, dict), "readings", where, "have entries with fields", entry)
        unknown = sorted(set(entry) - FIELDS)
        require(
            not unknown, "readings", where, f"have the fields {', '.join(sorted(FIELDS))}", ", ".join(map(str, unknown))
        )
        line, role, name = entry.get("line", 0), entry.get("role", ""), entry.get("name", "")
        column = entry.get("column", 0)
        require(isinstance(line, int) and line >= 0, "readings", f"line in {where}", "be a line from 1", line)
        right = isinstance(column, int) and column >= 0 and not (column and not role)
        require(right, "readings", f"column in {where}", "be a column from 1, beside a role", column)
        require(not role or role in ROLES, "readings", f"role in {where}", f"be one of {', '.join(ROLES)}", role)
        dims = None
        if "type" in entry:
            space = SPACE.fullmatch(str(entry["type"]))
            require(
                bool(space) and bool(name),
                "readings",
                f"type in {where}",
                "be R, R^D or R^(N, D) of a name",
                entry["type"],
            )
            assert space is not None
            dims = tuple(part.strip() for part in (space[1] or "").split(",") if part.strip())
        program = entry.get("program", "")
        whole = bool((role and line) or (name and dims is not None) or (program and line))
        require(whole, "readings", where, "correct a role or program of a line, or the type of a name", entry)
        made.append(Correction(line, role, name, dims, program, column))
    return tuple(made)


def with_roles(said: Sequence[Said], corrections: Iterable[Correction]) -> list[Said]:
    """Statements with the roles that a person gives them; a role for one formula overrules one for its line."""
    found = list(said)
    for correction in sorted((each for each in corrections if each.role), key=lambda each: each.column > 0):
        meant = [
            place
            for place, each in enumerate(said)
            if each.formula.line == correction.line and correction.column in (0, each.formula.column)
        ]
        meant = [place for place in meant if said[place].role != "condition" and said[place].relations] or meant
        if correction.role == "definition":  # an equation can define something, an inequality cannot
            meant = [place for place in meant if said[place].relations[:1] in (("==",), (":=",))]
            meant = [place for place in meant if _first_kind(said[place]) in DEFINED] or meant
        for place in meant:
            defining = correction.role == "definition"
            found[place] = replace(said[place], role=correction.role, defining=defining, read_as=said[place].role)
    return found


def _first_kind(said: Said) -> str:
    first = said.nodes[0] if said.nodes else None
    return first.kind if isinstance(first, Node) else ""
