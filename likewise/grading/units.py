"""Units after a number: the exact factor to SI and the dimensions, and number words such as million."""

import re
from fractions import Fraction

Dimensions = tuple[tuple[str, int], ...]
Unit = tuple[Fraction, Dimensions]

PREFIXES = {
    "": 0,
    "k": 3,
    "M": 6,
    "G": 9,
    "T": 12,
    "P": 15,
    "c": -2,
    "d": -1,
    "m": -3,
    "u": -6,
    "µ": -6,
    "n": -9,
    "p": -12,
}
SYMBOLS = """
1 m: m
1 s: s
1/1000 kg: g
1 A: A
1 K: K
1 mol: mol
1/1000 m^3: L
1 s^-1: Hz
1 kg m s^-2: N
1 kg m^2 s^-2: J
1 kg m^2 s^-3: W
3600 kg m^2 s^-2: Wh
1 kg m^-1 s^-2: Pa
1 kg m^2 s^-3 A^-1: V
1 A s: C
1 byte: B
1/8 byte: bit bits
1 flop: FLOP FLOPs
1 flop s^-1: FLOPS
1 mac: MAC MACs
1/2 mac: halfMAC halfMACs
"""
WORDS = """
1 s: second sec
60 s: minute min
3600 s: hour hr h
86400 s: day
604800 s: week
1/12 year: month
1 year: year
1/1000 s: millisecond
1/1000000 s: microsecond
1 m: meter metre
1000 m: kilometer kilometre
1/100 m: centimeter centimetre
1/1000 m: millimeter millimetre
127/5000 m: inch inches in
381/1250 m: foot feet ft
1143/1250 m: yard
201168/125 m: mile mi
1397/3125 m s^-1: mph
1/1000 kg: gram
1 kg: kilogram
1000 kg: tonne
1 ton: ton
45359237/100000000 kg: pound lb
1/1000 m^3: liter litre l
1/1000000 m^3: ml mL
1 kg m^2 s^-2: joule
1 kg m^2 s^-3: watt
1 kg m s^-2: newton
1 kg m^2 s^-3 A^-1: volt
1 A: amp ampere
1 K: kelvin
1 celsius: celsius
1 fahrenheit: fahrenheit
1 mol: mole
1 s^-1: hertz
1 byte: byte
1/8 byte: bit
1000 byte: KB
1024 byte: KiB
1048576 byte: MiB
1073741824 byte: GiB
1099511627776 byte: TiB
1 flop: flop
1 mac: mac multiply-add multiply-accumulate
1 dollar: dollar usd USD
1/100 dollar: cent
1 euro: euro EUR
1/100: percent pct percentage
12: dozen
100: hundred
1000: thousand
1000000: million
1000000000: billion
1000000000000: trillion
1: rad radian
1 unit: unit
"""


LARGE = {"kilo": 3, "mega": 6, "giga": 9, "tera": 12, "milli": -3, "micro": -6, "nano": -9, "centi": -2}
WITH_PREFIX = {"byte", "bit", "gram", "second", "meter", "metre", "liter", "litre", "watt", "joule", "hertz", "volt"}


def _table() -> dict[str, Unit]:
    found: dict[str, Unit] = {}
    for lines, prefixes, plurals in ((SYMBOLS, PREFIXES, ("",)), (WORDS, {"": 0}, ("", "s"))):
        for line in lines.strip().splitlines():
            left, _, names = line.partition(":")
            factor, *dimensions = left.split()
            powers: dict[str, int] = {}
            for each in dimensions:
                name, _, power = each.partition("^")
                powers[name] = int(power or 1)
            for name in names.split():
                for prefix, power in prefixes.items():
                    for plural in plurals:
                        found[f"{prefix}{name}{plural}"] = _unit(Fraction(factor) * Fraction(10) ** power, powers)
    for name in WITH_PREFIX:
        factor, dimensions = found[name]
        for prefix, power in LARGE.items():
            for plural in ("", "s"):
                found.setdefault(f"{prefix}{name}{plural}", (factor * Fraction(10) ** power, dimensions))
    return found


def _unit(factor: Fraction, dimensions: dict[str, int]) -> Unit:
    return factor, tuple(sorted((name, power) for name, power in dimensions.items() if power))


UNITS = _table()
TEMPERATURES = {"K": (Fraction(1), Fraction(0)), "celsius": (Fraction(1), Fraction("273.15"))}  # (factor, zero in K)
TEMPERATURES["fahrenheit"] = (Fraction(5, 9), Fraction("459.67") * Fraction(5, 9))
BINARY = {f"{prefix}B": Fraction(1024**power) for power, prefix in enumerate("KMGTP", 1)} | {"kB": Fraction(1024)}
VAGUE = {"year", "ton"}  # no fixed number of days, kilograms


def unit_of(text: str) -> Unit | None:
    """The factor and dimensions of a unit, or nothing if it is not known.

    >>> unit_of("km/h")
    (Fraction(5, 18), (('m', 1), ('s', -1)))
    """
    text = text.replace("per ", "/ ").replace(".", " ").strip()
    text = re.sub(r"\b(square|sq|cubic)\s+(\w+)", lambda m: f"{m[2]}^{3 if m[1] == 'cubic' else 2}", text)
    text = re.sub(r"\b(\w+) (squared|cubed)\b", lambda m: f"{m[1]}^{3 if m[2] == 'cubed' else 2}", text)
    factor, total, below = Fraction(1), dict[str, int](), False
    for piece in re.finditer(r"/|\*|([A-Za-zµ-]+)\s*(?:\^\s*(-?\d))?|\S", text):
        if piece[0] == "/":
            below = True
            continue
        if piece[0] == "*":
            continue
        name = piece[1] if piece[1] in UNITS else (piece[1] or "").lower()
        if name not in UNITS or (len(name) < 4 and name != piece[1]):
            return None
        power = int(piece[2] or 1) * (-1 if below else 1)
        size, dimensions = UNITS[name]
        factor *= size**power
        for each, times in dimensions:
            total[each] = total.get(each, 0) + times * power
    return _unit(factor, total)
