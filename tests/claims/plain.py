"""Expressions over whole sizes, computed by Python itself: the reference for engines that reason about all sizes."""

from collections.abc import Iterator, Mapping
from fractions import Fraction
from itertools import product

from likewise.claims.language.claim import Claim
from likewise.claims.language.parser import parse


def value(text: str, sizes: Mapping[str, int | Fraction]) -> Fraction:
    """A text of our own tests at these sizes."""
    known = {name: Fraction(size) for name, size in sizes.items()}
    return eval(text.replace("^", "**"), {"max": max, "min": min, "abs": abs}, known)


def satisfied(conditions: str, sizes: Mapping[str, int | Fraction]) -> bool:
    """Whether every one of `a <= b; c == d` is true at these sizes."""
    return all(value(condition, sizes) for condition in conditions.split(";") if condition)


def box(names: str, largest: int) -> Iterator[dict[str, int]]:
    """All whole sizes up to the largest."""
    for point in product(range(1, largest + 1), repeat=len(names)):
        yield dict(zip(names, point, strict=True))


def claim(names: str, relation: str, assumptions: str = "") -> Claim:
    """A claim over sizes of one letter."""
    assume = f"assume: {assumptions}\n" if assumptions else ""
    return parse(f"sizes: {', '.join(names)}\n{assume}assert: {relation}")
