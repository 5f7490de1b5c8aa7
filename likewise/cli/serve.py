"""`likewise serve`: a gallery as a service on this machine."""

import os
from pathlib import Path
from typing import Annotated

import typer

from likewise.checks import require, require_package
from likewise.cli.terminal import examples

SERVE_EXAMPLES = examples(
    "likewise serve people.db --model model.safetensors",
    "likewise serve postgresql://host/database#people --approximate --tokens tokens.txt",
)


def serve(
    gallery: Annotated[str, typer.Argument(metavar="GALLERY", help="A file, or postgresql://host/database#name.")],
    model: Annotated[
        str | None, typer.Option("--model", help="A network of likewise train, or file.py:function; none for vectors.")
    ] = None,
    faces: Annotated[
        str | None, typer.Option("--faces", help="Cut out the largest face first: centre, dlib, or file.py:function.")
    ] = None,
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 for any that is free.")] = 8766,
    tokens: Annotated[
        Path | None, typer.Option(help="Further clients: a file with a name and a token in each line.")
    ] = None,
    rate: Annotated[float, typer.Option(min=0.1, help="Requests a second, of each token.")] = 2000.0,
    approximate: Annotated[bool, typer.Option("--approximate", help="Search by the index of a server.")] = False,
    audit: Annotated[Path, typer.Option(help="Where to note who enrolled and forgot whom.")] = Path("audit.jsonl"),
) -> None:
    """Serve a gallery on 127.0.0.1: an HTTP API and a page, with a token that is printed."""
    require_package("serve", "fastapi", "uvicorn", "jinja2", "torch")
    # Search has one worker; more threads of numpy's products than that only stand in its way.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from likewise.gallery import Gallery
    from likewise.gallery.jobs import open_model
    from likewise.web.running import read_tokens, run

    require("://" in gallery or Path(gallery).is_file(), "serve", "gallery", "be a file or a URL", repr(gallery))
    others = read_tokens(tokens) if tokens is not None else {}
    search = "approximate" if approximate else "exact"
    require(model is not None or faces is None, "serve", "--faces", "go with --model, which takes images", faces)
    with Gallery.open(gallery, open_model(model, faces) if model else None, search=search) as opened:
        run(opened, port=port, others=others, rate=rate, audit=audit)
