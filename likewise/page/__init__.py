"""One self-contained HTML page: the frame and style sheet of every page, and the filling of templates."""

from typing import Any

from likewise import text
from likewise.checks import require_package
from likewise.page.tables import with_column_names


def render(template: str, values: dict[str, Any]) -> str:
    """Fill a template; every value is escaped, except what a template itself marks as safe.

    template: its path in the package, as templates name each other too: "reports/templates/exits.html".
    """
    require_package("render", "jinja2")
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
    return with_column_names(environment.get_template(template).render(values))
