"""What verbs share: --json, examples under their help, functions and networks of a file, a progress bar."""

import importlib.util
import inspect
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from likewise.checks import refuse, require
from likewise.progress import Progress

if TYPE_CHECKING:
    from torch import nn
    from typer import Context

    from likewise.data import Examples, Preparation
else:
    Context = typer.Context.__base__  # what typer passes is no typer.Context but what that is made from

__all__ = ["Context", "Json", "examples", "function_of", "own_network", "progress_bar"]

PATIENCE = 2.0  # seconds of silence before a progress bar shows
Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]


def examples(*lines: str) -> str:
    """The end of a help page."""
    return "Examples:\n\n" + "\n\n".join(lines)


def function_of(text: str, where: str, name: str) -> Callable[..., Any]:
    """A function of a file, as `file.py:function`; the file is run for it, as the user asked, with all their rights."""
    file, _, function_name = text.rpartition(":")
    path = Path(file)
    require(path.is_file(), where, name, "be in a file that exists", repr(file))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    function = vars(module).get(function_name)
    if not inspect.isfunction(function):
        functions = ", ".join(n for n, value in vars(module).items() if inspect.isfunction(value)) or "none"
        refuse(where, name, f"name a function of {file}", repr(function_name), f"Its functions: {functions}.")
    return function


def own_network(text: str, where: str, some: "Examples") -> "tuple[nn.Module, Preparation]":
    """What `file.py:function` returns: a module, or one and how images are prepared for it, else as they are."""
    from torch import nn

    from likewise.data import Preparation

    made = function_of(text, where, "model")()
    rows, columns, channels = some.first().shape
    network, preparation = made if isinstance(made, tuple) else (made, Preparation((rows, columns), channels))
    right = isinstance(network, nn.Module)
    require(right, where, "model", "be a function that returns a torch.nn.Module", type(network).__name__)
    return network, preparation


@contextmanager
def progress_bar(*, shown: bool = True) -> Generator[Progress, None, None]:
    """Yield `progress(done, doing)`; work that takes longer than PATIENCE shows a bar, on stderr and in a terminal."""
    from rich.console import Console
    from rich.progress import Progress as Bar

    console = Console(stderr=True)
    bar = Bar(console=console, transient=True, disable=not (shown and console.is_terminal))
    task = bar.add_task("", total=1.0)
    late = threading.Timer(PATIENCE, bar.start)
    late.daemon = True
    late.start()
    try:
        yield lambda done, doing: bar.update(task, completed=done, description=doing)
    finally:
        late.cancel()
        late.join()  # or the bar could start after it was stopped
        bar.stop()
