"""The one place that words an argument error: `where: name must rule; got value.` plus, where it helps, what to do."""

from importlib.util import find_spec
from typing import NoReturn

# Packages that not everything needs: the name under which each is installed, and the extra of likewise that brings it.
EXTRAS = {
    "torch": ("torch", "torch"),
    "jaxtyping": ("jaxtyping", "torch"),
    "safetensors": ("safetensors", "torch"),
    "PIL": ("pillow", "torch"),
    "jinja2": ("jinja2", "report"),
    "latex2mathml": ("latex2mathml", "review"),
    "sklearn": ("scikit-learn", "report"),
    "mcp": ("mcp", "mcp"),
    "transformers": ("transformers", "hf"),
    "psycopg": ("psycopg", "postgres"),
    "pymilvus": ("pymilvus", "milvus"),
    "milvus_lite": ("milvus-lite", "engines"),
    "fastapi": ("fastapi", "serve"),
    "dlib": ("dlib-bin", "faces"),
    "uvicorn": ("uvicorn", "serve"),
}


def refuse(
    where: str, name: str, rule: str, got: object, hint: str = "", error: type[ValueError] = ValueError
) -> NoReturn:
    """Raise the house's error for an argument that breaks its rule; `error` where a room has a kind of its own.

    >>> refuse("softmax_attention", "scale", "be a positive number", -1.0)
    Traceback (most recent call last):
        ...
    ValueError: softmax_attention: scale must be a positive number; got -1.0.
    """
    raise error(f"{where}: {name} must {rule}; got {got}.{' ' + hint if hint else ''}")


def require(
    holds: bool, where: str, name: str, rule: str, got: object, hint: str = "", error: type[ValueError] = ValueError
) -> None:
    """`refuse` unless the rule holds."""
    if not holds:
        refuse(where, name, rule, got, hint, error)


def require_count(where: str, name: str, value: object, *, least: int = 1) -> None:
    """Refuse anything but a whole number of at least `least` (True and 2.0 are not whole numbers here)."""
    whole = isinstance(value, int) and not isinstance(value, bool)
    require(whole and value >= least, where, name, f"be a whole number of at least {least}", repr(value))


def require_number(where: str, name: str, value: object, *, least: float | None = None) -> None:
    """Refuse anything but a finite number above 0, or from `least` on, if that is given."""
    try:
        holds = bool((value > 0 if least is None else least <= value) and value < float("inf"))  # ty: ignore[unsupported-operator]
    except (TypeError, ValueError, RuntimeError):  # a word, an array, a tensor of several numbers
        holds = False
    require(holds, where, name, "be a positive number" if least is None else f"be at least {least:g}", repr(value))


def require_choice(where: str, name: str, value: object, choices: tuple[str, ...]) -> None:
    """Refuse a word that is not one of the choices; a typo never means "the default"."""
    require(value in choices, where, name, f"be one of {', '.join(map(repr, choices))}", repr(value))


class MissingPackage(ModuleNotFoundError):
    """A package of an extra is not installed; the message has the command that installs it.

    >>> print(MissingPackage("digits", "sklearn"))
    digits: scikit-learn must be installed; got no such package. Try: pip install 'likewise[report]'
    """

    def __init__(self, where: str, package: str) -> None:
        name, extra = EXTRAS[package]
        rule = f"{where}: {name} must be installed; got no such package."
        super().__init__(f"{rule} Try: pip install 'likewise[{extra}]'", name=package)


def require_package(where: str, *packages: str) -> None:
    """Refuse to start without packages of `EXTRAS`, before any work is done."""
    for package in packages:
        if find_spec(package) is None:
            raise MissingPackage(where, package)
