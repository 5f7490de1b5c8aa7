"""The one place that words an argument error: `where: name must rule; got value.` plus, where it helps, what to do."""

from typing import NoReturn


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


def require(holds: bool, where: str, name: str, rule: str, got: object, hint: str = "") -> None:
    """`refuse` unless the rule holds."""
    if not holds:
        refuse(where, name, rule, got, hint)


def require_count(where: str, name: str, value: object, *, least: int = 1) -> None:
    """Refuse anything but a whole number of at least `least` (True and 2.0 are not whole numbers here)."""
    whole = isinstance(value, int) and not isinstance(value, bool)
    require(whole and value >= least, where, name, f"be a whole number of at least {least}", repr(value))


def require_choice(where: str, name: str, value: object, choices: tuple[str, ...]) -> None:
    """Refuse a word that is not one of the choices; a typo never means "the default"."""
    require(value in choices, where, name, f"be one of {', '.join(map(repr, choices))}", repr(value))
