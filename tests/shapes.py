"""Shape checks: what jaxtyping's import hook puts behind every signature of likewise, and how to take it away again."""

import functools
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any, Self

import beartype

_typed = beartype.beartype(conf=beartype.BeartypeConf(is_pep484_tower=True))  # an int is a float, as for type checkers


def check(function: Callable[..., Any]) -> Callable[..., Any]:
    """Beartype, which is shown methods one by one and so cannot know what Self is: there it takes anything.

    The function is jaxtyping's own copy of a signature, so its annotations are ours to change. Its check is made at the
    first call: most of the thousands are never called in a run, and making them all takes seconds.
    """
    hints = function.__annotations__
    function.__annotations__ = {name: Any if hint is Self else hint for name, hint in hints.items()}
    made: Callable[..., Any] | None = None

    @functools.wraps(function)
    def checked(*arguments: Any, **options: Any) -> Any:
        nonlocal made
        made = made or _typed(function)
        return made(*arguments, **options)

    return checked


def checked_functions() -> Iterator[tuple[object, str, object]]:
    """Every checked function of likewise that is loaded: the module or class that holds it, name, plain form."""
    modules = [module for name, module in sys.modules.items() if name.partition(".")[0] == "likewise"]
    classes = {value for module in modules for value in vars(module).values() if isinstance(value, type)}
    for owner in [*modules, *(made for made in classes if made.__module__.partition(".")[0] == "likewise")]:
        for name, value in list(vars(owner).items()):
            plain = _plain(value)
            if plain is not value:
                yield owner, name, plain


def _plain(value: Any) -> Any:
    if isinstance(value, classmethod | staticmethod):
        plain = _plain(value.__func__)
        return value if plain is value.__func__ else type(value)(plain)
    if isinstance(value, property):
        plain = _plain(value.fget)
        return value if plain is value.fget else value.getter(plain)
    checked = isinstance(value, types.FunctionType) and value.__globals__["__name__"].startswith("jaxtyping.")
    return value.__wrapped__ if checked else value
