"""`likewise check`: the claims of files, each with its verdict; the exit code says whether all are as expected."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from likewise.checks import refuse, require, require_package
from likewise.cli.terminal import Json, examples, progress_bar

if TYPE_CHECKING:
    from likewise.claims.stated import Stated
    from likewise.claims.verdict import Verdict

CHECK_EXAMPLES = examples(
    "likewise check answer.md",
    "likewise check docs/claims.md claims.yaml likewise.attention",
    "likewise check answer.md --annotate answer.html",
    "likewise check answer.md --sarif --budget 5s",
    "likewise check --catalogue",
)


def check(
    files: Annotated[
        list[str],
        typer.Argument(
            default_factory=list,
            metavar="FILES",
            show_default=False,
            help="Markdown, YAML or Python files, names of modules, or - for Markdown on stdin.",
        ),
    ],
    as_json: Json = False,
    as_sarif: Annotated[bool, typer.Option("--sarif", help="Print SARIF 2.1.0, for editors and code hosts.")] = False,
    allow_code: Annotated[bool, typer.Option("--allow-code", help="Let claims run code of yours, confined.")] = False,
    seed: Annotated[int, typer.Option(min=0, help="Seed of what is sampled.")] = 0,
    budget: Annotated[str | None, typer.Option(metavar="SECONDS", help="At most so long for a claim: 5s.")] = None,
    annotate: Annotated[
        Path | None, typer.Option(metavar="PAGE", help="Write the file as HTML, with verdicts.")
    ] = None,
    catalogue: Annotated[bool, typer.Option("--catalogue", help="Check 188 statements of five transcripts.")] = False,
) -> None:
    """Check the claims of files: holds, refuted with a counterexample, inconclusive with the reason, or malformed.

    Exit code 0: all hold, or are as expected; 1: some refuted or not as expected; 2: wrong usage, or a malformed claim;
    3: some inconclusive, or nothing to check. Malformed counts before refuted, refuted before inconclusive.
    """
    _require_options(files, as_json=as_json, as_sarif=as_sarif, annotate=annotate, catalogue=catalogue)
    seconds = _seconds(budget)
    from likewise.claims.checking import check_claims
    from likewise.claims.documents import claims_at, markdown_claims, text_at
    from likewise.claims.stated import or_nothing
    from likewise.programs.rows import catalogue_claims

    text = text_at(files[0]) if annotate else ""
    if annotate:
        stated = or_nothing(markdown_claims(text, file=files[0]), files[0])
    else:
        stated = catalogue_claims() if catalogue else [claim for file in files for claim in claims_at(file)]
    with progress_bar() as progress:
        verdicts = check_claims(stated, seed=seed, budget=seconds, allow_code=allow_code, progress=progress)
    if annotate is not None:
        from likewise.files import write_whole
        from likewise.review import annotated

        write_whole(annotate, annotated(text, stated, verdicts, title=Path(files[0]).name))
    if as_json:
        print(json.dumps(_plain(stated, verdicts, catalogue)))
    elif as_sarif:
        from likewise.claims.sarif import sarif

        print(json.dumps(sarif(stated, verdicts)))
    else:
        from likewise.cli.verdicts import show_catalogue, show_verdicts

        (show_catalogue if catalogue else show_verdicts)(stated, verdicts)
    raise typer.Exit(exit_code(verdicts))


def exit_code(verdicts: "Sequence[Verdict]") -> int:
    """0 all pass, 1 some fail, 2 some are malformed, 3 some stay open or there are none."""
    from likewise.claims.verdict import worst

    return {"passes": 0, "fails": 1, "malformed": 2, "open": 3}[worst(verdicts)]


def _require_options(
    files: list[str], *, as_json: bool, as_sarif: bool, annotate: Path | None, catalogue: bool
) -> None:
    require(not (as_json and as_sarif), "check", "the output", "be one of --json and --sarif", "both")
    require(bool(files) != catalogue, "check", "files", "be given, or else --catalogue", "both" if files else "neither")
    if annotate is not None:
        from likewise.files import require_place

        one = len(files) == 1 and (files[0] == "-" or Path(files[0]).suffix.lower() in (".md", ".markdown"))
        require(one, "check", "--annotate", "have one Markdown file", " ".join(files) or "none")
        require_package("check --annotate", "jinja2")
        require_place("check --annotate", annotate)


def _seconds(budget: str | None) -> float | None:
    if budget is None:
        return None
    try:
        seconds = float(budget.removesuffix("s"))
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < float("inf"):
        refuse("check", "--budget", "be seconds above 0, as in 5s", budget)
    return seconds


def _plain(stated: "list[Stated]", verdicts: "list[Verdict]", catalogue: bool) -> Any:
    from likewise.claims.verdict import SCHEMA, worst

    listed = [{**verdict.to_json(), "file": claim.file} for claim, verdict in zip(stated, verdicts, strict=True)]
    plain = {"schema": SCHEMA, "outcome": worst(verdicts), "verdicts": listed}
    if not catalogue:
        return plain
    from likewise.programs.rows import rows, totals

    found = rows(stated, verdicts)
    return {**plain, "totals": totals(found), "rows": [row.to_json() for row in found]}
