"""Text for people: numbers in a readable format, columns, and escaping of what was not written by us."""

import math
from collections.abc import Collection, Sequence

TIMES, MINUS, MICRO, THIN = "\N{MULTIPLICATION SIGN}", "\N{MINUS SIGN}", "\N{MICRO SIGN}", "\N{NARROW NO-BREAK SPACE}"
SUPERSCRIPTS = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")


def short(value: int | float, digits: int = 2) -> str:
    """So many significant digits, without an exponent where it can be done.

    >>> short(0.0123456), short(1234.5), short(7.0), short(99.96, 3)
    ('0.012', '1,200', '7.0', '100')
    """
    if not math.isfinite(value):
        return str(value)
    if value == 0:
        return "0"
    rounded = float(f"{value:.{digits - 1}e}")
    decimals = digits - 1 - math.floor(math.log10(abs(rounded)))
    return f"{rounded:,.{max(decimals, 0)}f}".replace("-", MINUS)


def scientific(value: int | float, digits: int = 2) -> str:
    """So many digits and a power of ten, for numbers that are far from 1.

    >>> scientific(4.44e-16), scientific(1e-9), scientific(0.0), scientific(0.25)
    ('4.4 × 10⁻¹⁶', '10⁻⁹', '0', '0.25')
    """
    if value == 0 or not math.isfinite(value) or 0.001 <= abs(value) < 10000:
        return short(value, digits)
    mantissa, exponent = f"{value:.{digits - 1}e}".split("e")
    if float(mantissa) == 1 == value / 10.0 ** int(exponent):
        return power(int(exponent))
    return f"{mantissa} {TIMES} {power(int(exponent))}".replace("-", MINUS)


def power(exponent: int) -> str:
    """A power of ten.

    >>> power(-3), power(0)
    ('10⁻³', '1')
    """
    return {0: "1", 1: "10"}.get(exponent, f"10{str(exponent).translate(SUPERSCRIPTS)}")


def seconds(value: int | float) -> str:
    """A time in the unit that suits it.

    >>> seconds(0.00014), seconds(0.000998), seconds(0.0123), seconds(3.84)
    ('140 µs', '1.0 ms', '12 ms', '3.8 s')
    """
    for factor, unit in ((1, "s"), (1e-3, "ms"), (1e-6, f"{MICRO}s")):
        if value >= 0.995 * factor:
            return f"{short(value / factor, 2)} {unit}"
    return f"{short(value * 1e9, 2)} ns"


def size(value: int | float) -> str:
    """Bytes, in powers of 1000.

    >>> size(133120), size(134217728), size(12)
    ('133 kB', '134 MB', '12 B')
    """
    for factor, unit in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if value >= 0.9995 * factor:
            return f"{short(value / factor, 3)} {unit}"
    return f"{value:.0f} B"


def times(value: int | float) -> str:
    """A factor.

    >>> times(19.24), times(0.97)
    ('19×', '0.97×')
    """
    return f"{short(value, 2)}{TIMES}"


def length(value: int | float) -> str:
    """A number of positions, thousands in groups.

    >>> length(16384), length(1467.2)
    ('16,384', '1,467')
    """
    return f"{value:,.0f}"


def percent(value: int | float) -> str:
    """A share.

    >>> percent(0.9257)
    '92.6%'
    """
    return f"{100 * value:.1f}%"


def aligned(rows: Sequence[Sequence[str]], *, left: Collection[int] = (0,)) -> str:
    """Rows as columns of text, two spaces apart; the columns numbered in `left` are flush left, the others right.

    >>> print(aligned([("map", "error"), ("Elu", "0.5"), ("Taylor", "0.25")]))
    map     error
    Elu       0.5
    Taylor   0.25
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = (
        "  ".join(
            cell.ljust(width) if column in left else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    )
    return "\n".join(line.rstrip() for line in lines)


def printable(text: str) -> str:
    r"""The text with everything a terminal would obey, or a reader would not see, written out.

    Control characters, line ends, marks that turn the direction of writing, spaces other than the plain one.

    >>> print(printable("red \x1b[31m, turned \u202e, two\nlines"))
    red \x1b[31m, turned \u202e, two\nlines
    """
    return "".join(c if c.isprintable() else c.encode("unicode_escape", "surrogatepass").decode() for c in text)
