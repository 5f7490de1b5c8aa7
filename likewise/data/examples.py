"""A set of labelled images, none of which is decoded before it is asked for."""

import hashlib
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple, Protocol, runtime_checkable

import numpy
import torch
from jaxtyping import Int64
from torch import Tensor

from likewise.checks import refuse, require, require_count
from likewise.data.pictures import Pixels, Unreadable


class Skipped(NamedTuple):
    """A file that was left out, and why."""

    item: str
    why: str


@runtime_checkable
class Source(Protocol):
    """Where pixels come from: red, green and blue, or one channel of grey."""

    def read(self, index: int, *, least: int | None = None) -> Pixels:
        """The image at an index, decoded to at least `least` rows and columns; raises Unreadable."""
        ...


@dataclass(frozen=True)
class Stored:
    """Images that are in memory already."""

    images: numpy.ndarray  # uint8, (N, Y, X, C)

    def read(self, index: int, *, least: int | None = None) -> Pixels:
        return self.images[index]


@dataclass(frozen=True)
class _Rows:
    """Some of the images of another source."""

    source: Source
    rows: tuple[int, ...]

    def read(self, index: int, *, least: int | None = None) -> Pixels:
        return self.source.read(self.rows[index], least=least)


class Origin(NamedTuple):
    """Which images of a data set there are: the fingerprint of all of it, and a bit for each image, in hex.

    A file of a network keeps that of the training images, a thousand of them in 250 bytes.
    """

    source: str
    rows: str


@dataclass(frozen=True, eq=False)
class Examples:
    """Images, one label each. `identities[labels[i]]` names who is on image i, `items[i]` the image itself.

    whole: the examples that these were taken from, if they are only some of a data set.

    >>> pixels = numpy.arange(3 * 2 * 2, dtype=numpy.uint8).reshape(3, 2, 2, 1)
    >>> dots = examples("dots", Stored(pixels), ["a/1", "b/1", "b/2"], ["a", "b", "b"])
    >>> len(dots), dots.labels.tolist(), dots.with_at_least(2).items
    (3, [0, 1, 1], ('b/1', 'b/2'))
    """

    title: str
    source: Source
    items: tuple[str, ...]
    labels: Int64[Tensor, "N"]
    identities: tuple[str, ...]
    skipped: tuple[Skipped, ...] = ()
    whole: "Examples | None" = None

    def __len__(self) -> int:
        return len(self.items)

    def __repr__(self) -> str:
        return f"Examples({self.title!r}, {len(self):,} images, {len(self.identities):,} identities)"

    def read(self, index: int, *, least: int | None = None) -> Pixels:
        """The pixels of image i; `likewise.data.Unreadable` if they cannot be had."""
        return self.source.read(index, least=least)

    def first(self) -> Pixels:
        """The first image that can be read; refused if there is none."""
        found = None
        for index in range(len(self)):
            with suppress(Unreadable):
                found = self.read(index)
                break
        if found is None:
            refuse("Examples.first", "examples", "have an image that can be read", f"none of {len(self):,}")
        return found

    def rows(self, items: Iterable[str]) -> list[int]:
        """Where items stand; an unknown one is refused."""
        found = [(item, self._places.get(item)) for item in items]
        for item, row in found:
            require(row is not None, "Examples.rows", "items", f"be images of {self.title}", repr(item))
        return [row for _, row in found if row is not None]

    @cached_property
    def _places(self) -> dict[str, int]:
        return {item: row for row, item in enumerate(self.items)}

    def take(self, rows: Sequence[int]) -> "Examples":
        """Some images only; labels count the identities that are left."""
        names = [self.identities[label] for label in self.labels[list(rows)].tolist()]
        items = [self.items[row] for row in rows]
        taken = examples(self.title, _Rows(self.source, tuple(rows)), items, names, self.skipped)
        return replace(taken, whole=self.whole or self)

    def of(self, identities: Iterable[str]) -> "Examples":
        """The images of some identities; an unknown name is refused."""
        wanted = set(identities)
        unknown = sorted(wanted - set(self.identities))
        require(not unknown, "Examples.of", "identities", f"be in {self.title}", ", ".join(unknown[:5]))
        return self._where([name in wanted for name in self.identities])

    def without(self, identities: Iterable[str]) -> "Examples":
        """The images of everybody else."""
        unwanted = set(identities)
        return self._where([name not in unwanted for name in self.identities])

    def numbered_by(self, identities: Sequence[str]) -> "Examples":
        """The same images; labels count `identities`, some of which may have none. An unknown name is refused."""
        numbers = {name: number for number, name in enumerate(identities)}
        unknown = [name for name in self.identities if name not in numbers]
        rule = f"hold those of {self.title}"
        require(not unknown, "Examples.numbered_by", "identities", rule, f"none for {', '.join(unknown[:5])}")
        labels = torch.tensor([numbers[name] for name in self.identities], dtype=torch.int64)[self.labels]
        return replace(self, labels=labels, identities=tuple(identities))

    def with_at_least(self, count: int) -> "Examples":
        """The images of identities that have so many."""
        require_count("Examples.with_at_least", "count", count)
        return self._where((self.labels.bincount(minlength=len(self.identities)) >= count).tolist())

    def _where(self, keep: list[bool]) -> "Examples":
        return self.take([row for row, label in enumerate(self.labels.tolist()) if keep[label]])

    @cached_property
    def fingerprint(self) -> str:
        """A hash of which images there are and whose, by which a resumed training knows its data again."""
        names = [self.identities[label] for label in self.labels.tolist()]
        text = "\n".join(f"{item}\t{name}" for item, name in zip(self.items, names, strict=True))
        return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()

    @property
    def origin(self) -> Origin:
        """Which images of their data set these are."""
        whole = self.whole or self
        there = numpy.zeros(len(whole), dtype=bool)
        there[whole.rows(self.items)] = True
        return Origin(whole.fingerprint, numpy.packbits(there).tobytes().hex())

    def shared(self, origins: Iterable[Origin]) -> int:
        """How many of these images are among those that the origins name.

        >>> pixels = numpy.zeros((5, 2, 2, 1), dtype=numpy.uint8)
        >>> dots = examples("dots", Stored(pixels), "abcde", "ppqqq")
        >>> dots.take([1, 2, 4]).shared([dots.take([0, 1]).origin, dots.take([1, 4]).origin])
        2
        """
        own, found = self.origin, 0
        for source, rows in origins:
            if source == own.source:
                found |= int(rows, 16)
        return (int(own.rows, 16) & found).bit_count()


def examples(
    title: str, source: Source, items: Iterable[str], names: Sequence[str], skipped: Sequence[Skipped] = ()
) -> Examples:
    """Examples whose labels number the names of their identities, in order: numbers by size, then words."""
    identities = sorted(set(names), key=lambda name: (0, int(name), "") if name.isdecimal() else (1, 0, name))
    numbers = {name: number for number, name in enumerate(identities)}
    labels = torch.tensor([numbers[name] for name in names], dtype=torch.int64)
    return Examples(title, source, tuple(items), labels, tuple(identities), tuple(skipped))
