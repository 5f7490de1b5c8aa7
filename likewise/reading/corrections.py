"""A person's corrections of a reading: `answer.readings.yaml` beside the file, honoured in every run.

Apart from `scope`, because a person writes it and it outlives the text's own words.
"""

import re
from dataclasses import dataclass
from pathlib import Path

from likewise.checks import require

ROLES = ("definition", "condition", "assertion", "hypothesis", "question", "requirement")
SPACE = re.compile(r"R(?:\^\(?\s*([A-Za-z0-9_]+(?:\s*,\s*[A-Za-z0-9_]+)*)\s*\)?)?")
FIELDS = {"line", "role", "name", "type", "program"}


@dataclass(frozen=True)
class Correction:
    """What one entry says: a role for a line, a type for a name, or the program that the orders of a line are about."""

    line: int = 0
    role: str = ""
    name: str = ""
    dims: tuple[str, ...] | None = None  # of the type; () is a number
    program: str = ""


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
        require(isinstance(line, int) and line >= 0, "readings", f"line in {where}", "be a line from 1", line)
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
        made.append(Correction(line, role, name, dims, program))
    return tuple(made)
