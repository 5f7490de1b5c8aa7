"""The judge: a second, deliberately naive implementation of format.md at one concrete point.

It shares the parser with the engines and nothing else. Every number is an exact fraction (fmpq) or a ball (arb) that
surely contains it, so a comparison is surely true, surely false, or unclear; the judge never guesses.

A point that a claim speaks of has a value for every size and every variable that is not random. `rule` says what the
claim is worth there:

    true, false    every assumption is surely true, and so, or not so, is the relation
    undefined      both sides of a comparison, or one side of an inequality, have no value there
    outside        a value is not in its set, an assumption is false, or a law does not exist
    close          the balls of both sides do not separate
    unclear        the judge has no value
    doubtful       that is so of an assumption already
"""

from likewise.claims.judge.numbers import Misfit, Outside, Turned, Unclear, Undefined, ball, rational
from likewise.claims.judge.point import Point, Value, boxed
from likewise.claims.judge.ruling import (
    LARGEST,
    against,
    complete,
    crosses,
    crossing,
    may_satisfy,
    place,
    random_draws,
    ratio,
    rule,
    same_definitions,
    satisfied,
)

__all__ = [
    "LARGEST",
    "Misfit",
    "Outside",
    "Point",
    "Turned",
    "Unclear",
    "Undefined",
    "Value",
    "against",
    "ball",
    "boxed",
    "complete",
    "crosses",
    "crossing",
    "may_satisfy",
    "place",
    "random_draws",
    "ratio",
    "rational",
    "rule",
    "same_definitions",
    "satisfied",
]
