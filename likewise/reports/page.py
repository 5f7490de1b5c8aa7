"""One self-contained HTML page: templates and a style sheet of this package, filled and written whole or not at all."""

import os
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from likewise.checks import require
from likewise.claims.escaping import printable
from likewise.reports import formats


def require_packages(where: str, *packages: str) -> None:
    """Refuse to start without packages of the `report` extra, before any work is done."""
    for package in packages:
        if find_spec(package) is None:
            message = f"{where}: {package} must be installed; got no such package. Try: pip install 'likewise[report]'"
            raise ModuleNotFoundError(message, name=package)


def render(template: str, values: dict[str, Any]) -> str:
    """Fill a template of this package; every value is escaped, except what a template itself marks as safe."""
    require_packages("render", "jinja2")
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("likewise.reports"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    filters = ("short", "scientific", "seconds", "size", "times", "percent")
    environment.filters.update({name: getattr(formats, name) for name in filters})
    environment.filters["positions"] = formats.length
    environment.filters["printable"] = printable
    return environment.get_template(template).render(values)


def require_place(where: str, path: Path) -> None:
    """Refuse a path at which no file can be written, before any work is done."""
    require(not path.is_dir(), where, "path", "be a file", f"the folder {path}")
    require(path.parent.is_dir(), where, "path", "be in a folder that exists", path)


def write_page(path: Path, page: str) -> Path:
    """Write the page so that the path holds all of it or what it held before."""
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        unfinished.write_text(page, encoding="utf-8")
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)
    return path
