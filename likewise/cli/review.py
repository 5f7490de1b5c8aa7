"""`likewise review`: an answer with what running it says beside each statement, and the reader's marks."""

import json
import sys
import webbrowser
from pathlib import Path
from typing import Annotated

import typer

from likewise.checks import require, require_package
from likewise.cli.terminal import Json, examples, progress_bar
from likewise.text import printable

REVIEW_EXAMPLES = examples(
    "likewise review answer.md --out review.html --open",
    "likewise review answer.md --serve --open",
    "likewise review answer.md --json",
    "likewise review answer.md --export marks.md",
    "likewise review answers/ --out reviews/",
)


def review(
    answer: Annotated[
        Path,
        typer.Argument(
            metavar="ANSWER",
            help="A Markdown file, an exported conversation (.json; talks.json#3 of several), or a folder.",
        ),
    ],
    out: Annotated[
        Path | None, typer.Option(metavar="PAGE", help="Write the page to this file; for a folder, pages and tables.")
    ] = None,
    serve: Annotated[
        bool,
        typer.Option("--serve", help="Serve the page on 127.0.0.1; marks and corrected readings are saved at once."),
    ] = False,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port of --serve; 0 for any that is free.")] = 0,
    show: Annotated[bool, typer.Option("--open", help="Open the page in a browser.")] = False,
    marks: Annotated[Path | None, typer.Option(help="File of the marks; answer.marks.json unless given.")] = None,
    take: Annotated[
        Path | None, typer.Option("--import", metavar="MARKS", help="Add marks of a .json, .jsonl or .md file.")
    ] = None,
    export: Annotated[Path | None, typer.Option(metavar="MARKS", help="Write marks as .md, .jsonl or .json.")] = None,
    as_json: Json = False,
) -> None:
    """Review an answer: every statement with its verdict, the reader's marks, and where the two differ.

    A doubt of the user is shown with the replies before and after it. rubric.yaml beside the answer gives its parts and
    points. A folder, or an export of several conversations, gives an index page, a card for each assistant, and tables.

    Exit code 0: nothing refuted; 1: something is refuted; 2: wrong usage or a malformed claim.
    """
    answer, conversation = _place(answer)
    if answer.is_dir() or (not conversation and _has_several(answer)):
        alone = not (serve or marks or take or export)
        rule = "go with --out, --open and --json only" + ("" if answer.is_dir() else f", or be named: {answer.name}#1")
        require(alone, "review", "a folder" if answer.is_dir() else "an export of several conversations", rule, answer)
        _review_folder(answer, out, show=show, as_json=as_json)
        return
    require(
        answer.suffix.lower() in (".md", ".markdown", ".txt", ".json"),
        "review",
        "answer",
        "end in .md, .markdown, .txt, or .json for an exported conversation",
        answer,
    )
    require(not show or serve or out is not None, "review", "--open", "go with --out or --serve", "no page")
    if serve or out is not None:
        require_package("review", "latex2mathml", "jinja2")
    from likewise.files import require_place, write_whole

    for place in (out, export):
        if place is not None:
            require_place("review", place)
    from likewise.review import MarkFile, page, review_file, serve_review, text
    from likewise.review.marks import import_marks, marks_beside
    from likewise.review.readings import readings_beside
    from likewise.review.reviewing import export_marks

    number = conversation if _has_several(answer) else 0
    file = MarkFile(marks or marks_beside(answer, number))
    if take is not None:
        for left in file.add(import_marks(take)):
            print(f"likewise: line {left.line} has a mark already; the imported one was left out", file=sys.stderr)
    with progress_bar() as progress:
        found = review_file(answer, marks=file.path, conversation=conversation, progress=progress)
    if out is not None:
        write_whole(out, page(found))
    if export is not None:
        write_whole(export, export_marks(found, export.suffix))
    if as_json:
        print(json.dumps(found.to_json()))
    else:
        print(text(found))
    if out is not None and show and not serve:
        webbrowser.open(out.resolve().as_uri())
    if serve:
        server = serve_review(found, file.path, readings=readings_beside(answer, number), port=port)
        print(f"likewise: serving {server.address} (Ctrl-C ends it)", file=sys.stderr, flush=True)
        if show:
            webbrowser.open(server.address)
        server.run()
    from likewise.claims.verdict import worst

    outcome = worst([each.verdict for each in found.statements if each.verdict])
    raise typer.Exit({"malformed": 2, "fails": 1}.get(outcome, 0))


def _place(answer: Path) -> tuple[Path, int]:
    """The file and the number of a conversation of it: `talks.json#3` is the third, 0 the only one."""
    name, _, number = answer.name.rpartition("#")
    if not name.lower().endswith(".json") or not number.isdecimal() or answer.exists():
        return answer, 0
    return answer.with_name(name), int(number)


def _has_several(answer: Path) -> bool:
    """True for an exported file with several conversations."""
    from likewise.claims.documents import text_at
    from likewise.reading.opening import opened

    return answer.suffix.lower() == ".json" and len(opened(answer, text_at(str(answer)))) > 1


def _review_folder(folder: Path, out: Path | None, *, show: bool, as_json: bool) -> None:
    require(out is not None or as_json, "review", "--out", "name a folder for the pages", "none")
    require(out is None or not out.is_file(), "review", "--out", "be a folder", out)
    require(not show or out is not None, "review", "--open", "go with --out", "no page")
    require_package("review", "latex2mathml", "jinja2")
    from likewise.files import write_whole
    from likewise.review import pages_of, review_folder

    with progress_bar() as progress:
        found = review_folder(folder, progress=progress)
    data = json.dumps(found.to_json())
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        for name, content in {**pages_of(found), "reviews.json": data}.items():
            write_whole(out / name, content)
        if show:
            webbrowser.open((out / "index.html").resolve().as_uri())
    if as_json:
        print(data)
    else:
        for card in found.cards:
            print(printable(f"{card.assistant}: right at first {card.right}; noticed {card.noticed}"))
    raise typer.Exit(1 if any(entry.review.summary.whole.refuted for entry in found.entries) else 0)
