"""What one link of a statement was read as: claims with what they rest on, or the reason why there is none."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from likewise.reading.names import Draft
from likewise.reading.scope import Binding

EQUATION = "an equation between names that nothing binds"
DEFINED = "a definition"
CONDITION = "an inequality between names that nothing binds"


@dataclass(frozen=True)
class Reading:
    """One link of a statement: the claims it may mean, and what they rest on; or a refusal."""

    link: int
    claims: tuple[str, ...] = ()  # readings that must agree; the first is shown
    refusal: str = ""
    bindings: tuple[Binding, ...] = ()
    also: tuple[str, ...] = ()  # the claim under conditions that may belong to it: refuted only if this is, too
    open: tuple[str, ...] = ()  # why a refutation would not count: names that nothing binds, conditions left out
    notes: tuple[str, ...] = field(default=(), compare=False)
    trivial: bool = False  # a definition repeated
    plain: bool = False  # between fractions of bounded size: no worker process is needed
    defined: tuple[str, ...] = ()  # the claims where no denominator is 0, asked if they are refuted by having no value
    either: bool = False  # one of the claims suffices: logarithms whose base is not said


def claim_text(draft: Draft, text: str, assumptions: Sequence[str] = ()) -> str:
    """A claim in its language: declarations, assumptions, definitions and what is asserted."""
    lines = []
    defined = set(draft.definitions)
    given = [f"{name} {kind}" for name, kind in draft.given.items() if name not in defined]
    sizes = [size for size in draft.sizes if size not in defined]
    if sizes:
        lines.append(f"sizes: {', '.join(sizes)}")
    if given:
        lines.append(f"given: {'; '.join(given)}")
    if assumptions:
        lines.append(f"assume: {'; '.join(assumptions)}")
    lines += draft.definitions.values()
    lines.append(f"assert: {text}")
    return "\n".join(lines)
