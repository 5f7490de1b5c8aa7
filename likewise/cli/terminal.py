"""What verbs share: options, examples under their help, progress."""

import functools
import inspect
import os
import sys
import threading
import time
import webbrowser
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from likewise.checks import require
from likewise.progress import Progress

if TYPE_CHECKING:
    from typer import Context
else:
    Context = typer.Context.__base__  # what typer passes is no typer.Context but what that is made from

__all__ = ["Context", "Json", "examples", "progress_bar", "verb"]

PATIENCE = 2.0  # seconds of silence before a progress bar shows
BETWEEN_LINES = 15.0  # seconds between lines of progress where there is no terminal
LONG, IDLE = 20.0, 0.5  # seconds of work, and the share of CPU time below which it was held up
Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]


Threads = Annotated[
    int | None,
    typer.Option(min=1, envvar="LIKEWISE_THREADS", help="Threads of torch; one for small images unless given."),
]
Quiet = Annotated[bool, typer.Option("--quiet", help="Print errors and warnings only; with --json the result, too.")]
Open = Annotated[bool, typer.Option("--open", help="Open the page in a browser.")]


def examples(*lines: str) -> str:
    """The end of a help page."""
    return "Examples:\n\n" + "\n\n".join(lines)


def verb(
    function: Callable[..., None], *, page: str | None = None, small: Callable[..., bool] | None = None
) -> Callable[..., None]:
    """A command with the options that all of them have: --threads, --quiet and, where it writes a page, --open.

    page: the parameter that says where the page is written. small: whether work with these options is so small that
    more than one thread would only wait for each other.
    """

    @functools.wraps(function)
    def run(threads: int | None, quiet: bool, **options: Any) -> None:
        opens = options.pop("open_page", False)
        place = options.get(page) if page else None
        require(not opens or place is not None, run.__name__, "--open", f"go with --{page}", "no page")
        if threads is None and "OMP_NUM_THREADS" not in os.environ and small and small(options):
            threads = 1
        machine = options.get("as_json") or options.get("as_sarif")
        with ExitStack() as stack:
            if quiet:
                stack.enter_context(_silence())
            if quiet and not machine:
                stack.enter_context(redirect_stdout(stack.enter_context(Path(os.devnull).open("w"))))
            stack.enter_context(_threads(threads))
            stack.enter_context(_hint_if_held_up())
            try:
                function(**options)
            finally:
                if opens and place is not None and Path(place).is_file():
                    webbrowser.open(Path(place).resolve().as_uri())

    added: dict[str, tuple[Any, Any]] = {"threads": (Threads, None), "quiet": (Quiet, False)}
    if page:
        added["open_page"] = (Open, False)
    own = inspect.signature(function)
    parameters = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind)
        for name, (kind, default) in added.items()
    ]
    vars(run)["__signature__"] = own.replace(parameters=[*own.parameters.values(), *parameters])
    run.__annotations__ = {**function.__annotations__, **{name: kind for name, (kind, _) in added.items()}}
    return run


_quiet = False


@contextmanager
def _silence() -> Generator[None]:
    """No progress and no hints."""
    global _quiet
    before, _quiet = _quiet, True
    try:
        yield
    finally:
        _quiet = before


@contextmanager
def _threads(count: int | None) -> Generator[None]:
    """So many threads for torch, in this process and in those it starts; as it was, without a number."""
    if count is None:
        yield
        return
    before = os.environ.get("OMP_NUM_THREADS")
    os.environ["OMP_NUM_THREADS"] = str(count)  # which torch reads when it is imported
    torch = sys.modules.get("torch")
    was = torch.get_num_threads() if torch else None
    if torch:
        torch.set_num_threads(count)
    try:
        yield
    finally:
        if before is None:
            del os.environ["OMP_NUM_THREADS"]
        else:
            os.environ["OMP_NUM_THREADS"] = before
        if torch and was:
            torch.set_num_threads(was)


@contextmanager
def _hint_if_held_up() -> Generator[None]:
    """Say so at the end if the clock ran far ahead of the CPU time."""
    clock, cpu = time.perf_counter(), _cpu_seconds()
    try:
        yield
    finally:
        torch = sys.modules.get("torch")
        threads = torch.get_num_threads() if torch else 1
        hint = held_up(time.perf_counter() - clock, _cpu_seconds() - cpu, threads)
        if hint and not _quiet:
            print(f"likewise: {hint}", file=sys.stderr)


def _cpu_seconds() -> float:
    return sum(os.times()[:4])  # of this process and of those that it started and that have ended


def held_up(clock: float, cpu: float, threads: int) -> str | None:
    """What to say of work that waited for the machine.

    >>> held_up(290.0, 120.0, 2)
    '290 s by the clock, 120 s of CPU time on 2 threads: the machine was busy, or threads idle; try --threads 1.'
    """
    if clock < LONG or cpu >= IDLE * clock * threads:
        return None
    spent = f"{clock:.0f} s by the clock, {cpu:.0f} s of CPU time on {threads} thread{'s' * (threads > 1)}"
    reason = ", or threads idle; try --threads 1" if threads > 1 else " or slow to read files"
    return f"{spent}: the machine was busy{reason}."


def small_images(options: dict[str, Any]) -> bool:
    """Whether the data of a command is images that are small by their layout: digits, idx, CIFAR-10."""
    from likewise.data.opening import has_halves

    data = options["data"]
    return (data == "digits" and not Path(data).exists()) or has_halves(Path(data))


@contextmanager
def progress_bar(*, shown: bool = True) -> Generator[Progress, None, None]:
    """Yield `progress(done, doing)`; work that takes longer than PATIENCE shows a bar on stderr.

    Where that is no terminal, such as in a pipe, there is a line every BETWEEN_LINES seconds instead.
    """
    from rich.console import Console
    from rich.progress import Progress as Bar

    console = Console(stderr=True)
    shown = shown and not _quiet
    bar = Bar(console=console, transient=True, disable=not (shown and console.is_terminal))
    task = bar.add_task("", total=1.0)
    late = threading.Timer(PATIENCE, bar.start)
    late.daemon = True
    late.start()
    last = time.monotonic()

    def progress(done: float, doing: str) -> None:
        nonlocal last
        bar.update(task, completed=done, description=doing)
        if shown and not console.is_terminal and time.monotonic() - last >= BETWEEN_LINES:
            last = time.monotonic()
            print(f"likewise: {done:.0%}, {doing}", file=sys.stderr, flush=True)

    try:
        yield progress
    finally:
        late.cancel()
        late.join()  # or the bar could start after it was stopped
        bar.stop()
