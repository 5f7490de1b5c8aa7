"""What a gallery answers: results of enrolment, verification and identification."""

from dataclasses import dataclass
from typing import Literal

from likewise.data import Skipped
from likewise.gallery.calibration import odds

Outcome = Literal["known", "unknown", "undecided", "unreadable"]


@dataclass(frozen=True)
class Enrolled:
    """How many identities and templates were added, and which images were left out."""

    identities: int
    templates: int
    skipped: tuple[Skipped, ...] = ()


@dataclass(frozen=True)
class Verified:
    """Whether a probe is the identity. same is None if no threshold is set: then only the distance is known.

    squared: squared distance to the nearest of the identity's templates. rate: share of impostors as near as that.
    unseen: no impostor of the calibration was; the rate is then an upper bound.
    """

    identity: str
    squared: float
    same: bool | None
    threshold: float | None
    rate: float | None
    warnings: tuple[str, ...] = ()
    unseen: bool = False

    @property
    def odds(self) -> str:
        """The rate in words: false accept about 1 in N, or at most that."""
        return odds(self.rate, unseen=self.unseen)


@dataclass(frozen=True)
class Candidate:
    """An identity and the squared distance of its nearest template to the probe."""

    identity: str
    squared: float


@dataclass(frozen=True)
class Identified:
    """Who a probe is. outcome: known; unknown, if nobody is near enough; undecided without a threshold; unreadable.

    identity: only of a known one. candidates: the nearest identities, whatever the outcome. rate: the share of
    strangers whose nearest template is as near. unseen: none was; the rate is then an upper bound.
    """

    outcome: Outcome
    identity: str | None
    candidates: tuple[Candidate, ...]
    threshold: float | None
    rate: float | None
    source: str = ""
    warnings: tuple[str, ...] = ()
    unseen: bool = False

    @property
    def odds(self) -> str:
        """The rate in words: false accept about 1 in N, or at most that."""
        return odds(self.rate, unseen=self.unseen)
