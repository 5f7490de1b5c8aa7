"""`likewise check` and `likewise read`: claims and formulas of files; the exit code is the worst verdict."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from likewise.checks import refuse, require, require_package
from likewise.cli.terminal import Json, examples, progress_bar

if TYPE_CHECKING:
    from likewise.claims.stated import Stated
    from likewise.claims.verdict import Verdict
    from likewise.reading import Answer

LABELS = ("who", "noticed", "row", "note")
CHECK_EXAMPLES = examples(
    "likewise check answer.md",
    "likewise check docs/claims.md claims.yaml likewise.attention",
    "likewise check answer.md --annotate answer.html",
    "likewise check answers/ --strict",
    "likewise check conversation.json",
    "likewise check answer.md --sarif --budget 5s",
    "likewise check --catalogue",
)
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
    from likewise.claims.checking import check_claims
    from likewise.claims.documents import text_at
    from likewise.programs.rows import catalogue_claims

    text = text_at(files[0]) if annotate else ""
    answers: list[tuple[str, Answer]] = []
    if catalogue:
        stated = catalogue_claims()
    else:
        texts = {files[0]: text} if annotate else {}
        stated, answers = _claims_and_formulas(files, texts, formulas=read == "formulas")
    with progress_bar() as progress:
        verdicts = check_claims(stated, seed=seed, budget=seconds, allow_code=allow_code, progress=progress)
    if answers:
        from likewise.reading import check_answers
        from likewise.reading.answers import BUDGET

        with progress_bar() as progress:
            found = check_answers(
                [answer for _, answer in answers], seed=seed, budget=seconds or BUDGET, progress=progress
            )
        answers = [(file, answer) for (file, _), answer in zip(answers, found, strict=True)]
    if annotate is not None:
        from likewise.files import write_whole
        from likewise.review import page, review_of

        answer = answers[0][1] if answers else None
        name = Path(files[0]).name if files[0] != "-" else "answer"
        write_whole(annotate, page(review_of(text, stated, verdicts, name=name, answer=answer)))
    if as_json:
        print(json.dumps(_plain(stated, verdicts, catalogue, answers)))
    elif as_sarif:
        from likewise.claims.sarif import sarif

        pairs = [pair for file, answer in answers for pair in answer.as_claims(file)]
        print(json.dumps(sarif([*stated, *(one for one, _ in pairs)], [*verdicts, *(other for _, other in pairs)])))
    else:
        from likewise.cli.verdicts import show_answer, show_catalogue, show_totals, show_verdicts

        if stated:
            (show_catalogue if catalogue else show_verdicts)(stated, verdicts)
        for file, answer in answers:
            show_answer(file, answer)
        if len(answers) > 1:
            show_totals(answers)
    raise typer.Exit(_worst_code(verdicts, [answer for _, answer in answers], strict))


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


def _claims_and_formulas(
    files: list[str], texts: dict[str, str], *, formulas: bool
) -> "tuple[list[Stated], list[tuple[str, Answer]]]":
    """Claims of every file; formulas of texts that have no claim, or of all texts if they are asked for.

    texts: of files that were read already.
    """
    from likewise.claims.documents import claims_at, markdown_claims, text_at
    from likewise.claims.stated import or_nothing
    from likewise.reading.opening import TEXTS, files_of, opened

    stated: list[Stated] = []
    answers = []
    several = [str(path) for file in files for path in (files_of(Path(file)) if Path(file).is_dir() else [file])]
    for file in several:
        path = Path(file)
        talk = path.is_file() and path.suffix.lower() == ".json"
        if file != "-" and not talk and not (path.is_file() and path.suffix.lower() in TEXTS):
            stated += claims_at(file)
            continue
        text = texts[file] if file in texts else text_at(file)
        claims = [] if talk else markdown_claims(text, file=file)
        read = [(each.name, each.read()) for each in opened(path, text)] if formulas or not claims else []
        found = [(name, answer) for name, answer in read if answer.counts["statements"]]
        answers += found
        stated += claims if found else or_nothing(claims, file)
    return stated, answers


def _worst_code(verdicts: "Sequence[Verdict]", answers: "Sequence[Answer]", strict: bool) -> int:
    """The exit code of claims and formulas together."""
    from likewise.claims.verdict import OUTCOMES, worst

    found = [worst(verdicts)] if verdicts or not answers else []
    for answer in answers:
        counts = answer.counts
        if counts["refuted"]:
            found.append("fails")
        elif strict and counts["decided"] < counts["statements"]:
            found.append("open")
        else:
            found.append("passes")
    return CODES[min(found, key=OUTCOMES.index)]


CODES = {"passes": 0, "fails": 1, "malformed": 2, "open": 3}


def exit_code(verdicts: "Sequence[Verdict]") -> int:
    """0 all pass, 1 some fail, 2 some are malformed, 3 some stay open or there are none."""
    from likewise.claims.verdict import worst

    return CODES[worst(verdicts)]


def _require_options(
    files: list[str], *, as_json: bool, as_sarif: bool, annotate: Path | None, catalogue: bool
) -> None:
    require(not (as_json and as_sarif), "check", "the output", "be one of --json and --sarif", "both")
    require(bool(files) != catalogue, "check", "files", "be given, or else --catalogue", "both" if files else "neither")
    if annotate is not None:
        from likewise.files import require_place

        one = len(files) == 1 and (files[0] == "-" or Path(files[0]).suffix.lower() in (".md", ".markdown"))
        require(one, "check", "--annotate", "have one Markdown file", " ".join(files) or "none")
        require_package("check --annotate", "latex2mathml", "jinja2")
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


def _plain(
    stated: "list[Stated]", verdicts: "list[Verdict]", catalogue: bool, answers: "list[tuple[str, Answer]]"
) -> Any:
    from likewise.claims.verdict import SCHEMA, worst
    from likewise.review.reviewing import totals

    listed = [
        {**verdict.to_json(), "file": claim.file, **{name: claim.labels.get(name, "") for name in LABELS}}
        for claim, verdict in zip(stated, verdicts, strict=True)
    ]
    counted = totals(stated, verdicts)
    plain = {"schema": SCHEMA, "outcome": worst(verdicts), "verdicts": listed, "claims": counted}
    if answers:
        plain["answers"] = [{"file": file, **answer.to_json()} for file, answer in answers]
        if any(answer.counts["refuted"] for _, answer in answers):
            plain["outcome"] = worst(verdicts) if worst(verdicts) == "malformed" else "fails"
        elif not verdicts:
            plain["outcome"] = "passes"
    from likewise.programs import rows

    found = rows.rows(stated, verdicts)
    if not found:
        return plain
    summed = rows.totals(found)
    if not catalogue:
        del summed["listed"]
    return {**plain, "totals": summed, "rows": [row.to_json() for row in found]}
