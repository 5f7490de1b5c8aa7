"""`likewise check` and `likewise read`: claims and formulas of files; the exit code is the worst verdict."""

import json
from pathlib import Path
from typing import Annotated, Literal

import typer

from likewise.checks import refuse, require, require_package
from likewise.cli.terminal import Json, examples, progress_bar

CHECK_EXAMPLES = examples(
    "likewise check answer.md",
    "likewise check docs/claims.md claims.yaml likewise.attention",
    "likewise check answer.md --annotate answer.html",
    "likewise check answers/ --strict",
    "likewise check conversation.json",
    "likewise check answer.md --sarif --budget 5s",
    "likewise check --catalogue",
)
CODES = {"passes": 0, "fails": 1, "malformed": 2, "open": 3}
READ_EXAMPLES = examples("likewise read answer.md", "likewise read conversation.json --json")


def check(
    files: Annotated[
        list[str],
        typer.Argument(
            default_factory=list,
            metavar="FILES",
            show_default=False,
            help="Markdown, text, conversation (JSON), YAML or Python files, folders, modules, or - for stdin.",
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
    read: Annotated[
        Literal["formulas"] | None, typer.Option(help="Read formulas also where a file has claim fences.")
    ] = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Exit with 3 if a formula is undecided or not read.")
    ] = False,
) -> None:
    """Check the claims of files: holds, refuted with a counterexample, inconclusive with the reason, or malformed.

    A text without claim fences is read for its formulas, as people write them in Markdown and LaTeX.

    Exit code 0: all hold, or are as expected; 1: some refuted or not as expected; 2: wrong usage, or a malformed claim;
    3: some inconclusive, or nothing to check. Malformed counts before refuted, refuted before inconclusive. A formula
    that is undecided or not read gives 3 only with --strict.
    """
    _require_options(files, as_json=as_json, as_sarif=as_sarif, annotate=annotate, catalogue=catalogue)
    seconds = _seconds(budget)
    from likewise.programs.jobs import CheckJob, run_check_job

    job = CheckJob(
        files=tuple(files),
        catalogue=catalogue,
        formulas=read == "formulas",
        annotate=annotate,
        seed=seed,
        budget=seconds,
        allow_code=allow_code,
    )
    with progress_bar() as progress:
        found = run_check_job(job, progress=progress)
    if as_json:
        print(json.dumps(found.to_json()))
    elif as_sarif:
        print(json.dumps(found.to_sarif()))
    else:
        from likewise.cli.verdicts import show_checked

        show_checked(found)
    raise typer.Exit(CODES[found.outcome(strict=strict)])


def read(
    file: Annotated[str, typer.Argument(metavar="FILE", help="Markdown or text, or - for standard input.")],
    as_json: Json = False,
) -> None:
    """Read the formulas of an answer as claims, with the lines that bind each name, and check nothing."""
    from likewise.claims.documents import text_at
    from likewise.cli.verdicts import show_readings
    from likewise.reading.opening import opened

    found = [(each.name, each.read()) for each in opened(Path(file), text_at(file))]
    if as_json:
        plain = [answer.to_json() for _, answer in found]
        print(json.dumps(plain[0] if len(plain) == 1 else plain))
    else:
        for name, answer in found:
            show_readings(name, answer)


def _require_options(
    files: list[str], *, as_json: bool, as_sarif: bool, annotate: Path | None, catalogue: bool
) -> None:
    require(not (as_json and as_sarif), "check", "the output", "be one of --json and --sarif", "both")
    require(bool(files) != catalogue, "check", "files", "be given, or else --catalogue", "both" if files else "neither")
    if annotate is not None:
        one = len(files) == 1 and (files[0] == "-" or Path(files[0]).suffix.lower() in (".md", ".markdown"))
        require(one, "check", "--annotate", "have one Markdown file", " ".join(files) or "none")
        require_package("check --annotate", "latex2mathml", "jinja2")


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
