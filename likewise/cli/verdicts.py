"""Verdicts on a screen: tables in a terminal, plain lines in a pipe. What a claim says is shown there, never obeyed."""

import sys
from collections import Counter
from collections.abc import Sequence

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from likewise.claims.stated import ClaimSource
from likewise.claims.verdict import Verdict
from likewise.programs.jobs import Checked
from likewise.programs.rows import Row, rows, totals
from likewise.reading import Answer
from likewise.text import printable

TOTALS = """\
{decided} of {rows} rows are decided by engines as the catalogue has them; {listed} more are listed with the reason.
{holds} hold, {conditional} need an assumption, {refuted} are refuted; {unnoticed} of these were noticed by nobody."""
COLOURS = {"holds": "green", "refuted": "red", "inconclusive": "yellow", "malformed": "magenta"}


def show_checked(found: Checked) -> None:
    """Claims, then the formulas of every answer, and totals of several answers."""
    if found.stated:
        (show_catalogue if found.catalogue else show_verdicts)(found.stated, found.verdicts)
    for file, answer in found.answers:
        show_answer(file, answer)
    if len(found.answers) > 1:
        show_totals(found.answers)


def show_verdicts(stated: Sequence[ClaimSource], verdicts: Sequence[Verdict]) -> None:
    """One line for each claim, under the name of its file if there are several."""
    console = Console()
    several = len({claim.file for claim in stated}) > 1
    table = Table("verdict", "id", "detail", "grade", box=box.SIMPLE_HEAD, caption=summary(verdicts))
    shown = None
    for claim, verdict in zip(stated, verdicts, strict=True):
        if several and claim.file != shown:
            shown = claim.file
            if console.is_terminal:
                table.add_section()
            _add(console, table, f"{claim.file}:", ["", "", text(claim.file, "bold"), ""])
        _add(console, table, str(verdict), _cells(verdict))
    if console.is_terminal:
        console.print(table)


def show_catalogue(stated: Sequence[ClaimSource], verdicts: Sequence[Verdict]) -> None:
    """One line for each row, then the totals; claims that did not come out as the catalogue has them on stderr."""
    console = Console()
    found = rows(stated, verdicts)
    table = Table("row", "who", "verdict", "engine", "noticed by", box=box.SIMPLE_HEAD)
    for row in found:
        cells = _row_cells(row)
        colour = "" if row.decided else "bold yellow"
        _add(console, table, "  ".join(cells), [text(cell, colour) for cell in cells])
    if console.is_terminal:
        console.print(table)
    print(TOTALS.format(**totals(found)))
    for verdict in verdicts:
        if verdict.outcome != "passes":
            print(printable(f"not as expected: {verdict}"), file=sys.stderr)


def show_answer(file: str, answer: Answer) -> None:
    """Each formula with its place and verdict, then the claim it was read as and why; at the end the counts."""
    console = Console(soft_wrap=True)
    for each in answer.statements:
        if not each.relation:
            continue
        verdict = text(each.verdict or each.role, COLOURS.get(each.verdict or "", "dim"))
        console.print(
            Text("  ").join([text(f"{file}:{each.line}:{each.column}"), verdict, text(_one_line(each.source))])
        )
        claim = each.claim.replace("\n\n", " | ").replace("\n", "; ")
        for line in filter(None, [claim, each.detail or each.refusal, *each.findings]):
            console.print(Text("    ") + text(line, "dim" if line == claim else ""))
    console.print(text(counted(answer)))


def show_totals(answers: Sequence[tuple[str, Answer]]) -> None:
    """The last table of a folder: counts of every file, and of every speaker in all of them."""
    speakers: dict[str, Counter[str]] = {}
    for file, answer in answers:
        print(printable(f"{file}: {counted(answer, reasons=False)}"))
        for each in answer.statements:
            if each.relation:
                row = speakers.setdefault(each.speaker, Counter())
                row["statements"] += 1
                row.update({"decided": each.decided, "refuted": each.verdict == "refuted", "claims": bool(each.claim)})
    for speaker, row in sorted(speakers.items()):
        print(f"{speaker}: {_listed(row)}")
    total = sum((Counter(answer.counts) for _, answer in answers), Counter())
    print(f"{len(answers)} answers: {total['formulas']} formulas, {_listed(total)}")


def _listed(row: Counter[str]) -> str:
    return ", ".join(f"{row[name]} {name}" for name in ("statements", "claims", "decided", "refuted"))


def show_readings(file: str, answer: Answer) -> None:
    """Every formula with its claim and the lines that bind its names, or why it was not read."""
    for each in answer.statements:
        if not each.relation:
            continue
        print(printable(f"{file}:{each.line}:{each.column}  {each.role}, {each.speaker}  {_one_line(each.source)}"))
        for line in (each.claim or (f"not read: {each.refusal}" if each.refusal else "")).split("\n"):
            if line:
                print(printable(f"    {line}"))
        for line in each.bindings:
            print(printable(f"    # {line}"))
    print(printable(counted(answer)))


def counted(answer: Answer, *, reasons: bool = True) -> str:
    """The last line: how many formulas were read, and why others were not."""
    counts = answer.counts
    line = (
        f"{counts['formulas']} formulas, {counts['statements']} statements: {counts['understood']} understood, "
        f"{counts['claims']} claims, {counts['decided']} decided, {counts['refuted']} refuted"
    )
    refused = "; ".join(f"{count} {reason}" for reason, count in list(answer.refused.items())[:8]) if reasons else ""
    missing = ", ".join(f"({part.label})" for part in answer.parts if not part.answered)
    line += f". Parts without an answer: {missing}" if missing else ""
    return f"{line}. Not read: {refused}." if refused else f"{line}."


def _one_line(source: str) -> str:
    flat = " ".join(source.split())
    return flat if len(flat) <= 120 else f"{flat[:117]}..."


def text(content: str, style: str = "") -> Text:
    """Text that is neither markup nor commands for the terminal."""
    return Text(printable(content), style=style, overflow="fold")


def summary(verdicts: Sequence[Verdict]) -> str:
    """How many of each verdict.

    >>> summary([Verdict("a", "holds", "", ""), Verdict("b", "refuted", "", "", expect="refuted")])
    '1 holds, 1 refuted (1 as expected)'
    """
    parts = []
    for name in COLOURS:
        found = [verdict for verdict in verdicts if verdict.verdict == name]
        expected = sum(verdict.as_expected for verdict in found) if name != "holds" else 0
        parts += [f"{len(found)} {name}{f' ({expected} as expected)' if expected else ''}"] if found else []
    return ", ".join(parts)


def _add(console: Console, table: Table, line: str, cells: list[str | Text] | list[Text]) -> None:
    if console.is_terminal:
        table.add_row(*cells)
    else:
        print(printable(line))


def _cells(verdict: Verdict) -> list[Text]:
    """A row of the table; the statement as it was understood is shown where something is wrong."""
    detail = text(verdict.detail)
    if verdict.outcome != "passes" and verdict.statement:
        detail.append_text(Text("\n")).append_text(text(verdict.statement, "dim"))
    if verdict.expect and verdict.expect != "holds":
        detail.append("\nas expected" if verdict.as_expected else f"\nexpected: {verdict.expect}", "dim")
    colour = COLOURS[verdict.verdict]
    style = colour if verdict.outcome == "passes" else f"bold {colour}"
    return [text(f"{verdict.mark} {verdict.verdict}", style), text(verdict.id), detail, text(verdict.grade)]


def _row_cells(row: Row) -> list[str]:
    engines = dict.fromkeys(verdict.engine or "none" for verdict in row.verdicts)
    return [str(row.number), row.who, row.kind, ", ".join(engines), row.noticed or "-"]
