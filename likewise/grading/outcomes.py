"""The result of comparing two answers (Outcome), and what a comparison knows (World): facts, conventions, deadline."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from likewise.grading.given import Conventions, Given


@dataclass(frozen=True)
class Outcome:
    """verdict: equal, different, depends or undecided; why: the proof, witness, condition or reason."""

    verdict: str
    why: str = ""
    is_contradicted: bool = False  # an answer states a false equality between numbers


EQUAL = Outcome("equal")


def undecided(why: str) -> Outcome:
    """No verdict, with the reason."""
    return Outcome("undecided", why)


def different(why: str) -> Outcome:
    """Surely different, with the witness."""
    return Outcome("different", why)


def depends(why: str) -> Outcome:
    """Equal under a condition."""
    return Outcome("depends", why)


@dataclass
class World:
    """What one comparison knows, and until when it may work."""

    given: Given
    conventions: Conventions
    until: float
    notes: list[str] = field(default_factory=list)
    shape: bool = False  # whether a text calls its answer a shape

    @property
    def left(self) -> float:
        """Seconds of processor time of this thread that are left."""
        return max(self.until - time.thread_time(), 0.0)

    def with_log(self, base: str) -> "World":
        """The same with another base of log."""
        return replace(self, conventions=replace(self.conventions, log=base))


def all_of(outcomes: Sequence[Outcome]) -> Outcome:
    """The outcome of parts that must all be equal."""
    for verdict in ("different", "undecided", "depends"):
        for outcome in outcomes:
            if outcome.verdict == verdict:
                return outcome
    return EQUAL
