"""One self-contained HTML page: the frame and style sheet of every page, and the filling of templates."""

from importlib.util import find_spec
from typing import Any

from likewise import text


def require_packages(where: str, *packages: str) -> None:
    """Refuse to start without packages of the `report` extra, before any work is done."""
    for package in packages:
        if find_spec(package) is None:
            message = f"{where}: {package} must be installed; got no such package. Try: pip install 'likewise[report]'"
            raise ModuleNotFoundError(message, name=package)


def render(template: str, values: dict[str, Any]) -> str:
    """Fill a template; every value is escaped, except what a template itself marks as safe.

    template: its path in the package, as templates name each other too: "reports/templates/exits.html".
    """
    require_packages("render", "jinja2")
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("likewise", "."),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    filters = ("short", "scientific", "seconds", "size", "times", "percent", "printable")
    environment.filters.update({name: getattr(text, name) for name in filters})
    environment.filters["positions"] = text.length
    return environment.get_template(template).render(values)
