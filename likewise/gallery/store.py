"""What a gallery asks of the engine that keeps it: the `Store` protocol, its records and its limits."""

import re
import secrets
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any, Literal, Protocol, runtime_checkable

import numpy
from jaxtyping import Float32, Float64, Int8, Int64

from likewise.checks import refuse, require
from likewise.text import printable

NAME = 200  # characters of an identity or a model
COLLECTION = re.compile(r"[a-z][a-z0-9_]{0,40}")
Array = numpy.ndarray
Kind = Literal["float32", "int8"]
Search = Literal["exact", "approximate"]


class Incompatible(ValueError):
    """Templates of two models that were not shown to be comparable."""


class Absent(ValueError):
    """An identity or a template that the gallery does not hold."""


class Damaged(ValueError):
    """A file that is no whole gallery."""


@dataclass(frozen=True)
class Limits:
    """Quotas for everything that comes from outside; more is refused before anything is written.

    templates_each: of one identity, and images of one enrolment. metadata: characters of JSON. probes: of one call of
    `identify`. top: identities listed for each probe. clustered: templates that `cluster` takes. Pictures are bounded
    by `likewise.data.pictures`.
    """

    identities: int = 5_000_000
    templates: int = 20_000_000
    templates_each: int = 10_000
    metadata: int = 65_536
    width: int = 4096
    models: int = 64
    probes: int = 100_000
    top: int = 1000
    clustered: int = 20_000


@dataclass(frozen=True)
class Model:
    """The model that templates come from.

    fingerprint: SHA-256 of weights and preparation, or of the name if only that is known. unit: vectors are scaled to
    length 1 and compared by their angle. kind: how templates are stored. compatible_with: id of the older model whose
    templates may be compared with its own, 0 if none.
    """

    id: int
    name: str
    fingerprint: bytes
    width: int
    unit: bool
    kind: Kind
    compatible_with: int = 0

    @property
    def short(self) -> str:
        """Name and the start of the fingerprint, for messages."""
        return f"{self.name} ({self.fingerprint.hex()[:12]})"


@dataclass(frozen=True, eq=False)
class Person:
    """Templates of one identity, to be enrolled together or not at all.

    templates: float32 or int8 rows, as the model stores them. sources: a path for each, "" if it is not known.
    metadata: JSON text, or None to leave it.
    """

    name: str
    templates: Array
    sources: tuple[str, ...]
    metadata: str | None = None


@dataclass(frozen=True, eq=False)
class Templates:
    """Templates of one identity by one model, with the paths they came from and their own numbers."""

    model: Model
    rows: Array
    sources: tuple[str, ...]
    numbers: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Hits:
    """The nearest templates of every probe: identity numbers (0 where there are fewer) and squared distances."""

    identities: Int64[Array, "n k"]
    squared: Float64[Array, "n k"]


CopyStatus = Literal["erased", "pending", "missing", "replaced"]


@dataclass(frozen=True)
class Correction:
    """Two templates, by number, that a person said are of the same person, or of different people."""

    one: int
    two: int
    same: bool


@dataclass(frozen=True)
class CopyErased:
    """A backup or dump, and whether the identity is gone from it.

    pending: it is being read or written. missing: nothing is at its path. replaced: what is there is not the copy that
    this gallery made, and is left alone.
    """

    path: str
    status: CopyStatus


@dataclass(frozen=True)
class Erasure:
    """What `forget` did. status: pending while a reader keeps old pages alive, delegated if the engine erases later.

    searched: files and bytes that the proof read; found: templates that it found there (None if it did not run).
    """

    identity: str
    templates: int
    status: Literal["erased", "pending", "delegated"]
    copies: tuple[CopyErased, ...] = ()
    searched: tuple[tuple[str, int], ...] = ()
    found: int | None = None
    warnings: tuple[str, ...] = ()


@runtime_checkable
class Store(Protocol):
    """An engine that keeps identities, templates, models and calibrations; one contract suite runs on every engine.

    origin: a random number of this gallery. Its dumps and backups carry it, so that `remove` never changes another's.
    """

    erases: Literal["proven", "delegated"]
    search: Search
    limits: Limits
    origin: int

    def snapshot(self) -> AbstractContextManager[None]:
        """One view of everything for several reads, whatever others write meanwhile, as far as the engine can."""
        ...

    def close(self) -> None: ...

    def models(self) -> tuple[Model, ...]: ...

    def current(self) -> Model | None:
        """The model that new templates are of."""
        ...

    def add_model(self, model: Model, *, current: bool) -> Model:
        """Register a model, or find it by its fingerprint; compatibility is written as given."""
        ...

    def add(self, people: Sequence[Person], model: Model, *, replaces: Sequence[int] = ()) -> int:
        """Add templates in one transaction; in it, drop those identities' templates of the models `replaces`.

        Corrections of what is dropped pass to the new templates of the same images: see `heirs`.
        """
        ...

    def count(self) -> tuple[int, int]:
        """Numbers of identities and templates."""
        ...

    def names(self, numbers: Sequence[int] | None = None) -> dict[int, str]:
        """Names of identities by number: some, or all."""
        ...

    def number(self, name: str) -> int:
        """The number of an identity, 0 if it is not there."""
        ...

    def metadata(self, number: int) -> str: ...

    def templates(self, number: int) -> tuple[Templates, ...]: ...

    def waiting(self, models: Sequence[int]) -> tuple[str, ...]:
        """Identities that have templates of one of these models."""
        ...

    def rows(self, model: Model) -> Iterator[tuple[Array, Array, Array]]:
        """All templates of a model, their owners' numbers and their own, some at a time, in the order of enrolment."""
        ...

    def nearest(self, queries: Float32[Array, "n E"] | Int8[Array, "n E"], model: Model, *, k: int) -> Hits:
        """The nearest templates of one model, by (squared distance, order of enrolment)."""
        ...

    def assign(self, numbers: Sequence[int], name: str) -> int:
        """Give templates to an identity, which is made if it is not there; those left without any are deleted.

        If one of them is not there, nothing is changed.
        """
        ...

    def remove(self, name: str, *, prove: bool) -> Erasure: ...

    def retire(self, models: Sequence[int], *, heirs: Mapping[int, int] | None = None) -> int:
        """Delete all templates of some models; returns how many. heirs: templates that take over corrections."""
        ...

    def settle(self) -> bool:
        """Finish erasures that were pending; whether none is left."""
        ...

    def calibrations(self) -> dict[tuple[int, str], dict[str, Any]]:
        """What `set_calibration` stored, by model and kind."""
        ...

    def set_calibration(self, model: int, kind: str, facts: dict[str, Any]) -> None: ...

    def corrections(self) -> tuple[Correction, ...]:
        """A person's corrections of clusters, in the order in which they were made."""
        ...

    def correct(self, corrections: Sequence[Correction]) -> None:
        """Keep further corrections, in one transaction."""
        ...

    def add_copy(self, path: Path, kind: Literal["backup", "dump"]) -> None:
        """Remember a copy, which `remove` has to erase from, too."""
        ...


def contracted(corrections: Sequence[Correction], gone: Sequence[int]) -> list[Correction]:
    """What corrections say of the templates that stay when some are deleted.

    If 1 and 2 are the same, and 2 and 3, then 1 and 3 still are when 2 is gone; so with what differs from 2.

    >>> contracted([Correction(1, 2, True), Correction(2, 3, True), Correction(2, 9, False)], [2])
    [Correction(one=1, two=3, same=True), Correction(one=1, two=9, same=False)]
    """
    left = set(gone)
    if not any({each.one, each.two} & left for each in corrections):
        return list(corrections)
    groups: dict[int, set[int]] = {}
    for each in corrections:
        for number in (each.one, each.two):
            groups.setdefault(number, {number})
        if each.same:
            joined = groups[each.one] | groups[each.two]
            groups |= dict.fromkeys(joined, joined)
    stay = {number: sorted(group - left) for number, group in groups.items()}
    found: dict[Correction, None] = {}
    for each in corrections:
        one, two = stay[each.one], stay[each.two]
        if not {each.one, each.two} & left:
            found[each] = None
        elif each.same:
            found |= dict.fromkeys(Correction(one[0], other, True) for other in one[1:])
        elif one and two:
            found[Correction(one[0], two[0], False)] = None
    return list(found)


def inherited(corrections: Sequence[Correction], gone: Sequence[int], heirs: Mapping[int, int]) -> list[Correction]:
    """Corrections when templates are deleted, some of which have heirs.

    >>> inherited([Correction(1, 2, True), Correction(2, 9, False)], [1, 2], {2: 12})
    [Correction(one=12, two=9, same=False)]
    """
    moved = [
        Correction(heirs.get(each.one, each.one), heirs.get(each.two, each.two), each.same) for each in corrections
    ]
    return contracted(moved, [number for number in gone if number not in heirs])


def heirs(old: Sequence[tuple[int, str]], new: Sequence[tuple[int, str]]) -> dict[int, int]:
    """Which new template of an identity is of the same image as an old one; both as (number, source).

    Images are the same if their paths are, else if their file names are. What is left of as many old and new ones
    corresponds in order.

    >>> heirs([(1, "/a/x.png"), (2, "/a/y.png"), (3, "")], [(7, ""), (8, "/b/y.png"), (9, "/a/x.png")])
    {1: 9, 2: 8, 3: 7}
    """
    found: dict[int, int] = {}
    left = dict(new)
    for key in (str, lambda source: PurePath(source).name):
        same: dict[str, list[int]] = {}
        for number, source in left.items():
            if source:
                same.setdefault(key(source), []).append(number)
        for number, source in old:
            if number not in found and same.get(key(source)):
                found[number] = same[key(source)].pop(0)
                del left[found[number]]
    if len(old) == len(new):
        found |= dict(zip([number for number, _ in old if number not in found], left, strict=True))
    return dict(sorted(found.items()))


def heirs_of_each(old: Iterable[tuple[int, int, str]], new: Iterable[tuple[int, int, str]]) -> dict[int, int]:
    """`heirs` of several identities at once; templates as (identity, number, source)."""
    sides: tuple[dict[int, list[tuple[int, str]]], ...] = ({}, {})
    for side, rows in zip(sides, (old, new), strict=True):
        for identity, number, source in rows:
            side.setdefault(identity, []).append((number, source))
    return {
        one: other
        for identity, mine in sides[0].items()
        for one, other in heirs(mine, sides[1].get(identity, [])).items()
    }


def require_templates(wanted: Sequence[int], found: Collection[int]) -> None:
    """Refuse numbers of templates that the gallery does not hold."""
    missing = [number for number in wanted if number not in found]
    fits = bool(wanted) and not missing
    require(fits, "assign", "templates", "be in the gallery", missing[:3] or "none", error=Absent)


def new_origin() -> int:
    """A random number for a new gallery; see `Store`."""
    return 1 + secrets.randbelow(1 << 62)


def require_quota(limits: Limits, each: Mapping[str, int], identities: int, templates: int) -> None:
    """Refuse what is over a limit: templates of each identity, and how many there are of both in all."""
    for name, found in each.items():
        rule = f"have at most {limits.templates_each:,} templates"
        require(found <= limits.templates_each, "enrol", "an identity", rule, f"{found:,} for {name!r}")
    for what, found, most in (
        ("templates", templates, limits.templates),
        ("identities", identities, limits.identities),
    ):
        require(found <= most, "enrol", what, f"be at most {most:,} in all", f"{found:,}")


def require_collection(name: str) -> str:
    """The name of a gallery in a database, as the fragment of a URL gives it."""
    rule = "end in #name, a small letter and then small letters, digits and _"
    require(bool(COLLECTION.fullmatch(name)), "Gallery.open", "url", rule, repr(printable(name[:NAME])))
    return name


def require_name(where: str, name: object) -> str:
    """A name of an identity: printable text without spaces at its ends, of bounded length."""
    if not isinstance(name, str):
        refuse(where, "identity", "be a text", type(name).__name__)
    plain = 0 < len(name) <= NAME and name.isprintable() and name == name.strip()
    if not plain:
        rule = f"be 1 to {NAME} printable characters without spaces at the ends"
        refuse(where, "identity", rule, repr(printable(name[:NAME])))
    return name
