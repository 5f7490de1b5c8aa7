"""The `likewise` command: verbs that make one library call each and show its result.

Nothing heavy is imported until a verb needs it, so that help answers at once. Exit codes: 0 done, 1 the work failed, 2
wrong usage.
"""

import json
import sys
import warnings
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, NoReturn, TextIO

import typer

import likewise
from likewise.checks import EXTRAS, MissingPackage
from likewise.cli.about import ABOUT_EXAMPLES, about
from likewise.cli.attention import attention_app
from likewise.cli.check import CHECK_EXAMPLES, READ_EXAMPLES, check, read
from likewise.cli.cost import COST_EXAMPLES, COST_SETTINGS, show_cost
from likewise.cli.depth import DEPTH_EXAMPLES, depth
from likewise.cli.evaluate import EVALUATE_EXAMPLES, evaluate, small_evaluation
from likewise.cli.exits import EXITS_EXAMPLES, exits
from likewise.cli.gallery import (
    CALIBRATE_EXAMPLES,
    EMBED_EXAMPLES,
    ENROL_EXAMPLES,
    FORGET_EXAMPLES,
    IDENTIFY_EXAMPLES,
    UPGRADE_EXAMPLES,
    VERIFY_EXAMPLES,
    calibrate,
    embed,
    enrol,
    forget,
    identify,
    upgrade,
    verify,
)
from likewise.cli.grade import GRADE_EXAMPLES, grade
from likewise.cli.mcp import MCP_EXAMPLES, mcp
from likewise.cli.review import REVIEW_EXAMPLES, review
from likewise.cli.serve import SERVE_EXAMPLES, serve
from likewise.cli.terminal import Json, examples, progress_bar, small_images, verb
from likewise.cli.train import TRAIN_EXAMPLES, small_training, train

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    epilog=examples(
        "likewise tour",
        "likewise attention --features elu --causal",
        "likewise attention diagnose layer.safetensors --causal",
        "likewise cost mqa_step --b 8 --n 4096 --h 16 --k 64 --d 1024",
        "likewise check answer.md --annotate answer.html",
    ),
)


def main(arguments: list[str] | None = None) -> None:
    """Run one verb and exit with its code; a wrong argument is one line, not a traceback, and so is a warning."""
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _show_warning  # ty: ignore[invalid-assignment]
            app(arguments, prog_name="likewise")
    except ValueError as error:
        _exit(2, error)
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package not in EXTRAS:
            raise
        if EXTRAS[package][1] == "torch" and find_spec("torch") is None:
            package = "torch"  # the one that people know, whatever was asked for first
        elif isinstance(error, MissingPackage):
            _exit(1, error)
        verb = (sys.argv[1:] if arguments is None else arguments)[0]
        _exit(1, MissingPackage(verb, package))
    except OSError as error:
        _exit(1, error)


@app.callback(invoke_without_command=True)
def version(show: Annotated[bool, typer.Option("--version", help="Print the version.")] = False) -> None:
    """Similarity in deep learning: attention, embeddings and neighbours, computed in ways that agree."""
    if show:
        print(likewise.__version__)
        raise typer.Exit


def tour(
    out: Annotated[Path, typer.Option(help="Where to write the page.")] = Path("likewise-report.html"),
    as_json: Json = False,
) -> None:
    """Run every method on data that needs no download, and write one HTML page."""
    from likewise.tour import write_tour

    with progress_bar() as progress:
        write_tour(out, progress)
    print(json.dumps({"report": str(out)}) if as_json else f"The report is {out}")


app.command(epilog=examples("likewise tour", "likewise tour --out tour.html --open"))(verb(tour, page="out"))
app.add_typer(attention_app, name="attention")
app.command(epilog=ABOUT_EXAMPLES)(about)
app.command(epilog=CHECK_EXAMPLES)(verb(check, page="annotate"))
app.command(epilog=READ_EXAMPLES)(verb(read))
app.command(epilog=REVIEW_EXAMPLES)(verb(review))
app.command(epilog=GRADE_EXAMPLES)(verb(grade))
app.command(epilog=TRAIN_EXAMPLES)(verb(train, small=small_training))
app.command(epilog=EVALUATE_EXAMPLES)(verb(evaluate, page="out", small=small_evaluation))
app.command(epilog=EMBED_EXAMPLES)(verb(embed))
app.command(epilog=ENROL_EXAMPLES)(verb(enrol))
app.command(epilog=VERIFY_EXAMPLES)(verb(verify))
app.command(epilog=IDENTIFY_EXAMPLES)(verb(identify, page="out"))
app.command(epilog=FORGET_EXAMPLES)(verb(forget))
app.command(epilog=CALIBRATE_EXAMPLES)(verb(calibrate, page="out"))
app.command(epilog=UPGRADE_EXAMPLES)(verb(upgrade))
app.command(epilog=DEPTH_EXAMPLES)(verb(depth, page="out", small=small_images))
app.command(epilog=EXITS_EXAMPLES)(verb(exits, page="out", small=small_images))
app.command("cost", context_settings=COST_SETTINGS, epilog=COST_EXAMPLES)(verb(show_cost))
app.command(epilog=SERVE_EXAMPLES)(serve)
app.command(epilog=MCP_EXAMPLES)(mcp)


def _show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    print(f"likewise: {message}", file=sys.stderr)


def _exit(code: int, message: object) -> NoReturn:
    print(f"likewise: {message}", file=sys.stderr)
    sys.exit(code)
