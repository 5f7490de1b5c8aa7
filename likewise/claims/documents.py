"""Claims as they stand in files: fences in Markdown and in docstrings, lists in YAML. Nothing is imported or run."""

import ast
import re
import sys
import textwrap
import warnings
from collections.abc import Iterator
from importlib.machinery import PathFinder
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from likewise.checks import refuse, require
from likewise.claims.language.limits import DOCUMENT
from likewise.claims.stated import ClaimSource, Entry, Misread, Span, or_nothing, stated

if TYPE_CHECKING:
    from markdown_it import MarkdownIt

CLAIM = re.compile(r"claim\b", re.IGNORECASE)  # also what nearly is one: a typo must not leave a claim unchecked
LINE_END = re.compile(r"\r\n?|\n")


def markdown_parser() -> "MarkdownIt":
    """CommonMark and tables, where HTML is text; it finds claims and draws pages, so both see the same fences."""
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark", {"html": False}).enable("table")


def markdown_claims(text: str, *, file: str = "") -> list[ClaimSource]:
    r"""The fences whose info string is `claim <id>`, also in lists and quotations.

    >>> markdown_claims("So:\n\n- one\n\n  ```claim half\n  assert: 1/2 == 0.5\n  ```\n")
    [ClaimSource(id='half', text='assert: 1/2 == 0.5\n', line=5, file='', error='')]
    """
    return stated(_fences, text, file)


def yaml_claims(text: str, *, file: str = "") -> list[ClaimSource]:
    """The list `claims:` of a YAML file; keys are the fields of a fence, `id`, and `define` for definitions."""
    from likewise.claims.yaml_entries import entries  # PyYAML takes as long to load as a claim to check

    return stated(entries, text, file)


def python_claims(text: str, *, file: str = "") -> list[ClaimSource]:
    """The claim fences in the docstrings of a source, which is parsed and never run."""
    return stated(_docstring_fences, text, file)


def module_claims(name: str) -> list[ClaimSource]:
    """The claims in the docstrings of a module, or of all modules of a package, found without importing them."""
    path = _module_path(name)
    files = sorted(path.rglob("*.py")) if path.is_dir() else [path]
    return [claim for file in files for claim in file_claims(file)]


def file_claims(path: Path) -> list[ClaimSource]:
    """The claims of one file, read as what its name ends in."""
    require_regular(path)
    reader = READERS.get(path.suffix.lower())
    if reader is None:
        refuse("check", "file", f"end in {', '.join(READERS)}", path)
    with path.open("rb") as file:
        return reader(text_of(file, str(path)), file=str(path))


def require_regular(path: Path) -> None:
    """Refuse what is there and no file: a folder has no text, and a pipe or a device may never end."""
    require(not path.is_dir(), "check", "file", "be a file or the name of a module", f"the folder {path}")
    hint = f"Redirect it: likewise check - < {path}"
    require(path.is_file(), "check", "file", "be a regular file", f"a pipe or a device, {path}", hint)


def text_of(file: BinaryIO, name: str) -> str:
    """The text of a file, or as much of it as makes it too long for all readers."""
    try:
        return file.read(4 * DOCUMENT + 4).decode("utf-8-sig")
    except UnicodeDecodeError:
        refuse("check", "file", "be text in UTF-8", name)


READERS = {
    ".md": markdown_claims,
    ".markdown": markdown_claims,
    ".txt": markdown_claims,
    ".yaml": yaml_claims,
    ".yml": yaml_claims,
    ".py": python_claims,
}


def text_at(name: str) -> str:
    """The text of a file, or of standard input for "-"."""
    if name == "-":
        return text_of(sys.stdin.buffer, "stdin")
    require(Path(name).exists(), "check", "file", "exist", name)
    require_regular(Path(name))
    with Path(name).open("rb") as file:
        return text_of(file, name)


def claims_at(name: str) -> list[ClaimSource]:
    """The claims of the file of that name, of Markdown on standard input for "-", or else of the module.

    If there is none, one that says so.
    """
    if name == "-":
        return or_nothing(markdown_claims(text_at(name), file=name), name)
    path = Path(name)
    return or_nothing(file_claims(path) if path.exists() else module_claims(name), name)


def _fences(text: str) -> Iterator[Entry]:
    return _fences_in(text, LINE_END.split(text), 0)


def _fences_in(text: str, written: list[str], before: int) -> Iterator[Entry]:
    """The fences of a text that stands in a file of these lines, with so many of them before it."""
    blocks = markdown_parser().disable("inline").parse(text)
    for fence in blocks:
        if fence.type != "fence" or not CLAIM.match(fence.info.strip()):
            continue
        word, _, id = fence.info.strip().partition(" ")
        line = before + (fence.map[0] + 1 if fence.map else 1)
        error = "" if word == "claim" else f"a claim's fence begins with 'claim <id>'; got {fence.info.strip()[:80]!r}"
        spans = tuple(_span(number, content, line, written) for number, content in _numbered(fence.content))
        yield Entry(line, id.strip() if word == "claim" else "", fence.content, error, spans=spans)


def _numbered(text: str) -> Iterator[tuple[int, str]]:
    return enumerate(text.splitlines(), start=1)


def _span(number: int, content: str, fence: int, written: list[str]) -> Span:
    """Where a line of a fence stands: in its file a list, a quotation or a docstring may have indented it."""
    line = written[fence + number - 1] if fence + number <= len(written) else ""
    return Span(number, 1, fence + number, len(line) - len(content) + 1 if line.endswith(content) else 1)


def _docstring_fences(text: str) -> Iterator[Entry]:
    try:
        with warnings.catch_warnings(action="ignore"):  # of escapes in strings that are none of our business
            tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        place = (getattr(error, "lineno", None) or 1, getattr(error, "offset", None) or 1)
        raise Misread(f"no Python: {error}", *place) from None
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    docstrings = [
        (node.body[0].lineno, docstring)
        for node in ast.walk(tree)
        if isinstance(node, documented)
        if (docstring := ast.get_docstring(node, clean=False)) is not None
    ]
    for start, docstring in sorted(docstrings):
        first, _, rest = docstring.partition("\n")
        yield from _fences_in(f"{first.strip()}\n{textwrap.dedent(rest)}", LINE_END.split(text), start - 1)


def _module_path(name: str) -> Path:
    """The file or folder of a module. Python's own search would import every package on the way."""
    first, *rest = name.split(".")
    spec = None
    if all(part.isidentifier() for part in (first, *rest)):
        spec = PathFinder.find_spec(first, [str(Path.cwd()), *sys.path]) or find_spec(first)
        for part in rest:
            places = spec.submodule_search_locations if spec else None
            spec = PathFinder.find_spec(part, places) if places else None
    if spec is not None and spec.submodule_search_locations:
        return Path(next(iter(spec.submodule_search_locations)))
    if spec is None or not spec.origin or not spec.origin.endswith(".py"):
        refuse("check", "file", "exist, or be the name of a module with a source", name)
    return Path(spec.origin)
